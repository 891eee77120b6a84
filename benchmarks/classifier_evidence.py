"""Numbers behind docs/query-gender.md: cross-validation, and lists that were never learned.

`python -m benchmarks.evidence query-gender` measures and fills the page;
`python -m benchmarks.classifier_evidence` fills it again from docs/evidence/query-gender.json.
"""

from __future__ import annotations

import csv
import json
import random
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.classifier_fresh import fresh, paragraph
from benchmarks.classifier_training import more, pieces_held_out
from benchmarks.pages import DOCS, fill, interval, table
from evenrank.queries.baselines import LexiconClassifier, SvmClassifier
from evenrank.queries.classifier import (
    LABELS,
    UNKNOWN,
    Classifier,
    Probabilities,
    clean,
    decide,
    load_classifier,
    seen_in_training,
)
from evenrank.queries.evaluation import (
    CrossValidation,
    Labelled,
    label_codes,
    read_labelled,
    stratified_folds,
    summary,
)
from evenrank.queries.samples import names_nobody
from evenrank.queries.static_classifier import StaticClassifier, StaticSettings
from evenrank.queries.teaching import Encoder
from evenrank.queries.words import plain_queries
from evenrank.stats import mean_interval
from evenrank.text.lexicon import lexicon
from evenrank.vectors import Vectors, distil, load

# A. Bigdeli, thesis, Table 3.2: five folds of the full annotations (3,709 queries); accuracy, F1.
PUBLISHED = {
    "BERT (base uncased)": (0.856, 0.816, 0.872, 0.862),
    "DistilBERT (base uncased)": (0.847, 0.815, 0.861, 0.853),
    "RoBERTa": (0.810, 0.733, 0.820, 0.836),
    "DistilBERT (base cased)": (0.800, 0.730, 0.823, 0.833),
    "BERT (base cased)": (0.797, 0.710, 0.805, 0.827),
    "XLNet (base cased)": (0.795, 0.710, 0.805, 0.826),
    "Word2Vec + SVM": (0.757, 0.626, 0.756, 0.809),
    "fastText": (0.750, 0.615, 0.759, 0.792),
}
COMMON = 75_000
"""Of the GloVe vocabulary, this many words are encoded by MiniLM too, and all given names."""


SEEDS = (0,)
NEUTRAL_SHARE = 0.67
"""Of the shipped model: see "How settings were chosen" on the page."""
SHARES = (0.55, 0.63, NEUTRAL_SHARE, 0.72, 0.78, 0.85)
NOBODY = 0.35
"""Where women and men are named alike, no class is as probable as this."""
UNSEEN = Path(__file__).parents[1] / "tests" / "queries" / "unseen.toml"
KEPT = Path(__file__).parents[1] / "build" / "query-gender"
HAND_CHECKED = Path(__file__).parent / "data" / "wiki-test-query-genders.tsv"
SAMPLE = 200


def query_gender(data: Path) -> dict[str, Any]:
    """All classifiers but the transformer: five folds, beside the published numbers; lists never learned."""
    queries = read_labelled(data / "data" / "query-gender" / "annotated.tsv")
    others, makers = more(data), _makers(data)
    found = {
        "queries": {"labelled": len(queries.texts), "left out": queries.left_out, **others.describe()},
        "published": {name: list(row) for name, row in PUBLISHED.items()},
        **{name: crossvalidated(name, make, queries).to_dict() for name, make in makers.items()},
        "never learned": checks(load_classifier("static"), data),
        "fresh": fresh(data),
        "other shares": other_shares(load_classifier("static"), queries, data),
        "occupations in the annotated queries": occupations_annotated(queries.texts, queries.labels),
        "words of the published list": gendered_words_alone(),
    }
    fill("query-gender.md", page(found))
    return found


def _makers(data: Path) -> dict[str, Callable[[], Classifier]]:
    vectors, others, encoder = training_vectors(data), more(data), KeptEncoder()
    return {
        "static": lambda: StaticClassifier(
            StaticSettings(neutral_share=NEUTRAL_SHARE), vectors=vectors, more=others, encoder=encoder
        ),
        "lexicon": LexiconClassifier,
        "svm": lambda: SvmClassifier(vectors=vectors[:1]),
    }


class KeptEncoder(Encoder):
    """What has been encoded is kept in build/ and found there again: it takes minutes."""

    path = KEPT / "encoded.npz"

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if not self.known and self.path.exists():
            with np.load(self.path) as kept:
                self.known = dict(zip(kept["texts"].tolist(), kept["rows"], strict=True))
        before = len(self.known)
        found = super().__call__(texts)
        if len(self.known) > before:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self.path, texts=np.array(list(self.known)), rows=np.array(list(self.known.values())))
        return found


