"""`evenrank mitigate negatives`: training examples that teach a ranker to put one-sided documents down."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Missing, coloured, note, split_names
from evenrank.errors import InputError


class Form(StrEnum):
    triplet = "triplet"
    n_tuple = "n-tuple"
    labeled_pair = "labeled-pair"
    labeled_list = "labeled-list"


def negatives_command(
    run: Annotated[str, typer.Option(metavar="R", help="The first stage of the training queries.")],
    qrels: Annotated[str, typer.Option(metavar="QR", help="Their relevance judgments.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The examples: .jsonl or .parquet.")
    ],
    docs: Annotated[
        str | None,
        typer.Option(metavar="D", help="The collection: for the texts, and to be coloured."),
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="Q", help="The queries' texts.")] = None,
    tally: options.TallyFile = None,
    lexicon: options.Lexicon = None,
    tokenizer: options.Cutting = None,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
    bias_lambda: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the negatives that are the most one-sided.")
    ] = 0.6,
    n: Annotated[int, typer.Option("--n", min=1, help="Negatives of each query.")] = 20,
    bias: Annotated[
        str,
        typer.Option(help="What makes a document one-sided: tf, boolean, count, liwc, label, or a measure."),
    ] = "tf",
    labels: options.Labels = None,
    dictionary: options.Dictionary = None,
    depth: Annotated[int, typer.Option(min=1, help="Documents of each query, from the top.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw; each query has its own.")] = 0,
    ids: Annotated[
        bool, typer.Option("--ids", help="Document ids, an object for each query; for `evenrank train`.")
    ] = False,
    form: Annotated[
        Form, typer.Option(help="With texts: which form of sentence-transformers.")
    ] = Form.n_tuple,
    missing: Annotated[
        Missing, typer.Option(help="Documents the collection lacks: stop, or count as word-free.")
    ] = Missing.error,
) -> None:
    """Choose negatives for training: some the most one-sided documents of the first stage, the rest drawn.

    Candidates are the documents of the run that are not judged. The file is for the trainers of
    sentence-transformers or, with --ids, for `evenrank train --negatives FILE`.

        evenrank mitigate negatives --run bm25.run --qrels qrels.txt --docs docs.tsv --ids -o negatives.jsonl
    """
    from evenrank.data.tables import docs as open_docs
    from evenrank.measures.document_bias import document_measure
    from evenrank.mitigate.negatives import negatives

    if output.suffix not in (".jsonl", ".parquet"):
        raise InputError("the file is called .jsonl or .parquet", path=output)
    if not ids and (docs is None or queries is None):
        raise InputError("texts are written: give --docs and --queries, or --ids")
    opened = None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field)
    measure = document_measure(bias)
    given: dict[str, Any] = {"labels": labels, "dictionary": dictionary, "missing": missing.value}
    counted = None
    if "tally" in measure.NEEDS or (bias == "label" and labels is None):
        if tally is None and docs is None:
            raise InputError("give --docs, or --tally")
        source = docs if tally is None else None
        counted = coloured(tally, source, lexicon, tokenizer, fields=fields, id_field=id_field)
    else:
        given["docs"] = opened
    found = negatives(
        run, qrels, counted, bias_lambda=bias_lambda, n=n, seed=seed, bias=measure, depth=depth, **given
    )
    written = found.write(output, form="ids" if ids else form.value, docs=opened, queries=queries)
    for why, count in found.left_out.items():
        note(f"{why}: {count:,}")
    biased = int(found.frame["biased"].sum())
    note(
        f"{len(found.frame):,} negatives for {found.frame['query_id'].n_unique():,} queries, {biased:,} of "
        f"them the most one-sided; {written:,} {'object' if written == 1 else 'objects'}: {output}"
    )
