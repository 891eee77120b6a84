"""The same kernel and the same measures in the workers of Spark: the same numbers as on one machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank as er
from evenrank import P, demo
from evenrank.data.files import writing
from evenrank.errors import InputError

pytest.importorskip("pyspark", reason="needs pyspark, of the extra 'spark'")

pytestmark = pytest.mark.slow
if shutil.which("java") is None:
    pytest.skip("needs Java 17 or newer", allow_module_level=True)

DATA = demo.folder()
_RUN = "query_id string, doc_id string, score double"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from evenrank.spark import session

    made = session("local[2]")
    made.conf.set("spark.sql.shuffle.partitions", "2")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def docs(spark: Any) -> Any:
    frame = pl.read_csv(DATA / "docs.tsv", separator="\t", has_header=False, quote_char=None)
    rows = list(frame.rename(dict(zip(frame.columns, ["doc_id", "text"], strict=True))).iter_rows())
    return spark.createDataFrame(rows, "doc_id string, text string").repartition(3)


def test_a_tally_is_that_of_one_machine_row_for_row(docs: Any) -> None:
    made = pl.DataFrame(pl.from_arrow(er.tally(docs).toArrow())).sort("doc_id")
    assert made.equals(er.tally(DATA / "docs.tsv").frame.sort("doc_id"))


def test_measures_are_those_of_one_machine(spark: Any, docs: Any) -> None:
    from evenrank.spark import read_run

    measures = ["ARaB@10", "abs(RaB@5)", "NFaiRR@10", "rKL@20", "nDCG@10", "RR@10"]
    given: dict[str, Any] = {name: DATA / f"{name}.tsv" for name in ("queries", "genders")}
    given["qrels"] = DATA / "qrels.txt"
    there = er.measure(
        {name: read_run(spark, str(DATA / f"{name}.run")) for name in ("bm25", "dense")},
        measures,
        tally=er.tally(docs),
        **given,
    )
    here = er.measure(
        {name: DATA / f"{name}.run" for name in ("bm25", "dense")},
        measures,
        tally=er.tally(DATA / "docs.tsv"),
        **given,
    )
    for mine, theirs in zip(here, there, strict=True):
        assert theirs.query_ids.to_list() == mine.query_ids.to_list()
        assert theirs.values == pytest.approx(mine.values, rel=1e-12)
        assert (theirs.low, theirs.high) == pytest.approx((mine.low, mine.high), rel=1e-9)
        assert theirs.left_out == mine.left_out
        assert theirs.ties == mine.ties
        assert theirs.notes == mine.notes
    assert there.warnings == here.warnings
    assert there.provenance["tally"]["lexicon"] == here.provenance["tally"]["lexicon"]


def test_runs_are_cut_to_the_depth_that_is_looked_at(spark: Any) -> None:
    from evenrank.spark import _cut

    run = spark.createDataFrame([("q", f"d{i}", float(-(i // 2))) for i in range(40)], _RUN)
    assert _cut(run, 4, "score").count() == 6  # ranks 1 1 3 3 5 5: the tie at 5 is kept
    assert _cut(run, None, "score").count() == 40


def test_judged_only_needs_the_whole_run() -> None:
    from evenrank.measures.evaluate import depth_to_read

    assert depth_to_read([P @ 4], "error") == 4
    assert depth_to_read([P(judged_only=True) @ 4, P @ 4], "error") is None


@pytest.mark.parametrize(
    ("measures", "given", "said"),
    [
        ("GSR", {}, "GSR looks at more than the counts"),
        ("EEL", {}, "EEL looks at more than the counts"),
        ("rND(target='collection')@10", {}, "needs the whole collection"),
        ("ARaB@10", {"tally": "a path"}, "the tally has to be one too"),
    ],
)
def test_what_the_workers_cannot_know_is_refused(docs: Any, measures: str, given: Any, said: str) -> None:
    run = docs.selectExpr("'q' query_id", "doc_id", "1.0 score")
    with pytest.raises(InputError, match=said):
        er.measure(run, measures, **given)


def test_what_a_worker_refuses_is_told_in_one_line(spark: Any, docs: Any) -> None:
    strangers = spark.createDataFrame([("q", "nowhere", 1.0)], _RUN)
    with pytest.raises(
        InputError, match=r"^run: the collection lacks 1 of its documents in the top 10 \(nowhere\)"
    ) as told:
        er.measure(strangers, "ARaB@10", tally=er.tally(docs))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("form", ["tsv", "headed", "jsonl", "parquet"])
def test_files_become_the_file_of_one_machine(spark: Any, tmp_path: Path, form: str) -> None:
    from evenrank.spark import tally_files

    rows = [("1", "She met her brother."), ("02", 'He said "so".'), ("3", "Nobody, nothing")]
    path = tmp_path / f"docs.{form}"
    if form == "parquet":
        pl.DataFrame(rows, schema=["doc_id", "text"], orient="row").write_parquet(path)
    elif form == "jsonl":
        path.write_text("\n".join(json.dumps({"_id": i, "text": text}) for i, text in rows) + "\n")
    else:
        head = ["doc_id\ttext"] if form == "headed" else []
        path.write_text("\n".join([*head, *("\t".join(row) for row in rows)]) + "\n")
    made = tmp_path / "tally.parquet"
    assert tally_files(spark, [str(path)], str(made), "rekabsaz2020") == 3
    assert er.Tally.read(made).frame.equals(er.tally(path).frame)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, "tally.parquet"]


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet", "tsv.gz", "folder"])
def test_workers_read_parts_of_files_themselves(
    spark: Any, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.spark import tally_files

    monkeypatch.setattr("evenrank.spark.MIN_PART", 200)
    frame = er.load(DATA).docs.frame().head(50)
    frame = pl.concat([frame, pl.DataFrame({"doc_id": ["last"], "text": ["She said"]})])
    path = whole = tmp_path / f"docs.{form}"
    if form == "parquet":
        frame.write_parquet(path, row_group_size=7)
    elif form == "jsonl":
        frame.write_ndjson(path)
    else:
        lines = ["doc_id\ttext", *("\t".join(row) for row in frame.iter_rows())]
        whole = tmp_path / "docs.tsv.gz" if form == "tsv.gz" else tmp_path / "whole.tsv"
        with writing(whole) as file:
            file.write("\n".join([*lines, "", ""]).encode())
        if form == "tsv":
            path = whole
        elif form == "folder":
            path.mkdir()
            for name, some in (("0", lines[:20]), ("1", [lines[0], *lines[20:]]), ("_SUCCESS", [])):
                (path / name).write_text("\n".join(some) + "\n")
    made = tmp_path / "tally.parquet"
    tally_files(spark, [str(path)], str(made), "rekabsaz2020")
    assert er.Tally.read(made).frame.equals(er.tally(whole).frame)


def test_empty_files_of_a_folder_are_skipped(tmp_path: Path) -> None:
    from evenrank.spark import Tallying, _local_files

    tallying = Tallying.of("rekabsaz2020")
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, content in (("a", "doc_id\ttext\n1\tshe\n"), ("b", ""), ("c", "doc_id\ttext\n")):
        (folder / name).write_text(content)
    (folder / "_SUCCESS").touch()
    assert [Path(path).name for path, _ in _local_files([f"file://{folder}"], tallying)] == ["a"]
    (folder / "a").unlink()
    with pytest.raises(InputError, match=r"no file here has a document"):
        _local_files([str(folder)], tallying)
    with pytest.raises(InputError, match=r"b: the file is empty"):
        _local_files([str(folder / "b")], tallying)
    (folder / "d").write_text("doc_id\ttext\n2\the\n")
    (folder / "e").write_text("3\tit\n")
    with pytest.raises(InputError, match=r"e: of this file and d, only one begins with a header"):
        _local_files([str(folder / "d"), str(folder / "e")], tallying)


def test_at_an_address_parquet_is_read_and_written(spark: Any, tmp_path: Path) -> None:
    from evenrank.spark import tally_files

    plain = tmp_path / "docs.tsv"
    plain.write_text("1\tshe went\n")
    there = f"file://{tmp_path}/made"
    assert tally_files(spark, [f"file://{plain}"], there, "rekabsaz2020") == 1
    assert list(Path(tmp_path, "made").glob("part-*.parquet"))
    with pytest.raises(InputError, match="only Parquet is read at an address"):
        tally_files(spark, ["s3a://bucket/docs.tsv"], there, "rekabsaz2020")


def test_a_bad_line_in_a_later_part_is_named(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.spark import tally_files

    monkeypatch.setattr("evenrank.spark.MIN_PART", 64)
    path = tmp_path / "docs.tsv"
    path.write_text("".join(f"d{i}\tshe went to town\n" for i in range(20)) + "d20 no tab\n")
    with pytest.raises(InputError, match=r"docs\.tsv:21: 1 column instead of 2"):
        tally_files(spark, [str(path)], str(tmp_path / "t.parquet"), "rekabsaz2020")


def test_a_bad_line_is_one_line_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("a\tshe\nb he\n")
    command = [sys.executable, "-m", "evenrank", "tally", str(path), "-o", str(tmp_path / "t.parquet")]
    told = subprocess.run([*command, "--engine", "spark"], capture_output=True, text=True, check=False)
    said = [line for line in told.stderr.splitlines() if "ERROR" in line or "\tat " in line]
    assert (told.returncode, said) == (2, [])
    assert (
        told.stderr.splitlines()[-1] == f"evenrank: {path}:2: 1 column instead of 2; expected doc_id<TAB>text"
    )


def test_a_document_that_is_there_twice_is_refused(spark: Any, tmp_path: Path) -> None:
    from evenrank.spark import tally_files

    path = tmp_path / "docs.tsv"
    path.write_text("a\tshe\nb\the\na\tit\n")
    with pytest.raises(InputError, match="repeats row 1: doc_id 'a'"):
        tally_files(spark, [str(path)], str(tmp_path / "t.parquet"), "rekabsaz2020")
    path.write_text("a\tshe\nb\the\n")
    with pytest.raises(InputError, match="repeats row 1: doc_id 'a'"):
        tally_files(spark, [str(path), str(path)], str(tmp_path / "t.parquet"), "rekabsaz2020")
    assert not (tmp_path / "t.parquet").exists()


def test_the_command_line_gives_the_same_table(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    tally = tmp_path / "tally.parquet"
    assert main(["tally", str(DATA / "docs.tsv"), "-o", str(tally), "--engine", "spark"]) == 0
    shown = []
    there, counted = ["--engine", "spark"], ["--tally", str(tally)]
    for more in (counted, [*counted, *there], ["--docs", str(DATA / "docs.tsv"), *there]):
        capsys.readouterr()
        asked = ["measure", "ARaB@10", "RR@10", str(DATA / "bm25.run"), *more]
        assert main([*asked, "--qrels", str(DATA / "qrels.txt"), "--format", "csv"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert main(["tally", "there-is-none.tsv", "-o", str(tally), "--engine", "spark"]) == 2
    assert "no such file" in capsys.readouterr().err
