"""Any engine that answers with JSON, as a ranker: what it is asked, and what is made of its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_server import RESULTS, Asked, Reply, ids, serving

from evenrank.errors import InputError
from evenrank.rankers.remote import engine
from evenrank.rankers.remote.json_values import MISSING, fill, value_at


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_query_and_depth_are_filled_into_the_url() -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        shown = engine(f"{site.url}/search?q={{query}}&n={{depth}}").search({"q": "a nurse"}, depth=7)
    assert site.asked[0].parameters == {"q": ["a nurse"], "n": ["7"]}
    assert shown.frame.rows() == [("q", "a", 1, 2.5, "T", "x"), ("q", "b", 2, 1.0, None, "y")]


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))
def test_whatever_the_query_holds_it_stays_one_parameter(text: str) -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        ids(f"{site.url}/{{query}}?q={{query}}&z=1", text)
    assert site.asked[0].parameters == {"q": [text], "z": ["1"]}
    assert unquote(site.asked[0].path) == f"/{text}"


@pytest.mark.parametrize(
    "text", ['" OR 1=1 --', "a&n=99", "{depth}", "{query}", "a#b", "../../etc", "\0", "%41"]
)
def test_attacks_are_just_words(text: str) -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        ids(f"{site.url}/search?q={{query}}&n={{depth}}", text)
        ids(f"{site.url}/search", text, body='{"q": "{query}", "n": "{depth}", "m": ["<{query}>"]}')
    assert site.asked[0].parameters == {"q": [text], "n": ["10"]}
    assert site.asked[1].body == {"q": text, "n": 10, "m": [f"<{text}>"]}


def test_a_body_is_posted(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"query": {"match": "{query}"}, "size": "{depth}"}')
    with serving(lambda _: Reply(RESULTS)) as site:
        assert ids(f"{site.url}/search", body=f"@{tmp_path}/body.json") == ["a", "b"]
    assert (site.asked[0].method, site.asked[0].body) == ("POST", {"query": {"match": "nurse"}, "size": 10})
    assert site.asked[0].headers["content-type"] == "application/json"


def test_fields_are_found_where_the_mapping_says() -> None:
    answer = {"hits": {"items": [{"doc": {"no": 7}, "s": "3.5", "t": ["one", "two"], "head.line": "H"}]}}
    mapping = {"results": "hits.items", "id": "doc.no", "score": "s", "text": "t", "title": "head.line"}
    with serving(lambda _: Reply(answer)) as site:
        shown = engine(f"{site.url}/?q={{query}}", **mapping).search({"q": "x"})
    assert shown.frame.rows() == [("q", "7", 1, 3.5, "H", "one two")]


def test_a_list_of_ids_is_a_ranking() -> None:
    with serving(lambda _: Reply(["b", "a", 3])) as site:
        run = engine(f"{site.url}/?q={{query}}").rank({"q": "x"})
    assert run.select("doc_id", "score").rows() == [("b", -1.0), ("a", -2.0), ("3", -3.0)]


def test_scores_that_rise_along_the_list_do_not_turn_it_around() -> None:
    items = [{"id": "a", "score": 1}, {"id": "b", "score": 9}]
    with serving(lambda _: Reply(items)) as site:
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(b"<html>hello"), r"expected JSON, found an answer that begins '<html>hello'"),
        (Reply(b""), "expected JSON, found an answer that is empty"),
        (Reply(b"[" * 100_000), "expected JSON"),
        (Reply(b"\xff\xfe"), "expected JSON"),
        (
            Reply({"hits": [], "took": 3}),
            "expected a list of results at results, found nothing; .*hits, took",
        ),
        (Reply({"results": {"a": 1}}), "found an object with a"),
        (Reply("text"), "the answer is 'text'"),
        (Reply({"results": [None]}), "a result is None; expected objects"),
        (Reply({"results": ["a", ["b"]]}), "a result is a list of 1; expected objects"),
        (
            Reply({"results": [{"name": "a"}]}),
            "no id in a result, which is an object with name; id= says where",
        ),
        (Reply({"error": "bad query"}, 400), "the engine answers 400: {'error': 'bad query'}"),
        (Reply("no", 401), r"wants to know who asks \(401\)"),
        (Reply("no", 403), r"refused \(403\)"),
        (Reply("no", 404), r"nothing at this address \(404\)"),
        (Reply("oops", 500), "the engine answers 500"),
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_used_is_described(answer: Reply, why: str) -> None:
    with serving(lambda _: answer) as site, pytest.raises(InputError, match=why) as error:
        ids(f"{site.url}/search?q={{query}}&api_key=hush", param={"extra": "1"})
    assert f"{site.url}/search?q=" in str(error.value)
    assert "hush" not in str(error.value)
    assert len(site.asked) == 1
    assert "\n" not in str(error.value)


def test_an_answer_that_is_too_large_is_not_read() -> None:
    with (
        serving(lambda _: Reply(b" " * 20_000_000)) as site,
        pytest.raises(InputError, match="larger than 16,777,216 bytes"),
    ):
        ids(f"{site.url}/?q={{query}}")


def test_a_skipped_failure_leaves_the_other_queries() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply("bad", 400) if asked.parameters["q"] == ["bad"] else Reply(RESULTS)

    with serving(answer) as site:
        answers = engine(f"{site.url}/?q={{query}}", on_error="skip").search(
            {"1": "ok", "2": "bad", "3": "ok"}
        )
    assert list(answers.failed) == ["2"]
    assert answers.run["query_id"].unique().sort().to_list() == ["1", "3"]


@pytest.mark.parametrize(
    ("url", "given", "why"),
    [
        ("http://host/?q=x", {}, "write {query} where the query belongs"),
        ("http://{query}/", {}, "the host cannot be filled in"),
        ("http:///x?q={query}", {}, "names no host"),
        ("http://host:port/?q={query}", {}, "check host and port"),
        ("http://host/?q={query}", {"body": "{query"}, "body is not JSON"),
        ("http://host/?q={query}", {"body": "@nothing.json"}, "nothing.json"),
        ("http://host/?q={query}", {"ids": "x"}, "has no setting 'ids'; it has: .*; did you mean id"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(url: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        engine(url, **given)


@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda t: st.lists(t) | st.dictionaries(st.text(), t))
)
def test_filling_in_keeps_the_shape(template: Any) -> None:
    filled = fill(template, {"query": "Q", "depth": 5})
    assert type(filled) is type(template) or template == "{depth}"
    if "{" not in json.dumps(template):
        assert filled == template


def test_paths_lead_into_lists_and_names_with_dots() -> None:
    value = {"a": [{"b": 1}], "c.d": {"e": 2}, "c": {"x": 3}}
    assert (
        value_at(value, "a.0.b"),
        value_at(value, "c.d.e"),
        value_at(value, "c.x"),
        value_at(value, ""),
    ) == (1, 2, 3, value)
    assert {value_at(value, path) for path in ("a.1", "a.b", "c.y", "z", "a.0.b.c")} == {MISSING}
