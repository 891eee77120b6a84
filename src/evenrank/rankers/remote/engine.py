"""From the URL of a search engine, or a function, to a ranker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from evenrank.data.schema import listing, show
from evenrank.errors import InputError
from evenrank.rankers.remote.json_engine import ElasticSettings, JSONEngine, JSONSettings, elastic_engine
from evenrank.rankers.remote.ranker import Engine, FunctionEngine, RemoteRanker
from evenrank.rankers.remote.requests import Limits
from evenrank.rankers.remote.secrets import Secrets, hidden
from evenrank.rankers.remote.sql_engine import PostgresEngine, SQLiteEngine, SQLSettings
from evenrank.rankers.settings import build, setting_types

_HTTP = ("http", "https")
_POSTGRES = ("postgresql", "postgres")
_ELASTIC = tuple(
    f"{name}{transport}" for name in ("elasticsearch", "opensearch") for transport in ("", "+http", "+https")
)
SCHEMES = ("sqlite", *_POSTGRES, *_ELASTIC, *_HTTP)


def engine(where: str | Callable[..., Any], **settings: Any) -> RemoteRanker:
    """Return the ranker behind a URL, or around a function.

    =========================================== ======================================================
    ``sqlite:///file.db?table=docs``            an FTS5 table (four slashes: an absolute path)
    ``postgresql://user@host/db?table=docs``    a table, or a query in SQL
    ``elasticsearch://host:9200/index``         an index; ``elasticsearch+https://`` over TLS
    ``opensearch://host:9200/index``            the same, for OpenSearch
    ``https://host/search?q={query}&n={depth}`` anything that answers with JSON
    a function ``f(query)`` or ``f(query, k)``  ids, (id, score, text) or dicts, best first
    =========================================== ======================================================

    Parameters
    ----------
    where
        Where the engine is.
    settings
        Those of the engine (see :class:`SQLSettings`, :class:`ElasticSettings`, :class:`JSONSettings`) and
        of :class:`Limits`. Except with HTTP they may stand in the URL as well: ``sqlite:///file.db?table=docs``.
    """
    if callable(where):
        (limits,) = build(settings, Limits, owner="a function")
        return RemoteRanker(FunctionEngine(where), limits)
    scheme = where.partition("://")[0].lower()
    if "://" not in where or scheme not in SCHEMES:
        raise InputError(
            f"{hidden(where)}: not the URL of an engine; it begins with one of {listing(SCHEMES, 20)}"
        )
    secrets = Secrets(where)
    if scheme not in _HTTP:
        where, settings = _split(where, settings, passed_on=scheme in _POSTGRES)
    if scheme in _HTTP:
        own, limits = build(settings, JSONSettings, Limits, owner="an engine behind HTTP")
    elif scheme in _ELASTIC:
        own, limits = build(settings, ElasticSettings, Limits, owner="an index")
    else:
        own, limits = build(settings, SQLSettings, Limits, owner="a database")
    with secrets.hide_in_errors():
        if scheme in _HTTP:
            adapter: Engine = JSONEngine(where, own, timeout=limits.timeout, secrets=secrets)
        elif scheme in _ELASTIC:
            adapter = elastic_engine(where, own, timeout=limits.timeout, secrets=secrets)
        elif scheme == "sqlite":
            adapter = SQLiteEngine(where, own, timeout=limits.timeout)
        else:
            adapter = PostgresEngine(where, own, timeout=limits.timeout, secrets=secrets)
    return RemoteRanker(adapter, limits, secrets)


def _split(url: str, settings: Mapping[str, Any], *, passed_on: bool) -> tuple[str, dict[str, Any]]:
    """Return the URL without settings, and all settings; other parameters may stay in the URL."""
    url, _, query = url.partition("?")
    ours = {*setting_types(SQLSettings, Limits)}
    own, kept = dict(settings), []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if passed_on and name not in ours:
            kept.append((name, value))
        elif name in own:
            raise InputError(f"setting {show(name)} is given twice")
        else:
            own[name] = value
    return url + (f"?{urlencode(kept, quote_via=quote)}" if kept else ""), own
