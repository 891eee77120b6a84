"""`evenrank mitigate sweep`: bias against usefulness as a mitigation grows stronger."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, coloured, deliver, progress_bar, split_names
from evenrank.cli.mitigate.constrain import Mode
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.tradeoff import TradeOff


class Method(StrEnum):
    constrain = "constrain"
    interpolate = "interpolate"
    feedback = "feedback"


def sweep_command(
    qrels: Annotated[str, typer.Option(metavar="FILE", help="Relevance judgments.")],
    method: Annotated[
        Method, typer.Option(help="What grows stronger: a bound on bias, λ of scores, or λ of feedback.")
    ] = Method.constrain,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="The run to re-rank, TREC format.")] = None,
    tally: options.TallyFile = None,
    docs: options.OrDocs = None,
    lexicon: options.Lexicon = None,
    tokenizer: options.Cutting = None,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
    mode: Annotated[
        Mode, typer.Option(help="Of constrain: the mean over queries is bounded, or each query.")
    ] = Mode.mean,
    strengths: Annotated[
        str | None,
        typer.Option(metavar="S,S,…", help="Bounds on bias, or λ from 0 to 1.", show_default="ten of them"),
    ] = None,
    bias: Annotated[str, typer.Option(help="As in abs(ARaB@10), abs(RaB@5), NFaiRR@10.")] = "abs(ARaB@10)",
    utility: Annotated[str, typer.Option(help="As in nDCG@10, RR@10, AP.")] = "nDCG@10",
    candidates: Annotated[int, typer.Option(min=1, help="Documents from the top that may move.")] = 100,
    index: Annotated[str | None, typer.Option(metavar="IDX", help="For feedback: the index.")] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="For feedback: the queries.")] = None,
    ranker: Annotated[str, typer.Option(help="For feedback: bm25 or qld.")] = "bm25",
    background: Annotated[
        str | None, typer.Option(metavar="RUN", help="What NFaiRR compares with.", show_default="the run")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose by the share of utility lost, not by significance."),
    ] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Significance of a loss.")] = 0.05,
    confidence: options.Confidence = 0.95,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind the intervals.")] = 2000,
    seed: options.Seed = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Show what each strength of a mitigation costs, mark the Pareto front, and choose a setting.

    The choice is the strongest setting up to which no loss of utility is significant (paired t-tests,
    Holm's correction), or, with --tolerance, up to which no more than that share is lost.

        evenrank mitigate sweep --run bm25.run --docs docs.tsv --qrels qrels.txt
    """
    from evenrank.mitigate.tradeoff import sweep

    if (tally is None) == (docs is None):
        raise InputError("give either --tally or --docs")
    counted = coloured(tally, docs, lexicon, tokenizer, fields=fields, id_field=id_field)
    with progress_bar("sweeping", unit="settings") as progress:
        found = sweep(
            run,
            counted,
            qrels=qrels,
            method=method.value,
            mode=mode.value,
            strengths=None if strengths is None else _numbers(strengths),
            bias=bias,
            utility=utility,
            candidates=candidates,
            index=index,
            queries=queries,
            ranker=ranker,
            background=background,
            tolerance=tolerance,
            alpha=alpha,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    if chart is not None:
        from evenrank.show.charts.tradeoff import tradeoff_figures
        from evenrank.show.exporting import write_sheet

        write_sheet(tradeoff_figures(found), chart)
    deliver(_rendered(found, form, confidence, output), output)


def _numbers(text: str) -> list[float]:
    try:
        return [float(each) for each in split_names(text)]
    except ValueError:
        raise InputError(f"--strengths {text!r}: write numbers with commas between them") from None


def _rendered(found: TradeOff, form: Format, confidence: float, output: Path | None) -> str:
    frame = found.frame()
    if form is Format.csv:
        return frame.write_csv()
    if form is Format.json:
        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import DASH, PLAIN, interval, level, number, p_value

    rows = [
        [
            "none" if at == 0 else f"{row['strength']:.3g}",
            number(row["bias"], ".3f"),
            interval(row["bias_low"], row["bias_high"], PLAIN) or DASH,
            number(row["utility"], ".3f"),
            interval(row["utility_low"], row["utility_high"], PLAIN) or DASH,
            "" if at == 0 else number(row["difference"]),
            "" if at == 0 else p_value(row["p_holm"]),
            " ".join([*(["front"] if row["front"] else []), *(["chosen"] if row["chosen"] else [])]),
        ]
        for at, row in enumerate(frame.iter_rows(named=True))
    ]
    between = f"{level(confidence)} interval"
    headings = ["strength", found.bias, between, found.utility, between, "change", "p (Holm)", ""]
    remarks = [f"{found.method}, {len(found.queries):,} queries"]
    return render_grid(form, headings, rows, remarks=remarks, output=output)
