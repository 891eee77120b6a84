"""Laws of debiasing, and how much it leaves behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.vectors import (
    MIRRORED,
    Direction,
    Vectors,
    debiased,
    find_direction,
    grow_specific,
    load,
    ordinary_rows,
    recoverability,
    save,
    specific_words,
)
from evenrank.vectors.debias import _svm, equalise_pairs, fit_eraser, neighbours_kept, neutralise


def spaces() -> st.SearchStrategy[tuple[Vectors, Direction]]:
    def make(seed: int, count: int, dimension: int) -> tuple[Vectors, Direction]:
        rng = np.random.default_rng(seed)
        along = rng.normal(size=dimension)
        words = [f"w{i}" for i in range(count)]
        direction = Direction(along / np.linalg.norm(along), np.ones(1), (("w0", "w1"),))
        return Vectors(words, rng.normal(size=(count, dimension))), direction

    return st.builds(make, st.integers(0, 2**32 - 1), st.integers(4, 40), st.integers(2, 30))


@given(spaces())
def test_neutralised_words_project_to_zero_and_keep_length_one(space: tuple[Vectors, Direction]) -> None:
    vectors, direction = space
    found = neutralise(vectors, direction, keep={"w0", "w1"})
    assert np.abs(direction.of(found)[2:]).max() < 1e-6
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert np.array_equal(found[:2], vectors.matrix[:2])


@given(spaces())
def test_equalised_pairs_are_as_far_from_every_neutral_word(space: tuple[Vectors, Direction]) -> None:
    vectors, direction = space
    matrix = neutralise(vectors, direction, keep={"w0", "w1"})
    equalise_pairs(matrix, vectors, direction, [("w0", "w1")])
    first, second = matrix[0].astype(np.float64), matrix[1].astype(np.float64)
    assert np.allclose(matrix[2:] @ first, matrix[2:] @ second, atol=1e-6)
    assert first @ direction.vector == pytest.approx(-second @ direction.vector, abs=1e-6)
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)
    before = direction.of(vectors.matrix[:2])
    assert (before[0] >= before[1]) == (first @ direction.vector >= second @ direction.vector)


@given(spaces())
def test_neutralising_twice_is_neutralising_once(space: tuple[Vectors, Direction]) -> None:
    vectors, direction = space
    once = neutralise(vectors, direction)
    twice = neutralise(Vectors(vectors.words, once), direction)
    assert np.allclose(once, twice, atol=1e-6)


def test_strong_leaves_nothing_along_the_direction(glove: Vectors) -> None:
    direction = find_direction(glove)
    found = debiased(glove, "strong", direction=direction)
    assert np.abs(direction.of(found.matrix)).max() < 1e-6
    assert np.abs(np.linalg.norm(found.matrix, axis=1) - 1).max() < 1e-6


def test_hard_keeps_gender_where_it_belongs(glove: Vectors) -> None:
    direction = find_direction(glove)
    found = debiased(glove, direction=direction)
    g = dict(zip(found.words, direction.of(found.matrix).tolist(), strict=True))
    assert abs(g["nurse"]) < 1e-6 and abs(g["programmer"]) < 1e-6
    assert g["queen"] > 0.1 and g["king"] == pytest.approx(-g["queen"], abs=1e-6)
    neutral = found.matrix[ordinary_rows(glove, specific_words())]
    assert found.provenance["debiased"]["equalised"] == len(MIRRORED)
    for pair in MIRRORED:
        cosines = [neutral @ found[word] for word in pair]
        assert np.allclose(*cosines, atol=1e-6)


def test_neighbours_of_neutral_words_barely_move(glove: Vectors) -> None:
    """Of the ten nearest, nine stay; the cosine between neutral words changes by some hundredths."""
    rows = ordinary_rows(glove, specific_words())
    found = debiased(glove)
    assert neighbours_kept(glove, found, rows).mean() > 0.9
    pairs = np.random.default_rng(0).choice(rows, (2, 5000))
    before = np.einsum("ij,ij->i", glove.matrix[pairs[0]], glove.matrix[pairs[1]])
    after = np.einsum("ij,ij->i", found.matrix[pairs[0]], found.matrix[pairs[1]])
    assert np.abs(before - after).mean() < 0.02


def test_a_cased_vocabulary_is_debiased_in_every_spelling(planted: Vectors) -> None:
    words = [*planted.words, "She", "He", "HE", "Nurse"]
    rng = np.random.default_rng(0)
    cased = Vectors(words, np.vstack([planted.matrix, rng.normal(size=(4, planted.dimension))]))
    direction = find_direction(cased)
    found = debiased(cased, direction=direction)
    g = dict(zip(found.words, direction.of(found.matrix).tolist(), strict=True))
    assert g["She"] == pytest.approx(-g["He"], abs=1e-6)
    assert abs(g["HE"]) > 1e-3 and abs(g["Nurse"]) < 1e-6


def test_leace_equalises_the_means_of_all_classes_exactly() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500)
    x = rng.normal(size=(500, 12)) @ rng.normal(size=(12, 12)) + 2 * rng.normal(size=(3, 12))[labels]
    eraser = fit_eraser(x, np.eye(3)[labels])
    after = eraser.apply(x)
    means = np.array([after[labels == each].mean(axis=0) for each in range(3)])
    assert np.allclose(means, x.mean(axis=0)) and eraser.rank == 2
    assert np.allclose(eraser.projection @ eraser.projection, eraser.projection)


def test_leace_changes_no_more_than_any_other_erasing_projection() -> None:
    """Among the maps that equalise two classes, it is the nearest to doing nothing (Theorem 4.3)."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 4000)
    x = rng.normal(size=(4000, 6)) * [5, 1, 1, 1, 1, 0.2]
    x[:, :2] += labels[:, None] * [1.0, 2.0]
    moved = ((fit_eraser(x, np.eye(2)[labels]).apply(x) - x) ** 2).sum()
    gap = x[labels == 1].mean(axis=0) - x[labels == 0].mean(axis=0)
    gap /= np.linalg.norm(gap)
    centred = x - x.mean(axis=0)
    assert moved < (np.outer(centred @ gap, gap) ** 2).sum()


