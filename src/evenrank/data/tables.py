"""The tables everything else works on, made out of anything that looks like one.

========  =======================================================================================
queries   ``query_id``, ``text``
qrels     ``query_id``, ``doc_id``, ``relevance``
run       ``query_id``, ``doc_id``, ``score``, ``rank``: best document first, query by query
genders   ``query_id``, ``gender``
docs      a handle, :class:`Docs`: a collection does not fit in memory
========  =======================================================================================

Ids are text: ``001`` stays ``001``, and whole numbers become text.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow.compute as pc

from evenrank.data import door, files, irds, jsonl, parquet, topics, trec
from evenrank.data.columns import (
    DOC_ID,
    GENDER,
    QUERY_ID,
    QUERY_TEXT,
    RANK,
    RELEVANCE,
    SCORE,
    Block,
    finite_numbers,
    id_column,
    listing,
    refuse_repeats,
    show,
    text_column,
    whole_numbers,
)
from evenrank.data.docs import Docs, docs_of_frame, docs_of_rows, read_docs
from evenrank.data.sequences import has_sequences, read_sequences
from evenrank.errors import InputError, InputWarning
from evenrank.process import refuse_after_fork

__all__ = [
    "Block",
    "Dataset",
    "Docs",
    "docs",
    "genders",
    "load",
    "perfect",
    "qrels",
    "queries",
    "random_run",
    "run",
    "write_run",
]

QUERIES_SCHEMA = pl.Schema({"query_id": pl.String, "text": pl.String})
QRELS_SCHEMA = pl.Schema({"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64})
RUN_SCHEMA = pl.Schema({"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Int64})
GENDERS_SCHEMA = pl.Schema({"query_id": pl.String, "gender": pl.String})

Order = Literal["score", "rank"]

SUFFIXES = (".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".trec", ".qrels", ".topics", ".xml")

_CALLED = {"docs": ("docs", "collection", "corpus")}


class Dataset(NamedTuple):
    """A test collection: what is searched, what for, and (where known) what should be found."""

    docs: Docs
    queries: pl.DataFrame
    qrels: pl.DataFrame | None


def docs(
    x: Any, *, fields: Sequence[str] = ("title", "text"), id_field: str | None = None, name: str | None = None
) -> Docs:
    """A collection, as a handle that reads it as often as needed without holding it.

    Parameters
    ----------
    x
        A path (``doc_id<TAB>text``, or TSV with a header; JSONL; Parquet; plain, gzip or zstd), a
        Polars, pandas or Arrow table, a dict ``{doc_id: text}``, rows (``(doc_id, text)``, dicts, named
        tuples; an iterator is first copied to a temporary file), an ir_datasets dataset or ``irds:ID``.
    fields
        The fields that make up a document's text, joined with one space. A title may be missing; where
        there is no ``text``, ``contents`` or ``body`` is taken.
    id_field
        The field with the id; found by its name (``doc_id``, ``docno``, ``docid``, ``_id``, ``id``) if
        not given.
    name
        What to call the collection.
    """
    fields = (fields,) if isinstance(fields, str) else tuple(fields)
    if isinstance(x, Docs):
        return x
    if irds.is_name(x):
        x, name = irds.dataset(x), name or x
    if isinstance(x, (str, os.PathLike)):
        return read_docs(x, fields=fields, id_field=id_field, name=name)
    if irds.is_dataset(x):
        x = irds.Rows(x, "docs")
        name = name or x.name
    name = name or "docs"
    if door.is_frame(x):
        return docs_of_frame(x, fields=fields, id_field=id_field, name=name)
    if not hasattr(x, "__iter__"):
        raise InputError(f"{show(x)} is not a collection; give a path, a frame, a dict or rows")
    return docs_of_rows(x, fields=fields, id_field=id_field, name=name)


def queries(x: Any) -> pl.DataFrame:
    """The queries: ``query_id`` and ``text``, in their order, each id once.

    ``x`` is a path (``query_id<TAB>text``, JSONL, TREC topics, Parquet), a frame, a dict
    ``{query_id: text}``, rows, or an ir_datasets dataset; of TREC topics the title is taken.
    """
    refuse_after_fork()
    path = path_of(x)
    names = {"query_id": QUERY_ID, "text": QUERY_TEXT}
    if path:
        table, clean = topics.read(path)
        if clean:
            return table
        frame = door.rename(table, names, path=path)
    else:
        frame = door.as_frame(x, names, part="queries")
    frame = frame.select(id_column(frame, "query_id", path=path), text_column(frame, "text", path=path))
    refuse_repeats(frame, ["query_id"], path=path)
    return _whole(frame, QUERIES_SCHEMA, "queries", path)


def qrels(x: Any) -> pl.DataFrame:
    """The judgments: ``query_id``, ``doc_id``, ``relevance`` (a whole number; 0 or less: not relevant).

    ``x`` is a path (TREC: ``query_id 0 doc_id relevance``; BEIR: three columns with a header; JSON:
    ``{query_id: {doc_id: relevance}}``; Parquet), a frame, a dict ``{query_id: {doc_id: relevance}}``, the
    Qrels of ranx, rows, or an ir_datasets dataset.
    """
    refuse_after_fork()
    path, line = path_of(x), None
    names = {"query_id": QUERY_ID, "doc_id": DOC_ID, "relevance": RELEVANCE}
    if path and files.format_suffix(path) == ".json":
        x = jsonl.nested(door.text(path), path, "relevance")
        frame = door.as_frame(x, names, part="qrels")
    elif path:
        frame, line = trec.read_columns(path, trec.QRELS)
        frame = door.rename(frame, names, path=path)
    else:
        frame = door.as_frame(x, names, part="qrels")
    relevance = whole_numbers(frame["relevance"], path=path, line=line)
    frame = frame.select(*_ids(frame, path, line), relevance)
    refuse_repeats(frame, ["query_id", "doc_id"], path=path, line=line)
    return _whole(frame, QRELS_SCHEMA, "qrels", path)


def run(x: Any, *, order: Order = "score", depth: int | None = None) -> pl.DataFrame:
    """A ranking per query: ``query_id``, ``doc_id``, ``score``, ``rank``, sorted by query and rank.

    Queries keep the order in which they first appear. Within a query the highest score comes first,
    and among equal scores (compared in double precision, as written) the greater doc_id as text: the
    rule of trec_eval. Ranks are counted anew from 1.

    Parameters
    ----------
    x
        A path (TREC: ``query_id Q0 doc_id rank score tag``, the tag may be missing throughout; MS MARCO:
        ``query_id doc_id rank``; JSON: ``{query_id: {doc_id: score}}``; Parquet), a frame, a dict
        ``{query_id: {doc_id: score}}``, a Run of ranx, rows, or an ir_datasets dataset with scored
        documents. A table that this function made is returned as it is. A table with a column ``seq`` has
        several rankings of a query: they come one after the other, and the column stays.
    order
        ``"rank"`` trusts the ranks in ``x`` instead: whole numbers, no two equal within a query. The
        scores are then replaced by −rank, so that whoever sorts by score gets the same order.
    depth
        Keep only so many documents of each query, and those of the same score as the last. A large file is
        then never held whole.
    """
    refuse_after_fork()
    if order not in ("score", "rank"):
        raise InputError(f"order is {show(order)}; it must be 'score' or 'rank'")
    if isinstance(x, pl.DataFrame) and x.schema == RUN_SCHEMA:
        if _is_made(x):
            return x
        if _is_ordered(x):
            return _made(x)
    path, line = path_of(x), None
    if has_sequences(x):
        return read_sequences(x)
    if path and depth is not None and files.format_suffix(path) != ".json":
        return _read_top(path, order, depth)
    if path and files.format_suffix(path) == ".json":
        x = jsonl.nested(door.text(path), path, "score")
        frame = door.as_frame(x, _run_names(order), part="scoreddocs")
    elif path:
        frame, line = trec.read_columns(path, trec.RUN)
    else:
        names = _run_names(order)
        if order == "score":
            frame = door.as_frame(x, {**names, "rank": RANK}, part="scoreddocs", optional=("rank",))
        else:
            frame = door.as_frame(x, names, part="scoreddocs")
    if order == "score":
        warn_if_reversed(frame, path)
    frame = run_rows(frame, order, path, line)
    refuse_repeats(frame, ["query_id", "doc_id"], path=path, line=line)
    if order == "rank":
        refuse_repeats(frame, ["query_id", "rank"], path=path, line=line)
    return ordered_run(_whole(frame, None, "run", path))


_TOP_ROWS = 1 << 21
"""Rows that are read before those below the depth are dropped."""


def _read_top(path: str | os.PathLike[str], order: Order, depth: int) -> pl.DataFrame:
    """The top documents of each query of a run file, read in pieces."""
    place = pl.col(order).rank("min", descending=order == "score").over("query_id")
    kept = pl.DataFrame()
    queries = pl.Series("query_id", [], dtype=pl.String)
    limit, read = _TOP_ROWS, 1
    if trec.is_parquet(path):
        pieces: Any = ((frame, None) for frame in parquet.frames(path, trec.RUN.known, rows=_TOP_ROWS))
    else:
        pieces = ((frame, line) for frame, line, _ in trec.read_pieces(path, trec.RUN))
    for frame, line in pieces:
        if order == "score" and read == 1:  # the beginning of the file is enough to tell
            warn_if_reversed(frame, path)
        rows = run_rows(frame, order, path, line)
        first = read if line is None else line
        rows = rows.with_columns(line=pl.int_range(first, first + len(rows), dtype=pl.Int64))
        read += len(rows)
        ids = rows["query_id"].unique(maintain_order=True)
        queries = queries.append(ids.filter(~ids.is_in(queries.implode())))
        kept = pl.concat([kept, rows]) if len(kept) else rows
        if len(kept) > limit:
            kept = kept.filter(place <= depth)
            limit = max(_TOP_ROWS, 2 * len(kept))
    kept = kept.filter(place <= depth)
    for keys in [["query_id", "doc_id"]] + [["query_id", "rank"]] * (order == "rank"):
        refuse_repeats(kept, keys, path=path, line=kept["line"])
    if not kept["query_id"].unique(maintain_order=True).equals(queries):  # a first row was dropped
        kept = kept.sort(pl.col("query_id").cast(pl.Enum(queries)), maintain_order=True)
    return ordered_run(_whole(kept.drop("line"), None, "run", path))


def warn_if_reversed(frame: pl.DataFrame, path: str | os.PathLike[str] | None) -> None:
    """Warn where scores contradict ranks: the scores may be distances, or the ranks themselves.

    Neighbouring rows of a query are compared; a column that is the same everywhere says nothing.
    """
    names = {name.lower(): name for name in frame.columns}
    found = [
        next((names[name] for name in known if name in names), None) for known in (QUERY_ID, RANK, SCORE)
    ]
    if None in found or len(frame) < 2:
        return
    query, rank, score = (frame[name] for name in found if name is not None)
    rises = [column.cast(pl.Float64, strict=False).diff() for column in (rank, score)]
    agree = (rises[0] * rises[1]).filter(query == query.shift(1))
    against, along = int((agree > 0).sum()), int((agree < 0).sum())
    if against > along:
        where = "the run" if path is None else str(path)
        warnings.warn(
            f"{where}: the higher score has the worse rank in {against:,} of {against + along:,} pairs of "
            "neighbouring rows. The highest score is ranked first; if the scores are distances or ranks, use "
            "order 'rank'",
            InputWarning,
            stacklevel=3,
        )


def run_rows(
    frame: pl.DataFrame, order: Order, path: str | os.PathLike[str] | None = None, line: int | None = None
) -> pl.DataFrame:
    """Rows of a run as they come, in whatever order: ids, and a score or a rank, each of them checked."""
    frame = door.rename(frame, _run_names(order), path=path)
    numbers = whole_numbers if order == "rank" else finite_numbers
    return frame.select(*_ids(frame, path, line), numbers(frame[order], path=path, line=line))


def ordered_run(rows: pl.DataFrame) -> pl.DataFrame:
    """Checked rows, no pair of query and document twice, as a run."""
    frame = _ordered(rows)
    return _made(frame if frame.schema == RUN_SCHEMA else frame.cast(RUN_SCHEMA))


def _run_names(order: Order) -> dict[str, Sequence[str]]:
    return {"query_id": QUERY_ID, "doc_id": DOC_ID, order: RANK if order == "rank" else SCORE}


# Runs that are known to be in order: checking a million rows again takes longer than measuring them.
# With each a second handle to its memory: Polars then copies before it changes a cell in place, so that
# a frame which still has the same buffers has the same values.
_MADE: dict[int, tuple[weakref.ref[pl.DataFrame], pl.DataFrame]] = {}


def _made(frame: pl.DataFrame) -> pl.DataFrame:
    key = id(frame)
    _MADE[key] = weakref.ref(frame, lambda _: _MADE.pop(key, None)), frame.clone()
    return frame


def _is_made(frame: pl.DataFrame) -> bool:
    """Did :func:`run` make this very frame, and has nothing in it changed since?"""
    known, copy = _MADE.get(id(frame), (None, None))
    return known is not None and known() is frame and _buffers(frame) == _buffers(copy)


def _buffers(frame: pl.DataFrame | None) -> list[tuple[Any, ...]]:
    """Where the columns lie in memory."""
    newest = pl.CompatLevel.newest()
    columns = [] if frame is None else frame.get_columns()
    chunks = (chunk.to_arrow(compat_level=newest) for column in columns for chunk in column.get_chunks())
    return [
        (len(chunk), chunk.offset, *(buffer and buffer.address for buffer in chunk.buffers()))
        for chunk in chunks
    ]


def _ordered(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows sorted by query (as they first appear), then score and doc_id, or rank if there is one."""
    stretch = frame["query_id"].rle_id()
    heads = frame["query_id"].filter(_starts(stretch))
    codes = pl.Series("query", pl.from_arrow(pc.dictionary_encode(heads.to_arrow()).indices))
    frame = frame.with_columns(codes.gather(stretch))
    if "rank" in frame.columns:
        frame = frame.sort("query", "rank")
    else:
        frame = frame.sort("query", "score", "doc_id", descending=[False, True, True])
    rows = np.arange(len(frame))
    heads_at = np.where(_starts(frame["query"]).to_numpy(), rows, 0)
    rank = pl.Series("rank", rows - np.maximum.accumulate(heads_at) + 1, dtype=pl.Int64)
    if "rank" in frame.columns:
        frame = frame.with_columns(score=-rank.cast(pl.Float64))
    return frame.select("query_id", "doc_id", "score", rank)


