"""Threads, forks and numba's cache: what evenrank needs of the process it runs in.

Imported with the package, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evenrank.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Future

_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
_forked_with_threads: set[int] = set()  # processes that were forked after Polars had started its threads
_threads: dict[str, int | None] = {"limit": None}


def set_numba_cache_dir() -> None:
    """Make sure that numba has a folder for compiled code; without one it refuses to work.

    The usual ones are ``NUMBA_CACHE_DIR``, the package itself and the user's cache. If none can be written
    to, as in a hardened container, a private folder among the temporary files is used; if there is none
    either, code is compiled anew in each process.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  may not exist
    usual = (os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).parent / "__pycache__", f"{home}/numba")
    if any(folder and _is_creatable(Path(folder)) for folder in usual):
        return
    private = _private_folder()
    if private is None:
        from numba.core import dispatcher

        setattr(dispatcher.Dispatcher, "enable_caching", lambda self: None)  # noqa: B010  mypy takes it amiss
        return
    os.environ["NUMBA_CACHE_DIR"] = private  # for child processes too
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = private


def _is_creatable(folder: Path) -> bool:
    """Whether this folder can be created and written to."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _private_folder() -> str | None:
    """A temporary folder that only this user can write to, since the code in it will be executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    for parent in (os.environ.get("TMPDIR"), *_TEMPORARY):
        if not parent:
            continue
        folder = Path(parent) / f"evenrank-numba-{user}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            info = folder.lstat()
        except OSError:
            continue
        private = stat.S_ISDIR(info.st_mode) and info.st_uid == user and not info.st_mode & 0o077
        if private and os.access(folder, os.W_OK | os.X_OK):
            return str(folder)
    return None


def watch_forks() -> None:
    """Remember which processes are forked after Polars has started its threads."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=_before_fork)


def _before_fork() -> None:
    if _polars_has_threads():
        _forked_with_threads.add(os.getpid())


def _polars_has_threads() -> bool:
    """Whether Polars has started its threads: by their names on Linux; elsewhere, whether it is imported."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [(task / "comm").read_bytes() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return True
    return any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)


def refuse_after_fork() -> None:
    """Refuse to work with Polars in a process that was forked after Polars had started its threads.

    Polars would wait forever for threads that the child does not have. The functions that turn inputs into
    tables call this, and nearly everything passes through them.
    """
    if _forked_with_threads - {os.getpid()}:
        raise InputError(
            "this process was forked after Polars had started its threads, and would wait for them forever; "
            "start workers with spawn, or with joblib's loky"
        )


def refuse_without_jit() -> None:
    """Refuse to load kernels that read memory by address, which Python itself cannot do."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise InputError("NUMBA_DISABLE_JIT is set, but evenrank's kernels run only compiled; unset it")


def set_threads(limit: int | None) -> None:
    """Limit the threads of this process; None for one per core."""
    _threads["limit"] = limit


def thread_count() -> int:
    """How many threads to use: the limit that was set, or the cores this process may run on."""
    if limit := _threads["limit"]:
        return limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int
) -> Iterator[_Result]:
    """Map in worker threads, a bounded number of items ahead, yielding results in the order of the items."""
    from concurrent.futures import ThreadPoolExecutor

    futures: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                futures.append(pool.submit(function, item))
                if len(futures) > 2 * threads:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()
