"""Whatever is in a file, a reader reads it or says in one line what is wrong and where."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data.docs import open_docs
from evenrank.data.read import read_genders, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import DuplicateCheck
from evenrank.errors import InputError

zstd = partial(pa.Codec("zstd").compress, asbytes=True)

CASES = 10_000


def read_docs(path: Path) -> None:
    docs, check = open_docs(path), DuplicateCheck("doc_id")
    for block in docs.blocks():
        batch = block.read()
        batch.validate(full=True)
        check.add(batch.column("doc_id"))
    check.finish(docs.tables)


def _parquet() -> bytes:
    out = io.BytesIO()
    pl.DataFrame(
        {"doc_id": ["a", "b", "c"], "title": [None, "t", "u"], "text": ["x y", "", "é"]}
    ).write_parquet(out, compression="uncompressed")
    return out.getvalue()


TSV = "d1\tThe woman's hat\nd2\tHe said no\n007\tÉlan vital\nd4\t\n".encode()
JSONL = b"".join(
    json.dumps(row).encode() + b"\n"
    for row in (
        {"doc_id": "d1", "title": "Hats", "text": "The woman's \u00e9lan"},
        {"doc_id": "d2", "text": "He said\tno", "year": 1963, "tags": [1, {"a": None}]},
        {"doc_id": "d3", "title": None, "text": ""},
    )
)
QUERIES = b"1\tblack bear attacks\n2\tinternational organized crime\n003\thubble\n"
TOPICS = (
    b"<top>\n<num> Number: 301\n<title> International Organized Crime\n\n"
    b"<desc> Description:\nIdentify.\n</top>\n"
    b"<top>\n<num>302</num>\n<title>Poliomyelitis</title>\n</top>\n"
)
QRELS = b"1 0 d1 1\n1 0 d2 0\n2\t0\td1\t-1\n2 0 d3 2\n"
RUN = b"1 Q0 d1 1 12.5 bm25\n1 Q0 d2 2 3e-2 bm25\n2\tQ0\td1\t1\t-4\tbm25\n2 Q0 d7 2 -4.0 bm25\n"
GENDERS = b"57070\tbull hurley actor\tmale\n986344\twho was she\tfemale\n3\thats\tneutral\n"

READERS: dict[str, tuple[str, bytes, Callable[[Path], object]]] = {
    "docs TSV": ("docs.tsv", TSV, read_docs),
    "docs JSONL": ("docs.jsonl", JSONL, read_docs),
    "docs Parquet": ("docs.parquet", _parquet(), read_docs),
    "queries TSV": ("queries.tsv", QUERIES, read_queries),
    "queries JSONL": ("queries.jsonl", JSONL.replace(b"doc_id", b"query_id"), read_queries),
    "queries topics": ("topics.txt", TOPICS, read_queries),
    "qrels": ("qrels.txt", QRELS, read_qrels),
    "run": ("bm25.run", RUN, read_run),
    "genders": ("genders.tsv", GENDERS, read_genders),
}

PIECES = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\t", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b'"', b"{", b"}",
    b"[", b"<", b">", b"<top>", b"nan", b"inf", b"1e999", b"9" * 400, b"-", b"0x1F", b"\xef\xbb\xbf",
    b"\xe2\x80\xa8", b"doc_id\ttext\n", b"query_id", b"\\ud800", b"null", b",", b":", b"\x1f\x8b", b"PAR1",
)  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    """The same file with one to three things wrong with it."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(10)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + rng.randbytes(rng.randint(1, 4)) + data[at:]
        elif kind == 2:
            data = data[:at] + data[at + rng.randint(1, 12) :]
        elif kind == 3:
            data = data[:at]
        elif kind == 4:
            lines = data.split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            data = b"\n".join(lines)
        elif kind == 5:
            a, b = rng.sample((b"\t", b" ", b",", b"\n"), 2)
            data = data.replace(a, b, rng.choice((1, 2, -1)))
        elif kind == 6:
            data = data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")), rng.choice((1, -1)))
        else:
            data = data[:at] + rng.choice(PIECES) + data[at:]
    kind = rng.randrange(40)
    if kind == 0:
        data = gzip.compress(data, 1, mtime=0)
    elif kind == 1:
        data = gzip.compress(data, 1, mtime=0)[: rng.randint(1, 60)]
    elif kind == 2:
        packed = bytearray(zstd(data))
        packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        data = bytes(packed)
    return data


WITHOUT_LINE = re.compile(r"empty$|no rows|no documents|cannot be read|: this is ")


def check(reader: Callable[[Path], object], path: Path, data: bytes) -> bool:
    """Was it read? If not, was it refused as it should be?"""
    path.unlink(missing_ok=True)  # truncating a file can cost a flush of the disk, a new one does not
    path.write_bytes(data)
    try:
        reader(path)
    except InputError as error:
        message = str(error)
        assert message.startswith(f"{path}:"), message
        assert message.isprintable(), "one line, nothing that upsets a terminal"
        in_lines = path.suffix != ".parquet" and data[:2] != b"\x1f\x8b" and data[1:4] != b"\xb5\x2f\xfd"
        if in_lines and data[:4] != b"PAR1" and not WITHOUT_LINE.search(message):
            assert error.line is not None and f":{error.line}:" in message, message
            assert 1 <= error.line <= data.count(b"\n") + 1, message
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_malformed_files_are_read_or_refused_with_their_line(name: str, tmp_path: Path) -> None:
    file, valid, reader = READERS[name]
    path = tmp_path / file
    assert check(reader, path, valid), "the unharmed file is read"
    rng = random.Random(name)
    read = sum(check(reader, path, mutate(rng, valid)) for _ in range(CASES))
    assert 0 < read < CASES


@pytest.mark.parametrize("name", [name for name in READERS if name != "docs Parquet"])
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_their_line(name: str, tmp_path: Path, data: bytes) -> None:
    file, _, reader = READERS[name]
    check(reader, tmp_path / file, data)


@pytest.mark.parametrize("name", [name for name in READERS if name != "docs Parquet"])
def test_an_empty_file_is_refused_as_such(name: str, tmp_path: Path) -> None:
    file, _, reader = READERS[name]
    for data in (b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b""), zstd(b"")):
        (tmp_path / file).write_bytes(data)
        with pytest.raises(InputError, match=r"the file is empty"):
            reader(tmp_path / file)


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_and_a_folder_are_refused_as_such(name: str, tmp_path: Path) -> None:
    _, _, reader = READERS[name]
    with pytest.raises(InputError, match="nowhere: no such file"):
        reader(tmp_path / "nowhere")
    with pytest.raises(InputError, match="this is a folder"):
        reader(tmp_path)
