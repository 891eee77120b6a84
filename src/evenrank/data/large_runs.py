"""Runs that are too large to be held whole: cut by query into parts on disk, each read when it is its turn.

The rows of a query may stand anywhere in the file; all of them come into one part. A part is a run like any
other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from evenrank.data import files, formats, runs, tables
from evenrank.data.columns import refuse_repeats
from evenrank.data.frames import fingerprint
from evenrank.errors import InputError

LARGE = 1 << 30
"""Files of this many bytes (packed ones of a quarter) are measured in parts."""
_ROWS = 1 << 20  # of a part, about; and as many are held while the file is read
_ROW_BYTES = 32  # of a line of a run, at the least: how many parts there are need not be exact

Progress = Callable[[int, int | None], None]


def is_large(run: Any) -> bool:
    """Whether a run is a file that is better not held whole."""
    path = tables.path_of(run)
    if path is None or not os.path.isfile(path):  # noqa: PTH113
        return False
    packed = Path(path).suffix.lower() in (".gz", ".zst") or formats.is_parquet(path)
    return Path(path).stat().st_size * (4 if packed else 1) >= LARGE


class LargeRun:
    """A run in a file, in parts; their rows lie in a temporary folder until it is closed.

    Attributes
    ----------
    queries
        All queries, in the order in which they first appear.
    parts
        How many parts there are; two runs cut into as many parts have the same queries in each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        order: tables.Order,
        parts: int,
        progress: Progress | None = None,
    ) -> None:
        self.path, self.order, self.parts = Path(path), order, parts
        self._folder = tempfile.TemporaryDirectory(prefix="evenrank-run-")
        try:
            self.queries = self._cut(progress)
        except OSError as error:
            self.close()
            raise InputError(
                f"no room to cut it into parts in {Path(self._folder.name).parent}: {error.strerror}; "
                "name another folder in TMPDIR",
                path=path,
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove what lies on disk."""
        self._folder.cleanup()

    def part(self, number: int) -> pl.DataFrame:
        """The run of the queries in a part; it may be empty."""
        place = self._place(number)
        if not place.exists():
            return pl.DataFrame(schema=tables.RUN_SCHEMA)
        with pa.ipc.open_stream(place) as stream:
            frame = pl.DataFrame(pl.from_arrow(stream.read_all()))
        for keys in [["query_id", "doc_id"]] + [["query_id", "rank"]] * (self.order == "rank"):
            refuse_repeats(frame, keys, path=self.path, line=frame["line"])
        return tables.ordered_run(frame.drop("line"))

    def fingerprint(self) -> str:
        """Of the file as it is stored."""
        return files.fingerprint(self.path)

    def _place(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number:05}.arrow"

    def _cut(self, progress: Progress | None) -> pl.Series:
        """Write the rows of each part to its file; returns the queries."""
        seen = pl.Series("query_id", [], dtype=pl.String)
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        total, done = files.require_regular(self.path), 0
        try:
            for rows, size in _gathered(self._pieces()):
                ids = rows["query_id"].unique(maintain_order=True)
                seen = seen.append(ids.filter(~ids.is_in(seen.implode())))
                rows = rows.with_columns(part=_part_of(rows["query_id"], self.parts)).sort("part")
                for (number,), piece in rows.group_by("part", maintain_order=True):
                    self._write(writers, int(str(number)), piece.drop("part"))
                done += size
                if progress:
                    progress(done, total)
        finally:
            for writer in writers.values():
                writer.close()
        return seen

    def _write(self, writers: dict[int, Any], number: int, rows: pl.DataFrame) -> None:
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        if number not in writers:
            writers[number] = pa.ipc.new_stream(self._place(number), table.schema)
        writers[number].write_table(table)

    def _pieces(self) -> Iterator[tuple[pl.DataFrame, int]]:
        """Checked rows of the file with the line, or the number, of each; and how many bytes they took."""
        for piece in formats.read_trec(self.path, formats.RUN):
            first = piece.offset + 1 if piece.line is None else piece.line
            rows = runs._checked(piece, self.order).frame
            yield _numbered(rows, int(first)), 0


def _numbered(rows: pl.DataFrame, line: int) -> pl.DataFrame:
    return rows.with_columns(line=pl.int_range(line, line + len(rows), dtype=pl.Int64))


class HeldRun:
    """A run in memory, cut into the same parts."""

    def __init__(self, run: pl.DataFrame, *, parts: int) -> None:
        self.parts, self._run = parts, run.with_columns(part=_part_of(run["query_id"], parts))
        self.queries = run.filter(pl.col("rank") == 1)["query_id"]

    def part(self, number: int) -> pl.DataFrame:
        return self._run.filter(pl.col("part") == number).drop("part")

    def fingerprint(self) -> str:
        return fingerprint([self._run.drop("part")])

    def close(self) -> None:
        """Nothing lies on disk."""


def _part_of(query_ids: pl.Series, parts: int) -> pl.Series:
    return query_ids.hash(0) % parts


def cut(run: Any, *, order: tables.Order, parts: int, progress: Progress | None = None) -> LargeRun | HeldRun:
    """A run in parts: on disk if it is a large file, else in memory."""
    if is_large(run):
        return LargeRun(run, order=order, parts=parts, progress=progress)
    return HeldRun(tables.run(run, order=order), parts=parts)


def parts_for(runs: Iterable[Any]) -> int:
    """Into how many parts runs are to be cut, so that each fits in memory easily."""
    size = max(Path(run).stat().st_size for run in runs if is_large(run))
    return max(2, -(-size // (_ROW_BYTES * _ROWS)))


def _gathered(pieces: Iterator[tuple[pl.DataFrame, int]]) -> Iterator[tuple[pl.DataFrame, int]]:
    """Pieces put together to about a million rows."""
    waiting: list[pl.DataFrame] = []
    rows, read = 0, 0
    for piece, size in pieces:
        waiting.append(piece)
        rows, read = rows + len(piece), read + size
        if rows >= _ROWS:
            yield pl.concat(waiting), read
            waiting, rows, read = [], 0, 0
    if waiting:
        yield pl.concat(waiting), read