def crossvalidated(name: str, make: Callable[[], Classifier], queries: Labelled) -> CrossValidation:
    """As :func:`crossvalidate` with seed 0, a fold at a time: what is kept in build/ is not made again."""
    ordered = sorted(zip(queries.texts, queries.labels, strict=True))
    truth = label_codes([label for _, label in ordered])
    part = stratified_folds(truth, 5, SEEDS[0])
    probabilities, doubt, right = np.empty((len(truth), len(LABELS))), np.empty(len(truth)), []
    for fold in range(5):
        path, outside = KEPT / f"{name}-{fold}.npz", np.flatnonzero(part == fold)
        if not path.exists():
            inside = np.flatnonzero(part != fold).tolist()
            texts, labels = zip(*(ordered[i] for i in inside), strict=True)
            model = make().fit(texts, labels, seed=SEEDS[0])
            KEPT.mkdir(parents=True, exist_ok=True)
            asked = model.predict_proba([ordered[i][0] for i in outside.tolist()])
            np.savez(path, probabilities=asked, doubt=model.abstains_below)
        with np.load(path) as kept:
            probabilities[outside], doubt[outside] = kept["probabilities"], kept["doubt"]
        right.append(float((decide(probabilities[outside], doubt[outside]) == truth[outside]).mean()))
    return summary(truth, [probabilities], [doubt], right, 5, SEEDS)


def accuracies(rows: Sequence[Sequence[str]], published: dict[str, Sequence[float]]) -> str:
    """A table of classifiers: these rows, and the published ones below them."""
    headings = [
        "classifier",
        "accuracy",
        "labelled",
        *(f"F1 {label}" for label in LABELS),
        "calibration error",
    ]
    below = [
        [f"{name}, published", f"{accuracy:.3f}", "", *(f"{score:.3f}" for score in scores), ""]
        for name, (accuracy, *scores) in published.items()
    ]
    return table(headings, [*rows, *below])


def page(found: dict[str, Any]) -> str:
    """What the page says in numbers."""
    rows = []
    for name in ("static", "lexicon", "svm"):
        of = found[name]
        right = of["accuracy"]
        value = f"**{right['value']:.3f}** {interval(right['low'], right['high'], '.3f')}"
        scores = [f"{of['f1'][label]:.3f}" for label in LABELS]
        rows.append([f"**{name}**", value, f"{of['coverage']:.1%}", *scores, f"{of['ece']:.3f}"])
    never = dict(found["never learned"])
    wiki = never.pop("wiki's test queries")
    lists = [[name, f"{of['texts']:,}", f"{of['right']:.1%}"] for name, of in never.items()]
    shares = [
        [
            f"**{share}** (shipped)" if float(share) == NEUTRAL_SHARE else share,
            f"{of['accuracy']:.1%}",
            str(of["labelled female or male"]),
            f"{of['precision']:.1%}",
        ]
        for share, of in found["other shares"].items()
    ]
    jobs = found["occupations in the annotated queries"]
    gendered = jobs["labelled"]["female"] + jobs["labelled"]["male"]
    counts = ", ".join(f"{count:,} {label}" for label, count in wiki["labelled"].items())
    sure = interval(wiki["interval"]["low"], wiki["interval"]["high"], ".1%")
    by_label = " and ".join(
        f"{wiki['precision by label'][label]:.1%} of those {label}" for label in LABELS[:2]
    )
    return f"""{accuracies(rows, found["published"])}
**What this number leaves out.** {_POOLED.format(gendered=gendered, queries=jobs["queries"])}

## What it was never shown

{_NEVER_SHOWN}

{table(["what", "texts", "right"], lists)}
Real queries: the {wiki["queries"]:,} test queries of the wiki collection, which people typed into Google. \
The labels: {counts}. Of those labelled female or male, {wiki["judged by hand"]} were read one by one: \
**{wiki["precision"]:.1%} are right** {sure} ({by_label}). {_WRONG}

{paragraph(found["fresh"])}

{_TRADE}

{table(["neutral share", "right on the annotated", "wiki: female or male", "right among these"], shares)}
"""


