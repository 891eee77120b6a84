"""Files of words: ``word,group`` CSV, TOML, JSON, and LIWC-style ``.dic``, each read into plain entries.

Nothing is decided here about what a good lexicon is; :mod:`evenrank.text.lexicon` does that with the
entries and their line numbers.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from evenrank.data.files import one_line, reading
from evenrank.data.formats import json_value
from evenrank.data.schema import show
from evenrank.errors import InputError

# What a TOML or JSON file may say about itself beside its ``groups`` table.
FACTS: Mapping[str, type] = {
    "name": str,
    "language": str,
    "source": str,
    "experimental": bool,
    "note": str,
    "overlapping": bool,
}
_WORD_COLUMNS = {"word", "words", "term", "token", "entry"}
_GROUP_COLUMNS = {"group", "groups", "gender", "label", "category"}

_LONGEST_GROUP = 80
"""Characters of a group's name; what is longer is a document that was taken for a word list."""


class Entry(NamedTuple):
    """One word of one group, and its line; or the text of the file, to look for the line when needed."""

    word: str
    group: str
    number: int | None = None
    text: str = ""

    @property
    def line(self) -> int | None:
        """The line the word stands on, None if unknown. It may have to be searched for."""
        return _line_of(self.text, self.word) if self.number is None else self.number


WordList = tuple[list[Entry], dict[str, Any]]
"""What a file holds: its entries in file order, and what it says about itself."""


def read(path: Path) -> WordList:
    """Read a file of words; its ending says how."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        endings = ", ".join(sorted(_READERS))
        raise InputError(f"a lexicon file ends in one of {endings}; rename or convert it", path=path)
    return reader(_text(path), path)


def entries_of(groups: Mapping[Any, Any], *, path: Path | None = None, text: str = "") -> list[Entry]:
    """Entries of a mapping from group to words; `text` is where errors look for the line of a word."""
    entries: list[Entry] = []
    for group, words in groups.items():
        if not isinstance(group, str):
            raise InputError(f"a group is named by text, not by {group!r}", path=path)
        if isinstance(words, (str, bytes, Mapping)) or not isinstance(words, Iterable):
            kind = type(words).__name__
            raise InputError(
                f"group {group!r} holds {kind}, not a list of words; metadata goes beside a 'groups' table",
                path=path,
            )
        before = len(entries)
        ordered = sorted(words, key=str) if isinstance(words, (set, frozenset)) else words
        for word in ordered:
            if not isinstance(word, str):
                raise InputError(f"group {group!r} holds {word!r}, which is not a word", path=path)
            entries.append(Entry(word, group, text=text))
        if len(entries) == before:
            raise InputError(f"group {group!r} has no words", path=path)
    return entries


def _text(path: Path) -> str:
    """The file as text: UTF-8 with or without BOM, any line ends."""
    if "\0" in str(path):
        raise InputError("no file has such a name", path=path)
    with reading(path):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("bytes that are not UTF-8; save the file as UTF-8", path=path, line=line) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InputError("the file is empty; it should hold words and their groups", path=path)
    return text


def _read_columns(text: str, path: Path, delimiter: str) -> WordList:
    """``word,group`` on every line, with or without a header."""
    entries = []
    flip = False
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    first = True
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                if len(cells) > 1:
                    raise InputError("a line without a word", path=path, line=rows.line_num)
                continue
            if len(cells) != 2:
                raise InputError(
                    f"expected two columns (word{delimiter!r}group), found {len(cells)}",
                    path=path,
                    line=rows.line_num,
                )
            if first:
                first = False
                names = [cell.lower() for cell in cells]
                flip = names[0] in _GROUP_COLUMNS and names[1] in _WORD_COLUMNS
                if flip or (names[0] in _WORD_COLUMNS and names[1] in _GROUP_COLUMNS):
                    continue
            word, group = reversed(cells) if flip else cells
            if len(group) > _LONGEST_GROUP:
                problem = f"the group is {show(group)}; this holds texts, not words and their groups"
                raise InputError(problem, path=path, line=rows.line_num)
            entries.append(Entry(word, group, rows.line_num))
    except csv.Error as error:
        raise InputError(f"not readable as CSV: {error}", path=path, line=rows.line_num) from None
    return entries, {}


def _read_toml(text: str, path: Path) -> WordList:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        result = re.search(r"at line (\d+)", str(error))
        line = int(result[1]) if result else text.rstrip().count("\n") + 1  # "at end of document"
        raise InputError(f"not readable as TOML: {one_line(error)}", path=path, line=line) from None
    return _of_content(content, text, path)


def _read_json(text: str, path: Path) -> WordList:
    content = json_value(text, path)
    if not isinstance(content, dict):
        raise InputError('expected {"group": ["word", ...], ...}', path=path)
    return _of_content(content, text, path)


def _of_content(content: dict[str, Any], text: str, path: Path) -> WordList:
    """Either ``{group: words}``, or a ``groups`` table with facts beside it."""
    if not isinstance(content.get("groups"), dict):
        return entries_of(content, path=path, text=text), {}
    facts = {key: value for key, value in content.items() if key != "groups"}
    for key, value in facts.items():
        if key not in FACTS:
            known = ", ".join(FACTS)
            raise InputError(f"unknown key {key!r} beside 'groups'; known are {known}", path=path)
        if not isinstance(value, FACTS[key]):
            raise InputError(f"{key} should be {FACTS[key].__name__}, not {value!r}", path=path)
    return entries_of(content["groups"], path=path, text=text), facts


def _read_dic(text: str, path: Path) -> WordList:
    """Categories (``1<tab>female``) between two ``%`` lines, then entries (``wom*<tab>1<tab>2``).

    Categories that no entry belongs to (headings of the tree) do not become groups.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in lines if line]
    if lines[0][1] != "%":
        raise InputError("a .dic file starts with a line that is just %", path=path, line=lines[0][0])
    close = next((i for i, (_, line) in enumerate(lines) if i and line == "%"), None)
    if close is None:
        raise InputError("the second % line, which ends the categories, is missing", path=path)
    categories: dict[int, str] = {}
    for number, line in lines[1:close]:
        key, _, name = re.sub(r"\s+", "\t", line, count=1).partition("\t")
        name = re.sub(r"(?<!\s)\s++\(.*\)$", "", name).strip()  # LIWC 2015 adds "(Function Words)"
        if not _is_number(key) or not name:
            raise InputError(f"expected 'number<tab>category', found {line!r}", path=path, line=number)
        if int(key) in categories or name in categories.values():
            raise InputError(f"category {key} {name} is declared twice", path=path, line=number)
        categories[int(key)] = name
    return _dic_entries(lines[close + 1 :], categories, path), {"overlapping": True}


