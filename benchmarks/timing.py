"""Two ways of doing the same, timed in turns; medians, because single timings vary by half."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
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


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def against(
    what: str, peer_name: str, must: float, peer: Callable[[], Any], ours: Callable[[], Any], **details: Any
) -> Row:
    """Ours and the peer's in turns, after one call of ours to compile; the ratio of the medians."""
    ours()
    times = [(seconds(peer), seconds(ours)) for _ in range(REPEATS)]
    theirs, own = (statistics.median(column) for column in zip(*times, strict=True))
    spread = [round(their / our, 1) for their, our in times]
    details |= {"peer_seconds": round(theirs, 4), "seconds": round(own, 4), "ratios": spread}
    return Row(what, peer_name, must, round(theirs / own, 1), "×", details)
