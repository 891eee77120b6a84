"""The rankers by name, and `er.search`: one call from queries to a run, whatever is searched.

Each family is imported when one of its names is asked for, not before.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from evenrank.data.files import is_model
from evenrank.data.read import read_queries
from evenrank.data.schema import show
from evenrank.errors import InputError, closest_match
from evenrank.rankers.base import Progress, Ranker, as_ranker
from evenrank.rankers.settings import convert, read_pairs

if TYPE_CHECKING:
    from evenrank.rankers.index import Index


class Entry(NamedTuple):
    """Where a ranker's factory is, and the arguments that its name stands for."""

    target: str  # module:function
    fixed: Mapping[str, Any] = {}
    indexed: bool = True  # does it search an index


_TWO_STAGE = "evenrank.rankers.neural.reranking:two_stage"
RANKERS: dict[str, Entry] = {
    "bm25": Entry("evenrank.rankers.lexical:bm25"),
    "qld": Entry("evenrank.rankers.lexical:qld"),
    "tfidf": Entry("evenrank.rankers.lexical:tfidf"),
    "bm25+rm3": Entry("evenrank.rankers.feedback:rm3", {"model": "bm25"}),
    "qld+rm3": Entry("evenrank.rankers.feedback:rm3", {"model": "qld"}),
    "w2v_add": Entry("evenrank.rankers.word_vectors:w2v_add"),
    "w2v_si": Entry("evenrank.rankers.word_vectors:w2v_si"),
    "dense": Entry("evenrank.rankers.dense:dense"),
    "hybrid": Entry(_TWO_STAGE, {"model": "hybrid"}),
    "cross-encoder": Entry(_TWO_STAGE, {"model": "cross-encoder"}),
    "llm": Entry(_TWO_STAGE, {"model": "llm"}),
    "perfect": Entry("evenrank.rankers.base:perfect", indexed=False),
    "random": Entry("evenrank.rankers.base:random", indexed=False),
}
_ENGINE = Entry("evenrank.rankers.remote:engine", indexed=False)


def names() -> tuple[str, ...]:
    """The names of all rankers."""
    return tuple(RANKERS)


def is_engine(where: object) -> bool:
    """Is this the address of a live engine, such as ``sqlite:///docs.db?table=docs``, or a function?"""
    return callable(where) or (isinstance(where, str) and "://" in where)


def needs_index(name: str) -> bool:
    """Does this ranker search an index? ``perfect`` and ``random`` are made from judgments."""
    return _entry(name).indexed


def make(name: str, *, index: Index | None = None, **settings: Any) -> Ranker:
    """The ranker of this name.

    Parameters
    ----------
    name
        One of :func:`names`, the folder of a trained ranker, or the address of a live engine.
    index
        What it searches. ``perfect``, ``random`` and live engines do without.
    settings
        Its parameters, such as ``k1=0.6``; what the ranker does not know is refused.
    """
    entry = _entry(name)
    factory = _factory(entry)
    if is_engine(name):  # which settings there are depends on the kind of engine; it checks them
        return factory(name, **settings)
    parameters = _parameters(name)
    values = convert(settings, _types(parameters), name)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in values:
            raise InputError(f"{name} needs the setting {key}")
    if entry.indexed and index is None:
        raise InputError(f"{name} searches an index; make one with: evenrank index DOCS -o IDX")
    return as_ranker(factory(index, **entry.fixed, **values), name if name in RANKERS else None)


def settings(name: str) -> tuple[str, ...]:
    """What can be set for a ranker."""
    return tuple(_parameters(name))


def parse_settings(name: str, given: Iterable[str]) -> dict[str, Any]:
    """Settings out of texts ``key=value``, each value of the type that the ranker wants."""
    pairs = read_pairs(given)
    if is_engine(name):  # which settings there are depends on the kind of engine; it checks them
        return pairs
    return convert(pairs, _types(_parameters(name)), name)


