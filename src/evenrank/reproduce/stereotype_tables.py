"""Tables of the paper on GSR: what debiasing moves, whether other vectors agree, and direct stereotypes
(§4.2.5 and Figure 12): do queries that lean to a gender get documents about people of that gender?

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement, Information Processing &
Management 57(6), 2020, §4.2. Each function returns plain tables and numbers that a report can draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from ir_measures import AP, P, nDCG
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.evaluate import measure
from evenrank.measures.gsr.measure import GSR
from evenrank.measures.gsr.results import Reinforcement, relative_to
from evenrank.measures.gsr.slope import Floats, significance
from evenrank.measures.gsr.study import Entries, perfect_entries, relevant_counts, run_entries
from evenrank.measures.lists import find_rows
from evenrank.text.lexicon import lexicon
from evenrank.text.tally import tally
from evenrank.vectors.texts import gendered_texts

_EXACT = 8  # points whose orders are all tried: 40,320


def reinforcement_table(
    runs: Mapping[str, Any],
    vectors: Mapping[str, Any],
    *,
    docs: Any,
    queries: Any,
    qrels: Any = None,
    measures: Measure = GSR,
    confidence: float | None = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Systems × vectors: absolute and relative GSR, with intervals (Table 2 of the paper).

    The perfect and the random engine have rows of their own. `vectors` maps a name to anything
    :func:`evenrank.vectors.genderedness` takes; None is the shipped table.
    """
    given = {"docs": tables.docs(docs), "queries": tables.queries(queries), "qrels": qrels}
    frames = {name: tables.run(run) for name, run in runs.items()}
    rows: list[dict[str, Any]] = []
    for name, source in vectors.items():
        measured = measure(frames, measures, vectors=source, confidence=confidence, seed=seed, **given)
        last: Reinforcement | None = None
        for found in measured:
            assert isinstance(found, Reinforcement)
            last = found
            r = None if found.line is None or np.isnan(found.line.r) else found.line.r
            rows.append(_row(found.run, name, found.summary, found.relative) | {"r": r, "p": found.p})
        if last is not None:
            perfect = last.baselines["perfect"].value if "perfect" in last.baselines else None
            for kind, summary in last.baselines.items():
                relative = relative_to(summary.value, perfect)
                rows.append(_row(kind, name, summary, relative) | {"r": None, "p": None})
    schema = {"system": pl.String, "vectors": pl.String, "queries": pl.Int64}
    numbers = dict.fromkeys(("GSR", "low", "high", "relative", "r", "p"), pl.Float64)
    return pl.DataFrame(rows, schema={**schema, **numbers})


def _row(system: str, vectors: str, summary: Any, relative: float | None) -> dict[str, Any]:
    return {
        "system": system,
        "vectors": vectors,
        "queries": summary.queries,
        "GSR": summary.value,
        "low": summary.low,
        "high": summary.high,
        "relative": relative,
    }


def effectiveness_table(
    runs: Mapping[str, Any],
    qrels: Any,
    *,
    against: Mapping[str, str] | None = None,
    measures: Sequence[Measure] = (AP, nDCG @ 100, P @ 10),
) -> pl.DataFrame:
    """What debiasing costs in effectiveness (Table 3 of the paper).

    One row for each run and measure: its mean, and the difference to the run it is compared with
    (`against` maps a debiased run to its regular one) with the p of a paired t-test and intervals of 95 and,
    for tests of equivalence, 90 %.
    """
    against = dict(against or {})
    for name in {*against, *against.values()} - set(runs):
        raise InputError(f"there is no run {name!r} to compare; one of {', '.join(runs)}")
    measured = measure({name: tables.run(run) for name, run in runs.items()}, measures, qrels=qrels)
    rows = []
    for found in measured:
        other = None if found.run not in against else measured[against[found.run], found.measure]
        test = narrow = None
        if other is not None:
            mine, theirs = found.per_query(), other.per_query()
            both = [query for query in mine if query in theirs]
            pairs = [mine[q] for q in both], [theirs[q] for q in both]
            test, narrow = stats.paired(*pairs), stats.paired(*pairs, confidence=0.9)
        rows.append(
            {
                "run": found.run,
                "measure": str(found.measure),
                "value": found.value,
                "against": against.get(found.run),
                "difference": None if test is None else test.difference,
                "p": None if test is None else test.p,
                "low": None if test is None else test.low,
                "high": None if test is None else test.high,
                "low 90": None if narrow is None else narrow.low,
                "high 90": None if narrow is None else narrow.high,
                "n": None if test is None else test.n,
            }
        )
    text, number = dict.fromkeys(("run", "measure"), pl.String), pl.Float64
    more = {"value": number, "against": pl.String, "difference": number, "p": number}
    bounds = dict.fromkeys(("low", "high", "low 90", "high 90"), number)
    return pl.DataFrame(rows, schema={**text, **more, **bounds, "n": pl.Int64})


def kendall_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """How differently two lists order documents: 0 for the same list, 1 for lists without a common one.

    K^(0) of R. Fagin, R. Kumar and D. Sivakumar, Comparing Top k Lists, SIAM J. Discrete Math. 17(1),
    2003: the pairs of documents that the two lists are known to order differently, where a list ranks
    what it holds above what it does not; divided by their largest possible number.
    """
    if not len(first) or not len(second):
        return 0.0 if len(first) == len(second) else 1.0
    union = list(dict.fromkeys([*first, *second]))
    ranks = []
    for listed in (first, second):
        place = {doc: rank for rank, doc in enumerate(listed)}
        if len(place) < len(listed):
            raise InputError("a document stands twice in a list")
        ranks.append(np.array([place.get(doc, len(union)) for doc in union]))
    one, two = (np.sign(each[:, None] - each[None, :]) for each in ranks)
    return float((one * two < 0).sum() / 2 / (len(first) * len(second)))


