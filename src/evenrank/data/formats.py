"""The formats of files: TREC, TSV, CSV, JSONL, JSON, Parquet and TREC topics, each as a table of its cells.

The first line says how a file is laid out. NumPy splits lines, Arrow reads JSONL and Parquet; objects that
Arrow refuses are read again by Python, which names the line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    Names,
    Path,
    Table,
    choose_columns,
    documents,
    is_header,
    listing,
    pick,
    pick_fields,
    show,
)
from evenrank.errors import InputError, NoDocumentsError
from evenrank.show.numbers import counted

# --- The layout of a file of lines ------------------------------------------------------------------------

JSONL = ""
BLANKS = " "


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is laid out, as its first line shows.

    Attributes
    ----------
    columns
        The columns in their order; of JSONL, the keys of the first object.
    separator
        A tab, comma or semicolon; BLANKS where any number of blanks and tabs separate; JSONL for objects.
    has_header
        Whether the first line names the columns.
    """

    columns: tuple[str, ...]
    separator: str
    has_header: bool = False

    def expected(self) -> str:
        """The columns as they should stand in a line."""
        return {"\t": "<TAB>"}.get(self.separator, self.separator).join(self.columns)


def read_layout(
    first: str,
    path: Path,
    *,
    known: Iterable[str] = (),
    needs: Sequence[Iterable[str]] = (),
    layouts: Sequence[Sequence[str]] = (),
    separators: str = "\t;,",
) -> Layout:
    """The layout that the first line of a file shows.

    With `layouts` the file may lack a header: then a first line that is no header (:func:`is_header`) is a
    row, and its columns are those of the layout with as many.
    """
    if separators != BLANKS and is_jsonl(path, first):
        return Layout(tuple(parse_object(first, path, 1)), JSONL)
    if not first.strip():
        raise InputError("blank line", path=path, line=1)
    separator = separators[0] if separators[0] in first else max(separators, key=first.count)
    if separator in ";,":
        cells = next(_csv_rows(first, separator, path, 1))[1]
    else:
        cells = first.split(None if separator == BLANKS else separator)
    cells = [cell.strip() for cell in cells]
    names = [cell.lower() for cell in cells] if layouts else cells
    if layouts and not is_header(names, known, needs):
        for layout in layouts:  # a text with a comma in it is not two columns
            if len(layout) == len(names) and not ("text" in layout and separator in ";,"):
                return Layout(tuple(layout), separator)
        usual = Layout(tuple(layouts[0]), separators[0])
        problem = f"{counted(len(names), 'column')} instead of {len(layouts[0])}"
        raise InputError(f"{problem}; expected {usual.expected()}", path=path, line=1)
    if len(names) < 2:
        raise InputError("one column; expected a header with several", path=path, line=1)
    for at, name in enumerate(names):
        if not name:
            raise InputError("the header has a column without a name", path=path, line=1)
        if name in names[:at]:
            raise InputError(f"the header names the column {listing([name])} twice", path=path, line=1)
    return Layout(tuple(names), separator, has_header=True)


def read_docs_layout(
    first: str, path: Path, *, ids: Sequence[str], fields: Sequence[str]
) -> tuple[Layout, str, tuple[str, ...]]:
    """The layout of a collection, TSV or JSONL; the column with the ids, and those that make up a text."""
    if not is_jsonl(path, first):
        ids, fields = [name.lower() for name in ids], [name.lower() for name in fields]
    texts = {*BODY, TITLE, *fields}
    layout = read_layout(
        first, path, known={*ids, *texts}, needs=(ids, texts), layouts=[(ids[0], "text")], separators="\t"
    )
    columns = list(layout.columns)
    if layout.separator and not layout.has_header:
        missing = [] if {*BODY} & {*fields} else [fields[0]]
        for name in missing or (ids if len(ids) == 1 else ()):
            raise InputError(f"no header names the field {name}", path=path, line=1)
        return layout, columns[0], ("text",)
    id_column = pick(columns, ids, path=path, line=1)
    others = columns if layout.separator == JSONL else [name for name in columns if name != id_column]
    chosen = pick_fields(others, fields, path=path, line=1)
    if layout.separator == JSONL and TITLE in fields and TITLE not in chosen:  # it may turn up later
        chosen.insert(list(fields).index(TITLE), TITLE)
    return layout, id_column, tuple(chosen)


