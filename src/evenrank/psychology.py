"""Psychological characteristics of judged or ranked text, and how they differ with the query's gender.

`scores` gives the percent and count of every category in every document; `audit_judgments` compares the
judged documents of female and male queries, `audit_rankings` what rankers return for them.

A. Bigdeli, thesis, Section 3.1 (stereotypes in relevance judgments are what rankers learn from),
Section 3.2.2.2 and Table 3.7 (does one ranker return such text less than another?).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank import stats
from evenrank.data.docs import open_docs
from evenrank.data.read import fingerprint, read_genders, read_qrels, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, GENDER, QUERY_ID, QUERY_TEXT, known_gender, listing, show
from evenrank.errors import InputError
from evenrank.measures.disparity import Reduction
from evenrank.measures.inputs import named_runs
from evenrank.show.grid import Drawn
from evenrank.stats import Comparison
from evenrank.text.lexicon import CHARACTERISTICS, TREE, renamed
from evenrank.text.lexicon import dictionary as as_dictionary
from evenrank.text.matcher import Source
from evenrank.text.tally import tally

LEVEL = 0.05
"""Level of the tests behind a verdict."""
GENDERS = ("female", "male", "neutral")
_PROCESS = {part: process for process, parts in TREE.items() for part in (process, *parts)}


def scores(docs: Any, source: Source | None = None, *, tokenizer: str = "words") -> pl.DataFrame:
    """Return the percent of every category in every document.

    The percent of a category is 100 × its tokens / all tokens, LIWC's convention; a token counts once
    for each category it belongs to, and a text without tokens scores 0. `concerns`, which LIWC does not
    have, is the sum of its six parts. (`evenrank.tally` gives the counts.)

    Parameters
    ----------
    docs
        Documents in any shape that :func:`evenrank.data.docs.open_docs` takes.
    source
        The dictionary: the path of a ``.dic``, or anything :func:`evenrank.lexicon` takes. Without it,
        the open dictionary.
    tokenizer
        ``words`` or ``whitespace``.

    Returns
    -------
    polars.DataFrame
        ``doc_id``, ``tokens``, and a column of percents for each category (``anger``).

    Examples
    --------
    >>> scores({"d": "She was furious with him."})["anger"].to_list()
    [20.0]
    """
    counts = tally(docs, as_dictionary(source), tokenizer=tokenizer)
    percents = [
        pl.when(pl.col("tokens") > 0).then(100 * pl.col(name) / pl.col("tokens")).otherwise(0.0).alias(name)
        for name in counts.groups
    ]
    return _with_concerns(counts.frame.select("doc_id", "tokens", *percents))


def _with_concerns(table: pl.DataFrame) -> pl.DataFrame:
    """Add the total of personal concerns, if the table has the six parts and not the total."""
    parts = TREE["concerns"]
    if "concerns" in table.columns or not set(parts) <= set(table.columns):
        return table
    return table.with_columns(concerns=pl.sum_horizontal(parts))


def categories(table: pl.DataFrame) -> list[str]:
    """Return the columns that hold the percents of a category."""
    return [name for name, kind in table.schema.items() if kind.is_numeric() and name != "tokens"]


def scores_of(docs: Any, ids: Iterable[str], source: Source | None, tokenizer: str) -> pl.DataFrame:
    """Return the scores of some documents of a collection, those it holds."""
    texts = open_docs(docs).texts(dict.fromkeys(ids))
    if not texts:
        raise InputError("none of the documents is in the collection; check that they belong together")
    return scores(texts, source, tokenizer=tokenizer)


def read_scores(x: Any) -> pl.DataFrame:
    """Read a table of percents: ``query_id`` and/or ``doc_id``, perhaps ``gender``, and the categories.

    Parameters
    ----------
    x
        A CSV or TSV file with a header, Parquet, or a frame; several of them, one for each query gender,
        as a mapping from gender to table or as files named after it (``female.csv``, ``male.csv``).
        Categories may have LIWC's names or ours.
    """
    if isinstance(x, Sequence) and not isinstance(x, str):
        paths = [Path(path) for path in x]
        x = paths[0] if len(paths) == 1 else {path.name.split(".")[0]: path for path in paths}
    if not isinstance(x, Mapping):
        return _with_concerns(_score_table(x))
    parts = []
    for name, table in x.items():
        if (gender := known_gender(str(name))) == "other":
            raise InputError(f"{str(name)!r} is not one gender; name the tables female, male and neutral")
        parts.append(_score_table(table).with_columns(gender=pl.lit(gender)))
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    if not {"query_id", "doc_id"} & set(shared):
        raise InputError("the tables of scores have no id column in common")
    return _with_concerns(pl.concat([part.select(shared) for part in parts]))


def _score_table(x: Any) -> pl.DataFrame:
    """Read one table of percents; columns of text are left out."""
    table = read_table(x)
    names: dict[str, str] = {}
    for key, spellings in {"query_id": QUERY_ID, "doc_id": DOC_ID, "gender": GENDER}.items():
        match = next((name for name in table.frame.columns if name.lower() in spellings), None)
        if match is not None and match not in names:
            names[match] = key
    keys = list(names.values())
    if not {"query_id", "doc_id"} & set(keys):
        raise table.error(
            f"a table of scores needs a column query_id or doc_id; found: {listing(table.frame.columns, 8)}"
        )
    others = renamed(name for name in table.frame.columns if name not in names)
    table = replace(table, frame=table.frame.rename({**names, **others}))
    columns = [table.ids(key) for key in keys]
    for column in table.frame.drop(keys):
        if not (column.dtype.is_numeric() or column.dtype == pl.String):
            continue
        values = column.cast(pl.Float64, strict=False)
        is_number = values.is_finite().fill_null(False)
        mostly_text = column.name.lower() in QUERY_TEXT or 2 * is_number.sum() < len(column)
        if column.dtype == pl.String and mostly_text:
            continue  # such as the query's text or a file's name
        table.refuse(
            ~is_number,
            lambda row, column=column: (  # type: ignore[misc]
                f"the category {show(column.name)} has cells without a number: {show(column[row])}"
            ),
        )
        columns.append(values)
    frame = pl.DataFrame(columns)
    percents = categories(frame.drop(keys))
    if not percents:
        raise table.error("a table of scores needs a column of numbers for each category")
    frame = frame.select(*keys, *percents)
    if "doc_id" in keys:
        replace(table, frame=frame).require_unique(*(key for key in keys if key != "gender"))
    if "gender" in keys:
        frame = frame.with_columns(pl.col("gender").map_elements(known_gender, return_dtype=pl.String))
    return frame


@dataclass(frozen=True)
class Characteristic:
    """How strongly a characteristic shows in texts for female and male queries.

    Attributes
    ----------
    process
        Which process it is part of (`affect` for `anger`), itself if it is one, else empty.
    means
        Mean percent over the queries of each gender.
    welch, rank_sum
        Female − male, so that positive values mean more of it for female queries: difference,
        interval, p (uncorrected), effect (Hedges' g; Cliff's delta).
    p_holm, rank_sum_p_holm
        The two p-values, corrected over all characteristics that were compared.
    """

    name: str
    process: str
    means: Mapping[str, float]
    welch: Comparison
    rank_sum: Comparison
    p_holm: float | None
    rank_sum_p_holm: float | None

    @property
    def difference(self) -> float | None:
        return self.welch.difference

    @property
    def higher(self) -> str | None:
        """`female` or `male`, whichever mean is higher; None if neither is."""
        if not self.difference:
            return None
        return "female" if self.difference > 0 else "male"

    @property
    def verdict(self) -> str:
        """The result of Welch's test: a difference, one before correction only, or none."""
        if self.welch.p is None or self.welch.p >= LEVEL:
            return "no difference"
        corrected = self.p_holm is not None and self.p_holm < LEVEL
        return f"higher for {self.higher}" + ("" if corrected else " (uncorrected only)")

    def to_dict(self) -> dict[str, Any]:
        return {
            "characteristic": self.name,
            "process": self.process,
            **self.means,
            "difference": self.difference,
            "low": self.welch.low,
            "high": self.welch.high,
            "p": self.welch.p,
            "p_holm": self.p_holm,
            "g": self.welch.effect,
            "rank_sum_p": self.rank_sum.p,
            "rank_sum_p_holm": self.rank_sum_p_holm,
            "cliffs_delta": self.rank_sum.effect,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False, repr=False)
