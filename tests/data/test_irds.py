"""Datasets of ir_datasets, with one registered here: the real ones need a download."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from evenrank.data.docs import load, open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError

ir_datasets = pytest.importorskip("ir_datasets")


class Abstract(NamedTuple):
    doc_id: str
    heading: str

    def default_text(self) -> str:
        return f"about {self.heading}"


def _dataset(documents: list[Any], *, judged: bool = True) -> Any:
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel

    class Docs(BaseDocs):
        def docs_iter(self) -> Iterator[Any]:
            return iter(documents)

        def docs_cls(self) -> Any:
            return type(documents[0])

    class Queries(BaseQueries):
        def queries_iter(self) -> Iterator[Any]:
            return iter([GenericQuery("1", "hats"), GenericQuery("2", "cats")])

        def queries_cls(self) -> Any:
            return GenericQuery

    class Qrels(BaseQrels):
        def qrels_iter(self) -> Iterator[Any]:
            return iter([TrecQrel("1", "a", 1, "0"), TrecQrel("2", "b", -1, "0")])

        def qrels_cls(self) -> Any:
            return TrecQrel

        def qrels_defs(self) -> dict[int, str]:
            return {}

    return ir_datasets.Dataset(Docs(), Queries(), *([Qrels()] if judged else []))


@pytest.fixture
def registered() -> Iterator[None]:
    from ir_datasets.formats import GenericDoc

    datasets = {
        "evenrank-test": _dataset([GenericDoc("a", "woman"), GenericDoc("b", "man")]),
        "evenrank-test/dev": _dataset([Abstract("a", "hats")], judged=False),
    }
    for name, dataset in datasets.items():
        ir_datasets.registry.register(name, dataset)
    yield
    for name in datasets:
        ir_datasets.registry._registered.pop(name)


@pytest.mark.usefixtures("registered")
def test_a_dataset_is_loaded_by_its_name() -> None:
    docs, queries, qrels = load("irds:evenrank-test")
    assert dict(docs.frame().iter_rows()) == {"a": "woman", "b": "man"}
    assert docs.texts(["b"]) == {"b": "man"}
    assert docs.name == "irds:evenrank-test"
    assert queries.rows() == [("1", "hats"), ("2", "cats")]
    assert qrels is not None
    assert qrels.rows() == [("1", "a", 1), ("2", "b", -1)]
    assert read_queries("irds:evenrank-test").equals(queries)
    assert read_qrels(ir_datasets.load("evenrank-test")).equals(qrels)


@pytest.mark.usefixtures("registered")
def test_a_split_is_a_part_of_the_name_and_judgments_may_be_missing() -> None:
    docs, _, qrels = load("irds:evenrank-test", split="dev")
    assert qrels is None
    assert docs.texts(["a"]) == {"a": "about hats"}, "documents without a text say what theirs is"
    with pytest.raises(InputError, match="this dataset has no qrels"):
        read_qrels("irds:evenrank-test/dev")
    with pytest.raises(InputError, match="this dataset has no scoreddocs"):
        read_run("irds:evenrank-test/dev")


def test_an_unknown_name_is_refused_in_one_line() -> None:
    for reader in (load, open_docs, read_queries, read_qrels, read_run):
        with pytest.raises(InputError, match=r"^irds:no-such-thing: ir_datasets has no dataset of this name"):
            reader("irds:no-such-thing")


def test_without_ir_datasets_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(InputError, match=r"not installed; pip install 'evenrank\[datasets\]'"):
        open_docs("irds:anything")


def test_a_failing_download_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def docs_iter(self) -> Iterator[Any]:
            raise RuntimeError("no\nnetwork")

    with pytest.raises(InputError, match=r"^Broken: ir_datasets cannot read this: no network"):
        open_docs(Broken()).frame()
