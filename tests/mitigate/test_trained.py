"""Sweeps that train: by the bias that is measured, for methods that use what is trained, and said so."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.data.docs import Dataset
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run, write_run
from evenrank.measures.inputs import Inputs
from evenrank.measures.parse import parse
from evenrank.mitigate.trained import RetrainSpec, TrainingMitigation

HERE = demo.folder()
YOUNG = {"young": ["young", "child", "children", "boy", "girl"], "old": ["old", "aged", "grandmother"]}
GROUPS = {"north": "a", "south": "b"}


@pytest.fixture(scope="module")
def loaded() -> Dataset:
    return er.load(HERE)


def training(**more: Any) -> RetrainSpec:
    """A training whose files are not there: it fails if it is begun."""
    return RetrainSpec("knrm", "no-docs.tsv", "no-queries.tsv", "no-qrels.txt", run="no.run", **more)


def aligned(given: RetrainSpec, bias: str, **inputs: Any) -> TrainingMitigation:
    opened = Inputs.open({"the run": HERE / "bm25.run"}, **inputs)
    return TrainingMitigation.measured_by(parse(bias), "negatives", given, opened, None)


def test_rankers_are_trained_by_the_words_and_the_bias_that_are_measured(loaded) -> None:
    young = er.tally(loaded.docs, YOUNG)
    made = aligned(training(), "ARaB(magnitude='boolean')@10", tally=young)
    assert str(made.bias) == "ARaB(magnitude='boolean')@10"
    assert made.lexicon.hash == young.lexicon.hash
    usual = aligned(training(), "NFaiRR@10", tally=er.tally(loaded.docs))
    assert (str(usual.bias), usual.lexicon.name, usual.labels) == ("NFaiRR@10", "rekabsaz2020", None)
    grouped = aligned(training(), "AWRF(target='equal')@10", tally=young, labels=GROUPS)
    assert (grouped.bias, grouped.lexicon, grouped.labels) == ("label", None, GROUPS)
    inferred = aligned(training(), "AWRF(target='equal')@10", tally=young)
    assert (inferred.bias, inferred.lexicon.hash, inferred.labels) == ("label", young.lexicon.hash, None)


def test_a_training_that_reads_another_dictionary_is_refused() -> None:
    given = {"docs": {"a": "he"}, "dictionary": {"female": ["she"], "male": ["he"]}}
    with pytest.raises(er.InputError, match="training reads the dictionary open and no other"):
        aligned(training(), "LIWC@10", tally=er.tally({"a": "he"}), **given)


def test_a_sweep_trains_by_the_words_of_its_tally(loaded, monkeypatch) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    seen = []

    def apply(self: TrainingMitigation, _: float) -> pl.DataFrame:
        seen.append((self.lexicon.hash, str(self.bias)))
        return self.run

    monkeypatch.setattr(TrainingMitigation, "apply", apply)
    monkeypatch.setattr(TrainingMitigation, "check", lambda _: None)
    young = er.tally(loaded.docs, YOUNG)
    given = {"qrels": loaded.qrels, "queries": loaded.queries, "strengths": [1.0], "resamples": 10}
    er.sweep(HERE / "bm25.run", young, method="negatives", training=training(), **given)
    assert seen == [(young.lexicon.hash, "ARaB@10")] * 2


class Own:
    """A mitigation of a user's own, called like one of ours that re-ranks."""

    name = "penalty"

    def strengths(self) -> list[float]:
        return [0.0]

    def apply(self, strength: float) -> pl.DataFrame:
        return read_run(HERE / "bm25.run")


@pytest.mark.parametrize("own", [False, True])
def test_a_training_that_no_method_uses_is_refused(loaded, tmp_path, own: bool) -> None:
    method, index = (Own(), None) if own else ("feedback", er.index(loaded.docs, tmp_path / "index"))
    given = {"qrels": loaded.qrels, "queries": loaded.queries, "index": index, "training": training()}
    name = "penalty" if own else "feedback"
    with pytest.raises(er.InputError, match=f"{name} trains no ranker; leave the training out"):
        er.sweep(HERE / "bm25.run", er.tally(loaded.docs), method=method, **given)


def test_the_command_refuses_to_train_for_feedback(tmp_path, monkeypatch, capsys) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    from evenrank.cli import main

    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["--docs", "docs.tsv", "--qrels", "qrels.txt", "--queries", "queries.tsv", "--index", "idx"]
    given += ["--method", "feedback", "--train", "knrm", "--train-queries", "queries.tsv"]
    assert main(["mitigate", "sweep", *given, "--run", "bm25.run"]) == 2
    assert "feedback trains no ranker; leave the training out" in capsys.readouterr().err


def test_a_sweep_that_trains_says_what_it_begins_with(tmp_path, monkeypatch, capsys) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    from evenrank.cli import main

    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    queries = (tmp_path / "queries.tsv").read_text().splitlines()
    (tmp_path / "train.tsv").write_text("\n".join(queries[:40]) + "\n")
    (tmp_path / "test.tsv").write_text("\n".join(queries[40:]) + "\n")
    test = read_queries("test.tsv")["query_id"].implode()
    write_run(read_run("bm25.run").filter(pl.col("query_id").is_in(test)), "test.run", name="x")
    given = ["mitigate", "sweep", "--run", "test.run", "--queries", "test.tsv", "--docs", "docs.tsv"]
    given += ["--qrels", "qrels.txt", "--train", "knrm", "--train-queries", "train.tsv"]
    given += ["--train-run", "bm25.run", "--resamples", "20", "--method", "negatives", "--strengths", "1"]
    for each in ("epochs=1", "dimension=8", "depth=10", "batch=32"):
        given += ["--set", each]
    said = "none: the run as knrm re-ranks it after plain training, not as it was given"
    assert main(given) == 0
    assert said in capsys.readouterr().out.splitlines()
    assert main([*given, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["trained"] == "knrm"
