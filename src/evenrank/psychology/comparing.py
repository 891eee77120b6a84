"""How much of each characteristic documents show (the share of their words), female against male queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import door, tables
from evenrank.data.columns import DOC_ID, GENDER, QUERY_ID, QUERY_TEXT, listing, show
from evenrank.data.topics import known_gender
from evenrank.errors import InputError
from evenrank.stats import Comparison
from evenrank.text.lexicon import CHARACTERISTICS, TREE, dictionary, renamed
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
    gender = known_gender(name)
    if gender == "other":
        raise InputError(f"{name!r} is not one gender; name the tables female, male and neutral")
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
        frame = frame.with_columns(pl.col("gender").map_elements(known_gender, return_dtype=pl.String))
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


LEVEL = 0.05  # below it a difference is called one


@dataclass(frozen=True)
class Characteristic:
    """How strongly a characteristic shows in texts for female and male queries.

    Attributes
    ----------
    process
        Which process it is part of (`affect` for `anger`), itself if it is one, else empty.
    means
        Mean percent over the queries of each gender.
    welch, rank_sum
        Female − male, so that positive values mean more of it for female queries: difference,
        interval, p (uncorrected), effect (Hedges' g; Cliff's delta).
    p_holm, rank_sum_p_holm
        The two p-values, corrected over all characteristics that were compared.
    """

    name: str
    process: str
    means: Mapping[str, float]
    welch: Comparison
    rank_sum: Comparison
    p_holm: float | None = None
    rank_sum_p_holm: float | None = None

    @property
    def difference(self) -> float | None:
        return self.welch.difference

    @property
    def higher(self) -> str | None:
        """`female` or `male`, whichever mean is higher; None if neither is."""
        if not self.difference:
            return None
        return "female" if self.difference > 0 else "male"

    @property
    def verdict(self) -> str:
        """What Welch's test bears out: a difference, one before correction only, or none."""
        if self.welch.p is None or self.welch.p >= LEVEL:
            return "no difference"
        corrected = self.p_holm is not None and self.p_holm < LEVEL
        return f"higher for {self.higher}" + ("" if corrected else " (uncorrected only)")

    def to_dict(self) -> dict[str, Any]:
        return {
            "characteristic": self.name,
            "process": self.process,
            **self.means,
            "difference": self.difference,
            "low": self.welch.low,
            "high": self.welch.high,
            "p": self.welch.p,
            "p_holm": self.p_holm,
            "g": self.welch.effect,
            "rank_sum_p": self.rank_sum.p,
            "rank_sum_p_holm": self.rank_sum_p_holm,
            "cliffs_delta": self.rank_sum.effect,
            "verdict": self.verdict,
        }


def process_of(name: str) -> str:
    """The process that a characteristic is part of; empty for a category outside the tree."""
    if name in TREE:
        return name
    return next((process for process, parts in TREE.items() if name in parts), "")


def in_order(names: Sequence[str]) -> list[str]:
    """The characteristics of the tree among these names, in its order."""
    return [name for name in CHARACTERISTICS if name in names]


def chosen(table: pl.DataFrame, wanted: Sequence[str] | None) -> list[str]:
    """The characteristics to compare: those asked for, or all of the tree that the table has."""
    held = categories(table)
    if wanted is None:
        found = in_order(held)
        if not found:
            raise InputError(f"none of the categories is known ({', '.join(held[:8])}); name characteristics")
        return found
    for name in wanted:
        if name not in held:
            raise InputError(f"there is no category {name!r}; there are: {', '.join(held)}")
    return list(wanted)


