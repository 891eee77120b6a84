"""`evenrank mitigate …`: every way to a less biased ranking, one command each."""

from __future__ import annotations

import typer

from evenrank.cli import (
    mitigate_balance,
    mitigate_constrain,
    mitigate_counterfactual,
    mitigate_feedback,
    mitigate_swap,
    mitigate_sweep,
)

app = typer.Typer(help="Re-balance rankings and judgments.", no_args_is_help=True)
app.command("feedback")(mitigate_feedback.feedback_command)
app.command("expanded-terms")(mitigate_feedback.expanded_terms_command)
app.command("constrain")(mitigate_constrain.constrain_command)
app.command("sweep")(mitigate_sweep.sweep_command)
app.command("swap")(mitigate_swap.swap_command)
app.command("counterfactual")(mitigate_counterfactual.counterfactual_command)
app.command("balance")(mitigate_balance.balance_command)
