"""Query matching: judgments in which the queries of both genders stand equally close to their documents.

Rankers learn the closer associations better, and those of male queries are closer (Seyedsalehi et al., SIGIR
2022). Dropping the queries that have no counterpart levels them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

import evenrank
from evenrank.data.files import one_line
from evenrank.data.read import is_path, read_genders, read_qrels, read_queries
from evenrank.data.schema import listing
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.measures.association import BINS, Association, association, pair_scores
from evenrank.mitigate.training_sets import data_set, read_triples, write_reported
from evenrank.queries.generated import stable_hash
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import bm25
from evenrank.show.grid import Displayed
from evenrank.show.numbers import counted


@dataclass(frozen=True, eq=False, repr=False)
class Balanced(Displayed):
    """Judgments in which both genders stand equally close to their documents.

    Attributes
    ----------
    kept
        ``query_id, doc_id, score, gender``, and ``pair``, which two rows share that were matched.
    scores
        The same of all female and male queries.
    neither
        Ids of the queries that are neither female nor male, as far as they are known here: they all stay,
        with or without a score.
    unscored
        Ids of female and male queries without a score: they cannot be matched, and go.
    before, after
        The two distributions of scores, and how far apart they are: Kolmogorov–Smirnov, Wasserstein, means,
        histograms.
    """

    kept: pl.DataFrame
    scores: pl.DataFrame
    neither: list[str]
    before: Association
    after: Association
    provenance: dict[str, Any] = field(default_factory=dict)
    unscored: list[str] = field(default_factory=list)

    def frame(self) -> pl.DataFrame:
        """The histograms before and after, ready for a chart: a row for each bin, gender and time."""
        parts = {"before": self.before, "after": self.after}
        return pl.concat(
            [part.frame().insert_column(0, pl.lit(when).alias("when")) for when, part in parts.items()]
        )

    def queries(self, x: Any) -> pl.DataFrame:
        """Of these queries those that stay: all but those that were matched away or have no score."""
        given = read_queries(x)
        return given.filter(~pl.col("query_id").is_in(self._gone()))

    def qrels(self, x: Any) -> pl.DataFrame:
        """Of these judgments those that stay.

        A relevant document whose score was matched away goes; the judged documents that are not relevant
        stay with their query.
        """
        given = read_qrels(x)
        staying = given.filter(~pl.col("query_id").is_in(self._gone()))
        if self.scores["doc_id"].null_count():
            return staying
        keys = ["query_id", "doc_id"]
        gone = self.scores.select(keys).join(self.kept.select(keys), on=keys, how="anti")
        return staying.join(gone, on=keys, how="anti", maintain_order="left")

    def triples(self, x: Any) -> pl.DataFrame:
        """Of these triples (a table with ``query_id``) those of queries that stay."""
        frame = x if isinstance(x, pl.DataFrame) else _as_frame([result for result, _ in read_triples(x)], x)
        if "query_id" not in frame.columns:
            raise InputError(f"triples need a column query_id; found: {listing(frame.columns, 6)}")
        return frame.filter(~pl.col("query_id").cast(pl.String).is_in(self._gone()))

    def report(self) -> dict[str, Any]:
        """What has changed, as JSON: how many stay, and the distributions before and after."""
        counts = {
            gender: {"before": self.before.pairs[gender], "after": self.after.pairs[gender]}
            for gender in ("female", "male")
        }
        smaller = min(self.before.pairs.values())
        return {
            "kept": counts,
            "kept_of_smaller_side": self.after.pairs["female"] / smaller,
            "neither_gender": len(self.neither),
            "without_score": len(self.unscored),
            "before": short_association(self.before),
            "after": short_association(self.after),
            "provenance": self.provenance,
        }

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        said = [f"{self.report()['kept_of_smaller_side']:.1%} of the smaller side stay"]
        if count := len(self.unscored):
            left = counted(count, "female or male query has", "female or male queries have")
            said.append(f"{left} no score, and {'is' if count == 1 else 'are'} left out")
        return said

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        queries: Any = None,
        qrels: Any = None,
        triples: Any = None,
        genders: bool = False,
    ) -> list[Path]:
        """Write ``queries.tsv``, ``qrels.txt``, ``triples.jsonl`` and ``report.json`` to a folder.

        Genders and scores (``kept.tsv``) are written only if asked for: a trainer should not see them.
        Without queries and judgments, ``query_ids.txt`` says which queries stay, in an order that says
        nothing of their genders. What an earlier call has left in the folder is removed if this one does not
        write it.
        """
        content = data_set(
            None if queries is None else self.queries(queries), None if qrels is None else self.qrels(qrels)
        )
        if triples is not None:
            content["triples.jsonl"] = self._triple_lines(triples)
        if not content:
            content["query_ids.txt"] = "".join(f"{each}\n" for each in self._query_ids())
        if genders:
            content["kept.tsv"] = self.kept.write_csv(separator="\t")
        return write_reported(folder, content, self.report())

    def _triple_lines(self, x: Any) -> str:
        """The triples that stay, as JSONL; those of a file as they are written there."""
        if not is_path(x):
            return self.triples(x).write_ndjson()
        gone = set(self._gone())
        return "".join(f"{line}\n" for result, line in read_triples(x) if str(result["query_id"]) not in gone)

    def _gone(self) -> list[str]:
        """The queries that go: none of their pairs was kept, or they are of a gender and have no score."""
        lost = self.scores.join(self.kept, on="query_id", how="anti", maintain_order="left")
        return [*lost["query_id"].unique(maintain_order=True).to_list(), *self.unscored]

    def _query_ids(self) -> list[str]:
        """The queries that are known to stay, in the order of numbers that only their ids decide."""
        staying = {*self.kept["query_id"].to_list(), *self.neither}
        return sorted(staying, key=lambda query: stable_hash(0, query))


def _as_frame(rows: list[dict[str, Any]], path: Any) -> pl.DataFrame:
    """A column for each field of any row; a field that is of two kinds has no column to stand in."""
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"its fields make no table: {one_line(error)}", path=path) from None


def short_association(found: Association) -> dict[str, Any]:
    """Two distributions of scores, without what a report says elsewhere."""
    left_out = ("provenance", "pairs")
    return {key: value for key, value in found.to_dict().items() if key not in left_out}


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


def score_table(
    scores: Any, male: Any, genders: Any, ids: Sequence[str] | None = None
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """``query_id, doc_id, score, gender`` of female and male queries that have a score.

    Also the ids of the queries that are neither, and of the female and male ones without a score. `ids` are
    those of all queries; if not given, all that are scored or labelled.
    """
    if male is not None:
        if genders is not None:
            raise InputError("two tables of scores are the female and the male queries; leave genders out")
        sides = {"female": pair_scores(scores), "male": pair_scores(male)}
        both = set(sides["female"]["query_id"]) & set(sides["male"]["query_id"])
        if both:
            raise InputError(f"query {min(both)} is in the scores of both genders")
        table = pl.concat([side.with_columns(gender=pl.lit(g)) for g, side in sides.items()])
        known = set(table["query_id"])
        return table, [each for each in ids or () if each not in known], []
    if genders is None:
        raise InputError("one table of scores needs genders to tell female from male queries")
    labels = read_genders(genders)
    table = pair_scores(scores).join(labels, on="query_id", how="left", maintain_order="left")
    chosen = table["gender"].is_in(["female", "male"]).fill_null(False)
    every = dict.fromkeys([*table["query_id"], *labels["query_id"]] if ids is None else ids)
    gendered = set(labels.filter(pl.col("gender").is_in(["female", "male"]))["query_id"])
    scored = set(table["query_id"])
    neither = [each for each in every if each not in gendered]
    unscored = [each for each in every if each in gendered and each not in scored]
    return table.filter(chosen), neither, unscored


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
    ids: Sequence[str] | None = None,
) -> Balanced:
    """Leave out queries until those of both genders are equally close to their relevant documents.

    Parameters
    ----------
    scores, male
        How close queries are to their documents (γ, the BM25 score): a table or file with ``query_id``,
        ``score`` and optionally ``doc_id``, one row for each query and relevant document; see
        :func:`evenrank.mitigate.matching.association_scores`. Two of them are the female and the
        male queries; a single one needs ``genders``.
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
    ids
        Of all queries of the set, so that those without a score are counted; if not given, those with a score
        or a gender.

    Examples
    --------
    >>> even = balance({"f1": 1.0, "f2": 2.0}, {"m1": 2.1, "m2": 9.0, "m3": 1.0}, caliper=0.5)
    >>> even.kept["query_id"].to_list()
    ['f1', 'm3', 'f2', 'm1']
    """
    check_method(method, caliper, bins, range, seed)
    table, rest, unscored = score_table(scores, male, genders, ids)
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
        unscored=unscored,
    )


def check_method(method: str, caliper: float | None, bins: Any, range: str, seed: Any) -> None:
    """Refuse settings of a method that cannot be used, or that it would not read."""
    check_choice("method", method, get_args(Method))
    check_choice("range", range, get_args(Range))
    check_whole("bins", bins)
    check_whole("seed", seed, least=0)
    if caliper is not None and method == "bins":
        raise InputError("a caliper is for matching; bins have none, so leave it out")
    if caliper is not None and not 0 <= caliper < np.inf:
        raise InputError(f"caliper is {caliper}; it must be a finite number from 0 on")
    if range != "pooled" and method != "bins":
        raise InputError("a range is for bins; matching has none, so leave it out")


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
    result: tuple[list[Places], list[Places]] = ([], [])
    codes = [_bin(side, edges) for side in (female, male)]
    for number in np.arange(bins):
        members = [np.flatnonzero(code == number) for code in codes]
        size = min(map(len, members))
        for side, places in zip(result, members, strict=True):
            side.append(np.sort(rng.choice(places, size, replace=False)) if size else places[:0])
    return np.concatenate(result[0]), np.concatenate(result[1])


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
