"""What counts as the document's own words, and what a model is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_resources.errors import UnavailableError
from kb_resources.generate import Converter, Model, Request, Said, faithfulness, unfenced
from kb_resources.generate.ask import text_request
from kb_resources.model import ParsedDocument

SOURCE = """# 4 Processing

Personal data are processed in Ljubljana only, and never by a subcontractor without a contract.

The controller is told within 72 hours of a breach, and of what was done about it since then.

| Place | Days |
| --- | --- |
| Ljubljana | 30 |

Signed on 1 March 2024 by both parties, who keep one copy each for at least ten years."""


def changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)


@pytest.mark.requirement("P-08")
@pytest.mark.parametrize(
    "conversion",
    [
        SOURCE,
        changed("# 4", "## 4"),
        changed(
            "| Place | Days |\n| --- | --- |\n| Ljubljana | 30 |", "- Place Days\n- Ljubljana 30"
        ),
        changed("within 72 hours", "within **72 hours**"),
        "\n\n".join(reversed(SOURCE.split("\n\n"))),
    ],
    ids=["same", "other marks", "table as list", "emphasis", "other order"],
)
def test_layout_is_free(conversion: str) -> None:
    assert faithfulness(SOURCE, SOURCE, conversion).holds


@pytest.mark.requirement("P-08")
@pytest.mark.parametrize(
    "conversion",
    [
        changed("never by", "by"),
        changed("72", "27"),
        changed("| 30 |", "| 300 |"),
        changed("is told", "must be told"),
        changed("controller", "processor"),
        changed("both parties", "parties both"),
        changed("only, and never", "and"),
        changed(
            "The controller is told within 72 hours of a breach, and of what was done", "In 72"
        ),
        changed(
            "Signed on 1 March 2024 by both parties, who keep one copy each for at least ten "
            "years.",
            "",
        ),
        SOURCE + "\n\nThe contract ends in March.",
        SOURCE + "\n\n" + SOURCE,
        "Personal data stay in Ljubljana; breaches are told within 72 hours.",
        "Osebni podatki se obdelujejo samo v Ljubljani.",
        "I'm sorry, I can't help with that.",
    ],
    ids=lambda text: text[-25:].replace("\n", " "),
)
def test_words_are_not(conversion: str) -> None:
    assert not faithfulness(SOURCE, SOURCE, conversion).holds


@pytest.mark.requirement("P-08")
@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("a loss of -5 % in 2024", "a loss of 5 % in 2024"),
        ("a fee of 30 € a month", "a fee of 30 $ a month"),
        ("dose ≤ 5 mg", "dose ≥ 5 mg"),
        ("interest of 4 %", "interest of 4"),
    ],
)
def test_signs_that_change_an_amount_are_words(true: str, false: str) -> None:
    source = f"{SOURCE}\n\nThe parties agreed on {true}."
    assert faithfulness(source, source, source.replace("-5", "\u22125")).holds
    assert not faithfulness(source, source, source.replace(true, false)).holds


def test_running_heads_may_be_there_or_not() -> None:
    raw = SOURCE.replace("Signed", "Contract 12\n\nSigned")
    assert faithfulness(SOURCE, raw, raw).holds
    assert faithfulness(SOURCE, raw, SOURCE).holds


@pytest.mark.data
@pytest.mark.requirement("P-08")
def test_no_change_of_one_word_in_a_real_document_passes(test_data: Path) -> None:
    """Every fortieth word of a report is left out, replaced or denied, one at a time."""
    source = (test_data / "data" / "parsing" / "multi_page.md").read_text()
    assert faithfulness(source, source, source).holds
    words = source.split(" ")
    passed = []
    for at in range(20, len(words), 40):
        if not words[at].strip(".,;:()").isalpha():
            continue
        for made in ([], ["otherwise"], ["not", words[at]]):
            text = " ".join([*words[:at], *made, *words[at + 1 :]])
            if faithfulness(source, source, text).holds:
                passed.append((words[at - 2 : at + 3], made))
    assert passed == []


def model(*said: Said | Exception, reply_tokens: int = 1000) -> Model:
    left = list(said)

    def complete(request: Request, most: int) -> Said:
        told = left.pop(0)
        if isinstance(told, Exception):
            raise told
        return told

    return Model("tiny", complete, reply_tokens)


@pytest.mark.requirement("P-08")
def test_only_a_whole_reply_counts() -> None:
    request = text_request("system", "text")
    said = [
        (Said("Body", "stop"), "answered"),
        (Said("Body"), "answered"),
        (Said("Bo", "length"), "cut_off"),
        (Said("", "content_filter"), "refused"),
        (Said("Body", "stop", refusal="No."), "refused"),
        (Said(" \n", "stop"), "empty"),
        (UnavailableError("away"), "endpoint_unavailable"),
    ]
    for told, outcome in said:
        answer = model(told).ask(request)
        assert answer.outcome == outcome
        assert (answer.text is None) == (outcome != "answered")
        assert answer.asked_again == isinstance(told, Exception)


def test_a_text_cannot_close_its_fence() -> None:
    nonces = iter(["a", "b"])
    request = text_request("between {fence}", "text <<a>> more", nonce=lambda: next(nonces))
    assert request.system == "between <<b>>"
    assert request.text == "<<b>>\ntext <<a>> more\n<<b>>"


@pytest.mark.requirement("P-08")
def test_a_pdf_goes_as_a_file_up_to_20_mib() -> None:
    document = ParsedDocument("T", "application/pdf", "Body.", ())
    limit = 20 * 2**20
    for size, files, sent in ((limit, True, True), (limit + 1, True, False), (9, False, False)):
        request = Converter(model(), files=files).request(document, bytes(size))
        assert isinstance(request, Request)
        assert (request.file is not None) is sent
        assert ("Body." in request.text) is not sent


def test_a_fence_around_the_whole_reply_is_taken_off() -> None:
    assert unfenced("```markdown\n# A\n\nB\n```\n") == "# A\n\nB"
    assert unfenced("# A\n\n```\ncode\n```") == "# A\n\n```\ncode\n```"
