"""The tally: how often the words of each group occur in each document. Everything else builds on it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import evenrank
from evenrank.data import formats
from evenrank.data.docs import Docs, map_in_order
from evenrank.data.docs import open_docs as as_docs
from evenrank.data.files import reading, refuse_input, writing
from evenrank.data.read import is_spark, spark
from evenrank.data.schema import Block, DuplicateCheck, Table
from evenrank.errors import InputError
from evenrank.text.lexicon import Lexicon
from evenrank.text.matcher import Matcher, Source
from evenrank.text.tokens import Tokenizer

_KEY = b"evenrank"  # of the provenance in the metadata of a Parquet file
_ROW_GROUP = 1 << 18
_LOGWORDS = "_logwords"

Progress = Callable[[int, int | None], None]


class Tally:
    """A collection counted by a lexicon: a Polars frame that knows where it comes from.

    The frame has one row per document: ``doc_id``, ``tokens``, for each group a count (``female``) and
    for each group the sum over its words of ln(1 + count of the word) (``female_logwords``). Whatever
    a Polars frame can do, a tally can: ``tally["female"]``, ``tally.filter(…)``, ``len(tally)``.

    Attributes
    ----------
    frame
        The Polars frame.
    groups
        The groups, in the order of the lexicon.
    provenance
        Version, lexicon, tokenizer and fingerprint of the input; empty if unknown.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        provenance: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.frame = frame
        self._provenance = provenance or {}
        self.groups = _groups(frame.columns)

    @classmethod
    def of(cls, source: Tally | pl.DataFrame | str | os.PathLike[str]) -> Tally:
        """A tally from a tally, a Parquet file that :meth:`write` made, or a frame with its columns."""
        if isinstance(source, Tally):
            return source
        if isinstance(source, pl.DataFrame):
            return cls(_checked(source))
        if isinstance(source, (str, os.PathLike)):
            return cls.read(source)
        raise InputError(f"a tally is a Tally, a Parquet file or a Polars frame, not {type(source).__name__}")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tally:
        """Read a tally from its Parquet file."""
        facts = read_provenance(path)
        table, _ = formats.read_checked(path, _KEY)
        try:
            return cls(_checked(_frame(table)), facts)
        except InputError as error:
            raise InputError(error.message, path=path) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file with the provenance inside; the same tally gives the same bytes."""
        _check_output(path)
        write_tally(path, iter([_table(self.frame)]), tally_columns(self.groups), self.provenance)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        facts = self._provenance() if callable(self._provenance) else self._provenance
        self._provenance = facts  # and let go of the documents
        return dict(facts)

    @property
    def lexicon(self) -> Lexicon | None:
        """The lexicon whose words were counted, if known."""
        stored = self.provenance.get("lexicon")
        return None if stored is None else Lexicon.from_dict({k: v for k, v in stored.items() if k != "hash"})

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that cut the documents into tokens, if known."""
        return self.provenance.get("tokenizer")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "frame":
            raise AttributeError(name)
        return getattr(self.frame, name)

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __len__(self) -> int:
        return len(self.frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Tally of {len(self):,} documents, groups {', '.join(self.groups)}\n{self.frame}"


def tally(
    docs: Any,
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    progress: Progress | None = None,
) -> Tally:
    """Count the words of each group in every document.

    Parameters
    ----------
    docs
        Anything that holds documents: a path, a frame, a dict, an iterator, an ``irds:`` id. Of a Spark frame
        the tally is a Spark frame, too.
    lexicon
        A name, a file, a mapping from group to words, or a :class:`Lexicon`.
    tokenizer
        ``words``, or ``whitespace`` to repeat published numbers.
    progress
        Called with (bytes read, bytes in all) as the work goes on.

    Returns
    -------
    Tally

    Examples
    --------
    >>> tally({"d1": "She met her brother."})["female"].to_list()
    [2]
    """
    if is_spark(docs):
        built: Any = spark().tally_frame(docs, lexicon, tokenizer=tokenizer)
        return built
    source, matcher = as_docs(docs), Matcher(lexicon, tokenizer)
    batches = list(count_documents(source, matcher, progress))
    table = pa.Table.from_batches(batches, tally_columns(matcher.groups))

    def describe() -> dict[str, Any]:
        return provenance(source.describe(), matcher, len(table))

    return Tally(_frame(table), describe if source.frozen else describe())


def count_documents(docs: Docs, matcher: Matcher, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    """One row per document, in the order of the collection: doc_id, tokens, counts, logwords.

    A document id that occurs twice is an error, raised behind the last row.
    """

    def work(block: Block) -> tuple[pa.RecordBatch, int]:
        return count_batch(block.read(), matcher), block.size

    duplicates, done = DuplicateCheck("doc_id"), 0
    for batch, size in map_in_order(work, docs.blocks()):
        done += size
        if progress:
            progress(done, docs.size)
        duplicates.add(batch.column(0))
        yield batch
    duplicates.finish(docs.tables)


def count_batch(batch: pa.RecordBatch, matcher: Matcher) -> pa.RecordBatch:
    """The rows of the tally for one batch of documents."""
    result = matcher.count(batch.column("text"))
    numbers = [result.tokens, *result.counts.T, *result.logwords.T]
    columns = [batch.column("doc_id"), *(pl.Series(each).to_arrow() for each in numbers)]
    names = ["doc_id", "tokens", *matcher.groups, *(f"{group}_logwords" for group in matcher.groups)]
    return pa.RecordBatch.from_arrays(columns, names)


def tally_to_file(
    docs: Any,
    path: str | os.PathLike[str],
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Like :func:`tally`, straight into a Parquet file, in memory that does not grow with the input.

    Returns the provenance that the file carries.
    """
    source, matcher = as_docs(docs), Matcher(lexicon, tokenizer)
    _check_output(path, source)
    rows = count_documents(source, matcher, progress)
    return write_tally(path, rows, tally_columns(matcher.groups), provenance(source.describe(), matcher))


def _check_output(path: str | os.PathLike[str], source: Docs | None = None) -> None:
    """Refuse to write where the input is, or under a name that would compress the Parquet file."""
    if Path(path).suffix.lower() in (".gz", ".zst"):
        raise InputError(
            "a tally is a Parquet file, compressed in itself; end its name in .parquet", path=path
        )
    if source is not None:
        refuse_input(path, source.path, what="the tally")


def provenance(
    described: Mapping[str, Any], matcher: Matcher, documents: int | None = None
) -> dict[str, Any]:
    """What a reader needs to make the same tally again; the input as it describes itself."""
    facts: dict[str, Any] = {
        "evenrank": evenrank.__version__,
        "lexicon": {**matcher.lexicon.to_dict(), "hash": matcher.lexicon.hash},
        "tokenizer": matcher.tokenizer,
        "unicode": matcher.unicode_version,
        "input": dict(described),
    }
    return facts if documents is None else {**facts, "documents": documents}


def read_provenance(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The provenance in a tally's Parquet file."""
    with reading(path):
        metadata = pq.read_metadata(path).metadata or {}
    try:
        return dict(json.loads(metadata[_KEY]))
    except (KeyError, ValueError) as error:
        remedy = "make one with: evenrank tally DOCS -o T.parquet"
        raise InputError(f"this Parquet file is no tally; {remedy}", path=path) from error


def write_tally(
    path: str | os.PathLike[str],
    rows: Iterator[pa.Table | pa.RecordBatch],
    schema: pa.Schema,
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Stream rows into a Parquet file that appears when it is complete; row groups have a fixed size."""
    count = 0
    with (
        writing(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=schema.names[1:],
            write_statistics=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for table in _row_groups(rows, schema):
            writer.write_table(table, row_group_size=_ROW_GROUP)
            count += len(table)
        complete = {**facts, "documents": count}
        said = json.dumps(complete, ensure_ascii=False)
        writer.add_key_value_metadata({_KEY.decode(): said, **formats.metadata_checksum(schema, count, said)})
    return complete


def _row_groups(rows: Iterator[pa.Table | pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of exactly _ROW_GROUP rows, whatever the pieces they came in."""
    waiting: list[pa.Table] = []
    size = 0
    for piece in rows:
        table = piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece])
        waiting.append(table.cast(schema) if table.schema != schema else table)
        size += len(table)
        while size >= _ROW_GROUP:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, _ROW_GROUP)
            waiting, size = [whole.slice(_ROW_GROUP)], size - _ROW_GROUP
    if size:
        yield pa.concat_tables(waiting)


# Column by column: converting a whole frame wakes the threads of Polars, which a forked process lacks.
def _frame(table: pa.Table) -> pl.DataFrame:
    columns = zip(table.column_names, table.columns, strict=True)
    return pl.DataFrame([pl.Series(name, column.combine_chunks()) for name, column in columns])


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame, if it can be a tally: every document once, whole counts and sums that are not negative."""
    groups, table = _groups(frame.columns), Table(frame)
    ids = table.ids("doc_id")
    numbers = [table.numbers(name, whole=True) for name in ("tokens", *groups)]
    numbers += [table.numbers(group + _LOGWORDS) for group in groups]
    for column in numbers:
        if (column < 0).any():
            row = int((column < 0).arg_true()[0])
            raise table.error(f"{column.name} is {column[row]}; it must not be negative", row)
    hashes = np.sort(ids.hash().to_numpy())
    if (hashes[1:] == hashes[:-1]).any():
        table.require_unique("doc_id")
    changed = [column for column in (ids, *numbers) if column.dtype != frame[column.name].dtype]
    return frame.with_columns(changed) if changed else frame


def _table(frame: pl.DataFrame) -> pa.Table:
    oldest = pl.CompatLevel.oldest()
    return pa.table({column.name: column.to_arrow(compat_level=oldest) for column in frame})


def tally_columns(groups: Iterable[str]) -> pa.Schema:
    """The columns of a tally."""
    columns = {"doc_id": pa.string(), "tokens": pa.int64()} | dict.fromkeys(groups := [*groups], pa.int64())
    return pa.schema(columns | {group + _LOGWORDS: pa.float64() for group in groups})


def _groups(columns: Iterable[str]) -> tuple[str, ...]:
    """The groups of a tally: the columns that have a `_logwords` partner."""
    columns = list(columns)
    groups = tuple([name for name in columns if name + _LOGWORDS in columns])
    if not groups or "doc_id" not in columns or "tokens" not in columns:
        raise InputError(
            "no tally: it has the columns doc_id, tokens, and for each group a count and <group>_logwords; "
            f"found: {', '.join(columns)}"
        )
    return groups


def _log1p(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return ln(1 + count), of whole numbers from a table: NumPy's last digit differs between processors."""
    if counts.dtype.kind not in "iu" or not counts.size or counts.min() < 0 or counts.max() > 1 << 16:
        return np.asarray(np.log1p(counts), np.float64)
    return np.array([math.log1p(count) for count in range(int(counts.max()) + 1)])[counts]


MAGNITUDES = ("tf", "tf-words", "boolean", "count", "length")


def magnitude(
    name: str,
    counts: NDArray[Any],
    *,
    logwords: NDArray[Any] | None = None,
    tokens: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """How strongly a group shows in each document; 0 where none of its words occurs.

    =========== ============================== ==========================================================
    name        magnitude of group g in d      where it comes from
    =========== ============================== ==========================================================
    `tf`        ln(1 + Σ_w #(w, d))            the released code and Table 3 of Rekabsaz and Schedl (2020)
    `tf-words`  Σ_w ln(1 + #(w, d))            their Eq. 1 read literally, made defined for absent words
    `boolean`   1 if any word of g occurs      their second variant
    `count`     Σ_w #(w, d)                    the thesis' Eq. 3.8 as printed; its scripts compute `tf`
    `length`    Σ_w #(w, d) / tokens(d)        footnote 4 of the paper; 0 for an empty document
    =========== ============================== ==========================================================

    `tf` is the default because every published table was computed with it, whatever the printed equation
    says: Eq. 1 of the paper takes the logarithm of a count without adding one, which is undefined for the
    many words that do not occur, so the equation cannot be what was run.

    Parameters
    ----------
    name
        One of `tf`, `tf-words`, `boolean`, `count`, `length`.
    counts
        Occurrences of the group's words, one number for each document.
    logwords
        Σ_w ln(1 + #(w, d)) for each document; only `tf-words` looks at it.
    tokens
        Number of tokens of each document; only `length` looks at it.
    """
    if name == "tf":
        return _log1p(np.asarray(counts))
    if name == "boolean":
        return (np.asarray(counts) > 0).astype(np.float64)
    if name == "count":
        return np.asarray(counts, dtype=np.float64)
    if name == "tf-words" and logwords is not None:
        return np.asarray(logwords, dtype=np.float64)
    if name == "length" and tokens is not None:
        return np.divide(counts, tokens, out=np.zeros(np.shape(counts)), where=np.asarray(tokens) > 0)
    if name in MAGNITUDES:
        raise InputError(
            f"magnitude {name!r} needs the {'tokens' if name == 'length' else 'log-word'} column"
        )
    raise InputError(f"there is no magnitude {name!r}; one of {', '.join(MAGNITUDES)}")
