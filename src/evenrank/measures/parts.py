"""What measures find in a run, query by query; and in the parts of a run that is too large for one look.

A measure of a list needs nothing but the list. So a run may be cut by query, on disk or on a cluster, and the
parts measured apart. What was seen of them is put together again: the same values, in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from evenrank.measures.lists import Floats, Ints, find_rows

if TYPE_CHECKING:
    from evenrank.measures.base import BiasMeasure
    from evenrank.measures.views import Context


_COUNTED = ("looked", "absent", "above", "unknown", "short")


@dataclass(frozen=True, eq=False)
class PerQuery:
    """A measure's value for each list, in their order; NaN where it is undefined, `undefined` says why."""

    values: Floats
    parts: Mapping[str, Floats] = field(default_factory=dict)
    undefined: str = "undefined"


@dataclass(frozen=True, eq=False)
class Seen:
    """What the measures of a view found in a run, or in some of its queries, list by list.

    Attributes
    ----------
    asked
        The queries for which something was ranked, in their order.
    query_ids, found, tied, counts
        Those with a list, and for each measure its values, whether a tie decides them, and how many documents
        it looked at (`looked`), how many of them the collection lacks (`absent`), how many stand above the
        cut-off (`above`) and how many of these show no group (`unknown`), and whether the list is no longer
        than the cut-off (`short`), where that is counted.
    emptied, ranked, skipped, held
        Queries without a document of the collection; ranked documents, those left out of the lists, and those
        whose group is known.
    within
        The contexts, for whoever explains the values; none for parts.
    """

    asked: pl.Series
    query_ids: pl.Series
    found: Mapping[BiasMeasure, PerQuery]
    tied: Mapping[BiasMeasure, NDArray[np.bool_]]
    counts: Mapping[BiasMeasure, Mapping[str, Ints]]
    emptied: tuple[str, ...] = ()
    ranked: int = 0
    skipped: int = 0
    held: int = 0
    within: Mapping[BiasMeasure, Context] = field(default_factory=dict)

    def to_arrow(self) -> pa.Table:
        """As a table, to be sent from a worker to whoever puts the parts together; measures by number."""
        columns: dict[str, Any] = {"query_id": self.query_ids.to_arrow(compat_level=pl.CompatLevel.oldest())}
        for number, (measure, found) in enumerate(self.found.items()):
            columns[f"{number}"] = found.values
            columns |= {f"{number} of {part}": values for part, values in found.parts.items()}
            if measure in self.tied:
                columns[f"{number} tied"] = self.tied[measure]
            columns |= {f"{number} {what}": counts for what, counts in self.counts[measure].items()}
        facts = {
            "asked": self.asked.to_list(),
            "undefined": [found.undefined for found in self.found.values()],
            **{name: getattr(self, name) for name in ("emptied", "ranked", "skipped", "held")},
        }
        return pa.table(columns).replace_schema_metadata({"seen": json.dumps(facts)})

    @classmethod
    def from_arrow(cls, table: pa.Table, measures: Sequence[BiasMeasure]) -> Seen:
        """What :meth:`to_arrow` has written of these measures."""
        facts = json.loads(table.schema.metadata[b"seen"])
        found, tied, counts = {}, {}, {}

        def column(name: str) -> NDArray[Any]:
            values: NDArray[Any] = table.column(name).to_numpy()
            return values

        for number, measure in enumerate(measures):
            shares = f"{number} of "
            groups = [name.removeprefix(shares) for name in table.column_names if name.startswith(shares)]
            found[measure] = PerQuery(
                column(f"{number}"),
                {group: column(shares + group) for group in groups},
                facts["undefined"][number],
            )
            if f"{number} tied" in table.column_names:
                tied[measure] = column(f"{number} tied")
            counted = (what for what in _COUNTED if f"{number} {what}" in table.column_names)
            counts[measure] = {what: column(f"{number} {what}") for what in counted}
        query_ids = pl.Series("query_id", pl.from_arrow(table.column("query_id")), dtype=pl.String)
        asked = pl.Series("query_id", facts["asked"], dtype=pl.String)
        numbers = {name: facts[name] for name in ("ranked", "skipped", "held")}
        return cls(asked, query_ids, found, tied, counts, tuple(facts["emptied"]), **numbers)


def merged(parts: Sequence[Seen], order: pl.Series) -> Seen:
    """What was seen of the parts of a run as if it had been looked at in one go; `order` has its queries."""
    asked = pl.concat([part.asked for part in parts])
    query_ids = pl.concat([part.query_ids for part in parts])
    rows = np.argsort(find_rows(query_ids, order), kind="stable")

    def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        whole: NDArray[Any] = np.concatenate(pieces)[rows]
        return whole

    found, tied, counts = {}, {}, {}
    for measure in parts[0].found:
        pieces = [part.found[measure] for part in parts if len(part.query_ids)]
        first = pieces[0] if pieces else parts[0].found[measure]
        found[measure] = PerQuery(
            joined([piece.values for piece in pieces] or [first.values]),
            {group: joined([piece.parts[group] for piece in pieces]) for group in first.parts},
            first.undefined,
        )
        if measure in parts[0].tied:
            tied[measure] = joined([part.tied[measure] for part in parts])
        counted = parts[0].counts[measure]
        counts[measure] = {what: joined([part.counts[measure][what] for part in parts]) for what in counted}
    return Seen(
        asked=asked.gather(np.argsort(find_rows(asked, order), kind="stable")),
        query_ids=query_ids.gather(rows),
        found=found,
        tied=tied,
        counts=counts,
        emptied=tuple(query for part in parts for query in part.emptied),
        ranked=sum(part.ranked for part in parts),
        skipped=sum(part.skipped for part in parts),
        held=sum(part.held for part in parts),
    )
