"""Which document at each rank, so that every prefix shows groups as often as it should: the loops themselves.

S. C. Geyik, S. Ambler and K. Kenthapadi, KDD 2019, Algorithms 1 to 3; M. Zehlike et al., CIKM 2017,
Algorithm 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenrank.measures.lists import Floats, Ints
from evenrank.measures.parity import adjusted_alpha, minimum_counts

Bools = NDArray[np.bool_]
GREEDY = ("detgreedy", "detcons", "detrelaxed", "detconstsort")
_FINE = 10**6  # shares are fractions with no larger denominator, so that products fit 64 bits


def by_shares(
    method: str,
    code: Ints,
    starts: Ints,
    lengths: Ints,
    shares: Floats,
    groups: int,
    at: int,
    first: Ints,
    order: Ints,
) -> tuple[Ints, Bools]:
    """Fill `order` so that the first ranks show the shares, by one of the methods of Geyik et al.

    `code` is the group of each entry, −1 for none; `shares` are lists × groups, NaN for none; lists begin at
    `starts` there and at `first` in `order`.
    For each list: prefixes with too few of a group, with too many, and how many groups have too few
    documents (−1: no shares); and which groups these are.
    """
    above, below = np.zeros((len(shares), groups), np.int64), np.ones((len(shares), groups), np.int64)
    known = np.asarray(np.isfinite(shares).all(axis=1))
    for row, column in zip(*np.nonzero(known[:, None] & (shares > 0)), strict=True):
        near = Fraction(shares[row, column]).limit_denominator(_FINE)
        above[row, column], below[row, column] = near.numerator, near.denominator
    values = np.zeros((len(shares), 3), np.int64)
    values[:, 2] = np.where(known, 0, -1)
    lacking = np.zeros((len(shares), groups), np.bool_)
    which = GREEDY.index(method)
    _fill(which, code, starts, lengths, known, above, below, at, first, order, values, lacking)
    return values, lacking


def by_test(
    member: Bools,
    starts: Ints,
    lengths: Ints,
    shares: Floats,
    at: int,
    alpha: float,
    first: Ints,
    order: Ints,
) -> Ints:
    """Fill `order` by FA*IR; for each list as for :func:`by_shares`, none of them with too many."""
    values = np.zeros((len(shares), 3), np.int64)
    needed = np.zeros((len(shares), at), np.int64)
    tables: dict[tuple[int, float], Ints] = {}
    for row, (share, n) in enumerate(zip(shares.tolist(), lengths.tolist(), strict=True)):
        if np.isnan(share):
            values[row, 2] = -1
        elif share > 0:
            ranks = min(n, at)
            if (ranks, share) not in tables:
                level = adjusted_alpha(ranks, share, alpha)
                tables[ranks, share] = minimum_counts(ranks, share, level)
            needed[row, :ranks] = tables[ranks, share]
    _fill_fair(member, starts, lengths, needed, first, order, values)
    return values


@njit(nogil=True, cache=True)
def _next_of_group(code: Ints, start: int, n: int, groups: int) -> tuple[Ints, Ints]:
    """The first document of each group, and for each document the next of its group; −1 if none."""
    head = np.full(groups, -1)
    following = np.full(n, -1)
    for i in range(n - 1, -1, -1):
        g = code[start + i]
        if g >= 0:
            following[i] = head[g]
            head[g] = i
    return head, following


@njit(nogil=True, cache=True)
def _greedy(
    kind: int, head: Ints, following: Ints, above: Ints, below: Ints, slots: int, picked: Ints
) -> None:
    """DetGreedy, DetCons and DetRelaxed (Geyik et al., Algorithms 1 and 2): which document at each place."""
    groups = len(head)
    count = np.zeros(groups, np.int64)
    for k in range(1, slots + 1):
        best = -1
        for g in range(groups):
            if head[g] >= 0 and count[g] < k * above[g] // below[g] and (best < 0 or head[g] < head[best]):
                best = g
        if best < 0:
            for g in range(groups):
                most = -(-k * above[g] // below[g])
                if head[g] < 0 or count[g] >= most:
                    continue
                if best < 0:
                    best = g
                    continue
                held = -(-k * above[best] // below[best])
                if kind == 1:  # ⌈k·p⌉ / p as fractions, multiplied crosswise
                    mine, theirs = most * below[g] * above[best], held * below[best] * above[g]
                elif kind == 2:
                    mine, theirs = -(-most * below[g] // above[g]), -(-held * below[best] // above[best])
                else:
                    mine, theirs = 0, 0
                if mine < theirs or (mine == theirs and head[g] < head[best]):
                    best = g
        if best < 0:  # those that should come next have run out
            for g in range(groups):
                if head[g] >= 0 and (best < 0 or head[g] < head[best]):
                    best = g
        picked[k - 1] = head[best]
        head[best] = following[head[best]]
        count[best] += 1


@njit(nogil=True, cache=True)
def _sorted(head: Ints, following: Ints, above: Ints, below: Ints, slots: int, picked: Ints) -> None:
    """DetConstSort (Geyik et al., Algorithm 3): which document at each place.

    A document that has to be among the first k goes to the first free place, then up past those that may
    wait: the one it passes, now at rank s + 1, must not be due before. Documents are compared by their given
    ranks, so that equal scores stand in one order. Goes one place beyond the last, as published.
    """
    groups = len(head)
    count = np.zeros(groups, np.int64)
    placed = np.full(slots + groups + 1, -1)
    due = np.zeros(slots + groups + 1, np.int64)
    free = 0
    while free <= slots:
        k = -1
        for g in range(groups):
            if head[g] >= 0 and above[g] > 0:
                when = -(-(count[g] + 1) * below[g] // above[g])
                if k < 0 or when < k:
                    k = when
        if k < 0:
            break
        while free < len(placed):
            best = -1
            for g in range(groups):
                rises = head[g] >= 0 and above[g] > 0 and (count[g] + 1) * below[g] <= k * above[g]
                if rises and (best < 0 or head[g] < head[best]):
                    best = g
            if best < 0:
                break
            placed[free], due[free] = head[best], k
            s = free
            while s > 0 and due[s - 1] >= s + 1 and placed[s - 1] > placed[s]:
                placed[s - 1], placed[s] = placed[s], placed[s - 1]
                due[s - 1], due[s] = due[s], due[s - 1]
                s -= 1
            head[best] = following[head[best]]
            count[best] += 1
            free += 1
    while free < slots:  # groups that should not be there at all, by rank
        best = -1
        for g in range(groups):
            if head[g] >= 0 and (best < 0 or head[g] < head[best]):
                best = g
        placed[free] = head[best]
        head[best] = following[head[best]]
        free += 1
    picked[:slots] = placed[:slots]


@njit(nogil=True, cache=True)
def _fill(
    kind: int,
    code: Ints,
    starts: Ints,
    lengths: Ints,
    known: Bools,
    above: Ints,
    below: Ints,
    at: int,
    first: Ints,
    order: Ints,
    found: Ints,
    lacking: Bools,
) -> None:
    """Every list in turn: its order, how many prefixes lack or exceed what they should show."""
    groups = above.shape[1]
    for q in range(len(starts)):
        if not known[q]:
            continue
        start, n = starts[q], lengths[q]
        head, following = _next_of_group(code, start, n, groups)
        places = np.flatnonzero(code[start : start + n] >= 0)
        slots = int((places < at).sum())
        supply = np.zeros(groups, np.int64)
        for place in places:
            supply[code[start + place]] += 1
        for g in range(groups):
            lacking[q, g] = supply[g] < slots * above[q, g] // below[q, g]
            found[q, 2] += lacking[q, g]
        picked = np.empty(slots, np.int64)
        if kind == 3:
            _sorted(head, following, above[q], below[q], slots, picked)
        else:
            _greedy(kind, head, following, above[q], below[q], slots, picked)
        taken = np.zeros(n, np.bool_)
        count = np.zeros(groups, np.int64)
        for k in range(1, slots + 1):
            document = picked[k - 1]
            taken[document] = True
            order[first[q] + places[k - 1]] = first[q] + document
            count[code[start + document]] += 1
            few = many = False
            for g in range(groups):
                few |= count[g] < k * above[q, g] // below[q, g]
                many |= count[g] > -(-k * above[q, g] // below[q, g])
            found[q, 0] += few
            found[q, 1] += many
        rest = slots
        for place in places:
            if not taken[place]:
                order[first[q] + places[rest]] = first[q] + place
                rest += 1


@njit(nogil=True, cache=True)
def _fill_fair(
    member: Bools, starts: Ints, lengths: Ints, needed: Ints, first: Ints, order: Ints, found: Ints
) -> None:
    """FA*IR (Zehlike et al., Algorithm 2): the higher of two queues, unless the group falls short."""
    for q in range(len(starts)):
        if found[q, 2] < 0:
            continue
        start, n = starts[q], lengths[q]
        slots = min(n, needed.shape[1])
        inside = np.flatnonzero(member[start : start + n])
        outside = np.flatnonzero(~member[start : start + n])
        found[q, 2] = len(inside) < needed[q, slots - 1]
        i = o = 0
        for k in range(n):
            must = k < slots and i < needed[q, k] and i < len(inside)
            if must or o == len(outside) or (i < len(inside) and inside[i] < outside[o]):
                document = inside[i]
                i += 1
            else:
                document = outside[o]
                o += 1
            order[first[q] + k] = first[q] + document
            found[q, 0] += k < slots and i < needed[q, k]
