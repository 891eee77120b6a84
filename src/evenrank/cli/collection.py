"""`evenrank tally` and `evenrank lexicons`: colouring a collection, and with which words."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli.common import Tokenizer, deliver, note, progress_bar, split_names


class Form(StrEnum):
    table = "table"
    json = "json"


def tally_command(
    docs: Annotated[str, typer.Argument(metavar="DOCS", help="TSV, JSONL or Parquet file, or irds:ID.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The tally, a Parquet file.")
    ],
    lexicon: Annotated[str, typer.Option(help="Words of each group: a name or a file.")] = "rekabsaz2020",
    tokenizer: Annotated[
        Tokenizer, typer.Option(help="How text becomes words; whitespace repeats published numbers.")
    ] = Tokenizer.words,
    fields: Annotated[
        str, typer.Option(help="Fields that make up the text, joined with a space.")
    ] = "title,text",
    id_field: Annotated[
        str | None, typer.Option(help="Field of the document id.", show_default="doc_id, docno, id, …")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not keep or reuse the tally of a large file.")
    ] = False,
) -> None:
    """Count the words of each group in every document of a collection, once and for all.

    The result holds doc_id, tokens, a count and a log-count for each group, and how it was made; `measure`
    takes it with --tally. A large collection is streamed, and a run that was killed picks up where it
    stopped.
    """
    from evenrank.data.tables import docs as open_docs
    from evenrank.text.tally import tally_to_file

    source = open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("counting", unit="bytes") as progress:
        made = tally_to_file(
            source, output, lexicon, tokenizer=tokenizer.value, progress=progress, cached=not no_cache
        )
    how = f"lexicon {made['lexicon']['name']}, tokenizer {made['tokenizer']}"
    note(f"{made['documents']:,} documents, {how}: {output}")


def lexicons_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A shipped lexicon or a file; without it, all.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="How to print them.")] = Form.table,
) -> None:
    """List the lexicons that ship with evenrank, or show the words of one."""
    import json

    from evenrank.text.lexicon import lexicon, shipped

    chosen = [lexicon(each) for each in ([name] if name else shipped())]
    if form is Form.json:
        content = [{**each.to_dict(), "hash": each.hash} for each in chosen]
        deliver(json.dumps(content[0] if name else content, ensure_ascii=False, indent=2), None)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenrank.cli.grids import Plain

    console = Console(highlight=False, markup=False, emoji=False)
    console.push_render_hook(Plain())
    if name is None:
        table = Table(box=None, header_style="bold")
        for heading in ("name", "language", "words", "source"):
            table.add_column(heading)
        for each in chosen:
            words = ", ".join(f"{len(entries)} {group}" for group, entries in each.groups.items())
            mark = " (experimental)" if each.experimental else ""
            table.add_row(each.name, each.language + mark, words, each.source)
        console.print(table)
        return
    only = chosen[0]
    console.print(Text.assemble((only.name, "bold"), f"  {only.language}  hash {only.hash}"))
    for text in (only.source, only.note):
        if text:
            console.print(text)
    for group, entries in only.groups.items():
        console.print(Text.assemble("\n", (group, "bold"), f" ({len(entries)})"))
        console.print(" ".join(entry.replace(" ", "_") for entry in entries))
