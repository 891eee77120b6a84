"""Runs and judgments as TREC writes them: columns separated by spaces or tabs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data import files, lines, parquet
from evenrank.data.columns import DOC_ID, QUERY_ID, RANK, RELEVANCE, SCORE, header, pick, show
from evenrank.errors import InputError
from evenrank.show.numbers import counted

Path = str | os.PathLike[str]

_FILLER = {"q0", "iter", "iteration", "tag", "run", "run_id", "name", "system"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of file looks like: its columns by position, and the names a header may use."""

    expected: str
    counts: tuple[int, ...]
    positions: dict[str, int]
    names: dict[str, tuple[str, ...]]

    @property
    def known(self) -> set[str]:
        return _FILLER.union(*self.names.values())


QRELS = Kind(
    "query_id 0 doc_id relevance",
    (4,),
    {"query_id": 0, "doc_id": 2, "relevance": 3},
    {"query_id": QUERY_ID, "doc_id": DOC_ID, "relevance": RELEVANCE},
)
RUN = Kind(
    "query_id Q0 doc_id rank score tag",
    (6, 5, 3),
    {"query_id": 0, "doc_id": 2, "rank": 3, "score": 4},
    {"query_id": QUERY_ID, "doc_id": DOC_ID, "rank": RANK, "score": SCORE},
)

_MARCO = {"query_id": 0, "doc_id": 1, "rank": 2}


def read_columns(path: Path, kind: Kind) -> tuple[pl.DataFrame, int | None]:
    """All columns of interest as text, and the line of the first row.

    The number of columns is that of the first line: a run may lack its tag, but not here and there.
    A Parquet file is returned as it is, with no line. Three columns are a run as MS MARCO has it: query_id,
    doc_id and rank; its score is −rank.
    """
    if is_parquet(path):
        return parquet.frame(path, kind.known), None
    frames, lines_at, _ = zip(*read_pieces(path, kind), strict=True)
    return pl.concat(frames, rechunk=True), lines_at[0]


def read_pieces(path: Path, kind: Kind) -> Iterator[tuple[pl.DataFrame, int, int]]:
    """The columns of interest of a text file, in pieces, each with its first line and its bytes."""
    line, columns, blank, some, marco = 1, 0, 0, False, False
    wanted: dict[str, int] = {}
    firsts: Counter[str] = Counter()
    for raw in files.raw_blocks(path):
        skip = 0
        if not wanted:
            wanted, names = _layout(raw, kind, path)
            skip = bool(names)
            columns = len(names) or _width(raw, kind)
            kind = replace(kind, expected=" ".join(names)) if names else kind
            marco = columns == 3 and not names
            if marco:
                wanted, kind = _MARCO, replace(kind, expected=" ".join(_MARCO))
        if blank and raw.tobytes().strip(b" \t\r\n"):
            raise InputError("blank line", path=path, line=blank)
        if not blank:
            arrays, blank = _split(raw, line, columns, tuple(wanted.values()), kind, path)
            found = pl.DataFrame(
                {name: pl.from_arrow(array) for name, array in zip(wanted, arrays, strict=True)}
            )
            if len(found) > skip:
                some = True
                if marco:
                    found = _with_scores(found, path, line)
                    firsts.update(dict.fromkeys(found["query_id"].unique().to_list(), 0))
                    firsts.update(found.filter(pl.col("rank") == "1")["query_id"].to_list())
                yield found.slice(skip), line + skip, raw.stored
            line += len(found)
    if not wanted:
        raise InputError("the file is empty", path=path)
    if not some:
        raise InputError("the file has no rows", path=path)
    _check_firsts(firsts, path)


def _with_scores(rows: pl.DataFrame, path: Path, line: int) -> pl.DataFrame:
    """Rows of three columns with a score that puts them in the order of their ranks."""
    odd = ~rows["rank"].str.contains(r"^[1-9]\d*$")
    if odd.any():
        at = int(odd.arg_true()[0])
        problem = f"rank is {show(rows['rank'][at])}; a run of three columns holds query_id, doc_id and rank"
        raise InputError(f"{problem}, for scores give all six", path=path, line=line + at)
    return rows.with_columns(score=pl.concat_str(pl.lit("-"), "rank"))


