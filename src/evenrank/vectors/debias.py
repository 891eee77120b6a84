"""Debiasing: hard, strong, and by erasing what a linear model could find (LEACE).

How much gender is left? After debiasing, are the words that were most gendered still told apart?
The test of Gonen & Goldberg, "Lipstick on a Pig" (NAACL 2019).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.stats import Interval, mean_interval
from evenrank.vectors.gendered import Direction, Pairs, find_direction
from evenrank.vectors.space import Floats, Vectors, row_lengths
from evenrank.vectors.words import (
    MIRRORED,
    Pair,
    check_pairs,
    grow_specific,
    ordinary_places,
    read_pairs,
    specific_words,
)

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


Method = Literal["hard", "strong", "leace"]

SHARES = (0.01, 0.05, 0.15)
"""LEACE tells words apart by how far they lean: the outermost 1 %, 5 % and 15 % on either side."""

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
    """The same words with less of a direction in them; all vectors keep length 1.

    Parameters
    ----------
    vectors
        The word vectors.
    method
        ``hard`` (Bolukbasi et al. 2016): every word that is not gender-specific loses its component
        along the direction; the given pairs are set symmetrically about the rest, each word as far from
        every neutral word as its partner. ``strong`` (Prost et al. 2019): every word loses it.
        ``leace`` (Belrose et al. 2023): every word loses whatever lets a linear predictor tell how far
        words lean, which is several dimensions and not just one; nearest neighbours change more.
    direction
        What to remove; the gender direction of these vectors if not given.
    specific
        Gender-specific words, or a file with one on each line; the default set of
        :func:`~evenrank.vectors.words.specific_words` if not given. ``hard`` keeps their gender,
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
    along = find_direction(vectors) if direction is None else direction
    if len(along.vector) != vectors.dimension:
        raise InputError(
            f"a direction of {len(along.vector)} dimensions does not fit vectors of {vectors.dimension}"
        )
    facts: dict[str, Any] = {"method": method, "direction": along.to_dict()}
    if method == "strong":
        matrix = neutralise(vectors, along)
    else:
        kept = specific_words(specific)
        if grow:
            grown = grow_specific(vectors, kept)
            kept = grown.words
            facts |= {"grown": list(grown.added), "grown_f1": grown.f1}
        facts["specific"] = sorted(kept)
        if method == "hard":
            pairs = _mirrored(vectors, equalise)
            kept |= {word.lower() for pair in pairs for word in pair}
            matrix = neutralise(vectors, along, keep=kept)
            equalise_pairs(matrix, vectors, along, pairs)
            facts["equalised"] = len(pairs)
        else:
            matrix, facts["rank"] = _erase(vectors, along, kept, held_out)
    return Vectors.trusted(vectors.words, matrix, {**vectors.provenance, "debiased": facts})


def neutralise(vectors: Vectors, direction: Direction, *, keep: Collection[str] = ()) -> Floats:
    """The matrix without its component along the direction, but for words to keep (in lower case)."""
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


def _mirrored(vectors: Vectors, given: Pairs | None) -> list[Pair]:
    """The pairs that have vectors, in every spelling of case that has, no word in two of them."""
    if given is None:
        wanted = MIRRORED
    else:
        wanted = read_pairs(given) if isinstance(given, (str, os.PathLike)) else check_pairs(given)
    cases = (str, str.lower, str.title, str.upper)
    found: dict[Pair, None] = {}
    home: dict[str, Pair] = {}
    missing = []
    for pair in wanted:
        spelt = {(case(pair[0]), case(pair[1])) for case in cases}
        present = sorted(p for p in spelt if None not in map(vectors.exact_place, p))
        if not present:
            missing.append("–".join(pair))
        for first, second in present:
            for word in (first, second):
                if first == second or set(home.setdefault(word, (first, second))) != {first, second}:
                    raise InputError(f"the word {word!r} would be equalised twice; leave it in one pair")
            if (second, first) not in found:
                found[first, second] = None
    if missing and given is not None:
        warnings.warn(
            f"pairs not equalised, because a word has no vector: {', '.join(missing)}", stacklevel=3
        )
    return list(found)


def _erase(
    vectors: Vectors, direction: Direction, specific: frozenset[str], held_out: Collection[str]
) -> tuple[Floats, int]:
    """All words without what tells, linearly, how far the ordinary ones lean; and how much that is."""
    rows = ordinary_places(vectors, specific)
    if held_out:
        avoided = frozenset(held_out)
        rows = rows[[vectors.words[row] not in avoided for row in rows]]
    if len(rows) < 2 * vectors.dimension:
        raise InputError(
            f"leace needs {2 * vectors.dimension:,} ordinary words or more to learn from, not {len(rows):,}"
        )
    rows = rows[np.argsort(direction.of(vectors.matrix[rows]), kind="stable")]
    eraser = fit_eraser(vectors.matrix[rows].astype(np.float64), _classes(len(rows)))
    matrix = np.empty_like(vectors.matrix)
    for start in range(0, len(matrix), _ROWS):
        block = eraser.apply(vectors.matrix[start : start + _ROWS].astype(np.float64))
        matrix[start : start + _ROWS] = _unit(block, np.arange(start, start + len(block)), vectors)
    return matrix, eraser.rank


def _classes(count: int) -> npt.NDArray[np.float64]:
    """One-hot classes for examples sorted by how far they lean."""
    cuts = [max(1, round(share * count)) for share in SHARES]
    edges = [*cuts, *(count - cut for cut in reversed(cuts))]
    return np.eye(len(edges) + 1)[np.searchsorted(edges, np.arange(count), side="right")]


