"""`er.mirror`: does a ranker prefer a gender, or do the texts? Rank texts and their mirror images.

In a mirror image women are men and men women (:func:`evenrank.swap`). Two experiments are made of it:

- The collection is ranked as it is, and mirrored. What the texts bring turns its sign in the mirror; what the
  ranker prefers by itself stays. So half the sum of the two leans is the preference, half the difference the
  content.
- With `pairs`, every document stands beside its mirror image in one collection, whose statistics then favour
  neither gender. How many ranks apart a ranker puts the two is the effect of gender alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.docs import Docs, open_docs
from evenrank.data.read import read_qrels, read_queries, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import Block, listing
from evenrank.errors import InputError
from evenrank.measures.base import sign_names_group
from evenrank.measures.evaluate import measure as measure_runs
from evenrank.measures.parse import parse
from evenrank.mitigate.swap import Swapper, swap, swapper
from evenrank.rankers import registry
from evenrank.rankers.base import Progress
from evenrank.rankers.index import Index
from evenrank.rankers.indexing import index
from evenrank.show import numbers
from evenrank.show.grid import Grid, Recorded
from evenrank.text.matcher import Source
from evenrank.text.tally import tally

SUFFIX = "#mirror"
_SAME = 1e-9  # scores that differ by less, relatively, differ by rounding

Ranking = Callable[[Docs, pl.DataFrame], Any]
"""Ranks the documents of a collection for queries: what it returns is a run."""
Row = dict[str, Any]

# Headings of the tables for people, their columns and the format of numbers.
_PREFERENCE = (
    ("ranker", "ranker", ""), ("measure", "measure", ""), ("as it is", "raw", "+.3f"),
    ("mirrored", "mirrored", "+.3f"), ("preference", "preference", "+.3f"),
    ("interval", "preference interval", "+.3f"), ("content", "content", "+.3f"),
    ("interval", "content interval", "+.3f"), ("corrected p", "p_holm", "p"), ("queries", "queries", ","),
    ("", "verdict", ""),
)  # fmt: skip
_SHIFT = (
    ("ranker", "ranker", ""), ("queries", "queries", ","), ("pairs", "pairs", ","),
    ("rank shift", "rank_shift", "+.2f"), ("interval", "rank_shift interval", "+.2f"),
    ("score shift", "score_shift", "+.2f"), ("interval", "score_shift interval", "+.2f"),
    ("moved", "moved", ".1f"), ("male", "male_wins", ".0%"), ("female", "female_wins", ".0%"),
    ("same", "ties", ".0%"), ("corrected p", "p_holm", "p"),
)  # fmt: skip
_SHIFT_NOTES = (
    "shift: how much higher the male version ranks; scores in standard deviations",
    "moved: how many ranks the two versions are apart",
    "male, female, same: which version ranks higher; p: Wilcoxon over queries, corrected (Holm)",
)


@dataclass(frozen=True, eq=False, repr=False)
class Mirror(Recorded):
    """What rankers make of texts and their mirror images.

    Attributes
    ----------
    summary
        A row for each ranker. Means over the ``queries`` have an interval in ``…_low`` and ``…_high``.
        ``p_holm`` is ``p``, corrected (Holm) over the rankers.

        ``raw, mirrored``: the lean on the collection as it is, and on its mirror image; positive leans toward
        the group ``positive``, negative toward ``negative``. ``preference``: (raw + mirrored) / 2, what the
        ranker prefers, whatever the texts are. ``content``: (raw − mirrored) / 2, what the texts bring; both
        together are the raw lean. ``p`` is of Student's one-sample test of the preference. ``verdict``:
        `prefers male` or `female`, `no preference` (0 for every query), `cannot tell`, `not judged`.

        With `pairs`: ``rank_shift``, ranks by which the male version stands higher; ``score_shift``, the same
        of scores, in standard deviations of the scores of a list; ``moved``, ranks between the two versions,
        whichever stands higher; ``original``, ranks by which originals stand above their mirror images,
        whatever their gender: how natural mirrored text looks to the ranker. ``male_wins, female_wins,
        ties``: share of pairs in which each version stands higher. ``p`` is of Wilcoxon's signed-rank test of
        the queries' rank shifts.
    values
        For each query ``ranker, query_id, raw, mirrored, preference, content``. With `pairs`, for each pair
        ``ranker, query_id, doc_id, mirror_id, lean, rank, mirror_rank, score, mirror_score, rank_shift,
        score_shift``; shifts are positive where the male version stands higher; equal scores share a rank.
    left_out
        What was not compared (or mirrored too), and how often.
    """

    summary: pl.DataFrame
    values: pl.DataFrame
    left_out: Mapping[str, int]
    confidence: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_pairs(self) -> bool:
        """Whether documents stand beside their mirror images."""
        return "rank_shift" in self.summary.columns

    def __getitem__(self, ranker: str) -> Row:
        for row in self.summary.iter_rows(named=True):
            if row["ranker"] == ranker:
                return row
        raise InputError(f"{ranker!r} was not tested; there are: {', '.join(self.summary['ranker'])}")

    def rank_shift(self, ranker: str | None = None) -> pl.DataFrame:
        """The pairs of a ranker as the report draws them: ``query_id, doc_id, before, after, group``.

        ``before`` is the rank of the original, ``after`` that of its mirror image.
        """
        if not self.of_pairs:
            raise InputError("the collection was mirrored as a whole; rank shifts need pairs=True")
        label = self.summary["ranker"][0] if ranker is None else self[ranker]["ranker"]
        result = self.values.filter(pl.col("ranker") == label)
        return result.select("query_id", "doc_id", before="rank", after="mirror_rank", group="lean")

    def frame(self) -> pl.DataFrame:
        """One row for each ranker."""
        return self.summary

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict without the values of single queries and pairs."""
        return {
            "rankers": self.summary.to_dicts(),
            "left_out": dict(self.left_out),
            "confidence": self.confidence,
            "provenance": dict(self.provenance),
        }

    def grid(self) -> Grid:
        """The rankers as a table for people."""
        columns = _SHIFT if self.of_pairs else _PREFERENCE
        rows = [
            [_cell(row, column, form) for _, column, form in columns]
            for row in self.summary.iter_rows(named=True)
        ]
        return Grid([heading for heading, *_ in columns], rows, left=1 if self.of_pairs else 2)

    def remarks(self) -> list[str]:
        counts = [f"{reason}: {count:,}" for reason, count in self.left_out.items() if count]
        return [*_SHIFT_NOTES, *counts] if self.of_pairs else counts

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])


