"""The byte kernel: finds the entries of a lexicon in UTF-8 text, 64 bytes at a step.

Two halves. `_runs` reads a document in chunks of 64 bytes; each chunk becomes a bit mask of token bytes,
and the edges in the mask are the tokens' starts and ends, so that the branch predictor is asked once per
token and not once per letter. A token's first eight bytes, lower-cased by one OR, are hashed; the few
tokens whose hash is that of an entry are handed on, with those that hold characters beyond ASCII.
`_look_up` then folds them and compares them with the entries byte by byte, and remembers what it found
for short tokens, since most of what a text says it says again.

Everything here is a free function on the arrays of :mod:`evenrank.text.layout`.
"""

from __future__ import annotations

import numpy as np

from evenrank.arithmetic import log1p, log_of
from evenrank.text.codepoints import (
    byte_at,
    compiled,
    high_mask,
    load8,
    lowest_bit,
    next_piece,
    next_word,
    pieces_mask,
    words_mask,
)
from evenrank.text.layout import (
    CARRY,
    ENTRY,
    FIRST_PHRASE,
    GOES_ON,
    HITS,
    KEY,
    LAST_PHRASE,
    LONG,
    M_ENTRY,
    M_KEY,
    M_REST,
    M_SIZE,
    MEMO,
    NONE,
    OFFSET,
    OPEN_AT,
    OPEN_HIGH,
    P_ENTRY,
    P_OFFSET,
    P_OPEN,
    P_SIZE,
    P_TOKENS,
    PHRASE_END,
    SIZE,
    TOKEN_END,
    TOUCHED,
    UNKNOWN,
)

_ONE, _ZERO = np.uint64(1), np.uint64(0)
_CASE = np.uint64(0x2020202020202020)
_FIVE = np.uint64(0xFFFFFFFFFF)
_LOGARITHMS = log1p(np.arange(64))
_MIX_KEY, _MIX_LENGTH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)

_log = compiled(log_of)


@compiled
def hash_key(key, size):
    mixed = (np.uint64(key) ^ (np.uint64(size) * _MIX_LENGTH)) * _MIX_KEY
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def is_marked(bits, hashed):
    """One or zero: the bit for the upper 18 bits of a hash."""
    mark = hashed >> np.uint64(46)
    return (bits[mark >> np.uint64(6)] >> (mark & np.uint64(63))) & _ONE


@compiled
def stem_hash(key):
    """The hash of the first five bytes."""
    return hash_key(np.uint64(key) & _FIVE, 5)


@compiled
def _corner(key):
    """Five bits of each of the first four bytes."""
    key, five = np.uint64(key), np.uint64(31)
    second = ((key >> np.uint64(8)) & five) << np.uint64(5)
    third = ((key >> np.uint64(16)) & five) << np.uint64(10)
    fourth = ((key >> np.uint64(24)) & five) << np.uint64(15)
    return (key & five) | second | third | fourth


@compiled
def _loose_key(address, size):
    """The first eight bytes at an address, or `size` if fewer, lower-cased by force: exact for letters."""
    spare = np.uint64(64 - 8 * min(size, 8))
    return ((load8(address) | _CASE) << spare) >> spare


