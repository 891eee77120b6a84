"""Genderedness of words: a table made from vectors, or the shipped one.

It is made with the direction that tells the first words of some pairs from the second: gender, or anything
else. Whether the vectors hold stereotypes is asked of two sets of words: could chance have parted them so
far? (Fabris, Purpura, Silvello & Susto: Gender stereotype reinforcement. IP&M 57(6), 2020, §3.2.1.)
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evenrank.data import formats
from evenrank.data.files import magic, writing
from evenrank.errors import InputError
from evenrank.stats import permutation
from evenrank.vectors.files import load
from evenrank.vectors.space import Floats, Vectors, numbers
from evenrank.vectors.words import (
    DEFINITION,
    STEREOTYPES,
    Pair,
    Stereotype,
    check_pairs,
    ordinary_places,
    read_pairs,
    specific_words,
)

_FEWEST = 3
_ROWS = 1 << 14

Pairs = Iterable[Iterable[str]] | str | os.PathLike[str]


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

    vector: npt.NDArray[np.float64]
    explained: npt.NDArray[np.float64]
    pairs: tuple[Pair, ...]
    left_out: tuple[Pair, ...] = ()

    def of(self, matrix: npt.NDArray[Any]) -> Floats:
        """The cosine of each row, of length 1, with the direction."""
        found = np.empty(len(matrix), np.float32)
        for start in range(0, len(matrix), _ROWS):
            found[start : start + _ROWS] = matrix[start : start + _ROWS] @ self.vector
        return found

    def to_dict(self) -> dict[str, Any]:
        """What made the direction, as plain values."""
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "left_out": [list(pair) for pair in self.left_out],
            "explained": [float(share) for share in self.explained],
        }


def find_direction(vectors: Vectors, pairs: Pairs | None = None) -> Direction:
    """The direction along which the words of the pairs differ most (Bolukbasi et al. 2016).

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
    UserWarning
        Names the pairs that are left out because a word has no vector.
    """
    wanted = _wanted(pairs)
    places = {pair: vectors.places(pair) for pair in wanted}
    used = tuple(pair for pair in wanted if places[pair].min() >= 0)
    left_out = tuple(pair for pair in wanted if pair not in used)
    if len(used) < _FEWEST:
        missing = ", ".join(sorted({word for pair in left_out for word in pair if word not in vectors}))
        raise InputError(
            f"only {len(used)} of {len(wanted)} pairs have vectors for both words, {_FEWEST} are needed; "
            f"without a vector: {missing or 'none'}"
        )
    if left_out:
        names = ", ".join(f"{first}–{second}" for first, second in left_out)
        warnings.warn(f"pairs left out, because a word has no vector: {names}", stacklevel=2)
    ends = np.array([vectors.matrix[places[pair]] for pair in used], np.float64)
    # The two rows of a pair, minus its centre, mirror each other: one of them says everything.
    halves = (ends[:, 0] - ends[:, 1]) / 2
    _, singular, components = np.linalg.svd(halves, full_matrices=False)
    variance = singular**2
    if not variance[0] > 1e-12:
        raise InputError("the words of the pairs do not differ; no direction follows from them")
    first = components[0] / np.linalg.norm(components[0])
    side = halves[0] @ first or (halves @ first).sum()
    return Direction(-first if side < 0 else first, variance / variance.sum(), used, left_out)


def _wanted(pairs: Pairs | None) -> tuple[Pair, ...]:
    if pairs is None:
        return DEFINITION
    return read_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else check_pairs(pairs)


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
        schema = schema.with_metadata(
            {_KEY.decode(): facts, **formats.metadata_checksum(schema, len(self), facts)}
        )
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
        table = formats.read_checked(path, _KEY)[0].combine_chunks()
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


DRAWS = 100_000


@dataclass(frozen=True)
class Association:
    """How much more female the second set of words is than the first.

    Attributes
    ----------
    name
        What is tested.
    male, female
        Mean g of the words that are held to be male, and of those held to be female.
    difference, low, high
        ``female − male`` and its confidence interval; positive: the stereotype is in the vectors.
    p
        One-sided: the share of ways to deal the same words into sets of these sizes that part the means
        at least as far. All ways up to a million, else 100,000 seeded draws with p = (b + 1) / (n + 1).
    effect
        Hedges' g: the difference in standard deviations.
    words
        How many words of the two sets have vectors.
    missing
        The words that have none, and are left out.
    published
        p with Google-News vectors, if the sets are those of the paper; printed as 0 where none was found.
    """

    name: str
    male: float
    female: float
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    effect: float | None
    words: tuple[int, int]
    missing: tuple[str, ...]
    published: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def association_test(
    male: Iterable[str],
    female: Iterable[str],
    source: Genderedness | Any = None,
    *,
    name: str = "",
    pairs: Pairs | None = None,
    seed: int = 0,
    published: float | None = None,
) -> Association:
    """Whether the second set of words leans more to the positive side than the first.

    Parameters
    ----------
    male, female
        The sets: the first is expected on the negative (male) side, the second on the positive.
    source
        What :func:`~evenrank.vectors.genderedness` takes: nothing for the shipped table,
        vectors, or a file.
    pairs
        Other pairs of words for another direction.

    Raises
    ------
    InputError
        A set has no word with a vector, or a word is in both sets.
    """
    table = genderedness(source, pairs=pairs)
    sets = tuple(dict.fromkeys(male)), tuple(dict.fromkeys(female))
    if both := set(sets[0]) & set(sets[1]):
        raise InputError(f"the word {sorted(both)[0]!r} is in both sets; leave it in one")
    values = [table.of(words) for words in sets]
    missing = tuple(
        word
        for words, found in zip(sets, values, strict=True)
        for word, unknown in zip(words, np.isnan(found), strict=True)
        if unknown
    )
    low_side, high_side = (_present(found, name) for found in values)
    test = permutation(high_side, low_side, alternative="greater", draws=DRAWS, seed=seed)
    return Association(
        name,
        float(low_side.mean()),
        float(high_side.mean()),
        test.difference,
        test.low,
        test.high,
        test.p,
        test.effect,
        (len(low_side), len(high_side)),
        missing,
        published,
    )


def association_tests(
    source: Genderedness | Any = None,
    *,
    stereotypes: Iterable[Stereotype] = STEREOTYPES,
    pairs: Pairs | None = None,
    seed: int = 0,
) -> list[Association]:
    """The stereotype association tests: agency–communion, science–arts, career–family, jobs."""
    table = genderedness(source, pairs=pairs)
    return [
        association_test(s.male, s.female, table, name=s.name, seed=seed, published=s.published)
        for s in stereotypes
    ]


def _present(values: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
    found = values[~np.isnan(values)]
    if not len(found):
        raise InputError(f"{name or 'the test'}: none of the words of a set has a vector")
    return found
