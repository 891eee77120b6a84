"""Generated queries beside real ones, and what balanced judgments do to rankers.

    python -m benchmarks.generation_evidence            all units that have not been run, then the tables
    python -m benchmarks.generation_evidence squad      those of one collection, or of one kind: squad/shots
    python -m benchmarks.generation_evidence --again squad/shots    also where they have been run
    python -m benchmarks.generation_evidence --tables   the tables again, from what has been run

A unit that stands in docs/evidence/generation.json is not run again; generation that was interrupted goes on
where it was, in the folder ``evidence/generation`` of the cache. The tables in docs/generated-queries.md and
docs/mitigation/balanced-training.md are made of that file, and say what is missing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from benchmarks.matching_evidence import short
from benchmarks.pages import DOCS, committed_source, fill, write_evidence
from evenrank.data.files import cache_dir
from evenrank.queries.generate import generate
from evenrank.queries.generated import Generated, filter_generated
from evenrank.show.numbers import p_value
from evenrank.text.tokens import tokens

HELD_OUT = 300
"""Documents that no training query asks for, drawn by a seed before anything was generated."""
ANSWERABLE = 0.5
COPIED = 8
"""Words in a row of its document from which on a generated query is not printed."""


def home() -> Path:
    return cache_dir() / "evidence" / "generation"


@lru_cache(maxsize=2)
def collection(name: str) -> Any:
    """Training and test part, and an index."""
    from evenrank.rankers.indexing import cached_index

    found = shared()
    if found is None:
        raise SystemExit("the evidence needs the test data; set EVENRANK_TEST_DATA")
    train, test = (er.load(found / "data" / name, split=split) for split in ("train", "test"))
    return train, test, cached_index(test.docs)


SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Answerability that is tried on documents of training queries."""
OTHERS = 700
"""Held-out documents beyond the first: no prompt and no share was chosen on any of them."""


@lru_cache(maxsize=2)
def held_out(name: str, others: bool = False) -> tuple[dict[str, str], pl.DataFrame]:
    """Texts of the documents, and the judgments of test queries that ask for them."""
    train, test, index = collection(name)
    seen = train.qrels["doc_id"].unique().to_list()
    good = test.qrels.filter(pl.col("relevance") > 0, ~pl.col("doc_id").is_in(seen))
    good = good.filter(pl.col("query_id").is_in(test.queries["query_id"].to_list()))
    ids = sorted(good["doc_id"].unique().to_list())
    order = np.random.default_rng(1).permutation(len(ids))
    chosen = order[HELD_OUT : HELD_OUT + OTHERS] if others else order[:HELD_OUT]
    drawn = [ids[row] for row in chosen]
    return index.docs.texts(drawn), good.filter(pl.col("doc_id").is_in(drawn))


def written(name: str, unit: str, docs: Any, n: int, model: Any, **given: Any) -> tuple[Generated, float]:
    """Generated queries of a unit, and the CPU seconds for each, where they were written in one go."""
    parts = home() / f"{name}-{unit}.parts"
    parts.parent.mkdir(parents=True, exist_ok=True)
    seconds = parts.with_suffix(".seconds")
    spent = float(seconds.read_text()) if seconds.exists() else 0.0
    started = time.process_time()
    try:
        found = generate(docs, n, model, checkpoints=parts, **given)
    finally:
        seconds.write_text(str(spent + time.process_time() - started))
    return found, float(seconds.read_text()) / max(1, len(found))


def beside_real(name: str, made: Generated) -> dict[str, Any]:
    """Four numbers of generated queries, and of the real ones of the same documents."""
    _, test, index = collection(name)
    _, good = held_out(name)
    asked = test.queries.join(good, on="query_id", how="semi")
    return er.closeness(made, index, queries=asked, qrels=good).to_dict()


def closeness_of(name: str, unit: str, model: Any, **given: Any) -> dict[str, Any]:
    """A query for each document, as they come and after the filters."""
    texts, _ = held_out(name)
    made, seconds = written(name, unit, texts, 1, model, **given)
    kept = filter_generated(made, collection(name)[2], answerable=ANSWERABLE)
    passed = set(kept.queries["query_id"])
    # Ids, not texts, of the documents: they are not ours. What was extracted from them is not, either.
    shown = [
        {"document": doc_id, "query": text, "kept": query_id in passed}
        for query_id, doc_id, text in made.queries.head(20 if unit != "extractive" else 0).iter_rows()
    ]
    return {
        "documents": len(texts),
        "as they come": beside_real(name, made),
        "filtered": beside_real(name, kept),
        "left out": kept.left_out,
        "CPU seconds a query": round(seconds, 3),
        "model": made.provenance.get("model", "extractive"),
        "examples": shown,
    }


