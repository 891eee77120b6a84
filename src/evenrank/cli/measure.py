"""`evenrank measure`: values of measures for runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, note, progress_bar, split_runs
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.measures.parse import Condition
    from evenrank.measures.results import Measurements


@options.takes_inputs
def measure_command(
    measures: Annotated[
        list[str],
        typer.Argument(
            metavar="MEASURE...",
            help="As in ARaB@10, RaB(magnitude='boolean')@5, nDCG@10. Existing files among them are runs.",
            show_default=False,
        ),
    ],
    given: options.GivenInputs,
    only: options.OnlyQueries = None,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", help="Show the value of every query.", rich_help_panel=options.OUTPUT),
    ] = False,
    by_query: Annotated[
        bool,
        typer.Option(
            "--by-query",
            help="Show only the values by query: one row per query, one column per measure and run.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show the words, documents and queries behind the values.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    fail_if: options.FailIfValue = None,
    judging: Annotated[
        options.Judging,
        typer.Option(
            "--gate",
            help="What --fail-if looks at: the value itself, or its one-sided 95% bound.",
            rich_help_panel=options.GATE,
        ),
    ] = options.Judging.point,
    confidence: options.Confidence = 0.95,
    resamples: options.Resamples = 2000,
    seed: options.Seed = 0,
    engine: options.WhichEngine = options.Engine.here,
    master: options.Master = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> int:
    """Measure bias and effectiveness of runs, with bootstrap intervals over queries.

    RaB and ARaB: positive toward the second group (male), negative toward the first (female), 0 is
    balance. NFaiRR: from 0 to 1, higher is fairer. GSR: positive if results follow the gendered language
    of their queries; compare it with the perfect engine. It needs --queries and (without a depth)
    --qrels.

        evenrank measure ARaB@10 NFaiRR@10 nDCG@10 runs/*.run --docs docs.tsv --qrels qrels.txt
    """
    from evenrank.cli.rendering import render, render_by_query
    from evenrank.data.read import read_queries
    from evenrank.measures.evaluate import measure
    from evenrank.measures.parse import parse_condition

    _check_form(form, explain=explain, per_query=per_query)
    if by_query and (explain or per_query):
        raise InputError("--by-query cannot be combined with --explain or --per-query")
    files, wanted = split_runs(measures)
    runs = given.runs(files)
    conditions = [parse_condition(text) for text in fail_if or []]
    options.check_engine(engine, master)
    if engine is options.Engine.spark and explain:
        raise InputError("--explain reads the documents, which Spark's workers lack; leave --engine out")
    if engine is options.Engine.spark:
        from evenrank.measures.evaluate import listed_measures
        from evenrank.spark import check_measures

        check_measures(listed_measures([*wanted, *(condition.subject for condition in conditions)]))
    with progress_bar("counting", unit="bytes") as progress:
        opened, keywords = (
            given.on_spark(runs, master)
            if engine is options.Engine.spark
            else (runs, {"progress": progress, **given.keywords(runs)})
        )
        measured = measure(
            opened,
            [*wanted, *(condition.subject for condition in conditions)],
            only=None if only is None else only.value,
            confidence=confidence if resamples else None,
            resamples=resamples or 1,
            seed=seed,
            explain=explain,
            **keywords,
        )
    failures = _failures(measured, conditions, judging)
    if by_query:
        texts = {} if given.queries is None else dict(read_queries(given.queries).iter_rows())
        deliver(render_by_query(measured, form, queries=texts, output=output), output)
    else:
        deliver(render(measured, form, per_query=per_query, confidence=confidence, output=output), output)
    if form is not Format.json:
        for warning in measured.warnings:
            note(f"warning: {warning}")
    for line in failures:
        note(f"failed: {line}")
    return int(bool(failures))


def _failures(
    measured: Measurements, conditions: list[Condition], judging: options.Judging
) -> tuple[str, ...]:
    """What does not keep to the bounds, a line each."""
    if not conditions:
        return ()
    from evenrank.auditing import gate

    return gate.failures(gate.check(measured, conditions, judging=judging.value))


def _check_form(form: Format, *, explain: bool, per_query: bool) -> None:
    """Refuse what a form has no place for."""
    if explain and form in (Format.csv, Format.latex):
        raise InputError(f"--explain is not part of --format {form.value}; choose table or json")
    if per_query and form is Format.latex:
        raise InputError("--per-query is not part of --format latex; choose table, json or csv")
