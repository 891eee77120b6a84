"""`er.rerank`: the candidates of a run in a new order; and rankers that search and re-rank in one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import polars as pl

from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Ranker, check_depth
from evenrank.rankers.index import Index
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.rankers.settings import convert

if TYPE_CHECKING:
    from evenrank.rankers.neural.rerankers import Reranker

NAMES = ("hybrid", "bi-encoder", "cross-encoder", "llm")
"""What `rerank` knows besides folders; a checkpoint may follow the second to fourth: ``bi-encoder:NAME``."""


_UNTRAINED = 0.1
"""Weight of the first stage beside an untrained bi-encoder's cosine, unless told."""
_PROJECTION: dict[str, Any] = {"projection": str | None, "strength": float}
"""Settings of what compares vectors: a saved gender projection, and how far it changes queries."""


def rerank(
    model: Any = None,
    run: Any = None,
    docs: Any = None,
    queries: Any = None,
    *,
    method: str | None = None,
    depth: int = 100,
    hybrid: bool = False,
    keep_rest: bool = False,
    allow_training_queries: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Re-rank the documents of a run with a model, or with a method that balances groups.

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
    method
        Instead of a model: ``detgreedy``, ``detcons``, ``detrelaxed``, ``detconstsort``, ``fair`` or
        ``interpolate``; `settings` are then those of :func:`evenrank.rebalance`.
    settings
        ``backend`` for transformers (torch, onnx, onnx-int8); ``projection`` and ``strength`` for
        bi-encoders and heads: see :func:`trained`; for models by name also ``weight``, ``batch``,
        ``max_length``, and those of a language model.

    Returns
    -------
    A run table.
    """
    if method is not None:
        if model is not None:
            raise InputError("a model and a method are given; give one of them")
        _refuse_unused(
            method,
            queries=queries is not None,
            depth=depth != 100,
            hybrid=hybrid,
            keep_rest=keep_rest,
            allow_training_queries=allow_training_queries,
        )
        if progress is not None:
            settings["progress"] = progress
        frame: pl.DataFrame = import_module("evenrank.mitigate.rebalance").rebalance(
            run, method, docs=docs, **settings
        )
        return frame
    for name, value in (("model", model), ("run", run), ("docs", docs), ("queries", queries)):
        if value is None:
            raise InputError(f"rerank needs {name}, or a method that balances groups")
    table, requested = read_run(run), read_queries(queries)
    checked = None if allow_training_queries else queries_of(table, requested)
    built = make_reranker(model, hybrid=hybrid, queries=checked, **settings)
    return reordered(
        built,
        table,
        docs,
        requested,
        depth=depth,
        keep_rest=keep_rest,
        progress=progress,
        named=(run, queries),
    )


def reordered(
    built: Reranker,
    table: pl.DataFrame,
    docs: Any,
    requested: pl.DataFrame,
    *,
    depth: int,
    keep_rest: bool = False,
    progress: Progress | None = None,
    named: Sequence[Any] = (),
) -> pl.DataFrame:
    """A run in the order of a re-ranker; `named` are the files of run and queries, for messages."""
    check_depth(depth)
    pairs = candidates(table, docs, requested, depth=depth, named=named)
    given = built.score(pairs, progress=progress)
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


def _refuse_unused(method: str, **given: bool) -> None:
    """Refuse what is for models, where a method balances groups."""
    if unused := [name for name, is_given in given.items() if is_given]:
        raise InputError(f"{', '.join(unused)}: for models, not for method {method!r}; leave out")


def queries_of(run: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """Those of the queries that a run ranks documents for."""
    return queries.join(run.select("query_id").unique(), on="query_id", how="semi", maintain_order="left")


def make_reranker(
    model: Any, *, hybrid: bool = False, queries: pl.DataFrame | None = None, **settings: Any
) -> Reranker:
    """A re-ranker by folder or name; `queries` are refused if the model was trained on them.

    Settings may be texts, as on a command line: ``weight="0.1"``.
    """
    from evenrank.rankers.neural import rerankers
    from evenrank.rankers.neural.saved import SavedRanker, is_ranker, open_ranker

    if isinstance(model, SavedRanker) or is_ranker(model):
        known = convert(settings, {"backend": Backend, **_PROJECTION}, "a trained model")
        changes = {key: known.pop(key) for key in _PROJECTION if key in known}
        if known and isinstance(model, SavedRanker):
            raise InputError("backend: this model is open already; give its folder instead")
        opened = model if isinstance(model, SavedRanker) else open_ranker(model, **known)
        if queries is not None:
            opened.refuse_seen(queries)
        reranker = rerankers.with_projection(opened.reranker, **changes)
        return opened.hybrid(reranker) if hybrid else reranker
    if not isinstance(model, (str, os.PathLike)):
        if not hasattr(model, "score"):
            kind = type(model).__name__
            raise InputError(f"a model is a folder, a name, or an object with score; found: {kind}")
        if unused := [*(["hybrid"] if hybrid else []), *settings]:
            raise InputError(f"{unused[0]}: this model is made already, and takes no settings here")
        built: Reranker = model
        return built
    name, _, checkpoint = str(model).partition(":")
    if hybrid:
        raise InputError("--hybrid is for trained models; without one: --model hybrid")
    if name == "llm":
        from evenrank.rankers.llm import language_model_reranker

        if "checkpoint" in settings:
            raise InputError("checkpoint is no setting; it follows the name, as in llm:CHECKPOINT")
        return language_model_reranker(checkpoint or None, **settings)
    if name in ("bi-encoder", "hybrid"):
        from evenrank.rankers.encoder import Encoder

        hints = get_type_hints(Encoder.__init__)
        types = {key: hints[key] for key in ("batch", "max_length", "backend")} | _PROJECTION
        known = convert(settings, types | ({"weight": float} if name == "hybrid" else {}), name)
        weight = known.pop("weight", None)
        if name == "hybrid" and weight is None:
            weight = _UNTRAINED
        changes = {key: known.pop(key) for key in _PROJECTION if key in known}
        encoder = Encoder(checkpoint or None, **known)
        inner = rerankers.with_projection(rerankers.BiEncoderReranker(encoder), **changes)
        return inner if weight is None else rerankers.Hybrid(inner, weight)
    if name == "cross-encoder":
        from evenrank.rankers.neural.transformers import open_cross_encoder
        from evenrank.vectors.encoders import find_model

        if not checkpoint:
            raise InputError("a cross-encoder has to be trained, or named, as in cross-encoder:CHECKPOINT")
        known = convert(settings, {"batch": int, "max_length": int | None, "backend": Backend}, name)
        for key in ("batch", "max_length"):
            if known.get(key) is not None and known[key] < 1:
                raise InputError(f"{key} must be at least 1, not {known[key]}")
        result = find_model(checkpoint)
        opened_model = open_cross_encoder(
            result.place, max_length=known.get("max_length"), local=result.source != "hub"
        )
        backend = known.get("backend", "torch")
        check_backend(backend)
        if backend != "torch":
            opened_model = OnnxModel(opened_model, result.fingerprint() or result.name, backend)
        return rerankers.CrossEncoderReranker(
            opened_model, batch=known.get("batch", 64), facts={"model": result.describe()}
        )
    raise InputError(
        f"{str(model)!r} is neither the folder of a trained model nor one of: {', '.join(NAMES)}"
    )


class Reranking:
    """A ranker in two stages: a first one finds candidates in an index, a model orders them."""

    def __init__(
        self, name: str, index: Index, first: Ranker, model: Any, *, depth: int, keep_rest: bool
    ) -> None:
        self.name = name
        self.index = index
        self.first = first
        self.model = model
        self.depth = depth
        self.keep_rest = keep_rest

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The candidates of the first stage, the best of them in the order of the model."""
        check_depth(depth)
        result = self.first.rank(queries, depth=max(depth, self.depth) if self.keep_rest else self.depth)
        if result.is_empty():
            return result
        built = rerank(
            self.model,
            result,
            self.index.docs,
            queries,
            depth=self.depth,
            keep_rest=self.keep_rest,
            progress=progress,
        )
        return built.filter(pl.col("rank") <= depth)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        return (f"{self.name} re-ranked the first {self.depth} documents of {self.first.name}",)

    def refuse_queries(self, queries: pl.DataFrame) -> None:
        """Raise InputError where the model was trained on one of these queries, and may not rank them."""
        if isinstance(self.model, _Guarded):
            self.model.refuse(queries)

    def describe(self) -> dict[str, Any]:
        """The model, the first stage, and the index."""
        return {
            **self.model.describe(),
            "name": self.name,
            "depth": self.depth,
            "first stage": self.first.describe(),
        }


def hybrid_ranker(
    index: Index,
    *,
    checkpoint: str | None = None,
    weight: float = _UNTRAINED,
    first: str = "bm25",
    candidates: int = 100,
    keep_rest: bool = True,
    backend: Backend = "torch",
    projection: str | None = None,
    strength: float = 1.0,
) -> Ranker:
    """An untrained bi-encoder plus `weight` times the first stage, on an index.

    Parameters
    ----------
    index
        What to search; it must hold its text.
    checkpoint
        Name or folder of a sentence-transformer; all-MiniLM-L6-v2 if not given.
    weight
        Of the first-stage score beside the cosine.
    first, candidates, keep_rest, backend, projection, strength
        As for a model of `evenrank train`, see :func:`trained`.
    """
    model = "hybrid" if checkpoint is None else f"hybrid:{checkpoint}"
    built = make_reranker(model, weight=weight, backend=backend, projection=projection, strength=strength)
    return _in_two_stages("hybrid", index, built, first, candidates, keep_rest)


def cross_encoder_ranker(
    index: Index,
    *,
    checkpoint: str,
    first: str = "bm25",
    candidates: int = 100,
    keep_rest: bool = True,
    backend: Backend = "torch",
) -> Ranker:
    """A cross-encoder by name or folder, such as those of the hub that were trained for search."""
    built = make_reranker(f"cross-encoder:{checkpoint}", backend=backend)
    return _in_two_stages("cross-encoder", index, built, first, candidates, keep_rest)


def language_model_ranker(
    index: Index,
    *,
    checkpoint: str | None = None,
    first: str = "bm25",
    candidates: int = 10,
    keep_rest: bool = True,
) -> Ranker:
    """A causal language model that is asked about each of a few candidates; SmolLM2-135M if none is named."""
    built = make_reranker("llm" if checkpoint is None else f"llm:{checkpoint}")
    return _in_two_stages("llm", index, built, first, candidates, keep_rest)


def _in_two_stages(
    name: str, index: Index, model: Any, first: str, candidates: int, keep_rest: bool
) -> Ranker:
    from evenrank.rankers.registry import make

    check_whole("candidates", candidates)
    index.docs  # noqa: B018  says at once if there is no text
    return Reranking(name, index, make(first, index=index), model, depth=candidates, keep_rest=keep_rest)


class _Guarded:
    """A model that refuses the queries it was trained on."""

    def __init__(self, saved: Any, reranker: Any, *, allowed: bool) -> None:
        self.name = reranker.name
        self._saved, self._reranker, self._allowed = saved, reranker, allowed

    def refuse(self, queries: pl.DataFrame) -> None:
        """Raise InputError where it was trained on one of these queries, unless that is allowed."""
        if not self._allowed:
            self._saved.refuse_seen(queries)

    def score(self, pairs: Any, *, progress: Progress | None = None) -> Any:
        self.refuse(pl.DataFrame({"query_id": pairs.query_ids, "text": pairs.queries}))
        return self._reranker.score(pairs, progress=progress)

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = self._reranker.describe()
        return described


def trained(
    index: Index,
    *,
    model: str,
    first: str | None = None,
    candidates: int = 100,
    hybrid: bool = False,
    keep_rest: bool = True,
    backend: Backend = "torch",
    allow_training_queries: bool = False,
    projection: str | None = None,
    strength: float = 1.0,
) -> Ranker:
    """A trained model as a ranker on an index.

    Parameters
    ----------
    index
        What to search; it must hold its text.
    model
        A folder that ``evenrank train`` wrote.
    first
        The ranker that finds the candidates; BM25 if not given. A bi-encoder does without: unless one is
        named, it searches the whole collection itself.
    candidates
        How many of them are scored.
    hybrid
        Add the first-stage score with the weight that was chosen in training.
    keep_rest
        Let the other documents of the first stage follow.
    backend
        For transformers: ``torch``, ``onnx`` or ``onnx-int8``.
    allow_training_queries
        Answer also queries that the model was trained on.
    projection, strength
        For bi-encoders and heads: a folder that :func:`evenrank.fit_projection` saved, and how far it changes
        queries. A head also reads query and document by themselves, so that with it the ranking is not that
        of erased documents.
    """
    from evenrank.rankers.neural.rerankers import with_projection
    from evenrank.rankers.neural.saved import open_ranker

    opened = open_ranker(model, backend=backend)
    if opened.kind == "bi-encoder" and first is None and not hybrid:
        return _Dense(opened, index, projection, strength, allowed=allow_training_queries)
    reranker = with_projection(opened.reranker, projection, strength)
    inner = opened.hybrid(reranker) if hybrid else reranker
    guarded = _Guarded(opened, inner, allowed=allow_training_queries)
    return _in_two_stages(inner.name, index, guarded, first or "bm25", candidates, keep_rest)


class _Dense:
    """A trained bi-encoder that searches the whole collection."""

    def __init__(
        self, saved: Any, index: Index, projection: str | None, strength: float, *, allowed: bool
    ) -> None:
        from evenrank.rankers.dense import DenseRanker
        from evenrank.rankers.projection import GenderProjection

        self.name = saved.kind
        self._saved, self._allowed = saved, allowed
        encodings = saved.reranker.encodings
        facts = encodings.encoder.facts()
        opened = None if projection is None else GenderProjection.open(projection, facts)
        self._ranker = DenseRanker(index, encodings, projection=opened, strength=strength)

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The nearest documents to each query."""
        if not self._allowed:
            self._saved.refuse_seen(queries)
        return self._ranker.rank(queries, depth=depth, progress=progress)

    def describe(self) -> dict[str, Any]:
        """The model and the index."""
        return {**self._ranker.describe(), "name": self.name}
