"""A set of queries, asked again and again: is a live engine still as even as it was?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
from ir_measures.measures import Measure

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.parse import Condition, parse_condition
from evenrank.rankers.base import Progress
from evenrank.rankers.catalogue import ranker_for
from evenrank.rankers.index import as_index
from evenrank.rankers.live.calls import EngineDown
from evenrank.rankers.live.ranker import LiveRanker
from evenrank.rankers.live.secrets import hidden
from evenrank.server.store import Observation, Value
from evenrank.text.lexicon import lexicon

MEASURES = ("ARaB@10", "RaB@10", "NFaiRR@10")
SHORTEST = 10
"""Seconds between two observations, at least: an engine is not there for its monitor."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, eq=False)
class Watch:
    """What is asked, and what is measured of the answers.

    Parameters
    ----------
    where
        The address of an engine, or the path of an index.
    ranker, settings
        How the index is searched; for an engine only settings.
    conditions
        What must not hold: ``abs(ARaB@10)>0.1``.
    qrels
        Judgments; those of queries that are not asked are left aside.
    genders, only
        Labels of the queries, and which of them bias is measured on: neutral ones, unless told otherwise.
    """

    where: Any
    queries: pl.DataFrame
    measures: tuple[Measure, ...]
    conditions: tuple[Condition, ...] = ()
    ranker: str = "bm25"
    settings: Any = None
    depth: int = 10
    lexicon: Any = "rekabsaz2020"
    qrels: Any = None
    genders: Any = None
    only: str | None = None

    @classmethod
    def of(
        cls, where: Any, queries: Any, measures: Sequence[str] = (), fail_if: Sequence[str] = (), **more: Any
    ) -> Watch:
        """A watch out of texts; a mistake in them is found before the engine is asked."""
        conditions = tuple(parse_condition(one) for one in fail_if)
        wanted: list[str | Measure] = [*(measures or MEASURES), *(one.measure for one in conditions)]
        asked = tables.queries(queries)
        if more.get("qrels") is not None:
            more["qrels"] = tables.qrels(more["qrels"])
        if more.get("genders") is not None:
            more["genders"] = tables.genders(more["genders"])
        more["lexicon"] = lexicon(more.get("lexicon", cls.lexicon))
        return cls(where, asked, tuple(listed_measures(wanted)), conditions, **more)

    def opened(self) -> Any:
        """The ranker; an address that cannot be one, or an unknown setting, is refused here."""
        return ranker_for(self.where, self.ranker, **(self.settings or {}))

    @property
    def source(self) -> str:
        """What is asked, without passwords."""
        engine = isinstance(self.where, str) and "://" in self.where
        named = hidden(self.where) if engine else f"{self.where} ({self.ranker})"
        label = self.only or ("neutral" if self.genders is not None else None)
        return named if label in (None, "all") else f"{named}, {label} queries"


def observe(watch: Watch, *, progress: Progress | None = None, known: bool = True) -> Observation:
    """Ask all queries once, and measure the answers; what fails is an observation too.

    Parameters
    ----------
    known
        Whether the engine has answered before. If not, what cannot work (no such host, table or index) is
        raised as a mistake of whoever asks; an engine that is down for now is an observation all the same.
    """
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    asked = len(watch.queries)
    try:
        run, docs, qrels, about = _answers(watch, progress)
        if run.is_empty():
            raise EngineDown("no query had a result")
        found = measure(
            {"engine": run},
            watch.measures,
            docs=docs,
            lexicon=watch.lexicon,
            queries=watch.queries,
            qrels=qrels,
            genders=watch.genders,
            only=watch.only,
        )
    except InputError as error:
        if not known and not isinstance(error, EngineDown):
            raise
        return Observation(time, watch.source, asked, 0, problem=" ".join(str(error).split()))
    rows = found.runs["engine"]
    return Observation(
        time,
        watch.source,
        asked,
        run["query_id"].n_unique(),
        tuple(Value(str(m.measure), m.value, m.low, m.high, m.queries) for m in rows),
        provenance={"ranker": about, "measured": found.provenance},
        per_query={str(m.measure): m.per_query() for m in rows},
    )


def _answers(watch: Watch, progress: Progress | None) -> tuple[pl.DataFrame, Any, Any, dict[str, Any]]:
    """The run, the texts that were shown, the judgments of what was asked, and what answered."""
    made = watch.opened()
    if isinstance(made, LiveRanker):
        with made:
            answers = made.ask(watch.queries, depth=watch.depth, progress=progress)
        if answers.frame.is_empty():
            raise EngineDown("no query had a result")
        run, docs = answers.shown()
        return run, docs, None if watch.qrels is None else answers.judged(watch.qrels), made.describe()
    run = made.rank(watch.queries, depth=watch.depth, progress=progress)
    texts = as_index(watch.where).docs.texts(run["doc_id"].unique(maintain_order=True).to_list())
    qrels = watch.qrels
    if qrels is not None:
        qrels = tables.qrels(qrels).filter(pl.col("query_id").is_in(watch.queries["query_id"].implode()))
    return run, texts, qrels, made.describe()


def alerts(watch: Watch, seen: Observation) -> list[str]:
    """One line for each bound that is exceeded, or could not be checked."""
    if seen.problem is not None:
        return [f"not measured: {seen.problem}"]
    values = {value.measure: value.value for value in seen.values}
    found = []
    for condition in watch.conditions:
        value = values.get(str(condition.measure))
        if value is None:
            found.append(f"{condition} cannot be checked: the value is undefined")
        elif condition.holds(value):
            found.append(f"{condition}: {condition.measure} is {value:+.4f}")
    return found


def seconds(text: str) -> float:
    """A period as text in seconds: 30s, 15m, 6h, 1d, 1w.

    >>> seconds("1d")
    86400.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip())
    if found is None:
        raise InputError(f"the period {text!r} cannot be read; write it as 30m, 6h, 1d or 1w")
    period = float(found[1]) * _UNITS[found[2]]
    if not SHORTEST <= period <= 366 * _UNITS["d"]:
        raise InputError(f"the period {text!r} must lie between {SHORTEST} seconds and a year")
    return period
