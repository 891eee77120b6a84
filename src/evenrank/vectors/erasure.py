"""Least-squares concept erasure (LEACE): the smallest change after which no linear predictor finds a concept.

Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff & Biderman: LEACE: Perfect linear concept erasure in
closed form. NeurIPS 2023, Theorem 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

_NOTHING = 1e-10  # eigenvalues and singular values below this share of the largest are rounding


@dataclass(frozen=True)
class Eraser:
    """The affine map x ↦ x − P (x − mean); ``rank`` is the number of dimensions it takes away."""

    projection: Doubles
    mean: Doubles
    rank: int

    def apply(self, x: Doubles) -> Doubles:
        """The rows without the concept."""
        return x - (x - self.mean) @ self.projection.T


def fit_eraser(x: Doubles, concept: Doubles) -> Eraser:
    """Learn from examples what to erase.

    With Σ the covariance of x, W = Σ^(−1/2) and C the covariance of x and the concept, the projection is
    P = W⁺ U Uᵀ W, where U spans the columns of W C. After it the covariance with the concept is 0.

    Parameters
    ----------
    x
        Examples as rows.
    concept
        What each example has of the concept, as a row of numbers; for classes, a 1 in the column of its
        class and 0 elsewhere.
    """
    mean = x.mean(axis=0)
    centred = x - mean
    shared = centred.T @ (concept - concept.mean(axis=0)) / len(x)
    values, axes = np.linalg.eigh(centred.T @ centred / len(x))
    values, axes = values[values > _NOTHING * values[-1]], axes[:, values > _NOTHING * values[-1]]
    whiten = (axes / np.sqrt(values)) @ axes.T
    unwhiten = (axes * np.sqrt(values)) @ axes.T
    span, singular, _ = np.linalg.svd(whiten @ shared, full_matrices=False)
    span = span[:, singular > _NOTHING * max(1.0, singular[0])]
    return Eraser(unwhiten @ span @ span.T @ whiten, mean, span.shape[1])
