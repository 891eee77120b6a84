"""The formats of files: TREC, TSV, CSV, JSONL, JSON, Parquet and TREC topics.

Lines are split by NumPy and Arrow for the whole block at once; the same pass finds the first line that is
wrong. Arrow reads JSONL; a block that it refuses is read again by Python, which names the line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from xml.sax.saxutils import unescape

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data import files
from evenrank.data.schema import (
    BODY,
    DOC_ID,
    QUERY_ID,
    RANK,
    RELEVANCE,
    ROWS,
    SCORE,
    TITLE,
    Block,
    Path,
    Table,
    batch_of,
    choose_columns,
    documents,
    header,
    join_fields,
    listing,
    pick,
    pick_fields,
    show,
)
from evenrank.errors import InputError, NoDocumentsError, is_whole
from evenrank.show.numbers import counted

# --- Lines ---------------------------------------------------------------------------------------------

_TAB = np.uint8(9)
_IS_SPACE = np.zeros(256, np.bool_)
_IS_SPACE[[9, 10, 32]] = True


def split_lines(
    data: files.Bytes, columns: int, wanted: Sequence[int], *, spaces: bool = False
) -> tuple[list[pa.StringArray], int, int]:
    """Cells of lines, separated by each tab, or by runs of spaces and tabs.

    Returns the wanted columns of all lines before the first one that does not have ``columns`` cells; how
    many lines these are; and the number of cells of that line (0: blank; −1: there is no such line).
    """
    if spaces:
        is_space = _IS_SPACE[data]
        returns = np.flatnonzero(data[:-1] == 13)
        is_space[returns[data[returns + 1] == 10]] = True
        edges = np.flatnonzero(np.diff(is_space, prepend=True))
        starts, ends = edges[::2], edges[1::2]
        newlines = np.flatnonzero(data == 10)
        counts = np.diff(np.searchsorted(starts, newlines), prepend=0)
    else:
        scratch = files.allocate(len(data))
        is_separator = np.less(np.subtract(data, _TAB, out=scratch), 2, out=scratch.view(np.bool_))
        separators = np.flatnonzero(is_separator)
        newlines = np.flatnonzero(data[separators] == 10)
        counts = np.diff(newlines, prepend=-1)
        starts, ends = np.empty_like(separators), separators
        starts[:1], starts[1:] = 0, separators[:-1] + 1
        line_ends = separators[newlines]
        ends[newlines] = line_ends - (data[line_ends - 1] == 13)
        if counts.min(initial=columns) < 2:  # a line of one cell, or a blank one
            alone = counts == 1
            counts[alone] = ends[newlines[alone]] > starts[newlines[alone]]
    is_wrong = counts != columns
    good, result = len(counts), -1
    if is_wrong.any():
        good = int(np.argmax(is_wrong))
        result = int(counts[good])
    arrays = []
    # `pa.array` and `to_numpy` would load pandas to ask whether something is its.
    rows = pa.Array.from_buffers(pa.int64(), good, [None, pa.py_buffer(np.arange(0, 2 * good, 2))])
    for column in wanted:
        bounds = np.zeros(2 * good + 1, np.int32)  # of a cell, and of what is between it and the next
        bounds[:-1:2] = starts[column : good * columns : columns]
        bounds[1::2] = ends[column : good * columns : columns]
        bounds[-1] = bounds[-2] if good else 0
        cells = pa.StringArray.from_buffers(2 * good, pa.py_buffer(bounds), pa.py_buffer(data))
        arrays.append(cells.take(rows))
    return arrays, good, result


def text_of(path: Path, limit: int | None = None) -> str:
    """A small file as text: UTF-8, with or without a byte order mark."""
    return files.whole(path, limit=BYTES if limit is None else limit).tobytes().decode()


def text_lines(path: Path, *, remark: str | None = "#") -> list[tuple[int, str]]:
    """The lines of a file, stripped, with their numbers; without blank lines and remarks."""
    stripped = ((number, line.strip()) for number, line in enumerate(text_of(path).split("\n"), start=1))
    return [(number, line) for number, line in stripped if line and not (remark and line.startswith(remark))]


def first_line(path: Path) -> tuple[str, bool]:
    """The first line of a text file, and whether there are more."""
    blocks = files.raw_blocks(path, block=1 << 16)
    raw = next(blocks, None)
    if raw is None:
        raise NoDocumentsError("the file is empty", path=path)
    line, _, rest = raw.tobytes().partition(b"\n")
    return line.decode(errors="replace").removesuffix("\r"), bool(rest) or next(blocks, None) is not None


def column_names(path: Path) -> list[str]:
    """The lower-case names in the first line of a text file, or of the columns of a Parquet file."""
    with contextlib.suppress(InputError, pa.ArrowException, OSError):  # reading the rows says what is wrong
        if is_parquet(path):
            with _open(path) as file:
                return [name.lower() for name in file.schema_arrow.names]
        line = first_line(path)[0]
        return [name.strip().strip('"') for name in line[:1000].lower().replace(",", "\t").split("\t")]
    return []


# --- Collections and queries: TSV and JSONL ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns of a TSV file, or keys of JSONL, are the id and the text; ``columns`` are all of TSV."""

    id: str
    fields: tuple[str, ...]
    columns: tuple[str, ...] = ()
    header: bool = False
    numbered: bool = False

    @property
    def optional(self) -> tuple[str, ...]:
        """The fields that may be missing in an object."""
        return (TITLE,) if len(self.fields) > 1 else ()


