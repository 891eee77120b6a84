"""The embedded index: the terms and documents of a collection, on disk, mapped into memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from evenrank.data.files import check_names
from evenrank.errors import InputError
from evenrank.rankers.index import storage
from evenrank.rankers.index.analysis import Analyzer
from evenrank.rankers.index.storage import StoredDocs

_CACHED = 1 << 16


class Index:
    """An index, open for reading. Any number of threads may use it.

    Terms and documents go by number: terms in the order of their bytes, documents in that of the collection.

    Attributes
    ----------
    path
        The folder it lies in.
    analyzer
        How its texts became terms; queries have to go the same way.
    documents
        How many there are.
    tokens
        How many terms they have in all, repetitions counted.
    lengths
        How many terms each document has, uint32.
    document_frequency
        In how many documents each term occurs.
    collection_frequency
        How often each term occurs in all.
    fingerprint
        Equal for indexes of the same documents, analysed the same way.
    """

    def __init__(
        self, path: str | os.PathLike[str], manifest: dict[str, Any], *, verify: bool = False
    ) -> None:
        self.path = Path(path)
        self.provenance: dict[str, Any] = manifest["provenance"]
        self.fingerprint: str = manifest["fingerprint"]
        self.documents: int = manifest["documents"]
        self.tokens: int = manifest["tokens"]
        try:
            self.analyzer = Analyzer.of(self.provenance["analyzer"])
        except InputError as error:
            raise InputError(error.message, path=path) from None
        self._folder = self.path / manifest["folder"]
        self._entries = manifest["files"]
        check_names([f"{manifest['folder']}/{name}" for name in self._entries], path, folder=path)
        self.arrays = storage.Arrays(self._folder, self._entries)
        if verify:
            self.verify()
        self.lengths: np.ndarray = self.arrays["lengths"]
        self.document_frequency: np.ndarray = self.arrays["document-frequency"]
        self.collection_frequency: np.ndarray = self.arrays["collection-frequency"]
        self._numbers: dict[str, int] = {}
        self._derived: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Index:
        """Open an index; one that is damaged or half-built is an error.

        Parameters
        ----------
        path
            Its folder.
        verify
            Compare every byte with what was written now, which takes as long as reading it. Without this an
            index opens in milliseconds, and each of its files is compared when it is first used.
        """
        if isinstance(path, Index):
            if verify:
                path.verify()
            return path
        manifest = storage.read_manifest(path)
        try:
            return cls(path, manifest, verify=verify)
        except KeyError as error:
            raise storage.damaged(Path(path) / storage.MANIFEST) from error
        except InputError:
            again = storage.read_manifest(path)  # it may have been replaced between two steps
            if again["folder"] == manifest["folder"]:
                raise
            return cls(path, again, verify=verify)

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}): {self.documents:,} documents, {self.terms:,} terms"

    def __len__(self) -> int:
        return self.documents

    @property
    def terms(self) -> int:
        """How many distinct terms there are."""
        return len(self.document_frequency)

    def verify(self) -> None:
        """Read all files and raise InputError if one is not what was written."""
        self.arrays.verify()

    def describe(self) -> dict[str, Any]:
        """What was indexed and how, for the provenance of runs."""
        return {**self.provenance, "fingerprint": self.fingerprint, "documents": self.documents}

    def term(self, number: int) -> str:
        """The term of a number."""
        if not 0 <= number < self.terms:
            raise IndexError(f"there is no term {number}; the last one is {self.terms - 1}")
        offsets = self.arrays["term-offsets"]
        return self.arrays["terms"][offsets[number] : offsets[number + 1]].tobytes().decode()

    def number(self, term: str) -> int:
        """The number of a term, as the analyzer made it; −1 if no document has it."""
        known = self._numbers.get(term)
        if known is None:
            if len(self._numbers) >= _CACHED:
                self._numbers = {}
            known = self._numbers[term] = int(self.term_numbers([term])[0])
        return known

    def term_numbers(self, terms: Sequence[str]) -> np.ndarray:
        """The numbers of many terms at once, int64; −1 where no document has it."""
        arrays = self.arrays
        return _search(terms, arrays["terms"], arrays["term-offsets"], None)

    def postings(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The documents that have a term, in order, and how often each has it."""
        if not 0 <= number < self.terms:
            raise IndexError(f"there is no term {number}; the last one is {self.terms - 1}")
        bounds = self.arrays["posting-offsets"]
        span = slice(int(bounds[number]), int(bounds[number + 1]))
        return self.arrays["posting-documents"][span], self.arrays["posting-counts"][span].astype(np.uint32)

    def forward(self, document: int) -> tuple[np.ndarray, np.ndarray]:
        """The terms that a document has, in order of their numbers, and how often."""
        if not 0 <= document < self.documents:
            raise IndexError(f"there is no document {document}; the last one is {self.documents - 1}")
        bounds = self.arrays["forward-offsets"]
        span = slice(int(bounds[document]), int(bounds[document + 1]))
        return self.arrays["forward-terms"][span], self.arrays["forward-counts"][span].astype(np.uint32)

    def doc_ids(self, numbers: Any) -> list[str]:
        """The ids of documents, by number."""
        names: list[str] = self.id_array(numbers).to_pylist()
        return names

    def id_array(self, numbers: Any) -> pa.LargeStringArray:
        """The ids of documents, by number, as an Arrow array."""
        numbers = np.asarray(numbers, np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.documents):
            raise IndexError(f"documents have numbers from 0 to {self.documents - 1}")
        return self._ids.take(pa.array(numbers))

    def numbers(self, doc_ids: Iterable[str]) -> np.ndarray:
        """The numbers of documents, by id, int64; −1 where there is no such document."""
        arrays = self.arrays
        return _search(list(doc_ids), arrays["ids"], arrays["id-offsets"], arrays["id-order"])

    @property
    def docs(self) -> StoredDocs:
        """The documents, from the stored text."""
        if "text" not in self.arrays:
            raise InputError("this index holds no text; build it with text=True", path=self.path)
        return StoredDocs(self, self.arrays, self.provenance["input"])

    @cached_property
    def _ids(self) -> pa.LargeStringArray:
        offsets, content = self.arrays["id-offsets"], self.arrays["ids"]
        ids = pa.LargeStringArray.from_buffers(self.documents, pa.py_buffer(offsets), pa.py_buffer(content))
        try:
            ids.validate(full=True)  # Arrow would follow a damaged offset anywhere
        except pa.ArrowInvalid:
            raise storage.damaged(self._folder / "ids") from None
        return ids

    def derived(self, key: Any, make: Any) -> Any:
        """Something computed from the whole index, once; models keep the norms of documents here."""
        with self._lock:
            if key not in self._derived:
                if len(self._derived) >= 8:  # a sweep over parameters must not fill the memory
                    self._derived.clear()
                self._derived[key] = make()
            return self._derived[key]


