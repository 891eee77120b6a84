"""Representation bias: the published tables, the rule at one half, and laws."""

import csv
from fractions import Fraction
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import InputError
from evenrank.measures.representation import achievable, represent, representation_bias

# Tables 2 and 3 of Lipani, Piroi and Yilmaz, Towards More Accountable Search Engines: female ratios shown by
# Google's carousel of people (model) and in Wikidata (Table 2) or in the full results (Table 3), at 10.
with (Path(__file__).parent / "data" / "lipani2021-tables-2-3.tsv").open() as file:
    PUBLISHED = list(csv.DictReader(file, delimiter="\t"))


def lists(*results: tuple[str, str]) -> pl.DataFrame:
    """Result lists written as text: a letter for each result, - for unknown."""
    rows = [
        (query, f"{query}-{rank}", rank, {"f": "female", "m": "male", "-": ""}.get(letter, letter))
        for query, letters in results
        for rank, letter in enumerate(letters, 1)
    ]
    return pl.DataFrame(rows, ["query", "doc_id", "rank", "group"], orient="row")


# The published tables


def test_the_tables_are_whole() -> None:
    assert len(PUBLISHED) == 66
    assert sum(row["list"] == "unbiased" for row in PUBLISHED) == 22


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['table']} {row['profession']}")
def test_every_published_row(row: dict[str, str]) -> None:
    model, target = Fraction(row["model"]), Fraction(row["target"])
    assert representation_bias(int(model * 10), 10, target) == float(row["bias"])


@pytest.mark.parametrize("table", ["2", "3"])
def test_the_published_tables_from_result_lists(table: str) -> None:
    """The same through lists and a table of targets: values, and the three lists in their order."""
    rows = [row for row in PUBLISHED if row["table"] == table]
    shown = lists(*((r["profession"], ("f" * int(Fraction(r["model"]) * 10)).ljust(10, "m")) for r in rows))
    targets = pl.DataFrame({"query": [r["profession"] for r in rows], "female": [r["target"] for r in rows]})
    found = represent(shown, targets, at=10)
    values = dict(found.of("female").select("query", "bias").iter_rows())
    assert values == {r["profession"]: float(r["bias"]) for r in rows}
    remarkable = found.remarkable("female")
    for name, queries in (("toward males", "against"), ("toward females", "toward")):
        expected = [float(r["bias"]) for r in rows if r["list"] == name]
        assert remarkable[queries]["bias"].to_list() == expected
    assert {*remarkable["unbiased"]["query"]} == {r["profession"] for r in rows if r["list"] == "unbiased"}


# The rule at one half


@pytest.mark.parametrize(("count", "wanted"), [(0, 1), (1, 1), (2, 2), (3, 2), (10, 2)])
def test_at_one_half_the_nearer_count_is_right(count: int, wanted: int) -> None:
    assert achievable(Fraction("0.15"), 10, count) == wanted


def test_five_and_six_of_eleven_are_both_free_of_bias_at_one_half() -> None:
    """The paper's example in Section 2."""
    assert representation_bias(5, 11, Fraction(1, 2)) == 0 == representation_bias(6, 11, Fraction(1, 2))
    assert representation_bias(4, 11, Fraction(1, 2)) == -1 / 11
    assert representation_bias(7, 11, Fraction(1, 2)) == 1 / 11


@pytest.mark.parametrize("target", ["0.15", 0.15, Fraction(3, 20)])
def test_floating_point_dust_decides_nothing(target: object) -> None:
    """0.15 · 10 is one and a half, and so is (0.1 + 0.2) / 2 · 10, though not in binary."""
    one, two = lists(("q", "fmmmmmmmmm")), lists(("q", "ffmmmmmmmm"))
    for shown in (one, two):
        assert represent(shown, {"q": {"female": target}}).of("female")["bias"][0] == 0
    table = lists(("q", "f" * 57 + "m" * 43))
    assert represent(table, {"q": {"female": "0.575"}}, at=100).rows["bias"][0] == 0


