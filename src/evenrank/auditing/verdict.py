"""The findings of an audit in plain words: what is established, what is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ir_measures.measures import Measure

from evenrank.auditing.certainty import Certainty, Word
from evenrank.auditing.comparing import between
from evenrank.measures.base import is_bias, preferred_direction, sign_names_group
from evenrank.measures.compare import RunComparison
from evenrank.measures.gsr.measure import Reinforcement
from evenrank.measures.results import Measurement
from evenrank.show import numbers
from evenrank.show.numbers import toward

if TYPE_CHECKING:
    from evenrank.auditing.result import Audit

Kind = Literal["lean", "certainty", "ties", "offered", "collection", "spread", "change", "stereotype", "gate"]

_WORDS: tuple[Word, ...] = get_args(Word)
_SHOWN = ("leans, but less than δ", "no lean beyond δ")
_FROM_ZERO: dict[str, str] = {
    "leans": "; it is away from 0",
    "leans, but less than δ": "; it is away from 0, but by less than δ",
    "no lean beyond δ": "; it is not away from 0 by δ or more",
    "cannot tell": "; cannot tell whether it is away from 0",
    "not judged": "; not judged",
}
"""The same words for measures that are good at 0 and name no group by their sign."""
TIED = 0.1
"""Share of queries with ties from which on a verdict says so."""


@dataclass(frozen=True)
class Finding:
    """One thing that the numbers say. `side` is the group that is leaned to, if any."""

    kind: Kind
    run: str
    text: str
    side: str | None = None
    established: bool = True


def headline_measure(measures: Sequence[Measure]) -> Measure | None:
    """The measure that a verdict speaks about.

    The first that leans to a group, best one that weighs the top ranks most and is left as it is by default
    (ARaB); else one with a sign; else the first of bias.
    """
    biased: list[Any] = [m for m in measures if is_bias(m)]
    leaning = [m for m in biased if sign_names_group(m)]
    plain = [m for m in leaning if m.ORDER_MATTERS and m.params.get("magnitude", "tf") == "tf"]
    signed = [m for m in biased if m.SIGNED and not m.REFERENCE]
    return next(iter([*plain, *leaning, *signed, *biased]), None)


def side(m: Measurement, groups: tuple[str, ...]) -> str | None:
    """The group that a run leans to, where the interval leaves no doubt; None where it does."""
    if not sign_names_group(m.measure) or m.low is None or m.high is None:
        return None
    of, against = m.measure.pair(groups)
    if m.low > 0:
        return of
    return against if m.high < 0 else None


def unjudged(m: Measurement) -> str | None:
    """Why nothing can be said about the side of a run; None where something can."""
    if m.value is None:
        return "undefined"
    if m.low is None or m.high is None:
        return "fewer than two queries" if m.queries < 2 else "no interval was computed"
    return None


def headline(audit: Audit) -> str:
    """The verdict in one sentence."""
    measure = audit.headline
    if measure is None:
        return "No measure of bias could be computed from what was given."
    rows = [audit.measured[run, measure] for run in audit.runs]
    if not sign_names_group(measure):
        values = ", ".join(f"{m.run} {number(m)}" for m in rows)
        return f"{measure}: {values}."
    where = f"top {measure['cutoff']} results"
    said = {m.run: _judged(m, audit) for m in rows}
    open_ = {m.run: why for m in rows if (why := unjudged(m)) is not None}
    reasons = " or ".join(dict.fromkeys(open_.values()))
    of, against = measure.pair(audit.groups)
    delta = audit.deltas.get(measure)
    who = rows[0].run if len(rows) == 1 else "any run"
    if len(open_) == len(rows):
        return f"Not judged: whether the {where} of {who} lean ({reasons})."
    if {word for word, _ in said.values()} == {"cannot tell"}:
        beyond = "" if delta is None else f" by {delta:g} or more"
        return f"Cannot tell whether the {where} of {who} lean {toward(against)} or {toward(of)}{beyond}."
    if len(rows) == 1 or len({*said.values()}) == 1:
        word, group = next(iter(said.values()))
        every = "Both" if len(rows) == 2 else f"All {len(rows)}"
        if word == "no lean beyond δ":
            who = f"of {who}" if len(rows) == 1 else f"of {every.lower()} runs"
            return f"No lean beyond {delta:g} in the {where} {who}."
        less = f", but less than {delta:g}" if word == "leans, but less than δ" else ""
        if len(rows) == 1:
            return f"The {where} of {who} lean {toward(group or '')}{less}."
        return f"{every} runs lean {toward(group or '')} in their {where}{less}."
    parts: list[str] = []
    for word, group in sorted(dict.fromkeys(said.values()), key=lambda each: _WORDS.index(each[0])):
        names = [run for run, one in said.items() if one == (word, group)]
        listed, one = _counted(names, len(rows)), len(names) == 1
        place = f" in {'its' if one else 'their'} {where}" if not parts else ""
        lean = f"{listed} {'leans' if one else 'lean'} {toward(group or '')}{place}"
        parts.append(
            {
                "leans": lean,
                "leans, but less than δ": f"{lean}, but less than {delta or 0:g}",
                "no lean beyond δ": f"{listed} {'has' if one else 'have'} no lean beyond {delta or 0:g}",
                "cannot tell": f"cannot tell whether {listed} {'leans' if one else 'lean'}{place}",
                "not judged": f"{listed} {'is' if one else 'are'} not judged ({reasons})",
            }[word]
        )
    text = f"{'; '.join(parts)}."
    return numbers.upper_first(text) if text.startswith("cannot tell") else text


def _judged(m: Measurement, audit: Audit) -> tuple[str, str | None]:
    """The word for a run, and the group it leans to."""
    known = certainty_of(audit, m.run, m.measure)
    group = side(m, audit.groups)
    if known is not None:
        return known.word, group
    if unjudged(m) is not None:
        return "not judged", None
    return ("leans" if group else "cannot tell"), group


def said_of(m: Measurement, audit: Audit) -> str:
    """The word for a run, as it stands on a label."""
    word, group = _judged(m, audit)
    if group is not None:
        word = word.replace("leans", f"leans {toward(group)}", 1)
    return word.replace("δ", f"{audit.deltas.get(m.measure, 0):g}")


def certainty_of(audit: Audit, run: str, measure: Measure, baseline: str | None = None) -> Certainty | None:
    """How sure the audit is of a mean, or of a difference from the baseline, where that was asked."""
    wanted = (run, measure, baseline)
    return next((one for one in audit.certainty if (one.run, one.measure, one.baseline) == wanted), None)


def bounds(audit: Audit) -> str | None:
    """Where δ would have to lie, or what was compared with it, in one line; None where that is not known."""
    rows = [one for one in _leans(audit) if one.smallest is not None]
    if not rows:
        return None
    measure = rows[0].measure
    if rows[0].delta is None:
        told = [f"{one.run} {one.smallest:.3f}" for one in rows]
        return f"Smallest δ of {measure} that would pass as no lean beyond δ: {numbers.few(told, 6)}."
    told = [f"{one.run} {numbers.interval(one.low, one.high)}" for one in rows]
    return f"90% interval of {measure}, compared with ±{rows[0].delta:g}: {numbers.few(told, 6)}."


_APART = {
    "leans": "differs",
    "leans, but less than δ": "differs, but by less than δ",
    "no lean beyond δ": "no difference beyond δ",
}
"""The verdict words, said of a difference."""


def other_bounds(audit: Audit) -> list[str]:
    """The verdict words where δ is of another measure than the headline's, or of differences."""
    lines = []
    for measure, delta in audit.deltas.items():
        own = [one for one in audit.certainty if one.measure == measure]
        means = [f"{one.run} {one.word}" for one in own if one.baseline is None]
        if means and measure != audit.headline:
            lines.append(f"{measure}, δ = {delta:g}: {numbers.few(means, 6)}.")
        apart = [f"{one.run} {_APART.get(one.word, one.word)}" for one in own if one.baseline is not None]
        if apart:
            lines.append(f"{measure} against {audit.baseline}, δ = {delta:g}: {numbers.few(apart, 6)}.")
    return lines


