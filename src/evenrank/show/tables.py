"""The sections of the report without charts: the verdict's cards, tables, passages, provenance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenrank import stats
from evenrank.auditing.comparing import between
from evenrank.auditing.passages import LeaningQuery
from evenrank.auditing.result import Audit, printed_bounds, printed_value
from evenrank.auditing.selection import Impact
from evenrank.auditing.verdict import (
    Finding,
    correction,
    headline,
    said_of,
    side,
    size_of,
    standing,
    unjudged,
)
from evenrank.measures.base import is_bias, short, sign_names_group
from evenrank.measures.compare import RunComparison
from evenrank.measures.disparity import Disparity
from evenrank.measures.results import Measurement
from evenrank.show.charts.values import value_figures
from evenrank.show.figure import RUNS, Section, first_runs
from evenrank.show.numbers import interval, p_phrase

ACROSS = 6
"""Runs beside one another in a table; further ones stand in tables beneath, so that paper holds them."""
CARDS = 12
"""Runs that get a card; the table of measures has all."""


@dataclass(frozen=True)
class Gauge:
    """Places on the bar, in percent from the left; None where there is nothing to mark.

    `offered` is what the same queries were offered.
    """

    value: float
    low: float | None
    high: float | None
    offered: float | None
    bound: float


@dataclass(frozen=True)
class Card:
    """What the verdict says about one run."""

    run: str
    baseline: bool
    side: str | None
    says: str
    value: float | None
    measurement: Measurement
    gauge: Gauge | None
    unjudged: str | None
    size: Measurement | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Line:
    """One run in one line: where it leans, by how much, and what it buys against the baseline.

    `bias` and `use` are the changes of the headline's size (or the headline itself) and of usefulness, each
    with whether it is established (None where that is not judged) and over how many queries; None for the
    baseline and where nothing was compared.
    """

    run: str
    baseline: bool
    side: str | None
    judged: str
    value: str
    bounds: str
    queries: int
    size: tuple[str, int] | None
    bias: tuple[str, bool | None, int] | None
    use: tuple[str, bool | None, int] | None


def lines(audit: Audit) -> list[Line]:
    """The summary: a line for each run."""
    measure = audit.headline
    if measure is None:
        return []
    useful = next((m for m in audit.measures if not is_bias(m)), None)
    rows = []
    for run in audit.runs:
        m, size = audit.measured[run, measure], size_of(audit, run)
        to, why = side(m, audit.groups), unjudged(m)
        judged = ""
        if sign_names_group(measure):
            judged = f"not judged ({why})" if why else said_of(m, audit)
        rows.append(
            Line(
                run,
                run == audit.baseline,
                to,
                judged,
                printed_value(m),
                printed_bounds(m),
                m.queries,
                None if size is None else (printed_value(size), size.queries),
                _bought(audit, run, measure if size is None else size.measure),
                None if useful is None else _bought(audit, run, useful),
            )
        )
    return rows


def _bought(audit: Audit, run: str, measure: Any) -> tuple[str, bool | None, int] | None:
    one = between(audit.comparisons, run, measure)
    if one is None or one.comparison.difference is None:
        return None
    established = None if one.comparison.p is None else one.significant
    return f"{short(measure)} {one.comparison.difference:+.3f}", established, one.comparison.n


def verdict(audit: Audit, more: Mapping[str, Any]) -> Section:
    """The headline, the gate and a card for each run."""
    result = cards(audit)
    content = {
        "headline": headline(audit),
        "lines": lines(audit),
        "cards": result,
        "offered": next((one.kind for one in audit.offered.values()), None),
        "corrected": correction(audit),
    }
    return Section("verdict", "Verdict", template="verdict.html", content=content)


def cards(audit: Audit) -> list[Card]:
    """One card for each of the first runs; all bars have the same scale."""
    measure = audit.headline
    if measure is None:
        return []
    rows = [audit.measured[run, measure] for run in audit.runs]
    reach = [abs(x) for m in rows for x in (m.value, m.low, m.high, _offered(audit, m.run)) if x is not None]
    shown = set(first_runs(audit, CARDS))
    bound = _round_up(max(reach, default=0.1) * 1.1)
    return [
        Card(
            run=m.run,
            baseline=m.run == audit.baseline,
            side=side(m, audit.groups),
            value=m.value,
            measurement=m,
            says=said_of(m, audit) if sign_names_group(measure) else "",
            unjudged=unjudged(m),
            size=size_of(audit, m.run),
            gauge=_gauge(m, bound, _offered(audit, m.run))
            if sign_names_group(measure) and m.value is not None
            else None,
            findings=tuple(_within(f, audit.baseline) for f in audit.findings if f.run == m.run),
        )
        for m in rows
        if m.run in shown
    ]


def _within(finding: Finding, baseline: str | None) -> Finding:
    """The finding without the name of the run that the card bears already."""
    text = finding.text.removeprefix(f"{finding.run}: ")
    if finding.kind == "change":
        same = f"{finding.run} and {baseline} do not differ clearly"
        text = text.replace(same, f"No clear difference from {baseline}", 1)
        open_ = f"Whether {finding.run} and {baseline} differ is not judged"
        text = text.replace(open_, f"Difference from {baseline} not judged", 1)
        text = text.removeprefix(f"{finding.run} ").removeprefix("is ")
    return replace(finding, text=text[:1].upper() + text[1:])


def _gauge(m: Measurement, bound: float, offered: float | None) -> Gauge:
    def place(x: float | None) -> float | None:
        return None if x is None else round(50 + 50 * max(-1.0, min(1.0, x / bound)), 2)

    assert m.value is not None
    return Gauge(place(m.value) or 0.0, place(m.low), place(m.high), place(offered), bound)


def _offered(audit: Audit, run: str) -> float | None:
    """The lean of what the run's queries were offered, if it is known."""
    result = audit.offered.get(run)
    return None if result is None else result.value


