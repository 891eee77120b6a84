"""Tables of the docs are those of their evidence, and evidence names the source it was made from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from benchmarks import checking, pages


def test_every_table_of_the_docs_is_that_of_its_evidence() -> None:
    assert checking.differing() == []


def test_a_number_typed_by_hand_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evidence").mkdir()
    for name in ("certainty.md", "evidence/certainty.json"):
        (tmp_path / name).write_text((pages.DOCS / name).read_text())
    monkeypatch.setattr(checking, "DOCS", tmp_path)
    assert checking.differing() == []
    page = tmp_path / "certainty.md"
    page.write_text(page.read_text().replace("| normal | 10 | 4.7%", "| normal | 10 | 4.6%"))
    (tmp_path / "new.md").write_text(f"{pages.BEGIN}\nof no evidence\n{pages.END}\n")
    assert checking.differing() == ["certainty.md", "new.md"]


def test_evidence_is_not_made_from_what_was_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *named, *words], check=True, capture_output=True)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(pages, "DOCS", tmp_path / "docs")
    assert pages.committed_source() == pages.current_source()
    (tmp_path / "src" / "a.py").write_text("x = 2\n")
    with pytest.raises(SystemExit, match=r"a\.py\); commit first"):
        pages.committed_source()
