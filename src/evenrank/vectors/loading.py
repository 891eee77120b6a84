"""Opening vectors, whatever the format: what a file is, its content tells and not its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenrank.data.files import fingerprint, magic, reading, require_regular
from evenrank.errors import InputError
from evenrank.vectors.binary import read_binary
from evenrank.vectors.gensim_files import read_gensim
from evenrank.vectors.space import Duplicates, Vectors, checked
from evenrank.vectors.store import MAGIC, read_store
from evenrank.vectors.textual import Parsed, header, read_text

_HEAD = 1 << 13
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f\v") | {127}
_FOREIGN = {
    b"\x93NUMPY": "a .npy file holds no words; put words and vectors together into an .npz",
    b"\xba\x16\x4f\x2f": "this is a model of the fastText program; give its .vec file",
    b"PAR1": "this is a Parquet file; give the vectors themselves",
}


def load(
    source: Vectors | Mapping[str, Any] | str | os.PathLike[str] | Any, *, duplicates: Duplicates = "error"
) -> Vectors:
    """Open word vectors, in whatever format they are.

    Parameters
    ----------
    source
        A file: word2vec binary or text, GloVe text, fastText ``.vec`` (all of these also as gzip or
        zstd), a saved gensim ``KeyedVectors`` or model, an ``.npz`` with an array of words and a matrix,
        or our own store (:func:`save` to ``.arrow``), which opens in milliseconds. Or a gensim object,
        or a mapping from word to vector.
    duplicates
        What to do with a word that occurs twice: ``error``, or keep the ``first``.

    Raises
    ------
    InputError
        With file and line or word: cut off, wrong dimension, a header that promises something else, a
        word twice, NaN, no vectors at all.

    Notes
    -----
    The rows are scaled to length 1. The matrix is the only large thing in memory while loading.

    Examples
    --------
    >>> load({"she": [3, 4], "he": [0, 1]})
    Vectors(2 words, 2 dimensions)
    """
    if isinstance(source, Vectors):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _of_file(source, duplicates)
    if isinstance(source, Mapping):
        return Vectors(list(source), list(source.values()), duplicates=duplicates)
    inner = getattr(source, "wv", source)
    if hasattr(inner, "index_to_key") and hasattr(inner, "vectors"):
        return Vectors(inner.index_to_key, inner.vectors, duplicates=duplicates)
    raise InputError(f"vectors are a file, a gensim object or a mapping, not {type(source).__name__}")


def _of_file(path: str | os.PathLike[str], duplicates: Duplicates) -> Vectors:
    if Path(path).is_dir():
        raise InputError("this is a folder; name a file", path=path)
    if not require_regular(path):
        raise InputError("the file is empty", path=path)
    start = magic(path, 8)
    if start.startswith(MAGIC):
        return read_store(path, duplicates=duplicates)
    for known, message in _FOREIGN.items():
        if start.startswith(known):
            raise InputError(message, path=path)
    if start.startswith(b"PK\x03\x04"):
        kind, parsed = "npz", _read_npz(path)
    elif start[:1] == b"\x80" and start[1] <= 5:
        kind, parsed = "gensim", read_gensim(path)
    else:
        kind, parsed = _read_stream(path)
    facts = {"name": Path(path).name, "format": kind, "fingerprint": fingerprint(path)}
    words, matrix, first_line = parsed
    return checked(
        words,
        matrix,
        provenance={"input": facts},
        duplicates=duplicates,
        path=path,
        first_line=first_line,
    )


def _read_stream(path: str | os.PathLike[str]) -> tuple[str, Parsed]:
    """Text or binary, after a look at the beginning."""
    with _stream(path) as stream, reading(path):
        head: bytes = stream.read(_HEAD)
    if not head:
        raise InputError("the file is empty", path=path)
    first, _, rest = head.partition(b"\n")
    if header(first, path) is None or (not _CONTROL & set(rest) and _is_text(rest)):
        if _CONTROL & set(head):
            raise InputError("neither text nor a known format of word vectors", path=path)
        return "text", read_text(path)
    with _stream(path) as stream:
        return "word2vec binary", read_binary(stream, path)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start > len(content) - 4  # a character that the end of the sample cuts
    return True


def _stream(path: str | os.PathLike[str]) -> Any:
    """The bytes of a file, uncompressed on the way."""
    start = magic(path)
    kind = "gzip" if start[:2] == b"\x1f\x8b" else "zstd" if start == b"\x28\xb5\x2f\xfd" else None
    with reading(path):
        return pa.input_stream(os.fspath(path), compression=kind)


def _read_npz(path: str | os.PathLike[str]) -> Parsed:
    """The one-dimensional array of text and the two-dimensional one of numbers, whatever their names."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = [archive[name] for name in archive.files]
    except Exception as error:  # damaged archives raise anything from zlib.error to NotImplementedError
        how = "words must be text: np.savez(path, words=np.array(words, dtype=str), vectors=matrix)"
        pickled = "allow_pickle" in str(error)
        message = (
            f"it holds pickled objects, which are not read; {how}" if pickled else f"cannot be read: {error}"
        )
        raise InputError(" ".join(message.split()), path=path) from None
    if any(isinstance(array, bytes) for array in arrays):
        raise InputError("a zip archive of other things than arrays; unpack it and name a file", path=path)
    words = [array for array in arrays if array.ndim == 1 and array.dtype.kind == "U"]
    rows = [array for array in arrays if array.ndim == 2 and array.dtype.kind == "f"]
    if len(words) != 1 or len(rows) != 1:
        raise InputError("expected one array of words and one matrix of numbers", path=path)
    return Parsed(words[0].tolist(), np.array(rows[0], np.float32, order="C"))
