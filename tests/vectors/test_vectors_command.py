"""`evenrank vectors …`, as typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evenrank.cli.vectors import app
from evenrank.errors import InputError, InputWarning
from evenrank.vectors import Genderedness, Vectors, genderedness, load, save


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def stored(planted: Vectors, tmp_path: Path) -> Path:
    save(planted, tmp_path / "planted.bin")
    return tmp_path / "planted.bin"


def test_direction_writes_the_table_and_prints_the_variance(stored: Path, tmp_path: Path) -> None:
    found = json.loads(
        run("direction", stored, "-o", tmp_path / "t.parquet", "--top", "3", "--format", "json")
    )
    assert sum(found["explained"]) == pytest.approx(1) and len(found["leaning"]["positive"]) == 3
    table = Genderedness.read(tmp_path / "t.parquet")
    assert np.array_equal(table.values, genderedness(stored).values)
    assert found["positive"] == "female" and found["leaning"]["positive"][0]["g"] > 0
    shown = run("direction", stored)
    assert "variance explained" in shown and "positive is toward he" in shown
    word, g = found["leaning"]["positive"][0].values()
    assert f"{word} {-g:+.3f}" in " ".join(shown.split())
    with pytest.raises(InputError, match="parquet"):
        run("direction", stored, "-o", tmp_path / "t.csv")


def test_the_command_makes_the_shipped_table(shared: Path, tmp_path: Path) -> None:
    run("direction", shared / "data" / "vectors" / "glove-100d.bin.gz", "-o", tmp_path / "t.parquet")
    made, shipped = Genderedness.read(tmp_path / "t.parquet"), genderedness()
    assert made.words == shipped.words
    assert np.allclose(made.values, shipped.values, atol=2e-7)


def test_direction_takes_other_pairs_and_warns_of_missing_ones(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("he she\nking queen\nman woman\nlord dame\n")
    with pytest.warns(InputWarning, match="pairs left out.*lord–dame"):
        assert "positive is toward she" in run("direction", stored, "--pairs", tmp_path / "pairs.txt")


@pytest.mark.parametrize("method", ["hard", "strong", "leace"])
def test_debias_writes_vectors_and_tests_them(stored: Path, tmp_path: Path, method: str) -> None:
    output = tmp_path / "d.bin"
    found = json.loads(
        run("debias", stored, "-o", output, "--method", method, "--words", 50, "--format", "json")
    )
    assert found["method"] == method and found["before"]["linear"]["value"] > 0.9
    assert set(found["after"]) == {"clustering", "linear", "kernel", "neighbours", "words"}
    assert len(load(output)) == len(load(stored))
    assert "clustering" in run("debias", stored, "-o", output, "--method", method, "--words", 50)


def test_associations_need_nothing() -> None:
    found = json.loads(run("associations", "--format", "json"))["associations"]
    assert [each["name"] for each in found] == ["agency–communion", "science–arts", "career–family", "jobs"]
    assert [each["male"] < 0 for each in found if each["name"] == "jobs"] == [True]
    jobs = next(line for line in run("associations").splitlines() if line.startswith("jobs"))
    assert f"{-found[-1]['male']:+.3f}" in jobs and "published p" in run("associations")


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, evenrank.cli.vectors; "
        "heavy = {'numpy', 'pyarrow', 'polars', 'gensim', 'torch', 'scipy'} & set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
