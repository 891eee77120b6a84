"""`evenrank trace` and `evenrank mirror`: where bias enters; is it the ranker, or the texts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, progress_bar, split_names, split_runs


@options.takes_inputs
def trace_command(
    asked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|MEASURE]...",
            help="Runs in the order of the stages, and measures that are sums over documents.",
            show_default="ARaB@10 NFaiRR@10 ExposureGap@10",
        ),
    ] = None,
    *,
    given: options.GivenInputs,
    no_collection: Annotated[
        bool, typer.Option("--no-collection", help="Start with the candidates, not with the collection.")
    ] = False,
    only: options.OnlyQueries = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> int:
    """Where does bias enter: the collection, the candidates, their order, the re-ranking or the mitigation?

    The first run holds the candidates; each further run is what the next stage made of them. All stages are
    measured on the same queries; documents without an order count with their mean over all orders.

        evenrank trace bm25.run reranked.run fair.run --docs docs.tsv
    """
    from evenrank.auditing.stages import MEASURES, trace

    files, measures = split_runs(asked or [])
    runs = given.runs(files)
    with progress_bar("counting", unit="bytes") as progress:
        found = trace(
            runs,
            measures or MEASURES,
            collection=not no_collection,
            only=None if only is None else only.value,
            confidence=confidence,
            seed=seed,
            progress=progress,
            **given.keywords(runs),
        )
    from evenrank.cli.rendering import draw, print_found

    draw(found, chart)
    print_found(found, form, output)
    return 0


def mirror_command(
    docs: Annotated[
        str, typer.Option(metavar="DOCS", help="The collection: TSV, JSONL, Parquet or irds:ID.")
    ],
    queries: Annotated[str, typer.Option(metavar="FILE", help="The queries' texts.")],
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="bm25, 'w2v_add(debias=hard)', dense, a trained folder; repeatable.",
            show_default="bm25",
        ),
    ] = None,
    measure: Annotated[str, typer.Option(metavar="MEASURE", help="The measure of the lean.")] = "ARaB@10",
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="Rank every document beside its mirror image, and compare their ranks."),
    ] = False,
    candidates: Annotated[
        str | None, typer.Option(metavar="QRELS", help="Only these documents of each query.")
    ] = None,
    gendered: Annotated[
        bool, typer.Option("--gendered-queries", help="Keep queries that name a gender.")
    ] = False,
    vectors: Annotated[
        str | None, typer.Option(metavar="V", help="Word vectors, for w2v_add and w2v_si.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of documents per query.", show_default="100; pairs 1000"),
    ] = None,
    at: Annotated[
        int, typer.Option(min=0, help="A pair counts if one of the two is within this rank; 0 for all pairs.")
    ] = 100,
    lexicon: Annotated[str, typer.Option(help="Words of each group.")] = "rekabsaz2020",
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    values: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the values of each query or pair, as CSV.")
    ] = None,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Is it the ranker, or the texts? Rank texts, and the same with women and men swapped.

    Half the sum of the two leans is what the ranker prefers; half the difference comes from the texts. With
    --pairs, every document stands beside its mirror image: how many ranks higher is the male version?

        evenrank mirror --docs docs.tsv --queries queries.tsv --ranker bm25 --ranker dense
    """
    from evenrank.data.docs import open_docs
    from evenrank.mitigate.mirror import mirror

    settings: dict[str, Any] = {} if vectors is None else {"vectors": vectors}
    with progress_bar("ranking", unit="rankers") as progress:
        result = mirror(
            open_docs(docs, fields=split_names(fields), id_field=id_field),
            queries,
            rankers=ranker or ["bm25"],
            measure=measure,
            pairs=pairs,
            candidates=candidates,
            gendered_queries=gendered,
            depth=depth,
            at=at or None,
            lexicon=lexicon,
            confidence=confidence,
            seed=seed,
            progress=progress,
            **settings,
        )
    from evenrank.cli.rendering import draw, print_found

    if values is not None:
        deliver(result.values.write_csv(), values)
    draw(result, chart)
    print_found(result, form, output)
