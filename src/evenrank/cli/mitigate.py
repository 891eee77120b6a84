"""`evenrank mitigate …`: every way to a less biased ranking, one command each."""

from __future__ import annotations

import typer

app = typer.Typer(help="Re-balance rankings and judgments.", no_args_is_help=True)
