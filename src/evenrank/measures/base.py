"""What every bias measure is: a name, checked parameters, what it needs, and a value for each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure, ParamInfo
from numpy.typing import NDArray

from evenrank import stats
from evenrank.errors import InputError, nearest
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.summary import Bootstrap, Change, Summary
from evenrank.show.numbers import toward

if TYPE_CHECKING:
    from evenrank.measures.measurements import Measurement

LARGEST = 2**63 - 1
"""The largest whole number that arrays hold."""
Good = Literal["zero", "high", "low", "one"]
"""Where good values lie."""
_GOOD: tuple[Good, ...] = ("zero", "high", "low", "one")


@dataclass(frozen=True, eq=False)
class Context:
    """One run as a measure sees it. What the measure did not ask for in `NEEDS` may be None."""

    lists: RankedLists
    background: RankedLists | None = None
    docs: Any = None
    queries: pl.DataFrame | None = None
    qrels: pl.DataFrame | None = None
    targets: Mapping[str, Mapping[str, Fraction]] | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        return self.lists.groups


@dataclass(frozen=True, eq=False)
class PerQuery:
    """A measure's value for each list, in their order; NaN where it is undefined, `undefined` says why."""

    values: Floats
    parts: Mapping[str, Floats] = field(default_factory=dict)
    undefined: str = "undefined"


class Param(ParamInfo):
    """A parameter of a measure, with the smallest value it may have."""

    def __init__(self, *, minimum: float | None = None, **info: Any) -> None:
        super().__init__(**info)
        self.minimum = minimum


class BiasMeasure(Measure):
    """A measure of bias in ranked lists: used like any measure of ir_measures, computed from arrays.

    To add one: subclass in a file of its own, say where good values lie, write `per_query`, `register` an
    instance, and import it in `__init__.py`. Parameters are checked when they are given. What the verdict,
    the report, the gate, sweeps and limits have to know about a measure, it says itself, here.

    Attributes
    ----------
    GOOD
        Where good values lie: near `zero`, near `one`, `high` or `low`. Near zero, for a measure with a sign,
        unless it says otherwise.
    BEST
        The best value that there can be, if it is known and not 0.
    MEANING
        What a value says, in one sentence for the report; `{of}` and `{against}` (groups) and `{k}` (the
        cut-off) are filled in. `SHORT_DESC` unless given.
    READING
        How to read sign and size, in a few words, where `GOOD` does not say it.
    YARDSTICK
        What a value has to be compared with, where none is good in itself.
    LEANS
        Whether the sign names a group: that which `pair(groups)` gives first above 0, else the second.
    NEEDS
        What it looks at: `tally`, `background`, `docs`, `queries`, `qrels`; without them it is refused.
    WAYS_OUT
        For something it needs, what else could be done than give it.
    SIGNED
        Whether values lean to one side or the other of 0, so that the mean of absolute values says more.
    ORDERED
        Whether the order of the documents above the cut-off counts, and not only which they are.
    """

    SUPPORTED_PARAMS: dict[str, ParamInfo] = {}  # noqa: RUF012 (as ir_measures declares it)
    NAME: str = ""
    NEEDS: frozenset[str] = frozenset({"tally"})
    GOOD: ClassVar[Good | None] = None
    BEST: ClassVar[float | None] = None
    MEANING: ClassVar[str] = ""
    READING: ClassVar[str] = ""
    YARDSTICK: ClassVar[str] = ""
    LEANS: ClassVar[bool] = False
    SIGNED: ClassVar[bool] = False
    ORDERED: ClassVar[bool] = True
    WAYS_OUT: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **params: Any) -> None:
        checked = check_params(self.NAME, self.SUPPORTED_PARAMS, params)
        # In one order, whatever order they were given in: measures are equal when they print equal.
        super().__init__(**{key: checked[key] for key in self.SUPPORTED_PARAMS if key in checked})

    def validate_params(self) -> None:
        require_params(self)
        self.validated = True

    def depth(self) -> int:
        """How far down the list the measure looks."""
        return int(self["cutoff"])

    def background_depth(self) -> int:
        """How far down the background run the measure looks; 0 if not at all."""
        return 0

    def check_groups(self, groups: tuple[str, ...]) -> None:
        """Refuse groups that the measure cannot be computed for."""

    def per_query(self, context: Context) -> PerQuery:
        """The value for each of the context's lists."""
        raise NotImplementedError

    def pair(self, groups: tuple[str, ...]) -> tuple[Any, Any]:
        """The two groups (of, against) that the measure compares, if it does."""
        raise NotImplementedError

    def summarise(self, found: PerQuery, chosen: NDArray[np.bool_], bootstrap: Bootstrap) -> Summary:
        """The measure over the chosen lists: the mean of their values, with its interval."""
        return Summary.over(found.values, found.parts, chosen, signed=self.SIGNED, bootstrap=bootstrap)

    def compare(
        self, mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0
    ) -> Change:
        """One run against another, over the queries that both have: a paired test of their values."""
        return paired_change(mine, theirs, confidence=confidence, seed=seed)

    def __abs__(self) -> BiasMeasure:
        """The same measure without its sign, query by query: see `absolute.py`."""
        from evenrank.measures.absolute import Absolute

        return Absolute(self)

    def _param_repr(self, v: Any) -> str:
        return repr(dict(sorted(v.items())) if isinstance(v, dict) else v)


