"""Measures and conditions as text: `ARaB(magnitude='boolean')@10`, `abs(ARaB@10)<=0.1`.

Our own small parser on top of `ast`: ir_measures' uses syntax nodes that Python 3.14 removed, and cannot
say what is wrong. Nothing is ever evaluated; values are literals. Names that are not known yet may come from
outside the package: a Python file, or installed packages with an entry point.
"""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NoReturn

import ir_measures
from ir_measures.measures import Measure

from evenrank.errors import InputError, choice_hint
from evenrank.measures.base import Absolute, check_params, require_params

_OPERATORS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
GROUP = "evenrank.measures"
"""The entry-point group in which a package names a module that registers measures."""
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A bound on a measure's value; `absolute` bounds its size whatever its sign.

    A `relative` bound is a margin: the value may be beyond the baseline's by so much.
    """

    measure: Measure
    op: str
    bound: float
    absolute: bool = False
    relative: bool = False

    @property
    def subject(self) -> Measure:
        """The measure whose value over all queries is bounded: abs(m), the mean of absolute values."""
        signed = getattr(self.measure, "SIGNED", False) and not getattr(self.measure, "REFERENCE", "")
        return Absolute(self.measure) if self.absolute and signed else self.measure

    def holds(self, value: float | None) -> bool:
        """Whether a value (of a relative bound: a change) keeps to it; an undefined one keeps to none."""
        if value is None or math.isnan(value):
            return False
        return _HOLDS[self.op](abs(value) if self.absolute and not self.relative else value, self.bound)

    def __str__(self) -> str:
        left = f"abs({self.measure})" if self.absolute else str(self.measure)
        if not self.relative:
            return f"{left}{self.op}{self.bound!r}"
        margin = "" if self.bound == 0 else f"{'+' if self.bound > 0 else '-'}{abs(self.bound)!r}"
        return f"{left}{self.op}baseline{margin}"


def parse(text: str | Measure) -> Measure:
    """The measure that a text names: `nDCG@10`, `AP(rel=2)`, `NFaiRR(threshold=2)@20`.

    Ours, those of ir_measures, and `abs()` of one with a sign; `parse(str(m)) == m`. A measure is returned as
    it is, once checked.
    """
    if isinstance(text, Measure):
        require_params(text)
        return text
    source = _Source(text, "measure")
    return source.measure(source.tree())


def parse_condition(text: str | Condition, *, relative: bool = False) -> Condition:
    """The condition that a text states: a measure, or `abs(measure)`, then < <= > or >=, then a number.

    Where there is a baseline to compare with (`relative`), `baseline`, `baseline + 0.02` or `baseline - 0.02`
    may take the number's place.
    """
    if isinstance(text, Condition):
        if text.relative and not relative:
            raise InputError(f"condition {str(text)!r}: there is no baseline here; compare with a number")
        return text
    source = _Source(text, "condition")
    tree = source.tree()
    if not isinstance(tree, ast.Compare):
        source.refuse("a condition compares a measure with a number, as in abs(ARaB@10)<=0.1", tree)
    if len(tree.ops) > 1:
        source.refuse("one comparison at a time", tree.comparators[0])
    op = _OPERATORS.get(type(tree.ops[0]))
    if op is None:
        source.refuse("the comparison must be one of < <= > >=", tree.left)
    right = tree.comparators[0]
    margin = _margin(right)
    if margin is not None and not relative:
        source.refuse("there is no baseline here; compare with a number", right)
    sign, right = (1.0, right) if margin is None else margin
    if (
        isinstance(right, ast.Name) and right.id == "inf" and margin is None
    ):  # as Python writes an infinite bound
        bound: Any = math.inf
    else:
        bound = source.literal(right, "write a measure on the left and a number on the right")
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            source.refuse(f"the bound {bound!r} is not a number", right)
        if not abs(bound) <= sys.float_info.max:  # a whole number may be larger than any decimal one
            source.refuse("the bound is too large to be compared", right)
    left, absolute = tree.left, False
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "abs":
        if len(left.args) != 1 or left.keywords:
            source.refuse("abs() takes one measure, as in abs(ARaB@10)<=0.1", left)
        left, absolute = left.args[0], True
    return Condition(source.measure(left), op, sign * float(bound), absolute, margin is not None)


def _margin(right: ast.expr) -> tuple[float, ast.expr] | None:
    """Sign and size of the margin in `baseline + size`; None where no baseline is named."""
    if isinstance(right, ast.Name) and right.id == "baseline":
        return 1.0, ast.Constant(0.0)
    if isinstance(right, ast.BinOp) and isinstance(right.left, ast.Name) and right.left.id == "baseline":
        if isinstance(right.op, ast.Add):
            return 1.0, right.right
        if isinstance(right.op, ast.Sub):
            return -1.0, right.right
    return None


@dataclass(frozen=True)
class _Source:
    """A text and where in it something is wrong."""

    text: str
    kind: str

    def tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.refuse("it cannot be read; write Name@cut-off or Name(parameter=value)@cut-off")

    def measure(self, node: ast.expr) -> Measure:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs":
            return self._absolute(node)
        at = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            at, node = node.right, node.left
        keywords: list[ast.keyword] = []
        if isinstance(node, ast.Call):
            if node.args:
                self.refuse("parameters go by name, as in ARaB(magnitude='boolean')@10", node.args[0])
            keywords, node = node.keywords, node.func
        if not isinstance(node, ast.Name):
            self.refuse("a measure's name is expected", node)
        registry = ir_measures.measures.registry
        if node.id not in registry:
            load_entry_points()
        if node.id not in registry:
            self.refuse(f"there is no measure {node.id!r}; {choice_hint(node.id, registry)}", node)
        plain = registry[node.id]
        params: dict[str, Any] = {}
        for keyword in keywords:
            if keyword.arg is None:
                self.refuse("parameters go by name, as in ARaB(magnitude='boolean')@10", keyword.value)
            self._add(params, plain, keyword.arg, keyword.value, "a value is a number or a quoted text")
        if at is not None:
            self._add(params, plain, plain.AT_PARAM, at, "after @ comes a number")
        try:
            measure = plain(**params)
            require_params(measure)
        except InputError as error:
            self.refuse(error.message)
        return measure

    def _absolute(self, node: ast.Call) -> Measure:
        if len(node.args) != 1 or node.keywords:
            self.refuse("abs() takes one measure, as in abs(ARaB@10)", node)
        try:
            return Absolute(self.measure(node.args[0]))
        except InputError as error:
            if error.message.startswith(self.kind):  # said already, with its place
                raise
            self.refuse(error.message, node)

    def _add(self, params: dict[str, Any], plain: Measure, key: str, node: ast.expr, otherwise: str) -> None:
        if key in params:
            self.refuse(f"{key} is given twice", node)
        value = self.literal(node, otherwise)
        try:
            params |= check_params(plain.NAME or key, plain.SUPPORTED_PARAMS, {key: value})
        except InputError as error:
            self.refuse(error.message, node)

    def literal(self, node: ast.expr, otherwise: str) -> Any:
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            self.refuse(otherwise, node)

    def refuse(self, why: str, node: ast.expr | None = None) -> NoReturn:
        where = ""
        if node is not None:
            before = self.text.strip().encode()[: node.col_offset].decode(errors="ignore")
            where = f" at character {len(before) + 1}"
        raise InputError(f"{self.kind} {self.text.strip()!r}{where}: {why}")


@cache
def load_entry_points() -> None:
    """Import what installed packages name in the group `evenrank.measures`, once."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            raise InputError(
                f"the measures of {point.dist.name if point.dist else point.value} cannot be loaded "
                f"({type(error).__name__}: {error}); update or uninstall that package"
            ) from error
