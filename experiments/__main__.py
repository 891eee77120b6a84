"""`python -m experiments` lists the studies; `python -m experiments NAME --data DIR [--quick]` runs one."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from evenrank.errors import InputError, choice_hint
from evenrank.show.grid import Grid
from experiments.common import HERE, RESULTS, Results


def studies() -> dict[str, Any]:
    """Return the module of each study by its name."""
    names = sorted(
        path.stem for path in HERE.glob("*.py") if path.stem not in ("__init__", "__main__", "common")
    )
    return {name.replace("_", "-"): import_module(f"experiments.{name}") for name in names}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("study", nargs="?", help="the study to run; without it they are listed")
    parser.add_argument("--data", type=Path, help="the folder with data/, runs/ and oracles/")
    parser.add_argument(
        "--quick", action="store_true", help="under three CPU-minutes; says what it leaves out"
    )
    name = next((each for each in arguments if not each.startswith("-")), None)
    if name is None and not {"-h", "--help"} & {*arguments}:
        _print_list()
        return 0
    known = studies()
    options: dict[str, Any] = {}
    if name in known:
        for option in list(inspect.signature(known[name].run).parameters.values())[1:]:
            options[option.name] = option.default
            flag = f"--{option.name.replace('_', '-')}"
            parser.add_argument(flag, type=type(option.default), default=option.default, metavar="VALUE")
    given = parser.parse_args(arguments)
    if given.study not in known:
        parser.error(f"no study {given.study!r}; {choice_hint(str(given.study), known)}")
    if given.data is None:
        parser.error("name the data: --data DIR")
    command = " ".join(["python -m experiments", *(a if a != str(given.data) else "DIR" for a in arguments)])
    results = Results(given.study, given.data, quick=given.quick, command=command)
    results.console.print(f"[bold]{inspect.getdoc(known[given.study])}[/]\n")
    try:
        known[given.study].run(results, **{option: getattr(given, option) for option in options})
        results.finish()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _print_list() -> None:
    rows = []
    for name, study in studies().items():
        path = RESULTS / f"{name}.json"
        record = json.loads(path.read_text()) if path.exists() else None
        minutes = "not run" if record is None else f"{record['seconds']['cpu'] / 60:.0f}"
        commit = "" if record is None else record["commit"][:8]
        rows.append([name, study.PAPER, study.CONTENT, minutes, commit])
    table = Grid(["study", "paper", "tables and figures", "CPU-minutes", "commit"], rows, 3)
    Console().print(table.terminal())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
