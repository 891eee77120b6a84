"""The byte kernel: finds the entries of a lexicon in UTF-8 text, 64 bytes at a step.

Four steps, with few branches that the processor could guess wrong. `find_edges` makes a bit mask of the token
bytes of each 64; where the mask turns, tokens begin and end. `_choose` multiplies each token's first eight
bytes, lower-cased by one OR, into a hash, and keeps the few tokens whose hash is that of an entry. When this
is done for many texts, `_look_up` folds what was kept and compares it with the entries byte by byte, and
remembers what it found for short tokens, since most of what a text says it says again. `_note_all` counts the
hits of each text, and looks closer where a phrase may begin. `entries.py` knows the entries.

Everything here is a free function on the arrays of :mod:`evenrank.text.layout`.
"""

from __future__ import annotations

import math

import numpy as np

from evenrank.text.codepoints import compiled, find_edges, hand_over, handed_over, inlined, load8
from evenrank.text.entries import (
    CASE,
    MIX,
    entry_of,
    key_of,
    lower,
    may_be,
    next_token,
    packed,
    phrase_behind,
)
from evenrank.text.layout import (
    BASE,
    CARRIED,
    FIRST_PHRASE,
    GOES_ON,
    HELD,
    HIGH,
    HITS,
    LANES,
    LAST_PHRASE,
    M_ENTRY,
    M_KEY,
    M_REST,
    M_SIZE,
    MEMO,
    NONE,
    OPEN,
    PHRASE_END,
    POSITION,
    QUOTED,
    TOKENS,
    TOKENS_OF,
    TOUCHED,
)

_ONE, _ZERO = np.uint64(1), np.uint64(0)
_LOWER = np.int64(0xFFFFFFFF)
_NEAR = np.int64(1 << 30)  # bytes: places of tokens take 32 bits
_HIGH = np.uint64(0x8080808080808080)
_LOGARITHMS = np.array([math.log1p(i) for i in range(64)])


@inlined
def _has_high(address, size):
    """Is a character beyond ASCII among so many bytes?"""
    while size > 8:
        if load8(address) & _HIGH != _ZERO:
            return True
        address, size = address + 8, size - 8
    return (load8(address) & _HIGH) << np.uint64(64 - 8 * size) != _ZERO


@inlined
def _choose(table, base, pairs, count, chosen, found):
    """Put those of the first tokens that may be entries into `chosen`, behind so many; how many there are."""
    prefixed, salt = len(table.prefixes) > 1, np.uint64(table.salt)
    for number in range(count):
        pair = pairs[number]
        first, last = np.int64(np.int32(pair)), pair >> 32
        key = key_of(base + first, last - first, CASE)
        # Written in any case and kept or not: a branch here would be guessed wrong too often.
        chosen[np.uint64(found)] = pair
        found += may_be(table.bits, salt, table.stems, table.corners, prefixed, key)
    return found


@inlined
def _choose_beyond(table, base, pairs, count, chosen, found):
    """The same where tokens may hold characters beyond ASCII, and how many of them do.

    They are all chosen, end before beginning, and `_note_all` is to count them.
    """
    beyond, prefixed, salt = 0, len(table.prefixes) > 1, np.uint64(table.salt)
    for number in range(count):
        pair = pairs[number]
        first, last = np.int64(np.int32(pair)), pair >> 32
        if _has_high(base + first, last - first):
            chosen[found] = (first << 32) | (last & _LOWER)
            found, beyond = found + 1, beyond + 1
        else:
            key = key_of(base + first, last - first, CASE)
            chosen[found] = pair
            found += may_be(table.bits, salt, table.stems, table.corners, prefixed, key)
    return found, beyond


@inlined
def _place(key, rest):
    """The first of the two places of a token in the memo: an even number."""
    mixed = (np.uint64(key) - (np.uint64(rest) << _ONE)) * MIX
    return (mixed >> np.uint64(48)) & np.uint64(MEMO - 2)


@inlined
def _differs(memo, place, key, rest, size):
    """Zero if this token is remembered here."""
    return (memo[place, M_KEY] ^ key) | (memo[place, M_REST] ^ rest) | (memo[place, M_SIZE] ^ size)


@compiled
def _learn(table, at, last, token, memo, seen, place, key, rest):
    """Look an ASCII token of at most 16 bytes up, and remember its entry."""
    size = last - at
    lower(at, last, token)
    entry, slot = entry_of(table, packed(token, size), token, size)
    if slot >= 0 and table.slots[slot, LAST_PHRASE] > table.slots[slot, FIRST_PHRASE]:
        entry = np.int64(GOES_ON)
    if entry == NONE:
        entry = np.int64(len(seen) - 1)
    memo[place, M_KEY], memo[place, M_REST], memo[place, M_SIZE] = key, rest, size
    memo[place, M_ENTRY] = entry
    return entry


