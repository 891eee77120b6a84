"""Two constructed collections on which GSR must say what everyone can see.

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement, Information Processing &
Management 57(6), 2020: §3.4 (direct stereotypes: men and women in occupations) and §4.1 (indirect ones:
traits of agency and communion). A stereotypical system (S), a neutral one (N) and a counter-stereotypical
one (CS) answer queries for occupations. An answer is a set: its documents share rank 1, and so weigh alike.
Where each query has one stereotypical and one counter-stereotypical document, GSR should follow statistical
parity, the share of stereotypical ones among what is returned (§3.5 and Figure 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from evenrank.data import files
from evenrank.measures.evaluate import measure
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.measure import GSR
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Table, correlated
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.numbers import DASH, number
from evenrank.vectors.gendered import association_tests
from evenrank.vectors.texts import gendered_texts
from evenrank.vectors.words import STEREOTYPES

SYSTEMS = ("S", "N", "CS")
PUBLISHED = {
    "direct": {"S": 1.61, "N": 0.0, "CS": -1.61},
    "indirect": {"S": 0.16, "N": 0.0, "CS": -0.16},
}
"""With Google-News vectors; Figures 4 and 6."""

_SETS = {stereotype.name: stereotype for stereotype in STEREOTYPES}
_JOBS, _TRAITS = _SETS["jobs"], _SETS["agency–communion"]
_DRAWN = 150  # points of Figure 5
_DEEP = 100  # deeper than any answer

Run = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Toy:
    """Queries, documents, and what each system returns; `side` is the gender of each query's stereotype."""

    queries: dict[str, str]
    docs: dict[str, str]
    systems: Mapping[str, Run]
    side: dict[str, str]


def direct() -> Toy:
    """ "The woman is a nurse": documents that name a person's gender."""
    return _toy({"female": {"woman": "The woman is a {job}"}, "male": {"man": "The man is a {job}"}})


def indirect() -> Toy:
    """ "The nurse is affectionate": documents that name a trait held to be female or male."""
    return _toy(
        {
            side: {trait: "The {job} is " + trait for trait in traits}
            for side, traits in (("female", _TRAITS.female), ("male", _TRAITS.male))
        }
    )


def _toy(patterns: Mapping[str, Mapping[str, str]]) -> Toy:
    side = dict.fromkeys(_JOBS.female, "female") | dict.fromkeys(_JOBS.male, "male")
    docs = {
        f"{job}-{key}": pattern.format(job=job)
        for job in side
        for of in patterns.values()
        for key, pattern in of.items()
    }
    other = {"female": "male", "male": "female"}

    def answers(sides: Mapping[str, tuple[str, ...]]) -> Run:
        return {
            job: {f"{job}-{key}": 1.0 for each in sides[of] for key in patterns[each]}
            for job, of in side.items()
        }

    systems = {
        "S": answers({of: (of,) for of in other}),
        "N": answers(dict.fromkeys(other, ("female", "male"))),
        "CS": answers({of: (other[of],) for of in other}),
    }
    return Toy({job: job for job in side}, docs, systems, side)


def values(toy: Toy, vectors: Any = None, *, pairs: Any = None) -> dict[str, float | None]:
    """GSR of the three systems."""
    unranked = GSR(discount="none") @ _DEEP
    measured = measure(
        toy.systems,
        unranked,
        docs=toy.docs,
        queries=toy.queries,
        vectors=gendered_texts(vectors, pairs=pairs),
        confidence=None,
    )
    return {name: measured[name, unranked].value for name in SYSTEMS}


def gsr_toy(vectors: Any = None) -> dict[str, Any]:
    """GSR of the three systems on both collections, and the published values."""
    texts = gendered_texts(vectors)
    return {
        "direct": values(direct(), texts),
        "indirect": values(indirect(), texts),
        "published": PUBLISHED,
    }


PARITY = 0.92
"""Published for :func:`gsr_parity`; Figure 5."""


@dataclass(frozen=True)
class Parity:
    """Pearson's r between GSR and the share of stereotypical documents; `points` has both, by answer."""

    r: float
    p: float | None
    points: pl.DataFrame


