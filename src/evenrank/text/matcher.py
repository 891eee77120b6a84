"""The matcher: a lexicon compiled for one tokenizer, found in texts, and in whole collections by threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.docs import Docs, DuplicateCheck
from evenrank.data.schema import Block
from evenrank.data.schema import strings as as_strings
from evenrank.errors import InputError
from evenrank.process import cores, in_order
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokens import (
    ENOUGH,
    LETTER,
    SLOW,
    PlainMatcher,
    Tokenizer,
    check_tokenizer,
    tokens,
    unicode_tables,
)

if TYPE_CHECKING:
    from evenrank.text.kernel import Table

Source = Lexicon | str | os.PathLike[str] | Mapping[str, Iterable[str]]
Progress = Callable[[int, int | None], None]

_ROWS = 8192  # texts that a thread takes at a time
_FILTER = 1 << 15  # bits, at least, by which most tokens are known to be no word
_SPANS = np.zeros((0, 2), np.int64)


class Entry(NamedTuple):
    """A word, a phrase or a prefix, as the tokenizer sees it."""

    spelling: str  # as in the lexicon
    tokens: tuple[str, ...]
    open: bool  # matches by prefix
    groups: frozenset[int]


class Counts(NamedTuple):
    """What the matcher found in n texts, for G groups."""

    tokens: np.ndarray  # int64[n]
    counts: np.ndarray  # int64[n, G]: occurrences of the words of a group
    logwords: np.ndarray  # float64[n, G]: Σ over the words w of a group of ln(1 + #(w, d))


class Hits(NamedTuple):
    """Entries found in n texts: those of text i are entries[bounds[i]:bounds[i + 1]]."""

    tokens: np.ndarray  # int64[n]: tokens of each text
    bounds: np.ndarray  # int64[n + 1]
    entries: np.ndarray  # int32
    times: np.ndarray  # int32: how often each occurs, of distinct entries; else none
    spans: np.ndarray  # int64[·, 2]: start and end in bytes, if they were asked for


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
        self._memberships = _memberships(self._entries, self.lexicon.overlapping)
        self._groups = np.array([group for each in self._memberships for group in each], np.int64)
        self._starts = np.cumsum([0, *map(len, self._memberships)]).astype(np.int64)
        self._counted = 0  # bytes, in plain Python

    def __reduce__(self) -> tuple[type[Matcher], tuple[Lexicon, Tokenizer]]:
        return Matcher, (self.lexicon, self.tokenizer)

    @cached_property
    def _table(self) -> Table:
        return _lexicon_table(self._entries, self.tokenizer)

    @cached_property
    def _plain(self) -> PlainMatcher:
        entries = [(entry.tokens, entry.open) for entry in self._entries]
        return PlainMatcher(entries, self._memberships, self.tokenizer)

    def count(self, texts: pa.Array | Sequence[str], *, threads: int = 1) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        shape = (len(self.groups), len(array))  # so that the numbers of a group are a column of Arrow
        found = Counts(np.zeros(len(array), np.int64), np.zeros(shape, np.int64).T, np.zeros(shape).T)
        if self._is_small(array):
            self._plain.count(array.to_pylist(), *found)
            return found
        from evenrank.text.kernel import add_groups

        def work(first: int) -> None:
            rows = slice(first, first + _ROWS)
            hits = distinct_hits(self._table, array[rows], len(self._entries))
            found.tokens[rows] = hits.tokens
            sums = found.counts[rows].T, found.logwords[rows].T
            add_groups(hits.bounds, hits.entries, hits.times, self._groups, self._starts, *sums)

        in_slices(work, len(array), threads)
        return found

    def _is_small(self, array: pa.Array) -> bool:
        """Is the kernel not loaded yet, and this so little, with all before, that it need not be?"""
        if "evenrank.text.kernel" in sys.modules or array.nbytes > 16 * ENOUGH:
            return False
        data, offsets = utf8(array)
        text = data[offsets[0] : offsets[-1]]
        self._counted += len(text) + SLOW * int((text >= 0xC0).sum())
        return self._counted <= ENOUGH

    def find(self, texts: pa.Array | Sequence[str]) -> pl.DataFrame:
        """Every hit: row, group, the word as the lexicon spells it, start and end in bytes."""
        hits = all_hits(self._table, strings(texts), spans=True)
        rows = np.repeat(np.arange(len(hits.tokens)), np.diff(hits.bounds))
        sizes = np.diff(self._starts)[hits.entries]  # an entry may belong to several groups
        which = np.repeat(np.arange(len(rows)), sizes)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = hits.entries[which]
        names = np.array([*self.groups, ""], dtype=object)[self._groups[self._starts[entries] + nth]]
        words = np.array([*(entry.spelling for entry in self._entries), ""], dtype=object)[entries]
        start, end = hits.spans[which].T
        return pl.DataFrame(
            {"row": rows[which], "group": names, "word": words, "start": start, "end": end},
            schema={
                "row": pl.Int64,
                "group": pl.String,
                "word": pl.String,
                "start": pl.Int64,
                "end": pl.Int64,
            },
        )


class Vocabulary:
    """Many single words, all different, found in text by the tokenizer `words`."""

    def __init__(self, words: Sequence[str]) -> None:
        places = np.arange(len(words), dtype=np.int32)
        self._size = len(words)
        self._table = _table("words", [word.encode() for word in words], exact=places)

    def find(self, texts: pa.Array | Sequence[str]) -> Hits:
        """The words of each text, as places among all words, each once with how often it occurs."""
        array = strings(texts)
        pieces: dict[int, Hits] = {}

        def work(first: int) -> None:
            pieces[first] = distinct_hits(self._table, array[first : first + _ROWS], self._size)

        in_slices(work, len(array), cores())
        parts = [pieces[first] for first in sorted(pieces)]
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int32)
        sizes = np.concatenate([none, *(np.diff(part.bounds) for part in parts)])
        return Hits(
            np.concatenate([none.astype(np.int64), *(part.tokens for part in parts)]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([none, *(part.entries for part in parts)]),
            np.concatenate([none, *(part.times for part in parts)]),
            _SPANS,
        )


def in_slices(work: Callable[[int], None], rows: int, threads: int) -> None:
    """Call `work` with the first row of each slice, in threads if there are several."""
    if threads == 1 or rows <= _ROWS:
        for first in range(0, rows, _ROWS):
            work(first)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(0, rows, _ROWS)))


def all_hits(table: Table, array: pa.Array, *, spans: bool = False) -> Hits:
    """Every hit in each text, in their order."""
    from evenrank.text.kernel import find_entries

    data, offsets = utf8(array)
    room = int(offsets[-1] - offsets[0]) // 2 + len(array)  # a token has a byte, and a separator behind it
    hits = Hits(
        np.empty(len(array), np.int64),
        np.zeros(len(array) + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(0, np.int32),
        np.empty((room, 2), np.int64) if spans else _SPANS,
    )
    token = np.zeros(table.longest + 4, np.uint8)
    total = find_entries(table, data, offsets, token, hits.tokens, hits.bounds, hits.entries, hits.spans)
    return hits._replace(entries=hits.entries[:total], spans=hits.spans[:total])


def distinct_hits(table: Table, array: pa.Array, entries: int) -> Hits:
    """The distinct entries of each text, in the order of their first, and how often each occurs."""
    from evenrank.text.kernel import count_distinct

    hits = all_hits(table, array)
    times = np.empty(len(hits.entries), np.int32)
    total = count_distinct(hits.bounds, hits.entries, np.zeros(entries, np.int32), times)
    return hits._replace(entries=hits.entries[:total].copy(), times=times[:total].copy())


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


def _entries(source: Lexicon, tokenizer: Tokenizer) -> list[Entry]:
    """The lexicon's words as token sequences; the same sequence in two groups is merged or refused."""
    entries: dict[tuple[tuple[str, ...], bool], Entry] = {}
    for number, (group, words) in enumerate(source.groups.items()):
        for word in words:
            is_open = word.endswith("*")
            parts = tuple(tokens(word.removesuffix("*"), tokenizer))
            if not parts:
                raise InputError(
                    f"lexicon {source.name}: the entry {word!r} of group {group!r} has no token; remove it"
                )
            before = entries.get((parts, is_open))
            if before is None:
                entries[parts, is_open] = Entry(word, parts, is_open, frozenset([number]))
            elif number not in before.groups:
                if not source.overlapping:
                    other = list(source.groups)[min(before.groups)]
                    raise InputError(
                        f"lexicon {source.name}: {word!r} is in group {group!r} and, as {before.spelling!r}, "
                        f"in {other!r}; a word belongs to one group"
                    )
                entries[parts, is_open] = before._replace(groups=before.groups | {number})
    return list(entries.values())


