"""`evenrank demo`: what the package does, on a collection that comes with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from evenrank.measures.measurements import Measurement


def demo_command(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Also copy the collection and the runs there."),
    ] = None,
) -> None:
    """Audit two rankers on a small built-in collection, offline, in a few seconds."""
    from rich.console import Console

    import evenrank as er
    from evenrank import demo
    from evenrank.cli.rendering import explanation, table

    console = Console(highlight=False)
    folder = demo.folder()
    docs, queries, qrels = er.load(folder)
    tally = er.tally(docs)
    console.print(
        f"[bold]{len(tally):,} passages[/bold] about work, care, sport, science and health, "
        f"[bold]{len(queries):,} queries[/bold], two rankers: "
        "[bold]bm25[/bold] matches words, [bold]dense[/bold] compares meanings.\n"
    )
    measured = er.measure(
        {name: folder / f"{name}.run" for name in ("bm25", "dense")},
        [er.nDCG @ 10, er.ARaB @ 10, er.NFaiRR @ 10],
        tally=tally,
        docs=docs,
        queries=queries,
        qrels=qrels,
        genders=folder / "genders.tsv",
        explain=True,
    )
    console.print(table(measured, width=console.width))
    dense = measured["dense", "ARaB@10"]
    console.print(
        "\n[bold]How to read it.[/bold] ARaB above 0: the top of the list leans male; below 0: female. "
        "NFaiRR: 1 when all is neutral. Bias is measured on queries that name no gender. A mean near 0 "
        f"can hide opposite queries: the mean of |ARaB@10| for dense is {dense.summary.abs:.2f}.\n"
    )
    console.print(_extremes(dense, queries))
    console.print(explanation(dense))
    if output is None:
        console.print("\nTo measure the same data yourself: [bold]evenrank demo -o DIR[/bold]")
        return
    demo.copy_to(output)
    console.print(f"\nThe collection and the runs are in {output}. Try:", markup=False, emoji=False)
    command = (
        f"evenrank measure ARaB@10 nDCG@10 {output}/*.run --docs {output}/docs.tsv "
        f"--qrels {output}/qrels.txt --genders {output}/genders.tsv"
    )
    console.print(f"  {command}", soft_wrap=True, markup=False, emoji=False)


def _extremes(measurement: Measurement, queries: pl.DataFrame, number: int = 5) -> Table:
    """The queries whose results lean farthest to either side."""
    from rich.table import Table
    from rich.text import Text

    from evenrank.cli.rendering import GROUP_COLOURS

    texts = dict(queries.iter_rows())
    values = sorted(measurement.per_query().items(), key=lambda item: item[1])
    sides = (("female", values[:number]), ("male", values[::-1][:number]))
    grid = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for group, _ in sides:
        grid.add_column(f"neutral queries that lean most {group}", style=GROUP_COLOURS[group])
        grid.add_column("", justify="right", style=GROUP_COLOURS[group])
    for left, right in zip(*(side for _, side in sides), strict=True):
        grid.add_row(Text(texts[left[0]]), f"{left[1]:+.2f}", Text(texts[right[0]]), f"{right[1]:+.2f}")
    return grid
