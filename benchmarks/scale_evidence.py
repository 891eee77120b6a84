"""Larger than a machine likes: docs/evidence/scale.json, by `python -m benchmarks.scale_evidence [PART]`.

    spark       wiki on a Spark cluster of two workers on this machine: the numbers of one machine, also when
                one of them is killed; and how much slower a core is
    spark-throughput   a gigabyte of recombined passages: processor time of each step that Spark takes
    large-run   50 million rows: time and memory, rows grouped by query and not

Parts that are in the file are not run again; remove them from it, or name one, to have it measured anew.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import recombined, shared
from benchmarks.pages import committed_source, common_source
from benchmarks.timing import peak_memory
from evenrank.data.runs import write_run
from evenrank.text.tally import tally_to_file

_FILE = Path(__file__).parents[1] / "docs" / "evidence" / "scale.json"
_MASTER = "local-cluster[2,1,1024]"
_MEASURES = ["ARaB@10", "RaB@20", "NFaiRR@10", "nDCG@10", "RR@10"]
_LARGE = [f"{m}@{k}" for m in ("RaB", "ARaB", "NFaiRR", "nDCG", "RR") for k in (5, 10, 20, 30)]


def main(wanted: list[str]) -> None:
    found = json.loads(_FILE.read_text())["result"] if _FILE.exists() else {}
    for name, part in PARTS.items():
        if name in wanted or (not wanted and name not in found):
            source = committed_source()
            found[name] = part() | {"src": source}
            command = "python -m benchmarks.scale_evidence"
            content = {"command": command, "src": common_source(found.values()), "result": found}
            _FILE.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
            print(name, json.dumps(found[name], indent=2))


# Spark


def spark() -> dict[str, Any]:
    """Tally and measures of wiki by two workers, each with one core, against one machine."""
    from evenrank.spark import read_run, session, tally_files

    data = shared()
    if data is None:
        raise SystemExit("needs the test data; set EVENRANK_TEST_DATA")
    found: dict[str, Any] = {"master": _MASTER}
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs.tsv"
        with gzip.open(data / "data" / "wiki" / "docs.tsv.gz", "rb") as packed, docs.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
        wiki = er.load(data / "data" / "wiki", split="test")
        run = Path(folder) / "bm25.run"
        index = er.index(docs, Path(folder) / "index")
        write_run(er.search(index, wiki.queries, depth=100), run, name="bm25")
        tally, here = _timed(lambda: er.tally(docs))
        made = session(_MASTER)
        made.conf.set("spark.sql.shuffle.partitions", "4")
        warm, there = Path(folder) / "warm.parquet", Path(folder) / "spark.parquet"
        tally_files(made, [str(docs)], str(warm))  # workers start and compile
        _, on_spark = _timed(lambda: tally_files(made, [str(docs)], str(there)))
        found["tally"] = {
            "documents": len(tally),
            "equal row for row": er.Tally.read(there).frame.equals(tally.frame),
            "one machine, 2 threads, CPU seconds": here["CPU seconds"],
            "one machine, seconds": here["seconds"],
            "Spark, two workers of one core, seconds": on_spark["seconds"],
            "MB": round(docs.stat().st_size / 1e6, 1),
        }
        given = _through_java(made, docs)
        as_it_is = given.mapInArrow(_untouched, given.schema)
        for name, each in (("untouched", as_it_is), ("tallied", er.tally(given))):
            times = [_timed(lambda each=each: _run_through(each))[1]["seconds"] for _ in range(3)]  # type: ignore[misc]
            found["tally"][f"Spark, rows through Python {name}, seconds"] = statistics.median(times)
        frame = er.tally(_through_java(made, docs))
        mine = er.measure(run, _MEASURES, tally=tally, qrels=wiki.qrels)
        theirs = er.measure(read_run(made, str(run)), _MEASURES, tally=frame, qrels=wiki.qrels)
        found["measures"] = {
            "queries": mine["ARaB@10"].queries,
            "largest difference of a query's value": max(
                float(np.abs(a.values - b.values).max()) for a, b in zip(mine, theirs, strict=True)
            ),
            "equal intervals": all(
                (a.low, a.high) == (b.low, b.high) for a, b in zip(mine, theirs, strict=True)
            ),
        }
        killed = Path(folder) / "killed.parquet"
        gone: list[int] = []
        threading.Timer(on_spark["seconds"] / 3, lambda: gone.extend(_kill_a_worker())).start()
        tally_files(made, [str(docs)], str(killed))
        found["a worker killed"] = {
            "process": "CoarseGrainedExecutorBackend, kill -9" if gone else "none found",
            "equal row for row": er.Tally.read(killed).frame.equals(tally.frame),
        }
        made.stop()
    return found


def _through_java(spark: Any, docs: Path) -> Any:
    return spark.read.csv(str(docs), sep="\t", quote="", schema="doc_id string, text string")


def spark_throughput() -> dict[str, Any]:
    """What a tally of a gigabyte costs in Spark, step by step, with warm workers."""
    from evenrank.spark import session, tally_files

    found: dict[str, Any] = {"master": "local[2]", "passages": "recombined"}
    with tempfile.TemporaryDirectory() as folder:
        docs, texts, count = Path(folder) / "docs.tsv", recombined(200_000), 0
        with docs.open("w") as file:
            while file.tell() < 1e9:
                file.writelines(f"p{count + i}\t{text}\n" for i, text in enumerate(texts))
                count += len(texts)
        found |= {"documents": count, "MB": round(docs.stat().st_size / 1e6)}
        made = session("local[2]")
        given, output = _through_java(made, docs), Path(folder) / "tally.parquet"
        steps: dict[str, Callable[[], Any]] = {
            "one machine, 2 threads": lambda: er.tally(docs),
            "Spark, lines read": lambda: _run_through(made.read.text(str(docs))),
            "Spark, lines split": lambda: _run_through(given),
            "Spark, rows through Python untouched": lambda: _run_through(
                given.mapInArrow(_untouched, given.schema)
            ),
            "Spark, rows tallied": lambda: _run_through(er.tally(given)),
            "one machine, 2 threads, into a file": lambda: tally_to_file(docs, output),
            "Spark, files tallied into a file": lambda: tally_files(made, [str(docs)], str(output)),
        }
        for name, step in steps.items():
            step()
            times = [_spent(step) for _ in range(3)]
            found[name] = {key: round(statistics.median(each[key] for each in times), 2) for key in times[0]}
        found["load"] = round(os.getloadavg()[0], 1)
        made.stop()
    for kind, end in (("rows", ""), ("files", " into a file")):
        here = found["one machine, 2 threads" + (end and f",{end}")]
        there = found[f"Spark, {kind} tallied{end}"]
        for what in ("seconds", "CPU seconds"):
            found[f"{kind}: times as long, by {what}"] = round(there[what] / here[what], 2)
    return found


def _spent(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of the clock, and of processor time of this process and all that it has started."""
    began, before = time.perf_counter(), _processor_time()
    work()
    return {"seconds": time.perf_counter() - began, "CPU seconds": _processor_time() - before}


