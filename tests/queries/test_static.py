"""The static classifier: what it learns, keeps and explains."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.query_classifier.training import read_labelled, save, train_classifier
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import InputError
from evenrank.data.files import packed, read_model, write_model
from evenrank.queries.features import BUCKETS, clean
from evenrank.queries.model import LABELS, StaticClassifier, load_classifier
from evenrank.queries.words import data, explicit_words
from evenrank.vectors import load

_FEMALE = [
    "who is mary smith",
    "how old is linda",
    "her mother",
    "pregnancy test",
    "queen anne",
    "the actress",
]
_MALE = ["who is john smith", "how old is robert", "his father", "prostate exam", "king george", "the actor"]
_NEUTRAL = [
    "what is python",
    "weather today",
    "how far is mars",
    "define table",
    "cost of tires",
    "rice recipe",
]
_TEXTS = [*_FEMALE, *_MALE, *_NEUTRAL]
_LABELS = ["female"] * 6 + ["male"] * 6 + ["neutral"] * 6
_MIRRORED = {"female": "male", "male": "female"}


@pytest.fixture(scope="module")
def model() -> StaticClassifier:
    vectors = load({"duchess": [1.0, 0.0], "actress": [1.0, 0.1], "duke": [0.0, 1.0], "actor": [0.1, 1.0]})
    return train_classifier(_TEXTS, _LABELS, vectors=[vectors])


def test_it_learns_its_training_queries(model: StaticClassifier) -> None:
    chosen = model.predict_proba(_TEXTS).argmax(1)
    assert (chosen == np.repeat([0, 1, 2], 6)).mean() > 0.8


def test_names_it_never_saw_are_known_from_the_census(model: StaticClassifier) -> None:
    assert model.predict_proba(["who is barbara jones"])[0].argmax() == 0
    assert model.predict_proba(["who is william jones"])[0].argmax() == 1


def test_a_saved_model_says_the_same(model: StaticClassifier, tmp_path: Path) -> None:
    save(model, tmp_path / "m")
    again = load_classifier(tmp_path / "m")
    assert np.allclose(again.predict_proba(_TEXTS), model.predict_proba(_TEXTS))
    assert again.is_training_query(["Who is  MARY smith", "who is mary jones"]).tolist() == [True, False]


def test_vectors_are_folded_into_the_weights_of_words() -> None:
    vectors = load({"alpha": [3.0, 4.0], "beta": [0.0, 1.0], "gamma": [1.0, 0.0]})
    texts = ["alpha beta", "beta gamma beta", "gamma unheard"] * 4
    model = train_classifier(texts, ["female", "male", "neutral"] * 4, vectors=[vectors])
    assert model.features.vocabulary == ["alpha", "beta", "gamma"]
    assert model.weights.shape == (model.features.columns, 3)
    assert model.weights[BUCKETS : BUCKETS + 3].any(axis=1).all()


def test_reasons_name_the_words_and_their_side(model: StaticClassifier) -> None:
    word, group, weight = model.explain(["who is barbara"])[0][0]
    assert (word, group) == ("barbara", "female") and weight > 0
    assert model.explain([""]) == [[]]


@given(st.text(max_size=300))
def test_any_text_gets_probabilities(model: StaticClassifier, text: str) -> None:
    found = model.predict_proba([text])
    assert found.shape == (1, 3) and found.sum() == pytest.approx(1) and (found >= 0).all()
    assert np.array_equal(found, model.predict_proba([text.upper().lower()])) or not text.isascii()


def test_a_batch_says_what_each_query_alone_says(model: StaticClassifier) -> None:
    alone = np.vstack([model.predict_proba([text]) for text in _TEXTS])
    assert np.allclose(alone, model.predict_proba(_TEXTS))


def test_the_longest_query_does_no_harm(model: StaticClassifier) -> None:
    for text in ("x" * 10_000, "ab " * 5_000, "who is mary " * 900, "\0" * 50, "é" * 1_000):
        assert model.predict_proba([text]).sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_order_of_the_rows_makes_no_difference(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(len(_TEXTS))
    save(train_classifier(_TEXTS, _LABELS), tmp_path / "a")
    save(train_classifier([_TEXTS[i] for i in order], [_LABELS[i] for i in order]), tmp_path / "b")
    for file in ("model.json", "static.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_arrays_that_do_not_fit_are_refused_though_the_checksum_vouches_for_them(
    model: StaticClassifier, tmp_path: Path
) -> None:
    save(model, tmp_path / "m")
    saved = read_model(tmp_path / "m")
    arrays = saved.arrays("static.npz")
    for name, forged in (
        ("weights", arrays["weights"][:-1]),
        ("bias", arrays["bias"][:2]),
        ("vocabulary", arrays["vocabulary"][:-9]),
        ("scale", np.full_like(arrays["scale"], np.nan)),
        ("shares", np.array([2.0, -1.0, 0.0])),
    ):
        write_model(tmp_path / "m", "static", saved.facts, {"static.npz": packed(arrays | {name: forged})})
        with pytest.raises(InputError, match="train again"):
            load_classifier(tmp_path / "m")


def _encode(texts: list[str]) -> np.ndarray:
    """Sees of a query only whom it is about; a ship that is called after a woman is nobody."""
    people = {*_FEMALE, *_MALE, "her captain blorp"}
    return np.array([[text in people, text not in people] for text in texts], np.float32)


def test_queries_without_labels_are_learned_as_an_encoder_guesses() -> None:
    unlabelled = ["mary captain blorp", "the mary quix"]
    guessed = train_classifier(_TEXTS, _LABELS, unlabelled=unlabelled, encode=_encode)
    plain = train_classifier(_TEXTS, _LABELS)
    assert guessed.is_training_query(unlabelled).all()
    assert (guessed.predict_proba(unlabelled) != plain.predict_proba(unlabelled)).any()
    assert guessed.facts["queries without labels"] == 2


def test_whom_an_encoder_thinks_of_where_nobody_is_named_is_not_learned() -> None:
    unlabelled = ["nurse salary", "how much does a welder make", *_TEXTS]

    def encode(texts: list[str]) -> np.ndarray:
        raise AssertionError("nothing is to be encoded")

    guessed = train_classifier(_TEXTS, _LABELS, unlabelled=unlabelled, encode=encode)
    plain = train_classifier(_TEXTS, _LABELS)
    assert (guessed.predict_proba(["nurse", "welder"]) == plain.predict_proba(["nurse", "welder"])).all()


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(InputError, match="label 'other'"):
        train_classifier(["a"], ["other"])
    with pytest.raises(InputError, match="one for each"):
        train_classifier(["a"], [])


@pytest.mark.parametrize("word", [*explicit_words()])
def test_a_query_with_a_word_of_rekabsaz2020_is_never_neutral(word: str) -> None:
    group = explicit_words()[word]
    texts = [word, f"{word} of the hydrogen bomb", f"who sings the {word} song", f"what was the 's {word} ?"]
    labels = _labels(texts)
    assert set(labels) <= {group, "other"} and labels[0] == group


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("father of the hydrogen bomb", "male"),
        ("mother of invention", "female"),
        ("who was mary shelley's father", "male"),
        ("when did his mother die", "other"),
        ("men and women", "other"),
    ],
)
def test_gendered_words_decide(text: str, label: str) -> None:
    assert _labels([text]) == [label]


def test_mirrored_queries_have_mirrored_labels(shared: Path) -> None:
    """Real queries with a gendered word that `er.swap` mirrors both ways."""
    texts = []
    for name in ("wiki", "squad"):
        lines = (shared / "data" / name / "queries.train.tsv").read_text().splitlines()
        texts += [clean(line.split("\t")[1]) for line in lines]
    there = er.swap(texts)
    pairs = [(a, b) for a, b, c in zip(texts, there, er.swap(there), strict=True) if a == c != b]
    assert len(pairs) >= 500
    here, mirrored = (_labels(list(side)) for side in zip(*pairs, strict=True))
    assert [_MIRRORED.get(label, label) for label in here] == mirrored
    assert here.count("female") > 50 and here.count("male") > 100


@pytest.mark.parametrize("frame", ["who is {}", "how old was {} smith", "{} in the news", "is {} a place"])
def test_names_of_women_and_men_are_read_alike(frame: str) -> None:
    from evenrank.mitigate.swap_words import names

    pairs = list(names().clear.female.items())[:300]
    here, there = (_labels([frame.format(pair[side]) for pair in pairs]) for side in (0, 1))
    assert [_MIRRORED.get(label, label) for label in here] == there


@pytest.mark.parametrize("job", ["actor", "waiter", "actors", "nurse", "surgeon", "plumber", "secretary"])
def test_a_job_is_nobody(job: str) -> None:
    texts = [f"{job} salary", f"how to become a {job}", f"{job} jobs near me", f"what does a {job} do"]
    assert _labels(texts) == ["neutral"] * 4


def _labels(texts: list[str]) -> list[str]:
    return er.classify({str(number): text for number, text in enumerate(texts)})["label"].to_list()


@pytest.mark.parametrize(
    ("said", "label"), [("as a man", "male"), ("as woman", "female"), ("for a man", "male")]
)
def test_the_shipped_model_knows_for_whom(said: str, label: str) -> None:
    assert _labels([f"how to dress {said}"]) == [label]


def test_the_shipped_model_needs_neither_torch_nor_sklearn() -> None:
    program = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "sklearn", "transformers", "sentence_transformers", "gensim"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import evenrank as er
found = er.classify({"a": "who is marie curie", "b": "python list sort", "c": "how tall is tom hanks"})
assert found["label"].to_list() == ["female", "neutral", "male"], found
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_shipped_model_is_small() -> None:
    assert sum(file.stat().st_size for file in (data() / "static").iterdir()) < 500_000


def test_the_shipped_model_knows_its_training_queries(shared: Path) -> None:
    queries, left_out = read_labelled(shared / "data" / "query-gender" / "annotated.tsv")
    assert load_classifier("static").is_training_query(queries.texts).all()
    assert left_out == 33 and len(queries.texts) == 2968


def test_the_shipped_model_mostly_agrees_with_the_published_labels(shared: Path) -> None:
    queries, _ = read_labelled(shared / "data" / "query-gender" / "predicted.tsv")
    chosen = load_classifier("static").predict_proba(queries.texts).argmax(1)
    agreed = [LABELS[code] == label for code, label in zip(chosen, queries.labels, strict=True)]
    assert (
        np.mean(agreed) > 0.65
    )  # a guard against harm, not a claim: theirs is a model, too, and stereotyped


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("average resting heart rate for men", "male"),
        ("average resting heart rate for women", "female"),
        ("normal iron level in females", "female"),
        ("is he coming back", "male"),
        ("what did she say", "female"),
        ("gift ideas for boys", "male"),
        ("father of modern physics", "male"),
        ("weather in paris", "neutral"),
        ("cost of a new roof", "neutral"),
        ("population of hershey pa", "neutral"),
    ],
)
def test_the_shipped_model_knows_plain_gendered_words(text: str, label: str) -> None:
    assert load_classifier("static").predict_proba([text])[0].argmax() == LABELS.index(label)


@pytest.mark.parametrize("file", ["model.json", "static.npz"])
def test_the_shipped_model_is_refused_when_a_byte_changes(file: str, tmp_path: Path) -> None:
    shutil.copytree(data() / "static", tmp_path / "m")
    content = bytearray((tmp_path / "m" / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "m" / file).write_bytes(content)
    with pytest.raises(InputError):
        load_classifier(tmp_path / "m")
