"""The arrays of the byte kernel: a compiled lexicon, the working memory of a thread, and their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PADDING = 64  # bytes that may be read beyond the end of a text
TOKEN_END = 0xFF  # never a byte of UTF-8
LONG = 31  # prefixes of this length and more share a bit
MEMO = 4096  # tokens that are remembered, one in each place

# Columns of `slots` and `prefixes`, open-addressing hash tables of folded tokens; size 0 is a free slot.
KEY, SIZE, OFFSET, ENTRY, FIRST_PHRASE, LAST_PHRASE = range(6)
# Columns of `phrases`: the further tokens of a phrase in `pool`, their number, a prefix at the end?
P_OFFSET, P_SIZE, P_TOKENS, P_OPEN, P_ENTRY = range(5)
# Columns of `memo`: the first and the second eight bytes of a token, its size, and its entry (or NONE), or
# GOES_ON if the token may begin a phrase.
M_KEY, M_REST, M_SIZE, M_ENTRY = range(4)
NONE, GOES_ON, UNKNOWN = -1, -2, -3
# What `state` holds between calls.
TOUCHED, HITS, PHRASE_END, CARRY, OPEN_AT, OPEN_HIGH = range(6)


class Table(NamedTuple):
    """A compiled lexicon."""

    words: bool  # tokenizer `words`, else `whitespace`
    bits: np.ndarray  # uint64[2**12]: one bit for each 18-bit hash of a slot's token
    stems: np.ndarray  # uint64[2**12]: one bit for each 18-bit hash of the first five bytes of a prefix
    corners: np.ndarray  # uint64[2**14]: one bit for the first four letters of shorter prefixes; or one row
    slots: np.ndarray  # int64[·, 6]: words, and first tokens of phrases
    phrases: np.ndarray  # int64[·, 5]: those of one first token together, the longest first
    lengths: np.ndarray  # uint32[2**20]: by the first four letters, the lengths of prefixes to try
    prefixes: np.ndarray  # int64[·, 4]: one row if there is no prefix
    pool: np.ndarray  # uint8: all folded tokens
    kind: np.ndarray  # uint8, by code point: see tokenizer.Unicode
    fold: np.ndarray  # uint32, by code point
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | mark, and what they make


class Scratch(NamedTuple):
    """Working memory of one thread."""

    runs: np.ndarray  # int64[·, 3]: candidate tokens of a document: start, end, beyond ASCII?
    token: np.ndarray  # uint8: one folded token, as much of it as any entry has
    ahead: np.ndarray  # uint8: the folded tokens behind one that may begin a phrase
    marks: np.ndarray  # int64[·, 2]: where each of those ends in `ahead`, and in the document
    memo: np.ndarray  # int64[MEMO, 4]: the entries of tokens met before
    seen: np.ndarray  # int64[entries, 2]: hits in this document; and the entries that have any
    state: np.ndarray  # int64[6]
    spans: np.ndarray  # int64[·, 4]: row, entry, start, end of each hit; no rows when not wanted


def scratch(*, entries: int, longest: int, ahead: int = 0, spans: np.ndarray | None = None) -> Scratch:
    """Working memory for a table of so many entries, whose longest token and longest phrase are known."""
    room = longest + 4  # a token cut to this is longer than any entry's
    return Scratch(
        runs=np.empty((1024, 3), np.int64),
        token=np.zeros(room, np.uint8),
        ahead=np.zeros(ahead * (room + 1) + 1, np.uint8),
        marks=np.zeros((ahead + 1, 2), np.int64),
        memo=np.zeros((MEMO, 4), np.int64),
        seen=np.zeros((entries, 2), np.int64),
        state=np.zeros(6, np.int64),
        spans=np.zeros((0, 4), np.int64) if spans is None else spans,
    )
