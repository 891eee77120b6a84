from __future__ import annotations

import gzip
import json
import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenrank as er
from evenrank import demo
from evenrank.errors import InputError
from evenrank.text import tally as tally_module
from evenrank.text.lexicon import Lexicon
from evenrank.text.tally import Tally, tally_to_file

TEXTS = {"d1": "She met her brother.", "d2": "He left; his sister, her mother and his son did not.", "d3": ""}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A collection of several blocks."""
    path = tmp_path / "large.tsv"
    text = "she told him that his sister was there " * 40
    path.write_text("".join(f"d{i}\t{i} {text}\n" for i in range(10_000)))
    return path


def test_a_tally_counts_tokens_groups_and_log_words() -> None:
    tally = er.tally(TEXTS)
    assert tally.columns == ["doc_id", "tokens", "female", "male", "female_logwords", "male_logwords"]
    assert tally["tokens"].to_list() == [4, 11, 0]
    assert tally["female"].to_list() == [2, 3, 0]
    assert tally["male"].to_list() == [1, 4, 0]
    log = pytest.approx([0.693147, 0.693147 * 2 + 1.098612, 0.0], abs=1e-6)
    assert tally["male_logwords"].to_list() == log


def test_every_format_gives_the_same_tally(tmp_path: Path) -> None:
    rows = [{"doc_id": k, "text": v} for k, v in TEXTS.items()]
    frame = pl.DataFrame(rows)
    lines = "".join(f"{k}\t{v}\n" for k, v in TEXTS.items())
    (tmp_path / "docs.tsv").write_text(lines)
    (tmp_path / "docs.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame.write_parquet(tmp_path / "docs.parquet")
    expected = er.tally(TEXTS).frame
    sources = [tmp_path / f"docs.{suffix}" for suffix in ("tsv", "tsv.gz", "jsonl", "parquet")]
    for source in [*sources, frame, frame.to_pandas(), frame.to_arrow(), iter(TEXTS.items())]:
        assert er.tally(source).frame.equals(expected)


def test_the_provenance_is_that_of_the_documents_that_were_counted() -> None:
    """It is taken when first asked for: what became of a dict in the meantime does not matter."""
    docs = {"d1": "she said"}
    tally = er.tally(docs)
    docs["d1"] = "he said"
    assert tally.provenance == er.tally({"d1": "she said"}).provenance
    assert tally.provenance != er.tally(docs).provenance


def test_a_tally_file_carries_its_provenance_and_is_the_same_every_time(tmp_path: Path) -> None:
    docs = demo.folder() / "docs.tsv"
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    made = tally_to_file(docs, one, "fabris2020", tokenizer="whitespace")
    tally = er.tally(docs, "fabris2020", tokenizer="whitespace")
    tally.write(two)
    assert one.read_bytes() == two.read_bytes()
    read = Tally.read(one)
    assert read.frame.equals(tally.frame)
    assert read.provenance == tally.provenance == made
    assert read.lexicon == er.lexicon("fabris2020")
    assert read.tokenizer == "whitespace"
    assert made["documents"] == len(tally)
    assert made["evenrank"] == er.__version__


def test_a_tally_is_a_frame_for_whoever_wants_one() -> None:
    tally = er.tally(TEXTS)
    assert pl.DataFrame(tally).equals(tally.frame)
    assert pa.table(tally).num_rows == len(tally) == 3
    assert tally.filter(pl.col("male") > 0).height == 2
    assert Tally.of(tally.frame).groups == ("female", "male")


def test_any_groups_can_be_counted() -> None:
    tally = er.tally({"d": "a b b c"}, {"x": ["a"], "y": ["b"], "z": ["c", "d"]})
    assert tally.groups == ("x", "y", "z")
    assert tally.select("x", "y", "z").row(0) == (1, 2, 1)


def test_a_document_id_that_occurs_twice_is_refused_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("a\tone\nb\ttwo\na\tthree\n")
    with pytest.raises(InputError, match=r"docs\.tsv:3: .*'?a'?"):
        er.tally(path)
    with pytest.raises(InputError):
        tally_to_file(path, tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


def test_what_is_no_tally_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(InputError, match="no tally"):
        Tally.read(path)
    with pytest.raises(InputError, match="no tally"):
        Tally.of(pl.DataFrame({"a": [1]}))
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"other\.parquet"):
        Tally.read(path)


def test_a_killed_run_leaves_the_old_file(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t.parquet"
    target.write_bytes(b"old")
    counted = []
    real = tally_module.count_batch

    def dying(batch: pa.RecordBatch, matcher: object) -> pa.RecordBatch:
        counted.append(batch.num_rows)
        if len(counted) == 6:
            raise KeyboardInterrupt
        return real(batch, matcher)  # type: ignore[arg-type]

    monkeypatch.setattr(tally_module, "count_batch", dying)
    with pytest.raises(KeyboardInterrupt):
        tally_to_file(large, target)
    assert target.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"large.tsv", "t.parquet"}
    tally_to_file(large, target)
    assert Tally.read(target).frame.equals(er.tally(large).frame)


def test_concurrent_tallies_give_the_same_numbers() -> None:
    docs = demo.folder() / "docs.tsv"
    expected = er.tally(docs).frame
    with ThreadPoolExecutor(8) as pool:
        assert all(t.frame.equals(expected) for t in pool.map(lambda _: er.tally(docs), range(16)))


@pytest.mark.parametrize("collection", ["time", "grepbiasir", "squad"])
def test_counts_equal_those_of_the_authors_code(collection: str, shared: Path) -> None:
    oracle = json.loads((shared / "oracles" / f"{collection}.json").read_text())["docs"]
    docs = next((shared / "data" / collection).glob("docs.*"))
    tally = er.tally(docs, tokenizer="whitespace")
    found = {row["doc_id"]: row for row in tally.iter_rows(named=True)}
    for doc_id, expected in oracle.items():
        assert (found[doc_id]["female"], found[doc_id]["male"]) == (expected["female"], expected["male"])


def test_the_majority_of_words_agrees_with_human_labels(shared: Path) -> None:
    path = shared / "data" / "grepbiasir" / "docs.jsonl"
    labels = pl.read_ndjson(path).select("doc_id", human=pl.col("gender"))
    rows = er.tally(path).frame.join(labels, on="doc_id").filter(pl.col("female") + pl.col("male") > 0)
    labelled = rows.filter(pl.col("human").is_in(["F", "M"]))
    sign = (labelled["male"] - labelled["female"]).sign()
    expected = labelled["human"].replace_strict({"F": -1, "M": 1}, return_dtype=pl.Int64)
    assert (sign == expected).mean() >= 0.90


def _forked_counts(path: Path) -> list[list[int]]:
    # Single columns: queries of Polars itself (select, filter) never return in a forked process.
    tally = er.tally(path)
    return [tally["female"].to_list(), tally["male"].to_list()]


def test_a_forked_process_tallies_the_same() -> None:
    docs = demo.folder() / "docs.tsv"
    expected = _forked_counts(docs)  # threads have run in this process before the fork
    with multiprocessing.get_context("fork").Pool(2) as processes:
        assert processes.map_async(_forked_counts, [docs] * 4).get(timeout=60) == [expected] * 4


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("doc_id", ["a", "b", "a"], r"row 3 repeats row 1: doc_id 'a'"),
        ("doc_id", ["a", None, "b"], r"row 2: doc_id is missing"),
        ("doc_id", [1.5, 2.5, 3.5], r"column doc_id holds Float64"),
        ("female", [0, -1, 0], r"row 2: female is -1"),
        ("tokens", [0, 1, None], r"row 3: tokens is None"),
        ("male", [0.5, 1.0, 0.0], r"row 1: male is 0.5"),
        ("male_logwords", [0.0, float("nan"), 0.0], r"row 2: male_logwords is nan"),
    ],
)
def test_rows_that_no_count_can_give_are_refused(
    column: str, values: list[object], message: str, tmp_path: Path
) -> None:
    made = er.tally(TEXTS)
    wrong = made.frame.with_columns(pl.Series(column, values))
    with pytest.raises(InputError, match=message):
        Tally.of(wrong)
    table = wrong.to_arrow(compat_level=pl.CompatLevel.oldest())
    path = tmp_path / "t.parquet"
    pq.write_table(table.replace_schema_metadata({"evenrank": json.dumps(made.provenance)}), path)
    with pytest.raises(InputError, match=rf"t\.parquet: {message}"):
        Tally.read(path)


def test_a_tally_has_the_lexicon_that_was_asked_for(large: Path) -> None:
    groups = {"female": ("wom*", "she"), "male": ("woman", "him")}
    lexicons = [Lexicon("one", groups), Lexicon("two", groups), Lexicon("one", groups, overlapping=True)]
    assert [er.tally(large, each).lexicon for each in lexicons] == lexicons


def test_no_flipped_bit_in_a_tally_changes_a_number(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tally_to_file(large, path)
    expected, finished, chance = Tally.read(path), path.read_bytes(), random.Random(3)
    for _ in range(24):
        place = len(finished) - chance.randrange(1, 1500)  # most is in the footer
        flipped = bytes([finished[place] ^ 1 << chance.randrange(8)])
        path.write_bytes(finished[:place] + flipped + finished[place + 1 :])
        try:
            found = Tally.read(path)
        except InputError:
            continue
        assert found.frame.equals(expected.frame) and found.provenance == expected.provenance


def test_a_tally_is_not_written_over_its_input_nor_compressed_twice(tmp_path: Path) -> None:
    docs = tmp_path / "docs.tsv"
    docs.write_text("a\tshe\n")
    with pytest.raises(InputError, match="the input itself"):
        tally_to_file(docs, docs)
    assert docs.read_text() == "a\tshe\n"
    for suffix in ("gz", "zst"):
        with pytest.raises(InputError, match=r"end its name in \.parquet"):
            tally_to_file(docs, tmp_path / f"t.parquet.{suffix}")
