"""Does image search show women as often as they are in a profession? (Lipani, Piroi & Yilmaz 2021)"""

from __future__ import annotations

from typing import Any

import polars as pl

import evenrank as er
from evenrank.show.charts.representation import representation_histogram, target_grid
from experiments.common import Results

PAPER = "Lipani, Piroi & Yilmaz 2021"
CONTENT = "Tables 1-3, Figures 2-3"
TARGETS = {"K": "shares in the population", "R": "shares in the whole result list"}
GROUPS = ("female", "male")
CUTOFF = 10


def run(results: Results) -> None:
    results.differs(
        "Google images for 33 occupations (Kay, Matuszek & Munson 2015) instead of Google's knowledge graph "
        "carousel for professions, whose data are not public; K is of the Bureau of Labor Statistics instead "
        "of Wikidata."
    )
    lists = results.path("data", "image-search", "results.tsv")
    population = results.path("data", "image-search", "targets.tsv")
    measured = {
        ("K", "length"): er.represent(lists, population, at=CUTOFF),
        ("R", "length"): er.represent(lists, "full", at=CUTOFF),
        ("K", "paper"): er.represent(lists, population, at=CUTOFF, short="paper"),
        ("R", "paper"): er.represent(lists, "full", at=CUTOFF, short="paper"),
    }
    rows = [
        _summary(f"{target} {group}", one, group)
        for (target, short), one in measured.items()
        if short == "length"
        for group in GROUPS
    ]
    results.table("Table 1: representation bias at 10, against both targets", rows, published="Table 1")
    same = all(measured[target, "length"].rows.equals(measured[target, "paper"].rows) for target in TARGETS)
    short = measured["K", "length"].short
    results.fact(
        "lists shorter than 10 are divided by 10 (short='paper'), by their length by default: the histograms "
        "of the two genders mirror each other where no list is short",
        same and short == 0,
        f"{short} short lists here, so both ways give the same values",
        measured["K", "length"].lists,
    )
    for target, number in (("K", 2), ("R", 3)):
        one = measured[target, "length"]
        for kind, name in (("against", "toward men"), ("unbiased", "none"), ("toward", "toward women")):
            found = one.remarkable("female")[kind]
            rows = [
                {"profession": query, "shown": model, "target": share, "bias": bias}
                for query, model, share, bias in found.select("query", "model", "target", "bias").iter_rows()
            ]
            title = f"Table {number}: bias {name}, target {target} ({TARGETS[target]})"
            results.table(title, rows, n=one.lists, published=f"Table {number} {kind}", digits=1)
        _figures(results, target, one)
    _claims(results, measured["K", "length"], measured["R", "length"])


def _summary(name: str, one: Any, group: str) -> dict[str, Any]:
    summary = one.summary(group)
    return {
        "target and group": name,
        "MB": summary["MB"],
        "95% low": summary["low"],
        "95% high": summary["high"],
        **{key: summary[key] for key in ("SB", "MAB", "min", "max")},
        "n": summary["queries"],
    }


def _figures(results: Results, target: str, one: Any) -> None:
    for group in GROUPS:
        counts = pl.DataFrame(list(one.histogram(group).items()), schema=["bias", "queries"], orient="row")
        chart = representation_histogram(counts, feature=group, at=CUTOFF).properties(width=420)
        title = f"Figure 2: bias of {group}, target {target}, n = {one.lists}"
        results.figure(f"figure-2-{target}-{group}", title, chart)
    grid = target_grid(one.grid("female"), feature="female", at=CUTOFF).properties(width=340)
    results.figure(
        f"figure-3-{target}", f"Figure 3: target and shown, target {target}, n = {one.lists}", grid
    )


def _claims(results: Results, population: Any, full: Any) -> None:
    for target, one in (("K", population), ("R", full)):
        mean = one.summary("female")
        interval = {"value": mean["MB"], "low": mean["low"], "high": mean["high"], "n": mean["queries"]}
        results.claim(
            f"results are biased against women ({target}): mean bias below 0", below=0.0, **interval
        )
    rows = [one.of("female") for one in (population, full)]
    sizes = [female.select("query", size=female["bias"].abs()) for female in rows]
    both = sizes[0].join(sizes[1], on="query")
    test = er.stats.paired(both["size"], both["size_right"])
    results.claim(
        "bias is larger against K than against R (mean absolute bias)",
        above=0.0, value=test.difference, low=test.low, high=test.high, n=len(both),
    )  # fmt: skip
