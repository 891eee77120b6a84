"""Old import path, until importers are renamed: see read."""

# ruff: noqa: F401
from evenrank.data.read import irds_errors as reading
