"""Grounding: exact decisions about quotes, over pairs of spellings, and properties."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer import Claim, ClaimedQuote, RejectReason, ground, locate
from kb_resources.answer.ground import MIN_QUOTE
from kb_resources.answer.normalise import Folded, fold

ground_module = import_module("kb_resources.answer.ground")  # the package's `ground` is a function

LAW = "Employees must report a lost device within one hour. Reports are never punished."
PAY = "Salaries are paid on the last working day of each month."

# (source, quote, what stands in the source) – None: must not be found.
PAIRS: list[tuple[str, str, str | None]] = [
    ("café au lait at noon", "café au lait", "café au lait"),
    ("cafe\u0301 au lait at noon", "café au lait", "cafe\u0301 au lait"),
    ("café au lait at noon", "cafe\u0301 au lait", "café au lait"),
    ("cafe au lait at noon", "café au lait", None),
    ("the ﬁnal oﬃce plan", "final office plan", "ﬁnal oﬃce plan"),
    ("the final office plan", "ﬁnal oﬃce plan", "final office plan"),
    ("he said “yes, sir” twice", 'he said "yes, sir"', "he said “yes, sir”"),
    ("er sagte „ja, gern“ zweimal", 'er sagte "ja, gern"', "er sagte „ja, gern“"),
    ("он сказал «да, конечно» дважды", 'он сказал "да, конечно"', "он сказал «да, конечно»"),
    ("don’t open the valve", "don't open the valve", "don’t open the valve"),
    ("don't open the valve", "don’t open the valve", "don't open the valve"),
    ("pages 10–12 of the law", "pages 10-12 of the law", "pages 10–12 of the law"),
    ("a well‑known rule of law", "a well-known rule", "a well‑known rule"),
    ("the sum — all of it — is due", "the sum - all of it", "the sum — all of it"),
    (
        "Ver\u00adtrags\u00adbruch ist verboten",
        "Vertragsbruch ist",
        "Ver\u00adtrags\u00adbruch ist",
    ),
    ("Vertragsbruch ist verboten", "Ver\u00adtragsbruch ist", "Vertragsbruch ist"),
    ("zero\u200bwidth spaces here", "zerowidth spaces here", "zero\u200bwidth spaces here"),
    ("a\u200djoined word stands", "ajoined word stands", "a\u200djoined word stands"),
    ("100\u00a0000 euros a year", "100 000 euros a year", "100\u00a0000 euros a year"),
    ("one\n\ttwo   three four five", "one two three four", "one\n\ttwo   three four"),
    ("one two three four five", "one\u2003two three\nfour", "one two three four"),
    ("You Must report it today", "You must report it", None),
    ("you must report it today", "You Must report it", None),
    ("ΑΒΓΔ must remain as is", "ABΓΔ must remain", None),
    ("Правилник за отпуски тук", "Правилник за отпуски", "Правилник за отпуски"),
    ("правилник за отпуски тук", "Правилник за отпуски", None),
    ("шест календарни месеца", "шeст календарни месеца", None),
    ("½ of the annual sum", "1⁄2 of the annual sum", "½ of the annual sum"),
    ("the 10² square metres", "the 102 square metres", "the 10² square metres"),
    ("№ 15 of the register", "No 15 of the register", "№ 15 of the register"),
    ("Ⅳ chapter of the code", "IV chapter of the code", "Ⅳ chapter of the code"),
    ("ﬀ and ﬁ and ﬂ letters", "ff and fi and fl letters", "ﬀ and ﬁ and ﬂ letters"),
    ("ｆｕｌｌ ｗｉｄｔｈ ｔｅｘｔ", "full width text", "ｆｕｌｌ ｗｉｄｔｈ ｔｅｘｔ"),
    ("unable to carry over days", "able to carry over", None),
    ("able to carry overtime", "able to carry over", None),
    ("not able to carry over, sir", "able to carry over", "able to carry over"),
    ("section 15a applies here", "section 15", None),
    ("section 15 applies here", "section 15 applies", "section 15 applies"),
    ("(the clause) stands firm", "the clause) stands", "the clause) stands"),
    ("word word word word end", "word word word", "word word word"),
    ("a\ufeffbyte order mark here", "abyte order mark", "a\ufeffbyte order mark"),
    ("left\u202eright marks here", "leftright marks here", "left\u202eright marks here"),
    ("heart ❤️ of the matter", "heart ❤ of the matter", "heart ❤️ of the matter"),
    ("한국어 문장입니다 여기", "한국어 문장입니다", "한국어 문장입니다"),
    ("\u1112\u1161\u11ab국어 문장입니다", "한국어 문장입니다", "\u1112\u1161\u11ab국어 문장입니다"),
    ("条文は次のとおりとする。", "次のとおりとする", "次のとおりとする"),
    ("straße und strasse hier", "strasse und strasse", None),
    ("İstanbul office is open", "Istanbul office", None),
    ("naïve reading of it all", "naive reading of it", None),
    ("žluťoučký kůň úpěl tam", "žluťoučký kůň úpěl", "žluťoučký kůň úpěl"),
    ("5\u2009% of the invoice sum", "5 % of the invoice sum", "5\u2009% of the invoice sum"),
    ("5\u202f% of the invoice sum", "5 % of the invoice sum", "5\u202f% of the invoice sum"),
    ("…and the rest follows", "...and the rest follows", "…and the rest follows"),
    ("price: 5 € per item now", "price: 5 € per item", "price: 5 € per item"),
    ("the ’90s were calm years", "the '90s were calm", "the ’90s were calm"),
    ("rock ’n’ roll is here", "rock 'n' roll is", "rock ’n’ roll is"),
    ("A–Z index of all terms", "A-Z index of all terms", "A–Z index of all terms"),
    ("minus −5 degrees outside", "minus -5 degrees", "minus −5 degrees"),
    ("the end of the sentence.", "the end of the sentence.", "the end of the sentence."),
    ("the end of the sentence.", "the end of the sentence!", None),
    ("numbers 1,000 and 2,000", "numbers 1000 and 2000", None),
    ("Đorđe Đukić potpisuje", "Đorđe Đukić", "Đorđe Đukić"),
    ("Đorđe Đukić potpisuje", "Dorde Dukic", None),
    ("њена одлука је коначна", "njena odluka je", None),
]


@pytest.mark.requirement("O-41", "O-43")
@pytest.mark.parametrize(("source", "quote", "expected"), PAIRS)
def test_a_quote_is_found_by_what_it_says(source: str, quote: str, expected: str | None) -> None:
    span = locate(quote, source)
    assert (source[span[0] : span[1]] if span else None) == expected


def test_there_are_at_least_sixty_pairs() -> None:
    assert len(PAIRS) >= 60


def _reason(quote: str, passage: int = 1, passages: tuple[str, ...] = (LAW, PAY)) -> object:
    [statement] = ground([Claim("x", (ClaimedQuote(passage, quote),))], passages).statements
    if statement.rejected:
        return statement.rejected[0].reason
    return statement.citations[0].quote


@pytest.mark.requirement("O-42")
@pytest.mark.parametrize(
    ("quote", "passages", "expected"),
    [
        ("lost device", (LAW,), RejectReason.TOO_SHORT),
        ("a lost device w", (LAW,), RejectReason.ABSENT),
        ("a lost device within", (LAW,), "a lost device within"),
        ("            ", (LAW,), RejectReason.TOO_SHORT),
        ("", (LAW,), RejectReason.TOO_SHORT),
        ("Paid.", ("Paid.",), "Paid."),
        ("Paid", ("Paid.",), RejectReason.TOO_SHORT),
        ("", ("",), RejectReason.TOO_SHORT),
        ("| --- | --- | --- |", ("| a | b | c |\n| --- | --- | --- |",), RejectReason.TOO_SHORT),
        ("................", ("Leave ................ 7",), RejectReason.TOO_SHORT),
        ("................", ("................",), "................"),
    ],
)
def test_short_quotes_need_to_be_the_whole_passage(
    quote: str, passages: tuple[str, ...], expected: object
) -> None:
    assert _reason(quote, passages=passages) == expected


@pytest.mark.requirement("O-41")
@pytest.mark.parametrize(
    ("source", "quote", "found"),
    [
        ("It cost 2.5 million euros.", "5 million euros.", False),
        ("It cost 2.5 million euros.", "It cost 2", False),
        ("It cost 2.5 million euros.", "2.5 million euros.", True),
        ("Es kostet 1\u2019000\u2019000 Franken.", "000 Franken.", False),
        ("Es kostet 1,5 Millionen.", "5 Millionen.", False),
        ("They came in 2024. 5 of them left.", "5 of them left.", True),
        ("They came in 2024, 5 of them left.", "They came in 2024", True),
        ("See § 5.", "See § 5", True),
    ],
)
def test_a_number_is_quoted_whole(source: str, quote: str, found: bool) -> None:
    assert (locate(quote, source) is not None) is found


@pytest.mark.requirement("O-44")
@pytest.mark.parametrize(
    ("quote", "passage", "reason"),
    [
        ("Salaries are paid on the last working day", 1, RejectReason.MISATTRIBUTED),
        ("report a lost device … are never punished", 1, RejectReason.STITCHED),
        ("must report a lost device are never punished", 1, RejectReason.STITCHED),
        ("Employees must report a stolen device", 1, RejectReason.ABSENT),
        ("must report a lost device", 3, RejectReason.NO_PASSAGE),
        ("must report a lost device", 0, RejectReason.NO_PASSAGE),
    ],
)
def test_a_rejected_quote_says_why(quote: str, passage: int, reason: RejectReason) -> None:
    assert _reason(quote, passage) == reason


@pytest.mark.requirement("O-45")
def test_a_statement_without_a_verified_quote_is_unsupported() -> None:
    claims = [
        Claim("a", (ClaimedQuote(1, "must report a lost device"),)),
        Claim("b", (ClaimedQuote(1, "must burn a lost device"),)),
        Claim("c"),
    ]
    grounded = ground(claims, (LAW,))
    assert [s.supported for s in grounded.statements] == [True, False, False]
    assert len(grounded.rejected) == 1


@given(st.text(max_size=60), st.text(min_size=1, max_size=60), st.text(max_size=60))
def test_what_is_cited_is_the_sources_own_text(before: str, quote: str, after: str) -> None:
    source = before + " " + quote + " " + after
    span = locate(quote, source)
    if span is not None:
        start, end = span
        assert 0 <= start < end <= len(source)
        assert locate(source[start:end], source) is not None


WORDS = st.lists(st.sampled_from(["leave", "is", "taken", "in", "May", "a"]), max_size=40)


@given(quote=WORDS, sources=st.lists(WORDS, max_size=3))
def test_stitching_is_found_as_by_trying_every_cut(
    quote: list[str], sources: list[list[str]]
) -> None:
    texts = [" ".join(words) for words in sources]

    def stands(words: list[str]) -> bool:
        return any(locate(" ".join(words), text) is not None for text in texts)

    def long_enough(words: list[str]) -> bool:
        return len("".join(words)) >= MIN_QUOTE

    cuts = [(quote[:cut], quote[cut:]) for cut in range(1, len(quote))]
    stitched = any(
        long_enough(head) and long_enough(tail) and stands(head) and stands(tail)
        for head, tail in cuts
    )
    folded = [fold(text) for text in texts]
    assert ground_module._stitched(" ".join(quote), folded) is stitched


def test_a_long_quote_is_looked_up_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    found = ground_module.locate_folded

    def counted(quote: str, source: Folded) -> tuple[int, int] | None:
        looked.append(quote)
        return found(quote, source)

    monkeypatch.setattr(ground_module, "locate_folded", counted)
    words = "leave " * 100_000
    claim = Claim("", (ClaimedQuote(1, words),))
    [statement] = ground([claim], ["Employees take leave " * 20]).statements
    assert not statement.supported
    assert len(looked) < 30
