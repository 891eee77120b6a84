"""The pages for people: search with two rankers side by side, and an audit of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

import evenrank
from evenrank.auditing.passages import segments
from evenrank.errors import InputError
from evenrank.server import evaluating
from evenrank.server.limits import Limits, Turnstile
from evenrank.server.models import QUERY
from evenrank.server.rendering import STATIC, render, static
from evenrank.server.searching import Listed, Service
from evenrank.server.uploads import Auditor

DEPTH = 10
LONGEST = 420  # bytes of a passage that are shown
BOUND = 0.1
"""The limit on |ARaB@10| that the switch begins with."""


@dataclass(frozen=True)
class Gauge:
    """Places on the bar, in percent from the left."""

    value: float
    before: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Column:
    """One ranker's results, ready to be shown."""

    side: str
    ranker: str
    listed: Listed
    lean: str
    to: str | None
    gauge: Gauge | None
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What the search form holds."""

    query: str
    left: str
    right: str
    even: bool
    limit: float


def columns(service: Service, asked: Asked) -> tuple[list[Column], float]:
    """Both lists, and how far their gauges reach."""
    bound = asked.limit if asked.even else None
    found = [
        (side, service.search(asked.query, name, depth=DEPTH, constrain=bound))
        for side, name in (("left", asked.left), ("right", asked.right))
    ]
    leans = [
        abs(x)
        for _, each in found
        for x in (each.before, each.evaluated.lean if each.evaluated else None)
        if x
    ]
    reach = 1.0 if max(leans, default=0.0) <= 1 else float(int(max(leans)) + 1)
    return [_column(side, each, reach, bound, service) for side, each in found], reach


def _column(side: str, found: Listed, reach: float, bound: float | None, service: Service) -> Column:
    seen = found.evaluated
    if seen is None:
        return Column(side, found.ranker, found, "", None, None, [])

    def place(x: float | None) -> float | None:
        return None if x is None else round(50 + 48 * max(-1.0, min(1.0, x / reach)), 2)

    marked = segments(found.texts, service.matcher, LONGEST)
    rows = [
        {**row, "moved": found.moved[i], "score": found.scores[i], "pieces": marked[i]}
        for i, row in enumerate(seen.results(list(found.doc_ids)))
    ]
    gauge = Gauge(
        place(seen.lean) or 50.0,
        place(found.before),
        place(None if bound is None else -bound),
        place(bound),
    )
    said = evaluating.lean(seen.lean, *seen.pair)
    return Column(side, found.ranker, found, said, evaluating.side(seen.lean, *seen.pair), gauge, rows)


def routes(service: Service, turnstile: Turnstile, auditor: Auditor, limits: Limits) -> APIRouter:
    """The routes of the pages; they are not part of the interface."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    shared = {
        "version": evenrank.__version__,
        "service": service,
        "groups": service.matcher.groups,
        "lexicon": service.matcher.lexicon.name,
    }
    offered = list(service.rankers)

    def page(name: str, status: int = 200, **content: Any) -> HTMLResponse:
        return HTMLResponse(render(name, **shared, **content), status)

    def asked_for(q: str, left: str, right: str, even: str, limit: float) -> Asked:
        if len(q) > QUERY:
            raise HTTPException(422, f"the query is longer than {QUERY:,} characters")
        first = left if left in service.rankers else offered[0]
        second = right if right in service.rankers else offered[min(1, len(offered) - 1)]
        return Asked(q, first, second, bool(even), min(max(limit, 0.0), 2.0))

    def results(asked: Asked) -> dict[str, Any]:
        lists, reach = columns(service, asked)
        guess = service.guess(asked.query)
        return {"asked": asked, "columns": lists, "reach": reach, "guess": guess, "depth": DEPTH}

    @router.get("/")
    async def search(
        request: Request,
        q: str = "",
        left: str = "",
        right: str = "",
        even: str = "",
        limit: Annotated[float, Query(allow_inf_nan=False)] = BOUND,
    ) -> Response:
        if not service.rankers:
            return page("empty.html", here="/")
        asked = asked_for(q, left, right, even, limit)
        nothing: dict[str, Any] = {"asked": asked, "columns": [], "reach": 1.0, "guess": None}
        found = await turnstile.run(results, asked) if q.strip() else {**nothing, "depth": DEPTH}
        part = request.headers.get("x-part") == "results"
        return page("results.html" if part else "search.html", here="/", rankers=offered, **found)

    @router.get("/audit")
    async def audit_form() -> Response:
        return page("audit.html", here="/audit", problem=None, limits=limits)

    @router.post("/audit")
    async def audit_run(
        run: Annotated[UploadFile, File()],
        baseline: Annotated[UploadFile | None, File()] = None,
        qrels: Annotated[UploadFile | None, File()] = None,
        queries: Annotated[UploadFile | None, File()] = None,
        genders: Annotated[UploadFile | None, File()] = None,
    ) -> Response:
        given = {"run": run, "baseline": baseline, "qrels": qrels, "queries": queries, "genders": genders}
        try:
            token = await auditor.audit({name: file for name, file in given.items() if file is not None})
        except InputError as problem:
            return page("audit.html", 422, here="/audit", problem=str(problem), limits=limits)
        except HTTPException as problem:
            if problem.status_code != 503:
                raise
            return page("audit.html", 503, here="/audit", problem=problem.detail, limits=limits)
        return RedirectResponse(f"/audits/{token}", 303)

    @router.get("/audits/{token}")
    async def audit_report(token: str) -> Response:
        found = auditor.report(token)
        if found is None:
            return page("gone.html", 404, here="/audit")
        # The report states its own policy, which allows its own scripts by their hashes.
        return HTMLResponse(found, headers={"Content-Security-Policy": "frame-ancestors 'none'"})

    @router.get("/docs")
    async def reference(request: Request) -> Response:
        base = str(request.base_url).rstrip("/")  # as the reader came here, port and all
        return page("reference.html", here="/docs", base=base, api=described(request.app.openapi()))

    @router.get("/static/{name}")
    async def asset(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        return Response(static(name), media_type=STATIC[name])

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return Response(_ICON, media_type="image/svg+xml")

    return router


def described(openapi: dict[str, Any]) -> list[dict[str, Any]]:
    """Each operation with its fields, an example, and its answers."""
    schemas = openapi.get("components", {}).get("schemas", {})
    found = []
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            asked = _schema(operation.get("requestBody", {}), schemas)
            given = _schema(operation["responses"].get("200", {}), schemas)
            examples = asked.get("examples") or [None]
            found.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "id": path.strip("/").replace("/", "-"),
                    "description": operation.get("description", ""),
                    "fields": _fields(asked, schemas),
                    "answer": _fields(given, schemas),
                    "example": None if examples[0] is None else json.dumps(examples[0], indent=2),
                    "statuses": [
                        (code, response["description"])
                        for code, response in sorted(operation["responses"].items())
                        if code != "200"
                    ],
                }
            )
    return found


