"""Genderedness of texts: the mean of g(w) over the words of a query, or of a document for a query.

A. Fabris, A. Purpura, G. Silvello, G. A. Susto: Gender Stereotype Reinforcement: Measuring the Gender Bias
Conveyed by Ranking Algorithms. Information Processing & Management 57(6), 2020. Definitions 3.5 and 3.6.

Which words count is part of the measure: tokens of at least two letters, without digits, that have a value
and are no stop words. The gendered stop words (she, his, …) are kept, as in the released code; without them
direct stereotypes vanish.

Here too: given names that are ordinary words, and tell no gender in text without capital letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenrank.text.matcher import Hits, Vocabulary, strings, utf8
from evenrank.text.tokens import tokens
from evenrank.vectors.gendered import Genderedness, Pairs, genderedness

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Stop words that name a gender, and so are not stopped.
GENDERED_STOP_WORDS = frozenset("mrs ms she her hers herself mr he his himself him".split())
STEMMER = "english"
StopList = Literal["glasgow", "indri"]
STOP_LISTS: dict[StopList, str] = {"glasgow": "stop-words.txt", "indri": "stop-words-indri.txt"}

_MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_ASCII_WORDS = re.compile(r"[a-z0-9]{2,}")


@lru_cache(maxsize=2)
def stop_words(name: StopList = "glasgow") -> frozenset[str]:
    """The 318 stop words of the Glasgow Information Retrieval Group, or the 418 of Indri."""
    file = resources.files("evenrank.vectors") / "data" / STOP_LISTS[name]
    return frozenset(line for line in file.read_text("utf-8").splitlines() if not line.startswith("#"))


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
            (place, word)
            for place, word in enumerate(self.genderedness.words.to_pylist())
            if len(word) > 1 and word not in left_out and _is_running_word(word)
        ]
        self.vocabulary = [word for _, word in kept]
        self.values = self.genderedness.values[[place for place, _ in kept]].astype(np.float64)
        stems = _stems(self.vocabulary)
        self._stem_places = {stem: place for place, stem in enumerate(dict.fromkeys(stems))}
        self._stem_of = np.array([self._stem_places[stem] for stem in stems], np.int64)
        self._stem_of_word = dict(zip(self.vocabulary, self._stem_of.tolist(), strict=True))
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

    def of_pairs(self, queries: Sequence[str], found: Hits, query_rows: Ints, doc_rows: Ints) -> Doubles:
        """g_q(d) for pairs of a query and a document: the mean without the words of the query.

        A word of the document is one of the query's if their stems are equal. `found` is what
        :meth:`find` found in the documents; the pairs of one query must stand together.
        """
        from evenrank.vectors.lookup import pair_means

        means: Doubles = pair_means(*self._prepared(queries, found, query_rows, doc_rows))
        return means

    def word_shares(
        self,
        queries: Sequence[str],
        found: Hits,
        query_rows: Ints,
        doc_rows: Ints,
        scale: Doubles,
        centre: float,
    ) -> Doubles:
        """What each word of the vocabulary adds to Σ scale · (g_q(d) − centre) over the pairs."""
        shares = np.zeros(len(self.values))
        stems, sizes = self._stem_of[found.entries], np.diff(found.bounds)
        starts = np.flatnonzero(np.diff(query_rows, prepend=-1))
        bounds, query_stems = self._query_stems([queries[row] for row in query_rows[starts].tolist()])
        marks = np.split(query_stems, bounds[1:-1])
        for first, last, marked in zip(starts, [*starts[1:], len(query_rows)], marks, strict=False):
            docs = doc_rows[first:last]
            pair = np.repeat(np.arange(len(docs)), sizes[docs])
            place = np.concatenate([np.arange(*found.bounds[[doc, doc + 1]]) for doc in docs])
            kept = ~np.isin(stems[place], marked)
            pair, place = pair[kept], place[kept]
            times, words = found.times[place], found.entries[place]
            values = scale[first:last][pair] * (self.values[words] - centre) * times
            shares += np.bincount(words, values / np.bincount(pair, times)[pair], len(shares))
        return shares

    def _prepared(
        self, queries: Sequence[str], found: Hits, query_rows: Ints, doc_rows: Ints
    ) -> tuple[Any, ...]:
        """What the loops over pairs take."""
        first = np.ones(len(query_rows), bool)
        first[1:] = query_rows[1:] != query_rows[:-1]
        bounds, marked = self._query_stems([queries[row] for row in query_rows[first].tolist()])
        pairs = (bounds, marked, np.cumsum(first) - 1, doc_rows.astype(np.int64, copy=False))
        sums = self.values[found.entries] * found.times
        word_stems = self._stem_of[found.entries]
        return (*pairs, found.bounds, found.entries, found.times, sums, word_stems, len(self._stem_places))

    def _query_stems(self, queries: Sequence[str]) -> tuple[Ints, Ints]:
        """The stems of the queries' words that any word of the vocabulary shares.

        Those of query i are the second array's from the i-th number of the first on.
        """
        words = [
            _ASCII_WORDS.findall(query.lower())
            if query.isascii()
            else [word for word in tokens(query) if len(word) > 1]
            for query in queries
        ]
        every = list(chain.from_iterable(words))
        place = {word: self._stem_of_word.get(word, -1) for word in set(every)}
        unknown = [word for word, known in place.items() if known < 0]
        place |= {
            word: self._stem_places.get(stem, -1) for word, stem in zip(unknown, _stems(unknown), strict=True)
        }
        stems = np.array([place[word] for word in every], np.int64)
        shared = stems >= 0
        ends = np.cumsum([0, *map(len, words)])
        return np.concatenate([[0], np.cumsum(shared)])[ends], stems[shared]


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
    data, bounds = utf8(strings(texts))
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


# Names that are also ordinary words or places: in text without case they would swamp the counts.
COMMON_WORDS = frozenset(
    """
    ace amber angel april art ash aspen august autumn bailey barb baron basil bear beau bee belle
    berlin berry bill birch blaze bliss blossom blue blythe bonny booker brandy breeze brook buck
    bud buddy buffy buster cam cameo candy carol carter cash cat cedar celeste chad chance chancey
    chandler charity chase chastity cherry chin china chip christian christmas chuck cinnamon city
    clay cliff clover coal columbus constance cook cooper coral cordell cotton courtney crystal
    daily daisy dale dallas darling dawn dean deed denim denver desire destiny dewey diamond dick
    dot dove drew duke dusk dusty eagle earl early easter ebony echo eden elder else ember emerald
    era essence eve evening ever faith fallen fate faun fawn fay fern florence forest forrest foster
    fox frank freeman gale garland garnet garrison gay gem gene genesis genius german ginger glen
    glory golden good grace grady grant green grove guy hall happy harley harmony harp harvest haven
    hazel heart heath heather heaven herb hero hollow holly honey honor hope houston hunter hyacinth
    iris isle israel ivory ivy jack jade jam jasmine jasper jay jersey jesus jewel job joy july june
    junior justice kale karma king kitty lace lady lake lance land lane lark latin laurel lavender
    leaf lee leisure les liberty lily lincoln linen loan long lord lot lotus love low loyal loyalty
    luck lucky magnolia major man mandarin many maple march margarita marina marine mariner mark
    mars marsh mason mat may mead meadow melody mercedes mercy merit merry mike mil miles minor
    minty miracle misty modesty monday monroe moon mustang my myrtle nickel noble noel north ocean
    olive opal oral orange orchid osage own oz page pansy paris parker passion pat patience pax
    peace peach pearl peg penny pet petal petunia pierce pilot pleasant poppy porter precious price
    prince princess prudence purple queen quest rain raven ray rebel red reed reef regal regent
    reign rich river robin rock rocky rod roman romeo rose rosemary rosy royal ruby rue russet rusty
    rye sable sage salina sandy santa santiago savanna savannah scarlet season see senna serenity
    shad shade shadow shan shell shelter sherry shiloh sierra silver sky slate sol soldier sonny
    sparkle spring star sterling stone storm stormy sugar summer sun sunday sunny sunshine sylvan
    tad talon tanner tawny taylor teal teddy temple tennessee terrace thorn tiger timber tiny toby
    topaz treasure trinity troy true truth tuesday tulip tyler unique urban valentine van velvet
    venus vernal victor victory viola violet virginia virtue vista wade ward washington wave way
    wells west will willow win windy winter wolf wood worth york young zion
    """.split()
)
