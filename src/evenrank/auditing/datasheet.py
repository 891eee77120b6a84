"""What an audit rests on, in words for someone who was not there: data, methods, limits, what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from evenrank.auditing.comparing import between
from evenrank.auditing.result import Audit, printed_bounds, printed_value
from evenrank.auditing.verdict import powers, said_of, size_of, unjudged
from evenrank.measures.base import interpretation, is_bias, meaning, short, sign_names_group
from evenrank.measures.compare import LEVEL
from evenrank.measures.inputs import Inputs
from evenrank.show.grid import Grid
from evenrank.show.numbers import DASH, counted, level, number, p_value, upper_first


def data_sheet(inputs: Inputs, audit: Audit, languages: str | None = None) -> dict[str, Any]:
    """Sizes, languages, what is unknown and what was left out. `languages` is what the auditor states."""
    sheet: dict[str, Any] = {"runs": {name: _run(run) for name, run in inputs.runs.items()}}
    if inputs.has_tally:
        sheet["documents"] = _documents(inputs)
        lexicon = inputs.tally.lexicon
        sheet["languages"] = {
            "stated": languages,
            "lexicon": None if lexicon is None else lexicon.language,
        }
    if inputs.queries is not None:
        sheet["queries"] = {"queries": inputs.queries.height}
    if inputs.genders is not None:
        requested = set().union(*(run["query_id"].to_list() for run in inputs.runs.values()))
        labelled = Counter(label for query, label in inputs.genders.items() if query in requested)
        unknown = len(requested - inputs.genders.keys())
        sheet["query_genders"] = {
            "labels": dict(sorted(labelled.items())),
            "without_label": unknown,
            "share_unknown": unknown / len(requested) if requested else None,
        }
    if inputs.qrels is not None:
        relevant = inputs.qrels.filter(pl.col("relevance") > 0)
        sheet["judgments"] = {
            "judgments": inputs.qrels.height,
            "relevant": relevant.height,
            "queries": inputs.qrels["query_id"].n_unique(),
        }
    if audit.selection is not None:
        sheet["candidates"] = {
            run: {"candidates": total, "unknown": dict(audit.selection.unknown[run])}
            for run, total in audit.selection.totals.items()
        }
        sheet["columns_left_aside"] = list(audit.selection.left_aside)
    sheet["left_out"] = {
        run: {str(m.measure): m.left_out for m in result if m.left_out}
        for run, result in audit.measured.runs.items()
    }
    return sheet


def _run(run: pl.DataFrame) -> dict[str, Any]:
    lengths = run.group_by("query_id").len()["len"]
    return {
        "queries": len(lengths),
        "rows": run.height,
        "documents": run["doc_id"].n_unique(),
        "shortest_list": lengths.min(),
        "median_list": lengths.median(),
        "longest_list": lengths.max(),
    }


def _documents(inputs: Inputs) -> dict[str, Any]:
    tally = inputs.tally
    counts = tally.frame.select(tally.groups)
    many = tally.frame.height
    none = int((counts.sum_horizontal() == 0).sum()) if tally.groups else many
    return {
        "documents": many,
        "tokens": int(tally.frame["tokens"].sum()),
        "with_words_of": {group: int((counts[group] > 0).sum()) for group in tally.groups},
        "without_any": none,
        "share_without_any": none / many if many else None,
    }


def methods(audit: Audit) -> str:
    """How the numbers were made, in Markdown."""
    provenance = audit.measured.provenance
    lines = ["# Methods", "", "## Measures", ""]
    for measure in audit.measures:
        said = meaning(measure, audit.groups)
        lines.append(f"- **{short(measure)}**: {said} {upper_first(interpretation(measure, audit.groups))}.")
    lines += ["", "## Queries", ""]
    only = next((m.only for m in audit.measured if is_bias(m.measure) and m.only), None)
    lines.append(
        "Bias is measured over all queries that a run answers."
        if only in (None, "all")
        else f"Bias is measured over {only} queries; effectiveness over all that are judged."
    )
    lines += ["", "## Intervals and tests", ""]
    if audit.confidence is None:
        lines.append("No intervals were computed, so no lean is judged.")
    else:
        lines.append(
            f"{level(audit.confidence)} intervals: bootstrap over queries, {provenance['resamples']:,} "
            f"resamples, seed {provenance['seed']}. A run leans where the interval excludes 0."
        )
    if smallest := powers(audit):
        lines.append(smallest)
    if audit.comparisons:
        lines.append(
            f"Each run is compared with {audit.baseline}, query by query: Student's paired test (for GSR a "
            f"permutation test on refitted slopes). p is corrected (Holm) over all {len(audit.comparisons)} "
            f"comparisons; below {LEVEL} a difference is called significant."
        )
    if audit.conditions:
        bounds = ", ".join(map(str, audit.conditions))
        lines.append(f"Bounds that must not hold: {bounds}.")
    if audit.selection is not None:
        result = audit.selection
        lines += [
            "",
            "## Selection rates",
            "",
            f"Candidates are pairs of query and ranked document. Selected: rank {result.at} or better. Rate: "
            "selected divided by candidates of the category. Impact ratio: rate divided by the highest rate "
            "of any category. Scoring rate: share with a score above the median of all candidates of the "
            "run; scores of different queries are compared as they are.",
        ]
    settings = ", ".join(f"{name} {provenance[name]}" for name in ("missing", "ties", "order"))
    lines += ["", f"Reading of runs: {settings}. audit.json has every setting under provenance.", ""]
    return "\n".join(lines)


def limits(audit: Audit) -> str:
    """What the numbers do not show, in Markdown; warnings of this audit first."""
    groups = " and ".join(audit.groups) or "the groups that documents are labelled with"
    lines = ["# Limits", ""]
    lines += [f"- {warning}" for warning in audit.warnings]
    lines += [
        "- Words are counted, not people: a text about somebody of a group that never says so counts as "
        "neutral.",
        f"- Only {groups} are distinguished. People of no such group are not counted.",
        "- Intervals show what other queries of the same kind could have given; they say nothing about other "
        "collections.",
        "- 'Cannot tell' does not prove balance: opposite queries cancel out in a mean, and few queries give "
        "wide intervals.",
        "- A lean does not prove unfairness: a query may ask for one group, a collection may contain only "
        "one.",
        "- The inputs are taken as they were given. Hashes show that they are the same files, not that they "
        "are what a user was shown.",
        "",
    ]
    return "\n".join(lines)


def remaining(audit: Audit) -> Grid:
    """One row for each run: where it leans, what it changes against the baseline, and what is left."""
    useful = next((m for m in audit.measures if not is_bias(m)), None)
    headings = ["run", "lean", "interval", "n of lean", "judged", "single queries"]
    headings += ["change", "p corrected", "n of change", "usefulness", "n of usefulness"]
    rows = []
    for run in audit.runs:
        cells = [run, *([DASH] * 10)]
        if audit.headline is not None:
            m = audit.measured[run, audit.headline]
            why, size = unjudged(m), size_of(audit, run)
            cells[1:4] = [printed_value(m), printed_bounds(m) or DASH, f"{m.queries:,}"]
            if sign_names_group(m.measure):
                cells[4] = f"not judged ({why})" if why else said_of(m, audit)
            cells[5] = DASH if size is None else printed_value(size)
            one = between(audit.comparisons, run, audit.headline)
            if one is not None:
                change = one.comparison
                cells[6:9] = [number(change.difference), p_value(one.p_holm), f"{change.n:,}"]
        if useful is not None:
            m = audit.measured[run, useful]
            cells[9:] = [f"{short(useful)} {printed_value(m)}", f"{m.queries:,}"]
        rows.append(cells)
    return Grid(headings, rows)


def flat(sheet: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The data sheet as lines to read: what, and how much."""
    lines: list[tuple[str, str]] = []
    for name, run in sheet["runs"].items():
        shortest, longest = run["shortest_list"], run["longest_list"]
        lengths = f"lists of {longest}" if shortest == longest else f"lists of {shortest} to {longest}"
        queries = counted(run["queries"], "query", "queries")
        lines.append((f"run {name}", f"{queries}, {run['documents']:,} documents, {lengths}"))
    if docs := sheet.get("documents"):
        words = ", ".join(f"{many:,} with {group} words" for group, many in docs["with_words_of"].items())
        without = f"{docs['without_any']:,} ({docs['share_without_any'] or 0:.0%}) with none"
        said = f"{counted(docs['documents'], 'document')}, {docs['tokens']:,} tokens; {words}; {without}"
        lines.append(("documents", said))
        stated, lexicon = sheet["languages"]["stated"], sheet["languages"]["lexicon"]
        lines.append(("languages", f"{stated or 'not stated'}; lexicon: {lexicon or 'not known'}"))
    if genders := sheet.get("query_genders"):
        labels = ", ".join(f"{many:,} {label}" for label, many in genders["labels"].items())
        share = genders["share_unknown"] or 0
        lines.append(("queries by label", f"{labels}; {genders['without_label']:,} ({share:.0%}) without"))
    if judged := sheet.get("judgments"):
        said = f"{judged['judgments']:,}, {judged['relevant']:,} of them relevant"
        lines.append(("judgments", f"{said}, for {counted(judged['queries'], 'query', 'queries')}"))
    for run, result in sheet.get("candidates", {}).items():
        unknown = ", ".join(f"{many:,} of unknown {kind}" for kind, many in result["unknown"].items())
        lines.append((f"candidates of {run}", f"{result['candidates']:,}; {unknown}"))
    for run, measures in sheet["left_out"].items():
        for measure, reasons in measures.items():
            said = ", ".join(f"{many:,} {reason}" for reason, many in reasons.items())
            lines.append((f"left out of {measure}, {run}", said))
    return lines
