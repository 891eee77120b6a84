"""Rankers trained on four sets of judgments: one plan, one folder, gone on with, and no genders in it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli.app import app
from evenrank.data import tables
from evenrank.mitigate import comparing_sets
from evenrank.mitigate.comparing_sets import SETS, Plan, compare_sets

HERE = demo.folder()

needs_torch = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("torch", "safetensors"))), reason="needs the extra 'neural'"
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, half of its queries for training; its queries of a gender are few, so others get one too."""
    folder = tmp_path_factory.mktemp("plan")
    queries, qrels = er.load(HERE).queries, er.load(HERE).qrels
    for name, rows in (("train", queries[::2]), ("test", queries[1::2])):
        kept = qrels.join(rows, on="query_id", how="semi")
        (folder / f"queries.{name}.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in rows.iter_rows()))
        (folder / f"qrels.{name}.txt").write_text("".join(f"{q} 0 {d} {r}\n" for q, d, r in kept.iter_rows()))
        labels = [f"{q}\t{('female', 'male', 'neutral')[n % 3]}\n" for n, q in enumerate(rows["query_id"])]
        (folder / f"genders.{name}.tsv").write_text("".join(labels))
    # One question was asked in training already, in other letters.
    for file, line in (
        ("queries.test.tsv", f"again\t{queries['text'][0].upper()}\n"),
        ("qrels.test.txt", f"again 0 {qrels['doc_id'][0]} 1\n"),
        ("genders.test.tsv", "again\tfemale\n"),
    ):
        with (folder / file).open("a") as out:
            out.write(line)
    text = f"""
docs = "{HERE / "docs.tsv"}"
queries = "queries.train.tsv"
qrels = "qrels.train.txt"
test_queries = "queries.test.tsv"
test_qrels = "qrels.test.txt"
genders = "genders.train.tsv"
test_genders = "genders.test.tsv"
writer = "extractive"
rankers = ["drmm"]
seeds = [0, 1]
depth = 20
neutral = 5
[settings.drmm]
epochs = 1
"""
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


@needs_torch
def test_all_of_it_is_done_once_and_tells_no_genders(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "compared"
    command = ["mitigate", "compare-sets", str(plan), "-o", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    assert {each["queries"] for each in result["sets"].values()} == {result["sets"]["matching"]["queries"]}
    found = result["rankers"]["drmm"]
    assert list(found) == ["bm25", *SETS] and result["positive"] == "male"
    for name in SETS:
        assert found[name]["gap"] == pytest.approx(found[name]["male"] - found[name]["female"])
        assert found[name]["smallest gap that would be found"] > 0
        assert set(found[name]["psychology"]) == {"affect", "cognition", "drives", "concerns"}
    counts = {"female": 10, "male": 10, "neutral": 5, "left out, asked in training": 1}
    assert result["test queries"] == counts
    assert "1 test query is a training query too" in done.output
    names = {path.name for path in out.rglob("*") if path.is_file()}
    assert not [name for name in names if "gender" in name or name in ("pairs.tsv", "added.tsv")]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("evenrank.training.trainer.train_ranker", refuse)
    again = compare_sets(Plan.read(plan), out)
    assert json.loads(json.dumps(again)) == result


@needs_torch
def test_a_folder_of_another_plan_is_refused(plan: Path, tmp_path: Path) -> None:
    work = comparing_sets._Work(Plan.read(plan), tmp_path, print)
    work.begin()
    other = plan.with_name("other.toml")
    other.write_text(plan.read_text().replace("depth = 20", "depth = 10"))
    with pytest.raises(InputError, match="another plan"):
        compare_sets(Plan.read(other), tmp_path)
    other.write_text(plan.read_text().replace("genders.test.tsv", "sub/genders.test.tsv"))
    labels = plan.parent / "sub" / "genders.test.tsv"
    labels.parent.mkdir()
    labels.write_text(plan.with_name("genders.test.tsv").read_text())
    comparing_sets._Work(Plan.read(other), tmp_path, print).begin()
    labels.write_text(labels.read_text().replace("female", "male"))
    with pytest.raises(InputError, match="another plan"):  # what was ranked was ranked for other labels
        compare_sets(Plan.read(other), tmp_path)


def test_a_setting_that_is_misspelt_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('docs = "d"\nqueris = "q"\n')
    with pytest.raises(InputError, match="did you mean 'queries'"):
        Plan.read(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text('docs = "d"\n')
    with pytest.raises(InputError, match="queries is missing"):
        Plan.read(tmp_path / "plan.toml")


def test_sets_are_cut_by_ids_alone() -> None:
    queries = tables.queries({f"q{n}": "x" for n in range(20)})
    qrels = tables.qrels({f"q{n}": {"d": 1} for n in range(20)})
    kept = comparing_sets._cut(queries, qrels, 7)
    turned = comparing_sets._cut(queries.reverse(), qrels, 7)
    assert set(kept[0]["query_id"]) == set(turned[0]["query_id"]) == set(kept[1]["query_id"])
    assert isinstance(kept[1], pl.DataFrame) and len(kept[0]) == 7


def test_predicted_genders_are_counted(plan: Path, tmp_path: Path) -> None:
    said: list[str] = []
    without = Plan.read(plan)
    work = comparing_sets._Work(replace(without, genders=None, test_genders=None), tmp_path, said.append)
    assert len(work.genders) == 30 and len(work.test)
    assert said[0].startswith("training queries: 30 of 30 queries labelled by the classifier: ")
    assert said[1].startswith("test queries: ") and " neutral" in said[1]
