"""A mitigation at several strengths: what each costs, the front, and the setting to choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.show.grid import Grid, Recorded
from evenrank.show.numbers import DASH, PLAIN, counted, interval, level, number, p_phrase, p_value


@dataclass(frozen=True, eq=False)
class Point:
    """One setting: bias (of sizes, for measures with a sign) and utility with intervals, query by query.

    `change` compares utility with the unmitigated run on the same queries, this minus that; `p_holm` is its
    p, corrected for the number of settings. `bias_change` and `bias_p_holm` are the same for bias. `front`:
    no other setting has less bias and as much utility, or more utility and as little bias.
    """

    strength: float
    bias: stats.Interval
    utility: stats.Interval
    biases: np.ndarray
    utilities: np.ndarray
    run: pl.DataFrame
    change: stats.Comparison | None = None
    p_holm: float | None = None
    bias_change: stats.Comparison | None = None
    bias_p_holm: float | None = None
    front: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Recorded):
    """A mitigation at several strengths, from none to the strongest; iteration goes over the points.

    Attributes
    ----------
    bias
        What is to become less: ``abs(ARaB@10)``, ``abs(DemographicParity@10 - 1)``; or more: ``NFaiRR@10``.
    points
        The unmitigated run first.
    chosen
        The strongest setting with less bias, not beaten by another of this method, up to which no loss of
        utility is significant, or beyond the tolerance; the unmitigated run where there is none. It is chosen
        on `queries`: what it is worth has to be seen on others.
    queries
        The queries that have both a bias and a utility, over which everything is computed.
    trained
        The ranker whose plain training made the first point; None where that is no trained ranker's.
    """

    method: str
    bias: str
    utility: str
    points: tuple[Point, ...]
    chosen: Point
    queries: tuple[str, ...]
    lower_is_fairer: bool = True
    trained: str | None = None
    confidence: float = 0.95

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @property
    def less_bias_significant(self) -> bool | None:
        """Whether the chosen setting has significantly less bias than the unmitigated run.

        By a paired t-test with Holm's correction over the settings; False where that cannot be tested, None
        where the unmitigated run is chosen.
        """
        if self.chosen.bias_change is None:
            return None
        p = self.chosen.bias_p_holm
        return p is not None and p < 1 - self.confidence

    def frame(self) -> pl.DataFrame:
        """One row for each setting."""
        return pl.DataFrame(
            [
                {
                    "method": self.method,
                    "strength": point.strength,
                    "bias": point.bias.value,
                    "bias_low": point.bias.low,
                    "bias_high": point.bias.high,
                    "utility": point.utility.value,
                    "utility_low": point.utility.low,
                    "utility_high": point.utility.high,
                    **_columns("", point.change, point.p_holm),
                    **_columns("bias_", point.bias_change, point.bias_p_holm),
                    "front": point.front,
                    "chosen": point is self.chosen,
                }
                for point in self.points
            ],
            infer_schema_length=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict without the runs; the strength of the first point is null."""
        points = self.frame().drop("method").to_dicts()
        points[0]["strength"] = None
        return {
            "method": self.method,
            "bias": self.bias,
            "utility": self.utility,
            "queries": len(self.queries),
            "trained": self.trained,
            "less_bias_significant": self.less_bias_significant,
            "points": points,
        }

    def remarks(self) -> list[str]:
        """Notes on the points marked none and chosen, and over what all is computed."""
        lines = []
        over = counted(len(self.queries), "query", "queries")
        if self.trained is not None:
            lines.append(
                f"none: the run as {self.trained} re-ranks it after plain training, not as it was given"
            )
        if self.less_bias_significant is False:
            p, way = self.chosen.bias_p_holm, "lower" if self.lower_is_fairer else "higher"
            if p is None:
                lines.append(f"chosen: whether its {self.bias} is {way} by chance cannot be tested on {over}")
            else:
                lines.append(
                    f"chosen: its {self.bias} is not significantly {way} than at none ({p_phrase(p)}, Holm)"
                )
        return [*lines, f"{self.method}, {over}"]

    def grid(self) -> Grid:
        """A row for each setting."""
        between = f"{level(self.confidence)} interval"
        heads = ["strength", self.bias, between, self.utility, between, "change", "p (Holm)", ""]
        rows = []
        for point in self.points:
            first = point is self.points[0]
            marks = [*(["front"] if point.front else []), *(["chosen"] if point is self.chosen else [])]
            change = None if point.change is None else point.change.difference
            row = [
                "none" if first else f"{point.strength:.3g}",
                number(point.bias.value, ".3f"),
                interval(point.bias.low, point.bias.high, PLAIN) or DASH,
                number(point.utility.value, ".3f"),
                interval(point.utility.low, point.utility.high, PLAIN) or DASH,
                "" if first else number(change),
                "" if first else p_value(point.p_holm),
                " ".join(marks),
            ]
            rows.append(row)
        return Grid(heads, rows)

    def __str__(self) -> str:
        return "\n".join([f"{self.bias} against {self.utility}", self.grid().text(), *self.remarks()])


def _columns(prefix: str, change: stats.Comparison | None, p_holm: float | None) -> dict[str, float | None]:
    """A change as columns of a frame; empty for the first point."""
    names = {"difference": "difference", "difference_low": "low", "difference_high": "high", "p": "p"}
    result = {prefix + name: getattr(change, part, None) for name, part in names.items()}
    return {**result, f"{prefix}p_holm": p_holm}


def compare_points(points: Sequence[Point], confidence: float, fairer: float) -> list[Point]:
    """The points with their changes from the first, Holm's correction, and the Pareto front.

    `fairer` is 1 where high bias values are good, else −1.
    """
    first, others = points[0], points[1:]
    useful = [stats.paired(p.utilities, first.utilities, confidence=confidence) for p in others]
    biased = [stats.paired(p.biases, first.biases, confidence=confidence) for p in others]
    adjusted = (stats.holm([change.p for change in changes]) for changes in (useful, biased))
    compared = [
        first,
        *(
            replace(p, change=change, p_holm=p_holm, bias_change=bias_change, bias_p_holm=bias_p_holm)
            for p, change, bias_change, p_holm, bias_p_holm in zip(
                others, useful, biased, *adjusted, strict=True
            )
        ),
    ]
    values = [(fairer * (p.bias.value or 0.0), p.utility.value or 0.0) for p in compared]
    return [
        replace(p, front=not any(f >= fair and u >= use and (f > fair or u > use) for f, u in values))
        for p, (fair, use) in zip(compared, values, strict=True)
    ]


def choose_point(points: Sequence[Point], alpha: float, tolerance: float | None, fairer: float) -> Point:
    """The last point on the front with less bias, before utility falls significantly or beyond the tolerance.

    A loss that cannot be tested counts as significant.
    """
    first = points[0]
    chosen, whole = first, first.utility.value or 0.0
    for point in points[1:]:
        lost = 0.0 if point.change is None else -(point.change.difference or 0.0)
        if tolerance is not None:
            kept = lost <= tolerance * whole
        else:
            kept = point.p_holm is not None and (lost <= 0 or point.p_holm >= alpha)
        if not kept:
            break
        if point.front and fairer * ((point.bias.value or 0.0) - (first.bias.value or 0.0)) > 0:
            chosen = point
    return chosen
