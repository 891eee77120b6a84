"""`evenrank mitigate balance`: a training set that treats female and male queries alike."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli.common import Format, genders_or_predicted, note
from evenrank.errors import InputError


class By(StrEnum):
    matching = "matching"
    generation = "generation"
    judgments = "judgments"


class Method(StrEnum):
    matching = "matching"
    bins = "bins"


class Range(StrEnum):
    pooled = "pooled"
    male = "male"


def balance_command(
    index: Annotated[str, typer.Option(metavar="IDX", help="An index of the collection.")],
    queries: Annotated[str, typer.Option(metavar="FILE", help="The training queries.")],
    qrels: Annotated[str, typer.Option(metavar="FILE", help="Their judgments.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder for the set.")],
    by: Annotated[
        By,
        typer.Option(
            help="Leave out queries without a counterpart, add generated counterparts, or add pairs of "
            "generated queries whose documents read alike."
        ),
    ] = By.matching,
    genders: Annotated[
        str | None,
        typer.Option(metavar="FILE|predict", help="Matching, generation: gender of each training query."),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Matching: pair queries one to one, or draw from bins.")
    ] = Method.matching,
    caliper: Annotated[
        float | None,
        typer.Option(
            min=0, help="How far apart the scores of a pair may be.", show_default="too little to be seen"
        ),
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Bins of equal width.")] = 9,
    range_: Annotated[Range, typer.Option("--range", help="What the bins span.")] = Range.pooled,
    generated: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Generation, judgments: queries from `evenrank generate`."),
    ] = None,
    generated_genders: Annotated[
        str | None, typer.Option(metavar="FILE", help="Their genders.", show_default="predicted")
    ] = None,
    ratio: Annotated[
        float,
        typer.Option(
            help="Judgments: how many queries to add, as a share of the pairs judged relevant: above 0, at "
            "most 1."
        ),
    ] = 0.25,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Judgments: match the document of a male query several times.")
    ] = False,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Judgments: the 22 characteristics (.dic).", show_default="open"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draw from bins, and of negatives in triples.")
    ] = 0,
    with_genders: Annotated[
        bool, typer.Option("--with-genders", help="Also write what reveals genders (genders.tsv).")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How the summary is printed.")] = Format.table,
) -> None:
    """Balance judgments between female and male queries.

    Writes queries, judgments and triples that any trainer can read, and report.json. Genders are written only
    on request.

        evenrank mitigate balance --index idx --queries q.tsv --qrels qrels.txt --genders predict -o even
        evenrank mitigate balance --by judgments --generated made.tsv --index idx --queries q.tsv \\
            --qrels qrels.txt -o even
    """
    from evenrank.cli.rendering import print_found
    from evenrank.mitigate.balance.training_set import refuse_filled
    from evenrank.rankers.index import Index

    refuse_filled(output)
    if by is not By.matching and generated is None:
        raise InputError(f"--by {by.value} adds generated queries; give --generated")
    if by is not By.judgments and genders is None:
        raise InputError(f"--by {by.value} compares female with male queries; give --genders")
    searched = Index.open(index)
    if by is By.judgments:
        from evenrank.data.read import read_qrels
        from evenrank.mitigate.balance.judgments import even_judgments

        size = int((read_qrels(qrels)["relevance"] > 0).sum())
        result: Any = even_judgments(
            generated,
            searched.docs,
            genders=generated_genders,
            ratio=ratio,
            size=size,
            reuse=reuse,
            source=dictionary,
        )
    else:
        settings: dict[str, Any] = {"bins": bins, "range": range_.value, "seed": seed}
        if by is By.matching:
            settings |= {"method": method.value, "caliper": caliper}
        result = _levelled(
            searched, queries, qrels, genders_or_predicted(genders, queries),
            None if by is By.matching else generated, generated_genders, settings,
        )  # fmt: skip
    files = result.write(output, queries, qrels, index=searched, genders=with_genders, seed=seed)
    if by is not By.matching and generated_genders is None:
        note(f"generated queries: {result.provenance['genders of generated queries']}")
    print_found(result, form, None)
    note("written: " + ", ".join(str(each) for each in files))


def _levelled(
    index: Any,
    queries: str,
    qrels: str,
    genders: Any,
    generated: str | None,
    generated_genders: str | None,
    settings: dict[str, Any],
) -> Any:
    """The training set in which both genders are equally close to their documents."""
    from evenrank.data.read import read_genders, read_queries
    from evenrank.mitigate.balance.matching import association_scores, balance, fill
    from evenrank.queries.generated import read_generated

    requested = read_queries(queries)
    labels = read_genders(genders).join(requested, on="query_id", how="semi", maintain_order="left")
    scores = association_scores(index, requested, qrels)
    if generated is None:
        return balance(scores, labels, **settings)
    made = read_generated(generated)
    made_scores = association_scores(index, made.texts(), made.qrels())
    return fill(
        scores,
        made,
        genders=labels,
        generated_scores=made_scores,
        generated_genders=generated_genders,
        **settings,
    )
