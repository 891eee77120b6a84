"""Numbers and tables: one way to print each, in text, CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.show import numbers
from evenrank.show.grid import Grid, Small, escaped


def test_a_sign_is_shown_where_it_says_something() -> None:
    assert numbers.number(0.2, numbers.form_of(er.parse("ARaB@10"))) == "+0.200"
    assert numbers.number(0.2, numbers.form_of(er.parse("nDCG@10"))) == "0.200"


def test_what_is_undefined_is_a_dash_and_an_interval_that_is_not_there_is_nothing() -> None:
    assert numbers.number(None) == numbers.p_value(None) == "–"
    assert numbers.interval(None, 0.1) == numbers.interval_phrase(0.1, None, 0.95) == ""


@pytest.mark.parametrize(
    ("p", "shown", "said"),
    [(0.001, "0.001", "p = 0.001"), (0.0009, "< 0.001", "p < 0.001"), (1.0, "1.000", "p = 1.000")],
)
def test_a_small_p_is_only_said_to_be_small(p: float, shown: str, said: str) -> None:
    assert (numbers.p_value(p), numbers.p_phrase(p)) == (shown, said)


def test_a_minus_is_typeset_before_numbers_only() -> None:
    assert numbers.minus("bm25-rm3: -0.2 [-0.3, +0.1]") == "bm25-rm3: −0.2 [−0.3, +0.1]"


def test_text_is_aligned_and_ends_without_blanks() -> None:
    grid = Grid(["", "bm25", "a"], [["ARaB@10", "+0.2", ""], [], ["x", "-0.123", "1"]])
    assert grid.text().split("\n") == ["           bm25  a", "ARaB@10    +0.2", "", "x        -0.123  1"]


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=5))
def test_csv_can_be_read_back(rows: list[list[str]]) -> None:
    rows = [[cell.replace("\r", " ").replace("\x00", " ") for cell in row] for row in rows]
    text = Grid(["a", 'b,"c'], rows).csv()
    assert list(csv.reader(io.StringIO(text)))[1:] == rows


@pytest.mark.parametrize(
    ("plain", "latex"),
    [
        ("a_b & 5% {x} #1 $2", r"a\_b \& 5\% \{x\} \#1 \$2"),
        ("\\", r"\textbackslash{}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("a<b>|c|", r"a\textless{}b\textgreater{}\textbar{}c\textbar{}"),
        ("λ – …", r"$\lambda$ -- \ldots{}"),
    ],
)
def test_latex_takes_no_character_of_a_name_for_a_command(plain: str, latex: str) -> None:
    assert escaped(plain) == latex
    assert Grid(["x", "y"], [[plain, plain]]).latex().count(latex) == 2


@pytest.mark.parametrize(
    ("cell", "latex"),
    [
        ("+0.203", "$+0.203$"),
        ("0.899†", r"$0.899^{\dagger}$"),
        ("0.4*", "$0.4^{*}$"),
        ("[-0.1, +0.2]", "$[-0.1, +0.2]$"),
        ("< 0.001", "$< 0.001$"),
        ("1,234", "$1{,}234$"),
        ("12%", r"$12\%$"),
        ("–", "--"),
        ("", ""),
        ("3 of 5", "3 of 5"),
        (Small("[-0.1, 0.2]"), r"{\scriptsize $[-0.1, 0.2]$}"),
        (Small(""), ""),
    ],
)
def test_latex_sets_numbers_as_mathematics_and_words_as_words(cell: str, latex: str) -> None:
    assert rf"x & {latex} \\" in Grid(["", "n"], [["x", cell]]).latex()


def test_a_latex_table_has_a_column_for_each_heading_and_a_gap_for_an_empty_row() -> None:
    text = Grid(["run", "measure", "value"], [["a", "b", "1"], [], ["c", "d", "2"]], left=2).latex()
    assert text.startswith("\\begin{tabular}{llr}\n\\toprule\n") and text.endswith("\\end{tabular}\n")
    assert text.count(r"\\") == 3 and text.count(r"\addlinespace") == 1


def test_markdown_cannot_be_broken_by_a_name() -> None:
    text = Grid(["run", "value"], [["a|b\n<x>", "+0.1"]]).markdown()
    assert text == "| run | value |\n| --- | --: |\n| a\\|b \\<x\\> | +0.1 |\n"
