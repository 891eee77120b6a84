"""Inputs are opened once: documents are read no more often than there is a reason to."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from evenrank import demo
from evenrank.data.docs import Docs, open_docs
from evenrank.data.schema import Block
from evenrank.errors import InputError
from evenrank.measures.inputs import Inputs

HERE = demo.folder()
RUNS = {name: HERE / f"{name}.run" for name in ("bm25", "dense")}


class Counting:
    """A collection that counts the passes over it."""

    def __init__(self, docs: Docs) -> None:
        self.passes = 0
        self._blocks: Callable[[], Iterator[Block]] = docs.blocks
        docs.blocks = self
        self.docs = docs

    def __call__(self) -> Iterator[Block]:
        self.passes += 1
        return self._blocks()


@pytest.fixture
def counting() -> Counting:
    return Counting(er.load(HERE).docs)


def test_an_audit_reads_the_documents_at_most_twice(counting: Counting) -> None:
    more = {"queries": HERE / "queries.tsv", "qrels": HERE / "qrels.txt", "genders": HERE / "genders.tsv"}
    found = er.audit(RUNS, docs=counting.docs, **more, resamples=50)
    assert {"GSR", "LIWC"} <= {measure.NAME for measure in found.measures}
    assert found.psychology is not None and found.attributions and found.leaning[0].passages
    assert counting.passes == 2


def test_with_a_tally_an_audit_reads_them_once(counting: Counting) -> None:
    tally = er.tally(HERE / "docs.tsv")
    er.audit(RUNS, docs=counting.docs, tally=tally, queries=HERE / "queries.tsv", confidence=None)
    assert counting.passes == 1


def test_measures_that_need_texts_share_a_pass(counting: Counting) -> None:
    more: dict[str, Any] = {"queries": HERE / "queries.tsv", "confidence": None}
    er.measure(RUNS, ["GSR@10", "LIWC@10", "ARaB@10"], docs=counting.docs, explain=True, **more)
    assert counting.passes == 2


def test_kept_texts_are_those_of_the_collection(counting: Counting) -> None:
    kept, plain = counting.docs.shared(), er.load(HERE).docs
    ids = [row["doc_id"] for row in plain.frame().head(40).to_dicts()]
    kept.expect(ids[:20])
    assert kept.texts(ids[10:30]) == plain.texts(ids[10:30])
    assert kept.texts(ids[:10]) == plain.texts(ids[:10])
    assert counting.passes == 1
    assert kept.texts(["no such document"]) == {}
    kept.forget()
    assert kept.texts(ids[:5]) == plain.texts(ids[:5])
    assert counting.passes == 3


def test_an_unknown_input_is_named() -> None:
    with pytest.raises(TypeError, match="dcos"):
        er.measure(RUNS, "ARaB@10", dcos=HERE / "docs.tsv")  # type: ignore[call-arg]


def test_what_comes_with_the_evaluation_cannot_be_bound() -> None:
    with pytest.raises(InputError, match="bind takes no qrels"):
        er.bind("ARaB@10", docs=HERE / "docs.tsv", qrels=HERE / "qrels.txt")


def test_what_is_not_asked_for_is_not_made() -> None:
    inputs = Inputs.open(RUNS, docs=HERE / "docs.tsv")
    assert "tally" not in inputs.__dict__
    assert inputs.tally is inputs.tally


def test_only_queries_that_were_asked_count() -> None:
    """Judgments of sixty queries and one that is asked: the mean is over one, and the rest is counted."""
    queries = dict(er.load(HERE).queries.iter_rows())
    asked = dict(list(queries.items())[:2])
    given = {"docs": HERE / "docs.tsv", "qrels": HERE / "qrels.txt", "confidence": None}
    every = er.measure(RUNS["bm25"], ["ARaB@10", "nDCG@10"], queries=queries, **given)
    some = er.measure(RUNS["bm25"], ["ARaB@10", "nDCG@10"], queries=asked, **given)
    for measure in ("ARaB@10", "nDCG@10"):
        per_query = dict(zip(every[measure].query_ids, every[measure].values, strict=True))
        assert some[measure].value == pytest.approx(sum(per_query[query] for query in asked) / 2)
        assert some[measure].left_out == {"not among the queries given": 58}
    assert any("58 ranked or judged queries" in warning for warning in some.warnings)
    assert not any("not among" in warning for warning in every.warnings)


def test_documents_of_an_iterator_stay_readable_until_nothing_reads_them() -> None:
    rows = [("d1", "he said"), ("d2", "she said so")]
    found = er.measure({"q": {"d1": 2.0, "d2": 1.0}}, "RaB(magnitude='count')@1", docs=iter(rows))
    assert found["RaB(magnitude='count')@1"].value == 1.0


def test_the_temporary_file_of_an_iterator_is_deleted_with_its_last_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    batches = open_docs(iter([("d1", "he said")])).shared().batches()
    assert next(batches).num_rows == 1
    batches.close()
    del batches
    gc.collect()
    assert not list(tmp_path.iterdir())


SHORT = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d3": 3.0, "d1": 2.0, "d2": 1.0}}
GROUPS = {"d1": "female", "d2": "male", "d3": "male"}


@pytest.mark.parametrize(
    "measure", ["MB@3", "MB@10", "abs(MB@10)", "Skew@3", "MinSkew@5", "MB(target='list')@3"]
)
def test_what_is_zero_for_any_ranking_is_refused(measure: str) -> None:
    with pytest.raises(
        InputError, match=r"so it is 0 for any ranking; retrieve more documents, .* or give targets"
    ):
        er.measure(SHORT, measure, labels=GROUPS)
    assert er.measure(SHORT, "MB@1", labels=GROUPS)["MB@1"].value != 0
    targets = {"q1": {"female": 0.9}, "q2": {"female": 0.9}}
    assert er.measure(SHORT, "MB@3", labels=GROUPS, targets=targets)["MB@3"].value != 0
    assert er.measure(SHORT, "MB(target='equal')@3", labels=GROUPS)[0].value is not None


def test_a_list_compared_with_itself_needs_a_cutoff() -> None:
    with pytest.raises(InputError, match=r"MB compares the top of each list.*as in MB@10, or give targets"):
        er.measure(SHORT, "MB", labels=GROUPS)


def test_short_lists_among_longer_ones_are_counted() -> None:
    run = {**SHORT, "q3": {"d1": 2.0, "d2": 1.0}}
    notes = er.measure(run, "MB@2", labels=GROUPS)["MB@2"].notes
    assert "1 list is no longer than the cut-off: the value is 0 whatever they show" in notes
    assert not any("cut-off" in note for note in er.measure(SHORT, "MB@2", labels=GROUPS)["MB@2"].notes)


def test_a_gate_on_a_value_that_is_always_zero_does_not_pass(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 for any ranking"):
        er.audit(SHORT, ["MB@10"], labels=GROUPS, fail_if="abs(MB@10)>0.1")


def test_genders_can_be_predicted_in_python_too() -> None:
    docs, queries = {"d1": "he he she", "d2": "she"}, {"1": "who is marie curie", "2": "python list sort"}
    run = {"1": {"d1": 2.0, "d2": 1.0}, "2": {"d2": 2.0}}
    found = er.measure(run, "RaB@2", docs=docs, queries=queries, genders="predict")
    assert found["RaB@2"].queries == 1 and found["RaB@2"].left_out == {"labelled female": 1}
    assert any(
        "guesses of the shipped classifier, not labels by people (2 of 2 queries labelled" in warning
        for warning in found.warnings
    )
    audited = er.audit(run, ["RaB@2"], docs=docs, queries=queries, genders="predict")
    assert audited.measured["RaB@2"].value == found["RaB@2"].value
    assert sum("guesses" in warning for warning in audited.warnings) == 1
    with pytest.raises(InputError, match="reads the texts of the queries; give queries"):
        er.measure(run, "RaB@2", docs=docs, genders="predict")
