"""The contributions of words, documents and queries to a bias.

RaB, ARaB and their like are linear in what the documents hold: the value of a run is a sum over its ranked
documents, and nothing is estimated. Within a document a group's magnitude is shared among the words found in
it. `count` and `length` are sums over occurrences and `tf-words` is a sum over words, ln(1 + c) each: there
the shares are the terms of the sum. `tf` and `boolean` look at the group's total only, and each word gets its
part in proportion to how often it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.measures.lists import RankedLists
from evenrank.stats.rounding import DIGITS

if TYPE_CHECKING:
    from evenrank.measures.base import LinearMeasure
    from evenrank.text.matcher import Matcher


@dataclass(frozen=True, eq=False)
class Attribution:
    """Contributions that add up to the value, in each frame anew, the largest first.

    `words` has the columns group, word, contribution and is None without documents to look the words up
    in; `documents` has doc_id, queries (in how many lists it weighs), contribution; `queries` has
    query_id, contribution.
    """

    value: float
    words: pl.DataFrame | None
    documents: pl.DataFrame
    queries: pl.DataFrame

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """JSON-ready dict of the largest contributions."""
        frames = {"words": self.words, "documents": self.documents, "queries": self.queries}
        return {name: frame.head(top).to_dicts() for name, frame in frames.items() if frame is not None}


def attribution_of(
    measure: LinearMeasure,
    lists: RankedLists,
    chosen: NDArray[np.bool_],
    *,
    docs: Any = None,
    matcher: Matcher | None = None,
) -> Attribution:
    """Contributions to a measure's mean over the chosen lists.

    Words are found with `matcher`, which must be the one the tally was made with, in the texts of `docs`;
    only documents that carry weight and hold a word of the two groups are read.
    """
    weighing = measure.weighing(lists)
    owner = np.repeat(np.arange(len(lists.lengths)), lists.lengths)[weighing.entries]
    weight = np.where(chosen[owner], weighing.weights, 0.0) / chosen.sum()
    if measure.scale(lists) is not None:  # undefined lists are not among the chosen
        weight *= np.where(chosen, measure.scaled(np.ones(len(chosen)), lists), 0.0)[owner]
    used = np.flatnonzero(weight)
    entries, weight, owner = weighing.entries[used], weight[used], owner[used]
    frame = pl.DataFrame(
        {
            "doc_id": lists.doc_ids.gather(entries),
            "query_id": lists.query_ids.gather(owner),
            "entry": entries,
            "weight": weight,
            "contribution": weight * measure.each_value(lists)[entries],
        }
    )
    by_document = summed(frame.with_columns(queries=1.0), ["doc_id"], ["queries", "contribution", "weight"])
    by_document = by_document.with_columns(pl.col("queries").cast(pl.Int64))
    words = None
    counted = measure.words(lists.groups)
    if docs is not None and matcher is not None and counted is not None:
        words = _words(*counted, lists, by_document, docs, matcher)
    return Attribution(
        value=float(frame["contribution"].to_numpy().sum()),
        words=words,
        documents=largest_first(by_document.select("doc_id", "queries", "contribution"), ["doc_id"]),
        queries=largest_first(
            summed(frame.select("query_id", "contribution"), ["query_id"], ["contribution"]), ["query_id"]
        ),
    )


def _words(
    magnitude: str,
    signs: dict[str, float],
    lists: RankedLists,
    documents: pl.DataFrame,
    docs: Any,
    matcher: Matcher,
) -> pl.DataFrame:
    entries = documents["entry"].to_numpy()
    counts = {group: lists.column(group)[entries] for group in signs}
    holding = np.flatnonzero(sum(counts.values()) > 0)
    documents, entries = documents[holding], entries[holding]
    ids = documents["doc_id"].to_list()
    texts = docs.texts(ids)
    lacking = [doc_id for doc_id in ids if doc_id not in texts]
    if lacking:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        raise InputError(
            f"the documents lack {lacking[0]}{more}, which the tally holds; give the documents that the "
            "tally was made from"
        )
    hits = matcher.find([texts[doc_id] for doc_id in ids])
    result = (
        hits.filter(pl.col("group").is_in(list(signs)))
        .group_by("row", "group", "word", maintain_order=True)
        .agg(count=pl.len().cast(pl.Int64))
        .with_columns(total=pl.col("count").sum().over("row", "group"))
    )
    for group in signs:
        totals = np.zeros(len(ids), np.int64)
        of_group = result.filter(pl.col("group") == group)
        totals[of_group["row"].to_numpy()] = of_group["total"].to_numpy()
        differs = np.flatnonzero(totals != counts[group][holding])
        if len(differs):
            raise InputError(
                f"document {ids[differs[0]]} holds other words than the tally says; "
                "the tally was made from other documents, or with another lexicon or tokenizer"
            )
    row = result["row"].to_numpy()
    share = _share(magnitude, result, lists.column("tokens")[entries][row])
    sign = (
        result["group"].replace_strict(list(signs), list(signs.values()), return_dtype=pl.Float64).to_numpy()
    )
    contribution = documents["weight"].to_numpy()[row] * sign * share
    return largest_first(
        summed(
            result.select("group", "word").with_columns(contribution=pl.Series(contribution)),
            ["group", "word"],
            ["contribution"],
        ),
        ["group", "word"],
    )


def summed(frame: pl.DataFrame, keys: list[str], columns: list[str]) -> pl.DataFrame:
    """The first row of each key, with sums of columns, added row by row: the same however many threads."""
    first = frame.unique(subset=keys, keep="first", maintain_order=True)
    numbered = first.select(keys).with_row_index("number")
    number = (
        frame.select(keys).join(numbered, on=keys, how="left", maintain_order="left")["number"].to_numpy()
    )
    return first.with_columns(
        pl.Series(name, np.bincount(number, frame[name].to_numpy(), len(first))) for name in columns
    )


def _share(magnitude: str, hits: pl.DataFrame, tokens: NDArray[Any]) -> NDArray[np.float64]:
    """Return what each word adds to its group's magnitude in a document."""
    count, total = hits["count"].to_numpy(), hits["total"].to_numpy()
    if magnitude == "count":
        return count.astype(np.float64)
    if magnitude == "length":
        return count / tokens
    if magnitude == "tf-words":
        return np.log1p(count)
    return count / total * (np.log1p(total) if magnitude == "tf" else 1.0)


def largest_first(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Sorted by the size of the contribution to nine significant digits, whatever its sign."""
    size = pl.col("contribution").abs().round_sig_figs(DIGITS)
    return frame.sort(size, *keys, descending=[True] + [False] * len(keys))
