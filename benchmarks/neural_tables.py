"""What has been run of the neural rankers: as JSON, and as the tables of docs/neural-rankers.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from benchmarks.neural_memory import PLAIN, TUNED, by_answer, fine_tuning, memory_table
from benchmarks.neural_preferences import READINGS, SYSTEMS
from benchmarks.neural_units import INTERACTION, Unit, known, measures
from benchmarks.pages import DOCS, fill, write_evidence

Parts = list[tuple[Unit, dict[str, Any]]]
"""The units of a system that have been run, one for each seed, with what they left."""


def collected(units: list[Unit]) -> dict[str, Any]:
    """What has been run, system by system, with intervals over queries and paired tests against BM25.

    A row that stands on more seeds than are kept stays as it was, and is marked.
    """
    before = json.loads(_JSON.read_text())["results"]
    results: dict[str, Any] = {
        name: _collection([unit for unit in units if unit.collection == name], before[name])
        for name in ("squad", "wiki")
    }
    preference = {
        system: known(Unit("genderbias-qa", system)) or before["genderbias-qa"]["systems"].get(system)
        for system in SYSTEMS
    }
    results["genderbias-qa"] = {
        "systems": {system: found for system, found in preference.items() if found is not None},
        "not run": [system for system, found in preference.items() if found is None],
    }
    extras = {unit.system: known(unit) for unit in units if unit.collection == "extra"}
    results["extras"] = before["extras"] | {
        name: found for name, found in extras.items() if found is not None
    }
    return results


def _collection(units: list[Unit], before: dict[str, Any]) -> dict[str, Any]:
    """The systems of one collection, also those that were measured before, and the questions of the paper."""
    systems: dict[str, Parts] = {unit.system: [] for unit in units}
    missing = []
    for unit in units:
        content = known(unit)
        if content is not None:
            systems[unit.system].append((unit, content))
        else:
            missing.append(unit.name)
    rows, values = {}, {}
    for system, parts in systems.items():
        if parts:
            values[system] = {m: _over_seeds(parts, m) for m in measures() if m != "GSR"}
            values[system]["mean |ARaB@10|"] = _over_seeds(parts, "ARaB(magnitude='tf')@10", abs)
            rows[system] = _row_of(parts, values[system])
    for system, row in rows.items():
        for other in ("bm25", "hybrid"):
            if other in rows and other != system:
                row[f"against {other}"] = _against(values[system], values[other])
        if "bm25" in rows:
            mine, theirs = values[system]["RR@10"], values["bm25"]["RR@10"]
            row["RR@10 by answer"] = by_answer(units[0].collection, mine, theirs)
    if TUNED in rows and PLAIN in rows:
        mine, theirs = values[TUNED]["RR@10"], values[PLAIN]["RR@10"]
        rows[TUNED]["against untuned"] = {
            "all": _against(values[TUNED], values[PLAIN])["RR@10"],
            **by_answer(units[0].collection, mine, theirs),
        }
    found = {}
    for system, parts in systems.items():
        older = before["systems"].get(system)
        if older is not None and len(parts) < max(1, len(older["seeds"])):
            found[system] = {**older, "stays": True}
            there = {unit.name for unit in units if unit.system == system and unit.seed in older["seeds"]}
            missing = [name for name in missing if name not in there | {f"{units[0].collection}/{system}"}]
        elif parts:
            found[system] = rows[system]
    claims = dict(before["claims"])
    for what, claim in _claims({name: values[name] for name in rows if found[name] is rows[name]}).items():
        if claim and claim["cells"] >= (claims.get(what) or {"cells": 0})["cells"]:
            claims[what] = claim
    return {"systems": found, "not run": missing, "claims": claims}


def _row_of(parts: Parts, values: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Means over the seeds of a system, with intervals over queries."""
    from evenrank.stats import mean_interval

    contents = [content for _, content in parts]
    row: dict[str, Any] = {
        "src": sorted({content["src"] for content in contents}),
        "seeds": [unit.seed for unit, _ in parts if unit.seed is not None],
        _TRAINED: [each[_TRAINED] for each in contents if each.get(_TRAINED) is not None],
        "queries": len(values["RR@10"]),
        "re-ranked": contents[0].get("re-ranked"),
        "RR@10 by seed": [content["measures"]["RR@10"]["value"] for content in contents],
        "measures": {},
    }
    for measure, by_query in values.items():
        interval = mean_interval(list(by_query.values()), method="t")
        row["measures"][measure] = {"value": interval.value, "low": interval.low, "high": interval.high}
    gsr = [content["measures"]["GSR"] for content in contents]
    row["measures"]["GSR"] = {
        "value": float(np.mean([each["value"] for each in gsr])),
        "low": gsr[0]["low"] if len(gsr) == 1 else None,
        "high": gsr[0]["high"] if len(gsr) == 1 else None,
    }
    return row


