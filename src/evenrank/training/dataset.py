"""Training data of a ranker: relevant documents, and the negatives that a first stage ranks beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.files import checksum
from evenrank.data.read import fingerprint, path_of, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.mitigate.negatives import negative_pairs
from evenrank.rankers.base import Say
from evenrank.rankers.neural.candidates import Candidates, candidates
from evenrank.show.numbers import counted
from evenrank.stats.rounding import round_significant

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Scores = Callable[[pl.DataFrame], pl.DataFrame]
"""First-stage scores of pairs ``query_id, doc_id``, as a third column; null where they are not known."""
_PAIR = ["query_id", "doc_id"]


@dataclass(frozen=True, eq=False)
class Examples:
    """Candidates of the training and the dev queries, and which of them are relevant.

    Attributes
    ----------
    pairs
        All pairs; those of a query follow one another.
    relevant, is_candidate, is_negative
        For each pair: is it judged relevant? Is it among the first-stage candidates? (A relevant document
        that is not was added, with its first-stage score.) Can it be a negative of its query?
    dev
        For each query, whether it is held out for early stopping.
    left_out
        Why queries or documents are not used, and how many.
    facts
        Provenance: first stage, collection, and negatives if they were given.
    bias
        How one-sided the document of each pair is, from 0 to 1, for losses that use it.
    mirrored
        The same pairs with the gender of the documents swapped, for the consistency term.
    adversary_labels
        The class that an adversary predicts for each pair, from 0 on.
    """

    pairs: Candidates
    relevant: Flags
    is_candidate: Flags
    is_negative: Flags
    dev: Flags
    left_out: dict[str, int]
    facts: dict[str, Any]
    bias: npt.NDArray[np.float32] | None = None
    mirrored: Candidates | None = None
    adversary_labels: Ints | None = None

    def groups(self) -> tuple[list[int], list[Ints]]:
        """Return the relevant pairs of training queries, and for each the rows of its negatives."""
        positives: list[int] = []
        negatives: list[Ints] = []
        queries = self.pairs.query
        for rows in np.split(np.arange(len(queries)), np.flatnonzero(np.diff(queries)) + 1):
            pool = rows[self.is_negative[rows]]
            if len(pool) and not self.dev[queries[rows[0]]]:
                relevant = rows[self.relevant[rows]].tolist()
                positives += relevant
                negatives += [pool] * len(relevant)
        if not positives:
            raise InputError("no training query has both a relevant document and another one")
        return positives, negatives

    def left_out_messages(self) -> list[str]:
        """Return why queries or documents are not used, and how many: `1 query without negatives`."""
        return [
            counted(count, reason.replace("queries", "query").replace("documents", "document"), reason)
            for reason, count in self.left_out.items()
        ]

    def dev_rows(self, depth: int | None = None) -> Ints:
        """Return the candidates of the dev queries; of each the first `depth`, if given."""
        rows: Ints = np.flatnonzero(self.dev[self.pairs.query] & self.is_candidate)
        if depth is None:
            return rows
        order = rows[np.lexsort((-self.pairs.first[rows], self.pairs.query[rows]))]
        kept: Ints = np.sort(order[_ranks(self.pairs.query[order]) < depth])
        return kept

    def rr(self, rows: Ints, scores: npt.NDArray[Any]) -> float:
        """Return RR@10 of these pairs by their scores; a query without a relevant one counts 0."""
        ids = self.pairs.doc_ids
        by_id = np.argsort(np.argsort(np.array(ids, dtype=object)))
        tied = -by_id[self.pairs.document[rows]]
        ranked = rows[np.lexsort((tied, -round_significant(scores), self.pairs.query[rows]))]
        queries = self.pairs.query[ranked]
        ranks = _ranks(queries)
        hits = np.flatnonzero(self.relevant[ranked] & (ranks < 10))
        _, first = np.unique(queries[hits], return_index=True)
        total = int(self.dev.sum())
        return float((1 / (ranks[hits[first]] + 1)).sum() / total) if total else 0.0

    def checksum(self) -> str:
        """Return a checksum of all that a ranker learns from."""
        pairs = self.pairs
        arrays: list[Any] = [
            pairs.query,
            pairs.document,
            pairs.first,
            self.relevant,
            self.is_candidate,
            self.is_negative,
        ]
        arrays += [self.dev, self.bias, self.adversary_labels]
        mirrored = [] if self.mirrored is None else self.mirrored.documents
        buffers = [np.ascontiguousarray(each) for each in arrays if each is not None]
        return checksum(*buffers, pairs.queries, pairs.documents, mirrored)


def _ranks(queries: Ints) -> Ints:
    """Return the rank of each row, from 0 on, among those of its query, which follow one another."""
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    return np.arange(len(queries)) - np.repeat(starts, np.diff(np.r_[starts, len(queries)]))


def make_examples(
    docs: Any,
    queries: Any,
    qrels: Any,
    *,
    run: Any = None,
    index: Index | None = None,
    negatives: Any = None,
    depth: int = 100,
    dev_share: float = 0.1,
    dev_most: int = 300,
    seed: int = 0,
    log: Say = lambda text: None,
) -> Examples:
    """Return training data out of a collection and a first stage.

    Parameters
    ----------
    docs, queries, qrels
        The collection. Queries without a relevant document are not used.
    run, index
        The first stage, whose documents that are not judged relevant are the negatives; BM25 on the index,
        or on one in the cache, if no run is given. BM25 also scores relevant documents that it did not rank;
        those that a run lacks are left out, because a score of 0 would be wrong.
    negatives
        Pairs ``query_id, doc_id`` to use as negatives instead, or a file of them.
    depth
        Candidates of each query.
    dev_share, dev_most, seed
        The share of queries that are held out, at most so many; the seed draws them.
    """
    collection, requested, judged = open_docs(docs), read_queries(queries), read_qrels(qrels)
    relevant = judged.filter(pl.col("relevance") > 0).select(_PAIR)
    relevant = relevant.join(requested.select("query_id"), on="query_id", how="semi")
    if relevant.is_empty():
        raise InputError("no query has a relevant document; do the ids of queries and qrels agree?")
    answered = relevant["query_id"].n_unique()
    used = requested.join(relevant, on="query_id", how="semi", maintain_order="left")
    first, scores, stage = _first_stage(collection, used, run, index, depth, log)
    first = first.join(relevant, on="query_id", how="semi", maintain_order="left")
    if first.is_empty():
        raise InputError("the first stage has no candidates for the queries; do their ids agree?")
    listed = first.filter(pl.col("rank") <= depth).select(*_PAIR, "score")
    facts: dict[str, Any] = {"first stage": stage, "collection": collection.describe()}
    named, wanted = None, relevant
    if negatives is not None:
        named = negative_pairs(negatives)
        facts["negatives"] = {"pairs": len(named), "fingerprint": fingerprint([named.select(_PAIR)])}
        named = named.unique(_PAIR, keep="first", maintain_order=True)
        named = named.join(relevant, on="query_id", how="semi", maintain_order="left")
        if named.is_empty():
            raise InputError(
                "names negatives for no training query that has a relevant document; do the ids agree?",
                path=path_of(negatives),
            )
        wanted = pl.concat([relevant, named.select(_PAIR)])
    available = pl.DataFrame(
        {"doc_id": [*collection.texts(wanted["doc_id"].to_list())]}, {"doc_id": pl.String}
    )
    added = wanted.join(listed, on=_PAIR, how="anti").join(available, on="doc_id", how="semi")
    added = _with_scores(added, first, scores)
    unscored = added.filter(pl.col("score").is_null())
    if named is not None:
        for bad, problem in (
            (named.join(relevant, on=_PAIR, how="semi"), "is relevant to it"),
            (named.join(available, on="doc_id", how="anti"), "the collection lacks it"),
            (named.join(unscored, on=_PAIR, how="semi"), "its first-stage score is not known"),
        ):
            _refuse_negatives(bad, problem, path_of(negatives))
    lacking = relevant.join(available, on="doc_id", how="anti")
    relevant = relevant.join(available, on="doc_id", how="semi")
    table = pl.concat(
        [
            listed.with_columns(candidate=pl.lit(True)),
            added.filter(pl.col("score").is_not_null()).with_columns(candidate=pl.lit(False)),
        ]
    )
    order = read_run(table.sort("query_id", maintain_order=True).select(*_PAIR, "score"))
    pairs = candidates(order, collection, requested)
    flags = order.join(table, on=_PAIR, how="left", maintain_order="left")
    is_relevant = _contains(relevant, order)
    is_negative = ~is_relevant if named is None else ~is_relevant & _contains(named, order)
    dev = _dev_queries(pairs.query_ids, relevant, dev_share, dev_most, seed)
    positive, opposed = (np.unique(pairs.query[each]) for each in (is_relevant, is_negative))
    left_out = {
        "queries without a relevant document": len(requested) - answered,
        "relevant documents that the collection lacks": len(lacking),
        "relevant documents whose first-stage score is not known": len(unscored),
        "queries without negatives": len(np.setdiff1d(positive[~dev[positive]], opposed)),
    }
    result = Examples(
        pairs,
        is_relevant,
        flags["candidate"].to_numpy(),
        is_negative,
        dev,
        {reason: count for reason, count in left_out.items() if count},
        facts,
    )
    for message in result.left_out_messages():
        log(f"left out: {message}")
    return result


def _first_stage(
    docs: Any, queries: pl.DataFrame, run: Any, index: Index | None, depth: int, log: Say
) -> tuple[pl.DataFrame, Scores | None, dict[str, Any]]:
    """Return the run, a function that scores other pairs if there is one, and the provenance."""
    if run is not None:
        name = Path(run).name if isinstance(run, (str, os.PathLike)) else "run"
        return read_run(run), None, {"run": name}
    from evenrank.rankers.indexing import cached_index
    from evenrank.rankers.lexical import bm25

    searched = cached_index(docs, log) if index is None else index
    if searched.provenance["input"]["fingerprint"] != docs.fingerprint():
        log("the index is of another file or table than is given: it finds and scores by its own texts")
    ranker = bm25(searched)
    result = ranker.rank(queries, depth=depth)
    if result.is_empty():
        raise InputError(
            "nothing is found for any query; do index and queries belong together?", path=searched.path
        )
    return (
        result,
        partial(ranker.scores, queries),
        {key: ranker.describe()[key] for key in ("name", "settings")},
    )


def _with_scores(pairs: pl.DataFrame, first: pl.DataFrame, scores: Scores | None) -> pl.DataFrame:
    """Return pairs with their first-stage scores; null where they are not known."""
    result = pairs.join(first.select(*_PAIR, "score"), on=_PAIR, how="left")
    unknown = result.filter(pl.col("score").is_null()).select(_PAIR)
    if scores is None or unknown.is_empty():
        return result
    computed = scores(unknown).with_columns(pl.col("score").cast(pl.Float64))
    return pl.concat([result.filter(pl.col("score").is_not_null()), computed.select(result.columns)])


def _contains(pairs: pl.DataFrame, order: pl.DataFrame) -> Flags:
    """Return which rows of a run are among these pairs."""
    marked = order.join(pairs.select(*_PAIR, there=True), on=_PAIR, how="left", maintain_order="left")
    flags: Flags = marked["there"].fill_null(False).to_numpy()
    return flags


def _refuse_negatives(bad: pl.DataFrame, problem: str, path: Any) -> None:
    """Raise InputError for the first of these given negatives, with its line."""
    if not bad.is_empty():
        first = bad.sort("line", maintain_order=True).row(0, named=True)
        raise InputError(
            f"document {first['doc_id']!r} is named as negative of query {first['query_id']!r}, "
            f"but {problem}; leave it out",
            path=path,
            line=first["line"],
        )


def _dev_queries(query_ids: list[str], relevant: pl.DataFrame, share: float, most: int, seed: int) -> Flags:
    """Return which queries are held out: drawn by the seed, whatever the order of the queries.

    Queries with a relevant document in common stay together. Otherwise a model that remembers which documents
    were relevant would look good on the dev queries, and be kept, whatever it does on other ones. Where too
    many have one in common, queries are drawn one by one.
    """
    if len(query_ids) < 2:
        raise InputError("one query cannot be split into training and dev; give more queries")
    count = min(most, max(1, round(share * len(query_ids))))
    order = np.argsort(np.array(query_ids, dtype=object))
    order = order[np.random.default_rng([seed, 2]).permutation(len(order))]
    component = _connected(query_ids, relevant)
    sizes = np.bincount(component).tolist()
    chosen: list[int] = []
    left = count
    for group in dict.fromkeys(component[order].tolist()):
        if sizes[group] <= left:
            chosen.append(group)
            left -= sizes[group]
    if 2 * left > count:
        return np.isin(np.arange(len(query_ids)), order[:count])
    dev: Flags = np.isin(component, chosen)
    return dev


def _connected(query_ids: list[str], relevant: pl.DataFrame) -> Ints:
    """Return for each query the number of its component: the queries that relevant documents connect."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = pl.DataFrame({"query_id": query_ids}).with_row_index("query")
    edges = relevant.join(place, on="query_id").with_columns(document=pl.col("doc_id").rank("dense") - 1)
    rows, columns = edges["query"].to_numpy(), edges["document"].to_numpy() + len(query_ids)
    size = int(columns.max(initial=len(query_ids))) + 1
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), (size, size))
    labels: Ints = connected_components(graph, directed=False)[1][: len(query_ids)]
    return labels


