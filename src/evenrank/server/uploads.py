"""Audits of uploaded runs: each in a process of its own, which can be stopped, and a few reports kept.

Run as a program this is that process: what to do comes as JSON on stdin, what is wrong goes to stdout in one
line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import secrets
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import UploadFile

from evenrank.data.files import reading, unpacking
from evenrank.errors import InputError
from evenrank.server.limits import Limits, busy

if TYPE_CHECKING:
    from evenrank.server.searching import Service

KEPT = 20
"""Reports that are kept; then the oldest goes."""
_BLOCK = 1 << 20
_NAMES = {
    "run": "run",
    "baseline": "baseline",
    "qrels": "qrels",
    "queries": "queries.tsv",
    "genders": "genders.tsv",
}


class Auditor:
    """Runs audits and keeps their reports in a temporary folder, which ends with the server."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self._service = service
        self._limits = limits
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._reports: OrderedDict[str, Path] = OrderedDict()
        self._running = 0

    async def audit(self, files: Mapping[str, UploadFile]) -> str:
        """Audit the uploaded files against the collection; the name of the report."""
        if self._service.index is None:
            raise InputError("no collection is served, so there is nothing to audit against")
        if self._running >= self._limits.audits:
            raise busy("another audit is running; try again when it is done")
        self._running += 1
        try:
            token = secrets.token_urlsafe(16)
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="evenrank-")
            folder = Path(self._folder.name) / token
            folder.mkdir()
            try:
                given = await self._store(files, folder)
                await self._work(folder, given)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            self._keep(token, folder)
            return token
        finally:
            self._running -= 1

    def report(self, token: str) -> str | None:
        """A report that is still kept."""
        path = self._reports.get(token)
        return None if path is None else path.read_text(encoding="utf-8")

    def close(self) -> None:
        self._reports.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _store(self, files: Mapping[str, UploadFile], folder: Path) -> dict[str, Any]:
        """Write the files under names of ours; those of the sender are shown, not used."""
        found: dict[str, Any] = {"names": {}}
        for name, file in files.items():
            if not file.filename and not file.size:  # a form sends an empty part for a file not chosen
                continue
            path = folder / _NAMES[name]
            with path.open("wb") as out:
                while block := await file.read(_BLOCK):
                    out.write(block)
            found[name] = str(path)
            found["names"][name] = _shown(file.filename or name)
        if "run" not in found or not Path(found["run"]).stat().st_size:
            raise InputError("choose the file of a run: six columns, as TREC has them")
        return found

    async def _work(self, folder: Path, given: dict[str, Any]) -> None:
        assert self._service.index is not None
        asked = {
            **given,
            "index": str(self._service.index.path),
            "lexicon": str(self._service.lexicon),
            "report": str(folder / "report.html"),
            "unpacked": self._limits.unpacked,
            "rows": self._limits.rows,
            "memory": self._limits.memory,
        }
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "evenrank.server.uploads",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            said, _ = await asyncio.wait_for(
                worker.communicate(json.dumps(asked).encode()), self._limits.audit_seconds
            )
        except TimeoutError:
            raise busy(f"the audit took longer than {self._limits.audit_seconds:g} seconds") from None
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
        if worker.returncode == 2:
            raise InputError(said.decode("utf-8", "replace").strip())
        if worker.returncode:
            raise busy("the audit failed; the run may need more memory than there is")

    def _keep(self, token: str, folder: Path) -> None:
        for path in folder.iterdir():
            if path.name != "report.html":
                path.unlink()
        self._reports[token] = folder / "report.html"
        while len(self._reports) > KEPT:
            _, oldest = self._reports.popitem(last=False)
            shutil.rmtree(oldest.parent, ignore_errors=True)


def _shown(name: str) -> str:
    """A file's name as the name of a run: its last part, printable, and not endless."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(c for c in last if c.isprintable())[:60] or "run"


def work(asked: dict[str, Any]) -> None:
    """Audit the files against the index and write the report."""
    from evenrank.auditing import audit
    from evenrank.measures.inputs import run_name
    from evenrank.rankers.index import Index

    names = {which: run_name(name) or which for which, name in asked["names"].items()}
    if names.get("baseline") == names["run"]:
        names["baseline"] += " (baseline)"
    runs = {names[which]: asked[which] for which in ("baseline", "run") if which in asked}
    found = audit(
        runs,
        docs=Index.open(asked["index"]).docs,
        lexicon=asked["lexicon"],
        qrels=asked.get("qrels"),
        queries=asked.get("queries"),
        genders=asked.get("genders"),
        missing="zero",
    )
    found.report(asked["report"], title=f"Audit of {names['run']}", back=("/audit", "Audit another run"))


def main() -> int:
    asked = json.load(sys.stdin)
    # Memory that is written to, not addresses: compilers and Arrow reserve many more of these.
    resource.setrlimit(resource.RLIMIT_DATA, (asked["memory"], asked["memory"]))
    try:
        for which in asked["names"]:
            check_size(Path(asked[which]), asked["unpacked"], asked["rows"])
        work(asked)
    except InputError as error:
        print(_readable(error, asked))
        return 2
    return 0


def check_size(path: Path, most: int, rows: int) -> None:
    """Refuse a file that unpacks to too much, before anything holds it."""
    size = lines = 0
    with reading(path), path.open("rb") as file:
        stream = unpacking(file, path)
        buffer = bytearray(_BLOCK)
        while count := stream.readinto(buffer):
            size += count
            lines += buffer.count(b"\n", 0, count)
            if size > most:
                raise InputError(f"more than {most >> 20:,} MB of text", path=path)
            if lines > rows:
                raise InputError(f"more than {rows:,} lines", path=path)


def _readable(error: InputError, asked: dict[str, Any]) -> str:
    """The message, with the sender's names of the files instead of ours."""
    message = " ".join(str(error).split())
    for which, name in asked["names"].items():
        message = message.replace(asked[which], name)
    return message


if __name__ == "__main__":
    sys.exit(main())
