"""Connections that threads take turns with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar


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
