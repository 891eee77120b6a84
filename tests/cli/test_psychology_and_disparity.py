"""`evenrank psychology` and `evenrank disparity` as a user types them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from evenrank import demo
from evenrank.cli import main
from evenrank.queries.classify import classify

DEMO = demo.folder()
QRELS, GENDERS, DOCS = (str(DEMO / name) for name in ("qrels.txt", "genders.tsv", "docs.tsv"))
RUNS = ["--run", str(DEMO / "bm25.run"), "--run", str(DEMO / "dense.run")]


def shown(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    out, err = capfd.readouterr()
    return err if code else out


def test_judgments_as_a_table_and_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("psychology", "--qrels", QRELS, "--genders", GENDERS, "--docs", DOCS)
    assert "p Holm" in shown(capfd, *given)
    found = json.loads(shown(capfd, *given, "--format", "json"))
    assert found["queries"] == {"female": 6, "male": 6, "neutral": 6}
    assert found["affiliation"] is True
    first = found["characteristics"][0]
    assert {"characteristic", "difference", "p", "p_holm", "g", "cliffs_delta"} <= set(first)


def test_runs_are_compared_with_the_baseline(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("psychology", *RUNS, "--genders", GENDERS, "--docs", DOCS, "--no-balance", "--at", "5")
    found = json.loads(shown(capfd, *given, "--format", "json"))
    assert found["baseline"] == "bm25"
    assert {row["run"] for row in found["reductions"]} == {"dense"}
    assert "reduction" in shown(capfd, *given, "--format", "csv").splitlines()[0]


def test_a_ready_table_needs_nothing_else(capfd: pytest.CaptureFixture[str], shared: Path) -> None:
    files = [str(shared / "data" / "liwc" / f"{name}.csv") for name in ("female", "male", "neutral")]
    options = [word for file in files for word in ("--scores", file)]
    rows = list(csv.DictReader(io.StringIO(shown(capfd, "psychology", *options, "--format", "csv"))))
    verdicts = {row["characteristic"]: row["verdict"] for row in rows}
    assert verdicts["anger"] == "higher for male"
    assert verdicts["reward"] == "higher for female (uncorrected only)"
    assert verdicts["achievement"] == "no difference"


def test_disparity_of_runs(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("disparity", *RUNS, "--qrels", QRELS, "--genders", GENDERS, "--measure", "nDCG@10")
    found = json.loads(shown(capfd, *given, "--format", "json"))
    assert [row["run"] for row in found["runs"]] == ["bm25", "dense"]
    assert found["changes"][0]["baseline"] == "bm25"
    assert "p Welch" in shown(capfd, *given)
    assert r"\toprule" in shown(capfd, *given, "--format", "latex")


def test_association_of_two_files(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, scores in (("female", "1 2 3"), ("male", "2 3 4")):
        rows = "".join(f"{i}\t{score}\n" for i, score in enumerate(scores.split()))
        (tmp_path / f"{name}.tsv").write_text("query_id\tscore\n" + rows)
    files = [str(tmp_path / f"{name}.tsv") for name in ("female", "male")]
    options = ["--association", files[0], "--association", files[1]]
    found = json.loads(shown(capfd, "disparity", *options, "--format", "json"))
    assert found["wasserstein"] == 1
    assert "Kolmogorov" in shown(capfd, "disparity", *options)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("disparity", "--qrels", QRELS, "--genders", GENDERS), "needs --run"),
        (("disparity", *RUNS, "--qrels", QRELS, "--genders", GENDERS, "--measure", "RaB@3"), "measures bias"),
        (("psychology", "--genders", GENDERS, "--docs", DOCS), "give --qrels"),
        (("psychology", *RUNS, "--docs", DOCS), "give --genders"),
        (("psychology", "--scores", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_gets_one_line(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    line = shown(capfd, *arguments, code=2).strip()
    assert problem in line
    assert len(line.splitlines()) == 1


def test_fewer_than_five_queries_a_side_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [line.split() for line in Path(GENDERS).read_text().splitlines()]
    women = [row for row in rows if row[1] == "female"]
    few = [*women[:4], *(row for row in rows if row[1] != "female")]
    (tmp_path / "few.tsv").write_text("".join("\t".join(row) + "\n" for row in few))
    given = ("--genders", str(tmp_path / "few.tsv"), "--qrels", QRELS)
    for command in (("psychology", *given, "--docs", DOCS, "--no-balance"), ("disparity", *RUNS, *given)):
        assert main(list(command)) == 2
        err = capfd.readouterr().err
        assert "only 4 female queries can be compared; at least 5 of each gender are needed" in err


def test_what_is_printed_has_one_sign_and_json_says_which_it_keeps(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("psychology", "--qrels", QRELS, "--genders", GENDERS, "--docs", DOCS)
    kept = json.loads(shown(capfd, *given, "--format", "json"))
    table = shown(capfd, *given)
    male = next(one for one in kept["characteristics"] if one["characteristic"] == "male")
    assert kept["positive"] == "female" and male["difference"] < 0
    assert f"{-male['difference']:+.3f}  [{-male['high']:+.3f}, {-male['low']:+.3f}]" in table
    disparity = json.loads(
        shown(capfd, "disparity", *RUNS, "--qrels", QRELS, "--genders", GENDERS, "--format", "json")
    )
    assert disparity["positive"] == "male"


@pytest.mark.parametrize(
    "given",
    [
        ("psychology", "--qrels", QRELS, "--docs", DOCS, "--no-balance"),
        ("psychology", *RUNS, "--docs", DOCS, "--no-balance", "--at", "5"),
        ("disparity", *RUNS, "--qrels", QRELS),
    ],
)
def test_predicted_genders_are_counted_aloud(
    capfd: pytest.CaptureFixture[str], given: tuple[str, ...]
) -> None:
    asked = (*given, "--genders", "predict")
    assert "give --queries" in shown(capfd, *asked, code=2)
    assert main([*asked, "--queries", str(DEMO / "queries.tsv"), "--format", "json"]) == 0
    out, err = capfd.readouterr()
    assert " queries labelled by the classifier: " in err and " neutral" in err
    labels = classify(DEMO / "queries.tsv")["label"].to_list()
    found = json.loads(out)
    counts = found["queries"] if "queries" in found else found["runs"][0]["queries"]
    assert counts["female"] == labels.count("female") and counts["male"] == labels.count("male")