cases = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        st.integers(0, n),
        st.just(n),
        st.fractions(0, 1, max_denominator=400) | st.builds(Fraction, st.integers(0, 2 * n), st.just(2 * n)),
    )
)


@given(cases)
def test_bias_lies_between_minus_1_and_1_on_the_grid(case: tuple[int, int, Fraction]) -> None:
    count, n, target = case
    bias = representation_bias(count, n, target)
    assert -1 <= bias <= 1
    assert bias * n == pytest.approx(round(bias * n), abs=1e-9)


@given(cases)
def test_two_feature_values_mirror_each_other(case: tuple[int, int, Fraction]) -> None:
    count, n, target = case
    assert representation_bias(count, n, target) == -representation_bias(n - count, n, 1 - target)


@given(cases)
def test_bias_is_0_exactly_where_no_other_count_comes_nearer(case: tuple[int, int, Fraction]) -> None:
    count, n, target = case
    nearest = min(abs(other - target * n) for other in range(n + 1))
    assert (representation_bias(count, n, target) == 0) == (abs(count - target * n) == nearest)
    assert (representation_bias(count, n, target) == 0) == (count == achievable(target, n, count))


@given(cases)
def test_one_more_result_never_lowers_the_bias(case: tuple[int, int, Fraction]) -> None:
    count, n, target = case
    if count < n:
        step = representation_bias(count + 1, n, target) - representation_bias(count, n, target)
        assert -1e-12 <= step <= 1 / n + 1e-12


@given(cases.filter(lambda case: case[1] > 0), st.randoms())
def test_the_order_within_the_top_does_not_matter(case: tuple[int, int, Fraction], random) -> None:
    count, n, target = case
    letters = list("f" * count + "m" * (n - count))
    random.shuffle(letters)
    found = represent(lists(("q", "".join(letters))), {"q": {"female": target, "male": 1 - target}}, at=n)
    female, male = found.of("female")["bias"][0], found.of("male")["bias"][0]
    assert female == representation_bias(count, n, target) == -male


# Over queries


def test_summary_by_hand() -> None:
    shown = lists(("a", "ffmm"), ("b", "mmmm"), ("c", "ffff"))
    found = represent(shown, {"a": {"female": 0.5}, "b": {"female": 0.5}, "c": {"female": 0.75}}, at=4)
    assert found.of("female")["bias"].to_list() == [0, -0.5, 0.25]
    summary = found.summary("female")
    assert summary["MB"] == pytest.approx(-0.25 / 3)
    assert summary["SB"] == pytest.approx(pd.Series([0, -0.5, 0.25]).std())
    assert summary["MAB"] == 0.25
    assert summary["low"] <= summary["MB"] <= summary["high"]
    assert (summary["min"], summary["max"], summary["queries"]) == (-0.5, 0.25, 3)
    mirrored = found.summary("male")
    assert mirrored["MB"] == -summary["MB"] and mirrored["SB"] == summary["SB"]
    assert {bias: n for bias, n in found.histogram("female").items() if n} == {0.0: 1, -0.5: 1, 0.25: 1}
    assert len(found.histogram("female")) == 9


def test_one_query_has_no_standard_deviation() -> None:
    assert represent(lists(("a", "fm")), {"a": {"female": 1}}).summary("female")["SB"] is None


def test_a_short_list_is_divided_by_its_length_or_as_in_the_paper_by_n() -> None:
    shown, targets = lists(("a", "fffmm")), {"a": {"female": 0.4}}
    sound, paper = represent(shown, targets, at=10), represent(shown, targets, at=10, short="paper")
    assert sound.short == paper.short == 1
    assert sound.rows["model"][0] == 3 / 5 and sound.rows["bias"][0] == 1 / 5
    assert paper.rows["model"][0] == 3 / 10 and paper.rows["bias"][0] == -1 / 10
    assert paper.rows["bias"].sum() == pytest.approx(
        -0.5
    )  # which is why the paper's two histograms do not mirror each other


def test_unknown_results_count_in_n_and_are_reported() -> None:
    found = represent(lists(("a", "f-m-")), {"a": {"female": 0.5}}, at=4)
    assert found.unknown == 0.5
    assert found.of("female")["bias"][0] == -1 / 4 == found.of("male")["bias"][0]


