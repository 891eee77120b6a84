"""Do neutral queries find what their male or female forms find? (Kopeinik et al. 2023; Ratz et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from evenrank.auditing.black_box import VariantAudit, VariantLean, compare_variants, corrected
from evenrank.data import files
from evenrank.data.model_files import HEADER, is_model
from evenrank.mitigate.counterfactuals import chosen_rankers
from evenrank.queries.rewriting import triples as read_triples
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Table, bounded
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import DASH, counted, number, p_value

_PUBLISHED = {  # mean over eight triples at 10, male minus female, then toward the stereotype
    "Google": {"VarRaB": (-0.0875, 0.4375), "VarARaB": (-0.1513, 0.5686), "VarNDRaB": (-0.1242, 0.5030)},
    "DuckDuckGo": {"VarRaB": (0.0625, 0.1625), "VarARaB": (0.0816, 0.2717), "VarNDRaB": (0.0734, 0.2175)},
}

_ENGINES = "engines"
_TOWARD = {"male": "men", "stereotype": "the stereotype"}


def variants_recipe(settings: Settings, steps: Steps) -> Page:
    """Lists of rankers and of engines, for queries without a gender and with either."""
    triples, results = settings.option("triples"), settings.option("results")
    facts = dict(settings.facts) if settings.data is not None or not results else {}
    facts |= {"at": settings.option("at"), "rankers": settings.option("rankers")}
    vectors = settings.option("vectors")
    named = (("triples", triples), ("results", results), ("vectors", vectors))
    facts |= {name: files.fingerprint(path) for name, path in named if path}
    chance: dict[str, Any] = {
        "at": settings.option("at"),
        "resamples": settings.resamples,
        "seed": settings.seed,
    }
    found: dict[str, Any] = {}
    if results:
        found[_ENGINES] = steps("variants engines", facts, lambda: _told(compare_variants(results, **chance)))
    if settings.data is not None or not results:
        rankers = chosen_rankers(settings.some("rankers"), {"vectors": vectors} if vectors else {})
        models = [name for name, _ in rankers.values() if is_model(name)]
        if models:
            facts["models"] = [files.fingerprint(Path(name) / HEADER) for name in models]
        for label, ranker in rankers.items():
            work = partial(_ranked, settings, steps, triples, label, ranker, chance)
            found[label] = steps(f"variants {label}", facts, work)
    return _page(settings, found)


def _ranked(
    settings: Settings,
    steps: Steps,
    triples: str,
    label: str,
    ranker: tuple[str, Mapping[str, Any]],
    chance: Mapping[str, Any],
) -> dict[str, Any]:
    from evenrank.rankers.index.building import own_index

    data = settings.dataset()
    index = own_index(data.docs, steps.say)
    name, own = ranker
    asked: dict[str, Any] = {"queries": data.queries}
    if triples:
        given = read_triples(triples)
        if settings.queries:
            given = given.sample(min(settings.queries, len(given)), seed=settings.seed)
        asked = {"triples": given}
    told = _told(compare_variants(index, ranker=name, **asked, **chance, **own))
    return told | {"rows": [row | {"engine": label} for row in told["rows"]]}


def _told(made: VariantAudit) -> dict[str, Any]:
    rows = [{**asdict(row), "verdict": row.verdict} for row in made.rows]
    return {"rows": rows, "left out": {name: dict(each) for name, each in made.left_out.items()}}


def _page(settings: Settings, found: Mapping[str, Any]) -> Page:
    found = _corrected(found)
    rows = [row for each in found.values() for row in each["rows"]]
    overall = [row for row in rows if row["topic"] is None]
    shown = []
    for row in overall:
        name = row["measure"].partition("@")[0]
        told = _PUBLISHED.get(row["engine"], {}).get(name)
        value = None if told is None else told[row["toward"] == "stereotype"]
        bounds = DASH if row["low"] is None else f"[{number(row['low'])}, {number(row['high'])}]"
        shown.append(
            [
                f"{row['engine']}, {row['measure']}",
                row["toward"],
                number(row["value"]),
                bounds,
                p_value(row["p_holm"]),
                str(row["triples"]),
                number(value),
            ]
        )
    headings = ["engine, measure", "toward", "here", "95% interval", "p (Holm)", "triples", "authors' code"]
    tables = [Table("All triples", headings, shown, _overall(overall))]
    topics = [row for row in rows if row["topic"] is not None and row["measure"].startswith("VarARaB")]
    if topics:
        cells = [
            [
                f"{row['engine']}, topic {row['topic']}",
                row["toward"],
                number(row["value"]),
                f"[{number(row['low'])}, {number(row['high'])}]" if row["low"] is not None else DASH,
                p_value(row["p_holm"]),
                str(row["triples"]),
                row["verdict"],
            ]
            for row in topics
        ]
        heads = ["engine, topic", "toward", "VarARaB", "95% interval", "p (Holm)", "triples", "verdict"]
        tables.append(Table("Topic by topic", heads, cells, _topics(topics)))
    claims = [_claim(row) for row in overall if row["toward"] == "stereotype" and "VarARaB" in row["measure"]]
    if not claims:
        says = "results of neutral queries resemble those for the gender of the stereotype"
        claims = [Claim(says, "no stereotypes are given with these queries", None)]
    where = [settings.name] if settings.data is not None or _ENGINES not in found else []
    where += ["results that were collected from engines"] if _ENGINES in found else []
    return Page(
        "variants",
        "Do neutral queries find what their male or female forms find?",
        "S. Kopeinik et al., CHI 2023; L. Ratz et al., ECIR 2024",
        "Bias-sensitive queries of eight topics, each without a gender, for women and for men; the first ten "
        "results of Google and DuckDuckGo for eight of them.",
        f"The same measures on {' and on '.join(where)}.{_rewritten(settings, found)}",
        tables,
        claims,
        [
            "Whether what two lists have in common is about men or women is not looked at.",
            "Triples of one topic resemble one another: intervals over all of them are too narrow."
            + (" The rows by topic are the safer ones." if topics else ""),
            "p is corrected (Holm) over all rankers that were asked here, or over all engines; for each "
            "measure and question, and for topics, on its own.",
            "Rankers that match words answer the words of a query: those of its gendered form are further "
            "words, no further meaning.",
        ],
        dict(found),
    )


def _rewritten(settings: Settings, found: Mapping[str, Any]) -> str:
    """Of how many queries triples were made, where none were given."""
    rows = [row for name, each in found.items() if name != _ENGINES for row in each["rows"]]
    if settings.option("triples") or not rows:
        return ""
    made = max(row["triples"] for row in rows)
    asked = counted(len(settings.dataset().queries), "query", "queries")
    return f" Triples were made of its {asked}: {made:,} could be written for women and for men, and ranked."


def _corrected(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same with p corrected over all rankers that were asked here, and over engines on their own."""
    names = [each.name for each in fields(VariantLean)]
    made = {name: {**each, "rows": []} for name, each in found.items()}
    for name in made.keys() - {_ENGINES}:  # a model goes by its name here, not by its folder
        made[name]["left out"] = dict(zip([name], made[name]["left out"].values(), strict=False))
    for of_engines, whole in product((True, False), (True, False)):
        family = [
            (name, VariantLean(**{key: row[key] for key in names}))
            for name, each in found.items()
            for row in each["rows"]
            if (name == _ENGINES) == of_engines and (row["topic"] is None) == whole
        ]
        for (name, _), row in zip(family, corrected([row for _, row in family]), strict=True):
            made[name]["rows"].append({**asdict(row), "verdict": row.verdict})
    return made


