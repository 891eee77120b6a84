"""`er.compare_variants`: an audit without documents, by what an engine returns for variants of queries.

Each triple is a query without gender, for women, and for men. Where the list of the first resembles that of
the last, the engine takes the question for a man's. The unit is the triple; fewer than five are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank import stats
from evenrank.data.read import fingerprint, read_queries, read_table
from evenrank.data.schema import DOC_ID, Table, show
from evenrank.errors import InputError
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.results import Measurement, Options
from evenrank.measures.variants import SIDES, VarARaB, VarNDRaB, VarRaB, variant_id
from evenrank.queries.variants import refuse_marked, triple_column, variants
from evenrank.queries.variants import triples as read_triples
from evenrank.show import numbers
from evenrank.show.grid import Grid, Recorded

FEWEST = 5
"""Triples below which nothing is judged: five of one sign have p = 0.06 in a sign-flip test, no less."""
RESULTS_SCHEMA = pl.Schema(
    {"engine": pl.String, "triple_id": pl.String, "topic": pl.String, "stereotype": pl.String}
    | {"variant": pl.String, "rank": pl.Int64, "doc_id": pl.String}
)
_NAMES = {
    "variant": ("variant", "gender"),
    "rank": ("rank", "position"),
    "doc_id": ("url", "link", *DOC_ID),
    "engine": ("engine", "system", "run"),
    "triple_id": ("triple_id", "triple", "query_id", "qid"),
    "topic": ("topic",),
    "stereotype": ("stereotype",),
}
_LIST = ("engine", "triple_id", "variant")


@dataclass(frozen=True)
class VariantLean:
    """One measure of one engine, over all triples or those of a topic.

    Attributes
    ----------
    toward
        What positive values point to: `male` (the neutral lists resemble those for men), or `stereotype`
        (they resemble those for the gender that the stereotype expects).
    parts
        How much of the neutral lists each gender's lists hold; the value is their difference.
    low, high, p, p_holm
        Interval (bootstrap over triples), p of the sign-flip test against 0, and corrected (Holm) over rows
        that ask the same of other engines or topics with the same measure; the three measures are readings of
        the same lists, and not corrected for one another. None where nothing is judged.
    """

    engine: str
    measure: str
    topic: str | None
    toward: str
    triples: int
    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        return self.p is not None

    @property
    def verdict(self) -> str:
        """`leans male`, `leans female`, `follows the stereotype`, …, `cannot tell` or `not judged`."""
        if self.p_holm is None or self.value is None:
            return "not judged"
        if self.p_holm >= 0.05:
            return "cannot tell"
        if self.toward == "stereotype":
            return "follows the stereotype" if self.value > 0 else "goes against the stereotype"
        return f"leans {SIDES[self.value > 0]}"


@dataclass(frozen=True, eq=False, repr=False)
class VariantAudit(Recorded):
    """What the neutral queries' results resemble, for each engine.

    Attributes
    ----------
    rows
        Over all triples, then topic by topic where topics have several triples.
    values
        ``engine, measure, triple_id, topic, stereotype, value``: every triple's.
    left_out
        By engine: how many triples have no value, and why.
    """

    at: int
    rows: tuple[VariantLean, ...]
    values: pl.DataFrame
    left_out: Mapping[str, Mapping[str, int]]
    confidence: float
    warnings: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.engine for row in self.rows))

    def overall(self) -> tuple[VariantLean, ...]:
        """The rows that are over all triples."""
        return tuple(row for row in self.rows if row.topic is None)

    def topics(self) -> tuple[VariantLean, ...]:
        """The rows that are over the triples of one topic."""
        return tuple(row for row in self.rows if row.topic is not None)

    def frame(self) -> pl.DataFrame:
        """The rows as a table."""
        flat = [
            {**{k: v for k, v in asdict(row).items() if k != "parts"}, **row.parts, "verdict": row.verdict}
            for row in self.rows
        ]
        return pl.DataFrame(flat, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "at": self.at,
            "confidence": self.confidence,
            "rows": [
                {**asdict(row), "positive": row.toward, "verdict": row.verdict, "parts": dict(row.parts)}
                for row in self.rows
            ],
            "triples": self.values.to_dicts(),
            "left_out": {engine: dict(reasons) for engine, reasons in self.left_out.items()},
            "warnings": list(self.warnings),
            "provenance": dict(self.provenance),
        }

    def grid(self, rows: Iterable[VariantLean] | None = None) -> Grid:
        """Rows as a table for people."""
        heads = [
            "engine",
            "measure",
            "triples of",
            "toward",
            "value",
            f"{numbers.level(self.confidence)} interval",
        ]
        cells = [
            [
                row.engine,
                row.measure,
                "all topics" if row.topic is None else row.topic,
                row.toward,
                numbers.signed(row.value),
                numbers.interval(row.low, row.high),
                numbers.p_value(row.p_holm),
                f"{row.triples:,}",
                row.verdict,
            ]
            for row in (self.rows if rows is None else rows)
        ]
        return Grid([*heads, "corrected p", "triples", ""], cells, left=4)

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])

    def remarks(self) -> list[str]:
        """What a reader of the table has to know."""
        rows = [
            f"{engine}: {numbers.counted(count, 'triple')} left out, {reason}"
            for engine, reasons in self.left_out.items()
            for reason, count in reasons.items()
        ]
        if any(not row.judged for row in self.rows):
            rows.append(f"Not judged: fewer than {FEWEST} triples.")
        return [*rows, *self.warnings]


def compare_variants(
    source: Any,
    *,
    triples: Any = None,
    queries: Any = None,
    at: int = 10,
    ranker: str = "bm25",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    progress: Any = None,
    **settings: Any,
) -> VariantAudit:
    """Audit an engine without its documents: do neutral queries find what their male or female variants find?

    Parameters
    ----------
    source
        Results: a file, frame or rows with ``variant`` (neutral, female, male), ``rank``, ``url`` (or
        ``doc_id``), ``triple_id`` (or only ``topic``), optionally ``engine``, ``topic``, ``stereotype``. With
        `triples` or `queries`, what is asked: an index, or the address of a live engine.
    triples
        The queries in three forms: ``triple_id``, ``neutral``, ``female``, ``male``, optionally ``topic`` and
        ``stereotype`` (female or male: whom the stereotype expects).
    queries
        Instead, queries that name no gender; :func:`evenrank.variants` writes the other two forms.
    at
        The cut-off t.
    ranker, settings
        How an index is searched, as in :func:`evenrank.search`.

    Returns
    -------
    :class:`VariantAudit`: VarRaB, VarARaB and VarNDRaB with intervals, one-sample tests, and topics apart.
    """
    if triples is not None and queries is not None:
        raise InputError("triples and queries are given; give one of them")
    if triples is None and queries is None:
        table = read_results(source)
    else:
        requested = read_triples(triples) if triples is not None else variants(queries)
        table = ask_variants(source, requested, at=at, ranker=ranker, progress=progress, **settings)
    return compared(table, at=at, confidence=confidence, resamples=resamples, seed=seed)


def ask_variants(
    where: Any, triples: Any, *, at: int = 10, ranker: str = "bm25", progress: Any = None, **settings: Any
) -> pl.DataFrame:
    """The results of an index or a live engine for triples, as :func:`compare_variants` reads them."""
    from evenrank.rankers.registry import is_engine, ranker_for

    requested = read_triples(triples)
    if requested.is_empty():
        raise InputError("there is no query without gender to write variants of")
    forms = ("neutral", *SIDES)
    texts = {variant_id(row["triple_id"], form): row[form] for row in requested.to_dicts() for form in forms}
    built = ranker_for(where, ranker, **settings)
    run = built.rank(read_queries(texts), depth=at, progress=progress)
    key = pl.DataFrame(
        [(variant_id(t, form), t, form) for t in requested["triple_id"] for form in forms],
        schema=["query_id", "triple_id", "variant"],
        orient="row",
    )
    more = [name for name in ("topic", "stereotype") if name in requested.columns]
    frame = run.join(key, on="query_id", maintain_order="left").join(
        requested.select("triple_id", *more), on="triple_id", maintain_order="left"
    )
    name = built.name if is_engine(where) else ranker
    return _in_order(frame.with_columns(engine=pl.lit(name)))


def read_results(x: Any) -> pl.DataFrame:
    """Result lists of variants, checked: `RESULTS_SCHEMA`."""
    table = read_table(x, _NAMES, optional=("engine", "triple_id", "topic", "stereotype"))
    columns = table.frame.columns
    if "triple_id" not in columns and "topic" not in columns:
        raise table.error("results need a column triple_id (or topic) that says which lists belong together")
    result = {name: triple_column(table, name) for name in columns if name != "rank"}
    result["rank"] = table.numbers("rank", whole=True)
    if "triple_id" not in columns:
        result["triple_id"] = table.ids("topic")
    refuse_marked(table, result["triple_id"])
    frame = pl.DataFrame(result)
    if "engine" not in columns:
        frame = frame.with_columns(engine=pl.lit("engine"))
    known = ("neutral", *SIDES)
    bad = ~frame["variant"].is_in(known)
    table.refuse(
        bad,
        lambda row: f"variant is {show(frame['variant'][row])}; it must be one of {', '.join(known)}",
    )
    table.refuse(frame["rank"] < 1, "rank is less than 1")
    for name in ("topic", "stereotype"):
        if name in columns:
            _check_one(table, frame, name)
    repeated = frame.select(pl.struct(*_LIST, "rank").is_duplicated()).to_series()
    table.refuse(repeated, "the same rank stands twice in one list")
    return _in_order(frame)


def _check_one(table: Table, frame: pl.DataFrame, name: str) -> None:
    """Refuse a triple with several topics or stereotypes."""
    first = frame.select(pl.col(name).first().over("triple_id")).to_series()
    table.refuse(
        ~frame[name].eq_missing(first),
        lambda row: f"triple {frame['triple_id'][row]} has several values of {name}; give it one",
    )


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    missing = [name for name in RESULTS_SCHEMA if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)
    return frame.select(pl.col(name).cast(kind) for name, kind in RESULTS_SCHEMA.items())


def compared(
    results: pl.DataFrame, *, at: int = 10, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> VariantAudit:
    """The audit of results that were read or asked for."""
    if results.is_empty():
        raise InputError("there are no results to compare")
    runs = {str(name): _as_run(part) for (name,), part in results.group_by("engine", maintain_order=True)}
    facts = results.select("triple_id", "topic", "stereotype").unique("triple_id", maintain_order=True)
    known = pl.DataFrame({"query_id": facts["triple_id"], "text": facts["triple_id"]})
    wanted = [VarRaB @ at, VarARaB @ at, VarNDRaB @ at]
    result = measured(
        Inputs(runs=runs, queries=known), wanted, Options(confidence=None, resamples=resamples, seed=seed)
    )
    if not any(len(m.values) for m in result):
        raise InputError("no triple has lists of all its variants: neutral, female and male")
    making = _Making(facts, confidence, resamples, seed)
    overall = [row for m in result for row in making.rows(m)]
    topics = [row for m in result for row in making.of_topics(m)]
    values = pl.concat(
        pl.DataFrame(
            {"engine": m.run, "measure": str(m.measure), "triple_id": m.query_ids, "value": m.values}
        )
        for m in result
    ).join(facts, on="triple_id", maintain_order="left")
    many = facts.drop_nulls("topic").group_by("topic").len()
    warnings = []
    twice = int(results.select(pl.struct(*_LIST, "doc_id").is_duplicated()).to_series().sum())
    if twice:
        warnings.append(
            f"{twice:,} of {len(results):,} results stand more than once in their list; each place counts."
        )
    if len(many) and int(many["len"].max()) > 1:  # type: ignore[arg-type]
        warnings.append(
            "Triples of one topic resemble one another; intervals and tests take them as independent."
        )
    return VariantAudit(
        at=at,
        rows=(*corrected(overall), *corrected(topics)),
        values=values.select("engine", "measure", "triple_id", "topic", "stereotype", "value"),
        left_out={m.run: m.left_out for m in result},
        confidence=confidence,
        warnings=tuple(warnings),
        provenance={"evenrank": evenrank.__version__, "results": fingerprint([results])}
        | {"resamples": resamples, "seed": seed},
    )


def _as_run(results: pl.DataFrame) -> pl.DataFrame:
    """The lists of one engine as a run; what an engine shows twice stays twice, as in no run of a file."""
    mark = pl.when(pl.col("variant") == "neutral").then(pl.lit("")).otherwise("#" + pl.col("variant"))
    return (
        results.select(query_id=pl.col("triple_id") + mark, doc_id="doc_id", place="rank")
        .with_columns(list=pl.col("query_id").rank("dense"))
        .sort("list", "place")
        .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id"))
        .select("query_id", "doc_id", score=-pl.col("rank").cast(pl.Float64), rank="rank")
    )


def corrected(rows: Sequence[VariantLean]) -> list[VariantLean]:
    """p corrected over engines and topics, for each measure and question on its own."""
    result: dict[int, float | None] = {}
    for requested in dict.fromkeys((row.measure, row.toward) for row in rows):
        family = [i for i, row in enumerate(rows) if (row.measure, row.toward) == requested]
        result.update(zip(family, stats.holm([rows[i].p for i in family]), strict=True))
    return [replace(row, p_holm=result[i]) for i, row in enumerate(rows)]


@dataclass(frozen=True)
class _Making:
    """Makes rows out of measurements: of all triples, of one topic; toward men, toward the stereotype."""

    facts: pl.DataFrame
    confidence: float
    resamples: int
    seed: int

    def rows(self, m: Measurement, topic: str | None = None) -> list[VariantLean]:
        facts = pl.DataFrame({"triple_id": m.query_ids}).join(
            self.facts, on="triple_id", maintain_order="left"
        )
        chosen = np.ones(len(m.values), bool)
        if topic is not None:
            chosen = (facts["topic"] == topic).fill_null(False).to_numpy()
        parts = {side: float(part[chosen].mean()) for side, part in m.part_values.items() if chosen.any()}
        result = [self._row(m, topic, "male", m.values[chosen], parts)]
        sign = facts["stereotype"].replace_strict({"female": -1.0, "male": 1.0}, default=np.nan)
        signs = sign.cast(pl.Float64).fill_null(np.nan).to_numpy()
        expected = chosen & ~np.isnan(signs)
        if topic is None and expected.any():
            result.append(self._row(m, None, "stereotype", (m.values * signs)[expected], {}))
        return result

    def of_topics(self, m: Measurement) -> list[VariantLean]:
        """A row for each topic, where some topic has several triples."""
        sizes = self.facts.drop_nulls("topic").group_by("topic", maintain_order=True).len()
        if sizes.is_empty() or int(sizes["len"].max()) < 2:  # type: ignore[arg-type]
            return []
        return [row for topic in sizes["topic"] for row in self.rows(m, topic)]

    def _row(
        self, m: Measurement, topic: str | None, toward: str, values: np.ndarray, parts: dict[str, float]
    ) -> VariantLean:
        mean = float(values.mean()) if len(values) else None
        row = VariantLean(m.run, str(m.measure), topic, toward, len(values), mean, parts=parts)
        if len(values) < FEWEST:
            return row
        between = stats.mean_interval(
            values, confidence=self.confidence, resamples=self.resamples, seed=self.seed
        )
        test = stats.paired(values, np.zeros(len(values)), test="permutation", seed=self.seed)
        return replace(row, low=between.low, high=between.high, p=test.p)
