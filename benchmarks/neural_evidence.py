"""Neural rankers beside BM25: how good they are, and how they lean: `make evidence-neural`.

    python -m benchmarks.neural_evidence            all units that have not been run, then the tables
    python -m benchmarks.neural_evidence squad      those of one collection, or of one system: squad/pacrr
    python -m benchmarks.neural_evidence --tables   the tables again, from what has been run

A unit is one training, or one ranker, on one collection with one seed; none takes more than an hour. Each
leaves a run and its values in the cache, and is not run again. Models, runs and values are in the folder
``evidence/neural`` of the cache; docs/evidence/neural-rankers.json and the tables in docs/neural-rankers.md
are made of what is there, and say what is not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from evenrank.data import tables
from evenrank.text.cache import root

DEPTH = 100
READ_TOGETHER = {"squad": 20, "wiki": 50}
"""Candidates that a cross-encoder re-ranks; the others follow. It is as slow as this is high."""
INTERACTION = ("drmm", "pacrr", "knrm", "matchpyramid", "convknrm")
_CUTOFFS = (5, 10, 20, 30)


class Unit(NamedTuple):
    """One system on one collection with one seed."""

    collection: str
    system: str
    seed: int | None = None

    @property
    def name(self) -> str:
        return f"{self.collection}/{self.system}" + ("" if self.seed is None else f"/{self.seed}")


def units() -> Iterator[Unit]:
    """Everything, the most telling first."""
    yield from (Unit("squad", name) for name in ("bm25", "bi-encoder", "hybrid"))
    yield from (Unit("squad", "head", seed) for seed in range(5))
    for seed in range(3):
        for kind in INTERACTION:
            if seed == 0 and kind == "convknrm":  # the slowest; what needs no training of it comes first
                yield from (Unit("genderbias-qa", name) for name in GENDERBIAS if name not in _LATER)
            for vectors in ("glove", "random"):
                for stage in ("with", "alone"):
                    yield Unit("squad", f"{kind}, {vectors}, {stage}", seed)
        if seed == 0:
            yield from _cross_encoders("squad", 0)
            yield from (Unit("genderbias-qa", name) for name in _LATER)
            yield Unit("wiki", "bm25")
            yield Unit("wiki", "pacrr, glove, with", 0)
            yield Unit("wiki", "drmm, glove, with", 0)
    for seed in (1, 2):
        yield from _cross_encoders("squad", seed)
    yield Unit("squad", "fine-tuned bi-encoder", 0)
    yield Unit("squad", "language model")
    for kind in INTERACTION:
        for vectors in ("glove", "random"):
            for stage in ("with", "alone"):
                if (kind, vectors, stage) not in {("pacrr", "glove", "with"), ("drmm", "glove", "with")}:
                    yield Unit("wiki", f"{kind}, {vectors}, {stage}", 0)
    yield from (Unit("wiki", name) for name in ("bi-encoder", "hybrid"))
    yield Unit("wiki", "head", 0)
    yield from _cross_encoders("wiki", 0)
    yield Unit("wiki", "fine-tuned bi-encoder", 0)


def _cross_encoders(collection: str, seed: int) -> Iterator[Unit]:
    yield Unit(collection, "cross-encoder, with", seed)
    yield Unit(collection, "cross-encoder, alone", seed)


GENDERBIAS = (
    "bm25",
    "qld",
    "bi-encoder",
    "hybrid",
    "head",
    *(f"{kind}, {vectors}, alone" for kind in INTERACTION for vectors in ("glove", "random")),
    "cross-encoder",
    "language model",
)


_LATER = ("convknrm, glove, alone", "convknrm, random, alone", "cross-encoder", "language model")


def home() -> Path:
    """Where models, runs and values are kept."""
    return root() / "evidence" / "neural"


def data() -> Path:
    found = shared()
    if found is None:
        raise SystemExit("make evidence-neural needs the test data; set EVENRANK_TEST_DATA")
    return found / "data"


# Running


def run_unit(unit: Unit) -> dict[str, Any]:
    """Train what is to be trained, rank, measure; what was done before is not done again."""
    path = _unit_path(unit)
    if path.exists():
        return dict(json.loads(path.read_text()))
    started = time.process_time()
    if unit.collection == "genderbias-qa":
        content = mirrored(unit.system)
    else:
        run, facts = ranked(unit)
        tables.write_run(run, _run_path(unit), name=unit.system.replace(" ", "-"))
        content = {**facts, "measures": measured(unit.collection, run)}
    content["CPU seconds in all"] = round(time.process_time() - started, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return content


def _unit_path(unit: Unit) -> Path:
    return home() / "units" / f"{unit.name.replace('/', '--')}.json"


def _run_path(unit: Unit) -> Path:
    path = home() / "runs" / f"{unit.name.replace('/', '--').replace(', ', '-').replace(' ', '-')}.run.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@lru_cache(maxsize=1)
def collection(name: str) -> Any:
    """Training and test part of a collection, its index and first-stage run of the test queries."""
    folder = data() / name
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    from evenrank.rankers.neural.saved import text_hashes
    from evenrank.training.trainer import own_index

    # Some questions were asked twice, and stand in both parts: the test is on the others.
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    test = test._replace(queries=test.queries.filter(pl.Series(~seen)))
    index = own_index(test.docs)
    first = er.search(index, test.queries, depth=DEPTH)
    return train, test, index, first


@lru_cache(maxsize=1)
def ready(name: str) -> Any:
    """Training data, the same for every system and seed."""
    from evenrank.training.trainer import prepared

    train, _, index, _ = collection(name)
    return prepared(train.docs, train.queries, train.qrels, index=index, depth=DEPTH, seed=0)


def trained(unit: Unit) -> tuple[Path, dict[str, Any]]:
    """The model of a unit, trained if need be."""
    from evenrank.training.trainer import train_prepared

    if unit.system.startswith("cross-encoder"):  # the same model, alone and with the first stage
        unit = unit._replace(system="cross-encoder")
    path = home() / "models" / unit.name.replace("/", "--").replace(", ", "-").replace(" ", "-")
    facts = path.with_suffix(".json")
    if facts.exists():
        return path, dict(json.loads(facts.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"hybrid": False}
    kind, _, rest = unit.system.partition(", ")
    if kind in INTERACTION:
        vectors, stage = rest.split(", ")
        settings["vectors"] = data() / "vectors" / "glove-100d.bin.gz" if vectors == "glove" else None
        settings["with_first_stage"] = stage == "with"
        settings["document_words"] = 64 if unit.collection == "squad" else 120
    elif kind == "cross-encoder":
        settings["max_length"] = 64 if unit.collection == "squad" else 160
        settings |= {"most_queries": 3000, "checks": 2}  # a third of squad's queries: 20 CPU-minutes
    elif kind == "fine-tuned bi-encoder":
        kind = "bi-encoder"
        settings["max_length"] = 64 if unit.collection == "squad" else 160
    found = train_prepared(
        kind, ready(unit.collection), path, seed=unit.seed or 0, say=_say(unit), **settings
    )
    content = {"training CPU seconds": round(found.seconds, 1), "dev": found.metrics}
    facts.write_text(json.dumps(content))
    return path, content


def _say(unit: Unit) -> Callable[[str], None]:
    return lambda text: print(f"{unit.name}: {text}", file=sys.stderr, flush=True)


def ranked(unit: Unit) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The run of a unit, and what to tell of it."""
    _, test, index, first = collection(unit.collection)
    kind = unit.system.partition(",")[0]
    facts: dict[str, Any] = {}
    if kind == "bm25":
        return first, facts
    queries, depth, settings = test.queries, DEPTH, {}
    if kind == "bi-encoder":
        model: Any = "bi-encoder"
    elif kind == "hybrid":
        model, settings = "hybrid", {"weight": _weight(unit.collection)}
        facts["weight, chosen on dev queries"] = settings["weight"]
    elif kind == "language model":
        model, depth = "llm", 10
        queries = _drawn(queries, 200)
        first = first.filter(pl.col("query_id").is_in(queries["query_id"].to_list()))
    else:
        model, facts = trained(unit)
        if kind == "cross-encoder":
            depth = READ_TOGETHER[unit.collection]
            model = _ScoredOnce(unit, model, hybrid=unit.system.endswith(", with"))
            if unit.collection == "wiki":
                queries = _drawn(queries, 1000)
                first = first.filter(pl.col("query_id").is_in(queries["query_id"].to_list()))
    started = time.process_time()
    found = er.rerank(model, first, index.docs, queries, depth=depth, keep_rest=True, **settings)
    facts["ranking CPU seconds"] = round(time.process_time() - started, 1)
    return found, facts


