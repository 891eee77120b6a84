"""A pytest plugin: every condition in a file `*.audit.toml` is a test.

Copy it next to your tests and name it in `conftest.py`: ``pytest_plugins = ["pytest_evenrank"]``. A file
`search.audit.toml` then says what to audit and what must not hold:

    docs = "docs.tsv"
    queries = "queries.tsv"
    qrels = "qrels.txt"
    fail_if = ["abs(ARaB@10)>0.3", "nDCG@10<0.5"]
    report = "report.html"

    [runs]
    bm25 = "bm25.run"

Paths are relative to the file; whatever `evenrank.audit` takes may stand in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

_FILES = ("docs", "tally", "queries", "qrels", "genders", "labels", "targets", "background", "vectors")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> AuditFile | None:
    if file_path.name.endswith(".audit.toml"):
        return AuditFile.from_parent(parent, path=file_path)
    return None


class AuditFile(pytest.File):
    """What to audit; audited once, when its first test runs."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        return tomllib.loads(self.path.read_text(encoding="utf-8"))

    @cached_property
    def audit(self) -> Any:
        import evenrank

        given = dict(self.settings)
        report = given.pop("report", None)
        runs = {name: self.path.parent / run for name, run in given.pop("runs").items()}
        files = {name: self.path.parent / given[name] for name in _FILES if name in given}
        if given.get("genders") == "predict":  # the shipped classifier, not a file
            del files["genders"]
        found = evenrank.audit(runs, **given | files)
        if report is not None:
            found.report(self.path.parent / report)
        return found

    def collect(self) -> Iterator[Condition]:
        for condition in self.settings["fail_if"]:
            yield Condition.from_parent(self, name=condition)


class Condition(pytest.Item):
    """One bound: it fails where a run exceeds it."""

    parent: AuditFile

    def runtest(self) -> None:
        from evenrank.measures.parse import parse_condition

        failed = [
            one.text
            for one in self.parent.audit.checks
            if not one.passed and one.condition == parse_condition(self.name, relative=True)
        ]
        if failed:
            raise BoundExceededError("\n".join(failed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, BoundExceededError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"bias gate: {self.name}"


class BoundExceededError(Exception):
    """A run leans farther, or serves worse, than allowed."""
