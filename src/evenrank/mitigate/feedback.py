"""Bias-aware pseudo-relevance feedback at growing strength: how far does bias fall, and what does it cost?

A query that is expanded from documents which are relevant and not one-sided finds less one-sided documents
itself (A. Bigdeli, thesis, Section 4.1). Of the expanded queries: how many terms of each group they hold, and
with which weight (Section 4.1.3.3 and Tables 4.3 to 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.read import fingerprint, read_qrels, read_queries, read_table, refuse_after_fork
from evenrank.errors import InputError
from evenrank.measures.base import distance_from_ideal, is_bias, preferred_direction
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.inputs import get_tally
from evenrank.measures.results import Measurement, Measurements
from evenrank.mitigate.base import LAMBDAS, from_nothing
from evenrank.show.grid import Grid, Recorded
from evenrank.show.numbers import number, p_phrase
from evenrank.stats.rounding import round_significant
from evenrank.text.lexicon import lexicon as as_lexicon

if TYPE_CHECKING:
    from evenrank.rankers.base import Progress
    from evenrank.rankers.index import Index
    from evenrank.text.matcher import Source

BIAS = ("ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10")
"""The three bias measures of the thesis' Tables 4.1 and 4.2."""
UTILITY = ("AP", "nDCG@10", "RR@10")
TIED = 1e-9
"""A query is tied if its value changes by no more than this."""
COLUMNS = ("query_id", "term", "weight")


@dataclass(frozen=True, eq=False)
class Feedback:
    """RM3, bias-aware above 0, which searches anew: strengths are λ. A :class:`Mitigation`."""

    index: Any
    queries: pl.DataFrame
    ranker: str = "bm25"
    settings: Mapping[str, Any] = field(default_factory=dict)
    given: Sequence[float] | None = None
    depth: int = 1000
    name = "feedback"

    def strengths(self) -> list[float]:
        """Those given, or λ by tenths."""
        return from_nothing(self.given or LAMBDAS)

    def ranker_at(self, strength: float) -> Any:
        """The ranker with this λ."""
        from evenrank.rankers.registry import make

        name = f"{self.ranker.removesuffix('+rm3')}+rm3"
        return make(name, index=self.index, **{**self.settings, "bias_lambda": strength})

    def apply(self, strength: float) -> pl.DataFrame:
        """The run of the expanded queries."""
        run: pl.DataFrame = self.ranker_at(strength).rank(self.queries, depth=self.depth)
        return run


