"""A stretch of a collection, turned into postings in memory and put aside on disk.

Words are gathered block by block. When there are enough, the distinct ones are analysed, and the stretch is
written as a forward and an inverted index of its own. :func:`merge` makes one out of all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from evenrank.parallel import thread_count
from evenrank.rankers.index.analysis import Analyzer
from evenrank.rankers.index.storage import ArrayFile
from evenrank.rankers.index.tokenizing import Vocabulary, Words, decoded
from evenrank.text.hashing import FREE, compiled, word_slot

TOKENS = 1 << 25
"""In a run. Its arrays take some 16 bytes for each."""

_CHUNK = 1 << 24  # postings that are held at a time
_DROPPED = -1


class Spilled(NamedTuple):
    """A run on disk: where, and how many documents come before it and in it."""

    folder: Path
    first: int
    documents: int


class Gathering:
    """The words of the documents since the last spill."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.tokens = 0
        self._numbers: list[np.ndarray] = []
        self._bounds: list[np.ndarray] = [np.zeros(1, np.int64)]
        self._words = Vocabulary(1 << 16)

    def add(self, words: Words) -> None:
        """The words of the next block of documents."""
        places = np.empty(len(words), np.int32)
        own = self._words
        own.reserve(len(words), len(words.pool))
        own.distinct = _absorb(
            words.hashes, words.offsets, words.pool, places,
            own.distinct, own.slots, own.hashes, own.offsets, own.pool,
        )  # fmt: skip
        _renumber(words.numbers, places)
        self._numbers.append(words.numbers)
        self._bounds.append(words.bounds[1:] + self.tokens)
        self.tokens += len(words.numbers)

    def spill(self, folder: Path, analyzer: Analyzer) -> Spilled:
        """Write the run to a folder of its own."""
        folder.mkdir()
        bounds = np.concatenate(self._bounds)
        numbers = np.concatenate(self._numbers) if self._numbers else np.empty(0, np.int32)
        self._numbers, self._bounds = [], []
        terms, places = _terms(
            decoded(self._words.offsets[: self._words.distinct + 1], self._words.pool), analyzer
        )
        documents = len(bounds) - 1
        kept, lengths = _counted(numbers, bounds, places)
        starts = np.zeros(documents + 1, np.int64)
        np.cumsum(kept, out=starts[1:])
        forward, counts = _packed(numbers, bounds, starts)
        del numbers
        offsets, docs, times = _inverted(forward, counts, starts, len(terms), self.first)
        frequency = _summed(times, offsets)
        terms.to_frame("term").write_ipc(folder / "terms.arrow")
        parts = {
            "lengths": lengths.astype(np.uint32), "kept": kept.astype(np.uint32),
            "forward-terms": forward, "forward-counts": counts,
            "offsets": offsets, "documents": docs, "counts": times, "frequency": frequency,
        }  # fmt: skip
        for name, values in parts.items():
            np.save(folder / f"{name}.npy", values, allow_pickle=False)
        return Spilled(folder, self.first, documents)


def _terms(words: list[str], analyzer: Analyzer) -> tuple[pl.Series, np.ndarray]:
    """The distinct terms, sorted by their bytes, and the place among them of each word, or _DROPPED."""
    built = pl.Series("term", analyzer.normalized(words), dtype=pl.String)
    terms = built.drop_nulls().unique().sort()
    numbers = pl.DataFrame({"term": terms, "number": np.arange(len(terms), dtype=np.int32)})
    joined = built.to_frame().join(numbers, on="term", how="left", maintain_order="left")
    return terms, joined["number"].fill_null(_DROPPED).to_numpy().astype(np.int32)


@compiled
def _absorb(
    new_hashes: Any, new_offsets: Any, new_pool: Any, places: Any,
    distinct: Any, slots: Any, hashes: Any, offsets: Any, pool: Any,
) -> Any:  # fmt: skip
    """Take the words of a block into the run's; fills `places` with the run's number of each."""
    for word in range(len(new_hashes)):
        first, size = new_offsets[word], new_offsets[word + 1] - new_offsets[word]
        slot = word_slot(slots, hashes, offsets, pool, new_hashes[word], new_pool, first, size)
        if slots[slot] == FREE:
            begin = offsets[distinct]
            for i in range(size):
                pool[begin + i] = new_pool[first + i]
            offsets[distinct + 1] = begin + size
            hashes[distinct] = new_hashes[word]
            slots[slot] = distinct
            distinct += 1
        places[word] = slots[slot]
    return distinct


