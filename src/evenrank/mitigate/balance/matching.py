"""Judgments in which the queries of both genders stand equally close to their documents.

Rankers learn the closer associations better, and those of male queries are closer (Seyedsalehi et al., SIGIR
2022). Query matching drops the queries that have no counterpart of the other gender. Balancing by generation
drops none: those without a counterpart get one, a generated query that stands as close to its document
(Section 4.2).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

import evenrank
from evenrank.data.read import read_genders, read_qrels, read_queries
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.measures.association import BINS, Association, association, pair_scores
from evenrank.mitigate.balance.training_set import TrainingSet, predicted_or_given
from evenrank.queries.generated import read_generated
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import bm25
from evenrank.show.grid import Grid
from evenrank.show.numbers import number, p_value

Method = Literal["matching", "bins"]
Range = Literal["pooled", "male"]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

GENDERS = ("female", "male")
CELLS = 400_000_000
"""Pairs within the caliper that are looked at, at most: a byte each."""
AUSTIN = 0.2
"""Caliper in standard deviations that is usual in matching (Austin 2011), enough for small sets."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Balanced(TrainingSet):
    """Judgments in which both genders stand equally close to their documents.

    Attributes
    ----------
    pairs
        ``query_id, doc_id, score, gender`` of the queries that were kept, with the number of their ``pair``
        if they were matched; by generation, of the queries that were added.
    before, after
        The two distributions of scores, and how far apart they are: Kolmogorov–Smirnov, Wasserstein, means,
        histograms.
    """

    pairs: pl.DataFrame
    before: Association
    after: Association

    def genders(self) -> pl.DataFrame:
        return self.pairs

    def frame(self) -> pl.DataFrame:
        """The histograms before and after, ready for a chart: a row for each bin, gender and time."""
        parts = {"before": self.before, "after": self.after}
        return pl.concat(
            [part.frame().insert_column(0, pl.lit(when).alias("when")) for when, part in parts.items()]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries added": len(self.added),
            "left_out": self.left_out,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "provenance": self.provenance,
        }

    def grid(self) -> Grid:
        """How many pairs of query and document there are, and how far apart the sides are."""
        heads = ["", "female pairs", "male pairs", "mean female", "mean male", "KS", "p", "Wasserstein"]
        rows = [
            [
                name,
                *(f"{part.pairs[gender]:,}" for gender in GENDERS),
                *(number(part.means[gender], ".3f") for gender in GENDERS),
                number(part.kolmogorov_smirnov, ".4f"),
                p_value(part.p),
                number(part.wasserstein, ".4f"),
            ]
            for name, part in (("before", self.before), ("after", self.after))
        ]
        return Grid(heads, rows)


def association_scores(
    index: Index | str | os.PathLike[str], queries: Any, qrels: Any, *, k1: float = 0.9, b: float = 0.4
) -> pl.DataFrame:
    """The BM25 score of every query with each of its relevant documents: ``query_id, doc_id, score``.

    A query that shares no term with its document scores 0. Documents that the index lacks are left out.
    """
    ranker = bm25(index, k1=k1, b=b)
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0)
    requested = read_queries(queries).join(judged, on="query_id", how="semi")
    known = pl.Series(ranker.index.numbers(judged["doc_id"].to_list())) >= 0
    pairs = judged.filter(known & pl.col("query_id").is_in(requested["query_id"].implode()))
    return ranker.scores(requested, pairs)


def balance(
    scores: Any,
    genders: Any,
    *,
    method: Method = "matching",
    caliper: float | None = None,
    bins: int = BINS,
    range: Range = "pooled",
    seed: int = 0,
) -> Balanced:
    """Leave out queries until those of both genders are equally close to their relevant documents.

    Parameters
    ----------
    scores
        How close queries are to their documents (γ, the BM25 score): a table or file with ``query_id``,
        ``score`` and optionally ``doc_id``, one row for each query and relevant document; see
        :func:`evenrank.mitigate.balance.matching.association_scores`.
    genders
        The gender of each query. Queries that are neither female nor male are all kept; female and male ones
        without a score are left out and counted.
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
    >>> scores = {"f1": 1.0, "f2": 2.0, "m1": 2.1, "m2": 9.0, "m3": 1.0}
    >>> genders = {query: "female" if query[0] == "f" else "male" for query in scores}
    >>> balance(scores, genders, caliper=0.5).pairs["query_id"].to_list()
    ['f1', 'm3', 'f2', 'm1']
    """
    check_choice("method", method, get_args(Method))
    _check_bins(bins, range, seed)
    if caliper is not None and not 0 <= caliper < np.inf:
        raise InputError(f"caliper is {caliper}; it must be a finite number from 0 on")
    table, unscored = _score_table(scores, genders)
    sides = {gender: table.filter(pl.col("gender") == gender) for gender in GENDERS}
    female, male = (side["score"].to_numpy() for side in sides.values())
    settings: dict[str, Any] = {"method": method}
    if method == "bins":
        settings |= {"bins": bins, "range": range, "seed": seed}
        f, m = drawn(female, male, bins=bins, edges_of=range, seed=seed)
        kept = pl.concat([sides["female"][f], sides["male"][m]])
    else:
        settings["caliper"] = _default_caliper(female, male) if caliper is None else caliper
        f, m = matched(female, male, caliper=settings["caliper"])
        pair = pl.Series("pair", np.arange(len(f)), dtype=pl.Int64)
        kept = pl.concat([sides["female"][f].with_columns(pair), sides["male"][m].with_columns(pair)])
        kept = kept.sort("pair", "gender")
    if kept.is_empty():
        raise InputError("no two queries are close enough to pair; give a wider caliper or fewer bins")
    return Balanced(
        pairs=kept,
        removed=_removed(table, kept, unscored),
        added=pl.DataFrame(schema=dict.fromkeys(("query_id", "doc_id", "text"), pl.String)),
        left_out={"female and male queries without a score": len(unscored)},
        before=association(female, male, bins=bins),
        after=association(female[f], male[m], bins=bins),
        provenance={"evenrank": evenrank.__version__, **settings},
    )


