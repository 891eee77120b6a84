"""The matcher: a lexicon compiled for one tokenizer, found in texts."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.schema import strings as as_strings
from evenrank.errors import InputError
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokens import (
    IDEOGRAPHS,
    LETTER,
    PLANES,
    SEPARATOR,
    Tokenizer,
    check_tokenizer,
    tokens,
    unicode_tables,
)

if TYPE_CHECKING:
    from evenrank.text.kernel import Table

Source = Lexicon | str | os.PathLike[str] | Mapping[str, Iterable[str]]

ENOUGH = 1 << 19
"""Bytes that are counted in plain Python; for more the kernel (half a second to load) is the quicker way."""
_ROWS = 8192  # texts that are read at a time
_FILTER = 1 << 15  # bits, at least, by which most tokens are known to be no word
_NO_SPANS = np.zeros((0, 2), np.int64)


class Entry(NamedTuple):
    """A word, a phrase or a prefix, as the tokenizer sees it."""

    spelling: str  # as in the lexicon
    tokens: tuple[str, ...]
    open: bool  # matches by prefix
    groups: list[int]


class Counts(NamedTuple):
    """What the matcher found in n texts, for G groups."""

    tokens: np.ndarray  # int64[n]
    counts: np.ndarray  # int64[n, G]: occurrences of the words of a group
    logwords: np.ndarray  # float64[n, G]: Σ over the words w of a group of ln(1 + #(w, d))


class Hits(NamedTuple):
    """Entries found in n texts: those of text i are entries[bounds[i]:bounds[i + 1]]."""

    tokens: np.ndarray  # int64[n]: tokens of each text
    bounds: np.ndarray  # int64[n + 1]
    entries: np.ndarray  # int32, in the order of their first
    times: np.ndarray  # int32: how often each occurs
    spans: np.ndarray  # int64[·, 2]: start and end in bytes, if wanted; then an entry is there each time

    @property
    def rows(self) -> np.ndarray:
        """The text of each entry."""
        return np.repeat(np.arange(len(self.tokens)), np.diff(self.bounds))

    @classmethod
    def joined(cls, pieces: Iterable[Hits]) -> Hits:
        """The hits of some texts, and then of others."""
        parts = list(pieces)
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int32)
        sizes = np.concatenate([none, *(np.diff(part.bounds) for part in parts)])
        return cls(
            np.concatenate([none.astype(np.int64), *(part.tokens for part in parts)]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([none, *(part.entries for part in parts)]),
            np.concatenate([none, *(part.times for part in parts)]),
            np.concatenate([_NO_SPANS, *(part.spans for part in parts)]),
        )


class Matcher:
    """Finds the words of a lexicon in text: exact words, phrases of several tokens, and ``prefix*``.

    All groups are found in one pass over the bytes. At each token the longest entry wins: a phrase
    before a word, a word before a prefix, a long prefix before a short one; the tokens of a phrase are
    not looked at again. In a dictionary whose categories overlap (``lexicon.overlapping``) a token
    counts once for each category of all entries that match it.

    Parameters
    ----------
    lexicon
        A :class:`Lexicon`, or anything :func:`evenrank.lexicon` accepts.
    tokenizer
        ``words`` or ``whitespace``, see :func:`evenrank.text.tokens.tokens`.
    """

    def __init__(self, source: Source, tokenizer: str = "words") -> None:
        self.lexicon = lexicon(source)
        self.tokenizer: Tokenizer = check_tokenizer(tokenizer)
        self.groups = tuple(self.lexicon.groups)
        self.unicode_version = unicode_tables().version
        self._entries = _entries(self.lexicon, self.tokenizer)
        self._groups = np.array([group for entry in self._entries for group in entry.groups], np.int64)
        self._starts = np.cumsum([0, *[len(entry.groups) for entry in self._entries]])
        self._numbers = {(entry.tokens, entry.open): number for number, entry in enumerate(self._entries)}
        self._widest = max([1, *[len(entry.tokens) for entry in self._entries]])
        self._has_prefixes = True in [entry.open for entry in self._entries]
        self._counted = 0  # bytes, in plain Python

    def __reduce__(self) -> tuple[type[Matcher], tuple[Lexicon, Tokenizer]]:
        return Matcher, (self.lexicon, self.tokenizer)

    @cached_property
    def _table(self) -> Table:
        return _lexicon_table(self._entries, self.tokenizer)

    def count(self, texts: pa.Array | Sequence[str]) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        if "evenrank.text.kernel" not in sys.modules:
            self._counted += array.nbytes
            if self._counted <= ENOUGH:
                return self._summed(self._plain_hits(array))
        return self._summed(_find(self._table, len(self._entries), array))

    def _summed(self, hits: Hits) -> Counts:
        """The hits of distinct entries, added up by group."""
        which, groups = self._by_group(hits.entries)
        shape = (len(self.groups), len(hits.tokens))  # so that the numbers of a group are a column of Arrow
        places = groups * shape[1] + hits.rows[which]
        times = hits.times[which]
        counts = np.bincount(places, times, shape[0] * shape[1]).astype(np.int64)
        logwords = np.bincount(places, np.log1p(times, dtype=np.float64), len(counts)).astype(np.float64)
        return Counts(hits.tokens, counts.reshape(shape).T, logwords.reshape(shape).T)

    def _by_group(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each hit once for every group of its entry: which hit, and which group."""
        sizes = np.diff(self._starts)[entries]
        which = np.repeat(np.arange(len(entries)), sizes)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return which, self._groups[self._starts[entries[which]] + nth]

    def _plain_hits(self, array: pa.Array) -> Hits:
        """What the kernel finds, in plain Python."""
        texts = [tokens(text or "", self.tokenizer) for text in array.to_pylist()]
        rows = [Counter(self._plain_entries(text)) for text in texts]
        return Hits(
            np.array([len(text) for text in texts], np.int64),
            np.cumsum([0, *map(len, rows)]),
            np.array([entry for each in rows for entry in each], np.int32),
            np.array([times for each in rows for times in each.values()], np.int32),
            _NO_SPANS,
        )

    def _plain_entries(self, text: list[str]) -> Iterator[int]:
        """The entries in a list of tokens: at each, the longest there is."""
        place = 0
        while place < len(text):
            for width in range(min(self._widest, len(text) - place), 0, -1):
                *before, last = text[place : place + width]
                prefixes = range(len(last), 0, -1) if self._has_prefixes else ()
                keys = [((*before, last), False), *(((*before, last[:size]), True) for size in prefixes)]
                entry = next((self._numbers[key] for key in keys if key in self._numbers), None)
                if entry is not None:
                    yield entry
                    break
            place += width

    def find(self, texts: pa.Array | Sequence[str]) -> pl.DataFrame:
        """Every hit: row, group, the word as the lexicon spells it, start and end in bytes."""
        hits = _find(self._table, len(self._entries), strings(texts), spans=True)
        which, groups = self._by_group(hits.entries)  # an entry may belong to several groups
        names = [self.groups[group] for group in groups.tolist()]
        words = [self._entries[entry].spelling for entry in hits.entries[which].tolist()]
        start, end = hits.spans[which].T
        return pl.DataFrame(
            {
                "row": hits.rows[which],
                "group": pl.Series(names, dtype=pl.String),
                "word": pl.Series(words, dtype=pl.String),
                "start": start,
                "end": end,
            }
        )


