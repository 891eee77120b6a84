"""What a ranker learns from: relevant documents, and those a first stage has put beside them.

The same examples with the other gender: `augmented` shows each training query a second time with all texts
mirrored, so that what is learned of one gender is learned of the other (counterfactual data augmentation: Lu
et al. 2018, Zhao et al. 2018). `twinned` gives each candidate a twin, the mirrored document, for a loss on
the difference of their scores: \\|s(q, d) − s(q, mirrored d)\\| is 0 for a ranker that does not look at the
gender of a document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.read import fingerprint, path_of, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.mitigate.negatives import negative_pairs
from evenrank.mitigate.swap import swapper
from evenrank.rankers.base import Say
from evenrank.rankers.neural.candidates import Candidates, candidates
from evenrank.show.numbers import counted
from evenrank.stats.rounding import round_significant

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Scores = Callable[[pl.DataFrame], pl.DataFrame]
"""First-stage scores of pairs ``query_id, doc_id``, as a third column; null where they are not known."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Candidates of the training and the dev queries, and which of them are relevant.

    Attributes
    ----------
    pairs
        All pairs; those of a query follow one another.
    relevant
        Whether each pair is judged relevant.
    is_candidate
        Whether each is among the first-stage candidates. A relevant document that is not was added, with
        the score that the first stage gives it.
    is_negative
        Whether each may stand against a relevant document of its query.
    dev
        Whether the query of each row is held out, for early stopping.
    left_out
        Why queries or documents are not used, and how many.
    bias
        How one-sided the document of each pair is, from 0 to 1, for losses that look at it.
    twin
        For each pair the row of its twin, the same query with the mirrored document; −1 if it has none.
    adversary_labels
        The class that an adversary predicts for each pair, from 0 on.
    """

    pairs: Candidates
    relevant: Flags
    is_candidate: Flags
    is_negative: Flags
    dev: Flags
    left_out: dict[str, int]
    bias: npt.NDArray[np.float32] | None = None
    twin: Ints | None = None
    adversary_labels: Ints | None = None

    def groups(self) -> tuple[list[int], list[Ints]]:
        """The relevant pairs of training queries, and for each the rows of what can stand against it."""
        positives: list[int] = []
        negatives: list[Ints] = []
        queries = self.pairs.query
        for rows in np.split(np.arange(len(queries)), np.flatnonzero(np.diff(queries)) + 1):
            if self.dev[self.pairs.query[rows[0]]]:
                continue
            good = rows[self.relevant[rows]]
            against = rows[self.is_negative[rows]]
            if len(against):
                positives += good.tolist()
                negatives += [against] * len(good)
        return positives, negatives

    @property
    def dev_is_apart(self) -> bool:
        """Whether no document is relevant to a dev query and to a training query."""
        held_out = self.dev[self.pairs.query]
        mine = self.pairs.document[self.relevant & held_out]
        return not np.isin(mine, self.pairs.document[self.relevant & ~held_out]).any()

    def queries_of(self, rows: Iterable[int]) -> int:
        """How many queries these pairs are of; a mirrored copy is no other query."""
        places = np.unique(self.pairs.query[np.fromiter(rows, np.int64)])
        return len({self.pairs.query_ids[each].removesuffix(MARK) for each in places})

    def own_pairs(self) -> Flags:
        """Whether query and document of each pair are as they were given, not mirrored."""
        query, document = unmirrored(self.pairs.query_ids), unmirrored(self.pairs.doc_ids)
        return query[self.pairs.query] & document[self.pairs.document]

    def learned_texts(self, *, mirrored: bool) -> tuple[list[str], list[str]]:
        """The documents and the training queries: those that were given, or the mirrored ones."""
        texts = zip(self.pairs.documents, unmirrored(self.pairs.doc_ids), strict=True)
        requested = zip(self.pairs.queries, unmirrored(self.pairs.query_ids), self.dev, strict=True)
        documents = [text for text, given in texts if given != mirrored]
        return documents, [text for text, given, dev in requested if given != mirrored and not dev]

    def left_out_messages(self) -> list[str]:
        """Why queries or documents are not used, and how many: `1 query without negatives`."""
        return [
            counted(count, reason.replace("queries", "query").replace("documents", "document"), reason)
            for reason, count in self.left_out.items()
        ]

    def dev_rows(self, depth: int | None = None) -> Ints:
        """The candidates of the dev queries, as a re-ranker would get them; the first so many of each."""
        rows: Ints = np.flatnonzero(self.dev[self.pairs.query] & self.is_candidate)
        if depth is None:
            return rows
        order = rows[np.lexsort((-self.pairs.first[rows], self.pairs.query[rows]))]
        kept: Ints = np.sort(order[_places_in_query(self.pairs.query[order]) < depth])
        return kept

    def rr(self, rows: Ints, scores: npt.NDArray[Any]) -> float:
        """RR@10 of these pairs in the order of their scores; a dev query without a relevant one counts 0."""
        order = np.lexsort(
            (-self._id_ranks()[self.pairs.document[rows]], -round_significant(scores), self.pairs.query[rows])
        )
        ranked = rows[order]
        queries = self.pairs.query[ranked]
        places = _places_in_query(queries)
        hits = np.flatnonzero(self.relevant[ranked] & (places < 10))
        _, first = np.unique(queries[hits], return_index=True)
        total = int(self.dev.sum())
        return float((1 / (places[hits[first]] + 1)).sum() / total) if total else 0.0

    def _id_ranks(self) -> Ints:
        order = np.argsort(np.array(self.pairs.doc_ids, dtype=object))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return ranks


def _places_in_query(queries: Ints) -> Ints:
    """The place of each row, from 0 on, among those of its query, which follow one another."""
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    return np.arange(len(queries)) - np.repeat(starts, np.diff(np.r_[starts, len(queries)]))


class Prepared(NamedTuple):
    """Training data, and where it comes from; of negatives that were named, which."""

    examples: Examples
    first_stage: dict[str, Any]
    collection: dict[str, Any]
    negatives: dict[str, Any] | None = None


def prepared(
    docs: Any,
    queries: Any,
    qrels: Any,
    *,
    run: Any = None,
    index: Index | None = None,
    negatives: Any = None,
    depth: int = 100,
    dev_share: float = 0.1,
    dev_most: int = 300,
    seed: int = 0,
    say: Say = lambda text: None,
) -> Prepared:
    """The training data of :func:`train_ranker`, to train several rankers on the same."""
    collection, requested, judged = open_docs(docs), read_queries(queries), read_qrels(qrels)
    if index is not None and index.provenance["input"]["fingerprint"] != collection.fingerprint():
        say("the index is of another file or table than is given: it finds and scores by its own texts")
    deep = depth if negatives is None else max(depth, 1000)  # the scores of what is named are asked for
    named = None if negatives is None else negative_pairs(negatives)
    first, scores, stage = _first_stage(collection, requested, judged, run, index, deep, say)
    result = make_examples(
        first,
        collection,
        requested,
        judged,
        depth=depth,
        dev_share=dev_share,
        dev_most=dev_most,
        seed=seed,
        scores=scores,
        negatives=named,
        negatives_path=path_of(negatives),
    )
    for each in result.left_out_messages():
        say(f"left out: {each}")
    of_named = None if named is None else _negative_facts(named, path_of(negatives))
    return Prepared(result, stage, collection.describe(), of_named)


def _negative_facts(pairs: pl.DataFrame, path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """What to know of named negatives later: how many there are, from which file, and their fingerprint."""
    result = {"queries": pairs["query_id"].n_unique(), "pairs": len(pairs)}
    file = {} if path is None else {"file": Path(path).name}
    return {**result, **file, "fingerprint": fingerprint([pairs.select("query_id", "doc_id")])}


def _first_stage(
    docs: Any, requested: pl.DataFrame, judged: pl.DataFrame, run: Any, index: Any, depth: int, say: Say
) -> tuple[Any, Scores | None, dict[str, Any]]:
    """The run, where to ask for the scores of other pairs, and its provenance."""
    if run is not None:
        name = Path(run).name if isinstance(run, (str, os.PathLike)) else "run"
        return read_run(run), None, {"run": name}
    from evenrank.rankers.indexing import cached_index
    from evenrank.rankers.lexical import bm25 as make_bm25

    searched = cached_index(docs, say) if index is None else index
    bm25 = make_bm25(searched)
    relevant = judged.filter(pl.col("relevance") > 0).select("query_id")
    used = requested.join(relevant, on="query_id", how="semi", maintain_order="left")
    if used.is_empty():
        raise InputError("no query has a relevant document; do the ids of queries and qrels agree?")

    described = {key: bm25.describe()[key] for key in ("name", "settings")}
    result = bm25.rank(used, depth=depth)
    if result.is_empty():
        raise InputError(
            "nothing is found for any query; do index and queries belong together?", path=searched.path
        )
    return result, partial(bm25.scores, requested), described


def make_examples(
    run: Any,
    docs: Any,
    queries: Any,
    qrels: Any,
    *,
    depth: int = 100,
    dev_share: float = 0.1,
    dev_most: int = 500,
    seed: int = 0,
    scores: Scores | None = None,
    negatives: pl.DataFrame | None = None,
    negatives_path: Any = None,
) -> Examples:
    """Training data out of a first-stage run.

    Parameters
    ----------
    run
        The first stage. Its documents that are not judged relevant are the negatives.
    docs, queries, qrels
        The collection. Queries without a relevant document are not used.
    depth
        Candidates of each query.
    dev_share, dev_most, seed
        The share of queries that are held out, at most so many; the seed draws them.
    scores
        Where to get the first-stage score of a relevant document that the run lacks. A 0 in its place would
        teach that relevant documents have low scores. Without it, such documents are left out, and counted.
    negatives, negatives_path
        Pairs ``query_id, doc_id, line`` to learn against, instead of the candidates of training queries, and
        the file that they were read from, for messages.
    """
    requested, judged = read_queries(queries), read_qrels(qrels)
    good = judged.filter(pl.col("relevance") > 0).select("query_id", "doc_id")
    good = good.join(requested.select("query_id"), on="query_id", how="semi")
    answered = good["query_id"].n_unique()
    whole = read_run(run).join(good, on="query_id", how="semi", maintain_order="left")
    if good.is_empty():
        raise InputError("no query has a relevant document; do the ids of queries and qrels agree?")
    if whole.is_empty():
        raise InputError("the run has no candidates for the queries; do their ids agree?")
    listed = whole.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    if negatives is not None:
        negatives = negatives.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        negatives = negatives.join(good, on="query_id", how="semi", maintain_order="left")
        if negatives.is_empty():
            raise InputError(
                "names negatives for no training query that has a relevant document; do the ids agree?",
                path=negatives_path,
            )
    wanted = [good["doc_id"], *([] if negatives is None else [negatives["doc_id"]])]
    known = set(open_docs(docs).texts(pl.concat(wanted).unique().to_list()))
    absent = good.filter(~pl.col("doc_id").is_in(list(known)))
    good = good.filter(pl.col("doc_id").is_in(list(known)))
    outside, unscored = _outside(good, listed, whole, scores)
    extra = None
    if negatives is not None:
        extra = _named_negatives(
            negatives, good, known, partial(_outside, negatives, listed, whole, scores), negatives_path
        )
    left_out = {
        "queries without a relevant document": len(requested) - answered,
        "relevant documents that the collection lacks": len(absent),
        "relevant documents whose first-stage score is not known": len(unscored),
    }
    parts = [listed.with_columns(listed=pl.lit(True)), outside.with_columns(listed=pl.lit(False))]
    table = pl.concat([*parts, *([] if extra is None else [extra])])
    table = table.join(good.with_columns(relevant=pl.lit(True)), on=["query_id", "doc_id"], how="left")
    table = table.with_columns(pl.col("relevant").fill_null(False)).sort("query_id", maintain_order=True)
    order = read_run(table.select("query_id", "doc_id", "score"))
    both = ["query_id", "doc_id"]
    flags = order.join(table.select(*both, "relevant", "listed"), on=both, how="left", maintain_order="left")
    pairs = candidates(order, docs, requested)
    against = ~flags["relevant"].to_numpy()
    if negatives is not None:
        these = negatives.select(*both, named=True)
        named = order.join(these, on=both, how="left", maintain_order="left")
        against &= named["named"].fill_null(False).to_numpy()
    dev = _dev_queries(pairs.query_ids, good, dev_share, dev_most, seed)
    answered_by, opposed = (np.unique(pairs.query[each]) for each in (flags["relevant"].to_numpy(), against))
    left_out["queries without negatives"] = len(np.setdiff1d(answered_by[~dev[answered_by]], opposed))
    return Examples(
        pairs,
        flags["relevant"].to_numpy(),
        flags["listed"].to_numpy(),
        against,
        dev,
        {reason: count for reason, count in left_out.items() if count},
    )


def _outside(
    good: pl.DataFrame, listed: pl.DataFrame, whole: pl.DataFrame, scores: Scores | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Relevant documents that are no candidates, with their first-stage scores; and those that have none."""
    beyond = good.select("query_id", "doc_id")
    beyond = beyond.join(listed, on=["query_id", "doc_id"], how="anti")
    frame = beyond.join(whole.select("query_id", "doc_id", "score"), on=["query_id", "doc_id"], how="left")
    unknown = frame.filter(pl.col("score").is_null()).select("query_id", "doc_id")
    frame = frame.filter(pl.col("score").is_not_null())
    if scores is not None and not unknown.is_empty():
        requested = scores(unknown)
        frame = pl.concat([frame, requested.filter(pl.col("score").is_not_null())])
        unknown = requested.filter(pl.col("score").is_null())
    return frame.select("query_id", "doc_id", pl.col("score").cast(pl.Float64)), unknown


