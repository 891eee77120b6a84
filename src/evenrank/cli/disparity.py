"""`evenrank disparity`: are queries of one gender served better, and are they closer to their documents?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, genders_or_predicted, parse_runs
from evenrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from evenrank.measures.associating import Association
    from evenrank.measures.disparities import Disparities


def disparity_command(
    run: options.Runs = None,
    qrels: Annotated[str | None, typer.Option(metavar="FILE", help="Relevance judgments.")] = None,
    genders: options.Genders = None,
    queries: options.Queries = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="An effectiveness measure. Repeat it for several.", show_default="RR@10"),
    ] = None,
    baseline: options.Baseline = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Matched queries, male then female: adds a paired t-test."),
    ] = None,
    association: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GENDER=]FILE",
            help="Scores of queries with their own relevant documents (query_id, score): compares the two "
            "distributions instead. One file for each gender, or one for both with --genders.",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Bins of the histograms, with --association.")] = 9,
    confidence: options.Confidence = 0.95,
    draws: Annotated[int, typer.Option(min=100, help="Random arrangements of a permutation test.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the permutation test.")] = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Compare how well male and female queries are served.

    The difference is male − female, so that positive values favour male queries; in percent of the lower of
    the two. With several runs, also whether a run has less of it than the baseline.

        evenrank disparity --run bm25.run --run fair.run --qrels qrels.txt --genders genders.tsv
        evenrank disparity --association female=female.tsv --association male=male.tsv
    """

    if association:
        if run or qrels:
            raise InputError("--association compares scores, --run effectiveness; give one of them")
        from evenrank.measures.associating import association as associate

        files = _by_gender(association, genders_or_predicted(genders, queries))
        compared = associate(**files, bins=bins, confidence=confidence)
        if chart is not None:
            from evenrank.show.charts.psychology import association_figures
            from evenrank.show.report import write_sheet

            write_sheet(association_figures(compared), chart)
        deliver(_associated(compared, form, output), output)
        return
    if chart is not None:
        raise InputError("--chart draws the histograms of --association; give that too")
    for name, given in (("--run", run), ("--qrels", qrels), ("--genders", genders)):
        if not given:
            raise InputError(f"disparity needs {name}")
    from evenrank.measures.disparities import disparity, refuse_few

    found = disparity(
        parse_runs(run or []),
        qrels,
        genders_or_predicted(genders, queries),
        measure=measure or ["RR@10"],
        baseline=baseline,
        pairs=pairs,
        confidence=confidence,
        draws=draws,
        seed=seed,
    )
    refuse_few(found.found[0].queries)
    deliver(_compared(found, form, confidence, output), output)


def _by_gender(given: list[str], genders: pl.DataFrame | str | None) -> dict[str, Any]:
    if len(given) == 1:
        return {"female": given[0], "genders": genders}
    files: dict[str, Any] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = Path(text).name.partition(".")[0], text
        if name not in ("female", "male") or name in files:
            raise InputError(f"--association {text!r}: write female=FILE and male=FILE, each once")
        files[name] = path
    return files


def _compared(found: Disparities, form: Format, confidence: float, output: Path | None) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import interval, level, number, p_said, p_value

    if form is Format.json:
        return json.dumps(found.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return found.frame().write_csv()
    between = f"{level(confidence)} interval"
    headings = ["measure", "run", "male", "female", "difference", between, "%", "g", "p Welch", "p perm."]
    paired = any(one.paired for one in found)
    rows = []
    for one in found:
        bounds = interval(one.welch.low, one.welch.high)
        means = [number(one.means[gender], ".4f") for gender in ("male", "female")]
        tests = [p_value(one.welch.p), p_value(one.permutation.p)]
        tests += [p_value(one.paired.p if one.paired else None)] if paired else []
        effect = [number(one.percent, "+.2f"), number(one.welch.effect, "+.2f")]
        rows.append(
            [str(one.measure), one.run, *means, number(one.difference, "+.4f"), bounds, *effect, *tests]
        )
    first = found.found[0]
    remarks = [", ".join(f"{count:,} {gender}" for gender, count in first.queries.items()) + " queries"]
    remarks += [f"{count:,} queries left out: {reason}" for reason, count in found.left_out.items()]
    for change in found.changes:
        moved = change.change
        shrunk = "" if change.reduction is None else f", disparity {-change.reduction:+.0%}"
        remarks.append(
            f"{change.measure}, {change.run} against {change.baseline}: {number(moved.difference, '+.4f')} "
            f"{interval(moved.low, moved.high, '+.4f')}, {p_said(moved.p)}{shrunk}"
        )
    columns = [*headings, "p paired"] if paired else headings
    return render_grid(form, columns, rows, remarks=remarks, left=2, output=output)


def _associated(found: Association, form: Format, output: Path | None) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import interval, number, p_said

    if form is Format.json:
        return json.dumps(found.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return found.frame().write_csv()
    rows = [
        [gender, f"{found.pairs[gender]:,}", f"{found.means[gender]:.2f}", f"{found.medians[gender]:.2f}"]
        for gender in found.pairs
    ]
    remarks = [
        f"male − female: {number(found.welch.difference)} "
        f"{interval(found.welch.low, found.welch.high)}, "
        f"{found.welch.effect_name} = {number(found.welch.effect)}, {p_said(found.welch.p)}",
        f"Kolmogorov–Smirnov {found.kolmogorov_smirnov:.4f} ({p_said(found.p)}), "
        f"Wasserstein {found.wasserstein:.4f}, overlap {found.overlap:.3f} in {len(found.edges) - 1} bins",
    ]
    return render_grid(form, ["queries", "pairs", "mean", "median"], rows, remarks=remarks, output=output)