def is_jsonl(path: Path, first: str) -> bool:
    """Does a file with this name and this first line hold one object a line?"""
    suffix = files.format_suffix(path)
    return suffix in (".jsonl", ".ndjson", ".json") or (suffix != ".tsv" and first.lstrip().startswith("{"))


def line_layout(
    first: str, *, ids: Sequence[str], fields: Sequence[str], path: Path, joined: bool = True
) -> Layout:
    """The layout that the first line of a file announces, given the possible names of the id.

    The ``fields`` are joined; without ``joined`` the first of them that is there is the text.
    """
    if is_jsonl(path, first):
        values = parse_object(first, path, 1)
        columns = list(values)
    else:
        ids, fields = [name.lower() for name in ids], [name.lower() for name in fields]
        texts = {*BODY, TITLE, *fields} if joined else {*fields}
        names = header(first, {*ids, *texts}, needs=(ids, texts))
        if names is None:
            missing = [] if {*BODY} & {*fields} else [fields[0]]
            for name in missing or (ids if len(ids) == 1 else ()):
                raise InputError(f"no header names the field {name}", path=path, line=1)
            return Layout(ids[0], ("text",), (ids[0], "text"))
        if len(set(names)) < len(names):
            raise InputError("the header names a column twice", path=path, line=1)
        values, columns = {}, names
    id_name = pick(columns, ids, path=path, line=1)
    if not joined:
        fields = [pick(columns, fields, path=path, line=1)]
    others = columns if values else [name for name in columns if name != id_name]
    chosen = pick_fields(others, fields, path=path, line=1)
    if not values:
        return Layout(id_name, tuple(chosen), tuple(columns), header=True)
    if TITLE in fields and TITLE not in chosen:  # it may turn up later
        chosen.insert(list(fields).index(TITLE), TITLE)
    return Layout(id_name, tuple(chosen), numbered=type(values[id_name]) is int)


def parse_lines(raw: files.RawBlock, layout: Layout, path: Path) -> pa.RecordBatch:
    """The documents (or queries) of one raw block: ``doc_id`` and ``text``."""
    try:
        files.check_utf8(raw, path, line=1)
        if layout.columns:
            return _split_documents(raw, layout)
        frame = _arrow_objects(raw, layout)
        rows = Table(_python_objects(raw, layout) if frame is None else frame, path, 1)
        return documents(rows, layout.id, layout.fields)
    except InputError as error:
        line = files.line_at(path, raw.start) - 1 + (error.line or 1)
        raise InputError(error.message, path=path, line=line) from None


