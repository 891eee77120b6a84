"""What a page says is so: signs, counts and sentences; and what cannot be used is refused at once."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from evenrank import demo, stats
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.mitigate.trained import Training
from evenrank.reproduce import debiased_judgments, disparities, disparities_page
from evenrank.reproduce.page import Chart, Claim, Page, Table, alike, from_zero, nearer
from evenrank.reproduce.recipes import RECIPES
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.numbers import p_value

DATA = demo.folder()
NEGATIVES = ["--set", "strengths=[0.0,0.6]", "--set", "adversary=[]"]


def run(name: str, folder: Path, *given: str) -> dict[str, Any]:
    """The page of a recipe."""
    assert main(["reproduce", name, *given, "--quick", "-o", str(folder)]) == 0
    return dict(json.loads((folder / f"{name}.json").read_text()))


def refused(capsys: pytest.CaptureFixture[str], folder: Path, name: str, *given: str) -> str:
    """What is said where a recipe cannot run."""
    capsys.readouterr()
    assert main(["reproduce", name, *given, "-o", str(folder)]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("evenrank: ")]
    return line


def moved(before: float, after: float, spread: float = 0.01) -> Claim:
    """The claim about values of 40 queries around two means."""
    noise = np.tile([-spread, spread], 20), np.repeat([-spread, spread], 20)
    sides = [
        {str(i): float(mean + each) for i, each in enumerate(some)}
        for mean, some in zip((before, after), noise, strict=True)
    ]
    return nearer("it comes closer to 0", "it", from_zero(*sides))


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        (0.2, 0.1, True),
        (-0.2, -0.1, True),
        (0.2, -0.1, True),
        (0.2, -0.2, None),
        (0.192, -1.733, False),
        (-0.1, 0.3, False),
        (0.1, 0.3, False),
    ],
)
def test_a_mean_comes_closer_to_0_only_if_its_size_shrinks(
    before: float, after: float, holds: bool | None
) -> None:
    claim = moved(before, after)
    assert claim.holds is holds
    assert claim.value == pytest.approx(abs(after) - abs(before))
    assert ("overshoots" in claim.found) == (before * after < 0 and not holds)


def test_a_small_move_of_a_mean_decides_nothing() -> None:
    rng = np.random.default_rng(0)
    sides = [{str(i): float(each) for i, each in enumerate(rng.normal(0.1, 1, 40))} for _ in range(2)]
    assert nearer("it comes closer to 0", "it", from_zero(*sides)).holds is None
    assert nearer("it comes closer to 0", "it", from_zero({}, {})).found == "not judged"


def test_lists_turned_from_men_to_women_are_not_closer_to_balance(tmp_path: Path) -> None:
    from evenrank import load
    from evenrank.text.tally import tally

    lean = tally(DATA / "docs.tsv").frame.select("doc_id", lean=pl.col("female") - pl.col("male"))
    ids = lean.sort("lean", "doc_id", descending=[True, False])["doc_id"].to_list()[:10]
    rows = [
        f"{query} Q0 {doc} {rank + 1} {100 - rank} x"
        for query in load(DATA).queries["query_id"]
        for rank, doc in enumerate(ids)
    ]
    (tmp_path / "women.run").write_text("\n".join(rows) + "\n")
    given = ["--run", f"0={DATA / 'bm25.run'}", "--run", f"0.6={tmp_path / 'women.run'}"]
    page = run("negatives", tmp_path, *given, *NEGATIVES)
    (claim,) = [one for one in page["claims"] if "signed mean" in one["says"]]
    assert claim["holds"] == "does not hold" and "overshoots" in claim["found"]
    assert "ranker" not in page["here"].lower()
    assert not [line for line in page["differs"] if "small ranker" in line or "trained here" in line]


def test_runs_of_no_way_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {"0": "bm25", "0.6": "dense", "0,8": "dense"}
    given = [part for name, file in runs.items() for part in ("--run", f"{name}={DATA / f'{file}.run'}")]
    said = refused(capsys, tmp_path, "negatives", *given, *NEGATIVES)
    assert said == "evenrank: --run 0,8: there is no such way here; one of 0, 0.6"
    options = ["--set", "ratios=[0.25]", "--set", "adversary=[1.0]"]
    said = refused(capsys, tmp_path, "debiased-judgments", *given, *options)
    assert "one of 0, 0.25, adversary 1" in said


def test_pairs_of_one_query_count_once() -> None:
    rows = [
        {"query_id": f"{gender}{query}", "doc_id": f"d{doc}", "score": score + query, "gender": gender}
        for gender, score in (("female", 1.0), ("male", 2.0))
        for query in range(6)
        for doc in range(10)
    ]
    scores = pl.DataFrame(rows)
    found = disparities._by_query(scores)
    assert found["n"] == 12 and found["difference"] == pytest.approx(1.0)
    assert found["p"] > 0.05 and found["low"] < 0 < found["high"]
    assert disparities._matched(scores)["of"] == "queries"
    once = scores.filter(pl.col("doc_id") == "d0").with_columns(pair=pl.col("query_id").str.slice(-1))
    found = disparities._matched(once)
    assert found["of"] == "matched pairs" and found["n"] == 12


def test_claims_of_associations_rest_on_queries(tmp_path: Path) -> None:
    page = run("disparities", tmp_path, "--genders", str(DATA / "genders.tsv"), "--set", "bins=4")
    before = page["facts"]["association"]["before"]
    (claim,) = [one for one in page["claims"] if one["says"].startswith("male queries stand closer")]
    assert claim["n"] == before["by query"]["n"] < sum(before["pairs"].values())
    (table,) = [one for one in page["tables"] if one["title"].startswith("Figure 1")]
    assert table["headings"][1:3] == ["female pairs", "male pairs"]
    assert not [line for line in page["differs"] if "Figure 2" in line or "trained here" in line]


def test_sets_are_told_by_what_they_hold() -> None:
    one = {"queries": 1360, "real female": 60, "real male": 74, "generated": 2}
    assert disparities_page._held(one) == ["1,360", "60", "74", "2"]


def test_pages_speak_of_rankers_that_were_run(tmp_path: Path) -> None:
    page = run("gsr", tmp_path, "--set", "depth=20")
    assert "debiased" not in page["here"]
    page = run("rankers", tmp_path, "--set", "depth=20")
    assert page["here"].startswith("Lexical rankers on") and "Holm" not in " ".join(page["differs"])
    assert "The numbers</summary>" in (tmp_path / "rankers.md").read_text()
    page = run("variants", tmp_path)
    assert len(page["tables"]) == 1 and "by topic" not in " ".join(page["differs"])


@pytest.mark.parametrize(
    ("headings", "cells", "published"),
    [
        (["ranker", "value"], ["bm25, here", "1"], False),
        (["ranker", "value"], ["bm25, published", "1"], True),
        (["ranker", "published"], ["bm25", "1"], True),
        (["ranker", "published"], ["bm25", "–"], False),
        (["way", "value"], ["bins, as published", "1"], False),
    ],
)
def test_a_fold_promises_published_numbers_where_there_are_some(
    headings: list[str], cells: list[str], published: bool
) -> None:
    chart = Chart("bars", [{"x": "a", "value": 1.0}], "", "v", "c")
    page = Page("x", "T", "P", "did", "here", [Table("A", headings, [cells], [chart])])
    assert ("and the published ones" in page.markdown()) == published


@pytest.mark.parametrize("name", ["feedback", "tradeoff", "gsr", "rankers"])
def test_judgments_without_a_relevant_document_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for file in ("docs.tsv", "queries.tsv"):
        (data / file).write_text((DATA / file).read_text())
    rows = [line.split() for line in (DATA / "qrels.txt").read_text().splitlines()]
    (data / "qrels.txt").write_text("".join(f"{query} 0 {doc} 0\n" for query, _, doc, _ in rows))
    said = refused(capsys, tmp_path, name, "--quick", "--data", str(data))
    assert said.endswith(f"{data / 'qrels.txt'}: no query has a relevant document (relevance above 0)")


def test_a_line_through_one_query_is_refused_for_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text("queries = 1\n")
    said = refused(capsys, tmp_path, "gsr", "--settings", str(tmp_path / "s.toml"), "--set", "depth=20")
    assert said.endswith("can be measured; a line needs two: ask more")


@pytest.mark.parametrize(
    "line",
    ['queries = "x"', "queries = -3", "queries = true", 'runs = "a"', 'runs = ["a"]', "runs = {a = 3}",
     "options = 3", "data = 3", "split = 3", "genders = 3", 'resamples = "a"', "resamples = 0", "seed = -1"],
)  # fmt: skip
def test_settings_of_another_kind_are_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=rf"s\.toml: {line.split()[0]} is .*; it must be"):
        Settings.read(path)


def test_the_demo_has_no_splits() -> None:
    with pytest.raises(InputError, match="split is 'a'"):
        Settings(split="a").dataset()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("negatives", "seeds=0"),
        ("negatives", "strengths=[]"),
        ("negatives", "strengths=[0.6]"),
        ("negatives", "strengths=[0.0, 1.5]"),
        ("negatives", 'strengths=["a"]'),
        ("negatives", 'training=["epochs=x"]'),
        ("disparities", 'training=["epochs=x"]'),
        ("negatives", "ranker=hed"),
        ("debiased-judgments", 'ratios=["a"]'),
        ("debiased-judgments", "ratios=[0.0]"),
        ("tradeoff", 'levels=["a"]'),
        ("tradeoff", "methods=[]"),
        ("feedback", "alpha=-0.5"),
        ("feedback", "terms=-1"),
    ],
)
def test_options_are_checked_to_their_elements(
    name: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert option.partition("=")[0] in refused(capsys, tmp_path, name, "--set", option)


@pytest.mark.parametrize("name", ["disparities", "negatives", "debiased-judgments"])
@pytest.mark.parametrize("given", ["rat=1", '["rat=1"]', "epochs=2,rat=1"])
def test_training_settings_that_the_ranker_does_not_have_are_refused_at_once(
    name: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no setting 'rat'" in refused(capsys, tmp_path, name, "--set", f"training={given}")


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("0,0.6", [0.5], [0.0, 0.6]),
        ("1", [0.5], [1.0]),
        ("bm25, qld", ["x"], ["bm25", "qld"]),
        ("7", [], ["7"]),
        ('["a"]', [], ["a"]),
        ("[]", ["a"], []),
    ],
)
def test_lists_are_written_with_commas_or_as_json(text: str, default: list[Any], expected: list[Any]) -> None:
    chosen = Settings(options={"name": text}).completed({"name": default})
    assert chosen.option("name") == expected


def test_whole_numbers_are_taken_for_others_in_lists_too() -> None:
    chosen = Settings(options={"strengths": "[0, 1]"}).completed(RECIPES["negatives"].options)
    assert chosen.option("strengths") == [0.0, 1.0] and type(chosen.option("strengths")[0]) is float


def test_scores_of_one_gender_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "half"
    data.mkdir()
    (data / "female.tsv").write_text("query_id\tscore\na\t1\n")
    assert "no file male.*" in refused(capsys, tmp_path, "disparities", "--data", str(data))


def test_a_ratio_is_of_judged_pairs(tmp_path: Path) -> None:
    settings = Settings(queries=20).completed(RECIPES["debiased-judgments"].options)
    work = debiased_judgments._Generating(settings, Steps(tmp_path, lambda _: None), ["0"])
    asked = set(work.train.queries["query_id"])
    rows = work.train.qrels.filter(pl.col("relevance") > 0)["query_id"].to_list()
    assert work.size == sum(query in asked for query in rows) > len(asked)
    assert work.asked_for(0.25) == round(0.25 * work.size / 2) and work.asked_for(0.0) == 0


def test_ratios_that_add_the_same_say_why() -> None:
    pairs = {"ratio 0": [0, 0], "ratio 0.25": [14, 14], "ratio 0.35": [14, 20]}
    (line,) = debiased_judgments._same(pairs)
    assert line.startswith("There are 14 pairs of queries to add, no more: ratio 0.25, ratio 0.35 are one")
    (line,) = debiased_judgments._same({"ratio 0.05": [1, 1], "ratio 0.1": [1, 1], "ratio 0.5": [5, 5]})
    assert line.startswith("Rounded to 1 pair of queries each, ratio 0.05, ratio 0.1 are one")
    assert debiased_judgments._same({"ratio 0": [0, 0], "ratio 0.5": [5, 5]}) == []


def test_queries_that_are_added_are_counted_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(self: Training, ranked: pl.DataFrame, *_: Any) -> pl.DataFrame:
        return ranked

    monkeypatch.setattr(Training, "ranked", same)
    page = run("debiased-judgments", tmp_path, "--set", "sample=150")
    facts = page["facts"]
    added, asked = facts["pairs"]["ratio 0.25"]
    assert facts["added"]["ratio 0.25"] == 2 * added <= 2 * asked
    assert page["tables"][0]["headings"][1] == "queries added"


def test_settings_that_a_recipe_does_not_have_are_refused_with_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    for line, said in (
        ("[options]\nfoo = 3", "there is no option 'foo'"),
        ('genders = "x.tsv"', "this recipe takes no genders; leave it out"),
    ):
        path.write_text(line + "\n")
        told = refused(capsys, tmp_path / "new", "feedback", "--settings", str(path))
        assert told.startswith(f"evenrank: {path}: {said}")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bias=abc", "abc"),
        ("methods=foo", "methods cannot be 'foo'"),
        ("levels=1.5", "levels has 1.5; each is a share of the bias, above 0 and below 1"),
    ],
)
def test_a_trade_off_that_cannot_be_meant_is_refused_before_any_work(
    given: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, tmp_path / "new", "tradeoff", "--quick", "--set", given)
    assert not (tmp_path / "new").exists()


def test_an_output_that_cannot_be_a_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "file: cannot be made" in refused(capsys, tmp_path / "file", "feedback")
    (tmp_path / "steps" / "feedback.json").mkdir(parents=True)
    said = refused(capsys, tmp_path, "feedback", "--quick")
    assert said.endswith("feedback.json: not a step of a recipe; remove it")


def test_rankers_are_compared_where_a_query_finds_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    demo.copy_to(data)
    for name in ("bm25.run", "dense.run", "genders.tsv"):
        (data / name).unlink()
    with (data / "queries.tsv").open("a") as file:
        file.write("none\tqzx vwkj\n")
    with (data / "qrels.txt").open("a") as file:
        file.write("none 0 d001 1\n")
    page = run("rankers", tmp_path, "--data", str(data))
    table = page["tables"][0]
    assert {row[0] for row in table["rows"]} >= {"bm25", "perfect"}


def test_p_of_variants_is_corrected_over_all_rankers(tmp_path: Path) -> None:
    page = run("variants", tmp_path, "--set", "rankers=bm25,qld,tfidf")
    rows = [row for one in page["facts"].values() for row in one["rows"]]
    male = [r for r in rows if r["measure"] == "VarARaB@10" and r["toward"] == "male" and r["topic"] is None]
    assert len(male) == 3
    shown = [row for row in page["tables"][0]["rows"] if "VarARaB" in row[0] and row[1] == "male"]
    expected = stats.holm([row["p"] for row in male])
    assert [row[4] for row in shown] == [p_value(p) for p in expected]
    assert expected != [row["p"] for row in male]
    assert "Triples were made of its 60 queries: 48 could be written" in page["here"]


def test_most_queries_are_more_than_half_of_them() -> None:
    from evenrank.reproduce.negatives import _claims

    plain = {"difference": 0.0, "low": 0.0, "high": 0.0, "p": None, "n": 200}
    beside = {"adversary": {"fairer": 50, "less fair": 5, "queries": 200, "useful": plain}}
    found = {"changes": {}, "beside": beside}
    most, more, _ = _claims(Settings(options={"chosen": 0.6}), found, "λ = 0.6")
    assert (most.says, most.holds) == (
        "λ = 0.6 is fairer than an adversary for most queries (adversary)",
        False,
    )
    assert more.holds is True
    assert most.found == more.found == "25% fairer, 2% less fair, the others the same"


def test_words_alike_can_be_held(tmp_path: Path) -> None:
    from evenrank.reproduce.judgments import _narrow

    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"gender": ["female", "male"] * 200, "positive": rng.normal(5, 0.5, 400)})
    change = _narrow(cast(Any, SimpleNamespace(values=frame)), "positive") | {"n": 400}
    assert change["low"] < change["low 90"] < change["difference"] < change["high 90"] < change["high"]
    assert alike("alike", "it", change, 0.5).holds is True
