"""What every bias measure is: a name, checked parameters, what it needs, and a value for each query."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import ir_measures
import polars as pl
from ir_measures.measures import Measure, ParamInfo

from evenrank.errors import InputError
from evenrank.measures.lists import Floats, RankedLists

LARGEST = 2**63 - 1
"""The largest whole number that arrays hold."""


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

    To add one: subclass in a file of its own, write `per_query`, `register` an instance, and import it in
    `__init__.py`. Parameters are checked when they are given.

    Attributes
    ----------
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

    def _param_repr(self, v: Any) -> str:
        return repr(dict(sorted(v.items())) if isinstance(v, dict) else v)


def register(measure: BiasMeasure) -> None:
    """Make a measure known by its name to ir_measures and to our parser."""
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
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if near:
        return f"did you mean {next(name for name in names if name.lower() == near[0])!r}?"
    return f"one of {', '.join(names)}" if names else "it takes none"
