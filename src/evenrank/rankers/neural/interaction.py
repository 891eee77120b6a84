"""What the word-interaction models share: words as vectors, and how alike each word of a query is to each of
a document.

A model is a plain PyTorch module that maps a :class:`Match` to a score. Word vectors are random or given,
frozen or trained. Two features are switches of every model: ``idf`` lets rare words of a query count more,
``exact_match`` tells the same word from a similar one. ``with_first_stage`` adds the score of the first stage
with a weight that is learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.errors import InputError, check_number, check_whole
from evenrank.rankers.neural.candidates import Candidates, FirstStage, Ints
from evenrank.text.tokens import tokens

PADDING = 0
_LARGEST = 10_000
"""The largest value of a setting; more of anything would not fit into memory."""


@dataclass(frozen=True, kw_only=True)
class InteractionSettings:
    """Settings of all word-interaction models.

    Attributes
    ----------
    dimension
        Of random word vectors; given ones have their own.
    train_embeddings
        Train the word vectors too.
    idf, exact_match
        The two features, as each model uses them.
    with_first_stage
        Add the first-stage score, weighted by a learned number.
    query_words, document_words
        Words looked at, from the beginning of a text.
    """

    dimension: int = 100
    train_embeddings: bool = True
    idf: bool = True
    exact_match: bool = True
    with_first_stage: bool = False
    query_words: int = 24
    document_words: int = 150

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                check_whole(field.name, value, least=field.metadata.get("least", 1), most=_LARGEST)
            elif field.type == "float":
                check_number(field.name, value, least=1 / _LARGEST, most=_LARGEST)


class Match(NamedTuple):
    """A batch of pairs, word against word.

    ``cosine`` and ``exact`` are batch × query words × document words; ``exact`` is 1 where the words are the
    same. Masks are 1 where there is a word. ``idf`` is that of the query's words. ``query`` and ``document``
    hold the vectors of the words themselves.
    """

    cosine: Tensor
    exact: Tensor
    query_mask: Tensor
    document_mask: Tensor
    idf: Tensor
    query: Tensor
    document: Tensor


class Interaction(nn.Module):
    """The word vectors, and the sum with the first stage; the model itself is in a subclass's `relevance`."""

    def __init__(self, vocabulary: Vocabulary, settings: Any, vectors: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self.settings = settings
        unknown = np.zeros((1, vectors.shape[1]), np.float32)
        table = np.concatenate([unknown, vectors.astype(np.float32), unknown])  # padding, words, unknown
        self.embedding = nn.Embedding.from_pretrained(
            torch.from_numpy(table), freeze=not settings.train_embeddings, padding_idx=PADDING
        )
        idf = np.concatenate([[0.0], vocabulary.idf, [vocabulary.unknown_idf]]) / vocabulary.unknown_idf
        self.register_buffer("word_idf", torch.from_numpy(idf.astype(np.float32)))
        self.unknown = len(vocabulary) + 1
        if settings.with_first_stage:
            self.first_stage = nn.Parameter(torch.ones(1))

    def forward(self, query: Tensor, document: Tensor, first: Tensor) -> Tensor:
        """Return the scores of pairs: word numbers of query and document, and scaled first-stage scores."""
        score = self.relevance(self.match(query, document))
        return score + self.first_stage * first if self.settings.with_first_stage else score

    def relevance(self, match: Match) -> Tensor:
        """Return the scores that the model of the paper gives."""
        raise NotImplementedError

    def match(self, query: Tensor, document: Tensor) -> Match:
        """Compare each word with each. A word without a vector is like itself, and like no other."""
        q_mask, d_mask = (query != PADDING).float(), (document != PADDING).float()
        exact = (query.unsqueeze(2) == document.unsqueeze(1)).float()
        exact = exact * q_mask.unsqueeze(2) * d_mask.unsqueeze(1)
        q_place, d_place = query.clamp(max=self.unknown), document.clamp(max=self.unknown)
        q, d = self.embedding(q_place), self.embedding(d_place)
        cosine = torch.bmm(unit(q), unit(d).transpose(1, 2))
        strange = (q_place == self.unknown).unsqueeze(2) | (d_place == self.unknown).unsqueeze(1)
        cosine = torch.where(strange, exact, cosine)
        idf = self.word_idf[q_place]
        return Match(cosine, exact, q_mask, d_mask, idf, q, d)

    def word_weights(self, match: Match) -> Tensor:
        """Return what each word of the query counts."""
        return match.query_mask * match.idf if self.settings.idf else match.query_mask


def unit(vectors: Tensor) -> Tensor:
    """Return the vectors scaled to length 1."""
    return nn.functional.normalize(vectors, dim=-1, eps=1e-9)


def word_shares(values: Tensor, match: Match) -> Tensor:
    """Return the share of each word of the query: a softmax over these values, 0 for padding."""
    return values.masked_fill(match.query_mask == 0, -1e9).softmax(1) * match.query_mask


class WordPairs:
    """Candidates as word numbers, ready to be cut into batches."""

    def __init__(self, pairs: Candidates, vocabulary: Vocabulary, settings: Any, scale: FirstStage) -> None:
        unknown: dict[str, int] = {}
        queries = [vocabulary.numbers(text, settings.query_words, unknown) for text in pairs.queries]
        documents = [vocabulary.numbers(text, settings.document_words, unknown) for text in pairs.documents]
        self.query, self.document = pairs.query, pairs.document
        self.first = scale.of(pairs.first)
        self.lengths = np.array([len(each) for each in documents], np.int64)
        self._widths = np.array([len(each) for each in queries], np.int64)
        self._queries = padded(queries, max(1, int(self._widths.max(initial=1))))
        self._documents = padded(documents, max(1, int(self.lengths.max(initial=1))))

    def size(self, rows: Ints) -> Ints:
        """Return how long the document of each pair is: pairs of like length make good batches."""
        values: Ints = self.lengths[self.document[rows]]
        return values

    def batch(self, rows: Ints) -> tuple[Tensor, Tensor, Tensor]:
        """Return these pairs as the arguments of a model."""
        q, d = self.query[rows], self.document[rows]
        wide, long = max(1, int(self._widths[q].max())), max(3, int(self.lengths[d].max()))
        return (
            torch.from_numpy(self._queries[q, :wide]),
            torch.from_numpy(self._documents[d, :long]),
            torch.from_numpy(self.first[rows]),
        )


def random_vectors(words: int, dimension: int, seed: int) -> npt.NDArray[np.float32]:
    """Return vectors at random, of length around 1."""
    drawn = np.random.default_rng([seed, 1]).standard_normal((words, dimension))
    return (drawn / np.sqrt(dimension)).astype(np.float32)


def given_vectors(vocabulary: Vocabulary, vectors: Any, seed: int) -> tuple[npt.NDArray[np.float32], int]:
    """Return the given vector of each word, a random one where there is none; and how many are given."""
    table = random_vectors(len(vocabulary), vectors.dimension, seed)
    places = [place for place, word in enumerate(vocabulary.words) if word in vectors]
    for place in places:
        table[place] = vectors[vocabulary.words[place]]
    return table, len(places)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that a model knows, numbered from 1; 0 is padding.

    Attributes
    ----------
    words
        The words, in order of their numbers.
    idf
        ln(1 + N/df) of each word in the collection that the model was trained on. A word that is not known
        has the largest, ``unknown_idf``.
    """

    words: tuple[str, ...]
    idf: npt.NDArray[np.float32]
    unknown_idf: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {word: place for place, word in enumerate(self.words, 1)})

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, documents: Iterable[str], queries: Iterable[str], *, least: int = 2) -> Vocabulary:
        """Return the words that are in at least this many of the documents, and all words of the queries."""
        frequency: Counter[str] = Counter()
        total = 0
        for text in documents:
            frequency.update(set(tokens(text)))
            total += 1
        if not total:
            raise InputError("there is no document to learn words from")
        of_queries = {word for text in queries for word in tokens(text)}
        words = sorted({word for word, count in frequency.items() if count >= least} | of_queries)
        counts = np.array([max(frequency[word], 1) for word in words])
        return cls(tuple(words), np.log1p(total / counts).astype(np.float32), float(np.log1p(total)))

    def numbers(self, text: str, most: int, unknown: dict[str, int]) -> list[int]:
        """Return the numbers of a text's first words.

        Words that are not known get numbers above those of the vocabulary, kept in `unknown`, so that the
        same word is the same number in a query and in a document.
        """
        known: dict[str, int] = self._numbers  # type: ignore[attr-defined]
        rows = []
        for word in tokens(text)[:most]:
            number = known.get(word)
            if number is None:
                number = unknown.setdefault(word, len(self.words) + 1 + len(unknown))
            rows.append(number)
        return rows


def padded(sequences: Sequence[Sequence[int]], width: int) -> npt.NDArray[np.int64]:
    """Return sequences as the rows of a matrix, filled up with padding."""
    values = np.full((len(sequences), width), PADDING, np.int64)
    for row, sequence in enumerate(sequences):
        values[row, : len(sequence)] = sequence[:width]
    return values
