"""From ranked lists and their texts to the slope that is GSR.

A `Study` is what all the runs and measures of one call share; `Fitted` is one line and the documents
behind it. The collection is read once for all runs and baselines together, each document that is needed
is tokenised once, and only the vocabulary words in it are kept, never its text.

Ranked lists are frames with the columns query_row, doc_id and rank, the documents of one query together.
With values they have doc_row (−1 for a document that the collection lacks) and value, g_q(d), NaN where
it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import Discount, Floats, Ints, Line
from evenrank.measures.lists import find_rows, raise_no_overlap, refuse_missing
from evenrank.measures.results import QUANTILES, Options, Summary

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.text.matcher import Hits
    from evenrank.vectors.texts import GenderedTexts

POOL = 8192  # documents that random lists are drawn from: a random sample, where the collection has more
DRAWS = 20  # random lists of a query, at most
PARTS = ("stereotypical", "counter-stereotypical")


def cut(lists: pl.DataFrame, depths: Ints) -> pl.DataFrame:
    """Keep the documents within the depth of their query."""
    return lists.filter(pl.Series(lists["rank"].to_numpy() <= depths[lists["query_row"].to_numpy()]))


def run_lists(run: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """The lists of a normalised run whose queries are among these."""
    first = np.flatnonzero(run["rank"].to_numpy() == 1)
    rows = find_rows(run["query_id"].gather(first), query_ids)
    rows = np.repeat(rows, np.diff(first, append=run.height))
    return run.select(pl.Series("query_row", rows), "doc_id", "rank").filter(pl.col("query_row") >= 0)


def perfect_lists(qrels: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """All and only the relevant documents; those of equal grade share a rank."""
    relevant = (
        qrels.filter(pl.col("relevance") > 0)
        .with_columns(rank=pl.col("relevance").rank("min", descending=True).over("query_id").cast(pl.Int64))
        .sort("query_id", "rank", "doc_id", maintain_order=True)
    )
    rows = pl.Series("query_row", find_rows(relevant["query_id"], query_ids))
    return relevant.select(rows, "doc_id", "rank").filter(pl.col("query_row") >= 0)


def cut_ties(lists: pl.DataFrame, depths: Ints) -> tuple[pl.DataFrame, Floats]:
    """Cut lists with shared ranks at a depth; with each entry its chance to be ranked above the cut.

    Ties may come in any order: of five at rank 8 each has a chance of three fifths to be among the first ten.
    """
    kept = cut(lists, depths)
    sizes = kept.select(pl.len().over("query_row", "rank")).to_series().to_numpy()
    room = depths[kept["query_row"].to_numpy()] - kept["rank"].to_numpy() + 1
    return kept, np.minimum(1.0, room / sizes)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A line through the queries of a run, and the documents that give each query its value.

    `x` is g(q) and `y` is g_q(L), by query; `queries` are their rows in the table of queries. `entries` are
    the ranked documents with their values and weights, and `owner` names the query (by its place in x) of
    each. `sizes` are the sums of weights, by query. `line` is None where there is none to draw.
    """

    queries: Ints
    x: Floats
    y: Floats
    line: Line | None
    owner: Ints
    entries: pl.DataFrame
    weights: Floats
    sizes: Floats

    @cached_property
    def contributions(self) -> Floats:
        """c_i of each query; their mean is the slope."""
        return slope.query_contributions(self.x, self.y)

    @cached_property
    def coefficients(self) -> Floats:
        """By how much the value of each document, above the mean of y, is multiplied in the slope."""
        return slope.document_coefficients(self.x, self.weights, self.owner, self.sizes)

    @cached_property
    def shares(self) -> Floats:
        """What each document adds to the slope; 0 for one without a value."""
        shares = self.coefficients * (self.entries["value"].to_numpy() - self.y.mean())
        return np.where(np.isnan(shares), 0.0, shares)

    @cached_property
    def parts(self) -> dict[str, Floats]:
        """Eqs. 4 and 5, by query: what documents of the query's own polarity add, and what the others do.

        A document is stereotypical for a query if both lean the same way (§3.5). Contributions are about
        the means, so that either part may have either sign.
        """
        n = len(self.x)
        same = self.x[self.owner] * self.entries["value"].to_numpy() > 0
        sums = (np.bincount(self.owner, n * self.shares * side, minlength=n) for side in (same, ~same))
        return {name: part.astype(np.float64) for name, part in zip(PARTS, sums, strict=True)}

    def summary(self, options: Options) -> Summary:
        """The slope with its interval: queries are drawn anew and the line is fitted to each draw."""
        if self.line is None:
            return Summary()
        low = high = None
        if options.confidence is not None:
            interval = stats.bootstrap(
                slope.slopes,
                self.x,
                self.y,
                confidence=options.confidence,
                resamples=options.resamples,
                seed=options.seed,
            )
            low, high = interval.low, interval.high
        c = self.contributions
        quantiles = np.quantile(c, QUANTILES).tolist()
        return Summary(
            value=self.line.slope,
            low=low,
            high=high,
            queries=len(self.x),
            parts={name: float(part.mean()) for name, part in self.parts.items()},
            abs=float(np.abs(c).mean()),
            spread=float(c.std(ddof=1)),
            quantiles={str(p): q for p, q in zip(QUANTILES, quantiles, strict=True)},
        )


