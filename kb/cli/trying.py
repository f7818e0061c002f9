"""`kb parse` and `kb scan`: try files without ingesting them; no database is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.coverage import coverage_lines
from kb.cli.errors import EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE
from kb.cli.options import json_option
from kb.cli.output import dump, paragraph, say, table
from kb_resources.errors import InputError
from kb_resources.model import BBox, ParsedDocument, Refusal

if TYPE_CHECKING:
    from kb_resources.language import DefaultDetector
    from kb_resources.scan import Scanner


@click.command("parse")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="Only the body.")
@json_option
def parse_(file: Path, markdown: bool, as_json: bool) -> int:
    """Show what parsing makes of FILE: body, blocks, hidden text, coverage, warnings."""
    parsed = _parsed(file)
    if isinstance(parsed, Refusal):
        if as_json:
            dump({"state": parsed.state.value, "reason": parsed.reason})
        else:
            say(f"{parsed.state.value}: {parsed.reason}")
        return EXIT_FAILURE
    if as_json:
        dump({"path": str(file), **asdict(parsed)})
    elif markdown:
        sys.stdout.write(parsed.body + "\n")
    else:
        _describe(parsed)
    return 0


def _parsed(file: Path) -> ParsedDocument | Refusal:
    from kb_resources.acquire import read_file
    from kb_resources.compose_parsing import open_parser, parse_destination
    from kb_resources.settings import load_settings

    settings = load_settings()
    got = read_file(file, max_bytes=settings.max_bytes)
    if isinstance(got, Refusal):
        return got
    to = parse_destination(settings)
    with open_parser(settings) as parse:
        # A file of no scope has nobody's word that it may leave.
        return parse(
            got.data,
            got.media_type,
            got.name,
            here=to is not None and not to.admits("confidential"),
        )


def _describe(parsed: ParsedDocument) -> None:
    say(f"{parsed.title}  ({parsed.media_type}, {parsed.parser})")
    say(f"{len(parsed.blocks)} blocks, {len(parsed.body.encode())} bytes of body")
    for name, text in coverage_lines(asdict(parsed.coverage)):
        say(f"{name:12} {text}")
    for name, text in sorted(parsed.metadata.items()):
        say(f"{name:12} {text}")
    table(
        ["kind", "page", "bytes", "box", "sure", "place", "text"],
        [
            [
                block.kind,
                block.page,
                f"{block.byte_start}–{block.byte_end}",
                _box(block.bbox),
                "" if block.confidence == 1 else f"{block.confidence:.2f}",
                block.locator or " › ".join(block.heading_path),
                block.text[:120].replace("\n", " "),
            ]
            for block in parsed.blocks
        ],
    )
    for hidden in parsed.hidden:
        say(f"hidden {hidden.kind} ({hidden.place}):")
        say(paragraph(hidden.text[:500], "  | "))
    for line in parsed.coverage.removed_lines:
        say(f"removed {line.reason}: {line.text[:100]}")


def _box(box: BBox | None) -> str:
    return f"{box.left:.0f},{box.top:.0f} {box.right:.0f},{box.bottom:.0f}" if box else ""


@click.command("scan")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--jsonl", type=click.Path(path_type=Path), help='Lines {"id","text"}; - is stdin.')
@json_option
def scan_(files: tuple[Path, ...], jsonl: Path | None, as_json: bool) -> int:
    """Tell language and verdict of FILES without ingesting them.

    With --jsonl, lines {"id","text"} become lines {"id","language","verdict","findings"}, and a
    line that is none becomes {"line","error"}. Exit code 4 if a file is not clean, 2 if a line of
    --jsonl could not be read; the others are answered all the same.
    """
    if bool(files) == bool(jsonl):
        raise InputError(
            "Name files, or one --jsonl file.", next_step="See kb scan --help for both."
        )
    from kb_resources.language import DefaultDetector
    from kb_resources.scan import Scanner, default_packs, shown_texts

    detector, scanner = DefaultDetector(), Scanner(default_packs())
    if jsonl:
        unread = 0
        for answer in _scan_lines(_lines(jsonl), detector, scanner):
            unread += "error" in answer
            sys.stdout.write(_one_line(answer))
        return EXIT_USAGE if unread else 0
    worst = 0
    for file in files:
        parsed = _parsed(file)
        if isinstance(parsed, Refusal):
            row: dict[str, Any] = {"state": parsed.state.value, "reason": parsed.reason}
            worst = EXIT_REFUSED
        else:
            label = detector.detect(parsed.body).label
            found = scanner.scan(
                parsed.raw_text,
                parsed.hidden,
                shown=shown_texts(parsed, [file.name], parsed.hidden),
                language=label,
            )
            row = {
                "language": label,
                "verdict": found.verdict.value,
                "findings": [asdict(finding) for finding in found.findings],
            }
            if found.verdict.value != "clean":
                worst = EXIT_REFUSED
        _tell(str(file), row, as_json)
    return worst


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    if str(path) == "-":
        yield from enumerate(sys.stdin.buffer, 1)
        return
    try:
        with path.open("rb") as file:
            yield from enumerate(file, 1)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.", next_step="Check the path."
        ) from error


def _scan_lines(
    lines: Iterable[tuple[int, bytes]], detector: DefaultDetector, scanner: Scanner
) -> Iterator[dict[str, Any]]:
    """One answer per line that is not blank: a verdict, or what is wrong with the line."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            given = json.loads(line.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
            text, name = given["text"], given["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            yield {"line": number, "error": 'not {"id", "text"}'}
            continue
        if not isinstance(text, str):
            yield {"line": number, "error": "text is not a string"}
            continue
        label = detector.label(text)
        found = scanner.scan(text, (), language=label)
        yield {
            "id": name,
            "language": label,
            "verdict": found.verdict.value,
            "findings": [asdict(finding) for finding in found.findings],
        }


def _one_line(answer: dict[str, Any]) -> str:
    """JSON, with escapes for all but ASCII where UTF-8 has no form for a lone surrogate."""
    line = json.dumps(answer, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(answer)
    return line + "\n"


def _tell(name: str, row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        dump({"path": name, **row}, indent=None)
        return
    if "state" in row:
        say(f"{name}: {row['state']} – {row['reason']}")
        return
    say(f"{name}: {row['verdict']} ({row['language']})")
    for finding in row["findings"]:
        say(f"  {finding['severity']:6} {finding['rule_id']}: {finding['explanation']}")
        say(paragraph(finding["excerpt"], "         | "))
