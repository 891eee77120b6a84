"""The matcher: a lexicon compiled for one tokenizer, found in texts, and in whole collections by threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data.columns import Block
from evenrank.data.docs import DuplicateCheck
from evenrank.data.tables import Docs
from evenrank.errors import InputError
from evenrank.process import cores, in_order
from evenrank.text import layout
from evenrank.text.layout import addresses, arrow_numbers, strings
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokens import (
    ENOUGH,
    SLOW,
    PlainMatcher,
    Tokenizer,
    check_tokenizer,
    tokens,
    unicode_tables,
)

_STEM = 5  # prefixes of so many bytes are told by a hash of them, shorter ones by their letters


_ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789"


class Entry(NamedTuple):
    """A word, a phrase or a prefix, as the tokenizer sees it."""

    spelling: str  # as in the lexicon
    tokens: tuple[bytes, ...]
    open: bool  # matches by prefix
    groups: frozenset[int]


def entries_of(source: Lexicon, tokenizer: Tokenizer) -> list[Entry]:
    """The lexicon's words as token sequences; the same sequence in two groups is merged or refused."""
    found: dict[tuple[tuple[bytes, ...], bool], Entry] = {}
    for number, (group, words) in enumerate(source.groups.items()):
        for word in words:
            is_open = word.endswith("*")
            parts = tuple(t.encode() for t in tokens(word.removesuffix("*"), tokenizer))
            if not parts:
                raise InputError(
                    f"lexicon {source.name}: the entry {word!r} of group {group!r} has no token; remove it"
                )
            before = found.get((parts, is_open))
            if before is None:
                found[parts, is_open] = Entry(word, parts, is_open, frozenset([number]))
            elif number not in before.groups:
                if not source.overlapping:
                    other = list(source.groups)[min(before.groups)]
                    raise InputError(
                        f"lexicon {source.name}: {word!r} is in group {group!r} and, as {before.spelling!r}, "
                        f"in {other!r}; a word belongs to one group"
                    )
                found[parts, is_open] = before._replace(groups=before.groups | {number})
    return list(found.values())


def _covering(token: bytes, prefixes: Mapping[bytes, int]) -> list[int]:
    """The prefix entries that match a token, the longest first."""
    return [prefixes[token[:n]] for n in range(len(token), 0, -1) if token[:n] in prefixes]


def _prefixes(entries: list[Entry]) -> dict[bytes, int]:
    return {e.tokens[0]: i for i, e in enumerate(entries) if len(e.tokens) == 1 and e.open}


def memberships_of(entries: list[Entry], overlapping: bool) -> list[list[int]]:
    """The groups of each entry; where groups overlap, also those of the prefixes that cover it."""
    prefixes = _prefixes(entries)
    memberships = []
    for entry in entries:
        groups = set(entry.groups)
        if overlapping and len(entry.tokens) == 1:
            groups.update(*(entries[i].groups for i in _covering(entry.tokens[0], prefixes)))
        memberships.append(sorted(groups))
    return memberships


def compile_entries(entries: list[Entry], tokenizer: Tokenizer) -> layout.Table:
    """Lay the entries out as the arrays of the kernel."""
    pool = bytearray()
    prefixes = _prefixes(entries)
    exact = {e.tokens[0]: i for i, e in enumerate(entries) if len(e.tokens) == 1 and not e.open}
    order = [i for i, e in enumerate(entries) if len(e.tokens) > 1]
    order.sort(key=lambda i: _longest_first(entries[i]))
    bounds: dict[bytes, tuple[int, int]] = {}  # first token → its phrases
    for place, i in enumerate(order):
        first = entries[i].tokens[0]
        bounds[first] = (bounds.get(first, (place, 0))[0], place + 1)
    slots = {
        token: (exact.get(token, next(iter(_covering(token, prefixes)), -1)), *bounds.get(token, (0, 0)))
        for token in [*exact, *bounds]
    }
    end = bytes([layout.TOKEN_END])
    phrases = []
    for i in order:
        entry = entries[i]
        rest = end.join(entry.tokens[1:]) + (b"" if entry.open else end)
        phrases.append((_add(pool, rest), len(rest), len(entry.tokens) - 1, int(entry.open), i))
    unicode = unicode_tables()
    words = tokenizer == "words"
    stems = {prefix[:_STEM] for prefix in prefixes if len(prefix) >= _STEM}
    short = [prefix for prefix in prefixes if len(prefix) < _STEM]
    if words:  # a short prefix is a few dozen stems, a very short one too many
        stems.update(stem for prefix in short if len(prefix) >= _STEM - 2 for stem in _extended(prefix))
        short = [prefix for prefix in short if len(prefix) < _STEM - 2]
    return layout.Table(
        words=words,
        bits=_bits(_hash(form) for token in slots for form in (token, _loosened(token))),
        stems=_bits(_stem_hash(stem) for stem in stems),
        corners=_corners(short),
        slots=_hash_table(slots, pool),
        phrases=np.array(phrases, np.int64).reshape(-1, 5),
        lengths=_lengths(prefixes),
        prefixes=_hash_table({token: (i, 0, 0) for token, i in prefixes.items()}, pool),
        pool=np.frombuffer(bytes(pool), np.uint8),
        kind=unicode.kind,
        fold=unicode.fold if words else unicode.lower,
        pairs=np.stack([unicode.pairs, unicode.composed.astype(np.int64)], axis=1),
    )