def feedback(
    index: Index | str | PathLike[str],
    queries: Any,
    *,
    qrels: Any = None,
    ranker: str = "bm25",
    lambdas: Sequence[float] = (0, *LAMBDAS),
    lexicon: Any = None,
    tally: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    dictionary: Any = None,
    depth: int = 1000,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> FeedbackSweep:
    """RM3 at each λ, measured and compared with λ = 0: less biased expansions, step by step.

    Parameters
    ----------
    index
        An index with stored text, or its path.
    queries, qrels
        The queries; and judgments, without which only bias is measured.
    ranker
        The two searches: ``bm25`` or ``qld``.
    lambdas
        Strengths between 0 and 1; 0, plain RM3, is always among them.
    lexicon, tally
        The words of each group, or the tally of the collection.
    measures
        Without them the three bias measures of the thesis, ``ARaB@10`` by ``tf`` and ``boolean`` and
        ``LIWC@10``; with qrels also AP, nDCG@10, RR@10.
    dictionary
        Words of the measure LIWC.
    depth
        Length of the lists.
    confidence, resamples, seed
        Of the intervals, as in :func:`evenrank.measure`.
    settings
        Of the ranker: ``fb_docs``, ``fb_terms``, ``alpha``, ``estimator``, ``magnitude``, ``k1`` and others,
        see :func:`evenrank.rankers.feedback.rm3`.
    """
    from evenrank.rankers.index import Index
    from evenrank.rankers.registry import make
    from evenrank.rankers.registry import settings as known_settings

    index = Index.open(index)
    requested = read_queries(queries)
    judged = None if qrels is None else read_qrels(qrels)
    wanted = listed_measures(measures or [*(() if judged is None else UTILITY), *BIAS])
    for each in wanted:
        if reference := getattr(each, "REFERENCE", ""):
            raise InputError(f"{each} has to be compared with {reference}; feedback needs another measure")
    by_dictionary = settings.get("magnitude") == "liwc"
    counted = get_tally(tally, index.docs, None if by_dictionary else lexicon)
    words = {"lexicon": lexicon} if by_dictionary else {"tally": counted}
    strengths = sorted({0.0, *map(float, lambdas)})
    method = Feedback(index, requested, ranker, {**settings, **words}, strengths, depth)
    rankers = {strength: method.ranker_at(strength) for strength in strengths}
    name = ranker.removesuffix("+rm3")
    own = {key: settings[key] for key in known_settings(name) if settings.get(key) is not None}
    plain = make(name, index=index, **own).rank(requested, depth=depth)
    if plain.is_empty():
        raise InputError("nothing was found for any query; are they in the language of the documents?")

    def stem(word: str) -> str | None:
        """A word as the index spells it, if it is one term there."""
        terms = index.analyzer.terms(word)
        return terms[0] if len(terms) == 1 else None

    groups_of = counted.lexicon or "rekabsaz2020"
    steps = {}
    for strength, model in rankers.items():
        run = model.rank(requested, depth=depth)
        expanded = expanded_queries(model.expand(requested))
        steps[strength] = Step(run, expanded, gendered_terms(expanded, groups_of, stem=stem))
        if progress is not None:
            progress(len(steps), len(strengths))
    alone = f"{name} alone"
    return FeedbackSweep(
        ranker=name,
        steps=steps,
        measured=measure(
            {alone: plain, **{f"{strength:g}": step.run for strength, step in steps.items()}},
            wanted,
            tally=counted,
            docs=index.docs,
            queries=requested,
            qrels=judged,
            dictionary=dictionary,
            background=plain if any(is_bias(m) and "background" in m.NEEDS for m in wanted) else None,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        ),
        queries=requested,
        provenance={
            "evenrank": evenrank.__version__,
            "queries": fingerprint([requested]),
            **({} if judged is None else {"qrels": fingerprint([judged])}),
            "ranker": rankers[strengths[-1]].describe(),
            "depth": depth,
        },
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One λ: its run, its expanded queries, and the gendered terms in them."""

    run: pl.DataFrame
    expanded: pl.DataFrame
    terms: pl.DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackSweep(Recorded):
    """Bias-aware feedback at several strengths.

    Attributes
    ----------
    steps
        By λ, 0 first: the run, the expanded queries, and the gendered terms in them.
    measured
        The measures of all runs: of the first search alone, and by λ: ``measured["0.5", "ARaB@10"]``.
    provenance
        What it was made from and how.
    """

    ranker: str
    steps: dict[float, Step]
    measured: Measurements
    queries: pl.DataFrame
    provenance: dict[str, Any]

    @property
    def shown(self) -> float:
        """The λ whose expanded queries are shown: 0.5 if it was tried, else the largest."""
        return 0.5 if 0.5 in self.steps else max(self.steps)

    def per_query(self, measure: str | Measure = "ARaB@10", *, lambda_: float = 0.5) -> pl.DataFrame:
        """How much each query gained against plain feedback, best first: Figures 4.4 to 4.7 of the thesis.

        Columns: ``query_id``, ``before``, ``after`` (absolute for RaB, ARaB and LIWC) and ``gain``, positive
        where the measure got better.
        """
        gains = _gains(self.measured["0", measure], self.measured[f"{lambda_:g}", measure])
        return gains.sort("gain", descending=True, maintain_order=True)

    def side_by_side(self, lambda_: float = 0.5, *, top: int = 10) -> pl.DataFrame:
        """Queries whose expansion lost most weight in gendered terms, both expansions: Table 4.5.

        Columns: ``query_id, text, before, after`` (gendered terms in brackets, with their weight) and
        ``removed``, the weight of gendered terms that the second no longer has.
        """
        before, after = self.steps[0], self.steps[lambda_]
        gendered = {*before.terms["term"], *after.terms["term"]}
        return side_by_side(before.expanded, after.expanded, gendered, self.queries, top=top)

    def frame(self) -> pl.DataFrame:
        """One row for each λ and measure.

        ``difference``, ``p`` and ``p_holm`` compare with λ = 0, query by query: paired t-test of |value| for
        RaB, ARaB and LIWC, corrected for the λs (Holm). ``reduction`` is (before − after) / before of the
        mean of a bias measure, in absolute value; ``abs_reduction`` that of the mean of absolute values.
        ``improved``, ``tied`` (within 1e-9) and ``hurt`` are shares of queries.
        """
        return pl.DataFrame(self._rows, infer_schema_length=None)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for strength, step in self.steps.items():
            for now in self.measured.runs[f"{strength:g}"]:
                row = {"lambda": strength, "measure": str(now.measure), "value": now.value}
                row |= {"low": now.low, "high": now.high, "abs": now.abs}
                row |= (
                    _compare(self.measured["0", now.measure], now) if strength else dict.fromkeys(_COMPARED)
                )
                weight = float(step.terms["weight"].sum())
                rows.append(row | {"gendered_terms": len(step.terms), "gendered_weight": weight})
        count = len(self.measured.runs["0"])
        for place in range(count):
            of_measure = rows[place::count]
            for row, p in zip(of_measure, stats.holm([row["p"] for row in of_measure]), strict=True):
                row["p_holm"] = p
        return rows

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict without the runs."""
        alone = next(iter(self.measured.runs.values()))
        return {
            "ranker": self.ranker,
            "first_stage": [{"measure": str(m.measure), "value": m.value, "abs": m.abs} for m in alone],
            "steps": self._rows,
            "side_by_side": {
                "lambda": self.shown,
                "queries": self.side_by_side(self.shown, top=5).to_dicts(),
            },
            "provenance": self.provenance,
        }

    def grid(self) -> Grid:
        """A row for each λ: values, means of absolute values of measures with a sign, how far they fell."""
        (alone, first), *runs = self.measured.runs.items()
        count = len(first)
        head = [cell for one in first for cell in _cells(one, {})]
        rows = [[alone, *(text for _, text in head), "", ""]]
        for place, ((label, measured), step) in enumerate(zip(runs, self.steps.values(), strict=True)):
            each = zip(measured, self._rows[count * place : count * (place + 1)], strict=True)
            cells = [text for one, row in each for _, text in _cells(one, row)]
            rows.append([label, *cells, f"{len(step.terms):,}", f"{step.terms['weight'].sum():.2f}"])
        return Grid(["λ", *(heading for heading, _ in head), "gendered terms", "weight"], rows)

    def remarks(self) -> list[str]:
        lines = [
            "mean over queries; fall %: (before − after) / before against λ = 0, of mean |·| if shown",
            "* significantly different from λ = 0 (paired t, Holm over the λs, 0.05)",
        ]
        signed = [m.measure for m in self.measured.runs["0"] if _is_signed(m.measure)][:1]
        for row in self._rows:
            if row["improved"] is not None and row["measure"] in map(str, signed):
                shares = (f"{row[name]:.0%} {name}" for name in ("improved", "tied", "hurt"))
                lines.append(
                    f"λ = {row['lambda']:g}: |{_short(signed[0])}| of queries {', '.join(shares)}; "
                    f"{number(row['difference'])}, {p_phrase(row['p_holm'])}"
                )
        return lines

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])


