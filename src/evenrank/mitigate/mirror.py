"""`er.mirror`: does a ranker prefer a gender, or do the texts? Rank texts and their mirror images.

In a mirror image women are men and men women (:func:`evenrank.swap`). Two experiments are made of it:

- The collection is ranked as it is, and mirrored. What the texts bring turns its sign in the mirror; what the
  ranker prefers by itself stays. So half the sum of the two leans is the preference, half the difference the
  content.
- With `pairs`, every document stands beside its mirror image in one collection, whose statistics then favour
  neither gender. How many ranks apart a ranker puts the two is the effect of gender alone.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import is_model
from evenrank.data.read import read_qrels, read_queries, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import Block, listing
from evenrank.errors import InputError, check_choice
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
from evenrank.stats import Interval
from evenrank.text.matcher import Source
from evenrank.text.tally import tally

SUFFIX = "#mirror"
_SAME = 1e-9  # scores that differ by less, relatively, differ by rounding
_NONE = Interval(None, None, None)

Ranking = Callable[[Docs, pl.DataFrame], Any]
"""Ranks the documents of a collection for queries: what it returns is a run."""


@dataclass(frozen=True, kw_only=True)
class Preference:
    """One ranker on a collection and its mirror image. Positive leans toward the group ``of`` (male).

    Attributes
    ----------
    raw, mirrored
        The lean on the collection as it is, and on its mirror image.
    preference
        (raw + mirrored) / 2: what the ranker prefers, whatever the texts are.
    content
        (raw − mirrored) / 2: what the texts bring. Together they are the raw lean.
    p, p_holm
        Of Student's one-sample test of the preference, and corrected (Holm) over the rankers.
    queries
        Over which all of these are means; they have a value on both sides.
    of, against
        The groups that positive and negative values lean toward.
    """

    ranker: str
    measure: str
    queries: int
    raw: Interval
    mirrored: Interval
    preference: Interval
    content: Interval
    p: float | None
    p_holm: float | None = None
    of: str = "male"
    against: str = "female"

    HEADS: ClassVar[tuple[str, ...]] = (
        "ranker", "measure", "as it is", "mirrored", "preference", "interval", "content", "interval",
        "corrected p", "queries", "",
    )  # fmt: skip
    NOTES: ClassVar[tuple[str, ...]] = ()

    @property
    def verdict(self) -> str:
        """`prefers male` or `female`, `no preference` (0 for every query), `cannot tell`, `not judged`."""
        if self.p_holm is None or self.preference.value is None:
            return "not judged"
        if self.preference.low == self.preference.high == 0:  # ranked alike in the mirror, query by query
            return "no preference"
        if self.p_holm >= 0.05:
            return "cannot tell"
        return f"prefers {self.of if self.preference.value > 0 else self.against}"

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self)
        del content["of"], content["against"]
        return content | {"positive": self.of, "verdict": self.verdict}

    def cells(self) -> list[str]:
        leans = [numbers.signed(self.raw.value), numbers.signed(self.mirrored.value)]
        parts = [*_bounded(self.preference), *_bounded(self.content)]
        end = [numbers.p_value(self.p_holm), f"{self.queries:,}", self.verdict]
        return [self.ranker, self.measure, *leans, *parts, *end]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """One ranker on documents beside their mirror images. Means over queries of means over their pairs.

    Attributes
    ----------
    rank_shift
        Ranks by which the male version stands higher: positive favours men, negative women.
    score_shift
        The same of scores, in standard deviations of the scores of a list.
    moved
        Ranks between the two versions, whichever stands higher: how much gender matters to the ranker at all.
    male_wins, female_wins, ties
        Share of pairs in which each version stands higher.
    of_female, of_male
        The rank shift of documents that lean female, and of those that lean male, before they are mirrored.
    original
        Ranks by which originals stand above their mirror images, whatever their gender: how natural mirrored
        text looks to the ranker. In `rank_shift` it cancels out where as many documents lean either way.
    p, p_holm
        Of Wilcoxon's signed-rank test of the queries' rank shifts, and corrected (Holm) over the rankers.
    """

    ranker: str
    queries: int
    pairs: int
    rank_shift: Interval
    score_shift: Interval
    moved: Interval
    male_wins: float | None
    female_wins: float | None
    ties: float | None
    of_female: Interval
    of_male: Interval
    original: Interval
    p: float | None
    p_holm: float | None = None

    HEADS: ClassVar[tuple[str, ...]] = (
        "ranker", "queries", "pairs", "rank shift", "interval", "score shift", "interval", "moved", "male",
        "female", "same", "corrected p",
    )  # fmt: skip
    NOTES: ClassVar[tuple[str, ...]] = (
        "shift: how much higher the male version ranks; scores in standard deviations",
        "moved: how many ranks the two versions are apart",
        "male, female, same: which version ranks higher; p: Wilcoxon over queries, corrected (Holm)",
    )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> list[str]:
        shifts = [*_bounded(self.rank_shift, "+.2f"), *_bounded(self.score_shift, "+.2f")]
        shares = [numbers.number(each, ".0%") for each in (self.male_wins, self.female_wins, self.ties)]
        end = [numbers.number(self.moved.value, ".1f"), *shares, numbers.p_value(self.p_holm)]
        return [self.ranker, f"{self.queries:,}", f"{self.pairs:,}", *shifts, *end]


def _bounded(value: Interval, form: str = numbers.SIGNED) -> list[str]:
    """A value and its interval, a cell each."""
    return [numbers.number(value.value, form), numbers.interval(value.low, value.high, form)]


@dataclass(frozen=True, eq=False, repr=False)
class Mirror(Recorded):
    """What rankers make of texts and their mirror images.

    Attributes
    ----------
    rows
        A `Preference` for each ranker; with `pairs`, a `Shift`.
    values
        For each query ``ranker, query_id, raw, mirrored, preference, content``. With `pairs`, for each pair
        ``ranker, query_id, doc_id, mirror_id, lean, rank, mirror_rank, score, mirror_score, rank_shift,
        score_shift``; shifts are positive where the male version stands higher; equal scores share a rank.
    left_out
        What was not compared (or mirrored too), and how often.
    """

    rows: tuple[Any, ...]
    values: pl.DataFrame
    left_out: Mapping[str, int]
    confidence: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_pairs(self) -> bool:
        """Whether documents stand beside their mirror images."""
        return isinstance(self.rows[0], Shift)

    def __getitem__(self, ranker: str) -> Any:
        for row in self.rows:
            if row.ranker == ranker:
                return row
        raise InputError(f"{ranker!r} was not tested; there are: {', '.join(r.ranker for r in self.rows)}")

    def rank_shift(self, ranker: str | None = None) -> pl.DataFrame:
        """The pairs of a ranker as the report draws them: ``query_id, doc_id, before, after, group``.

        ``before`` is the rank of the original, ``after`` that of its mirror image.
        """
        if not self.of_pairs:
            raise InputError("the collection was mirrored as a whole; rank shifts need pairs=True")
        label = self.rows[0].ranker if ranker is None else self[ranker].ranker
        result = self.values.filter(pl.col("ranker") == label)
        return result.select("query_id", "doc_id", before="rank", after="mirror_rank", group="lean")

    def frame(self) -> pl.DataFrame:
        """One row for each ranker."""
        rows = []
        for each in self.rows:
            row: dict[str, Any] = {}
            for key, value in each.to_dict().items():
                if isinstance(value, dict):
                    row |= {key: value["value"], f"{key}_low": value["low"], f"{key}_high": value["high"]}
                else:
                    row[key] = value
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict without the values of single queries and pairs."""
        return {
            "rankers": [row.to_dict() for row in self.rows],
            "left_out": dict(self.left_out),
            "confidence": self.confidence,
            "provenance": dict(self.provenance),
        }

    def grid(self) -> Grid:
        """The rankers as a table for people."""
        left = 1 if self.of_pairs else 2
        return Grid(list(self.rows[0].HEADS), [row.cells() for row in self.rows], left=left)

    def remarks(self) -> list[str]:
        counts = [f"{reason}: {count:,}" for reason, count in self.left_out.items() if count]
        return [*self.rows[0].NOTES, *counts]

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])


