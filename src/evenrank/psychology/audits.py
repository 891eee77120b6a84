"""Do judged documents read differently for female and for male queries, and does what rankers return?

A. Bigdeli, thesis, Section 3.1 (stereotypes in relevance judgments are what rankers learn from),
Section 3.2.2.2 and Table 3.7 (does one ranker return such text less than another?).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

import evenrank
from evenrank import stats
from evenrank.data import tables
from evenrank.data.columns import show
from evenrank.data.frames import fingerprint
from evenrank.errors import InputError
from evenrank.measures.inputs import named_runs
from evenrank.process import refuse_after_fork
from evenrank.psychology.comparing import (
    Characteristic,
    bars,
    chosen,
    compare,
    ranked_or_judged,
    read_scores,
    sample,
    scores_of,
    sizes,
)
from evenrank.show.grid import Drawn
from evenrank.stats import Comparison
from evenrank.text.lexicon import dictionary as as_dictionary


@dataclass(frozen=True, eq=False, repr=False)
class JudgmentsAudit(Drawn):
    """What the judged documents say, by the gender of their queries.

    `audit["anger"]` is one characteristic. Positive differences: more of it for female queries.

    Attributes
    ----------
    characteristics
        In the order of the tree, each process before its parts.
    queries
        How many queries of each gender were compared.
    left_out
        How many were not, by reason.
    affiliation
        The sanity check of the labels: are `female` words most frequent for female queries, `male` words
        for male ones? None where the categories are missing.
    values
        ``query_id``, ``gender`` and the percent of each characteristic.
    """

    characteristics: tuple[Characteristic, ...]
    queries: dict[str, int]
    left_out: dict[str, int]
    affiliation: bool | None
    values: pl.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Characteristic:
        for one in self.characteristics:
            if one.name == name:
                return one
        raise InputError(f"{name!r} was not compared; {', '.join(c.name for c in self.characteristics)} were")

    def frame(self) -> pl.DataFrame:
        """One row for each characteristic: means, difference with interval, tests, effects."""
        return pl.DataFrame([one.to_dict() for one in self.characteristics], infer_schema_length=None)

    def bars(self) -> pl.DataFrame:
        """One row for each bar of the grouped bars: process, characteristic, gender, percent."""
        return bars(self.characteristics)

    def to_dict(self) -> dict[str, Any]:
        return {
            "positive": "female",
            "queries": self.queries,
            "left_out": self.left_out,
            "affiliation": self.affiliation,
            "characteristics": [one.to_dict() for one in self.characteristics],
            "provenance": self.provenance,
        }

    def __str__(self) -> str:
        lines = ["percentage points, male − female: positive is more for male queries"]
        lines += [
            f"{one.name}: {-one.difference:+.3f}, p = {one.welch.p:.2g}, {one.verdict}"
            for one in self.characteristics
            if one.difference is not None and one.welch.p is not None
        ]
        return "\n".join(lines)


def audit_judgments(
    *,
    genders: Any = None,
    qrels: Any = None,
    docs: Any = None,
    scores: Any = None,
    dictionary: Any = None,
    tokenizer: str = "words",
    exclude: Any = None,
    grade: int = 1,
    balance: bool = True,
    characteristics: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> JudgmentsAudit:
    """Compare the judged documents of female and male queries, characteristic by characteristic.

    A query's value is the mean percent over its judged documents. Female and male queries are compared
    by Welch's t-test and the rank-sum test, both corrected (Holm) over all characteristics compared.

    Parameters
    ----------
    genders
        Gender of each query, given or predicted. May be left out when `scores` says it.
    qrels, docs, dictionary, tokenizer
        The judgments, the collection, and the words to count (the open dictionary unless given).
    scores
        An existing table of percentages instead, such as LIWC's output: by query (then no qrels are needed)
        or by document; see :func:`evenrank.psychology.comparing.read_scores`.
    exclude
        Queries to leave out, such as those that trained the classifier behind `genders`: ids, or
        anything :func:`evenrank.data.tables.genders` reads.
    grade
        From which relevance on a document counts as judged relevant.
    balance
        Draw as many queries of each gender as the smallest class has (seeded), as the thesis does.
    characteristics
        Which to compare; unless given, all of the tree that the dictionary or table has.

    Examples
    --------
    >>> audit = audit_judgments(
    ...     genders={"1": "female", "2": "male", "3": "female", "4": "male"},
    ...     qrels={q: {q: 1} for q in "1234"},
    ...     docs={"1": "She fears it", "2": "He hates it", "3": "She worries", "4": "He rages on"},
    ... )
    >>> audit["anger"].higher, audit["anxiety"].higher
    ('male', 'female')
    """
    refuse_after_fork()
    table = None if scores is None else read_scores(scores)
    by_query = table is not None and "doc_id" not in table.columns
    facts: dict[str, Any] = {"evenrank": evenrank.__version__, "balance": balance, "seed": seed}
    if table is not None and "gender" in table.columns and genders is None:
        labels = table.select("query_id", "gender").unique(maintain_order=True)
        torn = labels.filter(pl.col("query_id").is_duplicated())["query_id"]
        if len(torn):
            raise InputError(f"query {show(torn[0])} is in the scores of two genders; give each its own id")
    elif genders is None:
        raise InputError("whose queries are female and male? give genders")
    else:
        labels = tables.genders(genders)
    if by_query and table is not None:
        names = chosen(table, characteristics)
        values = table.group_by("query_id", maintain_order=True).agg(pl.col(names).mean())
        facts["scores"] = fingerprint([table], numbers=True)
    else:
        if qrels is None:
            raise InputError("which documents are judged? give qrels, or scores by query")
        judged = tables.qrels(qrels).filter(pl.col("relevance") >= grade)
        labelled = judged.filter(pl.col("query_id").is_in(labels["query_id"].to_list()))
        if labelled.is_empty():
            raise InputError(f"no labelled query has a document judged {grade} or higher")
        if table is None:
            if docs is None:
                raise InputError("what do the documents say? give docs, or a table of scores")
            words = as_dictionary(dictionary)
            table = scores_of(docs, labelled["doc_id"].to_list(), words, tokenizer)
            facts |= {"dictionary": {"name": words.name, "hash": words.hash}, "tokenizer": tokenizer}
        names = chosen(table, characteristics)
        values = ranked_or_judged(labelled, table, names)
        facts |= {
            "qrels": fingerprint([judged]),
            "grade": grade,
            "scores": fingerprint([table], numbers=True),
        }
    values, left_out = sample(values, labels, exclude=exclude, balance=balance, seed=seed)
    found = compare(values, names, confidence=confidence, seed=seed)
    return JudgmentsAudit(
        characteristics=found,
        queries=sizes(values),
        left_out=left_out,
        affiliation=_affiliation(found),
        values=values,
        provenance=facts,
    )


def _affiliation(found: Sequence[Characteristic]) -> bool | None:
    """Fig. 3.1 of the thesis: each gender's queries lead on its own words, neutral ones on neither."""
    means = {one.name: one.means for one in found}
    if "female" not in means or "male" not in means:
        return None
    return all(max(means[gender], key=means[gender].__getitem__) == gender for gender in ("female", "male"))


