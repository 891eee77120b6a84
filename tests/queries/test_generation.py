"""Generated queries: seeded by the document alone, gone on with, filtered, and measured beside real ones."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli.app import app
from evenrank.cli.common import Format
from evenrank.cli.generate import rendered
from evenrank.queries import generate as generating
from evenrank.queries.extractive import question
from evenrank.queries.generate import draw, examples
from evenrank.queries.generated import distance, read_generated

HERE = demo.folder()
DOCS = er.load(HERE).docs
GIVEN = {"queries": HERE / "queries.tsv", "qrels": HERE / "qrels.txt"}

needs_transformers = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("torch", "transformers", "tokenizers", "accelerate", "datasets"))),
    reason="needs transformers, of the extra 'generate'",
)


class Counting:
    """A writer that says what it was asked, and breaks when told to."""

    prefix, label = "gen", "counting"

    def __init__(self, breaks_after: int | None = None) -> None:
        self.asked: list[str] = []
        self.breaks_after = breaks_after

    def describe(self) -> dict[str, Any]:
        return {"writer": "counting"}

    def write(self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int) -> list[list[str]]:
        if self.breaks_after is not None and len(self.asked) >= self.breaks_after:
            raise KeyboardInterrupt
        self.asked += doc_ids
        return [[f"what about {doc_id} {number}" for number in range(n)] for doc_id in doc_ids]


def test_extractive_queries_say_so_in_their_ids_and_are_made_of_their_document() -> None:
    found = er.generate(DOCS, 2, "extractive", seed=1)
    assert found.queries["query_id"].str.starts_with("ext-").all()
    texts = dict(DOCS.frame().iter_rows())
    for _, doc_id, text in found.queries.iter_rows():
        held = texts[doc_id].lower()
        assert all(word in held for word in text.split()[2:])
    assert found.qrels().height == len(found)


def test_the_year_that_is_asked_for_is_not_in_the_question() -> None:
    assert "1898" not in question("Marie Curie discovered polonium in 1898.")


def test_what_is_drawn_for_a_document_depends_on_no_other() -> None:
    everything = er.generate(DOCS, 1, "extractive", seed=3).queries
    some = er.generate(DOCS, 1, "extractive", sample=20, seed=3).queries
    assert some["doc_id"].n_unique() == 20
    assert some.rows() == everything.join(some, on="query_id", how="semi", maintain_order="left").rows()
    backwards = DOCS.frame().reverse()
    again = er.generate(backwards, 1, "extractive", sample=20, seed=3).queries
    assert sorted(again.rows()) == sorted(some.rows())


def test_an_interrupted_call_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generating, "BATCH", 10)
    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        er.generate(DOCS, 1, Counting(breaks_after=30), checkpoints=parts)
    writer = Counting()
    found = er.generate(DOCS, 1, writer, checkpoints=parts)
    ids = DOCS.frame()["doc_id"].to_list()
    assert writer.asked == ids[30:] and found.queries["doc_id"].to_list() == ids
    found.write(tmp_path / "made.tsv")
    read = read_generated(tmp_path / "made.tsv")
    assert read.queries.equals(found.queries) and read.provenance["writer"] == "counting"
    er.generate(DOCS, 1, Counting(breaks_after=0), checkpoints=parts)  # finished: nothing is written again


def test_parts_of_other_settings_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generating, "BATCH", 10)
    with pytest.raises(KeyboardInterrupt):
        er.generate(DOCS, 1, Counting(breaks_after=30), checkpoints=tmp_path / "parts")
    writer = Counting()
    er.generate(DOCS, 1, writer, checkpoints=tmp_path / "parts", seed=1)
    assert len(writer.asked) == DOCS.frame().height


def test_the_report_of_another_file_is_not_read(tmp_path: Path) -> None:
    first, second = (er.generate(DOCS, 1, "extractive", seed=seed) for seed in (0, 1))
    first.write(tmp_path / "a.tsv")
    assert read_generated(tmp_path / "a.tsv").provenance["seed"] == 0
    content = second.queries.write_csv(separator="\t")
    (tmp_path / "a.tsv").write_text(content)
    assert read_generated(tmp_path / "a.tsv").provenance == {}


def test_documents_without_a_word_get_no_query_and_are_counted() -> None:
    writer = Counting()
    found = er.generate({"a": "", "b": " \t ", "c": "...", "d": "a word"}, 2, writer)
    assert writer.asked == ["d"] and found.queries["doc_id"].to_list() == ["d", "d"]
    assert found.left_out == {"nothing was written": 6}


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=10),
    st.floats(0.2, 2.0),
    st.floats(0, 1, exclude_max=True),
    st.randoms(use_true_random=False),
)
def test_a_token_is_drawn_whatever_the_order_of_its_rivals(
    values: list[float], temperature: float, chance: float, random: Any
) -> None:
    tokens = list(range(len(values)))
    order = random.sample(tokens, len(tokens))
    given_values, given_tokens = np.array(values), np.array(tokens)
    drawn = draw(given_values, given_tokens, temperature, chance)
    assert drawn in tokens
    assert drawn == draw(given_values[order], given_tokens[order], temperature, chance)


def test_tokens_are_drawn_as_often_as_the_softmax_says() -> None:
    values, tokens = np.array([0.0, 0.7, -0.7]), np.array([5, 2, 9])
    chances = (np.arange(3000) + 0.5) / 3000
    drawn = [draw(values, tokens, 0.7, chance) for chance in chances]
    weights = np.exp([0.0, 1.0, -1.0])
    shares = [drawn.count(token) / 3000 for token in (5, 2, 9)]
    assert shares == pytest.approx(weights / weights.sum(), abs=1e-3)


def test_examples_are_pairs_that_belong_together() -> None:
    found = examples(DOCS, **GIVEN, shots=5, seed=0)
    asked_for = dict(er.load(HERE).queries.iter_rows())
    texts = dict(DOCS.frame().iter_rows())
    good = {
        (texts[doc_id], asked_for[query_id])
        for query_id, doc_id, grade in er.load(HERE).qrels.iter_rows()
        if grade > 0
    }
    assert len(found) == 5 and set(found) <= good
    assert found == examples(None, None, None, 5, 0), "without any, those of the demo"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> er.Index:
    return er.index(DOCS, tmp_path_factory.mktemp("generation") / "index")


def made(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "text"], orient="row")


def test_filters_count_each_query_where_it_falls_first(index: er.Index) -> None:
    text = dict(DOCS.frame().iter_rows())["d001"].split()
    own = " ".join(text[:6])
    rows = made(
        ("a", "d001", own),
        ("b", "d001", own.upper()),
        ("c", "d001", "too short"),
        ("d", "d001", "quantum chromodynamics of gluons"),
    )
    found = er.filter_generated(rows, index, top=3, answerable=0.5)
    assert found.queries["query_id"].to_list() == ["a"]
    assert list(found.left_out.values()) == [1, 1, 1]
    kept = er.filter_generated(rows, index, answerable=0.5).queries["query_id"].to_list()
    assert kept == ["a"], "whose terms are not in the document goes"


def test_a_filter_on_documents_asks_for_an_index() -> None:
    with pytest.raises(InputError, match="give an index"):
        er.filter_generated(made(("a", "d001", "a b c")), top=3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"words": (10, 3)}, "at least 10 and at most 3 words"),
        ({"answerable": float("nan")}, "answerable is nan; it must be a number from 0 to 1"),
        ({"answerable": 2}, "answerable is 2"),
        ({"top": 0}, "top is 0"),
    ],
)
def test_filters_that_cannot_be_used_are_refused(given: dict[str, Any], said: str, index: er.Index) -> None:
    with pytest.raises(InputError, match=said):
        er.filter_generated(made(("a", "d001", "a b c")), index, **given)


def test_an_index_of_another_collection_is_refused(tmp_path: Path, index: er.Index) -> None:
    other = er.index({"x1": "boats at sea", "x2": "a farm"}, tmp_path / "other")
    rows = made(("a", "d001", "work on a farm"), ("b", "x1", "boats at the sea"))
    lacking = r"other: the index lacks 1 of the 2 documents .* such as 'd001'"
    with pytest.raises(InputError, match=lacking):
        er.filter_generated(rows, other, top=3)
    with pytest.raises(InputError, match=lacking):
        er.filter_generated(rows, other, answerable=0.5)
    with pytest.raises(InputError, match="the index lacks 1 of the 2 documents"):
        er.closeness(rows, other)
    command = ("--docs", HERE / "docs.tsv", "-o", tmp_path / "made.tsv", "--report")
    said = refused(*command, "--index", tmp_path / "other")
    assert "the index lacks" in said and not (tmp_path / "made.tsv").exists()


def test_real_queries_of_documents_outside_the_collection_are_left_out_and_counted(index: er.Index) -> None:
    queries, qrels = er.load(HERE).queries, er.load(HERE).qrels
    judged = {query: {} for query in queries["query_id"]}
    for query, doc_id, grade in qrels.iter_rows():
        judged[query][doc_id] = grade
    own = er.generate(DOCS, 1, "extractive")
    before = er.closeness(own, index, queries=queries, qrels=judged)
    texts = {**dict(queries.iter_rows()), "far": "boats at sea"}
    after = er.closeness(own, index, queries=texts, qrels={**judged, "far": {"nowhere": 1}})
    assert (before.outside, after.outside) == (0, 1)
    assert after == replace(before, outside=1)
    assert "1 real query is left out: no document of theirs" in rendered(after, Format.table)
    assert rendered(after, Format.csv).splitlines()[0].startswith(",queries,round-trip RR@10,")


def test_extractive_queries_find_their_document_more_often_than_real_ones_do(index: er.Index) -> None:
    found = er.closeness(er.generate(DOCS, 1, "extractive"), index, **GIVEN)
    assert found.real is not None and found.real.distance is not None
    assert found.generated.round_trip > found.real.round_trip
    assert found.generated.overlap > 0.8 > found.real.overlap
    assert 0 <= found.real.distance < (found.generated.distance or 0) <= 1


words = st.lists(st.sampled_from(["he", "she", "it", "who"]), min_size=1, max_size=8).map(" ".join)


@given(words, words)
def test_the_distance_is_symmetric_and_bounded(a: str, b: str) -> None:
    assert distance([a], [b]) == pytest.approx(distance([b], [a]))
    assert 0 <= distance([a], [b]) <= 1
    assert distance([a], [a]) == 0


def test_the_command_writes_queries_and_how_they_were_made(tmp_path: Path) -> None:
    out = tmp_path / "made.tsv"
    command = ["generate", "--docs", str(HERE / "docs.tsv"), "--model", "extractive", "-o", str(out)]
    done = CliRunner().invoke(app, [*command, "--n", "2", "--min-words", "5"])
    assert done.exit_code == 0, done.output
    table = pl.read_csv(out, separator="\t")
    assert table.columns == ["query_id", "doc_id", "text"]
    said = json.loads((tmp_path / "made.json").read_text())
    assert said["queries"] == len(table) and said["provenance"]["writer"] == "extractive"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.json", "made.tsv"]
    assert er.classify(out)["query_id"].to_list() == table["query_id"].to_list()


def refused(*arguments: object) -> str:
    """What `evenrank generate` says when it refuses."""
    command = ["generate", "--model", "extractive", *map(str, arguments)]
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


REAL = ("--queries", HERE / "queries.tsv", "--qrels", HERE / "qrels.txt")


@pytest.mark.parametrize("name", ["docs.tsv", "docs.json", "queries.tsv", "qrels.tsv"])
def test_no_input_is_replaced_by_queries(name: str, tmp_path: Path) -> None:
    rows = DOCS.frame().head(5)
    lines = [f"{doc_id}\t{text}\n" for doc_id, text in rows.iter_rows()]
    contents = {
        "docs.tsv": "".join(lines),
        "docs.json": rows.write_ndjson(),
        "queries.tsv": (HERE / "queries.tsv").read_text(),
        "qrels.tsv": (HERE / "qrels.txt").read_text(),
    }
    for each, content in contents.items():
        (tmp_path / each).write_text(content)
    docs = name if name.startswith("docs") else "docs.tsv"
    real = ("--queries", tmp_path / "queries.tsv", "--qrels", tmp_path / "qrels.tsv")
    out = (tmp_path / name).with_suffix(".tsv")  # its report would stand in docs.json
    if name == "docs.json":
        (tmp_path / "docs.tsv").unlink()
    assert "the input itself" in refused("--docs", tmp_path / docs, *real, "-o", out)
    assert (tmp_path / name).read_text() == contents[name]


@pytest.mark.parametrize("name", ["made.jsonl", "made.parquet", "made.csv", "made.tsv.gz", "made"])
def test_a_name_that_promises_another_format_is_refused(name: str, tmp_path: Path) -> None:
    said = refused("--docs", HERE / "docs.tsv", "-o", tmp_path / name)
    assert "end the name in .tsv" in said and not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"end the name in \.tsv"):
        er.generate(DOCS, 1, "extractive", sample=1).write(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--min-words", 10, "--max-words", 3), "at least 10 and at most 3 words"),
        (("--report", "--index", "nothere"), "no such index"),
        (("--queries", "nothere.tsv", "--qrels", HERE / "qrels.txt"), "no such file"),
        (("--queries", HERE / "queries.tsv", "--qrels", "nothere"), "no such file"),
        (("-o", "folder.tsv"), "this is a folder"),
        (("-o", "others.txt/made.tsv"), "others.txt: this is not a folder"),
    ],
)
def test_what_cannot_work_is_refused_before_queries_are_made(
    arguments: tuple[object, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.tsv").mkdir()
    (tmp_path / "others.txt").write_text("unknown 0 d001 1\n")
    monkeypatch.setattr(generating, "_batches", lambda *given: pytest.fail("queries are made"))
    assert said in refused("--docs", HERE / "docs.tsv", "-o", "made.tsv", *arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.tsv", "others.txt"]


@pytest.mark.parametrize("doc_id", ["a\tb", "a\nb", "a\rb"])
def test_an_id_that_would_break_a_line_is_refused_before_queries_are_made(doc_id: str) -> None:
    docs = {"d": "Marie Curie discovered polonium.", doc_id: "Pierre Curie discovered radium."}
    writer = Counting()
    with pytest.raises(InputError, match=r"doc_id .* has a tab or a line end"):
        er.generate(docs, 1, writer)
    assert not writer.asked


@pytest.mark.parametrize("count", [5, 10, 20, 30])
def test_distances_are_on_as_many_queries(count: int, index: er.Index) -> None:
    judged = er.load(HERE).qrels.filter(pl.col("relevance") > 0).select("query_id", "doc_id")
    real = judged.join(er.load(HERE).queries, on="query_id", maintain_order="left")
    once = real.unique("query_id", maintain_order=True).select("query_id", "doc_id", "text")
    half = np.array_split(np.random.default_rng(0).permutation(len(once)), 2)[0]
    found = er.closeness(once[half[:count]], index, **GIVEN)
    assert found.real is not None and found.compared == count
    assert found.generated.distance == pytest.approx(found.real.distance)


def test_the_report_says_how_many_queries_the_distance_is_on(tmp_path: Path) -> None:
    command = ["generate", "--docs", HERE / "docs.tsv", "--model", "extractive", "--sample", 12, *REAL]
    done = CliRunner().invoke(app, [str(each) for each in (*command, "--report", "-o", tmp_path / "m.tsv")])
    kept = len(read_generated(tmp_path / "m.tsv"))
    assert f"JS distance: {kept} queries of each" in done.stdout, done.output


# With models as small as can be, which write nonsense


def tiny(folder: Path, kind: str, places: int = 2048, seed: int = 0) -> Path:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.set_num_threads(1)
    known = sorted({word for text in DOCS.frame()["text"].to_list() for word in text.lower().split()})[:150]
    known += ["Passage", "Question", ":", "work"]
    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", "\n", *known])}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    size = len(vocabulary)
    torch.manual_seed(seed)
    if kind == "gpt2":  # has a vector for each place, and none beyond
        few = transformers.GPT2Config(
            vocab_size=size,
            n_embd=16,
            n_layer=1,
            n_head=2,
            n_positions=places,
            eos_token_id=1,
            bos_token_id=1,
        )
        model: Any = transformers.GPT2LMHeadModel(few)
    elif kind == "causal":
        made_of = transformers.LlamaConfig(
            vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, eos_token_id=1, bos_token_id=1, pad_token_id=0,
            initializer_range=0.5,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(made_of)
    else:
        settled = transformers.T5Config(
            vocab_size=size, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, eos_token_id=1,
            pad_token_id=0, decoder_start_token_id=0, initializer_factor=5.0,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(settled)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@needs_transformers
@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_a_language_model_writes_the_same_whatever_it_writes_beside(kind: str, tmp_path: Path) -> None:
    model = tiny(tmp_path / kind, kind)
    texts = dict(DOCS.frame().head(9).iter_rows())
    together = er.generate(texts, 2, model, batch=8, longest=8).queries
    alone = er.generate(texts, 2, model, batch=1, longest=8).queries
    assert together.rows() == alone.rows()
    assert together["text"].n_unique() > 3
    other = er.generate(texts, 2, model, longest=8, seed=1).queries
    assert other.rows() != together.rows()


@needs_transformers
def test_a_document_is_shortened_to_the_places_that_a_model_has(tmp_path: Path) -> None:
    model = tiny(tmp_path / "few", "gpt2", places=40)
    long = {"d": "work " * 200}
    assert len(er.generate(long, 1, model, shots=0, longest=8)) == 1
    with pytest.raises(InputError, match=r"reads 40 tokens.*use fewer examples"):
        er.generate(long, 1, model, shots=5, longest=8)
    with pytest.raises(InputError, match="reads 40 tokens"):
        er.generate(long, 1, model, shots=0, longest=50)


@needs_transformers
def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be loaded"):
        er.generate({"d": "x"}, model=tmp_path)
