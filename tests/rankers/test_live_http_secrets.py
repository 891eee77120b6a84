"""Secrets reach the engine that they are meant for, and nobody else; redirections do not leak them."""

from __future__ import annotations

import json

import pytest
from live_server import RESULTS, Asked, Reply, ids, serving

from evenrank.errors import InputError
from evenrank.rankers.live import engine
from evenrank.rankers.live.secrets import hidden


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


def test_secrets_are_hidden_in_urls() -> None:
    url = "https://me:pw@host:1/p?q={query}&api_key=1&access_token=2&lang=en&password=3&sig=4#x"
    assert hidden(url) == "https://host:1/p?q={query}&api_key=…&access_token=…&lang=en&password=…&sig=…"
