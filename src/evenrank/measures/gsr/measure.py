"""GSR: do lists speak the gendered language that their queries suggest?

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement: Measuring the Gender Bias
Conveyed by Ranking Algorithms, Information Processing & Management 57(6), 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank import stats
from evenrank.data.read import read_queries
from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, Param, register
from evenrank.measures.compare import Change
from evenrank.measures.evaluate import left_out, subset_masks
from evenrank.measures.explain import Attribution, largest_first, summed
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.slope import DISCOUNTS, Fitted, Line, SlopeSummary
from evenrank.measures.gsr.study import Study, cut
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import WHOLE_LIST, Ints, ranked_queries
from evenrank.measures.results import Measurement, Options
from evenrank.text.tokens import tokens

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

    fitted: Fitted = field(kw_only=True)
    line: Line | None = None
    others: Callable[[], dict[str, SlopeSummary]] = dict

    @cached_property
    def baselines(self) -> dict[str, SlopeSummary]:
        return self.others()

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
        if self.line is None:
            raise InputError(f"{self.measure} of {self.run} is undefined; there is no line to draw")
        columns = {"x": self.fitted.x, "y": self.fitted.y, "contribution": self.values}
        return pl.DataFrame({"query_id": self.query_ids, **columns})

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        line = self.line
        about = {
            "r": None if line is None or math.isnan(line.r) else line.r,
            "p": None if line is None else line.p,
            "error": None if line is None else line.error,
            "relative": self.relative,
            **{name: baseline.to_dict() for name, baseline in self.baselines.items()},
        }
        return super().to_dict(per_query) | about


def _measurement(
    inputs: Inputs, study: Study, measure: Any, name: str, run: pl.DataFrame, options: Options
) -> Reinforcement:
    """GSR of a run, over all its queries unless `only` chooses some."""
    ranked = ranked_queries(run).to_list()
    labels, only = inputs.genders, options.only or "all"
    chosen, masks = subset_masks(study.query_ids, labels, only)
    depths = measure.depths(study.relevant, len(study.x))
    top = cut(study.lists[name], depths)
    fitted = study.fit(top, measure, chosen)
    defined = fitted.line is not None
    ids = study.query_ids.gather(fitted.queries if defined else [])
    return Reinforcement(
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
        subsets={}
        if options.only is not None
        else {other: study.fit(top, measure, mask).summary(options) for other, mask in masks.items()},
        notes=_notes(name, study, fitted, inputs.ties),
        attribution=attribution(study, fitted) if options.explain and defined else None,
        fitted=fitted,
        others=partial(study.baselines, measure, chosen, options),
    )


def _reasons(study: Study, depths: Ints, ranked: set[str], fitted: Fitted) -> dict[str, str]:
    """Return for each query without a value why it has none; the first reason that applies."""
    used = {*fitted.queries.tolist()}
    reasons = {}
    for row, query in enumerate(study.query_ids.to_list()):
        if row in used:
            reasons[query] = EQUAL
        elif np.isnan(study.x[row]):
            reasons[query] = "the query has no word with a value"
        elif depths[row] == 0:
            reasons[query] = "no relevant document"
        elif query not in ranked:
            reasons[query] = "nothing ranked"
        else:
            reasons[query] = "no ranked document has a value"
    return reasons


def _notes(name: str, study: Study, fitted: Fitted, ties: str) -> tuple[str, ...]:
    notes = []
    absent, total = study.absent[name]
    if absent:
        action = "skipped" if study.missing == "skip" else "counted as having no value"
        notes.append(f"{absent:,} of {total:,} ranked documents are not in the collection: {action}")
    if fitted.line is None and len(fitted.x):
        reason = "only one query has a value" if len(fitted.x) == 1 else EQUAL
        notes.append(f"undefined: {reason}, and no line can be fitted")
    absent = 0 if study.perfect is None else int((study.perfect.docs < 0).sum())
    if absent:
        notes.append(f"{absent:,} relevant documents are not in the collection")
    if ties == "expected":
        notes.append("tied documents stay in the order of their ids: GSR has no mean over orders")
    return tuple(notes)


def attribution(study: Study, fitted: Fitted) -> Attribution:
    """What each word, document and query adds to the slope; exact, and each frame adds up to it."""
    assert fitted.line is not None
    texts = study.texts
    held = ~np.isnan(fitted.entries.values)
    owner, rows, _, _ = fitted.entries.where(held)
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
            {"doc_id": study.doc_ids.gather(rows), "queries": 1.0, "contribution": fitted.shares[held]}
        ),
        ["doc_id"],
        ["queries", "contribution"],
    ).with_columns(pl.col("queries").cast(pl.Int64))
    ids = study.query_ids.gather(fitted.queries)
    queries = pl.DataFrame({"query_id": ids, "contribution": fitted.contributions / len(fitted.x)})
    return Attribution(
        value=fitted.line.slope,
        words=largest_first(words, ["word"]),
        documents=largest_first(documents, ["doc_id"]),
        queries=largest_first(queries, ["query_id"]),
    )


class StereotypeReinforcement(BiasMeasure):
    """Gender stereotype reinforcement: how far the language of the lists follows that of the queries.

    GSR = (1/(σ² N)) Σ_i (g(q_i) − μ_q)(g_qi(L_i) − μ_L): the slope of the least-squares line of the lists'
    genderedness on the queries'. g(q) is the mean cosine of the query's words with the gender direction;
    g_q(L) the mean over the list of its documents' genderedness without the query's words, the document
    at rank r weighing 1/log2(r + 1). Positive: female-leaning queries get female-leaning documents, and
    male-leaning ones male-leaning; 0: results do not depend on the leaning of the query; negative:
    lists run against the stereotype. It has no bounds; the relevant documents alone give a positive value
    wherever topics have a language of their own, so compare with the perfect engine.

    `GSR` looks at the top K_q documents, as many as the query has relevant ones, so that it compares
    with the perfect engine: it needs qrels. `GSR@k` looks at the top k and never at qrels. The two differ.

    The value of a query is its contribution (g(q_i) − μ_q)(g_qi(L_i) − μ_L)/σ²; their mean is GSR. Queries
    and documents without a word that has a value are left out, and counted.

    Fabris, Purpura, Silvello and Susto, IP&M 57(6), 2020, Eqs. 1 to 5.
    """

    __name__ = NAME = "GSR"
    SHORT_DESC = "Slope of the lists' genderedness on the queries'."
    MEANING = (
        "Whether results use the gendered language that their queries suggest: the slope of one on the "
        "other. A perfect engine is not at 0, so compare with its value."
    )
    INTERPRETATION = "above 0 follows the stereotype"
    REFERENCE = "a perfect engine"
    PREFERRED = "zero"
    NEEDS = frozenset({"docs", "queries", "genderedness"})
    ALTERNATIVES = {"qrels": "a depth, as in GSR@10"}  # noqa: RUF012
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(
            dtype=int, default=None, minimum=1, desc="how deep to look; unless given, the number of relevant"
        ),
        "discount": Param(
            dtype=str,
            choices=DISCOUNTS,
            default="log",
            desc="weight of a rank: 1/log2(r + 1), as the released code has it, or none",
        ),
        "stop_words": Param(
            dtype=str,
            choices=("glasgow", "indri"),
            default="glasgow",
            desc="words that do not count: Glasgow's 318, or the 418 of Indri that the released code has",
        ),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if self["cutoff"] is None:
            self.NEEDS = self.NEEDS | {"qrels"}

    def depth(self) -> int:
        return WHOLE_LIST if self["cutoff"] is None else int(self["cutoff"])

    def depths(self, relevant: Ints | None, queries: int) -> Ints:
        """The depth of each query; without a cut-off as many as it has relevant documents."""
        if self["cutoff"] is not None:
            return np.full(queries, self["cutoff"], np.int64)
        if relevant is None:
            raise InputError(f"{self} needs relevance judgments; give qrels, or {self.ALTERNATIVES['qrels']}")
        return relevant

    @staticmethod
    def measured(
        inputs: Inputs, measures: Sequence[Any], name: str, run: pl.DataFrame, options: Options
    ) -> list[Measurement]:
        """Measure a run; queries and documents are read once for all runs, for each list of stop words."""
        results: list[Measurement] = []
        for measure in measures:
            same = tuple(m for m in measures if m["stop_words"] == measure["stop_words"])
            study = inputs.cached((same, options.seed), partial(Study, inputs, same, options.seed))
            results.append(_measurement(inputs, study, measure, name, run, options))
        return results

    def compare(
        self, mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0
    ) -> Change:
        """Compare how much two runs, measured in one call, reinforce stereotypes, over the queries of both.

        The difference is the slope of the differences between the lists. The interval draws queries, the same
        for both runs, and refits both slopes. p is that of a permutation test in which the two lists of a
        query change places. The change has no values by query.
        """
        if not isinstance(mine, Reinforcement) or not isinstance(theirs, Reinforcement):
            raise InputError(f"there is nothing to compare; give two measurements of {self}")
        first, second = mine.fitted, theirs.fitted
        _, left, right = np.intersect1d(first.queries, second.queries, return_indices=True)
        x, difference = first.x[left], first.y[left] - second.y[right]
        if mine.measure != theirs.measure or not np.array_equal(x, second.x[right]):
            raise InputError("the two differ in measure, queries or vectors; measure them in one call")
        line = slope.fit(x, difference)
        result = stats.Comparison(None, None, None, None, None, "", "permutation", len(x))
        if line is not None and first.line is not None and second.line is not None:
            interval = stats.bootstrap(slope.slopes, x, difference, confidence=confidence, seed=seed)
            terms = (x - x.mean()) * difference
            p = stats.paired(terms, np.zeros(len(terms)), test="permutation", seed=seed).p
            result = stats.Comparison(
                line.slope, interval.low, interval.high, p, None, "", "permutation", len(x), line.slope
            )
        return Change(result, pl.Series("query_id", [], dtype=pl.String), np.zeros(0))


GSR = StereotypeReinforcement()
register(GSR)


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
