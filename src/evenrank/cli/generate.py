"""`evenrank generate`: queries out of documents."""

from __future__ import annotations

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
    shots: Annotated[
        int | None,
        typer.Option(min=0, help="How many real pairs a causal model is shown.", show_default="5"),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use only this many documents, drawn by the seed.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws.")] = 0,
    batch: Annotated[int | None, typer.Option(min=1, help="Documents per batch.", show_default="16")] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Above 0; low values stay with the most likely tokens.", show_default="0.7"),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="How many of the most likely tokens to draw from.", show_default="10"),
    ] = None,
    words: Annotated[
        int | None, typer.Option(min=1, help="How many words of a document are read.", show_default="120")
    ] = None,
    min_words: Annotated[int, typer.Option(min=0, help="Minimum number of words in a query.")] = 3,
    max_words: Annotated[int, typer.Option(min=1, help="Maximum number of words in a query.")] = 30,
    repeats: Annotated[bool, typer.Option("--repeats", help="Keep repeated queries.")] = False,
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
    reranker: Annotated[
        str | None, typer.Option(metavar="MODEL", help="For --min-score, as in `evenrank rerank`.")
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(help="Lowest score that the re-ranker must give a query with its document."),
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
    were made and what was left out.

        evenrank generate --docs docs.tsv --n 1 --queries queries.tsv --qrels qrels.txt -o made.tsv
    """
    from evenrank.data.docs import open_docs
    from evenrank.queries.generate import generate
    from evenrank.queries.generated import beside, check_filters, check_output, closeness, filter_generated

    opened = open_docs(docs, fields=split_names(fields))
    check_output(output, opened.path, queries, qrels)
    check_filters((min_words, max_words), reranker, min_score)
    if reranker is not None:
        from evenrank.rankers.neural.reranking import make_reranker

        make_reranker(reranker)  # says at once if there is none
    requested, judged = _real(queries, qrels, report)
    shown = _shown(model, shots, requested, judged, report)
    needs_index = report or any(each is not None for each in (round_trip, answerable, reranker))
    searched = _searched(opened, index, needs_index)
    given = {"batch": batch, "temperature": temperature, "top": top, "words": words}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    whole = output.with_name(f".{output.name}.unfiltered.tsv")  # stays until what is kept is written
    with progress_bar("generating", unit="documents") as progress:
        built = generate(
            opened,
            n,
            model,
            sample=sample,
            seed=seed,
            output=whole,
            log=note,
            progress=progress,
            **shown,
            **settings,
        )
    kept = filter_generated(
        built,
        searched,
        words=(min_words, max_words),
        repeats=repeats,
        top=round_trip,
        answerable=answerable,
        reranker=reranker,
        min_score=min_score,
    )
    for reason, count in kept.left_out.items():
        note(f"left out: {count:,} ({reason})")
    if not len(kept):
        raise InputError("no query is left; ask for less", path=output)
    result = None
    if report and searched is not None:
        result = closeness(kept, searched, queries=requested, qrels=judged, seed=seed)
    kept.write(output)
    for left in (whole, beside(whole)):
        left.unlink(missing_ok=True)
    if result is not None:
        deliver(rendered(result, form), None)
    documents = kept.queries["doc_id"].n_unique()
    note(f"{len(kept):,} queries of {documents:,} documents, {built.provenance['writer']}: {output}")


def _real(queries: str | None, qrels: str | None, report: bool) -> tuple[Any, Any]:
    """Real queries and their judgments, read before anything is generated."""
    if (queries is None) != (qrels is None):
        raise InputError("--queries and --qrels go together: the judgments say whose documents they are")
    if queries is None:
        return None, None
    from evenrank.data.read import read_qrels, read_queries
    from evenrank.queries.generated import real_pairs

    requested, judged = read_queries(queries), read_qrels(qrels)
    if report:
        real_pairs(requested, judged)
    return requested, judged


def _shown(model: str | None, shots: int | None, requested: Any, judged: Any, report: bool) -> dict[str, Any]:
    """The examples that a model is shown; what would not be used is refused."""
    from evenrank.queries.generate import EXTRACTIVE, SHOTS

    if model == EXTRACTIVE:
        if shots is not None:
            raise InputError("extractive queries need no examples; leave out --shots")
        if requested is not None and not report:
            raise InputError(
                "extractive queries need no examples; leave out --queries and --qrels, or give --report"
            )
        return {}
    return {"queries": requested, "qrels": judged, "shots": SHOTS if shots is None else shots}


def _searched(docs: Any, path: Path | None, needed: bool) -> Index | None:
    """The index that is given, or one in the cache if there has to be one."""
    if path is not None:
        import polars as pl

        from evenrank.queries.generated import refuse_other_index
        from evenrank.rankers.index import Index

        opened = Index.open(path)
        some = next(iter(docs.batches()), None)
        if some is not None:  # says at once, before any query is made
            refuse_other_index(pl.Series(some.column("doc_id").to_pylist(), dtype=pl.String), opened)
        return opened
    if not needed:
        return None
    from evenrank.rankers.indexing import cached_index

    return cached_index(docs, note)


def rendered(found: Closeness, form: Format) -> str:
    """Generated queries beside real ones."""
    import json

    if form is Format.json:
        return json.dumps(found.to_dict(), indent=2, allow_nan=False)
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
        for name, each in (("generated", found.generated), ("real", found.real))
        if each is not None
    ]
    headings = ["", "queries", "round-trip RR@10", "words in document", "length", "JS distance"]
    if form is Format.csv:
        return Grid(headings, rows).csv()
    remarks = []
    if found.outside:
        some = counted(found.outside, "real query is", "real queries are")
        remarks.append(f"{some} left out: no document of theirs is in the collection")
    if found.compared is not None:
        some = counted(found.compared, "query", "queries")
        remarks += [
            "Aim for the values of real queries; higher is not better",
            f"JS distance: {some} of each, against the other half of the real ones",
        ]
    return render_grid(form, headings, rows, remarks=remarks)
