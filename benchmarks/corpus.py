"""Real text to measure on: Wikipedia sentences from EVENRANK_TEST_DATA, else the demo passages."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import evenrank as er
from evenrank import demo


def shared() -> Path | None:
    """The folder of test data, if there is one."""
    folder = Path(os.environ.get("EVENRANK_TEST_DATA") or Path(__file__).parents[2] / "shared")
    return folder if (folder / "data").is_dir() else None


def passages(size: int) -> list[str]:
    """Passages of some 350 characters, as in MS MARCO, `size` characters in all, repeating as needed."""
    folder = shared()
    if folder is None:
        texts = er.load(demo.folder()).docs.frame()["text"].to_list()
    else:
        sentences = er.load(folder / "data" / "squad", split="test").docs.frame()["text"].to_list()
        texts = [f"{first} {second}" for first, second in pairwise(sentences)]
    total = sum(map(len, texts))
    return (texts * (size // total + 1))[: size * len(texts) // total]


def write_tsv(path: Path, size: int) -> None:
    """A collection of `size` bytes as doc_id<TAB>text."""
    texts = passages(min(size, 20_000_000))
    with path.open("w") as file:
        written = number = 0
        while written < size:
            lines = "".join(f"{number + i}\t{text}\n" for i, text in enumerate(texts))
            file.write(lines)
            written, number = written + len(lines), number + len(texts)


def recombined(documents: int, *, seed: int = 0) -> list[str]:
    """Passages of two or three real sentences each, drawn at random: a collection as large as wanted."""
    import numpy as np

    folder = shared()
    if folder is None:
        sentences = er.load(demo.folder()).docs.frame()["text"].to_list()
    else:
        sentences = er.load(folder / "data" / "squad", split="test").docs.frame()["text"].to_list()
    drawn = np.random.default_rng(seed).integers(len(sentences), size=(documents, 3)).tolist()
    return [
        f"{sentences[a]} {sentences[b]}" if a % 2 else f"{sentences[a]} {sentences[b]} {sentences[c]}"
        for a, b, c in drawn
    ]
