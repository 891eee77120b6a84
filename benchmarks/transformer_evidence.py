"""How good is the transformer classifier? Cross-validated, and on lists and queries it never learned.

A fold takes minutes, so what each finds is kept under EVENRANK_CACHE and found there again: a run that was
stopped goes on. So is the model that is trained once on everything.
`python -m benchmarks.transformer_evidence folds 0` makes the folds of seed 0 only,
`python -m benchmarks.transformer_evidence trained` that model only;
`python -m benchmarks.evidence query-gender-transformer` makes what is missing and fills the page.
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

from benchmarks.classifier_evidence import NEUTRAL_SHARE, PUBLISHED, accuracies, checks, training_vectors
from benchmarks.classifier_training import hand_labels, more
from benchmarks.corpus import shared
from benchmarks.pages import fill, interval, table
from evenrank.queries.classifier import LABELS, clean, decide, seen_in_training
from evenrank.queries.evaluation import (
    calibration_error,
    confusion_matrix,
    f1_scores,
    label_codes,
    stratified_folds,
)
from evenrank.queries.samples import More, in_order
from evenrank.queries.static_classifier import ABSTAINS_BELOW, StaticClassifier
from evenrank.queries.teaching import StaticSettings
from evenrank.queries.transformer_classifier import TransformerClassifier, averaged
from evenrank.queries.transformer_network import Recipe
from evenrank.show.numbers import counted
from evenrank.stats import mean_interval

Doubles = npt.NDArray[np.float64]
FOLDS = 5
SEEDS = (0,)
_KINDS = ("encoder", "static")
_NAMES = {"both": "**transformer**", "encoder": "**the encoder alone**", "static": "**the static one alone**"}


def annotated(data: Path) -> tuple[list[str], list[str]]:
    """Queries and labels, sorted; the few labelled `other` are left out, as in the thesis."""
    table = _table(data, "annotated").filter(pl.col("label").is_in(LABELS)).sort("text", "label")
    return table["text"].to_list(), table["label"].to_list()


def _others(data: Path) -> More:
    """Of other collections; queries without labels are for the static classifier that ships."""
    found = more(data)
    return found._replace(labelled=in_order(*found.labelled), unlabelled=())


def _table(data: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(
        data / "data" / "query-gender" / f"{name}.tsv",
        separator="\t",
        has_header=False,
        new_columns=["query_id", "text", "label"],
        quote_char=None,
        infer_schema=False,
    )


def _kept(*known: Any) -> Path:
    """Where something is kept: by everything that decides it but the code."""
    facts = [*known, asdict(Recipe()), TransformerClassifier().options, NEUTRAL_SHARE]
    key = xxhash.xxh3_64_hexdigest(json.dumps(facts, sort_keys=True).encode())
    cache = Path(os.environ.get("EVENRANK_CACHE") or Path.home() / ".cache" / "evenrank")
    return cache / "transformer-evidence" / key


def fold(data: Path, seed: int, number: int) -> dict[str, Any]:
    """What encoder and static classifier say of one fold, trained on the others; kept.

    Of the labelled queries of other collections a fifth is left out of training, too.
    """
    path = _kept("fold", seed, number).with_suffix(".json")
    if not path.exists():
        (texts, labels), others, vectors = annotated(data), _others(data), training_vectors(data)
        also = others.labelled
        inside, outside = _split(labels, seed, number)
        learned, left = _split(also.labels, seed, number)
        others = others._replace(labelled=also.some(learned))
        given = [texts[i] for i in inside], [labels[i] for i in inside]
        start = time.process_time()
        encoder = TransformerClassifier(
            vectors=vectors, more=others, static_share=0.0, neutral_share=NEUTRAL_SHARE
        ).fit(*given, seed=seed)
        seconds = time.process_time() - start
        static = StaticClassifier(
            StaticSettings(neutral_share=NEUTRAL_SHARE), vectors=vectors, more=others
        ).fit(*given, seed=seed)
        content: dict[str, Any] = {"outside": outside, "left": left, "CPU seconds, encoder": seconds}
        for kind, model in zip(_KINDS, (encoder, static), strict=True):
            content[kind] = model.predict_proba([texts[i] for i in outside]).tolist()
            content[f"{kind}, left"] = model.predict_proba([also.texts[i] for i in left]).tolist()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(json.dumps(content))
        path.with_suffix(".tmp").replace(path)
    return dict(json.loads(path.read_text()))


def _split(labels: list[str], seed: int, number: int) -> tuple[list[int], list[int]]:
    part = stratified_folds(label_codes(labels), FOLDS, seed)
    return np.flatnonzero(part != number).tolist(), np.flatnonzero(part == number).tolist()


def _joined(data: Path, seed: int, place: str, suffix: str, count: int) -> dict[str, Doubles]:
    """The probabilities of all queries, each by models that had not seen it."""
    found = {kind: np.zeros((count, len(LABELS))) for kind in _KINDS}
    for number in range(FOLDS):
        kept = fold(data, seed, number)
        for kind in _KINDS:
            found[kind][kept[place]] = np.array(kept[kind + suffix])
    share = float(TransformerClassifier().options["static_share"])
    return {"both": averaged(found["encoder"], found["static"], share), **found}


def _measured(found: dict[int, Doubles], truth: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Accuracy with its interval over queries, F1 of each class, calibration; by seed and fold too."""
    labels = {seed: decide(p, ABSTAINS_BELOW) for seed, p in found.items()}
    right = {seed: (chosen == truth).astype(float) for seed, chosen in labels.items()}
    mean = mean_interval(np.mean(list(right.values()), 0))
    parts = {seed: stratified_folds(truth, FOLDS, seed) for seed in found}
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
        "accuracy by seed and fold": {
            str(seed): [float(r[parts[seed] == number].mean()) for number in range(FOLDS)]
            for seed, r in right.items()
        },
        "confusion, rows are true": np.sum(
            [confusion_matrix(truth, chosen) for chosen in labels.values()], 0
        ).tolist(),
    }


