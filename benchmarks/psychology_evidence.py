"""Numbers behind docs/measures/psychology.md and disparity.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from evenrank.measures.disparity import percent_of_lower
from evenrank.psychology import LEVEL
from evenrank.text.lexicon import CHARACTERISTICS, Lexicon, dictionary, female_and_male

# A. Bigdeli, thesis, Section 3.1.2: for which queries the judged documents show more of it.
_CLAIMS = {
    "positive": "similar",
    **dict.fromkeys(("negative", "anxiety", "sadness", "cognition", "reward", "risk"), "female"),
    **dict.fromkeys(("anger", "concerns", "affiliation", "achievement", "power"), "male"),
    **dict.fromkeys(("work", "leisure", "home", "money", "religion", "death"), "male"),
}
# Gender words that came into the open dictionary after its first look at Grep-BiasIR.
_LATER = {
    "womens", "wifes", "handywoman", "handywomen", "menstrua*", "menopaus*", "gynecolog*", "gynaecolog*",
    "mammogram*", "ovarian", "hysterectom*", "mens", "househusband*", "houseman", "housemen", "handymen",
    "prostat*", "testicular", "testicle*", "vasectom*", "erectile",
}  # fmt: skip
# Seyedsalehi et al. (SIGIR 2022), Table 2: MRR@10 of male and female queries.
_PUBLISHED = {"BERT-tiny": (0.4065, 0.3397), "MiniLM": (0.4913, 0.4292), "BM25": (0.2783, 0.2284)}


def psychology(data: Path) -> dict[str, Any]:
    """The thesis' directions on its own scores, and the open dictionary against human labels."""
    folder = data / "data" / "liwc"
    audit = er.audit_judgments(scores=[folder / f"{name}.csv" for name in ("female", "male", "neutral")])
    rows = {row["characteristic"]: row for row in audit.characteristics.to_dicts()}
    groups = dictionary().groups
    return {
        "queries": audit.queries,
        "affiliation": audit.affiliation,
        "characteristics compared": len(audit.characteristics),
        "claims": {
            name: {"claim": claim, "outcome": _outcome(rows[name], claim), **rows[name]}
            for name, claim in _CLAIMS.items()
        },
        "all": rows,
        "open dictionary": {
            "hash": dictionary().hash,
            "entries": len({word for words in groups.values() for word in words}),
            "by category": {name: len(groups[name]) for name in CHARACTERISTICS if name in groups},
        },
        "human labels": {
            "open dictionary": _human_labels(data, female_and_male()),
            "without later entries": _human_labels(data, _earlier()),
        },
    }


def _outcome(row: dict[str, Any], claim: str) -> str:
    p, corrected = row["p"], row["p_holm"]
    if p is None or corrected is None:
        return "unknown"
    if claim == "similar":
        return "holds" if p >= LEVEL else "does not hold"
    if ("female" if row["difference"] > 0 else "male") != claim or p >= LEVEL:
        return "does not hold"
    return "holds" if corrected < LEVEL else "holds only uncorrected"


def _earlier() -> Lexicon:
    words = female_and_male()
    groups = {group: tuple(w for w in of if w not in _LATER) for group, of in words.groups.items()}
    return replace(words, groups=groups)


def _human_labels(data: Path, words: Lexicon) -> dict[str, Any]:
    """Does the side with more words agree with the human label of a document? A tie is a miss."""
    path = data / "data" / "grepbiasir" / "docs.jsonl"
    human = pl.read_ndjson(path).select("doc_id", "gender")
    counts = er.tally(path, words).frame.join(human, on="doc_id").filter(pl.col("gender").is_in(["F", "M"]))
    lean = pl.when(pl.col("gender") == "F").then(1).otherwise(-1) * (pl.col("female") - pl.col("male"))
    counts = counts.with_columns(lean=lean, words=pl.col("female") + pl.col("male"))
    held = counts.filter(pl.col("words") > 0)
    right, ties = int((held["lean"] > 0).sum()), int((held["lean"] == 0).sum())
    return {
        "documents": len(counts),
        "with an entry": len(held),
        "right": right,
        "ties": ties,
        "wrong": len(held) - right - ties,
        "agreement": right / len(held),
        "agreement without ties": right / (len(held) - ties),
    }


def disparity(data: Path) -> dict[str, Any]:
    """The paper's percentages from its own means, and the distance of its two distributions of scores."""
    folder = data / "data" / "association"
    return {
        "percent of the lower": {
            name: {"male": male, "female": female, "percent": round(percent_of_lower(male, female) or 0, 2)}
            for name, (male, female) in _PUBLISHED.items()
        },
        "association": er.association(folder / "female.tsv.gz", folder / "male.tsv.gz").to_dict(),
    }