class Vocabulary:
    """Many single words, all different, found in text by the tokenizer `words`."""

    def __init__(self, words: Sequence[str]) -> None:
        entries = np.full((len(words), 3), [-1, -1, 0], np.int32)
        entries[:, 0] = np.arange(len(words))
        self._table = _table("words", words, entries)

    def find(self, texts: pa.Array | Sequence[str]) -> Hits:
        """The words of each text, as places among all words, each once with how often it occurs."""
        return _find(self._table, len(self._table.entries), strings(texts))


def _find(table: Table, entries: int, array: pa.Array, *, spans: bool = False) -> Hits:
    """The entries in each text; some texts at a time, since each has room for as many as there may be."""
    from evenrank.text.kernel import SPARE, find_entries

    def work(first: int) -> Hits:
        data, offsets = utf8(array[first : first + _ROWS])
        rows, longest = len(offsets) - 1, int(np.diff(offsets).max(initial=0))
        room = int(offsets[-1] - offsets[0]) // 2 + rows  # a token has a byte, and a separator behind it
        sizes, bounds = np.empty(rows, np.int64), np.zeros(rows + 1, np.int64)
        hits, places = np.empty((room, 2), np.int32), np.empty((room if spans else 0, 2), np.int64)
        token, last = np.zeros(table.longest + 4 + SPARE, np.uint8), np.zeros(entries, np.int64)
        edges, candidates = np.empty((2, longest + 2), np.int64)
        buffers = token, edges, candidates, last
        total = find_entries(table, data, offsets, sizes, bounds, hits, places, *buffers)
        return Hits(sizes, bounds, hits[:total, 0].copy(), hits[:total, 1].copy(), places[:total].copy())

    return Hits.joined([work(first) for first in range(0, max(len(array), 1), _ROWS)])


