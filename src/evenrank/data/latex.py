"""Text as LaTeX sets it."""

from __future__ import annotations

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def escaped(text: str) -> str:
    """The text with every character that means something to LaTeX made harmless.

    >>> escaped("a_b 5%")
    'a\\\\_b 5\\\\%'
    """
    return "".join(_SPECIAL.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
