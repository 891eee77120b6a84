"""Elasticsearch and OpenSearch as rankers, against answers in the form in which real servers give them.

The servers themselves are not at hand in tests. What is replayed here was written by hand in the published
form of their answers, errors included; it is not a recording.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from json_server import Reply, serving

from evenrank.errors import InputError
from evenrank.rankers.remote import engine

FOUND = {
    "took": 4,
    "timed_out": False,
    "_shards": {"total": 2, "successful": 2, "skipped": 0, "failed": 0},
    "hits": {
        "max_score": 1.3862942,
        "hits": [
            {
                "_index": "docs",
                "_id": "b",
                "_score": 1.3862942,
                "_source": {"body": "a nurse", "meta": {"no": "X1"}},
            },
            {
                "_index": "docs",
                "_id": "a",
                "_score": 0.9,
                "_source": {"body": ["he", "works"], "meta.no": "X2"},
            },
            {"_index": "docs", "_id": "c", "_score": 0.9, "_source": {"meta": {"no": "X3"}}},
        ],
    },
}
NO_INDEX = {
    "error": {
        "root_cause": [
            {
                "type": "index_not_found_exception",
                "reason": "no such index [dogs]",
                "resource.type": "index_or_alias",
                "resource.id": "dogs",
                "index_uuid": "_na_",
                "index": "dogs",
            }
        ],
        "type": "index_not_found_exception",
        "reason": "no such index [dogs]",
        "index": "dogs",
    },
    "status": 404,
}
WINDOW = (
    "Result window is too large, from + size must be less than or equal to: [10000] but was [20000]. "
    "See the scroll api for a more efficient way to request large data sets."
)
TOO_DEEP = {
    "error": {
        "root_cause": [{"type": "illegal_argument_exception", "reason": WINDOW}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "phase": "query",
        "grouped": True,
        "failed_shards": [{"shard": 0, "index": "docs", "reason": {"type": "illegal_argument_exception"}}],
        "caused_by": {"type": "illegal_argument_exception", "reason": WINDOW},
    },
    "status": 400,
}
REJECTED = {
    "error": {
        "root_cause": [{"type": "es_rejected_execution_exception", "reason": "rejected execution of task"}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
    },
    "status": 429,
}
PARTIAL = {
    **FOUND,
    "_shards": {
        "total": 5,
        "successful": 4,
        "skipped": 0,
        "failed": 1,
        "failures": [
            {
                "shard": 3,
                "index": "docs",
                "node": "n1",
                "reason": {"type": "circuit_breaking_exception", "reason": "[parent] Data too large"},
            }
        ],
    },
}
UNAUTHORIZED = {
    "error": {
        "root_cause": [{"type": "security_exception", "reason": "missing authentication credentials"}],
        "type": "security_exception",
        "reason": "missing authentication credentials for REST request [/docs/_search]",
    },
    "status": 401,
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def answering(*replies: Reply) -> Any:
    """Searches get these replies one after another, the last one again and again."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def ask(url: str, query: str = "nurses", **given: Any) -> Any:
    return engine(url, **{"text": "body", "backoff": 0.01, **given}).search({"q": query}, depth=10)


@pytest.mark.parametrize("scheme", ["elasticsearch", "opensearch", "opensearch+http"])
def test_results_come_in_the_order_of_the_engine(scheme: str) -> None:
    with serving(answering(Reply(FOUND))) as site:
        answers = ask(f"{scheme}://{site.host}/docs")
    assert answers.frame.select("doc_id", "rank", "score", "text").rows() == [
        ("b", 1, 1.3862942, "a nurse"),
        ("a", 2, 0.9, "he works"),
        ("c", 3, 0.9, None),
    ]
    assert answers.run["doc_id"].to_list() == ["b", "a", "c"]  # though c > a, and their scores are equal


def test_a_field_is_searched() -> None:
    with serving(answering(Reply(FOUND))) as site:
        ask(f"elasticsearch://{site.host}/docs", timeout=5)
    (sent,) = site.asked
    assert (sent.method, sent.path) == ("POST", "/docs/_search")
    assert sent.parameters == {"allow_partial_search_results": ["false"]}
    assert sent.body == {
        "query": {"multi_match": {"query": "nurses", "fields": ["body"]}},
        "size": 10,
        "_source": ["body"],
        "track_total_hits": False,
        "timeout": "5000ms",
    }


def test_an_id_may_be_a_field() -> None:
    with serving(answering(Reply(FOUND))) as site:
        answers = ask(f"elasticsearch://{site.host}/docs", id="meta.no")
    assert answers.frame["doc_id"].to_list() == ["X1", "X2", "X3"]
    assert "meta.no" in site.asked[0].body["_source"]


def test_ones_own_request_is_filled_in(tmp_path: Path) -> None:
    own = {"query": {"bool": {"must": [{"match": {"body": "{query}"}}]}}, "size": "{depth}", "sort": ["date"]}
    (tmp_path / "body.json").write_text(json.dumps(own))
    with serving(answering(Reply(FOUND))) as site:
        ask(f"elasticsearch://{site.host}/docs", body=f"@{tmp_path}/body.json")
    sent = site.asked[0].body
    assert sent["query"] == {"bool": {"must": [{"match": {"body": "nurses"}}]}}
    assert sent["size"] == 10


