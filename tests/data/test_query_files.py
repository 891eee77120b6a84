"""Queries: TSV, JSONL, TREC topics and Parquet give the same table."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import polars as pl
import pytest

from evenrank.data.read import read_genders, read_queries
from evenrank.errors import InputError

QUERIES = [("301", "International Organized Crime"), ("002", "a < b & c")]
CLASSIC = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative:
A relevant document.
</top>

<top>
<num> Number: 002
<title>  Topic: a < b
& c
<desc> Description:
</top>
"""
CLOSED = """<?xml version="1.0"?>
<topics>
<!-- made up -->
<TOP><num>301</num><title>International Organized Crime</title><desc>x</desc></TOP>
<top><num>Number: 002</num>
<title>a &lt; b &amp; c</title></top>
</topics>
"""
NUMBERED = """<topic number="301" type="faceted">
 <query>International Organized Crime</query>
</topic>
<topic number='002'><query>a &lt; b &amp; c</query></topic>
"""
UNCLOSED = """<top>
<num> Number: 301
<title> International Organized Crime
<top>
<num> 002
<title> a < b & c
"""


def write(tmp_path: Path, content: str | bytes, name: str = "queries.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.tsv", "301\tInternational Organized Crime\n002\ta < b & c\n"),
        ("queries.tsv", "\ufeff301\tInternational Organized Crime\r\n002\ta < b & c\r\n\r\n"),
        ("queries.txt", "qid\tquery\n301\tInternational Organized Crime\n002\ta < b & c\n"),
        ("queries.tsv.gz", gzip.compress(b"301\tInternational Organized Crime\n002\ta < b & c\n", mtime=0)),
        (
            "queries.jsonl",
            '{"_id": 301, "text": "International Organized Crime"}\n{"_id": "002", "text": "a < b & c"}',
        ),
        (
            "queries",
            '{"qid": "301", "title": "International Organized Crime"}\n{"qid": "002", "title": "a < b & c"}',
        ),
        ("topics.txt", CLASSIC),
        ("topics.xml", CLOSED),
        ("topics.301-450", NUMBERED),
        ("topics", UNCLOSED),
    ],
)
def test_every_format_gives_the_same_queries(name: str, content: str | bytes, tmp_path: Path) -> None:
    assert read_queries(write(tmp_path, content, name)).rows() == QUERIES


def test_parquet_gives_them_too(tmp_path: Path) -> None:
    pl.DataFrame(QUERIES, schema=["qid", "query"], orient="row").write_parquet(tmp_path / "queries.parquet")
    assert read_queries(tmp_path / "queries.parquet").rows() == QUERIES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n2 b\n", r":2: 1 column instead of 2; expected query_id<TAB>text"),
        ("1\ta\tb\n", r":1: 3 columns instead of 2; expected query_id<TAB>text"),
        ("1\ta\n\n2\tb\n", r":2: blank line"),
        ("1\ta\n2\tb\n1\tc\n", r":3: repeats line 1: query_id '1'"),
        ("qid\ttext\n1\ta\n1\tb\n", r":3: repeats line 2: query_id '1'"),
        ("qid\ttext\n", r": the file has no rows"),
        ('{"id": 1, "words": "x"}\n', r":1: no column text; found id, words"),
        ('{"id": 1, "text": "x"}\n{"id": 1, "text": "y"}\n', r":2: repeats line 1: query_id '1'"),
        ("<top>\n<title> a\n</top>\n", r":1: a topic without a number"),
        ("<top>\n<num> Number:\n<title> a\n</top>\n", r":1: a topic without a number"),
        (
            "<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 2\n<desc> b\n</top>",
            r":5: a topic without <title>",
        ),
        (
            "<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 1\n<title> b\n</top>",
            r":5: repeats line 1: query_id '1'",
        ),
        ("<top>\n<num> 1\n<title> a\n</top>\n\nstray\n<top>\n<num> 2\n<title> b", r":6: text between topics"),
        (b"1\ta\n2\t\xff\n", r":2: bytes that are not UTF-8"),
        ("", r": the file is empty"),
    ],
)
def test_a_bad_line_of_queries_is_named(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=f"^{path}{message}"):
        read_queries(path)


@pytest.mark.parametrize(
    "hostile", ["<a" + "a" * 200_000, "<" * 200_000, "<top " * 50_000, " " * 200_000 + "<"]
)
def test_hostile_topics_come_to_an_end(hostile: str, tmp_path: Path) -> None:
    path = write(tmp_path, "<top>\n<num> 1\n<title> a\n" + hostile)
    with contextlib.suppress(InputError):
        read_queries(path)


def test_bad_parquet_is_refused_with_its_column(tmp_path: Path) -> None:
    path = tmp_path / "queries.parquet"
    pl.DataFrame({"qid": [1.5], "text": ["a"]}).write_parquet(path)
    with pytest.raises(InputError, match=f"^{path}: column query_id holds Float64; make it text"):
        read_queries(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=f"^{path}: cannot be read"):
        read_queries(path)


def test_labelled_queries_are_queries_too(tmp_path: Path) -> None:
    path = tmp_path / "voted.tsv"
    path.write_text("query_id\ttext\tlabel\nq1\twhat is love\tneutral\n")
    assert read_queries(path).rows() == [("q1", "what is love")]
    assert read_genders(path).rows() == [("q1", "neutral")]