def _processor_time() -> float:
    parents, ticks = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            of = status.read_text().rpartition(")")[2].split()
            parents[int(status.parent.name)] = int(of[1])
            ticks[int(status.parent.name)] = sum(map(int, of[11:15]))  # its own, and of children that ended
    own = [pid for pid in parents if _descends(pid, os.getpid(), parents)]
    return sum(ticks[pid] for pid in own) / os.sysconf("SC_CLK_TCK")


def _untouched(batches: Any) -> Any:
    return batches


def _run_through(frame: Any) -> None:
    """Have Spark make all rows, and write them nowhere."""
    frame.write.format("noop").mode("overwrite").save()


def _kill_a_worker() -> list[int]:
    """Kill one of the executors that this process has started, through Spark, and nobody else's."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in lines}
    executors = [int(pid) for pid, _, *of in lines if of and "CoarseGrainedExecutorBackend" in of[0]]
    own = [pid for pid in executors if _descends(pid, os.getpid(), parents)]
    if own:
        os.kill(own[-1], signal.SIGKILL)
    return own[-1:]


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


# Large runs


def large_run() -> dict[str, Any]:
    """A run of 50 million rows, each measure at four depths, in a process of its own."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("grouped", "scattered"):
            run = Path(folder) / f"{kind}.run"
            _write_run(run, 50_000, scattered=kind == "scattered")
            code = (
                "from benchmarks.scale_evidence import measure_large; import sys; measure_large(sys.argv[1])"
            )
            out = subprocess.run(
                [sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True
            )
            found[kind] = json.loads(out.stdout.splitlines()[-1]) | {"GB": round(run.stat().st_size / 1e9, 2)}
            run.unlink()
    found["rows"], found["measures"] = 50_000_000, _LARGE
    return found


def _write_run(path: Path, queries: int, *, scattered: bool, depth: int = 1000) -> None:
    """Random runs over two million documents; scattered: the rows of 500 queries mixed, block after block."""
    random = np.random.default_rng(0)
    with path.open("w") as file:
        for first in range(0, queries, 500):
            count = min(500, queries - first)
            ranks = np.tile(np.arange(1, depth + 1), count)
            frame = pl.DataFrame(
                {
                    "query_id": np.repeat(np.arange(first, first + count), depth),
                    "q0": "Q0",
                    "doc_id": (ranks - 1) * 2000 + random.integers(0, 2000, len(ranks)),
                    "rank": ranks,
                    "score": (depth - ranks + random.random(len(ranks))).round(3),
                    "tag": "run",
                }
            )
            if scattered:
                frame = frame.sample(fraction=1, shuffle=True, seed=first)
            file.write(frame.write_csv(include_header=False, separator=" "))


def measure_large(path: str) -> None:
    """Measure a run; prints time and memory as JSON."""
    random = np.random.default_rng(1)
    documents, queries = 2_000_000, 50_000
    ids = pl.int_range(documents, eager=True).cast(pl.String)
    counts = {group: random.poisson(rate, documents) for group, rate in (("female", 0.3), ("male", 0.6))}
    sums = {f"{group}_logwords": np.log1p(of) for group, of in counts.items()}
    tally = pl.DataFrame({"doc_id": ids, "tokens": random.integers(20, 200, documents), **counts, **sums})
    relevant = random.integers(0, documents, queries).astype(str)
    qrels = pl.DataFrame({"query_id": np.arange(queries).astype(str), "doc_id": relevant, "relevance": 1})
    before = peak_memory()
    _, taken = _timed(lambda: er.measure(path, _LARGE, tally=tally, qrels=qrels))
    print(json.dumps(taken | {"peak MB": peak_memory(), "of these before, for the tally": before}))


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    began, cpu = time.perf_counter(), time.process_time()
    made = work()
    return made, {
        "seconds": round(time.perf_counter() - began, 2),
        "CPU seconds": round(time.process_time() - cpu, 2),
    }


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "spark": spark,
    "spark-throughput": spark_throughput,
    "large-run": large_run,
}

if __name__ == "__main__":
    main(sys.argv[1:])
