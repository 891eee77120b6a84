"""Old import path, until importers are renamed: see formats."""

# ruff: noqa: F401
from evenrank.data.formats import MAGIC
from evenrank.data.formats import metadata_checksum as seal
from evenrank.data.formats import read_checked as sealed
