"""De-biased judgments: pairs of a female and a male query whose documents read alike are added.

Rankers learn from judgments that documents of female and of male queries differ in affect, cognition, drives
and concerns. Pairs in which they do not differ weaken that (A. Bigdeli, thesis, Section 3.2): each document
has a generated query and a vector of 22 characteristics; each document of a female query is matched with the
document of a male query nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import evenrank
from evenrank.data.read import path_of, read_genders, refuse_after_fork
from evenrank.errors import InputError, check_whole
from evenrank.mitigate.training_sets import WithAdded
from evenrank.psychology import scores_of
from evenrank.queries.generated import read_generated, stable_hash
from evenrank.show.numbers import counted
from evenrank.text.lexicon import DIMENSIONS, dictionary

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEIGHBOURS = 64
"""Neighbours of each document that are kept; whose neighbours are all taken is compared with all again."""
_DIGITS = 9  # of a cosine: what lies beyond depends on the processor
_CELLS = 1 << 22
_NONE = -2.0  # below any cosine


@dataclass(frozen=True, eq=False)
class EvenJudgments(WithAdded):
    """Queries and judgments to be added to a training set.

    Attributes
    ----------
    pairs
        A row for each matched pair, the nearest first: ``female, female_doc, male, male_doc`` (the ids of two
        queries and their documents) and ``distance``, from 0 (the same direction) to 1 (nothing in common).
    added
        ``query_id, doc_id, text`` of the queries of these pairs, each once, in an order that says nothing of
        their genders.
    counts
        How many generated queries there were of each gender.
    left_out
        Why queries were not matched, and how many.
    requested
        How many queries were to be added; None for all.
    """

    pairs: pl.DataFrame
    added: pl.DataFrame
    counts: dict[str, int]
    left_out: dict[str, int]
    provenance: dict[str, Any] = field(default_factory=dict)
    requested: int | None = None

    GENDER_FILE = "pairs.tsv"

    def gender_table(self) -> pl.DataFrame:
        """The pairs: they say which query is female."""
        return self.pairs

    def report(self) -> dict[str, Any]:
        """What is added, as JSON."""
        away = self.pairs["distance"]
        return {
            "pairs": len(self.pairs),
            "queries asked for": self.requested,
            "queries added": len(self.added),
            "generated": self.counts,
            "left_out": self.left_out,
            "distance": {
                "mean": away.mean(),
                "median": away.median(),
                "largest": away.max(),
            },
            "remarks": self.remarks(),
            "provenance": self.provenance,
        }

    def remarks(self) -> list[str]:
        """What to know of it, for people."""
        lines = []
        if self.requested is not None and len(self.added) < 2 * (self.requested // 2):
            queries = counted(self.requested, "query", "queries")
            if len(self.pairs) < self.requested // 2:
                lines.append(
                    f"asked for {queries}, only {len(self.added):,} could be added: generate more queries"
                )
            else:
                pairs = counted(len(self.pairs), "pair")
                lines.append(
                    f"asked for {queries}, {len(self.added):,} are added: {pairs}, "
                    "in which male queries recur"
                )
        apart = int((self.pairs["distance"] >= 1).sum())
        if apart:
            have = "has" if apart == 1 else "have"
            lines.append(
                f"{apart:,} of {counted(len(self.pairs), 'pair')} {have} nothing in common (distance 1): a "
                "smaller ratio, or more generated queries, leave such pairs out"
            )
        if self.requested is not None and len(self.added) > self.requested:
            lines.append(
                f"queries are added in pairs: {len(self.added):,} in the place of {self.requested:,}"
            )
        return lines + [f"not matched: {count:,} ({reason})" for reason, count in self.left_out.items()]


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
    built = read_generated(generated).queries
    labels, source_of_genders = predicted_or_given(built, genders)
    built = built.join(labels, on="query_id", how="left", maintain_order="left")
    both = built.filter(pl.col("gender").is_in(["female", "male"]))
    left_out = {"neither female nor male": len(built) - len(both)}
    if both.is_empty():
        raise InputError(
            f"no generated query is female or male (genders: {source_of_genders}); generate more queries"
        )
    words = dictionary(source)
    result = scores_of(docs, both["doc_id"].to_list(), words, "words")
    if lacking := [name for name in DIMENSIONS if name not in result.columns]:
        raise InputError(f"the dictionary has no category {lacking[0]!r}; 22 are needed")
    table = both.join(result.select("doc_id", *DIMENSIONS), on="doc_id", how="left", maintain_order="left")
    lost = table[DIMENSIONS[0]].is_null()
    left_out["their document is not in the collection"] = int(lost.sum())
    table = table.filter(~lost).sort("doc_id", "query_id")
    vectors = table.select(DIMENSIONS).to_numpy().astype(np.float64)
    lengths = np.sqrt((vectors**2).sum(axis=1))
    left_out["their document has no word of the dictionary"] = int((lengths == 0).sum())
    table, vectors = table.filter(pl.Series(lengths > 0)), vectors[lengths > 0]
    vectors /= lengths[lengths > 0, None]
    sides = {g: np.flatnonzero((table["gender"] == g).to_numpy()) for g in ("female", "male")}
    for gender, rows in sides.items():
        if not len(rows):
            reasons = "; ".join(f"{count:,}: {why}" for why, count in left_out.items() if count)
            raise InputError(
                f"no generated query with a vector is {gender}; generate more queries "
                f"(genders: {source_of_genders}; {reasons or 'none left out'})"
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
    pairs = pl.DataFrame(
        {
            "female": female["query_id"],
            "female_doc": female["doc_id"],
            "male": male["query_id"],
            "male_doc": male["doc_id"],
            "distance": away,
        }
    )
    keys = ["query_id", "doc_id", "text"]
    added = pl.concat([female.select(keys), male.select(keys)]).unique("query_id", maintain_order=True)
    places = [stable_hash(0, query_id) for query_id in added["query_id"].to_list()]
    added = added[np.argsort(np.array(places, np.uint64), kind="stable")]  # not all female, then all male
    return EvenJudgments(
        pairs,
        added,
        {gender: int((built["gender"] == gender).sum()) for gender in ("female", "male")},
        {reason: count for reason, count in left_out.items() if count},
        {
            "evenrank": evenrank.__version__,
            "genders": source_of_genders,
            "ratio": ratio,
            "size": size,
            "reuse": reuse,
            "dictionary": {"name": words.name, "hash": words.hash},
        },
        None if size is None else round(ratio * size),
    )


def predicted_or_given(built: pl.DataFrame, genders: Any) -> tuple[pl.DataFrame, str]:
    """Genders of generated queries, and where they come from."""
    if genders is not None:
        given = read_genders(genders)
        if not given["query_id"].is_in(built["query_id"].implode()).any():
            raise InputError(
                "none of these labels is of a generated query; check the ids", path=path_of(genders)
            )
        return given, "given"
    from evenrank.queries.classify import predicted_genders

    return predicted_genders(built.select("query_id", "text"), keep_seen=True)


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

    Ties go to the lower row, of the female side first. One to one, pairs are taken greedily: no pair that is
    left could take the place of one that was taken and be nearer. `documents` are the numbers of both sides'
    documents: no document is paired with itself.
    """
    own = np.full(len(female), -1) if documents is None else documents[0]
    theirs = np.arange(len(male)) if documents is None else documents[1]
    near, cosine = _nearest(female, male, own, theirs)
    best, level = near[:, 0], cosine[:, 0]
    rows = np.flatnonzero(best >= 0)
    if reuse:
        order = rows[np.lexsort((best[rows], rows, -level[rows]))[:most]]
        return order, best[order], angular(level[order])
    return _one_to_one(female, male, own, theirs, near, cosine, len(male) if most is None else most)


