"""What evenrank makes of a collection, in a folder: tally, index, runs, measures, audit, report.

As a program it takes a folder, `demo` or `squad`, and for squad the folder with the data. The golden test
compares what it leaves with what was made before; another test with what is made on other processors.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import evenrank
from evenrank.cli import main

MEASURES = [
    "RaB@10",
    "ARaB@10",
    "ARaB(magnitude='boolean')@10",
    "ARaB(magnitude='tf-words')@5",
    "RaB(magnitude='length')@20",
    "FaiRR@10",
    "NFaiRR@10",
    "GSR@10",
    "LIWC@10",
    "LIWC(signed=True)@10",
    "rND@20",
    "rKL@20",
    "rRD@20",
    "Skew@10",
    "NDKL@10",
    "Exposure@10",
    "DemographicParity@10",
    "AWRF@10",
    "nDCG@10",
    "RR@10",
]
MEASURED = ("measured.json", "squad.json")


def demo(folder: Path) -> None:
    """The demo, and beside it the rankers and measures that its story leaves out."""
    here = folder / "demo"
    run("demo", "-o", here, "--no-open")
    index, queries = ("--index", here / "index"), ("--queries", here / "queries.tsv")
    for ranker in ("qld", "tfidf", "qld+rm3"):
        run("search", *index, *queries, "--ranker", ranker, "--depth", 50, "-o", folder / f"{ranker}.run")
    thesis = ("--set", "estimator=thesis", "--tag", "thesis")
    run("search", *index, *queries, "--ranker", "bm25+rm3", *thesis, "-o", folder / "thesis.run")
    given = ("--docs", here / "docs.tsv", *queries, "--qrels", here / "qrels.txt")
    runs = ("--run", here / "runs" / "bm25.run", "--run", here / "dense.run")
    shown = ("--format", "json", "--per-query", "--explain")
    run("measure", *MEASURES, *runs, *given, *shown, "-o", folder / "measured.json")
    limits = ("--limit", "abs(ARaB@10)<=0.05", "--limit", "NFaiRR@10>=0.9")
    tally = ("--tally", here / "tally.parquet")
    run(
        "mitigate", "constrain", "--run", here / "bm25.run", *tally, *limits, "-o", folder / "constrained.run"
    )


def squad(folder: Path, shared: Path) -> None:
    """The same of a larger collection, without its index and report."""
    data, bm25 = shared / "data" / "squad", shared / "runs" / "squad.bm25.run.gz"
    tally = folder / "squad.parquet"
    run("tally", data / "docs.tsv", "-o", tally)
    given = ("--run", f"bm25={bm25}", "--run", f"qld={shared / 'runs' / 'squad.qld.run.gz'}")
    about = ("--qrels", data / "qrels.test.txt", "--tally", tally)
    counted = [measure for measure in MEASURES if not measure.startswith(("GSR", "LIWC"))]
    run("measure", *counted, *given, *about, "--format", "json", "-o", folder / "squad.json")
    run(
        "mitigate", "constrain", "--run", bm25, "--tally", tally, "--limit", "abs(ARaB@10)<=0.1",
        "-o", folder / "squad-constrained.run",
    )  # fmt: skip


def run(*arguments: Any) -> None:
    """A command of evenrank, in this process; it has to succeed."""
    if code := main([str(argument) for argument in arguments]):
        raise SystemExit(f"evenrank {' '.join(map(str, arguments))} ended with {code}")


def files(folder: Path) -> dict[str, Path]:
    """Every file below a folder, by its name from there; but for the report, whose look may change."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "report.html")
    return {path.relative_to(folder).as_posix(): path for path in found}


def fingerprint(path: Path) -> str:
    """SHA-256 of what a file says, whatever the version of evenrank that wrote it."""
    if path.suffix == ".parquet":
        file = pq.read_table(path)
        provenance = json.loads(pq.read_metadata(path).metadata[b"evenrank"])
        content = {"columns": file.to_pydict(), "provenance": _without_version(provenance)}
    elif path.suffix == ".json":
        content = _without_version(json.loads(path.read_text()))
    else:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def values(path: Path) -> dict[str, float | None]:
    """The main numbers of a file of measures, to be read when something has changed."""
    return {
        f"{each['run']} {one['measure']}": None if one["value"] is None else round(one["value"], 9)
        for each in json.loads(path.read_text())["runs"]
        for one in each["measures"]
    }


def _without_version(facts: Any) -> Any:
    if isinstance(facts, dict):
        kept = {k: v for k, v in facts.items() if not (k == "evenrank" and v == evenrank.__version__)}
        return {key: _without_version(value) for key, value in kept.items()}
    return [_without_version(each) for each in facts] if isinstance(facts, list) else facts


if __name__ == "__main__":
    target, collection, *data = sys.argv[1:]
    Path(target).mkdir(parents=True, exist_ok=True)
    demo(Path(target)) if collection == "demo" else squad(Path(target), Path(data[0]))
