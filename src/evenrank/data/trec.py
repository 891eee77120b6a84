"""Old import path, until importers are renamed: see runs."""

# ruff: noqa: F401
from evenrank.data.runs import check_run_name, falling
