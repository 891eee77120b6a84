"""Pictures of a sweep over bias-aware feedback: Figures 4.1 to 4.7 of the thesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from evenrank.mitigate.feedback.effects import TIED
from evenrank.show.charts.theme import RUNS, configuration, finished, named

if TYPE_CHECKING:
    from evenrank.mitigate.feedback.sweeping import FeedbackSweep

_COLOURS = {"improved": "good", "tied": "muted", "hurt": "bad"}


def strength_chart(swept: FeedbackSweep) -> Any:
    """Each measure against λ, with its interval; a line for each k and n (Figures 4.1 to 4.3).

    Filled points differ significantly from λ = 0 after Holm's correction. For RaB and ARaB the mean of
    absolute values is drawn, without an interval.
    """
    rows = swept.frame().with_columns(
        setting=pl.format("k = {}, n = {}", "fb_docs", "fb_terms"),
        shown=pl.coalesce("abs", "value"),
        low=pl.when(pl.col("abs").is_null()).then("low"),
        high=pl.when(pl.col("abs").is_null()).then("high"),
        significant=pl.col("p_holm").fill_null(1.0) < 0.05,
    )
    settings = rows["setting"].unique(maintain_order=True).to_list()
    shades = [named(RUNS[i % len(RUNS)]) for i in range(1, len(settings) + 1)]
    scale = alt.Scale(domain=settings, range=shades)
    colour = alt.Color("setting:N", title=None, sort=settings, scale=scale)
    charts = []
    for effect in swept.steps[0].effects:
        name = str(effect.measure)
        signed = getattr(effect.measure, "SIGNED", False)
        values = rows.filter(pl.col("measure") == name)
        title = f"mean |{name}|" if signed else name
        base = alt.Chart(alt.Data(values=values.to_dicts())).encode(
            x=alt.X("lambda:Q", title="λ"), color=colour
        )
        line = base.mark_line().encode(y=alt.Y("shown:Q", title=title, scale=alt.Scale(zero=False)))
        points = base.mark_point(size=45).encode(
            y="shown:Q",
            fill=alt.condition(
                "datum.significant",
                alt.Fill("setting:N", scale=scale, legend=None),
                alt.value(named("surface")),
            ),
            tooltip=["lambda:Q", "shown:Q", "low:Q", "high:Q", "p_holm:Q"],
        )
        parts = [line, points]
        if not signed:
            parts.insert(0, base.mark_area(opacity=0.15).encode(y="low:Q", y2="high:Q"))
        charts.append(alt.layer(*parts).properties(width=240, height=170))
    return alt.concat(*charts, columns=3, config=alt.Config(**configuration()))


def query_chart(swept: FeedbackSweep, measure: Any = "ARaB@10", *, lambda_: float = 0.5) -> Any:
    """By how much each query got better or worse against λ = 0, sorted (Figures 4.4 to 4.7)."""
    gains = swept.per_query(measure, lambda_=lambda_).with_row_index("place")
    kind = (
        pl.when(pl.col("gain") > TIED)
        .then(pl.lit("improved"))
        .when(pl.col("gain") < -TIED)
        .then(pl.lit("hurt"))
        .otherwise(pl.lit("tied"))
    )
    rows = gains.with_columns(change=kind)
    shares = {name: int((rows["change"] == name).sum()) / len(rows) for name in _COLOURS}
    title = ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
    chart = (
        alt.Chart(alt.Data(values=rows.to_dicts()))
        .mark_bar()
        .encode(
            x=alt.X("place:O", title="queries", axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("gain:Q", title=f"gain of {measure} at λ = {lambda_:g}"),
            color=alt.Color(
                "change:N",
                scale=alt.Scale(domain=list(_COLOURS), range=[named(each) for each in _COLOURS.values()]),
                title=None,
            ),
            tooltip=["query_id:N", "before:Q", "after:Q", "gain:Q"],
        )
        .properties(title=title)
    )
    return finished(chart, height=220).properties(width=520)