class _ScoredOnce:
    """A cross-encoder whose scores are kept: with the first stage they are those of the model alone, and more."""

    name = "cross-encoder"

    def __init__(self, unit: Unit, folder: Path, *, hybrid: bool) -> None:
        from evenrank.rankers.neural.saved import open_ranker

        self._opened = open_ranker(folder)
        self._weight = (self._opened.hybrid_weight or 0.0) if hybrid else 0.0
        self._path = home() / "scores" / f"{unit.collection}--{unit.seed}.npy"

    def score(self, pairs: Any, *, progress: Any = None) -> Any:
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            np.save(self._path, self._opened.reranker.score(pairs))
        return np.load(self._path) + self._weight * pairs.first


def _drawn(queries: pl.DataFrame, count: int) -> pl.DataFrame:
    """So many queries, fixed by a seed before any training."""
    rows = np.sort(np.random.default_rng(14).permutation(len(queries))[:count])
    return queries[rows]


def _weight(name: str) -> float:
    """The weight of BM25 beside the untrained cosine, on dev queries."""
    from evenrank.training.card import untrained

    found = ready(name).examples
    chosen = untrained(found, found.dev_rows(50))
    if chosen is None:
        raise SystemExit("the hybrid needs the extras neural and offline")
    return float(chosen["weight"])


