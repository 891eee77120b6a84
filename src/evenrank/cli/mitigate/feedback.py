"""`evenrank mitigate feedback` and `expanded-terms`: less biased expansions, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import Format, Tokenizer, deliver, note, progress_bar, split_names
from evenrank.errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from evenrank.mitigate.feedback_effects import Effect, GenderedTerms, Pair, WeightedTerm
    from evenrank.mitigate.feedback_sweep import FeedbackSweep, Step


Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout.")
]


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
    fb_docs: Annotated[
        str, typer.Option(metavar="K,K,…", help="Number of feedback documents; all of several are tried.")
    ] = "10",
    fb_terms: Annotated[
        str, typer.Option(metavar="N,N,…", help="Number of expansion terms; all of several are tried.")
    ] = "10",
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Weight of the original query.")] = 0.5,
    lexicon: Annotated[
        str | None, typer.Option(help="Words of each group: a name or a file.", show_default="rekabsaz2020")
    ] = None,
    magnitude: Annotated[
        str, typer.Option(help="Bias of a document: tf, tf-words, boolean, count, length or liwc.")
    ] = "tf",
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How text becomes words.", show_default="words")
    ] = None,
    tally: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Word counts of the collection, instead of counting again."),
    ] = None,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Words for the measure LIWC: a .dic file.", show_default="open"),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="How terms are weighted: anserini, or thesis (its printed equations).")
    ] = "anserini",
    candidates: Annotated[
        int, typer.Option(min=1, help="Documents of the first list to choose from.")
    ] = 1000,
    depth: Annotated[int, typer.Option(min=1, help="Length of the final lists.")] = 1000,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="RaB, ARaB, LIWC, (N)FaiRR or effectiveness. Repeat it for several.",
            show_default="AP, nDCG@10, RR@10, ARaB@10 by tf and boolean, LIWC@10",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of the ranker: k1, b; mu.")
    ] = None,
    show: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="λ whose expanded queries are shown next to those of plain feedback.",
            show_default="0.5",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many of these queries to show.")] = 5,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Include the value of every query in JSON.")
    ] = False,
    runs_to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write each run and its expanded queries to.")
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw every measure against λ: .svg, .png, .pdf, .html or .json."),
    ] = None,
    query_chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw each query's gain at the λ shown, for the first bias measure."
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples; 0 for no intervals.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    form: Annotated[Format, typer.Option("--format", help="How to print the results.")] = Format.table,
    output: Output = None,
) -> None:
    """Expand queries from documents that are relevant and not one-sided, at several strengths λ.

    λ = 0 is plain RM3. For each λ it shows effectiveness and bias, how far bias fell, whether the changes are
    significant (Holm, over the λs), the shares of queries improved and hurt, and the gendered terms in the
    expanded queries.

        evenrank mitigate feedback --index idx --queries queries.tsv --qrels qrels.txt --lambdas 0,0.5,1
    """
    from evenrank.mitigate.feedback_sweep import feedback
    from evenrank.rankers.registry import parse_settings

    ranker = ranker.removesuffix("+rm3")
    settings = parse_settings(ranker, setting or [])
    with progress_bar("feedback", unit="settings") as progress:
        swept = feedback(
            index,
            queries,
            qrels=qrels,
            ranker=ranker,
            lambdas=_numbers(lambdas, "--lambdas"),
            fb_docs=_whole(fb_docs, "--fb-docs"),
            fb_terms=_whole(fb_terms, "--fb-terms"),
            alpha=alpha,
            lexicon=lexicon,
            magnitude=magnitude,
            tokenizer=None if tokenizer is None else tokenizer.value,
            tally=tally,
            estimator=estimator,
            candidates=candidates,
            depth=depth,
            measures=measure,
            dictionary=dictionary,
            confidence=0.95 if resamples else None,
            resamples=resamples or 1,
            seed=seed,
            progress=progress,
            **settings,
        )
    if runs_to is not None:
        _write_runs(swept, runs_to)
    if chart is not None or query_chart is not None:
        _draw(swept, show, chart, query_chart)
    deliver(render_sweep(swept, form, shown=show, top=top, per_query=per_query, output=output), output)


def expanded_terms_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Expanded queries: query_id, term, weight between tabs."),
    ],
    lexicon: Annotated[str, typer.Option(help="Words of each group: a name or a file.")] = "rekabsaz2020",
    stemmer: Annotated[
        str | None,
        typer.Option(
            help="How the terms were stemmed, such as porter; the lexicon is stemmed the same way.",
            show_default="compare as spelled, as published",
        ),
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="The queries' texts.")] = None,
    top: Annotated[
        int, typer.Option(min=0, help="With two files: how many queries to show side by side.")
    ] = 5,
    form: Annotated[Format, typer.Option("--format", help="How to print the results.")] = Format.table,
    output: Output = None,
) -> None:
    """Count the gendered terms in expanded queries, and sum their weights.

    With several files, each is compared with the first.

        evenrank mitigate expanded-terms rm3.tsv bias-aware.tsv
    """
    from evenrank.mitigate.feedback_effects import expanded_queries, gendered_terms, side_by_side, term_groups

    tables = {name: expanded_queries(name) for name in dict.fromkeys(files)}
    result = {name: gendered_terms(table, lexicon, stemmer=stemmer) for name, table in tables.items()}
    pairs = []
    if len(tables) == 2:
        from evenrank.data.read import read_queries

        first, second = tables.values()
        terms = [*first["term"].unique().to_list(), *second["term"].unique().to_list()]
        groups = term_groups(terms, lexicon, stemmer=stemmer)
        texts = None if queries is None else read_queries(queries)
        pairs = side_by_side(first, second, texts, groups, top=top)
    if form is Format.json:
        content = {
            "files": [{"file": name, **terms.to_dict()} for name, terms in result.items()],
            "side_by_side": [pair.to_dict() for pair in pairs],
        }
        deliver(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False), output)
        return
    deliver(render_terms(result, pairs, form, output), output)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in split_names(text)]
    except ValueError as error:
        raise InputError(f"{option} {text!r}: write numbers between commas, as in 0,0.5,1") from error


def _whole(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in split_names(text)]
    except ValueError as error:
        raise InputError(f"{option} {text!r}: write whole numbers between commas, as in 10,20") from error


def _draw(swept: FeedbackSweep, show: float | None, chart: Path | None, queries: Path | None) -> None:
    from evenrank.show.charts.tradeoff import query_chart, strength_chart
    from evenrank.show.report import write_chart

    if chart is not None:
        write_chart(strength_chart(swept), chart)
    if queries is not None:
        strength = swept.shown(show)
        if strength is None:
            raise InputError("--query-chart compares a λ above 0 with λ = 0; name one with --lambdas")
        measures = [effect.measure for effect in swept.steps[0].effects]
        first = next((m for m in measures if getattr(m, "SIGNED", False)), measures[0])
        write_chart(query_chart(swept, first, lambda_=strength), queries)


def _write_runs(swept: FeedbackSweep, folder: Path) -> None:
    """Each step's run and expanded queries, by their settings."""
    from evenrank.data.files import make_folder
    from evenrank.data.runs import write_run
    from evenrank.mitigate.feedback_effects import write_expanded

    make_folder(folder)
    for step in swept:
        name = f"{swept.ranker}+rm3.lambda-{step.lambda_:g}.k-{step.fb_docs}.n-{step.fb_terms}"
        write_run(step.run, folder / f"{name}.run", name=f"{swept.ranker}+rm3")
        write_expanded(step.expanded, folder / f"{name}.queries.tsv")
    note(f"{len(swept.steps)} runs with their expanded queries: {folder}")


