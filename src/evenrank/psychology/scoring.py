"""How much of each characteristic a document shows: the share of its words that belong to the category."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.data import door, tables
from evenrank.data.columns import DOC_ID, GENDER, QUERY_ID, QUERY_TEXT, listing, show
from evenrank.data.topics import normal_gender
from evenrank.errors import InputError
from evenrank.text.dictionaries import TREE, dictionary, renamed
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


def read_scores(x: Any) -> pl.DataFrame:
    """A table of percents: ``query_id`` and/or ``doc_id``, perhaps ``gender``, and the categories.

    Parameters
    ----------
    x
        A CSV or TSV file with a header, Parquet, or a frame; several of them, one for each query gender,
        as a mapping from gender to table or as files named after it (``female.csv``, ``male.csv``).
        Categories may have LIWC's names or ours.
    """
    if isinstance(x, Mapping):
        parts = [_one(table).with_columns(gender=pl.lit(_gender(str(name)))) for name, table in x.items()]
        return with_concerns(_stacked(parts))
    if isinstance(x, Sequence) and not isinstance(x, str):
        paths = [Path(path) for path in x]
        if len(paths) == 1:
            return read_scores(paths[0])
        return read_scores({path.name.split(".")[0]: path for path in paths})
    return with_concerns(_one(x))


def _gender(name: str) -> str:
    gender = normal_gender(name)
    if gender == "other":
        raise InputError(f"{name!r} is no gender; name the tables female, male and neutral")
    return gender


def _one(x: Any) -> pl.DataFrame:
    table = door.table(x)
    frame = table.frame
    ids = {"query_id": QUERY_ID, "doc_id": DOC_ID, "gender": GENDER}
    names: dict[str, str] = {}
    for ours, known in ids.items():
        match = next((column for column in frame.columns if column.lower() in known), None)
        if match is not None and match not in names:
            names[match] = ours
    if not {"query_id", "doc_id"} & set(names.values()):
        found = listing(frame.columns, 8)
        raise table.error(f"a table of scores needs a column query_id or doc_id; found: {found}")
    scored = renamed(column for column in frame.columns if column not in names)
    table = replace(table, frame=frame.rename({**names, **scored}))
    keys = [name for name in ids if name in table.frame.columns]
    numbers = _numbers(replace(table, frame=table.frame.drop(keys)))
    held = categories(numbers)
    if not held:
        raise table.error("a table of scores needs a column of numbers for each category")
    frame = pl.DataFrame([*(table.ids(key) for key in keys), *numbers.select(held)])
    if "doc_id" in keys:
        replace(table, frame=frame).once(*(key for key in keys if key != "gender"))
    if "gender" in keys:
        frame = frame.with_columns(pl.col("gender").map_elements(normal_gender, return_dtype=pl.String))
    return frame


def _numbers(table: door.Table) -> pl.DataFrame:
    """The columns that hold numbers, most cells at least; a cell among them that is none is refused."""
    columns = []
    for column in table.frame:
        kind = column.dtype
        if not (kind.is_numeric() or kind == pl.String):
            continue
        parsed = column.cast(pl.Float64, strict=False)
        good = parsed.is_finite().fill_null(False)
        if kind == pl.String and (column.name.lower() in QUERY_TEXT or 2 * good.sum() < len(good)):
            continue  # a text, such as the query's or a file's name
        table.refuse(
            ~good,
            lambda row, column=column: (  # type: ignore[misc]
                f"the category {show(column.name)} has cells without a number: {show(column[row])}"
            ),
        )
        columns.append(parsed)
    return pl.DataFrame(columns)


def _stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    if not {"query_id", "doc_id"} & set(shared):
        raise InputError("the tables of scores have no id column in common")
    return pl.concat([part.select(shared) for part in parts])
