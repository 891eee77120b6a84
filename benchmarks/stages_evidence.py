"""Where bias enters on SQuAD and TIME, and which rankers prefer a gender by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evenrank as er
from benchmarks.pages import fill, interval, number, table
from evenrank.show.numbers import p_value

_RANKERS = ("bm25", "qld", "tfidf", "bm25+rm3", "w2v_add", "w2v_add(debias=hard)", "dense")


def stages(data: Path) -> dict[str, Any]:
    """Stages of a pipeline, and the mirror test of every ranker that needs no training."""
    found: dict[str, Any] = {"stages": {}, "preference": {}}
    for name in ("time", "squad"):
        found["stages"][name] = _traced(data, name)
    vectors = str(data / "data" / "vectors" / "glove-100d.bin.gz")
    for name, cutoff in (("genderbias-qa", 4), ("squad", 10)):
        loaded = _loaded(data, name)
        for mirrored in ("leave out", "mirror") if name == "genderbias-qa" else ("leave out",):
            test = er.preference(
                loaded.docs,
                loaded.queries,
                rankers=_RANKERS,
                measure=f"ARaB@{cutoff}",
                gendered_queries=mirrored,  # type: ignore[arg-type]
                vectors=vectors,
            )
            found["preference"][f"{name}, gendered queries: {mirrored}"] = test.to_dict()
    fill("where-bias-enters.md", page(found))
    return found


def _loaded(data: Path, name: str) -> Any:
    return er.load(data / "data" / name, **({"split": "test"} if name == "squad" else {}))


def _traced(data: Path, name: str) -> dict[str, Any]:
    """BM25, then MiniLM on its candidates, then re-ranked within a limit."""
    loaded = _loaded(data, name)
    plain = data / "runs" / f"{name}.bm25.run"
    first = plain if plain.exists() else plain.with_suffix(".run.gz")
    counted = er.tally(loaded.docs)
    second = er.rerank("bi-encoder", first, loaded.docs, loaded.queries, depth=100)
    third = er.constrain(second, counted, limit="abs(ARaB@10)<=0.1")
    runs = {"BM25": first, "MiniLM": second, "constrained": third}
    return er.trace(runs, tally=counted).to_dict()


def page(found: dict[str, Any]) -> str:
    """The tables of docs/where-bias-enters.md."""
    text = ""
    heads = ["measure", "stage", "value", "adds", "interval", "corrected p"]
    for name, content in found["stages"].items():
        rows = [
            [
                one["measure"],
                one["name"],
                number(one["value"]),
                number(one["added"]),
                interval(one["added_low"], one["added_high"]),
                "" if one["added"] is None else p_value(one["p_holm"]),
            ]
            for one in content["stages"]
        ]
        count = content["stages"][0]["queries"]
        text += (
            f"**{name}**, {count:,} queries: BM25, its first 100 re-ranked by all-MiniLM-L6-v2, then "
            f"re-ranked within abs(ARaB@10) ≤ 0.1.\n\n{table(heads, rows, left=2)}\n"
        )
    heads = [
        "ranker",
        "as it is",
        "mirrored",
        "preference",
        "interval",
        "content",
        "corrected p",
        "queries",
        "",
    ]
    for name, content in found["preference"].items():
        rows = [
            [
                one["ranker"],
                number(one["raw"]["value"]),
                number(one["mirrored"]["value"]),
                number(one["preference"]["value"]),
                interval(one["preference"]["low"], one["preference"]["high"]),
                number(one["content"]["value"]),
                p_value(one["p_holm"]),
                f"{one['queries']:,}",
                one["verdict"],
            ]
            for one in content["rankers"]
        ]
        measure = content["rankers"][0]["measure"]
        left = ", ".join(f"{count} {why}" for why, count in content["left_out"].items())
        text += f"**{name}** ({left}), the mirror test with {measure}:\n\n{table(heads, rows)}\n"
    return text + (
        "`dense` is all-MiniLM-L6-v2, `w2v_add` sums GloVe vectors. Trained rankers: "
        "[neural rankers](neural-rankers.md). Numbers: [evidence](evidence/where-bias-enters.json).\n"
    )
