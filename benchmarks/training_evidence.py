"""Less bias by training, and by re-ranking what plain training gives: `make evidence-training`.

    python -m benchmarks.training_evidence               all units that have not been run, then the tables
    python -m benchmarks.training_evidence squad/head    those whose names begin so
    python -m benchmarks.training_evidence --units wiki  without the tables: several can run at a time
    python -m benchmarks.training_tables                 the tables again, from what has been run

A unit is one training or one re-ranking, with one strength and one seed, on one collection. It leaves its
values in ``benchmarks/units`` and is not run again; its run is in the folder ``evidence/training`` of the
cache. Of these values ``benchmarks.training_tables`` makes docs/evidence/training.json, and the tables and
figures of docs/mitigation/training.md. What is missing is named; a ranker whose units were not kept stays as
it was.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks import kept_units
from benchmarks.neural_units import data
from benchmarks.pages import committed_source
from benchmarks.training_data import LAMBDAS, SHAPES, Collection, Shape, collection, dev, ready, shape_of
from evenrank.data import tables
from evenrank.text.cache import root

TRAINED = {
    "negative-bias": (0.3, 1.0, 3.0),
    "list-bias": (0.3, 1.0, 3.0),
    "bias-margin": (1.0, 3.0, 10.0),
    "neutrality": (0.1, 0.3, 1.0),
    "adversary": (0.0, 1.0, 10.0),
    "adversary by group": (0.0, 1.0, 10.0),
    "augment": (1.0,),
    "consistency": (1.0, 10.0),
    "dial": (0.5, 1.0, 2.0),
}
"""Ways of training beside negatives, and their strengths; all learn from the negatives of λ = 0.

With the dial, training is plain: queries are turned afterwards, as vectors.
"""
AGAIN = {
    "penalty": (0.1, 0.2, 0.4, 0.7, 1.0, 2.0),
    "interpolate": (0.1, 0.2, 0.3, 0.4, 0.5),
    "constrain (mean)": (0.9, 0.8, 0.7, 0.6, 0.4),
    "constrain (each)": (0.5, 0.3, 0.2, 0.1),
}
"""Ways of re-ranking what plain training gives, and their strengths.

Of the penalty w, in scores for a document of bias 1; λ; the share of the mean bias that is left; the bound.
"""
UNTRAINED = ("BM25", "untrained hybrid")
"""What costs no training: the first stage, and MiniLM's cosine plus it, with a weight of the dev queries."""
FEW = (0.0, 0.6, 1.0)
"""λ of the negatives that are tried first where training takes long."""
TRIED = tuple({"rate": rate, "negatives": count} for rate in (1e-3, 3e-4, 1e-4) for count in (7, 20))
"""Settings of plain training of a head on SQuAD, of which the dev queries choose."""
DEFAULT = "head, default"
"""The head on SQuAD as the package trains it where nothing is chosen."""
READERS = ("cross-encoder", "cross-encoder, with")
"""The cross-encoder by its own scores, and with the first stage, whose weight is chosen on dev queries."""
ONCE = (("wiki", "head"), ("wiki", "cross-encoder"))
"""Where re-ranking is tried on the first seed alone: their texts take long to read."""
MEASURES = ("RR@10", "ARaB@10", "NFaiRR@10")
_WEIGHT = "weight of the first stage"


class Unit(NamedTuple):
    """One method at one strength with one seed."""

    collection: str
    ranker: str
    method: str
    strength: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.collection}/{self.ranker}/{self.method}/{self.strength:g}/{self.seed}"

    @property
    def plain(self) -> Unit:
        """The ranker with nothing done against bias."""
        return self._replace(method="negatives", strength=0.0)

    @property
    def alone(self) -> Unit:
        """The ranker by its own scores; itself where it is not combined with the first stage."""
        return self._replace(ranker=self.ranker.partition(",")[0])

    @property
    def shape(self) -> Shape:
        """How much it learns from and ranks."""
        return shape_of(self.collection, self.ranker)

    @property
    def data(self) -> Collection:
        """The collection in that shape."""
        return collection(self.collection, self.shape)


