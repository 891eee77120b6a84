"""Small tables are read in whatever shape they have, and errors name the place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenrank.data import files, formats
from evenrank.data.formats import text_lines
from evenrank.data.read import read_table
from evenrank.errors import InputError

ROWS = [("007", "f"), ("d 2", "m")]
NAMES = {"doc_id": ("doc_id", "docno"), "group": ("group", "label")}
FRAME = pl.DataFrame(ROWS, schema={"doc_id": pl.String, "group": pl.String}, orient="row")


class Row(NamedTuple):
    docno: str
    label: str


def written(path: Path, content: bytes) -> Path:
    with files.writing(path) as out:
        out.write(content)
    return path


def as_parquet(folder: Path) -> Path:
    FRAME.write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def tsv(folder: Path, name: str = "t.tsv") -> Path:
    return written(folder / name, b"docno\tlabel\tmore\n007\tf\tx\nd 2\tm\ty\n")


SHAPES: dict[str, Callable[[Path], Any]] = {
    "tsv": tsv,
    "tsv.gz": lambda folder: tsv(folder, "t.tsv.gz"),
    "tsv.zst": lambda folder: tsv(folder, "t.tsv.zst"),
    "csv": lambda folder: written(folder / "t.csv", b'\xef\xbb\xbflabel,doc_id\r\n"f",007\r\nm,d 2\r\n'),
    "jsonl": lambda folder: written(
        folder / "t.jsonl", b"".join(json.dumps(Row(*row)._asdict()).encode() + b"\n" for row in ROWS)
    ),
    "parquet": as_parquet,
    "polars": lambda _: FRAME,
    "lazy": lambda _: FRAME.lazy(),
    "pandas": lambda _: pd.DataFrame(ROWS, columns=["docno", "label"]),
    "arrow": lambda _: FRAME.to_arrow(),
    "batch": lambda _: pa.record_batch({"doc_id": ["007", "d 2"], "group": ["f", "m"]}),
    "dict": lambda _: dict(ROWS),
    "tuples": lambda _: ROWS,
    "dicts": lambda _: [{"doc_id": a, "group": b} for a, b in ROWS],
    "named tuples": lambda _: [Row(*row) for row in ROWS],
    "iterator": lambda _: iter(ROWS),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_table(shape: str, tmp_path: Path) -> None:
    assert read_table(SHAPES[shape](tmp_path), NAMES).frame.equals(FRAME)


@pytest.mark.parametrize("shape", [name for name in SHAPES if name not in ("dict", "tuples", "iterator")])
def test_without_names_every_column_stays(shape: str, tmp_path: Path) -> None:
    found = read_table(SHAPES[shape](tmp_path)).frame
    assert len(found.columns) >= 2 and "007" in found.row(0) and "m" in found.row(1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"doc_id\tlabel\n1\tf\n\n2\tm\n", ":3: blank line"),
        (b"doc_id\tlabel\n1\tf\t\n", ":2: 3 columns instead of 2"),
        (b"doc_id\tlabel\tlabel\n1\tf\tm\n", ":1: the header names the column label twice"),
        (b"doc_id\t\n1\tf\n", ":1: the header has a column without a name"),
        (b"doc_id\n1\n", ":1: one column"),
        (b"doc_id\tlabel\n", ": the file has no rows"),
        (b"docs\tlabel\n1\tf\n", ":1: no column doc_id; found docs, label"),
        (b"doc_id\tlabel\n1\t\xff\n", ":2: bytes that are not UTF-8"),
        (b'doc_id,label\n1,"f\n', ":2: not a line of CSV"),
        (b'{"doc_id": "1", "label": "f"}\n{"doc_id": "2"}\n', ":2: no field label; found doc_id"),
        (b'{"doc_id": "1", "label": ["f"]}\n', ":1: label is"),
        (b'{"doc_id": "1", "label": "f"}\n{"doc_id": "2", "label": "\\ud800"}\n', ":2: .* half a character"),
        (b'{"doc_id": "1", "\\ud800": "f"}\n', ":1: no column group; found doc_id"),
        (b"", ": the file is empty"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{path}{problem}"):
        read_table(path, NAMES)


def test_a_line_far_into_a_large_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    lines = [f"{i}\t{'f' * 60}" for i in range(60_000)]
    path.write_text("\n".join(["doc_id\tlabel", *lines, "x", *lines]))
    with pytest.raises(InputError, match=f"^{path}:60002: 1 column instead of 2"):
        read_table(path)


def test_checks_name_the_line_of_a_file_and_the_row_of_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("doc_id\tscore\n1\t2\n\tx\n1\t4\n")
    for table, place in (
        (read_table(path), f"{path}:3: "),
        (read_table(formats.read_table_file(path).frame), "row 2: "),
    ):
        with pytest.raises(InputError, match=f"^{place}doc_id is empty"):
            table.ids("doc_id")
    with pytest.raises(InputError, match=f"^{path}:3: score is 'x'; it must be a finite number"):
        read_table(path).numbers("score")
    with pytest.raises(InputError, match=f"^{path}:3: score is 'x'; it must be a whole number"):
        read_table(path).numbers("score", whole=True)
    with pytest.raises(InputError, match=f"^{path}:4: repeats line 2: doc_id '1'"):
        read_table(path).require_unique("doc_id")


def test_a_file_without_a_header_is_read_by_its_layout(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    layout, known = [("male", "female")], {"male": ("male",), "female": ("female",)}
    path.write_text("m1\tf1\n")
    assert read_table(path, known, layouts=layout).frame.rows() == [("m1", "f1")]
    path.write_text("Female,male\nf1,m1\n")
    assert read_table(path, known, layouts=layout).frame.rows() == [("m1", "f1")]
    path.write_text("a\tb\tc\n")
    with pytest.raises(InputError, match=f"^{path}:1: 3 columns instead of 2; expected male<TAB>female"):
        read_table(path, known, layouts=layout)


def test_a_file_that_unpacks_to_more_than_a_table_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "labels.tsv.gz"
    path.write_bytes(gzip.compress(b"doc_id\tlabel\n" + b"1\tf\n" * 3_000_000, mtime=0))
    assert path.stat().st_size < 50_000
    monkeypatch.setattr(files.whole, "__kwdefaults__", {"limit": 1 << 20})
    with pytest.raises(InputError, match=f"^{path}: more than 1 MB of text, too much for a table"):
        read_table(path)


@pytest.mark.parametrize("x", [3, "irds:", b"bytes", [1, 2], {"a": 1}])
def test_what_is_no_table_is_refused(x: Any) -> None:
    with pytest.raises(InputError):
        read_table(x, {"a": ("a",), "b": ("b",), "c": ("c",)})


def test_a_repeated_column_of_pandas_is_refused() -> None:
    twice = pd.DataFrame([["1", "f", "m"]], columns=["doc_id", "label", "label"])
    for names in (None, NAMES):
        with pytest.raises(InputError, match="column label is there twice"):
            read_table(twice, names)


def test_lines_pass_over_remarks_and_keep_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "words.txt.gz", b"\xef\xbb\xbf# remark\n she \r\n\nhe\n")
    assert text_lines(path) == [(2, "she"), (4, "he")]


def test_an_optional_field_may_turn_up_later(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", b'{"doc_id": "1"}\n{"doc_id": "2", "label": "f"}\n')
    assert read_table(path, NAMES, optional=["group"]).frame.rows() == [("1", None), ("2", "f")]
    with pytest.raises(InputError, match=f"^{path}:1: no field label; found doc_id"):
        read_table(path, NAMES)
