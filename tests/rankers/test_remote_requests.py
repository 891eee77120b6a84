"""Time-outs, retries, rates: how engines are asked."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.rankers.remote import engine
from evenrank.rankers.remote.ranker import Hit, RemoteRanker, Send
from evenrank.rankers.remote.requests import Limits, QueryFailed, Requests, Stopped, Unavailable

FAST = {"backoff": 0.01}


class Flaky:
    """Fails so many times, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.asked = failures, error, 0

    def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return "answer"


@given(attempt=st.integers(0, 50))
def test_pauses_double_up_to_half_a_minute_and_chance_halves_them_at_most(attempt: int) -> None:
    longest = min(0.5 * 2**attempt, 30)
    assert longest / 2 <= Requests(Limits(backoff=0.5)).pause(attempt) <= longest


def test_an_engine_that_recovers_is_asked_until_it_does() -> None:
    work = Flaky(3, Unavailable("down"))
    assert Requests(Limits(retries=3, **FAST)).send(work) == "answer"
    assert work.asked == 4


def test_as_many_attempts_as_retries_and_one() -> None:
    work = Flaky(99, Unavailable("down"))
    with pytest.raises(QueryFailed, match=r"down \(asked 4 times\)"):
        Requests(Limits(retries=3, **FAST)).send(work)
    assert work.asked == 4


def test_no_retries_means_one_attempt() -> None:
    work = Flaky(99, Unavailable("down"))
    with pytest.raises(QueryFailed, match=r"asked 1 time\)"):
        Requests(Limits(retries=0)).send(work)
    assert work.asked == 1


@pytest.mark.parametrize("error", [QueryFailed("no"), InputError("no")])
def test_what_will_not_get_better_is_not_asked_again(error: Exception) -> None:
    work = Flaky(1, error)
    with pytest.raises(type(error)):
        Requests(Limits()).send(work)
    assert work.asked == 1


def test_an_engine_that_asks_for_time_gets_it() -> None:
    start = time.monotonic()
    assert Requests(Limits(**FAST)).send(Flaky(1, Unavailable("slow down", wait=0.3))) == "answer"
    assert time.monotonic() - start >= 0.3


def test_an_engine_that_asks_for_too_much_time_is_given_up() -> None:
    work = Flaky(1, Unavailable("slow down", wait=3600))
    with pytest.raises(QueryFailed, match="come back in 3600 seconds"):
        Requests(Limits()).send(work)
    assert work.asked == 1


def test_the_wait_an_engine_asks_for_holds_for_all_threads() -> None:
    requests = Requests(Limits(**FAST))
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(requests.send, Flaky(1, Unavailable("slow down", wait=0.4)))
        time.sleep(0.1)
        start = time.monotonic()
        requests.send(Flaky(0, Unavailable("")))
        assert time.monotonic() - start >= 0.2
        assert first.result() == "answer"


def test_the_rate_holds_across_threads() -> None:
    times: list[float] = []
    requests = Requests(Limits(rate=50))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: requests.send(lambda: times.append(time.monotonic())), range(20)))
    assert max(times) - min(times) >= 19 / 50 - 0.005


def test_retries_count_toward_the_rate() -> None:
    start = time.monotonic()
    Requests(Limits(rate=20, retries=3, backoff=0)).send(Flaky(3, Unavailable("down")))
    assert time.monotonic() - start >= 3 / 20


def test_who_waits_stops_waiting_when_the_work_is_stopped() -> None:
    requests = Requests(Limits(retries=1, backoff=30))
    threading.Timer(0.1, requests.stop).start()
    with pytest.raises(Stopped):  # and not Unavailable, after the second attempt
        requests.send(Flaky(9, Unavailable("down")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": 0}, {"timeout": float("nan")}, {"timeout": 1e9}, {"retries": -1}, {"backoff": -1},
        {"rate": 0}, {"workers": 0}, {"workers": 1000}, {"on_error": "ignore"},
    ],
    ids=str,
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]


class Scripted:
    """An engine that answers what the query says: `ok`, `bad` or `busy`."""

    name = "scripted"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def prepare(self) -> None: ...

    def close(self) -> None: ...

    def describe(self) -> dict[str, str]:
        return {}

    def search(self, text: str, depth: int, send: Send) -> list[Hit]:
        self.asked.append(text)
        if "bad" in text:
            raise QueryFailed("cannot be answered")
        return [] if "none" in text else [Hit("d1", 2.0), Hit("d2", 1.0), Hit("d1", 0.5)]


