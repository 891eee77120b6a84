"""A tally on a cluster: the kernel of one machine, on Arrow batches, wherever an engine calls it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import evenrank
from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import Part, writing
from evenrank.data.schema import DOC_ID, pick, pick_fields
from evenrank.errors import InputError, NoDocumentsError
from evenrank.show.numbers import counted
from evenrank.text.lexicon import Lexicon
from evenrank.text.matcher import Matcher, Source
from evenrank.text.tally import count_batch, tally_columns

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

    def of_shares(self, shares: Sequence[Share], batches: Iterable[pa.RecordBatch]) -> Any:
        """Shares of files in, by their numbers in the column ``id``; rows of their tally out."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self._of_share(shares[number])

    def written(self, shares: Sequence[Share], folder: str, batches: Iterable[pa.RecordBatch]) -> Any:
        """As `of_shares`, but the rows go into files of a folder, and only the numbers come out again."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                with (
                    writing(Path(folder, f"{number:08}.arrow")) as file,
                    pa.ipc.new_stream(file, self.schema) as out,
                ):
                    for piece in self._of_share(shares[number]):
                        out.write_batch(piece)
            yield batch

    def _of_share(self, share: Share) -> Iterator[pa.RecordBatch]:
        for path, part in share:
            docs = open_docs(path, fields=self.fields, id_field=self.id_field)
            try:
                for block in docs.blocks(part):
                    yield count_batch(block.read(), self.matcher)
            except InputError:  # a part does not know its lines: raise it again where they are counted
                for block in docs.blocks():
                    block.read()
                raise

    def _counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        docs = open_docs(pa.Table.from_batches([batch]), fields=self.fields, id_field=self.id_field)
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
    named: Sequence[Sequence[str]],
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
) -> Any:
    """Files that this machine and all workers see, as a Spark frame of their tally; nothing is run yet.

    The workers read and split the files themselves, each a part at a time, so that documents do not pass
    through the virtual machine of Java. `named` has one file, or all of a folder, for each input.
    """
    count = tally_batches(lexicon, tokenizer=tokenizer, fields=fields, id_field=id_field)
    shares, numbers = _numbered(spark, named, count)
    return _mapped(numbers, partial(count.of_shares, shares), count)


def write_shares(spark: Any, named: Sequence[Sequence[str]], folder: str, count: TallyBatches) -> list[Path]:
    """Have the workers tally such files into a folder that they see too; the files there, in order."""
    shares, numbers = _numbered(spark, named, count)
    numbers.mapInArrow(partial(count.written, shares, folder), "id bigint").collect()
    result = sorted(Path(folder).glob("*.arrow"))
    if len(result) != len(shares):
        raise InputError(
            f"of {counted(len(shares), 'piece')} that the workers wrote, {len(result)} are here; write to a "
            "folder that they share with this machine, or to an address",
            path=Path(folder).parent,
        )
    return result


LEAST, MOST = 1 << 22, 1 << 27
"""Bytes of a file that a worker reads at a time: a task costs a tenth of a second, whatever it has to do."""
Share = list[tuple[str, Part]]
"""Parts of files, or several small files, that a worker reads one after the other."""


def _numbered(spark: Any, named: Sequence[Sequence[str]], count: TallyBatches) -> tuple[list[Share], Any]:
    """The shares of all workers, and their numbers as a Spark frame, one in each partition."""
    docs = _opened(named, count)
    each = sum(one.size or 0 for _, one in docs) // (2 * spark.sparkContext.defaultParallelism)
    size = min(MOST, max(LEAST, each))
    shares: list[Share] = []
    filled = size
    for path, one in docs:
        parts = one.parts(size) if one.parts else []
        for part in parts:
            bytes_ = (one.size or 0) // len(parts)
            if filled + bytes_ > size:
                shares.append([])
                filled = 0
            shares[-1].append((path, part))
            filled += bytes_
    return shares, spark.range(0, len(shares), 1, len(shares))


def _opened(named: Sequence[Sequence[str]], count: TallyBatches) -> list[tuple[str, Docs]]:
    """The files that hold documents; all begin with a header, or none. In a folder some may be empty."""
    rows: list[tuple[str, Docs]] = []
    for inside in named:
        before = len(rows)
        for path in inside:
            try:
                rows.append((path, open_docs(path, fields=count.fields, id_field=count.id_field)))
            except NoDocumentsError:
                if len(inside) == 1:
                    raise
        if len(rows) == before:
            raise NoDocumentsError("no file here has a document", path=Path(inside[0]).parent)
    lines = [(path, one.first_line) for path, one in rows if one.first_line is not None]
    for (other, first), (path, here) in pairwise(lines):
        if first != here:
            raise InputError(
                f"of this file and {Path(other).name}, only one begins with a header; give both one, or none",
                path=path,
            )
    return rows


def _mapped(frame: Any, work: Any, count: TallyBatches) -> Any:
    """Rows of a tally, and in their schema how they were made."""
    built = frame.mapInArrow(work, tally_schema(count.matcher.lexicon, tokenizer=count.tokenizer))
    return built.withMetadata("doc_id", {FACTS: json.dumps(facts(count.matcher), ensure_ascii=False)})


def facts(matcher: Matcher) -> dict[str, Any]:
    """What a reader needs to make the same tally again."""
    return {
        "evenrank": evenrank.__version__,
        "lexicon": {**matcher.lexicon.to_dict(), "hash": matcher.lexicon.hash},
        "tokenizer": matcher.tokenizer,
        "unicode": matcher.unicode_version,
        "input": {"name": "a Spark frame"},
    }