def _schema(body: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    content = body.get("content", {}).get("application/json", {}).get("schema", {})
    return _resolved(content, schemas)


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schemas[name] if name else schema
    return found


def _fields(schema: dict[str, Any], schemas: dict[str, Any], before: str = "", depth: int = 0) -> list[Any]:
    """Name, type, what is required, and what it means; fields of fields behind a dot."""
    found = []
    for name, value in schema.get("properties", {}).items():
        inner, many = _inner(value, schemas)
        required = name in schema.get("required", ())
        about = value.get("description") or inner.get("description", "")
        found.append((f"{before}{name}", _type(value, schemas), required, " ".join(about.split())))
        if inner.get("properties") and depth < 2:
            found += _fields(inner, schemas, f"{before}{name}{'[]' if many else ''}.", depth + 1)
    return found


def _inner(value: dict[str, Any], schemas: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    plain = next((one for one in value.get("anyOf", ()) if one.get("type") != "null"), value)
    many = plain.get("type") == "array"
    return _resolved(plain["items"] if many else plain, schemas), many


def _type(value: dict[str, Any], schemas: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_type(one, schemas) for one in value["anyOf"])
    if "$ref" in value:
        return "object"
    if "enum" in value:
        return " | ".join(map(str, value["enum"]))
    if "const" in value:
        return str(value["const"])
    kind = str(value.get("type", "any"))
    if kind == "array":
        size = f", up to {value['maxItems']:,}" if "maxItems" in value else ""
        return f"list of {_type(value['items'], schemas)}{size}"
    if kind == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"object of {_type(value['additionalProperties'], schemas)}"
    bounds = [f"{sign} {value[key]:g}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in value]
    if "maxLength" in value:
        bounds.append(f"up to {value['maxLength']:,} characters")
    return f"{kind}{', ' + ', '.join(bounds) if bounds else ''}"


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<circle cx="5" cy="8" r="4.5" fill="#7646c4"/>'
    '<circle cx="11" cy="8" r="4.5" fill="#a84e08" fill-opacity=".85"/></svg>'
)