def shots(name: str) -> dict[str, Any]:
    """SmolLM2, shown five real pairs."""
    return closeness_of(name, "shots", shown_writer(name))


def calibrated(name: str) -> dict[str, Any]:
    """SmolLM2 with the filter that makes its round trip that of real queries, on documents not used before.

    The share of a query's terms that its document must have is chosen on documents of training queries.
    """
    train, test, index = collection(name)
    good = train.qrels.filter(pl.col("relevance") > 0)
    ids = sorted(good["doc_id"].unique().to_list())
    drawn = [ids[row] for row in np.random.default_rng(2).permutation(len(ids))[:HELD_OUT]]
    made, _ = written(name, "calibrating", index.docs.texts(drawn), 1, shown_writer(name))
    own = good.filter(pl.col("doc_id").is_in(drawn))
    asked = train.queries.join(own, on="query_id", how="semi")
    tried = {}
    for share in SHARES:
        kept = filter_generated(made, index, answerable=share)
        tried[share] = er.closeness(kept, index, queries=asked, qrels=own).to_dict()
    share = min(SHARES, key=lambda each: abs(_trip(tried[each], "generated") - _trip(tried[each], "real")))
    texts, good = held_out(name, others=True)
    made, seconds = written(name, "calibrated", texts, 1, shown_writer(name))
    kept = filter_generated(made, index, answerable=share)
    asked = test.queries.join(good, on="query_id", how="semi")
    shown = made.queries.head(20).join(
        kept.queries.select("query_id", kept=pl.lit(True)), on="query_id", how="left", maintain_order="left"
    )
    return {
        "documents": len(texts),
        "share": share,
        "tried on documents of training queries": {str(each): found for each, found in tried.items()},
        "as they come": er.closeness(made, index, queries=asked, qrels=good).to_dict(),
        "filtered": er.closeness(kept, index, queries=asked, qrels=good).to_dict(),
        "left out": kept.left_out,
        "CPU seconds a query": round(seconds, 3),
        "model": made.provenance.get("model"),
        "examples": [
            {"document": row["doc_id"], "query": row["text"], "kept": bool(row["kept"])}
            for row in shown.iter_rows(named=True)
        ],
    }


def _trip(found: dict[str, Any], which: str) -> float:
    return float(found[which]["round_trip"])


def shown_writer(name: str) -> Any:
    from evenrank.queries.generate import SHOTS, LanguageWriter, examples

    train, _, _ = collection(name)
    return LanguageWriter(examples=examples(train.docs, train.queries, train.qrels, SHOTS, 0))


def extractive(name: str) -> dict[str, Any]:
    return closeness_of(name, "extractive", "extractive")


WHOLE = {"squad": None, "wiki": 20_000}
"""Documents that get an extracted query for balancing; None: all."""


def balanced(name: str) -> dict[str, Any]:
    """Extracted queries of documents as missing counterparts, and pairs that read alike."""
    from evenrank.mitigate.balance.matching import association_scores

    train, _, index = collection(name)
    labels = er.classify(train.queries).select("query_id", gender="label")
    scores = association_scores(index, train.queries, train.qrels)
    made = generate(index.docs, 1, "extractive", sample=WHOLE[name])
    made = filter_generated(made, index, answerable=ANSWERABLE)
    found = er.classify(made.texts())["label"].value_counts()
    made_scores = association_scores(index, made.texts(), made.qrels())
    told: dict[str, Any] = {
        "writer": "extractive",
        "generated": {"queries": len(made), **dict(sorted(found.iter_rows()))},
        "matching": _kept(er.balance(scores, labels)),
    }
    filled = er.fill(scores, made, genders=labels, generated_scores=made_scores)
    told["generation"] = _added(filled) | {"every real query is there": filled.removed.is_empty()}
    alike = er.even_judgments(made, index.docs, ratio=0.25, size=len(train.qrels))
    away = alike.pairs["distance"]
    told["judgments"] = {
        "pairs": len(alike.pairs),
        "queries added": len(alike.added),
        "queries asked for": alike.requested,
        "generated": alike.counts,
        "left_out": alike.left_out,
        "distance": {"mean": away.mean(), "median": away.median(), "largest": away.max()},
    }
    return told