def _left_out(data: Path, seed: int) -> dict[str, Any]:
    """Wiki's training queries with labels by hand, each by models that had not learned it."""
    also, known = _others(data).labelled, hand_labels()
    rows = (line.split("\t") for line in (data / "data/wiki/queries.train.tsv").read_text().splitlines())
    asked = {clean(text) for query_id, text in rows if query_id in known}
    real, truth = np.array([text in asked for text in also.texts]), label_codes(also.labels)
    found = {}
    for kind, probabilities in _joined(data, seed, "left", ", left", len(truth)).items():
        chosen = decide(probabilities, ABSTAINS_BELOW)
        called = real & (chosen < 2)
        found[kind] = {
            "queries": int(real.sum()),
            "called female or male": int(called.sum()),
            "of these right": float((chosen == truth)[called].mean()),
            "found of the gendered": float((chosen == truth)[real & (truth < 2)].mean()),
        }
    return found


def trained(data: Path) -> tuple[TransformerClassifier, float]:
    """A model that has learned everything (seed 0), and the CPU seconds it took; kept."""
    folder = _kept("all")
    if not (folder / "model.json").exists():
        start = time.process_time()
        model = TransformerClassifier(
            vectors=training_vectors(data), more=_others(data), neutral_share=NEUTRAL_SHARE
        ).fit(*annotated(data), seed=0)
        folder.parent.mkdir(parents=True, exist_ok=True)
        seconds = time.process_time() - start
        folder.with_suffix(".seconds").write_text(f"{seconds:.0f}")
        model.save(folder)
    return TransformerClassifier.load(folder), float(folder.with_suffix(".seconds").read_text())


def transformer(data: Path) -> dict[str, Any]:
    """Everything docs/query-gender-transformer.md quotes; what is not kept is made first."""
    _one_thread()
    model, cost = trained(data)
    of_model = {"never learned": checks(model, data), **_other_model(model, data)}
    truth = label_codes(annotated(data)[1])
    folds = {seed: _joined(data, seed, "outside", "", len(truth)) for seed in SEEDS}
    seconds = [fold(data, seed, number)["CPU seconds, encoder"] for seed in SEEDS for number in range(FOLDS)]
    found = {
        "queries": len(truth),
        "seeds": list(SEEDS),
        "published": {name: list(row) for name, row in PUBLISHED.items()},
        **{kind: _measured({seed: of[kind] for seed, of in folds.items()}, truth) for kind in _NAMES},
        "wiki's training queries, held out": _left_out(data, SEEDS[0]),
        "settings": {**asdict(Recipe()), **model.options},
        "median CPU seconds to train an encoder on four folds": round(statistics.median(seconds)),
        "CPU seconds to train on everything": round(cost),
        **of_model,
    }
    fill("query-gender-transformer.md", page(found))
    return found


def _other_model(model: TransformerClassifier, data: Path) -> dict[str, Any]:
    """Agreement with the labels of the thesis' model, and speed on its queries."""
    predicted = _table(data, "predicted")
    new = predicted.filter(pl.Series(~seen_in_training(model, predicted["text"].to_list())))
    texts, truth = new["text"].to_list(), label_codes(new["label"].to_list())
    chosen = decide(model.predict_proba(texts), ABSTAINS_BELOW)
    return {
        "agreement with predicted.tsv": {
            "queries": len(new),
            "agreement": float((chosen == truth).mean()),
            "of each class": {
                label: float((chosen == truth)[truth == code].mean()) for code, label in enumerate(LABELS)
            },
        },
        "throughput": throughput(model, texts),
    }


