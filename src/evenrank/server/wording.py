"""What the numbers of one result list say, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from evenrank.show.numbers import toward

NEAR, CLEAR, STRONG = 0.05, 0.3, 0.8
"""Sizes of ARaB (of logarithms of counts) below which a list is called near balance, slightly leaning,
leaning; above the last, strongly leaning. One list is no sample: these are words for sizes, no tests."""


def side(value: float | None, of: str, against: str) -> str | None:
    """The group that a list leans to; None near balance."""
    if value is None or abs(value) < NEAR:
        return None
    return of if value > 0 else against


def lean(value: float | None, of: str, against: str) -> str:
    """A lean in two or three words."""
    if value is None:
        return "nothing to measure"
    to = side(value, of, against)
    if to is None:
        return "near balance"
    size = abs(value)
    how = "leans slightly" if size < CLEAR else "leans" if size < STRONG else "leans strongly"
    return f"{how} {toward(to)}"


def verdict(
    value: float | None,
    of: str,
    against: str,
    counts: Sequence[tuple[int, int]],
    *,
    at: int,
    query_gender: str | None = None,
) -> str:
    """One or two sentences about the top of a list.

    Parameters
    ----------
    value
        ARaB at the cut-off.
    counts
        For each result down to the cut-off the number of words of `of` and of `against`.
    query_gender
        The group whose words the query itself holds, if it is one.
    """
    shown = len(counts[:at])
    one, other = (sum(pair[i] for pair in counts[:at]) for i in (0, 1))
    top = "The only result" if shown == 1 else f"The top {shown} results"
    if not one and not other:
        verb = "holds" if shown == 1 else "hold"
        return f"{top} {verb} no {against} or {of} words."
    without = sum(not any(pair) for pair in counts[:at])
    says = f"{lean(value, of, against)}".replace("leans", "leans" if shown == 1 else "lean")
    verb = "" if says.startswith("lean") else "is " if shown == 1 else "are "
    text = f"{top} {verb}{says}: {_times(against, other)} and {_times(of, one)}"
    to = side(value, of, against)
    if to is not None and (one > other) != (to == of):  # a reader would count, and wonder
        text += f"; the {to} ones stand higher up, or in more results"
    text += f". {without} of {shown} hold neither." if shown > 1 and without else "."
    if query_gender in (of, against) and to is not None:
        text += (
            f" The query names {query_gender} words itself, so some lean that way is to be expected."
            if to == query_gender
            else f" The query names {query_gender} words itself: the other way."
        )
    return text


def _times(group: str, number: int) -> str:
    return f"{number} {group} {'word' if number == 1 else 'words'}"
