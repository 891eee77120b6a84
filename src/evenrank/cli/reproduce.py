"""`evenrank reproduce …`: a paper's experiment, beside what the paper printed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import deliver
from evenrank.reproduce.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from evenrank.reproduce.steps import Steps

app = typer.Typer(
    name="reproduce", help="Repeat a paper's experiment, and compare with the published numbers."
)


class Format(StrEnum):
    table = "table"
    json = "json"


_INPUTS: dict[str, Any] = {
    "data": Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|irds:ID",
            help="A folder with docs, queries and qrels (or what the recipe names), or irds:ID; "
            "without it, the demo collection.",
        ),
    ],
    "split": Annotated[str | None, typer.Option(help="Which queries and qrels, if there are several.")],
    "genders": Annotated[
        str | None,
        typer.Option(metavar="FILE|predict", help="Gender labels of the queries, or predict to guess them."),
    ],
    "runs": Annotated[
        list[str] | None,
        typer.Option("--run", metavar="[NAME=]PATH", help="Runs of your own systems; repeat it for several."),
    ],
}
_ALWAYS: dict[str, tuple[Any, Any]] = {
    "changed": (
        Annotated[
            list[str] | None,
            typer.Option("--set", metavar="NAME=VALUE", help="An option of the recipe; the page lists them."),
        ],
        None,
    ),
    "quick": (
        Annotated[
            bool, typer.Option("--quick", help="A hundred queries and fewer resamples: minutes, not hours.")
        ],
        False,
    ),
    "settings": (
        Annotated[
            Path | None,
            typer.Option("--settings", metavar="TOML", help="Settings file written by an earlier run."),
        ],
        None,
    ),
    "output": (
        Annotated[
            Path,
            typer.Option("-o", "--output", metavar="DIR", help="Folder for page, settings and steps."),
        ],
        Path("reproduced"),
    ),
}


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    from evenrank.cli import common, rendering

    rows = [[recipe.name, recipe.paper, recipe.asks] for recipe in RECIPES.values()]
    grid = rendering.render_grid(common.Format.table, ["name", "paper", "asks"], rows, left=3)
    deliver(grid, None)


def _command(recipe: Recipe) -> Callable[..., None]:
    """The command of a recipe: with the options that it takes, and no others."""

    def command(**given: Any) -> None:
        _run(recipe, **given)

    wanted = {name: (_INPUTS[name], None) for name in recipe.takes} | _ALWAYS
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in wanted.items()
        ]
    )
    command.__annotations__ = {name: kind for name, (kind, _) in wanted.items()}
    options = ", ".join(f"{name} ({value!r})" for name, value in recipe.options.items())
    command.__doc__ = f"{recipe.asks} {recipe.paper}." + (
        f"\n\nOptions for --set: {options}." if options else ""
    )
    return command


def _run(
    recipe: Recipe,
    *,
    quick: bool = False,
    settings: Path | None = None,
    output: Path,
    changed: list[str] | None = None,
    runs: list[str] | None = None,
    **given: Any,
) -> None:
    """Run a recipe, write its page and its settings, and say which claims hold."""
    from dataclasses import replace

    from evenrank.cli.common import note, parse_runs
    from evenrank.data.files import writing
    from evenrank.reproduce.page import HOLDS
    from evenrank.reproduce.settings import Settings, parse_options
    from evenrank.reproduce.steps import Steps

    chosen = Settings() if settings is None else Settings.read(settings, recipe.takes, recipe.options)
    given["runs"] = parse_runs(runs) if runs else None
    chosen = replace(chosen, **{key: value for key, value in given.items() if value is not None})
    if changed:
        chosen = replace(chosen, options={**(chosen.options or {}), **parse_options(changed)})
    chosen = (chosen.quick(recipe.quick) if quick else chosen).completed(recipe.options)
    steps = Steps(output, note)
    with _folder(output):
        page = recipe.run(chosen, steps)
    with writing(output / f"{recipe.name}.toml") as file:
        file.write(chosen.toml().encode())
    made = page.write(output)
    said = [f"{HOLDS[claim.holds]}: {claim.says} ({claim.found})" for claim in page.claims]
    if said:
        deliver("\n".join(said), None)
    if steps.spent:
        note(_took(steps))
    note(f"pages: {', '.join(str(path) for path in made)}")


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """A folder that is gone again where nothing comes of it, with those around it that are new as well."""
    from evenrank.data.files import make_folder

    new = [each for each in (path, *path.parents) if not each.exists()]
    make_folder(path)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # what is in it is kept
            for each in new:
                each.rmdir()
        raise


def _took(steps: Steps) -> str:
    """What the steps took, now or when they were done."""
    from evenrank.show.numbers import counted

    training = sum(each.processor for each in steps.spent.values() if each.trains)
    total = sum(each.processor for each in steps.spent.values())
    kept = len(steps.spent) - len(steps.done)
    said = f"{counted(len(steps.spent), 'step')}, {total / 60:.1f} minutes of processor time"
    said += f", {training / 60:.1f} of them for training" if training else ""
    return said + (f"; {kept} done earlier" if kept else "")


for _recipe in RECIPES.values():
    if _recipe.name != "gsr-toy":
        app.command(_recipe.name)(_command(_recipe))


@app.command("gsr-toy")
def gsr_toy_command(
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Word vectors, or a table of genderedness.", show_default="shipped table"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, for the page.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|DIR",
            help="Write to this file; if it is a folder, write a whole page.",
        ),
    ] = None,
) -> None:
    """GSR of a stereotypical, a neutral and a counter-stereotypical system (Fabris et al. 2020).

    Two constructed collections: "The woman is a nurse" (direct stereotypes), "The nurse is affectionate"
    (indirect ones).
    """
    if output is not None and not output.suffix:
        _run(RECIPES["gsr-toy"], output=output, quick=quick, changed=[f"vectors={vectors or ''}"])
        return
    from evenrank.reproduce.gsr_toy import gsr_toy

    found = gsr_toy(vectors)
    deliver(json.dumps(found, indent=2) if form is Format.json else _table(found), output)


def _table(found: dict[str, Any]) -> str:
    from evenrank.show.numbers import number

    lines = [f"{'':10}{'system':8}{'GSR':>8}{'published':>11}"]
    for collection in ("direct", "indirect"):
        for place, (system, value) in enumerate(found[collection].items()):
            published = found["published"][collection][system]
            shown = number(value)
            lines.append(f"{'' if place else collection:10}{system:8}{shown:>8}{published:>+11.2f}")
    return "\n".join([*lines, "published: with Google-News vectors"])
