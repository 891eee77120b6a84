"""Runs and judgments as TREC writes them: what is legal is read, what is not is named."""

from __future__ import annotations

import contextlib
import gzip
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError

zstd = partial(pa.Codec("zstd").compress, asbytes=True)

RUN = "q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n001 Q0 007 1 -3e-1 bm25\n"
ROWS = [("q1", "d1", 2.5, 1), ("q1", "d2", 1.5, 2), ("001", "007", -0.3, 1)]


def write(tmp_path: Path, content: str | bytes, name: str = "bm25.run") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        RUN,
        RUN.replace(" ", "\t"),
        RUN.replace(" ", "  \t "),
        RUN.replace("q1 Q0 d2", "q1\tQ0\td2"),
        RUN.replace("\n", "\r\n"),
        RUN.replace("\n", " \n"),
        " " + RUN.rstrip(),
        RUN + "\n\n",
        RUN + "  \n\t\n \r\n",
        "\ufeff" + RUN,
        RUN.replace(" bm25", ""),
        "qid Q0 docno rank score tag\n" + RUN,
        "query_id\tdoc_id\tscore\nq1\td1\t2.5\nq1\td2\t1.5\n001\t007\t-0.3\n",
        gzip.compress(RUN.encode(), mtime=0),
        zstd(RUN.encode()),
    ],
)
def test_a_legal_run_is_read(content: str | bytes, tmp_path: Path) -> None:
    assert read_run(write(tmp_path, content)).rows() == ROWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            RUN + "q3 Q0 d1 1 bm25\n",
            r":4: 5 columns instead of 6; expected query_id Q0 doc_id rank score tag",
        ),
        (RUN + "q3 Q0 d1 1 3 my run\n", r":4: 7 columns instead of 6"),
        ("q1 d1 1 2.5\n", r":1: 4 columns instead of 6"),
        (RUN.replace(" bm25", "") + "q3 Q0 d1 1 3 tag\n", r":4: 6 columns instead of 5"),
        (RUN + "\nq3 Q0 d1 1 3 bm25\n", r":4: blank line"),
        (RUN + " \nq3 Q0 d1 1 3 bm25\n", r":4: blank line"),
        ("\n" + RUN, r":1: blank line"),
        (RUN + "q3 Q0 d1 1 high bm25\n", r":4: score is 'high'; it must be a finite number"),
        (RUN + "q3 Q0 d1 1 nan bm25\n", r":4: score is 'nan'"),
        (RUN + "q3 Q0 d1 1 -inf bm25\n", r":4: score is '-inf'"),
        (RUN + "q3 Q0 d1 1 1e999 bm25\n", r":4: score is '1e999'"),
        (RUN + "q3 Q0 d1 1 1_0 bm25\n", r":4: score is '1_0'"),
        (RUN + "q3 Q0 d1 1 0x1 bm25\n", r":4: score is '0x1'"),
        (RUN + "q1 Q0 d1 3 0.1 bm25\n", r":4: repeats line 1: query_id 'q1' with doc_id 'd1'"),
        (RUN.encode() + b"q3 Q0 d\xff 1 3 bm25\n", r":4: bytes that are not UTF-8"),
        ("qid docno rank tag\nq1 d1 1 x\n", r":1: no column score; found qid, docno, rank, tag"),
        ("qid docno score\nq1 d1 x\n", r":2: score is 'x'"),
        ("qid docno score\n", r": the file has no rows"),
        ("qid docno docno score\nq d d 1\n", r":1: the header names the column docno twice"),
        ("", r": the file is empty"),
        (gzip.compress(RUN.encode(), mtime=0)[:-9], r": cannot be read: Truncated compressed stream"),
    ],
)
def test_a_bad_line_of_a_run_is_named(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=f"^{path}{message}"):
        read_run(path)


def test_lines_are_counted_across_blocks(tmp_path: Path) -> None:
    lines = [f"q{n // 100} Q0 d{n} 1 {n} a-rather-long-tag" for n in range(120_000)]
    assert len(read_run(write(tmp_path, "\n".join(lines)))) == 120_000
    lines[100_000] = "q0 Q0 d3 1 1 a-rather-long-tag"
    with pytest.raises(InputError, match=r":100001: repeats line 4: query_id 'q0' with doc_id 'd3'"):
        read_run(write(tmp_path, "\n".join(lines)))
    lines[110_000] += "\xff"
    with pytest.raises(InputError, match=r":110001: bytes that are not UTF-8"):
        read_run(write(tmp_path, "\n".join(lines).encode("latin-1")))
    lines[110_000] = "short"
    with pytest.raises(InputError, match=r":110001: 1 column instead of 6"):
        read_run(write(tmp_path, "\n".join(lines)))
    lines[110_000] = ""
    with pytest.raises(InputError, match=r":110001: blank line"):
        read_run(write(tmp_path, "\n".join(lines)))
    with pytest.raises(InputError, match=r":120000: blank line"):
        read_run(write(tmp_path, "\n".join([*lines[:110_000], *lines[110_001:], *[" "] * 3_000_000, "q"])))


