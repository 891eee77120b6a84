"""Collections as lines of ``doc_id<TAB>text``, or of other columns that a header names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data import files
from evenrank.data.blocks import Block, batch_of, join_fields
from evenrank.data.columns import BODY, TITLE, header, pick, pick_fields
from evenrank.errors import InputError


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


def blocks(path: str | os.PathLike[str], layout: Layout) -> Iterator[Block]:
    """The collection in blocks that parse themselves; only the raw reading happens here."""
    for raw in files.raw_blocks(path):
        yield Block(partial(parse, raw, layout, path), raw.stored)


def parse(raw: files.RawBlock, layout: Layout, path: str | os.PathLike[str]) -> pa.RecordBatch:
    """The documents (or queries) of one raw block: ``doc_id`` and ``text``."""
    from evenrank.data import splitting

    files.check_utf8(raw, path)
    skip = int(layout.header and raw.start == 0)
    found = 0
    if layout.columns == 2 and layout.id == 0 and not skip:
        code, ids, text = splitting.split_pairs(raw.data, raw.size)
        good = len(ids)
    else:
        code, good, found, (ids, *texts) = splitting.split_columns(
            raw.data, raw.size, layout.columns, (layout.id, *layout.fields), spaces=False
        )
        text = join_fields(texts)
        empty = pc.index(pc.binary_length(ids), 0).as_py()
        if empty >= 0:
            code, good = splitting.NO_ID, empty
    if code == splitting.GOOD:
        return batch_of(ids.slice(skip), text.slice(skip))
    problem = {
        splitting.BLANK: "blank line",
        splitting.NO_TAB: f"no tab; expected {layout.expected}",
        splitting.NO_ID: "the id is empty",
        splitting.MORE_TABS: f"more than one tab; expected {layout.expected}, or a header with column names",
        splitting.COLUMNS: f"{found} columns instead of {layout.columns}; expected {layout.expected}",
    }[code]
    raise InputError(problem, path=path, line=files.line_at(path, raw.start) + good)