def is_jsonl(path: Path, first: str) -> bool:
    """Does a file with this name and this first line hold one object a line?"""
    suffix = files.format_suffix(path)
    return suffix in (".jsonl", ".ndjson", ".json") or (suffix != ".tsv" and first.lstrip().startswith("{"))


def first_line(path: Path) -> tuple[str, bool]:
    """The first line of a text file, and whether there are more."""
    blocks = files.raw_blocks(path, block=1 << 16)
    raw = next(blocks, None)
    if raw is None:
        raise NoDocumentsError("the file is empty", path=path)
    files.check_utf8(raw, path)
    line, _, rest = raw.data.partition(b"\n")
    return line.decode().removesuffix("\r"), bool(rest) or next(blocks, None) is not None


def column_names(path: Path) -> list[str]:
    """The names of the columns of a Parquet file, or the cells of the first line of a text file."""
    with contextlib.suppress(InputError, pa.ArrowException, OSError):  # reading the rows says what is wrong
        if is_parquet(path):
            with _open(path) as file:
                return list(file.schema_arrow.names)
        return [name.strip(' "') for name in re.split("[\t,;]", first_line(path)[0][:1000])]
    return []


# --- Lines -------------------------------------------------------------------------------------------------

_TABS_FOR_BLANKS = bytes.maketrans(b" ", b"\t")


def parse_lines(
    raw: files.RawBlock, layout: Layout, names: Sequence[str], path: Path, *, quoted: bool = False
) -> Table:
    """Return the named columns of a block of lines, as text; with `quoted`, of rows of CSV."""
    skip = int(layout.has_header and raw.line == 1)
    frame = None if quoted else _arrow_cells(raw.data, layout, names)
    if frame is not None:
        return Table(frame.slice(skip), path, raw.line + skip)
    files.check_utf8(raw, path)
    rows, lines = [], []
    read = _csv_rows if quoted else _plain_rows
    for line, cells in read(raw.data.decode(), layout.separator, path, raw.line):
        if not any(map(str.strip, cells)):
            if quoted and len(cells) == len(layout.columns):  # as spreadsheets leave them behind
                continue
            raise InputError("blank line", path=path, line=line)
        if len(cells) != len(layout.columns):
            problem = f"{counted(len(cells), 'column')} instead of {len(layout.columns)}"
            raise InputError(f"{problem}; expected {layout.expected()}", path=path, line=line)
        rows.append(cells)
        lines.append(line)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(layout.columns, pl.String), orient="row")
    numbers = pl.Series(lines[skip:], dtype=pl.Int64) if quoted else None
    return Table(frame.select(names).slice(skip), path, raw.line + skip, numbers)


def _arrow_cells(data: bytes, layout: Layout, names: Sequence[str]) -> pl.DataFrame | None:
    """Return the cells of lines; None where Arrow fails, or might see other lines than there are."""
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    if layout.separator == BLANKS:
        data = data.translate(_TABS_FOR_BLANKS)
        if any(each in data for each in (b"\t\t", b"\t\n", b"\t\r")):
            return None
    if data.startswith(files.BOM) or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return None
    columns = list(layout.columns)
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=columns),
            arrow_csv.ParseOptions(delimiter="\t", quote_char=False),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    # Arrow's functions, and columns one by one: those of Polars need threads, which a forked process lacks.
    begins = table.column(columns[0])
    is_blank = compute.or_(compute.equal(compute.binary_length(begins), 0), compute.starts_with(begins, " "))
    lines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == 10))
    if len(table) != lines or compute.any(is_blank).as_py():
        return None  # a line without a first cell may be blank
    return pl.DataFrame([series(table.column(name), name) for name in names])


