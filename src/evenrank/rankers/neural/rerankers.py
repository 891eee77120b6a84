"""Re-rankers by transformers: bi-encoder, cross-encoder, and the sum with the first stage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from evenrank.errors import check_number, check_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.encodings import Encodings, encode_pairs
from evenrank.rankers.neural.candidates import Candidates, Doubles
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.rankers.neural.transformers import open_cross_encoder
from evenrank.vectors.encoders import find_model


class Reranker(Protocol):
    """What gives pairs new scores."""

    @property
    def name(self) -> str:
        """What it is called in runs."""
        ...

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return a score for each pair; higher is better, and only those of one query are comparable."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return its provenance."""
        ...


class BiEncoderReranker:
    """Cosine, or product, of the vectors of query and document."""

    name = "bi-encoder"

    def __init__(self, encoder: Encoder, *, facts: Mapping[str, Any] | None = None) -> None:
        self.encodings = Encodings(encoder)
        self.facts = dict(facts or {})

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        queries, documents = encode_pairs(self.encodings, pairs, progress)
        values = np.empty(len(pairs))
        for start in range(0, len(pairs), 1 << 14):
            some = slice(start, start + (1 << 14))
            left, right = queries[pairs.query[some]], documents[pairs.document[some]]
            values[some] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
        return values

    def describe(self) -> dict[str, Any]:
        """Return the encoder and facts of the training."""
        encoder = self.encodings.encoder
        return {"name": self.name, "encoder": {**encoder.facts(), **encoder.model.describe()}, **self.facts}


class CrossEncoderReranker:
    """A transformer that reads query and document together, as ``sentence_transformers.CrossEncoder``."""

    name = "cross-encoder"

    def __init__(self, model: Any, *, batch: int = 64, facts: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.batch = batch
        self.facts = dict(facts or {})

    @classmethod
    def open(
        cls,
        checkpoint: str | os.PathLike[str],
        *,
        batch: int | None = None,
        max_length: int | None = None,
        backend: Backend = "torch",
        facts: Mapping[str, Any] | None = None,
    ) -> CrossEncoderReranker:
        """Open a cross-encoder by name or folder."""
        check_backend(backend)
        for name, value in (("batch", batch), ("max_length", max_length)):
            if value is not None:
                check_whole(name, value)
        source = find_model(checkpoint)
        model = open_cross_encoder(source.place, max_length=max_length, local=source.source != "hub")
        if backend != "torch":
            model = OnnxModel(model, source.fingerprint() or source.name, backend)
        return cls(model, batch=batch or 64, facts={"model": source.describe()} if facts is None else facts)

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        from torch import nn

        lengths = np.array([len(text) for text in pairs.documents])[pairs.document]
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(pairs))
        step = self.batch * 16
        for start in range(0, len(order), step):
            some = order[start : start + step]
            texts = [(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]]) for i in some]
            values[some] = self.model.predict(
                texts, batch_size=self.batch, show_progress_bar=False, activation_fn=nn.Identity()
            )
            if progress:
                progress(min(start + step, len(order)), len(order))
        return values

    def describe(self) -> dict[str, Any]:
        """Return name and model."""
        return {"name": self.name, **self.facts}


class Hybrid:
    """Score + w · first stage: the honest baseline of everything that is trained."""

    def __init__(self, inner: Reranker, weight: float) -> None:
        check_number("weight", weight, least=-np.inf)
        self.inner = inner
        self.weight = float(weight)
        self.name = f"{inner.name}+first"

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        scores: Doubles = self.inner.score(pairs, progress=progress) + self.weight * pairs.first
        return scores

    def describe(self) -> dict[str, Any]:
        """Return the provenance of the inner model, and the weight."""
        return {**self.inner.describe(), "name": self.name, "first-stage weight": self.weight}
