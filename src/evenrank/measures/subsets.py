"""Which queries count: all, or those that a label calls neutral (or female, or male).

The papers measure bias on queries that name no gender: leaning to one side is no bias where the query asks
for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.base import choices

SUBSETS = ("neutral", "female", "male", "other", "all")


def gender_labels(genders: Any) -> dict[str, str]:
    """Label of each query: neutral, female, male or other; from anything `tables.genders` reads."""
    return dict(tables.genders(genders).iter_rows())


def check_subset(only: str | None, labels: Mapping[str, str] | None) -> None:
    """Refuse a subset that cannot be formed."""
    if only is not None and only not in SUBSETS:
        raise InputError(f"only cannot be {only!r}; {choices(only, SUBSETS)}")
    if only not in (None, "all") and labels is None:
        raise InputError(f"only {only!r} needs gender labels for the queries; give genders")


def labels_of(query_ids: pl.Series, labels: Mapping[str, str] | None) -> pl.Series:
    """Label of each query, null where it has none."""
    found = [None if labels is None else labels.get(query) for query in query_ids.to_list()]
    return pl.Series("label", found, dtype=pl.String)


def left_out(
    known: Iterable[str],
    values: Collection[str],
    *,
    labels: Mapping[str, str] | None = None,
    only: str = "all",
    otherwise: str,
    reasons: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """How many of the known queries have no value, by reason.

    A query outside the subset counts under its label; one within it that is not in `values` under
    its own entry in `reasons`, or under `otherwise`.
    """
    found: Counter[str] = Counter()
    for query in known:
        label = None if labels is None else labels.get(query)
        if only != "all" and label != only:
            found["no gender label" if label is None else f"labelled {label}"] += 1
        elif query not in values:
            found[(reasons or {}).get(query, otherwise)] += 1
    return dict(sorted(found.items()))
