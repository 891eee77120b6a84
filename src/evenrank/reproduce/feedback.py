"""Bias-aware relevance feedback (thesis, Section 4.1)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenrank.mitigate.feedback.sweeping import feedback
from evenrank.rankers.index.building import index
from evenrank.reproduce.page import LEVEL, Claim, Page, Steps, Table, changed, kept, sign_test
from evenrank.reproduce.settings import Settings
from evenrank.show.numbers import counted, number

_FEEDBACK = {  # collection: BM25, RM3, bias-aware at 0.5; TF ARaB, Boolean ARaB, LIWC
    "Robust04": ((0.61, 0.35, 0.48), (0.61, 0.34, 0.45), (0.43, 0.27, 0.34)),
    "Gov2": ((0.33, 0.14, 0.07), (0.39, 0.11, 0.07), (0.18, 0.07, 0.05)),
    "ClueWeb09": ((0.23, 0.08, 0.05), (0.22, 0.07, 0.07), (0.14, 0.06, 0.04)),
    "ClueWeb12": ((0.40, 0.14, 0.19), (0.42, 0.10, 0.20), (0.23, 0.05, 0.13)),
}
_BIASES = ("ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10")


def feedback_recipe(settings: Settings, steps: Steps) -> Page:
    """Bias-aware relevance feedback: less bias at what cost?"""

    def work() -> dict[str, Any]:
        data = settings.dataset()
        with TemporaryDirectory() as folder:
            swept = feedback(
                index(data.docs, Path(folder) / "index"),
                data.queries,
                qrels=data.qrels,
                measures=["AP", *_BIASES],
                resamples=settings.resamples,
            )
        first = {str(one.measure): one.value for one in swept.first}
        return {"first": first, "steps": [step.to_dict() for step in swept], "queries": len(data.queries)}

    found = steps("feedback", settings.facts, work)
    by_lambda = {step["lambda"]: {one["measure"]: one for one in step["measures"]} for step in found["steps"]}
    half, zero = by_lambda[0.5], by_lambda[0.0]
    rows = [
        ["BM25, here", *(number(found["first"][name]) for name in _BIASES)],
        ["RM3, here", *(number(zero[name]["value"]) for name in _BIASES)],
        ["bias-aware, λ 0.5, here", *(number(half[name]["value"]) for name in _BIASES)],
    ]
    for collection, (bm25, rm3, aware) in _FEEDBACK.items():
        named = zip(("BM25", "RM3", "bias-aware, λ 0.5"), (bm25, rm3, aware), strict=True)
        rows += [[f"{system}, {collection}, published", *map(number, values)] for system, values in named]
    lean, useful = half["ARaB@10"]["change"], half["AP"]["change"]
    signed = (abs(zero["ARaB@10"]["value"]), abs(half["ARaB@10"]["value"]))
    better, worse, n = (half["ARaB@10"][key] for key in ("improved", "hurt", "queries"))
    p = sign_test(round(better * n), round(worse * n))
    claims = [
        changed("λ 0.5 lowers the bias of the lists", "mean |ARaB@10|", lean, lower=True),
        Claim(
            "the signed mean falls, too",
            f"its size goes from {signed[0]:.3f} to {signed[1]:.3f}; not tested",
            None,  # the sizes of two means are not tested here
            value=signed[1] - signed[0],
            n=half["ARaB@10"]["queries"],
        ),
        Claim(
            "more queries are improved than hurt",
            f"{better:.0%} improved, {worse:.0%} hurt",
            None if p is None or p >= LEVEL else better > worse,
            value=better - worse,
            p=p,
            n=n,
        ),
        kept("effectiveness is kept", "AP", useful),
    ]
    return Page(
        "feedback",
        "Bias-aware relevance feedback",
        "A. Bigdeli, thesis, Section 4.1, Tables 4.1–4.4",
        "RM3 on BM25 (10 documents, 10 terms), feedback documents weighed by relevance and by how little "
        "they lean; Robust04, Gov2, ClueWeb09 and ClueWeb12.",
        f"The same on {settings.name}, {counted(found['queries'], 'query', 'queries')}, our own RM3.",
        [
            Table(
                "Bias by system (signed means)", ["system", "TF ARaB@10", "Boolean ARaB@10", "LIWC@10"], rows
            )
        ],
        claims,
        [
            "Other collections and shorter documents than the paper's.",
            "LIWC's words are those of the open dictionary.",
        ],
        found,
    )
