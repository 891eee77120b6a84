"""Stereotypes in vectors, tested by permutation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.vectors import STEREOTYPES, Association, Genderedness, Stereotype, Vectors, association_tests

# Fabris et al. 2020, §3.2.1, with Google-News vectors.
PUBLISHED = {"agency–communion": 2.2e-2, "science–arts": 1.8e-3, "career–family": 5.5e-4, "jobs": 0.0}


def table(values: dict[str, float]) -> Genderedness:
    return Genderedness(list(values), np.array(list(values.values()), np.float32))


def association_test(male: Iterable[str], female: Iterable[str], source: Genderedness) -> Association:
    (result,) = association_tests(source, stereotypes=[Stereotype("a test", list(male), list(female))])
    return result


def test_glove_holds_the_stereotypes_of_family_and_jobs() -> None:
    """All four lean the expected way; with these small vectors two are significant."""
    found = {each.name: each for each in association_tests()}
    assert found["career–family"].p == pytest.approx(3 / 12_870)
    assert found["jobs"].p == pytest.approx(26 / 184_756)
    assert found["agency–communion"].p == pytest.approx(0.05, abs=0.005)
    assert found["science–arts"].p == pytest.approx(0.105, abs=0.001)
    assert {name: each.published for name, each in found.items()} == PUBLISHED
    for each in found.values():
        assert each.difference == pytest.approx(each.female - each.male) and each.difference > 0
        assert not each.missing and each.effect is not None and each.effect > 0.5


def test_the_sets_are_those_of_the_paper() -> None:
    assert [(len(s.male), len(s.female)) for s in STEREOTYPES] == [(15, 12), (8, 8), (8, 8), (10, 10)]
    assert "courageous" in STEREOTYPES[0].male and "NASA" in STEREOTYPES[1].male


def test_p_is_the_share_of_all_splits() -> None:
    values = {"a": 0.1, "b": 0.3, "c": -0.2, "d": 0.5, "e": 0.4, "f": 0.0}
    found = association_test("abc", "def", table(values))
    observed = sum(values[w] for w in "def")
    splits = [sum(values[w] for w in chosen) for chosen in combinations(values, 3)]
    assert found.p == pytest.approx(np.mean([s >= observed - 1e-6 for s in splits]))


@given(st.lists(st.integers(-99, 99), min_size=5, max_size=14), st.data())
def test_p_is_the_same_from_the_other_side(values: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    words = [f"w{i}" for i in range(len(values))]
    there = table(dict(zip(words, (v / 100 for v in values), strict=True)))
    mirrored = table(dict(zip(words, (-v / 100 for v in values), strict=True)))
    one = association_test(words[:cut], words[cut:], there)
    other = association_test(words[cut:], words[:cut], mirrored)
    assert one.p == other.p
    assert one.difference == pytest.approx(other.difference)


@pytest.mark.slow
def test_beyond_a_million_splits_seeded_draws_give_the_same_p_again() -> None:
    first = association_tests(stereotypes=STEREOTYPES[:1])[0]
    assert first == association_tests(stereotypes=STEREOTYPES[:1])[0]
    assert first.p is not None and (first.p * 100_001) == pytest.approx(round(first.p * 100_001))
    assert first.p == pytest.approx(association_tests(stereotypes=STEREOTYPES[:1], seed=1)[0].p, abs=0.005)


def test_missing_words_are_left_out_and_named() -> None:
    values = {"a": -0.1, "b": -0.3, "d": 0.5, "e": 0.4}
    found = association_test(["a", "b", "nowhere"], ["D", "e"], table(values))
    assert found.missing == ("nowhere",) and found.words == (2, 2)
    with pytest.raises(InputError, match="none of the words of a set has a vector"):
        association_test(["x"], ["a", "b"], table(values))
    with pytest.raises(InputError, match="'a' is in both sets"):
        association_test(["a", "b"], ["a", "e"], table(values))


def test_vectors_of_another_language_are_refused(tmp_path: Path) -> None:
    (tmp_path / "fr.txt").write_text("chat 1 0\nchien 0 1\n")
    with pytest.raises(InputError, match="only 0 of 10 pairs"):
        association_tests(tmp_path / "fr.txt")


def test_vectors_give_what_their_table_gives(glove: Vectors) -> None:
    by_vectors = association_tests(glove, stereotypes=STEREOTYPES[1:])
    by_table = association_tests(stereotypes=STEREOTYPES[1:])
    for one, other in zip(by_vectors, by_table, strict=True):
        assert one.p == other.p and one.female == pytest.approx(other.female, abs=1e-6)