def _leans(audit: Audit) -> list[Certainty]:
    """How sure the audit is of each run's mean in the measure of the headline, where 0 is good."""
    measure = audit.headline
    if measure is None:
        return []
    return [one for run in audit.runs if (one := certainty_of(audit, run, measure)) is not None]


def powers(audit: Audit) -> str | None:
    """The smallest lean that each run could have shown, in one sentence; None where that is not known."""
    result = _leans(audit)
    told = [f"{one.run} {one.detectable:.3f}" for one in result if one.detectable is not None]
    if not told:
        return None
    level = f"α = {result[0].alpha:.2g}, {numbers.counted(len(audit.runs), 'run')}"
    return (
        f"Smallest {result[0].measure} that would be found with 80% power: {numbers.few(told, 6)} ({level})."
    )


def findings(audit: Audit) -> tuple[Finding, ...]:
    """What stands behind the headline, run by run, then against the baseline, then the gate."""
    rows: list[Finding] = []
    measure = audit.headline
    if measure is not None:
        for run in audit.runs:
            rows += _of_run(audit.measured[run, measure], audit)
            others = [m for m in audit.deltas if m != measure and certainty_of(audit, run, m) is not None]
            rows += [one for m in others for one in _lean(audit.measured[run, m], audit)]
    for compared in told_changes(audit):
        rows.append(_change(compared, audit))
    rows += _stereotypes(audit)
    rows += [Finding("gate", "", f"Bound exceeded: {line}.") for line in audit.failures]
    if audit.conditions and not audit.failures:
        kept = ", ".join(map(str, audit.conditions))
        exempt = "" if audit.baseline is None else f"; {audit.baseline} is the baseline and exempt"
        rows.append(Finding("gate", "", f"No run exceeds a bound ({kept}){exempt}.", established=False))
    return tuple(rows)


