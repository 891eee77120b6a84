"""The tables of docs/mitigation/training.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.training_data import LAMBDAS
from benchmarks.training_equal import HYBRID
from benchmarks.training_evidence import UNTRAINED

TITLES = {
    "squad/head": ("SQuAD, head", "SQuAD, a head on frozen vectors"),
    "squad/knrm": ("SQuAD, KNRM", "SQuAD, KNRM"),
    "squad/cross-encoder": ("SQuAD, cross-encoder", "SQuAD, a cross-encoder by its own scores"),
    "squad/cross-encoder, with": ("SQuAD, cross-encoder with BM25", "SQuAD, the cross-encoder with BM25"),
    "wiki/head": ("wiki, head", "wiki, a head on frozen vectors"),
    "wiki/knrm": ("wiki, KNRM", "wiki, KNRM"),
    "wiki/cross-encoder": ("wiki, cross-encoder", "wiki, a cross-encoder by its own scores"),
    "wiki/cross-encoder, with": ("wiki, cross-encoder with BM25", "wiki, the cross-encoder with BM25"),
}
"""Each ranker on each collection: in a sentence, and as a heading."""


def page(found: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    parts: list[str] = ["### In short", "", *_short(found)]
    for name, (_, title) in TITLES.items():
        if found[name]["rows"]:
            parts += [f"### {title}", "", *_main(found[name]["rows"], found[name]["chosen"])]
            parts += _not_run(found[name]["not run"])
    if whole := [said for name, (said, _) in TITLES.items() if not found[name]["rows"]]:
        parts += [f"Not run yet: {'; '.join(whole)}.", ""]
    parts += ["### At equal bias", "", _EQUAL, ""]
    for said, ranker in _some(found, "equal bias"):
        parts += [f"{said}:", "", *_equal_table(ranker["equal bias"])]
    parts += ["### What the mean hides", "", _HIDDEN, ""]
    for said, ranker in _some(found, "rows"):
        parts += [f"{said}:", "", *_hidden(ranker["rows"], ranker["chosen"])]
    parts += ["### What the vectors still tell", "", _PROBES, ""]
    for said, ranker in _some(found, "rows"):
        if probed := [row for row in ranker["rows"] if "probe" in row]:
            parts += [f"{said}:", "", *_probes(probed)]
    parts += ["### Which gender comes first: genderbias-qa", "", _PREFERENCE, ""]
    for said, ranker in _some(found, "rows"):
        if shown := [row for row in ranker["rows"] if "genderbias-qa" in row]:
            some = shown[0]["genderbias-qa"]["queries"]
            parts += [f"{said}, {some} questions:", "", *_genderbias(shown)]
            parts += _at_equal_usefulness(shown)
    return "\n".join(parts) + "\n"


def _some(found: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    """The rankers that have this."""
    return [(said, found[name]) for name, (said, _) in TITLES.items() if found[name].get(key)]


def _short(found: dict[str, Any]) -> list[str]:
    """What the tables come to, in sentences that are made of their numbers."""
    lines = []
    for name, (said, _) in TITLES.items():
        row = _find(found[name]["rows"], "negatives", 0.6)
        if row is None:
            continue
        test = row["test"]
        rr = test["against plain"]["RR@10"]
        p = rr.get("p_holm", rr["p"])
        verdict = "significant" if p is not None and p < 0.05 else "not significant"
        lines.append(
            f"- **Negatives, λ = 0.6** ({said}, {_seeds(row)}): mean |ARaB@10| {test['bias change']:+.0%}, "
            f"RR@10 {rr['difference']:+.4f}, which is {verdict} (p = {_p(p)} after Holm's correction)."
        )
    for name, (said, _) in TITLES.items():
        rows = [row for row in found[name]["rows"] if row["method"] == "negatives"]
        safe = _safe(sorted(rows, key=lambda row: row["strength"]))
        if safe is not None and len(rows) > 1:
            chosen = found[name]["chosen"].get("negatives")
            tried = [f"{row['strength']:g}" for row in rows if row["strength"]]
            few = "" if len(tried) == len(LAMBDAS) - 1 else f" Tried so far: {', '.join(tried)}."
            none = "none above 0 is" if not few else "none that was tried is"
            kept = f"no loss of RR@10 is significant up to λ = {safe:g}" if safe else none
            lines.append(
                f"- **Which λ is safe** ({said}): on the test queries {kept}.{few} The dev queries allow "
                f"{'none' if chosen is None else f'λ = {chosen:g}'}"
                f"{': there are too few to see the loss.' if chosen is not None and chosen > safe else '.'}"
            )
    others = (
        ("penalty", "a penalty on scores"),
        ("constrain (mean)", "constrained re-ranking"),
        (HYBRID, "the untrained hybrid with a penalty"),
    )
    for how, name in others:
        for said, ranker in _some(found, "equal bias"):
            rows = [row[how] for row in ranker["equal bias"] if how in row]
            if rows:
                sure = [row for row in rows if row["p"] is not None and row["p"] < 0.05]
                more, less = (sum(sign * row["difference"] > 0 for row in sure) for sign in (1, -1))
                rest = len(rows) - len(sure)
                alike = f"; the other {rest} cannot be told apart" if rest else ""
                lines.append(
                    f"- **At equal bias, against {name}** ({said}): significantly more RR@10 (p < .05, not "
                    f"corrected) is kept by {more} of {len(rows)} settings, significantly less by "
                    f"{less}{alike}."
                )
    for said, ranker in _some(found, "rows"):
        lines += _short_hidden(said, ranker) + _short_probe(said, ranker["rows"])
        lines += _short_preference(said, ranker["rows"])
    return [*lines, ""] if lines else []


def _short_preference(said: str, rows: list[dict[str, Any]]) -> list[str]:
    moved = [row for row in rows if "genderbias-qa" in row and row["strength"]]
    better = [
        row
        for row in moved
        if row["genderbias-qa"]["size"]["p"] is not None
        and row["genderbias-qa"]["size"]["p"] < 0.05
        and row["genderbias-qa"]["size"]["difference"] < 0
    ]
    if not moved:
        return []
    named = "; ".join(_label(row) for row in better) or "none"
    return [
        f"- **genderbias-qa** ({said}): settings whose preference for a gender is significantly smaller than "
        f"that of plain training (p < .05, not corrected): {named}."
    ]


def _safe(rows: list[dict[str, Any]]) -> float | None:
    """The largest strength up to which no loss on the test queries is significant."""
    safe = None
    for row in rows:
        test = row["test"]["against plain"]["RR@10"]
        p = test.get("p_holm")
        if p is not None and p < 0.05 and test["difference"] < 0:
            break
        safe = row["strength"]
    return safe


def _short_hidden(said_of: str, head: dict[str, Any]) -> list[str]:
    shown = [row for row in _shown(head["rows"], head["chosen"]) if "document: gendered" in row["by gender"]]
    if not shown:
        return []
    part = "document: gendered"
    plain = _find(shown, "negatives", 0.0)
    if plain is None:
        return []
    said = ", ".join(
        f"{_label(row)} {row['by gender'][part]['RR@10']:.3f}"
        for row in shown
        if row is not plain and row["method"] in ("negatives", "penalty", "constrain (mean)")
    )
    some = plain["by gender"][part]["n"]
    return [
        f"- **What the mean hides** ({said_of}): for the {some:,} queries whose relevant document "
        f"is gendered, RR@10 is {plain['by gender'][part]['RR@10']:.3f} with plain training; {said}."
    ]


def _short_probe(said: str, rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for method, reads in (("adversary", "gendered or not"), ("adversary by group", "which group")):
        probed = [row for row in rows if row["method"] == method and "probe" in row]
        if len(probed) < 2:
            continue
        values = ", ".join(
            f"μ = {row['strength']:g}: {row['probe']['auc']:.3f} ({_seeds(row)}; bias "
            f"{row['test']['bias change']:+.1%})"
            for row in probed
        )
        lines.append(f"- **Adversary** that predicts {reads} ({said}), AUC of a fresh probe: {values}.")
    return lines


def _find(rows: list[dict[str, Any]], method: str, strength: float) -> dict[str, Any] | None:
    return next((row for row in rows if row["method"] == method and row["strength"] == strength), None)


def _seeds(row: dict[str, Any]) -> str:
    count = len(row["seeds"])
    return f"{count} {'seed' if count == 1 else 'seeds'}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def _bold(text: str, p: float | None) -> str:
    return f"**{text}**" if p is not None and p < 0.05 else text


def _label(row: dict[str, Any]) -> str:
    signs = {"negatives": "λ", "penalty": "w", "interpolate": "λ", "consistency": "γ", "dial": "s"}
    if row["method"] in ("augment", *UNTRAINED):
        return str(row["method"])
    if row["method"].startswith("adversary"):
        return f"{row['method']}, μ = {row['strength']:g}"
    if row["method"] == "constrain (mean)":
        return f"constrain (mean), {row['strength']:.0%} of the bias"
    if row["method"] == "constrain (each)":
        return f"constrain (each), ≤ {row['strength']:g}"
    return f"{row['method']}, {signs.get(row['method'], 'β')} = {row['strength']:g}"


def _main(rows: list[dict[str, Any]], chosen: dict[str, float | None]) -> list[str]:
    first = rows[0]["test"]
    lines = [
        f"{first['queries']:,} test queries, {rows[0]['dev']['queries']:,} dev queries. RR@10 against plain "
        "training (λ = 0) with the same seeds (what is not trained: with all seeds), paired t-test, p after "
        "Holm's correction over the strengths of a method; bold: p < .05. ✓ is the strongest setting up to "
        "which no loss on the *dev* queries is significant.",
        "",
        _line(
            [
                "method",
                "seeds",
                "RR@10",
                "change",
                "p (Holm)",
                "mean \\|ARaB@10\\|",
                "change",
                "ARaB@10",
                "NFaiRR@10",
                "dev",
            ]
        ),
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|:-:|",
    ]
    for row in rows:
        test = row["test"]
        values, change = test["measures"], test["against plain"]["RR@10"]
        plain = row["method"] == "negatives" and not row["strength"]
        p = change.get("p_holm", change["p"])
        lines.append(
            _line(
                [
                    _label(row),
                    "" if row["method"] in UNTRAINED else str(len(row["seeds"])),
                    f"{values['RR@10']['value']:.4f}",
                    "" if plain else _bold(f"{change['difference']:+.4f}", p),
                    "" if plain else _p(p),
                    f"{values['|ARaB@10|']['value']:.4f}",
                    "" if plain else f"{test['bias change']:+.0%}",
                    f"{values['ARaB@10']['value']:+.4f}",
                    f"{values['NFaiRR@10']['value']:.4f}",
                    "✓" if chosen.get(row["method"]) == row["strength"] and not plain else "",
                ]
            )
        )
    return [*lines, ""]


_EQUAL = (
    "The difference is RR@10 of a method minus RR@10 of plain training re-ranked to the same mean "
    "|ARaB@10|, seed by seed, then averaged; in the last columns, minus RR@10 of the untrained hybrid with a "
    "penalty. Penalty and interpolation reach it by their weights, `constrain` by its bound on the mean. If "
    "a comparison was run for fewer seeds, the difference is over these. Bold: p < .05, paired t-test, not "
    "corrected for the number of rows."
)


def _equal_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        _line(
            [
                "method",
                "seeds",
                "mean \\|ARaB@10\\|",
                "RR@10",
                "penalty",
                "difference",
                "p",
                "interpolation",
                "difference",
                "p",
                "constrain",
                "difference",
                "p",
                "untrained hybrid, penalty",
                "difference",
                "p",
            ]
        ),
        "|---|" + "--:|" * 15,
    ]
    for row in rows:
        cells = [_label(row), str(len(row["seeds"])), f"{row['|ARaB@10|']:.4f}", f"{row['RR@10']:.4f}"]
        for how in ("penalty", "interpolate", "constrain (mean)", HYBRID):
            other = row.get(how)
            if other is None:
                cells += [""] * 3
                continue
            fewer = len(other["seeds"]) < len(row["seeds"])
            cells += [
                f"{other['RR@10']:.4f}" + (f" ({_seeds(other)})" if fewer else ""),
                _bold(f"{other['difference']:+.4f}", other["p"]),
                _p(other["p"]),
            ]
        lines.append(_line(cells))
    return [*lines, ""]


def _shown(rows: list[dict[str, Any]], chosen: dict[str, float | None]) -> list[dict[str, Any]]:
    """What is not trained, plain training, the λ of the thesis and 1, and of other methods the setting chosen
    on dev queries.
    """
    return [
        row
        for row in rows
        if row["method"] in UNTRAINED
        or (row["method"] == "negatives" and row["strength"] in (0.0, 0.6, 1.0))
        or (row["method"] != "negatives" and row["strength"] and chosen.get(row["method"]) == row["strength"])
    ]


_HIDDEN = (
    "RR@10 of queries whose relevant document is about a gender, and of queries that are about one "
    "themselves (more words of one gender than of the other). The number of queries is in brackets. Bold: "
    "differs from plain training, p < .05 (paired t-test, not corrected). Settings were chosen on the dev "
    "queries."
)


def _hidden(rows: list[dict[str, Any]], chosen: dict[str, float | None]) -> list[str]:
    shown = _shown(rows, chosen)
    parts = [
        "document: gendered", "document: female", "document: male", "document: none",
        "query: female", "query: male", "query: none",
    ]  # fmt: skip
    known = shown[0]["by gender"]
    parts = [part for part in parts if part in known]
    lines = [
        _line(["method", *(f"{part} ({known[part]['n']:,})" for part in parts)]),
        "|---|" + "--:|" * len(parts),
    ]
    for row in shown:
        cells = [
            _bold(f"{row['by gender'][part]['RR@10']:.3f}", row["by gender"][part]["p"]) for part in parts
        ]
        lines.append(_line([_label(row), *cells]))
    return [*lines, ""]


_PROBES = (
    "AUC of a fresh probe on the finished vectors, averaged over seeds; the range covers the seeds' 95 % "
    "intervals."
)


def _probes(probed: list[dict[str, Any]]) -> list[str]:
    lines = [
        _line(["training", "seeds", "AUC", "range", "mean \\|ARaB@10\\|", "change"]),
        "|---|--:|--:|---|--:|--:|",
    ]
    for row in probed:
        each = row["probe"]["each"]
        low, high = min(one["low"] for one in each), max(one["high"] for one in each)
        test = row["test"]
        lines.append(
            _line(
                [
                    _label(row),
                    str(len(each)),
                    f"{row['probe']['auc']:.3f}",
                    f"{low:.3f} to {high:.3f}",
                    f"{test['measures']['|ARaB@10|']['value']:.4f}",
                    f"{test['bias change']:+.1%}",
                ]
            )
        )
    return [*lines, ""]


_PREFERENCE = (
    "Preference: half the sum of ARaB@4 on the four passages of a question and on their mirror images; above "
    "0 male first. Its size is averaged over questions; p against plain training (paired t-test on the "
    "sizes, not corrected; bold: p < .05). nDCG@10 is that of re-ranking BM25's first 50 of all passages (20 "
    "for cross-encoders). "
    "`constrain` bounds ARaB@4 of the four passages, and ARaB@10 where nDCG@10 is measured."
)


def _genderbias(shown: list[dict[str, Any]]) -> list[str]:
    lines = [
        _line(["method", "seeds", "preference", "95 %", "its size", "change", "p", "nDCG@10"]),
        "|---|--:|--:|---|--:|--:|--:|--:|",
    ]
    for row in shown:
        found = row["genderbias-qa"]
        liked, size = found["preference"], found["size"]
        plain = row["method"] == "negatives" and not row["strength"]
        lines.append(
            _line(
                [
                    _label(row),
                    "" if row["method"] in UNTRAINED else str(len(row["seeds"])),
                    f"{liked['value']:+.3f}",
                    f"{liked['low']:+.3f} to {liked['high']:+.3f}",
                    f"{size['value']:.3f}",
                    "" if plain else _bold(f"{size['difference']:+.3f}", size["p"]),
                    "" if plain else _p(size["p"]),
                    f"{found['nDCG@10']:.3f}",
                ]
            )
        )
    return [*lines, ""]


_AS_USEFUL = 0.01
"""How much less nDCG@10 counts as equal."""


def as_useful(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each method the setting with the smallest preference among those that keep nDCG@10; None: none."""
    plain = _find(rows, "negatives", 0.0)
    if plain is None:
        return []
    least = plain["genderbias-qa"]["nDCG@10"] - _AS_USEFUL
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method and row["strength"]]
        kept = [row for row in mine if row["genderbias-qa"]["nDCG@10"] >= least]
        if kept:
            found.append(min(kept, key=lambda row: float(row["genderbias-qa"]["size"]["value"])))
    return sorted(found, key=lambda row: float(row["genderbias-qa"]["size"]["value"]))