def _kept(even: Any) -> dict[str, Any]:
    """How many pairs matching keeps, and the distributions of scores before and after."""
    before, after = even.before.pairs, even.after.pairs
    return {
        "kept": {gender: {"before": before[gender], "after": after[gender]} for gender in before},
        "before": short(even.before),
        "after": short(even.after),
    }


def _added(filled: Any) -> dict[str, Any]:
    """How many generated queries were added, and the distributions of scores before and after."""
    before, after = filled.before.pairs, filled.after.pairs
    return {
        "real": before,
        "added": {gender: after[gender] - before[gender] for gender in before},
        "without counterpart": {reason.split()[0]: count for reason, count in filled.left_out.items()},
        "before": short(filled.before),
        "after": short(filled.after),
    }


UNITS: dict[str, Callable[[], dict[str, Any]]] = {
    f"{name}/{kind.__name__}": lambda kind=kind, name=name: kind(name)  # type: ignore[misc]
    for name, kinds in {
        "squad": (extractive, balanced, shots, calibrated),
        "wiki": (extractive, balanced, calibrated),
    }.items()
    for kind in kinds
}


def main(arguments: list[str]) -> int:
    chosen = [each for each in arguments if not each.startswith("-")]
    found: dict[str, Any] = json.loads(_JSON.read_text())["results"]
    if "--tables" not in arguments:
        import torch

        torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
        for name, run in UNITS.items():
            if (name in found and "--again" not in arguments) or not name.startswith(tuple(chosen or [""])):
                continue
            source, started = committed_source(), time.process_time()
            unit = {**run(), "src": source, "CPU seconds": round(time.process_time() - started, 1)}
            shown = unit.get("examples")
            found[name] = unquoted(unit, collection(name.partition("/")[0])[1].docs) if shown else unit
            write_tables(found)
            print(name, json.dumps(found[name])[:300], flush=True)
    write_tables(found)
    return 0


# Tables

_JSON = DOCS / "evidence" / "generation.json"
_WRITERS = {
    "extractive": "extractive",
    "shots": "SmolLM2, five examples",
}


def write_tables(units: dict[str, Any]) -> None:
    """The JSON, and the tables in the pages, from what has been run."""
    found = {name: units[name] for name in UNITS if name in units}
    missing = [name for name in UNITS if name not in found]
    command = "python -m benchmarks.generation_evidence"
    write_evidence(_JSON, command, found, found.values(), **{"not run": missing})
    fill("generated-queries.md", closeness_page(found))
    fill("mitigation/balanced-training.md", balance_page(found))


def unquoted(unit: dict[str, Any], docs: Any) -> dict[str, Any]:
    """The same without generated queries that repeat their document: its text is not ours to print."""
    texts = docs.texts([each["document"] for each in unit["examples"]])
    shown = []
    for each in unit["examples"]:
        copied = longest_copy(each["query"], texts[each["document"]])
        shown.append(each | {"query": f"({copied} words of the document)"} if copied >= COPIED else each)
    return unit | {"examples": shown}


def longest_copy(query: str, document: str) -> int:
    """How many words in a row a query has of a document."""
    mine, theirs = (["", *tokens(text)] for text in (query, document))
    before, most = [0] * len(theirs), 0
    for word in mine[1:]:
        before = [0, *(before[i - 1] + 1 if theirs[i] == word else 0 for i in range(1, len(theirs)))]
        most = max(most, *before)
    return most


def closeness_page(found: dict[str, Any]) -> str:
    """The tables of docs/generated-queries.md."""
    return "\n".join(_closeness_page(found)).strip("\n")


def balance_page(found: dict[str, Any]) -> str:
    """The tables of docs/mitigation/balanced-training.md."""
    return "\n".join(_balance_page(found) + _compared_page(found)).strip("\n")


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _missing(found: dict[str, Any], kinds: tuple[str, ...]) -> list[str]:
    names = [name for name in UNITS if name.partition("/")[2] in kinds and name not in found]
    return [f"Not run yet ({len(names)}): {'; '.join(names)}.", ""] if names else []


