"""Engines that answer with JSON: any by its URL, Elasticsearch and OpenSearch by their `_search`."""

from __future__ import annotations

import json
import re
import string
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from evenrank.data.schema import BODY, DOC_ID, TITLE, show
from evenrank.errors import InputError
from evenrank.rankers.remote.http import FATAL_STATUS, JSONClient, Refused
from evenrank.rankers.remote.json_values import (
    MISSING,
    fill,
    fill_text,
    has_place,
    read_template,
    shape,
    value_at,
)
from evenrank.rankers.remote.ranker import Hit, Send
from evenrank.rankers.remote.requests import QueryFailed, Unavailable
from evenrank.rankers.remote.secrets import Secrets, hidden


@dataclass(frozen=True)
class JSONSettings:
    """How an engine is asked, and where in its answer the results stand.

    Parameters
    ----------
    results
        Where the list of results stands in the answer: ``hits.items``. Not needed where the answer is the
        list, or calls it ``results``.
    id, title, text, score
        Where these stand in a result: ``docno``, ``fields.title``. Found by their usual names if not given.
    body
        JSON to POST, or ``@path`` of a file with it; ``{query}`` and ``{depth}`` in it are filled in.
        Without it the URL is asked by GET.
    header, param
        Headers, and parameters added to the URL: ``header.Authorization=env:TOKEN`` takes the value from
        the environment.
    """

    results: str | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    score: str | None = None
    body: str | None = None
    header: dict[str, str] = field(default_factory=dict)
    param: dict[str, str] = field(default_factory=dict)


class JSONEngine:
    """An engine behind a URL."""

    name = "http"

    def __init__(self, url: str, settings: JSONSettings, *, timeout: float, secrets: Secrets) -> None:
        self.settings = settings
        url = re.sub(r"%7B(query|depth)%7D", r"{\1}", url, flags=re.IGNORECASE)
        url = quote(url, safe=string.punctuation)  # é and blanks as URLs have them
        self._url, login = secrets.split_login(url)
        if "{" in urlsplit(self._url).netloc:
            raise InputError(f"{hidden(url)}: the host cannot be filled in")
        body = None if settings.body is None else read_template("body", settings.body)
        self._body = secrets.resolve_body(body)
        if not has_place(self._url) and not has_place(self._body):
            raise InputError(
                f"{hidden(url)}: write {{query}} where the query belongs, in the URL or in body="
            )
        self.place = hidden(self._url)
        parameters = secrets.resolve_all("param", settings.param)
        if parameters:
            added = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in parameters.items())
            plain = self._url.partition("#")[0]
            self._url = f"{plain}{'&' if '?' in plain else '?'}{added}"
        headers = {**login, **secrets.resolve_all("header", settings.header)}
        self.client = JSONClient(headers, timeout=timeout, secrets=secrets)

    def prepare(self) -> None:
        """Nothing to check: every endpoint is different."""

    def search(self, text: str, depth: int, send: Send) -> list[Hit]:
        hits: list[Hit] = send(lambda: self._request({"query": text, "depth": depth}))
        return hits

    def _request(self, values: dict[str, str | int]) -> list[Hit]:
        url = fill_text(self._url, {name: _encoded(str(value)) for name, value in values.items()})
        body = None if self._body is None else fill(self._body, values)
        try:
            answer = self.client.fetch(url, body, place=self.place)
        except Refused as refusal:
            reason = _reason(refusal.body)
            message = f"{refusal}: {reason}" if reason else str(refusal)
            if refusal.status in FATAL_STATUS:
                raise InputError(message) from None
            raise QueryFailed(message) from None
        _refuse_incomplete(answer, self.place)
        return self._hits(answer)

    def _hits(self, answer: Any) -> list[Hit]:
        results = self._results(answer)
        for each in results:
            if not isinstance(each, (dict, str, int)):
                raise QueryFailed(f"{self.place}: a result is {shape(each)}; expected objects")
        return [self._hit(each) for each in results]

    def _results(self, answer: Any) -> list[Any]:
        path = self.settings.results
        results = answer if path is None and isinstance(answer, list) else value_at(answer, path or "results")
        if isinstance(results, list):
            return results
        what = "nothing" if results is MISSING else shape(results)
        raise InputError(
            f"{self.place}: expected a list of results at {path or 'results'}, found {what}; the answer is "
            f"{shape(answer)}; results= says where the list is"
        )

    def _hit(self, item: Any) -> Hit:
        if not isinstance(item, dict):  # a list of nothing but ids
            return Hit(item)
        settings = self.settings
        doc_id = _first(item, settings.id, DOC_ID)
        if doc_id is None:
            raise InputError(
                f"{self.place}: no {settings.id or 'id'} in a result, which is {shape(item)}; id= says where"
            )
        return Hit(
            doc_id,
            _first(item, settings.score, ("score", "_score")),
            _first(item, settings.title, (TITLE,)),
            _first(item, settings.text, BODY),
        )

    def describe(self) -> dict[str, Any]:
        settings = {name: value for name, value in asdict(self.settings).items() if value is not None}
        named = {name: sorted(settings.pop(name)) for name in ("header", "param")}
        return {"url": self.place, **settings, **{name: each for name, each in named.items() if each}}

    def close(self) -> None:
        self.client.close()