def _named_negatives(
    negatives: pl.DataFrame, good: pl.DataFrame, known: set[str], beyond: Any, path: Any
) -> pl.DataFrame:
    """Negatives that were named, beyond the candidates; what cannot be one is named with its line."""

    def refuse(bad: pl.DataFrame, problem: str, remedy: str) -> None:
        if bad.is_empty():
            return
        first = bad.row(0, named=True)
        named = f"document {first['doc_id']!r} is named as negative of query {first['query_id']!r}"
        several = f" ({len(bad):,} are so)" if len(bad) > 1 else ""
        raise InputError(f"{named}, but {problem}{several}; {remedy}", path=path, line=first.get("line"))

    keys = ["query_id", "doc_id"]
    refuse(
        negatives.join(good, on=keys, how="semi", maintain_order="left"),
        "is relevant to it",
        "leave it out",
    )
    refuse(
        negatives.filter(~pl.col("doc_id").is_in(list(known))),
        "the collection lacks it",
        "check that they belong together",
    )
    result, unknown = beyond()
    refuse(
        negatives.join(unknown, on=keys, how="semi", maintain_order="left"),
        "its first-stage score is not known",
        "give a run that has it",
    )
    return pl.DataFrame(result.with_columns(listed=pl.lit(False)))


def _dev_queries(query_ids: list[str], good: pl.DataFrame, share: float, most: int, seed: int) -> Flags:
    """Which queries are held out: drawn by the seed, whatever the order of the queries.

    Queries with a relevant document in common stay together. Else a model that remembers which documents
    were relevant would look good on the dev queries, and be kept, whatever it does on other ones. Where too
    many have one in common, queries are drawn one by one.
    """
    if not 0 < share < 1:
        raise InputError(f"dev_share is {share:g}; it must be above 0 and below 1")
    count = min(most, max(1, round(share * len(query_ids))))
    if len(query_ids) < 2:
        raise InputError("one query cannot be split into training and dev; give more queries")
    order = np.argsort(np.array(query_ids, dtype=object))
    order = order[np.random.default_rng([seed, 2]).permutation(len(order))]
    component = _connected(query_ids, good)
    sizes = np.bincount(component).tolist()
    chosen: set[int] = set()
    left = count
    for group in dict.fromkeys(component[order].tolist()):
        if sizes[group] <= left:
            chosen.add(group)
            left -= sizes[group]
            if not left:
                break
    if 2 * left > count:
        return np.isin(np.arange(len(query_ids)), order[:count])
    dev: Flags = np.isin(component, list(chosen))
    return dev


