"""`render`: an audit as one HTML page that needs no network; its charts as files, the page as a print."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

from evenrank.auditing import verdict
from evenrank.auditing.result import Audit
from evenrank.data.files import make_folder, writing
from evenrank.errors import InputError
from evenrank.measures.base import interpretation, is_bias, meaning, short
from evenrank.show import numbers, tables
from evenrank.show.charts import change, query_gender, representation, stages, tradeoff, values
from evenrank.show.charts.theme import FONT, LIGHT, configuration
from evenrank.show.figure import Figure, Section, embedded
from evenrank.show.numbers import minus

FORMATS = ("svg", "png", "pdf")
WIDTH = 640
_STYLED = {name: f"var(--{name})" for name in LIGHT} | {"surface": "transparent"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CHOSEN_DARK = '@media screen {\n  :root[data-theme="dark"] {'
_SYSTEM_DARK = "@media screen and (prefers-color-scheme: dark) {\n  :root {"
_UNSEEN = re.compile(
    r'<path [^>]*(?:d=""|display="none")[^>]*/>|'
    r' (?:class|role|aria-[a-z]+|pointer-events)="[^"]*"| opacity="1"'
)
_LONG = re.compile(r"-?\d+\.\d{3,}")
_PATIENCE = 180  # seconds; a report of many charts takes some ten
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
    query_gender.stereotype_section,
    tables.gendered,
    tradeoff.section,
    change.shift_section,
    representation.section,
    tables.selection,
    tables.disparity,
    query_gender.psychology_section,
    query_gender.association_section,
    query_gender.variant_section,
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
    built = (section(audit, more) for section in SECTIONS)
    return [section for section in built if section is not None]


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
    content = {
        "audit": audit,
        "title": more.get("title") or "Search bias audit",
        "headline": verdict.headline(audit),
        "back": more.get("back"),
        "sections": shown,
        "script": Markup(script),
        "bundle": Markup(bundle),
        "charts": Markup(embedded({"config": configuration(_STYLED), "figures": given})),
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
        "upper_first": numbers.upper_first,
    }
    environment.filters |= filters
    environment.globals.update(short=short, meaning=meaning, direction=interpretation, is_bias=is_bias)
    style = _template("style.css")  # our own file
    environment.globals["style"] = Markup(style)
    # A page without a script cannot be told light or dark: it is as the system is.
    environment.globals["system_style"] = Markup(style.replace(_CHOSEN_DARK, _SYSTEM_DARK))
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


def write_charts(
    audit: Audit, folder: str | PathLike[str], formats: Sequence[str] = FORMATS, **more: Any
) -> list[Path]:
    """Write every chart of the report; returns the paths."""
    for form in formats:
        if form not in FORMATS:
            raise InputError(f"charts cannot be written as {form!r}; one of {', '.join(FORMATS)}")
    target = make_folder(folder)
    written = []
    for section in sections(audit, **more):
        for figure in section.figures:
            for form in formats:
                written.append(_write(target / f"{figure.id}.{form}", drawn(figure, form)))
            written.append(_write(target / f"{figure.id}.csv", figure.frame.write_csv().encode()))
    return written


def write_sheet(figures: Sequence[Figure], path: str | PathLike[str]) -> Path:
    """Write charts beneath one another into one file; its ending says which form it has."""
    target, form = Path(path), sheet_form(path)
    if not figures:
        raise InputError("there is nothing to draw: no group, or no query that was compared", path=target)
    return _write(target, converted(sheet(figures).to_dict(), form))


def sheet_form(path: str | PathLike[str]) -> str:
    """The form of a sheet of charts that the ending of its file names."""
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(f"a chart ends in .{', .'.join(FORMATS)}, not {target.name!r}")
    return form


def sheet(figures: Sequence[Figure], *, width: int = WIDTH) -> Any:
    """Charts beneath one another, as one."""
    import altair as alt

    titled = []
    for figure in figures:
        # The look belongs to the whole sheet: a part of one may not bring its own.
        part = figure.chart.properties(title=alt.TitleParams(figure.title, frame="group"), width=width)
        part.config = alt.Undefined
        titled.append(part)
    # One legend to a chart: groups keep their colours, but not every chart has every group.
    return alt.vconcat(*titled, spacing=28, config=alt.Config(**configuration())).resolve_scale(
        color="independent", shape="independent"
    )


def write_chart(chart: Any, path: str | PathLike[str]) -> Path:
    """Write one chart, in the form that its ending names; as HTML it needs no network."""
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")
    known = (*FORMATS, "html", "json")
    if form not in known:
        raise InputError(f"a chart ends in .{', .'.join(known)}, not {target.name!r}", path=target)
    if form in FORMATS:
        return _write(target, converted(chart.to_dict(), form))
    text = StringIO()
    chart.save(text, format=form, **({"inline": True} if form == "html" else {}))
    return _write(target, text.getvalue().encode())


def drawn(figure: Figure, form: str) -> bytes:
    """One chart, as the bytes of a file."""
    spec = figure.chart.to_dict()
    if spec.get("width") == "container":
        spec["width"] = WIDTH
    most = spec.get("width", WIDTH - 80) // 7  # panels beside one another have no width of their own
    spec["title"] = {"text": figure.title, "subtitle": _lines(figure.caption, most), "frame": "group"}
    return converted(spec, form)


def slim(svg: bytes) -> bytes:
    """The same picture in fewer bytes, for pages that describe it themselves.

    The font is said once, places are told to a hundredth of a pixel, and what is not seen is left out.
    """
    text, font = svg.decode(), f' font-family="{FONT}"'
    text = _UNSEEN.sub("", text.replace(font, "")).replace("<svg ", f"<svg{font} ", 1)
    text = re.sub(r'="[^"]*\d\.\d{3}[^"]*"', lambda found: _LONG.sub(_to_hundredths, found[0]), text)
    return text.encode()


def _to_hundredths(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def inline(figure: Figure) -> Any:
    """One chart as SVG within a page without scripts; its colours are those of the page's style."""
    from markupsafe import Markup

    spec = figure.chart.to_dict() | {"config": configuration(_STYLED) | {"aria": False}}
    return Markup(slim(converted(spec, "svg")).decode())  # text within is escaped by Vega


