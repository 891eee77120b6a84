"""Are male queries served better, and do balanced judgments help? (Seyedsalehi et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.disparities import disparity
from evenrank.mitigate.comparing_plan import Plan
from evenrank.mitigate.comparing_sets import SETS, compare_sets
from evenrank.mitigate.matching import association_scores, balance
from evenrank.reproduce.disparities_page import disparities_page
from evenrank.reproduce.page import Page
from evenrank.reproduce.retraining import training_values, unseen
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps, checksum

_WAYS: dict[str, dict[str, Any]] = {
    "matching": {},
    "bins": {"method": "bins"},
    "bins over the male range, as published": {"method": "bins", "range": "male"},
}
_COLUMNS = ("query_id", "doc_id", "relevance", "text", "gender")
_CLOSE = 0.1  # of a standard deviation: means of two distributions that are called alike


def disparities_recipe(settings: Settings, steps: Steps) -> Page:
    """Gaps between male and female queries, where they come from, and what balancing does to them."""
    training = training_values(settings, settings.option("rankers"))
    found: dict[str, Any] = {}
    if scores := _scores(settings.data):
        found["association"] = steps(
            "association", settings.facts | {"form": 2}, partial(_association, settings, *scores)
        )
        found["here"] = f"the published scores of {settings.name}: no texts, so nothing is ranked or trained"
    else:
        found["gaps"] = steps("gaps", settings.facts, partial(_gaps, settings, steps))
        learned = _training(settings)
        work = partial(_associated, learned or settings, steps, learned is not None)
        facts = settings.facts | ({} if learned is None else {"training": learned.facts["data"]})
        found["association"] = steps("association", facts | {"form": 2}, work)
        found["here"] = (
            f"{settings.name}, genders {'predicted' if settings.genders == 'predict' else 'as given'}"
        )
        if learned is not None and settings.option("rankers"):
            work = partial(_trained, settings, training, learned, steps, f"sets {checksum(facts)[:8]}")
            found["trained"] = steps("trained", facts | {"form": 2}, work, trains=True)
    return disparities_page(found)


def _scores(data: str | None) -> list[Path]:
    """The ready scores of female and of male queries in a folder; none if it has neither."""
    found = {
        gender: sorted(Path(data).glob(f"{gender}.*")) if data is not None else []
        for gender in ("female", "male")
    }
    if not any(found.values()):
        return []
    for gender, paths in found.items():
        if not paths:
            raise InputError(f"there is no file {gender}.*: scores of both genders are needed", path=data)
    return [paths[0] for paths in found.values()]


def _training(settings: Settings) -> Settings | None:
    """The same settings for the training queries; None where there is no such split."""
    split = settings.option("train_split")
    return replace(settings, split=split, queries=0) if split else None


def _gaps(settings: Settings, steps: Steps) -> dict[str, Any]:
    """RR@10 of male and of female queries (Table 2)."""
    from evenrank.rankers import make
    from evenrank.rankers.index.building import own_index

    data = settings.dataset()
    labels = tables.genders(settings.labels(data.queries, steps.say))
    both = labels.filter(pl.col("gender").is_in(["female", "male"]))
    asked = data.queries.join(both, on="query_id", how="semi", maintain_order="left")
    runs: dict[str, pl.DataFrame] = {}
    for name in settings.option("systems"):

        def work(name: str = name) -> pl.DataFrame:
            made = make(name, index=own_index(data.docs, steps.say))
            return made.rank(asked, depth=settings.option("depth"))

        runs[name] = steps.run(f"disparities {name}", settings.facts, work)
    runs |= {name: tables.run(path) for name, path in (settings.runs or {}).items()}
    assert data.qrels is not None  # settings see to it
    qrels = data.qrels.join(asked, on="query_id", how="semi")
    made = disparity(runs, qrels, both, seed=settings.seed)
    return {"runs": [one.to_dict() for one in made], "left out": made.left_out}


def _associated(settings: Settings, steps: Steps, seen: bool) -> dict[str, Any]:
    """How close queries stand to their own relevant documents, before and after balancing (Figure 1)."""
    from evenrank.rankers.index.building import own_index

    data = settings.dataset()
    labels = tables.genders(settings.labels(data.queries, steps.say, seen=seen))
    scores = association_scores(own_index(data.docs, steps.say), data.queries, data.qrels)
    known = labels.filter(pl.col("gender").is_in(["female", "male"]))
    if known["gender"].n_unique() < 2:
        raise InputError("there are no female or no male queries; label some with --genders FILE")
    return _association(settings, scores.join(known, on="query_id", how="semi"), None, genders=known)


def _association(settings: Settings, female: Any, male: Any, genders: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, how in _WAYS.items():
        more = {"bins": settings.option("bins"), "seed": settings.seed} if how else {}
        even = balance(female, male, genders=genders, **how, **more)
        found.setdefault("before", {**_distribution(even.before), "by query": _by_query(even.scores)})
        sizes = even.kept["gender"].value_counts()
        found[name] = {
            **_distribution(even.after),
            "kept": dict(sizes.iter_rows()),
            "by query": _by_query(even.kept),
        }
        if "pair" in even.kept.columns:
            margin = _CLOSE * float(np.std(even.scores["score"].to_numpy()))
            found[name]["matched"] = _matched(even.kept) | {"margin": margin}
    return found


def _by_query(scores: pl.DataFrame) -> dict[str, Any]:
    """Male − female: Welch's test over the mean score of each query, as pairs of one query are alike."""
    means = scores.group_by("query_id", "gender", maintain_order=True).agg(pl.col("score").mean())
    sides = [means.filter(pl.col("gender") == gender)["score"] for gender in ("male", "female")]
    narrow = stats.welch(*sides, confidence=0.9)
    return asdict(stats.welch(*sides)) | {"low 90": narrow.low, "high 90": narrow.high}


