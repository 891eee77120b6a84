"""The command line. `main` turns errors into one line and an exit code.

0: done. 1: a bound is exceeded, or a bundle does not match its inputs. 2: bad input, or no room for the
output. 3: internal error. 4: a bundle lacks a field of its profile. 5: a bundle is damaged. 130:
interrupted. A reader who has gone does not change the code: see `streams`.
"""

from __future__ import annotations

import errno
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

invoked: list[str] = []
"""The arguments of the command that runs, as they were given: a bundle keeps them."""
_INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: list[str] | None = None) -> int:
    """Run `evenrank` with these arguments and return its exit code."""
    from evenrank.cli.streams import standard_streams

    given = sys.argv[1:] if arguments is None else list(arguments)
    invoked[:] = given
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    plugins, given = _plugins(given)
    with standard_streams(), _warnings_in_one_line():
        if odd := next((each for each in given if not _is_text(each)), None):
            return _complain(f"{odd}: not UTF-8; rename the file, or link to it under another name", 2)
        try:
            from evenrank.cli.app import app

            for path in plugins:
                _load_plugin(path)
            code = int(app(given, prog_name="evenrank", standalone_mode=False) or 0)
            sys.stdout.flush()
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except (Exception, SystemExit) as error:
            return _explain(error, debug)
        return _complain("interrupted", code) if code == _INTERRUPTED else code


def _load_plugin(path: str) -> None:
    """Run a Python file that registers measures, see CONTRIBUTING; once per process."""
    from importlib.util import module_from_spec, spec_from_file_location

    from evenrank.errors import InputError

    place = Path(path)
    if place.suffix != ".py" or not place.is_file():
        raise InputError("no such Python file; a plugin is a .py file that registers measures", path=path)
    name = f"evenrank_plugin_{place.stem}"
    known = sys.modules.get(name)
    if known is not None and Path(str(known.__file__)) == place.resolve():
        return
    spec = spec_from_file_location(name, place.resolve())
    assert spec is not None and spec.loader is not None  # it is a .py file
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"the plugin does not run: {type(error).__name__}: {error}", path=path) from error


def _plugins(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The files named with --plugin, wherever that is written, and the other arguments."""
    plugins, others = list[str](), list[str]()
    rest = iter(arguments)
    for argument in rest:
        if argument == "--plugin":
            plugins.append(next(rest, ""))
        elif argument.startswith("--plugin="):
            plugins.append(argument.removeprefix("--plugin="))
        else:
            others.append(argument)
    return plugins, others


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Our own warnings as a line on stderr; others as ever."""
    from evenrank.cli.streams import as_typed, say
    from evenrank.errors import InputWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        as_ever = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InputWarning):
                say(f"warning: {as_typed(str(message))}")
            else:
                as_ever(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _is_text(argument: str) -> bool:
    """Whether an argument can be written into tables and reports: file names may be any bytes."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain(error: BaseException, debug: bool) -> int:
    """The exit code of an error, after it was reported."""
    from evenrank.cli.streams import CannotWriteError, as_typed
    from evenrank.errors import InputError

    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        error = error.__context__  # click takes it for stdout and exits with 1; ours never raises it
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if type(error).__name__ == "NoArgsIsHelpError":  # nothing is wrong; the help is the answer
        error.show()  # type: ignore[attr-defined]
        return 2
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):  # wrong usage, as click says it
        return _complain(_misused(error), int(error.exit_code))
    if type(error).__name__ == "Abort":  # the end of the input, where an answer was expected
        return _complain("aborted", 1)
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, CannotWriteError) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        message, code = f"cannot write: {error.strerror}", 2
    elif isinstance(error, InputError):
        message, code = as_typed(str(error)), 2
    else:
        message, code = f"internal error: {type(error).__name__}: {error}; --debug shows where", 3
    return code if debug else _complain(message, code)


def _misused(error: Any) -> str:
    """What click finds wrong with the arguments, in one line, with the nearest choice that there is."""
    from evenrank.errors import choice_hint

    said = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    if wrong := re.fullmatch(r"Invalid value for (.+?): '(.*)' is not one of (.+)", said):
        known = re.findall(r"'([^']*)'", wrong[3])
        said = f"{wrong[1].strip(chr(39))} cannot be {wrong[2]!r}; {choice_hint(wrong[2], known)}"
    else:
        said = re.sub(r" \(Possible options: ([^),]+).*\)$", r"; did you mean \1?", said)
        said = re.sub(r"\. Did you mean (.*?)\??$", r"; did you mean \1?", said)
        said = said[0].lower() + said[1:]
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "evenrank"
    shown = f"{where.removeprefix('evenrank').strip()}: {said}".removeprefix(": ")
    return shown if "did you mean" in said else f"{shown}; see {where} -h"


def _complain(message: str, code: int) -> int:
    from evenrank.cli.streams import say

    say(f"evenrank: {message}")
    return code
