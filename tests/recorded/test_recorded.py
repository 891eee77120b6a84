"""What evenrank computes is what it computed before, within 1e-9.

The values are in values.json. A change that is meant to change one records it anew with
`python -m tests.recorded.record NAME`, in a commit of its own that says why.
"""

from __future__ import annotations

import pytest
from tests.recorded import record

CASES, SLOW = record.load_cases()
VALUES = record.load_values()


def _parameters() -> list[object]:
    names = sorted(CASES.keys() | VALUES.keys())
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


@pytest.mark.parametrize("name", _parameters())
def test_value_is_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    if name not in CASES:
        pytest.fail(f"no case computes {name} any more; run python -m tests.recorded.record {name}")
    if name not in VALUES:
        pytest.fail(f"{name} is not recorded; run python -m tests.recorded.record {name}")
    if record.needs_data(name):
        request.getfixturevalue("shared")
    found = list(record.differences(VALUES[name], record.to_json(CASES[name]())))
    if found:
        more = f"\n… and {len(found) - 20} more" if len(found) > 20 else ""
        pytest.fail(f"{name} is not as recorded:\n" + "\n".join(found[:20]) + more)


def test_differences_within_the_tolerance_are_none() -> None:
    nan = float("nan")
    recorded = {"a": [1.0, nan, "x", None, True], "b": 1e12}
    assert not [*record.differences(recorded, {"a": [1.0 + 5e-10, nan, "x", None, True], "b": 1e12 + 1}, "v")]


@pytest.mark.parametrize(
    ("recorded", "new"),
    [(1.0, 1.0 + 1e-8), (1, 2), (1, True), ("1", 1), (None, 0.0), (float("nan"), 0.0), ([1], [1, 2])],
)
def test_other_values_are_differences(recorded: object, new: object) -> None:
    (found,) = record.differences({"a": recorded}, {"a": new})
    assert found.startswith("value['a']") and "recorded" in found and "now" in found


def test_keys_that_are_missing_or_new_are_differences() -> None:
    assert sorted(record.differences({"a": 1, "b": 2}, {"b": 2, "c": 3})) == [
        "value['a']: recorded 1, now missing",
        "value['c']: not recorded, now 3",
    ]


def test_documents_with_equal_scores_may_change_places() -> None:
    recorded = {"ranking": [["a", 3.0], ["b", 2.0], ["c", 2.0 - 1e-12], ["d", 1.0]]}
    swapped = {"ranking": [["a", 3.0], ["c", 2.0], ["b", 2.0], ["e", 1.0]]}
    assert not [*record.differences(recorded, swapped)]


@pytest.mark.parametrize(
    "new",
    [
        [["b", 3.0], ["a", 2.0], ["c", 1.0]],
        [["a", 3.0], ["d", 2.0], ["c", 1.0]],
        [["a", 3.0], ["b", 2.5], ["c", 1.0]],
        [["a", 3.0], ["b", 2.0]],
    ],
)
def test_other_rankings_are_differences(new: list[list[object]]) -> None:
    recorded = {"ranking": [["a", 3.0], ["b", 2.0], ["c", 1.0]]}
    assert [*record.differences(recorded, {"ranking": new})]
