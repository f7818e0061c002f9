"""Light stemming by our own suffix rules: Slovene, Macedonian, Bulgarian.

Belongs here: rules and the few consonant changes they need. What does not: languages that
Snowball covers. The rules cut articles, case, number, gender and the commonest verb endings, one
ending a layer, longest first, and always leave a stem of a stated length.
The idea of a light stemmer: J. Savoy, "Light stemming approaches…", SAC 2006.
"""

from __future__ import annotations

import re
from collections.abc import Callable


def _layer(suffixes: str, least: int) -> Callable[[str], str]:
    """A function that cuts the longest of the suffixes that leaves `least` characters."""
    ordered = sorted(suffixes.split(), key=len, reverse=True)
    ending = re.compile(rf"^(.{{{least},}}?)(?:{'|'.join(ordered)})$")

    def cut(word: str) -> str:
        match = ending.match(word)
        return match.group(1) if match else word

    return cut


_BG_ARTICLE = _layer("ият ията ието иите ите ът ят ата ята ото ето та то те", 3)
_BG_ENDING = _layer(
    "ища овци евци ове еве ета ена ени ия ии ие иа а я о е и ъ у ю"
    " вам ваш ва ваме вате ват ам аш аме ате ат ят им иш име ите ях яха аха ахме ал ала ало али"
    " ил ила ило или ел ела ело ели ял яла яло яли ан ана ано ани ян яна яно яни ен ено"
    " йки ейки айки",
    3,
)
_MK_ARTICLE = _layer("иот ите ата ото ето ва во ве на но не от та то те ов он ава ана", 3)
_MK_ENDING = _layer(
    "овци евци ови еви ишта иња ија ии ие а о е и у"
    " ам аш аме ате аат ат им иш име ите ев еше евме евте еа ав аше авме авте аа"
    " ал ала ало але ил ила ило иле ел ела ело еле ан ана ано ани ен ена ено ени ејќи ајќи",
    3,
)
_SL_ENDING = _layer(
    "a e i o u"
    " om em ov ev am ama oma ema ih imi ah ami ega emu im ima ga mu"
    " ja je ju jo ji jem jih jev jama jami jah"
    " ost osti ostjo ostih ostim ostmi"
    " ski ska sko ske skega skem skemu skih skim skimi"
    " ti l la lo li le lа iti ati eti uti il ila ilo ili ile al ala alo ali ale el ela elo eli ele"
    " en ena eno eni ene enega enem enemu enih enim enimi an ana ano ani ane"
    " imo ite ijo amo ate ajo emo ete ejo ejo aš iš eš at it et"
    " anje anja anju anjem enje enja enju enjem",
    3,
)
_RECODED = {"ц": "к", "з": "г", "ч": "к", "ж": "г", "ш": "х"}
_LATIN_RECODED = {"c": "k", "č": "k", "ž": "g", "z": "g", "š": "h"}


def _palatal(stem: str, changes: dict[str, str]) -> str:
    """Undo the softening of a final consonant (ученик, ученици)."""
    return stem[:-1] + changes.get(stem[-1], stem[-1]) if len(stem) > 2 else stem


def _skeleton(stem: str, fleeting: str) -> str:
    """Drop the fleeting vowel before a final consonant (писател, тесен: тесн)."""
    if len(stem) > 4 and stem[-2] in fleeting and stem[-1] in "нлрцкnlrck":
        return stem[:-2] + stem[-1]
    return stem


def bulgarian(word: str) -> str:
    """Stem a lowercase Bulgarian word."""
    return _palatal(_skeleton(_BG_ENDING(_BG_ARTICLE(word)), "еъ"), _RECODED)


def macedonian(word: str) -> str:
    """Stem a lowercase Macedonian word."""
    return _palatal(_skeleton(_MK_ENDING(_MK_ARTICLE(word)), "еоа"), _RECODED)


def slovene(word: str) -> str:
    """Stem a lowercase Slovene word."""
    return _palatal(_skeleton(_SL_ENDING(word), "e"), _LATIN_RECODED)