def throughput(model: TransformerClassifier, texts: list[str]) -> dict[str, Any]:
    """Queries a second of processor time, one thread: in one call, and one by one."""
    model.predict_proba(texts[:64])
    batched = statistics.median(_cpu_seconds(model, [texts[:1024]]) for _ in range(3))
    single = statistics.median(_cpu_seconds(model, [[text] for text in texts[:64]]) for _ in range(3))
    return {
        "batched queries/s": round(len(texts[:1024]) / batched),
        "one by one queries/s": round(len(texts[:64]) / single),
    }


def _cpu_seconds(model: TransformerClassifier, calls: list[list[str]]) -> float:
    start = time.process_time()
    for texts in calls:
        model.predict_proba(texts)
    return time.process_time() - start


def page(found: dict[str, Any]) -> str:
    """What the page says in numbers."""
    if "both" not in found:
        return "Not measured yet: `python -m benchmarks.evidence query-gender-transformer` does it."
    rows = []
    for kind, name in _NAMES.items():
        of = found[kind]
        value = f"**{of['accuracy']:.3f}** {interval(of['low'], of['high'], '.3f')}"
        scores = [f"{of['f1'][label]:.3f}" for label in LABELS]
        rows.append([name, value, f"{of['coverage']:.1%}", *scores, f"{of['ece']:.3f}"])
    best = dict(list(found["published"].items())[:3])
    held = found["wiki's training queries, held out"]
    wiki_train = [
        [
            _NAMES[kind].strip("*"),
            str(of["called female or male"]),
            f"{of['of these right']:.1%}",
            f"{of['found of the gendered']:.1%}",
        ]
        for kind, of in held.items()
    ]
    lists = dict(found["never learned"])
    wiki = lists.pop("wiki's test queries")
    never = [[name, f"{of['texts']:,}", f"{of['right']:.1%}"] for name, of in lists.items()]
    labelled = ", ".join(f"{count:,} {label}" for label, count in wiki["labelled"].items())
    by_label = " and ".join(
        f"{share:.1%} of those {label}" for label, share in wiki["precision by label"].items()
    )
    speed, theirs = found["throughput"], found["agreement with predicted.tsv"]
    classes = ", ".join(f"{label} {share:.0%}" for label, share in theirs["of each class"].items())
    return f"""{accuracies(rows, best)}
{_PUBLISHED.format(seeds=counted(len(found["seeds"]), "seed"))}

The {held["both"]["queries"]:,} training queries of wiki that were labelled by hand, each by models that had \
not learned it:

{table(["classifier", "called female or male", "of these right", "found of those about one"], wiki_train)}
## What it was never shown

{_NEVER}

{table(["what", "texts", "right"], never)}
Of wiki's {wiki["queries"]:,} test queries it labels {labelled}. Of those labelled female or male, \
{wiki["judged by hand"]} were read one by one: **{wiki["precision"]:.1%} are right** \
{interval(wiki["interval"]["low"], wiki["interval"]["high"], ".1%")} ({by_label}).

The model of the thesis labelled {theirs["queries"]:,} other queries that ours has not seen. Ours agrees on \
{theirs["agreement"]:.1%} of them ({classes}).

## How fast

On one core it labels {speed["batched queries/s"]:,} queries a second in one call, and \
{speed["one by one queries/s"]:,} a second one by one. Training takes \
{found["CPU seconds to train on everything"]:,} seconds of one core, the static classifier included."""


_PUBLISHED = """The published numbers come from 3,709 queries, of which ours are a part; the folds differ. \
Theirs were trained for these queries, of which half are neutral; ours is told to expect two thirds. \
Measured with {seeds}: training is random, so another seed gives somewhat different numbers."""
_NEVER = """The lists and queries are those of [the static classifier's \
page](query-gender.md#what-it-was-never-shown). The model was trained once on everything (seed 0). `unknown` \
counts as wrong."""


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def main(arguments: list[str]) -> int:
    """Make folds, or the model that learns everything, and keep them."""
    data = shared()
    if data is None or not arguments or arguments[0] not in ("folds", "trained"):
        print("set EVENRANK_TEST_DATA, and say: folds SEED …, or: trained", file=sys.stderr)
        return 2
    _one_thread()
    if arguments[0] == "trained":
        print(f"{trained(data)[1]:.0f} CPU seconds")
        return 0
    truth = label_codes(annotated(data)[1])
    for seed, number in ((int(seed), number) for seed in arguments[1:] for number in range(FOLDS)):
        kept = fold(data, seed, number)
        right = np.argmax(kept["encoder"], 1) == truth[kept["outside"]]
        print(seed, number, f"{right.mean():.4f}", f"{kept['CPU seconds, encoder']:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
