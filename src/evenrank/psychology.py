"""Psychological characteristics of judged or ranked text, and how they differ with the query's gender.

`scores` are the percents of the categories in documents; `audit_judgments` compares the judged documents of
female and male queries, `audit_rankings` what rankers return (A. Bigdeli, thesis, Sections 3.1 and 3.2.2.2,
Table 3.7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank import stats
from evenrank.data.docs import open_docs
from evenrank.data.read import fingerprint, read_genders, read_qrels, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import QUERY_ID, QUERY_TEXT, known_gender, listing, pick
from evenrank.errors import InputError, check_whole
from evenrank.measures.disparity import Reduction
from evenrank.measures.inputs import named_runs
from evenrank.show.grid import Drawn
from evenrank.text.lexicon import CHARACTERISTICS, TREE, renamed
from evenrank.text.lexicon import dictionary as as_dictionary
from evenrank.text.matcher import Source
from evenrank.text.tally import tally

LEVEL = 0.05
"""Level of the tests behind a verdict."""
GENDERS = ("female", "male", "neutral")
JUDGED = "judged documents"
_PROCESS = {part: process for process, parts in TREE.items() for part in (process, *parts)}


def scores(docs: Any, source: Source | None = None, *, ids: Iterable[str] | None = None) -> pl.DataFrame:
    """Return the percent of every category in every document: ``doc_id``, ``tokens``, and a column for each.

    The percent of a category is 100 × its tokens / all tokens, LIWC's convention; a token counts once
    for each category it belongs to, and a text without tokens scores 0. `concerns`, which LIWC does not
    have, is the sum of its six parts. (`evenrank.tally` gives the counts.)

    `source` is the path of a ``.dic``, or anything :func:`evenrank.lexicon` takes; without it, the open
    dictionary. With `ids` only these documents are read, those of them that the collection has.

    Examples
    --------
    >>> scores({"d": "She was furious with him."})["anger"].to_list()
    [20.0]
    """
    if ids is not None:
        docs = open_docs(docs).texts(dict.fromkeys(ids))
        if not docs:
            raise InputError("none of the documents is in the collection; check that they belong together")
    counts = tally(docs, as_dictionary(source))
    shares = (pl.col(counts.groups) * 100 / pl.col("tokens")).fill_nan(0.0)
    return _with_concerns(counts.frame.select("doc_id", "tokens", shares))


def _with_concerns(table: pl.DataFrame) -> pl.DataFrame:
    """Add the total of personal concerns, if the table has the six parts and not the total."""
    parts = TREE["concerns"]
    if "concerns" in table.columns or not set(parts) <= set(table.columns):
        return table
    return table.with_columns(concerns=pl.sum_horizontal(parts))


def categories(table: pl.DataFrame) -> list[str]:
    """Return the columns that hold the percents of a category."""
    return [name for name, kind in table.schema.items() if kind.is_numeric() and name != "tokens"]


def read_scores(x: Any) -> pl.DataFrame:
    """Read a table of percents by query: ``query_id`` and the categories, perhaps ``gender``.

    Parameters
    ----------
    x
        A CSV or TSV file with a header, Parquet, or a frame; or a list of files, one for each query gender
        and named after it (``female.csv``, ``male.csv``). Categories may have LIWC's names or ours.
    """
    if not isinstance(x, list):
        return _with_concerns(_score_table(x))
    parts = []
    for path in map(Path, x):
        if (gender := known_gender(path.name.split(".")[0])) == "other":
            raise InputError("name the files female, male and neutral", path=path)
        parts.append(_score_table(path).with_columns(gender=pl.lit(gender)))
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    return _with_concerns(pl.concat([part.select(shared) for part in parts]))


def _score_table(x: Any) -> pl.DataFrame:
    """Read one table of percents; columns of text, such as the query's or a file's name, are left out."""
    table = read_table(x)
    ids = pick(table.frame.columns, QUERY_ID, path=table.path)
    names = {ids: "query_id", **renamed(name for name in table.frame.columns if name != ids)}
    table = replace(table, frame=table.frame.rename(names))
    table.require_unique("query_id")
    kept = [table.ids("query_id")]
    for column in table.frame.drop("query_id", *QUERY_TEXT, strict=False):
        is_number = column.cast(pl.Float64, strict=False).is_finite().fill_null(False)
        if column.dtype.is_numeric() or (column.dtype == pl.String and 2 * is_number.sum() >= len(column)):
            kept.append(table.numbers(column.name))
    if len(kept) == 1:
        raise table.error("a table of scores needs a column of numbers for each category")
    return pl.DataFrame(kept)


@dataclass(frozen=True, eq=False, repr=False)
class PsychologyAudit(Drawn):
    """How texts for female queries differ from those for male ones, characteristic by characteristic.

    `audit["anger"]` is the row of one characteristic, `audit["bm25", "anger"]` that of one of several runs.

    Attributes
    ----------
    table
        A row for each run and characteristic, in the order of the tree, each process before its parts: mean
        percent over the queries of each gender; `difference` female − male, so that positive values mean
        more of it for female queries, with interval, p and Hedges' g of Welch's test; p and Cliff's delta
        of the rank-sum test; both p also corrected over all characteristics compared; `reduction`, the
        share of the baseline's |difference| that is gone. `process` is `affect` for `anger`. Judged
        documents are one run, called `JUDGED`.
    baseline, at
        The run that others are compared with, and how far down the lists were read; None for judgments.
    queries, left_out
        How many queries of each gender were compared, and how many were not, by reason.
    reductions
        For each run but the baseline and each characteristic, the distance |female − male| in percentage
        points before and after, and Welch's test on the changes query by query (female − male).
    """

    table: pl.DataFrame
    baseline: str
    at: int | None
    queries: dict[str, int]
    left_out: dict[str, int]
    reductions: dict[tuple[str, str], Reduction]
    provenance: dict[str, Any]

    @property
    def characteristics(self) -> pl.DataFrame:
        """Those of the judged documents, or of the baseline."""
        return self.table.filter(run=self.baseline).drop("run", "reduction")

    @property
    def affiliation(self) -> bool | None:
        """Whether `female` words are most frequent for female queries, `male` words for male ones.

        A sanity check of the labels (Fig. 3.1 of the thesis). None where the categories are missing.
        """
        rows = {row["characteristic"]: row for row in self.characteristics.iter_rows(named=True)}
        if not {"female", "male"} <= rows.keys():
            return None
        return all(max(self.queries, key=rows[name].__getitem__) == name for name in ("female", "male"))

    def __getitem__(self, key: str | tuple[str, str]) -> dict[str, Any]:
        run, name = key if isinstance(key, tuple) else (self.baseline, key)
        rows = self.table.filter(run=run, characteristic=name)
        if rows.is_empty():
            raise KeyError(key)
        return rows.row(0, named=True)

    def frame(self) -> pl.DataFrame:
        """One row for each characteristic, of rankings for each run and characteristic."""
        return self.characteristics if self.at is None else self.table

    def mirrored(self) -> pl.DataFrame:
        """The same as it is shown to people, male − female: positive is more for male queries."""
        turned = {"difference": "difference", "low": "high", "high": "low", "g": "g"}
        return self.frame().with_columns((0.0 - pl.col(old)).alias(new) for new, old in turned.items())

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "positive": "female",
            "queries": self.queries,
            "left_out": self.left_out,
            "provenance": self.provenance,
        }
        if self.at is None:
            rows = self.characteristics.to_dicts()
            return content | {"affiliation": self.affiliation, "characteristics": rows}
        runs = self.table.drop("reduction").partition_by("run", as_dict=True, include_key=False)
        return content | {
            "at": self.at,
            "baseline": self.baseline,
            "runs": [{"run": run, "characteristics": rows.to_dicts()} for (run,), rows in runs.items()],
            "reductions": [
                {"run": run, "characteristic": name, **one.to_dict(), "p_holm": one.p_holm}
                for (run, name), one in self.reductions.items()
            ],
        }

    def __str__(self) -> str:
        lines = ["percentage points, male − female: positive is more for male queries"]
        for row in self.mirrored().drop_nulls(["difference", "p"]).iter_rows(named=True):
            name = f"{row['run']}, {row['characteristic']}" if "run" in row else row["characteristic"]
            lines.append(f"{name}: {row['difference']:+.3f}, p = {row['p']:.2g}, {row['verdict']}")
        return "\n".join(lines)


def audit_judgments(
    *,
    genders: Any = None,
    qrels: Any = None,
    docs: Any = None,
    scores: Any = None,
    dictionary: Any = None,
    balance: bool = True,
    seed: int = 0,
) -> PsychologyAudit:
    """Compare the judged documents of female and male queries, characteristic by characteristic.

    A query's value is the mean percent over its judged documents. Female and male queries are compared
    by Welch's t-test and the rank-sum test, both corrected (Holm) over all characteristics compared: those of
    the tree that the dictionary or table has, all of its categories if it has none.

    Parameters
    ----------
    genders
        Gender of each query, given or predicted. May be left out when `scores` says it.
    qrels, docs, dictionary
        The judgments, the collection, and the words to count (the open dictionary unless given).
    scores
        An existing table of percentages by query instead, such as LIWC's output; see
        :func:`evenrank.psychology.read_scores`.
    balance
        Draw as many queries of each gender as the smallest class has (seeded), as the thesis does.

    Examples
    --------
    >>> audit = audit_judgments(
    ...     genders={"1": "female", "2": "male", "3": "female", "4": "male"},
    ...     qrels={q: {q: 1} for q in "1234"},
    ...     docs={"1": "She fears it", "2": "He hates it", "3": "She worries", "4": "He rages on"},
    ... )
    >>> audit["anger"]["difference"] < 0 < audit["anxiety"]["difference"]
    True
    """
    if scores is not None:
        table = read_scores(scores)
        means, about = {JUDGED: table}, {"scores": fingerprint([table])}
        genders = table if genders is None and "gender" in table.columns else genders
    if genders is None:
        raise InputError("whose queries are female and male? give genders")
    labels = read_genders(genders)
    if scores is None:
        if qrels is None:
            raise InputError("which documents are judged? give qrels, or scores by query")
        relevant = read_qrels(qrels).filter(pl.col("relevance") > 0)
        judged = relevant.filter(pl.col("query_id").is_in(labels["query_id"].implode()))
        if judged.is_empty():
            raise InputError("no labelled query has a relevant document")
        means, words = _mean_scores({JUDGED: judged}, docs, dictionary)
        about = {"qrels": fingerprint([relevant]), **words}
    return _audited(means, labels, about, balance=balance, seed=seed)


def audit_rankings(
    runs: Any,
    *,
    genders: Any,
    docs: Any = None,
    dictionary: Any = None,
    at: int = 10,
    baseline: str | None = None,
    balance: bool = True,
    seed: int = 0,
) -> PsychologyAudit:
    """Compare what is ranked for female and for male queries, run by run, and each run with the baseline.

    A query's value is the mean percent over its top `at` documents. All runs are compared on the same
    queries: those that every run has ranked documents for.

    Parameters
    ----------
    runs
        One run, or a mapping from names to runs.
    genders, docs, dictionary, balance, seed
        As for :func:`audit_judgments`.
    at
        How far down the lists to read.
    baseline
        The run that the others are compared with; the first unless given.
    """
    check_whole("at", at)
    tops = {name: read_run(run).filter(pl.col("rank") <= at) for name, run in named_runs(runs).items()}
    baseline = baseline or next(iter(tops))
    if baseline not in tops:
        raise InputError(f"there is no run {baseline!r}; one of {', '.join(tops)}")
    labels = read_genders(genders)
    shared = set(labels["query_id"].to_list()).intersection(*(top["query_id"] for top in tops.values()))
    if not shared:
        raise InputError("no query is both labelled and ranked by every run")
    tops = {name: top.filter(pl.col("query_id").is_in(shared)) for name, top in tops.items()}
    means, words = _mean_scores(tops, docs, dictionary)
    about = {"runs": {name: fingerprint([top]) for name, top in tops.items()}, **words}
    return _audited(means, labels, about, balance=balance, seed=seed, baseline=baseline, at=at)


def _mean_scores(
    lists: Mapping[str, pl.DataFrame], docs: Any, dictionary: Any
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Return the mean percents over the documents of each query, for each list, and their provenance."""
    if docs is None:
        raise InputError("what do the documents say? give docs")
    words = as_dictionary(dictionary)
    ids = pl.concat([pairs["doc_id"] for pairs in lists.values()]).unique(maintain_order=True)
    table = scores(docs, words, ids=ids)
    missing = ids.filter(~ids.is_in(table["doc_id"].implode()))
    if len(missing):
        raise InputError(
            f"{len(missing):,} documents have no scores ({listing(missing.to_list(), 5)}); "
            "check that they are in the collection"
        )
    names = categories(table)
    means = {
        run: pairs.select("query_id", "doc_id")
        .join(table.select("doc_id", *names), on="doc_id", maintain_order="left")
        .group_by("query_id", maintain_order=True)
        .agg(pl.col(names).mean())
        for run, pairs in lists.items()
    }
    used = {"name": words.name, "hash": words.hash}
    return means, {"dictionary": used, "scores": fingerprint([table])}


