"""What the shipped classifier learns from beside the annotated queries: queries and texts of collections.

`python -m benchmarks.classifier_training FOLDER` writes three files that `evenrank classify-train` takes:
also.tsv (`--also`), queries and texts with labels, neutral.txt (`--neutral`), texts that name nobody, and
unlabelled.txt (`--unlabelled`), queries like the annotated ones, of whose published labels nothing is used.
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
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.corpus import shared
from evenrank.queries.classifier import LABELS, clean
from evenrank.queries.samples import More, Samples, names_nobody
from evenrank.queries.words import gendered_words

HAND_LABELS = Path(__file__).parent / "data" / "wiki-train-query-genders.tsv"
_QUERIES = {"wiki": 2400, "squad": 400}
_PASSAGES, _OF_EACH_GENDER = 600, 150
_EVERY = 17  # of the passages: neighbours are of one article
_WORD = re.compile(r"[^\W_]+")


def more(data: Path) -> More:
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
    return More(also, tuple(neutral), unlabelled(data))


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
    """Long texts that name nobody, of passages that :func:`more` did not come to."""
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


def main(arguments: list[str]) -> int:
    data = shared()
    if data is None or len(arguments) != 1:
        print("set EVENRANK_TEST_DATA, and name a folder", file=sys.stderr)
        return 2
    folder, found = Path(arguments[0]), more(data)
    folder.mkdir(parents=True, exist_ok=True)
    rows = enumerate(zip(*found.labelled, strict=True))
    also = "".join(f"{number}\t{text}\t{label}\n" for number, (text, label) in rows)
    (folder / "also.tsv").write_text(also, encoding="utf-8")
    (folder / "neutral.txt").write_text("\n".join(found.neutral) + "\n", encoding="utf-8")
    (folder / "unlabelled.txt").write_text("\n".join(found.unlabelled) + "\n", encoding="utf-8")
    counts = ", ".join(f"{number:,} {what}" for what, number in found.describe().items())
    print(f"{counts} in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
