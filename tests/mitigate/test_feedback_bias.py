"""The sweep over bias-aware feedback, and gendered terms in expanded queries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from Stemmer import Stemmer

import evenrank as er
from evenrank import demo, stats
from evenrank.errors import InputError
from evenrank.mitigate.feedback import FeedbackSweep, expanded_queries, gendered_terms, side_by_side
from evenrank.rankers import make
from evenrank.rankers.indexing import index as build
from evenrank.show.charts.tradeoff import feedback_figures
from evenrank.show.report import write_sheet

# Weight and number of biased terms: thesis, Table 4.3, Robust04, ARaB (it prints 65 where its data has 64).
PUBLISHED = {"rm3": (64, 3.84), "bias-aware": (49, 2.72)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("feedback") / "index"
    build(demo.folder() / "docs.tsv", path)
    return path


@pytest.fixture(scope="module")
def swept(folder: Path) -> FeedbackSweep:
    data = er.load(demo.folder())
    return er.feedback(folder, data.queries, qrels=data.qrels, lambdas=[0.5, 1])


PORTER = Stemmer("porter").stemWord


def by_term(terms: list[str], lexicon: Any, **more: Any) -> dict[str, str]:
    """The group of each term that has one."""
    found = gendered_terms({"q": dict.fromkeys(terms, 1.0)}, lexicon, **more)
    return dict(found.select("term", "group").iter_rows())


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_expansions_hold_the_published_gendered_terms(name: str, shared: Path) -> None:
    number, weight = PUBLISHED[name]
    found = gendered_terms(shared / "data" / "expanded-queries" / f"robust04.{name}.tsv")
    assert len(found) == number
    assert round(found["weight"].sum(), 2) == weight


def test_a_stem_counts_when_the_stemmer_is_given(shared: Path) -> None:
    path = shared / "data" / "expanded-queries" / "robust04.rm3.tsv"
    plain, stemmed = gendered_terms(path), gendered_terms(path, stem=PORTER)
    extra = stemmed.join(plain, on=["query_id", "term"], how="anti")
    assert extra["term"].to_list() == ["boi"]


def test_a_stem_of_both_groups_names_both() -> None:
    words = {"female": ["hostesses", "host"], "male": ["hosts", "boy"]}
    assert by_term(["host", "boi", "boy"], words, stem=PORTER) == {"host": "female/male", "boi": "male"}
    assert by_term(["host", "boi", "boy"], words) == {"host": "female", "boy": "male"}


def test_prefixes_of_a_lexicon_find_terms() -> None:
    assert by_term(["women", "manag"], {"female": ["wom*"], "male": ["man"]}) == {"women": "female"}


@given(st.dictionaries(st.sampled_from(["she", "he", "nurs", "boi"]), st.floats(0.01, 1), min_size=1))
def test_gendered_weight_never_exceeds_the_whole(terms: dict[str, float]) -> None:
    found = gendered_terms({"q": terms})
    assert found["weight"].sum() <= sum(terms.values()) + 1e-12
    assert len(found) == sum(term in ("she", "he") for term in terms)


def test_expanded_queries_are_read_from_a_file(tmp_path: Path) -> None:
    expanded = {"001": {"she": 0.25, "nurs": 0.75}, "2": {'a"b': 1.0}}
    (tmp_path / "q.tsv").write_text('001\tshe\t0.25\n001\tnurs\t0.75\n2\ta"b\t1.0\n')
    assert expanded_queries(tmp_path / "q.tsv").equals(expanded_queries(expanded))


@pytest.mark.parametrize("line", ["q\tterm", "q\tterm\theavy", "q\tterm\tnan"])
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text(f"q\tgood\t0.5\n{line}\n")
    with pytest.raises(InputError, match=r"q\.tsv:2"):
        expanded_queries(tmp_path / "q.tsv")


def test_queries_that_lost_most_gendered_weight_come_first() -> None:
    before = expanded_queries({"a": {"she": 0.1, "x": 0.9}, "b": {"he": 0.6}, "c": {"y": 1.0}})
    after = expanded_queries({"a": {"x": 1.0}, "b": {"z": 1.0}, "c": {"y": 1.0}})
    pairs = side_by_side(before, after, {"she", "he"})
    assert pairs["query_id"].to_list() == ["b", "a"]
    assert pairs["removed"][0] == pytest.approx(0.6)
    assert pairs.row(1)[2:4] == ("x [she 0.100]", "x")


def test_zero_is_always_swept_and_is_plain_rm3(swept: FeedbackSweep, folder: Path) -> None:
    assert list(swept.steps) == [0, 0.5, 1]
    plain = make("bm25+rm3", index=folder).rank(er.load(demo.folder()).queries)
    assert swept.steps[0].run.equals(plain)


def test_a_step_of_the_sweep_is_what_the_ranker_gives(swept: FeedbackSweep, folder: Path) -> None:
    ranker = make("bm25+rm3", index=folder, bias_lambda=0.5, fb_docs=5, lexicon="rekabsaz2020")
    queries = er.load(demo.folder()).queries
    few = er.feedback(folder, queries, lambdas=[0.5], fb_docs=5, measures="ARaB@10", confidence=None)
    assert few.steps[0.5].run.equals(ranker.rank(queries))


def row(swept: FeedbackSweep, strength: float) -> dict[str, Any]:
    return swept.frame().filter(pl.col("lambda") == strength, measure="ARaB@10").row(0, named=True)


def test_shares_add_up_and_agree_with_the_queries(swept: FeedbackSweep) -> None:
    changed = swept.frame().filter(pl.col("lambda") > 0)
    assert changed.select(
        pl.sum_horizontal("improved", "tied", "hurt")
    ).to_series().to_list() == pytest.approx([1.0] * len(changed))
    gains = swept.per_query("ARaB@10", lambda_=0.5)["gain"].to_numpy()
    effect = row(swept, 0.5)
    assert effect["improved"] == pytest.approx((gains > 1e-9).mean())
    assert (np.diff(gains) <= 0).all()
    assert effect["difference"] == pytest.approx(-gains.mean())


def test_reduction_is_measured_against_the_value_before(swept: FeedbackSweep) -> None:
    was, now = (swept.measured[strength, "ARaB@10"].abs for strength in ("0", "0.5"))
    assert was is not None and now is not None
    assert row(swept, 0.5)["abs_reduction"] == pytest.approx((was - now) / was)
    assert row(swept, 0)["abs_reduction"] is None


def test_p_is_corrected_for_the_strengths_tried(swept: FeedbackSweep) -> None:
    effects = [row(swept, strength) for strength in (0.5, 1)]
    corrected = stats.holm([effect["p"] for effect in effects])
    assert [effect["p_holm"] for effect in effects] == pytest.approx(corrected)


def test_bias_of_the_demo_falls_and_its_json_says_so(swept: FeedbackSweep) -> None:
    told = json.loads(swept.to_json())
    first, _, last = (step for step in told["steps"] if step["measure"] == "ARaB@10")
    assert (first["lambda"], last["lambda"]) == (0, 1)
    assert last["abs_reduction"] > 0.1
    assert last["gendered_weight"] < first["gendered_weight"]


def test_measures_without_a_better_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="GSR has to be compared with a perfect engine"):
        er.feedback(folder, {"q": "nurse"}, measures="GSR")


def test_only_bias_is_measured_without_judgments(folder: Path) -> None:
    found = er.feedback(folder, {"q1": "nurse", "q2": "surgeon"}, lambdas=[0.5])
    assert [str(m.measure) for m in found.measured.runs["0"]] == [
        "ARaB@10",
        "ARaB(magnitude='boolean')@10",
        "LIWC@10",
    ]


def test_a_tally_gives_what_the_text_gives(folder: Path) -> None:
    given = {"lambdas": [0.5], "measures": "ARaB@10", "confidence": None}
    queries = {"q1": "nurse", "q2": "surgeon"}
    tally = er.tally(demo.folder() / "docs.tsv")
    counted, taken = er.feedback(folder, queries, **given), er.feedback(folder, queries, tally=tally, **given)
    assert [counted.steps[each].run.equals(taken.steps[each].run) for each in (0, 0.5)] == [True, True]
    assert counted.to_dict()["steps"] == taken.to_dict()["steps"]
    with pytest.raises(InputError, match="made with the lexicon rekabsaz2020, not"):
        er.feedback(folder, queries, tally=tally, lexicon={"a": ["x"], "b": ["y"]}, **given)


def test_queries_that_find_nothing_are_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match="nothing was found for any query"):
        er.feedback(folder, {"q": "the of and"})


def _evenrank(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    start = "import sys; from evenrank.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_prints_a_table(folder: Path) -> None:
    queries = demo.folder() / "queries.tsv"
    done = _evenrank(
        "mitigate", "feedback", "--index", folder, "--queries", queries, "--lambdas", "0,1", "--measure",
        "ARaB@10", "--resamples", "0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "improved" in done.stdout and "gendered terms" in done.stdout


@pytest.mark.slow
def test_bad_input_is_one_line_and_exit_code_2(folder: Path) -> None:
    queries = demo.folder() / "queries.tsv"
    for extra in (["--lambdas", "0,2"], ["--ranker", "tfidf"], ["--set", "fb_docs=0"], ["--set", "m=1"]):
        done = _evenrank("mitigate", "feedback", "--index", folder, "--queries", queries, *extra)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_charts_are_drawn_without_a_network(swept: FeedbackSweep, form: str, tmp_path: Path) -> None:
    write_sheet(feedback_figures(swept), tmp_path / f"feedback.{form}")
    content = (tmp_path / f"feedback.{form}").read_bytes()
    assert len(content) > 1000


def test_a_setting_without_a_value_is_refused_in_one_line(folder: Path) -> None:
    queries = demo.folder() / "queries.tsv"
    done = _evenrank("mitigate", "feedback", "--index", folder, "--queries", queries, "--set", "k1=x")
    assert (done.returncode, done.stderr) == (2, "evenrank: k1 is 'x'; it must be a number\n")
