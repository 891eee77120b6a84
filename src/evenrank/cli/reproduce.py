"""`evenrank reproduce …`: a paper's experiment, beside what the paper printed."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli.common import deliver

app = typer.Typer(name="reproduce", help="Run a paper's experiment, beside what it printed.")


class Format(StrEnum):
    table = "table"
    json = "json"


Data = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="A folder with docs, queries and qrels, or irds:ID; the demo collection without it.",
    ),
]
Split = Annotated[str | None, typer.Option(help="Which queries and qrels, where there are several.")]
GendersFile = Annotated[
    str | None,
    typer.Option(metavar="FILE|predict", help="Gender labels of the queries; predict guesses them."),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="A hundred queries and fewer resamples: minutes, not hours.")
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="TOML", help="Settings, as an earlier run wrote them.")
]
Folder = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Where page, settings and finished steps go.")
]


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    from evenrank.cli import common, rendering
    from evenrank.reproduce.recipes import RECIPES

    rows = [[recipe.name, recipe.paper, recipe.asks] for recipe in RECIPES.values()]
    rows.append(["rankers", "", "Effectiveness and bias of all rankers that need no training"])
    grid = rendering.render_grid(common.Format.table, ["name", "paper", "asks"], rows, left=3)
    deliver(grid, None)


@app.command("rank-bias")
def rank_bias_command(
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="Runs: BM25's first, then those of neural rankers."),
    ] = None,
    data: Data = None,
    split: Split = None,
    genders: GendersFile = None,
    quick: Quick = False,
    settings: SettingsFile = None,
    output: Folder = Path("reproduced"),
) -> None:
    """Do neural rankers lean more than BM25? (Rekabsaz & Schedl 2020, Tables 1 and 3).

    evenrank reproduce rank-bias --data squad --split test --run bm25=bm25.run --run pacrr=pacrr.run
    """
    from evenrank.cli.common import parse_runs

    runs = parse_runs(run) if run else None
    _run("rank-bias", settings, quick, output, data=data, split=split, genders=genders, runs=runs)


@app.command("feedback")
def feedback_command(
    data: Data = None,
    split: Split = None,
    quick: Quick = False,
    settings: SettingsFile = None,
    output: Folder = Path("reproduced"),
) -> None:
    """Less bias by relevance feedback, and at what cost (thesis, Section 4.1, Tables 4.1 to 4.4)."""
    _run("feedback", settings, quick, output, data=data, split=split)


@app.command("judgments")
def judgments_command(
    data: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="As for the others, or a folder of LIWC tables (female.csv, …)."),
    ] = None,
    split: Split = None,
    genders: GendersFile = None,
    quick: Quick = False,
    settings: SettingsFile = None,
    output: Folder = Path("reproduced"),
) -> None:
    """Are the judged documents of female and male queries alike? (thesis, Section 3.1)."""
    _run("judgments", settings, quick, output, data=data, split=split, genders=genders)


@app.command("representation")
def representation_command(
    data: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="A folder with results.tsv and targets.tsv.")
    ] = None,
    settings: SettingsFile = None,
    output: Folder = Path("reproduced"),
) -> None:
    """Does the top of result lists show groups as often as it should? (Lipani et al. 2021)."""
    _run("representation", settings, False, output, data=data)


def _run(name: str, settings: Path | None, quick: bool, output: Path, **given: Any) -> None:
    """Run a recipe, write its page and its settings, and say which claims hold."""
    from dataclasses import replace

    from evenrank.cli.common import note
    from evenrank.data.files import writing
    from evenrank.reproduce.page import HOLDS, Steps
    from evenrank.reproduce.recipes import RECIPES
    from evenrank.reproduce.settings import Settings

    chosen = Settings() if settings is None else Settings.read(settings)
    chosen = replace(chosen, **{key: value for key, value in given.items() if value is not None})
    chosen = chosen.quick() if quick else chosen
    output.mkdir(parents=True, exist_ok=True)
    page = RECIPES[name].run(chosen, Steps(output, note))
    with writing(output / f"{name}.toml") as file:
        file.write(chosen.toml().encode())
    made = page.write(output)
    said = [f"{HOLDS[claim.holds]}: {claim.says} ({claim.found})" for claim in page.claims]
    deliver("\n".join(said), None)
    note(f"pages: {', '.join(str(path) for path in made)}")


@app.command("gsr-toy")
def gsr_toy_command(
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Word vectors, or a table of genderedness.", show_default="shipped table"
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE|DIR", help="Write there; into a folder, a whole page."),
    ] = None,
) -> None:
    """GSR of a stereotypical, a neutral and a counter-stereotypical system (Fabris et al. 2020).

    Two constructed collections: "The woman is a nurse" (direct stereotypes), "The nurse is affectionate"
    (indirect ones).
    """
    if output is not None and not output.suffix and vectors is None:
        _run("gsr-toy", None, False, output)
        return
    from evenrank.reproduce.gsr_toy import gsr_toy

    found = gsr_toy(vectors)
    deliver(json.dumps(found, indent=2) if form is Format.json else _table(found), output)


@app.command("rankers")
def rankers_command(
    data: Annotated[
        str, typer.Option(metavar="FOLDER", help="A folder with docs, queries and qrels, or irds:ID.")
    ],
    index: Annotated[
        Path, typer.Option(metavar="IDX", help="An index of the documents; made if it is not there.")
    ],
    split: Annotated[
        str | None, typer.Option(help="Which queries and qrels, where there are several.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="FILE", help="Word vectors; without them no w2v_add and w2v_si.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A sentence-transformer.", show_default="all-MiniLM-L6-v2"),
    ] = None,
    no_dense: Annotated[bool, typer.Option("--no-dense", help="Leave the dense ranker out.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.table,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> None:
    """Effectiveness and bias of all rankers that need no training, on a collection of yours."""
    from evenrank.cli import common, rendering
    from evenrank.data.tables import load
    from evenrank.reproduce.rankers import MEASURES, compare_rankers
    from evenrank.show.numbers import number

    found = compare_rankers(
        load(data, split=split), index, vectors=vectors, model=model, dense=not no_dense, say=common.note
    )
    if form is Format.json:
        deliver(json.dumps(found, indent=2, ensure_ascii=False), output)
        return
    headings = ["ranker", *(f"|{name}|" if name.startswith("LIWC") else name for name in MEASURES)]
    rows = [
        [row["ranker"], *(number(row[name]["value"], ".3f") for name in MEASURES)] for row in found["rankers"]
    ]
    size = f"{found['documents']:,} documents, {found['queries']:,} queries"
    deliver(rendering.render_grid(common.Format.table, headings, rows, remarks=[size], output=output), output)


def _table(found: dict[str, Any]) -> str:
    from evenrank.show.numbers import number

    lines = [f"{'':10}{'system':8}{'GSR':>8}{'published':>11}"]
    for collection in ("direct", "indirect"):
        for place, (system, value) in enumerate(found[collection].items()):
            published = found["published"][collection][system]
            shown = number(value)
            lines.append(f"{'' if place else collection:10}{system:8}{shown:>8}{published:>+11.2f}")
    return "\n".join([*lines, "published: with Google-News vectors"])
