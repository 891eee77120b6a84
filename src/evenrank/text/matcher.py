"""The matcher: a lexicon compiled for one tokenizer, ready to be found in text."""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.text import kernel, layout
from evenrank.text.addresses import addresses, strings
from evenrank.text.compiling import compile_entries, entries_of, memberships_of
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.tokenizer import Tokenizer, check_tokenizer

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
        ``words`` or ``whitespace``, see :func:`evenrank.text.tokenizer.tokens`.
    """

    def __init__(self, source: Source, tokenizer: str = "words") -> None:
        self.lexicon = lexicon(source)
        self.tokenizer: Tokenizer = check_tokenizer(tokenizer)
        self.groups = tuple(self.lexicon.groups)
        self.unicode_version = unicodedata.unidata_version
        self._entries = entries_of(self.lexicon, self.tokenizer)
        self._table = compile_entries(self._entries, self.tokenizer)
        memberships = memberships_of(self._entries, self.lexicon.overlapping)
        self._groups = np.array([g for groups in memberships for g in groups], np.int64)
        self._group_starts = np.cumsum([0, *map(len, memberships)]).astype(np.int64)
        self._longest = max(len(token) for entry in self._entries for token in entry.tokens)

    def count(self, texts: pa.Array | Sequence[str], *, threads: int = 1) -> Counts:
        """Count tokens and the words of each group in every text; a null text is an empty one."""
        array = strings(texts)
        size = len(array)
        found = self._outputs(size)
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


def cores() -> int:
    """How many threads this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
