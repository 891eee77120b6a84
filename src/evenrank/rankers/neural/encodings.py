"""Vectors of texts, each made once: the bi-encoder, the head and the dense ranker share them.

They go by what the text is, not by where it stands: a text that two collections share is encoded once, and
a collection of which only the candidates of some queries are needed is not encoded whole. The folder holds
parts, each of them some thousand texts; a part counts when its list of hashes is there, which is written
last. So encoding that was killed goes on where it was. Only vectors of documents are written: those of
queries, which a server is asked without end, stay in memory, the last some thousand of them.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.data.files import cache_dir, writing
from evenrank.rankers.base import Progress

if TYPE_CHECKING:
    from evenrank.rankers.dense import Encoder
    from evenrank.rankers.projection import GenderProjection

PART = 2048
"""Texts between two checkpoints. Sorted by length, they fill batches with little padding."""
QUERIES_IN_MEMORY = 10_000
"""Vectors of queries that are kept; the oldest make room for new ones."""

Floats = npt.NDArray[np.float32]


class Encodings:
    """The vectors that one encoder makes, those of documents kept in a folder. Threads may share it.

    Parameters
    ----------
    encoder
        What turns texts into vectors.
    home
        The folder of an index, to keep them beside it; the user's cache if not given, or if the folder may
        not be written to.
    """

    def __init__(self, encoder: Encoder, home: str | os.PathLike[str] | None = None) -> None:
        self.encoder = encoder
        facts = json.dumps(encoder.facts(), sort_keys=True)
        key = xxhash.xxh3_128_hexdigest(facts.encode())
        beside = None if home is None else Path(home) / "encodings"
        base = beside if beside is not None and _is_writable(beside) else cache_dir() / "encodings"
        self.folder = base / key
        self._lock = threading.Lock()  # also while encoding: no text is encoded by two threads
        self._places: dict[bytes, tuple[int, int]] = {}
        self._parts: list[Floats] = []
        self._seen: set[str] = set()
        self._queries: dict[str, Floats] = {}

    def documents(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        """The vectors of documents, in their order."""
        keys = [_key(text) for text in texts]
        with self._lock:
            if any(key not in self._places for key in keys):
                self._open_parts()
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._places}
            if missing:
                self._encode(sorted(missing.items(), key=lambda each: (-len(each[1]), each[0])), progress)
            return self._rows(keys)

    def queries(self, texts: Sequence[str]) -> Floats:
        """The vectors of queries, in their order."""
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
            name = f"{secrets.token_hex(8)}"
            with writing(self.folder / f"{name}.vectors.npy") as file:
                np.save(file, np.ascontiguousarray(built, np.float32), allow_pickle=False)
            hashes = np.frombuffer(b"".join(key for key, _ in some), np.uint8).reshape(-1, 16)
            with writing(self.folder / f"{name}.hashes.npy") as file:
                np.save(file, hashes, allow_pickle=False)
            self._open_parts()
            if progress:
                progress(min(start + PART, len(missing)), len(missing))

    def _open_parts(self) -> None:
        """Take in the parts that are new, of this process or of another. Call it with the lock held."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("*.hashes.npy")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            try:
                hashes = np.load(path, allow_pickle=False)
                vectors = np.load(
                    path.with_name(path.name.replace(".hashes", ".vectors")),
                    mmap_mode="r",
                    allow_pickle=False,
                )
            except (OSError, ValueError):
                continue  # damaged: its texts are encoded again
            if hashes.ndim != 2 or hashes.shape[1] != 16 or len(hashes) != len(vectors):
                continue
            content, part = hashes.tobytes(), len(self._parts)
            self._parts.append(vectors)
            for row in range(len(hashes)):
                self._places[content[16 * row : 16 * row + 16]] = (part, row)

    def _rows(self, keys: Sequence[bytes]) -> Floats:
        if not keys:
            return np.empty((0, self.encoder.dimension), np.float32)
        places = np.array([self._places[key] for key in keys], np.int64)
        values = np.empty((len(keys), self._parts[int(places[0, 0])].shape[1]), np.float32)
        for part in np.unique(places[:, 0]):
            rows = np.flatnonzero(places[:, 0] == part)
            values[rows] = self._parts[part][places[rows, 1]]
        return values


def _key(text: str) -> bytes:
    return xxhash.xxh3_128_digest(b"d" + text.encode("utf-8", "surrogatepass"))


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


class ProjectedEncodings(Encodings):
    """The same vectors, those of queries changed by a gender projection."""

    def __init__(self, plain: Encodings, projection: GenderProjection, strength: float) -> None:
        vars(self).update(vars(plain))
        self._projection, self._strength = projection, strength

    def queries(self, texts: Sequence[str]) -> Floats:
        """Vectors of queries, projected."""
        plain = super().queries(texts).astype(np.float64)
        return self._projection.project(plain, self._strength).astype(np.float32)


def encode_pairs(encodings: Encodings, pairs: Any, progress: Progress | None = None) -> tuple[Floats, Floats]:
    """The vectors of the queries and of the documents of candidates."""
    return encodings.queries(pairs.queries), encodings.documents(pairs.documents, progress)
