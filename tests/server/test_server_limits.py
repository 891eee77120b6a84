"""Too large, too many, too slow, malformed or from elsewhere: a clear refusal, and the server lives on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from evenrank.server.app import make_app
from evenrank.server.limits import Limits
from evenrank.server.searching import Service

GOOD = {"results": [{"text": "she"}]}


def detail(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    found = answer.json()["detail"]
    assert isinstance(found, str) and "\n" not in found
    return found


def test_a_large_body_is_refused_by_its_length(client: TestClient) -> None:
    assert "at most 1 MB" in detail(client.post("/v1/evaluate", content=b"x" * (2 << 20)), 413)


def test_a_large_body_without_a_length_is_refused_too(client: TestClient) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * (1 << 16)

    answer = client.post("/v1/evaluate", content=parts(), headers={"content-type": "application/json"})
    assert "at most 1 MB" in detail(answer, 413)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"results": []}, "results: "),
        ({"results": [{}] * 101}, "results: "),
        ({}, "results: Field required"),
        ({**GOOD, "colour": 1}, "colour: there is no such field"),
        ({"results": [{"txt": "she"}]}, "results.0.txt: there is no such field"),
        ({**GOOD, "at": 0}, "at: "),
        ({**GOOD, "at": "10"}, "at: "),
        ({**GOOD, "limit": -1}, "limit: "),
        ({**GOOD, "target": {"female": 2}}, "target.female: "),
        ({**GOOD, "target": {"female": 0.9, "male": 0.9}}, "add up to 1.8"),
        ({**GOOD, "query": 5}, "query: "),
        ({"results": [{"text": "x" * 50_001}]}, "results.0.text: "),
        (["she"], "Input should be"),
    ],
)
def test_what_does_not_fit_is_named(client: TestClient, content: Any, message: str) -> None:
    assert message in detail(client.post("/v1/evaluate", json=content), 422)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"results":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"results":[{"text":"\\ud800"}]}',
        b'{"results":[{"text":"she"}],"limit":NaN}',
        b'{"results":[{"text":"she"}],"limit":1e999}',
        b'{"results":[{"text":"she"}],"at":' + b"9" * 5000 + b"}",
        b'{"query":"\\udc00","results":[{"id":"\\ud800"}]}',
    ],
)
def test_broken_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/v1/evaluate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert "\n" not in answer.json()["detail"]
    assert client.post("/v1/evaluate", json=GOOD).status_code == 200


class Slow(Service):
    """A service whose searches take their time."""

    def genders(self, queries: Any) -> list[dict[str, Any]]:
        time.sleep(0.4)
        return super().genders(queries)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Slow(None)


def test_an_answer_that_takes_too_long_is_503(slow: Service) -> None:
    with TestClient(make_app(slow, limits=Limits(seconds=0.1)), base_url="http://localhost") as client:
        answer = client.post("/v1/classify", json={"queries": ["a"]})
        assert "within 0.1 seconds" in detail(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200


def test_too_many_at_once_are_503_and_the_others_answered(slow: Service) -> None:
    limits = Limits(threads=1, waiting=2)
    with TestClient(make_app(slow, limits=limits), base_url="http://localhost") as client:
        with ThreadPoolExecutor(6) as threads:
            asked = [threads.submit(client.post, "/v1/classify", json={"queries": ["a"]}) for _ in range(6)]
            statuses = [each.result().status_code for each in asked]
        assert set(statuses) == {200, 503} and statuses.count(200) >= 2
        assert (
            client.post("/v1/classify", json={"queries": ["a"]}).status_code == 200
        )  # places are given back


def test_other_host_names_and_sites_are_refused(client: TestClient) -> None:
    assert "host name" in detail(client.get("/healthz", headers={"host": "evil.example"}), 403)
    assert client.get("/healthz", headers={"host": "localhost:8000"}).status_code == 200
    crossing = client.post("/v1/evaluate", json=GOOD, headers={"sec-fetch-site": "cross-site"})
    assert "other sites" in detail(crossing, 403)


def test_unknown_paths_and_methods(client: TestClient) -> None:
    assert detail(client.get("/nothing"), 404)
    assert detail(client.get("/v1/evaluate"), 405)
    assert "<h1" in client.get("/nothing", headers={"accept": "text/html"}).text
    assert client.get("/static/..%2fmodels.py").status_code == 404


@pytest.mark.parametrize("path", ["/", "/?q=nurse", "/audit", "/docs", "/healthz", "/nothing"])
def test_every_answer_says_what_a_browser_may_do(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_a_classification_takes_a_thousand_queries_and_no_more(client: TestClient) -> None:
    found = client.post("/v1/classify", json={"queries": ["female surgeon", "", "best pizza"] * 300}).json()
    labels = [query["label"] for query in found["queries"][:3]]
    assert labels[0] == "female" and labels[1:] == ["neutral", "neutral"]
    assert "queries: " in detail(client.post("/v1/classify", json={"queries": [""] * 1001}), 422)


def test_search_refuses_rankers_it_does_not_have(client: TestClient) -> None:
    assert "ranker: " in detail(client.post("/v1/search", json={"query": "a", "ranker": "bm26"}), 422)


def test_a_server_without_a_collection_evaluates_and_says_what_is_missing() -> None:
    with TestClient(make_app(Service(None)), base_url="http://localhost") as client:
        assert client.post("/v1/evaluate", json=GOOD).status_code == 200
        assert client.post("/v1/search", json={"query": "a"}).status_code == 404
        assert "no collection" in client.get("/").text
        assert "No collection" in client.get("/audit").text
        assert "/v1/search" not in json.dumps(client.get("/openapi.json").json()["paths"])
