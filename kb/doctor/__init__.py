"""What is wrong with an installation, and how to mend it.

Belongs here: the order of the examinations. What does not: the examinations (`local`, `servers`),
printing (`kb.cli.doctor`). Nothing is changed, nothing is started, nothing leaves the machine but
connections to the configured databases. Modelled on what operators got wrong, not on what could be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from kb.doctor.finding import Finding, Level, fine, problem, warning
from kb_resources.errors import KbError
from kb_resources.settings import Settings

__all__ = ["Finding", "Level", "examine", "fine", "problem", "warning"]

Examination = Callable[[Settings], Iterator[Finding]]


def examine(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Examine an installation, cheap things first.

    Args:
        settings: its settings.
        environment: the process's variables.

    Yields:
        Findings as they are made; an examination that cannot be done is a finding too.
    """
    from kb.doctor import local, servers

    yield from local.variables(environment)
    for name, look in (
        ("home", local.home),
        ("blobs", local.blobs),
        ("dropzone", partial(local.dropzone, environment=environment)),
        ("memory", local.memory),
        ("model", local.model),
        ("text recognition", local.text_recognition),
        ("secret", local.secret),
        ("sign-in", local.sign_in),
        ("endpoints", local.endpoints),
        ("database", servers.database),
        ("Dagster", servers.dagster),
    ):
        yield from _looked(name, look, settings)


def _looked(name: str, look: Examination, settings: Settings) -> Iterator[Finding]:
    try:
        yield from look(settings)
    except KbError as error:
        yield problem(name, str(error), error.next_step)
    except OSError as error:
        yield problem(name, f"It cannot be looked at: {error}.", "See to what the error names.")
