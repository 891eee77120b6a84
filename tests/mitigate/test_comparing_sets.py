"""Rankers trained on four sets of judgments: one plan, one folder, gone on with, and no genders in it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli.app import app
from evenrank.data.read import read_genders, read_qrels, read_queries
from evenrank.mitigate import comparing_sets
from evenrank.mitigate.comparing_plan import FILES, Plan
from evenrank.mitigate.comparing_sets import SETS, compare_sets

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


@pytest.mark.slow
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
    assert result["sets"]["unbalanced"]["unlike unbalanced"] == 0 < result["sets"]["generation"]["generated"]
    found = result["rankers"]["drmm"]
    assert list(found) == ["bm25", *SETS] and result["positive"] == "male"
    for name in SETS:
        assert found[name]["gap"] == pytest.approx(found[name]["male"] - found[name]["female"])
        assert found[name]["smallest gap that would be found"] > 0
        assert set(found[name]["psychology"]) == {"affect", "cognition", "drives", "concerns"}
    counts = {"female": 10, "male": 10, "neutral": 5, "neutral, nothing found": 0}
    assert result["test queries"] == {**counts, "left out, asked in training": 1}
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


@pytest.mark.parametrize(
    "line",
    ['ratio = "a"', "ratio = 0", "ratio = 1.5", 'answerable = "a"', "answerable = -1", 'neutral = "x"',
     "neutral = -1", "genders = 3", "writer = 3", "sample = 0", "per_document = 0", "depth = 0",
     'rankers = "drmm"', "rankers = []", "rankers = [3]", 'seeds = ["a"]', "seeds = [-1]", "seeds = [true]",
     "write_genders = 1", "settings = 3", "backend = 3", "settings = {knrm = 3}"],
)  # fmt: skip
def test_settings_of_another_kind_are_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    given = "".join(f'{name} = "x"\n' for name in FILES[:5])
    path.write_text(f"{given}{line}\n")
    with pytest.raises(InputError, match=rf"plan\.toml: {line.split()[0]} is .*; it must be"):
        Plan.read(path)


def test_a_backend_that_is_not_known_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("".join(f'{name} = "x"\n' for name in FILES[:5]) + 'backend = "onyx"\n')
    with pytest.raises(InputError, match=r"plan\.toml: backend is 'onyx'; choose one of: torch, onnx"):
        Plan.read(path)


@needs_torch
def test_the_backend_of_a_plan_reads_the_test_queries_of_transformers(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.rankers.neural import reranking

    asked: list[Any] = []
    monkeypatch.setattr("evenrank.training.trainer.train_ranker", lambda *_, **__: None)
    monkeypatch.setattr(reranking, "rerank", lambda *given, **how: asked.append(how) or given[1])
    some = replace(Plan.read(plan), backend="onnx-int8", rankers=("drmm", "cross-encoder"))
    work = comparing_sets._Work(some, tmp_path, print)
    for ranker in some.rankers:
        work.run("unbalanced", ranker, 0)
    assert asked == [{"depth": 20}, {"depth": 20, "backend": "onnx-int8"}]


@pytest.mark.parametrize("line", ['rankers = ["knrn"]', "settings = {knrn = {epochs = 1}}"])
def test_rankers_that_are_not_known_are_refused_at_once(line: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("".join(f'{name} = "x"\n' for name in FILES[:5]) + line + "\n")
    with pytest.raises(InputError, match="no ranker 'knrn' to train; did you mean 'knrm'"):
        Plan.read(path)


@needs_torch
def test_settings_of_a_ranker_and_a_broken_plan_are_refused_before_any_work(
    plan: Path, tmp_path: Path
) -> None:
    other = plan.with_name("settings.toml")
    other.write_text(plan.read_text().replace("epochs = 1", "epocs = 1"))
    with pytest.raises(InputError, match=r"settings\.toml: drmm has no setting 'epocs'"):
        Plan.read(other)
    wrong = replace(Plan.read(plan), settings={"drmm": {"epocs": 1}})
    with pytest.raises(InputError, match="drmm has no setting 'epocs'"):
        compare_sets(wrong, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(InputError, match=r"plan\.json: not a plan that was written here"):
        compare_sets(Plan.read(plan), tmp_path)


def changed(plan: Path, name: str, content: str) -> Plan:
    """The plan with another file in the place of one."""
    path = plan.with_name(f"other.{name}.txt")
    path.write_text(content)
    return replace(Plan.read(plan), **{name: str(path)})


@pytest.mark.parametrize(
    "name", ["queries", "qrels", "genders", "test_queries", "test_qrels", "test_genders"]
)
def test_an_input_that_cannot_be_read_is_named(name: str, plan: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothere: no such file"):
        compare_sets(replace(Plan.read(plan), **{name: "nothere"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("gender", ["female", "male"])
@pytest.mark.parametrize("name", ["genders", "test_genders"])
def test_labels_of_one_gender_are_refused_before_any_work(
    name: str, gender: str, plan: Path, tmp_path: Path
) -> None:
    labels = read_genders(getattr(Plan.read(plan), name)).filter(pl.col("gender") != gender)
    other = changed(plan, name, "".join(f"{q}\t{g}\n" for q, g in labels.iter_rows()))
    what = "test" if name == "test_genders" else "training"
    with pytest.raises(InputError, match=rf"other\.{name}\.txt: no {what} query .* is {gender};"):
        compare_sets(other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_neutral_queries_for_which_nothing_is_found_have_no_lean(plan: Path, tmp_path: Path) -> None:
    given = Plan.read(plan)
    labels = read_genders(given.test_genders)
    neutral = set(labels.filter(pl.col("gender") == "neutral")["query_id"])
    asked = read_queries(given.test_queries)
    rows = [f"{q}\t{'xyzzy' if q in neutral else text}\n" for q, text in asked.iter_rows()]
    work = comparing_sets._Work(changed(plan, "test_queries", "".join(rows)), tmp_path / "out", print)
    assert work.neutral == [] and work._lean([work.first]) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('rankers = ["knrm", "knrm"]', "rankers names 'knrm' twice"),
        ("seeds = [1, 2, 1]", "seeds names 1 twice"),
        ('rankers = ["knrm"]\nsettings = {drmm = {epochs = 1}}', "settings of 'drmm', but rankers does not"),
    ],
)
def test_what_a_plan_would_not_use_is_refused(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("".join(f'{name} = "x"\n' for name in FILES[:5]) + line + "\n")
    with pytest.raises(InputError, match=said):
        Plan.read(path)


def test_a_folder_with_files_of_others_is_refused(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "made.tsv").write_text("somebody's own\n")
    with pytest.raises(InputError, match=r"is not empty, and holds no plan\.json; choose another folder"):
        compare_sets(Plan.read(plan), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["made.tsv"]


def test_the_table_of_a_comparison_is_csv_where_asked_for_and_explains_a_dash() -> None:
    from evenrank.cli.common import Format
    from evenrank.cli.mitigate.training_sets import _compared

    found = {
        "male": 0.5, "female": 0.25, "gap": 0.25, "p": 0.5, "smallest gap that would be found": None,
        "ARaB@10, neutral queries": None,
    }  # fmt: skip
    counts = {"female": 1, "male": 2, "neutral": 3, "neutral, nothing found": 1}
    result = {
        "rankers": {"drmm": {"bm25": found}},
        "test queries": {**counts, "left out, asked in training": 0},
    }
    lines = _compared(result, Format.csv).splitlines()
    assert lines[0].startswith("ranker,trained on,male") and lines[1].startswith("bm25,,0.500,0.250,+0.250")
    shown = _compared(result, Format.table)
    assert "2 neutral ones" in shown and "–: cannot be known" in shown


def test_the_least_p_of_unequal_sides_is_that_of_one_split() -> None:
    sides = [np.array([0.9, 0.8]), np.array([0.1, 0.15, 0.2, 0.3, 0.12])]
    assert er.stats.permutation(*sides).p == pytest.approx(1 / 21)
    assert comparing_sets._smallest(sides) is not None


def test_no_power_is_told_where_nothing_could_be_found() -> None:
    few, flat = np.array([0.1, 0.5, 0.3]), np.full(20, 0.5)
    assert comparing_sets._smallest([few, few]) is None  # p of 3 against 3 is never below 0.1
    assert comparing_sets._smallest([flat, flat]) is None
    assert comparing_sets._smallest([few[:1], flat]) is None
    assert comparing_sets._smallest([np.tile(few, 2), flat]) is not None


def test_the_smallest_gap_is_found_in_four_of_five_trials() -> None:
    rng = np.random.default_rng(0)
    sides = [rng.normal(size=8) for _ in range(2)]
    smallest = comparing_sets._smallest(sides)
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    assert smallest is not None and 2.8 * error < smallest < 3.2 * error


def test_a_gap_that_turns_has_grown_if_it_is_larger() -> None:
    def table(male: float, female: float) -> pl.DataFrame:
        rows = [
            {"query_id": f"{gender}{n}", "gender": gender, "value": mean + 0.001 * (n % 3)}
            for gender, mean in (("male", male), ("female", female))
            for n in range(12)
        ]
        return pl.DataFrame(rows)

    change = comparing_sets._change(table(0.5, 0.4), table(0.3, 0.6))
    assert change["gap"] == pytest.approx(-0.4)
    assert change["size"]["difference"] == pytest.approx(0.2)
    assert change["size"]["low"] > 0


def test_queries_of_a_set_that_are_other_than_in_the_unbalanced_one_are_counted() -> None:
    base = read_qrels({f"q{n}": {"a": 1, "b": 1} for n in range(10)})
    assert comparing_sets._unlike(base, base) == 0
    assert comparing_sets._unlike(base.filter(pl.col("query_id") != "q3"), base) == 1
    fewer = base.filter(~((pl.col("query_id") == "q3") & (pl.col("doc_id") == "b")))
    assert comparing_sets._unlike(fewer, base) == 1


def test_sets_are_cut_by_ids_alone() -> None:
    queries = read_queries({f"q{n}": "x" for n in range(20)})
    qrels = read_qrels({f"q{n}": {"d": 1} for n in range(20)})
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
