"""How an engine is asked politely: time-outs, retries with back-off, a rate limit, connections in turn.

An engine tells three kinds of trouble apart by what it raises:

================= ============================================================================
`InputError`      nothing can work like this (no such index, wrong password): everything stops
`QueryFailed`     this one query cannot be answered, and asking again would not help
`Busy`            asking again later may help (429, 502, 503, 504, a time-out, a lost connection)
================= ============================================================================
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from evenrank.errors import InputError

LONGEST_WAIT = 60.0
"""Seconds beyond which waiting for an engine is a decision for people."""
_LONGEST_BACKOFF = 30.0

T = TypeVar("T")


class QueryFailed(Exception):  # noqa: N818 - reads as it is caught
    """One query got no answer."""


class Busy(QueryFailed):
    """One query got no answer, but might get one later; `wait` is what the engine asks for, in seconds."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class EngineDown(InputError):  # noqa: N818 - reads as it is caught
    """The engine does not answer now; asked as it is, it may do so another time."""


class Stopped(Exception):  # noqa: N818 - not an error: another query's failure ended the work
    """The work was called off."""


@dataclass(frozen=True)
class Limits:
    """What an engine may cost, in time and in requests.

    Parameters
    ----------
    timeout
        Seconds for one request, from the first byte sent to the last one read.
    retries
        How often a query is asked again where that may help.
    backoff
        Seconds before the first repetition; doubled each time, up to 30, and shortened by up to a half at
        random, so that many clients do not come back all at once.
    rate
        The most requests per second, repetitions included; no limit if None.
    workers
        Queries asked at the same time.
    on_error
        ``stop`` ends the work at the first query that fails; ``skip`` leaves it out, counts it and says so.
    """

    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    rate: float | None = None
    workers: int = 4
    on_error: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        # Above a day a time-out is a slip of the pen, and sockets refuse what they cannot count.
        if not 0 < self.timeout <= 86_400:
            raise InputError(f"timeout is {self.timeout:g}; it is in seconds, above 0 and up to 86400")
        if not 0 <= self.retries <= 100:
            raise InputError(f"retries is {self.retries}; it must be from 0 to 100")
        if not 0 <= self.backoff <= _LONGEST_BACKOFF:
            raise InputError(f"backoff is {self.backoff:g}; it must be from 0 to 30 seconds")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InputError(f"rate is {self.rate:g}; it must be above 0 requests per second")
        if not 1 <= self.workers <= 64:
            raise InputError(f"workers is {self.workers}; it must be from 1 to 64")
        if self.on_error not in ("stop", "skip"):
            raise InputError(f"on_error is {self.on_error!r}; it must be stop or skip")


class Calls:
    """The calls of one piece of work: all its threads share the rate and stop together.

    Parameters
    ----------
    limits
        What is allowed.
    clock, jitter
        The time in seconds, and a number from 0 to 1 at random; tests bring their own.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.limits = limits
        self._clock, self._jitter = clock, jitter
        self._sleep = sleep
        self._stopped = threading.Event()
        self._asking: set[int] = set()
        self._lock = threading.Lock()
        self._next = float("-inf")

    def stop(self) -> None:
        """Call the work off: whoever waits now stops waiting, also for an answer; nobody asks again."""
        self._stopped.set()
        threading.Thread(target=self._cut_all, daemon=True).start()

    def _cut_all(self) -> None:
        """End all requests under way, also those that are just being opened."""
        while self._asking:
            for thread in tuple(self._asking):
                if (cut := _CUTS.get(thread)) is not None:
                    cut()
            time.sleep(0.02)

    def call(self, work: Callable[[], T]) -> T:
        """What `work` returns, asked as often as it takes and is allowed."""
        for attempt in range(self.limits.retries + 1):
            me = threading.get_ident()
            self._asking.add(me)
            try:
                self._take_turn()
                return work()
            except Busy as busy:
                trouble = busy
            except QueryFailed:
                if self._stopped.is_set():  # the line was cut
                    raise Stopped from None
                raise
            finally:
                self._asking.discard(me)
            if trouble.wait is not None and trouble.wait > LONGEST_WAIT:
                raise QueryFailed(f"{trouble}; it asks to come back in {trouble.wait:.0f} seconds")
            if attempt < self.limits.retries:
                pause = self.pause(attempt)
                if trouble.wait is not None:
                    self._hold(trouble.wait)
                    pause = max(pause, trouble.wait)
                self._rest(pause)
        times = self.limits.retries + 1
        raise QueryFailed(f"{trouble} (asked {times} time{'s' * (times > 1)})") from trouble

    def pause(self, attempt: int) -> float:
        """Seconds between this attempt, counted from 0, and the next."""
        longest = min(self.limits.backoff * 2**attempt, _LONGEST_BACKOFF)
        return longest * (1 - self._jitter() / 2)

    def _take_turn(self) -> None:
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + (1 / self.limits.rate if self.limits.rate else 0)
        self._rest(turn - now)

    def _hold(self, seconds: float) -> None:
        """The engine wants quiet: that holds for every thread, not only for the one that was told."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)

    def _rest(self, seconds: float) -> None:
        if seconds > 0 and self._sleep is not None:
            self._sleep(seconds)
        elif seconds > 0:
            self._stopped.wait(seconds)
        if self._stopped.is_set():
            raise Stopped


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """As many connections as there are threads at work at the same time, opened when first needed."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._idle: list[C] = []
        self._lock = threading.Lock()

    @contextmanager
    def connection(self) -> Iterator[C]:
        """One connection for one thread; after an exception it is closed rather than used again."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        connection = self._connect() if idle is None else idle
        try:
            yield connection
        except BaseException:
            with suppress(Exception):
                connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle; the pool can be used again and then opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(Exception):
                connection.close()


_CUTS: dict[int, Callable[[], None]] = {}
"""By thread, what ends the request that it waits for."""


@contextmanager
def cut_after(seconds: float, lines: Callable[[], Iterable[socket.socket | int]]) -> Iterator[None]:
    """Shut these sockets, given as such or by file number, if the block takes longer: it reads an end."""

    def cut() -> None:
        rows: list[socket.socket | int] = []
        with suppress(Exception):  # a line may be lost already
            rows = list(lines())
        for line in rows:
            with suppress(OSError):
                if isinstance(line, int):
                    with socket.socket(fileno=socket.dup(line)) as copy:
                        copy.shutdown(socket.SHUT_RDWR)
                else:
                    # Not the method of an encrypted one, which would change it under the reader's hands.
                    socket.socket.shutdown(line, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    _CUTS[threading.get_ident()] = cut
    try:
        yield
    finally:
        _CUTS.pop(threading.get_ident(), None)
        timer.cancel()
