"""The words of texts as they stand there, unstemmed and in lower case, among those of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenrank.text.addresses import strings
from evenrank.text.tokenizer import tokens
from evenrank.vectors.texts import packed

Ints = npt.NDArray[np.int64]


class Bags(NamedTuple):
    """The words of n texts, by their place in the vocabulary: those of text i are bounds[i]:bounds[i + 1].

    Within a text they are in the order of the vocabulary, so that sums do not depend on the order of the
    words.
    """

    bounds: Ints
    words: npt.NDArray[np.int32]
    times: npt.NDArray[np.int32]
    tokens: Ints  # all words of each text, those outside the vocabulary too


class Surface:
    """Reads texts as sequences of surface words.

    Tokens are those of :func:`evenrank.text.tokenizer.tokens`: runs of letters and digits, folded to lower
    case. Words of the vocabulary that no text can yield (capitals, punctuation) are never found.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        from evenrank.vectors.reading import slots

        self._slots = slots(list(vocabulary))
        self._places = {word: place for place, word in enumerate(vocabulary)}

    def find(self, texts: pa.Array | Sequence[str]) -> Bags:
        """The words of each text that the vocabulary has, and how often each occurs."""
        from evenrank.rankers.words_kernel import collect

        array, data, ends = packed(strings(texts))
        room = int(ends[-1] - ends[0]) // 2 + len(array) + 1  # a word has a letter, and a space behind it
        keys = np.empty(room, np.int64)
        counts, total = np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
        last = collect(*self._slots, data, ends, keys, counts, total)
        foreign = np.flatnonzero(total < 0)
        if len(foreign):
            parts = np.split(keys[:last], np.cumsum(counts)[:-1])
            for row in foreign.tolist():
                parts[row], total[row] = self._find_unicode(array[row].as_py())
                counts[row] = len(parts[row])
            keys, last = np.concatenate(parts), int(counts.sum())
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        keys = keys[:last]
        return Bags(bounds, (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), total)

    def _find_unicode(self, text: str) -> tuple[Ints, int]:
        """Any text, by the definition: word and times packed into one number each; and its tokens."""
        found = tokens(text)
        count = Counter(place for word in found if (place := self._places.get(word)) is not None)
        return np.array(sorted(place << 32 | times for place, times in count.items()), np.int64), len(found)
