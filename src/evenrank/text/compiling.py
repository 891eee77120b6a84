"""A lexicon as the arrays of the kernel: entries for one tokenizer, hash tables, filters before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

import numpy as np

from evenrank.errors import InputError
from evenrank.text import layout
from evenrank.text.lexicon import Lexicon
from evenrank.text.tokens import Tokenizer, tokens, unicode_tables

_MIX = 0x9E3779B97F4A7C15
_COMMON = """the of and in to a was is for on as by with that it from at his an are be were he this which or
also has its had their not have but one been they who first all after new other can two when more some into
time there such most may during only up over about used no would than between made these so where many out
her she him them then we you i s t 1 2 3"""
_WHOLE = 8  # words, and prefixes of so many bytes, are told by a hash of their first eight
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
    stems = {prefix[:_STEM] for prefix in prefixes if _STEM <= len(prefix) < _WHOLE}
    short = [prefix for prefix in prefixes if len(prefix) < _STEM]
    if words:  # a short prefix is a few dozen stems, a very short one too many
        stems.update(stem for prefix in short if len(prefix) >= _STEM - 2 for stem in _extended(prefix))
        short = [prefix for prefix in short if len(prefix) < _STEM - 2]
    long = [prefix for prefix in prefixes if len(prefix) >= _WHOLE]  # as good as words, by their first bytes
    beginnings = {form[:_WHOLE] for token in [*slots, *long] for form in (token, _loosened(token))}
    bits, marked_stems, salt = _filters(beginnings, {_loosened(stem) for stem in stems})
    return layout.Table(
        words=words,
        bits=bits,
        salt=salt,
        stems=marked_stems,
        corners=_corners(short),
        slots=_hash_table(slots, pool),
        phrases=np.array(phrases, np.int64).reshape(-1, 5),
        lengths=np.bitwise_or.reduce(_lengths(prefixes).reshape(32, -1), axis=0),  # whatever the fourth
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
        bits=np.full(1, np.iinfo(np.uint64).max, np.uint64),
        salt=np.uint64(_MIX),
        stems=np.zeros(1, np.uint64),
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
    from evenrank.text.entries import hash_key  # loads numba

    return int(hash_key(_packed(token), len(token)))


def _loosened(token: bytes) -> bytes:
    """What the kernel's quick path makes of a token."""
    return bytes(byte | 0x20 for byte in token)


def _extended(prefix: bytes) -> list[bytes]:
    """Every beginning of an ASCII word that this prefix can grow into, as long as a stem or a whole word."""
    if len(prefix) == _STEM:
        return [prefix]
    return [prefix, *(stem for letter in _ALPHABET for stem in _extended(prefix + bytes([letter])))]


def _filters(beginnings: Set[bytes], stems: Set[bytes]) -> tuple[np.ndarray, np.ndarray, np.uint64]:
    """A bit for each beginning, one for each stem, and the salt of their hashes.

    Of a few salts the one by which the fewest of the commonest words look as if they were entries.
    """
    common = [word for word in _COMMON.split() if word.encode() not in beginnings]

    def mistaken(salt: int) -> int:
        marks = ({_mark(each, salt, _words(of)) for each in of} for of in (beginnings, stems))
        whole, begun = marks
        return sum(
            _mark(word.encode()[:8], salt, _words(beginnings)) in whole
            or _mark(word.encode()[:_STEM], salt, _words(stems)) in begun
            for word in common
        )

    salt = min((_MIX + 2 * i for i in range(8)), key=mistaken)
    return _bits(beginnings, salt), _bits(stems, salt), np.uint64(salt)


def _words(beginnings: Set[bytes]) -> int:
    """Of 64 bits each: the fewer beginnings there are, the fewer."""
    return min(max(1 << (4 * len(beginnings)).bit_length(), 1 << 9), 1 << 12)


def _mark(beginning: bytes, salt: int, words: int) -> tuple[int, int]:
    """The word and the bit in it for a beginning of up to eight bytes."""
    mixed = int.from_bytes(beginning, "little") * salt % (1 << 64)
    return (mixed >> 52) % words, (mixed >> 46) & 63


def _bits(beginnings: Set[bytes], salt: int) -> np.ndarray:
    bits = np.zeros(_words(beginnings), np.uint64)
    for each in beginnings:
        word, bit = _mark(each, salt, len(bits))
        bits[word] |= np.uint64(1 << bit)
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