def units() -> Iterator[Unit]:
    """Everything, the most telling first."""
    for name, ranker in SHAPES:
        more = (DEFAULT,) if (name, ranker) == ("squad", "head") else ()
        for each in READERS if ranker in READERS else (ranker, *more):
            yield from (Unit(name, each, method, 0.0, 0) for method in UNTRAINED)
    for seed in range(5):
        yield from (Unit("squad", DEFAULT, "negatives", strength, seed) for strength in LAMBDAS)
        yield from (Unit("squad", "head", "negatives", strength, seed) for strength in LAMBDAS)
        if seed < 3:
            for method, strengths in TRAINED.items():
                yield from (Unit("squad", "head", method, strength, seed) for strength in strengths)
    for method, strengths in AGAIN.items():
        for seed in range(3):
            yield from (Unit("squad", "head", method, strength, seed) for strength in strengths)
    for seed in range(3):
        yield from (Unit("squad", "knrm", "negatives", strength, seed) for strength in LAMBDAS)
    for seed in range(5):
        yield from (Unit("wiki", "head", "negatives", strength, seed) for strength in LAMBDAS)
    for some in (FEW, [each for each in LAMBDAS if each not in FEW]):
        for seed in range(3):
            for ranker in READERS:
                yield from (Unit("squad", ranker, "negatives", strength, seed) for strength in some)
    for seed in range(3):
        yield from (Unit("wiki", "knrm", "negatives", strength, seed) for strength in LAMBDAS)
    for seed in range(3):
        for ranker in READERS:
            yield from (Unit("squad", ranker, "adversary", strength, seed) for strength in (0.0, 1.0))
            yield Unit("squad", ranker, "consistency", 1.0, seed)
    for ranker in READERS:
        yield from (Unit("wiki", ranker, "negatives", strength, 0) for strength in FEW)
    for name, ranker in SHAPES:
        if (name, ranker) != ("squad", "head"):
            yield from (
                Unit(name, each, method, strength, seed)
                for seed in range(1 if (name, ranker) in ONCE else 3)
                for each in (READERS if ranker in READERS else (ranker,))
                for method in ("penalty", "interpolate", "constrain (mean)")
                for strength in AGAIN[method]
            )


def home() -> Path:
    """Where runs are kept."""
    return root() / "evidence" / "training"


def known(unit: Unit) -> dict[str, Any] | None:
    """What a unit has left; None where it has not been run."""
    return kept_units.kept("training", unit.name)


