"""Where each document of a run stands in a table of documents.

Joining a run with a large tally is most of the work of measuring it. Looking ids up by their 64-bit hash
in an open-addressing table is some eight times as quick as joining the strings, and exact all the same: every
hit is compared with the id, and what does not compare equal is joined the slow way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

# Below this many ids the join takes a few milliseconds, less than loading the compiled kernels.
_SMALL = 100_000


def find_rows(ids: pl.Series, table: pl.Series) -> NDArray[np.int64]:
    """Row of `table` that holds each id, and −1 for an id that is not in it.

    The ids in `table` are distinct; those in `ids` need not be.
    """
    if len(ids) + len(table) < _SMALL:
        return _join(ids, table)
    rows = _kernel()(table.hash().to_numpy(), ids.hash().to_numpy())
    hits = np.flatnonzero(rows >= 0)
    same = (table.gather(rows[hits]) == ids.gather(hits)).to_numpy()
    if not same.all():  # two ids with one hash: about once in 10 million tables of a million documents
        wrong = hits[~same]
        rows[wrong] = _join(ids.gather(wrong), table)
    return rows


def _join(ids: pl.Series, table: pl.Series) -> NDArray[np.int64]:
    right = pl.DataFrame({"id": table, "row": np.arange(len(table), dtype=np.int64)})
    joined = pl.DataFrame({"id": ids}).join(right, on="id", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy()


@cache
def _kernel() -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.int64]]:
    """The compiled look-up. Imported on first use: numba takes as long to load as a small run to measure."""
    from evenrank.text.hashing import find_hashes

    return find_hashes
