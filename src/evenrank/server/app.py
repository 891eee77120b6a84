"""`make_app`: pages and interface as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

import evenrank
from evenrank.errors import InputError
from evenrank.server import api, site
from evenrank.server.limits import Gate, Limits, Turnstile
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
    app.include_router(api.routes(service, turnstile))
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