@dataclass(frozen=True)
class Reduction:
    """How far a run shrinks the distance between female and male queries that the baseline has.

    Attributes
    ----------
    before, after
        The distance |female − male| of the baseline and of the run, in percentage points.
    reduction
        1 − after / before: positive if the distance shrinks; None where the baseline has none.
    change
        Welch's test on the changes query by query, female − male: did the signed difference move?
    p_holm
        Its p, corrected over the characteristics of the run.
    """

    run: str
    name: str
    before: float
    after: float
    reduction: float | None
    change: Comparison
    p_holm: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "characteristic": self.name,
            "before": self.before,
            "after": self.after,
            "reduction": self.reduction,
            "change": self.change.difference,
            "low": self.change.low,
            "high": self.change.high,
            "p": self.change.p,
            "p_holm": self.p_holm,
        }


@dataclass(frozen=True, eq=False, repr=False)
class RankingsAudit(Drawn):
    """What rankers return for female and for male queries; `audit["bm25", "anger"]` is one of them."""

    runs: dict[str, tuple[Characteristic, ...]]
    at: int
    baseline: str
    reductions: tuple[Reduction, ...]
    queries: dict[str, int]
    left_out: dict[str, int]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: tuple[str, str]) -> Characteristic:
        run, name = key
        for one in self.runs.get(run, ()):
            if one.name == name:
                return one
        raise InputError(f"there is no {name!r} of {run!r}; runs: {', '.join(self.runs)}")

    def reduction(self, run: str, name: str) -> Reduction:
        """How far a run shrinks the baseline's distance in one characteristic."""
        for one in self.reductions:
            if (one.run, one.name) == (run, name):
                return one
        raise InputError(f"there is no reduction of {name!r} by {run!r}; the baseline is {self.baseline!r}")

    def frame(self) -> pl.DataFrame:
        """One row for each run and characteristic, with the reduction against the baseline."""
        shrunk = {(one.run, one.name): one.reduction for one in self.reductions}
        rows = [
            {"run": run, **one.to_dict(), "reduction": shrunk.get((run, one.name))}
            for run, found in self.runs.items()
            for one in found
        ]
        return pl.DataFrame(rows, infer_schema_length=None).cast({"reduction": pl.Float64})

    def bars(self) -> pl.DataFrame:
        """One row for each bar: run, process, characteristic, gender, percent."""
        return pl.concat(
            bars(found).insert_column(0, pl.Series("run", [run]).new_from_index(0, len(bars(found))))
            for run, found in self.runs.items()
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "baseline": self.baseline,
            "positive": "female",
            "queries": self.queries,
            "left_out": self.left_out,
            "runs": [
                {"run": run, "characteristics": [one.to_dict() for one in found]}
                for run, found in self.runs.items()
            ],
            "reductions": [one.to_dict() for one in self.reductions],
            "provenance": self.provenance,
        }


