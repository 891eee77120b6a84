"""Any engine that answers with JSON, as a ranker; asked over real sockets."""

from __future__ import annotations

import contextlib
import email.utils
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_server import Asked, Reply, serving

from evenrank.errors import InputError
from evenrank.rankers.live import engine, web
from evenrank.rankers.live.json_paths import MISSING, at, fill
from evenrank.rankers.live.secrets import hidden
from evenrank.rankers.live.web import retry_after

RESULTS = {
    "results": [{"id": "a", "score": 2.5, "title": "T", "text": "x"}, {"id": "b", "score": 1, "text": "y"}]
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def ids(url: str, asked: str = "nurse", /, **given: Any) -> list[str]:
    return engine(url, **{"backoff": 0.01, **given}).rank({"q": asked}, depth=10)["doc_id"].to_list()


def test_query_and_depth_are_filled_into_the_url() -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        shown = engine(f"{site.url}/search?q={{query}}&n={{depth}}").results({"q": "a nurse"}, depth=7)
    assert site.asked[0].parameters == {"q": ["a nurse"], "n": ["7"]}
    assert shown.rows() == [("q", "a", 1, 2.5, "T", "x"), ("q", "b", 2, 1.0, None, "y")]


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))
@settings(deadline=None, max_examples=50)
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
        shown = engine(f"{site.url}/?q={{query}}", **mapping).results({"q": "x"})
    assert shown.rows() == [("q", "7", 1, 3.5, "H", "one two")]


def test_a_list_of_ids_is_a_ranking() -> None:
    with serving(lambda _: Reply(["b", "a", 3])) as site:
        run = engine(f"{site.url}/?q={{query}}").rank({"q": "x"})
    assert run.select("doc_id", "score").rows() == [("b", -1.0), ("a", -2.0), ("3", -3.0)]


def test_ranks_that_are_given_are_obeyed() -> None:
    items = [{"id": "b", "pos": 2}, {"id": "a", "pos": "1"}, {"id": "c", "pos": 3}]
    with serving(lambda _: Reply({"results": items})) as site:
        assert ids(f"{site.url}/?q={{query}}", rank="pos") == ["a", "b", "c"]


def test_scores_that_rise_along_the_list_do_not_turn_it_around() -> None:
    items = [{"id": "a", "score": 1}, {"id": "b", "score": 9}]
    with serving(lambda _: Reply(items)) as site:
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]


@pytest.mark.parametrize(
    "template",
    ["?q={query}&start={offset}&n={depth}", "?q={query}&p={page}", "body"],
    ids=["offset", "page", "body"],
)
def test_an_engine_may_answer_page_by_page(template: str) -> None:
    everything = [{"id": f"d{at}"} for at in range(23)]

    def answer(asked: Asked) -> Reply:
        given = asked.body or {name: values[0] for name, values in asked.parameters.items()}
        start = int(given["start"]) if "start" in given else 10 * (int(given["p"]) - 1)
        return Reply(everything[start : start + 10])

    own = {"body": '{"q": "{query}", "start": "{offset}"}'} if template == "body" else {}
    with serving(answer) as site:
        ranker = engine(f"{site.url}/{'' if own else template}", page_size=10, **own)
        assert ranker.rank({"q": "x"}, depth=100)["doc_id"].to_list() == [each["id"] for each in everything]
        assert len(site.asked) == 3
        assert len(ranker.rank({"q": "x"}, depth=15)) == 15
        assert len(site.asked) == 5


def test_pages_are_requests_to_the_rate_limit() -> None:
    with serving(lambda _: Reply([{"id": f"{len(site.asked)}"}])) as site:
        engine(f"{site.url}/?q={{query}}&p={{page}}", page_size=1, rate=20).rank({"q": "x"}, depth=5)
    assert site.asked[-1].at - site.asked[0].at >= 4 / 20 - 0.05


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
        serving(lambda _: Reply(b" " * 1_000_000)) as site,
        pytest.raises(InputError, match="larger than 1,000 bytes"),
    ):
        ids(f"{site.url}/?q={{query}}", max_bytes=1000)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_engine_is_asked_again(status: int) -> None:
    with serving(lambda _: Reply(RESULTS) if len(site.asked) == 3 else Reply("later", status)) as site:
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]
    assert len(site.asked) == 3


def test_a_busy_engine_is_not_asked_for_ever() -> None:
    with serving(lambda _: Reply("later", 503)) as site, pytest.raises(InputError) as error:
        ids(f"{site.url}/?q={{query}}", retries=2)
    assert "query 'q' failed" in str(error.value)
    assert "answers 503 (asked 3 times)" in str(error.value)
    assert len(site.asked) == 3


