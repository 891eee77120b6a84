"""Two expansions of the same queries beside each other, gendered terms marked (thesis, Table 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from evenrank.arithmetic import settled


class WeightedTerm(NamedTuple):
    """A term of an expanded query; `group` is None for most."""

    term: str
    weight: float
    group: str | None


@dataclass(frozen=True)
class Pair:
    """A query and two expansions of it, heaviest terms first."""

    query_id: str
    text: str
    before: tuple[WeightedTerm, ...]
    after: tuple[WeightedTerm, ...]

    @property
    def removed(self) -> float:
        """Weight of gendered terms that the second expansion no longer has; negative if it has more."""
        return gendered_weight(self.before) - gendered_weight(self.after)

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "query_id": self.query_id,
            "text": self.text,
            "before": [term._asdict() for term in self.before],
            "after": [term._asdict() for term in self.after],
        }


def side_by_side(
    before: pl.DataFrame,
    after: pl.DataFrame,
    queries: pl.DataFrame | None,
    groups: Mapping[str, str],
    *,
    top: int | None = 10,
) -> list[Pair]:
    """The queries with gendered terms in either expansion, those that lost most weight of them first.

    Parameters
    ----------
    before, after
        Expanded queries: ``query_id``, ``term``, ``weight``.
    queries
        Their texts, if known.
    groups
        The group of each term that belongs to one.
    top
        How many at most; None for all.
    """
    texts = {} if queries is None else dict(zip(queries["query_id"], queries["text"], strict=True))
    was, now = _by_query(before, groups), _by_query(after, groups)
    pairs = [Pair(query, texts.get(query, ""), terms, now.get(query, ())) for query, terms in was.items()]
    marked = [pair for pair in pairs if any(term.group for term in (*pair.before, *pair.after))]
    marked.sort(key=lambda pair: -settled(pair.removed))
    return marked[:top]


def gendered_weight(terms: tuple[WeightedTerm, ...]) -> float:
    """What the gendered terms of an expanded query weigh together."""
    return sum(term.weight for term in terms if term.group)


def _by_query(expanded: pl.DataFrame, groups: Mapping[str, str]) -> dict[str, tuple[WeightedTerm, ...]]:
    found: dict[str, list[WeightedTerm]] = {}
    for query, term, weight in expanded.select("query_id", "term", "weight").iter_rows():
        found.setdefault(query, []).append(WeightedTerm(term, weight, groups.get(term)))
    return {
        query: tuple(sorted(terms, key=lambda term: -settled(term.weight))) for query, terms in found.items()
    }
