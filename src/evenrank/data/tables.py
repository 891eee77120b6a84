"""Old import path, until importers are renamed: see docs, read and runs."""

# ruff: noqa: F401
from evenrank.data.docs import SUFFIXES, Dataset, Docs, docs, load
from evenrank.data.read import genders, path_of, qrels, queries
from evenrank.data.runs import Order, perfect, random_run, run, run_rows, write_run
from evenrank.data.runs import sort_run as ordered_run
from evenrank.data.schema import GENDERS_SCHEMA, QRELS_SCHEMA, QUERIES_SCHEMA, RUN_SCHEMA, Block
