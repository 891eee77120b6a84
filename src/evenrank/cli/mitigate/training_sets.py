"""`evenrank mitigate negatives|judgments`: training data with less bias, and what it does.

Negatives teach a ranker to put one-sided documents down; judgments are added in pairs of a female and a male
query whose documents read alike; rankers trained on one set and another are set side by side.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, coloured, deliver, note, split_names
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.judgments import EvenJudgments


class Form(StrEnum):
    triplet = "triplet"
    n_tuple = "n-tuple"
    labeled_pair = "labeled-pair"
    labeled_list = "labeled-list"


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
    ids: Annotated[
        bool, typer.Option("--ids", help="Write document ids, one object per query, for `evenrank train`.")
    ] = False,
    form: Annotated[
        Form | None,
        typer.Option(help="With texts: which format of sentence-transformers; n-tuple if not given."),
    ] = None,
    missing: options.Lacking = options.Unmeasured.error,
) -> None:
    """Choose negatives for training: some the most one-sided documents of the first stage, the rest random.

    Candidates are the unjudged documents of the run. The file is for the trainers of
    sentence-transformers or, with --ids, for `evenrank train --negatives FILE`.

        evenrank mitigate negatives --run bm25.run --qrels qrels.txt --docs docs.tsv --ids -o negatives.jsonl
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.files import refuse_input
    from evenrank.measures.document_bias import document_measure
    from evenrank.measures.groups import Groups
    from evenrank.mitigate.negatives import negatives
    from evenrank.show.numbers import counted as how_many

    if output.suffix not in (".jsonl", ".parquet"):
        raise InputError("the file is called .jsonl or .parquet", path=output)
    inputs = (run, qrels, docs, queries, tally, lexicon, labels, dictionary)
    refuse_input(output, *inputs, what="the examples")
    if not ids and (docs is None or queries is None):
        raise InputError("texts are written: give --docs and --queries, or --ids")
    if ids and form is not None:
        raise InputError("--ids and --form are two forms of the file; choose one")
    measure = document_measure(bias)
    by_words = "tally" in measure.NEEDS or (measure.VIEW is Groups and labels is None)
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
    shape: dict[str, Any] = {"form": "ids"} if ids else {"form": (form or Form.n_tuple).value, "docs": opened}
    written = result.write(output, queries=queries, **shape)
    for why, count in result.left_out.items():
        note(f"{why}: {count:,}")
    first = result.frame.filter("biased")["bias"]
    idle = int((first == 0).sum())
    rest = f" (and {idle:,} in their place that are not, where a query has no more)"
    note(
        f"{how_many(len(result.frame), 'negative')} for "
        f"{how_many(result.frame['query_id'].n_unique(), 'query', 'queries')}, {len(first) - idle:,} of "
        f"them the most one-sided{rest if idle else ''}; {how_many(written, 'object')}: {output}"
    )


def judgments_command(
    generated: Annotated[
        str, typer.Option(metavar="FILE", help="Queries from `evenrank generate`: query_id, doc_id, text.")
    ],
    docs: Annotated[str, typer.Option(metavar="D", help="The collection: TSV, JSONL, Parquet or irds:ID.")],
    queries: Annotated[str, typer.Option(metavar="Q", help="The training queries, to be added to.")],
    qrels: Annotated[str, typer.Option(metavar="QR", help="Their judgments, to be added to.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A folder for the data set.")],
    ratio: Annotated[
        float,
        typer.Option(
            help="How many queries to add, as a share of the pairs judged relevant: above 0, at most 1."
        ),
    ] = 0.25,
    genders: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Genders of the generated queries.", show_default="predicted"),
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Allow the document of a male query to be matched several times.")
    ] = False,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The characteristics: a .dic file.", show_default="open"),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(metavar="IDX", help="An index of the collection; with it, triples are written too."),
    ] = None,
    triples: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Training triples (JSONL with query_id), to be added to."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the negatives in triples.")] = 0,
    with_genders: Annotated[
        bool,
        typer.Option("--with-genders", help="Also write the pairs (pairs.tsv), which reveal the genders."),
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How the summary is printed.")] = Format.table,
) -> None:
    """Add judgments in which documents of female and male queries express nearly the same.

    Each generated female query is matched with the male one whose document is nearest in affect, cognition,
    drives and concerns; the nearest pairs are added to queries and judgments.

        evenrank mitigate judgments --generated made.tsv --docs docs.tsv --queries queries.tsv \\
            --qrels qrels.txt --ratio 0.25 -o even
    """
    import polars as pl

    from evenrank.data.read import read_qrels
    from evenrank.mitigate.judgments import even_judgments
    from evenrank.mitigate.training_sets import refuse_folder_of
    from evenrank.rankers.index import Index

    refuse_folder_of(output, queries, qrels, triples, generated, genders, docs, dictionary)
    judged = read_qrels(qrels)
    result = even_judgments(
        generated,
        docs,
        genders=genders,
        ratio=ratio,
        size=len(judged.filter(pl.col("relevance") > 0)),
        reuse=reuse,
        source=dictionary,
    )
    files = result.write(
        output,
        queries=queries,
        qrels=judged,
        triples=triples,
        index=None if index is None else Index.open(index),
        genders=with_genders,
        seed=seed,
    )
    if genders is None:
        note(f"generated queries: {result.provenance['genders']}")
    deliver(_added(result, form), None)
    note("written: " + ", ".join(str(each) for each in files))


def _added(found: EvenJudgments, form: Format) -> str:
    """What is added, and how alike the pairs are."""
    import json

    report = found.report()
    if form is Format.json:
        return json.dumps(report, indent=2, allow_nan=False)
    from evenrank.cli.rendering import render_grid
    from evenrank.show.grid import Grid
    from evenrank.show.numbers import number

    away = report["distance"]
    row = [
        f"{found.counts['female']:,}",
        f"{found.counts['male']:,}",
        f"{len(found.pairs):,}",
        f"{len(found.added):,}",
        *(number(away[name], ".4f") for name in ("mean", "median", "largest")),
    ]
    headings = ["generated female", "male", "pairs", "queries added", "mean distance", "median", "largest"]
    if form is Format.csv:
        return Grid(headings, [row]).csv()
    return render_grid(form, headings, [row], remarks=found.remarks())
