"""Collections and runs on a cluster: the word matcher of one machine in the workers of Apache Spark.

Spark maps Arrow batches of documents to Arrow batches of their tally. Runs are cut in Spark to the depth that
the measures look at; the rows that are left, and the tally of their documents, are measured on this machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from ir_measures.measures import Measure

from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import Part, reading
from evenrank.data.read import is_spark, read_qrels
from evenrank.data.schema import DOC_ID, QUERY_ID, RANK, SCORE, Block, pick, pick_fields
from evenrank.errors import InputError, NoDocumentsError
from evenrank.measures.base import is_bias, unwrap_abs
from evenrank.measures.evaluate import depth_to_read, listed_measures, measure
from evenrank.measures.inputs import named_runs
from evenrank.measures.results import Measurement, Measurements
from evenrank.text.lexicon import Lexicon
from evenrank.text.lexicon import lexicon as as_lexicon
from evenrank.text.matcher import Matcher, Source
from evenrank.text.tally import Tally, count_batch, provenance, read_provenance, tally_columns

FIELDS = ("title", "text")
PROVENANCE = "evenrank"
"""The key of a tally's provenance in the metadata of its column doc_id."""
MIN_PART, MAX_PART = 1 << 22, 1 << 27
"""Bytes of a file that a worker reads at a time: a task costs a tenth of a second, whatever it has to do."""
_TYPES = {"string": "string", "int64": "bigint", "double": "double"}
_INSTALL = "needs Apache Spark: pip install 'evenrank[spark]', and Java 17 or newer"


