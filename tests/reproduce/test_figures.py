"""Figures of a recipe's page: one look, the numbers folded beneath, no script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenrank.reproduce.page import Chart, Page, Table
from evenrank.reproduce.settings import Settings
from evenrank.show.charts.long_form import BANDED, long_form, long_frame
from evenrank.show.charts.theme import LIGHT

NAMED = [
    {"x": name, "value": value, "low": value - 0.1, "high": value + 0.1, "of": of, "panel": panel}
    for panel in ("one", "two")
    for name, value in (("a < b", 0.2), ("c", 0.4))
    for of in ("female", "male")
]
PLACED = [
    {"x": place, "value": place / 3, "of": of, "end": place + 1}
    for of in ("here", "there")
    for place in (0.1, 2, 3)
]


def _page(*charts: Chart) -> Page:
    return Page("x", "T", "P", "did", "here", [Table("A figure", ["r", "v"], [["<b>", "-0.1"]], charts)])


@pytest.mark.parametrize("kind", ["bars", "shares", "dots", "lines", "points", "histogram"])
def test_every_kind_is_drawn_with_its_axes_and_n(kind: str, tmp_path: Path) -> None:
    rows = NAMED if kind in ("bars", "shares", "dots") else PLACED
    _page(Chart(kind, rows, "places", "values", "n = 12 queries.")).write(tmp_path)
    picture = (tmp_path / "x-1.svg").read_text()
    assert "values" in picture and "n = 12 queries." in picture and "A figure" in picture
    assert "<b>" not in picture and "a < b" not in picture
    assert len(picture) < 60_000


def test_places_of_a_line_are_written_in_full_and_no_dot_stands_on_a_name(tmp_path: Path) -> None:
    rows = [{"x": x, "value": x} for x in (0.0, 0.25, 0.75, 1.0)]
    dots = [{"x": name, "value": value} for name, value in (("a", 0.75), ("b", 0.85))]
    _page(Chart("lines", rows, "s", "v", "c"), Chart("dots", dots, "", "v", "c")).write(tmp_path)
    first, second = ((tmp_path / f"x-{i}.svg").read_text() for i in (1, 2))
    assert ">0.25<" in first and ">0.75<" in first
    assert ">0.74<" in second


def test_genders_have_their_colours_and_others_those_of_runs(tmp_path: Path) -> None:
    page = _page(Chart("bars", NAMED, "", "v", "c"), Chart("lines", PLACED, "p", "v", "c"))
    page.write(tmp_path)
    first, second = ((tmp_path / f"x-{i}.svg").read_text() for i in (1, 2))
    assert LIGHT["female"] in first and LIGHT["male"] in first
    assert LIGHT["run-1"] in second and LIGHT["female"] not in second


def test_a_page_draws_in_its_own_colours_and_folds_the_numbers(tmp_path: Path) -> None:
    _page(Chart("bars", NAMED, "", "v", "How to read it.")).write(tmp_path)
    html, text = (tmp_path / "x.html").read_text(), (tmp_path / "x.md").read_text()
    drawn = html[html.index("<svg") : html.index("</svg>")]
    assert "var(--female)" in drawn and LIGHT["female"] not in drawn  # light, dark and print alike
    assert "prefers-color-scheme: dark" in html and "<script" not in html
    assert html.index("<svg") < html.index("<details>") < html.index("&lt;b&gt;")
    assert re.search(r"!\[A figure\. How to read it\.\]\(x-1\.svg\)", text)
    assert text.index("x-1.svg") < text.index("<details") < text.index("\\<b\\>") < text.index("</details>")
    stored = json.loads((tmp_path / "x.json").read_text())
    assert stored["tables"][0]["charts"][0]["rows"] == NAMED


def test_a_table_without_a_chart_or_rows_is_not_folded(tmp_path: Path) -> None:
    page = _page(Chart("bars", [], "", "v", "c"))
    page.write(tmp_path)
    assert "<details" not in page.markdown() and not list(tmp_path.glob("*.svg"))


def test_rows_without_a_value_are_left_out() -> None:
    rows: list[dict[str, Any]] = [{"x": "a", "value": None}, {"x": "b", "value": 1, "low": None}]
    assert long_frame(rows)["x"].to_list() == ["b"]


def test_panels_share_a_scale_unless_each_has_its_own() -> None:
    frame = long_frame(NAMED)
    shared = json.dumps(long_form(frame, kind="dots", x="", y="v").to_dict()["concat"])
    own = json.dumps(long_form(frame, kind="dots", x="", y="v", own_scale=True).to_dict()["concat"])
    assert '"scale": {"domain": [0.0, 0.5' in shared
    assert '"scale": {"domain": [0.0, 0.5' not in own


def test_a_step_with_predicted_genders_is_done_anew_by_another_classifier() -> None:
    facts = Settings(genders="predict").facts["genders"]
    assert len(facts) == 2 and all(len(each) > 8 for each in facts)


def test_a_chart_without_a_value_is_not_drawn() -> None:
    empty = [row | {"value": None} for row in NAMED]
    page = _page(Chart("dots", empty, "", "v", "c"), Chart("dots", [], "", "v", "c"))
    assert "<details" not in page.markdown() and "<svg" not in page.html()


@pytest.mark.parametrize(
    ("kind", "series", "high", "said"),
    [
        ("dots", 1, 2.0, "Thin lines are 95% intervals."),
        ("lines", BANDED, 2.0, "Bands are 95% intervals."),
        ("lines", BANDED + 1, 2.0, ""),
        ("dots", 1, None, ""),
    ],
)
def test_a_caption_speaks_of_intervals_where_they_are_drawn(
    kind: str, series: int, high: float | None, said: str
) -> None:
    low = None if high is None else 0.0
    rows = [
        {"x": n, "value": 1.0, "low": low, "high": high, "of": f"s{of}"}
        for n in (1, 2)
        for of in range(series)
    ]
    figure = Chart(kind, rows, "x", "y", "n = 2 queries.").figure("f", "Title")
    assert figure.caption == f"n = 2 queries. {said}".strip()
    if high is not None:
        assert ('"field": "low"' in json.dumps(figure.chart.to_dict()["layer"])) == bool(said)