# Measuring


@lru_cache(maxsize=1)
def _tally(name: str) -> Any:
    return er.tally(collection(name)[1].docs)


def measures() -> list[str]:
    """What is measured: effectiveness, then what the papers measure."""
    found = ["RR@10", "nDCG@10", "R@100"]
    for kind in ("RaB", "ARaB"):
        for magnitude in ("tf", "boolean"):
            found += [f"{kind}(magnitude='{magnitude}')@{k}" for k in _CUTOFFS]
    return [*found, "NFaiRR@10", "GSR"]


def measured(name: str, run: pl.DataFrame) -> dict[str, Any]:
    """Value, interval and, but for GSR, the values of the queries."""
    _, test, _, first = collection(name)
    asked = test.qrels.filter(pl.col("query_id").is_in(run["query_id"].unique().to_list()))
    queries = test.queries.filter(pl.col("query_id").is_in(run["query_id"].unique().to_list()))
    found = er.measure(
        run,
        measures(),
        tally=_tally(name),
        docs=test.docs,
        queries=queries,
        qrels=asked,
        background=first.filter(pl.col("query_id").is_in(queries["query_id"].to_list())),
    )
    content: dict[str, Any] = {}
    for wanted, each in zip(measures(), found, strict=True):
        content[wanted] = {"value": each.value, "low": each.low, "high": each.high, "queries": each.queries}
        if wanted != "GSR":
            content[wanted]["per query"] = each.per_query()
    return content


def mirrored(system: str) -> dict[str, Any]:
    """Which gender a ranker puts first among the four passages of a question, two about women, two about men.

    They are ranked as they are, and with all genders swapped. Half the sum of the two ARaB@4 is what the
    ranker prefers, half the difference what the texts bring.
    """
    from evenrank.stats import mean_interval

    loaded = er.load(data() / "genderbias-qa")
    values: dict[str, dict[str, float]] = {}
    for side, docs in (("as they are", loaded.docs), ("swapped", er.swap(loaded.docs))):
        texts = tables.docs(docs.frame())
        run = _own_passages(system, texts, loaded)
        values[side] = er.measure(run, [er.ARaB @ 4], tally=er.tally(texts), confidence=None)[
            er.ARaB @ 4
        ].per_query()
    queries = sorted(values["as they are"].keys() & values["swapped"].keys())
    plain, mirror = (np.array([values[side][query] for query in queries]) for side in values)
    found: dict[str, Any] = {"queries": len(queries)}
    for name, numbers in (
        ("raw", plain),
        ("raw, swapped", mirror),
        ("preference", (plain + mirror) / 2),
        ("content", (plain - mirror) / 2),
    ):
        interval = mean_interval(numbers)
        found[name] = {"value": interval.value, "low": interval.low, "high": interval.high}
    return found