def test_leace_with_dependent_dimensions_still_works() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 300)
    x = rng.normal(size=(300, 5)) + labels[:, None]
    x = np.hstack([x, x[:, :2]])
    after = fit_eraser(x, np.eye(2)[labels]).apply(x)
    assert np.allclose(after[labels == 0].mean(axis=0), after[labels == 1].mean(axis=0))


def test_leace_hides_how_far_words_lean_from_linear_predictors(planted: Vectors) -> None:
    direction = find_direction(planted)
    rows = ordinary_rows(planted, specific_words())
    g = direction.of(planted.matrix[rows])

    def fit(matrix: np.ndarray) -> float:
        x = np.column_stack([matrix[rows], np.ones(len(rows))]).astype(np.float64)
        return float(np.corrcoef(x @ np.linalg.lstsq(x, g, rcond=None)[0], g)[0, 1])

    assert fit(planted.matrix) > 0.99
    assert fit(debiased(planted, "strong").matrix) > 0.5
    assert fit(debiased(planted, "leace").matrix) < 0.3


@pytest.mark.slow
def test_what_is_left_of_gender_in_glove(glove: Vectors) -> None:
    """Projection leaves nine of ten words recognisable; LEACE fewer, at a price. Chance is 0.5."""
    direction = find_direction(glove)

    def leace(held_out: object) -> Vectors:
        return debiased(glove, "leace", direction=direction, held_out=held_out)  # type: ignore[arg-type]

    def values(after: object) -> dict[str, float]:
        found = recoverability(glove, after, direction=direction).to_dict()  # type: ignore[arg-type]
        for kind in ("clustering", "linear", "kernel", "neighbours"):
            assert found[kind]["low"] <= found[kind]["value"] <= found[kind]["high"]
        return {k: v["value"] for k, v in found.items() if k != "words"}

    before = values(glove)
    assert min(before.values()) > 0.99
    hard = values(debiased(glove, "hard", direction=direction))
    assert hard == pytest.approx(
        {"clustering": 0.667, "linear": 0.913, "kernel": 0.939, "neighbours": 0.933}, abs=0.02
    )
    erased = values(leace)
    assert erased["linear"] < hard["linear"] - 0.2 and erased["kernel"] < hard["kernel"] - 0.05
    assert 0.6 < erased["neighbours"] < hard["neighbours"]


