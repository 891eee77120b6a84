"""No damaged or hostile file gives other numbers in silence, or takes the machine's memory."""

from __future__ import annotations

import gzip
import random
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenrank as er
from evenrank.data import files
from evenrank.data.docs import open_docs
from evenrank.data.read import read_genders, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.text.tally import Tally
from evenrank.vectors import Genderedness, Vectors, load

TEXTS = {f"d{i}": "she he her " * (i % 7) + "x" for i in range(500)}


def _tally(path: Path) -> None:
    er.tally(TEXTS).write(path)


def _same_tally(path: Path) -> bool:
    found, made = Tally.of(path), er.tally(TEXTS)
    return found.frame.equals(made.frame) and found.provenance == made.provenance


ROWS = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
VECTORS = Vectors([f"w{i}" for i in range(40)], ROWS)
VALUES = np.linspace(-1, 1, 40).astype(np.float32)
TABLE = Genderedness(sorted(VECTORS.words), VALUES, {"made": "here"})


def _same_table(path: Path) -> bool:
    found = Genderedness.read(path)
    return found.words == TABLE.words and np.array_equal(found.values, TABLE.values)


@pytest.mark.parametrize(
    ("name", "write", "same"),
    [
        ("t.parquet", _tally, _same_tally),
        ("g.parquet", TABLE.write, _same_table),
    ],
)
def test_a_flipped_bit_is_refused_or_changes_nothing(
    tmp_path: Path, name: str, write: Callable[[Path], None], same: Callable[[Path], bool]
) -> None:
    path = tmp_path / name
    write(path)
    assert same(path)
    whole, chance, refused = path.read_bytes(), random.Random(7), 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            assert same(path), "other numbers in silence"
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused += 1
    assert refused > 50


def test_a_tally_without_checksums_is_read_as_before(tmp_path: Path) -> None:
    _tally(tmp_path / "t.parquet")
    table, kept = pq.read_table(tmp_path / "t.parquet"), pq.read_metadata(tmp_path / "t.parquet").metadata
    facts = {b"evenrank": kept[b"evenrank"]}
    pq.write_table(table.replace_schema_metadata(facts), tmp_path / "old.parquet")
    assert _same_tally(tmp_path / "old.parquet")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x05\x96" + struct.pack("<Q", 4_400_000_000) + b".",
        b"\x80\x02Nr" + struct.pack("<I", 550_000_000) + b".",
        b"\x80\x02Np550000000\n.",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
    ],
)
def test_a_few_bytes_of_pickle_take_no_gigabytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.kv"
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"v\.kv: .*gensim"):
        load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


@pytest.mark.parametrize("read", [read_run, read_qrels, read_queries, read_genders, er.tally])
def test_a_file_that_unpacks_endlessly_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], Any]
) -> None:
    line = {read_run: b"q Q0 d 1 1 t\n", read_qrels: b"q 0 d 1\n"}.get(read, b"q\tneutral\n")
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(line * 2_000_000, mtime=0))
    monkeypatch.setattr(files, "BOMB", 1 << 22)
    with pytest.raises(InputError, match=f"^{path}: unpacks to more than 200 times its size"):
        read(path)


def test_text_that_people_pack_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB", 1 << 16)
    path = tmp_path / "run.gz"
    rows = (f"q{i // 100} Q0 doc{i * 7919 % 50_000} {i % 100 + 1} {-i} bm25\n" for i in range(20_000))
    path.write_bytes(gzip.compress("".join(rows).encode(), mtime=0))
    assert len(read_run(path)) == 20_000


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    pq.write_table(
        pa.Table.from_arrays([pa.array(["a"])] * 3, names=["doc_id", "text", "text"]), tmp_path / "d.parquet"
    )
    with pytest.raises(InputError, match="column text is there twice"):
        open_docs(tmp_path / "d.parquet")
    frame = pd.DataFrame([["a", "b", "c"]], columns=["doc_id", "text", "text"])
    with pytest.raises(InputError, match="column text is there twice"):
        open_docs(frame)


@pytest.mark.parametrize("share", ["1e999999999", "nan", "inf"])
def test_a_share_that_is_no_number_to_count_with_is_refused(tmp_path: Path, share: str) -> None:
    (tmp_path / "t.tsv").write_text(f"query\tfemale\nq\t{share}\n")
    results = [{"query": "q", "doc_id": "d", "rank": 1, "group": "female"}]
    with pytest.raises(InputError, match=r"t\.tsv:2: the target of female is"):
        er.represent(results, tmp_path / "t.tsv")
    (tmp_path / "p.tsv").write_text("query\tfemale\tpopulation\nq\t0.5\t1e999\n")
    with pytest.raises(InputError, match=r"p\.tsv:2: population is not a number"):
        er.represent(results, tmp_path / "p.tsv")
