"""The arithmetic of GSR: lists as weighted means, a slope over queries, and what makes it up.

All functions take plain arrays. Entries are the ranked documents of all lists, one list after the other;
`owner` names the list of each entry. Fabris et al. 2020, Definition 3.7 and Eqs. 2 to 5.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Discount = Literal["log", "released", "none"]
DISCOUNTS: tuple[Discount, ...] = ("log", "released", "none")


class Line(NamedTuple):
    """The least-squares line of list genderedness on query genderedness."""

    slope: float
    intercept: float
    r: float  # Pearson's correlation; NaN where all y are equal
    error: float  # standard error of the slope


def rank_weights(ranks: Ints, discount: Discount = "log") -> Floats:
    """What a document at each rank weighs: 1/log2(r + 1) as defined.

    `released` is what the authors' released code computes, 1/max(1, log2 r), one rank later; `none`
    weighs all alike.
    """
    if discount == "none":
        return np.ones(len(ranks))
    if discount == "released":
        return 1.0 / np.maximum(1.0, np.log2(ranks))
    return 1.0 / np.log2(ranks + 1.0)


def list_means(values: Floats, weights: Floats, owner: Ints, lists: int) -> tuple[Floats, Floats]:
    """g_q(L) of each list and its sum of weights; entries without a value leave with their weight."""
    defined = ~np.isnan(values)
    weight = np.where(defined, weights, 0.0)
    total = np.bincount(owner, weight * np.where(defined, values, 0.0), minlength=lists)
    size = np.bincount(owner, weight, minlength=lists).astype(np.float64)  # integers where there is none
    return np.divide(total, size, out=np.full(lists, np.nan), where=size > 0), size


def fit(x: Floats, y: Floats) -> Line | None:
    """The line y = intercept + slope · x; None if fewer than two points, or all x are equal.

    Summed in extended precision, so that lists that are all alike have a slope of exactly 0, and
    mirrored lists the mirrored slope.
    """
    if len(x) < 2:
        return None
    wide, high = x.astype(np.longdouble), y.astype(np.longdouble)
    dx, dy = wide - wide.mean(), high - high.mean()
    variance, spread = dx @ dx, dy @ dy
    if not variance > 1e-24:
        return None
    if np.ptp(y) == 0:
        return Line(0.0, float(y[0]), math.nan, 0.0)
    slope = dx @ dy / variance
    residual = dy - slope * dx
    freedom = len(x) - 2
    return Line(
        slope=float(slope),
        intercept=float(high.mean() - slope * wide.mean()),
        r=float(np.clip(dx @ dy / np.sqrt(variance * spread), -1, 1)),
        error=float(np.sqrt(residual @ residual / freedom / variance)) if freedom > 0 else 0.0,
    )


def significance(r: float, points: int) -> float | None:
    """Two-sided p of a correlation, by Student's t; None for fewer than three points, or no r."""
    if points < 3 or math.isnan(r):
        return None
    if abs(r) == 1:
        return 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(points - 2, -abs(r) * math.sqrt((points - 2) / (1 - r * r))))


def slopes(x: Floats, y: Floats, axis: int = -1) -> Floats:
    """The slope along an axis, for many resamples at once; NaN where all x are equal."""
    dx = x - x.mean(axis=axis, keepdims=True)
    covariance = (dx * y).sum(axis=axis)
    variance = (dx * dx).sum(axis=axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 1e-24, covariance / variance, np.nan)


def query_contributions(x: Floats, y: Floats) -> Floats:
    """c_i = (x_i − μ_x)(y_i − μ_y)/σ²_x, with the population variance; their mean is the slope."""
    dx = x - x.mean()
    return dx * (y - y.mean()) / float(np.mean(dx * dx))


def document_contributions(
    x: Floats, y: Floats, values: Floats, weights: Floats, owner: Ints, sizes: Floats
) -> Floats:
    """w_k (x_i − μ_x)(g_q(d_k) − μ_y)/(σ²_x N W_i): each document's share; their sum is the slope.

    x, y and sizes (W) are by list, the rest by entry; entries without a value contribute 0.
    """
    dx = x - x.mean()
    scale = dx / (float(np.mean(dx * dx)) * len(x) * sizes)
    shares = weights * scale[owner] * (values - y.mean())
    return np.where(np.isnan(values), 0.0, shares)