def _check_firsts(firsts: Mapping[str, int], path: Path) -> None:
    """Refuse three columns whose last is no rank: then some query has no first document, or several."""
    for query, count in firsts.items():
        if count != 1:
            many = "no document" if count == 0 else "several documents"
            problem = f"query {show(query)} has {many} at rank 1; a run of three columns holds"
            raise InputError(f"{problem} query_id, doc_id and rank, for scores give all six", path=path)


def is_parquet(path: Path) -> bool:
    return os.path.isfile(path) and files.magic(path) == parquet.MAGIC  # noqa: PTH113


def _first_line(raw: files.RawBlock) -> bytes:
    return raw.tobytes().split(b"\n", 1)[0].strip(b" \t\r")


def _layout(raw: files.RawBlock, kind: Kind, path: Path) -> tuple[dict[str, int], list[str]]:
    """Where the columns are, and the names in the header if there is one."""
    names = header(_first_line(raw), kind.known, None)
    if names is None:
        return kind.positions, []
    chosen = {
        column: names.index(pick(names, known, path=path, line=1))
        for column, known in kind.names.items()
        if column != "rank" or "rank" in names
    }
    return chosen, names


def _width(raw: files.RawBlock, kind: Kind) -> int:
    """The number of columns of the first line, if it is legal; else what it should be."""
    found = len(re.split(rb"[ \t]+", _first_line(raw)))
    return found if found in kind.counts else kind.counts[0]


def _split(
    raw: files.RawBlock, line: int, columns: int, wanted: tuple[int, ...], kind: Kind, path: Path
) -> tuple[list[pa.Array], int]:
    """The wanted columns; and the line, if the block ends in lines that hold only spaces and tabs."""
    files.check_utf8(raw, path, line=line)
    code, good, found, arrays = lines.split_columns(raw, columns, wanted, spaces=True)
    if code == lines.GOOD:
        return arrays, 0
    if code == lines.BLANK:
        if raw.tobytes().split(b"\n", good)[good].strip(b" \t\r\n"):
            raise InputError("blank line", path=path, line=line + good)
        return arrays, line + good
    problem = f"{counted(found, 'column')} instead of {columns}; expected {kind.expected}"
    raise InputError(problem, path=path, line=line + good)


def check_run_name(name: str) -> None:
    """Refuse what cannot stand in the last column of a run."""
    if not re.fullmatch(r"[^\s]+", name):
        raise InputError(f"the name of a run may not be empty or hold blanks: {show(name)}")


def write(frame: pl.DataFrame, path: Path, *, name: str) -> None:
    """A normalised run in TREC format, with scores that restore its order even in single precision."""
    check_run_name(name)
    for column in ("query_id", "doc_id"):
        spaced = frame[column].str.contains(r"\s")
        if spaced.any():
            bad = frame[column].filter(spaced)[0]
            raise InputError(f"{column} {show(bad)} holds a blank, which a TREC run cannot", path=path)
    table = frame.select(
        "query_id",
        pl.lit("Q0").alias("q0"),
        "doc_id",
        "rank",
        falling(frame).cast(pl.String),
        pl.lit(name).alias("tag"),
    )
    with files.writing(path) as out:
        table.write_csv(out, include_header=False, separator=" ", quote_style="never")


def falling(run: pl.DataFrame) -> pl.Series:
    """Scores that fall strictly within each query, in single precision.

    They are the scores of the run as float32; one that does not fall takes the next smaller float32
    after the one above. A query whose scores do not fit into single precision gets n, n − 1, …, 1.
    """
    rank = run["rank"].to_numpy()
    heads = np.flatnonzero(rank == 1)
    query = np.cumsum(rank == 1) - 1
    with np.errstate(over="ignore"):
        single = run["score"].to_numpy().astype(np.float32)
    # The bits of floats, negative ones mirrored, are integers in the same order. On them "at most one
    # less than the one above" is a running minimum of key + rank; the last term keeps queries apart.
    bits = single.view(np.int32).astype(np.int64)
    keys = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))
    keys = np.minimum.accumulate(keys + rank - (query << 40)) - rank + (query << 40)
    bits = np.where(keys >= 0, keys, -keys | 0x80000000).astype(np.uint32)
    single = bits.view(np.float32)
    if len(heads):
        unfit = np.logical_or.reduceat(~np.isfinite(single), heads)[query]
        last = np.append(heads[1:], len(rank))[query]
        single = np.where(unfit, (last - np.arange(len(rank))).astype(np.float32), single)
    return pl.Series("score", single, dtype=pl.Float32)
