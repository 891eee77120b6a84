"""Every format is read as it is written, by us and by gensim."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.vectors import Vectors, load, save

WORDS = ["she", "He", "naïve", "東京", "it's"]
ROWS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


@pytest.fixture
def vectors() -> Vectors:
    return Vectors(WORDS, ROWS, provenance={"from": "a test"})


@pytest.mark.parametrize(
    "name", ["v.bin", "v.bin.gz", "v.bin.zst", "v.txt", "v.txt.gz", "v.vec", "v.vec.zst"]
)
def test_what_is_saved_is_loaded_again_bit_by_bit(vectors: Vectors, tmp_path: Path, name: str) -> None:
    save(vectors, tmp_path / name)
    found = load(tmp_path / name)
    assert found.words == WORDS
    assert np.allclose(found.matrix, vectors.matrix, atol=1e-7)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["v.bin.gz", "v.vec.zst"])
def test_the_same_vectors_give_the_same_bytes(vectors: Vectors, tmp_path: Path, name: str) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(vectors, tmp_path / folder / name)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_vectors_of_a_file_name_it(vectors: Vectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v.bin")
    assert load(tmp_path / "v.bin").provenance["input"]["name"] == "v.bin"


def test_glove_text_has_no_header(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 0\nof 0.5 -5e-1\n. . . 0 2\n")
    found = load(tmp_path / "glove.txt")
    assert found.words == ["the", "of", ". . ."]
    assert np.allclose(found["of"], [0.5**0.5, -(0.5**0.5)])


def test_fasttext_lines_end_in_a_space(tmp_path: Path) -> None:
    (tmp_path / "ft.vec").write_bytes(b"2 2\n, 1 2 \n\xc2\xa0 3 4 \n")
    assert load(tmp_path / "ft.vec").words == [",", "\u00a0"]


@pytest.mark.parametrize(
    "content", [b"a\t1\t2\nb\t3\t4\n", b"a 1 2\r\nb 3 4\r\n", b"\xef\xbb\xbfa 1 2\nb 3 4"]
)
def test_tabs_and_other_line_ends_and_a_byte_order_mark_are_understood(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "v.txt").write_bytes(content)
    assert load(tmp_path / "v.txt").words == ["a", "b"]


def test_quotes_are_words_like_others(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("\" 1 2\n'' 3 4\n\"a 5 6\nnan 7 8\nnull 9 1\n")
    assert load(tmp_path / "v.txt").words == ['"', "''", '"a', "nan", "null"]


def test_the_c_program_ends_each_binary_vector_with_a_newline(tmp_path: Path) -> None:
    rows = b"".join(w.encode() + b" " + r.tobytes() + b"\n" for w, r in zip(WORDS, ROWS, strict=True))
    (tmp_path / "v.bin").write_bytes(b"5 3\n" + rows)
    assert load(tmp_path / "v.bin").words == WORDS


def test_content_tells_the_format_and_not_the_name(vectors: Vectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v.bin.gz")
    (tmp_path / "v.bin.gz").rename(tmp_path / "v.txt")
    assert load(tmp_path / "v.txt").words == WORDS


def test_text_larger_than_a_block_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.vectors.formats._BLOCK_BYTES", 64)
    many = Vectors([f"w{i}" for i in range(300)], np.random.default_rng(1).normal(size=(300, 4)))
    for name in ("v.txt", "v.bin"):
        save(many, tmp_path / name)
        found = load(tmp_path / name)
        assert found.words == many.words and np.allclose(found.matrix, many.matrix, atol=1e-7)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=("C", "Z")), min_size=1),
        min_size=1,
        max_size=20,
        unique=True,
    ),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_any_words_survive_text_and_binary(words: list[str], dimension: int, seed: int) -> None:
    import tempfile

    rows = np.random.default_rng(seed).normal(size=(len(words), dimension))
    made = Vectors(words, rows)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("v.txt", "v.bin"):
            save(made, Path(folder) / name)
            found = load(Path(folder) / name)
            assert found.words == words
            assert np.allclose(found.matrix, made.matrix, atol=1e-6)


class TestGensim:
    gensim = pytest.importorskip("gensim", reason="needs gensim, of the extra 'vectors'")

    def test_gensim_reads_what_we_write(self, vectors: Vectors, tmp_path: Path) -> None:
        for name, binary in (("v.bin", True), ("v.vec", False)):
            save(vectors, tmp_path / name)
            found = self.gensim.models.KeyedVectors.load_word2vec_format(tmp_path / name, binary=binary)
            assert found.index_to_key == WORDS and np.array_equal(found.vectors, vectors.matrix)

    def test_keyed_vectors_are_read_from_memory_and_refused_as_a_pickle(self, tmp_path: Path) -> None:
        keyed = self.gensim.models.KeyedVectors(3)
        keyed.add_vectors(WORDS, ROWS)
        keyed.save(str(tmp_path / "small.kv"))
        found = load(keyed)
        assert found.words == WORDS and np.allclose(found.matrix, Vectors(WORDS, ROWS).matrix)
        with pytest.raises(InputError, match=r"small\.kv: .*pickle.*save_word2vec_format"):
            load(tmp_path / "small.kv")

    def test_a_whole_model_holds_its_vectors(self) -> None:
        model = self.gensim.models.Word2Vec([["a", "b", "c"]] * 9, min_count=1, vector_size=4, workers=1)
        assert np.allclose(load(model).matrix, load(model.wv).matrix)


class _Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_never_runs_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.kv").write_bytes(pickle.dumps({"vectors": _Harmful(), "wv": [_Harmful()]}, protocol))
    with pytest.raises(InputError, match=r"v\.kv: .*gensim"):
        load(tmp_path / "v.kv")
    assert not (tmp_path / "harmed").exists()


def bad(tmp_path: Path, content: bytes, match: str, name: str = "v.txt") -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value) and str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"\n\n", "no vectors"),
        (b"word\n", r":1: expected a word"),
        (b"a 1 2\nb 3\n", r":2: expected a word and 2 numbers, found 1"),
        (b"a 1 2\nb 3 4 5\n", r":2: expected a word and 2 numbers, found 3"),
        (b"a 1 2\nb 3 x\n", r":2: expected 2 numbers"),
        (b"a 1 2\n\nb 3 4\n", r":2: expected a word"),
        (b"a 1 2\nb 3 nan\n", r":2: the vector of 'b' holds NaN"),
        (b"a 1 2\nb 3 inf\n", r":2: the vector of 'b' holds NaN or infinity"),
        (b"a 1 2\nb 3 4\na 5 6\n", r":3: the word 'a' has two vectors, number 1 and number 3"),
        (b"a 1 2\n\xff 3 4\n", r":2: .*not UTF-8"),
        (b"3 2\na 1 2\nb 3 4\n", "promises 3 vectors, the file ends after 2"),
        (b"1 2\na 1 2\nb 3 4\n", "promises 1 vectors, but there are more"),
        (b"2 3\na 1 2\nb 3 4\n", r":2: expected a word and 3 numbers"),
        (b"0 5\n", r":1: the header promises 0 vectors"),
        (b"5 0\n", r":1: the header promises 5 vectors of 0"),
        (b"99999999999999 300\na 1\n", r":2: expected a word and 300 numbers"),
        (b"a 0 0\nb 0 0\n", "all vectors are zero"),
        (b"\x93NUMPY\x01\x00", "neither text nor"),
        (b"\xba\x16\x4f\x2f\x0c\x00", "neither text nor"),
        (b"PK\x03\x04 something", "neither text nor a known format"),
        (b"\x80\x04nonsense", "pickle.*gensim"),
        (b"\x1f\x8b\x08\x00 cut", "cannot be read"),
        (b"\x00\x01\x02\x03", "neither text nor"),
    ],
)
def test_a_bad_file_is_named_with_its_line_in_one_line(tmp_path: Path, content: bytes, match: str) -> None:
    bad(tmp_path, content, match)


def binary(rows: list[tuple[bytes, list[float]]], header: bytes) -> bytes:
    return header + b"".join(word + b" " + np.array(row, "<f4").tobytes() for word, row in rows)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (binary([(b"a", [1, 2]), (b"b", [3, 4])], b"3 2\n"), "promises 3 vectors, the file ends after 2"),
        (binary([(b"a", [1, 2]), (b"b", [3, 4])], b"2 2\n")[:-1], "the file ends after 1: is it cut off"),
        (binary([(b"a", [1, 2]), (b"b", [3, 4])], b"1 2\n"), "goes on behind them"),
        (binary([(b"a", [1, 2]), (b"a", [3, 4])], b"2 2\n"), "'a' has two vectors, number 1 and number 2"),
        (binary([(b"a", [1, 2]), (b"b", [3, np.nan])], b"2 2\n"), "vector of 'b' holds NaN"),
        (binary([(b"\xff", [1, 2])], b"1 2\n"), "not UTF-8 before vector number 1; are there 2 dimensions"),
        (binary([(b"", [1, 2])], b"1 2\n"), "no word before vector number 1"),
        (b"99999999999 300\n\x00", "cannot be read|the file ends after 0"),
    ],
)
def test_a_bad_binary_file_is_named_with_the_vector(tmp_path: Path, content: bytes, match: str) -> None:
    bad(tmp_path, content, match, "v.bin")


def test_a_header_with_the_wrong_dimension_is_noticed_in_a_binary_file(tmp_path: Path) -> None:
    rows = [(f"word{i}".encode(), list(np.random.default_rng(i).normal(size=10))) for i in range(20)]
    for wrong in (9, 11):
        bad(tmp_path, binary(rows, f"20 {wrong}\n".encode()), "cut off|dimensions", "v.bin")


def test_a_compressed_file_that_is_cut_off_is_an_error(vectors: Vectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v.bin.gz")
    whole = (tmp_path / "v.bin.gz").read_bytes()
    bad(tmp_path, whole[: len(whole) // 2], "cannot be read|cut off", "v.bin.gz")
    bad(tmp_path, gzip.compress(b""), "empty", "v.gz")


@pytest.mark.parametrize("name", ["v.bin", "v.txt"])
def test_damage_of_any_kind_is_an_input_error_or_harmless(
    vectors: Vectors, tmp_path: Path, name: str
) -> None:
    save(vectors, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    for number in range(150):
        damaged = bytearray(whole[: rng.integers(1, len(whole) + 1)] if number % 3 == 0 else whole)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        (tmp_path / f"{number}-{name}").write_bytes(damaged)
        try:
            assert len(load(tmp_path / f"{number}-{name}").words) > 0
        except InputError as error:
            assert "\n" not in str(error)


def test_a_vector_of_zeros_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 0\nnil 0 0\nb 0 1\n")
    with pytest.warns(UserWarning, match="'nil'"):
        found = load(tmp_path / "v.txt")
    assert found.words == ["a", "b"] and "nil" not in found and found.row("b") == 1


def test_missing_files_and_folders_and_strange_things_are_refused(tmp_path: Path) -> None:
    for source, match in ((tmp_path / "no.bin", "no such file"), (tmp_path, "folder"), (7, "not int")):
        with pytest.raises(InputError, match=match):
            load(source)


def test_formats_without_room_for_a_space_say_so(tmp_path: Path) -> None:
    made = Vectors(["new york", "b"], np.eye(2))
    for name in ("v.bin", "v.txt"):
        with pytest.raises(InputError, match="'new york'"):
            save(made, tmp_path / name)
    with pytest.raises(InputError, match=r"\.bin"):
        save(made, tmp_path / "v.pkl")
    assert list(tmp_path.iterdir()) == []


def test_words_are_looked_up_as_written_then_in_lower_case() -> None:
    made = Vectors(["us", "US", "she"], np.eye(3))
    assert (made.row("US"), made.row("Us"), made.row("SHE"), made.row("he")) == (1, 0, 2, None)
    assert made.rows(["She", "x"]).tolist() == [2, -1]
    assert "She" in made and "x" not in made and 7 not in made
    with pytest.raises(InputError, match="'x'"):
        made["x"]


def test_all_vectors_have_length_one_and_cannot_be_written_to(vectors: Vectors) -> None:
    assert np.allclose(np.linalg.norm(vectors.matrix, axis=1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0, 0] = 5


def test_the_glove_file_loads_whole(glove: Vectors) -> None:
    assert (len(glove), glove.dimension) == (120_008, 100)
    assert glove.words[0] == "the" and "Einstein" in glove
    lengths = np.linalg.norm(glove.matrix.astype(np.float64), axis=1)
    assert np.abs(lengths - 1).max() < 1e-6
    assert json.dumps(glove.provenance)
