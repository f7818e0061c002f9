"""The group `kb`: each command lives in its own module, imported only when it is called.

That keeps `kb search` fast to start (click documentation, "Lazily Loading Subcommands").
"""

from __future__ import annotations

import importlib

import click

_COMMANDS = {
    "init": "kb.cli.admin:init",
    "ingest": "kb.cli.ingest:ingest",
    "watch": "kb.cli.watch:watch",
    "search": "kb.cli.search:search",
    "ask": "kb.cli.ask:ask",
    "cite": "kb.cli.cite:cite",
    "documents": "kb.cli.documents:documents",
    "scopes": "kb.cli.scopes:scopes",
    "passages": "kb.cli.passages:passages",
    "explain": "kb.cli.explain:explain",
    "remove": "kb.cli.lifecycle:remove",
    "restore-document": "kb.cli.lifecycle:restore",
    "lifecycle": "kb.cli.lifecycle:log",
    "backup": "kb.cli.backup:backup",
    "restore": "kb.cli.backup:restore",
    "export": "kb.cli.export:export",
    "erase": "kb.cli.erase:erase",
    "erasures": "kb.cli.erase:erasures",
    "forget-actor": "kb.cli.erase:forget_actor",
    "review": "kb.cli.review:review",
    "rescan": "kb.cli.review:rescan",
    "parse": "kb.cli.trying:parse_",
    "scan": "kb.cli.trying:scan_",
    "serve": "kb.cli.serve:serve",
    "keys": "kb.cli.keys:keys",
    "members": "kb.cli.keys:members",
    "mcp": "kb.cli.mcp:mcp",
    "audit": "kb.cli.audit:audit",
    "replay": "kb.cli.audit:replay_",
    "eval": "kb.cli.eval:eval_",
    "models": "kb.cli.models:models",
    "reembed": "kb.cli.reembed:reembed",
    "db": "kb.cli.db:db",
    "doctor": "kb.cli.doctor:doctor",
    "demo": "kb.cli.demo:demo",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order a newcomer needs them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return one command."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dagster-kb", prog_name="kb")
def cli() -> None:
    """A knowledge base that people and models can cite.

    Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 refused by a gate, 5 unavailable.
    """
