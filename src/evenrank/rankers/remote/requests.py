"""Limits for requests to a search engine: time-outs, retries with back-off, a rate, parallel requests.

An engine raises one of three errors:

================ =====================================================================
`InputError`     no query can work like this (no such index, wrong password): stop
`QueryFailed`    this query has no answer, and asking again would not help
`Unavailable`    asking again later may help (429, 502, 503, 504, a time-out)
================ =====================================================================
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from evenrank.errors import InputError, check_choice, check_number, check_whole

MAX_RETRY_AFTER = 60.0
"""Seconds beyond which a `Retry-After` is not waited for."""
_MAX_BACKOFF = 30.0

T = TypeVar("T")


class QueryFailed(Exception):  # noqa: N818
    """A query got no answer."""


class Unavailable(QueryFailed):
    """A query got no answer, but may get one later; `wait` is what the engine asks for, in seconds."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class EngineDown(InputError):  # noqa: N818
    """The engine does not answer now; the same request may succeed another time."""


class Stopped(Exception):  # noqa: N818
    """The work was stopped because another query failed."""


@dataclass(frozen=True)
class Limits:
    """Limits for requests to an engine.

    Parameters
    ----------
    timeout
        Seconds for one request.
    retries
        How often a query is repeated where that may help.
    backoff
        Seconds before the first repetition; doubled each time, up to 30, and shortened by up to a half at
        random, so that many clients do not come back at once.
    rate
        The most requests per second, repetitions included; no limit if None.
    workers
        Queries at the same time.
    on_error
        ``stop`` ends the work at the first query that fails; ``skip`` leaves it out and counts it.
    """

    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    rate: float | None = None
    workers: int = 4
    on_error: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        check_number("timeout", self.timeout, most=86_400)
        if self.timeout == 0:
            raise InputError("timeout is 0; it is in seconds, above 0")
        check_whole("retries", self.retries, least=0, most=100)
        check_number("backoff", self.backoff, most=_MAX_BACKOFF)
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InputError(f"rate is {self.rate:g}; it must be above 0 requests per second")
        check_whole("workers", self.workers, most=64)
        check_choice("on_error", self.on_error, ("stop", "skip"))


class Requests:
    """The requests of one search: all its threads share the rate and stop together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._next = 0.0

    def stop(self) -> None:
        """Stop all threads that wait for their turn; nothing is requested any more."""
        self._stopped.set()

    def send(self, request: Callable[[], T]) -> T:
        """Return what `request` returns, repeated as often as it takes and is allowed."""
        for attempt in range(self.limits.retries + 1):
            self._wait_for_turn()
            try:
                return request()
            except Unavailable as error:
                trouble = error
            if trouble.wait is not None and trouble.wait > MAX_RETRY_AFTER:
                raise QueryFailed(f"{trouble}; it asks to come back in {trouble.wait:.0f} seconds")
            if attempt < self.limits.retries:
                self._hold(trouble.wait or 0.0)
                self._sleep(max(self.pause(attempt), trouble.wait or 0.0))
        times = self.limits.retries + 1
        raise QueryFailed(f"{trouble} (asked {times} time{'s' * (times > 1)})") from trouble

    def pause(self, attempt: int) -> float:
        """Return the seconds between this attempt, counted from 0, and the next."""
        longest = min(self.limits.backoff * 2**attempt, _MAX_BACKOFF)
        return longest * (1 - random.random() / 2)

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + (1 / self.limits.rate if self.limits.rate else 0)
        self._sleep(turn - now)

    def _hold(self, seconds: float) -> None:
        """Let no thread request anything for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._stopped.wait(seconds)
        if self._stopped.is_set():
            raise Stopped
