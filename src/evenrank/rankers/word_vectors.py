"""Semantic rankers: a text is the mean of its words' vectors, and the nearest documents are the answer.

``w2v_add`` counts every word alike, ``w2v_si`` by its self-information, so that rare words count more
(Vulić & Moens, SIGIR 2015; audited for stereotypes by Fabris et al. 2020, §2.1 and §4.2). They inherit what
the vectors associate; debiased vectors inherit less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import xxhash
from numba import njit

from evenrank.data.docs import map_in_order
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.dense_search import nearest
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import run_table
from evenrank.text.matcher import Vocabulary
from evenrank.vectors.debias import debiased
from evenrank.vectors.formats import load
from evenrank.vectors.space import Vectors
from evenrank.vectors.texts import GENDERED_STOP_WORDS
from evenrank.vectors.texts import stop_words as listed_stop_words

Composition = Literal["add", "si"]
Debias = Literal["regular", "hard", "strong", "leace"]
StopWords = Literal["glasgow", "indri", "none"]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BYTES = 1 << 21  # of text read at a time


class WordVectorRanker:
    """Ranks documents by the cosine of their mean word vector with that of the query.

    Made by :func:`w2v_add` or :func:`w2v_si`. The vectors of the documents are made at the first search and
    kept in memory.
    """

    def __init__(
        self,
        index: Index,
        vectors: Vectors,
        *,
        name: str,
        composition: Composition,
        debias: Debias,
        stop_words: StopWords,
    ) -> None:
        self.name = name
        self.index = index
        self.vectors = vectors if debias == "regular" else debiased(vectors, debias)
        self.settings = {"composition": composition, "debias": debias, "stop_words": stop_words}
        self._surface = Surface(vectors.words)
        self._stopped = np.zeros(len(vectors), bool)
        if stop_words != "none":
            left_out = listed_stop_words(stop_words) - GENDERED_STOP_WORDS
            self._stopped[[place for place, word in enumerate(vectors.words) if word in left_out]] = True
        self._fingerprint = _content(self.vectors)
        self._documents: tuple[npt.NDArray[np.float32], Doubles] | None = None

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The nearest documents to each query. Without a word that has a vector, a query finds nothing."""
        if self._documents is None:
            self._documents = self._read_documents(progress)
        vectors, weights = self._documents
        requested = self._composed(self._surface.find(queries["text"].to_list()), weights, np.float64)
        ranks = self.index.arrays["id-rank"]
        result = nearest(vectors, requested, depth=depth, ranks=ranks, progress=progress)
        return run_table(self.index, queries["query_id"], *result)

    def describe(self) -> dict[str, Any]:
        """Name, settings, the vectors and the index."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "vectors": {**self.vectors.provenance, "content": self._fingerprint},
            "index": self.index.describe(),
        }

    def _read_documents(self, progress: Progress | None) -> tuple[npt.NDArray[np.float32], Doubles]:
        """Return the vectors of the documents, and what each word counts."""
        weights = self._weights(*self._counted(progress))
        vectors = np.empty((self.index.documents, self.vectors.dimension), np.float32)
        row = 0
        for bags in self._bags(progress, part=2):
            vectors[row : row + len(bags.tokens)] = self._composed(bags, weights, np.float32)
            row += len(bags.tokens)
        return vectors, weights

    def _counted(self, progress: Progress | None) -> tuple[npt.NDArray[np.int64], int]:
        """How often each word occurs in the collection, and how many words there are at all."""
        counts, tokens = np.zeros(len(self.vectors), np.int64), 0
        for bags in self._bags(progress, part=1):
            np.add.at(counts, bags.words, bags.times)
            tokens += int(bags.tokens.sum())
        return counts, tokens

    def _weights(self, counts: npt.NDArray[Any], tokens: int) -> Doubles:
        """What each word counts. A word that the collection lacks informs as one that occurs once."""
        if self.settings["composition"] == "add":
            weights = np.ones(len(counts))
        else:
            weights = np.log2(max(tokens, 1)) - np.log2(np.maximum(counts, 1))
        return np.where(self._stopped, 0.0, weights)

    def _composed(self, bags: Bags, weights: Doubles, kind: Any) -> npt.NDArray[Any]:
        out = np.empty((len(bags.tokens), self.vectors.dimension), kind)
        compose(bags.bounds, bags.words, bags.times, weights, self.vectors.matrix, out)
        return out

    def _bags(self, progress: Progress | None, *, part: int) -> Iterator[Bags]:
        """The words of the documents, in the order of the index; progress over two such passes."""
        done, both = 0, 2 * self.index.documents
        before = (part - 1) * self.index.documents
        for bags in map_in_order(self._surface.find, _texts(self.index)):
            done += len(bags.tokens)
            if progress:
                progress(before + done, both)
            yield bags


def w2v_add(
    index: Index,
    *,
    vectors: Any,
    debias: Debias = "regular",
    stop_words: StopWords = "glasgow",
) -> WordVectorRanker:
    """Cosine of mean word vectors: each word that has a vector counts alike, each time it occurs.

    Parameters
    ----------
    index
        What to search.
    vectors
        A file of word vectors, or anything :func:`evenrank.vectors.formats` takes. With fastText vectors this
        is the ``ftt_add`` of Fabris et al.
    debias
        ``regular`` (as they are), ``hard``, ``strong`` or ``leace``: see :func:`evenrank.vectors.debiased`.
    stop_words
        ``glasgow`` leaves out the 318 words of the Glasgow list but for the gendered ones (she, his, …): the
        words that GSR does not look at either. ``indri`` has the 418 of Indri. ``none`` counts every word;
        the mean is then mostly that of *the* and *of*, and finds much less.
    """
    return _made(index, vectors, "add", debias, stop_words)


def w2v_si(
    index: Index,
    *,
    vectors: Any,
    debias: Debias = "regular",
    stop_words: StopWords = "glasgow",
) -> WordVectorRanker:
    """As :func:`w2v_add`, each word weighted by its self-information, −log2 P(w).

    P(w) is the share of the word among all words of the collection, those without a vector included. A word
    of a query that the collection does not have counts as if it occurred once.
    """
    return _made(index, vectors, "si", debias, stop_words)


def _made(
    index: Index, vectors: Any, composition: Composition, debias: Debias, stop_words: StopWords
) -> WordVectorRanker:
    for name, value, known in (("debias", debias, Debias), ("stop_words", stop_words, StopWords)):
        if value not in get_args(known):
            raise InputError(f"{name} is {value!r}; choose one of: {', '.join(get_args(known))}")
    if isinstance(vectors, (str, os.PathLike)) and not os.fspath(vectors):
        raise InputError("vectors is empty; name a file of word vectors")
    name = f"w2v_{composition}" if debias == "regular" else f"w2v_{composition}-{debias}"
    built: dict[str, Any] = {"composition": composition, "debias": debias, "stop_words": stop_words}
    return WordVectorRanker(index, load(vectors), name=name, **built)


def _texts(index: Index) -> Iterator[pa.Array]:
    """The texts of the documents, in the order of the index, some megabytes at a time."""
    parts: list[pa.Array] = []
    size = 0
    for block in index.docs.blocks():
        parts.append(block.read().column("text"))
        size += parts[-1].nbytes
        if size >= _BYTES:
            yield pa.concat_arrays(parts)
            parts, size = [], 0
    if parts:
        yield pa.concat_arrays(parts)


def _content(vectors: Vectors) -> str:
    """A hash of words and numbers: whatever file they come from."""
    digest = xxhash.xxh3_128()
    digest.update("\n".join(vectors.words).encode())
    digest.update(np.ascontiguousarray(vectors.matrix).data)
    return digest.hexdigest()


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

    Tokens are those of :func:`evenrank.text.tokens.tokens`: runs of letters and digits, folded to lower
    case. Words of the vocabulary that no text can yield (capitals, punctuation) are never found.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._finder = Vocabulary(vocabulary)

    def find(self, texts: pa.Array | Sequence[str]) -> Bags:
        """The words of each text that the vocabulary has, and how often each occurs."""
        hits = self._finder.find(texts)
        owner = np.repeat(np.arange(len(hits.tokens)), np.diff(hits.bounds))
        order = np.lexsort((hits.entries, owner))
        return Bags(hits.bounds, hits.entries[order], hits.times[order], hits.tokens)


@njit(nogil=True, cache=True)
def compose(bounds, words, times, weights, matrix, out):  # type: ignore[no-untyped-def]
    """Sums of weighted word vectors, scaled to length 1; zeros where there is nothing to add up."""
    total = np.empty(matrix.shape[1])
    for row in range(len(bounds) - 1):
        total[:] = 0.0
        for i in range(bounds[row], bounds[row + 1]):
            factor = weights[words[i]] * times[i]
            vector = matrix[words[i]]
            for j in range(len(total)):
                total[j] += factor * vector[j]
        square = 0.0
        for j in range(len(total)):
            square += total[j] * total[j]
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for j in range(len(total)):
            out[row, j] = total[j] * scale
