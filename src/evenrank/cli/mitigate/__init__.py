"""`evenrank mitigate …`: every way to a less biased ranking, one command each."""

from __future__ import annotations

import typer

from evenrank.cli.mitigate import balance, feedback, negatives, reranking, swap, sweep

app = typer.Typer(help="Re-balance rankings and judgments.", no_args_is_help=True)
app.command("feedback")(feedback.feedback_command)
app.command("constrain")(reranking.constrain_command)
app.command("rebalance")(reranking.rebalance_command)
app.command("negatives")(negatives.negatives_command)
app.command("sweep")(sweep.sweep_command)
app.command("swap")(swap.swap_command)
app.command("balance")(balance.balance_command)
