"""A small program of a user, checked as strictly as mypy can."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import evenrank as er
from evenrank import ARaB, NFaiRR, demo, nDCG


def audited(folder: Path) -> str:
    docs, queries, qrels = er.load(folder)
    runs = {"bm25": folder / "bm25.run", "dense": folder / "dense.run"}
    found = er.audit(runs, [ARaB @ 10, "nDCG@10"], docs=docs, queries=queries, qrels=qrels)
    found.report(folder / "report.html")
    return found.verdict()


def measured(run: Path, docs: dict[str, str]) -> float | None:
    values = er.measure(run, [ARaB @ 10, NFaiRR @ 10, nDCG @ 10], docs=docs, qrels={"q": {"d": 1}})
    table: pl.DataFrame = values.frame()
    one = values["ARaB@10"]
    low: float | None = one.low
    return low if table.is_empty() else one.value


def mitigated(run: Path, docs: dict[str, str]) -> pl.DataFrame:
    fair = er.constrain(run, docs=docs, limit="abs(ARaB@10)<=0.1")
    swept = er.sweep(run, er.tally(docs), qrels={"q": {"d": 1}})
    print(swept.chosen.strength, fair.certificate["status"])
    try:
        return er.search(er.index(docs, Path("idx")), "nurse")
    except er.InputError as error:
        print(error.path, error.line)
        raise


if __name__ == "__main__":
    print(audited(demo.folder()))
