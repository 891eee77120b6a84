"""`render`: an audit as one HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from evenrank.auditing import verdict
from evenrank.auditing.result import Audit
from evenrank.errors import InputError
from evenrank.measures.base import direction, is_bias, meaning, short
from evenrank.show import numbers, tables
from evenrank.show.charts import (
    change,
    psychology,
    representation,
    stages,
    stereotype,
    tradeoff,
    values,
    variants,
)
from evenrank.show.charts.theme import LIGHT, configuration
from evenrank.show.figure import Section, embedded
from evenrank.show.numbers import minus

MORE = (
    "tradeoff",
    "rank_shift",
    "association",
    "psychology",
    "representation",
    "variants",
    "stages",
    "preference",
    "statement",
    "title",
    "back",
)

SECTIONS: tuple[Callable[[Audit, Mapping[str, Any]], Section | None], ...] = (
    tables.verdict,
    tables.statement,
    tables.values,
    values.cutoff_section,
    change.change_section,
    values.word_section,
    tables.passages,
    stereotype.section,
    tables.gendered,
    tradeoff.section,
    change.shift_section,
    representation.section,
    tables.selection,
    tables.disparity,
    psychology.psychology_section,
    psychology.association_section,
    variants.section,
    stages.stages_section,
    stages.preference_section,
    tables.reading,
    tables.provenance,
)
"""The sections of a report, in their order; each says itself whether there is anything to show."""


def sections(audit: Audit, **more: Any) -> list[Section]:
    """All sections that have something to show. `more` as for :meth:`evenrank.Audit.report`."""
    for name in more:
        if name not in MORE:
            raise InputError(f"the report has no {name!r}; it takes {', '.join(MORE)}")
    made = (section(audit, more) for section in SECTIONS)
    return [section for section in made if section is not None]


def render(audit: Audit, **more: Any) -> str:
    """The page as text. `more` as for :meth:`evenrank.Audit.report`."""
    from markupsafe import Markup

    shown = sections(audit, **more)
    everything = [figure for section in shown for figure in section.figures]
    script = _template("report.js")
    bundle = _bundle() if everything else ""
    given = {
        figure.id: {"spec": figure.spec(), "title": figure.title, "caption": figure.caption, **figure.data()}
        for figure in everything
    }
    colours = {name: f"var(--{name})" for name in LIGHT} | {"surface": "transparent"}
    content = {
        "audit": audit,
        "title": more.get("title") or "Search bias audit",
        "headline": verdict.headline(audit),
        "back": more.get("back"),
        "sections": shown,
        "script": Markup(script),
        "bundle": Markup(bundle),
        "charts": Markup(embedded({"config": configuration(colours), "figures": given})),
        "policy": _policy(bundle, script),
    }
    return template("report.html").render(**content)


def template(name: str) -> Any:
    """A page of ours, with the style and the way of printing numbers that all of them share."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("evenrank.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "signed": numbers.typeset,
        "plain": numbers.plain,
        "p": numbers.p_value,
        "effect": _effect,
        "few": numbers.few,
        "minus": minus,
        "level": _level,
        "toward": numbers.toward,
        "mirrored": numbers.mirrored,
        "upper_first": numbers.upper_first,
    }
    environment.filters |= filters
    environment.globals.update(short=short, meaning=meaning, direction=direction, is_bias=is_bias)
    environment.globals["style"] = Markup(_template("style.css"))  # our own file
    return environment.get_template(name)


def _level(confidence: float | None) -> str:
    return numbers.level(confidence or 0.95)


def _effect(found: Any) -> str:
    return minus(numbers.effect(found))


def _policy(*scripts: str) -> str:
    """What the page may do: run these scripts, use its own style, show pictures it draws itself; no more."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


# What the page's own script needs of the bundle.
_EXPOSED = "window.vegaEmbed = vegaEmbed;"


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed, as one script that cannot end its own element."""
    import vl_convert

    script: str = vl_convert.javascript_bundle(_EXPOSED)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _template(name: str) -> str:
    return (resources.files("evenrank.show") / "templates" / name).read_text(encoding="utf-8")