def _cell(row: Row, column: str, form: str) -> str:
    name, _, interval = column.partition(" ")
    if interval:
        return numbers.interval(row[f"{name}_low"], row[f"{name}_high"], form)
    if form == "p":
        return numbers.p_value(row[name])
    return numbers.number(row[name], form) if form else row[name]


def mirror(
    docs: Any,
    queries: Any,
    *,
    rankers: Sequence[str | Ranking] | Mapping[str, str | Ranking] = ("bm25",),
    measure: str | Measure = "ARaB@10",
    pairs: bool = False,
    variants: Any = None,
    candidates: Any = None,
    gendered_queries: bool = False,
    depth: int | None = None,
    at: int | None = 100,
    names: bool = True,
    lexicon: Source = "rekabsaz2020",
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Mirror:
    """Rank texts and their mirror images: what does a ranker prefer, apart from what the texts bring?

    Parameters
    ----------
    docs, queries
        The collection, which is indexed anew, and the queries.
    rankers
        Names as in :func:`evenrank.search`, with settings in brackets: ``"w2v_add(debias=hard)"``; or
        functions: ``rank(docs, queries)`` gets a collection and returns a run. A mapping gives them labels.
    measure
        A measure whose sign names a group, of words in the top documents: the lean. Not for `pairs`.
    pairs
        Rank every document beside its mirror image, and compare their ranks.
    variants
        Pairs that people wrote, instead of mirror images: a table or file with the columns ``female`` and
        ``male``, ids of documents of the collection.
    candidates
        Only these documents of each query (a table of query_id and doc_id, such as qrels). Those that a
        ranker does not find come last; a pair of which it finds neither does not count.
    gendered_queries
        Keep queries that name a gender, although a ranker rightly prefers that gender for them. Without
        `pairs` they are mirrored with the texts.
    depth
        How far the lists go: 1000 for pairs, else 100, and at least the measure's cut-off.
    at
        A pair counts if one of the two is within this rank; None: any rank. A version that is not in the list
        gets the rank after its end, and no score.
    names, lexicon
        As in :func:`evenrank.swap`; the lexicon also counts the words.
    settings
        Settings for all rankers that have them, such as ``vectors="glove.bin"``.
    """
    by_pairs = pairs or variants is not None
    wanted: Any = parse(measure)
    if not by_pairs and not sign_names_group(wanted):
        raise InputError(
            f"{wanted} names no group by its sign; the mirror test needs one that does, as ARaB@10"
        )
    collection, requested = open_docs(docs), read_queries(queries)
    chosen = _chosen(rankers, settings)
    swaps = swapper(lexicon, names=names)
    neutral = neutral_queries(requested, names=names, lexicon=lexicon)
    left_out: dict[str, int] = {}
    if not gendered_queries:
        left_out["queries left out because they name a gender"] = len(requested) - len(neutral)
        requested = neutral
    elif not by_pairs:
        left_out["queries that name a gender and were mirrored"] = len(requested) - len(neutral)
    if requested.is_empty():
        raise InputError("all queries name a gender; to compare them too, give gendered_queries=True")
    judged = None if candidates is None else read_qrels(candidates).select("query_id", "doc_id")
    longest = depth or (1000 if by_pairs else 100)
    values: list[pl.DataFrame] = []
    rows: list[Row] = []
    how = {"confidence": confidence, "seed": seed}
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        if by_pairs:
            if variants is None:
                searched, paired, unpaired = _beside_mirrors(collection, swaps)
                left_out |= unpaired
            else:
                searched, paired = collection, _variants(variants, collection)
            for label, run in _runs(chosen, searched, requested, longest, Path(folder) / "index"):
                table = _pairs(run, paired, judged, at).insert_column(0, pl.lit(label).alias("ranker"))
                values.append(table)
                rows.append(_shift(label, table, variants is None, how))
                if progress is not None:
                    progress(len(rows), len(chosen))
        else:
            mirrored_queries = swap(requested, names=names, lexicon=lexicon)
            sides = ((collection, requested), (swaps.docs(collection), mirrored_queries))
            leans: list[dict[str, dict[str, float]]] = []
            for texts, questions in sides:
                counts = tally(texts, lexicon)
                deep = None if judged is not None else max(longest, wanted.depth())
                leans.append({})
                place = Path(folder) / f"{len(leans)}"
                for label, run in _runs(chosen, texts, questions, deep, place):
                    seen = run if judged is None else _among(run, judged, questions)
                    result = measure_runs(seen, [wanted], tally=counts, confidence=None, missing="error")
                    leans[-1][label] = result[wanted].per_query()
                    if progress is not None:
                        progress(sum(map(len, leans)), 2 * len(chosen))
            groups = wanted.pair(counts.groups)
            for label in chosen:
                values.append(_leans(label, *(side[label] for side in leans)))
                rows.append(_preference(label, str(wanted), groups, values[-1], how))
    for row, p in zip(rows, stats.holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
        if not by_pairs:
            row["verdict"] = _verdict(row)
    return Mirror(
        summary=pl.DataFrame(rows, infer_schema_length=None),
        values=pl.concat(values),
        left_out=left_out,
        confidence=confidence,
        provenance={
            "evenrank": evenrank.__version__,
            "docs": collection.describe(),
            "queries": len(requested),
            "gendered queries": gendered_queries,
            "names": names,
            "lexicon": None if swaps.lexicon is None else swaps.lexicon.name,
            "rankers": {label: _described(ranker) for label, ranker in chosen.items()},
            "depth": longest,
            **({"at": at, "variants": variants is not None} if by_pairs else {"measure": str(wanted)}),
            "seed": seed,
        },
    )


def neutral_queries(queries: pl.DataFrame, *, names: bool, lexicon: Source | None) -> pl.DataFrame:
    """The queries that name no gender: a mirror leaves them as they are."""
    return queries.filter(swap(queries["text"], names=names, lexicon=lexicon) == queries["text"])


def _chosen(
    rankers: Sequence[str | Ranking] | Mapping[str, str | Ranking], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Label → a function, or name and settings; a common setting goes to the rankers that have it."""
    if isinstance(rankers, str) or not rankers:
        raise InputError("rankers is a list of names, such as ['bm25', 'w2v_add(debias=hard)']")
    if not isinstance(rankers, Mapping):
        rankers = {each if isinstance(each, str) else getattr(each, "__name__", "a function"): each
                   for each in rankers}  # fmt: skip
    result: dict[str, Any] = {}
    used: set[str] = set()
    for label, text in rankers.items():
        if not isinstance(text, str):
            result[label] = text
            continue
        name, bracket, inside = text.partition("(")
        if bracket and not inside.endswith(")"):
            raise InputError(f"ranker {text!r}: write it as NAME(KEY=VALUE,…)")
        if registry.is_engine(name) or not registry.needs_index(name):
            raise InputError(f"{name} searches no index; choose a ranker that does")
        own = [each for each in inside.removesuffix(")").split(",") if each.strip()]
        common = {key: value for key, value in settings.items() if key in registry.settings(name)}
        used |= common.keys()
        result[label] = name, common | registry.parse_settings(name, own)
    if unknown := [key for key in settings if key not in used]:
        raise InputError(f"none of the rankers has the setting {unknown[0]!r}")
    return result


def _described(ranker: Any) -> str:
    """A ranker with its settings."""
    if callable(ranker):
        return "a function"
    name, settings = ranker
    return f"{name}({', '.join(f'{key}={value}' for key, value in settings.items())})" if settings else name


def _runs(
    chosen: Mapping[str, Any], docs: Docs, queries: pl.DataFrame, depth: int | None, folder: Path
) -> Iterator[tuple[str, pl.DataFrame]]:
    """The label and the run of each ranker; of all documents if there is no depth."""
    searched: Index | None = None
    for label, ranker in chosen.items():
        if callable(ranker):
            yield label, read_run(ranker(docs, queries))
        else:
            searched = searched or index(docs, folder)
            name, settings = ranker
            made = registry.make(name, index=searched, **settings)
            yield label, made.rank(queries, depth=depth or max(searched.documents, 1))


def _means(columns: Mapping[str, Any], how: Mapping[str, Any]) -> Row:
    """The mean of each column with its interval; null where it has no value."""
    row: Row = {}
    for name, values in columns.items():
        mean = stats.mean_interval(values, **how)
        row |= {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high}
    return row


# The collection as it is, and mirrored


def _among(run: pl.DataFrame, own: pl.DataFrame, requested: pl.DataFrame) -> pl.DataFrame:
    """Each query's own candidates in the order of the run; what it lacks comes last."""
    wanted = own.filter(pl.col("query_id").is_in(requested["query_id"].implode()))
    ranked = wanted.join(run, on=["query_id", "doc_id"], how="left", maintain_order="left")
    lowest = pl.min_horizontal(pl.col("score").min().over("query_id").fill_null(0.0) - 1, pl.lit(0.0))
    return read_run(ranked.select("query_id", "doc_id", pl.col("score").fill_null(lowest)))


def _leans(label: str, raw: Mapping[str, float], mirrored: Mapping[str, float]) -> pl.DataFrame:
    """The lean of each query on both sides, and its two parts."""
    both = [query for query in raw if query in mirrored]
    a, b = np.array([raw[q] for q in both]), np.array([mirrored[q] for q in both])
    columns = {"raw": a, "mirrored": b, "preference": (a + b) / 2, "content": (a - b) / 2}
    return pl.DataFrame(
        {"ranker": [label] * len(both), "query_id": both, **columns},
        schema={"ranker": pl.String, "query_id": pl.String, **dict.fromkeys(columns, pl.Float64)},
    )


def _preference(
    label: str, measure: str, groups: tuple[str, str], values: pl.DataFrame, how: Mapping[str, Any]
) -> Row:
    columns = {name: values[name].to_numpy() for name in ("raw", "mirrored", "preference", "content")}
    test = stats.paired(columns["preference"], np.zeros(len(values)))
    row = {"ranker": label, "measure": measure, "queries": len(values), **_means(columns, how), "p": test.p}
    return row | {"p_holm": None, "positive": groups[0], "negative": groups[1]}


def _verdict(row: Row) -> str:
    if row["p_holm"] is None or row["preference"] is None:
        return "not judged"
    if row["preference_low"] == row["preference_high"] == 0:  # ranked alike in the mirror, query by query
        return "no preference"
    if row["p_holm"] >= 0.05:
        return "cannot tell"
    return f"prefers {row['positive'] if row['preference'] > 0 else row['negative']}"


# Documents beside their mirror images


def _beside_mirrors(docs: Docs, swaps: Swapper) -> tuple[Docs, pl.DataFrame, dict[str, int]]:
    """All documents and the mirror images of those that change; the pairs; how many documents have no pair.

    Pairs: ``doc_id``, ``mirror_id``, ``lean`` (what the original leans to).
    """

    def doubled(block: Block) -> pa.RecordBatch:
        batch = block.read()
        ids, texts = batch.column("doc_id").cast(pa.string()), batch.column("text").cast(pa.string())
        turned = swaps.texts(texts)
        changed = pa.array(turned.female + turned.male > 0)
        mirror_ids = pa.array([doc_id + SUFFIX for doc_id in ids.filter(changed).to_pylist()], pa.string())
        both = [pa.concat_arrays([ids, mirror_ids]), pa.concat_arrays([texts, turned.texts.filter(changed)])]
        return pa.RecordBatch.from_arrays(both, ["doc_id", "text"])

    def blocks() -> Iterator[Block]:
        for block in docs.blocks():
            yield Block(partial(doubled, block), block.size)

    counts = []
    for batch in docs.batches():
        turned = swaps.texts(batch.column("text").cast(pa.string()))
        ids = batch.column("doc_id").cast(pa.string()).to_pylist()
        counts.append(pl.DataFrame({"doc_id": ids, "lead": turned.male - turned.female,
                                    "all": turned.male + turned.female}))  # fmt: skip
    gendered = pl.concat(counts).filter(pl.col("all") > 0)
    if gendered.is_empty():
        raise InputError("no document has a gendered word; there is nothing to mirror")
    lean = pl.when(pl.col("lead") > 0).then(pl.lit("male")).otherwise(pl.lit("female"))
    pairs = gendered.filter(pl.col("lead") != 0).select(
        "doc_id", mirror_id=pl.col("doc_id") + SUFFIX, lean=lean
    )
    unpaired = {
        "documents left out because no word shows a gender": sum(map(len, counts)) - len(gendered),
        "documents left out because they are as female as male": len(gendered) - len(pairs),
    }
    return Docs(f"{docs.name} and its mirror image", blocks, size=docs.size), pairs, unpaired


def _variants(x: Any, docs: Docs) -> pl.DataFrame:
    """Given pairs of documents, the female one first."""
    table = read_table(x)
    columns = table.frame.columns
    if not {"female", "male"} <= set(columns):
        raise table.error(f"variants need the columns female and male; found: {listing(columns, 6)}")
    pairs = pl.DataFrame({"doc_id": table.ids("female"), "mirror_id": table.ids("male")})
    named = pl.concat([pairs["doc_id"], pairs["mirror_id"]]).unique(maintain_order=True).to_list()
    texts = docs.texts(named)
    if missing := [doc_id for doc_id in named if doc_id not in texts]:
        raise InputError(f"variants name the document {missing[0]}, which the collection lacks")
    return pairs.with_columns(lean=pl.lit("female"))


def _pairs(
    run: pl.DataFrame, pairs: pl.DataFrame, judged: pl.DataFrame | None, at: int | None
) -> pl.DataFrame:
    """Both versions of each document in each list: ranks, scores, and their shifts."""
    ranks = pl.col("score").rank("min", descending=True).over("query_id").cast(pl.Int64)
    lists = run.select("query_id", "doc_id", "score", rank=ranks)
    whole = run.group_by("query_id").agg(spread=pl.col("score").std(), behind=pl.len().cast(pl.Int64) + 1)
    if judged is not None:
        wanted = judged.join(pairs, on="doc_id")
    else:
        as_first = lists.select("query_id", "doc_id").join(pairs, on="doc_id")
        as_second = lists.select("query_id", mirror_id="doc_id").join(pairs, on="mirror_id")
        wanted = pl.concat([as_first, as_second.select(as_first.columns)]).unique(maintain_order=True)
    table = (
        wanted.join(lists, on=["query_id", "doc_id"], how="left")
        .join(
            lists.rename({"doc_id": "mirror_id", "score": "mirror_score", "rank": "mirror_rank"}),
            on=["query_id", "mirror_id"],
            how="left",
        )
        .join(whole, on="query_id")
        .filter(pl.col("rank").is_not_null() | pl.col("mirror_rank").is_not_null())
        .with_columns(pl.col("rank", "mirror_rank").fill_null(pl.col("behind")))
    )
    largest = pl.max_horizontal(pl.col("score").abs(), pl.col("mirror_score").abs())
    same = ((pl.col("score") - pl.col("mirror_score")).abs() <= _SAME * largest).fill_null(False)
    best = pl.min_horizontal("rank", "mirror_rank")
    table = table.with_columns(
        rank=pl.when(same).then(best).otherwise("rank"),
        mirror_rank=pl.when(same).then(best).otherwise("mirror_rank"),
        mirror_score=pl.when(same).then("score").otherwise("mirror_score"),
    )
    if at is not None:
        table = table.filter(pl.min_horizontal("rank", "mirror_rank") <= at)
    sign = pl.when(pl.col("lean") == "female").then(1).otherwise(-1)
    deviations = (pl.col("mirror_score") - pl.col("score")) / pl.col("spread")
    return table.select(
        "query_id", "doc_id", "mirror_id", "lean", "rank", "mirror_rank", "score", "mirror_score",
        rank_shift=sign * (pl.col("rank") - pl.col("mirror_rank")),
        score_shift=sign * pl.when(pl.col("spread") > 0).then(deviations).otherwise(0.0),
    ).sort("query_id", "rank", "doc_id")  # fmt: skip


def _shift(label: str, values: pl.DataFrame, mirrored: bool, how: Mapping[str, Any]) -> Row:
    """Means over the queries of means over their pairs; given variants have no original."""
    shift = pl.col("rank_shift")
    original = pl.col("mirror_rank") - pl.col("rank")
    by_query = values.group_by("query_id", maintain_order=True).agg(
        shift.mean(),
        pl.col("score_shift").mean(),
        moved=shift.abs().mean(),
        original=original.mean() if mirrored else pl.lit(None),
        male_wins=(shift > 0).mean(),
        female_wins=(shift < 0).mean(),
        ties=(shift == 0).mean(),
    )
    names = ("rank_shift", "score_shift", "moved", "original")
    columns = {name: by_query[name].drop_nulls().cast(pl.Float64).to_numpy() for name in names}
    shares = {name: by_query[name].mean() for name in ("male_wins", "female_wins", "ties")}
    shifts = columns["rank_shift"]
    p = stats.paired(shifts, np.zeros(len(shifts)), test="wilcoxon").p if len(shifts) else None
    counts = {"ranker": label, "queries": len(by_query), "pairs": len(values)}
    return {**counts, **_means(columns, how), **shares, "p": p}
