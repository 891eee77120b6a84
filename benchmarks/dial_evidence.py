"""The dial on MiniLM: bias, preference and usefulness against its strength, beside controls and baselines.

Fitted on one collection, tested on the other. Vectors are kept in the cache; what was encoded once is not
encoded again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.pages import fill, interval, number, table
from evenrank import stats
from evenrank.data import tables
from evenrank.mitigate.counterfactuals import neutral_queries
from evenrank.rankers.dense import Encoder
from evenrank.rankers.neural.encodings import Encodings
from evenrank.vectors.dials import Dial

_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
_DEPTH = 100
_MOST = 600
_TESTS = {"genderbias-qa": ("squad", 4), "squad": ("genderbias-qa", 10)}
"""Tested on; fitted on, and the cut-off of ARaB."""


def dial(data: Path) -> dict[str, Any]:
    """Every collection, each with a dial that was fitted on the other."""
    encodings = Encodings(Encoder())
    found: dict[str, Any] = {"encoder": dict(encodings.encoder.facts()), "pairs to fit on, at most": _MOST}
    for name, (other, cutoff) in _TESTS.items():
        learned = er.dial(_loaded(data, other).docs, most=_MOST, encoder=encodings)
        found[name] = {
            "fitted on": other,
            **dict(learned.facts),
            **_tested(data, name, cutoff, learned, encodings),
        }
    fill("mitigation/dial.md", page(found))
    return found


def _loaded(data: Path, name: str) -> Any:
    return er.load(data / "data" / name, **({"split": "test"} if name == "squad" else {}))


def _tested(data: Path, name: str, cutoff: int, learned: Dial, encodings: Encodings) -> dict[str, Any]:
    loaded = _loaded(data, name)
    queries = neutral_queries(loaded.queries, names=True, lexicon="rekabsaz2020")
    asked = encodings.queries(queries["text"].to_list()).astype(np.float64)
    sides = {}
    for side, docs in (("raw", loaded.docs), ("mirrored", er.swap(loaded.docs))):
        frame = docs.frame()
        vectors = encodings.documents(frame["text"].to_list()).astype(np.float64)
        sides[side] = (frame["doc_id"].to_list(), vectors, er.tally(tables.docs(frame)))
    qrels = loaded.qrels.filter(pl.col("query_id").is_in(queries["query_id"].implode()))
    testing = _Testing(queries["query_id"].to_list(), qrels, cutoff)
    plain = testing.both(asked, sides)
    rows = {}
    for strength in _STRENGTHS:
        rows[f"dial, s = {strength:g}"] = testing.both(learned.queries(asked, strength), sides)
    matrix = np.eye(learned.dimension) - learned.eraser.projection
    rows["control: A q instead of Aᵀq"] = testing.both(asked @ matrix.T, sides)
    direction = np.linalg.svd(learned.eraser.projection)[0][:, : learned.eraser.rank]
    rows["control: orthogonal projection"] = testing.both(asked - asked @ direction @ direction.T, sides)
    erased = {side: (ids, learned.documents(v), counted) for side, (ids, v, counted) in sides.items()}
    rows["control: documents erased"] = testing.both(asked, erased)
    run = testing.run(asked, *sides["raw"][:2])
    for bound in (0.3, 0.1):
        limit = f"abs(ARaB@{cutoff})<={bound}"
        rows[f"constrain, {limit}"] = testing.once(
            er.constrain(run, sides["raw"][2], limit=limit), sides["raw"][2]
        )
    for weight in (0.5, 0.9):
        evened = er.interpolate(run, sides["raw"][2], weight)
        rows[f"interpolation, λ = {weight}"] = testing.once(evened, sides["raw"][2])
    same = np.abs(rows["dial, s = 1"].pop("scores") - rows["control: documents erased"].pop("scores"))
    told = {label: _summary(row, plain) for label, row in rows.items()}
    return {
        "queries": len(testing.queries),
        "queries left out, they name a gender": len(loaded.queries) - len(queries),
        "cutoff": cutoff,
        "largest difference of scores, dial and erased documents": float(same.max()),
        "rows": told,
    }


class _Testing:
    def __init__(self, queries: list[str], qrels: pl.DataFrame, cutoff: int) -> None:
        self.queries, self.qrels, self.cutoff = queries, qrels, cutoff

    def run(self, asked: np.ndarray, ids: list[str], vectors: np.ndarray) -> pl.DataFrame:
        """The nearest documents to each query."""
        scores = asked @ vectors.T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :_DEPTH]
        return tables.run(
            pl.DataFrame(
                {
                    "query_id": np.repeat(self.queries, best.shape[1]),
                    "doc_id": np.array(ids)[best.ravel()],
                    "score": np.take_along_axis(scores, best, axis=1).ravel(),
                }
            )
        )

    def both(self, asked: np.ndarray, sides: Any) -> dict[str, Any]:
        """Lean on both sides of the mirror, and usefulness on the true one."""
        found: dict[str, Any] = {}
        for side, (ids, vectors, counted) in sides.items():
            measured = self.once(self.run(asked, ids, vectors), counted, useful=side == "raw")
            found |= {key if side == "raw" else f"{key}, mirrored": value for key, value in measured.items()}
        scores = asked @ sides["raw"][1].T
        found["scores"] = scores - scores.mean(axis=1, keepdims=True)  # a constant by query does not rank
        return found

    def once(self, run: Any, counted: Any, *, useful: bool = True) -> dict[str, Any]:
        lean = f"ARaB@{self.cutoff}"
        asked = [lean, *(["nDCG@10"] if useful else [])]
        measured = er.measure(run, asked, tally=counted, qrels=self.qrels, confidence=None)
        return {name: measured[name].per_query() for name in asked}


def _summary(row: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    row.pop("scores", None)
    names = [name for name in row if not name.endswith("mirrored")]
    lean = names[0]
    told: dict[str, Any] = {}
    for name in names:
        both = [q for q in row[name] if q in plain[name]]
        mine, theirs = (np.array([each[name][q] for q in both]) for each in (row, plain))
        told[name] = _interval(mine)
        if name == "nDCG@10":
            change = stats.paired(mine, theirs)
            told["change of nDCG@10"] = {"value": change.difference, "low": change.low, "high": change.high}
        else:
            told["mean of absolute values"] = _interval(np.abs(mine))
    if f"{lean}, mirrored" in row:
        both = [q for q in row[lean] if q in row[f"{lean}, mirrored"]]
        halves = np.array([(row[lean][q] + row[f"{lean}, mirrored"][q]) / 2 for q in both])
        told["preference"] = _interval(halves)
    return told


def _interval(values: np.ndarray) -> dict[str, Any]:
    found = stats.mean_interval(values)
    return {"value": found.value, "low": found.low, "high": found.high}


def page(found: dict[str, Any]) -> str:
    """The tables of docs/mitigation/dial.md."""
    text = ""
    for name in _TESTS:
        content = found[name]
        lean = f"ARaB@{content['cutoff']}"
        heads = [
            "",
            lean,
            "interval",
            f"abs({lean})",
            "preference",
            "interval",
            "nDCG@10",
            "its change",
        ]
        rows = []
        for label, row in content["rows"].items():
            own = row.get("preference", {"value": None, "low": None, "high": None})
            change = row["change of nDCG@10"]
            rows.append(
                [
                    label,
                    number(row[lean]["value"]),
                    interval(row[lean]["low"], row[lean]["high"]),
                    number(row["mean of absolute values"]["value"], ".3f"),
                    number(own["value"]),
                    interval(own["low"], own["high"]),
                    number(row["nDCG@10"]["value"], ".3f"),
                    f"{number(change['value'])} {interval(change['low'], change['high'])}",
                ]
            )
        text += (
            f"**{name}**: {content['queries']:,} queries that name no gender; the dial was fitted on "
            f"{content['pairs']:,} documents of {content['fitted on']} and their mirror images. Scores with "
            "the dial at 1 and with erased documents differ, up to a constant for each query, by at most "
            f"{content['largest difference of scores, dial and erased documents']:.0e}.\n\n"
            f"{table(heads, rows)}\n"
        )
    return text + "Numbers: [evidence](../evidence/dial.json).\n"
