"""Does GSR say what everyone can see on collections made for it? (Fabris et al. 2020, Sections 3.4 to 4.1)"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

import evenrank as er
from evenrank.measures.gsr import slope
from evenrank.show.charts.theme import named, zero_line
from evenrank.vectors import STEREOTYPES, association_tests
from evenrank.vectors.texts import gendered_texts
from experiments.common import Results

PAPER = "Fabris et al. 2020"
CONTENT = "Figures 1, 4-6"
SETS = {stereotype.name: stereotype for stereotype in STEREOTYPES}
JOBS, TRAITS = SETS["jobs"], SETS["agency–communion"]
SIDES = dict.fromkeys(JOBS.female, "female") | dict.fromkeys(JOBS.male, "male")
"""The gender of the stereotype of each query, which is a job."""
OTHER = {"female": "male", "male": "female"}
DRAWS = 10_000


def run(results: Results) -> None:
    results.differs("GloVe vectors (the shipped table) instead of word2vec's of Google News: other sizes.")
    direct = _sentences({"female": {"woman": "The woman is a {}"}, "male": {"man": "The man is a {}"}})
    indirect = _sentences(
        {side: {trait: "The {} is " + trait for trait in getattr(TRAITS, side)} for side in OTHER}
    )
    for figure, name, docs in (("4", "direct", direct), ("6", "indirect", indirect)):
        values = _three_systems(docs)
        rows = [{"system": system, "GSR": value} for system, value in values.items()]
        title = f"Figure {figure}: GSR of a stereotypical (S), neutral (N) and opposite (CS) system, {name}"
        results.table(title, rows, n=len(SIDES), published=f"Figure {figure}")
        chart = alt.Chart(pl.DataFrame(rows), width=220, height=220).mark_bar(color=named("run-2"))
        chart = chart.encode(x=alt.X("system:N", sort=["S", "N", "CS"], title=None), y="GSR:Q")
        results.figure(f"figure-{figure}", f"Figure {figure}: {name}, n = {len(SIDES)} queries", chart)
        results.fact(
            f"{name}: GSR is above 0 for S, 0 for N and below 0 for CS",
            values["S"] > 0 > values["CS"] and abs(values["N"]) < 1e-9,
            ", ".join(f"{system} {value:+.3f}" for system, value in values.items()),
            len(SIDES),
        )
    _parity(results)
    _associations(results)


def _sentences(patterns: dict[str, dict[str, str]]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the documents about each job, by the gender that they name: {job: {side: {doc_id: text}}}."""
    return {
        job: {
            side: {f"{job}-{key}": pattern.format(job) for key, pattern in of_side.items()}
            for side, of_side in patterns.items()
        }
        for job in SIDES
    }


def _three_systems(docs: dict[str, Any]) -> dict[str, float]:
    """Return GSR of the system that returns matching documents, of that with all, and the opposite."""
    answers = {
        "S": lambda job: docs[job][SIDES[job]],
        "N": lambda job: {**docs[job]["female"], **docs[job]["male"]},
        "CS": lambda job: docs[job][OTHER[SIDES[job]]],
    }
    runs = {name: {job: dict.fromkeys(of_job(job), 1.0) for job in SIDES} for name, of_job in answers.items()}
    texts = {
        doc: text for sides in docs.values() for of_side in sides.values() for doc, text in of_side.items()
    }
    unranked = er.GSR(discount="none") @ 100  # deeper than any answer, which is a set
    measured = er.measure(runs, unranked, docs=texts, queries={job: job for job in SIDES}, confidence=None)
    return {name: measured[name, unranked].value for name in runs}


