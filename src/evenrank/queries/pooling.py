"""Which queries people should label, and what their labels add up to.

Bias can be measured only on queries that ask for no gender, and people know which those are. Labels are
dear, so N. Rekabsaz and M. Schedl (SIGIR 2020, §3.2) pool: they label the queries whose results lean
farthest to a side. Three annotators each, the majority decides.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from evenrank.data.formats import read_table_file
from evenrank.data.read import read_queries, read_table
from evenrank.data.schema import QUERY_ID, QUERY_TEXT, SPELLINGS, listing, pick, plain, show
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
    """The sheet for annotators: the queries whose results lean farthest to either side, in any run.

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


def sheet_text(sheet: pl.DataFrame, separator: str = "\t") -> str:
    """The sheet as spreadsheets read it: quoted where needed, and no query is taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
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


def vote(
    sheets: Any, *, classes: Sequence[str] = CLASSES, incomplete: Literal["error", "drop"] = "error"
) -> Votes:
    """The class that more than half of the annotators chose, query by query.

    Parameters
    ----------
    sheets
        One or several, as paths (TSV or CSV) or frames. A sheet has a row for each query and a column
        for each annotator (annotator_1, annotator_2 …, or a single ``label``); with several sheets, a
        column that is wholly empty counts for nobody. Or it is a long table with the columns query_id,
        annotator, label.
    classes
        The legal labels. Short forms and the paper's names are understood: f, Non-gendered, other or
        multiple.
    incomplete
        What to do about queries with an empty cell, or with fewer labels than the others.

    Notes
    -----
    A query without such a majority is dropped, as in the paper: for three annotators, when all differ.
    """
    if incomplete not in ("error", "drop"):
        raise InputError(f"unknown choice {incomplete!r}; choose one of error, drop")
    every = list(sheets) if isinstance(sheets, list | tuple) else [sheets]
    legal = _legal(classes)
    ballots: dict[str, dict[object, _Ballot]] = {}
    for number, sheet in enumerate(every):
        for ballot in _ballots(_read(sheet), number, several=len(every) > 1):
            mine = ballots.setdefault(ballot.query_id, {})
            if mine.setdefault(ballot.annotator, ballot) is not ballot:
                raise ballot.problem(f"query {show(ballot.query_id)} has two labels by the same annotator")
            if ballot.label and plain(ballot.label) not in legal:
                raise ballot.problem(f"unknown label {show(ballot.label)}; use one of {listing(classes)}")
    if not ballots:
        raise InputError("the sheets have no rows")
    annotators = max(map(len, ballots.values()))
    if annotators < 3:
        raise InputError(f"found {annotators} labels for a query; a majority needs at least three annotators")
    _check_complete(ballots, annotators, incomplete)
    labels, dropped, tallied = [], [], []
    for query, mine in ballots.items():
        text = next((b.text for b in mine.values() if b.text), None)
        given = Counter(legal[plain(b.label)] for b in mine.values() if b.label)
        label, votes = given.most_common(1)[0] if given else ("", 0)
        complete = given.total() == annotators
        if complete:
            tallied.append([given[c] for c in classes])
        if complete and 2 * votes > annotators:
            labels.append((query, text, label, votes))
        else:
            named = ", ".join(f"{c} {given[c]}" for c in classes if given[c])
            dropped.append((query, text, named, "no majority" if complete else "incomplete"))
    result = Counter(row[2] for row in labels)
    return Votes(
        _frame(labels, label=pl.String, votes=pl.Int64),
        _frame(dropped, given=pl.String, reason=pl.String),
        _fleiss(np.array(tallied, dtype=np.float64).reshape(-1, len(classes))),
        {c: result[c] for c in classes},
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
    query_id: str
    text: str
    annotator: object
    column: str
    label: str
    path: str | None
    line: int

    def problem(self, message: str) -> InputError:
        return _problem(message, self.path, self.line)


class _Sheet(NamedTuple):
    path: str | None  # None: a frame, whose lines are rows
    columns: list[str]
    rows: list[tuple[int, list[str]]]


def _problem(message: str, path: str | None, line: int) -> InputError:
    return InputError(message, path=path, line=line) if path else InputError(f"row {line}: {message}")


def _check_complete(ballots: dict[str, dict[object, _Ballot]], annotators: int, incomplete: str) -> None:
    if incomplete == "drop":
        return
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


def _ballots(sheet: _Sheet, number: int, *, several: bool) -> Iterator[_Ballot]:
    """The labels of a sheet, one by one, with the place where they stand."""
    names = sheet.columns
    ids = names.index(pick(names, QUERY_ID, path=sheet.path, line=1 if sheet.path else None))
    text = next((names.index(name) for name in QUERY_TEXT if name in names), None)
    by = names.index("annotator") if "annotator" in names else None
    columns = [i for i, name in enumerate(names) if _ANNOTATOR.fullmatch(name)]
    if not columns or by is not None:
        columns = [i for i, name in enumerate(names) if name in ("label", "gender")]
    if not columns:
        raise _problem(f"no column annotator_1 or label; found {listing(names)}", sheet.path, 1)
    if several:
        columns = [i for i in columns if any(cells[i].strip() for _, cells in sheet.rows)]
    for line, cells in sheet.rows:
        if not (query := _unshield(cells[ids].strip())):
            raise _problem("the query has no id", sheet.path, line)
        for i in columns:
            annotator: object = (number, i) if by is None else cells[by].strip()
            spelled = "" if text is None else _unshield(cells[text])
            yield _Ballot(query, spelled, annotator, names[i], cells[i].strip(), sheet.path, line)


def _read(sheet: Any) -> _Sheet:
    """A sheet as text cells, with line numbers; empty rows are skipped."""
    path = fspath(sheet) if isinstance(sheet, str | PathLike) else None
    table = read_table(sheet) if path is None else read_table_file(path, quoted=True)
    names = [name.strip().lower() for name in table.frame.columns]
    if path is not None and not {*QUERY_ID} & {*names}:
        problem = "the first line must name the columns: query_id, text, annotator_1 …"
        raise InputError(problem, path=path, line=1)
    cells = [["" if x is None else str(x) for x in row] for row in table.frame.iter_rows()]
    rows = [(table.number(row), each) for row, each in enumerate(cells) if any(map(str.strip, each))]
    return _Sheet(path, names, rows)


def _legal(classes: Sequence[str]) -> dict[str, str]:
    """Every spelling of every class."""
    known = {spelling: c for c in classes for spelling in SPELLINGS.get(c, ())}
    return known | {plain(c): c for c in classes}


def _shield(text: str) -> str:
    """An apostrophe before what a spreadsheet would compute instead of show."""
    return "'" + text if _FORMULA.match(text) else text


def _unshield(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _frame(rows: list[tuple[Any, ...]], **columns: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"query_id": pl.String, "text": pl.String, **columns}, orient="row")