def _closeness_page(found: dict[str, Any]) -> list[str]:
    kinds = tuple(_WRITERS)
    lines: list[str] = []
    for name in ("squad", "wiki"):
        units = {kind: found[f"{name}/{kind}"] for kind in kinds if f"{name}/{kind}" in found}
        if not units:
            continue
        lines += [
            f"**{name}**, documents that no training query asks for, and their real queries.",
            "",
            _row(_HEADS),
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        for kind, unit in units.items():
            for which in ("as they come", "filtered"):
                label = _WRITERS[kind] + ("" if which == "as they come" else ", filtered")
                seconds = f"{unit['CPU seconds a query']:.2f}" if which == "as they come" else ""
                lines.append(_manner(label, unit[which]["generated"], seconds))
        real = next(iter(units.values()))["as they come"]["real"]
        lines += [_manner("real", real, ""), ""]
    lines += [f"Filtered: 3 to 30 words, no repeats, {ANSWERABLE:.0%} of the terms in the document.", ""]
    for name in ("squad", "wiki"):
        if unit := found.get(f"{name}/calibrated"):
            lines += _calibrated_table(name, unit)
    for name in ("squad", "wiki"):
        best = ("calibrated", "shots")
        shown = next((found[f"{name}/{k}"] for k in best if f"{name}/{k}" in found), None)
        if shown is not None:
            lines += [
                f"The first 20 of {shown['documents']} on {name}, not selected ({shown['model']}). Queries "
                f"that repeat {COPIED} or more words of their document in a row are counted, not printed:",
                "",
            ]
            lines += [_row(["query", "passes the filters", "document"]), "|---|---|---|"]
            for each in shown["examples"]:
                cells = (each["query"], "yes" if each["kept"] else "no", each["document"])
                lines.append(_row([cell.replace("|", "\\|") for cell in cells]))
            lines.append("")
    return lines + _missing(found, (*kinds, "calibrated"))


def _calibrated_table(name: str, unit: dict[str, Any]) -> list[str]:
    come, kept = unit["as they come"], unit["filtered"]
    return [
        f"**{name}**, {unit['documents']:,} other documents that no training query asks for. Here the filter "
        f"asks for {unit['share']:.0%} of the terms: with this share, queries of {HELD_OUT} documents of "
        "training queries came closest to the round trip of real ones.",
        "",
        _row(_HEADS),
        "|---|--:|--:|--:|--:|--:|--:|",
        _manner(_WRITERS["shots"], come["generated"], f"{unit['CPU seconds a query']:.2f}"),
        _manner(f"{_WRITERS['shots']}, filtered", kept["generated"], ""),
        _manner("real", come["real"], ""),
        "",
    ]


_HEADS = ["queries", "n", "round-trip RR@10", "words in document", "length", "JS distance", "CPU-s each"]


def _manner(label: str, manner: dict[str, Any], seconds: str) -> str:
    cells = [label, f"{manner['queries']:,}"]
    cells += [f"{manner[key]:.2f}" for key in ("round_trip", "overlap")]
    return _row([*cells, f"{manner['length']:.1f}", f"{manner['distance']:.2f}", seconds])


def _balance_page(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name in ("squad", "wiki"):
        unit = found.get(f"{name}/balanced")
        if unit is None:
            continue
        made = unit["generated"]
        lines += [
            f"**{name}**, training queries, with genders predicted by the shipped classifier. Added "
            f"queries are "
            f"extractive: {made['queries']:,}, of them {made.get('female', 0):,} female and "
            f"{made.get('male', 0):,} male. Rows count pairs of a query and a relevant document.",
            "",
            _row(["", "female", "male", "mean female", "mean male", "KS", "p", "without counterpart"]),
            "|---|--:|--:|--:|--:|--:|--:|---|",
            _levels("before", unit["matching"]["before"], unit["matching"]["kept"], "before", ""),
            _levels("matching", unit["matching"]["after"], unit["matching"]["kept"], "after", ""),
        ]
        filled = unit["generation"]
        counts = {g: {"after": filled["real"][g] + filled["added"][g]} for g in ("female", "male")}
        lost = filled["without counterpart"]
        said = f"{lost['female']:,} female, {lost['male']:,} male"
        lines.append(_levels("generation", filled["after"], counts, "after", said))
        alike = unit["judgments"]
        lines += [
            "",
            f"De-biased judgments at a ratio of 0.25: {alike['pairs']:,} pairs, mean distance "
            f"{alike['distance']['mean']:.3f}, largest {alike['distance']['largest']:.3f}.",
            "",
        ]
    return lines + _missing(found, ("balanced",))


def _levels(label: str, level: dict[str, Any], counts: dict[str, Any], when: str, lost: str) -> str:
    cells = [label, *(f"{counts[g][when]:,}" for g in ("female", "male"))]
    cells += [f"{level['means'][g]:.2f}" for g in ("female", "male")]
    return _row([*cells, f"{level['kolmogorov_smirnov']:.3f}", p_value(level["p_kolmogorov_smirnov"]), lost])


def _compared_page(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name in ("squad", "wiki"):
        unit = found.get(f"{name}/compared")
        if unit is None:
            continue
        tested = unit["test queries"]
        heads = ["ranker", "trained on", "male", "female", "gap", "95 %", "p", "could show"]
        heads += ["change", "95 %", "p", "could show", "ARaB@10"]
        size = unit["sets"]["unbalanced"]["queries"]
        lines += [
            f"**{name}**: RR@10 on {tested['female']} female and {tested['male']} male test queries, ARaB@10 "
            f"on {tested['neutral']} neutral ones, {unit['provenance']['depth']} candidates each; {size} "
            "training queries in each set, three seeds.",
            "",
            _row(heads),
            "|---|---|" + "--:|" * (len(heads) - 2),
        ]
        for ranker, sets in unit["rankers"].items():
            for which, each in sets.items():
                cells = ["bm25" if which == "bm25" else ranker, "" if which == "bm25" else which]
                cells += [f"{each['male']:.3f}", f"{each['female']:.3f}", f"{each['gap']:+.3f}"]
                cells += [f"{each['low']:+.3f} to {each['high']:+.3f}", p_value(each["p"])]
                cells.append(_known(each["smallest gap that would be found"]))
                change = each.get("change")
                cells += (
                    ["", "", "", ""]
                    if change is None
                    else [
                        f"{change['gap']:+.3f}",
                        f"{change['low']:+.3f} to {change['high']:+.3f}",
                        p_value(change["p"]),
                        _known(change["smallest change that would be found"]),
                    ]
                )
                lines.append(_row([*cells, f"{each['ARaB@10, neutral queries']:+.3f}"]))
        lines += ["", *_power(unit), *_apart(unit), ""]
    return lines + _missing(found, ("compared",))


PAPER = (0.0499, 0.0668)
"""The smallest and the largest gap of RR@10 in Table 2 of Seyedsalehi et al., SIGIR 2022."""


def _power(unit: dict[str, Any]) -> list[str]:
    """What could have been seen, in a sentence that is made of the numbers."""
    rows = [each for sets in unit["rankers"].values() for each in sets.values()]
    sizes = [each["smallest gap that would be found"] for each in rows]
    known = [size for size in sizes if size is not None]
    changes = [each["change"] for each in rows if "change" in each]
    sure = sum(each["p"] is not None and each["p"] < 0.05 for each in changes)
    if not known:
        return []
    least, low, high = min(known), *PAPER
    said = f"Four times out of five, a gap is found here only if it is {least:.2f} or more; "
    said += f"those of the paper are {low:.2f} to {high:.2f}. "
    said += (
        "A *p* above .05 therefore says nothing about gaps of that size. "
        if least > high
        else "Some of the rows could have shown a gap of that size. "
    )
    verb = "are" if sure > 1 else "is"
    said += f"Of the {len(changes)} changes of the gap, {sure or 'none'} {verb} significant "
    return [said + "(p < .05, not corrected).", ""]


def _known(size: float | None) -> str:
    """Three digits, or a dash where nothing is known: values without any spread say nothing of power."""
    return "–" if not size or size < 0.0005 else f"{size:.3f}"


def _apart(unit: dict[str, Any]) -> list[str]:
    """How far lists of female and male queries are apart, in points of percent."""
    names = ("affect", "cognition", "drives", "concerns")
    lines = ["How far the result lists of female and male queries differ, in percentage points:", ""]
    lines += [_row(["ranker", "trained on", *names]), "|---|---|--:|--:|--:|--:|"]
    for ranker, sets in unit["rankers"].items():
        for which, each in sets.items():
            if "psychology" in each:
                lines.append(_row([ranker, which, *(f"{each['psychology'][n]:.2f}" for n in names)]))
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
