"""Query matching: judgments in which the queries of both genders stand equally close to their documents.

Rankers learn the closer associations better, and those of male queries are closer (Seyedsalehi et al., SIGIR
2022). Dropping the queries that have no counterpart levels them.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

import evenrank
from evenrank.errors import InputError
from evenrank.measures.associating import BINS, association
from evenrank.mitigate.balanced import Balanced, score_table

Method = Literal["matching", "bins"]
Range = Literal["pooled", "male"]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

CELLS = 400_000_000
"""Pairs within the caliper that are looked at, at most: a byte each."""
AUSTIN = 0.2
"""Caliper in standard deviations that is usual in matching (Austin 2011), enough for small sets."""


def balance(
    scores: Any,
    male: Any = None,
    *,
    genders: Any = None,
    method: Method = "matching",
    caliper: float | None = None,
    bins: int = BINS,
    range: Range = "pooled",
    seed: int = 0,
) -> Balanced:
    """Leave out queries until those of both genders stand equally close to their relevant documents.

    Parameters
    ----------
    scores, male
        How close queries stand to their documents (γ, the BM25 score): a table or file with ``query_id``,
        ``score`` and perhaps ``doc_id``, one row for each query and relevant document; see
        :func:`evenrank.mitigate.balanced.association_scores`. Two of them are the female and the
        male queries; a single one needs ``genders``.
    genders
        The gender of each query. Queries that are neither female nor male are all kept.
    method
        ``matching`` (the default) pairs each query with one of the other gender whose score is nearly the
        same: the most pairs within the caliper, and of those the nearest, exactly. ``bins`` draws equally
        many of both genders from each of some bins, as published; within a bin differences remain.
    caliper
        How far the scores of a pair may be apart. By default min(0.2, 1/√(n/2)) standard deviations of all
        scores, n the smaller side: so narrow that a Kolmogorov–Smirnov test cannot tell the sides apart.
    bins, range
        How many bins of equal width, over all scores or, as in the released code, those of male queries;
        what lies outside is dropped.
    seed
        Of the draw from the bins. Matching is not random.

    Examples
    --------
    >>> even = balance({"f1": 1.0, "f2": 2.0}, {"m1": 2.1, "m2": 9.0, "m3": 1.0}, caliper=0.5)
    >>> even.kept["query_id"].to_list()
    ['f1', 'm3', 'f2', 'm1']
    """
    if method not in get_args(Method):
        raise InputError(f"method is {method!r}; choose one of: {', '.join(get_args(Method))}")
    if range not in get_args(Range):
        raise InputError(f"range is {range!r}; choose one of: {', '.join(get_args(Range))}")
    table, rest = score_table(scores, male, genders)
    sides = {g: table.filter(pl.col("gender") == g) for g in ("female", "male")}
    values = [side["score"].to_numpy() for side in sides.values()]
    for gender, value in zip(sides, values, strict=True):
        if len(value) == 0:
            raise InputError(f"there are no scores of {gender} queries")
    settings: dict[str, Any] = {"method": method}
    if method == "bins":
        settings |= {"bins": bins, "range": range, "seed": seed}
        f, m = drawn(*values, bins=bins, edges_of=range, seed=seed)
        pair = None
    else:
        width = default_caliper(*values) if caliper is None else caliper
        settings["caliper"] = width
        f, m = matched(*values, caliper=width)
        pair = np.arange(len(f))
    if len(f) == 0:
        raise InputError("no two queries are close enough to pair; give a wider caliper or fewer bins")
    chosen = []
    for side, places in zip(sides.values(), (f, m), strict=True):
        part = side[places]
        chosen.append(part.with_columns(pair=pl.Series(pair, dtype=pl.Int64)) if pair is not None else part)
    kept = pl.concat(chosen)
    if pair is not None:
        kept = kept.sort("pair", "gender")
    return Balanced(
        kept=kept,
        scores=table,
        neither=rest,
        before=association(*values, bins=bins),
        after=association(values[0][f], values[1][m], bins=bins),
        provenance={"evenrank": evenrank.__version__, **settings},
    )


def default_caliper(female: Floats, male: Floats) -> float:
    """min(0.2, 1/√(n/2)) standard deviations of all scores, n the smaller side.

    Where no two scores of a pair are further apart than c, the two distributions differ nowhere by more than
    the share of scores in a stretch of length c, for a bell curve at most 0.4 c/σ. With this c the statistic
    of Kolmogorov and Smirnov, √(n/2)·D, stays near 0.4, whose p is 0.99.
    """
    spread = float(np.std(np.concatenate([female, male])))
    return spread * min(AUSTIN, (min(len(female), len(male)) / 2) ** -0.5)


def matched(female: Floats, male: Floats, *, caliper: float) -> tuple[Places, Places]:
    """The best one-to-one pairs within the caliper, as places in both arrays, by rising score."""
    if not caliper >= 0:
        raise InputError(f"caliper is {caliper}; it must be 0 or more")
    orders = [np.argsort(side, kind="stable") for side in (female, male)]
    a, b = female[orders[0]], male[orders[1]]
    first, last = _band(a, b, float(caliper))
    cells = int((last - first).sum())
    if cells > CELLS:
        raise InputError(
            f"caliper {caliper:g} allows {cells:,} pairs, too many to look at; give a narrower one, or bins"
        )
    widest = float(max(a.max(initial=0), b.max(initial=0)) - min(a.min(initial=0), b.min(initial=0)))
    worth = min(len(a), len(b)) * min(float(caliper), widest) + 1.0
    partner = _align(a, b, first, last, worth)
    paired = partner >= 0
    return orders[0][paired], orders[1][partner[paired]]


def drawn(
    female: Floats, male: Floats, *, bins: int = BINS, edges_of: Range = "pooled", seed: int = 0
) -> tuple[Places, Places]:
    """From each bin equally many of both sides, drawn without replacement, as places in both arrays."""
    if bins < 1:
        raise InputError(f"bins is {bins}, but must be at least 1")
    edges = np.histogram_bin_edges(male if edges_of == "male" else np.concatenate([female, male]), bins)
    rng = np.random.default_rng(seed)
    found: tuple[list[Places], list[Places]] = ([], [])
    codes = [_bin(side, edges) for side in (female, male)]
    for number in np.arange(bins):
        members = [np.flatnonzero(code == number) for code in codes]
        size = min(map(len, members))
        for side, places in zip(found, members, strict=True):
            side.append(np.sort(rng.choice(places, size, replace=False)) if size else places[:0])
    return np.concatenate(found[0]), np.concatenate(found[1])


def _bin(values: Floats, edges: Floats) -> Places:
    """The number of each value's bin as `numpy.histogram` counts it: the last one holds its upper edge."""
    code = np.searchsorted(edges, values, side="right") - 1
    code[values == edges[-1]] = len(edges) - 2
    code[(values < edges[0]) | (values > edges[-1])] = -1
    return code