def _starts(column: pl.Series) -> pl.Series:
    """Where a value differs from the one before."""
    return column.ne_missing(column.shift(1))


def _is_ordered(frame: pl.DataFrame) -> bool:
    """Is this what :func:`run` returns? A few passes over the columns, no sorting."""
    if (
        frame.is_empty()
        or any(column.null_count() for column in frame)
        or not frame["score"].is_finite().all()
    ):
        return False
    starts = _starts(frame["query_id"])
    here, above = frame.slice(1), frame.slice(0, len(frame) - 1)
    within = ~starts.slice(1)
    falls = (here["score"] < above["score"]) | (
        (here["score"] == above["score"]) & (here["doc_id"] < above["doc_id"])
    )
    counts = here["rank"] == above["rank"] + 1
    try:
        refuse_repeats(frame, ["query_id", "doc_id"])
    except InputError:
        return False
    return bool(
        (frame["rank"].filter(starts) == 1).all()
        and (falls & counts).filter(within).all()
        and frame["query_id"].filter(starts).is_unique().all()
        and (frame["query_id"] != "").all()
        and (frame["doc_id"] != "").all()
    )


def _ids(frame: pl.DataFrame, path: str | os.PathLike[str] | None, line: int | None) -> list[pl.Series]:
    names = ("query_id", "doc_id")
    if line is not None:  # cells between blanks: text, and never empty
        return [frame[name] for name in names]
    return [id_column(frame, name, path=path) for name in names]


