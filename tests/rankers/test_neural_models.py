"""The word-interaction models: what they must and must not depend on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli import main
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run, write_run

torch = pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")

from evenrank.rankers.neural.candidates import INTERACTION, FirstStage, candidates, scored  # noqa: E402
from evenrank.rankers.neural.interaction import Vocabulary, WordPairs, random_vectors  # noqa: E402
from evenrank.rankers.neural.models import INTERACTION_CLASSES, Kernels  # noqa: E402

DATA = demo.folder()
torch.set_num_threads(1)  # small models; more threads only wait for one another
DOCS = {
    "d1": "the nurse took care of the patients on the ward",
    "d2": "football is played by two teams of eleven players on a long field of grass in the open air",
    "d3": "a nurse",
    "d4": "",
    "d5": "zyzzyva",
}
QUERIES = {"q1": "who is a nurse", "q2": "zyzzyva qwertz", "q3": "football"}
RUN = {query: {doc: float(place) for place, doc in enumerate(DOCS)} for query in QUERIES}


def made(kind: str, **options: Any) -> tuple[Any, Any]:
    """An untrained model, and the pairs as it reads them."""
    pairs = candidates(RUN, DOCS, QUERIES)
    vocabulary = Vocabulary.of([text for doc, text in DOCS.items() if doc != "d5"], [QUERIES["q1"]], least=1)
    model, settings_class = INTERACTION_CLASSES[kind]
    chosen = settings_class(dimension=16, **options)
    torch.manual_seed(0)
    module = model(vocabulary, chosen, random_vectors(len(vocabulary), 16, 0))
    return module, WordPairs(pairs, vocabulary, chosen, FirstStage(0.0, 1.0))


@pytest.mark.parametrize("kind", INTERACTION)
def test_a_score_does_not_depend_on_what_else_is_in_the_batch(kind: str) -> None:
    module, pairs = made(kind)
    rows = np.arange(15)
    together = scored(module, pairs, rows)
    alone = np.concatenate([scored(module, pairs, rows[i : i + 1]) for i in rows])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", INTERACTION)
@pytest.mark.parametrize("idf", [True, False])
@pytest.mark.parametrize("exact_match", [True, False])
def test_every_switch_gives_a_model_that_learns(kind: str, idf: bool, exact_match: bool) -> None:
    module, pairs = made(kind, idf=idf, exact_match=exact_match)
    module(*pairs.batch(np.arange(15))).square().sum().backward()
    moved = [name for name, each in module.named_parameters() if each.grad is not None and each.grad.any()]
    assert moved and (kind == "drmm" or "embedding.weight" in moved)


@pytest.mark.parametrize("kind", INTERACTION)
def test_frozen_vectors_stay_as_they_are(kind: str) -> None:
    module, pairs = made(kind, train_embeddings=False)
    module(*pairs.batch(np.arange(15))).sum().backward()
    assert module.embedding.weight.grad is None


@pytest.mark.parametrize("kind", INTERACTION)
def test_the_first_stage_counts_only_where_it_is_asked_for(kind: str) -> None:
    for with_it in (True, False):
        module, pairs = made(kind, with_first_stage=with_it)
        before = scored(module, pairs, np.arange(15))
        pairs.first = pairs.first + 7
        assert np.allclose(scored(module, pairs, np.arange(15)) - before, 7 if with_it else 0, atol=1e-4)


def test_a_word_without_a_vector_is_like_itself_and_no_other() -> None:
    module, pairs = made("knrm")
    query, document, _ = pairs.batch(np.array([5]))  # q2, d5: the best of the run comes first
    match = module.match(query, document)
    assert match.cosine[0, :, 0].tolist() == [1.0, 0.0]


def test_kernels_have_the_gradient_that_autograd_finds() -> None:
    kernels = Kernels(11, 0.1, exact=True)
    similar = (torch.rand(2, 3, 5, dtype=torch.float64) * 2 - 1).requires_grad_()
    ones = torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 5, dtype=torch.float64)

    def by_hand(s: Any) -> Any:
        near = torch.exp(-((s.unsqueeze(3) - kernels.means) ** 2) / (2 * kernels.widths**2)).sum(2)
        return (near.clamp(min=1e-10).log() * 0.1).sum(1)

    mine = kernels(similar, ones[1], ones[0])
    assert torch.allclose(mine, by_hand(similar), rtol=1e-4)
    gradient = torch.autograd.grad(mine.sum(), similar)[0]
    assert torch.allclose(gradient, torch.autograd.grad(by_hand(similar).sum(), similar)[0], rtol=1e-3)


def test_an_exact_match_has_the_last_bin_of_drmm_for_itself() -> None:
    module, pairs = made("drmm")
    counts = module._histograms(module.match(*pairs.batch(np.array([2]))[:2]))[0].exp() - 1  # q1, d3: a nurse
    assert [round(float(each), 3) for each in counts[:, -1]] == [0.0, 0.0, 1.0, 1.0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on half of the demo queries."""
    folder = tmp_path_factory.mktemp("trained")
    queries = (DATA / "queries.tsv").read_text().splitlines()
    (folder / "train.tsv").write_text("\n".join(queries[:40]) + "\n")
    (folder / "test.tsv").write_text("\n".join(queries[40:]) + "\n")
    files = ["--docs", str(DATA / "docs.tsv"), "--queries", str(folder / "train.tsv"), "--qrels"]
    files += [str(DATA / "qrels.txt"), "--run", str(DATA / "bm25.run")]
    (folder / "config.toml").write_text("epochs = 2\nbatch = 16\n")
    more = ["--config", str(folder / "config.toml"), "--set", "dimension=16"]
    assert main(["train", "--ranker", "pacrr", *files, *more, "-o", str(folder / "pacrr")]) == 0
    return folder


