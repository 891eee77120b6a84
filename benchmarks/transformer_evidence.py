"""How good is the transformer classifier? Cross-validated on the annotated queries, with what helped.

A fold takes minutes, so the probabilities of each are kept under EVENRANK_CACHE and found there again: a run
that was stopped goes on. `python -m benchmarks.transformer_evidence full 0 1` makes the folds of two seeds
only; `python -m benchmarks.transformer_evidence never-learned` trains once, on everything, and measures lists
that no training touches, which takes some ten minutes. Both leave the other numbers as they are.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from benchmarks.classifier_evidence import PUBLISHED, checks, training_vectors
from benchmarks.classifier_training import more
from benchmarks.corpus import shared
from benchmarks.pages import DOCS, committed_source, fill, interval, table
from evenrank.queries.classifier import LABELS, decide, seen_in_training
from evenrank.queries.evaluation import (
    calibration_error,
    confusion_matrix,
    crossvalidate,
    f1_scores,
    label_codes,
    stratified_folds,
)
from evenrank.queries.samples import More
from evenrank.queries.static_classifier import ABSTAINS_BELOW, StaticClassifier
from evenrank.queries.transformer_classifier import MEMBER_SEEDS, TransformerClassifier, averaged
from evenrank.queries.transformer_network import Recipe
from evenrank.stats import mean_interval
from evenrank.vectors import Vectors

Found = dict[int, npt.NDArray[np.float64]]
"""Probabilities of all queries, for each seed by models that had not seen them."""
FOLDS = 5
SEEDS = (0,)
# The encoder alone; the static classifier, which takes less time, is added when the folds are there.
CONFIGURATIONS: dict[str, dict[str, Any]] = {"full": {}, "annotated queries only": {"plain_samples": 0}}


def annotated(data: Path) -> tuple[list[str], list[str]]:
    """Queries and labels, sorted; the few labelled `other` are left out, as in the thesis."""
    table = _table(data, "annotated").filter(pl.col("label").is_in(LABELS)).sort("text", "label")
    return table["text"].to_list(), table["label"].to_list()


def _others(data: Path) -> More:
    """Of other collections; queries without labels are for the static classifier."""
    return more(data)._replace(unlabelled=())


def _table(data: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(
        data / "data" / "query-gender" / f"{name}.tsv",
        separator="\t",
        has_header=False,
        new_columns=["query_id", "text", "label"],
        quote_char=None,
        infer_schema=False,
    )


def _settings(data: Path, name: str) -> dict[str, Any]:
    glove = data / "data" / "vectors" / "glove-100d.bin.gz"
    return {"vectors": (glove,), "static_share": 0.0, **CONFIGURATIONS[name]}


def encoder_fold(data: Path, name: str, seed: int, fold: int, member: int = 0) -> dict[str, Any]:
    """Probabilities of the encoder for the queries of one fold, trained on the others; kept."""
    path = _kept(data, name, seed, fold, member)
    if not path.exists():
        texts, labels = annotated(data)
        part = stratified_folds(label_codes(labels), FOLDS, seed)
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        start, cpu = time.perf_counter(), time.process_time()
        others = _others(data) if name == "full" else None
        model = TransformerClassifier(**_settings(data, name), more=others)
        model.fit([texts[i] for i in inside], [labels[i] for i in inside], seed=seed + MEMBER_SEEDS * member)
        trained = time.perf_counter() - start, time.process_time() - cpu
        found = model.predict_proba([texts[i] for i in outside])
        content = {
            "outside": outside.tolist(),
            "probabilities": found.tolist(),
            "seconds": trained[0],
            "cpu seconds": trained[1],
            "temperatures": model.temperatures,
            "losses": model.losses,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(json.dumps(content))
        path.with_suffix(".tmp").replace(path)
    return dict(json.loads(path.read_text()))


def _kept(data: Path, name: str, seed: int, fold: int, member: int) -> Path:
    """Where a fold is kept: by everything that decides it but the code."""
    settings = _settings(data, name)
    known = [{**settings, "vectors": len(settings["vectors"])}, asdict(Recipe()), seed, fold]
    known += [member] if member else []
    key = xxhash.xxh3_64_hexdigest(json.dumps(known, sort_keys=True).encode())
    cache = Path(os.environ.get("EVENRANK_CACHE") or Path.home() / ".cache" / "evenrank")
    return cache / "transformer-evidence" / f"{key}.{seed}.{fold}.json"


def _encoder(data: Path, name: str, seed: int, count: int, members: int = 1) -> npt.NDArray[np.float64]:
    found = np.zeros((count, len(LABELS)))
    for fold in range(FOLDS):
        for member in range(members):
            kept = encoder_fold(data, name, seed, fold, member)
            found[kept["outside"]] += np.array(kept["probabilities"]) / members
    return found


def _measured(found: Found, truth: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Accuracy with its interval over queries, F1 of each class, calibration; by seed and fold too."""
    labels = {seed: decide(p, ABSTAINS_BELOW) for seed, p in found.items()}
    right = {seed: (chosen == truth).astype(float) for seed, chosen in labels.items()}
    matrices = {seed: confusion_matrix(truth, chosen) for seed, chosen in labels.items()}
    mean = mean_interval(np.mean(list(right.values()), 0))
    by_fold = {
        str(seed): [float(r[stratified_folds(truth, FOLDS, seed) == fold].mean()) for fold in range(FOLDS)]
        for seed, r in right.items()
    }
    return {
        "accuracy": mean.value,
        "low": mean.low,
        "high": mean.high,
        "coverage": float(np.mean([chosen < len(LABELS) for chosen in labels.values()])),
        "f1": {
            label: float(np.mean([f1_scores(truth, chosen)[label] for chosen in labels.values()]))
            for label in LABELS
        },
        "ece": float(np.mean([calibration_error(p, truth) for p in found.values()])),
        "accuracy by seed": {str(seed): float(r.mean()) for seed, r in right.items()},
        "accuracy by fold": by_fold,
        "confusion, rows are true": np.sum(list(matrices.values()), 0).tolist(),
        "seeds": list(found),
    }


