"""Direct stereotypes: do queries that lean to a gender get documents about people of that gender?

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement, Information Processing &
Management 57(6), 2020, §4.2.5 and Figure 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.measures.gsr.lists import (
    Entries,
    perfect_entries,
    relevant_counts,
    run_entries,
)
from evenrank.measures.gsr.slope import Floats
from evenrank.measures.lookup import find_rows
from evenrank.text.lexicon import lexicon
from evenrank.text.tally import tally
from evenrank.vectors.texts import gendered_texts, given_names

EDGES = (-0.1, -0.05, 0.0, 0.05, 0.1)
LEXICON = "fabris2020"


@dataclass(frozen=True)
class DirectStereotype:
    """Which gender a run shows more of than the perfect engine, by the leaning of the query.

    Attributes
    ----------
    queries
        query_id, g, gap (of the run), perfect (gap of the perfect engine) and side: `male` where the run
        shows more male documents than the perfect engine, `female` where it shows fewer, `none`.
        A gap of infinity is null in JSON and inf here.
    bins
        low and high (bounds of g, null at the ends), queries, and the shares male, female and none.
    left_out
        How many queries have no sign, by reason.
    names
        How many given names were looked for beside the words of the lexicon.
    """

    queries: pl.DataFrame
    bins: pl.DataFrame
    left_out: dict[str, int]
    names: int


def direct_stereotype(
    run: Any,
    *,
    docs: Any,
    queries: Any,
    qrels: Any,
    vectors: Any = None,
    names: Mapping[str, Sequence[str]] | None = None,
    edges: Sequence[float] = EDGES,
) -> DirectStereotype:
    """The sign of gap(q) of a run minus gap(q) of the perfect engine, by bins of g(q).

    gap(q) = (documents with more male than female mentions) / (documents with more female than male
    mentions), among the top K_q of the run, as many as the query has relevant documents, and among the
    relevant ones. Without a female document it is infinite; the sign is still known unless both are.
    A query for which one of the two has no gendered document at all has no gap, and is left out.

    Parameters
    ----------
    names
        Given names to count beside the words of the lexicon fabris2020, by gender; those of the package
        `names` if it is installed, else none.
    edges
        Bounds of the bins of g(q).
    """
    asked, judged = tables.queries(queries), tables.qrels(qrels)
    ids = asked["query_id"]
    depths = relevant_counts(judged, ids)
    found = {
        "run": run_entries(tables.run(run), ids).top(depths),
        "perfect": perfect_entries(judged, ids),
    }
    given = names if names is not None else given_names() or {}
    sides = _sides(tables.docs(docs), found, given)
    gap = {name: _gap(entries, sides, len(ids)) for name, entries in found.items()}
    g = gendered_texts(vectors).of_texts(asked["text"].to_list())

    with np.errstate(invalid="ignore"):
        difference = gap["run"] - gap["perfect"]  # infinity minus itself is NaN, as it should be
    ranked = np.bincount(found["run"].query_rows, minlength=len(ids)) > 0
    reasons = {
        "the query has no word with a value": np.isnan(g),
        "no relevant document": depths == 0,
        "nothing ranked": ~ranked,
        "no gendered document": np.isnan(gap["run"]) | np.isnan(gap["perfect"]),
        "no female document in either": np.isinf(gap["run"]) & np.isinf(gap["perfect"]),
    }
    left, left_out = np.ones(len(ids), bool), {}
    for reason, mask in reasons.items():
        if count := int((left & mask).sum()):
            left_out[reason] = count
        left &= ~mask
    side = np.array(["female", "none", "male"])[np.sign(difference[left]).astype(int) + 1]
    table = pl.DataFrame(
        {
            "query_id": ids.filter(pl.Series(left)),
            "g": g[left],
            "gap": gap["run"][left],
            "perfect": gap["perfect"][left],
            "side": pl.Series(side, dtype=pl.String),
        }
    )
    total = sum(len(each) for each in given.values())
    return DirectStereotype(table, _bins(table, edges), left_out, total)


def _sides(docs: Any, lists: Mapping[str, Entries], names: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """For each document +1 if it mentions more male entities, −1 if more female, 0 otherwise."""
    groups = lexicon(LEXICON).groups
    entities = {
        gender: list(dict.fromkeys([*groups[gender], *names.get(gender, ())]))
        for gender in ("female", "male")
    }
    both = set(entities["female"]) & set(entities["male"])
    words = lexicon({gender: [w for w in each if w not in both] for gender, each in entities.items()})
    texts = docs.texts({doc for entries in lists.values() for doc in entries.doc_ids.unique().to_list()})
    counts = tally(texts, words).frame
    return counts.select("doc_id", side=(pl.col("male") - pl.col("female")).sign())


def _gap(entries: Entries, sides: pl.DataFrame, queries: int) -> Floats:
    """Male documents over female ones, for each query; NaN where there are neither."""
    rows = find_rows(entries.doc_ids, sides["doc_id"])
    side = np.where(rows >= 0, sides["side"].to_numpy()[rows], 0)
    male, female = (
        np.bincount(entries.query_rows[side == sign], minlength=queries).astype(np.float64)
        for sign in (1, -1)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return male / female


def _bins(table: pl.DataFrame, edges: Sequence[float]) -> pl.DataFrame:
    place = np.searchsorted(np.array(edges), table["g"].to_numpy(), side="right")
    bounds = [None, *edges, None]
    rows = []
    for i in range(len(edges) + 1):
        sides = table["side"].filter(pl.Series(place == i))
        shares = {
            side: (sides == side).sum() / len(sides) if len(sides) else None
            for side in ("male", "female", "none")
        }
        rows.append({"low": bounds[i], "high": bounds[i + 1], "queries": len(sides), **shares})
    number = dict.fromkeys(("low", "high"), pl.Float64)
    shares_of = dict.fromkeys(("male", "female", "none"), pl.Float64)
    return pl.DataFrame(rows, schema={**number, "queries": pl.Int64, **shares_of})