def _memberships(entries: list[Entry], overlapping: bool) -> list[list[int]]:
    """The groups of each entry; where groups overlap, also those of the prefixes that cover it."""
    prefixes = {e.tokens[0]: e.groups for e in entries if len(e.tokens) == 1 and e.open}
    memberships = []
    for entry in entries:
        groups = set(entry.groups)
        if overlapping and len(entry.tokens) == 1:
            word = entry.tokens[0]
            groups.update(*(prefixes.get(word[:n], ()) for n in range(1, len(word) + 1)))
        memberships.append(sorted(groups))
    return memberships


def _lexicon_table(entries: list[Entry], tokenizer: Tokenizer) -> Table:
    """The entries as the arrays of the kernel."""
    numbers: dict[str, int] = {}  # of all tokens
    for entry in entries:
        for token in entry.tokens:
            numbers.setdefault(token, len(numbers))
    exact, open_ = np.full((2, len(numbers)), -1, np.int32)
    order = sorted(
        (i for i, entry in enumerate(entries) if len(entry.tokens) > 1),
        key=lambda i: _rank(entries[i], numbers),
    )
    phrases: list[tuple[int, int, bool, int]] = []
    rest: list[int] = []
    for i, entry in enumerate(entries):
        if len(entry.tokens) == 1:
            (open_ if entry.open else exact)[numbers[entry.tokens[0]]] = i
    for i in order:
        first = len(rest)
        rest += [numbers[token] for token in entries[i].tokens[1:]]
        phrases.append((first, len(rest), entries[i].open, i))
    begins = np.bincount([numbers[entries[i].tokens[0]] for i in order], minlength=len(numbers))
    prefixes = [entry.tokens[0].encode() for entry in entries if len(entry.tokens) == 1 and entry.open]
    return _table(
        tokenizer,
        [token.encode() for token in numbers],
        exact=exact,
        open=open_,
        lengths=_lengths(prefixes),
        phrases_of=np.concatenate([[0], np.cumsum(begins)]).astype(np.int32),
        phrases=np.array(phrases, np.int32).reshape(-1, 4),
        rest=np.array(rest, np.int32),
    )


