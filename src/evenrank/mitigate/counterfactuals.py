"""The counterfactual audit: how far does a document move when nothing about it changes but gender?

Every document is ranked beside its mirror image, in which women are men and men women. Both are in the
searched collection, so that its statistics favour neither. What a ranker makes of the two differs by gender
alone.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import evenrank
from evenrank import stats
from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import is_model
from evenrank.data.read import read_qrels, read_queries, read_table
from evenrank.data.schema import Block, listing
from evenrank.errors import InputError
from evenrank.mitigate.swapping import Swapper, swap, swapper
from evenrank.rankers import catalogue
from evenrank.rankers.base import Progress
from evenrank.rankers.index import Index
from evenrank.rankers.index.building import index
from evenrank.show.grid import Drawn
from evenrank.stats import Interval
from evenrank.text.matcher import Source

MIRROR = "#mirror"
_SAME = 1e-9  # scores that differ by less, relatively, differ by rounding


def counterfactual(
    docs: Any,
    queries: Any,
    *,
    rankers: Sequence[str] | Mapping[str, str] = ("bm25",),
    variants: Any = None,
    qrels: Any = None,
    depth: int = 1000,
    at: int | None = 100,
    names: bool = True,
    lexicon: Source | None = "rekabsaz2020",
    gendered_queries: bool = False,
    confidence: float = 0.95,
    progress: Progress | None = None,
    **settings: Any,
) -> Counterfactual:
    """Rank every document next to its mirror image, and measure the effect of gender alone.

    Parameters
    ----------
    docs, queries
        The collection, which is indexed again together with its mirror image, and the queries.
    rankers
        Names as in :func:`evenrank.search`, with settings in brackets: ``"bm25"``,
        ``"w2v_add(debias=hard)"``; a mapping gives them other names in the tables.
    variants
        Instead of mirror images, variants that people wrote: a table or file with the columns ``female`` and
        ``male``, ids of documents of the collection.
    qrels
        Look only at the documents judged for each query.
    depth
        How far the lists go.
    at
        A pair counts if one of the two is within this rank; None: any rank. A version that is not in the list
        gets the rank after its end, and no score.
    names, lexicon
        As in :func:`evenrank.swap`.
    gendered_queries
        Keep queries that are about a gender themselves: a ranker rightly prefers that gender for them.
    settings
        Settings for all rankers that have them, such as ``vectors="glove.bin"``.

    Returns
    -------
    :class:`Counterfactual`: per ranker the mean shift with interval and p, and every pair.
    """
    collection, requested = open_docs(docs), read_queries(queries)
    mirror = swapper(lexicon, names=names)
    left_out: dict[str, int] = {}
    if not gendered_queries:
        neutral = neutral_queries(requested, names=names, lexicon=lexicon)
        left_out["gendered queries"] = len(requested) - len(neutral)
        requested = neutral
    if requested.is_empty():
        raise InputError("all queries are about a gender; to keep them give gendered_queries=True")
    chosen = chosen_rankers(rankers, settings)
    judged = None if qrels is None else read_qrels(qrels).select("query_id", "doc_id")
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        if variants is None:
            searched, pairs, balanced = _beside_mirrors(collection, mirror, Path(folder))
            left_out["documents without gender"] = searched.documents - 2 * (len(pairs) + balanced)
            left_out["documents as female as male"] = balanced
        else:
            searched = index(collection, Path(folder) / "index")
            pairs = _variants(variants, searched)
        parts = []
        described = {}
        for place, (label, (name, given)) in enumerate(chosen.items()):
            ranker = catalogue.make(name, index=searched, **given)
            run = ranker.rank(requested, depth=depth)
            described[label] = {k: v for k, v in ranker.describe().items() if k != "index"}
            result = _paired(run, pairs, judged, at=at)
            parts.append(result.insert_column(0, pl.lit(label).alias("ranker")))
            if progress:
                progress(place + 1, len(chosen))
    table = pl.concat(parts)
    return Counterfactual(
        pairs=table,
        summary=summarised(table, list(chosen), mirrored=variants is None, confidence=confidence),
        left_out=left_out,
        confidence=confidence,
        provenance={
            "evenrank": evenrank.__version__,
            "docs": collection.describe(),
            "queries": len(requested),
            "depth": depth,
            "at": at,
            "names": names,
            "lexicon": None if mirror.lexicon is None else mirror.lexicon.name,
            "pairs of": "mirror images" if variants is None else "given variants",
            "rankers": described,
        },
    )


def neutral_queries(queries: pl.DataFrame, *, names: bool, lexicon: Source | None) -> pl.DataFrame:
    """The queries that name no gender: a mirror leaves them as they are."""
    return queries.filter(swap(queries["text"], names=names, lexicon=lexicon) == queries["text"])


def chosen_rankers(
    rankers: Sequence[str] | Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Label → name and settings; a common setting goes to the rankers that have it.

    A model in a folder is called by the folder's name, unless another is called so too.
    """
    named = rankers if isinstance(rankers, Mapping) else _labelled([*rankers])
    if isinstance(rankers, str) or not named:
        raise InputError("rankers is a list of names, such as ['bm25', 'w2v_add(debias=hard)']")
    result: dict[str, tuple[str, dict[str, Any]]] = {}
    used = set()
    for label, text in named.items():
        name, bracket, inside = text.partition("(")
        if bracket and not inside.endswith(")"):
            raise InputError(f"ranker {text!r}: write it as NAME(KEY=VALUE,…)")
        if catalogue.is_engine(name) or not catalogue.needs_index(name):
            raise InputError(f"{name} searches no index; choose a ranker that does")
        given = [each for each in inside.removesuffix(")").split(",") if each.strip()]
        known = set(catalogue.settings(name))
        used |= known & settings.keys()
        common = {key: value for key, value in settings.items() if key in known}
        result[label] = name, common | catalogue.parse_settings(name, given)
    if unknown := [key for key in settings if key not in used]:
        raise InputError(f"no ranker that is asked for has the setting {unknown[0]!r}")
    return result


