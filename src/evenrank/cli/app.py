"""All commands, gathered. A command's module is imported when the command is looked up, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

import evenrank
from evenrank.errors import InputError, closest_match

# By panel of the help, each command and the module of `evenrank.cli` that has it: `pool` is `pool_command`.
_COMMANDS = {
    "Start": {"demo": "demo"},
    "Measure": {
        "audit": "audit",
        "verify": "verify",
        "measure": "measure",
        "represent": "represent",
        "psychology": "psychology",
        "compare-variants": "compare_variants",
        "disparity": "psychology",
        "plan": "audit",
        "trace": "sources",
        "mirror": "sources",
        "lexicons": "collection",
        "tally": "collection",
    },
    "Rank": {"index": "collection", "search": "collection", "train": "neural", "rerank": "neural"},
    "Label queries": {
        "classify": "classify",
        "generate": "generate",
        "pool": "annotate",
        "vote": "annotate",
    },
    "Watch": {"serve": "serve", "monitor": "serve"},
}
_GROUPS = ("mitigate", "vectors")
_PANEL_OF_GROUPS = "More, each with its own commands"
# What people call a command that has another name here.
_ALSO = {
    "match": "mitigate balance",
    "matching": "mitigate balance",
    "judgments": "mitigate balance",
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
    "preference": "mirror",
    "counterfactual": "mirror",
}


_CUTOFF = 0.75
"""How alike a command and what was typed must be, from 0 to 1: a wrong suggestion is worse than none."""


class Commands(TyperGroup):
    """A group that knows what was perhaps meant by a command that is none: here, or in another group."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = _meant(name, ctx.find_root().command, self.name)
            hint = f"did you mean 'evenrank {near}'?" if near else f"{ctx.command_path} --help lists all"
            raise InputError(f"there is no command '{ctx.command_path} {name}'; {hint}")
        return super().resolve_command(ctx, args)


class _Gathered(Mapping[str, Any]):
    """The commands by name, each made when it is first asked for."""

    def __init__(self) -> None:
        self._homes = {
            name: (panel, home) for panel, result in _COMMANDS.items() for name, home in result.items()
        }
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((*self._homes, *_GROUPS))

    def __len__(self) -> int:
        return len(self._homes) + len(_GROUPS)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        alone = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
        if name in _GROUPS:
            group = import_module(f"evenrank.cli.{name}").app
            alone.add_typer(group, name=name, cls=Commands, rich_help_panel=_PANEL_OF_GROUPS)
        else:
            panel, home = self._homes[name]
            function = getattr(import_module(f"evenrank.cli.{home}"), f"{name.replace('-', '_')}_command")
            alone.command(name, rich_help_panel=panel)(function)
        return get_group(alone).commands[name]


class _Root(Commands):
    """All commands and groups."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Gathered()  # type: ignore[assignment]


def _meant(name: str, root: Any, here: str | None = None) -> str | None:
    """The command that is called so, nearly so, or was called so elsewhere.

    Of several with the same name that of the group `here` is meant, else one of no group, else that of the
    group that the help names first.
    """
    known: dict[str | None, dict[str, str]] = {None: {command: command for command in root.commands}}
    for group in _GROUPS:
        inner = {command: f"{group} {command}" for command in root.commands[group].commands}
        known[group] = inner | {path: path for path in inner.values()}
    paths = dict(_ALSO)
    for place in sorted((*reversed(_GROUPS), None), key=lambda each: each == here):  # the last one wins
        paths |= known[place]
    near = closest_match(name, paths, cutoff=_CUTOFF)
    return paths[near] if near else None


app = typer.Typer(
    name="evenrank",
    cls=_Root,
    help="Measure gender bias, or bias toward any group, in search results.",
    epilog="Exit codes: 0 done, 1 a bound is exceeded, 2 bad input, 3 internal error; for bundles also "
    "1 mismatch, 4 incomplete, 5 damaged. "
    "With --debug, any command shows the traceback of an error; with --plugin FILE.py, it knows the measures "
    "that the file registers.",
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