def session(master: str | None = None) -> Any:
    """Return the Spark session: the one that exists, or a new one on `master` (or Spark's own default)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError(f"the engine spark {_INSTALL}") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    built = SparkSession.builder.appName("evenrank").config("spark.ui.showConsoleProgress", "false")
    # What goes wrong in a task is raised here, in one line, without a stack of Java's.
    built = built.config("spark.ui.enabled", "false").config("spark.log.level", "FATAL")
    built = built.config("spark.sql.execution.arrow.maxRecordsPerBatch", "8192")
    try:
        result = (built.master(master) if master else built).getOrCreate()
    except Exception as error:  # py4j's own, Java's by way of it, and what Spark says about a master
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(
            f"Spark does not start on {master or 'the default master'} ({first}); it {_INSTALL}"
        ) from error
    result.sparkContext.setLogLevel("FATAL")
    return result


@dataclass(frozen=True)
class Tallying:
    """How documents are tallied: words and settings only, which can be sent to workers.

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

    @classmethod
    def of(
        cls,
        lexicon: Source,
        *,
        tokenizer: str = "words",
        fields: Sequence[str] = FIELDS,
        id_field: str | None = None,
    ) -> Tallying:
        words = json.dumps(as_lexicon(lexicon).to_dict(), ensure_ascii=False)
        return cls(words, tokenizer, tuple(fields), id_field)

    @property
    def matcher(self) -> Matcher:
        """The matcher, compiled once in each worker."""
        return _matcher(self.words, self.tokenizer)

    @property
    def schema(self) -> str:
        """The columns of the tally, as Spark writes a schema."""
        fields = tally_columns(self.matcher.groups)
        return ", ".join(f"`{field.name.replace('`', '``')}` {_TYPES[str(field.type)]}" for field in fields)

    def open(self, source: Any) -> Docs:
        return open_docs(source, fields=self.fields, id_field=self.id_field)

    def count(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        for block in blocks:
            yield count_batch(block.read(), self.matcher)

    def count_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the tally of Arrow batches of documents."""
        for batch in batches:
            if len(batch):
                yield from self.count(self.open(pa.Table.from_batches([batch])).blocks())

    def count_parts(
        self, parts: Sequence[tuple[str, Part]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the tally of those parts of files whose numbers are in the column ``id``."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                path, part = parts[number]
                docs = self.open(path)
                try:
                    yield from self.count(docs.blocks(part))
                except InputError:  # a part does not know its lines: read from the first
                    for _ in self.count(docs.blocks()):
                        pass
                    raise


@lru_cache(maxsize=4)
def _matcher(words: str, tokenizer: str) -> Matcher:
    return Matcher(Lexicon.from_dict(json.loads(words)), tokenizer)


def tally_frame(docs: Any, lexicon: Source = "rekabsaz2020", **how: Any) -> Any:
    """Return the tally of a Spark frame of documents as a Spark frame, in the same order; nothing runs yet.

    Columns are found by name as in :func:`evenrank.tally`. How the tally was made is kept in the metadata of
    ``doc_id``, and stays there when Spark writes the frame to Parquet. Duplicate documents are refused where
    they are ranked, by :func:`measure_frames`.
    """
    tallying = Tallying.of(lexicon, **how)
    id_column = pick(docs.columns, (tallying.id_field,) if tallying.id_field else DOC_ID)
    chosen = docs.select(id_column, *pick_fields(docs.columns, tallying.fields))
    return _mapped(chosen, tallying.count_batches, tallying)


def _mapped(frame: Any, work: Any, tallying: Tallying) -> Any:
    """Return the rows of a tally, and in their schema how they were made."""
    facts = json.dumps(provenance({"name": "a Spark frame"}, tallying.matcher), ensure_ascii=False)
    return frame.mapInArrow(work, tallying.schema).withMetadata("doc_id", {PROVENANCE: facts})


def tally_paths(spark: Any, paths: Sequence[str], lexicon: Source, **how: Any) -> Any:
    """Return the tally of files, or folders of them, as a Spark frame; nothing runs yet.

    Files on a disk that this machine and all workers see are read and split by the workers themselves, so
    that documents do not pass through the virtual machine of Java. Parquet elsewhere is read by Spark.
    """
    tallying = Tallying.of(lexicon, **how)
    if any("://" in path.removeprefix("file://") for path in paths):
        frame = _parquet(spark, paths)
        if frame is None:
            raise InputError(
                "only Parquet is read at an address; open other files with Spark and tally the frame",
                path=paths[0],
            )
        return tally_frame(frame, lexicon, **how)
    files = _local_files(paths, tallying)
    size = sum(docs.size or 0 for _, docs in files) // (2 * spark.sparkContext.defaultParallelism)
    size = min(MAX_PART, max(MIN_PART, size))
    parts = [(path, part) for path, docs in files if docs.parts for part in docs.parts(size)]
    numbers = spark.range(0, len(parts), 1, len(parts))
    return _mapped(numbers, partial(tallying.count_parts, parts), tallying)


def tally_files(spark: Any, paths: Sequence[str], output: str, lexicon: Source, **how: Any) -> int:
    """Tally files with Spark and return the number of documents.

    The output is one file as on one machine; at an address such as ``s3a://…``, a folder of Parquet files.
    """
    with _one_line_errors():
        built = tally_paths(spark, paths, lexicon, **how)
        if "://" in output:
            built.write.mode("errorifexists").parquet(output)
            return int(spark.read.parquet(output).count())
        frame = pl.DataFrame(pl.from_arrow(built.toArrow()))
        facts = provenance(
            {"name": ", ".join(map(os.path.basename, paths))}, Tallying.of(lexicon, **how).matcher
        )
        Tally(Tally.of(frame).frame, facts).write(output)
        return len(frame)


def _local_files(paths: Sequence[str], tallying: Tallying) -> list[tuple[str, Docs]]:
    """Return the files that hold documents; of a folder all, where some may be empty."""
    opened: list[tuple[str, Docs]] = []
    for path in (Path(path.removeprefix("file://")).absolute() for path in paths):
        inside = [path]
        if path.is_dir():
            with reading(path):
                inside = [each for each in sorted(path.iterdir()) if each.name[0] not in "._"]
        for file in map(str, inside):
            try:
                opened.append((file, tallying.open(file)))
            except NoDocumentsError:
                if len(inside) == 1:
                    raise
    if not opened:
        raise NoDocumentsError("no file here has a document", path=paths[0])
    lines = [(file, docs.first_line) for file, docs in opened if docs.first_line is not None]
    for (other, first), (file, own) in pairwise(lines):
        if first != own:
            raise InputError(
                f"of this file and {Path(other).name}, only one begins with a header; give both one, or none",
                path=file,
            )
    return opened


def read_run(spark: Any, path: str) -> Any:
    """Return a run in a Parquet or TREC file, or a folder of them, as a Spark frame."""
    from pyspark.sql import functions as f

    if (frame := _parquet(spark, [path])) is not None:
        return frame
    cells = _cells(
        f.split(f.trim("value"), "[ \t]+", -1), [5, 6], "expected query_id Q0 doc_id rank score tag"
    )
    return (
        spark.read.text(path)
        .select(cells.alias("cells"))
        .select(
            f.col("cells")[0].alias("query_id"),
            f.col("cells")[2].alias("doc_id"),
            f.col("cells")[3].cast("bigint").alias("rank"),
            f.col("cells")[4].cast("double").alias("score"),
        )
    )


def _parquet(spark: Any, paths: Sequence[str]) -> Any:
    """Return files that are called .parquet, or folders that are; None for others, which hold text."""
    if not all(re.search(r"\.(parquet|pq)/?$", path) for path in paths):
        return None
    return spark.read.parquet(*paths)


def _cells(cells: Any, counts: list[int], expected: str) -> Any:
    """Return the cells of a line, refused unless they are as many as there should be."""
    from pyspark.sql import functions as f

    message = f.concat(f.lit(f"InputError: {expected}, but a line is: "), f.substring("value", 1, 80))
    return f.when(f.size(cells).isin(counts), cells).otherwise(f.raise_error(message))


def open_inputs(
    spark: Any, runs: Mapping[str, str], given: Mapping[str, Any], *, docs: str | None
) -> tuple[Any, dict[str, Any]]:
    """Return runs, and what else is large (documents, tally, background), as Spark frames."""
    built = dict(given)
    how = {name: built.pop(name) for name in ("fields", "id_field")}
    with _one_line_errors():
        frames = {name: read_run(spark, path) for name, path in runs.items()}
        if built.get("background") is not None:
            built["background"] = read_run(spark, built["background"])
        if built.get("tally") is not None:
            path = built["tally"]
            built["tally"] = spark.read.parquet(path)
            if Path(path).is_file():
                facts = json.dumps(read_provenance(path), ensure_ascii=False)
                built["tally"] = built["tally"].withMetadata("doc_id", {PROVENANCE: facts})
        elif docs is not None:
            lexicon, tokenizer = built.pop("lexicon", None), built.pop("tokenizer", None)
            words: Source = lexicon or "rekabsaz2020"
            built["tally"] = tally_paths(spark, [docs], words, tokenizer=tokenizer or "words", **how)
    return frames, built


def check_measures(measures: Sequence[Measure]) -> None:
    """Refuse measures that need more than the counts of the ranked documents."""
    for one in map(unwrap_abs, measures):
        if is_bias(one) and (one.SEQUENCES or "docs" in one.NEEDS):
            raise InputError(
                f"{one} looks at more than the counts of one list's documents, which is all that comes from "
                "Spark; measure it on one machine"
            )
        if one.params.get("target") == "collection":
            raise InputError(f"{one} needs the whole collection; measure it on one machine")


def measure_frames(
    runs: Any, measures: str | Measure | Sequence[str | Measure], *, tally: Any = None, **given: Any
) -> Measurements:
    """Measure runs in Spark frames: the values of :func:`evenrank.measure`.

    Parameters
    ----------
    runs
        A Spark frame (query_id, doc_id, score), or a mapping from names to such frames.
    tally
        A Spark frame that :func:`evenrank.tally` made of one of documents.
    background
        A Spark frame.
    given
        The rest as for :func:`evenrank.measure`: small tables.

    Spark cuts the runs to the depth that the measures look at; the rows that are left, and the tally of their
    documents, come to this machine. So measures that read texts or the whole collection are refused, and the
    collection is not compared with.
    """
    named = named_runs(runs)
    wanted = listed_measures(measures)
    check_measures(wanted)
    if given.get("docs") is not None:
        raise InputError("runs are Spark frames; give the tally of the documents, made with evenrank.tally")
    if tally is not None and not is_spark(tally):
        raise InputError("runs are Spark frames, so the tally has to be one too; make it with evenrank.tally")
    order = given.get("order") or "score"
    depth = depth_to_read(wanted, given.get("missing"))
    with _one_line_errors():
        frames = {name: _cut(frame, depth, order) for name, frame in named.items()}
        local: dict[str, Any] = {name: _collected(frame) for name, frame in frames.items()}
        needed = [frame.select("doc_id") for frame in frames.values()]
        if given.get("background") is not None:
            background = _cut(given["background"], None, order)
            needed.append(background.select("doc_id"))
            given["background"] = _collected(background)
        if tally is not None:
            if given.get("qrels") is not None:
                judged = read_qrels(given["qrels"]).select("doc_id").unique()
                spark = tally.sparkSession
                needed.append(spark.createDataFrame(judged.rows(), "doc_id string"))
            ids = reduce(lambda left, right: left.union(right), needed).distinct()
            (facts,) = (each.metadata.get(PROVENANCE) for each in tally.schema if each.name == "doc_id")
            rows = pl.DataFrame(pl.from_arrow(tally.join(ids, on="doc_id", how="left_semi").toArrow()))
            if rows["doc_id"].is_duplicated().any():
                twice = rows.filter(pl.col("doc_id").is_duplicated())["doc_id"][0]
                raise InputError(f"the tally holds the document {twice!r} twice")
            given["tally"] = Tally(rows, json.loads(facts) if facts else None)
    result = measure(local, wanted, **given)
    without = {
        name: tuple(replace(one, compare=partial(_without_collection, one)) for one in of_run)
        for name, of_run in result.runs.items()
    }
    described = dict.fromkeys(local, "a Spark frame")
    return replace(result, runs=without, describe=lambda: result.provenance | {"runs": described})


def _without_collection(measurement: Measurement) -> dict[str, dict[str, Any]]:
    """Return what a value is compared with, less the collection, of which only ranked documents are here."""
    return {name: values for name, values in measurement.background.items() if name != "collection"}


def _cut(frame: Any, depth: int | None, order: str) -> Any:
    """Return the columns of a run, down to one place below the depth and all that are tied there.

    They tell whether a tie decides what is above.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    names = {"query_id": QUERY_ID, "doc_id": DOC_ID, order: RANK if order == "rank" else SCORE}
    columns = [
        f.col(f"`{pick(frame.columns, known)}`")
        .cast("string" if name.endswith("_id") else "double")
        .alias(name)
        for name, known in names.items()
    ]
    rows = frame.select(f.monotonically_increasing_id().alias("row"), *columns)
    if depth is None:
        return rows
    down = f.col(order).asc() if order == "rank" else f.col(order).desc()
    place = f.rank().over(Window.partitionBy("query_id").orderBy(down))
    return rows.withColumn("place", place).where(f.col("place") <= depth + 1).drop("place")


def _collected(frame: Any) -> pl.DataFrame:
    """Return a Spark frame of a run as a table here, in its order."""
    return pl.DataFrame(pl.from_arrow(frame.toArrow())).sort("row").drop("row")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Raise what a worker refused without the stack of Spark around it."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if message := re.search(r"InputError: (.+)", str(error)):
            raise InputError(message[1].strip()) from error
        if path := re.search(r"PATH_NOT_FOUND\S* Path does not exist: (\S+?)\.?(\s|$)", str(error)):
            raise InputError("there is no such file", path=path[1]) from error
        raise
