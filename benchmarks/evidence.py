"""Every number the docs quote, computed on real data: `make evidence` writes docs/evidence/*.json.

Needs the test data that EVENRANK_TEST_DATA names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from benchmarks.pages import committed_source, used_source

_FOLDER = Path(__file__).parents[1] / "docs" / "evidence"
_COLLECTIONS = ("time", "grepbiasir", "squad")
_SYSTEMS = ("bm25", "qld", "bm25.rm3")
_VARIANTS = {"tc": "count", "tf": "tf", "bool": "boolean"}


def _run(data: Path, collection: str, system: str) -> Path:
    plain = data / "runs" / f"{collection}.{system}.run"
    return plain if plain.exists() else plain.with_suffix(".run.gz")


def authors_code(data: Path) -> dict[str, Any]:
    """How far our values are from those of the authors' released code, at most."""
    found: dict[str, Any] = {}
    for collection in _COLLECTIONS:
        oracle = json.loads((data / "oracles" / f"{collection}.json").read_text())
        docs = er.load(data / "data" / collection, **_split(collection)).docs
        tally = er.tally(docs, er.lexicon("rekabsaz2020"), tokenizer="whitespace")
        wide = er.tally(docs, data / "data" / "wordlists" / "rekabsaz2021.csv", tokenizer="whitespace")
        furthest = {"RaB": 0.0, "ARaB": 0.0, "FaiRR": 0.0, "NFaiRR": 0.0}
        compared = 0
        for system in _SYSTEMS:
            expected = oracle["runs"][system]
            run, background = _run(data, collection, system), _run(data, collection, "bm25")
            for name, measure in (("RaB", er.RaB), ("ARaB", er.ARaB)):
                for key, values in expected[name].items():
                    variant, cutoff = key.split("@")
                    asked = measure(magnitude=_VARIANTS[variant]) @ int(cutoff)
                    got = er.measure(run, asked, tally=tally, confidence=None)[asked]
                    pairs = [(got.value, values["mean_male_minus_female"])]
                    pairs += [(got.parts[group], values[group]) for group in ("female", "male")]
                    per_query = got.per_query()
                    pairs += [(per_query[query], value) for query, value in values["queries"].items()]
                    furthest[name] = max(furthest[name], *(abs(a - b) for a, b in pairs))
                    compared += len(pairs)
            for name, measure in (("FaiRR", er.FaiRR), ("NFaiRR", er.NFaiRR)):
                for key, value in expected[name].items():
                    asked = measure @ int(key.removeprefix("@"))
                    got = er.measure(run, asked, tally=wide, background=background, confidence=None)[asked]
                    furthest[name] = max(furthest[name], abs(got.value - value))
                    compared += 1
        found[collection] = {"values compared": compared, "largest difference": furthest}
    return found


def _split(collection: str) -> dict[str, str]:
    return {"split": "test"} if collection == "squad" else {}


def human_labels(data: Path) -> dict[str, Any]:
    """Does the group with more words agree with the human label of a document (Grep-BiasIR)?"""
    path = data / "data" / "grepbiasir" / "docs.jsonl"
    human = pl.read_ndjson(path).select("doc_id", "gender")
    found: dict[str, Any] = {}
    for name in ("rekabsaz2020", "fabris2020"):
        counts = er.tally(path, name).frame.join(human, on="doc_id")
        majority = (
            pl.when(pl.col("female") + pl.col("male") == 0)
            .then(pl.lit("no word"))
            .when(pl.col("female") > pl.col("male"))
            .then(pl.lit("female"))
            .when(pl.col("male") > pl.col("female"))
            .then(pl.lit("male"))
            .otherwise(pl.lit("equal"))
        )
        table = (
            counts.select("gender", majority=majority)
            .group_by("gender", "majority")
            .len()
            .sort("gender", "majority")
        )
        confusion: dict[str, dict[str, int]] = {}
        for gender, label, number in table.iter_rows():
            confusion.setdefault(gender, {})[label] = number
        with_word = {g: {k: n for k, n in confusion[g].items() if k != "no word"} for g in ("F", "M")}
        right = with_word["F"].get("female", 0) + with_word["M"].get("male", 0)
        total = sum(sum(row.values()) for row in with_word.values())
        found[name] = {"agreement": right / total, "documents": total, "confusion": confusion}
    return found


def tokenizers(data: Path) -> dict[str, Any]:
    """What the two tokenizers make of the same collection: words found, and ARaB@10 of BM25."""
    found: dict[str, Any] = {}
    for collection in _COLLECTIONS:
        docs = er.load(data / "data" / collection, **_split(collection)).docs
        row: dict[str, Any] = {}
        for tokenizer in ("words", "whitespace"):
            tally = er.tally(docs, tokenizer=tokenizer)
            value = er.measure(_run(data, collection, "bm25"), er.ARaB @ 10, tally=tally)[er.ARaB @ 10]
            row[tokenizer] = {
                "female": int(tally["female"].sum()),
                "male": int(tally["male"].sum()),
                "ARaB@10": {"value": value.value, "low": value.low, "high": value.high},
            }
        found[collection] = row
    return found


def choices(data: Path) -> dict[str, Any]:
    """The ratios behind the pages in docs/decisions."""
    from benchmarks.choices import files, scripts

    return {"counting by script": scripts(), **files()}


def _of(module: str, name: str) -> Callable[[Path], dict[str, Any]]:
    """A function of another module, which is imported when it is called: evidence lists what it used."""

    def found(data: Path) -> dict[str, Any]:
        return dict(getattr(import_module(f"benchmarks.{module}"), name)(data))

    return found


