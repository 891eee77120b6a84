"""Collections: every format gives the same documents, and every bad line is named."""

from __future__ import annotations

import gzip
import json
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenrank.data import files
from evenrank.data.docs import Docs, open_docs
from evenrank.errors import InputError

ROWS = [("d1", "Hats", "The woman's hat"), ("007", "", "no\ttitle"), ("d3", "É", "")]
TEXTS = {"d1": "Hats The woman's hat", "007": "no\ttitle", "d3": "É"}
Document = namedtuple("Document", "doc_id title text")


def as_dict(docs: Docs) -> dict[str, str]:
    return dict(docs.frame().iter_rows())


def jsonl(tmp_path: Path, *rows: object, name: str = "docs.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def tsv(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "docs.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def collections(tmp_path: Path) -> Iterator[Docs]:
    records = [Document(*row)._asdict() for row in ROWS]
    frame = pl.DataFrame(records)
    frame.write_parquet(tmp_path / "docs.parquet")
    yield open_docs(jsonl(tmp_path, *records))
    yield open_docs(str(tmp_path / "docs.parquet"))
    yield open_docs(frame)
    yield open_docs(frame.lazy())
    yield open_docs(frame.to_arrow())
    yield open_docs(frame.to_pandas())
    yield open_docs(records)
    yield open_docs(iter(records))
    yield open_docs([Document(*row) for row in ROWS])
    yield open_docs({row[0]: dict(zip(("title", "text"), row[1:], strict=True)) for row in ROWS})
    yield open_docs(TEXTS)
    yield open_docs(list(TEXTS.items()))
    yield open_docs(item for item in TEXTS.items())


def test_whatever_holds_the_documents_the_documents_are_the_same(tmp_path: Path) -> None:
    prints = set()
    for docs in collections(tmp_path):
        assert as_dict(docs) == TEXTS
        assert as_dict(docs) == TEXTS, "they can be read again"
        assert docs.texts(["d3", "d1", "unknown"]) == {"d3": "É", "d1": "Hats The woman's hat"}
        assert docs.texts([]) == {}
        assert open_docs(docs) is docs
        for batch in docs.batches():
            batch.validate(full=True)
            assert batch.schema == pa.schema([("doc_id", pa.string()), ("text", pa.string())])
        prints.add(docs.fingerprint() if docs.path is None else "file")
    assert len(prints) == 2, "in memory only ids and texts count, not what held them"


def test_blocks_can_be_read_in_any_thread_and_any_order(tmp_path: Path) -> None:
    path = tsv(tmp_path, "".join(f"d{n}\t{'word ' * (n % 50)}é{n}\n" for n in range(100_000)))
    docs = open_docs(path)
    blocks = list(docs.blocks())
    assert len(blocks) > 3
    assert sum(block.size for block in blocks) == docs.size == path.stat().st_size
    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(lambda block: block.read(), reversed(blocks)))[::-1]
    assert pl.from_arrow(pa.Table.from_batches(batches)).equals(docs.frame())
    assert len(docs.frame()) == 100_000


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n", "\r\n\r\n\n"])
def test_line_ends_and_byte_order_marks_leave_no_trace(
    start: str, end: str, last: str, tmp_path: Path
) -> None:
    docs = open_docs(tsv(tmp_path, start + f"001\ta b{end}d2\t{end}d3\tx\0y" + last))
    assert as_dict(docs) == {"001": "a b", "d2": "", "d3": "x\0y"}


def test_a_header_names_the_columns(tmp_path: Path) -> None:
    assert as_dict(open_docs(tsv(tmp_path, "id\ttext\na\tb\n"))) == {"a": "b"}
    path = tsv(tmp_path, "Body\tdocno\ttitle\nb1\ta\tt1\nb2\tc\t\n")
    assert as_dict(open_docs(path)) == {"a": "t1 b1", "c": "b2"}
    assert as_dict(open_docs(path, fields=["body"])) == {"a": "b1", "c": "b2"}
    path = tsv(tmp_path, "url\tdoc_id\ttext\nu\ta\tb\n")
    assert as_dict(open_docs(path, id_field="url", fields=("doc_id", "text"))) == {"u": "a b"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nc d\ne\tf\n", r":2: 1 column instead of 2; expected doc_id<TAB>text"),
        (b"a\tb\nc\td\te\n", r":2: 3 columns instead of 2"),
        (b"a\tb\n\nc\td\n", r":2: blank line"),
        (b"a\tb\n\tc\n", r":2: doc_id is empty"),
        (b"a\tb\nc\t\xff\n", r":2: bytes that are not UTF-8"),
        (b"a\tb\nc\t\xc3\n", r":2: bytes that are not UTF-8"),
        (b"id\ttitle\ttext\na\tb\n", r":2: 2 columns instead of 3"),
        (b"id\ttitle\ttext\n\tb\tc\n", r":2: id is empty"),
        (b"id\ttitle\n1\tb\n", r":1: no column text; found title"),
        (b"title\ttext\na\tb\n", r":1: no column doc_id"),
        (b"id\tid\ttext\na\tb\tc\n", r":1: the header names the column id twice"),
        (b"id\ttext\n", r": the file has a header and no documents"),
        (b"id\ttext\n\n", r": the file has a header and no documents"),
    ],
)
def test_a_bad_line_of_tsv_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tsv(tmp_path, content)
    with pytest.raises(InputError, match=rf"^{path}{message}"):
        open_docs(path).frame()