@compiled
def _runs(words, bits, stems, corners, prefixed, start, end, position, runs, state):
    """Collect the candidate tokens of the text at start:end from a position on.

    Returns the tokens counted, the candidates found, and the position reached, which is before the end
    only if `runs` is full. Tokens beyond ASCII are left for `_look_up` to count.
    """
    tokens, found = 0, 0
    limit = len(runs) - 64
    cornered = len(corners) > 1
    carry = np.uint64(state[CARRY])  # was the byte before this chunk a token byte …
    open_at = state[OPEN_AT]  # … then its run began here …
    open_high = state[OPEN_HIGH] != 0  # … and does it hold characters beyond ASCII
    while (position < end or carry != _ZERO) and found < limit:
        mask = words_mask(position) if words else pieces_mask(position)
        high = high_mask(position)
        if end - position < 64:
            inside = (_ONE << np.uint64(end - position)) - _ONE
            mask &= inside
            high &= inside
        shifted = (mask << _ONE) | carry
        starts, ends = mask & ~shifted, shifted & ~mask
        opened = carry != _ZERO
        while ends != _ZERO:
            begin, stop = np.int64(0) if opened else lowest_bit(starts), lowest_bit(ends)
            first, last = open_at if opened else position + begin, position + stop
            size = last - first
            beyond = (open_high and opened) or (
                high != _ZERO
                and (high >> np.uint64(begin)) & ((_ONE << np.uint64(stop - begin)) - _ONE) != _ZERO
            )
            starts = starts if opened else starts & (starts - _ONE)
            ends &= ends - _ONE
            opened = False
            if beyond:
                runs[found, 0], runs[found, 1], runs[found, 2] = first, last, 1
                found += 1
                continue
            if size == 1 and words:
                before = first > start and byte_at(first - 1) == 0x27
                if before or (last < end and byte_at(last) == 0x27):
                    continue  # one letter beside an apostrophe
            tokens += 1
            key = _loose_key(first, size)
            candidate = is_marked(bits, hash_key(key, size))
            if prefixed:
                candidate |= is_marked(stems, stem_hash(key))
            if cornered:
                corner = _corner(key)
                candidate |= (corners[corner >> np.uint64(6)] >> (corner & np.uint64(63))) & _ONE
            # Written in any case and kept or not: a branch here would be guessed wrong too often.
            runs[found, 0], runs[found, 1], runs[found, 2] = first, last, 0
            found += np.int64(candidate)
        carry = mask >> np.uint64(63)
        if starts != _ZERO:
            begin = lowest_bit(starts)
            open_at = position + begin
            open_high = (high >> np.uint64(begin)) != _ZERO
        else:
            open_high = carry != _ZERO and (open_high or high != _ZERO)
        position += 64
    state[CARRY], state[OPEN_AT], state[OPEN_HIGH] = np.int64(carry), open_at, np.int64(open_high)
    return tokens, found, position if carry != _ZERO else min(position, end)


@compiled
def _next_token(table, start, position, stop, end, token):
    if table.words:
        return next_word(table.kind, table.fold, table.pairs, start, position, stop, end, token)
    return next_piece(table.fold, position, stop, token)


@compiled
def _packed(token, size):
    key = _ZERO
    for i in range(min(size, 8)):
        key |= np.uint64(token[i]) << np.uint64(8 * i)
    return np.int64(key)


@compiled
def _same(token, size, pool, offset):
    for i in range(size):  # noqa: SIM110 (numba has no generators to spare)
        if token[i] != pool[offset + i]:
            return False
    return True


@compiled
def _slot(slots, pool, key, token, size):
    """The row of a folded token in a hash table, or -1; a hit is compared in all its bytes.

    The first eight are the key, so that `token` is looked at only if there are more.
    """
    last = np.int64(len(slots) - 1)
    slot = np.int64(hash_key(key, size)) & last
    while slots[slot, SIZE] != 0:
        if (
            slots[slot, KEY] == key
            and slots[slot, SIZE] == size
            and (size <= 8 or _same(token, size, pool, slots[slot, OFFSET]))
        ):
            return slot
        slot = (slot + 1) & last
    return np.int64(-1)


@compiled
def _prefix(prefixes, lengths_of, pool, key, token, size):
    """The entry of the longest prefix of a folded token, or -1."""
    lengths = lengths_of[_corner(key)]
    for length in range(min(size, len(token)), 0, -1):
        if (lengths >> min(length, LONG)) & 1:
            part = key if length >= 8 else key & ((np.int64(1) << (8 * length)) - 1)
            slot = _slot(prefixes, pool, part, token, length)
            if slot >= 0:
                return prefixes[slot, ENTRY]
    return np.int64(-1)


