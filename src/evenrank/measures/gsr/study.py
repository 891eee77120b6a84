"""Lines through queries: from ranked lists and their texts to the slope that is GSR.

A `Study` is what all the runs and measures of one call share; `Fitted` is one line and what is behind it. The
collection is read once for all runs and baselines together, each document that is needed is tokenised once,
and what is kept of it are the words found in it, never its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import Floats, Ints, Line
from evenrank.measures.lists import find_rows, refuse_missing, refuse_strangers
from evenrank.measures.results import QUANTILES, Bootstrap, Summary

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.vectors.texts import Found, GenderedTexts


POOL = 8192  # documents that random lists are drawn from: a random sample, where the collection has more
DRAWS = 20  # random lists of a query, at most


class Entries(NamedTuple):
    """The documents of ranked lists, those of one query together: whose, which, and at what rank."""

    query_rows: Ints
    doc_ids: pl.Series
    ranks: Ints

    def top(self, depths: Ints) -> Entries:
        """Those within the depth of their query."""
        return self.kept(self.ranks <= depths[self.query_rows])

    def kept(self, mask: np.ndarray) -> Entries:
        if mask.all():
            return self
        return Entries(self.query_rows[mask], self.doc_ids.filter(pl.Series(mask)), self.ranks[mask])


class Valued(NamedTuple):
    """Ranked documents with g_q(d), NaN for one without a value; `doc_rows` is −1 for a lacking one."""

    query_rows: Ints
    doc_rows: Ints
    ranks: Ints
    values: Floats

    def top(self, depths: Ints) -> Valued:
        return self.kept(self.ranks <= depths[self.query_rows])

    def kept(self, mask: np.ndarray) -> Valued:
        if mask.all():
            return self
        return Valued(self.query_rows[mask], self.doc_rows[mask], self.ranks[mask], self.values[mask])


def run_entries(run: pl.DataFrame, query_ids: pl.Series) -> Entries:
    """The entries of a normalised run whose queries are among these."""
    first = np.flatnonzero(run["rank"].to_numpy() == 1)
    rows = find_rows(run["query_id"].gather(first), query_ids)
    entries = Entries(
        np.repeat(rows, np.diff(first, append=run.height)), run["doc_id"], run["rank"].to_numpy()
    )
    return entries.kept(entries.query_rows >= 0)


def perfect_entries(qrels: pl.DataFrame, query_ids: pl.Series) -> Entries:
    """All and only the relevant documents; those of equal grade share a rank."""
    relevant = (
        qrels.filter(pl.col("relevance") > 0)
        .with_columns(rank=pl.col("relevance").rank("min", descending=True).over("query_id").cast(pl.Int64))
        .sort("query_id", "rank", "doc_id", maintain_order=True)
    )
    rows = find_rows(relevant["query_id"], query_ids)
    entries = Entries(rows, relevant["doc_id"], relevant["rank"].to_numpy())
    return entries.kept(rows >= 0)


def relevant_counts(qrels: pl.DataFrame, query_ids: pl.Series) -> Ints:
    """K_q: how many documents are judged relevant for each query."""
    rows = find_rows(qrels.filter(pl.col("relevance") > 0)["query_id"], query_ids)
    return np.bincount(rows[rows >= 0], minlength=len(query_ids)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class GenderedCollection:
    """The words of the documents that are needed, and a sample of all documents to draw from."""

    texts: GenderedTexts
    doc_ids: pl.Series
    found: Found
    pool: Ints  # rows

    @classmethod
    def read(
        cls, texts: GenderedTexts, docs: Any, wanted: Iterable[pl.Series], *, pool: int = POOL, seed: int = 0
    ) -> GenderedCollection:
        """One pass over the documents.

        The pool are the documents whose ids have the smallest hashes: a random sample that does not
        depend on the order of the collection.
        """
        from evenrank.vectors.texts import Found, hashes

        needed = {doc_id for ids in wanted for doc_id in ids.unique().to_list()}
        ids: list[str] = []
        pieces: list[Found] = []
        draws: list[np.ndarray] = []
        bound = np.uint64(2**64 - 1)
        for batch in docs.batches():
            names = batch.column("doc_id").to_pylist()
            draw = hashes(batch.column("doc_id"), seed)
            wish = np.fromiter((name in needed for name in names), bool, len(names))
            rows = np.flatnonzero(wish | ((draw <= bound) & bool(pool)))
            if not len(rows):
                continue
            pieces.append(texts.find(batch.column("text").take(pa.array(rows))))
            ids += [names[row] for row in rows.tolist()]
            draws.append(draw[rows])
            if pool:
                smallest = np.concatenate(draws)
                if len(smallest) > pool:
                    bound = np.partition(smallest, pool - 1)[pool - 1]
        series = pl.Series("doc_id", ids, dtype=pl.String)
        if series.n_unique() < len(series):
            raise InputError(
                f"the document {series.filter(series.is_duplicated())[0]} occurs twice in the docs"
            )
        order = np.argsort(np.concatenate([*draws, np.zeros(0, np.uint64)]), kind="stable")
        return cls(texts, series, Found.joined(pieces), order[:pool].astype(np.int64))

    def valued(self, entries: Entries, queries: Sequence[str]) -> Valued:
        """g_q(d) of each entry; NaN for documents that the collection lacks."""
        rows = find_rows(entries.doc_ids, self.doc_ids)
        return self.valued_rows(entries.query_rows, rows, entries.ranks, queries)

    def valued_rows(self, query_rows: Ints, doc_rows: Ints, ranks: Ints, queries: Sequence[str]) -> Valued:
        values = np.full(len(doc_rows), np.nan)
        held = doc_rows >= 0
        values[held] = self.texts.of_pairs(queries, self.found, query_rows[held], doc_rows[held])
        return Valued(query_rows, doc_rows, ranks, values)

    def random(self, depths: Ints, queries: Sequence[str], seed: int) -> Valued:
        """For each query random lists as deep as asked, with documents drawn from the pool.

        Short lists are drawn several times, up to `DRAWS`, and count together: a single document per
        query would leave the yardstick to chance.
        """
        rng = np.random.default_rng(seed)
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
        return self.valued_rows(owner, rows, place % depths[owner] + 1, queries)


PARTS = ("stereotypical", "counter-stereotypical")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A line through the queries of a run, and the documents that put each of them where it is.

    `x` is g(q) and `y` is g_q(L), by query; `queries` are their rows in the table of queries. `owner`
    names the query (by its place in x) of each entry. `line` is None where there is none to draw.
    """

    queries: Ints
    x: Floats
    y: Floats
    line: Line | None
    owner: Ints
    entries: Valued
    weights: Floats
    sizes: Floats

    @cached_property
    def contributions(self) -> Floats:
        """c_i of each query; their mean is the slope."""
        return slope.query_contributions(self.x, self.y)

    @cached_property
    def shares(self) -> Floats:
        """What each document adds to the slope."""
        return slope.document_contributions(
            self.x, self.y, self.entries.values, self.weights, self.owner, self.sizes
        )

    @cached_property
    def parts(self) -> dict[str, Floats]:
        """Eqs. 4 and 5, by query: what documents of the query's own polarity add, and what the others do.

        A document is stereotypical for a query if both lean the same way (§3.5). Contributions are about
        the means, so that either part may have either sign.
        """
        n = len(self.x)
        same = self.x[self.owner] * self.entries.values > 0
        return {
            name: np.bincount(self.owner, n * np.where(chosen, self.shares, 0.0), minlength=n).astype(
                np.float64
            )
            for name, chosen in zip(PARTS, (same, ~same), strict=True)
        }

    def summary(self, bootstrap: Bootstrap) -> Summary:
        """The slope with its interval: queries are drawn anew and the line is fitted to each draw."""
        if self.line is None:
            return Summary(None, None, None, 0, {}, None, None, {})
        low = high = None
        if bootstrap.confidence is not None:
            found = stats.bootstrap(
                slope.slopes,
                self.x,
                self.y,
                confidence=bootstrap.confidence,
                resamples=bootstrap.resamples,
                seed=bootstrap.seed,
            )
            low, high = found.low, found.high
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


