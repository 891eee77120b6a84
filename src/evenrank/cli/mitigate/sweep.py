"""`evenrank mitigate sweep`: bias against usefulness as a mitigation grows stronger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, progress_bar, refuse_place, split_names
from evenrank.cli.mitigate.reranking import Mode
from evenrank.errors import InputError


@options.takes_inputs
def sweep_command(
    qrels: Annotated[str, typer.Option(metavar="FILE", help="Relevance judgments.")],
    given: options.Collection,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The mitigation to strengthen: constrain, interpolate, penalty, feedback, detgreedy, "
            "detcons, detrelaxed, detconstsort, fair; with --train: negatives, adversary, "
            "consistency, or a loss.",
        ),
    ] = "constrain",
    run: Annotated[str | None, typer.Option(metavar="RUN", help="The run to re-rank, TREC format.")] = None,
    mode: Annotated[
        Mode, typer.Option(help="For constrain: bound the mean over queries, or each query.")
    ] = Mode.mean,
    strengths: Annotated[
        str | None,
        typer.Option(
            metavar="S,S,…",
            help="From weak to strong. constrain: bounds on bias. interpolate, feedback, det…, fair, "
            "negatives: from 0 to 1. penalty, adversary, consistency, losses: from 0 on.",
            show_default="usual ones of the method",
        ),
    ] = None,
    bias: Annotated[
        str, typer.Option(help="As in abs(ARaB@10), NFaiRR@10, LIWC@10, AWRF@10.")
    ] = "abs(ARaB@10)",
    utility: Annotated[str, typer.Option(help="As in nDCG@10, RR@10, AP.")] = "nDCG@10",
    candidates: Annotated[
        int, typer.Option(min=1, help="For what re-ranks --run: how many documents from the top may move.")
    ] = 100,
    index: Annotated[str | None, typer.Option(metavar="IDX", help="For feedback: the index.")] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="FILE", help="For feedback and --train: the queries of the run.")
    ] = None,
    ranker: Annotated[str, typer.Option(help="For feedback: bm25 or qld.")] = "bm25",
    train: Annotated[
        str | None,
        typer.Option(
            metavar="RANKER",
            help="A ranker to train on other queries, which then re-ranks the run; `none` is its plain "
            "training.",
        ),
    ] = None,
    train_queries: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --train: the training queries.")
    ] = None,
    train_qrels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --train: their judgments.", show_default="--qrels"),
    ] = None,
    train_run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="With --train: their first-stage run.", show_default="BM25"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --train: a setting, epochs=5; repeatable."),
    ] = None,
    background: Annotated[
        str | None, typer.Option(metavar="RUN", help="What NFaiRR compares with.", show_default="the run")
    ] = None,
    labels: options.Labels = None,
    targets: options.Targets = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose by the share of utility lost, instead of by significance."),
    ] = None,
    confidence: options.Confidence = 0.95,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind the intervals.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap, and of training.")] = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> int:
    """Show what each strength of a mitigation costs, mark the Pareto front, and suggest a setting.

    The suggestion is the strongest setting with less bias before any loss of utility is significant (paired
    t-tests, Holm's correction) or, with --tolerance, before more than that share is lost. It is made on the
    queries whose values are shown: choose on dev queries, and measure the chosen setting on others. A line
    below the table says so where its bias is not significantly lower.

        evenrank mitigate sweep --run bm25.run --docs docs.tsv --qrels qrels.txt
    """
    from evenrank.cli.rendering import draw, print_found
    from evenrank.mitigate.sweep import sweep

    if (given.tally is None) == (given.docs is None) and (given.docs is not None or labels is None):
        raise InputError("give either --tally or --docs, or --labels where the bias is about groups")
    read = (run, given.docs, given.tally, given.lexicon, qrels, queries, index, background, labels, targets)
    assigned = (each.partition("=") for each in settings or ())
    vectors = (value.strip() for key, _, value in assigned if key.strip() == "vectors")
    _refuse_places(chart, output, *read, train_queries, train_qrels, train_run, *vectors)
    if chart is not None:
        from evenrank.show.report import sheet_form

        sheet_form(chart)
    docs, training = given.documents(), None
    if train is not None:
        from evenrank.cli.neural import parsed_settings
        from evenrank.mitigate.trained import RetrainSpec

        if docs is None or train_queries is None or queries is None or run is None:
            raise InputError("--train needs --docs, --train-queries, and --run and --queries to re-rank")
        training = RetrainSpec(
            train,
            docs,
            train_queries,
            train_qrels or qrels,
            run=train_run,
            seed=seed,
            settings=parsed_settings(train, settings or []),
        )
    elif train_queries or train_qrels or train_run or settings:
        raise InputError("--train-queries, --train-qrels, --train-run and --set belong to --train")
    counted = given.counted()
    with progress_bar("sweeping", unit="settings") as progress:
        result = sweep(
            run,
            counted,
            method=method,
            docs=docs,
            qrels=qrels,
            training=training,
            mode=mode.value,
            strengths=None if strengths is None else _numbers(strengths),
            bias=bias,
            utility=utility,
            candidates=candidates,
            index=index,
            queries=queries,
            ranker=ranker,
            background=background,
            labels=labels,
            targets=targets,
            tolerance=tolerance,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    draw(result, chart)
    print_found(result, form, output)
    return 0


def _refuse_places(chart: Path | None, output: Path | None, *inputs: str | None) -> None:
    """Refuse places that cannot be written to, where something is read, or that are one and the same."""
    from evenrank.data.files import refuse_input

    for place in (chart, output):
        if place is not None:
            refuse_place(place)
            refuse_input(place, *inputs)
    if chart is not None and output is not None and chart.resolve() == output.resolve():
        raise InputError("--chart and -o are the same file; give one of them another name", path=chart)


def _numbers(text: str) -> list[float]:
    try:
        return [float(each) for each in split_names(text)]
    except ValueError:
        raise InputError(f"--strengths {text!r}: write numbers with commas between them") from None
