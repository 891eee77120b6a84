"""Lines are split as slow code splits them that is plainly right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.data.formats import split_lines


def slow(data: bytes, columns: int, *, spaces: bool) -> tuple[list[list[str]], int, int]:
    rows: list[list[str]] = []
    for line in data.decode().split("\n")[:-1]:
        line = line.removesuffix("\r")
        if spaces:
            cells = [cell for cell in re.split(r"[ \t]", line) if cell]
        else:
            cells = line.split("\t") if line else []
        if len(cells) != columns:
            return rows, len(rows), len(cells)
        rows.append(cells)
    return rows, len(rows), -1


line = st.text("ab \t\r\0é", max_size=14)


@pytest.mark.parametrize("spaces", [True, False])
@given(parts=st.lists(line, max_size=20), columns=st.integers(2, 4))
@example(parts=["d1\ttext\r", "d2\t", "\t\r", "a\tb\r\r"], columns=2)
@example(parts=["a\tb"] * 70 + ["\r"], columns=2)
def test_lines_are_split_as_slow_code_splits_them(parts: list[str], columns: int, *, spaces: bool) -> None:
    data = "".join(part + "\n" for part in parts).encode()
    expected, good, found = slow(data, columns, spaces=spaces)
    arrays, *counts = split_lines(np.frombuffer(data, np.uint8), columns, range(columns), spaces=spaces)
    for array in arrays:
        array.validate(full=True)
    assert counts == [good, found]
    assert [list(row) for row in zip(*(array.to_pylist() for array in arrays), strict=True)] == expected
