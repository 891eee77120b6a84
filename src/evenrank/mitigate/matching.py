"""Query matching: judgments in which the queries of both genders stand equally close to their documents.

Rankers learn the closer associations better, and those of male queries are closer (Seyedsalehi et al., SIGIR
2022). Dropping the queries that have no counterpart levels them.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

import evenrank
from evenrank.errors import InputError
from evenrank.measures.associating import BINS, association
from evenrank.mitigate.association_scores import score_table
from evenrank.mitigate.balanced import Balanced

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
        :func:`evenrank.mitigate.association_scores.association_scores`. Two of them are the female and the
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
    from evenrank.mitigate.matching_kernel import align, band

    orders = [np.argsort(side, kind="stable") for side in (female, male)]
    a, b = female[orders[0]], male[orders[1]]
    first, last = band(a, b, float(caliper))
    cells = int((last - first).sum())
    if cells > CELLS:
        raise InputError(
            f"caliper {caliper:g} allows {cells:,} pairs, too many to look at; give a narrower one, or bins"
        )
    widest = float(max(a.max(initial=0), b.max(initial=0)) - min(a.min(initial=0), b.min(initial=0)))
    worth = min(len(a), len(b)) * min(float(caliper), widest) + 1.0
    partner = align(a, b, first, last, worth)
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
