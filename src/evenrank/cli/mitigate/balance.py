"""`evenrank mitigate balance`: judgments in which both genders stand equally close to their documents."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import Format, deliver, genders_or_predicted, note
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.balance import Balanced, Filled


class Method(StrEnum):
    matching = "matching"
    bins = "bins"


class By(StrEnum):
    matching = "matching"
    generation = "generation"


class Range(StrEnum):
    pooled = "pooled"
    male = "male"


def balance_command(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A folder for the data set.")],
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="query_id, score, optionally doc_id, with a header. Give two files for female, then male "
            "queries.",
        ),
    ] = None,
    genders: Annotated[
        str | None,
        typer.Option(metavar="FILE|predict", help="Gender of each query, if there is one file of scores."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(metavar="IDX", help="An index to compute the scores with, from --queries and --qrels."),
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="The queries, to be reduced.")] = None,
    qrels: Annotated[str | None, typer.Option(metavar="FILE", help="The judgments, to be reduced.")] = None,
    triples: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Training triples (JSONL with query_id), to be reduced."),
    ] = None,
    by: Annotated[
        By, typer.Option(help="Leave out real queries, or add generated ones and leave none out.")
    ] = By.matching,
    generated: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For --by generation: queries from `evenrank generate`."),
    ] = None,
    generated_genders: Annotated[
        str | None, typer.Option(metavar="FILE", help="Their genders.", show_default="predicted")
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Pair queries one to one, or balance bins.")
    ] = Method.matching,
    caliper: Annotated[
        float | None,
        typer.Option(
            min=0, help="How far apart the scores of a pair may be.", show_default="too little to be seen"
        ),
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Bins of equal width.")] = 9,
    range_: Annotated[Range, typer.Option("--range", help="What the bins span.")] = Range.pooled,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draw from the bins and, by generation, of negatives.")
    ] = 0,
    with_genders: Annotated[
        bool, typer.Option("--with-genders", help="Also write genders and scores (kept.tsv, added.tsv).")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How the summary is printed.")] = Format.table,
) -> None:
    """Make the queries of both genders equally close to their relevant documents.

    Queries without a counterpart of the other gender are left out or, by generation, get a generated one.
    Writes queries, judgments and triples that any trainer can read, and report.json. Genders are written only
    on request.

        evenrank mitigate balance --scores gamma.tsv --genders genders.tsv --qrels qrels.txt -o even
        evenrank mitigate balance --by generation --generated made.tsv --index idx --queries queries.tsv \
            --qrels qrels.txt --genders predict -o even
    """
    from evenrank.mitigate.balance import association_scores, balance
    from evenrank.mitigate.training_sets import refuse_folder_of

    settings: dict[str, Any] = {
        "method": method.value,
        "caliper": caliper,
        "bins": bins,
        "range": range_.value,
        "seed": seed,
    }
    refuse_folder_of(output, queries, qrels, triples, generated, generated_genders, genders, *(scores or []))
    labels = genders_or_predicted(genders, queries)
    if by is By.generation:
        if generated is None or index is None or queries is None or qrels is None or labels is None or scores:
            raise InputError(
                "--by generation computes the scores itself: give --generated, --index, --queries, --qrels "
                "and --genders, and leave --scores out"
            )
        _fill(
            generated, generated_genders, index, queries, qrels, triples, labels, settings,
            output, with_genders, form,
        )  # fmt: skip
        return
    if generated is not None or generated_genders is not None:
        raise InputError("--generated and --generated-genders are for --by generation")
    given: list[Any] = list(scores or [])
    if index is not None:
        if given or queries is None or qrels is None:
            raise InputError("--index computes the scores, from --queries and --qrels; leave --scores out")
        given = [association_scores(index, queries, qrels)]
    if not 1 <= len(given) <= 2:
        raise InputError("give --scores once with --genders, or twice: female queries, then male")
    even = balance(*given, genders=labels, ids=_ids(queries, qrels), **settings)
    files = even.write(output, queries=queries, qrels=qrels, triples=triples, genders=with_genders)
    _delivered(even, files, form)


def _ids(queries: str | None, qrels: str | None) -> list[str] | None:
    """The ids of all queries that are to be reduced; None if only scores are given."""
    from evenrank.data.read import read_qrels, read_queries

    if queries is not None:
        return read_queries(queries)["query_id"].to_list()
    return None if qrels is None else read_qrels(qrels)["query_id"].unique(maintain_order=True).to_list()


def _fill(
    generated: str,
    generated_genders: str | None,
    index: Path,
    queries: str,
    qrels: str,
    triples: str | None,
    genders: Any,
    settings: dict[str, Any],
    output: Path,
    with_genders: bool,
    form: Format,
) -> None:
    """Add generated queries, and write the data set."""
    from evenrank.mitigate.balance import association_scores, fill
    from evenrank.queries.generated import read_generated
    from evenrank.rankers.index import Index

    searched, built = Index.open(index), read_generated(generated)
    filled = fill(
        association_scores(searched, queries, qrels),
        built,
        genders=genders,
        generated_scores=association_scores(searched, built.texts(), built.qrels()),
        generated_genders=generated_genders,
        **settings,
    )
    files = filled.write(
        output,
        queries=queries,
        qrels=qrels,
        triples=triples,
        index=searched,
        genders=with_genders,
        seed=settings["seed"],
    )
    if generated_genders is None:
        note(f"generated queries: {filled.provenance['genders of generated queries']}")
    _delivered(filled, files, form)


def _delivered(even: Balanced | Filled, files: list[Path], form: Format) -> None:
    """Print what has changed."""
    from evenrank.cli.rendering import render_grid

    if form is Format.json:
        deliver(json.dumps(even.report(), indent=2, allow_nan=False), None)
    elif form is Format.csv:
        deliver(even.frame().write_csv(), None)
    else:
        grid = even.grid()
        remarks = ["pairs: a query and one of its relevant documents", *even.remarks()]
        deliver(render_grid(form, grid.headings, grid.rows, remarks=remarks), None)
    note("written: " + ", ".join(str(each) for each in files))
