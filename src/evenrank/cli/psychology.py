"""`evenrank psychology`: how the text for female queries differs from that for male ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, Tokenizer, deliver, genders_or_predicted, parse_runs
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.psychology import Characteristic, JudgmentsAudit, RankingsAudit


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
            help="A ready table of percents, such as LIWC's output, by query or document; or one for each "
            "query gender: female.csv, male.csv, neutral.csv.",
        ),
    ] = None,
    tokenizer: Annotated[Tokenizer, typer.Option(help="How text becomes words.")] = Tokenizer.words,
    at: Annotated[int, typer.Option(min=1, help="With --run: how many documents of each list to read.")] = 10,
    baseline: options.Baseline = None,
    exclude: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Queries to leave out, such as those a classifier learnt from."),
    ] = None,
    grade: Annotated[int, typer.Option(help="From which relevance on a document counts.")] = 1,
    balance: Annotated[
        bool, typer.Option(help="Draw equally many queries of each gender, as many as the fewest.")
    ] = True,
    confidence: options.Confidence = 0.95,
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
    from evenrank.measures.disparities import refuse_few
    from evenrank.psychology import audit_judgments, audit_rankings

    ready = None if not scores else scores[0] if len(scores) == 1 else list(scores)
    found: JudgmentsAudit | RankingsAudit
    if run:
        if genders is None:
            raise InputError("whose queries are female and male? give --genders")
        if qrels is not None:
            raise InputError("--qrels audits judgments, --run rankings; give one of them")
        found = audit_rankings(
            parse_runs(run),
            genders=genders_or_predicted(genders, queries),
            docs=docs,
            scores=ready,
            dictionary=dictionary,
            tokenizer=tokenizer.value,
            at=at,
            baseline=baseline,
            exclude=exclude,
            balance=balance,
            confidence=confidence,
            seed=seed,
        )
    else:
        found = audit_judgments(
            genders=genders_or_predicted(genders, queries),
            qrels=qrels,
            docs=docs,
            scores=ready,
            dictionary=dictionary,
            tokenizer=tokenizer.value,
            exclude=exclude,
            grade=grade,
            balance=balance,
            confidence=confidence,
            seed=seed,
        )
    refuse_few(found.queries)
    if chart is not None:
        from evenrank.show.charts.psychology import psychology_figures
        from evenrank.show.report import write_sheet

        write_sheet(psychology_figures(found), chart)
    deliver(_rendered(found, form, confidence, output), output)


def _rendered(
    found: JudgmentsAudit | RankingsAudit, form: Format, confidence: float, output: Path | None
) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.psychology import JudgmentsAudit
    from evenrank.show.numbers import level

    if form is Format.json:
        return json.dumps(found.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return found.frame().write_csv()
    headings = [
        "characteristic",
        *found.queries,
        "difference",
        f"{level(confidence)} interval",
        "g",
        "p",
        "p Holm",
    ]
    remarks = [", ".join(f"{count:,} {gender}" for gender, count in found.queries.items()) + " queries"]
    remarks += [f"{count:,} queries left out: {reason}" for reason, count in found.left_out.items()]
    remarks.append("difference: percentage points, male − female; † only before the correction over all")
    if isinstance(found, JudgmentsAudit):
        if found.affiliation is False:
            remarks.append("caution: gender words do not follow the queries' labels; check the labels")
        rows = _rows(found.characteristics, list(found.queries))
        return render_grid(form, headings, rows, remarks=remarks, output=output)
    rows = []
    for name, characteristics in found.runs.items():
        compared = name != found.baseline
        for one, cells in zip(characteristics, _rows(characteristics, list(found.queries)), strict=True):
            shrunk = found.reduction(name, one.name).reduction if compared else None
            rows.append([name, *cells, f"{shrunk:+.0%}" if shrunk is not None else ""])
    remarks.append(f"reduction: how much smaller |difference| is than that of {found.baseline}")
    return render_grid(form, ["run", *headings, "reduction"], rows, remarks=remarks, left=2, output=output)


def _rows(characteristics: tuple[Characteristic, ...], genders: list[str]) -> list[list[str]]:
    from evenrank.show.numbers import interval, mirrored, number, p_value

    rows = []
    for one in characteristics:
        indent = "" if one.name == one.process else "  "
        holm = p_value(one.p_holm) + ("†" if one.verdict.endswith("only)") else "")
        turned = mirrored(one.welch)  # what is shown has one sign: positive is male
        bounds = interval(turned.low, turned.high)
        means = [number(one.means.get(gender), ".2f") for gender in genders]
        tests = [number(turned.effect, "+.2f"), p_value(one.welch.p), holm]
        rows.append([indent + one.name, *means, number(turned.difference), bounds, *tests])
    return rows
