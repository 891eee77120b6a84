"""How strongly a group shows in a document: five magnitudes, computed from the tally's columns.

=========== ============================== ==========================================================
name        magnitude of group g in d      where it comes from
=========== ============================== ==========================================================
`tf`        ln(1 + Σ_w #(w, d))            the released code and Table 3 of Rekabsaz and Schedl (2020)
`tf-words`  Σ_w ln(1 + #(w, d))            their Eq. 1 read literally, made defined for absent words
`boolean`   1 if any word of g occurs      their second variant
`count`     Σ_w #(w, d)                    the thesis' Eq. 3.8 as printed; its scripts compute `tf`
`length`    Σ_w #(w, d) / tokens(d)        footnote 4 of the paper; 0 for an empty document
=========== ============================== ==========================================================

`tf` is the default because every published table was computed with it, whatever the printed equation
says: Eq. 1 of the paper takes the logarithm of a count without adding one, which is undefined for the
many words that do not occur, so the equation cannot be what was run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.arithmetic import log1p
from evenrank.errors import InputError

MAGNITUDES = ("tf", "tf-words", "boolean", "count", "length")


def magnitude(
    name: str,
    counts: NDArray[Any],
    *,
    logwords: NDArray[Any] | None = None,
    tokens: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """How strongly a group shows in each document; 0 where none of its words occurs.

    Parameters
    ----------
    name
        One of `tf`, `tf-words`, `boolean`, `count`, `length` (see the top of this file).
    counts
        Occurrences of the group's words, one number for each document.
    logwords
        Σ_w ln(1 + #(w, d)) for each document; only `tf-words` looks at it.
    tokens
        Number of tokens of each document; only `length` looks at it.
    """
    if name == "tf":
        found: NDArray[np.float64] = log1p(counts)
        return found
    if name == "boolean":
        return (np.asarray(counts) > 0).astype(np.float64)
    if name == "count":
        return np.asarray(counts, dtype=np.float64)
    if name == "tf-words" and logwords is not None:
        return np.asarray(logwords, dtype=np.float64)
    if name == "length" and tokens is not None:
        return np.divide(counts, tokens, out=np.zeros(np.shape(counts)), where=np.asarray(tokens) > 0)
    if name in MAGNITUDES:
        raise InputError(
            f"magnitude {name!r} needs the {'tokens' if name == 'length' else 'log-word'} column"
        )
    raise InputError(f"there is no magnitude {name!r}; one of {', '.join(MAGNITUDES)}")