def test_vectors_without_gender_show_chance(planted: Vectors) -> None:
    noise = np.random.default_rng(3).normal(size=planted.matrix.shape)
    found = recoverability(planted, Vectors(planted.words, noise), words=200)
    for kind in (found.linear, found.kernel):
        assert kind.low is not None and kind.high is not None and kind.low < 0.55 and kind.high > 0.45
    assert found.clustering.value is not None and found.clustering.value < 0.6


def test_the_default_gender_specific_words_come_from_the_lexicons() -> None:
    found = specific_words()
    assert {"she", "godfather", "ballerina", "mary", "sorority"} <= found and "nurse" not in found


def test_gender_specific_words_can_be_given(planted: Vectors, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# mine\nXaaaa\nxaaab\n")
    direction = find_direction(planted)
    found = debiased(planted, direction=direction, specific=tmp_path / "words.txt")
    g = dict(zip(found.words, np.abs(direction.of(found.matrix)).tolist(), strict=True))
    assert g["xaaaa"] > 1e-3 and g["xaaac"] < 1e-6 and g["she"] > 1e-3  # in an equalised pair
    (tmp_path / "none.txt").write_text("#\n")
    with pytest.raises(InputError, match=r"none\.txt: there are no words"):
        debiased(planted, specific=tmp_path / "none.txt")


@pytest.mark.slow
def test_gender_specific_words_can_be_grown(glove: Vectors) -> None:
    grown = grow_specific(glove, specific_words())
    assert 0.4 < grown.f1 < 1 and 5 < len(grown.added) < 500
    assert {"widow", "mistress"} & set(grown.added) and grown.words == specific_words() | set(grown.added)


def test_the_linear_svm_finds_the_optimum_that_scipy_finds() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    y = np.where(x[:, 0] + rng.normal(size=300) > 0.5, 1.0, -1.0)

    def loss(weights: np.ndarray) -> float:
        slack = np.maximum(0, 1 - y * (x @ weights))
        return float(0.5 * weights @ weights + slack @ slack)

    assert loss(_svm(x, y)) == pytest.approx(minimize(loss, np.zeros(6)).fun, rel=1e-6)


def test_pairs_to_equalise_can_be_given_and_no_word_stands_in_two(planted: Vectors) -> None:
    direction = find_direction(planted)
    found = debiased(planted, direction=direction, equalise=[("xaaaa", "xaaab")])
    g = dict(zip(found.words, direction.of(found.matrix).tolist(), strict=True))
    assert g["xaaaa"] == pytest.approx(-g["xaaab"], abs=1e-6) and abs(g["xaaaa"]) > 1e-3
    with pytest.raises(InputError, match="'xaaab' would be equalised twice"):
        debiased(planted, equalise=[("xaaaa", "xaaab"), ("xaaab", "xaaac")])
    with pytest.warns(UserWarning, match="no–where"):
        debiased(planted, equalise=[("xaaaa", "xaaab"), ("no", "where")])


def test_debiased_vectors_are_saved_in_standard_formats(planted: Vectors, tmp_path: Path) -> None:
    found = debiased(planted, "strong")
    for name in ("d.bin", "d.vec"):
        save(found, tmp_path / name)
        assert np.allclose(load(tmp_path / name).matrix, found.matrix, atol=1e-6)
    assert found.provenance["debiased"]["method"] == "strong"


def test_an_unknown_method_is_refused(planted: Vectors) -> None:
    with pytest.raises(InputError, match="choose one of: hard, strong, leace"):
        debiased(planted, "soft")  # type: ignore[arg-type]


def test_too_few_words_are_an_error(planted: Vectors) -> None:
    few = Vectors(planted.words[1990:], planted.matrix[1990:])
    with pytest.raises(InputError, match="leace needs 48"):
        debiased(few, "leace")
    with pytest.raises(InputError, match="too few to test 500"):
        recoverability(few, few)
    with pytest.raises(InputError, match="same words"):
        recoverability(planted, Vectors(planted.words[::-1], planted.matrix), words=50)
