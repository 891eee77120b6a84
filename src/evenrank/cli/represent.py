"""`evenrank represent`: does the top of result lists show each group as often as it should?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, Tokenizer, coloured, deliver, exists

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
            help="True shares: query and a column for each group (one of two suffices), or `full`: those of "
            "the whole lists. Repeat it to compare.",
        ),
    ],
    at: Annotated[int, typer.Option(help="Cut-off: how many results of each list count.", min=1)] = 10,
    short: Annotated[
        Short,
        typer.Option(help="What a shorter list is divided by: its length, or the cut-off as in the paper."),
    ] = Short.length,
    feature: Annotated[
        str | None, typer.Option(help="Group that the lists of queries are about.", show_default="the first")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Groups of documents (doc_id, group), if not in RESULTS."),
    ] = None,
    tally: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Infer groups: the group with the most words in a document."),
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

    Positive: toward the group, negative: against it, 0: as often as it should be shown. MB is the mean over
    queries, SB the standard deviation, MAB the mean of absolute values.

        evenrank represent results.tsv --targets census.tsv --targets full --at 10
    """
    from evenrank.cli.representation_tables import render
    from evenrank.measures.labelled_lists import represent

    counted: Any = tally
    if docs is not None or (tally is not None and (lexicon or tokenizer)):
        counted = coloured(tally, docs, lexicon, tokenizer)
    mapped = {"query": query_column, "doc_id": doc_column, "rank": rank_column, "group": group_column}
    found: dict[str, Representation] = {}
    for name, target in _named(targets).items():
        found[name] = represent(
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
        from evenrank.show.exporting import write_sheet

        drawn = found if len(found) > 1 else next(iter(found.values()))
        write_sheet(representation_figures(drawn, feature=feature, named=", targets: {}"), chart)
    deliver(render(found, form, feature=feature, output=output), output)


def _named(targets: list[str]) -> dict[str, str]:
    """Targets by name, the name of the file unless given; a name given twice is refused."""
    from evenrank.errors import InputError

    found: dict[str, str] = {}
    for text in targets:
        name, equals, path = text.partition("=")
        if not equals or exists(text):
            name, path = text if text == "full" else Path(text).name.partition(".")[0], text
        if not name or not path:
            raise InputError(f"--targets {text!r}: write it as NAME=FILE, FILE or full")
        if name in found:
            raise InputError(f"two targets are called {name!r}; give one another name: --targets NAME={path}")
        found[name] = path
    return found
