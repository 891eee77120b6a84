"""The arithmetic of GSR: lists as weighted means, a slope over queries, and the contributions to it.

Fabris et al. 2020, Definition 3.7 and Eqs. 2 to 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenrank import stats
from evenrank.measures.base import summarise
from evenrank.measures.lists import Floats, Ints
from evenrank.measures.results import Options, Summary

DISCOUNTS = ("log", "released", "none")
PARTS = ("stereotypical", "counter-stereotypical")


class Line(NamedTuple):
    """The least-squares line of list genderedness on query genderedness."""

    slope: float
    intercept: float
    r: float  # Pearson's correlation; NaN where all y are equal
    p: float | None  # two-sided, of the correlation; None for fewer than three points, or no r
    error: float  # standard error of the slope


def rank_weights(ranks: Ints, discount: str = "log") -> Floats:
    """Return the weight of a document at each rank: 1/log2(r + 1) as defined.

    `released` is what the authors' released code computes, 1/max(1, log2 r), one rank later; with `none`
    all weigh the same.
    """
    if discount == "none":
        return np.ones(len(ranks))
    if discount == "released":
        return 1.0 / np.maximum(1.0, np.log2(ranks))
    return 1.0 / np.log2(ranks + 1.0)


def list_means(values: Floats, weights: Floats, owner: Ints, lists: int) -> tuple[Floats, Floats]:
    """Return g_q(L) of each list and its sum of weights; entries without a value do not count."""
    defined = ~np.isnan(values)
    weight = np.where(defined, weights, 0.0)
    total = np.bincount(owner, weight * np.where(defined, values, 0.0), minlength=lists)
    size = np.bincount(owner, weight, minlength=lists).astype(np.float64)  # integers where there is none
    return np.divide(total, size, out=np.full(lists, np.nan), where=size > 0), size


def fit(x: Floats, y: Floats) -> Line | None:
    """Fit the line y = intercept + slope · x; None if fewer than two points, or all x are equal.

    Lists that are all alike have a slope of exactly 0.
    """
    if len(x) < 2 or not ((x - x.mean()) ** 2).sum() > 1e-24:
        return None
    if np.ptp(y) == 0:
        return Line(0.0, float(y[0]), math.nan, None, 0.0)
    from scipy.stats import linregress

    line = linregress(x, y)
    p = float(line.pvalue) if len(x) > 2 else None
    return Line(float(line.slope), float(line.intercept), float(line.rvalue), p, float(line.stderr))


def slopes(x: Floats, y: Floats, axis: int = -1) -> Floats:
    """The slope along an axis, for many resamples at once; NaN where all x are equal."""
    dx = x - x.mean(axis=axis, keepdims=True)
    covariance = (dx * y).sum(axis=axis)
    variance = (dx * dx).sum(axis=axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 1e-24, covariance / variance, np.nan)


class Entries(NamedTuple):
    """The ranked documents of all lists, those of one query together.

    `owner` is the row of the query, `docs` that of the document (−1 if the collection lacks it), `values` are
    g_q(d), NaN for a document that has none.
    """

    owner: Ints
    docs: Ints
    ranks: Ints
    values: Floats

    def where(self, mask: NDArray[np.bool_]) -> Entries:
        return Entries(self.owner[mask], self.docs[mask], self.ranks[mask], self.values[mask])


@dataclass(frozen=True)
class SlopeSummary(Summary):
    """GSR over a set of queries, with the line whose slope it is."""

    line: Line | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """The line through the queries of a run, and the documents that give each query its value.

    `x` is g(q) and `y` is g_q(L), by query; `queries` are their rows in the table of queries. `entries` are
    their ranked documents; here `owner` is a place in x. `weights` are w_k/W_i, shares of the sum of weights
    of their list. `line` is None where there is none to draw.
    """

    queries: Ints
    x: Floats
    y: Floats
    entries: Entries
    weights: Floats

    @cached_property
    def line(self) -> Line | None:
        return fit(self.x, self.y)

    @cached_property
    def contributions(self) -> Floats:
        """c_i = (x_i − μ_x)(y_i − μ_y)/σ²_x, with the population variance; their mean is the slope."""
        dx = self.x - self.x.mean()
        return dx * (self.y - self.y.mean()) / float(np.mean(dx * dx))

    @cached_property
    def coefficients(self) -> Floats:
        """w_k (x_i − μ_x)/(σ²_x N W_i): Σ coefficient · (g_q(d_k) − μ_y) over all documents is the slope."""
        dx = self.x - self.x.mean()
        return self.weights * (dx / float(dx @ dx))[self.entries.owner]

    @cached_property
    def shares(self) -> Floats:
        """What each document adds to the slope; 0 for one without a value."""
        return np.nan_to_num(self.coefficients * (self.entries.values - self.y.mean()))

    @cached_property
    def parts(self) -> dict[str, Floats]:
        """Eqs. 4 and 5, by query: what documents of the query's own polarity add, and what the others do.

        A document is stereotypical for a query if both lean the same way (§3.5). Contributions are about
        the means, so that either part may have either sign.
        """
        n, owner = len(self.x), self.entries.owner
        same = self.x[owner] * self.entries.values > 0
        sums = (np.bincount(owner, n * self.shares * side, minlength=n) for side in (same, ~same))
        return {name: part.astype(np.float64) for name, part in zip(PARTS, sums, strict=True)}

    def summary(self, options: Options) -> SlopeSummary:
        """The slope with its interval: queries are drawn anew and the line is fitted to each draw."""
        if self.line is None:
            return SlopeSummary()
        low = high = None
        if options.confidence is not None:
            interval = stats.bootstrap(
                slopes,
                self.x,
                self.y,
                confidence=options.confidence,
                resamples=options.resamples,
                seed=options.seed,
            )
            low, high = interval.low, interval.high
        everything = np.ones(len(self.x), bool)
        plain = replace(options, confidence=None)
        over = summarise(self.contributions, self.parts, everything, signed=True, options=plain)
        fields: Any = vars(over) | {"value": self.line.slope, "low": low, "high": high}
        return SlopeSummary(**fields, line=self.line)
