"""The direction, genderedness, and the table that ships with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evenrank.errors import InputError
from evenrank.vectors import (
    DEFINITION,
    Vectors,
    find_direction,
    genderedness,
    leaning,
    read_pairs,
)


def test_the_direction_is_the_first_component_of_all_centred_words(glove: Vectors) -> None:
    """As released by Bolukbasi et al.: the twenty words minus their pairs' centres, then PCA."""
    rows = []
    for pair in DEFINITION:
        ends = np.array([glove[word] for word in pair], np.float64)
        rows += list(ends - ends.mean(axis=0))
    values, axes = np.linalg.eigh(np.cov(np.array(rows).T))
    found = find_direction(glove)
    assert abs(axes[:, -1] @ found.vector) == pytest.approx(1, abs=1e-9)
    assert np.allclose(found.explained, values[::-1][:10] / values.sum(), atol=1e-9)


def test_she_lies_above_he_and_half_of_the_variance_is_explained(glove: Vectors) -> None:
    found = find_direction(glove)
    assert glove["she"] @ found.vector > glove["he"] @ found.vector
    assert found.explained[0] == pytest.approx(0.508, abs=0.001)
    assert found.explained.sum() == pytest.approx(1)
    assert np.linalg.norm(found.vector) == pytest.approx(1)


def test_swapping_the_words_of_all_pairs_turns_the_direction_round(planted: Vectors) -> None:
    there = find_direction(planted)
    back = find_direction(planted, [(b, a) for a, b in DEFINITION])
    assert np.allclose(there.vector, -back.vector)
    assert np.allclose(there.explained, back.explained)


def test_the_order_of_the_pairs_changes_nothing_but_the_pair_that_orients(planted: Vectors) -> None:
    shuffled = find_direction(planted, (DEFINITION[0], *DEFINITION[:0:-1]))
    assert np.allclose(find_direction(planted).vector, shuffled.vector)


def test_a_direction_planted_in_the_vectors_is_found(planted: Vectors) -> None:
    assert find_direction(planted).vector[0] > 0.95


def test_any_other_pairs_define_any_other_direction(glove: Vectors) -> None:
    wealth = find_direction(glove, [("rich", "poor"), ("wealthy", "needy"), ("expensive", "cheap")])
    assert glove["luxury"] @ wealth.vector > glove["slum"] @ wealth.vector


def test_a_missing_pair_is_left_out_with_a_warning(planted: Vectors) -> None:
    with pytest.warns(UserWarning, match="king–jester"):
        found = find_direction(planted, [*DEFINITION, ("king", "jester")])
    assert found.left_out == (("king", "jester"),) and len(found.pairs) == 10
    assert np.allclose(found.vector, find_direction(planted).vector)


def test_fewer_than_three_pairs_are_an_error_that_names_the_missing_words(planted: Vectors) -> None:
    with pytest.raises(InputError, match=r"only 2 of 3 pairs.*jester"):
        find_direction(planted, [*DEFINITION[:2], ("king", "jester")])
    with pytest.raises(InputError, match="only 0 of 10 pairs"):
        find_direction(Vectors(["chat", "chien"], np.eye(2)))
    with pytest.raises(InputError, match="do not differ"):
        find_direction(planted, [("she", "she"), ("he", "he"), ("her", "her")])


def test_pairs_are_read_from_files(tmp_path: Path) -> None:
    for name, content in (
        ("a.tsv", "she\the\n# remark\n\nnew york\tparis\n"),
        ("a.csv", "she,he\nnew york, paris\r\n"),
    ):
        (tmp_path / name).write_text(content)
        assert read_pairs(tmp_path / name) == (("she", "he"), ("new york", "paris"))
    (tmp_path / "a.txt").write_text("she he\nwoman man\n")
    assert read_pairs(tmp_path / "a.txt") == (("she", "he"), ("woman", "man"))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"she he\nwoman\n", ":2: expected two words"),
        (b"# nothing\n", "no pairs"),
        (b"she he\n\xff x\n", ":2: bytes that are not UTF-8"),
    ],
)
def test_a_bad_file_of_pairs_is_named_with_its_line(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "pairs.txt").write_bytes(content)
    with pytest.raises(InputError, match=rf"pairs\.txt:.*{match.lstrip(':')}"):
        read_pairs(tmp_path / "pairs.txt")


def test_genderedness_is_the_cosine_with_the_direction(planted: Vectors) -> None:
    direction, table = find_direction(planted), genderedness(planted)
    for word in ("she", "he", "xabcd"):
        assert table[word] == pytest.approx(float(planted[word] @ direction.vector), abs=1e-6)
    assert np.abs(table.values).max() <= 1


def test_the_shipped_table_is_what_the_vectors_give(glove: Vectors) -> None:
    shipped = genderedness()
    assert len(shipped) == len(glove) == 120_008
    sample = np.random.default_rng(0).choice(len(glove), 2000, replace=False)
    direction = find_direction(glove)
    words = [glove.words[row] for row in sample]
    assert np.allclose(shipped.of(words), direction.of(glove.matrix[sample]), atol=2e-7)
    assert shipped.provenance["input"] == glove.provenance["input"]


def test_the_shipped_table_says_how_it_was_made_and_is_small() -> None:
    path = Path(str(resources.files("evenrank.vectors"))) / "data" / "genderedness.parquet"
    assert path.stat().st_size < 1_000_000
    made = genderedness().provenance
    assert made["input"]["name"] == "glove-100d.bin.gz" and len(made["direction"]["pairs"]) == 10
    assert pq.read_schema(path).names == ["word", "g"]


def test_the_shipped_table_knows_what_everybody_knows() -> None:
    table = genderedness()
    assert table["she"] > table["he"] and table["Nurse"] > 0 > table["plumber"]
    assert table["sister"] == pytest.approx(0.222, abs=0.001)
    assert np.isnan(table.of(["nosuchword"]))[0]
    with pytest.raises(InputError, match="'nosuchword'"):
        table["nosuchword"]


def test_a_table_is_read_as_written_and_the_same_table_gives_the_same_bytes(
    planted: Vectors, tmp_path: Path
) -> None:
    made = genderedness(planted)
    for name in ("a.parquet", "b.parquet"):
        made.write(tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    found = genderedness(tmp_path / "a.parquet")
    assert found.words == made.words and np.array_equal(found.values, made.values)
    assert found.provenance == made.provenance
    assert made.words == sorted(made.words)
    with pytest.raises(InputError, match="pairs go with vectors"):
        genderedness(tmp_path / "a.parquet", pairs=DEFINITION)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"word": ["a"], "x": [1.0]}, "columns word and g"),
        ({"word": ["a", "a"], "g": [0.1, 0.2]}, "twice"),
        ({"word": ["a", None], "g": [0.1, 0.2]}, "missing"),
        ({"word": ["a"], "g": [float("nan")]}, "g of 'a' is nan"),
        ({"word": ["a"], "g": [7.0]}, "g of 'a' is 7"),
        ({"word": ["a"], "g": ["x"]}, "g a number"),
        ({"word": [], "g": []}, "some rows"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, columns: dict[str, list[object]], match: str) -> None:
    import pyarrow as pa

    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=rf"t\.parquet: .*{match}"):
        genderedness(tmp_path / "t.parquet")


def test_the_words_that_lean_most_are_ordinary_ones(planted: Vectors) -> None:
    positive, negative = leaning(planted, find_direction(planted), 5)
    assert [g for _, g in positive] == sorted((g for _, g in positive), reverse=True)
    assert all(word.startswith("x") for word, _ in positive + negative)
    assert positive[0][1] > 0 > negative[0][1]
