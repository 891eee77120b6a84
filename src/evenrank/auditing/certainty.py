"""How sure an audit can be: is a lean small enough, and which lean could it have found at all?

The words of a verdict are decided here: *leans*; *leans, but less than δ*; *no lean beyond δ*; *cannot tell*;
*not judged*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal

from ir_measures.measures import Measure

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.base import is_bias, preferred_direction
from evenrank.measures.compare import LEVEL, RunComparison, difference
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurement, Measurements, Options
from evenrank.show import numbers
from evenrank.stats.equivalence import ALPHA, POWER, Equivalence, check_delta

Word = Literal["leans", "leans, but less than δ", "no lean beyond δ", "cannot tell", "not judged"]


_TOLD = (
    *("run", "measure", "baseline", "value", "n", "delta", "low", "high", "t_low", "t_high"),
    *("p", "smallest", "detectable", "alpha", "tests", "word"),
)


@dataclass(frozen=True, kw_only=True)
class Certainty(Equivalence):
    """What is known about the size of a mean, or of its difference from the baseline.

    The test of equivalence, and beside it:

    Attributes
    ----------
    baseline
        The run that the difference is from; None for the mean itself.
    value
        The mean or the difference.
    detectable
        The smallest value that would have been found with 80 % power at `alpha`, from the queries' spread.
    alpha, tests
        The level, corrected (Bonferroni, the first step of Holm) for so many tests of the same kind.
    word
        The verdict.
    """

    run: str
    measure: Measure
    baseline: str | None
    value: float | None
    detectable: float | None
    alpha: float
    tests: int
    word: Word

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _TOLD} | {"measure": str(self.measure), "power": POWER}

    def said(self) -> str:
        """Both answers as sentences; empty where neither is known."""
        what = "lean" if self.baseline is None else "difference"
        kind = numbers.counted(self.tests, "run" if self.baseline is None else "comparison")
        told = []
        if self.smallest is not None:
            between = f"90% interval {self.low:+.3f} to {self.high:+.3f}"
            if self.delta is None:
                told.append(
                    f"The smallest δ for which “no {what} beyond δ” would hold is {self.smallest:.3f} "
                    f"({between})."
                )
            else:
                inside = "lies within" if self.smallest < self.delta else "does not lie within"
                tested = "" if self.p is None else f" (two one-sided t-tests {numbers.p_phrase(self.p)})"
                told.append(
                    f"The {between} {inside} ±{self.delta:g}{tested}; the smallest δ that would pass is "
                    f"{self.smallest:.3f}."
                )
        if self.detectable is not None:
            told.append(
                f"A {what} of {self.detectable:.3f} would have been found with 80% power "
                f"(α = {self.alpha:.2g}, {kind})."
            )
        return " ".join(told)


def parse_deltas(given: Any) -> dict[Measure, float]:
    """What is small enough, by measure: out of a mapping, or of texts `MEASURE=VALUE`."""
    if not given:
        return {}
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = given.items()
    else:
        texts = [given] if isinstance(given, str) else list(given)
        split = [text.rpartition("=") for text in texts]
        for text, (name, equals, _) in zip(texts, split, strict=True):
            if not equals or not name:
                raise InputError(f"delta {text!r}: write it as MEASURE=VALUE, as in ARaB@10=0.05")
        pairs = [(name.strip(), value.strip()) for name, _, value in split]
    result: dict[Measure, float] = {}
    for name, value in pairs:
        measure = parse(name)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"delta of {measure} is {value!r}; it must be a number above 0") from None
        check_delta(number)
        if measure in result:
            raise InputError(f"delta of {measure} is given twice")
        result[measure] = number
    return result


_NONE = 1e-12
"""A spread below is the rounding of equal values."""


def balanced_at_zero(measure: Measure) -> bool:
    """Whether a mean of 0 is what one would like to show."""
    return is_bias(measure) and preferred_direction(measure) == "zero" and not measure.REFERENCE


def certainties(
    found: Measurements,
    comparisons: Iterable[RunComparison],
    deltas: Mapping[Measure, float],
    told: Iterable[Measure],
    *,
    confidence: float | None,
    seed: int = 0,
) -> tuple[Certainty, ...]:
    """For each measure that has a δ or is told of: its mean (where 0 is good), and its differences."""
    wanted = {*deltas, *told}
    compared = [one for one in comparisons if one.measure in wanted]
    for measure in deltas:
        if not balanced_at_zero(measure) and not any(one.measure == measure for one in compared):
            raise InputError(
                f"delta of {measure}: 0 is not good there, so it bounds differences between runs; give two"
            )
    rows = [
        _of_mean(m, deltas.get(m.measure), len(found.runs), confidence, seed)
        for m in found
        if m.measure in wanted and balanced_at_zero(m.measure)
    ]
    tests = len(list(comparisons))
    rows += [_of_difference(one, found, deltas.get(one.measure), tests, seed) for one in compared]
    return tuple(rows)


def _of_mean(
    m: Measurement, delta: float | None, runs: int, confidence: float | None, seed: int
) -> Certainty:
    alpha = (1 - confidence if confidence is not None else ALPHA) / runs
    same = stats.equivalence(m.values, delta, seed=seed)
    judged = m.low is not None and m.high is not None
    leaning = judged and (m.low > 0 or m.high < 0)  # type: ignore[operator]
    return Certainty(
        **_facts(m.run, m.measure, None, m.value, same, judged),
        detectable=_detectable(m.spread, len(m.values), alpha) if judged else None,
        alpha=alpha,
        tests=runs,
        word=_word(judged, leaning, same.passed if judged else None),
    )


def _of_difference(
    one: RunComparison, found: Measurements, delta: float | None, tests: int, seed: int
) -> Certainty:
    alpha, change = LEVEL / tests, one.comparison
    same = stats.equivalence(one.changes, delta, seed=seed)
    spread = None
    if len(one.changes) > 1:
        spread = float(one.changes.std(ddof=1))
    elif delta is not None and change.n > 1:  # no mean over queries: the interval of the measure's own test
        mine, theirs = found[one.run, one.measure], found[one.baseline, one.measure]
        again = difference(mine, theirs, confidence=1 - 2 * ALPHA, seed=seed).comparison
        if again.low is not None and again.high is not None:
            smallest = max(abs(again.low), abs(again.high))
            bounds = (again.low, again.high)
            same = Equivalence(delta, again.n, *bounds, None, None, None, smallest, smallest < delta)
    return Certainty(
        **_facts(one.run, one.measure, one.baseline, change.difference, same, True) | {"n": change.n},
        detectable=_detectable(spread, len(one.changes), alpha),
        alpha=alpha,
        tests=tests,
        word=_word(change.p is not None, one.significant, same.passed),
    )


def _facts(
    run: str, measure: Measure, baseline: str | None, value: float | None, same: Equivalence, judged: bool
) -> dict[str, Any]:
    known = same if judged else Equivalence(same.delta, same.n, *[None] * 7)
    return asdict(known) | {"run": run, "measure": measure, "baseline": baseline, "value": value}


def _detectable(spread: float | None, n: int, alpha: float) -> float | None:
    if spread is None or spread < _NONE or n < 2:
        return None
    return stats.detectable(spread, n, alpha=alpha)


def _word(judged: bool, leaning: bool, small: bool | None) -> Word:
    if not judged:
        return "not judged"
    if leaning:
        return "leans, but less than δ" if small else "leans"
    return "no lean beyond δ" if small else "cannot tell"


@dataclass(frozen=True)
class Plan:
    """How many queries an audit needs.

    Attributes
    ----------
    effect, sd
        The lean (or difference) that matters, and the standard deviation of single queries.
    to_find
        Queries that find it with `power`, if it is there.
    to_exclude
        Queries that show with `power` that there is none beyond it, if there is none at all.
    alpha, tests
        The level of a test, corrected for so many. Showing that nothing is there is not corrected: α = 0.05.
    """

    effect: float
    sd: float
    to_find: int
    to_exclude: int
    alpha: float
    tests: int
    power: float
    source: str

    def __str__(self) -> str:
        level = f"α = {self.alpha:.3g}" + (f", {self.tests} tests" if self.tests > 1 else "")
        return (
            f"To find {self.effect:g} with {self.power:.0%} power: {self.to_find:,} queries ({level}).\n"
            f"To show that there is no lean beyond {self.effect:g}, if there is none: "
            f"{self.to_exclude:,} queries (α = {ALPHA:g}).\n"
            f"Standard deviation of single queries: {self.sd:.4g} ({self.source})."
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def plan(
    effect: float,
    *,
    sd: float | None = None,
    run: Any = None,
    measure: str | Measure = "ARaB@10",
    alpha: float = ALPHA,
    power: float = POWER,
    tests: int = 1,
    only: str | None = None,
    classify: Any = None,
    **given: Any,
) -> Plan:
    """How many queries it takes to find a lean of this size, and to show that there is none.

    Parameters
    ----------
    effect
        The smallest lean that matters: ``0.05``.
    sd
        Standard deviation of single queries (for two runs: of their differences).
    run
        Or a run to take it from, measured with `measure` and what :func:`evenrank.measure` takes.
    alpha, power, tests
        Of the two-sided t-test that finds a lean; α is divided by the number of tests one is going to make.
        That there is none is shown at 0.05.
    """
    if (sd is None) == (run is None):
        raise InputError(
            "give the standard deviation of single queries, or a run to take it from; one of them"
        )
    if tests < 1:
        raise InputError(f"tests is {tests}; it must be at least 1")
    source = "given"
    if sd is not None and (given or only is not None):
        named = ", ".join([*given, *(["only"] if only is not None else [])])
        raise InputError(f"{named}: this is for measuring a run, but the standard deviation is given")
    if sd is not None and not isinstance(sd, Real):
        raise InputError(f"the standard deviation is {sd!r}; it must be a number")
    if sd is None:
        wanted = parse(measure)
        if not balanced_at_zero(wanted):
            raise InputError(
                f"{wanted}: 0 is not good there, so a plan is for differences between runs; give their "
                "standard deviation (sd)"
            )
        result = measured(
            Inputs.open(run, classify=classify, **given), [wanted], Options(only, confidence=None)
        )
        if len(result.runs) > 1:
            raise InputError("a plan takes its spread from one run; name one")
        (m,) = result
        if m.spread is None:
            known = numbers.counted(m.queries, "value")
            raise InputError(f"{wanted} of {m.run} has {known}; a spread needs at least two")
        sd = m.spread
        source = f"{wanted} of {m.run}, {numbers.counted(m.queries, 'query', 'queries')}"
    corrected = alpha / tests
    return Plan(
        effect=effect,
        sd=sd,
        to_find=stats.queries_for(effect, sd, alpha=corrected, power=power),
        to_exclude=stats.queries_for_equivalence(effect, sd, alpha=ALPHA, power=power),
        alpha=corrected,
        tests=tests,
        power=power,
        source=source,
    )
