"""Representation bias of labelled result lists (Lipani et al. 2021)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.labelled_lists import represent
from evenrank.reproduce.page import Chart, Page, Table, changed
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import number


def representation_recipe(settings: Settings, steps: Steps) -> Page:
    """Representation bias of labelled result lists."""
    if settings.data is None:
        raise InputError("representation needs --data: a folder with results.tsv and targets.tsv")

    def work() -> dict[str, Any]:
        folder = Path(str(settings.data))
        made = represent(folder / "results.tsv", folder / "targets.tsv", at=settings.option("at"))
        content = made.to_dict()
        rows = [row.to_dict() for row in made.rows]
        return {"content": content, "rows": rows}

    found = steps("representation", settings.facts, work)
    features = sorted({row["feature"] for row in found["rows"]})
    rows, claims = [], []
    for feature in features:
        values = [float(row["bias"]) for row in found["rows"] if row["feature"] == feature]
        test = stats.paired(values, [0.0] * len(values), seed=settings.seed)
        bounds = f"[{number(test.low)}, {number(test.high)}]"
        rows.append([feature, number(test.difference), bounds, str(len(values))])
        if feature == "female":
            says = "images under-represent women on the whole (Kay, Matuszek & Munson 2015)"
            claims.append(changed(says, "their share, against the target,", asdict(test), lower=True))
    return Page(
        "representation",
        "Representation bias of result lists",
        "A. Lipani, F. Piroi and E. Yilmaz, 2021",
        "Shares of groups in the top results of a search engine against their true shares.",
        f"The same measure on {settings.name}; the authors' data are not public.",
        [
            Table(
                f"Mean representation bias at {settings.option('at')}",
                ["group", "mean", "95% interval", "queries"],
                rows,
                [_histogram(found["rows"], settings.option("at"), features[0])],
            )
        ],
        claims,
        ["Another engine, other queries and labels."],
        {"features": found["content"]["features"]},
    )


def _histogram(rows: list[dict[str, Any]], at: int, feature: str) -> Chart:
    """How many queries show a group too seldom or too often."""
    counts: dict[float, int] = {}
    for row in rows:
        if row["feature"] == feature:
            step = round(float(row["bias"]) * at) / at
            counts[step] = counts.get(step, 0) + 1
    half = 0.42 / at
    drawn = [{"x": step - half, "end": step + half, "value": n} for step, n in sorted(counts.items())]
    caption = (
        f"Left of 0 {feature} results are shown less than they should be. {asked([sum(counts.values())])}."
    )
    return Chart(
        "histogram", drawn, f"share of {feature} in the top {at}, minus its target", "queries", caption
    )