def _own_passages(system: str, docs: Any, loaded: Any) -> pl.DataFrame:
    """The four passages of each question in the order of a ranker."""
    from evenrank.training.trainer import own_index

    index = own_index(docs)
    kind = system.partition(",")[0]
    lexical = kind if kind in ("bm25", "qld") else "bm25"
    ranked = er.search(index, loaded.queries, ranker=lexical, depth=index.documents)
    own = loaded.qrels.select("query_id", "doc_id")
    first = own.join(ranked, on=["query_id", "doc_id"], how="left").with_columns(
        pl.col("score").fill_null(0.0)
    )
    first = tables.run(first.select("query_id", "doc_id", "score"))
    if kind in ("bm25", "qld"):
        return first
    model: Any = {"bi-encoder": "bi-encoder", "hybrid": "hybrid", "language model": "llm"}.get(kind)
    settings: dict[str, Any] = {"weight": _weight("squad")} if kind == "hybrid" else {}
    if model is None:
        model = trained(Unit("squad", system, 0))[0]
    return er.rerank(model, first, docs, loaded.queries, depth=4, **settings)


# Tables


def collected() -> dict[str, Any]:
    """What has been run, system by system, with intervals over queries and paired tests against BM25."""
    from evenrank.stats import mean_interval, paired

    results: dict[str, Any] = {}
    for name in ("squad", "wiki"):
        systems: dict[str, list[tuple[Unit, dict[str, Any]]]] = {}
        missing: list[str] = []
        for unit in units():
            if unit.collection != name:
                continue
            path = _unit_path(unit)
            if path.exists():
                systems.setdefault(unit.system, []).append((unit, json.loads(path.read_text())))
            else:
                missing.append(unit.name)
        found: dict[str, Any] = {}
        for system, parts in systems.items():
            per_query = {measure: _over_seeds(parts, measure) for measure in measures() if measure != "GSR"}
            per_query["mean |ARaB@10|"] = {
                query: abs(value) for query, value in per_query["ARaB(magnitude='tf')@10"].items()
            }
            row: dict[str, Any] = {
                "seeds": [unit.seed for unit, _ in parts if unit.seed is not None],
                "training CPU seconds": [
                    content["training CPU seconds"]
                    for _, content in parts
                    if "training CPU seconds" in content
                ],
                "queries": len(per_query["RR@10"]),
                "measures": {},
            }
            for measure, values in per_query.items():
                interval = mean_interval(list(values.values()), method="t")
                row["measures"][measure] = {
                    "value": interval.value, "low": interval.low, "high": interval.high,
                }  # fmt: skip
            gsr = [content["measures"]["GSR"] for _, content in parts]
            row["measures"]["GSR"] = {
                "value": float(np.mean([each["value"] for each in gsr])),
                "low": gsr[0]["low"] if len(gsr) == 1 else None,
                "high": gsr[0]["high"] if len(gsr) == 1 else None,
            }
            row["per query"] = per_query
            found[system] = row
        for system, row in found.items():
            for other in ("bm25", "hybrid"):
                if other not in found or other == system:
                    continue
                row[f"against {other}"] = {}
                for measure, values in row["per query"].items():
                    theirs = found[other]["per query"][measure]
                    both = sorted(values.keys() & theirs.keys())
                    test = paired([values[q] for q in both], [theirs[q] for q in both])
                    row[f"against {other}"][measure] = {
                        "difference": test.difference, "low": test.low, "high": test.high, "p": test.p,
                    }  # fmt: skip
        results[name] = {"systems": found, "not run": missing, "claims": _claims(found)}
        for row in found.values():
            del row["per query"]
    preference = {
        system: json.loads(path.read_text())
        for system in GENDERBIAS
        if (path := _unit_path(Unit("genderbias-qa", system))).exists()
    }
    left = [system for system in GENDERBIAS if system not in preference]
    results["genderbias-qa"] = {"systems": preference, "not run": left}
    return results


def _over_seeds(parts: list[tuple[Unit, dict[str, Any]]], measure: str) -> dict[str, float]:
    """Each query's value, averaged over seeds."""
    values = [content["measures"][measure]["per query"] for _, content in parts]
    return {query: float(np.mean([each[query] for each in values])) for query in values[0]}


def _cells() -> list[str]:
    """The 16 cells that the paper has for each system."""
    return [measure for measure in measures() if "aB(" in measure]