def _first(item: dict[str, Any], path: str | None, usual: tuple[str, ...]) -> Any:
    """Return the value at a path, or at the first of the usual names; None if there is none."""
    for each in usual if path is None else (path,):
        value = value_at(item, each)
        if value is not MISSING:
            return value
    return None


def _encoded(value: str) -> str:
    return quote(value, safe="", errors="replace")


@dataclass(frozen=True)
class ElasticSettings:
    """Which fields of an index are searched, and how.

    Parameters
    ----------
    text, title
        Fields with the text and the title; both are searched.
    id
        The field with the id of a document; ``_id`` is the engine's own.
    body
        The whole request as JSON, or ``@path`` of a file with it, for any other search: ``{query}`` and
        ``{depth}`` are filled in.
    header
        Headers: ``header.Authorization='ApiKey env:ES_KEY'`` takes the key from the environment.
    """

    text: str = "text"
    title: str | None = None
    id: str = "_id"
    body: str | None = None
    header: dict[str, str] = field(default_factory=dict)


def elastic_engine(url: str, settings: ElasticSettings, *, timeout: float, secrets: Secrets) -> JSONEngine:
    """Return the engine for an index (several, or an alias) of Elasticsearch or OpenSearch.

    It asks their common `_search` by HTTP: the client package of either refuses the servers of the other.
    """
    scheme, _, rest = url.partition("://")
    name, _, transport = scheme.partition("+")
    if "/" not in rest or rest.endswith("/"):
        raise InputError(f"{hidden(url)}: the URL names no index; write it as {name}://host:9200/index")
    shown = [each for each in (settings.title, settings.text) if each]
    request = {
        "query": {"multi_match": {"query": "{query}", "fields": shown}},
        "size": "{depth}",
        "_source": [*shown, *([] if settings.id == "_id" else [settings.id])],
        "track_total_hits": False,
        "timeout": f"{max(1, round(1000 * timeout))}ms",
    }
    engine = JSONEngine(
        # Half a ranking is none: without this an engine that loses a shard answers from the rest.
        f"{transport or 'http'}://{rest}/_search?allow_partial_search_results=false",
        JSONSettings(
            results="hits.hits",
            id="_id" if settings.id == "_id" else f"_source.{settings.id}",
            score="_score",
            title=None if settings.title is None else f"_source.{settings.title}",
            text=f"_source.{settings.text}",
            body=settings.body or json.dumps(request),
            header=settings.header,
        ),
        timeout=timeout,
        secrets=secrets,
    )
    engine.name = name
    engine.place = engine.place.partition("/_search?")[0]
    return engine


def _refuse_incomplete(answer: Any, place: str) -> None:
    """Refuse an answer of Elasticsearch that says that it is not whole."""
    if value_at(answer, "timed_out") is True:
        raise Unavailable(f"{place}: no whole answer in time")
    broken = value_at(answer, "_shards.failed")
    if isinstance(broken, int) and broken:
        reason = _reason({"error": value_at(answer, "_shards.failures.0")}) or "it does not say why"
        raise Unavailable(f"{place}: {broken} of {value_at(answer, '_shards.total')} shards failed: {reason}")


def _reason(body: Any) -> str:
    """Return what an engine says is wrong: the innermost cause that it names, or all it says."""
    for path in (
        "error.caused_by.reason",
        "error.root_cause.0.reason",
        "error.reason.reason",
        "error.reason",
    ):
        reason = value_at(body, path)
        if isinstance(reason, str) and reason:
            return show(reason, 300)
    return "" if body is None else show(body, 200)
