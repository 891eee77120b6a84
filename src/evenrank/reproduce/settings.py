"""What a recipe works on and how; a TOML file beside its result, from which it can be run again."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import files, tables
from evenrank.data.frames import fingerprint
from evenrank.data.tables import Dataset
from evenrank.errors import InputError, choices, is_whole


@dataclass(frozen=True)
class Settings:
    """What a recipe works on and how; written beside its result, and read back with --settings.

    Attributes
    ----------
    data, split
        A folder with docs, queries and qrels, or an ``irds:`` id; which queries, where there are several.
    genders
        Labels of the queries: a file, or `predict`.
    runs
        Runs of your own, for the recipes that compare systems: name = path. The first is the baseline.
    queries
        At most so many queries, drawn with the seed; 0 for all.
    resamples, seed
        Of the bootstrap.
    options
        What else the recipe can be told; see its page.
    """

    data: str | None = None
    split: str | None = None
    genders: str | None = None
    runs: Mapping[str, str] | None = None
    queries: int = 0
    resamples: int = 2000
    seed: int = 0
    options: Mapping[str, Any] | None = None

    def quick(self, options: Mapping[str, Any] | None = None) -> Settings:
        """The same in minutes: some hundred queries, fewer resamples, and these options."""
        chosen = {**(options or {}), **(self.options or {})}
        return replace(self, queries=min(self.queries or 100, 100), resamples=500, options=chosen)

    def completed(self, defaults: Mapping[str, Any]) -> Settings:
        """With all options of a recipe: those given, and the others as the paper has them."""
        given = dict(self.options or {})
        for name, value in given.items():
            if name not in defaults:
                known = choices(name, sorted(defaults)) if defaults else "this recipe has none"
                raise InputError(f"there is no option {name!r}; {known}")
            given[name] = _like(name, value, defaults[name])
        return replace(self, options={**defaults, **given})

    def option(self, name: str) -> Any:
        """An option of the recipe."""
        return (self.options or {})[name]

    def some(self, name: str) -> list[Any]:
        """An option that is a list, with something in it."""
        found: list[Any] = self.option(name)
        if not found:
            raise InputError(f"{name} is empty; name at least one")
        return found

    def with_about(self, text: str) -> str:
        """A text on what was done, and what the user has to say about it."""
        return f"{text} {self.option('about')}".strip()

    @property
    def chance(self) -> dict[str, int]:
        """Resamples and seed, as the bootstrap takes them."""
        return {"resamples": self.resamples, "seed": self.seed}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All settings, and what the files that they name hold: a step made of others is done anew."""
        found = {key: value for key, value in asdict(self).items() if key not in ("data", "runs", "genders")}
        if self.data is None or not self._is_scored():
            data = self.dataset()
            found["data"] = [data.docs.fingerprint(), fingerprint([data.queries, data.qrels])]
        else:
            found["data"] = {
                path.name: files.fingerprint(path)
                for path in sorted(Path(self.data).iterdir())
                if path.is_file()
            }
        found["runs"] = {name: files.fingerprint(path) for name, path in (self.runs or {}).items()}
        labels = self.genders
        if labels == "predict":  # by the classifier as it is now
            model = Path(str(resources.files("evenrank.queries"))) / "data" / "static"
            found["genders"] = [files.fingerprint(model / name) for name in ("model.json", "static.npz")]
        else:
            found["genders"] = labels if labels is None else files.fingerprint(labels)
        return found

    def _is_scored(self) -> bool:
        """Is the folder one of ready tables, with no documents in it?"""
        folder = Path(self.data or "")
        return folder.is_dir() and not [
            *folder.glob("docs.*"),
            *folder.glob("collection.*"),
            *folder.glob("corpus.*"),
        ]

    def dataset(self) -> Dataset:
        """The collection, its queries drawn where not all are wanted."""
        return self._collection

    @cached_property
    def _collection(self) -> Dataset:
        if self.data is None:
            from evenrank import demo

            if self.split is not None:
                raise InputError(f"split is {self.split!r}, but the demo collection has none; name --data")
            return self._drawn(tables.load(demo.folder()))
        return self._drawn(tables.load(self.data, split=self.split))

    @property
    def name(self) -> str:
        """What the data are called."""
        if self.data is None:
            return "the demo collection"
        called = self.data if self.data.startswith("irds:") else Path(self.data).name
        return called + ("" if self.split is None else f" ({self.split})")

    def labels(self, queries: pl.DataFrame, say: Callable[[str], None], *, seen: bool = False) -> Any:
        """The genders of the queries, as given or predicted; says how many were predicted.

        Queries that trained the classifier are left out, unless they may be `seen`: those to train with.
        """
        if self.genders is None:
            raise InputError("this recipe needs --genders: a file with labels, or predict")
        if self.genders != "predict":
            return self.genders
        from evenrank.queries.classifier import predicted_genders

        found, said = predicted_genders(queries, keep_seen=seen)
        say(said)
        return found

    def _drawn(self, found: Dataset) -> Dataset:
        if found.qrels is None:
            raise InputError("this recipe needs relevance judgments, and there are none", path=self.data)
        if not (found.qrels["relevance"] > 0).any():
            raise InputError("no query has a relevant document (relevance above 0)", path=self._judged_in)
        judged = found.queries.filter(pl.col("query_id").is_in(found.qrels["query_id"].unique().implode()))
        if self.queries and len(judged) > self.queries:
            rows = np.random.default_rng(self.seed).permutation(len(judged))[: self.queries]
            judged = judged[np.sort(rows)]
        kept = found.qrels.filter(pl.col("query_id").is_in(judged["query_id"].implode()))
        return found._replace(queries=judged, qrels=kept)

    @property
    def _judged_in(self) -> Path | str | None:
        """Where the judgments are: their file if there is one, else the data."""
        there = [] if self.data is None else sorted(Path(self.data).glob("qrels*"))
        there = [path for path in there if (self.split or "") in path.name]
        return there[0] if len(there) == 1 else self.data

    @classmethod
    def read(
        cls, path: Path, takes: Iterable[str] | None = None, options: Mapping[str, Any] | None = None
    ) -> Settings:
        """Settings from a TOML file: of those inputs that a recipe takes, with the options that it has."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"no settings: {error}", path=path) from error
        known = {field.name for field in fields(cls)}
        for name in content:
            if name not in known:
                raise InputError(f"there is no setting {name!r}; {choices(name, sorted(known))}", path=path)
        for name, value in content.items():
            if problem := _problem(name, value):
                raise InputError(f"{name} is {value!r}; it must be {problem}", path=path)
        found = cls(**content)
        for name in _INPUTS:
            if takes is not None and name in content and name not in takes:
                raise InputError(f"this recipe takes no {name}; leave it out", path=path)
        if options is not None:
            try:
                found.completed(options)
            except InputError as error:
                raise InputError(str(error), path=path) from None
        return found

    def toml(self) -> str:
        """As a TOML file."""
        lines = []
        for name, value in asdict(self).items():
            if isinstance(value, Mapping):
                lines += [
                    "",
                    f"[{name}]",
                    *(f"{_quoted(key)} = {_quoted(each)}" for key, each in value.items()),
                ]
            elif value is not None:
                lines.insert(0, f"{name} = {_quoted(value)}")
        return "\n".join(lines) + "\n"


def _quoted(value: object) -> str:
    """A value as TOML has it."""
    return json.dumps(value, ensure_ascii=False)


_INPUTS = ("data", "split", "genders", "runs")
_TEXTS = ("data", "split", "genders")
_LEAST = {"queries": 0, "resamples": 1, "seed": 0}


def _problem(name: str, value: Any) -> str:
    """What a setting must be, if it is not; else empty."""
    if name in _TEXTS:
        return "" if isinstance(value, str) else "a text"
    if name in _LEAST:
        return "" if is_whole(value) and value >= _LEAST[name] else f"a whole number from {_LEAST[name]} on"
    if not isinstance(value, Mapping):
        return f"a table, as in [{name}]"
    if name == "runs" and not all(isinstance(path, str) for path in value.values()):
        return "a table of paths: name = path"
    return ""


def _like(name: str, value: Any, default: Any) -> Any:
    """A value of the kind that the default is of; texts of the command line are read."""
    if isinstance(value, str) and not isinstance(default, str):
        value = _read(value, default)
    found = _same_kind(value, default)
    if found is None:
        kind = f"a whole number from {min(default, 1)} on, " if is_whole(default) else ""
        raise InputError(f"{name} is {value!r}; it must be {kind}like {default!r}")
    return found


def _read(text: str, default: Any) -> Any:
    """What a text says, as JSON; lists also without brackets and quotes, with commas, empty for none."""
    with suppress(ValueError):
        made = json.loads(text)
        if isinstance(made, list) or not isinstance(default, list):
            return made
    if not isinstance(default, list) or text.lstrip().startswith("["):
        return text
    texts = [each.strip() for each in text.split(",")] if text.strip() else []
    kind = default[0] if default else ""
    return texts if isinstance(kind, str) else [_read(each, kind) for each in texts]


def _same_kind(value: Any, default: Any) -> Any:
    """The value if it is of the default's kind, else None; whole numbers become floats where those are meant.

    Numbers are never below 0, and whole ones from 1 on unless the default is 0. Elements of a list are like
    those of the default; where that has none, they are texts.
    """
    if isinstance(default, list):
        if not isinstance(value, list):
            return None
        made = [_same_kind(each, default[0] if default else "") for each in value]
        return None if None in made else made
    if isinstance(default, float):
        known = is_whole(value) or isinstance(value, float)
        return float(value) if known and 0 <= value < math.inf else None
    if is_whole(default):
        return value if is_whole(value) and value >= min(default, 1) else None
    return value if isinstance(value, default.__class__) else None


def parse_values(given: Iterable[str]) -> dict[str, Any]:
    """Settings of a training out of texts NAME=VALUE, each value as JSON has it."""
    found = {}
    for name, value in parse_options(given).items():
        try:
            found[name] = json.loads(value)
        except ValueError:
            raise InputError(
                f"training: {name}={value} cannot be read; write a number, true, false or a text in quotes"
            ) from None
    return found


def parse_options(given: Iterable[str]) -> dict[str, str]:
    """Options out of texts NAME=VALUE."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"option {text!r}: write it as NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
