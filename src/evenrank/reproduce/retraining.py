"""Rankers trained in several ways and what their lists are like: what two recipes share.

A ranker is trained once for each way and seed; its run of the test queries is kept, and so nothing is
trained twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import files, tables
from evenrank.data.tables import Dataset
from evenrank.errors import InputError, choices
from evenrank.measures.evaluate import measure
from evenrank.rankers.neural.rerankers import INTERACTION, KINDS
from evenrank.reproduce.settings import Settings, parse_values
from evenrank.reproduce.steps import Steps
from evenrank.show.numbers import DASH, counted, number
from evenrank.text.tally import tally

USEFUL, FAIR, LEAN, BOOLEAN, LIWC = "RR@10", "NFaiRR@10", "ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10"
MEASURES = (USEFUL, FAIR, LEAN, BOOLEAN, LIWC)


def _check_adversary(settings: Settings) -> None:
    """Refuse an adversary that could not read the ranker, before anything is trained."""
    ranker = settings.option("ranker")
    if settings.option("adversary") and not settings.runs and ranker in INTERACTION:
        able = ", ".join(kind for kind in KINDS if kind not in INTERACTION)
        raise InputError(
            f"ranker {ranker} has no vector for an adversary to read; choose one of {able}, or train without "
            "one: --set adversary="
        )


class Retraining:
    """The training and the test queries of a collection, its first stage, and rankers trained on it."""

    def __init__(self, settings: Settings, steps: Steps, ways: Sequence[str]) -> None:
        settings = replace(settings, genders=settings.genders or "predict")
        self.settings, self.steps = settings, steps
        for name in settings.runs or {}:
            if _way(name) not in ways:
                raise InputError(f"--run {name}: there is no such way here; one of {', '.join(ways)}")
        _check_adversary(settings)
        split = settings.option("train_split")
        if settings.data is not None and not split and not settings.runs:
            raise InputError("name the training queries, as in --set train_split=train")
        self.learned = replace(settings, split=split or None, queries=settings.option("train_queries"))
        self.given = {} if settings.runs else training_values(settings, [settings.option("ranker")])
        self.facts = dict(settings.facts)
        if not settings.runs:
            self.facts["training"] = self.learned.facts["data"]
        lexicon = settings.option("lexicon")
        self.facts["lexicon"] = files.fingerprint(lexicon) if "." in lexicon else lexicon

    @cached_property
    def index(self) -> Any:
        from evenrank.rankers.index.building import own_index

        return own_index(self.settings.dataset().docs, self.steps.say)

    @cached_property
    def test(self) -> Any:
        """The test part; without a split of its own every other query of the demo collection."""
        data = self.settings.dataset()
        for run in (run for runs in self.ready.values() for run in runs):  # what all of them have ranked
            ranked = pl.col("query_id").is_in(run["query_id"].unique().implode())
            assert data.qrels is not None  # settings see to it
            data = data._replace(queries=data.queries.filter(ranked), qrels=data.qrels.filter(ranked))
        if self.ready:
            return data
        if self.settings.option("train_split"):
            return unseen(data, self.learned.dataset())
        return data._replace(queries=data.queries.gather_every(2, 1))

    @cached_property
    def ready(self) -> dict[str, list[pl.DataFrame]]:
        """Runs of rankers that were trained elsewhere, by way; `0.6 #2` is a second seed of `0.6`."""
        found: dict[str, list[pl.DataFrame]] = {}
        for name, path in (self.settings.runs or {}).items():
            found.setdefault(_way(name), []).append(tables.run(path))
        return found

    @property
    def trained(self) -> int | None:
        """How many training queries there are; None where runs were trained elsewhere."""
        return None if self.ready else len(self.train.queries)

    @cached_property
    def train(self) -> Any:
        data = self.learned.dataset()
        if self.settings.option("train_split"):
            return data
        return data._replace(queries=data.queries.gather_every(2))

    @cached_property
    def first(self) -> pl.DataFrame:
        """The first stage of the test queries."""
        from evenrank.rankers.catalogue import search

        def work() -> pl.DataFrame:
            return search(self.index, self.test.queries, depth=self.settings.option("depth"))

        return self.steps.run("retraining bm25", self.facts, work)

    @cached_property
    def counts(self) -> Any:
        return tally(self.settings.dataset().docs, self.settings.option("lexicon"))

    @cached_property
    def learned_first(self) -> pl.DataFrame:
        """The first stage of the training queries, for all ways of training."""
        from evenrank.rankers.catalogue import search

        return search(self.index, self.train.queries, depth=self.settings.option("pool"))

    def ranked(self, name: str, way: str, work: Callable[[int], pl.DataFrame]) -> list[pl.DataFrame]:
        """The runs of a way, one for each seed: as given, or made."""
        if self.ready:
            if way not in self.ready:
                told = "plain training" if way == "0" else f"the way {way!r}"
                raise InputError(
                    f"no run of {told} is given; name it as in --run {way}=FILE, or leave it out"
                )
            asked = pl.col("query_id").is_in(self.test.queries["query_id"].implode())
            return [run.filter(asked) for run in self.ready[way]]
        seeds: range = range(self.settings.option("seeds"))
        return [
            self.steps.run(
                f"{name}, seed {seed}", {**self.facts, "seed": seed}, partial(work, seed), trains=True
            )
            for seed in seeds
        ]

    def measured(self, runs: Sequence[pl.DataFrame]) -> dict[str, dict[str, float]]:
        """Each measure by query, the mean over the seeds."""
        found: dict[str, dict[str, list[float]]] = {name: {} for name in MEASURES}
        for run in runs:
            made = measure(
                run,
                MEASURES,
                docs=self.settings.dataset().docs,
                tally=self.counts,
                queries=self.test.queries,
                qrels=self.test.qrels,
                background=self.first,
                confidence=None,
            )
            for name in MEASURES:
                for query, value in made[name].per_query().items():
                    found[name].setdefault(query, []).append(value)
        return {
            name: {query: float(np.mean(values)) for query, values in each.items()}
            for name, each in found.items()
        }


def training_values(settings: Settings, rankers: Sequence[str]) -> dict[str, Any]:
    """Settings of the training, out of texts NAME=VALUE; refused unless each of the rankers has them."""
    from evenrank.training.trainer import read_settings

    given = parse_values(settings.option("training"))
    for ranker in rankers:
        if ranker not in KINDS:
            raise InputError(f"there is no ranker {ranker!r} to train; {choices(ranker, KINDS)}")
        if given:
            read_settings(ranker, given)
    return given


def _way(name: str) -> str:
    """The way that a run is of: `0.6` of `0.6 #2`."""
    return name.partition("#")[0].strip()


def unseen(test: Dataset, train: Dataset) -> Dataset:
    """The test part without questions that also stand in the training part."""
    from evenrank.rankers.neural.saved import text_hashes

    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    return test._replace(queries=test.queries.filter(pl.Series(~seen)))


def means(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean of each measure; of ARaB also that of its size."""
    found = {name: float(np.mean(list(each.values()))) for name, each in values.items() if each}
    for name in (LEAN, BOOLEAN):
        found[f"|{name}|"] = float(np.mean(np.abs(list(values[name].values()))))
    return found


