"""`evenrank train` and `evenrank rerank`: a ranker that learns from judgments, and runs in its order."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import note, progress_bar, refuse_place, split_names
from evenrank.errors import InputError


class Kind(StrEnum):
    drmm = "drmm"
    matchpyramid = "matchpyramid"
    knrm = "knrm"
    convknrm = "convknrm"
    pacrr = "pacrr"
    cross_encoder = "cross-encoder"
    bi_encoder = "bi-encoder"
    head = "head"


class Reads(StrEnum):
    neutrality = "neutrality"
    group = "group"


def train_command(
    ranker: Annotated[Kind, typer.Option(help="What to train.")],
    docs: Annotated[str, typer.Option(metavar="D", help="The collection: TSV, JSONL, Parquet or irds:ID.")],
    queries: Annotated[str, typer.Option(metavar="Q", help="The training queries.")],
    qrels: Annotated[str, typer.Option(metavar="QR", help="Their relevance judgments.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="The model, a folder.")],
    run: Annotated[
        str | None, typer.Option(metavar="FIRST", help="The first stage.", show_default="BM25")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="IDX", help="An index of the collection, for BM25.")
    ] = None,
    negatives: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Documents to draw the negatives from: query_id and doc_id, or the output of `evenrank "
            "mitigate negatives --form ids`.",
            show_default="the candidates",
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(metavar="V", help="Word vectors, for drmm … pacrr.", show_default="random ones"),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="softmax, hinge; against bias: negative-bias, list-bias, bias-margin, neutrality.",
            show_default="softmax",
        ),
    ] = None,
    loss_strength: Annotated[
        float | None, typer.Option(min=0, metavar="β", help="How much bias counts.", show_default="1")
    ] = None,
    adversary: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="μ",
            help="Strength of an adversary that predicts gender; 0 only probes the vectors.",
        ),
    ] = None,
    adversary_labels: Annotated[
        Reads | None, typer.Option(help="What the adversary predicts.", show_default="neutrality")
    ] = None,
    bias: Annotated[
        str, typer.Option(help="For losses: tf, boolean, count, liwc, label, or a measure.")
    ] = "tf",
    lexicon: options.Lexicon = None,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="For --bias label: the group of each document.")
    ] = None,
    with_first_stage: Annotated[
        bool | None,
        typer.Option(
            "--with-first-stage/--alone",
            help="Add the first-stage score, with a learned weight.",
            show_default="alone; a head has it",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings, as TOML: epochs = 5, rate = 0.001, …")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting: epochs=5; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn at random.")] = 0,
    fields: Annotated[
        str, typer.Option(help="Fields that make up the text, joined with a space.")
    ] = "title,text",
) -> None:
    """Train a ranker on queries with judgments.

    Some queries are held out; they decide when to stop, and the weights of the best epoch are kept. To resume
    interrupted training, repeat the command. Use the folder MODEL with `evenrank rerank`, or as --ranker of
    `evenrank search` and `evenrank serve`.

    Example: evenrank train --ranker knrm --docs docs.tsv --queries queries.tsv --qrels qrels.txt -o knrm
    """
    from evenrank.data.docs import open_docs
    from evenrank.rankers.index import Index
    from evenrank.training import train_ranker

    options_given = {
        "loss": loss,
        "loss_strength": loss_strength,
        "adversary": adversary,
        "adversary_labels": None if adversary_labels is None else adversary_labels.value,
        "with_first_stage": with_first_stage,
    }
    settings = {**_from_file(config, ranker.value), **parsed_settings(ranker.value, given or [])}
    settings |= {name: value for name, value in options_given.items() if value is not None}
    with progress_bar("training", unit="steps") as progress:
        train_ranker(
            ranker.value,
            open_docs(docs, fields=split_names(fields)),
            queries,
            qrels,
            output,
            run=run,
            index=None if index is None else Index.open(index),
            negative_pairs=negatives,
            vectors=vectors,
            bias=bias,
            lexicon=lexicon,
            labels=labels,
            seed=seed,
            log=note,
            progress=progress,
            **settings,
        )
    note(f"{ranker.value}: {output}")


def _from_file(path: Path | None, kind: str) -> dict[str, Any]:
    """Settings out of a TOML file, each of the type that the ranker wants."""
    if path is None:
        return {}
    import tomllib

    from evenrank.data.files import reading
    from evenrank.rankers.settings import convert
    from evenrank.training.trainer import read_settings, setting_types

    with reading(path):
        text = path.read_bytes().decode()
    try:
        result = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", path=path) from None
    try:
        for name, value in result.items():
            if not isinstance(value, str | int | float):
                raise InputError(f"{name} is {value!r}; it must be a number, true, false or a text")
        result = convert({name: str(value) for name, value in result.items()}, setting_types(kind), kind)
        read_settings(kind, result)
    except InputError as error:
        raise InputError(str(error), path=path) from None
    return result


def parsed_settings(kind: str, given: list[str]) -> dict[str, Any]:
    """Settings out of texts ``key=value``, each of the type that the ranker wants."""
    from evenrank.rankers.settings import convert, read_pairs
    from evenrank.training.trainer import setting_types

    return convert(read_pairs(given), setting_types(kind), kind)


def rerank_command(
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL|NAME",
            help="A folder made by `evenrank train`; hybrid, bi-encoder[:CHECKPOINT], "
            "cross-encoder:CHECKPOINT, llm[:CHECKPOINT].",
        ),
    ],
    run: Annotated[str, typer.Option(metavar="R", help="The run whose documents are re-ranked.")],
    docs: Annotated[str, typer.Option(metavar="D", help="The collection: TSV, JSONL, Parquet or irds:ID.")],
    queries: Annotated[str, typer.Option(metavar="Q", help="The queries' texts.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RUN", help="The run, in TREC format.")],
    depth: Annotated[int, typer.Option(min=1, help="How many documents of each query are scored.")] = 100,
    hybrid: Annotated[
        bool,
        typer.Option("--hybrid", help="Add the first-stage score, weighted as on the model's dev queries."),
    ] = False,
    keep_rest: Annotated[
        bool, typer.Option("--keep-rest", help="Append the documents below DEPTH to those that were scored.")
    ] = False,
    allow_training_queries: Annotated[
        bool,
        typer.Option("--allow-training-queries", help="Also re-rank queries that the model was trained on."),
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="For llm: an OpenAI-compatible server, such as http://localhost:8000/v1."
        ),
    ] = None,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="NAME", help="For --endpoint: the name of its model.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="env:VARIABLE", help="For --endpoint: the environment variable with its key."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="For --endpoint: do not ask before it may cost.")
    ] = False,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the model: weight=0.1, backend=onnx; repeatable."
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(help="Name of the run, written in its last column.", show_default="the model's"),
    ] = None,
    fields: Annotated[
        str, typer.Option(help="Fields that make up the text, joined with a space.")
    ] = "title,text",
) -> None:
    """Re-rank the documents of a run with a model.

    A model refuses queries that it was trained on: its results for them say nothing about other queries.

    Example: evenrank rerank --model knrm --run bm25.run --docs docs.tsv --queries queries.tsv -o knrm.run
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.read import read_queries
    from evenrank.data.runs import read_run, write_run
    from evenrank.rankers.llm import LLMReranker
    from evenrank.rankers.neural.candidates import candidates
    from evenrank.rankers.neural.reranking import make_reranker, reordered
    from evenrank.rankers.settings import read_pairs

    settings: dict[str, Any] = dict(read_pairs(given or []))
    options_given: dict[str, Any] = {"endpoint": endpoint, "llm": llm, "key": key}
    options_given |= {"hybrid": hybrid or None, "allow_training_queries": allow_training_queries or None}
    settings |= {name: value for name, value in options_given.items() if value is not None}
    refuse_place(output, tag)
    table, requested = read_run(run), read_queries(queries)
    built = make_reranker(model, **settings)
    opened = open_docs(docs, fields=split_names(fields))
    if isinstance(built, LLMReranker):
        estimate = built.estimate(candidates(table, opened, requested, depth=depth))
        if estimate and not yes:
            _confirm(estimate)
    with progress_bar("re-ranking", unit="documents") as progress:
        result = reordered(
            built, table, opened, requested, depth=depth, keep_rest=keep_rest, progress=progress
        )
    write_run(result, output, name=built.name if tag is None else tag)
    for remark in getattr(built, "notes", ()):
        note(remark)
    note(f"{len(result):,} documents for {result['query_id'].n_unique():,} queries: {output}")


def _confirm(estimate: str) -> None:
    """Show what requests to a server may cost, and go on only after a yes."""
    note(estimate)
    if not sys.stdin.isatty():
        raise InputError("nothing was sent; add --yes to send these requests")
    if not typer.confirm("go on?", err=True):
        raise InputError("nothing was sent")
