"""What a person meets at a terminal: tables that fit, help in groups, hints, and errors in its own words."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.test_output import COMMAND, in_a_terminal

from evenrank import demo
from evenrank.cli import main, streams
from evenrank.show.grid import Grid

DEMO = demo.folder()
SOURCE = Path(__file__).parents[2] / "src" / "evenrank"
LONG = "a-run-whose-name-is-longer-than-anyone-would-like"


def lines(shown: str) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()]


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """What a command prints, and that it leaves with this code."""
    assert main([str(argument) for argument in arguments]) == code
    shown = capsys.readouterr()
    return shown.out if code == 0 else shown.err


cells = st.text("abc 0123.+", min_size=1, max_size=30)


@given(st.integers(1, 6), st.integers(20, 100), st.data())
def test_no_number_of_a_table_is_ever_cut(columns: int, width: int, data: st.DataObject) -> None:
    numbers = st.floats(-1e4, 1e4).map("{:+.3f}".format)
    row = st.tuples(cells, *(numbers for _ in range(columns)))
    rows = [list(each) for each in data.draw(st.lists(row, min_size=1, max_size=3))]
    grid = Grid(["run", *(f"measure {i}" for i in range(columns))], rows)
    parts = grid.blocks(width)
    text = max(len(cell) for cell in ("run", *(row[0] for row in rows)))
    folded = max(0, text + 2 - width // 2)  # the terminal folds text that takes more than half of the width
    shown = [cell for part in parts for cell in part.headings[1:]]
    assert shown == grid.headings[1:]
    for part in parts:
        assert all(found[0] == row[0] for found, row in zip(part.rows, rows, strict=True))
        assert len(part.headings) == 2 or all(
            len(line) <= width + folded for line in part.text().splitlines()
        )


def test_a_table_that_fits_is_one_table() -> None:
    grid = Grid(["run", "a", "b"], [["x", "1", "2"], [], ["y", "3", "4"]])
    assert grid.blocks(80) == [grid]


@pytest.mark.parametrize("columns", [80, 50])
def test_measure_cuts_no_number_however_narrow_the_terminal(columns: int) -> None:
    shown = in_a_terminal(
        "measure", "ARaB(magnitude='boolean')@10", "nDCG@10", f"{LONG}={DEMO / 'bm25.run'}",
        DEMO / "dense.run", "--docs", DEMO / "docs.tsv", "--qrels", DEMO / "qrels.txt",
        "--genders", DEMO / "genders.tsv", "--resamples", 50, columns=columns,
    )  # fmt: skip
    found = lines(shown)
    assert "…" not in shown and all(len(line) <= columns for line in found)
    assert any(re.search(r"\+0\.041 .*48 neutral$", line) for line in found)
    if columns == 50:
        assert "no room for" in " ".join(found) and "--format json has everything" in " ".join(found)
    else:
        assert any(re.search(r"\[-\d\.\d{3}, \+\d\.\d{3}\]", line) for line in found)


def test_the_values_by_query_come_alone_with_their_texts(capsys: pytest.CaptureFixture[str]) -> None:
    given_ = ("measure", "ARaB@10", DEMO / "bm25.run", DEMO / "dense.run", "--docs", DEMO / "docs.tsv")
    given_ = (*given_, "--queries", DEMO / "queries.tsv", "--resamples", 0, "--by-query")
    head, first, *others = said(capsys, *given_).splitlines()
    assert head.split() == ["query_id", "query", "ARaB@10", "bm25", "ARaB@10", "dense"]
    assert re.fullmatch(r"q01 +how to become a surgeon +[+-]\d\.\d{3} +[+-]\d\.\d{3}", first.strip())
    assert len(others) == 59
    table = pl.read_csv(said(capsys, *given_, "--format", "csv").encode())
    assert table.columns == ["query_id", "query", "ARaB@10 bm25", "ARaB@10 dense"] and table.height == 60
    assert "cannot be combined" in said(capsys, *given_, "--explain", code=2)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("match",), "evenrank mitigate balance"),
        (("mitigate", "match"), "evenrank mitigate balance"),
        (("mesure",), "evenrank measure"),
        (("sweep",), "evenrank mitigate sweep"),
        (("mitigate", "audit"), "evenrank audit"),
        (("contrain",), "evenrank mitigate constrain"),
        (("vectors", "debais"), "evenrank vectors debias"),
        (("feedback",), "evenrank mitigate feedback"),
        (("judgments",), "evenrank mitigate balance"),
        (("negatives",), "evenrank mitigate negatives"),
        (("feedbak",), "evenrank mitigate feedback"),
        (("trian",), "evenrank train"),
        (("mitigate", "train"), "evenrank train"),
        (("vectors", "trian"), "evenrank train"),
    ],
)
def test_one_hint_says_which_command_was_meant(
    capsys: pytest.CaptureFixture[str], typed: tuple[str, ...], meant: str
) -> None:
    shown = said(capsys, *typed, code=2)
    assert shown == f"evenrank: there is no command 'evenrank {' '.join(typed)}'; did you mean '{meant}'?\n"


def test_a_command_that_nothing_is_near_to_gets_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("qqqqqq", "explain", "version"):
        assert said(capsys, typed, code=2).endswith("; evenrank --help lists all\n")


def test_help_lists_options_and_commands_in_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("audit", "measure"):
        shown = said(capsys, command, "--help")
        places = [shown.index(f"─ {group} ─") for group in ("Runs", "The collection", "Intervals", "Output")]
        assert places[0] < places[1] and all(len(line) <= 80 for line in shown.splitlines())
        assert places[1] < shown.index("│ --docs")
    shown = said(capsys, "--help")
    assert all(f"─ {group} ─" in shown for group in ("Measure", "Rank", "Label queries", "Watch"))
    assert "--install-completion" in shown and "verify" in shown


def test_the_shell_completes_commands_and_options() -> None:
    def completed(line: str) -> list[str]:
        asked = {
            "_EVENRANK_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        done = subprocess.run(
            COMMAND, capture_output=True, text=True, check=False, env={**os.environ, **asked}
        )
        return done.stdout.split()

    assert completed("evenrank mea") == ["measure"]
    assert completed("evenrank mitigate con") == ["constrain"]


def test_every_word_of_a_help_text_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Help is set as Markdown: no star, bracket or underscore of it may be taken for a mark."""
    from typer.main import get_command

    from evenrank.cli.app import app

    monkeypatch.setenv("COLUMNS", "200")
    root = get_command(app)
    found = {(name,): command for name, command in root.commands.items()}
    found |= {
        (*path, name): inner
        for path, group in dict(found).items()
        for name, inner in getattr(group, "commands", {}).items()
    }
    for path, command in found.items():
        shown = said(capsys, *path, "--help")
        flat = "".join(re.sub(r"[│╭╮╰╯─]", "", shown).split())
        for parameter in getattr(command, "params", []):
            text = getattr(parameter, "help", None) or ""
            for word in text.replace("`", "").split():
                assert word in flat, f"{path}: {word} of {text!r}"