def transformer(data: Path) -> dict[str, Any]:
    """Everything docs/query-gender-transformer.md quotes; folds that are not kept are made first."""
    texts, labels = annotated(data)
    truth = label_codes(labels)
    chosen = TransformerClassifier().options
    share, members = float(chosen["static_share"]), int(chosen["members"])
    vectors = training_vectors(data)
    others = _others(data)
    static = dict(
        zip(
            SEEDS,
            crossvalidate(
                lambda: StaticClassifier(vectors=vectors, more=others), texts, labels, seeds=SEEDS
            ).probabilities,
            strict=True,
        )
    )
    encoders = {
        number: {seed: _encoder(data, "full", seed, len(texts), number) for seed in SEEDS}
        for number in range(1, members + 1)
    }
    seconds = [
        encoder_fold(data, "full", seed, fold)["cpu seconds"] for seed in SEEDS for fold in range(FOLDS)
    ]
    both = {number: _with(found, static, share) for number, found in encoders.items()}
    return {
        "queries": len(texts),
        "published": {name: list(row) for name, row in PUBLISHED.items()},
        "encoder + static classifier": _measured(both[members], truth),
        "by number of encoders": {
            str(number): {
                "encoders": _short(encoders[number], truth),
                "encoders + static classifier": _short(both[number], truth),
            }
            for number in encoders
        },
        "static classifier": _short(static, truth),
        "settings": {
            **asdict(Recipe()),
            **chosen,
            "vectors": "GloVe 6B, 100d; for the static classifier also words as MiniLM encodes them",
        },
        "settings chosen": _CHOSEN,
        "median CPU seconds to train an encoder on four folds": round(float(np.median(seconds)), 1),
        **_on_all(vectors, data, texts, labels),
    }


def _with(encoder: Found, static: Found, share: float) -> Found:
    return {seed: averaged(encoder[seed], static[seed], share) for seed in encoder}


def _short(found: Found, truth: npt.NDArray[np.int64]) -> dict[str, Any]:
    return {key: value for key, value in _measured(found, truth).items() if key in _SHORT}


_SHORT = ("accuracy", "low", "high", "coverage", "f1", "ece")
_CHOSEN = (
    "Word vectors and names in the encoder, and the share of the static classifier: on two inner folds "
    "of the training part of the first fold of seed 0, before queries of our own lists and of other "
    "collections were added. How many of these, and three epochs: set for time, not compared."
)


