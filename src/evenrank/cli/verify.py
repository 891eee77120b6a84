"""`evenrank verify`: is a bundle whole, and do its inputs give its numbers?"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.bundling import Asked, made
from evenrank.cli.common import deliver, note
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.auditing.bundle import Bundle

MATCH, MISMATCH, DAMAGED = 0, 1, 5
_SHOWN = 5  # differences that are named; there may be thousands


def verify_command(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE.zip", help="What `audit --bundle` wrote.")],
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with the inputs, to compute and render everything again."),
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Accepted signers: an allowed-signers file of ssh, or minisign's public key."
        ),
    ] = None,
) -> int:
    """Check a bundle: its hashes, its signature and, given the inputs, every number.

    Exit codes: 0 everything checked matches, 1 the inputs give other results (or are not the audit's),
    2 bad input, 5 the bundle is damaged or its signature does not fit.

        evenrank verify audit.zip --inputs data/
    """
    from evenrank.auditing.bundle import BundleError, read_bundle, signature

    try:
        result = read_bundle(bundle)
    except BundleError as error:
        deliver(f"damaged: {error}", None)
        return DAMAGED
    deliver(f"SHA-256: {result.sha256}", None)
    signed = signature(bundle, signers)
    deliver(signed.said, None)
    if signed.good is False:
        return DAMAGED
    if signers is not None and signed.good is None:
        raise InputError("there is no signature to check; leave --signers out", path=bundle)
    _say_completeness(result)
    if inputs is None:
        deliver("hashes consistent; numbers not re-computed", None)
        return MATCH
    return _again(result, inputs)


def _say_completeness(found: Bundle) -> None:
    from evenrank.auditing.bundle import STATEMENT

    statement = found.json(STATEMENT)
    missing = ", ".join(statement.get("missing", []))
    said = "complete" if statement.get("complete") else f"incomplete: {missing}"
    deliver(f"profile {statement.get('profile')}: {said}", None)


def _again(found: Bundle, folder: Path) -> int:
    """Compute and render everything again, and compare."""
    from evenrank.auditing.bundle import APART, AUDIT, COMMAND, locate
    from evenrank.auditing.profiles import state

    located, changed, lacking = locate(found.inputs, folder)
    if lacking:
        one = lacking[0]
        problem = f"{one.name} ({one.role}) is not there; SHA-256 {one.sha256}"
        raise InputError(problem, path=folder)
    for one in changed:
        deliver(f"mismatch: {one.name} ({one.role}) is not the file of the audit; SHA-256 {one.sha256}", None)
    if changed:
        return MISMATCH
    requested = found.json(COMMAND)
    with tempfile.TemporaryDirectory() as temporary:
        # Under the names that they had: formats and provenance follow the name.
        links = {}
        for name, path in located.items():
            links[name] = Path(temporary) / name
            links[name].parent.mkdir(parents=True, exist_ok=True)
            links[name].symlink_to(path.resolve())
        try:
            again = Asked.of(requested["asked"], links)
            audit = again.audit()
            statement = state(requested["profile"], requested["stated"], audit)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("command.json cannot be followed by this evenrank", path=found.path) from error
        files = made(again, audit, statement, {one.name: one for one in found.inputs})
    theirs = {name: content for name, content in found.files.items() if name not in APART}
    if theirs == files:
        count = sum(1 for _ in _numbers(json.loads(files[AUDIT])))
        deliver(f"match: {len(files)} files made again, {count:,} numbers re-computed, all the same", None)
        return MATCH
    _say_differences(theirs, files, found)
    return MISMATCH


def _say_differences(theirs: Mapping[str, bytes], files: Mapping[str, bytes], found: Bundle) -> None:
    from evenrank.auditing.bundle import AUDIT, ENVIRONMENT, environment

    for name in sorted(theirs.keys() | files.keys()):
        if theirs.get(name) == files.get(name):
            continue
        deliver(f"mismatch: {name}", None)
        if name == AUDIT and name in theirs:
            each = list(_differences(found.json(AUDIT), json.loads(files[AUDIT])))
            for place, before, now in each[:_SHOWN]:
                deliver(f"  {place}: {before} in the bundle, {now} from the inputs", None)
            if len(each) > _SHOWN:
                deliver(f"  and {len(each) - _SHOWN:,} more", None)
    for what, old, new in _differences(found.json(ENVIRONMENT), environment()):
        note(f"another environment: {what} was {old}, is {new}")


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two JSON values differ, leaf by leaf."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{place}[{at}]")
    elif old != new:
        yield place, _short(old), _short(new)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
