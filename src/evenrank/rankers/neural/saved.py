"""A trained ranker as a folder: weights, configuration, metrics, a card, and what it was trained on.

==================== ==========================================================================
model.json           the kind of ranker, and the SHA-256 of every other file
config.json          settings, recipe, seed, first stage, inputs
metrics.json         loss and dev RR@10 of each epoch, the hybrid beside it, time
README.md            the model card
training-queries.npz hashes of the ids and texts of the queries it was trained or selected on
weights.safetensors  the weights; those of a transformer lie in ``encoder/`` as sentence-transformers has them
==================== ==========================================================================

A folder in which one bit has changed is refused. So is, unless asked for, the use of a model on queries
that it has learned from: what it finds for them says nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from evenrank.data.files import HEADER, is_model, one_line, packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.rankers.neural.rerankers import (
    INTERACTION,
    KINDS,
    BiEncoderReranker,
    CrossEncoderReranker,
    HeadReranker,
    Hybrid,
    Reranker,
    WordReranker,
)

_CONFIG, _METRICS, _CARD, _TRAINED = "config.json", "metrics.json", "README.md", "training-queries.npz"
ENCODER = "encoder"
"""The folder of a transformer within that of a model."""


@dataclass(frozen=True, eq=False)
class SavedRanker:
    """A trained ranker, open.

    Attributes
    ----------
    path, kind, config, metrics
        Where it lies, and what it says of itself.
    reranker
        What gives scores.
    hybrid_weight
        The weight of the first stage that was best on the dev queries, for ``score + w · first stage``.
    """

    path: Path
    kind: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    reranker: Reranker
    hybrid_weight: float | None
    _trained: Mapping[str, npt.NDArray[np.uint64]]

    def hybrid(self, reranker: Reranker | None = None) -> Hybrid:
        """The same, or what was made of it, with the first stage added, weighted as on the dev queries."""
        if self.hybrid_weight is None:
            raise InputError("no weight of the first stage was chosen for this model", path=self.path)
        return Hybrid(self.reranker if reranker is None else reranker, self.hybrid_weight)

    def seen(self, queries: pl.DataFrame) -> list[str]:
        """The ids of those queries that the model was trained or selected on: the same text."""
        hashes = text_hashes(queries["text"].to_list())
        result = np.isin(hashes, self._trained["texts"])
        return queries["query_id"].filter(pl.Series(result)).to_list()

    def refuse_seen(self, queries: pl.DataFrame) -> None:
        """Raise InputError if it was trained on one of these queries."""
        seen = self.seen(queries)
        if seen:
            raise InputError(
                f"{len(seen):,} of the {len(queries):,} queries, such as {seen[0]!r}, trained this model or "
                "decided when to stop: what it finds for them says nothing; give other queries, or rank "
                "them all the same: --allow-training-queries of `evenrank rerank`, --set "
                "allow_training_queries=true of `evenrank search`",
                path=self.path,
            )


def text_hashes(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Hashes of texts, equal for texts that differ in case and blanks only."""
    cleaned = (" ".join(text.casefold().split()) for text in texts)
    rows = [xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) for text in cleaned]
    return np.array(rows, np.uint64)


def save_ranker(
    path: str | os.PathLike[str],
    kind: str,
    files: Mapping[str, bytes],
    *,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    card: str,
    trained_on: pl.DataFrame,
) -> None:
    """Write the folder, whole or not at all."""
    ids = [xxhash.xxh3_64_intdigest(each.encode()) for each in trained_on["query_id"]]
    trained = {
        "ids": np.unique(np.array(ids, np.uint64)),
        "texts": np.unique(text_hashes(trained_on["text"])),
    }
    content = {
        **files,
        _CONFIG: _json(config),
        _METRICS: _json(metrics),
        _CARD: card.encode(),
        _TRAINED: packed(trained),
    }
    facts = {"hybrid weight": metrics.get("hybrid", {}).get("weight"), "queries": len(trained_on)}
    write_model(path, kind, facts, content)


def open_ranker(path: str | os.PathLike[str], *, backend: Backend = "torch") -> SavedRanker:
    """A trained ranker out of its folder, after every byte of it was checked.

    `backend` is for transformers: ``torch``, ``onnx`` or ``onnx-int8``.
    """
    saved = read_model(path)
    check_backend(backend)
    if backend != "torch" and saved.kind not in ("cross-encoder", "bi-encoder"):
        raise InputError(
            f"{saved.kind} is computed by torch; backend {backend} is for transformers", path=path
        )
    if saved.kind not in KINDS:
        raise InputError(f"this is a {saved.kind} model, not a ranker", path=path)
    _require_torch()
    try:
        config = json.loads(saved.files[_CONFIG])
        metrics = json.loads(saved.files[_METRICS])
        reranker = _opened(saved.kind, config, saved.files, Path(path), backend)
        trained = saved.arrays(_TRAINED)
    except InputError as error:
        raise error if error.path else InputError(error.message, path=path) from None
    except Exception as error:  # a header that vouches for nonsense raises anything
        raise InputError(f"cannot be opened: {one_line(error, 200)}; train again", path=path) from None
    return SavedRanker(
        Path(path), saved.kind, config, metrics, reranker, saved.facts.get("hybrid weight"), trained
    )


def _opened(
    kind: str, config: Mapping[str, Any], files: Mapping[str, bytes], path: Path, backend: Backend
) -> Reranker:
    if kind in INTERACTION:
        return WordReranker.opened(kind, config, files)
    if kind == "head":
        return HeadReranker.opened(config, files)
    from evenrank.rankers.neural.transformers import open_cross_encoder

    settings = config["settings"]
    if kind == "cross-encoder":
        model = open_cross_encoder(path / ENCODER, max_length=settings["max_length"])
        if backend != "torch":
            weights = (content for name, content in sorted(files.items()) if name.endswith(".safetensors"))
            model = OnnxModel(model, xxhash.xxh3_128_hexdigest(b"".join(weights)), backend)
        return CrossEncoderReranker(model, facts=config["facts"])
    from evenrank.rankers.encoder import Encoder

    encoder = Encoder(path / ENCODER, max_length=settings["max_length"], backend=backend)
    return BiEncoderReranker(encoder, facts=config["facts"])


def is_ranker(name: object) -> bool:
    """Whether this names the folder of a model."""
    return isinstance(name, (str, os.PathLike)) and is_model(name)


def _require_torch() -> None:
    from importlib.util import find_spec

    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(f"this needs {package}, which is not installed: pip install 'evenrank[neural]'")


def _json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


__all__ = ["ENCODER", "HEADER", "SavedRanker", "is_ranker", "open_ranker", "save_ranker", "text_hashes"]
