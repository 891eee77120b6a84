"""The section about labels that err: means as labelled, and as they would be with true labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.measures.results import Measurement
from evenrank.queries.label_errors import ASSUMED, AdjustedMeans
from evenrank.show.figure import Section
from evenrank.show.numbers import SIGNED, counted, form_of, interval, level, number
from evenrank.stats import Interval

_OF = {
    "queries": ("Queries by their gender", "The genders of queries are labels that err."),
    "documents": ("Documents by their words", "Whether a document shows a group is read off its words."),
}


@dataclass(frozen=True)
class Row:
    """One measure of one run: a cell for each group, as labelled and adjusted, or why there is none."""

    run: str
    measure: str
    queries: int
    labelled: tuple[tuple[str, str], ...]
    adjusted: tuple[tuple[str, str], ...]
    problem: str | None


@dataclass(frozen=True)
class Block:
    """What errors of the labels of queries, or of documents, do to all measures."""

    title: str
    groups: tuple[str, ...]
    rows: tuple[Row, ...]
    reservations: tuple[str, ...]


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """Means of groups whose labels are guesses."""
    blocks, leads, turned = [], [], False
    for of, (title, lead) in _OF.items():
        found = [(one, one.adjusted[of]) for one in audit.measured if of in one.adjusted]
        if found:
            blocks.append(_block(title, found))
            leads.append(f"{lead} {counts_said(found[0][1], of)}")
            turned = turned or any(means.problem is None for _, means in found)
    if not blocks:
        return None
    if turned:
        leads += [ASSUMED, "Where they do not, the adjusted values can be worse than the others."]
    lead = " ".join(leads)
    content = {"blocks": blocks, "level": level(audit.confidence or 0.95) if turned else None}
    return Section("label-errors", "If labels err", lead, template="label_errors.html", content=content)


def counts_said(found: AdjustedMeans, of: str) -> str:
    """How many labelled items the confusion table rests on."""
    if of == "documents":
        many = counted(max(found.labelled.values(), default=0), "labelled document")
        return f"The confusion table counts {many}."
    each = ", ".join(f"{count:,} {group}" for group, count in found.labelled.items())
    many = counted(sum(found.labelled.values()), "labelled query", "labelled queries")
    return f"The confusion table counts {many} ({each})."


def _block(title: str, found: list[tuple[Measurement, AdjustedMeans]]) -> Block:
    groups = tuple(dict.fromkeys(group for _, means in found for group in means.naive))
    pair = found[0][1].pair
    rows = tuple(_row(one, means, groups) for one, means in found)
    said = [
        f"{one.measure} of {one.run}: {line}"
        for one, means in found
        if means.problem is None
        for line in means.reservations()
    ]
    return Block(title, (*groups, " − ".join(pair)), rows, tuple(said))


def _row(one: Measurement, means: AdjustedMeans, groups: tuple[str, ...]) -> Row:
    form, nothing = form_of(one.measure), Interval(None, None, None)

    def cells(values: Mapping[str, Interval], gap: Interval) -> tuple[tuple[str, str], ...]:
        shown = [(values.get(group, nothing), form) for group in groups]
        return tuple(
            (number(each.value, how), interval(each.low, each.high, how))
            for each, how in [*shown, (gap, SIGNED)]
        )

    return Row(
        one.run,
        str(one.measure),
        means.queries,
        cells(means.naive, means.naive_difference),
        cells(means.means, means.difference),
        means.problem,
    )
