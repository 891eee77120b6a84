"""Gender in word vectors: the words that define it, its direction, and the genderedness of words.

The direction tells the first words of some pairs from the second: gender, or anything else. Genderedness is
the cosine of a word with it; one table ships with the package.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evenrank.data import formats
from evenrank.data.files import magic, writing
from evenrank.data.formats import text_lines
from evenrank.data.schema import show
from evenrank.errors import InputError, InputWarning
from evenrank.text.lexicon import lexicon
from evenrank.vectors.formats import load
from evenrank.vectors.space import ROWS, Doubles, Floats, Ints, Vectors

FREQUENT = 50_000
"""The first rows of vectors, which are the most frequent words."""
_MIN_PAIRS = 3
_LEXICONS = ("rekabsaz2020", "fabris2020")

Pair = tuple[str, str]
Pairs = Iterable[Iterable[str]] | str | os.PathLike[str]

DEFINITION: tuple[Pair, ...] = (
    ("she", "he"),
    ("her", "his"),
    ("woman", "man"),
    ("Mary", "John"),
    ("herself", "himself"),
    ("daughter", "son"),
    ("mother", "father"),
    ("gal", "guy"),
    ("girl", "boy"),
    ("female", "male"),
)
"""What defines the gender direction (Bolukbasi et al., NIPS 2016): female first."""

_MIRRORED = """
    convent monastery, spokeswoman spokesman, mom dad, women men, councilwoman councilman, grandma grandpa,
    granddaughters grandsons, estrogen testosterone, aunt uncle, wives husbands, mother father, girl boy,
    girls boys, sister brother, sisters brothers, businesswoman businessman, chairwoman chairman, filly colt,
    congresswoman congressman, moms dads, gals dudes, motherhood fatherhood, mothers fathers, granny fella,
    sorority fraternity, mare gelding, lady gentleman, ladies gentlemen, grandmother grandfather,
    granddaughter grandson, she he, herself himself, her his, queen king, queens kings, female male,
    females males, woman man, niece nephew, princess prince, schoolgirl schoolboy, daughter son,
    daughters sons
"""


MIRRORED: tuple[Pair, ...] = tuple((first, second) for first, second in map(str.split, _MIRRORED.split(",")))
"""Pairs that hard debiasing equalises: the list released by Bolukbasi et al. (2016), single words only."""


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """Read words from a file: one on each line, where ``#`` begins a comment."""
    words = [line for _, line in text_lines(path)]
    if not words:
        raise InputError("there are no words in it", path=path)
    return words


def read_pairs(source: Pairs) -> tuple[Pair, ...]:
    """Return pairs of words as tuples, each once: given, or from a file.

    A file has two words on each line: between them a tab, a comma or spaces; ``#`` begins a comment.
    """
    pairs: Any = source
    path = None
    if isinstance(source, (str, os.PathLike)):
        path = source
        pairs = [_split_pair(line, path, number) for number, line in text_lines(path)]
    unique: dict[Pair, None] = {}
    for pair in pairs:
        words = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
        if len(words) != 2 or not all(isinstance(word, str) and word for word in words):
            raise InputError(f"expected pairs of two words, found {show(pair)}", path=path)
        unique[words[0], words[1]] = None
    if not unique:
        raise InputError("there are no pairs of words", path=path)
    return tuple(unique)


def _split_pair(line: str, path: str | os.PathLike[str], number: int) -> list[str]:
    separator = "\t" if "\t" in line else "," if "," in line else None
    words = [word.strip() for word in line.split(separator)]
    if len(words) != 2 or not all(words):
        raise InputError(f"expected two words, found {show(line)}", path=path, line=number)
    return words


def specific_words(source: Iterable[str] | str | os.PathLike[str] | None = None) -> frozenset[str]:
    """Return gender-specific words in lower case: given, from a file with one per line, or the default set.

    The default set is the shipped lexicons rekabsaz2020 and fabris2020, :data:`DEFINITION` and
    :data:`MIRRORED`.
    """
    if source is None:
        shipped = {w for name in _LEXICONS for group in lexicon(name).groups.values() for w in group}
        return frozenset(shipped | {word.lower() for pair in (*DEFINITION, *MIRRORED) for word in pair})
    if isinstance(source, (str, os.PathLike)):
        source = read_words(source)
    return frozenset(word.lower() for word in source)