def path_of(x: Any) -> str | os.PathLike[str] | None:
    """The path that something given as a table is, if it is one."""
    return x if isinstance(x, (str, os.PathLike)) and not irds.is_name(x) else None


def _whole(
    frame: pl.DataFrame, schema: pl.Schema | None, what: str, path: str | os.PathLike[str] | None
) -> pl.DataFrame:
    if frame.is_empty():
        raise InputError(f"the {what} table has no rows", path=path)
    return frame if schema is None or frame.schema == schema else frame.cast(schema)


def genders(x: Any) -> pl.DataFrame:
    """Known genders of queries: ``query_id`` and ``gender`` (female, male, neutral, other).

    ``x`` is a path (``query_id<TAB>label``, ``query_id<TAB>text<TAB>label``, or TSV or CSV with a
    header, or Parquet), a frame, a dict ``{query_id: label}`` or rows. f, m, n, women, non-gendered and
    the like are understood in either case. Any other label is refused.
    """
    refuse_after_fork()
    path = path_of(x)
    if path:
        return topics.read_genders(path)
    frame = door.as_frame(x, {"query_id": QUERY_ID, "gender": GENDER}, part="queries")
    labels = id_column(frame, "gender")
    genders = {label: topics.known_gender(label) for label in labels.unique(maintain_order=True)}
    gender = labels.replace_strict(genders, return_dtype=pl.String)
    frame = frame.select(id_column(frame, "query_id"), gender)
    refuse_repeats(frame, ["query_id"])
    return _whole(frame, GENDERS_SCHEMA, "genders", None)


