"""`evenrank represent`: does the top of result lists show each group as often as it should?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, Tokenizer, coloured, deliver, parse_runs
from evenrank.errors import InputError
from evenrank.show.grid import Grid
from evenrank.show.numbers import counted as plural
from evenrank.show.numbers import interval, plain, signed

if TYPE_CHECKING:
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
    headers = {"query": query_column, "doc_id": doc_column, "rank": rank_column, "group": group_column}
    columns = {column: header for column, header in headers.items() if header}
    given: dict[str, Any] = {"labels": labels, "tally": counted, "columns": columns}
    result = {
        name: represent(results, target, at=at, short=short.value, **given)
        for name, target in parse_runs(targets, "targets").items()
    }
    if chart is not None:
        from evenrank.show.charts.representation import representation_figures
        from evenrank.show.report import write_sheet

        drawn = result if len(result) > 1 else next(iter(result.values()))
        write_sheet(representation_figures(drawn, feature=feature, named=", targets: {}"), chart)
    deliver(render(result, form, feature=feature, output=output), output)


_BAR = 40


def render(
    results: Mapping[str, Representation],
    form: Format,
    *,
    feature: str | None = None,
    output: Path | None = None,
) -> str:
    """The results as text in the form asked for; there is one for each table of targets."""
    import polars as pl
    from rich.text import Text

    from evenrank.cli.rendering import canvas

    first = next(iter(results.values()))
    if feature is not None and feature not in first.features:
        raise InputError(f"there is no group {feature!r}; one of {', '.join(first.features)}")
    if form is Format.json:
        content = first.to_dict()
        if len(results) > 1:
            named = [{"name": name, **one.to_dict()} for name, one in results.items()]
            content = {"at": first.at, "targets": named}
        return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        frames = [r.frame().select(pl.lit(name).alias("targets"), pl.all()) for name, r in results.items()]
        return pl.concat(frames).write_csv()
    summary = _summary(results)
    if form is Format.latex:
        return summary.latex()
    console = canvas(output)
    console.print(summary.terminal(console.width))
    for name, one in results.items():
        of = feature if feature in one.features else one.features[0]
        heading = f"{of}, targets: {name}" if len(results) > 1 else of
        console.print(Text(f"\nqueries by bias, {heading}", style="bold"))
        console.print(_histogram(one, of).terminal(console.width))
        console.print(Text(f"\nqueries, {heading}", style="bold"))
        console.print(_queries(one, of).terminal(console.width))
        for remark in _remarks(one):
            console.print(Text(remark if len(results) == 1 else f"{name}: {remark}", style="dim"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def _summary(results: Mapping[str, Representation]) -> Grid:
    """A row for each table of targets and group, as Table 1 of Lipani et al. with intervals."""
    at = next(iter(results.values())).at
    headings = [f"MB@{at}", "95% interval", f"SB@{at}", f"MAB@{at}", "min", "max", "queries"]
    rows = []
    for name, one in results.items():
        for place, feature in enumerate(one.features):
            s = one.summary(feature)
            cells = [signed(s["MB"]), interval(s["low"], s["high"]), plain(s["SB"]), plain(s["MAB"])]
            ends = [signed(s["min"]), signed(s["max"]), f"{s['queries']:,}"]
            rows.append(["" if place else name, feature, *cells, *ends])
    return Grid(["targets", "group", *headings], rows, left=2)


def _histogram(representation: Representation, feature: str) -> Grid:
    counts = {bias: n for bias, n in representation.histogram(feature).items() if n}
    most = max(counts.values(), default=1)
    rows = [[f"{bias:+.2f}", "█" * max(1, round(n / most * _BAR)), f"{n:,}"] for bias, n in counts.items()]
    return Grid(["bias", "", "queries"], rows, left=2)


def _queries(representation: Representation, feature: str) -> Grid:
    rows: list[list[str]] = []
    for name, frame in representation.remarkable(feature).items():
        name = name if name == "unbiased" else f"most biased {name}"
        for place, row in enumerate(frame.iter_rows(named=True)):
            numbers = [f"{row['model']:.2f}", f"{row['target']:.2f}", f"{row['bias']:+.2f}"]
            rows.append(["" if place else name, row["query"], *numbers])
    return Grid(["", "query", "shown", "wanted", "bias"], rows, left=2)


def _remarks(representation: Representation) -> list[str]:
    r = representation
    texts = [f"labels: {r.labels}; targets: {r.targets}"]
    if r.short:
        divisor = "their own length" if r.divisor == "length" else "the cut-off"
        texts.append(f"{r.short:,} of {r.lists:,} lists have fewer than {r.at} results, divided by {divisor}")
    if r.unknown:
        texts.append(f"{r.unknown:.1%} of the top {r.at} show no group; they count as results")
    for reason, count in r.left_out.items():
        texts.append(f"{plural(count, 'query', 'queries')} left out, {reason}")
    return texts
