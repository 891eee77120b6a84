"""`er.measure`: which queries and documents count, what is said beside the value, and what is refused."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank import ARaB, FaiRR, InputError, NFaiRR, RaB, nDCG
from evenrank.measures.inputs import named_runs, run_name

DOCS = {
    "d1": "he and his brother",  # 3 male
    "d2": "she said",  # 1 female
    "d3": "nothing at all",
    "d4": "women and men",  # 1 of each
    "d5": "her mother and his",  # 2 female, 1 male
}
RUN = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d5": 2.0, "d4": 1.0}, "q3": {"d2": 1.0}}
QRELS = {"q1": {"d1": 1}, "q2": {"d4": 2, "d5": 0}, "q9": {"d3": 1}}
COUNT = RaB(magnitude="count") @ 2


def one(measure: Any = COUNT, run: Any = RUN, **given: Any) -> Any:
    given = {"docs": DOCS, "confidence": None} | given
    return er.measure(run, [measure], **given)[measure]


# Values


def test_value_parts_and_absolute_mean() -> None:
    found = one()
    assert found.per_query() == {"q1": 1.0, "q2": -0.5, "q3": -1.0}
    assert found.value == pytest.approx(-0.5 / 3)
    assert found.parts == pytest.approx({"female": (0.5 + 1.5 + 1) / 3, "male": (1.5 + 1) / 3})
    assert found.abs == pytest.approx(2.5 / 3)
    assert found.spread == pytest.approx(np.std([1, -0.5, -1], ddof=1))
    assert found.quantiles["0.5"] == -0.5
    assert found.beyond(0.6) == pytest.approx(2 / 3)
    assert found.to_dict()["beyond"] == {"0.1": 1.0}


def test_a_mixed_list_keeps_its_order() -> None:
    wanted = ["nDCG@10", ARaB @ 10, "RR@10", NFaiRR @ 5, "AP"]
    found = er.measure({"a": RUN, "b": RUN}, wanted, docs=DOCS, qrels=QRELS, confidence=None)
    for measurements in found.runs.values():
        assert [str(m.measure) for m in measurements] == [str(m) for m in wanted]


def test_intervals_hold_the_value_and_are_the_same_every_time() -> None:
    first, again = one(confidence=0.9), one(confidence=0.9)
    assert first.low <= first.value <= first.high
    assert (first.low, first.high) == (again.low, again.high)
    assert one(confidence=None).low is None


def test_a_tally_and_its_documents_give_the_same() -> None:
    assert one(docs=None, tally=er.tally(DOCS)).value == one().value
    assert one(docs=None, tally=er.tally(DOCS).frame).value == one().value


def test_runs_of_any_shape_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "bm25.run"
    rows = [(q, d, s) for q, docs in RUN.items() for d, s in docs.items()]
    path.write_text("".join(f"{q} Q0 {d} 0 {s} tag\n" for q, d, s in rows))
    names = ["query_id", "doc_id", "score"]
    for run in (path, str(path), pl.DataFrame(rows, names, orient="row"), pd.DataFrame(rows, columns=names)):
        assert one(run=run).value == one().value
    assert list(er.measure(path, [COUNT], docs=DOCS, confidence=None).runs) == ["bm25"]


def test_runs_are_named() -> None:
    assert named_runs(RUN) == {"run": RUN}
    assert list(named_runs({"a": RUN, "b": "b.run"})) == ["a", "b"]
    assert run_name("runs/time.bm25.run.gz") == "time.bm25"
    assert run_name(Path("x/bert.txt")) == "bert"
    assert run_name(".run") == ".run"


def test_scores_may_be_numbers_of_numpy() -> None:
    run = {q: {d: np.float32(s) for d, s in docs.items()} for q, docs in RUN.items()}
    assert one(run=run).value == one().value


def test_a_fork_of_a_process_that_measured_refuses_to_measure_but_still_tallies() -> None:
    code = """
import os, warnings
import evenrank as er
warnings.simplefilter("ignore")
run, docs = {"q": {"d": 1.0}}, {"d": "he"}
er.measure(run, "RaB@1", docs=docs)
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    er.measure(run, "RaB@1", tally=None, docs=docs)
except er.InputError as error:
    print(error, flush=True)
