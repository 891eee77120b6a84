"""Secrets reach the engine that they are meant for, and nobody else; redirections do not leak them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from json_server import RESULTS, Reply, ids, serving

from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.rankers.remote import engine
from evenrank.rankers.remote.secrets import hidden


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


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


def test_a_redirection_to_a_file_is_refused() -> None:
    with (
        serving(lambda _: Reply(None, 302, {"Location": "file:///etc/passwd"})) as site,
        pytest.raises(InputError, match="redirects to"),
    ):
        ids(f"{site.url}/?q={{query}}")


def test_secrets_are_hidden_in_urls() -> None:
    url = "https://me:pw@host:1/p?q={query}&api_key=1&access_token=2&lang=en&password=3&sig=4#x"
    assert hidden(url) == "https://host:1/p?q={query}&api_key=…&access_token=…&lang=en&password=…&sig=…"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:t0p/s3cret@host/?q={query}",
        "http://me:t0p?s3cret@host/?q={query}",
        "http://me:t0p#s3cret@host/?q={query}",
        "elasticsearch://me:t0p#s3cret@host:9200/index",
    ],
)
def test_a_password_with_marks_of_a_url_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(InputError, match="check host and port") as error:
        engine(url)
    for shown in (str(error.value), hidden(url)):
        assert "s3cret" not in shown and "t0p" not in shown


def test_a_password_that_looks_like_a_port_is_not_shown_either() -> None:
    """`me:123/x@host` may be a host called me: it is asked, and nobody is told what stands before the @."""
    assert hidden("http://me:123/s3cret@host/?q={query}") == "http://…@host/?q={query}"


def test_addresses_that_only_look_alike_are_taken() -> None:
    engine("http://host:8080/users/@me?q={query}&mail=a@b")
    engine("http://[::1]:9/?q={query}&mail=a@b")
    assert hidden("sqlite:///folder/a@b.db?table=docs") == "sqlite:///folder/a@b.db?table=docs"


@pytest.mark.parametrize(
    "name", ["code", "pw", "jwt", "sas", "x-jwt-x", "api_key", "sig", "sid", "access_token"]
)
def test_parameters_that_are_keys_are_hidden(name: str) -> None:
    assert hidden(f"https://host/?q={{query}}&{name}=t0ps3cret") == f"https://host/?q={{query}}&{name}=…"
    with pytest.raises(InputError, match="looks like a secret"):
        engine("https://host/?q={query}", **{f"param.{name}": "t0ps3cret"})


def test_parameters_that_are_no_keys_are_shown() -> None:
    for name in ("country_code", "q", "lang", "decode", "pwned", "sasquatch", "design"):
        assert hidden(f"https://host/?{name}=x") == f"https://host/?{name}=x"


BODY = '{"query": "{query}", "api_key": "env:TOKEN", "list": ["Bearer env:TOKEN"]}'


def test_a_body_takes_keys_from_the_environment_and_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0p/s3cret")
    with serving(lambda _: Reply(RESULTS)) as site:
        ranker = engine(f"{site.url}/", body=BODY)
        ranker.rank({"q": "x"})
    assert site.asked[0].body["api_key"] == "t0p/s3cret"
    assert site.asked[0].body["list"] == ["Bearer t0p/s3cret"]
    shown = json.dumps(ranker.describe())
    assert "t0p/s3cret" not in shown and "env:TOKEN" in shown
    monkeypatch.delenv("TOKEN")
    with pytest.raises(InputError, match="api_key: the environment variable TOKEN is not set"):
        engine("http://host/", body=BODY)


ECHOES = [
    lambda key: Reply({"error": f"bad key {key}"}, 400),
    lambda key: Reply({"error": {"deep": [f"{'x' * 150}{key}{key}"]}}, 418),
    lambda key: Reply(f"you sent {key}".encode()),
    lambda key: Reply({"results": {"key": key}}),
    lambda key: Reply({key: 1}),
    lambda key: Reply(None, 302, {"Location": f"https://elsewhere.invalid/{key}"}),
    lambda key: Reply({"results": [{"id": key, "text": key, "title": f"a {key}", "rank": key}]}),
]


@pytest.mark.parametrize("number", range(len(ECHOES)))
def test_an_engine_that_echoes_its_key_does_not_spread_it(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not to the terminal, not to the run, not to the monitor's file and its page."""
    key = 't0p/s3"cr\u00e9t&<'
    monkeypatch.setenv("TOKEN", key)
    (tmp_path / "q.tsv").write_text("q1\tnurse\n")
    with serving(lambda _: ECHOES[number](key)) as site:
        given = ["--engine", f"{site.url}/?q={{query}}", "--queries", str(tmp_path / "q.tsv")]
        given += ["--set", "param.code=env:TOKEN", "--set", "retries=0"]
        searched = main(["search", *given, "-o", str(tmp_path / "out.run"), "--debug"])
        page = ["--db", str(tmp_path / "bias.db"), "--once", "--page", str(tmp_path / "page.html")]
        watched = main(["monitor", *given, *page])
    assert site.asked[0].parameters["code"] == [key]
    assert searched == watched == (0 if number == len(ECHOES) - 1 else 2)
    said = capsys.readouterr()
    written = [file.read_bytes() for file in tmp_path.iterdir()]
    for part in ('s3"cr', 's3\\"cr', "cr\u00e9t", "t0p", "s3&quot;", "s3&#34;"):
        assert part not in said.out + said.err
        assert not any(part.encode() in each for each in written)
