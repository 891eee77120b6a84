"""All commands, gathered. Their modules import nothing heavy until a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

import evenrank
from evenrank.cli import (
    annotate,
    audit,
    classify,
    collection,
    compare_variants,
    demo,
    disparity,
    measure,
    mitigate,
    neural,
    psychology,
    represent,
    reproduce,
    serve,
    vectors,
    verify,
)

app = typer.Typer(
    name="evenrank",
    help="Measure gender bias, or bias toward any group, in search results.",
    epilog="Exit codes: 0 done, 1 a bound is exceeded, 2 bad input, 3 internal error; of bundles also "
    "1 mismatch, 4 incomplete, 5 damaged. "
    "--debug, with any command, shows the traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenrank {evenrank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo_command)
app.command("audit")(audit.audit_command)
app.command("verify")(verify.verify_command)
app.command("measure")(measure.measure_command)
app.command("represent")(represent.represent_command)
app.command("psychology")(psychology.psychology_command)
app.command("compare-variants")(compare_variants.compare_variants_command)
app.command("disparity")(disparity.disparity_command)
app.command("tally")(collection.tally_command)
app.command("index")(collection.index_command)
app.command("search")(collection.search_command)
app.command("train")(neural.train_command)
app.command("rerank")(neural.rerank_command)
app.command("lexicons")(collection.lexicons_command)
app.command("classify")(classify.classify_command)
app.command("classify-train")(classify.classify_train_command)
app.command("pool")(annotate.pool_command)
app.command("vote")(annotate.vote_command)
app.command("serve")(serve.serve_command)
app.command("monitor")(serve.monitor_command)
app.add_typer(mitigate.app, name="mitigate")
app.add_typer(vectors.app, name="vectors")
app.add_typer(reproduce.app, name="reproduce")
