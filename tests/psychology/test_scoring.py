"""Scores of documents, balanced samples, and tables made elsewhere."""

import gzip
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import InputError, audit_judgments
from evenrank.psychology import balanced, categories, read_scores, scores
from evenrank.text.lexicon import dictionary
from evenrank.text.tokens import tokens

TEXTS = {"d1": "She was furious and afraid.", "d2": "", "d3": "The king paid for the funeral."}


def test_the_percent_is_the_share_of_tokens() -> None:
    found = scores(TEXTS)
    assert found["anger"].to_list() == pytest.approx([20.0, 0.0, 0.0])
    assert found["tokens"].to_list() == [5, 0, 6]


def test_a_token_counts_once_for_each_category_it_belongs_to() -> None:
    found = scores(TEXTS)
    # furious and afraid: both negative, one angry, one anxious
    assert found["negative"][0] == pytest.approx(100 * 2 / 5)
    assert found["male"][2] == found["power"][2] == pytest.approx(100 / 6)


def test_the_total_of_personal_concerns_is_the_sum_of_its_six() -> None:
    row = scores({"d": "He paid his boss at church before the funeral dinner in the kitchen."}).row(
        0, named=True
    )
    parts = ("work", "leisure", "home", "money", "religion", "death")
    assert row["concerns"] == pytest.approx(sum(row[part] for part in parts))
    assert row["concerns"] > 3 * 100 / row["tokens"]


def test_scores_agree_with_a_slow_count() -> None:
    """Against plain Python: every token against every entry."""
    texts = {"a": "The priest was angry; maybe his mother cried.", "b": "We won the award together, hooray!"}
    found = scores(texts)
    for name, words in dictionary().groups.items():
        for row, text in enumerate(texts.values()):
            hits = sum(any(_matches(token, word) for word in words) for token in tokens(text))
            assert found[name][row] == pytest.approx(100 * hits / len(tokens(text))), (name, text)


def _matches(token: str, word: str) -> bool:
    return token.startswith(word[:-1]) if word.endswith("*") else token == word


@given(
    st.lists(st.sampled_from(["female", "male", "neutral"]), min_size=1, max_size=60),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_a_balanced_sample_is_equal_seeded_and_blind_to_order(labels: list[str], seed: int, random) -> None:
    table = pl.DataFrame({"query_id": [str(i) for i in range(len(labels))], "gender": labels})
    drawn = balanced(table, seed=seed)
    sizes = Counter(drawn["gender"].to_list())
    assert set(sizes.values()) == {min(Counter(labels).values())}
    order = list(range(len(labels)))
    random.shuffle(order)
    assert set(balanced(table[order], seed=seed)["query_id"]) == set(drawn["query_id"])


def test_a_ready_table_keeps_ids_as_text_and_knows_liwc_names(tmp_path: Path) -> None:
    file = tmp_path / "liwc.csv"
    file.write_text("query_id,posemo,relig,WC\n001,1,2.5,40\n2,0,0,10\n")
    table = read_scores(file)
    assert table["query_id"].to_list() == ["001", "2"]
    assert categories(table) == ["positive", "religion", "WC"]


def test_a_table_for_each_gender_is_labelled_by_its_file_name(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("female", "male")]
    for number, file in enumerate(files):
        file.write_text(f"query_id,anger\n{number},2\n")
    assert read_scores(files)["gender"].to_list() == ["female", "male"]
    files[1].write_text("query_id,anger\n0,2\n")
    with pytest.raises(InputError, match="repeats row 1: query_id '0'"):
        audit_judgments(scores=files)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id_of_it,anger\n1,2\n", "t.csv: no column query_id"),
        ("query_id,word\n1,x\n", "needs a column of numbers"),
        ("query_id,anger\n1,\n2,3\n", "t.csv:2: anger is '?.*must be a finite number"),
        ("query_id,anger\n1,2\n2,n/a\n3,4\n", "t.csv:3: anger is 'n/a'; it must be a finite number"),
        ("query_id,anger\n1,2\n2,inf\n", "t.csv:3: anger is 'inf'; it must be a finite number"),
        ("query_id,anger\n1,2\n,3\n", "t.csv:3: query_id is empty"),
        ("query_id,anger\n1,2\n2,3\n1,4\n", "t.csv:4: repeats line 2"),
        ("query_id,anger,anger\n1,2,3\n", "t.csv:1: the header names the column anger twice"),
    ],
)
def test_a_ready_table_that_cannot_be_used_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=problem):
        read_scores(file)


def test_a_text_beside_the_categories_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(b"query_id,query,file,anger\n007,1984,a.txt,2\n2,12,b,3\n"))
    assert read_scores(file).columns == ["query_id", "anger"]
    assert read_scores(file)["query_id"].to_list() == ["007", "2"]
