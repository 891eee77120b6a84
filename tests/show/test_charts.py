"""Charts: valid Vega-Lite, labelled, and right where they compute something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.show import charts
from evenrank.show.charts.theme import LIGHT, configuration, reach
from evenrank.show.charts.tradeoff import NEAR, apart, pareto
from evenrank.show.charts.values import BANDED, bias_by_cutoff
from evenrank.show.figure import LONGEST, short_names

RUNS = pl.DataFrame(
    {
        "run": ["a", "a", "b.x[0]"],
        "cutoff": [1, 10, 1],
        "value": [0.1, 0.2, -0.1],
        "low": [0.0, 0.1, -0.2],
        "high": [0.2, 0.3, 0.0],
    }
)
POINTS = pl.DataFrame({"query": ["u", "v"], "x": [-0.1, 0.2], "y": [-0.2, 0.1], "contribution": [0.1, 0.2]})
LINES = pl.DataFrame(
    {"engine": ["this run"] * 2 + ["perfect engine"] * 2, "x": [0.0, 1.0] * 2, "y": [0.0, 0.3] * 2}
)


def all_charts() -> Iterator[tuple[str, Any]]:
    change = charts.waterfall_data(pl.Series(["a", "b"]), np.array([0.2, -0.1]))
    yield "values", charts.intervals(RUNS.with_columns(measure=pl.lit("ARaB@10")))
    yield "cutoff", charts.bias_by_cutoff(RUNS)
    yield "change", charts.waterfall(change, measure="ARaB@10", sides=("female", "male"))
    yield (
        "words",
        charts.word_bars(
            pl.DataFrame({"word": ["he", "she"], "group": ["male", "female"], "contribution": [0.2, -0.1]}),
            ["female", "male"],
        ),
    )
    yield "scatter", charts.stereotype_scatter(POINTS, LINES)
    yield (
        "tradeoff",
        charts.tradeoff_scatter(
            pl.DataFrame(
                {
                    "bias": [0.1, 0.2],
                    "utility": [0.3, 0.4],
                    "low": [0.2, 0.3],
                    "high": [0.4, 0.5],
                    "name": ["a", "b"],
                }
            )
        ),
    )
    yield (
        "psychology",
        charts.process_bars(
            pl.DataFrame(
                {"characteristic": ["anger"] * 2, "gender": ["female", "male"], "percent": [0.1, 0.3]}
            )
        ),
    )
    yield (
        "histogram",
        charts.representation_histogram(
            pl.DataFrame({"bias": [-0.1, 0.0], "queries": [1, 4]}), feature="female", at=10
        ),
    )
    yield (
        "grid",
        charts.target_grid(
            pl.DataFrame({"query": ["q"], "target": [0.5], "model": [0.4], "x": [0.51], "y": [0.42]}),
            feature="female",
            at=10,
        ),
    )
    yield (
        "association",
        charts.association_histogram(
            pl.DataFrame(
                {
                    "gender": ["female", "male"],
                    "low": [0.0, 0.0],
                    "high": [1.0, 1.0],
                    "pairs": [3, 4],
                    "share": [1.0, 1.0],
                }
            )
        ),
    )
    yield "rankshift", charts.rank_shift(charts.shift_data(pl.DataFrame({"before": [1], "after": [3]})))


CHARTS = dict(all_charts())


def titles(spec: Any) -> Iterator[str]:
    """Titles of the axes, wherever in a chart they are."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key in ("x", "y") and isinstance(value, dict) and isinstance(value.get("title"), str):
                yield value["title"]
            elif key != "datasets":
                yield from titles(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from titles(value)


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_labelled_and_as_wide_as_its_place(name: str) -> None:
    spec = CHARTS[name].to_dict()  # validates against the schema of Vega-Lite
    assert spec["width"] == "container"
    assert list(titles(spec))


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_names_its_colours_and_can_be_drawn(name: str) -> None:
    import vl_convert

    spec = CHARTS[name].to_dict() | {"width": 400}
    assert "#" not in str({key: value for key, value in spec.items() if key not in ("config", "$schema")})
    assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_stand_out_from_the_page() -> None:
    for name in ("female", "male", "ink", "muted", "good", "bad"):
        assert contrast(LIGHT[name], LIGHT["surface"]) >= 4.5, name
    for name in (name for name in LIGHT if name.startswith("run-")):
        assert contrast(LIGHT[name], LIGHT["surface"]) >= 3, name


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=400), st.integers(1, 60))
def test_a_waterfall_keeps_the_mean_and_every_query(changes: list[float], most: int) -> None:
    values = np.array(changes)
    frame = charts.waterfall_data(pl.Series([str(i) for i in range(len(values))]), values, most=most)
    assert frame.height <= max(most, 1) or len(values) <= most
    assert frame["queries"].sum() == len(values)
    mean = float((frame["change"] * frame["queries"]).sum()) / len(values)
    assert mean == pytest.approx(values.mean(), abs=1e-9)
    assert frame["change"].is_sorted()


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_nothing_on_the_front_is_beaten(points: list[tuple[float, float]]) -> None:
    frame = pl.DataFrame(points, schema=["bias", "utility"], orient="row")
    found = charts.pareto(frame)
    assert found["front"].any()
    for bias, utility, front in found.iter_rows():
        beaten = any(
            abs(b) <= abs(bias) and u >= utility and (abs(b) < abs(bias) or u > utility) for b, u in points
        )
        assert front == (not beaten)