def _labelled(rankers: list[str]) -> dict[str, str]:
    short = {}
    for text in rankers:
        name, bracket, inside = text.partition("(")
        called = Path(name).absolute().name if is_model(name) else name  # a link has its own name
        short[text] = called + bracket + inside
    often = Counter(short.values())
    return {label if often[label] == 1 else text: text for text, label in short.items()}


def _beside_mirrors(docs: Docs, mirror: Swapper, folder: Path) -> tuple[Index, pl.DataFrame, int]:
    """An index of all documents and the mirror images of those that change, and the pairs.

    Pairs: ``doc_id``, ``mirror_id``, ``lean`` (what the original leans to). Last, how many documents change
    but lean to neither gender.
    """
    rows: list[pl.DataFrame] = []

    def read(block: Block, *, keep: bool) -> pa.RecordBatch:
        batch = block.read()
        ids, texts = batch.column("doc_id").cast(pa.string()), batch.column("text").cast(pa.string())
        turned = mirror.texts(texts)
        changed = turned.female + turned.male > 0
        mask = pa.array(changed)
        mirror_ids = pa.array([f"{each}{MIRROR}" for each in ids.filter(mask).to_pylist()], pa.string())
        if keep:
            sign = np.sign(turned.male - turned.female)[changed]
            frame = {
                "doc_id": ids.filter(mask).to_pylist(),
                "mirror_id": mirror_ids.to_pylist(),
                "sign": sign,
            }
            rows.append(pl.DataFrame(frame, schema_overrides={"doc_id": pl.String, "mirror_id": pl.String}))
        both_texts = pa.concat_arrays([texts, turned.texts.filter(mask)])
        return pa.RecordBatch.from_arrays(
            [pa.concat_arrays([ids, mirror_ids]), both_texts], ["doc_id", "text"]
        )

    def blocks(*, keep: bool = False) -> Iterator[Block]:
        for block in docs.blocks():
            yield Block(partial(read, block, keep=keep), block.size)

    doubled = Docs(f"{docs.name} and its mirror image", blocks, size=docs.size)
    built = index(doubled, folder / "index")
    for block in blocks(keep=True):  # the index may read its blocks in any order, in any thread
        block.read()
    pairs = pl.concat(rows)
    if pairs.is_empty():
        raise InputError("no document has a gendered word; there is nothing to mirror")
    lean = pl.when(pl.col("sign") > 0).then(pl.lit("male")).otherwise(pl.lit("female"))
    leaning = pairs.filter(pl.col("sign") != 0).select("doc_id", "mirror_id", lean=lean)
    return built, leaning, len(pairs) - len(leaning)


def _variants(x: Any, searched: Index) -> pl.DataFrame:
    """Given pairs of documents, the female one first."""
    table = read_table(x)
    result = table.frame.columns
    if not {"female", "male"} <= set(result):
        raise table.error(f"variants need the columns female and male; found: {listing(result, 6)}")
    pairs = pl.DataFrame({"doc_id": table.ids("female"), "mirror_id": table.ids("male")})
    for column in pairs:
        missing = column.filter(pl.Series(searched.numbers(column.to_list())) < 0)
        if len(missing):
            raise InputError(f"variants name the document {missing[0]}, which the collection lacks")
    return pairs.with_columns(lean=pl.lit("female"))


