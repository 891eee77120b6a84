"""Logarithms and sums that come out the same on every processor, to the last bit.

NumPy's ``log`` and ``exp`` have other code for other processors, and a matrix product goes to a library that
adds up in another order on each; results differ in the last digit. What is stored, hashed or printed in full
is computed with the functions here. They use nothing but single additions, multiplications and divisions of
arrays, which IEEE 754 defines to the last bit, in one fixed order. Logarithm and exponential are those of
Sun's fdlibm (1993), less than one unit in the last place from the true value.

Numbers that other libraries compute (a p value, a quantile) are rounded on the way in: :func:`settled`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

DIGITS = 12
"""Significant digits of numbers that depend on the processor in those behind."""

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LN2, _HALF_ROOT = 6.93147180559945286227e-01, 7.07106781186547524401e-01
_L1, _L2, _L3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
_L4, _L5, _L6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
_L7 = 1.479819860511658591e-01
_P1, _P2, _P3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
_P4, _P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08
_BLOCK = 1 << 12
_TABLE = 1 << 16  # largest whole number whose logarithm is looked up


def log(x: ArrayLike) -> Any:
    """The natural logarithm, as `np.log` gives it but for the last digit."""
    return _in_blocks(_log, x)


def log2(x: ArrayLike) -> Any:
    """The logarithm to the base 2; exact for powers of 2."""
    return _in_blocks(_log2, x)


def log1p(x: ArrayLike) -> Any:
    """ln(1 + x), also for x near 0. Many whole numbers, none of them large, are looked up in a table."""
    given = np.asarray(x)
    if given.dtype.kind in "iu" and given.size and given.min() >= 0 and given.max() < min(given.size, _TABLE):
        return np.asarray(log(np.arange(1.0, float(given.max()) + 2.0)))[given]
    values = given.astype(np.float64)
    with np.errstate(all="ignore"):
        above = 1.0 + values
        lost = (values - (above - 1.0)) / above
        return np.where(np.isfinite(lost), log(above) + lost, log(above))[()]


def exp(x: ArrayLike) -> Any:
    """e to the power of x, as `np.exp` gives it but for the last digit."""
    values = np.asarray(x, np.float64)
    bounded = np.clip(np.nan_to_num(values), -800.0, 800.0)
    k = np.rint(bounded / _LN2)
    high, low = bounded - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp(1.0 - ((low - (r * c) / (2.0 - c)) - high), k.astype(np.int64))
    return np.where(np.isnan(values), values, found)[()]


def log_of(x: float) -> float:
    """:func:`log` of one number above 0, in a form that numba compiles; the same to the last bit."""
    m, k = math.frexp(x)
    if m < _HALF_ROOT:
        m, k = m * 2.0, k - 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = w * (_L2 + w * (_L4 + w * _L6)) + z * (_L1 + w * (_L3 + w * (_L5 + w * _L7)))
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + r) + k * _LN2_LOW)) - f)


def dot(a: ArrayLike, b: ArrayLike) -> Any:
    """Σ a·b over the last axis, in the order NumPy adds up a row; other axes are broadcast."""
    return np.add.reduce(np.multiply(a, b), axis=-1, dtype=np.float64)


@overload
def settled(x: None) -> None: ...
@overload
def settled(x: float) -> float: ...
@overload
def settled(x: Floats) -> Floats: ...
def settled(x: Any) -> Any:
    """Rounded to twelve significant digits: for numbers of other libraries, which may differ behind them."""
    if x is None:
        return None
    if isinstance(x, np.ndarray) and x.ndim:
        rounded = [float(f"{value:.{DIGITS}g}") for value in x.ravel().tolist()]
        return np.array(rounded, np.float64).reshape(x.shape)
    return float(f"{x:.{DIGITS}g}")


def _log(f: Floats, k: Floats) -> Floats:
    return k * _LN2_HIGH - ((_half_square(f) - (_series(f) + k * _LN2_LOW)) - f)


def _log2(f: Floats, k: Floats) -> Floats:
    return k + (f - (_half_square(f) - _series(f))) / _LN2


def _in_blocks(of: Callable[[Floats, Floats], Floats], x: ArrayLike) -> Any:
    """A logarithm of f and k, so many at a time that what lies between stays in the cache."""
    values = np.asarray(x, np.float64)
    if values.size <= _BLOCK:
        return _where_defined(values, of(*_parts(values)))
    flat = values.ravel()
    found = np.empty(len(flat))
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        found[start : start + _BLOCK] = _where_defined(block, of(*_parts(block)))
    return found.reshape(values.shape)


def _parts(values: Floats) -> tuple[Floats, Floats]:
    """f and k of x = 2^k (1 + f), with 1 + f between √½ and √2."""
    m, exponent = np.frexp(values)
    low = m < _HALF_ROOT
    return np.where(low, 2.0 * m, m) - 1.0, (exponent - low).astype(np.float64)


def _half_square(f: Floats) -> Floats:
    return 0.5 * f * f


def _series(f: Floats) -> Floats:
    """ln(1 + f) − f + f²/2."""
    with np.errstate(all="ignore"):
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        r = w * (_L2 + w * (_L4 + w * _L6)) + z * (_L1 + w * (_L3 + w * (_L5 + w * _L7)))
        return s * (_half_square(f) + r)


def _where_defined(values: Floats, found: Floats) -> Any:
    """What was found; for what is not above 0 and finite, what `np.log` says, warnings included."""
    good = (values > 0) & (values < np.inf)
    if not good.all():
        found = np.where(good, found, np.log(np.where(good, 1.0, values)))
    return found[()]
