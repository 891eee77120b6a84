"""Tables of bias-aware feedback: the sweep, gendered terms, and expanded queries beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from evenrank.cli.common import Format
from evenrank.cli.grids import GROUP_COLOURS, canvas, render_grid
from evenrank.errors import InputError
from evenrank.mitigate.feedback.effects import Effect
from evenrank.mitigate.feedback.expanded_queries import GenderedTerms, Pair, WeightedTerm
from evenrank.mitigate.feedback.sweeping import FeedbackSweep, Step
from evenrank.show.grid import Grid
from evenrank.show.numbers import number, p_said


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
    cells = []
    for effect in effects:
        star = "*" if effect.p_holm is not None and effect.p_holm < 0.05 else ""
        value = effect.measurement.value
        if _signed(effect):
            cells += [number(value, "+.3f")] if wide else []
            cells.append(number(effect.measurement.summary.abs, ".3f") + star)
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
    if effect.improved is None or effect.tied is None or effect.hurt is None or effect.change is None:
        return "undefined"
    shares = f"{effect.improved:.0%} of queries improved, {effect.tied:.0%} tied, {effect.hurt:.0%} hurt"
    return f"{shares}; {number(effect.change.difference)}, {p_said(effect.p_holm)}"


def render_terms(
    found: Mapping[str, GenderedTerms], pairs: Sequence[Pair], form: Format, output: Path | None
) -> str:
    """Number and weight of gendered terms in each file, against the first."""
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
    pieces: list[str | tuple[str, str]] = []
    for term in terms:
        pieces.append(" " if pieces else "")
        if term.group is None:
            pieces.append(term.term)
        else:
            colour = GROUP_COLOURS.get(term.group, "bold")
            pieces.append((f"[{term.term} {term.weight:.3f}]", f"bold {colour}"))
    return Text.assemble(*pieces)
