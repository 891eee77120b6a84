"""The bi-encoder of re-rankers and of the dense ranker: a sentence-transformer and how it is used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenrank.errors import check_choice, check_whole
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.vectors.encoders import find_model, open_model

Similarity = Literal["cosine", "dot"]


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
        for name, value in (("batch", batch), ("max_length", max_length)):
            if value is not None:
                check_whole(name, value)
        if similarity is not None:
            check_choice("similarity", similarity, get_args(Similarity))
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
