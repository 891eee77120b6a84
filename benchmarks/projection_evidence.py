"""The gender projection on MiniLM: bias, preference and usefulness against its strength.

Fitted on one collection, tested on another, with controls and baselines. Vectors are cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks import small_wiki
from benchmarks.pages import DOCS, fill, interval, number, table
from benchmarks.small_wiki import loaded
from evenrank import stats
from evenrank.data.docs import open_docs
from evenrank.data.runs import read_run
from evenrank.mitigate.mirror import neutral_queries
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.encodings import Encodings
from evenrank.rankers.projection import GenderProjection
from evenrank.show.charts.long_form import long_form, long_frame
from evenrank.show.report import write_chart

_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
_DEPTH = 100
_MOST = 600
_TOGETHER = 128
"""Queries that are scored at a time."""
_TESTS = {"genderbias-qa": ("squad", 4), "squad": ("genderbias-qa", 10), small_wiki.NAME: ("squad", 10)}
"""Tested on; fitted on, and the cut-off of ARaB."""
_USEFUL = ("RR@10", "nDCG@10")
_RUN = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
_ABSOLUTE, _PREFERENCE = "mean of absolute values", "preference"


def projection(data: Path) -> dict[str, Any]:
    """Every collection, each with a projection that was fitted on another."""
    found: dict[str, Any] = {"pairs to fit on, at most": _MOST}
    for name, (other, cutoff) in _TESTS.items():
        encodings = Encodings(Encoder(backend=small_wiki.backend(name)))
        learned = er.fit_projection(loaded(data, other).docs, max_documents=_MOST, model=encodings.encoder)
        found[name] = {
            "encoder": dict(encodings.encoder.facts()),
            "fitted on": other,
            **dict(learned.facts),
            **_tested(data, name, cutoff, learned, encodings),
        }
    fill("mitigation/projection.md", page(found))
    write_chart(chart(found), DOCS / "images" / "projection.png")
    return found


def chart(found: dict[str, Any]) -> Any:
    """Bias, preference and usefulness against s, a row of panels for each collection."""
    rows = [
        {
            "x": strength,
            "panel": f"{name}: {called}",
            **{
                key: content["rows"][f"projection, s = {strength:g}"][measure][key]
                for key in ("value", "low", "high")
            },
        }
        for name in _TESTS
        for content in [found[name]]
        for lean in [f"ARaB@{content['cutoff']}"]
        for measure, called in ((lean, lean), (_PREFERENCE, _PREFERENCE), ("nDCG@10", "nDCG@10"))
        for strength in _STRENGTHS
    ]
    return long_form(long_frame(rows), kind="lines", x="strength s", y="value", own_scale=True)


def _tested(
    data: Path, name: str, cutoff: int, learned: GenderProjection, encodings: Encodings
) -> dict[str, Any]:
    docs, everyone, judged = loaded(data, name)
    queries = neutral_queries(everyone, names=True, lexicon="rekabsaz2020")
    asked = encodings.queries(queries["text"].to_list()).astype(np.float64)
    sides = {}
    for side, texts in (("raw", docs), ("mirrored", er.swap(docs))):
        frame = texts.frame()
        vectors = encodings.documents(frame["text"].to_list()).astype(np.float64)
        sides[side] = (frame["doc_id"].to_list(), vectors, er.tally(open_docs(frame)))
    qrels = judged.filter(pl.col("query_id").is_in(queries["query_id"].implode()))
    testing = _Testing(queries["query_id"].to_list(), qrels, cutoff)
    testing.background = testing.run(asked, *sides["raw"][:2])
    plain = testing.both(asked, sides)
    rows = {}
    for strength in _STRENGTHS:
        rows[f"projection, s = {strength:g}"] = testing.both(learned.project(asked, strength), sides)
    matrix = np.eye(len(learned.eraser.mean)) - learned.eraser.projection
    rows["control: A q instead of Aᵀq"] = testing.both(asked @ matrix.T, sides)
    direction = np.linalg.svd(learned.eraser.projection)[0][:, : learned.eraser.rank]
    rows["control: orthogonal projection"] = testing.both(asked - asked @ direction @ direction.T, sides)
    erased = {side: (ids, learned.eraser.apply(v), counted) for side, (ids, v, counted) in sides.items()}
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
    told = {label: _summary(row, plain) for label, row in rows.items()}
    _correct(told)
    return {
        "queries": len(testing.queries),
        "queries left out, they name a gender": len(everyone) - len(queries),
        "cutoff": cutoff,
        "largest difference of scores, projection and erased documents": _furthest(
            learned.project(asked, 1.0) @ sides["raw"][1].T, asked @ erased["raw"][1].T
        ),
        "rows": told,
    }


class _Testing:
    """`background`: what NFaiRR compares with, the same for all rows."""

    background: pl.DataFrame

    def __init__(self, queries: list[str], qrels: pl.DataFrame, cutoff: int) -> None:
        self.queries, self.qrels, self.cutoff = queries, qrels, cutoff

    def run(self, asked: np.ndarray, ids: list[str], vectors: np.ndarray) -> pl.DataFrame:
        """The nearest documents to each query; of equals, what comes first in the collection."""
        parts = []
        for query, scored in zip(self.queries, _scores(asked, vectors), strict=True):
            near = np.sort(np.argpartition(-scored, _DEPTH - 1)[:_DEPTH])
            best = near[np.argsort(-scored[near], kind="stable")]
            found = {"query_id": [query] * len(best), "doc_id": [ids[row] for row in best]}
            parts.append(pl.DataFrame(found | {"score": scored[best]}, schema=_RUN))
        return read_run(pl.concat(parts))

    def both(self, asked: np.ndarray, sides: Any) -> dict[str, Any]:
        """Lean on both sides of the mirror, and usefulness on the true one."""
        found: dict[str, Any] = {}
        for side, (ids, vectors, counted) in sides.items():
            measured = self.once(self.run(asked, ids, vectors), counted, useful=side == "raw")
            found |= {key if side == "raw" else f"{key}, mirrored": value for key, value in measured.items()}
        return found

    def once(self, run: Any, counted: Any, *, useful: bool = True) -> dict[str, Any]:
        lean = f"ARaB@{self.cutoff}"
        asked = [lean, *((_neutral(self.cutoff), *_USEFUL) if useful else ())]
        given = {"background": self.background} if useful else {}
        measured = er.measure(run, asked, tally=counted, qrels=self.qrels, confidence=None, **given)
        return {name: measured[name].per_query() for name in asked}


def _neutral(cutoff: int) -> str:
    return f"NFaiRR@{cutoff}"


def _scores(asked: np.ndarray, vectors: np.ndarray) -> Iterator[np.ndarray]:
    """The scores of all documents, query by query."""
    for first in range(0, len(asked), _TOGETHER):
        yield from asked[first : first + _TOGETHER] @ vectors.T


def _furthest(mine: np.ndarray, theirs: np.ndarray) -> float:
    """How far scores are apart, but for a constant by query, which does not rank."""
    mine -= theirs
    mine -= mine.mean(axis=1, keepdims=True)
    return float(np.abs(mine).max())


def _summary(row: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """Each value with its interval, and its change from the plain ranker with that of a paired test."""
    mine, theirs = _values(row), _values(plain)
    told: dict[str, Any] = {}
    for name, values in mine.items():
        both = [query for query in values if query in theirs[name]]
        own, other = (np.array([each[name][query] for query in both]) for each in (mine, theirs))
        change = stats.paired(own, other)
        told[name] = _interval(own) | {
            "queries": len(both),
            "change": {"value": change.difference, "low": change.low, "high": change.high, "p": change.p},
        }
    return told


def _values(row: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By query: what was measured, its absolute value, and the preference where there is a mirror image."""
    found = {name: values for name, values in row.items() if not name.endswith("mirrored")}
    lean = next(iter(found))
    found[_ABSOLUTE] = {query: abs(value) for query, value in found[lean].items()}
    if other := row.get(f"{lean}, mirrored"):
        found[_PREFERENCE] = {q: (value + other[q]) / 2 for q, value in found[lean].items() if q in other}
    return found