class JudgmentsAudit(Drawn):
    """The judged documents compared by the gender of their queries.

    `audit["anger"]` is one characteristic. Positive differences: more of it for female queries.

    Attributes
    ----------
    characteristics
        In the order of the tree, each process before its parts.
    queries
        How many queries of each gender were compared.
    left_out
        How many were not, by reason.
    affiliation
        The sanity check of the labels: are `female` words most frequent for female queries, `male` words
        for male ones? None where the categories are missing.
    values
        ``query_id``, ``gender`` and the percent of each characteristic.
    """

    characteristics: tuple[Characteristic, ...]
    queries: dict[str, int]
    left_out: dict[str, int]
    affiliation: bool | None
    values: pl.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Characteristic:
        for one in self.characteristics:
            if one.name == name:
                return one
        raise InputError(f"{name!r} was not compared; {', '.join(c.name for c in self.characteristics)} were")

    def frame(self) -> pl.DataFrame:
        """One row for each characteristic: means, difference with interval, tests, effects."""
        return pl.DataFrame([one.to_dict() for one in self.characteristics], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "positive": "female",
            "queries": self.queries,
            "left_out": self.left_out,
            "affiliation": self.affiliation,
            "characteristics": [one.to_dict() for one in self.characteristics],
            "provenance": self.provenance,
        }

    def __str__(self) -> str:
        lines = ["percentage points, male − female: positive is more for male queries"]
        lines += [
            f"{one.name}: {-one.difference:+.3f}, p = {one.welch.p:.2g}, {one.verdict}"
            for one in self.characteristics
            if one.difference is not None and one.welch.p is not None
        ]
        return "\n".join(lines)


