"""`render`: an audit as one HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from evenrank.auditing import verdict
from evenrank.auditing.result import Audit
from evenrank.errors import InputError
from evenrank.measures.base import direction, is_bias, meaning, short
from evenrank.show import cells, gauge, sections
from evenrank.show.charts.theme import LIGHT, configuration
from evenrank.show.figures import embedded
from evenrank.show.measured_figures import RUNS

MORE = ("tradeoff", "rank_shift", "association", "psychology", "representation", "title")

TITLES = {
    "verdict": "Verdict",
    "values": "All measures",
    "cutoff": "Bias by cut-off",
    "change": "Change by query",
    "words": "What makes up the bias",
    "passages": "Queries and passages",
    "stereotype": "Stereotypes",
    "gendered": "Most gendered queries",
    "tradeoff": "Trade-off",
    "rankshift": "Counterfactual rank shift",
    "representation": "Representation",
    "disparity": "Who is served better",
    "psychology": "Psychological characteristics",
    "association": "Association",
    "reading": "Reading the numbers",
    "provenance": "Provenance",
}


def render(audit: Audit, **more: Any) -> str:
    """The page as text. `more` as for :meth:`evenrank.Audit.report`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    for name in more:
        if name not in MORE:
            raise InputError(f"the report has no {name!r}; it takes {', '.join(MORE)}")
    figures = sections.figures(audit, **more)
    everything = [figure for each in figures.values() for figure in each]
    script = _template("report.js")
    bundle = _bundle() if everything else ""
    environment = Environment(
        loader=PackageLoader("evenrank.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "signed": cells.signed,
        "plain": cells.plain,
        "p": cells.p_value,
        "effect": cells.effect,
        "few": cells.few,
    }
    environment.filters |= {"minus": cells.minus, "upper_first": cells.upper_first}
    environment.globals.update(short=short, meaning=meaning, direction=direction, is_bias=is_bias)
    given = {figure.id: {"spec": figure.spec(), **figure.data()} for figure in everything}
    colours = {name: f"var(--{name})" for name in LIGHT} | {"surface": "transparent"}
    content = {
        "audit": audit,
        "title": more.get("title") or "Search bias audit",
        "headline": verdict.headline(audit),
        "cards": gauge.cards(audit),
        "figures": figures,
        "table": cells.table(audit),
        "comparisons": cells.comparisons(audit),
        "leaning": cells.leaning(audit),
        "runs_shown": RUNS,
        "gendered": cells.gendered(audit),
        "disparities": cells.disparities(audit),
        "psychology": cells.psychology(more.get("psychology") or audit.psychology),
        "facts": cells.facts(audit),
        "contents": _contents(audit, figures),
        "colours": LIGHT,
        "style": Markup(_template("style.css")),  # our own file
        "script": Markup(script),
        "bundle": Markup(bundle),
        "charts": Markup(embedded({"config": configuration(colours), "figures": given})),
        "policy": _policy(bundle, script),
    }
    return environment.get_template("report.html").render(**content)


def _contents(audit: Audit, figures: sections.Figures) -> dict[str, str]:
    """The sections that are there, with their titles."""
    there = {
        **dict.fromkeys(figures, True),
        **dict.fromkeys(("verdict", "values", "reading", "provenance"), True),
        "passages": bool(audit.leaning),
        "gendered": any(audit.gendered),
        "disparity": audit.disparity is not None,
    }
    return {name: title for name, title in TITLES.items() if there.get(name)}


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
