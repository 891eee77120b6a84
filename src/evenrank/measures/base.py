"""The base classes of bias measures, their registry, and how their values are described."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeGuard, TypeVar

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure, ParamInfo
from numpy.typing import NDArray

from evenrank import stats
from evenrank.errors import InputError, choice_hint
from evenrank.measures.lists import Floats, PerQuery, RankedLists, RankWeights
from evenrank.measures.results import QUANTILES, Options, Summary
from evenrank.show.numbers import toward

LARGEST = 2**63 - 1
"""The largest whole number that arrays hold."""
M = TypeVar("M", bound="BiasMeasure")
Preferred = Literal["zero", "high", "low", "one"]
"""Where good values lie."""
_PREFERRED: tuple[Preferred, ...] = ("zero", "high", "low", "one")


class Param(ParamInfo):
    """A parameter of a measure, with the smallest value it may have."""

    def __init__(self, *, minimum: float | None = None, **info: Any) -> None:
        super().__init__(**info)
        self.minimum = minimum


class BiasMeasure(Measure):
    """A measure of bias in ranked lists: used like any measure of ir_measures, computed from arrays.

    To add one: subclass in a file of its own, say where good values lie, write `per_query`, `register` an
    instance, and import it in `__init__.py`. Parameters are checked when they are given. The attributes tell
    the verdict, the report, the gate, sweeps and limits how to treat the measure.

    Attributes
    ----------
    PREFERRED
        Where good values lie: near `zero`, near `one`, `high` or `low`. Where it is zero the sign means a
        direction, and the mean of absolute values is reported too.
    BEST
        The best value that there can be, if it is known and not 0.
    MEANING
        The meaning of a value, in one sentence for the report; `{of}` and `{against}` (groups) and `{k}` (the
        cut-off) are filled in. `SHORT_DESC` unless given.
    INTERPRETATION
        How to read sign and size, in a few words, if that does not follow from `PREFERRED`.
    REFERENCE
        The reference to compare values with, if no value is good in itself.
    SIGN_NAMES_GROUP
        Whether the sign names a group: above 0 the first of `pair(groups)`, below 0 the second.
    ORDER_MATTERS
        Whether the order of the documents above the cut-off changes the value.
    CURVE
        Whether a report draws its values at growing cut-offs, which can be compared with each other.
    NEEDS
        The inputs that it needs: `tally`, `background`, `docs`, `queries`, `qrels`. Documents are looked up
        in the tally, unless it names `groups` (of documents), `dictionary` (the words of one), `variants`
        (of queries) or `genderedness` (of texts).
    """

    SUPPORTED_PARAMS: dict[str, ParamInfo] = {}  # noqa: RUF012 (as ir_measures declares it)
    NAME: str = ""
    NEEDS: frozenset[str] = frozenset({"tally"})
    PREFERRED: ClassVar[Preferred | None] = None
    BEST: ClassVar[float | None] = None
    MEANING: ClassVar[str] = ""
    INTERPRETATION: ClassVar[str] = ""
    REFERENCE: ClassVar[str] = ""
    SIGN_NAMES_GROUP: ClassVar[bool] = False
    LINEAR: ClassVar[bool] = False  # a sum over the documents of a list, see `LinearMeasure`
    SEQUENCES: ClassVar[bool] = False  # looks at several rankings of a query, where there are some
    ORDER_MATTERS: ClassVar[bool] = True
    CURVE: ClassVar[bool] = False

    def __init__(self, **params: Any) -> None:
        checked = check_params(self.NAME, self.SUPPORTED_PARAMS, params)
        # In one order, whatever order they were given in: measures are equal when they print equal.
        ordered = sorted(checked, key=list(self.SUPPORTED_PARAMS).index)
        super().__init__(**dict(zip(ordered, map(checked.__getitem__, ordered), strict=True)))

    def validate_params(self) -> None:
        require_params(self)
        self.validated = True

    @property
    def SIGNED(self) -> bool:
        """Whether values can lie on both sides of 0, so that the mean of absolute values is reported too."""
        return self.PREFERRED == "zero"

    def depth(self) -> int:
        """The number of top documents of each list that the measure reads."""
        return int(self["cutoff"])

    def needs_more_than_the_top(self, *, targets: bool) -> bool:
        """Whether lists no longer than the cut-off give 0 whatever they show; see :class:`GroupMeasure`."""
        return False

    def background_depth(self) -> int:
        """The number of top documents of the background run that the measure reads; 0 for none."""
        return 0

    def check_groups(self, groups: tuple[str, ...]) -> None:
        """Refuse groups that the measure cannot be computed for."""

    def per_query(self, lists: RankedLists) -> PerQuery:
        """Return the value of each list."""
        raise NotImplementedError

    def pair(self, groups: tuple[str, ...]) -> tuple[Any, Any]:
        """The two groups (of, against) that the measure compares, if it does."""
        raise NotImplementedError

    def __abs__(self) -> BiasMeasure:
        """The same measure without its sign, query by query."""
        return Absolute(self)

    def curves(self) -> list[BiasMeasure]:
        """Return the measures without a cut-off that a report draws at growing cut-offs, if any."""
        params = {name: value for name, value in self.params.items() if name != "cutoff"}
        return [type(self)(**params)] if self.CURVE and {*params} <= {"of", "against"} else []

    def backgrounds(self, inputs: Any, query_ids: pl.Series, values: Floats) -> dict[str, dict[str, Any]]:
        """The same measure of the collection and of the judged-relevant documents, for comparison."""
        return {}

    def _param_repr(self, v: Any) -> str:
        return repr(dict(sorted(v.items())) if isinstance(v, dict) else v)


class LinearMeasure(BiasMeasure):
    """A measure that is a sum over the ranked documents: the weight of the rank × the value of the document.

    Write `weights` and `values` (and `scale`, where the sum is divided by something), and the rest follows:
    values by query, their exact means over the orders of tied documents, what each document and query adds,
    limits for re-ranking, and the evaluation of a single list.
    """

    LINEAR = True
    CURVE = True
    UNDEFINED: ClassVar[str] = "undefined"

    def weights(self, n: int, t: int) -> Floats:
        """Return the weight of each of n ranked documents at the cut-off t; 0 below it."""
        raise NotImplementedError

    def values(self, lists: RankedLists) -> Floats:
        """Return what each document of the lists adds at weight 1."""
        raise NotImplementedError

    def scale(self, lists: RankedLists) -> Floats | None:
        """Return the divisor of each list's sum, if there is one; undefined unless it is above 0."""
        return None

    def words(self, groups: tuple[str, ...]) -> tuple[str, dict[str, float]] | None:
        """Return the magnitude and the sign of each group, if values are sums of group magnitudes."""
        return None

    def per_query(self, lists: RankedLists) -> PerQuery:
        total = self.weighing(lists).total(self.each_value(lists))
        return PerQuery(self.scaled(total, lists), undefined=self.UNDEFINED)

    def weighing(self, lists: RankedLists) -> RankWeights:
        """Return the weights of the documents of the lists; with expected ties, averaged over ties."""
        return lists.weigh(self.weights, self["cutoff"])

    def each_value(self, lists: RankedLists) -> Floats:
        """`values`, computed once for the lists."""
        return lists.cached(("values", self), lambda: np.asarray(self.values(lists), dtype=np.float64))

    def each_scale(self, lists: RankedLists) -> Floats | None:
        """`scale`, computed once for the lists."""
        return lists.cached(("scale", self), lambda: self.scale(lists))

    def scaled(self, sums: Floats, lists: RankedLists) -> Floats:
        """Sums over the lists as values: divided by the scale, NaN where that is not above 0."""
        scale = self.each_scale(lists)
        if scale is None:
            return sums
        return np.divide(sums, scale, out=np.full(len(sums), np.nan), where=scale > 0)

    def contributions(self, lists: RankedLists) -> Floats:
        """Return what each document adds to the value of its list."""
        weighing = self.weighing(lists)
        added = np.zeros(len(lists.rows))
        added[weighing.entries] = weighing.weights * self.each_value(lists)[weighing.entries]
        scale = self.scaled(np.ones(len(lists.lengths)), lists)
        return added if (scale == 1).all() else added * np.repeat(scale, lists.lengths)


