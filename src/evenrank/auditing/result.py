"""`Audit`: the one result that terminal, JSON, CSV, LaTeX, report and web page all render."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import Measure

from evenrank.auditing import gate, verdict
from evenrank.auditing.certainty import Certainty
from evenrank.auditing.comparing import Offered, between
from evenrank.auditing.passages import LeaningQuery
from evenrank.data.files import writing
from evenrank.measures.compare import RunComparison
from evenrank.measures.explain import Attribution
from evenrank.measures.parse import Condition
from evenrank.measures.results import Measurement, Measurements
from evenrank.show.grid import Drawn, Grid, Small, plain_markdown
from evenrank.show.numbers import form_of, interval, number

if TYPE_CHECKING:
    from evenrank.auditing.black_box import VariantAudit
    from evenrank.auditing.selection import Selection
    from evenrank.auditing.stages import Trace
    from evenrank.measures.disparity import Disparities
    from evenrank.measures.gsr.measure import GenderedQuery
    from evenrank.measures.representation import Representation
    from evenrank.mitigate.mirror import Mirror
    from evenrank.psychology import PsychologyAudit

MARK = "†"
ACROSS = 6
"""Runs beside one another in a terminal; further ones stand below."""
_COMPARED = dict.fromkeys(
    ("difference", "difference_low", "difference_high", "p", "p_holm", "effect"), pl.Float64
)
FORMAT, VERSION = "evenrank-audit", 1
"""Name and version of the JSON; a change that readers would notice raises the version."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Drawn):
    """Runs, measured, compared and explained. `print` it, or see :meth:`verdict` and :meth:`report`.

    Attributes
    ----------
    measured
        Values with intervals: `audit.measured["bm25", "ARaB@10"]`.
    comparisons
        Each run and measure against the baseline: difference, interval, p, corrected p, effect.
    curves
        Bias by cut-off: run, measure, cutoff, value, low, high.
    attributions
        What makes up the headline measure of each run: words, documents, queries.
    leaning
        The queries that lean farthest, with the passages that make them so.
    gendered
        The queries whose own words are most female, and most male.
    psychology, disparity, representation
        Where the inputs allow: how texts for female and male queries differ, who is served better, and
        how groups are represented (by run).
    variants
        What the results of neutral queries resemble, where lists of variants were given.
    selection
        Where documents have labels: how often those of each group reach the top ranks, and impact ratios.
    stages, preference
        What each stage of a ranking adds, where stages were given; what rankers prefer by themselves, where
        rankers were named.
    offered
        By run: the lean of what the same queries were offered, their relevant documents or all candidates,
        and how far the run is from it.
    certainty, deltas
        Whether means and differences are small enough (`deltas`: by measure, what that is), and which could
        have been found: of the headline, what the verdict tells, and every measure with a δ.
    checks
        Each bound of `fail_if` and each run but the baseline: what was found, and whether it passed.
    """

    measured: Measurements
    baseline: str | None
    groups: tuple[str, ...] = ()
    comparisons: tuple[RunComparison, ...] = ()
    curves: pl.DataFrame = field(default_factory=pl.DataFrame)
    attributions: Mapping[str, Attribution] = field(default_factory=dict)
    leaning: tuple[LeaningQuery, ...] = ()
    offered: Mapping[str, Offered] = field(default_factory=dict)
    gendered: tuple[Sequence[GenderedQuery], Sequence[GenderedQuery]] = ((), ())
    psychology: PsychologyAudit | None = None
    disparity: Disparities | None = None
    representation: Mapping[str, Representation] = field(default_factory=dict)
    variants: VariantAudit | None = None
    stages: Trace | None = None
    preference: Mirror | None = None
    selection: Selection | None = None
    conditions: tuple[Condition, ...] = ()
    checks: tuple[gate.Check, ...] = ()
    certainty: tuple[Certainty, ...] = ()
    deltas: Mapping[Measure, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    confidence: float | None = 0.95
    queries: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self.measured.runs)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(m.measure for m in next(iter(self.measured.runs.values())))

    @cached_property
    def headline(self) -> Measure | None:
        """The measure that the verdict speaks about."""
        return verdict.headline_measure(self.measures)

    @cached_property
    def findings(self) -> tuple[verdict.Finding, ...]:
        """What the numbers say, one by one."""
        return verdict.findings(self)

    @property
    def failures(self) -> tuple[str, ...]:
        """One line for each bound that a run exceeds."""
        return gate.failures(self.checks)

    @property
    def passed(self) -> bool:
        """Whether no run exceeds a bound."""
        return not self.failures

    def verdict(self) -> str:
        """What the audit found, in plain words."""
        lines = [verdict.headline(self), *(finding.text for finding in self.findings)]
        once = verdict.correction(self)
        lines += [] if once is None else [once]
        return "\n".join([*lines, *(f"Warning: {warning}" for warning in self.warnings)])

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """The table and the verdict; in `width` characters, runs that do not fit stand below the others."""
        more = [line for line in (verdict.powers(self), verdict.bounds(self)) if line is not None]
        said = [verdict.headline(self), *more, *verdict.other_bounds(self)]
        return "\n".join([f"{_table(self, width)}\n", *said])

    def remarks(self) -> list[str]:
        """What the marks in the table mean."""
        return _remarks(self)

    def frame(self) -> pl.DataFrame:
        """One row for each run and measure: value, interval, parts, comparison with the baseline."""
        rows = []
        for m in self.measured:
            one = between(self.comparisons, m.run, m.measure)
            c = None if one is None else one.comparison
            rows.append(
                {
                    "difference": None if c is None else c.difference,
                    "difference_low": None if c is None else c.low,
                    "difference_high": None if c is None else c.high,
                    "p": None if c is None else c.p,
                    "p_holm": None if one is None else one.p_holm,
                    "effect": None if c is None else c.effect,
                }
            )
        return pl.concat([self.measured.frame(), pl.DataFrame(rows, schema=_COMPARED)], how="horizontal")

    def csv(self) -> str:
        """The frame as CSV."""
        return self.frame().write_csv()

    def latex(self) -> str:
        """A table for a paper (package booktabs)."""
        return latex_values(self.measured, self.mark)

    def markdown(self) -> str:
        """The verdict, the gate and the table in Markdown, for the summary of a build."""
        parts = [f"## {plain_markdown(verdict.headline(self))}\n"]
        if self.checks:
            parts.append(f"**Gate {'passed' if self.passed else 'failed'}**\n")
            parts.append(gate.grid(self.checks).markdown())
        parts += [table.markdown() for table in _grids(self)]
        parts += [f"{plain_markdown(line)}\n" for line in _remarks(self)]
        parts += [f"Warning: {plain_markdown(warning)}\n" for warning in self.warnings]
        return "\n".join(parts)

    def junit(self) -> str:
        """The gate as JUnit XML: a test for each bound and run."""
        return gate.junit(self.checks)

    def mark(self, m: Measurement) -> str:
        """A dagger where the run differs from the baseline."""
        one = between(self.comparisons, m.run, m.measure)
        return MARK if one is not None and one.significant else ""

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything, as JSON knows it; see docs/audit-schema.json."""
        measured = self.measured.to_dict(per_query)
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "verdict": {
                "headline": verdict.headline(self),
                "findings": [
                    {"kind": f.kind, "run": f.run, "text": f.text, "established": f.established}
                    for f in self.findings
                ],
                "passed": self.passed,
                "failures": list(self.failures),
                "conditions": [str(condition) for condition in self.conditions],
                "corrected": verdict.correction(self),
            },
            "baseline": self.baseline,
            "headline_measure": None if self.headline is None else str(self.headline),
            "groups": list(self.groups),
            "runs": measured["runs"],
            "comparisons": [one.to_dict() for one in self.comparisons],
            "certainty": [one.to_dict() for one in self.certainty],
            "offered": {run: result.to_dict() for run, result in self.offered.items()},
            "curves": self.curves.to_dicts(),
            "attribution": {run: result.to_dict() for run, result in self.attributions.items()},
            "leaning_queries": [one.to_dict() for one in self.leaning],
            "gendered_queries": {
                name: [query._asdict() | {"positive": "female"} for query in side]
                for name, side in zip(("female", "male"), self.gendered, strict=True)
            },
            "warnings": list(self.warnings),
            "provenance": self.measured.provenance,
        }
        if self.psychology is not None:
            content["psychology"] = self.psychology.to_dict()
        if self.disparity is not None:
            content["disparity"] = self.disparity.to_dict()
        if self.variants is not None:
            content["variants"] = self.variants.to_dict()
        if self.stages is not None:
            content["stages"] = self.stages.to_dict()
        if self.preference is not None:
            content["preference"] = self.preference.to_dict()
        if self.representation:
            content["representation"] = {run: r.to_dict() for run, r in self.representation.items()}
        if self.selection is not None:
            content["selection"] = self.selection.to_dict()
        return content

    def to_json(self, path: str | PathLike[str] | None = None, *, per_query: bool = False) -> str:
        """The same as text, and written to a file if one is named."""
        content = self.to_dict(per_query=per_query)
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if path is not None:
            with writing(path) as file:
                file.write(text.encode())
        return text

    def report(self, path: str | PathLike[str], **more: Any) -> Path:
        """Write the report: one HTML file that needs no network.

        Parameters
        ----------
        more
            Further findings to show, all optional. `tradeoff`: what :func:`evenrank.sweep` gives, a list of
            these, or a frame with bias, utility and perhaps name, strength, low, high. `rank_shift`: what
            `Mirror.rank_shift` gives, a frame with query_id, doc_id, before, after and perhaps group.
            `association`: what :func:`evenrank.association` gives. `psychology`, `representation` and
            `variants`: instead of the audit's own. `title`: what the page is called. `back`: address and
            words of a link to where the reader came from.
        """
        with writing(path) as file:
            file.write(self.page(**more).encode())
        return Path(path)

    def page(self, **more: Any) -> str:
        """The report as text; `more` as for :meth:`report`."""
        # The report imports the audit, not the other way round; it is looked up when asked for.
        report = import_module("evenrank.show.report")
        text: str = report.render(self, **more)
        return text

    def charts(
        self, folder: str | PathLike[str], formats: Sequence[str] = ("svg", "png", "pdf"), **more: Any
    ) -> list[Path]:
        """Write every chart of the report as files, and the numbers behind it as CSV."""
        exporting = import_module("evenrank.show.report")
        paths: list[Path] = exporting.write_charts(self, folder, formats, **more)
        return paths


def _table(audit: Audit, width: int | None = None) -> str:
    """Measures down, runs across, intervals beneath, marks where a run differs from the baseline."""
    parts = [part for grid in _grids(audit) for part in ([grid] if width is None else grid.blocks(width))]
    return "\n".join(["\n\n".join(part.text() for part in parts), *_remarks(audit)])


def _grids(audit: Audit) -> list[Grid]:
    """The table, in as many parts as it takes for the runs to fit beside one another."""
    items = []
    for i in range(0, len(audit.runs), ACROSS):
        runs = audit.runs[i : i + ACROSS]
        rows = []
        for measure in audit.measures:
            cells = [audit.measured[run, measure] for run in runs]
            each = [f"{m.queries:,}" for m in cells]
            counts = each[0] if len(set(each)) == 1 else " / ".join(each)
            rows.append([str(measure), *(printed_value(m) + audit.mark(m) for m in cells), counts])
            if any(m.low is not None for m in cells):
                rows.append(["", *(printed_bounds(m) for m in cells), ""])
        heads = [f"{run} (baseline)" if run == audit.baseline else run for run in runs]
        items.append(Grid(["", *heads, "queries"], rows))
    return items


def _remarks(audit: Audit) -> list[str]:
    if not any(one.significant for one in audit.comparisons):
        return []
    return [f"{MARK} differs from {audit.baseline}: paired test, p < 0.05 after Holm's correction."]


def latex_values(measured: Measurements, mark: Callable[[Measurement], str] = lambda _: "") -> str:
    """A table for a paper (package booktabs): runs down, measures across, intervals beneath."""
    rows: list[list[str]] = []
    for run, result in measured.runs.items():
        rows.append([run, *(printed_value(m) + mark(m) for m in result)])
        if any(m.low is not None for m in result):
            rows.append(["", *(Small(printed_bounds(m)) for m in result)])
    names = dict.fromkeys(str(m.measure) for m in measured)
    return Grid(["Run", *names], rows).latex()


def printed_value(m: Measurement) -> str:
    return number(m.value, form_of(m.measure))


def printed_bounds(m: Measurement) -> str:
    return interval(m.low, m.high, form_of(m.measure))
