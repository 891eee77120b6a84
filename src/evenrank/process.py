"""What evenrank needs of the process it runs in: a place to keep compiled code, and its threads.

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
_state = {"threads": False, "forked": False}
_most: dict[str, int | None] = {"threads": None}


def settle_cache() -> None:
    """See to it that numba finds a folder to keep compiled code in; it refuses to work without one.

    It looks at ``NUMBA_CACHE_DIR``, at the package itself and at the user's cache. Where none can be written
    to, as in a hardened container, a folder of this user among the temporary files is used; where there is
    none either, code is compiled anew in each process.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  may not exist
    usual = (os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).parent / "__pycache__", f"{home}/numba")
    if any(place and _can_be_made(Path(place)) for place in usual):
        return
    folder = _own_folder()
    if folder is None:
        from numba.core import dispatcher

        setattr(dispatcher.Dispatcher, "enable_caching", lambda self: None)  # noqa: B010  mypy takes it amiss
        return
    os.environ["NUMBA_CACHE_DIR"] = folder  # for child processes too
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = folder


def _can_be_made(folder: Path) -> bool:
    """Can this folder be made and written to?"""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _own_folder() -> str | None:
    """A folder among the temporary files that is this user's alone: what lies there will be executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    for place in (os.environ.get("TMPDIR"), *_TEMPORARY):
        if not place:
            continue
        folder = Path(place) / f"evenrank-numba-{user}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            facts = folder.lstat()
        except OSError:
            continue
        private = stat.S_ISDIR(facts.st_mode) and facts.st_uid == user and not facts.st_mode & 0o077
        if private and os.access(folder, os.W_OK | os.X_OK):
            return str(folder)
    return None


def watch_forks() -> None:
    """Note, in a forked process, whether Polars had threads in the one it was forked from."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _before_fork() -> None:
    _state["threads"] = _polars_has_threads()


def _after_fork() -> None:
    _state["forked"] = _state["forked"] or _state["threads"]


def _polars_has_threads() -> bool:
    """Has Polars started its threads? Linux knows their names; elsewhere an import is taken for a start."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [(task / "comm").read_bytes() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return True
    return any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)


def refuse_after_fork() -> None:
    """Refuse work in a process that was forked when Polars had threads: it would wait for them for ever."""
    if _state["forked"]:
        raise InputError(
            "this process was forked after Polars had started its threads, and would wait for them forever; "
            "start workers with spawn, or with joblib's loky"
        )


def refuse_without_jit() -> None:
    """Refuse to load kernels that read memory by address, which Python itself cannot do."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise InputError("NUMBA_DISABLE_JIT is set, but evenrank's kernels run only compiled; unset it")


def set_threads(most: int | None) -> None:
    """Let this process work in so many threads at most from now on; None for as many as it has cores."""
    _most["threads"] = most


def cores() -> int:
    """How many threads this process may use."""
    return _most["threads"] or _own_cores()


def _own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int
) -> Iterator[_Result]:
    """Map in worker threads, a bounded number of items ahead, yielding results in the order given."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
