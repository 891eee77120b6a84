"""Representation bias: does a result list show a group as often as it should?

A. Lipani, F. Piroi and E. Yilmaz, Towards More Accountable Search Engines: Online Evaluation of
Representation Bias, 2021. All is exact: ratios are fractions, so that 0.15 · 10 is one and a half.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.measures.base import PerQuery, register
from evenrank.measures.groups import AgainstRest
from evenrank.measures.lists import RankedLists
from evenrank.show.grid import Drawn

ROWS = 11
"""Rows of each list of remarkable queries, as in the paper's Tables 2 and 3."""
HALF = Fraction(1, 2)
_BARS = 10_000


def achievable(target: Fraction, n: int, count: int) -> int:
    """How many of n results should show a feature value whose true share is `target`.

    With δ = target · n − ⌊target · n⌋: ⌊target · n⌋ if δ < ½, ⌈target · n⌉ if δ > ½. If δ = ½ both are
    equally right, and the one nearer to `count`, the number that is shown, is taken: the engine gets the
    benefit of the doubt. Definition 2.3 of the paper.
    """
    wanted = target * n
    below = math.floor(wanted)
    delta = wanted - below
    if delta == HALF:
        return below if count <= below else below + 1
    return below + (delta > HALF)


def representation_bias(count: int, n: int, target: Fraction) -> Fraction:
    """β@n: the share of n results that show a feature value, minus the share that should.

    (count − achievable) / n. From −1 to 1; positive: the list leans toward the feature value, negative:
    against it, 0: as often as it should. Definition 2.4 of the paper; its Eq. 5 prints the opposite sign,
    its text and its tables use this one.
    """
    return Fraction(count - achievable(target, n, count), n)


@dataclass(frozen=True)
class FeatureBias:
    """One feature value in one result list: shares shown (`model`) and wished for (`target`)."""

    query: str
    feature: str
    model: Fraction
    target: Fraction
    bias: Fraction
    n: int
    population: float | None = None

    def to_dict(self) -> dict[str, Any]:
        shares = {"model": self.model, "target": self.target, "bias": self.bias}
        return {"query": self.query, "feature": self.feature, **{k: float(v) for k, v in shares.items()}}


