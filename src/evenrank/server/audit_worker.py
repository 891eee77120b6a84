"""The process of one audit: what to do comes as JSON on stdin, what is wrong goes to stdout in one line."""

from __future__ import annotations

import json
import sys
from typing import Any

from evenrank.errors import InputError


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
    try:
        work(asked)
    except InputError as error:
        print(_readable(error, asked))
        return 2
    return 0


def _readable(error: InputError, asked: dict[str, Any]) -> str:
    """The message, with the sender's names of the files instead of ours."""
    message = " ".join(str(error).split())
    for which, name in asked["names"].items():
        message = message.replace(asked[which], name)
    return message


if __name__ == "__main__":
    sys.exit(main())
