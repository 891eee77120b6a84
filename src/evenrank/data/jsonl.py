"""Old import path, until importers are renamed: see formats."""

# ruff: noqa: F401
from evenrank.data.formats import json_value as value_of
