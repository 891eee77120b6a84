"""`evenrank plan`: how many queries an audit needs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, progress_bar
from evenrank.errors import InputError


@options.takes_inputs
def plan_command(
    effect: Annotated[float, typer.Option(help="The lean that matters, in units of the measure: 0.05.")],
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="A run to take the spread of queries from.")
    ] = None,
    sd: Annotated[
        float | None, typer.Option(metavar="S", help="Or the standard deviation of single queries.")
    ] = None,
    measure: Annotated[str, typer.Option(metavar="MEASURE", help="What is measured of the run.")] = "ARaB@10",
    given: options.GivenInputs,
    only: options.OnlyQueries = None,
    alpha: Annotated[float, typer.Option(min=1e-6, max=0.5, help="Level of a test.")] = 0.05,
    power: Annotated[float, typer.Option(min=0.5, max=0.999, help="Chance to find what is there.")] = 0.8,
    tests: Annotated[int, typer.Option(min=1, help="Tests that the level is shared by.")] = 1,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> int:
    """How many queries does it take to find a lean of this size, or to show that there is none?

    evenrank plan --effect 0.05 --from bm25.run --docs docs.tsv
    evenrank plan --effect 0.05 --sd 0.6
    """
    from evenrank.auditing.certainty import plan

    if form not in (Format.table, Format.json):
        raise InputError("a plan is printed as table or json")
    if given.run:
        raise InputError("--run: a plan takes its run with --from")
    run = None if source is None else {source: source}
    inputs = {} if run is None else given.keywords(run)
    with progress_bar("counting", unit="bytes") as progress:
        more: dict[str, Any] = (
            {} if run is None else {"progress": progress, "only": None if only is None else only.value}
        )
        found = plan(
            effect,
            sd=sd,
            run=source,
            measure=measure,
            alpha=alpha,
            power=power,
            tests=tests,
            **inputs,
            **more,
        )
    deliver(str(found) if form is Format.table else json.dumps(found.to_dict(), indent=2), output)
    return 0
