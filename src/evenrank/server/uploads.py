"""Audits of uploaded runs: each in a process of its own, which can be stopped, and a few reports kept."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile

from evenrank.errors import InputError
from evenrank.server.limits import Limits, busy
from evenrank.server.searching import Service

KEPT = 20
"""Reports that are kept; then the oldest goes."""
_BLOCK = 1 << 20
_NAMES = {"run": "run", "baseline": "baseline", "qrels": "qrels", "queries": "queries.tsv"}


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
            "evenrank.server.audit_worker",
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
