"""The gender projection: projected queries rank as if documents had been erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import InputError
from evenrank.rankers.projection import GenderProjection


def example(seed: int, size: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Documents that lean, their leans, and queries."""
    rng = np.random.default_rng(seed)
    lean = np.repeat([-1.0, 1.0], 40)
    mixed = rng.normal(size=(80, size)) @ rng.normal(size=(size, size))
    return mixed + np.outer(lean, rng.normal(size=size)), lean, rng.normal(size=(5, size))


@given(st.integers(0, 10_000))
def test_projected_queries_score_as_erased_documents_up_to_a_constant(seed: int) -> None:
    documents, lean, queries = example(seed)
    projection = GenderProjection.fit(documents, lean)
    linear = (queries @ (np.eye(6) - projection.eraser.projection)) @ documents.T  # (Aᵀq)ᵀd
    assert np.allclose(projection.project(queries) @ documents.T, linear)
    constant = queries @ projection.eraser.apply(documents).T - linear  # qᵀ(A d + b) − (Aᵀq)ᵀd = qᵀb
    assert np.allclose(constant, constant[:, :1])


@given(st.integers(0, 10_000), st.floats(-1, 2))
def test_the_projection_is_linear_in_its_strength(seed: int, strength: float) -> None:
    documents, lean, queries = example(seed)
    projection = GenderProjection.fit(documents, lean)
    ends = projection.project(queries, 0.0), projection.project(queries, 1.0)
    assert np.allclose(ends[0], queries)
    assert np.allclose(projection.project(queries, strength), (1 - strength) * ends[0] + strength * ends[1])


def test_after_it_scores_do_not_go_with_the_lean_of_documents() -> None:
    documents, lean, queries = example(7)
    projection = GenderProjection.fit(documents, lean)

    def association(asked: np.ndarray) -> Any:
        scores = asked @ documents.T
        return np.abs((scores * lean).mean(axis=1) - scores.mean(axis=1) * lean.mean())

    assert association(projection.project(queries)).max() < 1e-10 < association(queries).min()
    wrong = queries - queries @ projection.eraser.projection.T  # A q: the map of documents, on queries
    assert association(wrong).max() > 1e-6


def test_it_is_saved_and_opened_and_refuses_another_encoder(tmp_path: Path) -> None:
    documents, lean, queries = example(1)
    projection = GenderProjection.fit(documents, lean, encoder={"model": "a"}, pairs=40)
    projection.save(tmp_path / "p")
    again = GenderProjection.open(tmp_path / "p", {"model": "a", "more": 1})
    assert np.array_equal(again.project(queries, 0.3), projection.project(queries, 0.3))
    assert again.facts["pairs"] == 40
    with pytest.raises(InputError, match="another encoder"):
        GenderProjection.open(tmp_path / "p", {"model": "b"})
    with pytest.raises(InputError, match="from -1000 to 1000"):
        again.project(queries, float("nan"))
    with pytest.raises(InputError, match="no such projection; fit one with"):
        GenderProjection.open(tmp_path / "none")
    with pytest.raises(InputError, match="both genders"):
        GenderProjection.fit(documents, np.ones(80))


class Letters:
    """An encoder that counts letters; gendered words differ in theirs."""

    def documents(self, texts: list[str]) -> np.ndarray:
        return np.array([[float(text.count(letter)) for letter in "hesirabcd"] for text in texts])

    def facts(self) -> dict[str, Any]:
        return {"model": "letters"}


def test_it_is_fitted_on_texts_and_their_mirror_images() -> None:
    rng = np.random.default_rng(2)
    words = ["he", "she", "his", "bad", "cab", "dab", "abba", "card"]
    docs = {f"d{i}": " ".join(rng.choice(words, 9)) for i in range(200)}
    projection = er.fit_projection(docs, model=Letters(), max_documents=120)
    assert projection.facts["pairs"] == 120 and projection.facts["documents"] == 240
    assert projection.encoder == {"model": "letters"} and projection.eraser.rank == 1
    with pytest.raises(InputError, match="needs 50 or more"):
        er.fit_projection({"a": "he", "b": "nothing"}, model=Letters())
