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
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from evenrank.data.files import one_line, packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, Doubles
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.rerankers import (
    INTERACTION,
    KINDS,
    BiEncoderReranker,
    CrossEncoderReranker,
    HeadReranker,
    Hybrid,
    Reranker,
    WordReranker,
    json_bytes,
)

_CONFIG, _METRICS, _CARD, _TRAINED = "config.json", "metrics.json", "README.md", "training-queries.npz"
ENCODER = "encoder"
"""The folder of a transformer within that of a model."""


@dataclass(frozen=True, eq=False)
class SavedRanker:
    """A trained re-ranker, opened from its folder. It refuses the queries that it was trained on.

    Attributes
    ----------
    path, kind, config, metrics
        Where it lies, and what it says of itself.
    reranker
        The model.
    hybrid_weight
        The weight of the first stage that was best on the dev queries, for ``score + w · first stage``.
    allow_training_queries
        Whether it may rank queries that it was trained on.
    """

    path: Path
    kind: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    reranker: Reranker
    hybrid_weight: float | None
    _trained: Mapping[str, npt.NDArray[np.uint64]]
    allow_training_queries: bool = False

    @property
    def name(self) -> str:
        """What it is called in runs."""
        return self.reranker.name

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        return self.reranker.score(pairs, progress=progress)

    def describe(self) -> dict[str, Any]:
        """Return the provenance of the model."""
        return self.reranker.describe()

    def hybrid(self) -> SavedRanker:
        """Return the same with the first stage added, weighted as on the dev queries."""
        if self.hybrid_weight is None:
            raise InputError("no weight of the first stage was chosen for this model", path=self.path)
        return replace(self, reranker=Hybrid(self.reranker, self.hybrid_weight))

    def seen(self, queries: pl.DataFrame) -> list[str]:
        """Return the ids of those queries that the model was trained or selected on: the same text."""
        hashes = text_hashes(queries["text"].to_list())
        result = np.isin(hashes, self._trained["texts"])
        return queries["query_id"].filter(pl.Series(result)).to_list()

    def refuse_queries(self, queries: pl.DataFrame) -> None:
        """Raise InputError if it was trained on one of these queries, unless that is allowed."""
        if not self.allow_training_queries and (seen := self.seen(queries)):
            raise InputError(
                f"{len(seen):,} of the {len(queries):,} queries, such as {seen[0]!r}, trained this model or "
                "decided when to stop: what it finds for them says nothing; give other queries, or rank "
                "them all the same: --allow-training-queries of `evenrank rerank`, --set "
                "allow_training_queries=true of `evenrank search`",
                path=self.path,
            )


def text_hashes(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return hashes of texts, equal for texts that differ in case and blanks only."""
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
        _CONFIG: json_bytes(config),
        _METRICS: json_bytes(metrics),
        _CARD: card.encode(),
        _TRAINED: packed(trained),
    }
    facts = {"hybrid weight": metrics.get("hybrid", {}).get("weight"), "queries": len(trained_on)}
    write_model(path, kind, facts, content)


def open_ranker(path: str | os.PathLike[str], *, backend: Backend = "torch") -> SavedRanker:
    """Open a trained ranker, after every byte of its folder was checked.

    `backend` is for transformers: ``torch``, ``onnx`` or ``onnx-int8``.
    """
    saved = read_model(path)
    if saved.kind not in KINDS:
        raise InputError(f"this is a {saved.kind} model, not a ranker", path=path)
    if backend != "torch" and saved.kind not in ("cross-encoder", "bi-encoder"):
        raise InputError(
            f"{saved.kind} is computed by torch; backend {backend} is for transformers", path=path
        )
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(f"this needs {package}, which is not installed: pip install 'evenrank[neural]'")
    try:
        config, metrics = (json.loads(saved.files[name]) for name in (_CONFIG, _METRICS))
        if saved.kind in INTERACTION:
            reranker: Reranker = WordReranker.open(saved.kind, config, saved.files)
        elif saved.kind == "head":
            reranker = HeadReranker.open(config, saved.files)
        else:
            kind = CrossEncoderReranker if saved.kind == "cross-encoder" else BiEncoderReranker
            length, facts = config["settings"]["max_length"], config["facts"]
            reranker = kind.open(Path(path) / ENCODER, max_length=length, backend=backend, facts=facts)
        trained = saved.arrays(_TRAINED)
    except InputError as error:
        raise error if error.path else InputError(error.message, path=path) from None
    except Exception as error:  # a header that vouches for nonsense raises anything
        raise InputError(f"cannot be opened: {one_line(error, 200)}; train again", path=path) from None
    return SavedRanker(
        Path(path), saved.kind, config, metrics, reranker, saved.facts.get("hybrid weight"), trained
    )
