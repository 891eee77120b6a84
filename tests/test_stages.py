"""Where bias enters: what stages add, telescoping; and the mirror test: the ranker, or the texts?"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.show.charts.stages import preference_figures
from evenrank.show.report import sections

DOCS = {"m": "he he he", "f": "she she", "x": "his", "y": "her own", "n": "nothing at all"}
TEXTS = ["he is here", "she is here", "here", "his his", "her own"]
MEASURES = ["ARaB@2", "RaB@3", "NFaiRR(threshold=0)@2", "ExposureGap@3"]
SETS = st.lists(st.sampled_from(sorted(DOCS)), min_size=2, max_size=4, unique=True)


def run(*order: str, queries: int = 3) -> dict[str, dict[str, float]]:
    return {f"q{i}": {doc: 9.0 - rank for rank, doc in enumerate(order)} for i in range(queries)}


@given(SETS)
def test_a_set_counts_with_its_exact_mean_over_all_orders(docs: list[str]) -> None:
    found = er.trace({"c": run(*docs)}, MEASURES, docs=DOCS, background=run(*DOCS))
    orders = [*permutations(docs)]
    every_order = {f"q{i}": run(*order)["q0"] for i, order in enumerate(orders)}  # one query for each order
    background = run(*DOCS, queries=len(orders))
    means = er.measure(every_order, MEASURES, docs=DOCS, background=background, confidence=None)
    for measure in MEASURES:
        stages = {stage.name: stage.value for stage in found.of(measure)}
        assert stages["c, as a set"] == pytest.approx(means[measure].value, abs=1e-12)


@given(SETS, SETS, SETS)
def test_what_stages_add_is_the_last_value_minus_the_first(a: list[str], b: list[str], c: list[str]) -> None:
    found = er.trace({"a": run(*a), "b": run(*b), "c": run(*c)}, MEASURES, docs=DOCS, background=run(*DOCS))
    for measure in MEASURES:
        stages = found.of(measure)
        assert [stage.name for stage in stages] == ["collection", "a, as a set", "a, in order", "b", "c"]
        assert stages[0].added is None
        added = sum(stage.added for stage in stages[1:] if stage.added is not None)
        assert added == pytest.approx(stages[-1].value - stages[0].value, abs=1e-12)


def test_the_collection_is_the_mean_of_its_documents() -> None:
    found = er.trace({"c": run("m", "f")}, ["RaB(magnitude='count')@2"], docs=DOCS)
    first = found.stages[0]
    assert first.value == pytest.approx((3 - 2 + 1 - 1 + 0) / 5) and first.low is None
    assert (
        er.trace({"c": run("m", "f")}, ["RaB@2"], docs=DOCS, collection=False).stages[0].name == "c, as a set"
    )


def test_all_stages_are_over_the_same_queries() -> None:
    stages = {"c": run("m", "f", queries=4), "r": run("f", "m", queries=3)}
    found = er.trace(stages, ["RaB@1"], docs=DOCS)
    assert {stage.queries for stage in found.stages} == {3} and found.left_out == {"RaB@1": 1}
    assert "1 query left out" in str(found)
    with pytest.raises(InputError, match="no query is ranked at every stage"):
        er.trace({"c": run("m", "f"), "r": {"other": {"m": 1.0}}}, ["NFaiRR@1"], docs=DOCS)


def test_what_is_no_sum_over_documents_is_refused() -> None:
    with pytest.raises(InputError, match="no sum over documents"):
        er.trace({"c": run("m", "f")}, ["AWRF@2"], docs=DOCS)
    with pytest.raises(InputError, match="another name"):
        er.trace({"collection": run("m", "f")}, ["RaB@2"], docs=DOCS)


def test_the_gap_of_exposure_is_between_groups() -> None:
    labels = {"m": "a", "f": "b", "x": "a", "y": "b", "n": "b"}
    found = er.measure(run("f", "m"), "ExposureGap@2", labels=labels)["ExposureGap@2"]
    assert found.value == pytest.approx((1 - 1 / np.log2(3)) / (1 + 1 / np.log2(3)))
    assert found.parts["a"] + found.parts["b"] == pytest.approx(1)


# The mirror test


def test_a_ranker_that_looks_at_no_gendered_word_has_no_preference() -> None:
    docs, queries, _ = er.load(demo.folder())
    found = er.mirror(docs, queries, rankers=["bm25"])
    one = found["bm25"]
    assert one["preference"] == pytest.approx(0, abs=1e-12) and one["verdict"] == "no preference"
    assert one["content"] == pytest.approx(one["raw"]) and one["raw"] == -one["mirrored"]
    assert sum(found.left_out.values()) == len(queries) - one["queries"]


def male_first(docs: Any, queries: pl.DataFrame) -> dict[str, dict[str, float]]:
    texts = dict(docs.frame().select("doc_id", "text").iter_rows())
    counts = {doc: len([w for w in text.split() if w in ("he", "his")]) for doc, text in texts.items()}
    return {query: {doc: float(n) for doc, n in counts.items()} for query in queries["query_id"]}


def test_a_ranker_that_wants_men_is_found_out_whatever_the_texts_are() -> None:
    docs = {"a": "he he he here", "b": "she is here", "c": "here"}
    queries = {f"q{i}": "who is here" for i in range(3)}
    found = er.mirror(docs, queries, rankers=[male_first], measure="RaB@1")["male_first"]
    assert found["raw"] > 0 and found["mirrored"] > 0
    assert found["preference"] == pytest.approx((found["raw"] + found["mirrored"]) / 2)
    assert found["content"] == pytest.approx((found["raw"] - found["mirrored"]) / 2)


@given(
    st.lists(
        st.sampled_from(["he is here", "she is here", "here", "his his", "her own"]), min_size=2, max_size=6
    )
)
def test_preference_and_content_are_the_raw_lean_and_the_mirror_turns_one_of_them(texts: list[str]) -> None:
    docs = {f"d{i}": text for i, text in enumerate(texts)}
    queries = {"q1": "here", "q2": "own"}
    there = er.mirror(docs, queries, rankers={"r": male_first}, measure="RaB@2")["r"]
    back = er.mirror(er.swap(docs), queries, rankers={"r": male_first}, measure="RaB@2")["r"]
    assert there["preference"] + there["content"] == pytest.approx(there["raw"])
    assert back["raw"] == pytest.approx(there["mirrored"])


def test_queries_that_name_a_gender_are_left_out_or_mirrored_and_counted() -> None:
    docs = {"a": "he plays chess", "b": "she plays chess", "c": "chess"}
    queries = {"q1": "chess", "q2": "she plays", "q3": "plays chess"}
    left = er.mirror(docs, queries)
    assert (
        left.left_out == {"queries left out because they name a gender": 1} and left["bm25"]["queries"] == 2
    )
    both = er.mirror(docs, queries, gendered_queries=True)
    assert (
        both.left_out == {"queries that name a gender and were mirrored": 1} and both["bm25"]["queries"] == 3
    )
    assert both["bm25"]["preference"] == pytest.approx(0, abs=1e-12)  # asked and answered in the mirror
    assert left.remarks() == ["queries left out because they name a gender: 1"]
    assert both.remarks() == ["queries that name a gender and were mirrored: 1"]
    with pytest.raises(InputError, match="all queries name a gender"):
        er.mirror(docs, {"q": "she"})
    with pytest.raises(InputError, match="names no group"):
        er.mirror(docs, queries, measure="NFaiRR@2")


def test_the_group_that_is_preferred_is_named_whichever_the_measure_is_of() -> None:
    docs = {f"{who}{i}": f"{who} {i}" for i in range(3) for who in ("he", "she")}
    queries = {str(i): "stone" for i in range(12)}

    def men_first(texts: Any, asked: pl.DataFrame) -> pl.DataFrame:  # but not quite always
        rows = [
            (query, doc, float(("she" not in text) == (query != "0")) + number / 9)
            for query in asked["query_id"]
            for number, (doc, text) in enumerate(texts.frame().select("doc_id", "text").iter_rows())
        ]
        return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")

    for measure, positive, sign in (("ARaB@2", "male", 1), ("ARaB(of='female')@2", "female", -1)):
        found = er.mirror(docs, queries, rankers={"r": men_first}, measure=measure)
        assert found["r"]["verdict"] == "prefers male" and sign * found["r"]["preference"] > 0
        assert found.to_dict()["rankers"][0]["positive"] == positive
        assert f"above 0 {positive}." in preference_figures(found)[0].caption


def test_candidates_that_were_not_found_come_last_below_0_too() -> None:
    docs = {"m": "he his man", "f": "she her woman", "n": "a stone"}
    queries = {"1": "stone", "2": "river"}

    def two_found(texts: Any, asked: pl.DataFrame) -> pl.DataFrame:
        rows = [
            (query, doc, score) for query in asked["query_id"] for doc, score in (("m", -1.0), ("n", -2.0))
        ]
        return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")

    how = {"rankers": {"r": two_found}, "measure": "ARaB@2"}
    own = {query: dict.fromkeys(docs, 1) for query in queries}
    among, free = er.mirror(docs, queries, candidates=own, **how), er.mirror(docs, queries, **how)
    assert among.values.equals(free.values)


def test_only_candidates_are_ranked_and_those_not_found_come_last() -> None:
    docs = {"a": "he plays chess", "b": "she swims", "c": "chess"}
    own = {"q1": {"a": 1, "b": 1}}
    found = er.mirror(docs, {"q1": "chess"}, candidates=own, measure="RaB(magnitude='boolean')@1")
    assert found["bm25"]["raw"] == 1.0 and found["bm25"]["mirrored"] == -1.0


def test_the_audit_tells_both() -> None:
    docs, queries, _ = er.load(demo.folder())
    runs = {name: demo.folder() / f"{name}.run" for name in ("bm25", "dense")}
    found = er.audit(runs, docs=docs, queries=queries, stages=runs, rankers=["bm25"], resamples=50)
    content = found.to_dict()
    assert [stage["name"] for stage in content["stages"]["stages"]][:4] == [
        "collection", "bm25, as a set", "bm25, in order", "dense",
    ]  # fmt: skip
    assert content["preference"]["rankers"][0]["verdict"] == "no preference"
    from evenrank.show.report import sections

    made = {section.id: section for section in sections(found)}
    assert len(made["stages"].figures) == 3 and len(made["preference"].figures) == 1
    assert all(figure.chart.to_dict() for figure in (*made["stages"].figures, *made["preference"].figures))


def test_the_commands_print_what_they_find(capsys: pytest.CaptureFixture[str]) -> None:
    here = demo.folder()
    shared = ["--docs", str(here / "docs.tsv")]
    assert main(["trace", str(here / "bm25.run"), "ARaB@10", *shared]) == 0
    assert "bm25, as a set" in capsys.readouterr().out
    assert main(["mirror", *shared, "--queries", str(here / "queries.tsv"), "--format", "json"]) == 0
    assert '"verdict": "no preference"' in capsys.readouterr().out


def test_the_command_names_its_own_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs.tsv").write_text("a\the said\nb\tshe said\n")
    (tmp_path / "queries.tsv").write_text("q\twhat she said\n")
    given = ["--docs", str(tmp_path / "docs.tsv"), "--queries", str(tmp_path / "queries.tsv")]
    assert main(["mirror", *given]) == 2
    assert "to compare them too, give --gendered-queries" in capsys.readouterr().err
    assert main(["mirror", *given, "--gendered-queries"]) == 0
    assert "queries that name a gender and were mirrored: 1" in capsys.readouterr().out


def test_a_notebook_shows_both() -> None:
    found = er.trace({"c": run("m", "f")}, ["RaB@2"], docs=DOCS)
    assert "c, as a set" in found._repr_html_() and found.chart() is not None
    test = er.mirror({"a": "he plays", "b": "she plays"}, {"q1": "plays", "q2": "play"})
    assert "bm25" in test._repr_html_() and len(test.to_pandas()) == 1


def test_figures_say_what_one_query_has() -> None:
    given = {"docs": DOCS, "queries": {"q0": "nothing at here own"}}
    found = er.audit({"c": run("m", "f", queries=1)}, ["ARaB@2"], stages={"c": run("m", "f", queries=1)},
                     rankers=["bm25"], **given)  # fmt: skip
    told = {section.id: section for section in sections(found)}
    assert "over one query." in told["stages"].figures[0].caption
    assert "lines are" not in told["stages"].figures[0].caption
    assert "(1 query)" in told["preference"].lead
    assert "Over 1 query; above 0 male" in told["preference"].figures[0].caption