def render_sweep(
    swept: FeedbackSweep,
    form: Format,
    *,
    shown: float | None,
    top: int,
    per_query: bool,
    output: Path | None,
) -> str:
    """The sweep as text: one table for each k and n, then expanded queries side by side."""
    from evenrank.cli.rendering import canvas, render_grid

    chosen = swept.shown(shown)
    pairs = swept.side_by_side(chosen, top=top) if chosen is not None and top else []
    if form is Format.json:
        content = swept.to_dict(per_query=per_query)
        content["side_by_side"] = {"lambda": chosen, "queries": [pair.to_dict() for pair in pairs]}
        return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    if form is Format.csv:
        return swept.frame().write_csv()
    wide = form is Format.latex or canvas(output).width >= 130
    headings, rows = _sweep_rows(swept, wide=wide)
    remarks = [
        "mean over queries; fall % is (before − after) / before against λ = 0, of mean |·| for ARaB and RaB",
        "* significantly different from λ = 0 (paired t, Holm over the λs, 0.05)",
        *_shares(swept),
        *([] if wide else _terms(swept)),
    ]
    text = render_grid(form, headings, rows, remarks=remarks, output=output)
    if form is Format.latex or not pairs:
        return text
    return text + beside(pairs, "λ = 0", f"λ = {chosen:g}", output)


