"""`er.variants`: queries that name no gender, rewritten for women and for men.

A lexicon of patterns does it, not a model: a word with two counterparts is replaced (*parents*), *female* and
*male* are put before a role (*famous engineers*), or the query is continued (*beauty tips for women*).
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

import polars as pl

from evenrank.data.read import read_queries, read_table
from evenrank.data.schema import Table, show
from evenrank.queries.words import data, gendered_words

SIDES = ("female", "male")
TRIPLES_SCHEMA = pl.Schema(dict.fromkeys(("triple_id", "neutral", *SIDES), pl.String))
_NAMES = {
    "triple_id": ("triple_id", "triple", "query_id", "qid", "id"),
    "neutral": ("neutral",),
    "female": ("female",),
    "male": ("male",),
    "topic": ("topic",),
    "stereotype": ("stereotype",),
}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Patterns:
    """How queries are rewritten.

    Attributes
    ----------
    replaced
        Words and their female and male counterparts.
    added
        What is added at the end: by `asking` or `naming`, with `_of_children` where a query is about them.
    roles, first, asking, children
        Words that *female* is put before; words that come before it; words by which a query asks what to do;
        words of small children.
    """

    replaced: Mapping[str, Pair]
    added: Mapping[str, Pair]
    roles: frozenset[str]
    first: frozenset[str]
    asking: frozenset[str]
    children: frozenset[str]

    def write(self, text: str) -> Pair:
        """The female and the male variant of a query."""
        rows = [(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
        hits = [(start, end, self.replaced[word]) for start, end, word in rows if word in self.replaced]
        if hits:
            return self._replaced(text, hits, 0), self._replaced(text, hits, 1)
        words = [word for _, _, word in rows]
        place = self._before_role(words)
        if place is not None:
            at = rows[place][0]
            return f"{text[:at]}female {text[at:]}", f"{text[:at]}male {text[at:]}"
        kind = "asking" if words and (words[0] in self.asking or {*words} & {"i", "my", "me"}) else "naming"
        if self.children & {*words}:
            kind += "_of_children"
        end = rows[-1][1] if rows else len(text)
        female, male = (f"{text[:end]} {ending}{text[end:]}" for ending in self.added[kind])
        return female, male

    def _before_role(self, words: list[str]) -> int | None:
        """Where *female* goes: before the first role and what describes it."""
        for i, word in enumerate(words):
            if not ({word, word.removesuffix("s"), word.removesuffix("es")} & self.roles):
                continue
            if i == 0 and word.startswith("beginner"):  # "beginner exercises" are no exercises of beginners
                continue
            while i and words[i - 1] not in self.first and not _ends_a_phrase(words[i - 1]):
                i -= 1
            return i
        return None

    @staticmethod
    def _replaced(text: str, hits: list[tuple[int, int, Pair]], side: int) -> str:
        pieces, at = [], 0
        for start, end, pair in hits:
            new = pair[side]
            pieces += [text[at:start], new.capitalize() if text[start].isupper() else new]
            at = end
        return "".join([*pieces, text[at:]])


def _ends_a_phrase(word: str) -> bool:
    return word[0].isdigit() or word.endswith(("ing", "'s", "’s"))


@lru_cache(maxsize=1)
def shipped() -> Patterns:
    """The patterns that come with the package."""
    read: dict[str, Any] = tomllib.loads((data() / "variants.toml").read_text(encoding="utf-8"))
    lists = {name: frozenset(words.split()) for name, words in read["words"].items()}
    pairs = {part: {k: (f, m) for k, (f, m) in read[part].items()} for part in ("replaced", "added")}
    built: dict[str, Any] = {**pairs, **lists}
    return Patterns(**built)


def learned(written: Any) -> Patterns:
    """The shipped patterns, and what triples that people wrote add to them.

    Words they replaced are replaced likewise, by their most frequent choice; words that stood before an
    inserted *female* come before it.

    Parameters
    ----------
    written
        A table of triples, see :func:`triples`.
    """
    replaced: dict[str, Counter[Pair]] = defaultdict(Counter)
    first: set[str] = set()
    for _, neutral, female, male in triples(written).select(TRIPLES_SCHEMA.names()).iter_rows():
        words = neutral.lower().split()
        edits = [_edits(words, side.lower().split()) for side in (female, male)]
        if len(edits[0]) != len(edits[1]):
            continue
        for (kind, start, end, new), (_, _, _, other) in zip(*edits, strict=True):
            if kind == "replace" and end - start == 1:
                replaced[words[start]][new, other] += 1
            if kind == "insert" and new == "female" and 0 < start < len(words):
                first.add(words[start - 1])
    base = shipped()
    chosen = {word: counts.most_common(1)[0][0] for word, counts in replaced.items()}
    return Patterns(
        {**base.replaced, **chosen}, base.added, base.roles, base.first | first, base.asking, base.children
    )


def _edits(before: list[str], after: list[str]) -> list[tuple[str, int, int, str]]:
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(kind, a, b, " ".join(after[c:d])) for kind, a, b, c, d in codes if kind != "equal"]


def variants(queries: Any, *, like: Any = None) -> pl.DataFrame:
    """Each query for women and for men, written by a lexicon of patterns.

    Queries that already hold a word of a gender are left out: they have no neutral form.

    Parameters
    ----------
    queries
        Anything :func:`evenrank.data.read.read_queries` takes.
    like
        Triples that people wrote (triple_id, neutral, female, male), as a model for the variants.

    Returns
    -------
    A table of ``triple_id`` (the query's id), ``neutral``, ``female``, ``male``.

    Examples
    --------
    >>> variants({"a": "famous engineers", "b": "Do parents worry?"})["female"].to_list()
    ['famous female engineers', 'Do mothers worry?']
    """
    requested = read_queries(queries)
    patterns = shipped() if like is None else learned(like)
    gendered = gendered_words()
    rows = [
        (query, text, *patterns.write(text))
        for query, text in requested.iter_rows()
        if not any(word.lower() in gendered for word in _WORD.findall(text))
    ]
    return pl.DataFrame(rows, schema=TRIPLES_SCHEMA, orient="row")


def triples(x: Any) -> pl.DataFrame:
    """A table of triples: triple_id, neutral, female, male; perhaps topic, stereotype (female or male)."""
    table = read_table(x, _NAMES, optional=("topic", "stereotype"))
    table.require_unique("triple_id")
    frame = pl.DataFrame([triple_column(table, name) for name in table.frame.columns])
    refuse_marked(table, frame["triple_id"])
    return frame


def triple_column(table: Table, name: str) -> pl.Series:
    """A column of triples, checked: topic and stereotype may be missing, and then are null."""
    if name not in ("topic", "stereotype"):
        return table.ids(name)
    column = table.text(name).replace("", None)
    if name == "stereotype":
        known = [*SIDES, "none", "neutral"]
        bad = column.is_not_null() & ~column.is_in(known)
        table.refuse(bad, lambda row: f"stereotype is {show(column[row])}; it must be female or male")
    return column


def refuse_marked(table: Table, ids: pl.Series) -> None:
    """Refuse ids of triples that would be taken for those of variants."""
    for side in SIDES:
        ends = f"#{side}"  # as in the ids that `measures.query_variants` gives to variants
        table.refuse(
            ids.str.ends_with(ends),
            f"triple_id ends in {ends}, which stands for a variant; give it another",
        )
