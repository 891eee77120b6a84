"""Selection rates and impact ratios are those of the worked examples in New York's rule."""

from __future__ import annotations

import pytest

from evenrank.auditing.selection import FEWEST_SHARE, Category, Selection, small_categories

SEX = {"Male": (1390, 667, 1.00), "Female": (1181, 555, 0.979)}
RACE = {
    "Hispanic or Latino": (408, 204, 0.97),
    "White": (797, 412, 1.00),
    "Black or African American": (390, 170, 0.84),
    "Native Hawaiian or Pacific Islander": (119, 52, 0.85),
    "Asian": (616, 302, 0.95),
    "Native American or Alaska Native": (41, 18, 0.85),
    "Two or More Races": (213, 96, 0.87),
}
"""6 RCNY § 5-301(b), example: applicants, selected, impact ratio; 250 more were of an unknown category."""
SCORED = {"Male": (92, 0.543, 1.00), "Female": (76, 0.447, 0.82)}
"""6 RCNY § 5-301(d), example: applicants, scoring rate, impact ratio."""


def counted(kind: str, counts: dict[str, tuple[int, int, int]]) -> Selection:
    total = sum(candidates for candidates, _, _ in counts.values())
    rows = tuple(
        Category("tool", kind, name, candidates, selected, above, candidates / total)
        for name, (candidates, selected, above) in counts.items()
    )
    return Selection(10, (kind,), rows, {"tool": total + 250}, {"tool": {kind: 250}})


@pytest.mark.parametrize(("kind", "published"), [("sex", SEX), ("race", RACE)])
def test_impact_ratios_are_those_of_the_rules_example(
    kind: str, published: dict[str, tuple[int, int, float]]
) -> None:
    found = counted(kind, {name: (many, chosen, 0) for name, (many, chosen, _) in published.items()})
    for one in found.impacts("tool", kind):
        *_, ratio = published[one.category.category]
        digits = 3 if kind == "sex" else 2
        assert one.ratio is not None and round(one.ratio, digits) == ratio


def test_scoring_rates_are_those_of_the_rules_example() -> None:
    counts = {name: (many, 0, round(many * rate)) for name, (many, rate, _) in SCORED.items()}
    for one in counted("sex", counts).impacts("tool", "sex", "scoring"):
        _, rate, ratio = SCORED[one.category.category]
        assert one.rate == pytest.approx(rate, abs=5e-4)
        assert one.ratio is not None and round(one.ratio, 2) == ratio


def test_only_a_category_below_two_percent_may_be_left_out() -> None:
    found = counted("race", {name: (many, chosen, 0) for name, (many, chosen, _) in RACE.items()})
    assert small_categories(found) == ["race Native American or Alaska Native"]
    left_out = [one.category.category for one in found.impacts("tool", "race", smallest=FEWEST_SHARE)
                if one.excluded]  # fmt: skip
    assert left_out == ["Native American or Alaska Native"]