def _dic_entries(lines: list[tuple[int, str]], categories: dict[int, str], path: Path) -> list[Entry]:
    entries = []
    for number, line in lines:
        if "\t" in line:
            word, _, rest = line.partition("\t")
            keys = rest.split()
        else:  # spaces only: the numbers at the end are the categories
            pieces = line.split()
            cut = len(pieces)
            while cut and _is_number(pieces[cut - 1]):
                cut -= 1
            word, keys = " ".join(pieces[:cut]), pieces[cut:]
        if not keys:
            raise InputError(f"the entry {word!r} names no category", path=path, line=number)
        for key in keys:
            if not _is_number(key):
                message = f"{key!r} is not a category number; conditional entries are not supported"
                raise InputError(message, path=path, line=number)
            if int(key) not in categories:
                raise InputError(
                    f"category {key} is not declared between the % lines", path=path, line=number
                )
            entries.append(Entry(word, categories[int(key)], number))
    # Groups appear in the order of their declaration, not of their first word.
    rank = {name: i for i, name in enumerate(categories.values())}
    return sorted(entries, key=lambda entry: rank[entry.group])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _line_of(text: str, word: str) -> int | None:
    """The last line on which `word` stands in quotes: where a repeated word is repeated."""
    place = max(text.rfind(f'"{word}"'), text.rfind(f"'{word}'"))
    return None if place < 0 else text.count("\n", 0, place) + 1


_READERS: dict[str, Callable[[str, Path], WordList]] = {
    ".csv": partial(_read_columns, delimiter=","),
    ".tsv": partial(_read_columns, delimiter="\t"),
    ".toml": _read_toml,
    ".json": _read_json,
    ".dic": _read_dic,
}
