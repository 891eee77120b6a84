"""Crossed, soft and unknown groups on genderbias-qa, and the expected exposure of many rankings.

Passages are about women or men (labels.tsv), and each belongs to the field of its question (topics.tsv).
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.pages import fill, interval, number, table
from evenrank.data.runs import read_run

_AT, _DEPTH, _RANKINGS, _SEED = 10, 50, 50, 0
_ATTRIBUTES = ("gender", "field", "gender × field")
_HIDDEN = 0.3
"""The share of passages whose gender is hidden, to see what becomes of the unknown."""
_SPREADS = (0.0, 0.25, 0.5, 1.0)
"""How far scores are shaken, in standard deviations of the scores of a list."""


def many_groups(data: Path) -> dict[str, Any]:
    """Measures over crossed groups, limits on them, and rankings drawn at random."""
    folder = data / "data" / "genderbias-qa"
    loaded = er.load(folder)
    with TemporaryDirectory() as place:
        index = er.index(loaded.docs, Path(place) / "index")
        run = read_run(er.search(index, loaded.queries, ranker="bm25", depth=_DEPTH))
    labels = _labels(folder)
    hidden = _with_unknown(labels)
    found = {
        "queries": len(loaded.queries),
        "at": _AT,
        "depth": _DEPTH,
        "groups": {name: _groups(labels, name) for name in _ATTRIBUTES},
        "measures": {name: _measured(run, loaded.qrels, labels, name) for name in _ATTRIBUTES},
        f"measures, gender of {_HIDDEN:.0%} hidden": _measured(run, loaded.qrels, hidden, "gender"),
        "measures, the hidden as half of each": _measured(run, loaded.qrels, _softened(hidden), "gender"),
        "limits": _limited(run, loaded.qrels, labels),
        "rankings": _exposures(run, loaded.qrels, labels),
        "rankings of a query": _RANKINGS,
        "seed": _SEED,
    }
    fill("measures/many-groups.md", page(found))
    return found


def _labels(folder: Path) -> pl.DataFrame:
    """doc_id, gender and field of each passage; the field is that of the question it was written for."""
    topics = pl.read_csv(folder / "topics.tsv", separator="\t")
    given = pl.read_csv(folder / "labels.tsv", separator="\t").rename({"group": "gender"})
    asked = given["doc_id"].str.split("-").list.first().alias("query_id")
    made = given.with_columns(asked).join(topics, on="query_id", how="left", maintain_order="left")
    return made.select("doc_id", "gender", field="topic")


def _with_unknown(labels: pl.DataFrame) -> pl.DataFrame:
    out = np.random.default_rng(_SEED).random(len(labels)) < _HIDDEN
    return labels.with_columns(gender=pl.when(pl.Series(out)).then(None).otherwise(pl.col("gender")))


def _softened(labels: pl.DataFrame) -> pl.DataFrame:
    """The hidden as half female, half male: labels as shares."""
    rows: list[tuple[str, str, str, float]] = []
    for doc, gender in labels.select("doc_id", "gender").iter_rows():
        shares = {"female": 0.5, "male": 0.5} if gender is None else {gender: 1.0}
        rows += [(doc, "gender", group, share) for group, share in shares.items()]
    return pl.DataFrame(rows, schema=["doc_id", "attribute", "group", "share"], orient="row")


def _groups(labels: pl.DataFrame, attribute: str) -> int:
    return labels.select(attribute.split(" × ")).n_unique()


def _measured(run: pl.DataFrame, qrels: Any, labels: pl.DataFrame, attribute: str) -> dict[str, Any]:
    of = f"attribute='{attribute}'"
    wanted = [
        f"AWRF({of})@{_AT}",
        f"NDKL({of})@{_AT}",
        f"MinSkew({of})@{_AT}",
        f"MaxSkew({of})@{_AT}",
        f"nDCGxAWRF({of})@{_AT}",
    ]
    found = er.measure(run, wanted, labels=labels, qrels=qrels)
    return {
        one.measure.NAME: {"value": one.value, "low": one.low, "high": one.high, "notes": list(one.notes)}
        for one in found
    }


def _limited(run: pl.DataFrame, qrels: Any, labels: pl.DataFrame) -> dict[str, Any]:
    """Limits on crossed groups: what is proved, what cannot be, what it costs."""
    of = "attribute='gender × field'"
    every = [
        f"abs(ExposureGap({of}, of='male × {name}', against='female × {name}')@{_AT})<=0.05"
        for name in sorted(labels["field"].unique().to_list())
    ]
    made = {}
    for name, limit in {
        "gap of exposure, men and women: at most 0.05": [
            f"abs(ExposureGap(attribute='gender', of='male', against='female')@{_AT})<=0.05"
        ],
        f"the same within each of {len(every)} fields": every,
        "MaxSkew of gender × field: at most 1": [f"MaxSkew({of})@{_AT}<=1"],
        "MaxSkew of gender × field: at most 0.5": [f"MaxSkew({of})@{_AT}<=0.5"],
    }.items():
        fair = er.constrain(run, limit=limit, labels=labels, candidates=_DEPTH)
        before, after = (
            er.measure(each, f"nDCG@{_AT}", qrels=qrels, confidence=None)[0].value for each in (run, fair)
        )
        made[name] = {**fair.certificate, f"nDCG@{_AT} before": before, f"nDCG@{_AT}": after}
    return made


def _exposures(run: pl.DataFrame, qrels: Any, labels: pl.DataFrame) -> dict[str, Any]:
    """Fifty rankings of each query, the scores of each shaken by Gumbel noise: Plackett and Luce's choice."""
    rng = np.random.default_rng(_SEED)
    spread = run.select(pl.col("score").std().over("query_id"))["score"].to_numpy()
    found = {}
    for strength in _SPREADS:
        drawn = []
        for seq in range(_RANKINGS if strength else 1):
            noise = rng.gumbel(size=run.height) * strength * spread
            drawn.append(
                run.select("query_id", "doc_id", score=pl.col("score") + noise, seq=pl.lit(str(seq)))
            )
        rankings = pl.concat(drawn)
        of = "attribute='gender', target='relevant'"
        measured = er.measure(
            rankings, [f"{name}({of})@{_AT}" for name in ("EEL", "EED", "EER")], labels=labels, qrels=qrels
        )
        found[f"{strength:g}"] = {
            one.measure.NAME: {"value": one.value, "low": one.low, "high": one.high} for one in measured
        }
    return found


