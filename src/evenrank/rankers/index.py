"""The embedded index: the terms and documents of a collection, on disk, mapped into memory.

An index is a folder of arrays with a manifest, ``index.json``, that has a checksum of itself and of each
array. An array is compared with its checksum when it is first used, so an index opens in milliseconds.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.docs import Docs
from evenrank.data.files import check_names, checksum, reading, restored
from evenrank.data.schema import Block
from evenrank.errors import InputError
from evenrank.rankers.analysis import Analyzer

FORMAT = 4
"""Of the files; an index of another format is refused."""

MANIFEST = "index.json"
_DERIVED = 8  # values computed from a whole index that are kept; a sweep must not fill the memory


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
    arrays
        The files of the index by name.
    fingerprint
        Equal for indexes of the same documents, analyzed the same way.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.provenance: dict[str, Any] = manifest["provenance"]
        self.fingerprint: str = manifest["fingerprint"]
        self.documents: int = manifest["documents"]
        self.tokens: int = manifest["tokens"]
        analyzer = self.provenance["analyzer"]
        self.analyzer = Analyzer(stemmer=analyzer["stemmer"], stop_words=analyzer["stop_words"])
        check_names(manifest["files"], path, folder=path)
        self.arrays = Arrays(self.path, manifest["files"])
        self._derived: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Any) -> Index:
        """Open the index in a folder; one that is open already is returned as it is."""
        return path if isinstance(path, Index) else cls(path, read_manifest(path))

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}): {self.documents:,} documents, {self.terms:,} terms"

    def __len__(self) -> int:
        return self.documents

    @property
    def lengths(self) -> np.ndarray:
        """The number of terms of each document, uint32."""
        return self.arrays["lengths"]

    @property
    def document_frequency(self) -> np.ndarray:
        """The number of documents that have each term."""
        return self.arrays["document-frequency"]

    @property
    def collection_frequency(self) -> np.ndarray:
        """The number of occurrences of each term."""
        return self.arrays["collection-frequency"]

    @property
    def terms(self) -> int:
        """The number of distinct terms."""
        return len(self.document_frequency)

    def describe(self) -> dict[str, Any]:
        """What was indexed and how, for the provenance of runs."""
        return {**self.provenance, "fingerprint": self.fingerprint, "documents": self.documents}

    def term(self, number: int) -> str:
        """Return the term of a number."""
        return str(self.vocabulary[number])

    def number(self, term: str) -> int:
        """Return the number of a term, as the analyzer made it; −1 if no document has it."""
        return int(self.term_numbers([term])[0])

    def term_numbers(self, terms: Sequence[str]) -> np.ndarray:
        """Return the numbers of many terms, int64; −1 where no document has it."""
        return _lookup(terms, self.vocabulary)

    def numbers(self, doc_ids: Iterable[str]) -> np.ndarray:
        """Return the numbers of documents by id, int64; −1 where there is no such document."""
        places = _lookup(list(doc_ids), self._sorted_ids)
        return np.where(places < 0, -1, self.arrays["id-order"][places].astype(np.int64))

    def postings(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the documents that have a term, in order, and how often each has it."""
        return self._row("posting", "documents", term)

    def forward(self, document: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms of a document, in order of their numbers, and how often it has each."""
        return self._row("forward", "terms", document)

    def _row(self, part: str, columns: str, number: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = self.arrays[f"{part}-offsets"][number : number + 2].tolist()
        return self.arrays[f"{part}-{columns}"][first:last], self.arrays[f"{part}-counts"][first:last]

    def doc_ids(self, numbers: Any) -> list[str]:
        """Return the ids of documents, by number."""
        return self.id_series(numbers).to_list()

    def id_series(self, numbers: Any) -> pl.Series:
        """Return the ids of documents, by number, as a column."""
        return self._ids.gather(np.asarray(numbers, np.int64)).alias("doc_id")

    @cached_property
    def vocabulary(self) -> pl.Series:
        """All terms, by number."""
        return self._texts("terms", "term-offsets")

    @cached_property
    def _ids(self) -> pl.Series:
        return self._texts("ids", "id-offsets")

    @cached_property
    def _sorted_ids(self) -> pl.Series:
        return self._ids.gather(self.arrays["id-order"])

    def _texts(self, name: str, offsets_name: str) -> pl.Series:
        offsets, content = self.arrays[offsets_name], self.arrays[name]
        buffers = [pa.py_buffer(offsets), pa.py_buffer(content)]
        return pl.Series(pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers), dtype=pl.String)

    @cached_property
    def docs(self) -> StoredDocs:
        """The documents, from the stored text."""
        return StoredDocs(self)

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return a value computed from the whole index, once; models keep the norms of documents here."""
        with self._lock:
            if key not in self._derived:
                if len(self._derived) >= _DERIVED:
                    self._derived.clear()
                self._derived[key] = make()
            return self._derived[key]


class StoredDocs(Docs):
    """The documents of an index, from its stored text: any of them can be read without the others.

    They are an Arrow file of record batches of some 64 kB, each compressed by itself.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._described: dict[str, Any] = index.provenance["input"]
        super().__init__(self._described["name"], self._all_blocks, path=None, frozen=True)

    def fingerprint(self) -> str:
        """That of the collection the index was built from."""
        return str(self._described["fingerprint"])

    def describe(self) -> dict[str, Any]:
        """What was indexed."""
        return dict(self._described)

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of these documents; ids that the collection does not have are left out."""
        ids = list(dict.fromkeys(ids))
        numbers = self._index.numbers(ids)
        firsts = self._index.arrays["text-documents"]
        batches = np.searchsorted(firsts, numbers, side="right") - 1
        result: dict[str, str] = {}
        for number in np.unique(batches[numbers >= 0]).tolist():
            column = self._read(number).column("text")
            for place in np.flatnonzero((batches == number) & (numbers >= 0)).tolist():
                result[ids[place]] = column[int(numbers[place] - firsts[number])].as_py()
        return {each: result[each] for each in ids if each in result}

    def _all_blocks(self) -> Iterator[Block]:
        for number in range(len(self._index.arrays["text-documents"])):
            yield Block(partial(self._read, number), 1)

    def _read(self, number: int) -> pa.RecordBatch:
        return pa.ipc.open_file(pa.py_buffer(self._index.arrays["text"])).get_batch(number)


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of an index, mapped into memory; each is compared with its checksum at its first use."""

    def __init__(self, folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
        self._folder, self._files = folder, files
        self._mapped = {name: self._map(name) for name in files}
        self._checked: set[str] = set()

    def _map(self, name: str) -> np.ndarray:
        path, dtype = self._folder / name, np.dtype(self._files[name]["dtype"])
        try:
            data = map_file(path)
        except (OSError, ValueError):
            raise InputError("cannot be read, or is missing; build the index again", path=path) from None
        if len(data) != self._files[name]["length"] * dtype.itemsize:
            raise damaged(path)
        return data.view(dtype)

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._mapped[name]
        if name not in self._checked:
            if checksum(array) != self._files[name]["checksum"]:
                raise damaged(self._folder / name)
            self._checked.add(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapped)

    def __len__(self) -> int:
        return len(self._mapped)


def map_file(path: Path) -> np.ndarray:
    """Return the bytes of a file as a read-only array."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.frombuffer(b"", np.uint8)  # read-only as the others: kernels are compiled once
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of an index; an error if there is none, or it was changed."""
    folder = restored(path)
    file = folder / MANIFEST
    if not file.exists():
        problem = "this is not an index" if folder.exists() else "there is no such index"
        raise InputError(f"{problem}; make one with: evenrank index DOCS -o IDX", path=path)
    try:
        with reading(file):
            header: dict[str, Any] = json.loads(file.read_bytes())
        expected = header.pop("checksum", None)
    except (ValueError, AttributeError, RecursionError):
        raise damaged(file) from None
    if expected != checksum(header):
        raise damaged(file)
    if header["format"] != FORMAT:
        problem = f"an index of format {header['format']}, and this evenrank reads {FORMAT}"
        raise InputError(f"{problem}; build it again", path=path)
    return header


def damaged(path: Path) -> InputError:
    """Return the error for a file that is not what was written."""
    return InputError("damaged: not what was written; build the index again", path=path)


def _lookup(wanted: Sequence[str], ordered: pl.Series) -> np.ndarray:
    """Return the place of each text among sorted ones, int64; −1 if it is not there."""
    if ordered.is_empty() or not wanted:
        return np.full(len(wanted), -1, np.int64)
    texts = pl.Series(wanted, dtype=pl.String)
    places = np.minimum(ordered.search_sorted(texts).to_numpy().astype(np.int64), len(ordered) - 1)
    return np.where((ordered.gather(places) == texts).to_numpy(), places, -1)
