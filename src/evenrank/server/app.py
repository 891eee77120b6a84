"""`make_app`: pages and interface as one ASGI application; `make_server` puts it behind a port.

The JSON interface: evaluate a result list, search the collection, classify queries.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import h11
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

import evenrank
from evenrank.auditing.passages import Text
from evenrank.errors import InputError
from evenrank.server import evaluating, models, site
from evenrank.server.evaluating import Evaluated, evaluate
from evenrank.server.limits import Gate, Limits, Turnstile, too_many
from evenrank.server.rendering import render
from evenrank.server.searching import Service
from evenrank.server.uploads import Auditor

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


def make_app(
    service: Service, *, limits: Limits | None = None, hosts: frozenset[str] | None = LOCAL
) -> FastAPI:
    """The application, to be run by any ASGI server.

    Parameters
    ----------
    service
        What it serves.
    limits
        What requests may cost.
    hosts
        Names by which it may be called; None for any, where something in front of it checks them.
    """
    allowed = limits or Limits()
    turnstile, auditor = Turnstile(allowed), Auditor(service, allowed)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        turnstile.close()
        auditor.close()

    app = FastAPI(
        title="evenrank",
        version=evenrank.__version__,
        description="Measure the bias of search results, explain it, and re-rank them within bounds.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(interface(service, turnstile))
    app.include_router(site.routes(service, turnstile, auditor, allowed))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(InputError, _bad_input)
    app.add_exception_handler(Exception, _our_fault)
    app.add_middleware(Gate, limits=allowed, hosts=hosts)
    return app


def _problem(request: Request, status: int, detail: str, headers: Any = None) -> Response:
    """One line: as a page for a browser, else as JSON."""
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/"):
        content = {"version": evenrank.__version__, "here": "", "status": status, "detail": detail}
        return HTMLResponse(render("problem.html", **content), status, headers=headers)
    return JSONResponse({"detail": _encodable(detail)}, status, headers=headers)


async def _refused(request: Request, error: Any) -> Response:
    return _problem(request, error.status_code, str(error.detail), error.headers)


async def _invalid(request: Request, error: Any) -> Response:
    return _problem(request, 422, _first(error.errors()))


async def _bad_input(request: Request, error: Any) -> Response:
    return _problem(request, 422, " ".join(str(error).split()))


async def _our_fault(request: Request, error: Any) -> Response:
    return _problem(request, 500, f"internal error: {type(error).__name__}")


def _first(errors: Sequence[Any]) -> str:
    """The first thing that is wrong, with the field it is wrong in; what was sent is not repeated."""
    first = errors[0]
    place = ".".join(str(part) for part in first.get("loc", ())[1:])  # the first says: body, query or path
    message = str(first.get("msg", "cannot be read")).removeprefix("Value error, ")
    if first.get("type") == "extra_forbidden":
        message = "there is no such field"
    if first.get("type") == "json_invalid":
        return "the body is not JSON"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {message}{more}" if place else f"{message}{more}"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Problem, "description": what}
    for status, what in {
        400: "The body is not JSON.",
        403: "From another site, or by another host name.",
        408: "The request did not arrive in time.",
        413: "The request is too large.",
        422: "A field is missing, unknown or out of range.",
        503: "Too many requests, or no answer in time: try again.",
    }.items()
}


def answer(content: Any) -> Response:
    """JSON, straight: the content is ours, and checking it again would take longer than making it."""
    return Response(
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"),
        media_type="application/json",
    )


def _verdict(found: Evaluated) -> dict[str, Any]:
    return {
        "side": evaluating.side(found.lean, *found.pair),
        "lean": found.lean,
        "text": found.verdict,
    }


def evaluated(service: Service, asked: models.EvaluateRequest) -> Response:
    """The answer to /v1/evaluate."""
    found = evaluate(
        service.matcher,
        [Text(result.title or "", result.text or "") for result in asked.results],
        labels=[result.group for result in asked.results],
        attributes=[result.attributes or {} for result in asked.results],
        target=asked.target,
        at=asked.at,
        query_gender=service.query_gender(asked.query),
        measures=service.measures,
    )
    return answer(
        {
            "query": service.gender(asked.query),
            "at": asked.at,
            "verdict": _verdict(found),
            "measures": [value.model_dump() for value in found.values()],
            "results": found.results([result.id for result in asked.results]),
            "groups": found.labels_from,
            "representation": found.representation(),
            "limit": None if asked.limit is None else found.within(asked.limit),
            "lexicon": service.matcher.lexicon.name,
        }
    )


def searched(service: Service, asked: models.SearchRequest) -> Response:
    """The answer to /v1/search."""
    found = service.search(asked.query, asked.ranker, depth=asked.depth, constrain=asked.constrain)
    seen = found.evaluated
    nothing = {"side": None, "lean": None, "text": "Nothing was found."}
    results = [] if seen is None else seen.results(list(found.doc_ids))
    for place, result in enumerate(results):
        result |= {"score": found.scores[place], "text": found.texts[place], "moved": found.moved[place]}
    return answer(
        {
            "query": service.gender(asked.query),
            "ranker": found.ranker,
            "verdict": nothing if seen is None else _verdict(seen),
            "constrained": found.constrained,
            "results": results,
        }
    )


def interface(service: Service, turnstile: Turnstile) -> APIRouter:
    """The routes of the JSON interface."""
    router = APIRouter(responses=PROBLEMS)

    @router.post("/v1/evaluate", response_model=models.EvaluateResponse, tags=["evaluate"])
    async def evaluate_list(asked: models.EvaluateRequest) -> Response:
        """Measure one result list and colour its words.

        Nothing is stored. Values are those of the published measures; NFaiRR compares with the most neutral
        order of the same results. With `group` labels, or a `target`, representation is measured too; with
        `attributes`, how each of them is shown, and two of them crossed.
        """
        return await turnstile.run(evaluated, service, asked)

    async def search_collection(asked: Any) -> Response:
        """Search the collection, evaluate the results, and re-rank them within a bound if asked to."""
        return await turnstile.run(searched, service, asked)

    if service.rankers:
        # Which rankers there are is known only now.
        search_collection.__annotations__["asked"] = models.search_request(tuple(service.rankers))
        router.post("/v1/search", response_model=models.SearchResponse, tags=["search"])(search_collection)

    @router.post("/v1/classify", response_model=models.ClassifyResponse, tags=["classify"])
    async def classify_queries(asked: models.ClassifyRequest) -> Response:
        """Tell which gender queries are about: female, male or neutral, with probabilities."""
        return await turnstile.run(lambda: answer({"queries": service.genders(asked.queries)}))

    @router.get("/healthz", response_model=models.Health, tags=["health"])
    async def health() -> Response:
        """Is the server up, and what does it serve?"""
        documents = None if service.index is None else service.index.documents
        return answer(
            {
                "status": "ok",
                "evenrank": evenrank.__version__,
                "documents": documents,
                "rankers": list(service.rankers),
            }
        )

    return router


_KEEP_ALIVE = 5


def make_server(
    app: Any, *, host: str = "127.0.0.1", port: int = 8000, limits: Limits | None = None, **more: Any
) -> uvicorn.Server:
    """The application behind a port, with limits on connections."""
    protocol = type("Protocol", (_Protocol,), {"limits": limits or Limits()})
    settings: dict[str, Any] = {
        "http": protocol,
        "ws": "none",
        "log_level": "warning",
        "server_header": False,
        "timeout_keep_alive": _KEEP_ALIVE,
        "timeout_graceful_shutdown": _KEEP_ALIVE,
    }
    return uvicorn.Server(uvicorn.Config(app, host=host, port=port, **(settings | more)))


class _Protocol(H11Protocol):
    """One connection: how long it may take to say what it wants, and how long to read the answer.

    An ASGI application sees a request only when its headers are complete. Whoever opens a connection and
    never finishes them, or never reads, is met here, before the application.
    """

    limits: ClassVar[Limits]
    _since = 0.0
    _arriving: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing yet, or nothing more."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()
        others: list[Any] = [each for each in self.connections if each is not self]
        if sum(not each.transport.is_closing() for each in others) >= self.limits.connections:
            self._make_room(others)

    def _make_room(self, others: list[Any]) -> None:
        """Connections that do not ask for anything must not keep out those that do: the oldest goes."""
        waiting = [each for each in others if each.idle and not each.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda each: each._since).transport.abort()
        else:
            self._refuse(503, too_many())

    def _wait_for_headers(self) -> None:
        self._since = self.loop.time()
        self._arriving = self.loop.call_later(self.limits.headers, self._late)

    def _late(self) -> None:
        self._arriving = None
        if self.idle:
            self._refuse(408, "the request did not arrive in time")

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps({"detail": message}).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
        with suppress(h11.LocalProtocolError):  # it has been answered already
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.idle and self._arriving is None:
            self._wait_for_headers()
        super().data_received(data)
        if not self.idle:
            _cancel(self._arriving)
            self._arriving = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.reading, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._stalled)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._arriving)
        _cancel(self._stalled)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
