"""One result list, measured: every measure that applies, its words coloured, and what it all says.

Everything is computed on the arrays of this list by the measures themselves, so that the values are those of
:func:`evenrank.measure`; a list of ten results takes about a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from ir_measures.measures import Measure

from evenrank.auditing.running import default_measures
from evenrank.auditing.verdict import headline_measure
from evenrank.errors import InputError
from evenrank.measures.alignments import Alignments
from evenrank.measures.base import BiasMeasure, Context, direction, is_bias, meaning
from evenrank.measures.document_groups import normal_groups, ordered_groups, read_targets
from evenrank.measures.groups import Groups
from evenrank.measures.lists import RankedLists
from evenrank.measures.parse import parse
from evenrank.measures.representation import achievable
from evenrank.measures.views import Words
from evenrank.mitigate.constrain.limits import rerank
from evenrank.server.attributes import QUERY, alignments, measured_attributes, one_list
from evenrank.server.models import Measured
from evenrank.show.numbers import toward
from evenrank.text.matcher import Counts, Matcher


class Span(NamedTuple):
    """A word of a group: the field it stands in, and from where to where, in characters (code points)."""

    field: str
    start: int
    end: int
    group: str
    word: str


@dataclass(frozen=True)
class Text:
    """A result as it is counted: title and text with a blank between them, as in a collection."""

    title: str
    body: str

    @property
    def whole(self) -> str:
        return " ".join(filter(None, (self.title, self.body)))


@dataclass(frozen=True, eq=False)
class Coloured:
    """Texts, the numbers of each group's words in them, and where these are."""

    groups: tuple[str, ...]
    counts: Counts
    spans: list[list[Span]]

    def columns(self) -> dict[str, Any]:
        """The same as the columns of a tally."""
        return {
            "tokens": self.counts.tokens,
            **{group: self.counts.counts[:, i] for i, group in enumerate(self.groups)},
            **{f"{group}_logwords": self.counts.logwords[:, i] for i, group in enumerate(self.groups)},
        }


def colour(matcher: Matcher, texts: Sequence[Text]) -> Coloured:
    """Count and find the words of each group."""
    whole = [text.whole for text in texts]
    spans: list[list[Span]] = [[] for _ in texts]
    found = matcher.find(whole)
    places = [_Places(text, joined) for text, joined in zip(texts, whole, strict=True)]
    for row, group, word, start, end in found.iter_rows():
        spans[row] += places[row].spans(start, end, group, word)
    return Coloured(matcher.groups, matcher.count(whole), spans)