class Absolute(BiasMeasure):
    """The absolute value of a measure that has a sign, query by query; its value is their mean.

    abs(ARaB@10) = (1/N) Σ_q |ARaB_10(q)|. Never negative, 0 only where every query is in balance: opposite
    queries do not cancel, as they do in the mean of ARaB@10. Write `abs(ARaB @ 10)`, or `abs(ARaB@10)` as
    text.

    GSR has no absolute value: it is one slope over all queries and not a mean.
    """

    SHORT_DESC = "Mean over queries of the measure's absolute value."
    PREFERRED = "low"
    MEANING = (
        "How far the results of single queries lean, to either side: the mean of absolute values, in which "
        "opposite queries do not cancel out."
    )
    AT_PARAM = ""

    def __init__(self, inner: Measure) -> None:
        if not isinstance(inner, BiasMeasure) or not inner.SIGNED:
            raise InputError(f"abs() takes a measure with a sign, such as ARaB@10; {inner} has none")
        if inner.REFERENCE:
            raise InputError(
                f"{inner} is one value over all queries, not a mean, so abs({inner}) does not exist; "
                f"measure {inner} itself"
            )
        require_params(inner)
        super().__init__()
        self.inner = inner
        self.__name__ = self.NAME = f"abs({inner})"
        for name in ("NEEDS", "ORDER_MATTERS", "SEQUENCES"):
            setattr(self, name, getattr(inner, name))

    def __call__(self, **params: Any) -> BiasMeasure:
        raise InputError(f"set the parameters of the measure within abs(), as in abs({self.inner})")

    def depth(self) -> int:
        return self.inner.depth()

    def background_depth(self) -> int:
        return self.inner.background_depth()

    def check_groups(self, groups: tuple[str, ...]) -> None:
        self.inner.check_groups(groups)

    def per_query(self, lists: RankedLists) -> PerQuery:
        result = self.inner.per_query(lists)
        return PerQuery(np.abs(result.values), undefined=result.undefined)


