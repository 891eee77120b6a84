"""Do judged documents of female and of male queries differ psychologically? (Bigdeli, thesis, Section 3.1)"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl
from scipy.special import stdtrit

import evenrank as er
from evenrank.psychology import PsychologyAudit
from evenrank.show.charts.theme import group_colour
from evenrank.show.numbers import p_value
from experiments.common import Results

PAPER = "Bigdeli, thesis 3.1"
CONTENT = "Figures 3.1-3.6"
GENDERS = ("female", "male", "neutral")
FIGURES = {
    "3.1": ("female", "male"),
    "3.2": ("positive", "negative"),
    "3.3": ("anxiety", "anger", "sadness"),
    "3.4": ("insight", "cause", "discrepancy", "tentative", "certainty", "differentiation"),
    "3.5": ("work", "leisure", "home", "money", "religion", "death"),
    "3.6": ("affiliation", "achievement", "power", "reward", "risk"),
}
HIGHER = {
    "female": ("negative", "anxiety", "sadness", "cognition", "reward", "risk", "female"),
    "male": (
        *("anger", "concerns", "affiliation", "achievement", "power"),
        *("work", "leisure", "home", "money", "religion", "death", "male"),
    ),
}
"""For queries of which gender the thesis says that judged documents have more."""
SIMILAR_SHARE = 0.1
"""A difference below this share of the mean of both genders counts as similar."""


def run(results: Results) -> None:
    results.differs(
        "the LIWC scores that were published with the thesis, of the same queries; the thesis prints no "
        "numbers beside its figures, and no tests."
    )
    scores = [results.path("data", "liwc", f"{name}.csv") for name in GENDERS]
    audit = er.audit_judgments(scores=scores)
    rows = {row["characteristic"]: row for row in audit.characteristics.iter_rows(named=True)}
    compared = (audit.queries["female"], audit.queries["male"])
    for figure, names in FIGURES.items():
        results.table(
            f"Figure {figure}: mean percent of words, and the difference female - male",
            [_row(rows[name]) for name in names],
            n=", ".join(f"{count:,} {gender}" for gender, count in audit.queries.items()),
        )
        _draw(results, figure, [rows[name] for name in names], audit)
    for gender, names in HIGHER.items():
        for name in names:
            row = rows[name]
            results.claim(
                f"{name} is higher for {gender} queries",
                value=row["difference"], low=row["low"], high=row["high"], p=row["p_holm"], n=compared,
                **({"above": 0.0} if gender == "female" else {"below": 0.0}),
            )  # fmt: skip
    row = rows["positive"]
    margin = SIMILAR_SHARE * (row["female"] + row["male"]) / 2
    # Two one-sided tests at 5 %: the 90 % interval has to lie within the margin.
    narrower = stdtrit(sum(compared) - 2, 0.95) / stdtrit(sum(compared) - 2, 0.975)
    half = narrower * (row["high"] - row["low"]) / 2
    results.claim(
        f"positive emotion is similar for both (within {margin:.3f} points, 90 % interval)",
        value=row["difference"], low=row["difference"] - half, high=row["difference"] + half,
        within=margin, n=compared,
    )  # fmt: skip


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "characteristic": row["characteristic"],
        **{gender: row[gender] for gender in GENDERS},
        "difference": row["difference"],
        "95% low": row["low"],
        "95% high": row["high"],
        "g": row["g"],
        "p": p_value(row["p"]),
        "p (Holm)": p_value(row["p_holm"]),
    }


def _draw(results: Results, figure: str, rows: list[dict[str, Any]], audit: PsychologyAudit) -> None:
    frame = pl.DataFrame(
        [
            {"characteristic": row["characteristic"], "group": gender, "percent": row[gender]}
            for row in rows
            for gender in GENDERS
        ]
    )
    chart = (
        alt.Chart(frame, width=110 * len(rows), height=240)
        .mark_bar()
        .encode(
            x=alt.X("characteristic:N", sort=[row["characteristic"] for row in rows], title=None),
            xOffset=alt.XOffset("group:N", sort=list(GENDERS)),
            y=alt.Y("percent:Q", title="percent of words in judged documents"),
            color=group_colour(list(GENDERS)),
        )
    )
    n = ", ".join(f"{count:,} {gender}" for gender, count in audit.queries.items())
    results.figure(f"figure-{figure}", f"Figure {figure}, n = {n}", chart)