def _parity(results: Results) -> None:
    """Figure 5: GSR and the share of stereotypical documents, over reasonable answers.

    There are 3^20 answers in which each query gets its stereotypical document, the other one, or both. The
    paper takes all of them alike; nearly all of these are close to balance. So answers are also drawn with
    shares first, from Dirichlet(1, 1, 1).
    """
    texts, jobs = gendered_texts(), list(SIDES)
    sentences = [f"The {person} is a {job}" for job in jobs for person in ("woman", "man")]
    rows = np.repeat(np.arange(len(jobs)), 2)
    g = texts.of_pairs(jobs, texts.find(sentences), rows, np.arange(len(sentences))).reshape(-1, 2)
    is_female = np.array([SIDES[job] == "female" for job in jobs])
    matching = np.where(is_female, g[:, 0], g[:, 1])
    opposite = np.where(is_female, g[:, 1], g[:, 0])
    options = np.stack([matching, opposite, (matching + opposite) / 2])
    x = texts.of_texts(jobs)
    known = ~np.isnan(x) & ~np.isnan(options).any(axis=0)
    rng = np.random.default_rng(0)
    rows_of_table = []
    for name, shares in (
        ("Pearson r of GSR and parity", np.full((DRAWS, 3), 1 / 3)),
        ("the same, shares drawn first", rng.dirichlet((1, 1, 1), DRAWS)),
    ):
        cumulated = np.cumsum(shares, axis=1)[:, None, :2]
        chosen = (rng.random((DRAWS, int(known.sum()), 1)) > cumulated).sum(axis=2)
        y = options[:, known][chosen, np.arange(int(known.sum()))]
        gsr = slope.slopes(np.broadcast_to(x[known], y.shape), y)
        returned = np.where(chosen == 2, 2, 1).sum(axis=1)
        parity = np.isin(chosen, (0, 2)).sum(axis=1) / returned
        r = float(np.corrcoef(parity, gsr)[0, 1])
        rows_of_table.append({"answers": name, "r": r, "n": DRAWS})
        frame = pl.DataFrame({"parity": parity, "GSR": gsr})
        chart = alt.Chart(frame[:1000], width=260, height=220).mark_circle(size=12, color=named("run-2"))
        chart = chart.encode(x=alt.X("parity:Q", title="share of stereotypical documents"), y="GSR:Q")
        results.figure(
            f"figure-5-{len(rows_of_table)}", f"Figure 5: {name}, 1,000 of {DRAWS:,} answers", chart
        )
    results.table("Figure 5: GSR follows statistical parity", rows_of_table, published="Figure 5")
    r, error = rows_of_table[0]["r"], 1.96 / np.sqrt(DRAWS - 3)
    low, high = np.tanh(np.arctanh(r) - error), np.tanh(np.arctanh(r) + error)
    results.claim(
        "GSR follows statistical parity (r above 0)", above=0.0, value=r, low=low, high=high, n=DRAWS
    )


def _associations(results: Results) -> None:
    tests = association_tests()
    rows = [
        {
            "sets": test.name.replace("–", "-"),
            "difference": test.difference,
            "95% low": test.low,
            "95% high": test.high,
            "p": test.p,
            "n": sum(test.words),
        }
        for test in tests
    ]
    results.table(
        "Figure 1: mean genderedness, female minus male words", rows, published="Figure 1", digits=4
    )
    base = alt.Chart(pl.DataFrame(rows), width=360, height=160).encode(y=alt.Y("sets:N", title=None))
    bars = base.mark_rule(color=named("run-2")).encode(
        x=alt.X("95% low:Q", title="difference of means"), x2="95% high:Q"
    )
    chart = (
        bars + base.mark_point(color=named("run-2"), filled=True).encode(x="difference:Q") + zero_line("x")
    )
    results.figure("figure-1", "Figure 1: association tests", chart)
    for row, p in zip(rows, er.stats.holm([test.p for test in tests]), strict=True):
        results.claim(
            f"{row['sets']}: the second set is more female than the first",
            above=0.0, value=row["difference"], low=row["95% low"], high=row["95% high"], p=p, n=row["n"],
        )  # fmt: skip