def _of_run(m: Measurement, audit: Audit) -> list[Finding]:
    if m.value is None:
        return [Finding("lean", m.run, f"{m.measure} of {m.run} is undefined.", established=False)]
    if not sign_names_group(m.measure):
        return _lean(m, audit)
    result = _lean(m, audit)
    result += _offered(m, audit)
    beyond = m.beyond(0.1)
    if beyond and m.abs is not None and m.abs > 2 * abs(m.value):
        size = size_of(audit, m.run)
        sure = _interval(m if size is None else size, audit, bounds=size is not None)
        text = (
            f"Single queries lean far more than the mean: by {m.abs:.2f} on average{sure}, and "
            f"{beyond:.0%} of them by more than 0.1; opposite queries cancel out."
        )
        result.append(Finding("spread", m.run, text))
    if m.ties is not None and m.ties >= TIED:
        text = (
            f"In {m.ties:.0%} of the queries, scores are tied and document ids decide the order; "
            "ties='expected' gives the mean over all orders."
        )
        result.append(Finding("ties", m.run, text))
    return result


def _lean(m: Measurement, audit: Audit) -> list[Finding]:
    """Whether a run leans, in the words of `certainty.py`, and how sure that is."""
    word, to = _judged(m, audit)
    delta = audit.deltas.get(m.measure)
    known = certainty_of(audit, m.run, m.measure)
    if not sign_names_group(m.measure):  # its sign names no group
        judged = _FROM_ZERO[word].replace("δ", f"{delta or 0:g}") if known else ""
        text = f"{m.measure} of {m.run} is {number(m)}{_interval(m, audit)}{judged}."
        return [Finding("lean", m.run, text), *_sure(known, word)]
    says = {
        "leans": f"leans {toward(to or '')}",
        "leans, but less than δ": f"leans {toward(to or '')}, but less than {delta or 0:g}",
        "no lean beyond δ": f"has no lean beyond {delta or 0:g}",
        "cannot tell": "may or may not lean; the interval includes 0, which does not prove balance",
        "not judged": f"is not judged ({unjudged(m)})",
    }[word]
    result = [
        Finding("lean", m.run, f"{m.run} {says}: {m.measure} {number(m)}{_interval(m, audit)}.", to, bool(to))
    ]
    return result + _sure(known, word)


