"""Elasticsearch and OpenSearch, by their common `_search`: `elasticsearch://host:9200/index?text=body`.

Both are asked over plain HTTP: the client package of Elasticsearch, from 7.14 on, refuses OpenSearch and
older servers, while this part of the protocol is common to all of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from evenrank.data.columns import listing, show
from evenrank.errors import InputError
from evenrank.rankers.live.answers import Hit
from evenrank.rankers.live.calls import Busy, QueryFailed
from evenrank.rankers.live.secrets import Secrets, hidden
from evenrank.rankers.live.web import (
    MISSING,
    Refusal,
    Site,
    asks,
    at,
    fetch,
    fill,
    separated,
    shape,
    template,
)


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
        asked = ",".join(quote(name, safe="") for name in wanted) or "_id"
        try:
            found = fetch(self._site, f"{self._index}/_field_caps?fields={asked}")
        except Refusal as refusal:
            if refusal.status == 404:
                raise InputError(
                    f"{self.place}: no index {self.index}; there are {self._indices()}"
                ) from None
            if refusal.status == 401:
                raise InputError(str(refusal)) from None
            # Not everyone may ask this; the search itself will tell.
        else:
            there = at(found, "fields")
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
            found = fetch(self._site, f"{self._index}/_field_caps?fields=*")["fields"]
            return listing(sorted(name for name, kinds in found.items() if "text" in kinds))
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
        found = at(answer, "hits.hits")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise QueryFailed(f"{self.place}: no list at hits.hits; the answer is {shape(answer)}")
        return [self._hit(each) for each in found]

    def _hit(self, hit: dict[str, Any]) -> Hit:
        source = hit.get("_source") or {}
        settings = self.settings

        def value(path: str | None) -> Any:
            found = MISSING if path is None else at(source, path)
            return None if found is MISSING else found

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
        found = at(body, path)
        if isinstance(found, str) and found:
            return show(found, 300)
    error = at(body, "error")
    return show(error, 300) if error is not MISSING and error is not None else ""
