"""Measures from outside the package: a Python file, or installed packages with an entry point."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from evenrank.errors import InputError

GROUP = "evenrank.measures"
"""The entry-point group in which a package names a module that registers measures."""


def load_plugin(path: str | Path) -> None:
    """Run a Python file that registers measures, see CONTRIBUTING; once per process."""
    place = Path(path)
    if place.suffix != ".py" or not place.is_file():
        raise InputError("no such Python file; a plugin is a .py file that registers measures", path=path)
    name = f"evenrank_plugin_{place.stem}"
    known = sys.modules.get(name)
    if known is not None and Path(str(known.__file__)) == place.resolve():
        return
    spec = spec_from_file_location(name, place.resolve())
    assert spec is not None and spec.loader is not None  # it is a .py file
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"the plugin does not run: {type(error).__name__}: {error}", path=path) from error


@cache
def load_entry_points() -> None:
    """Import what installed packages name in the group `evenrank.measures`, once."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            raise InputError(
                f"the measures of {point.dist.name if point.dist else point.value} cannot be loaded "
                f"({type(error).__name__}: {error}); update or uninstall that package"
            ) from error
