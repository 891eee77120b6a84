"""Files that Spark reads: collections and runs, on this machine or at any address that Spark knows."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenrank.data import formats
from evenrank.data.docs import Docs
from evenrank.data.files import reading
from evenrank.data.schema import DOC_ID, Block, batch_of
from evenrank.errors import InputError
from evenrank.spark.measuring import in_one_line
from evenrank.spark.tallying import (
    FACTS,
    FIELDS,
    facts,
    tally_batches,
    tally_frame,
    tally_parts,
    write_shares,
)
from evenrank.text.matcher import Matcher, Source
from evenrank.text.tally import read_provenance, tally_columns, unique, write_tally

_INSTALL = "needs Apache Spark: pip install 'evenrank[spark]', and Java 17 or newer"


_QUIET = "FATAL"  # what goes wrong in a task is raised here, in one line, without a stack of Java's


def session(master: str | None = None) -> Any:
    """A Spark session: the one that is there, or a new one on `master` (or where the environment says)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError(f"the engine spark {_INSTALL}") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    built = SparkSession.builder.appName("evenrank").config("spark.ui.showConsoleProgress", "false")
    built = built.config("spark.ui.enabled", "false").config("spark.log.level", _QUIET)
    built = built.config("spark.sql.execution.arrow.maxRecordsPerBatch", "8192")
    try:
        result = (built.master(master) if master else built).getOrCreate()
    except Exception as error:  # py4j's own, Java's by way of it, and what Spark says about a master
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(
            f"Spark does not start on {master or 'the default master'} ({first}); it {_INSTALL}"
        ) from error
    result.sparkContext.setLogLevel(_QUIET)
    return result


def read_docs(
    spark: Any, paths: Sequence[str], *, fields: Sequence[str] = FIELDS, id_field: str | None = None
) -> Any:
    """Documents in Parquet, JSONL or TSV files, or folders of them, wherever Spark reads: a Spark frame."""
    from pyspark.sql import functions as f

    ids = (id_field,) if id_field else DOC_ID
    with _reading(paths):
        if _suffix(paths) == ".parquet":
            return spark.read.parquet(*paths)
        lines = spark.read.text(list(paths))
        first = lines.first()
    if first is None:
        raise InputError("the file is empty", path=paths[0])
    line = first[0].removeprefix("\ufeff")
    layout, id_column, texts = formats.read_docs_layout(line, paths[0], ids=ids, fields=fields)
    wanted = (id_column, *texts)
    if layout.separator == formats.JSONL:
        schema = ", ".join(f"`{name}` string" for name in wanted)
        whole = lines.select(f.from_json("value", schema, {"mode": "FAILFAST"}).alias("row"))
        return whole.select("row.*")
    cells = _whole(f.split("value", "\t", -1), [len(layout.columns)], f"expected {layout.expected()}")
    if layout.has_header:
        lines = lines.where(f.col("value") != first[0])
    return lines.select(cells.alias("cells")).select(
        *(f.col("cells")[layout.columns.index(name)].alias(name) for name in wanted)
    )


def read_run(spark: Any, path: str) -> Any:
    """A run in a Parquet or TREC file, or a folder of them, wherever Spark reads: a Spark frame."""
    from pyspark.sql import functions as f

    with _reading([path]):
        if _suffix([path]) == ".parquet":
            return spark.read.parquet(path)
        lines = spark.read.text(path)
    cells = f.split(f.trim("value"), "[ \t]+", -1)
    whole = _whole(cells, [5, 6], "expected query_id Q0 doc_id rank score tag")
    return lines.select(whole.alias("cells")).select(
        f.col("cells")[0].alias("query_id"),
        f.col("cells")[2].alias("doc_id"),
        f.col("cells")[3].cast("bigint").alias("rank"),
        f.col("cells")[4].cast("double").alias("score"),
    )


def read_tally(spark: Any, path: str) -> Any:
    """A tally, ours or a folder that Spark wrote, with what it says of how it was made."""
    with _reading([path]):
        result = spark.read.parquet(path)
    if os.path.isfile(path):  # noqa: PTH113
        built = json.dumps(read_provenance(path), ensure_ascii=False)
        result = result.withMetadata("doc_id", {FACTS: built})
    return result


def given_frames(
    spark: Any, runs: Mapping[str, str], given: Mapping[str, Any], *, docs: str | None
) -> tuple[Any, Any]:
    """Runs, and what else is large among what was given (documents, tally, background), as Spark frames."""
    frames = {name: read_run(spark, path) for name, path in runs.items()}
    built = dict(given)
    if built.get("background") is not None:
        built["background"] = read_run(spark, built["background"])
    lexicon, tokenizer = built.pop("lexicon", None), built.pop("tokenizer", None)
    if built.get("tally") is not None:
        built["tally"] = read_tally(spark, built["tally"])
        built |= {"lexicon": lexicon, "tokenizer": tokenizer}  # compared with the tally's own
    elif docs is not None:
        fields, id_field = built.pop("fields"), built.pop("id_field")
        built["tally"] = tally_paths(
            spark,
            [docs],
            lexicon or "rekabsaz2020",
            tokenizer=tokenizer or "words",
            fields=fields,
            id_field=id_field,
        )
    return frames, {name: value for name, value in built.items() if name not in ("fields", "id_field")}