def register(measure: M) -> M:
    """Register a measure under its name, for ir_measures and our parser, and return it.

    Its attributes are checked here.
    """
    if preferred_direction(measure) not in _PREFERRED:
        raise InputError(
            f"{measure.NAME} does not say where good values lie; "
            "add PREFERRED = 'zero', 'high', 'low' or 'one'"
        )
    try:
        meaning(measure)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"{measure.NAME}: MEANING may hold {{of}}, {{against}} and {{k}}, not {error}"
        ) from None
    known = ir_measures.measures.registry.get(measure.NAME)
    if known is not None and not _is_same_definition(type(known), type(measure)):
        raise InputError(
            f"there are two measures called {measure.NAME}: {_defined_in(known)} and {_defined_in(measure)}; "
            "rename one of them"
        )
    ir_measures.measures.registry[measure.NAME] = measure
    return measure


def _defined_in(measure: Measure) -> str:
    return f"{type(measure).__module__}.{type(measure).__qualname__}"


def _is_same_definition(one: type, other: type) -> bool:
    """Whether a class was only defined again: in a notebook, or by running and importing the same file."""
    files = {getattr(sys.modules.get(each.__module__), "__file__", None) for each in (one, other)}
    again = len(files) == 1 or "__main__" in (one.__module__, other.__module__)
    return again and one.__qualname__ == other.__qualname__