def _cells(one: Measurement, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Heading and text of what is shown of a measure at one λ."""
    signed = _is_signed(one.measure)
    star = "*" if row.get("p_holm") is not None and row["p_holm"] < 0.05 else ""
    if signed:
        cells = [
            (_short(one.measure), number(one.value, "+.3f")),
            ("mean |·|", number(one.abs, ".3f") + star),
        ]
    else:
        cells = [(_short(one.measure), number(one.value, ".3f") + star)]
    if preferred_direction(one.measure) != "high":
        fall = row.get("abs_reduction" if signed else "reduction")
        cells.append(("fall %", "" if fall is None else f"{100 * fall:.1f}"))
    return cells


_COMPARED = ("difference", "p", "p_holm", "reduction", "abs_reduction", "improved", "tied", "hurt")


def _compare(before: Measurement, after: Measurement) -> dict[str, Any]:
    """A measure beside its value at λ = 0; p is not yet corrected."""
    each = _gains(before, after)
    change, gain = stats.paired(each["after"].to_numpy(), each["before"].to_numpy()), each["gain"]
    higher = preferred_direction(after.measure) == "high"
    return {
        "difference": change.difference,
        "p": change.p,
        "p_holm": None,
        "reduction": None if higher else _reduction(before.value, after.value),
        "abs_reduction": _reduction(before.abs, after.abs),
        "improved": (gain > TIED).mean(),
        "tied": (gain.abs() <= TIED).mean(),
        "hurt": (gain < -TIED).mean(),
    }


def _gains(before: Measurement, after: Measurement) -> pl.DataFrame:
    """The queries that both have: how far from balance, where that is good, and by how much it got better."""
    query_ids, *values = before.beside(after)
    was, now = (distance_from_ideal(after.measure, each) for each in values)
    sign = 1 if preferred_direction(after.measure) == "high" else -1
    return pl.DataFrame({"query_id": query_ids, "before": was, "after": now, "gain": sign * (now - was)})


def _reduction(before: float | None, after: float | None) -> float | None:
    """(before − after) / before of two amounts of bias, each without its sign."""
    if before is None or after is None or before == 0:
        return None
    return (abs(before) - abs(after)) / abs(before)


def _is_signed(measure: Measure) -> bool:
    return bool(getattr(measure, "SIGNED", False))


def _short(measure: Measure) -> str:
    return str(measure).replace("magnitude=", "").replace("'", "")


# Expanded queries


def gendered_terms(
    expanded: Any, lexicon: Source = "rekabsaz2020", *, stem: Callable[[str], str | None] | None = None
) -> pl.DataFrame:
    """The terms of expanded queries that belong to a group: ``query_id, term, weight, group``.

    Fewer and lighter is less biased: a query that asks for *she* gets documents with *she*. A term that
    belongs to several groups names them all, as in ``female/male``.

    Parameters
    ----------
    expanded
        The expanded queries: a file (``query_id<TAB>term<TAB>weight``), or anything :func:`expanded_queries`
        takes.
    lexicon
        The words of each group.
    stem
        How the terms were made. Without it they are compared with the words as both are spelled, which is
        what the published tables count. With ``Stemmer.Stemmer("porter").stemWord`` the words are stemmed
        first, so that *boi*, the Porter stem of *boy*, counts as well.

    Examples
    --------
    >>> gendered_terms({"q": {"nurse": 0.7, "she": 0.2, "boy": 0.1}})["group"].to_list()
    ['female', 'male']
    """
    refuse_after_fork()
    words: dict[str, dict[str, None]] = {}
    prefixes: list[tuple[str, str]] = []
    for group, entries in as_lexicon(lexicon).groups.items():
        for entry in entries:
            if entry.endswith("*"):
                prefixes.append((entry[:-1], group))
            elif (term := entry if stem is None else stem(entry)) is not None:
                words.setdefault(term, {})[group] = None

    def groups(term: str) -> str | None:
        known = words.get(term) or {group: None for prefix, group in prefixes if term.startswith(prefix)}
        return "/".join(known) or None

    frame = expanded_queries(expanded)
    by_term = {term: groups(term) for term in frame["term"].unique()}
    named = pl.col("term").replace_strict(by_term, return_dtype=pl.String)
    return frame.with_columns(group=named).filter(pl.col("group").is_not_null())


def expanded_queries(x: Any) -> pl.DataFrame:
    """Expanded queries as a table: ``query_id``, ``term``, ``weight``.

    ``x`` is a file with these three columns between tabs, a frame that has them, or a dict
    ``{query_id: {term: weight}}``.
    """
    if isinstance(x, Mapping):
        rows = [(query, term, float(weight)) for query, terms in x.items() for term, weight in terms.items()]
        schema = dict(zip(COLUMNS, (pl.String, pl.String, pl.Float64), strict=True))
        return pl.DataFrame(rows, schema=schema, orient="row")
    table = read_table(x, {name: (name,) for name in COLUMNS}, layouts=[list(COLUMNS)])
    return pl.DataFrame([table.ids("query_id"), table.texts("term"), table.numbers("weight")])


def side_by_side(
    before: pl.DataFrame,
    after: pl.DataFrame,
    gendered: set[str],
    queries: pl.DataFrame | None = None,
    *,
    top: int = 10,
) -> pl.DataFrame:
    """The queries with gendered terms in either expansion, those that lost most weight of them first."""
    texts = {} if queries is None else dict(queries.select("query_id", "text").iter_rows())
    rows = []
    was, now = _by_query(before), _by_query(after)
    for query, terms in was.items():
        sides = [terms, now.get(query, [])]
        weights = [[weight for term, weight in side if term in gendered] for side in sides]
        if any(weights):
            removed = sum(weights[0]) - sum(weights[1])
            shown = (
                " ".join(f"[{term} {weight:.3f}]" if term in gendered else term for term, weight in side)
                for side in sides
            )
            rows.append((query, texts.get(query, ""), *shown, removed))
    rows.sort(key=lambda row: -round_significant(row[-1]))
    columns = dict.fromkeys(("query_id", "text", "before", "after"), pl.String) | {"removed": pl.Float64}
    return pl.DataFrame(rows[:top], schema=columns, orient="row")


def _by_query(expanded: pl.DataFrame) -> dict[str, list[tuple[str, float]]]:
    """The terms of each query, the heaviest first."""
    result: dict[str, list[tuple[str, float]]] = {}
    for query, term, weight in expanded.select(COLUMNS).iter_rows():
        result.setdefault(query, []).append((term, weight))
    for terms in result.values():
        terms.sort(key=lambda each: -round_significant(each[1]))
    return result
