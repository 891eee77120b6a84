"""The commands as a user types them, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank import demo
from evenrank.cli import main

DEMO = demo.folder()


COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]


def evenrank(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    return done


def refused(*arguments: object) -> str:
    """The one line that bad input gets."""
    lines = evenrank(*arguments, code=2).stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def measured(*arguments: object) -> list[dict]:
    return json.loads(evenrank("measure", *arguments, "--format", "json").stdout)["runs"]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from evenrank.cli import main; code = main(['--help']); "
        "heavy = {'numba', 'polars', 'pyarrow', 'scipy', 'numpy', 'torch', 'gensim', 'altair', 'pandas'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_loads_no_other_and_no_audit() -> None:
    files = ("docs.tsv", "queries.tsv", "qrels.txt", "bm25.run")
    docs, queries, qrels, run = (str(DEMO / name) for name in files)
    words = ["measure", "ARaB@10", "--docs", docs, "--queries", queries, "--qrels", qrels, "--run", run]
    code = (
        f"import sys; from evenrank.cli import main; code = main({words}); "
        "print(code, *sorted(name for name in sys.modules if name.startswith('evenrank.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    code, *loaded = done.stderr.splitlines()[-1].split()
    of_commands = {name for name in loaded if name.startswith("evenrank.cli.")}
    shared = {f"evenrank.cli.{name}" for name in ("app", "common", "options", "rendering", "streams")}
    assert code == "0" and of_commands == {"evenrank.cli.measure"} | shared
    assert not any(name.startswith(("evenrank.auditing", "evenrank.mitigate")) for name in loaded)


def test_every_command_has_a_help_text() -> None:
    commands = "demo measure represent psychology disparity tally lexicons pool vote vectors"
    for command in commands.split():
        assert "Usage" in evenrank(command, "--help").stdout
    assert evenrank("--version").stdout.startswith("evenrank ")


def test_measure_prints_the_documented_json() -> None:
    runs = measured(
        "ARaB@10",
        "nDCG@10",
        DEMO / "bm25.run",
        "--run",
        f"other={DEMO / 'dense.run'}",
        "--docs",
        DEMO / "docs.tsv",
        "--qrels",
        DEMO / "qrels.txt",
        "--per-query",
    )
    assert [run["run"] for run in runs] == ["bm25", "other"]
    bias, effectiveness = runs[0]["measures"]
    assert bias["measure"] == "ARaB@10"
    assert set(bias) >= {"value", "low", "high", "queries", "left_out", "parts", "abs", "per_query"}
    assert bias["value"] == pytest.approx(bias["parts"]["male"] - bias["parts"]["female"])
    assert bias["low"] < bias["value"] < bias["high"]
    assert bias["queries"] == len(bias["per_query"]) == 60
    assert sum(bias["per_query"].values()) / 60 == pytest.approx(bias["value"])
    assert effectiveness["measure"] == "nDCG@10"


def test_a_tally_gives_the_values_that_the_documents_give(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    evenrank("tally", DEMO / "docs.tsv", "-o", path)
    common = ("ARaB@10", "NFaiRR@10", DEMO / "bm25.run")
    assert measured(*common, "--tally", path) == measured(*common, "--docs", DEMO / "docs.tsv")


def test_labels_restrict_bias_to_neutral_queries_and_show_the_others_apart() -> None:
    arguments = ("ARaB@10", DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", "--genders", DEMO / "genders.tsv")
    (neutral,) = measured(*arguments)[0]["measures"]
    assert (neutral["only"], neutral["queries"]) == ("neutral", 48)
    assert neutral["subsets"]["female"]["queries"] == 6
    (female,) = measured(*arguments, "--only", "female")[0]["measures"]
    assert female["value"] == pytest.approx(neutral["subsets"]["female"]["value"])


def test_a_failed_condition_is_exit_code_1_and_says_so() -> None:
    arguments = ("measure", "ARaB@10", DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", "--fail-if")
    assert "failed" in evenrank(*arguments, "abs(ARaB@10)>0.0001", code=1).stderr
    evenrank(*arguments, "abs(ARaB@10)>100")


@pytest.mark.parametrize("form", ["table", "csv", "latex", "json"])
def test_results_go_to_stdout_or_to_a_file(form: str, tmp_path: Path) -> None:
    arguments = (
        "measure",
        "ARaB@10",
        DEMO / "bm25.run",
        "--docs",
        DEMO / "docs.tsv",
        "--format",
        form,
    )
    shown = evenrank(*arguments).stdout
    evenrank(*arguments, "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == shown
    assert "bm25" in shown


def test_bad_input_gets_one_line_that_names_the_remedy(tmp_path: Path) -> None:
    docs, run = ("--docs", DEMO / "docs.tsv"), ("--run", DEMO / "bm25.run")
    assert "did you mean 'ARaB'" in refused("measure", "ARAb@10", *run, *docs)
    assert "cut-off" in refused("measure", "ARaB", *run, *docs)
    assert "no such file" in refused("measure", "ARaB@10", "--run", tmp_path / "none.run", *docs)
    assert "--docs" in refused("measure", "ARaB@10", *run) or "docs" in refused("measure", "ARaB@10", *run)
    assert "two runs" in refused("measure", "ARaB@10", *run, *run, *docs)
    assert "qrels" in refused("measure", "nDCG@10", *run, *docs)
    assert "lexicon" in refused("measure", "ARaB@10", *run, *docs, "--lexicon", "rekabsatz")
    broken = tmp_path / "broken.run"
    broken.write_text("q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 many x\n")
    assert "broken.run:2:" in refused("measure", "ARaB@10", "--run", broken, *docs)
    strange = tmp_path / "strange.run"
    strange.write_text("q1 Q0 d001 1 3.5 x\nq1 Q0 nowhere 2 2.5 x\n")
    assert "nowhere" in refused("measure", "ARaB@10", "--run", strange, *docs)
    evenrank("measure", "ARaB@10", "--run", strange, *docs, "--missing", "zero")
    assert "no such file" in refused("tally", tmp_path / "none.tsv", "-o", tmp_path / "t.parquet")
    assert not list(tmp_path.glob("*.parquet"))


def test_a_tally_made_with_another_lexicon_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    evenrank("tally", DEMO / "docs.tsv", "-o", path, "--lexicon", "fabris2020")
    arguments = ("measure", "ARaB@10", "--run", DEMO / "bm25.run", "--tally", path)
    assert "fabris2020" in refused(*arguments, "--lexicon", "rekabsaz2020")
    assert "words" in refused(*arguments, "--tokenizer", "whitespace")
    evenrank(*arguments, "--lexicon", "fabris2020")


def test_lexicons_are_listed_and_shown() -> None:
    listed = evenrank("lexicons").stdout
    for name in ("rekabsaz2020", "fabris2020", "spanish", "french", "german", "italian"):
        assert name in listed
    assert "stepdaughter" in evenrank("lexicons", "rekabsaz2020").stdout
    assert json.loads(evenrank("lexicons", "rekabsaz2020", "--format", "json").stdout)["groups"]["male"]


def test_debug_shows_the_traceback_and_keeps_the_exit_code() -> None:
    command = [*COMMAND, "measure", "Nothing@3", "--run", str(DEMO / "bm25.run"), "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" in done.stderr
    assert done.returncode == 2


def test_options_that_a_form_has_no_place_for_are_refused() -> None:
    arguments = ("measure", "ARaB@10", DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", "--format")
    assert "--explain" in refused(*arguments, "csv", "--explain")
    assert "--explain" in refused(*arguments, "latex", "--explain")
    assert "--per-query" in refused(*arguments, "latex", "--per-query")
    evenrank("lexicons", "--format", "csv", code=2)


def test_csv_says_which_queries_were_measured() -> None:
    arguments = ("measure", "ARaB@10", DEMO / "bm25.run", "--docs", DEMO / "docs.tsv", "--format", "csv")
    assert "only" not in evenrank(*arguments).stdout
    heading, row = evenrank(*arguments, "--genders", DEMO / "genders.tsv").stdout.splitlines()
    assert dict(zip(heading.split(","), row.split(","), strict=True))["only"] == "neutral"


def test_a_mistyped_run_is_a_file_that_is_missing_and_not_a_measure() -> None:
    docs = ("--docs", DEMO / "docs.tsv")
    assert "runs/bm25.rn: no such file" in refused("measure", "ARaB@10", "runs/bm25.rn", *docs)
    assert "bm26.run: no such file" in refused("measure", "ARaB@10", DEMO / "bm25.run", "bm26.run", *docs)
    assert "folder" in refused("measure", "ARaB@10", DEMO, *docs)
    (run,) = measured("ARaB@10", f"mine={DEMO / 'bm25.run'}", *docs)
    assert run["run"] == "mine"
    assert "measure" in refused("measure", "A" * 5000, DEMO / "bm25.run", *docs)


def test_the_background_may_be_one_of_the_runs_by_name() -> None:
    common = ("NFaiRR@10", DEMO / "bm25.run", DEMO / "dense.run", "--docs", DEMO / "docs.tsv", "--background")
    assert measured(*common, "dense") == measured(*common, DEMO / "dense.run")


def test_pool_reads_documents_and_runs_as_measure_does(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"key": "d1", "body": "he said"}\n{"key": "d2", "body": "she said"}\n')
    run = tmp_path / "x.run"
    run.write_text("q1 Q0 d1 1 1.0 x\nq1 Q0 d2 2 2.0 x\nq1 Q0 nowhere 3 0.5 x\n")
    queries = tmp_path / "queries.tsv"
    queries.write_text("q1\twho said it\n")
    common = ("pool", run, "--queries", queries, "--docs", docs, "--fields", "body", "--id-field", "key")
    common = (*common, "--missing", "zero", "--measure", "RaB@1", "--reveal")
    assert "female" in evenrank(*common).stdout.splitlines()[1]
    leaning = evenrank(*common, "--order", "rank").stdout.splitlines()[1].split("\t")
    assert "male" in leaning


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--ranker", "drm"], "train: --ranker cannot be 'drm'; did you mean 'drmm'?"),
        (["measure", "ARaB@10", "--format", "jsn"], "--format cannot be 'jsn'; did you mean 'json'?"),
        (["vectors", "debias", "v", "-o", "x", "--method", "z"], "cannot be 'z'; one of hard, strong, leace"),
        (["measur"], "there is no command 'evenrank measur'; did you mean 'evenrank measure'?"),
        (["measure", "--fromat"], "measure: no such option: --fromat; did you mean --format?"),
        (["audit", "--seed", "x"], "--seed"),
        (["search"], "search: missing option '--queries'; see evenrank search -h"),
    ],
)
def test_wrong_usage_is_one_line_with_the_nearest_choice(
    capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == "" and said in err
    assert err.startswith("evenrank: ") and err.count("\n") == 1
