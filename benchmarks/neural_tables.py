"""The tables of docs/neural-rankers.md, as Markdown."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.neural_memory import fine_tuning, memory_table
from benchmarks.neural_units import INTERACTION


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
