"""Judgments in which the queries of both genders stand equally close to their documents.

Rankers learn the closer associations better, and those of male queries are closer (Seyedsalehi et al., SIGIR
2022). Query matching drops the queries that have no counterpart of the other gender. Balancing by generation
drops none: those without a counterpart get one, a generated query that stands as close to its document
(Section 4.2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from evenrank.mitigate.training_sets import TrainingSet, WithAdded, read_triples
from evenrank.queries.generated import read_generated, stable_hash
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import bm25
from evenrank.show.grid import Displayed, Grid
from evenrank.show.numbers import counted, number, p_value


class _Levelled(Displayed):
    """Two distributions of scores, before and after."""

    before: Association
    after: Association

    def frame(self) -> pl.DataFrame:
        """The histograms before and after, ready for a chart: a row for each bin, gender and time."""
        parts = {"before": self.before, "after": self.after}
        return pl.concat(
            [part.frame().insert_column(0, pl.lit(when).alias("when")) for when, part in parts.items()]
        )

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        raise NotImplementedError

    def grid(self) -> Grid:
        """How many pairs of query and document there are, and how far apart the sides are."""
        heads = ["", "female pairs", "male pairs", "mean female", "mean male", "KS", "p", "Wasserstein"]
        rows = [
            [
                name,
                f"{part.pairs['female']:,}",
                f"{part.pairs['male']:,}",
                number(part.means["female"], ".3f"),
                number(part.means["male"], ".3f"),
                number(part.kolmogorov_smirnov, ".4f"),
                p_value(part.p),
                number(part.wasserstein, ".4f"),
            ]
            for name, part in (("before", self.before), ("after", self.after))
        ]
        return Grid(heads, rows)


@dataclass(frozen=True, eq=False, repr=False)
class Balanced(_Levelled, TrainingSet):
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
            "before": _short(self.before),
            "after": _short(self.after),
            "provenance": self.provenance,
        }

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        lines = [f"{self.report()['kept_of_smaller_side']:.1%} of the smaller side stay"]
        if count := len(self.unscored):
            left = counted(count, "female or male query has", "female or male queries have")
            lines.append(f"{left} no score, and {'is' if count == 1 else 'are'} left out")
        return lines

    def gender_table(self) -> pl.DataFrame:
        """Genders and scores of the pairs that stay."""
        return self.kept

    def more_files(
        self, triples: Any, index: Any, real: Any, seed: int
    ) -> tuple[dict[str, str], dict[str, Any]]:
        return ({} if triples is None else {"triples.jsonl": self._triple_lines(triples)}), {}

    def without_inputs(self) -> dict[str, str]:
        """Which queries stay, in an order that says nothing of their genders."""
        staying = {*self.kept["query_id"].to_list(), *self.neither}
        ids = sorted(staying, key=lambda query: stable_hash(0, query))
        return {"query_ids.txt": "".join(f"{each}\n" for each in ids)}

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


def _as_frame(rows: list[dict[str, Any]], path: Any) -> pl.DataFrame:
    """A column for each field of any row; a field that is of two kinds has no column to stand in."""
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"its fields make no table: {one_line(error)}", path=path) from None


def _short(found: Association) -> dict[str, Any]:
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


def _score_table(
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
        :func:`evenrank.mitigate.balance.association_scores`. Two of them are the female and the
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
    _check_method(method, caliper, bins, range, seed)
    table, rest, unscored = _score_table(scores, male, genders, ids)
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
        width = _default_caliper(*values) if caliper is None else caliper
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


def _check_method(method: str, caliper: float | None, bins: Any, range: str, seed: Any) -> None:
    """Refuse settings that cannot be used."""
    check_choice("method", method, get_args(Method))
    check_choice("range", range, get_args(Range))
    check_whole("bins", bins)
    check_whole("seed", seed, least=0)
    if caliper is not None and not 0 <= caliper < np.inf:
        raise InputError(f"caliper is {caliper}; it must be a finite number from 0 on")


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
    for place in np.arange(bins):
        members = [np.flatnonzero(code == place) for code in codes]
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


# Balancing by generation

GENDERS = ("female", "male")


@dataclass(frozen=True, eq=False, repr=False)
class Filled(_Levelled, WithAdded):
    """Judgments with generated queries beside the real ones.

    Attributes
    ----------
    added
        ``query_id, doc_id, text, score, gender`` of the generated queries that were taken.
    scores
        ``query_id, doc_id, score, gender`` of the real female and male queries; all of them stay.
    missing
        How many pairs of a real query of each gender and its document found no counterpart among the
        generated queries of the other.
    outside
        How many of these are female and lie outside the range of male scores, if only that is levelled.
    before, after
        The two distributions of scores, and how far apart they are.
    """

    added: pl.DataFrame
    scores: pl.DataFrame
    missing: dict[str, int]
    before: Association
    after: Association
    provenance: dict[str, Any] = field(default_factory=dict)
    outside: int = 0

    def gender_table(self) -> pl.DataFrame:
        """The added queries with their genders and scores."""
        return self.added

    def report(self) -> dict[str, Any]:
        """What has changed, as JSON."""
        return {
            "real": {gender: self.before.pairs[gender] for gender in GENDERS},
            "added": {gender: int((self.added["gender"] == gender).sum()) for gender in GENDERS},
            "without counterpart": self.missing,
            "outside the range": self.outside,
            "before": _short(self.before),
            "after": _short(self.after),
            "provenance": self.provenance,
        }

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        lines = ["no real query is dropped"]
        for gender, other in (GENDERS, GENDERS[::-1]):
            if count := self.missing[gender] - (self.outside if gender == "female" else 0):
                lacking = counted(count, f"{gender} pair has", f"{gender} pairs have")
                lines.append(f"{lacking} no counterpart: generate more {other} queries")
        if self.outside:
            lie = counted(self.outside, "female pair lies", "female pairs lie")
            lines.append(f"{lie} outside the range of male scores, where nothing is levelled")
        return lines + self._apart()

    def _apart(self) -> list[str]:
        """Whether the sides are further apart than before, and why."""
        if not self.after.kolmogorov_smirnov > self.before.kolmogorov_smirnov:
            return []
        if self.after.wasserstein <= self.before.wasserstein:
            return ["KS is larger than before, though Wasserstein is not"]
        why = ": too few queries could be added" if any(self.missing.values()) else ""
        return [f"the two sides are further apart than before{why}"]


def fill(
    scores: Any,
    generated: Any,
    *,
    genders: Any,
    generated_scores: Any,
    generated_genders: Any = None,
    method: Method = "matching",
    caliper: float | None = None,
    bins: int = BINS,
    range: Range = "pooled",
    seed: int = 0,
) -> Filled:
    """Add generated queries until those of both genders are equally close to their documents.

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
    method
        ``matching`` (the default) pairs real queries one to one as far as possible, and gives each of the
        others a generated query whose score differs by no more than the caliper. ``bins``, as published,
        draws generated queries for the shorter side of each bin until it is level.
    caliper, bins, range, seed
        As for :func:`evenrank.balance`. With the range ``male``, scores outside it are not levelled, and
        count as without a counterpart.

    Examples
    --------
    >>> made = pl.DataFrame({"query_id": ["g1", "g2"], "doc_id": ["d", "e"], "text": ["her", "she"]})
    >>> found = fill(
    ...     {"f1": 1.0, "m1": 1.0, "m2": 3.0}, made, genders={"f1": "female", "m1": "male", "m2": "male"},
    ...     generated_scores={"g1": 1.1, "g2": 2.9}, generated_genders={"g1": "female", "g2": "female"},
    ...     caliper=0.5,
    ... )
    >>> found.added["query_id"].to_list(), found.missing
    (['g2'], {'female': 0, 'male': 0})
    """
    _check_method(method, caliper, bins, range, seed)
    table, *_ = _score_table(scores, None, genders)
    generated_rows, source_of_genders = _generated_rows(
        read_generated(generated).queries, generated_scores, generated_genders
    )
    real = {g: table.filter(pl.col("gender") == g)["score"].to_numpy() for g in GENDERS}
    for gender, value in real.items():
        if not len(value):
            raise InputError(f"there are no scores of {gender} queries")
    stock = {g: np.flatnonzero((generated_rows["gender"] == g).to_numpy()) for g in GENDERS}
    given = generated_rows["score"].to_numpy()
    settings: dict[str, Any] = {
        "by": "generation",
        "method": method,
        "genders of generated queries": source_of_genders,
    }
    outside = 0
    if method == "bins":
        settings |= {"bins": bins, "range": range, "seed": seed}
        chosen, missing, outside = _by_bins(real, stock, given, bins, range, seed)
    else:
        width = _default_caliper(*real.values()) if caliper is None else caliper
        settings["caliper"] = width
        chosen, missing = _by_matching(real, stock, given, width)
    added = generated_rows[np.sort(np.concatenate(chosen))]
    after = [
        np.concatenate([real[g], added.filter(pl.col("gender") == g)["score"].to_numpy()]) for g in GENDERS
    ]
    return Filled(
        added=added,
        scores=table,
        missing=missing,
        before=association(*real.values(), bins=bins),
        after=association(*after, bins=bins),
        provenance={"evenrank": evenrank.__version__, **settings},
        outside=outside,
    )


def _generated_rows(built: pl.DataFrame, scores: Any, genders: Any) -> tuple[pl.DataFrame, str]:
    """Generated queries with score and gender; a query without a score is an error."""
    from evenrank.mitigate.judgments import predicted_or_given

    labels, source_of_genders = predicted_or_given(built, genders)
    values = pair_scores(scores)
    if values["query_id"].is_duplicated().any():
        raise InputError("a generated query has one document, and one score; some have several")
    frame = built.join(values.select("query_id", "score"), on="query_id", how="left", maintain_order="left")
    if lost := frame["score"].null_count():
        first = frame.filter(pl.col("score").is_null()).row(0, named=True)
        more = f", and {lost - 1:,} more have none" if lost > 1 else ""
        raise InputError(
            f"generated query {first['query_id']} (document {first['doc_id']}) has no score{more}; check "
            "that the document is in the collection, or compute scores with the same index"
        )
    return frame.join(labels, on="query_id", how="left", maintain_order="left"), source_of_genders


def _by_matching(
    real: dict[str, Floats], stock: dict[str, Any], given: Floats, caliper: float
) -> tuple[list[Any], dict[str, int]]:
    """Counterparts of the real queries that have none among the real ones."""
    pairs = dict(zip(GENDERS, matched(*real.values(), caliper=caliper), strict=True))
    chosen, missing = [], {}
    for gender, other in (GENDERS, GENDERS[::-1]):
        alone = np.setdiff1d(np.arange(len(real[gender])), pairs[gender])
        rows, partners = matched(real[gender][alone], given[stock[other]], caliper=caliper)
        chosen.append(stock[other][partners])
        missing[gender] = len(alone) - len(rows)
    return chosen, missing


def _by_bins(
    real: dict[str, Floats], stock: dict[str, Any], given: Floats, bins: int, edges_of: Range, seed: int
) -> tuple[list[Any], dict[str, int], int]:
    """Generated queries for the shorter side of each bin, drawn at random, and what found no counterpart.

    The last number is that of female scores outside all bins; they have none either.
    """
    span = real["male"] if edges_of == "male" else np.concatenate(list(real.values()))
    edges = np.histogram_bin_edges(span, bins)
    counts = {gender: np.histogram(side, edges)[0] for gender, side in real.items()}
    last = len(edges) - 2
    places = np.clip(np.searchsorted(edges, given, side="right") - 1, 0, last)
    inside = (given >= edges[0]) & (given <= edges[-1])
    random = np.random.default_rng(seed)
    chosen, missing = [], dict.fromkeys(GENDERS, 0)
    for place in np.arange(last + 1):
        for gender, other in (GENDERS, GENDERS[::-1]):
            short = int(counts[gender][place] - counts[other][place])
            if short <= 0:
                continue
            rows = stock[other][(places[stock[other]] == place) & inside[stock[other]]]
            drawn = random.permutation(rows)[:short]
            chosen.append(drawn)
            missing[gender] += short - len(drawn)
    outside = len(real["female"]) - int(counts["female"].sum())
    missing["female"] += outside
    return [np.concatenate(chosen) if chosen else np.empty(0, np.int64)], missing, outside


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
