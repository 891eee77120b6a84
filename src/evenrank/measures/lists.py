"""Ranked lists as arrays: the top of a run, list after list, each document with its row in a table.

A measure gets a run as :class:`RankedLists`. Documents are looked up in the table that it names in
`NEEDS`, by default the tally.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.text.tally import magnitude

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# weights(n, t): what each of n ranked documents weighs at the cut-off t.
Weights = Callable[[int, int], Floats]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
WHOLE_LIST = 1 << 31
"""Depth of a measure that looks at whole lists."""


@dataclass(frozen=True, eq=False)
class PerQuery:
    """A measure's value for each list, in their order; NaN where it is undefined, `undefined` says why.

    `parts` has the share of each group in it.
    """

    values: Floats
    parts: Mapping[str, Floats] = field(default_factory=dict)
    undefined: str = "undefined"


@dataclass(frozen=True, eq=False)
class RankWeights:
    """Weights of some entries of the lists, ready for dot products list by list.

    Where all lists have the same length (`width`) and so the same weights, `same` holds them once.
    """

    entries: Ints
    weights: Floats
    starts: Ints
    same: Floats | None = None
    width: int = 0

    def total(self, values: Floats) -> Floats:
        """Σ weight · value over each list."""
        if self.same is not None:
            rows = values.reshape(-1, self.width)[:, : len(self.same)]
            array: Floats = (rows * self.same).sum(axis=1)  # not a matrix product: equal lists get equal sums
            return array
        return np.add.reduceat(values[self.entries] * self.weights, self.starts)


def _memoised(method: F) -> F:
    """Keep what a method of lists returns for its arguments: measures share magnitudes and weights."""

    @wraps(method)
    def memoised(self: RankedLists, *args: Hashable) -> Any:
        key = (method.__name__, *args)
        if key not in self._cache:
            self._cache[key] = method(self, *args)
        return self._cache[key]

    return memoised  # type: ignore[return-value]  # with the signature of the method


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The ranked lists of a run as a measure gets them; entry arrays hold one list after the other.

    No list is empty. `rows` is each entry's row in the tally, −1 for a document that the tally does not
    hold and that counts as having no words, or as showing the group `unlisted`. `scores` and
    `scored_lengths` keep the whole lists, for finding ties, and `columns` has further columns of the run for
    every entry (`seq`: which of several rankings of a query it is in). `emptied` are the queries none of
    whose documents the tally holds, `skipped` is how many documents were left out. What the measure does
    not name in `NEEDS` (`background`, `docs`, `queries`, `qrels`) may be None.
    """

    query_ids: pl.Series
    lengths: Ints
    doc_ids: pl.Series
    rows: Ints
    tally: pl.DataFrame
    groups: tuple[str, ...]
    scores: Floats
    scored_lengths: Ints
    columns: pl.DataFrame = field(default_factory=pl.DataFrame)
    expected_ties: bool = False
    emptied: tuple[str, ...] = ()
    skipped: int = 0
    unlisted: str | None = None
    background: RankedLists | None = None
    docs: Any = None
    queries: pl.DataFrame | None = None
    qrels: pl.DataFrame | None = None
    targets: Floats | None = None
    labels: Any = None
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def positions(self) -> Ints:
        return _positions(self.lengths)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """`make()`, computed once for a key."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    @_memoised
    def column(self, name: str) -> NDArray[Any]:
        """A column of the tally, for every entry."""
        values = self.tally[name].to_numpy()
        if not len(values):
            return np.zeros(len(self.rows), values.dtype)
        column: NDArray[Any] = values[self.rows]
        column[self.rows < 0] = name == self.unlisted
        return column

    @_memoised
    def counts(self) -> NDArray[Any]:
        """Occurrences of each group's words, entries × groups."""
        return np.column_stack([self.column(group) for group in self.groups])

    @_memoised
    def magnitude(self, name: str, group: str) -> Floats:
        """Magnitude of a group for every entry."""
        return magnitude_of(name, group, self.column)

    @_memoised
    def weigh(self, weights: Weights, cutoff: int) -> RankWeights:
        """Weights of the entries for a cut-off.

        With expected ties every document of a tie gets the mean of the weights of the tie's positions:
        over all orders of tied documents it takes each of them equally often, so that a linear measure
        comes out as its exact mean over these orders.
        """
        entries, counted = self.top(cutoff)
        each = _laid_out(weights, counted)
        if not self.expected_ties:
            alike = len(counted) > 0 and bool((self.lengths == self.lengths[0]).all())
            same = each[: counted[0]] if alike else None
            return RankWeights(entries, each, _starts(counted), same, int(self.lengths[0]) if alike else 0)
        spread = np.zeros(len(self.rows))
        spread[entries] = each
        sizes = np.diff(self._tie_starts, append=len(self.rows))
        means = np.add.reduceat(spread, self._tie_starts) / sizes
        return RankWeights(np.arange(len(self.rows)), np.repeat(means, sizes), self.starts)

    @cached_property
    def _tie_starts(self) -> Ints:
        """First entry of each run of equal scores within a list."""
        position = _positions(self.scored_lengths)
        kept = self.scores[position <= np.repeat(self.lengths, self.scored_lengths)]
        first = np.ones(len(kept), dtype=bool)
        first[1:] = kept[1:] != kept[:-1]
        first[self.starts] = True
        return np.flatnonzero(first)

    def tied(self, cutoff: int, *, above: bool) -> NDArray[np.bool_]:
        """For each list, whether the document at `cutoff` (or also one above it) ties with the next one."""
        owner, position = self._ties
        tied = np.zeros(len(self.scored_lengths), dtype=bool)
        tied[owner[position <= cutoff if above else position == cutoff]] = True
        return tied

    @cached_property
    def _ties(self) -> tuple[Ints, Ints]:
        """List and position of each document whose score is also that of the next in the list."""
        starts = _starts(self.scored_lengths)
        at = np.flatnonzero(self.scores[:-1] == self.scores[1:])
        owner = np.searchsorted(starts, at, side="right") - 1
        position = at - starts[owner] + 1
        inside = position < self.scored_lengths[owner]
        return owner[inside], position[inside]

    @_memoised
    def top(self, depth: int) -> tuple[Ints, Ints]:
        """Entries at ranks up to `depth`, and how many each list has of them."""
        return np.flatnonzero(self.positions <= depth), np.minimum(self.lengths, depth)


