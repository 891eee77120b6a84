"""One result list, measured: every measure that applies, its words coloured, and what it all says.

A list is the one run of :class:`~evenrank.measures.inputs.Inputs` that are open already, and is
looked up as any other run is, so that the values are those of :func:`evenrank.measure`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank.auditing.passages import Coloured, Text, colour
from evenrank.auditing.running import default_measures
from evenrank.auditing.verdict import headline_measure
from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, interpretation, is_bias, meaning
from evenrank.measures.exposure import AWRF
from evenrank.measures.groups import (
    CROSS,
    Targets,
    crossed_name,
    listed_groups,
    normal_groups,
    ordered_groups,
    read_targets,
)
from evenrank.measures.inputs import Inputs, sharing_tables
from evenrank.measures.lists import WHOLE_LIST, RankedLists
from evenrank.measures.parse import parse
from evenrank.measures.representation import achievable, representation_bias
from evenrank.measures.skew import NDKL
from evenrank.mitigate.constrain import rerank
from evenrank.server.models import ATTRIBUTES, Measured
from evenrank.show.numbers import toward
from evenrank.text.matcher import Matcher
from evenrank.text.tally import Tally

QUERY = "query"
MOST = 400
"""Groups that are told apart in one list: crossings multiply."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One result list, as :func:`evaluate` saw it.

    `inputs` holds the list with its words, and the groups of its results where these are known;
    `by_attribute` holds it with groups by attribute.
    """

    matcher: Matcher
    at: int
    coloured: Coloured
    inputs: Inputs
    labels: list[str | None] | None
    labels_from: str | None
    targets: Mapping[str, float] | None
    query_gender: str | None
    more: tuple[BiasMeasure, ...] = ()
    by_attribute: Inputs | None = None

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
        return _number(self.headline.per_query(self._seen[self.headline]).values[0])

    @cached_property
    def contributions(self) -> list[float]:
        """What each result adds to the lean."""
        found: list[float] = self.headline.contributions(self._seen[self.headline]).tolist()
        return found

    @cached_property
    def verdict(self) -> str:
        of, against = (self.coloured.columns()[group].tolist() for group in self.pair)
        counts = list(zip(of, against, strict=True))
        said = verdict(self.lean, *self.pair, counts, at=self.at, query_gender=self.query_gender)
        for row in self.representation():
            if row["bias"]:
                said += (
                    f" There are {'more' if row['bias'] > 0 else 'fewer'} {row['group']} results than there "
                    f"should be: {row['shown']:.0%} of the top {row['of']}, where {row['wanted']:.0%} "
                    f"comes closest to the target of {row['target']:.0%}."
                )
        return said

    def values(self) -> list[Measured]:
        """Every measure that applies."""
        return [self._value(measure, lists) for measure, lists in self._seen.items()]

    @cached_property
    def _seen(self) -> dict[BiasMeasure, RankedLists]:
        """Every measure that applies, and the list as it sees it."""
        wanted = [*_word_measures(self.matcher.groups, self.at)]
        wanted += (m for m in self.more if "tally" in m.NEEDS)
        if self.labels is not None:
            wanted += _group_measures(self.inputs.groups.groups, self.at, self.targets is not None)
            wanted += (m for m in self.more if "groups" in m.NEEDS and m.params.get("attribute") is None)
        found = dict(_lists_of(self.inputs, dict.fromkeys(wanted)))
        if self.by_attribute is not None:
            asked = _attribute_measures(self.by_attribute, self.at, self.more)
            found |= _lists_of(self.by_attribute, asked)
        return found

    def representation(self) -> list[dict[str, Any]]:
        """For each group with a target: the share that is shown, that is wished for, and their difference."""
        if self.labels is None or self.targets is None:
            return []
        top = self.labels[: self.at]
        found = []
        for group, target in self.targets.items():
            count = top.count(group)
            found.append(
                {
                    "group": group,
                    "shown": count / len(top),
                    "target": target,
                    "wanted": float(achievable(target, len(top), count)) / len(top),
                    "bias": float(representation_bias(count, len(top), target)),
                    "of": len(top),
                }
            )
        return found

    def within(self, bound: float) -> dict[str, Any]:
        """Whether the list keeps |ARaB| within a bound, and the order nearest to it that does."""
        condition = f"abs({self.headline})<={bound!r}"
        scores = [-float(rank) for rank in range(len(self.coloured.spans))]
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

    def _value(self, measure: BiasMeasure, lists: RankedLists) -> Measured:
        found = measure.per_query(lists)
        value = _number(found.values[0])
        parts = {name: float(of[0]) for name, of in found.parts.items()}
        groups = lists.groups
        return Measured(
            measure=str(measure),
            value=value,
            parts=parts,
            meaning=meaning(measure, groups),
            reading=interpretation(measure, groups),
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
    targets = None
    if target and shown is not None:
        targets = read_targets({QUERY: target}, ordered_groups([*shown, *normal_groups(target)]))
    inputs = _opened(coloured, shown, targets)
    return Evaluated(
        matcher,
        at,
        coloured,
        inputs,
        shown,
        source if shown is not None else None,
        None if targets is None else _shares(targets),
        query_gender,
        tuple(single_list_measures(measures)),
        _with_attributes(inputs, attributes),
    )


def _opened(coloured: Coloured, labels: Sequence[str | None] | None, targets: Targets | None) -> Inputs:
    """The list as the run of inputs; its results go by their place."""
    ranks = np.arange(len(coloured.spans))
    places = pl.Series([str(rank) for rank in ranks.tolist()], dtype=pl.String)
    asked = [QUERY] * len(ranks)
    run = pl.DataFrame({"query_id": asked, "doc_id": places, "score": -1.0 * ranks, "rank": ranks + 1})
    given: dict[str, Any] = {"tally": Tally(pl.DataFrame({"doc_id": places, **coloured.columns()}))}
    if labels is not None:
        given["labels"] = listed_groups(places, labels, () if targets is None else _shares(targets))
    if targets is not None:
        given["targets"] = {QUERY: _shares(targets)}
    return Inputs(runs={"the list": run}, given=given)


def _shares(targets: Targets) -> dict[str, float]:
    """The share that each group should have, of those that have a target."""
    (shares,) = targets.of(targets.query_ids, targets.groups).tolist()
    named = zip(targets.groups, shares, strict=True)
    return {group: share for group, share in named if not math.isnan(share)}


def _with_attributes(inputs: Inputs, attributes: Sequence[Mapping[str, str]]) -> Inputs | None:
    """The list with groups by attribute; None where nothing is said."""
    given: dict[str, dict[str, str]] = {}
    names: set[str] = set()
    for rank, of in enumerate(attributes):
        mine = [crossed_name(name).lower() for name in of]
        if twice := [name for name in mine if mine.count(name) > 1]:
            raise InputError(f"result {rank + 1} has the attribute {twice[0]} twice")
        names.update(mine)
        for name, group in zip(mine, normal_groups(of.values()), strict=True):
            if group is not None:
                given.setdefault(str(rank), {})[name] = group
    if len(names) > ATTRIBUTES:
        raise InputError(f"the results have {len(names)} attributes; at most {ATTRIBUTES} are measured")
    return Inputs(runs=inputs.runs, given={"labels": given}) if given else None


def _attribute_measures(inputs: Inputs, at: int, more: Sequence[BiasMeasure]) -> Iterator[BiasMeasure]:
    """AWRF and NDKL of every attribute, and of two crossed; `more` are measures that name one of these."""
    labels = inputs.labels
    sizes = {name: len(labels.groups(name).groups) for name in labels.attributes}
    for attribute in [*sizes, *([CROSS.join(sizes)] if len(sizes) == 2 else [])]:
        many = math.prod(sizes[name] for name in attribute.split(CROSS))
        if many > MOST:
            raise InputError(
                f"{attribute} has {many:,} groups; at most {MOST} can be distinguished in one list"
            )
        asked = [measure for measure in more if measure.params.get("attribute") == attribute]
        yield from dict.fromkeys([AWRF(attribute=attribute) @ at, NDKL(attribute=attribute) @ at, *asked])


def _lists_of(inputs: Inputs, measures: Iterable[BiasMeasure]) -> Iterator[tuple[BiasMeasure, RankedLists]]:
    """Each measure, and the whole list as it sees it."""
    ((name, run),) = inputs.runs.items()
    for some in sharing_tables(measures):
        lists = inputs.lists(run, some, name, depth=WHOLE_LIST)
        yield from ((measure, lists) for measure in some)


def single_list_measures(measures: Iterable[str | Measure]) -> Iterator[BiasMeasure]:
    """Measures of bias that one list is enough for; others are refused."""
    for measure in map(parse, measures):
        if not is_bias(measure) or not _is_of_one_list(measure):
            raise InputError(f"{measure} cannot be computed from one list of results")
        yield measure


def _is_of_one_list(measure: BiasMeasure) -> bool:
    """Whether words or groups are all that it looks at."""
    asked = {"qrels"} & measure.NEEDS or measure.params.get("target") == "relevant"
    return bool(measure.NEEDS & {"tally", "groups"}) and not asked


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
    return tuple(m for m in _at(found, at) if "groups" in m.NEEDS)


def _at(measures: Sequence[Measure], at: int) -> tuple[BiasMeasure, ...]:
    """Those that say something about one list, at this cut-off."""
    moved = [measure @ at for measure in measures if measure.AT_PARAM]  # of one list abs() says nothing new
    # A slope needs many queries, and a dictionary is of its own.
    return tuple(m for m in moved if is_bias(m) and m.NEEDS & {"tally", "groups"})


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
        text += f"; the {to} words are higher up, or in more results"
    text += f". {without} of {shown} contain neither." if shown > 1 and without else "."
    if query_gender in (of, against) and to is not None:
        text += (
            f" The query itself contains {query_gender} words, so some lean that way is expected."
            if to == query_gender
            else f" The query itself contains {query_gender} words: the opposite way."
        )
    return text


def _times(group: str, number: int) -> str:
    return f"{number} {group} {'word' if number == 1 else 'words'}"
