"""Has what a monitor watches changed? One answer for each measure of each source, that bears daily looks.

The unit is the look: its mean change over a fixed panel of queries, each against its own mean over the
baseline. `evenrank.server.sequences` says when that is more than chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evenrank.errors import InputError
from evenrank.server.monitor import Store
from evenrank.server.sequences import BASELINE, Change, change, check_plan, paired_changes
from evenrank.show.numbers import level, number
from evenrank.stats.equivalence import ALPHA
from evenrank.stats.intervals import ROUNDING, Floats


@dataclass(frozen=True)
class Judging:
    """How changes are judged; to be settled before the first look.

    Parameters
    ----------
    baseline
        Looks before the first comparison.
    alpha
        The probability of any alarm while nothing changes, for all measures and sources of a file together.
    new_queries
        The queries are other ones at each look: means are compared, not the same queries.
    since
        Looks before this time (2026-01-31, or with hours as in the history) do not count: a new baseline.
    """

    baseline: int = BASELINE
    alpha: float = ALPHA
    new_queries: bool = False
    since: str | None = None

    def __post_init__(self) -> None:
        check_plan(self.baseline, self.alpha)
        self.begin  # noqa: B018  says at once if the time cannot be read

    @property
    def begin(self) -> datetime:
        """The time of the first look that counts; a time without a zone is in UTC, as the history is."""
        if self.since is None:
            return datetime.min.replace(tzinfo=UTC)
        try:
            found = datetime.fromisoformat(self.since)
        except ValueError:
            raise InputError(
                f"the time {self.since!r} cannot be read; write 2026-01-31 or 2026-01-31T12:00:00Z"
            ) from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Judged:
    """One measure of one source, judged at its last look.

    Attributes
    ----------
    series
        How many measures of how many sources share α.
    paired
        The looks are compared query by query; else by their values.
    time
        When the alarm was raised.
    """

    source: str
    measure: str
    change: Change
    series: int
    paired: bool
    judging: Judging
    time: str | None = None
    problem: str | None = None

    @property
    def alarm(self) -> bool:
        return self.change.alarm is not None

    def sentence(self) -> str:
        """What is known, in one sentence."""
        return f"{self.measure}: {self.finding()}"

    def finding(self) -> str:
        """The sentence without its subject."""
        found = self.change
        if self.problem is not None:
            return f"not judged ({self.problem})."
        if not found.judged:
            begun = found.looks > found.baseline
            why = "an interval needs more" if begun else f"the first {found.baseline} are the baseline"
            return f"not judged ({_looks(found.looks)}; {why})."
        assert found.cut is not None and found.until is not None
        later, were = _range(found.cut + 1, found.until)
        earlier, _ = _range(1, found.cut)
        between = "" if found.low is None else f" [{_signed(found.low)}, {_signed(found.high)}]"
        size = f"{_signed(found.difference)}{between}"
        if found.alarm is None:
            return f"no alarm in {_looks(found.looks)}; {later} against {earlier}: {size}."
        way = "higher" if (found.difference or 0) > 0 else "lower"
        return (
            f"changed. At look {found.alarm} of {found.looks} ({self.time}) {later} {were} {way} than "
            f"{earlier}, beyond chance: {size}."
        )

    def to_dict(self) -> dict[str, Any]:
        found = self.change
        return {
            "source": self.source,
            "measure": self.measure,
            "judged": found.judged,
            "looks": found.looks,
            "baseline": found.baseline,
            "paired": self.paired,
            "alarm": None if found.alarm is None else {"look": found.alarm, "time": self.time},
            "cut": found.cut,
            "until": found.until,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "correlation": found.correlation,
            "alpha": found.alpha,
            "sentence": self.sentence(),
        }


def meaning(judging: Judging, series: int) -> str:
    """What an alarm means, in one sentence."""
    shared = "" if series == 1 else f", shared over {series} series"
    return (
        "An alarm says that the mean of the looks has changed: while nothing changes, at most about "
        f"{level(judging.alpha)} of such monitors ever raise one, however often they look "
        f"(α = {judging.alpha:g}{shared}; looks may depend on each other, if that fades within a few looks, "
        "and none may stand out enormously)."
    )


def told(judged: Sequence[Judged]) -> list[str]:
    """The sentences of what raised no alarm; measures of which the same is known are told together."""
    together: dict[str, list[str]] = {}
    for one in judged:
        if not one.alarm:
            together.setdefault(one.finding(), []).append(one.measure)
    return [f"{', '.join(names)}: {finding}" for finding, names in together.items()]


def changes(store: Store, judging: Judging | None = None) -> list[Judged]:
    """Every measure of every source in the file, judged; sources in the order in which they came."""
    judging = judging or Judging()
    begin = judging.begin
    history = [
        (number, seen)
        for number, seen in store.numbered()
        if seen.problem is None and (judging.since is None or datetime.fromisoformat(seen.time) >= begin)
    ]
    series: dict[tuple[str, str], list[tuple[int, str, float]]] = {}
    for number_, seen in history:
        for value in seen.values:
            looks = series.setdefault((seen.source, value.measure), [])
            if value.value is not None:
                looks.append((number_, seen.time, value.value))
    found = []
    for (source, measure), looks in series.items():
        found.append(_judged(store, source, measure, looks, judging, len(series)))
    return found


def _judged(
    store: Store,
    source: str,
    measure: str,
    looks: Sequence[tuple[int, str, float]],
    judging: Judging,
    series: int,
) -> Judged:
    alpha = judging.alpha / series
    empty = Change(len(looks), judging.baseline, alpha)
    if len(looks) <= judging.baseline:
        return Judged(source, measure, empty, series, not judging.new_queries, judging)
    values = np.array([value for _, _, value in looks])
    paired = False
    if not judging.new_queries:
        panel = _panel(store.query_values(measure), [number_ for number_, _, _ in looks])
        paired = _is_mean(panel, values)
        if paired:
            values = paired_changes(panel, judging.baseline)
            if not np.isfinite(values).all():
                problem = (
                    "looks without any query of the baseline; say --new-queries if they are new each time"
                )
                return Judged(source, measure, empty, series, True, judging, problem=problem)
    seen = change(values, baseline=judging.baseline, alpha=alpha)
    time = None if seen.alarm is None else looks[seen.alarm - 1][1]
    return Judged(source, measure, seen, series, paired, judging, time)


def _panel(rows: Mapping[int, Mapping[str, float]], looks: Sequence[int]) -> Floats:
    """Looks by queries; NaN where a query had no value."""
    columns: dict[str, int] = {}
    for look in looks:
        for query in rows.get(look, ()):
            columns.setdefault(query, len(columns))
    panel = np.full((len(looks), len(columns)), np.nan)
    for row, look in enumerate(looks):
        for query, value in rows.get(look, {}).items():
            panel[row, columns[query]] = value
    return panel


def _is_mean(panel: Floats, values: Floats) -> bool:
    """Whether the measure is the mean over queries at every look; a slope, say, is not."""
    known = np.isfinite(panel)
    counts = known.sum(axis=1)
    if not counts.all():
        return False
    means = np.where(known, panel, 0.0).sum(axis=1) / counts
    return bool(np.allclose(means, values, rtol=1e-9, atol=ROUNDING * 1000))


def _looks(count: int) -> str:
    return f"{count:,} look" + ("" if count == 1 else "s")


def _range(first: int, last: int) -> tuple[str, str]:
    return (f"look {first}", "was") if first == last else (f"looks {first} to {last}", "were")


def _signed(value: float | None) -> str:
    return number(value, "+.4f")
