"""The tables of docs/mitigation/training.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.training_short import AS_USEFUL, HYBRID, UNTRAINED, as_useful, label, p_value, seeds, short

TITLES = {
    "squad/head": ("SQuAD, head", "SQuAD, a head on frozen vectors"),
    "squad/head, default": ("SQuAD, head, default", "SQuAD, the head with the package's default settings"),
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
    parts: list[str] = ["### In short", "", *short(_some(found, "rows"))]
    for name, (_, title) in TITLES.items():
        if found[name]["rows"]:
            parts += [f"### {title}", "", *_main(found[name]["rows"], found[name]["chosen"])]
            parts += _settings(found[name].get("settings", [])) + _not_run(found[name]["not run"])
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


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _bold(text: str, p: float | None) -> str:
    return f"**{text}**" if p is not None and p < 0.05 else text


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
                    label(row),
                    "" if row["method"] in UNTRAINED else str(len(row["seeds"])),
                    f"{values['RR@10']['value']:.4f}",
                    "" if plain else _bold(f"{change['difference']:+.4f}", p),
                    "" if plain else p_value(p),
                    f"{values['|ARaB@10|']['value']:.4f}",
                    "" if plain else f"{test['bias change']:+.0%}",
                    f"{values['ARaB@10']['value']:+.4f}",
                    f"{values['NFaiRR@10']['value']:.4f}",
                    "✓" if chosen.get(row["method"]) == row["strength"] and not plain else "",
                ]
            )
        )
    return [*lines, ""]


def _settings(tried: list[dict[str, Any]]) -> list[str]:
    """What was chosen for plain training, and what it was chosen from."""
    if not tried:
        return []
    means = [(sum(each["dev RR@10"]) / len(each["dev RR@10"]), each) for each in tried]
    said = "; ".join(
        f"rate {each['rate']:g}, {each['negatives']} negatives: {mean:.4f}"
        for mean, each in sorted(means, key=lambda pair: -pair[0])
    )
    return [
        "Learning rate and negatives at a time were chosen on the dev queries after plain training (RR@10, "
        f"mean over {len(tried[0]['dev RR@10'])} seeds; the first was taken): {said}.",
        "",
    ]


_EQUAL = (
    "The difference is RR@10 of a method minus RR@10 of plain training re-ranked to the same mean "
    "|ARaB@10|, seed by seed, then averaged; in the last columns, minus RR@10 of the untrained hybrid with a "
    "penalty. Penalty and interpolation reach it by their weights, `constrain` by its bound on the mean. If "
    "a comparison was run for fewer seeds, the difference is over these. p is of a paired t-test, "
    "after Holm's correction over the rows; bold: p < .05."
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
        cells = [label(row), str(len(row["seeds"])), f"{row['|ARaB@10|']:.4f}", f"{row['RR@10']:.4f}"]
        for how in ("penalty", "interpolate", "constrain (mean)", HYBRID):
            other = row.get(how)
            if other is None:
                cells += [""] * 3
                continue
            fewer = len(other["seeds"]) < len(row["seeds"])
            cells += [
                f"{other['RR@10']:.4f}" + (f" ({seeds(other)})" if fewer else ""),
                _bold(f"{other['difference']:+.4f}", other["p_holm"]),
                p_value(other["p_holm"]),
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
        lines.append(_line([label(row), *cells]))
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
                    label(row),
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
                    label(row),
                    "" if row["method"] in UNTRAINED else str(len(row["seeds"])),
                    f"{liked['value']:+.3f}",
                    f"{liked['low']:+.3f} to {liked['high']:+.3f}",
                    f"{size['value']:.3f}",
                    "" if plain else _bold(f"{size['difference']:+.3f}", size["p"]),
                    "" if plain else p_value(size["p"]),
                    f"{found['nDCG@10']:.3f}",
                ]
            )
        )
    return [*lines, ""]


def _at_equal_usefulness(rows: list[dict[str, Any]]) -> list[str]:
    """Which method leaves least preference where nDCG is kept."""
    best = as_useful(rows)
    if not best:
        return []
    sizes = [(label(row), row["genderbias-qa"]["size"]) for row in best]
    said = "; ".join(f"{label} {size['value']:.3f} ({size['difference']:+.3f})" for label, size in sizes)
    none = {row["method"] for row in rows if row["strength"]} - {row["method"] for row in best}
    lost = f" No setting of {', '.join(sorted(none))} keeps it." if none else ""
    return [
        f"At equal nDCG@10 (at most {AS_USEFUL:g} below that of plain training), the size of the preference "
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