def ordinary_rows(vectors: Vectors, specific: frozenset[str]) -> Ints:
    """Rows of ordinary words: frequent, of 2 to 20 letters in lower case, not gender-specific.

    After Gonen & Goldberg (NAACL 2019). Files of vectors list the most frequent words first; the first
    50,000 rows count as frequent.
    """
    rows = (
        row
        for row, word in enumerate(vectors.words[:FREQUENT])
        if 2 <= len(word) <= 20 and word.isalpha() and word == word.lower() and word not in specific
    )
    return np.fromiter(rows, np.int64)


@dataclass(frozen=True)
class Direction:
    """A direction in the space of the vectors; the first words of the pairs lie on its positive side.

    Attributes
    ----------
    vector
        Of length 1, in double precision.
    explained
        The share of the variance within the pairs that each principal component explains, the largest
        first: how far one direction is enough.
    pairs
        The pairs that were used, as they were given.
    left_out
        The pairs of which a word has no vector.
    """

    vector: Doubles
    explained: Doubles
    pairs: tuple[Pair, ...]
    left_out: tuple[Pair, ...] = ()

    def of(self, matrix: npt.NDArray[Any]) -> Floats:
        """The cosine of each row, of length 1, with the direction."""
        cosines = np.empty(len(matrix), np.float32)
        for start in range(0, len(matrix), ROWS):
            cosines[start : start + ROWS] = matrix[start : start + ROWS] @ self.vector
        return cosines

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of what made the direction."""
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "left_out": [list(pair) for pair in self.left_out],
            "explained": [float(share) for share in self.explained],
        }


def find_direction(vectors: Vectors, pairs: Pairs | None = None) -> Direction:
    """Find the direction along which the words of the pairs differ most (Bolukbasi et al. 2016).

    From both words of each pair the pair's centre is taken away; the first principal component of what
    remains, of all pairs together, is the direction. It is turned so that the first word of the first
    usable pair lies above the second: with the default pairs, *she* above *he*.

    Parameters
    ----------
    vectors
        The word vectors.
    pairs
        Pairs of words or a file of them (:func:`~evenrank.vectors.read_pairs`); the ten that
        define gender if not given. Each is looked up as written, then in lower case.

    Raises
    ------
    InputError
        Fewer than three pairs have vectors for both words; or they do not differ at all.

    Warns
    -----
    InputWarning
        Names the pairs that are left out because a word has no vector.
    """
    all_pairs = DEFINITION if pairs is None else read_pairs(pairs)
    rows = {pair: vectors.rows(pair) for pair in all_pairs}
    used = tuple(pair for pair in all_pairs if rows[pair].min() >= 0)
    left_out = tuple(pair for pair in all_pairs if pair not in used)
    if len(used) < _MIN_PAIRS:
        missing = ", ".join(sorted({word for pair in left_out for word in pair if word not in vectors}))
        raise InputError(
            f"only {len(used)} of {len(all_pairs)} pairs have vectors for both words, {_MIN_PAIRS} are "
            f"needed; without a vector: {missing or 'none'}"
        )
    if left_out:
        names = ", ".join(f"{first}–{second}" for first, second in left_out)
        warnings.warn(f"pairs left out, because a word has no vector: {names}", InputWarning, stacklevel=2)
    ends = np.array([vectors.matrix[rows[pair]] for pair in used], np.float64)
    # The two rows of a pair, minus its centre, mirror each other: one of them says everything.
    halves = (ends[:, 0] - ends[:, 1]) / 2
    _, singular, components = np.linalg.svd(halves, full_matrices=False)
    variance = singular**2
    if not variance[0] > 1e-12:
        raise InputError("the words of the pairs do not differ; no direction follows from them")
    first = components[0] / np.linalg.norm(components[0])
    side = halves[0] @ first or (halves @ first).sum()
    return Direction(-first if side < 0 else first, variance / variance.sum(), used, left_out)


_KEY = b"evenrank"


@dataclass(frozen=True, eq=False)
class Genderedness:
    """Words and how far each leans: g(w), the cosine with the direction.

    In [−1, 1]; with the default pairs positive is female and negative is male (Fabris et al. 2020, Eq. 1).

    Attributes
    ----------
    words
        Sorted.
    values
        g of each word.
    provenance
        The vectors, the pairs and the variance they explain.
    """

    words: list[str]
    values: Floats
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _table(self) -> dict[str, float]:
        return dict(zip(self.words, self.values.tolist(), strict=True))

    def of(self, words: Iterable[str]) -> Doubles:
        """g of each word, looked up as written and then in lower case; NaN for those not in the table."""
        table = self._table
        return np.array([table.get(word, table.get(word.lower(), np.nan)) for word in words], np.float64)

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
        schema = schema.with_metadata(
            {_KEY.decode(): facts, **formats.metadata_checksum(schema, len(self), facts)}
        )
        table = pa.Table.from_arrays([pa.array(self.words), pa.array(self.values)], schema=schema)
        with writing(path) as file:
            pq.write_table(table, file, compression="zstd", compression_level=22, write_page_checksum=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Genderedness:
        """Read a table that :meth:`write` wrote, or any Parquet file with the columns ``word`` and ``g``."""
        table, facts = formats.read_checked(path, _KEY)
        if not {"word", "g"} <= set(table.column_names) or not len(table):
            names = ", ".join(table.column_names)
            raise InputError(f"expected the columns word and g with some rows, found: {names}", path=path)
        try:
            words = table["word"].cast(pa.string()).to_pylist()
            values = table["g"].cast(pa.float32()).to_pylist()
        except pa.ArrowInvalid as error:
            raise InputError(f"word should be text and g a number: {error}", path=path) from None
        if None in words or None in values:
            raise InputError("a word or a value is missing", path=path)
        if len(set(words)) < len(words):
            raise InputError("a word occurs twice", path=path)
        for word, g in zip(words, values, strict=True):
            if not abs(g) <= 1 + 1e-6:  # NaN is refused too
                raise InputError(f"g of {word!r} is {g}, not in [−1, 1]", path=path)
        return cls(words, np.array(values, np.float32), json.loads(facts or "{}"))


def genderedness(
    source: Genderedness | Vectors | str | os.PathLike[str] | Any = None, *, pairs: Pairs | None = None
) -> Genderedness:
    """Return how far each word leans toward female (positive) or male (negative).

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
    if isinstance(source, (str, os.PathLike)) and Path(source).is_file() and magic(source) == b"PAR1":
        source = Genderedness.read(source)
    elif source is None:
        source = _shipped()
    if isinstance(source, Genderedness):
        if pairs is not None:
            raise InputError("a table of genderedness has its direction already; pairs go with vectors")
        return source
    vectors = load(source)
    return genderedness_along(vectors, find_direction(vectors, pairs))


def genderedness_along(vectors: Vectors, direction: Direction) -> Genderedness:
    """Return how far each word leans along a direction."""
    order = sorted(range(len(vectors)), key=vectors.words.__getitem__)
    words, values = [vectors.words[row] for row in order], direction.of(vectors.matrix)[order]
    return Genderedness(words, values, {**vectors.provenance, "direction": direction.to_dict()})


def leaning(vectors: Vectors, direction: Direction, count: int) -> list[list[tuple[str, float]]]:
    """Return the ordinary words that lean most to the positive side, and those most to the negative."""
    rows = ordinary_rows(vectors, specific_words())
    values = direction.of(vectors.matrix[rows])
    order = np.argsort(values, kind="stable")
    ends = order[::-1][:count], order[:count]
    return [[(vectors.words[rows[i]], float(values[i])) for i in end] for end in ends]


@lru_cache(maxsize=1)
def _shipped() -> Genderedness:
    return Genderedness.read(Path(str(resources.files("evenrank.vectors"))) / "data" / "genderedness.parquet")
