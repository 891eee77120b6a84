"""The static classifier: what it learns, keeps and explains."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from evenrank import InputError
from evenrank.data.files import packed, read_model, write_model
from evenrank.queries import feature_passes, features
from evenrank.queries.classifier import LABELS, load_classifier, seen_in_training
from evenrank.queries.evaluation import read_labelled
from evenrank.queries.samples import More
from evenrank.queries.static_classifier import StaticClassifier, StaticSettings
from evenrank.queries.teaching import Encoder, like_given
from evenrank.queries.words import data
from evenrank.vectors import encoders

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


@pytest.fixture(scope="module")
def model() -> StaticClassifier:
    vectors = {"duchess": [1.0, 0.0], "actress": [1.0, 0.1], "duke": [0.0, 1.0], "actor": [0.1, 1.0]}
    return StaticClassifier(vectors=[_vectors(vectors)]).fit(_TEXTS, _LABELS)


def _vectors(table: dict[str, list[float]]):
    from evenrank.vectors import load

    return load(table)


@pytest.mark.slow
def test_it_learns_its_training_queries(model: StaticClassifier) -> None:
    chosen = model.predict_proba(_TEXTS).argmax(1)
    assert (chosen == np.repeat([0, 1, 2], 6)).mean() > 0.9


def test_names_it_never_saw_are_known_from_the_census(model: StaticClassifier) -> None:
    assert model.predict_proba(["who is barbara jones"])[0].argmax() == 0
    assert model.predict_proba(["who is william jones"])[0].argmax() == 1


def test_a_saved_model_says_the_same(model: StaticClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = load_classifier(tmp_path / "m")
    assert np.array_equal(again.predict_proba(_TEXTS), model.predict_proba(_TEXTS))
    assert again.explain(_TEXTS) == model.explain(_TEXTS)
    assert seen_in_training(again, ["Who is  MARY smith", "who is mary jones"]).tolist() == [True, False]
    with pytest.raises(InputError, match="not trained further"):
        again.fit(_TEXTS, _LABELS)


def test_folded_vectors_score_as_the_vectors_did() -> None:
    """A linear head on a mean of vectors is a mean of one number per word."""
    vectors = _vectors({"alpha": [3.0, 4.0], "beta": [0.0, 1.0], "gamma": [1.0, 0.0]})
    settings = StaticSettings(parts=())
    texts = ["alpha beta", "beta gamma beta", "gamma unheard"] * 4
    model = StaticClassifier(settings, vectors=[vectors]).fit(texts, ["female", "male", "neutral"] * 4)
    alpha, beta, gamma = (model.predict_proba([w]) for w in ("alpha", "beta", "gamma"))
    logs = [np.log(p) for p in (alpha, beta, gamma)]
    mean = np.exp((logs[0] + 2 * logs[1] + logs[2]) / 4)
    assert model.predict_proba(["alpha beta beta gamma"]) == pytest.approx(mean / mean.sum(), abs=1e-6)


def test_reasons_name_the_words_and_their_side(model: StaticClassifier) -> None:
    word, group, weight = model.explain(["who is barbara"])[0][0]
    assert (word, group) == ("barbara", "female") and weight > 0
    assert model.explain([""]) == [[]]


def test_what_tokens_add_sums_up_to_the_scores(model: StaticClassifier) -> None:
    text = "how old is the actress barbara smith"
    on = features.switches(model.settings.parts)
    arguments = (on, np.array(features.SCALES), model._weights, model._word_weights)
    given, _, _ = feature_passes.attribute(features.packed_bytes([text])[0], *model._lookup(), *arguments)
    assert given[:, :3].sum(0) + model._bias == pytest.approx(model._scores([text])[0], abs=1e-4)


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
def test_training_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        StaticClassifier().fit(_TEXTS, _LABELS, seed=3).save(tmp_path / name)
    for file in ("model.json", "static.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.slow
def test_the_order_of_the_rows_makes_no_difference(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(len(_TEXTS))
    StaticClassifier().fit(_TEXTS, _LABELS).save(tmp_path / "a")
    StaticClassifier().fit([_TEXTS[i] for i in order], [_LABELS[i] for i in order]).save(tmp_path / "b")
    for file in ("model.json", "static.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_arrays_that_do_not_fit_are_refused_though_the_checksum_vouches_for_them(
    model: StaticClassifier, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    saved = read_model(tmp_path / "m")
    arrays = saved.arrays("static.npz")
    for name, forged in (
        ("word_weights", arrays["word_weights"][:-1]),
        ("bits", arrays["bits"][:5]),
        ("index", arrays["index"].astype(np.int64)),
        ("weights", np.full_like(arrays["weights"], np.nan)),
        ("temperature", np.zeros(1)),
        ("prior", np.array([2.0, -1.0, 0.0])),
    ):
        write_model(tmp_path / "m", "static", saved.facts, {"static.npz": packed(arrays | {name: forged})})
        with pytest.raises(InputError, match="train again"):
            load_classifier(tmp_path / "m")


@pytest.mark.slow
def test_every_part_can_be_left_out() -> None:
    for part in features.PARTS:
        parts = tuple(name for name in features.PARTS if name != part)
        model = StaticClassifier(StaticSettings(parts=parts)).fit(_TEXTS, _LABELS)
        assert model.predict_proba(["her mother"]).argmax() == 0
    with pytest.raises(InputError, match="unknown features"):
        StaticSettings(parts=("verbs",))


@pytest.mark.slow
def test_augmented_training_still_works() -> None:
    model = StaticClassifier(StaticSettings(swaps=0.5, word_samples=0.5)).fit(_TEXTS, _LABELS)
    assert model.predict_proba(["granddaughter"]).argmax() == 0


def _encoder(texts: list[str]) -> np.ndarray:
    """Sees of a query only whom it is about; a ship that is called after a woman is nobody."""
    women, men = {*_FEMALE}, {*_MALE, "her captain blorp"}
    return np.array([[text in women, text in men, text not in women | men] for text in texts], np.float32)


def test_queries_without_labels_are_learned_as_an_encoder_guesses() -> None:
    more = More(unlabelled=("her captain blorp", "the mary quix"))
    few = StaticSettings(guesses=3.0, plain_samples=0.0, word_samples=0.0)
    told = StaticClassifier(few, more=more, encoder=_encoder).fit(_TEXTS, _LABELS)
    untold = StaticClassifier(few).fit(_TEXTS, _LABELS)
    by = told.predict_proba(list(more.unlabelled)) - untold.predict_proba(list(more.unlabelled))
    assert by[0, 1] > 0.02 and by[1, 2] > 0.02
    assert seen_in_training(told, more.unlabelled).all()
    assert told.describe()["more"]["queries without labels"] == 2


def test_whom_an_encoder_thinks_of_where_nobody_is_named_is_not_learned() -> None:
    few = StaticSettings(guesses=3.0, plain_samples=0.0, word_samples=0.0)
    more = More(unlabelled=("nurse salary", "how much does a welder make"))
    told = StaticClassifier(few, more=more, encoder=_no_encoder).fit(_TEXTS, _LABELS)
    untold = StaticClassifier(few).fit(_TEXTS, _LABELS)
    assert (told.predict_proba(["nurse", "welder"]) == untold.predict_proba(["nurse", "welder"])).all()


def test_a_query_with_a_label_is_not_guessed() -> None:
    few, more = StaticSettings(plain_samples=0.0, word_samples=0.0), More(unlabelled=tuple(_TEXTS))
    model = StaticClassifier(few, more=more, encoder=_no_encoder).fit(_TEXTS, _LABELS)
    plain = StaticClassifier(few).fit(_TEXTS, _LABELS)
    assert (model.predict_proba(_TEXTS) == plain.predict_proba(_TEXTS)).all()


def _no_encoder(texts: list[str]) -> np.ndarray:
    raise AssertionError("nothing is to be encoded")


def test_an_encoder_encodes_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Model:
        def encode(self, texts: list[str], **_: object) -> np.ndarray:
            asked.extend(texts)
            return np.array([[len(text), 0.0] for text in texts])

    monkeypatch.setattr(encoders, "find_model", lambda model: model)
    monkeypatch.setattr(encoders, "open_model", lambda model: Model())
    encode = Encoder()
    assert np.allclose(encode(["b", "a", "b"]), [[1, 0]] * 3)
    encode(["a", "c"])
    assert asked == ["a", "b", "c"]


def test_likeness_to_the_given_queries_is_not_gender() -> None:
    """The given queries are gendered, the others are not; only how they are asked tells them apart."""
    rows = [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]]
    given, codes = np.array([True] * 3 + [False] * 3), np.array([0, 0, 2, 0, 2, 2])
    column, _ = like_given(csr_matrix(np.array(rows, float)), given, codes)
    assert column[0] > 1 > -1 > column[1]
    assert abs(column[2] - column[3]) < 1e-3


@pytest.mark.parametrize(
    ("said", "label"), [("as a man", "male"), ("as woman", "female"), ("for a man", "male")]
)
def test_the_shipped_model_hears_for_whom(said: str, label: str) -> None:
    assert load_classifier("static").predict_proba([f"how to dress {said}"])[0].argmax() == LABELS.index(
        label
    )


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
    assert sum(file.stat().st_size for file in data().rglob("*") if file.is_file()) < 5_000_000


def test_the_shipped_model_knows_its_training_queries(shared: Path) -> None:
    queries = read_labelled(shared / "data" / "query-gender" / "annotated.tsv")
    model = load_classifier("static")
    assert seen_in_training(model, queries.texts).all()
    assert queries.left_out == 33 and len(queries.texts) == 2968


def test_the_shipped_model_mostly_agrees_with_the_published_labels(shared: Path) -> None:
    queries = read_labelled(shared / "data" / "query-gender" / "predicted.tsv")
    model = load_classifier("static")
    chosen = model.predict_proba(queries.texts).argmax(1)
    agreed = [model.labels[code] == label for code, label in zip(chosen, queries.labels, strict=True)]
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