@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 2000)), min_size=1, max_size=60))
def test_every_rank_shift_falls_in_one_bin(ranks: list[tuple[int, int]]) -> None:
    frame = charts.shift_data(pl.DataFrame(ranks, schema=["before", "after"], orient="row"))
    assert frame["queries"].sum() == len(ranks)
    falls = sum(after > before for before, after in ranks)
    assert frame.filter(side="falls")["queries"].sum() == falls


def test_a_sample_keeps_the_largest_contributions() -> None:
    rng = np.random.default_rng(0)
    points = pl.DataFrame(
        {"x": rng.random(3000), "y": rng.random(3000), "contribution": rng.normal(size=3000)}
    )
    drawn = charts.sampled(points, 500)
    assert drawn.height == 500
    largest = points.sort(pl.col("contribution").abs(), descending=True).head(100)
    assert drawn.join(largest, on=["x", "y"]).height == 100
    assert charts.sampled(points, 500).equals(drawn)


@given(st.lists(st.text("ab-", min_size=1, max_size=60), unique=True, max_size=12))
def test_names_in_legends_are_short_and_differ(runs: list[str]) -> None:
    names = short_names(runs)
    assert list(names) == runs and len({*names.values()}) == len(runs)
    assert all(len(name) <= LONGEST + 2 for name in names.values())
    assert all(names[run] == run for run in runs if len(run) <= LONGEST)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_labels_of_settings_do_not_cover_one_another(points: list[tuple[float, float]]) -> None:
    frame = pl.DataFrame(points, schema=["bias", "utility"], orient="row").with_columns(size="bias")
    found = apart(pareto(frame))
    labelled = found.filter("labelled")
    wide, high = ((frame[axis].max() - frame[axis].min()) or 1.0 for axis in ("size", "utility"))
    assert labelled.height >= 1 and labelled["front"].all()
    for a in range(labelled.height):
        for b in range(a):
            across = abs(labelled["size"][a] - labelled["size"][b]) / wide
            up = abs(labelled["utility"][a] - labelled["utility"][b]) / high
            assert across >= NEAR[0] or up >= NEAR[1]


def test_bands_are_drawn_only_where_they_do_not_cover_one_another() -> None:
    for count, drawn in ((BANDED, True), (BANDED + 1, False)):
        frame = pl.concat([RUNS.head(2).with_columns(run=pl.lit(f"run {i}")) for i in range(count)])
        assert ("'area'" in str(bias_by_cutoff(frame).to_dict())) is drawn


def test_what_stands_for_no_colour_is_drawn_in_that_of_the_text() -> None:
    legend = configuration({**LIGHT, "muted": "var(--muted)"})["legend"]
    assert legend["symbolBaseFillColor"] == legend["symbolBaseStrokeColor"] == "var(--muted)"


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_a_shared_scale_holds_every_value_and_balance(values: list[float]) -> None:
    low, high = reach(values) or (1.0, -1.0)
    assert low <= min(0.0, *values) and max(0.0, *values) <= high


def test_jitter_never_leads_out_of_the_square() -> None:
    shown = [
        {"query": f"q{q}", "doc_id": f"{q}-{i}", "rank": i + 1, "group": "female" if q % 2 else "male"}
        for q in range(40)
        for i in range(4)
    ]
    grid = er.represent(shown, {f"q{q}": {"female": q % 2} for q in range(40)}, at=4).grid("female")
    for axis in ("x", "y"):
        assert grid[axis].is_between(0, 1).all()