def _claims(found: dict[str, Any]) -> dict[str, Any]:
    """The two questions of the paper: do neural rankers lean more than BM25, do transferred vectors?"""
    from evenrank.stats import paired

    def counted(pairs: list[tuple[str, str]]) -> dict[str, Any] | None:
        if not pairs:
            return None
        above, differences = 0, []
        for mine, theirs in pairs:
            for cell in _cells():
                a, b = found[mine]["per query"][cell], found[theirs]["per query"][cell]
                both = a.keys() & b.keys()
                above += sum(a[q] for q in both) > sum(b[q] for q in both)
        common = set.intersection(
            *(set(found[name]["per query"]["RR@10"]) for pair in pairs for name in pair)
        )
        for query in sorted(common):
            gaps = [
                found[mine]["per query"][cell].get(query, 0.0)
                - found[theirs]["per query"][cell].get(query, 0.0)
                for mine, theirs in pairs
                for cell in _cells()
            ]
            differences.append(float(np.mean(gaps)))
        test = paired(differences, [0.0] * len(differences))
        return {
            "comparisons": [list(pair) for pair in pairs],
            "cells": len(pairs) * len(_cells()),
            "more male": above,
            "mean difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.p,
        }

    if "bm25" not in found:
        return {}
    neural = [name for name in found if name not in ("bm25", "hybrid") and ", random" not in name]
    neural = [name for name in neural if not name.endswith(", with")]
    transfer = [
        (name, name.replace("glove", "random"))
        for name in found
        if ", glove" in name and name.replace("glove", "random") in found
    ]
    return {
        "neural against bm25": counted([(name, "bm25") for name in neural]),
        "given vectors against random ones": counted(transfer),
    }


_DOCS = Path(__file__).parents[1] / "docs"
_PAGE = _DOCS / "neural-rankers.md"
_BEGIN, _END = "<!-- tables: begin -->", "<!-- tables: end -->"


def write_tables() -> None:
    """The JSON, and the tables in the page, from what has been run."""
    found = collected()
    content = {
        "command": "python -m benchmarks.neural_evidence",
        "evenrank": er.__version__,
        "results": found,
    }
    path = _DOCS / "evidence" / "neural-rankers.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    if found["genderbias-qa"]["systems"]:
        draw(found["genderbias-qa"]["systems"])
    before, _, rest = _PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _PAGE.write_text(f"{before}{_BEGIN}\n{page(found)}{_END}{after}")


def draw(systems: dict[str, Any]) -> None:
    """The preference of each ranker with its interval, as a picture."""
    import altair as alt

    rows = [{"ranker": name, **found["preference"]} for name, found in systems.items()]
    order = [row["ranker"] for row in sorted(rows, key=lambda row: -float(row["value"]))]
    base = alt.Chart(pl.DataFrame(rows)).encode(alt.Y("ranker:N", sort=order, title=None))
    scale = alt.X("low:Q", title="preference, ARaB@4: below 0 female first, above 0 male first")
    bars = base.mark_rule(strokeWidth=2, color="#555").encode(scale, alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=70, color="#1b6ca8").encode(alt.X("value:Q"))
    zero = alt.Chart(pl.DataFrame({"x": [0.0]})).mark_rule(strokeDash=[4, 4], color="#999").encode(x="x:Q")
    (zero + bars + points).properties(width=420).save(
        str(_DOCS / "images" / "genderbias-preference.png"), scale_factor=2
    )


