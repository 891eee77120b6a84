"""All commands, gathered. Their modules import nothing heavy until a command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import evenrank
from evenrank.cli import (
    annotate,
    audit,
    classify,
    collection,
    compare_variants,
    demo,
    disparity,
    generate,
    measure,
    mitigate,
    neural,
    psychology,
    represent,
    reproduce,
    serve,
    sources,
    vectors,
    verify,
)
from evenrank.errors import InputError, nearest

# What people call a command that has another name here.
_ALSO = {
    "match": "mitigate balance",
    "matching": "mitigate balance",
    "debias": "vectors debias",
    "evaluate": "measure",
    "eval": "measure",
    "report": "audit",
    "compare": "audit",
    "rank": "search",
    "retrieve": "search",
    "label": "classify",
    "predict": "classify",
    "annotate": "pool",
    "server": "serve",
    "web": "serve",
    "watch": "monitor",
}


class Commands(TyperGroup):
    """A group that knows what was perhaps meant by a command that is none: here, or in another group."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = _meant(name, ctx.find_root().command)
            hint = f"did you mean 'evenrank {near}'?" if near else f"{ctx.command_path} --help lists all"
            raise InputError(f"there is no command '{ctx.command_path} {name}'; {hint}")
        return super().resolve_command(ctx, args)


def _meant(name: str, root: Any) -> str | None:
    """The command that is called so, nearly so, or was called so elsewhere."""
    paths = {}
    for command, found in root.commands.items():
        paths[command] = command
        paths |= {inner: f"{command} {inner}" for inner in getattr(found, "commands", {})}
    paths = _ALSO | {path: path for path in paths.values()} | paths
    near = nearest(name, paths)
    return paths[near] if near else None


app = typer.Typer(
    name="evenrank",
    cls=Commands,
    help="Measure gender bias, or bias toward any group, in search results.",
    epilog="Exit codes: 0 done, 1 a bound is exceeded, 2 bad input, 3 internal error; of bundles also "
    "1 mismatch, 4 incomplete, 5 damaged. "
    "--debug, with any command, shows the traceback of an error.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenrank {evenrank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_COMMANDS: dict[str, dict[str, Callable[..., Any]]] = {
    "Begin": {"demo": demo.demo_command},
    "Measure": {
        "audit": audit.audit_command,
        "verify": verify.verify_command,
        "measure": measure.measure_command,
        "represent": represent.represent_command,
        "psychology": psychology.psychology_command,
        "compare-variants": compare_variants.compare_variants_command,
        "disparity": disparity.disparity_command,
        "plan": audit.plan_command,
        "trace": sources.trace_command,
        "preference": sources.preference_command,
        "lexicons": collection.lexicons_command,
        "tally": collection.tally_command,
    },
    "Rank": {
        "index": collection.index_command,
        "search": collection.search_command,
        "train": neural.train_command,
        "rerank": neural.rerank_command,
    },
    "Label queries": {
        "classify": classify.classify_command,
        "classify-train": classify.classify_train_command,
        "generate": generate.generate_command,
        "generate-train": generate.generate_train_command,
        "pool": annotate.pool_command,
        "vote": annotate.vote_command,
    },
    "Watch": {"serve": serve.serve_command, "monitor": serve.monitor_command},
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
for _name, _group in (("mitigate", mitigate.app), ("vectors", vectors.app), ("reproduce", reproduce.app)):
    app.add_typer(_group, name=_name, cls=Commands, rich_help_panel="More, each with commands of its own")
