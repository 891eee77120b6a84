"""Commands around the mirror image of a text: `evenrank mitigate swap` and `counterfactual`.

`counterfactual`: how far do documents move when their gender changes?
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, note, progress_bar, split_names
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.counterfactuals import Counterfactual
    from evenrank.stats import Interval


def counterfactual_command(
    docs: Annotated[str, typer.Option(metavar="DOCS", help="TSV, JSONL or Parquet file, or irds:ID.")],
    queries: Annotated[str, typer.Option(metavar="FILE", help="The queries.")],
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="bm25, 'w2v_add(debias=hard)', …; repeatable.", show_default="bm25"
        ),
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Variants that people wrote, instead of mirror images: TSV with female and male ids.",
        ),
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Consider only documents judged for the query.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="V", help="Word vectors, for w2v_add and w2v_si.")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Length of the lists.")] = 1000,
    at: Annotated[
        int, typer.Option(min=0, help="A pair counts if one of the two is within this rank; 0 for all pairs.")
    ] = 100,
    lexicon: Annotated[str, typer.Option(help="As for `mitigate swap`; or none.")] = "rekabsaz2020",
    no_names: Annotated[bool, typer.Option("--no-names", help="Leave given names as they are.")] = False,
    gendered_queries: Annotated[
        bool, typer.Option("--gendered-queries", help="Keep queries that name a gender.")
    ] = False,
    fields: options.Fields = "title,text",
    id_field: options.IdField = None,
    pairs: Annotated[Path | None, typer.Option(metavar="FILE", help="File for every pair, as CSV.")] = None,
    form: Annotated[Format, typer.Option("--format", help="How results are printed.")] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout."),
    ] = None,
) -> None:
    """Rank every document next to its mirror image, and measure the effect of gender alone.

    A positive shift means that the male version ranks higher.

        evenrank mitigate counterfactual --docs docs.tsv --queries queries.tsv --ranker bm25 --ranker dense
    """
    from evenrank.data.docs import open_docs
    from evenrank.mitigate.counterfactuals import counterfactual

    settings: dict[str, Any] = {} if vectors is None else {"vectors": vectors}
    named = ranker or ["bm25"]
    if len(set(named)) < len(named):
        raise InputError("a ranker is given twice")
    with progress_bar("ranking", unit="rankers") as progress:
        result = counterfactual(
            open_docs(docs, fields=split_names(fields), id_field=id_field),
            queries,
            rankers=named,
            variants=variants,
            qrels=qrels,
            depth=depth,
            at=at or None,
            names=not no_names,
            lexicon=None if lexicon.lower() == "none" else lexicon,
            gendered_queries=gendered_queries,
            progress=progress,
            **settings,
        )
    if pairs is not None:
        deliver(result.pairs.write_csv(), pairs)
    deliver(rendered(result, form, output), output)


def rendered(found: Counterfactual, form: Format, output: Path | None) -> str:
    """A line for each ranker."""
    if form is Format.json:
        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form is Format.csv:
        return found.frame().write_csv()
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import number, p_value

    def interval(value: Interval) -> str:
        return f"{number(value.value, '+.2f')} [{number(value.low, '+.2f')}, {number(value.high, '+.2f')}]"

    headings = [
        "ranker",
        "queries",
        "pairs",
        "rank shift",
        "score shift",
        "moved",
        "male",
        "female",
        "same",
        "p",
    ]
    rows = [
        [
            shift.ranker,
            str(shift.queries),
            str(shift.pairs),
            interval(shift.rank_shift),
            interval(shift.score_shift),
            number(shift.moved.value, ".1f"),
            number(shift.male_wins, ".0%"),
            number(shift.female_wins, ".0%"),
            number(shift.ties, ".0%"),
            p_value(shift.p_holm),
        ]
        for shift in found.summary
    ]
    remarks = [
        "shift: how much higher the male version ranks; scores in standard deviations",
        "moved: how many ranks the two versions are apart",
        "male, female, same: which version ranks higher; p: Wilcoxon over queries, corrected (Holm)",
    ]
    left_out = [f"{count:,} {what}" for what, count in found.left_out.items() if count]
    if left_out:
        remarks.append("left out: " + ", ".join(left_out))
    return render_grid(form, headings, rows, remarks=remarks, output=output)


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
    from evenrank.mitigate.swapping import swap, write_docs, write_queries

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
