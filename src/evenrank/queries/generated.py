"""Generated queries: their table and file, the filters that drop useless ones, and how real they look."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash

from evenrank.data.files import fingerprint, format_suffix, make_folder, refuse_input, writing
from evenrank.data.read import is_path, read_qrels, read_queries, read_table
from evenrank.data.schema import DOC_ID, QUERY_ID, QUERY_TEXT, show
from evenrank.errors import InputError, check_whole
from evenrank.rankers.analysis import split
from evenrank.rankers.index import Index

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "text": pl.String}
ROUND_TRIP_DEPTH = 10
"""How many results are searched for a query's own document."""


@dataclass(frozen=True, eq=False)
class Generated:
    """Generated queries.

    Attributes
    ----------
    queries
        ``query_id, doc_id, text``: the query, and the document it was generated from. Ids begin with
        ``gen-``, those of extracted queries with ``ext-``.
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

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a TSV file with a header, and next to it, as JSON, how the queries were generated."""
        check_output(path)
        for name in SCHEMA:
            refuse_tabs(self.queries[name])
        with writing(path) as file:
            file.write(self.queries.write_csv(separator="\t", quote_style="never").encode())
        content = {
            "queries": len(self.queries),
            "documents": self.queries["doc_id"].n_unique(),
            "left_out": self.left_out,
            "provenance": self.provenance,
            "file": fingerprint(path),
        }
        with writing(beside(path)) as file:
            file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def beside(path: str | os.PathLike[str]) -> Path:
    """The path of the JSON file that says how the queries of a TSV file were generated."""
    return Path(path).with_suffix(".json")