def _one_to_one(
    female: Doubles, male: Doubles, own: Ints, theirs: Ints, near: Ints, cosine: Doubles, most: int
) -> tuple[Ints, Ints, Doubles]:
    """Greedily: whose nearest is taken asks for the next that is free, and waits its turn."""
    import heapq

    free = np.ones(len(male), bool)
    place = np.zeros(len(female), np.int64)
    heap = [(-cosine[row, 0], row, int(near[row, 0])) for row in range(len(female)) if near[row, 0] >= 0]
    heapq.heapify(heap)
    rows: list[tuple[int, int, float]] = []
    while heap and len(rows) < most:
        away, row, other = heapq.heappop(heap)
        if free[other]:
            free[other] = False
            rows.append((row, other, -away))
            continue
        while place[row] < near.shape[1] and (near[row, place[row]] < 0 or not free[near[row, place[row]]]):
            place[row] += 1
        if place[row] < near.shape[1]:
            following, nearness = int(near[row, place[row]]), float(cosine[row, place[row]])
        else:  # all neighbours that were asked for are taken
            others = free & (theirs != own[row])
            level = np.where(others, np.round(male @ female[row], _DIGITS), _NONE)
            following = int(np.argmax(level)) if others.any() else -1
            nearness = float(level[following])
        if following >= 0:
            heapq.heappush(heap, (-nearness, row, following))
    f, m, levels = (np.array(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return np.asarray(f, np.int64), np.asarray(m, np.int64), angular(np.asarray(levels, np.float64))


def _nearest(female: Doubles, male: Doubles, own: Ints, theirs: Ints) -> tuple[Ints, Doubles]:
    """Of each row the nearest few first; −1, at the end, where there is none or only its own document."""
    count = min(NEIGHBOURS, len(male))
    near = np.empty((len(female), count), np.int64)
    cosine = np.empty((len(female), count))
    step = max(1, _CELLS // len(male))
    for start in range(0, len(female), step):
        block = np.round(female[start : start + step] @ male.T, _DIGITS)
        block[own[start : start + step, None] == theirs] = _NONE
        order = np.argsort(-block, axis=1, kind="stable")[:, :count]
        near[start : start + step] = order
        cosine[start : start + step] = np.take_along_axis(block, order, 1)
    near[cosine == _NONE] = -1
    return near, cosine