_POOLED = """The annotated queries were pooled because their results lean. Half of them are gendered; in a \
query log perhaps one in seven is. And some annotators followed a stereotype: of {queries} annotated \
queries that contain an occupation of our lists and name nobody, {gendered} are labelled female or male. A \
classifier that follows the rule above is marked wrong there. What is lost to stereotypes is not accuracy."""
_NEVER_SHOWN = """Jobs and sentences that are never used in training (`tests/queries/unseen.toml`), and \
queries that other people wrote for other purposes. Results are for `static` as shipped; `unknown` counts as \
wrong."""
_WRONG = """Titles of songs and films count as wrong, and so do queries about both women and men. The hand \
labels are in `benchmarks/data/wiki-test-query-genders.tsv` (ids and labels)."""


_TRADE = """**There is a trade-off.** A model told to expect more neutral queries (`--neutral-share`) \
says female or male less often, but is right more often when it does, on the whole:"""


def checks(model: Classifier, data: Path) -> dict[str, Any]:
    """Shares that got the right label on lists that no training touches; `unknown` is wrong."""
    unseen = tomllib.loads(UNSEEN.read_text())
    jobs, sentences, told = unseen["occupations"], unseen["sentences"], unseen["words"]
    learned = {word for job in plain_queries()["jobs"] for word in job.split()}
    new = [job for job in jobs if learned.isdisjoint(job.split())]
    variants = pl.read_csv(data / "data" / "query-variants" / "triples.tsv", separator="\t", quote_char=None)
    images = _column(data / "data" / "image-search" / "targets.tsv", "query")
    folder = data / "data" / "fair-queries"
    fair = _column(folder / "msmarco-dev.tsv", "Query") + _column(folder / "trec-dl19.tsv", "Query")
    squad = _texts(data / "data" / "squad" / "queries.test.tsv")
    plain = [text for text in squad if names_nobody(clean(text))]
    questions = [
        line.split("\t")[1] for line in (data / "data/genderbias-qa/queries.tsv").read_text().splitlines()
    ]
    neutral = {
        "300 occupations in 6 sentences": [s.format(x=job) for job in jobs for s in sentences],
        f"{len(new)} of these occupations, no word of which was learned": [
            s.format(x=job) for job in new for s in sentences
        ],
        "33 occupations of Kay et al. in 6 sentences": [s.format(x=job) for job in images for s in sentences],
        "long texts of passages, 12 to 64 words": pieces_held_out(data, 1000),
        "five questions in a row (squad)": [" ".join(plain[i : i + 5]) for i in range(0, 2000, 5)],
        "questions that name no gender (Kim et al.)": questions,
        "fairness-sensitive queries (Rekabsaz et al.)": fair,
        "queries without a gender (Kopeinik et al.)": variants["neutral"].to_list(),
    }
    gendered = {
        f"{gender}, 300 occupations in 6 sentences": (
            [s.format(x=job, **told[gender]) for job in jobs for s in unseen["told"]],
            gender,
        )
        for gender in told
    }
    gendered |= {
        f"{gender} variants (Kopeinik et al.)": (variants[gender].to_list(), gender) for gender in told
    }
    found = {name: _right(model, texts, "neutral") for name, texts in neutral.items()}
    found |= {name: _right(model, texts, label) for name, (texts, label) in gendered.items()}
    return found | {"wiki's test queries": wiki_sample(model, data)}


def _texts(path: Path) -> list[str]:
    return [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()]


def _column(path: Path, name: str) -> list[str]:
    table = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    return [text for text in table[name].to_list() if text]


def _right(model: Classifier, texts: list[str], label: str) -> dict[str, Any]:
    chosen = _chosen(model, texts)
    counts = {name: int((chosen == code).sum()) for code, name in enumerate((*LABELS, UNKNOWN))}
    return {"texts": len(texts), "right": counts[label] / len(texts), "labelled": counts}


def _chosen(model: Classifier, texts: list[str]) -> npt.NDArray[np.int64]:
    return decide(model.predict_proba(texts), model.abstains_below)


