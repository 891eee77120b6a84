"""The embedded index: the terms and documents of a collection, on disk, mapped into memory.

An index is a folder with a manifest, ``index.json``, and a folder of arrays that it names. The manifest is
written last and replaced in one step, so there is a whole index or none, whenever a build is killed; it has a
checksum of itself and of each array, which is compared when the array is first used.
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
import pyarrow as pa
from numba import njit

from evenrank.data.docs import Docs
from evenrank.data.files import check_names, checksum, reading, sync_to_disk, writing
from evenrank.data.schema import SCHEMA, Block
from evenrank.errors import InputError
from evenrank.rankers.analysis import Analyzer

FORMAT = 3
"""Of the files; an index of another format is refused."""

MANIFEST = "index.json"
_KINDS = {"uint8", "uint16", "uint32", "int64"}
_DERIVED = 8  # things computed from a whole index that are kept; a sweep must not fill the memory


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

    def __init__(self, path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.provenance: dict[str, Any] = manifest["provenance"]
        self.fingerprint: str = manifest["fingerprint"]
        self.documents: int = manifest["documents"]
        self.tokens: int = manifest["tokens"]
        try:
            self.analyzer = Analyzer.of(self.provenance["analyzer"])
        except InputError as error:
            raise InputError(error.message, path=path) from None
        check_names([f"{manifest['folder']}/{name}" for name in manifest["files"]], path, folder=path)
        self.arrays = Arrays(self.path / manifest["folder"], manifest["files"])
        self._derived: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Any, *, verify: bool = False) -> Index:
        """Open an index; one that is damaged or half-built is an error.

        Parameters
        ----------
        path
            Its folder; an index that is open is returned as it is.
        verify
            Compare every byte with what was written now, which takes as long as reading it. Without this an
            index opens in milliseconds, and each of its files is compared when it is first used.
        """
        if isinstance(path, Index):
            index = path
        else:
            manifest = read_manifest(path)
            try:
                index = cls(path, manifest)
            except KeyError as error:
                raise damaged(Path(path) / MANIFEST) from error
            except InputError:
                again = read_manifest(path)  # it may have been replaced between two steps
                if again["folder"] == manifest["folder"]:
                    raise
                index = cls(path, again)
        if verify:
            index.arrays.verify()
        return index

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}): {self.documents:,} documents, {self.terms:,} terms"

    def __len__(self) -> int:
        return self.documents

    @cached_property
    def lengths(self) -> np.ndarray:
        return self.arrays["lengths"]

    @cached_property
    def document_frequency(self) -> np.ndarray:
        return self.arrays["document-frequency"]

    @cached_property
    def collection_frequency(self) -> np.ndarray:
        return self.arrays["collection-frequency"]

    @property
    def terms(self) -> int:
        """How many distinct terms there are."""
        return len(self.document_frequency)

    def describe(self) -> dict[str, Any]:
        """What was indexed and how, for the provenance of runs."""
        return {**self.provenance, "fingerprint": self.fingerprint, "documents": self.documents}

    def term(self, number: int) -> str:
        """The term of a number."""
        offsets = self.arrays["term-offsets"]
        if not 0 <= number < self.terms:
            raise IndexError(f"there is no term {number}; the last one is {self.terms - 1}")
        return self.arrays["terms"][offsets[number] : offsets[number + 1]].tobytes().decode()

    def number(self, term: str) -> int:
        """The number of a term, as the analyzer made it; −1 if no document has it."""
        return int(self.term_numbers([term])[0])

    def term_numbers(self, terms: Sequence[str]) -> np.ndarray:
        """The numbers of many terms at once, int64; −1 where no document has it."""
        return _search(terms, self.arrays["terms"], self.arrays["term-offsets"], np.empty(0, np.uint32))

    def numbers(self, doc_ids: Iterable[str]) -> np.ndarray:
        """The numbers of documents, by id, int64; −1 where there is no such document."""
        arrays = self.arrays
        return _search(list(doc_ids), arrays["ids"], arrays["id-offsets"], arrays["id-order"])

    def postings(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """The documents that have a term, in order, and how often each has it."""
        return self._row("posting", "documents", term, self.terms)

    def forward(self, document: int) -> tuple[np.ndarray, np.ndarray]:
        """The terms that a document has, in order of their numbers, and how often."""
        return self._row("forward", "terms", document, self.documents)

    def _row(self, part: str, columns: str, number: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        if not 0 <= number < count:
            raise IndexError(f"there is no number {number}; the last one is {count - 1}")
        bounds = self.arrays[f"{part}-offsets"]
        span = slice(int(bounds[number]), int(bounds[number + 1]))
        return self.arrays[f"{part}-{columns}"][span], self.arrays[f"{part}-counts"][span].astype(np.uint32)

    def doc_ids(self, numbers: Any) -> list[str]:
        """The ids of documents, by number."""
        ids: list[str] = self.id_array(numbers).to_pylist()
        return ids

    def id_array(self, numbers: Any) -> pa.LargeStringArray:
        """The ids of documents, by number, as an Arrow array."""
        return self._ids.take(pa.array(np.asarray(numbers, np.int64)))

    @cached_property
    def _ids(self) -> pa.LargeStringArray:
        buffers = [pa.py_buffer(self.arrays[name]) for name in ("id-offsets", "ids")]
        return pa.LargeStringArray.from_buffers(self.documents, *buffers)

    @property
    def docs(self) -> StoredDocs:
        """The documents, from the stored text."""
        if "text" not in self.arrays:
            raise InputError("this index holds no text; build it with text=True", path=self.path)
        return StoredDocs(self)

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """Something computed from the whole index, once; models keep the norms of documents here."""
        with self._lock:
            if key not in self._derived:
                if len(self._derived) >= _DERIVED:
                    self._derived.clear()
                self._derived[key] = make()
            return self._derived[key]


class StoredDocs(Docs):
    """The documents of an index, from its stored text: any of them can be read without the others.

    They are record batches of some 64 kB, each compressed by itself, one behind the other.
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
        frames = np.searchsorted(firsts, numbers, side="right") - 1
        result: dict[int, str] = {}
        opened, column = -1, None
        for place in np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :].tolist():
            if frames[place] != opened:
                opened = int(frames[place])
                column = self._read(opened).column("text")
            result[place] = column[int(numbers[place] - firsts[opened])].as_py()  # type: ignore[index]
        return {ids[place]: result[place] for place in sorted(result)}

    def _all_blocks(self) -> Iterator[Block]:
        for number, size in enumerate(np.diff(self._index.arrays["text-frames"]).tolist()):
            yield Block(partial(self._read, number), size)

    def _read(self, number: int) -> pa.RecordBatch:
        ends = self._index.arrays["text-frames"]
        stored = self._index.arrays["text"][ends[number] : ends[number + 1]]
        return pa.ipc.open_stream(pa.py_buffer(stored)).read_next_batch()