# On a line, two pairs that cross can be uncrossed without making either the sum or the largest of the
# distances greater. So some best pairing does not cross, and is found, exactly, as the best alignment of two
# sorted sequences: by dynamic programming, only over those cells in which the numbers are within the caliper.

_LEFT, _UP, _PAIR = 0, 1, 2


@njit(nogil=True, cache=True)
def _band(a, b, caliper):  # type: ignore[no-untyped-def]
    """For each number of sorted a, the stretch of sorted b within the caliper: first, one past the last."""
    first, last = np.zeros(len(a), np.int64), np.zeros(len(a), np.int64)
    low = high = 0
    for i in range(len(a)):
        while low < len(b) and a[i] - b[low] > caliper:
            low += 1
        high = max(high, low)
        while high < len(b) and b[high] - a[i] <= caliper:
            high += 1
        first[i], last[i] = low, high
    return first, last


@njit(nogil=True, cache=True)
def _align(a, b, first, last, worth):  # type: ignore[no-untyped-def]
    """Partner in sorted b of each number of sorted a, or −1; most pairs first, then the least distance.

    best[j] is the value of the best pairing of the numbers so far with b[:j]; a pair is worth `worth` (more
    than all distances together) less its distance. Behind the stretch of a number best is constant, since
    nothing there can be paired yet; before it, it is never asked for again.
    """
    best = np.zeros(len(b) + 1)
    starts = np.zeros(len(a) + 1, np.int64)
    for i in range(len(a)):
        starts[i + 1] = starts[i] + last[i] - first[i]
    choice = np.zeros(starts[-1], np.uint8)
    filled = 0  # best is right up to here, and constant from here on
    for i in range(len(a)):
        for j in range(filled + 1, last[i] + 1):
            best[j] = best[filled]
        filled = max(filled, last[i])
        diagonal = best[first[i]]
        for j in range(first[i] + 1, last[i] + 1):
            above = best[j]
            value, how = above, _UP
            if best[j - 1] > value:
                value, how = best[j - 1], _LEFT
            paired = diagonal + worth - abs(a[i] - b[j - 1])
            if paired > value:
                value, how = paired, _PAIR
            choice[starts[i] + j - 1 - first[i]] = how
            best[j] = value
            diagonal = above
    partner = np.full(len(a), -1, np.int64)
    j = len(b)
    for i in range(len(a) - 1, -1, -1):
        j = min(j, last[i])
        while j > first[i]:
            how = choice[starts[i] + j - 1 - first[i]]
            if how == _PAIR:
                partner[i] = j - 1
                j -= 1
                break
            if how == _UP:
                break
            j -= 1
    return partner