def _at_equal_usefulness(rows: list[dict[str, Any]]) -> list[str]:
    """Which method leaves least preference where nDCG is kept."""
    best = as_useful(rows)
    if not best:
        return []
    sizes = [(_label(row), row["genderbias-qa"]["size"]) for row in best]
    said = "; ".join(f"{label} {size['value']:.3f} ({size['difference']:+.3f})" for label, size in sizes)
    none = {row["method"] for row in rows if row["strength"]} - {row["method"] for row in best}
    lost = f" No setting of {', '.join(sorted(none))} keeps it." if none else ""
    return [
        f"At equal nDCG@10 (at most {_AS_USEFUL:g} below that of plain training), the size of the preference "
        "with the best setting of each method, and its change from plain training with the same seeds: "
        f"{said}.{lost} These settings were picked on the same questions, so the values are optimistic.",
        "",
    ]


def _not_run(missing: list[str]) -> list[str]:
    if not missing:
        return []
    whole: dict[str, list[str]] = {}
    for each in missing:
        *_, method, strength, seed = each.split("/")
        whole.setdefault(f"{method} {strength}", []).append(seed)
    said = "; ".join(f"{what} (seed {', '.join(seeds)})" for what, seeds in whole.items())
    return [f"Not run yet: {said}.", ""]
