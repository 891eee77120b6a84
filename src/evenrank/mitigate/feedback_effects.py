"""What debiased feedback does: to the terms of the expanded queries, and to what is measured.

Expanded queries: how many terms of each group they hold, with which weight, and what changed (A. Bigdeli,
thesis, Section 4.1.3.3 and Tables 4.3 to 4.5). Measures: the change against plain feedback, and for how many
queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank import stats
from evenrank.data.files import writing
from evenrank.data.formats import text_lines
from evenrank.errors import InputError
from evenrank.measures.base import distance_from_ideal, preferred_direction
from evenrank.measures.results import Measurement
from evenrank.parallel import refuse_after_fork
from evenrank.stats.rounding import round_significant
from evenrank.text.lexicon import Lexicon, lexicon

if TYPE_CHECKING:
    from evenrank.text.matcher import Source

SCHEMA = pl.Schema({"query_id": pl.String, "term": pl.String, "weight": pl.Float64})
BOTH = "/"  # between the groups of a stem that belongs to several
Stem = Callable[[str], str | None]


@dataclass(frozen=True, eq=False)
class GenderedTerms:
    """The terms of expanded queries that belong to a group.

    Attributes
    ----------
    hits
        One row for each such term: ``query_id``, ``term``, ``weight``, ``group``. A stem that belongs to
        several groups names them all, as in ``female/male``.
    queries
        Number of expanded queries that were looked at.
    terms
        Number of their terms.
    """

    hits: pl.DataFrame
    queries: int
    terms: int

    @property
    def number(self) -> int:
        """How many terms belong to a group (Tables 4.3 and 4.4: number of biased terms)."""
        return len(self.hits)

    @cached_property
    def weight(self) -> float:
        """What these terms weigh together (sum of biased term weights)."""
        return float(self.hits["weight"].sum())

    @property
    def concerned(self) -> int:
        """How many queries have at least one."""
        return self.hits["query_id"].n_unique()

    def by_group(self) -> dict[str, dict[str, float]]:
        """Number and weight for each group."""
        frame = self.hits.group_by("group").agg(number=pl.len(), weight=pl.col("weight").sum()).sort("group")
        return {
            row["group"]: {"number": row["number"], "weight": row["weight"]}
            for row in frame.iter_rows(named=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "number": self.number,
            "weight": self.weight,
            "groups": self.by_group(),
            "queries": self.queries,
            "queries_with_any": self.concerned,
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
    return GenderedTerms(
        hits=hits.filter(pl.col("group").is_not_null()),
        queries=frame["query_id"].n_unique(),
        terms=len(frame),
    )


def term_groups(
    terms: list[str], source: Source = "rekabsaz2020", *, stemmer: str | Stem | None = None
) -> dict[str, str]:
    """The group of each term that belongs to one; see :func:`gendered_terms`."""
    words, prefixes = _spellings(lexicon(source), _stem(stemmer))
    result: dict[str, str] = {}
    for term in terms:
        groups = dict.fromkeys(words.get(term, ()))
        groups |= {group: None for prefix, group in prefixes if term.startswith(prefix)} if not groups else {}
        if groups:
            result[term] = BOTH.join(groups)
    return result


def _spellings(chosen: Lexicon, stem: Stem) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The groups of each word as a term would be spelled, and the prefixes with theirs."""
    words: dict[str, list[str]] = {}
    prefixes: list[tuple[str, str]] = []
    for group, entries in chosen.groups.items():
        for entry in entries:
            if entry.endswith("*"):
                prefixes.append((entry[:-1], group))
            elif (term := stem(entry)) is not None and group not in words.setdefault(term, []):
                words[term].append(group)
    return words, prefixes


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

    ``x`` is a file with these three columns between tabs and no header, a frame that has them, or a dict
    ``{query_id: {term: weight}}``.
    """
    if isinstance(x, pl.DataFrame):
        missing = [name for name in SCHEMA if name not in x.columns]
        if missing:
            raise InputError(
                f"expanded queries have the columns {', '.join(SCHEMA)}; {missing[0]} is missing"
            )
        return x.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    if isinstance(x, Mapping):
        rows = [(query, term, float(weight)) for query, terms in x.items() for term, weight in terms.items()]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")
    if isinstance(x, (str, PathLike)):
        return _read(x)
    raise InputError(f"expanded queries are a file, a frame or a dict, not {type(x).__name__}")


def _read(path: str | PathLike[str]) -> pl.DataFrame:
    rows = []
    for number, line in text_lines(path, remark=None):
        cells = line.split("\t")
        try:
            query, term, weight = cells[0], cells[1], float(cells[2])
        except (IndexError, ValueError) as error:
            remedy = "a line is query_id, term and weight between tabs"
            raise InputError(remedy, path=path, line=number) from error
        if weight != weight or abs(weight) == float("inf"):
            raise InputError(f"weight {cells[2]} is not a finite number", path=path, line=number)
        rows.append((query, term, weight))
    if not rows:
        raise InputError("there are no expanded queries in this file", path=path)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def write_expanded(expanded: Any, path: str | PathLike[str]) -> None:
    """Write ``query_id<TAB>term<TAB>weight``, whole or not at all."""
    frame = expanded_queries(expanded)
    with writing(Path(path)) as file:
        file.write(frame.write_csv(include_header=False, separator="\t", quote_style="never").encode())


class WeightedTerm(NamedTuple):
    """A term of an expanded query; `group` is None for most."""

    term: str
    weight: float
    group: str | None


@dataclass(frozen=True)
class Pair:
    """A query and two expansions of it, heaviest terms first."""

    query_id: str
    text: str
    before: tuple[WeightedTerm, ...]
    after: tuple[WeightedTerm, ...]

    @property
    def removed(self) -> float:
        """Weight of gendered terms that the second expansion no longer has; negative if it has more."""
        return gendered_weight(self.before) - gendered_weight(self.after)

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "query_id": self.query_id,
            "text": self.text,
            "before": [term._asdict() for term in self.before],
            "after": [term._asdict() for term in self.after],
        }


def side_by_side(
    before: pl.DataFrame,
    after: pl.DataFrame,
    queries: pl.DataFrame | None,
    groups: Mapping[str, str],
    *,
    top: int | None = 10,
) -> list[Pair]:
    """The queries with gendered terms in either expansion, those that lost most weight of them first.

    Parameters
    ----------
    before, after
        Expanded queries: ``query_id``, ``term``, ``weight``.
    queries
        Their texts, if known.
    groups
        The group of each term that belongs to one.
    top
        How many at most; None for all.
    """
    texts = {} if queries is None else dict(zip(queries["query_id"], queries["text"], strict=True))
    was, now = _by_query(before, groups), _by_query(after, groups)
    pairs = [Pair(query, texts.get(query, ""), terms, now.get(query, ())) for query, terms in was.items()]
    marked = [pair for pair in pairs if any(term.group for term in (*pair.before, *pair.after))]
    marked.sort(key=lambda pair: -round_significant(pair.removed))
    return marked[:top]


def gendered_weight(terms: tuple[WeightedTerm, ...]) -> float:
    """What the gendered terms of an expanded query weigh together."""
    return sum(term.weight for term in terms if term.group)


def _by_query(expanded: pl.DataFrame, groups: Mapping[str, str]) -> dict[str, tuple[WeightedTerm, ...]]:
    result: dict[str, list[WeightedTerm]] = {}
    for query, term, weight in expanded.select("query_id", "term", "weight").iter_rows():
        result.setdefault(query, []).append(WeightedTerm(term, weight, groups.get(term)))
    return {
        query: tuple(sorted(terms, key=lambda term: -round_significant(term.weight)))
        for query, terms in result.items()
    }


TIED = 1e-9
"""Changes of a query's value below this are none."""


