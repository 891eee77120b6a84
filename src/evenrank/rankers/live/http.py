"""Engines behind HTTP. Any that answers with JSON: `https://host/search?q={query}&n={depth}`; Elasticsearch
and OpenSearch, by their common `_search`: `elasticsearch://host:9200/index?text=body`.

The latter are asked over plain HTTP too: the client package of Elasticsearch, from 7.14 on, refuses
OpenSearch and older servers, while this part of the protocol is common to all of them.
"""

from __future__ import annotations

import re
import string
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from evenrank.data.schema import BODY, DOC_ID, TITLE, listing, show
from evenrank.errors import InputError, is_whole
from evenrank.rankers.live.calls import Busy, QueryFailed
from evenrank.rankers.live.ranker import Hit
from evenrank.rankers.live.secrets import Secrets, encoded, hidden
from evenrank.rankers.live.web import (
    MISSING,
    NEVER,
    Refusal,
    Site,
    asks,
    at,
    fetch,
    fill,
    filled,
    separated,
    shape,
    template,
)


@dataclass(frozen=True)
class HTTPSettings:
    """How an engine is asked, and where in its answer the results stand.

    Parameters
    ----------
    results
        Where the list of results stands in the answer: ``hits.items``. Not needed where the answer is the
        list, or calls it ``results``.
    id, title, text, score
        Where these stand in a result: ``docno``, ``fields.title``. Found by their usual names if not given.
    rank
        Where a result says its rank; without it the results are taken as they come.
    body
        JSON to POST, or ``@path`` of a file with it; ``{query}`` and ``{depth}`` are filled in, and a text
        ``env:NAME`` is what the environment variable holds. Without it the URL is asked by GET.
    header, param
        Headers, and parameters added to the URL: ``header.Authorization=env:TOKEN`` takes the value from
        the environment.
    page_size
        Results per request, for engines that answer page by page: ``{offset}`` (from 0) or ``{page}`` (from
        1) in the URL or the body says which.
    max_bytes
        Bytes of an answer beyond which it is not read.
    """

    results: str | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    score: str | None = None
    rank: str | None = None
    body: str | None = None
    header: dict[str, str] = field(default_factory=dict)
    param: dict[str, str] = field(default_factory=dict)
    page_size: int | None = None
    max_bytes: int = 16 * 1024 * 1024


