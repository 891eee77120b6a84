"""Numbers as people read them: one way to print a value, an interval, a p and an effect size.

The terminal, the verdict, the report and LaTeX all print through here. What is undefined is a dash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

DASH = "–"
SIGNED, PLAIN = "+.3f", ".3f"


def number(value: float | None, form: str = SIGNED) -> str:
    """A number, or a dash where there is none.

    >>> number(0.25), number(-0.25, ".2f"), number(None)
    ('+0.250', '-0.25', '–')
    """
    return DASH if value is None else format(value, form)


def signed(value: float | None) -> str:
    """A number whose sign says something."""
    return number(value, SIGNED)


def plain(value: float | None) -> str:
    """A number whose sign says nothing."""
    return number(value, PLAIN)


def form_of(measure: Any) -> str:
    """How values of a measure are written: with a sign where the sign says something."""
    return SIGNED if getattr(measure, "SIGNED", False) else PLAIN


def interval(low: float | None, high: float | None, form: str = SIGNED) -> str:
    """Both ends in brackets; nothing where there is no interval.

    >>> interval(-0.1, 0.2), interval(None, None)
    ('[-0.100, +0.200]', '')
    """
    return "" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"


def interval_phrase(
    low: float | None, high: float | None, confidence: float | None, form: str = SIGNED
) -> str:
    """An interval within a sentence: `95% interval -0.100 to +0.200`; nothing where there is none."""
    if low is None or high is None:
        return ""
    return f"{level(confidence or 0.95)} interval {low:{form}} to {high:{form}}"


def level(confidence: float) -> str:
    """A confidence level in percent, not rounded.

    >>> level(0.95), level(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * confidence:g}%"


def p_value(p: float | None) -> str:
    """p to three digits; below that, only that it is.

    >>> p_value(0.0123), p_value(0.00001), p_value(None)
    ('0.012', '< 0.001', '–')
    """
    if p is None:
        return DASH
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def p_phrase(p: float | None) -> str:
    """p as the right side of a sentence: `p = 0.012`, `p < 0.001`, `p undefined`."""
    if p is None:
        return "p undefined"
    return f"p = {p_value(p)}" if p >= 0.001 else f"p {p_value(p)}"


def effect(comparison: Any) -> str:
    """The effect size of a comparison, and what it is: `+0.420 d_z`."""
    return DASH if comparison.effect is None else f"{signed(comparison.effect)} {comparison.effect_name}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """How many of something.

    >>> counted(1, "query", "queries"), counted(2000, "run")
    ('1 query', '2,000 runs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def minus(text: str) -> str:
    """Text with a true minus sign before numbers."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def typeset(value: float | None) -> str:
    """A signed number as a page writes it, with a true minus sign."""
    return minus(signed(value))


def few(names: Sequence[str], most: int = 8) -> str:
    """The names, or the first of them and how many more there are."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more:,} more"


def toward(group: str) -> str:
    """What comes after `leans`: `male`, but `toward libraries`."""
    return group if group in ("female", "male") else f"toward {group}"


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
