"""What the site needs beyond its pages: files of the repository that pages link to, and plain references.

MkDocs calls these functions by name. Pages are read on their own too, so they link to CONTRIBUTING.md or
examples/ as they lie in the repository; on the site these files are under repository/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
SHOWN = ("CONTRIBUTING.md", "CHANGELOG.md", "examples/bias-gate.yml", "examples/pytest_evenrank.py")
_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[\w./-]+)")
_ROLE = re.compile(r":(?:func|class|meth|attr|mod|data):(?=<code>)")


def on_files(files: Files, config: Any) -> Files:
    """Add the repository's files that are shown on the site."""
    for path in SHOWN:
        files.append(
            File.generated(config, f"repository/{path}", content=(ROOT / path).read_text(encoding="utf-8"))
        )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave the documentation lead to the copies; those of the copies lead back."""
    if page.file.src_uri.startswith("repository/"):
        return markdown.replace("](docs/", "](../")
    depth = page.file.src_uri.count("/")

    def led(link: re.Match[str]) -> str:
        leaves = link["up"].count("../") == depth + 1
        return f"]({'../' * depth}repository/{link['path']}" if leaves and link["path"] in SHOWN else link[0]

    return _LINK.sub(led, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings say :func:`evenrank.measure`; readers need the name alone."""
    return _ROLE.sub("", html)
