"""`evenrank psychology` and `evenrank disparity`: what queries of one gender get that others do not.

Psychology says how the text for female queries differs from that for male ones; disparity, whether one gender
is served better, and whether its queries are closer to their documents.
"""

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

    from evenrank.measures.association import Association
    from evenrank.measures.disparity import Disparities
    from evenrank.psychology import PsychologyAudit


def psychology_command(
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Relevance judgments: audit the judged documents.")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="Audit what a run returns instead. Repeat it to compare."),
    ] = None,
    genders: options.Genders = None,
    queries: options.Queries = None,
    docs: options.Docs = None,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A LIWC-style .dic.", show_default="the open dictionary"),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="An existing table of percentages by query, such as LIWC's output; or one for each query "
            "gender: female.csv, male.csv, neutral.csv.",
        ),
    ] = None,
    at: Annotated[int, typer.Option(min=1, help="With --run: how many documents of each list to read.")] = 10,
    baseline: options.Baseline = None,
    balance: Annotated[
        bool, typer.Option(help="Draw the same number of queries of each gender: as many as the rarest has.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the balanced sample and the bootstrap.")] = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Compare psychological characteristics of the text for female and for male queries.

    Percent of the words that belong to each category, mean over queries; positive differences mean more of
    it for male queries; in JSON and CSV, as in the papers, more for female ones.
    p by Welch's t-test, corrected (Holm) over all characteristics.

        evenrank psychology --qrels qrels.txt --genders genders.tsv --docs docs.tsv
        evenrank psychology --scores female.csv --scores male.csv --scores neutral.csv
        evenrank psychology --run bm25.run --run fair.run --genders genders.tsv --docs docs.tsv
    """
    from evenrank.measures.disparity import require_enough_queries
    from evenrank.psychology import audit_judgments, audit_rankings

    common: dict[str, Any] = {
        "genders": genders_or_predicted(genders, queries),
        "docs": docs,
        "dictionary": dictionary,
        "balance": balance,
        "seed": seed,
    }
    if run:
        if genders is None:
            raise InputError("whose queries are female and male? give --genders")
        if qrels is not None:
            raise InputError("--qrels audits judgments, --run rankings; give one of them")
        result = audit_rankings(parse_runs(run), at=at, baseline=baseline, **common)
    else:
        files: Any = scores if scores is None or len(scores) > 1 else scores[0]
        result = audit_judgments(qrels=qrels, scores=files, **common)
    require_enough_queries(result.queries)
    from evenrank.cli.rendering import draw

    draw(result, chart)
    deliver(_rendered(result, form, output), output)


def _rendered(result: PsychologyAudit, form: Format, output: Path | None) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import counted, interval, number, p_value

    if form is Format.json:
        return json.dumps(result.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return result.frame().write_csv()
    genders = list(result.queries)
    headings = ["characteristic", *genders, "difference", "95% interval", "g", "p", "p Holm"]
    remarks = [", ".join(f"{count:,} {gender}" for gender, count in result.queries.items()) + " queries"]
    for reason, count in result.left_out.items():
        remarks.append(f"{counted(count, 'query', 'queries')} left out: {reason}")
    remarks.append("difference: percentage points, male − female; † significant only before correction")
    if result.at is None and result.affiliation is False:
        remarks.append("warning: gender words do not follow the queries' labels; check the labels")
    rows = []
    for row in result.mirrored().iter_rows(named=True):
        name = row["characteristic"]
        cells = [name if name == row["process"] else f"  {name}"]
        cells += [number(row[gender], ".2f") for gender in genders]
        cells += [number(row["difference"]), interval(row["low"], row["high"]), number(row["g"], "+.2f")]
        cells += [p_value(row["p"]), p_value(row["p_holm"]) + "†" * row["verdict"].endswith("only)")]
        if result.at is not None:
            reduction = row["reduction"]
            cells = [row["run"], *cells, "" if reduction is None else f"{reduction:+.0%}"]
        rows.append(cells)
    if result.at is None:
        return render_grid(form, headings, rows, remarks=remarks, output=output)
    remarks.append(f"reduction: how much smaller |difference| is than that of {result.baseline}")
    return render_grid(form, ["run", *headings, "reduction"], rows, remarks=remarks, left=2, output=output)


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

    The difference is male − female, so positive values favour male queries; it is also given in percent of
    the lower of the two. With several runs, it is tested whether a run has less disparity than the baseline.

        evenrank disparity --run bm25.run --run fair.run --qrels qrels.txt --genders genders.tsv
        evenrank disparity --association female=female.tsv --association male=male.tsv
    """

    if association:
        if run or qrels:
            raise InputError("--association compares scores, --run effectiveness; give one of them")
        from evenrank.measures.association import association as associate

        files = _by_gender(association, genders_or_predicted(genders, queries))
        compared = associate(**files, bins=bins, confidence=confidence)
        from evenrank.cli.rendering import draw

        draw(compared, chart)
        deliver(_associated(compared, form, output), output)
        return
    if chart is not None:
        raise InputError("--chart draws the histograms of --association; give that too")
    for name, given in (("--run", run), ("--qrels", qrels), ("--genders", genders)):
        if not given:
            raise InputError(f"disparity needs {name}")
    from evenrank.measures.disparity import disparity, require_enough_queries

    result = disparity(
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
    require_enough_queries(result.results[0].queries)
    deliver(_compared(result, form, confidence, output), output)


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


def _compared(
    found: Disparities,
    form: Format,
    confidence: float,
    output: Path | None,
) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import counted, interval, level, number, p_phrase, p_value

    if form is Format.json:
        return json.dumps(found.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return found.frame().write_csv()
    between = f"{level(confidence)} interval"
    headings = ["measure", "run", "male", "female", "n", "difference", between]
    headings += ["%", "g", "p Welch", "p perm."]
    paired = any(one.paired for one in found)
    rows = []
    for one in found:
        bounds = interval(one.welch.low, one.welch.high)
        means = [number(one.means[gender], ".4f") for gender in ("male", "female")]
        tests = [p_value(one.welch.p), p_value(one.permutation.p)]
        tests += [p_value(one.paired.p if one.paired else None)] if paired else []
        effect = [number(one.percent, "+.2f"), number(one.welch.effect, "+.2f")]
        sides = " + ".join(f"{one.queries[gender]:,}" for gender in ("male", "female"))
        difference = number(one.difference, "+.4f")
        rows.append([str(one.measure), one.run, *means, sides, difference, bounds, *effect, *tests])
    first = found.results[0]
    remarks = [", ".join(f"{count:,} {gender}" for gender, count in first.queries.items()) + " queries"]
    remarks += [
        f"{counted(count, 'query', 'queries')} left out: {reason}" for reason, count in found.left_out.items()
    ]
    for (name, of), change in found.changes.items():
        moved = change.change
        many = counted(moved.n, "query", "queries")
        shrunk = "" if change.reduction is None else f", disparity {-change.reduction:+.0%}"
        remarks.append(
            f"{of}, {name} against {found.baseline}: {number(moved.difference, '+.4f')} "
            f"{interval(moved.low, moved.high, '+.4f')}, {p_phrase(moved.p)}{shrunk}, {many}"
        )
    columns = [*headings, "p paired"] if paired else headings
    return render_grid(form, columns, rows, remarks=remarks, left=2, output=output)


def _associated(found: Association, form: Format, output: Path | None) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import interval, number, p_phrase

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
        f"{found.welch.effect_name} = {number(found.welch.effect)}, {p_phrase(found.welch.p)}",
        f"Kolmogorov–Smirnov {found.kolmogorov_smirnov:.4f} ({p_phrase(found.p)}), "
        f"Wasserstein {found.wasserstein:.4f}, overlap {found.overlap:.3f} in {len(found.edges) - 1} bins",
    ]
    return render_grid(form, ["queries", "pairs", "mean", "median"], rows, remarks=remarks, output=output)
