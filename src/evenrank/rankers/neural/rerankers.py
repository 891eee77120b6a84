"""The re-rankers: pairs in, scores out. Each knows how it is saved and opened again."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.encodings import Encodings, ProjectedEncodings, encode_pairs
from evenrank.rankers.neural.candidates import Candidates, Doubles, FirstStage, scored
from evenrank.rankers.neural.onnx_models import Backend, OnnxModel, check_backend
from evenrank.rankers.projection import GenderProjection
from evenrank.vectors.encoders import find_model

if TYPE_CHECKING:
    from evenrank.rankers.neural.head import Head, HeadSettings
    from evenrank.rankers.neural.interaction import Interaction, Vocabulary

INTERACTION = ("drmm", "matchpyramid", "knrm", "convknrm", "pacrr")
KINDS = (*INTERACTION, "cross-encoder", "bi-encoder", "head")
"""What can be trained."""
COMPARING = ("bi-encoder", "head")
"""Those that compare vectors, and so can have the vectors of queries changed by a gender projection."""

_CLASSES = {
    "drmm": "DRMM",
    "matchpyramid": "MatchPyramid",
    "knrm": "KNRM",
    "convknrm": "ConvKNRM",
    "pacrr": "PACRR",
}


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


def interaction_class(kind: str) -> tuple[type[Any], type[Any]]:
    """Return the module of a word-interaction model, and its settings."""
    module = import_module(f"evenrank.rankers.neural.{kind}")
    return getattr(module, _CLASSES[kind]), getattr(module, f"{_CLASSES[kind]}Settings")


class _TrainedModule:
    """What the small models share: a module, on a GPU if there is one; the first stage; how it is saved."""

    def __init__(self, name: str, module: Any, scale: FirstStage, facts: Mapping[str, Any]) -> None:
        import torch

        self.name = name
        self.module = module.to("cuda" if torch.cuda.is_available() else "cpu")
        self.scale = scale
        self.facts = dict(facts)

    def describe(self) -> dict[str, Any]:
        """Return name, settings and facts of the training."""
        return {"name": self.name, "settings": asdict(self.module.settings), **self.facts}

    def _files(self, name: str, content: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the weights as safetensors, and as JSON what belongs to them."""
        from safetensors.torch import save

        weights = {key: each.contiguous() for key, each in self.module.state_dict().items()}
        rest = {**content, "first stage": asdict(self.scale)}
        return {"weights.safetensors": save(weights), name: json_bytes(rest)}


class WordReranker(_TrainedModule):
    """A word-interaction model with its vocabulary."""

    def __init__(
        self,
        kind: str,
        module: Interaction,
        vocabulary: Vocabulary,
        scale: FirstStage,
        facts: Mapping[str, Any],
    ) -> None:
        super().__init__(kind, module, scale, facts)
        self.vocabulary = vocabulary

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        from evenrank.rankers.neural.interaction import WordPairs

        read = WordPairs(pairs, self.vocabulary, self.module.settings, self.scale)
        return scored(self.module, read, np.arange(len(pairs)), progress)

    def files(self) -> dict[str, bytes]:
        """Return the content of its folder."""
        words, idf = list(self.vocabulary.words), self.vocabulary.unknown_idf
        return self._files("vocabulary.json", {"words": words, "unknown idf": idf})

    @classmethod
    def open(cls, kind: str, config: Mapping[str, Any], files: Mapping[str, bytes]) -> WordReranker:
        """Open the model in a folder, from bytes that were checked."""
        from safetensors.torch import load

        from evenrank.rankers.neural.interaction import Vocabulary

        model_class, settings = interaction_class(kind)
        weights = load(files["weights.safetensors"])
        saved = json.loads(files["vocabulary.json"])
        idf = weights["word_idf"].numpy()[1:-1] * saved["unknown idf"]
        vocabulary = Vocabulary(tuple(saved["words"]), idf, saved["unknown idf"])
        shape = (len(vocabulary), weights["embedding.weight"].shape[1])
        module = model_class(vocabulary, settings(**config["settings"]), np.zeros(shape, np.float32))
        module.load_state_dict(weights)
        return cls(kind, module, vocabulary, FirstStage(**saved["first stage"]), config["facts"])


