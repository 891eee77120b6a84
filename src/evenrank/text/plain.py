"""The matcher in plain Python: for a few texts, which are counted before the compiled kernel is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evenrank.arithmetic import log_of
from evenrank.text.tokens import Tokenizer, tokens

ENOUGH = 1 << 20
"""Bytes that are counted here; for more the kernel (half a second to load) is the quicker way."""
SLOW = 16
"""A byte beyond ASCII counts as many: its text is cut character by character."""


class PlainMatcher:
    """Finds entries token by token, as :class:`evenrank.text.matcher.Matcher` says, as the kernel does."""

    def __init__(
        self,
        entries: Sequence[tuple[tuple[bytes, ...], bool]],
        memberships: Sequence[Sequence[int]],
        tokenizer: Tokenizer,
    ) -> None:
        self._tokenizer = tokenizer
        self._memberships = memberships
        self._words: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[list[str], bool, int]]] = {}
        for number, (parts, is_open) in enumerate(entries):
            first, *rest = (part.decode() for part in parts)
            if rest:
                self._phrases.setdefault(first, []).append((rest, is_open, number))
            elif is_open:
                self._prefixes[first] = number
            else:
                self._words[first] = number
        for phrases in self._phrases.values():  # most tokens first, whole before open, long before short
            phrases.sort(key=lambda phrase: (-len(phrase[0]), phrase[1], -len(phrase[0][-1].encode())))
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def count(
        self, texts: Iterable[str | None], size: np.ndarray, counts: np.ndarray, logwords: np.ndarray
    ) -> None:
        """Fill size[n], counts[n, groups] and logwords[n, groups], as the kernel would."""
        for row, text in enumerate(texts):
            found = tokens(text or "", self._tokenizer)
            size[row] = len(found)
            for entry, times in self._entries(found).items():
                logarithm = log_of(1.0 + times)
                for group in self._memberships[entry]:
                    counts[row, group] += times
                    logwords[row, group] += logarithm

    def _entries(self, found: list[str]) -> dict[int, int]:
        """How often each entry is there, in the order in which they first occur."""
        seen: dict[int, int] = {}
        if not (self._prefixes or self._phrases):
            words = self._words
            for token in found:
                if token in words:
                    entry = words[token]
                    seen[entry] = seen.get(entry, 0) + 1
            return seen
        place = 0
        while place < len(found):
            match, width = self._at(found, place)
            if match is not None:
                seen[match] = seen.get(match, 0) + 1
            place += width
        return seen

    def _at(self, found: list[str], place: int) -> tuple[int | None, int]:
        """The entry at a token, if any, and how many tokens it takes."""
        token = found[place]
        for rest, is_open, number in self._phrases.get(token, ()):
            there = found[place + 1 : place + 1 + len(rest)]
            if len(there) == len(rest) and there[:-1] == rest[:-1]:
                last = there[-1]
                if last.startswith(rest[-1]) if is_open else last == rest[-1]:
                    return number, 1 + len(rest)
        if token in self._words:
            return self._words[token], 1
        for length in self._lengths:
            if length <= len(token) and (number := self._prefixes.get(token[:length], -1)) >= 0:
                return number, 1
        return None, 1
