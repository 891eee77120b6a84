"""Measuring GSR: the slope over the queries of a run, its interval, and the engines it is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.explain import Attribution, largest_first, summed
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import Ints, Line
from evenrank.measures.gsr.study import Fitted, Study
from evenrank.measures.results import Change, Measurement, Options, labels_of, left_out
from evenrank.text.tokens import tokens

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.measures.inputs import Inputs


EQUAL = "all queries are equally gendered"


@dataclass(frozen=True, eq=False)
class Reinforcement(Measurement):
    """GSR of one run. Values by query are contributions, for attribution and not for intervals.

    Attributes
    ----------
    fitted
        Where the queries stand (`x`, `y`) and the line through them, with r and its standard error.
    baselines
        GSR of the perfect engine (all and only the relevant documents, if qrels are given) and of
        documents drawn at random.
    """

    fitted: Fitted | None = None
    lines: Callable[[], dict[str, Fitted]] = dict

    @cached_property
    def baseline_lines(self) -> dict[str, Fitted]:
        """The lines of the baselines, to be drawn beside this one."""
        return self.lines()

    @property
    def line(self) -> Line | None:
        return None if self.fitted is None else self.fitted.line

    @property
    def p(self) -> float | None:
        """Two-sided p of the correlation."""
        return None if self.line is None else slope.significance(self.line.r, self.queries)

    @property
    def relative(self) -> float | None:
        """How much it is above the GSR of the perfect engine, which is cut at the same depth."""
        return relative_to(
            self.value, self.baselines["perfect"].value if "perfect" in self.baselines else None
        )

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        line = self.line
        about = {
            "r": None if line is None or math.isnan(line.r) else line.r,
            "p": self.p,
            "error": None if line is None else line.error,
            "relative": self.relative,
            **{name: baseline.to_dict() for name, baseline in self.baselines.items()},
        }
        row = super().to_dict(per_query)
        contributions = row.pop("per_query", None)
        return row | about | ({} if contributions is None else {"per_query": contributions})


def measure_reinforcement(
    name: str,
    run: pl.DataFrame,
    measures: Sequence[StereotypeReinforcement],
    study: Study,
    inputs: Inputs,
    options: Options,
) -> list[Measurement]:
    """GSR of a normalised run, over all its queries unless `only` chooses some."""
    labels, only = inputs.genders, options.only or "all"
    label = labels_of(study.query_ids, labels)
    chosen = np.ones(len(label), bool) if only == "all" else (label == only).fill_null(False).to_numpy()
    deepest = np.max([m.depths(study.relevant, len(label)) for m in measures], axis=0)
    listed = study.listed(name, deepest)
    ranked = run.filter(pl.col("rank") == 1)["query_id"].to_list()
    known = dict.fromkeys([*study.query_ids.to_list(), *ranked])
    results: list[Measurement] = []
    for measure in measures:
        depths = measure.depths(study.relevant, len(label))
        top = listed.top(depths)
        fitted = study.fitted(top, measure["discount"], chosen)
        defined = fitted.line is not None
        ids = study.query_ids.gather(fitted.queries if defined else [])
        missed = left_out(
            known,
            set(ids.to_list()),
            labels=labels,
            only=only,
            otherwise="the query has no text",
            reasons=_reasons(study, depths, set(ranked), fitted),
        )
        apart = [other for other in label.drop_nulls().unique().sort().to_list() if other != only]
        results.append(
            Reinforcement(
                run=name,
                measure=measure,
                summary=fitted.summary(options.bootstrap),
                left_out=missed,
                query_ids=ids,
                values=fitted.contributions if defined else np.zeros(0),
                part_values=fitted.parts if defined else {},
                only=None if labels is None else only,
                subsets={
                    other: study.fitted(
                        top, measure["discount"], (label == other).fill_null(False).to_numpy()
                    ).summary(options.bootstrap)
                    for other in (apart if options.only is None else [])
                },
                notes=_notes(name, study, fitted, inputs),
                attribution=attribution(study, fitted) if options.explain and defined else None,
                yardsticks=partial(study.baselines, measure, chosen, options.bootstrap),
                fitted=fitted,
                lines=partial(study.baseline_lines, measure, chosen),
            )
        )
    return results


def _reasons(study: Study, depths: Ints, ranked: set[str], fitted: Fitted) -> dict[str, str]:
    """Why each query that is not measured has no value; the first reason that applies."""
    reasons = {}
    fitted_rows = set(fitted.queries.tolist())
    for row, query in enumerate(study.query_ids.to_list()):
        if np.isnan(study.x[row]):
            reasons[query] = "the query has no word with a value"
        elif depths[row] == 0:
            reasons[query] = "no relevant document"
        elif query not in ranked:
            reasons[query] = "nothing ranked"
        elif fitted.line is None and row in fitted_rows:
            reasons[query] = EQUAL
        else:
            reasons[query] = "no ranked document has a value"
    return reasons


def _notes(name: str, study: Study, fitted: Fitted, inputs: Inputs) -> tuple[str, ...]:
    notes = []
    if inputs.missing != "error":
        ranked = study.lists[name].doc_ids
        absent = int((~ranked.is_in(study.collection.doc_ids.implode())).sum())
        if absent:
            done = "skipped" if inputs.missing == "skip" else "counted as having no value"
            notes.append(f"{absent:,} of {len(ranked):,} ranked documents are not in the collection: {done}")
    if fitted.line is None and len(fitted.x):
        few = "only one query has a value" if len(fitted.x) == 1 else EQUAL
        notes.append(f"undefined: {few}, and no line can be fitted")
    if study.lacking:
        notes.append(f"{study.lacking:,} relevant documents are not in the collection")
    if inputs.ties == "expected":
        notes.append("tied documents stay in the order of their ids: GSR has no mean over orders")
    return tuple(notes)


def attribution(study: Study, fitted: Fitted) -> Attribution:
    """What each word, document and query adds to the slope; exact, and each frame adds up to it."""
    texts, collection = study.collection.texts, study.collection
    held = ~np.isnan(fitted.entries.values)
    owner, rows, shares = fitted.owner[held], fitted.entries.doc_rows[held], fitted.shares[held]
    dx = fitted.x - fitted.x.mean()
    scale = (dx / (float(np.dot(dx, dx)) * fitted.sizes))[owner] * fitted.weights[held]
    by_word = texts.word_shares(
        study.query_texts,
        collection.found,
        fitted.queries[owner],
        rows,
        scale,
        float(fitted.y.mean()),
    )
    used = np.flatnonzero(by_word)
    sides = ("positive", "negative") if texts.other_pairs else ("female", "male")
    words = pl.DataFrame(
        {
            "group": [sides[0] if texts.values[i] > 0 else sides[1] for i in used.tolist()],
            "word": [texts.vocabulary[i] for i in used.tolist()],
            "contribution": by_word[used],
        },
        schema={"group": pl.String, "word": pl.String, "contribution": pl.Float64},
    )
    documents = summed(
        pl.DataFrame({"doc_id": collection.doc_ids.gather(rows), "queries": 1.0, "contribution": shares}),
        ["doc_id"],
        ["queries", "contribution"],
    ).with_columns(pl.col("queries").cast(pl.Int64))
    queries = pl.DataFrame(
        {
            "query_id": study.query_ids.gather(fitted.queries),
            "contribution": fitted.contributions / len(fitted.x),
        }
    )
    assert fitted.line is not None
    return Attribution(
        value=fitted.line.slope,
        words=largest_first(words, ["word"]),
        documents=largest_first(documents, ["doc_id"]),
        queries=largest_first(queries, ["query_id"]),
    )


def compared_lines(mine: Measurement, theirs: Measurement, *, confidence: float, seed: int) -> Change:
    """GSR of one run against another; values by query are contributions, so there is no change of each."""
    assert isinstance(mine, Reinforcement) and isinstance(theirs, Reinforcement)
    if mine.line is None or theirs.line is None:
        comparison = stats.Comparison(None, None, None, None, None, "", "permutation", 0)
    else:
        comparison = compare_reinforcement(mine, theirs, confidence=confidence, seed=seed)
    return Change(comparison, pl.Series("query_id", [], dtype=pl.String), np.zeros(0))


def compare_reinforcement(
    first: Reinforcement,
    second: Reinforcement,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> stats.Comparison:
    """How much more one run reinforces stereotypes than another, over the queries that both have.

    The interval draws queries, the same for both runs, and refits both slopes. p is that of a
    permutation test in which the two lists of a query change places.

    Parameters
    ----------
    first, second
        What :func:`evenrank.measure` gives for GSR of two runs, measured in one call.
    """
    if first.measure != second.measure:
        raise InputError(f"{first.measure} and {second.measure} cannot be compared")
    if first.fitted is None or second.fitted is None:
        raise InputError("there is nothing to compare; give two measurements of GSR")
    _, mine, theirs = np.intersect1d(first.fitted.queries, second.fitted.queries, return_indices=True)
    x, gap = first.fitted.x[mine], first.fitted.y[mine] - second.fitted.y[theirs]
    if not np.array_equal(x, second.fitted.x[theirs]):
        raise InputError("the two were measured with different queries or vectors; measure them in one call")
    return compared_slopes(x, gap, confidence=confidence, resamples=resamples, seed=seed)


def compared_slopes(
    x: slope.Floats, gap: slope.Floats, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> stats.Comparison:
    """The slope of differences between the lists of two systems on the genderedness of their queries."""
    line = slope.fit(x, gap)
    if line is None:
        return stats.Comparison(None, None, None, None, None, "", "permutation", len(x))
    interval = stats.bootstrap(
        slope.slopes, x, gap, confidence=confidence, resamples=resamples, seed=seed, paired=True
    )
    terms = (x - x.mean()) * gap
    p = stats.paired(terms, np.zeros(len(terms)), test="permutation", seed=seed).p
    return stats.Comparison(
        line.slope, interval.low, interval.high, p, None, "", "permutation", len(x), line.slope
    )


class GenderedQuery(NamedTuple):
    """A query, how far it leans, and each of its words with its own leaning (None: it does not count)."""

    query_id: str
    text: str
    g: float
    words: tuple[tuple[str, float | None], ...]


def relative_to(value: float | None, perfect: float | None) -> float | None:
    """(GSR − GSR of the perfect engine) / GSR of the perfect engine; None where that is not above 0.

    With a perfect engine at 0 or below, there is no stereotype in the judgments for others to exceed.
    """
    return None if value is None or perfect is None or perfect <= 0 else (value - perfect) / perfect


def most_gendered(
    queries: Any, vectors: Any = None, *, count: int = 10, pairs: Any = None
) -> tuple[list[GenderedQuery], list[GenderedQuery]]:
    """The queries that lean most to the positive (female) side, and to the negative; the furthest first.

    Figure 7 of the paper. A query that does not lean to a side is not among those of that side, so there may
    be fewer than `count`. Ties keep the order of the queries.
    """
    from evenrank.vectors.texts import gendered_texts

    table, texts = tables.queries(queries), gendered_texts(vectors, pairs=pairs)
    g = texts.of_texts(table["text"].to_list())
    value = dict(zip(texts.vocabulary, texts.values.tolist(), strict=True))

    def shown(row: int) -> GenderedQuery:
        query_id, text = table.row(row)
        words = tuple((word, value.get(word)) for word in tokens(text))
        return GenderedQuery(query_id, text, float(g[row]), words)

    positive, negative = np.flatnonzero(g > 0), np.flatnonzero(g < 0)
    positive = positive[np.argsort(-g[positive], kind="stable")]
    negative = negative[np.argsort(g[negative], kind="stable")]
    return (
        [shown(row) for row in positive[:count].tolist()],
        [shown(row) for row in negative[:count].tolist()],
    )


@dataclass(frozen=True)
class Scatter:
    """Queries as points, g(q) against g_q(L), with the line through them and the perfect engine's.

    `points` has the columns query_id, x, y and contribution.
    """

    points: pl.DataFrame
    line: Line | None
    perfect: Line | None


def scatter(measured: Reinforcement) -> Scatter:
    """Where the queries of a run stand (Figures 8 and 9 of the paper)."""
    fitted = measured.fitted
    if fitted is None or fitted.line is None:
        raise InputError(f"{measured.measure} of {measured.run} is undefined; there is no line to draw")
    points = pl.DataFrame(
        {
            "query_id": measured.query_ids,
            "x": fitted.x,
            "y": fitted.y,
            "contribution": fitted.contributions,
        }
    )
    perfect = measured.baseline_lines.get("perfect")
    return Scatter(points, fitted.line, None if perfect is None else perfect.line)