class _Places:
    """From bytes of the joined text to characters of its fields."""

    def __init__(self, text: Text, whole: str) -> None:
        self._before: Any = None
        if not whole.isascii():
            data = np.frombuffer(whole.encode(), np.uint8)
            self._before = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
        head = len(text.title)
        body = head + 1 if text.title and text.body else head
        fields = [("title", 0, head), ("text", body, len(whole))]
        self._fields = [field for field in fields if field[1] < field[2]]

    def spans(self, start: int, end: int, group: str, word: str) -> list[Span]:
        """A hit as spans: one, or two where a phrase begins in the title and ends in the text."""
        first, last = start, end
        if self._before is not None:
            first, last = int(self._before[start]), int(self._before[end])
        if len(self._fields) == 1:
            return [Span(self._fields[0][0], first, last, group, word)]
        return [
            Span(field, max(first, low) - low, min(last, high) - low, group, word)
            for field, low, high in self._fields
            if first < high and last > low
        ]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One result list, as :func:`evaluate` saw it."""

    matcher: Matcher
    at: int
    coloured: Coloured
    lists: RankedLists
    labels: list[str | None] | None
    labels_from: str | None
    targets: Mapping[str, Fraction] | None
    query_gender: str | None
    more: tuple[BiasMeasure, ...] = ()
    attributes: Alignments | None = None

    @cached_property
    def headline(self) -> Any:
        """The measure that the verdict speaks about: one that leans, and is a sum over the results."""
        return headline_measure(_word_measures(self.matcher.groups, self.at))

    @cached_property
    def pair(self) -> tuple[str, str]:
        of, against = self.headline.pair(self.matcher.groups)
        return of, against

    @cached_property
    def lean(self) -> float | None:
        """The headline's value: above 0 toward the second group (male), below 0 toward the first."""
        return _number(self.headline.per_query(Context(self.lists)).values[0])

    @cached_property
    def contributions(self) -> list[float]:
        """What each result adds to the lean."""
        found: list[float] = self.headline.contributions(Context(self.lists)).tolist()
        return found

    @cached_property
    def verdict(self) -> str:
        of, against = (self.coloured.columns()[group].tolist() for group in self.pair)
        counts = list(zip(of, against, strict=True))
        said = verdict(self.lean, *self.pair, counts, at=self.at, query_gender=self.query_gender)
        for row in self.representation():
            if row["bias"]:
                said += (
                    f" {row['group'].capitalize()} results are {'more' if row['bias'] > 0 else 'fewer'} than "
                    f"they should be: {row['shown']:.0%} of the top {row['of']}, where {row['wanted']:.0%} "
                    f"comes nearest to the target of {row['target']:.0%}."
                )
        return said

    def values(self) -> list[Measured]:
        """Every measure that applies."""
        context = Context(self.lists, self.lists)
        wanted = [*_word_measures(self.matcher.groups, self.at), *(m for m in self.more if m.VIEW is Words)]
        found = [self._value(m, context) for m in dict.fromkeys(wanted)]
        grouped = self._group_context
        if grouped is not None:
            measures = _group_measures(grouped.groups, self.at, self.targets is not None)
            wanted = [*measures, *(m for m in self.more if m.VIEW is Groups)]
            found += [self._value(m, grouped) for m in dict.fromkeys(wanted)]
        if self.attributes is not None:
            size = len(self.lists.rows)
            found += [
                self._value(*one) for one in measured_attributes(self.attributes, size, self.at, self.more)
            ]
        return found

    def representation(self) -> list[dict[str, Any]]:
        """For each group with a target: the share that is shown, that is wished for, and their difference."""
        if self.labels is None or self.targets is None:
            return []
        top = self.labels[: self.at]
        found = []
        for group, target in self.targets.items():
            count = top.count(group)
            wanted = Fraction(achievable(target, len(top), count), len(top))
            shown = Fraction(count, len(top))
            found.append(
                {
                    "group": group,
                    "shown": float(shown),
                    "target": float(target),
                    "wanted": float(wanted),
                    "bias": float(shown - wanted),
                    "of": len(top),
                }
            )
        return found

    def within(self, bound: float) -> dict[str, Any]:
        """Whether the list keeps |ARaB| within a bound, and the order nearest to it that does."""
        condition = f"abs({self.headline})<={bound!r}"
        scores = [-float(rank) for rank in range(len(self.lists.rows))]
        found = rerank(scores, self.coloured.columns(), limit=condition, utility="order")
        return {
            "condition": condition,
            "kept": found.status == "kept",
            "possible": found.status != "infeasible",
            "status": found.status,
            "order": [place + 1 for place in found.order],
            "value": found.after[str(self.headline)],
            "loss": found.loss,
        }

    def results(self, ids: Sequence[str | None]) -> list[dict[str, Any]]:
        """Each result: its numbers, what it adds, and where its words stand."""
        counts = self.coloured.counts.counts.tolist()
        return [
            {
                "rank": rank + 1,
                "id": ids[rank],
                "group": None if self.labels is None else self.labels[rank],
                "counts": dict(zip(self.matcher.groups, counts[rank], strict=True)),
                "tokens": int(self.coloured.counts.tokens[rank]),
                "contribution": self.contributions[rank],
                "spans": [span._asdict() for span in self.coloured.spans[rank]],
            }
            for rank in range(len(counts))
        ]

    @cached_property
    def _group_context(self) -> Context | None:
        if self.labels is None:
            return None
        groups = ordered_groups([*self.labels, *(self.targets or {})])
        columns = {group: np.array([int(label == group) for label in self.labels]) for group in groups}
        return Context(
            one_list(columns, groups), targets=None if self.targets is None else {QUERY: self.targets}
        )

    def _value(self, measure: BiasMeasure, context: Context) -> Measured:
        found = measure.per_query(context)
        value = _number(found.values[0])
        parts = {name: float(of[0]) for name, of in found.parts.items()}
        groups = context.groups
        return Measured(
            measure=str(measure),
            value=value,
            parts=parts,
            meaning=meaning(measure, groups),
            reading=direction(measure, groups),
            undefined=None if value is not None else found.undefined,
        )


def evaluate(
    matcher: Matcher,
    texts: Sequence[Text],
    *,
    labels: Sequence[str | None] | None = None,
    attributes: Sequence[Mapping[str, str]] = (),
    target: Mapping[str, float] | None = None,
    at: int = 10,
    query_gender: str | None = None,
    measures: Sequence[str | Measure] = (),
) -> Evaluated:
    """Look at one result list, best first.

    Parameters
    ----------
    matcher
        The words of each group.
    labels
        The group that each result shows; if only a target is given, that whose words it has most of.
    attributes
        The groups that each result shows by attribute, as ``{"gender": "female", "field": "art"}``.
    target
        The share that each group should have.
    at
        The cut-off.
    measures
        More measures, beside those that are always there; see :func:`single_list_measures`.
    """
    coloured = colour(matcher, texts)
    shown: list[str | None] | None = None
    source = None
    if labels is not None and any(labels):
        shown, source = normal_groups(labels), "given"
        shown = shown if any(shown) else None
    elif target:
        shown, source = _inferred(coloured), f"inferred: most words ({matcher.lexicon.name})"
    wished = None
    if target and shown is not None:
        groups = ordered_groups([*shown, *normal_groups(target)])
        given = read_targets({QUERY: dict(target)}, groups)
        present = ordered_groups([*shown, *given.shares[QUERY]])
        wished = given.completed(present).shares[QUERY]
    lists = one_list(coloured.columns(), matcher.groups)
    return Evaluated(
        matcher,
        at,
        coloured,
        lists,
        shown,
        source if shown is not None else None,
        wished,
        query_gender,
        tuple(single_list_measures(measures)),
        alignments(attributes),
    )