def test_a_bad_line_is_named_in_any_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"d{n}\t{'x' * 90}" for n in range(100_000)]
    lines[77_776] = "bad"
    path = tsv(tmp_path, gzip.compress("\n".join(lines).encode(), 1))
    with pytest.raises(InputError, match=r":77777: 1 column instead of 2"):
        open_docs(path).frame()


def test_a_header_may_name_columns_that_nobody_asked_for(tmp_path: Path) -> None:
    path = tsv(tmp_path, "DocID\tURL\tTitle\tBody\na\tu\tt\tb\n")
    assert as_dict(open_docs(path)) == {"a": "t b"}
    assert as_dict(open_docs(path, id_field="URL", fields=["Body"])) == {"u": "b"}


def test_a_first_line_of_data_is_no_header(tmp_path: Path) -> None:
    assert as_dict(open_docs(tsv(tmp_path, "id\ta text\ntext\tid\n"))) == {"id": "a text", "text": "id"}
    with pytest.raises(InputError, match=r":1: 3 columns instead of 2"):
        open_docs(tsv(tmp_path, "d1\ttitle\ttext\n")).frame()


def test_what_a_headerless_file_cannot_have_is_not_ignored(tmp_path: Path) -> None:
    path = tsv(tmp_path, "a\tb\n")
    with pytest.raises(InputError, match="no header names the field key"):
        open_docs(path, id_field="key")
    with pytest.raises(InputError, match="no header names the field abstract"):
        open_docs(path, fields=["abstract"])


def test_jsonl_joins_title_and_text_and_takes_other_names(tmp_path: Path) -> None:
    path = jsonl(tmp_path, {"_id": 1, "contents": "a"}, {"_id": -2, "title": "t", "contents": "b"})
    assert as_dict(open_docs(path)) == {"1": "a", "-2": "t b"}
    path = jsonl(tmp_path, {"id": "a", "body": "b", "x": "c"}, {"id": 2, "body": "d", "x": "e"}, name="plain")
    assert as_dict(open_docs(path, fields=("x", "text"))) == {"a": "c b", "2": "e d"}


def test_jsonl_that_arrow_cannot_read_is_read_line_by_line(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        {"id": "1", "text": "a"},
        '{"id": "2", "text": "b", "odd": NaN}',
        '{"id": "3", "text": "x", "text": "c"}',
        {"id": 10**30, "text": "d", "deep": [[[[]]]]},
    )
    assert as_dict(open_docs(path)) == {"1": "a", "2": "b", "3": "c", "1" + "0" * 30: "d"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": None, "text": "a"}, "id is missing"),
        ({"id": 1.5, "text": "a"}, "id is 1.5"),
        ({"id": True, "text": "a"}, "id is True"),
        ({"id": "", "text": "a"}, "id is empty"),
        ({"text": "a", "tags": 1}, "no field id; found text, tags"),
        ({"id": "b", "title": "c", "te\nxt": 1}, r"no field text; found id, title, 'te\\nxt'"),
        ({"id": "b", "text": None}, "text is missing"),
        ({"id": "b", "text": ["a"]}, r"text is \['a'\]; it must be text"),
        ({"id": "b", "title": 3, "text": "a"}, "title is 3; it must be text"),
        (["b", "a"], "not a JSON object but list"),
        ('{"id": "b", "text": "a"', "not a JSON object: "),
        ('{"id": "b", "text": "a"} {"id": "c", "text": "a"}', "not a JSON object: Extra data"),
        ('{"id": "b", "text": "\\ud800"}', "an escape encodes half a character"),
        ("[" * 100_000, "not a JSON object: "),
        ("", "blank line"),
    ],
)
def test_a_bad_line_of_jsonl_is_named(row: object, message: str, tmp_path: Path) -> None:
    path = jsonl(tmp_path, {"id": "a", "text": ""}, row, {"id": "z", "text": ""})
    with pytest.raises(InputError, match=rf"^{path}:2: {message}"):
        open_docs(path).frame()


