"""The process of one audit: what to do comes as JSON on stdin, what is wrong goes to stdout in one line."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from evenrank.data.files import reading, unpacking
from evenrank.errors import InputError

_BLOCK = 1 << 20


def work(asked: dict[str, Any]) -> None:
    """Audit the files against the index and write the report."""
    from evenrank.auditing import audit
    from evenrank.measures.evaluate import run_name
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
        missing="zero",
    )
    found.report(asked["report"], title=f"Audit of {names['run']}")


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
