"""Words and pairs of words from a user's files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from evenrank.data import door
from evenrank.data.columns import show
from evenrank.errors import InputError
from evenrank.vectors.wordsets import Pair

Source = str | os.PathLike[str]


def read_words(path: Source) -> list[str]:
    """Words from a file: one on each line, where ``#`` begins a remark; or a JSON list."""
    text = door.text(path)
    if text.lstrip().startswith("["):
        words = _json(text, path)
        if not all(isinstance(word, str) and word for word in words):
            raise InputError("expected a list of words", path=path)
    else:
        words = [line for _, line in door.lines(path)]
    if not words:
        raise InputError("there are no words in it", path=path)
    return words


def read_pairs(path: Source) -> tuple[Pair, ...]:
    """Pairs of words from a file: two on each line (between them a tab, a comma or spaces), or JSON.

    Lines that begin with ``#`` are remarks.
    """
    text = door.text(path)
    if text.lstrip().startswith("["):
        return check_pairs(_json(text, path), path=path)
    pairs: list[Pair] = []
    for number, line in door.lines(path):
        separator = "\t" if "\t" in line else "," if "," in line else None
        words = [word.strip() for word in line.split(separator)]
        if len(words) != 2 or not all(words):
            raise InputError(f"expected two words, found {show(line)}", path=path, line=number)
        pairs.append((words[0], words[1]))
    return check_pairs(pairs, path=path)


def check_pairs(pairs: Iterable[Any], *, path: Source | None = None) -> tuple[Pair, ...]:
    """The pairs as tuples, each once; an error if something among them is not two words."""
    found: dict[Pair, None] = {}
    for pair in pairs:
        words = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
        if len(words) != 2 or not all(isinstance(word, str) and word for word in words):
            raise InputError(f"expected pairs of two words, found {show(pair)}", path=path)
        found[words[0], words[1]] = None
    if not found:
        raise InputError("there are no pairs of words", path=path)
    return tuple(found)


def _json(text: str, path: Source) -> list[Any]:
    try:
        return list(json.loads(text))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not readable as JSON: {error}", path=path, line=line) from None
