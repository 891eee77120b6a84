"""`evenrank generate`: queries out of documents."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import Format, deliver, note, progress_bar, split_names
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.queries.generated import Closeness
    from evenrank.rankers.index import Index


def generate_command(
    docs: Annotated[str, typer.Option(metavar="D", help="The collection: TSV, JSONL, Parquet or irds:ID.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT.tsv", help="query_id, doc_id, text; with a header.")
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="Queries for each document.")] = 1,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FOLDER|extractive",
            help="A causal or sequence-to-sequence checkpoint, or extractive: phrases of the document.",
            show_default="SmolLM2-135M-Instruct",
        ),
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="Q", help="Real queries, as examples and for comparison.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(metavar="QR", help="Their judgments.")] = None,
    shots: Annotated[int, typer.Option(min=0, help="Examples in the prompt of a causal model.")] = 5,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use only this many documents, drawn by the seed.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws.")] = 0,
    temperature: Annotated[
        float, typer.Option(help="Above 0; low values stay with the most likely tokens.")
    ] = 0.7,
    top: Annotated[int, typer.Option(min=1, help="How many of the most likely tokens to draw from.")] = 10,
    min_words: Annotated[int, typer.Option(min=0, help="Minimum number of words in a query.")] = 3,
    max_words: Annotated[int, typer.Option(min=1, help="Maximum number of words in a query.")] = 30,
    round_trip: Annotated[
        int | None,
        typer.Option(min=1, metavar="R", help="Keep queries whose document is among BM25's first R."),
    ] = None,
    answerable: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Share of a query's terms that its document must contain."
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Report how close they are to the real queries, if given.")
    ] = False,
    index: Annotated[
        Path | None,
        typer.Option(metavar="IDX", help="An index of the collection.", show_default="one in the cache"),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How the report is printed.")] = Format.table,
    fields: Annotated[
        str, typer.Option(help="Fields that make up the text, joined with a space.")
    ] = "title,text",
) -> None:
    """Write queries that documents answer.

    To resume an interrupted call, repeat the command. Next to OUT.tsv, the file OUT.json says how the queries
    were generated and what was left out.

        evenrank generate --docs docs.tsv --n 1 --queries queries.tsv --qrels qrels.txt -o made.tsv
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.read import read_qrels, read_queries
    from evenrank.queries.generate import EXTRACTIVE, generate
    from evenrank.queries.generated import check_output, check_words, closeness, filter_generated

    opened = open_docs(docs, fields=split_names(fields))
    check_output(output, opened.path, queries, qrels)
    check_words((min_words, max_words))
    if (queries is None) != (qrels is None):
        raise InputError("--queries and --qrels go together: the judgments say whose documents they are")
    real: dict[str, Any] = {}
    if queries is not None:
        real = {"queries": read_queries(queries), "qrels": read_qrels(qrels)}
    needs_index = report or round_trip is not None or answerable is not None
    searched = _open_index(opened, index) if needs_index else None
    settings = {} if model == EXTRACTIVE else {"temperature": temperature, "top": top}
    parts = output.with_name(f".{output.name}.parts")  # stays until the queries are written
    with progress_bar("generating", unit="documents") as progress:
        written = generate(
            opened,
            n,
            model,
            **real,
            shots=shots,
            sample=sample,
            seed=seed,
            checkpoints=parts,
            progress=progress,
            **settings,
        )
    kept = filter_generated(
        written, searched, words=(min_words, max_words), top=round_trip, answerable=answerable
    )
    for reason, count in kept.left_out.items():
        note(f"left out: {count:,} ({reason})")
    if not len(kept):
        raise InputError("no query is left; use weaker filters", path=output)
    result = closeness(kept, searched, **real, seed=seed) if report and searched is not None else None
    kept.write(output)
    shutil.rmtree(parts)
    if result is not None:
        deliver(rendered(result, form), None)
    documents = kept.queries["doc_id"].n_unique()
    note(f"{len(kept):,} queries of {documents:,} documents, {written.provenance['writer']}: {output}")


def _open_index(docs: Any, path: Path | None) -> Index:
    """The index of that path, or one in the cache."""
    from evenrank.rankers.index import Index
    from evenrank.rankers.indexing import cached_index

    return cached_index(docs, note) if path is None else Index.open(path)


def rendered(result: Closeness, form: Format) -> str:
    """The report as text: generated queries beside real ones."""
    import json

    if form is Format.json:
        return json.dumps(result.to_dict(), indent=2, allow_nan=False)
    from evenrank.cli.rendering import render_grid
    from evenrank.show.grid import Grid
    from evenrank.show.numbers import counted, number

    rows = [
        [
            name,
            f"{each.queries:,}",
            number(each.round_trip, ".3f"),
            number(each.overlap, ".3f"),
            number(each.length, ".1f"),
            "" if each.distance is None else number(each.distance, ".3f"),
        ]
        for name, each in (("generated", result.generated), ("real", result.real))
        if each is not None
    ]
    headings = ["", "queries", "round-trip RR@10", "words in document", "length", "JS distance"]
    if form is Format.csv:
        return Grid(headings, rows).csv()
    remarks = []
    if result.outside:
        some = counted(result.outside, "real query is", "real queries are")
        remarks.append(f"{some} left out: no document of theirs is in the collection")
    if result.compared is not None:
        some = counted(result.compared, "query", "queries")
        remarks += [
            "Aim for the values of real queries; higher is not better",
            f"JS distance: {some} of each, against the other half of the real ones",
        ]
    return render_grid(form, headings, rows, remarks=remarks)