@dataclass(frozen=True)
class Correlation:
    """A correlation, its p, and the points behind it."""

    r: float | None
    p: float | None
    points: pl.DataFrame


def debiasing_distances(
    before: Any, after: Any, queries: Any, vectors: Any = None, *, depth: int = 100
) -> Correlation:
    """Does debiasing move the lists of gendered queries most? (Figure 10 of the paper)

    `points` has query_id, |g(q)| and the Kendall distance of the two lists; Pearson's r between them.
    """
    asked = tables.queries(queries)
    g = dict(zip(asked["query_id"], gendered_texts(vectors).of_texts(asked["text"].to_list()), strict=True))
    lists = [
        dict(
            tables.run(run)
            .filter(pl.col("rank") <= depth)
            .group_by("query_id", maintain_order=True)
            .agg("doc_id")
            .iter_rows()
        )
        for run in (before, after)
    ]
    common = [q for q in lists[0] if q in lists[1] and not np.isnan(g.get(q, np.nan))]
    points = pl.DataFrame(
        {
            "query_id": common,
            "g": [abs(float(g[q])) for q in common],
            "distance": [kendall_distance(lists[0][q], lists[1][q]) for q in common],
        },
        schema={"query_id": pl.String, "g": pl.Float64, "distance": pl.Float64},
    )
    r = pearson(points["g"].to_numpy(), points["distance"].to_numpy())
    return Correlation(r, None if r is None else significance(r, len(points)), points)


@dataclass(frozen=True)
class Reliability:
    """Whether two sets of vectors tell the same story: of the systems, and of the queries.

    `systems` has the columns system, first and second (GSR with each), `queries` query_id, first and
    second (g with each).
    """

    spearman: float | None
    spearman_p: float | None
    pearson: float | None
    pearson_p: float | None
    systems: pl.DataFrame
    queries: pl.DataFrame


def reliability(
    runs: Mapping[str, Any],
    first: Any,
    second: Any,
    *,
    docs: Any,
    queries: Any,
    qrels: Any = None,
    measures: Measure = GSR,
    seed: int = 0,
) -> Reliability:
    """Spearman's ρ of the systems' GSR, baselines included, and Pearson's r of g(q), between two vectors."""
    readers = {"first": gendered_texts(first), "second": gendered_texts(second)}
    table = reinforcement_table(
        runs, readers, docs=docs, queries=queries, qrels=qrels, measures=measures, confidence=None, seed=seed
    )
    systems = table.pivot("vectors", index="system", values="GSR").drop_nulls()
    rho, p = spearman(systems["first"].to_numpy(), systems["second"].to_numpy())
    asked = tables.queries(queries)
    texts = asked["text"].to_list()
    g = asked.select("query_id", **{name: pl.Series(each.of_texts(texts)) for name, each in readers.items()})
    g = g.filter(pl.col("first").is_not_nan() & pl.col("second").is_not_nan())
    r = pearson(g["first"].to_numpy(), g["second"].to_numpy())
    return Reliability(rho, p, r, None if r is None else significance(r, len(g)), systems, g)


def spearman(x: np.ndarray, y: np.ndarray) -> tuple[float | None, float | None]:
    """Spearman's ρ and its two-sided p, exact for up to eight points: the usual formula fails for so few."""
    from scipy.stats import rankdata

    first, second = rankdata(x), rankdata(y)
    rho = pearson(first, second)
    if rho is None or len(x) > _EXACT:
        return rho, None if rho is None else significance(rho, len(x))
    orders = second[np.array(list(permutations(range(len(x)))))]
    products = (orders - second.mean()) @ (first - first.mean())
    observed = abs(float((second - second.mean()) @ (first - first.mean())))
    return rho, float((np.abs(products) >= observed - 1e-9).mean())


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    """Pearson's r; None for fewer than three points, or where one side does not vary."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


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
    edges: Sequence[float] | int = EDGES,
) -> DirectStereotype:
    """The sign of gap(q) of a run minus gap(q) of the perfect engine, by bins of g(q).

    gap(q) = (documents with more male than female mentions) / (documents with more female than male
    mentions), among the top K_q of the run, as many as the query has relevant documents, and among the
    relevant ones. Without a female document it is infinite; the sign is still known unless both are.
    A query for which one of the two has no gendered document at all has no gap, and is left out.

    Parameters
    ----------
    names
        Given names to count beside the words of the lexicon fabris2020, by gender; those of the US census
        that tell a gender, if not given.
    edges
        Bounds of the bins of g(q), or how many bins with equally many queries in each.
    """
    asked, judged = tables.queries(queries), tables.qrels(qrels)
    ids = asked["query_id"]
    depths = relevant_counts(judged, ids)
    found = {
        "run": run_entries(tables.run(run), ids).top(depths),
        "perfect": perfect_entries(judged, ids),
    }
    given = census_given_names() if names is None else names
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
    if isinstance(edges, int):
        shares = np.arange(1, edges) / edges if len(table) else np.zeros(0)
        edges = np.unique(np.quantile(table["g"], shares)).tolist() if len(shares) else []
    return DirectStereotype(table, _bins(table, edges), left_out, total)


def census_given_names() -> dict[str, list[str]]:
    """Given names of the US census of 1990 that tell a gender and are no ordinary words."""
    from evenrank.queries.words import clear_names

    names = clear_names()
    return {
        "female": [name for name, lean in names.items() if lean > 0],
        "male": [name for name, lean in names.items() if lean < 0],
    }


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
