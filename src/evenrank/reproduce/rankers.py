"""All rankers that need no training, side by side: how good they are, and how biased."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from evenrank import stats
from evenrank.data import files, tables
from evenrank.errors import InputError
from evenrank.rankers import make
from evenrank.rankers.index import Index
from evenrank.rankers.index.building import index as build
from evenrank.rankers.index.building import own_index
from evenrank.reproduce.page import Chart, Page, Table, bounded, changed
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import counted, number

MEASURES = ("nDCG@10", "RR@10", "AP", "RaB@10", "ARaB@10", "NFaiRR@10", "GSR", "LIWC@10")
_COMPARED = ("NFaiRR@10",)
_PLAIN = tuple(name for name in MEASURES if name not in _COMPARED)
_DEPTH = 1000
_DRAWN = 100
_DEBIASED = ("regular", "hard", "strong")

Say = Callable[[str], None]


class System(NamedTuple):
    """A ranker as it is called in the table, by name and settings."""

    label: str
    ranker: str
    settings: dict[str, Any]


def systems(*, vectors: Any = None, encoder: str | None = None, dense: bool = True) -> list[System]:
    """The rankers to compare; those with word vectors if there are any."""
    found = [System(name, name, {}) for name in ("bm25", "qld", "tfidf", "bm25+rm3", "qld+rm3")]
    found.append(System("bm25+rm3, λ = 0.5", "bm25+rm3", {"bias_lambda": 0.5}))
    if vectors is not None:
        for name in ("w2v_add", "w2v_si"):
            for debias in _DEBIASED:
                label = name if debias == "regular" else f"{name}, {debias}"
                found.append(System(label, name, {"vectors": vectors, "debias": debias}))
    if dense:
        found.append(System("dense", "dense", {} if encoder is None else {"model": encoder}))
    return found


def compare_rankers(
    data: Any,
    index: Index | str | os.PathLike[str],
    *,
    vectors: Any = None,
    model: str | None = None,
    dense: bool = True,
    seed: int = 0,
    say: Say | None = None,
) -> dict[str, Any]:
    """Every measure of every ranker on a collection, with 95 % intervals by query bootstrap.

    Parameters
    ----------
    data
        What :func:`evenrank.load` returns; it must have judgments.
    index
        An index of the documents, or where to make one.
    vectors
        Word vectors for w2v_add and w2v_si; without them these are left out.
    model, dense
        The sentence-transformer of the dense ranker; ``dense=False`` leaves it out.
    seed
        Of the random ranker, which draws 100 documents of the collection for each query.
    say
        Called with the label of each ranker as its turn comes.
    """
    if data.qrels is None:
        raise InputError("the rankers are compared by judgments; the collection has none")
    if not isinstance(index, Index):
        index = Index.open(index) if os.path.isdir(index) else build(data.docs, index)  # noqa: PTH112
    if index.docs.fingerprint() != data.docs.fingerprint():
        raise InputError("this is an index of another collection; name another folder", path=index.path)
    if vectors is not None:
        from evenrank.vectors import load

        vectors = load(vectors)
    given = {"docs": data.docs, "queries": data.queries, "qrels": data.qrels}
    given["tally"] = er.tally(data.docs)
    background = None
    rows = []
    for label, run in _runs(data, index, systems(vectors=vectors, encoder=model, dense=dense), seed):
        if say:
            say(label)
        background = run if background is None else background
        made = _measured(run, background, **given)
        rows.append({"ranker": label, **{name: _cell(made[name]) for name in MEASURES}})
    return {
        "documents": index.documents,
        "queries": len(data.queries),
        "depth": _DEPTH,
        "rankers": rows,
    }


def _runs(data: Any, index: Index, wanted: list[System], seed: int) -> Iterator[tuple[str, pl.DataFrame]]:
    for label, name, settings in wanted:
        yield label, make(name, index=index, **settings).rank(data.queries, depth=_DEPTH)
    drawn = _drawn(index, data.queries, seed)
    yield "random", make("random", qrels=drawn, seed=seed).rank(data.queries)
    yield "perfect", make("perfect", qrels=data.qrels).rank(data.queries)


def _drawn(index: Index, queries: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Documents of the whole collection for each query: where only relevant ones were judged, the judged
    documents in random order would be a perfect list."""
    rng = np.random.default_rng(seed)
    count = min(_DRAWN, index.documents)
    numbers = np.concatenate([rng.choice(index.documents, count, replace=False) for _ in range(len(queries))])
    return tables.qrels(
        pl.DataFrame(
            {
                "query_id": queries["query_id"].gather(np.repeat(np.arange(len(queries)), count)),
                "doc_id": index.doc_ids(numbers),
                "relevance": np.zeros(len(numbers), np.int64),
            }
        )
    )