def single_list_measures(measures: Iterable[str | Measure]) -> Iterator[BiasMeasure]:
    """Measures of bias that one list is enough for; others are refused."""
    for measure in map(parse, measures):
        if not is_bias(measure) or not _is_of_one_list(measure):
            raise InputError(f"{measure} cannot be told from one list of results")
        yield measure


def _is_of_one_list(measure: BiasMeasure) -> bool:
    """Whether words or groups are all that it looks at."""
    grouped = issubclass(measure.VIEW, Groups) and not measure.VIEW.SEQUENCES
    asked = {"qrels"} & measure.NEEDS or measure.params.get("target") == "relevant"
    return (measure.VIEW is Words or grouped) and not asked


def check_lexicon(matcher: Matcher) -> None:
    """Refuse a lexicon whose groups cannot be set against each other."""
    if len(matcher.groups) < 2:
        raise InputError("the server compares groups; give a lexicon with two or more")


def _inferred(coloured: Coloured) -> list[str | None]:
    """The group that each text has most words of; None without words, or where two share the first place."""
    found: list[str | None] = []
    for row in coloured.counts.counts.tolist():
        most = max(row)
        found.append(coloured.groups[row.index(most)] if most and row.count(most) == 1 else None)
    return found


@lru_cache(maxsize=256)
def _word_measures(groups: tuple[str, ...], at: int) -> tuple[BiasMeasure, ...]:
    return _at(default_measures(groups, docs=True, queries=False, qrels=False, targets=False), at)


@lru_cache(maxsize=256)
def _group_measures(groups: tuple[str, ...], at: int, targets: bool) -> tuple[BiasMeasure, ...]:
    found = default_measures((), groups, docs=False, queries=False, qrels=False, targets=targets)
    return tuple(m for m in _at(found, at) if m.VIEW is Groups)


def _at(measures: Sequence[Measure], at: int) -> tuple[BiasMeasure, ...]:
    """Those that say something about one list, at this cut-off."""
    moved = [measure @ at for measure in measures if measure.AT_PARAM]  # of one list abs() says nothing new
    # A slope needs many queries, and a dictionary is of its own.
    return tuple(m for m in moved if is_bias(m) and m.VIEW in (Words, Groups))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


NEAR, CLEAR, STRONG = 0.05, 0.3, 0.8
"""Sizes of ARaB (of logarithms of counts) below which a list is called near balance, slightly leaning,
leaning; above the last, strongly leaning. One list is no sample: these are words for sizes, no tests."""


def side(value: float | None, of: str, against: str) -> str | None:
    """The group that a list leans to; None near balance."""
    if value is None or abs(value) < NEAR:
        return None
    return of if value > 0 else against


def lean(value: float | None, of: str, against: str) -> str:
    """A lean in two or three words."""
    if value is None:
        return "nothing to measure"
    to = side(value, of, against)
    if to is None:
        return "near balance"
    size = abs(value)
    how = "leans slightly" if size < CLEAR else "leans" if size < STRONG else "leans strongly"
    return f"{how} {toward(to)}"


def verdict(
    value: float | None,
    of: str,
    against: str,
    counts: Sequence[tuple[int, int]],
    *,
    at: int,
    query_gender: str | None = None,
) -> str:
    """One or two sentences about the top of a list.

    Parameters
    ----------
    value
        ARaB at the cut-off.
    counts
        For each result down to the cut-off the number of words of `of` and of `against`.
    query_gender
        The group whose words the query itself holds, if it is one.
    """
    shown = len(counts[:at])
    one, other = (sum(pair[i] for pair in counts[:at]) for i in (0, 1))
    top = "The only result" if shown == 1 else f"The top {shown} results"
    if not one and not other:
        verb = "holds" if shown == 1 else "hold"
        return f"{top} {verb} no {against} or {of} words."
    without = sum(not any(pair) for pair in counts[:at])
    says = f"{lean(value, of, against)}".replace("leans", "leans" if shown == 1 else "lean")
    verb = "" if says.startswith("lean") else "is " if shown == 1 else "are "
    text = f"{top} {verb}{says}: {_times(against, other)} and {_times(of, one)}"
    to = side(value, of, against)
    if to is not None and (one > other) != (to == of):  # a reader would count, and wonder
        text += f"; the {to} ones stand higher up, or in more results"
    text += f". {without} of {shown} hold neither." if shown > 1 and without else "."
    if query_gender in (of, against) and to is not None:
        text += (
            f" The query names {query_gender} words itself, so some lean that way is to be expected."
            if to == query_gender
            else f" The query names {query_gender} words itself: the other way."
        )
    return text


def _times(group: str, number: int) -> str:
    return f"{number} {group} {'word' if number == 1 else 'words'}"
