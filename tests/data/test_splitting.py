"""The kernels that split lines agree with slow code that is plainly right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.data import kernels, lines
from evenrank.data.files import PADDING, Bytes

NOISE = b"\t\n \xff\n\t"  # what may stand behind the end of a block, and must not matter


def padded(data: bytes) -> tuple[Bytes, int]:
    room = np.zeros(-(-(len(data) + PADDING) // 64) * 64, np.uint8)
    tail = (NOISE * PADDING)[: len(room) - len(data)]
    room[:] = np.frombuffer(data + tail, np.uint8)
    return room, len(data)


def slow_pairs(data: bytes) -> tuple[int, list[bytes], list[bytes]]:
    ids: list[bytes] = []
    texts: list[bytes] = []
    for line in data.split(b"\n")[:-1]:
        cells = line.removesuffix(b"\r").split(b"\t")
        if len(cells) == 1:
            return kernels.NO_TAB if cells[0] else kernels.BLANK, ids, texts
        if not cells[0]:
            return kernels.NO_ID, ids, texts
        if len(cells) > 2:
            return kernels.MORE_TABS, ids, texts
        ids.append(cells[0])
        texts.append(cells[1])
    return kernels.GOOD, ids, texts


def slow_columns(data: bytes, columns: int, *, spaces: bool) -> tuple[int, int, list[list[bytes]]]:
    rows: list[list[bytes]] = []
    for line in data.split(b"\n")[:-1]:
        line = line.removesuffix(b"\r")
        if spaces:
            cells = [cell for cell in re.split(rb"[ \t]", line) if cell]
        else:
            cells = line.split(b"\t") if line else []
        if len(cells) != columns:
            return kernels.COLUMNS if cells else kernels.BLANK, len(cells), rows
        rows.append(cells)
    return kernels.GOOD, 0, rows


pairs = st.tuples(st.binary(min_size=1, max_size=30), st.binary(max_size=200)).map(
    lambda pair: b"\t".join(re.sub(rb"[\t\n]", b"", part) for part in pair)
)
mixed = st.lists(st.one_of(pairs, pairs, pairs, st.binary(max_size=20), st.just(b"\r")), max_size=20)
cells = st.text("ab \t\r\0é", max_size=14).map(str.encode)


@given(mixed)
@example([b"d1\ttext\r", b"d2\t"])
@example([b"a\tb"] * 70)
def test_pairs_are_split_as_slow_code_splits_them(parts: list[bytes]) -> None:
    data = b"".join(part.replace(b"\n", b"") + b"\n" for part in parts)
    code, ids, texts = kernels.split_pairs(*padded(data))
    expected = slow_pairs(data)
    if data.decode(errors="ignore").encode() == data:
        assert lines.plain_pairs(data.decode()) == (code, ids, texts)
    assert (
        code,
        *([value.as_buffer().to_pybytes() for value in column] for column in (ids, texts)),
    ) == expected


@pytest.mark.parametrize("spaces", [True, False])
@given(parts=st.lists(cells, max_size=20), columns=st.integers(1, 4))
def test_columns_are_split_as_slow_code_splits_them(
    parts: list[bytes], columns: int, *, spaces: bool
) -> None:
    data = b"".join(part + b"\n" for part in parts)
    wanted = tuple(range(columns))
    code, good, found, arrays = kernels.split_columns(*padded(data), columns, wanted, spaces=spaces)
    assert lines.plain_columns(data.decode(), columns, wanted, spaces=spaces) == (code, good, found, arrays)
    rows = [list(row) for row in zip(*(column.to_pylist() for column in arrays), strict=True)]
    expected_code, expected_found, expected_rows = slow_columns(data, columns, spaces=spaces)
    assert (code, good) == (expected_code, len(expected_rows))
    assert found == expected_found
    assert rows == [[cell.decode() for cell in row] for row in expected_rows]


def test_arrow_finds_nothing_wrong_with_the_arrays() -> None:
    _, ids, texts = kernels.split_pairs(*padded("d1\té\nd2\t\n".encode() * 100))
    for column in (ids, texts):
        column.validate(full=True)
    assert texts.to_pylist() == ["é", ""] * 100