def _measured(run: pl.DataFrame, background: pl.DataFrame, *, queries: Any, **given: Any) -> dict[str, Any]:
    """All measures; NFaiRR of those queries for which there are documents to compare with."""
    behind = background.select("query_id").unique()
    ranked, asked_of_both = (each.join(behind, on="query_id", how="semi") for each in (run, queries))
    plain = er.measure(run, _PLAIN, queries=queries, **given)
    compared = er.measure(ranked, _COMPARED, queries=asked_of_both, background=background, **given)
    return {str(one.measure): one for one in (*plain, *compared)}


def _cell(one: Any) -> dict[str, Any]:
    """Value and interval."""
    return {"value": one.value, "low": one.low, "high": one.high, "queries": one.queries}


def rankers_recipe(settings: Settings, steps: Steps) -> Page:
    """All rankers that need no training: a page with their measures, and whether they lean more than BM25."""
    vectors, model = settings.option("vectors") or None, settings.option("model") or None
    facts = dict(settings.facts) | ({} if vectors is None else {"vectors": files.fingerprint(vectors)})
    data = settings.dataset()
    wanted = systems(vectors=vectors, encoder=model, dense=settings.option("dense"))
    given: dict[str, Any] = {"docs": data.docs, "queries": data.queries, "qrels": data.qrels}

    def ranked(label: str, ranker: str, how: dict[str, Any]) -> pl.DataFrame:
        def work() -> pl.DataFrame:
            index = own_index(data.docs, steps.say)
            return make(ranker, index=index, **how).rank(data.queries, depth=settings.option("depth"))

        return steps.run(f"rankers {label}", {**facts, "system": [ranker, how]}, work)

    def measured(label: str, run: pl.DataFrame, first: pl.DataFrame) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            made = _measured(run, first, **settings.chance, tally=er.tally(data.docs), **given)
            cells = {name: _cell(made[name]) for name in MEASURES}
            return {"cells": cells, "lean": made["ARaB@10"].per_query()}

        return steps(f"rankers measured {label}", facts, work)

    first = ranked(*wanted[0])
    found = {label: measured(label, ranked(label, ranker, how), first) for label, ranker, how in wanted}
    found["perfect"] = measured("perfect", make("perfect", qrels=data.qrels).rank(data.queries), first)
    return _page(settings, len(data.queries), found)


def _page(settings: Settings, queries: int, found: dict[str, Any]) -> Page:
    headings = [f"|{name}|" if name.startswith("LIWC") else name for name in MEASURES]
    rows = [
        [label, *(number(one["cells"][name]["value"], ".3f") for name in MEASURES)]
        for label, one in found.items()
    ]
    base = found["bm25"]["lean"]
    others = [label for label in found if label.startswith(("w2v", "dense")) and "," not in label]
    tests = []
    for label in others:
        lean = found[label]["lean"]
        both = [query for query in base if query in lean]
        tests.append(asdict(stats.paired([lean[q] for q in both], [base[q] for q in both])))
    corrected = stats.holm([test["p"] for test in tests])
    claims = [
        changed(f"{label} leans more to men than BM25", "ARaB@10", {**test, "p": p}, lower=False)
        for label, test, p in zip(others, tests, corrected, strict=True)
    ]
    return Page(
        "rankers",
        "All rankers that need no training, side by side",
        "The question of N. Rekabsaz and M. Schedl, SIGIR 2020, asked of rankers that learn nothing here",
        "Neural rankers on MS MARCO passages were found to lean more to men than BM25.",
        f"Lexical {'and semantic ' if others else ''}rankers on {settings.name}, "
        f"{counted(queries, 'query', 'queries')}.",
        [Table("Effectiveness and bias", ["ranker", *headings], rows, [_dots(found)])],
        claims,
        [
            "No ranker is trained, and none is a cross-encoder."
            + (" p is corrected (Holm) over the rankers." if len(others) > 1 else "")
        ],
        {label: one["cells"] for label, one in found.items()},
    )


def _dots(found: dict[str, Any]) -> Chart:
    """Usefulness and the lean of each ranker, with their intervals."""
    rows = [
        {"x": label, "panel": name, **bounded(one["cells"][name])}
        for name in ("nDCG@10", "ARaB@10")
        for label, one in found.items()
    ]
    n = asked(one["cells"][name]["queries"] for one in found.values() for name in ("nDCG@10", "ARaB@10"))
    caption = f"ARaB above 0 leans male. {n}."
    return Chart("dots", rows, "", "value", caption, own_scale=True)
