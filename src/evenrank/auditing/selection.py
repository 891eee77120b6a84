"""Who is selected: how often the documents of each group reach the top ranks, and impact ratios.

A ranked list of candidates (applicants, sellers, authors) is a selection: who stands in the top k is shown,
the others are not. Counted are pairs of query and document; a person who is a candidate for three queries
counts three times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

from evenrank.errors import InputError
from evenrank.measures.groups import Labels

AND = " × "
"""Between the parts of a crossed category."""
FEWEST_SHARE = 0.02
"""6 RCNY § 5-301(d): a category below this share of the data may be left out of impact ratios."""

Rate = Literal["selection", "scoring"]


@dataclass(frozen=True)
class Category:
    """What one run did with the candidates of one category.

    Attributes
    ----------
    kind, category
        What is told apart (`gender`, or `gender × race`), and which part of it this is.
    candidates, selected, above
        Pairs of query and document: ranked at all, ranked in the top `at`, and scored above the median of
        all candidates of the run.
    share
        Of the candidates whose category is known.
    """

    run: str
    kind: str
    category: str
    candidates: int
    selected: int
    above: int
    share: float

    def rate(self, of: Rate = "selection") -> float:
        """Share of the candidates that is selected (or scored above the median), from 0 to 1."""
        return (self.selected if of == "selection" else self.above) / self.candidates


@dataclass(frozen=True)
class Impact:
    """A category beside the one that fares best: `ratio` is its rate by that one's, from 0 to 1.

    None where the category is `excluded` from the comparison, or where nobody is selected at all.
    """

    category: Category
    rate: float
    ratio: float | None
    excluded: bool = False


@dataclass(frozen=True, eq=False)
class Selection:
    """How runs select among candidates of known groups.

    Attributes
    ----------
    at
        Ranks that count as selected.
    attributes
        The columns of the labels; with several, their crossing is counted too.
    categories
        Counts, by run, kind and category.
    totals, unknown
        By run: all candidates; and, by kind, those whose category is not known.
    idle
        Runs whose lists are all no longer than `at`: everybody is selected, so rates say nothing.
    left_aside
        Columns of the labels that are no categories: they have too many values.
    medians
        By run: the median score of all candidates, which scoring rates count from.
    """

    at: int
    attributes: tuple[str, ...]
    categories: tuple[Category, ...]
    totals: Mapping[str, int]
    unknown: Mapping[str, Mapping[str, int]]
    idle: tuple[str, ...] = ()
    left_aside: tuple[str, ...] = ()
    medians: Mapping[str, float] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.kind for one in self.categories))

    def impacts(self, run: str, kind: str, of: Rate = "selection", smallest: float = 0.0) -> list[Impact]:
        """Rates and impact ratios of one run and kind.

        Impact ratio = rate of the category / rate of the category with the highest rate. Categories with
        less than a share `smallest` of the known candidates get a rate, but take no part in the ratios.
        """
        rows = [one for one in self.categories if one.run == run and one.kind == kind]
        best = max((one.rate(of) for one in rows if one.share >= smallest), default=0.0)
        return [
            Impact(
                one,
                one.rate(of),
                one.rate(of) / best if best and one.share >= smallest else None,
                excluded=one.share < smallest,
            )
            for one in rows
        ]

    def frame(self, smallest: float = 0.0) -> pl.DataFrame:
        """One row for each run, kind, rate and category."""
        rows = []
        rates: tuple[Rate, ...] = ("selection", "scoring")
        for run in self.totals:
            for kind in self.kinds:
                for of in rates:
                    for one in self.impacts(run, kind, of, smallest):
                        got = one.category.selected if of == "selection" else one.category.above
                        facts = (one.category.candidates, got, one.rate, one.ratio, one.category.share)
                        rows.append((run, kind, one.category.category, of, *facts, one.excluded))
        schema = {
            **dict.fromkeys(("run", "kind", "category", "rate_of"), pl.String),
            **dict.fromkeys(("candidates", "selected_or_above"), pl.Int64),
            **dict.fromkeys(("rate", "impact_ratio", "share"), pl.Float64),
            "excluded": pl.Boolean,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "at": self.at,
            "attributes": list(self.attributes),
            "categories": [
                asdict(impact.category)
                | {"selection_rate": impact.rate, "impact_ratio": impact.ratio}
                | {"scoring_rate": impact.category.rate("scoring"), "scoring_ratio": scored.ratio}
                for run in self.totals
                for kind in self.kinds
                for impact, scored in zip(
                    self.impacts(run, kind), self.impacts(run, kind, "scoring"), strict=True
                )
            ],
            "candidates": dict(self.totals),
            "median_score": dict(self.medians),
            "unknown": {run: dict(of) for run, of in self.unknown.items()},
            "idle": list(self.idle),
            "left_aside": list(self.left_aside),
        }


def selection(runs: Mapping[str, pl.DataFrame], labels: Any, *, at: int = 10) -> Selection:
    """Count candidates, selected and scored above the median, by category.

    Parameters
    ----------
    runs
        Normalised runs by name.
    labels
        Documents and their categories: doc_id and one column for each attribute (gender, race, …).
    at
        Ranks that count as selected.
    """
    given = Labels.of(labels)
    if given.soft:
        raise InputError("these labels are shares; give labels of which each document has one")
    left_aside = given.left_aside
    columns = {name: rows["group"] for name, rows in given.attributes.items() if name not in left_aside}
    attributes = tuple(columns)
    table = pl.DataFrame({"doc_id": given.table.frame["doc_id"], **columns})
    crossed = [AND.join(attributes)] if len(attributes) > 1 else []
    # Null where any part is unknown: a crossed category needs all of its parts.
    table = table.with_columns(pl.concat_str(attributes, separator=AND).alias(name) for name in crossed)
    kinds = [*attributes, *crossed]
    rows: list[Category] = []
    totals, unknown, medians, idle = {}, {}, {}, []
    for name, run in runs.items():
        seen = run.join(table, on="doc_id", how="left", maintain_order="left")
        medians[name] = float(run["score"].median() or 0.0)  # type: ignore[arg-type]  # numbers
        seen = seen.with_columns(selected=pl.col("rank") <= at, above=pl.col("score") > medians[name])
        totals[name] = seen.height
        unknown[name] = {kind: int(seen[kind].null_count()) for kind in kinds}
        if not (run["rank"] > at).any():
            idle.append(name)
        for kind in kinds:
            known = seen.filter(pl.col(kind).is_not_null())
            counted = known.group_by(kind).agg(pl.len(), pl.col("selected").sum(), pl.col("above").sum())
            rows += [
                Category(name, kind, category, many, chosen, above, many / known.height)
                for category, many, chosen, above in counted.sort(kind).iter_rows()
            ]
    return Selection(at, attributes, tuple(rows), totals, unknown, tuple(idle), left_aside, medians)


def lowest(found: Selection, run: str, smallest: float = 0.0) -> Impact | None:
    """The category with the lowest impact ratio of a run, over all kinds."""
    each = [one for kind in found.kinds for one in found.impacts(run, kind, smallest=smallest)]
    return min((one for one in each if one.ratio is not None), key=lambda one: one.ratio or 0.0, default=None)


def small_categories(found: Selection) -> Sequence[str]:
    """The categories with less than a share (`FEWEST_SHARE`) of the known candidates, each once."""
    return list(
        dict.fromkeys(f"{one.kind} {one.category}" for one in found.categories if one.share < FEWEST_SHARE)
    )
