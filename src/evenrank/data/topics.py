"""Queries in a file: TSV, JSONL, Parquet; or TREC topics, ``<top>`` with ``<num>`` and ``<title>``.

Known genders of queries: ``query_id<TAB>label``, with or without the text between, or a CSV.
"""

from __future__ import annotations

import os
import re

import polars as pl

from evenrank.data import door, files, jsonl, lines, parquet
from evenrank.data.columns import GENDER, QUERY_ID, QUERY_TEXT, header, listing, pick, refuse_repeats, show
from evenrank.errors import InputError, nearest

_START = re.compile(r"<top(?:ic)?(\s[^<>]*+)?+>", re.IGNORECASE)
_END = re.compile(r"</top(?:ic)?>", re.IGNORECASE)
_BETWEEN = re.compile(r"</topics>|<!--[^>]*+>", re.IGNORECASE)
_STRAY = re.compile(r"\S")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_-]*+)[^<>]*+>")
_NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_NUMBER_LABEL = re.compile(r"number\s*:\s*", re.IGNORECASE)
_TITLE_LABEL = re.compile(r"topic\s*:\s*", re.IGNORECASE)
_PROLOGUE = re.compile(r"\s*+(?:<\?xml|<!--|<topics)[^>]*+>", re.IGNORECASE)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_TITLES = ("title", "query")


def looks_like(text: str) -> bool:
    """Does this file start with a topic, after what XML may put before it?"""
    at = 0
    while skipped := _PROLOGUE.match(text, at):
        at = skipped.end()
    return _START.match(text[at : at + 10_000].lstrip()) is not None


def parse(text: str, path: str | os.PathLike[str]) -> tuple[list[str], list[str], list[int]]:
    """Ids, titles, and the line on which each topic starts."""
    ids: list[str] = []
    titles: list[str] = []
    lines: list[int] = []
    starts = list(_START.finditer(text))
    line, seen = 1, 0
    for start, following in zip(starts, [*starts[1:], None], strict=False):
        line += text.count("\n", seen, start.start())
        seen = start.start()
        until = following.start() if following else len(text)
        if end := _END.search(text, start.end(), until):
            stray = _STRAY.search(_BETWEEN.sub(lambda match: " " * len(match[0]), text[end.end() : until]))
            if stray:
                stray_line = line + text.count("\n", seen, end.end() + stray.start())
                raise InputError("text between topics", path=path, line=stray_line)
            until = end.start()
        query_id, title = _topic(start[1] or "", _parts(text[start.end() : until]), path, line)
        ids.append(query_id)
        titles.append(title)
        lines.append(line)
    return ids, titles, lines


def _topic(
    attributes: str, parts: dict[str, str], path: str | os.PathLike[str], line: int
) -> tuple[str, str]:
    number = _NUMBER.search(attributes)
    query_id = _bare(parts["num"], _NUMBER_LABEL) if "num" in parts else number[1] if number else ""
    if len(query_id.split()) != 1:
        raise InputError("a topic without a number; expected <num> Number: 301", path=path, line=line)
    title = next((parts[name] for name in _TITLES if name in parts), None)
    if title is None:
        raise InputError(f"a topic without <title>; found {listing(parts)}", path=path, line=line)
    return query_id, _bare(title, _TITLE_LABEL)


def _bare(content: str, label: re.Pattern[str]) -> str:
    """Without the word that classic topics put before the value: ``Number: 301``."""
    match = label.match(content)
    return content[match.end() :] if match else content


def _parts(body: str) -> dict[str, str]:
    """What stands after each tag up to the next one, in one line each; the first of a name counts."""
    parts: dict[str, str] = {}
    tags = list(_TAG.finditer(body))
    for tag, following in zip(tags, [*tags[1:], None], strict=False):
        if tag[1]:
            continue
        content = body[tag.end() : following.start() if following else len(body)]
        content = re.sub("|".join(_ENTITIES), lambda match: _ENTITIES[match[0]], content)
        parts.setdefault(tag[2].lower(), " ".join(content.split()))
    return parts


Path = str | os.PathLike[str]


