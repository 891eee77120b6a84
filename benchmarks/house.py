"""The house in numbers: how many files there are, how many a command walks through, how soon it answers.

    python -m benchmarks.house                    # this tree, as JSON
    python -m benchmarks.house --before REVISION  # that revision beside it; writes docs/evidence/house.json
    python -m benchmarks.house --install          # also the size of a fresh installation, and `make demo`

Seconds are processor seconds of the whole command, so that a busy machine hardly changes them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parents[1]
_MEASURES = ["ARaB@10", "RaB@10", "NFaiRR@10", "nDCG@10"]
_REPEATS = 5
_LATER = tuple(
    """
    rankers/neural/ training/ cli/neural.py mitigate/trained.py
    spark.py
    queries/generate.py queries/generated.py queries/extractive.py queries/variants.py cli/generate.py
    auditing/bundle.py auditing/datasheet.py auditing/profiles.py auditing/selection.py cli/bundling.py
    cli/verify.py
    auditing/black_box.py measures/variants.py cli/compare_variants.py
    measures/compare.py show/notebook.py
    auditing/certainty.py stats/equivalence.py auditing/stages.py show/charts/stages.py
    mitigate/projection.py mitigate/mirror.py cli/sources.py
    measures/document_bias.py mitigate/negatives.py mitigate/balance.py mitigate/judgments.py
    mitigate/training_sets.py
    cli/mitigate/training_sets.py
    mitigate/rebalance.py
    server/sequences.py server/changes.py data/sequences.py
    auditing/rules.py
    parallel.py cli/streams.py queries/teaching.py
    """.split()
)
"""What came later: rankers that are trained, Spark, generated queries, bundles, variants of queries,
notebooks, runs that are not held in memory, training with less bias, equivalence, stages,
gender projections, absolute values as measures, sums alike on every processor, processes
that fork, readers that go away, what an encoder teaches a classifier. It does not count in a comparison."""
_INSTALLATION = ("installation, MB", "seconds of make demo from a clone")

_ENTRY = "import sys, evenrank.cli; sys.argv[0] = 'evenrank'; evenrank.cli.main()"

_MODULES = """
import sys, evenrank.cli
sys.argv = ["evenrank", *sys.argv[1:]]
try:
    evenrank.cli.main()
except SystemExit:
    pass
print(sum(name.split(".")[0] == "evenrank" and getattr(module, "__file__", None) is not None
          for name, module in sys.modules.items()), file=sys.stderr)
"""

_PASSES = """
import sys
import evenrank as er
from evenrank import demo
here = demo.folder()
passes = {"blocks": 0, "batches": 0, "texts": 0}
inside = []
docs = er.load(here).docs
kind = type(docs)
for name in passes:
    def counting(self, *given, _plain=getattr(kind, name), _name=name, **named):
        passes[_name] += not inside and self.path == docs.path  # the collection, not a few texts of it
        inside.append(_name)
        try:
            return _plain(self, *given, **named)
        finally:
            inside.pop()
    setattr(kind, name, counting)
er.audit({"bm25": here / "bm25.run", "dense": here / "dense.run"}, docs=docs, queries=here / "queries.tsv",
         qrels=here / "qrels.txt", genders=here / "genders.tsv").report(sys.argv[1])
print(sum(passes.values()))
"""


def look(tree: Path) -> dict[str, Any]:
    """What the source of a tree looks like, without running it."""
    files = [tree / name for name in _git(tree, "ls-files", "src/*.py").split()]
    parsed = {file: ast.parse(file.read_text()) for file in files}
    importers = _importers(tree, parsed)
    outside, where = _instance_tests(tree, parsed)
    package = tree / "src" / "evenrank"
    same = [file for file in files if not file.relative_to(package).as_posix().startswith(_LATER)]
    return {
        "files": len(files),
        "files without later features": len(same),
        "lines": sum(len(file.read_text().splitlines()) for file in files),
        "lines of files without later features": sum(len(file.read_text().splitlines()) for file in same),
        "files above 450 lines": sum(len(file.read_text().splitlines()) > 450 for file in files),
        "modules with a single importer": sum(n == 1 for n in importers.values()),
        "modules that are only loaded by name": sum(n == 0 for n in importers.values()),
        "isinstance tests on measure classes": outside,
        "files with such tests": len(where),
    }


def _module(tree: Path, file: Path) -> str:
    parts = file.relative_to(tree / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _importers(tree: Path, parsed: dict[Path, ast.Module]) -> Counter[str]:
    """How many files import each module that is not a package."""
    modules = {_module(tree, file): file for file in parsed if file.name != "__init__.py"}
    found: Counter[str] = Counter(dict.fromkeys(modules, 0))
    for file, body in parsed.items():
        found.update({name for name in _imports(body) if name in modules and modules[name] != file})
    return found


def _imports(body: ast.Module) -> Iterator[str]:
    for node in ast.walk(body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _instance_tests(tree: Path, parsed: dict[Path, ast.Module]) -> tuple[int, set[Path]]:
    """`isinstance` on a class that is a bias measure, anywhere in the source."""
    bases = {
        node.name: {ast.unparse(base).split(".")[-1] for base in node.bases}
        for body in parsed.values()
        for node in ast.walk(body)
        if isinstance(node, ast.ClassDef)
    }
    measures = {"BiasMeasure"}
    while grown := {name for name, of in bases.items() if of & measures} - measures:
        measures |= grown
    tests = [
        (file, node)
        for file, body in parsed.items()
        for node in ast.walk(body)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)} & measures
    ]
    return len(tests), {file for file, _ in tests}


def walk(tree: Path) -> dict[str, Any]:
    """How many modules `measure` and `audit` load on the demo, and how often an audit reads the documents."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        touched = {
            command: int(_python(tree, ["-c", _MODULES, *words]).stderr.split()[-1])
            for command, words in _commands(tree, out).items()
        }
        read = int(_python(tree, ["-c", _PASSES, str(out / "report.html")]).stdout.split()[-1])
    return {
        "modules loaded by measure": touched["measure"],
        "modules loaded by audit": touched["audit"],
        "passes over the documents in an audit": read,
    }


