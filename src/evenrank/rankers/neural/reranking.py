"""`er.rerank`: the candidates of a run in a new order; and a ranker that searches and re-ranks in one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.files import is_model, model_kind
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Ranker, check_depth
from evenrank.rankers.dense import DenseRanker
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.index import Index
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.rerankers import (
    COMPARING,
    BiEncoderReranker,
    CrossEncoderReranker,
    Hybrid,
    Reranker,
    with_projection,
)
from evenrank.rankers.neural.saved import SavedRanker, open_ranker
from evenrank.rankers.settings import convert

_UNTRAINED_WEIGHT = 0.1
"""Weight of the first stage beside an untrained bi-encoder's cosine."""
_PROJECTION: dict[str, Any] = {"projection": str | None, "strength": float}
"""A saved gender projection, and how far it changes queries, where vectors are compared."""
_ENCODER = {"checkpoint": str | None, "batch": int | None, "max_length": int | None, "backend": Backend}
_NAMED: dict[str, dict[str, Any]] = {
    "hybrid": {**_ENCODER, **_PROJECTION, "weight": float},
    "bi-encoder": {**_ENCODER, **_PROJECTION},
    "cross-encoder": _ENCODER,
    "llm": {"checkpoint": str | None},
}
"""The re-rankers that are not trained here, and their settings; a language model has more."""