print(er.tally(docs)["male"].to_list(), flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "this process was forked after Polars had started its threads, and would wait for them forever; "
        "start workers with spawn, or with joblib's loky",
        "[1]",
    ]


# Which queries


def test_queries_for_which_nothing_was_ranked_are_counted_not_averaged() -> None:
    found = one(queries={"q1": "a", "q2": "b", "q7": "c", "q8": "d"})
    assert found.queries == 2
    assert found.left_out == {"nothing ranked": 2, "not among the queries given": 1}


def test_effectiveness_is_over_judged_queries_and_0_where_nothing_was_returned() -> None:
    found = one("RR@10", qrels=QRELS, docs=None)
    assert found.per_query() == {"q1": 1.0, "q2": 0.5, "q9": 0.0}
    assert found.value == 0.5
    assert found.left_out == {"not judged": 1}
    assert found.notes == ("judged queries with nothing returned, counted as 0: 1",)


def test_documents_that_were_not_returned_rank_below_all_others() -> None:
    run, qrels = {"q": {"d1": 9.0, "d2": 8.0}}, {"q": {"d9": 1, "d2": 1}}
    measure = "Compat(p=0.8)"
    (direct,) = ir_measures.iter_calc([ir_measures.Compat(p=0.8)], qrels, run)
    assert one(measure, run=run, qrels=qrels, docs=None).value == pytest.approx(direct.value)


@pytest.mark.parametrize("name", ["P", "nDCG", "AP", "R", "Success"])
def test_judged_only_drops_unjudged_documents_before_the_cut_off(name: str) -> None:
    run = {"q1": {"d3": 4.0, "d1": 3.0, "d2": 2.0}, "q2": {"d4": 2.0, "d5": 1.0}}
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d4": 1, "d5": 0}}
    measure = ir_measures.parse_measure(f"{name}(judged_only=True)@1")
    direct = {one.query_id: one.value for one in ir_measures.iter_calc([measure], qrels, run)}
    assert one(measure, run=run, qrels=qrels, docs=None).per_query() == direct == {"q1": 1.0, "q2": 1.0}


def test_undefined_effectiveness_is_left_out_and_counted() -> None:
    run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}
    qrels = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 1}}
    found = er.measure(run, ["nDCG@10", "Accuracy@10"], qrels=qrels)["Accuracy@10"]
    assert found.per_query() == {"q1": 1.0, "q3": 0.0}
    assert found.left_out == {"undefined": 1}


def test_sums_stay_sums() -> None:
    found = one("NumRet", qrels=QRELS, docs=None)
    assert found.value == 5
    assert found.low is None


GENDERS = {"q1": "neutral", "q2": "F", "q3": "male"}


def test_with_labels_neutral_queries_are_the_default_and_the_others_stand_apart() -> None:
    found = one(genders=GENDERS)
    assert (found.only, found.value, found.queries) == ("neutral", 1.0, 1)
    assert found.left_out == {"labelled female": 1, "labelled male": 1}
    assert {label: subset.value for label, subset in found.subsets.items()} == {"female": -0.5, "male": -1.0}


def test_labels_do_not_restrict_effectiveness_unless_a_subset_is_named() -> None:
    assert one("RR@10", qrels=QRELS, genders=GENDERS).queries == 3
    found = one("RR@10", qrels=QRELS, genders=GENDERS, only="female")
    assert found.per_query() == {"q2": 0.5}
    assert found.left_out == {"labelled male": 1, "labelled neutral": 1, "no gender label": 1}


@pytest.mark.parametrize(("only", "value"), [("female", -0.5), ("male", -1.0), ("all", -1 / 6)])
def test_only_chooses_the_subset(only: str, value: float) -> None:
    found = one(genders=GENDERS, only=only)
    assert found.value == pytest.approx(value)
    assert found.queries == (3 if only == "all" else 1)


def test_a_query_without_a_label_is_left_out_and_counted() -> None:
    assert one(genders={"q1": "neutral"}).left_out == {"no gender label": 2}


def test_a_subset_with_no_query_has_no_value() -> None:
    found = one(genders=GENDERS, only="other")
    assert found.value is None
    assert json.loads(json.dumps(found.to_dict()))["value"] is None


