"""Tables of the docs are those of their evidence, and evidence names the source it was made from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import checking, generation_evidence, pages, training_short

import evenrank as er


def test_every_table_of_the_docs_is_that_of_its_evidence() -> None:
    assert checking.differing() == []


def test_generated_queries_that_repeat_their_document_are_not_printed(shared: Path) -> None:
    copied = generation_evidence.longest_copy
    assert copied("What is a b c d?", "A b, c e. Then a b c d f") == 4
    assert copied("", "a") == copied("a", "") == copied("a", "b") == 0
    units = json.loads((pages.DOCS / "evidence" / "generation.json").read_text())["results"]
    for name in ("squad", "wiki"):
        mine = [unit for label, unit in units.items() if label.startswith(f"{name}/")]
        shown = [each for unit in mine for each in unit.get("examples", ())]
        docs = er.load(shared / "data" / name, split="test").docs
        texts = docs.texts([each["document"] for each in shown])
        assert shown and max(copied(each["query"], texts[each["document"]]) for each in shown) < 8
    again = {"examples": [{"document": doc, "query": text} for doc, text in [*texts.items()][:2]]}
    left = generation_evidence.unquoted(again, docs)["examples"]
    assert all(each["query"].endswith("words of the document)") for each in left)


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


def _repository(folder: Path) -> Callable[..., None]:
    def git(*words: str) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(folder), *named, *words], check=True, capture_output=True)

    git("init", "-q")
    return git


def test_evidence_is_not_made_from_what_was_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = _repository(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(pages, "DOCS", tmp_path / "docs")
    assert pages.committed_source() == pages.current_source()
    (tmp_path / "src" / "a.py").write_text("x = 2\n")
    with pytest.raises(SystemExit, match=r"a\.py\); commit first"):
        pages.committed_source()


def test_evidence_is_stale_only_where_what_it_used_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = _repository(tmp_path)
    package = tmp_path / "src" / "used_here"
    (package / "data").mkdir(parents=True)
    for name in ("__init__.py", "asked.py", "other.py", "data/words.txt"):
        (package / name).write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(pages, "DOCS", tmp_path / "docs")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    import_module("used_here.asked")
    used = pages.used_source()
    assert used["files"].split() == [
        f"src/used_here/{name}" for name in ("__init__.py", "asked.py", "data/words.txt")
    ]
    evidence = tmp_path / "e.json"
    evidence.write_text(json.dumps({"src": pages.current_source(), "modules": used}))
    assert checking.standing(evidence, pages.current_source()) == checking.MADE
    for name, how in (("other.py", checking.SAME), ("data/words.txt", checking.STALE)):
        (package / name).write_text("x = 2\n")
        git("commit", "-qam", "second")
        assert checking.standing(evidence, pages.current_source()) == how
    evidence.write_text("{}")
    assert checking.standing(evidence, "now") == checking.UNKNOWN


def test_settings_count_as_better_or_worse_only_where_it_is_sure() -> None:
    found = [(0.02, 0.01), (-0.01, 0.04), (-0.03, 0.2), (0.5, None)]
    rows = [{"penalty": {"difference": difference, "p_holm": p}} for difference, p in found]
    assert training_short._counts([*rows, {}], "penalty") == (1, 1, 2)
    assert training_short._counts(rows, "constrain (mean)") is None
    said = training_short._in_all([("a", {"equal bias": rows}), ("b", {"equal bias": rows[:1]}), ("c", {})])
    assert said == "In all, against *penalty*, 2 of 5 settings keep more and 1 less."


def test_no_strength_beyond_a_significant_loss_is_safe() -> None:
    def row(strength: float, difference: float, p: float | None) -> dict[str, object]:
        test = {"difference": difference, "p_holm": p}
        return {"strength": strength, "test": {"against plain": {"RR@10": test}}}

    rows = [row(0.0, 0.0, None), row(0.2, 0.01, 0.001), row(0.4, -0.02, 0.01), row(0.6, -0.01, 0.3)]
    assert training_short.safe(rows) == 0.2
    assert training_short._largest(0.0, rows) == "none of 0.2, 0.4, 0.6"