def _rank(phrase: Entry, numbers: Mapping[str, int]) -> tuple[int, int, bool, int]:
    """Phrases of one first word together: most tokens first, exact before open, long before short."""
    words = phrase.tokens
    return numbers[words[0]], -len(words), phrase.open, -len(words[-1].encode())


def _table(tokenizer: Tokenizer, words: list[bytes], **given: Any) -> Table:
    """A table of words, all different; what is not given is empty."""
    from evenrank.text.hashing import FREE, hash_words, put_words
    from evenrank.text.kernel import SEPARATOR_BYTE, Letters, Table, Words

    unicode = unicode_tables()
    ascii_ = np.arange(256, dtype=np.uint8)
    ascii_[:128] = unicode.lower[:128]
    if tokenizer == "words":
        ascii_[:128][unicode.kind[:128] != LETTER] = SEPARATOR_BYTE
    ascii_[ord(" ")] = SEPARATOR_BYTE
    offsets = np.cumsum([0, *map(len, words)]).astype(np.int64)
    pool = np.frombuffer(bytearray(b"".join(words) or b"\0"), np.uint8)
    hashes = hash_words(pool, offsets)
    slots = np.full(1 << max(4, (4 * len(words)).bit_length()), FREE, np.int32)
    put_words(slots, hashes, len(words))
    bits = np.zeros(max(_FILTER, 8 * len(slots)) // 64, np.uint64)
    marks = hashes ^ (hashes >> np.uint64(32))
    places = (marks >> np.uint64(6)) & np.uint64(len(bits) - 1)
    np.bitwise_or.at(bits, places.astype(np.int64), np.uint64(1) << (marks & np.uint64(63)))
    none = np.zeros(0, np.int32)
    arrays: dict[str, Any] = {
        "open": np.full(len(words), -1, np.int32),
        "lengths": np.zeros(0, np.uint32),
        "phrases_of": np.zeros(len(words) + 1, np.int32),
        "phrases": none.reshape(0, 4),
        "rest": none,
        **given,
    }
    fold = unicode.fold if tokenizer == "words" else unicode.lower
    pairs = np.stack([unicode.pairs, unicode.composed.astype(np.int64)], axis=1)
    return Table(
        letters=Letters(tokenizer == "words", unicode.kind, fold, pairs),
        lookup=Words(slots, hashes, offsets, pool),
        ascii=ascii_,
        bits=bits,
        longest=max(map(len, words), default=1),
        **arrays,
    )


def _lengths(prefixes: list[bytes]) -> np.ndarray:
    """For the first three bytes of a token (five bits of each), the lengths of the prefixes to try."""
    lengths = np.zeros((32, 32, 32) if prefixes else (0, 0, 0), np.uint32)  # by third, second, first byte
    for prefix in prefixes:
        corner = tuple(slice(None) if i >= len(prefix) else prefix[i] & 31 for i in (2, 1, 0))
        lengths[corner] |= np.uint32(1 << min(len(prefix), 31))
    return lengths.reshape(-1)


def count_documents(
    docs: Docs,
    matcher: Matcher,
    *,
    progress: Progress | None = None,
    skip: int = 0,
    duplicates: DuplicateCheck | None = None,
) -> Iterator[pa.RecordBatch]:
    """One row per document, in the order of the collection: doc_id, tokens, counts, logwords.

    The first `skip` blocks are passed over: the cache has them. `duplicates` is shown the ids of the others.
    """

    def work(numbered: tuple[int, Block]) -> tuple[pa.RecordBatch | None, int]:
        number, block = numbered
        if number < skip:
            return None, block.size
        batch = block.read()
        if duplicates is not None:
            duplicates.add(batch.column("doc_id"))
        return count_batch(batch, matcher), block.size

    done = 0
    for batch, size in in_order(work, enumerate(docs.blocks()), threads=cores()):
        done += size
        if progress:
            progress(done, docs.size)
        if batch is not None:
            yield batch


def count_unique(
    docs: Docs, matcher: Matcher, *, progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of all documents; an id that occurs twice is an error, raised behind the last of them."""
    duplicates = DuplicateCheck()
    yield from count_documents(docs, matcher, progress=progress, duplicates=duplicates)
    duplicates.finish(docs)


def unique(rows: Iterable[pa.RecordBatch], docs: Docs) -> Iterator[pa.RecordBatch]:
    """The same rows; a document id that occurs twice is an error, raised behind the last of them."""
    duplicates = DuplicateCheck()
    for batch in rows:
        duplicates.add(batch.column(0))
        yield batch
    duplicates.finish(docs)


def count_batch(batch: pa.RecordBatch, matcher: Matcher) -> pa.RecordBatch:
    """The rows of the tally for one batch of documents."""
    found = matcher.count(batch.column("text"))
    columns = [batch.column("doc_id"), arrow_numbers(found.tokens)]
    columns += [arrow_numbers(found.counts[:, g]) for g in range(len(matcher.groups))]
    columns += [arrow_numbers(found.logwords[:, g]) for g in range(len(matcher.groups))]
    names = ["doc_id", "tokens", *matcher.groups, *(f"{group}_logwords" for group in matcher.groups)]
    return pa.RecordBatch.from_arrays(columns, names)
