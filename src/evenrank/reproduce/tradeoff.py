"""How much bias can be removed before usefulness suffers, and by which method? (thesis, Section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import polars as pl

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError, check_choice
from evenrank.measures.evaluate import measure
from evenrank.measures.parse import parse
from evenrank.mitigate.constrain import constrain
from evenrank.mitigate.curve import TradeOff
from evenrank.mitigate.mitigations import METHODS
from evenrank.mitigate.tradeoff import sweep
from evenrank.reproduce.page import Chart, Claim, Page, Table, changed, kept
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import counted, number, p_value
from evenrank.text.tally import tally

_LATER = {  # RR, TF ARaB, NFaiRR at 10 on the 215 fairness-sensitive queries; BERT-mini and its like
    "original": (0.160, 0.137, 0.811),
    "AdvBert": (0.009, 0.002, 0.985),
    "CODER with neutrality": (0.015, 0.024, 0.934),
    "bias-aware loss": (0.167, 0.087, 0.845),
    "gender disentanglement": (0.188, 0.046, 0.866),
}


def tradeoff_recipe(settings: Settings, steps: Steps) -> Page:
    """Mitigations that need no training, at growing strength and at equal bias."""
    _check(settings)
    found = {"start": steps("tradeoff start", settings.facts, partial(_start, settings, steps))}
    for method in settings.some("methods"):
        work = partial(_swept, settings, steps, method)
        found[method] = steps(f"tradeoff {method}", settings.facts, work)
    equal = [row for each in found.values() for row in each.get("equal", [])]
    for row, p in zip(equal, stats.holm([row["p"] for row in equal]), strict=True):
        row["p_holm"] = p
    return _page(settings, found)


def _check(settings: Settings) -> None:
    """Refuse what cannot be meant before any work."""
    for name in ("bias", "utility"):
        text = settings.option(name)
        parse(text[4:-1] if text.startswith("abs(") and text.endswith(")") else text)
    for method in settings.some("methods"):
        check_choice("methods", method, METHODS)
    for level in settings.option("levels"):
        if not 0 < level < 1:
            raise InputError(f"levels has {level:g}; each is a share of the bias, above 0 and below 1")


def _run(settings: Settings, steps: Steps) -> pl.DataFrame:
    """The run to begin with: the first given one, or BM25's."""
    if settings.runs:
        asked = settings.dataset().queries["query_id"].implode()
        return tables.run(next(iter(settings.runs.values()))).filter(pl.col("query_id").is_in(asked))

    def work() -> pl.DataFrame:
        from evenrank.rankers import make
        from evenrank.rankers.index.building import own_index

        data = settings.dataset()
        ranker = make("bm25", index=own_index(data.docs, steps.say))
        return ranker.rank(data.queries, depth=settings.option("depth"))

    return steps.run("tradeoff bm25", settings.facts, work)


def _start(settings: Settings, steps: Steps) -> dict[str, Any]:
    data, run = settings.dataset(), _run(settings, steps)
    asked = [settings.option("bias"), settings.option("utility"), "ARaB@10", "NFaiRR@10", "RR@10"]
    plain = [name.removeprefix("abs(").removesuffix(")") for name in asked]
    made = measure(
        run,
        list(dict.fromkeys(plain)),
        tally=tally(data.docs),
        qrels=data.qrels,
        resamples=settings.resamples,
        seed=settings.seed,
    )
    return {str(one.measure): {"value": one.value, "abs": one.summary.abs, "n": one.queries} for one in made}


def _swept(settings: Settings, steps: Steps, method: str) -> dict[str, Any]:
    """The curve of a method, and at its settings what constrained re-ranking keeps at equal bias."""
    data, run = settings.dataset(), _run(settings, steps)
    counts = tally(data.docs)
    given: dict[str, Any] = {
        "qrels": data.qrels,
        "bias": settings.option("bias"),
        "utility": settings.option("utility"),
        "resamples": settings.resamples,
        "seed": settings.seed,
        "candidates": settings.option("depth"),
    }
    if method == "feedback":
        from evenrank.rankers.index.building import own_index

        curve = sweep(None, counts, method=method, index=own_index(data.docs), queries=data.queries, **given)
    else:
        curve = sweep(run, counts, method=method, **given)
    found = {"points": curve.to_dict()["points"], "queries": len(curve.queries)}
    if method != "constrain":
        found["equal"] = [
            row
            for share in settings.option("levels")
            if (row := _equal(settings, curve, counts, share)) is not None
        ]
    return found


def _equal(settings: Settings, curve: TradeOff, counts: Any, share: float) -> dict[str, Any] | None:
    """A setting of a method that leaves at most this share of the bias, beside constrained re-ranking."""
    first = curve.points[0]
    most = share * (first.bias.value or 0.0)
    reached = [point for point in curve.points[1:] if (point.bias.value or 0.0) <= most]
    if not reached:
        return None
    point = reached[0]
    start = first.run.filter(pl.col("query_id").is_in(list(curve.queries)))
    level = point.bias.value or 0.0
    bias, utility = settings.option("bias"), settings.option("utility")
    ours = constrain(start, counts, limit=f"{bias}<={level!r}", mode="mean")
    qrels = settings.dataset().qrels
    values = [
        measure(run, utility, qrels=qrels, confidence=None)[utility].per_query() for run in (ours, point.run)
    ]
    both = [query for query in curve.queries if all(query in each for each in values)]
    test = stats.paired([values[0][q] for q in both], [values[1][q] for q in both])
    return {
        "share": share,
        "strength": point.strength,
        "bias": level,
        "theirs": point.utility.value,
        **asdict(test),
    }


