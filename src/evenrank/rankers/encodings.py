"""Vectors of texts, each made and stored once: the bi-encoder, the head and the dense ranker share them.

They go by what the text is, not by where it stands: a text that two collections share is encoded once, and
a collection of which only the candidates of some queries are needed is not encoded whole. The folder, in
the user's cache, holds parts of some thousand texts. A part is named after the checksum of its content, so a
damaged one is left out and encoded again; it appears when it is complete, so encoding that was killed
resumes. Vectors of queries, which a server is asked without end, stay in memory, the last some thousand.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.data.files import cache_dir, writing
from evenrank.rankers.base import Progress

if TYPE_CHECKING:
    from evenrank.rankers.encoder import Encoder
    from evenrank.rankers.projection import GenderProjection

PART = 2048
"""Texts between two checkpoints. Sorted by length, they fill batches with little padding."""
QUERIES_IN_MEMORY = 10_000
"""Vectors of queries that are kept; the oldest make room for new ones."""
_HASH_BYTES = 16

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
"""For each text the number of its part, and its row in it."""


class Encodings:
    """The vectors that one encoder makes, those of documents kept in a folder. Threads may share it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        facts = json.dumps(encoder.facts(), sort_keys=True)
        self.folder = cache_dir() / "encodings" / xxhash.xxh3_128_hexdigest(facts.encode())
        self._lock = threading.Lock()  # also while encoding: no text is encoded by two threads
        self._places: dict[bytes, tuple[int, int]] = {}
        self._parts: list[Floats] = []
        self._seen: set[str] = set()
        self._queries: dict[str, Floats] = {}

    def documents(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        """Return the vectors of documents, in their order."""
        return self.vectors(self.places(texts, progress))

    def places(self, texts: Sequence[str], progress: Progress | None = None) -> Places:
        """Return where the vectors of documents are, encoding those that are nowhere yet."""
        keys = [_key(text) for text in texts]
        with self._lock:
            if any(key not in self._places for key in keys):
                self._open_parts()
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._places}
            if missing:
                self._encode(sorted(missing.items(), key=lambda each: (-len(each[1]), each[0])), progress)
            return np.array([self._places[key] for key in keys], np.int64).reshape(-1, 2)

    def vectors(self, places: Places) -> Floats:
        """Return the vectors at these places."""
        values = np.empty((len(places), self.encoder.dimension), np.float32)
        for part in np.unique(places[:, 0]):
            rows = np.flatnonzero(places[:, 0] == part)
            values[rows] = self._parts[part][places[rows, 1]]
        return values

    def queries(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of queries, in their order."""
        if not texts:
            return np.empty((0, self.encoder.dimension), np.float32)
        with self._lock:
            known = {text: self._queries[text] for text in texts if text in self._queries}
            missing = sorted(
                {text for text in texts if text not in known}, key=lambda each: (-len(each), each)
            )
            for start in range(0, len(missing), PART):
                some = missing[start : start + PART]
                known |= zip(some, np.asarray(self.encoder.queries(some), np.float32), strict=True)
            for text in missing[-QUERIES_IN_MEMORY:]:
                self._queries[text] = known[text].copy()
            for text in list(self._queries)[: max(0, len(self._queries) - QUERIES_IN_MEMORY)]:
                del self._queries[text]
        return np.stack([known[text] for text in texts])

    def _encode(self, missing: list[tuple[bytes, str]], progress: Progress | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(missing), PART):
            some = missing[start : start + PART]
            built = self.encoder.documents([text for _, text in some])
            content = BytesIO()
            np.save(content, np.ascontiguousarray(built, np.float32), allow_pickle=False)
            content.write(b"".join(key for key, _ in some))
            digest = xxhash.xxh3_128_hexdigest(content.getbuffer())
            with writing(self.folder / f"{digest}.vectors") as file:
                file.write(content.getbuffer())
            self._open_parts()
            if progress:
                progress(min(start + PART, len(missing)), len(missing))

    def _open_parts(self) -> None:
        """Take in the parts that are new, of this process or of another. Call it with the lock held."""
        for path in sorted(self.folder.glob("*.vectors")):
            if path.name in self._seen:
                continue
            try:
                content: Any = np.memmap(path, np.uint8, mode="r")
                if xxhash.xxh3_128_hexdigest(content) != path.stem:
                    continue
                with path.open("rb") as file:
                    np.lib.format.read_magic(file)
                    shape, _, _ = np.lib.format.read_array_header_1_0(file)
                    start = file.tell()
            except (OSError, ValueError):
                continue
            self._seen.add(path.name)
            end = start + 4 * shape[0] * shape[1]
            hashes, part = content[end:].tobytes(), len(self._parts)
            self._parts.append(content[start:end].view(np.float32).reshape(shape))
            for row in range(shape[0]):
                self._places[hashes[_HASH_BYTES * row : _HASH_BYTES * (row + 1)]] = (part, row)


def _key(text: str) -> bytes:
    return xxhash.xxh3_128_digest(b"d" + text.encode("utf-8", "surrogatepass"))


class ProjectedEncodings(Encodings):
    """The same vectors, those of queries changed by a gender projection."""

    def __init__(self, plain: Encodings, projection: GenderProjection, strength: float) -> None:
        vars(self).update(vars(plain))
        self._projection, self._strength = projection, strength

    def queries(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of queries, projected."""
        plain = super().queries(texts).astype(np.float64)
        return self._projection.project(plain, self._strength).astype(np.float32)


def encode_pairs(encodings: Encodings, pairs: Any, progress: Progress | None = None) -> tuple[Floats, Floats]:
    """Return the vectors of the queries and of the documents of candidates."""
    return encodings.queries(pairs.queries), encodings.documents(pairs.documents, progress)
