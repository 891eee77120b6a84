"""Of runs that are too large to be held only the top is kept: the same numbers, in less memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import evenrank as er
from evenrank import demo
from evenrank.data import runs
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures import inputs
from evenrank.measures.evaluate import depth_to_read, measure

DATA = demo.folder()
TOP = ["ARaB@10", "abs(RaB@5)", "NFaiRR@10", "AWRF(target='equal')@10", "nDCG@10", "RR@10"]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large, and rows below the depth are dropped after every hundred or so."""
    monkeypatch.setattr(inputs, "LARGE", 1)
    monkeypatch.setattr(runs, "_PIECE", 100)


def _scattered(path: Path) -> Path:
    lines = (DATA / "bm25.run").read_text().splitlines()
    random.Random(4).shuffle(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("ties", ["order", "expected"])
@pytest.mark.parametrize("measures", [TOP[:2], TOP, [*TOP, "rKL@20", "AP"]])
def test_a_large_run_has_the_values_of_one_that_is_held(
    tmp_path: Path,
    large: None,
    monkeypatch: pytest.MonkeyPatch,
    scattered: bool,
    ties: str,
    measures: list[str],
) -> None:
    run = _scattered(tmp_path / "bm25.run") if scattered else DATA / "bm25.run"
    given = {
        "tally": er.tally(DATA / "docs.tsv"),
        "qrels": DATA / "qrels.txt",
        "queries": DATA / "queries.tsv",
        "genders": DATA / "genders.tsv",
        "ties": ties,
    }
    runs = {"bm25": run, "dense": DATA / "dense.run"}
    top = measure(runs, measures, **given).to_dict(per_query=True)
    monkeypatch.setattr(inputs, "LARGE", 1 << 40)
    whole = measure(runs, measures, **given).to_dict(per_query=True)
    assert top["runs"] == whole["runs"]


def test_only_the_top_is_held(tmp_path: Path, large: None) -> None:
    held = read_run(DATA / "bm25.run", depth=5)
    whole = read_run(DATA / "bm25.run")
    assert len(held) < len(whole) / 3
    assert held.filter(held["rank"] <= 5).equals(whole.filter(whole["rank"] <= 5))


def test_measures_say_how_far_down_runs_are_read() -> None:
    def depth(*measures: str, missing: str = "error") -> int | None:
        return depth_to_read([er.parse(each) for each in measures], missing)

    assert depth("ARaB@10", "RaB@20", "nDCG@5") == 20
    assert depth("NFaiRR@10") == 200  # its background
    assert depth("ARaB@10", missing="skip") is None  # others move up
    assert depth("ARaB@10", "P(judged_only=True)@10") is None
    assert depth("MB@10") is depth("AP") is depth("Skew@10") is None


def test_a_repeated_document_is_named_with_its_lines(tmp_path: Path, large: None) -> None:
    lines = (DATA / "bm25.run").read_text().splitlines()
    run = tmp_path / "twice.run"
    run.write_text("\n".join([*lines, lines[6]]) + "\n")
    with pytest.raises(InputError, match="repeats line 7") as raised:
        measure(run, "ARaB@10", tally=er.tally(DATA / "docs.tsv"))
    assert raised.value.line == len(lines) + 1


def test_a_run_of_another_collection_is_refused(large: None) -> None:
    tally = er.tally({"another": "she said"})
    for missing in ("zero", "skip"):
        with pytest.raises(InputError, match="lacks all of its documents"):
            measure(DATA / "bm25.run", "ARaB@10", tally=tally, missing=missing)
