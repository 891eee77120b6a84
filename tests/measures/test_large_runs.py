"""Runs that are too large to be held are measured in parts: the same numbers, in less memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from evenrank import demo
from evenrank.data import large_runs, tables
from evenrank.errors import InputError
from evenrank.measures.evaluate import measure

DATA = demo.folder()
MEASURES = ["ARaB@10", "abs(RaB@5)", "NFaiRR@10", "rKL@20", "Exposure@10", "nDCG@10", "RR@10", "AP"]


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large, and parts hold some twenty queries."""
    monkeypatch.setattr(large_runs, "LARGE", 1)
    monkeypatch.setattr(large_runs, "_ROWS", 500)


def _scattered(path: Path) -> Path:
    lines = (DATA / "bm25.run").read_text().splitlines()
    random.Random(4).shuffle(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


def _facts(found: er.Measurements) -> dict[str, Any]:
    content = found.to_dict(per_query=True)
    del content["provenance"]
    return dict(_leaves(content))


def _leaves(content: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value; numbers to 12 digits, since sums of lists of one length are added up in another order."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from _leaves(value, f"{place}/{key}")
    else:
        yield place, float(f"{content:.12g}") if isinstance(content, float) else content


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("missing", ["error", "zero", "skip"])
def test_a_large_run_has_the_values_of_one_that_is_held(
    tmp_path: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch, scattered: bool, missing: str
) -> None:
    run = _scattered(tmp_path / "bm25.run") if scattered else DATA / "bm25.run"
    docs = tables.docs(DATA / "docs.tsv")
    if missing != "error":  # a collection that lacks some documents
        docs = tables.docs(docs.frame().head(400))
    given = {
        "tally": er.tally(docs),
        "qrels": DATA / "qrels.txt",
        "queries": DATA / "queries.tsv",
        "genders": DATA / "genders.tsv",
        "missing": missing,
    }
    runs = {"bm25": run, "dense": DATA / "dense.run"}
    parted = _facts(measure(runs, MEASURES, **given))
    monkeypatch.setattr(large_runs, "LARGE", 1 << 40)
    held = _facts(measure(runs, MEASURES, **given))
    assert parted == held


def test_a_background_is_cut_into_the_same_parts(in_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"tally": er.tally(DATA / "docs.tsv"), "background": DATA / "dense.run"}
    parted = measure(DATA / "bm25.run", "NFaiRR@10", **given)["NFaiRR@10"]
    monkeypatch.setattr(large_runs, "LARGE", 1 << 40)
    held = measure(DATA / "bm25.run", "NFaiRR@10", **given)["NFaiRR@10"]
    assert parted.value == pytest.approx(held.value, rel=1e-12)


def test_a_repeated_document_is_named_with_its_lines(tmp_path: Path, in_parts: None) -> None:
    lines = (DATA / "bm25.run").read_text().splitlines()
    run = tmp_path / "twice.run"
    run.write_text("\n".join([*lines, lines[6]]) + "\n")
    with pytest.raises(InputError, match="repeats line 7") as raised:
        measure(run, "ARaB@10", tally=er.tally(DATA / "docs.tsv"))
    assert raised.value.line == len(lines) + 1


def test_a_run_of_another_collection_is_refused_as_a_whole_only(tmp_path: Path, in_parts: None) -> None:
    tally = er.tally({"another": "she said"})
    for missing in ("zero", "skip"):
        with pytest.raises(InputError, match="lacks all of its documents"):
            measure(DATA / "bm25.run", "ARaB@10", tally=tally, missing=missing)


def test_nothing_is_left_on_disk(tmp_path: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    measure(DATA / "bm25.run", "ARaB@10", tally=er.tally(DATA / "docs.tsv"))
    bad = tmp_path / "bad.run"
    bad.write_text("q Q0 d 1 much tag\n")
    with pytest.raises(InputError, match="score is 'much'"):
        measure(bad, "ARaB@10", tally=er.tally(DATA / "docs.tsv"))
    assert [path.name for path in tmp_path.iterdir()] == ["bad.run"]
