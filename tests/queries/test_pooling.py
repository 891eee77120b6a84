"""Pools as in the paper, sheets that spreadsheets and people survive, votes that add up."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa
from typer.testing import CliRunner

from evenrank.errors import InputError
from evenrank.queries import CLASSES, pool, vote
from evenrank.queries.pooling import _fleiss, sheet_text

RUNS = {
    "bm25": {"q1": -0.9, "q2": -0.1, "q3": 0.0, "q4": 0.2, "q5": 0.7},
    "bert": {"q1": -0.2, "q2": -0.8, "q3": 0.1, "q4": 0.0, "q5": 1.5},
}
TEXTS = {"q1": "nurse wages", "q2": "baby shower", "q3": "weather", "q4": "=2+3", "q5": 'who is "the boss"'}


def values(runs: dict[str, dict[str, float | None]] = RUNS) -> pl.DataFrame:
    rows = [(run, query, value) for run, found in runs.items() for query, value in found.items()]
    return pl.DataFrame(
        rows, schema={"run": pl.String, "query_id": pl.String, "value": pl.Float64}, orient="row"
    )


def queries(texts: dict[str, str] = TEXTS) -> pl.DataFrame:
    return pl.DataFrame({"query_id": list(texts), "text": list(texts.values())})


def sheet(*rows: str, annotators: int = 3) -> pl.DataFrame:
    """`sheet("fmn", "ffo")`: a row for each query, a letter for each annotator."""
    columns = {f"annotator_{i + 1}": [row[i].strip() for row in rows] for i in range(annotators)}
    return pl.DataFrame(
        {"query_id": [f"q{i + 1}" for i in range(len(rows))], "text": "some query", **columns}
    )


class TestPool:
    def test_it_takes_the_top_of_both_lists_of_every_run_once_each(self):
        # bm25: q1 and q5; bert: q2 and q5
        assert set(pool(values(), queries(), top=1)["query_id"]) == {"q1", "q2", "q5"}

    def test_a_top_beyond_the_number_of_queries_takes_all_of_them(self):
        assert len(pool(values(), queries(), top=500)) == 5

    def test_the_sheet_hides_what_would_prime_annotators(self):
        found = pool(values(), queries(), annotators=2)
        assert found.columns == ["query_id", "text", "annotator_1", "annotator_2"]
        assert set(found["annotator_1"]) == {""}

    def test_the_key_has_the_same_rows_with_lists_value_and_group(self):
        plain, key = (pool(values(), queries(), top=1, reveal=reveal) for reveal in (False, True))
        assert key.select(plain.columns).equals(plain)
        assert {row[0]: row[2:5] for row in key.iter_rows()} == {
            "q1": (1, -0.9, "female"),
            "q2": (1, -0.8, "female"),
            "q5": (2, 1.5, "male"),
        }

    def test_a_balanced_query_leans_toward_nobody(self):
        found = pool(values({"a": {"q1": 0.0}}), queries(), reveal=True)
        assert (found["toward"].item(), found["lists"].item()) == (None, 2)

    def test_other_groups_can_be_named(self):
        found = pool(values({"a": {"q1": 0.4}}), queries(), reveal=True, groups=("young", "old"))
        assert found["toward"].item() == "old"

    def test_the_order_is_shuffled_by_the_seed_and_by_nothing_else(self):
        texts = {f"q{i}": "text" for i in range(40)}
        given_values = values({"a": {query: i - 20.0 for i, query in enumerate(texts)}})
        first = pool(given_values, queries(texts))["query_id"].to_list()
        assert first == pool(given_values.reverse(), queries(texts))["query_id"].to_list()
        assert first != pool(given_values, queries(texts), seed=1)["query_id"].to_list()
        ranks = [int(query[1:]) for query in first]
        assert abs(np.corrcoef(ranks, range(40))[0, 1]) < 0.5

    def test_equal_values_are_taken_in_the_order_of_their_ids(self):
        found = pool(values({"a": {"q3": 0.5, "q1": 0.5, "q2": 0.5}}), queries(), top=1)
        assert found["query_id"].to_list() == ["q1"]

    def test_undefined_values_are_passed_over(self):
        assert len(pool(values({"a": {"q1": None, "q2": float("nan"), "q3": 0.1}}), queries())) == 1

    def test_a_query_without_text_is_named(self):
        with pytest.raises(InputError, match="1 ranked queries have no text: q9"):
            pool(values({"a": {"q9": 0.1}}), queries())

    def test_two_measures_cannot_be_pooled_together(self):
        both = pl.concat([values().with_columns(measure=pl.lit(m)) for m in ("RaB@10", "ARaB@10")])
        with pytest.raises(InputError, match="one measure, not by ARaB@10, RaB@10"):
            pool(both, queries())

    @pytest.mark.parametrize("wrong", [{"top": 0}, {"annotators": 0}])
    def test_numbers_below_one_are_refused(self, wrong):
        with pytest.raises(InputError, match="at least 1"):
            pool(values(), queries(), **wrong)

    @given(st.dictionaries(st.sampled_from("abcdefghij"), st.integers(-5, 5), min_size=1), st.integers(1, 6))
    def test_swapping_the_groups_pools_the_same_queries(self, found, top):
        texts = dict.fromkeys("abcdefghij", "text")
        one = pool(values({"a": found}), queries(texts), top=top)
        other = pool(values({"a": {q: -v for q, v in found.items()}}), queries(texts), top=top)
        assert set(one["query_id"]) == set(other["query_id"])
        assert min(len(found), top) <= len(one) <= 2 * top


class TestSheets:
    def test_a_text_comes_back_as_it_was_whatever_stands_in_it(self, tmp_path):
        texts = [
            "=2+3",
            "'=2",
            "-1",
            "@home",
            "'tis",
            'who is "x"',
            '"quoted',
            "two\nlines",
            "tab\there",
            "plain",
            "é",
        ]
        made = pl.DataFrame({"query_id": [f"00{i}" for i in range(len(texts))], "text": texts})
        made = made.with_columns(pl.lit("n").alias(f"annotator_{i}") for i in (1, 2, 3))
        path = tmp_path / "sheet"
        path.write_text(sheet_text(made))
        labels = vote(path).labels
        assert labels["text"].to_list() == texts
        assert labels["query_id"].to_list() == made["query_id"].to_list()

    def test_no_cell_begins_like_a_formula(self):
        lines = sheet_text(pool(values(), queries())).splitlines()
        assert "q4\t'=2+3\t\t\t" in lines

    def test_byte_order_mark_crlf_and_empty_rows_are_read(self, tmp_path):
        path = tmp_path / "sheet.csv"
        path.write_bytes(
            b"\xef\xbb\xbfQuery_ID;Annotator_1;Annotator_2;annotator 3\r\n7;f;f;m\r\n;;;\r\n8;n;n;n\r\n;;;"
        )
        assert vote(path).labels.select("query_id", "label").rows() == [("7", "female"), ("8", "neutral")]

    def test_a_column_too_many_is_named_with_its_line(self, tmp_path):
        path = tmp_path / "sheet.tsv"
        path.write_text('query_id\ttext\tannotator_1\nq1\t"two\nlines"\tf\nq2\ta\tb\tf\n')
        with pytest.raises(InputError, match=r"sheet.tsv:4: 4 columns instead of 3"):
            vote(path)

    def test_bytes_that_are_not_utf8_are_named_with_their_line(self, tmp_path):
        path = tmp_path / "sheet.tsv"
        path.write_bytes(b"query_id\tannotator_1\nq1\tf\nq2\t\xff\n")
        with pytest.raises(InputError, match=r"sheet.tsv:3: bytes that are not UTF-8"):
            vote(path)

    @pytest.mark.parametrize("content", ["q1\tf\nq2\tm\n", "a,b,c\n1,2,3\n"])
    def test_a_sheet_without_a_header_is_refused(self, tmp_path, content):
        path = tmp_path / "sheet.tsv"
        path.write_text(content)
        with pytest.raises(InputError, match=r"sheet.tsv:1: the first line must name the columns"):
            vote(path)


class TestVote:
    def test_the_majority_of_three_decides_and_three_opinions_drop_the_query(self):
        votes = vote(sheet("ffm", "nnn", "fmn", "omo"))
        assert votes.labels.drop("text").rows() == [
            ("q1", "female", 2),
            ("q2", "neutral", 3),
            ("q4", "other", 2),
        ]
        assert votes.dropped.drop("text").rows() == [("q3", "neutral 1, female 1, male 1", "no majority")]
        assert votes.counts == {"neutral": 1, "female": 1, "male": 0, "other": 1}
        assert votes.annotators == 3

    def test_a_tie_of_an_even_number_and_a_mere_plurality_drop_the_query(self):
        assert vote(sheet("ffmm", "fffm", annotators=4)).labels["query_id"].to_list() == ["q2"]
        assert vote(sheet("ffmno", "fffno", annotators=5)).labels["query_id"].to_list() == ["q2"]

    @pytest.mark.parametrize(
        ("spelled", "label"),
        [
            ("F", "female"),
            (" Female ", "female"),
            ("m", "male"),
            ("Non-gendered", "neutral"),
            ("non gendered", "neutral"),
            ("N", "neutral"),
            ("Other or Multiple Genders", "other"),
            ("other/multiple", "other"),
            ("both", "other"),
        ],
    )
    def test_usual_spellings_are_understood(self, spelled, label):
        made = sheet("nnn").with_columns(pl.lit(spelled).alias(f"annotator_{i}") for i in (1, 2, 3))
        assert vote(made).labels["label"].item() == label

    def test_an_unknown_label_is_named_with_file_line_and_the_legal_ones(self, tmp_path):
        path = tmp_path / "sheet.tsv"
        path.write_text(
            "query_id\ttext\tannotator_1\tannotator_2\tannotator_3\nq1\ta\tf\tf\tf\nq2\tb\tf\tfem\tf\n"
        )
        with pytest.raises(
            InputError, match=r"sheet.tsv:3: unknown label 'fem'; use one of neutral, female, male, other"
        ):
            vote(path)

    def test_an_empty_cell_is_named_with_its_line_or_drops_the_query(self, tmp_path):
        path = tmp_path / "sheet.tsv"
        path.write_text(sheet_text(sheet("ffm", "ff ", "  m")))
        with pytest.raises(
            InputError, match=r"sheet.tsv:3: annotator_3 is empty for query 'q2' \(and 2 more cells\)"
        ):
            vote(path)
        votes = vote(path, incomplete="drop")
        assert votes.labels["query_id"].to_list() == ["q1"]
        assert votes.dropped["reason"].to_list() == ["incomplete", "incomplete"]
        assert votes.agreement == pytest.approx(-0.5)

    def test_two_annotators_have_no_majority(self):
        with pytest.raises(InputError, match="at least three annotators"):
            vote(sheet("ff", annotators=2))

    def test_several_sheets_are_one_annotator_each(self, tmp_path):
        """Everybody gets the same sheet and fills in a column of their choice."""
        filled = [sheet("f  ", "m  "), sheet("f  ", "n  "), sheet(" n ", " o ")]
        paths = [tmp_path / f"{name}.tsv" for name in "abc"]
        for path, made in zip(paths, filled, strict=True):
            path.write_text(sheet_text(made))
        votes = vote(paths)
        assert votes.labels.drop("text").rows() == [("q1", "female", 2)]
        assert votes.dropped["query_id"].to_list() == ["q2"]
        assert vote(filled).labels.equals(votes.labels)

    def test_several_sheets_may_be_batches_of_queries(self):
        second = sheet("mmm").with_columns(query_id=pl.lit("q9"))
        assert vote([sheet("ffn"), second]).labels["query_id"].to_list() == ["q1", "q9"]

    def test_a_query_that_a_sheet_lacks_is_named(self):
        sheets = [sheet("f", "f", annotators=1), sheet("f", "f", annotators=1), sheet("f", annotators=1)]
        with pytest.raises(InputError, match="1 queries have fewer than 3 labels: q2"):
            vote(sheets)

    def test_a_query_twice_in_a_sheet_is_refused(self):
        with pytest.raises(InputError, match="row 2: query 'q1' has two labels"):
            vote(pl.concat([sheet("fff"), sheet("fff")]))

    def test_numbers_as_ids_and_pandas_frames_are_taken(self):
        made = sheet("ffn").with_columns(query_id=pl.lit(7)).to_pandas()
        assert vote(made).labels["query_id"].item() == "7"

    def test_a_sheet_without_labels_says_what_is_missing(self):
        with pytest.raises(InputError, match="no column annotator_1 or label; found query_id, text"):
            vote(pl.DataFrame({"query_id": ["1"], "text": ["a"]}))
        with pytest.raises(InputError, match="no rows"):
            vote(sheet("fff").clear())


class TestAgreement:
    def test_fleiss_own_example(self):
        """Fleiss (1971), as tabulated widely: 10 subjects, 14 raters, 5 classes, kappa 0.210."""
        table = [
            [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
        ]  # fmt: skip
        assert _fleiss(np.array(table)) == pytest.approx(0.210, abs=5e-4)

    @given(st.lists(st.text("nfmo", min_size=5, max_size=5), min_size=1, max_size=15))
    def test_it_agrees_with_statsmodels(self, rows):
        table = np.array([[row.count(c) for c in "nfmo"] for row in rows])
        ours = vote(sheet(*rows, annotators=5)).agreement
        if len(set("".join(rows))) == 1:
            assert ours is None
        else:
            assert ours == pytest.approx(fleiss_kappa(table))
            assert -0.25 - 1e-12 <= ours <= 1

    def test_it_counts_the_queries_without_a_majority_too(self):
        assert vote(sheet("fff", "mmm")).agreement == 1
        assert vote(sheet("fff", "mmm", "fmn")).agreement < 1


def app() -> typer.Typer:
    from evenrank.cli.annotate import pool_command, vote_command

    made = typer.Typer()
    made.command("pool")(pool_command)
    made.command("vote")(vote_command)
    return made


class TestCommands:
    def test_from_runs_to_labels(self, tmp_path):
        (tmp_path / "docs.tsv").write_text("d1\tshe is her mother\nd2\the is a king\nd3\ta stone\n")
        (tmp_path / "queries.tsv").write_text("1\tqueen\n2\tking\n3\tstone\n")
        (tmp_path / "a.run").write_text("1 Q0 d1 1 2 a\n2 Q0 d2 1 2 a\n3 Q0 d3 1 2 a\n")
        at = {
            name: str(tmp_path / name)
            for name in ("docs.tsv", "queries.tsv", "a.run", "sheet.tsv", "labels.tsv")
        }
        options = [
            "--run",
            at["a.run"],
            "--docs",
            at["docs.tsv"],
            "--queries",
            at["queries.tsv"],
            "--top",
            "1",
        ]
        made = CliRunner().invoke(app(), ["pool", *options, "-o", at["sheet.tsv"]], catch_exceptions=False)
        assert made.exit_code == 0
        assert "2 queries to label, from 2 lists of 1" in made.stderr
        empty = (tmp_path / "sheet.tsv").read_text()
        assert sorted(empty.splitlines()[1:]) == ["1\tqueen\t\t\t", "2\tking\t\t\t"]

        (tmp_path / "sheet.tsv").write_text(
            empty.replace("queen\t\t\t", "queen\tf\tf\tn").replace("king\t\t\t", "king\tm\tm\tm")
        )
        counted = CliRunner().invoke(
            app(), ["vote", at["sheet.tsv"], "-o", at["labels.tsv"]], catch_exceptions=False
        )
        assert counted.stdout == ""
        assert "2 queries labelled by 3 annotators: 0 neutral, 1 female, 1 male, 0 other" in counted.stderr
        from evenrank.data.read import read_genders

        assert dict(read_genders(at["labels.tsv"]).iter_rows()) == {"1": "female", "2": "male"}

    def test_revealed_values_and_json_go_to_stdout(self, tmp_path):
        (tmp_path / "docs.tsv").write_text("d1\tshe\nd2\the\n")
        (tmp_path / "queries.tsv").write_text("1\tqueen\n")
        (tmp_path / "a.run").write_text("1 Q0 d1 1 2 a\n")
        options = [
            "--docs",
            str(tmp_path / "docs.tsv"),
            "--queries",
            str(tmp_path / "queries.tsv"),
            "--reveal",
        ]
        made = CliRunner().invoke(app(), ["pool", str(tmp_path / "a.run"), *options], catch_exceptions=False)
        assert made.stdout.splitlines()[1] == f"1\tqueen\t2\t{-np.log(2)}\tfemale\t\t\t"

        path = tmp_path / "sheet.tsv"
        path.write_text(sheet_text(sheet("ffm", "fmn")))
        counted = CliRunner().invoke(app(), ["vote", str(path), "--format", "json"], catch_exceptions=False)
        found = json.loads(counted.stdout)
        assert found["labels"] == [{"query_id": "q1", "text": "some query", "label": "female", "votes": 2}]
        assert found["counts"] == dict.fromkeys(CLASSES, 0) | {"female": 1}
        assert found["dropped"][0]["reason"] == "no majority"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--measure", "nDCG@10", "--tally", "t"], "has no two sides"),
            ([], "either --docs or --tally"),
            (["--docs", "d", "--tally", "t"], "either --docs or --tally"),
        ],
    )
    def test_what_cannot_be_pooled_is_refused_at_once(self, options, message):
        made = CliRunner().invoke(app(), ["pool", "--run", "a.run", "--queries", "q", *options])
        assert isinstance(made.exception, InputError)
        assert message in str(made.exception)
