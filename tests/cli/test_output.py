"""Where output goes: a terminal, a file, a pipe that closes, a disk that is full; and what names become."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank import demo
from evenrank.cli import main

COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
DEMO = demo.folder()
MEASURE = ("measure", "ARaB@10", "--docs", DEMO / "docs.tsv")


def evenrank(*arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    return done


def in_a_terminal(*arguments: object, columns: int = 80) -> str:
    """What a command writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=theirs, env=environment)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux says so at the end
        pass
    os.close(ours)
    assert process.wait() == 0
    return b"".join(parts).decode()


@pytest.mark.parametrize("arguments", [("lexicons",), ("--help",), (*MEASURE, DEMO / "bm25.run")])
def test_a_reader_that_has_gone_is_no_error(arguments: tuple[object, ...]) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, stdout=writable, stderr=subprocess.PIPE, check=False)
    os.close(writable)
    assert done.returncode == 0 and b"evenrank:" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [("lexicons",), (*MEASURE, DEMO / "bm25.run")])
def test_a_full_disk_gets_one_line(arguments: tuple[object, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, *map(str, arguments)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch("evenrank: cannot write: .*\n", done.stderr)


def test_an_interruption_gets_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evenrank.text.lexicon.shipped", interrupted)
    assert main(["lexicons"]) == 130
    assert capsys.readouterr().err == "evenrank: interrupted\n"


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    for name in ("bm25[k1]", "x[/y]", ":smile:"):
        given = (*MEASURE, "--run", f"{name}={DEMO / 'bm25.run'}", "--explain", "--per-query")
        assert evenrank(*given).stdout.count(name) > 2
    lexicon = tmp_path / "odd.json"
    lexicon.write_text('{"[/a]": ["she"], "b[c]": ["he"]}')
    shown = evenrank(*MEASURE, DEMO / "bm25.run", "--lexicon", lexicon).stdout
    assert "[/a]" in shown and "b[c]" in shown
    assert "b[c]" in evenrank("lexicons", lexicon).stdout
    results = tmp_path / "results.tsv"
    results.write_text("query\tdoc_id\trank\tgroup\nq\ta\t1\tf[/]\nq\tb\t2\tm\n")
    assert evenrank("represent", results, "--targets", "full[/]=full").stdout.count("f[/]") > 2
    compared = ("--run", f"x[/y]={DEMO / 'bm25.run'}", "--genders", DEMO / "genders.tsv")
    assert "x[/y]" in evenrank("disparity", *compared, "--qrels", DEMO / "qrels.txt").stdout
    assert "x[/y]" in evenrank("psychology", *compared, "--docs", DEMO / "docs.tsv").stdout


def test_a_file_gets_no_colours_whatever_the_terminal(tmp_path: Path) -> None:
    given = (*MEASURE, DEMO / "bm25.run")
    assert "\x1b[" in in_a_terminal(*given)
    in_a_terminal(*given, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == evenrank(*given).stdout


def test_a_narrow_table_says_beneath_what_has_no_column(tmp_path: Path) -> None:
    run = tmp_path / "tied.run"
    ids = [line.split("\t")[0] for line in (DEMO / "docs.tsv").read_text().splitlines()[1:20]]
    run.write_text("".join(f"q1 Q0 {doc_id} 1 1.0 x\n" for doc_id in ids))
    wide, narrow = (in_a_terminal(*MEASURE, run, columns=columns) for columns in (130, 80))
    assert "mean |·|" in wide and "tied" in wide and "mean |ARaB@10|" not in wide
    assert re.search(r"mean \|ARaB@10\|: tied \d\.\d{3}", narrow)
    assert "ARaB@10, queries with a tie at the cut-off: tied 100%" in narrow


def test_without_neutral_queries_the_other_rows_keep_sign_interval_and_parts(tmp_path: Path) -> None:
    labels = tmp_path / "genders.tsv"
    lines = (DEMO / "genders.tsv").read_text().splitlines()
    labels.write_text("".join(f"{line}\n" for line in lines if not line.endswith("neutral")))
    shown = evenrank(*MEASURE, DEMO / "bm25.run", "--genders", labels).stdout
    heading, *rows = shown.splitlines()
    assert "95% interval" in heading and "male" in heading and "mean |·|" in heading
    (female,) = (row for row in rows if row.rstrip().endswith(" female"))
    assert re.search(r"[+-]\d\.\d{3}  \[[+-]\d\.\d{3}, [+-]\d\.\d{3}\]", female)


def test_levels_are_not_rounded() -> None:
    given = (*MEASURE, DEMO / "bm25.run", "--confidence")
    assert "99.9% interval" in evenrank(*given, "0.999").stdout
    assert "95% interval" in evenrank(*given, "0.95").stdout