def _sweep_rows(swept: FeedbackSweep, *, wide: bool) -> tuple[list[str], list[list[str]]]:
    from evenrank.mitigate.feedback_effects import Effect

    several = len({(step.fb_docs, step.fb_terms) for step in swept}) > 1
    headings = ["λ", *(["k", "n"] if several else [])]
    headings += [heading for effect in swept.steps[0].effects for heading in _headings(effect, wide)]
    headings += ["gendered terms", "weight"] if wide else []
    without = [Effect(measurement) for measurement in swept.first]
    gap = [""] * (2 if several else 0)
    rows = [[f"{swept.ranker} alone", *gap, *_cells(without, wide), *(["", ""] if wide else [])]]
    before: tuple[int, int] | None = None
    for step in swept:
        if several and before not in (None, (step.fb_docs, step.fb_terms)):
            rows.append([])
        before = step.fb_docs, step.fb_terms
        settings = [f"{step.fb_docs}", f"{step.fb_terms}"] if several else []
        words = [f"{step.terms.number:,}", f"{step.terms.weight:.2f}"] if wide else []
        rows.append([f"{step.lambda_:g}", *settings, *_cells(step.effects, wide), *words])
    return headings, rows


def _short(effect: Effect) -> str:
    return str(effect.measure).replace("magnitude=", "").replace("'", "")


def _signed(effect: Effect) -> bool:
    return bool(getattr(effect.measure, "SIGNED", False))


def _falls(effect: Effect) -> bool:
    return _signed(effect) or str(effect.measure).startswith("LIWC")


def _headings(effect: Effect, wide: bool) -> list[str]:
    """Value, mean of absolute values and fall; the value alone where there is no room."""
    if not wide:
        return [f"|{_short(effect)}|" if _signed(effect) else _short(effect)]
    extra = ["mean |·|"] if _signed(effect) else []
    return [_short(effect), *extra, *(["fall %"] if _falls(effect) else [])]


def _cells(effects: Sequence[Effect], wide: bool) -> list[str]:
    from evenrank.show.numbers import number

    cells = []
    for effect in effects:
        star = "*" if effect.p_holm is not None and effect.p_holm < 0.05 else ""
        value = effect.measurement.value
        if _signed(effect):
            cells += [number(value, "+.3f")] if wide else []
            cells.append(number(effect.measurement.abs, ".3f") + star)
        else:
            cells.append(number(value, ".3f") + star)
        if wide and _falls(effect):
            share = effect.abs_reduction if _signed(effect) else effect.reduction
            cells.append(_percent(share, effect))
    return cells


def _percent(share: float | None, effect: Effect) -> str:
    if effect.change is None:
        return ""
    return "–" if share is None else f"{100 * share:.1f}"


