"""The pages: two rankers, the switch, the audit; every text stays text."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import evenrank as er
from evenrank import demo
from evenrank.server.app import make_app
from evenrank.server.limits import Limits
from evenrank.server.searching import Service
from evenrank.server.uploads import Auditor

EVIL = """</script><script>alert(1)</script><img src=x onerror=alert(2)>'"--><svg onload=alert(3)>"""


def test_both_rankers_answer_as_they_do_elsewhere(client: TestClient, service: Service) -> None:
    page = client.get("/", params={"q": "nurse", "left": "bm25", "right": "tfidf"}).text
    found = re.findall(r'<span class="mono">([^<]+)</span>', page)
    expected = [
        er.search(service.index, {"q": "nurse"}, ranker=name, depth=10)["doc_id"].to_list()
        for name in ("bm25", "tfidf")
    ]
    assert found == [*expected[0], *expected[1]]


def test_the_switch_keeps_the_lists_within_the_limit(client: TestClient) -> None:
    asked = {"query": "nurse", "ranker": "bm25", "depth": 10}
    before = client.post("/v1/search", json=asked).json()
    after = client.post("/v1/search", json={**asked, "constrain": 0.1}).json()
    assert abs(before["verdict"]["lean"]) > 0.1 >= abs(after["verdict"]["lean"])
    assert after["constrained"]["possible"] and any(result["moved"] for result in after["results"])
    page = client.get("/", params={"q": "nurse", "even": "1", "limit": "0.1"}).text
    assert "Re-ranked to within ±0.10" in page and "before re-ranking" in page


def test_a_guess_at_the_gender_of_a_query_gives_its_reasons_and_excuses_nothing(
    client: TestClient, service: Service
) -> None:
    for query in ("nurse", "woman nurse", "weather in the alps"):
        guess = service.guess(query)
        page = client.get("/", params={"q": query}).text
        assert ("A guess from words" in page) == (guess is not None), query
        assert guess is None or f"because of {guess['words'][0]}" in page
    named = service.guess("woman nurse")
    assert named is not None and named["label"] == "female" and named["words"][0] == "woman"
    assert service.guess("weather in the alps") is None
    # A guess excuses no lean; only a word of a group in the query itself does.
    assert "to be expected" not in client.get("/", params={"q": "nurse"}).text


def test_a_guess_is_shown_from_four_fifths_on(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for sure, shown in ((0.79, False), (0.8, True)):
        told = {"label": "female", "female": sure}
        monkeypatch.setattr(service, "gender", lambda _, told=told: told)
        assert (service.guess("woman nurse") is not None) == shown


def test_a_part_is_the_list_without_the_page(client: TestClient) -> None:
    part = client.get("/", params={"q": "nurse"}, headers={"x-part": "results"}).text
    assert "<html" not in part and 'class="hits"' in part


@pytest.mark.parametrize("query", ["", "   ", "zzzzqqq", "\x00", "nurse\x00", "🙂", '"', "a" * 1000, "%s{}"])
def test_odd_queries_are_answered(client: TestClient, query: str) -> None:
    """With what the words in them find, which may be nothing."""
    page = client.get("/", params={"q": query})
    answer = client.post("/v1/search", json={"query": query})
    assert page.status_code == answer.status_code == 200
    found = [result["id"] for result in answer.json()["results"]]
    assert bool(found) == ("nurse" in query)
    assert page.text.count('<span class="mono">') == (2 * len(found) if query.strip() else 0)
    assert answer.json()["query"]["text"] == query


def test_odd_parameters_are_refused_or_mended(client: TestClient) -> None:
    assert client.get("/", params={"q": "nurse", "limit": "x"}).status_code == 422
    assert client.get("/", params={"q": "nurse", "limit": "nan", "even": "1"}).status_code == 422
    assert client.get("/", params={"q": "nurse", "limit": "-5", "even": "1"}).status_code == 200
    assert client.get("/", params={"q": "nurse", "left": EVIL}).status_code == 200
    assert client.get("/", params={"q": "a" * 1001}).status_code == 422


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    docs = {f"d{i}{EVIL}": f"{word} nurse {EVIL}" for i, word in enumerate(["he", "she", "man"])}
    service = Service(er.index(docs, tmp_path / "index"), examples=[EVIL])
    with TestClient(make_app(service), base_url="http://localhost") as client:
        for page in (client.get("/"), client.get("/", params={"q": f"nurse {EVIL}", "even": "1"})):
            assert "alert(1)" in page.text
            assert "<img" not in page.text and "<script>" not in page.text and "<svg onload" not in page.text


def uploaded(client: TestClient, **files: Any) -> Any:
    return client.post("/audit", files=files, headers={"accept": "text/html"})


@pytest.fixture(scope="module")
def run() -> bytes:
    lines = (demo.folder() / "bm25.run").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.split()[0] <= "q12").encode()


