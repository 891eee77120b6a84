"""The matcher: a lexicon compiled for one tokenizer, found in texts."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.schema import strings as as_strings
from evenrank.errors import InputError
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokens import LETTER, SEPARATOR, Tokenizer, check_tokenizer, tokens, unicode_tables

if TYPE_CHECKING:
    from evenrank.text.kernel import Table

Source = Lexicon | str | os.PathLike[str] | Mapping[str, Iterable[str]]

ENOUGH = 1 << 19
"""Bytes in which single words are counted in plain Python; loading the kernel takes half a second."""
_MIN_SLOTS = 1 << 12  # so that most tokens meet a free slot


class Entry(NamedTuple):
    """A word, a phrase or a prefix, as the tokenizer sees it."""

    spelling: str  # as in the lexicon
    tokens: tuple[str, ...]
    is_prefix: bool
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
    entries: np.ndarray  # int32, in the order of their first; each once, or each time
    times: np.ndarray  # int32: how often each occurs
    spans: np.ndarray  # int32[·, 2]: where it first begins and ends, in bytes

    @property
    def rows(self) -> np.ndarray:
        """The text of each entry."""
        return np.repeat(np.arange(len(self.tokens)), np.diff(self.bounds))

    @classmethod
    def joined(cls, pieces: Iterable[Hits]) -> Hits:
        """The hits of some texts, and then of others."""
        none = np.zeros(0, np.int32)
        parts = [cls(none, np.zeros(1, np.int64), none, none, none.reshape(0, 2)), *pieces]
        tokens, _, entries, times, spans = map(np.concatenate, zip(*parts, strict=True))
        sizes = np.concatenate([np.diff(part.bounds) for part in parts])
        return cls(tokens, np.append(0, np.cumsum(sizes)), entries, times, spans)


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
        self._words = {entry.tokens[0]: number for number, entry in enumerate(self._entries)}
        others = [entry for entry in self._entries if entry.is_prefix or entry.tokens[1:]]
        self._has_words_only = not others
        self._counted = 0  # bytes, in plain Python

    def __reduce__(self) -> tuple[type[Matcher], tuple[Lexicon, Tokenizer]]:
        return Matcher, (self.lexicon, self.tokenizer)

    @cached_property
    def _table(self) -> Table:
        return _lexicon_table(self._entries, self.tokenizer)

    def count(self, texts: pa.Array | Sequence[str]) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        if self._has_words_only and "evenrank.text.kernel" not in sys.modules:
            self._counted += array.nbytes
            if self._counted <= ENOUGH:
                return self._count_plainly(array)
        hits = _find(self._table, len(self._entries), array)
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

    def _count_plainly(self, array: pa.Array) -> Counts:
        """The same of single words in plain Python."""
        texts = [tokens(text, self.tokenizer) for text in array.to_pylist()]
        counts = np.zeros((len(texts), len(self.groups)), np.int64)
        logwords = np.zeros(counts.shape)
        for row, text in enumerate(texts):
            for entry, times in Counter(self._words[word] for word in text if word in self._words).items():
                counts[row, self._entries[entry].groups] += times
                logwords[row, self._entries[entry].groups] += np.log1p(times)
        return Counts(np.array([len(text) for text in texts], np.int64), counts, logwords)

    def find(self, texts: pa.Array | Sequence[str]) -> pl.DataFrame:
        """Every hit: row, group, the word as the lexicon spells it, start and end in bytes."""
        hits = _find(self._table, len(self._entries), texts, every=True)
        which, groups = self._by_group(hits.entries)  # an entry may belong to several groups
        names = [self.groups[group] for group in groups.tolist()]
        words = [self._entries[entry].spelling for entry in hits.entries[which].tolist()]
        start, end = hits.spans[which].T.astype(np.int64)
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
        self._table = _table("words", [word.encode() for word in words], entries, stem=0)

    def find(self, texts: pa.Array | Sequence[str]) -> Hits:
        """The words of each text, as places among all words, each once with how often it occurs."""
        return _find(self._table, len(self._table.entries), texts)


def _find(table: Table, entries: int, texts: pa.Array | Sequence[str], *, every: bool = False) -> Hits:
    """The entries in each text."""
    from evenrank.text.hashing import SPARE
    from evenrank.text.kernel import find_entries

    data, offsets = utf8(texts)
    rows, longest = len(offsets) - 1, int(np.diff(offsets).max(initial=0))
    room = int(offsets[-1] - offsets[0]) // 2 + rows  # a token has a byte, and a separator behind it
    sizes, bounds = np.empty(rows, np.int64), np.zeros(rows + 1, np.int64)
    hits = np.empty((room, 4), np.int32)
    token = np.zeros(2 * longest + SPARE, np.uint8)  # in lower case a text may have more bytes
    buffers = token, np.empty(longest + 2, np.int64), np.zeros(entries, np.int64)
    total = find_entries(table, data, offsets, every, (sizes, bounds, hits), buffers)
    return Hits(sizes, bounds, hits[:total, 0].copy(), hits[:total, 1].copy(), hits[:total, 2:].copy())


def strings(texts: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> pa.LargeStringArray:
    """Texts as one Arrow array; a null is an empty text."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    array = texts if isinstance(texts, pa.Array) else as_strings(texts)
    if array.null_count:
        filled: Any = pl.Series(array).fill_null("")  # Arrow's own fill_null loads pandas
        array = as_strings(filled)
    return array.cast(pa.large_string())


def utf8(texts: pa.Array | Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, and where each begins and the last ends."""
    array = strings(texts)
    _, offsets, content = array.buffers()
    bounds = np.zeros(1, np.int64)
    if len(array):
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(content or b"\0", np.uint8), bounds


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
    """The entries, the first word of each phrase and the stem of each prefix, as the arrays of the kernel."""
    keys = [" ".join(entry.tokens).encode() for entry in entries]
    stem = min([len(key) for key, entry in zip(keys, entries, strict=True) if entry.is_prefix], default=0)
    rows: dict[bytes, list[int]] = {}
    for i, (key, entry) in enumerate(zip(keys, entries, strict=True)):
        first, *rest = entry.tokens
        row = rows.setdefault(first.encode(), [-1, -1, 0])
        row[2] = max(row[2], len(rest))
        rows.setdefault(key, [-1, -1, 0])[entry.is_prefix] = i
        if entry.is_prefix:
            rows.setdefault(key[:stem], [-1, -1, 0])
    return _table(tokenizer, list(rows), np.array(list(rows.values()), np.int32), stem)


def _table(tokenizer: Tokenizer, words: Sequence[bytes], entries: np.ndarray, stem: int) -> Table:
    """A hash table of words, all different, with the entries that each is."""
    from evenrank.text.hashing import SPARE, put_words
    from evenrank.text.kernel import Table

    unicode = unicode_tables()
    kind, fold = unicode.kind, unicode.fold
    if tokenizer == "whitespace":
        kind, fold = np.full(len(kind), LETTER, np.uint8), unicode.lower
        kind[ord(" ")] = SEPARATOR
    offsets = np.cumsum([0, *map(len, words)]).astype(np.int64)
    pool = np.frombuffer(bytearray(b"".join(words) + bytes(SPARE)), np.uint8)
    slots = np.empty(max(_MIN_SLOTS, 1 << (4 * len(words)).bit_length()), np.int32)
    put_words(slots, offsets, pool, len(words))
    return Table(tokenizer == "words", kind, fold, unicode.pairs, slots, offsets, pool, entries, stem)