def test_the_printed_rank_counts_only_where_it_is_trusted(tmp_path: Path) -> None:
    path = write(tmp_path, "q Q0 a 9 1.0 x\nq Q0 b 2 3.0 x\nq Q0 c 4 2.0 x\n")
    assert read_run(path)["doc_id"].to_list() == ["b", "c", "a"]
    trusted = read_run(path, order="rank")
    assert trusted.rows() == [("q", "b", -1.0, 1), ("q", "c", -2.0, 2), ("q", "a", -3.0, 3)]
    assert read_run(trusted) is trusted


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ("1", ":2: repeats line 1: query_id 'q' with rank 1"),
        ("1.5", ":2: rank is '1.5'; it must be a whole number"),
        ("x", ":2: rank is 'x'"),
    ],
)
def test_ranks_that_are_trusted_must_be_whole_and_unique(rank: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"q Q0 a 1 1.0 x\nq Q0 b {rank} 3.0 x\n")
    assert len(read_run(path)) == 2, "by score the rank does not matter"
    with pytest.raises(InputError, match=message):
        read_run(path, order="rank")


@pytest.mark.parametrize(
    "content",
    [
        "q1 0 d1 1\n001 0 007 -2\n",
        "q1\t0\td1\t1\n001 0 007 -2\r\n",
        "query-id\tcorpus-id\tscore\nq1\td1\t1\n001\t007\t-2\n",
        "q1 0 d1 +1\n001 Q0 007 -02\n\n",
    ],
)
def test_legal_judgments_are_read(content: str, tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path, content)).rows() == [("q1", "d1", 1), ("001", "007", -2)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 d1 1\n", r":1: 3 columns instead of 4; expected query_id 0 doc_id relevance"),
        ("q1 0 d1 1\nq1 0 d2 1.0\n", r":2: relevance is '1.0'; it must be a whole number"),
        ("q1 0 d1 1\nq1 0 d2 0x1\n", r":2: relevance is '0x1'"),
        ("q1 0 d1 99999999999999999999\n", r":1: relevance is '9999"),
        ("q1 0 d1 1\nq1 0 d1 0\n", r":2: repeats line 1: query_id 'q1' with doc_id 'd1'"),
        ("", ": the file is empty"),
    ],
)
def test_a_bad_line_of_judgments_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=f"^{path}{message}"):
        read_qrels(path)


ODD = {
    "wide": pa.array([1], pa.decimal256(60, 2)),
    "zone": pa.array([1], pa.timestamp("us", tz="Mars/Olympus")),
}


@pytest.mark.parametrize("odd", ODD)
def test_columns_of_a_parquet_file_that_are_not_needed_are_not_read(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"query_id": ["q"], "doc_id": ["d"], "score": [1.0], "relevance": [1], "text": ["t"]}
    pq.write_table(pa.table({**columns, "odd": ODD[odd]}), path)
    assert read_run(path).row(0) == ("q", "d", 1.0, 1)
    assert read_qrels(path).row(0) == ("q", "d", 1)
    assert read_queries(path).row(0) == ("q", "t")
    pq.write_table(pa.table({**columns, "score": ODD[odd]}), path)
    with pytest.raises(InputError, match=r"t\.parquet: column score holds"):
        read_run(path)
    pq.write_table(pa.table({"query_id": ["q"], "doc_id": ["d"], "similarity": ODD[odd]}), path)
    with pytest.raises(InputError, match="no column score; found query_id, doc_id, similarity"):
        read_run(path)


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    ids = [f"d{i}" for i in range(999)]
    pq.write_table(
        pa.table({"query_id": ["q"] * 999, "doc_id": ids, "score": list(map(float, range(999)))}), path
    )
    content = path.read_bytes()
    for at in range(4, len(content) - 64, 97):
        path.write_bytes(content[:at] + b"\xff" * 64 + content[at + 64 :])
        with contextlib.suppress(InputError):
            read_run(path)