def _matched(kept: pl.DataFrame) -> dict[str, Any]:
    """Male − female scores after matching: pair by pair if each query stands in one, else by query."""
    if kept["query_id"].is_duplicated().any():
        return _by_query(kept) | {"of": "queries"}
    sides = [kept.filter(pl.col("gender") == gender).sort("pair")["score"] for gender in ("male", "female")]
    narrow = stats.paired(*sides, confidence=0.9)
    found = asdict(stats.paired(*sides)) | {"low 90": narrow.low, "high 90": narrow.high}
    return found | {"n": len(kept), "of": "matched pairs"}


def _distribution(one: Any) -> dict[str, Any]:
    described = one.to_dict()
    described.pop("provenance", None)
    return dict(described)


def _trained(
    settings: Settings, training: Mapping[str, Any], learned: Settings, steps: Steps, name: str
) -> dict[str, Any]:
    """Rankers trained on unbalanced and on balanced judgments (Figure 2)."""
    folder = (steps.folder or Path.cwd()) / "steps" / name
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Any] = {}
    for part, chosen in (("", learned), ("test_", settings)):
        data = chosen.dataset() if chosen is learned else unseen(chosen.dataset(), learned.dataset())
        labels = tables.genders(chosen.labels(data.queries, steps.say, seen=chosen is learned))
        for name, frame in (("queries", data.queries), ("qrels", data.qrels), ("genders", labels)):
            assert frame is not None
            path = inputs / f"{part}{name}.tsv"
            order = [column for column in _COLUMNS if column in frame.columns]
            frame.select(order).write_csv(path, separator="\t")
            paths[f"{part}{name}"] = str(path)
    docs = settings.dataset().docs
    if docs.path is None:
        raise InputError("training needs documents in a file; give a folder as --data")
    plan = Plan(
        docs=str(docs.path),
        **paths,
        writer=settings.option("writer") or None,
        sample=settings.option("sample") or None,
        rankers=tuple(settings.option("rankers")),
        seeds=tuple(range(settings.option("seeds"))),
        depth=settings.option("depth"),
        neutral=0,
        settings=dict.fromkeys(settings.option("rankers"), training),
    )
    result = compare_sets(plan, folder / "compared", say=steps.say)
    judged = tables.qrels(plan.test_qrels)
    both = tables.genders(plan.test_genders).filter(pl.col("gender").is_in(["female", "male"]))
    judged = judged.join(both, on="query_id", how="semi")
    for ranker, sets in result["rankers"].items():
        values = {
            name: _useful(folder / "compared" / "runs", name, ranker, plan.seeds, judged) for name in SETS
        }
        for name in SETS[1:]:
            sets[name]["overall"] = _change(values["unbalanced"], values[name])
    return {
        "sets": {name: _sizes(one) for name, one in result["sets"].items()},
        "rankers": result["rankers"],
        "writer": settings.option("writer") or "SmolLM2",
    }


def _sizes(one: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != "report"}


def _useful(folder: Path, name: str, ranker: str, seeds: Any, qrels: pl.DataFrame) -> dict[str, float]:
    """RR@10 of each query, the mean over the seeds."""
    from evenrank.measures.evaluate import measure

    values: dict[str, list[float]] = {}
    for seed in seeds:
        run = tables.run(folder / f"{name}-{ranker}-{seed}.run.gz")
        run = run.join(qrels, on="query_id", how="semi", maintain_order="left")
        found = measure(run, "RR@10", qrels=qrels, confidence=None)["RR@10"].per_query()
        for query, value in found.items():
            values.setdefault(query, []).append(value)
    return {query: sum(each) / len(each) for query, each in values.items()}


def _change(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    both = [query for query in before if query in after]
    pairs = [after[query] for query in both], [before[query] for query in both]
    narrow = stats.paired(*pairs, confidence=0.9)
    mean = sum(pairs[1]) / max(1, len(both))
    return {**asdict(stats.paired(*pairs)), "low 90": narrow.low, "high 90": narrow.high, "before": mean}
