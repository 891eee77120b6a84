"""`evenrank reproduce …`: a paper's experiment, beside what the paper printed."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli.common import deliver

app = typer.Typer(
    name="reproduce", help="Run a paper's experiment, beside what it printed.", no_args_is_help=True
)


class Format(StrEnum):
    table = "table"
    json = "json"


@app.callback()
def _root() -> None:
    pass


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
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> None:
    """GSR of a stereotypical, a neutral and a counter-stereotypical system (Fabris et al. 2020).

    Two constructed collections: "The woman is a nurse" (direct stereotypes), "The nurse is affectionate"
    (indirect ones).
    """
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
