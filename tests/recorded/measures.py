"""Cases of the measures, the audit, and what describes queries, documents and vectors.

Cases use what `import evenrank as er` offers; what has no public name is reached through `_inner` alone.
Sentences and reasons are not recorded: their wording may change without a change of a value.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.recorded.helpers import data, shortened
from tests.recorded.record import Case

import evenrank as er


def _inner(name: str) -> Any:
    """What evenrank offers under no public name yet, by the place where it is today."""
    module, _, attribute = {
        "demo folder": "demo:folder",
        "dictionary": "text.lexicon:dictionary",
        "stats": "stats:",
        "vectors": "vectors:",
    }[name].partition(":")
    found = import_module(f"evenrank.{module}")
    return getattr(found, attribute) if attribute else found


@dataclass(frozen=True)
class Collection:
    """The files of a collection; the first run has its values recorded for more queries than the others."""

    docs: Path
    queries: Path
    qrels: Path
    runs: Mapping[str, Path]
    genders: Any = None

    @property
    def given(self) -> dict[str, Any]:
        return {"docs": self.docs, "queries": self.queries, "qrels": self.qrels}


@cache
def collection(name: str) -> Collection:
    if name == "demo":
        folder = _inner("demo folder")()
        runs = {run: folder / f"{run}.run" for run in ("bm25", "dense")}
        genders = folder / "genders.tsv"
        return Collection(folder / "docs.tsv", folder / "queries.tsv", folder / "qrels.txt", runs, genders)
    folder, test = data(f"data/{name}"), ".test" if name == "squad" else ""
    ending = ".gz" if name == "squad" else ""
    runs = {run: data(f"runs/{name}.{run}.run{ending}") for run in ("bm25", "qld", "bm25.rm3")}
    docs = folder / ("docs.jsonl" if name == "grepbiasir" else "docs.tsv")
    return Collection(docs, folder / f"queries{test}.tsv", folder / f"qrels{test}.txt", runs)


@cache
def genders(name: str) -> dict[str, str]:
    """Gender of each query: as given, or by the rule that looks for words."""
    where = collection(name)
    if where.genders is not None:
        rows = (line.split("\t") for line in where.genders.read_text().splitlines())
        return {row[0]: row[-1] for row in rows if row[-1] in ("neutral", "female", "male")}
    labels = er.classify(where.queries, "lexicon")
    return dict(zip(labels["query_id"], labels["label"], strict=True))


@cache
def tally(name: str, lexicon: str = "rekabsaz2020", tokenizer: str = "words") -> Any:
    return er.tally(collection(name).docs, lexicon, tokenizer=tokenizer)


@cache
def lacking(name: str) -> pl.DataFrame:
    """A tally that lacks every seventh document."""
    frame = pl.DataFrame(tally(name).frame)
    return frame.filter(pl.int_range(pl.len()) % 7 != 3)


@cache
def labels(name: str) -> dict[str, str]:
    """Group of each document as people see it: of Grep-BiasIR; elsewhere by a rule on the ids' order."""
    if name == "grepbiasir":
        rows = map(json.loads, collection(name).docs.read_text().splitlines())
        known = {"F": "female", "M": "male", "N": "neutral"}
        return {row["doc_id"]: known[row["gender"]] for row in rows if row["gender"] in known}
    ids = tally(name).frame["doc_id"].to_list()
    return {doc: ("female", "male", "neutral", "male")[row % 4] for row, doc in enumerate(ids) if row % 5}


def targets(name: str) -> dict[str, dict[str, float]]:
    shares = {"female": 0.4, "male": 0.4, "neutral": 0.2}
    return dict.fromkeys(genders(name), shares)


# What is recorded of a result.

_LEFT_OUT = ("left_out", "unlabelled")
_DROPPED = ("provenance", "warnings", "notes", "text", "format", "version", "labels", "targets", "source")


