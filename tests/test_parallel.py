"""In forked workers and hardened containers evenrank works, or says in one line why it does not."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import evenrank as er
from evenrank import parallel
from evenrank.data.docs import thread_count

ROOT = Path(__file__).parent.parent

# In the parent: Polars, and the tables that the entries ask for. In each child: one entry.
ENTRIES = """
import os, signal, sys, time, warnings
import numpy as np
import polars as pl
import evenrank as er
from evenrank import demo
from evenrank.data.read import read_qrels, read_queries
warnings.simplefilter("ignore")
where = sys.argv[1]
docs = {"d1": "he said", "d2": "she said", "d3": "they said"}
queries, qrels = {"q1": "said", "q2": "he she"}, {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}
run, genders = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 2.0, "d1": 1.0}}, {"q1": "female", "q2": "male"}
tally, index = er.tally(docs), er.index(docs, where + "/idx")
frame = read_queries(queries)
expanded = pl.DataFrame({"query_id": ["q"], "term": ["he"], "weight": [1.0]})
labels, targets = {"d1": "a", "d2": "b", "d3": "a"}, {"q1": {"a": 0.5, "b": 0.5}, "q2": {"a": 0.5, "b": 0.5}}
sheet = pl.DataFrame({"query_id": ["q1"], "text": ["said"], "label": ["male"]})
scores = pl.DataFrame({"query_id": ["a", "b"], "score": [1.0, 2.0]})
values = pl.DataFrame({"run": ["a"], "query_id": ["q1"], "value": [1.0]})
gendered = {str(i): "he said" if i % 3 else "she said he" for i in range(90)}

class Encoder:
    def documents(self, texts):
        return np.array([[float(text.count(letter)) for letter in "heas"] for text in texts])

    def facts(self):
        return {}

entries = {
    "audit": lambda: er.audit(run, ["ARaB@2"], tally=tally),
    "load": lambda: er.load(demo.folder()),
    "tally": lambda: er.tally(docs),
    "index": lambda: er.index(docs, where + f"/idx{os.getpid()}"),
    "Index": lambda: er.Index.open(where + "/idx"),
    "search": lambda: er.search(index, queries),
    "measure": lambda: er.measure(run, "ARaB@2", tally=tally),
    "represent": lambda: er.represent(run, labels=labels, targets=targets, at=2),
    "bind": lambda: er.bind(["ARaB@2"], tally=tally)[0].calc_aggregate([], run),
    "disparity": lambda: er.disparity(run, qrels=qrels, genders=genders),
    "association": lambda: er.association(scores, scores),
    "audit_judgments": lambda: er.audit_judgments(docs=docs, qrels=qrels, genders=genders),
    "audit_rankings": lambda: er.audit_rankings(run, docs=docs, genders=genders),
    "constrain": lambda: er.constrain(run, tally, limit="abs(ARaB@2)<=0.1"),
    "interpolate": lambda: er.interpolate(run, tally),
    "rebalance": lambda: er.rebalance(run, labels=labels, at=2),
    "sweep": lambda: er.sweep(run, tally, qrels=qrels),
    "swap": lambda: er.swap(frame),
    "mirror of pairs": lambda: er.mirror(docs, queries, pairs=True),
    "balance": lambda: er.balance({"a": 1.0, "b": 1.0}, {"a": "female", "b": "male"}),
    "classify": lambda: er.classify(["he is a nurse"]),
    "compare": lambda: er.compare(values),
    "trace": lambda: er.trace(run, ["RaB@2"], tally=tally),
    "mirror": lambda: er.mirror(docs, queries),
    "fit_projection": lambda: er.fit_projection(gendered, model=Encoder()),
    "penalise": lambda: er.penalise(run, tally),
    "negatives": lambda: er.negatives(run, qrels, tally),
    "fill": lambda: er.fill(scores, sheet, genders=genders, generated_scores=scores),
    "even_judgments": lambda: er.even_judgments(sheet, docs),
    "generate": lambda: er.generate(docs),
    "filter_generated": lambda: er.filter_generated(sheet, index),
    "closeness": lambda: er.closeness(sheet, index),
    "plan": lambda: er.plan(0.1, run=run, measure="ARaB@2", tally=tally),
    "variants": lambda: er.variants(queries),
    "compare_variants": lambda: er.compare_variants(index, queries=queries),
    "pool": lambda: er.pool(values, queries),
    "vote": lambda: er.vote(sheet),
    "feedback": lambda: er.feedback(index, queries),
    "rerank": lambda: er.rerank(where, run, docs, queries),
    "gendered_terms": lambda: er.gendered_terms(expanded, "rekabsaz2020"),
    "tables": lambda: read_qrels(qrels),
}
for name, work in entries.items():
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            work()
            said = "worked"
        except er.InputError as error:
            said = "refused" if "forked after Polars" in str(error) else f"wrong: {error}"
        except BaseException as error:
            said = f"failed: {error!r}"
        print(name, said, flush=True)
        os._exit(0)
    for _ in range(600):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(name, "hung", flush=True)