def check_params(name: str, supported: Mapping[str, ParamInfo], params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, if a measure called `name` can have them."""
    checked = {}
    for key, value in params.items():
        info = supported.get(key)
        if info is None:
            raise InputError(f"{name} has no parameter {key!r}; {choice_hint(key, supported)}")
        checked[key] = _check_value(name, key, info, value)
    return checked


def _check_value(name: str, key: str, info: ParamInfo, value: Any) -> Any:
    optional = info.default is None
    if value is None and optional:
        return None
    if isinstance(value, np.generic):  # ARaB @ np.int64(10)
        value = value.item()
    if info.dtype is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    kinds = info.dtype if isinstance(info.dtype, tuple) else (info.dtype,)
    wrong_bool = isinstance(value, bool) and bool not in kinds
    if info.dtype is not None and (wrong_bool or not isinstance(value, info.dtype)):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{name}: {key} is {value!r}, but must be of type {wanted}")
    if isinstance(info.choices, list | tuple) and value not in info.choices:
        raise InputError(f"{name}: {key} cannot be {value!r}; {choice_hint(str(value), info.choices)}")
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


def summarise(
    values: Floats, parts: Mapping[str, Floats], chosen: NDArray[np.bool_], *, signed: bool, options: Options
) -> Summary:
    """A measure over the chosen queries that have a value: the mean of their values, with its interval."""
    chosen = chosen & ~np.isnan(values)
    taken = values[chosen]
    if not len(taken):
        return Summary()
    low = high = None
    if options.confidence is not None and len(taken) > 1:
        interval = stats.mean_interval(
            taken, confidence=options.confidence, resamples=options.resamples, seed=options.seed
        )
        low, high = interval.low, interval.high
    return Summary(
        value=float(taken.mean()),
        low=low,
        high=high,
        queries=len(taken),
        parts={name: float(part[chosen].mean()) for name, part in parts.items()},
        abs=float(np.abs(taken).mean()) if signed else None,
        spread=float(taken.std(ddof=1)) if len(taken) > 1 else None,
        quantiles=dict(zip(map(str, QUANTILES), np.quantile(taken, QUANTILES).tolist(), strict=True)),
    )


def unwrap_abs(measure: Any) -> Any:
    """The measure that is computed: for abs(m) that is m."""
    return getattr(measure, "inner", measure)


def is_bias(measure: Measure) -> TypeGuard[BiasMeasure]:
    """Whether a measure is about bias; all others are about effectiveness."""
    return isinstance(measure, BiasMeasure)


def is_sum(measure: Any) -> TypeGuard[LinearMeasure]:
    """Whether a measure is computed from a sum over the ranked documents."""
    return isinstance(measure, LinearMeasure)


def preferred_direction(measure: Measure) -> Preferred:
    """Where good values of a measure lie."""
    if not isinstance(measure, BiasMeasure):
        return "high"
    return measure.PREFERRED  # type: ignore[return-value]  # see `register`


def distance_from_ideal(measure: Measure, values: Floats) -> Floats:
    """Return the distance of values from 0 or 1, if that is the ideal, else the values themselves.

    A larger number is better if good values are `high`, else worse.
    """
    goal = {"zero": 0.0, "one": 1.0}.get(preferred_direction(measure))
    return values if goal is None else np.abs(values - goal)


def distance_name(measure: Measure) -> str:
    """Return its name: ``abs(ARaB@10)``, ``abs(DemographicParity@10 - 1)``, ``NFaiRR@10``."""
    return {"zero": f"abs({measure})", "one": f"abs({measure} - 1)"}.get(
        preferred_direction(measure), str(measure)
    )


def sign_names_group(measure: Measure | None) -> TypeGuard[BiasMeasure]:
    """Whether the sign of a value names a group, see `BiasMeasure.SIGN_NAMES_GROUP`."""
    return bool(getattr(measure, "SIGN_NAMES_GROUP", False))


_DIRECTION: dict[Preferred, str] = {
    "zero": "0 is balance",
    "high": "higher is fairer",
    "low": "lower is fairer",
    "one": "1 is parity",
}

# What the best known measures of ir_measures say.
_EFFECTIVENESS = {
    "nDCG": "How well the top {k} are filled with the most relevant documents.",
    "RR": "One over the rank of the first relevant document.",
    "AP": "How early relevant documents come, over the whole list.",
}


def meaning(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """Return the meaning of a value, in one sentence."""
    text = measure.MEANING if is_bias(measure) else _EFFECTIVENESS.get(measure.NAME or "", "")
    if not text:
        return getattr(measure, "SHORT_DESC", None) or ""
    of, against = "one group's", "the other's"
    if sign_names_group(measure) and len(groups) >= 2:
        of, against = measure.pair(groups)
    text = text.format(of=of, against=against, k=measure.params.get("cutoff", "k"))
    if measure.params.get("magnitude") == "boolean":
        text += " Here a document either contains such words or does not."
    return text


def interpretation(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """Return how to read sign and size, in a few words."""
    if sign_names_group(measure) and len(groups) >= 2:
        of, against = measure.pair(groups)
        return f"above 0 leans {toward(of)}, below 0 {toward(against)}"
    if not isinstance(measure, BiasMeasure):
        return "higher is better"
    return measure.INTERPRETATION or _DIRECTION[preferred_direction(measure)]


def short(measure: Measure) -> str:
    """Return a name that fits a column: the cut-off, then other parameters by their values.

    >>> from evenrank.measures.rank_bias import ARaB
    >>> short(ARaB(magnitude="boolean") @ 10), short(abs(ARaB(of="young", against="old") @ 10))
    ('ARaB@10 boolean', 'abs(ARaB@10, young − old)')
    """
    if (inner := getattr(measure, "inner", None)) is not None:
        return f"abs({short(inner)})"
    params = dict(measure.params)
    at = params.pop(measure.AT_PARAM, None) if measure.AT_PARAM else None
    pair = ""
    if "of" in params and "against" in params:
        pair = f", {params.pop('of')} − {params.pop('against')}"
    more = " ".join(str(value) for value in params.values())
    return f"{measure.NAME}{'' if at is None else f'@{at}'}{f' {more}' if more else ''}{pair}"