def compared(
    before: Mapping[str, float], after: Mapping[str, float], *, size: bool = False, test: Any = "t"
) -> dict[str, Any]:
    """After against before, query by query: difference, intervals, p; of sizes where asked."""
    both = [query for query in before if query in after]
    a, b = (np.array([each[query] for query in both]) for each in (after, before))
    a, b = (np.abs(a), np.abs(b)) if size else (a, b)
    narrow = stats.paired(a, b, confidence=0.9)
    return {
        **asdict(stats.paired(a, b, test=test)),
        "low 90": narrow.low,
        "high 90": narrow.high,
        "before": float(b.mean()) if len(b) else None,
    }


def described(settings: Settings, found: Mapping[str, Any]) -> str:
    """What was trained and tested, in a sentence without its full stop."""
    tested = f"tested on {counted(found['queries'], 'query', 'queries')} of {settings.name}"
    if found["training"] is None:
        each = sorted(set(found["seeds"].values()))
        return f"Runs that were given, {' or '.join(map(str, each))} of each way, {tested}"
    seeds = counted(settings.option("seeds"), "seed")
    learned = counted(found["training"], "query", "queries")
    return f"The ranker {settings.option('ranker')}, trained on {learned} with {seeds}, {tested}"


def untested(settings: Settings, found: Mapping[str, Any]) -> str:
    """What the tests do not know of."""
    seeds = min(found["seeds"].values(), default=1) if found["training"] is None else settings.option("seeds")
    if seeds == 1:
        once = "has one run" if found["training"] is None else "was trained once"
        return (
            f"Tests are over queries, and each way {once}: what another seed would change is not in them, "
            "and a small effect may be that of the seed."
        )
    return (
        "Tests are over queries, whose values are means over the seeds: what other seeds would change is not "
        "in them."
    )


def cells(values: Mapping[str, float | None]) -> list[str]:
    """RR@10, NFaiRR@10, ARaB@10 signed and its size, Boolean ARaB@10, LIWC@10."""
    return [
        number(values.get(USEFUL), ".4f"),
        number(values.get(FAIR), ".4f"),
        number(values.get(LEAN), "+.4f"),
        number(values.get(f"|{LEAN}|"), ".4f"),
        number(values.get(BOOLEAN), "+.4f"),
        number(values.get(LIWC), ".4f"),
    ]


HEADINGS = ["RR@10", "NFaiRR@10", "TF ARaB@10", "|TF ARaB@10|", "Boolean ARaB@10", "LIWC@10"]


def published(name: str, useful: float | None, fair: float | None, lean: float | None, boolean: float | None,
              liwc: float | None = None) -> list[str]:  # fmt: skip
    """A row of a published table under the same headings."""
    shown = [DASH if value is None else f"{value:.4f}" for value in (useful, fair, lean, None, boolean, liwc)]
    return [f"{name}, published", *shown]