@dataclass(frozen=True, repr=False)
class Representation(Drawn):
    """Representation bias of result lists, by query and over queries.

    Attributes
    ----------
    at
        The cut-off n.
    features
        The feature values that were measured, in order.
    rows
        One for each query and feature value.
    short
        Lists with fewer than n results, and `unknown`: the share of the top results that show no feature
        value (they count in n).
    labels
        Where the feature values of the results come from: given, or inferred and how.
    targets
        Where the targets come from.
    left_out
        How many queries have no value, by reason.
    """

    at: int
    features: tuple[str, ...]
    rows: tuple[FeatureBias, ...]
    lists: int
    short: int
    unknown: float
    labels: str
    targets: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    divisor: str = "length"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def of(self, feature: str) -> list[FeatureBias]:
        """The rows of one feature value."""
        return [row for row in self.rows if row.feature == feature]

    def summary(self, feature: str) -> dict[str, float | int | None]:
        """MB (mean) with its 95 % interval over queries (low, high), SB (standard deviation, ddof 1), MAB
        (mean absolute bias), min, max, queries."""
        values = [row.bias for row in self.of(feature)]
        n = len(values)
        if not n:
            names = ("MB", "low", "high", "SB", "MAB", "min", "max")
            return {**dict.fromkeys(names), "queries": 0}
        mean = sum(values, Fraction(0)) / n
        squares = sum(((value - mean) ** 2 for value in values), Fraction(0))
        bounds = stats.mean_interval([float(value) for value in values])
        return {
            "MB": float(mean),
            "low": bounds.low,
            "high": bounds.high,
            "SB": math.sqrt(squares / (n - 1)) if n > 1 else None,
            "MAB": float(sum(map(abs, values), Fraction(0)) / n),
            "min": float(min(values)),
            "max": float(max(values)),
            "queries": n,
        }

    def histogram(self, feature: str) -> dict[float, int]:
        """How many queries have each bias −1, …, −1/n, 0, 1/n, …, 1 (of a short list: the nearest).

        For an n beyond 10,000 only of those that some query has: nobody looks at more bars.
        """
        counts = Counter(round(row.bias * self.at) for row in self.of(feature))
        steps = range(-self.at, self.at + 1) if self.at <= _BARS else sorted(counts)
        return {step / self.at: counts[step] for step in steps}

    def grid(self, feature: str, *, seed: int = 0) -> pl.DataFrame:
        """Target against model, with jitter: query, target, model, and x, y within the square around them.

        Points on the diagonal are free of bias. The jitter only keeps points apart that fall on one
        another, and never leads below 0 or above 1; the same seed gives the same points.
        """
        rows = self.of(feature)
        jitter = (np.random.default_rng(seed).random((len(rows), 2)) - 0.5) * 0.8 / self.at
        target, model = [float(row.target) for row in rows], [float(row.model) for row in rows]
        return pl.DataFrame(
            {
                "query": [row.query for row in rows],
                "target": target,
                "model": model,
                "x": np.clip(np.array(target) + jitter[:, 0], 0, 1),
                "y": np.clip(np.array(model) + jitter[:, 1], 0, 1),
            },
            schema_overrides={"query": pl.String, "target": pl.Float64, "model": pl.Float64},
        )

    def against(self, feature: str) -> list[FeatureBias]:
        """The queries most biased against a feature value, the worst first."""
        return sorted((row for row in self.of(feature) if row.bias < 0), key=lambda row: row.bias)[:ROWS]

    def toward(self, feature: str) -> list[FeatureBias]:
        """The queries most biased toward a feature value, the worst first."""
        return sorted((row for row in self.of(feature) if row.bias > 0), key=lambda row: -row.bias)[:ROWS]

    def unbiased(self, feature: str) -> list[FeatureBias]:
        """Queries without bias, one for each target there is, then others, by target.

        Of several with the same target the one with the largest population comes first, where
        populations are known, else the first given.
        """
        free = sorted((row for row in self.of(feature) if row.bias == 0), key=lambda r: -(r.population or 0))
        seen: set[Fraction] = set()
        first: list[FeatureBias] = []
        others: list[FeatureBias] = []
        for row in free:
            (others if row.target in seen else first).append(row)
            seen.add(row.target)
        return sorted([*first, *others[: max(0, ROWS - len(first))]], key=lambda row: row.target)

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "at": self.at,
            "features": {feature: self.summary(feature) for feature in self.features},
            "queries": [row.to_dict() for row in self.rows],
            "labels": self.labels,
            "targets": self.targets,
            "lists": self.lists,
            "short_lists": {"count": self.short, "divided_by": self.divisor},
            "unknown": self.unknown,
            "left_out": dict(self.left_out),
            "histograms": {
                feature: [{"bias": bias, "queries": n} for bias, n in self.histogram(feature).items()]
                for feature in self.features
            },
            "most": {
                feature: {
                    name: [row.to_dict() for row in listed(feature)]
                    for name, listed in (
                        ("against", self.against),
                        ("unbiased", self.unbiased),
                        ("toward", self.toward),
                    )
                }
                for feature in self.features
            },
            "grids": {feature: self.grid(feature).to_dicts() for feature in self.features},
            "provenance": dict(self.provenance),
        }

    def frame(self) -> pl.DataFrame:
        """One row for each query and feature value."""
        return pl.DataFrame(
            [row.to_dict() for row in self.rows],
            schema={"query": pl.String, "feature": pl.String}
            | dict.fromkeys(("model", "target", "bias"), pl.Float64),
        )


class CountInTop(NamedTuple):
    """How many of the top n show something, and the value for a count; `whole`: only integers occur."""

    shown: Any
    n: int
    value: Callable[[float], float]
    whole: bool


class _MB(AgainstRest):
    """Mean representation bias: the share of the top n that show a group, minus the share that should.

    The value of a query is β@n, in [−1, 1], computed exactly: positive toward the group, negative against
    it, 0 where it is shown as often as n results allow. The mean over queries is MB, the mean of absolute
    values (`abs`) MAB and the standard deviation (`spread`) SB. A list of fewer than n documents is divided
    by its length. With labels as shares every share can be reached, and nothing is rounded to what n results
    allow. With two groups the first is meant unless `group` names one.

    Lipani, Piroi and Yilmaz 2021, Definition 2.4.
    """

    __name__ = NAME = "MB"
    PRETTY_NAME = "Mean representation bias"
    SHORT_DESC = "Share of the top n that show a group, minus the share that should."
    MEANING = "The share of the top {k} that shows a group, minus the share that should show it."
    ORDER_MATTERS = False
    SIGNED = True
    UNDEFINED = "no target for the group"

    def per_query(self, lists: RankedLists) -> PerQuery:
        counts = [self.count_in_top(lists, query) for query in range(len(lists.lengths))]
        values = [math.nan if each is None else each.value(each.shown[: each.n].sum()) for each in counts]
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.undefined(lists))

    def count_in_top(self, lists: RankedLists, query: int) -> CountInTop | None:
        """What the value of a list depends on; None where it is undefined."""
        targets = lists.cached(("exact targets", self), lambda: self.exact_targets(lists))
        column, start, length = self.group(lists.groups), lists.starts[query], int(lists.lengths[query])
        shown, share, n = (
            lists.counts()[start : start + length, column],
            targets[query, column],
            self.cut(length),
        )
        if share is None:
            return None
        if shown.dtype.kind == "f":
            return CountInTop(shown, n, lambda count: float(count / n - float(share)), whole=False)
        return CountInTop(
            shown, n, lambda count: float(representation_bias(int(count), n, share)), whole=True
        )


MB = _MB()
register(MB)