def test_any_number_of_feature_values() -> None:
    shown = lists(("a", "xxyz"))
    found = represent(shown, {"a": {"x": 0.5, "y": 0.25, "z": 0.25}}, at=4)
    assert found.features == ("x", "y", "z")
    assert (found.rows["bias"] == 0).all()
    assert represent(shown, {"a": {"x": 0.25}}, at=4).features == ("x",)  # one of three implies nothing


def test_full_lists_as_target_leave_no_bias_in_the_whole_list() -> None:
    shown = lists(("a", "ffmfmm"), ("b", "mfmm"))
    assert (represent(shown, "full", at=6).rows["bias"] == 0).all()
    top = represent(shown, "full", at=2)
    assert top.of("female")["bias"].to_list() == [0.5, 0.0]


def test_among_unbiased_queries_the_largest_population_is_shown_first() -> None:
    many = [f"q{i:02}" for i in range(15)]
    shown = lists(*((query, "fm") for query in many), ("other", "mm"))
    targets = pl.DataFrame(
        {"query": [*many, "other"], "female": [0.5] * 15 + [0.0], "population": [*range(15), 3]}
    )
    found = represent(shown, targets, at=2).remarkable("female")["unbiased"]
    assert len(found) == 11
    assert found["query"][:2].to_list() == ["other", "q14"]


def test_the_grid_keeps_every_point_in_its_square() -> None:
    found = represent(lists(("a", "fm"), ("b", "fm"), ("c", "mm")), {q: {"female": 0.5} for q in "abc"}, at=2)
    grid = found.grid("female")
    assert (grid.select((pl.col("x") - pl.col("target")).abs().max()).item()) < 0.25
    assert (grid.select((pl.col("y") - pl.col("model")).abs().max()).item()) < 0.25
    assert grid.equals(found.grid("female"))


# Where labels come from


def test_labels_are_given_or_inferred_and_it_says_which() -> None:
    shown = lists(("a", "fm"))
    assert represent(shown, "full").labels == "given"
    table = pl.DataFrame({"query": ["a", "a"], "doc_id": ["d1", "d2"], "rank": [1, 2]})
    inferred = represent(
        table, {"a": {"female": 0.5}}, tally=er.tally({"d1": "she and her son", "d2": "he"}), at=2
    )
    assert inferred.labels == "inferred, the group with most words (lexicon rekabsaz2020)"
    assert inferred.of("female")["model"][0] == 1 / 2
    given = represent(table, {"a": {"female": 0.5}}, labels={"d1": "m", "d2": "M"}, at=2)
    assert given.labels == "given" and given.of("male")["bias"][0] == 1 / 2


def test_a_trec_run_with_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n")
    found = represent(path, {"q1": {"female": 0.5}}, labels={"d1": "female", "d2": "male"}, at=1)
    assert found.of("female")["bias"][0] == 0  # half of one: either is right
    with pytest.raises(InputError, match="labels or a tally"):
        represent(path, "full")


def test_documents_without_a_label_may_come_first() -> None:
    run, labels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"b": "m", "c": "f", "z": "f"}
    found = represent(run, {"q": {"female": 0}}, labels=labels, at=3)
    assert found.of("female")["model"][0] == 1 / 3 and found.unknown == 1 / 3


# What is refused


