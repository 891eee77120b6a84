"""Balancing by generation: generated queries stand beside real ones until both genders are equally close.

Query matching drops the real queries that have no counterpart. Here they get one: a generated query of the
other gender that stands as close to its document (Seyedsalehi et al., SIGIR 2022, Section 4.2). No real query
is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.errors import InputError
from evenrank.measures.association import BINS, Association, association, pair_scores
from evenrank.mitigate.matching import (
    Floats,
    Method,
    Range,
    check_method,
    default_caliper,
    matched,
    score_table,
    short_association,
)
from evenrank.mitigate.training_sets import WithAdded
from evenrank.show.numbers import counted

GENDERS = ("female", "male")


@dataclass(frozen=True, eq=False)
class Filled(WithAdded):
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

    def telling(self) -> pl.DataFrame:
        """The added queries with their genders and scores."""
        return self.added

    def frame(self) -> pl.DataFrame:
        """The histograms before and after: a row for each bin, gender and time."""
        parts = {"before": self.before, "after": self.after}
        return pl.concat(
            [part.frame().insert_column(0, pl.lit(when).alias("when")) for when, part in parts.items()]
        )

    def report(self) -> dict[str, Any]:
        """What has changed, as JSON."""
        return {
            "real": {gender: self.before.pairs[gender] for gender in GENDERS},
            "added": {gender: int((self.added["gender"] == gender).sum()) for gender in GENDERS},
            "without counterpart": self.missing,
            "outside the range": self.outside,
            "before": short_association(self.before),
            "after": short_association(self.after),
            "provenance": self.provenance,
        }

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        said = ["no real query is dropped"]
        for gender, other in (GENDERS, GENDERS[::-1]):
            if count := self.missing[gender] - (self.outside if gender == "female" else 0):
                lacking = counted(count, f"{gender} pair has", f"{gender} pairs have")
                said.append(f"{lacking} no counterpart: generate more {other} queries")
        if self.outside:
            lie = counted(self.outside, "female pair lies", "female pairs lie")
            said.append(f"{lie} outside the range of male scores, where nothing is levelled")
        return said + self._apart()

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
    from evenrank.queries.generated import read_generated

    check_method(method, caliper, bins, range, seed)
    table, *_ = score_table(scores, None, genders)
    offered, said = _offered(read_generated(generated).queries, generated_scores, generated_genders)
    real = {g: table.filter(pl.col("gender") == g)["score"].to_numpy() for g in GENDERS}
    for gender, value in real.items():
        if not len(value):
            raise InputError(f"there are no scores of {gender} queries")
    stock = {g: np.flatnonzero((offered["gender"] == g).to_numpy()) for g in GENDERS}
    given = offered["score"].to_numpy()
    settings: dict[str, Any] = {"by": "generation", "method": method, "genders of generated queries": said}
    outside = 0
    if method == "bins":
        settings |= {"bins": bins, "range": range, "seed": seed}
        chosen, missing, outside = _by_bins(real, stock, given, bins, range, seed)
    else:
        width = default_caliper(*real.values()) if caliper is None else caliper
        settings["caliper"] = width
        chosen, missing = _by_matching(real, stock, given, width)
    added = offered[np.sort(np.concatenate(chosen))]
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


def _offered(built: pl.DataFrame, scores: Any, genders: Any) -> tuple[pl.DataFrame, str]:
    """Generated queries with score and gender; a query without a score is an error."""
    from evenrank.mitigate.judgments import predicted_or_given

    labels, said = predicted_or_given(built, genders)
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
    return frame.join(labels, on="query_id", how="left", maintain_order="left"), said


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