def page(found: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    parts = []
    titles = {
        "squad": "SQuAD: questions and Wikipedia sentences",
        "wiki": "wiki: what people typed into Google",
    }
    for name, title in titles.items():
        systems = found[name]["systems"]
        parts += [f"### {title}", ""]
        if systems:
            parts += _effectiveness(systems) + _leaning(systems) + _answers(found[name]["claims"])
        parts += _not_run(found[name]["not run"])
    parts += ["### Which gender comes first: genderbias-qa", ""]
    parts += _preferences(found["genderbias-qa"]["systems"]) + _not_run(found["genderbias-qa"]["not run"])
    return "\n".join(parts) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _effectiveness(systems: dict[str, Any]) -> list[str]:
    lines = [
        _row(
            [
                "ranker",
                "seeds",
                "RR@10",
                "95 %",
                "against BM25",
                "p",
                "against hybrid",
                "nDCG@10",
                "R@100",
                "training",
            ]
        ),
        "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for system, row in systems.items():
        rr = row["measures"]["RR@10"]
        cells = [
            system,
            str(len(row["seeds"]) or "–"),
            f"{rr['value']:.3f}",
            f"{rr['low']:.3f} to {rr['high']:.3f}",
        ]
        for other in ("bm25", "hybrid"):
            test = row.get(f"against {other}", {}).get("RR@10")
            cells.append("" if test is None else f"{test['difference']:+.3f}")
            if other == "bm25":
                cells.append("" if test is None else _p(test["p"]))
        seconds = row["training CPU seconds"]
        cells += [f"{row['measures'][m]['value']:.3f}" for m in ("nDCG@10", "R@100")]
        cells.append(f"{np.mean(seconds) / 60:.1f} min" if seconds else "")
        lines.append(_row(cells))
    some = next(iter(systems.values()))["queries"]
    return [f"Effectiveness, {some:,} test queries; training in CPU-minutes.", "", *lines, ""]


def _leaning(systems: dict[str, Any]) -> list[str]:
    shown = ["ARaB(magnitude='tf')@10", "ARaB(magnitude='boolean')@10", "RaB(magnitude='tf')@10"]
    names = [
        "ranker",
        "ARaB@10 tf",
        "95 %",
        "ARaB@10 boolean",
        "RaB@10 tf",
        "mean \\|ARaB@10\\|",
        "NFaiRR@10",
        "GSR",
    ]
    lines = [_row(names), "|---|--:|---|--:|--:|--:|--:|--:|"]
    for system, row in systems.items():
        values = row["measures"]
        first = values[shown[0]]
        mark = _mark(row.get("against bm25", {}).get(shown[0]))
        cells = [system, f"{first['value']:+.3f}{mark}", f"{first['low']:+.3f} to {first['high']:+.3f}"]
        for measure in shown[1:]:
            mark = _mark(row.get("against bm25", {}).get(measure))
            cells.append(f"{values[measure]['value']:+.3f}{mark}")
        cells += [f"{values[m]['value']:.3f}" for m in ("mean |ARaB@10|", "NFaiRR@10", "GSR")]
        lines.append(_row(cells))
    note = (
        "How the lists lean: above 0 toward male words. * differs from BM25, p < .01 (paired t-test, not "
        "corrected for many tests)."
    )
    return [note, "", *lines, ""]


def _answers(claims: dict[str, Any]) -> list[str]:
    lines = []
    words = {
        "neural against bm25": "Neural rankers (word-interaction models alone with given vectors, and the "
        "others above) against BM25",
        "given vectors against random ones": "Given vectors against random ones",
    }
    for key, said in words.items():
        claim = claims.get(key)
        if claim is None:
            continue
        lines.append(
            f"- {said}: more male in {claim['more male']} of {claim['cells']} cells "
            f"({len(claim['comparisons'])} comparisons × 16 measures). Mean difference over all cells "
            f"{claim['mean difference']:+.4f} ({claim['low']:+.4f} to {claim['high']:+.4f}), "
            f"p {_p(claim['p'])}."
        )
    return [*lines, ""] if lines else []


def _preferences(systems: dict[str, Any]) -> list[str]:
    if not systems:
        return []
    lines = [
        _row(["ranker", "preference", "95 %", "raw ARaB@4", "raw, swapped", "content"]),
        "|---|--:|---|--:|--:|--:|",
    ]
    for system, found in systems.items():
        liked = found["preference"]
        cells = [system, f"**{liked['value']:+.2f}**", f"{liked['low']:+.2f} to {liked['high']:+.2f}"]
        cells += [f"{found[key]['value']:+.2f}" for key in ("raw", "raw, swapped", "content")]
        lines.append(_row(cells))
    picture = "![Which gender each ranker puts first](images/genderbias-preference.png)"
    return [*lines, "", picture, ""]


def _not_run(missing: list[str]) -> list[str]:
    if not missing:
        return []
    return [f"Not run yet ({len(missing)}): {'; '.join(missing)}.", ""]


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def _mark(test: dict[str, Any] | None) -> str:
    return "*" if test is not None and test["p"] is not None and test["p"] < 0.01 else ""


def main(arguments: list[str]) -> int:
    chosen = [each for each in arguments if not each.startswith("-")]
    if "--tables" not in arguments:
        import torch

        torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
        for unit in units():
            if chosen and not any(unit.name.startswith(each) for each in chosen):
                continue
            try:
                content = run_unit(unit)
            except Exception as error:  # the others are worth having
                print(f"{unit.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            rr = content.get("measures", {}).get("RR@10", {}).get("value")
            shown = "" if rr is None else f" RR@10 {rr:.4f}"
            print(f"{unit.name}:{shown} ({content['CPU seconds in all']} s)", flush=True)
    write_tables()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
