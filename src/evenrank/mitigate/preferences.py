"""`er.preference`: is it the ranker, or the texts? The mirror test.

A collection is ranked as it is, and mirrored: women are men and men women, in every text. What the texts
bring turns its sign in the mirror; what the ranker prefers by itself stays. So half the sum of the two leans
is the ranker's preference, half their difference the content.

It differs from the counterfactual audit, which puts both versions of a document into one index and asks how
far they stand apart.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.docs import Docs, open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_choice
from evenrank.measures.base import sign_names_group
from evenrank.measures.evaluate import measure as measure_runs
from evenrank.measures.parse import parse
from evenrank.mitigate.counterfactuals import chosen_rankers, neutral_queries
from evenrank.mitigate.swapping import swap, swapper
from evenrank.rankers import catalogue
from evenrank.rankers.base import Progress
from evenrank.rankers.indexing import index
from evenrank.show import numbers
from evenrank.show.grid import Grid, Recorded
from evenrank.stats import Interval
from evenrank.text.matcher import Source
from evenrank.text.tally import tally

_LEFT_OUT, _MIRRORED = "left out, they name a gender", "name a gender and were mirrored"
_SINGULAR = {
    f"1 query {_LEFT_OUT}": "1 query left out, it names a gender",
    f"1 query {_MIRRORED}": "1 query names a gender and was mirrored",
}

Ranking = Callable[[Docs, pl.DataFrame], Any]
"""Ranks the documents of a collection for queries: what it returns is a run."""


@dataclass(frozen=True)
class Preference:
    """One ranker in the mirror test. Positive leans toward the group ``of`` that the measure is of (male).

    Attributes
    ----------
    raw, mirrored
        The lean on the collection as it is, and on its mirror image.
    preference
        (raw + mirrored) / 2: what the ranker prefers, whatever the texts are.
    content
        (raw − mirrored) / 2: what the texts bring. Together they are the raw lean.
    p, p_holm
        Of Student's one-sample test of the preference, and corrected (Holm) over the rankers.
    queries
        Over which all of these are means; they have a value on both sides.
    of, against
        The groups that positive and negative values lean toward.
    """

    ranker: str
    measure: str
    queries: int
    raw: Interval
    mirrored: Interval
    preference: Interval
    content: Interval
    p: float | None
    p_holm: float | None = None
    of: str = "male"
    against: str = "female"

    def to_dict(self) -> dict[str, Any]:
        """All but the groups."""
        content = asdict(self)
        del content["of"], content["against"]
        return content

    @property
    def verdict(self) -> str:
        """`prefers male` or `female`, `no preference` (0 for every query), `cannot tell`, `not judged`."""
        if self.p_holm is None or self.preference.value is None:
            return "not judged"
        if self.preference.low == self.preference.high == 0:  # ranked alike in the mirror, query by query
            return "no preference"
        if self.p_holm >= 0.05:
            return "cannot tell"
        return f"prefers {self.of if self.preference.value > 0 else self.against}"


@dataclass(frozen=True, eq=False)
class MirrorTest(Recorded):
    """What rankers prefer, and what the texts bring.

    Attributes
    ----------
    rows
        A :class:`Preference` for each ranker.
    values
        ``ranker, query_id, raw, mirrored, preference, content``.
    left_out
        Queries that were not compared, by reason; or how many were mirrored too.
    """

    rows: tuple[Preference, ...]
    values: pl.DataFrame
    left_out: Mapping[str, int]
    confidence: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, ranker: str) -> Preference:
        for row in self.rows:
            if row.ranker == ranker:
                return row
        raise InputError(
            f"{ranker!r} was not tested; there are: {', '.join(row.ranker for row in self.rows)}"
        )

    def frame(self) -> pl.DataFrame:
        """One row for each ranker."""
        rows = []
        for one in self.rows:
            row: dict[str, Any] = {}
            for key, value in one.to_dict().items():
                if isinstance(value, dict):
                    row |= {key: value["value"], f"{key}_low": value["low"], f"{key}_high": value["high"]}
                else:
                    row[key] = value
            rows.append(row | {"verdict": one.verdict})
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of single queries, as JSON knows it."""
        return {
            "rankers": [row.to_dict() | {"positive": row.of, "verdict": row.verdict} for row in self.rows],
            "left_out": dict(self.left_out),
            "confidence": self.confidence,
            "provenance": dict(self.provenance),
        }

    def grid(self) -> Grid:
        """The rankers as a table for people."""
        heads = ["ranker", "measure", "as it is", "mirrored", "preference", "interval", "content", "interval"]
        rows = [
            [
                row.ranker,
                row.measure,
                numbers.signed(row.raw.value),
                numbers.signed(row.mirrored.value),
                numbers.signed(row.preference.value),
                numbers.interval(row.preference.low, row.preference.high),
                numbers.signed(row.content.value),
                numbers.interval(row.content.low, row.content.high),
                numbers.p_value(row.p_holm),
                f"{row.queries:,}",
                row.verdict,
            ]
            for row in self.rows
        ]
        return Grid([*heads, "corrected p", "queries", ""], rows, left=2)

    def remarks(self) -> list[str]:
        said = [f"{numbers.counted(n, 'query', 'queries')} {why}" for why, n in self.left_out.items() if n]
        return [_SINGULAR.get(line, line) for line in said]

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])


