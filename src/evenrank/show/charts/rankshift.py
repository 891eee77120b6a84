"""Counterfactual rank shift: where a document lands when the gender of its words is swapped."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.show.charts.theme import finished, named, zero_line
from evenrank.show.figure import Figure, Section, as_frame

BINS = (-1e9, -100, -50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1e9)


def shift_data(frame: pl.DataFrame) -> pl.DataFrame:
    """Shifts (after − before) in bins of growing width: shift, order, queries, side.

    `frame` has before and after: the rank of a document, and that of its mirror image.
    """
    shift = (frame["after"] - frame["before"]).to_list()
    rows = []
    for i, (low, high) in enumerate(pairwise(BINS)):
        if low == 0:
            rows.append(
                {"shift": "0", "order": i - 0.5, "queries": sum(s == 0 for s in shift), "side": "same"}
            )
        if low >= 0:
            n, label, side = sum(low < s <= high for s in shift), _label(int(low) + 1, high), "falls"
        else:
            n, label, side = sum(low <= s < high for s in shift), _label(int(-high) + 1, -low, "−"), "rises"
        rows.append({"shift": label, "order": float(i), "queries": n, "side": side})
    return pl.DataFrame(
        rows, schema={"shift": pl.String, "order": pl.Float64, "queries": pl.Int64, "side": pl.String}
    )


def _label(low: int, high: float, sign: str = "+") -> str:
    if high > 1e6:
        return f"{sign}{low}…"
    return f"{sign}{low}" if low == int(high) else f"{sign}{low}–{int(high)}"


def rank_shift(frame: pl.DataFrame, *, of: str = "queries") -> Any:
    """How many documents lose (right) or gain (left) ranks when the gender of their words is swapped.

    Parameters
    ----------
    frame
        What `shift_data` gives.
    of
        What is counted.
    """
    order = frame["shift"].to_list()
    sides = ["rises", "same", "falls"]
    chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "shift:N",
                sort=order,
                title="ranks moved when the gender is swapped",
                axis=alt.Axis(labelAngle=-45),
            ),
            y=alt.Y("queries:Q", title=of, axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "side:N",
                title=None,
                sort=sides,
                scale=alt.Scale(domain=sides, range=[named("good"), named("muted"), named("bad")]),
            ),
            tooltip=[alt.Tooltip("shift:N", title="shift"), alt.Tooltip("queries:Q", title=of)],
        )
    )
    return finished(alt.layer(chart, zero_line()), height=240)


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "rankshift",
        "Counterfactual rank shift",
        "Each document against its mirror image, the same text with the words of the other gender: a ranker "
        "that does not care about gender gives both the same rank.",
        rankshift_figures(more.get("rank_shift")),
    )


def rankshift_figures(frame: Any) -> list[Figure]:
    if frame is None:
        return []
    table = as_frame(frame, "rank_shift", ("before", "after"))
    counted = shift_data(table)
    moved = table["after"] - table["before"]
    worse, finer = int((moved > 0).sum()), int((moved < 0).sum())
    what = "documents" if "doc_id" in table.columns else "queries"
    caption = (
        f"Of {len(moved):,} {what} {worse:,} fall and {finer:,} rise when the gender of the text is swapped."
    )
    if "group" in table.columns:
        sides = table.select("group", moved=moved).drop_nulls().group_by("group", maintain_order=True)
        means = [f"{group} ones move by {float(rows['moved'].mean()):+.1f}" for (group,), rows in sides]  # type: ignore[arg-type]
        caption += f" On average {', '.join(sorted(means))} ranks; above 0 is down." if means else ""
    chart = rank_shift(counted, of=what)
    return [Figure("rankshift", "Counterfactual rank shift", caption, caption, chart, counted, True)]
