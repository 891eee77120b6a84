"""Published re-rankers beside `constrain`: bias reached, nDCG kept, time; and all of them at equal bounds.

For every query `constrain` is given the bias that the other method reached on it as its bound, so that it is
nowhere more biased. The ranking of the other method is then one that it could have chosen, and its own
utility cannot be lower; what judged relevance says is another question.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.pages import fill, interval, number, table
from evenrank import stats
from evenrank.data.runs import read_run
from evenrank.measures.inputs import Inputs
from evenrank.mitigate._solver.lists import gains, solve
from evenrank.mitigate.constrain import applied, reordered_run
from evenrank.mitigate.limits import Limit, parse_limits
from evenrank.show.numbers import p_value

_AT, _CANDIDATES, _BUDGET = 10, 100, 0.2
_COLLECTIONS = ("genderbias-qa", "time", "squad", "wiki")
_WORDS, _GROUPS = f"ARaB@{_AT}", f"ExposureGap@{_AT}"
_USE = f"nDCG@{_AT}"
_EVERY = {"squad": 2, "wiki": 4}
"""Of so many test queries one is taken: those at places divisible by it."""


def _methods() -> dict[str, Callable[[Any, dict[str, Any]], Any]]:
    """Every method by the name it has in the tables. Nothing is tuned: targets and λ are fixed beforehand."""

    def shares(method: str, target: str) -> Callable[[Any, dict[str, Any]], Any]:
        return lambda run, given: er.rebalance(
            run, method, at=_AT, target=target, candidates=_CANDIDATES, **given
        )

    def mixed(weight: float) -> Callable[[Any, dict[str, Any]], Any]:
        return lambda run, given: er.interpolate(run, given["tally"], weight, candidates=_CANDIDATES)

    found = {"detgreedy, equal shares": shares("detgreedy", "equal")}
    for method in ("detgreedy", "detcons", "detrelaxed", "detconstsort"):
        found[f"{method}, shares of the collection"] = shares(method, "collection")
    found["fair, half female"] = shares("fair", "equal")
    return found | {f"interpolate, λ = {weight}": mixed(weight) for weight in (0.3, 0.5, 0.7)}


def head_to_head(data: Path) -> dict[str, Any]:
    """Every collection; groups are labels where there are some, else the group with most words."""
    found: dict[str, Any] = {
        "at": _AT,
        "candidates": _CANDIDATES,
        "budget of constrain for a query, seconds": _BUDGET,
    }
    for name in _COLLECTIONS:
        found[name] = _collection(data, name)
        print(f"{name}: done", flush=True)
    found["a million rows"] = _million()
    fill("mitigation/head-to-head.md", page(found))
    return found


def _opened(data: Path, name: str) -> tuple[pl.DataFrame, Any, dict[str, Any]]:
    """BM25's run for judged queries, the judgments, and what tells the groups."""
    loaded = er.load(data / "data" / name, **({"split": "test"} if name in ("squad", "wiki") else {}))
    plain = data / "runs" / f"{name}.bm25.run"
    path = plain if plain.exists() else plain.with_suffix(".run.gz")
    asked = loaded.queries.filter(pl.col("query_id").is_in(loaded.qrels["query_id"].implode()))
    asked = asked.gather_every(_EVERY.get(name, 1))
    if path.exists():
        run = read_run(path).filter(pl.col("query_id").is_in(asked["query_id"].implode()))
    else:
        with TemporaryDirectory() as folder:
            index = er.index(loaded.docs, Path(folder) / "index")
            run = er.search(index, asked, ranker="bm25", depth=_CANDIDATES)
    given: dict[str, Any] = {"tally": er.tally(loaded.docs)}
    labels = data / "data" / name / "labels.tsv"
    if labels.exists():
        given["labels"] = labels
    return read_run(run), loaded.qrels, given


def _collection(data: Path, name: str) -> dict[str, Any]:
    run, qrels, given = _opened(data, name)
    seen = _Seen(run, qrels, given)
    rows: dict[str, Any] = {}
    for label, method in _methods().items():
        method(run, given)  # what is compiled or cached is so now
        started = time.process_time()
        made = method(run, given)
        rows[label] = seen.described(made) | {
            "seconds": round(time.process_time() - started, 4),
            "status": dict(made.facts["status"]),
        }
        rows[label]["constrain"] = {bias: seen.at_bounds(made, bias) for bias in (_WORDS, _GROUPS)}
    _corrected(rows)
    labels = seen.inputs.groups
    return {
        "queries": len(seen.queries),
        "rows of the run": run.height,
        "groups": labels.how,
        "documents of each group in the run": {
            group: int(run["doc_id"].is_in(labels.frame.filter(pl.col(group) > 0)["doc_id"].implode()).sum())
            for group in labels.groups
        },
        "the run": seen.described(run),
        "methods": rows,
    }


