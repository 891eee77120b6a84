"""The index holds what the documents hold, opens at once, and is there whole or not at all."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.data.docs import Docs
from evenrank.data.schema import Block, batch_of
from evenrank.rankers import indexing
from evenrank.rankers.index import Index, read_manifest
from evenrank.rankers.indexing import write_manifest

DOCS = {
    "d2": "She is a nurse; her brother's a nurse too.",
    "d10": "",
    "é": "Он сказал 中文 naïve café",
    "d1": "The of and",
    "z": "nurse " * 300,
}


def contents(index: Index) -> list[dict[str, int]]:
    """What the forward index says, as terms and counts."""
    return [
        {index.term(int(t)): int(n) for t, n in zip(*index.forward(d), strict=True)}
        for d in range(index.documents)
    ]


def check(index: Index, docs: dict[str, str]) -> None:
    """Everything the index knows, against the plain definition."""
    bags = [Counter(index.analyzer.terms(text)) for text in docs.values()]
    assert index.documents == len(index) == len(docs)
    assert contents(index) == [dict(bag) for bag in bags]
    assert index.lengths.tolist() == [bag.total() for bag in bags]
    assert index.tokens == sum(bag.total() for bag in bags)
    terms = [index.term(n) for n in range(index.terms)]
    assert terms == sorted({term for bag in bags for term in bag}, key=str.encode)
    assert [index.number(term) for term in terms] == list(range(len(terms)))
    for number, term in enumerate(terms):
        found = {int(d): int(n) for d, n in zip(*index.postings(number), strict=True)}
        assert found == {d: bag[term] for d, bag in enumerate(bags) if term in bag}
        assert list(found) == sorted(found)
        assert index.document_frequency[number] == len(found)
        assert index.collection_frequency[number] == sum(found.values())
    assert index.doc_ids(range(len(docs))) == list(docs)
    assert index.numbers(docs).tolist() == list(range(len(docs)))
    assert index.docs.texts(docs) == docs


def test_an_index_holds_what_the_documents_hold(tmp_path: Path) -> None:
    index = er.index(DOCS, tmp_path / "an.index")
    check(index, DOCS)
    dict(index.arrays)
    assert index.number("nurs") >= 0
    assert index.number("nurse") == index.number("") == -1
    assert index.numbers(["no", "", "d1"]).tolist() == [-1, -1, 3]


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text("ab1é中", min_size=1, max_size=3),
        st.text("abc é'.中 \n", max_size=30),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 20),
)
def test_the_size_of_the_chunks_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, docs: dict[str, str], postings: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "CHUNK", postings)  # a few postings are sorted at a time …
        check(er.index(_in_small_blocks(docs), tmp_path_factory.mktemp("i") / "x"), docs)


def _in_small_blocks(docs: dict[str, str]) -> Docs:
    """… and blocks of one document."""

    def blocks() -> Iterator[Block]:
        for doc_id, text in docs.items():
            yield Block(lambda a=doc_id, b=text: batch_of(pa.array([a]), pa.array([b])), 1)

    return Docs("small", blocks)


def test_real_collections_are_indexed_whole(shared: Path, tmp_path: Path) -> None:
    docs = er.load(shared / "data" / "time").docs
    index = er.index(docs, tmp_path / "time")
    assert index.docs.frame().equals(docs.frame())
    texts = docs.frame()["text"].to_list()
    assert contents(index)[::40] == [dict(Counter(index.analyzer.terms(text))) for text in texts[::40]]
    assert index.docs.describe() == docs.describe()


def test_any_document_is_read_without_the_others(tmp_path: Path) -> None:
    docs = {f"d{i}": f"text {i} " * (i % 50) for i in range(5000)}
    index = er.index(docs, tmp_path / "x")
    assert index.docs.texts(["d4999", "d7", "none", "d7"]) == {"d4999": docs["d4999"], "d7": docs["d7"]}
    assert dict(index.docs.frame().iter_rows()) == docs


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (er.index(DOCS, tmp_path / name) for name in ("a", "b"))
    assert first.fingerprint == second.fingerprint
    files = [
        {str(p.relative_to(i.path)): p.read_bytes() for p in i.path.rglob("*") if p.is_file()}
        for i in (first, second)
    ]
    assert files[0] == files[1]
    other = er.index(DOCS, tmp_path / "c", stemmer=None)
    assert other.fingerprint != first.fingerprint


def test_a_document_that_comes_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("a\tone\nb\ttwo\na\tthree\n")
    with pytest.raises(er.InputError, match=r"docs.tsv:3: repeats line 1: doc_id 'a'"):
        er.index(path, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_no_documents_no_index(tmp_path: Path) -> None:
    with pytest.raises(er.InputError, match="no documents"):
        er.index({}, tmp_path / "x")
    with pytest.raises(er.InputError, match="file is empty"):
        (tmp_path / "none.tsv").write_text("")
        er.index(tmp_path / "none.tsv", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_documents_without_a_term_are_documents(tmp_path: Path) -> None:
    index = er.index({"a": "", "b": "the of"}, tmp_path / "x")
    assert (index.documents, index.terms, index.tokens) == (2, 0, 0)
    assert er.search(index, {"q": "nurse"}).is_empty()


def test_an_index_is_replaced_only_when_asked_and_only_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    old = er.index(DOCS, path)
    with pytest.raises(er.InputError, match="already; replace it with --force"):
        er.index({"n": "new"}, path)
    with pytest.raises(er.InputError, match="d7"):
        er.index([("d7", "x"), ("d7", "y")], path, overwrite=True)
    check(Index.open(path), DOCS)
    new = er.index({"n": "new"}, path, overwrite=True)
    check(new, {"n": "new"})
    check(old, DOCS)  # who had it open keeps it
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    check(er.index({"n": "new"}, path, overwrite=True), {"n": "new"})


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(er.InputError, match="is not an index; name another"):
        er.index(DOCS, tmp_path, overwrite=True)
    with pytest.raises(er.InputError, match="is not an index; name another"):
        er.index(DOCS, tmp_path / "thesis.tex", overwrite=True)


def test_an_index_of_the_cache_is_built_once_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path))
    started, go, builds = threading.Event(), threading.Event(), []
    docs, build = _in_small_blocks(DOCS), indexing.index

    def slow(*given: Any, **more: Any) -> Index:
        builds.append(1)
        started.set()
        go.wait(30)
        return build(*given, **more)

    monkeypatch.setattr(indexing, "index", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(indexing.cached_index, docs)
        started.wait(30)
        second = pool.submit(indexing.cached_index, docs)
        with pytest.raises(TimeoutError):
            second.result(0.3)
        go.set()
        check(first.result(30), DOCS)
        check(second.result(30), DOCS)
    assert len(builds) == 1


@pytest.mark.parametrize("how", ["cut", "grown", "changed", "gone"])
def test_a_damaged_file_is_noticed(tmp_path: Path, how: str) -> None:
    index = er.index(DOCS, tmp_path / "x")
    names = sorted(path.relative_to(index.path) for path in index.path.rglob("*") if path.is_file())
    for name in names:
        path = index.path / name
        whole = path.read_bytes()
        if how == "cut":
            path.write_bytes(whole[:-1])
        elif how == "grown":
            path.write_bytes(whole + b"\0")
        elif how == "changed":
            path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
        else:
            path.unlink()
        if name.name == "index.json" and how in ("cut", "grown") and whole[:-1].strip() == whole.strip():
            path.write_bytes(whole)
            continue
        with pytest.raises(er.InputError, match=r"damaged|missing|not an index"):
            dict(Index.open(tmp_path / "x").arrays)
        path.write_bytes(whole)
    check(Index.open(tmp_path / "x"), DOCS)


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", ""])
def test_an_index_does_not_read_files_outside_its_folder(tmp_path: Path, name: str) -> None:
    index = er.index(DOCS, tmp_path / "x")
    manifest = read_manifest(index.path)
    shutil.move(index.path / "lengths", tmp_path / "elsewhere")
    files = dict(manifest["files"])
    write_manifest(index.path, {**manifest, "files": {**files, name: files.pop("lengths")}})
    with pytest.raises(er.InputError, match="may lie outside its folder"):
        Index.open(tmp_path / "x")
    write_manifest(index.path, manifest)
    (index.path / "lengths").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(er.InputError, match="is a link that leads outside its folder"):
        Index.open(tmp_path / "x")


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    words = random.Random(0)
    docs = {str(i): " ".join(f"w{words.randrange(300)}" for _ in range(40)) for i in range(500)}
    index = er.index(docs, tmp_path / "x")
    files = sorted(path for path in index.path.rglob("*") if path.is_file())
    assert {"forward-terms", "forward-offsets", "posting-offsets", "text", "index.json"} <= {
        path.name for path in files
    }
    for path in files:
        whole = path.read_bytes()
        for _ in range(20):
            place, bit = words.randrange(len(whole)), 1 << words.randrange(8)
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            with pytest.raises(er.InputError, match=f"{path.name}: damaged: not what was written") as caught:
                dict(Index.open(index.path).arrays)  # every file is used
            assert "\n" not in str(caught.value)
        path.write_bytes(whole)
    check(Index.open(index.path), docs)


def test_damage_is_found_when_a_file_is_first_used(tmp_path: Path) -> None:
    words = random.Random(0)
    docs = {str(i): " ".join(f"w{words.randrange(5000)}" for _ in range(100)) for i in range(400)}
    index = er.index(docs, tmp_path / "x")
    path = next(index.path.rglob("posting-documents"))
    data = bytearray(path.read_bytes())
    data[7_000:7_400] = os.urandom(400)
    path.write_bytes(data)
    opened = Index.open(index.path)
    assert opened.docs.texts(["7"]) == {"7": docs["7"]}
    for _ in range(2):
        with pytest.raises(er.InputError, match="posting-documents: damaged"):
            er.search(opened, {"q": "w1 w2"})


def test_what_is_no_index_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(er.InputError, match="no such index; make one with"):
        Index.open(tmp_path / "none")
    with pytest.raises(er.InputError, match="is not an index"):
        Index.open(tmp_path)
    (tmp_path / "index.json").write_text('{"checksum": "x", "content": {}}')
    with pytest.raises(er.InputError, match="damaged"):
        Index.open(tmp_path)


def test_many_threads_may_use_one_index(tmp_path: Path) -> None:
    index = er.index({f"d{i}": f"nurse w{i % 7} w{i % 11}" for i in range(500)}, tmp_path / "x")
    expected = (index.number("w3"), index.doc_ids([7]), index.docs.texts(["d9"]))

    def use(_: int) -> object:
        opened = index if _ % 2 else Index.open(index.path)
        return opened.number("w3"), opened.doc_ids([7]), opened.docs.texts(["d9"])

    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(use, range(200)))


def test_what_is_derived_is_computed_once_and_a_sweep_does_not_fill_the_memory(tmp_path: Path) -> None:
    index, made = er.index(DOCS, tmp_path / "x"), []

    def value(key: int) -> int:
        return int(index.derived(key, lambda: made.append(key) or 10 * key))

    assert [value(key) for key in (1, 2, 1, 2)] == [10, 20, 10, 20]
    assert made == [1, 2]
    for key in range(100):
        assert value(key) == 10 * key
        assert len(index._derived) <= 8
    assert value(99) == 990 and made.count(99) == 1
    assert value(1) == 10 and made.count(1) == 2  # it had to go, and came back right


def test_numbers_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    index = er.index(DOCS, tmp_path / "x")
    for call in (index.term, index.postings, index.forward):
        with pytest.raises((IndexError, ValueError)):
            call(10**9)


def test_counts_beyond_a_byte_are_kept(tmp_path: Path) -> None:
    docs = {"a": "x " * 70_000 + "y", "b": "x " * 300, "c": "x"}
    check(er.index(docs, tmp_path / "x"), docs)
