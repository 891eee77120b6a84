"""The open dictionary: what it covers, what it must not match, and the names of categories."""

import tomllib
from pathlib import Path

import polars as pl
import pytest

import evenrank as er
from evenrank import InputError
from evenrank.text.lexicon import (
    CHARACTERISTICS,
    DIMENSIONS,
    TREE,
    dictionary,
    female_and_male,
    renamed,
)
from evenrank.text.matcher import Matcher

TOTALS = {"affect", "cognition", "drives", "concerns", "social"}
LEAVES = [name for name in CHARACTERISTICS if name not in TOTALS]
SENTENCES = tomllib.loads((Path(__file__).parents[1] / "psychology" / "sentences.toml").read_text())

# Words that begin like an entry, or look like one, and do not belong.
STRANGERS = {
    "death": "diet diesel dice buryat deadline pyrenees",
    "family": "motherboard fatherland unclear sonar",
    "female": "sheet herd herring ladder queensland girth mandate",
    "male": "hest mandate manual manage menu kingdom princeton sonic hehe mention",
    "anger": "yellow yellowstone hatch feudal rager mathematics",
    "positive": "admiral amazon adorn confidential joystick lovecraft",
    "sadness": "saddle cryptic tearoom weekly",
    "religion": "rabbit churchill sacramento godzilla single",
    "money": "payload bankside wager costume",
    "leisure": "operate operation orchestrate gamete",
    "work": "jobbik worksop auditorium diplomat staffordshire",
    "anxiety": "fearnley scarecrow dreadlocks",
}


def test_the_open_dictionary_covers_the_tree_with_forty_entries_a_leaf() -> None:
    groups = dictionary().groups
    assert set(groups) == set(CHARACTERISTICS) - {"concerns"}  # a sum, not a category
    assert {name: len(groups[name]) for name in LEAVES if len(groups[name]) < 40} == {}


def test_the_thesis_compares_documents_in_22_dimensions() -> None:
    assert len(DIMENSIONS) == 22
    assert not set(DIMENSIONS) & (TOTALS | set(TREE["social"]))


@pytest.mark.parametrize("total", ["affect", "cognition", "drives", "social"])
def test_a_total_holds_every_entry_of_its_parts_and_no_other(total: str) -> None:
    groups = dictionary().groups
    assert set(groups[total]) == {word for part in TREE[total] for word in groups[part]}


def test_anxiety_anger_and_sadness_are_negative() -> None:
    groups = dictionary().groups
    for part in ("anxiety", "anger", "sadness"):
        assert set(groups[part]) <= set(groups["negative"])


@pytest.mark.parametrize("leaf", LEAVES)
def test_twenty_sentences_hit_the_leaf_they_are_about(leaf: str) -> None:
    assert len(SENTENCES[leaf]) == 20
    matcher = Matcher(dictionary())
    hits = matcher.count(SENTENCES[leaf]).counts[:, matcher.groups.index(leaf)]
    assert [text for text, count in zip(SENTENCES[leaf], hits, strict=True) if not count] == []


@pytest.mark.parametrize("leaf", STRANGERS)
def test_words_that_only_begin_like_an_entry_are_not_matched(leaf: str) -> None:
    words = STRANGERS[leaf].split()
    matcher = Matcher(dictionary())
    hits = matcher.count(words).counts[:, matcher.groups.index(leaf)]
    assert [word for word, count in zip(words, hits, strict=True) if count] == []


def test_no_word_is_both_female_and_male() -> None:
    groups = dictionary().groups
    assert set(groups["female"]) & set(groups["male"]) == set()


def test_the_majority_of_gender_words_agrees_with_human_labels(shared: Path) -> None:
    path = shared / "data" / "grepbiasir" / "docs.jsonl"
    human = pl.read_ndjson(path).select("doc_id", "gender").filter(pl.col("gender").is_in(["F", "M"]))
    counts = er.tally(path, female_and_male()).frame.join(human, on="doc_id")
    counts = counts.filter(pl.col("female") + pl.col("male") > 0)
    lean = pl.col("female") - pl.col("male")
    right = counts.filter(pl.when(pl.col("gender") == "F").then(lean > 0).otherwise(lean < 0))
    assert len(right) >= 0.9 * len(counts)  # a tie counts as wrong


def test_liwc_names_are_known_by_ours() -> None:
    assert list(renamed(("posemo", "Anx", "relig", "friend", "cogproc", "ipron")).values()) == [
        "positive", "anxiety", "religion", "friends", "cognition", "ipron",
    ]  # fmt: skip
    assert renamed(["posemo", "emo_pos"]) == {"posemo": "positive", "emo_pos": "emo_pos"}


def test_a_dic_file_of_ones_own_replaces_the_open_dictionary(tmp_path: Path) -> None:
    own = tmp_path / "own.dic"
    own.write_text("%\n1\tFemale\n2\tMale\n3\tposemo (Positive Emotion)\n%\nladies\t1\ngent*\t2\t3\n")
    found = dictionary(own)
    assert dict(found.groups) == {"female": ("ladies",), "male": ("gent*",), "positive": ("gent*",)}
    assert list(female_and_male(own).groups) == ["female", "male"]


def test_a_dictionary_without_gender_categories_is_refused_where_they_are_needed() -> None:
    with pytest.raises(InputError, match="has no category female"):
        female_and_male({"joy": ["glad"]})
