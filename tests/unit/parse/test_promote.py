"""Headings of laws and papers, promoted from paragraphs in eight languages."""

from __future__ import annotations

import pytest

from kb_resources.parse import DraftBlock
from kb_resources.parse.promote import is_division, is_provision, opens_provision, promote

# One article line and one chapter line per language, and how a sentence about them reads.
LANGUAGES = {
    "en": ("Article {}", "CHAPTER {}", "Article 5 shall apply from 25 May 2018."),
    "de": ("Artikel {}", "Kapitel {}", "Artikel 5 gilt ab dem 25. Mai 2018."),
    "de-law": ("§ {}", "Abschnitt {}", "§ 5 gilt auch für Vereine."),
    "bg": ("Член {}", "Глава {}", "Член 5 се прилага от 25 май 2018 г."),
    "ru": ("Статья {}", "Глава {}", "Статья 5 применяется с 25 мая 2018 года."),
    "sr": ("Члан {}.", "Глава {}", "Члан 5. примењује се од 25. маја 2018."),
    "sr-latin": ("Član {}.", "Glava {}", "Član 5. primenjuje se od 25. maja 2018."),
    "hr": ("Članak {}.", "Poglavlje {}", "Članak 5. primjenjuje se od 25. svibnja 2018."),
    "sl": ("{}. člen", "{}. poglavje", "Člen 5 se uporablja od 25. maja 2018."),
    "mk": ("Член {}", "Глава {}", "Член 5 се применува од 25 мај 2018 година."),
}


def paragraph(text: str) -> DraftBlock:
    return DraftBlock("paragraph", text)


