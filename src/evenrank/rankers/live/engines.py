"""From the URL of an engine to a ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from evenrank.data.columns import listing
from evenrank.errors import InputError
from evenrank.rankers.live.calls import Limits
from evenrank.rankers.live.elastic import Elastic, ElasticSettings
from evenrank.rankers.live.http import HTTP, HTTPSettings
from evenrank.rankers.live.postgres import Postgres, PostgresSettings, driver_settings
from evenrank.rankers.live.ranker import Engine, LiveRanker
from evenrank.rankers.live.secrets import Secrets, check_address, hidden
from evenrank.rankers.live.settings import merged, refuse_rest, take
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
