"""De-biased judgments: pairs of a female and a male query whose documents read alike are added.

Rankers learn from judgments that documents of female and of male queries differ in affect, cognition, drives
and concerns. Pairs in which they do not differ weaken that (A. Bigdeli, thesis, Section 3.2): each document
has a generated query and a vector of 22 characteristics; each document of a female query is matched with the
document of a male query nearest to it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import evenrank
from evenrank.data.read import refuse_after_fork
from evenrank.errors import InputError, check_whole
from evenrank.mitigate.balance.training_set import TrainingSet, predicted_or_given
from evenrank.psychology import scores as category_scores
from evenrank.queries.generated import read_generated, stable_hash
from evenrank.show.grid import Grid
from evenrank.show.numbers import number
from evenrank.text.lexicon import DIMENSIONS, dictionary

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DIGITS = 9  # of a cosine: what lies beyond depends on the processor
_CELLS = 1 << 22
_NONE = -2.0  # below any cosine


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvenJudgments(TrainingSet):
    """Queries and judgments to be added to a training set.

    `added` lists each query once, in an order that says nothing of their genders.

    Attributes
    ----------
    pairs
        A row for each matched pair, the nearest first: ``female, female_doc, male, male_doc`` (the ids of two
        queries and their documents) and ``distance``, from 0 (the same direction) to 1 (nothing in common).
    counts
        How many generated queries there were of each gender.
    requested
        How many queries were to be added; None for all.
    """

    pairs: pl.DataFrame
    counts: dict[str, int]
    requested: int | None = None

    def genders(self) -> pl.DataFrame:
        return self.pairs

    def frame(self) -> pl.DataFrame:
        """One row with the counts and the distances of the pairs."""
        away = self.pairs["distance"]
        return pl.DataFrame(
            {
                "generated_female": self.counts["female"],
                "generated_male": self.counts["male"],
                "pairs": len(self.pairs),
                "queries_added": len(self.added),
                "mean_distance": away.mean(),
                "median_distance": away.median(),
                "largest_distance": away.max(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.frame().row(0, named=True),
            "queries_requested": self.requested,
            "left_out": self.left_out,
            "provenance": self.provenance,
        }

    def grid(self) -> Grid:
        frame = self.frame()
        cells = [number(x, ".4f") if isinstance(x, float) else f"{x:,}" for x in frame.row(0)]
        return Grid([name.replace("_", " ") for name in frame.columns], [cells])

    def remarks(self) -> list[str]:
        lines = super().remarks()
        if self.requested is not None and len(self.added) < 2 * (self.requested // 2):
            lines.append(f"{self.requested:,} queries were to be added: generate more, or lower the ratio")
        return lines


def even_judgments(
    generated: Any,
    docs: Any,
    *,
    genders: Any = None,
    ratio: float = 0.25,
    size: int | None = None,
    reuse: bool = False,
    source: Any = None,
) -> EvenJudgments:
    """Match documents of female and male queries that read alike, and take the nearest pairs.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    docs
        The collection.
    genders
        Gender of each generated query; predicted by the shipped classifier if not given.
    ratio, size
        ``ratio · size`` queries are added, that is half as many pairs; `size` is that of the training set. If
        there is none, all pairs are taken.
    reuse
        Allow the document of a male query to be matched with several of female queries, as in the thesis.
        Otherwise each is taken once: the nearest pair first, ties by the ids of the documents.
    source
        The dictionary, with the 22 categories of the thesis; the open one if not given.

    Examples
    --------
    >>> made = pl.DataFrame({
    ...     "query_id": ["a", "b", "c"], "doc_id": ["d1", "d2", "d3"],
    ...     "text": ["why was she afraid", "what does he fear", "what does he earn"],
    ... })
    >>> docs = {"d1": "fear and worry", "d2": "a worry", "d3": "money and wages"}
    >>> found = even_judgments(made, docs, genders={"a": "female", "b": "male", "c": "male"})
    >>> found.pairs.rows()
    [('a', 'd1', 'b', 'd2', 0.0)]
    """
    refuse_after_fork()
    if not 0 < ratio <= 1:
        raise InputError(f"ratio is {ratio!r}; it must be above 0 and at most 1")
    if size is not None:
        check_whole("size", size, least=0)
    queries = read_generated(generated).queries
    labels, source_of_genders = predicted_or_given(queries, genders)
    queries = queries.join(labels, on="query_id", how="left", maintain_order="left")
    both = queries.filter(pl.col("gender").is_in(["female", "male"]))
    words = dictionary(source)
    table, vectors, left_out = _directions(both, docs, words)
    left_out = {"queries that are neither female nor male": len(queries) - len(both), **left_out}
    sides = {g: np.flatnonzero((table["gender"] == g).to_numpy()) for g in ("female", "male")}
    for gender, rows in sides.items():
        if not len(rows):
            reasons = "; ".join(f"{why}: {count:,}" for why, count in left_out.items() if count)
            raise InputError(
                f"no generated query with a vector is {gender}; generate more queries "
                f"(genders: {source_of_genders}; left out: {reasons or 'none'})"
            )
    most = None if size is None else max(1, round(ratio * size / 2))
    numbers = table["doc_id"].rank("dense").to_numpy().astype(np.int64)
    f, m, away = nearest_pairs(
        vectors[sides["female"]],
        vectors[sides["male"]],
        documents=(numbers[sides["female"]], numbers[sides["male"]]),
        most=most,
        reuse=reuse,
    )
    if not len(f):
        raise InputError(
            "all generated queries are of one document, which makes no pair; generate more queries"
        )
    female, male = table[sides["female"][f]], table[sides["male"][m]]
    columns = {
        "female": female["query_id"],
        "female_doc": female["doc_id"],
        "male": male["query_id"],
        "male_doc": male["doc_id"],
        "distance": away,
    }
    keys = ["query_id", "doc_id", "text"]
    added = pl.concat([female.select(keys), male.select(keys)]).unique("query_id", maintain_order=True)
    places = [stable_hash(0, query_id) for query_id in added["query_id"].to_list()]
    added = added[np.argsort(np.array(places, np.uint64), kind="stable")]  # not all female, then all male
    return EvenJudgments(
        pairs=pl.DataFrame(columns),
        removed=pl.DataFrame(schema=dict.fromkeys(("query_id", "doc_id"), pl.String)),
        added=added,
        counts={gender: int((queries["gender"] == gender).sum()) for gender in ("female", "male")},
        left_out={reason: count for reason, count in left_out.items() if count},
        provenance={
            "evenrank": evenrank.__version__,
            "genders of generated queries": source_of_genders,
            "ratio": ratio,
            "size": size,
            "reuse": reuse,
            "dictionary": {"name": words.name, "hash": words.hash},
        },
        requested=None if size is None else round(ratio * size),
    )


def _directions(queries: pl.DataFrame, docs: Any, words: Any) -> tuple[pl.DataFrame, Doubles, dict[str, int]]:
    """Queries by document, the unit vectors of their documents, and how many queries have none."""
    scores = category_scores(docs, words, ids=queries["doc_id"])
    if lacking := [name for name in DIMENSIONS if name not in scores.columns]:
        raise InputError(f"the dictionary has no category {lacking[0]!r}; 22 are needed")
    table = queries.join(scores.select("doc_id", *DIMENSIONS), on="doc_id", maintain_order="left")
    table = table.sort("doc_id", "query_id")
    vectors = table.select(DIMENSIONS).to_numpy().astype(np.float64)
    lengths = np.sqrt((vectors**2).sum(axis=1))
    left_out = {
        "queries whose document is not in the collection": len(queries) - len(table),
        "queries whose document has no word of the dictionary": int((lengths == 0).sum()),
    }
    return table.filter(pl.Series(lengths > 0)), vectors[lengths > 0] / lengths[lengths > 0, None], left_out


def angular(cosine: Doubles) -> Doubles:
    """2·arccos(cos(u, v))/π: 0 for the same direction, 1 for a right angle; vectors here have no minus."""
    return 2 * np.arccos(np.clip(np.round(cosine, _DIGITS), -1, 1)) / np.pi


def nearest_pairs(
    female: Doubles,
    male: Doubles,
    *,
    documents: tuple[Ints, Ints] | None = None,
    most: int | None = None,
    reuse: bool = False,
) -> tuple[Ints, Ints, Doubles]:
    """Rows of matched unit vectors and their distances, the nearest pair first; at most so many.

    Ties go to the lower row, of the female side first. One to one, pairs are taken greedily: a female row
    whose nearest is taken waits with the next that is free. `documents` are the numbers of both sides'
    documents: no document is paired with itself.
    """
    own = np.full(len(female), -1) if documents is None else documents[0]
    theirs = np.arange(len(male)) if documents is None else documents[1]
    free = np.ones(len(male), bool)

    def nearest(rows: Ints) -> tuple[Ints, Doubles]:
        """Of each row the nearest free one and its cosine, `_NONE` if there is none."""
        allowed = free & (own[rows, None] != theirs)
        cosine = np.where(allowed, np.round(female[rows] @ male.T, _DIGITS), _NONE)
        best = np.argmax(cosine, axis=1)
        return best, cosine[np.arange(len(rows)), best]

    waiting: list[tuple[float, int, int]] = []
    step = max(1, _CELLS // len(male))
    for start in range(0, len(female), step):
        rows = np.arange(start, min(start + step, len(female)))
        best, level = nearest(rows)
        waiting += zip((-level).tolist(), rows.tolist(), best.tolist(), strict=True)
    heapq.heapify(waiting)
    taken: list[tuple[int, int, float]] = []
    while waiting and len(taken) < (len(female) if most is None else most):
        away, row, other = heapq.heappop(waiting)
        if away == -_NONE:
            break
        if free[other]:
            free[other] = reuse
            taken.append((row, other, -away))
        else:
            best, level = nearest(np.array([row]))
            heapq.heappush(waiting, (-float(level[0]), row, int(best[0])))
    f, m, levels = (np.array(column) for column in zip(*taken, strict=True)) if taken else ([], [], [])
    return np.asarray(f, np.int64), np.asarray(m, np.int64), angular(np.asarray(levels, np.float64))
