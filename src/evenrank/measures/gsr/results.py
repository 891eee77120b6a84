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
from evenrank.data.read import read_queries
from evenrank.errors import InputError
from evenrank.measures.evaluate import labels_of, left_out
from evenrank.measures.explain import Attribution, largest_first, summed
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import Ints, Line
from evenrank.measures.gsr.study import Fitted, Study, cut
from evenrank.measures.results import Measurement, Options, Summary
from evenrank.text.tokens import tokens

if TYPE_CHECKING:
    from evenrank.measures.gsr.measure import StereotypeReinforcement
    from evenrank.measures.inputs import Inputs


EQUAL = "all queries are equally gendered"
"""Why no line can be fitted."""


@dataclass(frozen=True, eq=False)
class Reinforcement(Measurement):
    """GSR of one run. Values by query are contributions, for attribution and not for intervals.

    Attributes
    ----------
    fitted
        The genderedness of queries (`x`) and lists (`y`), and the line through them, with r and its
        standard error.
    baselines
        GSR of the perfect engine (all and only the relevant documents, if qrels are given) and of
        documents drawn at random.
    """

    fitted: Fitted | None = None
    others: Callable[[], dict[str, Summary]] = dict
    lines: Callable[[], dict[str, Fitted]] = dict

    @cached_property
    def baselines(self) -> dict[str, Summary]:
        return self.others()

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
        """(GSR − GSR of the perfect engine) / GSR of the perfect engine, which is cut at the same depth.

        None where the perfect engine's is not above 0: then there is no stereotype in the judgments for
        others to exceed.
        """
        perfect = self.baselines["perfect"].value if "perfect" in self.baselines else None
        if self.value is None or perfect is None or perfect <= 0:
            return None
        return (self.value - perfect) / perfect

    @property
    def points(self) -> pl.DataFrame:
        """The queries as points (Figures 8 and 9 of the paper): query_id, x, y and contribution."""
        if self.fitted is None or self.line is None:
            raise InputError(f"{self.measure} of {self.run} is undefined; there is no line to draw")
        ids, contributions = self.query_ids, self.fitted.contributions
        return pl.DataFrame(
            {"query_id": ids, "x": self.fitted.x, "y": self.fitted.y, "contribution": contributions}
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
        return super().to_dict(per_query) | about


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
    other_labels = [other for other in label.drop_nulls().unique().sort().to_list() if other != only]
    deepest = np.max([m.depths(study.relevant, len(label)) for m in measures], axis=0)
    lists = study.ranked(name, deepest)
    ranked = run.filter(pl.col("rank") == 1)["query_id"].to_list()
    results: list[Measurement] = []
    for measure in measures:
        depths, discount = measure.depths(study.relevant, len(label)), measure["discount"]
        top = cut(lists, depths)
        fitted = study.fitted(top, discount, chosen)
        defined = fitted.line is not None
        ids = study.query_ids.gather(fitted.queries if defined else [])
        subsets = {}
        if options.only is None:
            for other in other_labels:
                same_label = (label == other).fill_null(False).to_numpy()
                subsets[other] = study.fitted(top, discount, same_label).summary(options)
        results.append(
            Reinforcement(
                **vars(fitted.summary(options)),
                run=name,
                measure=measure,
                left_out=left_out(
                    dict.fromkeys([*study.query_ids.to_list(), *ranked]),
                    set(ids.to_list()),
                    labels=labels,
                    only=only,
                    otherwise="the query has no text",
                    reasons=_reasons(study, depths, set(ranked), fitted),
                ),
                query_ids=ids,
                values=fitted.contributions if defined else np.zeros(0),
                part_values=fitted.parts if defined else {},
                only=None if labels is None else only,
                subsets=subsets,
                notes=_notes(name, study, fitted, inputs),
                attribution=attribution(study, fitted) if options.explain and defined else None,
                fitted=fitted,
                others=partial(study.baselines, measure, chosen, options),
                lines=partial(study.baseline_lines, measure, chosen),
            )
        )
    return results


def _reasons(study: Study, depths: Ints, ranked: set[str], fitted: Fitted) -> dict[str, str]:
    """Return for each query why it has no value, should it have none; the first reason that applies."""
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
        ranked = study.lists[name]["doc_id"]
        absent = int((~ranked.is_in(study.doc_ids.implode())).sum())
        if absent:
            action = "skipped" if inputs.missing == "skip" else "counted as having no value"
            notes.append(
                f"{absent:,} of {len(ranked):,} ranked documents are not in the collection: {action}"
            )
    if fitted.line is None and len(fitted.x):
        reason = "only one query has a value" if len(fitted.x) == 1 else EQUAL
        notes.append(f"undefined: {reason}, and no line can be fitted")
    absent = 0 if study.perfect is None else int((study.perfect["doc_row"] < 0).sum())
    if absent:
        notes.append(f"{absent:,} relevant documents are not in the collection")
    if inputs.ties == "expected":
        notes.append("tied documents stay in the order of their ids: GSR has no mean over orders")
    return tuple(notes)


def attribution(study: Study, fitted: Fitted) -> Attribution:
    """What each word, document and query adds to the slope; exact, and each frame adds up to it."""
    assert fitted.line is not None
    texts = study.texts
    held = ~np.isnan(fitted.entries["value"].to_numpy())
    owner, rows = fitted.owner[held], fitted.entries["doc_row"].to_numpy()[held]
    by_word = texts.word_shares(
        study.query_texts,
        study.words,
        fitted.queries[owner],
        rows,
        fitted.coefficients[held],
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
        pl.DataFrame(
            {
                "doc_id": study.doc_ids.gather(rows),
                "queries": 1.0,
                "contribution": fitted.shares[held],
            }
        ),
        ["doc_id"],
        ["queries", "contribution"],
    ).with_columns(pl.col("queries").cast(pl.Int64))
    queries = pl.DataFrame(
        {
            "query_id": study.query_ids.gather(fitted.queries),
            "contribution": fitted.contributions / len(fitted.x),
        }
    )
    return Attribution(
        value=fitted.line.slope,
        words=largest_first(words, ["word"]),
        documents=largest_first(documents, ["doc_id"]),
        queries=largest_first(queries, ["query_id"]),
    )


def compare_reinforcement(
    first: Reinforcement, second: Reinforcement, *, confidence: float = 0.95, seed: int = 0
) -> stats.Comparison:
    """Compare how much two runs reinforce stereotypes, over the queries that both have.

    The difference is the slope of the differences between the lists. The interval draws queries, the same
    for both runs, and refits both slopes. p is that of a permutation test in which the two lists of a query
    change places.

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
    x, difference = first.fitted.x[mine], first.fitted.y[mine] - second.fitted.y[theirs]
    if not np.array_equal(x, second.fitted.x[theirs]):
        raise InputError("the two were measured with different queries or vectors; measure them in one call")
    line = slope.fit(x, difference)
    if line is None or first.line is None or second.line is None:
        return stats.Comparison(None, None, None, None, None, "", "permutation", len(x))
    interval = stats.bootstrap(slope.slopes, x, difference, confidence=confidence, seed=seed)
    terms = (x - x.mean()) * difference
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


def most_gendered(
    queries: Any, vectors: Any = None, *, count: int = 10, pairs: Any = None
) -> tuple[list[GenderedQuery], list[GenderedQuery]]:
    """Return the queries that lean most to the positive (female) side, and to the negative; furthest first.

    Figure 7 of the paper. There are fewer than `count` where fewer queries lean to a side. Ties keep the
    order of the queries.
    """
    from evenrank.vectors.texts import gendered_texts

    table, texts = read_queries(queries), gendered_texts(vectors, pairs=pairs)
    g = texts.of_texts(table["text"].to_list())
    value = dict(zip(texts.vocabulary, texts.values.tolist(), strict=True))

    def gendered_query(row: int) -> GenderedQuery:
        query_id, text = table.row(row)
        words = tuple((word, value.get(word)) for word in tokens(text))
        return GenderedQuery(query_id, text, float(g[row]), words)

    def most(sign: int) -> list[GenderedQuery]:
        order = np.argsort(-sign * g, kind="stable")
        return [gendered_query(row) for row in order[sign * g[order] > 0][:count].tolist()]

    return most(1), most(-1)