def _check_bins(bins: Any, range: str, seed: Any) -> None:
    check_choice("range", range, get_args(Range))
    check_whole("bins", bins)
    check_whole("seed", seed, least=0)


def _score_table(scores: Any, genders: Any) -> tuple[pl.DataFrame, list[str]]:
    """``query_id, doc_id, score, gender`` of female and male queries; the ids of those without a score."""
    labels = read_genders(genders).filter(pl.col("gender").is_in(GENDERS))
    table = pair_scores(scores).join(labels, on="query_id", maintain_order="left")
    for gender in GENDERS:
        if gender not in table["gender"]:
            raise InputError(f"there are no scores of {gender} queries")
    unscored = labels.join(table, on="query_id", how="anti", maintain_order="left")
    return table, unscored["query_id"].to_list()


def _removed(table: pl.DataFrame, kept: pl.DataFrame, unscored: list[str]) -> pl.DataFrame:
    """The queries none of whose pairs were kept, and single pairs of the others."""
    keys = ["query_id", "doc_id"]
    lost = table.join(kept, on="query_id", how="anti", maintain_order="left")
    queries = [*lost["query_id"].unique(maintain_order=True).to_list(), *unscored]
    pairs = table.join(kept, on=keys, how="anti", maintain_order="left").select(keys).drop_nulls()
    whole = pl.DataFrame({"query_id": queries}, schema={"query_id": pl.String})
    return pl.concat([whole.with_columns(doc_id=pl.lit(None, pl.String)), pairs])


def _default_caliper(female: Floats, male: Floats) -> float:
    """min(0.2, 1/√(n/2)) standard deviations of all scores, n the smaller side.

    Where no two scores of a pair are further apart than c, the two distributions differ nowhere by more than
    the share of scores in a stretch of length c, for a bell curve at most 0.4 c/σ. With this c the statistic
    of Kolmogorov and Smirnov, √(n/2)·D, stays near 0.4, whose p is 0.99.
    """
    spread = float(np.std(np.concatenate([female, male])))
    return spread * min(AUSTIN, (min(len(female), len(male)) / 2) ** -0.5)


def matched(female: Floats, male: Floats, *, caliper: float) -> tuple[Places, Places]:
    """The best one-to-one pairs within the caliper, as places in both arrays, by rising score."""
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
    edges = _edges(female, male, bins, edges_of)
    rng = np.random.default_rng(seed)
    result: tuple[list[Places], list[Places]] = ([], [])
    codes = [_bin(side, edges) for side in (female, male)]
    for place in np.arange(bins):
        members = [np.flatnonzero(code == place) for code in codes]
        size = min(map(len, members))
        for side, places in zip(result, members, strict=True):
            side.append(np.sort(rng.choice(places, size, replace=False)) if size else places[:0])
    return np.concatenate(result[0]), np.concatenate(result[1])


def _edges(female: Floats, male: Floats, bins: int, edges_of: Range) -> Floats:
    return np.histogram_bin_edges(male if edges_of == "male" else np.concatenate([female, male]), bins)


def _bin(values: Floats, edges: Floats) -> Places:
    """The number of each value's bin as `numpy.histogram` counts it: the last one holds its upper edge."""
    code = np.searchsorted(edges, values, side="right") - 1
    code[values == edges[-1]] = len(edges) - 2
    code[(values < edges[0]) | (values > edges[-1])] = -1
    return code


# Balancing by generation


