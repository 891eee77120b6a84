"""A query is about a woman or a man if it says so: not for a job, a thing, a place, a dog or its length."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from experiments.query_classifier.samples import names_nobody, plain_samples

from evenrank.queries.classify import OTHER, classify, decide
from evenrank.queries.model import LABELS
from evenrank.queries.words import plain_queries

_UNSEEN = tomllib.loads((Path(__file__).parent / "unseen.toml").read_text())
OCCUPATIONS, SENTENCES, TOLD = (_UNSEEN[name] for name in ("occupations", "sentences", "told"))


def _labels(texts: list[str]) -> list[str]:
    return classify({str(number): text for number, text in enumerate(texts)})["label"].to_list()


def _share(texts: list[str], label: str) -> float:
    return float(np.mean([found == label for found in _labels(texts)]))


def _told(gender: str) -> list[str]:
    return [told.format(x=job, **_UNSEEN["words"][gender]) for job in OCCUPATIONS for told in TOLD]


def test_the_jobs_and_sentences_of_the_check_are_not_those_of_the_training() -> None:
    lists = plain_queries()
    known = set(lists["sentences"]["jobs"]) | set(lists["sentences"]["told_jobs"])
    assert len(set(OCCUPATIONS)) == 300 and not set(OCCUPATIONS) & set(lists["jobs"])
    assert not (set(SENTENCES[1:]) | set(TOLD[1:])) & known
    assert set(plain_samples().texts).isdisjoint(
        sentence.format(x=job) for job in OCCUPATIONS for sentence in SENTENCES
    )


def test_a_job_names_no_gender() -> None:
    texts = [sentence.format(x=job) for job in OCCUPATIONS for sentence in SENTENCES]
    assert _share(texts, "neutral") >= 0.99
    assert _share(OCCUPATIONS, "neutral") >= 0.98  # said alone, without a sentence


def test_a_job_of_which_no_word_was_learned_names_no_gender() -> None:
    learned = {word for job in plain_queries()["jobs"] for word in job.split()}
    new = [job for job in OCCUPATIONS if learned.isdisjoint(job.split())]
    assert len(new) >= 50
    assert _share([sentence.format(x=job) for job in new for sentence in SENTENCES], "neutral") >= 0.98


@pytest.mark.parametrize(
    "text",
    [
        "nurse",
        "nurse salary",
        "surgeon",
        "secretary",
        "ballet dancing",
        "engineering degree",
        "best lipstick",
        "power tools",
        "wedding planner near me",
        "truck driver",
    ],
)
def test_what_people_think_of_a_job_or_a_thing_is_no_gender(text: str) -> None:
    assert _labels([text]) == ["neutral"]


@pytest.mark.parametrize("gender", ["female", "male"])
def test_a_gender_that_is_named_counts(gender: str) -> None:
    assert _share(_told(gender), gender) >= 0.97
    assert _share([f"{gender} {job}" for job in OCCUPATIONS], gender) >= 0.97


def test_female_and_male_are_found_equally_well() -> None:
    assert abs(_share(_told("female"), "female") - _share(_told("male"), "male")) <= 0.02


@pytest.mark.parametrize(
    "sentence",
    [
        "what methods are there to keep a catalogue up to date when new records arrive every day",
        "describe how documents are indexed and how terms are weighted in a system that ranks by relevance",
        "which factors decide how long concrete takes to cure in cold and wet weather",
    ],
)
@pytest.mark.parametrize("times", [1, 2, 4, 8])
def test_length_says_nothing(sentence: str, times: int) -> None:
    assert _labels([" ".join([sentence] * times)]) == ["neutral"]


def test_long_texts_that_name_nobody_are_neutral(shared: Path) -> None:
    lines = (shared / "data" / "squad" / "queries.test.tsv").read_text().splitlines()
    plain = [text for text in (line.split("\t")[1] for line in lines) if names_nobody(text)]
    long = [" ".join(plain[at : at + 5]) for at in range(0, 2000, 5)]
    assert np.mean([len(text.split()) for text in long]) > 40
    assert _share(long, "neutral") >= 0.97


@pytest.mark.parametrize(
    "text",
    [
        "is a german shepherd related to a wolf",
        "does the tgv stop at charles de gaulle",
        "is the san francisco bay part of the pacific ocean",
        "rooms at the stanley hotel",
        "how to get to dorothy lake park",
        "opening hours of the walter johnson library",
        "is a jack russell a small dog",
        "santa barbara weather",
    ],
)
def test_a_place_or_a_dog_with_a_name_is_nobody(text: str) -> None:
    assert _labels([text]) == ["neutral"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("how old is barbara walters", "female"),
        ("how old is walter matthau", "male"),
        ("who is margaret atwood", "female"),
        ("who is kenneth branagh", "male"),
        ("where was patricia highsmith born", "female"),
        ("where was raymond chandler born", "male"),
    ],
)
def test_a_person_s_name_tells(text: str, label: str) -> None:
    assert _labels([text]) == [label]


def test_a_long_query_that_names_a_woman_or_a_man_is_about_them() -> None:
    start = "what should be considered when planning a training schedule for the coming year for"
    assert _labels([f"{start} a woman", f"{start} a man"]) == ["female", "male"]


def test_made_samples_are_the_same_for_both_genders() -> None:
    made = plain_samples()
    counts = {label: made.labels.count(label) for label in LABELS}
    assert counts["female"] == counts["male"] > 1000 and counts["neutral"] > counts["female"]


def test_where_no_class_is_more_likely_the_label_is_other() -> None:
    rows = np.array([[0.34, 0.33, 0.33], [0.1, 0.2, 0.7], [0.4, 0.2, 0.4]])
    assert decide(rows).tolist() == [0, 2, len(LABELS)]
    assert decide(rows, 0.45).tolist() == [len(LABELS), 2, len(LABELS)]
    assert OTHER in classify({"1": "lee"}, min_confidence=1.0)["label"].to_list()


def test_annotated_queries_are_nearly_all_labelled(shared: Path) -> None:
    path = shared / "data" / "query-gender" / "predicted.tsv"
    texts = [line.split("\t")[1] for line in path.read_text().splitlines()]
    assert np.mean([label != OTHER for label in _labels(texts)]) >= 0.95


@pytest.mark.parametrize("text", ["does justin marry rebecca", "did john meet mary", "men and women"])
def test_a_query_about_a_woman_and_a_man_is_other(text: str) -> None:
    assert _labels([text]) == [OTHER]


def test_a_name_in_what_a_query_is_set_in_is_not_a_second_person() -> None:
    assert _labels(["who plays margaret in the book of henry"]) != [OTHER]


def _read_by_hand(shared: Path, confidence: float) -> tuple[int, list[bool]]:
    """How many of wiki's test queries are labelled female or male; which of those read by hand are right."""
    labels = Path(__file__).parents[2] / "benchmarks" / "data" / "wiki-test-query-genders.tsv"
    judged = dict(line.split("\t") for line in labels.read_text().splitlines()[1:])
    lines = (shared / "data/wiki/queries.test.tsv").read_text().splitlines()
    table = classify(dict(line.split("\t") for line in lines), min_confidence=confidence)
    rows = table.filter(pl.col("label").is_in(LABELS[:2])).select("query_id", "label").rows()
    return len(rows), [judged[query] == label for query, label in rows if query in judged]


@pytest.mark.parametrize(("confidence", "share", "least"), [(0.0, 0.8, 100), (0.8, 0.9, 90)])
def test_few_real_queries_are_called_female_or_male_by_mistake(
    confidence: float, share: float, least: int, shared: Path
) -> None:
    gendered, right = _read_by_hand(shared, confidence)
    assert len(right) >= 0.9 * gendered >= least
    assert np.mean(right) >= share


@pytest.mark.xfail(strict=True, reason="0.849 of 186; the larger model before had 0.913 of 138")
def test_nine_of_ten_labels_of_real_queries_are_right(shared: Path) -> None:
    _, right = _read_by_hand(shared, 0.0)
    assert np.mean(right) >= 0.9