def test_without_labels_gendered_queries_are_pointed_out() -> None:
    asked = {"q1": "famous women", "q2": "weather", "q3": "his hat"}
    found = er.measure(RUN, [COUNT], docs=DOCS, queries=asked, confidence=None)
    assert len(found.warnings) == 1
    assert "2 of 3 contain a word of the lexicon" in found.warnings[0]
    more = asked | {"q4": "her mother"}  # ranked by nobody
    assert er.measure(RUN, [COUNT], docs=DOCS, queries=more, confidence=None).warnings == found.warnings
    assert not er.measure(RUN, [COUNT], docs=DOCS, genders=GENDERS, confidence=None).warnings
    assert not er.measure(RUN, ["RR@10"], qrels=QRELS, confidence=None).warnings


# Documents


STRANGE = RUN | {"q4": {"x1": 2.0, "d1": 1.0}, "q5": {"x2": 1.0}}


def test_documents_outside_the_collection_are_refused_by_name_and_number() -> None:
    with pytest.raises(InputError, match=r"the collection lacks 2 of its documents in the top 2 \(x1, x2\)"):
        one(run=STRANGE)


def test_only_documents_above_the_cut_off_are_looked_for() -> None:
    run = {"q1": {"d1": 3.0, "d2": 2.0, "nowhere": 1.0}}
    assert one(run=run).value == 1.0


def test_missing_zero_counts_them_as_having_no_words() -> None:
    found = one(run=STRANGE, missing="zero")
    each = found.per_query()
    assert (each["q4"], each["q5"]) == (1.5, 0.0)
    assert found.notes == (
        "2 of 8 ranked documents in the top 2 are not in the collection: counted as having no words",
    )


def test_missing_skip_closes_the_gap() -> None:
    found = one(RaB(magnitude="count") @ 1, run=STRANGE, missing="skip")
    assert found.per_query()["q4"] == 3.0
    assert "q5" not in found.per_query()
    assert found.left_out == {"no ranked document is in the collection": 1}
    assert found.notes == ("2 of 9 ranked documents are not in the collection: skipped",)


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_a_run_of_another_collection_is_refused_whatever_is_done_with_missing(missing: str) -> None:
    with pytest.raises(InputError, match="the collection lacks all of its documents"):
        one(run={"q": {"x1": 1.0, "x2": 0.5}}, missing=missing)


# Ties


def test_the_share_of_queries_with_a_tie_across_the_cut_off_is_told() -> None:
    tied, apart, alone = {"d1": 1.0, "d2": 1.0}, {"d1": 2.0, "d2": 1.0}, {"d1": 1.0}
    run = {"q1": tied, "q2": apart, "q3": alone, "q4": tied}
    assert one(RaB @ 1, run=run).ties == 0.5
    assert one(RaB @ 2, run=run).ties == 0.0


def test_ties_above_the_cut_off_are_told_where_the_order_counts() -> None:
    inside = {"d1": 2.0, "d2": 2.0, "d3": 1.0}
    run = {"q1": inside, "q2": {"d1": 3.0, "d2": 2.0, "d3": 1.0, "d4": 1.0}}
    assert one(RaB @ 2, run=run).ties == 0.0
    for measure in (ARaB @ 2, FaiRR @ 2, NFaiRR @ 2):
        assert one(measure, run=run).ties == 0.5
    assert one(ARaB @ 3, run=run).ties == 1.0


def test_ties_go_by_id_descending_or_by_expectation() -> None:
    run = {"q": {"d1": 1.0, "d2": 1.0}}
    assert one(RaB(magnitude="count") @ 1, run=run).value == -1.0
    assert one(RaB(magnitude="count") @ 1, run=run, ties="expected").value == 1.0
    fair = one(FaiRR @ 1, run=run, ties="expected")
    assert fair.value == 0.5


def test_expected_ties_leave_effectiveness_alone_and_say_so() -> None:
    run = {"q1": {"d1": 1.0, "d2": 1.0}}
    found = one("RR@10", run=run, qrels={"q1": {"d1": 1}}, ties="expected")
    assert found.value == 0.5
    assert "trec_eval's order" in found.notes[0]