def every_word_table(slots: np.ndarray, pool: np.ndarray) -> layout.Table:
    """A table of words alone, so many that each token is looked up."""
    unicode = unicode_tables()
    return layout.Table(
        words=True,
        bits=np.full(1 << 12, np.iinfo(np.uint64).max, np.uint64),
        stems=_bits(()),
        corners=_corners([]),
        slots=slots,
        phrases=np.zeros((0, 5), np.int64),
        lengths=np.zeros(1, np.uint32),
        prefixes=np.zeros((1, 6), np.int64),
        pool=pool,
        kind=unicode.kind,
        fold=unicode.fold,
        pairs=np.stack([unicode.pairs, unicode.composed.astype(np.int64)], axis=1),
    )


def _longest_first(phrase: Entry) -> tuple[bytes, int, bool, int]:
    """Phrases of one first token together: most tokens first, exact before open, long before short."""
    return phrase.tokens[0], -len(phrase.tokens), phrase.open, -len(phrase.tokens[-1])


def _add(pool: bytearray, piece: bytes) -> int:
    pool += piece
    return len(pool) - len(piece)


def _packed(token: bytes) -> int:
    """The first eight bytes as a signed integer."""
    return int.from_bytes(token[:8].ljust(8, b"\0"), "little", signed=True)


def _hash(token: bytes) -> int:
    from evenrank.text import kernel  # loads numba

    return int(kernel.hash_key(_packed(token), len(token)))


def _stem_hash(stem: bytes) -> int:
    from evenrank.text import kernel

    return int(kernel.stem_hash(_packed(_loosened(stem))))


def _loosened(token: bytes) -> bytes:
    """What the kernel's quick path makes of a token."""
    return bytes(byte | 0x20 for byte in token)


def _extended(prefix: bytes) -> list[bytes]:
    """Every beginning of an ASCII word that this prefix can grow into, as long as a stem or a whole word."""
    if len(prefix) == _STEM:
        return [prefix]
    return [prefix, *(stem for letter in _ALPHABET for stem in _extended(prefix + bytes([letter])))]


def _bits(hashes: Iterable[int]) -> np.ndarray:
    """One bit for the upper 18 bits of each hash."""
    bits = np.zeros(1 << 12, np.uint64)
    for each in hashes:
        mark = each >> 46
        bits[mark >> 6] |= np.uint64(1 << (mark & 63))
    return bits


def _hash_table(rows: Mapping[bytes, tuple[int, int, int]], pool: bytearray) -> np.ndarray:
    """Open addressing, at most a quarter full; see the columns of `slots` in the kernel."""
    size = 1 << (4 * len(rows)).bit_length() if rows else 1
    table = np.zeros((size, 6), np.int64)
    for token, values in rows.items():
        slot = _hash(token) & (size - 1)
        while table[slot, layout.SIZE]:
            slot = (slot + 1) & (size - 1)
        table[slot] = (_packed(token), len(token), _add(pool, token), *values)
    return table


def _lengths(prefixes: Iterable[bytes]) -> np.ndarray:
    """For the first four letters of a token (five bits of each), the lengths of the prefixes to try."""
    lengths = np.zeros((32, 32, 32, 32), np.uint32)  # by fourth, third, second and first letter
    for prefix in prefixes:
        corner = tuple(slice(None) if i >= len(prefix) else prefix[i] & 31 for i in (3, 2, 1, 0))
        lengths[corner] |= np.uint32(1 << min(len(prefix), layout.LONG))
    return lengths.reshape(-1)


def _corners(prefixes: list[bytes]) -> np.ndarray:
    """One bit for each four letters that begin with one of these prefixes."""
    if not prefixes:
        return np.zeros(1, np.uint64)  # never looked at
    return np.packbits(_lengths(prefixes) > 0, bitorder="little").view(np.uint64)


Source = Lexicon | str | os.PathLike[str] | Mapping[str, Iterable[str]]

_SLICE = 8192  # rows a thread takes at a time


