"""Labels with errors: does the corrected interval cover the mean of the true group, and does the naive one?

The annotated queries are searched over wiki with BM25, and labelled by classifiers that did not learn from
them (five folds). Then 1,000 times for each prevalence: a fifth of the queries is the set at hand, of which
300 are drawn with that prevalence and only guessed labels are known; the other four fifths give the confusion
table. The truth is the mean over all queries that people gave the label. Seed 16. In a second world the
guesses are dealt out anew within each true group, so that errors do not depend on values, as assumed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from benchmarks import word_errors_evidence
from benchmarks.classifier_training import more
from benchmarks.pages import DOCS, fill, number, table
from evenrank import stats
from evenrank.queries.baselines import LexiconClassifier
from evenrank.queries.classifier import LABELS, UNKNOWN, Classifier, decide
from evenrank.queries.evaluation import label_codes, read_labelled, stratified_folds
from evenrank.queries.static_classifier import StaticClassifier, StaticSettings
from evenrank.stats.misclassified import Confusion, adjusted_means, error_tests
from evenrank.vectors import load

KEPT = Path(__file__).parents[1] / "build" / "label-errors"
EVIDENCE = DOCS / "evidence"
_SEED, _DRAWS, _SIZE, _RESAMPLES = 16, 1000, 300, 200
_MEASURES = ("ARaB@10", "NFaiRR@10")
_CASES = tuple(("static", measure) for measure in _MEASURES)
_PREVALENCES = {
    "as annotated": (0.20, 0.32, 0.48),
    "even": (1 / 3, 1 / 3, 1 / 3),
    "many male": (0.15, 0.50, 0.35),
    "as in a log": (0.05, 0.10, 0.85),
}
_DRAWN = {"real errors": tuple(_PREVALENCES), "errors dealt out anew": ("as annotated", "even")}
_PAIR = ("male", "female")


def label_errors(data: Path) -> dict[str, Any]:
    """Coverage of the corrected and of the naive interval, under four prevalences."""
    kept = _kept(data)
    truth = np.array(kept["truth"])
    rows = []
    tests: dict[str, Any] = {}
    for classifier, measure in _CASES:
        guesses, values = np.array(kept[classifier]), np.array(kept[measure])
        found = error_tests(values, truth.tolist(), guesses.tolist())
        tests[f"{classifier}, {measure}"] = {
            group: {"wrong − right": one.difference, "p": one.p} for group, one in found.items()
        }
        for world, names in _DRAWN.items():
            for name in names:
                given = (truth, guesses, values, classifier, measure, world, name)
                kept_as = f"{classifier}, {measure}, {world}, {name}"
                rows.append(_part(kept_as, lambda given=given: _row(*given)))  # type: ignore[misc]
    content = {
        "seed": _SEED,
        "draws": _DRAWS,
        "queries drawn": _SIZE,
        "resamples": _RESAMPLES,
        "queries": len(truth),
        "means": {
            measure: {label: float(np.array(kept[measure])[truth == label].mean()) for label in LABELS}
            for measure in _MEASURES
        },
        "prevalences": {name: list(shares) for name, shares in _PREVALENCES.items()},
        "do errors depend on values": tests,
        "rows": rows,
    }
    fill("label-errors.md", page(content))
    return content


def _kept(data: Path) -> dict[str, Any]:
    """True labels, guesses out of fold and values of each query; parts are kept in build/, and made once."""
    queries = read_labelled(data / "data" / "query-gender" / "annotated.tsv")
    ordered = sorted(zip(queries.texts, queries.labels, strict=True))
    texts, labels = [text for text, _ in ordered], [label for _, label in ordered]
    values = _part("values", lambda: _values(data, texts))
    found: dict[str, Any] = {"truth": labels}
    for name in ("lexicon", "static"):
        found[name] = _part(name, lambda name=name: _out_of_fold(name, texts, labels, data))  # type: ignore[misc]
    held = [i for i in range(len(texts)) if all(str(i) in values[m] for m in _MEASURES)]
    found = {name: [column[i] for i in held] for name, column in found.items()}
    return found | {measure: [values[measure][str(i)] for i in held] for measure in _MEASURES}


def _part(name: str, make: Callable[[], Any]) -> Any:
    path = KEPT / f"{name}.json"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def _out_of_fold(name: str, texts: list[str], labels: list[str], data: Path) -> list[str]:
    """The static classifier learns here from GloVe alone, without the slower vectors of the shipped one."""
    glove, others = load(data / "data" / "vectors" / "glove-100d.bin.gz"), more(data)
    truth = label_codes(labels)
    part = stratified_folds(truth, 5, 0)
    guesses = np.empty(len(texts), object)
    for fold in range(5):
        model: Classifier = LexiconClassifier()
        if name == "static":
            model = StaticClassifier(StaticSettings(neutral_share=0.63), vectors=(glove,), more=others)
        inside, outside = np.flatnonzero(part != fold).tolist(), np.flatnonzero(part == fold).tolist()
        model.fit([texts[i] for i in inside], [labels[i] for i in inside], seed=0)
        codes = decide(model.predict_proba([texts[i] for i in outside]), model.abstains_below)
        guesses[outside] = [(*LABELS, UNKNOWN)[code] for code in codes.tolist()]
    return [str(guess) for guess in guesses]


def _values(data: Path, texts: list[str]) -> dict[str, dict[str, float]]:
    docs = er.load(data / "data" / "wiki", split="test").docs
    queries = {str(i): text for i, text in enumerate(texts)}
    with tempfile.TemporaryDirectory() as folder:
        index = er.index(docs, Path(folder) / "index")
        run = er.search(index, queries, depth=10)
        shown = index.docs.texts(run["doc_id"].unique(maintain_order=True).to_list())
        found = er.measure(run, list(_MEASURES), docs=shown, background=run, confidence=None)
    return {measure: found[measure].per_query() for measure in _MEASURES}


def _row(
    truth: np.ndarray,
    guesses: np.ndarray,
    values: np.ndarray,
    classifier: str,
    measure: str,
    world: str,
    name: str,
) -> dict[str, Any]:
    rng = np.random.default_rng([_SEED, len(classifier), len(measure), len(world), len(name)])
    means = {label: float(values[truth == label].mean()) for label in LABELS}
    means["male − female"] = means["male"] - means["female"]
    covered = {way: dict.fromkeys(means, 0) for way in ("corrected", "naive")}
    off = {way: dict.fromkeys(means, 0.0) for way in ("corrected", "naive")}
    width = {way: dict.fromkeys(means, 0.0) for way in ("corrected", "naive")}
    counted = {way: dict.fromkeys(means, 0) for way in ("corrected", "naive")}
    for draw in range(_DRAWS):
        seen = guesses
        if world != "real errors":
            seen = guesses.copy()
            for label in LABELS:
                of = np.flatnonzero(truth == label)
                seen[of] = seen[rng.permutation(of)]
        mixed = rng.permutation(len(truth))
        here, there = mixed[: len(mixed) // 5], mixed[len(mixed) // 5 :]
        picked = _drawn(here, truth, _PREVALENCES[name], rng)
        for way, found in (
            ("corrected", _corrected(values[picked], seen[picked], truth[there], seen[there], draw)),
            ("naive", _naive(values[picked], seen[picked])),
        ):
            for group, each in found.items():
                if each.value is None or each.low is None or each.high is None:
                    continue
                counted[way][group] += 1
                covered[way][group] += each.low <= means[group] <= each.high
                off[way][group] += each.value - means[group]
                width[way][group] += each.high - each.low
    return {
        "classifier": classifier,
        "measure": measure,
        "world": world,
        "prevalence": name,
        **{
            way: {
                group: {
                    "intervals": counted[way][group],
                    "coverage": covered[way][group] / max(counted[way][group], 1),
                    "bias": off[way][group] / max(counted[way][group], 1),
                    "width": width[way][group] / max(counted[way][group], 1),
                }
                for group in means
            }
            for way in ("corrected", "naive")
        },
    }


def _drawn(
    here: np.ndarray, truth: np.ndarray, shares: tuple[float, ...], rng: np.random.Generator
) -> np.ndarray:
    """Queries of the set at hand, each at most once, with these shares of true groups."""
    counts = rng.multinomial(_SIZE, shares)
    chosen = []
    for label, count in zip(LABELS, counts.tolist(), strict=True):
        of = here[truth[here] == label]
        chosen.append(rng.choice(of, min(count, len(of)), replace=False))
    return np.concatenate(chosen)


def _corrected(
    values: np.ndarray, guesses: np.ndarray, truths: np.ndarray, learned: np.ndarray, seed: int
) -> dict[str, stats.Interval]:
    counts = {t: {g: int(((truths == t) & (learned == g)).sum()) for g in (*LABELS, UNKNOWN)} for t in LABELS}
    found = adjusted_means(
        values, guesses.tolist(), Confusion.of(counts), pairs=[_PAIR], resamples=_RESAMPLES, seed=seed
    )
    return {**found.means, "male − female": found.differences[_PAIR]}


def _naive(values: np.ndarray, guesses: np.ndarray) -> dict[str, stats.Interval]:
    sides = {label: values[guesses == label] for label in LABELS}
    found = {label: stats.mean_interval(side, resamples=_RESAMPLES) for label, side in sides.items()}
    gap = stats.welch(sides["male"], sides["female"])
    found["male − female"] = stats.Interval(gap.difference, gap.low, gap.high)
    return found


def page(found: dict[str, Any], words: dict[str, Any] | None = None) -> str:
    """The tables of docs/label-errors.md; of documents, as kept in their own evidence unless given."""
    words = words or json.loads((EVIDENCE / "word-errors.json").read_text())["results"]
    groups = ("female", "male", "neutral", "male − female")
    heads = ["labels, measure", "prevalence", *(f"{group}: corrected, naive" for group in groups)]
    heads += ["bias of male − female: corrected, naive"]
    parts = []
    for world, lead in (
        ("real errors", "With the errors that the classifier makes:"),
        (
            "errors dealt out anew",
            "With the same errors redistributed at random within each true group, so that they do not "
            "depend on "
            "the value, as the method assumes:",
        ),
    ):
        rows = []
        for row in found["rows"]:
            if row["world"] != world:
                continue
            both = [
                ", ".join(number(row[way][group]["coverage"], ".1%") for way in ("corrected", "naive"))
                for group in groups
            ]
            bias = ", ".join(number(row[way]["male − female"]["bias"]) for way in ("corrected", "naive"))
            rows.append([f"{row['classifier']}, {row['measure']}", row["prevalence"], *both, bias])
        parts.append(f"{lead}\n\n{table(heads, rows, left=2)}")
    tests = [
        [name, group, number(each["wrong − right"]), number(each["p"], ".3f")]
        for name, of in found["do errors depend on values"].items()
        for group, each in of.items()
    ]
    lead = (
        f"{found['queries']:,} annotated queries searched over wiki with BM25, and labelled by the static "
        "classifier, in five folds, with GloVe vectors alone. "
        f"{found['draws']:,} draws of {found['queries drawn']} queries for each prevalence "
        f"(seed {found['seed']}): how often the 95 % "
        "interval covers the mean of the queries that people gave the label. It should be 95 %."
    )
    depend = (
        "Do errors depend on the value? Mean of the wrongly labelled minus that of the rightly labelled, "
        "within each true group (permutation test, Holm):"
    )
    said = table(["labels, measure", "true group", "wrong − right", "p"], tests, left=2)
    known = (
        "A simulated share of 95 % is known to ± 1.4 points. Numbers: "
        "[evidence](evidence/label-errors.json), by `python -m benchmarks.evidence label-errors`."
    )
    queries = f"{lead}\n\n{_summary(found)}\n\n{parts[0]}\n{parts[1]}\n{depend}\n\n{said}\n{known}\n"
    return f"{queries}\n{word_errors_evidence.page(words)}"


def _summary(found: dict[str, Any]) -> str:
    """What it comes to, in two sentences for each measure."""
    said = []
    for measure in dict.fromkeys(row["measure"] for row in found["rows"]):
        sentences = []
        for world, when in (
            ("real errors", "With the classifier's own errors"),
            ("errors dealt out anew", "Where errors do not depend on values"),
        ):
            rows = [row for row in found["rows"] if (row["world"], row["measure"]) == (world, measure)]
            spans = {
                (way, group): f"{min(each):.1%} to {max(each):.1%}"
                for way in ("corrected", "naive")
                for group in ("neutral", "male − female")
                for each in [[row[way][group]["coverage"] for row in rows]]
            }
            sentences.append(
                f"{when} the corrected interval covers the mean of neutral queries in "
                f"{spans['corrected', 'neutral']} of draws (naive {spans['naive', 'neutral']}), "
                f"and male − female in {spans['corrected', 'male − female']} "
                f"(naive {spans['naive', 'male − female']})."
            )
        said.append(f"**{measure}.** {' '.join(sentences)}")
    return "\n\n".join(said)
