"""Old import path, until importers are renamed: see read and schema."""

# ruff: noqa: F401
from evenrank.data.read import labelled_queries as read_labelled
from evenrank.data.schema import SPELLINGS, known_gender, plain
