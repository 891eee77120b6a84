"""Genderedness of texts: the mean of g(w) over the words of a query, or of a document for a query.

A. Fabris, A. Purpura, G. Silvello, G. A. Susto: Gender Stereotype Reinforcement: Measuring the Gender Bias
Conveyed by Ranking Algorithms. Information Processing & Management 57(6), 2020. Definitions 3.5 and 3.6.

Which words count is part of the measure: tokens of at least two letters, without digits, that have a value
and are no stop words. The gendered stop words (she, his, …) are kept, as in the released code; without them
direct stereotypes vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenrank.text.matcher import Hits, Vocabulary, utf8
from evenrank.text.tokens import tokens
from evenrank.vectors.gendered import Genderedness, Pairs, genderedness
from evenrank.vectors.space import Doubles, Ints

# Stop words that name a gender, and so are not stopped.
GENDERED_STOP_WORDS = frozenset("mrs ms she her hers herself mr he his himself him".split())
STEMMER = "english"
StopList = Literal["glasgow", "indri"]
_MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@cache
def stop_words(name: StopList = "glasgow") -> frozenset[str]:
    """The 318 stop words of the Glasgow Information Retrieval Group, or the 418 of Indri."""
    return _word_list(f"stop-words-{name}")


def _word_list(name: str) -> frozenset[str]:
    text = (resources.files("evenrank.vectors") / "data" / f"{name}.txt").read_text("utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


COMMON_WORDS = _word_list("common-words")
"""Given names that are also ordinary words or places: in text without case they would swamp the counts."""


class GenderedTexts:
    """Reads texts as g does: which words they hold, and how far each leans.

    Parameters
    ----------
    source
        Anything :func:`evenrank.vectors.genderedness` takes; the shipped table if nothing is given.
    pairs
        Other pairs of words for another direction.
    stopped
        Which stop words are left out, the gendered ones excepted: ``glasgow``, or ``indri`` as in the
        released code.
    """

    def __init__(
        self, source: Any = None, *, pairs: Pairs | None = None, stopped: StopList = "glasgow"
    ) -> None:
        self.genderedness: Genderedness = genderedness(source, pairs=pairs)
        self.other_pairs = pairs is not None
        self.stopped: StopList = stopped
        left_out = stop_words(stopped) - GENDERED_STOP_WORDS
        kept = [
            (row, word)
            for row, word in enumerate(self.genderedness.words)
            if len(word) > 1 and word not in left_out and _is_running_word(word)
        ]
        self.vocabulary = [word for _, word in kept]
        self.values = self.genderedness.values[[row for row, _ in kept]].astype(np.float64)
        stems = _stems(self.vocabulary)
        self._stem_rows = {stem: row for row, stem in enumerate(dict.fromkeys(stems))}
        self._stem_of = np.array([self._stem_rows[stem] for stem in stems], np.int64)
        self._stopping: dict[StopList, GenderedTexts] = {}
        self._finder = Vocabulary(self.vocabulary)

    @property
    def provenance(self) -> dict[str, Any]:
        """What decides which words count and how much: the table, the stop list, the stemmer."""
        return {
            "words": len(self.genderedness),
            "source": dict(self.genderedness.provenance),
            "stop words": f"{self.stopped.capitalize()}, {len(stop_words(self.stopped))}, without "
            f"{len(GENDERED_STOP_WORDS)} gendered ones",
            "stemmer": f"Snowball {STEMMER}",
        }

    def stopping(self, stopped: StopList) -> GenderedTexts:
        """The same reader with these stop words; made once."""
        if stopped == self.stopped:
            return self
        if stopped not in self._stopping:
            built = GenderedTexts(self.genderedness, stopped=stopped)
            built.other_pairs = self.other_pairs
            self._stopping[stopped] = built
        return self._stopping[stopped]

    def find(self, texts: pa.Array | Sequence[str]) -> Hits:
        """The words with a value in each text, as places in the vocabulary, and how often each occurs."""
        return self._finder.find(texts)

    def of_texts(self, texts: pa.Array | Sequence[str]) -> Doubles:
        """g of each text: the mean over its words, each occurrence counted; NaN if no word has a value."""
        result = self.find(texts)
        sizes = np.bincount(result.rows, result.times, minlength=len(result.tokens))
        sums = np.bincount(result.rows, self.values[result.entries] * result.times, minlength=len(sizes))
        return np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0)

    def of_pairs(self, queries: Sequence[str], hits: Hits, query_rows: Ints, doc_rows: Ints) -> Doubles:
        """g_q(d) for pairs of a query and a document: the mean without the words of the query.

        A word of the document is one of the query's if their stems are equal. `hits` is what
        :meth:`find` found in the documents. NaN where no word is left.
        """
        means: Doubles = _pair_means()(
            *self._query_stems(queries),
            query_rows.astype(np.int64),
            doc_rows.astype(np.int64),
            hits.bounds,
            self._stem_of[hits.entries],
            hits.times,
            self.values[hits.entries] * hits.times,
            len(self._stem_rows),
        )
        return means

    def word_shares(
        self,
        queries: Sequence[str],
        hits: Hits,
        query_rows: Ints,
        doc_rows: Ints,
        scale: Doubles,
        centre: float,
    ) -> Doubles:
        """What each word of the vocabulary adds to Σ scale · (g_q(d) − centre) over the pairs."""
        shares = np.zeros(len(self.values))
        stems, sizes = self._stem_of[hits.entries], np.diff(hits.bounds)
        starts = np.flatnonzero(np.diff(query_rows, prepend=-1))
        bounds, query_stems = self._query_stems([queries[row] for row in query_rows[starts].tolist()])
        marks = np.split(query_stems, bounds[1:-1])
        for first, last, marked in zip(starts, [*starts[1:], len(query_rows)], marks, strict=False):
            docs = doc_rows[first:last]
            pair = np.repeat(np.arange(len(docs)), sizes[docs])
            place = np.concatenate([np.arange(*hits.bounds[[doc, doc + 1]]) for doc in docs])
            kept = ~np.isin(stems[place], marked)
            pair, place = pair[kept], place[kept]
            times, words = hits.times[place], hits.entries[place]
            values = scale[first:last][pair] * (self.values[words] - centre) * times
            shares += np.bincount(words, values / np.bincount(pair, times)[pair], len(shares))
        return shares

    def _query_stems(self, queries: Sequence[str]) -> tuple[Ints, Ints]:
        """Bounds and stems: stems[bounds[i]:bounds[i + 1]] are those of query i that the vocabulary has."""
        words = [tokens(query) for query in queries]
        every = list(chain.from_iterable(words))
        unique = [word for word in dict.fromkeys(every) if len(word) > 1]
        row_of = {w: self._stem_rows.get(stem, -1) for w, stem in zip(unique, _stems(unique), strict=True)}
        stems = np.array([row_of.get(word, -1) for word in every], np.int64)
        counts = np.concatenate([[0], np.cumsum(stems >= 0)])
        return counts[np.cumsum([0, *map(len, words)])], stems[stems >= 0]


@cache
def _pair_means() -> Any:
    from numba import njit

    @njit(nogil=True, cache=True)
    def pair_means(bounds, query_stems, query_of, doc_of, doc_bounds, stems, times, sums, all_stems):  # type: ignore[no-untyped-def]
        """Mean value of the words of each pair's document that share no stem with the pair's query.

        The stems of query q are query_stems[bounds[q]:bounds[q + 1]]; the words of document d lie at
        doc_bounds[d]:doc_bounds[d + 1]: their stems, how often each occurs, and its value times that.
        """
        means = np.full(len(query_of), np.nan)
        owner = np.full(all_stems, -1, np.int64)  # the query that a stem was last marked for
        current = -1
        for pair in range(len(query_of)):
            query, doc = query_of[pair], doc_of[pair]
            if query != current:
                current = query
                for i in range(bounds[query], bounds[query + 1]):
                    owner[query_stems[i]] = query
            total, count = 0.0, 0
            for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
                if owner[stems[i]] != query:
                    total += sums[i]
                    count += times[i]
            if count:
                means[pair] = total / count
        return means

    return pair_means


@lru_cache(maxsize=1)
def _shipped() -> GenderedTexts:
    return GenderedTexts()


def gendered_texts(source: Any = None, *, pairs: Pairs | None = None) -> GenderedTexts:
    """A reader of texts; the one with the shipped table is made once."""
    if isinstance(source, GenderedTexts):
        return source
    return _shipped() if source is None and pairs is None else GenderedTexts(source, pairs=pairs)


def hashes(texts: pa.Array | Sequence[str], seed: int = 0) -> npt.NDArray[np.uint64]:
    """A number for each text that looks random; the same for the same text and seed, everywhere."""
    data, bounds = utf8(texts)
    sizes = np.diff(bounds)
    keys = np.full(len(sizes), _MIX ^ np.uint64(seed)) * _MIX
    for i in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > i)
        keys[rows] = (keys[rows] ^ keys[rows] >> _HALF ^ data[bounds[rows] + i]) * _MIX
    keys = (keys ^ keys >> _HALF ^ sizes.astype(np.uint64)) * _MIX
    return keys ^ keys >> _HALF


def _is_running_word(word: str) -> bool:
    """Could the tokenizer make this word out of running text, and has it no digit?"""
    if word.isascii():
        return word.isalpha() and word.islower()
    return not any(c.isnumeric() for c in word) and tokens(word) == [word]


def _stems(words: list[str]) -> list[str]:
    import Stemmer

    return list(Stemmer.Stemmer(STEMMER).stemWords(words))
