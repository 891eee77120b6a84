"""Generated queries: their table and file, the filters that drop useless ones, and how real they look."""

from __future__ import annotations

import json
import math
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
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, QUERY_ID, QUERY_TEXT, show
from evenrank.errors import InputError, check_whole, is_whole
from evenrank.rankers.analysis import split
from evenrank.rankers.index import Index

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "text": pl.String}
ROUND_TRIP_DEPTH = 10
"""How far down a query's own document is looked for."""


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
        """Write a TSV file with a header, and beside it how the queries were made (``.json``)."""
        check_output(path)
        for name in SCHEMA:
            refuse_tabs(self.queries[name])
        with writing(path) as file:
            file.write(self.queries.write_csv(separator="\t", quote_style="never").encode())
        with writing(beside(path)) as file:
            content = {**self.report(), "file": fingerprint(path)}
            file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def beside(path: str | os.PathLike[str]) -> Path:
    """The file that says how the queries of another one were made."""
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


def stable_hash(seed: int, *ids: str) -> int:
    """A number that only seed and ids decide."""
    return xxhash.xxh3_64_intdigest("\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass"))


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
    facts: dict[str, Any] = {}
    if is_path(x) and beside(x).is_file():
        try:
            facts = dict(json.loads(beside(x).read_bytes()))
        except (ValueError, TypeError):  # not ours
            facts = {}
        if facts.get("file") != fingerprint(x):  # `a.tsv` and `a.tsv.gz` have the same one beside them
            facts = {}
    return Generated(frame, dict(facts.get("left_out", {})), dict(facts.get("provenance", {})))


def filter_generated(
    generated: Any,
    index: Index | None = None,
    *,
    words: tuple[int, int] | None = (3, 30),
    repeats: bool = False,
    known: Any = None,
    top: int | None = None,
    answerable: float | None = None,
    reranker: Any = None,
    min_score: float | None = None,
) -> Generated:
    """Leave out generated queries that are too short or long, repeat others, or miss their document.

    The filters are applied in the order of the parameters. A query is counted under the first filter that it
    fails.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    index
        An index of the collection, for `top`, `answerable` and `reranker`.
    words
        Minimum and maximum number of words in a query.
    repeats
        Keep queries that repeat an earlier one.
    known
        Real queries, such as those of a test set: a generated query that repeats one of them is dropped.
    top
        Round trip: BM25 must find the query's document among its first `top` results.
    answerable
        The share of the query's terms (stop words and endings aside) that its document must have.
    reranker, min_score
        A re-ranker, as :func:`evenrank.rerank` takes it, for one a cross-encoder, and the score that it has
        to give the query with its document.
    """
    built = read_generated(generated)
    check_filters(words, reranker, min_score, top=top, answerable=answerable)
    frame, left_out, reasons = built.queries, dict(built.left_out), []
    looks_at_documents = top is not None or answerable is not None or reranker is not None
    if index is None and looks_at_documents:
        raise InputError("top, answerable and reranker look at documents; give an index of the collection")
    if index is not None and looks_at_documents:
        refuse_other_index(frame["doc_id"], index)

    def keep(reason: str, rows: Sequence[bool]) -> None:
        nonlocal frame
        kept = pl.Series(rows, dtype=pl.Boolean)
        reasons.append(reason)
        if gone := int((~kept).sum()):
            left_out[reason] = left_out.get(reason, 0) + gone
        frame = frame.filter(kept)

    if words is not None:
        lengths = [len(text.split()) for text in frame["text"].to_list()]
        reason = f"fewer than {words[0]} or more than {words[1]} words"
        keep(reason, [words[0] <= length <= words[1] for length in lengths])
    if not repeats:
        plain = pl.Series([_plain(text) for text in frame["text"].to_list()], dtype=pl.String)
        keep("say the same as another", plain.is_first_distinct().to_list())
    if known is not None:
        real = {_plain(text) for text in read_queries(known)["text"].to_list()}
        keep("say the same as a real query", [_plain(text) not in real for text in frame["text"].to_list()])
    if index is not None and top is not None and len(frame):
        ranks = own_ranks(frame, index, top)
        found = [ranks[query] > 0 for query in frame["query_id"].to_list()]
        keep(f"do not find their document among the first {top}", found)
    if index is not None and answerable is not None:
        reason = f"share less than {answerable:g} of their terms with their document"
        keep(reason, [share >= answerable for share in _shared_terms(frame, index)])
    if index is not None and min_score is not None and len(frame):
        good = _scored_queries(frame, index, reranker, min_score)
        reason = f"score below {min_score:g} with their document"
        keep(reason, [query in good for query in frame["query_id"].to_list()])
    return replace(
        built, queries=frame, left_out=left_out, provenance={**built.provenance, "filters": reasons}
    )


def check_filters(
    words: tuple[int, int] | None,
    reranker: Any,
    min_score: float | None,
    *,
    top: int | None = None,
    answerable: float | None = None,
) -> None:
    """Refuse filters that cannot be used; this needs no queries, so it can come before them."""
    if (reranker is None) != (min_score is None):
        raise InputError("a reranker needs a least score, and that a reranker: give both or neither")
    if min_score is not None and not math.isfinite(min_score):
        raise InputError(f"the least score is {min_score}; it must be a finite number")
    if top is not None:
        check_whole("top", top)
    if answerable is not None and not 0 <= answerable <= 1:
        raise InputError(f"answerable is {answerable!r}; it must be a number from 0 to 1")
    if words is None:
        return
    if not isinstance(words, (tuple, list)) or len(words) != 2 or not all(map(is_whole, words)):
        raise InputError(f"words is {words!r}; give two whole numbers, the least and the greatest, or None")
    if not 0 <= words[0] <= words[1]:
        raise InputError(
            f"at least {words[0]} and at most {words[1]} words: the least number is from 0 on, and not above "
            "the greatest"
        )


