"""`evenrank trace` and `evenrank preference`: where bias enters; is it the ranker, or the texts?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, progress_bar, split_runs


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


def preference_command(
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
    candidates: Annotated[
        str | None, typer.Option(metavar="QRELS", help="Rank only these documents for each query.")
    ] = None,
    gendered: Annotated[
        Literal["leave out", "mirror"] | None,
        typer.Option("--gendered-queries", help="Queries that name a gender.", show_default="leave out"),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Maximum number of documents per query.")] = 100,
    lexicon: Annotated[str, typer.Option(help="Words of each group.")] = "rekabsaz2020",
    no_names: Annotated[bool, typer.Option("--no-names", help="Do not mirror given names.")] = False,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Is it the ranker, or the texts? Rank a collection as it is, and with women and men swapped.

    Half the sum of the two leans is what the ranker prefers; half the difference comes from the texts.

        evenrank preference --docs docs.tsv --queries queries.tsv --ranker bm25 --ranker dense
    """
    from evenrank.cli.common import split_names
    from evenrank.data.docs import open_docs
    from evenrank.mitigate.preferences import preference

    opened = open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("ranking", unit="rankers") as progress:
        found = preference(
            opened,
            queries,
            rankers=ranker or ["bm25"],
            measure=measure,
            candidates=candidates,
            gendered_queries=gendered or "leave out",
            depth=depth,
            lexicon=lexicon,
            names=not no_names,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
    from evenrank.cli.rendering import draw, print_found

    draw(found, chart)
    print_found(found, form, output)
