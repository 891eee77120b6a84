"""`evenrank mitigate negatives`: one-sided documents among the negatives of training."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import coloured, note, split_names
from evenrank.errors import InputError


class Form(StrEnum):
    ids = "ids"
    triplet = "triplet"
    n_tuple = "n-tuple"


def negatives_command(
    run: Annotated[str, typer.Option(metavar="R", help="The first-stage run of the training queries.")],
    qrels: Annotated[str, typer.Option(metavar="QR", help="Their relevance judgments.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The examples: .jsonl or .parquet.")
    ],
    docs: Annotated[
        str | None,
        typer.Option(metavar="D", help="The collection, for texts and word counts."),
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
    depth: Annotated[int, typer.Option(min=1, help="How many documents of each query, from the top.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw; each query has its own.")] = 0,
    form: Annotated[
        Form,
        typer.Option(help="Texts, as sentence-transformers reads them; or ids, for `evenrank train`."),
    ] = Form.n_tuple,
    missing: options.Lacking = options.Unmeasured.error,
) -> None:
    """Choose negatives for training: some the most one-sided documents of the first stage, the rest random.

    Candidates are the unjudged documents of the run. The file is for the trainers of
    sentence-transformers or, with --form ids, for `evenrank train --negatives FILE`.

        evenrank mitigate negatives --run bm25.run --qrels qrels.txt --docs docs.tsv --form ids -o n.jsonl
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.files import refuse_input
    from evenrank.measures.document_bias import document_measure
    from evenrank.mitigate.negatives import negatives
    from evenrank.show.numbers import counted as how_many

    if output.suffix not in (".jsonl", ".parquet"):
        raise InputError("the file is called .jsonl or .parquet", path=output)
    inputs = (run, qrels, docs, queries, tally, lexicon, labels, dictionary)
    refuse_input(output, *inputs, what="the examples")
    if form is not Form.ids and (docs is None or queries is None):
        raise InputError("texts are written: give --docs and --queries, or --form ids")
    measure = document_measure(bias)
    by_words = "tally" in measure.NEEDS or ("groups" in measure.NEEDS and labels is None)
    opened = None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field)
    given: dict[str, Any] = {"labels": labels, "dictionary": dictionary, "missing": missing.value}
    counted = None
    if by_words:
        if tally is None and docs is None:
            raise InputError("give --docs, or --tally")
        source = docs if tally is None else None
        counted = coloured(tally, source, lexicon, tokenizer, fields=fields, id_field=id_field)
    else:
        given["docs"] = opened
    result = negatives(
        run, qrels, counted, bias_lambda=bias_lambda, n=n, seed=seed, bias=measure, depth=depth, **given
    )
    counts = result.write(output, form=form.value, docs=opened, queries=queries)
    written = counts.pop("examples")
    for why, count in (result.left_out | counts).items():
        note(f"{why}: {count:,}")
    first = result.frame.filter("biased")["bias"]
    balanced = int((first == 0).sum())
    note(
        f"{how_many(len(result.frame), 'negative')} for "
        f"{how_many(result.frame['query_id'].n_unique(), 'query', 'queries')}, {len(first) - balanced:,} of "
        f"them skewed toward one group; {how_many(written, 'example')}: {output}"
    )
    if balanced:
        note(f"{balanced:,} are not, because a query ran out of skewed candidates")
