"""`er.swap`: the counterfactual twin of a text, with the other gender and everything else the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import format_suffix, writing
from evenrank.data.schema import ROWS, Block, show
from evenrank.errors import InputError
from evenrank.mitigate import swap_words as word_lists
from evenrank.mitigate.swap_words import Names
from evenrank.text.lexicon import Lexicon
from evenrank.text.lexicon import lexicon as as_lexicon
from evenrank.text.matcher import Matcher, Source, strings

_BLANKS = str.maketrans("\t\r\n", "   ")  # a line of TSV is one document
_HANGS_ON_CONTEXT = frozenset(("her", "his"))


class Mirrored(NamedTuple):
    """Texts with the other gender, and how many words of each gender the originals had swapped."""

    texts: pa.Array
    female: np.ndarray
    male: np.ndarray


def swap(x: Any, *, names: bool = True, lexicon: Source | None = "rekabsaz2020") -> Any:
    """The same text about the other gender: gendered words and given names are mirrored, both ways.

    Case is kept (she → he, She → He, SHE → HE), and so are possessives, contractions and hyphens. *Her*
    becomes *him* or *his*, *his* becomes *her* or *hers*, by what follows. Text without an ambiguous word,
    swapped twice, is what it was.

    Parameters
    ----------
    x
        A text; a list, Series or dict of texts; a table with a column ``text`` (queries, or
        documents); or a collection: a :class:`~pathlib.Path` or a :class:`~evenrank.data.docs.Docs` handle,
        which gives a handle that is mirrored as it is read.
    names
        Mirror given names too: the John of rank r among men's names becomes the Mary of rank r among women's
        (US census of 1990). Only capitalised ones, and only where they are clearly given names: names of both
        genders, places, surnames and ordinary words are left.
    lexicon
        The lexicon that the texts will be measured with. Its words get mirrors which it counts for the other
        gender, so that the tally of a mirrored text is the mirrored tally. None: each word gets its natural
        mirror, *grandmothers* → *grandfathers*.

    Examples
    --------
    >>> swap("Mary gave her brother his book, and he thanked her.")
    'John gave his sister her book, and she thanked him.'
    >>> swap(["the actress", "the king's daughters"])
    ['the actor', "the queen's sons"]
    """
    mirror = swapper(lexicon, names=names)
    if isinstance(x, str):
        return mirror.texts([x]).texts[0].as_py()
    if isinstance(x, pl.Series):
        return pl.Series(x.name, _many(mirror, x.to_list()), dtype=pl.String)
    if isinstance(x, pl.DataFrame):
        if "text" not in x.columns:
            raise InputError(f"swap needs a column text; found: {', '.join(x.columns[:6])}")
        return x.with_columns(swap(x["text"], names=names, lexicon=lexicon))
    if isinstance(x, Docs | os.PathLike):
        return mirror.docs(open_docs(Path(x) if isinstance(x, os.PathLike) else x))
    if isinstance(x, Mapping) and all(isinstance(text, str) for text in x.values()):
        return dict(zip(x, _many(mirror, list(x.values())), strict=True))
    if isinstance(x, Sequence) and all(isinstance(text, str) for text in x):
        return _many(mirror, x)
    raise InputError(f"{show(x)} cannot be swapped; give a text, texts, a table with text, or a collection")


def _many(mirror: Swapper, texts: Sequence[str | None]) -> list[str | None]:
    names: list[str | None] = []
    for start in range(0, len(texts), ROWS):
        part = texts[start : start + ROWS]
        turned = mirror.texts([text or "" for text in part]).texts.to_pylist()
        names += [None if text is None else new for text, new in zip(part, turned, strict=True)]
    return names


def swapper(lexicon: Source | None = "rekabsaz2020", *, names: bool = True) -> Swapper:
    """What :func:`swap` works with, made once for each lexicon."""
    return _swapper(None if lexicon is None else as_lexicon(lexicon), names)


@lru_cache(maxsize=8)
def _swapper(lexicon: Lexicon | None, names: bool) -> Swapper:
    return Swapper(lexicon, names=names)


class Swapper:
    """Mirrors texts, by one pass of the matcher; most words are a single look-up of their bytes.

    `words` are words and their mirrors.
    """

    def __init__(self, lexicon: Lexicon | None, *, names: bool = True) -> None:
        self.lexicon = lexicon
        self.words = word_lists.words(lexicon)
        self._titles = word_lists.titles()
        self._names: Names | None = word_lists.names() if names else None
        groups = {
            side: [*getattr(self.words, side), *getattr(self._titles, side)] for side in ("female", "male")
        }
        groups["female"].append("her")
        groups["male"] += ["his", "him"]
        self._unsure = set(_HANGS_ON_CONTEXT | word_lists.word_sets()["role_surnames"])
        self._unsure.update(self._titles.female, self._titles.male)
        self._only_names: set[str] = set()
        for known in (self._names.clear, self._names.wordlike) if self._names else ():
            groups["female"] += known.female
            groups["male"] += known.male
            self._only_names.update(known.female, known.male)
        self._unsure |= self._only_names
        self._matcher = Matcher(Lexicon("swap", {g: tuple(dict.fromkeys(w)) for g, w in groups.items()}))
        self._sure = self._surfaces()

    def texts(self, texts: pa.Array | Sequence[str]) -> Mirrored:
        """Mirror the texts of a batch (less than 2 GB)."""
        array = strings(texts)
        array = array if array.type == pa.string() else array.cast(pa.string())
        size = len(array)
        hits = self._matcher.find(array)
        counts = {"female": np.zeros(size, np.int64), "male": np.zeros(size, np.int64)}
        _, bounds, content = array.buffers()
        if content is None or hits.is_empty():
            return Mirrored(array, counts["female"], counts["male"])
        offsets = np.frombuffer(bounds, np.int32)[array.offset : array.offset + size + 1].astype(np.int64)
        data, at = content.to_pybytes(), int(offsets[0])
        rows = hits["row"].to_numpy()
        firsts, lasts = offsets[rows].tolist(), offsets[rows + 1].tolist()
        starts = (offsets[rows] + hits["start"].to_numpy()).tolist()
        ends = (offsets[rows] + hits["end"].to_numpy()).tolist()
        pieces: list[bytes] = []
        grown, swapped = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
        sure = self._sure
        places = zip(starts, ends, firsts, lasts, hits["word"].to_list(), strict=True)
        for hit, (start, end, first, last, word) in enumerate(places):
            new = sure.get(data[start:end])
            if new is None:
                new = self._careful(word, data, first, start, end, last)
                if new is None:
                    continue
            pieces += (data[at:start], new)
            at = end
            grown[hit] = len(new) - (end - start)
            swapped[hit] = True
        pieces.append(data[at : int(offsets[-1])])
        for side, count in counts.items():
            chosen = swapped & (hits["group"] == side).to_numpy()
            count += np.bincount(rows[chosen], minlength=size)
        lengths = np.diff(offsets) + np.bincount(rows, grown, minlength=size).astype(np.int64)
        new_offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        frame = pa.StringArray.from_buffers(size, pa.py_buffer(new_offsets), pa.py_buffer(b"".join(pieces)))
        return Mirrored(frame, counts["female"], counts["male"])

    def docs(self, docs: Docs) -> Docs:
        """A handle on the mirrored collection, which is mirrored as it is read."""

        def read(block: Block) -> pa.RecordBatch:
            batch = block.read()
            return pa.RecordBatch.from_arrays(
                [batch.column("doc_id"), self.texts(batch.column("text")).texts], ["doc_id", "text"]
            )

        def blocks() -> Iterator[Block]:
            for block in docs.blocks():
                yield Block(partial(read, block), block.size)

        return Docs(f"{docs.name}, mirrored", blocks, size=docs.size)

    def _surfaces(self) -> dict[bytes, bytes]:
        """The usual spellings of words whose mirror does not hang on the words around."""
        sure = {**self.words.female, **self.words.male, "him": "her"}
        result: dict[bytes, bytes] = {}
        for word, mirror in sure.items():
            if word in self._unsure:
                continue
            for surface in (word, word.capitalize(), word.upper()):
                result[surface.encode()] = _cased(mirror, surface).encode()
        return result

    def _careful(self, word: str, data: bytes, first: int, start: int, end: int, last: int) -> bytes | None:
        """The mirror of a word that hangs on those around it or is spelled oddly; None to leave it."""
        surface = data[start:end].decode()
        if word in self._only_names and not surface[:1].isupper():
            return None
        near = word_lists.around(data, first, start, end, last)
        mirror: str | None
        if word == "her":
            mirror = word_lists.her(near)
        elif word == "his":
            mirror = word_lists.his(near)
        else:
            mirror = self._mirror(word, surface, near)
        return None if mirror is None else _cased(mirror, surface).encode()

    def _mirror(self, word: str, surface: str, near: word_lists.Around) -> str | None:
        title = self._titles.of(word)
        if title is not None and word_lists.is_title(word, surface, near):
            return title
        known = self._names
        if known is None:
            return "her" if word == "him" else self.words.of(word)
        name = known.clear.of(word) or known.wordlike.of(word)
        if name is not None:
            return name if word_lists.is_given_name(word, surface, near, known) else None
        roles = word_lists.word_sets()["role_surnames"]
        if word in roles and word_lists.is_surname(surface, near, known):
            return None
        return "her" if word == "him" else self.words.of(word)


def _cased(word: str, like: str) -> str:
    """The word in capitals, capitalised or in lower case, as the other is."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word


def write_texts(parts: Iterable[tuple[list[str], list[str]]], path: str | os.PathLike[str], key: str) -> int:
    """Write ids and texts: JSONL if the file is called so, else TSV. Returns how many there were."""
    count = 0
    suffix = format_suffix(path)
    if suffix == ".parquet":
        raise InputError("texts are written as TSV or JSONL; end the name in .tsv or .jsonl", path=path)
    as_json = suffix in (".jsonl", ".ndjson")
    with writing(path) as out:
        for ids, texts in parts:
            rows = zip(ids, texts, strict=True)
            if as_json:
                lines = [json.dumps({key: each, "text": text}, ensure_ascii=False) for each, text in rows]
            else:
                lines = [f"{each}\t{text.translate(_BLANKS)}" for each, text in rows]
            out.write("".join(f"{line}\n" for line in lines).encode())
            count += len(lines)
    return count
