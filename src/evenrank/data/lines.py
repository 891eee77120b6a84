"""Collections as lines of ``doc_id<TAB>text``, or of other columns that a header names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data import files
from evenrank.data.columns import (
    BODY,
    TITLE,
    Block,
    batch_of,
    header,
    join_fields,
    pick,
    pick_fields,
    strings,
)
from evenrank.errors import InputError
from evenrank.show.numbers import counted

GOOD, BLANK, NO_TAB, NO_ID, MORE_TABS, COLUMNS = range(6)
"""What may be wrong with a line."""
LITTLE = 1 << 22
"""Bytes of a file that are split in plain Python: loading the compiled kernels takes longer than that."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns a line has, and which of them are the id and the text."""

    columns: int = 2
    id: int = 0
    fields: tuple[int, ...] = (1,)
    header: bool = False
    expected: str = "doc_id<TAB>text"


def layout(
    first: bytes, *, ids: Sequence[str], fields: Sequence[str], path: str | os.PathLike[str]
) -> Layout:
    """The layout that the first line of a file announces, given the names an id goes by."""
    ids, fields = [name.lower() for name in ids], [name.lower() for name in fields]
    texts = {*BODY, TITLE, *fields}
    names = header(first, {*ids, *texts}, needs=(ids, texts))
    if names is None:
        if not {*BODY} & {*fields}:
            raise InputError(f"no header names the field {fields[0]}", path=path, line=1)
        return Layout(expected=f"{ids[0]}<TAB>text")
    if len(set(names)) < len(names):
        raise InputError("the header names a column twice", path=path, line=1)
    id_name = pick(names, ids, path=path, line=1)
    chosen = pick_fields([name for name in names if name != id_name], fields, path=path, line=1)
    return Layout(
        columns=len(names),
        id=names.index(id_name),
        fields=tuple(names.index(name) for name in chosen),
        header=True,
        expected="<TAB>".join(names),
    )


def blocks(path: str | os.PathLike[str], layout: Layout, part: files.Part | None = None) -> Iterator[Block]:
    """The collection, or a part of it, in blocks that parse themselves; only raw reading happens here."""
    for raw in files.raw_blocks(path, part=part):
        yield Block(partial(parse, raw, layout, path), raw.stored)


def parse(raw: files.RawBlock, layout: Layout, path: str | os.PathLike[str]) -> pa.RecordBatch:
    """The documents (or queries) of one raw block: ``doc_id`` and ``text``."""
    files.check_utf8(raw, path)
    skip = int(layout.header and raw.start == 0)
    found = 0
    if layout.columns == 2 and layout.id == 0 and not skip:
        code, ids, text = split_pairs(raw)
        good = len(ids)
    else:
        code, good, found, (ids, *texts) = split_columns(
            raw, layout.columns, (layout.id, *layout.fields), spaces=False
        )
        text = join_fields(texts)
        empty = pc.index(pc.binary_length(ids), 0).as_py()
        if empty >= 0:
            code, good = NO_ID, empty
    if code == GOOD:
        return batch_of(ids.slice(skip), text.slice(skip))
    problem = {
        BLANK: "blank line",
        NO_TAB: f"no tab; expected {layout.expected}",
        NO_ID: "the id is empty",
        MORE_TABS: f"more than one tab; expected {layout.expected}, or a header with column names",
        COLUMNS: f"{counted(found, 'column')} instead of {layout.columns}; expected {layout.expected}",
    }[code]
    raise InputError(problem, path=path, line=files.line_at(path, raw.start) + good)


def _is_little(raw: files.RawBlock) -> bool:
    return raw.start + raw.size <= LITTLE and "evenrank.data.kernels" not in sys.modules


def split_pairs(raw: files.RawBlock) -> tuple[int, pa.StringArray, pa.StringArray]:
    """Lines of ``id<TAB>text``: what is wrong (GOOD if nothing), and the ids and texts up to there."""
    if _is_little(raw):
        return plain_pairs(raw.tobytes().decode())
    from evenrank.data import kernels  # loads numba

    return kernels.split_pairs(raw.data, raw.size)


def split_columns(
    raw: files.RawBlock, columns: int, wanted: tuple[int, ...], *, spaces: bool
) -> tuple[int, int, int, list[pa.StringArray]]:
    """Lines of ``columns`` cells, separated by each tab, or by runs of spaces and tabs.

    Returns what is wrong (GOOD if nothing), the number of good rows before it, the number of columns
    found in the bad line, and the wanted columns of the good rows.
    """
    if _is_little(raw):
        return plain_columns(raw.tobytes().decode(), columns, wanted, spaces=spaces)
    from evenrank.data import kernels

    return kernels.split_columns(raw.data, raw.size, columns, wanted, spaces=spaces)


def plain_pairs(content: str) -> tuple[int, pa.StringArray, pa.StringArray]:
    """What the kernel of the same purpose does, in plain Python; ``content`` ends in a newline."""
    code = GOOD
    ids: list[str] = []
    texts: list[str] = []
    for line in content.split("\n")[:-1]:
        first, tab, text = line.partition("\t")
        if not tab:
            code = NO_TAB if line.removesuffix("\r") else BLANK
        elif not first:
            code = NO_ID
        elif "\t" in text:
            code = MORE_TABS
        if code != GOOD:
            break
        ids.append(first)
        texts.append(text.removesuffix("\r"))
    return code, strings(ids), strings(texts)


def plain_columns(
    content: str, columns: int, wanted: tuple[int, ...], *, spaces: bool
) -> tuple[int, int, int, list[pa.StringArray]]:
    """The same for columns."""
    code, found = GOOD, 0
    rows: list[list[str]] = []
    for line in content.split("\n")[:-1]:
        line = line.removesuffix("\r")
        if spaces:
            cells = [cell for cell in line.replace("\t", " ").split(" ") if cell]
        else:
            cells = line.split("\t") if line else []
        if len(cells) != columns:
            code, found = COLUMNS if cells else BLANK, len(cells)
            break
        rows.append(cells)
    return code, len(rows), found, [strings([row[at] for row in rows]) for at in wanted]
