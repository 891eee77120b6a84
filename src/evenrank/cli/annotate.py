"""`evenrank pool` and `evenrank vote`: queries to people, and their labels back."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import (
    Missing,
    Order,
    Tokenizer,
    deliver,
    note,
    parse_runs,
    progress_bar,
    split_names,
)

if TYPE_CHECKING:
    from evenrank.queries.pooling import Votes


class Form(StrEnum):
    table = "table"
    json = "json"


class Incomplete(StrEnum):
    error = "error"
    drop = "drop"


def pool_command(
    queries: Annotated[str, typer.Option(metavar="FILE", help="The queries' texts.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Runs, as with --run.", show_default=False)
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PATH", help="A run (TREC format). Repeat it: several runs make a fairer pool."
        ),
    ] = None,
    docs: Annotated[str | None, typer.Option(metavar="FILE", help="The collection; or give --tally.")] = None,
    tally: Annotated[
        str | None, typer.Option(metavar="FILE", help="Word counts of the collection, from `evenrank tally`.")
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="Words of each group: a name or a file; rekabsaz2020 if left out.")
    ] = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How text becomes words; words if left out.")
    ] = None,
    fields: Annotated[
        str, typer.Option(help="Fields that make up a document's text, joined with a space.")
    ] = "title,text",
    id_field: Annotated[
        str | None, typer.Option(help="Field of the document id.", show_default="doc_id, docno, id, …")
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="Ranked documents missing from the collection: stop, count them as without words, or "
            "skip them."
        ),
    ] = Missing.error,
    order: Annotated[Order, typer.Option(help="Sort a run by its scores, or trust its ranks.")] = Order.score,
    measure: Annotated[str, typer.Option(help="RaB or ARaB with a cut-off, to sort queries by.")] = "RaB@10",
    top: Annotated[
        int, typer.Option(min=1, help="Queries to take from each list; a run has two lists.")
    ] = 500,
    annotators: Annotated[
        int, typer.Option(min=1, help="How many empty columns to fill in; 1 if each annotator gets a sheet.")
    ] = 3,
    reveal: Annotated[
        bool,
        typer.Option("--reveal", help="Also write the values: the key to the sheet, not for annotators."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed for shuffling the rows.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The sheet (TSV); stdout if not given."),
    ] = None,
) -> None:
    """Write a sheet for annotators: the queries whose results lean farthest toward either group.

    Each run gives two lists of its queries, sorted toward each group; the sheet has the first N of every
    list, once each, in random order and without the values. Have it labelled neutral, female, male or
    other, then count the votes with `evenrank vote`.
    """
    from evenrank.data.docs import open_docs
    from evenrank.errors import InputError
    from evenrank.measures.evaluate import measure as measure_runs
    from evenrank.measures.parse import parse
    from evenrank.queries.pooling import pool, sheet_text

    by = parse(measure)
    if not hasattr(by, "pair"):
        raise InputError(f"{by} has no two sides to pool toward; choose RaB or ARaB, as in RaB@10")
    if (docs is None) == (tally is None):
        raise InputError("give either --docs or --tally")
    runs = parse_runs([*(files or []), *(run or [])])
    with progress_bar("counting", unit="bytes") as progress:
        measured = measure_runs(
            runs,
            [by],
            docs=None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field),
            tally=tally,
            lexicon=lexicon,
            tokenizer=tokenizer,
            missing=missing.value,
            order=order.value,
            confidence=None,
            progress=progress,
        )
    of, against = by.pair(tuple(next(iter(measured)).parts))
    sheet = pool(
        measured.per_query(),
        queries,
        top=top,
        annotators=annotators,
        seed=seed,
        reveal=reveal,
        groups=(against, of),
    )
    deliver(sheet_text(sheet), output)
    note(f"{len(sheet):,} queries to label, from {2 * len(runs)} lists of {top:,}")


def vote_command(
    sheets: Annotated[
        list[str],
        typer.Argument(metavar="SHEET", help="One filled-in sheet, or several: one per annotator."),
    ],
    incomplete: Annotated[
        Incomplete, typer.Option(help="Queries without a label: stop at the first, or drop them.")
    ] = Incomplete.error,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The labels; stdout if not given.")
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="table: query_id, text, label (TSV); json: with all votes and agreement."
        ),
    ] = Form.table,
) -> None:
    """Count the annotators' votes: each query gets the class that more than half of them chose.

    Queries without such a majority are dropped. The labels are what `--genders` takes. The counts, the
    dropped queries and Fleiss' kappa are reported on stderr.
    """
    from evenrank.queries.pooling import vote

    votes = vote(sheets, incomplete=incomplete.value)
    deliver(_json(votes) if form is Form.json else _labels(votes), output)
    note(_summary(votes))


def _labels(votes: Votes) -> str:
    """One line for each query; whitespace in texts is made plain, so that a line stays a line."""
    rows = votes.labels.select("query_id", "text", "label").iter_rows()
    lines = ("\t".join((query, " ".join((text or "").split()), label)) for query, text, label in rows)
    return "".join(f"{line}\n" for line in ("query_id\ttext\tlabel", *lines))


def _json(votes: Votes) -> str:
    import json

    content = {
        "annotators": votes.annotators,
        "agreement": votes.agreement,
        "counts": votes.counts,
        "labels": votes.labels.to_dicts(),
        "dropped": votes.dropped.to_dicts(),
    }
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _summary(votes: Votes) -> str:
    counted = ", ".join(f"{number:,} {name}" for name, number in votes.counts.items())
    reasons = votes.dropped["reason"].value_counts(sort=True).iter_rows()
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in reasons) or "none"
    kappa = "undefined" if votes.agreement is None else f"{votes.agreement:.3f}"
    return (
        f"{len(votes.labels):,} queries labelled by {votes.annotators} annotators: {counted}\n"
        f"dropped: {dropped}\n"
        f"agreement (Fleiss' kappa): {kappa}"
    )