def test_retry_after_is_honoured() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(RESULTS) if len(site.asked) > 1 else Reply("later", 429, {"Retry-After": "1"})

    with serving(answer) as site:
        ids(f"{site.url}/?q={{query}}")
    assert site.asked[1].at - site.asked[0].at >= 1


def test_retry_after_may_be_a_date() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert retry_after({"Retry-After": date}) == pytest.approx(30, abs=2)
    assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0
    assert retry_after({"Retry-After": "soon"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "reply", [Reply(RESULTS, delay=5), Reply(RESULTS, drip=0.05)], ids=["silent", "drip"]
)
def test_time_outs_really_time_out(reply: Reply) -> None:
    start = time.monotonic()
    with serving(lambda _: reply) as site, pytest.raises(InputError, match=r"no answer within 0\.3 seconds"):
        ids(f"{site.url}/?q={{query}}", timeout=0.3, retries=0)
    assert time.monotonic() - start < 3


def test_headers_in_drops_time_out_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            with line, contextlib.suppress(OSError):
                line.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                for _ in range(200):
                    line.sendall(b"z")
                    time.sleep(0.05)

        threading.Thread(target=serve, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(InputError, match=r"no answer within 0\.3 seconds"):
            ids(f"http://127.0.0.1:{server.getsockname()[1]}/?q={{query}}", timeout=0.3, retries=0)
    assert time.monotonic() - start < 3


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl, to make a certificate")
    both, key = tmp_path / "both.pem", tmp_path / "key.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", both], check=True, capture_output=True)
    both.write_text(both.read_text() + key.read_text())
    web._trusted.cache_clear()
    with serving(lambda _: Reply(RESULTS), certificate=both) as site:
        with pytest.raises(InputError, match="its certificate is not trusted"):
            ids(f"{site.url}/?q={{query}}")
        assert not site.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(both))
        web._trusted.cache_clear()
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]
    web._trusted.cache_clear()
    with (
        serving(lambda _: Reply(RESULTS, drip=0.05), certificate=both) as site,
        pytest.raises(InputError, match=r"no answer within 0\.5 seconds"),
    ):
        ids(f"{site.url}/?q={{query}}", timeout=0.5, retries=0)
    web._trusted.cache_clear()


def test_an_engine_that_is_not_there_is_asked_again_and_then_given_up() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=r"no connection \(.*refused\) \(asked 2 times\)"):
        ids(f"http://127.0.0.1:{port}/?q={{query}}", retries=1)


def test_a_connection_that_breaks_is_made_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = []

        def serve() -> None:
            for at in range(2):
                line, _ = server.accept()
                with line:
                    asked.append(line.recv(65536))
                    if at:
                        body = json.dumps(RESULTS).encode()
                        line.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                    else:
                        line.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 999\r\n\r\n{")

        thread = threading.Thread(target=serve)
        thread.start()
        assert ids(f"http://127.0.0.1:{server.getsockname()[1]}/?q={{query}}") == ["a", "b"]
        thread.join()
    assert len(asked) == 2


def test_the_rate_holds_over_real_requests() -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        engine(f"{site.url}/?q={{query}}", rate=20, workers=4).rank({str(at): "x" for at in range(10)})
    times = sorted(asked.at for asked in site.asked)
    assert times[-1] - times[0] >= 9 / 20 - 0.05


def test_workers_ask_at_the_same_time() -> None:
    with serving(lambda _: Reply(RESULTS, delay=0.3)) as site:
        start = time.monotonic()
        engine(f"{site.url}/?q={{query}}", workers=8).rank({str(at): "x" for at in range(8)})
    assert time.monotonic() - start < 8 * 0.3


def test_a_skipped_failure_leaves_the_other_queries() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply("bad", 400) if asked.parameters["q"] == ["bad"] else Reply(RESULTS)

    with serving(answer) as site:
        answers = engine(f"{site.url}/?q={{query}}", on_error="skip").ask({"1": "ok", "2": "bad", "3": "ok"})
    assert list(answers.failed) == ["2"]
    assert answers.run["query_id"].unique().sort().to_list() == ["1", "3"]


def test_a_secret_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ps3cret")
    with serving(lambda _: Reply(RESULTS)) as site:
        ranker = engine(
            f"{site.url}/?q={{query}}",
            **{"header.Authorization": "Bearer env:TOKEN", "header.X-Trace": "1", "param.key": "env:TOKEN"},
        )
        ranker.rank({"q": "x"})
    assert site.asked[0].headers["authorization"] == "Bearer t0ps3cret"
    assert site.asked[0].headers["x-trace"] == "1"
    assert site.asked[0].parameters["key"] == ["t0ps3cret"]
    assert "t0ps3cret" not in json.dumps(ranker.describe())
    assert ranker.describe()["header"] == ["Authorization", "X-Trace"]


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Cookie", "X-Auth-Token"])
def test_a_secret_on_the_command_line_is_refused(name: str) -> None:
    with pytest.raises(
        InputError, match=r"looks like a secret; put it into an environment variable"
    ) as error:
        engine("http://host/?q={query}", **{f"header.{name}": "t0ps3cret"})
    assert "t0ps3cret" not in str(error.value)


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    with pytest.raises(InputError, match="the environment variable TOKEN is not set"):
        engine("http://host/?q={query}", **{"header.Authorization": "env:TOKEN"})


def test_a_header_cannot_smuggle_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "a\r\nX-Evil: 1")
    with pytest.raises(InputError, match="line break"):
        engine("http://host/?q={query}", **{"header.Authorization": "env:TOKEN"})