_TRAINED = "training CPU seconds"


def _against(mine: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Each measure of one system minus that of another, on the queries that both have."""
    from evenrank.stats import paired

    found = {}
    for measure in mine:
        a, b = mine[measure], theirs[measure]
        both = sorted(a.keys() & b.keys())
        test = paired([a[query] for query in both], [b[query] for query in both])
        found[measure] = {"difference": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return found


def _over_seeds(parts: Parts, measure: str, of: Callable[[float], float] = float) -> dict[str, float]:
    """Each query's value, or what is made of it, averaged over seeds."""
    values = [content["measures"][measure]["per query"] for _, content in parts]
    return {query: float(np.mean([of(each[query]) for each in values])) for query in values[0]}


THE_PAPERS = tuple(kind for kind in INTERACTION if kind != "drmm")
"""Word-interaction models of the paper."""
AS_THE_PAPER = (
    *(f"{kind}, glove, alone" for kind in THE_PAPERS),
    "cross-encoder, alone",
    "fine-tuned bi-encoder",
)
"""Six neural rankers, as the paper has six: its four small ones, and two transformers for its two BERTs."""


def _cells() -> list[str]:
    """The 16 cells that the paper has for each system."""
    return [measure for measure in measures() if "aB(" in measure]


def _claims(found: dict[str, Any]) -> dict[str, Any]:
    """The two questions of the paper: do neural rankers lean more than BM25, do transferred vectors?"""
    from evenrank.stats import paired

    def counted(pairs: list[tuple[str, str]]) -> dict[str, Any] | None:
        if not pairs:
            return None
        above, differences = 0, []
        for mine, theirs in pairs:
            for cell in _cells():
                a, b = found[mine][cell], found[theirs][cell]
                both = a.keys() & b.keys()
                above += sum(a[q] for q in both) > sum(b[q] for q in both)
        common = set.intersection(*(set(found[name]["RR@10"]) for pair in pairs for name in pair))
        for query in sorted(common):
            gaps = [
                found[mine][cell].get(query, 0.0) - found[theirs][cell].get(query, 0.0)
                for mine, theirs in pairs
                for cell in _cells()
            ]
            differences.append(float(np.mean(gaps)))
        test = paired(differences, [0.0] * len(differences))
        return {
            "comparisons": [list(pair) for pair in pairs],
            "cells": len(pairs) * len(_cells()),
            "queries": len(differences),
            "more male": above,
            "mean difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.p,
        }

    if "bm25" not in found:
        return {}
    neural = [name for name in AS_THE_PAPER if name in found]
    transfer = [
        (f"{kind}, glove, alone", f"{kind}, random, alone")
        for kind in THE_PAPERS
        if {f"{kind}, glove, alone", f"{kind}, random, alone"} <= found.keys()
    ]
    return {
        "neural against bm25": counted([(name, "bm25") for name in neural]),
        "given vectors against random ones": counted(transfer),
    }


_JSON = DOCS / "evidence" / "neural-rankers.json"


def write_tables(units: list[Unit]) -> None:
    """The JSON, and the tables in the page, from what has been run."""
    found = collected(units)
    run = (content for unit in units if (content := known(unit)) is not None)
    write_evidence(_JSON, "python -m benchmarks.neural_evidence", found, run)
    if found["genderbias-qa"]["systems"]:
        draw(found["genderbias-qa"]["systems"])
    fill("neural-rankers.md", page(found))


def draw(systems: dict[str, Any]) -> None:
    """The preference of each ranker with its interval, as a picture."""
    import altair as alt

    rows = [
        {"ranker": name, "what is ranked": reading, **found[reading]["preference"]}
        for name, found in systems.items()
        for reading in READINGS
    ]
    searched = [row for row in rows if row["what is ranked"] == READINGS[0]]
    order = [row["ranker"] for row in sorted(searched, key=lambda row: -float(row["value"]))]
    shade = alt.Color("what is ranked:N", sort=list(READINGS), scale=alt.Scale(range=["#1b6ca8", "#b0b0b0"]))
    base = alt.Chart(pl.DataFrame(rows)).encode(
        alt.Y("ranker:N", sort=order, title=None),
        shade,
        yOffset=alt.YOffset("what is ranked:N", sort=list(READINGS)),
    )
    scale = alt.X("low:Q", title="preference, ARaB@4: below 0 female first, above 0 male first")
    bars = base.mark_rule(strokeWidth=2).encode(scale, alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=60).encode(alt.X("value:Q"))
    zero = alt.Chart(pl.DataFrame({"x": [0.0]})).mark_rule(strokeDash=[4, 4], color="#999").encode(x="x:Q")
    (zero + bars + points).properties(width=420).save(
        str(DOCS / "images" / "genderbias-preference.png"), scale_factor=2
    )


def page(found: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    parts = []
    titles = {
        "squad": "SQuAD: questions and Wikipedia sentences",
        "wiki": "wiki: what people typed into Google",
    }
    for name, title in titles.items():
        systems = found[name]["systems"]
        parts += [f"### {title}", ""]
        if systems:
            parts += _effectiveness(systems)
            if "bm25" in systems:
                parts += memory_table(systems)
            parts += _leaning(systems) + _answers(found[name]["claims"])
        parts += _not_run(found[name]["not run"])
    parts += ["### Which gender comes first: genderbias-qa", ""]
    parts += _preferences(found["genderbias-qa"]["systems"]) + _not_run(found["genderbias-qa"]["not run"])
    extras = found["extras"]
    if "drmm settings" in extras:
        parts += ["### What was chosen on dev queries", "", *_chosen(extras["drmm settings"])]
    if "interaction settings" in extras:
        parts += _chosen_rates(extras["interaction settings"])
    if speeds := _speeds(extras):
        parts += ["### How quick they are", "", *speeds]
    return "\n".join(parts) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _effectiveness(systems: dict[str, Any]) -> list[str]:
    lines = [
        _row(
            [
                "ranker",
                "queries",
                "seeds",
                "RR@10",
                "95 %",
                "against BM25",
                "p",
                "against hybrid",
                "p",
                "nDCG@10",
                "R@100",
                "training",
            ]
        ),
        "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for system, row in systems.items():
        rr = row["measures"]["RR@10"]
        cells = [
            system + ("†" if row.get("stays") else ""),
            f"{row['queries']:,}",
            str(len(row["seeds"]) or "–"),
            f"{rr['value']:.3f}",
            f"{rr['low']:.3f} to {rr['high']:.3f}",
        ]
        for other in ("bm25", "hybrid"):
            test = row.get(f"against {other}", {}).get("RR@10")
            cells.append("" if test is None else f"{test['difference']:+.3f}")
            cells.append("" if test is None else _p(test["p"]))
        seconds = row["training CPU seconds"]
        cells += [f"{row['measures'][m]['value']:.3f}" for m in ("nDCG@10", "R@100")]
        cells.append(f"{np.mean(seconds) / 60:.1f} min" if seconds else "")
        lines.append(_row(cells))
    said = (
        "Effectiveness on test queries; differences over the queries that both have; training in CPU minutes."
    )
    if any(row.get("stays") for row in systems.values()):
        said += (
            " † measured with an earlier version of the code, of which the values of single queries are gone."
        )
    return [said, "", *lines, "", *fine_tuning(systems)]


def _leaning(systems: dict[str, Any]) -> list[str]:
    shown = ["ARaB(magnitude='tf')@10", "ARaB(magnitude='boolean')@10", "RaB(magnitude='tf')@10"]
    names = [
        "ranker",
        "ARaB@10 tf",
        "95 %",
        "ARaB@10 boolean",
        "RaB@10 tf",
        "mean \\|ARaB@10\\|",
        "NFaiRR@10",
        "GSR",
    ]
    lines = [_row(names), "|---|--:|---|--:|--:|--:|--:|--:|"]
    for system, row in systems.items():
        values = row["measures"]
        first = values[shown[0]]
        mark = _mark(row.get("against bm25", {}).get(shown[0]))
        cells = [system, f"{first['value']:+.3f}{mark}", f"{first['low']:+.3f} to {first['high']:+.3f}"]
        for measure in shown[1:]:
            mark = _mark(row.get("against bm25", {}).get(measure))
            cells.append(f"{values[measure]['value']:+.3f}{mark}")
        cells += [f"{values[m]['value']:.3f}" for m in ("mean |ARaB@10|", "NFaiRR@10", "GSR")]
        lines.append(_row(cells))
    note = (
        "How the lists lean: above 0 toward male words. * marks a difference from BM25 with p < .01 (paired "
        "t-test, not corrected for the number of tests)."
    )
    return [note, "", *lines, ""]


def _answers(claims: dict[str, Any]) -> list[str]:
    """The two questions: how many cells are more male, and one test over all of them."""
    lines = []
    words = {
        "neural against bm25": ("Do neural rankers lean more toward male words than BM25?", 96, "92"),
        "given vectors against random ones": (
            "Do given word vectors make them lean more than random ones?",
            64,
            "53",
        ),
    }
    for key, (question, cells, published) in words.items():
        claim = claims.get(key)
        if claim is None:
            continue
        clear = claim["p"] is not None and claim["p"] < 0.05
        answer = "Cannot tell" if not clear else "Yes" if claim["mean difference"] > 0 else "No, less"
        part = "" if claim["cells"] == cells else f" (not all {cells}: some rankers have not been run)"
        names = "; ".join(mine.replace(", glove, alone", "") for mine, _ in claim["comparisons"])
        lines.append(
            f"- {question} **{answer}.** More male in {claim['more male']} of {claim['cells']} cells{part}, "
            f"those of {names} together. Mean difference over all cells {claim['mean difference']:+.4f} "
            f"({claim['low']:+.4f} to {claim['high']:+.4f}), p {_p(claim['p'])}, "
            f"{claim['queries']:,} queries. The paper, on MS MARCO: {published} of {cells} cells."
        )
    return [*lines, ""] if lines else []


def _preferences(systems: dict[str, Any]) -> list[str]:
    if not systems:
        return []
    lines = [
        _row(
            [
                "ranker",
                "**preference**",
                "95 %",
                "raw ARaB@4",
                "swapped",
                "content",
                "own passages: preference",
                "95 %",
                "raw",
            ]
        ),
        "|---|--:|---|--:|--:|--:|--:|---|--:|",
    ]
    for system, readings in systems.items():
        cells = [system]
        found = readings["search"]
        cells += [f"**{found['preference']['value']:+.3f}**", _range(found["preference"])]
        cells += [f"{found[key]['value']:+.2f}" for key in ("raw", "raw, swapped", "content")]
        found = readings["own passages"]
        cells += [f"{found['preference']['value']:+.2f}", _range(found["preference"])]
        cells.append(f"{found['raw']['value']:+.2f}")
        lines.append(_row(cells))
    count = next(iter(systems.values()))["search"]["queries"]
    note = f"{count} questions. Above 0: male first."
    picture = "![Which gender each ranker puts first](images/genderbias-preference.png)"
    return [note, "", *lines, "", picture, ""]


def _range(interval: dict[str, float]) -> str:
    return f"{interval['low']:+.2f} to {interval['high']:+.2f}"


def _chosen(found: dict[str, Any]) -> list[str]:
    """DRMM's settings and what the dev queries said."""
    lines = [
        _row(["rate", "epochs at most", "patience", "with first stage", "alone", "mean"]),
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for each in found["tried"]:
        dev = each["dev RR@10"]
        lines.append(
            _row(
                [f"{each['rate']:g}", str(each["epochs"]), str(each["patience"])]
                + [f"{value:.4f}" for value in (dev["with"], dev["alone"], each["mean"])]
            )
        )
    best = found["chosen"]
    said = (
        f"RR@10 on the dev queries of SQuAD for settings of DRMM (GloVe, seed 0). The best mean has rate "
        f"{best['rate']:g}, {best['epochs']} epochs, patience {best['patience']}."
    )
    return [said, "", *lines, ""]


def _chosen_rates(found: dict[str, Any]) -> list[str]:
    """Learning rates of the other models, and what the dev queries said."""
    lines = [
        _row(["ranker", "rate", "rate of word vectors", "glove", "random", "mean", ""]),
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for kind, of in found.items():
        for each in of["tried"] if kind in INTERACTION else ():
            rates = {key: each[key] for key in of["chosen"]}
            cells = [kind, *(f"{rate:g}" for rate in rates.values())]
            cells += [f"{each['dev RR@10'][vectors]:.4f}" for vectors in ("glove", "random")]
            lines.append(_row([*cells, f"{each['mean']:.4f}", "chosen" if rates == of["chosen"] else ""]))
    said = "The same for the learning rates of the other word-interaction models, each alone, with seed 0:"
    return [said, "", *lines, ""]


def _speeds(extras: dict[str, Any]) -> list[str]:
    lines = []
    if "encoding speed" in extras:
        found = extras["encoding speed"]
        plain = found["per CPU-second"]["torch, as they come"]
        lines += [
            f"MiniLM on {found['passages']} passages of wiki, one thread, on a busy machine:",
            "",
            _row(["how", "passages a CPU-second", "times", "mean cosine with torch"]),
            "|---|--:|--:|--:|",
        ]
        for name, speed in found["per CPU-second"].items():
            cosine = found["mean cosine with torch"].get(name.partition(",")[0])
            shown = "" if cosine is None or name.endswith("come") else f"{cosine:.4f}"
            lines.append(_row([name, f"{speed:.1f}", f"{speed / plain:.1f}", shown]))
        lines.append("")
    if "pair speed" in extras:
        found = extras["pair speed"]
        lines += [
            f"The cross-encoder on {found['pairs']:,} pairs of {found['queries']} queries of SQuAD:",
            "",
            _row(["how", "pairs a CPU-second", "Kendall's τ with torch", "same order throughout"]),
            "|---|--:|--:|---|",
        ]
        for name, speed in found["per CPU-second"].items():
            other = found["against torch"].get(name)
            cells = (
                ["", ""] if other is None else [f"{other['tau']:.3f}", "yes" if other["same order"] else "no"]
            )
            lines.append(_row([name, f"{speed:.1f}", *cells]))
        lines.append("")
    return lines


def _not_run(missing: list[str]) -> list[str]:
    """What there is no value of yet, the seeds of a system together."""
    if not missing:
        return []
    seeds: dict[str, list[str]] = {}
    for name in missing:
        _, _, rest = name.partition("/") if "/" in name else ("", "", name)
        system, _, seed = rest.partition("/")
        seeds.setdefault(system, []).append(seed)
    said = [system + ("" if each == [""] else f" (seed {', '.join(each)})") for system, each in seeds.items()]
    return [f"Not run yet: {'; '.join(said)}.", ""]


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def _mark(test: dict[str, Any] | None) -> str:
    return "*" if test is not None and test["p"] is not None and test["p"] < 0.01 else ""