def run_path(unit: Unit, part: str = "test") -> Path:
    """Where a run is kept. An adversary of strength 0 only probes: its runs are those of plain training."""
    if unit.method.startswith("adversary") and not unit.strength:
        unit = unit.plain
    elif unit.method in UNTRAINED:
        unit = unit.alone
    path = (
        home()
        / "runs"
        / f"{unit.name.replace('/', '--').replace(', ', '-')}.{part.replace(' ', '-')}.parquet"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# Running


def run_unit(unit: Unit) -> dict[str, Any]:
    """Train and rank, or rank again; measure. What was done before is not done again."""
    if (there := known(unit)) is not None:
        return there
    source, started = committed_source(), time.process_time()
    runs, facts = runs_of(unit)
    found, held = unit.data, dev(unit.collection, unit.shape)
    judged = {"test": (found.qrels, found.first), "dev": held[1:]}
    content: dict[str, Any] = {**facts}
    for part, run in runs.items():
        if part in judged:
            content[part] = measured(run, *judged[part], found.tally)
    write_runs(unit, runs)
    content["src"] = source
    content["CPU seconds in all"] = round(time.process_time() - started, 1)
    kept_units.keep("training", unit.name, content)
    return content


def runs_of(unit: Unit) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Its runs, and facts of how they were made."""
    if unit.method in UNTRAINED:
        return untrained(unit)
    way = again if unit.method in AGAIN else with_first_stage if unit.ranker.endswith(", with") else trained
    return way(unit)


def write_runs(unit: Unit, runs: dict[str, pl.DataFrame]) -> None:
    for part, run in runs.items():
        run.select("query_id", "doc_id", "score").write_parquet(run_path(unit, part))


def measured(run: pl.DataFrame, qrels: pl.DataFrame, background: pl.DataFrame, tally: Any) -> dict[str, Any]:
    """The values of each query."""
    found = er.measure(run, MEASURES, tally=tally, qrels=qrels, background=background, confidence=None)
    return {name: each.per_query() for name, each in zip(MEASURES, found, strict=True)}


def recipe(unit: Unit) -> dict[str, Any]:
    """The settings of a training."""
    given: dict[str, Any] = {"dev_depth": min(50, unit.shape.depth)}
    if unit.ranker == "knrm":
        given |= {
            "vectors": data() / "vectors" / "glove-100d.bin.gz",
            "with_first_stage": True,
            "document_words": 64 if unit.collection == "squad" else 120,
        }
    elif unit.ranker == "head" and unit.collection == "squad":
        given |= head_settings()["chosen"]
    elif unit.ranker == "cross-encoder":
        given = {"max_length": 160, "checks": 0, "dev_depth": 10, "precision": "bfloat16"}
        if unit.collection == "squad":
            given |= {"max_length": 64, "most_queries": 1500}
    if unit.method == "augment":
        given["mirror"] = "augment"
    elif unit.method == "consistency":
        given |= {"mirror": "consistency", "mirror_strength": unit.strength}
    elif unit.method.startswith("adversary"):
        what = "group" if unit.method.endswith("group") else "neutrality"
        given |= {"adversary": unit.strength, "adversary_labels": what}
    elif unit.method not in ("negatives", "dial"):
        given |= {"loss": unit.method, "loss_strength": unit.strength}
    return given


@lru_cache(maxsize=1)
def head_settings() -> dict[str, Any]:
    """Learning rate and negatives at a time, by RR@10 of SQuAD's dev queries after plain training.

    The mean over three seeds decides; no test query is looked at.
    """
    from evenrank.training.trainer import train_prepared

    name = "squad/head/settings"
    if (there := kept_units.kept("training", name)) is not None:
        return there
    source, target = committed_source(), home() / "models" / "settings"
    found: list[list[float]] = [[] for _ in TRIED]
    for seed in range(3):
        plain = Unit("squad", "head", "negatives", 0.0, seed)
        examples = ready(plain.collection, plain.shape, 0.0, seed)
        for settings, values in zip(TRIED, found, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            made = train_prepared(
                "head",
                examples,
                target,
                seed=seed,
                hybrid=False,
                dev_depth=min(50, plain.shape.depth),
                **settings,
            )
            values.append(max(each["dev RR@10"] for each in made.metrics["epochs"]))
            shutil.rmtree(target)
    best = TRIED[int(np.argmax([np.mean(values) for values in found]))]
    tried = [{**settings, "dev RR@10": values} for settings, values in zip(TRIED, found, strict=True)]
    kept_units.keep("training", name, {"tried": tried, "chosen": best, "src": source})
    return {"tried": tried, "chosen": best, "src": source}


def trained(unit: Unit) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Runs of the test and the dev queries by a new model, and what it does to genderbias-qa."""
    from evenrank.training.trainer import train_prepared

    found, shape = unit.data, unit.shape
    bias_lambda = unit.strength if unit.method == "negatives" else 0.0
    examples = ready(unit.collection, shape, bias_lambda, unit.seed)
    held = dev(unit.collection, shape, examples.examples)
    target = home() / "models" / unit.name.replace("/", "--")
    target.parent.mkdir(parents=True, exist_ok=True)
    kind = unit.alone.ranker
    made = train_prepared(
        kind, examples, target, seed=unit.seed, hybrid=False, say=_say(unit), **recipe(unit)
    )
    settings: dict[str, Any] = {"depth": shape.ranked, "allow_training_queries": True}
    other: dict[str, Any] = {}
    if unit.method == "dial":
        settings |= {"dial": fitted_dial("genderbias-qa"), "strength": unit.strength}
        other = {"dial": fitted_dial("squad"), "strength": unit.strength}
    elif unit.ranker == "cross-encoder":
        other = {"backend": "onnx-int8"}  # reads more than twice as many pairs in a second
        settings |= other
    runs = {
        # Training questions are not among the test questions, but the mirror image of one is.
        "test": er.rerank(target, found.first, found.index.docs, found.test, **settings),
        "dev": er.rerank(target, held[2], found.index.docs, held[0], **settings),
    }
    facts: dict[str, Any] = {
        **({} if made.seconds is None else {"training CPU seconds": round(made.seconds, 1)}),
        "epochs": len(made.metrics["epochs"]),
        "dev RR@10 while training": made.metrics["dev"][kind],
        _WEIGHT: made.metrics["hybrid"]["weight"],
    }
    if "probe" in made.metrics:
        facts["probe"] = made.metrics["probe"]
    if unit.collection == "squad":
        deep = 20 if unit.ranker == "cross-encoder" else 50
        runs |= {
            part: er.rerank(target, run.filter(pl.col("rank") <= deep), texts, asked().queries, **other)
            for part, (texts, run, _) in passages().items()
        }
        facts["genderbias-qa"] = preference(runs)
    shutil.rmtree(target)  # its runs are kept
    return runs, facts


@lru_cache(maxsize=2)
def fitted_dial(name: str) -> str:
    """A dial, fitted on another collection than is asked."""
    path = home() / "dials" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        split = "train" if name == "squad" else None
        er.dial(er.load(data() / name, split=split).docs, most=600).save(path)
    return str(path)


def _say(unit: Unit) -> Callable[[str], None]:
    """Tells of a training, if it takes long."""

    def say(text: str) -> None:
        if unit.ranker == "cross-encoder":
            print(f"{unit.name}: {text}", file=sys.stderr, flush=True)

    return say


def first_stages(unit: Unit) -> dict[str, tuple[Any, pl.DataFrame, pl.DataFrame]]:
    """Of each part that is ranked: texts, BM25's run, queries."""
    found, held = unit.data, dev(unit.collection, unit.shape)
    parts = {"test": (found.index.docs, found.first, found.test), "dev": (found.index.docs, held[2], held[0])}
    if unit.collection == "squad":
        parts |= {part: (texts, run, asked().queries) for part, (texts, run, _) in passages().items()}
    return parts


def untrained(unit: Unit) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Runs that cost no training: those of BM25, or of cosines with BM25's scores added."""
    from evenrank.training import card

    if unit != unit.alone:
        content = restored(unit.alone)
        kept = {part: tables.run(pl.read_parquet(run_path(unit, part))) for part in first_stages(unit)}
        return kept, {key: content[key] for key in content if key in (_WEIGHT, "genderbias-qa")}
    parts, facts = first_stages(unit), {}
    runs = {part: run for part, (_, run, _) in parts.items()}
    if unit.method != "BM25":
        examples = ready(unit.collection, unit.shape, 0.0, 0).examples
        chosen = card.untrained(examples, examples.dev_rows(unit.shape.depth))
        if chosen is None:
            raise SystemExit("the hybrid needs the extras neural and offline")
        facts = {_WEIGHT: chosen["weight"]}
        runs = {
            part: er.rerank("hybrid", run, texts, queries, weight=chosen["weight"])
            for part, (texts, run, queries) in parts.items()
        }
    return runs, {**facts, **_preferred(unit, runs)}


def with_first_stage(unit: Unit) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """The runs of the same ranker by its own scores, with the first stage's added."""
    weight = restored(unit.alone)[_WEIGHT]
    made = {}
    for part, (_, stage, _) in first_stages(unit).items():
        run = pl.read_parquet(run_path(unit.alone, part))
        both = run.join(stage.select("query_id", "doc_id", first="score"), on=["query_id", "doc_id"])
        added = pl.col("score") + weight * pl.col("first")
        made[part] = tables.run(both.select("query_id", "doc_id", score=added))
    return made, {_WEIGHT: weight, **_preferred(unit, made)}


def again(unit: Unit) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """The runs of plain training, ranked again."""
    restored(unit.plain)
    tallies = {"test": unit.data.tally, "dev": unit.data.tally}
    if unit.collection == "squad":
        tallies |= {part: tally for part, (_, _, tally) in passages().items()}
    made = {}
    for part, tally in tallies.items():
        run = tables.run(pl.read_parquet(run_path(unit.plain, part)))
        made[part] = ranked_again(unit, run, tally, OWN if part in _OWN.values() else 10)
    return made, _preferred(unit, made)


def _preferred(unit: Unit, runs: dict[str, pl.DataFrame]) -> dict[str, Any]:
    return {"genderbias-qa": preference(runs)} if unit.collection == "squad" else {}


def restored(unit: Unit) -> dict[str, Any]:
    """What a unit has left, and its runs in the cache: trained once more where they are not there."""
    content = run_unit(unit)
    parts = ["test", "dev", *(passages() if unit.collection == "squad" else ())]
    if not all(run_path(unit, part).exists() for part in parts):
        runs, _ = runs_of(unit)
        values = measured(runs["test"], unit.data.qrels, unit.data.first, unit.data.tally)
        apart = max(abs(values["RR@10"][query] - kept) for query, kept in content["test"]["RR@10"].items())
        if apart:
            print(
                f"{unit.name}: trained once more, RR@10 of a query differs by up to {apart:.3f}", flush=True
            )
        write_runs(unit, runs)
    return content


def ranked_again(unit: Unit, run: pl.DataFrame, tally: Any, cutoff: int) -> pl.DataFrame:
    """A run after one of the ways of re-ranking."""
    measure = er.ARaB @ cutoff
    if unit.method == "penalty":
        return er.penalise(run, tally, unit.strength)
    if unit.method == "interpolate":
        return er.interpolate(run, tally, unit.strength)
    if unit.method == "constrain (each)":
        return pl.DataFrame(er.constrain(run, tally, limit=f"abs({measure})<={unit.strength!r}"))
    there = er.measure(run, measure, tally=tally, confidence=None)[measure].summary.abs or 0.0
    limit = f"abs({measure})<={unit.strength * there!r}"
    return pl.DataFrame(er.constrain(run, tally, limit=limit, mode="mean"))


OWN = 4
"""Passages of each question of genderbias-qa: two about a woman, two about a man."""
_OWN = {"as they are": "qa", "swapped": "qa swapped"}


@lru_cache(maxsize=1)
def asked() -> Any:
    """genderbias-qa."""
    return er.load(data() / "genderbias-qa")


@lru_cache(maxsize=1)
def passages() -> dict[str, tuple[Any, pl.DataFrame, Any]]:
    """Of genderbias-qa: a question's own passages, the same with genders swapped, and the best 50 of all.

    Each with texts, BM25's run and word counts.
    """
    from evenrank.rankers.index.building import own_index

    loaded, found = asked(), {}
    for part, docs in (("qa", loaded.docs), ("qa swapped", er.swap(loaded.docs))):
        texts = tables.docs(docs.frame())
        index = own_index(texts)
        ranked = er.search(index, loaded.queries, depth=index.documents)
        own = loaded.qrels.select("query_id", "doc_id").join(ranked, on=["query_id", "doc_id"], how="left")
        own = own.select("query_id", "doc_id", pl.col("score").fill_null(0.0))
        tally = er.tally(texts)
        found[part] = (texts, tables.run(own), tally)
        if part == "qa":
            found["qa of all"] = (texts, ranked.filter(pl.col("rank") <= 50), tally)
    return found


def preference(runs: dict[str, pl.DataFrame]) -> dict[str, Any]:
    """Which gender a ranker puts first among the four passages of a question, and nDCG@10 among all passages.

    The passages are ranked as they are and with all genders swapped: half the sum of the two ARaB@4 is what
    the ranker prefers, half the difference what the texts bring.
    """
    values = {}
    for side, part in _OWN.items():
        found = er.measure(runs[part], er.ARaB @ OWN, tally=passages()[part][2], confidence=None)
        values[side] = found[er.ARaB @ OWN].per_query()
    useful = er.measure(runs["qa of all"], "nDCG@10", qrels=asked().qrels, confidence=None)
    queries = sorted(values["as they are"].keys() & values["swapped"].keys())
    return {
        **{side: [values[side][query] for query in queries] for side in _OWN},
        "nDCG@10": useful["nDCG@10"].value,
    }


def main(arguments: list[str]) -> int:
    import torch

    from benchmarks.training_equal import compute
    from benchmarks.training_tables import write_tables

    chosen = [each for each in arguments if each != "--units"]
    torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
    for unit in units():
        if chosen and not any(unit.name.startswith(each) for each in chosen):
            continue
        try:
            content = run_unit(unit)
        except Exception as error:  # the others are worth having
            print(f"{unit.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        rr, bias = (np.mean(np.abs([*content["test"][name].values()])) for name in ("RR@10", "ARaB@10"))
        print(f"{unit.name}: {rr:.4f} {bias:.4f} ({content['CPU seconds in all']} s)", flush=True)
    if "--units" not in arguments:
        compute()
        write_tables()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
