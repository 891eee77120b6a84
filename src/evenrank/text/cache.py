"""The cache of large tallies: finished ones are found again, unfinished ones are gone on with.

A tally in the making is a folder of parts, each the rows of a fixed number of blocks of the input. A
part appears under its name only when it is complete, so that a run may be killed at any time. The
name of the folder is a hash of all that decides the result: the input's fingerprint and how it is
read, the lexicon with all it says about itself, the tokenizer, the version.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from evenrank.data.files import writing
from evenrank.data.formats import check_parquet, metadata_checksum, read_checked
from evenrank.errors import InputError

Progress = Callable[[int, int | None], None]
LARGE = 64 << 20  # bytes; below, counting is quicker than looking
_KEPT = 16  # finished tallies
_PART = 64  # blocks, some 128 MB of text
_STALE = 24 * 3600  # seconds after which a temporary file belongs to nobody


def root() -> Path:
    """`EVENRANK_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("EVENRANK_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenrank"
    return Path(chosen) if chosen else base


def folder(facts: Mapping[str, Any]) -> Path:
    """Where the parts of a tally with this provenance are; the finished file has `.parquet` behind it."""
    key = json.dumps({**facts, "blocks": _PART}, sort_keys=True)
    return root() / "tally" / xxhash.xxh3_128_hexdigest(key.encode())


def holds(path: str | None) -> bool:
    """Is this a file of the cache itself?"""
    return path is not None and Path(path).is_relative_to(root() / "tally")


def prepare(parts: Path) -> None:
    """Make the folder of the cache, and remove from it what killed runs have left unfinished."""
    parts.parent.mkdir(parents=True, exist_ok=True)
    for left in parts.parent.rglob(".*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()


def is_whole(finished: Path, schema: pa.Schema) -> bool:
    """Does this finished tally fit its checksums? A damaged one is removed."""
    try:
        whole = check_parquet(finished, b"evenrank").names == schema.names
    except InputError:
        whole = False
    if not whole:
        finished.unlink(missing_ok=True)
    return whole


def resumable(
    count: Callable[..., Iterator[pa.RecordBatch]], parts: Path, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a tally: first those an earlier run has left, then the rest, saved part by part.

    `count` counts the documents but those of the first `skip` blocks.
    """
    done = 0
    while (part := _part(parts, done)).exists():
        try:
            saved, _ = read_checked(part, b"evenrank")
            saved = saved.cast(schema)
        except (InputError, ValueError):  # damaged: count from here on
            break
        yield from saved.to_batches()
        done += 1
    waiting: list[pa.RecordBatch] = []
    for batch in count(skip=done * _PART):
        yield batch
        waiting.append(batch)
        if len(waiting) == _PART:
            _save(waiting, _part(parts, done), schema)
            waiting, done = [], done + 1


def _part(parts: Path, number: int) -> Path:
    return parts / f"{number:06d}.parquet"


def _save(batches: list[pa.RecordBatch], path: Path, schema: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file:
        table = pa.Table.from_batches(batches, schema)
        table = table.replace_schema_metadata(metadata_checksum(schema, len(table), ""))
        pq.write_table(table, file, compression="lz4", write_page_checksum=True)


def forget(parts: Path) -> None:
    """Remove the parts of a finished tally, and the finished tallies that were not used for longest."""
    shutil.rmtree(parts, ignore_errors=True)
    finished = parts.with_suffix(".parquet")
    with suppress(OSError):  # a cache that may only be read is a cache too
        finished.touch()
        others = sorted(
            finished.parent.glob("*.parquet"), key=lambda file: file.stat().st_mtime, reverse=True
        )
        for old in others[_KEPT:]:
            old.unlink(missing_ok=True)


def copy(stored: Path, path: str | os.PathLike[str]) -> None:
    """Copy a finished tally to where the user wants it."""
    with stored.open("rb") as source, writing(path) as target:
        shutil.copyfileobj(source, target, 1 << 20)