def _plain_rows(text: str, separator: str, path: Path, line: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line."""
    for number, content in enumerate(text.split("\n")[:-1], start=line):
        cells = content.removesuffix("\r").replace(separator, "\t").split("\t")
        yield number, [cell for cell in cells if cell] if separator == BLANKS else cells


def _csv_rows(text: str, separator: str, path: Path, line: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV, each with the line where it starts; a quoted cell may contain line ends."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"not a line of CSV: {error}", path=path, line=line) from None


def text_of(path: Path) -> str:
    """A small file as text: UTF-8, with or without a byte order mark."""
    return files.whole(path).decode()


def text_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a file, stripped, with their numbers; without blank lines and remarks (``# …``)."""
    stripped = ((number, line.strip()) for number, line in enumerate(text_of(path).split("\n"), start=1))
    return [(number, line) for number, line in stripped if line and not line.startswith("#")]


# --- Objects -----------------------------------------------------------------------------------------------

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {str: "text", int: "a whole number", float: "a number"}
Kinds = Mapping[str, Sequence[type]]
"""What each field of an object may hold; any may be null."""


def read_objects(raw: files.RawBlock, path: Path) -> list[dict[str, Any]]:
    """Return the objects of a block, one a line."""
    lines = enumerate(raw.data.split(b"\n")[:-1], start=raw.line)
    return [parse_object(line, path, number) for number, line in lines]


def objects_table(
    objects: Sequence[Mapping[str, Any]], kinds: Kinds, path: Path, line: int = 1, *, optional: Sequence[str]
) -> Table:
    """Return the fields of objects as text; a null is null, and so are optional fields that are missing."""
    columns: dict[str, list[str | None]] = {name: [] for name in kinds}
    for number, values in enumerate(objects, start=line):
        for name, column in columns.items():
            value = values.get(name)
            if name not in values and name not in optional:
                raise InputError(f"no field {name}; found {listing(values)}", path=path, line=number)
            if value is not None and type(value) not in kinds[name]:
                wanted = " or ".join(_KINDS[kind] for kind in kinds[name])
                problem = f"{listing([name])} is {show(value)}; it must be {wanted}"
                raise InputError(problem, path=path, line=number)
            column.append(None if value is None else str(value))
            if _LONE_SURROGATE.search(column[-1] or ""):
                problem = "an escape encodes half a character (a lone surrogate)"
                raise InputError(problem, path=path, line=number)
    return Table(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)), path, line)


