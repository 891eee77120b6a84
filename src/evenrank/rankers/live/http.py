"""Any engine that answers with JSON: `https://host/search?q={query}&n={depth}`."""

from __future__ import annotations

import re
import string
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from evenrank.data.columns import BODY, DOC_ID, TITLE, show
from evenrank.errors import InputError
from evenrank.rankers.live.answers import Hit
from evenrank.rankers.live.calls import QueryFailed
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
        found = self._list(answer)
        for each in found:
            if not isinstance(each, (dict, str, int)):
                raise QueryFailed(f"{self.place}: a result is {shape(each)}; expected objects")
        if self.settings.rank is not None:
            ranks = [self._rank(each, self.settings.rank) for each in found]
            found = [each for _, each in sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0])]
        return [self._hit(each) for each in found]

    def _list(self, answer: Any) -> list[Any]:
        path = self.settings.results
        found = answer if path is None and isinstance(answer, list) else at(answer, path or "results")
        if isinstance(found, list):
            return found
        what = "nothing" if found is MISSING else shape(found)
        raise InputError(
            f"{self.place}: expected a list of results at {path or 'results'}, found {what}; the answer is "
            f"{shape(answer)}; results= says where the list stands"
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
            found = at(item, each)
            if found is not MISSING:
                return found
        if needed:
            raise InputError(
                f"{self.place}: no {path or name} in a result, which is {shape(item)}; {name}= says where"
            )
        return None

    def _rank(self, item: Any, path: str) -> int:
        rank = at(item, path)
        if isinstance(rank, str) and rank.isdecimal():
            rank = int(rank)
        if not isinstance(rank, int) or isinstance(rank, bool):
            found = "none" if rank is MISSING else shape(rank)
            raise QueryFailed(f"{self.place}: a result has no whole number at rank={path}, but {found}")
        return rank

    def describe(self) -> dict[str, Any]:
        settings = {name: value for name, value in asdict(self.settings).items() if value is not None}
        named = {name: sorted(settings.pop(name)) for name in ("header", "param")}
        return {"url": self.place, **settings, **{name: each for name, each in named.items() if each}}

    def close(self) -> None:
        """Nothing is kept open."""
