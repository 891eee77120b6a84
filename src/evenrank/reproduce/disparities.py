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
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Steps, Table, alike, changed, checksum, nearer
from evenrank.reproduce.retraining import unseen
from evenrank.reproduce.settings import Settings, parse_values
from evenrank.show.numbers import DASH, number, p_value

_TABLE_2 = {"BERT-tiny": (0.4065, 0.3397), "MiniLM": (0.4913, 0.4292), "BM25": (0.2783, 0.2284)}
_FIGURE_2 = {  # male / female, read off the image: unbalanced, matching, generation
    "BERT-tiny": (".27–.29 / .19–.22", ".29–.30 / .23–.24", ".38–.40 / .33–.37"),
    "MiniLM": (".31–.34 / .26–.28", ".26–.28 / .24–.26", ".28–.29 / .25–.28"),
    "DistilRoBERTa": (".39 / .31–.32", ".35 / .35–.36", ".40–.41 / .35–.39"),
}
_WAYS: dict[str, dict[str, Any]] = {
    "matching": {},
    "bins": {"method": "bins"},
    "bins over the male range, as published": {"method": "bins", "range": "male"},
}
_ABOUT_TRAINED = (
    "Figure 2's unbalanced bars lie far below Table 2 of the same paper: another baseline. Both are shown.",
    "Small rankers are trained here, on smaller sets; all sets are cut to one size.",
)
_COLUMNS = ("query_id", "doc_id", "relevance", "text", "gender")
_FEW, _FEW_SHARE = 5, 0.05  # queries: a set that differs in fewer is nearly the same
_CLOSE = 0.1  # of a standard deviation: means of two distributions that are called alike


def disparities_recipe(settings: Settings, steps: Steps) -> Page:
    """Gaps between male and female queries, where they come from, and what balancing does to them."""
    parse_values(settings.option("training"))  # what cannot be read is refused before any work
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
            work = partial(_trained, settings, learned, steps, f"sets {checksum(facts)[:8]}")
            found["trained"] = steps("trained", facts | {"form": 2}, work)
    return _page(settings, found)


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
    from evenrank.training.trainer import own_index

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
    from evenrank.training.trainer import own_index

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


def _trained(settings: Settings, learned: Settings, steps: Steps, name: str) -> dict[str, Any]:
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
        settings=dict.fromkeys(settings.option("rankers"), parse_values(settings.option("training"))),
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


def _page(settings: Settings, found: Mapping[str, Any]) -> Page:
    shown, claims = [], []
    if "gaps" in found:
        table, more = _gaps_told(found["gaps"])
        shown.append(table)
        claims += more
    else:
        claims.append(Claim("male queries are served better than female ones", "scores alone: not run", None))
    shown.append(_association_table(found["association"]))
    claims += _association_claims(found["association"])
    if "trained" in found:
        shown.append(_trained_table(found["trained"]))
        claims += _trained_claims(found["trained"])
    else:
        for way in ("matching", "generation"):
            claims.append(Claim(f"{way} lessens the gap of trained rankers", "nothing was trained", None))
    return Page(
        "disparities",
        "Are male queries served better, and do balanced judgments help?",
        "S. Seyedsalehi et al., Addressing Gender-related Performance Disparities in Neural Rankers, "
        "SIGIR 2022: Table 2, Figures 1 and 2",
        "RR@10 of 1,405 male and 1,405 female MS MARCO queries; BM25 scores of 14,000 training queries of "
        "each gender with their relevant passage; bi-encoders trained on all of them, on matched ones, and "
        "with generated ones.",
        found["here"] + ".",
        shown,
        claims,
        [
            "A permutation test and Welch's interval in the place of a paired t-test: male and female "
            "queries are not pairs.",
            "Published bins keep 13,250 queries of each gender. Bins over all scores keep 13,342 of the "
            "released ones: those are another draw with other scores than the published count was made of.",
            *(_ABOUT_TRAINED[:1] if "trained" in found else []),
            "Genders are predicted unless they are given; test queries that the classifier has learned from "
            "are left out, training queries are not.",
            *(_ABOUT_TRAINED[1:] if "trained" in found else []),
        ],
        {key: value for key, value in found.items() if key != "here"},
    )