def _arrow_objects(raw: files.RawBlock, kinds: Kinds, path: Path, optional: Sequence[str]) -> Table | None:
    """What Arrow makes of objects; None where it fails or a field is missing."""
    from pyarrow import json as arrow_json

    if not raw.data.startswith(b"{"):  # Arrow crashes where the first value is null
        return None
    for id_kind in (pa.string(), pa.int64()):
        schema = pa.schema([(name, id_kind if int in kind else pa.string()) for name, kind in kinds.items()])
        try:
            table = arrow_json.read_json(
                pa.BufferReader(raw.data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(raw.data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
            frame = batch_frame(table)
        except (pa.ArrowException, OSError, InputError):
            continue
        missing = any(frame[name].null_count() for name in kinds if name not in optional)
        if len(frame) == raw.data.count(b"\n") and not missing:
            return Table(frame, path, raw.line)
    return None


def parse_docs(
    raw: files.RawBlock, layout: Layout, id_column: str, fields: Sequence[str], path: Path
) -> pa.RecordBatch:
    """The documents of one block of TSV or JSONL."""
    if layout.separator != JSONL:
        return documents(parse_lines(raw, layout, [id_column, *fields], path), id_column, fields)
    files.check_utf8(raw, path)
    kinds: Kinds = dict.fromkeys(fields, (str,)) | {id_column: (str, int)}
    optional = [TITLE] if len(fields) > 1 else []
    rows = _arrow_objects(raw, kinds, path, optional)
    if rows is None:
        rows = objects_table(read_objects(raw, path), kinds, path, raw.line, optional=optional)
    return documents(rows, id_column, fields)


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
        names = [name for name, _ in pairs]
        if len({*names}) < len(names):
            raise InputError(f"{show(max(names, key=names.count))} occurs twice in one object", path=path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not readable as JSON: {files.one_line(error)}", path=path, line=line) from None


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """The objects of a JSONL file: the number of the line, its value, and the line as it is written."""
    number = 0
    for raw in files.raw_blocks(path):
        files.check_utf8(raw, path)
        for number, line in enumerate(raw.data.decode().split("\n")[:-1], start=raw.line):
            yield number, parse_object(line, path, number), line.removesuffix("\r")
    if not number:
        raise InputError("the file is empty", path=path)


# --- Tables that fit in memory -----------------------------------------------------------------------------


def read_table_file(
    path: Path,
    names: Names | None = None,
    *,
    optional: Sequence[str] = (),
    layouts: Sequence[Sequence[str]] = (),
    quoted: bool = False,
) -> Table:
    """The columns of a TSV, CSV, JSONL or Parquet file, or of TREC topics; as text but for Parquet.

    With `names` only these, under our names; without them all, under those of the file. With `layouts` a file
    of lines may lack a header (:func:`read_layout`). With `quoted` cells between tabs may stand in quotes, as
    spreadsheets export them.
    """
    if is_parquet(path):
        tables = parquet_tables(path, names, optional)
        return Table(pl.concat([table.frame for table in tables], rechunk=True), path)
    raw = files.RawBlock(files.whole(path), 1, 0)
    first = raw.data.partition(b"\n")[0].decode().removesuffix("\r")
    if files.format_suffix(path) != ".tsv" and is_topics(raw.data.decode()):
        table = read_topics(raw.data.decode(), path)
    elif is_jsonl(path, first):
        objects = read_objects(raw, path)
        columns = list(dict.fromkeys(name for each in objects for name in each))
        if names is not None:
            columns = list(choose_columns(columns, names, optional, path=path, line=1).values())
        later = [outside for name in optional for outside in (names or {})[name]]
        table = objects_table(objects, dict.fromkeys(columns, (str, int, float)), path, optional=later)
    else:
        known = {outside for outsides in (names or {}).values() for outside in outsides}
        needs = [outsides for name, outsides in (names or {}).items() if name not in optional]
        layout = read_layout(first, path, known=known, needs=needs, layouts=layouts)
        table = parse_lines(raw, layout, layout.columns, path, quoted=quoted or layout.separator in ";,")
    table = table if names is None else table.renamed(names, optional)
    table.require_rows()
    return table


# --- Runs and judgments: TREC --------------------------------------------------------------------------

_FILLER = {"q0", "iter", "iteration", "tag", "run", "run_id", "name", "system"}
QRELS: Names = {"query_id": QUERY_ID, "doc_id": DOC_ID, "relevance": RELEVANCE}
RUN: Names = {"query_id": QUERY_ID, "doc_id": DOC_ID, "rank": RANK, "score": SCORE}
_QRELS_LINE = ("query_id", "0", "doc_id", "relevance")
_RUN_LINE = ("query_id", "Q0", "doc_id", "rank", "score", "tag")


def read_trec(path: Path, names: Names, optional: Sequence[str] = ()) -> Iterator[Table]:
    """The columns of a run or judgments, in pieces, under our names; those of lines as text.

    The number of columns is that of the first line: a run may lack its tag, but not here and there.
    """
    if is_parquet(path):
        yield from parquet_tables(path, names, optional)
        return
    known = {outside for outsides in names.values() for outside in outsides}
    layouts = (_RUN_LINE, _RUN_LINE[:-1]) if "score" in names else (_QRELS_LINE,)
    chosen: dict[str, str] = {}
    for raw in files.raw_blocks(path):
        if not chosen:
            files.check_utf8(raw, path)
            first = raw.data.partition(b"\n")[0].decode()
            layout = read_layout(first, path, known=known | _FILLER, layouts=layouts, separators=BLANKS)
            chosen = choose_columns(layout.columns, names, optional, path=path, line=1)
        table = parse_lines(raw, layout, list(chosen.values()), path)
        yield replace(table, frame=table.frame.rename({old: new for new, old in chosen.items()}))
    if not chosen:
        raise InputError("the file is empty", path=path)


# --- TREC topics ---------------------------------------------------------------------------------------

_PROLOGUE = re.compile(r"(?:\s*+(?:<\?xml|<!--|<topics)[^>]*+>)*+\s*+<top(?:ic)?[\s>]", re.IGNORECASE)
_TOPIC = re.compile(r"<top(?:ic)?(\s[^<>]*+)?+>", re.IGNORECASE)
_FIRST = re.compile(r"(?:\s*+(?:<\?xml|<!--|<topics)[^>]*+>)*+\s*+" + _TOPIC.pattern, re.IGNORECASE)
_END = re.compile(r"</top(?:ic)?>(?:\s|</topics>|<!--[^>]*+>)*+", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_-]*+)[^<>]*+>")
_NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LABEL = re.compile(r"(?:number|topic)\s*:\s*", re.IGNORECASE)
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def is_topics(text: str) -> bool:
    """Whether a file starts with a topic, after what XML may put before it."""
    return _FIRST.match(text) is not None


def read_topics(text: str, path: Path) -> Table:
    """``query_id`` and ``text`` (the title), and the line on which each topic starts."""
    rows: list[tuple[str, str]] = []
    lines: list[int] = []
    starts = list(_TOPIC.finditer(text))
    for start, until in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
        end = _END.search(text, start.end(), until)
        if end and end.end() < until:
            line = 1 + text.count("\n", 0, end.end())
            raise InputError("text between topics", path=path, line=line)
        lines.append(1 + text.count("\n", 0, start.start()))
        body = text[start.end() : end.start() if end else until]
        rows.append(_topic(start[1] or "", body, path, lines[-1]))
    frame = pl.DataFrame(rows, schema={"query_id": pl.String, "text": pl.String}, orient="row")
    return Table(frame, path, 1, pl.Series(lines, dtype=pl.Int64))


def _topic(attributes: str, body: str, path: Path, line: int) -> tuple[str, str]:
    """The number and the title: each is the text after its tag, without a label such as ``Number:``."""
    parts: dict[str, str] = {}
    pieces = _TAG.split(body)
    for slash, name, content in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if not slash:
            words = " ".join(unescape(content, _QUOTES).split())
            label = _LABEL.match(words)
            parts.setdefault(name.lower(), words[label.end() :] if label else words)
    number = _NUMBER.search(attributes)
    query_id = parts.get("num", number[1] if number else "")
    if len(query_id.split()) != 1:
        raise InputError("a topic without a number; expected <num> Number: 301", path=path, line=line)
    title = parts.get("title", parts.get("query"))
    if title is None:
        raise InputError(f"a topic without <title>; found {listing(parts)}", path=path, line=line)
    return query_id, title


# --- Parquet -------------------------------------------------------------------------------------------

MAGIC = b"PAR1"
CHECKSUM = b"evenrank.checksum"


def is_parquet(path: Path) -> bool:
    """Is this a Parquet file?"""
    try:
        # A pipe cannot be read twice.
        return stat.S_ISREG(os.stat(path).st_mode) and files.magic(path) == MAGIC  # noqa: PTH116
    except (OSError, ValueError, InputError):
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
        stored = file.metadata.metadata or {}
        schema = file.schema_arrow
    facts = stored[key].decode(errors="replace") if key in stored else None
    expected = metadata_checksum(schema, len(table), facts or "")[CHECKSUM.decode()].encode()
    if stored.get(CHECKSUM, expected) != expected:
        raise InputError("damaged: its names or facts do not fit their checksum; make it again", path=path)
    return table, facts


def parquet_columns(path: Path, *, ids: Sequence[str], fields: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The names of the id column and the text columns."""
    with files.reading(path), _open(path) as file:
        columns = file.schema_arrow.names
        if not file.metadata.num_rows:
            raise NoDocumentsError("the file has no rows", path=path)
    return pick(columns, ids, path=path), tuple(pick_fields(columns, fields, path=path))


def parquet_parts(path: Path, size: int) -> list[files.Part]:
    """Groups of rows that have about `size` bytes together: the first, and the one behind the last."""
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
        groups, columns = list(range(first, behind)), [id_column, *fields]
        for batch in file.iter_batches(ROWS, row_groups=groups, columns=columns, use_threads=False):
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


def parquet_tables(path: Path, names: Names | None = None, optional: Sequence[str] = ()) -> Iterator[Table]:
    """The named columns of a Parquet file under our names, or all of them, a million rows at a time."""
    with files.reading(path), _open(path) as file:
        schema = file.schema_arrow
        names = {name: (name,) for name in schema.names} if names is None else names
        chosen = choose_columns(schema.names, names, optional, path=path)
        columns = list(chosen.values())
        batches = file.iter_batches(1 << 20, columns=columns, use_threads=False)
        rows = 0
        empty = pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in columns]))
        for batch in chain([next(batches, empty)], batches):
            frame = batch_frame(batch, path).select(pl.col(old).alias(new) for new, old in chosen.items())
            yield Table(frame, path, offset=rows)
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