@compiled
def _renumber(numbers: Any, places: Any) -> None:
    for i in range(len(numbers)):
        numbers[i] = places[numbers[i]]


@njit(nogil=True, cache=True)
def _count_rows(
    numbers: Any, bounds: Any, places: Any, first: Any, last: Any, kept: Any, lengths: Any
) -> None:
    """Sort the terms of each document in place; note how many they are, with repetitions and without."""
    for row in range(first, last):
        begin = at = bounds[row]
        for i in range(begin, bounds[row + 1]):
            term = places[numbers[i]]
            if term >= 0:
                numbers[at] = term
                at += 1
        lengths[row] = at - begin
        if at - begin > 32:
            numbers[begin:at].sort()
        else:
            for i in range(begin + 1, at):
                value, j = numbers[i], i - 1
                while j >= begin and numbers[j] > value:
                    numbers[j + 1] = numbers[j]
                    j -= 1
                numbers[j + 1] = value
        distinct = 0
        for i in range(begin, at):
            if i == begin or numbers[i] != numbers[i - 1]:
                distinct += 1
        kept[row] = distinct
        if at < bounds[row + 1]:
            numbers[at] = -1


def _counted(numbers: np.ndarray, bounds: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct terms and terms of each document; `numbers` then holds its terms, sorted, up to a −1."""
    documents = len(bounds) - 1
    kept, lengths = np.zeros(documents, np.int64), np.zeros(documents, np.int64)
    _in_threads(
        documents, lambda first, last: _count_rows(numbers, bounds, places, first, last, kept, lengths)
    )
    return kept, lengths


@compiled
def _pack_rows(
    numbers: Any, bounds: Any, starts: Any, first: Any, last: Any, terms: Any, counts: Any
) -> None:
    for row in range(first, last):
        at = starts[row] - 1
        previous = np.int64(-1)
        for i in range(bounds[row], bounds[row + 1]):
            term = np.int64(numbers[i])
            if term < 0:
                break
            if term != previous:
                at += 1
                terms[at], counts[at] = term, 1
                previous = term
            else:
                counts[at] += 1


def _packed(numbers: np.ndarray, bounds: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The forward index: the distinct terms of each document, and how often it has each."""
    terms, counts = np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.uint32)
    _in_threads(
        len(bounds) - 1, lambda first, last: _pack_rows(numbers, bounds, starts, first, last, terms, counts)
    )
    return terms, counts.astype(smallest(int(counts.max(initial=0))))


@njit(nogil=True, cache=True)
def _inverted(terms: Any, counts: Any, starts: Any, size: Any, base: Any) -> Any:
    """The inverted index: the documents of each term, in order."""
    offsets = np.zeros(size + 1, np.int64)
    for i in range(len(terms)):
        offsets[terms[i] + 1] += 1
    for term in range(size):
        offsets[term + 1] += offsets[term]
    places = offsets[:-1].copy()
    docs, times = np.empty(len(terms), np.uint32), np.empty(len(terms), counts.dtype)
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            place = places[terms[i]]
            docs[place], times[place] = base + row, counts[i]
            places[terms[i]] = place + 1
    return offsets, docs, times


@njit(nogil=True, cache=True)
def _summed(counts: Any, offsets: Any) -> Any:
    sums = np.zeros(len(offsets) - 1, np.int64)
    for row in range(len(sums)):
        for i in range(offsets[row], offsets[row + 1]):
            sums[row] += counts[i]
    return sums


def smallest(largest: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds counts up to this."""
    return np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32


def _in_threads(rows: int, work: Any) -> None:
    """Give each thread a stretch of rows."""
    threads = thread_count()
    edges = np.linspace(0, rows, threads + 1).astype(np.int64).tolist()
    if rows < 1 << 12:
        work(0, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


def merge(runs: list[Spilled], folder: Path) -> list[ArrayFile]:
    """One index out of the runs, which follow each other in the collection.

    The terms are numbered anew; the postings of each term stand one run behind the other.
    """
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
    built = [documents, counts]
    for name, values, dtype in (
        ("posting-offsets", offsets, np.int64),
        ("document-frequency", frequency, np.uint32),
        ("collection-frequency", total, np.int64),
    ):
        file = ArrayFile(folder, name, dtype)
        file.append(values)
        built.append(file)
    return built


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