def _paired(
    run: pl.DataFrame, pairs: pl.DataFrame, judged: pl.DataFrame | None, *, at: int | None
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


@dataclass(frozen=True)
class Shift:
    """What a change of gender does in one ranker's lists. Means over queries of means over their pairs.

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
        Of Wilcoxon's signed-rank test of the queries' rank shifts, and corrected for all rankers (Holm).
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
    p_holm: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual(Drawn):
    """How far gender alone moves documents, for each ranker.

    Attributes
    ----------
    pairs
        One row for each ranker, query and document: ``ranker, query_id, doc_id, mirror_id, lean, rank,
        mirror_rank, score, mirror_score, rank_shift, score_shift``. Shifts are positive where the male
        version stands higher; equal scores share a rank.
    summary
        A :class:`Shift` for each ranker.
    left_out
        What was not compared, and how often.
    """

    pairs: pl.DataFrame
    summary: tuple[Shift, ...]
    left_out: dict[str, int]
    confidence: float = 0.95
    provenance: dict[str, Any] = field(default_factory=dict)

    def rank_shift(self, ranker: str | None = None) -> pl.DataFrame:
        """The pairs of a ranker as the report draws them: ``query_id, doc_id, before, after, group``.

        ``before`` is the rank of the original, ``after`` that of its mirror image.
        """
        labels = [shift.ranker for shift in self.summary]
        wanted = labels[0] if ranker is None else ranker
        if wanted not in labels:
            raise InputError(f"{wanted!r} was not audited; there are: {', '.join(labels)}")
        result = self.pairs.filter(pl.col("ranker") == wanted)
        return result.select("query_id", "doc_id", before="rank", after="mirror_rank", group="lean")

    def frame(self) -> pl.DataFrame:
        """The summary as a table, one row for each ranker."""
        rows = []
        for shift in self.summary:
            row: dict[str, Any] = {}
            for key, value in asdict(shift).items():
                if isinstance(value, dict):
                    row |= {key: value["value"], f"{key}_low": value["low"], f"{key}_high": value["high"]}
                else:
                    row[key] = value
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self, *, pairs: bool = False) -> dict[str, Any]:
        result = {
            "rankers": [asdict(shift) for shift in self.summary],
            "left_out": self.left_out,
            "confidence": self.confidence,
            "provenance": self.provenance,
        }
        return result | ({"pairs": self.pairs.to_dicts()} if pairs else {})


def summarised(
    pairs: pl.DataFrame, rankers: Sequence[str], *, mirrored: bool, confidence: float
) -> tuple[Shift, ...]:
    """A line for each ranker, with p-values corrected for all of them; given variants have no original."""
    lines = [_line(pairs.filter(pl.col("ranker") == ranker), ranker, confidence) for ranker in rankers]
    if not mirrored:
        none = Interval(None, None, None)
        lines = [replace(line, of_female=none, of_male=none, original=none) for line in lines]
    corrected = stats.holm([line.p for line in lines])
    return tuple(replace(line, p_holm=p) for line, p in zip(lines, corrected, strict=True))


def _line(pairs: pl.DataFrame, ranker: str, confidence: float) -> Shift:
    shift = pl.col("rank_shift")
    by_query = pairs.group_by("query_id", maintain_order=True).agg(
        shift.mean(),
        pl.col("score_shift").mean(),
        moved=shift.abs().mean(),
        male=(shift > 0).mean(),
        female=(shift < 0).mean(),
        ties=(shift == 0).mean(),
        of_female=shift.filter(pl.col("lean") == "female").mean(),
        of_male=shift.filter(pl.col("lean") == "male").mean(),
        original=(pl.col("mirror_rank") - pl.col("rank")).mean(),
    )

    def interval(column: str) -> Interval:
        return stats.mean_interval(_known(by_query[column]), confidence=confidence)

    values = _known(by_query["rank_shift"])
    test = stats.paired(values, np.zeros(len(values)), test="wilcoxon") if len(values) else None
    shares = {name: by_query[name].mean() for name in ("male", "female", "ties")}
    return Shift(
        ranker=ranker,
        queries=len(by_query),
        pairs=len(pairs),
        rank_shift=interval("rank_shift"),
        score_shift=interval("score_shift"),
        moved=interval("moved"),
        male_wins=shares["male"],  # type: ignore[arg-type]
        female_wins=shares["female"],  # type: ignore[arg-type]
        ties=shares["ties"],  # type: ignore[arg-type]
        of_female=interval("of_female"),
        of_male=interval("of_male"),
        original=interval("original"),
        p=None if test is None else test.p,
        p_holm=None,
    )


def _known(column: pl.Series) -> np.ndarray:
    return column.drop_nulls().cast(pl.Float64).to_numpy()
