"""A time limit that holds whatever the other side does: a socket's own begins anew with every byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def cut_after(seconds: float, lines: Callable[[], Iterable[socket.socket | int]]) -> Iterator[None]:
    """Shut these sockets, given as such or by file number, if the block takes longer: it reads an end."""

    def cut() -> None:
        for line in lines():
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
    try:
        yield
    finally:
        timer.cancel()
