"""Simulations: how often a monitor raises a false alarm in a year of looks, and how soon it finds a change.

A panel of twenty queries is looked at 365 times and nothing changes: independent noise, noise that resembles
that of the day before, heavy tails, answers that are missing, new queries each day. Beside what evenrank
judges stands what one would do without it: is the value outside the first look's interval, is it beyond two
standard deviations, does a paired t-test against the first look find something. And an engine that hardly
ever moves, of which one look in a hundred is odd. Seed 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from benchmarks.pages import fill, number, table
from evenrank.server.sequences import change, paired_changes

_SEED, _MONITORS, _AT_ONCE = 16, 2000, 250
_LOOKS, _QUERIES, _BASELINES = 365, 20, (10, 30, 60)
_SHIFTS, _AFTER = (0.5, 1.0, 2.0), (30, 90, 180)

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def _panel(noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray], phi: float = 0.0) -> Draw:
    """Queries with levels of their own; the noise of a look is φ times that of the look before, and new."""

    def draw(rng: np.random.Generator, rows: int, looks: int) -> np.ndarray:
        values = noise(rng, (rows, looks, _QUERIES))
        for look in range(1, looks if phi else 0):
            values[:, look] = phi * values[:, look - 1] + math.sqrt(1 - phi**2) * values[:, look]
        return values + rng.normal(size=(rows, 1, _QUERIES))

    return draw


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(3, size=shape) / math.sqrt(3)


def _heavy_days(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """What moves all queries of a day together has heavy tails."""
    return (_heavy(rng, (*shape[:-1], 1)) + rng.normal(size=shape)) / math.sqrt(2)


def _wild_days(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Nothing but days that move all queries together, a few of them by very much: lognormal, σ = 2."""
    return np.asarray(np.broadcast_to(rng.lognormal(0, 2, (*shape[:-1], 1)), shape))