_OPTIONS = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", -1))  # as fast as the rest of the build
_FRAME = 1 << 16


def pack_texts(batch: pa.RecordBatch) -> tuple[list[bytes], list[int]]:
    """Documents as compressed frames, and how many are in each."""
    batch = batch.cast(SCHEMA)
    step = max(1, len(batch) * _FRAME // max(1, batch.nbytes))
    frames, counts = [], []
    for first in range(0, len(batch), step):
        part, sink = batch.slice(first, step), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA, options=_OPTIONS) as stream:
            stream.write_batch(part)
        frames.append(sink.getvalue().to_pybytes())
        counts.append(len(part))
    return frames, counts


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of an index, mapped into memory; each is compared with its checksum at its first use."""

    def __init__(self, folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
        self._folder, self._files = folder, files
        self._mapped = {name: self._map(name) for name in files}
        self._checked: set[str] = set()

    def _map(self, name: str) -> np.ndarray:
        facts, path = self._files[name], self._folder / name
        if facts["dtype"] not in _KINDS:
            raise damaged(path)
        try:
            data = map_file(path)
        except (OSError, ValueError):
            raise InputError("cannot be read, or is missing; build the index again", path=path) from None
        if len(data) != facts["length"] * np.dtype(facts["dtype"]).itemsize:
            raise damaged(path)
        return data.view(facts["dtype"])

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

    def __contains__(self, name: object) -> bool:
        return name in self._mapped

    def verify(self) -> None:
        """Compare all files with their checksums now; raise InputError if one is not what was written."""
        self._checked.clear()
        for name in self:
            self[name]


def map_file(path: Path) -> np.ndarray:
    """The bytes of a file as a read-only array."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.frombuffer(b"", np.uint8)  # read-only as the others: kernels are compiled once
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Put the manifest in place: from now on this is the index."""
    header = {**content, "checksum": checksum(dict(content))}
    with writing(folder / MANIFEST) as file:
        file.write(json.dumps(header, ensure_ascii=False, indent=1, sort_keys=True).encode())
        sync_to_disk(file)


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of an index; an error if there is none, or not one that was written here."""
    folder = Path(path)
    if not folder.exists():
        raise InputError("there is no such index; make one with: evenrank index DOCS -o IDX", path=path)
    file = folder / MANIFEST
    if not file.exists():
        problem = "this is not an index, or its building was interrupted"
        raise InputError(f"{problem}; make it with: evenrank index DOCS -o IDX", path=path)
    try:
        with reading(file):
            header: dict[str, Any] = json.loads(file.read_bytes())
        found = header.pop("checksum", None)
    except (ValueError, AttributeError, RecursionError):
        raise damaged(file) from None
    if found != checksum(header):
        raise damaged(file)
    if header["format"] != FORMAT:
        problem = f"an index of format {header['format']}, and this evenrank reads {FORMAT}"
        raise InputError(f"{problem}; build it again", path=path)
    return header


def damaged(path: Path) -> InputError:
    """What to say of a file that is not what was written."""
    return InputError("damaged: not what was written; build the index again", path=path)


def _search(wanted: Sequence[str], pool: np.ndarray, offsets: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where each text is among sorted ones, by binary search; −1 if it is not there."""
    _, bounds, data = pa.array(wanted, pa.large_string()).buffers()
    content = np.frombuffer(data or b"", np.uint8)
    result = np.empty(len(wanted), np.int64)
    _find(content, np.frombuffer(bounds or bytes(8), np.int64), pool, offsets, order, result)
    return result


@njit(nogil=True, cache=True)
def _find(wanted: Any, bounds: Any, pool: Any, offsets: Any, order: Any, result: Any) -> None:
    """Fill `result` with the number of each wanted text, or −1.

    Text number n is pool[offsets[n]:offsets[n + 1]]; `order` lists the numbers as their texts are sorted;
    where it is empty the numbers are so sorted themselves.
    """
    for row in range(len(result)):
        low, high = 0, len(offsets) - 1
        size = bounds[row + 1] - bounds[row]
        result[row] = -1
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else middle
            begin, other = offsets[number], offsets[number + 1] - offsets[number]
            difference = size - other
            for i in range(min(size, other)):
                if wanted[bounds[row] + i] != pool[begin + i]:
                    difference = np.int64(wanted[bounds[row] + i]) - np.int64(pool[begin + i])
                    break
            if difference == 0:
                result[row] = number
                break
            if difference < 0:
                high = middle
            else:
                low = middle + 1