def audit_judgments(
    *,
    genders: Any = None,
    qrels: Any = None,
    docs: Any = None,
    scores: Any = None,
    dictionary: Any = None,
    tokenizer: str = "words",
    exclude: Any = None,
    grade: int = 1,
    balance: bool = True,
    characteristics: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> JudgmentsAudit:
    """Compare the judged documents of female and male queries, characteristic by characteristic.

    A query's value is the mean percent over its judged documents. Female and male queries are compared
    by Welch's t-test and the rank-sum test, both corrected (Holm) over all characteristics compared.

    Parameters
    ----------
    genders
        Gender of each query, given or predicted. May be left out when `scores` says it.
    qrels, docs, dictionary, tokenizer
        The judgments, the collection, and the words to count (the open dictionary unless given).
    scores
        An existing table of percentages instead, such as LIWC's output: by query (then no qrels are needed)
        or by document; see :func:`evenrank.psychology.read_scores`.
    exclude
        Queries to leave out, such as those that trained the classifier behind `genders`: ids, or
        anything :func:`evenrank.data.read.read_genders` reads.
    grade
        From which relevance on a document counts as judged relevant.
    balance
        Draw as many queries of each gender as the smallest class has (seeded), as the thesis does.
    characteristics
        Which to compare; unless given, all of the tree that the dictionary or table has.

    Examples
    --------
    >>> audit = audit_judgments(
    ...     genders={"1": "female", "2": "male", "3": "female", "4": "male"},
    ...     qrels={q: {q: 1} for q in "1234"},
    ...     docs={"1": "She fears it", "2": "He hates it", "3": "She worries", "4": "He rages on"},
    ... )
    >>> audit["anger"].higher, audit["anxiety"].higher
    ('male', 'female')
    """
    table = None if scores is None else read_scores(scores)
    provenance: dict[str, Any] = {"evenrank": evenrank.__version__, "balance": balance, "seed": seed}
    if genders is not None:
        labels = read_genders(genders)
    elif table is not None and "gender" in table.columns:
        labels = table.select("query_id", "gender").unique(maintain_order=True)
        repeated = labels.filter(pl.col("query_id").is_duplicated())["query_id"]
        if len(repeated):
            raise InputError(
                f"query {show(repeated[0])} is in the scores of two genders; give each its own id"
            )
    else:
        raise InputError("whose queries are female and male? give genders")
    if table is not None and "doc_id" not in table.columns:
        names = _chosen(table, characteristics)
        values = table.group_by("query_id", maintain_order=True).agg(pl.col(names).mean())
    else:
        if qrels is None:
            raise InputError("which documents are judged? give qrels, or scores by query")
        judged = read_qrels(qrels).filter(pl.col("relevance") >= grade)
        labelled = judged.filter(pl.col("query_id").is_in(labels["query_id"].to_list()))
        if labelled.is_empty():
            raise InputError(f"no labelled query has a document judged {grade} or higher")
        if table is None:
            table = _count_words(docs, labelled["doc_id"], dictionary, tokenizer, provenance)
        names = _chosen(table, characteristics)
        values = _query_means(labelled, table, names)
        provenance |= {"qrels": fingerprint([judged]), "grade": grade}
    provenance["scores"] = fingerprint([table], numbers=True)
    values, left_out = _sample(values, labels, exclude=exclude, balance=balance, seed=seed)
    compared = _compare(values, names, confidence=confidence, seed=seed)
    return JudgmentsAudit(
        characteristics=compared,
        queries=_group_sizes(values),
        left_out=left_out,
        affiliation=_affiliation(compared),
        values=values,
        provenance=provenance,
    )


def _affiliation(compared: Sequence[Characteristic]) -> bool | None:
    """Fig. 3.1 of the thesis: each gender's queries lead on its own words, neutral ones on neither."""
    means = {one.name: one.means for one in compared}
    if "female" not in means or "male" not in means:
        return None
    return all(max(means[gender], key=means[gender].__getitem__) == gender for gender in ("female", "male"))


@dataclass(frozen=True, eq=False, repr=False)
class RankingsAudit(Drawn):
    """What rankers return for female and for male queries; `audit["bm25", "anger"]` is one of them.

    `reductions` has, for each run but the baseline and each characteristic, the distance |female − male| in
    percentage points before and after, and Welch's test on the changes query by query (female − male).
    """

    runs: dict[str, tuple[Characteristic, ...]]
    at: int
    baseline: str
    reductions: dict[tuple[str, str], Reduction]
    queries: dict[str, int]
    left_out: dict[str, int]
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def characteristics(self) -> tuple[Characteristic, ...]:
        """Those of the baseline."""
        return self.runs[self.baseline]

    def __getitem__(self, key: tuple[str, str]) -> Characteristic:
        run, name = key
        for one in self.runs.get(run, ()):
            if one.name == name:
                return one
        raise InputError(f"there is no {name!r} of {run!r}; runs: {', '.join(self.runs)}")

    def frame(self) -> pl.DataFrame:
        """One row for each run and characteristic, with the reduction against the baseline."""
        rows = []
        for run, compared in self.runs.items():
            for one in compared:
                reduced = self.reductions.get((run, one.name))
                rows.append(
                    {"run": run, **one.to_dict(), "reduction": None if reduced is None else reduced.reduction}
                )
        return pl.DataFrame(rows, infer_schema_length=None).cast({"reduction": pl.Float64})

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "baseline": self.baseline,
            "positive": "female",
            "queries": self.queries,
            "left_out": self.left_out,
            "runs": [
                {"run": run, "characteristics": [one.to_dict() for one in compared]}
                for run, compared in self.runs.items()
            ],
            "reductions": [
                {"run": run, "characteristic": name, **one.to_dict(), "p_holm": one.p_holm}
                for (run, name), one in self.reductions.items()
            ],
            "provenance": self.provenance,
        }


