"""Debiasing of vectors: hard, strong and LEACE for words, with a test of how much gender is left; and the
gender projection, which is LEACE for the queries of a dense ranker.

The test is that of Gonen & Goldberg, "Lipstick on a Pig" (NAACL 2019): can the most gendered words still be
told apart after debiasing?
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from evenrank.data.files import packed, read_model, write_model
from evenrank.errors import InputError
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
from evenrank.vectors.space import Floats, Vectors, row_lengths

Doubles = npt.NDArray[np.float64]

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


Method = Literal["hard", "strong", "leace"]

SHARES = (0.01, 0.05, 0.15)
"""Classes of LEACE: the words that lean most, the outermost 1 %, 5 % and 15 % on either side."""

_ROWS = 1 << 14


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
    if method != "hard" and equalise is not None:
        raise InputError(f"only hard debiasing equalises pairs, {method} does not")
    if method == "strong" and (specific is not None or grow):
        raise InputError(
            "strong debiasing makes no difference between words: it takes no gender-specific ones"
        )
    if method != "leace" and held_out:
        raise InputError(f"only leace learns from words, {method} does not: there is nothing to hold out")
    direction = find_direction(vectors) if direction is None else direction
    if len(direction.vector) != vectors.dimension:
        raise InputError(
            f"a direction of {len(direction.vector)} dimensions does not fit vectors of {vectors.dimension}"
        )
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
    matrix = np.array(vectors.matrix)
    change = np.ones(len(matrix), bool)
    if keep:
        change[[row for row, word in enumerate(vectors.words) if word.lower() in keep]] = False
    for start in range(0, len(matrix), _ROWS):
        rows = start + np.flatnonzero(change[start : start + _ROWS])
        block = matrix[rows].astype(np.float64)
        block -= np.outer(block @ direction.vector, direction.vector)
        matrix[rows] = _unit(block, rows, vectors)
    return matrix


def equalise_pairs(matrix: Floats, vectors: Vectors, direction: Direction, pairs: Iterable[Pair]) -> None:
    """Set the two words of each pair to ν ± √(1 − |ν|²) · direction, in place.

    ν is the middle of the pair without its component along the direction: what the two share.
    """
    for pair in pairs:
        first, second = (vectors.exact_place(word) for word in pair)
        if first is None or second is None:
            raise InputError(f"there are no vectors for the pair {'–'.join(pair)}")
        ends = matrix[[first, second]].astype(np.float64)
        along = ends @ direction.vector
        middle = ends.mean(axis=0)
        middle -= (middle @ direction.vector) * direction.vector
        reach = np.sqrt(max(0.0, 1 - middle @ middle)) * (1 if along[0] >= along[1] else -1)
        matrix[first], matrix[second] = middle + reach * direction.vector, middle - reach * direction.vector


def _pairs_with_vectors(vectors: Vectors, equalise: Pairs | None) -> list[Pair]:
    """The pairs to equalise in every spelling of case that has vectors; no word is in two of them."""
    pairs: list[Pair] = []
    pair_of: dict[str, Pair] = {}
    missing = []
    for pair in MIRRORED if equalise is None else read_pairs(equalise):
        spellings = {(case(pair[0]), case(pair[1])) for case in (str, str.lower, str.title, str.upper)}
        present = sorted(p for p in spellings if None not in map(vectors.exact_place, p))
        if not present:
            missing.append("–".join(pair))
        for first, second in present:
            for word in (first, second):
                if first == second or set(pair_of.setdefault(word, (first, second))) != {first, second}:
                    raise InputError(f"the word {word!r} would be equalised twice; leave it in one pair")
            if not {(first, second), (second, first)} & set(pairs):
                pairs.append((first, second))
    if missing and equalise is not None:
        warnings.warn(
            f"pairs not equalised, because a word has no vector: {', '.join(missing)}", stacklevel=3
        )
    return pairs


def _erase(
    vectors: Vectors, direction: Direction, specific: frozenset[str], held_out: Collection[str]
) -> tuple[Floats, int]:
    """Return all words without what predicts linearly how far ordinary ones lean, and its rank."""
    rows = ordinary_rows(vectors, specific)
    if held_out:
        left_out = frozenset(held_out)
        rows = rows[[vectors.words[row] not in left_out for row in rows]]
    if len(rows) < 2 * vectors.dimension:
        raise InputError(
            f"leace needs {2 * vectors.dimension:,} ordinary words or more to learn from, not {len(rows):,}"
        )
    rows = rows[np.argsort(direction.of(vectors.matrix[rows]), kind="stable")]
    cuts = [max(1, round(share * len(rows))) for share in SHARES]
    edges = [*cuts, *(len(rows) - cut for cut in reversed(cuts))]
    classes = np.eye(len(edges) + 1)[np.searchsorted(edges, np.arange(len(rows)), side="right")]
    eraser = fit_eraser(vectors.matrix[rows].astype(np.float64), classes)
    matrix = np.empty_like(vectors.matrix)
    for start in range(0, len(matrix), _ROWS):
        block = eraser.apply(vectors.matrix[start : start + _ROWS].astype(np.float64))
        matrix[start : start + _ROWS] = _unit(block, np.arange(start, start + len(block)), vectors)
    return matrix, eraser.rank


def _unit(block: Doubles, rows: npt.NDArray[np.int64], vectors: Vectors) -> Doubles:
    lengths = row_lengths(block)
    if (lengths < 1e-6).any():
        word = vectors.words[rows[int(np.argmin(lengths))]]
        raise InputError(f"nothing is left of {word!r} without the direction; leave the word out")
    return block / lengths[:, None]


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
    correct: dict[str, list[npt.NDArray[np.bool_]]] = {"clustering": [], "linear": [], "kernel": []}
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
        for name, kernel in (("linear", _linear), ("kernel", _rbf)):
            correct[name].append(_predicted(x, side[half], kernel, seed))
        if callable(after) or not kept:
            kept.append(neighbours_kept(before, debiased_vectors, rows, seed=seed))
    shares = {name: mean_interval(np.concatenate(parts), seed=seed) for name, parts in correct.items()}
    return Recoverability(**shares, neighbours=mean_interval(np.mean(kept, axis=0), seed=seed), words=words)


def neighbours_kept(
    before: Vectors, after: Vectors, rows: npt.NDArray[np.int64], *, count: int = 10, seed: int = 0
) -> Doubles:
    """The share of its nearest neighbours that each of 500 random words among these rows has kept."""
    drawn = np.random.default_rng(seed).choice(len(rows), min(_QUERIES, len(rows)), replace=False)

    def nearest(vectors: Vectors) -> npt.NDArray[np.int64]:
        pool = vectors.matrix[rows]
        cosines = pool[drawn] @ pool.T
        cosines[np.arange(len(drawn)), drawn] = -np.inf
        return np.argpartition(-cosines, count, axis=1)[:, :count]

    pairs = zip(nearest(before), nearest(after), strict=True)
    return np.array([len(np.intersect1d(old, new)) / count for old, new in pairs])


def _clustered(x: Doubles, side: Doubles, seed: int) -> npt.NDArray[np.bool_]:
    """Whether 2-means, the best of ten starts, assigns each word to its side."""
    from scipy.cluster.vq import kmeans2

    def inertia(clusters: tuple[Doubles, npt.NDArray[np.int64]]) -> float:
        centres, labels = clusters
        return float(((x - centres[labels]) ** 2).sum())

    _, labels = min((kmeans2(x, 2, minit="++", seed=seed + n) for n in range(_RESTARTS)), key=inertia)
    correct = (2 * labels - 1) == side
    return correct if correct.mean() >= 0.5 else ~correct


def _predicted(
    x: Doubles, side: Doubles, kernel: Callable[[Doubles, Doubles], Doubles], seed: int
) -> npt.NDArray[np.bool_]:
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


def _linear(a: Doubles, b: Doubles) -> Doubles:
    return a @ b.T


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
    """Weights of a linear SVM with squared hinge loss and C = 1, by Newton's method in the primal.

    Chapelle (Neural Computation 2007): given which examples lie within the margin, the weights are a
    ridge regression on these; repeated until the same examples lie within it.
    """

    def loss(weights: Doubles) -> tuple[float, npt.NDArray[np.bool_]]:
        slack = np.maximum(0, 1 - y * (x @ weights))
        return float(0.5 * weights @ weights + slack @ slack), slack > 0

    weights = np.zeros(x.shape[1])
    value, in_margin = loss(weights)
    for _ in range(100):
        inner = x[in_margin]
        target = np.linalg.solve(np.eye(len(weights)) + 2 * inner.T @ inner, 2 * inner.T @ y[in_margin])
        step = 1.0
        while step > 1e-6 and loss(weights + step * (target - weights))[0] > value:
            step /= 2
        before = in_margin
        weights = weights + step * (target - weights)
        value, in_margin = loss(weights)
        if np.array_equal(before, in_margin) or step <= 1e-6:
            break
    return weights
