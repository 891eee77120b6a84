"""Bias-aware pseudo-relevance feedback at growing strength: how far does bias fall, and what does it cost?

A query that is expanded from documents which are relevant and not one-sided finds less one-sided documents
itself (A. Bigdeli, thesis, Section 4.1). Of the expanded queries: how many terms of each group they hold, and
with which weight (Section 4.1.3.3 and Tables 4.3 to 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.files import writing
from evenrank.data.read import fingerprint, read_qrels, read_queries, read_table, refuse_after_fork
from evenrank.errors import InputError
from evenrank.measures.base import distance_from_ideal, is_bias, preferred_direction
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.inputs import get_tally
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurement
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
"""Changes of a query's value below this are none."""
_SCHEMA = {"query_id": pl.String, "term": pl.String, "weight": pl.Float64}
COLUMNS = list(_SCHEMA)
Stem = Callable[[str], str | None]


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
        """What the expanded queries find."""
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
    tokenizer: str | None = None,
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
    lexicon, tokenizer, tally
        The words of each group and how text becomes words; or the tally of the collection.
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
    counted = get_tally(tally, index.docs, None if by_dictionary else lexicon, tokenizer)
    words = {"lexicon": lexicon, "tokenizer": tokenizer or "words"} if by_dictionary else {"tally": counted}
    strengths = sorted({0.0, *map(float, lambdas)})
    method = Feedback(index, requested, ranker, {**settings, **words}, strengths, depth)
    rankers = {strength: method.ranker_at(strength) for strength in strengths}
    name = ranker.removesuffix("+rm3")
    own = {key: settings[key] for key in known_settings(name) if settings.get(key) is not None}
    plain = make(name, index=index, **own).rank(requested, depth=depth)
    if plain.is_empty():
        raise InputError("nothing was found for any query; are they in the language of the documents?")
    given: dict[str, Any] = {
        "tally": counted,
        "docs": index.docs,
        "queries": requested,
        "qrels": judged,
        "dictionary": dictionary,
        "background": plain if any(is_bias(m) and "background" in m.NEEDS for m in wanted) else None,
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
    }

    def measured(run: pl.DataFrame) -> tuple[Measurement, ...]:
        return next(iter(measure({"run": run}, wanted, **given).runs.values()))

    def stem(word: str) -> str | None:
        """A word as the index spells it, if it is one term there."""
        terms = index.analyzer.terms(word)
        return terms[0] if len(terms) == 1 else None

    groups_of = counted.lexicon or "rekabsaz2020"
    steps = []
    for strength, model in rankers.items():
        run = model.rank(requested, depth=depth)
        expanded = expanded_queries(model.expand(requested))
        terms = gendered_terms(expanded, groups_of, stemmer=stem)
        steps.append(Step(strength, run, expanded, terms, measured(run)))
        if progress is not None:
            progress(len(steps), len(strengths))
    return FeedbackSweep(
        ranker=name,
        steps=tuple(steps),
        first=measured(plain),
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
    """One λ: its run, its expanded queries, the gendered terms in them, and what was measured."""

    lambda_: float
    run: pl.DataFrame
    expanded: pl.DataFrame
    terms: GenderedTerms
    measurements: tuple[Measurement, ...]

    def __getitem__(self, measure: str | Measure) -> Measurement:
        wanted = parse(measure)
        for each in self.measurements:
            if each.measure == wanted:
                return each
        raise InputError(
            f"{wanted} was not measured; {', '.join(str(m.measure) for m in self.measurements)} were"
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackSweep(Recorded):
    """Bias-aware feedback at several strengths.

    Attributes
    ----------
    steps
        One for each λ, λ = 0 first; iteration goes over them.
    first
        What was measured of the first search, without any feedback.
    provenance
        What it was made from and how.
    """

    ranker: str
    steps: tuple[Step, ...]
    first: tuple[Measurement, ...]
    queries: pl.DataFrame
    provenance: dict[str, Any]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def step(self, lambda_: float) -> Step:
        """The step of this λ."""
        for step in self.steps:
            if abs(step.lambda_ - lambda_) < TIED:
                return step
        tried = ", ".join(f"{step.lambda_:g}" for step in self.steps)
        raise InputError(f"λ = {lambda_:g} was not tried; {tried} were")

    @property
    def shown(self) -> float:
        """The λ whose expanded queries are shown: 0.5 if it was tried, else the largest."""
        tried = [step.lambda_ for step in self.steps]
        return 0.5 if 0.5 in tried else tried[-1]

    def per_query(self, measure: str | Measure = "ARaB@10", *, lambda_: float = 0.5) -> pl.DataFrame:
        """How much each query gained against plain feedback, best first: Figures 4.4 to 4.7 of the thesis.

        Columns: ``query_id``, ``before``, ``after`` (absolute for RaB, ARaB and LIWC) and ``gain``, positive
        where the measure got better.
        """
        return _gains(self.steps[0][measure], self.step(lambda_)[measure]).sort(
            "gain", descending=True, maintain_order=True
        )

    def harmless(self, measure: str | Measure, *, alpha: float = 0.05) -> float:
        """The largest λ up to which no λ makes the measure significantly worse, after Holm's correction."""
        wanted = self.step(0)[measure].measure
        sign = 1 if preferred_direction(wanted) == "high" else -1
        reached = 0.0
        for row in self.frame().filter(measure=str(wanted)).tail(-1).iter_rows(named=True):
            if row["p_holm"] is not None and row["p_holm"] < alpha and sign * row["difference"] < 0:
                break
            reached = row["lambda"]
        return reached

    def side_by_side(self, lambda_: float = 0.5, *, top: int = 10) -> pl.DataFrame:
        """Queries whose expansion lost most weight in gendered terms, both expansions: Table 4.5.

        Columns: ``query_id, text, before, after`` (gendered terms in brackets, with their weight) and
        ``removed``, the weight of gendered terms that the second no longer has.
        """
        before, after = self.steps[0], self.step(lambda_)
        hits = pl.concat([before.terms.hits, after.terms.hits]).select("term", "group")
        return side_by_side(before.expanded, after.expanded, dict(hits.iter_rows()), self.queries, top=top)

    def frame(self) -> pl.DataFrame:
        """One row for each step and measure.

        ``difference``, ``p`` and ``p_holm`` compare with λ = 0, query by query: paired t-test of |value| for
        RaB, ARaB and LIWC, corrected for the λs (Holm). ``reduction`` is (before − after) / before of the
        mean of a bias measure, in absolute value; ``abs_reduction`` that of the mean of absolute values.
        ``improved``, ``tied`` (within 1e-9) and ``hurt`` are shares of queries.
        """
        return pl.DataFrame(self._rows, infer_schema_length=None)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        before = self.steps[0].measurements
        rows: list[list[dict[str, Any]]] = []
        for step in self.steps:
            rows.append([])
            for was, now in zip(before, step.measurements, strict=True):
                row = {"lambda": step.lambda_, "measure": str(now.measure), "value": now.value}
                row |= {"low": now.low, "high": now.high, "abs": now.abs}
                row |= dict.fromkeys(_COMPARED) if step is self.steps[0] else _compare(was, now)
                row |= {"gendered_terms": step.terms.number, "gendered_weight": step.terms.weight}
                rows[-1].append(row)
        for of_measure in zip(*rows, strict=True):
            adjusted = stats.holm([row["p"] for row in of_measure])
            for row, p in zip(of_measure, adjusted, strict=True):
                row["p_holm"] = p
        return [row for of_step in rows for row in of_step]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict without the runs."""
        first = [{"measure": str(m.measure), "value": m.value, "abs": m.abs} for m in self.first]
        steps = [
            {
                "lambda": step.lambda_,
                "measures": [
                    {key: value for key, value in row.items() if not key.startswith(("lambda", "gendered"))}
                    for row in self._rows_of(step)
                ],
                "gendered_terms": step.terms.to_dict(),
            }
            for step in self.steps
        ]
        pairs = self.side_by_side(self.shown, top=5).to_dicts()
        return {
            "ranker": self.ranker,
            "first_stage": first,
            "steps": steps,
            "side_by_side": {"lambda": self.shown, "queries": pairs},
            "provenance": self.provenance,
        }

    def grid(self) -> Grid:
        """A row for each λ: values, means of absolute values of measures with a sign, how far they fell."""
        first = [cell for one in self.first for cell in _cells(one, {})]
        rows = [[f"{self.ranker} alone", *(text for _, text in first), "", ""]]
        for step in self.steps:
            each = zip(step.measurements, self._rows_of(step), strict=True)
            cells = [text for one, row in each for _, text in _cells(one, row)]
            rows.append([f"{step.lambda_:g}", *cells, f"{step.terms.number:,}", f"{step.terms.weight:.2f}"])
        return Grid(["λ", *(heading for heading, _ in first), "gendered terms", "weight"], rows)

    def _rows_of(self, step: Step) -> list[dict[str, Any]]:
        return [row for row in self._rows if row["lambda"] == step.lambda_]

    def remarks(self) -> list[str]:
        lines = [
            "mean over queries; fall %: (before − after) / before against λ = 0, of mean |·| if shown",
            "* significantly different from λ = 0 (paired t, Holm over the λs, 0.05)",
        ]
        signed = [m.measure for m in self.first if _is_signed(m.measure)][:1]
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
    """A measure beside its value without debiasing; p is not yet corrected."""
    each = _gains(before, after)
    change, gain = stats.paired(each["after"].to_numpy(), each["before"].to_numpy()), each["gain"].to_numpy()
    higher = preferred_direction(after.measure) == "high"
    shares: dict[str, float | None] = dict.fromkeys(("improved", "tied", "hurt"))
    if len(gain):
        shares = {
            "improved": float((gain > TIED).mean()),
            "tied": float((np.abs(gain) <= TIED).mean()),
            "hurt": float((gain < -TIED).mean()),
        }
    return {
        "difference": change.difference,
        "p": change.p,
        "p_holm": None,
        "reduction": None if higher else _reduction(before.value, after.value),
        "abs_reduction": _reduction(before.abs, after.abs),
        **shares,
    }


def _gains(before: Measurement, after: Measurement) -> pl.DataFrame:
    """The queries that both have: how far from balance, where that is good, and by how much it got better."""
    was, now = before.per_query(), after.per_query()
    ids = [query for query in was if query in now]
    values = np.array([[was[query], now[query]] for query in ids]).reshape(-1, 2)
    values = distance_from_ideal(after.measure, values)
    sign = 1 if preferred_direction(after.measure) == "high" else -1
    columns = {"before": values[:, 0], "after": values[:, 1], "gain": sign * (values[:, 1] - values[:, 0])}
    return pl.DataFrame({"query_id": ids, **columns}, schema_overrides={"query_id": pl.String})


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


@dataclass(frozen=True, eq=False)
class GenderedTerms:
    """The terms of expanded queries that belong to a group.

    Attributes
    ----------
    hits
        One row for each such term: ``query_id``, ``term``, ``weight``, ``group``. A stem that belongs to
        several groups names them all, as in ``female/male``.
    queries, terms
        Number of expanded queries that were looked at, and of their terms.
    """

    hits: pl.DataFrame
    queries: int
    terms: int

    @property
    def number(self) -> int:
        """How many terms belong to a group (Tables 4.3 and 4.4: number of biased terms)."""
        return len(self.hits)

    @property
    def weight(self) -> float:
        """What these terms weigh together (sum of biased term weights)."""
        return float(self.hits["weight"].sum())

    def by_group(self) -> dict[str, dict[str, float]]:
        """Number and weight for each group."""
        frame = self.hits.group_by("group").agg(number=pl.len(), weight=pl.col("weight").sum()).sort("group")
        return {group: {"number": count, "weight": weight} for group, count, weight in frame.iter_rows()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "weight": self.weight,
            "groups": self.by_group(),
            "queries": self.queries,
            "queries_with_any": self.hits["query_id"].n_unique(),
            "terms": self.terms,
        }


def gendered_terms(
    expanded: Any,
    lexicon: Source = "rekabsaz2020",
    *,
    stemmer: str | Stem | None = None,
) -> GenderedTerms:
    """How many terms of expanded queries belong to a group, and their total weight.

    Fewer and lighter is less biased: a query that asks for *she* gets documents with *she*.

    Parameters
    ----------
    expanded
        The expanded queries: a file (``query_id<TAB>term<TAB>weight``), or anything :func:`expanded_queries`
        takes.
    lexicon
        The words of each group.
    stemmer
        How the terms were made. None: they are compared with the words as both are spelled, which is what
        the published tables count. A name that PyStemmer knows (``porter``) or a function: the words are
        stemmed in the same way first, so that *boi*, the Porter stem of *boy*, counts as well.

    Examples
    --------
    >>> found = gendered_terms({"q": {"nurs": 0.7, "she": 0.2, "boi": 0.1}}, stemmer="porter")
    >>> found.number, round(found.weight, 3), found.by_group()["female"]["number"]
    (2, 0.3, 1)
    """
    refuse_after_fork()
    frame = expanded_queries(expanded)
    groups = term_groups(frame["term"].unique().to_list(), lexicon, stemmer=stemmer)
    hits = frame.with_columns(
        group=pl.col("term").replace_strict(groups, default=None, return_dtype=pl.String)
    )
    return GenderedTerms(hits.filter(pl.col("group").is_not_null()), frame["query_id"].n_unique(), len(frame))


def term_groups(
    terms: Iterable[str], lexicon: Source = "rekabsaz2020", *, stemmer: str | Stem | None = None
) -> dict[str, str]:
    """The group of each term that belongs to one; see :func:`gendered_terms`."""
    stem = _stem(stemmer)
    words: dict[str, dict[str, None]] = {}
    prefixes: list[tuple[str, str]] = []
    for group, entries in as_lexicon(lexicon).groups.items():
        for entry in entries:
            if entry.endswith("*"):
                prefixes.append((entry[:-1], group))
            elif (term := stem(entry)) is not None:
                words.setdefault(term, {})[group] = None
    result: dict[str, str] = {}
    for term in terms:
        groups = words.get(term) or {group: None for prefix, group in prefixes if term.startswith(prefix)}
        if groups:
            result[term] = "/".join(groups)
    return result


def _stem(stemmer: str | Stem | None) -> Stem:
    if stemmer is None:
        return lambda word: word
    if callable(stemmer):
        return stemmer
    import Stemmer

    try:
        return Stemmer.Stemmer(stemmer).stemWord
    except KeyError as error:
        names = ", ".join(Stemmer.algorithms())
        raise InputError(f"there is no stemmer {stemmer!r}; one of {names}") from error


def expanded_queries(x: Any) -> pl.DataFrame:
    """Expanded queries as a table: ``query_id``, ``term``, ``weight``.

    ``x`` is a file with these three columns between tabs, a frame that has them, or a dict
    ``{query_id: {term: weight}}``.
    """
    if isinstance(x, Mapping):
        rows = [(query, term, float(weight)) for query, terms in x.items() for term, weight in terms.items()]
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    table = read_table(x, {name: (name,) for name in COLUMNS}, layouts=[COLUMNS])
    return pl.DataFrame([table.ids("query_id"), table.texts("term"), table.numbers("weight")])


def write_expanded(expanded: Any, path: str | PathLike[str]) -> None:
    """Write ``query_id<TAB>term<TAB>weight``, whole or not at all."""
    frame = expanded_queries(expanded)
    with writing(Path(path)) as file:
        file.write(frame.write_csv(include_header=False, separator="\t", quote_style="never").encode())


def side_by_side(
    before: pl.DataFrame,
    after: pl.DataFrame,
    groups: Mapping[str, str],
    queries: pl.DataFrame | None = None,
    *,
    top: int | None = 10,
) -> pl.DataFrame:
    """The queries with gendered terms in either expansion, those that lost most weight of them first.

    Parameters
    ----------
    before, after
        Expanded queries: ``query_id``, ``term``, ``weight``.
    groups
        The group of each term that belongs to one.
    queries
        Their texts, if known.
    top
        How many at most; None for all.
    """
    texts = {} if queries is None else dict(queries.select("query_id", "text").iter_rows())
    rows = []
    was, now = _by_query(before), _by_query(after)
    for query, terms in was.items():
        sides = [terms, now.get(query, [])]
        weights = [[weight for term, weight in side if term in groups] for side in sides]
        if any(weights):
            removed = sum(weights[0]) - sum(weights[1])
            shown = (
                " ".join(f"[{term} {weight:.3f}]" if term in groups else term for term, weight in side)
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
