"""Run the examples of one documentation page in this process: `python run_page.py STEPS RESULTS`.

STEPS is a JSON list of [kind, source], with kind "python" or "console". Python blocks share their names.
An `evenrank` command without shell syntax is a call of `evenrank.cli.main`; other commands are run by bash.
RESULTS is written as a JSON list of [output, exit code]. Only the standard library and evenrank are needed,
so that any interpreter with evenrank installed can run this file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
_SHELL_SYNTAX = re.compile(r"[|&;<>$`*?~#(){}\[\]]")


def captured(action: Callable[[], int]) -> tuple[str, int]:
    """Return what an action and its child processes write to stdout and stderr, and its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            code = action()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for number, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)
        file.seek(0)
        return file.read().decode(), code


def run_python(source: str, names: dict[str, Any]) -> int:
    try:
        exec(compile(source, "<block>", "exec"), names)
    except BaseException:  # SystemExit and KeyboardInterrupt are failures of a block, too
        traceback.print_exc()
        return 1
    return 0


def run_command(command: str) -> int:
    words = command.replace("\\\n", " ")
    if words.startswith("evenrank ") and not _SHELL_SYNTAX.search(_QUOTED.sub("", words)):
        from evenrank.cli import main

        return main(shlex.split(words)[1:])
    return subprocess.run(["bash", "-c", command], check=False).returncode


def run(steps: list[tuple[str, str]]) -> list[tuple[str, int]]:
    """Run the steps up to the first Python block that fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for kind, source in steps:
        if kind == "console":
            results.append(captured(lambda source=source: run_command(source)))
            continue
        results.append(captured(lambda source=source: run_python(source, names)))
        if results[-1][1] != 0:
            break
    return results


if __name__ == "__main__":
    sys.path[0] = ""  # modules that a page saves are imported from the working directory
    steps_file, results_file = map(Path, sys.argv[1:])
    results_file.write_text(json.dumps(run(json.loads(steps_file.read_text()))))
