"""Lines through queries: from ranked lists and their texts to the slope that is GSR.

A `Study` is what all the runs and measures of one call share; `Fitted` is one line and what is behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.lists import (
    POOL,
    Entries,
    GenderedCollection,
    Valued,
    perfect_entries,
    relevant_counts,
    run_entries,
)
from evenrank.measures.gsr.slope import Floats, Ints, Line
from evenrank.measures.lists import refuse_missing, refuse_strangers
from evenrank.measures.results import QUANTILES, Bootstrap, Summary

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.vectors.texts import GenderedTexts

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
        """Eqs. 4 and 5, by query: what stereotypical documents add, and counter-stereotypical ones."""
        n = len(self.x)
        return {
            name: np.bincount(
                self.owner, n * np.where(sign * self.shares > 0, self.shares, 0.0), minlength=n
            ).astype(np.float64)
            for name, sign in zip(PARTS, (1, -1), strict=True)
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

    def fitted(self, listed: Valued, discount: str, chosen: np.ndarray | None = None) -> Fitted:
        """The line through the chosen queries that have a value on both sides."""
        weights = slope.rank_weights(listed.ranks, discount)  # type: ignore[arg-type]
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
            found["perfect"] = self.fitted(self.perfect, measure["discount"], chosen)
        drawn = self.collection.random(depths, self.query_texts, self.seed)
        return found | {"random": self.fitted(drawn, measure["discount"], chosen)}


def _closed(entries: Entries) -> Entries:
    """The same entries, ranks counted anew: what stood below a lacking document moves up."""
    new = np.ones(len(entries.ranks), bool)
    new[1:] = entries.query_rows[1:] != entries.query_rows[:-1]
    rows = np.arange(len(new))
    first = np.maximum.accumulate(np.where(new, rows, 0)) if len(new) else rows
    return Entries(entries.query_rows, entries.doc_ids, rows - first + 1)