def _gaps_told(gaps: Mapping[str, Any]) -> tuple[Table, list[Claim]]:
    rows, claims = [], []
    corrected = stats.holm([one["p_permutation"] for one in gaps["runs"]])
    for one, p in zip(gaps["runs"], corrected, strict=True):
        n = sum(one["queries"].values())
        sizes = f"{one['queries']['male']:,} / {one['queries']['female']:,}"
        bounds = DASH if one["low"] is None else f"[{number(one['low'])}, {number(one['high'])}]"
        percent = DASH if one["percent"] is None else f"{one['percent']:.1f}%"
        rows.append(
            [
                f"{one['run']}, here",
                number(one["means"]["male"], ".3f"),
                number(one["means"]["female"], ".3f"),
                number(one["difference"]),
                bounds,
                percent,
                p_value(p),
                sizes,
            ]
        )
        what = f"male {one['means']['male']:.3f}, female {one['means']['female']:.3f}: the gap of RR@10"
        holds = None if p is None or p >= LEVEL else one["difference"] > 0
        says = f"male queries are served better than female ones by {one['run']}"
        claims.append(Claim(says, what, holds, one["difference"], one["low"], one["high"], p, n))
    for name, (male, female) in _TABLE_2.items():
        rows.append(
            [
                f"{name}, published",
                f"{male:.4f}",
                f"{female:.4f}",
                number(male - female),
                DASH,
                f"{100 * (male / female - 1):.2f}%",
                DASH,
                "1,405 / 1,405",
            ]
        )
    headings = [
        "ranker",
        "male",
        "female",
        "difference",
        "95% interval",
        "of the lower",
        "p (Holm)",
        "queries",
    ]
    return Table("Table 2: RR@10 by the gender of the query", headings, rows), claims


def _association_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for name, one in found.items():
        kept = one.get("kept") or one["pairs"]
        rows.append(
            [
                name,
                f"{kept['female']:,}",
                f"{kept['male']:,}",
                number(one["means"]["female"], ".2f"),
                number(one["means"]["male"], ".2f"),
                number(one["difference"]),
                number(one["kolmogorov_smirnov"], ".3f"),
                number(one["overlap"], ".3f"),
                f"{one['by query']['n']:,}",
                number(one["by query"]["difference"]),
                p_value(one["by query"]["p"]),
            ]
        )
    headings = ["", "female pairs", "male pairs", "mean female", "mean male", "difference", "KS", "overlap"]
    headings += ["queries", "difference by query", "p (Welch)"]
    title = "Figure 1: BM25 score of queries with their own relevant document"
    return Table(title, headings, rows, [_distributions(found)])


def _distributions(found: Mapping[str, Any]) -> Chart:
    rows = [
        {"x": low, "end": high, "value": count / max(1, sum(one["histogram"][gender])), "of": gender,
         "panel": _panel(name, one)}
        for name, one in found.items()
        for gender in ("female", "male")
        for low, high, count in zip(one["edges"], one["edges"][1:], one["histogram"][gender], strict=False)
    ]  # fmt: skip
    caption = (
        "Pairs of a query and its relevant document. Where the two differ, the queries of one gender stand "
        "closer to their documents."
    )
    return Chart("histogram", rows, "BM25 score", "share", caption, form="%")


def _panel(name: str, one: Mapping[str, Any]) -> str:
    pairs = one["pairs"]
    return f"{name.partition(',')[0]} ({pairs['female']:,} + {pairs['male']:,} pairs)"


