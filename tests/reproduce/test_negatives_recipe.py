"""The recipe of bias-aware negatives: what cannot be trained is refused, and its page fits any groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.rankers.neural.rerankers import INTERACTION

DATA = demo.folder()


def settings(*given: str) -> list[str]:
    return [part for each in given for part in ("--set", each)]


@pytest.mark.parametrize("ranker", INTERACTION)
@pytest.mark.parametrize("recipe", ["negatives", "debiased-judgments"])
@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_an_adversary_that_cannot_read_the_ranker_is_refused_before_any_work(
    ranker: str, recipe: str, quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["reproduce", recipe, *settings(f"ranker={ranker}", "adversary=1"), *quick]
    assert main([*asked, "-o", str(tmp_path / "pages")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"evenrank: ranker {ranker} has no vector for an adversary to read; choose one of cross-encoder, "
        "bi-encoder, head, or train without one: --set adversary="
    )
    assert not (tmp_path / "pages").exists()


def test_runs_of_others_have_an_adversary_whatever_the_ranker(tmp_path: Path) -> None:
    runs = {"0": "bm25", "0.6": "dense", "adversary 1": "dense"}
    given = [part for name, file in runs.items() for part in ("--run", f"{name}={DATA / f'{file}.run'}")]
    options = settings("ranker=knrm", "adversary=1", "strengths=0,0.6")
    assert main(["reproduce", "negatives", "--quick", *given, *options, "-o", str(tmp_path)]) == 0


def test_the_page_speaks_of_no_men_where_the_groups_are_others(tmp_path: Path) -> None:
    words = tmp_path / "young.json"
    words.write_text('{"young": ["boy", "girl", "child"], "old": ["man", "woman", "he", "she"]}')
    given = ["--run", f"0={DATA / 'bm25.run'}", "--run", f"0.6={DATA / 'dense.run'}"]
    options = settings("strengths=0,0.6", "adversary=", f"lexicon={words}")
    assert main(["reproduce", "negatives", "--quick", *given, *options, "-o", str(tmp_path)]) == 0
    page = json.loads((tmp_path / "negatives.json").read_text())
    said = " ".join([page["here"], *page["differs"], *(claim["says"] for claim in page["claims"])]).lower()
    assert "what is pushed down is about that group" in said
    assert not {"men", "women", "male", "female", "gendered"} & {*said.replace(":", " ").split()}
