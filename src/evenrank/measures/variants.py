"""VarRaB, VarARaB, VarNDRaB: does the list of a neutral query resemble that of its male or female variant?

Three lists are compared, those of "beauty tips", "beauty tips for women" and "beauty tips for men". No
document is read, so an engine can be audited of which only the results are known. In a run the query ``x``
has its variants under the ids ``x#female`` and ``x#male``.

S. Kopeinik, M. Mara, L. Ratz, K. Krieg, M. Schedl and N. Rekabsaz, Show me a "Male Nurse"! How Gender Bias is
Reflected in the Query Formulation of Search Engine Users, CHI 2023; L. Ratz, M. Schedl, S. Kopeinik and
N. Rekabsaz, Measuring Bias in Search Results Through Retrieval List Comparison, ECIR 2024.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, Param, PerQuery, register
from evenrank.measures.exposure import attention_weights
from evenrank.measures.lists import RankedLists, Weights
from evenrank.measures.rank_bias import arab_weights, rab_weights

SIDES = ("female", "male")
"""The variants of a query, and the groups that its list can resemble."""
MARK = "#"


def variant_id(query: str, side: str) -> str:
    """Return the id of a variant of a query in a run.

    >>> variant_id("x", "neutral"), variant_id("x", "female")
    ('x', 'x#female')
    """
    return query if side == "neutral" else f"{query}{MARK}{side}"


def neutral_lists(run: pl.DataFrame, name: str) -> pl.DataFrame:
    """The lists of neutral queries, with the rank in the lists of the variants; 0 for none.

    Variants are no queries of their own: they go where their query goes, and nobody counts them.
    """
    neutral = run.filter(~pl.col("query_id").str.contains(f"{MARK}({'|'.join(SIDES)})$"))
    if len(run) and len(neutral) == len(run):
        raise InputError(
            f"{name}: no query has variants; they go by ids such as x{MARK}female and x{MARK}male, "
            "and `evenrank compare-variants` makes them"
        )
    for side in SIDES:
        ending = f"{MARK}{side}"
        variant = run.filter(pl.col("query_id").str.ends_with(ending)).select(
            pl.col("query_id").str.strip_suffix(ending), "doc_id", pl.col("rank").alias(side)
        )
        has_variant = pl.col("query_id").is_in(variant["query_id"].unique().implode())
        neutral = neutral.join(variant, on=["query_id", "doc_id"], how="left", maintain_order="left")
        neutral = neutral.with_columns(pl.col(side).fill_null(0), has_variant.alias(f"has {side}"))
    return neutral


class VariantBias(BiasMeasure):
    """Base of the three: which documents of the neutral list are in the top t of each variant's."""

    NEEDS = frozenset({"variants"})
    PREFERRED = "zero"
    SIGN_NAMES_GROUP = True
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold")
    }
    MEANING = (
        "How much more of the neutral query's top {k} is in the top {k} of the {of} variant than in that of "
        "the {against} one."
    )
    weights: Weights

    def pair(self, groups: tuple[str, ...]) -> tuple[str, str]:
        return SIDES[1], SIDES[0]

    def per_query(self, lists: RankedLists) -> PerQuery:
        t = int(self["cutoff"])
        weighing = lists.weigh(self.weights, t)
        parts = {}
        for side in SIDES:
            rank = lists.columns[side].to_numpy()
            parts[side] = weighing.total(((rank >= 1) & (rank <= t)).astype(np.float64))
        both = (lists.columns["has female"] & lists.columns["has male"]).to_numpy()
        parts = {side: np.where(both[lists.starts], part, np.nan) for side, part in parts.items()}
        return PerQuery(parts["male"] - parts["female"], parts, undefined="a variant has no results")


class _VarRaB(VariantBias):
    """The share of a neutral query's top t that is also in its male variant's, minus the female one's.

    VarRaB_t = (1/m) Σ_{i≤m} [x_m(i) − x_f(i)], m = min(t, n), where x_g(i) is 1 if the i-th document of the
    neutral list is among the top t of the list of variant g, else 0. From −1 to 1: positive where the neutral
    list resembles the male one, negative the female one, 0 where it resembles both alike.
    """

    __name__ = NAME = "VarRaB"
    SHORT_DESC = "Share of the top t that the male variant finds too, minus that of the female one."
    ORDER_MATTERS = False
    weights = staticmethod(rab_weights)


class _VarARaB(VariantBias):
    """VarRaB averaged over the cut-offs 1..t, so that the top ranks of the neutral list weigh most.

    VarARaB_t = Σ_i w_i [x_m(i) − x_f(i)] with ARaB's weights, w_i = (1/m) Σ_{j=i..m} 1/j; x as in VarRaB.
    """

    __name__ = NAME = "VarARaB"
    SHORT_DESC = "VarRaB with the weights of ARaB: the top ranks weigh most."
    weights = staticmethod(arab_weights)


class _VarNDRaB(VariantBias):
    """VarRaB with a discount by rank, normalised.

    VarNDRaB_t = Σ_i w_i [x_m(i) − x_f(i)] with w_i = (1/log2(i + 1)) / Σ_{j≤m} 1/log2(j + 1); x as in VarRaB.
    """

    __name__ = NAME = "VarNDRaB"
    SHORT_DESC = "VarRaB with weights 1/log2(rank + 1), normalised by their sum."
    weights = staticmethod(attention_weights)


VarRaB = register(_VarRaB())
VarARaB = register(_VarARaB())
VarNDRaB = register(_VarNDRaB())
