"""Agreement with the authors' released code, on real collections and runs.

The oracles hold values of that code (whitespace tokens, 64 words for RaB and ARaB, 326 words and threshold 1
for FaiRR and NFaiRR, background: the bm25 run). Counts here come from a plain Python counter, so that
the measures are checked apart from the matcher.
"""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from math import log1p
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank as er
from evenrank import AP, RR, ARaB, FaiRR, NFaiRR, P, R, RaB, nDCG
from evenrank.measures.neutrality import neutrality
from evenrank.measures.results import Measurements

COLLECTIONS = ["time", "grepbiasir", "squad"]
VARIANTS = {"tc": "count", "tf": "tf", "bool": "boolean"}
QRELS = {"time": "qrels.txt", "grepbiasir": "qrels.txt", "squad": "qrels.test.txt"}
EFFECTIVENESS = [nDCG @ 10, AP @ 100, RR @ 10, P @ 10, R @ 100]


def words(path: Path) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {"female": set(), "male": set()}
    for line in path.read_text().splitlines():
        word, group = line.split(",")
        groups["female" if group == "f" else "male"].add(word.lower())  # the list holds names as written
    return groups


def texts(folder: Path) -> dict[str, str]:
    if (folder / "docs.tsv").exists():
        lines = (folder / "docs.tsv").read_text().splitlines()
        return dict(line.split("\t", 1) for line in lines)
    rows = map(json.loads, (folder / "docs.jsonl").read_text().splitlines())
    return {row["doc_id"]: f"{row['title']} {row['text']}" for row in rows}


def count(documents: dict[str, str], groups: dict[str, set[str]]) -> pl.DataFrame:
    """A tally made word by word."""
    rows = []
    for doc_id, text in documents.items():
        found = Counter(text.lower().split(" "))
        by_group = {g: [n for word, n in found.items() if word in known] for g, known in groups.items()}
        rows.append(
            {
                "doc_id": doc_id,
                "tokens": sum(found.values()) - found[""],
                **{g: sum(counts) for g, counts in by_group.items()},
                **{f"{g}_logwords": sum(map(log1p, counts)) for g, counts in by_group.items()},
            }
        )
    return pl.DataFrame(rows)


@pytest.fixture(scope="session")
def collection(shared: Path) -> Callable[[str], dict[str, Any]]:
    """Everything known of a collection, read once."""

    @cache
    def read(name: str) -> dict[str, Any]:
        documents = texts(shared / "data" / name)
        oracle = json.loads((shared / "oracles" / f"{name}.json").read_text())
        suffix = ".run.gz" if name == "squad" else ".run"
        runs = {run: shared / "runs" / f"{name}.{run}{suffix}" for run in oracle["runs"]}
        tallies = {
            year: count(documents, words(shared / "data" / "wordlists" / f"rekabsaz{year}.csv"))
            for year in (2020, 2021)
        }
        fair = [measure @ t for measure in (FaiRR, NFaiRR) for t in (5, 10, 20)]
        lean = [
            measure(magnitude=magnitude) @ t
            for measure in (RaB, ARaB)
            for magnitude in VARIANTS.values()
            for t in (5, 10, 20, 30)
        ]
        qrels = shared / "data" / name / QRELS[name]
        measured: list[Measurements] = [
            er.measure(runs, lean, tally=tallies[2020], confidence=None),
            er.measure(runs, fair, tally=tallies[2021], background=runs["bm25"], confidence=None),
            er.measure(runs, EFFECTIVENESS, qrels=qrels, confidence=None),
        ]
        return {
            "oracle": oracle,
            "tallies": tallies,
            "lean": measured[0],
            "fair": measured[1],
            "use": measured[2],
        }

    return read


@pytest.mark.parametrize("name", COLLECTIONS)
def test_rab_and_arab_agree_with_the_released_code(name: str, collection: Any) -> None:
    known = collection(name)
    compared = 0
    for run, oracle in known["oracle"]["runs"].items():
        for measure in (RaB, ARaB):
            for key, expected in oracle[measure.NAME].items():
                variant, cutoff = key.split("@")
                found = known["lean"][run, measure(magnitude=VARIANTS[variant]) @ int(cutoff)]
                assert found.value == pytest.approx(expected["mean_male_minus_female"], abs=1e-6)
                assert found.parts["female"] == pytest.approx(expected["female"], abs=1e-6)
                assert found.parts["male"] == pytest.approx(expected["male"], abs=1e-6)
                each = found.per_query()
                for query, value in expected["queries"].items():
                    assert each[query] == pytest.approx(value, abs=1e-6)
                compared += 1
    assert compared == 3 * 2 * 12


@pytest.mark.parametrize("name", COLLECTIONS)
def test_fairr_and_nfairr_agree_with_the_released_code(name: str, collection: Any) -> None:
    known = collection(name)
    for run, oracle in known["oracle"]["runs"].items():
        for measure in (FaiRR, NFaiRR):
            for key, expected in oracle[measure.NAME].items():
                found = known["fair"][run, measure @ int(key.removeprefix("@"))]
                assert found.value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_effectiveness_agrees_with_trec_eval(name: str, collection: Any) -> None:
    known = collection(name)
    for run, oracle in known["oracle"]["runs"].items():
        for key, expected in oracle["effectiveness"].items():
            assert known["use"][run, key].value == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_neutrality_agrees_with_the_released_code(name: str, collection: Any) -> None:
    known = collection(name)
    tally = known["tallies"][2021]
    each = dict(zip(tally["doc_id"], neutrality(tally.select("female", "male").to_numpy()), strict=True))
    for doc_id, expected in known["oracle"]["docs"].items():
        assert each[doc_id] == pytest.approx(expected["neutrality"], abs=1e-9)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_documents_counted_by_the_package_give_the_published_values(
    name: str, collection: Any, shared: Path
) -> None:
    """From text to value, nothing replaced."""
    known = collection(name)
    folder = shared / "data"
    docs = next((folder / name).glob("docs.*"))
    run = next((shared / "runs").glob(f"{name}.bm25.run*"))
    oracle = known["oracle"]["runs"]["bm25"]
    given = {"docs": docs, "tokenizer": "whitespace", "confidence": None}
    lean = er.measure(run, [ARaB @ 10], **given, lexicon="rekabsaz2020")
    fair = er.measure(run, [NFaiRR @ 10], **given, lexicon=folder / "wordlists" / "rekabsaz2021.csv")
    assert lean[ARaB @ 10].value == pytest.approx(oracle["ARaB"]["tf@10"]["mean_male_minus_female"], abs=1e-6)
    assert fair[NFaiRR @ 10].value == pytest.approx(oracle["NFaiRR"]["@10"], abs=1e-6)