def wiki_sample(model: Classifier, data: Path, *, seed: int = 90210) -> dict[str, Any]:
    """Of wiki's test queries, how many get which label; precision of 200 labelled female or male, by hand.

    The labels given by hand (ids and labels only) are in data/wiki-test-query-genders.tsv.
    """
    rows = [line.split("\t") for line in (data / "data/wiki/queries.test.tsv").read_text().splitlines()]
    texts = [text for _, text in rows]
    seen = seen_in_training(model, texts)
    chosen = _chosen(model, texts)
    gendered = [i for i in np.flatnonzero(chosen < 2).tolist() if not seen[i]]
    drawn = random.Random(seed).sample(gendered, min(SAMPLE, len(gendered)))
    labels = _hand_checked()
    judged = [i for i in drawn if rows[i][0] in labels]
    right = [labels[rows[i][0]] == LABELS[chosen[i]] for i in judged]
    return {
        "queries": len(texts),
        "labelled": {name: int((chosen == code).sum()) for code, name in enumerate((*LABELS, UNKNOWN))},
        "also among the training queries": int(seen.sum()),
        "drawn": len(drawn),
        "judged by hand": len(judged),
        "precision": _precision(right),
        "interval": asdict(mean_interval(np.array(right, float))) if right else None,
        "precision by label": {
            name: _precision([labels[rows[i][0]] == name for i in judged if LABELS[chosen[i]] == name])
            for name in LABELS[:2]
        },
    }


def other_shares(model: Classifier, queries: Labelled, data: Path) -> dict[str, Any]:
    """What another share of neutral queries would do to both: accuracy of five folds, precision on wiki."""
    found = crossvalidated("static", _makers(data)["static"], queries)
    truth = label_codes([label for _, label in sorted(zip(queries.texts, queries.labels, strict=True))])
    rows = [line.split("\t") for line in (data / "data/wiki/queries.test.tsv").read_text().splitlines()]
    asked, labels = model.predict_proba([text for _, text in rows]), _hand_checked()
    table = {}
    for share in SHARES:
        chosen = _at_share(asked, share, model.abstains_below)
        gendered = np.flatnonzero(chosen < 2).tolist()
        judged = [i for i in gendered if rows[i][0] in labels]
        folds = _at_share(found.probabilities[0], share, model.abstains_below)
        table[f"{share:.2f}"] = {
            "accuracy": float((folds == truth).mean()),
            "labelled female or male": len(gendered),
            "judged by hand": len(judged),
            "precision": _precision([labels[rows[i][0]] == LABELS[chosen[i]] for i in judged]),
        }
    return table


def _at_share(asked: Probabilities, share: float, below: float) -> npt.NDArray[np.int64]:
    """Labels as they would be for another share; women and men alike stay without one."""
    odds = share / (1 - share) / (NEUTRAL_SHARE / (1 - NEUTRAL_SHARE))
    moved = asked * np.where(np.arange(len(LABELS)) == LABELS.index("neutral"), odds, 1.0)
    chosen = decide(moved / moved.sum(1, keepdims=True), below)
    return np.where(asked.max(1) < NOBODY, len(LABELS), chosen)


def _precision(right: list[bool]) -> float | None:
    return sum(right) / len(right) if right else None


def _hand_checked() -> dict[str, str]:
    if not HAND_CHECKED.exists():
        return {}
    with HAND_CHECKED.open(newline="") as file:
        return {row["query_id"]: row["label"] for row in csv.DictReader(file, delimiter="\t")}


def occupations_annotated(texts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Annotated queries with an occupation of our lists and nobody named: how people labelled them."""
    jobs = {*tomllib.loads(UNSEEN.read_text())["occupations"], *plain_queries()["jobs"]}
    words = re.compile(r"\b(" + "|".join(sorted(map(re.escape, jobs), key=len, reverse=True)) + r")s?\b")
    found = [
        label
        for text, label in zip(texts, labels, strict=True)
        if words.search(clean(text)) and names_nobody(clean(text))
    ]
    return {"queries": len(found), "labelled": {label: found.count(label) for label in LABELS}}


def training_vectors(data: Path) -> tuple[Vectors, ...]:
    """GloVe, and its words as MiniLM encodes them; EVENRANK_MINILM_WORDS may name a file of the latter."""
    import os

    from evenrank.queries.words import census_names

    glove = load(data / "data" / "vectors" / "glove-100d.bin.gz")
    kept = os.environ.get("EVENRANK_MINILM_WORDS")
    if kept and Path(kept).exists():
        return glove, load(kept)
    given = [name for name, facts in census_names().items() if facts.given]
    return glove, distil([*glove.words[:COMMON], *given])


def gendered_words_alone() -> dict[str, int]:
    """How many words of the published list the shipped model labels as the list does."""
    model = load_classifier("static")
    groups = lexicon("rekabsaz2020").groups
    return {
        group: int((model.predict_proba(words).argmax(1) == LABELS.index(group)).sum())
        for group, words in groups.items()
    }


if __name__ == "__main__":
    fill(
        "query-gender.md", page(json.loads((DOCS / "evidence" / "query-gender.json").read_text())["results"])
    )