def _correct(told: dict[str, Any]) -> None:
    """Holm's correction over every change of a collection."""
    changes = [value["change"] for row in told.values() for value in row.values()]
    for change, p in zip(changes, stats.holm([change["p"] for change in changes]), strict=True):
        change["p_holm"] = p


def _interval(values: np.ndarray) -> dict[str, Any]:
    found = stats.mean_interval(values)
    return {"value": found.value, "low": found.low, "high": found.high}


def page(found: dict[str, Any]) -> str:
    """The tables of docs/mitigation/projection.md."""
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
            _neutral(content["cutoff"]),
            *_USEFUL,
            "change of nDCG@10",
        ]
        rows = []
        for label, row in content["rows"].items():
            own = row.get(_PREFERENCE)
            change = row["nDCG@10"]["change"]
            rows.append(
                [
                    label,
                    _marked(row[lean]),
                    interval(row[lean]["low"], row[lean]["high"]),
                    _marked(row[_ABSOLUTE], ".3f"),
                    number(None) if own is None else _marked(own),
                    "" if own is None else interval(own["low"], own["high"]),
                    *(_marked(row[name], ".3f") for name in (_neutral(content["cutoff"]), *_USEFUL)),
                    f"{number(change['value'])} {interval(change['low'], change['high'])}",
                ]
            )
        text += (
            f"**{name}**: {content['queries']:,} queries that name no gender; the projection was fitted on "
            f"{content['pairs']:,} documents of {content['fitted on']} and their mirror images. Scores with "
            "the projection at 1 and with erased documents differ, up to a constant for each query, by at "
            f"most {content['largest difference of scores, projection and erased documents']:.0e}.\n\n"
            f"{table(heads, rows)}\n"
        )
    return text + (
        "† differs from s = 0: Student's paired test, p < .05 after Holm's correction over all changes of "
        "the collection. NFaiRR compares with the documents found at s = 0. "
        f"On {small_wiki.NAME} (41,634 passages; of 1,000 test queries fixed by a seed those that name no "
        "gender) MiniLM has 8-bit weights. Numbers: [evidence](../evidence/projection.json).\n"
    )


def _marked(found: dict[str, Any], form: str = "+.3f") -> str:
    p = found["change"]["p_holm"]
    return number(found["value"], form) + ("†" if p is not None and p < 0.05 else "")
