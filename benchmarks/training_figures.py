"""Figures of docs/mitigation/training.md: those of the thesis' Section 4.2 from our runs, and one front."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from benchmarks.training_evidence import UNTRAINED, Unit, known, run_unit
from benchmarks.training_page import TITLES
from evenrank.show.charts.theme import configuration, finished, named
from evenrank.show.charts.tradeoff import tradeoff_scatter
from evenrank.show.report import write_chart

_IMAGES = Path(__file__).parents[1] / "docs" / "images"
TIED = 1e-9
_COLOURS = {"fairer": "good", "tied": "muted", "less fair": "bad"}
_FAMILIES = {
    **dict.fromkeys(UNTRAINED, "not trained"),
    "negatives": "negatives",
    "adversary": "adversary",
    "adversary by group": "adversary",
    "augment": "mirrored texts",
    "consistency": "mirrored texts",
    "dial": "dial",
    "penalty": "re-ranked: penalty, λ",
    "interpolate": "re-ranked: penalty, λ",
    "constrain (mean)": "re-ranked: constrain",
    "constrain (each)": "re-ranked: constrain",
}
"""Methods that share a mark; all others are losses."""


def draw(found: dict[str, Any]) -> None:
    """Every figure that there are numbers for."""
    made = {
        "training-lambda": lambdas(found),
        "training-against-adversary": against_adversary(found),
        "training-fairness": fairness(found["squad/head"]),
        "training-front": front(found["squad/head"]),
    }
    for name, chart in made.items():
        if chart is not None:
            write_chart(chart, _IMAGES / f"{name}.png")


def lambdas(found: dict[str, Any]) -> Any:
    """RR@10 against λ, significant drops marked (Figure 4.8)."""
    rows = []
    for key, (name, _) in TITLES.items():
        mine = [row for row in found[key]["rows"] if row["method"] == "negatives"]
        for row in mine if len(mine) > 1 else ():
            test = row["test"]["against plain"]["RR@10"]
            p = test.get("p_holm")
            fell = p is not None and p < 0.05 and test["difference"] < 0
            value = row["test"]["measures"]["RR@10"]["value"]
            said = "significant loss" if fell else "no significant loss"
            on, _, ranker = name.partition(", ")
            rows.append({"on": on, "ranker": ranker, "λ": row["strength"], "RR@10": value, "loss": said})
    if not rows:
        return None
    base = alt.Chart().encode(x=alt.X("λ:Q"), y=alt.Y("RR@10:Q", scale=alt.Scale(zero=False)))
    line = base.mark_line(color=named("muted")).encode(strokeDash=alt.StrokeDash("ranker:N", title=None))
    said = ["no significant loss", "significant loss"]
    colours = alt.Scale(domain=said, range=[named("run-2"), named("bad")])
    shapes = alt.Scale(domain=said, range=["circle", "cross"])
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.Color("loss:N", title=None, scale=colours),
        shape=alt.Shape("loss:N", title=None, scale=shapes),
    )
    layers = alt.layer(line, points, data=pl.DataFrame(rows)).properties(width=300, height=240)
    panels = layers.facet(column=alt.Column("on:N", title=None)).resolve_scale(y="independent")
    return panels.properties(config=alt.Config(**configuration()))


def against_adversary(found: dict[str, Any]) -> Any:
    """NFaiRR@10 of each query with λ = 0.6 minus that with an adversary, sorted (Figures 4.9 and 4.10).

    A panel for each ranker that was trained with an adversary, the strongest that was tried.
    """
    rows: list[dict[str, Any]] = []
    for key, (name, _) in TITLES.items():
        adversaries = [row for row in found[key]["rows"] if row["method"] == "adversary" and row["strength"]]
        if not adversaries:
            continue
        strength = max(row["strength"] for row in adversaries)
        of, _, ranker = key.partition("/")
        ways = [("negatives", 0.6), ("adversary", strength)]
        units = {seed: [Unit(of, ranker, *way, seed) for way in ways] for seed in range(3)}
        both = {seed: two for seed, two in units.items() if all(known(unit) is not None for unit in two)}
        if not both:
            continue
        mine, theirs = (_mean([run_unit(two[place])["test"] for two in both.values()]) for place in (0, 1))
        gains = sorted((mine[query] - theirs[query] for query in mine.keys() & theirs.keys()), reverse=True)
        kinds = ["fairer" if gain > TIED else "less fair" if gain < -TIED else "tied" for gain in gains]
        shares = {kind: kinds.count(kind) / len(kinds) for kind in _COLOURS}
        found[key]["against adversary"] = {"strength": strength, "seeds": sorted(both), **shares}
        said = ", ".join(f"{share:.0%} {kind}" for kind, share in shares.items())
        title = f"{name}, μ = {strength:g}: {said}"
        rows += [
            {"panel": title, "place": place / len(gains), "gain": gain, "change": kind}
            for place, (gain, kind) in enumerate(zip(gains, kinds, strict=True))
        ]
    if not rows:
        return None
    scale = alt.Scale(domain=list(_COLOURS), range=[named(each) for each in _COLOURS.values()])
    axis = alt.Axis(labels=False, ticks=False)
    chart = (
        alt.Chart(pl.DataFrame(rows))
        .mark_rule()
        .encode(
            x=alt.X("place:Q", title="queries", axis=axis),
            y=alt.Y("gain:Q", title="NFaiRR@10: λ = 0.6 minus adversary"),
            color=alt.Color("change:N", title=None, scale=scale),
        )
        .properties(width=520, height=160)
        .facet(row=alt.Row("panel:N", title=None, header=alt.Header(orient="top", labelAnchor="start")))
        .resolve_scale(y="independent")
    )
    return chart.properties(config=alt.Config(**configuration()))


def _mean(parts: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """NFaiRR@10 of each query, averaged over seeds."""
    return {
        query: sum(part["NFaiRR@10"][query] for part in parts) / len(parts) for query in parts[0]["NFaiRR@10"]
    }


def fairness(head: dict[str, Any]) -> Any:
    """Effectiveness against fairness of all rankers (Figure 4.11)."""
    rows = [
        {
            "method": _FAMILIES.get(row["method"], "losses"),
            "RR@10": row["test"]["measures"]["RR@10"]["value"],
            "NFaiRR@10": row["test"]["measures"]["NFaiRR@10"]["value"],
        }
        for row in head["rows"]
    ]
    if not rows:
        return None
    points = (
        alt.Chart(pl.DataFrame(rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("NFaiRR@10:Q", title="NFaiRR@10 (higher is fairer)", scale=alt.Scale(zero=False)),
            y=alt.Y("RR@10:Q", scale=alt.Scale(zero=False)),
            color=alt.Color("method:N", title=None),
            shape=alt.Shape("method:N", title=None),
        )
    )
    return finished(points, height=300).properties(width=480)


def front(head: dict[str, Any]) -> Any:
    """Bias against RR@10 of all methods, with one Pareto front."""
    rows = [
        {
            "method": _FAMILIES.get(row["method"], "losses"),
            "bias": row["test"]["measures"]["|ARaB@10|"]["value"],
            "utility": row["test"]["measures"]["RR@10"]["value"],
        }
        for row in head["rows"]
        if row["method"] in ("negatives", *UNTRAINED) or row["strength"]
    ]
    if not rows:
        return None
    frame = pl.DataFrame(rows)
    return tradeoff_scatter(frame, bias="mean |ARaB@10|", utility="RR@10").properties(width=480)
