"""Lexicons (words for each group) and dictionaries (lexicons of psychological characteristics).

A dictionary has many, overlapping categories. LIWC itself is proprietary and not included; with a licence,
give the path of its ``.dic`` file. The open dictionary is original to this project and an approximation: its
counts differ from those of LIWC.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evenrank.data.schema import listing
from evenrank.errors import InputError, closest_match
from evenrank.text import wordlists
from evenrank.text.wordlists import Entry

if TYPE_CHECKING:
    from evenrank.text.matcher import Source


Words = Mapping[str, Iterable[str]]

_SHORT = {"f": "female", "m": "male", "female": "female", "male": "male"}
_FIRST = ("female", "male")  # always first, so that the sign of a measure does not depend on the file
_RESERVED = {"doc_id", "tokens"}  # columns of every tally


@dataclass(frozen=True)
class Lexicon:
    """Words for each group, in order; female always comes before male.

    An entry is a word (``she``), a phrase of several tokens (``ex-boyfriend``, ``prime minister``), or
    a prefix (``wom*``). Entries are lower-cased and unique in their group.

    Attributes
    ----------
    name
        Its name in reports.
    groups
        Group to words, read-only.
    language
        ISO 639-1 code of the words.
    source
        Where the words come from, for citations.
    experimental
        Whether no study has validated the list.
    note
        Advice for users of the list.
    overlapping
        Whether a word may be in several groups, as in a ``.dic``.
    """

    name: str
    groups: Mapping[str, tuple[str, ...]]
    language: str = "en"
    source: str = ""
    experimental: bool = False
    note: str = ""
    overlapping: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Mapping):
            raise InputError(f"lexicon {self.name!r}: groups should map each group to its words")
        object.__setattr__(self, "groups", _grouped(wordlists.entries_of(self.groups), self.overlapping))

    @cached_property
    def hash(self) -> str:
        """Hex digest of the groups in order, their words and whether they may overlap."""
        import xxhash

        content: list[Any] = [[group, sorted(words)] for group, words in self.groups.items()]
        if self.overlapping:  # a word may then count for several groups
            content.append("overlapping")
        canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return str(xxhash.xxh3_128_hexdigest(canonical.encode()))

    def select(self, groups: Sequence[str]) -> Lexicon:
        """Return the lexicon with only these groups."""
        names = [_group_name(group) for group in ([groups] if isinstance(groups, str) else groups)]
        if not names:
            raise InputError(f"lexicon {self.name!r}: name at least one group")
        for group in names:
            if group not in self.groups:
                raise InputError(
                    f"lexicon {self.name!r} has no group {group!r}; {_choice(group, self.groups)}"
                )
        return replace(self, groups={group: self.groups[group] for group in names})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; :meth:`from_dict` is the inverse."""
        facts = {key: getattr(self, key) for key in wordlists.FACTS}
        return {**facts, "groups": {group: list(words) for group, words in self.groups.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Lexicon:
        """Return the lexicon that :meth:`to_dict` described."""
        if missing := {"name", "groups"} - set(values):
            raise InputError(f"a lexicon needs {' and '.join(sorted(missing))}")
        if unknown := set(values) - {*wordlists.FACTS, "groups"}:
            raise InputError(f"a lexicon has no {' or '.join(sorted(map(repr, unknown)))}")
        return cls(**values)

    def __hash__(self) -> int:
        return hash((self.name, self.hash))

    def __reduce__(self) -> tuple[Any, ...]:  # a read-only mapping cannot be pickled
        return Lexicon.from_dict, (self.to_dict(),)


def lexicon(
    source: Lexicon | Words | str | os.PathLike[str], *, groups: Sequence[str] | None = None
) -> Lexicon:
    """Open a lexicon.

    Parameters
    ----------
    source
        The name of a shipped lexicon (see :func:`shipped`), the path of a file (``word,group`` CSV or
        TSV, TOML, JSON, LIWC-style ``.dic``), a mapping from group to words, or a :class:`Lexicon`.
        In files and mappings ``f`` and ``m`` mean female and male.
    groups
        Keep only these groups; a ``.dic`` usually has many more categories than one measure needs.

    Raises
    ------
    InputError
        With file and line: an empty word, a star that is not at the end, a word in two groups, a
        malformed file.

    Examples
    --------
    >>> lexicon({"m": ["he", "his"], "f": ["she", "her"]}).groups["female"]
    ('she', 'her')
    """
    opened = _open_lexicon(source)
    return opened if groups is None else opened.select(groups)


@cache
def shipped() -> tuple[str, ...]:
    """Names of the shipped lexicons, in alphabetical order."""
    return tuple(sorted(file.stem for file in _data().iterdir() if file.suffix == ".toml"))


def _data() -> Path:
    return Path(str(resources.files("evenrank.text"))) / "data"


def _open_lexicon(source: Lexicon | Words | str | os.PathLike[str]) -> Lexicon:
    if isinstance(source, Lexicon):
        return source
    if isinstance(source, Mapping):
        return Lexicon("custom", source)  # type: ignore[arg-type]  # converted to tuples by Lexicon
    if not isinstance(source, (str, os.PathLike)):
        kind = type(source).__name__
        raise InputError(f"a lexicon is a name, a path or a mapping of groups to words, not {kind}")
    if isinstance(source, str) and source in shipped():
        return _shipped(source)
    path = Path(source)
    if isinstance(source, str) and not path.suffix and not path.exists() and path.name == source:
        raise InputError(f"there is no lexicon {source!r}; {_choice(source, shipped())}, or give a file")
    return _from_file(path)


@cache
def _shipped(name: str) -> Lexicon:
    return _from_file(_data() / f"{name}.toml")


def _from_file(path: Path) -> Lexicon:
    entries, facts = wordlists.read(path)
    if not entries:
        raise InputError("the file holds no words", path=path)
    grouped = _grouped(entries, facts.get("overlapping", False), path=path)
    return Lexicon(**{"name": path.stem, **facts, "groups": grouped})


def _grouped(
    entries: Iterable[Entry], overlapping: bool, *, path: Path | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Check and group the entries, each word once; female and male first, the others as they appear."""
    groups: dict[str, dict[str, None]] = {}
    group_of: dict[str, str] = {}
    for entry in entries:
        word = _normalised(entry, path)
        try:
            group = _group_name(entry.group)
        except InputError as error:  # finding the line means searching the file
            raise InputError(error.message, path=path, line=entry.line) from None
        other = group_of.setdefault(word, group)
        if other != group and not overlapping:
            raise InputError(
                f"the word {word!r} is in two groups, {other!r} and {group!r}; leave it in one",
                path=path,
                line=entry.line,
            )
        groups.setdefault(group, {})[word] = None
    if not groups:
        raise InputError("a lexicon needs at least one group with words", path=path)
    order = [
        *(group for group in _FIRST if group in groups),
        *(group for group in groups if group not in _FIRST),
    ]
    return MappingProxyType({group: tuple(groups[group]) for group in order})


def _normalised(entry: Entry, path: Path | None) -> str:
    """The word in lower case with single spaces; an error if it could never occur in a text."""
    problem = None
    # Character by character, as the tokenizers do: İ keeps its length.
    word = "".join(low if len(low := c.lower()) == 1 else c for c in " ".join(entry.word.split()))
    stem = word.removesuffix("*")
    if not stem.strip():
        problem = "an empty word" if not word else f"{word!r} would match every word"
    elif "*" in stem:
        problem = f"the star in {word!r} is not at the end; only prefixes such as 'wom*' are understood"
    elif stem.endswith(" "):
        problem = f"the star in {word!r} stands alone; only prefixes such as 'wom*' are understood"
    elif not _is_printable(word):
        problem = f"{word!r} holds a character that no text can hold"
    if problem:
        where = f"{problem} (group {entry.group!r})" if path is None else problem
        raise InputError(where, path=path, line=entry.line)
    return word


def _group_name(name: str) -> str:
    name = " ".join(name.split())
    name = _SHORT.get(name.lower(), name)
    if not name:
        raise InputError("a group without a name")
    if name in _RESERVED or name.endswith("_logwords") or not _is_printable(name):
        raise InputError(f"{name!r} cannot be the name of a group; choose another")
    return name


def _is_printable(text: str) -> bool:
    """Whether a text has no control characters and no lone surrogates, which JSON may contain."""
    return not any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text)


def _choice(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: "did you mean …? there are: …"."""
    known = list(known)
    close = closest_match(name, known)
    meant = f"did you mean {close!r}? " if close else ""
    return f"{meant}there are: {', '.join(known)}"


OPEN = "open-psychology"

# Process → characteristics, as in the thesis of A. Bigdeli, Section 3.1 (there the categories of LIWC 2015).
TREE: Mapping[str, tuple[str, ...]] = {
    "affect": ("positive", "negative", "anxiety", "anger", "sadness"),
    "cognition": ("insight", "cause", "discrepancy", "tentative", "certainty", "differentiation"),
    "drives": ("affiliation", "achievement", "power", "reward", "risk"),
    "concerns": ("work", "leisure", "home", "money", "religion", "death"),
    "social": ("family", "friends", "female", "male"),
}
PROCESSES = ("affect", "cognition", "drives", "concerns")
# The 22 dimensions with which the thesis compares documents: no totals, nothing of social.
DIMENSIONS = tuple(name for process in PROCESSES for name in TREE[process])
# All characteristics, each process before its parts.
CHARACTERISTICS = tuple(name for process, parts in TREE.items() for name in (process, *parts))

# Their names in LIWC 2007, 2015 and 22.
_SYNONYMS = {
    "posemo": "positive",
    "emo_pos": "positive",
    "negemo": "negative",
    "emo_neg": "negative",
    "anx": "anxiety",
    "emo_anx": "anxiety",
    "emo_anger": "anger",
    "sad": "sadness",
    "emo_sad": "sadness",
    "cogproc": "cognition",
    "cogmech": "cognition",
    "discrep": "discrepancy",
    "tentat": "tentative",
    "certain": "certainty",
    "certitude": "certainty",
    "differ": "differentiation",
    "excl": "differentiation",
    "affil": "affiliation",
    "achieve": "achievement",
    "relig": "religion",
    "friend": "friends",
    "drive": "drives",
}


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Map each category to our name for it, as `posemo` to `positive`; others stay.

    If two would get the same name, the later keeps its own.
    """
    taken: dict[str, str] = {}
    for name in names:
        low = name.strip().lower()
        ours = _SYNONYMS.get(low, low if low in CHARACTERISTICS else name.strip())
        taken[name] = ours if ours not in taken.values() else name
    return taken


def dictionary(source: Source | None = None) -> Lexicon:
    """Open a dictionary of psychological characteristics; categories are renamed to `CHARACTERISTICS`.

    Parameters
    ----------
    source
        The path of a LIWC-style ``.dic``, or anything :func:`evenrank.lexicon` takes; by default (or as
        ``"open-psychology"``) the open dictionary that ships with evenrank.

    Examples
    --------
    >>> dictionary().groups["female"][:3]
    ('abbess*', 'actress*', 'airwoman')
    """
    if source is None or source == OPEN:
        return _open()
    opened = lexicon(source)
    names = renamed(opened.groups)
    return replace(opened, groups={names[group]: words for group, words in opened.groups.items()})


def female_and_male(source: Source | None = None) -> Lexicon:
    """Return the two gender categories of a dictionary."""
    opened = dictionary(source)
    missing = [name for name in ("female", "male") if name not in opened.groups]
    if missing:
        raise InputError(
            f"the dictionary {opened.name} has no category {' and no category '.join(missing)}; "
            f"it has: {listing(opened.groups)}"
        )
    return opened.select(("female", "male"))


@cache
def _open() -> Lexicon:
    return replace(
        lexicon(_data() / f"{OPEN}.dic"),
        source="evenrank",
        note="An approximation, original to this project; LIWC would find other words.",
    )