def _page(settings: Settings, found: Mapping[str, Any]) -> Page:
    methods = [name for name in found if name != "start"]
    bias, utility = settings.option("bias"), settings.option("utility")
    rows = [
        [
            f"{name}, {_strength(point['strength'])}",
            number(point["bias"], ".3f"),
            number(point["utility"], ".3f"),
            number(point["difference"]),
            p_value(point["p_holm"]),
            " ".join(word for word in ("front", "chosen") if point[word]),
        ]
        for name in methods
        for point in found[name]["points"]
    ]
    equal = [
        [
            f"{_named(name)}, at {row['share']:.0%} of the bias",
            number(row["bias"], ".3f"),
            number(row["theirs"], ".3f"),
            number(row["difference"]),
            f"[{number(row['low'])}, {number(row['high'])}]",
            p_value(row["p_holm"]),
            str(row["n"]),
        ]
        for name in methods
        for row in found[name].get("equal", [])
    ]
    later = [[name, *(f"{value:.3f}" for value in values)] for name, values in _LATER.items()]
    start = found["start"]
    ours = [start["RR@10"]["value"], start["ARaB@10"]["value"], start["NFaiRR@10"]["value"]]
    later.insert(0, [f"before anything, {settings.name}", *(number(value, ".3f") for value in ours)])
    return Page(
        "tradeoff",
        "How much bias can go before usefulness does?",
        "A. Bigdeli, thesis, Section 4.1; later work on the 215 fairness-sensitive queries",
        "Less bias by feedback, by negatives or by training; rankings of MS MARCO by BERT-mini and models "
        "of its size.",
        f"Mitigations that need no training on {settings.name}, "
        f"{counted(found[methods[0]]['queries'], 'query', 'queries')}; bias {bias}, usefulness {utility}.",
        [
            Table(
                "Each way at growing strength",
                ["way, strength", bias, utility, "change", "p (Holm)", "remarks"],
                rows,
                [_curves(found, methods, bias, utility)],
            ),
            Table(
                "Constrained re-ranking at equal bias: how much more it keeps",
                ["against", bias, f"{utility} of the other", "more", "95% interval", "p (Holm)", "queries"],
                equal,
            ),
            Table("Later work, at 10", ["ranker", "RR", "TF ARaB", "NFaiRR"], later),
        ],
        [*_halved(settings, found, methods), *_won(found, methods)],
        [
            "Remarks: no other strength of the way has both less bias and more usefulness than one on its "
            "front; chosen is the last strength on it with less bias before usefulness falls significantly.",
            *_began(settings, methods),
            "Where documents are nearly all about one gender, no order of them is balanced.",
            "Later work ranks other passages for other queries; its numbers are context, no comparison.",
        ],
        dict(found),
    )


def _named(method: str) -> str:
    """A method in the table at equal bias; feedback begins with other lists than the rest."""
    return "feedback, from RM3's lists" if method == "feedback" else method


def _began(settings: Settings, methods: list[str]) -> list[str]:
    if "feedback" not in methods:
        return []
    first = next(iter(settings.runs), "BM25") if settings.runs else "BM25"
    return [
        f"Feedback begins with the lists of RM3, the others with those of {first}: at equal bias, "
        "constrained re-ranking begins with the same lists as the way that it is compared with."
    ]


def _curves(found: Mapping[str, Any], methods: list[str], bias: str, utility: str) -> Chart:
    rows = [
        {"x": point["bias"], "value": point["utility"], "of": name}
        for name in methods
        for point in found[name]["points"]
    ]
    n = asked(found[name]["queries"] for name in methods)
    caption = f"Each point is a strength. Further left is less bias, further up more useful. {n}."
    return Chart("lines", rows, bias, utility, caption, "Bias against usefulness, by way")


def _strength(value: float | None) -> str:
    return "none" if value is None or value == float("inf") else f"{value:.3g}"


def _halved(settings: Settings, found: Mapping[str, Any], methods: list[str]) -> list[Claim]:
    """Can half of the bias go without a significant loss?"""
    claims = []
    for name in methods:
        points = found[name]["points"]
        half = 0.5 * points[0]["bias"]
        reached = [point for point in points[1:] if point["bias"] <= half * 1.001]
        says = f"half of the bias can go without a significant loss of usefulness ({name})"
        if not reached:
            claims.append(Claim(says, "no setting takes away half of it", None))
            continue
        change = {
            "difference": reached[0]["difference"],
            "low": reached[0]["difference_low"],
            "high": reached[0]["difference_high"],
            "p": reached[0]["p_holm"],
            "n": found[name]["queries"],
        }
        claims.append(kept(says, settings.option("utility"), change))
    return claims


def _won(found: Mapping[str, Any], methods: list[str]) -> list[Claim]:
    return [
        changed(
            f"at {row['share']:.0%} of the bias constrained re-ranking keeps more than {name} (ours)",
            f"from {name} to it usefulness",
            {**row, "p": row["p_holm"]},
            lower=False,
        )
        for name in methods
        for row in found[name].get("equal", [])
    ]