def _round_up(x: float) -> float:
    """The next of 1, 2, 2.5 or 5 times a power of ten."""
    if x <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(x))
    return next(
        float(f"{step * power:.6g}") for step in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if step * power >= x
    )


_HASH = 12  # characters shown of a fingerprint


@dataclass(frozen=True)
class Cell:
    """A value, its interval and how it stands to the baseline's: better, worse, other or nothing."""

    value: str
    bounds: str
    queries: str
    mark: str
    standing: str
    title: str


def values(audit: Audit, more: Mapping[str, Any]) -> Section:
    """Every measure of every run, with marks where it differs from the baseline's."""
    content = {"tables": _tables(audit), "comparisons": _comparisons(audit)}
    return Section("values", "All measures", "", value_figures(audit), "values.html", content)


def _tables(audit: Audit) -> list[tuple[list[str], list[tuple[Any, list[Cell]]]]]:
    """Runs, and each measure with its cells; so many runs as fit on paper, the baseline in every table."""
    runs = list(audit.runs)
    parts = [runs]
    if len(runs) > ACROSS:
        first = [audit.baseline] if audit.baseline in runs else []
        others = [run for run in runs if run not in first]
        step = ACROSS - len(first)
        parts = [[*first, *others[i : i + step]] for i in range(0, len(others), step)]
    return [
        (part, [(m, [_cell(audit, audit.measured[run, m]) for run in part]) for m in audit.measures])
        for part in parts
    ]


def _cell(audit: Audit, m: Measurement) -> Cell:
    one = between(audit.comparisons, m.run, m.measure)
    stands = "" if one is None or not one.significant else standing(one, audit)
    title = ""
    if one is not None and one.comparison.difference is not None:
        c = one.comparison
        between_ends = interval(c.low, c.high, "+.4f")
        title = f"{c.difference:+.4f} against {one.baseline}"
        title += f"{' ' if between_ends else ''}{between_ends}, corrected {p_phrase(one.p_holm)}"
    return Cell(printed_value(m), printed_bounds(m), f"{m.queries:,}", audit.mark(m), stands, title)


def _comparisons(audit: Audit) -> list[tuple[RunComparison, str]]:
    """Each comparison with the baseline, and how the run stands; established ones first, then by effect."""
    ordered = sorted(
        audit.comparisons, key=lambda one: (not one.significant, -abs(one.comparison.effect or 0))
    )
    return [(one, standing(one, audit) if one.significant else "") for one in ordered]


