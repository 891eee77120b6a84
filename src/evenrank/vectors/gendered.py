"""Genderedness of words: a table made from vectors, or the shipped one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evenrank.data import parquet
from evenrank.data.files import magic, writing
from evenrank.errors import InputError
from evenrank.vectors.direction import Direction, Pairs, find_direction
from evenrank.vectors.files import load
from evenrank.vectors.space import Floats, Vectors, numbers
from evenrank.vectors.words import ordinary_places, specific_words

Leaning = tuple[str, float]

_KEY = b"evenrank"
_PARQUET = b"PAR1"


@dataclass(frozen=True, eq=False)
class Genderedness:
    """Words and how far each leans: g(w), the cosine with the direction.

    In [−1, 1]; with the default pairs positive is female and negative is male (Fabris et al. 2020, Eq. 1).

    Attributes
    ----------
    words
        An Arrow array of strings, sorted by their bytes.
    values
        g of each word.
    provenance
        The vectors, the pairs and the variance they explain.
    """

    words: pa.Array
    values: Floats
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _places(self) -> dict[str, int]:
        return dict(zip(self.words.to_pylist(), range(len(self.words)), strict=True))

    def of(self, words: Iterable[str]) -> npt.NDArray[np.float64]:
        """g of each word, looked up as written and then in lower case; NaN for those not in the table."""
        places = self._places
        found = (places.get(word, places.get(word.lower(), -1)) for word in words)
        return np.array([self.values[place] if place >= 0 else np.nan for place in found], np.float64)

    def __getitem__(self, word: str) -> float:
        value = float(self.of([word])[0])
        if np.isnan(value):
            raise InputError(f"the word {word!r} is not in the table of genderedness")
        return value

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Genderedness({len(self):,} words)"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file, ``word`` and ``g``, with the provenance inside; same table, same bytes."""
        facts = json.dumps(self.provenance, ensure_ascii=False)
        schema = pa.schema([("word", pa.string()), ("g", pa.float32())])
        schema = schema.with_metadata({_KEY.decode(): facts, **parquet.seal(schema, len(self), facts)})
        table = pa.Table.from_arrays([self.words, pa.array(self.values)], schema=schema)
        with writing(path) as file:
            pq.write_table(
                table,
                file,
                row_group_size=max(1, len(table)),
                compression="zstd",
                compression_level=22,
                use_dictionary=False,
                write_statistics=False,
                write_page_checksum=True,
                # Sorted words share their beginnings; the bytes of a float are alike by position.
                column_encoding={"word": "DELTA_BYTE_ARRAY", "g": "BYTE_STREAM_SPLIT"},
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Genderedness:
        """Read a table that :meth:`write` wrote, or any Parquet file with the columns ``word`` and ``g``."""
        table = parquet.sealed(path, _KEY)[0].combine_chunks()
        if not {"word", "g"} <= set(table.column_names) or not len(table):
            names = ", ".join(table.column_names)
            raise InputError(f"expected the columns word and g with some rows, found: {names}", path=path)
        try:
            words, values = table["word"].cast(pa.string()), table["g"].cast(pa.float32())
        except pa.ArrowInvalid as error:
            raise InputError(f"word should be text and g a number: {error}", path=path) from None
        if words.null_count or values.null_count:
            raise InputError("a word or a value is missing", path=path)
        stored = (table.schema.metadata or {}).get(_KEY)
        found = cls(words.chunk(0), numbers(values.chunk(0)), _facts(stored, path))
        _check(found, path)
        return found


def genderedness(
    source: Genderedness | Vectors | str | os.PathLike[str] | Any = None, *, pairs: Pairs | None = None
) -> Genderedness:
    """How far each word leans toward female (positive) or male (negative).

    Parameters
    ----------
    source
        Nothing: the table that ships with the package, made from GloVe vectors (100 dimensions,
        Wikipedia and Gigaword; 120,008 words in lower case). Or vectors, or a file of them, or a table
        that :meth:`Genderedness.write` wrote.
    pairs
        Other pairs of words define another direction; this needs vectors.

    Examples
    --------
    >>> g = genderedness()
    >>> g["nurse"] > 0 > g["plumber"]
    True
    """
    if isinstance(source, (str, os.PathLike)) and Path(source).is_file() and magic(source) == _PARQUET:
        source = Genderedness.read(source)
    elif source is None:
        source = _shipped()
    if isinstance(source, Genderedness):
        if pairs is not None:
            raise InputError("a table of genderedness has its direction already; pairs go with vectors")
        return source
    vectors = load(source)
    direction = find_direction(vectors, pairs)
    words, values = vectors.word_array, direction.of(vectors.matrix)
    order = pc.sort_indices(words)
    provenance = {**vectors.provenance, "direction": direction.to_dict()}
    return Genderedness(words.take(order), values[numbers(order, np.uint64)], provenance)


def leaning(vectors: Vectors, direction: Direction, count: int) -> tuple[list[Leaning], list[Leaning]]:
    """The ordinary words that lean most to the positive side, and those that lean most to the negative."""
    rows = ordinary_places(vectors, specific_words())
    values = direction.of(vectors.matrix[rows])
    order = np.argsort(values, kind="stable")
    ends = order[::-1][:count], order[:count]
    positive, negative = ([(vectors.words[rows[i]], float(values[i])) for i in end] for end in ends)
    return positive, negative


@lru_cache(maxsize=1)
def _shipped() -> Genderedness:
    return Genderedness.read(Path(str(resources.files("evenrank.vectors"))) / "data" / "genderedness.parquet")


def _facts(stored: bytes | None, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        return {} if stored is None else dict(json.loads(stored))
    except ValueError:
        raise InputError(
            "the provenance in the file is not readable; write the file again", path=path
        ) from None


def _check(found: Genderedness, path: str | os.PathLike[str]) -> None:
    """A table from anywhere: every word once, every value a cosine."""
    if len(pc.unique(found.words)) != len(found):
        raise InputError("a word occurs twice", path=path)
    bad = ~(np.abs(found.values) <= 1 + 1e-6)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"g of {found.words[row].as_py()!r} is {found.values[row]}, not in [−1, 1]", path=path
        )
