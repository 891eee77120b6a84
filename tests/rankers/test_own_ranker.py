"""A ranker of one's own, as docs/architecture.md says how to add one: an object, a function, or a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.data.schema import RUN_SCHEMA
from evenrank.rankers import Ranker, make, registry
from evenrank.rankers.index import Index

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return er.index(demo.folder() / "docs.tsv", tmp_path_factory.mktemp("own") / "demo.index")


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class of the page, in a module of its own, with the line of the page in the registry."""
    recipe = PAGE.read_text().split("**a ranker**")[1]
    code = re.search(r"```python\n(.*?)\n\n\nindex =", recipe, re.DOTALL)
    assert code and '`"longest": Entry("evenrank.rankers.longest:Longest")`' in recipe
    (tmp_path / "longest.py").write_text(code[1])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.RANKERS, "longest", registry.Entry("longest:Longest"))


def test_a_ranker_with_a_name_gets_typed_settings(named: None, index: Index) -> None:
    assert registry.parse_settings("longest", ["least=20"]) == {"least": 20}
    made = make("longest", index=index, least=20)
    assert isinstance(made, Ranker)
    assert made.name == made.describe()["name"] == "longest"
    run = er.search(index, {"q": "famous physicist"}, ranker="longest", least=20, depth=2)
    assert run.schema == RUN_SCHEMA and len(run) == 2
    assert run["score"].to_list() == sorted(run["score"], reverse=True)
    assert (run["score"] >= 20).all()
    with pytest.raises(er.InputError, match="longest has no setting 'most'; it has: least"):
        er.search(index, {"q": "famous physicist"}, ranker="longest", most=3)


def test_a_ranker_with_a_name_works_on_the_command_line(named: None, index: Index, tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("q\tfamous physicist\n")
    command = ["search", "--index", str(index.path), "--queries", str(tmp_path / "q.tsv")]
    out = tmp_path / "own.run"
    assert main([*command, "--ranker", "longest", "--set", "least=20", "--depth", "2", "-o", str(out)]) == 0
    lines = [line.split() for line in out.read_text().splitlines()]
    assert [(query, tag) for query, _, _, _, _, tag in lines] == [("q", "longest")] * 2


def test_an_object_is_searched_as_it_is() -> None:
    class Fixed:
        def rank(self, queries: Any, depth: int) -> Any:
            return {query: {"b": 2.0, "a": 1.0, "c": 3.0} for query in queries["query_id"]}

    run = er.search(Fixed(), {"q1": "x", "q2": "y"}, depth=2)
    assert run.schema == RUN_SCHEMA
    assert run["doc_id"].to_list() == ["c", "b", "c", "b"]
    with pytest.raises(er.InputError, match="Fixed has its settings already; leave out k1"):
        er.search(Fixed(), "x", k1=1)


def test_a_function_is_asked_for_each_query() -> None:
    asked: list[str] = []

    def engine(text: str, depth: int) -> list[str]:
        asked.append(text)
        return ["a", "b", "c"][:depth]

    run = er.search(engine, ["one", "two"], depth=2)
    assert sorted(asked) == ["one", "two"]
    assert run["doc_id"].to_list() == ["a", "b"] * 2
