"""Softmax regression on sparse and dense columns: the smallest trainer that needs no more than scipy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS = 50
_CLASSES = 3
_MOST_ROWS = 6_000  # up to here X Xᵀ fits well into memory


class Fit(NamedTuple):
    """Weights of the sparse and of the dense columns, a row each, and the bias of each class."""

    sparse: Floats
    dense: Floats
    bias: Floats


def fit_softmax(
    sparse: Any, dense: Floats, truth: npt.NDArray[np.int64], weight: Floats, *, strength: float
) -> Fit:
    """Minimise ``strength`` × the weighted log loss + half the squared weights, from zero, by L-BFGS.

    The bias is not shrunk. The problem is convex and the start fixed, so the same data give the same
    weights.

    Notes
    -----
    The best weights are a combination of the rows. With fewer rows than columns the problem is therefore
    solved, exactly, for the rows of the Cholesky factor L of X Xᵀ in place of X: some thousand
    columns and not a hundred thousand. The weights are Xᵀ L⁻ᵀ u.
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.sparse import csr_matrix, hstack

    design = hstack([sparse, csr_matrix(dense)]).tocsr()
    if len(truth) > _MOST_ROWS:
        table = _minimise(design, design.T.tocsr(), truth, weight, strength)
        return _parts(table[:-1], table[-1], sparse.shape[1])
    gram = (sparse @ sparse.T).toarray() + dense @ dense.T
    gram[np.diag_indices_from(gram)] += 1e-6
    lower = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    single = np.ascontiguousarray(lower, np.float32)  # half the bytes to read in each step
    table = _minimise(single, single.T, truth, weight, strength)
    combined = solve_triangular(lower, table[:-1], lower=True, trans="T", check_finite=False)
    return _parts(design.T @ combined, table[-1], sparse.shape[1])


def _parts(weights: Floats, bias: Floats, columns: int) -> Fit:
    return Fit(weights[:columns], weights[columns:], bias)


def _minimise(
    design: Any, across: Any, truth: npt.NDArray[np.int64], weight: Floats, strength: float
) -> Floats:
    """One row of weights per column of the design, and the bias as the last row."""
    from scipy.optimize import minimize

    wanted = np.eye(_CLASSES)[truth]
    importance = (strength * weight)[:, None]

    def loss(point: Floats) -> tuple[float, Floats]:
        table = point.reshape(-1, _CLASSES)
        scores = design @ table[:-1].astype(design.dtype) + table[-1]
        scores -= scores.max(1, keepdims=True)
        raised = np.exp(scores)
        total = raised.sum(1, keepdims=True)
        value = -float((importance * wanted * (scores - np.log(total))).sum())
        slope = importance * (raised / total - wanted)
        gradient = np.vstack([across @ slope.astype(design.dtype) + table[:-1], slope.sum(0)])
        return value + 0.5 * float((table[:-1] ** 2).sum()), gradient.ravel()

    start = np.zeros((design.shape[1] + 1) * _CLASSES)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "ftol": 1e-6})
    return np.asarray(found.x).reshape(-1, _CLASSES)


def softmax(scores: Floats) -> Floats:
    """Probabilities, row by row."""
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def temperature(scores: Floats, truth: npt.NDArray[np.int64]) -> float:
    """What to divide scores by, so that held-out queries are as likely as can be (Guo et al. 2017).

    Above 1 the scores were too sure. The order of the classes never changes.
    """
    from scipy.optimize import minimize_scalar

    def surprise(log_temperature: float) -> float:
        chosen = softmax(scores / np.exp(log_temperature))[np.arange(len(truth)), truth]
        return -float(np.log(np.maximum(chosen, 1e-12)).mean())

    found = minimize_scalar(surprise, bounds=(np.log(0.2), np.log(5)), method="bounded")
    return float(np.exp(found.x))
