"""Vectors to test with: real ones from outside the repository, and made ones with gender planted in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenrank.vectors import DEFINITION, MIRRORED, Vectors, load

DIMENSION = 24


@pytest.fixture(scope="session")
def glove(shared: Path) -> Vectors:
    return load(shared / "data" / "vectors" / "glove-100d.bin.gz")


@pytest.fixture(scope="session")
def planted() -> Vectors:
    """2,000 ordinary words that lean in the first dimension, and the second; and pairs of people."""
    rng = np.random.default_rng(7)
    letters = "abcdefghij"
    ordinary = [
        f"x{letters[i // 1000]}{letters[i // 100 % 10]}{letters[i // 10 % 10]}{letters[i % 10]}"
        for i in range(2000)
    ]
    rows = rng.normal(size=(2000, DIMENSION))
    rows[:, 1] += rows[:, 0]
    pairs = list(dict.fromkeys((a.lower(), b.lower()) for a, b in (*DEFINITION, *MIRRORED)))
    centre = rng.normal(size=(len(pairs), DIMENSION))
    lean = np.zeros(DIMENSION)
    lean[0] = 3.0
    noise = 0.3 * rng.normal(size=(2, len(pairs), DIMENSION))
    words = [*ordinary, *(a for a, _ in pairs), *(b for _, b in pairs)]
    matrix = np.concatenate([rows, centre + lean + noise[0], centre - lean + noise[1]])
    return Vectors(words, matrix)