def _sure(known: Certainty | None, word: str) -> list[Finding]:
    """What is known of δ and power, as a finding."""
    if known is None or not (text := known.said()):
        return []
    return [Finding("certainty", known.run, text, established=word in _SHOWN)]


def _offered(m: Measurement, audit: Audit) -> list[Finding]:
    """Whether the ranking leans more than what the same queries were offered; the collection as context."""
    rows = []
    offered = audit.offered.get(m.run)
    if offered is not None and sign_names_group(m.measure):
        of, against = m.measure.pair(audit.groups)
        what = f"The {offered.kind} of {_those(offered.queries)} are at {offered.value:+.3f}"
        if offered.low is None or offered.high is None:
            text, clear = (
                f"{what}; whether the ranking leans more is not judged (fewer than two queries).",
                False,
            )
        else:
            between = numbers.interval_phrase(offered.low, offered.high, audit.confidence)
            change = f"by {offered.difference:+.3f} ({between})"
            clear = offered.low > 0 or offered.high < 0
            more = of if offered.difference > 0 else against
            text = (
                f"{what}; the ranking leans more {toward(more)} than they do, {change}."
                if clear
                else f"{what}; the ranking differs from them {change}, which may be chance."
            )
        rows.append(Finding("offered", m.run, text, established=clear))
    if "collection" in m.background:
        many = audit.measured.provenance.get("tally", {}).get("documents")
        everything = "all documents" if many is None else f"all {many:,} documents"
        value = m.background["collection"]["value"]
        text = f"For context: {everything} of the collection are at {value:+.3f}."
        rows.append(Finding("collection", m.run, text, established=False))
    return rows


def _said(m: Measurement, audit: Audit) -> str:
    said = numbers.interval_phrase(m.low, m.high, audit.confidence, numbers.form_of(m.measure))
    return f" ({said})" if said else ""


def _those(count: int) -> str:
    return "the same query" if count == 1 else f"the same {count:,} queries"


def size_of(audit: Audit, run: str) -> Measurement | None:
    """The mean of absolute values of the headline measure, where it was measured."""
    wanted = f"abs({audit.headline})"
    return next((m for m in audit.measured.runs[run] if str(m.measure) == wanted), None)


def correction(audit: Audit) -> str | None:
    """What is corrected and what is not, said once, where some comparison needs it."""
    torn = [
        one
        for one in audit.comparisons
        if not one.significant
        and one.comparison.low is not None
        and one.comparison.high is not None
        and (one.comparison.low > 0 or one.comparison.high < 0)
    ]
    if not torn:
        return None
    return (
        f"Each interval is for one comparison; p is corrected (Holm) over all {len(audit.comparisons)}. "
        "So an interval can exclude 0 although the difference is not significant."
    )


def told_changes(audit: Audit) -> list[RunComparison]:
    """What a verdict tells: the headline, the first where higher is fairer, one of effectiveness."""
    measures = audit.measures
    useful = next((m for m in measures if not is_bias(m)), None)
    fair = next(
        (m for m in measures if is_bias(m) and preferred_direction(m) == "high" and not m.REFERENCE), None
    )
    sizes = [m.measure for run in audit.runs[:1] if (m := size_of(audit, run)) is not None]
    wanted = [
        m for m in dict.fromkeys((audit.headline, *sizes, fair, useful, *audit.deltas)) if m is not None
    ]
    pairs = ((run, m) for run in audit.runs if run != audit.baseline for m in wanted)
    result = (between(audit.comparisons, run, m) for run, m in pairs)
    return [one for one in result if one is not None and one.comparison.difference is not None]


def _change(compared: RunComparison, audit: Audit) -> Finding:
    c, measure = compared.comparison, compared.measure
    change = f"{measure} {c.difference:+.3f}{_evidence(compared, audit)}"
    if compared.significant:
        text = f"{compared.run} {_changed(compared, audit)} {compared.baseline}: {change}."
    else:
        text = f"{compared.run} and {compared.baseline} do not differ clearly: {change}."
        if compared.comparison.p is None:
            text = f"Whether {compared.run} and {compared.baseline} differ is not judged: {change}."
    known = certainty_of(audit, compared.run, measure, compared.baseline)
    if known is not None and (known.delta is not None or not compared.significant):
        less, none = f" That is less than {known.delta}.", f" There is no difference beyond {known.delta}."
        small = {"leans, but less than δ": less, "no lean beyond δ": none}.get(known.word, "")
        text = f"{text}{small} {known.said()}".rstrip()
    return Finding("change", compared.run, text, established=compared.significant)


