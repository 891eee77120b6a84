"""Values, intervals and marks as the page writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenrank import stats
from evenrank.auditing import grids
from evenrank.auditing.comparing import LEVEL, Compared, between
from evenrank.auditing.passages import LeaningQuery
from evenrank.auditing.result import Audit
from evenrank.auditing.verdict import standing
from evenrank.measures.disparities import Disparity
from evenrank.measures.measurements import Measurement
from evenrank.psychology import Characteristic, JudgmentsAudit, RankingsAudit
from evenrank.show.measured_figures import RUNS, first_runs
from evenrank.stats import Comparison

_HASH = 12  # characters shown of a fingerprint


@dataclass(frozen=True)
class Cell:
    """A value, its interval and how it stands to the baseline's: better, worse, other or nothing."""

    value: str
    bounds: str
    mark: str
    standing: str
    title: str


def table(audit: Audit) -> list[tuple[Any, list[Cell]]]:
    """Each measure with its cells, one for each run."""
    return [(m, [_cell(audit, audit.measured[run, m]) for run in audit.runs]) for m in audit.measures]


def _cell(audit: Audit, m: Measurement) -> Cell:
    one = between(audit.comparisons, m.run, m.measure)
    stands = "" if one is None or not one.significant else standing(one, audit)
    title = ""
    if one is not None and one.comparison.difference is not None:
        c = one.comparison
        title = f"{c.difference:+.4f} against {one.baseline}"
        if c.low is not None and c.high is not None:
            title += f" [{c.low:+.4f}, {c.high:+.4f}]"
        title += f", corrected p {p_value(one.p_holm)}"
    return Cell(grids.value(m), grids.bounds(m), grids.mark(audit, m), stands, title)


def comparisons(audit: Audit) -> list[tuple[Compared, str]]:
    """Each comparison with the baseline, and how the run stands."""
    return [(one, standing(one, audit) if one.significant else "") for one in audit.comparisons]


def leaning(audit: Audit) -> dict[str, dict[str, list[LeaningQuery]]]:
    """The leaning queries of the first runs, by side: positive, then negative."""
    found: dict[str, dict[str, list[LeaningQuery]]] = {}
    shown = set(first_runs(audit, RUNS))
    for query in audit.leaning:
        if query.run not in shown:
            continue
        sides = found.setdefault(query.run, {"positive": [], "negative": []})
        sides["positive" if query.value > 0 else "negative"].append(query)
    return found


def gendered(audit: Audit) -> list[tuple[str, list[tuple[Any, list[tuple[str, str, int]]]]]]:
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
        found.append((name, rows))
    return found


def disparities(audit: Audit) -> list[tuple[Disparity, float | None]]:
    """Each run and measure with its p, corrected over all of them."""
    found = [] if audit.disparity is None else list(audit.disparity)
    return list(zip(found, stats.holm([one.welch.p for one in found]), strict=True))


@dataclass(frozen=True)
class Psychology:
    """What the section says: where the texts come from, how many queries, what differs."""

    where: str
    queries: Mapping[str, int]
    characteristics: Sequence[Characteristic]
    established: list[Characteristic]


def psychology(given: JudgmentsAudit | RankingsAudit | None) -> Psychology | None:
    """The characteristics of the judged documents, or of the baseline's top results."""
    if given is None:
        return None
    if isinstance(given, RankingsAudit):
        where, found = f"top {given.at} results of {given.baseline}", given.runs[given.baseline]
    else:
        where, found = "judged documents", given.characteristics
    clear = [one for one in found if one.p_holm is not None and one.p_holm < LEVEL]
    return Psychology(where, given.queries, found, clear)


@dataclass(frozen=True)
class Facts:
    """What the numbers were made from: the main facts, and all."""

    main: list[tuple[str, str]]
    all: list[tuple[str, str]]


def facts(audit: Audit) -> Facts:
    """Provenance, one fact a line; fingerprints are shortened in the main facts."""
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
    return Facts([(name, str(value)) for name, value in main.items() if value], flat)


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


def minus(text: str) -> str:
    """Text with a true minus sign before numbers."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def few(names: Sequence[str], most: int = 8) -> str:
    """The names, or the first of them and how many more there are."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more:,} more"


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def effect(found: Comparison) -> str:
    """An effect size and what it is: +0.42 d_z."""
    return "–" if found.effect is None else f"{signed(found.effect)} {found.effect_name}"


def p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
