"""Whether an audit can compare female with male queries: enough of both have to be judged, or listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import polars as pl

from evenrank.measures.inputs import Inputs


def counted(inputs: Inputs) -> dict[str, Counter[str]]:
    """How many queries of each gender are `judged`, and how many `listed` by every run."""
    labels, qrels = inputs.genders or {}, inputs.qrels
    judged = set() if qrels is None else {*qrels.filter(pl.col("relevance") > 0)["query_id"].to_list()}
    listed = set.intersection(*({*run["query_id"].to_list()} for run in inputs.runs.values()))
    return {
        where: Counter(gender for query, gender in labels.items() if query in among)
        for where, among in (("judged", judged), ("listed", listed))
    }


def comparable(counts: Mapping[str, Counter[str]]) -> dict[str, bool]:
    """Whether these are enough of both genders."""
    from evenrank.measures.disparities import FEWEST

    return {where: min(many["female"], many["male"]) >= FEWEST for where, many in counts.items()}


def cautions(inputs: Inputs, counts: Mapping[str, Counter[str]]) -> list[str]:
    """That female and male queries are not compared, where there are some of both but too few."""
    from evenrank.measures.disparities import FEWEST

    where = "listed" if inputs.qrels is None else "judged"
    women, men = counts[where]["female"], counts[where]["male"]
    if not (women and men) or min(women, men) >= FEWEST:
        return []
    return [
        f"Female and male queries are not compared: {women} female and {men} male ones are {where}, and "
        f"{FEWEST} of each are needed."
    ]