def _split_documents(raw: files.RawBlock, layout: Layout) -> pa.RecordBatch:
    columns, wanted = layout.columns, (layout.id, *layout.fields)
    arrays, good, count = split_lines(raw.data, len(columns), [columns.index(name) for name in wanted])
    if count < 0:
        skip = int(layout.header and raw.start == 0)
        ids, *texts = (array.slice(skip) for array in arrays)
        Table(_frame([layout.id], [ids]), "", 1 + skip).ids(layout.id)  # none is empty
        return batch_of(ids, join_fields(texts))
    expected = "<TAB>".join(columns)
    if not count:
        problem = "blank line"
    elif layout.header:
        problem = f"{counted(count, 'column')} instead of {len(columns)}; expected {expected}"
    elif count < 2:
        problem = f"no tab; expected {expected}"
    else:
        problem = f"more than one tab; expected {expected}, or a header with column names"
    raise InputError(problem, line=good + 1)


def _arrow_objects(raw: files.RawBlock, layout: Layout) -> pl.DataFrame | None:
    """What Arrow makes of the block; None where it fails or anything looks unusual."""
    from pyarrow import json as arrow_json

    kinds = dict.fromkeys((layout.id, *layout.fields), pa.string())
    kinds[layout.id] = pa.int64() if layout.numbered else pa.string()
    if raw.data[0] != ord("{"):  # Arrow crashes where the first value is null
        return None
    try:
        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(raw.data)),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=raw.size + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(list(kinds.items())), unexpected_field_behavior="ignore"
            ),
        )
        frame = batch_frame(table)
    except (pa.ArrowException, OSError, InputError):
        return None
    required = [name for name in kinds if name not in layout.optional]
    is_whole_block = len(frame) == np.count_nonzero(raw.data == 10)
    return frame if is_whole_block and not any(frame[name].null_count() for name in required) else None


def _python_objects(raw: files.RawBlock, layout: Layout) -> pl.DataFrame:
    """The same, line by line: names the bad line, or succeeds where Arrow is too narrow."""
    columns: dict[str, list[str | None]] = {name: [] for name in (layout.id, *layout.fields)}
    for number, line in enumerate(raw.tobytes().split(b"\n")[:-1], start=1):
        values = parse_object(line, number=number)
        for name, column in columns.items():
            value = values.get(name)
            if name == layout.id and is_whole(value):
                value = str(value)
            if not isinstance(value, str) and (value is not None or name not in layout.optional):
                kind = "text or a whole number" if name == layout.id else "text"
                problem = f"{name} is {show(value)}; it must be {kind}"
                problem = problem if name in values else f"no field {name}; found {listing(values)}"
                raise InputError(problem, line=number)
            if _is_torn(value or ""):
                raise InputError(LONE_SURROGATE, line=number)
            column.append(value)
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


LONE_SURROGATE = "an escape encodes half a character (a lone surrogate)"


