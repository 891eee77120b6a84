"""The demo collection: short passages, queries, judgments and two runs, written for this package.

The passages speak of occupations, care, sport, science and health with an imbalance like that of the web:
surgeons and football coaches are mostly *he*, nurses and housekeepers mostly *she*, and many passages
name no gender. Texts and judgments are original and free to use; the runs come from BM25 and from a
sentence transformer. The imbalance was written in, and adjusted until an audit had something to show: values
measured here illustrate the method and say nothing about BM25 or transformers on other text.
Judgments are one person's, by topic; passages outside a topic are mostly unjudged.

=========== ===================================================================
docs.tsv    ``doc_id``, ``text``
queries.tsv ``query_id``, ``text``
qrels.txt   TREC judgments: 2 answers the query, 1 belongs to its topic, 0 does not help
genders.tsv ``query_id``, ``label``: neutral, female or male
bm25.run    BM25, depth 50
dense.run   all-MiniLM-L6-v2, depth 50
=========== ===================================================================
"""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

__all__ = ["copy_to", "folder"]


def folder() -> Path:
    """The folder of the demo collection, as :func:`evenrank.load` takes it."""
    return Path(str(resources.files("evenrank.demo"))) / "data"


def copy_to(target: Path) -> None:
    """Copy the demo collection and its runs into a folder, made if need be."""
    from evenrank.errors import InputError

    try:
        shutil.copytree(folder(), target, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=target) from error
