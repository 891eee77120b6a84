"""`evenrank measure`: values of measures for runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli.classify import genders_or_predicted
from evenrank.cli.common import (
    Format,
    Missing,
    Order,
    Tokenizer,
    deliver,
    note,
    parse_runs,
    progress_bar,
    split_names,
    split_runs,
)
from evenrank.errors import InputError


class Ties(StrEnum):
    order = "order"
    expected = "expected"


class Only(StrEnum):
    neutral = "neutral"
    female = "female"
    male = "male"
    other = "other"
    all = "all"


def measure_command(
    measures: Annotated[
        list[str],
        typer.Argument(
            metavar="MEASURE...",
            help="As in ARaB@10, RaB(magnitude='boolean')@5, nDCG@10. Existing files among them are runs.",
            show_default=False,
        ),
    ],
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="A run, TREC format. Repeat it for several."),
    ] = None,
    docs: Annotated[
        str | None,
        typer.Option(metavar="DOCS", help="The collection: TSV, JSONL, Parquet or irds:ID; or give --tally."),
    ] = None,
    tally: Annotated[
        str | None, typer.Option(metavar="FILE", help="The coloured collection, from `evenrank tally`.")
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="Words of each group: a name or a file.  [default: rekabsaz2020]")
    ] = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How text becomes words.  [default: words]")
    ] = None,
    fields: Annotated[
        str, typer.Option(help="Fields that make up a document's text, joined with a space.")
    ] = "title,text",
    id_field: Annotated[
        str | None, typer.Option(help="Field of the document id.  [default: doc_id, docno, id, …]")
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="The queries' texts.")] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Relevance judgments, for effectiveness and GSR.")
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="What NFaiRR compares with: a name or file.  [default: the first]"),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Word vectors for GSR, or a table of genderedness.  [default: shipped table]"
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Pairs of words for GSR along another direction; with --vectors."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Group of each document: doc_id, group; for rKL, Skew, AWRF, …"),
    ] = None,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Words for LIWC, a .dic with female and male.  [default: open]"),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Share each group should have: query, a column for each group."),
    ] = None,
    genders: Annotated[
        str | None,
        typer.Option(metavar="FILE|predict", help="Gender of each query: query_id, label; or classify them."),
    ] = None,
    only: Annotated[
        Only | None,
        typer.Option(help="Queries to measure.  [default: neutral for bias, with --genders; else all]"),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(help="Documents the collection lacks: stop, count as word-free, or close the gap."),
    ] = Missing.error,
    ties: Annotated[
        Ties, typer.Option(help="Equal scores: by id, descending, or the exact mean over all orders.")
    ] = Ties.order,
    order: Annotated[Order, typer.Option(help="Sort a run by its scores, or trust its ranks.")] = Order.score,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show the value of every query.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the words, documents and queries behind RaB, ARaB, GSR.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 1 if it holds for a run: 'abs(ARaB@10)>0.1'. May be repeated.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")] = 0.95,
    resamples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples behind the intervals; 0 for none.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    form: Annotated[Format, typer.Option("--format", help="How to print the results.")] = Format.table,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> int:
    """Measure bias and effectiveness of runs, with bootstrap intervals over queries.

    RaB and ARaB: positive toward the second group (male), negative toward the first (female), 0 is
    balance. NFaiRR: from 0 to 1, higher is fairer. GSR: positive where lists follow the gendered language
    of their queries, to be compared with the perfect engine; it needs --queries and (without a depth)
    --qrels.

        evenrank measure ARaB@10 NFaiRR@10 nDCG@10 runs/*.run --docs docs.tsv --qrels qrels.txt
    """
    from evenrank.auditing.gate import exceeded
    from evenrank.cli.rendering import render
    from evenrank.measures.evaluate import measure
    from evenrank.measures.parse import parse_condition
    from evenrank.tables import docs as open_docs

    _check_form(form, explain=explain, per_query=per_query)
    files, wanted = split_runs(measures)
    runs = parse_runs([*files, *(run or [])])
    conditions = [parse_condition(text) for text in fail_if or []]
    with progress_bar("counting") as progress:
        measured = measure(
            runs,
            [*wanted, *(condition.measure for condition in conditions)],
            tally=tally,
            docs=None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field),
            lexicon=lexicon,
            tokenizer=None if tokenizer is None else tokenizer.value,
            queries=queries,
            qrels=qrels,
            background=None if background is None else runs.get(background, background),
            vectors=vectors,
            pairs=pairs,
            labels=labels,
            targets=targets,
            dictionary=dictionary,
            genders=genders_or_predicted(genders, queries),
            only=None if only is None else only.value,
            missing=missing.value,
            ties=ties.value,
            order=order.value,
            confidence=confidence if resamples else None,
            resamples=resamples or 1,
            seed=seed,
            explain=explain,
            progress=progress,
        )
    deliver(render(measured, form, per_query=per_query, confidence=confidence, output=output), output)
    if form is not Format.json:
        for caution in measured.cautions:
            note(f"caution: {caution}")
    failures = exceeded(measured, conditions)
    for line in failures:
        note(f"failed: {line}")
    return int(bool(failures))


def _check_form(form: Format, *, explain: bool, per_query: bool) -> None:
    """Refuse what a form has no place for."""
    if explain and form in (Format.csv, Format.latex):
        raise InputError(f"--explain is not part of --format {form.value}; choose table or json")
    if per_query and form is Format.latex:
        raise InputError("--per-query is not part of --format latex; choose table, json or csv")