def _suffix(paths: Sequence[str]) -> str:
    """.parquet for files and folders that are called so; folders of other names hold text."""
    return ".parquet" if all(re.search(r"\.(parquet|pq)/?$", path) for path in paths) else ""


@contextmanager
def _reading(paths: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if "PATH_NOT_FOUND" in str(error):
            raise InputError("there is no such file", path=paths[0]) from error
        raise


def tally_paths(
    spark: Any,
    paths: Sequence[str],
    lexicon: Source = "rekabsaz2020",
    *,
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
    **how: Any,
) -> Any:
    """Files, or folders of them, as a Spark frame of their tally; nothing is run yet.

    What Spark would read from this machine, the workers read themselves; the rest comes through Spark.
    """
    if (local := _local_files(spark, paths)) is not None:
        return tally_parts(spark, local, lexicon, fields=fields, id_field=id_field, **how)
    docs = read_docs(spark, paths, fields=fields, id_field=id_field)
    return tally_frame(docs, lexicon, fields=fields, id_field=id_field, **how)


def _local_files(spark: Any, paths: Sequence[str]) -> list[list[str]] | None:
    """Each file that is meant, or all of a folder; None if one is elsewhere, or packed as only Spark can."""
    usual = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///"
    rows: list[list[str]] = []
    for path in paths:
        bare = path.removeprefix("file://")
        if "://" in bare or (bare == path and not usual.startswith("file:")):
            return None
        if Path(bare).is_dir():
            with reading(path):
                inside = [each for each in sorted(Path(bare).iterdir()) if each.name[0] not in "._"]
            if not inside or not all(each.is_file() for each in inside):
                return None
            rows.append([str(each.absolute()) for each in inside])
        elif Path(bare).is_file():
            rows.append([str(Path(bare).absolute())])
        else:
            return None
    packed = any(Path(path).suffix.lower() in _PACKED for inside in rows for path in inside)
    return None if packed else rows


_PACKED = (".bz2", ".deflate", ".snappy", ".lz4")
"""What Spark unpacks, and one machine does not."""


def tally_files(
    spark: Any,
    paths: Sequence[str],
    output: str,
    lexicon: Source = "rekabsaz2020",
    *,
    tokenizer: str = "words",
    fields: Sequence[str] = FIELDS,
    id_field: str | None = None,
) -> int:
    """Tally files with Spark: into a file as `tally_to_file` writes it, or, at a URL, a folder of Spark's.

    Returns the number of documents.
    """
    count = tally_batches(lexicon, tokenizer=tokenizer, fields=fields, id_field=id_field)
    local = None if "://" in output else _local_files(spark, paths)

    def made() -> Any:
        return tally_paths(spark, paths, lexicon, tokenizer=tokenizer, fields=fields, id_field=id_field)

    def pieces(folder: str) -> list[Path]:
        if local is not None:
            return write_shares(spark, local, folder, count)
        made().write.parquet(f"file://{folder}/tally")
        return sorted(Path(folder, "tally").glob("part-*.parquet"))

    try:
        if "://" in output:
            made().write.mode("errorifexists").parquet(output)
            return int(spark.read.parquet(output).count())
        return _one_file(pieces, output, count.matcher, ", ".join(map(os.path.basename, paths)))
    except InputError:
        raise
    except Exception as error:
        raise in_one_line(error) from error


def _one_file(pieces: Callable[[str], list[Path]], output: str, matcher: Matcher, name: str) -> int:
    """What the workers write into a folder, in its order, as one file."""
    beside = Path(output).resolve().parent
    with reading(beside), tempfile.TemporaryDirectory(prefix=".evenrank-spark-", dir=beside) as folder:
        written = pieces(folder)

        def batches() -> Iterator[pa.RecordBatch]:
            for piece in written:
                if piece.suffix == ".parquet":
                    yield from pq.ParquetFile(piece).iter_batches()
                else:
                    with pa.memory_map(str(piece)) as source:
                        yield from pa.ipc.open_stream(source)

        def blocks() -> Iterator[Block]:
            return (Block(partial(_bare, batch), 0) for batch in batches())

        rows = unique(batches(), Docs(name, blocks))
        known = facts(matcher) | {"input": {"name": name}}
        return int(write_tally(output, rows, tally_columns(matcher.groups), known)["documents"])


def _bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Documents without text, of which only the ids are looked at."""
    return batch_of(batch.column("doc_id"), pa.array([""] * len(batch)))


def _whole(cells: Any, columns: list[int], expected: str) -> Any:
    """The cells of a line, if they are as many as there should be."""
    from pyspark.sql import functions as f

    said = f.concat(f.lit(f"InputError: {expected}, but a line is: "), f.substring("value", 1, 80))
    return f.when(f.size(cells).isin(columns), cells).otherwise(f.raise_error(said))
