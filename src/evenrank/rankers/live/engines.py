"""From the URL of an engine, and its settings, to a ranker."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from evenrank.data.schema import listing, show
from evenrank.errors import InputError, closest_match
from evenrank.rankers.live.calls import Limits
from evenrank.rankers.live.http import HTTP, Elastic, ElasticSettings, HTTPSettings
from evenrank.rankers.live.postgres import Postgres, PostgresSettings, driver_settings
from evenrank.rankers.live.ranker import Engine, LiveRanker
from evenrank.rankers.live.secrets import Secrets, check_address, hidden
from evenrank.rankers.live.sqlite import SQLite, SQLiteSettings


class _Kind(NamedTuple):
    settings: type
    open: Callable[[str, Any, Limits, Secrets], Engine]
    own_query: bool = False
    """Whether what follows the question mark belongs to the engine, rather than holding settings."""
    workers: int = 4
    driver_settings: Callable[[], Iterable[str]] = tuple
    """Names of settings that are passed on to the engine's own library."""


def _sqlite(url: str, settings: SQLiteSettings, limits: Limits, _: Secrets) -> Engine:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"{hidden(url)}: write three slashes: sqlite:///{parts.netloc}{parts.path}")
    # As SQLAlchemy writes them: three slashes and a relative path, four and an absolute one.
    path = unquote(parts.path.removeprefix("/"))
    if not path:
        raise InputError(f"{hidden(url)}: the URL names no file; write it as sqlite:///file.db?table=docs")
    return SQLite(path, settings, timeout=limits.timeout)


def _postgres(url: str, settings: PostgresSettings, limits: Limits, secrets: Secrets) -> Engine:
    return Postgres(url, settings, timeout=limits.timeout, secrets=secrets)


def _elastic(url: str, settings: ElasticSettings, limits: Limits, secrets: Secrets) -> Engine:
    name, _, transport = urlsplit(url).scheme.partition("+")
    web = url.replace(url.partition(":")[0], transport or "http", 1)
    return Elastic(web, settings, timeout=limits.timeout, name=name, secrets=secrets)


def _http(url: str, settings: HTTPSettings, limits: Limits, secrets: Secrets) -> Engine:
    return HTTP(url, settings, timeout=limits.timeout, secrets=secrets)


_POSTGRES = _Kind(PostgresSettings, _postgres, driver_settings=driver_settings)
_ELASTIC = _Kind(ElasticSettings, _elastic)
_HTTP = _Kind(HTTPSettings, _http, own_query=True)
_KINDS = {
    # On the same machine: more threads would only wait for each other.
    "sqlite": _Kind(SQLiteSettings, _sqlite, workers=2),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    **{
        f"{name}{web}": _ELASTIC
        for name in ("elasticsearch", "opensearch")
        for web in ("", "+http", "+https")
    },
    "http": _HTTP,
    "https": _HTTP,
}


def engine(url: str, **settings: Any) -> LiveRanker:
    """The ranker behind a URL.

    =================================================== ==============================================
    ``sqlite:///file.db?table=docs``                    an FTS5 table; four slashes: an absolute path
    ``postgresql://user@host/db?table=docs&text=body``  a table of PostgreSQL
    ``elasticsearch://host:9200/index?text=body``       an index (``elasticsearch+https://`` over TLS)
    ``opensearch://host:9200/index?text=body``          the same, for OpenSearch
    ``https://host/search?q={query}&n={depth}``         anything that answers with JSON
    =================================================== ==============================================

    Parameters
    ----------
    url
        Where the engine is.
    settings
        Those of the engine (see :class:`SQLiteSettings`, :class:`PostgresSettings`,
        :class:`ElasticSettings`, :class:`HTTPSettings`) and of :class:`Limits`. Except with HTTP they may
        stand in the URL as well.
    """
    scheme = url.partition("://")[0].lower()
    kind = _KINDS.get(scheme) if "://" in url else None
    if kind is None:
        raise InputError(
            f"{hidden(url)}: not the URL of an engine; it begins with one of {listing(_KINDS, 20)}"
        )
    if scheme != "sqlite":
        check_address(url)
    secrets = Secrets(url)
    parts = None if kind.own_query else _split(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True) if parts is not None else []
    given = {"workers": kind.workers} | merged(pairs, settings)
    limits = take(Limits, given)
    own: Any = take(kind.settings, given)
    passed = {name: given.pop(name) for name in kind.driver_settings() if name in given}
    if parts is not None:
        url = url.partition("?")[0] + (f"?{urlencode(passed, quote_via=quote)}" if passed else "")
    refuse_rest(given, (kind.settings, Limits))
    with secrets.kept():
        return LiveRanker(kind.open(url, own, limits, secrets), limits, secrets)


def _split(url: str) -> Any:
    try:
        return urlsplit(url)
    except ValueError:  # whose message may quote a password
        raise InputError(f"{hidden(url)} cannot be read; check host and port") from None


T = TypeVar("T")


def merged(url: Iterable[tuple[str, str]], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; one that is given twice is refused rather than guessed."""
    result: dict[str, Any] = {}
    for name, value in (*url, *keywords.items()):
        if name in result:
            raise InputError(f"setting {name} is given twice")
        result[name] = value
    return result


def take(kind: type[T], given: dict[str, Any]) -> T:
    """An instance of a dataclass out of the settings that it has fields for; these leave `given`.

    A field that is a mapping takes ``name.key``: ``header.Accept=…`` for a field ``header``.
    """
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        if typing.get_origin(hint) is dict:
            prefix = f"{field.name}."
            entries = dict(given.pop(field.name, None) or {})
            for name in [name for name in given if name.startswith(prefix)]:
                entries[name.removeprefix(prefix)] = given.pop(name)
            value_type = typing.get_args(hint)[1]
            values[field.name] = {
                key: typed(f"{prefix}{key}", value, value_type) for key, value in entries.items()
            }
        elif field.name in given:
            values[field.name] = typed(field.name, given.pop(field.name), hint)
    return kind(**values)


def refuse_rest(given: Mapping[str, Any], kinds: Iterable[type]) -> None:
    """Complain of settings that nobody took."""
    if not given:
        return
    known = [
        f"{field.name}.NAME"
        if typing.get_origin(typing.get_type_hints(kind)[field.name]) is dict
        else field.name
        for kind in kinds
        for field in dataclasses.fields(kind)
    ]
    name = next(iter(given))
    near = closest_match(name, known)
    hint = f"; did you mean {near}?" if near else ""
    raise InputError(f"unknown setting {name}{hint} There are: {listing(known, 40)}")


def typed(name: str, value: Any, hint: Any) -> Any:
    """A value of the type that a field wants, also out of text."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        if value is None or value == "":
            return None
        return typed(name, value, kinds[0])
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if value in choices:
            return value
        raise InputError(f"{name} is {show(value)}; it must be {' or '.join(map(str, choices))}")
    if typing.get_origin(hint) is tuple:
        parts = value.split(",") if isinstance(value, str) else list(value)
        return tuple(part.strip() for part in map(str, parts) if part.strip())
    if hint is str:
        return str(value)
    try:
        if isinstance(value, bool):
            raise ValueError
        number = hint(value)
        if isinstance(value, float) and number != value:
            raise ValueError
    except (TypeError, ValueError):
        wanted = "a whole number" if hint is int else "a number"
        raise InputError(f"{name} is {show(value)}; it must be {wanted}") from None
    return number
