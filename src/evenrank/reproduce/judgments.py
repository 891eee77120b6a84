"""Judged documents by the gender of the query (thesis, Section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenrank import stats
from evenrank.psychology.audits import JudgmentsAudit, audit_judgments
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Table, alike
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.numbers import number

_JUDGMENTS = {
    "positive": "similar",
    **dict.fromkeys(("negative", "anxiety", "sadness", "cognition", "reward", "risk"), "female"),
    **dict.fromkeys(("anger", "concerns", "affiliation", "achievement", "power"), "male"),
    **dict.fromkeys(("work", "leisure", "home", "money", "religion", "death"), "male"),
}
_SIMILAR = 0.1  # of the mean of both genders


_FIGURES = {
    "social": "3.1",
    "affect": "3.2, 3.3",
    "cognition": "3.4",
    "concerns": "3.5",
    "drives": "3.6",
}


def judgments_recipe(settings: Settings, steps: Steps) -> Page:
    """Psychological characteristics of judged documents, by the gender of the query."""

    def work() -> dict[str, Any]:
        scored = sorted(Path(settings.data).glob("*.csv")) if settings.data else []
        scored = [] if list(Path(settings.data or "").glob("docs.*")) else scored
        if scored:
            audit = audit_judgments(scores=scored, seed=settings.seed)
        else:
            data = settings.dataset()
            audit = audit_judgments(
                qrels=data.qrels,
                docs=data.docs,
                genders=settings.labels(data.queries, steps.say),
                seed=settings.seed,
            )
        names = {one.name for one in audit.characteristics}
        return {
            "queries": audit.queries,
            "left out": audit.left_out,
            "counted": not scored,
            "all": {name: {**audit[name].to_dict(), "higher": audit[name].higher} for name in sorted(names)},
            "narrow": {name: _narrow(audit, name) for name in sorted(names & _JUDGMENTS.keys())},
        }

    found = steps("judgments", {**settings.facts, "form": 2}, work)
    rows, claims = [], []
    asked = sum(found["queries"].get(gender, 0) for gender in ("female", "male"))
    for name, claim in _JUDGMENTS.items():
        one = found["all"].get(name)
        if one is None:
            claims.append(Claim(_judged(name, claim), "not measured here", None))
            continue
        shown = None if one["difference"] is None else -one["difference"]  # positive is male
        rows.append([name, number(shown), claim if claim == "similar" else f"{claim} higher"])
        if claim == "similar":
            margin = _SIMILAR * abs(one["female"] + one["male"]) / 2
            claims.append(alike(_judged(name, claim), "it", found["narrow"][name] | {"n": asked}, margin))
        else:
            claims.append(_direction(_judged(name, claim), claim, one, asked))
    for name in ("female", "male"):
        one = found["all"].get(name)
        if one is not None:
            shown = None if one["difference"] is None else -one["difference"]
            rows.append([f"words about {name}s", number(shown), f"{name} higher"])
            says = _judged(f"the share of words about {name}s", name)
            claims.append(_direction(says, name, one, asked))
    sizes = ", ".join(f"{count:,} {gender}" for gender, count in found["queries"].items())
    return Page(
        "judgments",
        "What judged documents are like, by the gender of the query",
        "A. Bigdeli, thesis, Section 3.1, Figures 3.1–3.6",
        "LIWC scores of the judged passages of 4,215 MS MARCO queries with a gender label.",
        f"The same comparison on {settings.name}: {sizes} queries{_left_out(found)}.",
        [
            Table(
                "Difference, male minus female, in points of percent",
                ["characteristic", "here", "published"],
                rows,
                [_bars(found, sizes), _differences(found, sizes)],
            )
        ],
        claims,
        [
            "That one gender is higher counts as held only if it survives Holm's correction over all "
            "characteristics.",
            *(["The words are those of the open dictionary, not LIWC's."] if found["counted"] else []),
            *(["Genders are predicted by the classifier."] if settings.genders == "predict" else []),
        ],
        found,
    )


def _narrow(audit: JudgmentsAudit, name: str) -> dict[str, Any]:
    """Male minus female, with the intervals that likeness is judged by."""
    sides = [audit.values.filter(gender=gender)[name].to_numpy() for gender in ("male", "female")]
    wide, narrow = (stats.welch(*sides, confidence=each) for each in (0.95, 0.9))
    found = {key: getattr(wide, key) for key in ("difference", "low", "high", "p")}
    return {**found, "low 90": narrow.low, "high 90": narrow.high}


def _left_out(found: Mapping[str, Any]) -> str:
    """How many queries are not compared, and why."""
    said = [f"{count:,} {why}" for why, count in found["left out"].items()]
    return f" (left out: {'; '.join(said)})" if said else ""


def _bars(found: Mapping[str, Any], sizes: str) -> Chart:
    """Figures 3.1 to 3.6: a panel for each process, a bar for each gender."""
    rows = [
        {"x": name, "value": one[gender], "of": gender, "panel": f"{figure} {process}"}
        for process, figure in _FIGURES.items()
        for name, one in found["all"].items()
        if one["process"] == process and name != process
        for gender in ("female", "male")
        if one.get(gender) is not None
    ]
    caption = f"Mean share of words in judged documents. n = {sizes} queries."
    title = "Figures 3.1 to 3.6: judged documents by the gender of the query"
    return Chart("bars", rows, "", "% of words", caption, title)


def _differences(found: Mapping[str, Any], sizes: str) -> Chart:
    rows = [
        {"x": name, "value": -one["difference"], "low": _minus(one["high"]), "high": _minus(one["low"])}
        for name, one in found["all"].items()
        if one["difference"] is not None and name != one["process"]
    ]
    rows.sort(key=lambda row: row["value"])
    caption = f"Right of 0 more in documents of male queries. n = {sizes} queries."
    title = "Differences, male minus female"
    return Chart("dots", rows, "", "points of percent", caption, title, balance=0.0)


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _judged(name: str, claim: str) -> str:
    return f"{name} is similar" if claim == "similar" else f"{name} is higher for {claim} queries"


def _direction(says: str, claim: str, one: Mapping[str, Any], queries: int) -> Claim:
    """A claim about which queries' documents show more of a characteristic."""
    p, corrected, higher = one["p"], one["p_holm"], one["higher"]
    said = f"higher for {higher} queries" if higher else "no difference of the means"
    holds: bool | None = None
    if p is not None and corrected is not None:
        if corrected < LEVEL:
            holds = higher == claim
        else:
            said += f"; not significant after Holm (p = {corrected:.3f})"
    difference, low, high = (None if one[key] is None else -one[key] for key in ("difference", "high", "low"))
    return Claim(says, said, holds, difference, low, high, p, queries)