def _shares(swept: FeedbackSweep) -> list[str]:
    """For the first bias measure: how many queries got better and worse, at each λ."""
    signed = [e.measure for e in swept.steps[0].effects if getattr(e.measure, "SIGNED", False)]
    if not signed:
        return []
    lines = []
    for step in swept:
        effect = step[signed[0]]
        if effect.change is None:
            continue
        lines.append(f"{_setting(swept, step)}: |{_short(effect)}| {_share_text(effect)}")
    return lines


def _terms(swept: FeedbackSweep) -> list[str]:
    """Gendered terms where there is no room for columns."""
    words = [
        f"{_setting(swept, step)}: {step.terms.number:,} of weight {step.terms.weight:.2f}" for step in swept
    ]
    return ["gendered terms in the expanded queries: " + "; ".join(words)]


def _setting(swept: FeedbackSweep, step: Step) -> str:
    several = len({(one.fb_docs, one.fb_terms) for one in swept}) > 1
    return f"λ = {step.lambda_:g}" + (f", k = {step.fb_docs}, n = {step.fb_terms}" if several else "")


def _share_text(effect: Effect) -> str:
    from evenrank.show.numbers import number, p_phrase

    if effect.improved is None or effect.tied is None or effect.hurt is None or effect.change is None:
        return "undefined"
    shares = f"{effect.improved:.0%} of queries improved, {effect.tied:.0%} tied, {effect.hurt:.0%} hurt"
    return f"{shares}; {number(effect.change.difference)}, {p_phrase(effect.p_holm)}"


def render_terms(
    found: Mapping[str, GenderedTerms], pairs: Sequence[Pair], form: Format, output: Path | None
) -> str:
    """Number and weight of gendered terms in each file, against the first."""
    from evenrank.cli.rendering import render_grid
    from evenrank.show.grid import Grid

    groups = list(dict.fromkeys(group for terms in found.values() for group in terms.by_group()))
    headings = ["file", "terms", "weight", *groups, "queries with any", "fewer %", "lighter %"]
    first = next(iter(found.values()))
    rows = []
    for name, terms in found.items():
        each = [f"{terms.by_group().get(group, {}).get('number', 0):g}" for group in groups]
        falls = ["", ""]
        if terms is not first:
            falls = [_fall_text(first.number, terms.number), _fall_text(first.weight, terms.weight)]
        any_of = f"{terms.concerned} of {terms.queries}"
        rows.append([name, f"{terms.number:,}", f"{terms.weight:.2f}", *each, any_of, *falls])
    if form is Format.csv:
        return Grid(headings, rows).csv()
    text = render_grid(form, headings, rows, output=output)
    if form is Format.latex or not pairs:
        return text
    before, after = (Path(name).name for name in found)
    return text + beside(pairs, before, after, output)


def _fall_text(before: float, after: float) -> str:
    return "–" if not before else f"{100 * (before - after) / before:.1f}"


def beside(pairs: Sequence[Pair], before: str, after: str, output: Path | None) -> str:
    """Two expansions of each query, heaviest terms first; gendered ones in brackets with their weight."""
    from rich.table import Table
    from rich.text import Text

    from evenrank.cli.rendering import canvas

    if not pairs:
        raise InputError("there are no queries to show")
    console = canvas(output)
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(1, 2, 0, 0))
    for heading in ("query", before, after):
        grid.add_column(Text(heading), overflow="fold", ratio=1)
    for pair in pairs:
        grid.add_row(Text(pair.text or pair.query_id), _marked(pair.before), _marked(pair.after))
    console.print(grid)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _marked(terms: Sequence[WeightedTerm]) -> Text:
    from rich.text import Text

    from evenrank.cli.rendering import GROUP_COLOURS

    pieces: list[str | tuple[str, str]] = []
    for term in terms:
        pieces.append(" " if pieces else "")
        if term.group is None:
            pieces.append(term.term)
        else:
            colour = GROUP_COLOURS.get(term.group, "bold")
            pieces.append((f"[{term.term} {term.weight:.3f}]", f"bold {colour}"))
    return Text.assemble(*pieces)