def test_the_rank_column_is_trusted_only_when_asked() -> None:
    run = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["d1", "d2"], "score": [1.0, 2.0], "rank": [1, 2]})
    measure = RaB(magnitude="count") @ 1
    assert one(measure, run=run).value == -1.0
    by_rank = one(measure, run=run, order="rank")
    assert (by_rank.value, by_rank.ties) == (3.0, None)
    assert one("RR@10", run=run, order="rank", qrels={"q": {"d1": 1}}).value == 1.0
    with pytest.raises(InputError, match="leaves no ties"):
        one(run=run, order="rank", ties="expected")


# Backgrounds


def test_bias_is_compared_with_collection_and_relevant_documents() -> None:
    found = one(qrels=QRELS)
    collection = (3 - 1 + 0 + 0 - 1) / 5
    assert found.background["collection"]["value"] == pytest.approx(collection)
    assert found.background["collection"]["difference"] == pytest.approx(found.value - collection)
    # q1: d1 (3 male); q2: d4 (balanced; d5 is judged 0); q3 is not judged, q9 not ranked.
    assert found.background["qrels"] == pytest.approx({"value": 1.5, "difference": 0.25 - 1.5, "queries": 2})


def test_collection_means_are_the_same_however_they_are_computed() -> None:
    tally = er.tally(DOCS).frame
    for magnitude, each in {
        "tf": np.log1p(tally["male"]) - np.log1p(tally["female"]),
        "boolean": (tally["male"] > 0).cast(int) - (tally["female"] > 0).cast(int),
        "length": (tally["male"] - tally["female"]) / tally["tokens"],
        "tf-words": tally["male_logwords"] - tally["female_logwords"],
    }.items():
        found = one(ARaB(magnitude=magnitude) @ 3)
        assert found.background["collection"]["value"] == pytest.approx(each.mean())


def test_a_single_run_is_its_own_background_and_says_so() -> None:
    found = one(NFaiRR @ 2)
    assert found.per_query()["q1"] < 1
    (note,) = found.notes
    assert note.startswith("background: the run itself")


def test_the_first_of_several_runs_is_the_background_of_all() -> None:
    worse = {"q1": {"d1": 3.0}, "q2": {"d5": 2.0}, "q3": {"d2": 1.0}}
    found = er.measure({"base": RUN, "worse": worse}, [NFaiRR @ 2], docs=DOCS, confidence=None)
    assert "the first run, base" in found["worse", NFaiRR @ 2].notes[0]
    assert found["worse", NFaiRR @ 2].per_query()["q1"] == 0.0
    assert found["base", NFaiRR @ 2].per_query()["q2"] < 1


def test_a_chosen_background_needs_no_note() -> None:
    background = {query: dict.fromkeys(DOCS, 1.0) for query in RUN}
    found = one(NFaiRR @ 2, background=background)
    assert found.notes == ()
    assert found.value < one(NFaiRR @ 2).value


def test_a_query_missing_from_the_background_is_named() -> None:
    with pytest.raises(InputError, match="query q2 and 1 more is missing from the background"):
        one(NFaiRR @ 2, background={"q1": RUN["q1"]})


def test_a_query_with_no_neutral_background_is_left_out_and_counted() -> None:
    found = one(NFaiRR @ 2, run={"q1": {"d1": 1.0}, "q2": {"d3": 1.0}})
    assert found.per_query() == {"q2": 1.0}
    assert found.left_out == {"no neutral document in the background": 1}


# What is handed out


def test_everything_is_json() -> None:
    found = er.measure(
        RUN,
        [COUNT, NFaiRR @ 2, nDCG @ 10],
        docs=DOCS,
        qrels=QRELS,
        genders=GENDERS,
        explain=True,
    )
    written = json.loads(json.dumps(found.to_dict(per_query=True), allow_nan=False))
    rank_bias = written["runs"][0]["measures"][0]
    assert rank_bias["measure"] == "RaB(magnitude='count')@2"
    assert rank_bias["per_query"] == {"q1": 1.0}
    assert {"value", "low", "high", "queries", "left_out", "parts", "abs", "subsets"} <= set(rank_bias)
    assert written["provenance"]["tally"]["tokenizer"] == "words"
    assert "per_query" not in found.to_dict()["runs"][0]["measures"][0]