class _Seen:
    """A run and what is measured of its re-rankings, over the queries that have all the measures."""

    def __init__(self, run: pl.DataFrame, qrels: Any, given: dict[str, Any]) -> None:
        self.run, self.qrels, self.given = run, qrels, given
        self.inputs = Inputs.open({"the run": run}, **given)
        self.first = np.flatnonzero(run["rank"].to_numpy() == 1)
        self.lengths = np.diff(self.first, append=run.height)
        scores = run["score"].to_numpy()
        self.gain = [
            gains(scores[s : s + min(n, _CANDIDATES)], "dcg")
            for s, n in zip(self.first.tolist(), self.lengths.tolist(), strict=True)
        ]
        self.queries = run["query_id"].gather(self.first).to_list()
        self.plain = self.values(run)

    def values(self, run: Any) -> dict[str, np.ndarray]:
        """Each measure for each query."""
        measures = [_WORDS, _GROUPS, _USE]
        found = er.measure(run, measures, qrels=self.qrels, confidence=None, **self.given)
        return {name: np.array([found[name].per_query()[q] for q in self.queries]) for name in measures}

    def described(self, run: Any) -> dict[str, Any]:
        values = self.values(run)
        told: dict[str, Any] = {f"abs({name})": _mean(np.abs(values[name])) for name in (_WORDS, _GROUPS)} | {
            _USE: _mean(values[_USE])
        }
        if run is not self.run:
            told[f"change of {_USE}"] = _compared(values[_USE], self.plain[_USE])
        return told

    def at_bounds(self, made: Any, bias: str) -> dict[str, Any]:
        """`constrain`, bounded for each query by the bias that another ranking has there."""
        theirs = self.values(made)
        condition = parse_limits(f"abs({bias})<=1")[0]
        (limit,) = applied([condition], self.inputs, _CANDIDATES)
        order = np.arange(self.run.height)
        solved = []
        started = time.process_time()
        for query, start in enumerate(self.first.tolist()):
            bounded = replace(condition, bound=float(abs(theirs[bias][query])))
            rows = Limit(bounded, limit.lists).alternatives(query)
            ranks = min(_AT, len(self.gain[query]))
            found = solve(self.gain[query], rows, ranks, budget=_BUDGET, exact=False)
            order[start : start + len(found.order)] = start + found.order
            solved.append(found)
        seconds = time.process_time() - started
        run = reordered_run(self.run, order)
        ours = self.values(run)
        own = np.array([found.utility for found in solved])
        other = self.utilities(made)
        exceeded = np.abs(ours[bias]) > np.abs(theirs[bias]) + 1e-9
        status = [found.status for found in solved]
        lost = own < other - 1e-9
        higher, lower = own > other + 1e-9, ours[_USE] < theirs[_USE] - 1e-12
        return {
            "status": {each: status.count(each) for each in sorted(set(status))},
            "queries beyond the bound": int(exceeded.sum()),
            "queries with lower utility": int(lost.sum()),
            "queries with lower utility, proved best": int(
                sum(bool(lost[i]) and found.proved for i, found in enumerate(solved))
            ),
            "utility": _compared(own, other),
            _USE: _mean(ours[_USE]),
            f"difference of {_USE}": _compared(ours[_USE], theirs[_USE]),
            f"abs({bias})": _mean(np.abs(ours[bias])),
            f"queries with higher utility and lower {_USE}": int((higher & lower).sum()),
            "seconds": round(seconds, 3),
        }

    def utilities(self, made: Any) -> np.ndarray:
        """Discounted gain of the first ranks, gains being the scores of the run that was re-ranked."""
        rank_of = self.run.select("query_id", "doc_id", was="rank")
        was = read_run(made).join(rank_of, on=["query_id", "doc_id"], how="left", maintain_order="left")
        ranks = was["was"].to_numpy() - 1
        found = []
        for gain, start in zip(self.gain, self.first.tolist(), strict=True):
            top = ranks[start : start + min(_AT, len(gain))]
            found.append(float(np.dot(gain[top], 1 / np.log2(np.arange(len(top)) + 2.0))))
        return np.array(found)


def _mean(values: np.ndarray) -> dict[str, Any]:
    made = stats.mean_interval(values)
    return {"value": made.value, "low": made.low, "high": made.high}