@dataclass(frozen=True)
class Effect:
    """One measure at one setting, beside the same queries with λ = 0.

    Attributes
    ----------
    measurement
        Value, interval and values of the queries.
    change
        Paired comparison with λ = 0, this minus that, of |value| for RaB, ARaB and LIWC. None at λ = 0.
    p_holm
        Its p, corrected for the λs that were tried with the same k and n (Holm).
    reduction
        (before − after) / before of the mean of a bias measure, in absolute value; for RaB and ARaB it can be
        large where the lists of some queries lean one way and those of others the other way.
    abs_reduction
        The same of the mean of absolute values, for measures with a sign.
    improved, tied, hurt
        Shares of the queries whose value got better, stayed (within 1e-9), got worse.
    """

    measurement: Measurement
    change: stats.Comparison | None = None
    p_holm: float | None = None
    reduction: float | None = None
    abs_reduction: float | None = None
    improved: float | None = None
    tied: float | None = None
    hurt: float | None = None

    @property
    def measure(self) -> Measure:
        return self.measurement.measure

    def worse(self, alpha: float = 0.05) -> bool:
        """Is the mean significantly worse than with λ = 0, after correction?"""
        if self.change is None or self.change.difference is None or self.p_holm is None:
            return False
        difference = self.change.difference
        wrong_way = difference < 0 if _higher_is_better(self.measure) else difference > 0
        return wrong_way and self.p_holm < alpha

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        one = self.measurement
        row: dict[str, Any] = {
            "measure": str(one.measure),
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "queries": one.queries,
        }
        if getattr(one.measure, "SIGNED", False):
            row["abs"] = one.abs
        if self.change is None:
            return row
        row |= {"change": asdict(self.change), "p_holm": self.p_holm, "reduction": self.reduction}
        if getattr(one.measure, "SIGNED", False):
            row["abs_reduction"] = self.abs_reduction
        return row | {"improved": self.improved, "tied": self.tied, "hurt": self.hurt}


