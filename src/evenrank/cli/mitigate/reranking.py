"""Commands that re-rank a run: `evenrank mitigate constrain`, within limits on its bias, and `rebalance`.

The second has published re-rankers for the shares of groups, as baselines.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import deliver, note, progress_bar
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.mitigate.constrain import Constrained
    from evenrank.mitigate.rebalance import Rebalanced


class Mode(StrEnum):
    each = "each"
    mean = "mean"


class Utility(StrEnum):
    dcg = "dcg"
    order = "order"


@options.takes_inputs
def constrain_command(
    run: Annotated[str, typer.Option(metavar="RUN", help="The run to re-rank, TREC format.")],
    limit: Annotated[
        list[str],
        typer.Option(
            metavar="CONDITION",
            help="'abs(ARaB@10)<=0.1', 'NFaiRR@10>=0.95', 'abs(Skew@10)<=0.2'. Repeat it for several.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RUN", help="File for the new run.")],
    given: options.Collection,
    mode: Annotated[
        Mode, typer.Option(help="Keep the limits for every query, or for the mean over queries.")
    ] = Mode.each,
    candidates: Annotated[int, typer.Option(min=1, help="How many documents from the top may move.")] = 100,
    exact: Annotated[
        bool, typer.Option("--exact", help="Work until everything is proved, no matter how long it takes.")
    ] = False,
    budget_ms: Annotated[
        float, typer.Option(min=0.1, help="Work allowed for a query, in milliseconds of an ordinary core.")
    ] = 50,
    utility: Annotated[
        Utility,
        typer.Option(help="What to keep as high as possible: DCG of the scores, or of the given order."),
    ] = Utility.dcg,
    background: Annotated[
        str | None, typer.Option(metavar="RUN", help="What NFaiRR compares with.", show_default="the run")
    ] = None,
    labels: options.Labels = None,
    targets: options.Targets = None,
    dictionary: options.Dictionary = None,
    missing: options.Lacking = options.Unmeasured.error,
    name: options.Tag = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for what was done and proved, as JSON.")
    ] = None,
) -> int:
    """Re-rank within limits on bias, giving up as little usefulness as possible.

    A query that cannot stay within the limits gets its least biased ranking, and is counted.

        evenrank mitigate constrain --run bm25.run --docs docs.tsv --limit 'abs(ARaB@10)<=0.1' -o fair.run
    """
    from evenrank.data.runs import write_run
    from evenrank.measures.inputs import run_name
    from evenrank.mitigate.constrain import constrain

    if given.tally is not None and given.docs is not None:
        raise InputError("--tally and --docs are both given; give one")
    counted = given.counted()
    with progress_bar("re-ranking", unit="rounds" if mode.value == "mean" else "queries") as progress:
        fair = constrain(
            run,
            counted,
            limit=limit,
            mode=mode.value,
            candidates=candidates,
            exact=exact,
            budget=budget_ms / 1000,
            background=background,
            labels=labels,
            targets=targets,
            docs=given.documents(),
            dictionary=dictionary,
            utility=utility.value,
            missing=missing.value,
            progress=progress,
        )
    write_run(fair, output, name=name or run_name(output))
    if report is not None:
        deliver(json.dumps(fair.to_report(), indent=2, ensure_ascii=False, allow_nan=False), report)
    for line in _limited(fair).splitlines():
        note(line)
    return 0


def _limited(fair: Constrained) -> str:
    """What was done, in a few lines for people."""
    from evenrank.measures.parse import parse_condition

    facts, lines = fair.certificate, []
    queries = len(fair.report)
    for text in facts["limits"]:
        condition = parse_condition(text)
        columns = (f"{condition.measure} before", str(condition.measure))
        before, after = (fair.report[column].drop_nulls().to_numpy() for column in columns)
        if condition.absolute:
            before, after = abs(before), abs(after)
        if len(after):
            mean = f"{before.mean():.4f} → {after.mean():.4f}"
            lines.append(f"{text}: mean of {condition.subject} {mean}")
    lines.append(f"utility given up: {facts['mean_loss']:.2%} (mean over {queries:,} queries)")
    if facts["mode"] == "mean":
        if facts["outcome"] == "infeasible":
            lines.append("no ranking has means within the limits; these come closest")
        else:
            lines.append(f"at most {facts['largest_gap']:.2g} of the utility could still be saved")
        return "\n".join(lines)
    counts = facts["status"]
    saying = {
        "kept": "within the limits as they were",
        "optimal": "re-ranked, proved best",
        "gap": f"re-ranked, at most {facts['largest_gap']:.2g} of their utility from the best",
        "infeasible": "cannot stay within the limits: given their least biased ranking",
        "unresolved": "not within the limits when the budget was spent: try --exact, or a wider limit",
    }
    lines += [f"{counts[status]:,} {text}" for status, text in saying.items() if counts[status]]
    return "\n".join(lines)


class Method(StrEnum):
    detgreedy = "detgreedy"
    detcons = "detcons"
    detrelaxed = "detrelaxed"
    detconstsort = "detconstsort"
    fair = "fair"


@options.takes_inputs
def rebalance_command(
    run: Annotated[str, typer.Option(metavar="RUN", help="The run to re-rank, TREC format.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RUN", help="File for the new run.")],
    given: options.Collection,
    method: Annotated[
        Method, typer.Option(help="Of Geyik et al. (det…), or FA*IR (fair).")
    ] = Method.detconstsort,
    at: Annotated[int, typer.Option(min=1, help="How many ranks to fill.")] = 10,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="list, collection, equal, or {'female': 0.4, 'male': 0.6}.",
            show_default="--targets, else list",
        ),
    ] = None,
    strength: Annotated[
        float, typer.Option(min=0, max=1, help="From the shares in the list (0) to the target (1).")
    ] = 1.0,
    group: Annotated[str | None, typer.Option(help="For fair: the group that must not fall short.")] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="For fair: significance of its test.")] = 0.1,
    candidates: Annotated[int, typer.Option(min=1, help="How many documents from the top may move.")] = 100,
    labels: options.Labels = None,
    targets: options.Targets = None,
    missing: options.Lacking = options.Unmeasured.error,
    name: options.Tag = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for what happened to each query, as JSON.")
    ] = None,
) -> int:
    """Re-rank with a published method, so that every prefix shows groups in the shares they should have.

    These are baselines: unlike `mitigate constrain`, they prove nothing. Queries with too few candidates of a
    group are counted and named.

        evenrank mitigate rebalance --run bm25.run --labels labels.tsv --target equal -o even.run
    """
    from evenrank.data.runs import write_run
    from evenrank.measures.inputs import run_name
    from evenrank.mitigate.rebalance import rebalance

    if given.tally is not None and given.docs is not None:
        raise InputError("--tally and --docs are both given; give one")
    even = rebalance(
        run,
        method.value,
        at=at,
        target=_shares(target),
        strength=strength,
        group=group,
        alpha=alpha,
        candidates=candidates,
        tally=given.counted(),
        labels=labels,
        targets=targets,
        missing=missing.value,
    )
    write_run(even, output, name=name or run_name(output))
    if report is not None:
        deliver(json.dumps(even.to_report(), indent=2, ensure_ascii=False, allow_nan=False), report)
    for line in _rebalanced(even):
        note(line)
    return 0


def _shares(text: str | None) -> Any:
    """A word, or shares as Python writes them."""
    if text is None or not text.strip().startswith("{"):
        return text
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise InputError(f"--target {text!r}: write shares as in {{'female': 0.4, 'male': 0.6}}") from None


_SAYING = {
    "kept": "as they were",
    "moved": "re-ranked",
    "missed": "re-ranked, though some prefix still lacks a group that has documents enough",
    "infeasible": "cannot have the shares, a group has too few documents",
    "no target": "left as they were: no target, or no document with a group",
}


def _rebalanced(even: Rebalanced) -> list[str]:
    """What was done, in a few lines for people; queries that cannot have the shares by name."""
    from evenrank.data.schema import listing

    lines = []
    for status, text in _SAYING.items():
        chosen = even.report.filter(even.report["status"] == status)["query_id"].to_list()
        if chosen:
            named = f": {listing(chosen)}" if status in ("missed", "infeasible", "no target") else ""
            lines.append(f"{len(chosen):,} {'query' if len(chosen) == 1 else 'queries'} {text}{named}")
    return lines
