"""Tables that commands print: to the terminal, a file or a pipe; measurements as one, JSON, CSV or LaTeX."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from rich.console import Console, Group, RenderableType, RenderHook
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evenrank.cli.common import Format, deliver
from evenrank.cli.streams import visible
from evenrank.measures.results import Measurement, Measurements, Summary
from evenrank.show.grid import Grid
from evenrank.show.numbers import counted, form_of, interval, level, number, plain, signed

GROUP_COLOURS = {"female": "medium_purple1", "male": "dark_orange"}


def render_grid(
    form: Format,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    remarks: Iterable[str] = (),
    left: int = 1,
    output: Path | None = None,
) -> str:
    """A table for people, or LaTeX. The first `left` columns are text; a row without cells is a gap.

    `output` is the file it goes to, if not the screen.
    """
    grid = Grid(headings, rows, left)
    if form is Format.latex:
        return grid.latex()
    console = canvas(output)
    console.print(grid.terminal(console.width))
    for remark in remarks:
        console.print(Text(remark, style="dim"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def print_found(found: Any, form: Format, output: Path | None) -> None:
    """What knows itself as JSON, a frame and a grid with remarks, in the form asked for."""
    if form is Format.json:
        deliver(found.to_json(), output)
    elif form is Format.csv:
        deliver(found.frame().write_csv(), output)
    else:
        grid = found.grid()
        text = render_grid(
            form, grid.headings, grid.rows, left=grid.left, remarks=found.remarks(), output=output
        )
        deliver(text, output)


def draw(found: Any, chart: Path | None) -> None:
    """The charts of a result in one file, where one is asked for."""
    if chart is None:
        return
    from evenrank.show.notebook import figures
    from evenrank.show.report import write_sheet

    write_sheet(figures(found), chart)


def canvas(output: Path | None) -> Console:
    """Where a table is drawn before it is delivered; names are taken as they are, brackets and all.

    Coloured and as wide as the terminal if it goes there; plain and wide enough for any table if it goes
    to a file or a pipe.
    """
    screen = output is None and sys.stdout.isatty()
    width = Console().width if screen else 160
    built = Console(
        file=io.StringIO(), width=width, force_terminal=screen, highlight=False, markup=False, emoji=False
    )
    built.push_render_hook(Plain())
    return built


class Plain(RenderHook):
    """For a console of Rich: what is printed on it, with control characters in sight."""

    def process_renderables(self, renderables: list[Any]) -> list[Any]:
        return [_Shown(each) for each in renderables]


class _Shown:
    def __init__(self, content: Any) -> None:
        self.content = content

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Segment]:
        for segment in console.render(self.content, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


_ATTRIBUTED = 8  # rows shown of each list of contributions


def render(
    measured: Measurements,
    form: Format,
    *,
    per_query: bool = False,
    confidence: float = 0.95,
    output: Path | None = None,
) -> str:
    """The results as text in the form asked for; `output` is the file they go to, if not the screen."""
    if form is Format.json:
        content = measured.to_dict(per_query=per_query)
        return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return (measured.per_query() if per_query else _summaries(measured)).write_csv()
    if form is Format.latex:
        from evenrank.auditing.result import latex_values

        return latex_values(measured)
    console = canvas(output)
    console.print(table(measured, width=console.width, confidence=confidence))
    for m in measured:
        if m.attribution is not None:
            console.print(explanation(m))
    if per_query:
        console.print(_frame(measured))
    return console.file.getvalue()  # type: ignore[attr-defined]


def _summaries(measured: Measurements) -> pl.DataFrame:
    """One row for each run and measure, with the label of the measured queries if there is one."""
    frame = measured.frame()
    labels = pl.Series("only", [m.only for m in measured], dtype=pl.String)
    return frame if labels.null_count() == len(labels) else frame.insert_column(2, labels)


class _Column(NamedTuple):
    """A column of the table: what stands in it for a measurement and one of its summaries."""

    name: str
    cell: Callable[[Measurement, Summary], str]
    style: str = ""


def table(measured: Measurements, *, width: int, confidence: float = 0.95) -> RenderableType:
    """One line for each measure and run, those of one measure together, and remarks beneath.

    In less than 110 columns only the value, its interval and its parts are shown; ties and the mean of
    absolute values are among the remarks then. Where even these do not fit, the measure's name gets a line
    of its own, and then the parts and the interval go, last column first; a remark says so.
    """
    rows = sorted(measured, key=lambda m: _place(measured, m))
    columns = [_Column("value", lambda m, s: number(s.value, form_of(m.measure)))]
    if any(s.low is not None for m in rows for s in _shown(m)):
        columns.append(_Column(f"{level(confidence)} interval", _bounds))
    for group in dict.fromkeys(name for m in rows for s in _shown(m) for name in s.parts):
        cell = partial(_part, group)
        columns.append(_Column(group, cell, GROUP_COLOURS.get(group, "")))
    wide = width >= 110
    columns += _wide_columns(rows) if wide else []
    last = _Column("on queries" if any(m.only is not None for m in rows) else "queries", _counted)
    apart, dropped = False, list[str]()
    if not wide:
        apart = _width(rows, [*columns, last], width) > width
        while len(columns) > 1 and _width(rows, [*columns, last], width, apart=apart) > width:
            dropped.append(columns.pop().name)
    columns.append(last)
    widths = [_widest(rows, column) for column in columns]
    longest = min(max(len(m.run) for m in rows), width - sum(widths) - 2 * len(widths))

    def begun(header: bool = True) -> Table:
        grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0), show_header=header)
        if not apart:
            grid.add_column("measure", no_wrap=True)
        grid.add_column("run", overflow="fold", min_width=max(longest, 3) if apart else None)
        for column, needed in zip(columns, widths, strict=True):
            side: Literal["left", "right"] = "right" if column.name else "left"
            grid.add_column(
                Text(column.name), justify=side, style=column.style, no_wrap=True, min_width=needed
            )
        return grid

    def add(name: str, run: str, m: Measurement, summary: Summary, style: str = "") -> None:
        heads = [Text(run)] if apart else [Text(name), Text(run)]
        grid.add_row(*heads, *(column.cell(m, summary) for column in columns), style=style)

    def add_yardsticks() -> None:
        for kind, of, baseline in yardsticks:
            add("", kind, of, baseline, "dim")

    grid = begun()
    shown: list[RenderableType] = [grid]
    before, yardsticks = None, list[tuple[str, Measurement, Summary]]()
    for m in rows:
        name = str(m.measure)
        if before not in (None, name):
            add_yardsticks()
            grid.add_row()
        if apart and name != before:
            grid = begun(header=False)
            shown += [Text(name, style="bold"), grid]
        yardsticks = [(f"({kind})", m, baseline) for kind, baseline in m.baselines.items()]
        add(name if name != before else "", m.run, m, m)
        for subset in m.subsets.values():
            add("", "", m, subset, "dim")
        before = name
    add_yardsticks()
    remarks = [*([] if wide else _narrow_remarks(rows)), *_remarks(rows)]
    if dropped:
        remarks.append(f"no room for {', '.join(reversed(dropped))}; --format json has everything")
    return Group(*shown, *(Text(text, style="dim") for text in remarks))


def _width(
    rows: Sequence[Measurement], columns: Iterable[_Column], width: int, *, apart: bool = False
) -> int:
    """Characters that the table takes, names of runs being folded at a third of the width."""
    name = 0 if apart else 2 + max(len(str(m.measure)) for m in rows)
    run = min(max(3, *(len(m.run) for m in rows)), width // 3)
    return name + run + sum(2 + _widest(rows, column) for column in columns)


def _widest(rows: Iterable[Measurement], column: _Column) -> int:
    return max(len(column.name), *(len(column.cell(m, s)) for m in rows for s in _shown(m)))


def _counted(m: Measurement, summary: Summary) -> str:
    """How many queries a line is about, and which."""
    if summary is m:
        return f"{m.queries:,}" + ("" if m.only is None else f" {m.only}")
    label = next((f" {label}" for label, one in m.subsets.items() if one is summary), "")
    return f"{summary.queries:,}{label}"


def _bounds(m: Measurement, summary: Summary) -> str:
    return interval(summary.low, summary.high, form_of(m.measure))


def _shown(m: Measurement) -> list[Summary]:
    """All summaries that get a line."""
    return [m, *m.subsets.values(), *m.baselines.values()]


def _narrow_remarks(rows: list[Measurement]) -> list[str]:
    """What would have columns of its own in a wide terminal: one remark for each measure."""
    spread: dict[str, list[str]] = {}
    tied: dict[str, list[str]] = {}
    for m in rows:
        if m.abs is not None:
            spread.setdefault(str(m.measure), []).append(f"{m.run} {m.abs:.3f}")
        if m.ties:
            tied.setdefault(str(m.measure), []).append(f"{m.run} {m.ties:.0%}")
    return [
        *(f"mean |{name}|: {', '.join(runs)}" for name, runs in spread.items()),
        *(f"{name}, queries with a tie at the cut-off: {', '.join(runs)}" for name, runs in tied.items()),
    ]


def _wide_columns(rows: list[Measurement]) -> list[_Column]:
    """What there is room for in a wide terminal; only columns with something in them."""

    def offered(key: str, m: Measurement, s: Summary) -> str:
        if s is not m or key not in m.background:
            return ""
        result = m.background[key]
        return signed(result["value"]) + (f", {result['queries']:,}" if "queries" in result else "")

    columns = []
    if any(s.abs is not None for m in rows for s in _shown(m)):
        columns.append(_Column("mean |·|", lambda m, s: "" if s.abs is None else f"{s.abs:.3f}"))
    for key, name in (("collection", "collection"), ("qrels", "relevant, n")):
        if any(key in m.background for m in rows):
            columns.append(_Column(name, partial(offered, key), "dim"))
    if any(m.ties for m in rows):
        columns.append(_Column("tied", lambda m, s: f"{m.ties:.0%}" if m.ties is not None and s is m else ""))
    return columns


def _part(group: str, m: Measurement, summary: Summary) -> str:
    return "" if group not in summary.parts else f"{summary.parts[group]:.3f}"


def _place(measured: Measurements, m: Measurement) -> tuple[int, int]:
    order = [str(other.measure) for other in measured.runs[m.run]]
    return order.index(str(m.measure)), list(measured.runs).index(m.run)


def _remarks(rows: Iterable[Measurement]) -> list[str]:
    """Left-out queries and notes, each once, with the runs and measures they concern."""
    concerned: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for m in rows:
        texts = [
            f"{counted(count, 'query', 'queries')} left out, {reason}" for reason, count in m.left_out.items()
        ]
        if m.subsets:  # their values are in the table
            texts = [text for text in texts if "labelled" not in text]
        for text in [*texts, *m.notes]:
            runs, measures = concerned.setdefault(text, ({}, {}))
            runs[m.run], measures[str(m.measure)] = None, None
    return [f"{', '.join(m)} of {', '.join(r)}: {text}" for text, (r, m) in concerned.items()]


def explanation(m: Measurement) -> RenderableType:
    """The largest contributions to a value, by word, document and query, side by side."""
    lists = m.attribution.to_dict(_ATTRIBUTED)
    grid = Table(
        box=None,
        header_style="bold",
        title=Text(f"{m.measure} of {m.run}: what makes up {number(m.value, form_of(m.measure))}"),
        title_justify="left",
        title_style="bold",
        padding=(0, 2, 0, 0),
    )
    shown = {"words": "word", "documents": "doc_id", "queries": "query_id"}
    for kind in lists:
        grid.add_column(kind, overflow="fold")
        grid.add_column("", justify="right", no_wrap=True)
    for place in range(max((len(rows) for rows in lists.values()), default=0)):
        cells: list[RenderableType] = []
        for kind, rows in lists.items():
            row = rows[place] if place < len(rows) else None
            style = GROUP_COLOURS.get(row.get("group", ""), "") if row else ""
            cells.append(Text(str(row[shown[kind]]) if row else "", style=style))
            cells.append(Text(f"{row['contribution']:+.3f}" if row else "", style=style))
        grid.add_row(*cells)
    return Padding(grid, (1, 0, 0, 0))


def _frame(measured: Measurements) -> RenderableType:
    """The value of every query, beneath the table."""
    frame = measured.per_query()
    forms = {str(m.measure): form_of(m.measure) for m in measured}
    grid = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in frame.columns:
        numeric = frame[name].dtype == pl.Float64
        grid.add_column(Text(name), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in frame.iter_rows(named=True):
        parts = (plain(value) if value is not None else "" for value in list(row.values())[4:])
        names = (Text(row[name]) for name in ("run", "measure", "query_id"))
        grid.add_row(*names, number(row["value"], forms[row["measure"]]), *parts)
    return Padding(grid, (1, 0, 0, 0))


def render_by_query(
    measured: Measurements, form: Format, *, queries: Mapping[str, str], output: Path | None = None
) -> str:
    """Only the value of every query: queries down, measures and runs across; a dash where there is none.

    `queries` are their texts, where they are known.
    """
    if form is Format.json:
        return json.dumps(measured.to_dict(per_query=True), ensure_ascii=False, indent=2, allow_nan=False)
    columns = [(m, m.per_query()) for m in sorted(measured, key=lambda m: _place(measured, m))]
    listed = dict.fromkeys(query for _, values in columns for query in values)
    names = [str(m.measure) if len(measured.runs) == 1 else f"{m.measure} {m.run}" for m, _ in columns]
    heads = ["query_id", *(["query"] if queries else [])]
    if form is Format.csv:
        rows = [
            [query, *([queries.get(query, "")] if queries else []), *(v.get(query) for _, v in columns)]
            for query in listed
        ]
        schema = dict.fromkeys(heads, pl.String) | dict.fromkeys(names, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row").write_csv()
    cells = [
        [
            query,
            *([queries.get(query, "")] if queries else []),
            *(number(values.get(query), form_of(m.measure)) for m, values in columns),
        ]
        for query in listed
    ]
    return render_grid(form, [*heads, *names], cells, left=len(heads), output=output)
