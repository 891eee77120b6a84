"""Options that several commands take, written once: what a name means is the same everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from evenrank.cli.common import (
    Format,
    Missing,
    Order,
    Tokenizer,
    coloured,
    genders_or_predicted,
    parse_runs,
    split_names,
)
from evenrank.errors import InputError


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


# Where `--help` lists an option; what has no place of its own comes first.
RUNS = "Runs"
COLLECTION = "The collection"
QUERIES = "Queries and judgments"
FURTHER = "For further measures"
CHANCE = "Intervals"
GATE = "Gate"
OUTPUT = "Output"
_PANELS = (RUNS, COLLECTION, QUERIES, FURTHER, CHANCE, GATE, OUTPUT)

Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="[NAME=]PATH",
        help="A run, TREC format. Repeat it for several.",
        rich_help_panel=RUNS,
    ),
]
Rankers = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker",
        metavar="[NAME=]RANKER",
        help="Search --docs for --queries with this ranker: bm25, hybrid, …, or a folder made by "
        "`evenrank train`. Repeat it for several.",
        rich_help_panel=RUNS,
    ),
]
RankedDepth = Annotated[
    int,
    typer.Option(
        "--depth", min=1, help="How many documents --ranker returns for each query.", rich_help_panel=RUNS
    ),
]
Docs = Annotated[
    str | None,
    typer.Option(
        metavar="DOCS", help="The collection: TSV, JSONL, Parquet or irds:ID.", rich_help_panel=COLLECTION
    ),
]
TallyFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Word counts of the collection, from `evenrank tally`.",
        rich_help_panel=COLLECTION,
    ),
]
Lexicon = Annotated[
    str | None,
    typer.Option(
        help="Words of each group: a name or a file.", show_default="rekabsaz2020", rich_help_panel=COLLECTION
    ),
]
Cutting = Annotated[
    Tokenizer | None,
    typer.Option(help="How text becomes words.", show_default="words", rich_help_panel=COLLECTION),
]
Fields = Annotated[
    str,
    typer.Option(
        help="Fields that make up a document's text, joined with a space.", rich_help_panel=COLLECTION
    ),
]
IdField = Annotated[
    str | None,
    typer.Option(
        help="Field of the document id.", show_default="doc_id, docno, id, …", rich_help_panel=COLLECTION
    ),
]
Queries = Annotated[
    str | None, typer.Option(metavar="FILE", help="The queries' texts.", rich_help_panel=QUERIES)
]
Qrels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Relevance judgments, for effectiveness and GSR.", rich_help_panel=QUERIES
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The run that the others are compared with.",
        show_default="the first",
        rich_help_panel=RUNS,
    ),
]
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Word vectors for GSR, or a table of genderedness.",
        show_default="shipped table",
        rich_help_panel=FURTHER,
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Pairs of words for GSR along another direction; with --vectors.",
        rich_help_panel=FURTHER,
    ),
]


class Unmeasured(StrEnum):
    """What to do with documents that the collection lacks, where lists are changed and not only measured."""

    error = "error"
    zero = "zero"


Lacking = Annotated[
    Unmeasured,
    typer.Option(help="Ranked documents missing from the collection: stop, or count them as without words."),
]
Tag = Annotated[str | None, typer.Option(help="Tag of the new run.", show_default="the file's name")]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Group of each document: doc_id, group (and share, or further attributes); for rKL, AWRF, …",
        rich_help_panel=FURTHER,
    ),
]
Targets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The share each group should have: query, and a column for each group.",
        rich_help_panel=FURTHER,
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Words for LIWC: a .dic file with the categories female and male.",
        show_default="open",
        rich_help_panel=FURTHER,
    ),
]
Genders = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|predict",
        help="Gender of each query: a file (query_id, label), or predict to classify them.",
        rich_help_panel=QUERIES,
    ),
]
OnlyQueries = Annotated[
    Only | None,
    typer.Option(
        help="Queries to measure.",
        show_default="neutral for bias, with --genders; else all",
        rich_help_panel=QUERIES,
    ),
]
Background = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        help="The run that NFaiRR compares with: a name or a file.",
        show_default="the first run; in an audit, the baseline",
        rich_help_panel=RUNS,
    ),
]
MissingDocs = Annotated[
    Missing,
    typer.Option(
        help="Ranked documents missing from the collection: stop, count them as without words, or skip them.",
        rich_help_panel=RUNS,
    ),
]
TiedScores = Annotated[
    Ties,
    typer.Option(
        help="Equal scores: order by id, descending, or take the exact mean over all orders.",
        rich_help_panel=RUNS,
    ),
]
RunOrder = Annotated[
    Order, typer.Option(help="Sort a run by its scores, or trust its ranks.", rich_help_panel=RUNS)
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Exit with 1 if this holds for any run but the baseline: 'abs(ARaB@10)>0.1', or "
        "'abs(ARaB@10) > baseline + 0.02'. Repeat it for several.",
        rich_help_panel=GATE,
    ),
]
FailIfValue = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Exit with 1 if this holds for a run: 'abs(ARaB@10)>0.1'. Repeat it for several.",
        rich_help_panel=GATE,
    ),
]
Gate = Annotated[
    Judging | None,
    typer.Option(
        "--gate",
        help="What --fail-if looks at: the value itself, or its one-sided 95% bound.",
        show_default="interval for changes from the baseline, else point",
        rich_help_panel=GATE,
    ),
]
Selected = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many top ranks count as selected, for selection rates; with --labels.",
        show_default="10",
        rich_help_panel=FURTHER,
    ),
]
Confidence = Annotated[
    float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.", rich_help_panel=CHANCE)
]
Resamples = Annotated[
    int,
    typer.Option(min=0, help="Bootstrap resamples behind the intervals; 0 for none.", rich_help_panel=CHANCE),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.", rich_help_panel=CHANCE)]
Form = Annotated[Format, typer.Option("--format", help="How to print the results.", rich_help_panel=OUTPUT)]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write to this file instead of stdout.", rich_help_panel=OUTPUT
    ),
]
Chart = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Also draw a chart to this file: .svg, .png or .pdf.", rich_help_panel=OUTPUT
    ),
]


class Engine(StrEnum):
    """Where the work is done."""

    here = "here"
    spark = "spark"


WhichEngine = Annotated[
    Engine, typer.Option("--engine", help="Compute on this machine, or on the workers of Apache Spark.")
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Spark's master, such as local[2]; without it, Spark's own settings apply."
    ),
]


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Number of threads.", show_default="one for each core"
    ),
]


@dataclass(frozen=True)
class Collection:
    """The documents or their tally, as the command line gives them."""

    docs: Docs = None
    tally: TallyFile = None
    lexicon: Lexicon = None
    tokenizer: Cutting = None
    fields: Fields = "title,text"
    id_field: IdField = None

    def counted(self) -> Any:
        """The tally, given or made with a bar; None where labels speak and nothing is counted."""
        if self.tally is None and self.docs is None:
            return None
        words = self.lexicon, self.tokenizer
        return coloured(self.tally, self.docs, *words, fields=self.fields, id_field=self.id_field)

    def documents(self) -> Any:
        """The documents, opened; None if they are not given."""
        from evenrank.data.docs import open_docs

        if self.docs is None:
            return None
        return open_docs(self.docs, fields=split_names(self.fields), id_field=self.id_field)


@dataclass(frozen=True)
class GivenInputs(Collection):
    """What is measured and with what, as the command line gives it; `takes_inputs` makes options of it."""

    run: Runs = None
    queries: Queries = None
    qrels: Qrels = None
    background: Background = None
    vectors: Vectors = None
    pairs: Pairs = None
    labels: Labels = None
    dictionary: Dictionary = None
    targets: Targets = None
    genders: Genders = None
    missing: MissingDocs = Missing.error
    ties: TiedScores = Ties.order
    order: RunOrder = Order.score

    def runs(self, files: Iterable[str]) -> dict[str, str]:
        """All runs by name: the files among the arguments, then those of --run."""
        return parse_runs([*files, *(self.run or [])])

    def keywords(self, runs: dict[str, str]) -> dict[str, Any]:
        """The inputs, as :func:`evenrank.measure` and :func:`evenrank.audit` take them."""

        given = {name: _plain(getattr(self, name)) for name in _KEYWORDS}
        given["docs"] = self.documents()
        if self.background is not None:
            given["background"] = runs.get(self.background, self.background)
        given["genders"] = self.genders
        if self.genders == "predict":
            from evenrank.queries.classify import predicted_genders

            given["classify"] = predicted_genders
        return given

    def on_spark(self, runs: dict[str, str], master: str | None) -> tuple[Any, dict[str, Any]]:
        """Runs and inputs as :func:`evenrank.measure` takes them, the large ones as Spark frames."""
        from evenrank.spark import open_inputs, session

        given = {name: _plain(getattr(self, name)) for name in _KEYWORDS if name != "docs"}
        if self.background is not None:
            given["background"] = runs.get(self.background, self.background)
        given["genders"] = genders_or_predicted(self.genders, self.queries)
        given |= {"fields": split_names(self.fields), "id_field": self.id_field}
        return open_inputs(session(master), runs, given, docs=self.docs)


def check_engine(engine: Engine, master: str | None) -> None:
    """Refuse a master where there is none to be had."""
    if master is not None and engine is not Engine.spark:
        raise InputError(f"--master {master} needs --engine spark")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


_KEYWORDS = [
    name
    for name in inspect.signature(GivenInputs).parameters
    if name not in ("run", "fields", "id_field", "genders")
]


def _panel(parameter: inspect.Parameter) -> int:
    """Where `--help` lists an option; within a panel the order stays."""
    panel = getattr(get_args(parameter.annotation)[-1], "rich_help_panel", None)
    return -1 if panel is None else [*_PANELS, panel].index(panel)


def takes_inputs(command: Callable[..., int]) -> Callable[..., int]:
    """Let a command take the options of `GivenInputs` in the place of its parameter `given`.

    So for every other parameter that is a dataclass of options: its fields become options of the command.
    """
    own = inspect.signature(command, eval_str=True).parameters
    bunches: dict[str, tuple[Any, Any]] = {
        name: (one.annotation, inspect.signature(one.annotation, eval_str=True).parameters)
        for name, one in own.items()
        if isinstance(one.annotation, type) and is_dataclass(one.annotation)
    }

    @wraps(command)
    def taking(**options: Any) -> int:
        built = {
            name: kind(**{each: options.pop(each) for each in fields})
            for name, (kind, fields) in bunches.items()
        }
        return command(**options, **built)

    each = [p for name, one in own.items() for p in (bunches[name][1].values() if name in bunches else [one])]
    named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in sorted(each, key=_panel)]
    taking.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    taking.__annotations__ = {p.name: p.annotation for p in named}
    return taking
