"""Bias-aware relevance feedback (thesis, Section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from evenrank import stats
from evenrank.mitigate.feedback_effects import GenderedTerms, expanded_queries, gendered_terms
from evenrank.mitigate.feedback_sweep import feedback
from evenrank.reproduce.page import (
    LEVEL,
    Chart,
    Claim,
    Page,
    Table,
    bounded,
    changed,
    from_zero,
    kept,
    nearer,
    sign_test,
)
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import DASH, counted, number

_FEEDBACK = {  # collection: BM25, RM3, bias-aware at 0.5; TF ARaB, Boolean ARaB, LIWC
    "Robust04": ((0.61, 0.35, 0.48), (0.61, 0.34, 0.45), (0.43, 0.27, 0.34)),
    "Gov2": ((0.33, 0.14, 0.07), (0.39, 0.11, 0.07), (0.18, 0.07, 0.05)),
    "ClueWeb09": ((0.23, 0.08, 0.05), (0.22, 0.07, 0.07), (0.14, 0.06, 0.04)),
    "ClueWeb12": ((0.40, 0.14, 0.19), (0.42, 0.10, 0.20), (0.23, 0.05, 0.13)),
}
_HURT = {"Robust04": (78, 18), "Gov2": (64, 20), "ClueWeb09": (57, 25), "ClueWeb12": (63, 27)}
_TERMS = {  # number and weight of gendered terms, RM3 and bias-aware (Tables 4.3 and 4.4)
    "Robust04": ((65, 3.84), (49, 2.72)),
    "Gov2": ((16, 1.42), (5, 0.79)),
    "ClueWeb09": ((17, 2.2), (14, 1.85)),
    "ClueWeb12": ((11, 0.99), (8, 0.84)),
}
_BIASES = ("ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10")
_HALF = 0.5


def feedback_recipe(settings: Settings, steps: Steps) -> Page:
    """Bias-aware relevance feedback: less bias at what cost?"""
    ready = sorted(Path(settings.data).glob("*.rm3.tsv")) if settings.data else []
    if ready:
        return _expanded_page(settings, steps("feedback", settings.facts, partial(_compared, ready[0])))
    return _page(settings, steps("feedback", settings.facts | {"form": 2}, partial(_swept, settings, steps)))


def _swept(settings: Settings, steps: Steps) -> dict[str, Any]:
    from evenrank.rankers.index.building import own_index

    data = settings.dataset()
    swept = feedback(
        own_index(data.docs, steps.say),
        data.queries,
        qrels=data.qrels,
        measures=["AP", *_BIASES],
        fb_docs=settings.option("documents"),
        fb_terms=settings.option("terms"),
        alpha=settings.option("alpha"),
        resamples=settings.resamples,
    )
    zero, half = swept.step(0.0), swept.step(_HALF)
    return {
        "first": {str(one.measure): one.value for one in swept.first},
        "steps": [step.to_dict() for step in swept],
        "queries": len(data.queries),
        "signed": {
            name: from_zero(
                zero[name].measurement.per_query(), half[name].measurement.per_query(), **settings.chance
            )
            for name in _BIASES[:2]
        },
        "terms": _terms(zero.terms, half.terms, data.queries["query_id"].to_list()),
    }


def _compared(path: Path) -> dict[str, Any]:
    """Queries that were expanded by others: plain, and aware of bias."""
    aware = path.with_name(path.name.replace(".rm3.", ".bias-aware."))
    frames = [expanded_queries(one) for one in (path, aware)]
    asked = list(dict.fromkeys(query for frame in frames for query in frame["query_id"].to_list()))
    before, after = (gendered_terms(one) for one in frames)
    return {"terms": _terms(before, after, asked)}


def _terms(before: GenderedTerms, after: GenderedTerms, queries: list[str]) -> dict[str, Any]:
    """Number and weight of gendered terms, and paired tests over the queries."""
    tests = {}
    for name, value in (("number", pl.len()), ("weight", pl.col("weight").sum())):
        sides = [dict(one.hits.group_by("query_id").agg(value).iter_rows()) for one in (after, before)]
        values = [[float(side.get(query, 0.0)) for query in queries] for side in sides]
        tests[name] = asdict(stats.paired(*values, test="permutation"))
    return {"before": before.to_dict(), "after": after.to_dict(), "tests": tests}


def _terms_table(terms: Mapping[str, Any], name: str) -> Table:
    """Tables 4.3 and 4.4, as bars too."""
    rows = [[f"{name}, here"]]
    for side in ("before", "after"):
        rows[0] += [str(terms[side]["number"]), number(terms[side]["weight"], ".2f")]
    for collection, sides in _TERMS.items():
        rows.append([f"{collection}, published", *(f"{value:g}" for side in sides for value in side)])
    headings = ["collection", "terms, RM3", "weight, RM3", "terms, bias-aware", "weight, bias-aware"]
    own = [(terms[side]["number"], terms[side]["weight"]) for side in ("before", "after")]
    bars = [
        {"x": where, "value": after / before if before else None, "of": of, "panel": what}
        for where, told, of in (
            (f"{name}, here", own, "here"),
            *((collection, sides, "published") for collection, sides in _TERMS.items()),
        )
        for what, before, after in zip(("number of terms", "their weight"), *told, strict=True)
    ]
    caption = (
        "What bias-aware feedback leaves of the gendered terms that RM3 adds: 100% is as many. Here "
        f"{asked([terms['tests']['number']['n']])}."
    )
    chart = Chart("bars", bars, "", "bias-aware, of RM3", caption, form="%")
    return Table("Tables 4.3 and 4.4: gendered terms in expanded queries", headings, rows, [chart])


def _terms_claims(terms: Mapping[str, Any]) -> list[Claim]:
    return [
        changed(f"expanded queries hold {said}", f"the {name} of gendered terms in a query", test, lower=True)
        for name, said, test in (
            ("number", "fewer gendered terms", terms["tests"]["number"]),
            ("weight", "less weight of gendered terms", terms["tests"]["weight"]),
        )
    ]


def _expanded_page(settings: Settings, found: Mapping[str, Any]) -> Page:
    return Page(
        "feedback",
        "Bias-aware relevance feedback: the authors' expanded queries",
        "A. Bigdeli, thesis, Section 4.1, Tables 4.3 and 4.4",
        "Gendered terms in queries that RM3 and bias-aware RM3 have expanded.",
        f"The released expanded queries of {settings.name}, counted by the 64 words of rekabsaz2020.",
        [_terms_table(found["terms"], settings.name)],
        _terms_claims(found["terms"]),
        ["The thesis prints 65 terms where its released file holds 64; the weights are met exactly."],
        dict(found),
    )


def _page(settings: Settings, found: Mapping[str, Any]) -> Page:
    by_lambda = {step["lambda"]: {one["measure"]: one for one in step["measures"]} for step in found["steps"]}
    half, zero = by_lambda[_HALF], by_lambda[0.0]
    rows = [
        ["BM25, here", *(number(found["first"][name]) for name in _BIASES)],
        ["RM3, here", *(number(zero[name]["value"]) for name in _BIASES)],
        ["bias-aware, λ 0.5, here", *(number(half[name]["value"]) for name in _BIASES)],
    ]
    for collection, (bm25, rm3, aware) in _FEEDBACK.items():
        named = zip(("BM25", "RM3", "bias-aware, λ 0.5"), (bm25, rm3, aware), strict=True)
        rows += [[f"{system}, {collection}, published", *map(number, values)] for system, values in named]
    better, worse, n = (half["ARaB@10"][key] for key in ("improved", "hurt", "queries"))
    shares = [["here", f"{better:.0%}", f"{worse:.0%}", f"{n:,}"]]
    shares += [[f"{name}, published", f"{a}%", f"{b}%", DASH] for name, (a, b) in _HURT.items()]
    return Page(
        "feedback",
        "Bias-aware relevance feedback",
        "A. Bigdeli, thesis, Section 4.1, Tables 4.1–4.4, Figures 4.1–4.7",
        "RM3 on BM25 (10 documents, 10 terms), feedback documents weighed by relevance and by how little "
        "they lean; Robust04, Gov2, ClueWeb09 and ClueWeb12.",
        f"The same on {settings.name}, {counted(found['queries'], 'query', 'queries')}, our own RM3.",
        [
            Table(
                "Tables 4.1 and 4.2: bias by system (signed means; LIWC in sizes)",
                ["system", "TF ARaB@10", "Boolean ARaB@10", "LIWC@10"],
                rows,
            ),
            Table(
                "Figures 4.4 to 4.7: queries",
                ["collection", "improved", "hurt", "queries"],
                shares,
                [_improved(by_lambda, n)],
            ),
            _curve(by_lambda),
            _terms_table(found["terms"], settings.name),
        ],
        [*_claims(found, half, better, worse, n), *_terms_claims(found["terms"])],
        [
            "Index, BM25 and RM3 are ours, on the collection that is named above.",
            "LIWC's words are those of the open dictionary.",
            "Tables 4.1 and 4.2 print signed means, Figures 4.4 to 4.7 are about sizes: both are tested.",
        ],
        dict(found),
    )


def _curve(by_lambda: Mapping[float, Mapping[str, Any]]) -> Table:
    rows = []
    for strength, measures in sorted(by_lambda.items()):
        lean = measures["ARaB@10"]
        change = lean.get("change") or {}
        fall = change.get("difference")
        rows.append(
            [f"{strength:g}", number(measures["AP"]["value"], ".4f"), number(lean["value"]), number(fall)]
        )
    headings = ["λ", "AP", "mean ARaB@10, signed", "change of mean |ARaB@10|"]
    title = "Figures 4.1 to 4.3: usefulness and bias against λ"
    return Table(title, headings, rows, _curves(by_lambda))


def _curves(by_lambda: Mapping[float, Mapping[str, Any]]) -> list[Chart]:
    """Usefulness and the size of the bias against λ, and one against the other."""
    n = asked(one["queries"] for one in by_lambda[0.0].values())
    rows, points = [], []
    for strength, measures in sorted(by_lambda.items()):
        useful, lean = measures["AP"], measures["ARaB@10"]
        rows.append({"x": strength, **bounded(useful), "panel": "AP"})
        rows.append({"x": strength, **bounded(lean), "panel": "ARaB@10, signed"})
        for name, said in zip(_BIASES[:2], ("TF", "Boolean"), strict=True):
            rows.append({"x": strength, "value": measures[name]["abs"], "panel": f"|{said} ARaB@10|"})
        points.append({"x": lean["abs"], "value": useful["value"]})
    across = f"Each point is a λ, joined in their order. Left is less bias, up more useful. {n}."
    return [
        Chart("lines", rows, "λ", "value", f"{n}.", own_scale=True),
        Chart("lines", points, "mean |ARaB@10|", "AP", across, "Figure 4.3: usefulness against bias"),
    ]


def _improved(by_lambda: Mapping[float, Mapping[str, Any]], n: int) -> Chart:
    """Shares of queries whose lists lean less, as much, or more than those of plain RM3."""
    rows = []
    for strength, measures in sorted(by_lambda.items()):
        one = measures["ARaB@10"]
        if strength:
            shares = {"improved": one["improved"], "hurt": one["hurt"]}
            shares["same"] = 1 - one["improved"] - one["hurt"]
            rows += [
                {"x": f"λ = {strength:g}", "value": shares[name], "of": name}
                for name in ("improved", "same", "hurt")
            ]
    colours = {"improved": "good", "same": "rule", "hurt": "bad"}
    caption = f"Queries whose |ARaB@10| is smaller or larger than with plain RM3. {asked([n])}."
    return Chart("shares", rows, "", "share of queries", caption, colours=colours, form="%")


def _claims(
    found: Mapping[str, Any], half: Mapping[str, Any], better: float, worse: float, n: int
) -> list[Claim]:
    p = sign_test(round(better * n), round(worse * n))
    claims = [
        changed("λ 0.5 lowers the bias of the lists", "mean |ARaB@10|", half["ARaB@10"]["change"], lower=True)
    ]
    for name, said in zip(_BIASES[:2], ("TF", "Boolean"), strict=True):
        says = f"the signed mean of {said} ARaB@10 comes closer to 0, too"
        claims.append(nearer(says, "it", found["signed"][name]))
    claims.append(
        Claim(
            "more queries are improved than hurt",
            f"{better:.0%} improved, {worse:.0%} hurt",
            None if p is None or p >= LEVEL else better > worse,
            value=better - worse,
            p=p,
            n=n,
        )
    )
    claims.append(kept("effectiveness is kept", "AP", half["AP"]["change"]))
    return claims