def _overall(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """VarARaB of each engine, toward men and toward the stereotype."""
    dots = [
        {"x": row["engine"], **bounded(row), "panel": f"toward {_TOWARD[row['toward']]}"}
        for row in sorted(rows, key=lambda row: row["toward"])
        if row["measure"].startswith("VarARaB")
    ]
    caption = (
        "Right of 0 neutral queries are answered as those for men, or as the stereotype expects; left of it "
        f"the other way. {_asked(rows)}"
    )
    return [Chart("dots", dots, "", "VarARaB", caption, "What neutral queries find", balance=0.0)]


_PANELS = 9


def _topics(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """VarARaB of each topic, a panel for each engine, but not for more than a page holds."""
    male = [row for row in rows if row["toward"] == "male"]
    furthest: dict[str, float] = {}
    for row in male:
        furthest[row["engine"]] = max(furthest.get(row["engine"], 0.0), abs(row["value"] or 0.0))
    shown = sorted(furthest, key=lambda engine: -furthest[engine])[:_PANELS]
    dots = [
        {"x": f"topic {row['topic']}", **bounded(row), "panel": row["engine"]}
        for row in male
        if row["engine"] in shown
    ]
    caption = (
        f"Right of 0 neutral queries are answered as those for men, left as those for women. {_asked(rows)}"
    )
    if len(furthest) > len(shown):
        caption += (
            f" Of {len(furthest)} engines and rankers, the {len(shown)} with a topic furthest from 0; all "
            "are in the table."
        )
    return [Chart("dots", dots, "", "VarARaB", caption, balance=0.0)]


def _asked(rows: Sequence[Mapping[str, Any]]) -> str:
    return asked((row["triples"] for row in rows), "triple", "triples") + "."


def _claim(row: Mapping[str, Any]) -> Claim:
    holds = None if row["p_holm"] is None or row["p_holm"] >= LEVEL else row["value"] > 0
    says = f"results of neutral queries resemble those for the gender of the stereotype ({row['engine']})"
    found = f"{row['measure']} toward the stereotype"
    return Claim(says, found, holds, row["value"], row["low"], row["high"], row["p_holm"], row["triples"])
