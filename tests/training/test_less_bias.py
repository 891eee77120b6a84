"""Training with less bias: losses, adversary, mirrored texts, and sweeps over them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import InputError, demo
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run

torch = pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
from evenrank.training.adversary import (  # noqa: E402
    pair_labels,
    probe,
    probe_ranker,
    probe_rows,
    probe_text,
    reverse,
)
from evenrank.training.dataset import make_examples  # noqa: E402
from evenrank.training.fitting import TrainConfig  # noqa: E402
from evenrank.training.losses import (  # noqa: E402
    LOSSES,
    Objective,
    add_loss_inputs,
    is_biased,
    pair_bias,
)
from evenrank.training.trainer import train_ranker  # noqa: E402

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
DATA = demo.folder()
QUICK: dict[str, Any] = {"epochs": 1, "batch": 32, "dimension": 8, "depth": 10}
FILES = {"docs": "docs.tsv", "queries": "queries.tsv", "qrels": "qrels.txt"}
SCORES = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]], dtype=torch.float64)
BIAS = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.2]], dtype=torch.float64)


def small() -> Any:
    run = read_run(DATA / "bm25.run").filter(pl.col("rank") <= 10)
    return make_examples(DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=run, dev_share=0.3)


def train(output: Path, kind: str = "knrm", **more: Any) -> Any:
    given = [DATA / name for name in ("docs.tsv", "queries.tsv", "qrels.txt")]
    settings = {name: value for name, value in {**QUICK, **more}.items() if value is not None}
    return train_ranker(kind, *given, output, run=DATA / "bm25.run", **settings)


@pytest.mark.parametrize("name", list(filter(is_biased, LOSSES)))
def test_without_strength_a_loss_is_the_plain_one(name: str) -> None:
    plain = LOSSES["hinge" if name == "bias-margin" else "softmax"]
    assert LOSSES[name](SCORES, BIAS, 0.0) == pytest.approx(float(plain(SCORES, BIAS, 0.0)))


@pytest.mark.parametrize("name", list(filter(is_biased, LOSSES)))
def test_a_loss_against_bias_pushes_the_one_sided_of_two_equal_negatives_down(name: str) -> None:
    scores = torch.tensor([[0.0, 0.0, 0.0]], requires_grad=True)
    LOSSES[name](scores, torch.tensor([[0.0, 1.0, 0.0]]), 1.0).backward()
    assert scores.grad is not None
    one_sided, other = scores.grad[0, 1], scores.grad[0, 2]
    if name == "bias-margin":  # the slope of a margin is the same; it goes on for longer
        apart = torch.tensor([[1.5, 0.0, 0.0]], requires_grad=True)
        LOSSES[name](apart, torch.tensor([[0.0, 1.0, 0.0]]), 1.0).backward()
        assert apart.grad is not None and apart.grad[0, 1] > apart.grad[0, 2] == 0
    else:
        assert one_sided > other


def test_only_the_list_and_neutrality_count_a_one_sided_relevant_document() -> None:
    other = BIAS.clone()
    other[:, 0] = 1 - other[:, 0]
    changed = {name for name, loss in LOSSES.items() if loss(SCORES, BIAS, 1.0) != loss(SCORES, other, 1.0)}
    assert changed == {"list-bias", "neutrality"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "list-bais"}, "did you mean 'list-bias'"),
        ({"loss": "list-bias", "loss_strength": -1.0}, "loss_strength is -1.0"),
        ({"adversary": -1.0}, "adversary is -1.0"),
        ({"adversary": 1.0}, "knrm has no vector for an adversary"),
        ({"consistency": -1.0}, "consistency is -1.0"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(tmp_path / "m", **settings)


def test_a_loss_that_would_change_nothing_is_refused(tmp_path: Path) -> None:
    docs = {f"d{n}": text for n, text in enumerate(["rain over hills", "wind and hail", "fog in valleys"])}
    queries = {f"q{n}": text for n, text in enumerate(["rain", "wind", "fog"])}
    run = {query: {doc: -float(n) for n, doc in enumerate(docs)} for query in queries}
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(3)}
    with pytest.raises(
        InputError, match="all documents are equally one-sided by tf, so the loss negative-bias"
    ):
        train_ranker("knrm", docs, queries, qrels, tmp_path / "m", run=run, loss="negative-bias", **QUICK)
    assert not list(tmp_path.iterdir())


def test_labels_that_call_every_document_one_sided_are_refused(tmp_path: Path) -> None:
    labels = dict.fromkeys(er.load(DATA).docs.frame()["doc_id"], "x")
    with pytest.raises(InputError, match=r"equally one-sided by label.*check lexicon, labels"):
        train(tmp_path / "m", loss="negative-bias", bias="label", labels=labels)


def test_a_loss_by_labels_names_no_lexicon(tmp_path: Path) -> None:
    ids = er.load(DATA).docs.frame()["doc_id"].to_list()
    labels = {doc_id: "x" if place % 2 else "unknown" for place, doc_id in enumerate(ids)}
    found = train(tmp_path / "m", loss="negative-bias", bias="label", labels=labels)
    assert found.config["facts"]["gender"] == {"bias": "label"}


def test_the_command_takes_named_negatives_and_their_number_in_a_group(tmp_path: Path) -> None:
    from evenrank.cli import main

    drawn = er.negatives(DATA / "bm25.run", DATA / "qrels.txt", er.tally(DATA / "docs.tsv"), n=8)
    drawn.write(tmp_path / "n.jsonl", form="ids")
    files = [f"--{name}={DATA / file}" for name, file in {**FILES, "run": "bm25.run"}.items()]
    asked = ["train", "--ranker=knrm", *files, "-o", str(tmp_path / "m"), "--set", "epochs=1"]
    assert main([*asked, "--set", "negatives=5", f"--negatives={tmp_path / 'n.jsonl'}"]) == 0
    assert json.loads((tmp_path / "m" / "config.json").read_bytes())["recipe"]["negatives"] == 5


def test_bias_goes_from_0_to_the_worst_of_all_candidates() -> None:
    found = small()
    bias = pair_bias(found, "count")
    assert bias.min() == 0 and bias.max() == 1
    one = er.tally(DATA / "docs.tsv").frame
    counts = dict(zip(one["doc_id"], (one["male"].cast(int) - one["female"].cast(int)).abs(), strict=True))
    most = max(counts[each] for each in found.pairs.doc_ids)
    expected = [counts[found.pairs.doc_ids[i]] / most for i in found.pairs.document]
    assert bias == pytest.approx(np.array(expected))


def test_a_model_trained_against_bias_says_so(tmp_path: Path) -> None:
    made = train(tmp_path / "m", loss="list-bias", loss_strength=2.0, bias="boolean")
    assert made.config["recipe"]["loss_strength"] == 2.0
    assert made.config["facts"]["gender"] == {"lexicon": "rekabsaz2020", "bias": "boolean"}


def test_consistency_is_how_far_documents_and_their_mirror_images_are_apart() -> None:
    found = small()
    config = TrainConfig(consistency=3.0)
    found, facts = add_loss_inputs(found, config, "tf", None, None)
    assert facts == {"gender": {"lexicon": "rekabsaz2020"}}
    assert found.mirrored is not None
    assert found.mirrored.documents == [er.swap(text) for text in found.pairs.documents]
    changed = [new != old for new, old in zip(found.mirrored.documents, found.pairs.documents, strict=True)]
    rows = np.flatnonzero(np.array(changed)[found.pairs.document])[:8].reshape(2, 4)

    def read(rows: Any, is_mirrored: bool) -> Any:
        return torch.from_numpy(values[rows] + apart * is_mirrored), None

    objective = Objective(torch.nn.Identity(), read, config, found)
    values = np.zeros(len(found.pairs), np.float32)
    apart = np.float32(0)
    alike = float(objective(rows))
    apart = np.float32(0.5)
    assert float(objective(rows)) == pytest.approx(alike + 3 * 0.5)


def test_models_learn_to_score_mirrored_documents_alike(tmp_path: Path) -> None:
    made = train(tmp_path / "m", consistency=1.0)
    assert made.metrics["epochs"] and made.config["recipe"]["consistency"] == 1.0


def test_a_reversed_gradient_is_the_gradient_times_minus_mu() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (reverse(x, 3.0) * torch.tensor([1.0, -1.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [-3.0, 3.0]


def test_labels_of_an_adversary_are_those_of_the_released_code_or_the_groups() -> None:
    found = small()
    pairs = found.pairs
    by_group = pair_labels(found, "group")
    counted = er.tally(DATA / "docs.tsv").frame
    sides = {
        d: int(np.sign(int(m) - int(f))) for d, f, m in counted.select("doc_id", "female", "male").iter_rows()
    }
    expected = [{0: 0, -1: 1, 1: 2}[sides[pairs.doc_ids[i]]] for i in pairs.document]
    assert by_group.tolist() == expected
    marked = pair_labels(found, "neutrality")
    assert set(marked.tolist()) == {0, 1} and marked.sum() >= (by_group > 0).sum() * 0.3


def test_a_probe_reads_what_is_there_and_only_that() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(2, size=900)
    noise = random.standard_normal((900, 6)).astype(np.float32)
    plain = noise.copy()
    plain[:, 0] += 2 * labels
    blind = probe(noise[:500], labels[:500], noise[500:], labels[500:], epochs=5)
    seeing = probe(plain[:500], labels[:500], plain[500:], labels[500:], epochs=5)
    assert blind["low"] < 0.5 < blind["high"] < 0.7 < seeing["low"] < seeing["auc"] < seeing["high"]
    none = probe(noise[:500], np.zeros(500, np.int64), noise[500:], labels[500:])
    assert none["auc"] is None
    sure = noise.copy()
    sure[:, 0] += 50 * labels
    found = probe(sure[:500], labels[:500], sure[500:], labels[500:])
    assert found["auc"] == 1 and found["low"] is found["high"] is None, "no width is no certainty"


def test_a_group_that_the_probe_has_not_learned_does_not_count() -> None:
    random = np.random.default_rng(0)
    vectors, labels = random.standard_normal((90, 4)).astype(np.float32), np.arange(90) % 3
    few = labels[:60] < 2
    found = probe(vectors[:60][few], labels[:60][few], vectors[60:], labels[60:])
    assert found["classes"] == [0, 1] and found["auc"] is not None


def test_a_probe_without_pairs_is_told_and_not_trained() -> None:
    found = small()
    found = replace(found, adversary_labels=pair_labels(found, "neutrality"), dev=np.zeros_like(found.dev))
    said: list[str] = []

    def refuse(rows: Any) -> Any:
        raise AssertionError("there are no vectors to be had")

    read = probe_ranker(found, refuse, "neutrality", 0, said.append)
    assert read["auc"] is None
    assert said == ["no fresh probe of the vectors: one of its parts would have only pairs of one kind"]


def test_the_interval_of_a_probe_is_over_queries() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(2, size=900)
    vectors = random.standard_normal((900, 6)).astype(np.float32)
    vectors[:, 0] += labels
    halves = vectors[:500], labels[:500], vectors[500:], labels[500:]
    each = probe(*halves, epochs=5)
    assert each["queries"] == 400
    # The same pair fifty times says no more than once, though there are more pairs.
    few = np.arange(8).repeat(50)
    same = probe(
        *halves[:2], vectors[500:508].repeat(50, 0), labels[500:508].repeat(50), queries=few, epochs=5
    )
    wide = same["high"] - same["low"] if same["low"] is not None else 1.0
    assert same["queries"] == 8 and wide > 3 * (each["high"] - each["low"])
    one = probe(*halves, queries=np.zeros(400, np.int64), epochs=5)
    assert one["queries"] == 1 and one["auc"] == each["auc"] and one["low"] is one["high"] is None


def test_a_model_tells_which_negatives_were_named(tmp_path: Path) -> None:
    drawn = er.negatives(DATA / "bm25.run", DATA / "qrels.txt", er.tally(DATA / "docs.tsv"), n=3)
    drawn.write(tmp_path / "n.jsonl", form="ids")
    train(tmp_path / "named", negative_pairs=tmp_path / "n.jsonl")
    train(tmp_path / "table", negative_pairs=drawn.pairs())
    of_file, of_table = (
        json.loads((tmp_path / name / "config.json").read_text())["facts"]["negatives"]
        for name in ("named", "table")
    )
    assert of_file == of_table and of_file["pairs"] == drawn.frame.height
    card = (tmp_path / "named" / "README.md").read_text()
    assert of_file["fingerprint"] in card
    train(tmp_path / "plain")
    assert "negatives" not in json.loads((tmp_path / "plain" / "config.json").read_text())["facts"]


def test_a_loss_by_a_dictionary_takes_words_for_the_adversary_alone(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    given: dict[str, Any] = {"loss": "negative-bias", "bias": "liwc", "dimension": None}
    train(tmp_path / "both", "head", adversary=1.0, lexicon="fabris2020", **given)
    told = json.loads((tmp_path / "both" / "config.json").read_text())["facts"]["gender"]
    assert told == {"lexicon": "fabris2020", "bias": "liwc"}
    train(tmp_path / "loss", "head", **given)
    told = json.loads((tmp_path / "loss" / "config.json").read_text())["facts"]["gender"]
    assert told == {"bias": "liwc"}


def test_a_probe_is_tried_on_queries_and_documents_that_it_has_not_seen() -> None:
    found = small()
    seen, tried = probe_rows(found, 0)
    assert not {*found.pairs.document[seen]} & {*found.pairs.document[tried]}
    assert not {*found.pairs.query[seen]} & {*found.pairs.query[tried]}
    assert len({*found.pairs.document[tried]}) == len(tried)


def test_the_card_says_what_a_probe_reads() -> None:
    found = small()
    found = replace(found, adversary_labels=pair_labels(found, "group"))
    random = np.random.default_rng(0)
    said: list[str] = []
    read = probe_ranker(
        found, lambda rows: random.standard_normal((len(rows), 4)).astype(np.float32), "group", 0, said.append
    )
    assert said == [probe_text(read)] and read["classes"] == [0, 1, 2]
    assert (
        said[0].startswith(f"a fresh probe of the vectors: AUC {read['auc']:.3f}") and "(group, " in said[0]
    )


def test_a_sweep_trains_at_each_strength_and_begins_with_plain_training() -> None:
    from evenrank.mitigate.trained import RetrainSpec

    queries = read_queries(DATA / "queries.tsv")
    run = read_run(DATA / "bm25.run")
    test = run.filter(pl.col("query_id").is_in(queries["query_id"][40:].to_list()))
    training = RetrainSpec(
        "knrm", DATA / "docs.tsv", queries[:40], DATA / "qrels.txt", run=run, n=5, settings=QUICK
    )
    curves = [
        er.sweep(
            test,
            er.tally(DATA / "docs.tsv"),
            method=method,
            qrels=DATA / "qrels.txt",
            queries=queries[40:],
            training=training,
            resamples=20,
        )
        for method in ("negatives", "consistency")
    ]
    assert [curve.method for curve in curves] == ["negatives", "consistency"]
    assert [point.strength for point in curves[0]] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    first = [curve.points[0].bias.value for curve in curves]
    assert first[0] == first[1], "both begin with the run of plain training"
    with pytest.raises(InputError, match="method cannot be"):
        er.sweep(test, er.tally(DATA / "docs.tsv"), method="negativs", qrels=DATA / "qrels.txt")
