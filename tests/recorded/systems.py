"""Cases of the rankers, of what reduces bias, and of queries and texts that are rewritten.

Neural rankers are not recorded: their scores differ between processors by more than 1e-9.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl
from tests.recorded.helpers import data, ranking, shortened
from tests.recorded.record import Case

import evenrank as er
from evenrank import demo

CASES: dict[str, Case] = {}
SLOW = {f"squad/sweep/constrain {each}" for each in ("mean", "each", "NFaiRR")} | {
    "squad/rank/bm25+rm3(thesis)",
    "time/sweep/constrain mean",
}
QUERIES, DOCUMENTS = 12, 10  # recorded of a run; the rest is in the sums
MORE_QUERIES, MORE_DOCUMENTS = 30, 20  # of the runs that others build on
COLLECTIONS = ("demo", "time", "grepbiasir", "squad")


# What the cases work on


@cache
def collection(name: str) -> Any:
    """Documents, queries and judgments."""
    if name == "demo":
        return er.load(demo.folder())
    return er.load(data(f"data/{name}"), split="test" if name == "squad" else None)


@cache
def some_queries(name: str, count: int = 100) -> pl.DataFrame:
    """The first queries of a collection, in the order of their ids."""
    return collection(name).queries.sort("query_id").head(count)


@cache
def folder() -> Path:
    """Where the indexes are; it is removed at the end."""
    import atexit

    path = Path(tempfile.mkdtemp(prefix="evenrank-recorded-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def index(name: str) -> Any:
    return er.index(collection(name).docs, folder() / name)


@cache
def tally(name: str) -> Any:
    return er.tally(collection(name).docs)


def bm25_run(name: str) -> Path:
    """A run of BM25 that other software made, and that is therefore the same whatever changes here."""
    if name == "demo":
        return demo.folder() / "bm25.run"
    return data(f"runs/{name}.bm25.run" + (".gz" if name == "squad" else ""))


@cache
def vectors() -> Any:
    from evenrank.vectors.formats import load

    return load(data("data/vectors/glove-100d.bin.gz"))


@cache
def document_labels() -> dict[str, str]:
    """Whether a document of Grep-BiasIR is about women, men or nobody."""
    names = {"F": "female", "M": "male", "N": "neutral"}
    rows = map(json.loads, data("data/grepbiasir/docs.jsonl").read_text().splitlines())
    return {str(row["doc_id"]): names[row["gender"]] for row in rows if row["gender"] in names}


@cache
def query_genders(name: str) -> dict[str, str]:
    """The gender that the shipped classifier gives to each query; unsure ones are neutral."""
    labels = er.classify(collection(name).queries).select("query_id", "label").iter_rows()
    return {query: "neutral" if label == "unknown" else label for query, label in labels}


# How results are recorded


def top_lists(run: pl.DataFrame, queries: int, documents: int) -> pl.DataFrame:
    """The first documents of some queries: query_id, doc_id and score, both lists."""
    shown = run["query_id"].unique().sort().head(queries)
    top = run.filter(pl.col("query_id").is_in(shown.implode()), pl.col("rank") <= documents)
    return top.sort("query_id", "rank").group_by("query_id", maintain_order=True).agg("doc_id", "score")


def run_values(run: pl.DataFrame, queries: int = QUERIES, documents: int = DOCUMENTS) -> dict[str, Any]:
    """A run: the top of some queries, and counts and sums over all."""
    frame = pl.DataFrame(run)
    lists = top_lists(frame, queries, documents)
    return {
        "queries": frame["query_id"].n_unique(),
        "rows": frame.height,
        "sum of scores": float(frame["score"].sum()),
        "sum of squares": float((frame["score"] ** 2).sum()),
        "sum of scores / rank": float((frame["score"] / frame["rank"]).sum()),
        "top": {query: ranking(zip(ids, scores, strict=True)) for query, ids, scores in lists.iter_rows()},
    }


def orders(run: pl.DataFrame) -> dict[str, list[str]]:
    """The first documents of some queries, where scores only say the order."""
    return dict(top_lists(run, MORE_QUERIES, DOCUMENTS).select("query_id", "doc_id").iter_rows())


def rows(frame: pl.DataFrame, count: int | None = None) -> list[list[Any]]:
    """The rows of a table, or the first of them, under the names of its columns."""
    return [frame.columns, *map(list, frame.head(count or frame.height).iter_rows())]


def columns(frame: pl.DataFrame, key: str) -> dict[str, Any]:
    """The columns of numbers of a table with one row for each key, and how often each text occurs."""
    recorded: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if name == key:
            continue
        if column.dtype.is_numeric():
            known = frame.select(key, name).filter(column.is_not_null() & column.cast(pl.Float64).is_finite())
            values = {str(row): value for row, value in known.iter_rows()}
            recorded[name] = shortened(values, QUERIES) | {"without": len(column) - len(values)}
        else:
            counts = frame.group_by(name).len().sort(name, nulls_last=True).iter_rows()
            recorded[name] = {str(value): count for value, count in counts}
    return recorded


def intervals(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Intervals that an object has, by the names of its attributes."""
    return {name: [getattr(getattr(value, name), end) for end in ("value", "low", "high")] for name in names}


