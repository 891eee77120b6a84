"""Means of groups whose labels are guesses: what they would be if the labels were right.

How often a guess errs is known from labelled data: P(guess | truth), counted in a confusion table. Of the
data at hand only guesses are known. Their shares are a mixture of the true ones, which is turned round to
estimate the true shares (J. J. Gart and A. A. Buck, American Journal of Epidemiology 83, 1966; W. J. Rogan
and B. Gladen, the same 107, 1978; by maximum likelihood, so that no share is below 0: M. Saerens, P. Latinne
and C. Decaestecker, Neural Computation 14, 2002). Bayes' rule then says how many of those guessed to be in a
group are; and since the mean of the guessed group is a mixture too,

    mean(y | guess g) = Σ_c P(truth c | guess g) · mean(y | truth c),

the means of the true groups follow by least squares over all guesses (D. J. Hopkins and G. King, American
Journal of Political Science 54, 2010, for shares; J. P. Buonaccorsi, Measurement Error, 2010, chapter 3).

Two things are assumed. Errors are as frequent here as in the labelled data, group by group. And within a true
group, errors do not depend on the value: `error_tests` looks at that where true labels and values are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import InputError
from evenrank.stats.intervals import CELLS, Floats, Interval, finite, interval_of
from evenrank.stats.tests import Comparison, holm, permutation

FEWEST = 5
"""Labelled items of a true group, and estimated items of it, below which nothing is said of it."""
SEPARATION = 0.1
"""Smallest singular value of P(guess | truth) that is turned round; 0 where guesses say nothing."""
_STEPS, _SETTLED, _FARTHEST = 300, 1e-10, 100.0
_GONE = 0.5  # items of a group, estimated, below which a resample has none of it


@dataclass(frozen=True, eq=False)
class Confusion:
    """How guesses err: for each true group, how many labelled items got which guess."""

    truths: tuple[str, ...]
    guesses: tuple[str, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Mapping[str, Mapping[str, int]]) -> Confusion:
        """From ``{truth: {guess: count}}``; groups in their order."""
        truths = tuple(counts)
        guesses = tuple(dict.fromkeys(guess for row in counts.values() for guess in row))
        table = np.array([[counts[t].get(g, 0) for g in guesses] for t in truths], np.int64)
        if len(truths) < 2 or len(guesses) < 2:
            raise InputError("a confusion table needs two true groups and two guesses at least")
        if (table < 0).any():
            raise InputError("a confusion table holds counts; found one below 0")
        return cls(truths, guesses, table)

    @property
    def separation(self) -> float:
        """The smallest singular value of P(guess | truth): 1 without errors, 0 where there is no inverse."""
        sizes = self.counts.sum(axis=1, keepdims=True)
        if not sizes.all():
            return 0.0
        return float(np.linalg.svd(self.counts / sizes, compute_uv=False)[-1])

    def problem(self) -> str | None:
        """Why it cannot be inverted, if so."""
        for truth, size in zip(self.truths, self.counts.sum(axis=1).tolist(), strict=True):
            if size < FEWEST:
                known = "1 labelled item is" if size == 1 else f"{size} labelled items are"
                return f"only {known} {truth}; at least {FEWEST} are needed"
        if len(self.guesses) < len(self.truths):
            return f"{len(self.guesses)} guesses cannot tell {len(self.truths)} groups apart"
        if self.separation < SEPARATION:
            return (
                "the guesses say too little about the true groups to be inverted: the smallest singular "
                f"value of P(guess | truth) is {self.separation:.3f}, below {SEPARATION:g}"
            )
        return None

    def among(self, guesses: Sequence[str]) -> Confusion:
        """How items err that got one of these guesses: for data from which others were left out."""
        kept = [at for at, guess in enumerate(self.guesses) if guess in set(guesses)]
        return Confusion(self.truths, tuple(self.guesses[at] for at in kept), self.counts[:, kept])

    def to_dict(self) -> dict[str, dict[str, int]]:
        rows = zip(self.truths, self.counts.tolist(), strict=True)
        return {truth: dict(zip(self.guesses, row, strict=True)) for truth, row in rows}


class Adjusted(NamedTuple):
    """What is known of the true groups: shares, means, and differences between groups (first − second)."""

    shares: dict[str, Interval]
    means: dict[str, Interval]
    differences: dict[tuple[str, str], Interval]
    problem: str | None


def adjusted_means(
    values: ArrayLike,
    guesses: Sequence[str],
    confusion: Confusion,
    *,
    pairs: Sequence[tuple[str, str]] = (),
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Adjusted:
    """Means of the true groups, from values and guessed groups.

    Both samples are resampled, the labelled items within their true groups and the items at hand, so that
    intervals hold the error of the confusion table too. They are percentile intervals. A group of which
    fewer than five items are estimated has no mean; and where one resample in twenty has none either, no
    interval.
    """
    y = finite(values, "values")
    if len(y) != len(guesses):
        raise InputError(f"{len(y)} values and {len(guesses)} labels; there must be one for each")
    known = {guess: code for code, guess in enumerate(confusion.guesses)}
    if unknown := sorted(set(guesses) - set(known)):
        raise InputError(f"the confusion table has no label {unknown[0]!r}; it has {', '.join(known)}")
    nothing = Interval(None, None, None)
    empty = dict.fromkeys(confusion.truths, nothing)
    problem = confusion.problem()
    if problem is None and len(y) < 2:
        problem = "fewer than two values"
    if problem is not None:
        return Adjusted(empty, empty, dict.fromkeys(pairs, nothing), problem)
    codes = np.array([known[guess] for guess in guesses])
    order = np.lexsort((codes, y))
    y, codes = y[order], codes[order]
    size = len(known)
    sizes, totals = _summed(codes[None], y[None], size)
    rates = confusion.counts / confusion.counts.sum(axis=1, keepdims=True)
    shares, means = _solved(rates[None], sizes, totals)

    rng = np.random.default_rng(seed)
    drawn = _resampled_rates(confusion.counts, resamples, rng)
    found = []
    step = max(1, CELLS // len(y))
    for start in range(0, resamples, step):
        rows = drawn[start : start + step]
        picked = rng.integers(0, len(y), (len(rows), len(y)))
        found.append(_solved(rows, *_summed(codes[picked], y[picked], size)))
    many_shares = np.concatenate([each[0] for each in found])
    many_means = np.concatenate([each[1] for each in found])

    def spoken(value: float, many: Floats) -> Interval:
        return interval_of(value, many, len(y), confidence)

    few = shares[0] * len(y) < FEWEST
    where = {truth: at for at, truth in enumerate(confusion.truths)}
    return Adjusted(
        {t: spoken(shares[0, c], many_shares[:, c]) for t, c in where.items()},
        {t: nothing if few[c] else spoken(means[0, c], many_means[:, c]) for t, c in where.items()},
        {
            (a, b): nothing
            if few[where[a]] or few[where[b]]
            else spoken(
                means[0, where[a]] - means[0, where[b]], many_means[:, where[a]] - many_means[:, where[b]]
            )
            for a, b in pairs
        },
        None,
    )


def adjusted_shares(
    values: Mapping[str, ArrayLike],
    confusions: Mapping[str, Confusion],
    *,
    pair: tuple[str, str],
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Adjusted:
    """Weighted shares of documents that show a group, if whether they do is a guess: Rogan and Gladen's.

    ``values`` has for each group the share within each query's list; ``confusions`` for each group how often
    documents with it (``yes``) and without it (``no``) are guessed to have it. The true share is
    (seen − P(yes | no)) / (P(yes | yes) − P(yes | no)), which is linear, so that it holds for means over
    ranks and queries alike. Queries and labelled documents are resampled.
    """
    nothing = Interval(None, None, None)
    seen = {group: finite(values[group], "values") for group in pair}
    n = min(len(each) for each in seen.values())
    empty = dict.fromkeys(pair, nothing)
    problem = next((each for each in (_of_group(g, confusions[g]) for g in pair) if each), None)
    if problem is None and n < 2:
        problem = "fewer than two values"
    if problem is not None:
        return Adjusted(empty, empty, {pair: nothing}, problem)
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, n, (resamples, n))
    shares, many = {}, {}
    for group, each in seen.items():
        table = confusions[group]
        ordered = table.counts[[table.truths.index("yes"), table.truths.index("no")]]
        yes = table.guesses.index("yes")
        hits, false = (ordered / ordered.sum(axis=1, keepdims=True))[:, yes].tolist()
        shares[group] = (math.fsum(each) / n - false) / (hits - false)
        drawn = _resampled_rates(ordered, resamples, rng)[:, :, yes]
        with np.errstate(invalid="ignore", divide="ignore"):
            many[group] = (each[picked].mean(axis=1) - drawn[:, 1]) / (drawn[:, 0] - drawn[:, 1])
    first, second = pair
    means = {g: interval_of(shares[g], many[g], n, confidence) for g in pair}
    gap = interval_of(shares[first] - shares[second], many[first] - many[second], n, confidence)
    return Adjusted({}, means, {pair: gap}, None)


def _of_group(group: str, confusion: Confusion) -> str | None:
    """Why the table of one group cannot be inverted, if so."""
    sizes = dict(zip(confusion.truths, confusion.counts.sum(axis=1).tolist(), strict=True))
    for truth, says in (("yes", "show"), ("no", "do not show")):
        if sizes.get(truth, 0) < FEWEST:
            return f"fewer than {FEWEST} labelled documents {says} the group {group}"
    return confusion.problem()


def error_tests(
    values: ArrayLike, truths: Sequence[str], guesses: Sequence[str], *, seed: int = 0
) -> dict[str, Comparison]:
    """Do errors depend on the value? For each true group: items guessed wrongly against rightly guessed ones.

    p is that of a permutation test, corrected over the groups (Holm). A large p is no proof that errors do
    not depend on values. A group without two of each has no entry.
    """
    y = finite(values, "values")
    true, guess = np.asarray(truths), np.asarray(guesses)
    found: dict[str, Comparison] = {}
    for group in dict.fromkeys(truths):
        wrong, right = y[(true == group) & (guess != group)], y[(true == group) & (guess == group)]
        if min(len(wrong), len(right)) >= 2:
            found[group] = permutation(wrong, right, seed=seed)
    corrected = holm([one.p for one in found.values()])
    return {
        group: one.__class__(**{**vars(one), "p": p})
        for (group, one), p in zip(found.items(), corrected, strict=True)
    }


def _resampled_rates(counts: NDArray[np.int64], resamples: int, rng: np.random.Generator) -> Floats:
    """P(guess | truth) of labelled items drawn anew within each true group."""
    drawn = [rng.multinomial(row.sum(), row / row.sum(), resamples) for row in counts]
    return np.stack([each / each.sum(axis=1, keepdims=True) for each in drawn], axis=1)


def _summed(codes: NDArray[np.int64], y: Floats, size: int) -> tuple[Floats, Floats]:
    """For each row and guess: how many items, and the sum of their values."""
    chosen = [codes == code for code in range(size)]
    sizes = np.stack([each.sum(axis=-1) for each in chosen], axis=-1).astype(np.float64)
    return sizes, np.stack([np.where(each, y, 0.0).sum(axis=-1) for each in chosen], axis=-1)


def _solved(rates: Floats, sizes: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Shares and means of the true groups, row by row; NaN where the means cannot be solved for."""
    shares = _shares(rates, sizes)
    gone = shares * sizes.sum(axis=-1, keepdims=True) < _GONE
    joint = np.where(gone, 0.0, shares)[:, :, None] * rates
    guessed = joint.sum(axis=1, keepdims=True)
    posterior = joint / np.where(guessed > 0, guessed, 1.0)  # truth by guess
    normal = ((posterior[:, :, None] * posterior[:, None]) * sizes[:, None, None]).sum(axis=-1)
    normal += gone[:, :, None] * np.eye(shares.shape[1])
    right = (posterior * totals[:, None]).sum(axis=-1)
    means = np.full(shares.shape, np.nan)
    good = np.linalg.cond(normal) < 1e8
    means[good] = np.linalg.solve(normal[good], right[good][..., None])[..., 0]
    means[gone] = np.nan
    return shares, means


