"""The interface as a page: what OpenAPI says, laid out for reading. No script, nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any


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
