"""`evenrank represent`, and labels in `evenrank measure`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank import demo

COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
DEMO = demo.folder()


def evenrank(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    results, targets = tmp_path / "results.tsv", tmp_path / "targets.tsv"
    rows = [
        f"{query}\t{query}-{rank}\t{rank}\t{'female' if letter == 'f' else 'male'}"
        for query, letters in {"nurse": "fffm", "welder": "mmmm", "cook": "fmmm"}.items()
        for rank, letter in enumerate(letters, 1)
    ]
    results.write_text("\n".join(["query\tdoc_id\trank\tgender", *rows]) + "\n")
    targets.write_text("query\tfemale\nnurse\t0.9\nwelder\t0.05\ncook\t0.375\n")
    return results, targets


def test_represent_prints_the_documented_json(files: tuple[Path, Path]) -> None:
    results, targets = files
    shown = json.loads(
        evenrank("represent", results, "--targets", targets, "--at", 4, "--format", "json").stdout
    )
    assert shown["at"] == 4
    assert list(shown["features"]) == ["female", "male"]
    for feature in shown["features"].values():
        assert {"MB", "SB", "MAB", "min", "max"} <= set(feature)
    # 0.9 of four is 3.6, so four: one too few. 0.375 of four is one and a half: one is right.
    assert [row for row in shown["queries"] if row["feature"] == "female"] == [
        {"query": "nurse", "feature": "female", "model": 0.75, "target": 1.0, "bias": -0.25},
        {"query": "welder", "feature": "female", "model": 0.0, "target": 0.0, "bias": 0.0},
        {"query": "cook", "feature": "female", "model": 0.25, "target": 0.25, "bias": 0.0},
    ]
    assert shown["features"]["female"]["MB"] == pytest.approx(-0.25 / 3)
    assert shown["labels"] == "given" and shown["targets"] == "targets.tsv"
    assert {"histograms", "most", "grids", "provenance"} <= set(shown)


@pytest.mark.parametrize("short", ["length", "paper"])
def test_a_cut_off_far_beyond_the_lists_takes_no_longer(files: tuple[Path, Path], short: str) -> None:
    results, targets = files
    asked = ("represent", results, "--targets", targets, "--short", short, "--format", "json", "--at")
    shown = json.loads(evenrank(*asked, 100_000_000).stdout)
    bars = shown["histograms"]["female"]
    assert sum(bar["queries"] for bar in bars) == 3 >= len(bars)
    assert [bar["bias"] for bar in bars] == sorted(bar["bias"] for bar in bars)
    if short == "length":  # each list is looked at whole, as with a cut-off of its length
        at_four = json.loads(evenrank(*asked, 4).stdout)
        assert [bar for bar in at_four["histograms"]["female"] if bar["queries"]] == bars


def test_targets_can_be_compared_side_by_side(files: tuple[Path, Path]) -> None:
    results, targets = files
    arguments = ("represent", results, "--targets", f"census={targets}", "--targets", "full", "--at", 2)
    table = evenrank(*arguments).stdout
    assert "census" in table and "full" in table and "MB@2" in table and "unbiased" in table
    shown = json.loads(evenrank(*arguments, "--format", "json").stdout)
    assert [each["name"] for each in shown["targets"]] == ["census", "full"]
    assert "called 'full'" in evenrank(*arguments, "--targets", "full", code=2).stderr


@pytest.mark.parametrize("form", ["table", "csv", "latex", "json"])
def test_results_go_to_stdout_or_to_a_file(form: str, files: tuple[Path, Path], tmp_path: Path) -> None:
    results, targets = files
    arguments = ("represent", results, "--targets", targets, "--format", form)
    shown = evenrank(*arguments).stdout
    evenrank(*arguments, "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == shown
    assert "female" in shown


def test_any_header_can_be_mapped(files: tuple[Path, Path]) -> None:
    results, targets = files
    results.write_text(results.read_text().replace("query\tdoc_id\trank\tgender", "job\timage\tplace\tsex"))
    line = evenrank("represent", results, "--targets", targets, code=2).stderr
    assert line.count("\n") == 1 and "no column query" in line
    columns = ("--query-column", "job", "--doc-column", "image", "--rank-column", "place")
    evenrank("represent", results, "--targets", targets, *columns, "--group-column", "sex")


def test_groups_inferred_from_documents_say_so() -> None:
    arguments = ("represent", DEMO / "bm25.run", "--targets", "full", "--format", "json")
    shown = json.loads(evenrank(*arguments, "--docs", DEMO / "docs.tsv").stdout)
    assert shown["labels"] == "inferred, the group with most words (lexicon rekabsaz2020)"
    assert shown["features"]["female"]["queries"] == 60 and shown["unknown"] > 0
    assert "--labels or --tally" in evenrank(*arguments, code=2).stderr


def test_measure_takes_labels_of_documents(tmp_path: Path) -> None:
    labels = tmp_path / "labels.tsv"
    ids = [line.split()[2] for line in (DEMO / "bm25.run").read_text().splitlines()]
    rows = [f"{doc_id}\t{'fm'[place % 2]}" for place, doc_id in enumerate(dict.fromkeys(ids))]
    labels.write_text("\n".join(["doc_id\tgroup", *rows]) + "\n")
    arguments = ("measure", "rKL@20", "Skew(group='female')@10", "AWRF@10", DEMO / "bm25.run")
    found = json.loads(evenrank(*arguments, "--labels", labels, "--format", "json").stdout)
    measures = found["runs"][0]["measures"]
    assert [m["queries"] for m in measures] == [59, 60, 60]  # one list has fewer than ten documents
    assert all("group labels: given" in m["notes"] for m in measures)
    assert "AWRF@10 need labels of documents" in evenrank(*arguments, code=2).stderr
    labels.write_text("doc_id\tgroup\nd1\tf\nd1\tm\n")
    assert "labels.tsv:3: repeats line 2" in evenrank(*arguments, "--labels", labels, code=2).stderr


def test_measure_compares_with_given_targets(files: tuple[Path, Path], tmp_path: Path) -> None:
    results, targets = files
    rows = [line.split("\t") for line in results.read_text().splitlines()[1:]]
    run = tmp_path / "images.run"
    run.write_text("".join(f"{query} Q0 {doc} {rank} {-int(rank)} x\n" for query, doc, rank, _ in rows))
    arguments = ("measure", "MB@4", run, "--labels", results, "--targets", targets)
    shown = json.loads(evenrank(*arguments, "--per-query", "--format", "json").stdout)
    assert shown["runs"][0]["measures"][0]["per_query"] == {"nurse": -0.25, "welder": 0, "cook": 0}
    assert "failed" in evenrank(*arguments, "--fail-if", "abs(MB@4)>0.05", code=1).stderr
    targets.write_text("query\tfemale\nnurse\t9\n")
    assert "targets.tsv:2: the target of female is '9'" in evenrank(*arguments, code=2).stderr
