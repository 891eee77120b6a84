"""Lines are split as slow code splits them that is plainly right."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.data.files import RawBlock
from evenrank.data.formats import Layout, parse_lines
from evenrank.errors import InputError


def slow(data: bytes, columns: int, separator: str) -> tuple[list[list[str]], int, int]:
    """The rows before the first line with another number of cells, its place, and how many it has."""
    rows: list[list[str]] = []
    for line in data.decode().split("\n")[:-1]:
        line = line.removesuffix("\r")
        if separator == " ":
            cells = [cell for cell in re.split(r"[ \t]", line) if cell]
        else:
            cells = line.split("\t") if line.strip() else []
        if len(cells) != columns:
            return rows, len(rows), len(cells)
        rows.append(cells)
    return rows, len(rows), -1


line = st.builds("".join, st.tuples(st.text("ab \t\0é", max_size=14), st.sampled_from(["", "\r"])))


@pytest.mark.parametrize("separator", [" ", "\t"])
@given(parts=st.lists(line, min_size=1, max_size=20), columns=st.integers(2, 4), start=st.integers(1, 9))
@example(parts=["d1\ttext\r", "d2\t", "a\tb\r\r"], columns=2, start=1)
@example(parts=["a b", "a \r"], columns=2, start=1)
@example(parts=["a\tb", "\t", "\t"], columns=2, start=1)
@example(parts=["a\tb"] * 70 + ["\r"], columns=2, start=1)
@example(parts=["a  b\t\tc", " a b c ", "a\tb \tc \r"], columns=3, start=1)
def test_lines_are_split_as_slow_code_splits_them(
    parts: list[str], columns: int, start: int, *, separator: str
) -> None:
    data = "".join(part + "\n" for part in parts).encode()
    names = [f"c{number}" for number in range(columns)]
    layout = Layout(tuple(names), separator)
    expected, good, cells = slow(data, columns, separator)
    if good:
        first = "".join(part + "\n" for part in parts[:good]).encode()
        frame = parse_lines(RawBlock(first, start, 0), layout, names, "x").frame
        assert frame.rows() == [tuple(row) for row in expected]
    if cells >= 0:
        problem = f"^x:{start + good}: {f'{cells} columns? instead of {columns}' if cells else 'blank line'}"
        with pytest.raises(InputError, match=problem):
            parse_lines(RawBlock(data, start, 0), layout, names, "x")