def setting_types(model: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the names and types of what can be set for a re-ranker by folder or name."""
    if not is_model(model):
        return _NAMED[str(model)]
    flags = {"hybrid": bool, "allow_training_queries": bool, "backend": Backend}
    return {**flags, **(_PROJECTION if model_kind(model) in COMPARING else {})}


def rerank(
    model: Any,
    run: Any,
    docs: Any,
    queries: Any,
    *,
    depth: int = 100,
    hybrid: bool = False,
    keep_rest: bool = False,
    allow_training_queries: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Re-rank the documents of a run with a model.

    Parameters
    ----------
    model
        A folder that ``evenrank train`` wrote; or a name: ``bi-encoder`` or ``bi-encoder:CHECKPOINT`` (any
        sentence-transformer), ``cross-encoder:CHECKPOINT``, ``hybrid`` (the default bi-encoder plus
        ``weight`` times the first stage), ``llm`` or ``llm:CHECKPOINT`` (a language model is asked). Or what
        `train_ranker` returns as ``ranker``, or an object with ``score``, such as :func:`make_reranker`
        returns.
    run, docs, queries
        The first stage, the collection, the queries' texts.
    depth
        Documents of each query that are scored, from the top.
    hybrid
        Add the first-stage score with the weight that was best on the dev queries of the training.
    keep_rest
        Keep the documents below `depth`, in their order, under those that were scored. Without it they are
        left out.
    allow_training_queries
        Re-rank also for queries that the model was trained on.
    settings
        ``backend`` for transformers (torch, onnx, onnx-int8); ``projection`` and ``strength`` for
        bi-encoders and heads: see :func:`two_stage`; for models by name also ``weight``, ``batch``,
        ``max_length``, and those of a language model.

    Returns
    -------
    A run table.
    """
    table, requested = read_run(run), read_queries(queries)
    reranker = make_reranker(model, hybrid=hybrid, allow_training_queries=allow_training_queries, **settings)
    return reordered(
        reranker,
        table,
        docs,
        requested,
        depth=depth,
        keep_rest=keep_rest,
        progress=progress,
        named=(run, queries),
    )


def reordered(
    reranker: Reranker,
    table: pl.DataFrame,
    docs: Any,
    requested: pl.DataFrame,
    *,
    depth: int,
    keep_rest: bool = False,
    progress: Progress | None = None,
    named: Sequence[Any] = (),
) -> pl.DataFrame:
    """Return a run in the order of a re-ranker; `named` are the files of run and queries, for messages."""
    check_depth(depth)
    refuse_training_queries(reranker, queries_of(table, requested))
    pairs = candidates(table, docs, requested, depth=depth, named=named)
    given = reranker.score(pairs, progress=progress)
    try:
        scores = np.asarray(given, np.float64)
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


def make_reranker(
    model: Any, *, hybrid: bool = False, allow_training_queries: bool = False, **settings: Any
) -> Reranker:
    """Return the re-ranker of a folder or name, or the one that is given.

    Settings may be texts, as on a command line: ``weight="0.1"``.
    """
    if isinstance(model, SavedRanker) or (isinstance(model, (str, os.PathLike)) and is_model(model)):
        known = convert(settings, {"backend": Backend, **_PROJECTION}, "a trained model")
        changes = _without_projection(known)
        if known and isinstance(model, SavedRanker):
            raise InputError("backend: this model is open already; give its folder instead")
        saved = model if isinstance(model, SavedRanker) else open_ranker(model, **known)
        saved = replace(saved, reranker=with_projection(saved.reranker, **changes))
        saved = saved.hybrid() if hybrid else saved
        return replace(saved, allow_training_queries=allow_training_queries)
    if not isinstance(model, (str, os.PathLike)):
        if not hasattr(model, "score"):
            kind = type(model).__name__
            raise InputError(f"a model is a folder, a name, or an object with score; found: {kind}")
        if unused := [*(["hybrid"] if hybrid else []), *settings]:
            raise InputError(f"{unused[0]}: this model is made already, and takes no settings here")
        reranker: Reranker = model
        return reranker
    name, _, checkpoint = str(model).partition(":")
    if name not in _NAMED:
        raise InputError(
            f"{str(model)!r} is neither the folder of a trained model nor one of: {', '.join(_NAMED)}"
        )
    if hybrid:
        raise InputError("--hybrid is for trained models; without one: --model hybrid")
    if checkpoint and "checkpoint" in settings:
        raise InputError(f"checkpoint is given twice: {checkpoint} and {settings['checkpoint']}")
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
    changes = _without_projection(known)
    weight = known.pop("weight", _UNTRAINED_WEIGHT)
    encoder = Encoder(known.pop("checkpoint", None), **known)
    inner = with_projection(BiEncoderReranker(encoder), **changes)
    return Hybrid(inner, weight) if name == "hybrid" else inner


def _without_projection(settings: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of a projection out of others, and return them."""
    return {key: settings.pop(key) for key in _PROJECTION if key in settings}


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

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Return the candidates of the first stage, the best of them in the order of the re-ranker."""
        check_depth(depth)
        run = self.first.rank(queries, depth=max(depth, self.depth) if self.keep_rest else self.depth)
        if run.is_empty():
            return run
        result = reordered(
            self.reranker,
            run,
            self.index.docs,
            queries,
            depth=self.depth,
            keep_rest=self.keep_rest,
            progress=progress,
        )
        return result.filter(pl.col("rank") <= depth)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many documents of which first stage are re-ranked."""
        return (f"{self.name} re-ranked the first {self.depth} documents of {self.first.name}",)

    def refuse_queries(self, queries: pl.DataFrame) -> None:
        """Raise InputError if the re-ranker was trained on one of these queries and may not rank them."""
        refuse_training_queries(self.reranker, queries)

    def describe(self) -> dict[str, Any]:
        """Return the provenance of the re-ranker, the first stage, and the index."""
        return {
            **self.reranker.describe(),
            "name": self.name,
            "depth": self.depth,
            "first stage": self.first.describe(),
        }


class TrainedDenseRanker(DenseRanker):
    """A trained bi-encoder that searches the whole collection."""

    def __init__(self, index: Index, saved: SavedRanker) -> None:
        encodings: Any = saved.reranker
        super().__init__(index, encodings.encodings)
        self.name = saved.kind
        self.saved = saved
        self.refuse_queries = saved.refuse_queries

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Return the nearest documents to each query."""
        self.refuse_queries(queries)
        return super().rank(queries, depth=depth, progress=progress)

    def describe(self) -> dict[str, Any]:
        """Return the provenance of the model, and the index."""
        return {**super().describe(), **self.saved.describe()}


def two_stage(
    index: Index,
    *,
    model: str,
    first: str | None = None,
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
        The ranker that finds the candidates; BM25 if not given. A trained bi-encoder does without: unless one
        is named, it searches the whole collection itself.
    candidates
        How many documents of each query are scored: 100 if not given, 10 for a language model.
    keep_rest
        Append the other documents of the first stage to those that were scored.
    settings
        Those of the re-ranker. ``checkpoint``: the name or folder of the model for ``hybrid``
        (all-MiniLM-L6-v2 if not given), ``cross-encoder`` and ``llm`` (SmolLM2-135M-Instruct if not given).
        ``backend``: ``torch``, ``onnx`` or ``onnx-int8``. ``weight``: of the first-stage score in ``hybrid``.
        For a folder ``hybrid``: add the first-stage score with the weight that was chosen in training; and
        ``allow_training_queries``. ``projection`` and ``strength``, for bi-encoders and heads: a folder that
        :func:`evenrank.fit_projection` saved, and how far it changes queries. A head also reads query and
        document by themselves, so that with it the ranking is not that of erased documents.
    """
    from evenrank.rankers.registry import make

    depth = (10 if model == "llm" else 100) if candidates is None else candidates
    check_whole("candidates", depth)
    reranker = make_reranker(model, **settings)
    if isinstance(reranker, SavedRanker) and reranker.name == "bi-encoder" and first is None:
        return TrainedDenseRanker(index, reranker)
    name = model if model in _NAMED else reranker.name
    return TwoStageRanker(
        name, index, make(first or "bm25", index=index), reranker, depth=depth, keep_rest=keep_rest
    )
