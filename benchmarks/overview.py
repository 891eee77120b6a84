"""docs/reproduce/overview.md out of the pages of the recipes: claim by claim, what holds here.

    python -m benchmarks.overview            the overview, from the pages in docs/reproduce/pages
    python -m benchmarks.overview FOLDER     first take over FOLDER/NAME/RECIPE.json as pages/NAME.json

`make evidence-reproduce` runs the recipes, and does both.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from evenrank.reproduce.page import Claim
from evenrank.reproduce.recipes import RECIPES
from evenrank.show.grid import Grid

DOCS = Path(__file__).parents[1] / "docs" / "reproduce"
VERDICTS = ("holds", "does not hold", "cannot tell")
_PAPERS = {
    "rank-bias": "Rekabsaz & Schedl (SIGIR 2020): neural rankers lean further toward men than BM25",
    "rankers": "The same question, asked of rankers that need no training",
    "gsr-toy": "Fabris et al. (2020): GSR detects the stereotypes of constructed systems",
    "gsr": "Fabris et al. (2020): rankers with word vectors reinforce stereotypes; debiasing helps little",
    "disparities": "Seyedsalehi et al. (SIGIR 2022): male queries are served better, and balancing helps",
    "variants": "Kopeinik et al. (2023), Ratz et al. (2024): answers to neutral queries follow stereotypes",
    "representation": "Lipani et al. (2021), Kay et al. (2015): results under-represent women",
    "query-gender": "Bigdeli, Section 3.1: the gender of a query can be predicted",
    "judgments": "Bigdeli, Section 3.1: judged documents of female and male queries differ",
    "debiased-judgments": "Bigdeli, Section 3.2: generated judgments reduce bias",
    "feedback": "Bigdeli, Section 4.1: bias-aware feedback reduces bias at no cost",
    "negatives": "Bigdeli, Section 4.2: one-sided negatives reduce bias at no cost",
    "tradeoff": "Later work and ours: how much bias can be removed before usefulness suffers",
}
_LEAD = """# What was found

The papers on gender bias in search used MS MARCO, Robust04 and web collections, and the rankers of their
day. Do their claims carry over to other collections? Each [recipe](index.md) repeats one experiment and
tests each claim. This page lists all of them; `make evidence-reproduce` runs the recipes and makes it from
the pages that they write.

How to read it: *holds* and *does not hold* mean that a test at the 5% level found the claim, or its
opposite, on our collections. *Cannot tell* means that it found neither: there were too few queries, no test
can prove the claim, or something was not run. Claims that two things are about the same are decided by
their interval and a margin, not by the p next to them. Tests are corrected within some recipes, but not
over this whole page: of a hundred tests without any true effect, about five would still find something. A
claim that fails here may still be true of the collection that it was made on.

The collections are small: TIME (83 queries on news of 1963), SQuAD (2,114 test questions on sentences of
Wikipedia), wiki (3,909 queries typed into a search engine, 224,453 passages; wiki-small is 41,634 of
these passages, encoded for dense rankers), Grep-BiasIR (117 queries), genderbias-qa (172 questions on
synthetic passages); Google's images for occupations, eight queries to two engines, and tables that the
authors released. The trained rankers are small, and the genders of queries were predicted unless they
came with the data.
"""


def take(folder: Path) -> None:
    """Copy the page that a recipe wrote, and its pictures; the folder's name becomes that of the page."""
    pages, name = DOCS / "pages", folder.name
    pages.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.json")):
        recipe = path.stem
        if recipe not in RECIPES:
            continue
        shutil.copyfile(path, pages / f"{name}.json")
        text = path.with_suffix(".md").read_text(encoding="utf-8")
        for old in pages.glob(f"{name}.*.svg"):
            old.unlink()
        for number in re.findall(rf"\]\({recipe}-(\d+)\.svg\)", text):
            shutil.copyfile(path.with_name(f"{recipe}-{number}.svg"), pages / f"{name}.{number}.svg")
            text = text.replace(f"]({recipe}-{number}.svg)", f"]({name}.{number}.svg)")
        (pages / f"{name}.md").write_text(text, encoding="utf-8")


def pages() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By recipe: what each page is about, and the page."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {name: [] for name in _PAPERS}
    for path in sorted((DOCS / "pages").glob("*.json")):
        page = json.loads(path.read_text(encoding="utf-8"))
        found[page["name"]].append((path.stem.removeprefix(page["name"]).strip("-") or "constructed", page))
    return found


def evidence(claim: dict[str, Any]) -> str:
    """The number that a claim rests on."""
    kept = {key: claim[key] for key in ("value", "low", "high", "p", "n")}
    return Claim(claim["says"], claim["found"], None, **kept).evidence


def overview() -> str:
    """The page."""
    parts, rows, total = [_LEAD], [], Counter()
    found = {name: each for name, each in pages().items() if each}
    for name, each in found.items():
        counts = Counter(claim["holds"] for _, page in each for claim in page["claims"])
        total += counts
        rows.append([_PAPERS[name], ", ".join(what for what, _ in each), *(str(counts[v]) for v in VERDICTS)])
    rows.append(["all", "", *(str(total[v]) for v in VERDICTS)])
    parts.append(Grid(("paper", "on", *VERDICTS), rows, left=2).markdown())
    parts += _standing(found)
    for name, each in found.items():
        parts.append(f"## {_PAPERS[name]}")
        links = ", ".join(
            f"[{what}](pages/{name if what == 'constructed' else f'{name}-{what}'}.md)" for what, _ in each
        )
        parts.append(f"`evenrank reproduce {name}`. Pages with tables, settings and differences: {links}.")
        claims: dict[str, list[list[str]]] = {}
        for what, page in each:
            for claim in page["claims"]:
                row = [what, claim["holds"], claim["found"], evidence(claim)]
                claims.setdefault(claim["says"], []).append(row)
        cells = [[says, *row] for says, told in claims.items() for row in told]
        heads = ("claim", "on", "here", "what was found", "evidence")
        parts.append(Grid(heads, cells, left=5).markdown())
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _standing(found: dict[str, list[tuple[str, dict[str, Any]]]]) -> list[str]:
    """What holds on several collections, what fails, and where collections disagree."""
    by_claim: dict[tuple[str, str], dict[str, str]] = {}
    for name, each in found.items():
        for what, page in each:
            for claim in page["claims"]:
                told = evidence(claim)
                short = f"{what} ({told})" if told else what
                by_claim.setdefault((name, claim["says"]), {})[short] = claim["holds"]
    strong, failed, mixed = [], [], []
    for (name, says), told in by_claim.items():
        held = [what for what, verdict in told.items() if verdict == "holds"]
        fell = [what for what, verdict in told.items() if verdict == "does not hold"]
        if held and fell:
            mixed.append(
                f"- {says} (`{name}`): holds on {'; '.join(held)}; does not hold on {'; '.join(fell)}"
            )
        elif fell:
            failed.append(f"- {says} (`{name}`): {'; '.join(fell)}")
        elif len(held) > 1:
            strong.append(f"- {says} (`{name}`): {'; '.join(held)}")
    parts = []
    for title, lines in (
        ("Holds on more than one collection, and fails on none", strong),
        ("Holds on some collections and does not hold on others", mixed),
        ("Does not hold here", failed),
    ):
        if lines:
            parts += [f"## {title}", "\n".join(lines)]
    return parts


def write() -> None:
    """Write the page."""
    (DOCS / "overview.md").write_text(overview(), encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        for folder in sorted(Path(given).iterdir()):
            take(folder)
    write()
