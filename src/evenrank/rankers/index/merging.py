"""One index out of the runs: the terms numbered anew, the postings of each term one run behind the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numba import njit

from evenrank.rankers.index.postings import Spilled
from evenrank.rankers.index.storage import ArrayFile

_CHUNK = 1 << 24  # postings that are held at a time


def merge(runs: list[Spilled], folder: Path) -> list[ArrayFile]:
    """Write the terms, the postings and the forward index; runs follow each other in the collection."""
    vocabularies = [pl.read_ipc((run.folder / "terms.arrow").read_bytes())["term"] for run in runs]
    terms = pl.concat(vocabularies).unique().sort() if len(runs) > 1 else vocabularies[0]
    numbers = pl.DataFrame({"term": terms, "number": np.arange(len(terms), dtype=np.uint32)})
    maps = [
        part.to_frame().join(numbers, on="term", how="left", maintain_order="left")["number"].to_numpy()
        for part in vocabularies
    ]
    files = [*write_texts(folder, "terms", "term-offsets", terms)]
    files += _write_postings(runs, maps, len(terms), folder)
    files += _write_forward(runs, maps, folder)
    return files


def write_texts(folder: Path, name: str, offsets_name: str, texts: pl.Series) -> tuple[ArrayFile, ArrayFile]:
    """Texts one behind the other, and where each begins."""
    content, offsets = ArrayFile(folder, name, np.uint8), ArrayFile(folder, offsets_name, np.int64)
    total = 0
    offsets.append(np.zeros(1, np.int64))
    for first in range(0, len(texts), 1 << 20):
        array = texts.slice(first, 1 << 20).to_arrow(compat_level=pl.CompatLevel.oldest())
        _, bounds, data = array.buffers()
        ends = np.frombuffer(bounds, np.int64)[array.offset : array.offset + len(array) + 1]
        if data is not None and ends[-1] > ends[0]:
            content.append(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]])
        offsets.append(ends[1:] - ends[0] + total)
        total += int(ends[-1] - ends[0])
    return content, offsets


def _load(run: Spilled, name: str) -> np.ndarray:
    return np.asarray(np.load(run.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))


def _write_postings(runs: list[Spilled], maps: list[np.ndarray], terms: int, folder: Path) -> list[ArrayFile]:
    """The postings, by stretches of terms that fit in memory."""
    frequency, total = np.zeros(terms, np.int64), np.zeros(terms, np.int64)
    for run, places in zip(runs, maps, strict=True):
        frequency[places] += np.diff(_load(run, "offsets"))
        total[places] += _load(run, "frequency")
    offsets = np.zeros(terms + 1, np.int64)
    np.cumsum(frequency, out=offsets[1:])
    kind = np.result_type(*(_load(run, "counts").dtype for run in runs))
    documents = ArrayFile(folder, "posting-documents", np.uint32)
    counts = ArrayFile(folder, "posting-counts", kind)
    parts = [[_load(run, name) for name in ("offsets", "documents", "counts")] for run in runs]
    first = 0
    while first < terms:
        last = int(np.searchsorted(offsets, offsets[first] + _CHUNK, side="right")) - 1
        last = min(max(last, first + 1), terms)
        size = int(offsets[last] - offsets[first])
        docs, times = np.empty(size, np.uint32), np.empty(size, kind)
        places = offsets[first:last] - offsets[first]
        for (run_offsets, run_docs, run_counts), numbers in zip(parts, maps, strict=True):
            begin, end = np.searchsorted(numbers, [first, last]).tolist()
            _copy_postings(run_offsets, run_docs, run_counts, numbers, begin, end, first, places, docs, times)
        documents.append(docs)
        counts.append(times)
        first = last
    made = [documents, counts]
    for name, values, dtype in (
        ("posting-offsets", offsets, np.int64),
        ("document-frequency", frequency, np.uint32),
        ("collection-frequency", total, np.int64),
    ):
        file = ArrayFile(folder, name, dtype)
        file.append(values)
        made.append(file)
    return made


@njit(nogil=True, cache=True)
def _copy_postings(
    offsets: Any, docs: Any, counts: Any, numbers: Any, begin: Any, end: Any,
    first: Any, places: Any, out_docs: Any, out_counts: Any,
) -> None:  # fmt: skip
    """Append the postings of a run's terms begin:end; `places` says where, and moves on."""
    for term in range(begin, end):
        target = numbers[term] - first
        place, count = places[target], offsets[term + 1] - offsets[term]
        source = offsets[term]
        for i in range(count):
            out_docs[place + i] = docs[source + i]
            out_counts[place + i] = counts[source + i]
        places[target] = place + count


def _write_forward(runs: list[Spilled], maps: list[np.ndarray], folder: Path) -> list[ArrayFile]:
    """The forward index and the lengths. Numbers keep their order, so each document's stay sorted."""
    kind = np.result_type(*(_load(run, "forward-counts").dtype for run in runs))
    offsets = ArrayFile(folder, "forward-offsets", np.int64)
    terms = ArrayFile(folder, "forward-terms", np.uint32)
    counts = ArrayFile(folder, "forward-counts", kind)
    lengths = ArrayFile(folder, "lengths", np.uint32)
    offsets.append(np.zeros(1, np.int64))
    total = 0
    for run, places in zip(runs, maps, strict=True):
        kept = _load(run, "kept").astype(np.int64)
        offsets.append(total + np.cumsum(kept))
        total += int(kept.sum())
        lengths.append(_load(run, "lengths"))
        run_terms, run_counts = _load(run, "forward-terms"), _load(run, "forward-counts")
        for first in range(0, len(run_terms), _CHUNK):
            terms.append(places[run_terms[first : first + _CHUNK]])
            counts.append(run_counts[first : first + _CHUNK])
    return [offsets, terms, counts, lengths]