def audit_rankings(
    runs: Any,
    *,
    genders: Any,
    docs: Any = None,
    scores: Any = None,
    dictionary: Any = None,
    tokenizer: str = "words",
    at: int = 10,
    baseline: str | None = None,
    exclude: Any = None,
    balance: bool = True,
    characteristics: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> RankingsAudit:
    """Compare what is ranked for female and for male queries, run by run, and each run with the baseline.

    A query's value is the mean percent over its top `at` documents. All runs are compared on the same
    queries: those that every run has ranked documents for.

    Parameters
    ----------
    runs
        One run, or a mapping from names to runs.
    genders, docs, dictionary, tokenizer, exclude, balance, characteristics, confidence, seed
        As for :func:`audit_judgments`.
    scores
        An existing table of percentages by document, instead of docs and dictionary.
    at
        How far down the lists to read.
    baseline
        The run that the others are compared with; the first unless given.
    """
    if at < 1:
        raise InputError(f"at is {at}, but must be at least 1")
    tops = {name: tables.run(run).filter(pl.col("rank") <= at) for name, run in named_runs(runs).items()}
    baseline = baseline or next(iter(tops))
    if baseline not in tops:
        raise InputError(f"there is no run {baseline!r}; one of {', '.join(tops)}")
    labels = tables.genders(genders)
    common = set.intersection(*(set(top["query_id"].to_list()) for top in tops.values()))
    asked = common & set(labels["query_id"].to_list())
    tops = {name: top.filter(pl.col("query_id").is_in(asked)) for name, top in tops.items()}
    if not asked:
        raise InputError("no query is both labelled and ranked by every run")
    facts: dict[str, Any] = {"evenrank": evenrank.__version__, "balance": balance, "seed": seed}
    if scores is not None:
        table = read_scores(scores)
        if "doc_id" not in table.columns:
            raise InputError("rankings need scores by document: a column doc_id")
    elif docs is None:
        raise InputError("what do the documents say? give docs, or a table of scores")
    else:
        words = as_dictionary(dictionary)
        table = scores_of(docs, pl.concat(top["doc_id"] for top in tops.values()).to_list(), words, tokenizer)
        facts |= {"dictionary": {"name": words.name, "hash": words.hash}, "tokenizer": tokenizer}
    facts["runs"] = {name: fingerprint([top]) for name, top in tops.items()}
    names = chosen(table, characteristics)
    values = {}
    for name, top in tops.items():
        means = ranked_or_judged(top, table, names)
        values[name], left_out = sample(means, labels, exclude=exclude, balance=balance, seed=seed)
    found = {name: compare(each, names, confidence=confidence, seed=seed) for name, each in values.items()}
    return RankingsAudit(
        runs=found,
        at=at,
        baseline=baseline,
        reductions=tuple(
            one
            for run in tops
            if run != baseline
            for one in _reductions(run, values[baseline], values[run], names, confidence)
        ),
        queries=sizes(values[baseline]),
        left_out=left_out,
        provenance=facts,
    )


def _reductions(
    run: str, before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], confidence: float
) -> list[Reduction]:
    joined = before.join(after.drop("gender"), on="query_id", suffix=" after", maintain_order="left")
    found = []
    for name in names:
        moved = joined.select("gender", change=pl.col(f"{name} after") - pl.col(name))
        sides = [
            moved.filter(pl.col("gender") == gender)["change"].to_numpy() for gender in ("female", "male")
        ]
        distances = [_distance(table, name) for table in (before, after)]
        found.append(
            Reduction(
                run=run,
                name=name,
                before=distances[0],
                after=distances[1],
                reduction=1 - distances[1] / distances[0] if distances[0] else None,
                change=stats.welch(*sides, confidence=confidence),
            )
        )
    corrected = stats.holm([one.change.p for one in found])
    return [
        Reduction(one.run, one.name, one.before, one.after, one.reduction, one.change, p)
        for one, p in zip(found, corrected, strict=True)
    ]


def _distance(table: pl.DataFrame, name: str) -> float:
    means = dict(table.group_by("gender").agg(pl.col(name).mean()).iter_rows())
    return abs(means["female"] - means["male"])
