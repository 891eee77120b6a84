"""The tables of docs/mitigation/training.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def page(found: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    titles = {
        "squad/head": "SQuAD, a head on frozen vectors",
        "squad/knrm": "SQuAD, KNRM",
        "wiki/knrm": "wiki, KNRM",
    }
    parts: list[str] = ["### In short", "", *_short(found)]
    for name, title in titles.items():
        rows = found[name]["rows"]
        if rows:
            parts += [f"### {title}", "", *_main(rows, found[name]["chosen"])]
        parts += _not_run(name, found[name]["not run"])
    head = found["squad/head"]
    if head["rows"]:
        parts += ["### At equal bias", "", *_equal_table(head.get("equal bias", []))]
        parts += ["### What the mean hides", "", *_hidden(head["rows"], head["chosen"])]
        parts += ["### What the vectors still tell", "", *_probes(head["rows"])]
        parts += ["### Which gender comes first: genderbias-qa", "", *_genderbias(head["rows"])]
    return "\n".join(parts) + "\n"


def _short(found: dict[str, Any]) -> list[str]:
    """What the tables come to, in sentences that are made of their numbers."""
    head = found["squad/head"]
    lines = []
    for name, said in (
        ("squad/head", "SQuAD, head"),
        ("squad/knrm", "SQuAD, KNRM"),
        ("wiki/knrm", "wiki, KNRM"),
    ):
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
    safe = _safe([row for row in head["rows"] if row["method"] == "negatives"])
    if safe is not None:
        chosen = head["chosen"].get("negatives")
        lines.append(
            "- **Which λ is safe** (SQuAD, head): on the test queries no loss of RR@10 is significant up to "
            f"λ = {safe:g}. The dev queries allow {'none' if chosen is None else f'λ = {chosen:g}'}"
            f"{': there are too few to see the loss.' if chosen is not None and chosen > safe else '.'}"
        )
    for how, name in (("penalty", "a penalty on scores"), ("constrain (mean)", "constrained re-ranking")):
        rows = [row[how] for row in head.get("equal bias", []) if how in row]
        if rows:
            sure = [row for row in rows if row["p"] is not None and row["p"] < 0.05]
            more, less = (sum(sign * row["difference"] > 0 for row in sure) for sign in (1, -1))
            lines.append(
                f"- **At equal bias, against {name}**: of {len(rows)} trained settings {more} keep "
                f"significantly more RR@10 (p < .05, not corrected), {less} significantly less; "
                f"the other {len(rows) - len(sure)} cannot be told apart."
            )
    lines += _short_hidden(head) + _short_probe(head["rows"])
    moved = [row for row in head["rows"] if "genderbias-qa" in row and row["strength"]]
    better = [
        row
        for row in moved
        if row["genderbias-qa"]["size"]["p"] is not None
        and row["genderbias-qa"]["size"]["p"] < 0.05
        and row["genderbias-qa"]["size"]["difference"] < 0
    ]
    if moved:
        named = "; ".join(_label(row) for row in better) or "none"
        lines.append(
            "- **genderbias-qa**: settings whose preference for a gender is significantly smaller than that "
            f"of plain training (p < .05, not corrected): {named}."
        )
    return [*lines, ""] if lines else []


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


def _short_hidden(head: dict[str, Any]) -> list[str]:
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
        f"- **What the mean hides**: for the {some:,} queries whose relevant document "
        f"is gendered, RR@10 is {plain['by gender'][part]['RR@10']:.3f} with plain training; {said}."
    ]


def _short_probe(rows: list[dict[str, Any]]) -> list[str]:
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
        lines.append(f"- **Adversary** that predicts {reads}, AUC of a fresh probe: {values}.")
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
    signs = {"negatives": "λ", "penalty": "w", "interpolate": "λ", "consistency": "γ"}
    if row["method"] == "augment":
        return "augment"
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
        "training (λ = 0) with the same seeds, paired t-test, p after Holm's correction over the strengths "
        "of a method; bold: p < .05. ✓ is the strongest setting up to which no loss on the *dev* queries is "
        "significant.",
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
                    str(len(row["seeds"])),
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


def _equal_table(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Not run yet.", ""]
    lines = [
        "The difference is RR@10 of a training method minus RR@10 of plain training re-ranked to the "
        "same mean "
        "|ARaB@10|, seed by seed, then averaged. Penalty and interpolation reach it by their weights, "
        "`constrain` by its bound on the mean. If a comparison was run for fewer seeds, the difference "
        "is over "
        "these. Bold: p < .05, paired t-test, not corrected for the number of rows.",
        "",
        _line(
            [
                "trained",
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
            ]
        ),
        "|---|" + "--:|" * 12,
    ]
    for row in rows:
        cells = [_label(row), str(len(row["seeds"])), f"{row['|ARaB@10|']:.4f}", f"{row['RR@10']:.4f}"]
        for how in ("penalty", "interpolate", "constrain (mean)"):
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
    """Plain training, the λ of the thesis and 1, and of other methods the setting chosen on dev queries."""
    return [
        row
        for row in rows
        if (row["method"] == "negatives" and row["strength"] in (0.0, 0.6, 1.0))
        or (row["method"] != "negatives" and row["strength"] and chosen.get(row["method"]) == row["strength"])
    ]


def _hidden(rows: list[dict[str, Any]], chosen: dict[str, float | None]) -> list[str]:
    shown = _shown(rows, chosen)
    parts = [
        "document: gendered", "document: female", "document: male", "document: none",
        "query: female", "query: male", "query: none",
    ]  # fmt: skip
    known = shown[0]["by gender"]
    parts = [part for part in parts if part in known]
    lines = [
        "RR@10 of queries whose relevant document is about a gender, and of queries that are about one "
        "themselves (more words of one gender than of the other). The number of queries is in "
        "brackets. Bold: "
        "differs from plain training, p < .05 (paired t-test, not corrected). Settings were chosen on "
        "the dev "
        "queries.",
        "",
        _line(["method", *(f"{part} ({known[part]['n']:,})" for part in parts)]),
        "|---|" + "--:|" * len(parts),
    ]
    for row in shown:
        cells = [
            _bold(f"{row['by gender'][part]['RR@10']:.3f}", row["by gender"][part]["p"]) for part in parts
        ]
        lines.append(_line([_label(row), *cells]))
    return [*lines, ""]


def _probes(rows: list[dict[str, Any]]) -> list[str]:
    probed = [row for row in rows if "probe" in row]
    if not probed:
        return ["Not run yet.", ""]
    lines = [
        "AUC of a fresh probe on the finished vectors, averaged over seeds; the range covers the seeds' 95 % "
        "intervals.",
        "",
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


def _genderbias(rows: list[dict[str, Any]]) -> list[str]:
    shown = [row for row in rows if "genderbias-qa" in row]
    if not shown:
        return ["Not run yet.", ""]
    some = shown[0]["genderbias-qa"]["queries"]
    lines = [
        f"{some} questions. Preference: half the sum of ARaB@4 on the four passages of a question and on "
        "their mirror images; above 0 male first. Its size is averaged over questions; p against plain "
        "training (paired t-test on the sizes, not corrected; bold: p < .05). nDCG@10 is that of re-ranking "
        "BM25's first 50 of all passages.",
        "",
        _line(["training", "seeds", "preference", "95 %", "its size", "change", "p", "nDCG@10"]),
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
                    str(len(row["seeds"])),
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


def _not_run(name: str, missing: list[str]) -> list[str]:
    if not missing:
        return []
    whole = {}
    for each in missing:
        _, _, method, strength, _ = each.split("/")
        whole.setdefault(method, dict[str, int]())
        whole[method][strength] = whole[method].get(strength, 0) + 1
    said = "; ".join(f"{method} {', '.join(strengths)}" for method, strengths in whole.items())
    return [f"Not run, or not with all seeds ({name}, {len(missing)} trainings or re-rankings): {said}.", ""]