@compiled
def _phrase(table, start, position, end, slot, scratch):
    """The longest phrase that goes on behind a token: (entry, where it ends), or (-1, …)."""
    first, last = table.slots[slot, FIRST_PHRASE], table.slots[slot, LAST_PHRASE]
    token, ahead, marks = scratch.token, scratch.ahead, scratch.marks
    found, length = 0, 0
    while found < table.phrases[first, P_TOKENS]:  # the phrase with the most tokens stands first
        at, position, size = _next_token(table, start, position, end, end, token)
        if at < 0:
            break
        size = min(size, len(token))  # cut or not, longer than any token of an entry
        for i in range(size):
            ahead[length + i] = token[i]
        ahead[length + size] = TOKEN_END
        length += size + 1
        marks[found, 0], marks[found, 1] = length, position
        found += 1
    for phrase in range(first, last):
        tokens, size = table.phrases[phrase, P_TOKENS], table.phrases[phrase, P_SIZE]
        if tokens > found:
            continue
        length = marks[tokens - 1, 0]
        fits = size <= length if table.phrases[phrase, P_OPEN] else size == length
        if fits and _same(ahead, size, table.pool, table.phrases[phrase, P_OFFSET]):
            return table.phrases[phrase, P_ENTRY], marks[tokens - 1, 1]
    return np.int64(-1), position


@compiled
def _lower(first, last, token):
    """Fold a token of ASCII bytes."""
    for i in range(min(last - first, len(token))):
        byte = byte_at(first + i)
        token[i] = byte | 0x20 if 0x41 <= byte <= 0x5A else byte


@compiled
def _entry(table, key, token, size):
    """The entry of a folded token, a word or else a prefix, and the slot of the word, or -1 for each."""
    slot = np.int64(-1)
    if size < len(token):
        slot = _slot(table.slots, table.pool, key, token, size)
    if slot >= 0:
        return table.slots[slot, ENTRY], slot
    if len(table.prefixes) > 1:
        return _prefix(table.prefixes, table.lengths, table.pool, key, token, size), slot
    return np.int64(NONE), slot


@compiled
def _recall(memo, place, key, rest, size):
    """The entry of a word met before, or UNKNOWN."""
    if memo[place, M_KEY] == key and memo[place, M_REST] == rest and memo[place, M_SIZE] == size:
        return memo[place, M_ENTRY]
    return np.int64(UNKNOWN)


@compiled
def _learn(table, at, last, token, memo, place, key, rest):
    """Look an ASCII word of at most 16 bytes up, and remember its entry."""
    size = last - at
    _lower(at, last, token)
    entry, slot = _entry(table, key, token, size)
    if slot >= 0 and table.slots[slot, LAST_PHRASE] > table.slots[slot, FIRST_PHRASE]:
        entry = np.int64(GOES_ON)
    memo[place, M_KEY], memo[place, M_REST], memo[place, M_SIZE], memo[place, M_ENTRY] = (
        key,
        rest,
        size,
        entry,
    )
    return entry


@compiled
def _note(entry, row, first, last, seen, spans, state):
    """Count one hit, and where it stands if that is wanted."""
    if seen[entry, 0] == 0:
        seen[state[TOUCHED], 1] = entry
        state[TOUCHED] += 1
    seen[entry, 0] += 1
    hit = state[HITS]
    if hit < len(spans):
        spans[hit, 0], spans[hit, 1], spans[hit, 2], spans[hit, 3] = row, entry, first, last
    state[HITS] = hit + 1


