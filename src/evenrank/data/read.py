"""Whatever looks like a table becomes a frame: paths, frames, dicts, rows, datasets of ir_datasets.

Ids are text: ``001`` stays ``001``, and whole numbers become text.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

from evenrank.data import files, formats
from evenrank.data.schema import (
    GENDER,
    GENDERS_SCHEMA,
    QRELS_SCHEMA,
    QUERIES_SCHEMA,
    QUERY_ID,
    QUERY_TEXT,
    Names,
    Path,
    Table,
    choose_columns,
    known_gender,
    show,
)
from evenrank.errors import InputError
from evenrank.parallel import forked_with_threads


def refuse_after_fork() -> None:
    """Refuse to work with Polars in a process that was forked after Polars had started its threads.

    Polars would wait forever for threads that the child does not have. The functions that turn inputs into
    tables call this, and nearly everything passes through them.
    """
    if forked_with_threads - {os.getpid()}:
        raise InputError(
            "this process was forked after Polars had started its threads, and would wait for them forever; "
            "start workers with spawn, or with joblib's loky"
        )


def read_table(
    x: Any,
    names: Names | None = None,
    *,
    optional: Sequence[str] = (),
    part: str = "docs",
    layouts: Sequence[Sequence[str]] = (),
) -> Table:
    """Whatever looks like a table.

    Parameters
    ----------
    x
        A path (TSV or CSV with a header, JSONL, Parquet; plain, gzip or zstd), a Polars, pandas or Arrow
        table, a dict (``{first: second}``, or ``{first: {second: third}}``), rows (tuples, dicts, named
        tuples), or an ir_datasets dataset.
    names
        The wanted columns, each with the names it may have in the input. Without them every column stays,
        under its own name.
    optional
        Of these names, those that may be missing.
    part
        What ir_datasets calls such rows.
    layouts
        The columns of a text file without a header; see :func:`evenrank.data.formats.read_layout`.
    """
    refuse_after_fork()
    if isinstance(x, Table):
        return x if names is None else x.renamed(names, optional)
    if (path := path_of(x)) is not None:
        return formats.read_table_file(path, names, optional=optional, layouts=layouts)
    return Table(as_frame(x, names, part=part, optional=optional))


def is_path(x: object) -> bool:
    """A path, or a name such as ``irds:ID``?"""
    return isinstance(x, str | os.PathLike)


def path_of(x: Any) -> Path | None:
    """The path that something given as a table is, if it is one."""
    return x if isinstance(x, str | os.PathLike) and not is_irds(x) else None


def read_queries(x: Any) -> pl.DataFrame:
    """The queries: ``query_id`` and ``text``, in their order, each id once.

    `x` is a path (``query_id<TAB>text``, JSONL, TREC topics, Parquet), a frame, a dict ``{query_id: text}``,
    rows, or an ir_datasets dataset; of TREC topics the title is taken.
    """
    names = {"query_id": QUERY_ID, "text": QUERY_TEXT}
    rows = read_table(x, names, part="queries", layouts=[list(names)])
    frame = rows.frame.select(rows.ids("query_id"), rows.texts("text"))
    rows.require_rows("queries")
    rows.require_unique("query_id")
    return frame.cast(QUERIES_SCHEMA)


def read_qrels(x: Any) -> pl.DataFrame:
    """The judgments: ``query_id``, ``doc_id``, ``relevance`` (a whole number; 0 or less: not relevant).

    `x` is a path (TREC: ``query_id 0 doc_id relevance``; BEIR: three columns with a header; Parquet), a
    frame, a dict ``{query_id: {doc_id: relevance}}``, rows, or an ir_datasets dataset.
    """
    pieces = list(read_pieces(x, formats.QRELS, "qrels"))
    rows = replace(pieces[0], frame=pl.concat([piece.frame for piece in pieces], rechunk=True))
    columns = rows.ids("query_id"), rows.ids("doc_id"), rows.numbers("relevance", whole=True)
    rows = replace(rows, frame=rows.frame.select(columns))
    rows.require_unique("query_id", "doc_id")
    rows.require_rows("qrels")
    return rows.frame.cast(QRELS_SCHEMA)


def read_pieces(x: Any, names: Names, part: str, optional: Sequence[str] = ()) -> Iterator[Table]:
    """Judgments or a run, in pieces if a file of lines or Parquet holds them."""
    refuse_after_fork()
    if (path := path_of(x)) is not None:
        yield from formats.read_trec(path, names, optional)
    else:
        yield Table(as_frame(x, names, part=part, optional=optional))


def read_genders(x: Any) -> pl.DataFrame:
    """Known genders of queries: ``query_id`` and ``gender`` (female, male, neutral, other).

    `x` is a path (``query_id<TAB>label``, ``query_id<TAB>text<TAB>label``, or TSV or CSV with a header, or
    Parquet), a frame, a dict ``{query_id: label}`` or rows. f, m, n, women, non-gendered and the like are
    understood in either case. Any other label is refused.
    """
    return labelled_queries(x).select("query_id", "gender").cast(GENDERS_SCHEMA)


def labelled_queries(x: Any) -> pl.DataFrame:
    """``query_id``, ``gender``, and ``text`` where the input has it."""
    rows = read_table(
        x,
        {"query_id": QUERY_ID, "text": QUERY_TEXT, "gender": GENDER},
        optional=("text",),
        part="queries",
        layouts=(("query_id", "label"), ("query_id", "text", "label")),
    )
    rows.require_rows("genders")
    ids, labels = rows.ids("query_id"), rows.ids("gender")
    known: dict[str, str] = {}
    for label in labels.unique(maintain_order=True):
        try:
            known[label] = known_gender(label)
        except InputError as error:
            raise rows.error(error.message, labels.index_of(label)) from None
    rows.require_unique("query_id")
    return rows.frame.with_columns(ids, labels.replace_strict(known, return_dtype=pl.String))


# --- What Python holds -----------------------------------------------------------------------------------


def as_frame(
    x: Any, names: Names | None, *, part: str = "docs", optional: Sequence[str] = ()
) -> pl.DataFrame:
    """A table with our column names out of what Python holds; `part` is ir_datasets' name for such rows.

    Without names every column stays, under its own name.
    """
    if is_frame(x):
        return _of_frame(x, names, optional)
    if isinstance(x, Mapping) and names is not None:
        x = _mapping_rows(x, [name for name in names if name not in optional])
    if is_irds(x) or is_dataset(x):
        x = DatasetRows(irds_dataset(x), part)
    if isinstance(x, (str, bytes, Mapping)) or not isinstance(x, Iterable):
        raise InputError(f"{show(x)} is not a table; give a path, a frame, a dict or rows")
    if names is not None:
        return _of_rows(list(x), names, optional)
    rows = [row_values(item, row) for row, item in enumerate(x, start=1)]
    columns = dict.fromkeys(str(name) for row in rows for name in row)
    return pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in columns])


def is_pandas(x: object) -> bool:
    """A table of pandas?"""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "iloc")


def is_spark(x: object) -> bool:
    """A frame of Spark, on this machine or through Spark Connect?"""
    return type(x).__module__.startswith("pyspark.") and hasattr(x, "mapInArrow")


def spark() -> Any:
    """What works on frames of Spark. Loaded by name: it stands above all that it uses."""
    return import_module("evenrank.spark")


def is_frame(x: object) -> bool:
    """A Polars, pandas or Arrow table?"""
    return isinstance(x, (pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatch)) or is_pandas(x)


def frame_columns(frame: Any) -> list[str]:
    """The names of the columns of a Polars, pandas or Arrow table."""
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [str(name) for name in names]


def _of_frame(frame: Any, names: Names | None = None, optional: Sequence[str] = ()) -> pl.DataFrame:
    """A Polars, pandas or Arrow table: all columns, or those that we want, under our names."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    columns = frame_columns(frame)
    wanted = {name: (name,) for name in columns} if names is None else names
    chosen = choose_columns(columns, wanted, optional)
    if isinstance(frame, pl.DataFrame):
        return frame.select([pl.col(column).alias(name) for name, column in chosen.items()])
    if not is_pandas(frame):
        return formats.batch_frame(frame.select(list(chosen.values())).rename_columns(list(chosen)))
    rows = []
    for name, column in chosen.items():
        values = frame.iloc[:, columns.index(column)]
        try:
            rows.append(formats.series(pa.array(values, from_pandas=True), name))
        except (pa.ArrowException, TypeError):  # values of several types
            mixed = values.tolist()
            rows.append(pl.Series(name, mixed, strict=False) if names is None else text_values(mixed, name))
    return pl.DataFrame(rows)


