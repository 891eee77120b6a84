"""`evenrank mitigate dial`: what tells genders apart in the vectors of a dense ranker, to be turned down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import note, progress_bar, split_names


def dial_command(
    docs: Annotated[
        str, typer.Option(metavar="DOCS", help="Texts to learn from, preferably not those to be searched.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIAL", help="The dial, a folder.")],
    model: Annotated[
        str | None, typer.Option(help="The encoder.", show_default="that of the ranker dense")
    ] = None,
    most: Annotated[int, typer.Option(min=50, help="Maximum number of documents to learn from.")] = 1000,
    lexicon: Annotated[str, typer.Option(help="Words of each group.")] = "rekabsaz2020",
    no_names: Annotated[bool, typer.Option("--no-names", help="Do not mirror given names.")] = False,
    seed: options.Seed = 0,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
) -> None:
    """Fit a dial for a dense ranker: it turns queries away from gender, without a new index.

    evenrank mitigate dial --docs other.tsv -o gender.dial
    evenrank search --index IDX --queries Q --ranker dense --set dial=gender.dial --set strength=0.5 -o RUN
    """
    from evenrank.data.tables import docs as open_docs
    from evenrank.mitigate.dialling import dial

    opened = open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("encoding", unit="texts") as progress:
        made = dial(
            opened,
            model=model,
            most=most,
            names=not no_names,
            lexicon=lexicon,
            seed=seed,
            progress=progress,
        )
    made.save(output)
    note(f"fitted on {made.facts['pairs']:,} documents and their mirror images: {output}")
