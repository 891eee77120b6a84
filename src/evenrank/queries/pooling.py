"""Select queries for annotation, and take the majority vote of the annotators.

Bias is measured on queries that name no gender, and people know which those are. Labels are expensive, so
N. Rekabsaz and M. Schedl (SIGIR 2020, §3.2) pool: they label the queries whose results lean farthest to a
side. Three annotators label each query, the majority decides.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from evenrank.data.formats import read_table_file
from evenrank.data.read import is_path, read_queries, read_table
from evenrank.data.schema import QUERY_ID, QUERY_TEXT, SPELLINGS, Table, listing, pick, plain, show
from evenrank.errors import InputError

CLASSES = ("neutral", "female", "male", "other")
"""The four classes of the paper; neutral is its "non-gendered", other its "other or multiple genders"."""

_ANNOTATOR = re.compile(r"annotator[ _-]?\d+")
_FORMULA = re.compile(r"'*[=+\-@]")


def pool(
    values: pl.DataFrame,
    queries: Any,
    *,
    top: int = 500,
    annotators: int = 3,
    seed: int = 0,
    reveal: bool = False,
    groups: tuple[str, str] = ("female", "male"),
) -> pl.DataFrame:
    """Return the sheet for annotators: the queries whose results lean farthest to either side, in any run.

    Every run gives two lists, its queries sorted from the lowest value and from the highest. The sheet
    has the queries that are among the first ``top`` of any list, once each. A list is never cut at
    zero: with few queries it takes in balanced ones too.

    Parameters
    ----------
    values
        One row for each run and query, with the columns run, query_id, value: the per-query values of
        RaB@10 with the magnitude tf in the paper. Undefined values are passed over.
    queries
        The texts: a table of queries, or anything that becomes one.
    annotators
        How many empty columns (annotator_1, annotator_2 …) the sheet has. An odd number leaves fewer ties.
    seed
        The rows are shuffled, so that nobody sees from the order which queries lean.
    reveal
        Add how many lists the query is in, its strongest value, and the group that it leans toward.
        Annotators who see this are primed: it is the key to the sheet, with the same rows in the same
        order, for the person who leads the annotation.
    groups
        What negative and positive values lean toward.
    """
    for name, number in (("top", top), ("annotators", annotators)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, found {number}")
    texts = read_queries(queries)
    if missing := {"run", "query_id", "value"} - set(values.columns):
        raise InputError(f"per-query values need the columns {listing(sorted(missing))}")
    if "measure" in values.columns and values["measure"].n_unique() > 1:
        raise InputError(f"pool by one measure, not by {listing(values['measure'].unique().sort())}")
    defined = values.select("run", "query_id", pl.col("value").cast(pl.Float64)).filter(
        pl.col("value").is_finite()
    )
    lists = [
        defined.sort(["value", "query_id"], descending=[highest, False])
        .group_by("run", maintain_order=True)
        .head(top)
        for highest in (False, True)
    ]
    value, leans = pl.col("value"), {-1.0: groups[0], 1.0: groups[1]}
    pooled = (
        pl.concat(lists)
        .group_by("query_id")
        .agg(pl.len().cast(pl.Int64).alias("lists"), value.sort_by(value.abs(), value).last())
        .with_columns(toward=value.sign().replace_strict(leans, default=None, return_dtype=pl.String))
        .join(texts, on="query_id", how="left")
        .sort("query_id")
    )
    unknown = pooled.filter(pl.col("text").is_null())["query_id"]
    if len(unknown):
        raise InputError(
            f"{len(unknown):,} ranked queries have no text: {listing(unknown, 5)}; give all queries"
        )
    order = np.random.default_rng(seed).permutation(len(pooled))
    shown = ["query_id", "text", *(["lists", "value", "toward"] if reveal else [])]
    empty = [pl.lit("").alias(f"annotator_{i}") for i in range(1, annotators + 1)]
    return pooled[order].select(*shown, *empty)


def sheet_text(sheet: pl.DataFrame) -> str:
    """Return the sheet as TSV for spreadsheets: quoted where needed, no query is taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerow(sheet.columns)
    for row in sheet.iter_rows():
        writer.writerow("" if x is None else _shield(x) if isinstance(x, str) else x for x in row)
    return out.getvalue()


@dataclass(frozen=True)
class Votes:
    """What the annotators agreed on.

    Attributes
    ----------
    labels
        query_id, text, label, and votes: how many annotators gave that label.
    dropped
        query_id, text, given (the labels), reason: no majority, or incomplete.
    agreement
        Fleiss' kappa over the complete queries: 1 is full agreement, 0 what chance would give; ``None``
        where chance alone would agree on everything, because only one class was ever given.
    counts
        How many queries each class has got.
    annotators
        How many labels each query has.
    """

    labels: pl.DataFrame
    dropped: pl.DataFrame
    agreement: float | None
    counts: dict[str, int]
    annotators: int


