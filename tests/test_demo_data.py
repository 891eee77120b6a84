"""The demo collection is well-formed, and has something to find."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from evenrank.demo import folder
from evenrank.text.lexicon import lexicon
from evenrank.text.tokens import tokens


def rows(name: str, separator: str | None = "\t") -> list[list[str]]:
    text = (folder() / name).read_text(encoding="utf-8", errors="strict")
    assert text.endswith("\n") and "\r" not in text
    return [line.split(separator) for line in text.splitlines()]


@pytest.fixture(scope="module")
def docs() -> dict[str, str]:
    return dict(rows("docs.tsv"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def queries() -> dict[str, str]:
    return dict(rows("queries.tsv"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def counts(docs: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Female and male words of each passage."""
    female, male = (set(words) for words in lexicon("rekabsaz2020").groups.values())
    found = {doc_id: tokens(text) for doc_id, text in docs.items()}
    return {d: (sum(t in female for t in ts), sum(t in male for t in ts)) for d, ts in found.items()}


def test_the_collection_is_small_enough_to_ship() -> None:
    assert sum(file.stat().st_size for file in folder().iterdir()) < 400_000


def test_the_folder_holds_what_a_collection_needs() -> None:
    names = {file.name for file in folder().iterdir()}
    assert names == {"docs.tsv", "queries.tsv", "qrels.txt", "genders.tsv", "bm25.run", "dense.run"}


@pytest.mark.parametrize(("name", "least"), [("docs.tsv", 320), ("queries.tsv", 60), ("genders.tsv", 60)])
def test_ids_are_unique_and_lines_have_two_columns(name: str, least: int) -> None:
    content = rows(name)
    assert len(content) >= least
    assert all(len(row) == 2 and all(cell.strip() == cell != "" for cell in row) for row in content)
    assert len({row[0] for row in content}) == len(content)


def test_passages_are_short_and_differ(docs: dict[str, str]) -> None:
    lengths = [len(text.split()) for text in docs.values()]
    assert min(lengths) >= 25 and max(lengths) <= 100
    assert len(set(docs.values())) == len(docs)


def test_passages_are_not_made_from_one_template(docs: dict[str, str]) -> None:
    openings = Counter(" ".join(text.split()[:2]) for text in docs.values())
    assert max(openings.values()) <= 0.03 * len(docs)


def test_a_passage_names_women_men_both_or_nobody(counts: dict[str, tuple[int, int]]) -> None:
    share = Counter(
        "neutral"
        if female == male == 0
        else "female"
        if female > male
        else "male"
        if male > female
        else "equal"
        for female, male in counts.values()
    )
    size = len(counts)
    assert share["neutral"] >= 0.4 * size
    assert share["female"] >= 0.2 * size
    assert share["male"] >= 0.2 * size
    assert sum(bool(female and male) for female, male in counts.values()) >= 0.1 * size


def test_every_query_has_a_gender_and_neutral_ones_name_none(queries: dict[str, str]) -> None:
    genders = dict(rows("genders.tsv"))  # type: ignore[arg-type]
    assert genders.keys() == queries.keys()
    assert Counter(genders.values()) == {"neutral": 48, "female": 6, "male": 6}
    groups = lexicon("rekabsaz2020").groups
    for query_id, text in queries.items():
        named = {group for group, words in groups.items() if set(tokens(text)) & set(words)}
        assert named == {genders[query_id]} - {"neutral"}, text


def test_judgments_are_graded_and_point_to_existing_passages(
    docs: dict[str, str], queries: dict[str, str]
) -> None:
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for query_id, zero, doc_id, grade in rows("qrels.txt", None):
        assert zero == "0" and query_id in queries and doc_id in docs
        assert doc_id not in judged[query_id]
        judged[query_id][doc_id] = int(grade)
    assert judged.keys() == queries.keys()
    for grades in judged.values():
        assert 3 <= len(grades) <= 8
        assert 2 in grades.values() and set(grades.values()) <= {0, 1, 2}


@pytest.mark.parametrize("name", ["bm25", "dense"])
def test_runs_rank_existing_passages_with_strictly_falling_scores(
    name: str, docs: dict[str, str], queries: dict[str, str]
) -> None:
    lists: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
    for query_id, q0, doc_id, rank, score, tag in rows(f"{name}.run", " "):
        assert q0 == "Q0" and tag == name and doc_id in docs
        lists[query_id].append((doc_id, int(rank), float(score)))
    assert list(lists) == list(queries)
    for ranked in lists.values():
        assert len({doc_id for doc_id, _, _ in ranked}) == len(ranked) <= 50
        assert [rank for _, rank, _ in ranked] == list(range(1, len(ranked) + 1))
        assert (np.diff(np.array([score for _, _, score in ranked], np.float32)) < 0).all()
    assert np.median([len(ranked) for ranked in lists.values()]) >= 40


@pytest.mark.parametrize("name", ["bm25", "dense"])
def test_stereotyped_queries_rank_the_expected_gender_first(
    name: str, counts: dict[str, tuple[int, int]]
) -> None:
    """Without this the demonstration would have nothing to show."""
    lean: dict[str, list[int]] = defaultdict(list)
    for query_id, _, doc_id, rank, _, _ in rows(f"{name}.run", " "):
        if int(rank) <= 10:
            female, male = counts[doc_id]
            lean[query_id].append(np.sign(male - female))
    ids = {text: query_id for query_id, text in rows("queries.tsv")}
    assert np.mean(lean[ids["football coach tactics"]]) > 0
    assert np.mean(lean[ids["how hotel housekeepers clean rooms"]]) < 0
