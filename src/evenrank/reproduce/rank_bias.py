"""Do neural rankers lean more than BM25? (Rekabsaz & Schedl 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.evaluate import measure
from evenrank.reproduce.page import Chart, Claim, Page, Table, changed
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import counted, number

_RANK_BIAS = {  # thousandths: TF RaB, TF ARaB, Boolean RaB, Boolean ARaB at 5 | 10 | 20 | 30
    "BM25": "74 74 30 25 | 76 76 39 31 | 74 76 41 36 | 73 75 41 38",
    "KNRM": "93 88 37 36 | 89 90 41 37 | 83 88 44 41 | 74 86 41 42",
    "MatchPyramid": "93 91 50 47 | 81 89 47 47 | 74 83 43 46 | 70 80 40 44",
    "PACRR": "102 106 41 39 | 96 104 43 42 | 86 98 43 43 | 83 94 45 43",
    "ConvKNRM": "76 55 39 31 | 82 66 45 37 | 84 75 49 42 | 82 78 49 45",
    "BERT-Base": "106 104 59 56 | 96 102 56 57 | 97 99 57 56 | 92 97 55 56",
    "BERT-Large": "101 108 57 57 | 90 100 52 54 | 82 93 53 53 | 83 90 52 53",
}
_USEFUL = {  # RR@10 and recall at 10: with random embeddings, then GloVe's (Table 1)
    "BM25": ((0.192, 0.398),),
    "KNRM": ((0.213, 0.390), (0.230, 0.439)),
    "MatchPyramid": ((0.232, 0.424), (0.240, 0.445)),
    "PACRR": ((0.228, 0.426), (0.242, 0.451)),
    "ConvKNRM": ((0.243, 0.443), (0.268, 0.488)),
    "BERT-Base": ((0.342, 0.585),),
    "BERT-Large": ((0.353, 0.596),),
}
_RANDOM = " random"  # behind the name of a run: the same ranker, begun with random embeddings
_CELLS = [
    f"{kind}(magnitude='{magnitude}')@{cutoff}"
    for cutoff, (magnitude, kind) in product((5, 10, 20, 30), product(("tf", "boolean"), ("RaB", "ARaB")))
]
_HEADINGS = [
    f"{'TF' if magnitude == 'tf' else 'Bool'} {kind}@{cutoff}"
    for cutoff, (magnitude, kind) in product((5, 10, 20, 30), product(("tf", "boolean"), ("RaB", "ARaB")))
]


def rank_bias_recipe(settings: Settings, steps: Steps) -> Page:
    """Do neural rankers lean more than BM25?"""
    if not settings.runs or len(settings.runs) < 2:
        raise InputError(
            "rank-bias compares runs: give BM25's first, then those of neural rankers, as in "
            "--run bm25=bm25.run --run pacrr=pacrr.run; evenrank train and rerank make them"
        )
    runs = dict(settings.runs)

    def work() -> dict[str, Any]:
        data = settings.dataset()
        read = {name: tables.run(run) for name, run in runs.items()}
        asked_of_runs = pl.concat([run.select("query_id") for run in read.values()]).unique()
        ranked = data.queries.join(asked_of_runs, on="query_id", how="semi", maintain_order="left")
        if ranked.is_empty():
            raise InputError(
                f"none of the runs has a query of {settings.name}; check that they belong together",
                path=next(iter((settings.runs or {}).values()), None),
            )
        judged = None if data.qrels is None else data.qrels.join(asked_of_runs, on="query_id", how="semi")
        labelled = {} if settings.genders is None else {"genders": settings.labels(ranked, steps.say)}
        asked = [*_CELLS, "RR@10", "R@10"]
        made = measure(
            read, asked, docs=data.docs, queries=ranked, qrels=judged,
            resamples=settings.resamples, seed=settings.seed, **labelled,
        )  # fmt: skip
        return {
            "queries": made[next(iter(runs)), _CELLS[0]].queries,
            "not ranked": len(data.queries) - len(ranked),
            "runs": {
                name: {
                    cell: {"value": made[name, cell].value, "per query": made[name, cell].per_query()}
                    for cell in asked
                }
                for name in runs
            },
        }

    found = steps("rank-bias", settings.facts, work)
    first, *rest = runs
    others = [name for name in rest if not name.endswith(_RANDOM)]
    rows = [[name, *(number(found["runs"][name][cell]["value"]) for cell in _CELLS)] for name in runs]
    for name, values in _RANK_BIAS.items():
        rows.append([f"{name}, published", *(number(int(v) / 1000) for v in values.replace("|", "").split())])
    above = [
        (name, cell)
        for name, cell in product(others, _CELLS)
        if found["runs"][name][cell]["value"] > found["runs"][first][cell]["value"]
    ]
    mean = changed(
        "neural rankers lean more to men than BM25 (in all but 4 of 96 cells)",
        f"more male in {len(above)} of {len(others) * len(_CELLS)} cells; the mean of a query's cells",
        asdict(_all_cells(found, first, others, settings)),
        lower=False,
    )
    useful = [
        [name, *(number(found["runs"][name][m]["value"], ".3f") for m in ("RR@10", "R@10"))] for name in runs
    ]
    for name, told in _USEFUL.items():
        kinds = (", random", ", GloVe") if len(told) > 1 else ("",)
        for kind, shares in zip(kinds, told, strict=True):
            useful.append([f"{name}{kind}, published", *(f"{share:.3f}" for share in shares)])
    return Page(
        "rank-bias",
        "Do neural ranking models intensify gender bias?",
        "N. Rekabsaz and M. Schedl, SIGIR 2020, Tables 1 and 3",
        "Five neural rankers and BM25 on MS MARCO passages; bias on 1,765 neutral queries.",
        _done(found, settings),
        [
            Table(
                "Table 3 and Figure 1: bias at four cut-offs (above 0 leans male)",
                ["ranker", *_HEADINGS],
                rows,
                [_curves(found), _published_curves()],
            ),
            Table("Table 1: effectiveness", ["ranker", "RR@10", "R@10"], useful),
        ],
        [mean, _transferred(found, others, settings)],
        ["The paper's table itself has 5 cells below BM25 and 2 equal, though its text says 4.",
         "Cells share documents and queries and are no independent votes: the test is on means over cells."],
        {"queries": found["queries"], "not ranked": found["not ranked"]},
    )  # fmt: skip


def _done(found: Mapping[str, Any], settings: Settings) -> str:
    """What was measured, and of which queries."""
    only = "" if settings.genders is None else " that name no gender"
    text = f"The given runs on {settings.name}, {counted(found['queries'], 'query', 'queries')}{only}."
    if left_out := found["not ranked"]:
        text += f" {counted(left_out, 'query', 'queries')} that no run ranks: left out."
    return settings.with_about(text)


def _curves(found: Mapping[str, Any]) -> Chart:
    """Figure 1: each measure by cut-off, a line for each ranker."""
    rows = [
        {"x": int(cell.rpartition("@")[2]), "value": one[cell]["value"], "of": name, "panel": _panel(heading)}
        for name, one in found["runs"].items()
        if not name.endswith(_RANDOM)
        for cell, heading in zip(_CELLS, _HEADINGS, strict=True)
    ]
    caption = f"Higher leans more to men. {asked([found['queries']])}."
    if any(name.endswith(_RANDOM) for name in found["runs"]):
        caption += " Rankers begun with random embeddings stand in the table."
    return Chart("lines", rows, "cut-off", "bias", caption, "Figure 1, here: bias by cut-off")


def _published_curves() -> Chart:
    rows = [
        {
            "x": int(heading.rpartition("@")[2]),
            "value": int(value) / 1000,
            "of": name,
            "panel": _panel(heading),
        }
        for name, values in _RANK_BIAS.items()
        for heading, value in zip(_HEADINGS, values.replace("|", "").split(), strict=True)
    ]
    caption = "Higher leans more to men. MS MARCO, 1,765 queries; embeddings of GloVe."
    return Chart("lines", rows, "cut-off", "bias", caption, "Figure 1, published")


def _panel(heading: str) -> str:
    return heading.partition("@")[0]


def _transferred(found: Mapping[str, Any], others: Sequence[str], settings: Settings) -> Claim:
    """Do given embeddings lean more than random ones? Runs `knrm` and `knrm random` are such a pair."""
    says = "transferred embeddings raise or keep bias against random ones (in 53 of 64 cells)"
    both = [name for name in others if name + _RANDOM in found["runs"]]
    if not both:
        return Claim(says, "no pair of runs such as knrm and 'knrm random' was given", None)
    kept = sum(
        found["runs"][name][cell]["value"] >= found["runs"][name + _RANDOM][cell]["value"]
        for name, cell in product(both, _CELLS)
    )
    pairs = [_means(found, [name + suffix for name in both]) for suffix in ("", _RANDOM)]
    shared = sorted(set(pairs[0]) & set(pairs[1]))
    test = stats.paired(*([each[query] for query in shared] for each in pairs), seed=settings.seed)
    what = f"at least as male in {kept} of {len(both) * len(_CELLS)} cells; the mean of a query's cells"
    return changed(says, what, asdict(test), lower=False)


def _means(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """The mean of all cells of some runs, for each query that all of them have."""
    columns = [found["runs"][name][cell]["per query"] for name, cell in product(names, _CELLS)]
    shared = set(columns[0]).intersection(*columns[1:])
    return {query: float(np.mean([column[query] for column in columns])) for query in shared}


def _all_cells(found: Mapping[str, Any], first: str, others: Sequence[str], settings: Settings) -> Any:
    """The paired test of the mean of all cells, query by query, the neural rankers against the first."""

    base, rest = _means(found, [first]), _means(found, others)
    shared = sorted(set(base) & set(rest))
    pairs = [rest[query] for query in shared], [base[query] for query in shared]
    return stats.paired(*pairs, seed=settings.seed)