def test_rerank_orders_the_candidates_and_leaves_the_rest(model: Path, tmp_path: Path) -> None:
    arguments = ["rerank", "--model", str(model / "pacrr"), "--run", str(DATA / "bm25.run")]
    arguments += ["--docs", str(DATA / "docs.tsv"), "--depth", "5", "-o", str(tmp_path / "out.run")]
    first = read_run(DATA / "bm25.run")
    test = set(read_queries(model / "test.tsv")["query_id"])
    write_run(first.filter(pl.col("query_id").is_in(list(test))), tmp_path / "first.run", name="x")
    arguments[4] = str(tmp_path / "first.run")
    assert main([*arguments, "--queries", str(model / "test.tsv")]) == 0
    found = read_run(tmp_path / "out.run")
    top = first.filter(pl.col("rank") <= 5, pl.col("query_id").is_in(list(test)))
    both = ["query_id", "doc_id"]
    assert found.select(both).sort(both).equals(top.select(both).sort(both))
    assert main([*arguments, "--queries", str(model / "test.tsv"), "--keep-rest"]) == 0
    whole = read_run(tmp_path / "out.run")
    below = whole.filter(pl.col("rank") > 5).select("query_id", "doc_id", "rank")
    expected = first.filter(pl.col("rank") > 5, pl.col("query_id").is_in(list(test)))
    assert below.sort("query_id", "rank").equals(
        expected.select("query_id", "doc_id", "rank").sort("query_id", "rank")
    )


