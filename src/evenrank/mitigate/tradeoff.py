"""A mitigation at several strengths: what each costs, the front, and the setting to choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.errors import InputError
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
    less_bias_significant
        Whether the chosen setting has significantly less bias than the unmitigated run (paired t-test, Holm's
        correction over the settings); False where that cannot be tested, None where that run is chosen.
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
    less_bias_significant: bool | None = None
    trained: str | None = None
    confidence: float = 0.95

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

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
        """As JSON knows it, without the runs; an infinite bound is none."""
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
        """What has to be known of the points marked none and chosen, in a line each."""
        lines = []
        if self.trained is not None:
            lines.append(
                f"none: the run as {self.trained} re-ranks it after plain training, not as it was given"
            )
        if self.less_bias_significant is False:
            p, way = self.chosen.bias_p_holm, "lower" if self.lower_is_fairer else "higher"
            if p is None:
                over = counted(len(self.queries), "query", "queries")
                lines.append(f"chosen: whether its {self.bias} is {way} by chance cannot be tested on {over}")
            else:
                lines.append(
                    f"chosen: its {self.bias} is not significantly {way} than at none ({p_phrase(p)}, Holm)"
                )
        return lines

    def grid(self) -> Grid:
        """A row for each setting."""
        return curves_grid([self])

    def __str__(self) -> str:
        over = counted(len(self.queries), "query", "queries")
        title = f"{self.method}: {self.bias} against {self.utility}, {over}"
        return "\n".join([title, self.grid().text(), *self.remarks()])


def curves_grid(curves: Sequence[TradeOff]) -> Grid:
    """The settings of one curve or of several; a single one needs no column for its method."""
    first, several = curves[0], len(curves) > 1
    between = f"{level(first.confidence)} interval"
    heads = ["strength", first.bias, between, first.utility, between, "change", "p (Holm)", ""]
    rows = []
    for curve in curves:
        for point in curve:
            none = point is curve.points[0]
            marks = [*(["front"] if point.front else []), *(["chosen"] if point is curve.chosen else [])]
            change = None if point.change is None else point.change.difference
            row = [
                "none" if none else f"{point.strength:.3g}",
                number(point.bias.value, ".3f"),
                interval(point.bias.low, point.bias.high, PLAIN) or DASH,
                number(point.utility.value, ".3f"),
                interval(point.utility.low, point.utility.high, PLAIN) or DASH,
                "" if none else number(change),
                "" if none else p_value(point.p_holm),
                " ".join(marks),
            ]
            rows.append([curve.method, *row] if several else row)
    return Grid(["method", *heads] if several else heads, rows)


def curves_remarks(curves: Sequence[TradeOff]) -> list[str]:
    """What is said of all curves once, and what is said of some with the method's name before it."""
    lines = [curve.remarks() for curve in curves]
    shared = [line for line in lines[0] if all(line in each for each in lines)]
    own = [
        f"{curve.method}, {line}"
        for curve, each in zip(curves, lines, strict=True)
        for line in each
        if line not in shared
    ]
    over = [f"{curve.method}, {counted(len(curve.queries), 'query', 'queries')}" for curve in curves]
    return [*shared, *own, *over]


def _columns(prefix: str, change: stats.Comparison | None, p_holm: float | None) -> dict[str, float | None]:
    """A change as columns of a frame; empty for the first point, which has changed from nothing."""
    names = {"difference": "difference", "difference_low": "low", "difference_high": "high", "p": "p"}
    result = {prefix + name: getattr(change, part, None) for name, part in names.items()}
    return {**result, f"{prefix}p_holm": p_holm}


def one_front(curves: Sequence[TradeOff]) -> list[TradeOff]:
    """The curves with one Pareto front over all their points; they have to share measures and queries."""
    if len({(curve.bias, curve.utility) for curve in curves}) > 1:
        raise InputError("the trade-offs have different measures; they cannot have one front")
    if len({frozenset(curve.queries) for curve in curves}) > 1:
        raise InputError("the trade-offs are over different queries; sweep their methods together")
    together = [point for curve in curves for point in curve.points]
    rows = []
    for curve in curves:
        fairer = -1.0 if curve.lower_is_fairer else 1.0
        points = tuple(replace(p, front=undominated(p, together, fairer)) for p in curve.points)
        rows.append(replace(curve, points=points, chosen=points[curve.points.index(curve.chosen)]))
    return rows


def compared(points: list[Point], confidence: float) -> list[Point]:
    """Each point's utility and bias beside those of the first, each with Holm's correction."""
    first, others = points[0], points[1:]
    useful = [stats.paired(p.utilities, first.utilities, confidence=confidence) for p in others]
    biased = [stats.paired(p.biases, first.biases, confidence=confidence) for p in others]
    adjusted = (stats.holm([change.p for change in changes]) for changes in (useful, biased))
    return [
        first,
        *(
            replace(p, change=change, p_holm=p_holm, bias_change=bias_change, bias_p_holm=bias_p_holm)
            for p, change, bias_change, p_holm, bias_p_holm in zip(
                others, useful, biased, *adjusted, strict=True
            )
        ),
    ]


def undominated(point: Point, points: Sequence[Point], fairer: float) -> bool:
    def worth(p: Point) -> tuple[float, float]:
        return fairer * (p.bias.value or 0.0), p.utility.value or 0.0

    fair, useful = worth(point)
    return not any(
        f >= fair and u >= useful and (f > fair or u > useful) for f, u in (worth(p) for p in points)
    )


def chosen_of(points: Sequence[Point], alpha: float, tolerance: float | None, fairer: float) -> Point:
    """The last point on the front with less bias, before utility falls significantly or beyond the tolerance.

    A loss that cannot be tested counts as one that is significant.
    """
    first = points[0]
    reached, whole = first, first.utility.value or 0.0
    for point in points[1:]:
        lost = 0.0 if point.change is None else -(point.change.difference or 0.0)
        if tolerance is not None:
            kept = lost <= tolerance * whole
        else:
            kept = point.p_holm is not None and (lost <= 0 or point.p_holm >= alpha)
        if not kept:
            break
        if point.front and fairer * ((point.bias.value or 0.0) - (first.bias.value or 0.0)) > 0:
            reached = point
    return reached


def is_significant(chosen: Point, alpha: float) -> bool | None:
    """Whether the bias of the chosen point, which is less, is so by more than chance; None for the first."""
    if chosen.bias_change is None:
        return None
    return chosen.bias_p_holm is not None and chosen.bias_p_holm < alpha