def standing(compared: RunComparison, audit: Audit) -> Literal["better", "worse", "other"]:
    """Whether a difference is for the better; other where the test of it cannot tell.

    The test is of the signed difference. Where the mean changes its side, that does not say which of the two
    is farther from balance. With a yardstick no value is good in itself: a perfect engine has a GSR above 0.
    """
    way, difference = preferred_direction(compared.measure), compared.comparison.difference or 0.0
    if getattr(compared.measure, "REFERENCE", ""):
        return "other"
    if way in ("high", "low"):
        return "better" if (difference > 0) == (way == "high") else "worse"
    before = audit.measured[compared.baseline, compared.measure].value
    after = audit.measured[compared.run, compared.measure].value
    if before is None or after is None:
        return "other"
    goal = 1.0 if way == "one" else 0.0
    if (before - goal) * (after - goal) <= 0:
        return "other"
    return "worse" if (difference > 0) == (before > goal) else "better"


def _changed(compared: RunComparison, audit: Audit) -> str:
    """How a run stands to the baseline, as the verb and its object: "is fairer than"."""
    measure, stands = compared.measure, standing(compared, audit)
    if stands == "other":
        if sign_names_group(measure):
            of, against = measure.pair(audit.groups)
            return f"leans more {toward(of if (compared.comparison.difference or 0) > 0 else against)} than"
        return "differs from"
    better_word, worse_word = ("more effective", "less effective")
    if is_bias(measure):
        better_word, worse_word = ("less biased", "more biased")
        if preferred_direction(measure) == "high":
            better_word, worse_word = ("fairer", "less fair")
    return f"is {better_word if stands == 'better' else worse_word} than"


def _evidence(compared: RunComparison, audit: Audit) -> str:
    """The interval, the effect size and the corrected p of a difference, in brackets."""
    c = compared.comparison
    said = [
        numbers.interval_phrase(c.low, c.high, audit.confidence),
        "" if c.effect is None else f"{c.effect_name} {c.effect:+.2f}",
        "" if compared.p_holm is None else f"corrected {numbers.p_phrase(compared.p_holm)}",
        numbers.counted(c.n, "query", "queries"),
    ]
    shown = ", ".join(text for text in said if text)
    return f" ({shown})" if shown else ""


def _stereotypes(audit: Audit) -> list[Finding]:
    rows = []
    for m in audit.measured:
        if not isinstance(m, Reinforcement) or m.value is None:
            continue
        text = f"{m.run}: {m.measure} {m.value:+.3f}{_interval(m, audit)}"
        clear = m.low is not None and m.low > 0
        text += "; results follow the gendered language of their queries" if clear else ""
        perfect = m.baselines.get("perfect")
        if perfect is not None and perfect.value is not None:
            judged = numbers.counted(perfect.queries, "query", "queries")
            text += f"; a perfect engine would have {perfect.value:+.3f} ({judged})"
        rows.append(Finding("stereotype", m.run, f"{text}.", established=clear))
    return rows


def number(m: Measurement) -> str:
    """The value, with its sign where the sign says something."""
    return "undefined" if m.value is None else numbers.number(m.value, numbers.form_of(m.measure))


def _interval(m: Measurement, audit: Audit, *, bounds: bool = True) -> str:
    said = ""
    if bounds:
        said = numbers.interval_phrase(m.low, m.high, audit.confidence, numbers.form_of(m.measure))
    return f" ({said}{', ' if said else ''}{numbers.counted(m.queries, 'query', 'queries')})"


def _counted(names: Sequence[str], total: int) -> str:
    """The names, or how many they are where they are many."""
    if len(names) > 3:
        return f"{len(names)} of {total} runs"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