def check_output(path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse a path that is a folder, does not end in .tsv, or would replace an input."""
    if Path(path).is_dir():
        raise InputError("this is a folder; name a file", path=path)
    if format_suffix(path) != ".tsv" or Path(path).suffix != ".tsv":
        raise InputError("generated queries are TSV; end the name in .tsv", path=path)
    make_folder(Path(path).parent)
    for each in (Path(path), beside(path)):
        refuse_input(each, *inputs, what="the generated queries")


def refuse_tabs(column: pl.Series) -> None:
    """Refuse values that would break the lines of a TSV file."""
    refuse_holding(column, r"[\t\r\n]", "a tab or a line end, which TSV cannot hold")


def refuse_holding(column: pl.Series, pattern: str, problem: str) -> None:
    """Refuse values that match the pattern; the error shows the first one."""
    bad = column.filter(column.str.contains(pattern))
    if len(bad):
        raise InputError(f"{column.name} {show(bad[0])} has {problem}; change it in the input")


def stable_hash(seed: int, *ids: str) -> int:
    """A 64-bit number that depends on the seed and the ids only."""
    return xxhash.xxh3_64_intdigest("\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass"))


def document_rng(seed: int, doc_id: str, *more: int) -> np.random.Generator:
    """The random numbers of one document, whatever else is generated."""
    own = xxhash.xxh3_64_intdigest(doc_id.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed, own, *more])


def read_generated(x: Any) -> Generated:
    """Read generated queries: a file that `Generated.write` wrote, a frame with its columns, or an object."""
    if isinstance(x, Generated):
        return x
    names = {"query_id": QUERY_ID[:3], "doc_id": DOC_ID[:3], "text": QUERY_TEXT[:2]}
    table = read_table(x, names)
    frame = pl.DataFrame([table.ids("query_id"), table.ids("doc_id"), table.texts("text")])
    table.require_unique("query_id")
    if frame.is_empty():
        raise table.error("there are no generated queries")
    facts = _read_facts(x) if is_path(x) else {}
    return Generated(frame, dict(facts.get("left_out", {})), dict(facts.get("provenance", {})))


def _read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON next to a file of queries, or nothing if it belongs to another file."""
    try:
        facts = json.loads(beside(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) and facts.get("file") == fingerprint(path) else {}


def filter_generated(
    generated: Any,
    index: Index | None = None,
    *,
    words: tuple[int, int] = (3, 30),
    top: int | None = None,
    answerable: float | None = None,
) -> Generated:
    """Leave out generated queries that are too short or long, repeat others, or miss their document.

    The filters are applied in the order of the parameters, repeats after `words`. A query is counted under
    the first filter that it fails.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    index
        An index of the collection, for `top` and `answerable`.
    words
        Minimum and maximum number of words in a query.
    top
        Round trip: BM25 must return the query's document among its first `top` results.
    answerable
        The share of the query's terms (stop words and endings aside) that its document must contain.
    """
    source = read_generated(generated)
    check_words(words)
    frame, left_out, reasons = source.queries, dict(source.left_out), []
    if top is not None:
        check_whole("top", top)
    if answerable is not None and not 0 <= answerable <= 1:
        raise InputError(f"answerable is {answerable!r}; it must be a number from 0 to 1")

    def keep(reason: str, rows: Sequence[bool]) -> None:
        nonlocal frame
        kept = pl.Series(rows, dtype=pl.Boolean)
        reasons.append(reason)
        if dropped := int((~kept).sum()):
            left_out[reason] = left_out.get(reason, 0) + dropped
        frame = frame.filter(kept)

    if top is not None or answerable is not None:
        if index is None:
            raise InputError("top and answerable look at documents; give an index of the collection")
        refuse_other_index(frame["doc_id"], index)
    lengths = [len(text.split()) for text in frame["text"].to_list()]
    reason = f"fewer than {words[0]} or more than {words[1]} words"
    keep(reason, [words[0] <= length <= words[1] for length in lengths])
    plain = pl.Series([_plain(text) for text in frame["text"].to_list()], dtype=pl.String)
    keep("say the same as another", plain.is_first_distinct().to_list())
    if index is not None and top is not None and len(frame):
        ranks = own_ranks(frame, index, top)
        in_top = [ranks[query] > 0 for query in frame["query_id"].to_list()]
        keep(f"do not find their document among the first {top}", in_top)
    if index is not None and answerable is not None:
        reason = f"share less than {answerable:g} of their terms with their document"
        keep(reason, [share >= answerable for share in _shared_terms(frame, index)])
    provenance = {**source.provenance, "filters": reasons}
    return replace(source, queries=frame, left_out=left_out, provenance=provenance)


def check_words(words: tuple[int, int]) -> None:
    """Refuse limits of a query's length that no query can meet."""
    if not 0 <= words[0] <= words[1]:
        raise InputError(f"at least {words[0]} and at most {words[1]} words: no query can have both")


def _plain(text: str) -> str:
    """The words of a query without case, blanks and punctuation."""
    return " ".join(split(text))


def _shared_terms(frame: pl.DataFrame, index: Index) -> list[float]:
    texts = index.docs.texts(frame["doc_id"].unique().to_list())
    terms = {doc_id: set(index.analyzer.terms(text)) for doc_id, text in texts.items()}
    pairs = frame.select("doc_id", "text").iter_rows()
    return [_overlap(index.analyzer.terms(text), terms.get(doc_id, set())) for doc_id, text in pairs]


@dataclass(frozen=True)
class QueryStats:
    """Statistics of a set of queries.

    Attributes
    ----------
    queries
        How many there are.
    round_trip
        Mean of 1/rank of the query's own document among the first ten of BM25, 0 where it is not there: 1 if
        every query returns its document first.
    overlap
        Mean share of a query's words that its document contains.
    length
        Mean number of words.
    distance
        Jensen–Shannon distance of its words to those of the real queries, from 0 (the same shares) to 1 (none
        in common). It falls with the number of queries: for the real ones it is that of one half to the
        other, a floor for as many. See `Closeness.compared`.
    """

    queries: int
    round_trip: float
    overlap: float
    length: float
    distance: float | None


@dataclass(frozen=True)
class Closeness:
    """Generated queries beside real ones; aim for the values of real queries, higher is not better.

    Attributes
    ----------
    real
        None where no real queries were given.
    compared
        How many queries, generated and real, each distance is computed on; None without real ones.
    outside
        How many real queries are left out, because none of their documents is in the collection.
    """

    generated: QueryStats
    real: QueryStats | None
    compared: int | None = None
    outside: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def closeness(
    generated: Any, index: Index, *, queries: Any = None, qrels: Any = None, seed: int = 0
) -> Closeness:
    """How generated queries compare with real ones of the same collection.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    index
        An index of the collection.
    queries, qrels
        Real queries and their judgments.
    seed
        Splits the real queries in halves, and draws as many generated ones as real ones of the first half,
        for the distance to the second.
    """
    own = read_generated(generated).queries.select("query_id", "doc_id", "text")
    refuse_other_index(own["doc_id"], index)
    if queries is None or qrels is None:
        return Closeness(_stats(own, index, None), None)
    every = relevant_pairs(queries, qrels)
    real = every.filter(pl.Series(index.numbers(every["doc_id"].to_list()) >= 0))
    outside = every["query_id"].n_unique() - real["query_id"].n_unique()
    if real["query_id"].n_unique() < 2:
        raise InputError("fewer than two real queries have a relevant document in the index")
    texts = real.unique("query_id", maintain_order=True)["text"].to_list()
    order = np.random.default_rng(seed).permutation(len(texts))
    first, second = ([texts[row] for row in half] for half in np.array_split(order, 2))
    drawn = own["text"].to_list()
    count = min(len(first), len(drawn))
    rows = np.random.default_rng([seed, 1]).permutation(len(drawn))[:count]
    distances = (distance([drawn[row] for row in rows], second), distance(first[:count], second))
    return Closeness(_stats(own, index, distances[0]), _stats(real, index, distances[1]), count, outside)


def refuse_other_index(doc_ids: pl.Series, index: Index) -> None:
    """Refuse an index of another collection: one that lacks documents of generated queries."""
    named = doc_ids.unique(maintain_order=True).to_list()
    missing = [named[row] for row in np.flatnonzero(index.numbers(named) < 0)]
    if missing:
        raise InputError(
            f"the index lacks {len(missing):,} of the {len(named):,} documents of the generated queries, "
            f"such as {missing[0]!r}; give an index of the same collection",
            path=index.path,
        )


def relevant_pairs(queries: Any, qrels: Any) -> pl.DataFrame:
    """Queries with each of their relevant documents: ``query_id, doc_id, text``."""
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0)
    pairs = judged.join(read_queries(queries), on="query_id", maintain_order="left")
    return pairs.select("query_id", "doc_id", "text")


def _stats(pairs: pl.DataFrame, index: Index, away: float | None) -> QueryStats:
    unique = pairs.unique("query_id", maintain_order=True)
    texts = index.docs.texts(pairs["doc_id"].unique().to_list())
    overlaps = [_overlap(split(text), set(split(texts[doc_id]))) for _, doc_id, text in pairs.iter_rows()]
    ranks = own_ranks(pairs, index, ROUND_TRIP_DEPTH)
    return QueryStats(
        queries=len(unique),
        round_trip=float(np.mean([1 / rank if rank else 0.0 for rank in ranks.values()])),
        overlap=float(np.mean(overlaps)),
        length=float(np.mean([len(text.split()) for text in unique["text"].to_list()])),
        distance=away,
    )


def _overlap(words: Sequence[str], document: set[str]) -> float:
    """The share of the words that the document contains; 0 of no words."""
    return sum(word in document for word in words) / len(words) if words else 0.0


def own_ranks(pairs: pl.DataFrame, index: Index, depth: int) -> dict[str, int]:
    """For each query the best rank of one of its documents among the first `depth` of BM25; 0 if none."""
    from evenrank.rankers.registry import search

    queries = pairs.unique("query_id", maintain_order=True).select("query_id", "text")
    run = search(index, queries, depth=depth)
    own = run.join(pairs.select("query_id", "doc_id"), on=["query_id", "doc_id"])
    best = dict(own.group_by("query_id").agg(pl.col("rank").min()).iter_rows())
    return {query: int(best.get(query, 0)) for query in queries["query_id"].to_list()}


def distance(these: Iterable[str], those: Iterable[str]) -> float:
    """Jensen–Shannon distance between the words of two sets of texts: √JSD, logarithms to base 2.

    >>> distance(["a b"], ["a b"]), distance(["a"], ["b"])
    (0.0, 1.0)
    """
    counts = [Counter(word for text in texts for word in split(text)) for texts in (these, those)]
    if not all(counts):
        raise InputError("there are no words to compare")
    from scipy.spatial.distance import jensenshannon

    words = sorted(counts[0].keys() | counts[1].keys())
    p, q = (np.array([each[word] for word in words], float) / each.total() for each in counts)
    return float(min(1.0, np.nan_to_num(jensenshannon(p, q, base=2))))
