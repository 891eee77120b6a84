"""Charts of GSR beside the paper: its Figures 7 to 12, and Table 2 as dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenrank.reproduce.page import Chart
from evenrank.show.figure import asked

MEANS = 16
"""Points of a panel: of more queries, neighbours in genderedness share one."""
DRAWN = 250
"""Queries drawn where each is a point of its own."""
PANELS = 9
LEAN = "g(query)"


def joined(x: np.ndarray, y: np.ndarray, most: int = MEANS) -> list[list[float]]:
    """Points in the order of x; of many, the means of neighbours."""
    order = np.argsort(x, kind="stable")
    groups = np.array_split(order, min(most, len(order))) if len(order) else []
    return [[round(float(x[group].mean()), 5), round(float(y[group].mean()), 5)] for group in groups]


def some(x: np.ndarray, y: np.ndarray, seed: int) -> list[list[float]]:
    """At most as many points as are drawn, chosen with the seed."""
    rows = np.arange(len(x))
    if len(rows) > DRAWN:
        rows = np.sort(np.random.default_rng(seed).choice(rows, DRAWN, replace=False))
    return [[round(float(x[i]), 5), round(float(y[i]), 5)] for i in rows]


def scatter(found: Mapping[str, Any]) -> list[Chart]:
    """Figures 8 and 9: the lists of each system against their queries, its line and the perfect engine's."""
    rows, fits, systems = [], [], found["points"]["systems"]
    perfect = systems.get("perfect")
    for name, one in systems.items():
        rows += [{"x": x, "value": y, "panel": name} for x, y in one["points"]]
        ends = [one["points"][0][0], one["points"][-1][0]] if one["points"] else []
        for engine, line in (("this system", one), ("perfect engine", perfect)):
            if line is not None:
                fits += [
                    {"x": x, "value": line["slope"] * x + line["intercept"], "of": engine, "panel": name}
                    for x in ends
                ]
    counts = [one["n"] for one in systems.values()]
    most = max(counts, default=0)
    means = (
        f" Each point is the mean of some {max(2, round(most / MEANS))} queries of like g(query), where the "
        "paper draws every query; lines are fitted to single queries."
        if most > MEANS
        else ""
    )
    caption = (
        f"Lower is more male, higher more female; a steep line follows the query.{means} {asked(counts)}."
    )
    title = "Figures 8 and 9: genderedness of lists against that of their queries"
    return [Chart("points", rows, LEAN, "g(list)", caption, title, fits)]


def levels(found: Mapping[str, Any]) -> list[Chart]:
    """Table 2 as dots: GSR of each system with its interval, by the vectors it is measured with."""
    rows = [
        {"x": name, "value": one["GSR"], "low": one["low"], "high": one["high"], "of": found["vectors"][of]}
        for of, each in found["gsr"].items()
        for name, one in sorted(each["rows"].items(), key=lambda row: row[0] not in ("perfect", "random"))
    ]
    counts = [one["n"] for each in found["gsr"].values() for one in each["rows"].values()]
    caption = f"What lies right of the perfect engine is the ranker's own. {asked(counts)}."
    return [Chart("dots", rows, "", "GSR", caption, "Table 2: GSR by system", balance=0.0)]


def distances(found: Mapping[str, Any]) -> list[Chart]:
    """Figure 10."""
    rows = [{"x": x, "value": y} for x, y in found["points"]["distances"]]
    name, told = next(iter(found["distances"].items()))
    caption = (
        f"{name}: each point is a query; r = {told['r']:+.2f}. {_shown(len(rows), told['n'])}"
        if told["r"] is not None
        else _shown(len(rows), told["n"])
    )
    return [Chart("points", rows, "|g(q)|", "Kendall distance, before and after", caption)]


def agreement(found: Mapping[str, Any]) -> list[Chart]:
    """Figure 11."""
    rows = [{"x": x, "value": y} for x, y in found["points"]["agreement"]]
    told, names = found["agreement"]["queries"], found["vectors"]
    r = "" if told["r"] is None else f"; r = {told['r']:+.2f}"
    caption = f"Each point is a query{r}. {_shown(len(rows), told['n'])}"
    return [Chart("points", rows, f"g(q), {names['first']}", f"g(q), {names['second']}", caption)]


def direct(names: Sequence[str], found: Mapping[str, Any]) -> list[Chart]:
    """Figure 12: whom lists show too much of, by the gender of the query."""
    rows, counts = [], []
    for name in names:
        bins = found[name]["bins"]
        counts.append(sum(each["queries"] for each in bins))
        for each in bins:
            for side, said in (("male", "more male"), ("none", "neither"), ("female", "more female")):
                label = f"{_end(each['low'])} to {_end(each['high'])} ({each['queries']})"
                rows.append({"x": label, "value": each[side], "of": said, "panel": name})
    colours = {"more male": "male", "neither": "rule", "more female": "female"}
    caption = (
        "Queries whose lists are more male or more female than their relevant documents, by g(q), which is "
        f"below 0 for male queries; in brackets how many. {asked(counts)}."
    )
    return [
        Chart(
            "shares",
            rows,
            "",
            "share of queries",
            caption,
            "Figure 12: direct stereotypes",
            colours=colours,
            form="%",
        )
    ]


def gendered(found: Mapping[str, Any], queries: int) -> list[Chart]:
    """Figure 7."""
    rows = [
        {"x": query, "value": g, "of": f"most {side}"}
        for side in ("female", "male")
        for query, g in (found[side] if side == "female" else reversed(found[side]))
    ]
    caption = f"The queries that lean most, of {asked([queries]).removeprefix('n = ')}, by their ids."
    colours = {"most female": "female", "most male": "male"}
    return [Chart("bars", rows, "", "g(q)", caption, colours=colours, balance=0.0)]


def _end(value: float | None) -> str:
    return "…" if value is None else f"{value:+.2f}"


def _shown(drawn: int, n: int) -> str:
    said = f"{asked([n])}."
    return said if drawn >= n else f"{said} {drawn:,} of them are drawn."