def mirror(
    docs: Any,
    queries: Any,
    *,
    rankers: Sequence[str | Ranking] | Mapping[str, str | Ranking] = ("bm25",),
    measure: str | Measure = "ARaB@10",
    pairs: bool = False,
    variants: Any = None,
    candidates: Any = None,
    gendered_queries: Literal["leave out", "mirror", "keep"] = "leave out",
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
        Queries that name a gender are left out, mirrored with the texts (not with `pairs`), or kept as they
        are: a ranker rightly prefers that gender for them.
    depth
        How far the lists go: 1000 for pairs, else 100, and at least the measure's cut-off.
    at
        A pair counts if one of the two is within this rank; None: any rank. A version that is not in the list
        gets the rank after its end, and no score.
    names, lexicon
        As in :func:`evenrank.swap`; the lexicon also counts the words.
    settings
        Settings for all rankers that have them, such as ``vectors="glove.bin"``.

    Returns
    -------
    A `Mirror` with a `Preference` of each ranker; with `pairs`, a `Shift`.
    """
    by_pairs = pairs or variants is not None
    ways = ("leave out", "keep") if by_pairs else ("leave out", "keep", "mirror")
    check_choice("gendered_queries", gendered_queries, ways)
    wanted: Any = parse(measure)
    if not by_pairs and not sign_names_group(wanted):
        raise InputError(
            f"{wanted} names no group by its sign; the mirror test needs one that does, as ARaB@10"
        )
    collection, requested = open_docs(docs), read_queries(queries)
    chosen = _chosen(rankers, settings)
    swaps = swapper(lexicon, names=names)
    neutral = neutral_queries(requested, names=names, lexicon=lexicon)
    gendered, left_out = len(requested) - len(neutral), {}
    if gendered_queries == "leave out":
        left_out["queries left out because they name a gender"] = gendered
        requested = neutral
    elif gendered_queries == "mirror":
        left_out["queries that name a gender and were mirrored"] = gendered
    if requested.is_empty():
        raise InputError(
            f"all queries name a gender; to compare them too, give gendered_queries={ways[-1]!r}"
        )
    judged = None if candidates is None else read_qrels(candidates).select("query_id", "doc_id")
    longest = depth or (1000 if by_pairs else 100)
    finished = itertools.count(1)

    def done() -> None:
        if progress is not None:
            progress(next(finished), len(chosen) * (1 if by_pairs else 2))

    values: list[pl.DataFrame] = []
    rows: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        if by_pairs:
            if variants is None:
                searched, paired, unpaired = _beside_mirrors(collection, swaps)
                left_out |= unpaired
            else:
                searched, paired = collection, _variants(variants, collection)
            for label, run in _runs(chosen, searched, requested, longest, Path(folder) / "index", done):
                table = _pairs(run, paired, judged, at).insert_column(0, pl.lit(label).alias("ranker"))
                values.append(table)
                rows.append(_shift(label, table, variants is None, confidence, seed))
        else:
            leans: dict[str, list[dict[str, float]]] = {label: [] for label in chosen}
            for texts in (collection, swaps.docs(collection)):
                counts = tally(texts, lexicon)
                questions = requested
                if texts is not collection and gendered_queries == "mirror":
                    questions = swap(requested, names=names, lexicon=lexicon)
                deep = None if judged is not None else max(longest, wanted.depth())
                place = Path(folder) / ("raw" if texts is collection else "mirrored")
                for label, run in _runs(chosen, texts, questions, deep, place, done):
                    seen = run if judged is None else _among(run, judged, questions)
                    result = measure_runs(seen, [wanted], tally=counts, confidence=None, missing="error")
                    leans[label].append(result[wanted].per_query())
            groups = wanted.pair(counts.groups)
            for label, sides in leans.items():
                values.append(_leans(label, *sides))
                rows.append(_preference(label, str(wanted), groups, values[-1], confidence, seed))
    corrected = stats.holm([row.p for row in rows])
    return Mirror(
        rows=tuple(replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)),
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
            "rankers": {label: _described(how) for label, how in chosen.items()},
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
    labelled = rankers if isinstance(rankers, Mapping) else label_rankers([*rankers])
    if isinstance(rankers, str) or not labelled:
        raise InputError("rankers is a list of names, such as ['bm25', 'w2v_add(debias=hard)']")
    result: dict[str, Any] = {}
    used: set[str] = set()
    for label, text in labelled.items():
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


def label_rankers(rankers: list[Any]) -> dict[str, Any]:
    """Label → ranker: functions by their names, models by those of their folders if no other is called so."""
    short = {}
    for text in rankers:
        if callable(text):
            short[text] = getattr(text, "__name__", type(text).__name__)
            continue
        name, bracket, inside = text.partition("(")
        called = Path(name).absolute().name if is_model(name) else name  # a link has its own name
        short[text] = called + bracket + inside
    often = Counter(short.values())
    return {label if often[label] == 1 else text: text for text, label in short.items()}


def _described(how: Any) -> str:
    """A ranker with its settings."""
    if callable(how):
        return "a function"
    name, settings = how
    return f"{name}({', '.join(f'{key}={value}' for key, value in settings.items())})" if settings else name


def _runs(
    chosen: Mapping[str, Any],
    docs: Docs,
    queries: pl.DataFrame,
    depth: int | None,
    folder: Path,
    progress: Callable[[], None],
) -> Iterator[tuple[str, pl.DataFrame]]:
    """The label and the run of each ranker; of all documents if there is no depth."""
    searched: Index | None = None
    for label, how in chosen.items():
        if callable(how):
            run = read_run(how(docs, queries))
        else:
            searched = searched or index(docs, folder)
            name, settings = how
            ranker = registry.make(name, index=searched, **settings)
            run = ranker.rank(queries, depth=depth or max(searched.documents, 1))
        yield label, run
        progress()


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
    label: str, measure: str, groups: tuple[str, str], values: pl.DataFrame, confidence: float, seed: int
) -> Preference:
    parts = {name: values[name].to_numpy() for name in ("raw", "mirrored", "preference", "content")}
    intervals: dict[str, Any] = {
        name: stats.mean_interval(x, confidence=confidence, seed=seed) for name, x in parts.items()
    }
    p = stats.paired(parts["preference"], np.zeros(len(values))).p
    return Preference(
        ranker=label, measure=measure, queries=len(values), **intervals, p=p, of=groups[0], against=groups[1]
    )


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


def _shift(label: str, values: pl.DataFrame, mirrored: bool, confidence: float, seed: int) -> Shift:
    """Means over the queries; given variants have no original."""
    shift = pl.col("rank_shift")
    by_query = values.group_by("query_id", maintain_order=True).agg(
        shift.mean(),
        pl.col("score_shift").mean(),
        moved=shift.abs().mean(),
        male_wins=(shift > 0).mean(),
        female_wins=(shift < 0).mean(),
        ties=(shift == 0).mean(),
        of_female=shift.filter(pl.col("lean") == "female").mean(),
        of_male=shift.filter(pl.col("lean") == "male").mean(),
        original=(pl.col("mirror_rank") - pl.col("rank")).mean(),
    )

    def known(column: str) -> np.ndarray:
        return by_query[column].drop_nulls().cast(pl.Float64).to_numpy()

    means: dict[str, Any] = {name: by_query[name].mean() for name in ("male_wins", "female_wins", "ties")}
    for name in ("rank_shift", "score_shift", "moved", "of_female", "of_male", "original"):
        means[name] = stats.mean_interval(known(name), confidence=confidence, seed=seed)
    if not mirrored:
        means |= dict.fromkeys(("of_female", "of_male", "original"), _NONE)
    shifts = known("rank_shift")
    p = stats.paired(shifts, np.zeros(len(shifts)), test="wilcoxon").p if len(shifts) else None
    return Shift(ranker=label, queries=len(by_query), pairs=len(values), **means, p=p)
