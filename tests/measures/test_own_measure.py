"""A measure of one's own says what it is in its own file, and every part of the package believes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pytest

import evenrank as er
from evenrank import demo
from evenrank.errors import InputError
from evenrank.measures.base import (
    BiasMeasure,
    Context,
    Param,
    PerQuery,
    direction,
    good,
    meaning,
    register,
)
from evenrank.measures.rank_bias import rab_weights


class _Untouched(BiasMeasure):
    """Share of the top t documents that hold no word of any group: 1 is best."""

    __name__ = NAME = "Untouched"
    PRETTY_NAME = "Untouched documents"
    SHORT_DESC = "Share of the top t documents that name no group."
    GOOD = "high"
    MEANING = "The share of the top {k} documents that name no group."
    SUPPORTED_PARAMS: dict[str, Any] = {"cutoff": Param(dtype=int, required=True, minimum=1)}  # noqa: RUF012

    def per_query(self, context: Context) -> PerQuery:
        named = context.lists.counts().sum(axis=1) == 0
        return PerQuery(context.lists.weigh(rab_weights, self["cutoff"]).total(named.astype(float)))


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    register(_Untouched())
    yield
    del ir_measures.measures.registry["Untouched"]


def test_where_higher_is_fairer_it_is_said_so() -> None:
    own = er.parse("Untouched@10")
    assert good(own) == "high"
    assert direction(own) == "higher is fairer"
    assert meaning(own) == "The share of the top 10 documents that name no group."


def test_the_report_reads_a_measure_as_it_reads_itself(tmp_path: Path) -> None:
    here = demo.folder()
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    found = er.audit(runs, ["Untouched@10", "ARaB@10"], docs=here / "docs.tsv", confidence=None)
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Higher is fairer." in page and "Lower is fairer." not in page
    said = " ".join(finding.text for finding in found.findings)
    assert "Untouched@10" in said


class _Silent(_Untouched):
    __name__ = NAME = "Silent"
    GOOD = None


class _Puzzling(_Untouched):
    __name__ = NAME = "Puzzling"
    MEANING = "The share of {whom}."


@pytest.mark.parametrize(
    ("measure", "why"), [(_Silent, "where good values lie"), (_Puzzling, "MEANING may hold")]
)
def test_a_measure_that_does_not_say_what_it_is_is_refused_at_once(
    measure: type[BiasMeasure], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        register(measure())
    assert measure.NAME not in ir_measures.measures.registry


def test_every_measure_of_the_package_says_where_good_values_lie() -> None:
    ours = [m for m in ir_measures.measures.registry.values() if isinstance(m, BiasMeasure)]
    assert len(ours) > 15
    assert {good(m) for m in ours} == {"zero", "high", "low", "one"}
    assert good(er.nDCG @ 10) == "high"