def _unit(
    block: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], vectors: Vectors
) -> npt.NDArray[np.float64]:
    lengths = row_lengths(block)
    if (lengths < 1e-6).any():
        word = vectors.words[rows[int(np.argmin(lengths))]]
        raise InputError(f"nothing is left of {word!r} without the direction; leave the word out")
    return block / lengths[:, None]


Correct = npt.NDArray[np.bool_]

_FOLDS = 5
_RESTARTS = 10
_RIDGE = 1.0
_QUERIES = 500


@dataclass(frozen=True)
class Recoverability:
    """Shares of the most biased words that are put on their former side: 1 all of them, 0.5 by chance.

    Attributes
    ----------
    clustering
        By 2-means, which is not told the sides. At least 0.5, since either cluster may be either side.
    linear, kernel
        By a linear and by an RBF-kernel least-squares classifier, each word by one that has not seen it.
        Clearly below 0.5 is information too: the classes have been made equal on these very words.
    neighbours
        The share of the ten nearest neighbours that ordinary words have kept: the price that was paid.
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
    """How well the words that leaned most before can still be told apart afterwards.

    Parameters
    ----------
    before
        The vectors as they were; they say which ordinary words leaned most.
    after
        The vectors to test. For a method that learns from words (LEACE), a function that makes them
        without having seen the words it is given: ``lambda held_out: debiased(before, "leace",
        held_out=held_out)``. The words are tested in two halves, each held out in turn.
    direction
        Along which words lean; the gender direction of ``before`` if not given.
    words
        How many of each side to test: the most biased ones.
    specific
        Words that are not ordinary; see :func:`~evenrank.vectors.words.specific_words`.

    Notes
    -----
    The intervals treat the words as a sample of words.
    """
    along = find_direction(before) if direction is None else direction
    rows = ordinary_places(before, specific_words(specific))
    if words < 2 * _FOLDS:
        raise InputError(f"test at least {2 * _FOLDS} words of each side, not {words}")
    if len(rows) < 2 * words:
        raise InputError(f"there are {len(rows):,} ordinary words, too few to test {words:,} of each side")
    rows = rows[np.argsort(along.of(before.matrix[rows]), kind="stable")]
    tested = np.concatenate([rows[:words], rows[len(rows) - words :]])
    side = np.repeat([-1.0, 1.0], words)
    found: dict[str, list[Correct]] = {"clustering": [], "linear": [], "kernel": []}
    kept: list[Doubles] = []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        names = [before.words[row] for row in tested[half]]
        space = after(names) if callable(after) else after
        if space.words != before.words:
            raise InputError(
                "the vectors before and after debiasing should have the same words in the same order"
            )
        x = space.matrix[tested[half]].astype(np.float64)
        found["clustering"].append(_clustered(x, side[half], seed))
        for name, kernel in (("linear", _linear), ("kernel", _rbf)):
            found[name].append(_predicted(x, side[half], kernel, seed))
        if callable(after) or not kept:
            kept.append(neighbours_kept(before, space, rows, seed=seed))
    shares = {name: mean_interval(np.concatenate(parts), seed=seed) for name, parts in found.items()}
    return Recoverability(**shares, neighbours=mean_interval(np.mean(kept, axis=0), seed=seed), words=words)


def neighbours_kept(
    before: Vectors, after: Vectors, rows: npt.NDArray[np.int64], *, count: int = 10, seed: int = 0
) -> Doubles:
    """For each of 500 random words of these rows, the share of its nearest among them that stayed."""
    drawn = np.random.default_rng(seed).choice(len(rows), min(_QUERIES, len(rows)), replace=False)

    def nearest(vectors: Vectors) -> npt.NDArray[np.int64]:
        pool = vectors.matrix[rows]
        cosines = pool[drawn] @ pool.T
        cosines[np.arange(len(drawn)), drawn] = -np.inf
        return np.argpartition(-cosines, count, axis=1)[:, :count]

    pairs = zip(nearest(before), nearest(after), strict=True)
    return np.array([len(np.intersect1d(old, new)) / count for old, new in pairs])


def _clustered(x: Doubles, side: Doubles, seed: int) -> Correct:
    """Whether 2-means, the best of ten starts, puts each word on its side."""
    from scipy.cluster.vq import kmeans2

    starts = (kmeans2(x, 2, minit="++", seed=seed + start) for start in range(_RESTARTS))
    _, labels = min(starts, key=lambda made: float(((x - made[0][made[1]]) ** 2).sum()))
    right = (2 * labels - 1) == side
    return right if right.mean() >= 0.5 else ~right


def _predicted(
    x: Doubles, side: Doubles, kernel: Callable[[Doubles, Doubles], Doubles], seed: int
) -> Correct:
    """Whether a least-squares classifier that has not seen the word finds its side."""
    fold = np.random.default_rng(seed).permutation(len(x)) % _FOLDS
    right = np.empty(len(x), bool)
    for number in range(_FOLDS):
        seen = fold != number
        scaled = (x - x[seen].mean(axis=0)) / np.sqrt(x[seen].var() * x.shape[1])
        y = side[seen]
        gram = kernel(scaled[seen], scaled[seen]) + _RIDGE * np.eye(len(y))
        weights = np.linalg.solve(gram, y - y.mean())
        guess = kernel(scaled[~seen], scaled[seen]) @ weights + y.mean()
        right[~seen] = np.where(guess > 0, 1.0, -1.0) == side[~seen]
    return right


def _linear(a: Doubles, b: Doubles) -> Doubles:
    return a @ b.T


def _rbf(a: Doubles, b: Doubles) -> Doubles:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.exp(-np.maximum(squared, 0))
