"""The command line. `main` turns errors into one line and an exit code.

0: done. 1: a bound is exceeded. 2: bad input. 3: our fault.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run `evenrank` with these arguments and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    from evenrank.cli.app import app
    from evenrank.errors import InputError

    try:
        return int(app(given, prog_name="evenrank", standalone_mode=False) or 0)
    except InputError as error:
        if debug:
            raise
        return _complain(str(error), 2)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # wrong usage, as click says it
            error.show()
            return int(error.exit_code)
        if type(error).__name__ in {"Exit", "Abort"}:
            return int(getattr(error, "exit_code", 1))
        if debug:
            raise
        return _complain(f"internal error: {type(error).__name__}: {error}; --debug shows where", 3)


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split("\n"))
    print(f"evenrank: {line}", file=sys.stderr)
    return code
