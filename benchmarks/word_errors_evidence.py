"""Words that a lexicon misses: does the corrected interval of a boolean magnitude cover the true share?

The documents of Grep-BiasIR have a gender that people gave them; a lexicon guesses it by their words. 1,000
times for each prevalence: the documents that were written for half of the 117 queries are a collection, kept
so that genders have that prevalence and ranked by BM25; those of the other half give the confusion table. 58
queries are drawn, with replacement. The true share is that of documents in the first ten that people gave the
gender, over all queries. Seed 16. In a second world the guesses are dealt out anew among documents with and
among those without the gender, so that errors do not depend on rank or query, as assumed.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.pages import fill, number, table
from evenrank import stats
from evenrank.stats.misclassified import Confusion, adjusted_shares

_SEED, _DRAWS, _RESAMPLES, _CUTOFF = 16, 1000, 200, 10
_LEXICONS = ("rekabsaz2020", "fabris2020")
_PREVALENCES = {
    "as collected": (1 / 3, 1 / 3, 1 / 3),
    "many male": (0.15, 0.50, 0.35),
    "few of either": (0.10, 0.15, 0.75),
    "many female": (0.55, 0.20, 0.25),
}
_WORLDS = ("real errors", "errors dealt out anew")
_PAIR = ("male", "female")
_GROUPS = (*_PAIR, "male − female")
_WAYS = ("corrected", "naive", "true labels")
"""Intervals: corrected, as the lexicon has it, and as people have it, which a correction cannot beat."""


class _Collection(NamedTuple):
    """Documents in the order of the index; lists of each query as rows of documents, the best first."""

    gender: np.ndarray
    family: np.ndarray
    lists: list[np.ndarray]


def word_errors(data: Path) -> dict[str, Any]:
    """Coverage of the corrected and of the naive interval, under four prevalences."""
    found, tallies = _collection(data)
    truth = {group: np.isin(found.gender, (group, "both")) for group in _PAIR}
    content: dict[str, Any] = {
        "seed": _SEED,
        "draws": _DRAWS,
        "resamples": _RESAMPLES,
        "cutoff": _CUTOFF,
        "documents": len(found.gender),
        "queries": len(found.lists),
        "prevalences": {name: list(shares) for name, shares in _PREVALENCES.items()},
        "words": {
            lexicon: {
                group: {
                    "of documents with it": float(hits[group][truth[group]].mean()),
                    "of documents without it": float(hits[group][~truth[group]].mean()),
                }
                for group in _PAIR
            }
            for lexicon, hits in tallies.items()
        },
        "rows": [
            {"lexicon": lexicon, "world": world, "prevalence": name, **_row(found, truth, hits, world, name)}
            for lexicon, hits in tallies.items()
            for world in _WORLDS
            for name in _PREVALENCES
        ],
    }
    from benchmarks import label_errors_evidence as labels

    kept = json.loads((labels.EVIDENCE / "label-errors.json").read_text())["results"]
    fill("label-errors.md", labels.page(kept, content))
    return content


def _collection(data: Path) -> tuple[_Collection, dict[str, dict[str, np.ndarray]]]:
    path = data / "data" / "grepbiasir" / "docs.jsonl"
    rows = pl.read_ndjson(path)
    named = {"F": "female", "M": "male", "N": "neutral", "both": "both", "botrh": "both"}
    docs, queries, _ = er.load(path.parent)
    with tempfile.TemporaryDirectory() as folder:
        run = er.search(er.index(docs, Path(folder) / "index"), queries, depth=len(rows))
    place = {doc: row for row, doc in enumerate(rows["doc_id"].cast(pl.String))}
    lists: dict[str, list[int]] = {query: [] for query in queries["query_id"]}
    for query, doc in run.sort("query_id", "rank").select("query_id", "doc_id").iter_rows():
        lists[query].append(place[doc])
    order = {query: at for at, query in enumerate(lists)}
    found = _Collection(
        np.array([named[each] for each in rows["gender"]]),
        np.array([order[str(each)] for each in rows["query_id"]]),
        [np.array(each, np.int64) for each in lists.values()],
    )
    tallies = {}
    for lexicon in _LEXICONS:
        counted = er.tally(docs, lexicon).frame
        at = [place[doc] for doc in counted["doc_id"]]
        tallies[lexicon] = {group: np.zeros(len(rows), bool) for group in _PAIR}
        for group in _PAIR:
            tallies[lexicon][group][at] = (counted[group] > 0).to_numpy()
    return found, tallies


def _row(
    found: _Collection, truth: dict[str, np.ndarray], hits: dict[str, np.ndarray], world: str, name: str
) -> dict[str, Any]:
    rng = np.random.default_rng([_SEED, _WORLDS.index(world), list(_PREVALENCES).index(name)])
    shares = dict(zip(("female", "male", "neutral"), _PREVALENCES[name], strict=True))
    rates = np.array([shares.get(each, min(shares.values())) for each in found.gender]) / max(shares.values())
    ends: dict[str, list[Any]] = {way: [] for way in _WAYS}
    true: list[list[Any]] = []
    for draw in range(_DRAWS):
        seen = hits if world == "real errors" else {g: _dealt(hits[g], truth[g], rng) for g in _PAIR}
        mixed = rng.permutation(len(found.lists))
        half = len(mixed) // 2
        own = np.isin(found.family, mixed[:half])
        kept = own & (rng.random(len(own)) < rates)
        tops = [top for ranked in found.lists if len(top := ranked[kept[ranked]][:_CUTOFF])]
        drawn = rng.integers(0, len(tops), half)
        everything, read = ({g: _shares(of[g], tops) for g in _PAIR} for of in (truth, seen))
        right, guessed = ({g: each[drawn] for g, each in of.items()} for of in (everything, read))
        true.append([each.value for each in _plain(everything)])
        tables = {g: _counted(truth[g][~own], seen[g][~own]) for g in _PAIR}
        turned = adjusted_shares(guessed, tables, pair=_PAIR, resamples=_RESAMPLES, seed=draw)
        ends["corrected"].append([*(turned.means[g] for g in _PAIR), turned.differences[_PAIR]])
        ends["naive"].append(_plain(guessed))
        ends["true labels"].append(_plain(right))
    return {
        "true shares": dict(zip(_GROUPS, np.mean(true, axis=0).tolist(), strict=True)),
        **{
            way: {
                group: _coverage([draw[at] for draw in intervals], np.array(true)[:, at])
                for at, group in enumerate(_GROUPS)
            }
            for way, intervals in ends.items()
        },
    }


def _dealt(hits: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The guesses dealt out anew among documents with the gender, and among those without."""
    found = hits.copy()
    for side in (np.flatnonzero(truth), np.flatnonzero(~truth)):
        found[side] = found[rng.permutation(side)]
    return found