def compare(
    table: pl.DataFrame, names: Sequence[str], *, confidence: float = 0.95, seed: int = 0
) -> tuple[Characteristic, ...]:
    """Each characteristic over queries (``gender`` and a column for each name), p corrected over all."""
    sides = {str(gender): part for (gender,), part in table.group_by(["gender"], maintain_order=True)}
    female, male = sides["female"], sides["male"]
    order = [gender for gender in ("female", "male", "neutral", "other") if gender in sides]
    found = []
    for name in names:
        a, b = female[name].to_numpy(), male[name].to_numpy()
        found.append(
            Characteristic(
                name=name,
                process=process_of(name),
                means={gender: float(sides[gender][name].mean()) for gender in order},  # type: ignore[arg-type]
                welch=stats.welch(a, b, confidence=confidence),
                rank_sum=stats.rank_sum(a, b, confidence=confidence, seed=seed),
            )
        )
    welch = stats.holm([one.welch.p for one in found])
    ranks = stats.holm([one.rank_sum.p for one in found])
    return tuple(
        replace(one, p_holm=p, rank_sum_p_holm=q) for one, p, q in zip(found, welch, ranks, strict=True)
    )


def bars(found: Sequence[Characteristic]) -> pl.DataFrame:
    """One row for each bar of the grouped bars: process, characteristic, gender, percent."""
    return pl.DataFrame(
        [
            {"process": one.process, "characteristic": one.name, "gender": gender, "percent": mean}
            for one in found
            for gender, mean in one.means.items()
        ],
        schema={
            "process": pl.String,
            "characteristic": pl.String,
            "gender": pl.String,
            "percent": pl.Float64,
        },
    )


GENDERS = ("female", "male", "neutral")


def balanced(labels: pl.DataFrame, *, genders: Sequence[str] = GENDERS, seed: int = 0) -> pl.DataFrame:
    """Of the queries (``query_id``, ``gender``) equally many of each gender, drawn without replacement.

    A gender that has no query at all does not count. The same queries and seed give the same sample,
    whatever their order; the rows stay in the order given.
    """
    counts = [int((labels["gender"] == gender).sum()) for gender in genders]
    size = min((count for count in counts if count), default=0)
    kept: list[str] = []
    for number, gender in enumerate(genders):
        ids = labels.filter(pl.col("gender") == gender)["query_id"].sort()
        if len(ids):
            drawn = np.random.default_rng([seed, number]).choice(len(ids), size, replace=False)
            kept += ids.gather(drawn).to_list()
    return labels.filter(pl.col("query_id").is_in(kept))


def sample(
    values: pl.DataFrame, labels: pl.DataFrame, *, exclude: Any = None, balance: bool = True, seed: int = 0
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The queries to compare, with their gender, and how many were left out for which reason."""
    left_out: dict[str, int] = {}

    def keep(table: pl.DataFrame, kept: pl.DataFrame, reason: str) -> pl.DataFrame:
        if gone := len(table) - len(kept):
            left_out[reason] = gone
        return kept

    scored = set(values["query_id"].to_list())
    known = keep(labels, labels.filter(pl.col("query_id").is_in(scored)), "labelled, but no scored document")
    if without := len(scored) - len(known):
        left_out["no gender label"] = without
    known = keep(known, known.filter(pl.col("gender").is_in(GENDERS)), "labelled other")
    if exclude is not None:
        known = keep(known, known.filter(~pl.col("query_id").is_in(_ids(exclude))), "excluded")
    if balance:
        known = keep(known, balanced(known, seed=seed), "not drawn into the balanced sample")
    held = sizes(known)
    for gender in ("female", "male"):
        if gender not in held:
            raise InputError(f"no {gender} query is left to compare; check the gender labels")
    return known.join(values, on="query_id", how="left", maintain_order="left"), left_out


def sizes(values: pl.DataFrame) -> dict[str, int]:
    """How many queries there are of each gender."""
    return {g: n for g in GENDERS if (n := int((values["gender"] == g).sum()))}


def _ids(exclude: Any) -> list[str]:
    if isinstance(exclude, str | PathLike) or hasattr(exclude, "columns"):
        return tables.genders(exclude)["query_id"].to_list()
    if isinstance(exclude, Iterable):
        return [str(query) for query in exclude]
    raise InputError(f"exclude takes query ids or a file, not {type(exclude).__name__}")
