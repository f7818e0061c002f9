"""`kb eval`: how well search finds what labelled questions ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.options import audience_option, json_option, scope_option
from kb.cli.output import dump, say, table
from kb_resources.errors import InputError
from kb_resources.model import validate_audience, validate_scope

if TYPE_CHECKING:
    from kb_resources.stages.evaluation import Ran
    from kb_resources.stages.line import Line

_MEASURES = ("ndcg_10", "r_1", "r_5", "r_100", "mrr")
_EVERY = 50


@click.group("eval")
def eval_() -> None:
    """Measure search by labelled questions, and compare runs."""


@contextmanager
def _line() -> Iterator[Line]:
    from kb.ingesting import local_actor
    from kb_resources.compose import open_line
    from kb_resources.settings import load_settings

    with open_line(load_settings(), actor=local_actor()) as line:
        yield line


@eval_.command()
@scope_option
@click.option("--questions", type=click.Path(path_type=Path), help="JSON lines, one question each.")
@click.option(
    "--beir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder with corpus.jsonl, queries.jsonl and qrels.tsv, loaded for this run alone.",
)
@click.option("--half", type=click.Choice(["dev", "test"]), help="Only this half of the questions.")
@click.option(
    "--gain",
    type=click.Choice(["binary", "graded"]),
    default="binary",
    show_default=True,
    help="What a label is worth: 1, or 2^grade - 1.",
)
@click.option("--min-grade", default=1, show_default=True, help="Labels below it do not count.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "text", "vector"]),
    default="hybrid",
    show_default=True,
    help="Words and meaning, words only, or meaning only.",
)
@click.option(
    "--words",
    type=click.Choice(["any", "all", "all_first"]),
    default="any",
    show_default=True,
    help="Passages with any of the words, with all of them, or those first.",
)
@audience_option("Ask as a reader who holds this name; repeat for more.  [default: see everything]")
@click.option("--allow-stale", is_flag=True, help="Ask though labels name what is not there.")
@json_option
def run(
    scope: str | None,
    questions: Path | None,
    beir: Path | None,
    half: Any,
    gain: Any,
    min_grade: int,
    mode: str,
    words: str,
    audiences: tuple[str, ...],
    allow_stale: bool,
    as_json: bool,
) -> None:
    """Ask labelled questions, print figures with 95 % intervals, keep the run.

    Either --scope and --questions, or --beir.
    """
    from kb.ingesting import local_actor
    from kb_resources.evaluate import read_questions
    from kb_resources.stages import evaluation

    if (beir is None) == (questions is None) or (beir is not None and scope is not None):
        raise InputError(
            "Nothing says what is to be asked, or too much does.",
            next_step="Give --scope and --questions, or --beir alone.",
        )
    wanted = evaluation.Wanted(
        name=(questions or beir or Path()).resolve().name,
        actor=local_actor(),
        half=half,
        gain=gain,
        mode=mode,
        words=words,
        audiences=tuple(map(validate_audience, audiences)) or None,
    )
    if beir is not None:
        with _line() as line:
            ran = evaluation.run_set(
                line, beir, wanted, min_grade=min_grade, seen=_progress(as_json)
            )
    else:
        asked = read_questions(questions or Path())
        name = validate_scope(scope)
        with _line() as line:
            ran = evaluation.run_scope(
                line.capabilities,
                name,
                asked,
                wanted,
                allow_stale=allow_stale,
                seen=_progress(as_json),
            )
    if as_json:
        dump(evaluation.to_json(ran))
    else:
        _print(ran)


@eval_.command()
@click.argument("old")
@click.argument("new")
@json_option
def compare(old: str, new: str, as_json: bool) -> int:
    """What changed from run OLD to run NEW, by a paired bootstrap over their questions.

    Exit code 1 where NEW is worse by the rule that guards defaults.
    """
    from kb_resources import evaluate
    from kb_resources.evaluate import keeping
    from kb_resources.store import evaluations

    with _line() as line, line.capabilities.database.transaction("pipeline") as conn:
        runs = [keeping.kept(evaluations.get(conn, run_id)) for run_id in (old, new)]
        before, after = (keeping.judged(conn, one.run_id) for one in runs)
    found = evaluate.compare(before, after)
    verdict = evaluate.not_worse(before, after)
    if as_json:
        dump(
            {
                "old": runs[0].to_json(),
                "new": runs[1].to_json(),
                **found.to_json(),
                "passed": verdict.passed,
                "reason": verdict.reason,
            }
        )
        return 0 if verdict.passed else 1
    if runs[0].questions_digest != runs[1].questions_digest:
        say("The runs were asked different questions; only those in both are compared.")
    say(f"{found.questions} questions in both; new minus old:")
    table(
        ["measure", "old", "new", "difference", "95 % interval", "p"],
        [
            [name, *_means(runs, name), f"{d.mean:+.4f}", f"{d.low:+.4f} to {d.high:+.4f}", d.p]
            for name, d in found.differences.items()
        ],
    )
    say(f"Worse: {', '.join(found.worse[:10]) or 'none'}")
    say(f"Better: {', '.join(found.better[:10]) or 'none'}")
    say(verdict.reason)
    return 0 if verdict.passed else 1


@eval_.command("list")
@scope_option
@json_option
def list_(scope: str | None, as_json: bool) -> None:
    """Kept runs, newest first: of a scope, or without --scope of sets loaded with --beir."""
    from kb_resources.evaluate import keeping
    from kb_resources.store import evaluations

    name = None if scope is None else validate_scope(scope)
    with _line() as line, line.capabilities.database.transaction("pipeline") as conn:
        runs = [keeping.kept(row) for row in evaluations.recent(conn, name)]
    if as_json:
        dump([one.to_json() for one in runs])
    elif not runs:
        say("No run is kept.")
    else:
        table(
            ["run", "at", "questions", "half", "mode", "nDCG@10", "accepted"],
            [
                [
                    one.run_id,
                    f"{one.at:%Y-%m-%d %H:%M}",
                    one.name,
                    one.half or "both",
                    one.config.get("mode"),
                    "" if one.ndcg_10 is None else f"{one.ndcg_10:.3f}",
                    one.accepted_by or "",
                ]
                for one in runs
            ],
        )


@eval_.command()
@click.argument("run_id")
@json_option
def accept(run_id: str, as_json: bool) -> None:
    """Take a run as what later runs of the same questions are held against."""
    from kb.ingesting import local_actor
    from kb_resources.evaluate import keeping
    from kb_resources.store import evaluations

    with _line() as line, line.capabilities.database.transaction("pipeline") as conn:
        found = keeping.kept(evaluations.get(conn, run_id))
        if found.half is not None:
            raise InputError(
                f"The run {found.run_id} asked the {found.half} half only.",
                next_step="Accept a run over both halves.",
            )
        evaluations.accept(conn, found.run_id, local_actor())
        found = keeping.kept(evaluations.get(conn, found.run_id))
    if as_json:
        dump(found.to_json())
    else:
        say(f"{found.run_id} is what runs of {found.name} are held against now.")


@eval_.command()
@scope_option
@click.option(
    "--days",
    type=click.FloatRange(0, 3650),
    default=1.0,
    show_default=True,
    help="What came within so many days is new.",
)
@json_option
def crowding(scope: str | None, days: float, as_json: bool) -> int:
    """Ask what could be answered before, and look whether new passages crowd the answers.

    Planted documents do that. Exit code 1 where something stands out.
    """
    from datetime import UTC, datetime, timedelta

    from kb_resources.settings import load_settings
    from kb_resources.stages.crowding import measure

    with _line() as line:
        found = measure(
            line.capabilities,
            validate_scope(scope),
            since=datetime.now(UTC) - timedelta(days=days),
            folder=load_settings().home / "evaluation",
        )
    if as_json:
        dump(found.to_json())
        return int(bool(found.alarms))
    say(f"{found.questions} questions, {found.new_passages} of {found.passages} passages are new.")
    for alarm in found.alarms:
        what = (
            f"{alarm.count} of the first {alarm.of} answers to {alarm.question} are new"
            if alarm.kind == "crowd"
            else f"a new passage is among the answers to {alarm.count} of {alarm.of} questions"
        )
        say(f"{what}: {', '.join(alarm.documents)}")
        say(f"  from {', '.join(alarm.origins)}; kb documents remove --source takes them out")
    return int(bool(found.alarms))


def _progress(quiet: bool) -> Callable[[str, int], None] | None:
    if quiet or not sys.stderr.isatty():
        return None

    def tell(what: str, count: int) -> None:
        if what == "loaded" or count % _EVERY == 0:
            sys.stderr.write(f"\r{count:,} {what} ")

    return tell


def _print(ran: Ran) -> None:
    if ran.loaded is not None:
        say(f"{ran.loaded.indexed:,} of {ran.loaded.documents:,} documents were indexed.")
        for name, reason in ran.loaded.held[:5]:
            say(f"  {name}: {reason}")
    made = ran.made
    half = f"{made.half} half" if made.half else "both halves"
    say(
        f"Run {ran.kept.run_id}: {len(made.judged)} questions, {half}, {made.gain} gain, "
        f"pool of 100, {ran.kept.duration_s:.1f} s"
    )
    table(
        ["group", "questions", "nDCG@10", "R@1", "R@5", "R@100", "MRR", "unanswerable"],
        [_row(name, figure.to_json()) for name, figure in made.figures.items()],
    )
    spreads = made.overall.to_json()["intervals"]
    if spreads:
        named = zip(("nDCG@10", "R@1", "R@5", "R@100", "MRR"), _MEASURES, strict=True)
        parts = [f"{name} {spreads[key][0]:.3f} to {spreads[key][1]:.3f}" for name, key in named]
        say(f"95 % intervals over all: {', '.join(parts)}")
    if (lost := made.overall.means.get("lost")) is not None:
        say(f"Right first passages lost to 'nothing relevant': {lost:.1%}")


def _row(name: str, figure: Mapping[str, Any]) -> list[Any]:
    means = [figure["means"].get(measure) for measure in _MEASURES]
    nothing = figure["nothing"]
    last = "" if nothing is None else f"{figure['unanswerable']}, {nothing:.0%} with nothing"
    return [
        name,
        figure["questions"],
        *("" if mean is None else f"{mean:.3f}" for mean in means),
        last,
    ]


def _means(runs: Sequence[Any], name: str) -> list[str]:
    found = [one.figures.get("all", {}).get("means", {}).get(name) for one in runs]
    return ["" if value is None else f"{value:.4f}" for value in found]
