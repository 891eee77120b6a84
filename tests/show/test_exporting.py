"""Charts as files: of the report, and of single commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank import demo
from evenrank.auditing import Audit
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.show.report import drawn, sections

STARTS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


def test_every_chart_is_written_with_its_numbers(audit: Audit, tmp_path: Path) -> None:
    written = audit.charts(tmp_path / "charts", formats=("svg",))
    assert {path.suffix for path in written} == {".svg", ".csv"}
    for path in written:
        assert path.stat().st_size > 50
        assert path.suffix == ".csv" or path.read_bytes().startswith(STARTS["svg"])
    with pytest.raises(InputError, match="'gif'"):
        audit.charts(tmp_path, formats=("gif",))


@pytest.mark.parametrize("form", STARTS)
def test_a_chart_has_every_form(audit: Audit, form: str) -> None:
    figure = next(section for section in sections(audit) if section.id == "values").figures[0]
    assert drawn(figure, form).startswith(STARTS[form])


def test_psychology_draws_a_group_of_bars_for_each_process(tmp_path: Path) -> None:
    here = demo.folder()
    files = ["--qrels", str(here / "qrels.txt"), "--docs", str(here / "docs.tsv")]
    chart = tmp_path / "bars.svg"
    assert main(["psychology", *files, "--genders", str(here / "genders.tsv"), "--chart", str(chart)]) == 0
    text = chart.read_text()
    assert all(f">{word}<" in text for word in ("Affect", "anger", "Drives", "power", "female", "male"))


@pytest.fixture
def shown(tmp_path: Path) -> list[str]:
    """Result lists and targets, as arguments of `represent`."""
    rows = [f"job {q}\td{q}{i}\t{i + 1}\t{'fm'[(i + q) % 3 > 0]}" for q in range(5) for i in range(10)]
    (tmp_path / "results.tsv").write_text("\n".join(["query\tdoc_id\trank\tgroup", *rows]) + "\n")
    wanted = [f"job {q}\t0.5" for q in range(5)]
    (tmp_path / "targets.tsv").write_text("\n".join(["query\tf", *wanted]) + "\n")
    return ["represent", str(tmp_path / "results.tsv"), "--targets", str(tmp_path / "targets.tsv")]


def test_represent_draws_histogram_and_grid(shown: list[str], tmp_path: Path) -> None:
    chart = tmp_path / "grid.svg"
    assert main([*shown, "--targets", "full", "--chart", str(chart)]) == 0
    text = chart.read_text()
    assert "female in the top 10, targets: targets" in text
    assert "female: target and shown, targets: full" in text


def test_a_chart_of_an_unknown_form_is_refused_before_anything_is_printed(
    shown: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*shown, "--chart", str(tmp_path / "grid.gif")]) == 2
    out, err = capfd.readouterr()
    assert not out and "a chart ends in .svg, .png, .pdf, not 'grid.gif'" in err


def test_disparity_draws_the_associations(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = []
    for gender, mean in (("female", 5), ("male", 6)):
        rows = [f"{gender}{i}\t{x:.3f}" for i, x in enumerate(rng.normal(mean, 1, 40))]
        (tmp_path / f"{gender}.tsv").write_text("\n".join(["query_id\tscore", *rows]) + "\n")
        given += ["--association", f"{gender}={tmp_path / f'{gender}.tsv'}"]
    assert main(["disparity", *given, "--chart", str(tmp_path / "association.pdf")]) == 0
    assert (tmp_path / "association.pdf").read_bytes().startswith(STARTS["pdf"])


def test_a_chart_away_from_its_page_has_title_caption_and_n(audit: Audit) -> None:
    each = {figure.id: figure for section in sections(audit) for figure in section.figures}
    svg = drawn(each["cutoff-arab"], "svg").decode()
    assert "ARaB by cut-off" in svg and "n = 48 queries" in svg
    for name, figure in each.items():
        assert re.search(r"\bn = |queries|pairs", f"{figure.title} {figure.caption}"), name


def test_charts_that_are_compared_share_a_scale(audit: Audit) -> None:
    from evenrank.show.charts.query_gender import stereotype_figures
    from evenrank.show.charts.values import word_figures

    for figures, axis in ((word_figures(audit), "x"), (stereotype_figures(audit), "y")):
        domains = {str(_domain(figure.chart.to_dict(), axis)) for figure in figures}
        assert len(figures) == 2 and len(domains) == 1 and domains != {"None"}


def _domain(spec: Any, axis: str) -> Any:
    """The domain of the first axis that has one, wherever in a chart it is."""
    if isinstance(spec, dict):
        here = spec.get(axis)
        if isinstance(here, dict) and isinstance(here.get("scale"), dict) and "domain" in here["scale"]:
            return here["scale"]["domain"]
    each = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    return next((found for one in each if (found := _domain(one, axis)) is not None), None)
