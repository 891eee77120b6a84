"""Do the judged documents of female queries read differently from those of male queries?

A. Bigdeli, thesis, Section 3.1: stereotypes in relevance judgments are what rankers learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

import evenrank
from evenrank.data import tables
from evenrank.data.columns import show
from evenrank.data.frames import fingerprint
from evenrank.errors import InputError
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
from evenrank.text.dictionaries import dictionary as as_dictionary


@dataclass(frozen=True, eq=False)
class JudgmentsAudit:
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
        A ready table of percents instead, such as LIWC's output: by query (then no qrels are needed) or
        by document; see :func:`evenrank.psychology.comparing.read_scores`.
    exclude
        Queries to leave out, for one those that trained the classifier behind `genders`: ids, or
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
                raise InputError("what do the documents say? give docs, or a ready table of scores")
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