def _entry(name: str) -> Entry:
    if is_engine(name):
        return _ENGINE
    if name not in RANKERS and is_model(name):  # a folder that `evenrank train` wrote
        return Entry(_TWO_STAGE, {"model": str(name)})
    if not isinstance(name, str) or name not in RANKERS:
        close = closest_match(str(name), RANKERS)
        near = f"; did you mean {close}?" if close else ""
        raise InputError(f"unknown ranker {show(name)}; there are: {', '.join(RANKERS)}{near}")
    return RANKERS[name]


def _factory(entry: Entry) -> Callable[..., Any]:
    module, _, function = entry.target.partition(":")
    built: Callable[..., Any] = getattr(import_module(module), function)
    return built


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    """The settings of a ranker: the factory's arguments behind the first."""
    entry = _entry(name)
    parameters = list(inspect.signature(_factory(entry), eval_str=True).parameters.values())[1:]
    result = {
        each.name: each
        for each in parameters
        if each.kind is not each.VAR_KEYWORD and each.name not in entry.fixed
    }
    if entry.target == _TWO_STAGE:
        from evenrank.rankers.neural.reranking import setting_types

        for key, kind in setting_types(entry.fixed["model"]).items():
            result[key] = inspect.Parameter(
                key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
            )
    return result


def _types(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    return {
        key: str if each.annotation is each.empty else each.annotation for key, each in parameters.items()
    }


def search(
    where: Any,
    queries: Any,
    *,
    ranker: str = "bm25",
    depth: int = 1000,
    progress: Progress | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Rank documents for each query.

    Parameters
    ----------
    where
        An index, the path of one, or the address of a live engine (``sqlite:///…``, ``postgresql://…``,
        ``elasticsearch://…``, ``opensearch://…``, ``http://…``). Or a ranker of your own: an object with
        ``rank(queries, depth)`` that returns a run, or a function ``f(query, depth)`` that returns the
        results of one query. None for ``perfect`` and ``random``.
    queries
        Anything :func:`evenrank.data.read.read_queries` takes; or just a text or a list of texts, which are
        called q1, q2, ….
    ranker
        One of :func:`evenrank.rankers.names`; a live engine ranks by itself.
    depth
        Maximum number of documents per query.
    progress
        Called with (queries done, queries in all).
    settings
        The ranker's parameters, such as ``k1=0.6``.

    Returns
    -------
    A run table. Queries for which nothing is found are not in it.
    """
    requested = read_queries(_named_texts(queries))
    return ranker_for(where, ranker, **settings).rank(requested, depth=depth, progress=progress)


def _named_texts(queries: Any) -> Any:
    """Queries by id where only their texts are given: `"nurse"`, or `["nurse", "chief executive"]`."""
    if isinstance(queries, str):
        return queries if _names_a_file(queries) else {"q1": queries}
    if isinstance(queries, list) and queries and all(isinstance(text, str) for text in queries):
        return {f"q{place}": text for place, text in enumerate(queries, 1)}
    return queries


_FILE_NAME = re.compile(r"\.(tsv|csv|txt|jsonl|parquet|trec|topics|xml)(\.gz|\.zst)?$")


def _names_a_file(text: str) -> bool:
    """Whether a text is the name of a file of queries, such as `topics.tsv`, and not a query itself."""
    if text.startswith(("irds:", "/", "./", "../", "~/")) or Path(text).exists():
        return True
    could_be_a_path = "/" in text or not re.search(r"\s", text)
    return could_be_a_path and _FILE_NAME.search(text.lower()) is not None


def ranker_for(where: Any, name: str = "bm25", **settings: Any) -> Ranker:
    """The ranker of this name on an index, the live engine at this address, or a ranker of the user's own."""
    if hasattr(where, "rank"):
        if settings:
            raise InputError(f"{type(where).__name__} has its settings already; leave out {min(settings)}")
        return as_ranker(where)
    if is_engine(where):
        return make(where, **settings)
    if where is None:
        if needs_index(name):
            raise InputError(f"{name} searches an index; make one with: evenrank index DOCS -o IDX")
        return make(name, **settings)
    from evenrank.rankers.index import Index

    return make(name, index=Index.open(where), **settings)
