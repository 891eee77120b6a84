"""Datasets of the ir_datasets catalogue, named ``irds:ID``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenrank.data.files import one_line
from evenrank.errors import InputError

PREFIX = "irds:"


def is_name(x: object) -> bool:
    return isinstance(x, str) and x.startswith(PREFIX)


def is_dataset(x: object) -> bool:
    return hasattr(x, "docs_iter") or hasattr(x, "queries_iter") or hasattr(x, "qrels_iter")


def dataset(name: str) -> Any:
    """The dataset of this name; nothing is downloaded before it is read."""
    try:
        import ir_datasets
    except ImportError as error:
        raise InputError(
            "ir_datasets is not installed; pip install 'evenrank[datasets]'", path=name
        ) from error
    with reading(name):
        return ir_datasets.load(name.removeprefix(PREFIX))


def name_of(dataset: Any) -> str:
    identify = getattr(dataset, "dataset_id", None)
    return f"{PREFIX}{identify()}" if callable(identify) else type(dataset).__name__


def has(dataset: Any, what: str) -> bool:
    """Does the dataset have ``docs``, ``queries``, ``qrels`` or ``scoreddocs``?"""
    tell = getattr(dataset, f"has_{what}", None)
    return bool(tell()) if callable(tell) else hasattr(dataset, f"{what}_iter")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say in one line what ir_datasets says in a traceback: unknown ids, failed downloads."""
    try:
        with _quiet():
            yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError("ir_datasets has no dataset of this name; see ir-datasets.com", path=name) from error
    except Exception as error:
        if hosts := _unreachable(error):
            problem = f"cannot be downloaded: no answer from {' or '.join(hosts)}"
            way_out = "go online, or copy ~/.ir_datasets from a machine that has the dataset"
            raise InputError(f"{problem}; {way_out}", path=name) from error
        raise InputError(f"ir_datasets cannot read this: {one_line(error)}", path=name) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what ir_datasets logs of each failed attempt: what is wrong is said once, at the end."""
    logger = logging.getLogger("ir_datasets")

    def failed(record: logging.LogRecord) -> bool:
        return not record.getMessage().lower().startswith("download")

    logger.addFilter(failed)
    try:
        yield
    finally:
        logger.removeFilter(failed)


def _unreachable(error: BaseException) -> list[str]:
    """The servers that did not answer, if that is what the error is about."""
    told = f"{type(error).__name__} {error}"
    if not re.search("download|Connection|Timeout|resolve", told):
        return []
    return list(
        dict.fromkeys(re.findall(r"https?://([\w.-]+)", told) or re.findall(r"host=\W*([\w.-]+)", told))
    )


class Rows:
    """The rows of one part of a dataset, as often as they are asked for."""

    def __init__(self, dataset: Any, what: str) -> None:
        self.name = name_of(dataset)
        if not has(dataset, what):
            raise InputError(f"this dataset has no {what}", path=self.name)
        self._iterate = getattr(dataset, f"{what}_iter")

    def __iter__(self) -> Iterator[Any]:
        with reading(self.name):
            yield from self._iterate()