def first_stage_weight(examples: Examples, rows: Ints, scores: npt.NDArray[Any]) -> dict[str, float]:
    """Return the weight of the first stage that makes the relevant documents most likely, and RR@10 with it.

    A softmax over the candidates of each query is fitted to which of them are relevant, with a coefficient
    for score and first stage each; the weight is their ratio. RR@10 itself is nearly flat in the weight, and
    where it happens to be highest on a few hundred queries says little about others.
    """
    first = examples.pairs.first[rows]
    columns = np.stack([scores, first], axis=1).astype(np.float64)
    deviation = np.where(columns.std(axis=0) > 0, columns.std(axis=0), 1.0)
    of_score, of_first = _conditional_logit(
        columns / deviation, examples.relevant[rows], examples.pairs.query[rows]
    )
    most = _MOST * deviation[0] / deviation[1]  # a constant score still breaks ties of the first stage
    weight = 0.0 if of_first <= 0 else most
    if of_first > 0 and of_score > 0:
        weight = min(most, float(of_first / of_score * deviation[0] / deviation[1]))
    return {"weight": float(weight), "dev RR@10": examples.rr(rows, scores + weight * first)}


_MOST = 1000.0
"""How many times more than the score the first stage counts at most, where both vary alike."""
_RIDGE = 0.01
"""Keeps coefficients finite where a score puts every relevant document first."""


def _conditional_logit(columns: npt.NDArray[Any], relevant: Any, queries: Ints) -> tuple[float, float]:
    """Return coefficients of the two columns in a softmax over the rows of each query."""
    from scipy.optimize import minimize

    _, place = np.unique(queries, return_inverse=True)
    target = relevant / np.maximum(np.bincount(place, relevant), 1)[place]
    counts = np.bincount(place, target)[place]  # 0 for a query without a relevant candidate

    def loss(coefficients: npt.NDArray[Any]) -> tuple[float, npt.NDArray[Any]]:
        utility = columns @ coefficients
        largest = np.full(len(utility), -np.inf)
        np.maximum.at(largest, place, utility)
        odds = np.exp(utility - largest[place])
        total = np.bincount(place, odds)[place]
        value = (
            float(target @ (np.log(total) - utility + largest[place])) + _RIDGE * coefficients @ coefficients
        )
        return value, columns.T @ (counts * odds / total - target) + 2 * _RIDGE * coefficients

    result = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B").x
    return float(result[0]), float(result[1])