def debiasing(data: Path) -> dict[str, Any]:
    """How well gender can still be read out of GloVe vectors after each method; chance is 0.5."""
    from evenrank.vectors import debiased, load, recoverability

    vectors = load(data / "data" / "vectors" / "glove-100d.bin.gz")
    found = {"none": recoverability(vectors, vectors).to_dict()}
    for method in ("hard", "strong"):
        found[method] = recoverability(vectors, debiased(vectors, method)).to_dict()
    found["leace"] = recoverability(
        vectors, lambda held_out: debiased(vectors, "leace", held_out=held_out)
    ).to_dict()
    return found


def feedback(data: Path) -> dict[str, Any]:
    """RM3 beside Anserini's, and what bias-aware RM3 does on two collections; takes minutes."""
    from benchmarks.feedback_evidence import feedback as found

    return found(data)


def trade_off(data: Path) -> dict[str, Any]:
    """Both modes of constrained re-ranking beside interpolation and bias-aware feedback."""
    from benchmarks.tradeoff_evidence import trade_off as found

    return found(data)


def constrain(data: Path) -> dict[str, Any]:
    """Constrained re-ranking: time, what is proved, the largest gap, and HiGHS on the same problems."""
    from benchmarks.constrain import evidence

    return evidence()


def head_to_head(data: Path) -> dict[str, Any]:
    """Published re-rankers beside constrained re-ranking, at equal bounds; takes some ten minutes."""
    from benchmarks.head_to_head import head_to_head as found

    return found(data)


def many_groups(data: Path) -> dict[str, Any]:
    """Crossed, soft and unknown groups, and the expected exposure of many rankings."""
    from benchmarks.groups_evidence import many_groups as found

    return found(data)


def counterfactual(data: Path) -> dict[str, Any]:
    """What gender alone does in the lists of every ranker on Grep-BiasIR; takes minutes."""
    from benchmarks.counterfactual_evidence import counterfactual as found

    return found(data)


def matching(data: Path) -> dict[str, Any]:
    """Balanced judgments: matching and bins on the published association scores."""
    from benchmarks.matching_evidence import matching as found

    return found(data)


def certainty(data: Path) -> dict[str, Any]:
    """Equivalence and power in simulation, and the intervals behind them: seeds are in it."""
    from benchmarks.certainty_evidence import certainty as found

    return found(data)


def monitor(data: Path) -> dict[str, Any]:
    """False alarms of a monitor in simulation, and how soon it finds a change: seeds are in it."""
    from benchmarks.monitor_evidence import monitor as found

    return found(data)


def projection(data: Path) -> dict[str, Any]:
    """The gender projection for dense rankers, fitted on one collection and tested on another."""
    from benchmarks.projection_evidence import projection as found

    return found(data)


def where_bias_enters(data: Path) -> dict[str, Any]:
    """What stages add, and what rankers prefer by themselves."""
    from benchmarks.stages_evidence import stages

    return stages(data)


def where_bias_enters_wiki(data: Path) -> dict[str, Any]:
    """The same on the passages of wiki's small.txt; encodes 21,000 passages if they were not."""
    from benchmarks.stages_evidence import stages_wiki

    return stages_wiki(data)


def server_load(data: Path) -> dict[str, Any]:
    """The server under load: 10,000 requests, which take three and a half minutes."""
    from benchmarks.server_load import server_load as found

    return found(data)


def reliability(data: Path) -> dict[str, Any]:
    """Broken files, killed commands, flipped bits, full disks, rude clients: what happens then."""
    from benchmarks.reliability import reliability

    return reliability(data)


_ALL: dict[str, Callable[[Path], dict[str, Any]]] = {
    "authors-code": authors_code,
    "human-labels": human_labels,
    "choices": choices,
    "tokenizers": tokenizers,
    "gsr-associations": _of("gsr_evidence", "associations"),
    "representation": _of("image_search", "image_search"),
    "psychology": _of("psychology_evidence", "psychology"),
    "disparity": _of("psychology_evidence", "disparity"),
    "debiasing": debiasing,
    "query-gender": _of("classifier_evidence", "query_gender"),
    "feedback": feedback,
    "trade-off": trade_off,
    "head-to-head": head_to_head,
    "many-groups": many_groups,
    "counterfactual": counterfactual,
    "matching": matching,
    "constrain": constrain,
    "where-bias-enters": where_bias_enters,
    "where-bias-enters-wiki": where_bias_enters_wiki,
    "where-bias-enters-trained": _of("stages_evidence", "stages_trained"),
    "projection": projection,
    "certainty": certainty,
    "monitor": monitor,
    "server-load": server_load,
    "reliability": reliability,
}

_BY_NAME = ("where-bias-enters-trained",)
"""Those that are made only if they are named: they train rankers where there are none yet."""
_COMMANDS = ("server-load", "reliability")
"""Those that start commands of evenrank: what these import is not known here."""


def main(names: list[str]) -> int:
    data = shared()
    if data is None:
        print("make evidence needs the test data; set EVENRANK_TEST_DATA", file=sys.stderr)
        return 2
    source = committed_source()
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or [each for each in _ALL if each not in _BY_NAME]:
        command = f"python -m benchmarks.evidence {name}"
        content: dict[str, Any] = {"command": command, "evenrank": er.__version__, "src": source}
        found = _ALL[name](data)
        if name not in _COMMANDS:
            content["modules"] = used_source()
        content["results"] = found
        path = _FOLDER / f"{name}.json"
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        print(f"{path.relative_to(_FOLDER.parents[1])}: {json.dumps(content['results'])[:300]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
