"""How much gender is left? After debiasing, are the words that were most gendered still told apart?

The test of Gonen & Goldberg, "Lipstick on a Pig" (NAACL 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.stats import Interval, mean_interval
from evenrank.vectors.direction import Direction, find_direction
from evenrank.vectors.space import Vectors
from evenrank.vectors.words import ordinary_places, specific_words

Doubles = npt.NDArray[np.float64]
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