Draw = Literal["dirichlet", "uniform"]


def gsr_parity(
    vectors: Any = None, *, draws: int = 10_000, seed: int = 0, draw: Draw = "dirichlet"
) -> Parity:
    """Draw answers to the queries of the direct collection, and compare GSR with statistical parity.

    There are 3^20 answers in which each query gets its stereotypical document, the other one, or both
    (unranked). Drawn one by one (`uniform`), nearly all of them are close to balance; so for each, shares
    of the three are drawn first, from Dirichlet(1, 1, 1), and then every query's answer from these.
    """
    toy, texts = direct(), gendered_texts(vectors)
    jobs = list(toy.queries)
    x = texts.of_texts(jobs)
    docs = [toy.docs[f"{job}-{person}"] for job in jobs for person in ("woman", "man")]
    rows = np.repeat(np.arange(len(jobs)), 2)
    of_docs = texts.of_pairs(jobs, texts.find(docs), rows, np.arange(len(docs))).reshape(-1, 2)
    female = np.array([toy.side[job] == "female" for job in jobs])
    matching = np.where(female, of_docs[:, 0], of_docs[:, 1])
    opposite = np.where(female, of_docs[:, 1], of_docs[:, 0])
    known = ~np.isnan(x) & ~np.isnan(matching) & ~np.isnan(opposite)
    options = np.stack([matching, opposite, (matching + opposite) / 2])[:, known]
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet((1, 1, 1), draws) if draw == "dirichlet" else np.full((draws, 3), 1 / 3)
    chosen = (rng.random((draws, int(known.sum()), 1)) > np.cumsum(shares, axis=1)[:, None, :2]).sum(axis=2)
    y = options[chosen, np.arange(options.shape[1])]
    gsr = slope.slopes(np.broadcast_to(x[known], y.shape), y)
    stereotypical = np.isin(chosen, (0, 2)).sum(axis=1)
    returned = np.where(chosen == 2, 2, 1).sum(axis=1)
    points = pl.DataFrame({"share": stereotypical / returned, "gsr": gsr})
    r = float(np.corrcoef(points["share"], points["gsr"])[0, 1])
    return Parity(r, slope.significance(r, draws), points)


