"""Two ways of doing the same, timed in turns; medians, because single timings vary by half."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

REPEATS = 5


class Row(NamedTuple):
    """A line of the table."""

    what: str
    peer: str
    must: float  # the ratio (or the bound) it must reach
    reached: float
    unit: str  # "×": peer's time over ours; else ours must not be above
    details: dict[str, Any]

    @property
    def passed(self) -> bool:
        return self.reached >= self.must if self.unit == "×" else self.reached <= self.must


def peak_memory() -> int:
    """The most memory that this process has held, in MB; `ru_maxrss` begins with what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def both(function: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of wall-clock and of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - processor


def against(
    what: str, peer_name: str, must: float, peer: Callable[[], Any], ours: Callable[[], Any], **details: Any
) -> Row:
    """Ours and the peer's in turns, after one call of ours to compile; the ratio of the medians.

    The ratio of processor time stands beside it: it shows what several threads of ours have gained, and on a
    busy machine what they could have.
    """
    ours()
    times = [(*both(peer), *both(ours)) for _ in range(REPEATS)]
    theirs, their_processor, own, own_processor = (
        statistics.median(column) for column in zip(*times, strict=True)
    )
    details |= {
        "peer_seconds": round(theirs, 4),
        "seconds": round(own, 4),
        "ratios": [round(their / our, 1) for their, _, our, _ in times],
        "ratio of processor time": round(their_processor / own_processor, 1),
        "load": round(os.getloadavg()[0], 1),
    }
    return Row(what, peer_name, must, round(theirs / own, 1), "×", details)
