"""A query as words only, for engines whose query language gives meaning to everything else."""

from __future__ import annotations

import unicodedata


def words(text: str) -> list[str]:
    """Letters, marks and digits that stand together; quotes, operators and control characters part them.

    Marks belong to the words: without them Hindi or Thai words would fall to pieces.
    """
    return "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in text).split()
