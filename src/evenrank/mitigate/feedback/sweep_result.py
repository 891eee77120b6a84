"""What a sweep over bias-aware feedback shows: each strength beside plain feedback, query by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurement
from evenrank.mitigate.feedback.expanded_queries import GenderedTerms
from evenrank.mitigate.feedback.effects import TIED, Effect, gains, paired_values
from evenrank.mitigate.feedback.side_by_side import Pair, side_by_side


@dataclass(frozen=True, eq=False)
class Step:
    """One setting of the sweep: its run, its expanded queries, and what they do."""

    lambda_: float
    fb_docs: int
    fb_terms: int
    run: pl.DataFrame
    expanded: pl.DataFrame
    terms: GenderedTerms
    effects: tuple[Effect, ...]

    def __getitem__(self, measure: str | Measure) -> Effect:
        wanted = parse(measure)
        for effect in self.effects:
            if effect.measure == wanted:
                return effect
        raise InputError(f"{wanted} was not measured; {', '.join(str(e.measure) for e in self.effects)} were")

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it, without the run."""
        return {
            "lambda": self.lambda_,
            "fb_docs": self.fb_docs,
            "fb_terms": self.fb_terms,
            "measures": [effect.to_dict() for effect in self.effects],
            "gendered_terms": self.terms.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class FeedbackSweep:
    """Bias-aware feedback at several strengths.

    Attributes
    ----------
    steps
        One for each k, n and λ, λ = 0 first; iteration goes over them.
    first
        The first stage, without any feedback.
    provenance
        What it was made from and how.
    """

    ranker: str
    steps: tuple[Step, ...]
    first: tuple[Measurement, ...]
    queries: pl.DataFrame
    groups: dict[str, str]
    provenance: dict[str, Any]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def step(self, lambda_: float, *, fb_docs: int | None = None, fb_terms: int | None = None) -> Step:
        """The step of this λ, and of the first k and n unless they are named."""
        for step in self.steps:
            same = abs(step.lambda_ - lambda_) < TIED
            if same and fb_docs in (None, step.fb_docs) and fb_terms in (None, step.fb_terms):
                return step
        tried = ", ".join(f"{value:g}" for value in dict.fromkeys(step.lambda_ for step in self.steps))
        raise InputError(f"λ = {lambda_:g} was not tried with these settings; {tried} were")

    def baseline(self, step: Step) -> Step:
        """Plain feedback with the k and n of this step."""
        return self.step(0, fb_docs=step.fb_docs, fb_terms=step.fb_terms)

    def shown(self, asked: float | None = None) -> float | None:
        """The λ whose queries are shown: the one asked for, else 0.5, else the largest; None if all are 0."""
        if asked is not None:
            return self.step(asked).lambda_
        tried = [step.lambda_ for step in self.steps if step.lambda_ > 0]
        return 0.5 if 0.5 in tried else max(tried, default=None)

    def per_query(self, measure: str | Measure = "ARaB@10", *, lambda_: float = 0.5) -> pl.DataFrame:
        """How much each query gained against plain feedback, best first: Figures 4.4 to 4.7 of the thesis.

        Columns: ``query_id``, ``before``, ``after`` (absolute for RaB, ARaB and LIWC) and ``gain``, positive
        where the measure got better.
        """
        after = self.step(lambda_)
        before = self.baseline(after)
        ids, was, now = paired_values(before[measure].measurement, after[measure].measurement)
        gain = gains(after[measure].measure, was, now)
        frame = pl.DataFrame({"query_id": ids, "before": was, "after": now, "gain": gain})
        return frame.sort("gain", descending=True, maintain_order=True)

    def harmless(self, measure: str | Measure, *, alpha: float = 0.05) -> float:
        """The largest λ up to which no λ lowers the measure significantly, after Holm (first k and n)."""
        first = self.steps[0]
        reached = 0.0
        for step in self.steps:
            if (step.fb_docs, step.fb_terms) != (first.fb_docs, first.fb_terms) or step.lambda_ == 0:
                continue
            if step[measure].worse(alpha):
                break
            reached = step.lambda_
        return reached

    def side_by_side(self, lambda_: float = 0.5, *, top: int = 10) -> list[Pair]:
        """Queries whose expansion lost most weight in gendered terms, both expansions: Table 4.5."""
        after = self.step(lambda_)
        before = self.baseline(after)
        return side_by_side(before.expanded, after.expanded, self.queries, self.groups, top=top)

    def frame(self) -> pl.DataFrame:
        """One row for each step and measure."""
        rows = []
        for step in self.steps:
            for effect in step.effects:
                one, change = effect.measurement, effect.change
                rows.append(
                    {
                        "lambda": step.lambda_,
                        "fb_docs": step.fb_docs,
                        "fb_terms": step.fb_terms,
                        "measure": str(effect.measure),
                        "value": one.value,
                        "low": one.low,
                        "high": one.high,
                        "abs": one.summary.abs,
                        "difference": None if change is None else change.difference,
                        "p": None if change is None else change.p,
                        "p_holm": effect.p_holm,
                        "reduction": effect.reduction,
                        "abs_reduction": effect.abs_reduction,
                        "improved": effect.improved,
                        "tied": effect.tied,
                        "hurt": effect.hurt,
                        "gendered_terms": step.terms.number,
                        "gendered_weight": step.terms.weight,
                    }
                )
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything but the runs, as JSON knows it."""
        steps = [step.to_dict() for step in self.steps]
        if per_query:
            for row, step in zip(steps, self.steps, strict=True):
                for entry, effect in zip(row["measures"], step.effects, strict=True):
                    entry["per_query"] = effect.measurement.per_query()
        first = [Effect(measurement).to_dict() for measurement in self.first]
        return {
            "ranker": self.ranker,
            "first_stage": first,
            "steps": steps,
            "provenance": self.provenance,
        }

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            values = "  ".join(f"{effect.measure} {_number(effect)}" for effect in step.effects)
            lines.append(f"λ {step.lambda_:<4g}k {step.fb_docs}  n {step.fb_terms}  {values}")
        return "\n".join(lines)


def corrected(steps: Sequence[Step]) -> list[Step]:
    """The steps of one k and n, with Holm's correction over their λs, measure by measure."""
    found = list(steps)
    for place in range(len(found[0].effects)):
        effects = [step.effects[place] for step in found]
        adjusted = stats.holm([None if e.change is None else e.change.p for e in effects])
        for number, (step, p) in enumerate(zip(found, adjusted, strict=True)):
            changed = (
                *step.effects[:place],
                replace(step.effects[place], p_holm=p),
                *step.effects[place + 1 :],
            )
            found[number] = replace(step, effects=changed)
    return found


def _number(effect: Effect) -> str:
    value = effect.measurement.value
    return "–" if value is None else f"{value:.4f}"