def effects_of(before: Sequence[Measurement], after: Sequence[Measurement]) -> tuple[Effect, ...]:
    """Each measure beside its value without debiasing; p is not yet corrected."""
    return tuple(_effect(was, now) for was, now in zip(before, after, strict=True))


def _effect(before: Measurement, after: Measurement) -> Effect:
    _, was, now = paired_values(before, after)
    gain = gains(after.measure, was, now)
    better, worse = gain > TIED, gain < -TIED
    share = (
        {"improved": None, "tied": None, "hurt": None}
        if not len(gain)
        else {
            "improved": float(better.mean()),
            "tied": float((~better & ~worse).mean()),
            "hurt": float(worse.mean()),
        }
    )
    return Effect(
        after,
        change=stats.paired(now, was),
        reduction=None if _higher_is_better(after.measure) else _reduction(before.value, after.value),
        abs_reduction=_reduction(before.abs, after.abs),
        **share,
    )


def paired_values(
    before: Measurement, after: Measurement
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The queries that both have, and their values: how far from balance, where that is good."""
    was, now = before.per_query(), after.per_query()
    ids = [query for query in was if query in now]
    values = np.array([[was[query], now[query]] for query in ids]).reshape(-1, 2)
    values = distance_from_ideal(after.measure, values)
    return ids, values[:, 0], values[:, 1]


def gains(measure: Measure, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each query's value got better: less bias, more effectiveness or neutrality."""
    return after - before if _higher_is_better(measure) else before - after


def check_direction(measure: Measure) -> None:
    """Refuse a measure of which it cannot be said, query by query, what better is."""
    yardstick = getattr(measure, "REFERENCE", "")
    if yardstick:
        raise InputError(
            f"feedback compares queries by measures that say what better is; {measure} has to be compared "
            f"with {yardstick}: write the runs to files and measure them with: evenrank measure"
        )


def _higher_is_better(measure: Measure) -> bool:
    return preferred_direction(measure) == "high"


def _reduction(before: float | None, after: float | None) -> float | None:
    """(before − after) / before of two amounts of bias, each without its sign."""
    if before is None or after is None or before == 0:
        return None
    return (abs(before) - abs(after)) / abs(before)
