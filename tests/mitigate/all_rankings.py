"""All rankings of a few documents, measured by the package itself: the slow way to the best one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl

import evenrank as er
from evenrank.measures.parse import parse_condition
from evenrank.mitigate._solver.lists import gains

STRICTLY = 1e-11
"""By how much a value exceeds a strict bound that it equals: more than rounding, less than a real excess."""


def collection(counts: list[tuple[int, int]]) -> er.Tally:
    """A tally of documents d0, d1, … with so many female and male words."""
    female, male = (np.array(column) for column in zip(*counts, strict=True))
    return er.Tally.of(
        pl.DataFrame(
            {
                "doc_id": [f"d{i}" for i in range(len(counts))],
                "tokens": female + male + 3,
                "female": female,
                "male": male,
                "female_logwords": np.log1p(female),
                "male_logwords": np.log1p(male),
            }
        )
    )


def ranking(scores: list[float]) -> dict[str, dict[str, float]]:
    """A run of one query; scores are taken in falling order."""
    falling = sorted(scores, reverse=True)
    return {"q": {f"d{i}": score - 1e-9 * i for i, score in enumerate(falling)}}


def every_ranking(
    run: dict[str, dict[str, float]], tally: er.Tally, limits: list[str], **given
) -> tuple[np.ndarray, np.ndarray]:
    """Of each order of the documents its utility, and by how much it exceeds each limit."""
    docs = list(run["q"])
    conditions = [parse_condition(limit) for limit in limits]
    ranks = min(len(docs), max(c.measure["cutoff"] for c in conditions))
    gain = gains(np.array(list(run["q"].values())), "dcg")
    discount = 1 / np.log2(np.arange(ranks) + 2)
    orders = list(permutations(range(len(docs))))
    utility = np.array([discount @ gain[list(order[:ranks])] for order in orders])
    runs = {str(i): {docs[d]: -float(at) for at, d in enumerate(order)} for i, order in enumerate(orders)}
    measured = er.measure(
        {"all": runs}, [c.measure for c in conditions], tally=tally, confidence=None, **given
    )
    over = np.zeros((len(orders), len(conditions)))
    for k, condition in enumerate(conditions):
        found = measured["all", condition.measure].per_query()
        values = np.array([found.get(str(i), np.nan) for i in range(len(orders))])
        values = np.abs(values) if condition.absolute else values
        sign = 1 if condition.op.startswith("<") else -1
        # A value that equals a strict bound exceeds it, by next to nothing.
        beyond = 0.0 if "=" in condition.op else STRICTLY
        over[:, k] = np.maximum(sign * (values - condition.bound) + beyond, 0)
    return utility, over
