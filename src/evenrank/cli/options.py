"""Options that several commands take, written once: what a name means is the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli.common import Format, Missing, Order, Tokenizer


class Ties(StrEnum):
    order = "order"
    expected = "expected"


class Only(StrEnum):
    neutral = "neutral"
    female = "female"
    male = "male"
    other = "other"
    all = "all"


class Judging(StrEnum):
    point = "point"
    interval = "interval"


Runs = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="[NAME=]PATH", help="A run, TREC format. Repeat it for several."),
]
Docs = Annotated[
    str | None, typer.Option(metavar="DOCS", help="The collection: TSV, JSONL, Parquet or irds:ID.")
]
TallyFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="The coloured collection, from `evenrank tally`.")
]
Lexicon = Annotated[
    str | None, typer.Option(help="Words of each group: a name or a file.", show_default="rekabsaz2020")
]
Cutting = Annotated[Tokenizer | None, typer.Option(help="How text becomes words.", show_default="words")]
Fields = Annotated[str, typer.Option(help="Fields that make up a document's text, joined with a space.")]
IdField = Annotated[
    str | None, typer.Option(help="Field of the document id.", show_default="doc_id, docno, id, …")
]
Queries = Annotated[str | None, typer.Option(metavar="FILE", help="The queries' texts.")]
Qrels = Annotated[
    str | None, typer.Option(metavar="FILE", help="Relevance judgments, for effectiveness and GSR.")
]
Baseline = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Run the others are compared with.", show_default="the first"),
]
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Word vectors for GSR, or a table of genderedness.", show_default="shipped table"
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Pairs of words for GSR along another direction; with --vectors."),
]
Labels = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Group of each document: doc_id, group; for rKL, Skew, AWRF, …"),
]
Targets = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Share each group should have: query, a column for each group."),
]
Dictionary = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Words for LIWC, a .dic with female and male.", show_default="open"),
]
Genders = Annotated[
    str | None,
    typer.Option(metavar="FILE|predict", help="Gender of each query: query_id, label; or classify them."),
]
OnlyQueries = Annotated[
    Only | None,
    typer.Option(help="Queries to measure.", show_default="neutral for bias, with --genders; else all"),
]
MissingDocs = Annotated[
    Missing,
    typer.Option(help="Documents the collection lacks: stop, count as word-free, or close the gap."),
]
TiedScores = Annotated[
    Ties, typer.Option(help="Equal scores: by id, descending, or the exact mean over all orders.")
]
RunOrder = Annotated[Order, typer.Option(help="Sort a run by its scores, or trust its ranks.")]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Exit with 1 if it holds for a run that is not the baseline: 'abs(ARaB@10)>0.1', or "
        "'abs(ARaB@10) > baseline + 0.02'. Repeat it for several.",
    ),
]
Gate = Annotated[
    Judging | None,
    typer.Option(
        "--gate",
        help="What --fail-if judges: the value itself, or its one-sided 95% bound.",
        show_default="interval for changes from the baseline, else point",
    ),
]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")]
Resamples = Annotated[int, typer.Option(min=0, help="Bootstrap resamples behind the intervals; 0 for none.")]
Form = Annotated[Format, typer.Option("--format", help="How to print the results.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
]
Chart = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also draw it there: .svg, .png or .pdf."),
]