def _connected(query_ids: list[str], good: pl.DataFrame) -> Ints:
    """For each query the number of its group: those that relevant documents tie to one another."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = pl.DataFrame({"query_id": query_ids}).with_row_index("query")
    ties = good.join(place, on="query_id").with_columns(document=pl.col("doc_id").rank("dense") - 1)
    rows, columns = ties["query"].to_numpy(), ties["document"].to_numpy() + len(query_ids)
    size = int(columns.max(initial=len(query_ids))) + 1
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), (size, size))
    labels: Ints = connected_components(graph, directed=False)[1][: len(query_ids)]
    return labels


MARK = "~mirrored"
"""What the ids of mirrored queries and documents end in."""


def unmirrored(ids: list[str]) -> Flags:
    """Which ids are of texts as they were given."""
    return np.array([not each.endswith(MARK) for each in ids], bool)


def augmented(examples: Examples, *, lexicon: Any = None) -> Examples:
    """With a mirrored copy of every training query that has a text which its mirroring changes.

    The copies keep judgments and first-stage scores of the originals. Dev queries are not copied.

    Parameters
    ----------
    examples
        The training data.
    lexicon
        The words that the rankings will be measured with, as in :func:`evenrank.swap`.
    """
    pairs = examples.pairs
    queries, mirrored = _mirrors(pairs.queries, lexicon), _Documents(pairs, lexicon)
    changed = np.array([new != old for new, old in zip(queries, pairs.queries, strict=True)], bool)
    touched = np.zeros(len(pairs.queries), bool)
    np.logical_or.at(touched, pairs.query, mirrored.changed[pairs.document])
    copied = np.flatnonzero((changed | touched) & ~examples.dev)
    place = np.full(len(pairs.queries), -1)
    place[copied] = len(pairs.queries) + np.arange(len(copied))
    rows = np.flatnonzero(place[pairs.query] >= 0)
    rows = rows[np.argsort(place[pairs.query[rows]], kind="stable")]
    more = Candidates(
        [*pairs.query_ids, *(pairs.query_ids[i] + MARK for i in copied)],
        [*pairs.queries, *(queries[i] for i in copied)],
        mirrored.doc_ids,
        mirrored.documents,
        np.concatenate([pairs.query, place[pairs.query[rows]]]),
        np.concatenate([pairs.document, mirrored.place[pairs.document[rows]]]),
        np.concatenate([pairs.first, pairs.first[rows]]),
    )
    return replace(
        examples,
        pairs=more,
        relevant=np.concatenate([examples.relevant, examples.relevant[rows]]),
        is_candidate=np.concatenate([examples.is_candidate, examples.is_candidate[rows]]),
        is_negative=np.concatenate([examples.is_negative, examples.is_negative[rows]]),
        dev=np.concatenate([examples.dev, np.zeros(len(copied), bool)]),
        bias=None if examples.bias is None else np.concatenate([examples.bias, examples.bias[rows]]),
    )


def twinned(examples: Examples, *, lexicon: Any = None) -> Examples:
    """With a twin for every candidate of a training query whose document changes when it is mirrored.

    Twins are neither candidates nor negatives: they are only compared with their originals.
    """
    pairs = examples.pairs
    mirrored = _Documents(pairs, lexicon)
    rows = np.flatnonzero(
        mirrored.changed[pairs.document]
        & ~examples.dev[pairs.query]
        & (examples.is_negative | examples.relevant)
    )
    twin = np.full(len(pairs) + len(rows), -1)
    twin[rows] = len(pairs) + np.arange(len(rows))
    order = np.argsort(np.concatenate([pairs.query, pairs.query[rows]]), kind="stable")
    where = np.empty(len(order), np.int64)  # pairs of a query follow one another, twins after all others
    where[order] = np.arange(len(order))
    moved = np.where(twin >= 0, where[twin], -1)[order]

    def arrange(values: Any, of_twins: Any) -> Any:
        return np.concatenate([values, of_twins])[order]

    none = np.zeros(len(rows), bool)
    more = Candidates(
        pairs.query_ids,
        pairs.queries,
        mirrored.doc_ids,
        mirrored.documents,
        arrange(pairs.query, pairs.query[rows]),
        arrange(pairs.document, mirrored.place[pairs.document[rows]]),
        arrange(pairs.first, pairs.first[rows]),
    )
    return replace(
        examples,
        pairs=more,
        relevant=arrange(examples.relevant, none),
        is_candidate=arrange(examples.is_candidate, none),
        is_negative=arrange(examples.is_negative, none),
        bias=None if examples.bias is None else arrange(examples.bias, examples.bias[rows]),
        twin=moved,
    )


class _Documents:
    """The documents and, after them, the mirrors of those that change.

    ``changed`` says which do; ``place`` is where the mirror of each stands, the document itself if it does
    not change.
    """

    changed: Any
    place: Ints

    def __init__(self, pairs: Candidates, lexicon: Any) -> None:
        mirrored = _mirrors(pairs.documents, lexicon)
        self.changed = np.array(
            [new != old for new, old in zip(mirrored, pairs.documents, strict=True)], bool
        )
        new = np.flatnonzero(self.changed)
        self.place = np.arange(len(mirrored))
        self.place[new] = len(mirrored) + np.arange(len(new))
        self.doc_ids = [*pairs.doc_ids, *(pairs.doc_ids[i] + MARK for i in new)]
        self.documents = [*pairs.documents, *(mirrored[i] for i in new)]


def _mirrors(texts: list[str], lexicon: Any) -> list[str]:
    names: list[str] = swapper(lexicon or "rekabsaz2020").texts(texts).texts.to_pylist()
    return names
