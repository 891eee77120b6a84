"""The most gendered queries, and where the queries of a run stand: what a report shows beside GSR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.gsr.results import Reinforcement
from evenrank.measures.gsr.slope import Line
from evenrank.text.tokens import tokens
from evenrank.vectors.texts import gendered_texts


class GenderedQuery(NamedTuple):
    """A query, how far it leans, and each of its words with its own leaning (None: it does not count)."""

    query_id: str
    text: str
    g: float
    words: tuple[tuple[str, float | None], ...]


def most_gendered(
    queries: Any, vectors: Any = None, *, count: int = 10, pairs: Any = None
) -> tuple[list[GenderedQuery], list[GenderedQuery]]:
    """The queries that lean most to the positive (female) side, and to the negative; the furthest first.

    Figure 7 of the paper. Ties keep the order of the queries.
    """
    table, texts = tables.queries(queries), gendered_texts(vectors, pairs=pairs)
    g = texts.of_texts(table["text"].to_list())
    defined = np.flatnonzero(~np.isnan(g))
    value = dict(zip(texts.vocabulary, texts.values.tolist(), strict=True))

    def shown(row: int) -> GenderedQuery:
        query_id, text = table.row(row)
        words = tuple((word, value.get(word)) for word in tokens(text))
        return GenderedQuery(query_id, text, float(g[row]), words)

    order = defined[np.argsort(g[defined], kind="stable")]
    positive = defined[np.argsort(-g[defined], kind="stable")]
    return (
        [shown(row) for row in positive[:count].tolist()],
        [shown(row) for row in order[:count].tolist()],
    )


@dataclass(frozen=True)
class Scatter:
    """Queries as points, g(q) against g_q(L), with the line through them and the perfect engine's.

    `points` has the columns query_id, x, y and contribution.
    """

    points: pl.DataFrame
    line: Line | None
    perfect: Line | None


def scatter(measured: Reinforcement) -> Scatter:
    """Where the queries of a run stand (Figures 8 and 9 of the paper)."""
    fitted = measured.fitted
    if fitted is None or fitted.line is None:
        raise InputError(f"{measured.measure} of {measured.run} is undefined; there is no line to draw")
    points = pl.DataFrame(
        {
            "query_id": measured.query_ids,
            "x": fitted.x,
            "y": fitted.y,
            "contribution": fitted.contributions,
        }
    )
    perfect = measured.baseline_lines.get("perfect")
    return Scatter(points, fitted.line, None if perfect is None else perfect.line)