def _mapping_rows(x: Mapping[Any, Any], names: list[str]) -> list[tuple[Any, ...]]:
    """The rows of ``{first: second}``, or of ``{first: {second: third}}`` where there are three columns."""
    if len(names) == 2:
        return list(x.items())
    for key, part in x.items():
        if not isinstance(part, Mapping):
            raise InputError(f"{show(key)} has {show(part)}; expected {{query_id: {{doc_id: {names[2]}}}}}")
    return [(key, *pair) for key, part in x.items() for pair in part.items()]


def _of_rows(rows: list[Any], names: Names, optional: Sequence[str]) -> pl.DataFrame:
    wanted = [name for name in names if name not in optional]
    if not rows or is_plain_row(rows[0]):
        for row, item in enumerate(rows, start=1):
            if not is_plain_row(item) or len(item) != len(wanted):
                raise InputError(f"row {row}: {show(item)}; expected ({', '.join(wanted)})")
        columns = zip(*rows, strict=True) if rows else [()] * len(wanted)
        return _columns(dict(zip(wanted, map(list, columns), strict=True)))
    values = [row_values(item, row) for row, item in enumerate(rows, start=1)]
    chosen = choose_columns(list(values[0]), names, optional)
    for row, item in enumerate(values, start=1):
        if missing := [column for column in chosen.values() if column not in item]:
            raise InputError(f"row {row}: no {missing[0]}")
    return _columns({name: [item[column] for item in values] for name, column in chosen.items()})


