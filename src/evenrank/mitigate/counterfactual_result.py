"""What a counterfactual audit finds: pairs, and a line for each ranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.errors import InputError
from evenrank.stats import Interval


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


@dataclass(frozen=True, eq=False)
class Counterfactual:
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
        found = self.pairs.filter(pl.col("ranker") == wanted)
        return found.select("query_id", "doc_id", before="rank", after="mirror_rank", group="lean")

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
        found = {
            "rankers": [asdict(shift) for shift in self.summary],
            "left_out": self.left_out,
            "confidence": self.confidence,
            "provenance": self.provenance,
        }
        return found | ({"pairs": self.pairs.to_dicts()} if pairs else {})


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
