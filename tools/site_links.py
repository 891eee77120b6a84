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
SAMPLE = "sample-report.html"
MARK = "<!-- sample report -->"
"""Where a page links to the sample report, which is made when the site is."""
_ROLE = re.compile(r":(?:func|class|meth|attr|mod|data):(?=<code>)")


def on_files(files: Files, config: Any) -> Files:
    """Add the repository's files that are shown on the site."""
    for path in SHOWN:
        files.append(
            File.generated(config, f"repository/{path}", content=(ROOT / path).read_text(encoding="utf-8"))
        )
    files.append(File.generated(config, SAMPLE, content=_sample()))
    return files


def _sample() -> str:
    """The report of the demo collection, as `evenrank audit` writes it."""
    import evenrank as er
    from evenrank import demo

    here = demo.folder()
    docs, queries, qrels = er.load(here)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    found = er.audit(runs, docs=docs, queries=queries, qrels=qrels, genders=here / "genders.tsv")
    return found.page(title="Search bias audit of the demo collection")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave the documentation lead to the copies; those of the copies lead back."""
    if page.file.src_uri.startswith("repository/"):
        return markdown.replace("](docs/", "](../")
    depth = page.file.src_uri.count("/")
    markdown = markdown.replace(MARK, f"[Open the whole report]({'../' * depth}{SAMPLE}).")

    def led(link: re.Match[str]) -> str:
        leaves = link["up"].count("../") == depth + 1
        return f"]({'../' * depth}repository/{link['path']}" if leaves and link["path"] in SHOWN else link[0]

    return _LINK.sub(led, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings say :func:`evenrank.measure`; readers need the name alone."""
    return _ROLE.sub("", html)