@pytest.mark.requirement("P-10")
@pytest.mark.parametrize("language", LANGUAGES)
def test_ninety_nine_articles_become_headings(language: str) -> None:
    article, chapter, sentence = LANGUAGES[language]
    drafts = [paragraph("A regulation about things")]
    for n in range(1, 100):
        if n % 10 == 1:
            drafts.append(paragraph(chapter.format(n // 10 + 1)))
        drafts += [paragraph(article.format(n)), paragraph(sentence)]
    promoted = promote(drafts)
    headings = [draft for draft in promoted if draft.kind == "heading"]
    assert len(headings) == 99 + 10
    assert [d.text for d in promoted] == [d.text for d in drafts]
    chapters = [d for d in headings if d.text == chapter.format(3)]
    articles = [d for d in headings if d.text == article.format(25)]
    assert chapters[0].level is not None
    assert articles[0].level is not None
    assert chapters[0].level < articles[0].level
    assert is_provision(article.format(25))
    assert not is_provision(chapter.format(3))


@pytest.mark.requirement("P-10")
def test_an_articles_caption_is_a_heading_below_it() -> None:
    drafts = []
    for n in range(1, 5):
        drafts += [paragraph(f"Article {n}"), paragraph("Subject matter and objectives")]
        drafts.append(paragraph("This Regulation lays down rules."))
    levels = [draft.level for draft in promote(drafts)]
    assert levels == [1, 2, None] * 4


def test_an_article_with_its_caption_on_the_same_line() -> None:
    lines = [f"§ {n} Ort der Verarbeitung" for n in range(1, 5)]
    assert all(draft.kind == "heading" for draft in promote([paragraph(line) for line in lines]))


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        *((article.format(7), True) for article, _, _ in LANGUAGES.values()),
        *((chapter.format(7), True) for _, chapter, _ in LANGUAGES.values()),
        *((sentence, False) for _, _, sentence in LANGUAGES.values()),
        ("10. člen", True),
        ("10. člen ostane v veljavi", False),
        ("§ 4 Ort der Verarbeitung", False),
        ("Article 5 shall apply", False),
    ],
)
def test_a_division_alone_on_its_line(line: str, alone: bool) -> None:
    assert is_division(line) is alone


@pytest.mark.parametrize(
    ("line", "opens"),
    [
        ("§ 25 Satzung des Vereins", True),
        ("§ 85 Verarbeitung personenbezogener Daten im Rahmen von nicht in die Anwendungs-", True),
        ("Члан 5. Начела обраде", True),
        ("§ 16 Absatz 4 gilt entsprechend.", False),
        ("§ 3 Nr. 2 und § 4 gelten für Vereine.", False),
        ("Član 5. stav 2. primenjuje se.", False),
        ("Artikel 5 gilt ab dem 25. Mai.", False),
    ],
)
def test_a_provision_is_opened_by_a_caption_and_not_by_a_reference(line: str, opens: bool) -> None:
    assert opens_provision(line) is opens


def test_a_number_before_the_name_is_no_list_item() -> None:
    drafts = []
    for n in range(1, 5):
        drafts += [DraftBlock("list_item", "člen", level=1, marker=f"{n}.")]
        drafts += [paragraph("Ta uredba določa pravila o varstvu podatkov."), paragraph("Velja.")]
    drafts.append(DraftBlock("list_item", "člen posadke", level=1, marker="5."))
    promoted = promote(drafts)
    assert [d.text for d in promoted if d.kind == "heading"] == [f"{n}. člen" for n in range(1, 5)]
    assert promoted[-1] == drafts[-1]


def test_a_sentence_that_goes_on_in_small_letters_is_no_caption() -> None:
    drafts = []
    for n in range(1, 4):
        drafts += [paragraph(f"Article {n}"), paragraph("Everyone has the right to freedom of")]
        drafts.append(paragraph("opinion and expression."))
    assert [d.kind for d in promote(drafts)] == ["heading", "paragraph", "paragraph"] * 3


@pytest.mark.requirement("P-10")
def test_papers_have_their_sections() -> None:
    lines = ["Abstract", "We show it.", "1 Introduction", "Words.", "2. Methods", "Words."]
    lines += ["References", "[1] A. Author."]
    kinds = [draft.kind for draft in promote([paragraph(line) for line in lines])]
    assert kinds == ["heading", "paragraph"] * 4


def test_code_and_tables_and_marked_documents_are_left_alone() -> None:
    code = [DraftBlock("code", f"Article {n}") for n in range(9)]
    assert promote(code) == tuple(code)
    marked = [DraftBlock("heading", f"Article {n}", level=2) for n in range(9)]
    marked += [paragraph(f"Article {n}") for n in range(9)]
    assert promote(marked) == tuple(marked)


@pytest.mark.parametrize(
    "lines",
    [
        ["Article 5", "text", "text"],
        ["We refer to Article 5 here.", "Article 6 applies, too.", "Article 7 does not."],
        ["Part of the deal", "Section heads met", "Title deeds"],
        ["Article 5, paragraph 2, as amended;"] * 5,
    ],
)
def test_few_lines_and_prose_are_no_law(lines: list[str]) -> None:
    drafts = [paragraph(line) for line in lines]
    assert promote(drafts) == tuple(drafts)


RUN_IN = {
    "bg": ("Чл. {}.", "(1) Всички хора са равни пред закона."),
    "bg-short": ("Чл. {}.", "Всеки има право на живот."),
    "de": ("§ {}", "(1) Die Frist beginnt mit dem Tag der Zustellung."),
    "de-art": ("Art. {}.", "Die Würde des Menschen ist unantastbar."),
    "ru": ("Ст. {}.", "Каждый имеет право на труд и на отдых."),
    "ru-full": ("Статья {}.", "Каждый имеет право на жилище и не может быть его лишён."),
    "hr": ("Čl. {}.", "Svatko ima pravo na odmor i slobodno vrijeme."),
    "mk": ("Чл. {}.", "Секој има право на образование, кое е бесплатно."),
    "sr": ("Чл. {}.", "Свако има право на рад и на слободан избор запослења."),
    "en": ("Art. {}.", "Everyone has the right to rest and leisure."),
}


@pytest.mark.requirement("P-10")
@pytest.mark.parametrize("language", RUN_IN)
def test_an_article_that_opens_its_paragraph_becomes_its_heading(language: str) -> None:
    head, said = RUN_IN[language]
    promoted = promote([paragraph(f"{head.format(n)} {said}") for n in range(1, 9)])
    assert [(d.kind, d.text) for d in promoted] == [
        block for n in range(1, 9) for block in (("heading", head.format(n)), ("paragraph", said))
    ]
    assert is_provision(head.format(3))


@pytest.mark.parametrize("language", RUN_IN)
def test_references_to_articles_stay_where_they_are(language: str) -> None:
    head, said = RUN_IN[language]
    # Numbers that jump about are a discussion of a law, not the law.
    drafts = [paragraph(f"{head.format(n)} {said}") for n in (40, 3, 27, 3, 9, 5)]
    drafts += [paragraph(f"See {head.format(n)} {said}") for n in range(1, 9)]
    assert list(promote(drafts)) == drafts


@pytest.mark.requirement("P-10")
@pytest.mark.parametrize("line", ["§ {} Geltung", "Статья {}", "Чл. {}", "Art. {}", "Člen {}",
                                  "Članak {}", "Ст. {} Предмет", "Čl. {}"])  # fmt: skip
def test_article_lines_of_any_spelling_are_headings(line: str) -> None:
    drafts = []
    for n in range(1, 6):
        drafts += [paragraph(line.format(n)), paragraph("Text of the article, as long as it is.")]
    assert [d.kind for d in promote(drafts)] == ["heading", "paragraph"] * 5