def clock(tree: Path) -> dict[str, Any]:
    """Processor seconds of `evenrank measure` on the demo: nothing compiled yet, and then warm (median)."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["-c", _ENTRY, *_commands(tree, Path(folder))["measure"]]
        fresh = {name: str(Path(folder) / name) for name in ("NUMBA_CACHE_DIR", "EVENRANK_CACHE")}
        spent = [_processor_seconds(tree, words, fresh) for _ in range(1 + _REPEATS)]
    return {
        "processor seconds of measure, first use": round(spent[0], 2),
        "processor seconds of measure, warm": round(sorted(spent[1:])[_REPEATS // 2], 2),
    }


def install(tree: Path) -> dict[str, Any]:
    """The size of a fresh environment with the package, and the seconds of `make demo` in a fresh clone."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(tree), str(clone)], check=True)
        start = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=clone, check=True, capture_output=True)
        seconds = time.perf_counter() - start
        files = [file for file in (clone / ".venv").rglob("*") if file.is_file() and not file.is_symlink()]
        size = sum(file.stat().st_size for file in files)
    return {"installation, MB": round(size / 1e6), "seconds of make demo from a clone": round(seconds)}


def _commands(tree: Path, out: Path) -> dict[str, list[str]]:
    here = tree / "src" / "evenrank" / "demo" / "data"
    shared = ["--docs", str(here / "docs.tsv"), "--queries", str(here / "queries.tsv")]
    shared += ["--qrels", str(here / "qrels.txt"), "--run", str(here / "bm25.run")]
    return {
        "measure": ["measure", *_MEASURES, *shared],
        "audit": ["audit", *shared, "-o", str(out / "audit")],
    }


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def _python(tree: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=_environment(tree), capture_output=True, text=True, check=True
    )


def _processor_seconds(tree: Path, words: list[str], more: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], env=_environment(tree) | more, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=True).stdout


def measure_tree(tree: Path, *, fresh: bool) -> dict[str, Any]:
    """Everything about one tree."""
    return look(tree) | walk(tree) | clock(tree) | (install(tree) if fresh else {})


def _keep_installation(known: dict[str, Any], found: dict[str, Any]) -> None:
    """What was found out about installations before stays, with the revision that it was found out of."""
    for tree in ("before", "after"):
        found[tree] |= {name: known[tree][name] for name in _INSTALLATION if name in known[tree]}
    found["installation measured at"] = known.get("installation measured at")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="REVISION", help="a revision to compare with")
    parser.add_argument("--install", action="store_true", help="install into a fresh clone too")
    asked = parser.parse_args()
    now = measure_tree(_HERE, fresh=asked.install)
    if not asked.before:
        print(json.dumps(now, indent=2))
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        _git(_HERE, "worktree", "add", "--quiet", "--detach", str(tree), asked.before)
        try:
            then = measure_tree(tree, fresh=asked.install)
        finally:
            _git(_HERE, "worktree", "remove", "--force", str(tree))
            shutil.rmtree(tree, ignore_errors=True)
    path = _HERE / "docs" / "evidence" / "house.json"
    words = " ".join(sys.argv[1:])
    load = round(os.getloadavg()[2], 1)  # of the last quarter of an hour
    command = f"python -m benchmarks.house {words}"
    found = {"command": command, "load average": load, "before": then, "after": now}
    if asked.install:
        found["installation measured at"] = _git(_HERE, "rev-parse", "--short", "HEAD").strip()
    else:
        _keep_installation(json.loads(path.read_text()), found)
    path.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