def page(found: dict[str, Any]) -> str:
    """The tables of docs/measures/many-groups.md."""
    columns = ("AWRF", "NDKL", "MinSkew", "MaxSkew", "nDCGxAWRF")

    def row(label: str, of: dict[str, Any]) -> list[str]:
        return [
            label,
            *(
                f"{number(of[name]['value'], '.3f')} {interval(of[name]['low'], of[name]['high'], '.3f')}"
                for name in columns
            ),
        ]

    rows = [row(f"{name}, {found['groups'][name]} groups", found["measures"][name]) for name in _ATTRIBUTES]
    rows.append(row("gender, 30% hidden", found[f"measures, gender of {_HIDDEN:.0%} hidden"]))
    rows.append(row("gender, hidden as halves", found["measures, the hidden as half of each"]))
    text = (
        f"{found['queries']} questions of genderbias-qa, BM25, 50 passages each; @{_AT}, 95% intervals.\n\n"
    )
    text += table(["labels", *columns], rows)
    text += "\nLimits on groups and on crossed groups, for each query:\n\n"
    rows = []
    for limit, made in found["limits"].items():
        status = made["status"]
        rows.append(
            [
                limit,
                str(status["kept"]),
                str(status["optimal"]),
                str(status["infeasible"]),
                str(status["gap"] + status["unresolved"]),
                f"{made['proved']:.1%}",
                f"{made['mean_loss']:.2%}",
                f"{made[f'nDCG@{_AT} before']:.3f} → {made[f'nDCG@{_AT}']:.3f}",
            ]
        )
    heads = ["limit", "kept", "proved best", "cannot", "open", "proved", "utility lost", f"nDCG@{_AT}"]
    text += table(heads, rows)
    text += (
        f"\nExpected exposure of women and men, target='relevant'; "
        f"{found['rankings of a query']} rankings of each query, scores shaken by so many standard "
        "deviations:\n\n"
    )
    rows = [
        [
            "one ranking" if strength == "0" else strength,
            *(
                f"{number(of[name]['value'], '.3f')} {interval(of[name]['low'], of[name]['high'], '.3f')}"
                for name in ("EEL", "EED", "EER")
            ),
        ]
        for strength, of in found["rankings"].items()
    ]
    text += table(["noise", "EEL, loss", "EED, disparity", "EER, relevance"], rows)
    return text + "\nAll numbers: [evidence](../evidence/many-groups.json).\n"