def test_a_sweep_draws_what_it_found_whichever_way_is_fairer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given_ = ("mitigate", "sweep", "--run", DEMO / "dense.run", "--docs", DEMO / "docs.tsv")
    given_ = (*given_, "--qrels", DEMO / "qrels.txt", "--bias", "NFaiRR@10", "--method", "interpolate")
    said(capsys, *given_, "--strengths", "0,0.5", "--resamples", 20, "--chart", tmp_path / "s.svg")
    drawn = (tmp_path / "s.svg").read_text()
    assert "NFaiRR@10 (higher is fairer)" in drawn and drawn.count(">on the front<") == 1


@pytest.mark.slow
def test_an_audit_weighs_bias_against_usefulness(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given_ = ("audit", "ARaB@10", DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", "--tradeoff")
    assert "--qrels" in said(capsys, *given_, code=2)
    given_ = (*given_, "--qrels", DEMO / "qrels.txt", "--resamples", 20)
    assert "-o DIR" in said(capsys, *given_, code=2)
    genders = tmp_path / "genders.tsv"  # few neutral queries, so that this is quick
    rows = (DEMO / "genders.tsv").read_text().splitlines()
    genders.write_text("".join(f"{row}\n" for row in rows if not row.startswith(("q1", "q2", "q3"))))
    said(capsys, *given_, "--genders", genders, "-o", tmp_path / "audit")
    page = (tmp_path / "audit" / "report.html").read_text()
    assert 'id="tradeoff"' in page and "abs(ARaB@10) (lower is fairer)" in page


@pytest.mark.parametrize("option", ["--lexicon", "--dictionary"])
def test_documents_given_for_words_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    docs = DEMO / "docs.tsv"
    shown = said(
        capsys, "measure", "LIWC@5", "ARaB@5", DEMO / "bm25.run", "--docs", docs, option, docs, code=2
    )
    assert f"{docs}:1: the group is" in shown and "texts, not words" in shown and len(shown) < 300


def test_a_swap_is_written_as_its_name_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    docs = tmp_path / "docs.tsv"
    docs.write_text("1\tshe said\n2\tthe king\n")
    assert main(["mitigate", "swap", str(docs), "-o", str(tmp_path / "swapped.jsonl.gz")]) == 0
    assert pl.read_ndjson(gzip.decompress((tmp_path / "swapped.jsonl.gz").read_bytes())).rows() == [
        ("1", "he said"), ("2", "the queen"),
    ]  # fmt: skip
    shown = said(capsys, "mitigate", "swap", docs, "-o", tmp_path / "x.parquet", code=2)
    assert "end the name in .tsv or .jsonl" in shown and not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("option", "content", "problem"),
    [
        (
            "--queries",
            "other\tanother text\n",
            "has a text in the queries: it ranks 'q01', they have 'other'",
        ),
        ("--qrels", "other 0 d001 1\n", "is judged in the qrels: it ranks 'q01', they have 'other'"),
        ("--genders", "other\tfemale\n", "has a gender label: it ranks 'q01', they have 'other'"),
    ],
)
def test_what_belongs_to_another_collection_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, content: str, problem: str
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text(content)
    for command in (("measure", "ARaB@10"), ("audit",)):
        given_ = (*command, DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", option, other)
        shown = said(capsys, *given_, code=2)
        assert shown == f"evenrank: none of the 60 queries of bm25 {problem}; do they belong together?\n"


def test_judgments_of_other_documents_and_of_few_queries_are_pointed_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = (DEMO / "qrels.txt").read_text()
    qrels = tmp_path / "qrels.txt"
    for content, warning in (
        (rows.replace(" d", " x"), "warning: No run ranks any of the "),
        ("".join(f"{row}\n" for row in rows.splitlines() if row < "q02"), "warning: Only 1 of the 60 ranked"),
    ):
        qrels.write_text(content)
        given_ = ["measure", "nDCG@10", str(DEMO / "bm25.run"), "--qrels", str(qrels), "--resamples", "0"]
        assert main(given_) == 0
        assert warning in capsys.readouterr().err


def test_an_unreachable_dataset_gets_one_line() -> None:
    """What ir_datasets raises where there is no network, as it raises it."""
    from evenrank.data.read import irds_errors
    from evenrank.errors import InputError

    tried = (
        "[(RequestsDownload('http://one.example/x.tgz', tries=None), ConnectionError(MaxRetryError('…')))]"
    )
    with pytest.raises(InputError) as refused, irds_errors("irds:x"):
        raise RuntimeError("All download sources failed", tried)
    assert str(refused.value) == (
        "irds:x: cannot be downloaded: no answer from one.example; go online, or copy ~/.ir_datasets from a "
        "machine that has the dataset"
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("ARaB@10",), "ARaB@10 needs --tally, or --docs to make one from"),
        (("nDCG@10",), "nDCG@10 needs relevance judgments; give --qrels"),
        (
            ("ARaB@10", "--docs", DEMO / "docs.tsv", "--only", "female"),
            "--only female needs gender labels for the queries; give --genders",
        ),
        (
            ("ARaB@10", "--docs", DEMO / "docs.tsv", "--order", "rank", "--ties", "expected"),
            "the rank column leaves no ties; choose either --order rank or --ties expected",
        ),
    ],
)
def test_errors_name_what_has_to_be_typed(
    capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], shown: str
) -> None:
    assert said(capsys, "measure", *arguments, DEMO / "bm25.run", code=2) == f"evenrank: {shown}\n"


def test_what_is_said_in_words_of_the_command_line_is_said_somewhere() -> None:
    texts = "".join(
        re.sub(r'"\n\s+f?"', "", path.read_text())
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "cli"
    )
    for formed, said in (
        ("{options.only!r}", "'x'"),
        ("{name} cannot be {value!r}", "only cannot be 'x'"),
        ("{ways[-1]!r}", "'x'"),
    ):
        texts = texts.replace(formed, said)
    assert [said for said, _ in streams._TYPED if not re.search(said, texts)] == []


def test_a_bar_leaves_stdout_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library keeps of stdout while a bar is shown must answer when the process ends."""
    import io
    import sys

    from evenrank.cli.common import progress_bar

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    before = sys.stdout
    with progress_bar("counting", unit="words"):
        assert sys.stdout is before


def test_making_the_demo_says_how_to_call_evenrank() -> None:
    told = (SOURCE.parents[1] / "Makefile").read_text().partition("demo: .venv/user")[2].partition("\n\n")[0]
    assert "$(BIN)/evenrank --help" in told and ". $(BIN)/activate" in told
