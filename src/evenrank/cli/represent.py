"""`evenrank represent`: does the top of result lists show each group as often as it should?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, Tokenizer, coloured, deliver, exists
from evenrank.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from evenrank.measures.representation import Representation


class Short(StrEnum):
    length = "length"
    paper = "paper"


def represent_command(
    results: Annotated[
        str,
        typer.Argument(
            metavar="RESULTS",
            help="Result lists (TSV, CSV, JSONL, Parquet): query, doc_id, rank, group; or a TREC run.",
        ),
    ],
    targets: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]FILE|full",
            help="True shares: query and a column for each group (with two groups, one is enough), or "
            "`full` for the shares in the whole lists. Repeat it to compare.",
        ),
    ],
    at: Annotated[int, typer.Option(help="Cut-off: how many results of each list count.", min=1)] = 10,
    short: Annotated[
        Short,
        typer.Option(help="What a shorter list is divided by: its length, or the cut-off as in the paper."),
    ] = Short.length,
    feature: Annotated[
        str | None, typer.Option(help="The group for which queries are listed.", show_default="the first")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Groups of documents (doc_id, group), if not in RESULTS."),
    ] = None,
    tally: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Infer groups from a tally: each document belongs to the group of which it has most words.",
        ),
    ] = None,
    docs: Annotated[
        str | None, typer.Option(metavar="DOCS", help="Infer groups from the documents' words.")
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="Words of each group, with --docs.", show_default="rekabsaz2020")
    ] = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How text becomes words, with --docs.", show_default="words")
    ] = None,
    query_column: Annotated[
        str | None, typer.Option(help="Header of the query.", show_default="query")
    ] = None,
    doc_column: Annotated[
        str | None, typer.Option(help="Header of the document.", show_default="doc_id")
    ] = None,
    rank_column: Annotated[str | None, typer.Option(help="Header of the rank.", show_default="rank")] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Header of the group.", show_default="group, gender or label")
    ] = None,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Measure representation bias: the share of results that show a group, minus the share that should.

    Positive is toward the group, negative against it, 0 as often as it should be shown. MB is the mean over
    queries, SB the standard deviation, MAB the mean of absolute values.

        evenrank represent results.tsv --targets census.tsv --targets full --at 10
    """
    from evenrank.measures.representation import represent

    counted: Any = tally
    if docs is not None or (tally is not None and (lexicon or tokenizer)):
        counted = coloured(tally, docs, lexicon, tokenizer)
    mapped = {"query": query_column, "doc_id": doc_column, "rank": rank_column, "group": group_column}
    result: dict[str, Representation] = {}
    for name, target in _named(targets).items():
        result[name] = represent(
            results,
            target,
            at=at,
            short=short.value,
            labels=labels,
            tally=counted,
            columns={column: header for column, header in mapped.items() if header},
        )
    if chart is not None:
        from evenrank.show.charts.representation import representation_figures
        from evenrank.show.report import write_sheet

        drawn = result if len(result) > 1 else next(iter(result.values()))
        write_sheet(representation_figures(drawn, feature=feature, named=", targets: {}"), chart)
    deliver(render(result, form, feature=feature, output=output), output)


def _named(targets: list[str]) -> dict[str, str]:
    """Targets by name, the name of the file unless given; a name given twice is refused."""
    from evenrank.errors import InputError

    result: dict[str, str] = {}
    for text in targets:
        name, equals, path = text.partition("=")
        if not equals or exists(text):
            name, path = text if text == "full" else Path(text).name.partition(".")[0], text
        if not name or not path:
            raise InputError(f"--targets {text!r}: write it as NAME=FILE, FILE or full")
        if name in result:
            raise InputError(f"two targets are called {name!r}; give one another name: --targets NAME={path}")
        result[name] = path
    return result


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
    import polars as pl
    from rich.text import Text

    from evenrank.cli.rendering import canvas

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
    from rich.text import Text

    from evenrank.cli.rendering import GROUP_COLOURS
    from evenrank.show.numbers import interval

    at = next(iter(found.values())).at
    grid = _grid()
    grid.add_column("targets", overflow="fold")
    grid.add_column("group", overflow="fold")
    headings = [f"{heading}@{at}" for heading in _SUMMARY[:3]]
    for name in (headings[0], "95% interval", *headings[1:], "min", "max", "queries"):
        grid.add_column(name, justify="right", no_wrap=True)
    for name, representation in found.items():
        for place, feature in enumerate(representation.features):
            summary = representation.summary(feature)
            cells = _cells(representation, feature)
            group = Text(feature, style=GROUP_COLOURS.get(feature, ""))
            bounds = interval(summary["low"], summary["high"])
            queries = f"{summary['queries']:,}"
            grid.add_row(Text("" if place else name), group, cells[0], bounds, *cells[1:], queries)
    return grid


def _histogram(representation: Representation, feature: str, heading: str) -> Table:
    counts = {bias: n for bias, n in representation.histogram(feature).items() if n}
    grid = _grid(f"\nqueries by bias, {heading}")
    for _ in range(3):
        grid.add_column("", justify="right" if _ == 0 else "left", no_wrap=True)
    grid.show_header = False
    most = max(counts.values(), default=1)
    for bias, n in counts.items():
        grid.add_row(f"{bias:+.2f}", "█" * max(1, round(n / most * _BAR)), f"{n:,}")
    return grid


def _lists(representation: Representation, feature: str, heading: str) -> Table:
    from rich.text import Text

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
            row = rows.row(place, named=True) if place < len(rows) else None
            cells.append(Text(row["query"] if row else ""))
            cells.append(f"{row['model']:.2f} {row['target']:.2f} {row['bias']:+.2f}" if row else "")
        grid.add_row(*cells)
    return grid


def _remarks(representation: Representation) -> list[str]:
    from evenrank.show.numbers import counted

    r = representation
    texts = [f"labels: {r.labels}; targets: {r.targets}"]
    if r.short:
        divisor = "their own length" if r.divisor == "length" else "the cut-off"
        texts.append(f"{r.short:,} of {r.lists:,} lists have fewer than {r.at} results, divided by {divisor}")
    if r.unknown:
        texts.append(f"{r.unknown:.1%} of the top {r.at} show no group; they count as results")
    for reason, count in r.left_out.items():
        texts.append(f"{counted(count, 'query', 'queries')} left out, {reason}")
    return texts


def _latex(found: Mapping[str, Representation]) -> str:
    """A table for a paper (package booktabs), laid out as Table 1 of Lipani et al."""
    from evenrank.show.grid import Grid

    at = next(iter(found.values())).at
    headings = [*(f"{heading}@{at}" for heading in _SUMMARY[:3]), "min", "max"]
    rows = [
        ["" if place else name, feature, *_cells(representation, feature)]
        for name, representation in found.items()
        for place, feature in enumerate(representation.features)
    ]
    return Grid(["Targets", "Group", *headings], rows, left=2).latex()


def _cells(representation: Representation, feature: str) -> list[str]:
    from evenrank.show.numbers import PLAIN, SIGNED, number

    summary = representation.summary(feature)
    return [number(summary[key], PLAIN if key in ("SB", "MAB") else SIGNED) for key in _SUMMARY]


def _grid(title: str | None = None) -> Table:
    from rich.table import Table
    from rich.text import Text

    return Table(
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
        title=None if title is None else Text(title),
        title_justify="left",
        title_style="bold",
    )
