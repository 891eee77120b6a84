"""`er.filter_generated`: generated queries that are no use go, and why is counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_whole, is_whole
from evenrank.queries.generation.closeness import overlap, own_ranks, refuse_other_index
from evenrank.queries.generation.generating import Generated, read_generated
from evenrank.rankers.index import Index

Keep = Callable[[pl.DataFrame], list[bool]]


def filter_generated(
    generated: Any,
    index: Index | None = None,
    *,
    words: tuple[int, int] | None = (3, 30),
    repeats: bool = False,
    known: Any = None,
    top: int | None = None,
    answerable: float | None = None,
    reranker: Any = None,
    min_score: float | None = None,
) -> Generated:
    """Leave out generated queries that are too short or long, repeat others, or miss their document.

    The filters are applied in the order of the parameters. A query is counted under the first filter that it
    fails.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    index
        An index of the collection, for `top`, `answerable` and `reranker`.
    words
        Minimum and maximum number of words in a query.
    repeats
        Keep queries that repeat an earlier one.
    known
        Real queries, such as those of a test set: a generated query that repeats one of them is dropped.
    top
        Round trip: BM25 must find the query's document among its first `top` results.
    answerable
        The share of the query's terms (stop words and endings aside) that its document must have.
    reranker, min_score
        A re-ranker, as :func:`evenrank.rerank` takes it, for one a cross-encoder, and the score that it has
        to give the query with its document.
    """
    built = read_generated(generated)
    if index is None and (top is not None or answerable is not None or reranker is not None):
        raise InputError("top, answerable and reranker look at documents; give an index of the collection")
    check_filters(words, reranker, min_score, top=top, answerable=answerable)
    if index is not None and (top is not None or answerable is not None):
        refuse_other_index(built.queries["doc_id"], index)
    steps: list[tuple[str, Keep]] = []
    if words is not None:
        reason = f"fewer than {words[0]} or more than {words[1]} words"
        steps.append((reason, lambda some: _long(some, words)))
    if not repeats:
        steps.append(("say the same as another", _first))
    if known is not None:
        said = {_plain(text) for text in read_queries(known)["text"].to_list()}
        steps.append(
            ("say the same as a real query", lambda some: [_plain(t) not in said for t in some["text"]])
        )
    if index is not None and top is not None:
        reason = f"do not find their document among the first {top}"
        steps.append((reason, lambda some: _found(some, index, top)))
    if index is not None and answerable is not None:
        reason = f"share less than {answerable:g} of their terms with their document"
        steps.append((reason, lambda some: _shared(some, index, answerable)))
    if index is not None and reranker is not None and min_score is not None:
        reason = f"score below {min_score:g} with their document"
        steps.append((reason, lambda some: _scored(some, index, reranker, min_score)))
    frame, left_out = built.queries, dict(built.left_out)
    for reason, keep in steps:
        if frame.is_empty():
            break
        kept = pl.Series(keep(frame), dtype=pl.Boolean)
        if gone := int((~kept).sum()):
            left_out[reason] = left_out.get(reason, 0) + gone
        frame = frame.filter(kept)
    facts = {**built.provenance, "filters": [reason for reason, _ in steps]}
    return replace(built, queries=frame, left_out=left_out, provenance=facts)


def check_filters(
    words: tuple[int, int] | None,
    reranker: Any,
    min_score: float | None,
    *,
    top: int | None = None,
    answerable: float | None = None,
) -> None:
    """Refuse filters that cannot be used; this needs no queries, so it can come before them."""
    if (reranker is None) != (min_score is None):
        raise InputError("a reranker needs a least score, and that a reranker: give both or neither")
    if min_score is not None and not math.isfinite(min_score):
        raise InputError(f"the least score is {min_score}; it must be a finite number")
    if top is not None:
        check_whole("top", top)
    if answerable is not None and not 0 <= answerable <= 1:
        raise InputError(f"answerable is {answerable!r}; it must be a number from 0 to 1")
    if words is None:
        return
    if not isinstance(words, (tuple, list)) or len(words) != 2 or not all(map(is_whole, words)):
        raise InputError(f"words is {words!r}; give two whole numbers, the least and the greatest, or None")
    if not 0 <= words[0] <= words[1]:
        raise InputError(
            f"at least {words[0]} and at most {words[1]} words: the least number is from 0 on, and not above "
            "the greatest"
        )


def _plain(text: str) -> str:
    """What a query says, whatever its case, blanks and marks."""
    from evenrank.rankers.analysis import split

    return " ".join(split(text))


def _long(frame: pl.DataFrame, words: tuple[int, int]) -> list[bool]:
    return [words[0] <= len(text.split()) <= words[1] for text in frame["text"].to_list()]


def _first(frame: pl.DataFrame) -> list[bool]:
    """Of queries that say the same, the first."""
    said = pl.Series([_plain(text) for text in frame["text"].to_list()], dtype=pl.String)
    return said.is_first_distinct().to_list()


def _found(frame: pl.DataFrame, index: Index, top: int) -> list[bool]:
    ranks = own_ranks(frame, index, top)
    return [ranks[query] > 0 for query in frame["query_id"].to_list()]


def _shared(frame: pl.DataFrame, index: Index, least: float) -> list[bool]:
    held = index.docs.texts(frame["doc_id"].unique().to_list())
    terms = {doc_id: set(index.analyzer.terms(text)) for doc_id, text in held.items()}
    pairs = frame.select("doc_id", "text").iter_rows()
    return [overlap(index.analyzer.terms(text), terms.get(doc_id, set())) >= least for doc_id, text in pairs]


def _scored(frame: pl.DataFrame, index: Index, reranker: Any, least: float) -> list[bool]:
    from evenrank.rankers.neural.candidates import candidates
    from evenrank.rankers.neural.reranking import make_reranker, refuse_training_queries

    model = make_reranker(reranker)
    refuse_training_queries(model, frame.select("query_id", "text"))
    run = frame.select("query_id", "doc_id", score=pl.lit(0.0))
    pairs = candidates(read_run(run), index.docs, frame.select("query_id", "text"))
    scores = np.asarray(model.score(pairs))
    good = {pairs.query_ids[row] for row in pairs.query[scores >= least]}
    return [query in good for query in frame["query_id"].to_list()]
