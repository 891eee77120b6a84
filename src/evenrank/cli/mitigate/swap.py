"""`evenrank mitigate swap`: the mirror image of texts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import note, progress_bar, split_names


class FileFormat(StrEnum):
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


def swap_command(
    docs: Annotated[
        str, typer.Argument(metavar="DOCS", help="A collection: TSV, JSONL, Parquet or irds:ID.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Output file; .gz and .zst compress.")
    ],
    queries: Annotated[bool, typer.Option("--queries", help="DOCS holds queries.")] = False,
    no_names: Annotated[bool, typer.Option("--no-names", help="Leave given names as they are.")] = False,
    lexicon: Annotated[
        str,
        typer.Option(help="The lexicon you will measure with, so that its tally is mirrored too; or none."),
    ] = "rekabsaz2020",
    form: Annotated[
        FileFormat | None,
        typer.Option("--format", help="tsv, jsonl or parquet.", show_default="by the file's name"),
    ] = None,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
) -> None:
    """Mirror gendered words and given names, both ways: she becomes he, and John becomes Mary.

    evenrank mitigate swap docs.tsv -o mirrored.tsv
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.files import format_suffix
    from evenrank.data.read import read_queries
    from evenrank.mitigate.swap import swap, write_docs, write_queries

    if form is None:
        endings = {".jsonl": FileFormat.jsonl, ".ndjson": FileFormat.jsonl, ".parquet": FileFormat.parquet}
        form = endings.get(format_suffix(output), FileFormat.tsv)
    words = None if lexicon.lower() == "none" else lexicon
    if queries:
        mirrored = swap(read_queries(docs), names=not no_names, lexicon=words)
        note(f"{write_queries(mirrored, output, form=form.value):,} queries: {output}")
        return
    source = open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("mirroring", unit="bytes") as progress:
        turned = swap(source, names=not no_names, lexicon=words)
        count = write_docs(turned, output, form=form.value, progress=progress)
    note(f"{count:,} documents: {output}")