@pytest.mark.parametrize(
    "text", ['" OR 1=1 --', 'x"}}, "size": 0, {"', "* NEAR", "body:x AND _id:y", "\0", "\\"]
)
def test_operators_in_a_query_are_just_words(text: str) -> None:
    with serving(answering(Reply(FOUND))) as site:
        ask(f"elasticsearch://{site.host}/docs", query=text)
    assert site.asked[0].body["query"]["multi_match"]["query"] == text


def test_a_missing_index_is_named() -> None:
    with (
        serving(answering(Reply(NO_INDEX, 404))) as site,
        pytest.raises(InputError, match=r"nothing at this address \(404\): 'no such index \[dogs\]'"),
    ):
        ask(f"elasticsearch://{site.host}/dogs")


def test_a_search_without_any_result_says_so() -> None:
    nothing = {**FOUND, "hits": {"hits": []}}
    with serving(answering(Reply(nothing))) as site:
        answers = ask(f"elasticsearch://{site.host}/docs", text="boddy")
    assert answers.notes == ("no query had a result; check the settings of the engine",)


def test_the_innermost_reason_of_a_refusal_is_told() -> None:
    with (
        serving(answering(Reply(TOO_DEEP, 400))) as site,
        pytest.raises(InputError, match="Result window is too large"),
    ):
        ask(f"elasticsearch://{site.host}/docs")
    assert len(site.asked) == 1


def test_wrong_credentials_stop_at_once() -> None:
    with (
        serving(lambda _: Reply(UNAUTHORIZED, 401)) as site,
        pytest.raises(InputError, match=r"wants to know who asks \(401\); set header.Authorization"),
    ):
        ask(f"elasticsearch://{site.host}/docs")
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "reply",
    [Reply(REJECTED, 429), Reply({"status": 503}, 503), Reply(PARTIAL), Reply({**FOUND, "timed_out": True})],
)
def test_what_may_get_better_is_asked_again(reply: Reply) -> None:
    with serving(answering(reply, reply, Reply(FOUND))) as site:
        assert len(ask(f"elasticsearch://{site.host}/docs").frame) == 3
    assert len(site.asked) == 3


def test_results_of_some_shards_only_are_no_results() -> None:
    with (
        serving(answering(Reply(PARTIAL))) as site,
        pytest.raises(InputError, match=r"1 of 5 shards failed: .*Data too large.* \(asked 2 times\)"),
    ):
        ask(f"elasticsearch://{site.host}/docs", retries=1)


def test_an_answer_cut_by_time_is_no_answer() -> None:
    with (
        serving(answering(Reply({**FOUND, "timed_out": True}))) as site,
        pytest.raises(InputError, match=r"no whole answer in time \(asked 1 time\)"),
    ):
        ask(f"elasticsearch://{site.host}/docs", retries=0)


def test_an_answer_that_is_no_search_result_is_described() -> None:
    with (
        serving(answering(Reply({"tagline": "You Know, for Search"}))) as site,
        pytest.raises(
            InputError,
            match=r"expected a list of results at hits.hits, found nothing; .* object with tagline",
        ),
    ):
        ask(f"elasticsearch://{site.host}/docs")


def test_no_hits_are_no_error() -> None:
    nothing = {**FOUND, "hits": {"max_score": None, "hits": []}}
    with serving(answering(Reply(nothing))) as site:
        answers = ask(f"elasticsearch://{site.host}/docs")
    assert answers.empty == ("q",)


def test_sorted_by_something_else_the_rank_counts() -> None:
    hits = [{"_id": name, "_score": None, "sort": [1]} for name in ("z", "a")]
    with serving(answering(Reply({**FOUND, "hits": {"hits": hits}}))) as site:
        assert ask(f"elasticsearch://{site.host}/docs").run["score"].to_list() == [-1.0, -2.0]


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_KEY", "t0ps3cret")
    with serving(answering(Reply(FOUND))) as site:
        ranker = engine(
            f"elasticsearch://{site.host}/docs",
            **{"text": "body", "header.Authorization": "ApiKey env:ES_KEY"},
        )
        ranker.rank({"q": "x"})
    assert {asked.headers["authorization"] for asked in site.asked} == {"ApiKey t0ps3cret"}
    assert "t0ps3cret" not in json.dumps(ranker.describe())


def test_a_password_may_be_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_PASSWORD", "p:w")
    with serving(answering(Reply(FOUND))) as site:
        ranker = engine(f"opensearch://admin:env%3AES_PASSWORD@{site.host}/docs", text="body")
        ranker.rank({"q": "x"})
    assert site.asked[0].headers["authorization"] == "Basic YWRtaW46cDp3"
    assert "p:w" not in str(ranker.describe())


def test_an_index_may_lie_behind_a_proxy_or_be_several() -> None:
    with serving(answering(Reply(FOUND))) as site:
        ask(f"elasticsearch://{site.host}/team/search/docs,more-*")
    assert site.asked[0].path == "/team/search/docs,more-*/_search"


def test_tls_is_a_matter_of_the_scheme() -> None:
    secure = engine("elasticsearch+https://host:9200/docs").describe()
    assert secure["url"] == "https://host:9200/docs"
    assert engine("opensearch://host:9200/docs").describe()["url"] == "http://host:9200/docs"


def test_a_url_without_an_index_is_refused() -> None:
    with pytest.raises(InputError, match="names no index; write it as opensearch://host:9200/index"):
        engine("opensearch://host:9200/")


def test_a_request_of_ones_own_needs_a_place_for_the_query() -> None:
    with pytest.raises(InputError, match=r"write {query} where the query belongs"):
        engine("opensearch://host:9200/docs", body='{"query": {}}')