@inlined
def _note(entry, row, first, last, scratch):
    """Count one hit, and where it stands if that is wanted; what is no entry is counted too, in the last
    place of `seen`.

    There is no branch to be guessed wrong.
    """
    seen, state, spans, place = scratch.seen, scratch.state, scratch.spans, np.uint64(entry)
    touched, times = state[TOUCHED], seen[place]
    scratch.touched[np.uint64(touched)] = entry
    state[TOUCHED] = touched + np.int64(times == 0)
    seen[place] = times + np.int32(1)
    hit, found = state[HITS], np.int64(entry < len(seen) - 1)
    if hit < len(spans) and found:
        spans[hit, 0], spans[hit, 1], spans[hit, 2], spans[hit, 3] = row, entry, first, last
    state[HITS] = hit + found


@compiled
def _look_closer(table, start, end, position, last, beyond, row, scratch):
    """Find the entries in a run of token bytes that may begin a phrase, is long or holds characters beyond
    ASCII, and note them; returns the tokens not yet counted."""
    slots, token, state = table.slots, scratch.token, scratch.state
    tokens = 0
    while position < last:
        if not beyond:
            at, position, size = position, last, last - position
            lower(at, last, token)
        else:
            at, position, size = next_token(table, start, position, last, end, token)
            if at < 0:
                break
            tokens += 1
        if at < state[PHRASE_END]:
            continue
        entry, slot = entry_of(table, packed(token, size), token, size)
        stop = position
        if slot >= 0 and slots[slot, LAST_PHRASE] > slots[slot, FIRST_PHRASE]:
            phrase, phrase_end = phrase_behind(table, start, position, end, slot, scratch)
            if phrase >= 0:
                entry, stop = phrase, phrase_end
                state[PHRASE_END] = stop
        if entry >= 0:
            _note(entry, row, at - start, stop - start, scratch)
    return tokens


@inlined
def _scan(table, base, start, end, found, scratch):
    """Choose tokens of one text, behind so many; returns how many tokens it has and how many are chosen.

    It stops where there is no room for more, `state[OPEN]` says so, and the next call goes on from there.
    """
    state, edges, pairs, chosen = scratch.state, scratch.edges, scratch.pairs, scratch.chosen
    tokens, position, held = 0, start, np.int64(0)
    carried, quoted, high = _ZERO, _ZERO, False
    if state[OPEN]:
        position, held, high = state[POSITION], state[HELD], state[HIGH] != 0
        carried, quoted = np.uint64(state[CARRIED]), np.uint64(state[QUOTED])
        state[OPEN] = 0
    while position < end or carried != _ZERO:
        if found + TOKENS > len(chosen):
            state[OPEN], state[POSITION], state[HELD], state[HIGH] = 1, position, held, np.int64(high)
            state[CARRIED], state[QUOTED] = np.int64(carried), np.int64(quoted)
            break
        held, position, carried, quoted, beyond_ascii = find_edges(
            table.words, base, position, end, edges, held, carried, quoted
        )
        high = high or beyond_ascii
        count = held >> 1
        if high:
            found, beyond = _choose_beyond(table, base, pairs, count, chosen, found)
            tokens -= beyond
        else:
            found = _choose(table, base, pairs, count, chosen, found)
        tokens += count
        if held & 1:  # a token goes on
            edges[0] = edges[held - 1]
        held &= 1
    return tokens, found


@inlined
def _look_up(table, base, found, scratch):
    """The entries of the tokens chosen; GOES_ON where one has to look closer."""
    chosen, memo, entries = scratch.chosen, scratch.memo, scratch.entries
    case = CASE if table.words else _ZERO  # else tokens are remembered as they are written
    for i in range(found):
        first, last = np.int64(np.int32(chosen[i])), chosen[i] >> 32
        position, size = base + first, last - first
        entry = np.int64(GOES_ON)
        if 0 < size <= 16:
            key = np.int64(key_of(position, size, case))
            rest = np.int64(key_of(position + 8, max(size - 8, 1), case)) & -np.int64(size > 8)
            place = np.int64(_place(key, rest))
            place += np.int64(_differs(memo, place, key, rest, size) != 0)  # two places side by side
            entry = memo[place, M_ENTRY]
            if _differs(memo, place, key, rest, size):
                place -= (last ^ key) & 1  # either, as it comes
                # The whole table goes on the stack for this call.
                entry = _learn(
                    table, position, position + size, scratch.token, memo, scratch.seen, place, key, rest
                )
        entries[i] = entry


