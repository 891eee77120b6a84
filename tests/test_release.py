"""What goes out: names that type checkers know, licences of all that is shipped, notebooks that run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import evenrank

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_imported_from_where_the_stub_says() -> None:
    stub = ast.parse((resources.files("evenrank") / "__init__.pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = {alias.asname for node in imports for alias in node.names}  # only `x as x` re-exports a name
    assert named == {*evenrank.__all__} - {"__version__"}
    assert all(getattr(evenrank, name) is not None for name in named)
    assert (resources.files("evenrank") / "py.typed").is_file()


@pytest.mark.slow
def test_a_program_of_a_user_passes_the_strictest_checks() -> None:
    """With the options of the package itself, so that what `make lint` has found is used again."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "tests/typing/consumer.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (strict,) = (each for each in options if each["module"] == ["consumer"])
    assert strict["disallow_any_generics"] and strict["warn_return_any"]


def test_every_list_and_model_that_is_shipped_has_its_licence_stated() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    package = ROOT / "src" / "evenrank"
    shipped = [
        path
        for path in package.glob("*/data/**/*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    ]
    assert len(shipped) > 15
    assert [str(path.relative_to(package)) for path in shipped if path.name not in page] == []
    named = re.findall(r"`([\w/-]+\.(?:toml|dic|gz|txt|parquet|npz|json|md|tsv|run))`", page)
    there = {path.name for path in shipped}
    assert [name for name in named if Path(name).name not in there] == []


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == evenrank.__version__
    assert version in (ROOT / "CHANGELOG.md").read_text()
