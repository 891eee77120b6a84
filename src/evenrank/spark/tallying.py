"""A tally on a cluster: the kernel of one machine, on Arrow batches, wherever an engine calls it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import evenrank
from evenrank.data import tables
from evenrank.data.columns import DOC_ID, pick, pick_fields
from evenrank.data.files import Part, writing
from evenrank.text.lexicon import Lexicon
from evenrank.text.matcher import Matcher, Source, count_batch
from evenrank.text.tally import tally_columns

FIELDS = ("title", "text")
FACTS = "evenrank"
"""Of the provenance, in the metadata of the column doc_id."""
_TYPES = {"string": "string", "int64": "bigint", "double": "double"}


@dataclass(frozen=True)
class TallyBatches:
    """Documents in, rows of their tally out, Arrow batch by Arrow batch: for any engine that maps batches.

    Called with an iterator of batches it gives one (Spark's ``mapInArrow``), with a batch or a table it gives
    one (Ray's ``map_batches``). It holds words and settings only, and can be sent to workers.

    Attributes
    ----------
    words
        The lexicon, as JSON.
    tokenizer, fields, id_field
        As in `tally`.
    """

    words: str
    tokenizer: str = "words"
    fields: tuple[str, ...] = FIELDS
    id_field: str | None = None

    @property
    def matcher(self) -> Matcher:
        """Made once in each worker."""
        return _matcher(self.words, self.tokenizer)

    def __call__(self, batches: Any) -> Any:
        if isinstance(batches, pa.Table):
            counted = [self._counted(batch) for batch in batches.to_batches()]
            return pa.Table.from_batches(counted, self.schema)
        return self._counted(batches) if isinstance(batches, pa.RecordBatch) else map(self._counted, batches)

    @property
    def schema(self) -> pa.Schema:
        return tally_columns(self.matcher.groups)

    def of_parts(self, parts: Sequence[FilePart], batches: Iterable[pa.RecordBatch]) -> Any:
        """Parts of files in, by their numbers in the column ``id``; rows of their tally out."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self._of_part(parts[number])

    def written(self, parts: Sequence[FilePart], folder: str, batches: Iterable[pa.RecordBatch]) -> Any:
        """As `of_parts`, but the rows go into files of a folder, and their number is all that comes out."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                rows = 0
                with (
                    writing(Path(folder, f"{number:08}.arrow")) as file,
                    pa.ipc.new_stream(file, self.schema) as out,
                ):
                    for piece in self._of_part(parts[number]):
                        out.write_batch(piece)
                        rows += len(piece)
                yield pa.record_batch({"rows": pa.array([rows], pa.int64())})

    def _of_part(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        docs = tables.docs(part[0], fields=self.fields, id_field=self.id_field)
        return (count_batch(block.read(), self.matcher) for block in docs.blocks(part[1]))

    def _counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        docs = tables.docs(pa.Table.from_batches([batch]), fields=self.fields, id_field=self.id_field)
        pieces = [count_batch(block.read(), self.matcher) for block in docs.blocks()]
        table = pa.Table.from_batches(pieces, self.schema) if pieces else self.schema.empty_table()
        return table.combine_chunks().to_batches()[0] if len(table) else _empty(self.schema)


@lru_cache(maxsize=4)
def _matcher(words: str, tokenizer: str) -> Matcher:
    return Matcher(Lexicon.from_dict(json.loads(words)), tokenizer)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def tally_batches(
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
) -> TallyBatches:
    """A function that tallies Arrow batches of documents, wherever it is called.

    Examples
    --------
    >>> count = tally_batches("rekabsaz2020")
    >>> count(pa.table({"doc_id": ["d1"], "text": ["She met her brother."]}))["female"].to_pylist()
    [2]
    """
    matcher = Matcher(lexicon, tokenizer)
    words = json.dumps(matcher.lexicon.to_dict(), ensure_ascii=False)
    return TallyBatches(words, matcher.tokenizer, tuple(fields), id_field)


def tally_schema(lexicon: Source = "rekabsaz2020", *, tokenizer: str = "words") -> str:
    """The columns that :func:`tally_batches` gives, as Spark writes a schema.

    >>> tally_schema({"women": ["she"]})
    '`doc_id` string, `tokens` bigint, `women` bigint, `women_logwords` double'
    """
    schema = tally_batches(lexicon, tokenizer=tokenizer).schema
    return ", ".join(f"`{field.name.replace('`', '``')}` {_TYPES[str(field.type)]}" for field in schema)


def tally_frame(
    docs: Any,
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
) -> Any:
    """A Spark frame of documents as a Spark frame of their tally, in the same order; nothing is run yet.

    Columns are found by name as in :func:`evenrank.tally`. How the tally was made is kept in the metadata of
    ``doc_id``, and stays there when Spark writes the frame to Parquet. That no document is there twice is not
    looked at here; :func:`measure_frames` refuses one that is, where it is ranked.
    """
    count = tally_batches(lexicon, tokenizer=tokenizer, fields=fields, id_field=id_field)
    id_column = pick(docs.columns, (id_field,) if id_field else DOC_ID)
    chosen = docs.select(id_column, *pick_fields(docs.columns, fields))
    return _mapped(chosen, count, count)


def tally_parts(
    spark: Any,
    paths: Sequence[str],
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
) -> Any:
    """Files that this machine and all workers see, as a Spark frame of their tally; nothing is run yet.

    The workers read and split the files themselves, each a part at a time, so that documents do not pass
    through the virtual machine of Java.
    """
    count = tally_batches(lexicon, tokenizer=tokenizer, fields=fields, id_field=id_field)
    parts, numbers = _numbered(spark, paths, count)
    return _mapped(numbers, partial(count.of_parts, parts), count)


def write_parts(spark: Any, paths: Sequence[str], folder: str, count: TallyBatches) -> list[Path]:
    """Have the workers tally such files into a folder that they see too; the files there, in order."""
    parts, numbers = _numbered(spark, paths, count)
    numbers.mapInArrow(partial(count.written, parts, folder), "rows bigint").collect()
    return sorted(Path(folder).glob("*.arrow"))


LEAST, MOST = 1 << 22, 1 << 27
"""Bytes of a file that a worker reads at a time: a task costs a tenth of a second, whatever it has to do."""
FilePart = tuple[str, Part]


def _numbered(spark: Any, paths: Sequence[str], count: TallyBatches) -> tuple[list[FilePart], Any]:
    """The parts of files, and their numbers as a Spark frame, one in each partition."""
    docs = [tables.docs(path, fields=count.fields, id_field=count.id_field) for path in paths]
    share = sum(one.size or 0 for one in docs) // (2 * spark.sparkContext.defaultParallelism)
    size = min(MOST, max(LEAST, share))
    parts = [(path, part) for path, one in zip(paths, docs, strict=True) for part in one.parts(size)]
    return parts, spark.range(0, len(parts), 1, len(parts))


def _mapped(frame: Any, work: Any, count: TallyBatches) -> Any:
    """Rows of a tally, and in their schema how they were made."""
    made = frame.mapInArrow(work, tally_schema(count.matcher.lexicon, tokenizer=count.tokenizer))
    return made.withMetadata("doc_id", {FACTS: json.dumps(facts(count.matcher), ensure_ascii=False)})


def facts(matcher: Matcher) -> dict[str, Any]:
    """What a reader needs to make the same tally again."""
    return {
        "evenrank": evenrank.__version__,
        "lexicon": {**matcher.lexicon.to_dict(), "hash": matcher.lexicon.hash},
        "tokenizer": matcher.tokenizer,
        "unicode": matcher.unicode_version,
        "input": {"name": "a Spark frame"},
    }
