"""From ranked lists and their texts to the slope that is GSR.

The collection is read once for all runs and baselines together. Each document that is needed is tokenised
once, and only the vocabulary words in it are kept, never its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.docs import map_in_order
from evenrank.errors import InputError
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import Entries, Fitted, SlopeSummary
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, find_rows, ranked_lists
from evenrank.measures.results import Options

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.measures.inputs import Inputs

POOL = 8192  # documents that random lists are drawn from: a random sample, where the collection has more
DRAWS = 20  # random lists of a query, at most
_TEXTS = 2048  # texts that a thread takes at a time


class Study:
    """Queries and documents, read once for all the runs and measures of one call.

    Attributes
    ----------
    x, relevant
        g(q) of each query, and K_q, how many documents are judged relevant for it; None without judgments.
    doc_ids, words
        The documents that are needed, and the vocabulary words in each.
    lists, absent
        By run, its ranked documents as deep as any measure looks, with their values; and how many of how many
        the collection lacks.
    perfect
        The lists of the perfect engine; None without judgments.
    """

    def __init__(self, inputs: Inputs, measures: Sequence[StereotypeReinforcement], seed: int) -> None:
        queries, qrels = inputs.queries, inputs.qrels
        assert queries is not None  # `Inputs.check` makes sure of it
        self.texts = texts = inputs.gendered_texts(measures[0]["stop_words"])
        self.missing, self.seed = inputs.missing, seed
        self.query_ids, self.query_texts = queries["query_id"], queries["text"].to_list()
        self.x = texts.of_texts(self.query_texts)
        judged = None if qrels is None else _ranked_by_grade(qrels, self.query_ids)
        self.relevant = None if judged is None else np.bincount(judged["owner"], minlength=len(queries))
        depths = np.max([m.depths(self.relevant, len(queries)) for m in measures], axis=0)
        # Where missing documents are skipped, others from further down may move up.
        read = np.full(len(queries), WHOLE_LIST) if self.missing == "skip" else depths
        tops = {name: run.filter(self._down_to(read, run)) for name, run in inputs.runs.items()}
        needed = [*tops.values(), *([] if judged is None else [judged])]
        self._read(
            inputs.docs, [table["doc_id"] for table in needed], max(POOL, 2 * int(depths.max(initial=0)))
        )
        for kind, empty in {"query": np.isnan(self.x).all(), "document": not len(self.words.entries)}.items():
            if empty:
                raise InputError(
                    f"no word of any {kind} has a value in the {len(texts.genderedness):,} words of the "
                    "vectors; give vectors of the same language"
                )
        self.lists, self.absent = {}, {}
        documents = pl.DataFrame({"doc_id": self.doc_ids})
        for name, top in tops.items():
            lists = ranked_lists(top, documents, (), depth=WHOLE_LIST, missing=self.missing, name=name)
            owner = np.repeat(find_rows(lists.query_ids, self.query_ids), lists.lengths)
            self.lists[name] = cut(self._entries(owner, lists.rows, lists.positions), depths)
            self.absent[name] = lists.skipped + int((lists.rows < 0).sum()), top.height
        self.perfect: Entries | None = None
        if judged is not None:
            rows = find_rows(judged["doc_id"], self.doc_ids)
            self.perfect = self._entries(judged["owner"].to_numpy(), rows, judged["rank"].to_numpy())
        self._baselines: dict[tuple[str, bytes], dict[str, SlopeSummary]] = {}

    def _down_to(self, depths: Ints, run: pl.DataFrame) -> pl.Series:
        """Which rows of a run are ranked for these queries, down to the depth of each."""
        ranks = run["rank"].to_numpy()
        first = np.flatnonzero(ranks == 1)
        rows = find_rows(run["query_id"].gather(first), self.query_ids)
        depth = np.where(rows >= 0, depths[rows], 0) if len(depths) else np.zeros(len(rows))
        return pl.Series(ranks <= np.repeat(depth, np.diff(first, append=run.height)))

    def _read(self, docs: Any, needed: list[pl.Series], pool: int) -> None:
        """Read the words of the needed documents, and of a sample to draw from, in one pass.

        The pool are the documents whose ids have the smallest hashes: a random sample that does not
        depend on the order of the collection.
        """
        from evenrank.text.matcher import Hits
        from evenrank.vectors.texts import hashes

        # A document whose id has the hash of a needed one is read for nothing, which does no harm.
        needed_hashes = np.sort(pl.concat([pl.Series(["x"]), *needed]).unique().hash().to_numpy())
        ids = [pl.Series(dtype=pl.String)]
        kept_hashes = [np.zeros(0, np.uint64)]

        def kept_texts() -> Iterator[pa.Array]:
            bound = np.uint64(2**64 - 1)
            for batch in docs.batches():
                doc_ids = pl.Series(batch.column("doc_id"))
                hashed = hashes(batch.column("doc_id"), self.seed)
                own = doc_ids.hash().to_numpy()
                is_needed = needed_hashes[np.searchsorted(needed_hashes[:-1], own)] == own
                rows = np.flatnonzero(is_needed | (hashed <= bound))
                texts = batch.column("text").take(pa.array(rows))
                ids.append(doc_ids.gather(rows))
                kept_hashes.append(hashed[rows])
                smallest = np.concatenate(kept_hashes)
                if len(smallest) > pool:
                    bound = np.partition(smallest, pool - 1)[pool - 1]
                for start in range(0, len(texts), _TEXTS):
                    yield texts[start : start + _TEXTS]

        self.words = Hits.joined(map_in_order(self.texts.find, kept_texts()))
        self.doc_ids = pl.concat(ids, rechunk=True)
        if self.doc_ids.n_unique() < len(self.doc_ids):
            repeated = self.doc_ids.filter(self.doc_ids.is_duplicated())[0]
            raise InputError(f"the document {repeated} occurs twice in the docs")
        self.pool = np.argsort(np.concatenate(kept_hashes), kind="stable")[:pool]

    def _entries(self, owner: Ints, docs: Ints, ranks: Ints) -> Entries:
        """Add g_q(d) of each document."""
        values = np.full(len(docs), np.nan)
        held = docs >= 0
        values[held] = self.texts.of_pairs(self.query_texts, self.words, owner[held], docs[held])
        return Entries(owner, docs, ranks, values)

    def _random(self, depths: Ints) -> Entries:
        """For each query random lists as deep as this, with documents drawn from the pool.

        Short lists are drawn several times, up to `DRAWS`, and count together: a single document per
        query would leave the reference to chance.
        """
        rng = np.random.default_rng(self.seed)
        deep, size = depths[depths > 0], len(self.pool)
        draws = int(np.clip(100 // max(1, int(deep.mean())), 1, DRAWS)) if len(deep) else 1
        sizes = np.minimum(depths * draws, size)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # Each query walks over the shuffled pool from a start and with a stride of its own; a stride
        # that has no divisor in common with the size never comes to the same document twice.
        strides = np.flatnonzero(np.gcd(np.arange(size + 1), size) == 1)
        shuffled = rng.permutation(self.pool)
        start = rng.integers(0, max(1, size), len(sizes))
        stride = rng.choice(strides, len(sizes)) if size else start
        rows = shuffled[(start[owner] + stride[owner] * place) % max(1, size)]
        return self._entries(owner, rows, place % depths[owner] + 1)

    def fit(
        self,
        entries: Entries,
        measure: StereotypeReinforcement,
        chosen: np.ndarray | None = None,
        shares: Floats | float = 1.0,
    ) -> Fitted:
        """Fit the line through the chosen queries that have a value on both sides.

        `shares` are the chances of entries to be in the list at all, where it is cut among ties.
        """
        weights = slope.rank_weights(entries.ranks, measure["discount"]) * shares
        y, sizes = slope.list_means(entries.values, weights, entries.owner, len(self.x))
        used = ~np.isnan(self.x) & ~np.isnan(y)
        if chosen is not None:
            used &= chosen
        mask = used[entries.owner]
        kept = entries.where(mask)
        return Fitted(
            queries=np.flatnonzero(used),
            x=self.x[used],
            y=y[used],
            entries=kept._replace(owner=(np.cumsum(used) - 1)[kept.owner]),
            weights=weights[mask] / sizes[kept.owner],
        )

    def baselines(
        self, measure: StereotypeReinforcement, chosen: np.ndarray, options: Options
    ) -> dict[str, SlopeSummary]:
        """GSR of the perfect engine, where judgments are given, and of one that draws at random."""
        key = str(measure), chosen.tobytes()  # all runs share them
        if key not in self._baselines:
            depths = np.where(chosen, measure.depths(self.relevant, len(self.x)), 0)
            lines = {}
            if self.perfect is not None:
                perfect, shares = cut_ties(self.perfect, depths)
                lines["perfect"] = self.fit(perfect, measure, chosen, shares)
            lines["random"] = self.fit(self._random(depths), measure, chosen)
            self._baselines[key] = {name: fitted.summary(options) for name, fitted in lines.items()}
        return self._baselines[key]


def _ranked_by_grade(qrels: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """All and only the relevant documents of these queries; those of equal grade share a rank."""
    relevant = qrels.filter(pl.col("relevance") > 0)
    return (
        relevant.with_columns(
            owner=find_rows(relevant["query_id"], query_ids),
            rank=pl.col("relevance").rank("min", descending=True).over("query_id").cast(pl.Int64),
        )
        .filter(pl.col("owner") >= 0)
        .sort("query_id", "rank", "doc_id", maintain_order=True)
    )


def cut(entries: Entries, depths: Ints) -> Entries:
    """Keep the documents within the depth of their query."""
    return entries.where(entries.ranks <= depths[entries.owner])


def cut_ties(entries: Entries, depths: Ints) -> tuple[Entries, Floats]:
    """Cut lists with shared ranks at a depth; with each entry its chance to be ranked above the cut.

    Ties may come in any order: of five at rank 8 each has a chance of three fifths to be among the first ten.
    """
    kept = cut(entries, depths)
    tie = np.cumsum((np.diff(kept.owner, prepend=-1) != 0) | (np.diff(kept.ranks, prepend=0) != 0)) - 1
    room = depths[kept.owner] - kept.ranks + 1
    return kept, np.minimum(1.0, room / np.bincount(tie)[tie])
