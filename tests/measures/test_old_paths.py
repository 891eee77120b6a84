"""Modules that have moved are found under their old paths for one release."""

from __future__ import annotations

from importlib import import_module

import pytest

import evenrank


@pytest.mark.parametrize("old", evenrank._MOVED)
def test_an_old_path_leads_to_the_same_things(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now {evenrank._MOVED[old]}"):
        module = import_module(old)
    now = import_module(evenrank._MOVED[old])
    names = [name for name in dir(now) if not name.startswith("__")]
    assert names and all(getattr(module, name) is getattr(now, name) for name in names)
    with pytest.raises(AttributeError):
        _ = module.no_such_thing