def log_discount(n: int, t: int | None = None) -> Floats:
    """Weights of n ranks: 1/log2(i + 1), and 0 below rank t."""
    ranks = np.arange(1, n + 1)
    return np.where(ranks <= (n if t is None else t), 1 / np.log2(ranks + 1), 0.0)


def magnitude_of(name: str, group: str, column: Callable[[str], NDArray[Any]]) -> Floats:
    """Magnitude of a group from the tally's columns, reading no more of them than it needs."""
    return magnitude(
        name,
        column(group),
        logwords=column(f"{group}_logwords") if name == "tf-words" else None,
        tokens=column("tokens") if name == "length" else None,
    )


def ranked_queries(run: pl.DataFrame) -> pl.Series:
    """The queries of a normalised run, in their order: a list has one first document."""
    return run["query_id"].filter(run["rank"] == 1)


def ranked_lists(
    run: pl.DataFrame,
    tally: pl.DataFrame,
    groups: Sequence[str],
    *,
    depth: int,
    missing: str = "error",
    expected_ties: bool = False,
    name: str = "the run",
) -> RankedLists:
    """Look up the top `depth` documents of every list of a normalised run in the tally.

    `missing` says what happens to documents that the tally does not hold: `error`, `zero` (they have
    no words) or `skip` (the next document moves up), all of which is refused where it holds none of
    them; `unlabelled` is `zero` for a tally that need not hold any. With expected ties a list goes on until
    the tie at `depth` ends.
    """
    columns, scores, rows = run.drop("query_id", "score", "rank"), run["score"].to_numpy(), None
    first = np.flatnonzero(run["rank"].to_numpy() == 1)
    lengths = np.diff(first, append=run.height)
    query_ids = run["query_id"].gather(first)
    emptied: tuple[str, ...] = ()
    skipped = 0
    if missing == "skip" and len(first):
        rows = find_rows(run["doc_id"], tally["doc_id"])
        held = rows >= 0
        if not held.any():
            _raise_no_overlap(name)
        skipped = int((~held).sum())
        left = np.add.reduceat(held, first, dtype=np.int64)
        emptied = tuple(query_ids.filter(pl.Series(left == 0)).to_list())
        query_ids, lengths = query_ids.filter(pl.Series(left > 0)), left[left > 0]
        rows, scores, columns = rows[held], scores[held], columns.filter(pl.Series(held))
    starts, kept = _starts(lengths), np.minimum(lengths, depth)
    if expected_ties and len(starts):
        last = np.repeat(scores[starts + kept - 1], lengths)
        kept = np.add.reduceat(scores >= last, starts, dtype=np.int64)
    entries = np.repeat(starts, kept) + _positions(kept) - 1
    columns = columns[entries]
    doc_ids = columns["doc_id"]
    if rows is not None:
        rows = rows[entries]
    else:
        rows = find_rows(doc_ids, tally["doc_id"])
        absent = rows < 0
        if missing == "zero" and len(rows) and absent.all():
            _raise_no_overlap(name, depth)
        if missing == "error" and absent.any():
            lacking = doc_ids.filter(pl.Series(absent)).unique(maintain_order=True)
            first_five = ", ".join(lacking.head(5).to_list()) + (", …" if len(lacking) > 5 else "")
            raise InputError(
                f"{name}: the collection lacks {len(lacking):,} of its documents{in_top(depth)} "
                f"({first_five}); check that they belong together, or choose what to do with them by "
                "--missing"
            )
    return RankedLists(
        query_ids=query_ids,
        lengths=kept,
        doc_ids=doc_ids,
        columns=columns,
        rows=rows,
        tally=tally,
        groups=tuple(groups),
        scores=scores,
        scored_lengths=lengths,
        expected_ties=expected_ties,
        emptied=emptied,
        skipped=skipped,
    )


