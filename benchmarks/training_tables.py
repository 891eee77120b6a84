"""The tables and figures on less bias by training, from what `benchmarks.training_evidence` has run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks import training_equal as equal
from benchmarks import training_evidence as evidence
from benchmarks.neural_units import data
from benchmarks.pages import DOCS, fill, write_evidence
from benchmarks.training_data import Shape, tested
from benchmarks.training_evidence import AGAIN, UNTRAINED, Unit, known, run_unit, units
from evenrank.stats import holm, mean_interval, paired

_JSON = DOCS / "evidence" / "training.json"
Values = dict[str, float]
GROUPS = ("female", "male", "none")


def write_tables() -> None:
    """The JSON, the figures, and the tables in the page, from what has been run."""
    found = collected()
    run = (content for unit in units() if (content := known(unit)) is not None)
    from benchmarks.training_figures import draw
    from benchmarks.training_page import page

    draw(found)
    write_evidence(_JSON, "python -m benchmarks.training_evidence", found, run, positive="male")
    fill("mitigation/training.md", page(found))


# Collecting


def collected() -> dict[str, Any]:
    """Every method at every strength, averaged over seeds query by query, beside plain training."""
    results: dict[str, Any] = {}
    before = json.loads(_JSON.read_text())["results"]
    for name in dict.fromkeys(f"{unit.collection}/{unit.ranker}" for unit in units()):
        mine = [unit for unit in units() if unit.name.startswith(f"{name}/")]
        run = {unit: content for unit in mine if (content := known(unit)) is not None}
        if name in before and not _covers(run, before[name]["rows"]):
            results[name] = before[name] | {"chosen": _chosen(before[name]["rows"])}
            continue
        missing = [unit.name for unit in mine if unit not in run]
        rows: list[dict[str, Any]] = []
        for method in dict.fromkeys(unit.method for unit in mine):
            rows += _method([unit for unit in run if unit.method == method], run)
        results[name] = {"rows": rows, "not run": missing, "chosen": _chosen(rows)}
        if rows:
            results[name]["equal bias"] = _equal(name, rows)
        if rows and name == "squad/head":
            results[name]["settings"] = evidence.head_settings()["tried"]
    return results


def _covers(run: Iterable[Unit], rows: list[dict[str, Any]]) -> bool:
    """Whether every row that there was can be made anew, with its seeds: else a ranker stays as it was."""
    kept = [*run]
    there = {(unit.method, unit.strength, unit.seed) for unit in kept}
    wanted = {(row["method"], row["strength"], seed) for row in rows for seed in row["seeds"]}
    return bool(kept) and wanted <= there


def _method(mine: list[Unit], run: dict[Unit, dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a method; corrections for several tests are over its strengths."""
    rows = []
    strengths = dict.fromkeys(unit.strength for unit in mine)
    for strength in sorted(strengths) if mine and mine[0].method == "negatives" else strengths:
        here = [unit for unit in mine if unit.strength == strength and unit.plain in run]
        if here:
            rows.append(_row_of(here, [run[unit] for unit in _beside(here, run)], run))
    for part in ("test", "dev"):
        tested = [row[part]["against plain"]["RR@10"] for row in rows if row["strength"] or len(rows) == 1]
        for test, p in zip(tested, holm([each["p"] for each in tested]), strict=True):
            test["p_holm"] = p
    return rows


def _beside(here: list[Unit], run: Iterable[Unit]) -> list[Unit]:
    """The units of plain training that a row stands beside: its own seeds; all, for what has no seed."""
    if here[0].method not in UNTRAINED:
        return [unit.plain for unit in here]
    return [unit for unit in run if unit == unit.plain]


def _row_of(here: list[Unit], plain: list[dict[str, Any]], run: dict[Unit, dict[str, Any]]) -> dict[str, Any]:
    contents = [run[unit] for unit in here]
    row: dict[str, Any] = {
        "method": here[0].method,
        "strength": here[0].strength,
        "seeds": [unit.seed for unit in here],
    }
    for part in ("test", "dev"):
        mine, theirs = (over_seeds([each[part] for each in some]) for some in (contents, plain))
        row[part] = {
            "queries": len(mine["RR@10"]),
            "measures": {name: _interval(values.values()) for name, values in mine.items()},
            "against plain": {name: _test(mine[name], theirs[name]) for name in mine},
            "bias change": _mean(mine["|ARaB@10|"]) / _mean(theirs["|ARaB@10|"]) - 1,
        }
        if part == "test":
            row["by gender"] = _by_gender(here[0], mine["RR@10"], theirs["RR@10"])
    seconds = [each["training CPU seconds"] for each in contents if "training CPU seconds" in each]
    if seconds:
        row["training CPU seconds"] = seconds
    probes = [each["probe"] for each in contents if "probe" in each]
    if probes:
        row["probe"] = {
            "auc": _mean_of(probe["auc"] for probe in probes),
            "each": [{key: probe[key] for key in ("auc", "low", "high", "pairs")} for probe in probes],
        }
    if all("genderbias-qa" in each for each in contents):
        row["genderbias-qa"] = _preference(contents, plain)
    return row


def over_seeds(parts: list[dict[str, Values]]) -> dict[str, Values]:
    """Each query's value averaged over seeds; of sizes, the mean of the sizes."""
    found = {
        name: {query: _mean_of(part[name][query] for part in parts) for query in parts[0][name]}
        for name in evidence.MEASURES
    }
    bias = "ARaB@10"
    found["|ARaB@10|"] = {
        query: _mean_of(abs(part[bias][query]) for part in parts) for query in parts[0][bias]
    }
    return found


