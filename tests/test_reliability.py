"""A small part of benchmarks/reliability: a broken file or a flipped bit leads to one clear line."""

from __future__ import annotations

import pytest
from benchmarks import reliability
from benchmarks.reliability import flips, fuzzing


@pytest.mark.parametrize("name", list(fuzzing.READERS))
def test_a_broken_file_is_read_or_refused_in_one_line(name: str) -> None:
    found = fuzzing.fuzz(name, 30)
    assert found["faults"] == 0, found["first faults"]
    assert found["refused"] > 0  # else the fuzzer does nothing


@pytest.mark.parametrize("name", ["index", "forward-index", "offsets", "classifier-model"])
def test_a_flipped_bit_is_found(name: str) -> None:
    found = flips.flip(name, 8)
    assert found["other numbers"] == found["faults"] == 0, found["examples"]
    assert found["refused"] > 0


def test_the_table_tells_what_was_found_and_what_crashed() -> None:
    found = {
        "fuzz": {"run": {"mutations": 2000, "read": 5, "refused": 1995, "faults": 0}},
        "flip": {"index": {"ended with": -11, "said": []}},
        "kill": {
            "tally": {"kills": 30, "old": 20, "none": 9, "new": 1, "broken": 0, "works afterwards": True}
        },
    }
    lines = reliability.table(found).splitlines()
    assert lines[2:] == [
        "| broken file: run | 2,000 | 5 read, 1,995 refused | 0 |",
        "| flipped bit: index | – | the process ended with -11 | 1 |",
        "| kill -9: tally | 30 | 20 old, 9 none, 1 new; works afterwards | 0 |",
    ]