def _audited(
    means: Mapping[str, pl.DataFrame],
    labels: pl.DataFrame,
    about: Mapping[str, Any],
    *,
    balance: bool,
    seed: int,
    baseline: str = JUDGED,
    at: int | None = None,
) -> PsychologyAudit:
    """Compare the queries of the two genders in each run, and each run with the baseline.

    `means` has for each run the mean percents of each query.
    """
    columns = categories(means[baseline])
    names = [name for name in CHARACTERISTICS if name in columns] or columns
    chosen, left_out = _sample(means[baseline]["query_id"], labels, balance=balance, seed=seed)
    values = {
        run: chosen.join(of_run.select("query_id", *names), on="query_id", maintain_order="left")
        for run, of_run in means.items()
    }
    rows = {run: _compare(table, names, seed) for run, table in values.items()}
    reductions: dict[tuple[str, str], Reduction] = {}
    for run in [run for run in means if run != baseline]:
        both = values[baseline].join(values[run].drop("gender"), on="query_id", suffix=" after")
        sides = [both.filter(gender=gender) for gender in ("female", "male")]
        changes = [stats.welch(*(side[f"{name} after"] - side[name] for side in sides)) for name in names]
        corrected = stats.holm([change.p for change in changes])
        for old, new, change, p in zip(rows[baseline], rows[run], changes, corrected, strict=True):
            before, after = (abs(row["female"] - row["male"]) for row in (old, new))
            reductions[run, new["characteristic"]] = reduced = Reduction(before, after, change, p)
            new["reduction"] = reduced.reduction
    return PsychologyAudit(
        table=pl.DataFrame(
            [{"run": run, "reduction": None, **row} for run in means for row in rows[run]],
            schema_overrides={"reduction": pl.Float64},
            infer_schema_length=None,
        ),
        baseline=baseline,
        at=at,
        queries=_group_sizes(chosen),
        left_out=left_out,
        reductions=reductions,
        provenance={"evenrank": evenrank.__version__, "balance": balance, "seed": seed, **about},
    )


