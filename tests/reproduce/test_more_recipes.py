"""Every other recipe, small: it runs, says what it found, and can be told otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.mitigate.trained import Training
from evenrank.reproduce import disparities_page
from evenrank.reproduce.page import HOLDS, Claim
from evenrank.reproduce.recipes import RECIPES
from evenrank.reproduce.settings import Settings, parse_options

DATA = demo.folder()


def run(name: str, folder: Path, *given: str) -> dict[str, Any]:
    """The page of a recipe, in its three forms."""
    assert main(["reproduce", name, *given, "--quick", "-o", str(folder)]) == 0
    assert all((folder / f"{name}.{form}").exists() for form in ("md", "html", "toml"))
    page = json.loads((folder / f"{name}.json").read_text())
    assert {claim["holds"] for claim in page["claims"]} <= {*HOLDS.values()}
    return page


def test_disparities_of_a_collection_and_of_ready_scores(tmp_path: Path) -> None:
    page = run("disparities", tmp_path / "a", "--genders", str(DATA / "genders.tsv"), "--set", "bins=4")
    assert page["claims"][0]["says"].endswith("by bm25")
    assert page["claims"][0]["n"] == sum(page["facts"]["gaps"]["runs"][0]["queries"].values())
    folder = tmp_path / "scores"
    folder.mkdir()
    for gender, shift in (("female", 0.0), ("male", 3.0)):
        rows = "\n".join(f"{gender}{i}\t{i % 10 + shift}" for i in range(200))
        (folder / f"{gender}.tsv").write_text("query_id\tscore\n" + rows + "\n")
    page = run("disparities", tmp_path / "b", "--data", str(folder))
    told = {claim["says"]: claim["holds"] for claim in page["claims"]}
    assert told["male queries stand closer to their relevant documents"] == "holds"
    assert told["after matching the two distributions are alike"] == "holds"


def trained(gap: float, after: float, *, unlike: int = 40) -> list[Claim]:
    """What is said of two sets that turn a gap into another one, with narrow intervals."""

    def one(gap: float, size: float | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {"gap": gap, "queries": {"male": 20, "female": 20}}
        if size is not None:
            bounds = {"difference": size, "low": size - 0.01, "high": size + 0.01}
            found["change"] = {"p": 0.001, "size": bounds}
            same = {"difference": 0.0, "low": -0.01, "high": 0.01, "low 90": -0.01, "high 90": 0.01}
            found["overall"] = {**same, "p": 0.9, "n": 40, "before": 0.5}
        return found

    changed = one(after, abs(after) - abs(gap))
    held = {"queries": 100, "unlike unbalanced": unlike}
    sets = {"unbalanced": one(gap), "matching": changed, "generation": changed}
    return disparities_page._trained_claims(
        {"rankers": {"head": sets}, "sets": {"matching": held, "generation": held}}
    )


def test_a_gap_that_shrinks_is_less_whoever_it_favours() -> None:
    for gap, after, holds in ((0.2, 0.1, True), (-0.2, -0.1, True), (-0.2, -0.3, False), (0.1, -0.3, False)):
        assert [claim.holds for claim in trained(gap, after)] == [holds, holds, True, True]


def test_a_gap_that_turns_and_grows_is_told_by_its_size() -> None:
    claim = trained(0.169, -0.306)[0]
    assert claim.found.endswith("from +0.169 to -0.306 (it overshoots): its size changes by +0.137")
    assert claim.value == pytest.approx(0.137)


@pytest.mark.parametrize("unlike", [0, 2, 4])
def test_nothing_can_be_told_of_a_set_that_is_nearly_the_unbalanced_one(unlike: int) -> None:
    claims = trained(0.2, 0.1, unlike=unlike)
    assert [claim.holds for claim in claims] == [None] * 4
    assert all(f"{unlike} of its 100 queries are other than" in claim.found for claim in claims)


def drawn(page: dict[str, Any]) -> list[str]:
    """The kinds of the charts of a page."""
    return [chart["kind"] for table in page["tables"] for chart in table["charts"]]


def test_variants_of_the_demo_and_of_collected_results(tmp_path: Path) -> None:
    page = run("variants", tmp_path / "a")
    assert page["facts"]["bm25"]["rows"] and drawn(page) == ["dots"]
    rows = ["engine\ttriple_id\ttopic\tstereotype\tvariant\trank\turl"]
    for triple in range(8):
        for variant in ("neutral", "female", "male"):
            for rank in (1, 2):
                url = f"{triple}-{'male' if variant == 'male' else 'other'}-{rank}"
                rows.append(f"shop\t{triple}\t{triple}\tfemale\t{variant}\t{rank}\t{url}")
    (tmp_path / "results.tsv").write_text("\n".join(rows) + "\n")
    page = run("variants", tmp_path / "b", "--set", f"results={tmp_path / 'results.tsv'}")
    assert page["claims"][0]["holds"] == "holds"
    panels = {row["panel"] for row in page["tables"][0]["charts"][0]["rows"]}
    assert panels == {"toward men", "toward the stereotype"}


def test_topics_of_many_rankers_are_drawn_for_those_that_lean_most() -> None:
    from evenrank.reproduce.variants import _topics

    def rows(count: int) -> list[dict[str, Any]]:
        return [
            {"engine": f"r{i}", "topic": t, "toward": "male", "value": v, "low": v, "high": v, "triples": 5}
            for i in range(count)
            for t, v in ((0, None), (1, -i / 100))
        ]

    (chart,) = _topics(rows(12))
    assert {dot["panel"] for dot in chart.rows} == {f"r{i}" for i in range(3, 12)}
    assert "Of 12 engines and rankers, the 9" in chart.caption
    (chart,) = _topics(rows(9))
    assert len({dot["panel"] for dot in chart.rows}) == 9 and "rankers" not in chart.caption


def test_variants_take_any_ranker_with_its_settings(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("4 2\nnurse 1 0\nwomen 0.5 0.5\nmen 0.4 0.6\njob 0.1 0.9\n")
    given = ["--set", 'rankers=["bm25(k1=0.6)", "w2v_add"]', "--set", f"vectors={tmp_path / 'vectors.txt'}"]
    page = run("variants", tmp_path / "made", *given)
    assert list(page["facts"]) == ["bm25(k1=0.6)", "w2v_add"]
    assert {row["engine"] for row in page["facts"]["w2v_add"]["rows"]} == {"w2v_add"}


def test_classifiers_and_expanded_queries_are_drawn(tmp_path: Path) -> None:
    queries = "".join(
        f"{label}{i}\t{word} number {i}\t{label}\n"
        for i in range(12)
        for word, label in (("mother", "female"), ("father", "male"), ("car", "neutral"))
    )
    labelled = tmp_path / "labelled"
    labelled.mkdir()
    (labelled / "annotated.tsv").write_text(queries)
    page = run("query-gender", tmp_path / "a", "--data", str(labelled), "--set", 'classifiers=["lexicon"]')
    assert drawn(page) == ["dots", "dots"]
    expanded = tmp_path / "expanded"
    expanded.mkdir()
    for name, rows in (("rm3", "1\tshe\t0.4\n1\tjob\t0.6\n"), ("bias-aware", "1\tjob\t1.0\n")):
        (expanded / f"some.{name}.tsv").write_text(rows)
    page = run("feedback", tmp_path / "b", "--data", str(expanded))
    bars = {row["x"]: row["value"] for row in page["tables"][0]["charts"][0]["rows"]}
    assert bars["Robust04"] == 2.72 / 3.84 and bars["expanded, here"] == 0 and drawn(page) == ["bars"]


def test_trade_offs_compare_at_equal_bias(tmp_path: Path) -> None:
    page = run("tradeoff", tmp_path, "--run", str(DATA / "dense.run"))
    equal = page["facts"]["interpolate"]["equal"]
    assert [row["share"] for row in equal] == [0.5]
    assert any("keeps more than interpolate" in claim["says"] for claim in page["claims"])


def test_rankers_have_a_page_too(tmp_path: Path) -> None:
    page = run("rankers", tmp_path, "--set", "depth=20")
    assert page["tables"][0]["rows"][0][0] == "bm25"


def fake(self: Training, ranked: pl.DataFrame, queries: Any, method: str, strength: float) -> pl.DataFrame:
    """In the place of training: the stronger, the more documents of the end come first."""
    turned = pl.col("rank") * (-1) ** round(self.seed + 2 * strength)
    kept = ranked.filter(pl.col("query_id").is_in(tables.queries(queries)["query_id"].implode()))
    return kept.with_columns(score=-turned.cast(pl.Float64)).drop("rank")


def test_negatives_are_compared_with_plain_training_and_an_adversary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Training, "ranked", fake)
    options = ("ranker=head", "adversary=[1.0]", "strengths=[0.0,0.6]")
    page = run("negatives", tmp_path, *(part for option in options for part in ("--set", option)))
    assert list(page["facts"]["rows"]) == ["λ = 0", "λ = 0.6", "adversary, μ = 1"]
    beside = page["facts"]["beside"]["adversary, μ = 1"]
    assert beside["fairer"] + beside["less fair"] <= beside["queries"] == 30
    said = [claim["says"] for claim in page["claims"]]
    assert "λ = 0.6 costs no significant RR@10" in said


def test_judgments_are_added_by_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "ranked", fake)
    given = [
        part
        for option in ("ranker=head", "ratios=[0.25]", "adversary=[1.0]", "sample=150")
        for part in ("--set", option)
    ]
    page = run("debiased-judgments", tmp_path, *given)
    assert page["facts"]["added"]["ratio 0.25"] > 0
    assert "ratio 0.25 lowers bias" in [claim["says"] for claim in page["claims"]]


def test_options_are_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "tradeoff", "--set", "biass=1", "-o", str(tmp_path)]) == 2
    assert "bias" in capsys.readouterr().err
    assert main(["reproduce", "tradeoff", "--set", "depth=deep", "-o", str(tmp_path)]) == 2
    assert "like 100" in capsys.readouterr().err
    chosen = Settings(options={"levels": "[0.5]"}).completed(RECIPES["tradeoff"].options)
    assert chosen.option("levels") == [0.5]
    (tmp_path / "s.toml").write_text(chosen.toml())
    assert Settings.read(tmp_path / "s.toml") == chosen
    with pytest.raises(InputError, match="NAME=VALUE"):
        parse_options(["x"])


def test_a_step_that_was_tampered_with_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["reproduce", "gsr-toy", "--quick", "-o", str(tmp_path)]
    assert main(given) == 0
    path = tmp_path / "steps" / "gsr-toy.json"
    stored = json.loads(path.read_text())
    stored["found"]["direct"]["S"] = 2.0
    path.write_text(json.dumps(stored))
    assert main(given) == 2
    assert "was changed" in capsys.readouterr().err


def test_expanded_queries_of_others_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "expanded"
    folder.mkdir()
    for name, term in (("rm3", "he"), ("bias-aware", "car")):
        rows = [f"q{i}\t{term}\t0.5\nq{i}\troad\t0.5" for i in range(8)]
        (folder / f"some.{name}.tsv").write_text("\n".join(rows) + "\n")
    page = run("feedback", tmp_path, "--data", str(folder))
    assert [claim["holds"] for claim in page["claims"]] == ["holds", "holds"]
    assert page["facts"]["terms"]["before"]["weight"] == pytest.approx(4)


def test_random_embeddings_stand_beside_given_ones(tmp_path: Path) -> None:
    runs = {"bm25": "bm25", "dense": "dense", "dense random": "bm25"}
    given = [part for name, file in runs.items() for part in ("--run", f"{name}={DATA / f'{file}.run'}")]
    page = run("rank-bias", tmp_path, *given)
    first, second = page["claims"]
    assert "of 16 cells" in first["found"] and "of 16 cells" in second["found"]
    assert first["value"] == pytest.approx(second["value"])


def test_queries_that_no_run_ranks_do_not_count_as_failures(tmp_path: Path) -> None:
    lines = [line for line in (DATA / "bm25.run").read_text().splitlines() if not line.startswith("q01 ")]
    (tmp_path / "some.run").write_text("\n".join(lines) + "\n")
    given = ["--run", f"bm25={tmp_path / 'some.run'}", "--run", f"again={tmp_path / 'some.run'}"]
    page = run("rank-bias", tmp_path, *given, "--set", "about=Rankers alone.")
    assert page["facts"] == {"queries": 59, "not ranked": 1}
    assert page["here"].endswith("1 query that no run ranks: left out. Rankers alone.")


def test_rankers_that_were_trained_elsewhere_are_given_as_runs(tmp_path: Path) -> None:
    runs = {"0": "bm25", "0 #2": "bm25", "0.6": "dense"}
    given = [part for name, file in runs.items() for part in ("--run", f"{name}={DATA / f'{file}.run'}")]
    options = [part for option in ("strengths=[0.0,0.6]", "adversary=[]") for part in ("--set", option)]
    page = run("negatives", tmp_path, *given, *options)
    assert page["facts"]["training"] is None
    assert page["facts"]["seeds"] == {"0": 2, "0.6": 1}
    assert main(["reproduce", "negatives", *given, "-o", str(tmp_path / "b")]) == 2


def test_classifiers_of_query_gender_are_cross_validated(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    told = {"female": "her mother the queen", "male": "his father the king", "neutral": "weather tomorrow"}
    rows = [f"{label}{i}\t{text} {i}\t{label}" for label, text in told.items() for i in range(10)]
    (folder / "annotated.tsv").write_text("\n".join(rows) + "\n")
    options = ["--set", 'classifiers=["lexicon"]']
    page = run("query-gender", tmp_path, "--data", str(folder), *options)
    assert page["facts"]["lexicon"]["accuracy"]["value"] == 1
    assert main(["reproduce", "query-gender", "--data", str(folder), "-o", str(tmp_path)]) == 2
