"""`evenrank classify`, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from experiments.query_classifier.training import read_labelled, save, train_classifier

from evenrank.cli import main
from evenrank.data.read import read_genders

pytestmark = pytest.mark.slow

_TRAINING = "".join(
    f"{label}{i}\t{text} {i}\t{label}\n"
    for label, text in (("female", "her mother"), ("male", "his father"), ("neutral", "a table"))
    for i in range(6)
)


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None)


def test_tsv_in_tsv_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.tsv").write_text("001\twho is marie curie\n2\thow tall is tom hanks\n")
    assert main(["classify", str(tmp_path / "q.tsv"), "-o", str(tmp_path / "out.tsv")]) == 0
    found = _read(tmp_path / "out.tsv")
    assert found.columns[:6] == ["query_id", "text", "label", "female", "male", "neutral"]
    assert found["query_id"].to_list() == ["001", "2"] and found["label"].to_list() == ["female", "male"]
    assert "2 queries: 1 " in capsys.readouterr().err


def test_jsonl_with_tabs_and_quotes_stays_one_line_each(tmp_path: Path) -> None:
    rows = [{"query_id": "a", "text": 'tab\there "quoted"\nsecond line'}, {"query_id": "b", "text": ""}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["classify", str(tmp_path / "q.jsonl"), "--model", "lexicon", "--explain"]
    assert main([*arguments, "-o", str(tmp_path / "out.tsv")]) == 0
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert [line.count("\t") for line in lines] == [7, 7, 7]
    assert lines[1].startswith('a\ttab here "quoted" second line\tneutral\t')
    assert lines[2].startswith("b\t\tneutral\t") and "\tempty\t" in lines[2]


def test_its_output_is_what_genders_takes(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("1\twho is marie curie\n")
    main(["classify", str(tmp_path / "q.tsv"), "-o", str(tmp_path / "out.tsv")])
    assert read_genders(tmp_path / "out.tsv").rows() == [("1", "female")]


def test_the_same_queries_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("1\twho is marie curie\n")
    for name in ("a", "b"):
        main(["classify", str(tmp_path / "q.tsv"), "--explain", "-o", str(tmp_path / name)])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [("no tab here\n", "q.tsv"), ("1\ta\n1\tb\n", "1"), ("", "empty"), ("1\t\xff\n", "UTF-8")],
)
def test_malformed_queries_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (tmp_path / "q.tsv").write_bytes(content.encode("latin-1"))
    assert main(["classify", str(tmp_path / "q.tsv")]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and "Traceback" not in error and "\n" not in error


def test_unknown_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.tsv").write_text("1\ta\n")
    assert main(["classify", str(tmp_path / "q.tsv"), "--model", "statik"]) == 2
    assert "choose static, lexicon or the folder of a saved model" in capsys.readouterr().err


def test_measure_can_predict_the_genders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs.tsv").write_text("d1\the he she\nd2\tshe\n")
    (tmp_path / "q.tsv").write_text("1\twho is marie curie\n2\tpython list sort\n")
    (tmp_path / "a.run").write_text("1 Q0 d1 1 2 a\n1 Q0 d2 2 1 a\n2 Q0 d2 1 2 a\n")
    files = ["--run", str(tmp_path / "a.run"), "--docs", str(tmp_path / "docs.tsv"), "--format", "json"]
    arguments = ["measure", "RaB@2", *files, "--genders", "predict"]
    assert main([*arguments, "--queries", str(tmp_path / "q.tsv")]) == 0
    out, said = capsys.readouterr()
    measured = json.loads(out)["runs"][0]["measures"][0]
    assert measured["queries"] == 1 and measured["left_out"] == {"labelled female": 1}
    assert (
        "(2 of 2 queries labelled by the classifier: 1 female, 1 neutral)" in json.loads(out)["warnings"][0]
    )
    assert not said
    assert main(arguments) == 2
    assert "give --queries" in capsys.readouterr().err


def test_queries_from_training_get_no_predicted_gender(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli.common import genders_or_predicted

    lines = (shared / "data" / "query-gender" / "annotated.tsv").read_text().splitlines()[:5]
    known = "".join("\t".join(line.split("\t")[:2]) + "\n" for line in lines)
    (tmp_path / "q.tsv").write_text(known + "new\ta query nobody has annotated\n")
    found = genders_or_predicted("predict", str(tmp_path / "q.tsv"))
    assert isinstance(found, pl.DataFrame) and found["query_id"].to_list() == ["new"]
    said = capsys.readouterr().err
    assert "1 of 6 queries labelled by the classifier: 1 neutral" in said
    assert "5 get no predicted gender, because it was trained on them" in said


def test_a_trained_model_labels_and_reports_its_own_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING + "x\tmen and women\tother or multiple\n")
    queries, left_out = read_labelled(tmp_path / "d.tsv")
    assert left_out == 1
    trained = str(tmp_path / "m")
    save(train_classifier(*queries), trained)
    (tmp_path / "q.tsv").write_text("1\tHer mother 3\n2\ther mother was here\n")
    assert main(["classify", str(tmp_path / "q.tsv"), "--model", trained, "-o", str(tmp_path / "out")]) == 0
    assert _read(tmp_path / "out")["note"].to_list() == ["training query", None]
    assert "1 query of the training data" in capsys.readouterr().err
    header = tmp_path / "m" / "model.json"
    assert "her mother" not in header.read_text()
    header.write_text(header.read_text().replace('"strength": ', '"strength": 1'))
    assert main(["classify", str(tmp_path / "q.tsv"), "--model", trained]) == 2
    assert "changed after the model was saved" in capsys.readouterr().err
