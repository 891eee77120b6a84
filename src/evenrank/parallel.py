"""Forks, numba's cache and the number of threads: what evenrank needs of the process it runs in.

Imported with the package, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evenrank.errors import InputError

forked_with_threads: set[int] = set()
"""Processes that were forked after Polars had started its threads."""
threads: dict[str, int | None] = {"limit": None}


def set_numba_cache_dir() -> None:
    """Let numba work where it has no folder for compiled code, as in a hardened container.

    The usual ones are ``NUMBA_CACHE_DIR``, the package itself and the user's cache. If none can be written
    to, code is compiled anew in each process.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  may not exist
    usual = (os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).parent / "__pycache__", f"{home}/numba")
    if not any(folder and _is_creatable(Path(folder)) for folder in usual):
        from numba.core import dispatcher

        setattr(dispatcher.Dispatcher, "enable_caching", lambda self: None)  # noqa: B010  mypy takes it amiss


def _is_creatable(folder: Path) -> bool:
    """Whether this folder can be created and written to."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def watch_forks() -> None:
    """Remember which processes are forked after Polars has started its threads."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=_before_fork)


def _before_fork() -> None:
    if _polars_has_threads():
        forked_with_threads.add(os.getpid())


def _polars_has_threads() -> bool:
    """Whether Polars has started its threads: by their names on Linux; elsewhere, whether it is imported."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [(task / "comm").read_bytes() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return True
    return any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)


def refuse_without_jit() -> None:
    """Refuse to load kernels that read memory by address, which Python itself cannot do."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise InputError("NUMBA_DISABLE_JIT is set, but evenrank's kernels run only compiled; unset it")


def set_threads(limit: int | None) -> None:
    """Limit the threads of this process; None for one per core."""
    threads["limit"] = limit
