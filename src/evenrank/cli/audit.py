"""`evenrank audit`: everything the inputs allow, as a report to read and JSON to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli import options
from evenrank.cli.bundling import Asked, Sealing, seal
from evenrank.cli.common import Format, deliver, note, split_runs
from evenrank.cli.streams import visible
from evenrank.errors import InputError


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
    baseline: options.Baseline = None,
    fail_if: options.FailIf = None,
    judging: options.Gate = None,
    only: options.OnlyQueries = None,
    confidence: options.Confidence = 0.95,
    resamples: options.Resamples = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Results for variants of queries, see compare-variants: a section of their own.",
        ),
    ] = None,
    selected: options.Selected = None,
    title: Annotated[str | None, typer.Option(help="What the report is called.")] = None,
    charts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write every chart there too: SVG, PNG, PDF and CSV."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write verdict, gate and table there as Markdown, for a build page."
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the gate there as JUnit XML, one test for each bound."),
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Keep the value of every query in audit.json.")
    ] = False,
    sealing: Sealing,
    form: options.Form = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for report.html, audit.json and tables."),
    ] = None,
) -> int:
    """Audit runs for bias: measure, compare with a baseline, explain, and judge.

    Writes DIR/report.html (to read; one file, no network), DIR/audit.json (to keep), DIR/values.csv and
    DIR/values.tex, and prints the table and the verdict.

        evenrank audit --docs docs.tsv --queries queries.tsv --qrels qrels.txt --run bm25.run --run new.run \\
            --baseline bm25 --fail-if 'abs(ARaB@10)>0.1' -o audit

    With --bundle FILE.zip also an archive that others can check with `evenrank verify`; exit code 4 where a
    field that its profile needs is missing.
    """
    files, measures = split_runs(asked or [])
    sealing.check()
    for folder in (output, charts):
        _check_folder(folder)
    wanted = Asked(
        runs=given.runs(files),
        measures=tuple(measures),
        given=given,
        baseline=baseline,
        fail_if=tuple(fail_if or ()),
        judging=None if judging is None else judging.value,
        only=None if only is None else only.value,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        selected=selected,
        variants=variants,
        title=title,
        per_query=per_query,
    )
    found = wanted.audit()
    if output is not None:
        _folder(output)
        found.report(output / "report.html", **wanted.more)
        found.to_json(output / "audit.json", per_query=per_query)
        deliver(found.csv(), output / "values.csv")
        deliver(found.latex(), output / "values.tex")
    if charts is not None:
        found.charts(charts)
    if markdown is not None:
        deliver(found.markdown(), markdown)
    if junit is not None:
        deliver(found.junit(), junit)
    printed = {
        Format.table: lambda: visible(f"{found}\n"),
        Format.json: lambda: found.to_json(per_query=per_query),
        Format.csv: found.csv,
        Format.latex: found.latex,
    }
    deliver(printed[form](), None)
    if form is Format.table:
        for caution in found.cautions:
            note(f"caution: {caution}")
        if output is not None:
            note(f"report: {output / 'report.html'}")
    sealed = 0 if sealing.bundle is None else seal(wanted, found, sealing)
    for line in found.failures:
        note(f"failed: {line}")
    return sealed if found.passed else 1


def _check_folder(path: Path | None) -> None:
    """Say before the work, not after it, that a folder cannot be one."""
    if path is not None and path.exists() and not path.is_dir():
        raise InputError("is a file; name a folder", path=path)


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", path=path) from error
