"""Units of evidence, kept in the repository: what took hours is not run again to make a table of it.

A unit is what one training and ranking left: facts, and values of single queries. Each is a Parquet file in
``benchmarks/units``: a row for each query, a column for each set of values, and the facts as JSON in its
schema. Ids and numbers only, no texts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

UNITS = Path(__file__).with_name("units")
_FACTS, _COLUMN, _KEY = b"unit", "values in column", "query_id"


def path_of(study: str, name: str) -> Path:
    """The file of a unit."""
    return UNITS / study / f"{name.replace('/', '--').replace(', ', '-').replace(' ', '-')}.parquet"


def keep(study: str, name: str, content: dict[str, Any]) -> None:
    """Write a unit, whole or not at all."""
    columns: list[dict[str, float | None]] = []
    facts = _without_values(content, columns)
    keys = sorted({key for values in columns for key in values})
    arrays = [pa.array([values.get(key) for key in keys], pa.float64()) for values in columns]
    named = [pa.field(_KEY, pa.string()), *(pa.field(str(i), pa.float64()) for i in range(len(columns)))]
    schema = pa.schema(named, metadata={_FACTS: json.dumps({"name": name, "content": facts}).encode()})
    path = path_of(study, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    table = pa.table([pa.array(keys, pa.string()), *arrays], schema=schema)
    pq.write_table(table, partial, compression="zstd", compression_level=19, store_schema=True)
    partial.replace(path)


def kept(study: str, name: str) -> dict[str, Any] | None:
    """A unit that was run before; None where it was not."""
    path = path_of(study, name)
    if not path.exists():
        return None
    table = pq.read_table(path)
    found = json.loads(table.schema.metadata[_FACTS])
    if found["name"] != name:
        raise SystemExit(f"{path} holds {found['name']}, not {name}: remove it and run the unit again")
    keys = table[_KEY].to_pylist()

    def filled(part: Any) -> Any:
        if isinstance(part, dict) and part.keys() == {_COLUMN}:
            values = table[part[_COLUMN]].to_pylist()
            return {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        if isinstance(part, dict):
            return {name: filled(each) for name, each in part.items()}
        return part

    return dict(filled(found["content"]))


def _without_values(part: Any, columns: list[dict[str, float | None]]) -> Any:
    """The facts, with the name of a column in place of each set of values by query."""
    if not isinstance(part, dict):
        return part
    if len(part) > _FEW and all(isinstance(value, float | int) for value in part.values()):
        columns.append(part)
        return {_COLUMN: str(len(columns) - 1)}
    return {name: _without_values(each, columns) for name, each in part.items()}


_FEW = 40
"""A dictionary with more numbers than that holds values of queries."""