def strings(texts: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> pa.Array:
    """An Arrow array of strings, their bytes end to end."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
    array = texts if isinstance(texts, pa.Array) else as_strings(texts)
    known = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array if known else array.cast(pa.large_string())


def utf8(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts of an array, and where each begins and the last ends; a null text is empty."""
    if array.null_count:
        filled: Any = pl.Series(array).fill_null("")
        array = as_strings(filled)  # Arrow's own fill_null loads pandas
    _, offsets, content = array.buffers()
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    bounds = np.zeros(1, np.int64)
    if len(array):
        bounds = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return np.frombuffer(content or b"\0", np.uint8), bounds


def arrow_numbers(values: np.ndarray) -> pa.Array:
    """Numbers as an Arrow array, without a copy; `pa.array` would load pandas to ask whether they are its."""
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


@lru_cache(maxsize=8)
def _entries(source: Lexicon, tokenizer: Tokenizer) -> list[Entry]:
    """The lexicon's words as token sequences; the same sequence in two groups is merged or refused.

    Kept, since most calls count the same words.
    Where groups overlap, an entry is also of the groups of the prefixes that cover it.
    """
    spellings: dict[tuple[tuple[str, ...], bool], str] = {}
    groups: dict[tuple[tuple[str, ...], bool], set[int]] = {}
    for number, (group, words) in enumerate(source.groups.items()):
        for word in words:
            key = tuple(tokens(word.removesuffix("*"), tokenizer)), word.endswith("*")
            if not key[0]:
                raise InputError(
                    f"lexicon {source.name}: the entry {word!r} of group {group!r} has no token; remove it"
                )
            spellings.setdefault(key, word)
            if groups.setdefault(key, {number}) != {number}:
                if not source.overlapping:
                    other = list(source.groups)[min(groups[key])]
                    raise InputError(
                        f"lexicon {source.name}: {word!r} is in group {group!r} and, as {spellings[key]!r}, "
                        f"in {other!r}; a word belongs to one group"
                    )
                groups[key].add(number)
    for (parts, _), own in groups.items():
        for length in range(1, len(parts[0]) + 1) if source.overlapping and len(parts) == 1 else ():
            own |= groups.get(((parts[0][:length],), True), set())
    return [Entry(spelling, *key, sorted(groups[key])) for key, spelling in spellings.items()]


def _lexicon_table(entries: list[Entry], tokenizer: Tokenizer) -> Table:
    """The entries, and the first word of each phrase, as the arrays of the kernel."""
    rows: dict[str, list[int]] = {}
    for i, entry in enumerate(entries):
        first, *rest = entry.tokens
        row = rows.setdefault(first, [-1, -1, 0])
        row[2] = max(row[2], len(rest))
        rows.setdefault(" ".join(entry.tokens), [-1, -1, 0])[entry.open] = i
    return _table(tokenizer, list(rows), np.array(list(rows.values()), np.int32))


def _table(tokenizer: Tokenizer, words: Sequence[str], entries: np.ndarray) -> Table:
    """A hash table of words, all different, with the entries that each is."""
    from evenrank.text.hashing import FREE, put_words
    from evenrank.text.kernel import SPARE, Letters, Table, hash_words

    unicode = unicode_tables()
    kind = np.full(1 << 21, LETTER, np.uint8)
    if tokenizer == "words":
        kind[PLANES:] = SEPARATOR
        kind[IDEOGRAPHS.start : IDEOGRAPHS.stop] = LETTER
        kind[:PLANES] = unicode.kind
    else:
        kind[ord(" ")] = SEPARATOR
    fold = unicode.fold if tokenizer == "words" else unicode.lower
    pairs = np.stack([unicode.pairs, unicode.composed.astype(np.int64)], axis=1)
    encoded = [word.encode() for word in words]
    starred = [word for word, (_, is_starred, _) in zip(encoded, entries, strict=True) if is_starred >= 0]
    stem = min([8, *map(len, starred)]) if starred else 0
    strings = [*encoded, *(word[:stem] for word in starred)]
    offsets = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    pool = np.frombuffer(bytearray(b"".join(strings) + bytes(SPARE)), np.uint8)
    hashes = np.empty(len(strings), np.uint64)
    hash_words(pool, offsets, hashes)
    slots = np.full(1 << max(4, (4 * len(words)).bit_length()), FREE, np.int32)
    put_words(slots, hashes[: len(words)])
    size = max(_FILTER, 8 * len(slots))
    shift = np.uint64(65 - size.bit_length())
    flags = np.zeros(size, bool)
    flags[hashes >> shift] = True
    bits = np.packbits(flags, bitorder="little").view(np.uint64)
    longest = max(map(len, encoded), default=1)
    letters = Letters(tokenizer == "words", kind, fold, pairs)
    return Table(letters, slots, hashes, offsets, pool, bits, shift, entries, longest, stem)
