"""What neutral queries resemble: the lists of their female or of their male variants, engine by engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from evenrank.auditing.black_box import VariantAudit, VariantLean
from evenrank.auditing.result import Audit
from evenrank.show.charts.values import intervals
from evenrank.show.figure import SHARED, Figure, Section

_SAID = {
    "male": ("← like the female variant · like the male variant →", "toward the male variants"),
    "stereotype": ("← against the stereotype · with it →", "toward the stereotype"),
}


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    found = more.get("variants") or audit.variants
    if found is None:
        return None
    lead = "What an engine returns for a query without gender, beside what it returns for women and for men. "
    said = "; ".join(
        f"{row.engine} {row.verdict} ({row.measure}, {row.triples:,} triples)" for row in _main(found)
    )
    return Section.of("variants", "Query variants", f"{lead}{said}.", variant_figures(found))


def _main(found: VariantAudit) -> list[VariantLean]:
    """What is told first: VarARaB, toward the stereotype where there is one."""
    rows = [row for row in found.overall() if row.measure.startswith("VarARaB")]
    return [row for row in rows if row.toward == "stereotype"] or rows


def variant_figures(found: VariantAudit) -> list[Figure]:
    """Values over all triples, toward men and toward the stereotype; then topic by topic."""
    figures: list[Figure] = []
    for toward, (axis, said) in _SAID.items():
        rows = [row for row in found.overall() if row.toward == toward and row.value is not None]
        if rows:
            figures.append(_figure(f"variants-{toward}", f"All triples, {said}", axis, rows))
    topics = [row for row in found.topics() if row.measure.startswith("VarARaB") and row.value is not None]
    if topics:
        name = f"{topics[0].measure} by topic, toward the male variants"
        figures.append(_figure("variants-topics", name, _SAID["male"][0], topics))
    return figures


def _figure(name: str, title: str, axis: str, rows: Iterable[VariantLean]) -> Figure:
    frame = pl.DataFrame(
        [(r.topic or r.measure, r.engine, r.value, r.low, r.high, r.triples) for r in rows],
        schema=["measure", "run", "value", "low", "high", "triples"],
        orient="row",
        infer_schema_length=None,
    )
    few = frame.filter(pl.col("run").is_in(frame["run"].unique(maintain_order=True).head(SHARED).implode()))
    counts = frame["triples"].unique(maintain_order=True).to_list()
    over = f"{counts[0]:,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
    caption = f"Dots are means over triples ({over}), lines their intervals; no line where fewer than five."
    alt = f"{title}: " + ", ".join(
        f"{e} {m} {v:+.3f}" for m, e, v in few.select("measure", "run", "value").iter_rows()
    )
    return Figure(name, title, caption, f"{alt}.", intervals(few, title=axis), frame)
