"""kill -9 while an index is built: what was there before is there, or nothing; the next build succeeds."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import evenrank as er
from evenrank.rankers.index import Index

pytestmark = pytest.mark.slow

BUILD = """
import sys
import evenrank as er
from evenrank.rankers import indexing

indexing.CHUNK = 20_000  # many stretches to sort

def stop(step):
    if step in sys.argv[3:]:
        print(step, flush=True)
        sys.stdin.readline()  # to be killed here

def behind(step, function):
    def stopped(*given, **named):
        stop(step)
        return function(*given, **named)
    return stopped

indexing._write_ids = behind("ids", indexing._write_ids)
indexing._write_terms = behind("terms", indexing._write_terms)
indexing.write_manifest = behind("manifest", indexing.write_manifest)
print("ready", flush=True)
er.index(sys.argv[1], sys.argv[2], overwrite=True, progress=lambda done, size: stop("reading"))
print("done", flush=True)
"""
STEPS = ("reading", "ids", "terms", "manifest")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = random.Random(1)
    vocabulary = [f"word{i}" for i in range(3000)]
    path = tmp_path_factory.mktemp("killed") / "docs.tsv"
    path.write_text(
        "".join(f"d{i}\t{' '.join(chance.choices(vocabulary, k=60))}\n" for i in range(6000)),
        encoding="utf-8",
    )
    return path


def building(source: Path, path: Path, *steps: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILD, str(source), str(path), *steps]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill_at(step: str, source: Path, path: Path) -> None:
    process = building(source, path, step)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{step}\n"
    process.send_signal(signal.SIGKILL)
    assert process.communicate()[0] == ""
    assert process.returncode == -signal.SIGKILL


def test_a_build_killed_at_any_step_leaves_nothing_that_opens(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for step in STEPS:  # each finds what the one before has left
        kill_at(step, source, path)
        with pytest.raises(er.InputError, match="no such index"):
            Index.open(path)
    assert len(list(tmp_path.iterdir())) == 1, "each build removes what the one before has left"
    index = er.index(source, path)
    dict(index.arrays)
    assert index.documents == 6000
    assert list(tmp_path.iterdir()) == [path]


def test_a_build_leaves_alone_what_another_is_still_writing(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    other = building(source, path, "ids")
    assert other.stdout is not None and other.stdout.readline() == "ids\n"
    er.index({"a": "she is a nurse"}, path)
    assert other.communicate("\n")[0] == "done\n"
    assert Index.open(path).documents == 6000


def test_a_killed_replacement_leaves_the_index_that_was_there(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    old = er.index({"a": "she is a nurse"}, path).fingerprint
    for step in STEPS:
        kill_at(step, source, path)
        found = Index.open(path)
        dict(found.arrays)
        assert found.fingerprint == old
    assert er.index(source, path, overwrite=True).documents == 6000


def test_builds_killed_at_any_moment_leave_a_whole_index_or_none(source: Path, tmp_path: Path) -> None:
    path, chance = tmp_path / "x", random.Random(2)
    started = time.monotonic()
    assert building(source, path).communicate()[0] == "done\n"  # says how long it takes
    took = time.monotonic() - started
    whole = Index.open(path).fingerprint
    subprocess.run(["rm", "-r", str(path)], check=True)
    landed = 0
    for _ in range(30):
        process = building(source, path)
        time.sleep(chance.random() * took / 4)
        process.send_signal(signal.SIGKILL)
        finished = "done" in process.communicate()[0]
        landed += not finished
        try:
            found = Index.open(path)
        except er.InputError as error:
            assert not finished
            assert "not an index" in str(error) or "no such index" in str(error)
        else:
            dict(found.arrays)
            assert found.fingerprint == whole
        if landed >= 5:
            break
    assert landed, "no kill came while an index was being built"
    assert er.index(source, path, overwrite=True).fingerprint
