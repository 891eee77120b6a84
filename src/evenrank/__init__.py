"""evenrank: measure, explain and re-balance gender bias in search results.

>>> import evenrank as er
>>> from evenrank import ARaB, NFaiRR, nDCG
"""

import re
from functools import partial, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any

from evenrank import parallel

__version__ = "0.1.0"

parallel.set_numba_cache_dir()
parallel.watch_forks()

# Where each public name lives; it is imported when first used, so that `import evenrank` costs nothing.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *_HOME]

# What takes `genders="predict"`. Measures do not know the classifier, which is built upon them.
_PREDICTING = ("measure", "audit", "trace", "plan")


def _classify(queries: Any) -> Any:
    """What the shipped classifier says of queries."""
    return import_module("evenrank.queries.classify").predicted_genders(queries)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'evenrank' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    if name in _PREDICTING:
        value = update_wrapper(partial(value, classify=_classify), value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
