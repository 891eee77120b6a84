"""What changes: from the baseline to a run, query by query; in ranks when the gender of words is swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.base import is_bias, short, sign_names_group
from evenrank.show.charts.theme import finished, named, reach, told_apart, zero_line
from evenrank.show.figure import RUNS, Figure, Section, as_frame, slug
from evenrank.show.numbers import counted

BARS = 160
"""Most bars drawn; of more queries, neighbours in the order of their change share one."""


def waterfall_data(
    query_ids: pl.Series, changes: np.ndarray, texts: dict[str, str] | None = None, most: int = BARS
) -> pl.DataFrame:
    """Queries in the order of their change: place (in percent of them), end, change, queries, query."""
    order = np.argsort(changes, kind="stable")
    values, count = changes[order], len(changes)
    ids = query_ids.gather(order).to_list()
    if count <= most:
        names = [(texts or {}).get(query, query) for query in ids]
        groups = [np.array([i]) for i in range(count)]
    else:
        groups = np.array_split(np.arange(count), most)
        names = [f"{len(group)} queries" for group in groups]
    edges = np.cumsum([0, *map(len, groups)]) / max(count, 1)
    return pl.DataFrame(
        {
            "place": edges[:-1],
            "end": edges[1:],
            "change": [float(values[group].mean()) for group in groups],
            "queries": [len(group) for group in groups],
            "query": [name if len(name) <= 80 else name[:79] + "…" for name in names],
        },
        schema={
            "place": pl.Float64,
            "end": pl.Float64,
            "change": pl.Float64,
            "queries": pl.Int64,
            "query": pl.String,
        },
    )


def waterfall(
    frame: pl.DataFrame,
    *,
    measure: str,
    sides: tuple[str, str] | None = None,
    domain: Sequence[float] | None = None,
) -> Any:
    """Bars from the largest fall to the largest rise.

    Parameters
    ----------
    frame
        What `waterfall_data` gives.
    sides
        The groups that a fall and a rise point to, (female, male); for measures that point nowhere a
        rise is good.
    domain
        Ends of the scale of changes, where several charts share one.
    """
    down, up = (named("female"), named("male")) if sides else (named("bad"), named("good"))
    bars = (
        alt.Chart(frame)
        .mark_bar(binSpacing=0, cornerRadius=0)
        .encode(
            x=alt.X(
                "place:Q",
                title="queries, by change",
                axis=alt.Axis(format="%", grid=False),
                scale=alt.Scale(domain=[0, 1]),
            ),
            x2="end:Q",
            y=alt.Y(
                "change:Q",
                title=f"change of {measure}",
                scale=alt.Undefined if domain is None else alt.Scale(domain=list(domain), nice=True),
            ),
            y2=alt.datum(0),
            color=alt.condition("datum.change > 0", alt.value(up), alt.value(down)),
            tooltip=[
                alt.Tooltip("query:N", title="query"),
                alt.Tooltip("change:Q", title="change", format="+.4f"),
            ],
        )
    )
    return finished(alt.layer(bars, zero_line()), height=230)


def change_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "change",
        "Change by query",
        "What happens to each query when a run replaces the baseline. A mean near 0 can hide large "
        f"changes in both directions. Charts of one measure share their scale.{_few(audit)}",
        change_figures(audit),
    )


def _few(audit: Audit) -> str:
    """A sentence where not every run has its charts."""
    return "" if len(audit.runs) <= RUNS + 1 else f" {RUNS} of {len(audit.runs) - 1:,} runs are drawn."


def change_figures(audit: Audit) -> list[Figure]:
    rows: list[Figure] = []
    useful = next((m for m in audit.measures if not is_bias(m)), None)
    for measure in (audit.headline, useful):
        if measure is None:
            continue
        sides = None
        if sign_names_group(measure):
            of, against = measure.pair(audit.groups)
            sides = (against, of)
        shown = [c for c in audit.comparisons if c.measure == measure][:RUNS]
        domain = reach(
            float(end) for c in shown if len(c.changes) for end in (c.changes.min(), c.changes.max())
        )
        for one in shown:
            if not len(one.changes):
                continue
            frame = waterfall_data(one.query_ids, one.changes, dict(audit.queries))
            rises, falls = int((one.changes > 0).sum()), int((one.changes < 0).sum())
            same = len(one.changes) - rises - falls
            many = counted(len(one.changes), "query", "queries")
            caption = f"Of {many}, up: {rises:,}, down: {falls:,}, unchanged: {same:,}."
            if sides:
                caption += f" Up is toward {sides[1]}, down toward {sides[0]}."
            if frame["queries"].max() != 1:
                caption += " Neighbours share a bar."
            rows.append(
                Figure(
                    f"change-{slug(short(measure))}-{slug(one.run)}-{len(rows)}",
                    f"{short(measure)}: {one.run} against {one.baseline}",
                    caption,
                    f"Change of {short(measure)} from {one.baseline} to {one.run} by query: {caption}",
                    waterfall(frame, measure=short(measure), sides=sides, domain=domain),
                    frame,
                )
            )
    return rows


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
            color=told_apart("side:N", sides, [named("good"), named("muted"), named("bad")]),
            tooltip=[alt.Tooltip("shift:N", title="shift"), alt.Tooltip("queries:Q", title=of)],
        )
    )
    return finished(alt.layer(chart, zero_line()), height=240)


def shift_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "rankshift",
        "Counterfactual rank shift",
        "Each document next to its mirror image, the same text with the words of the other gender: a ranker "
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
