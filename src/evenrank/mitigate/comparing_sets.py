"""Does balancing help? Rankers trained on unbalanced and on balanced judgments, side by side.

One plan, one folder, and nothing is done twice: queries are generated, four training sets of equal size are
made, a ranker is trained on each with each seed, and all lists are measured by the gender of the query.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank import stats
from evenrank.data.docs import open_docs
from evenrank.data.files import writing
from evenrank.data.read import fingerprint, read_genders, read_qrels, read_queries
from evenrank.data.runs import read_run, write_run
from evenrank.errors import InputError
from evenrank.measures.disparity import percent_of_lower
from evenrank.mitigate.comparing_plan import FILES, Plan
from evenrank.mitigate.filling import fill
from evenrank.mitigate.judgments import even_judgments
from evenrank.mitigate.matching import association_scores, balance
from evenrank.mitigate.training_sets import data_set, write_folder
from evenrank.queries.generation.filtering import filter_generated
from evenrank.queries.generation.generating import Generated, generate, own_number
from evenrank.rankers.catalogue import search
from evenrank.rankers.index import Index
from evenrank.stats.intervals import is_constant
from evenrank.text.lexicon import PROCESSES

Say = Callable[[str], None]
SETS = ("unbalanced", "matching", "generation", "judgments")
GENDERS = ("female", "male", "neutral")
LEVEL, POWER = 0.05, 0.8
"""A gap is found where p (two-sided) lies below the one; it should be found in so many of all trials."""


def compare_sets(
    plan: Plan, output: str | os.PathLike[str], *, say: Say = lambda text: None
) -> dict[str, Any]:
    """Train on the four sets and compare; the folder holds all that was made, and ``result.json``.

    A call that was interrupted is gone on with. Positive gaps favour male queries.

    Returns
    -------
    dict
        For each ranker and set: male and female RR@10 with their gap, its interval, a permutation test and
        the smallest gap that would have been found; the change from `unbalanced`; how far lists of female
        and male queries are apart in each psychological process; and ARaB@10 on neutral queries.
    """
    work = _Work(plan, Path(output), say)
    work.begin()
    result: dict[str, Any] = {"positive": "male", "sets": work.described(), "rankers": {}}
    for ranker in plan.rankers:
        values = {name: [work.run(name, ranker, seed) for seed in plan.seeds] for name in SETS}
        result["rankers"][ranker] = work.measured(values)
    result["test queries"] = {
        **{gender: len(work.test.filter(pl.col("gender") == gender)) for gender in GENDERS},
        "neutral, nothing found": len(work.test.filter(pl.col("gender") == "neutral")) - len(work.neutral),
        "left out, asked in training": int(work.asked_twice.sum()),
    }
    result["provenance"] = work.facts
    with writing(work.folder / "result.json") as file:
        file.write((json.dumps(result, indent=1, allow_nan=False) + "\n").encode())
    return result


@dataclass
class _Work:
    """The folder, and what is in it or still to be made."""

    plan: Plan
    folder: Path
    say: Say

    @cached_property
    def facts(self) -> dict[str, Any]:
        settings = asdict(self.plan)
        named = {name: Path(settings[name]).name for name in FILES if settings[name] is not None}
        prints = {
            "docs": open_docs(self.plan.docs).fingerprint(),
            "training": fingerprint([self.asked, self.judged]),
            "test": fingerprint([self.test_asked, read_qrels(self.plan.test_qrels)]),
            "genders": fingerprint([self.genders, self.test.select("query_id", "gender")]),
        }
        rest = {name: value for name, value in settings.items() if name not in FILES}
        result = {"evenrank": evenrank.__version__, **named, **rest, "fingerprints": prints}
        return dict(json.loads(json.dumps(result)))

    def begin(self) -> None:
        """Make the folder, or see that it belongs to the same plan; settings of rankers are read."""
        self.plan.check_settings()
        self._refuse_others_folder()
        for what, table, source in (
            ("training", self.asked.join(self.judged, on="query_id", how="semi"), "queries"),
            ("test", self.test, "test_queries"),
        ):
            self._refuse_one_sided(what, table, source)
        write_folder(self.folder, {"plan.json": json.dumps(self.facts, indent=1) + "\n"})

    def _refuse_others_folder(self) -> None:
        """Refuse a folder of another plan, and one that holds anything else."""
        known = self.folder / "plan.json"
        if not known.is_file():
            if self.folder.is_dir() and any(not each.name.startswith(".") for each in self.folder.iterdir()):
                raise InputError(
                    "is not empty, and holds no plan.json; choose another folder", path=self.folder
                )
            return
        try:
            made_with = json.loads(known.read_bytes())
        except ValueError:
            raise InputError("not a plan that was written here; choose another folder", path=known) from None
        if made_with != self.facts:
            raise InputError("was made with another plan; choose another folder", path=self.folder)

    def _refuse_one_sided(self, what: str, table: pl.DataFrame, source: str) -> None:
        """Refuse queries of which none is female, or none is male."""
        labels = self.genders if what == "training" else self.test.select("query_id", "gender")
        there = labels.join(table, on="query_id", how="semi")["gender"].unique().to_list()
        given = getattr(self.plan, source.replace("queries", "genders"))
        for gender in ("male", "female"):
            if gender not in there:
                raise InputError(
                    f"no {what} query with a relevant document is {gender}; there is nothing to compare",
                    path=given or getattr(self.plan, source),
                )

    @cached_property
    def index(self) -> Index:
        from evenrank.rankers.index.building import own_index

        return own_index(open_docs(self.plan.docs), self.say)

    @cached_property
    def asked(self) -> pl.DataFrame:
        return read_queries(self.plan.queries)

    @cached_property
    def test_asked(self) -> pl.DataFrame:
        return read_queries(self.plan.test_queries)

    @cached_property
    def judged(self) -> pl.DataFrame:
        good = read_qrels(self.plan.qrels).filter(pl.col("relevance") > 0)
        return good.join(self.asked, on="query_id", how="semi", maintain_order="left")

    @cached_property
    def genders(self) -> pl.DataFrame:
        return self._labels(self.asked, self.plan.genders, keep_seen=True)

    @cached_property
    def asked_twice(self) -> pl.Series:
        """Which test queries are training queries too, word for word: they are not ranked."""
        from evenrank.rankers.neural.saved import text_hashes

        trained = text_hashes(self.asked["text"])
        return pl.Series(np.isin(text_hashes(self.test_asked["text"]), trained), dtype=pl.Boolean)

    @cached_property
    def test(self) -> pl.DataFrame:
        """``query_id, text, gender`` of the test queries that are ranked."""
        labels = self._labels(self.test_asked, self.plan.test_genders, keep_seen=False)
        good = read_qrels(self.plan.test_qrels).filter(pl.col("relevance") > 0)
        fresh = self.test_asked.filter(~self.asked_twice)
        table = fresh.join(labels, on="query_id", maintain_order="left")
        table = table.join(good, on="query_id", how="semi", maintain_order="left")
        if table.is_empty():
            twice = int(self.asked_twice.sum())
            others = (
                "" if twice == len(self.test_asked) else ", the others have no gender or relevant document"
            )
            raise InputError(
                f"no test query is left: {twice:,} of {len(self.test_asked):,} are training queries{others}",
                path=self.plan.test_queries,
            )
        neutral = table.filter(pl.col("gender") == "neutral")["query_id"].to_list()
        drawn = sorted(neutral, key=lambda query: own_number(0, query))[: self.plan.neutral]
        return table.filter(pl.col("gender").is_in(["female", "male"]) | pl.col("query_id").is_in(drawn))

    def _labels(self, requested: pl.DataFrame, given: str | None, *, keep_seen: bool) -> pl.DataFrame:
        if given is not None:
            return read_genders(given)
        from evenrank.queries.classifier import predicted_genders

        result, said = predicted_genders(requested, keep_seen=keep_seen)
        self.say(f"{'training' if keep_seen else 'test'} queries: {said}")
        return result

    @cached_property
    def made(self) -> Generated:
        """Generated queries; none of them says the same as a test query."""
        plan = self.plan
        given: dict[str, Any] = {"queries": self.asked, "qrels": self.judged}
        if plan.writer == "extractive":
            given = {}
        result = generate(
            plan.docs,
            plan.per_document,
            plan.writer,
            sample=plan.sample,
            output=self.folder / "made.tsv",
            say=self.say,
            **given,
        )
        return filter_generated(result, self.index, known=self.test_asked, answerable=plan.answerable)

    @cached_property
    def sets(self) -> dict[str, tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]]:
        """Queries, judgments and a report of each set; only of female and male queries, all of one size."""
        labels = self.genders.filter(pl.col("gender").is_in(["female", "male"]))
        requested = self.asked.join(labels, on="query_id", how="semi", maintain_order="left")
        judged = self.judged.join(labels, on="query_id", how="semi", maintain_order="left")
        scores = association_scores(self.index, requested, judged)
        made_scores = association_scores(self.index, self.made.texts(), self.made.qrels())
        even = balance(scores, genders=labels)
        filled = fill(scores, self.made, genders=labels, generated_scores=made_scores)
        alike = even_judgments(self.made, self.plan.docs, ratio=self.plan.ratio, size=len(judged))
        before = {"female and male": even.report()["before"], "queries": even.report()["kept"]}
        result: dict[str, tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]] = {
            "unbalanced": (requested, judged, before),
            "matching": (even.queries(requested), even.qrels(judged), even.report()),
            "generation": (filled.queries(requested), filled.qrels(judged), filled.report()),
            "judgments": (alike.queries(requested), alike.qrels(judged), alike.report()),
        }
        size = min(len(queries) for queries, _, _ in result.values())
        return {
            name: (*_cut(queries, qrels, size), report) for name, (queries, qrels, report) in result.items()
        }

    def described(self) -> dict[str, Any]:
        """The sets are written, and told of: how many queries of which gender they hold."""
        told = {}
        for name, (queries, qrels, report) in self.sets.items():
            content = data_set(queries, qrels)
            content["report.json"] = json.dumps(report, indent=2, allow_nan=False) + "\n"
            if self.plan.write_genders:
                known = self.genders.join(queries, on="query_id", how="semi")
                content["genders.tsv"] = known.write_csv(separator="\t")
            write_folder(self.folder / "sets" / name, content)
            real = queries.join(self.genders, on="query_id", how="inner")
            shares = real["gender"].value_counts()
            told[name] = {
                "queries": len(queries),
                "generated": len(queries) - len(real),
                **{f"real {gender}": int(count) for gender, count in sorted(shares.iter_rows())},
                "unlike unbalanced": _unlike(qrels, self.sets["unbalanced"][1]),
                "report": report,
            }
        return told

    def run(self, name: str, ranker: str, seed: int) -> pl.DataFrame:
        """The test queries ranked by what was trained on a set; made once."""
        label = f"{name}-{ranker}-{seed}"
        path = self.folder / "runs" / f"{label}.run.gz"
        if path.exists():
            return read_run(path)
        from evenrank.rankers.neural.reranking import rerank
        from evenrank.training.trainer import train_ranker

        for part in ("runs", "models"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        queries, qrels, _ = self.sets[name]
        self.say(f"training {label} on {len(queries):,} queries")
        settings = {"depth": self.plan.depth, **self.plan.settings.get(ranker, {})}
        model = self.folder / "models" / label
        train_ranker(
            ranker, self.plan.docs, queries, qrels, model,
            index=self.index, seed=seed, hybrid=False, **settings,
        )  # fmt: skip
        how: dict[str, Any] = (
            {"backend": self.plan.backend} if ranker in ("bi-encoder", "cross-encoder") else {}
        )
        result = rerank(
            model,
            self.first,
            self.index.docs,
            self.test.select("query_id", "text"),
            depth=self.plan.depth,
            **how,
        )
        write_run(result, path, name=label)
        return read_run(path)

    @cached_property
    def first(self) -> pl.DataFrame:
        return search(self.index, self.test.select("query_id", "text"), depth=self.plan.depth)

    @cached_property
    def neutral(self) -> list[str]:
        """The neutral test queries for which BM25 finds anything."""
        some = self.test.filter(pl.col("gender") == "neutral")
        return some.join(self.first, on="query_id", how="semi", maintain_order="left")["query_id"].to_list()

    def measured(self, runs: Mapping[str, list[pl.DataFrame]]) -> dict[str, Any]:
        """What the lists of each set are like, and how they differ from those of the unbalanced one."""
        means = {name: self._effectiveness(each) for name, each in {"bm25": [self.first], **runs}.items()}
        apart = {name: self._apart(each) for name, each in runs.items()}
        result: dict[str, Any] = {}
        for name, table in means.items():
            result[name] = _gap(table)
            if name not in ("bm25", "unbalanced"):
                result[name]["change"] = _change(means["unbalanced"], table)
            if name in apart:
                result[name]["psychology"] = apart[name]
            result[name]["ARaB@10, neutral queries"] = self._lean(runs.get(name, [self.first]))
        return result

    def _effectiveness(self, runs: list[pl.DataFrame]) -> pl.DataFrame:
        """``query_id, gender, value``: RR@10, the mean over the seeds."""
        from evenrank.measures.disparity import disparity

        both = self.test.filter(pl.col("gender") != "neutral")
        qrels = read_qrels(self.plan.test_qrels).join(both, on="query_id", how="semi")
        labels = both.select("query_id", "gender")
        values = [disparity(run, qrels, labels, draws=100)["run"].values for run in runs]
        return (
            pl.concat(values).group_by("query_id", "gender", maintain_order=True).agg(pl.col("value").mean())
        )

    def _apart(self, runs: list[pl.DataFrame]) -> dict[str, float]:
        """Points of percent between the lists of female and of male queries, by process; mean over seeds."""
        from evenrank.psychology import audit_rankings

        labels = self.test.filter(pl.col("gender") != "neutral").select("query_id", "gender")
        result: dict[str, list[float]] = {process: [] for process in PROCESSES}
        for run in runs:
            audit = audit_rankings(
                run, genders=labels, docs=self.index.docs, balance=False, characteristics=PROCESSES
            )
            for process in PROCESSES:
                result[process].append(abs(audit["run", process].difference or 0.0))
        return {process: float(np.mean(each)) for process, each in result.items()}

    def _lean(self, runs: list[pl.DataFrame]) -> float | None:
        """ARaB@10 on the neutral queries, the mean over seeds: above 0 toward male words."""
        from evenrank.measures.evaluate import measure

        lists = [run.filter(pl.col("query_id").is_in(self.neutral)) for run in runs]
        rows = [
            measure(each, "ARaB@10", docs=self.index.docs, confidence=None)["ARaB@10"].value
            for each in lists
            if not each.is_empty()
        ]
        known = [value for value in rows if value is not None]
        return float(np.mean(known)) if known else None


def _cut(queries: pl.DataFrame, qrels: pl.DataFrame, size: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """So many queries, chosen by their ids alone, and their judgments."""
    ids = sorted(queries["query_id"].to_list(), key=lambda query: own_number(0, query))[:size]
    kept = pl.col("query_id").is_in(ids)
    return queries.filter(kept), qrels.filter(kept)


def _unlike(qrels: pl.DataFrame, base: pl.DataFrame) -> int:
    """How many queries of one set are not in the other, or have other relevant documents there."""
    keys = ["query_id", "doc_id"]
    sides = (qrels.join(base, on=keys, how="anti"), base.join(qrels, on=keys, how="anti"))
    return max(side["query_id"].n_unique() for side in sides)


def _sides(table: pl.DataFrame) -> list[Any]:
    return [table.filter(pl.col("gender") == gender)["value"].to_numpy() for gender in ("male", "female")]


def _smallest(sides: list[Any]) -> float | None:
    """The smallest difference of the two means that would have been found in four of five trials.

    It is (t₀.₉₇₅ + t₀.₈) standard errors, t with Welch's degrees of freedom. None where that cannot be known:
    without any spread, and for so few queries that no split of them has p < .05. The least p is that of one
    split, and of its mirror image where both sides are of one size.
    """
    sizes = [len(side) for side in sides]
    farthest = 2 if sizes[0] == sizes[1] else 1
    if min(sizes) < 2 or farthest / math.comb(sum(sizes), sizes[0]) >= LEVEL or all(map(is_constant, sides)):
        return None
    from scipy.special import stdtrit

    errors = [float(side.var(ddof=1)) / len(side) for side in sides]
    freedom = sum(errors) ** 2 / sum(each**2 / (n - 1) for each, n in zip(errors, sizes, strict=True))
    spanned = stdtrit(freedom, 1 - LEVEL / 2) + stdtrit(freedom, POWER)
    return float(spanned * math.sqrt(sum(errors)))


def _gap(table: pl.DataFrame) -> dict[str, Any]:
    sides = _sides(table)
    means = [float(side.mean()) for side in sides]
    test = stats.permutation(*sides)
    return {
        "male": means[0],
        "female": means[1],
        "queries": {"male": len(sides[0]), "female": len(sides[1])},
        "gap": means[0] - means[1],
        "percent": percent_of_lower(*means),
        "low": test.low,
        "high": test.high,
        "p": test.p,
        "smallest gap that would be found": _smallest(sides),
    }


def _change(before: pl.DataFrame, after: pl.DataFrame) -> dict[str, Any]:
    joined = before.join(after.drop("gender"), on="query_id", suffix="_after", maintain_order="left")
    sides = _sides(joined.select("gender", value=pl.col("value_after") - pl.col("value")))
    test = stats.permutation(*sides)
    return {
        "gap": test.difference,
        "low": test.low,
        "high": test.high,
        "p": test.p,
        "smallest change that would be found": _smallest(sides),
        "size": _size_change(joined),
    }


def _size_change(joined: pl.DataFrame) -> dict[str, float | None]:
    """How the size of the gap changes, |after| − |before|, with an interval: queries are drawn as wholes."""

    def gap(values: Any, male: Any, axis: int) -> Any:
        shares = (
            male / male.sum(axis=axis, keepdims=True),
            (1 - male) / (1 - male).sum(axis=axis, keepdims=True),
        )
        return (values * shares[0]).sum(axis=axis) - (values * shares[1]).sum(axis=axis)

    def further(before: Any, after: Any, male: Any, axis: int) -> Any:
        return np.abs(gap(after, male, axis)) - np.abs(gap(before, male, axis))

    male = (joined["gender"] == "male").cast(pl.Float64)
    result = stats.bootstrap(further, joined["value"], joined["value_after"], male)
    return {"difference": result.value, "low": result.low, "high": result.high}