class Study:
    """Queries and documents, read once for all the runs and measures of one call.

    Attributes
    ----------
    x
        g(q) of each query.
    relevant
        K_q, the number of documents judged relevant for each query; None without judgments.
    doc_ids, words
        The documents that are needed, and the vocabulary words in each.
    pool
        The rows of a random sample of all documents.
    perfect
        The lists of the perfect engine, with values; None without judgments.
    """

    def __init__(
        self,
        runs: Mapping[str, pl.DataFrame],
        measures: Sequence[StereotypeReinforcement],
        texts: GenderedTexts,
        *,
        docs: Any,
        queries: pl.DataFrame,
        qrels: pl.DataFrame | None,
        missing: str = "error",
        seed: int = 0,
    ) -> None:
        self.texts, self.missing, self.seed = texts, missing, seed
        self.query_ids, self.query_texts = queries["query_id"], queries["text"].to_list()
        self.x = texts.of_texts(self.query_texts)
        self.relevant: Ints | None = None
        if qrels is not None:
            rows = find_rows(qrels.filter(pl.col("relevance") > 0)["query_id"], self.query_ids)
            self.relevant = np.bincount(rows[rows >= 0], minlength=len(queries)).astype(np.int64)
        depths = np.max([m.depths(self.relevant, len(queries)) for m in measures], axis=0)
        self.lists = {name: run_lists(run, self.query_ids) for name, run in runs.items()}
        if missing != "skip":  # else documents from further down may move up
            self.lists = {name: cut(lists, depths) for name, lists in self.lists.items()}
        perfect = None if qrels is None else perfect_lists(qrels, self.query_ids)
        needed = [lists["doc_id"] for lists in self.lists.values()]
        if perfect is not None:
            needed.append(perfect["doc_id"])
        self._read(docs, needed, pool=max(POOL, 2 * int(depths.max(initial=0))))
        for kind, empty in {"query": np.isnan(self.x).all(), "document": not len(self.words.entries)}.items():
            if empty:
                raise InputError(
                    f"no word of any {kind} has a value in the {len(texts.genderedness):,} words of the "
                    "vectors; give vectors of the same language"
                )
        self.perfect = None if perfect is None else self._with_values(perfect)
        self._baselines: dict[tuple[str, bytes], dict[str, Summary]] = {}

    def _read(self, docs: Any, needed: list[pl.Series], *, pool: int) -> None:
        """Read the words of the needed documents, and of a sample to draw from, in one pass.

        The pool are the documents whose ids have the smallest hashes: a random sample that does not
        depend on the order of the collection.
        """
        from evenrank.text.matcher import Hits
        from evenrank.vectors.texts import hashes

        needed_ids = {doc_id for ids in needed for doc_id in ids.unique().to_list()}
        ids: list[str] = []
        words: list[Hits] = []
        kept_hashes: list[np.ndarray] = []
        bound = np.uint64(2**64 - 1)
        for batch in docs.batches():
            names = batch.column("doc_id").to_pylist()
            hashed = hashes(batch.column("doc_id"), self.seed)
            is_needed = np.fromiter((name in needed_ids for name in names), bool, len(names))
            rows = np.flatnonzero(is_needed | ((hashed <= bound) & bool(pool)))
            if not len(rows):
                continue
            words.append(self.texts.find(batch.column("text").take(pa.array(rows))))
            ids += [names[row] for row in rows.tolist()]
            kept_hashes.append(hashed[rows])
            if pool:
                smallest = np.concatenate(kept_hashes)
                if len(smallest) > pool:
                    bound = np.partition(smallest, pool - 1)[pool - 1]
        self.doc_ids = pl.Series("doc_id", ids, dtype=pl.String)
        if self.doc_ids.n_unique() < len(ids):
            repeated = self.doc_ids.filter(self.doc_ids.is_duplicated())[0]
            raise InputError(f"the document {repeated} occurs twice in the docs")
        order = np.argsort(np.concatenate([*kept_hashes, np.zeros(0, np.uint64)]), kind="stable")
        self.pool = order[:pool].astype(np.int64)
        self.words = Hits.joined(words)

    def _with_values(self, lists: pl.DataFrame) -> pl.DataFrame:
        """Add doc_row, unless it is there, and value."""
        if "doc_row" not in lists.columns:
            rows = find_rows(lists["doc_id"], self.doc_ids)
            lists = lists.select("query_row", pl.Series("doc_row", rows), "rank")
        doc_rows = lists["doc_row"].to_numpy()
        held = doc_rows >= 0
        values = np.full(len(doc_rows), np.nan)
        query_rows = lists["query_row"].to_numpy()[held]
        values[held] = self.texts.of_pairs(self.query_texts, self.words, query_rows, doc_rows[held])
        return lists.with_columns(pl.Series("value", values))

    def ranked(self, run: str, depths: Ints) -> pl.DataFrame:
        """The lists of a run (by its name) down to these depths, with values."""
        lists = self.lists[run]
        if self.missing == "skip":
            held = lists["doc_id"].is_in(self.doc_ids.implode())
            if len(held) and not held.any():
                raise_no_overlap(run)
            # What is ranked below a missing document moves up.
            lists = lists.filter(held).with_columns(
                rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_row")
            )
        lists = cut(lists, depths)
        with_values = self._with_values(lists)
        missing = with_values["doc_row"] < 0
        if self.missing == "zero" and len(missing) and missing.all():
            raise_no_overlap(run)
        if self.missing == "error" and missing.any():
            refuse_missing(lists["doc_id"].filter(missing), run)
        return with_values

    def random(self, depths: Ints) -> pl.DataFrame:
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
        ranks = place % depths[owner] + 1
        return self._with_values(pl.DataFrame({"query_row": owner, "doc_row": rows, "rank": ranks}))

    def fitted(
        self,
        lists: pl.DataFrame,
        discount: Discount,
        chosen: np.ndarray | None = None,
        shares: Floats | float = 1.0,
    ) -> Fitted:
        """Fit the line through the chosen queries that have a value on both sides.

        `shares` are the chances of entries to be in the list at all, where it is cut among ties.
        """
        query_rows = lists["query_row"].to_numpy()
        weights = slope.rank_weights(lists["rank"].to_numpy(), discount) * shares
        y, sizes = slope.list_means(lists["value"].to_numpy(), weights, query_rows, len(self.x))
        used = ~np.isnan(self.x) & ~np.isnan(y)
        if chosen is not None:
            used &= chosen
        place = np.cumsum(used) - 1
        mask = used[query_rows]
        return Fitted(
            queries=np.flatnonzero(used),
            x=self.x[used],
            y=y[used],
            line=slope.fit(self.x[used], y[used]),
            owner=place[query_rows[mask]],
            entries=lists.filter(pl.Series(mask)),
            weights=weights[mask],
            sizes=sizes[used],
        )

    def baselines(
        self, measure: StereotypeReinforcement, chosen: np.ndarray, options: Options
    ) -> dict[str, Summary]:
        """GSR of the perfect engine, where judgments are given, and of one that draws at random."""
        key = str(measure), chosen.tobytes()  # all runs share them
        if key not in self._baselines:
            lines = self.baseline_lines(measure, chosen)
            self._baselines[key] = {name: fitted.summary(options) for name, fitted in lines.items()}
        return self._baselines[key]

    def baseline_lines(self, measure: StereotypeReinforcement, chosen: np.ndarray) -> dict[str, Fitted]:
        """The lines of the baselines."""
        depths = np.where(chosen, measure.depths(self.relevant, len(self.x)), 0)
        lines = {}
        if self.perfect is not None:
            perfect, shares = cut_ties(self.perfect, depths)
            lines["perfect"] = self.fitted(perfect, measure["discount"], chosen, shares)
        lines["random"] = self.fitted(self.random(depths), measure["discount"], chosen)
        return lines