def load(source: str | os.PathLike[str] | Any, *, split: str | None = None) -> Dataset:
    """The collection, queries and judgments of a folder or an ir_datasets dataset.

    A folder holds ``docs.*`` and ``queries.*``, perhaps ``qrels.*``. Where there are several
    (``queries.train.tsv``, ``queries.test.tsv``) ``split`` chooses; without it the error lists them. So do
    the folders of MS MARCO (``collection.tsv``, ``queries.dev.small.tsv``, ``qrels.dev.small.tsv``) and of
    BEIR (``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``; of the queries those that the split
    judges).
    ``irds:ID`` with a split is ``irds:ID/split``; an ir_datasets dataset itself is taken too. Without
    judgments ``qrels`` is None.
    """
    refuse_after_fork()
    if irds.is_name(source) or irds.is_dataset(source):
        named = irds.is_name(source)
        dataset = irds.dataset(f"{source}/{split}" if split else str(source)) if named else source
        judged = irds.has(dataset, "qrels")
        return Dataset(docs(dataset), queries(dataset), qrels(dataset) if judged else None)
    folder = Path(source)
    if not folder.is_dir():
        problem = "this is a file; name its folder" if folder.exists() else "no such folder"
        raise InputError(problem, path=source)
    collection = _find(folder, "docs", split)
    if (folder / "qrels").is_dir():  # as BEIR has it: splits are of the judgments, queries are all in one
        found = qrels(_judged_part(folder / "qrels", split))
        texts = queries(_find(folder, "queries", None))
        listed = texts["query_id"].is_in(found["query_id"].unique().implode())
        return Dataset(docs(collection), texts.filter(listed), found)
    asked = _find(folder, "queries", split)
    judged_file = _find(folder, "qrels", split, required=False)
    return Dataset(docs(collection), queries(asked), None if judged_file is None else qrels(judged_file))


