"""`evenrank audit`: everything the inputs allow, as a report to read and JSON to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli.common import (
    Format,
    Missing,
    Order,
    Tokenizer,
    deliver,
    note,
    parse_runs,
    progress_bar,
    split_names,
    split_runs,
)
from evenrank.cli.measure import Only, Ties


def audit_command(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|MEASURE]...",
            help="Runs, and measures such as ARaB@10.  [default: all measures that the inputs allow]",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="A run, TREC format. Repeat it for several."),
    ] = None,
    docs: Annotated[
        str | None,
        typer.Option(metavar="DOCS", help="The collection: TSV, JSONL, Parquet or irds:ID."),
    ] = None,
    tally: Annotated[
        str | None, typer.Option(metavar="FILE", help="The coloured collection, from `evenrank tally`.")
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="The queries' texts.")] = None,
    qrels: Annotated[str | None, typer.Option(metavar="FILE", help="Relevance judgments.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run the others are compared with.  [default: the first]"),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="What NFaiRR compares with: a name or file.  [default: baseline]"),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 1 if it holds for a run: 'abs(ARaB@10)>0.1'. May be repeated.",
        ),
    ] = None,
    genders: Annotated[
        str | None, typer.Option(metavar="FILE", help="Which gender each query is about: query_id, label.")
    ] = None,
    only: Annotated[
        Only | None,
        typer.Option(help="Queries to measure.  [default: neutral for bias, with --genders; else all]"),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Group of each document: doc_id, group.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Share each group should have: query, a column for each group."),
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="Words of each group: a name or a file.  [default: rekabsaz2020]")
    ] = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How text becomes words.  [default: words]")
    ] = None,
    fields: Annotated[
        str, typer.Option(help="Fields that make up a document's text, joined with a space.")
    ] = "title,text",
    id_field: Annotated[
        str | None, typer.Option(help="Field of the document id.  [default: doc_id, docno, id, …]")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="FILE", help="Word vectors for GSR.  [default: shipped table]")
    ] = None,
    dictionary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Words for LIWC, a .dic.  [default: open]")
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(help="Documents the collection lacks: stop, count as word-free, or close the gap."),
    ] = Missing.error,
    ties: Annotated[
        Ties, typer.Option(help="Equal scores: by id, descending, or the exact mean over all orders.")
    ] = Ties.order,
    order: Annotated[Order, typer.Option(help="Sort a run by its scores, or trust its ranks.")] = Order.score,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")] = 0.95,
    resamples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples behind the intervals; 0 for none.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    title: Annotated[str | None, typer.Option(help="What the report is called.")] = None,
    charts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write every chart there too: SVG, PNG, PDF and CSV."),
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Keep the value of every query in audit.json.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How to print the results.")] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for report.html, audit.json and tables."),
    ] = None,
) -> int:
    """Audit runs for bias: measure, compare with a baseline, explain, and judge.

    Writes DIR/report.html (to read; one file, no network), DIR/audit.json (to keep), DIR/values.csv and
    DIR/values.tex, and prints the table and the verdict.

        evenrank audit --docs docs.tsv --queries queries.tsv --qrels qrels.txt --run bm25.run --run new.run \\
            --baseline bm25 --fail-if 'abs(ARaB@10)>0.1' -o audit
    """
    from evenrank.auditing import audit
    from evenrank.tables import docs as open_docs

    files, measures = split_runs(given or [])
    runs = parse_runs([*files, *(run or [])])
    with progress_bar("counting") as progress:
        found = audit(
            runs,
            measures or None,
            docs=None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field),
            tally=tally,
            lexicon=lexicon,
            tokenizer=None if tokenizer is None else tokenizer.value,
            queries=queries,
            qrels=qrels,
            baseline=baseline,
            background=None if background is None else runs.get(background, background),
            vectors=vectors,
            genders=genders,
            only=None if only is None else only.value,
            labels=labels,
            targets=targets,
            dictionary=dictionary,
            fail_if=fail_if or (),
            missing=missing.value,
            ties=ties.value,
            order=order.value,
            confidence=confidence if resamples else None,
            resamples=resamples or 1,
            seed=seed,
            progress=progress,
        )
    more = {"title": title} if title else {}
    if output is not None:
        _folder(output)
        found.report(output / "report.html", **more)
        found.to_json(output / "audit.json", per_query=per_query)
        deliver(found.csv(), output / "values.csv")
        deliver(found.latex(), output / "values.tex")
    if charts is not None:
        found.charts(charts)
    printed = {
        Format.table: lambda: f"{found}\n",
        Format.json: lambda: found.to_json(per_query=per_query),
        Format.csv: found.csv,
        Format.latex: found.latex,
    }
    deliver(printed[form](), None)
    if form is Format.table:
        for caution in found.cautions:
            note(f"caution: {caution}")
        if output is not None:
            note(f"report: {output / 'report.html'}")
    for line in found.failures:
        note(f"failed: {line}")
    return 0 if found.passed else 1


def _folder(path: Path) -> None:
    from evenrank.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", path=path) from error