"""


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_no_public_entry_hangs_in_a_forked_worker(tmp_path: Path) -> None:
    done = python(ENTRIES, str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {name: what for name, what in found.items() if what != "refused"} == {
        "tally": "worked",  # these wait for no thread of Polars
        "swap": "worked",
        "fit_projection": "worked",
        "Index": "worked",
    }
    functions = {name for name in er._HOME if inspect.isfunction(getattr(er, name))}
    assert functions - set(found) == {
        "lexicon",  # these have no threads to wait for
        "parse",
    }


def test_a_worker_that_was_forked_before_polars_worked_does_all() -> None:
    code = """
import os, sys
import evenrank as er
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(er.measure({"q": {"d": 1.0}}, "RaB@1", docs={"d": "he"})["RaB@1"].value > 0, flush=True)
os._exit(0)
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


HARDENED = """
import os, sys
import numpy as np
from evenrank.mitigate.balance.matching import matched
print(matched(np.array([1.0]), np.array([1.5]), caliper=1.0)[0].tolist())
print(os.environ.get("NUMBA_CACHE_DIR"))
"""


def hardened(tmp_path: Path, *read_only: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run with the package and these folders mounted read-only, the home too."""
    package = tmp_path / "packages"
    shutil.copytree(
        ROOT / "src" / "evenrank", package / "evenrank", ignore=shutil.ignore_patterns("__pycache__")
    )
    mounts = " && ".join(
        f"mount --bind '{each}' '{each}' && mount -o remount,ro,bind '{each}'"
        for each in (package, *read_only)
    )
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("needs unshare, and a kernel that lets users make namespaces")
    command = ["unshare", "-rm", "sh", "-c", f"{mounts} && exec '{sys.executable}' -c \"$0\"", HARDENED]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG"))}
    given = {**plain, "PYTHONPATH": str(package), "HOME": str(package), **environment}
    given["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=given)


@pytest.mark.slow
def test_where_no_folder_at_all_can_be_written_code_is_compiled_in_memory(tmp_path: Path) -> None:
    folders = [each for each in ("/tmp", "/var/tmp", "/dev/shm") if Path(each).is_dir()]
    done = hardened(tmp_path, *folders, TMPDIR=str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0]", "None"]


def test_generated_cases_have_no_deadline() -> None:
    """No test depends on how busy or how fast a machine is."""
    assert settings.default is not None and settings.default.deadline is None


def recipe() -> tuple[dict[str, str], list[str]]:
    """The environment that docs/container.md sets in its Dockerfile, and the command it runs."""
    page = (ROOT / "docs" / "container.md").read_text()
    (line,) = re.findall(r"^ENV (.*)$", page, re.MULTILINE)
    (command,) = re.findall(r"^    evenrank (measure .*)$", page, re.MULTILINE)
    assert "USER evenrank" in page and "--read-only" in page
    return dict(pair.split("=", 1) for pair in line.split()), shlex.split(command)


@pytest.mark.slow
def test_the_recipe_for_a_container_works_read_only_and_without_rights(tmp_path: Path) -> None:
    """As docker would: all is read-only but /tmp and the cache, and the user is nobody of note."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("needs unshare, and a kernel that lets users make namespaces")
    environment, command = recipe()
    for folder in ("cache", "data", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "docs.tsv").write_text("d1\the said\nd2\tshe said\n")
    (tmp_path / "data" / "bm25.run").write_text("q Q0 d1 1 2.0 x\nq Q0 d2 2 1.0 x\n")
    placed = {key: value.replace("/cache", str(tmp_path / "cache")) for key, value in environment.items()}
    start = "import os, sys; from evenrank.cli import main; code = main()\n"
    start += f"print(os.getuid(), os.access('.', os.W_OK), flush=True)\n{HARDENED}\nsys.exit(code)"
    script = f"""
set -e
mount --bind '{tmp_path}/cache' '{tmp_path}/cache'
mount -o remount,ro,bind /
mount --bind '{tmp_path}/data' '{tmp_path}/data' && mount -o remount,ro,bind '{tmp_path}/data'
cd '{tmp_path}/data'
exec unshare -U --map-user=10001 --map-group=10001 '{sys.executable}' -c "$0" "$@"
"""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG"))}
    given = {**plain, **placed, "PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, start, *command],
        capture_output=True, text=True, timeout=600, check=False, env=given,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ARaB@10" in done.stdout and "10001 False\n" in done.stdout
    assert list((tmp_path / "cache" / "numba").rglob("*.nbi"))  # what was compiled is kept


def test_without_a_compiler_one_line_says_why_there_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_text("d1\the said\n")
    code = "import sys; from evenrank.cli import main; sys.exit(main(sys.argv[1:]))"
    asked = ("index", str(tmp_path / "docs.tsv"), "-o", str(tmp_path / "idx"))
    done = python(code, *asked, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "evenrank: NUMBA_DISABLE_JIT is set, but evenrank's kernels run only compiled; unset it"
    )
    assert not (tmp_path / "idx").exists()


def test_threads_can_be_fewer_than_cores_and_more() -> None:
    own = thread_count()
    try:
        for wanted in (1, own + 3):
            parallel.set_threads(wanted)
            assert thread_count() == wanted
    finally:
        parallel.set_threads(None)
    assert thread_count() == own
