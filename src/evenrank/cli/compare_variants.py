"""`evenrank compare-variants`: an engine audited without its documents, by variants of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, note, progress_bar
from evenrank.errors import InputError


def compare_variants_command(
    results: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Collected results: variant, rank, url, triple_id (or topic), optionally engine.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Or a live engine to ask, such as https://host/search?q={query}."),
    ] = None,
    index: Annotated[Path | None, typer.Option(metavar="IDX", help="Or an index to search.")] = None,
    triples: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What to ask: triple_id, neutral, female, male; topic, stereotype."
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Or queries without gender; patterns write their variants."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Triples that people wrote, as a model for the variants."),
    ] = None,
    at: Annotated[int, typer.Option(min=1, help="How many results of each list are compared.")] = 10,
    ranker: Annotated[str, typer.Option(metavar="NAME", help="How an index is searched.")] = "bm25",
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the ranker or engine; repeatable."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to save the results to, for --results.")
    ] = None,
    confidence: options.Confidence = 0.95,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind the intervals.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap and the test.")] = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Does a query without gender find what its female or what its male variant finds? Needs no documents.

    VarRaB, VarARaB and VarNDRaB are the share of the neutral list that is also in the male variant's list,
    minus the share in the female variant's, weighted by rank: above 0 the engine answers as if a man had
    asked.

        evenrank compare-variants --engine 'https://host/search?q={query}' --triples triples.tsv --at 10
    """
    from evenrank.auditing.black_box import ask_variants, compared, read_results
    from evenrank.rankers.registry import parse_settings

    if sum(each is not None for each in (results, engine, index)) != 1:
        raise InputError("give one of --results, --engine and --index")
    if results is not None:
        unused = {"--triples": triples, "--queries": queries, "--like": like, "--set": given, "--keep": keep}
        for name, value in unused.items():
            if value is not None:
                raise InputError(
                    f"{name} goes with --engine or --index: --results holds lists that were asked for"
                )
        table = read_results(results)
    else:
        requested = _asked(triples, queries, like)
        settings: dict[str, Any] = parse_settings(engine or ranker, given or [])
        with progress_bar("searching", unit="queries") as progress:
            table = ask_variants(
                engine or index, requested, at=at, ranker=ranker, progress=progress, **settings
            )
        if keep is not None:
            deliver(table.write_csv(separator="\t"), keep)
    result = compared(table, at=at, confidence=confidence, resamples=resamples, seed=seed)
    from evenrank.cli.rendering import draw, print_found

    draw(result, chart)
    print_found(result, form, output)


def _asked(triples: str | None, queries: str | None, like: str | None) -> Any:
    """The triples to ask: given, or written for the queries that name no gender."""
    from evenrank.data.read import read_queries
    from evenrank.queries.variants import variants

    if (triples is None) == (queries is None):
        raise InputError("give --triples, or --queries to write variants of; one of them")
    if queries is None:
        if like is not None:
            raise InputError("--like helps to write variants; it goes with --queries")
        return triples
    table = read_queries(queries)
    written = variants(table, like=like)
    if gendered := len(table) - len(written):
        note(f"{gendered:,} of {len(table):,} queries name a gender and have no neutral form: left out")
    return written