def bounds(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Means of a row with their intervals, by the names of its columns."""
    return {name: [row[name], row[f"{name}_low"], row[f"{name}_high"]] for name in names}


# Rankers


def rank(name: str, ranker: str, settings: Mapping[str, Any]) -> Any:
    given = dict(settings)
    if ranker in ("perfect", "random"):
        judged = collection(name).qrels
        return run_values(er.search(None, collection(name).queries, ranker=ranker, qrels=judged, **given))
    if ranker.startswith("w2v"):
        given["vectors"] = vectors()
    run = er.search(index(name), collection(name).queries, ranker=ranker, depth=100, **given)
    if ranker in ("bm25", "qld", "tfidf") and not settings:
        return run_values(run, MORE_QUERIES, MORE_DOCUMENTS)
    return run_values(run)


def expanded(name: str, settings: Mapping[str, Any]) -> Any:
    """Runs and terms of RM3, plain and with documents chosen by their bias."""
    found = er.feedback(
        index(name), some_queries(name), lambdas=[0.5, 1.0], depth=100, measures=["ARaB@10"],
        confidence=None, **settings,
    )  # fmt: skip
    recorded = {}
    for strength, step in found.steps.items():
        shown = step.expanded["query_id"].unique().sort().head(6)
        some = step.expanded.filter(pl.col("query_id").is_in(shown.implode()))
        some = some.sort("query_id", "weight", "term", descending=[False, True, False])
        lists = some.group_by("query_id", maintain_order=True).agg("term", "weight")
        recorded[str(strength)] = {
            "run": run_values(step.run, 5),
            "terms": {q: ranking(zip(t, w, strict=True)) for q, t, w in lists.iter_rows()},
            "number of terms": step.expanded.height,
            "sum of squares of weights": float((step.expanded["weight"] ** 2).sum()),
        }
    return recorded


RANKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bm25": ("bm25", {}),
    "bm25(k1=1.2,b=0.75)": ("bm25", {"k1": 1.2, "b": 0.75}),
    "qld": ("qld", {}),
    "qld(mu=2000)": ("qld", {"mu": 2000}),
    "tfidf": ("tfidf", {}),
    "bm25+rm3": ("bm25+rm3", {}),
    "qld+rm3": ("qld+rm3", {}),
    "bm25+rm3(thesis)": ("bm25+rm3", {"estimator": "thesis"}),
    "perfect": ("perfect", {}),
    "random": ("random", {"seed": 3}),
}
for _name in COLLECTIONS:
    for _label, (_ranker, _settings) in RANKERS.items():
        CASES[f"{_name}/rank/{_label}"] = partial(rank, _name, _ranker, _settings)
for _name in COLLECTIONS[1:]:
    for _ranker in ("w2v_add", "w2v_si"):
        for _debias in ("regular", "hard", "strong"):
            CASES[f"{_name}/rank/{_ranker}({_debias})"] = partial(rank, _name, _ranker, {"debias": _debias})

FEEDBACK: dict[str, dict[str, Any]] = {
    "tf": {},
    "boolean": {"magnitude": "boolean"},
    "count": {"magnitude": "count"},
    "liwc": {"magnitude": "liwc"},
    "thesis": {"estimator": "thesis"},
    "qld": {"ranker": "qld", "fb_docs": 5, "fb_terms": 20, "alpha": 0.7},
}
for _name in COLLECTIONS:
    for _label, _settings in FEEDBACK.items():
        if _name in ("demo", "squad") or _label in ("tf", "thesis"):
            CASES[f"{_name}/expand/{_label}"] = partial(expanded, _name, _settings)


# Re-ranking


def constrain(name: str, limit: list[str], settings: Mapping[str, Any]) -> Any:
    given = dict(settings)
    if given.pop("labels", False):
        given["labels"] = document_labels()
    else:
        given["tally"] = tally(name)
    if given.pop("docs", False):
        given["docs"] = collection(name).docs
    found = er.constrain(bm25_run(name), limit=limit, **given)
    certificate = found.certificate
    report = found.report.drop("work")  # how it was computed, which may change
    return {
        "run": run_values(found),
        "certificate": {key: certificate[key] for key in ("status", "proved", "largest_gap", "mean_loss")},
        "more": {key: certificate[key] for key in sorted(certificate) if key == "multipliers"},
        "queries": columns(report, "query_id"),
        "status": dict(report.sort("query_id").select("query_id", "status").head(QUERIES).iter_rows()),
    }


CONSTRAIN: dict[str, tuple[list[str], dict[str, Any]]] = {
    "each": (["abs(ARaB@10)<=0.1"], {}),
    "each two limits": (["abs(ARaB@10)<=0.05", "NFaiRR@10>=0.9"], {}),
    "each order": (["abs(RaB(magnitude='boolean')@10)<=0.1"], {"utility": "order", "candidates": 30}),
    "each tight": (["abs(ARaB@20)<=0.001"], {"budget": 0.01}),
    "exact": (["abs(ARaB@10)<=0.02"], {"exact": True, "candidates": 20}),
    "mean": (["abs(ARaB@10)<=0.05"], {"mode": "mean"}),
    "mean two limits": (["abs(ARaB@10)<=0.08", "NFaiRR@10>=0.8"], {"mode": "mean"}),
    "LIWC": (["abs(LIWC@10)<=1"], {"docs": True}),
    "LIWC mean": (["LIWC@10<=1"], {"docs": True, "mode": "mean"}),
}
for _name in COLLECTIONS:
    for _label, (_limit, _settings) in CONSTRAIN.items():
        CASES[f"{_name}/constrain/{_label}"] = partial(constrain, _name, _limit, _settings)
CASES["grepbiasir/constrain/Skew"] = partial(
    constrain, "grepbiasir", ["Skew(group='female', target='equal')@10>=-0.1"], {"labels": True}
)
CASES["grepbiasir/constrain/MinSkew"] = partial(
    constrain, "grepbiasir", ["MinSkew@10>=-0.2", "MaxSkew@10<=0.3"], {"labels": True, "exact": True}
)


def rebalance(name: str, method: str, settings: Mapping[str, Any]) -> Any:
    given = dict(settings)
    if given.pop("labels", False):
        given["labels"] = document_labels()
    else:
        given["tally"] = tally(name)
    found = er.rebalance(bm25_run(name), method, **given)
    return {"run": run_values(found), "queries": columns(found.report, "query_id")}


REBALANCERS = ("detgreedy", "detcons", "detrelaxed", "detconstsort", "fair")
for _name in COLLECTIONS:
    for _method in REBALANCERS:
        _group = {"group": "female"} if _method == "fair" else {}
        CASES[f"{_name}/rebalance/{_method}"] = partial(
            rebalance, _name, _method, {"target": "equal", **_group}
        )
for _method in REBALANCERS:
    _fair: dict[str, Any] = {"group": "female", "alpha": 0.05} if _method == "fair" else {}
    CASES[f"grepbiasir/rebalance/{_method} labels"] = partial(
        rebalance, "grepbiasir", _method, {"labels": True, "strength": 0.7, "at": 20, **_fair}
    )


def penalise(name: str, bias: str) -> Any:
    return run_values(er.penalise(bm25_run(name), tally(name), 1.5, bias=bias))


def interpolate(name: str, bias: str) -> Any:
    return orders(er.interpolate(bm25_run(name), tally(name), 0.6, bias=bias))


for _name in COLLECTIONS:
    for _label in ("tf", "boolean"):
        CASES[f"{_name}/penalise/{_label}"] = partial(penalise, _name, _label)
        CASES[f"{_name}/interpolate/{_label}"] = partial(interpolate, _name, _label)


def sweep(name: str, method: str, settings: Mapping[str, Any]) -> Any:
    """Bias against usefulness at some strengths."""
    given: dict[str, Any] = {"qrels": collection(name).qrels, "resamples": 500, **settings}
    if method == "feedback":
        run = None
        given |= {"index": index(name), "queries": collection(name).queries}
    else:
        run = bm25_run(name)
    found = er.sweep(run, tally(name), method=method, **given)
    points = []
    for point in found:
        values: dict[str, Any] = {
            "strength": None if point is found.points[0] else point.strength,
            **intervals(point, ("bias", "utility")),
            "p_holm": point.p_holm,
            "bias_p_holm": point.bias_p_holm,
            "front": point.front,
            "chosen": point is found.chosen,
        }
        for change in ("change", "bias_change"):
            tested = getattr(point, change)
            names = ("difference", "low", "high", "p")
            values[change] = tested and [getattr(tested, each) for each in names]
        points.append(values)
    return {
        "queries": len(found.queries),
        "less_bias_significant": found.less_bias_significant,
        "points": points,
    }


SWEEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "constrain mean": ("constrain", {}),
    "constrain each": ("constrain", {"mode": "each", "tolerance": 0.02}),
    "constrain NFaiRR": ("constrain", {"bias": "NFaiRR@10"}),
    "interpolate": ("interpolate", {}),
    "penalty": ("penalty", {}),
    "detgreedy": ("detgreedy", {"bias": "NDKL(target='equal')@10", "strengths": [0.5, 1.0]}),
    "feedback": ("feedback", {"strengths": [0.5, 1.0]}),
}
for _name in COLLECTIONS:
    for _label, (_method, _settings) in SWEEPS.items():
        if _name in ("demo", "time") or _label != "feedback":
            CASES[f"{_name}/sweep/{_label}"] = partial(sweep, _name, _method, _settings)


def feedback(name: str) -> Any:
    """RM3 at growing strength: measures, tests and gendered terms of each step."""
    found = er.feedback(
        index(name), some_queries(name), qrels=collection(name).qrels, lambdas=[0.3, 0.5, 0.9],
        tally=tally(name), depth=100, resamples=500,
    )  # fmt: skip
    gains = found.per_query("ARaB@10", lambda_=0.5).sort("query_id")
    frame = found.frame().with_columns(fb_docs=10, fb_terms=10)
    return {
        "steps": rows(frame.select("lambda", "fb_docs", "fb_terms", *frame.columns[1:-2])),
        "gains": columns(gains, "query_id"),
        "harmless": harmless(frame.filter(measure="nDCG@10")),
        "side by side": [
            {"query": query, "removed": removed}
            for query, removed in found.side_by_side(0.5, top=5).select("query_id", "removed").iter_rows()
        ],
    }


def harmless(steps: pl.DataFrame) -> float:
    """The largest λ up to which no λ lowers a measure of effectiveness significantly."""
    reached = 0.0
    for strength, difference, p in steps.select("lambda", "difference", "p_holm").tail(-1).iter_rows():
        if p is not None and p < 0.05 and difference < 0:
            break
        reached = strength
    return reached


for _name in COLLECTIONS:
    CASES[f"{_name}/feedback/sweep"] = partial(feedback, _name)


# Training sets


def negatives(name: str, settings: Mapping[str, Any]) -> Any:
    given = dict(settings)
    if given.get("bias") == "liwc":
        given["docs"] = collection(name).docs
    elif given.get("bias") == "label":
        given["labels"] = document_labels()
    else:
        given["tally"] = tally(name)
    found = er.negatives(bm25_run(name), collection(name).qrels, **given)
    frame = found.frame
    shown = frame["query_id"].unique().sort().head(QUERIES)
    some = frame.filter(pl.col("query_id").is_in(shown.implode()))
    lists = some.group_by("query_id", maintain_order=True).agg("doc_id", "bias", "biased").sort("query_id")
    return {
        "rows": frame.height,
        "biased": int(frame["biased"].sum()),
        "positives": found.positives.height,
        "left out": sorted(found.left_out.values()),
        "bias": float(frame["bias"].sum()),
        "squares of bias": float((frame["bias"] ** 2).sum()),
        "some": rows(lists),
    }


NEGATIVES: dict[str, dict[str, Any]] = {
    "lambda 0": {"bias_lambda": 0.0},
    "lambda 0.6": {"bias_lambda": 0.6},
    "lambda 1 boolean": {"bias_lambda": 1.0, "bias": "boolean", "n": 10, "depth": 50},
    "lambda 0.5 liwc": {"bias_lambda": 0.5, "bias": "liwc", "n": 10, "seed": 7},
}
for _name in COLLECTIONS:
    for _label, _settings in NEGATIVES.items():
        CASES[f"{_name}/negatives/{_label}"] = partial(negatives, _name, _settings)
CASES["grepbiasir/negatives/label"] = partial(negatives, "grepbiasir", {"bias": "label", "n": 10})


def distributions(value: Any) -> dict[str, Any]:
    """How far the scores of two genders are apart."""
    names = ("means", "medians", "pairs", "edges", "histogram", "kolmogorov_smirnov", "p", "wasserstein")
    recorded = {name: getattr(value, name) for name in (*names, "overlap")}
    return recorded | {"welch": [value.welch.difference, value.welch.p]}


def association_scores(name: str, queries: Any, qrels: Any) -> pl.DataFrame:
    """The BM25 score of each query with its relevant documents."""
    from evenrank.mitigate.balance.matching import association_scores

    return association_scores(index(name), queries, qrels)


@cache
def real_scores(name: str) -> pl.DataFrame:
    return association_scores(name, collection(name).queries, collection(name).qrels)


def balanced(value: Any) -> dict[str, Any]:
    kept = value.pairs.sort("gender", "query_id", "doc_id")
    return {
        "kept": kept.height,
        "sum of scores": float(kept["score"].sum()),
        "first": rows(kept.select("query_id", "doc_id", "score", "gender"), 60),
        "matched pairs": kept["pair"].n_unique() if "pair" in kept.columns else 0,
        "unscored": sum(value.left_out.values()),
        "before": distributions(value.before),
        "after": distributions(value.after),
    }


def balance_published(settings: Mapping[str, Any], count: int) -> Any:
    """Matching on the scores of the paper, or some of them."""
    sides = [
        pl.read_csv(data(f"data/association/{gender}.tsv.gz"), separator="\t")
        .gather_every(14_000 // count)
        .with_columns(gender=pl.lit(gender))
        for gender in ("female", "male")
    ]
    scores = pl.concat(sides)
    genders = scores.select("query_id", "gender").unique()
    return balanced(er.balance(scores.drop("gender"), genders, **settings))


def balance_collection(name: str, settings: Mapping[str, Any]) -> Any:
    return balanced(er.balance(real_scores(name), query_genders(name), **settings))


BALANCE: dict[str, dict[str, Any]] = {
    "matching": {},
    "caliper": {"caliper": 0.5},
    "bins": {"method": "bins"},
    "bins male": {"method": "bins", "bins": 5, "range": "male", "seed": 2},
}
for _label, _settings in BALANCE.items():
    CASES[f"association/balance/{_label}"] = partial(balance_published, _settings, 2800)
    CASES[f"squad/balance/{_label}"] = partial(balance_collection, "squad", _settings)


@cache
def generated(name: str) -> Any:
    """Queries made of phrases of the documents; no model is needed."""
    return er.generate(collection(name).docs, 2, "extractive", sample=1500, seed=1)


def generate(name: str) -> Any:
    made = generated(name).queries.sort("query_id")
    return {"queries": made.height, "characters": int(made["text"].str.len_chars().sum()),
            "first": rows(made, 50)}  # fmt: skip


@cache
def generated_genders(name: str) -> dict[str, str]:
    labels = er.classify(generated(name).queries.select("query_id", "text")).select("query_id", "label")
    return {query: "neutral" if label == "unknown" else label for query, label in labels.iter_rows()}


def fill(name: str, settings: Mapping[str, Any]) -> Any:
    made = generated(name)
    judged = made.queries.select("query_id", "doc_id", relevance=pl.lit(1))
    scores = association_scores(name, made.queries.select("query_id", "text"), judged)
    found = er.fill(
        real_scores(name), made.queries, genders=query_genders(name), generated_scores=scores,
        generated_genders=generated_genders(name), **settings,
    )  # fmt: skip
    return {
        "added": rows(found.added.join(found.pairs, on=["query_id", "doc_id"]).sort("query_id"), 60),
        "number added": found.added.height,
        "sum of scores": float(found.pairs["score"].sum()),
        "missing": {reason.split()[0]: count for reason, count in found.left_out.items()},
        "before": distributions(found.before),
        "after": distributions(found.after),
    }


def even_judgments(name: str, settings: Mapping[str, Any]) -> Any:
    given = generated(name).queries
    found = er.even_judgments(given, collection(name).docs, genders=generated_genders(name), **settings)
    return {
        "pairs": found.pairs.height,
        "first": rows(found.pairs, 60),
        "sum of distances": float(found.pairs["distance"].sum()),
        "added": found.added["query_id"].to_list()[:60],
        "number added": found.added.height,
        "counts": found.counts,
        "left out": sorted(found.left_out.values()),
    }


CASES["demo/generate/extractive"] = partial(generate, "demo")
CASES["squad/generate/extractive"] = partial(generate, "squad")
CASES["squad/fill/bins"] = partial(fill, "squad", {})
CASES["squad/fill/bins male"] = partial(fill, "squad", {"bins": 5, "range": "male", "seed": 2})
for _name in ("demo", "squad"):
    CASES[f"{_name}/judgments/all"] = partial(even_judgments, _name, {})
    CASES[f"{_name}/judgments/ratio"] = partial(even_judgments, _name, {"size": 200, "ratio": 0.25})
    CASES[f"{_name}/judgments/reuse"] = partial(even_judgments, _name, {"reuse": True})


# Swapped genders

SENTENCES = [
    "Mary gave her brother his book, and he thanked her.",
    "The book is his; the other is hers.",
    "She said that it was hers, not his.",
    "HE SAID HE'D SEE HIS MOTHER. She'll see hers.",
    "Mrs. Smith and Mr. Jones met the King's daughters.",
    "The chairman's wife, a policewoman, is a mother-in-law.",
    "Her husband saw her with him, and she saw herself.",
    "John and Elizabeth live in Virginia; Grace is a virtue, Will will go.",
    "Sir Isaac Newton, the Duke and the Duchess; the actress and the waiter.",
    "The boys and girls, ladies and gentlemen, grandmothers and uncles.",
    "Bishop Tutu met Father Brown, a monk; Sister Mary is a nun.",
    "A nurse helped the surgeon.",
    "Ms Marple, his aunt's niece, told him he’s a widower's heir.",
    "",
]


def swap_sentences(settings: Mapping[str, Any]) -> Any:
    return er.swap(SENTENCES, **settings)


def swap_collection(name: str) -> Any:
    """Documents with the other gender; of all of them, how much text they have and which words."""
    mirrored = er.swap(collection(name).docs)
    frame = mirrored.frame().select("doc_id", "text").sort("doc_id")
    twins = er.swap(frame["text"])
    counts = er.tally(mirrored).frame
    numbers = [name for name in counts.columns if counts[name].dtype.is_numeric()]
    return {
        "characters": int(frame["text"].str.len_chars().sum()),
        "characters when swapped twice": int(twins.str.len_chars().sum()),
        "tally": {name: float(counts[name].sum()) for name in numbers},
        "first": [[doc, text[:400]] for doc, text in frame.head(25).iter_rows()],
    }


CASES["demo/swap/sentences"] = partial(swap_sentences, {})
CASES["demo/swap/sentences without names"] = partial(swap_sentences, {"names": False})
CASES["demo/swap/sentences without lexicon"] = partial(swap_sentences, {"lexicon": None})
for _name in COLLECTIONS:
    CASES[f"{_name}/swap/documents"] = partial(swap_collection, _name)


def preference(name: str, settings: Mapping[str, Any]) -> Any:
    """What a ranker prefers, and what the texts bring."""
    given = dict(settings)
    if given.pop("candidates", False):
        given["candidates"] = collection(name).qrels
    found = er.mirror(collection(name).docs, some_queries(name), **given)
    parts = ("raw", "mirrored", "preference", "content")
    recorded = {}
    for row in found.summary.iter_rows(named=True):
        values = found.values.filter(pl.col("ranker") == row["ranker"]).drop("ranker").sort("query_id")
        tested = {"queries": row["queries"], "p": row["p"], "p_holm": row["p_holm"], **bounds(row, parts)}
        recorded[row["ranker"]] = tested | {"per query": columns(values, "query_id")}
    return {"rankers": recorded, "left out": sorted(found.left_out.values())}


def counterfactual(name: str, settings: Mapping[str, Any]) -> Any:
    """How far gender alone moves documents."""
    given = dict(settings)
    if given.pop("judged", False):
        given["candidates"] = collection(name).qrels
    if any(each.startswith("w2v") for each in given["rankers"]):
        given["vectors"] = vectors()
    found = er.mirror(collection(name).docs, some_queries(name, 40), pairs=True, depth=200, **given)
    parts = ("rank_shift", "score_shift", "moved", "original")
    numbers = ("queries", "pairs", "male_wins", "female_wins", "ties", "p", "p_holm")
    summary = {
        shift["ranker"]: bounds(shift, parts) | {each: shift[each] for each in numbers}
        for shift in found.summary.iter_rows(named=True)
    }
    pairs = found.values.sort("ranker", "query_id", "doc_id")
    shown = pairs.select("ranker", "query_id", "doc_id", "rank", "mirror_rank", "rank_shift", "score_shift")
    return {"summary": summary, "left out": sorted(found.left_out.values()), "pairs": rows(shown, 80)}


CASES["demo/preference/rankers"] = partial(preference, "demo", {"rankers": ["bm25", "qld", "bm25+rm3"]})
CASES["time/preference/mirrored queries"] = partial(
    preference, "time", {"rankers": ["bm25", "tfidf"], "gendered_queries": True}
)
CASES["squad/preference/boolean"] = partial(
    preference, "squad", {"measure": "ARaB(magnitude='boolean')@10", "names": False}
)
CASES["genderbias-qa/preference/candidates"] = partial(
    preference, "genderbias-qa", {"rankers": ["bm25", "qld"], "measure": "ARaB@4", "candidates": True}
)
CASES["demo/counterfactual/rankers"] = partial(counterfactual, "demo", {"rankers": ["bm25", "qld"]})
CASES["demo/counterfactual/judged"] = partial(
    counterfactual, "demo", {"rankers": ["tfidf"], "judged": True, "at": None, "gendered_queries": True}
)
CASES["time/counterfactual/rankers"] = partial(counterfactual, "time", {"rankers": ["bm25", "w2v_add"]})
CASES["grepbiasir/counterfactual/hard"] = partial(
    counterfactual, "grepbiasir", {"rankers": ["bm25", "w2v_si(debias=hard)"], "at": 20}
)


# Variants of queries


def variants(name: str, like: bool) -> Any:
    model = data("data/query-variants/triples.tsv") if like else None
    made = er.variants(collection(name).queries, like=model).sort("triple_id")
    return {"queries": made.height, "first": rows(made, 60)}


def variant_audit(value: Any) -> dict[str, Any]:
    names = ("engine", "measure", "topic", "toward", "triples", "value", "low", "high", "p", "p_holm")
    return {
        "rows": [[*(getattr(row, each) for each in names), dict(row.parts)] for row in value.rows],
        "triples": rows(value.values.sort("engine", "measure", "triple_id"), 60),
        "left out": {engine: sorted(reasons.values()) for engine, reasons in value.left_out.items()},
    }


def compare_engines() -> Any:
    return variant_audit(er.compare_variants(data("data/search-engines/results.tsv"), resamples=500))


def compare_index(name: str, written: bool, ranker: str) -> Any:
    given: dict[str, Any] = {"ranker": ranker, "resamples": 500}
    if written:
        given["triples"] = data("data/query-variants/triples.tsv")
    else:
        given["queries"] = collection(name).queries
    return variant_audit(er.compare_variants(index(name), **given))


for _name in COLLECTIONS:
    CASES[f"{_name}/variants/shipped"] = partial(variants, _name, False)
    if _name != "demo":
        CASES[f"{_name}/variants/learned"] = partial(variants, _name, True)
CASES["search-engines/compare_variants/engines"] = compare_engines
CASES["demo/compare_variants/bm25"] = partial(compare_index, "demo", False, "bm25")
for _ranker in ("bm25", "qld"):
    CASES[f"squad/compare_variants/{_ranker}"] = partial(compare_index, "squad", True, _ranker)
