"""A lexicon: which words stand for which group; and dictionaries, lexicons of psychological characteristics.

A dictionary has many, overlapping categories. LIWC itself is proprietary and does not ship; who has a licence
gives the path of its ``.dic`` file. The open dictionary is original to this project and only an
approximation: what it finds is not what LIWC would find.
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

from evenrank.data.columns import listing
from evenrank.errors import InputError, nearest
from evenrank.text import wordlists
from evenrank.text.wordlists import Entry

if TYPE_CHECKING:
    from evenrank.text.matcher import Source


Words = Mapping[str, Iterable[str]]

_SHORT = {"f": "female", "m": "male", "female": "female", "male": "male"}
_FIRST = ("female", "male")  # always in this order, so that the sign of a measure never depends on a file
_RESERVED = {"doc_id", "tokens"}  # columns of every tally


@dataclass(frozen=True)
class Lexicon:
    """Words for each group, in order; female always comes before male.

    An entry is a word (``she``), a phrase of several tokens (``ex-boyfriend``, ``prime minister``), or
    a prefix (``wom*``). Entries are lower-cased and each stands once in its group.

    Attributes
    ----------
    name
        What reports call it.
    groups
        Group to words, read-only.
    language
        ISO 639-1 code of the words.
    source
        Where the words come from, to be cited.
    experimental
        True for a list that no study has validated.
    note
        What a user of the list should know.
    overlapping
        Whether a word may stand in several groups, as in a ``.dic``; in any other lexicon it may not.
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
        """Hex digest of what is counted: the groups in order, their words and whether they may overlap."""
        import xxhash

        content: list[Any] = [[group, sorted(words)] for group, words in self.groups.items()]
        if self.overlapping:  # a word may then count for several groups
            content.append("overlapping")
        canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return str(xxhash.xxh3_128_hexdigest(canonical.encode()))

    def select(self, groups: Sequence[str]) -> Lexicon:
        """The same lexicon with only these groups."""
        wanted = [groups] if isinstance(groups, str) else list(groups)
        if not wanted:
            raise InputError(f"lexicon {self.name!r}: name at least one group")
        wanted = [_group_name(group) for group in wanted]
        for group in wanted:
            if group not in self.groups:
                raise InputError(
                    f"lexicon {self.name!r} has no group {group!r}; {_choice(group, self.groups)}"
                )
        return replace(self, groups={group: self.groups[group] for group in wanted})

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, fit for JSON; :meth:`from_dict` takes them back."""
        facts = {key: getattr(self, key) for key in wordlists.FACTS}
        return {**facts, "groups": {group: list(words) for group, words in self.groups.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Lexicon:
        """The lexicon that :meth:`to_dict` described."""
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
    """The words whose occurrences are counted.

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
    found = _find(source)
    return found if groups is None else found.select(groups)


def shipped() -> list[str]:
    """Names of the lexicons that come with the package, in alphabetical order."""
    return sorted(
        file.name.removesuffix(".toml") for file in _data().iterdir() if file.name.endswith(".toml")
    )


def _data() -> Path:
    return Path(str(resources.files("evenrank.text"))) / "data"


def _find(source: Lexicon | Words | str | os.PathLike[str]) -> Lexicon:
    if isinstance(source, Lexicon):
        return source
    if isinstance(source, Mapping):
        return Lexicon("custom", source)  # type: ignore[arg-type]  # made tuples on the way in
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
    """Entries by group, checked, each word once; female and male first, the others as they appear."""
    groups: dict[str, dict[str, None]] = {}
    home: dict[str, str] = {}
    for entry in entries:
        word = _checked(entry, path)
        try:
            group = _group_name(entry.group)
        except InputError as error:  # only now: finding the line means a search through the file
            raise InputError(error.message, path=path, line=entry.line) from None
        other = home.setdefault(word, group)
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


def _checked(entry: Entry, path: Path | None) -> str:
    """The word lower-cased, with single spaces inside; an error if it could never be found in a text."""
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
    elif not _writable(word):
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
    if name in _RESERVED or name.endswith("_logwords") or not _writable(name):
        raise InputError(f"{name!r} cannot be the name of a group; choose another")
    return name


def _writable(text: str) -> bool:
    """No control characters and no halves of surrogate pairs, which JSON can smuggle in."""
    return not any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text)


def _choice(name: str, known: Iterable[str]) -> str:
    """ "did you mean …? there are: …" for a name that is not known."""
    known = list(known)
    close = nearest(name, known)
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
# The 22 dimensions by which the thesis compares documents: no totals, nothing of social.
DIMENSIONS = tuple(name for process in PROCESSES for name in TREE[process])
# All characteristics, each process before its parts.
CHARACTERISTICS = tuple(name for process, parts in TREE.items() for name in (process, *parts))

# What LIWC 2007, 2015 and 22 call them.
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


def characteristic(name: str) -> str:
    """Our name for a category: `posemo` is `positive`; a name that LIWC does not have stays as it is."""
    low = name.strip().lower()
    return _SYNONYMS.get(low, low if low in CHARACTERISTICS else name.strip())


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Each category by our name for it; where two would be called the same, the later keeps its own."""
    taken: dict[str, str] = {}
    for name in names:
        ours = characteristic(name)
        taken[name] = ours if ours not in taken.values() else name
    return taken


def dictionary(source: Source | None = None) -> Lexicon:
    """A dictionary of psychological characteristics, its categories under the names of `CHARACTERISTICS`.

    Parameters
    ----------
    source
        The path of a LIWC-style ``.dic``, or anything :func:`evenrank.lexicon` takes. Without it (or as
        ``"open-psychology"``) the open dictionary that ships with evenrank.

    Examples
    --------
    >>> dictionary().groups["female"][:3]
    ('abbess*', 'actress*', 'airwoman')
    """
    if source is None or source == OPEN:
        return _open()
    found = lexicon(source)
    names = renamed(found.groups)
    return replace(found, groups={names[group]: words for group, words in found.groups.items()})


def female_and_male(source: Source | None = None) -> Lexicon:
    """The two gender categories of a dictionary."""
    found = dictionary(source)
    missing = [name for name in ("female", "male") if name not in found.groups]
    if missing:
        raise InputError(
            f"the dictionary {found.name} has no category {' and no category '.join(missing)}; "
            f"it has: {listing(found.groups)}"
        )
    return found.select(("female", "male"))


@cache
def _open() -> Lexicon:
    return replace(
        lexicon(_data() / f"{OPEN}.dic"),
        source="evenrank",
        note="An approximation, original to this project; LIWC would find other words.",
    )
