"""The steps of a recipe: each is kept once it is done, with what it took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import xxhash

import evenrank
from evenrank.data import tables
from evenrank.data.files import fingerprint, writing
from evenrank.errors import InputError


class Spent(NamedTuple):
    """What a step took without the steps within it, by the clock and of processors; and whether it trains.

    Of a step that was interrupted and went on within itself, only the last part is known.
    """

    seconds: float
    processor: float
    trains: bool = False


@dataclass
class _Within:
    """What has been done within a step that is under way."""

    steps: dict[str, Spent] = field(default_factory=dict)
    seconds: float = 0.0
    processor: float = 0.0


class Steps:
    """Steps of a recipe, each kept in a folder once it is done, and done anew where its settings changed.

    Attributes
    ----------
    folder
        Where they are kept; None to keep nothing.
    say
        Told the name of each step.
    spent
        What each step took when it was done, now or earlier.
    done
        The steps that were done now.
    """

    def __init__(self, folder: Path | None, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.spent: dict[str, Spent] = {}
        self.done: set[str] = set()
        self._under_way: list[_Within] = []

    def __call__(
        self,
        name: str,
        settings: Mapping[str, Any],
        work: Callable[[], dict[str, Any]],
        *,
        trains: bool = False,
    ) -> dict[str, Any]:
        """What `work` gives, as JSON knows it; from the folder, if it was done with the same settings."""
        asked = json.loads(json.dumps({"evenrank": evenrank.__version__, **settings}, default=str))
        path = None if self.folder is None else self._path(name)
        if path is not None and path.exists():
            try:
                stored = json.loads(path.read_text())
                known, found = stored["settings"] == asked, stored["found"]
                whole = stored["checksum"] == checksum(found)
                took = {each: _spent(*values) for each, values in stored.get("spent", {}).items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError("not a step of a recipe; remove it", path=path) from error
            if not whole:
                raise InputError("was changed since it was written; remove it", path=path)
            if known:
                self.say(f"{name}: as it was")
                self._add(_Within(took))
                return dict(found)
        self.say(f"{name} …")
        made, took = self._timed(name, work, trains)
        found = json.loads(json.dumps(made))
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            stored = {"settings": asked, "checksum": checksum(found), "spent": took, "found": found}
            with writing(path) as file:
                file.write((json.dumps(stored, indent=1) + "\n").encode())
        return dict(found)

    def run(
        self,
        name: str,
        settings: Mapping[str, Any],
        work: Callable[[], pl.DataFrame],
        *,
        trains: bool = False,
    ) -> pl.DataFrame:
        """A run that `work` makes, kept as a file; made anew where it is gone."""
        called = f"run {name}"
        if self.folder is None:
            return tables.run(self._timed(called, work, trains)[0])
        made: list[pl.DataFrame] = []
        path = self.folder / "steps" / "runs" / f"{_file_name(name)}.run.gz"

        def step() -> dict[str, Any]:
            path.parent.mkdir(parents=True, exist_ok=True)
            tables.write_run(work(), path, name="run")
            made.append(tables.run(path))
            return {"rows": len(made[0]), "fingerprint": fingerprint(path)}

        if not path.exists():
            self._path(called).unlink(missing_ok=True)
        found = self(called, settings, step, trains=trains)
        if not made and fingerprint(path) != found["fingerprint"]:
            raise InputError("was changed since it was written; remove it", path=path)
        return made[0] if made else tables.run(path)

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / "steps" / f"{_file_name(name)}.json"

    def _timed(self, name: str, work: Callable[[], Any], trains: bool) -> tuple[Any, dict[str, Spent]]:
        """What `work` gives; and what it took, with the steps within it."""
        self._under_way.append(_Within())
        clock, processor = time.perf_counter(), time.process_time()
        try:
            found = work()
        except BaseException:
            self._add(self._under_way.pop())  # what was finished within it
            raise
        within = self._under_way.pop()
        seconds, used = time.perf_counter() - clock, time.process_time() - processor
        own = _spent(seconds - within.seconds, used - within.processor, trains)
        if name in self.done:
            before = self.spent[name]
            own = _spent(own.seconds + before.seconds, own.processor + before.processor, trains)
        took = {**within.steps, name: own}
        self.done.add(name)
        self._add(_Within(took, seconds, used))
        return found, took

    def _add(self, done: _Within) -> None:
        """Count what has been done, also to the step that it was done in."""
        self.spent |= done.steps
        if self._under_way:
            around = self._under_way[-1]
            around.steps |= done.steps
            around.seconds += done.seconds
            around.processor += done.processor


def _file_name(step: str) -> str:
    return step.replace("%", "%25").replace("/", "%2F")


def _spent(seconds: float, processor: float, trains: bool) -> Spent:
    return Spent(round(float(seconds), 2), round(float(processor), 2), bool(trains))


def checksum(found: Mapping[str, Any]) -> str:
    """A hash of what JSON knows."""
    return xxhash.xxh3_128_hexdigest(json.dumps(found, sort_keys=True, default=str).encode())
