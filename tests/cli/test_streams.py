"""Standard output and error: what nobody reads opens no gate, what is written is whole and can be read."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.cli.streams import on_screen, one_line, visible

COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
DEMO = demo.folder()
GATE = ("--docs", str(DEMO / "docs.tsv"), "--run", str(DEMO / "bm25.run"), "--fail-if", "abs(ARaB@10)>0.01")
COMMANDS = {
    "measure": ("measure", "ARaB@10", *GATE, "--format", "json"),
    "audit": ("audit", *GATE, "--queries", str(DEMO / "queries.tsv"), "--resamples", "0"),
}


def closed_pipe() -> int:
    readable, writable = os.pipe()
    os.close(readable)
    return writable


@pytest.mark.parametrize(("name", "unbuffered"), [("measure", "1"), ("audit", "")])
def test_a_gate_that_nobody_reads_stays_shut(name: str, unbuffered: str) -> None:
    pipe = closed_pipe()
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*COMMAND, *COMMANDS[name]], stdout=pipe, stderr=pipe, env=environment, check=False)
    os.close(pipe)
    assert done.returncode == 1


def test_a_monitor_whose_alarm_nobody_reads_fails_all_the_same(tmp_path: Path) -> None:
    import evenrank as er

    er.index(DEMO / "docs.tsv", tmp_path / "index")
    given = ["--index", tmp_path / "index", "--queries", DEMO / "queries.tsv", "--db", tmp_path / "bias.db"]
    command = [*COMMAND, "monitor", *map(str, given), "--once", "--history", "--fail-if", "abs(ARaB@10)>0.01"]
    pipe = closed_pipe()
    done = subprocess.run(command, stdout=pipe, stderr=pipe, check=False)
    os.close(pipe)
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_an_error_however_python_buffers(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "lexicons", "--format", "json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "evenrank: cannot write: No space left on device\n")


def test_a_slow_reader_gets_every_byte(tmp_path: Path) -> None:
    """A pipe takes 64 kB at a time; without buffers Python writes as much as fits and forgets the rest."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    lexicon = tmp_path / "many.json"
    lexicon.write_text(json.dumps({"a": [f"word{i}" for i in range(30_000)], "b": ["x"]}))
    command = [*COMMAND, "lexicons", str(lexicon), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), True)
        content = process.stdout.read()
    assert process.returncode == 0
    assert len(json.loads(content)["groups"]["a"]) == 30_000


def test_a_closed_stdout_is_told_on_stderr_and_a_closed_stderr_does_not_spoil_stdout() -> None:
    shell = f'"{sys.executable}" -c "import sys; from evenrank.cli import main; sys.exit(main())" "$@"'
    lexicons = ["sh", "lexicons", "--format", "json"]
    done = subprocess.run(
        ["sh", "-c", f"{shell} >&-", *lexicons], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "evenrank: cannot write: Bad file descriptor\n")
    command = ["sh", "-c", f"{shell} 2>&-", "sh", *COMMANDS["measure"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and json.loads(done.stdout)


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"PYTHONIOENCODING": "ascii:strict"}, ("lexicons", "fabris2020")),
        ({"PYTHONIOENCODING": "ascii"}, ("measure", "ARaB@10", *GATE[:4])),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ("--help",)),
    ],
)
def test_a_terminal_that_knows_only_ascii_is_written_to_in_ascii(
    settings: dict[str, str], arguments: tuple[str, ...]
) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", **settings}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux says so at the end
        pass
    os.close(ours)
    assert process.wait() == 0, b"".join(parts)
    assert b"".join(parts).isascii() and parts


def test_a_file_name_that_is_no_text_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tally", os.fsdecode(b"d\xff.tsv"), "-o", str(tmp_path / "t.parquet")]) == 2
    assert capsys.readouterr().err == (
        "evenrank: d\\udcff.tsv: not UTF-8; rename the file, or link to it under another name\n"
    )


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_bound_beyond_all_numbers_is_refused(digits: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "ARaB@10", *GATE[:4], "--fail-if", f"ARaB@10>{'9' * digits}"]) == 2
    assert ("too large to be compared" if digits == 400 else "cannot be read") in capsys.readouterr().err


def test_escapes_in_names_and_ids_are_shown_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07\x9b31m\u202e"
    run = tmp_path / "evil.run"
    run.write_text(f"q{evil} Q0 d1 1 2.0 x\nq{evil} Q0 d{evil} 2 1.0 x\n")
    (tmp_path / "docs.tsv").write_text(f"d1\tshe\nd{evil}\the\n")
    given = ["--docs", str(tmp_path / "docs.tsv"), "--run", f"r{evil}={run}"]
    for command in (["measure", "ARaB@10", "--explain", "--per-query"], ["audit", "--resamples", "0"]):
        main([*command, *given])
        seen = capsys.readouterr()
        assert "\\u001b]0;owned" in seen.out + seen.err, command
        assert not set("\x1b\x07\x9b\u202e") & set(seen.out + seen.err), command
    run.write_text(f"q Q0 d{evil} 1 x x\n")
    assert main(["measure", "ARaB@10", *given]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_message_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "x" * 1_000_000, *GATE[:4]]) == 2
    assert len(capsys.readouterr().err) < 5_000


def test_colours_stay_and_nothing_else_does() -> None:
    assert on_screen("\x1b[1;31mred\x1b[0m \x1b[2J\x07") == "\x1b[1;31mred\x1b[0m \\u001b[2J\\u0007"
    assert visible("tab\tline\n\x7f") == "tab\tline\n\\u007f"
    assert one_line("a\nb\u2028c\x1b") == "a b c\\u001b"


def test_a_fault_of_ours_is_exit_code_3_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "a socket of an engine")

    monkeypatch.setattr("evenrank.text.lexicon.shipped", broken)
    assert main(["lexicons"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("evenrank: internal error: BrokenPipeError: ") and said.endswith(
        "--debug shows where\n"
    )
    assert said.count("\n") == 1
    assert main(["lexicons", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err
