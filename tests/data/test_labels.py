"""Known genders of queries, in the forms people keep them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from evenrank.data.read import read_genders
from evenrank.errors import InputError

GENDERS = [("1", "female"), ("2", "male"), ("3", "neutral"), ("4", "other")]


@pytest.mark.parametrize(
    "content",
    [
        "1\tfemale\n2\tmale\n3\tneutral\n4\tother\n",
        "1\tF\r\n2\tM\r\n3\tN\r\n4\tboth\r\n",
        "1\tsome text\tf\n2\tmore\tm\n3\t\tNon-Gendered\n4\tx\tOther or multiple\n",
        "query_id\tlabel\n1\tf\n2\tm\n3\tn\n4\to\n",
        "query_id,gender\n1,Female\n2,Male\n3,neutral\n4,multiple\n",
        'text,label,qid\n"a, b",f,1\nc,m,2\nd,n,3\ne,other,4\n',
        "1,f\n2,m\n3,n\n4,o\n",
        "1\twomen\n2\tman\n3\tnone\n4\tother or multiple genders\n",
        "Query_ID\tsource\tlabel\n1\tx\tf\n2\tx\tm\n3\tx\tn\n4\tx\to\n",
    ],
)
def test_labels_are_made_uniform(content: str, tmp_path: Path) -> None:
    (tmp_path / "genders").write_bytes(content.encode())
    assert read_genders(tmp_path / "genders").rows() == GENDERS


def test_labels_in_memory_too() -> None:
    labels = dict(zip("1234", ("f", "MALE", "Neutral", "Both"), strict=True))
    frame = pd.DataFrame({"qid": [1, 2, 3, 4], "label": labels.values()})
    for source in (labels, list(labels.items()), frame):
        assert read_genders(source).rows() == GENDERS


def test_a_misspelt_label_is_refused_with_a_suggestion_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "genders.tsv").write_text("1\tfemale\n2\tfemal\n")
    labels = {"1": "female", "2": "femal"}
    frame = pl.DataFrame({"query_id": ["1", "2"], "gender": ["female", "femal"]})
    for source in (tmp_path / "genders.tsv", labels, list(labels.items()), frame, frame.to_pandas()):
        with pytest.raises(InputError, match=r"unknown label 'femal'; did you mean 'female'\?"):
            read_genders(source)
    with pytest.raises(InputError, match="unknown label 'blue'; use one of neutral, female, male, other"):
        read_genders({"1": "blue"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tf\n2\n", r":2: 1 column instead of 2"),
        ("1\ta\tf\tx\n", r":1: 4 columns instead of 2; expected query_id<TAB>label"),
        ("1\tf\n\n2\tm\n", r":2: blank line"),
        ("1\tf\n2\t\n", r":2: gender is empty"),
        ("1\tf\n1\tm\n", r":2: repeats line 1: query_id '1'"),
        ("query_id\ttext\n1\tm\n", r":1: no column gender"),
        ("query_id,label\n", r": the file has no rows"),
        ('query_id,label\n1,"m\n', r":2: not a line of CSV"),
        ("", r": the file is empty"),
        (
            "1\tf\n2\twhat is a man\n",
            r":2: unknown label 'what is a man'; use one of neutral, female, male, oth",
        ),
        ("query_id\tlabel\n1\tfemal\n", r":2: unknown label 'femal'"),
    ],
)
def test_a_bad_line_of_labels_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "genders"
    path.write_text(content)
    with pytest.raises(InputError, match=f"^{path}{message}"):
        read_genders(path)


def test_labels_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "genders.parquet"
    pl.DataFrame({"qid": [1, 2, 3, 4], "text": "x", "label": ["F", "men", "none", "both"]}).write_parquet(
        path
    )
    assert read_genders(path).rows() == GENDERS
    pl.DataFrame({"qid": [1, 2], "gender": ["f", "x y"]}).write_parquet(path)
    with pytest.raises(InputError, match=r"genders\.parquet: row 2: unknown label 'x y'"):
        read_genders(path)


def test_the_annotated_queries_are_read(shared: Path) -> None:
    counts = read_genders(shared / "data" / "query-gender" / "annotated.tsv")["gender"].value_counts()
    assert dict(counts.iter_rows()) == {"female": 594, "male": 962, "neutral": 1412, "other": 33}