def tidy(value: Any, most: int = 40) -> Any:
    """A result as recorded: without sentences and provenance, and of a long list only the beginning.

    Of reasons why something was left out the counts stay, since reasons are sentences.
    """
    if isinstance(value, Mapping):
        found = {}
        for key, each in value.items():
            if key in _LEFT_OUT and isinstance(each, Mapping):
                found["left out"] = _counts(each, most)
            elif key not in _DROPPED and not _is_sentence(each):
                found[str(key)] = tidy(each, most)
        return found
    if isinstance(value, pl.DataFrame):
        return tidy(value.to_dicts(), most)
    if isinstance(value, list | tuple):
        rows = [tidy(each, most) for each in value if not _is_sentence(each)]
        return rows if len(rows) <= most else {"count": len(rows), "first": rows[:most]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _counts(reasons: Mapping[str, Any], most: int) -> Any:
    plain = [each for each in reasons.values() if not isinstance(each, Mapping)]
    nested = {key: _counts(each, most) for key, each in reasons.items() if isinstance(each, Mapping)}
    return nested or sorted(plain)


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def summary_of(one: Any) -> dict[str, Any]:
    """Mean, interval, parts and spread of a measure over queries."""
    return {
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "queries": one.queries,
        "parts": dict(one.parts),
    }


def measurement_of(one: Any, shown: int = 30) -> dict[str, Any]:
    """One measure of one run."""
    found = summary_of(one) | {
        "spread": one.spread,
        "abs": one.abs,
        "quantiles": dict(one.quantiles),
        "left out": sorted(one.left_out.values()),
        "per query": shortened(one.per_query(), shown),
        "parts per query": {
            part: shortened(dict(zip(one.query_ids, values, strict=True)), 5)
            for part, values in one.part_values.items()
        },
    }
    if one.ties is not None:
        found["ties"] = one.ties
    if one.subsets:
        found["subsets"] = {label: summary_of(subset) for label, subset in one.subsets.items()}
    if one.background:
        found["background"] = tidy(one.background)
    if one.baselines:  # GSR
        found["baselines"] = {name: summary_of(each) for name, each in one.baselines.items()}
        found |= {"r": one.line.r, "error": one.line.error, "p": one.line.p, "relative": one.relative}
    if one.attribution is not None:
        found["attribution"] = tidy(one.attribution.to_dict(), 20)
    return found


def measured_of(measured: Any, shown: int = 30) -> dict[str, Any]:
    """Measures of runs, by run and measure."""
    found: dict[str, Any] = {}
    for place, (run, measurements) in enumerate(measured.runs.items()):
        found[run] = {str(one.measure): measurement_of(one, 5 if place else shown) for one in measurements}
    return found


# Every measure with its usual parameters.

WORDS = [
    "RaB@10", "RaB@20", "RaB(magnitude='boolean')@10", "RaB(magnitude='tf-words')@10",
    "RaB(magnitude='count')@10", "RaB(magnitude='length')@20", "RaB(of='female', against='male')@10",
    "ARaB@5", "ARaB@10", "ARaB@20", "ARaB(magnitude='boolean')@10", "ARaB(magnitude='tf-words')@5",
    "ARaB(magnitude='count')@10", "ARaB(magnitude='length')@10", "abs(ARaB@10)",
    "FaiRR@10", "FaiRR(threshold=2)@10", "FaiRR(target={'female': 0.5, 'male': 0.5})@10",
    "NFaiRR@10", "NFaiRR@20", "NFaiRR(threshold=2)@10", "NFaiRR(depth=50)@10",
]  # fmt: skip
GROUPS = [
    "rND@20", "rKL@20", "rRD@20", "rND(group='female', step=5)@20", "FAIR@10", "FAIR(adjust=False)@10",
    "FAIR(group='female', target={'female': 0.4, 'male': 0.6})@10",
    "Skew@10", "Skew(group='female')@10", "MinSkew@10", "MaxSkew@10", "NDKL@10", "NDKL(target='equal')@10",
    "Exposure@10", "Exposure(group='female')@10", "ExposureGap@10", "DemographicParity@10",
    "DisparateTreatment@10", "AWRF@10", "AWRF(target='collection')@10", "nDCGxAWRF@10",
    "EEL@10", "EED@10", "EER@10", "EEL(only_relevant=False)@10", "MB@10", "MB(group='female')@10",
]  # fmt: skip
STEREOTYPES = ["GSR@10", "GSR", "GSR(discount='released')@10", "GSR(discount='none')@10",
               "GSR(stop_words='indri')@10"]  # fmt: skip
DICTIONARY = ["LIWC@10", "LIWC(signed=True)@10"]
USEFUL = ["nDCG@10", "RR@10", "AP", "P@10", "R@50", "Judged@10", "Bpref", "ERR@10", "Rprec", "Success@5",
          "infAP"]  # fmt: skip
FAMILIES = {"words": WORDS, "groups": GROUPS, "stereotypes": STEREOTYPES, "dictionary": DICTIONARY,
            "useful": USEFUL}  # fmt: skip


@cache
def family(name: str, which: str) -> Any:
    """All measures of a family, measured at once."""
    where = collection(name)
    return er.measure(where.runs, FAMILIES[which], tally=tally(name), **where.given)


def usual(name: str, which: str, measure: str) -> dict[str, Any]:
    measured = family(name, which)
    return {
        run: measurement_of(measured[run, measure], 5 if place else 30)
        for place, run in enumerate(measured.runs)
    }


# The same measures with other options.

FEW = ["RaB@10", "ARaB@10", "FaiRR@10", "NFaiRR@10"]


def option(name: str, measures: list[str], **options: Any) -> dict[str, Any]:
    """Measures of the first run with options; what is callable is called with the collection's name."""
    where = collection(name)
    run = next(iter(where.runs))
    given = {"tally": tally, **options}
    made = {key: value(name) if callable(value) else value for key, value in given.items()}
    made = {key: value for key, value in made.items() if value is not None}
    return measured_of(er.measure({run: where.runs[run]}, measures, **made), 10)


def _background(name: str) -> Path:
    return [*collection(name).runs.values()][1]


def _docs(name: str) -> Path:
    return collection(name).docs


def _queries(name: str) -> Path:
    return collection(name).queries


def _qrels(name: str) -> Path:
    return collection(name).qrels


@dataclass(frozen=True)
class Option:
    measures: list[str]
    given: dict[str, Any] = field(default_factory=dict)


_LABELLED = ["Skew(group='female')@10", "NDKL@10", "Exposure(group='male')@10", "AWRF@10",
             "rKL(group='female')@20", "FAIR(group='female')@10",
             "ExposureGap(of='male', against='female')@10"]  # fmt: skip
OPTIONS = {
    "missing-zero": Option(FEW, {"tally": lacking, "missing": "zero"}),
    "missing-skip": Option(FEW, {"tally": lacking, "missing": "skip"}),
    "missing-zero-groups": Option(["Skew@10", "NDKL@10", "AWRF@10"], {"tally": lacking, "missing": "zero"}),
    "missing-skip-groups": Option(["Skew@10", "NDKL@10", "AWRF@10"], {"tally": lacking, "missing": "skip"}),
    "ties-expected": Option(FEW, {"ties": "expected"}),
    "order-rank": Option(FEW, {"order": "rank"}),
    "background": Option(["NFaiRR@10"], {"background": _background}),
    "genders": Option([*FEW, "nDCG@10"], {"genders": genders, "qrels": _qrels}),
    "only-neutral": Option([*FEW, "nDCG@10"], {"genders": genders, "qrels": _qrels, "only": "neutral"}),
    "only-female": Option([*FEW, "nDCG@10"], {"genders": genders, "qrels": _qrels, "only": "female"}),
    "only-all": Option([*FEW, "nDCG@10"], {"genders": genders, "qrels": _qrels, "only": "all"}),
    "labels": Option(_LABELLED, {"tally": None, "labels": labels}),
    "labels-targets": Option([*_LABELLED, "MB(group='female')@10"],
                             {"tally": None, "labels": labels, "targets": targets}),
    "whitespace": Option(FEW, {"tally": None, "docs": _docs, "tokenizer": "whitespace"}),
    "lexicon-fabris2020": Option(FEW, {"tally": None, "docs": _docs, "lexicon": "fabris2020"}),
    "interval-99": Option(["ARaB@10"], {"confidence": 0.99, "resamples": 500, "seed": 7}),
    "no-interval": Option(["ARaB@10"], {"confidence": None}),
    "explain": Option(["RaB@10", "ARaB@10", "ARaB(magnitude='tf-words')@5", "NFaiRR@10"],
                      {"docs": _docs, "explain": True}),
    "explain-GSR": Option(["GSR@10"], {"docs": _docs, "queries": _queries, "qrels": _qrels, "explain": True}),
}  # fmt: skip


def pairs(name: str) -> Any:
    where = collection(name)
    wanted = ["ARaB@10", "NFaiRR@10", "nDCG@10", "GSR@10"]
    compared = er.compare(er.measure(where.runs, wanted, tally=tally(name), **where.given))
    rows = sorted(compared, key=lambda one: wanted.index(str(one.measure)))
    named = [
        {"other" if key == "baseline" else key: value for key, value in one.to_dict().items()} for one in rows
    ]
    return [tidy(row) for row in named]


def bound(name: str) -> dict[str, Any]:
    """Measures inside ir_measures."""
    import ir_measures

    where = collection(name)
    measures = er.bind([*FEW, "nDCG@10", "GSR@10"], tally=tally(name), docs=where.docs, queries=where.queries)
    path = next(iter(where.runs.values()))
    rows = er.load(where.docs.parent)[2] if name == "demo" else None
    judged = rows if rows is not None else where.qrels
    qrels = list(ir_measures.read_trec_qrels(str(judged)) if isinstance(judged, Path) else [
        ir_measures.Qrel(*row) for row in judged.iter_rows()
    ])  # fmt: skip
    run = list(ir_measures.read_trec_run(str(path)))
    means = ir_measures.calc_aggregate(measures, qrels, run)
    return {str(measure): float(value) for measure, value in means.items()}


# What is counted, and everything that is built on it.


def tallied(name: str, lexicon: str = "rekabsaz2020", tokenizer: str = "words") -> dict[str, Any]:
    """Counts of words by document."""
    frame = tally(name, lexicon, tokenizer).frame
    numbers = [column for column in frame.columns if column != "doc_id"]
    return {
        column: shortened(dict(zip(frame["doc_id"], frame[column], strict=True)), 20) for column in numbers
    }


def audited(name: str, **more: Any) -> Any:
    where = collection(name)
    made = {key: value(name) if callable(value) else value for key, value in more.items()}
    found = er.audit(where.runs, tally=tally(name), **where.given, **made)
    return tidy(json.loads(json.dumps(found.to_dict())), 20)


def traced(name: str) -> Any:
    where = collection(name)
    measures = ["RaB@10", "ARaB@10", "FaiRR@10", "NFaiRR@10", "ExposureGap@10"]
    found = er.trace(where.runs, measures, tally=tally(name), docs=where.docs)
    return tidy(found.to_dict())


def planned(name: str) -> Any:
    where = collection(name)
    run = next(iter(where.runs.values()))
    plans = [
        er.plan(effect, run=run, tally=tally(name), tests=tests) for effect in (0.02, 0.1) for tests in (1, 3)
    ]
    return [tidy(plan.to_dict()) for plan in [*plans, er.plan(0.05, sd=0.3, power=0.9, alpha=0.01)]]


def certain(name: str) -> dict[str, Any]:
    """Equivalence, power and tests on the values of two runs."""
    stats = _inner("stats")
    measured = family(name, "words")
    first, second = [measured[run, "ARaB@10"].per_query() for run in [*measured.runs][:2]]
    both = sorted(first.keys() & second.keys())
    a, b = (np.array([side[query] for query in both]) for side in (first, second))
    return {
        "equivalence": [tidy(asdict(stats.equivalence(a - b, delta))) for delta in (None, 0.05, 0.2)],
        "paired": {
            test: tidy(asdict(stats.paired(a, b, test=test))) for test in ("t", "wilcoxon", "permutation")
        },
        "welch": tidy(asdict(stats.welch(a, b))),
        "rank sum": tidy(asdict(stats.rank_sum(a, b))),
        "permutation": tidy(asdict(stats.permutation(a, b))),
        "intervals": {
            method: tidy(asdict(stats.mean_interval(a, method=method))) for method in ("bootstrap", "t")
        },
        "detectable": [stats.detectable(0.3, n) for n in (10, 100, 2000)],
        "queries": [stats.queries_for(0.05, 0.3), stats.queries_for_equivalence(0.05, 0.3)],
        "holm": stats.holm([0.01, 0.04, 0.03, None]),
    }


def pooled(name: str) -> Any:
    where = collection(name)
    measured = er.measure(where.runs, "RaB@10", tally=tally(name), confidence=None)
    sheet = er.pool(measured.per_query(), where.queries, top=20, reveal=True)
    return {
        "query_id": sheet["query_id"].to_list(),
        "lists": sheet["lists"].to_list(),
        "value": sheet["value"].to_list(),
        "toward": sheet["toward"].to_list(),
    }


def voted() -> dict[str, Any]:
    """The annotators' labels are those of the demo, with errors in a fixed order."""
    given, kinds = genders("demo"), ("neutral", "female", "male", "other")
    sheet = pl.DataFrame(
        [
            {
                "query_id": query,
                **{
                    f"annotator_{who}": kinds[(row + who) % 4] if (row * who) % 5 == 1 else label
                    for who in (1, 2, 3)
                },
            }
            for row, (query, label) in enumerate(sorted(given.items()))
        ]
    )
    found = er.vote(sheet)
    return {
        "labels": dict(zip(found.labels["query_id"], found.labels["label"], strict=True)),
        "votes": found.labels["votes"].to_list(),
        "dropped": found.dropped["query_id"].to_list(),
        "agreement": found.agreement,
        "counts": found.counts,
    }


def judgments(name: str, **more: Any) -> Any:
    where = collection(name)
    found = er.audit_judgments(genders=genders(name), qrels=where.qrels, docs=where.docs, **more)
    return tidy(found.to_dict(), 100)


def rankings(name: str) -> Any:
    where = collection(name)
    found = er.audit_rankings(where.runs, genders=genders(name), docs=where.docs)
    return tidy(found.to_dict(), 100)


def published_scores(balance: bool) -> Any:
    files = [data(f"data/liwc/{gender}.csv") for gender in ("female", "male", "neutral")]
    return tidy(er.audit_judgments(scores=files, balance=balance).to_dict(), 100)


def dictionary_counts(name: str) -> dict[str, Any]:
    """Words of every category of the open dictionary by document."""
    frame = er.tally(collection(name).docs, _inner("dictionary")()).frame
    return {
        column: shortened(dict(zip(frame["doc_id"], frame[column], strict=True)), 3)
        for column in frame.columns
        if column != "doc_id"
    }


def represented(name: str, against: Any, short: str, at: int = 10) -> dict[str, Any]:
    if name == "image-search":
        results, more = data("data/image-search/results.tsv"), {}
        wanted = data("data/image-search/targets.tsv") if against == "given" else "full"
    else:
        where = collection(name)
        results, more = next(iter(where.runs.values())), {"tally": tally(name)}
        shares = {"female": 0.35, "male": 0.65}
        wanted = dict.fromkeys(genders(name), shares) if against == "given" else "full"
    found = er.represent(results, wanted, at=at, short=short, **more)
    return {
        "lists": found.lists,
        "short": found.short,
        "unknown": found.unknown,
        "left out": sorted(found.left_out.values()),
        "features": {
            feature: found.summary(feature)
            | {"bias": shortened(dict(found.of(feature).select("query", "bias").iter_rows()), 10)}
            for feature in found.features
        },
    }


def disparities(name: str) -> Any:
    where = collection(name)
    found = er.disparity(where.runs, where.qrels, genders(name), measure=["RR@10", "nDCG@10"], draws=2000)
    return tidy(found.to_dict())


def associated() -> Any:
    files = [data(f"data/association/{gender}.tsv.gz") for gender in ("female", "male")]
    return tidy(er.association(*files).to_dict())


def associated_by_gender() -> Any:
    """Scores of the demo's run with its relevant documents."""
    where = collection("demo")
    scores = {}
    for line in where.runs["bm25"].read_text().splitlines():
        query, _, _, rank, score, _ = line.split()
        if rank == "1":
            scores[query] = float(score)
    return tidy(er.association(scores, genders=genders("demo"), bins=5).to_dict())


# Queries.


def classified(queries: Any, model: str, shown: int = 100) -> dict[str, Any]:
    """Labels, and probabilities where the model has some."""
    found = er.classify(queries() if callable(queries) else queries, model)
    counts = dict(sorted(found["label"].value_counts().iter_rows()))
    ids = found["query_id"].to_list()
    return {
        "counts": counts,
        "labels": dict(sorted(zip(ids, found["label"], strict=True))[: 3 * shown]),
        **{
            side: shortened(dict(zip(ids, found[side], strict=True)), shown)
            for side in ("female", "male", "neutral")
        },
    }


def _labelled_queries(name: str) -> dict[str, str]:
    rows = (line.split("\t") for line in data(f"data/query-gender/{name}.tsv").read_text().splitlines())
    return {query: text for query, text, _ in rows}


def reasons() -> Any:
    """Which words drove the labels of the demo's queries."""
    found = er.classify(collection("demo").queries, "static", explain=True)
    return dict(zip(found["query_id"], found["reasons"].to_list(), strict=True))


def rewritten(queries: Callable[[], Any], like: Callable[[], Any] | None = None) -> dict[str, Any]:
    found = er.variants(queries(), like=None if like is None else like())
    rows = {row["triple_id"]: [row["female"], row["male"]] for row in found.to_dicts()}
    return {"count": len(rows), "first": {key: rows[key] for key in sorted(rows)[:60]}}


def _neutral_triples() -> dict[str, str]:
    frame = pl.read_csv(data("data/query-variants/triples.tsv"), separator="\t", infer_schema=False)
    return dict(zip(frame["triple_id"], frame["neutral"], strict=True))


def compared_variants() -> Any:
    return tidy(er.compare_variants(data("data/search-engines/results.tsv")).to_dict(), 100)


def compared_own_variants() -> Any:
    """Lists of the demo's queries beside lists that stand for those of their variants."""
    lists: dict[str, list[str]] = {}
    for line in collection("demo").runs["bm25"].read_text().splitlines():
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(doc)
    rows = []
    for place, (query, docs) in enumerate(lists.items()):
        forms = {"neutral": docs[:20], "female": docs[place % 7 : 20], "male": docs[3:20][::-1]}
        rows += [
            {"triple_id": query, "topic": f"t{place % 3}", "variant": form, "rank": rank, "doc_id": doc}
            for form, shown in forms.items()
            for rank, doc in enumerate(shown, 1)
        ]
    return tidy(er.compare_variants(rows, at=10).to_dict(), 60)


def gendered_expansion(name: str) -> Any:
    from Stemmer import Stemmer

    from evenrank.mitigate.feedback import expanded_queries

    expanded = expanded_queries(data(f"data/expanded-queries/robust04.{name}.tsv"))
    found = er.gendered_terms(expanded, stem=Stemmer("porter").stemWord)
    by_group = found.group_by("group").agg(number=pl.len(), weight=pl.col("weight").sum())
    return {
        "number": found.height,
        "weight": float(found["weight"].sum()),
        "groups": {group: {"number": n, "weight": weight} for group, n, weight in by_group.iter_rows()},
        "queries": expanded["query_id"].n_unique(),
        "queries_with_any": found["query_id"].n_unique(),
        "terms": expanded.height,
    }


# Word vectors.

WORDS_SHOWN = "she he nurse doctor engineer receptionist maid king queen football homemaker captain".split()


@cache
def _glove() -> Any:
    return _inner("vectors").load(data("data/vectors/glove-100d.bin.gz"))


def gender_direction() -> dict[str, Any]:
    vectors = _inner("vectors")
    found = vectors.find_direction(_glove())
    female, male = vectors.leaning(_glove(), found, 20)
    return {
        "vector": found.vector.tolist(),
        "explained": found.explained.tolist(),
        "pairs": [list(pair) for pair in found.pairs],
        "female": dict(female),
        "male": dict(male),
        "words": {word: float(vectors.genderedness(_glove())[word]) for word in WORDS_SHOWN},
    }


def shipped_genderedness() -> dict[str, Any]:
    table = _inner("vectors").genderedness()
    values = np.asarray(table.values, np.float64)
    return {
        "words": {word: float(table[word]) for word in WORDS_SHOWN},
        "count": len(values),
        "sum": float(values.sum()),
        "sum of squares": float((values**2).sum()),
    }


def association_tests(which: str) -> Any:
    vectors = _inner("vectors")
    source = None if which == "shipped" else _glove() if which == "regular" else _debiased(which)
    return [tidy(each.to_dict()) for each in vectors.association_tests(source)]


@cache
def _debiased(method: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _inner("vectors").debiased(_glove(), method)


def debiased(method: str) -> dict[str, Any]:
    """Vectors of some words; they are stored in single precision."""
    after = _debiased(method)
    rows = {word: after.matrix[after.exact_row(word)].astype(np.float64) for word in WORDS_SHOWN}
    before = {word: _glove().matrix[_glove().exact_row(word)].astype(np.float64) for word in WORDS_SHOWN}
    matrix = np.asarray(after.matrix, np.float64)
    return {
        "words": {word: row.tolist()[:10] for word, row in rows.items()},
        "kept": {word: float(rows[word] @ before[word]) for word in WORDS_SHOWN},
        "nurse": {word: float(rows[word] @ rows["nurse"]) for word in WORDS_SHOWN},
        "absolute sum": float(np.abs(matrix).sum()),
        "fourth powers": float((matrix**4).sum()),
    }


def recovered(method: str) -> Any:
    found = _inner("vectors").recoverability(_glove(), _debiased(method), words=100)
    return tidy(found.to_dict())


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for name in ("demo", "squad", "time", "grepbiasir"):
        for which, measures in FAMILIES.items():
            for measure in measures:
                cases[f"{name}/measure/{measure}"] = partial(usual, name, which, measure)
        for key, each in OPTIONS.items():
            cases[f"{name}/options/{key}"] = partial(option, name, each.measures, **each.given)
        cases |= {
            f"{name}/measure/pairs": partial(pairs, name),
            f"{name}/tally/rekabsaz2020": partial(tallied, name),
            f"{name}/tally/whitespace": partial(tallied, name, tokenizer="whitespace"),
            f"{name}/tally/fabris2020": partial(tallied, name, "fabris2020"),
            f"{name}/audit": partial(audited, name),
            f"{name}/audit-genders": partial(
                audited, name, genders=genders, delta={"ARaB@10": 0.1}, fail_if="abs(ARaB@10)>0.1",
                measures=["ARaB@10", "RaB@10", "NFaiRR@10", "nDCG@10"],
            ),
            f"{name}/trace": partial(traced, name),
            f"{name}/plan": partial(planned, name),
            f"{name}/statistics": partial(certain, name),
            f"{name}/pool": partial(pooled, name),
            f"{name}/dictionary": partial(dictionary_counts, name),
            f"{name}/classify/lexicon": lambda name=name: classified(collection(name).queries, "lexicon", 30),
            f"{name}/classify/static": lambda name=name: classified(collection(name).queries, "static", 30),
            f"{name}/variants": partial(rewritten, lambda name=name: collection(name).queries),
            **{
                f"{name}/represent/{against}-{short}": partial(represented, name, against, short)
                for against in ("full", "given")
                for short in ("length", "paper")
            },
        }  # fmt: skip
    for name in ("demo", "squad", "time"):  # Grep-BiasIR has one query of each gender
        cases |= {
            f"{name}/psychology/judgments": partial(judgments, name),
            f"{name}/psychology/judgments-unbalanced": partial(judgments, name, balance=False),
            f"{name}/psychology/rankings": partial(rankings, name),
            f"{name}/disparity": partial(disparities, name),
        }
    for model in ("lexicon", "static"):
        for queries in ("annotated", "predicted"):
            cases[f"query-gender/{queries}/{model}"] = partial(
                classified, partial(_labelled_queries, queries), model
            )
    for against in ("full", "given"):
        for short in ("length", "paper"):
            for at in (10, 150):
                cases[f"image-search/represent/{against}-{short}@{at}"] = partial(
                    represented, "image-search", against, short, at
                )
    for method in ("hard", "strong", "leace"):
        cases[f"vectors/debiased/{method}"] = partial(debiased, method)
        cases[f"vectors/recoverability/{method}"] = partial(recovered, method)
        cases[f"vectors/association-tests/{method}"] = partial(association_tests, method)
    return cases | {
        "demo/bind": partial(bound, "demo"),
        "demo/vote": voted,
        "demo/association": associated_by_gender,
        "demo/classify/reasons": reasons,
        "demo/compare-variants": compared_own_variants,
        "demo/vectors/genderedness": shipped_genderedness,
        "demo/vectors/association-tests": partial(association_tests, "shipped"),
        "vectors/association-tests/regular": partial(association_tests, "regular"),
        "vectors/direction": gender_direction,
        "liwc/balanced": partial(published_scores, True),
        "liwc/all": partial(published_scores, False),
        "association/female-male": associated,
        "query-variants/written": partial(rewritten, _neutral_triples),
        "query-variants/learned": partial(
            rewritten, _neutral_triples, lambda: data("data/query-variants/triples.tsv")
        ),
        "search-engines/compare-variants": compared_variants,
        "expanded-queries/rm3": partial(gendered_expansion, "rm3"),
        "expanded-queries/bias-aware": partial(gendered_expansion, "bias-aware"),
    }


CASES: dict[str, Case] = _cases()
SLOW: set[str] = {
    "demo/audit",
    "demo/classify/reasons",
    "squad/measure/AWRF(target='collection')@10",
    "vectors/association-tests/leace",
}