@compiled
def _look_up(table, start, end, found, row, scratch):
    """Find the entries in the first `found` runs and note them; returns the tokens not yet counted."""
    slots, words = table.slots, table.words
    runs, token, memo = scratch.runs, scratch.token, scratch.memo
    seen, spans, state = scratch.seen, scratch.spans, scratch.state
    tokens = 0
    for run in range(found):
        position, last, beyond = runs[run, 0], runs[run, 1], runs[run, 2]
        if words and not beyond and last - position <= 16:
            if position < state[PHRASE_END]:
                continue
            size = last - position
            key = np.int64(_loose_key(position, size))
            rest = np.int64(_loose_key(position + 8, size - 8)) if size > 8 else np.int64(0)
            place = np.int64(hash_key(key + rest, size)) & np.int64(MEMO - 1)
            entry = _recall(memo, place, key, rest, size)
            if entry == UNKNOWN:  # the whole table goes on the stack for this call
                entry = _learn(table, position, last, token, memo, place, key, rest)
            if entry >= 0:
                _note(entry, row, position - start, last - start, seen, spans, state)
            if entry != GOES_ON:
                continue
        while position < last:
            if not beyond:
                at, position, size = position, last, last - position
                _lower(at, last, token)
            else:
                at, position, size = _next_token(table, start, position, last, end, token)
                if at < 0:
                    break
                tokens += 1
            if at < state[PHRASE_END]:
                continue
            entry, slot = _entry(table, _packed(token, size), token, size)
            stop = position
            if slot >= 0 and slots[slot, LAST_PHRASE] > slots[slot, FIRST_PHRASE]:
                phrase, phrase_end = _phrase(table, start, position, end, slot, scratch)
                if phrase >= 0:
                    entry, stop = phrase, phrase_end
                    state[PHRASE_END] = stop
            if entry >= 0:
                _note(entry, row, at - start, stop - start, seen, spans, state)
    return tokens


@compiled
def _scan(table, start, end, row, scratch):
    """Find all entries in one text, into scratch.seen; returns its number of tokens."""
    state, runs = scratch.state, scratch.runs
    words, bits, stems, corners = table.words, table.bits, table.stems, table.corners
    prefixed = len(table.prefixes) > 1
    tokens, position = 0, start
    state[TOUCHED] = state[PHRASE_END] = state[CARRY] = 0
    while position < end or state[CARRY]:
        here, found, position = _runs(
            words, bits, stems, corners, prefixed, start, end, position, runs, state
        )
        tokens += here
        if found:
            tokens += _look_up(table, start, end, found, row, scratch)
    return tokens


@compiled
def count(table, groups, group_starts, starts, ends, scratch, tokens, counts, logwords):
    """Fill tokens[n], counts[n, groups] and logwords[n, groups] for the n texts at starts:ends.

    Starts and ends are addresses in memory, and PADDING bytes behind each end must be readable. The
    groups of entry e are groups[group_starts[e]:group_starts[e + 1]].
    """
    state, seen = scratch.state, scratch.seen
    for row in range(len(starts)):
        tokens[row] = _scan(table, starts[row], ends[row], row, scratch)
        for i in range(state[TOUCHED]):
            entry = seen[i, 1]
            times = seen[entry, 0]
            seen[entry, 0] = 0
            logarithm = _LOGARITHMS[times] if times < len(_LOGARITHMS) else _log(1.0 + times)
            for j in range(group_starts[entry], group_starts[entry + 1]):
                counts[row, groups[j]] += times
                logwords[row, groups[j]] += logarithm


@compiled
def collect(table, starts, ends, scratch, bounds, entries, times):
    """The entries found in each of n texts, and how often: those of text i are bounds[i]:bounds[i + 1]."""
    state, seen, found = scratch.state, scratch.seen, 0
    for row in range(len(starts)):
        _scan(table, starts[row], ends[row], row, scratch)
        for i in range(state[TOUCHED]):
            entry = seen[i, 1]
            entries[found + i] = entry
            times[found + i] = seen[entry, 0]
            seen[entry, 0] = 0
        found += state[TOUCHED]
        bounds[row + 1] = found


@compiled
def fill_slots(slots, pool, offsets):
    """Put token i, pool[offsets[i]:offsets[i + 1]], into an empty hash table with entry i."""
    last = np.int64(len(slots) - 1)
    for i in range(len(offsets) - 1):
        size = offsets[i + 1] - offsets[i]
        key = _ZERO
        for j in range(min(size, 8)):
            key |= np.uint64(pool[offsets[i] + j]) << np.uint64(8 * j)
        slot = np.int64(hash_key(key, size)) & last
        while slots[slot, SIZE] != 0:
            slot = (slot + 1) & last
        slots[slot, KEY], slots[slot, SIZE], slots[slot, OFFSET] = np.int64(key), size, offsets[i]
        slots[slot, ENTRY] = i