def fill(
    scores: Any,
    generated: Any,
    *,
    genders: Any,
    generated_scores: Any,
    generated_genders: Any = None,
    bins: int = BINS,
    range: Range = "pooled",
    seed: int = 0,
) -> Balanced:
    """Add generated queries until those of both genders are equally close to their documents.

    As published: generated queries are drawn for the shorter side of each bin until it is level. Pairs of a
    real query and its document that find no counterpart stay, and are counted in ``left_out``.

    Parameters
    ----------
    scores, genders
        How close real queries are to their documents, and their genders; see :func:`evenrank.balance`.
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    generated_scores
        The same scores of generated queries with their documents.
    generated_genders
        Their genders; predicted by the shipped classifier if not given.
    bins, range, seed
        As for :func:`evenrank.balance`. With the range ``male``, scores outside it are not levelled, and
        count as without a counterpart.

    Examples
    --------
    >>> made = pl.DataFrame({"query_id": ["g1", "g2"], "doc_id": ["d", "e"], "text": ["her", "she"]})
    >>> found = fill(
    ...     {"f1": 1.0, "m1": 1.0, "m2": 3.0}, made, genders={"f1": "female", "m1": "male", "m2": "male"},
    ...     generated_scores={"g1": 1.1, "g2": 2.9}, generated_genders={"g1": "female", "g2": "female"},
    ... )
    >>> found.added["query_id"].to_list()
    ['g2']
    """
    _check_bins(bins, range, seed)
    table, _ = _score_table(scores, genders)
    candidates, source_of_genders = _candidates(
        read_generated(generated).queries, generated_scores, generated_genders
    )
    real = {gender: table.filter(pl.col("gender") == gender)["score"].to_numpy() for gender in GENDERS}
    stock = {gender: np.flatnonzero((candidates["gender"] == gender).to_numpy()) for gender in GENDERS}
    values = candidates["score"].to_numpy()
    chosen, missing = _counterparts(real, stock, values, bins, range, seed)
    added = candidates[np.sort(chosen)]
    after = [
        np.concatenate([real[gender], added.filter(pl.col("gender") == gender)["score"].to_numpy()])
        for gender in GENDERS
    ]
    return Balanced(
        pairs=added.select("query_id", "doc_id", "score", "gender"),
        removed=pl.DataFrame(schema=dict.fromkeys(("query_id", "doc_id"), pl.String)),
        added=added.select("query_id", "doc_id", "text"),
        left_out={f"{gender} pairs without a counterpart": count for gender, count in missing.items()},
        before=association(*real.values(), bins=bins),
        after=association(*after, bins=bins),
        provenance={
            "evenrank": evenrank.__version__,
            "genders of generated queries": source_of_genders,
            "bins": bins,
            "range": range,
            "seed": seed,
        },
    )


def _candidates(generated: pl.DataFrame, scores: Any, genders: Any) -> tuple[pl.DataFrame, str]:
    """Generated queries with score and gender; a query without a score is an error."""
    labels, source_of_genders = predicted_or_given(generated, genders)
    values = pair_scores(scores)
    if values["query_id"].is_duplicated().any():
        raise InputError("a generated query has one document, and one score; some have several")
    frame = generated.join(
        values.select("query_id", "score"), on="query_id", how="left", maintain_order="left"
    )
    if lost := frame["score"].null_count():
        first = frame.filter(pl.col("score").is_null()).row(0, named=True)
        raise InputError(
            f"{lost:,} generated queries have no score, such as {first['query_id']} (document "
            f"{first['doc_id']}); compute scores with an index of the same collection"
        )
    return frame.join(labels, on="query_id", how="left", maintain_order="left"), source_of_genders


def _counterparts(
    real: dict[str, Floats], stock: dict[str, Places], values: Floats, bins: int, edges_of: Range, seed: int
) -> tuple[Places, dict[str, int]]:
    """Generated queries for the shorter side of each bin; how many real pairs of each gender lack one.

    Real scores outside all bins find no counterpart either.
    """
    edges = _edges(real["female"], real["male"], bins, edges_of)
    counts = {gender: np.histogram(side, edges)[0] for gender, side in real.items()}
    places = _bin(values, edges)
    random = np.random.default_rng(seed)
    chosen: list[Places] = [np.empty(0, np.int64)]
    missing = {gender: len(side) - int(counts[gender].sum()) for gender, side in real.items()}
    for place in np.arange(bins):
        for gender, other in (GENDERS, GENDERS[::-1]):
            short = int(counts[gender][place] - counts[other][place])
            if short <= 0:
                continue
            rows = stock[other][places[stock[other]] == place]
            chosen.append(random.permutation(rows)[:short])
            missing[gender] += short - len(chosen[-1])
    return np.concatenate(chosen), missing


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