def test_wrong_tables_get_one_line_that_names_the_place(tmp_path: Path) -> None:
    results, targets = tmp_path / "results.tsv", tmp_path / "targets.tsv"
    good = "query\tdoc_id\trank\tgender\na\td1\t1\tfemale\na\td2\t2\tmale\n"
    wanted = "query\tfemale\na\t0.5\n"

    def refused(results_text: str = good, targets_text: str = wanted, **given: object) -> str:
        results.write_text(results_text)
        targets.write_text(targets_text)
        with pytest.raises(InputError) as error:
            represent(results, targets, **given)
        return str(error.value)

    assert "results.tsv:4: repeats line 2" in refused(good + "a\td1\t3\tmale\n")
    assert "results.tsv:4: repeats line 3: query 'a' with rank 2" in refused(good + "a\td3\t2\tmale\n")
    assert "results.tsv:4: rank is 'two'" in refused(good + "a\td3\ttwo\tmale\n")
    assert "results.tsv:4: 3 columns instead of 4" in refused(good + "a\td3\t4\n")
    assert "results.tsv:4: doc_id is empty" in refused(good + "a\t\t4\tmale\n")
    assert "no column group; found query, doc_id, rank, hue" in refused(good.replace("gender", "hue"))
    assert "targets.tsv:3: the target of female is '1.5'" in refused(targets_text=wanted + "b\t1.5\n")
    assert "targets.tsv:3: the target of female is 'half'" in refused(targets_text=wanted + "b\thalf\n")
    assert "targets.tsv:3: repeats line 2" in refused(targets_text=wanted + "a\t0.1\n")
    assert "add up to 1.2" in refused(targets_text="query\tfemale\tmale\na\t0.6\t0.6\n")
    assert "results show female, male" in refused(targets_text="query\twomen\na\t0.6\n")
    assert "no query of the results has a target" in refused(targets_text="query\tfemale\nz\t0.6\n")
    assert "at is 0" in refused(at=0)
    assert "one of length, paper" in refused(short="no")


def test_queries_without_target_or_results_are_counted() -> None:
    found = represent(lists(("a", "fm"), ("b", "fm")), {"a": {"female": 0.5}, "c": {"female": 0.5}})
    assert found.left_out == {"no target": 1, "no results": 1}


def test_headers_can_be_mapped_and_ranks_order_the_list() -> None:
    table = pl.DataFrame(
        {"topic": ["a"] * 3, "image": ["x", "y", "z"], "place": [3, 1, 2], "perceived": ["F", "M", "M"]}
    )
    columns = {"query": "topic", "doc_id": "image", "rank": "place", "group": "perceived"}
    found = represent(table, {"a": {"female": 0}}, at=2, columns=columns)
    assert found.of("female")["model"][0] == 0
    assert represent(table, {"a": {"F": 0}}, at=3, columns=columns).of("female")["bias"][0] == 1 / 3


def test_tables_may_be_csv_jsonl_or_parquet(tmp_path: Path) -> None:
    table = lists(("a, b", "ffmm"), ("c", "mmmf"))
    targets = pl.DataFrame({"query": ["a, b", "c"], "female": [0.15, 0.375]})
    expected = represent(table, targets, at=4).rows
    for suffix, write in (("csv", pl.DataFrame.write_csv), ("jsonl", pl.DataFrame.write_ndjson)):
        write(table, tmp_path / f"results.{suffix}")
        write(targets, tmp_path / f"targets.{suffix}")
        found = represent(tmp_path / f"results.{suffix}", tmp_path / f"targets.{suffix}", at=4).rows
        assert found.equals(expected)
    table.write_parquet(tmp_path / "results.parquet")
    targets.write_parquet(tmp_path / "targets.parquet")
    found = represent(tmp_path / "results.parquet", tmp_path / "targets.parquet", at=4).rows
    assert found.equals(expected)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"query": "a", "female": 0.5}\n{"query": "b"}\n')
    with pytest.raises(InputError, match=r"broken\.jsonl:2: no field female; found query"):
        represent(table, broken)


# Real lists


def test_image_search_shows_fewer_women_than_work_in_the_occupations(shared: Path) -> None:
    """Kay, Matuszek and Munson, CHI 2015: women are somewhat under-represented on the whole."""
    folder = shared / "data" / "image-search"
    for at in (10, 20):
        found = represent(folder / "results.tsv", folder / "targets.tsv", at=at)
        female, male = found.summary("female"), found.summary("male")
        assert female["queries"] == 33 and found.short == 0 and found.unknown == 0
        assert female["MB"] < 0
        assert (male["MB"], male["MAB"]) == (-female["MB"], female["MAB"])
        assert (male["min"], male["max"]) == (-female["max"], -female["min"])
