"""Representation bias as a table in the terminal, JSON, CSV or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from evenrank.cli.common import Format
from evenrank.cli.grids import GROUP_COLOURS, canvas
from evenrank.errors import InputError
from evenrank.measures.representation import Representation
from evenrank.show.grid import Grid
from evenrank.show.numbers import PLAIN, SIGNED, number

_SUMMARY = ("MB", "SB", "MAB", "min", "max")
_BAR = 40


def render(
    found: Mapping[str, Representation],
    form: Format,
    *,
    feature: str | None = None,
    output: Path | None = None,
) -> str:
    """The results as text in the form asked for; `found` holds one for each table of targets."""
    first = next(iter(found.values()))
    if feature is not None and feature not in first.features:
        raise InputError(f"there is no group {feature!r}; one of {', '.join(first.features)}")
    if form is Format.json:
        return json.dumps(_json(found), ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        frames = [r.frame().select(pl.lit(name).alias("targets"), pl.all()) for name, r in found.items()]
        return pl.concat(frames).write_csv()
    if form is Format.latex:
        return _latex(found)
    console = canvas(output)
    console.print(_summaries(found))
    for name, representation in found.items():
        of = feature if feature in representation.features else representation.features[0]
        heading = f"{of}, targets: {name}" if len(found) > 1 else of
        console.print(_histogram(representation, of, heading), _lists(representation, of, heading))
        for text in _remarks(representation):
            console.print(Text(text if len(found) == 1 else f"{name}: {text}", style="dim"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def _json(found: Mapping[str, Representation]) -> dict[str, Any]:
    if len(found) == 1:
        return next(iter(found.values())).to_dict()
    at = next(iter(found.values())).at
    return {"at": at, "targets": [{"name": name, **r.to_dict()} for name, r in found.items()]}


def _summaries(found: Mapping[str, Representation]) -> Table:
    at = next(iter(found.values())).at
    grid = _grid()
    grid.add_column("targets")
    grid.add_column("group")
    for name in (*(f"{heading}@{at}" for heading in _SUMMARY[:3]), "min", "max", "queries"):
        grid.add_column(name, justify="right")
    for name, representation in found.items():
        for place, feature in enumerate(representation.features):
            summary = representation.summary(feature)
            cells = _cells(representation, feature)
            group = Text(feature, style=GROUP_COLOURS.get(feature, ""))
            grid.add_row(Text("" if place else name), group, *cells, f"{summary['queries']:,}")
    return grid


def _histogram(representation: Representation, feature: str, heading: str) -> Table:
    counts = {bias: n for bias, n in representation.histogram(feature).items() if n}
    grid = _grid(f"\nqueries by bias, {heading}")
    for _ in range(3):
        grid.add_column("", justify="right" if _ == 0 else "left")
    grid.show_header = False
    most = max(counts.values(), default=1)
    for bias, n in counts.items():
        grid.add_row(f"{bias:+.2f}", "█" * max(1, round(n / most * _BAR)), f"{n:,}")
    return grid


def _lists(representation: Representation, feature: str, heading: str) -> Table:
    columns = {
        "most biased against": representation.against(feature),
        "unbiased": representation.unbiased(feature),
        "most biased toward": representation.toward(feature),
    }
    grid = _grid(f"\nshown, wanted and bias, {heading}")
    for name in columns:
        grid.add_column(name, overflow="fold")
        grid.add_column("", justify="right", no_wrap=True)
    for place in range(max(map(len, columns.values()))):
        cells: list[str | Text] = []
        for rows in columns.values():
            row = rows[place] if place < len(rows) else None
            cells.append(Text(row.query if row else ""))
            cells.append(
                f"{float(row.model):.2f} {float(row.target):.2f} {float(row.bias):+.2f}" if row else ""
            )
        grid.add_row(*cells)
    return grid


def _remarks(representation: Representation) -> list[str]:
    r = representation
    texts = [f"labels: {r.labels}; targets: {r.targets}"]
    if r.short:
        divisor = "their own length" if r.divisor == "length" else "the cut-off"
        texts.append(f"{r.short:,} of {r.lists:,} lists have fewer than {r.at} results, divided by {divisor}")
    if r.unknown:
        texts.append(f"{r.unknown:.1%} of the top {r.at} show no group; they count as results")
    texts += [f"{count:,} queries left out, {reason}" for reason, count in r.left_out.items()]
    return texts


def _latex(found: Mapping[str, Representation]) -> str:
    """A table for a paper (package booktabs), laid out as Table 1 of Lipani et al."""
    at = next(iter(found.values())).at
    headings = [*(f"{heading}@{at}" for heading in _SUMMARY[:3]), "min", "max"]
    rows = [
        ["" if place else name, feature, *_cells(representation, feature)]
        for name, representation in found.items()
        for place, feature in enumerate(representation.features)
    ]
    return Grid(["Targets", "Group", *headings], rows, left=2).latex()


def _cells(representation: Representation, feature: str) -> list[str]:
    summary = representation.summary(feature)
    return [number(summary[key], PLAIN if key in ("SB", "MAB") else SIGNED) for key in _SUMMARY]


def _grid(title: str | None = None) -> Table:
    return Table(
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
        title=None if title is None else Text(title),
        title_justify="left",
        title_style="bold",
    )
