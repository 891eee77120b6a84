"""A bundle: one audit as one archive that someone else can check.

The archive is canonical: fixed order, fixed times, nothing compressed. The same audit gives the same bytes,
and any changed byte changes its hash. A manifest inside holds the SHA-256 of every file in it and of every
input that the numbers were made from; the inputs themselves stay outside.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import evenrank
from evenrank.data.files import BLOCK, WHOLE, check_names, one_line, reading, writing
from evenrank.data.schema import listing
from evenrank.errors import InputError

FORMAT, VERSION = "evenrank-bundle", 1
MANIFEST, COMMAND, ENVIRONMENT, PDF = "manifest.json", "command.json", "environment.json", "report.pdf"
AUDIT, REPORT, STATEMENT = "audit.json", "report.html", "statement.json"
APART = (COMMAND, ENVIRONMENT, PDF)
"""Files that are not made again when a bundle is verified: how it was asked for, where, and as a print."""
NAMESPACE = "evenrank-bundle"
"""What a signature is for, so that one made for something else does not pass."""
MOST = 1000
"""Files in a bundle; evenrank writes about a dozen."""
_TIME = (1980, 1, 1, 0, 0, 0)
_PACKAGES = (
    "numpy", "polars", "pyarrow", "numba", "scipy", "ir-measures", "altair", "vl-convert-python", "PyStemmer",
    "jinja2",
)  # fmt: skip


class BundleError(InputError):
    """The archive is no whole bundle: damaged, changed, or not written by evenrank."""


@dataclass(frozen=True)
class Input:
    """A file that numbers were made from: what it was given as, and its name in the bundle."""

    role: str
    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, role: str, path: str | os.PathLike[str], taken: Mapping[str, Input]) -> Input:
        """Hash a file; a name that another content has taken gets the role before it."""
        digest, size = sha256(path)
        name = _free_name(re.sub(r"[^\w.]+|\.\.+", "-", role), Path(path).name, digest, taken)
        return cls(role, name, size, digest)

    def to_dict(self) -> dict[str, Any]:
        return {"role": self.role, "name": self.name, "bytes": self.bytes, "sha256": self.sha256}


def _free_name(folder: str, name: str, digest: str, taken: Mapping[str, Input]) -> str:
    """A name that no other content has: the file's own, else in a folder, which is no other file's name."""
    free = name
    while (taken[free].sha256 != digest) if free in taken else _beside(free, taken):
        free, folder = f"{folder}/{name}", f"{folder}-"
    return free


def _beside(name: str, taken: Mapping[str, Input]) -> bool:
    """Whether this name would be a file and a folder."""
    return str(PurePosixPath(name).parent) in taken or any(one.startswith(f"{name}/") for one in taken)


@dataclass(frozen=True, eq=False)
class Bundle:
    """What an archive holds, after every byte of it was checked against the manifest."""

    path: Path
    sha256: str
    files: Mapping[str, bytes]
    inputs: tuple[Input, ...]

    def json(self, name: str) -> Any:
        """One of its JSON files."""
        try:
            return json.loads(self.files[name])
        except (KeyError, ValueError) as error:
            raise BundleError(f"{name} is missing or not JSON", path=self.path) from error


def sha256(path: str | os.PathLike[str]) -> tuple[str, int]:
    """SHA-256 of a file as stored, and its size."""
    digest, size = hashlib.sha256(), 0
    with reading(path), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def environment() -> dict[str, Any]:
    """Where an audit was made: versions of evenrank, Python, the system and what numbers come through."""
    from importlib.metadata import PackageNotFoundError, version

    result: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = None
    return {
        "evenrank": evenrank.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "packages": result,
    }


def as_json(content: Any) -> bytes:
    """JSON as it stands in a bundle."""
    return (json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def write_bundle(
    path: str | os.PathLike[str], files: Mapping[str, bytes], inputs: Mapping[str, Input]
) -> str:
    """Write the archive, whole or not at all; returns its SHA-256."""
    _check_names(files, inputs.values(), path)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "inputs": [one.to_dict() for one in inputs.values()],
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
        "made_again_by_verify": [name for name in sorted(files) if name not in APART],
    }
    content = archive({MANIFEST: as_json(manifest), **files})
    if len(content) > WHOLE:
        problem = f"would have more than {WHOLE >> 20:,} MB; leave out --per-query"
        raise InputError(problem, path=path)
    with writing(path) as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


def archive(files: Mapping[str, bytes]) -> bytes:
    """The canonical archive of these files: manifest first, then by name; stored, with one fixed time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(files, key=lambda name: (name != MANIFEST, name)):
            facts = zipfile.ZipInfo(name, _TIME)
            facts.create_system, facts.external_attr = 3, 0o644 << 16  # as if made on Unix, wherever it was
            target.writestr(facts, files[name])
    return buffer.getvalue()


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Open an archive and check every byte of it; nothing is unpacked to the disk.

    Raises
    ------
    BundleError
        No archive, one that is not canonical, a file that is missing, too many or not what the manifest says.
    """
    with reading(path):
        if Path(path).stat().st_size > WHOLE:
            raise BundleError(f"more than {WHOLE >> 20:,} MB, so no bundle", path=path)
        content = Path(path).read_bytes()
    files = dict(_members(content, path))
    manifest = _manifest(files.pop(MANIFEST, None), path)
    listed = manifest["files"]
    for name in sorted(files.keys() ^ listed.keys()):
        there, lacking = ("archive", "manifest") if name in files else ("manifest", "archive")
        raise BundleError(f"{listing([name])} is in the {there} but not in the {lacking}", path=path)
    inputs = tuple(Input(**one) for one in manifest["inputs"])
    try:
        _check_names(files, inputs, path)
    except InputError as error:
        raise BundleError(error.message, path=path) from None
    for name in sorted(files):
        if hashlib.sha256(files[name]).hexdigest() != listed[name]:
            raise BundleError(
                f"{listing([name])} was changed: its SHA-256 is not that of the manifest", path=path
            )
    # What a reader of zip files passes over (comments, times, bytes between entries) counts too.
    if archive({MANIFEST: as_json(manifest), **files}) != content:
        raise BundleError("the archive was changed: it is not as evenrank writes it", path=path)
    return Bundle(Path(path), hashlib.sha256(content).hexdigest(), files, inputs)


def _check_names(files: Iterable[str], inputs: Iterable[Input], path: str | os.PathLike[str]) -> None:
    """Refuse names of files or inputs that could lead elsewhere, and one name for two contents."""
    check_names([MANIFEST, *files], path)
    check_names([name for name, _ in {(one.name, one.sha256): None for one in inputs}], path)


def _members(content: bytes, path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an archive; each name once, and nothing that unpacks."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            entries = source.infolist()
            if len(entries) > MOST:
                raise BundleError(f"{len(entries):,} files, so no bundle", path=path)
            seen: set[str] = set()
            for entry in entries:
                name = entry.filename
                if name in seen:
                    raise BundleError(f"{listing([name])} is in the archive twice", path=path)
                if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                    raise BundleError(f"{listing([name])} is packed, which evenrank never does", path=path)
                if entry.file_size > len(content):
                    raise BundleError(f"{listing([name])} is longer than the archive", path=path)
                seen.add(name)
                yield name, source.read(entry)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"not a whole zip archive: {one_line(error)}", path=path) from error


def _manifest(content: bytes | None, path: str | os.PathLike[str]) -> dict[str, Any]:
    problem = f"no bundle of evenrank: {MANIFEST} is missing or damaged"
    try:
        manifest = json.loads(content or b"")
        if manifest["format"] != FORMAT or not all(
            isinstance(one["name"], str)
            and isinstance(one["role"], str)
            and isinstance(one["bytes"], int)
            and isinstance(one["sha256"], str)
            and len(one) == 4
            for one in manifest["inputs"]
        ):
            raise BundleError(problem, path=path)
        if manifest["version"] != VERSION:
            said = f"version {manifest['version']} of the bundle format; this evenrank reads {VERSION}"
            raise BundleError(said, path=path)
        if not all(isinstance(one, str) for pair in manifest["files"].items() for one in pair):
            raise BundleError(problem, path=path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(problem, path=path) from error
    return dict(manifest)


def locate(inputs: tuple[Input, ...], folder: Path) -> tuple[dict[str, Path], list[Input], list[Input]]:
    """Find inputs in a folder by their content: by name first, else any file of that size and hash.

    Returns where each lies, those that are there under their name with another content, and those that are
    not there at all.
    """
    if not folder.is_dir():
        raise InputError("no such folder; name the one that holds the inputs", path=folder)
    by_size: dict[int, list[Path]] = {}
    by_name: dict[str, list[Path]] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            if path.is_file():
                by_size.setdefault(path.stat().st_size, []).append(path)
                by_name.setdefault(name, []).append(path)
    result: dict[str, Path] = {}
    changed: list[Input] = []
    lacking: list[Input] = []
    for one in inputs:
        plain = PurePosixPath(one.name).name
        # First what bears the name, so that few files have to be read.
        same = [path for path in by_size.get(one.bytes, []) if path.name == plain]
        same += [path for path in by_size.get(one.bytes, []) if path.name != plain]
        match = next((path for path in same if sha256(path)[0] == one.sha256), None)
        if match is not None:
            result[one.name] = match
        else:
            (changed if plain in by_name else lacking).append(one)
    return result, changed, lacking


@dataclass(frozen=True)
class Signature:
    """What is known about the signature of a bundle. `good` is None where there is none to check."""

    good: bool | None
    said: str


UNSIGNED = Signature(None, "unsigned: authorship not proven")


def sign(path: Path, key: Path) -> Path:
    """Sign an archive with `ssh-keygen -Y`, or with minisign where the key is one of its own.

    The signature stands beside the archive: audit.zip.sig, or audit.zip.minisig.
    """
    if not key.is_file():
        raise InputError("no such key", path=key)
    mini = key.read_bytes()[:200].startswith(b"untrusted comment:")
    built = path.with_name(path.name + (".minisig" if mini else ".sig"))
    built.unlink(missing_ok=True)
    if mini:
        done = _called(["minisign", "-S", "-s", str(key), "-m", str(path)])
    else:
        done = _called(["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path)])
    if done.returncode or not built.is_file():
        raise InputError(f"cannot sign with this key: {_last_line(done)}", path=key)
    return built


def signature(path: Path, signers: Path | None) -> Signature:
    """Check the signature beside an archive against `signers`: ssh's allowed signers, or minisign's key."""
    ssh, mini = (path.with_name(path.name + end) for end in (".sig", ".minisig"))
    if mini.is_file():
        if signers is None:
            said = "signed with minisign, not checked; name the public key with --signers"
            return Signature(None, f"{said}: authorship not proven")
        done = _called(["minisign", "-V", "-p", str(signers), "-m", str(path), "-x", str(mini)])
        said = f"signed with the key of {signers}" if not done.returncode else "the signature does not fit"
        return Signature(not done.returncode, said)
    if not ssh.is_file():
        return UNSIGNED
    content = path.read_bytes()
    how = ["-n", NAMESPACE, "-s", str(ssh)]
    if signers is None:
        done = _called(["ssh-keygen", "-Y", "check-novalidate", *how], content)
        if done.returncode:
            return Signature(False, "the signature does not fit")
        fits = _last_line(done).removeprefix("Good ")
        return Signature(
            None, f"fits a {fits}; whose key that is, --signers would tell: authorship not proven"
        )
    who = _called(["ssh-keygen", "-Y", "find-principals", "-s", str(ssh), "-f", str(signers)])
    names = who.stdout.decode(errors="replace").split("\n")[0].strip()
    if who.returncode or not names:
        return Signature(False, f"signed with a key that is not in {signers}")
    done = _called(
        ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", names.split(",")[0], *how], content
    )
    return Signature(
        not done.returncode, f"signed by {names}" if not done.returncode else "the signature does not fit"
    )


def _called(command: list[str], content: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    tool = shutil.which(command[0])
    if tool is None:
        raise InputError(f"{command[0]} is not installed; it signs bundles and checks signatures")
    return subprocess.run([tool, *command[1:]], input=content, capture_output=True, check=False)


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    said = (done.stdout + done.stderr).decode(errors="replace").strip().split("\n")
    return said[-1].strip() or f"exit code {done.returncode}"
