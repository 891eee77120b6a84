"""Templates and styles of the pages: the report's look, and what the server adds to it."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from evenrank.show.numbers import minus, plain, typeset

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "theme.js": "text/javascript"}


@cache
def environment() -> Any:
    """Where templates come from; everything they show is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("evenrank.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"signed": typeset, "plain": plain, "minus": minus, "moment": _moment}
    return made


def render(name: str, **content: Any) -> str:
    """A page as text."""
    text: str = environment().get_template(name).render(**content)
    return text


@cache
def static(name: str) -> str:
    """A style or a script."""
    own = _file("evenrank.server", name)
    return f"{report_style()}\n{own}" if name == "page.css" else own


@cache
def report_style() -> str:
    """The report's style; dark where the system is, also for readers whose browser runs no script."""
    style = _file("evenrank.show", "style.css")
    dark = re.search(r':root\[data-theme="dark"\]\s*\{([^}]*)\}', style)
    if dark is None:
        return style
    return (
        f"{style}\n@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{{dark[1]}}} }}"
    )


def _moment(time: str) -> str:
    """2026-01-31T12:00:00Z as 2026-01-31 12:00."""
    return time[:16].replace("T", " ")


def _file(package: str, name: str) -> str:
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")