def _judged_part(folder: Path, split: str | None) -> Path:
    """The one file of a folder of judgments, or that of the split."""
    there = {path.name.partition(".")[0]: path for path in sorted(folder.iterdir()) if path.is_file()}
    if split is None and len(there) == 1:
        return next(iter(there.values()))
    if split not in there:
        problem = "several splits" if split is None else f"no split {split!r}"
        raise InputError(f"{problem}; choose with split= one of {listing(there)}", path=folder)
    return there[split]


def _find(folder: Path, kind: str, split: str | None, *, required: bool = True) -> Path | None:
    """The file ``kind[.split].suffix[.gz|.zst]``; where there are several, ``split`` has to choose."""
    found: dict[Path, str] = {}
    for path in sorted(folder.iterdir()):
        plain = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
        name, *parts = plain.stem.split(".")
        if name in _CALLED.get(kind, (kind,)) and plain.suffix.lower() in SUFFIXES and path.is_file():
            found[path] = ".".join(parts)
    chosen = list(found)
    if split is not None and (any(found.values()) or kind == "queries"):
        chosen = [path for path, part in found.items() if part == split]
        if not chosen and kind == "docs":  # one collection may serve all splits
            chosen = [path for path, part in found.items() if not part]
        if not chosen and found:
            known = listing(dict.fromkeys(part for part in found.values() if part))
            raise InputError(f"no {kind} for split {split!r}; splits there: {known}", path=folder)
    if len(chosen) > 1:
        names = listing(path.name for path in chosen)
        splits = listing(dict.fromkeys(found[path] for path in chosen if found[path]))
        way_out = f"choose with split= one of {splits}" if split is None and splits != "none" else "keep one"
        raise InputError(f"several {kind} files: {names}; {way_out}", path=folder)
    if not chosen and required:
        raise InputError(f"no {kind} file; expected {kind}.tsv, .jsonl or .parquet", path=folder)
    return chosen[0] if chosen else None


def write_run(x: Any, path: str | os.PathLike[str], *, name: str) -> None:
    """Write a run in TREC format, whole or not at all; ``.gz`` and ``.zst`` are compressed.

    The scores fall strictly within each query even in single precision, which trec_eval compares in:
    sorting by score restores this order in any tool. ``name`` is the tag in the last column.
    """
    trec.write(run(x), path, name=name)


def perfect(x: Any) -> pl.DataFrame:
    """The best possible run: all and only the relevant documents of each query, highest grade first.

    ``x`` is anything :func:`qrels` takes. Queries without a relevant document are left out.
    """
    relevant = qrels(x).filter(pl.col("relevance") > 0)
    return _ordered(relevant.select("query_id", "doc_id", score=pl.col("relevance").cast(pl.Float64)))


def random_run(x: Any, *, seed: int = 0) -> pl.DataFrame:
    """The judged documents of each query in random order: what a ranker that knows nothing would do.

    ``x`` is anything :func:`qrels` takes. The same judgments and seed give the same run, whatever the
    order of the rows.
    """
    judged = qrels(x)
    scores = np.empty(len(judged))
    by_ids = judged.select(pl.arg_sort_by("query_id", "doc_id")).to_series().to_numpy()
    scores[by_ids] = np.random.default_rng(seed).random(len(judged))
    return _ordered(judged.select("query_id", "doc_id", score=pl.Series(scores)))
