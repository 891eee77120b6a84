"""Training with less bias: losses, adversary, mirrored texts, and sweeps over them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn_cases
from hypothesis import strategies as st

import evenrank as er
from evenrank import InputError, demo
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run

torch = pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
from evenrank.rankers.neural.interaction import Vocabulary  # noqa: E402
from evenrank.training.adversary import auc, pair_labels, probe, probe_ranker, probe_rows, reverse  # noqa: E402
from evenrank.training.card import _probe as probe_section  # noqa: E402
from evenrank.training.dataset import (  # noqa: E402
    MARK,
    augmented,
    make_examples,
    twinned,
)
from evenrank.training.fitting import Recipe  # noqa: E402
from evenrank.training.losses import LOSSES, Objective, is_biased, pair_bias  # noqa: E402
from evenrank.training.trainer import train_ranker  # noqa: E402

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
DATA = demo.folder()
QUICK: dict[str, Any] = {"epochs": 1, "hybrid": False, "batch": 32, "dimension": 8, "depth": 10}
FILES = {"docs": "docs.tsv", "queries": "queries.tsv", "qrels": "qrels.txt"}
SCORES = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]], dtype=torch.float64)
BIAS = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.2]], dtype=torch.float64)


def small() -> Any:
    run = read_run(DATA / "bm25.run").filter(pl.col("rank") <= 10)
    return make_examples(run, DATA / "docs.tsv", DATA / "queries.tsv", DATA / "qrels.txt", dev_share=0.3)


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
        ({"loss_strength": 2.0}, "the loss softmax has no strength"),
        ({"loss": "list-bias", "loss_strength": -1.0}, "loss_strength is -1.0"),
        ({"adversary": -1.0}, "adversary is -1.0"),
        ({"adversary": 1.0}, "knrm has no vector for an adversary"),
        ({"mirror": "both"}, "mirror is 'both'; choose one of: none"),
        ({"mirror_strength": 1.0}, "mirror_strength is for mirror=consistency"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(tmp_path / "m", **settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lexicon": "nosuch"}, "lexicon is for losses that look at bias .*; this training has none"),
        ({"labels": "nofile.tsv"}, "labels is for losses that look at bias"),
        ({"labels": "nofile.tsv", "loss": "list-bias"}, "labels is for bias=label; bias is tf"),
        ({"loss": "list-bias", "bias": "AWRF@10"}, "AWRF@10 is not a sum over documents"),
        ({"per_group": 3}, "per_group is for negatives that are named"),
        ({"bias": "count"}, "bias is for losses that look at bias"),
        ({"bias": "count", "mirror": "augment"}, "bias is for losses that look at bias"),
        ({"adversary_labels": "group"}, "adversary_labels is what an adversary reads"),
        ({"adversary_labels": "neutrality"}, "adversary_labels is what an adversary reads"),
    ],
)
def test_what_nothing_would_read_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(tmp_path / "m", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"loss": "negative-bias"}, "all documents are equally one-sided by tf, so the loss negative-bias"),
        ({"mirror": "augment"}, "no text that is learned from changes when it is mirrored"),
        ({"mirror": "consistency"}, "no text that is learned from changes when it is mirrored"),
    ],
)
def test_what_would_change_nothing_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    docs = {f"d{n}": text for n, text in enumerate(["rain over hills", "wind and hail", "fog in valleys"])}
    queries = {f"q{n}": text for n, text in enumerate(["rain", "wind", "fog"])}
    run = {query: {doc: -float(n) for n, doc in enumerate(docs)} for query in queries}
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(3)}
    with pytest.raises(InputError, match=said):
        train_ranker("knrm", docs, queries, qrels, tmp_path / "m", run=run, **{**QUICK, **given})
    assert not list(tmp_path.iterdir())


def test_labels_that_call_every_document_one_sided_are_refused(tmp_path: Path) -> None:
    labels = dict.fromkeys(er.load(DATA).docs.frame()["doc_id"], "x")
    with pytest.raises(InputError, match=r"equally one-sided by label.*check labels"):
        train(tmp_path / "m", loss="negative-bias", bias="label", labels=labels)


def test_a_loss_by_labels_names_no_lexicon(tmp_path: Path) -> None:
    ids = er.load(DATA).docs.frame()["doc_id"].to_list()
    labels = {doc_id: "x" if place % 2 else "unknown" for place, doc_id in enumerate(ids)}
    found = train(tmp_path / "m", loss="negative-bias", bias="label", labels=labels)
    assert found.ranker.config["facts"]["gender"] == {"bias": "label"}


def test_so_many_of_the_named_negatives_stand_in_a_group(tmp_path: Path) -> None:
    drawn = er.negatives(DATA / "bm25.run", DATA / "qrels.txt", er.tally(DATA / "docs.tsv"), n=8)
    found = train(tmp_path / "m", negatives=drawn.pairs(), per_group=5)
    assert found.ranker.config["recipe"]["negatives"] == 5


def test_the_command_takes_named_negatives_and_their_number_in_a_group(tmp_path: Path) -> None:
    from evenrank.cli import main

    drawn = er.negatives(DATA / "bm25.run", DATA / "qrels.txt", er.tally(DATA / "docs.tsv"), n=8)
    drawn.write(tmp_path / "n.jsonl", form="ids")
    files = [f"--{name}={DATA / file}" for name, file in {**FILES, "run": "bm25.run"}.items()]
    asked = ["train", "--ranker=knrm", *files, "-o", str(tmp_path / "m"), "--no-hybrid", "--set", "epochs=1"]
    assert main([*asked, "--set", "negatives=5", f"--negatives={tmp_path / 'n.jsonl'}"]) == 0
    assert json.loads((tmp_path / "m" / "config.json").read_bytes())["recipe"]["negatives"] == 5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--negatives=4", "--set", "negatives=5"], "negatives are given twice"),
        (["--negatives=²"], "²: "),
        (["--loss=hinge", "--set", "loss=softmax"], "loss is given twice, as an option and by --set"),
    ],
)
def test_what_contradicts_itself_is_refused(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    files = [f"--{name}={DATA / file}" for name, file in {**FILES, "run": "bm25.run"}.items()]
    asked = ["train", "--ranker=knrm", *files, "-o", str(tmp_path / "m"), "--no-hybrid", *more]
    assert main(asked) == 2
    assert said in capsys.readouterr().err


def test_the_command_refuses_what_nothing_would_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    files = [f"--{name}={DATA / file}" for name, file in FILES.items()]
    for option in ("--lexicon=nosuch", "--labels=nofile.tsv", "--bias=count", "--adversary-labels=group"):
        assert main(["train", "--ranker=knrm", *files, "-o", str(tmp_path / "m"), option]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_plain_training_of_a_sweep_may_be_given_what_its_others_read() -> None:
    from evenrank.mitigate.trained import RetrainSpec, TrainingMitigation

    run, queries = read_run(DATA / "bm25.run"), read_queries(DATA / "queries.tsv")
    test = run.filter(pl.col("query_id").is_in(queries["query_id"][40:].to_list()))
    settings = {key: value for key, value in QUICK.items() if key != "hybrid"}
    spec = RetrainSpec(
        "knrm", DATA / "docs.tsv", queries[:40], DATA / "qrels.txt", run=run, n=5,
        settings={**settings, "adversary_labels": "group"},
    )  # fmt: skip
    method = TrainingMitigation("negatives", spec, test, queries[40:], bias="count", lexicon="rekabsaz2020")
    assert len(method.apply(0.0)) == len(test)


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
    assert made.ranker.config["recipe"]["loss_strength"] == 2.0
    assert made.ranker.config["facts"]["gender"] == {"lexicon": "rekabsaz2020", "bias": "boolean"}


def test_mirrored_queries_are_copies_with_the_other_gender_and_dev_queries_have_none() -> None:
    found = small()
    more = augmented(found)
    old, new = found.pairs, more.pairs
    added = new.query_ids[len(old.query_ids) :]
    held = {each for each, dev in zip(old.query_ids, found.dev, strict=True) if dev}
    assert added and all(each.endswith(MARK) for each in added)
    assert not {each.removesuffix(MARK) for each in added} & held
    assert more.dev_rows().tolist() == found.dev_rows().tolist()
    for row in range(len(old), len(new)):
        query = old.queries[old.query_ids.index(new.query_ids[new.query[row]].removesuffix(MARK))]
        assert new.queries[new.query[row]] == er.swap(query)
        if row > len(old) + 50:
            break
    positives, against = more.groups()
    assert all(
        len({new.query[i] for i in [one, *rest]}) == 1 for one, rest in zip(positives, against, strict=True)
    )


def test_a_twin_is_the_same_query_with_the_mirrored_document() -> None:
    found = small()
    more = twinned(found)
    rows = np.flatnonzero(more.twin >= 0)  # type: ignore[operator]
    assert len(rows)
    pairs = more.pairs
    twins = more.twin[rows]  # type: ignore[index]
    assert (pairs.query[rows] == pairs.query[twins]).all()
    assert not (more.relevant | more.is_candidate | more.is_negative)[twins].any()
    for row, twin in zip(rows[:20], twins[:20], strict=True):
        assert pairs.documents[pairs.document[twin]] == er.swap(pairs.documents[pairs.document[row]])
    assert (np.diff(pairs.query) >= 0).all() or len({*pairs.query}) == 1 + int(
        (np.diff(pairs.query) != 0).sum()
    )


def test_consistency_costs_nothing_where_twins_score_alike() -> None:
    found = replace(twinned(small()), bias=None)

    def read(model: Any, rows: Any, with_vectors: bool) -> Any:
        return torch.from_numpy(values[rows]), None

    rows = np.flatnonzero(found.twin >= 0)[:8].reshape(2, 4)  # type: ignore[operator]
    recipe = Recipe(mirror="consistency", mirror_strength=3.0)
    objective = Objective(torch.nn.Identity(), read, recipe, found)
    values = np.zeros(len(found.pairs), np.float32)
    alike = float(objective(rows))
    values[found.twin[rows]] = 0.5  # type: ignore[index]
    assert float(objective(rows)) == pytest.approx(alike + 3 * 0.5)


@pytest.mark.parametrize("mirror", ["augment", "consistency"])
def test_models_learn_from_mirrored_texts(tmp_path: Path, mirror: str) -> None:
    made = train(tmp_path / "m", mirror=mirror)
    assert made.metrics["epochs"] and made.ranker.config["recipe"]["mirror"] == mirror


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
    card = "\n".join(probe_section(read))
    assert read["auc"] is None and "No fresh classifier was trained to tell gendered or not" in card
    assert said == ["no fresh probe of the vectors: one of its parts would have only pairs of one kind"]


@pytest.mark.parametrize("mirrored", [augmented, twinned])
def test_a_probe_leaves_mirrored_texts_out_and_has_the_same_parts_without_them(mirrored: Any) -> None:
    found = mirrored(small())
    for rows, plain in zip(probe_rows(found, 0), probe_rows(small(), 0), strict=True):
        asked = [found.pairs.query_ids[place] for place in found.pairs.query[rows]]
        assert asked == [small().pairs.query_ids[place] for place in small().pairs.query[plain]]
        assert found.pairs.document[rows].tolist() == small().pairs.document[plain].tolist()
    assert any(each.endswith(MARK) for each in found.pairs.doc_ids)
    for rows in probe_rows(found, 0):
        ids = [found.pairs.doc_ids[place] for place in found.pairs.document[rows]]
        ids += [found.pairs.query_ids[place] for place in found.pairs.query[rows]]
        assert ids and not any(each.endswith(MARK) for each in ids)


def test_auc_is_how_often_a_true_one_scores_above_another() -> None:
    assert auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])) == pytest.approx(0.75)
    assert auc(np.ones(4), np.array([0, 0, 1, 1])) == pytest.approx(0.5)


@drawn_cases(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12)
)
def test_weights_of_an_auc_are_how_often_pairs_are_there(pairs: list[tuple[int, bool, int]]) -> None:
    scores, truth, weights = (np.array(column, float) for column in zip(*pairs, strict=True))
    there = [(score, is_true) for score, is_true, times in pairs for _ in range(times)]
    good = [score for score, is_true in there if is_true]
    bad = [score for score, is_true in there if not is_true]
    found = auc(scores, truth, np.stack([weights, weights]))
    if good and bad:
        above = np.mean([(one > other) + (one == other) / 2 for one in good for other in bad])
        assert found == pytest.approx([above, above])
    else:
        assert np.isnan(found).all()


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


@pytest.mark.parametrize("kind", ["knrm", "head"])
def test_mirrored_texts_without_strength_change_nothing(tmp_path: Path, kind: str) -> None:
    more: dict[str, Any] = {"depth": 10, "epochs": 2}
    if kind == "head":
        pytest.importorskip("sentence_transformers")
        more["dimension"] = None
    found = [
        train(tmp_path / str(place), kind, **more, **mirrored)
        for place, mirrored in enumerate(({}, {"mirror": "consistency", "mirror_strength": 0.0}))
    ]
    assert found[0].metrics == found[1].metrics


def test_words_of_mirrored_texts_come_last() -> None:
    plain = Vocabulary.of(["a b", "a b c"], ["q"])
    more = Vocabulary.of(["a b", "a b c"], ["q"], more=(["a c z", "c z"], ["p"]))
    assert more.words[: len(plain)] == plain.words == ("a", "b", "q")
    assert more.words[len(plain) :] == ("p", "z"), "c stands in the others once: it stays unknown"
    assert more.idf[: len(plain)].tolist() == plain.idf.tolist() and more.unknown_idf == plain.unknown_idf


def test_a_model_tells_which_negatives_were_named(tmp_path: Path) -> None:
    drawn = er.negatives(DATA / "bm25.run", DATA / "qrels.txt", er.tally(DATA / "docs.tsv"), n=3)
    drawn.write(tmp_path / "n.jsonl", form="ids")
    train(tmp_path / "named", negatives=tmp_path / "n.jsonl")
    train(tmp_path / "table", negatives=drawn.pairs())
    of_file, of_table = (
        json.loads((tmp_path / name / "config.json").read_text())["facts"]["negatives"]
        for name in ("named", "table")
    )
    assert of_file["file"] == "n.jsonl" and "file" not in of_table
    assert of_file["pairs"] == of_table["pairs"] == drawn.frame.height
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


OWN = {
    "home": ("house", "family", "home"),
    "work": ("office", "work", "job"),
    "play": ("game", "team", "win"),
}


@pytest.mark.parametrize(
    ("lexicon", "what", "title", "told"),
    [
        (None, "neutrality", "gender", ["to tell gendered or not,", "of them gendered: "]),
        (None, "group", "gender", ["to tell which group (female, male),", "mean over the groups"]),
        (OWN, "group", "the groups", ["which group (home, work, play),", "of them with a group: "]),
        (OWN, "neutrality", "the groups", ["neutral or not (home, work, play),", "of them not neutral: "]),
    ],
)
def test_the_card_names_the_groups_that_a_probe_reads(
    lexicon: Any, what: str, title: str, told: list[str]
) -> None:
    found = small()
    found = replace(found, adversary_labels=pair_labels(found, what, lexicon=lexicon))
    random = np.random.default_rng(0)
    said: list[str] = []
    read = probe_ranker(
        found,
        lambda rows: random.standard_normal((len(rows), 4)).astype(np.float32),
        what,
        0,
        said.append,
        lexicon=lexicon,
    )
    card = "\n".join(probe_section(read))
    assert card.startswith(f"## What its vectors tell of {title}\n")
    assert all(each in card for each in told)
    assert lexicon is None or "gender" not in card + "".join(said)
    assert ("each against the rest" in card) == (what == "group")


def test_a_sweep_trains_at_each_strength_and_begins_with_plain_training() -> None:
    from evenrank.mitigate.trained import RetrainSpec

    queries = read_queries(DATA / "queries.tsv")
    run = read_run(DATA / "bm25.run")
    test = run.filter(pl.col("query_id").is_in(queries["query_id"][40:].to_list()))
    given = {key: value for key, value in QUICK.items() if key != "hybrid"}
    training = RetrainSpec(
        "knrm", DATA / "docs.tsv", queries[:40], DATA / "qrels.txt", run=run, n=5, settings=given
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
        for method in ("negatives", "augment")
    ]
    assert [curve.method for curve in curves] == ["negatives", "augment"]
    assert [point.strength for point in curves[0]] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    first = [curve.points[0].bias.value for curve in curves]
    assert first[0] == first[1], "both begin with the run of plain training"
    with pytest.raises(InputError, match="method cannot be"):
        er.sweep(test, er.tally(DATA / "docs.tsv"), method="negativs", qrels=DATA / "qrels.txt")
