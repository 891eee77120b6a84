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
from evenrank.data.files import allocate
from evenrank.data.tables import Docs
from evenrank.process import cores, in_order
from evenrank.text import layout
from evenrank.text.compiling import compile_entries, entries_of, memberships_of
from evenrank.text.layout import addresses, arrow_numbers, strings
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokens import (
    ENOUGH,
    SLOW,
    PlainMatcher,
    Tokenizer,
    check_tokenizer,
    unicode_tables,
)

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
        self._groups, self._group_starts = _end_to_end(self._memberships)
        self._counted = 0  # bytes, in plain Python
        self._own = threading.local()  # a thread's working memory, which remembers the tokens met before
        self._longest = max(len(token) for entry in self._entries for token in entry.tokens)

    def __reduce__(self) -> tuple[type[Matcher], tuple[Lexicon, Tokenizer]]:
        """Pickled and copied without the working memory of threads."""
        return Matcher, (self.lexicon, self.tokenizer)

    @cached_property
    def _table(self) -> layout.Table:
        return compile_entries(self._entries, self.tokenizer)

    @cached_property
    def _memberships_for_kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """For each entry, and for none, two groups, filled up by one that is not counted, and where those
        beyond two begin and end in the second array."""
        lists = [*self._memberships, []]
        filler = [len(self.groups)] * 2
        more, bounds = _end_to_end([groups[2:] for groups in lists])
        pairs = np.array([[*groups, *filler][:2] for groups in lists])
        return np.column_stack([pairs, bounds[:-1], bounds[1:]]).astype(np.int32), more

    @cached_property
    def _plain(self) -> PlainMatcher:
        entries = [(entry.tokens, entry.open) for entry in self._entries]
        return PlainMatcher(entries, self._memberships, self.tokenizer)

    def count(self, texts: pa.Array | Sequence[str], *, threads: int = 1) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        size = len(array)
        room = self._room(size)
        found = Counts(room.tokens, room.counts[:, :size].T, room.logwords[:, :size].T)
        if self._is_little(array):
            self._plain.count(array.to_pylist(), *found)
            return found

        def work(first: int) -> None:
            rows = slice(first, min(first + _SLICE, size))
            if not hasattr(self._own, "scratch"):
                self._own.scratch = self._scratch()
            self._count(array[rows], room, self._own.scratch, first)

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
        room = self._room(len(array))
        hits = self._count(array, room, self._scratch())  # a first pass, to know how many there are
        spans = np.zeros((hits, 4), np.int64)
        self._count(array, room, self._scratch(spans))
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

    def _room(self, size: int) -> Counts:
        """What the kernel writes to: group by group, the texts filled up to a multiple of eight."""
        shape = (len(self.groups), -(-size // 8) * 8)
        counts, logwords = (allocate(8 * shape[0] * shape[1]) for _ in range(2))
        return Counts(
            np.empty(size, np.int64),
            counts.view(np.int64).reshape(shape),
            logwords.view(np.float64).reshape(shape),
        )

    def _scratch(self, spans: np.ndarray | None = None) -> layout.Scratch:
        return layout.scratch(
            entries=len(self._entries),
            groups=len(self.groups),
            longest=self._longest,
            ahead=int(self._table.phrases[:, layout.P_TOKENS].max(initial=0)),
            spans=spans,
        )

    def _count(self, array: pa.Array, room: Counts, scratch: layout.Scratch, first: int = 0) -> int:
        """Run the kernel over a string array, and write from row `first` on; returns the number of hits."""
        from evenrank.text import kernel

        texts = addresses(array, layout.PADDING)
        kernel.count(
            self._table,
            *self._memberships_for_kernel,
            texts.starts,
            texts.ends,
            scratch,
            first,
            *room,
        )
        return int(scratch.state[layout.HITS])


def _end_to_end(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """All numbers in one array, and where each list begins and the last one ends."""
    return (
        np.array([number for each in lists for number in each], np.int64),
        np.cumsum([0, *map(len, lists)]).astype(np.int64),
    )


Progress = Callable[[int, int | None], None]


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