def preference(
    docs: Any,
    queries: Any,
    *,
    rankers: Sequence[str] | Mapping[str, str | Ranking] = ("bm25",),
    measure: str | Measure = "ARaB@10",
    candidates: Any = None,
    gendered_queries: Literal["leave out", "mirror"] = "leave out",
    depth: int = 100,
    names: bool = True,
    lexicon: Source = "rekabsaz2020",
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> MirrorTest:
    """What a ranker prefers by itself, apart from what comes from the texts: the mirror test.

    Parameters
    ----------
    docs, queries
        The collection, which is indexed as it is and mirrored, and the queries.
    rankers
        Names as in :func:`evenrank.search`, with settings in brackets; or a mapping from labels to such names
        or to functions: ``rank(docs, queries)`` gets a collection and returns a run.
    measure
        A measure whose sign names a group, of words in the top documents.
    candidates
        Rank only these documents for each query (a table of query_id and doc_id, such as qrels); those that a
        ranker does not find come last.
    gendered_queries
        Queries that name a gender are left out, or mirrored with the texts; counted in `left_out`.
    depth
        How far the lists go; at least the measure's cut-off.
    names, lexicon
        As in :func:`evenrank.swap`; the lexicon also counts the words.
    settings
        Settings for all rankers that have them.
    """
    check_choice("gendered_queries", gendered_queries, ("leave out", "mirror"))
    wanted = parse(measure)
    if not sign_names_group(wanted):
        raise InputError(
            f"{wanted} names no group by its sign; the mirror test needs one that does, as ARaB@10"
        )
    collection, requested = open_docs(docs), read_queries(queries)
    mirror = swapper(lexicon, names=names)
    neutral = neutral_queries(requested, names=names, lexicon=lexicon)
    if gendered_queries == "mirror":
        told = {_MIRRORED: len(requested) - len(neutral)}
        turned = swap(requested, names=names, lexicon=lexicon)
    else:
        told = {_LEFT_OUT: len(requested) - len(neutral)}
        requested = turned = neutral
    if requested.is_empty():
        raise InputError(
            "all queries name a gender; preference with gendered_queries='mirror' mirrors them too"
        )
    own = None if candidates is None else read_qrels(candidates).select("query_id", "doc_id")
    chosen = _chosen(rankers, settings)
    sides = {"raw": (collection, requested), "mirrored": (mirror.docs(collection), turned)}
    result: dict[str, dict[str, dict[str, float]]] = {label: {} for label in chosen}
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        for side, (texts, questions) in sides.items():
            counted = tally(texts, lexicon)
            of, against = wanted.pair(counted.groups)
            built: list[Any] = []
            for place, (label, how) in enumerate(chosen.items()):
                if callable(how):
                    run = how(texts, questions)
                else:
                    if not built:
                        built.append(index(texts, Path(folder) / side))
                    name, given = how
                    deep = built[0].documents if own is not None else max(depth, wanted.depth())
                    run = catalogue.make(name, index=built[0], **given).rank(questions, depth=max(deep, 1))
                run = read_run(run) if own is None else _among(read_run(run), own, requested)
                values = measure_runs(run, [wanted], tally=counted, confidence=None, missing="error")
                result[label][side] = values[wanted].per_query()
                if progress:
                    progress(place + 1 + (side == "mirrored") * len(chosen), 2 * len(chosen))
    tables_of = {label: _values(label, each) for label, each in result.items()}
    rows = [_row(label, str(wanted), table, confidence, seed) for label, table in tables_of.items()]
    corrected = stats.holm([row.p for row in rows])
    return MirrorTest(
        rows=tuple(
            replace(row, p_holm=p, of=of, against=against) for row, p in zip(rows, corrected, strict=True)
        ),
        values=pl.concat(tables_of.values()),
        left_out=told,
        confidence=confidence,
        provenance={
            "evenrank": evenrank.__version__,
            "docs": collection.describe(),
            "measure": str(wanted),
            "names": names,
            "lexicon": None if mirror.lexicon is None else mirror.lexicon.name,
            "gendered queries": gendered_queries,
            "depth": depth,
            "seed": seed,
        },
    )


def _chosen(
    rankers: Sequence[str] | Mapping[str, str | Ranking], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Label → a function, or the name and settings of a ranker."""
    if not isinstance(rankers, Mapping):
        return dict(chosen_rankers(rankers, settings))
    named = {label: how for label, how in rankers.items() if isinstance(how, str)}
    built = chosen_rankers(named, settings) if named else {}
    return {label: built[label] if isinstance(how, str) else how for label, how in rankers.items()}


def _among(run: pl.DataFrame, own: pl.DataFrame, requested: pl.DataFrame) -> pl.DataFrame:
    """Each query's own candidates in the order of the run; what it lacks comes last."""
    wanted = own.filter(pl.col("query_id").is_in(requested["query_id"].implode()))
    ranked = wanted.join(run, on=["query_id", "doc_id"], how="left", maintain_order="left")
    lowest = pl.min_horizontal(pl.col("score").min().over("query_id").fill_null(0.0) - 1, pl.lit(0.0))
    return read_run(ranked.select("query_id", "doc_id", pl.col("score").fill_null(lowest)))


def _values(label: str, sides: Mapping[str, Mapping[str, float]]) -> pl.DataFrame:
    raw, mirrored = sides["raw"], sides["mirrored"]
    both = [query for query in raw if query in mirrored]
    a, b = np.array([raw[q] for q in both]), np.array([mirrored[q] for q in both])
    columns = {"raw": a, "mirrored": b, "preference": (a + b) / 2, "content": (a - b) / 2}
    return pl.DataFrame(
        {"ranker": [label] * len(both), "query_id": both, **columns},
        schema={"ranker": pl.String, "query_id": pl.String, **dict.fromkeys(columns, pl.Float64)},
    )


def _row(label: str, measure: str, table: pl.DataFrame, confidence: float, seed: int) -> Preference:
    kept = {name: table[name].to_numpy() for name in ("raw", "mirrored", "preference", "content")}
    each = {name: stats.mean_interval(x, confidence=confidence, seed=seed) for name, x in kept.items()}
    test = stats.paired(kept["preference"], np.zeros(len(table)))
    parts = (each["raw"], each["mirrored"], each["preference"], each["content"])
    return Preference(label, measure, len(table), *parts, p=test.p)
