"""A trained ranker as a folder: weights, configuration, metrics, a card, and what it was trained on.

==================== ==========================================================================
model.json           the kind of ranker, and the SHA-256 of every other file
config.json          settings, recipe, seed, first stage, inputs
metrics.json         loss and dev RR@10 of each epoch
README.md            the model card
training-queries.npz hashes of the texts of the queries it was trained or selected on
weights.safetensors  the weights; those of a transformer lie in ``encoder/`` as sentence-transformers has them
==================== ==========================================================================

A folder in which one bit has changed is refused. So is, unless it is allowed, the use of a model on queries
that it has learned from: its results for them say nothing about other queries.
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
from evenrank.errors import InputError, check_choice
from evenrank.rankers.base import Progress
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.neural.candidates import INTERACTION, KINDS, Candidates, Doubles, json_bytes
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.rerankers import BiEncoderReranker, CrossEncoderReranker, Hybrid, Reranker

ENCODER = "encoder"
"""The folder of a transformer within that of a model."""


@dataclass(frozen=True, eq=False)
class SavedRanker:
    """A trained re-ranker, opened from its folder. It refuses the queries that it was trained on.

    Attributes
    ----------
    path, kind, config, metrics
        Its folder, and what that says.
    reranker
        The model.
    training_texts
        Hashes of the texts of the queries that it was trained or selected on.
    allow_training_queries
        Whether it may rank them.
    """

    path: Path
    kind: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    reranker: Reranker
    training_texts: npt.NDArray[np.uint64]
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

    @property
    def hybrid_weight(self) -> float:
        """The weight of the first stage that suits the dev queries best, for ``score + w · first stage``."""
        return float(self.metrics["hybrid"]["weight"])

    def hybrid(self) -> SavedRanker:
        """Return the same with the first stage added, weighted as on the dev queries."""
        return replace(self, reranker=Hybrid(self.reranker, self.hybrid_weight))

    def seen(self, queries: pl.DataFrame) -> list[str]:
        """Return the ids of those queries that the model was trained or selected on: the same text."""
        is_seen = np.isin(text_hashes(queries["text"]), self.training_texts)
        return queries["query_id"].filter(pl.Series(is_seen)).to_list()

    def refuse_queries(self, queries: pl.DataFrame) -> None:
        """Raise InputError if it was trained on one of these queries, unless that is allowed."""
        if not self.allow_training_queries and (seen := self.seen(queries)):
            raise InputError(
                f"{len(seen):,} of the {len(queries):,} queries, such as {seen[0]!r}, trained this model or "
                "decided when to stop, so its results for them say nothing; give other queries, or allow it: "
                "--allow-training-queries of `evenrank rerank`, --set allow_training_queries=true of "
                "`evenrank search`",
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
    queries: list[str],
) -> None:
    """Write the folder, whole or not at all."""
    content = {
        **files,
        "config.json": json_bytes(config),
        "metrics.json": json_bytes(metrics),
        "README.md": card.encode(),
        "training-queries.npz": packed({"texts": np.unique(text_hashes(queries))}),
    }
    write_model(path, kind, {"queries": len(queries)}, content)


def open_ranker(path: str | os.PathLike[str], *, backend: Backend = "torch") -> SavedRanker:
    """Open a trained ranker, after every byte of its folder was checked.

    `backend` is for transformers: ``torch``, ``onnx`` or ``onnx-int8``.
    """
    saved = read_model(path)
    check_choice("the kind of this model", saved.kind, KINDS)
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(f"this needs {package}, which is not installed: pip install 'evenrank[neural]'")
    try:
        config, metrics = (json.loads(saved.files[name]) for name in ("config.json", "metrics.json"))
        reranker = _open_reranker(Path(path), saved.kind, config, saved.files, backend)
        texts = saved.arrays("training-queries.npz")["texts"]
    except InputError as error:
        raise error if error.path else InputError(error.message, path=path) from None
    except Exception as error:  # a header that vouches for nonsense raises anything
        raise InputError(f"cannot be opened: {one_line(error, 200)}; train again", path=path) from None
    return SavedRanker(Path(path), saved.kind, config, metrics, reranker, texts)


def _open_reranker(
    path: Path, kind: str, config: Mapping[str, Any], files: Mapping[str, bytes], backend: Backend
) -> Reranker:
    """Open the model itself."""
    if kind in INTERACTION:
        from evenrank.rankers.neural.models import WordReranker

        return WordReranker.open(kind, config, files)
    if kind == "head":
        from evenrank.rankers.neural.head import HeadReranker

        return HeadReranker.open(config, files)
    length, facts = config["settings"]["max_length"], config["facts"]
    if kind == "cross-encoder":
        return CrossEncoderReranker.open(path / ENCODER, max_length=length, backend=backend, facts=facts)
    return BiEncoderReranker(Encoder(path / ENCODER, max_length=length, backend=backend), facts=facts)
