"""`evenrank mitigate feedback`: less biased expansions, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from evenrank.cli import options
from evenrank.cli.common import Format, deliver, progress_bar, split_names
from evenrank.errors import InputError


def feedback_command(
    index: Annotated[str, typer.Option(metavar="IDX", help="An index, from `evenrank index`.")],
    queries: Annotated[str, typer.Option(metavar="FILE", help="The queries.")],
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Judgments; without them only bias is measured.")
    ] = None,
    ranker: Annotated[str, typer.Option(help="The ranker of both searches: bm25 or qld.")] = "bm25",
    lambdas: Annotated[
        str, typer.Option(metavar="L,L,…", help="How much bias counts when documents are chosen, 0 to 1.")
    ] = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="fb_docs=10, fb_terms=10, alpha=0.5, estimator=anserini or thesis, magnitude=tf, "
            "candidates=1000, normalise=true; k1, b; mu. Repeatable.",
        ),
    ] = None,
    lexicon: options.Lexicon = None,
    tally: options.TallyFile = None,
    dictionary: options.Dictionary = None,
    depth: Annotated[int, typer.Option(min=1, help="Length of the final lists.")] = 1000,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="RaB, ARaB, LIWC, (N)FaiRR or effectiveness. Repeat it for several.",
            show_default="AP, nDCG@10, RR@10, ARaB@10 by tf and boolean, LIWC@10",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="How many queries to show beside those of plain feedback.")
    ] = 5,
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples; 0 for no intervals.")] = 2000,
    seed: options.Seed = 0,
    chart: options.Chart = None,
    form: options.Form = Format.table,
    output: options.Output = None,
) -> None:
    """Expand queries from documents that are relevant and not one-sided, at several strengths λ.

    λ = 0 is plain RM3. For each λ it shows effectiveness and bias, how far bias fell, whether the changes are
    significant (Holm, over the λs), the shares of queries improved and hurt, and the gendered terms in the
    expanded queries.

        evenrank mitigate feedback --index idx --queries queries.tsv --qrels qrels.txt --lambdas 0,0.5,1
    """
    from evenrank.cli.rendering import draw, print_found, render_grid
    from evenrank.mitigate.feedback import feedback
    from evenrank.rankers.registry import parse_settings

    try:
        strengths = [float(part) for part in split_names(lambdas)]
    except ValueError as error:
        raise InputError(f"--lambdas {lambdas!r}: write numbers between commas, as in 0,0.5,1") from error
    name = ranker.removesuffix("+rm3")
    with progress_bar("feedback", unit="settings") as progress:
        result = feedback(
            index,
            queries,
            qrels=qrels,
            ranker=name,
            lambdas=strengths,
            measures=measure,
            dictionary=dictionary,
            depth=depth,
            confidence=0.95 if resamples else None,
            resamples=resamples or 1,
            seed=seed,
            progress=progress,
            lexicon=lexicon,
            tally=tally,
            **parse_settings(f"{name}+rm3", setting or []),
        )
    draw(result, chart)
    print_found(result, form, output)
    if top and form is Format.table and output is None:
        pairs = result.side_by_side(result.shown, top=top)
        rows = pairs.select("text", "before", "after").rows()
        deliver(render_grid(form, ["query", "λ = 0", f"λ = {result.shown:g}"], rows, left=3), None)
