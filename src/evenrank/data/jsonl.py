"""Collections and queries as one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data import files
from evenrank.data.columns import TITLE, Block, batch_of, join_fields, listing, pick, pick_fields, show
from evenrank.errors import InputError, is_whole

SUFFIXES = (".jsonl", ".ndjson", ".json")
TORN = "an escape encodes half a character (a lone surrogate)"


def is_json(path: str | os.PathLike[str], first: bytes) -> bool:
    """Does a file with this name and this first line hold one object a line?"""
    suffix = files.format_suffix(path)
    return suffix in SUFFIXES or (suffix != ".tsv" and first.lstrip().startswith(b"{"))


def value_of(text: str, path: str | os.PathLike[str]) -> Any:
    """A whole file that is one JSON value; no name may stand twice in an object."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{show(twice)} occurs twice in one object", path=path)
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not readable as JSON: {files.one_line(error)}", path=path, line=line) from None


def nested(text: str, path: str | os.PathLike[str], value: str) -> dict[str, dict[str, Any]]:
    """A whole file that is one object, ``{query_id: {doc_id: value}}``, as ranx and pytrec_eval write it."""
    found = value_of(text, path)
    if not isinstance(found, dict) or not all(isinstance(inner, dict) for inner in found.values()):
        raise InputError(f'expected {{"query_id": {{"doc_id": {value}, …}}, …}}', path=path)
    return found


@dataclass(frozen=True, slots=True)
class Keys:
    """Which keys of an object are the id and the text."""

    id: str
    fields: tuple[str, ...]
    numbered: bool = False

    @property
    def schema(self) -> pa.Schema:
        kind = pa.int64() if self.numbered else pa.string()
        return pa.schema([(self.id, kind), *((name, pa.string()) for name in self.fields if name != self.id)])


def keys(first: bytes, *, ids: Sequence[str], fields: Sequence[str], path: str | os.PathLike[str]) -> Keys:
    """The keys to read, chosen by the first object of the file. A title may turn up later."""
    found = parse_object(first, path, 1)
    chosen = pick_fields(list(found), fields, path=path, line=1)
    if TITLE in fields and TITLE not in chosen:
        chosen.insert(list(fields).index(TITLE), TITLE)
    name = pick(list(found), ids, path=path, line=1)
    return Keys(name, tuple(chosen), numbered=type(found[name]) is int)


def blocks(path: str | os.PathLike[str], keys: Keys, part: files.Part | None = None) -> Iterator[Block]:
    """The collection, or a part of it, in blocks that parse themselves; only raw reading happens here."""
    for raw in files.raw_blocks(path, part=part):
        yield Block(partial(parse, raw, keys, path), raw.stored)


def parse(raw: files.RawBlock, keys: Keys, path: str | os.PathLike[str]) -> pa.RecordBatch:
    """The documents (or queries) of one raw block: ``doc_id`` and ``text``."""
    files.check_utf8(raw, path)
    batch = _quick(raw, keys)
    return _strict(raw, keys, path) if batch is None else batch


def _quick(raw: files.RawBlock, keys: Keys) -> pa.RecordBatch | None:
    """What Arrow makes of the block; None where it fails or anything looks unusual."""
    from pyarrow import json as arrow_json

    buffer = pa.py_buffer(raw.data).slice(0, raw.size)
    try:
        table = arrow_json.read_json(
            pa.BufferReader(buffer),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=raw.size + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=keys.schema, unexpected_field_behavior="ignore"
            ),
        ).combine_chunks()
        required = [keys.id, *(name for name in keys.fields if name != TITLE or len(keys.fields) == 1)]
        lines = np.count_nonzero(raw.data[: raw.size] == 10)
        if table.num_rows != lines or any(table.column(name).null_count for name in required):
            return None
        columns = {name: table.column(name).chunk(0) for name in table.column_names}
        ids = pc.cast(columns[keys.id], pa.string())
        if pc.any(pc.equal(pc.binary_length(ids), 0)).as_py():
            return None
        return batch_of(ids, join_fields([columns[name] for name in keys.fields]))
    except (pa.ArrowException, OSError, IndexError):
        return None


def _strict(raw: files.RawBlock, keys: Keys, path: str | os.PathLike[str]) -> pa.RecordBatch:
    """The same, line by line: finds and names the bad line, or succeeds where Arrow is too narrow."""
    ids: list[str] = []
    texts: list[str] = []
    first: int | None = None
    for number, line in enumerate(raw.tobytes().split(b"\n")[:-1]):
        try:
            found = parse_object(line)
            ids.append(_id(found, keys))
            texts.append(" ".join(filter(None, (_text(found, name, keys) for name in keys.fields))))
            texts[-1].encode()
        except (InputError, UnicodeEncodeError) as error:
            first = files.line_at(path, raw.start) if first is None else first
            message = getattr(error, "message", TORN)
            raise InputError(message, path=path, line=first + number) from None
    return batch_of(pa.array(ids, pa.string()), pa.array(texts, pa.string()))


def parse_object(
    line: bytes, path: str | os.PathLike[str] | None = None, number: int | None = None
) -> dict[str, Any]:
    """One line as a JSON object, or an error that names it."""
    if not line.strip():
        raise InputError("blank line", path=path, line=number)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply, or a number too long")
        raise InputError(f"not a JSON object: {reason}", path=path, line=number) from None
    if not isinstance(found, dict):
        raise InputError(
            f"not a JSON object but {type(found).__name__}; give one object a line", path=path, line=number
        )
    return found


def _id(found: dict[str, Any], keys: Keys) -> str:
    if keys.id not in found:
        raise InputError(f"no field {keys.id}; found {listing(found)}")
    value = found[keys.id]
    if is_whole(value):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{keys.id} is {show(value)}; it must be text or a whole number")
    if not value:
        raise InputError(f"{keys.id} is empty")
    value.encode()
    return value


def _text(found: dict[str, Any], name: str, keys: Keys) -> str:
    value = found.get(name)
    if isinstance(value, str):
        return value
    if value is None and name == TITLE and len(keys.fields) > 1:
        return ""
    if name not in found:
        raise InputError(f"no field {name}; found {listing(found)}")
    raise InputError(f"{name} is {show(value)}; it must be text")
