"""Record the values that evenrank computes, so that a change of the code can be checked against them.

`python -m tests.recorded.record` computes every case and writes `values.json`; with prefixes of names
(`python -m tests.recorded.record demo/ squad/measure/`) only those cases, and the other values are kept.
Cases that need EVENRANK_TEST_DATA are left as they are where it is not set. A commit that changes a recorded
value says why.

The cases are in modules beside this one. Each exports `CASES`, a dict from names such as
"squad/measure/ARaB@10" to functions without arguments that return what JSON can hold, and `SLOW`, the
names of the cases that take more than five seconds. Cases named demo/… need only what is in the repository.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from tests.recorded.helpers import HERE, data_folder

VALUES = HERE / "values.json"
TOLERANCE = 1e-9
_MODULES = ("measures", "systems")

Case = Callable[[], Any]


def load_cases() -> tuple[dict[str, Case], set[str]]:
    """Return every case by its name, and the names of those that take long."""
    cases: dict[str, Case] = {}
    slow: set[str] = set()
    for name in _MODULES:
        module = import_module(f"tests.recorded.{name}")
        if twice := cases.keys() & module.CASES.keys():
            raise ValueError(f"cases with the same name in two modules: {', '.join(sorted(twice))}")
        if unknown := set(module.SLOW) - module.CASES.keys():
            raise ValueError(f"SLOW names cases that do not exist: {', '.join(sorted(unknown))}")
        cases |= module.CASES
        slow |= set(module.SLOW)
    return cases, slow


def load_values() -> dict[str, Any]:
    """Return the recorded values by the names of their cases."""
    return json.loads(VALUES.read_text()) if VALUES.exists() else {}


def needs_data(name: str) -> bool:
    """Whether a case needs the collections from outside the repository."""
    return not name.startswith("demo/")


def to_json(value: Any) -> Any:
    """Return a value as it is read back from JSON: tuples become lists, keys become strings."""
    return json.loads(json.dumps(value))


def differences(recorded: Any, new: Any, path: str = "value") -> Iterator[str]:
    """Yield each difference between two values, with the path to it.

    Numbers are equal within 1e-9, absolute or relative; NaN equals NaN; integers, strings, booleans and
    None are equal exactly. See `helpers.ranking` for lists of documents.
    """
    if _is_ranking(recorded) and _is_ranking(new):
        yield from _ranking_differences(recorded["ranking"], new["ranking"], path)
    elif isinstance(recorded, dict) and isinstance(new, dict):
        for key in recorded.keys() | new.keys():
            if key not in new:
                yield f"{path}[{key!r}]: recorded {_short(recorded[key])}, now missing"
            elif key not in recorded:
                yield f"{path}[{key!r}]: not recorded, now {_short(new[key])}"
            else:
                yield from differences(recorded[key], new[key], f"{path}[{key!r}]")
    elif isinstance(recorded, list) and isinstance(new, list):
        if len(recorded) != len(new):
            yield f"{path}: recorded {len(recorded)} entries, now {len(new)}"
        for place, (before, after) in enumerate(zip(recorded, new, strict=False)):
            yield from differences(before, after, f"{path}[{place}]")
    elif not _equal(recorded, new):
        yield f"{path}: recorded {_short(recorded)}, now {_short(new)}"


def _is_ranking(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"ranking"}


def _ranking_differences(recorded: list[list[Any]], new: list[list[Any]], path: str) -> Iterator[str]:
    """Yield differences between two ranked lists; documents with equal scores may change places.

    So may a document below the cut with the last ones of the list, if its score is equal to theirs.
    """
    if len(recorded) != len(new):
        yield f"{path}: recorded {len(recorded)} documents, now {len(new)}"
        return
    before, after = dict(recorded), dict(new)
    for rank, ((_, old), (doc, score)) in enumerate(zip(recorded, new, strict=True), 1):
        if not _equal(old, score):
            yield f"{path} rank {rank}: recorded score {old!r}, now {score!r} ({doc})"
        elif not _equal(before.get(doc, recorded[-1][1]), score):
            yield f"{path} rank {rank}: {doc} with {score!r}, recorded with {before.get(doc)!r}"
    for doc in before.keys() - after.keys():
        if not _equal(before[doc], recorded[-1][1]):
            yield f"{path}: {doc} with {before[doc]!r} recorded, now missing"


def _equal(recorded: Any, new: Any) -> bool:
    numbers = isinstance(recorded, int | float) and isinstance(new, int | float)
    if not numbers or isinstance(recorded, bool) or isinstance(new, bool):
        return type(recorded) is type(new) and recorded == new
    if isinstance(recorded, int) and isinstance(new, int):
        return recorded == new
    if math.isnan(recorded) or math.isnan(new):
        return math.isnan(recorded) and math.isnan(new)
    return math.isclose(recorded, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def main(prefixes: list[str]) -> None:
    cases, slow = load_cases()
    wanted = [name for name in sorted(cases) if name.startswith(tuple(prefixes) or "")]
    if prefixes and not wanted:
        raise SystemExit(f"no case starts with {' or '.join(prefixes)}")
    values = {name: value for name, value in load_values().items() if name in cases}
    for name in wanted:
        if needs_data(name) and data_folder() is None:
            print(f"left as it is: {name} (needs EVENRANK_TEST_DATA)")
            continue
        start = time.perf_counter()
        new = to_json(cases[name]())
        seconds = time.perf_counter() - start
        if name not in values:
            print(f"new: {name} ({seconds:.1f} s)")
        elif changes := list(differences(values[name], new)):
            print(f"changed: {name}: {len(changes)} values, such as {changes[0]}")
        else:
            new = values[name]
        if seconds > 5 and name not in slow:
            print(f"takes long: {name} ({seconds:.1f} s); add it to SLOW of its module")
        values[name] = new
    VALUES.write_text(json.dumps(values, indent=0, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