def _interval(values: Iterable[float]) -> dict[str, float | None]:
    found = mean_interval(list(values), method="t")
    return {"value": found.value, "low": found.low, "high": found.high}


def _test(mine: Values, theirs: Values) -> dict[str, Any]:
    """Mine minus theirs, on the same queries."""
    both = sorted(mine.keys() & theirs.keys())
    found = paired([mine[query] for query in both], [theirs[query] for query in both])
    return {"difference": found.difference, "low": found.low, "high": found.high, "p": found.p, "n": found.n}


def _mean(values: Values) -> float:
    return float(np.mean([*values.values()]))


def _mean_of(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


@lru_cache(maxsize=2)
def genders(name: str, shape: Shape) -> dict[str, dict[str, str]]:
    """The group with more words in each test query, and in its relevant documents; none if there is none."""
    _, queries, judged = tested(name, shape)
    counts = er.tally(er.load(data() / name, split="test").docs).frame.select("doc_id", "female", "male")
    relevant = judged.filter(pl.col("relevance") > 0).join(counts, on="doc_id", how="inner")
    by_query = relevant.group_by("query_id").agg(pl.col("female").sum(), pl.col("male").sum())
    asked = er.tally(queries.rename({"query_id": "doc_id"})).frame.select("doc_id", "female", "male")
    return {"document": _sides(by_query), "query": _sides(asked)}


def _sides(frame: pl.DataFrame) -> dict[str, str]:
    return {
        key: "none" if female == male else "female" if female > male else "male"
        for key, female, male in frame.iter_rows()
    }


def _by_gender(unit: Unit, mine: Values, theirs: Values) -> dict[str, Any]:
    """RR@10 of the queries whose relevant document, or who themselves, are about a gender."""
    found: dict[str, Any] = {}
    for what, sides in genders(unit.collection, unit.shape).items():
        parts = {side: [query for query in mine if sides.get(query) == side] for side in GROUPS}
        parts["gendered"] = parts["female"] + parts["male"]
        for side, queries in parts.items():
            if len(queries) < 2:
                continue
            own = {query: mine[query] for query in queries}
            found[f"{what}: {side}"] = {
                "RR@10": _mean(own),
                **_test(own, {query: theirs[query] for query in queries}),
            }
    return found


def _preference(contents: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, Any]:
    """What a ranker prefers among passages about women and men, against plain training."""

    def of(some: list[dict[str, Any]]) -> Any:
        sides = [[each["genderbias-qa"][side] for each in some] for side in ("as they are", "swapped")]
        return (np.mean(sides[0], axis=0) + np.mean(sides[1], axis=0)) / 2

    mine, theirs = of(contents), of(plain)
    test = paired(np.abs(mine), np.abs(theirs))
    raw = _mean_of(_mean_of(each["genderbias-qa"]["as they are"]) for each in contents)
    return {
        "queries": len(mine),
        "preference": _interval(mine.tolist()),
        "raw": raw,
        "size": {"value": float(np.abs(mine).mean()), "difference": test.difference, "p": test.p},
        "nDCG@10": _mean_of(each["genderbias-qa"]["nDCG@10"] for each in contents),
    }


def _chosen(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """The strongest setting up to which none loses RR@10 significantly on the dev queries, by method.

    Other strengths are in the order of the units, from weak to strong.
    """
    chosen: dict[str, float | None] = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        kept = None
        mine = [each for each in rows if each["method"] == method and each["strength"] > 0]
        if method == "negatives":  # some λ are run first
            mine.sort(key=lambda row: float(row["strength"]))
        for row in mine:
            test = row["dev"]["against plain"]["RR@10"]
            if test["difference"] < 0 and test["p"] is not None and test["p"] < 0.05:
                break
            kept = row["strength"]
        chosen[method] = kept
    return chosen


# Equal bias


def _unit(name: str, row: dict[str, Any], seed: int) -> Unit:
    collection, _, ranker = name.partition("/")
    return Unit(collection, ranker, row["method"], row["strength"], seed)


def _equal(name: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each way of training beside re-ranking of the plain run to the same mean bias, seed by seed.

    A comparison is over the seeds for which it has been computed; see `benchmarks.training_equal`.
    """
    rows = []
    for row in found:
        if row["method"] in AGAIN or not row["strength"] or row["test"]["bias change"] >= -0.01:
            continue
        mine = {seed: run_unit(_unit(name, row, seed)) for seed in row["seeds"]}
        kept = over_seeds([each["test"] for each in mine.values()])
        one: dict[str, Any] = {key: row[key] for key in ("method", "strength", "seeds")}
        one |= {"|ARaB@10|": _mean(kept["|ARaB@10|"]), "RR@10": _mean(kept["RR@10"])}
        for how in equal.WAYS:
            made = {seed: equal.known(_unit(name, row, seed), how) for seed in mine}
            parts = {seed: each for seed, each in made.items() if each is not None}
            if not parts:
                continue
            same = over_seeds([mine[seed]["test"] for seed in parts])["RR@10"]
            theirs = {query: _mean_of(part["RR@10"][query] for part in parts.values()) for query in same}
            one[how] = {
                "seeds": list(parts),
                "RR@10": _mean(theirs),
                "|ARaB@10|": _mean_of(part["|ARaB@10|"] for part in parts.values()),
                **_test(same, theirs),
            }
        rows.append(one)
    for how in equal.WAYS:
        tested = [row[how] for row in rows if how in row]
        for test, p in zip(tested, holm([each["p"] for each in tested]), strict=True):
            test["p_holm"] = p
    return rows


if __name__ == "__main__":
    write_tables()