def read(path: Path) -> tuple[pl.DataFrame, bool]:
    """``query_id`` and ``text``, checked; or, with False, the columns of a Parquet file as they are."""
    if os.path.isfile(path) and files.magic(path) == parquet.MAGIC:  # noqa: PTH113
        return parquet.frame(path, {*QUERY_ID, *QUERY_TEXT}), False
    raw = files.whole(path)
    files.check_utf8(raw, path)
    data = raw.tobytes()
    first = data.split(b"\n", 1)[0].removesuffix(b"\r")
    if jsonl.is_json(path, first):
        found = list(jsonl.parse_object(first, path, 1))
        fields = (pick(found, QUERY_TEXT, path=path, line=1),)
        batch = jsonl.parse(raw, jsonl.keys(first, ids=QUERY_ID, fields=fields, path=path), path)
        line = 1
    elif files.format_suffix(path) != ".tsv" and looks_like(text := data.decode()):
        return _topics(text, path), True
    else:
        names = header(first, {*QUERY_ID, *QUERY_TEXT}, needs=(QUERY_ID, QUERY_TEXT))
        fields = (pick(names, QUERY_TEXT, path=path, line=1),) if names else ("text",)
        layout = lines.layout(first, ids=QUERY_ID, fields=fields, path=path)
        batch = lines.parse(raw, layout, path)
        line = 2 if layout.header else 1
        if not len(batch):
            raise InputError("the file has no rows", path=path)
    columns = zip(("query_id", "text"), batch.columns, strict=True)
    frame = pl.DataFrame({name: pl.from_arrow(column) for name, column in columns})
    refuse_repeats(frame, ["query_id"], path=path, line=line)
    return frame, True


def _topics(text: str, path: Path) -> pl.DataFrame:
    ids, titles, lines = parse(text, path)
    first: dict[str, int] = {}
    for query_id, line in zip(ids, lines, strict=True):
        if query_id in first:
            problem = f"topic {show(query_id)} was already on line {first[query_id]}"
            raise InputError(problem, path=path, line=line)
        first[query_id] = line
    return pl.DataFrame({"query_id": ids, "text": titles})


SPELLINGS = {
    "neutral": ("n", "neutral", "nongendered", "nogender", "genderneutral", "none"),
    "female": ("f", "female", "females", "woman", "women"),
    "male": ("m", "male", "males", "man", "men"),
    "other": ("o", "other", "multiple", "both", "otherormultiple", "otherormultiplegenders", "othermultiple"),
}
"""The classes of queries, each with its spellings as :func:`plain` leaves them."""
_GENDERS = {spelling: gender for gender, spellings in SPELLINGS.items() for spelling in spellings}
_GENDERS["unknown"] = "other"  # what a classifier says when it abstains


def plain(label: str) -> str:
    """A label without case, blanks and punctuation: ``Non-gendered`` is ``nongendered``."""
    return re.sub(r"[\W_]+", "", label).casefold()


def known_gender(label: str) -> str:
    """``female``, ``male``, ``neutral`` or ``other``; any other label is a mistake, and an error."""
    gender = _GENDERS.get(plain(label))
    if gender is None:
        near = nearest(plain(label), [spelling for spelling in _GENDERS if len(spelling) > 1])
        hint = f"did you mean {near!r}?" if near else f"use one of {listing(SPELLINGS)}"
        raise InputError(f"unknown label {show(label)}; {hint}")
    return gender


def read_genders(path: str | os.PathLike[str]) -> pl.DataFrame:
    """``query_id`` and ``gender`` from a file of tab- or comma-separated columns, or Parquet."""
    return read_labelled(path).select("query_id", "gender")


def read_labelled(path: str | os.PathLike[str]) -> pl.DataFrame:
    """``query_id``, ``gender``, and ``text`` where the file has it."""
    frame, line = door.read(
        path,
        layouts=(("query_id", "label"), ("query_id", "text", "label")),
        known={*QUERY_ID, *QUERY_TEXT, *GENDER},
        needs=(QUERY_ID, GENDER),
    )
    names = {"query_id": QUERY_ID, "text": QUERY_TEXT, "gender": GENDER}
    table = door.Table(frame, path, line).renamed(names, optional=("text",))
    if table.frame.is_empty():
        raise InputError("the file has no rows", path=path)
    ids, labels = (table.texts(name) for name in ("query_id", "gender"))
    table.refuse((ids == "") | (labels.str.strip_chars() == ""), "the query_id or the label is empty")
    genders = []
    for row, label in enumerate(labels):
        try:
            genders.append(known_gender(label))
        except InputError as error:
            raise table.error(error.message, row) from None
    table.once("query_id")
    return table.frame.with_columns(ids, pl.Series("gender", genders, dtype=pl.String))