def queries(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{at}" for at in range(len(texts))], "text": list(texts)})


def test_a_query_that_fails_is_named() -> None:
    with pytest.raises(InputError, match=r"query 'q1' failed: cannot be answered; on_error=skip"):
        RemoteRanker(Scripted(), Limits()).rank(queries("ok", "bad"))


def test_failures_that_are_skipped_are_counted_and_told() -> None:
    ranker = RemoteRanker(Scripted(), Limits(on_error="skip"))
    answers = ranker.search(queries("ok", "bad", "none", "ok"))
    assert answers.failed == {"q1": "cannot be answered"}
    assert answers.empty == ("q2",)
    assert answers.run["query_id"].unique(maintain_order=True).to_list() == ["q0", "q3"]
    assert ranker.notes == (
        "1 query failed and left out, first q1: cannot be answered",
        "2 results dropped: the document stood above already",
    )


def test_notes_are_those_of_the_thread_that_asked() -> None:
    ranker = RemoteRanker(Scripted(), Limits(on_error="skip"))
    both_asked = threading.Barrier(2)

    def notes(text: str) -> tuple[str, ...]:
        ranker.search(queries(text, "none"))
        both_asked.wait()
        return ranker.notes

    with ThreadPoolExecutor(2) as threads:
        full, empty = threads.map(notes, ["ok", "none"])
    assert full == ("1 result dropped: the document stood above already",)
    assert empty == ("no query had a result; check the settings of the engine",)


def test_notes_of_a_run_before_are_gone_when_one_fails() -> None:
    ranker = RemoteRanker(Scripted(), Limits(on_error="skip"))
    ranker.search(queries("ok"))
    with pytest.raises(InputError, match="every query failed"):
        ranker.search(queries("bad"))
    assert ranker.notes == ()


def test_if_every_query_fails_skipping_is_no_way_out() -> None:
    with pytest.raises(InputError, match="every query failed"):
        RemoteRanker(Scripted(), Limits(on_error="skip")).rank(queries("bad", "bad"))


def test_an_engine_that_is_down_is_not_asked_a_thousand_times() -> None:
    engine = Scripted()
    with pytest.raises(InputError, match="in a row failed"):
        RemoteRanker(engine, Limits(on_error="skip", workers=1)).rank(queries("ok", *["bad"] * 1000))
    assert len(engine.asked) < 100


def test_a_query_without_text_is_not_sent() -> None:
    engine = Scripted()
    answers = RemoteRanker(engine, Limits()).search(queries("", "  ", "ok"))
    assert engine.asked == ["ok"]
    assert answers.empty == ("q0", "q1")


def test_any_function_is_an_engine() -> None:
    ids = engine(lambda query: ["d2", "d1"]).rank({"q": "nurse"})
    assert ids["doc_id"].to_list() == ["d2", "d1"]
    deep = engine(lambda query, k: [(f"d{n}", float(-n), query) for n in range(2 * k)]).search(
        {"q": "x"}, depth=3
    )
    assert deep.frame.select("doc_id", "score", "text").rows() == [
        ("d0", 0.0, "x"),
        ("d1", -1.0, "x"),
        ("d2", -2.0, "x"),
    ]
    shown = engine(lambda query: [{"id": 7, "score": "2.5", "content": "", "text": "a nurse"}]).search(
        {"q": "x"}
    )
    assert shown.frame.select("doc_id", "score", "text").rows() == [("7", 2.5, "a nurse")]


@pytest.mark.parametrize("answer", [None, "d1", 3, {"id": "d1"}])
def test_a_function_that_returns_no_list_is_described(answer: object) -> None:
    with pytest.raises(InputError, match="expected a list of results"):
        engine(lambda query: answer).rank({"q": "nurse"})


def test_progress_ends_at_the_number_of_queries() -> None:
    seen: list[tuple[int, int | None]] = []
    RemoteRanker(Scripted(), Limits()).rank(queries("", "ok", "ok"), progress=lambda *at: seen.append(at))
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


def test_no_result_at_all_is_an_empty_run() -> None:
    run = RemoteRanker(Scripted(), Limits()).rank(queries("none"))
    assert run.is_empty()
    assert run.columns == ["query_id", "doc_id", "score", "rank"]


def test_depth_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="depth is 0"):
        RemoteRanker(Scripted(), Limits()).rank(queries("ok"), depth=0)