def _sample(
    scored: pl.Series, labels: pl.DataFrame, *, balance: bool, seed: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the queries to compare, with their gender, and how many were left out for which reason."""
    judged = labels.filter(pl.col("query_id").is_in(scored.implode()))
    kept = judged.filter(pl.col("gender").is_in(GENDERS))
    drawn = balanced(kept, seed=seed) if balance else kept
    left_out = {
        "labelled, but no scored document": len(labels) - len(judged),
        "labelled other": len(judged) - len(kept),
        "no gender label": len(set(scored) - set(labels["query_id"])),
        "not drawn into the balanced sample": len(kept) - len(drawn),
    }
    if absent := {"female", "male"} - _group_sizes(drawn).keys():
        raise InputError(f"no {min(absent)} query is left to compare; check the gender labels")
    return drawn, {reason: count for reason, count in left_out.items() if count}


def balanced(labels: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Draw equally many queries of each gender, without replacement, from ``query_id`` and ``gender``.

    A gender without any query does not count. The same queries and seed give the same sample, whatever
    their order; the rows stay in the order given.
    """
    size = min(_group_sizes(labels).values(), default=0)
    drawn: list[str] = []
    for number, gender in enumerate(GENDERS):
        ids = labels.filter(pl.col("gender") == gender)["query_id"].sort()
        if len(ids):
            rows = np.random.default_rng([seed, number]).choice(len(ids), size, replace=False)
            drawn += ids.gather(rows).to_list()
    return labels.filter(pl.col("query_id").is_in(drawn))


def _group_sizes(values: pl.DataFrame) -> dict[str, int]:
    """Return how many queries there are of each gender."""
    return {g: n for g in GENDERS if (n := int((values["gender"] == g).sum()))}


def _compare(table: pl.DataFrame, names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Compare each characteristic over queries (``gender`` and a column for each name)."""
    sides = {gender: table.filter(gender=gender) for gender in _group_sizes(table)}
    tests = []
    for name in names:
        female, male = (sides[gender][name].to_numpy() for gender in ("female", "male"))
        rank_sum = stats.rank_sum(female, male, seed=seed)
        tests.append((stats.welch(female, male), rank_sum))
    corrected = [stats.holm([one.p for one in column]) for column in zip(*tests, strict=True)]
    rows = []
    for name, (welch, rank_sum), p, rank_sum_p in zip(names, tests, *corrected, strict=True):
        verdict = "no difference"
        if welch.p is not None and p is not None and welch.difference and welch.p < LEVEL:
            verdict = f"higher for {'female' if welch.difference > 0 else 'male'}"
            verdict += "" if p < LEVEL else " (uncorrected only)"
        row = {
            "characteristic": name,
            "process": _PROCESS.get(name, ""),
            **{gender: float(side[name].mean()) for gender, side in sides.items()},
            "difference": welch.difference,
            "low": welch.low,
            "high": welch.high,
            "p": welch.p,
            "p_holm": p,
            "g": welch.effect,
            "rank_sum_p": rank_sum.p,
            "rank_sum_p_holm": rank_sum_p,
            "cliffs_delta": rank_sum.effect,
            "verdict": verdict,
        }
        rows.append(row)
    return rows
