"""`evenrank mitigate judgments`: pairs of a female and a male query whose documents read alike are added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import Format, deliver, note

if TYPE_CHECKING:
    from evenrank.mitigate.judgments import EvenJudgments


def judgments_command(
    generated: Annotated[
        str, typer.Option(metavar="FILE", help="Queries of `evenrank generate`: query_id, doc_id, text.")
    ],
    docs: Annotated[str, typer.Option(metavar="D", help="The collection: TSV, JSONL, Parquet or irds:ID.")],
    queries: Annotated[str, typer.Option(metavar="Q", help="The training queries, to be added to.")],
    qrels: Annotated[str, typer.Option(metavar="QR", help="Their judgments, to be added to.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A folder for the data set.")],
    ratio: Annotated[
        float,
        typer.Option(min=0, max=1, help="Queries to be added, as a share of the judged relevant pairs."),
    ] = 0.25,
    genders: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Genders of the generated queries.", show_default="predicted"),
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Let a document of a male query be matched several times.")
    ] = False,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The characteristics, a .dic.", show_default="open"),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(metavar="IDX", help="An index of the collection; then triples are written too."),
    ] = None,
    triples: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Training triples (JSONL with query_id), to be added to."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the negatives in triples.")] = 0,
    with_genders: Annotated[
        bool, typer.Option("--with-genders", help="Write the pairs too (pairs.tsv), which tell the genders.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How the summary is printed.")] = Format.table,
) -> None:
    """Add judgments in which documents of female and male queries do not differ in what they express.

    Each generated query of a female query's kind is matched with the male one whose document is nearest in
    affect, cognition, drives and concerns; the nearest pairs are added to queries and judgments.

        evenrank mitigate judgments --generated made.tsv --docs docs.tsv --queries queries.tsv \\
            --qrels qrels.txt --ratio 0.25 -o even
    """
    import polars as pl

    from evenrank.data import tables
    from evenrank.mitigate.judgments import even_judgments
    from evenrank.rankers.index import Index

    judged = tables.qrels(qrels)
    found = even_judgments(
        generated,
        docs,
        genders=genders,
        ratio=ratio,
        size=len(judged.filter(pl.col("relevance") > 0)),
        reuse=reuse,
        source=dictionary,
        seed=seed,
    )
    files = found.write(
        output,
        queries=queries,
        qrels=judged,
        triples=triples,
        index=None if index is None else Index.open(index),
        genders=with_genders,
        seed=seed,
    )
    deliver(rendered(found, form), None)
    note("written: " + ", ".join(str(each) for each in files))


def rendered(found: EvenJudgments, form: Format) -> str:
    """What is added, and how alike the pairs are."""
    import json

    report = found.report()
    if form is Format.json:
        return json.dumps(report, indent=2, allow_nan=False)
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import number

    away = report["distance"]
    row = [
        f"{found.counts['female']:,}",
        f"{found.counts['male']:,}",
        f"{len(found.pairs):,}",
        f"{len(found.added):,}",
        *(number(away[name], ".4f") for name in ("mean", "median", "largest")),
    ]
    headings = ["generated female", "male", "pairs", "queries added", "mean distance", "median", "largest"]
    remarks = [f"not matched: {count:,} ({reason})" for reason, count in found.left_out.items()]
    return render_grid(form, headings, [row], remarks=remarks)