def _compared(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    made = stats.paired(a, b)
    return {
        "difference": made.difference,
        "low": made.low,
        "high": made.high,
        "p": made.p,
        "effect": made.effect,
        "n": made.n,
    }


def _corrected(rows: dict[str, Any]) -> None:
    """Holm's correction over the methods of a collection, for each family of tests."""
    families = [[row[f"change of {_USE}"] for row in rows.values()]]
    for bias in (_WORDS, _GROUPS):
        families.append([row["constrain"][bias][f"difference of {_USE}"] for row in rows.values()])
    for family in families:
        for one, p in zip(family, stats.holm([one["p"] for one in family]), strict=True):
            one["p_holm"] = p


def _million() -> dict[str, float]:
    """Seconds for 10,000 queries × 100 documents of three groups, a tenth without one."""
    rng = np.random.default_rng(0)
    queries, n = 10_000, 100
    documents = np.argsort(rng.random((queries, 400)), axis=1)[:, :n]
    run = read_run(
        pl.DataFrame(
            {
                "query_id": np.repeat(np.arange(queries), n).astype(str),
                "doc_id": documents.ravel().astype(str),
                "score": np.tile(np.arange(n, 0, -1.0), queries),
            }
        )
    )
    groups = np.array(["a", "b", "c"])[rng.integers(0, 3, 400)]
    three = {str(i): str(group) for i, group in enumerate(groups) if i % 10}
    two = {doc: "a" if group == "a" else "b" for doc, group in three.items()}
    found = {}
    for method in ("detgreedy", "detcons", "detrelaxed", "detconstsort", "fair"):
        took = []
        for _ in range(4):
            started = time.process_time()
            er.rebalance(run, method, labels=two if method == "fair" else three, target="equal")
            took.append(time.process_time() - started)
        found[method] = round(float(np.median(took[1:])), 2)
    return found


def _told(plain: dict[str, Any]) -> str:
    return ", ".join(f"{name} {found['value']:.3f}" for name, found in plain.items())


def page(found: dict[str, Any]) -> str:
    """The tables of docs/mitigation/head-to-head.md."""
    text = ""
    for name in _COLLECTIONS:
        content = found[name]
        plain = content["the run"]
        text += (
            f"### {name}\n\nBM25, {content['queries']:,} queries, {content['rows of the run']:,} rows; "
            f"groups: {content['groups']}. The run as it was: {_told(plain)}.\n\n"
        )
        heads = ["method", "cannot", f"abs({_WORDS})", f"abs({_GROUPS})", _USE, "change", "p", "seconds"]
        rows = []
        for label, row in content["methods"].items():
            change = row[f"change of {_USE}"]
            rows.append(
                [
                    label,
                    str(row["status"].get("infeasible", 0)),
                    number(row[f"abs({_WORDS})"]["value"], ".3f"),
                    number(row[f"abs({_GROUPS})"]["value"], ".3f"),
                    number(row[_USE]["value"], ".3f"),
                    f"{number(change['difference'])} {interval(change['low'], change['high'])}",
                    p_value(change["p_holm"]),
                    number(row["seconds"], ".2f"),
                ]
            )
        text += table(heads, rows) + "\n`constrain`, bounded query by query by what the method reached:\n\n"
        heads = [
            "method",
            "bound on",
            "proved",
            "open",
            "utility",
            "its interval",
            _USE,
            "its difference",
            "p",
            "seconds",
        ]
        rows = []
        for label, row in content["methods"].items():
            for bias, ours in row["constrain"].items():
                gap, use = ours["utility"], ours[f"difference of {_USE}"]
                proved = sum(ours["status"].get(each, 0) for each in ("kept", "optimal"))
                strong = use["low"] is not None and (use["low"] > 0 or use["high"] < 0)
                mark = "**" if strong else ""
                rows.append(
                    [
                        label,
                        bias,
                        f"{proved / content['queries']:.1%}",
                        str(ours["queries beyond the bound"]),
                        number(gap["difference"]),
                        interval(gap["low"], gap["high"]),
                        number(ours[_USE]["value"], ".3f"),
                        f"{mark}{number(use['difference'])}{mark} {interval(use['low'], use['high'])}",
                        p_value(use["p_holm"]),
                        number(ours["seconds"], ".1f"),
                    ]
                )
        text += table(heads, rows, left=2) + "\n"
    speeds = ", ".join(f"{method} {seconds:.2f}" for method, seconds in found["a million rows"].items())
    return text + (
        f"Ten thousand queries with a hundred documents each, seconds of one core: {speeds}. All numbers: "
        "[evidence](../evidence/head-to-head.json).\n"
    )