def _plain(text: str) -> str:
    """What a query says, whatever its case, blanks and marks."""
    return " ".join(split(text))


def _shared_terms(frame: pl.DataFrame, index: Index) -> list[float]:
    texts = index.docs.texts(frame["doc_id"].unique().to_list())
    terms = {doc_id: set(index.analyzer.terms(text)) for doc_id, text in texts.items()}
    pairs = frame.select("doc_id", "text").iter_rows()
    return [_overlap(index.analyzer.terms(text), terms.get(doc_id, set())) for doc_id, text in pairs]


def _scored_queries(frame: pl.DataFrame, index: Index, reranker: Any, least: float) -> set[str]:
    """The queries to which a re-ranker gives at least this score with their document."""
    from evenrank.rankers.neural.candidates import candidates
    from evenrank.rankers.neural.reranking import make_reranker, refuse_training_queries

    queries = frame.select("query_id", "text")
    run = read_run(frame.select("query_id", "doc_id", score=pl.lit(0.0)))
    pairs = candidates(run, index.docs, queries)
    model = make_reranker(reranker)
    refuse_training_queries(model, queries)
    scores = np.asarray(model.score(pairs))
    return {pairs.query_ids[row] for row in pairs.query[scores >= least]}


@dataclass(frozen=True)
class QueryStats:
    """What a set of queries is like.

    Attributes
    ----------
    queries
        How many there are.
    round_trip
        Mean of 1/rank of the query's own document among the first ten of BM25, 0 where it is not there: 1 if
        every query finds its document first.
    overlap
        Mean share of a query's words that its document has.
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
        Real queries, and which documents they ask for.
    seed
        Splits the real queries in halves, and draws as many generated ones as real ones of the first half,
        for the distance to the second.
    """
    own = read_generated(generated).queries.select("query_id", "doc_id", "text")
    refuse_other_index(own["doc_id"], index)
    if queries is None or qrels is None:
        return Closeness(_stats(own, index, None), None)
    every = real_pairs(queries, qrels)
    real = every.filter(pl.Series(index.numbers(every["doc_id"].to_list()) >= 0))
    outside = every["query_id"].n_unique() - real["query_id"].n_unique()
    if real["query_id"].n_unique() < 2:
        raise InputError("no two real queries have a document in the index; do they belong together?")
    texts = real.unique("query_id", maintain_order=True)["text"].to_list()
    order = np.random.default_rng(seed).permutation(len(texts))
    first, second = ([texts[row] for row in half] for half in np.array_split(order, 2))
    drawn = own["text"].to_list()
    count = min(len(first), len(drawn))
    rows = np.random.default_rng([seed, 1]).permutation(len(drawn))[:count]
    distances = (distance([drawn[row] for row in rows], second), distance(first[:count], second))
    return Closeness(_stats(own, index, distances[0]), _stats(real, index, distances[1]), count, outside)


def refuse_other_index(doc_ids: pl.Series, index: Index) -> None:
    """Refuse an index that lacks documents of generated queries: it is of another collection."""
    named = doc_ids.unique(maintain_order=True).to_list()
    lacking = [named[row] for row in np.flatnonzero(index.numbers(named) < 0)]
    if lacking:
        raise InputError(
            f"the index lacks {len(lacking):,} of the {len(named):,} documents that queries are made of, "
            f"such as {lacking[0]!r}; give an index of the same collection",
            path=index.path,
        )


def relevant_pairs(queries: Any, qrels: Any) -> pl.DataFrame:
    """Queries with each of their relevant documents: ``query_id, doc_id, text``."""
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0)
    pairs = judged.join(read_queries(queries), on="query_id", maintain_order="left")
    return pairs.select("query_id", "doc_id", "text")


def real_pairs(queries: Any, qrels: Any) -> pl.DataFrame:
    """The same of real queries; fewer than two of them are an error."""
    real = relevant_pairs(queries, qrels)
    if real["query_id"].n_unique() < 2:
        raise InputError("there are not two real queries with a relevant document; do the ids agree?")
    return real


def _stats(pairs: pl.DataFrame, index: Index, away: float | None) -> QueryStats:
    once = pairs.unique("query_id", maintain_order=True)
    texts = index.docs.texts(pairs["doc_id"].unique().to_list())
    overlaps = [_overlap(split(text), set(split(texts[doc_id]))) for _, doc_id, text in pairs.iter_rows()]
    ranks = own_ranks(pairs, index, ROUND_TRIP_DEPTH)
    return QueryStats(
        queries=len(once),
        round_trip=float(np.mean([1 / rank if rank else 0.0 for rank in ranks.values()])),
        overlap=float(np.mean(overlaps)),
        length=float(np.mean([len(text.split()) for text in once["text"].to_list()])),
        distance=away,
    )


def _overlap(words: Sequence[str], document: set[str]) -> float:
    """The share of the words that the document has; 0 of no words."""
    return sum(word in document for word in words) / len(words) if words else 0.0


def own_ranks(pairs: pl.DataFrame, index: Index, depth: int) -> dict[str, int]:
    """For each query the best rank of a document of its own among the first so many of BM25; 0 if none."""
    from evenrank.rankers.registry import search

    queries = pairs.unique("query_id", maintain_order=True).select("query_id", "text")
    run = search(index, queries, depth=depth)
    good = run.join(pairs.select("query_id", "doc_id"), on=["query_id", "doc_id"])
    best = dict(good.group_by("query_id").agg(pl.col("rank").min()).iter_rows())
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