def audit_rankings(
    runs: Any,
    *,
    genders: Any,
    docs: Any = None,
    scores: Any = None,
    dictionary: Any = None,
    tokenizer: str = "words",
    at: int = 10,
    baseline: str | None = None,
    exclude: Any = None,
    balance: bool = True,
    characteristics: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> RankingsAudit:
    """Compare what is ranked for female and for male queries, run by run, and each run with the baseline.

    A query's value is the mean percent over its top `at` documents. All runs are compared on the same
    queries: those that every run has ranked documents for.

    Parameters
    ----------
    runs
        One run, or a mapping from names to runs.
    genders, docs, dictionary, tokenizer, exclude, balance, characteristics, confidence, seed
        As for :func:`audit_judgments`.
    scores
        An existing table of percentages by document, instead of docs and dictionary.
    at
        How far down the lists to read.
    baseline
        The run that the others are compared with; the first unless given.
    """
    if at < 1:
        raise InputError(f"at is {at}, but must be at least 1")
    tops = {name: read_run(run).filter(pl.col("rank") <= at) for name, run in named_runs(runs).items()}
    baseline = baseline or next(iter(tops))
    if baseline not in tops:
        raise InputError(f"there is no run {baseline!r}; one of {', '.join(tops)}")
    labels = read_genders(genders)
    ranked = set.intersection(*(set(top["query_id"].to_list()) for top in tops.values()))
    query_ids = ranked & set(labels["query_id"].to_list())
    tops = {name: top.filter(pl.col("query_id").is_in(query_ids)) for name, top in tops.items()}
    if not query_ids:
        raise InputError("no query is both labelled and ranked by every run")
    provenance: dict[str, Any] = {"evenrank": evenrank.__version__, "balance": balance, "seed": seed}
    if scores is None:
        doc_ids = pl.concat(top["doc_id"] for top in tops.values())
        table = _count_words(docs, doc_ids, dictionary, tokenizer, provenance)
    else:
        table = read_scores(scores)
        if "doc_id" not in table.columns:
            raise InputError("rankings need scores by document: a column doc_id")
    provenance["runs"] = {name: fingerprint([top]) for name, top in tops.items()}
    names = _chosen(table, characteristics)
    values, compared = {}, {}
    for name, top in tops.items():
        means = _query_means(top, table, names)
        values[name], left_out = _sample(means, labels, exclude=exclude, balance=balance, seed=seed)
        compared[name] = _compare(values[name], names, confidence=confidence, seed=seed)
    reductions: dict[tuple[str, str], Reduction] = {}
    for run in tops:
        if run == baseline:
            continue
        changes = _changes(values[baseline], values[run], names, confidence)
        corrected = stats.holm([change.p for change in changes])
        for old, new, change, p in zip(compared[baseline], compared[run], changes, corrected, strict=True):
            before, after = (abs(one.means["female"] - one.means["male"]) for one in (old, new))
            reductions[run, old.name] = Reduction(before, after, change, p)
    return RankingsAudit(
        runs=compared,
        at=at,
        baseline=baseline,
        reductions=reductions,
        queries=_group_sizes(values[baseline]),
        left_out=left_out,
        provenance=provenance,
    )


def _changes(
    before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], confidence: float
) -> list[Comparison]:
    """Compare the changes of female queries with those of male ones, for each characteristic."""
    joined = before.join(after.drop("gender"), on="query_id", suffix=" after", maintain_order="left")
    female, male = (joined.filter(pl.col("gender") == gender) for gender in ("female", "male"))
    return [
        stats.welch(*(side[f"{name} after"] - side[name] for side in (female, male)), confidence=confidence)
        for name in names
    ]