def _weekly(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Means of the last seven days' noise: dependence that is no AR(1)."""
    rows, looks, queries = shape
    total = np.cumsum(rng.normal(size=(rows, looks + 7, queries)), axis=1)
    return np.asarray((total[:, 7:] - total[:, :-7]) / math.sqrt(7))


def _holes(rng: np.random.Generator, rows: int, looks: int) -> np.ndarray:
    values = _panel(_normal)(rng, rows, looks)
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def _rarely(rng: np.random.Generator, rows: int, looks: int) -> np.ndarray:
    """Always the same, but for one look in a hundred."""
    odd = rng.random((rows, looks, 1)) < 0.01
    return np.where(odd, rng.normal(size=(rows, looks, _QUERIES)), 0.0) + rng.normal(size=(rows, 1, _QUERIES))


def _new(rng: np.random.Generator, rows: int, looks: int) -> np.ndarray:
    """Other queries at each look."""
    return math.sqrt(2) * rng.normal(size=(rows, looks, _QUERIES))


_WORLDS: dict[str, Draw] = {
    "fixed panel, independent": _panel(_normal),
    "fixed panel, AR(1), φ = 0.3": _panel(_normal, 0.3),
    "fixed panel, AR(1), φ = 0.6": _panel(_normal, 0.6),
    "fixed panel, AR(1), φ = 0.9": _panel(_normal, 0.9),
    "fixed panel, means of seven days": _panel(_weekly),
    "fixed panel, heavy tails (t₃) of queries": _panel(_heavy),
    "fixed panel, heavy tails (t₃) of days": _panel(_heavy_days),
    "fixed panel, a tenth of the answers missing": _holes,
    "changing panel": _new,
    "fixed panel, always the same but for one look in a hundred": _rarely,
    "fixed panel, lognormal (σ = 2) days": _panel(_wild_days),
}
_NEW = "changing panel"


def monitor(data: Path) -> dict[str, Any]:
    """False alarms in each world, and the looks until a change is found."""
    found: dict[str, Any] = {
        "seed": _SEED,
        "monitors": _MONITORS,
        "looks": _LOOKS,
        "queries": _QUERIES,
        "alpha": 0.05,
        "false alarms": [_false_alarms(number_, name) for number_, name in enumerate(_WORLDS)],
        "found": [
            _found(number_, name, shift, after)
            for number_, name in enumerate(_WORLDS)
            if name in ("fixed panel, independent", "fixed panel, AR(1), φ = 0.3", _NEW)
            for shift in _SHIFTS
            for after in _AFTER
        ],
    }
    fill("monitor.md", page(found))
    return found


def _series(values: np.ndarray, name: str, baseline: int) -> np.ndarray:
    return (
        np.nanmean(values, axis=-1)
        if name == _NEW
        else np.array([paired_changes(each, baseline) for each in values])
    )


def _first_alarms(series: np.ndarray, baseline: int) -> np.ndarray:
    """The look of the first alarm in each row; 0 where there is none."""
    return np.array([change(row, baseline=baseline).alarm or 0 for row in series])


def _false_alarms(number_: int, name: str) -> dict[str, Any]:
    rng = np.random.default_rng([_SEED, number_])
    alarms = dict.fromkeys(_BASELINES, 0)
    today = {"outside the first interval": 0, "beyond two standard deviations": 0, "paired t-test": 0}
    for _ in range(_MONITORS // _AT_ONCE):
        values = _WORLDS[name](rng, _AT_ONCE, _LOOKS)
        for baseline in _BASELINES:
            series = _series(values, name, baseline)
            alarms[baseline] += int((_first_alarms(series, baseline) > 0).sum())
        for key, raised in _today(values).items():
            today[key] += int(raised.sum())
    return {
        "world": name,
        "alarms by baseline": {str(key): value / _MONITORS for key, value in alarms.items()},
        "without": {key: value / _MONITORS for key, value in today.items()},
    }


def _today(values: np.ndarray) -> dict[str, np.ndarray]:
    """What looks at each day by itself: any alarm in the year?"""
    means = np.nanmean(values, axis=-1)
    first = values[:, :1]
    counts = np.isfinite(first).sum(axis=-1)
    reach = stdtrit(counts - 1, 0.975) * np.nanstd(first, axis=-1, ddof=1) / np.sqrt(counts)
    spread = means.std(axis=1, keepdims=True)
    moved = values[:, 1:] - first
    n = np.isfinite(moved).sum(axis=-1)
    mean, error = np.nanmean(moved, axis=-1), np.nanstd(moved, axis=-1, ddof=1) / np.sqrt(n)
    t = np.where(mean == 0, 0.0, np.where(error > 0, mean / np.where(error > 0, error, 1.0), np.inf))
    return {
        "outside the first interval": (np.abs(means[:, 1:] - means[:, :1]) > reach).any(axis=1),
        "beyond two standard deviations": (means > means.mean(axis=1, keepdims=True) + 2 * spread).any(
            axis=1
        ),
        "paired t-test": (2 * stdtr(n - 1, -np.abs(t)) < 0.05).any(axis=1),
    }


def _found(number_: int, name: str, shift: float, after: int) -> dict[str, Any]:
    """Looks until a shift is found that comes after some looks; its unit is the spread of a look's mean."""
    rng = np.random.default_rng([_SEED, number_, after, round(10 * shift)])
    unit = math.sqrt((2 if name == _NEW else 1) / _QUERIES)
    delays = []
    early = 0
    for _ in range(_MONITORS // _AT_ONCE):
        values = _WORLDS[name](rng, _AT_ONCE, after + _LOOKS)
        values[:, after:] += shift * unit
        first = _first_alarms(_series(values, name, 30), 30)
        early += int(((first > 0) & (first <= after)).sum())
        delays.append(np.where(first == 0, np.inf, first - after)[(first == 0) | (first > after)])
    delay = np.sort(np.concatenate(delays))
    return {
        "world": name,
        "shift in standard deviations of a look": shift,
        "after looks": after,
        "alarms before the change": early / _MONITORS,
        "found within 365": float(np.isfinite(delay).mean()),
        **{f"looks for {share:.0%}": _within(delay, share) for share in (0.5, 0.8)},
    }


def _within(delay: np.ndarray, share: float) -> int | None:
    """The looks within which that share of monitors has found the change; None: not within a year."""
    looks = delay[math.ceil(share * len(delay)) - 1]
    return int(looks) if np.isfinite(looks) else None


def page(found: dict[str, Any]) -> str:
    """The tables of docs/monitor.md."""
    without = list(found["false alarms"][0]["without"])
    heads = ["nothing changes", *(f"evenrank, baseline {each}" for each in _BASELINES), *without]
    rows = [
        [
            row["world"],
            *(number(row["alarms by baseline"][str(each)], ".1%") for each in _BASELINES),
            *(number(row["without"][key], ".0%") for key in without),
        ]
        for row in found["false alarms"]
    ]
    lead = (
        f"{found['monitors']:,} monitors of {found['queries']} queries each, {found['looks']} looks, while "
        f"nothing changes (seed {found['seed']}): how many raised any alarm. It should be at most 5 %. "
        f"*Outside the "
        "first interval*: a value outside the grey band of the page. *Beyond two standard deviations*: a "
        "bound of `--fail-if` two standard deviations of a look above the mean. *Paired t-test*: each look "
        "against the first, at 5 %."
    )
    later = [
        [
            row["world"],
            number(row["shift in standard deviations of a look"], ".1f"),
            str(row["after looks"]),
            *(_said(row[f"looks for {share}"]) for share in ("50%", "80%")),
            number(row["found within 365"], ".0%"),
        ]
        for row in found["found"]
    ]
    then = (
        "And with a real change: the mean shifts by this many standard deviations *of a look* after "
        "this many "
        "looks (baseline 30). The table shows how many looks after the change half, and 80 %, of the "
        "monitors "
        "found it."
    )
    names = ["a change", "standard deviations", "after looks", "half find it within", "80% within"]
    names.append("found within 365 looks")
    known = (
        "A simulated share of 5 % is known to ± 1.0 points. Numbers: [evidence](evidence/monitor.json), by "
        "`python -m benchmarks.evidence monitor`."
    )
    return f"{lead}\n\n{table(heads, rows)}\n{then}\n\n{table(names, later)}\n{known}\n"


def _said(looks: int | None) -> str:
    return "not in a year" if looks is None else f"{looks} looks"
