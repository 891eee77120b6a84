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
from evenrank.rankers.live.calls import Busy, Calls, Limits, QueryFailed, Stopped
from evenrank.rankers.live.ranker import Hit, LiveRanker


class Clock:
    """Time that passes only when someone rests."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rests: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


def calls(limits: Limits, clock: Clock, jitter: float = 0.0) -> Calls:
    return Calls(limits, clock=clock, jitter=lambda: jitter, sleep=clock.sleep)


class Flaky:
    """Fails so many times, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.asked = failures, error, 0

    def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return "answer"


def test_waits_double_from_one_attempt_to_the_next() -> None:
    clock = Clock()
    work = Flaky(3, Busy("down"))
    assert calls(Limits(retries=3, backoff=0.5), clock).call(work) == "answer"
    assert clock.rests == [0.5, 1.0, 2.0]


def test_a_wait_is_never_longer_than_half_a_minute() -> None:
    assert calls(Limits(), Clock()).pause(50) == 30


@given(attempt=st.integers(0, 12), jitter=st.floats(0, 1))
def test_chance_shortens_a_wait_by_at_most_half(attempt: int, jitter: float) -> None:
    longest = calls(Limits(), Clock()).pause(attempt)
    assert longest / 2 <= calls(Limits(), Clock(), jitter).pause(attempt) <= longest


def test_as_many_attempts_as_retries_and_one() -> None:
    work = Flaky(99, Busy("down"))
    with pytest.raises(QueryFailed, match=r"down \(asked 4 times\)"):
        calls(Limits(retries=3), Clock()).call(work)
    assert work.asked == 4


def test_no_retries_means_one_attempt() -> None:
    work = Flaky(99, Busy("down"))
    with pytest.raises(QueryFailed, match=r"asked 1 time\)"):
        calls(Limits(retries=0), Clock()).call(work)
    assert work.asked == 1


@pytest.mark.parametrize("error", [QueryFailed("no"), InputError("no")])
def test_what_will_not_get_better_is_not_asked_again(error: Exception) -> None:
    work = Flaky(1, error)
    with pytest.raises(type(error)):
        calls(Limits(), Clock()).call(work)
    assert work.asked == 1


def test_an_engine_that_asks_for_time_gets_it() -> None:
    clock = Clock()
    assert calls(Limits(), clock).call(Flaky(1, Busy("slow down", wait=7))) == "answer"
    assert clock.now == 7


def test_an_engine_that_asks_for_too_much_time_is_given_up() -> None:
    work = Flaky(1, Busy("slow down", wait=3600))
    with pytest.raises(QueryFailed, match="come back in 3600 seconds"):
        calls(Limits(), Clock()).call(work)
    assert work.asked == 1


def test_the_quiet_an_engine_asks_for_holds_for_all_threads() -> None:
    clock = Clock()
    both = calls(Limits(retries=0), clock)
    with pytest.raises(QueryFailed):
        both.call(Flaky(1, Busy("slow down")))
    both._hold(5)
    both.call(Flaky(0, Busy("")))
    assert clock.now == 5


def test_the_rate_holds_across_threads() -> None:
    times: list[float] = []
    asked = Calls(Limits(rate=50))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: asked.call(lambda: times.append(time.monotonic())), range(20)))
    assert max(times) - min(times) >= 19 / 50 - 0.005


def test_retries_count_toward_the_rate() -> None:
    clock = Clock()
    calls(Limits(rate=1, retries=3, backoff=0), clock).call(Flaky(3, Busy("down")))
    assert clock.now == 3


def test_who_waits_stops_waiting_when_the_work_is_called_off() -> None:
    asked = Calls(Limits(retries=1, backoff=30))
    threading.Timer(0.1, asked.stop).start()
    with pytest.raises(Stopped):  # and not Busy, after the second attempt
        asked.call(Flaky(9, Busy("down")))


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

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        self.asked.append(text)
        if "bad" in text:
            raise QueryFailed("cannot be answered")
        return [] if "none" in text else [Hit("d1", 2.0), Hit("d2", 1.0), Hit("d1", 0.5)]


def queries(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{at}" for at in range(len(texts))], "text": list(texts)})


def test_a_query_that_fails_is_named() -> None:
    with pytest.raises(InputError, match=r"query 'q1' failed: cannot be answered; on_error=skip"):
        LiveRanker(Scripted(), Limits()).rank(queries("ok", "bad"))


def test_failures_that_are_skipped_are_counted_and_told() -> None:
    ranker = LiveRanker(Scripted(), Limits(on_error="skip"))
    answers = ranker.ask(queries("ok", "bad", "none", "ok"))
    assert answers.failed == {"q1": "cannot be answered"}
    assert answers.empty == ("q2",)
    assert answers.run["query_id"].unique(maintain_order=True).to_list() == ["q0", "q3"]
    assert ranker.notes == (
        "1 query failed and left out, first q1: cannot be answered",
        "2 results dropped: the document stood above already",
    )


def test_notes_are_those_of_the_thread_that_asked() -> None:
    ranker = LiveRanker(Scripted(), Limits(on_error="skip"))
    both_asked = threading.Barrier(2)

    def notes(text: str) -> tuple[str, ...]:
        ranker.ask(queries(text, "none"))
        both_asked.wait()
        return ranker.notes

    with ThreadPoolExecutor(2) as threads:
        full, empty = threads.map(notes, ["ok", "none"])
    assert full == ("1 result dropped: the document stood above already",)
    assert empty == ()


def test_notes_of_a_run_before_are_gone_when_one_fails() -> None:
    ranker = LiveRanker(Scripted(), Limits(on_error="skip"))
    ranker.ask(queries("ok"))
    with pytest.raises(InputError, match="every query failed"):
        ranker.ask(queries("bad"))
    assert ranker.notes == ()


def test_if_every_query_fails_skipping_is_no_way_out() -> None:
    with pytest.raises(InputError, match="every query failed"):
        LiveRanker(Scripted(), Limits(on_error="skip")).rank(queries("bad", "bad"))


def test_an_engine_that_is_down_is_not_asked_a_thousand_times() -> None:
    engine = Scripted()
    with pytest.raises(InputError, match="in a row failed"):
        LiveRanker(engine, Limits(on_error="skip", workers=1)).rank(queries("ok", *["bad"] * 1000))
    assert len(engine.asked) < 100


def test_a_query_without_text_is_not_sent() -> None:
    engine = Scripted()
    answers = LiveRanker(engine, Limits()).ask(queries("", "  ", "ok"))
    assert engine.asked == ["ok"]
    assert answers.empty == ("q0", "q1")


def test_progress_ends_at_the_number_of_queries() -> None:
    seen: list[tuple[int, int | None]] = []
    LiveRanker(Scripted(), Limits()).rank(queries("", "ok", "ok"), progress=lambda *at: seen.append(at))
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


def test_no_result_at_all_is_an_empty_run() -> None:
    run = LiveRanker(Scripted(), Limits()).rank(queries("none"))
    assert run.is_empty()
    assert run.columns == ["query_id", "doc_id", "score", "rank"]


def test_depth_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="depth is 0"):
        LiveRanker(Scripted(), Limits()).rank(queries("ok"), depth=0)
