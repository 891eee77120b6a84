"""Debiasing of word vectors (hard, strong, LEACE), and a test of how much gender is left.

The test is that of Gonen & Goldberg, "Lipstick on a Pig" (NAACL 2019): can the most gendered words still be
told apart after debiasing?
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError, InputWarning
from evenrank.stats import Interval, mean_interval
from evenrank.vectors.gendered import (
    FREQUENT,
    MIRRORED,
    Direction,
    Pair,
    Pairs,
    find_direction,
    ordinary_rows,
    read_pairs,
    specific_words,
)
from evenrank.vectors.space import ROWS, Doubles, Floats, Ints, Vectors, row_lengths

Bools = npt.NDArray[np.bool_]

_ROUNDING = 1e-10  # eigenvalues and singular values below this share of the largest are rounding errors


@dataclass(frozen=True)
class Eraser:
    """The affine map x ↦ x − P (x − mean); ``rank`` is the number of dimensions it removes."""

    projection: Doubles
    mean: Doubles
    rank: int

    def apply(self, x: Doubles) -> Doubles:
        """Return the rows without the concept."""
        return x - (x - self.mean) @ self.projection.T


def fit_eraser(x: Doubles, concept: Doubles) -> Eraser:
    """Fit LEACE: learn from examples what to erase.

    With Σ the covariance of x, W = Σ^(−1/2) and C the covariance of x and the concept, the projection is
    P = W⁺ U Uᵀ W, where U spans the columns of W C. After it the covariance with the concept is 0.

    Parameters
    ----------
    x
        Examples as rows.
    concept
        The concept of each example as a row of numbers; classes are one-hot.
    """
    mean = x.mean(axis=0)
    centred = x - mean
    shared = centred.T @ (concept - concept.mean(axis=0)) / len(x)
    values, axes = np.linalg.eigh(centred.T @ centred / len(x))
    kept = values > _ROUNDING * values[-1]
    values, axes = values[kept], axes[:, kept]
    whiten = (axes / np.sqrt(values)) @ axes.T
    unwhiten = (axes * np.sqrt(values)) @ axes.T
    span, singular, _ = np.linalg.svd(whiten @ shared, full_matrices=False)
    span = span[:, singular > _ROUNDING * max(1.0, singular[0])]
    return Eraser(unwhiten @ span @ span.T @ whiten, mean, span.shape[1])


Method = Literal["hard", "strong", "leace"]

SHARES = (0.01, 0.05, 0.15)
"""Classes of LEACE: the words that lean most, the outermost 1 %, 5 % and 15 % on either side."""


def debiased(
    vectors: Vectors,
    method: Method = "hard",
    *,
    direction: Direction | None = None,
    specific: Iterable[str] | str | os.PathLike[str] | None = None,
    grow: bool = False,
    equalise: Pairs | None = None,
    held_out: Collection[str] = (),
) -> Vectors:
    """Remove a direction, or what a linear model can find of it, from vectors; they keep length 1.

    Parameters
    ----------
    vectors
        The word vectors.
    method
        ``hard`` (Bolukbasi et al. 2016): every word that is not gender-specific loses its component
        along the direction; the two words of each pair are made equally distant from every neutral word.
        ``strong`` (Prost et al. 2019): every word loses it. ``leace`` (Belrose et al. 2023): every word
        loses what lets a linear model predict how far words lean, which is several dimensions and not just
        one; nearest neighbours change more.
    direction
        What to remove; the gender direction of these vectors if not given.
    specific
        Gender-specific words, or a file with one on each line; the default set of
        :func:`~evenrank.vectors.specific_words` if not given. ``hard`` keeps their gender,
        ``leace`` does not learn from them.
    grow
        Let a linear SVM add words that look gender-specific.
    equalise
        Pairs for ``hard``, or a file of them; those of Bolukbasi et al. if not given. They count as
        gender-specific.
    held_out
        Words that ``leace`` does not learn from, so that it can be tested on them.
    """
    if method not in get_args(Method):
        raise InputError(f"unknown method {method!r}; choose one of: {', '.join(get_args(Method))}")
    direction = find_direction(vectors) if direction is None else direction
    facts: dict[str, Any] = {"method": method, "direction": direction.to_dict()}
    if method == "strong":
        matrix = neutralise(vectors, direction)
    else:
        kept = specific_words(specific)
        if grow:
            grown = grow_specific(vectors, kept)
            kept = grown.words
            facts |= {"grown": list(grown.added), "grown_f1": grown.f1}
        facts["specific"] = sorted(kept)
        if method == "hard":
            pairs = _pairs_with_vectors(vectors, equalise)
            kept |= {word.lower() for pair in pairs for word in pair}
            matrix = neutralise(vectors, direction, keep=kept)
            equalise_pairs(matrix, vectors, direction, pairs)
            facts["equalised"] = len(pairs)
        else:
            matrix, facts["rank"] = _erase(vectors, direction, kept, held_out)
    return Vectors.trusted(vectors.words, matrix, {**vectors.provenance, "debiased": facts})


def neutralise(vectors: Vectors, direction: Direction, *, keep: Collection[str] = ()) -> Floats:
    """Return the matrix without its component along the direction, except for words to keep (lower case)."""
    rows = np.array([row for row, word in enumerate(vectors.words) if word.lower() not in keep], np.int64)

    def without(block: Doubles) -> Doubles:
        return block - np.outer(block @ direction.vector, direction.vector)

    return _changed(vectors, rows, without)


def _changed(vectors: Vectors, rows: Ints, change: Callable[[Doubles], Doubles]) -> Floats:
    """Return the matrix with these rows changed, and scaled to length 1 again."""
    matrix = np.array(vectors.matrix)
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        block = change(matrix[part].astype(np.float64))
        lengths = row_lengths(block)
        if (lengths < 1e-6).any():
            word = vectors.words[part[int(np.argmin(lengths))]]
            raise InputError(f"nothing is left of {word!r} without the direction; leave the word out")
        matrix[part] = block / lengths[:, None]
    return matrix


def equalise_pairs(matrix: Floats, vectors: Vectors, direction: Direction, pairs: Iterable[Pair]) -> None:
    """Set the two words of each pair to ν ± √(1 − |ν|²) · direction, in place.

    ν is the middle of the pair without its component along the direction: what the two share.
    """
    for pair in pairs:
        rows = vectors.rows(pair)
        ends = matrix[rows].astype(np.float64)
        along = ends @ direction.vector
        middle = ends.mean(axis=0)
        middle -= (middle @ direction.vector) * direction.vector
        reach = np.sqrt(max(0.0, 1 - middle @ middle)) * (1 if along[0] >= along[1] else -1)
        matrix[rows] = middle + reach * direction.vector, middle - reach * direction.vector


def _pairs_with_vectors(vectors: Vectors, equalise: Pairs | None) -> list[Pair]:
    """The pairs to equalise in every spelling of case that has vectors; no word is in two of them."""
    pair_of: dict[str, Pair] = {}
    missing = []
    for pair in MIRRORED if equalise is None else read_pairs(equalise):
        spellings = {(case(pair[0]), case(pair[1])) for case in (str, str.lower, str.title, str.upper)}
        present = sorted(p for p in spellings if None not in map(vectors.exact_row, p))
        if not present:
            missing.append("–".join(pair))
        for first, second in present:
            for word in (first, second):
                if first == second or set(pair_of.setdefault(word, (first, second))) != {first, second}:
                    raise InputError(f"the word {word!r} would be equalised twice; leave it in one pair")
    if missing and equalise is not None:
        names = ", ".join(missing)
        warnings.warn(
            f"pairs not equalised, because a word has no vector: {names}", InputWarning, stacklevel=3
        )
    return list(dict.fromkeys(pair_of.values()))


def _erase(
    vectors: Vectors, direction: Direction, specific: frozenset[str], held_out: Collection[str]
) -> tuple[Floats, int]:
    """Return all words without what predicts linearly how far ordinary ones lean, and its rank."""
    rows = ordinary_rows(vectors, specific.union(held_out))
    if len(rows) < 2 * vectors.dimension:
        raise InputError(
            f"leace needs {2 * vectors.dimension:,} ordinary words or more to learn from, not {len(rows):,}"
        )
    rows = rows[np.argsort(direction.of(vectors.matrix[rows]), kind="stable")]
    cuts = [max(1, round(share * len(rows))) for share in SHARES]
    edges = [*cuts, *(len(rows) - cut for cut in reversed(cuts))]
    classes = np.eye(len(edges) + 1)[np.searchsorted(edges, np.arange(len(rows)), side="right")]
    eraser = fit_eraser(vectors.matrix[rows].astype(np.float64), classes)
    return _changed(vectors, np.arange(len(vectors)), eraser.apply), eraser.rank


_FOLDS = 5
_RESTARTS = 10
_RIDGE = 1.0
_QUERIES = 500


@dataclass(frozen=True)
class Recoverability:
    """Shares of the most biased words whose former side is recovered: 1 all of them, 0.5 by chance.

    Attributes
    ----------
    clustering
        By 2-means, which does not know the sides. At least 0.5, since either cluster may be either side.
    linear, kernel
        By a linear and by an RBF-kernel least-squares classifier, cross-validated. Clearly below 0.5 is
        information too: the classes have been made equal on these very words.
    neighbours
        The share of the ten nearest neighbours that ordinary words have kept: the cost of debiasing.
    words
        How many words of each side were tested.
    """

    clustering: Interval
    linear: Interval
    kernel: Interval
    neighbours: Interval
    words: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def recoverability(
    before: Vectors,
    after: Vectors | Callable[[Collection[str]], Vectors],
    *,
    direction: Direction | None = None,
    words: int = 500,
    specific: Collection[str] | None = None,
    seed: int = 0,
) -> Recoverability:
    """Test how well the words that leaned most before can still be told apart afterwards.

    Parameters
    ----------
    before
        The vectors before debiasing; the words to test are those that lean most in them.
    after
        The vectors to test. For a method that learns from words (LEACE), a function that debiases without
        learning from the words it is given: ``lambda held_out: debiased(before, "leace",
        held_out=held_out)``. The words are tested in two halves, each held out in turn.
    direction
        The gender direction of ``before`` if not given.
    words
        How many words of each side to test.
    specific
        Words that are not tested; see :func:`~evenrank.vectors.specific_words`.

    Notes
    -----
    The intervals treat the words as a sample of words.
    """
    direction = find_direction(before) if direction is None else direction
    rows = ordinary_rows(before, specific_words(specific))
    if words < 2 * _FOLDS:
        raise InputError(f"test at least {2 * _FOLDS} words of each side, not {words}")
    if len(rows) < 2 * words:
        raise InputError(f"there are {len(rows):,} ordinary words, too few to test {words:,} of each side")
    rows = rows[np.argsort(direction.of(before.matrix[rows]), kind="stable")]
    tested = np.concatenate([rows[:words], rows[len(rows) - words :]])
    side = np.repeat([-1.0, 1.0], words)
    correct: dict[str, list[Bools]] = {"clustering": [], "linear": [], "kernel": []}
    kept: list[Doubles] = []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        held_out = [before.words[row] for row in tested[half]]
        debiased_vectors = after(held_out) if callable(after) else after
        if debiased_vectors.words != before.words:
            raise InputError(
                "the vectors before and after debiasing should have the same words in the same order"
            )
        x = debiased_vectors.matrix[tested[half]].astype(np.float64)
        correct["clustering"].append(_clustered(x, side[half], seed))
        for name, kernel in (("linear", np.inner), ("kernel", _rbf)):
            correct[name].append(_predicted(x, side[half], kernel, seed))
        kept.append(neighbours_kept(before, debiased_vectors, rows, seed=seed))
    shares = {name: mean_interval(np.concatenate(parts), seed=seed) for name, parts in correct.items()}
    return Recoverability(**shares, neighbours=mean_interval(np.mean(kept, axis=0), seed=seed), words=words)


def neighbours_kept(
    before: Vectors, after: Vectors, rows: Ints, *, count: int = 10, seed: int = 0
) -> Doubles:
    """The share of its nearest neighbours that each of 500 random words among these rows has kept."""
    drawn = np.random.default_rng(seed).choice(len(rows), min(_QUERIES, len(rows)), replace=False)

    def nearest(vectors: Vectors) -> Ints:
        pool = vectors.matrix[rows]
        cosines = pool[drawn] @ pool.T
        cosines[np.arange(len(drawn)), drawn] = -np.inf
        return np.argpartition(-cosines, count, axis=1)[:, :count]

    pairs = zip(nearest(before), nearest(after), strict=True)
    return np.array([len(np.intersect1d(old, new)) / count for old, new in pairs])


def _clustered(x: Doubles, side: Doubles, seed: int) -> Bools:
    """Whether 2-means, the best of ten starts, assigns each word to its side."""
    from scipy.cluster.vq import kmeans2

    def inertia(clusters: tuple[Doubles, Ints]) -> float:
        centres, labels = clusters
        return float(((x - centres[labels]) ** 2).sum())

    _, labels = min((kmeans2(x, 2, minit="++", seed=seed + n) for n in range(_RESTARTS)), key=inertia)
    correct = (2 * labels - 1) == side
    return correct if correct.mean() >= 0.5 else ~correct


def _predicted(x: Doubles, side: Doubles, kernel: Callable[[Doubles, Doubles], Doubles], seed: int) -> Bools:
    """Whether a least-squares classifier predicts the side of each word, cross-validated."""
    fold = np.random.default_rng(seed).permutation(len(x)) % _FOLDS
    correct = np.empty(len(x), bool)
    for number in range(_FOLDS):
        train, test = fold != number, fold == number
        scaled = (x - x[train].mean(axis=0)) / np.sqrt(x[train].var() * x.shape[1])
        y = side[train]
        gram = kernel(scaled[train], scaled[train]) + _RIDGE * np.eye(len(y))
        weights = np.linalg.solve(gram, y - y.mean())
        predicted = kernel(scaled[test], scaled[train]) @ weights + y.mean()
        correct[test] = np.where(predicted > 0, 1.0, -1.0) == side[test]
    return correct


def _rbf(a: Doubles, b: Doubles) -> Doubles:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.exp(-np.maximum(squared, 0))


class Grown(NamedTuple):
    """Gender-specific words, those of them that a classifier added, and its cross-validated F1."""

    words: frozenset[str]
    added: tuple[str, ...]
    f1: float


def grow_specific(vectors: Vectors, seed_words: frozenset[str], *, seed: int = 0) -> Grown:
    """Add words that look gender-specific to a linear SVM trained on the ones given.

    As in Bolukbasi et al. (2016): the frequent words are the examples, the given ones positive. The
    threshold is the one with the best F1 in five-fold cross-validation. Check ``f1`` and ``added`` before
    using them: small vectors give few words, and not all of them are right.
    """
    rows = np.append(
        ordinary_rows(vectors, seed_words),
        [row for row, word in enumerate(vectors.words[:FREQUENT]) if word in seed_words],
    ).astype(np.int64)
    y = np.array([1.0 if vectors.words[row] in seed_words else -1.0 for row in rows])
    if (y > 0).sum() < 2 * _FOLDS or (y < 0).sum() < 2 * _FOLDS:
        raise InputError("too few of the gender-specific words have vectors to learn more from them")
    x = np.column_stack([vectors.matrix[rows], np.ones(len(rows))]).astype(np.float64)
    fold = np.random.default_rng(seed).permutation(len(y)) % _FOLDS
    predicted = np.empty(len(y))
    for number in range(_FOLDS):
        test = fold == number
        predicted[test] = x[test] @ _svm(x[~test], y[~test])
    order = np.argsort(-predicted, kind="stable")
    true_positives = np.cumsum(y[order] > 0)
    f1 = 2 * true_positives / (np.arange(1, len(y) + 1) + true_positives[-1])
    best = int(np.argmax(f1))
    threshold = predicted[order[best]]
    scores = x @ _svm(x, y)
    added = tuple(
        vectors.words[rows[i]]
        for i in np.argsort(-scores, kind="stable")
        if y[i] < 0 and scores[i] >= threshold
    )
    return Grown(seed_words | set(added), added, float(f1[best]))


def _svm(x: Doubles, y: Doubles) -> Doubles:
    """Weights of a linear SVM with squared hinge loss and C = 1."""
    from scipy.optimize import minimize

    def slack(weights: Doubles) -> Doubles:
        return np.maximum(0, 1 - y * (x @ weights))

    def loss(weights: Doubles) -> float:
        return float(0.5 * weights @ weights + (slack(weights) ** 2).sum())

    def gradient(weights: Doubles) -> Doubles:
        return weights - 2 * (slack(weights) * y) @ x

    def hessian(weights: Doubles) -> Doubles:
        inner = x[slack(weights) > 0]
        return np.eye(len(weights)) + 2 * inner.T @ inner

    start = np.zeros(x.shape[1])
    weights: Doubles = minimize(loss, start, jac=gradient, hess=hessian, method="trust-exact").x
    return weights
