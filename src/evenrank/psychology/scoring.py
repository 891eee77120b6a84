"""How much of each characteristic a document shows: the share of its words that belong to the category."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.text.dictionaries import TREE, dictionary
from evenrank.text.matcher import Progress, Source
from evenrank.text.tally import tally

COUNT = "_count"


def scores(
    docs: Any,
    source: Source | None = None,
    *,
    tokenizer: str = "words",
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Percent and count of every category in every document.

    The percent of a category is 100 × its tokens / all tokens, LIWC's convention; a token counts once
    for each category it belongs to, and a text without tokens scores 0. `concerns`, which LIWC does not
    have, is the sum of its six parts.

    Parameters
    ----------
    docs
        Documents in any shape that :func:`evenrank.data.tables.docs` takes.
    source
        The dictionary: the path of a ``.dic``, or anything :func:`evenrank.lexicon` takes. Without it,
        the open dictionary.
    tokenizer
        ``words`` or ``whitespace``.

    Returns
    -------
    polars.DataFrame
        ``doc_id``, ``tokens``, a column of percents for each category (``anger``), then a column of
        counts for each (``anger_count``).

    Examples
    --------
    >>> scores({"d": "She was furious with him."})["anger"].to_list()
    [20.0]
    """
    found = tally(docs, dictionary(source), tokenizer=tokenizer, progress=progress)
    tokens = pl.col("tokens")
    percent = [
        pl.when(tokens > 0).then(100 * pl.col(group) / tokens).otherwise(0.0).alias(group)
        for group in found.groups
    ]
    counts = [pl.col(group).alias(group + COUNT) for group in found.groups]
    return with_concerns(found.frame.select("doc_id", "tokens", *percent, *counts))


def with_concerns(table: pl.DataFrame) -> pl.DataFrame:
    """The table with the total of personal concerns, if it has the six parts and not the total."""
    parts = TREE["concerns"]
    if "concerns" in table.columns or not set(parts) <= set(table.columns):
        return table
    table = table.with_columns(concerns=pl.sum_horizontal(parts))
    counts = [part + COUNT for part in parts]
    if set(counts) <= set(table.columns):
        table = table.with_columns(pl.sum_horizontal(counts).alias("concerns" + COUNT))
    return table


def categories(table: pl.DataFrame) -> list[str]:
    """The columns that hold the percents of a category."""
    counts = {name + COUNT for name in table.columns} | {"tokens"}
    return [name for name, kind in table.schema.items() if kind.is_numeric() and name not in counts]


def ranked_or_judged(pairs: pl.DataFrame, table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Mean of the documents' scores for each query: ``query_id`` and the categories.

    `pairs` has ``query_id`` and ``doc_id``; a document without scores is an error.
    """
    joined = pairs.select("query_id", "doc_id").join(
        table.select("doc_id", *names), on="doc_id", how="left", maintain_order="left"
    )
    lost = joined.filter(pl.col(names[0]).is_null())["doc_id"].unique(maintain_order=True)
    if len(lost):
        first = ", ".join(lost.head(5).to_list())
        raise InputError(
            f"{len(lost):,} documents have no scores ({first}{', …' if len(lost) > 5 else ''}); "
            "check that they are in the collection"
        )
    return joined.group_by("query_id", maintain_order=True).agg(pl.col(names).mean())


def scores_of(docs: Any, ids: Iterable[str], source: Source | None, tokenizer: str) -> pl.DataFrame:
    """Scores of some documents of a collection, those it holds."""
    texts = tables.docs(docs).texts(dict.fromkeys(ids))
    if not texts:
        raise InputError("none of the documents is in the collection; check that they belong together")
    return scores(texts, source, tokenizer=tokenizer)