def _shares(shows: np.ndarray, tops: list[np.ndarray]) -> np.ndarray:
    return np.array([shows[top].mean() for top in tops])


def _plain(shares: dict[str, np.ndarray]) -> list[stats.Interval]:
    """Intervals of the share of each group, and of their difference, over queries."""
    first, second = (shares[group] for group in _PAIR)
    return [stats.mean_interval(each, resamples=_RESAMPLES) for each in (first, second, first - second)]


def _counted(truth: np.ndarray, guess: np.ndarray) -> Confusion:
    return Confusion.of(
        {
            t: {g: int(((truth == (t == "yes")) & (guess == (g == "yes"))).sum()) for g in ("yes", "no")}
            for t in ("yes", "no")
        }
    )


def _coverage(found: list[stats.Interval], true: np.ndarray) -> dict[str, float]:
    low, high, value = (np.array([getattr(each, of) for each in found]) for of in ("low", "high", "value"))
    return {
        "intervals": len(found),
        "coverage": float(((low <= true) & (true <= high)).mean()),
        "bias": float((value - true).mean()),
        "width": float((high - low).mean()),
    }


def page(found: dict[str, Any]) -> str:
    """The table of docs/label-errors.md about documents."""
    heads = ["lexicon", "errors", "prevalence", *(f"{group}: {', '.join(_WAYS)}" for group in _GROUPS)]
    heads += ["bias of male − female: corrected, naive"]
    rows = []
    for row in found["rows"]:
        both = [", ".join(number(row[way][group]["coverage"], ".1%") for way in _WAYS) for group in _GROUPS]
        bias = ", ".join(number(row[way]["male − female"]["bias"]) for way in ("corrected", "naive"))
        rows.append([row["lexicon"], row["world"], row["prevalence"], *both, bias])
    words = "; ".join(
        f"{lexicon} finds {each['male']['of documents with it']:.0%} of male and "
        f"{each['female']['of documents with it']:.0%} of female documents, and a word of the gender in "
        f"{each['male']['of documents without it']:.0%} and {each['female']['of documents without it']:.0%} "
        "of the others"
        for lexicon, each in found["words"].items()
    )
    return (
        "**Documents.** RaB with magnitude='boolean' counts documents that hold a word of a group. "
        f"{found['documents']} documents of Grep-BiasIR with a gender that people gave them, ranked by BM25 "
        f"for {found['queries']} queries: {words}. {found['draws']:,} draws for each prevalence (seed "
        f"{found['seed']}): documents of half of the queries are ranked, those of the other half give the "
        f"confusion table. How often the 95 % interval of the share in the first {found['cutoff']} covers "
        "the true one, over all queries; with labels by people, which have no errors, for comparison. "
        "Queries share documents, and with them errors, which no interval over queries knows of. What counts "
        "as the true share was changed twice after trials of 40 draws: with the mean over draws in its place "
        "even labels by people covered it in 45% to 95% only.\n\n"
        f"{table(heads, rows, left=3)}\n"
        "Numbers: [evidence](evidence/word-errors.json), by `python -m benchmarks.evidence word-errors`.\n"
    )