class HeadReranker(_TrainedModule):
    """A head and the encoder whose vectors it reads."""

    def __init__(
        self, module: Head, encodings: Encodings, scale: FirstStage, facts: Mapping[str, Any]
    ) -> None:
        super().__init__("head", module, scale, facts)
        self.encodings = encodings

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        from evenrank.rankers.neural.head import VectorPairs

        read = VectorPairs(pairs, *encode_pairs(self.encodings, pairs, progress), self.scale)
        return scored(self.module, read, np.arange(len(pairs)))

    def files(self) -> dict[str, bytes]:
        """Return the content of its folder."""
        return self._files("encoder.json", {"encoder": _encoder_facts(self.encodings.encoder)})

    @classmethod
    def open(cls, config: Mapping[str, Any], files: Mapping[str, bytes]) -> HeadReranker:
        """Open the head in a folder; the encoder has to be the one it was trained with."""
        from safetensors.torch import load

        from evenrank.rankers.neural.head import Head, HeadSettings

        settings = HeadSettings(**config["settings"])
        encoder = head_encoder(settings)
        saved = json.loads(files["encoder.json"])
        if _encoder_facts(encoder) != saved["encoder"]:
            raise InputError("the head was trained on the vectors of another encoder than is found here")
        module = Head(saved["encoder"]["dimension"], settings)
        module.load_state_dict(load(files["weights.safetensors"]))
        return cls(module, Encodings(encoder), FirstStage(**saved["first stage"]), config["facts"])


def _encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """Return which encoder a head belongs to: a head on other vectors would be noise."""
    return {**encoder.facts(), "dimension": encoder.dimension}


def head_encoder(settings: HeadSettings) -> Encoder:
    """Return the encoder that a head reads."""
    return Encoder(settings.encoder, max_length=settings.max_length, similarity="cosine")


class BiEncoderReranker:
    """Cosine, or product, of the vectors of query and document."""

    name = "bi-encoder"

    def __init__(self, encoder: Encoder, *, facts: Mapping[str, Any] | None = None) -> None:
        self.encoder = encoder
        self.encodings = Encodings(encoder)
        self.facts = dict(facts or {})

    @classmethod
    def open(
        cls,
        place: Path,
        *,
        max_length: int | None = None,
        backend: Backend = "torch",
        facts: Mapping[str, Any] | None = None,
    ) -> BiEncoderReranker:
        """Open the sentence-transformer in a folder."""
        return cls(Encoder(place, max_length=max_length, backend=backend), facts=facts)

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
        return {
            "name": self.name,
            "encoder": {**self.encoder.facts(), **self.encoder.model.describe()},
            **self.facts,
        }


def with_projection(
    reranker: Reranker, projection: str | os.PathLike[str] | None = None, strength: float = 1.0
) -> Reranker:
    """Return the same re-ranker with queries changed by a projection; refuse one that compares no vectors."""
    if projection is None:
        return reranker
    if reranker.name not in COMPARING:
        raise InputError(
            f"a projection changes vectors of queries, and {reranker.name} has none; leave it out"
        )
    built: Any = copy.copy(reranker)
    opened = GenderProjection.open(projection, built.encodings.encoder.facts())
    built.encodings = ProjectedEncodings(built.encodings, opened, strength)
    built.facts = {**built.facts, "projection": dict(opened.facts), "strength": strength}
    return cast(Reranker, built)


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
        from evenrank.rankers.neural.transformers import open_cross_encoder

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
        if not np.isfinite(weight):
            raise InputError(f"the weight of the first stage is {weight}; it must be a number")
        self.inner = inner
        self.weight = float(weight)
        self.name = f"{inner.name}+first"

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        result: Doubles = self.inner.score(pairs, progress=progress) + self.weight * pairs.first
        return result

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), "name": self.name, "first-stage weight": self.weight}


def json_bytes(content: Any) -> bytes:
    """Return the content of a JSON file."""
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def folder_files(folder: Path, prefix: str) -> dict[str, bytes]:
    """Return the files of a folder, as those of a model."""
    return {
        f"{prefix}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
