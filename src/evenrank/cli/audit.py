"""`evenrank audit`: everything the inputs allow, as a report to read; `plan`: how many queries it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.bundling import Asked, Sealing, seal
from evenrank.cli.collection import ranked_runs
from evenrank.cli.common import (
    Format,
    deliver,
    genders_or_predicted,
    note,
    parse_runs,
    progress_bar,
    split_runs,
)
from evenrank.cli.streams import screen_width, visible
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.tradeoff import TradeOff


@options.takes_inputs
def audit_command(
    asked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|MEASURE]...",
            help="Runs, and measures such as ARaB@10.",
            show_default="all measures that the inputs allow",
        ),
    ] = None,
    *,
    given: options.GivenInputs,
    ranker: options.Rankers = None,
    depth: options.RankedDepth = 100,
    baseline: options.Baseline = None,
    fail_if: options.FailIf = None,
    judging: options.Gate = None,
    delta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=VALUE",
            help="What counts as small: also test whether leans and changes are smaller than this. "
            "Repeatable.",
            show_default="the verdict says from which δ on it would be",
        ),
    ] = None,
    only: options.OnlyQueries = None,
    confidence: options.Confidence = 0.95,
    resamples: options.Resamples = 2000,
    seed: options.Seed = 0,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Results for variants of queries (see compare-variants), shown in a section of their own.",
        ),
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PATH",
            help="A stage of the ranking, candidates first; the report shows what each stage adds. Repeat "
            "it in order.",
        ),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RANKER",
            help="A ranker to test on the collection and its mirror image: is it the ranker, or the "
            "texts? Repeatable.",
        ),
    ] = None,
    selected: options.Selected = None,
    title: Annotated[
        str | None, typer.Option(help="What the report is called.", rich_help_panel=options.OUTPUT)
    ] = None,
    tradeoff: Annotated[
        bool,
        typer.Option(
            "--tradeoff",
            help="Show in the report (not in a bundle) what less bias would cost each run; needs --qrels.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    charts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder to write every chart to, as SVG, PNG, PDF and CSV.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write verdict, gate and table to, as Markdown for a build summary.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write the gate to, as JUnit XML with one test for each bound.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    per_query: Annotated[
        bool,
        typer.Option(
            "--per-query", help="Keep the value of every query in audit.json.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
    sealing: Sealing,
    form: options.Form = Format.table,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for report.html, audit.json and tables.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> int:
    """Audit runs for bias: measure, compare with a baseline, explain, and judge.

    Writes DIR/report.html (to read: one file, no network), DIR/audit.json (to keep), DIR/values.csv and
    DIR/values.tex, and prints the table and the verdict.

        evenrank audit --docs docs.tsv --queries queries.tsv --qrels qrels.txt --run bm25.run --run new.run \\
            --baseline bm25 --fail-if 'abs(ARaB@10)>0.1' -o audit

    Instead of runs, or in addition, rankers can search the collection: --ranker bm25 --ranker MODEL. Their
    results are kept in DIR/runs.

    With --bundle FILE.zip it also writes an archive that others can check with `evenrank verify`; the exit
    code is 4 if a field that its profile needs is missing.
    """
    files, measures = split_runs(asked or [])
    sealing.check()
    for folder in (output, charts):
        _check_folder(folder)
    runs = given.runs(files) if files or given.run or not ranker else {}
    if ranker:
        runs |= ranked_runs(ranker, given, depth, output, taken=runs)
    wanted = Asked(
        runs=runs,
        measures=tuple(measures),
        given=given,
        baseline=baseline,
        fail_if=tuple(fail_if or ()),
        judging=None if judging is None else judging.value,
        delta=tuple(delta or ()),
        only=None if only is None else only.value,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        selected=selected,
        variants=variants,
        stages=parse_runs(stage) if stage else {},
        rankers=tuple(mirror or ()),
        title=title,
        per_query=per_query,
    )
    if tradeoff and given.qrels is None:
        raise InputError("--tradeoff weighs bias against usefulness; give --qrels too")
    if tradeoff and output is None and charts is None:
        raise InputError("--tradeoff is drawn in the report; give -o DIR or --charts DIR too")
    found = wanted.audit()
    more = dict(wanted.more)
    if tradeoff:
        more["tradeoff"] = _tradeoffs(wanted)
    if output is not None:
        from evenrank.data.files import make_folder

        make_folder(output)
        found.report(output / "report.html", **more)
        found.to_json(output / "audit.json", per_query=per_query)
        deliver(found.csv(), output / "values.csv")
        deliver(found.latex(), output / "values.tex")
    if charts is not None:
        found.charts(charts, **more)
    if markdown is not None:
        deliver(found.markdown(), markdown)
    if junit is not None:
        deliver(found.junit(), junit)
    printed = {
        Format.table: lambda: visible(f"{found.text(screen_width())}\n"),
        Format.json: lambda: found.to_json(per_query=per_query),
        Format.csv: found.csv,
        Format.latex: found.latex,
    }
    deliver(printed[form](), None)
    if form is Format.table:
        for warning in found.warnings:
            note(f"warning: {warning}")
        if output is not None:
            note(f"report: {output / 'report.html'}")
    sealed = 0 if sealing.bundle is None else seal(wanted, found, sealing)
    for line in found.failures:
        note(f"failed: {line}")
    return sealed if found.passed else 1


def _tradeoffs(wanted: Asked) -> list[TradeOff]:
    """What a growing bound on the mean lean costs each of the first runs, on the queries of the audit."""
    import polars as pl

    from evenrank.data.read import read_genders
    from evenrank.data.runs import read_run
    from evenrank.mitigate.sweep import sweep
    from evenrank.show.figure import RUNS

    given, runs = wanted.given, list(wanted.runs.items())
    if (given.tally is None) == (given.docs is None):
        raise InputError("--tradeoff needs --docs or --tally, one of them")
    tally = given.counted()
    genders = genders_or_predicted(given.genders, given.queries)
    label = wanted.only or ("all" if genders is None else "neutral")
    labels = {} if genders is None else dict(read_genders(genders).iter_rows())
    chosen = [query for query, found in labels.items() if found == label]
    intervals: dict[str, Any] = {
        "confidence": wanted.confidence,
        "resamples": wanted.resamples or 1,
        "seed": wanted.seed,
    }
    found = []
    with progress_bar("weighing", unit="runs") as progress:
        for done, (name, path) in enumerate(runs[:RUNS], 1):
            run = read_run(path, order=given.order.value)
            run = run if label == "all" else run.filter(pl.col("query_id").is_in(chosen))
            swept = sweep(run, tally, qrels=given.qrels, **intervals)
            found.append(replace(swept, method=f"constrain {name}" if len(runs) > 1 else swept.method))
            if progress is not None:
                progress(done, min(len(runs), RUNS))
    return found


def _check_folder(path: Path | None) -> None:
    """Say before the work, not after it, that a folder cannot be one."""
    if path is not None and path.exists() and not path.is_dir():
        raise InputError("is a file; name a folder", path=path)


@options.takes_inputs
def plan_command(
    effect: Annotated[
        float, typer.Option(help="The smallest lean that matters, in units of the measure, such as 0.05.")
    ],
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="A run from which to take the spread over queries."),
    ] = None,
    sd: Annotated[
        float | None, typer.Option(metavar="S", help="Or the standard deviation of single queries.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(metavar="MEASURE", help="The measure to use on the run.", show_default="ARaB@10"),
    ] = None,
    given: options.GivenInputs,
    only: options.OnlyQueries = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="Significance level of the test for a lean.")
    ] = 0.05,
    power: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Chance of finding a lean that exists.")
    ] = 0.8,
    tests: Annotated[int, typer.Option(min=1, help="Number of tests that share the level.")] = 1,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> int:
    """How many queries does it take to find a lean of this size, or to show that there is none?

    evenrank plan --effect 0.05 --from bm25.run --docs docs.tsv
    evenrank plan --effect 0.05 --sd 0.6
    """
    from evenrank.auditing.certainty import plan

    if form not in (Format.table, Format.json):
        raise InputError("a plan is printed as table or json")
    if given.run:
        raise InputError("--run: a plan takes its run with --from")
    run = None if source is None else {source: source}
    if run is None and (measure is not None or only is not None or given != type(given)()):
        raise InputError("options that say how to measure a run go with --from, not with --sd")
    inputs = {} if run is None else given.keywords(run)
    with progress_bar("counting", unit="bytes") as progress:
        more: dict[str, Any] = (
            {} if run is None else {"progress": progress, "only": None if only is None else only.value}
        )
        found = plan(
            effect,
            sd=sd,
            run=source,
            measure=measure or "ARaB@10",
            alpha=alpha,
            power=power,
            tests=tests,
            **inputs,
            **more,
        )
    deliver(str(found) if form is Format.table else json.dumps(found.to_dict(), indent=2), output)
    return 0
