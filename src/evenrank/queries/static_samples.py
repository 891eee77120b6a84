"""What the static classifier learns from: its settings, and the samples that they ask for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.queries.features import PARTS
from evenrank.queries.samples import More, Samples, lexicon_samples, long_samples, plain_samples, swapped

_WORD_TIMES = 3  # neutral queries that each gendered word is put into


@dataclass(frozen=True)
class StaticSettings:
    """What the static classifier learns from; the defaults were chosen on an inner split.

    Attributes
    ----------
    parts
        Groups of features: words, pairs (of words), letters (n-grams of 2 to 5), contexts (patterns of
        kinds of words, as *who is GIVEN SURNAME*), names, lexicon, terms, genderedness.
    strength
        Of the evidence against the pull of all weights to zero.
    swaps
        Weight of counterfactual queries; 0 leaves them out.
    word_samples
        Weight of each word of the published lists as a query of its own and within neutral ones; 0 leaves
        them out. Few annotated queries hold such a word, so without them *shoes for men* is neutral.
    plain_samples
        Weight of the queries made of our own lists: jobs, hobbies, products, fields, places and works, which
        name no gender, and their counterparts for women and for men. 0 leaves them out: then *nurse* is
        female. Long texts have twice this weight.
    neutral_texts
        Weight of the texts of other collections that name nobody. Most queries of a log do not.
    neutral_share
        Of the queries that will be labelled, the share that is neutral: some 0.85 of a log, half of the
        annotated ones. None takes the shares of the queries that probabilities are calibrated on.
    vector_scale
        Of the vectors, times the root of their dimension.
    likeness
        By how much less neutral a query is that is like the given ones, and more neutral one that is like
        those of other collections: the score of the neutral class loses `likeness` (2 P − 1), P the
        probability that it is a given one. The given queries were pooled because their results lean, so half
        of them are gendered; of a log, few are. 0 leaves it out.
    guesses
        Weight of each query without a label, divided among the classes as an encoder of sentences guesses.
    """

    parts: tuple[str, ...] = tuple(PARTS)
    strength: float = 1.0
    swaps: float = 0.0
    word_samples: float = 0.6
    plain_samples: float = 0.2
    neutral_texts: float = 0.5
    neutral_share: float | None = None
    vector_scale: float = 0.3
    likeness: float = 1.55
    guesses: float = 0.5

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise InputError(f"unknown features {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        if self.neutral_share is not None and not 0 < self.neutral_share < 1:
            raise InputError(f"neutral_share is {self.neutral_share}; it must be between 0 and 1")


def gathered(
    settings: StaticSettings, given: Samples, also: Samples, more: More
) -> tuple[Samples, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The queries, and what is made of them or added, with the weight of each.

    Then which are given ones (1), which real ones of other collections (0), and which were made (−1).
    """
    parts = [(given, 1.0, 1), (also, 1.0, 0)]
    if settings.swaps:
        parts.append((swapped(*given), settings.swaps, -1))
    if settings.word_samples:
        parts.append((lexicon_samples(*given, times=_WORD_TIMES), settings.word_samples, -1))
    if settings.plain_samples:
        plain = plain_samples()
        neutral = [text for text, label in zip(*given, strict=True) if label == "neutral"]
        nobody = Samples(list(more.neutral), ["neutral"] * len(more.neutral))
        parts += [
            (plain, settings.plain_samples, -1),
            (long_samples(neutral, plain), 2 * settings.plain_samples, -1),
            (nobody, settings.neutral_texts, 0),
        ]
    texts = [text for found, *_ in parts for text in found.texts]
    labels = [label for found, *_ in parts for label in found.labels]
    weight = np.concatenate([np.full(len(found.texts), by) for found, by, _ in parts])
    real = np.concatenate([np.full(len(found.texts), side) for found, _, side in parts])
    return Samples(texts, labels), weight, real
