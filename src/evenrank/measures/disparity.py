"""Disparity: the difference in effectiveness between the queries of two genders.

S. Seyedsalehi, A. Bigdeli, N. Arabzadeh, M. Zihayat and E. Bagheri, Addressing Gender-related Performance
Disparities in Neural Rankers, SIGIR 2022; there U is MRR@10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.read import fingerprint, read_genders, read_qrels, read_table
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures.base import is_bias
from evenrank.measures.effectiveness import score_effectiveness
from evenrank.measures.evaluate import listed_measures
from evenrank.measures.inputs import named_runs
from evenrank.measures.parse import parse
from evenrank.show.grid import Displayed
from evenrank.stats import Comparison


def percent_of_lower(male: float, female: float) -> float | None:
    """Return 100 · (male − female) / the lower of the two; None where that is 0.

    Positive where male queries fare better. The definition behind Table 2 of the paper:

    >>> round(percent_of_lower(0.4065, 0.3397), 2)
    19.66
    """
    lower = min(male, female)
    return 100 * (male - female) / lower if lower > 0 else None


@dataclass(frozen=True, eq=False)
class Disparity:
    """How much better one run serves male queries than female ones; positive favours male queries.

    Attributes
    ----------
    means, queries
        Mean effectiveness over the judged queries of each gender, and how many they are.
    difference, percent
        U(male) − U(female), and the same in percent of the lower of the two.
    welch, permutation
        Two-sample tests, because the two sets of queries differ: difference, interval, p, Hedges' g.
    paired
        The paired t-test the paper names. Only where a pairing of male with female queries is given.
    values
        ``query_id``, ``gender``, ``value``.
    """

    run: str
    measure: Measure
    means: dict[str, float]
    queries: dict[str, int]
    percent: float | None
    welch: Comparison
    permutation: Comparison
    paired: Comparison | None
    values: pl.DataFrame

    @property
    def difference(self) -> float | None:
        return self.welch.difference

    def to_dict(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "run": self.run,
            "measure": str(self.measure),
            "means": self.means,
            "queries": self.queries,
            "difference": self.difference,
            "percent": self.percent,
            "low": self.welch.low,
            "high": self.welch.high,
            "g": self.welch.effect,
            "p_welch": self.welch.p,
            "p_permutation": self.permutation.p,
        }
        if self.paired is not None:
            row["paired"] = asdict(self.paired)
        return row


@dataclass(frozen=True)
class Reduction:
    """How far a run shrinks the difference between male and female queries that the baseline has.

    Attributes
    ----------
    before, after
        The difference of the baseline and of the run.
    change
        Whether the difference changed: by how much, with interval and p.
    p_holm
        Its p, if it was corrected.
    """

    before: float
    after: float
    change: Comparison
    p_holm: float | None = None

    @property
    def reduction(self) -> float | None:
        """1 − |after| / |before|: positive where the difference shrinks; None where there was none."""
        return 1 - abs(self.after) / abs(self.before) if self.before else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "change": self.change.difference,
            "low": self.change.low,
            "high": self.change.high,
            "p": self.change.p,
            "reduction": self.reduction,
        }


MIN_QUERIES = 5
"""Queries of each gender below which the two are not compared by a command or an audit."""


def require_enough_queries(queries: Mapping[str, int]) -> None:
    """Refuse to compare genders of which there are hardly any queries."""
    for gender in ("female", "male"):
        if queries.get(gender, 0) < MIN_QUERIES:
            raise InputError(
                f"only {queries.get(gender, 0)} {gender} queries can be compared; "
                f"at least {MIN_QUERIES} of each gender are needed, so give more labelled queries"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Disparities(Displayed):
    """Disparity of each run and measure, in the order given, and how each run differs from the baseline.

    Attributes
    ----------
    changes
        By run and measure, the disparity of the baseline and of the run. The interval of the change is from
        a bootstrap over queries (paired: both runs' values of a query stay together), its p from a
        permutation of the gender labels.
    """

    results: tuple[Disparity, ...]
    baseline: str
    changes: dict[tuple[str, Measure], Reduction]
    left_out: dict[str, int]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Disparity]:
        return iter(self.results)

    def __getitem__(self, key: str | tuple[str, str | Measure]) -> Disparity:
        """The disparity of a run; with several measures by run and measure: `["bm25", "RR@10"]`."""
        run, requested = key if isinstance(key, tuple) else (key, None)
        measure = None if requested is None else parse(requested)
        matches = [one for one in self if one.run == run and measure in (None, one.measure)]
        if len(matches) != 1:
            known = ", ".join(f"[{one.run!r}, {str(one.measure)!r}]" for one in self)
            raise InputError(f"{key!r} does not name one result; there are {known}")
        return matches[0]

    def frame(self) -> pl.DataFrame:
        """One row for each run and measure."""
        rows = []
        for one in self:
            row = one.to_dict()
            means, queries = row.pop("means"), row.pop("queries")
            row.pop("paired", None)
            for gender in ("male", "female"):
                row |= {gender: means[gender], f"{gender}_queries": queries[gender]}
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "positive": "male",
            "runs": [one.to_dict() for one in self.results],
            "changes": [
                {"run": run, "baseline": self.baseline, "measure": str(measure), **change.to_dict()}
                for (run, measure), change in self.changes.items()
            ],
            "left_out": self.left_out,
            "provenance": self.provenance,
        }


def disparity(
    runs: Any,
    qrels: Any,
    genders: Any,
    *,
    measure: str | Measure | Iterable[str | Measure] = "RR@10",
    baseline: str | None = None,
    pairs: Any = None,
    confidence: float = 0.95,
    draws: int = stats.tests.DRAWS,
    seed: int = 0,
) -> Disparities:
    """Compare the effectiveness of runs for male and for female queries.

    A judged query for which nothing was returned counts as 0.

    Parameters
    ----------
    runs
        One run, or a mapping from names to runs.
    qrels, genders
        Relevance judgments, and the gender of each query.
    measure
        Effectiveness measures, in the syntax of ir_measures. RR@10 is the papers' own.
    baseline
        The run that the others are compared with; the first unless given.
    pairs
        Pairs (male query, female query) that belong together; then there is a paired t-test too. Rows,
        a mapping, or a file with two columns, male first.
    draws, seed
        Random arrangements of the permutation tests, and their seed.

    Examples
    --------
    >>> result = disparity(
    ...     {"1": {"d1": 1.0}, "2": {"d2": 1.0, "d1": 2.0}},
    ...     {"1": {"d1": 1}, "2": {"d2": 1}}, {"1": "male", "2": "female"},
    ... )
    >>> result["run"].percent
    100.0
    """
    measures = listed_measures(measure)
    for one in measures:
        if is_bias(one):
            raise InputError(f"{one} measures bias; disparity is about effectiveness, as in RR@10")
    frames = {name: read_run(run) for name, run in named_runs(runs).items()}
    baseline = baseline or next(iter(frames))
    if baseline not in frames:
        raise InputError(f"there is no run {baseline!r}; one of {', '.join(frames)}")
    judged, labels = read_qrels(qrels), read_genders(genders)
    matched = None if pairs is None else _pairs(pairs)
    permutation = partial(stats.permutation, confidence=confidence, draws=draws, seed=seed)
    results: dict[tuple[str, Measure], Disparity] = {}
    for name, run in frames.items():
        query_ids, _, values = score_effectiveness(run, judged, measures)
        for one in measures:
            table = pl.DataFrame({"query_id": query_ids, "value": values[one]})
            table = table.join(labels, on="query_id", maintain_order="left").drop_nans("value")
            male, female = _sides(table)
            means = dict(table.group_by("gender").agg(pl.col("value").mean()).sort("gender").iter_rows())
            results[name, one] = Disparity(
                run=name,
                measure=one,
                means=means,
                queries=dict(table["gender"].value_counts().sort("gender").iter_rows()),
                percent=percent_of_lower(means["male"], means["female"]),
                welch=stats.welch(male, female, confidence=confidence),
                permutation=permutation(male, female),
                paired=None if matched is None else _paired(table, matched, confidence),
                values=table,
            )
    changes = {
        (name, one): _change(results[baseline, one], after, permutation)
        for (name, one), after in results.items()
        if name != baseline
    }
    judged_ids, labelled_ids = (set(table["query_id"].to_list()) for table in (judged, labels))
    reasons = {
        "no gender label": len(judged_ids - labelled_ids),
        "labelled, but not judged": len(labelled_ids - judged_ids),
    }
    return Disparities(
        results=tuple(results.values()),
        baseline=baseline,
        changes=changes,
        left_out={reason: count for reason, count in reasons.items() if count},
        provenance={
            "evenrank": evenrank.__version__,
            "runs": {name: fingerprint([run]) for name, run in frames.items()},
            "qrels": fingerprint([judged]),
            "genders": fingerprint([labels]),
            "draws": draws,
            "seed": seed,
        },
    )


def _sides(table: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The values of male and of female queries."""
    sides = []
    for gender in ("male", "female"):
        sides.append(table.filter(gender=gender)["value"].to_numpy())
        if not len(sides[-1]):
            raise InputError(f"no judged query is labelled {gender}; check the gender labels")
    return sides[0], sides[1]


def _paired(table: pl.DataFrame, pairs: list[tuple[str, str]], confidence: float) -> Comparison:
    values = {(query, gender): value for query, value, gender in table.iter_rows()}
    for male, female in pairs:
        for query, gender in ((male, "male"), (female, "female")):
            if (query, gender) not in values:
                raise InputError(
                    f"the pair {male}, {female}: {query} is not a judged query labelled {gender}; "
                    "pairs hold a male query, then a female one"
                )
    sides = zip(*((values[male, "male"], values[female, "female"]) for male, female in pairs), strict=True)
    return stats.paired(*map(list, sides), confidence=confidence)


def _change(before: Disparity, after: Disparity, permutation: Callable[..., Comparison]) -> Reduction:
    joined = before.values.join(after.values, on="query_id", suffix="_after", maintain_order="left")
    changes = joined.select("gender", value=pl.col("value_after") - pl.col("value"))
    first, second = (each.means["male"] - each.means["female"] for each in (before, after))
    return Reduction(first, second, permutation(*_sides(changes)))


def _pairs(pairs: Any) -> list[tuple[str, str]]:
    """Read matched queries, the male one first, from a file (with or without a header) or any table."""
    table = read_table(pairs, {"male": ("male",), "female": ("female",)}, layouts=[("male", "female")])
    table.require_rows("pairs")
    return list(zip(*(table.ids(name).str.strip_chars() for name in ("male", "female")), strict=True))