def _lines(text: str, most: int) -> list[str]:
    """Text in lines that fit above a chart."""
    import textwrap

    return textwrap.wrap(text, most)


def converted(spec: dict[str, Any], form: str) -> bytes:
    """A chart in Vega-Lite, as the bytes of a file."""
    import vl_convert

    if form == "svg":
        text: str = vl_convert.vegalite_to_svg(spec)
        return text.encode()
    if form == "png":
        png: bytes = vl_convert.vegalite_to_png(spec, scale=2)
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(spec)
    return pdf


def _write(path: Path, content: bytes) -> Path:
    with writing(path) as file:
        file.write(content)
    return path


class CannotPrintError(Exception):
    """Why a page could not be printed."""


def printed(page: str) -> bytes:
    """A page as PDF, as Chromium prints it: the style for paper, charts drawn in lines, links kept.

    Raises
    ------
    CannotPrintError
        No Chromium, or one that does not print.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise CannotPrintError("no Chromium is installed")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            browser, "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run",
            "--disable-extensions", f"--user-data-dir={folder}/profile", "--no-pdf-header-footer",
            "--virtual-time-budget=60000", f"--print-to-pdf={target}",
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # root has none; the page runs no script but its own
        try:
            done = subprocess.run(
                [*command, source.as_uri()], capture_output=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotPrintError(f"{Path(browser).name} does not print: {error}") from error
        if done.returncode or not target.is_file():
            raise CannotPrintError(f"{Path(browser).name} ended with {done.returncode}")
        return target.read_bytes()
