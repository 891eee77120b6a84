"""The gender projection for dense rankers: remove from queries what tells the genders of documents apart.

LEACE fitted on documents is the map d ↦ A d + b after which no linear model can predict the gender of a
document. Applying it to documents would require a new index. But qᵀ(A d + b) = (Aᵀq)ᵀd + qᵀb, and the last
term is the same for all documents: applying the transpose to the query gives the same ranking as erasing all
documents. A strength s interpolates: q ↦ (1 − s) q + s Aᵀq.

N. Belrose, D. Schneider-Joseph, S. Ravfogel, R. Cotterell, E. Raff and S. Biderman, LEACE: Perfect linear
concept erasure in closed form, NeurIPS 2023.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.data.files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.vectors.debias import Doubles, Eraser, fit_eraser

KIND = "dial"
_ARRAYS = "dial.npz"


@dataclass(frozen=True, eq=False)
class GenderProjection:
    """A gender projection, fitted for one encoder.

    Attributes
    ----------
    eraser
        The map of documents that LEACE fitted.
    encoder
        The settings of the encoder; with another encoder the projection is refused.
    facts
        Provenance.
    """

    eraser: Eraser
    encoder: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        return len(self.eraser.mean)

    def queries(self, vectors: Doubles, strength: float = 1.0) -> Doubles:
        """Project queries, as rows: (1 − s) q + s Aᵀq. At 0 they stay, at 1 documents are as if erased."""
        _check_strength(strength)
        if vectors.shape[-1] != self.dimension:
            raise InputError(
                f"the dial is for vectors of {self.dimension} numbers, not of {vectors.shape[-1]}"
            )
        return vectors - strength * (vectors @ self.eraser.projection)

    def check(self, encoder: Mapping[str, Any]) -> None:
        """Refuse an encoder with other settings than the one it was fitted for."""
        for name, value in self.encoder.items():
            if encoder.get(name) != value:
                raise InputError(
                    f"the dial was fitted with another encoder ({name} {value}, here {encoder.get(name)}); "
                    "fit one with: evenrank mitigate dial --model MODEL"
                )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder."""
        arrays = {"projection": self.eraser.projection, "mean": self.eraser.mean}
        facts = {"encoder": dict(self.encoder), "rank": self.eraser.rank, **self.facts}
        write_model(path, KIND, facts, {_ARRAYS: packed(arrays)})


def fit_projection(
    vectors: Doubles, lean: Doubles, *, encoder: Mapping[str, Any] | None = None, **facts: Any
) -> GenderProjection:
    """Fit a projection to the vectors of documents and their genders (−1 female, 1 male)."""
    if len(vectors) != len(lean):
        raise InputError(f"{len(vectors)} vectors and {len(lean)} labels; give one label for each vector")
    if len({*lean.tolist()}) < 2:
        raise InputError("all documents lean the same way; a dial needs both genders")
    eraser = fit_eraser(np.asarray(vectors, np.float64), np.asarray(lean, np.float64)[:, None])
    return GenderProjection(eraser, dict(encoder or {}), {"documents": len(vectors), **facts})


def projection_for(
    path: str | os.PathLike[str] | None, strength: float | None, encoder: Callable[[], Mapping[str, Any]]
) -> tuple[GenderProjection, float] | None:
    """Open a projection, check its encoder, and return it with its strength (default 1); None if no path."""
    if path is None:
        if strength is not None:
            raise InputError("strength says how far a dial turns queries; name one: dial=FILE")
        return None
    if strength is not None:
        _check_strength(strength)
    dial = open_projection(path)
    dial.check(encoder())
    return dial, 1.0 if strength is None else strength


_MAX_STRENGTH = 1000
"""Beyond that nothing of the original query is left."""


def _check_strength(strength: float) -> None:
    if not abs(strength) <= _MAX_STRENGTH:  # NaN is refused too
        raise InputError(
            f"the strength of a dial is {strength:g}; it must be from {-_MAX_STRENGTH} to {_MAX_STRENGTH}, "
            "1 for all of it"
        )


def open_projection(path: str | os.PathLike[str]) -> GenderProjection:
    """Open a saved projection."""
    if not Path(path).is_dir():
        raise InputError("no such dial; make one with: evenrank mitigate dial --docs DOCS -o DIAL", path=path)
    saved = read_model(path, KIND)
    arrays = saved.arrays(_ARRAYS)
    try:
        projection, mean = arrays["projection"], arrays["mean"]
        facts = dict(saved.facts)
        encoder, rank = facts.pop("encoder"), int(facts.pop("rank"))
    except KeyError as error:
        raise InputError(f"the dial lacks {error}; fit it again", path=path) from None
    if projection.shape != (len(mean), len(mean)):
        raise InputError("the arrays of the dial do not fit together; fit it again", path=path)
    facts["sha256"] = hashlib.sha256(saved.files[_ARRAYS]).hexdigest()
    return GenderProjection(Eraser(projection, mean, rank), encoder, facts)
