"""Gender labels that are guesses: means of the true groups, from values, guesses and a confusion table.

What is assumed and how it is computed stands in `evenrank.stats.misclassified`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import door, tables
from evenrank.data.columns import DOC_ID, GENDER, QUERY_ID
from evenrank.data.topics import known_gender
from evenrank.errors import InputError
from evenrank.measures.inputs import Inputs
from evenrank.measures.results import Bootstrap, Measurement, Measurements, Options
from evenrank.show.numbers import interval, number
from evenrank.stats import Comparison, Interval
from evenrank.stats.misclassified import (
    FEWEST,
    Adjusted,
    Confusion,
    adjusted_means,
    adjusted_shares,
    error_tests,
)
from evenrank.text.tally import Tally

SHIPPED = "shipped"
"""The confusion table of the shipped classifier, out of fold: docs/evidence/query-gender.json."""
ASSUMED = (
    "This assumes that labels are wrong as often as in the confusion table and, within a true group, "
    "regardless of the value."
)
RESAMPLES = 1000
"""Where the audit itself draws none: an adjusted mean without an interval would look surer than it is."""
_TRUE, _PREDICTED, _COUNT = ("true", "truth", "gold"), ("predicted", "guess"), ("count", "n")


class LabelErrors(NamedTuple):
    """A confusion table, and the queries behind it where they are named: query_id, true, predicted."""

    confusion: Confusion
    labelled: pl.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class AdjustedMeans:
    """Means as the labels have them (`naive`), and as they would be with true labels (`means`).

    Attributes
    ----------
    queries
        How many values went in.
    shares
        Of each true group among them.
    difference, naive_difference
        Between the two groups of `pair`, first − second.
    tests
        For each true group whether wrongly labelled queries have other values than rightly labelled ones,
        where the confusion table names queries that were measured.
    problem
        Why nothing could be adjusted, if so.
    labelled
        How many labelled items of each true group the confusion table counts.
    """

    pair: tuple[str, str]
    queries: int
    naive: dict[str, Interval]
    naive_difference: Interval
    shares: dict[str, Interval]
    means: dict[str, Interval]
    difference: Interval
    tests: dict[str, Comparison] = field(default_factory=dict)
    problem: str | None = None
    labelled: dict[str, int] = field(default_factory=dict)

    def sentences(self, *, form: str = "+.3f") -> list[str]:
        """What is known, in a few sentences."""
        if self.problem is not None:
            return [f"Not adjusted for errors of the labels: {self.problem}."]
        known = {group: each for group, each in self.means.items() if each.value is not None}
        means = ", ".join(f"{group} {_said(each, form)}" for group, each in known.items()) or "no mean"
        first, second = self.pair
        gap = ""
        if self.difference.value is not None:
            gap = (
                f"; {first} − {second} {_said(self.difference, '+.3f')} "
                f"(as labelled {_said(self.naive_difference, '+.3f')})"
            )
        said = [f"Adjusted for errors of the labels: {means}{gap}."]
        return [*said, *self.reservations()]

    def reservations(self) -> list[str]:
        """Which groups have no mean, and where the data speak against what is assumed."""
        said = []
        if few := [group for group, each in self.means.items() if each.value is None]:
            said.append(f"Fewer than {FEWEST} queries are estimated to be {' or '.join(few)}: no mean.")
        if doubtful := [group for group, one in self.tests.items() if one.p is not None and one.p < 0.05]:
            said.append(
                f"Doubtful: of {', '.join(doubtful)} queries, those labelled wrongly have other values than "
                "those labelled rightly."
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "shares": _plain(self.shares),
            "means": _plain(self.means),
            "as_labelled": _plain(self.naive),
            "difference": {"of": list(self.pair), **self.difference.__dict__},
            "difference_as_labelled": {"of": list(self.pair), **self.naive_difference.__dict__},
            "errors_depend_on_value": {
                group: {"difference": one.difference, "p": one.p, "n": one.n}
                for group, one in self.tests.items()
            },
            "labelled": self.labelled,
            "problem": self.problem,
            "assumed": ASSUMED,
        }


def adjusted(
    found: Any,
    genders: Any = None,
    confusion: Any = None,
    *,
    documents: Any = None,
    pair: tuple[str, str] = ("male", "female"),
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> AdjustedMeans:
    """Means by gender, if the gender labels are guesses whose errors are known.

    Parameters
    ----------
    found
        A measurement over all queries (``er.measure(…, only="all")["RR@10"]``), or ``{query: value}``.
    genders
        The guessed labels. `unknown` is a guess like any other.
    confusion
        How often they are wrong: ``shipped`` for labels of `evenrank classify`; a table with the columns
        true, predicted and count; one with query_id, true and predicted, one row per query; or ``{true:
        {predicted: count}}``.
    documents
        Instead of the two above: what a lexicon misses. For each group how many labelled documents with it
        (``yes``) and without it (``no``) hold a word of it, as `word_confusion` counts. Only for measures
        with magnitude='boolean': for counts it is not known how far off they are.
    pair
        The groups whose difference is wanted, first − second.

    Examples
    --------
    >>> guesses = {str(i): "female" if i % 4 else "male" for i in range(40)}
    >>> table = {"female": {"female": 90, "male": 10}, "male": {"female": 20, "male": 80}}
    >>> adjusted({str(i): float(i % 4 == 0) for i in range(40)}, guesses, table).problem is None
    True
    """
    if documents is not None:
        return _of_documents(found, documents, pair, confidence, resamples, seed)
    if genders is None or confusion is None:
        raise InputError("say what the labels are and how they err: genders and confusion")
    errors = label_errors(confusion)
    values = found.per_query() if isinstance(found, Measurement) else dict(found)
    labels = dict(tables.genders(genders).iter_rows())
    known = [query for query in values if query in labels]
    y = np.array([values[query] for query in known])
    guesses = [labels[query] for query in known]
    if missing := set(pair) - set(errors.confusion.truths):
        raise InputError(f"the confusion table has no true group {min(missing)!r}")
    sides = {
        group: y[np.array([guess == group for guess in guesses], bool)] for group in errors.confusion.truths
    }
    naive = {group: stats.mean_interval(side, confidence=confidence) for group, side in sides.items()}
    settings: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    turned = adjusted_means(y, guesses, errors.confusion, pairs=[pair], **settings)
    found = _result(pair, len(y), naive, _gap(sides, pair, confidence), turned, _tests(values, errors))
    counted = zip(errors.confusion.truths, errors.confusion.counts.sum(axis=1).tolist(), strict=True)
    return replace(found, labelled=dict(counted))


def with_adjusted(
    measured: Measurements,
    everything: Measurements | None,
    genders: Any = None,
    confusion: Any = None,
    *,
    documents: Mapping[str, Confusion] | None = None,
    **settings: Any,
) -> Measurements:
    """The same measurements, each with what errors of the labels do to it, and a note that says so.

    Parameters
    ----------
    everything
        The same measures over all queries, whatever their label, where `confusion` is given.
    documents
        As in `adjusted`; for the measures with magnitude='boolean'.
    """
    errors = None if confusion is None else label_errors(confusion)

    def told(run: str, one: Measurement) -> Measurement:
        found: dict[str, AdjustedMeans] = {}
        if errors is not None and everything is not None:
            whole = everything[run, one.measure]
            if _is_mean(whole):
                found["queries"] = adjusted(whole, genders, errors, **settings)
        if documents is not None and one.measure.params.get("magnitude") == "boolean":
            measure: Any = one.measure
            found["documents"] = adjusted(
                one, documents=documents, pair=measure.pair(tuple(one.parts)), **settings
            )
        notes = [sentence for each in found.values() for sentence in each.sentences()]
        if any(each.problem is None for each in found.values()):
            notes.append(ASSUMED)
        return replace(one, adjusted=found, notes=(*one.notes, *notes)) if found else one

    runs = {run: tuple(told(run, one) for one in each) for run, each in measured.runs.items()}
    return replace(measured, runs=runs)


def adjust(
    found: Measurements, inputs: Inputs, options: Options, *, confusion: Any = None, true_groups: Any = None
) -> Measurements:
    """The same measurements, with what errors of the labels do to them.

    Parameters
    ----------
    confusion
        How the labels of queries err, see :func:`evenrank.adjusted`; needs these labels.
    true_groups
        doc_id and gender of documents: how often the lexicon misses a group. For magnitude='boolean'.
    """
    from evenrank.measures.evaluate import measured

    if confusion is not None and inputs.genders is None:
        raise InputError("a confusion table says how labels of queries err; give genders too")
    if true_groups is not None and not inputs.countable:
        raise InputError("true groups of documents are compared with their words; give docs or a tally")
    everything = None
    if confusion is not None:
        whole = replace(options, only="all", bootstrap=Bootstrap(None))
        everything = measured(inputs, list(dict.fromkeys(one.measure for one in found)), whole)
    drawn = options.bootstrap
    return with_adjusted(
        found,
        everything,
        inputs.genders,
        confusion,
        documents=None if true_groups is None else word_confusion(true_groups, inputs.tally),
        confidence=drawn.confidence or 0.95,
        resamples=RESAMPLES if drawn.confidence is None else drawn.resamples,
        seed=drawn.seed,
    )


def label_errors(given: Any) -> LabelErrors:
    """A confusion table from whatever looks like one; see `adjusted`."""
    if isinstance(given, LabelErrors):
        return given
    if isinstance(given, Confusion):
        return LabelErrors(given)
    if isinstance(given, Mapping):
        rows = [(t, p, n) for t, row in given.items() for p, n in row.items()]
        return LabelErrors(_counted(rows))
    if isinstance(given, str) and given == SHIPPED:
        given = Path(str(resources.files("evenrank.queries") / "data" / "static-confusion.tsv"))
    names = {"true": _TRUE, "predicted": _PREDICTED, "count": _COUNT, "query_id": QUERY_ID}
    table = door.table(given, names, optional=("count", "query_id"))
    true, predicted = table.ids("true"), table.ids("predicted")
    if "count" in table.frame.columns:
        counts = table.whole_numbers("count")
        table.refuse(counts < 0, "a count is below 0")
        return LabelErrors(_counted(zip(true, predicted, counts, strict=True)))
    labelled = None
    if "query_id" in table.frame.columns:
        table.once("query_id")
        normal = [[known_gender(each) for each in column] for column in (true, predicted)]
        labelled = pl.DataFrame(
            {"query_id": table.ids("query_id"), "true": normal[0], "predicted": normal[1]}
        )
    return LabelErrors(_counted((t, p, 1) for t, p in zip(true, predicted, strict=True)), labelled)


def word_confusion(labels: Any, tally: Tally, groups: tuple[str, ...] | None = None) -> dict[str, Confusion]:
    """For each group: do labelled documents that show it hold a word of it, and those that do not?

    Parameters
    ----------
    labels
        doc_id and gender of documents; ``both`` shows all groups, ``neutral`` none. A document that the
        tally lacks is left aside.
    """
    table = door.table(labels, {"doc_id": DOC_ID, "gender": GENDER})
    frame = pl.DataFrame({"doc_id": table.ids("doc_id"), "label": table.ids("gender")})
    joined = frame.join(tally.frame, on="doc_id")
    if joined.is_empty():
        raise InputError("none of the labelled documents is in the collection", path=table.path)
    found = {}
    for group in groups or tally.groups:
        shows = [known_gender(each) in (group, "other") for each in joined["label"]]
        holds = (joined[group] > 0).to_list()
        rows = [("yes" if s else "no", "yes" if h else "no", 1) for s, h in zip(shows, holds, strict=True)]
        found[group] = _table(rows, ("yes", "no"), ("yes", "no"))
    return found


def _of_documents(
    found: Any, documents: Any, pair: tuple[str, str], confidence: float, resamples: int, seed: int
) -> AdjustedMeans:
    if not isinstance(found, Measurement) or found.measure.params.get("magnitude") != "boolean":
        raise InputError(
            "only measures with magnitude='boolean' are adjusted for what a lexicon misses, as in "
            "RaB(magnitude='boolean')@10; how far off a count is, no confusion table says"
        )
    tables_ = {
        g: each if isinstance(each, Confusion) else Confusion.of(each) for g, each in documents.items()
    }
    parts = {group: values for group, values in found.part_values.items() if group in pair}
    if missing := set(pair) - (set(parts) & set(tables_)):
        raise InputError(f"the group {min(missing)!r} was not measured, or has no confusion table")
    settings: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    turned = adjusted_shares(parts, tables_, pair=pair, **settings)
    naive = {group: stats.mean_interval(parts[group], confidence=confidence) for group in pair}
    gap = stats.mean_interval(parts[pair[0]] - parts[pair[1]], confidence=confidence)
    labelled = {group: int(tables_[group].counts.sum()) for group in pair}
    return replace(_result(pair, len(found.values), naive, gap, turned, {}), labelled=labelled)


def _is_mean(found: Measurement) -> bool:
    """Whether the value is the mean over queries; a slope is not."""
    if found.value is None or not len(found.values):
        return True
    return bool(np.isclose(found.value, found.values.mean(), rtol=1e-9, atol=1e-9))


def _result(
    pair: tuple[str, str],
    queries: int,
    naive: dict[str, Interval],
    gap: Interval,
    turned: Adjusted,
    tests: dict[str, Comparison],
) -> AdjustedMeans:
    return AdjustedMeans(
        pair,
        queries,
        naive,
        gap,
        turned.shares,
        turned.means,
        turned.differences[pair],
        tests,
        turned.problem,
    )


def _gap(sides: Mapping[str, Any], pair: tuple[str, str], confidence: float) -> Interval:
    found = stats.welch(sides[pair[0]], sides[pair[1]], confidence=confidence)
    return Interval(found.difference, found.low, found.high)


def _tests(values: Mapping[str, float], errors: LabelErrors) -> dict[str, Comparison]:
    """Whether errors depend on the value, over the labelled queries that were measured."""
    if errors.labelled is None:
        return {}
    rows = [row for row in errors.labelled.iter_rows() if row[0] in values]
    if not rows:
        return {}
    queries, truths, guesses = zip(*rows, strict=True)
    return error_tests([values[query] for query in queries], truths, guesses)


def _counted(rows: Any) -> Confusion:
    named = [(known_gender(true), known_gender(predicted), int(count)) for true, predicted, count in rows]
    truths = tuple(t for t in ("female", "male", "neutral", "other") if any(row[0] == t for row in named))
    guesses = tuple(dict.fromkeys([*truths, *sorted({row[1] for row in named})]))
    return _table(named, truths, guesses)


def _table(rows: Any, truths: tuple[str, ...], guesses: tuple[str, ...]) -> Confusion:
    counts = {truth: dict.fromkeys(guesses, 0) for truth in truths}
    for true, predicted, count in rows:
        counts[true][predicted] += count
    return Confusion.of(counts)


def _said(found: Interval, form: str) -> str:
    return f"{number(found.value, form)} {interval(found.low, found.high, form)}".strip()


def _plain(found: Mapping[str, Interval]) -> dict[str, dict[str, float | None]]:
    return {group: dict(each.__dict__) for group, each in found.items()}