def _starts(lengths: Ints) -> Ints:
    return np.cumsum(lengths) - lengths


def _positions(lengths: Ints) -> Ints:
    return np.arange(1, lengths.sum() + 1) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _laid_out(weights: Weights, lengths: Ints) -> Floats:
    """Weights of every entry of lists of these lengths, computed once for each length that occurs."""
    distinct, which = np.unique(lengths, return_inverse=True)
    if len(distinct) == 1:
        return np.tile(weights(int(distinct[0]), int(distinct[0])), len(lengths))
    table = np.concatenate([weights(n, n) for n in distinct.tolist()])
    return table[np.repeat(_starts(distinct)[which], lengths) + _positions(lengths) - 1]


def _raise_no_overlap(name: str, depth: int | None = None) -> None:
    """Raise an error: the collection lacks all documents of a run."""
    raise InputError(
        f"{name}: the collection lacks all of its documents{in_top(depth)}; check that they belong together"
    )


def in_top(depth: int | None) -> str:
    """Return the depth in words; nothing for whole lists."""
    return "" if depth is None or depth >= WHOLE_LIST else f" in the top {depth:,}"


def find_rows(ids: pl.Series, table: pl.Series) -> NDArray[np.int64]:
    """Return the row of `table` that holds each id, −1 for an id that is not in it.

    The ids in `table` are distinct; those in `ids` need not be. 64-bit hashes are joined, twice as quick as
    ids, and every hit is compared with the id.
    """
    rows = _join(ids.hash(), table.hash())
    hits = np.flatnonzero(rows >= 0)
    if len(rows) == len(ids) and (table.gather(rows[hits]) == ids.gather(hits)).all():
        return rows
    return _join(ids, table)  # two ids with one hash: about once in 10 million tables of a million documents


def _join(ids: pl.Series, table: pl.Series) -> NDArray[np.int64]:
    right = pl.DataFrame({"id": table, "row": np.arange(len(table), dtype=np.int64)})
    joined = pl.DataFrame({"id": ids}).join(right, on="id", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy()