class Counts(NamedTuple):
    """What the matcher found in n texts, for G groups."""

    tokens: np.ndarray  # int64[n]
    counts: np.ndarray  # int64[n, G]: occurrences of the words of a group
    logwords: np.ndarray  # float64[n, G]: Σ over the words w of a group of ln(1 + #(w, d))


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
        self._entries = entries_of(self.lexicon, self.tokenizer)
        self._memberships = memberships_of(self._entries, self.lexicon.overlapping)
        self._groups = np.array([g for groups in self._memberships for g in groups], np.int64)
        self._group_starts = np.cumsum([0, *map(len, self._memberships)]).astype(np.int64)
        self._counted = 0  # bytes, in plain Python
        self._longest = max(len(token) for entry in self._entries for token in entry.tokens)

    @cached_property
    def _table(self) -> layout.Table:
        return compile_entries(self._entries, self.tokenizer)

    @cached_property
    def _plain(self) -> PlainMatcher:
        entries = [(entry.tokens, entry.open) for entry in self._entries]
        return PlainMatcher(entries, self._memberships, self.tokenizer)

    def count(self, texts: pa.Array | Sequence[str], *, threads: int = 1) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        size = len(array)
        found = self._outputs(size)
        if self._is_little(array):
            self._plain.count(array.to_pylist(), *found)
            return found
        own = threading.local()  # working memory, which also remembers the tokens met before

        def work(first: int) -> None:
            rows = slice(first, min(first + _SLICE, size))
            if not hasattr(own, "scratch"):
                own.scratch = self._scratch()
            self._count(
                array[rows], found.tokens[rows], found.counts[rows], found.logwords[rows], own.scratch
            )

        if threads == 1 or size <= _SLICE:
            for first in range(0, size, _SLICE):
                work(first)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, range(0, size, _SLICE)))
        return found

    def _is_little(self, array: pa.Array) -> bool:
        """Is the kernel not loaded yet, and this so little, with all before, that it need not be?"""
        if "evenrank.text.kernel" in sys.modules or self._counted > ENOUGH:
            return False
        if array.nbytes > 16 * ENOUGH:
            return False
        if pa.types.is_string_view(array.type):  # Arrow cannot tell their lengths
            array = array.cast(pa.large_string())
        size = pc.sum(pc.binary_length(array)).as_py() or 0
        if size <= ENOUGH:
            letters = pc.sum(pc.utf8_length(array)).as_py() or 0
            size += SLOW * (size - letters)
        self._counted += size
        return self._counted <= ENOUGH

    def find(self, texts: pa.Array | Sequence[str]) -> pl.DataFrame:
        """Every hit: row, group, the word as the lexicon spells it, start and end in bytes."""
        array = strings(texts)
        outputs = self._outputs(len(array))
        hits = self._count(array, *outputs, self._scratch())  # a first pass, to know how many there are
        spans = np.zeros((hits, 4), np.int64)
        self._count(array, *outputs, self._scratch(spans))
        entry, starts = spans[:, 1], self._group_starts
        times = starts[entry + 1] - starts[entry]
        which = np.repeat(np.arange(hits), times)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
        names = np.array([*self.groups, ""], dtype=object)
        words = np.array([*(e.spelling for e in self._entries), ""], dtype=object)
        return pl.DataFrame(
            {
                "row": spans[which, 0],
                "group": names[self._groups[starts[entry[which]] + nth]],
                "word": words[entry[which]],
                "start": spans[which, 2],
                "end": spans[which, 3],
            },
            schema={
                "row": pl.Int64,
                "group": pl.String,
                "word": pl.String,
                "start": pl.Int64,
                "end": pl.Int64,
            },
        )

    def _outputs(self, size: int) -> Counts:
        shape = (size, len(self.groups))
        return Counts(np.zeros(size, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.float64))

    def _scratch(self, spans: np.ndarray | None = None) -> layout.Scratch:
        return layout.scratch(
            entries=len(self._entries),
            longest=self._longest,
            ahead=int(self._table.phrases[:, layout.P_TOKENS].max(initial=0)),
            spans=spans,
        )

    def _count(
        self,
        array: pa.Array,
        tokens: np.ndarray,
        counts: np.ndarray,
        logwords: np.ndarray,
        scratch: layout.Scratch,
    ) -> int:
        """Run the kernel over a string array; returns the number of hits."""
        from evenrank.text import kernel

        texts = addresses(array, layout.PADDING)
        kernel.count(
            self._table,
            self._groups,
            self._group_starts,
            texts.starts,
            texts.ends,
            scratch,
            tokens,
            counts,
            logwords,
        )
        return int(scratch.state[layout.HITS])


Progress = Callable[[int, int | None], None]


def count_documents(
    docs: Docs, matcher: Matcher, *, progress: Progress | None = None, skip: int = 0
) -> Iterator[pa.RecordBatch]:
    """One row per document, in the order of the collection: doc_id, tokens, counts, logwords.

    The first `skip` blocks are passed over: the cache has them.
    """

    def work(numbered: tuple[int, Block]) -> tuple[pa.RecordBatch | None, int]:
        number, block = numbered
        return None if number < skip else count_batch(block.read(), matcher), block.size

    done = 0
    for batch, size in in_order(work, enumerate(docs.blocks()), threads=cores()):
        done += size
        if progress:
            progress(done, docs.size)
        if batch is not None:
            yield batch


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
