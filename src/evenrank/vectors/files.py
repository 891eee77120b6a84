"""Word vectors in files: any format is read, Arrow is written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data.files import checksum, fingerprint, format_suffix, magic, reading, require_regular, writing
from evenrank.data.formats import CHECKSUM
from evenrank.errors import InputError
from evenrank.vectors.formats import Parsed, header, read_binary, read_gensim, read_text
from evenrank.vectors.space import Duplicates, Vectors, checked, numbers

MAGIC = b"ARROW1"
_KEY = b"evenrank"


def write_store(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Write the store; it appears under its name when it is complete."""
    values = pa.array(np.ascontiguousarray(vectors.matrix).ravel())
    rows = pa.FixedSizeListArray.from_arrays(values, vectors.dimension)
    facts = json.dumps(vectors.provenance, ensure_ascii=False)
    metadata = {_KEY: facts, CHECKSUM: _checksum(vectors.word_array, vectors.matrix, facts)}
    schema = pa.schema([("word", pa.string()), ("vector", rows.type)], metadata=metadata)
    batch = pa.RecordBatch.from_arrays([vectors.word_array, rows], schema=schema)
    with writing(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)


def read_store(path: str | os.PathLike[str], *, duplicates: Duplicates = "error") -> Vectors:
    """Open a store without reading it. A foreign Arrow file with its columns is read and checked."""
    with reading(path), pa.memory_map(os.fspath(path)) as file:
        table = pa.ipc.open_file(file).read_all().combine_chunks()
        for column in table.columns:  # a damaged file must not send anybody to a place outside of it
            column.validate(full=not pa.types.is_fixed_size_list(column.type))
    words, rows = _columns(table, path)
    matrix = numbers(rows.flatten()).reshape(len(rows), -1)
    facts = _facts(table, path)
    stored = table.schema.metadata or {}
    if CHECKSUM in stored:
        said = stored.get(_KEY, b"").decode(errors="replace")
        if _checksum(words, matrix, said).encode() != stored[CHECKSUM]:
            raise InputError("damaged: its checksum is another; write the file again", path=path)
    if facts is not None:
        return Vectors.trusted(words, matrix, facts)
    return checked(words.to_pylist(), matrix.copy(), duplicates=duplicates, path=path)


def _checksum(words: pa.Array, matrix: np.ndarray, facts: str) -> str:
    """A checksum of the words, the numbers and the facts: a flipped bit would give other numbers."""
    _, offsets, data = words.buffers()
    ends = np.frombuffer(offsets, np.int32)[words.offset : words.offset + len(words) + 1]
    return checksum(facts, np.diff(ends), memoryview(data)[ends[0] : ends[-1]], np.ascontiguousarray(matrix))


def _columns(table: pa.Table, path: str | os.PathLike[str]) -> tuple[pa.Array, pa.Array]:
    names = table.schema.names
    if "word" not in names or "vector" not in names:
        raise InputError(f"expected the columns word and vector, found: {', '.join(names)}", path=path)
    kind = table.schema.field("vector").type
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != pa.float32() or not len(table):
        raise InputError("the column vector should hold lists of float32, all of one length", path=path)
    words, rows = table.column("word").chunk(0), table.column("vector").chunk(0)
    if words.type != pa.string():  # other programs have other kinds of strings
        with reading(path):
            words = words.cast(pa.string())
    if words.null_count or rows.null_count or rows.flatten().null_count:
        raise InputError("every row should hold a word and its numbers, none of them missing", path=path)
    return words, rows


def _facts(table: pa.Table, path: str | os.PathLike[str]) -> dict[str, Any] | None:
    stored = (table.schema.metadata or {}).get(_KEY)
    if stored is None:
        return None
    try:
        return dict(json.loads(stored))
    except ValueError:
        raise InputError(
            "the provenance in the file is not readable; write the file again", path=path
        ) from None


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


_ROWS = 1 << 13
_SPACES = set(" \t\n\r\v\f")
_KNOWN = ".arrow (opens at once), .bin (word2vec), .txt or .vec (text with a header), .npz"


def save(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Write vectors; the ending of the name decides the format.

    ``.arrow`` is our own store, which is mapped into memory and opens in milliseconds; it alone keeps the
    provenance. ``.bin`` is word2vec binary, ``.txt`` and ``.vec`` are word2vec (fastText) text with a
    header, ``.npz`` holds the arrays ``words`` and ``vectors``. The text and binary formats may be
    followed by ``.gz`` or ``.zst``. The file appears when it is complete.
    """
    suffix = format_suffix(path)
    compressed = Path(path).suffix.lower() != suffix
    if suffix == ".bin":
        _write_binary(vectors, path)
    elif suffix in (".txt", ".vec"):
        _write_text(vectors, path)
    elif suffix == ".arrow" and not compressed:
        write_store(vectors, path)
    elif suffix == ".npz" and not compressed:
        with writing(path) as file:
            np.savez_compressed(file, words=np.array(vectors.words, dtype=np.str_), vectors=vectors.matrix)
    else:
        raise InputError(f"the ending says how vectors are written: {_KNOWN}", path=path)


def _write_binary(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    _refuse_spaces(vectors, path)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.dimension}\n".encode())
        for start in range(0, len(vectors), _ROWS):
            rows = zip(
                vectors.words[start : start + _ROWS], vectors.matrix[start : start + _ROWS], strict=True
            )
            file.write(b"".join(word.encode() + b" " + row.astype("<f4").tobytes() for word, row in rows))


def _write_text(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """The shortest digits that give the same float32 again."""
    _refuse_spaces(vectors, path)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.dimension}\n".encode())
        for start in range(0, len(vectors), _ROWS):
            block = vectors.matrix[start : start + _ROWS]
            digits = pa.array(block.ravel()).cast(pa.string())
            ends = pa.array(np.arange(0, block.size + 1, vectors.dimension, dtype=np.int32))
            numbers = pc.binary_join(pa.ListArray.from_arrays(ends, digits), " ")
            words = vectors.word_array.slice(start, _ROWS)
            lines = pc.binary_join_element_wise(words, numbers, " ")
            file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _refuse_spaces(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    for word in vectors.words:
        if not word or _SPACES & set(word):
            raise InputError(f"a word in this format cannot be {word!r}; use .arrow or .npz", path=path)
