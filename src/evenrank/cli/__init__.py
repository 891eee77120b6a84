"""The command line. `main` turns errors into one line and an exit code.

0: done, or nobody reads the output any more. 1: a bound is exceeded. 2: bad input, or no room for the
output. 3: our fault. 130: interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run `evenrank` with these arguments and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    try:
        from evenrank.cli.app import app

        code = int(app(given, prog_name="evenrank", standalone_mode=False) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except (Exception, SystemExit) as error:
        return _explain(error, debug)
    return _complain("interrupted", code) if code == _INTERRUPTED else code


def _explain(error: BaseException, debug: bool) -> int:
    """The exit code of an error, after it was reported."""
    from evenrank.errors import InputError

    if _errno(error) == errno.EPIPE:  # the reader of our output has gone, as with `| head`
        _silence()
        return 0
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if hasattr(error, "exit_code") and hasattr(error, "show"):  # wrong usage, as click says it
        error.show()
        return int(error.exit_code)
    if type(error).__name__ == "Abort":  # the end of the input, where an answer was expected
        return _complain("aborted", 1)
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        _silence()
        message, code = f"cannot write: {error.strerror}", 2
    elif isinstance(error, InputError):
        message, code = str(error), 2
    else:
        message, code = f"internal error: {type(error).__name__}: {error}; --debug shows where", 3
    return code if debug else _complain(message, code)


def _errno(error: BaseException) -> int | None:
    """Error number of the system; Rich and Typer exit with 1 while they handle a broken pipe."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return cause.errno if isinstance(cause, OSError) else None


def _silence() -> None:
    """Let what is still buffered go nowhere, so that Python does not try to write it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split("\n"))
    print(f"evenrank: {line}", file=sys.stderr)
    return code