def gsr_toy_recipe(settings: Settings, steps: Steps) -> Page:
    """GSR of systems whose stereotypes are known."""
    vectors = settings.option("vectors") or None
    facts: dict[str, Any] = {"options": settings.options, "seed": settings.seed}
    facts |= {} if vectors is None else {"vectors": files.fingerprint(vectors)}

    def work() -> dict[str, Any]:
        texts = gendered_texts(vectors)
        chosen: dict[str, Any] = {"draws": settings.option("draws"), "seed": settings.seed}
        parity = {draw: gsr_parity(texts, **chosen, draw=draw) for draw in get_args(Draw)}
        return gsr_toy(texts) | {
            "parity": {draw: {"r": one.r, "p": one.p, "n": len(one.points)} for draw, one in parity.items()},
            "associations": [test.to_dict() for test in association_tests(texts.genderedness)],
        }

    found = steps("gsr-toy", facts, work)
    drawn = steps("gsr-toy points", facts, partial(_points, settings))
    rows = [
        [f"{kind}, {system}", number(value), number(found["published"][kind][system])]
        for kind in ("direct", "indirect")
        for system, value in found[kind].items()
    ]
    claims = []
    for kind in ("direct", "indirect"):
        s, n, cs = (found[kind][system] for system in ("S", "N", "CS"))
        claims.append(
            Claim(
                f"{kind}: above 0 for the stereotypical system, 0 for the neutral, below 0 for its opposite",
                f"{number(s)}, {number(n)}, {number(cs)}",
                s > 0 > cs and abs(n) < 1e-9,
                value=s,
            )
        )
    for draw, said in (("uniform", "drawn evenly"), ("dirichlet", "drawn by shares")):
        says = f"GSR follows the share of stereotypical documents (answers {said})"
        claims.append(correlated(says, found["parity"][draw]))
    tests = []
    for one in found["associations"]:
        tests.append([one["name"], number(one["difference"]), _small(one["p"]), _small(one["published"])])
        male, _, female = one["name"].partition("–")
        says = (
            f"{male} leans male, {female} female" if female else f"{male} of men lean male, of women female"
        )
        holds = None if one["p"] >= LEVEL else one["difference"] > 0
        told = f"the sets differ by {number(one['difference'])}"
        bounds = one["low"], one["high"]
        claims.append(Claim(says, told, holds, one["difference"], *bounds, one["p"], sum(one["words"])))
    agreement = [
        [said, number(found["parity"][draw]["r"], "+.2f"), "+0.92" if draw == "uniform" else DASH]
        for draw, said in (("uniform", "every answer alike"), ("dirichlet", "shares first (Dirichlet)"))
    ]
    return Page(
        "gsr-toy",
        "Gender stereotype reinforcement on constructed collections",
        "A. Fabris, A. Purpura, G. Silvello and G. A. Susto, IP&M 57(6), 2020: Figures 1, 4, 5 and 6",
        "Three systems over sentences such as “The woman is a nurse”; word vectors of Google News.",
        "The same sentences with "
        + ("the shipped table of genderedness (GloVe)." if vectors is None else f"{Path(vectors).name}."),
        [
            Table("Figures 4 and 6: GSR", ["collection, system", "here", "published"], rows, [_bars(found)]),
            Table(
                "Figure 5: Pearson's r of GSR and parity",
                ["answers", "here", "published"],
                agreement,
                [_parity(drawn, found)],
            ),
            Table(
                "Figure 1: association tests",
                ["sets", "difference of means", "p", "p, published"],
                tests,
                [_associations(found)],
            ),
        ],
        claims,
        [
            "Other vectors, so other sizes; signs and order are what can be compared.",
            "The paper enumerates the answers of Figure 5; here they are drawn. Drawn evenly nearly all are "
            "close to balance, so they are also drawn with shares first.",
            "On constructed collections values are exact: the first two claims need no test.",
        ],
        found,
    )


def _points(settings: Settings) -> dict[str, Any]:
    """The first of the answers, which Figure 5 draws."""
    texts = gendered_texts(settings.option("vectors") or None)
    found = {}
    for draw in get_args(Draw):
        made = gsr_parity(texts, draws=settings.option("draws"), seed=settings.seed, draw=draw)
        found[draw] = [
            [round(share, 4), round(gsr, 4)] for share, gsr in made.points.head(_DRAWN).iter_rows()
        ]
    return found


def _bars(found: Mapping[str, Any]) -> Chart:
    rows = [
        {"x": system, "value": value, "of": of, "panel": kind}
        for kind in ("direct", "indirect")
        for of, values in (("here", found[kind]), ("published", found["published"][kind]))
        for system, value in values.items()
    ]
    caption = f"S is stereotypical, N neutral, CS its opposite. n = {len(direct().queries)} queries each."
    return Chart("bars", rows, "", "GSR", caption, balance=0.0, own_scale=True)


def _parity(drawn: Mapping[str, Any], found: Mapping[str, Any]) -> Chart:
    said = {"uniform": "answers drawn evenly", "dirichlet": "answers drawn by shares"}
    rows = [{"x": share, "value": gsr, "panel": said[draw]} for draw in said for share, gsr in drawn[draw]]
    shown, n = len(drawn["uniform"]), found["parity"]["uniform"]["n"]
    caption = f"Each point is an answer to all queries; {shown:,} of n = {n:,} are drawn."
    return Chart("points", rows, "share of stereotypical documents", "GSR", caption)


def _associations(found: Mapping[str, Any]) -> Chart:
    rows = [
        {
            "x": f"{one['name']} (n = {sum(one['words'])})",
            "value": one["difference"],
            "low": one["low"],
            "high": one["high"],
        }
        for one in found["associations"]
    ]
    caption = "Right of 0 the first set is the more male; n words."
    return Chart("dots", rows, "", "difference of means", caption, balance=0.0)


def _small(p: float) -> str:
    return "0" if p == 0 else f"{p:.1e}"