def _on_all(vectors: tuple[Vectors, ...], data: Path, texts: list[str], labels: list[str]) -> dict[str, Any]:
    """Trained on all annotated queries: agreement with the labels of the thesis' model, and speed."""
    model = TransformerClassifier(vectors=vectors, more=_others(data)).fit(texts, labels, seed=0)
    predicted = _table(data, "predicted")
    new = predicted.filter(pl.Series(~seen_in_training(model, predicted["text"].to_list())))
    found = model.predict_proba(new["text"].to_list())
    truth = label_codes(new["label"].to_list())
    sure = found.max(1) >= 0.9
    return {
        "agreement with predicted.tsv": {
            "queries": len(new),
            "left out, annotated too": len(predicted) - len(new),
            "agreement": float((found.argmax(1) == truth).mean()),
            "agreement where it is at least 0.9 sure": float((found.argmax(1) == truth)[sure].mean()),
            "share where it is at least 0.9 sure": float(sure.mean()),
            "confusion, rows are theirs": confusion_matrix(truth, found.argmax(1)).tolist(),
            "of each class": {
                label: float((found.argmax(1) == truth)[truth == code].mean())
                for code, label in enumerate(LABELS)
            },
        },
        "never learned": checks(model, data),
        "throughput": throughput(model, new["text"].to_list()),
    }


def throughput(model: TransformerClassifier, texts: list[str]) -> dict[str, Any]:
    """Queries a second of processor time, one thread: in one call, and one by one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model.predict_proba(texts[:64])
        batched = statistics.median(_cpu_seconds(model, [texts[:1024]]) for _ in range(3))
        single = statistics.median(_cpu_seconds(model, [[text] for text in texts[:64]]) for _ in range(3))
    finally:
        torch.set_num_threads(before)
    return {
        "batched queries/s": round(len(texts[:1024]) / batched),
        "one by one queries/s": round(len(texts[:64]) / single),
        "batching is faster by": round(len(texts[:1024]) / batched * single / len(texts[:64]), 1),
    }


def _cpu_seconds(model: TransformerClassifier, calls: list[list[str]]) -> float:
    start = time.process_time()
    for texts in calls:
        model.predict_proba(texts)
    return time.process_time() - start


def page(found: dict[str, Any]) -> str:
    """What the page says of lists that were never learned."""
    if "never learned" not in found:
        return "Not measured yet: `python -m benchmarks.transformer_evidence never-learned` does it."
    lists = dict(found["never learned"])
    wiki = lists.pop("wiki's test queries")
    rows = [[name, f"{of['texts']:,}", f"{of['right']:.1%}"] for name, of in lists.items()]
    labelled = ", ".join(f"{count:,} {label}" for label, count in wiki["labelled"].items())
    known = f"{wiki['judged by hand']} of the {wiki['drawn']} that were drawn"
    sure = interval(wiki["interval"]["low"], wiki["interval"]["high"], ".1%")
    return f"""{table(["what", "texts", "right"], rows)}
Of wiki's {wiki["queries"]:,} test queries it calls {labelled}. Of those called female or male {known} had \
been labelled by hand for the static classifier: {wiki["precision"]:.1%} of them are right {sure}. The \
others were not read, and may be worse."""


def never_learned(data: Path) -> None:
    """Train once, measure what was never learned, and put it into the evidence and the page."""
    source, path = committed_source(), DOCS / "evidence" / "query-gender-transformer.json"
    texts, labels = annotated(data)
    start = time.process_time()
    model = TransformerClassifier(vectors=training_vectors(data), more=_others(data))
    model.fit(texts, labels, seed=0)
    trained = round(time.process_time() - start)
    kept = json.loads(path.read_text())
    kept["results"]["never learned"] = checks(model, data)
    kept["results"]["never learned, made from"] = {"src": source, "CPU seconds to train": trained}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    fill("query-gender-transformer.md", page(kept["results"]))


def main(arguments: list[str]) -> int:
    """Make the folds of a configuration: its name, then seeds, each as SEED or SEED.MEMBER."""
    import torch

    torch.set_num_threads(1)
    data = shared()
    if data is not None and arguments == ["never-learned"]:
        never_learned(data)
        return 0
    if data is None or len(arguments) < 2 or arguments[0] not in CONFIGURATIONS:
        print(f"name a configuration ({', '.join(CONFIGURATIONS)}) and seeds", file=sys.stderr)
        return 2
    truth = label_codes(annotated(data)[1])
    for asked in arguments[1:]:
        seed, _, member = asked.partition(".")
        for fold in range(FOLDS):
            kept = encoder_fold(data, arguments[0], int(seed), fold, int(member or 0))
            right = np.argmax(kept["probabilities"], 1) == truth[kept["outside"]]
            print(
                arguments[0], asked, fold, f"{right.mean():.4f}", f"{kept['cpu seconds']:.0f} s", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