def vote(sheets: Any, *, incomplete: Literal["error", "drop"] = "error") -> Votes:
    """Return the class that more than half of the annotators chose, query by query.

    Parameters
    ----------
    sheets
        One or several, as paths (TSV or CSV) or frames. A sheet has a row for each query and a column
        for each annotator (annotator_1, annotator_2 …, or a single ``label``); with several sheets, a
        column that is wholly empty counts for nobody. Short forms of the classes and the paper's names are
        understood: f, Non-gendered, other or multiple.
    incomplete
        What to do about queries with an empty cell, or with fewer labels than the others.

    Notes
    -----
    A query without such a majority is dropped, as in the paper: for three annotators, when all differ.
    """
    if incomplete not in ("error", "drop"):
        raise InputError(f"unknown choice {incomplete!r}; choose one of error, drop")
    every = list(sheets) if isinstance(sheets, list | tuple) else [sheets]
    legal = {plain(spelling): c for c in CLASSES for spelling in (c, *SPELLINGS.get(c, ()))}
    ballots: dict[str, dict[object, _Ballot]] = {}
    for number, sheet in enumerate(every):
        for ballot in _ballots(sheet, number, several=len(every) > 1):
            mine = ballots.setdefault(ballot.query_id, {})
            if mine.setdefault(ballot.annotator, ballot) is not ballot:
                raise ballot.problem(f"query {show(ballot.query_id)} has two labels by the same annotator")
            if ballot.label and plain(ballot.label) not in legal:
                raise ballot.problem(f"unknown label {show(ballot.label)}; use one of {listing(CLASSES)}")
    if not ballots:
        raise InputError("the sheets have no rows")
    annotators = max(map(len, ballots.values()))
    if annotators < 3:
        raise InputError(f"found {annotators} labels for a query; a majority needs at least three annotators")
    if incomplete == "error":
        _check_complete(ballots, annotators)
    labels, dropped, counts = [], [], []
    for query, mine in ballots.items():
        text = next((b.text for b in mine.values() if b.text), None)
        given = Counter(legal[plain(b.label)] for b in mine.values() if b.label)
        label, votes = given.most_common(1)[0] if given else ("", 0)
        complete = given.total() == annotators
        if complete:
            counts.append([given[c] for c in CLASSES])
        if complete and 2 * votes > annotators:
            labels.append((query, text, label, votes))
        else:
            named = ", ".join(f"{c} {given[c]}" for c in CLASSES if given[c])
            dropped.append((query, text, named, "no majority" if complete else "incomplete"))
    result = Counter(row[2] for row in labels)
    return Votes(
        _frame(labels, label=pl.String, votes=pl.Int64),
        _frame(dropped, given=pl.String, reason=pl.String),
        _fleiss(np.array(counts, dtype=np.float64).reshape(-1, len(CLASSES))),
        {c: result[c] for c in CLASSES},
        annotators,
    )


def _fleiss(counts: np.ndarray) -> float | None:
    """Fleiss' kappa (1971) of a table of queries × classes, all rows with the same number of labels.

    (observed − expected) / (1 − expected): observed is the share of pairs of annotators that agree,
    expected what they would if all labels were dealt out at random.
    """
    if not len(counts):
        return None
    n = counts[0].sum()
    observed = float(((counts**2).sum(axis=1) - n).mean() / (n * (n - 1)))
    expected = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (observed - expected) / (1 - expected) if expected < 1 else None


class _Ballot(NamedTuple):
    """One cell of a sheet: the label that an annotator gave to a query."""

    table: Table
    row: int
    query_id: str
    text: str
    annotator: object
    column: str
    label: str

    def problem(self, message: str) -> InputError:
        return self.table.error(message, self.row)


def _check_complete(ballots: dict[str, dict[object, _Ballot]], annotators: int) -> None:
    """Refuse empty cells, and queries that some annotators did not get."""
    gaps = [b for mine in ballots.values() for b in mine.values() if not b.label]
    if gaps:
        more = f" (and {len(gaps) - 1:,} more cells)" if len(gaps) > 1 else ""
        raise gaps[0].problem(
            f"{gaps[0].column} is empty for query {show(gaps[0].query_id)}{more}; "
            "fill it in, or drop incomplete queries"
        )
    short = [query for query, mine in ballots.items() if len(mine) < annotators]
    if short:
        raise InputError(
            f"{len(short):,} queries have fewer than {annotators} labels: {listing(short, 5)}; "
            "add them, or drop incomplete queries"
        )


def _ballots(sheet: Any, number: int, *, several: bool) -> Iterator[_Ballot]:
    """The labels of a sheet, one by one; empty rows are skipped."""
    table = read_table_file(sheet, quoted=True) if is_path(sheet) else read_table(sheet)
    texts = table.frame.select(pl.all().cast(pl.String).fill_null(""))
    cells = {name.strip().lower(): texts[name].to_list() for name in texts.columns}
    if table.path is not None and not {*QUERY_ID} & cells.keys():
        problem = "the first line must name the columns: query_id, text, annotator_1 …"
        raise InputError(problem, path=table.path, line=1)
    ids = cells[pick([*cells], QUERY_ID)]
    queries = next((cells[name] for name in QUERY_TEXT if name in cells), [""] * len(ids))
    columns = [name for name in cells if _ANNOTATOR.fullmatch(name)] or [
        *({"label", "gender"} & cells.keys())
    ]
    if not columns:
        raise table.error(f"no column annotator_1 or label; found {listing([*cells])}")
    if several:
        columns = [name for name in columns if any(map(str.strip, cells[name]))]
    for row, query in enumerate(map(str.strip, ids)):
        if not any(column[row].strip() for column in cells.values()):
            continue
        if not query:
            raise table.error("the query has no id", row)
        for name in columns:
            label = cells[name][row].strip()
            yield _Ballot(table, row, _unshield(query), _unshield(queries[row]), (number, name), name, label)


def _shield(text: str) -> str:
    """An apostrophe before what a spreadsheet would compute instead of show."""
    return "'" + text if _FORMULA.match(text) else text


def _unshield(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _frame(rows: list[tuple[Any, ...]], **columns: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"query_id": pl.String, "text": pl.String, **columns}, orient="row")
