"""Sections that are tables or text: values, passages, gendered queries, disparity, provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenrank import stats
from evenrank.auditing.comparing import Compared, between
from evenrank.auditing.passages import LeaningQuery
from evenrank.auditing.result import Audit, printed_bounds, printed_value
from evenrank.auditing.verdict import standing
from evenrank.measures.disparities import Disparity
from evenrank.measures.results import Measurement
from evenrank.show.charts.values import value_figures
from evenrank.show.figure import RUNS, Section, first_runs
from evenrank.show.numbers import interval, p_said

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
    content = {"table": _table(audit), "comparisons": _comparisons(audit)}
    return Section("values", "All measures", "", value_figures(audit), "values.html", content)


def _table(audit: Audit) -> list[tuple[Any, list[Cell]]]:
    """Each measure with its cells, one for each run."""
    return [(m, [_cell(audit, audit.measured[run, m]) for run in audit.runs]) for m in audit.measures]


def _cell(audit: Audit, m: Measurement) -> Cell:
    one = between(audit.comparisons, m.run, m.measure)
    stands = "" if one is None or not one.significant else standing(one, audit)
    title = ""
    if one is not None and one.comparison.difference is not None:
        c = one.comparison
        between_ends = interval(c.low, c.high, "+.4f")
        title = f"{c.difference:+.4f} against {one.baseline}"
        title += f"{' ' if between_ends else ''}{between_ends}, corrected {p_said(one.p_holm)}"
    return Cell(printed_value(m), printed_bounds(m), f"{m.queries:,}", audit.mark(m), stands, title)


def _comparisons(audit: Audit) -> list[tuple[Compared, str]]:
    """Each comparison with the baseline, and how the run stands."""
    return [(one, standing(one, audit) if one.significant else "") for one in audit.comparisons]


def passages(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """The queries that lean farthest, and the passages that make them so."""
    if not audit.leaning:
        return None
    content = {"leaning": _leaning(audit), "shown": RUNS}
    return Section("passages", "Queries and passages", template="passages.html", content=content)


def _leaning(audit: Audit) -> dict[str, dict[str, list[LeaningQuery]]]:
    """The leaning queries of the first runs, by side: positive, then negative."""
    found: dict[str, dict[str, list[LeaningQuery]]] = {}
    shown = set(first_runs(audit, RUNS))
    for query in audit.leaning:
        if query.run not in shown:
            continue
        sides = found.setdefault(query.run, {"positive": [], "negative": []})
        sides["positive" if query.value > 0 else "negative"].append(query)
    return found


def gendered(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """The queries whose own words are most gendered."""
    if not any(audit.gendered):
        return None
    content = {"gendered": _gendered(audit)}
    return Section("gendered", "Most gendered queries", template="gendered.html", content=content)


def _gendered(audit: Audit) -> list[tuple[str, str, list[tuple[Any, list[tuple[str, str, int]]]]]]:
    """The most gendered queries of each side, their words with a group and a strength from 0 to 3."""
    found = []
    for name, side in zip(("female", "male"), audit.gendered, strict=True):
        rows = []
        for query in side:
            words = []
            for word, g in query.words:
                strength = 0 if g is None else min(3, int(abs(g) / 0.1))
                words.append((word, "" if not g or not strength else "female" if g > 0 else "male", strength))
            rows.append((query, words))
        # Where all queries lean one way, the others are not the most of anything.
        other = "male" if name == "female" else "female"
        leaning_here = any((query.g > 0) == (name == "female") and query.g for query in side)
        found.append((name, f"most {name}" if leaning_here else f"least {other}", rows))
    return found


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
    """Each run and measure with its p, corrected over all of them."""
    found = [] if audit.disparity is None else list(audit.disparity)
    return list(zip(found, stats.holm([one.welch.p for one in found]), strict=True))


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
