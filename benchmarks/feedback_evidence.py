"""Numbers about feedback: RM3 beside Anserini's, and bias-aware RM3 on two collections."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from evenrank.data.docs import Dataset
from evenrank.data.runs import read_run
from evenrank.mitigate.feedback import FeedbackSweep
from evenrank.rankers import make
from evenrank.rankers.index import Index
from evenrank.rankers.indexing import index as build

_SPLITS = {"time": None, "grepbiasir": None, "squad": "test"}
_SWEPT = ("time", "squad")
_MEASURES = ("AP", "nDCG@10", "RR@10", "ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10", "NFaiRR@10")
_FEW = ("AP", "nDCG@10", "ARaB@10", "LIWC@10")
_SIZES = (5, 10, 20, 50)
_SHOWN = 0.5  # the λ of the thesis' tables


def feedback(data: Path) -> dict[str, Any]:
    """Everything docs/mitigation/feedback.md quotes."""
    found: dict[str, Any] = {
        "RM3 beside Anserini": {},
        "sweep": {},
        "k and n": {},
        "variants": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for collection, split in _SPLITS.items():
            dataset = er.load(data / "data" / collection, split=split)
            index = build(dataset.docs, Path(folder) / collection)
            found["RM3 beside Anserini"][collection] = _beside_anserini(data, collection, dataset, index)
            if collection not in _SWEPT:
                continue
            given = {"qrels": dataset.qrels, "measures": _MEASURES, "resamples": 1000}
            swept = er.feedback(index, dataset.queries, **given)
            found["sweep"][collection] = _sweep(swept)
            found["k and n"][collection] = [
                _short(step, _FEW) | {name: size}
                for name in ("fb_docs", "fb_terms")
                for size in _SIZES
                for step in _steps(
                    er.feedback(index, dataset.queries, lambdas=[_SHOWN], **{name: size}, **given)
                )
            ]
            found["variants"][collection] = {
                name: _short(
                    _steps(er.feedback(index, dataset.queries, lambdas=[_SHOWN], **each, **given))[-1],
                    _FEW,
                )
                for name, each in _variants().items()
            }
    return found


def _variants() -> dict[str, dict[str, Any]]:
    """Other document biases, the printed equations, and query likelihood, all at the same λ."""
    biases = {f"bias {name}": {"magnitude": name} for name in ("boolean", "count", "length", "liwc")}
    return {**biases, "estimator thesis": {"estimator": "thesis"}, "ranker qld": {"ranker": "qld"}}


def _beside_anserini(data: Path, collection: str, dataset: Dataset, index: Index) -> dict[str, Any]:
    """Effectiveness of both, and how many of the top ten documents are the same."""
    run = make("bm25+rm3", index=index).rank(dataset.queries, depth=100)
    oracle = json.loads((data / "oracles" / f"{collection}.json").read_text())
    theirs = oracle["runs"]["bm25.rm3"]["effectiveness"]
    found: dict[str, Any] = {}
    for name in ("AP@100", "nDCG@10", "RR@10"):
        ours = er.measure(run, name, qrels=dataset.qrels, confidence=None)[name].value
        found[name] = {"ours": ours, "Anserini": theirs[name], "difference": ours - theirs[name]}
    lucene = read_run(next((data / "runs").glob(f"{collection}.bm25.rm3.run*")))
    tops = [table.filter(pl.col("rank") <= 10) for table in (lucene, run)]
    shared = tops[0].join(tops[1], on=["query_id", "doc_id"], how="semi")
    return {**found, "same among the top ten": len(shared) / len(tops[0])}


def _sweep(swept: FeedbackSweep) -> dict[str, Any]:
    rows = [_short(step) for step in _steps(swept)]
    gains = swept.per_query("ARaB@10", lambda_=_SHOWN)["gain"]
    return {
        "first stage": {
            str(m.measure): {"value": m.value, "abs": m.abs}
            for m in swept.measured.runs[f"{swept.ranker} alone"]
        },
        "steps": rows,
        "largest λ up to which AP does not fall significantly": _harmless(swept, "AP"),
        "largest λ up to which nDCG@10 does not fall significantly": _harmless(swept, "nDCG@10"),
        f"gain of |ARaB@10| at λ = {_SHOWN}, by query": {
            str(q): gains.quantile(q, "linear") for q in (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
        },
        "side by side": swept.side_by_side(_SHOWN, top=5).select("query_id", "before", "after").to_dicts(),
        "queries": len(swept.queries),
    }


def _steps(swept: FeedbackSweep) -> list[pl.DataFrame]:
    """The rows of each λ."""
    return swept.frame().partition_by("lambda", maintain_order=True)


def _harmless(swept: FeedbackSweep, measure: str) -> float:
    """The largest λ up to which no λ lowers the measure significantly, after Holm's correction."""
    reached = 0.0
    for row in swept.frame().filter(measure=measure).tail(-1).iter_rows(named=True):
        if row["p_holm"] is not None and row["p_holm"] < 0.05 and row["difference"] < 0:
            break
        reached = row["lambda"]
    return reached


def _short(step: pl.DataFrame, measures: Sequence[str] = _MEASURES) -> dict[str, Any]:
    """A step, as JSON knows it, without what the docs do not quote."""
    left_out = {"lambda", "measure", "gendered_terms", "gendered_weight"}
    left_out |= {"low", "high", "p_holm"} if measures == _FEW else set()
    rows = {}
    for entry in step.iter_rows(named=True):
        if entry["measure"] in measures:
            rows[entry["measure"]] = {key: value for key, value in entry.items() if key not in left_out}
    return {
        "lambda": step["lambda"][0],
        "gendered terms": step["gendered_terms"][0],
        "their weight": step["gendered_weight"][0],
        "measures": rows,
    }
