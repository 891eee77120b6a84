"""A recipe runs a paper's experiment, sets both tables side by side, and tests what the paper claims."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.data.model_files import write_model
from evenrank.errors import InputError
from evenrank.reproduce.page import HOLDS, Claim, Page, Table, changed, kept
from evenrank.reproduce.recipes import RECIPES
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps

DATA = demo.folder()


def test_reproduce_lists_the_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in RECIPES)


@pytest.mark.parametrize(
    ("difference", "p", "lower", "holds"),
    [
        (-0.1, 0.01, True, True),
        (-0.1, 0.01, False, False),
        (-0.1, 0.2, True, None),
        (0.1, 0.2, True, None),
        (None, None, True, None),
    ],
)
def test_a_claim_of_a_change_is_decided_by_a_significant_one_only(
    difference: float | None, p: float | None, lower: bool, holds: bool | None
) -> None:
    change = {"difference": difference, "low": None, "high": None, "p": p, "n": 9}
    assert changed("it falls", "RR", change, lower=lower).holds is holds


def test_that_nothing_is_lost_can_be_refuted_but_not_proved() -> None:
    fell = {"difference": -0.1, "low": -0.2, "high": -0.05, "p": 0.001, "n": 60}
    assert kept("kept", "AP", fell).holds is False
    same = kept("kept", "AP", {**fell, "p": 0.4})
    assert same.holds is None
    assert "no proof" in same.found


def test_a_page_escapes_what_stands_in_it_and_says_the_same_in_every_form(tmp_path: Path) -> None:
    claim = Claim("a < b | c", "found <i>it</i>", None, 0.25, 0.1, 0.4, 0.03, 7)
    page = Page(
        "x", "T & U", "P", "did", "here", [Table("A", ["r", "v"], [["<b>", "-0.1"]])], [claim], ["other"]
    )
    page.write(tmp_path)
    html, text = (tmp_path / "x.html").read_text(), (tmp_path / "x.md").read_text()
    assert "&lt;b&gt;" in html
    assert "<i>it" not in html
    assert "−0.1" in html
    stored = json.loads((tmp_path / "x.json").read_text())
    assert stored["claims"][0]["holds"] == "cannot tell"
    for shown in (html, text):
        assert "cannot tell" in shown
        assert "n = 7" in shown


def test_a_step_is_done_once_and_again_with_other_settings(tmp_path: Path) -> None:
    done: list[int] = []

    def work() -> dict[str, int]:
        done.append(1)
        return {"found": len(done)}

    steps = Steps(tmp_path, lambda _: None)
    assert steps("a", {"seed": 0}, work) == steps("a", {"seed": 0}, work) == {"found": 1}
    assert steps("a", {"seed": 1}, work) == {"found": 2}
    (tmp_path / "steps" / "a.json").write_text("{")
    with pytest.raises(InputError, match="remove it"):
        steps("a", {"seed": 1}, work)


def test_a_step_knows_what_it_took_without_the_steps_within_it(tmp_path: Path) -> None:
    def busy(seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass

    def training() -> pl.DataFrame:
        busy(0.3)
        return pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})

    def outer(steps: Steps) -> dict[str, int]:
        steps.run("trained", {"seed": 0}, training, trains=True)
        busy(0.1)
        return {}

    for folder in (None, tmp_path):
        steps, started = Steps(folder, lambda _: None), time.perf_counter()
        steps("all/of it", {}, partial(outer, steps))
        passed = time.perf_counter() - started
        assert {name: each.trains for name, each in steps.spent.items()} == {
            "run trained": True,
            "all/of it": False,
        }
        assert steps.done == {"run trained", "all/of it"}
        assert steps.spent["run trained"].seconds >= 0.3
        assert steps.spent["all/of it"].seconds >= 0.1
        assert sum(each.seconds for each in steps.spent.values()) <= passed + 0.02
    again = Steps(tmp_path, lambda _: None)
    again("all/of it", {}, partial(outer, again))
    assert (again.spent, again.done) == (steps.spent, set())  # also of the steps within it

    def failing() -> dict[str, int]:
        again("within", {}, dict)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        again("fails", {}, failing)
    again("all-of it", {}, lambda: {"another": 1})
    assert again.done == {"within", "all-of it"}
    assert again("all/of it", {}, dict) == {}
    path = tmp_path / "steps" / "within.json"
    path.write_text(path.read_text().replace('"within": [', '"within": ["x", '))
    with pytest.raises(InputError, match="remove it"):
        again("within", {}, dict)


def test_settings_are_written_and_read_back(tmp_path: Path) -> None:
    given = Settings(data='a "folder"', split="test", runs={"bm25": "x.run", "b é": "y.run"}, queries=7)
    path = tmp_path / "s.toml"
    path.write_text(given.toml())
    assert Settings.read(path) == given
    path.write_text("querys = 3\n")
    with pytest.raises(InputError, match="queries"):
        Settings.read(path)


def test_quick_draws_the_same_queries_each_time() -> None:
    drawn = [Settings(queries=20, seed=3).dataset().queries for _ in range(2)]
    assert drawn[0].equals(drawn[1])
    assert len(drawn[0]) == 20


def test_rank_bias_counts_cells_and_tests_their_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [part for name in ("bm25", "dense") for part in ("--run", str(DATA / f"{name}.run"))]
    command = [
        "reproduce",
        "rank-bias",
        *runs,
        "--genders",
        str(DATA / "genders.tsv"),
        "--quick",
        "-o",
        str(tmp_path),
    ]
    assert main(command) == 0
    stored = json.loads((tmp_path / "rank-bias.json").read_text())
    assert stored["claims"][0]["holds"] in HOLDS.values()
    assert "of 16 cells" in stored["claims"][0]["found"]
    assert stored["claims"][0]["n"] == stored["facts"]["queries"] == 48
    capsys.readouterr()
    assert main([*command[:2], "--settings", str(tmp_path / "rank-bias.toml"), "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "as it was" in told
    assert re.search(r"^1 step, 0\.\d minutes of processor time; 1 done earlier$", told, re.MULTILINE)
    assert main(["reproduce", "rank-bias", "-o", str(tmp_path)]) == 2


def test_what_was_finished_within_a_step_that_failed_is_told_by_the_step_around_it(tmp_path: Path) -> None:
    def outer(steps: Steps) -> dict[str, int]:
        with suppress(InputError):
            steps("failing", {}, partial(failing, steps))
        return {}

    def failing(steps: Steps) -> dict[str, int]:
        steps("inner", {}, dict)
        raise InputError("no")

    for _ in range(2):
        steps = Steps(tmp_path, lambda _: None)
        steps("outer", {}, partial(outer, steps))
        assert set(steps.spent) == {"inner", "outer"}


def test_another_model_in_the_same_folder_is_another_step(tmp_path: Path) -> None:
    class AskedError(Exception):
        pass

    def asked() -> dict[str, object]:
        def step(name: str, settings: dict[str, object], work: object) -> None:
            raise AskedError(settings)

        settings = Settings(options={"rankers": ["bm25", str(tmp_path / "model")]})
        with pytest.raises(AskedError) as found:
            RECIPES["variants"].run(settings, cast(Steps, step))
        return dict(found.value.args[0])

    write_model(tmp_path / "model", "knrm", {}, {"weights": b"1"})
    before = asked()
    assert before == asked()
    write_model(tmp_path / "model", "knrm", {}, {"weights": b"2"})
    assert before != asked()


def test_feedback_and_the_toy_run_on_what_is_built_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "feedback", "--quick", "-o", str(tmp_path)]) == 0
    assert main(["reproduce", "gsr-toy", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "λ 0.5 lowers the bias of the lists" in shown
    assert shown.count("holds: direct") == 1
    assert (tmp_path / "feedback.html").exists()


def test_judgments_of_ready_tables_find_the_directions_of_the_thesis(shared: Path, tmp_path: Path) -> None:
    assert main(["reproduce", "judgments", "--data", str(shared / "data" / "liwc"), "-o", str(tmp_path)]) == 0
    claims = json.loads((tmp_path / "judgments.json").read_text())["claims"]
    told = {claim["says"]: claim["holds"] for claim in claims}
    assert told["anger is higher for male queries"] == "holds"
    assert told["achievement is higher for male queries"] == "cannot tell"
    assert "does not hold" not in told.values()