@compiled
def _read(table, starts, ends, row, scratch):
    """Choose tokens of a few texts from a row on, and look them up; returns the row behind the last text that
    was read to its end.

    Those of the n-th text are bounds[n]:bounds[n + 1], and so are those of a text that is left open. `tokens`
    has the tokens of each. Many texts at a time, so that the processor does not have to guess for each of
    them how many tokens will be looked up.
    """
    state, bounds, tokens = scratch.state, scratch.bounds, scratch.tokens
    base, found, stop = starts[row], np.int64(0), row
    if state[OPEN]:  # where a token began was said from another place
        scratch.edges[0] += np.int32(state[BASE] - base)
    state[BASE] = base
    while stop < len(starts) and stop - row < LANES:
        n = stop - row
        if n > 0 and (ends[stop] - base > _NEAR or base - starts[stop] > _NEAR):
            break
        bounds[n] = found
        tokens[n], found = _scan(table, base, starts[stop], ends[stop], found, scratch)
        bounds[n + 1] = found
        if state[OPEN]:
            break
        stop += 1
    _look_up(table, base, found, scratch)
    return stop


@inlined
def _note_all(table, start, end, first, last, row, scratch):
    """Note the hits of one text among the tokens chosen; returns the tokens not yet counted."""
    chosen, entries, state = scratch.chosen, scratch.entries, scratch.state
    base, tokens = state[BASE], 0
    for i in range(first, last):
        entry, at, to = np.int64(entries[i]), base + np.int64(np.int32(chosen[i])), base + (chosen[i] >> 32)
        if entry != GOES_ON:
            if at >= state[PHRASE_END]:
                _note(entry, row, at - start, to - start, scratch)
        elif to < at:
            tokens += _look_closer(table, start, end, to, at, True, row, scratch)
        elif at >= state[PHRASE_END]:
            _look_closer(table, start, end, at, to, False, row, scratch)
    return tokens


@inlined
def _hand_over_all(sums, first, count, columns):
    """Move the sums of so many texts to their places in each column; zeros stay behind."""
    for group in range(len(columns)):
        to = columns.ctypes.data + 8 * (group * columns.shape[1] + first)
        of = sums.ctypes.data + 8 * LANES * group
        for part in range(0, 8 * count, 64):
            hand_over(to + part, of + part)


@compiled
def count(table, groups, more, starts, ends, scratch, first, tokens, counts, logwords):
    """Fill tokens[n], counts[groups, n] and logwords[groups, n], n from `first` on, for texts at starts:ends.

    Starts and ends are addresses in memory, and PADDING bytes behind each end must be readable. The groups of
    entry e are groups[e, :2], one or both of them the last of all, which nobody asks for, and
    more[groups[e, 2]:groups[e, 3]]. Sums are moved eight at a time: `first` and the length of a column are
    multiples of eight.
    """
    state, seen, touched, bounds = scratch.state, scratch.seen, scratch.touched, scratch.bounds
    times_of, logs_of = scratch.counts, scratch.logwords
    done = 0
    while done < len(starts):
        begin, done = done, _read(table, starts, ends, done, scratch)
        for row in range(begin, done + state[OPEN]):
            n = row - begin
            state[TOKENS_OF] += scratch.tokens[n] + _note_all(
                table, starts[row], ends[row], bounds[n], bounds[n + 1], row, scratch
            )
            if row == done:
                break
            tokens[first + row] = state[TOKENS_OF]
            lane = np.uint64(row % LANES)
            for i in range(state[TOUCHED]):
                entry = np.uint64(touched[i])
                times = np.int64(seen[entry])
                seen[entry] = 0
                logarithm = _LOGARITHMS[times] if times < len(_LOGARITHMS) else math.log1p(times)
                for j in range(2):
                    group = np.uint64(groups[entry, j])
                    times_of[group, lane] += times
                    logs_of[group, lane] += logarithm
                for j in range(groups[entry, 2], groups[entry, 3]):
                    times_of[more[j], lane] += times
                    logs_of[more[j], lane] += logarithm
            state[TOUCHED] = state[PHRASE_END] = state[TOKENS_OF] = 0
            if lane == LANES - 1 or row == len(starts) - 1:
                last = np.int64(lane)
                _hand_over_all(times_of, first + row - last, last + 1, counts)
                _hand_over_all(logs_of, first + row - last, last + 1, logwords)
    handed_over()


@compiled
def collect(table, starts, ends, scratch, bounds, entries, times):
    """The entries found in each of n texts, and how often: those of text i are bounds[i]:bounds[i + 1]."""
    state, seen, touched, found, done = scratch.state, scratch.seen, scratch.touched, 0, 0
    while done < len(starts):
        begin, done = done, _read(table, starts, ends, done, scratch)
        for row in range(begin, done + state[OPEN]):
            n = row - begin
            _note_all(table, starts[row], ends[row], scratch.bounds[n], scratch.bounds[n + 1], row, scratch)
            if row == done:
                break
            for i in range(state[TOUCHED]):
                entry = touched[i]
                entries[found], times[found] = entry, seen[entry]
                seen[entry] = 0
                found += np.int64(entry < len(seen) - 1)
            bounds[row + 1] = found
            state[TOUCHED] = state[PHRASE_END] = 0
