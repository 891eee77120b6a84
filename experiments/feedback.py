"""Does feedback from documents of little bias make searches less biased, and at what cost? (thesis, 4.1)"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

import evenrank as er
from evenrank.mitigate.feedback import FeedbackSweep, expanded_queries, side_by_side
from evenrank.rankers.indexing import cached_index
from evenrank.show.charts.theme import named, run_colour, zero_line
from evenrank.text.lexicon import female_and_male
from experiments.common import LEVEL, Results

PAPER = "Bigdeli, thesis 4.1"
CONTENT = "Figures 4.1-4.7, Tables 4.1-4.5"
COLLECTIONS = {"time": None, "squad": "test", "wiki": "test"}
LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5)
BIAS = {"TF ARaB": "ARaB@10", "Boolean ARaB": "ARaB(magnitude='boolean')@10", "LIWC %": "LIWC@10"}
MARGIN = 0.05
"""The share of AP that may be lost where the thesis says that it does not change."""


def run(results: Results) -> None:
    results.differs(
        "TIME, SQuAD sentences and Wikipedia passages instead of Robust04, Gov2, ClueWeb09 and ClueWeb12; "
        "our own BM25 and RM3, not tuned; the female and male words of the open dictionary instead of "
        "LIWC's. Means of ARaB are signed, as in the thesis; tests and shares of queries are of |ARaB|."
    )
    results.differs(
        "relevance and |bias| are scaled to [0, 1] in each query before λ weighs them. Equation 4.1 as "
        "printed scales neither, so that λ weighs scores of 10 or 20 against biases of 1 or 2: the rows "
        "'Eq. 4.1 as printed' (normalise=False)."
    )
    names = list(COLLECTIONS)
    if results.quick:
        results.leave_out(f"{names.pop()}, the largest collection")
    released = [
        expanded_queries(results.path("data", "expanded-queries", f"robust04.{name}.tsv"))
        for name in ("rm3", "bias-aware")
    ]
    curves, falls, bias, shares, terms = [], [], [], [], _terms("Robust04", *released)
    for name in names:
        data = er.load(results.path("data", name), split=COLLECTIONS[name])
        index = cached_index(data.docs)
        given: dict[str, Any] = {"qrels": data.qrels, "measures": ["AP", *BIAS.values()]}
        sweep = er.feedback(index, data.queries, lambdas=LAMBDAS, **given)
        printed = er.feedback(index, data.queries, lambdas=[0.5], normalise=False, **given)
        curve = [_point(name, sweep, strength) for strength in (0.0, *LAMBDAS)]
        first = curve[0]["ARaB@10"]
        fall = {f"λ {row['λ']}": 100 * (first - row["ARaB@10"]) / row["ARaB@10"] for row in curve[1:]}
        falls.append({"collection": name, **fall, "n": curve[0]["n"]})
        useful, biased = ([row[f"p ({each})"] for row in curve[1:]] for each in ("AP", "|ARaB@10|"))
        text = f"AP does not change significantly at any λ up to 0.5, {name}"
        results.fact(text, min(useful) >= LEVEL, f"smallest corrected p = {min(useful):.3f}", curve[0]["n"])
        text = f"|ARaB@10| changes significantly from λ 0.1 on, {name}"
        results.fact(text, max(biased) < LEVEL, f"largest corrected p = {max(biased):.3f}", curve[0]["n"])
        curves += curve
        bias += _systems(name, sweep, printed)
        shares.append(_queries(results, name, sweep))
        both = sweep.steps[0.0].expanded, sweep.steps[0.5].expanded
        terms += _terms(name, *both, stem=lambda word: (index.analyzer.terms(word) or [None])[0])  # noqa: B023
    results.table("Figures 4.1 and 4.3: AP and bias by λ", curves)
    title = "Figure 4.2: decrease of the mean ARaB@10 in percent of the new value"
    results.table(title, falls, published="Figure 4.2", digits=0)
    results.table("Tables 4.1 and 4.2: bias by system", bias, published="Tables 4.1-4.2", digits=2)
    title = "Figures 4.4 to 4.7: queries whose |ARaB@10| falls and rises at λ 0.5"
    results.table(title, shares, published="Figures 4.4-4.7", digits=0)
    title = "Tables 4.3 and 4.4: gendered terms of expanded queries (Robust04: the thesis' own queries)"
    results.table(title, terms, published="Tables 4.3-4.4", digits=2)
    gendered = {term for side in released for term in er.gendered_terms(side)["term"]}
    examples = side_by_side(*released, gendered, top=8).rename({"before": "RM3", "after": "bias-aware"})
    rows = examples.unpivot(["RM3", "bias-aware"], index="query_id", variable_name="system")
    title = "Table 4.5: Robust04's queries that lose most weight of gendered terms (in brackets)"
    results.table(title, rows.sort("query_id", "system").to_dicts(), n=f"{len(examples)} of 250")
    _lines(results, curves)


def _point(name: str, sweep: FeedbackSweep, strength: float) -> dict[str, Any]:
    rows = {row["measure"]: row for row in sweep.frame().filter(pl.col("lambda") == strength).to_dicts()}
    useful, bias = rows["AP"], rows["ARaB@10"]
    return {
        "collection": name, "λ": strength,
        "AP": useful["value"], "AP low": useful["low"], "AP high": useful["high"], "p (AP)": useful["p_holm"],
        "ARaB@10": bias["value"], "mean |ARaB@10|": bias["abs"], "p (|ARaB@10|)": bias["p_holm"],
        "n": sweep.measured["0", "ARaB@10"].queries,
    }  # fmt: skip


def _systems(name: str, sweep: FeedbackSweep, printed: FeedbackSweep) -> list[dict[str, Any]]:
    """Tables 4.1 and 4.2, with the row of Equation 4.1 as printed."""
    systems = {
        "BM25": (sweep, "bm25 alone"), "RM3": (sweep, "0"), "bias-aware": (sweep, "0.5"),
        "Eq. 4.1 as printed": (printed, "0.5"),
    }  # fmt: skip
    values = {
        system: {column: one.measured[run, measure].value for column, measure in BIAS.items()}
        for system, (one, run) in systems.items()
    }
    before, after = values["RM3"], values["bias-aware"]
    values["decrease in bias (%)"] = {key: 100 * (before[key] - after[key]) / before[key] for key in BIAS}
    n = sweep.measured["0", "ARaB@10"].queries
    return [{"system": f"{name}, {system}", **means, "n": n} for system, means in values.items()]


def _terms(name: str, *sides: pl.DataFrame, stem: Any = None) -> list[dict[str, Any]]:
    """Tables 4.3 and 4.4; the terms of the released files are compared with words as they are spelled."""
    rows = []
    for lists, words in (("ARaB's", "rekabsaz2020"), ("LIWC's", female_and_male(None))):
        weights = [er.gendered_terms(side, words, stem=stem)["weight"] for side in sides]
        for what, (was, now) in (
            ("number", map(len, weights)),
            ("weight", (each.sum() for each in weights)),
        ):
            change = 100 * (now - was) / was if was else None
            row = {
                "terms": f"{name}, {what}, {lists} words",
                "RM3": was,
                "bias-aware": now,
                "change %": change,
            }
            rows.append(row | {"n": sides[0]["query_id"].n_unique()})
    return rows


def _queries(results: Results, name: str, sweep: FeedbackSweep) -> dict[str, Any]:
    """Figures 4.4 to 4.7 (of many queries some are drawn) and their shares, and the claims."""
    bias, liwc, useful = (sweep.per_query(measure) for measure in ("ARaB@10", "LIWC@10", "AP"))
    margin = MARGIN * useful["before"].mean()
    kept = f"AP is maintained (within {margin:.3f}, a twentieth of it)"
    better = np.sign(bias["gain"].to_numpy().round(9))
    for text, after, before, side in (
        ("bias falls (mean |ARaB@10|)", bias["after"], bias["before"], {"below": 0.0}),
        ("bias by LIWC falls (mean LIWC@10)", liwc["after"], liwc["before"], {"below": 0.0}),
        (kept, useful["after"], useful["before"], {"within": margin}),
        ("more queries are improved than hurt (difference of shares)", better, 0 * better, {"above": 0.0}),
    ):
        test = er.stats.paired(after, before)
        interval = {"value": test.difference, "low": test.low, "high": test.high, "n": len(after)}
        results.claim(f"{text}, {name}, λ 0.5", **interval, **side)
    drawn = bias.with_row_index("query").gather_every(len(bias) // 300 + 1).select("query", "gain")
    chart = alt.Chart(drawn, width=420, height=200).mark_area(color=named("run-2"), interpolate="step")
    chart = chart.encode(alt.X("query:Q", title="queries"), alt.Y("gain:Q", title="fall of |ARaB@10|"))
    title = f"Figures 4.4 to 4.7: {name}, n = {len(bias):,} queries, best first"
    results.figure(f"figure-4.4-{name}", title, chart + zero_line())
    shares = {"improved %": better > 0, "tied %": better == 0, "hurt %": better < 0}
    row = {key: 100 * float(which.mean()) for key, which in shares.items()}
    return {"collection": name, **row, "n": len(bias)}


def _lines(results: Results, curves: list[dict[str, Any]]) -> None:
    n = ", ".join(f"{row['n']:,} ({row['collection']})" for row in curves if not row["λ"])
    frame = pl.DataFrame(curves).rename({"collection": "run", "mean |ARaB@10|": "bias"})
    frame = frame.with_columns(left=100 * pl.col("bias") / pl.col("bias").first().over("run"))
    colour = run_colour(frame["run"].unique(maintain_order=True).to_list())
    base = alt.Chart(frame, width=340, height=220).mark_line(point=True).encode(color=colour, order="λ:Q")
    axes = {"AP": ("AP:Q", "AP"), "bias": ("left:Q", "mean |ARaB@10|, % of RM3"), "λ": ("λ:Q", "λ")}
    for number, across, up in (("4.1", "λ", "AP"), ("4.2", "λ", "bias"), ("4.3", "bias", "AP")):
        (x, x_title), (y, y_title) = axes[across], axes[up]
        scale = alt.Scale(zero=False)
        chart = base.encode(alt.X(x, title=x_title, scale=scale), alt.Y(y, title=y_title, scale=scale))
        results.figure(f"figure-{number}", f"Figure {number}: {up} by {across}, n = {n}", chart)
