"""The re-rankers: pairs in, scores out. Each knows how it is saved and opened again."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, Doubles

if TYPE_CHECKING:
    from evenrank.rankers.encoder import Encoder
    from evenrank.rankers.encodings import Encodings
    from evenrank.rankers.neural.candidates import FirstStage
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
    """What gives pairs new scores.

    Attributes
    ----------
    name
        What it is called in runs.
    """

    name: str

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """A score for each pair; higher is better, and only those of one query are comparable."""
        ...

    def describe(self) -> dict[str, Any]:
        """Its provenance."""
        ...


def interaction_class(kind: str) -> tuple[type[Any], type[Any]]:
    """The module of a word-interaction model, and its settings."""
    from importlib import import_module

    module = import_module(f"evenrank.rankers.neural.{kind}")
    return getattr(module, _CLASSES[kind]), getattr(module, f"{_CLASSES[kind]}Settings")


class WordReranker:
    """A word-interaction model with its vocabulary."""

    def __init__(
        self,
        kind: str,
        module: Interaction,
        vocabulary: Vocabulary,
        scale: FirstStage,
        facts: Mapping[str, Any],
    ) -> None:
        self.name = kind
        self.module = module
        self.vocabulary = vocabulary
        self.scale = scale
        self.facts = dict(facts)

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        from evenrank.rankers.neural.candidates import scored
        from evenrank.rankers.neural.interaction import WordPairs

        read = WordPairs(pairs, self.vocabulary, self.module.settings, self.scale)
        return scored(self.module, read, np.arange(len(pairs)), progress)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "settings": asdict(self.module.settings), **self.facts}

    def files(self) -> dict[str, bytes]:
        """The content of its folder."""
        from safetensors.torch import save

        weights = {name: each.contiguous() for name, each in self.module.state_dict().items()}
        known = {
            "words": list(self.vocabulary.words),
            "unknown idf": self.vocabulary.unknown_idf,
            "first stage": asdict(self.scale),
        }
        return {"weights.safetensors": save(weights), "vocabulary.json": _json(known)}

    @classmethod
    def opened(cls, kind: str, config: Mapping[str, Any], files: Mapping[str, bytes]) -> WordReranker:
        """The model in a folder, from bytes that were checked."""
        from safetensors.torch import load

        from evenrank.rankers.neural.candidates import FirstStage
        from evenrank.rankers.neural.interaction import Vocabulary

        built, settings = interaction_class(kind)
        weights = load(files["weights.safetensors"])
        known = json.loads(files["vocabulary.json"])
        idf = weights["word_idf"].numpy()[1:-1] * known["unknown idf"]
        vocabulary = Vocabulary(tuple(known["words"]), idf, known["unknown idf"])
        shape = (len(vocabulary), weights["embedding.weight"].shape[1])
        module = built(vocabulary, settings(**config["settings"]), np.zeros(shape, np.float32))
        module.load_state_dict(weights)
        return cls(kind, module.eval(), vocabulary, FirstStage(**known["first stage"]), config["facts"])


class HeadReranker:
    """A head and the encoder whose vectors it reads."""

    name = "head"

    def __init__(
        self, module: Head, encodings: Encodings, scale: FirstStage, facts: Mapping[str, Any]
    ) -> None:
        self.module = module
        self.encodings = encodings
        self.scale = scale
        self.facts = dict(facts)

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        from evenrank.rankers.encodings import encode_pairs
        from evenrank.rankers.neural.candidates import scored
        from evenrank.rankers.neural.head import VectorPairs

        read = VectorPairs(pairs, *encode_pairs(self.encodings, pairs, progress), self.scale)
        return scored(self.module, read, np.arange(len(pairs)))

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "settings": asdict(self.module.settings), **self.facts}

    def files(self) -> dict[str, bytes]:
        """The content of its folder."""
        from safetensors.torch import save

        from evenrank.rankers.neural.head import facts_of

        weights = {name: each.contiguous() for name, each in self.module.state_dict().items()}
        facts = {
            "encoder": facts_of(self.module.settings, self.encodings.encoder),
            "first stage": asdict(self.scale),
        }
        return {"weights.safetensors": save(weights), "encoder.json": _json(facts)}

    @classmethod
    def opened(cls, config: Mapping[str, Any], files: Mapping[str, bytes]) -> HeadReranker:
        """The head in a folder; the encoder has to be the one it was trained with."""
        from safetensors.torch import load

        from evenrank.rankers.encodings import Encodings
        from evenrank.rankers.neural.candidates import FirstStage
        from evenrank.rankers.neural.head import Head, HeadSettings, facts_of

        settings = HeadSettings(**config["settings"])
        encoder = head_encoder(settings)
        known = json.loads(files["encoder.json"])
        if facts_of(settings, encoder) != known["encoder"]:
            raise InputError("the head was trained on the vectors of another encoder than is found here")
        module = Head(known["encoder"]["dimension"], settings)
        module.load_state_dict(load(files["weights.safetensors"]))
        scale = FirstStage(**known["first stage"])
        return cls(module.eval(), Encodings(encoder), scale, config["facts"])


def head_encoder(settings: HeadSettings) -> Encoder:
    """The encoder that a head reads."""
    from evenrank.rankers.encoder import Encoder

    return Encoder(settings.encoder, max_length=settings.max_length, similarity="cosine")


class BiEncoderReranker:
    """Cosine, or product, of the vectors of query and document."""

    def __init__(self, encoder: Encoder, *, facts: Mapping[str, Any] | None = None) -> None:
        from evenrank.rankers.encodings import Encodings

        self.name = "bi-encoder"
        self.encoder = encoder
        self.encodings = Encodings(encoder)
        self.facts = dict(facts or {})

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        from evenrank.rankers.encodings import encode_pairs

        queries, documents = encode_pairs(self.encodings, pairs, progress)
        values = np.empty(len(pairs))
        for start in range(0, len(pairs), 1 << 14):
            some = slice(start, start + (1 << 14))
            left, right = queries[pairs.query[some]], documents[pairs.document[some]]
            values[some] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
        return values

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "encoder": {**self.encoder.facts(), **self.encoder.model.describe()},
            **self.facts,
        }


def with_projection(
    reranker: Reranker, projection: str | os.PathLike[str] | None = None, strength: float = 1.0
) -> Reranker:
    """The same re-ranker with queries changed by a gender projection; refused if it compares no vectors."""
    from evenrank.rankers.encodings import ProjectedEncodings
    from evenrank.rankers.projection import GenderProjection

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

    def __init__(
        self,
        model: Any,
        *,
        batch: int = 64,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.batch = batch
        self.name = "cross-encoder"
        self.facts = dict(facts or {})

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        lengths = np.array([len(text) for text in pairs.documents])[pairs.document]
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(pairs))
        step = self.batch * 16
        for start in range(0, len(order), step):
            some = order[start : start + step]
            texts = [(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]]) for i in some]
            values[some] = self._predicted(texts)
            if progress:
                progress(min(start + step, len(order)), len(order))
        return values

    def _predicted(self, texts: list[tuple[str, str]]) -> Any:
        from torch import nn

        return self.model.predict(
            texts, batch_size=self.batch, show_progress_bar=False, activation_fn=nn.Identity()
        )

    def describe(self) -> dict[str, Any]:
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


def _json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def folder_files(folder: Path, prefix: str) -> dict[str, bytes]:
    """The files of a folder, as those of a model."""
    return {
        f"{prefix}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
