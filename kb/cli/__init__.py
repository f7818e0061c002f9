"""The command `kb`.

Belongs here: the entry point, with what Ctrl-C does from the first import to the last exit.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    A class of its own, because CPython remembers a plain `KeyboardInterrupt` that leaves a text
    run by `exec`, as `dataclasses` and `namedtuple` do, and then ends the process by the signal,
    whatever exit code the program gives (`run_eval_code_obj` in Python/pythonrun.c).
    """


def main(argv: list[str] | None = None) -> Any:
    """Run the command line; never returns.

    The exit code is 130 when Ctrl-C came before the end, else that of the finished command:
    while the interpreter takes itself down, Ctrl-C changes nothing any more.
    """
    signal.signal(signal.SIGINT, _interrupt)
    sys.exit(_run(sys.argv[1:] if argv is None else argv))


def _run(argv: list[str]) -> int:
    try:
        from kb.cli.errors import guard
        from kb.cli.group import cli

        code = guard(cli, argv)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # where `guard` could not hear it
        code = 130
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise Interrupted
