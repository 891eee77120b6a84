"""Charts as files: SVG, PNG, PDF, and the numbers behind them as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.errors import InputError
from evenrank.formats.files import writing
from evenrank.report.figures import Figure
from evenrank.report.sections import figures

FORMATS = ("svg", "png", "pdf")
WIDTH = 640


def write_charts(
    audit: Audit, folder: str | PathLike[str], formats: Sequence[str] = FORMATS, **more: Any
) -> list[Path]:
    """Write every chart of the report; returns the paths."""
    for form in formats:
        if form not in FORMATS:
            raise InputError(f"charts cannot be written as {form!r}; one of {', '.join(FORMATS)}")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", path=target) from error
    written = []
    for each in figures(audit, **more).values():
        for figure in each:
            for form in formats:
                written.append(_write(target / f"{figure.id}.{form}", drawn(figure, form)))
            written.append(_write(target / f"{figure.id}.csv", figure.frame.write_csv().encode()))
    return written


def drawn(figure: Figure, form: str) -> bytes:
    """One chart, as the bytes of a file."""
    import vl_convert

    spec = figure.chart.to_dict()
    spec["width"] = WIDTH
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