def is_plain_row(item: Any) -> bool:
    """A row whose values have no names: a list, or a tuple that is no named tuple."""
    return isinstance(item, list) or (isinstance(item, tuple) and not hasattr(item, "_fields"))


def row_values(item: Any, row: int) -> Mapping[str, Any]:
    """A row with named values: a mapping, a named tuple, or an object with attributes."""
    if isinstance(item, Mapping):
        return item
    if hasattr(item, "_asdict"):
        values: dict[str, Any] = item._asdict()
        return values
    if hasattr(item, "__dict__") and vars(item):
        return vars(item)
    raise InputError(f"row {row}: {show(item)} is not a row; give tuples, dicts or named tuples")


def _columns(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            _numbers(values, name) if name in ("relevance", "score", "rank") else text_values(values, name)
            for name, values in columns.items()
        ]
    )


def _numbers(values: list[Any], what: str) -> pl.Series:
    for row, value in enumerate(values):
        if not isinstance(value, (int, float, np.integer, np.floating)):
            raise InputError(f"row {row + 1}: {what} is {show(value)}; it must be a number")
    whole = all(isinstance(value, (int, np.integer)) for value in values)
    try:
        return pl.Series(what, np.array(values, np.int64 if whole else np.float64))
    except OverflowError as error:
        raise InputError(f"{what} holds a number that is too large") from error


def text_values(values: Iterable[Any], what: str, *, start: int = 0) -> pl.Series:
    """Python values as text: strings and whole numbers; None stays missing. `start` rows come before."""
    texts: list[str | None] = []
    for row, value in enumerate(values, start=start + 1):
        if value is None or isinstance(value, str):
            texts.append(value)
        elif isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InputError(f"row {row}: {what} is {show(value)}; it must be text or a whole number")
        else:
            texts.append(str(int(value)))
    try:
        return pl.Series(what, texts, pl.String)
    except UnicodeEncodeError as error:
        raise InputError(f"{what} holds half a character (a lone surrogate)") from error


# --- ir_datasets -----------------------------------------------------------------------------------------

PREFIX = "irds:"


def is_irds(x: object) -> bool:
    """A name of the ir_datasets catalogue, ``irds:ID``?"""
    return isinstance(x, str) and x.startswith(PREFIX)


