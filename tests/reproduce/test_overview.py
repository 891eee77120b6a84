"""The overview says what the pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks import overview

ROOT = Path(__file__).parents[2]


def test_the_overview_is_made_of_the_pages() -> None:
    assert (ROOT / "docs" / "reproduce" / "overview.md").read_text() == overview.overview()


def test_pictures_are_there_and_small() -> None:
    pages = ROOT / "docs" / "reproduce" / "pages"
    linked = {
        name
        for path in pages.glob("*.md")
        for name in re.findall(r"!\[.*?[^\\]\]\(([^)]+\.svg)\)", path.read_text())
    }
    assert linked == {path.name for path in pages.glob("*.svg")} != set()
    assert max((pages / name).stat().st_size for name in linked) < 60_000


def test_pages_are_those_of_recipes_and_name_no_machine() -> None:
    found = sorted((ROOT / "docs" / "reproduce" / "pages").glob("*.json"))
    assert found
    for path in found:
        text = path.read_text()
        assert json.loads(text)["name"] in overview.RECIPES
        assert "/work/" not in text and "/tmp/" not in text and "/root/" not in text
        assert path.with_suffix(".md").exists()


def test_every_page_has_its_study() -> None:
    from benchmarks.reproduce_evidence import STUDIES

    made = {path.stem for path in (ROOT / "docs" / "reproduce" / "pages").glob("*.json")}
    assert made <= STUDIES.keys()
    for name, study in STUDIES.items():
        assert name.startswith(study.recipe)
        assert study.options.keys() <= overview.RECIPES[study.recipe].options.keys()
