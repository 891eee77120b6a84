"""The plan of a comparison of training sets: files, rankers and seeds, checked before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from evenrank.errors import InputError, choice_hint, is_whole
from evenrank.rankers.neural.onnx_models import check_backend
from evenrank.rankers.neural.rerankers import KINDS

FILES = ("docs", "queries", "qrels", "test_queries", "test_qrels", "genders", "test_genders")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is compared.

    Attributes
    ----------
    docs, queries, qrels, test_queries, test_qrels
        The collection; training and test queries with their judgments. Paths, from the folder of the file.
    genders, test_genders
        Genders of the queries; predicted by the shipped classifier if not given. Test queries that it was
        trained on are then left out.
    writer, per_document, sample
        What writes queries (the model of :func:`evenrank.generate`), how many for each document, and for how
        many documents.
    answerable
        The share of a generated query's terms that its document must have.
    ratio
        Queries that the set `judgments` adds, as a share of the real ones.
    rankers, seeds, depth, settings
        Rankers of `evenrank train`, seeds of their training, first-stage candidates, and settings of each.
    backend
        What bi-encoders and cross-encoders read the test queries' candidates with, as in `evenrank rerank`:
        ``torch``, ``onnx`` or ``onnx-int8``, which is quicker and a little off.
    neutral
        Neutral test queries on which ARaB@10 is measured, drawn by the seed.
    write_genders
        Leave files that tell genders in the folder.
    """

    docs: str
    queries: str
    qrels: str
    test_queries: str
    test_qrels: str
    genders: str | None = None
    test_genders: str | None = None
    writer: str | None = None
    per_document: int = 1
    sample: int | None = None
    answerable: float | None = 0.5
    ratio: float = 0.25
    rankers: tuple[str, ...] = ("head",)
    seeds: tuple[int, ...] = (0, 1, 2)
    depth: int = 100
    backend: str = "torch"
    neutral: int = 200
    write_genders: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be used, before anything is done."""
        for name, (fits, must) in _MUST.items():
            value = getattr(self, name)
            if not fits(value):
                raise InputError(f"{name} is {value!r}; it must be {must}")
        check_backend(self.backend)
        for ranker in (*self.rankers, *self.settings):
            if ranker not in KINDS:
                raise InputError(f"there is no ranker {ranker!r} to train; {choice_hint(str(ranker), KINDS)}")
        for name in ("rankers", "seeds"):
            given = getattr(self, name)
            if twice := [each for each in given if given.count(each) > 1]:
                raise InputError(f"{name} names {twice[0]!r} twice; leave one out")
        if unread := [ranker for ranker in self.settings if ranker not in self.rankers]:
            raise InputError(
                f"there are settings of {unread[0]!r}, but rankers does not name it; add it there"
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """A plan out of a TOML file."""
        import tomllib

        from evenrank.data.files import reading

        with reading(path):
            text = Path(path).read_bytes().decode()
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not TOML: {error}", path=path) from None
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(f"there is no setting {name!r}; {choice_hint(name, known)}", path=path)
        for name in FILES[:5]:
            if not isinstance(given.get(name), str):
                raise InputError(f"{name} is missing; name a file", path=path)
        base = Path(path).parent
        for name in FILES:
            if isinstance(given.get(name), str) and not given[name].startswith("irds:"):
                given[name] = str(base / given[name])
        for name in ("rankers", "seeds"):
            if isinstance(given.get(name), list):
                given[name] = tuple(given[name])
        try:
            plan = cls(**given)
            plan.check_settings()
        except InputError as error:
            raise InputError(error.message, path=path) from None
        return plan

    def check_settings(self) -> None:
        """Refuse settings that a ranker does not have."""
        from evenrank.training.trainer import read_settings

        for ranker, given in self.settings.items():
            read_settings(ranker, given)


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: is_whole(value) and value >= least


def _share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _optional(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _several(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and len(value) > 0 and all(map(fits, value))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _tables(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())


_MUST: dict[str, tuple[Callable[[Any], bool], str]] = {
    "genders": (_optional(_text), "a file"),
    "test_genders": (_optional(_text), "a file"),
    "writer": (_optional(_text), "the name of a model"),
    "per_document": (_whole(1), "a whole number from 1 on"),
    "sample": (_optional(_whole(1)), "a whole number from 1 on"),
    "answerable": (_optional(_share), "a number from 0 to 1"),
    "ratio": (lambda value: _share(value) and value > 0, "a number above 0 and at most 1"),
    "rankers": (_several(_text), "a list of rankers"),
    "seeds": (_several(_whole(0)), "a list of whole numbers from 0 on"),
    "depth": (_whole(1), "a whole number from 1 on"),
    "backend": (_text, "the name of one"),
    "neutral": (_whole(0), "a whole number from 0 on"),
    "write_genders": (lambda value: isinstance(value, bool), "true or false"),
    "settings": (_tables, "a table for each ranker, as in [settings.knrm]"),
}
