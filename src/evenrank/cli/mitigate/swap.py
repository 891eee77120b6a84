"""`evenrank mitigate swap`: the mirror image of texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import note, progress_bar, split_names

if TYPE_CHECKING:
    from evenrank.data.docs import Docs
    from evenrank.rankers.base import Progress


def swap_command(
    docs: Annotated[
        str, typer.Argument(metavar="DOCS", help="A collection: TSV, JSONL, Parquet or irds:ID.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="TSV, or .jsonl; .gz and .zst compress.")
    ],
    queries: Annotated[bool, typer.Option("--queries", help="DOCS holds queries.")] = False,
    no_names: Annotated[bool, typer.Option("--no-names", help="Leave given names as they are.")] = False,
    lexicon: Annotated[
        str,
        typer.Option(help="The lexicon you will measure with, so that its tally is mirrored too; or none."),
    ] = "rekabsaz2020",
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
) -> None:
    """Mirror gendered words and given names, both ways: she becomes he, and John becomes Mary.

    evenrank mitigate swap docs.tsv -o mirrored.tsv
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.read import read_queries
    from evenrank.mitigate.swap import swap, write_texts

    words = None if lexicon.lower() == "none" else lexicon
    if queries:
        mirrored = swap(read_queries(docs), names=not no_names, lexicon=words)
        rows = (mirrored["query_id"].to_list(), mirrored["text"].to_list())
        note(f"{write_texts([rows], output, 'query_id'):,} queries: {output}")
        return
    source = open_docs(docs, fields=split_names(fields), id_field=id_field)
    turned = swap(source, names=not no_names, lexicon=words)
    with progress_bar("mirroring", unit="bytes") as progress:
        count = write_texts(_read(turned, progress), output, "doc_id")
    note(f"{count:,} documents: {output}")


def _read(docs: Docs, progress: Progress | None) -> Iterator[tuple[list[str], list[str]]]:
    """Ids and texts, block by block."""
    done = 0
    for block in docs.blocks():
        batch = block.read()
        yield batch.column("doc_id").to_pylist(), batch.column("text").to_pylist()
        done += block.size
        if progress is not None:
            progress(done, docs.size)