def _is_torn(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def parse_object(line: bytes | str, path: Path | None = None, number: int | None = None) -> dict[str, Any]:
    """One line as a JSON object, or an error that names it."""
    if not line.strip():
        raise InputError("blank line", path=path, line=number)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply, or a number too long")
        raise InputError(f"not a JSON object: {reason}", path=path, line=number) from None
    if not isinstance(value, dict):
        problem = f"not a JSON object but {type(value).__name__}; give one object a line"
        raise InputError(problem, path=path, line=number)
    return value


def json_value(text: str, path: Path) -> Any:
    """A whole file that is one JSON value; no name may occur twice in an object."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, count in Counter(name for name, _ in pairs).items():
            if count > 1:
                raise InputError(f"{show(name)} occurs twice in one object", path=path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not readable as JSON: {files.one_line(error)}", path=path, line=line) from None


def nested_json(path: Path, value: str) -> dict[str, dict[str, Any]]:
    """A whole file that is one object, ``{query_id: {doc_id: value}}``, as ranx and pytrec_eval write it."""
    content = json_value(text_of(path), path)
    if not isinstance(content, dict) or not all(isinstance(inner, dict) for inner in content.values()):
        raise InputError(f'expected {{"query_id": {{"doc_id": {value}, …}}, …}}', path=path)
    return content


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """The objects of a JSONL file: the number of the line, its value, and the line as it is written."""
    number = 0
    for raw in files.raw_blocks(path):
        files.check_utf8(raw, path)
        for line in raw.tobytes().decode().split("\n")[:-1]:
            number += 1
            yield number, parse_object(line, path, number), line.removesuffix("\r")
    if not number:
        raise InputError("the file is empty", path=path)


# --- Small tables: TSV, CSV, JSONL, Parquet ------------------------------------------------------------

BYTES = 1 << 29
MOST_ROWS = 20_000_000
"""A small table has no more text and no more rows: a file that unpacks to more is refused, not held."""


def read_table_file(
    path: Path,
    *,
    layouts: Sequence[Sequence[str]] = (),
    known: Iterable[str] = (),
    needs: Sequence[Iterable[str]] = (),
) -> Table:
    """The columns of a TSV, CSV, JSONL or Parquet file under the names of its header.

    The separator is a comma where the first line has no tab. With ``layouts`` the file may lack a header:
    a first line that is not made of ``known`` names (or has, among three or more, one of each of ``needs``)
    is a row, and its columns are those of the layout with as many. Cells of text files stay text.
    """
    if is_parquet(path):
        return Table(parquet_frame(path, {*known} or None), path)
    raw = files.whole(path, limit=BYTES)
    if np.count_nonzero(raw.data == 10) > MOST_ROWS + 1:
        raise InputError(f"more than {MOST_ROWS:,} rows, too many for a table; give fewer", path=path)
    text = raw.tobytes().decode()
    first = text.partition("\n")[0].removesuffix("\r")
    if is_jsonl(path, first):
        return _json_table(text, path)
    separator = "\t" if "\t" in first else ","
    if not first.strip():
        raise InputError("blank line", path=path, line=1)
    names = header(first, known, separator, needs=needs) if layouts else []
    if names is not None:
        names = names or [name.strip() for name in _csv_cells(first, separator, path)]
        _check_names(names, path)
        begin = 2
    else:
        begin, count = 1, len(_csv_cells(first, separator, path))
        names = next((list(layout) for layout in layouts if len(layout) == count), None)
        if names is None:
            wanted = " or ".join("<TAB>".join(layout) for layout in layouts)
            raise InputError(f"{count} columns; expected {wanted}", path=path, line=1)
    is_tsv = separator == "\t"
    table = _tsv_table(raw, names, begin, path) if is_tsv else _csv_table(text, names, begin, path)
    table.require_rows()
    return table


def _check_names(names: Sequence[str], path: Path) -> None:
    if len(names) < 2:
        raise InputError("one column; expected a header with several", path=path, line=1)
    for at, name in enumerate(names):
        if not name:
            raise InputError("the header has a column without a name", path=path, line=1)
        if name in names[:at]:
            raise InputError(f"the header names the column {listing([name])} twice", path=path, line=1)


def _frame(names: Iterable[str], arrays: Iterable[pa.Array]) -> pl.DataFrame:
    return pl.DataFrame({name: pl.from_arrow(array) for name, array in zip(names, arrays, strict=True)})


def _tsv_table(raw: files.RawBlock, names: Sequence[str], begin: int, path: Path) -> Table:
    arrays, good, count = split_lines(raw.data, len(names), range(len(names)))
    if count >= 0:
        is_blank = not count or not raw.tobytes().split(b"\n", good + 1)[good].strip()
        problem = "blank line" if is_blank else f"{counted(count, 'column')} instead of {len(names)}"
        raise InputError(problem, path=path, line=good + 1)
    return Table(_frame(names, arrays).slice(begin - 1), path, begin)


def _csv_table(text: str, names: Sequence[str], begin: int, path: Path) -> Table:
    rows, lines = [], []
    for line, cells in csv_rows(io.StringIO(text, newline=""), ",", path):
        if not any(map(str.strip, cells)) and len(cells) < 2:
            raise InputError("blank line", path=path, line=line)
        if len(cells) != len(names):
            raise InputError(f"{counted(len(cells), 'column')} instead of {len(names)}", path=path, line=line)
        rows.append(cells)
        lines.append(line)
    rows, lines = rows[begin - 1 :], lines[begin - 1 :]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return Table(frame, path, begin, pl.Series(lines, dtype=pl.Int64))


def csv_rows(
    text: Iterable[str], separator: str, path: Path, line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV, each with the line where it starts; a quoted cell may contain line ends."""
    reader = csv.reader(text, delimiter=separator, strict=True)
    before = line - 1
    try:
        for cells in reader:
            yield line, cells
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"not a line of CSV: {error}", path=path, line=line) from None


