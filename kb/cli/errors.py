"""Typed errors to exit codes and messages.

Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 refused by a gate, 5 unavailable.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from kb_resources.errors import (
    InputError,
    KbError,
    NotFound,
    PolicyError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_REFUSED = 4
EXIT_UNAVAILABLE = 5
EXIT_INTERRUPTED = 130

_CODES: tuple[tuple[type[KbError], int], ...] = (
    (InputError, EXIT_USAGE),
    (NotFound, EXIT_NOT_FOUND),
    (PolicyError, EXIT_REFUSED),
    (UnavailableError, EXIT_UNAVAILABLE),
)


def exit_code(error: KbError) -> int:
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), EXIT_FAILURE)


def guard(command: click.Command, argv: Sequence[str]) -> int:
    """Run a command; every expected error becomes one line on stderr and an exit code."""
    try:
        result = command.main(list(argv), prog_name="kb", standalone_mode=False)
        sys.stdout.flush()  # a reader that went away is heard of here, not while Python ends
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("Stopped. What was finished is kept; run it again to go on.\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KbError as error:
        _tell(error, "--json" in argv)
        return exit_code(error)
    return result if isinstance(result, int) else 0


def _tell(error: KbError, as_json: bool) -> None:
    if as_json:
        problem = {
            "error": {
                "code": error.code,
                "message": error.message,
                "next_step": error.next_step,
                "retryable": error.retryable,
            }
        }
        sys.stderr.write(json.dumps(problem, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"kb: {error}\n")