def is_dataset(x: object) -> bool:
    """A dataset of ir_datasets?"""
    return hasattr(x, "docs_iter") or hasattr(x, "queries_iter") or hasattr(x, "qrels_iter")


def irds_dataset(x: Any) -> Any:
    """The dataset, or that of this name; nothing is downloaded before it is read."""
    if not is_irds(x):
        return x
    try:
        import ir_datasets
    except ImportError as error:
        raise InputError("ir_datasets is not installed; pip install 'evenrank[datasets]'", path=x) from error
    with irds_errors(x):
        return ir_datasets.load(x.removeprefix(PREFIX))


def has_part(dataset: Any, part: str) -> bool:
    """Does the dataset have ``docs``, ``queries``, ``qrels`` or ``scoreddocs``?"""
    check = getattr(dataset, f"has_{part}", None)
    return bool(check()) if callable(check) else hasattr(dataset, f"{part}_iter")


@contextmanager
def irds_errors(name: str) -> Iterator[None]:
    """Say in one line what ir_datasets says in a traceback: unknown ids, failed downloads."""
    logger = logging.getLogger("ir_datasets")
    logger.addFilter(_is_no_attempt)
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError("ir_datasets has no dataset of this name; see ir-datasets.com", path=name) from error
    except Exception as error:
        message = f"{type(error).__name__} {error}"
        hosts = re.findall(r"https?://([\w.-]+)", message) or re.findall(r"host=\W*([\w.-]+)", message)
        if hosts and re.search("download|Connection|Timeout|resolve", message):
            problem = f"cannot be downloaded: no answer from {' or '.join(dict.fromkeys(hosts))}"
            remedy = "go online, or copy ~/.ir_datasets from a machine that has the dataset"
            raise InputError(f"{problem}; {remedy}", path=name) from error
        raise InputError(f"ir_datasets cannot read this: {files.one_line(error)}", path=name) from error
    finally:
        logger.removeFilter(_is_no_attempt)


def _is_no_attempt(record: logging.LogRecord) -> bool:
    """Leave out what ir_datasets logs of each failed download: what is wrong is said once, at the end."""
    return not record.getMessage().lower().startswith("download")


class DatasetRows:
    """The rows of one part of a dataset, that can be read several times."""

    def __init__(self, dataset: Any, part: str) -> None:
        identify = getattr(dataset, "dataset_id", None)
        self.name = f"{PREFIX}{identify()}" if callable(identify) else type(dataset).__name__
        if not has_part(dataset, part):
            raise InputError(f"this dataset has no {part}", path=self.name)
        self._iterate = getattr(dataset, f"{part}_iter")

    def __iter__(self) -> Iterator[Any]:
        with irds_errors(self.name):
            yield from self._iterate()


# --- Fingerprints ----------------------------------------------------------------------------------------

_SLICE = 65_536


def fingerprint(frames: Iterable[pl.DataFrame | None]) -> str:
    """xxh3 (128 bits, hexadecimal) of the columns' names and values, in their order.

    Of other than whole numbers about ten digits count: the last bit of a score that another machine computed
    makes no other name.
    """
    digest = xxhash.xxh3_128()
    for frame in frames:
        digest.update(b"\x00frame" if frame is not None else b"\x00none")
        for column in [] if frame is None else frame.get_columns():
            digest.update(f"\x00{column.name}\x00{column.dtype}\x00{len(column)}\x00".encode())
            if column.dtype == pl.String:
                for start in range(0, len(column), _SLICE):
                    joined = column[start : start + _SLICE].fill_null("").str.join("\n").item()
                    digest.update(joined.encode())
                continue
            values = column.to_numpy()
            if column.dtype.is_float():  # sign, exponent and the first 32 bits, rounded; −0 becomes 0
                values = ((values.astype(np.float64) + 0.0).view(np.int64) + (1 << 19)) >> 20
            digest.update(values.tobytes())
    return digest.hexdigest()


def described(facts: Any) -> pl.DataFrame:
    """Settings, and what is known of a source, as a table for :func:`fingerprint`."""
    return pl.DataFrame({"facts": [json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str)]})