def test_user_and_password_of_the_url_are_sent_and_not_shown() -> None:
    with serving(lambda _: Reply("no", 403)) as site, pytest.raises(InputError) as error:
        ids(f"http://me:t0p%3As3cret@{site.host}/?q={{query}}")
    assert site.asked[0].headers["authorization"] == "Basic bWU6dDBwOnMzY3JldA=="
    assert "s3cret" not in str(error.value)


def test_another_host_is_not_told_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ps3cret")
    secrets = {"header.Authorization": "env:TOKEN", "header.X-Api-Key": "env:TOKEN"}
    with (
        serving(lambda _: Reply(RESULTS)) as other,
        serving(lambda _: Reply(None, 302, {"Location": f"{other.url}/there"})) as site,
    ):
        assert ids(f"{site.url}/?q={{query}}", **secrets) == ["a", "b"]
    assert "t0ps3cret" in site.asked[0].headers.values()
    assert "t0ps3cret" not in other.asked[0].headers.values()


def test_the_same_host_may_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ps3cret")

    def answer(asked: Asked) -> Reply:
        return Reply(RESULTS) if asked.path == "/new" else Reply(None, 301, {"Location": "/new"})

    with serving(answer) as site:
        assert ids(f"{site.url}/?q={{query}}", **{"header.Authorization": "env:TOKEN"}) == ["a", "b"]
    assert site.asked[1].headers["authorization"] == "t0ps3cret"


def test_a_redirected_post_says_where_to() -> None:
    with (
        serving(lambda _: Reply(None, 307, {"Location": "https://me:pw@else.where/x"})) as site,
        pytest.raises(InputError, match=r"redirects to https://else.where/x \(307\); give that address"),
    ):
        ids(f"{site.url}/", body='["{query}"]')


def test_a_redirection_in_circles_ends() -> None:
    with serving(lambda _: Reply(None, 302, {"Location": "/"})) as site, pytest.raises(InputError):
        ids(f"{site.url}/?q={{query}}", retries=0)


def test_a_redirection_to_a_file_is_refused() -> None:
    with (
        serving(lambda _: Reply(None, 302, {"Location": "file:///etc/passwd"})) as site,
        pytest.raises(InputError, match="redirects to"),
    ):
        ids(f"{site.url}/?q={{query}}")


@pytest.mark.parametrize(
    ("url", "given", "why"),
    [
        ("http://host/?q=x", {}, "write {query} where the query belongs"),
        ("http://{query}/", {}, "the host cannot be filled in"),
        ("http:///x?q={query}", {}, "names no host"),
        ("http://host:port/?q={query}", {}, "check host and port"),
        ("http://host/?q={query}", {"body": "{query"}, "body is not JSON"),
        ("http://host/?q={query}", {"body": "@nothing.json"}, "nothing.json"),
        ("http://host/?q={query}", {"ids": "x"}, "unknown setting ids; did you mean id"),
        ("http://host/?q={query}", {"max_bytes": 0}, "max_bytes is 0"),
        ("http://host/?q={query}&p={page}", {"page_size": 0}, "page_size is 0"),
        ("http://host/?q={query}", {"page_size": 10}, "with page_size, write {offset} or {page}"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(url: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        engine(url, **given)


def test_secrets_are_hidden_in_urls() -> None:
    url = "https://me:pw@host:1/p?q={query}&api_key=1&access_token=2&lang=en&password=3&sig=4#x"
    assert hidden(url) == "https://host:1/p?q={query}&api_key=…&access_token=…&lang=en&password=…&sig=…"


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
    assert (at(value, "a.0.b"), at(value, "c.d.e"), at(value, "c.x"), at(value, "")) == (1, 2, 3, value)
    assert {at(value, path) for path in ("a.1", "a.b", "c.y", "z", "a.0.b.c")} == {MISSING}
