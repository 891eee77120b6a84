"""Degree of association: how close queries are to their own relevant documents, female against male.

Seyedsalehi et al. (SIGIR 2022, Section 3.2) explain by it why rankers serve male queries better: γ(q, d) is
the BM25 score of a query with its relevant document, and rankers learn the easier association better.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import evenrank
from evenrank import stats
from evenrank.data.read import is_frame, is_path, read_genders, read_table
from evenrank.data.schema import QUERY_ID, SCORE, listing
from evenrank.errors import InputError
from evenrank.show.grid import Drawn
from evenrank.stats import Comparison

BINS = 9  # as in the released code


@dataclass(frozen=True, eq=False, repr=False)
class Association(Drawn):
    """Two distributions of scores and how far they are apart.

    Attributes
    ----------
    means, medians, pairs
        For each gender: mean and median score, and how many pairs of query and document have one.
    edges, histogram
        Edges of the bins, of equal width over all scores, and how many pairs of each gender fall in
        each.
    kolmogorov_smirnov, p
        The largest distance of the two cumulative distributions, from 0 to 1, and its p-value.
    wasserstein
        How far scores have to be moved, on average, to turn one distribution into the other; in the unit
        of the scores.
    overlap
        Common area of the two histograms: 1 where they are equal, 0 where no bin is shared. It depends on
        the bins.
    welch
        Male − female: positive where male queries are closer to their documents.
    """

    means: dict[str, float]
    medians: dict[str, float]
    pairs: dict[str, int]
    edges: tuple[float, ...]
    histogram: dict[str, tuple[int, ...]]
    kolmogorov_smirnov: float
    p: float
    wasserstein: float
    overlap: float
    welch: Comparison
    provenance: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """The histogram, ready for a chart: one row for each bin and gender, with its share of the pairs."""
        rows = [
            (gender, low, high, count, count / self.pairs[gender])
            for gender, counts in self.histogram.items()
            for low, high, count in zip(self.edges, self.edges[1:], counts, strict=False)
        ]
        return pl.DataFrame(rows, ["gender", "low", "high", "pairs", "share"], orient="row")

    def to_dict(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "means": self.means,
            "medians": self.medians,
            "difference": self.welch.difference,
            "low": self.welch.low,
            "high": self.welch.high,
            "p_welch": self.welch.p,
            "g": self.welch.effect,
            "kolmogorov_smirnov": self.kolmogorov_smirnov,
            "p_kolmogorov_smirnov": self.p,
            "wasserstein": self.wasserstein,
            "overlap": self.overlap,
            "edges": list(self.edges),
            "histogram": {gender: list(counts) for gender, counts in self.histogram.items()},
            "provenance": self.provenance,
        }


def association(
    female: Any, male: Any = None, *, genders: Any = None, bins: int = BINS, confidence: float = 0.95
) -> Association:
    """Compare how close female and male queries are to their own relevant documents.

    Parameters
    ----------
    female, male
        Scores γ of queries with their relevant document: numbers, or a table or file (TSV with a header,
        plain or compressed) with the columns ``query_id`` and ``score``, a row for each query and relevant
        document. Alone, the first holds the queries of both genders, and `genders` says which is which.
    bins
        How many bins of equal width, for the histograms and their overlap.

    Examples
    --------
    >>> result = association([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    >>> result.wasserstein, result.welch.difference
    (1.0, 1.0)
    """
    if bins < 1:
        raise InputError(f"bins is {bins}, but must be at least 1")
    if male is None:
        if genders is None:
            raise InputError("one table of scores needs genders to tell female from male queries")
        table = pair_scores(female).join(read_genders(genders), on="query_id")
        sides = {g: table.filter(pl.col("gender") == g)["score"].to_numpy() for g in ("female", "male")}
    else:
        sides = {"female": _scores(female), "male": _scores(male)}
    for gender, side in sides.items():
        if len(side) == 0:
            raise InputError(f"there are no scores of {gender} queries")
        if not np.isfinite(side).all():
            raise InputError(f"the scores of {gender} queries hold undefined numbers")
    from scipy.stats import ks_2samp, wasserstein_distance

    a, b = sides["female"], sides["male"]
    edges = np.histogram_bin_edges(np.concatenate([a, b]), bins)
    counts = {gender: np.histogram(side, edges)[0] for gender, side in sides.items()}
    shares = [counts[gender] / len(sides[gender]) for gender in sides]
    with warnings.catch_warnings():  # scipy says when it has to leave the exact p for the asymptotic one
        warnings.simplefilter("ignore", RuntimeWarning)
        test = ks_2samp(a, b)
    return Association(
        means={gender: float(side.mean()) for gender, side in sides.items()},
        medians={gender: float(np.median(side)) for gender, side in sides.items()},
        pairs={gender: len(side) for gender, side in sides.items()},
        edges=tuple(edges.tolist()),
        histogram={gender: tuple(each.tolist()) for gender, each in counts.items()},
        kolmogorov_smirnov=float(test.statistic),
        p=float(test.pvalue),
        wasserstein=float(wasserstein_distance(a, b)),
        overlap=float(np.minimum(*shares).sum()),
        welch=stats.welch(b, a, confidence=confidence),
        provenance={"evenrank": evenrank.__version__, "bins": bins},
    )


def _scores(x: Any) -> NDArray[np.float64]:
    if is_path(x) or is_frame(x):
        return pair_scores(x)["score"].to_numpy()
    return np.asarray(x, dtype=np.float64)


def pair_scores(x: Any) -> pl.DataFrame:
    """Read scores of queries with their relevant documents: ``query_id``, ``doc_id``, ``score``.

    ``x`` is a path (TSV or CSV with a header, JSONL, Parquet), a frame, rows, or a dict
    ``{query_id: score}``. Where documents are not named, ``doc_id`` is null and a query may have several
    scores; where they are, no pair may be there twice.
    """
    table = read_table(x, {"query_id": QUERY_ID, "score": SCORE} if isinstance(x, Mapping) else None)
    columns = table.frame.columns
    if not {"query_id", "score"} <= set(columns):
        raise table.error(f"scores need a header with query_id and score; there are {listing(columns, 6)}")
    has_docs = "doc_id" in columns
    doc_ids = table.ids("doc_id") if has_docs else pl.lit(None, pl.String).alias("doc_id")
    frame = table.frame.select(table.ids("query_id"), doc_ids, table.numbers("score"))
    if has_docs:
        replace(table, frame=frame).require_unique("query_id", "doc_id")
    return frame