def register(measure: BiasMeasure) -> None:
    """Make a measure known by its name to ir_measures and to our parser.

    What it says of itself is checked here, once, so that no report stumbles over it.
    """
    if good(measure) not in _GOOD:
        raise InputError(
            f"{measure.NAME} does not say where good values lie; add GOOD = 'zero', 'high', 'low' or 'one'"
        )
    try:
        meaning(measure)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"{measure.NAME}: MEANING may hold {{of}}, {{against}} and {{k}}, not {error}"
        ) from None
    ir_measures.measures.registry.setdefault(measure.NAME, measure)


def check_params(name: str, supported: Mapping[str, ParamInfo], params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, if a measure called `name` can have them."""
    checked = {}
    for key, value in params.items():
        info = supported.get(key)
        if info is None:
            raise InputError(f"{name} has no parameter {key!r}; {choices(key, supported)}")
        checked[key] = _check_value(name, key, info, value)
    return checked


def _check_value(name: str, key: str, info: ParamInfo, value: Any) -> Any:
    optional = info.default is None
    if value is None and optional:
        return None
    if info.dtype is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    kinds = info.dtype if isinstance(info.dtype, tuple) else (info.dtype,)
    wrong_bool = isinstance(value, bool) and bool not in kinds
    if info.dtype is not None and (wrong_bool or not isinstance(value, info.dtype)):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{name}: {key} is {value!r}, but must be of type {wanted}")
    if isinstance(info.choices, list | tuple) and value not in info.choices:
        raise InputError(f"{name}: {key} cannot be {value!r}; {choices(str(value), info.choices)}")
    minimum = getattr(info, "minimum", 1 if key == "cutoff" else None)
    if minimum is not None and value < minimum:
        raise InputError(f"{name}: {key} is {value!r}, but must be at least {minimum}")
    if key == "recall" and not 0 <= value <= 1:
        raise InputError(f"{name}: {key} is {value!r}, but must be between 0 and 1, as in {name}@0.1")
    if isinstance(value, int) and value > LARGEST:
        raise InputError(f"{name}: {key} is {value!r}, but must be at most {LARGEST}")
    return value


def require_params(measure: Measure) -> None:
    """Refuse a measure that lacks a parameter it cannot do without."""
    for key, info in measure.SUPPORTED_PARAMS.items():
        if info.required and key not in measure.params:
            at = f"{measure.NAME}@10" if key == measure.AT_PARAM else f"{measure.NAME}({key}=…)"
            what = "a cut-off" if key == "cutoff" else f"the parameter {key!r}"
            raise InputError(f"{measure.NAME} needs {what}, as in {at}")


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the known ones."""
    if value not in known:
        raise InputError(f"{name} cannot be {value!r}; {choices(str(value), known)}")


def choices(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is not known: the nearest that is, or all of them."""
    names = [str(name) for name in known]
    if near := nearest(word, names):
        return f"did you mean {near!r}?"
    return f"one of {', '.join(names)}" if names else "it takes none"


def is_bias(measure: Measure) -> TypeGuard[BiasMeasure]:
    """Whether a measure is about bias; all others are about effectiveness."""
    return isinstance(measure, BiasMeasure)


def good(measure: Measure) -> Good:
    """Where good values of a measure lie: the one place where that is decided."""
    if not isinstance(measure, BiasMeasure):
        return "high"
    return measure.GOOD or ("zero" if measure.SIGNED else None)  # type: ignore[return-value]  # see `register`


def amount(measure: Measure, values: Floats) -> Floats:
    """What better and worse are told by: the value, or how far it is from 0 or 1 where that is good.

    More of it is better where good values are `high`, else worse.
    """
    goal = {"zero": 0.0, "one": 1.0}.get(good(measure))
    return values if goal is None else np.abs(values - goal)


def paired_change(mine: Measurement, theirs: Measurement, *, confidence: float, seed: int) -> Change:
    """One run against another by Student's paired test."""
    query_ids, a, b = mine.beside(theirs)
    return Change(stats.paired(a, b, confidence=confidence, seed=seed), query_ids, a - b)


def compare(mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0) -> Change:
    """One run against another, as the measure itself compares them."""
    how = getattr(mine.measure, "compare", paired_change)
    found: Change = how(mine, theirs, confidence=confidence, seed=seed)
    return found


def leans(measure: Measure | None) -> TypeGuard[BiasMeasure]:
    """Whether the sign of a value names a group, see `BiasMeasure.LEANS`."""
    return bool(getattr(measure, "LEANS", False))


_DIRECTION: dict[Good, str] = {
    "zero": "0 is balance",
    "high": "higher is fairer",
    "low": "lower is fairer",
    "one": "1 is parity",
}

# What the best known measures of ir_measures say.
_EFFECTIVENESS = {
    "nDCG": "How well the most relevant documents stand at the top {k}.",
    "RR": "One over the rank of the first relevant document.",
    "AP": "How early relevant documents come, over the whole list.",
}


def meaning(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """What the number says."""
    said = measure.MEANING if is_bias(measure) else _EFFECTIVENESS.get(measure.NAME or "", "")
    if not said:
        return getattr(measure, "SHORT_DESC", None) or ""
    of, against = "one group's", "the other's"
    if leans(measure) and len(groups) >= 2:
        of, against = measure.pair(groups)
    said = said.format(of=of, against=against, k=measure.params.get("cutoff", "k"))
    if measure.params.get("magnitude") == "boolean":
        said += " Here a document either holds such words or not."
    return said


def direction(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """How to read sign and size, in a few words."""
    if leans(measure) and len(groups) >= 2:
        of, against = measure.pair(groups)
        return f"above 0 leans {toward(of)}, below 0 {toward(against)}"
    if not isinstance(measure, BiasMeasure):
        return "higher is better"
    return measure.READING or _DIRECTION[good(measure)]


def short(measure: Measure) -> str:
    """A name that fits a column: the cut-off, then other parameters by their values.

    >>> from evenrank.measures.rank_bias import ARaB
    >>> short(ARaB(magnitude="boolean") @ 10)
    'ARaB@10 boolean'
    """
    params = dict(measure.params)
    at = params.pop(measure.AT_PARAM, None) if measure.AT_PARAM else None
    more = " ".join(str(value) for value in params.values())
    return f"{measure.NAME}{'' if at is None else f'@{at}'}{f' {more}' if more else ''}"
