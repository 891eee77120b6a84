"""No picture of the documentation outlives what it shows, and every one of them is shown."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pictures() -> Any:
    """tools/pictures.py, which makes them."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools" / "pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["pictures"] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_show_what_evenrank_says_today(pictures: Any) -> None:
    pytest.importorskip("fastapi", reason="needs the server: pip install 'evenrank[serve]'")
    assert pictures.stale() == [], "run python tools/pictures.py, and look at docs/images"


def test_every_picture_is_shown_and_described(pictures: Any) -> None:
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    said = re.findall(r"!\[([^\]]*)\]\((?:[\w./]*/)?images/([\w-]+\.png)\)", pages)
    described = {name for text, name in said if len(text.split()) > 2}
    assert described >= json.loads(pictures.FACTS.read_text()).keys()
