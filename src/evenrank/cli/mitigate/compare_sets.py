"""`evenrank mitigate compare-sets`: rankers trained on unbalanced and on balanced judgments, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli.common import Format, deliver, note


def compare_sets_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="What is compared.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A folder for all of it.")],
    form: Annotated[Format, typer.Option("--format", help="How the table is printed.")] = Format.table,
) -> None:
    """Generate queries, balance judgments, train rankers on each set, and compare them.

    The plan names docs, queries, qrels, test_queries and test_qrels; it may say writer, sample, per_document,
    ratio, rankers, seeds, depth, neutral, settings. What was interrupted is gone on with by the same command.
    Predicted genders are not written, unless write_genders = true.

        evenrank mitigate compare-sets plan.toml -o compared
    """
    from evenrank.mitigate.comparing_sets import Plan, compare_sets

    result = compare_sets(Plan.read(plan), output, say=note)
    deliver(rendered(result, form), None)
    note(f"written: {output / 'result.json'}")


def rendered(result: dict[str, Any], form: Format) -> str:
    """Male and female RR@10 of each ranker and set, the gap, and how it changed."""
    import json

    if form is Format.json:
        return json.dumps(result, indent=2, allow_nan=False)
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import number, p_value

    rows = []
    for ranker, sets in result["rankers"].items():
        for name, found in sets.items():
            change = found.get("change", {})
            lean = found["ARaB@10, neutral queries"]
            rows.append(
                [
                    "bm25" if name == "bm25" else ranker,
                    "" if name == "bm25" else name,
                    number(found["male"], ".3f"),
                    number(found["female"], ".3f"),
                    number(found["gap"], "+.3f"),
                    p_value(found["p"]),
                    number(found["smallest gap that would be found"], ".3f"),
                    number(change["gap"], "+.3f") if change else "",
                    p_value(change["p"]) if change else "",
                    "" if lean is None else number(lean, "+.3f"),
                ]
            )
    headings = [
        "ranker", "trained on", "male", "female", "gap", "p", "could show", "change", "p", "ARaB@10",
    ]  # fmt: skip
    counts = result["test queries"]
    remarks = [
        f"RR@10; {counts['female']:,} female and {counts['male']:,} male test queries, ARaB@10 on "
        f"{counts['neutral']:,} neutral ones; positive favours male",
        "could show: the smallest gap that would be found in four of five trials",
    ]
    return render_grid(form, headings, rows, remarks=remarks)