class HTTP:
    """An engine behind a URL."""

    name = "http"

    def __init__(self, url: str, settings: HTTPSettings, *, timeout: float, secrets: Secrets) -> None:
        self.settings = settings
        url = re.sub(r"%7B(query|depth|offset|page)%7D", r"{\1}", url, flags=re.IGNORECASE)
        self._url, who = separated(
            quote(url, safe=string.punctuation), secrets
        )  # é and blanks as URLs have them
        if "{" in urlsplit(self._url).netloc:
            raise InputError(f"{hidden(url)}: the host cannot be filled in")
        self._body = None if settings.body is None else secrets.in_body(template("body", settings.body))
        if "{query}" not in self._url and not asks(self._body):
            raise InputError(
                f"{hidden(url)}: write {{query}} where the query belongs, in the URL or in body="
            )
        self.place = hidden(self._url)
        parameters = secrets.resolved("param", settings.param)
        if parameters:
            added = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in parameters.items())
            plain = self._url.partition("#")[0]
            self._url = f"{plain}{'&' if '?' in plain else '?'}{added}"
        self.page_size = settings.page_size
        if settings.page_size is not None:
            if settings.page_size < 1:
                raise InputError(f"page_size is {settings.page_size}; it must be 1 or more")
            if not any(
                asks(where, place) for where in (self._url, self._body) for place in ("offset", "page")
            ):
                raise InputError(
                    f"{hidden(url)}: with page_size, write {{offset}} or {{page}} where it belongs"
                )
        if settings.max_bytes < 1:
            raise InputError(f"max_bytes is {settings.max_bytes}; it must be 1 or more")
        headers = {**who, **secrets.resolved("header", settings.header)}
        self._site = Site(headers, timeout, settings.max_bytes, secrets)

    def prepare(self) -> None:
        """Nothing to find out: every endpoint is different."""

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        return self._ask({"query": text, "depth": depth, "offset": 0, "page": 1})

    def page(self, text: str, start: int) -> list[Hit]:
        """One page of results, behind so many."""
        size = self.page_size or 1
        return self._ask({"query": text, "depth": size, "offset": start, "page": start // size + 1})

    def _ask(self, values: dict[str, str | int]) -> list[Hit]:
        url = filled(self._url, {name: encoded(str(value)) for name, value in values.items()})
        body = None if self._body is None else fill(self._body, values)
        try:
            answer = fetch(self._site, url, body, place=self.place)
        except Refusal as refusal:
            if refusal.status in NEVER:
                raise InputError(str(refusal)) from None
            said = "" if refusal.body is None else f": {show(refusal.body, 200)}"
            raise QueryFailed(f"{refusal}{said}") from None
        return self._hits(answer)

    def _hits(self, answer: Any) -> list[Hit]:
        result = self._list(answer)
        for each in result:
            if not isinstance(each, (dict, str, int)):
                raise QueryFailed(f"{self.place}: a result is {shape(each)}; expected objects")
        if self.settings.rank is not None:
            ranks = [self._rank(each, self.settings.rank) for each in result]
            result = [each for _, each in sorted(zip(ranks, result, strict=True), key=lambda pair: pair[0])]
        return [self._hit(each) for each in result]

    def _list(self, answer: Any) -> list[Any]:
        path = self.settings.results
        result = answer if path is None and isinstance(answer, list) else at(answer, path or "results")
        if isinstance(result, list):
            return result
        what = "nothing" if result is MISSING else shape(result)
        raise InputError(
            f"{self.place}: expected a list of results at {path or 'results'}, found {what}; the answer is "
            f"{shape(answer)}; results= says where the list is"
        )

    def _hit(self, item: Any) -> Hit:
        if not isinstance(item, dict):  # a list of nothing but ids
            return Hit(item)
        settings = self.settings
        return Hit(
            self._field(item, "id", settings.id, DOC_ID),
            self._field(item, "score", settings.score, ("score", "_score"), needed=False),
            self._field(item, "title", settings.title, (TITLE,), needed=False),
            self._field(item, "text", settings.text, BODY, needed=False),
        )

    def _field(
        self,
        item: dict[str, Any],
        name: str,
        path: str | None,
        usual: tuple[str, ...],
        *,
        needed: bool = True,
    ) -> Any:
        for each in usual if path is None else (path,):
            result = at(item, each)
            if result is not MISSING:
                return result
        if needed:
            raise InputError(
                f"{self.place}: no {path or name} in a result, which is {shape(item)}; {name}= says where"
            )
        return None

    def _rank(self, item: Any, path: str) -> int:
        rank = at(item, path)
        if isinstance(rank, str) and rank.isdecimal():
            rank = int(rank)
        if not is_whole(rank):
            result = "none" if rank is MISSING else shape(rank)
            raise QueryFailed(f"{self.place}: a result has no whole number at rank={path}, but {result}")
        return rank

    def describe(self) -> dict[str, Any]:
        settings = {name: value for name, value in asdict(self.settings).items() if value is not None}
        named = {name: sorted(settings.pop(name)) for name in ("header", "param")}
        return {"url": self.place, **settings, **{name: each for name, each in named.items() if each}}

    def close(self) -> None:
        """Nothing is kept open."""


@dataclass(frozen=True)
class ElasticSettings:
    """Which fields are searched, and how.

    Parameters
    ----------
    text, title
        Fields with the text and the title; both are searched.
    fields
        The fields that are searched, if others, each perhaps with a weight: ``title^2,body``.
    id
        The field with the id of a document; ``_id`` is the engine's own.
    match
        ``any``: a document needs one of the words; ``all``: every one of them.
    body
        The whole request as JSON, or ``@path`` of a file with it, in place of `fields` and `match`:
        ``{query}`` and ``{depth}`` are filled in.
    header
        Headers: ``header.Authorization='ApiKey env:ES_KEY'`` takes the key from the environment.
    """

    text: str = "text"
    title: str | None = None
    fields: tuple[str, ...] = ()
    id: str = "_id"
    match: Literal["any", "all"] = "any"
    body: str | None = None
    header: dict[str, str] = field(default_factory=dict)


class Elastic:
    """One index, or several or an alias, of an Elasticsearch or OpenSearch server."""

    def __init__(
        self, url: str, settings: ElasticSettings, *, timeout: float, name: str, secrets: Secrets
    ) -> None:
        self.name = name
        self.settings = settings
        server, who = separated(url, secrets)
        parts = urlsplit(server)
        before, _, index = parts.path.rstrip("/").rpartition("/")
        self.index = unquote(index)
        if not index:
            raise InputError(f"{hidden(url)}: the URL names no index; write it as {name}://host:9200/index")
        self._server = f"{parts.scheme}://{parts.netloc}{before}"
        self._index = f"{self._server}/{quote(self.index, safe=',*-')}"
        self.place = hidden(self._index)
        self._timeout = timeout
        headers = {**who, **secrets.resolved("header", settings.header)}
        self._site = Site(headers, timeout, 256 * 1024 * 1024, secrets)
        self._body = None if settings.body is None else secrets.in_body(template("body", settings.body))
        if settings.body is not None and not asks(self._body):
            raise InputError("body holds no {query}; write it where the query belongs")
        self._searched = settings.fields or tuple(each for each in (settings.title, settings.text) if each)
        self._checked = False

    def prepare(self) -> None:
        """See that the index is there and has the fields: a search in a field that is not finds nothing."""
        if self._checked:
            return
        names = [each.partition("^")[0] for each in self._searched]
        wanted = [] if self._body is not None else [name for name in names if "*" not in name]
        requested = ",".join(quote(name, safe="") for name in wanted) or "_id"
        try:
            result = fetch(self._site, f"{self._index}/_field_caps?fields={requested}")
        except Refusal as refusal:
            if refusal.status == 404:
                raise InputError(
                    f"{self.place}: no index {self.index}; there are {self._indices()}"
                ) from None
            if refusal.status == 401:
                raise InputError(str(refusal)) from None
            # Not everyone may ask this; the search itself will tell.
        else:
            there = at(result, "fields")
            lacking = [name for name in wanted if isinstance(there, dict) and name not in there]
            if lacking:
                raise InputError(f"{self.place}: no field {lacking[0]}; text= names one of {self._fields()}")
        self._checked = True

    def _indices(self) -> str:
        try:
            rows = fetch(self._site, f"{self._server}/_cat/indices?format=json&h=index")
            return listing(sorted(row["index"] for row in rows if not row["index"].startswith(".")))
        except (QueryFailed, TypeError, KeyError):
            return "others, which it does not list"

    def _fields(self) -> str:
        try:
            result = fetch(self._site, f"{self._index}/_field_caps?fields=*")["fields"]
            return listing(sorted(name for name, kinds in result.items() if "text" in kinds))
        except (QueryFailed, TypeError, KeyError, AttributeError):
            return "others, which it does not list"

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        self.prepare()
        # Half a ranking is none: without this an engine that loses a shard answers from the rest.
        url = f"{self._index}/_search?allow_partial_search_results=false"
        try:
            answer = fetch(self._site, url, self.request(text, depth, texts=texts))
        except Refusal as refusal:
            reason = _reason(refusal.body)
            message = f"{refusal}: {reason}" if reason else str(refusal)
            if refusal.status in (401, 403, 404):
                raise InputError(message) from None
            raise QueryFailed(message) from None
        return self._hits(answer)

    def request(self, text: str, depth: int, *, texts: bool) -> dict[str, Any]:
        """What is sent for one query."""
        if self._body is not None:
            whole: dict[str, Any] = {"size": depth, **fill(self._body, {"query": text, "depth": depth})}
            return whole
        settings = self.settings
        operator = "or" if settings.match == "any" else "and"
        if len(self._searched) == 1 and "^" not in self._searched[0] and "*" not in self._searched[0]:
            query: dict[str, Any] = {"match": {self._searched[0]: {"query": text, "operator": operator}}}
        else:
            query = {"multi_match": {"query": text, "fields": list(self._searched), "operator": operator}}
        shown = [settings.title, settings.text] if texts else []
        source = [each for each in (*shown, settings.id) if each and each != "_id"]
        return {
            "query": query,
            "size": depth,
            "_source": source or False,
            "track_total_hits": False,
            "timeout": f"{max(1, round(1000 * self._timeout))}ms",
        }

    def _hits(self, answer: Any) -> list[Hit]:
        if at(answer, "timed_out") is True:
            raise Busy(f"{self.place}: no whole answer within {self._timeout:g} seconds")
        broken = at(answer, "_shards.failed")
        if isinstance(broken, int) and broken:
            reason = _reason({"error": at(answer, "_shards.failures.0")}) or "it does not say why"
            raise Busy(f"{self.place}: {broken} of {at(answer, '_shards.total')} shards failed: {reason}")
        result = at(answer, "hits.hits")
        if not isinstance(result, list) or not all(isinstance(each, dict) for each in result):
            raise QueryFailed(f"{self.place}: no list at hits.hits; the answer is {shape(answer)}")
        return [self._hit(each) for each in result]

    def _hit(self, hit: dict[str, Any]) -> Hit:
        source = hit.get("_source") or {}
        settings = self.settings

        def value(path: str | None) -> Any:
            result = MISSING if path is None else at(source, path)
            return None if result is MISSING else result

        doc_id = hit.get("_id") if settings.id == "_id" else value(settings.id)
        return Hit(doc_id, hit.get("_score"), value(settings.title), value(settings.text))

    def describe(self) -> dict[str, Any]:
        settings = {name: value for name, value in asdict(self.settings).items() if value is not None}
        header = sorted(settings.pop("header"))
        return {"url": self.place, **settings, **({"header": header} if header else {})}

    def close(self) -> None:
        """Nothing is kept open."""


def _reason(body: Any) -> str:
    """What the engine says is wrong, from the innermost cause that it names."""
    for path in (
        "error.caused_by.reason",
        "error.root_cause.0.reason",
        "error.reason.reason",
        "error.reason",
    ):
        result = at(body, path)
        if isinstance(result, str) and result:
            return show(result, 300)
    error = at(body, "error")
    return show(error, 300) if error is not MISSING and error is not None else ""