def test_rerank_refuses_training_queries_with_exit_code_2(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["rerank", "--model", str(model / "pacrr"), "--run", str(DATA / "bm25.run")]
    arguments += ["--docs", str(DATA / "docs.tsv"), "--queries", str(DATA / "queries.tsv")]
    arguments += ["-o", str(tmp_path / "out.run")]
    assert main(arguments) == 2
    assert "40 of the 60 queries, such as" in capsys.readouterr().err
    assert not (tmp_path / "out.run").exists()
    assert main([*arguments, "--allow-training-queries"]) == 0


def test_only_the_queries_of_the_run_are_checked(model: Path, tmp_path: Path) -> None:
    new = read_queries(model / "test.tsv")["query_id"].to_list()
    first = read_run(DATA / "bm25.run").filter(pl.col("query_id").is_in(new))
    write_run(first, tmp_path / "first.run", name="x")
    arguments = ["rerank", "--model", str(model / "pacrr"), "--run", str(tmp_path / "first.run")]
    arguments += ["--docs", str(DATA / "docs.tsv"), "--queries", str(DATA / "queries.tsv")]
    assert main([*arguments, "-o", str(tmp_path / "out.run")]) == 0
    found = er.rerank(model / "pacrr", first, DATA / "docs.tsv", DATA / "queries.tsv")
    assert found["query_id"].n_unique() == len(new)


def test_an_open_model_is_like_its_folder(model: Path) -> None:
    from evenrank.rankers.neural.saved import open_ranker

    opened = open_ranker(model / "pacrr")
    for hybrid in (False, True):
        by_folder, by_object = (
            er.rerank(each, RUN, DOCS, QUERIES, hybrid=hybrid) for each in (model / "pacrr", opened)
        )
        assert by_object.equals(by_folder)
    files = [DATA / name for name in ("bm25.run", "docs.tsv", "queries.tsv")]
    with pytest.raises(InputError, match=r"40 of the 60 queries.*trained this model"):
        er.rerank(opened, *files)
    assert len(er.rerank(opened, *files, depth=1, allow_training_queries=True)) == 60


def test_what_cannot_score_is_no_model() -> None:
    with pytest.raises(InputError, match="an object with score; found: int"):
        er.rerank(7, RUN, DOCS, QUERIES)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("hybrid", "weight=abc", "weight is 'abc'; it must be a number"),
        ("bi-encoder", "max_length=abc", "max_length is 'abc'; it must be a whole number"),
        ("cross-encoder:x", "batch=0", "batch is 0; it must be a whole number from 1 on"),
        ("llm", "words=abc", "words is 'abc'; it must be a whole number"),
    ],
)
def test_rerank_names_a_setting_of_the_wrong_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, given: str, said: str
) -> None:
    files = ["--run", "bm25.run", "--docs", "docs.tsv", "--queries", "queries.tsv"]
    files[1::2] = [str(DATA / each) for each in files[1::2]]
    out = ["-o", str(tmp_path / "out.run")]
    assert main(["rerank", "--model", name, "--set", given, *files, *out]) == 2
    assert said in capsys.readouterr().err


def test_a_trained_model_is_a_ranker_by_its_folder(model: Path, tmp_path: Path) -> None:
    index = er.index(DATA / "docs.tsv", tmp_path / "idx")
    queries = read_queries(model / "test.tsv")
    found = er.search(index, queries, ranker=str(model / "pacrr"), depth=20, candidates=10)
    plain = er.search(index, queries, ranker="bm25", depth=20)
    assert (
        found.select("query_id", "doc_id")
        .sort("query_id", "doc_id")
        .equals(plain.select("query_id", "doc_id").sort("query_id", "doc_id"))
    )
    assert not found.select("doc_id").equals(plain.select("doc_id"))
    short = er.search(index, queries, ranker=str(model / "pacrr"), depth=5, candidates=10)
    assert short.equals(found.filter(pl.col("rank") <= 5)), "a short list is the head of a longer one"
    with pytest.raises(InputError, match="trained this model or decided when to stop"):
        er.search(index, model / "train.tsv", ranker=str(model / "pacrr"))
    arguments = ["search", "--index", str(tmp_path / "idx"), "--queries", str(model / "test.tsv")]
    arguments += ["--ranker", str(model / "pacrr"), "--set", "candidates=10", "-o", str(tmp_path / "s.run")]
    assert main(arguments) == 0