def test_frames_are_long() -> None:
    found = er.measure({"a": RUN, "b": RUN}, [COUNT, nDCG @ 10], docs=DOCS, qrels=QRELS, confidence=None)
    assert found.frame().shape[0] == 4
    assert found.frame().columns[:3] == ["run", "measure", "value"]
    each = found.per_query()
    assert each.columns == ["run", "measure", "query_id", "value", "female", "male"]
    assert each.filter(pl.col("measure") == str(COUNT), run="a")["value"].to_list() == [1.0, -0.5, -1.0]
    assert each.filter(pl.col("measure") == "nDCG@10")["female"].null_count() == 6


def test_measurements_are_found_by_name_and_by_place() -> None:
    found = er.measure({"a": RUN, "b": RUN}, [COUNT], docs=DOCS, confidence=None)
    assert found["a", "RaB(magnitude='count')@2"] is found.runs["a"][0]
    assert found[1] is found.runs["b"][0] is found[-1]
    with pytest.raises(InputError, match="there is no run 'c'; one of a, b"):
        found["c", COUNT]
    with pytest.raises(InputError, match="several runs"):
        found[COUNT]
    with pytest.raises(InputError, match="ARaB@10 was not measured"):
        found["a", "ARaB@10"]


def test_the_same_input_gives_the_same_provenance() -> None:
    first, again = (er.measure(RUN, [COUNT], docs=DOCS).to_dict()["provenance"] for _ in range(2))
    other = er.measure(RUN | {"q3": {"d1": 1.0}}, [COUNT], docs=DOCS).to_dict()["provenance"]
    assert first == again
    assert first["runs"] != other["runs"]


# What is refused


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"docs": None}, r"RaB\(magnitude='count'\)@2 needs a tally, or docs"),
        ({"missing": "none"}, "missing cannot be 'none'"),
        ({"ties": "random"}, "ties cannot be 'random'"),
        ({"order": "ranks"}, "did you mean 'rank'"),
        ({"only": "neutral"}, "needs gender labels"),
        ({"only": "femal", "genders": GENDERS}, "did you mean 'female'"),
        ({"measure": "nDCG@10"}, "nDCG@10 needs relevance judgments"),
        ({"measure": "RaB"}, "needs a cut-off"),
        ({"run": {}}, "at least one run"),
        ({"resamples": 0}, "resamples is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"measure": "RaB@99999999999999999999"}, "must be at most"),
        ({"measure": "P(rel=0)@5", "qrels": QRELS}, r"cannot compute P\(rel=0\)@5: .* positive"),
        ({"measure": "RBP", "qrels": QRELS}, "cannot compute RBP: Unsupported"),
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        one(**given)


def test_a_tally_made_with_other_words_or_tokens_is_refused() -> None:
    tally = er.tally(DOCS)
    assert one(docs=None, tally=tally, lexicon="rekabsaz2020", tokenizer="words").value == one().value
    with pytest.raises(InputError, match="made with the lexicon rekabsaz2020, not fabris2020"):
        one(docs=None, tally=tally, lexicon="fabris2020")
    with pytest.raises(InputError, match="made with the tokenizer words, not whitespace"):
        one(docs=None, tally=tally, tokenizer="whitespace")


def test_more_than_two_groups() -> None:
    lexicon = {"a": ["he"], "b": ["she"], "c": ["women"]}
    with pytest.raises(InputError, match="name two of them"):
        one(lexicon=lexicon)
    found = one(COUNT(of="a", against="b"), lexicon=lexicon)
    assert found.per_query() == {"q1": 0.0, "q2": 0.0, "q3": -1.0}
    assert set(found.parts) == {"a", "b"}
    assert 0 <= one(NFaiRR(target={"a": 0.6, "b": 0.2, "c": 0.2}) @ 3, lexicon=lexicon).value <= 1


def test_nothing_is_nan() -> None:
    found = er.measure({"q1": {"d1": 1.0}}, [COUNT, NFaiRR @ 1], docs=DOCS)
    for measurement in found:
        assert measurement.value is None or not math.isnan(measurement.value)
    assert found[NFaiRR @ 1].value is None


def test_parameters_may_be_numbers_of_numpy() -> None:
    assert er.ARaB @ np.int64(10) == er.ARaB @ 10
    assert str(er.ARaB @ np.int64(10)) == "ARaB@10"
    for wrong in (np.bool_(True), np.float64(2.5), np.int64(0)):
        with pytest.raises(er.InputError, match="cutoff"):
            er.ARaB @ wrong
