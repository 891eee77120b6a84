"""A dial for dense rankers: what tells genders apart in the vectors of documents, taken out of the queries.

LEACE fitted on documents is the map d ↦ A d + b after which no linear model tells the genders of documents
apart. Erasing every document of an index would mean to build it anew. But qᵀ(A d + b) = (Aᵀq)ᵀd + qᵀb, and
the last term is the same for all documents: the transpose, applied to the query, ranks as if all had been
erased. And it can be turned: q ↦ (1 − s) q + s Aᵀq.

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

from evenrank.data.model_files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.vectors.debias import Doubles, Eraser, fit_eraser

KIND = "dial"
_ARRAYS = "dial.npz"


@dataclass(frozen=True, eq=False)
class Dial:
    """The map A = I − P and its mean, as LEACE finds them.

    Attributes
    ----------
    eraser
        The map of documents.
    encoder
        What decides the vectors that it was fitted on; others are refused.
    facts
        Where it comes from.
    """

    eraser: Eraser
    encoder: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        return len(self.eraser.mean)

    def queries(self, vectors: Doubles, strength: float = 1.0) -> Doubles:
        """The queries as rows, turned: (1 − s) q + s Aᵀq. At 0 they stay, at 1 documents are as if erased."""
        _check_strength(strength)
        if vectors.shape[-1] != self.dimension:
            raise InputError(
                f"the dial is for vectors of {self.dimension} numbers, not of {vectors.shape[-1]}"
            )
        return vectors - strength * (vectors @ self.eraser.projection)

    def documents(self, vectors: Doubles) -> Doubles:
        """The documents as rows, erased: A d + b. What the dial spares."""
        return self.eraser.apply(vectors)

    def check(self, encoder: Mapping[str, Any]) -> None:
        """Refuse another encoder than that it was fitted with."""
        for name, value in self.encoder.items():
            if encoder.get(name) != value:
                raise InputError(
                    f"the dial was fitted with another encoder ({name} {value}, here {encoder.get(name)}); "
                    "fit one with: evenrank mitigate dial --model MODEL"
                )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a model folder."""
        arrays = {"projection": self.eraser.projection, "mean": self.eraser.mean}
        facts = {"encoder": dict(self.encoder), "rank": self.eraser.rank, **self.facts}
        write_model(path, KIND, facts, {_ARRAYS: packed(arrays)})


def fit_dial(
    vectors: Doubles, lean: Doubles, *, encoder: Mapping[str, Any] | None = None, **facts: Any
) -> Dial:
    """A dial out of the vectors of documents, and what each leans to (−1 female, 1 male)."""
    if len(vectors) != len(lean):
        raise InputError(f"{len(vectors)} vectors and {len(lean)} labels; give one label for each vector")
    if len({*lean.tolist()}) < 2:
        raise InputError("all documents lean the same way; a dial needs both genders")
    eraser = fit_eraser(np.asarray(vectors, np.float64), np.asarray(lean, np.float64)[:, None])
    return Dial(eraser, dict(encoder or {}), {"documents": len(vectors), **facts})


def chosen_dial(
    path: str | os.PathLike[str] | None, strength: float | None, encoder: Callable[[], Mapping[str, Any]]
) -> tuple[Dial, float] | None:
    """A dial for an encoder, and how far it turns: all the way if not said; None where none is named."""
    if path is None:
        if strength is not None:
            raise InputError("strength says how far a dial turns queries; name one: dial=FILE")
        return None
    if strength is not None:
        _check_strength(strength)
    found = open_dial(path)
    found.check(encoder())
    return found, 1.0 if strength is None else strength


_MOST = 1000
"""Beyond that nothing of a query is left but what the dial has added."""


def _check_strength(strength: float) -> None:
    if not abs(strength) <= _MOST:  # nor if it is no number
        raise InputError(
            f"the strength of a dial is {strength:g}; it must be from {-_MOST} to {_MOST}, 1 for all of it"
        )


def open_dial(path: str | os.PathLike[str]) -> Dial:
    """A dial that was saved."""
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
    return Dial(Eraser(projection, mean, rank), encoder, facts)
