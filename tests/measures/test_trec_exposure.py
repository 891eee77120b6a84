"""EEL, EED and EER against a slow oracle, written from the formulas of TREC Fair Ranking 2022, Task 2.

It shares nothing with the package: dictionaries, loops and the logarithm of Python, one document at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest

import evenrank as er

DOCS = [f"d{n}" for n in range(8)]
KINDS = {"gender": ("female", "male"), "field": ("art", "law", "sport")}
UNKNOWN = "unknown"


def attention(rank):
    return 1 / math.log2(max(rank, 2))


def alignment(shares, doc, kinds):
    """How far a document belongs to each crossing: the product over attributes; what is left is unknown."""
    found = {(): 1.0}
    for kind in kinds:
        own = shares.get(doc, {}).get(kind, {})
        each = {**own, UNKNOWN: 1 - sum(own.values())}
        found = {(*at, g): w * each.get(g, 0.0) for at, w in found.items() for g in (*KINDS[kind], UNKNOWN)}
    return found


def target(grades, shares, kinds):
    """The groups' part of what the relevant documents deserve; it adds up to 1."""
    relevant = sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda doc: -grades[doc])
    total = defaultdict(float)
    for doc in relevant:
        ranks = [r for r, other in enumerate(relevant, 1) if grades[other] == grades[doc]]
        deserved = sum(map(attention, ranks)) / len(ranks)
        for group, weight in alignment(shares, doc, kinds).items():
            total[group] += deserved * weight
    whole = sum(total.values())
    return {group: value / whole for group, value in total.items()}


def oracle(rankings, grades, shares, kinds, k, only_relevant):
    wished = target(grades, shares, kinds)
    budget = sum(attention(rank) for rank in range(1, k + 1))
    exposure = defaultdict(float)
    for ranking in rankings:
        for rank, doc in enumerate(ranking[:k], 1):
            if grades.get(doc, 0) > 0 or not only_relevant:
                for group, weight in alignment(shares, doc, kinds).items():
                    exposure[group] += attention(rank) * weight / len(rankings)
    pairs = [(exposure[group], share * budget) for group, share in wished.items()]
    return {
        "EEL": sum((e - t) ** 2 for e, t in pairs),
        "EED": sum(e * e for e, _ in pairs),
        "EER": sum(e * t for e, t in pairs),
    }


def test_a_topic_of_three_groups_by_hand():
    """A graded topic with two rankings, gender known of two relevant articles of three.

    Ranks 1, 2, 3 have the attention 1, 1, L = 1/log2(3). In the ideal ranking `a` (grade 2) stands first and
    gets 1; `b` and `c` (grade 1) share ranks 2 and 3, (1 + L)/2 = 0.8155 each. So the groups deserve 1,
    0.8155, 0.8155 of 2 + L, which is the attention of three ranks.

    Exposure: `a` is first, then second: 1 in the mean. `b` is third, then first: (L + 1)/2 = 0.8155. `c` is
    not there, then third: L/2 = 0.3155. `d` is not relevant and does not count.
    """
    rows = [("1", "a", 1), ("1", "d", 2), ("1", "b", 3), ("2", "b", 1), ("2", "a", 2), ("2", "c", 3)]
    run = pl.DataFrame(
        [("q", *row) for row in rows], schema=["query_id", "seq", "doc_id", "rank"], orient="row"
    )
    labels = pl.DataFrame({"doc_id": ["a", "b", "d"], "gender": ["female", "male", "female"]})
    given = "attribute='gender', target='relevant'"
    found = er.measure(
        run,
        [f"{name}({given})@3" for name in ("EEL", "EED", "EER")],
        labels=labels,
        qrels={"q": {"a": 2, "b": 1, "c": 1, "d": 0}},
        confidence=None,
    )
    # 0.5²; 1² + 0.8155² + 0.3155²; 1·1 + 0.8155·0.8155 + 0.3155·0.8155
    assert [round(one.value, 4) for one in found] == [0.25, 1.7645, 1.9222]


def random_case(seed):
    """Soft labels of most documents, graded judgments, several rankings of any length."""
    rng = np.random.default_rng(seed)
    shares = {}
    for doc in DOCS[:-1]:
        shares[doc] = {}
        for kind, groups in KINDS.items():
            parts = (
                rng.dirichlet(np.ones(len(groups) + 1)) if rng.random() < 0.7 else np.eye(len(groups) + 1)[0]
            )
            own = {g: round(float(p), 3) for g, p in zip(groups, parts[:-1], strict=True)}
            shares[doc][kind] = {g: p for g, p in own.items() if p}
    grades = {doc: int(rng.integers(0, 4)) for doc in DOCS} | {"d0": 1 + seed % 3}
    rankings = [list(rng.permutation(DOCS)[: rng.integers(1, 9)]) for _ in range(rng.integers(1, 5))]
    return shares, grades, rankings


@pytest.mark.parametrize("kinds", [("gender",), ("gender", "field")])
def test_equal_to_a_plain_oracle_on_random_cases(kinds):
    for seed in range(12):
        shares, grades, rankings = random_case(seed)
        rows = [
            (doc, kind, group, share)
            for doc, of in shares.items()
            for kind, groups in of.items()
            for group, share in groups.items()
        ]
        labels = pl.DataFrame(rows, schema=["doc_id", "attribute", "group", "share"], orient="row")
        places = [
            ("q", str(s), str(doc), r)
            for s, ranking in enumerate(rankings)
            for r, doc in enumerate(ranking, 1)
        ]
        run = pl.DataFrame(places, schema=["query_id", "seq", "doc_id", "rank"], orient="row")
        k, only_relevant = 1 + seed % 7, seed % 2 == 0
        given = f"attribute='{'*'.join(kinds)}', only_relevant={only_relevant}"
        names = ("EEL", "EED", "EER")
        measures = [f"{name}({given})@{k}" for name in names]
        found = er.measure(run, measures, labels=labels, qrels={"q": grades}, confidence=None)
        expected = oracle(rankings, grades, shares, kinds, k, only_relevant)
        assert {n: m.value for n, m in zip(names, found, strict=True)} == pytest.approx(
            expected, rel=0, abs=1e-12
        )
