"""`evenrank classify`: which gender queries are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import deliver, note, progress_bar
from evenrank.show.numbers import counted

if TYPE_CHECKING:
    import polars as pl


def classify_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="TSV (query_id, text), JSONL, TREC topics or Parquet.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME|DIR", help="static, lexicon, or the folder of a trained model.")
    ] = "static",
    min_confidence: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", help="Label a query `other` if no probability is this high."),
    ] = 0.0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column with the words that drove each label.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout."),
    ] = None,
) -> None:
    """Say which gender each query is about: female, male, neutral or other, with probabilities.

    A job, a hobby, a product or a field names no gender; people's names and gendered words do. The label is
    other for queries about both genders or another one, and where the classifier is not sure.

    Prints TSV with a header: query_id, text, label, female, male, neutral, note; and reasons with
    --explain. The note says if a query is empty, was cut after 1,000 characters, or was part of the
    training data, which makes its label no evidence.

        evenrank classify queries.tsv --min-confidence 0.8 -o genders.tsv
    """
    from evenrank.queries.classify import classify, counted_labels

    with progress_bar("labelling", unit="queries") as progress:
        result = classify(queries, model, min_confidence=min_confidence, explain=explain, progress=progress)
    deliver(_tsv(result), output)
    note(f"{counted(len(result), 'query', 'queries')}: {counted_labels(result)}")
    for what, meaning in (
        ("training query", "of the training data; leave them out of an audit"),
        ("empty", "without a word; labelled neutral"),
        ("truncated", "cut after 1,000 characters"),
    ):
        if count := int(result["note"].str.contains(what, literal=True).sum()):
            note(f"{counted(count, 'query', 'queries')} {meaning}")


def _tsv(found: pl.DataFrame) -> str:
    """A line for each query; blanks within a text are made plain, so that a line stays a line."""
    import polars as pl

    columns = [
        pl.col("query_id"),
        pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars(),
        pl.col("label"),
        *(pl.col(name).round(4) for name in ("female", "male", "neutral")),
        pl.col("note"),
    ]
    if "reasons" in found.columns:
        reason = pl.format(
            "{} ({} {})",
            pl.element().struct.field("word"),
            pl.element().struct.field("group"),
            pl.element().struct.field("weight").round(2),
        )
        columns.append(pl.col("reasons").list.eval(reason).list.join(", "))
    return found.select(columns).write_csv(separator="\t", quote_style="never", float_precision=4)