def _search(
    wanted: Sequence[str], pool: np.ndarray, offsets: np.ndarray, order: np.ndarray | None
) -> np.ndarray:
    """Where each text stands among sorted ones, by halving; −1 if it is not there."""
    if not len(wanted):
        return np.empty(0, np.int64)
    array = pa.array(wanted, pa.large_string()) if not isinstance(wanted, pa.Array) else wanted
    _, bounds, data = array.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    values = np.empty(len(array), np.int64)
    none = np.empty(0, np.uint32)
    _find(content, np.frombuffer(bounds, np.int64), pool, offsets, none if order is None else order, values)
    return values


def as_index(where: Any, *, verify: bool = False) -> Index:
    """An index from an index or the path of one; see :meth:`Index.open`."""
    return Index.open(where, verify=verify)


@njit(nogil=True, cache=True)
def _compare(left: Any, first: Any, last: Any, right: Any, begin: Any, end: Any) -> Any:
    """Below, at or above zero as left[first:last] is less than, equal to or greater than right[begin:end]."""
    for i in range(min(last - first, end - begin)):
        a, b = left[first + i], right[begin + i]
        if a != b:
            return np.int64(a) - np.int64(b)
    return (last - first) - (end - begin)


@njit(nogil=True, cache=True)
def _find(wanted: Any, bounds: Any, pool: Any, offsets: Any, order: Any, found: Any) -> None:
    """Fill `found` with the number of each wanted text, or −1.

    Text number n is pool[offsets[n]:offsets[n + 1]]; `order` lists the numbers as their texts are sorted;
    where it is empty the numbers are so sorted themselves.
    """
    count, last = len(offsets) - 1, len(pool)
    for row in range(len(found)):
        low, high = 0, count
        found[row] = -1
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else np.int64(middle)
            if number >= count:
                break  # a damaged file
            begin, end = offsets[number], offsets[number + 1]
            if not 0 <= begin <= end <= last:
                break
            order_of = _compare(wanted, bounds[row], bounds[row + 1], pool, begin, end)
            if order_of == 0:
                found[row] = number
                break
            if order_of < 0:
                high = middle
            else:
                low = middle + 1
