"""Figures of further findings: trade-off, rank shift, representation, psychology, association."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenrank.errors import InputError
from evenrank.mitigate.tradeoff import TradeOff
from evenrank.show import charts
from evenrank.show.figures import Figure, slug
from evenrank.show.measured_figures import RUNS


def tradeoff_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    swept = [given] if isinstance(given, TradeOff) else given
    axes: dict[str, str] = {}
    if isinstance(swept, list) and swept and all(isinstance(each, TradeOff) for each in swept):
        for of in ("bias", "utility"):
            if len({getattr(each, of) for each in swept}) > 1:
                raise InputError(f"the trade-offs have different measures of {of}; give one report each")
        table = pl.concat([_settings(each) for each in swept])
        axes = {"bias": swept[0].bias, "utility": swept[0].utility}
    else:
        table = _frame(given, "tradeoff", ("bias", "utility"))
    found = charts.pareto(table)
    front = int(found["front"].sum())
    caption = f"{front} of {found.height} settings are on the Pareto front: no other is as good in both."
    alt = f"Bias against utility. {caption}"
    return [Figure("tradeoff", "Bias and utility", caption, alt, charts.tradeoff(table, **axes), found, True)]


def _settings(swept: TradeOff) -> pl.DataFrame:
    """The points of a sweep; the unmitigated run, which no bound holds, has a name and no strength."""
    sign = "λ = " if not swept.method.startswith("constrain") else "≤ " if swept.lower_is_fairer else "≥ "
    bounded = pl.col("strength").is_finite() & (pl.int_range(pl.len()) > 0)
    return swept.frame().select(
        "method",
        name=pl.when(bounded)
        .then(pl.concat_str(pl.lit(sign), pl.col("strength").round_sig_figs(2)))
        .otherwise(pl.lit("none")),
        bias="bias",
        utility="utility",
        low="utility_low",
        high="utility_high",
    )


def rankshift_figures(frame: Any) -> list[Figure]:
    if frame is None:
        return []
    table = _frame(frame, "rank_shift", ("before", "after"))
    counted = charts.shift_data(table)
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
    chart = charts.rank_shift(counted, of=what)
    return [Figure("rankshift", "Counterfactual rank shift", caption, caption, chart, counted, True)]


def representation_figures(given: Any, *, feature: str | None = None, named: str = " of {}") -> list[Figure]:
    """A histogram and a grid for each run and group; of two groups one will do: `feature`, or the first."""
    if not given:
        return []
    by_run = given if isinstance(given, Mapping) else {"": given}
    found: list[Figure] = []
    for run, shown in list(by_run.items())[:RUNS]:
        of = named.format(run) if run else ""
        chosen = [feature] if feature is not None and feature in shown.features else list(shown.features)
        for group in chosen[:1] if len(shown.features) == 2 else chosen:
            summary = shown.summary(group)
            if not summary["queries"]:
                continue
            rows = list(shown.histogram(group).items())
            counts = pl.DataFrame(rows, schema=["bias", "queries"], orient="row")
            mean, size, queries = summary["MB"], summary["MAB"], summary["queries"]
            says = f"Mean {mean:+.3f}, mean size {size:.3f}, over {queries:,} queries."
            name = f"{slug(run)}-{slug(group)}-{len(found)}"
            found.append(
                Figure(
                    f"representation-{name}",
                    f"{group} in the top {shown.at}{of}",
                    f"Left: shown less than it should be; right: more. {says}",
                    f"Histogram of representation bias toward {group}{of}. {says}",
                    charts.representation_histogram(counts, feature=group, at=shown.at),
                    counts,
                )
            )
            grid = shown.grid(group)
            found.append(
                Figure(
                    f"grid-{name}",
                    f"{group}: target and shown{of}",
                    "On the dashed line a query is free of bias; above it the group is shown too often.",
                    f"Target share of {group} against the share shown{of}. {says}",
                    charts.target_grid(grid, feature=group, at=shown.at),
                    grid.select("query", "target", "model", "x", "y"),
                )
            )
    return found


def psychology_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    from evenrank.psychology import RankingsAudit

    if isinstance(given, RankingsAudit):
        bars = given.bars().filter(pl.col("run") == given.baseline).drop("run")
    else:
        bars = given.bars()
    found: list[Figure] = []
    for (process,), frame in bars.group_by(["process"], maintain_order=True):
        name = str(process) or "other"
        parts = frame.filter(pl.col("characteristic") != process)
        frame = (parts if not parts.is_empty() else frame).select("characteristic", "gender", "percent")
        found.append(
            Figure(
                f"psychology-{slug(name)}",
                name.capitalize(),
                "Share of words, mean over queries of each gender.",
                f"Percent of words of each characteristic of {name}, by the gender of the query.",
                charts.process_bars(frame),
                frame,
            )
        )
    return found


def association_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    frame = given if isinstance(given, pl.DataFrame) else given.frame()
    caption = "Where the two differ, one gender's queries stand closer to their own relevant documents."
    if not isinstance(given, pl.DataFrame):
        caption += (
            f" Means: female {given.means['female']:.2f}, male {given.means['male']:.2f}; "
            f"overlap {given.overlap:.0%}."
        )
    chart = charts.association_histogram(frame)
    title = "Association of queries with their documents"
    return [Figure("association", title, caption, caption, chart, frame, True)]


def _frame(given: Any, name: str, columns: tuple[str, ...]) -> pl.DataFrame:
    frame = given if isinstance(given, pl.DataFrame) else pl.DataFrame(given)
    for column in columns:
        if column not in frame.columns:
            raise InputError(f"{name} needs a column {column!r}; it has {', '.join(frame.columns)}")
    return frame
