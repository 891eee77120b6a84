"""Old import path, until importers are renamed: see read."""

# ruff: noqa: F401
from evenrank.data.read import described, fingerprint, is_ranx, is_spark, spark
