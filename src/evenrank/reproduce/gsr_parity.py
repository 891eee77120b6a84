"""GSR against the share of stereotypical documents, over answers that a search engine could give.

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement, Information Processing &
Management 57(6), 2020, §3.5 and Figure 5: where each query has one stereotypical and one
counter-stereotypical document, GSR should follow statistical parity, the share of stereotypical ones among
what is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenrank.measures.gsr import slope
from evenrank.reproduce.gsr_toy import direct
from evenrank.vectors.texts import gendered_texts

PUBLISHED = 0.92


@dataclass(frozen=True)
class Parity:
    """Pearson's r between GSR and the share of stereotypical documents; `points` has both, by answer."""

    r: float
    p: float | None
    points: pl.DataFrame


def gsr_parity(vectors: Any = None, *, draws: int = 10_000, seed: int = 0) -> Parity:
    """Draw answers to the queries of the direct collection, and compare GSR with statistical parity.

    There are 3^20 answers in which each query gets its stereotypical document, the other one, or both
    (unranked). Drawn one by one, nearly all of them are close to balance; so for each, shares of the
    three are drawn first, from Dirichlet(1, 1, 1), and then every query's answer from these.
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
    shares = rng.dirichlet((1, 1, 1), draws)
    chosen = (rng.random((draws, int(known.sum()), 1)) > np.cumsum(shares, axis=1)[:, None, :2]).sum(axis=2)
    y = options[chosen, np.arange(options.shape[1])]
    gsr = slope.slopes(np.broadcast_to(x[known], y.shape), y)
    stereotypical = np.isin(chosen, (0, 2)).sum(axis=1)
    returned = np.where(chosen == 2, 2, 1).sum(axis=1)
    points = pl.DataFrame({"share": stereotypical / returned, "gsr": gsr})
    r = float(np.corrcoef(points["share"], points["gsr"])[0, 1])
    return Parity(r, slope.significance(r, draws), points)
