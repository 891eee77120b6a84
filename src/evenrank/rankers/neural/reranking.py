"""`er.rerank`: the candidates of a run in a new order; and a ranker that searches and re-ranks in one."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.files import is_model
from evenrank.data.read import read_queries, refuse_after_fork
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Ranker, check_depth
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.index import Index
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.rerankers import BiEncoderReranker, CrossEncoderReranker, Hybrid, Reranker
from evenrank.rankers.neural.saved import SavedRanker, open_ranker
from evenrank.rankers.settings import convert

_UNTRAINED_WEIGHT = 0.1
"""Weight of the first stage beside an untrained bi-encoder's cosine."""
_ENCODER = {"checkpoint": str | None, "batch": int | None, "max_length": int | None, "backend": Backend}
_NAMED: dict[str, dict[str, Any]] = {
    "hybrid": {**_ENCODER, "weight": float},
    "bi-encoder": _ENCODER,
    "cross-encoder": _ENCODER,
    "llm": {"checkpoint": str | None},
}
"""The re-rankers that are not trained here, and their settings; a language model has more."""
_TRAINED = {"hybrid": bool, "allow_training_queries": bool, "backend": Backend}
"""The settings of a trained model."""


def setting_types(model: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the names and types of what can be set for a re-ranker by folder or name."""
    return _TRAINED if is_model(model) else _NAMED[str(model)]


def rerank(
    model: Any,
    run: Any,
    docs: Any,
    queries: Any,
    *,
    depth: int = 100,
    keep_rest: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Re-rank the documents of a run with a model.

    Parameters
    ----------
    model
        A folder that ``evenrank train`` wrote, or what `train_ranker` returns; or a name: ``bi-encoder`` or
        ``bi-encoder:CHECKPOINT`` (any sentence-transformer), ``cross-encoder:CHECKPOINT``, ``hybrid`` (the
        default bi-encoder plus ``weight`` times the first stage), ``llm`` or ``llm:CHECKPOINT`` (a language
        model is asked); or an object with ``score``, such as :func:`make_reranker` returns.
    run, docs, queries
        The first stage, the collection, the queries' texts.
    depth
        Documents of each query that are scored, from the top.
    keep_rest
        Keep the documents below `depth`, in their order, under those that were scored. Without it they are
        left out.
    settings
        For trained models ``hybrid``: add the first-stage score with the weight that was best on the dev
        queries; and ``allow_training_queries``: re-rank also for queries that the model was trained on.
        For transformers ``backend`` (torch, onnx, onnx-int8); for models by name also ``weight``, ``batch``,
        ``max_length``, and those of a language model.

    Returns
    -------
    A run table.
    """
    refuse_after_fork()
    reranker = make_reranker(model, **settings)
    return reordered(reranker, run, docs, queries, depth=depth, keep_rest=keep_rest, progress=progress)


def reordered(
    reranker: Reranker,
    run: Any,
    docs: Any,
    queries: Any,
    *,
    depth: int,
    keep_rest: bool,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return a run in the order of a re-ranker."""
    check_depth(depth)
    table, requested = read_run(run), read_queries(queries)
    refuse_training_queries(reranker, queries_of(table, requested))
    pairs = candidates(table, docs, requested, depth=depth)
    values = reranker.score(pairs, progress=progress)
    try:
        scores = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError("the model gave scores that are no numbers") from None
    if scores.shape != (len(pairs),):
        raise InputError(
            f"the model gave scores of the shape {scores.shape}; one for each pair is {(len(pairs),)}"
        )
    if not np.isfinite(scores).all():
        raise InputError("the model gave a score that is not a number; was its training stable?")
    result = pairs.run(scores)
    rest = table.filter(pl.col("rank") > depth)
    if not keep_rest or rest.is_empty():
        return result
    lowest = result.group_by("query_id").agg(low=pl.col("score").min())
    below = rest.join(lowest, on="query_id", how="left", maintain_order="left").select(
        "query_id", "doc_id", score=pl.col("low") - pl.col("rank") + depth
    )
    return read_run(pl.concat([result.select("query_id", "doc_id", "score"), below]))


def queries_of(run: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """Return those of the queries that a run ranks documents for."""
    return queries.join(run.select("query_id").unique(), on="query_id", how="semi", maintain_order="left")


def refuse_training_queries(ranker: Any, queries: pl.DataFrame) -> None:
    """Raise InputError if a ranker or re-ranker was trained on one of these queries and may not rank them."""
    if (refuse := getattr(ranker, "refuse_queries", None)) is not None:
        refuse(queries)


def make_reranker(model: Any, **settings: Any) -> Reranker:
    """Return the re-ranker of a folder or name, or the one that is given.

    Settings may be texts, as on a command line: ``weight="0.1"``.
    """
    is_path = isinstance(model, (str, os.PathLike))
    if isinstance(model, SavedRanker) or (is_path and is_model(model)):
        known = convert(settings, _TRAINED, "a trained model")
        saved = open_ranker(model, backend=known.get("backend", "torch")) if is_path else model
        saved = saved.hybrid() if known.get("hybrid") else saved
        return replace(saved, allow_training_queries=known.get("allow_training_queries", False))
    if not is_path:
        if not hasattr(model, "score"):
            kind = type(model).__name__
            raise InputError(f"a model is a folder, a name, or an object with score; found: {kind}")
        reranker: Reranker = model
        return reranker
    name, _, checkpoint = str(model).partition(":")
    if name not in _NAMED:
        raise InputError(
            f"{str(model)!r} is neither the folder of a trained model nor one of: {', '.join(_NAMED)}"
        )
    if checkpoint:
        settings["checkpoint"] = checkpoint
    if name == "llm":
        from evenrank.rankers.llm import language_model_reranker

        return language_model_reranker(settings.pop("checkpoint", None), **settings)
    known = convert(settings, _NAMED[name], name)
    if name == "cross-encoder":
        if known.get("checkpoint") is None:
            raise InputError(
                "a cross-encoder has to be trained, or named, as in checkpoint=NAME or cross-encoder:NAME"
            )
        return CrossEncoderReranker.open(**known)
    weight = known.pop("weight", _UNTRAINED_WEIGHT)
    inner = BiEncoderReranker(Encoder(known.pop("checkpoint", None), **known))
    return Hybrid(inner, weight) if name == "hybrid" else inner


class TwoStageRanker:
    """A ranker in two stages: the first one finds candidates in an index, a re-ranker orders them."""

    def __init__(
        self, name: str, index: Index, first: Ranker, reranker: Reranker, *, depth: int, keep_rest: bool
    ) -> None:
        self.name = name
        self.index = index
        self.first = first
        self.reranker = reranker
        self.depth = depth
        self.keep_rest = keep_rest
        self.notes = (f"{name} re-ranked the first {depth} documents of {first.name}",)

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Return the candidates of the first stage, the best of them in the order of the re-ranker."""
        check_depth(depth)
        run = self.first.rank(queries, depth=max(depth, self.depth) if self.keep_rest else self.depth)
        if run.is_empty():
            return run
        how: dict[str, Any] = {"depth": self.depth, "keep_rest": self.keep_rest, "progress": progress}
        return reordered(self.reranker, run, self.index.docs, queries, **how).filter(pl.col("rank") <= depth)

    def refuse_queries(self, queries: pl.DataFrame) -> None:
        """Raise InputError if the re-ranker was trained on one of these queries and may not rank them."""
        refuse_training_queries(self.reranker, queries)

    def describe(self) -> dict[str, Any]:
        """Return the provenance of the re-ranker, the first stage, and the index."""
        first = self.first.describe()
        return {**self.reranker.describe(), "name": self.name, "depth": self.depth, "first stage": first}


def two_stage(
    index: Index,
    *,
    model: str,
    first: str = "bm25",
    candidates: int | None = None,
    keep_rest: bool = True,
    **settings: Any,
) -> Ranker:
    """Return a re-ranker by folder or name as a ranker on an index.

    Parameters
    ----------
    index
        What to search; it must hold its text.
    model
        A folder that ``evenrank train`` wrote, or ``hybrid``, ``cross-encoder`` or ``llm``.
    first
        The ranker that finds the candidates.
    candidates
        How many documents of each query are scored: 100 if not given, 10 for a language model.
    keep_rest
        Append the other documents of the first stage to those that were scored.
    settings
        Those of the re-ranker. ``checkpoint``: the name or folder of the model for ``hybrid``
        (all-MiniLM-L6-v2 if not given), ``cross-encoder`` and ``llm`` (SmolLM2-135M-Instruct if not given).
        ``backend``: ``torch``, ``onnx`` or ``onnx-int8``. ``weight``: of the first-stage score in ``hybrid``.
        For a folder ``hybrid`` and ``allow_training_queries``, as for :func:`evenrank.rerank`.
    """
    from evenrank.rankers.registry import make

    depth = (10 if model == "llm" else 100) if candidates is None else candidates
    check_whole("candidates", depth)
    reranker = make_reranker(model, **settings)
    name = model if model in _NAMED else reranker.name
    return TwoStageRanker(name, index, make(first, index=index), reranker, depth=depth, keep_rest=keep_rest)