def _count_words(
    docs: Any, doc_ids: pl.Series, dictionary: Any, tokenizer: str, provenance: dict[str, Any]
) -> pl.DataFrame:
    """Score the documents, and add the words that were counted to the provenance."""
    if docs is None:
        raise InputError("what do the documents say? give docs, or a table of scores")
    words = as_dictionary(dictionary)
    provenance |= {"dictionary": {"name": words.name, "hash": words.hash}, "tokenizer": tokenizer}
    return scores_of(docs, doc_ids.to_list(), words, tokenizer)


def _chosen(table: pl.DataFrame, requested: Sequence[str] | None) -> list[str]:
    """Return the characteristics to compare: the requested ones, or all of the tree that the table has."""
    columns = categories(table)
    if requested is None:
        names = [name for name in CHARACTERISTICS if name in columns]
        if not names:
            columns = columns[:8]
            raise InputError(f"none of the categories is known ({', '.join(columns)}); name characteristics")
        return names
    for name in requested:
        if name not in columns:
            raise InputError(f"there is no category {name!r}; there are: {', '.join(columns)}")
    return list(requested)


def _query_means(pairs: pl.DataFrame, table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the mean of the documents' scores for each query: ``query_id`` and the categories."""
    joined = pairs.select("query_id", "doc_id").join(
        table.select("doc_id", *names), on="doc_id", how="left", maintain_order="left"
    )
    missing = joined.filter(pl.col(names[0]).is_null())["doc_id"].unique(maintain_order=True)
    if len(missing):
        raise InputError(
            f"{len(missing):,} documents have no scores ({listing(missing.to_list(), 5)}); "
            "check that they are in the collection"
        )
    return joined.group_by("query_id", maintain_order=True).agg(pl.col(names).mean())


def _sample(
    values: pl.DataFrame, labels: pl.DataFrame, *, exclude: Any, balance: bool, seed: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the queries to compare, with their gender, and how many were left out for which reason."""
    scored = set(values["query_id"].to_list())
    left_out: dict[str, int] = {}
    kept = _keep(labels, pl.col("query_id").is_in(scored), "labelled, but no scored document", left_out)
    if unlabelled := len(scored) - len(kept):
        left_out["no gender label"] = unlabelled
    kept = _keep(kept, pl.col("gender").is_in(GENDERS), "labelled other", left_out)
    if exclude is not None:
        if isinstance(exclude, str | PathLike) or hasattr(exclude, "columns"):
            exclude = read_genders(exclude)["query_id"]
        excluded = [str(query) for query in exclude]
        kept = _keep(kept, ~pl.col("query_id").is_in(excluded), "excluded", left_out)
    if balance:
        drawn = balanced(kept, seed=seed)["query_id"].implode()
        kept = _keep(kept, pl.col("query_id").is_in(drawn), "not drawn into the balanced sample", left_out)
    sizes = _group_sizes(kept)
    for gender in ("female", "male"):
        if gender not in sizes:
            raise InputError(f"no {gender} query is left to compare; check the gender labels")
    return kept.join(values, on="query_id", how="left", maintain_order="left"), left_out


def _keep(table: pl.DataFrame, condition: pl.Expr, reason: str, left_out: dict[str, int]) -> pl.DataFrame:
    """Filter a table, and count what is left out for which reason."""
    kept = table.filter(condition)
    if removed := len(table) - len(kept):
        left_out[reason] = removed
    return kept


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


def _compare(
    table: pl.DataFrame, names: Sequence[str], *, confidence: float, seed: int
) -> tuple[Characteristic, ...]:
    """Compare each characteristic over queries (``gender`` and a column for each name)."""
    sides = {gender: part for gender in GENDERS if len(part := table.filter(pl.col("gender") == gender))}
    tests = []
    for name in names:
        female, male = (sides[gender][name].to_numpy() for gender in ("female", "male"))
        rank_sum = stats.rank_sum(female, male, confidence=confidence, seed=seed)
        tests.append((stats.welch(female, male, confidence=confidence), rank_sum))
    corrected = zip(
        *(stats.holm([one.p for one in column]) for column in zip(*tests, strict=True)), strict=True
    )
    return tuple(
        Characteristic(
            name=name,
            process=_PROCESS.get(name, ""),
            means={gender: float(side[name].mean()) for gender, side in sides.items()},  # type: ignore[arg-type]
            welch=welch,
            rank_sum=rank_sum,
            p_holm=p,
            rank_sum_p_holm=rank_sum_p,
        )
        for name, (welch, rank_sum), (p, rank_sum_p) in zip(names, tests, corrected, strict=True)
    )
