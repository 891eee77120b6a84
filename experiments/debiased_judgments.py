"""Do generated judgments whose documents read alike make a ranker less biased? (Bigdeli, thesis, 3.2)"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from evenrank.psychology import scores
from evenrank.queries.classify import predicted_genders
from evenrank.rankers.indexing import cached_index
from evenrank.show.numbers import p_value
from evenrank.text.lexicon import PROCESSES
from evenrank.training import train_ranker
from experiments.common import Results

PAPER = "Bigdeli, thesis 3.2"
CONTENT = "Tables 3.6-3.12"
RATIOS = (0.05, 0.15, 0.25, 0.35)
CHOSEN = 0.25
MEASURES = {
    "RR@10": "RR@10",
    "TF ARaB@10": "ARaB@10",
    "Boolean ARaB@10": "ARaB(magnitude='boolean')@10",
    "LIWC@10 %": "LIWC@10",
}
DEPTH = 100
"""Of BM25, which the ranker re-orders, in training too."""
MARGIN = 0.05
"""The share of RR@10 that may be lost where the thesis finds no significant loss."""


def run(results: Results, training_queries: int = 2000, seeds: int = 3, passages: int = 20_000) -> None:
    ratios: tuple[float, ...] = (0.0, *RATIOS)
    if results.quick:
        training_queries, seeds, passages, ratios = 200, 1, 3_000, (0.0, CHOSEN)
        results.leave_out(
            f"ratios but {CHOSEN}, all but 200 training and 400 test queries, and all seeds but one"
        )
    results.leave_out("AdvBert and BERT-base (Tables 3.8 to 3.12): an adversary needs a transformer ranker")
    results.differs(
        f"KNRM with GloVe vectors ({seeds} seeds, {training_queries:,} training queries of wiki) instead of "
        f"BERT on MS MARCO; queries taken out of {passages:,} passages by rules instead of written by T5; "
        "the open dictionary instead of LIWC; the neutral test queries of wiki instead of the sets of 1,765 "
        "and 215. A query's value is the mean over the seeds. LIWC is in percent throughout."
    )
    folder = results.path("data", "wiki")
    vectors = results.path("data", "vectors", "glove-100d.bin.gz")
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    docs, index = test.docs, cached_index(test.docs)
    queries = train.queries.sample(training_queries, seed=0)
    qrels = train.qrels.join(queries, on="query_id", how="semi").filter(pl.col("relevance") > 0)
    requested = test.queries.head(400) if results.quick else test.queries
    first = er.search(index, requested, depth=DEPTH)
    generated = er.filter_generated(er.generate(docs, 1, "extractive", sample=passages))
    epochs = 2 if results.quick else 8
    added, runs = dict.fromkeys(ratios, 0), {}
    for ratio in ratios:
        mine, judged = queries, qrels
        if ratio:
            more = er.even_judgments(generated, docs, ratio=ratio, size=len(qrels))
            mine, judged, added[ratio] = more.queries(queries), more.qrels(qrels), len(more.added)
        given: dict[str, Any] = {"run": er.search(index, mine, depth=DEPTH), "vectors": vectors}
        runs[ratio] = []
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as output:
                model = Path(output) / "knrm"
                train_ranker("knrm", docs, mine, judged, model, seed=seed, epochs=epochs, **given)
                runs[ratio].append(er.rerank(model, first, docs, requested, depth=DEPTH))
        results.console.print(f"[dim]ratio {ratio:g}: {added[ratio]:,} queries added, trained[/]")
    genders, labelled = predicted_genders(requested)
    results.differs(f"genders of queries: {labelled}")
    relevant = test.qrels.join(requested, on="query_id", how="semi")
    values = {ratio: _values(each, docs, relevant) for ratio, each in runs.items()}
    _usefulness(results, values, added)
    _processes(results, runs, docs, genders)
    _neutral(results, values, genders.filter(gender="neutral"))


def _values(runs: list[pl.DataFrame], docs: Any, qrels: Any) -> pl.DataFrame:
    """Return the value of each query and measure, the mean over the runs."""
    given = {str(seed): run for seed, run in enumerate(runs)}
    measured = er.measure(given, [*MEASURES.values()], docs=docs, qrels=qrels, confidence=None)
    rows = [
        (column, query, value)
        for column, measure in MEASURES.items()
        for seed in given
        for query, value in measured[seed, measure].per_query().items()
    ]
    frame = pl.DataFrame(rows, schema=["measure", "query_id", "value"], orient="row")
    return frame.pivot("measure", values="value", aggregate_function="mean").sort("query_id")


def _claim(results: Results, text: str, test: Any, n: Any, **side: float) -> None:
    results.claim(text, n=n, value=test.difference, low=test.low, high=test.high, **side)


def _usefulness(results: Results, values: dict[float, pl.DataFrame], added: dict[float, int]) -> None:
    each = {ratio: frame["RR@10"].drop_nulls().to_numpy() for ratio, frame in values.items()}
    tests = {ratio: er.stats.paired(value, each[0.0]) for ratio, value in each.items()}
    corrected = er.stats.holm([test.p if ratio else None for ratio, test in tests.items()])
    n = len(each[0.0])
    rows = [
        {
            "ratio": f"{ratio:g}", "queries added": added[ratio], "RR@10": each[ratio].mean(),
            "change": test.difference, "95% low": test.low, "95% high": test.high,
            "p (Holm)": p_value(p), "n": n,
        }
        for (ratio, test), p in zip(tests.items(), corrected, strict=True)
    ]  # fmt: skip
    results.table("Table 3.6: RR@10 by ratio of generated pairs", rows, published="Table 3.6", digits=4)
    counts = list(added.values())
    results.fact("each ratio is another training set", len({*counts}) == len(counts), f"{counts} added", n)
    for ratio in list(tests)[1:]:
        text = f"a ratio of {ratio:g} keeps RR@10 (at most {MARGIN:.0%} of it is lost)"
        _claim(results, text, tests[ratio], n, above=-MARGIN * each[0.0].mean())


def _processes(results: Results, runs: dict[float, Any], docs: Any, genders: pl.DataFrame) -> None:
    """Table 3.7: words of the first ten documents, the mean over the seeds."""
    labelled = genders.filter(pl.col("gender").is_in(["female", "male"]))
    tops = {
        name: pl.concat(runs[ratio]).filter(pl.col("rank") <= 10).join(labelled, on="query_id")
        for name, ratio in (("original", 0.0), ("de-biased", CHOSEN))
    }
    table = scores(docs, ids=pl.concat(tops.values())["doc_id"].unique())
    means = {
        name: top.join(table, on="doc_id").group_by("query_id", "gender").agg(pl.col(PROCESSES).mean())
        for name, top in tops.items()
    }
    rows = []
    n = tuple(
        labelled.join(tops["original"], on="query_id", how="semi")["gender"]
        .value_counts()
        .sort("gender")["count"]
    )
    for process in PROCESSES:
        sides = [
            [
                frame.filter(gender=gender).sort("query_id")[process].to_numpy()
                for gender in ("female", "male")
            ]
            for frame in means.values()
        ]
        for name, (female, male) in zip(means, sides, strict=True):
            mean = {
                "female %": female.mean(),
                "male %": male.mean(),
                "difference": abs(female.mean() - male.mean()),
            }
            rows.append({"process": f"{process}, {name}", **mean, "n": f"{n[0]} and {n[1]}"})
        (female, male), after = sides
        sign = np.sign(female.mean() - male.mean())
        test = er.stats.welch(sign * (after[0] - female), sign * (after[1] - male))
        text = f"lists of female and male queries come closer in {process} (points of percent)"
        _claim(results, text, test, n, below=0.0)
    results.table("Table 3.7: percent of words by process", rows, published="Table 3.7")


def _neutral(results: Results, values: dict[float, pl.DataFrame], neutral: pl.DataFrame) -> None:
    kept = {ratio: frame.join(neutral, on="query_id", how="semi") for ratio, frame in values.items()}
    names, n = {0.0: "original", CHOSEN: "de-biased"}, len(kept[0.0])
    rows = [
        {
            "training set": names.get(ratio, f"ratio {ratio:g}"),
            **{name: frame[name].mean() for name in MEASURES},
            "n": n,
        }
        for ratio, frame in kept.items()
    ]
    title = "bias of the first ten documents of neutral queries"
    results.table(f"Table 3.8: {title}", rows, published="Table 3.8", digits=4)
    results.table(f"Tables 3.9 to 3.12: {title}", rows, published="Tables 3.9-3.12", digits=4)
    for name in list(MEASURES)[1:]:
        test = er.stats.paired(kept[CHOSEN][name].abs(), kept[0.0][name].abs())
        _claim(results, f"a ratio of {CHOSEN} lowers |{name}| of neutral queries", test, n, below=0.0)
