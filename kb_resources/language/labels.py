"""The codes that a detector may answer with, which are those that a scope can take or refuse.

Belongs here: the list, as data, so that naming a language loads no model. What does not: what each
detector does. A test compares it with the models of both detectors. Bosnian (`bs`) is not among
them: such texts are answered as `hr` or `sr`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kb_resources.errors import InputError

_CODES = """
ace af am an ar ary arz as az ba bcl be bg bn br ca crh cs cy da de dz el en eo es et eu ext fa
fi fo fr fuv fy ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv
ka kab kik kk km kn ko ku ky la lb lg lij ln lo lt ltg lv mg mk ml mn mr ms mt my ne nl nn no
nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se si sk sl sn so sq sr st sv sw ta te tg th tk
tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu
"""
LABELS = frozenset(_CODES.split())


def check_labels(codes: Iterable[str]) -> None:
    """Raise InputError (`unknown_language`) for a code that no text is ever told to be in."""
    unknown = [code for code in codes if code not in LABELS]
    if unknown:
        raise InputError(
            f"No text is ever told to be in the language {unknown[0]!r}.",
            next_step=f"Name each language by one of: {' '.join(sorted(LABELS))}.",
            code="unknown_language",
        )