def _csv_cells(line: str, separator: str, path: Path) -> list[str]:
    return line.split("\t") if separator == "\t" else next(csv_rows([line], separator, path))[1]


def read_sheet(path: Path, known: Iterable[str]) -> tuple[list[str], list[tuple[int, list[str]]]] | None:
    """What a spreadsheet exports: the names in lower case, and every row with its line.

    Columns may be separated by tabs, semicolons or commas; empty rows are skipped. None where the first
    line has none of the ``known`` names.
    """
    lines = io.StringIO(text_of(path), newline="")
    first = lines.readline().strip().lower()
    for separator in "\t;,":
        names = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
        if len(names) > 1 and set(names) & set(known):
            break
    else:
        return None
    rows = [row for row in csv_rows(lines, separator, path, 2) if any(map(str.strip, row[1]))]
    for line, cells in rows:
        if len(cells) != len(names):
            problem = f"found {counted(len(cells), 'column')} where the header has {len(names)}"
            raise InputError(problem, path=path, line=line)
    return names, rows


def _json_table(text: str, path: Path) -> Table:
    """One object a line, all with the fields of the first; null is an empty cell."""
    names: list[str] = []
    rows: list[list[str]] = []
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        values = parse_object(line, path, number)
        names = names or list(values)
        problem = ""
        if {*values} != {*names}:
            problem = f"fields {listing(values)} instead of {listing(names)}"
        for name, value in values.items():
            if isinstance(value, bool | list | dict):
                problem = problem or f"{listing([name])} is {show(value)}; give text or a number"
        rows.append(["" if values.get(name) is None else str(values[name]) for name in names])
        if _is_torn("".join([*rows[-1], *names])):
            problem = LONE_SURROGATE
        if problem:
            raise InputError(problem, path=path, line=number)
    return Table(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"), path, 1)


# --- Runs and judgments: TREC --------------------------------------------------------------------------

_FILLER = {"q0", "iter", "iteration", "tag", "run", "run_id", "name", "system"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of file looks like: its columns, how many a line may have, the names in a header."""

    expected: str
    counts: tuple[int, ...]
    names: dict[str, tuple[str, ...]]

    @property
    def known(self) -> set[str]:
        return _FILLER.union(*self.names.values())


QRELS = Kind(
    "query_id 0 doc_id relevance",
    (4,),
    {"query_id": QUERY_ID, "doc_id": DOC_ID, "relevance": RELEVANCE},
)
RUN = Kind(
    "query_id Q0 doc_id rank score tag",
    (6, 5, 3),
    {"query_id": QUERY_ID, "doc_id": DOC_ID, "rank": RANK, "score": SCORE},
)
_THREE_COLUMNS = "a run of three columns holds query_id, doc_id and rank, for scores give all six"


def read_trec(path: Path, kind: Kind) -> Iterator[Table]:
    """The columns of a run or judgments, in pieces; those of lines as text.

    The number of columns is that of the first line: a run may lack its tag, but not here and there. Three
    columns are a run as MS MARCO has it: query_id, doc_id and rank; its score is −rank.
    """
    if is_parquet(path):
        yield from _parquet_pieces(path, kind.known)
        return
    line, columns, blank, has_rows, is_marco = 1, 0, 0, False, False
    wanted: dict[str, int] = {}
    expected = ""
    firsts: Counter[str] = Counter()
    for raw in files.raw_blocks(path):
        skip = 0
        if not wanted:
            first = raw.tobytes().split(b"\n", 1)[0].decode(errors="replace").strip(" \t\r")
            names = header(first, kind.known, None)
            skip = int(names is not None)
            columns = len(names) if names else len(re.split(r"[ \t]+", first))
            is_marco = names is None and columns == 3 and 3 in kind.counts
            if names is None:
                names = ["query_id", "doc_id", "rank"] if is_marco else kind.expected.split()
                columns = columns if columns in kind.counts else kind.counts[0]
            optional = ("rank", "score") if is_marco else ("rank",)
            chosen = choose_columns(names, kind.names, optional, path=path, line=1)
            wanted = {column: names.index(name) for column, name in chosen.items()}
            expected = " ".join(names)
        if blank and raw.tobytes().strip(b" \t\r\n"):
            raise InputError("blank line", path=path, line=blank)
        if blank:
            continue
        files.check_utf8(raw, path, line=line)
        arrays, good, count = split_lines(raw.data, columns, tuple(wanted.values()), spaces=True)
        if count == 0 and not raw.tobytes().split(b"\n", good)[good].strip(b" \t\r\n"):
            blank = line + good  # fine at the end of the file
        elif count >= 0:
            problem = f"{counted(count, 'column')} instead of {columns}; expected {expected}"
            raise InputError(problem if count else "blank line", path=path, line=line + good)
        piece = Table(_frame(wanted, arrays), path, line)
        if is_marco and good:
            piece = _with_scores(piece)
            firsts.update(dict.fromkeys(piece.frame["query_id"].unique().to_list(), 0))
            firsts.update(piece.frame.filter(pl.col("rank") == "1")["query_id"].to_list())
        if good > skip:
            has_rows = True
            yield Table(piece.frame.slice(skip), path, line + skip)
        line += good
    if not has_rows:
        raise InputError("the file has no rows" if wanted else "the file is empty", path=path)
    _check_firsts(firsts, path)


def _with_scores(piece: Table) -> Table:
    """Rows of three columns with a score that puts them in the order of their ranks."""
    ranks = piece.frame["rank"]
    odd = ~ranks.str.contains(r"^[1-9]\d*$")
    piece.refuse(odd, lambda row: f"rank is {show(ranks[row])}; {_THREE_COLUMNS}")
    return replace(piece, frame=piece.frame.with_columns(score=pl.concat_str(pl.lit("-"), "rank")))


def _check_firsts(firsts: Mapping[str, int], path: Path) -> None:
    """Refuse three columns whose last is no rank: then some query has no first document, or several."""
    for query, count in firsts.items():
        if count != 1:
            many = "no document" if count == 0 else "several documents"
            raise InputError(f"query {show(query)} has {many} at rank 1; {_THREE_COLUMNS}", path=path)


# --- TREC topics ---------------------------------------------------------------------------------------

_START = re.compile(r"<top(?:ic)?(\s[^<>]*+)?+>", re.IGNORECASE)
_END = re.compile(r"</top(?:ic)?>", re.IGNORECASE)
_BETWEEN = re.compile(r"</topics>|<!--[^>]*+>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_-]*+)[^<>]*+>")
_NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LABEL = re.compile(r"(?:number|topic)\s*:\s*", re.IGNORECASE)
_PROLOGUE = re.compile(r"(?:\s*+(?:<\?xml|<!--|<topics)[^>]*+>)*+", re.IGNORECASE)
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def is_topics(text: str) -> bool:
    """Does this file start with a topic, after what XML may put before it?"""
    prologue = _PROLOGUE.match(text)
    at = prologue.end() if prologue else 0
    return _START.match(text[at : at + 10_000].lstrip()) is not None


def read_topics(text: str, path: Path) -> Table:
    """``query_id`` and ``text`` (the title), and the line on which each topic starts."""
    rows: list[tuple[str, str]] = []
    lines: dict[str, int] = {}
    starts = list(_START.finditer(text))
    line, seen = 1, 0
    for start, until in zip(starts, [*(start.start() for start in starts[1:]), len(text)], strict=True):
        line += text.count("\n", seen, start.start())
        seen = start.start()
        if end := _END.search(text, start.end(), until):
            rest = _BETWEEN.sub(lambda match: " " * len(match[0]), text[end.end() : until])
            if stray := rest.lstrip():
                at = line + text.count("\n", seen, until - len(stray))
                raise InputError("text between topics", path=path, line=at)
            until = end.start()
        row = _topic(start[1] or "", _topic_parts(text[start.end() : until]), path, line)
        if row[0] in lines:
            problem = f"topic {show(row[0])} was already on line {lines[row[0]]}"
            raise InputError(problem, path=path, line=line)
        rows.append(row)
        lines[row[0]] = line
    frame = pl.DataFrame(rows, schema={"query_id": pl.String, "text": pl.String}, orient="row")
    return Table(frame, path, 1, pl.Series(lines.values(), dtype=pl.Int64))


def _topic(attributes: str, parts: dict[str, str], path: Path, line: int) -> tuple[str, str]:
    number = _NUMBER.search(attributes)
    query_id = _unlabelled(parts["num"]) if "num" in parts else number[1] if number else ""
    if len(query_id.split()) != 1:
        raise InputError("a topic without a number; expected <num> Number: 301", path=path, line=line)
    title = parts.get("title", parts.get("query"))
    if title is None:
        raise InputError(f"a topic without <title>; found {listing(parts)}", path=path, line=line)
    return query_id, _unlabelled(title)


def _unlabelled(content: str) -> str:
    """Without the word that classic topics put before the value: ``Number: 301``, ``Topic: hats``."""
    match = _LABEL.match(content)
    return content[match.end() :] if match else content


def _topic_parts(body: str) -> dict[str, str]:
    """The text after each tag up to the next one, in one line each; the first of a name counts."""
    parts: dict[str, str] = {}
    pieces = _TAG.split(body)
    for slash, name, content in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if not slash:
            parts.setdefault(name.lower(), " ".join(unescape(content, _QUOTES).split()))
    return parts


# --- Parquet -------------------------------------------------------------------------------------------

MAGIC = b"PAR1"
CHECKSUM = b"evenrank.checksum"


def is_parquet(path: Path) -> bool:
    """Is this a Parquet file?"""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 (a pipe cannot be read twice)
            return False
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(4) == MAGIC
    except (OSError, ValueError):
        return False


def _open(path: Path) -> Any:
    from pyarrow import parquet

    # Reading page by page keeps memory flat where a row group holds a million documents.
    return parquet.ParquetFile(
        path, pre_buffer=False, buffer_size=1 << 20, memory_map=False, page_checksum_verification=True
    )


def metadata_checksum(schema: pa.Schema, rows: int, facts: str) -> dict[str, str]:
    """The entry of a Parquet file's metadata that protects its schema, its number of rows and its facts.

    Checksums of pages (``write_page_checksum=True``) protect the values of the columns only.
    """
    fields = [[field.name, str(field.type)] for field in schema]
    return {CHECKSUM.decode(): files.checksum([fields, rows, facts])}


def read_checked(path: Path, key: bytes) -> tuple[pa.Table, str | None]:
    """A table of ours and the facts stored under a key, compared with all checksums that it has."""
    with files.reading(path), _open(path) as file:
        table = file.read()
        table.validate(full=True)
        facts = _check_metadata(file, len(table), key, path)
    return table, facts


def check_parquet(path: Path, key: bytes) -> pa.Schema:
    """Compare a table of ours with all its checksums without holding it; returns its schema."""
    with files.reading(path), _open(path) as file:
        rows = sum(len(batch) for batch in file.iter_batches(use_threads=False))
        _check_metadata(file, rows, key, path)
        return file.schema_arrow


def _check_metadata(file: Any, rows: int, key: bytes, path: Path) -> str | None:
    stored = file.metadata.metadata or {}
    facts = stored[key].decode(errors="replace") if key in stored else None
    expected = metadata_checksum(file.schema_arrow, rows, facts or "")[CHECKSUM.decode()].encode()
    if stored.get(CHECKSUM, expected) != expected:
        raise InputError("damaged: its names or facts do not fit their checksum; make it again", path=path)
    return facts


def parquet_columns(path: Path, *, ids: Sequence[str], fields: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The names of the id column and the text columns."""
    with files.reading(path), _open(path) as file:
        columns = file.schema_arrow.names
        if not file.metadata.num_rows:
            raise NoDocumentsError("the file has no rows", path=path)
    return pick(columns, ids, path=path), tuple(pick_fields(columns, fields, path=path))


def parquet_parts(path: Path, size: int) -> list[files.Part]:
    """Groups of rows that have about ``size`` bytes together: the first, and the one behind the last."""
    with files.reading(path), _open(path) as file:
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
    cuts, filled = [0], 0
    for group, taken in enumerate(sizes):
        if filled and filled + taken > size:
            cuts.append(group)
            filled = 0
        filled += taken
    return list(zip(cuts, [*cuts[1:], len(sizes)], strict=True))


def parquet_blocks(
    path: Path, id_column: str, fields: tuple[str, ...], part: files.Part | None = None
) -> Iterator[Block]:
    """The collection, or a part of it, 8,192 rows a block. Pages are decoded here, texts in the block."""
    with files.reading(path), _open(path) as file:
        about = file.metadata
        share = files.require_regular(path) / max(1, about.num_rows)
        first, behind = part or (0, about.num_row_groups)
        rows = sum(about.row_group(group).num_rows for group in range(first))
        groups = list(range(first, behind))
        for batch in file.iter_batches(
            batch_size=ROWS, row_groups=groups, columns=[id_column, *fields], use_threads=False
        ):
            size = int((rows + len(batch)) * share) - int(rows * share)
            yield Block(partial(_documents, batch, id_column, fields, rows, path), size)
            rows += len(batch)


def _documents(
    batch: pa.RecordBatch, id_column: str, fields: Sequence[str], row: int, path: Path
) -> pa.RecordBatch:
    return documents(Table(batch_frame(batch, path), path, offset=row), id_column, fields)


def batch_frame(batch: pa.RecordBatch | pa.Table, path: Path | None = None) -> pl.DataFrame:
    """A table of Arrow as one of Polars."""
    with files.reading(path):
        batch.validate(full=True)
    return pl.DataFrame([series(batch.column(name), name, path) for name in batch.schema.names])


def parquet_frame(path: Path, wanted: Collection[str] | None = None) -> pl.DataFrame:
    """A Parquet file that fits in memory as a table.

    Of columns that are not ``wanted`` only the name is read: their cells are null.
    """
    return pl.concat([piece.frame for piece in _parquet_pieces(path, wanted)], rechunk=True)


def _parquet_pieces(path: Path, wanted: Collection[str] | None) -> Iterator[Table]:
    """A Parquet file, a million rows at a time."""
    with files.reading(path), _open(path) as file:
        columns = file.schema_arrow.names
        for name, count in Counter(columns).items():
            if count > 1:
                raise InputError(f"column {name} is there twice", path=path)
        read = [name for name in columns if wanted is None or name in wanted]
        kinds = {name: file.schema_arrow.field(name).type for name in read}
        empty = pa.record_batch([pa.array([], kind) for kind in kinds.values()], names=read)
        rows = 0
        batches = file.iter_batches(1 << 20, columns=read, use_threads=False)
        for batch in chain([next(batches, empty)], batches):
            frame = batch_frame(batch, path).with_columns(
                pl.lit(None).alias(name) for name in columns if name not in read
            )
            yield Table(frame.select(columns), path, offset=rows)
            rows += len(batch)


def series(column: pa.Array | pa.ChunkedArray, name: str, path: Path | None = None) -> pl.Series:
    """A column of Arrow as one of Polars."""
    try:
        column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        return pl.Series(name, pl.from_arrow(column))
    # Polars panics at some types and values, outside of the hierarchy of Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, ValueError) as error:
        problem = f"column {name} holds {column.type}, which cannot be read; make it text or numbers"
        raise InputError(problem, path=path) from error
