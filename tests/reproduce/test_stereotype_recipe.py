"""The recipe of GSR: systems with and without word vectors, two sets of vectors, and claims with tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.reproduce.gsr_toy import gsr_parity
from evenrank.reproduce.page import alike, correlated
from evenrank.reproduce.recipes import RECIPES
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.vectors import DEFINITION, vocabulary

DATA = demo.folder()


def small_vectors(path: Path, seed: int) -> Path:
    """Eight dimensions, the first of which is gender."""
    rng = np.random.default_rng(seed)
    lines = {word: rng.normal(size=8) for word in vocabulary(DATA / "docs.tsv", min_count=1)}
    for pair in DEFINITION:
        for word, sign in zip(pair, (2.0, -2.0), strict=True):
            lines[word.lower()] = np.array([sign, *rng.normal(size=7) * 0.3])
    rows = [f"{word} {' '.join(f'{x:.4f}' for x in values)}" for word, values in lines.items()]
    path.write_text(f"{len(rows)} 8\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("gsr")
    first, second = (small_vectors(folder / f"{seed}.txt", seed) for seed in (1, 2))
    options = [f"vectors={first}", f"second={second}", "bins=3", "stop_words=indri"]
    given = [part for option in options for part in ("--set", option)]
    command = ["reproduce", "gsr", *given, "--run", f"drmm={DATA / 'bm25.run'}", "--quick", "-o", str(folder)]
    assert main(command) == 0
    assert (folder / "gsr.html").exists()
    assert main([*command[:2], "--settings", str(folder / "gsr.toml"), "-o", str(folder)]) == 0
    return json.loads((folder / "gsr.json").read_text())


def test_all_systems_are_measured_with_both_vectors(page: dict) -> None:
    systems = page["facts"]["systems"]
    assert set(systems.values()) == {"lexical", "semantic", "given"}
    assert len([name for name in systems if name.startswith(("w2v", "second"))]) == 9
    for by in page["facts"]["gsr"].values():
        assert set(by["rows"]) == {*systems, "perfect", "random"}
        perfect = by["rows"]["perfect"]
        assert perfect["relative"] == (pytest.approx(0) if perfect["GSR"] > 0 else None)
        for row in by["rows"].values():
            parts = row["stereotypical"] + row["counter-stereotypical"]
            assert parts == pytest.approx(row["GSR"])


def test_the_given_run_of_bm25_is_bm25(page: dict) -> None:
    effectiveness = next(table for table in page["tables"] if table["title"].startswith("Table 3"))
    assert [row[0] for row in effectiveness["rows"]].count("drmm") == 1
    assert page["facts"]["queries"] == 60


def test_every_claim_says_what_it_rests_on(page: dict) -> None:
    told = {claim["says"]: claim for claim in page["claims"]}
    assert len(told) == len(page["claims"]) > 15
    for claim in told.values():
        if claim["holds"] != "cannot tell":
            assert claim["p"] is not None and claim["n"] is not None and claim["low"] is not None
    assert told["rankers reinforce more when measured with the vectors that they rank with"]["p"] is None


def test_figure_12_has_the_bins_that_were_asked_for(page: dict) -> None:
    assert all(len(one["bins"]) == 3 for one in page["facts"]["direct"].values())


def test_without_vectors_the_page_says_so() -> None:
    settings = Settings(queries=30, resamples=100).completed(RECIPES["gsr"].options)
    page = RECIPES["gsr"].run(settings, Steps(None, lambda _: None))
    assert any("no word vectors" in claim.found for claim in page.claims)
    with pytest.raises(InputError, match="must be a file"):
        RECIPES["gsr"].run(Settings(options={"vectors": "distil"}), Steps(None, lambda _: None))


def test_parity_of_even_draws_is_lower() -> None:
    by = {draw: gsr_parity(draws=1000, draw=draw).r for draw in ("uniform", "dirichlet")}
    assert by["uniform"] == pytest.approx(0.76, abs=0.03)
    assert by["dirichlet"] > 0.93


@pytest.mark.parametrize(
    ("low", "high", "holds"), [(-0.01, 0.02, True), (-0.05, 0.2, None), (0.12, 0.3, False)]
)
def test_likeness_is_held_within_a_margin_and_refuted_beyond(
    low: float, high: float, holds: bool | None
) -> None:
    change = {"difference": (low + high) / 2, "low": low, "high": high, "p": 0.5, "n": 9}
    assert alike("a is b", "a", change | {"low 90": low, "high 90": high}, 0.1).holds is holds


def test_a_correlation_decides_by_its_sign() -> None:
    found = {"r": 0.5, "p": 0.01, "low": 0.2, "high": 0.7, "n": 30}
    assert correlated("x", found).holds is True
    assert correlated("x", found, positive=False).holds is False
    assert correlated("x", {**found, "p": 0.2}).holds is None
    assert correlated("x", {"r": None, "n": 2}).holds is None


def test_a_kept_run_is_made_anew_where_it_is_gone_and_refused_where_it_was_changed(tmp_path: Path) -> None:
    made: list[int] = []

    def work() -> pl.DataFrame:
        made.append(1)
        return tables.run({"q": {"a": 2.0, "b": 1.0}})

    steps = Steps(tmp_path, lambda _: None)
    first = steps.run("x", {}, work)
    assert steps.run("x", {}, work).equals(first)
    assert len(made) == 1
    path = tmp_path / "steps" / "runs" / "x.run.gz"
    path.unlink()
    assert steps.run("x", {}, work).equals(first)
    assert len(made) == 2
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(InputError, match="was changed since it was written; remove it"):
        steps.run("x", {}, work)
