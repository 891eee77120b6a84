"""Semantic rankers: documents as means of word vectors."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import demo
from evenrank.data.docs import load
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import RUN_SCHEMA
from evenrank.errors import InputError
from evenrank.rankers import make
from evenrank.rankers.index import Index
from evenrank.rankers.indexing import index as build
from evenrank.rankers.word_vectors import Surface, WordVectorRanker, compose
from evenrank.text.tokens import tokens
from evenrank.vectors import DEFINITION, Vectors, find_direction

VECTORS = {"nurse": [1.0, 0.0], "doctor": [0.0, 1.0], "ward": [3.0, 4.0], "zebra": [-1.0, 0.0]}


def built(tmp_path: Path, docs: dict[str, str]) -> Index:
    return build(docs, tmp_path / "idx")


def ranked(
    index: Index, query: str, *, name: str = "w2v_add", depth: int = 1000, **more: object
) -> dict[str, float]:
    more.setdefault("vectors", VECTORS)
    run = make(name, index=index, **more).rank(read_queries({"q": query}), depth=depth)
    assert run.schema == RUN_SCHEMA and run["rank"].to_list() == list(range(1, len(run) + 1))
    return dict(run.select("doc_id", "score").iter_rows())


def test_add_is_the_cosine_of_mean_unit_vectors(tmp_path: Path) -> None:
    index = built(tmp_path, {"d1": "The nurse, the ward!", "d2": "Nurses: doctor doctor ward", "d3": "zebra"})
    found = ranked(index, "nurse")
    # d1: (1, 0) + (0.6, 0.8) = (1.6, 0.8); d2: 2 · (0, 1) + (0.6, 0.8) = (0.6, 2.8), "nurses" has no vector
    assert found == pytest.approx(
        {"d1": 1.6 / math.hypot(1.6, 0.8), "d2": 0.6 / math.hypot(0.6, 2.8), "d3": -1.0}, abs=1e-7
    )
    assert list(found) == ["d1", "d2", "d3"]


def test_si_weights_words_by_their_self_information(tmp_path: Path) -> None:
    docs = {"d1": "nurse nurse ward other", "d2": "doctor word word word"}
    found = ranked(built(tmp_path, docs), "nurse zebra", name="w2v_si")
    # eight words in all: nurse 2/8 → 2 bits, ward and doctor 1/8 → 3 bits, zebra unseen → as if once, 3 bits
    d1 = np.array([2 * 2 + 3 * 0.6, 3 * 0.8])
    query = np.array([2.0 - 3.0, 0.0])
    assert found["d1"] == pytest.approx(d1 @ query / np.linalg.norm(d1) / np.linalg.norm(query), abs=1e-7)
    assert found["d2"] == pytest.approx(0.0, abs=1e-7)


def test_texts_without_a_known_word_are_not_ranked_and_find_nothing(tmp_path: Path) -> None:
    index = built(tmp_path, {"d1": "nurse", "d2": "unheard of", "d3": ""})
    assert list(ranked(index, "doctor nurse")) == ["d1"]
    assert ranked(index, "unheard") == {}


def test_equal_documents_stand_in_descending_order_of_their_ids(tmp_path: Path) -> None:
    docs = dict.fromkeys(("b", "é", "a", "z", "10", "9"), "a nurse of the ward")
    index = built(tmp_path, docs)
    expected = sorted(docs, key=str.encode, reverse=True)
    assert list(ranked(index, "ward nurse")) == expected
    assert list(ranked(index, "ward nurse", depth=3)) == expected[:3]


def test_stop_words_count_only_if_asked_for_and_gendered_ones_always(tmp_path: Path) -> None:
    vectors = {"the": [1.0, 0.0], "she": [1.0, 0.0], "nurse": [0.0, 1.0]}
    index = built(tmp_path, {"d1": "the nurse", "d2": "she nurse"})
    half = math.sqrt(0.5)
    assert ranked(index, "nurse", vectors=vectors) == pytest.approx({"d1": 1.0, "d2": half})
    with_all = ranked(index, "nurse", vectors=vectors, stop_words="none")
    assert with_all == pytest.approx({"d1": half, "d2": half}) and list(with_all) == ["d2", "d1"]


words = st.lists(st.sampled_from(list(VECTORS)), min_size=1, max_size=8)


@given(words, st.randoms(use_true_random=False))
def test_word_order_is_irrelevant_to_the_last_bit(text: list[str], random: object) -> None:
    surface, vectors = Surface(list(VECTORS)), Vectors(list(VECTORS), list(VECTORS.values()))
    shuffled = list(text)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    bags = surface.find([" ".join(text), " ".join(shuffled)])
    out = np.empty((2, 2), np.float32)
    compose(bags.bounds, bags.words, bags.times, np.array([0.3, 1.7, 2.0, 0.9]), vectors.matrix, out)
    assert np.array_equal(out[0], out[1])


@given(st.floats(0.01, 1000))
def test_scaling_word_vectors_changes_nothing(factor: float) -> None:
    scaled = Vectors(list(VECTORS), [np.multiply(row, factor) for row in VECTORS.values()])
    assert np.allclose(scaled.matrix, Vectors(list(VECTORS), list(VECTORS.values())).matrix, atol=1e-6)


@given(st.text() | st.text(st.sampled_from("abZ09' -_.,\n\té’ß")) | st.text(st.characters(max_codepoint=127)))
def test_words_are_those_of_the_tokenizer(text: str) -> None:
    found = tokens(text)
    vocabulary = sorted(set(found) | {"a", "zz"})
    bags = Surface(vocabulary).find(["a", text, "zz zz"])
    assert bags.tokens.tolist() == [1, len(found), 2]
    first, last = bags.bounds[1:3]
    counted = {
        vocabulary[word]: times
        for word, times in zip(bags.words[first:last].tolist(), bags.times[first:last].tolist(), strict=True)
    }
    assert counted == {word: found.count(word) for word in found}


def _planted() -> Vectors:
    """Pairs of people that differ along the first dimension alone, and ordinary words that lean."""
    rng = np.random.default_rng(3)
    pairs = [(a.lower(), b.lower()) for a, b in DEFINITION]
    shared = np.concatenate([np.zeros((len(pairs), 1)), rng.normal(size=(len(pairs), 7))], axis=1)
    lean = np.eye(8)[0]
    ordinary = [f"w{letter}" for letter in "abcdefghijklmnopqrst"]
    matrix = np.concatenate([shared + lean, shared - lean, rng.normal(size=(20, 8))])
    return Vectors([*(a for a, _ in pairs), *(b for _, b in pairs), *ordinary], matrix)


def test_strong_debiasing_makes_she_and_he_documents_equal(tmp_path: Path) -> None:
    vectors = _planted()
    index = built(tmp_path, {"f": "she wa wb", "m": "he wa wb", "n": "wc wd"})
    plain = ranked(index, "wa we her", vectors=vectors)
    strong = ranked(index, "wa we her", vectors=vectors, debias="strong")
    assert plain["f"] > plain["m"]
    assert strong["f"] == pytest.approx(strong["m"], abs=1e-6)


def test_hard_debiasing_makes_them_equal_for_neutral_queries(tmp_path: Path) -> None:
    vectors = _planted()
    index = built(tmp_path, {"f": "she wa wb", "m": "he wa wb", "n": "wc wd"})
    neutral = ranked(index, "wa we", vectors=vectors, debias="hard")
    gendered = ranked(index, "wa we her", vectors=vectors, debias="hard")
    assert neutral["f"] == pytest.approx(neutral["m"], abs=1e-6)
    assert gendered["f"] > gendered["m"] + 0.01
    ranker = make("w2v_add", index=index, vectors=vectors, debias="hard")
    assert isinstance(ranker, WordVectorRanker) and ranker.name == "w2v_add-hard"
    direction = find_direction(vectors)
    assert abs(direction.of(ranker.vectors.matrix[[ranker.vectors.row("wa") or 0]])[0]) < 1e-6


def test_vectors_of_another_collection_are_not_used(tmp_path: Path) -> None:
    index = built(tmp_path, {"d1": "nurse", "d2": "doctor"})
    assert list(ranked(index, "nurse")) == ["d1", "d2"]
    other = build({"d1": "doctor", "d2": "nurse"}, tmp_path / "idx", overwrite=True)
    assert list(ranked(other, "nurse")) == ["d2", "d1"]


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path, {"d1": "nurse"})
    with pytest.raises(InputError, match="needs the setting vectors"):
        make("w2v_add", index=index)
    with pytest.raises(InputError, match="choose one of: regular, hard, strong, leace"):
        make("w2v_add", index=index, vectors=VECTORS, debias="soft")
    with pytest.raises(InputError, match="no such file"):
        make("w2v_si", index=index, vectors=str(tmp_path / "none.bin"))


def test_the_demo_collection_is_ranked_with_vectors_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    from evenrank.vectors import train

    docs, queries, _ = load(demo.folder())
    index = build(docs, tmp_path / "idx")
    ranker = make("w2v_si", index=index, vectors=train(docs, dimension=20, min_count=1))
    run = ranker.rank(queries, depth=10)
    assert read_run(run) is run or read_run(run).equals(run)
    assert run["query_id"].n_unique() == len(queries)
    assert ranker.describe()["vectors"]["trained"]["method"] == "word2vec"


@pytest.mark.slow
def test_on_time_it_agrees_with_a_plain_computation(shared: Path, tmp_path: Path) -> None:
    from evenrank.vectors import load as load_vectors

    vectors = load_vectors(shared / "data" / "vectors" / "glove-100d.bin.gz")
    docs, queries, _ = load(shared / "data" / "time")
    frame, some = docs.frame(), queries.head(5)
    index = build(docs, tmp_path / "idx")
    run = make("w2v_si", index=index, vectors=vectors, stop_words="none").rank(some, depth=50)
    split = [tokens(text) for text in frame["text"]]
    count = Counter(word for each in split for word in each)

    def vector(text: list[str]) -> np.ndarray:
        known = [word for word in text if vectors.exact_row(word) is not None]
        weights = [math.log2(count.total() / max(count[word], 1)) for word in known]
        return sum(
            (w * vectors[word].astype(float) for w, word in zip(weights, known, strict=True)), np.zeros(100)
        )

    rows = np.array([vector(text) for text in split])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    for query_id, text in some.iter_rows():
        asked = vector(tokens(text))
        scores = dict(zip(frame["doc_id"], rows @ asked / np.linalg.norm(asked), strict=True))
        mine = run.filter(query_id=query_id)
        assert mine["score"].to_list() == pytest.approx([scores[d] for d in mine["doc_id"]], abs=1e-6)
        assert mine["score"].to_list() == pytest.approx(sorted(scores.values(), reverse=True)[:50], abs=1e-6)
