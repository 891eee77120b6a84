"""What gensim saved, read without running anything that the file says.

``KeyedVectors.save`` writes a pickle, and a pickle may call any function it names. Here every name in it
becomes an inert :class:`_Record`: no module is imported, no function called. What remains are strings,
numbers, lists and bytes, and the words and the matrix are taken out of those.
"""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.data.files import reading
from evenrank.errors import InputError
from evenrank.vectors.textual import Parsed

_WORDS = ("index_to_key", "index2word", "index2entity")
_MATRIX = ("vectors", "syn0")
_HOW = "load it with gensim and write it by save_word2vec_format(…, binary=True)"


class _Record:
    """Stands for any class or function that a pickle names: keeps what it was given and does nothing."""

    given: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given = given

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __call__(self, *given: Any, **named: Any) -> _Record:
        return _Record(*given)

    def _ignore(self, *given: Any) -> None:
        pass

    __setitem__ = append = extend = add = _ignore


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Record

    def persistent_load(self, identifier: Any) -> Any:
        return None


def read_gensim(path: str | os.PathLike[str]) -> Parsed:
    """The words and vectors of a KeyedVectors file, or of a model that holds one.

    Large matrices lie beside the file (``x.kv.vectors.npy``) and are mapped into memory.
    """
    with reading(path):
        content = Path(path).read_bytes()
    try:
        whole = _Reader(io.BytesIO(content)).load()
    except Exception as error:
        raise InputError(
            f"damaged, or not a file of gensim ({type(error).__name__}); {_HOW}", path=path
        ) from None
    state = getattr(whole, "state", None)
    inner = state.get("wv") if isinstance(state, dict) else None
    prefix = ""
    if inner is not None:
        state, prefix = getattr(inner, "state", None), "wv."
    words = _first(state, _WORDS)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"no words and vectors of gensim are found in it; {_HOW}", path=path)
    matrix = _array(_first(state, _MATRIX))
    if matrix is None:
        matrix = _beside(Path(path), prefix)
    return Parsed(words, np.array(matrix, np.float32, order="C"))


def _first(state: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(state, dict):
        return None
    return next((state[name] for name in names if state.get(name) is not None), None)


def _array(record: Any) -> npt.NDArray[Any] | None:
    """A matrix from what numpy put into the pickle: (version, shape, type, order, bytes)."""
    state = getattr(record, "state", None)
    if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[4], bytes):
        return None
    _, shape, kind, fortran, data = state
    code = kind.given[0] if isinstance(kind, _Record) and kind.given else None
    order = kind.state[1] if isinstance(getattr(kind, "state", None), tuple) else None
    if code not in ("f2", "f4", "f8") or order not in ("<", ">"):
        return None
    values = np.frombuffer(data, f"{order}{code}")
    if not isinstance(shape, tuple) or len(shape) != 2 or values.size != shape[0] * shape[1]:
        return None
    return values.reshape(shape, order="F" if fortran else "C")


def _beside(path: Path, prefix: str) -> npt.NDArray[Any]:
    for name in _MATRIX:
        beside = path.with_name(f"{path.name}.{prefix}{name}.npy")
        if beside.exists():
            try:
                with reading(beside):
                    return np.asarray(np.load(beside, mmap_mode="r", allow_pickle=False))
            except ValueError as error:
                raise InputError(f"cannot be read: {error}", path=beside) from None
    raise InputError(
        f"the matrix is not beside it as {path.name}.{prefix}vectors.npy "
        f"(gensim leaves it out of FastText files); {_HOW}",
        path=path,
    )
