"""The gender projection: queries of a dense ranker, changed as if gender were erased from the documents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.data.files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.vectors.debias import Eraser, fit_eraser
from evenrank.vectors.space import Doubles, Floats

_ARRAYS = "projection.npz"
_MAX_STRENGTH = 1000  # beyond that nothing of the original query is left


@dataclass(frozen=True, eq=False)
class GenderProjection:
    """What distinguishes the genders of documents, removed from queries; the index stays as it is.

    LEACE (Belrose et al., NeurIPS 2023) fitted on documents is the map d ↦ A d + b after which no linear
    model can predict the gender of a document. Since qᵀ(A d + b) = (Aᵀq)ᵀd + qᵀb, and the last term is the
    same for all documents, Aᵀq ranks the documents as q would rank erased ones. A strength s interpolates:
    q ↦ (1 − s) q + s Aᵀq.

    Attributes
    ----------
    eraser
        The map that LEACE fitted on documents.
    encoder
        The settings of the encoder; with another one the projection is refused.
    facts
        Provenance.
    """

    eraser: Eraser
    encoder: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        vectors: Floats | Doubles,
        genders: Doubles,
        *,
        encoder: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> GenderProjection:
        """Fit a projection to the vectors of documents and their genders (−1 female, 1 male)."""
        if len(np.unique(genders)) < 2:
            raise InputError("all documents lean the same way; a projection needs both genders")
        eraser = fit_eraser(np.asarray(vectors, np.float64), np.asarray(genders, np.float64)[:, None])
        return cls(eraser, dict(encoder or {}), {"documents": len(vectors), **facts})

    @classmethod
    def open(cls, path: str | os.PathLike[str], encoder: Mapping[str, Any] | None = None) -> GenderProjection:
        """Open a saved projection; refuse an encoder with other settings than the one it was fitted for."""
        if not Path(path).is_dir():
            raise InputError(
                "no such projection; fit one with: er.fit_projection(docs).save(path)", path=path
            )
        saved = read_model(path, "projection")
        arrays, facts = saved.arrays(_ARRAYS), dict(saved.facts)
        fitted, rank = facts.pop("encoder"), facts.pop("rank")
        for name, value in fitted.items():
            if encoder is not None and encoder.get(name) != value:
                raise InputError(
                    f"the projection was fitted with another encoder ({name} {value}, here "
                    f"{encoder.get(name)}); fit one with: er.fit_projection(docs, model=…)",
                    path=path,
                )
        facts["sha256"] = hashlib.sha256(saved.files[_ARRAYS]).hexdigest()
        return cls(Eraser(arrays["projection"], arrays["mean"], rank), fitted, facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder."""
        arrays = {"projection": self.eraser.projection, "mean": self.eraser.mean}
        facts = {"encoder": dict(self.encoder), "rank": self.eraser.rank, **self.facts}
        write_model(path, "projection", facts, {_ARRAYS: packed(arrays)})

    def project(self, queries: Doubles, strength: float = 1.0) -> Doubles:
        """Project queries, as rows: (1 − s) q + s Aᵀq. At 0 they stay, at 1 documents are as if erased."""
        if not abs(strength) <= _MAX_STRENGTH:  # NaN is refused too
            raise InputError(
                f"the strength of a projection is {strength:g}; it must be from {-_MAX_STRENGTH} to "
                f"{_MAX_STRENGTH}, 1 for all of it"
            )
        return queries - strength * (queries @ self.eraser.projection)