def _association_claims(found: Mapping[str, Any]) -> list[Claim]:
    before, after = found["before"], found["matching"]
    claims = [
        changed(
            "male queries stand closer to their relevant documents",
            "from female to male the mean score of a query",
            before["by query"],
            lower=False,
        )
    ]
    matched = after["matched"]
    told = f"Kolmogorov–Smirnov {after['kolmogorov_smirnov']:.3f}; the mean of {matched['of']}"
    says = "after matching the two distributions are alike"
    claims.append(alike(says, told, matched, matched["margin"]))
    return claims


def _trained_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for ranker, sets in found["rankers"].items():
        for name, one in sets.items():
            bounds = DASH if one["low"] is None else f"[{number(one['low'])}, {number(one['high'])}]"
            rows.append(
                [
                    f"{ranker}, {name}" if name != "bm25" else "bm25",
                    *_held(found["sets"].get(name)),
                    number(one["male"], ".3f"),
                    number(one["female"], ".3f"),
                    number(one["gap"]),
                    bounds,
                    p_value(one["p"]),
                    number(one["smallest gap that would be found"], ".3f"),
                ]
            )
    for ranker, told in _FIGURE_2.items():
        for name, values in zip(SETS, told, strict=False):
            male, female = values.split(" / ")
            rows.append([f"{ranker}, {name}, published", *_held(None), male, female, *[DASH] * 4])
    headings = [
        "ranker, trained on",
        "queries",
        "real female",
        "real male",
        "generated",
        "male",
        "female",
        "gap",
        "95% interval",
        "p",
        "smallest gap to be found",
    ]
    title = "Figure 2: RR@10 of rankers by what they were trained on"
    return Table(title, headings, rows, [_served(found["rankers"])])


def _held(one: Mapping[str, Any] | None) -> list[str]:
    """How many queries a set holds: all, real female and male ones, generated ones."""
    if one is None:
        return [DASH] * 4
    return [f"{one.get(key, 0):,}" for key in ("queries", "real female", "real male", "generated")]


def _served(rankers: Mapping[str, Any]) -> Chart:
    rows = [
        {"x": name, "value": one[gender], "of": gender, "panel": ranker}
        for ranker, sets in rankers.items()
        for name, one in sets.items()
        for gender in ("female", "male")
    ]
    sizes = next(iter(next(iter(rankers.values())).values()))["queries"]
    caption = (
        f"Intervals of the gaps are below. n = {sizes['female']:,} female and {sizes['male']:,} male queries."
    )
    return Chart("bars", rows, "", "RR@10", caption)


def _trained_claims(found: Mapping[str, Any]) -> list[Claim]:
    claims = []
    for ranker, sets in found["rankers"].items():
        plain = sets["unbalanced"]
        for name in ("matching", "generation"):
            says, change = f"{name} lessens the gap of {ranker}", sets[name]["change"]
            if same := _hardly_unlike(found["sets"][name]):
                claims.append(Claim(says, same, None))
                continue
            told = {
                **change["size"],
                "before": plain["gap"],
                "after": sets[name]["gap"],
                "moved": change["p"],
                "n": sum(plain["queries"].values()),
            }
            claims.append(nearer(says, "the gap of RR@10", told))
        for name in ("matching", "generation"):
            overall = sets[name]["overall"]
            says = f"{name} keeps the effectiveness of {ranker} over all queries"
            if same := _hardly_unlike(found["sets"][name]):
                claims.append(Claim(says, same, None))
            else:
                claims.append(alike(says, "RR@10", overall, 0.05 * overall["before"]))
    return claims


def _hardly_unlike(one: Mapping[str, Any]) -> str:
    """Why nothing can be told of a set: it is nearly the unbalanced one; else empty."""
    unlike, size = one["unlike unbalanced"], one["queries"]
    if unlike >= max(_FEW, _FEW_SHARE * size):
        return ""
    are = "query is" if unlike == 1 else "queries are"
    return f"{unlike} of its {size:,} {are} other than in the unbalanced set: too few to tell"
