"""The JSON interface: evaluate a result list, search the collection, classify queries."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Response

import evenrank
from evenrank.auditing.passages import Text
from evenrank.server import evaluating, models
from evenrank.server.evaluating import Evaluated, evaluate
from evenrank.server.limits import Turnstile
from evenrank.server.searching import Service

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


def routes(service: Service, turnstile: Turnstile) -> APIRouter:
    """The routes of the interface."""
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