def test_an_audit_searches_with_rankers_by_name_and_by_folder(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where the index is built
    arguments = [
        "audit",
        "ARaB@10",
        "--ranker",
        "bm25",
        "--ranker",
        f"mine={model / 'pacrr'}",
        "--depth",
        "20",
    ]
    arguments += ["--resamples", "0", "--format", "json", "-o", str(tmp_path / "audit")]
    files = ["--docs", str(DATA / "docs.tsv"), "--queries", str(model / "test.tsv")]
    assert main([*arguments, *files]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [each["run"] for each in printed["runs"]] == ["bm25", "mine"]
    assert read_run(tmp_path / "audit" / "runs" / "mine.run")["rank"].max() == 20
    assert main([*arguments, *files, "--ranker", "bm25"]) == 2
    assert "two runs are called 'bm25'" in capsys.readouterr().err
    assert main(arguments) == 2
    assert "give --docs and --queries" in capsys.readouterr().err
    assert main([*arguments, *files, "--ranker", "perfect"]) == 2
    assert "it searches no collection" in capsys.readouterr().err
    assert main([*arguments[:-2], *files]) == 2
    assert "name its folder with -o DIR" in capsys.readouterr().err
    files[-1] = str(model / "train.tsv")
    assert main([*arguments, *files]) == 2
    assert "40 of the 40 queries, such as" in capsys.readouterr().err
    arguments[-1] = str(tmp_path / "other")
    assert main([*arguments, *files]) == 2
    assert not (tmp_path / "other").exists(), "training queries are refused before the first search"


@pytest.mark.slow
def test_a_server_offers_a_model_by_the_name_of_its_folder(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra 'serve'")
    from evenrank.server.searching import Service

    index = er.index(DATA / "docs.tsv", tmp_path / "idx")
    service = Service(index, rankers=["bm25", str(model / "pacrr")])
    assert list(service.rankers) == ["bm25", "pacrr"]
    trained_on = read_queries(model / "train.tsv")["text"][0]
    assert service.search(trained_on, "pacrr", depth=5, constrain=0.1).doc_ids
    with pytest.raises(InputError, match="two rankers are called 'pacrr'"):
        Service(index, rankers=[str(model / "pacrr"), str(model / "pacrr")])


def test_hybrid_adds_the_first_stage(model: Path) -> None:
    from evenrank.rankers.neural.saved import open_ranker

    opened = open_ranker(model / "pacrr")
    pairs = candidates(RUN, DOCS, QUERIES)
    gap = opened.hybrid().score(pairs) - opened.reranker.score(pairs)
    np.testing.assert_allclose(gap, opened.hybrid_weight * pairs.first, atol=1e-9)


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither the folder of a trained model nor one of: hybrid"):
        er.rerank("bert", RUN, DOCS, QUERIES)
    with pytest.raises(InputError, match="has to be trained, or named"):
        er.rerank("cross-encoder", RUN, DOCS, QUERIES)


class Scoring:
    """A model of a user's own."""

    name = "own"

    def __init__(self, scores: object) -> None:
        self.scores = scores

    def score(self, pairs: object, progress: object = None) -> object:
        return self.scores

    def describe(self) -> dict[str, object]:
        return {}


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1.0], "scores of the shape .1,.; one for each pair is .2,."),
        (["a", "b"], "the model gave scores that are no numbers"),
    ],
)
def test_scores_of_an_own_model_are_checked(scores: list[object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        er.rerank(Scoring(scores), {"q": {"a": 2.0, "b": 1.0}}, {"a": "x", "b": "y"}, {"q": "z"})


def test_an_empty_query_is_named() -> None:
    with pytest.raises(InputError, match="query 'q' is empty; leave it out"):
        er.rerank(Scoring([1.0]), {"q": {"a": 2.0}}, {"a": "x"}, {"q": " ", "r": "z"})


def test_a_document_that_the_collection_lacks_is_named() -> None:
    with pytest.raises(
        InputError, match="lacks 1 of the 1 documents that are ranked or named, such as 'gone'"
    ):
        candidates({"q1": {"gone": 1.0}}, DOCS, QUERIES)