def test_the_first_line_of_jsonl_must_have_an_id_and_a_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":1: no column text; found id, name"):
        open_docs(jsonl(tmp_path, {"id": "a", "name": "b"}))
    with pytest.raises(InputError, match=r":1: no column doc_id; found text"):
        open_docs(jsonl(tmp_path, {"text": "a"}))
    with pytest.raises(InputError, match=r":1: no field abstract; found id, text"):
        open_docs(jsonl(tmp_path, {"id": "a", "text": "b"}), fields=("abstract",))


def test_parquet_reads_columns_of_any_width(tmp_path: Path) -> None:
    kinds = (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int32(), pa.string()),
    )
    for kind in kinds:
        table = pa.table({"docno": pa.array([1, 2]), "text": pa.array(["a", "é"], pa.string()).cast(kind)})
        pa.parquet.write_table(table, tmp_path / "docs.parquet")
        assert as_dict(open_docs(tmp_path / "docs.parquet")) == {"1": "a", "2": "é"}


def test_parquet_comes_in_blocks_whose_sizes_add_up(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pl.DataFrame({"id": range(20_000), "text": "a"}).write_parquet(path)
    docs = open_docs(path)
    blocks = list(docs.blocks())
    assert [len(block.read()) for block in blocks] == [8192, 8192, 3616]
    assert sum(block.size for block in blocks) == docs.size


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"], "body": [None]}, "column body holds null|row 1: body is missing"),
        ({"id": ["a", None], "text": ["b", "c"]}, "row 2: id is missing"),
        ({"id": ["a", ""], "text": ["b", "c"]}, "row 2: id is empty"),
        ({"id": [1.0], "text": ["b"]}, "column id holds Float64; make it text"),
        ({"id": ["a"], "text": [1.5]}, "column text holds Float64"),
        ({"id": ["a"], "words": ["b"]}, "no column text; found id, words"),
        ({"key": ["a"], "text": ["b"]}, "no column doc_id; found key, text"),
        ({"id": [], "text": []}, "the file has no rows"),
    ],
)
def test_bad_parquet_is_refused_with_file_and_column(
    columns: dict[str, list[object]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "docs.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=f"^{path}: ({message})"):
        open_docs(path).frame()


def test_bytes_that_are_not_text_are_refused_in_parquet_too(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pa.parquet.write_table(pa.table({"id": ["a"], "text": pa.array([b"\xff"])}), path)
    with pytest.raises(InputError, match="column text holds bytes that are not UTF-8"):
        open_docs(path).frame()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b"), ("c",)], r"row 2: 1 values instead of \(doc_id, text\)"),
        ([("a", "b"), ("c", 4.5)], "row 2: text is 4.5"),
        ([("a", "b"), (None, "c")], "row 2: doc_id is missing"),
        ([{"id": "a", "text": "b"}, {"id": "c"}], "row 2: text is missing"),
        (["ab"], "row 1: 'ab' is not a row"),
        ([("a", "\ud800")], "lone surrogate"),
        (pd.DataFrame({"docno": [1.5], "text": ["a"]}), "column docno holds Float64"),
        (pd.DataFrame({"docno": ["a", None], "text": ["a", "b"]}), "row 2: docno is missing"),
        (pl.DataFrame({"docno": ["a", "b"], "text": ["a", None]}), "row 2: text is missing"),
        (5, "5 is not a collection"),
    ],
)
def test_bad_rows_are_named(rows: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_docs(rows).frame()


def test_an_iterator_is_kept_on_disk_while_the_handle_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    docs = open_docs((f"d{n}", "text") for n in range(20_000))
    assert len(docs.frame()) == len(docs.frame()) == 20_000
    assert len(list(tmp_path.iterdir())) == 1
    del docs
    assert not list(tmp_path.iterdir())


def test_pandas_columns_of_mixed_ids_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"docno": ["a", 2], "text": ["b", "c"]}, dtype=object)
    assert as_dict(open_docs(frame)) == {"a": "b", "2": "c"}


def test_memory_stays_flat_as_a_collection_grows(tmp_path: Path) -> None:
    path = tsv(tmp_path, "".join(f"d{n}\t{'word ' * 60}\n" for n in range(200_000)))
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for block in open_docs(path).blocks():
        block.read()
        most = max(most, pool.bytes_allocated() - before)
    assert most < 12 * files.BLOCK < path.stat().st_size