@dataclass(frozen=True, eq=False)
class Study:
    """Queries and documents, read once for all the runs and measures of one call."""

    lists: Mapping[str, Entries]
    query_ids: pl.Series
    query_texts: list[str]
    x: Floats
    relevant: Ints | None
    collection: GenderedCollection
    perfect: Valued | None
    lacking: int
    missing: str
    seed: int
    _baselines: dict[tuple[str, bytes], dict[str, Summary]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        runs: Mapping[str, pl.DataFrame],
        measures: Sequence[StereotypeReinforcement],
        texts: GenderedTexts,
        *,
        docs: Any,
        queries: pl.DataFrame,
        qrels: pl.DataFrame | None,
        missing: str = "error",
        seed: int = 0,
        baselines: bool = True,
    ) -> Study:
        ids = queries["query_id"]
        relevant = None if qrels is None else relevant_counts(qrels, ids)
        depths = np.max([m.depths(relevant, len(ids)) for m in measures], axis=0)
        best = None if qrels is None or not baselines else perfect_entries(qrels, ids)
        lists = {name: run_entries(run, ids) for name, run in runs.items()}
        if missing != "skip":  # else what stands deeper may move up
            lists = {name: entries.top(depths) for name, entries in lists.items()}
        wanted = [entries.doc_ids for entries in lists.values()]
        if best is not None:
            wanted.append(best.doc_ids)
        pool = max(POOL, 2 * int(depths.max(initial=0))) if baselines else 0
        collection = GenderedCollection.read(texts, docs, wanted, pool=pool, seed=seed)
        asked = queries["text"].to_list()
        of_queries = texts.of_texts(asked)
        nothing = {"query": np.isnan(of_queries).all(), "document": not len(collection.found.words)}
        for what in (what for what, empty in nothing.items() if empty):
            raise InputError(
                f"no word of any {what} has a value in the {len(texts.genderedness):,} words of the "
                "vectors; give vectors of the same language"
            )
        perfect = None if best is None else collection.valued(best, asked)
        return cls(
            lists=lists,
            query_ids=ids,
            query_texts=asked,
            x=of_queries,
            relevant=relevant,
            collection=collection,
            perfect=perfect,
            lacking=0 if perfect is None else int((perfect.doc_rows < 0).sum()),
            missing=missing,
            seed=seed,
        )

    def listed(self, run: str, depths: Ints) -> Valued:
        """The documents of a run (by its name) down to these depths, with their values."""
        entries = self.lists[run]
        if self.missing == "skip":
            held = entries.doc_ids.is_in(self.collection.doc_ids.implode()).to_numpy()
            if len(held) and not held.any():
                refuse_strangers(run)
            entries = _closed(entries.kept(held))
        entries = entries.top(depths)
        valued = self.collection.valued(entries, self.query_texts)
        lacking = valued.doc_rows < 0
        if self.missing == "zero" and len(lacking) and lacking.all():
            refuse_strangers(run)
        if self.missing == "error" and lacking.any():
            refuse_missing(entries.doc_ids.filter(pl.Series(lacking)), run)
        return valued

    def fitted(
        self,
        listed: Valued,
        discount: str,
        chosen: np.ndarray | None = None,
        shares: Floats | float = 1.0,
    ) -> Fitted:
        """The line through the chosen queries that have a value on both sides.

        `shares` are the chances of entries to be in the list at all, where it is cut among equals.
        """
        weights = slope.rank_weights(listed.ranks, discount) * shares  # type: ignore[arg-type]
        y, sizes = slope.list_means(listed.values, weights, listed.query_rows, len(self.x))
        taken = ~np.isnan(self.x) & ~np.isnan(y)
        if chosen is not None:
            taken &= chosen
        place = np.cumsum(taken) - 1
        mask = taken[listed.query_rows]
        return Fitted(
            queries=np.flatnonzero(taken),
            x=self.x[taken],
            y=y[taken],
            line=slope.fit(self.x[taken], y[taken]),
            owner=place[listed.query_rows[mask]],
            entries=listed.kept(mask),
            weights=weights[mask],
            sizes=sizes[taken],
        )

    def contributions(self, run: str, measure: StereotypeReinforcement) -> dict[str, float]:
        """The contribution of each measured query of a run; none where no line can be fitted."""
        listed = self.listed(run, measure.depths(self.relevant, len(self.x)))
        fitted = self.fitted(listed, measure["discount"])
        if fitted.line is None:
            return {}
        ids = self.query_ids.gather(fitted.queries).to_list()
        return dict(zip(ids, fitted.contributions.tolist(), strict=True))

    def baselines(
        self, measure: StereotypeReinforcement, chosen: np.ndarray, bootstrap: Bootstrap
    ) -> dict[str, Summary]:
        """The perfect engine, where judgments are given, and one that draws at random."""
        key = str(measure), chosen.tobytes()
        if key not in self._baselines:
            fitted = self.baseline_lines(measure, chosen)
            self._baselines[key] = {name: each.summary(bootstrap) for name, each in fitted.items()}
        return self._baselines[key]

    def baseline_lines(
        self, measure: StereotypeReinforcement, chosen: np.ndarray | None = None
    ) -> dict[str, Fitted]:
        """The lines of the baselines."""
        depths = measure.depths(self.relevant, len(self.x))
        if chosen is not None:
            depths = np.where(chosen, depths, 0)
        found = {}
        if self.perfect is not None:
            best, shares = within(self.perfect, depths)
            found["perfect"] = self.fitted(best, measure["discount"], chosen, shares)
        drawn = self.collection.random(depths, self.query_texts, self.seed)
        return found | {"random": self.fitted(drawn, measure["discount"], chosen)}


def within(listed: Valued, depths: Ints) -> tuple[Valued, Floats]:
    """Lists with shared ranks cut at a depth, and for each entry its chance to stand above the cut.

    Equals stand in any order: of five at rank 8 each has a chance of three fifths to be among the first ten.
    """
    kept = listed.top(depths)
    if not len(kept.ranks):
        return kept, np.zeros(0)
    group = np.stack([kept.query_rows, kept.ranks])
    _, place, sizes = np.unique(group, axis=1, return_inverse=True, return_counts=True)
    room = depths[kept.query_rows] - kept.ranks + 1
    return kept, np.minimum(1.0, room / sizes[place.ravel()])


def _closed(entries: Entries) -> Entries:
    """The same entries, ranks counted anew: what stood below a lacking document moves up."""
    new = np.ones(len(entries.ranks), bool)
    new[1:] = entries.query_rows[1:] != entries.query_rows[:-1]
    rows = np.arange(len(new))
    first = np.maximum.accumulate(np.where(new, rows, 0)) if len(new) else rows
    return Entries(entries.query_rows, entries.doc_ids, rows - first + 1)