def test_an_uploaded_run_becomes_a_report(client: TestClient, run: bytes) -> None:
    here = demo.folder()
    answer = uploaded(
        client,
        run=(f"mine{EVIL}.run.gz", gzip.compress(run)),
        qrels=("qrels.txt", (here / "qrels.txt").read_bytes()),
        baseline=("", b""),
        genders=("genders.tsv", (here / "genders.tsv").read_bytes()),
    )
    assert answer.status_code == 200, answer.text
    assert re.search(r"\d+ neutral quer(y|ies)", answer.text)  # the labels were heeded
    assert '<a class="back" href="/audit">' in answer.text
    assert answer.url.path.startswith("/audits/")
    assert "nDCG@10" in answer.text and "ARaB@10" in answer.text
    assert "<img src=x" not in answer.text and "<svg onload" not in answer.text
    assert client.get(answer.url.path).text == answer.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.run", b"", "choose the file"),
        ("broken.run", b"q1 Q0 d1\n", "broken.run"),
        ("picture.png", b"\x89PNG\x00\xff" * 50, "picture.png"),
        ("strange.run", b"q1 Q0 nothing-like-this 1 2.0 x\n", "strange"),
    ],
)
def test_a_file_that_is_no_run_is_refused_by_name(
    client: TestClient, name: str, content: bytes, message: str
) -> None:
    answer = uploaded(client, run=(name, content))
    assert answer.status_code == 422
    said = re.search(r'role="alert">.*?<li>(.*?)</li>', answer.text, re.DOTALL)
    assert said is not None and message in said[1] and "/tmp" not in said[1]


def test_audits_have_limits(service: Service, run: bytes) -> None:
    limits = Limits(audit_seconds=0.05, upload=1 << 20)
    with TestClient(make_app(service, limits=limits), base_url="http://localhost") as client:
        answer = uploaded(client, run=("a.run", run))
        assert answer.status_code == 503 and "longer than 0.05 seconds" in answer.text
        assert uploaded(client, run=("a.run", b"x" * (2 << 20))).status_code == 413


def test_the_twenty_last_reports_are_kept(service: Service, tmp_path: Path) -> None:
    auditor = Auditor(service, Limits())
    for number in range(22):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "report.html").write_text(f"report {number}")
        (folder / "run").write_text("what was sent")
        auditor._keep(str(number), folder)
    assert [auditor.report(str(number)) for number in (1, 2, 21)] == [None, "report 2", "report 21"]
    assert not (tmp_path / "1").exists() and not (tmp_path / "21" / "run").exists()


def test_reports_that_are_not_there(client: TestClient) -> None:
    answer = client.get("/audits/..%2f..%2fetc")
    assert answer.status_code == 404
    assert "gone" in client.get("/audits/abc").text


def test_the_reference_describes_every_operation_without_the_network(client: TestClient) -> None:
    page = client.get("/docs").text
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert "http" not in page.replace(str(client.base_url), "")
    assert "curl -s http://localhost:4711/" in client.get("/docs", headers={"host": "localhost:4711"}).text


def test_long_examples_are_cut_and_nothing_found_is_said_once(service: Service, client: TestClient) -> None:
    long = "how does a very long question about a job look " * 3
    app = make_app(Service(service.index, examples=[long, "nurse"]))
    with TestClient(app, base_url=str(client.base_url)) as other:
        page = other.get("/").text
    assert f'title="{long}"' in page and 'title="nurse"' not in page
    nothing = client.get("/?q=zzzzqqqq").text
    assert nothing.count("Nothing was found") == nothing.count('class="list"') == 2