def passages(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """The queries that lean farthest, and the passages that make them so."""
    if not audit.leaning:
        return None
    content = {"leaning": _leaning(audit), "shown": RUNS}
    return Section("passages", "Queries and passages", template="passages.html", content=content)


def _leaning(audit: Audit) -> dict[str, dict[str, list[LeaningQuery]]]:
    """The leaning queries of the first runs, by side: positive, then negative."""
    result: dict[str, dict[str, list[LeaningQuery]]] = {}
    shown = set(first_runs(audit, RUNS))
    for query in audit.leaning:
        if query.run not in shown:
            continue
        sides = result.setdefault(query.run, {"positive": [], "negative": []})
        sides["positive" if query.value > 0 else "negative"].append(query)
    return result


def gendered(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """The queries whose own words are most gendered."""
    if not any(audit.gendered):
        return None
    content = {"gendered": _gendered(audit)}
    return Section("gendered", "Most gendered queries", template="gendered.html", content=content)


def _gendered(audit: Audit) -> list[tuple[str, str, list[tuple[Any, list[tuple[str, str, int]]]]]]:
    """The most gendered queries of each side, their words with a group and a strength from 0 to 3."""
    items = []
    for name, most in zip(("female", "male"), audit.gendered, strict=True):
        rows = []
        for query in most:
            words = []
            for word, g in query.words:
                strength = 0 if g is None else min(3, int(abs(g) / 0.1))
                words.append((word, "" if not g or not strength else "female" if g > 0 else "male", strength))
            rows.append((query, words))
        # Where all queries lean one way, the others are not the most of anything.
        other = "male" if name == "female" else "female"
        leaning_here = any((query.g > 0) == (name == "female") and query.g for query in most)
        items.append((name, f"most {name}" if leaning_here else f"least {other}", rows))
    return items


def disparity(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """Effectiveness by the gender of the query."""
    if audit.disparity is None:
        return None
    lead = (
        "Effectiveness on queries about women and on queries about men. The two are different queries: a "
        "difference may come from the queries and not from the ranker."
    )
    content = {"disparities": _disparities(audit)}
    return Section("disparity", "Who is served better", lead, template="disparity.html", content=content)


def _disparities(audit: Audit) -> list[tuple[Disparity, float | None]]:
    """Each run and measure with its p, corrected over all of them; the largest effect first."""
    result = [] if audit.disparity is None else list(audit.disparity)
    both = zip(result, stats.holm([one.welch.p for one in result]), strict=True)
    return sorted(both, key=lambda pair: -abs(pair[0].welch.effect or 0))


def statement(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """Who vouches for the audit, following which text, and what it rests on; only in a bundle."""
    given = more.get("statement")
    if given is None:
        return None
    lead = given["title"] + "."
    return Section("statement", "Statement", lead, template="statement.html", content=given)


def selection(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """How often documents of each group are selected, and impact ratios."""
    result = audit.selection
    if result is None:
        return None
    given = more.get("statement") or {}
    smallest = given.get("smallest_share", 0.0)
    blocks: list[tuple[str, str, list[tuple[Impact, Impact]]]] = [
        (
            run,
            kind,
            list(
                zip(
                    result.impacts(run, kind, smallest=smallest),
                    result.impacts(run, kind, "scoring", smallest),
                    strict=True,
                )
            ),
        )
        for run in result.totals
        for kind in result.kinds
    ]
    lead = (
        f"How often candidates of each group reach the top {result.at}. A candidate is a document that a run "
        "ranks for a query. Impact ratio: the rate by that of the group with the highest."
    )
    content = {"found": result, "blocks": blocks, "exclusions": given.get("exclusions", [])}
    return Section("selection", "Selection rates", lead, template="selection.html", content=content)


def reading(audit: Audit, more: Mapping[str, Any]) -> Section:
    """What the numbers mean, and what they do not."""
    return Section("reading", "Reading the numbers", template="reading.html")


def provenance(audit: Audit, more: Mapping[str, Any]) -> Section:
    """What the numbers were made from; fingerprints are shortened in the main facts."""
    given = audit.measured.provenance
    tally = given.get("tally", {})
    lexicon, source = tally.get("lexicon", {}), tally.get("input", {})
    words = ", ".join(f"{len(each)} {group}" for group, each in lexicon.get("groups", {}).items())
    main = {
        "evenrank": given.get("evenrank"),
        "documents": f"{tally['documents']:,} in {source.get('name', '?')}" if "documents" in tally else None,
        "lexicon": f"{lexicon['name']}: {words} words" if lexicon else None,
        "tokenizer": tally.get("tokenizer"),
        **{f"run {name}": _shortened(mark) for name, mark in given.get("runs", {}).items()},
        "baseline": audit.baseline,
        "queries": _shortened(given.get("queries", "")),
        "judgments": _shortened(given.get("qrels", "")),
        "gender labels": _shortened(given.get("genders", "")),
        "intervals": f"bootstrap, {given['resamples']:,} resamples, seed {given['seed']}"
        if audit.confidence
        else None,
    }
    flat = [(name, value) for name, value in _flat(given) if value]
    content = {"main": [(name, str(value)) for name, value in main.items() if value], "all": flat}
    lead = "What the numbers were made from. The same input gives the same page, byte for byte."
    return Section("provenance", "Provenance", lead, template="provenance.html", content=content)


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        place = f"{before} · {name}" if before else name
        if isinstance(value, Mapping):
            lists = name == "groups" and all(isinstance(words, list | tuple) for words in value.values())
            if lists:
                yield place, ", ".join(f"{group}: {len(words)} words" for group, words in value.items())
            else:
                yield from _flat(value, place)
        elif isinstance(value, list | tuple):
            yield (
                place,
                ", ".join("–".join(map(str, x)) if isinstance(x, list | tuple) else str(x) for x in value),
            )
        elif value is not None:
            yield place, str(value)


def _shortened(text: str) -> str:
    is_hash = len(text) >= 32 and all(c in "0123456789abcdef" for c in text)
    return f"{text[:_HASH]}…" if is_hash else text
