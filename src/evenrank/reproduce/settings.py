"""What a recipe works on and how; a TOML file beside its result, from which it can be run again."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.data.tables import Dataset
from evenrank.errors import InputError, choices


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
    """

    data: str | None = None
    split: str | None = None
    genders: str | None = None
    runs: Mapping[str, str] | None = None
    queries: int = 0
    resamples: int = 2000
    seed: int = 0

    def quick(self) -> Settings:
        """The same in minutes: some hundred queries, fewer resamples."""
        return replace(self, queries=min(self.queries or 100, 100), resamples=500)

    def dataset(self) -> Dataset:
        """The collection, its queries drawn where not all are wanted."""
        if self.data is None:
            from evenrank import demo

            return self._drawn(tables.load(demo.folder()))
        return self._drawn(tables.load(self.data, split=self.split))

    @property
    def name(self) -> str:
        """What the data are called."""
        return "the demo collection" if self.data is None else Path(self.data).name

    def labels(self, queries: pl.DataFrame, say: Callable[[str], None]) -> Any:
        """The genders of the queries, as given or predicted; says how many were predicted."""
        if self.genders is None:
            raise InputError("this recipe needs --genders: a file with labels, or predict")
        if self.genders != "predict":
            return self.genders
        from evenrank.queries.classifier import classify

        found = classify(queries)
        kept = found.filter(~found["note"].str.contains("training query", literal=True))
        sizes = sorted(kept["label"].value_counts().iter_rows())
        counts = ", ".join(f"{count:,} {label}" for label, count in sizes)
        said = f"{len(kept):,} of {len(found):,} queries labelled by the classifier: {counts}"
        say(said + ("" if len(kept) == len(found) else "; the others trained it"))
        return kept.select("query_id", gender="label")

    def _drawn(self, found: Dataset) -> Dataset:
        if found.qrels is None:
            raise InputError("this recipe needs relevance judgments, and there are none", path=self.data)
        judged = found.queries.filter(pl.col("query_id").is_in(found.qrels["query_id"].unique().implode()))
        if self.queries and len(judged) > self.queries:
            rows = np.random.default_rng(self.seed).permutation(len(judged))[: self.queries]
            judged = judged[np.sort(rows)]
        kept = found.qrels.filter(pl.col("query_id").is_in(judged["query_id"].implode()))
        return found._replace(queries=judged, qrels=kept)

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Settings from a TOML file."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"no settings: {error}", path=path) from error
        known = {field.name for field in fields(cls)}
        for name in content:
            if name not in known:
                raise InputError(f"there is no setting {name!r}; {choices(name, sorted(known))}", path=path)
        return cls(**content)

    def toml(self) -> str:
        """As a TOML file."""
        lines = []
        for name, value in asdict(self).items():
            if isinstance(value, Mapping):
                lines += [
                    "",
                    f"[{name}]",
                    *(f"{_quoted(key)} = {_quoted(path)}" for key, path in value.items()),
                ]
            elif value is not None:
                lines.insert(0, f"{name} = {_quoted(value)}")
        return "\n".join(lines) + "\n"


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