def _shares(rates: Floats, sizes: Floats) -> Floats:
    """The true shares that make the guesses most likely: expectation maximisation, row by row.

    Two steps show the way, a third goes as far as they promise, where that is more likely still
    (R. Varadhan and C. Roland, Scandinavian Journal of Statistics 35, 2008).
    """
    observed = (sizes / sizes.sum(axis=-1, keepdims=True))[:, None]

    def step(shares: Floats) -> Floats:
        joint = shares[:, :, None] * rates
        guessed = joint.sum(axis=1, keepdims=True)
        moved = (joint / np.where(guessed > 0, guessed, 1.0) * observed).sum(axis=-1)
        return np.asarray(moved / moved.sum(axis=-1, keepdims=True))

    def likelihood(shares: Floats) -> Floats:
        guessed = (shares[:, :, None] * rates).sum(axis=1)
        return np.asarray((observed[:, 0] * np.log(np.maximum(guessed, 1e-300))).sum(axis=-1))

    shares = np.full((len(sizes), rates.shape[1]), 1 / rates.shape[1])
    for _ in range(_STEPS):
        first = step(shares)
        second = step(first)
        if float(np.abs(second - first).max()) < _SETTLED:
            return second
        change, bend = first - shares, second - 2 * first + shares
        bent = np.maximum((bend**2).sum(axis=-1), 1e-300)
        length = np.minimum(np.sqrt((change**2).sum(axis=-1) / bent), _FARTHEST)[:, None]
        far = np.maximum(shares + 2 * length * change + length**2 * bend, 0.0)
        far /= far.sum(axis=-1, keepdims=True)
        near = (far >= second / 10).all(axis=-1)  # a share near 0 would hardly come back
        better = near & (likelihood(far) > likelihood(second))
        shares = step(np.where(better[:, None], far, second))
    return shares
