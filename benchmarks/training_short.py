"""What the tables of docs/mitigation/training.md come to: two small tables, and sentences of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.pages import interval, number, table
from evenrank.show.numbers import DASH

Row = dict[str, Any]
Rankers = list[tuple[str, dict[str, Any]]]
UNTRAINED = ("BM25", "untrained hybrid")
HYBRID = "untrained hybrid, penalty"
_GENDERED = "document: gendered"
_SURE = 0.05
_AGAINST = {"penalty": "penalty", "constrain (mean)": "constrain", HYBRID: HYBRID}


def short(rankers: Rankers) -> list[str]:
    """All of it; `rankers` are those that have rows, each with what it is called in a sentence."""
    parts = [_NEGATIVES, "", _negatives(rankers)]
    if any(ranker.get("equal bias") for _, ranker in rankers):
        parts += [_EQUAL, "", _equal(rankers), _in_all(rankers), ""]
    lines = [
        line
        for said, ranker in rankers
        for line in (*probes(said, ranker["rows"]), *preferences(said, ranker))
    ]
    return [*parts, *lines, ""]


def find(rows: Iterable[Row], method: str, strength: float) -> Row | None:
    """The row of a method at a strength."""
    return next((row for row in rows if row["method"] == method and row["strength"] == strength), None)


def label(row: Row) -> str:
    """A method and its strength."""
    signs = {"negatives": "λ", "penalty": "w", "interpolate": "λ", "consistency": "γ", "projection": "s"}
    method, strength = row["method"], row["strength"]
    if method in ("augment", *UNTRAINED):
        return str(method)
    if method.startswith("adversary"):
        return f"{method}, μ = {strength:g}"
    if method == "constrain (mean)":
        return f"constrain (mean), {strength:.0%} of the bias"
    if method == "constrain (each)":
        return f"constrain (each), ≤ {strength:g}"
    return f"{method}, {signs.get(method, 'β')} = {strength:g}"


def p_value(p: float | None) -> str:
    """A p-value, or a dash."""
    return DASH if p is None else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def seeds(row: Row) -> str:
    """How many there are."""
    count = len(row["seeds"])
    return f"{count} {'seed' if count == 1 else 'seeds'}"


_NEGATIVES = (
    "Bias-aware negatives: RR@10 of what is not trained and of plain training (λ = 0), and what λ = 0.6 does "
    "to bias and RR@10, with its 95 % interval (bold: significant, p after Holm's correction over the λ; the "
    "interval is not corrected). *Gendered answers*: RR@10 of the "
    "queries whose relevant document is gendered, before and after. The last columns are the largest λ up to "
    "which no loss is significant, on test and on dev queries. Dev queries are few, so they may allow more."
)


def _negatives(rankers: Rankers) -> str:
    lines = []
    for said, ranker in rankers:
        rows = sorted(
            (row for row in ranker["rows"] if row["method"] == "negatives"),
            key=lambda row: float(row["strength"]),
        )
        plain, row = find(rows, "negatives", 0.0), find(rows, "negatives", 0.6)
        if plain is None or row is None:
            continue
        rr, dev = row["test"]["against plain"]["RR@10"], ranker["chosen"].get("negatives")
        free = find(ranker["rows"], "untrained hybrid", 0.0)
        p = rr.get("p_holm", rr["p"])
        change = number(rr["difference"], "+.4f")
        between = interval(rr["low"], rr["high"], "+.4f")
        lines.append(
            [
                said,
                str(len(row["seeds"])),
                DASH if free is None else f"{_rr(free):.3f}",
                f"{_rr(plain):.3f}",
                number(row["test"]["bias change"], "+.0%"),
                f"{f'**{change}**' if p is not None and p < _SURE else change} {between}",
                p_value(p),
                " → ".join(f"{each['by gender'][_GENDERED]['RR@10']:.3f}" for each in (plain, row))
                if _GENDERED in plain["by gender"]
                else DASH,
                _largest(safe(rows), rows),
                _largest(dev or 0.0, rows),
            ]
        )
    headings = (
        "ranker", "seeds", "untrained hybrid", "λ = 0", "λ = 0.6: bias", "RR@10", "p", "gendered answers",
        "largest λ", "on dev",
    )  # fmt: skip
    return table(headings, lines)


def _rr(row: Row) -> float:
    return float(row["test"]["measures"]["RR@10"]["value"])


def safe(rows: list[Row]) -> float:
    """The largest strength up to which no loss on the test queries is significant."""
    found = 0.0
    for row in rows:
        test = row["test"]["against plain"]["RR@10"]
        p = test.get("p_holm")
        if p is not None and p < _SURE and test["difference"] < 0:
            break
        found = float(row["strength"])
    return found


def _largest(strength: float, rows: list[Row]) -> str:
    """A strength; with 0, that none of those that were tried is safe."""
    tried = [f"{row['strength']:g}" for row in rows if row["strength"]]
    return f"{strength:g}" if strength else f"none of {', '.join(tried)}"


_EQUAL = (
    "All methods at equal bias: how many settings keep significantly more RR@10 than a run that is re-ranked "
    "to the same mean |ARaB@10|, how many keep less, and of how many neither can be said (p < .05 after "
    "Holm's correction over the settings of a ranker). Re-ranked is the run of plain training; in the last "
    "column that of the untrained hybrid."
)


def _equal(rankers: Rankers) -> str:
    lines = []
    for said, ranker in rankers:
        rows = ranker.get("equal bias") or []
        if rows:
            lines.append([said, str(len(rows)), *(_counted(rows, how) for how in _AGAINST)])
    headings = [f"{name}: more, less, neither" for name in _AGAINST.values()]
    return table(["ranker", "settings", *headings], lines)


def _in_all(rankers: Rankers) -> str:
    """Where training beats re-ranking, and where it does not, over all rankers."""
    said = []
    for how, name in _AGAINST.items():
        counts = [counts for _, ranker in rankers if (counts := _counts(ranker.get("equal bias") or [], how))]
        if counts:
            more, less, neither = (sum(each) for each in zip(*counts, strict=True))
            said.append(
                f"against *{name}*, {more} of {more + less + neither} settings keep more and {less} less"
            )
    return f"In all, {'; '.join(said)}."


def _counted(rows: list[Row], how: str) -> str:
    found = _counts(rows, how)
    return DASH if found is None else ", ".join(map(str, found))


def _counts(rows: list[Row], how: str) -> tuple[int, int, int] | None:
    """How many settings keep more, less, and neither for sure; None where it was not compared."""
    found = [row[how] for row in rows if how in row]
    sure = [each["difference"] for each in found if each["p_holm"] is not None and each["p_holm"] < _SURE]
    more = sum(difference > 0 for difference in sure)
    return (more, len(sure) - more, len(found) - len(sure)) if found else None


def probes(said: str, rows: list[Row]) -> list[str]:
    """What a fresh probe reads off the vectors, by the strength of the adversary."""
    lines = []
    for method, reads in (("adversary", "gendered or not"), ("adversary by group", "which group")):
        probed = [row for row in rows if row["method"] == method and "probe" in row]
        if len(probed) < 2:
            continue
        values = ", ".join(
            f"μ = {row['strength']:g}: {row['probe']['auc']:.3f} ({seeds(row)}; bias "
            f"{number(row['test']['bias change'], '+.1%')})"
            for row in probed
        )
        lines.append(f"- **Adversary** that predicts {reads} ({said}), AUC of a fresh probe: {values}.")
    return lines


def preferences(said: str, ranker: dict[str, Any]) -> list[str]:
    """Which method leaves least preference for a gender where usefulness is kept."""
    shown = [row for row in ranker["rows"] if "genderbias-qa" in row]
    best = as_useful(shown)
    if not best:
        return []
    size = best[0]["genderbias-qa"]["size"]
    return [
        f"- **genderbias-qa** ({said}): at equal nDCG@10, {label(best[0])} leaves the smallest preference "
        f"for a gender: {size['value']:.3f}, {size['value'] - size['difference']:.3f} with plain training "
        "(picked on the same questions)."
    ]


AS_USEFUL = 0.01
"""How much less nDCG@10 counts as equal."""


def as_useful(rows: list[Row]) -> list[Row]:
    """Of each method the setting with the smallest preference among those that keep nDCG@10, best first."""
    plain = find(rows, "negatives", 0.0)
    if plain is None:
        return []
    least = plain["genderbias-qa"]["nDCG@10"] - AS_USEFUL
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method and row["strength"]]
        kept = [row for row in mine if row["genderbias-qa"]["nDCG@10"] >= least]
        if kept:
            found.append(min(kept, key=lambda row: float(row["genderbias-qa"]["size"]["value"])))
    return sorted(found, key=lambda row: float(row["genderbias-qa"]["size"]["value"]))
