"""Train the query classifier that comes with the package.

`python -m experiments.query_classifier.shipped` trains it on the annotated queries and on queries and texts
of other collections, and writes src/evenrank/queries/data/static. It needs the test data
(EVENRANK_TEST_DATA), scikit-learn, and MiniLM, which guesses the labels of queries like the annotated ones
that have none.

Only training queries and passages are read, never the test queries. The labels of wiki's training queries
were given by hand (data/wiki-train-query-genders.tsv holds ids and labels). `other` is a query about women
and men, or about neither though it holds a gendered word (*twins of different fathers*): it is learned as
neutral, because it is about no woman and about no man.
"""

from __future__ import annotations

import csv
import gzip
import random
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.corpus import shared

from evenrank.queries.features import clean
from evenrank.queries.model import LABELS, StaticClassifier
from evenrank.queries.words import data as shipped
from evenrank.queries.words import gendered_words
from experiments.query_classifier.samples import Samples, names_nobody
from experiments.query_classifier.training import read_labelled, save, train_classifier

_ROOT = Path(__file__).parents[2]
HAND_LABELS = _ROOT / "benchmarks" / "data" / "wiki-train-query-genders.tsv"
_KEPT = _ROOT / "build" / "query-gender" / "encoded.npz"
_QUERIES = {"wiki": 2400, "squad": 400}
_PASSAGES, _OF_EACH_GENDER = 600, 150
_EVERY = 17  # of the passages: neighbours are of one article
_WORD = re.compile(r"[^\W_]+")


class Others(NamedTuple):
    """What is learned beside the annotated queries."""

    labelled: Samples
    neutral: tuple[str, ...]
    unlabelled: tuple[str, ...]


def train(texts: Sequence[str], labels: Sequence[str], data: Path) -> StaticClassifier:
    """Train on these queries and on all others."""
    labelled, neutral, unlabelled = others(data)
    return train_classifier(
        texts,
        labels,
        vectors=[data / "data" / "vectors" / "glove-100d.bin.gz"],
        others=labelled,
        neutral=neutral,
        unlabelled=unlabelled,
        encode=encode,
    )


def encode(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """MiniLM's vectors; each text is encoded once, and kept in build/."""
    known = _kept()
    if new := sorted(set(texts) - known.keys()):
        from evenrank.vectors.encoders import find_model, open_model

        rows = open_model(find_model(None)).encode(new, batch_size=64, normalize_embeddings=True)
        known |= dict(zip(new, rows.astype(np.float32), strict=True))
        _KEPT.parent.mkdir(parents=True, exist_ok=True)
        np.savez(_KEPT, texts=np.array(list(known)), rows=np.array(list(known.values())))
    return np.array([known[text] for text in texts])


@lru_cache(maxsize=1)
def _kept() -> dict[str, npt.NDArray[np.float32]]:
    if not _KEPT.exists():
        return {}
    with np.load(_KEPT) as kept:
        return dict(zip(kept["texts"].tolist(), kept["rows"], strict=True))


@lru_cache(maxsize=1)
def others(data: Path) -> Others:
    """Labelled queries and texts, texts that name nobody, queries without labels; always the same."""
    chosen = random.Random(5)
    labels = hand_labels()
    also, neutral = Samples([], []), []
    for collection, count in _QUERIES.items():
        queries = dict(_rows(data / "data" / collection / "queries.train.tsv"))
        for query_id, text in queries.items():
            if collection == "wiki" and query_id in labels:
                label = labels[query_id]
                also.add(clean(text), label if label in LABELS else "neutral")
        unread = [clean(text) for query_id, text in queries.items() if query_id not in labels]
        nobody = [text for text in unread if names_nobody(text)]
        neutral += chosen.sample(nobody, count)
    pieces = list(islice(_pieces(data, chosen), 6000))
    neutral += [text for text in pieces if names_nobody(text)][:_PASSAGES]
    for gender in ("female", "male"):
        for text in [text for text in pieces if _of_one(text) == gender][:_OF_EACH_GENDER]:
            also.add(text, gender)
    return Others(also, tuple(neutral), unlabelled(data))


def unlabelled(data: Path) -> tuple[str, ...]:
    """The queries that a model of the thesis labelled, without its labels.

    Left out are the annotated ones, which the classifier is measured on, and those of the checks.
    """
    folder = data / "data"
    rows = [line.split("\t") for line in (folder / "query-gender/annotated.tsv").read_text().splitlines()]
    measured = {clean(row[1]) for row in rows}
    for name in ("msmarco-dev.tsv", "trec-dl19.tsv"):
        with (folder / "fair-queries" / name).open(newline="") as file:
            found = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            measured |= {clean(row["Query"] or "") for row in found}
    lines = (folder / "query-gender" / "predicted.tsv").read_text().splitlines()
    return tuple(sorted({clean(line.split("\t")[1]) for line in lines} - measured - {""}))


def hand_labels() -> dict[str, str]:
    """The label of each of wiki's training queries that was looked at."""
    with HAND_LABELS.open(newline="") as file:
        return {row["query_id"]: row["label"] for row in csv.DictReader(file, delimiter="\t")}


def pieces_held_out(data: Path, count: int) -> list[str]:
    """Long texts that name nobody, of passages that others() did not come to."""
    found = (text for text in islice(_pieces(data, random.Random(6)), 7000, None) if names_nobody(text))
    return list(islice(found, count))


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            query_id, text = line.rstrip("\n").split("\t")
            yield query_id, text


def _pieces(data: Path, chosen: random.Random) -> Iterator[str]:
    """Of every few passages 12 to 64 words in a row."""
    with gzip.open(data / "data" / "wiki" / "docs.tsv.gz", "rt", encoding="utf-8") as file:
        for line in islice(file, 0, None, _EVERY):
            words = clean(line.split("\t", 1)[1]).split()
            length = chosen.randint(12, 64)
            start = chosen.randint(0, max(0, len(words) - length))
            yield " ".join(words[start : start + length])


def _of_one(text: str) -> str | None:
    """The gender of a text with at least two gendered words, all of one gender."""
    known = gendered_words()
    found = [known[word] for word in _WORD.findall(text) if word in known]
    return found[0] if len(found) >= 2 and len(set(found)) == 1 else None


def main() -> int:
    data = shared()
    if data is None:
        print("set EVENRANK_TEST_DATA", file=sys.stderr)
        return 2
    queries, left_out = read_labelled(data / "data" / "query-gender" / "annotated.tsv")
    model = train(*queries, data)
    save(model, shipped() / "static")
    print(f"{len(queries.texts):,} annotated queries learned, {left_out} left out; {model.facts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
