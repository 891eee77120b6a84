"""Training of the small models: what is learned from, and that it can be repeated."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli import main
from evenrank.data.docs import open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.mitigate.negatives import negative_pairs

torch = pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
from safetensors.numpy import load_file  # noqa: E402

from evenrank.rankers.neural.interaction import random_vectors  # noqa: E402
from evenrank.rankers.neural.saved import open_ranker  # noqa: E402
from evenrank.training import train_ranker  # noqa: E402
from evenrank.training.dataset import Examples, first_stage_weight, make_examples  # noqa: E402

pytestmark = pytest.mark.slow

DATA = demo.folder()
torch.set_num_threads(1)  # small models; more threads only wait for one another
QUICK: dict[str, Any] = {"epochs": 3, "batch": 16, "dimension": 16}


def train(output: Path, kind: str = "knrm", **more: Any) -> Any:
    settings = {"run": DATA / "bm25.run", **QUICK, **more}
    return train_ranker(kind, DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", output, **settings)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "knrm"
    train(path)
    return path


def weights(path: Path) -> bytes:
    return (path / "weights.safetensors").read_bytes()


def test_two_trainings_with_one_seed_are_equal_to_the_last_bit(model: Path, tmp_path: Path) -> None:
    train(tmp_path / "again")
    assert weights(tmp_path / "again") == weights(model)
    assert (tmp_path / "again" / "metrics.json").read_bytes() == (model / "metrics.json").read_bytes()


def test_another_seed_is_another_model(model: Path, tmp_path: Path) -> None:
    train(tmp_path / "other", seed=1)
    assert weights(tmp_path / "other") != weights(model)


def test_word_vectors_move_by_their_own_rate(tmp_path: Path) -> None:
    rows = {}
    for name, rate in (("still", 1e-12), ("usual", None)):
        train(tmp_path / name, embedding_rate=rate, epochs=1)
        rows[name] = load_file(tmp_path / name / "weights.safetensors")
    still, usual = rows["still"], rows["usual"]
    started = random_vectors(len(still["embedding.weight"]) - 2, 16, 0)
    np.testing.assert_allclose(still["embedding.weight"][1:-1], started, atol=1e-7)
    assert np.abs(usual["embedding.weight"][1:-1] - started).max() > 1e-3
    assert np.abs(still["line.weight"]).max() > 1e-3


@pytest.mark.parametrize("kind", ["knrm", "drmm", "matchpyramid", "convknrm", "pacrr"])
def test_interrupted_training_goes_on_to_the_same_weights(kind: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 2, "patience": 2, "depth": 20}
    train(tmp_path / "whole", kind, **settings)
    said: list[str] = []

    def interrupt(text: str) -> None:
        said.append(text)
        if text.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", kind, log=interrupt, **settings)
    assert not (tmp_path / "broken").exists()
    train(tmp_path / "broken", kind, log=said.append, **settings)
    assert "resuming after epoch 1" in said
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")
    assert not list(tmp_path.glob(".broken*"))


def test_a_checkpoint_of_another_training_is_not_gone_on_with(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "m", log=interrupt)
    said: list[str] = []
    train(tmp_path / "m", rate=0.02, log=said.append)
    assert not any("resuming" in each for each in said)


def test_training_begins_anew_where_its_checkpoint_is_damaged(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("epoch 2"):
            raise KeyboardInterrupt

    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", log=interrupt)
    (state,) = tmp_path.glob(".broken*/checkpoint.pt")
    state.write_bytes(state.read_bytes()[:1000])
    train(tmp_path / "broken")
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_a_flipped_bit_in_any_file_is_refused(model: Path, tmp_path: Path) -> None:
    import shutil

    for path in sorted(model.iterdir()):
        broken = tmp_path / f"of-{path.name}"
        shutil.copytree(model, broken)
        content = bytearray((broken / path.name).read_bytes())
        content[len(content) // 2] ^= 1
        (broken / path.name).write_bytes(content)
        with pytest.raises(InputError):
            open_ranker(broken)


def test_the_folder_tells_what_the_model_is(model: Path) -> None:
    assert {path.name for path in model.iterdir()} >= {
        "model.json", "config.json", "metrics.json", "README.md", "training-queries.npz",
        "weights.safetensors",
    }  # fmt: skip
    config = json.loads((model / "config.json").read_text())
    assert config["ranker"] == "knrm" and config["seed"] == 0
    card = (model / "README.md").read_text()
    assert "# Re-ranker: knrm" in card and "knrm + " in card


def test_queries_of_the_training_are_refused_unless_asked_for(model: Path) -> None:
    queries = read_queries(DATA / "queries.tsv")
    given: dict[str, Any] = {"run": DATA / "bm25.run", "docs": DATA / "docs.tsv", "queries": queries}
    with pytest.raises(
        InputError,
        match=r"60 of the 60 queries.*trained this model or decided when to stop.*--allow-training-queries",
    ):
        er.rerank(model, **given)
    assert len(er.rerank(model, **given, allow_training_queries=True, depth=10)) == 598
    shouted = queries.with_columns(pl.col("text").str.to_uppercase(), query_id="x" + pl.col("query_id"))
    assert len(open_ranker(model).seen(shouted)) == 60, "another id or case is still the same question"
    fresh = queries.with_columns(text=pl.col("text") + " today")
    assert open_ranker(model).seen(fresh) == []


def test_relevant_documents_outside_the_candidates_keep_their_first_stage_score(tmp_path: Path) -> None:
    run = read_run(DATA / "bm25.run")
    found = make_examples(DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=run, depth=2)
    outside = np.flatnonzero(~found.is_candidate)
    assert len(outside) and found.relevant[outside].all()
    known = {(query, doc): score for query, doc, score, _ in run.iter_rows()}
    pairs = found.pairs
    for row in outside:
        key = (pairs.query_ids[pairs.query[row]], pairs.doc_ids[pairs.document[row]])
        assert pairs.first[row] == known[key] != 0
    assert found.left_out["relevant documents whose first-stage score is not known"] > 0


def test_bm25_is_asked_for_the_scores_of_those_it_did_not_find(tmp_path: Path) -> None:
    index = er.index(DATA / "docs.tsv", tmp_path / "idx")
    found = make_examples(index.docs, DATA / "queries.tsv", DATA / "qrels.txt", index=index, depth=1)
    assert "relevant documents whose first-stage score is not known" not in found.left_out
    deep = er.search(index, DATA / "queries.tsv", depth=386)
    known = {(query, doc): score for query, doc, score, _ in deep.iter_rows()}
    pairs = found.pairs
    for row in np.flatnonzero(~found.is_candidate):
        key = (pairs.query_ids[pairs.query[row]], pairs.doc_ids[pairs.document[row]])
        assert pairs.first[row] == known.get(key, 0.0)


def test_scores_that_are_missing_are_computed_for_the_pairs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.rankers import lexical

    ranked: list[int] = []
    retrieve = lexical.retrieve

    def counted(*given: Any, depth: int, **named: Any) -> Any:
        ranked.append(depth)
        return retrieve(*given, depth=depth, **named)

    monkeypatch.setattr(lexical, "retrieve", counted)
    index = er.index(DATA / "docs.tsv", tmp_path / "idx")
    found = make_examples(index.docs, DATA / "queries.tsv", DATA / "qrels.txt", index=index, depth=1)
    assert not found.is_candidate.all(), "some scores were missing"
    assert ranked == [1], "the first stage, and nothing deeper"


def test_dev_queries_are_drawn_by_the_seed_whatever_the_order_of_the_queries() -> None:
    queries = read_queries(DATA / "queries.tsv")

    def drawn(table: pl.DataFrame, seed: int) -> set[str]:
        run = read_run(DATA / "bm25.run").filter(pl.col("rank") <= 5)
        found = make_examples(DATA / "docs.tsv", table, DATA / "qrels.txt", run=run, seed=seed, dev_share=0.2)
        return {each for each, dev in zip(found.pairs.query_ids, found.dev, strict=True) if dev}

    assert drawn(queries, 0) == drawn(queries.reverse(), 0) != drawn(queries, 1)
    assert len(drawn(queries, 0)) == 12


def drawn_of(shared: int) -> Examples:
    """Training data of 40 queries, where so many follow one another that have one relevant document."""
    ids = [f"q{n:02}" for n in range(40)]
    docs = {f"d{n:02}": f"word{n} text" for n in range(40)}
    qrels = {query: {f"d{n // shared:02}": 1} for n, query in enumerate(ids)}
    run = {query: {f"d{n // shared:02}": 2.0, "d39": 1.0} for n, query in enumerate(ids)}
    queries = {query: f"word{n}" for n, query in enumerate(ids)}
    return make_examples(docs, queries, qrels, run=run, dev_share=0.25)


def dev_is_apart(found: Examples) -> bool:
    """Whether no document is relevant to a dev query and to a training query."""
    held_out = found.dev[found.pairs.query]
    own, other = (found.pairs.document[found.relevant & part] for part in (held_out, ~held_out))
    return not np.isin(own, other).any()


@pytest.mark.parametrize("shared", [1, 2, 5])
def test_no_document_is_relevant_to_a_training_and_to_a_dev_query(shared: int) -> None:
    found = drawn_of(shared)
    assert dev_is_apart(found)
    assert found.dev.sum() == 10
    assert found.dev.reshape(-1, shared).sum(1).tolist().count(shared) == 10 // shared


def test_where_all_queries_have_one_relevant_document_they_are_drawn_one_by_one() -> None:
    found = drawn_of(40)
    assert found.dev.sum() == 10
    assert not dev_is_apart(found)


def test_the_weight_of_the_first_stage_is_what_the_dev_queries_say(tmp_path: Path) -> None:
    made = train(tmp_path / "knrm", with_first_stage=True)
    config = json.loads((tmp_path / "knrm" / "config.json").read_text())
    weight = open_ranker(tmp_path / "knrm").reranker.module.first_stage.item()
    assert config["facts"]["weight of the first stage"] == weight
    assert made.metrics["hybrid"]["dev RR@10"] == pytest.approx(made.metrics["dev"]["knrm"], abs=0.02)


def test_no_training_group_holds_a_dev_query_or_a_relevant_negative() -> None:
    found = make_examples(DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=DATA / "bm25.run")
    positives, against = found.groups()
    assert found.relevant[positives].all()
    assert not found.dev[found.pairs.query[positives]].any()
    for positive, pool in zip(positives, against, strict=True):
        assert not found.relevant[pool].any()
        assert (found.pairs.query[pool] == found.pairs.query[positive]).all()


def test_rr_on_dev_queries_is_that_of_ir_measures() -> None:
    found = make_examples(
        DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=DATA / "bm25.run", dev_share=0.5
    )
    rows = found.dev_rows()
    scores = np.random.default_rng(0).integers(5, size=len(rows)).astype(float)  # with many ties
    run = found.pairs.take(rows).run(scores)
    judged = read_qrels(DATA / "qrels.txt").filter(pl.col("query_id").is_in(run["query_id"].to_list()))
    expected = er.measure(run, [er.RR @ 10], qrels=judged, confidence=None)[er.RR @ 10].value
    assert found.rr(rows, scores) == pytest.approx(expected)


def test_a_relevant_document_named_as_negative_is_an_error(tmp_path: Path) -> None:
    query, doc, _ = read_qrels(DATA / "qrels.txt").filter(pl.col("relevance") > 0).row(0)
    (tmp_path / "n.tsv").write_text(f"query_id\tdoc_id\n{query}\t{doc}\n")
    with pytest.raises(InputError, match=r"n\.tsv:2: document .* is named as negative .* relevant to it"):
        train(tmp_path / "m", negative_pairs=tmp_path / "n.tsv")


def test_named_negatives_that_cannot_be_used_are_named_with_their_line(tmp_path: Path) -> None:
    listed = read_run(DATA / "bm25.run").filter(pl.col("query_id") == "q01")["doc_id"].to_list()
    all_docs = er.load(DATA).docs.frame()["doc_id"].to_list()
    judged = read_qrels(DATA / "qrels.txt").filter(pl.col("query_id") == "q01")["doc_id"].to_list()
    others = (each for each in all_docs if each not in listed)
    good, unlisted = (next(d for d in some if d not in judged) for some in (listed, others))
    for wrong, said in (("nowhere", "the collection lacks it"), (unlisted, "its first-stage score is not")):
        lines = [{"query_id": "q01", "doc_id": name} for name in (good, wrong)]
        (tmp_path / "n.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        with pytest.raises(InputError, match=rf"n\.jsonl:2: document '{wrong}' is named .*{said}"):
            train(tmp_path / "m", negative_pairs=tmp_path / "n.jsonl", run=DATA / "bm25.run")
    assert not (tmp_path / "m").exists()


def test_negatives_out_of_a_file_are_what_is_learned_against(tmp_path: Path) -> None:
    run = read_run(DATA / "bm25.run")
    named = run.filter(pl.col("rank") > 40).select("query_id", "doc_id")
    bad = named.join(read_qrels(DATA / "qrels.txt"), on=["query_id", "doc_id"], how="anti")
    found = make_examples(
        DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=run, depth=5, negatives=bad
    )
    wanted = set(bad.iter_rows())
    pairs, (positives, against) = found.pairs, found.groups()
    assert positives
    for positive, pool in zip(positives, against, strict=True):
        query = pairs.query_ids[pairs.query[positive]]
        own = {(query, pairs.doc_ids[pairs.document[i]]) for i in pool}
        assert own <= wanted


def test_a_line_without_a_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.tsv").write_text("q01\td1\nq02\n")
    with pytest.raises(InputError, match=r"n\.tsv:2:"):
        negative_pairs(tmp_path / "n.tsv")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epoch": 3}, "did you mean epochs"),
        ({"epochs": 0}, "epochs is 0"),
        ({"rate": -1.0}, "rate is -1"),
        ({"embedding_rate": 0.0}, "embedding_rate is 0"),
        ({"embedding_rate": float("inf")}, "embedding_rate is inf"),
        ({"rate": float("inf")}, "rate is inf; it must be a number from"),
        ({"rate": 1e300}, r"rate is 1e\+300"),
        ({"decay": float("nan")}, "decay is nan; it must be a number from 0 to"),
        ({"decay": -1.0}, "decay is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296; it must be a whole number from 0 to 4294967295"),
        ({"loss": "square"}, "loss cannot be 'square'"),
        ({"kernels": 1}, "kernels is 1; it must be a whole number from 2 to 10000"),
        ({"width": 0.0}, "width is 0.0"),
        ({"width": float("nan")}, "width is nan"),
        ({"dimension": 100_000_000}, "dimension is 100000000"),
        ({"bins": 1, "kind": "drmm"}, "bins is 1"),
        ({"hidden": 0, "kind": "drmm"}, "hidden is 0"),
        ({"kernel": 0, "kind": "matchpyramid"}, "kernel is 0"),
        ({"pooled_query": 0, "kind": "matchpyramid"}, "pooled_query is 0"),
        ({"strongest": 0, "kind": "pacrr"}, "strongest is 0"),
        ({"ngrams": 0, "kind": "convknrm"}, "ngrams is 0"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(tmp_path / "m", **settings)
    assert not list(tmp_path.iterdir())


def test_training_reads_the_given_documents_whatever_the_index_holds(tmp_path: Path) -> None:
    lines = (DATA / "docs.tsv").read_text().splitlines()
    (tmp_path / "docs.tsv").write_text("\n".join(f"{line} zebra" for line in lines) + "\n")
    index, said = er.index(open_docs(DATA / "docs.tsv"), tmp_path / "index"), list[str]()
    own, other = (
        make_examples(docs, DATA / "queries.tsv", DATA / "qrels.txt", index=index, log=said.append)
        for docs in (DATA / "docs.tsv", tmp_path / "docs.tsv")
    )
    assert not any(text.endswith("zebra") for text in own.pairs.documents)
    assert all(text.endswith("zebra") for text in other.pairs.documents)
    assert len([each for each in said if "the index is of another file or table than is given" in each]) == 1


def test_an_index_of_other_documents_is_refused(tmp_path: Path) -> None:
    index = er.index(open_docs({"d1": "other texts", "d2": "of other documents"}), tmp_path / "index")
    with pytest.raises(InputError, match="nothing is found for any query"):
        train(tmp_path / "m", run=None, index=index)
    assert not (tmp_path / "m").exists()


def test_the_settings_of_a_model_hold_the_dimension_of_given_vectors(tmp_path: Path) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_text("surgeon 1 0 0 0\nnurse 0 1 0 0\nengineer 0 0 1 0\n")
    train(tmp_path / "m", vectors=vectors, epochs=1)
    assert json.loads((tmp_path / "m" / "config.json").read_text())["settings"]["dimension"] == 4


@pytest.mark.parametrize("place", ["file/m", "file/deeper/m", "x" * 300])
def test_a_place_where_nothing_can_be_written_is_refused_before_the_work(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    with pytest.raises(InputError, match="cannot be written"):
        train(tmp_path / place, log=said.append)
    assert not said and [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_new_folder_is_made_for_the_model(tmp_path: Path) -> None:
    train(tmp_path / "a" / "b" / "m", epochs=1)
    assert [each.name for each in (tmp_path / "a" / "b").iterdir()] == ["m"]


def test_training_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("before training"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "m", log=interrupt)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["pacrr", "matchpyramid"])
def test_training_that_diverges_says_so_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training diverged.*lower rate"):
        train(tmp_path / "m", kind, rate=1e30, depth=10)
    assert not list(tmp_path.iterdir())


def test_the_card_counts_the_queries_that_were_learned_from(model: Path, tmp_path: Path) -> None:
    run = read_run(DATA / "bm25.run")
    bad = run.join(read_qrels(DATA / "qrels.txt"), on=["query_id", "doc_id"], how="anti")
    found = make_examples(DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=run)
    asked = [each for each, dev in zip(found.pairs.query_ids, found.dev, strict=True) if not dev]
    assert f" on {len(asked)} queries; 6 others decided when to stop" in (model / "README.md").read_text()
    for count, learned in ((5, "5 queries"), (1, "1 query")):
        some = bad.filter(pl.col("query_id").is_in(asked[:count])).select("query_id", "doc_id")
        said: list[str] = []
        train(tmp_path / learned, negative_pairs=some, epochs=1, log=said.append)
        card = (tmp_path / learned / "README.md").read_text()
        assert f" on {learned}; 6 others decided" in card
        assert f"left out: {len(asked) - count} queries without negatives" in said
        assert f"- left out: {len(asked) - count} queries without negatives" in card


def test_one_of_something_is_told_as_one(tmp_path: Path) -> None:
    docs = {f"d{n}": f"word{n} and more" for n in range(4)}
    said: list[str] = []
    train_ranker(
        "knrm", docs, {"a": "word0", "b": "word1", "c": "word2"}, {"a": {"d0": 1}, "b": {"d1": 1}},
        tmp_path / "m", run={each: dict.fromkeys(docs, 1.0) for each in "ab"}, log=said.append, **QUICK,
    )  # fmt: skip
    card = (tmp_path / "m" / "README.md").read_text()
    assert " on 1 query; 1 other decided when to stop" in card
    assert "left out: 1 query without a relevant document" in said
    assert "- left out: 1 query without a relevant document\n" in card


def test_a_folder_that_is_no_model_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="is not a model"):
        train(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_the_first_stage_is_never_lost_by_its_learned_weight(tmp_path: Path) -> None:
    found = train(tmp_path / "m", "pacrr", with_first_stage=True, epochs=1, rate=1e-6)
    dev = found.metrics["dev"]
    assert dev["pacrr"] > dev["first stage"] - 0.2, "untrained, it is close to the first stage"


def test_queries_that_are_judged_but_not_asked_are_nothing_to_tell_of() -> None:
    some = read_queries(DATA / "queries.tsv").head(40)
    found = make_examples(DATA / "docs.tsv", some, DATA / "qrels.txt", run=DATA / "bm25.run")
    assert "queries without a relevant document" not in found.left_out
    more = pl.concat([some, pl.DataFrame({"query_id": ["new"], "text": ["a new question"]})])
    found = make_examples(DATA / "docs.tsv", more, DATA / "qrels.txt", run=DATA / "bm25.run")
    assert found.left_out["queries without a relevant document"] == 1


def dev_of_all(**more: Any) -> Any:
    found = make_examples(
        DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", run=DATA / "bm25.run", depth=50
    )
    return replace(found, dev=np.ones_like(found.dev), **more)


def test_the_weight_of_the_first_stage_is_found_again() -> None:
    found, random = dev_of_all(), np.random.default_rng(1)
    rows = found.dev_rows()
    first = found.pairs.first[rows]
    scores = random.normal(size=len(rows))
    luck = random.gumbel(size=len(rows))  # the greatest of worth + luck is a draw from the softmax
    relevant = np.zeros_like(found.relevant)
    for query in np.unique(found.pairs.query[rows]):
        own = np.flatnonzero(found.pairs.query[rows] == query)
        relevant[rows[own[np.argmax((3 * scores + 3 * 0.4 * first + luck)[own])]]] = True
    drawn = replace(found, relevant=relevant)
    assert first_stage_weight(drawn, rows, scores)["weight"] == pytest.approx(0.4, rel=0.3)
    assert first_stage_weight(drawn, rows, 10 * scores)["weight"] == pytest.approx(4, rel=0.3)


def test_the_weight_is_finite_whatever_the_scores_are() -> None:
    found = dev_of_all()
    rows = found.dev_rows()
    first = found.pairs.first[rows]
    plain = found.rr(rows, first)
    nothing = first_stage_weight(found, rows, np.zeros(len(rows)))
    assert np.isfinite(nothing["weight"]) and nothing["dev RR@10"] == plain
    perfect = first_stage_weight(found, rows, found.relevant[rows].astype(float))
    assert 0 <= perfect["weight"] < 1 and perfect["dev RR@10"] > plain
    misled = first_stage_weight(found, rows, -found.relevant[rows].astype(float))
    assert misled["dev RR@10"] == pytest.approx(plain, abs=0.01)
    unjudged = replace(found, relevant=np.zeros_like(found.relevant))
    assert np.isfinite(first_stage_weight(unjudged, rows, first)["weight"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('rate = "x"', "rate is 'x'; it must be a number"),
        ("epochs = 1.5", "epochs is '1.5'; it must be a whole"),
        ("epochs = [1]", "epochs is [1]; it must be a number"),
        ("epoch = 1", "knrm has no setting 'epoch'"),
        ("[table]\nepochs = 1", "table is {'epochs': 1}; it must be a number"),
    ],
)
def test_a_file_of_settings_names_what_is_wrong(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    config = tmp_path / "settings.toml"
    config.write_text(text)
    given = [
        "--docs",
        "d",
        "--queries",
        "q",
        "--qrels",
        "r",
        "--config",
        str(config),
        "-o",
        str(tmp_path / "m"),
    ]
    assert main(["train", "--ranker", "knrm", *given]) == 2
    assert f"{config}: {said}" in capsys.readouterr().err


def test_a_training_passes_through_few_files(tmp_path: Path) -> None:
    """Count the files of training and its models that `evenrank train --ranker knrm` calls."""
    package = Path(er.__file__).parent
    files: set[Path] = set()

    def count(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and package in path.parents and frame.f_code.co_name != "<module>":
            files.add(path.relative_to(package))

    names = {"docs": "docs.tsv", "queries": "queries.tsv", "qrels": "qrels.txt", "run": "bm25.run"}
    given = ["train", "--ranker=knrm", "--set=epochs=1", *(f"--{key}={DATA / names[key]}" for key in names)]
    assert main([*given, "-o", str(tmp_path / "once")]) == 0
    sys.setprofile(count)
    try:
        assert main([*given, "-o", str(tmp_path / "again")]) == 0
    finally:
        sys.setprofile(None)
    own = [path for path in files if path.parts[0] == "training" or path.parts[:2] == ("rankers", "neural")]
    assert 0 < len(own) <= 8, own
