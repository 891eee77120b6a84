"""What a recipe gives: tables beside the published ones, claims put to the test, and a page to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import evenrank
from evenrank import stats
from evenrank.data.files import writing
from evenrank.show.grid import Grid, plain_markdown
from evenrank.show.numbers import DASH, number, p_said, upper_first

LEVEL = 0.05
HOLDS = {True: "holds", False: "does not hold", None: "cannot tell"}


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what our data say to it.

    Attributes
    ----------
    says
        What the paper claims.
    found
        What was found here, in a sentence.
    holds
        Whether it holds here; None where the data cannot tell.
    value, low, high, p, n
        The number it rests on, its interval, the p-value of the test, and on how many queries.
    """

    says: str
    found: str
    holds: bool | None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int | None = None

    @property
    def evidence(self) -> str:
        """The number with its interval, test and n."""
        said = [] if self.value is None else [number(self.value)]
        if self.low is not None and self.high is not None:
            said.append(f"[{number(self.low)}, {number(self.high)}]")
        said += [p_said(self.p)] if self.p is not None else []
        said += [f"n = {self.n:,}"] if self.n is not None else []
        return ", ".join(said)


def changed(says: str, what: str, change: Mapping[str, Any], *, lower: bool) -> Claim:
    """A claim that a mean moves one way: a paired test decides."""
    difference, p = change["difference"], change["p"]
    tested = difference is not None and p is not None and p < LEVEL
    holds = (difference < 0) == lower if tested else None
    return Claim(
        says,
        "not judged" if difference is None else f"{what} changes by {number(difference)}",
        holds,
        difference,
        change["low"],
        change["high"],
        p,
        change["n"],
    )


def from_zero(
    before: Mapping[str, float], after: Mapping[str, float], *, resamples: int = 2000, seed: int = 0
) -> dict[str, Any]:
    """How far from 0 the mean lies before and after: |after| − |before|, by bootstrap over the queries."""
    both = [query for query in before if query in after]
    sides = [np.array([each[query] for query in both], dtype=np.float64) for each in (before, after)]

    def further(first: Any, second: Any, axis: int) -> Any:
        return np.abs(second.mean(axis=axis)) - np.abs(first.mean(axis=axis))

    found = stats.bootstrap(further, *sides, resamples=resamples, seed=seed)
    means = [float(side.mean()) if both else None for side in sides]
    return {"before": means[0], "after": means[1], "difference": found.value, "low": found.low,
            "high": found.high, "n": len(both)}  # fmt: skip


def nearer(says: str, what: str, change: Mapping[str, Any]) -> Claim:
    """A claim that a signed value comes closer to 0.

    It holds if the interval of |after| − |before| lies below 0, and does not if that lies above.
    """
    before, after, further = change["before"], change["after"], change["difference"]
    if further is None:
        return Claim(says, "not judged", None, n=change["n"])
    low, high = change["low"], change["high"]
    holds: bool | None = None
    if high is not None and high < 0:
        holds = True
    elif low is not None and low > 0:
        holds = False
    past = " (it overshoots)" if before * after < 0 and further >= 0 else ""
    found = (
        f"{what} goes from {number(before)} to {number(after)}{past}: its size changes by {number(further)}"
    )
    return Claim(says, found, holds, further, low, high, n=change["n"])


def kept(says: str, what: str, change: Mapping[str, Any]) -> Claim:
    """A claim that a mean does not fall: refuted by a significant fall, and never proved."""
    difference, p = change["difference"], change["p"]
    fell = difference is not None and difference < 0 and p is not None and p < LEVEL
    found = "not judged" if difference is None else f"{what} changes by {number(difference)}"
    more = "" if fell or difference is None else ": no significant loss, which is no proof that there is none"
    return Claim(
        says, found + more, False if fell else None, difference, change["low"], change["high"], p, change["n"]
    )


def alike(says: str, what: str, change: Mapping[str, Any], margin: float) -> Claim:
    """A claim that two things are about the same: decided by where the interval of their difference lies.

    It is held if the 90 % interval lies within ±margin (two one-sided tests at 5 %), and refuted if the 95 %
    interval lies outside.
    """
    difference, low, high = change["difference"], change["low"], change["high"]
    if difference is None or low is None or high is None:
        return Claim(says, "not judged", None, difference, low, high, change["p"], change["n"])
    inner = [change.get("low 90"), change.get("high 90")]
    holds: bool | None = None
    if None not in inner and max(map(abs, inner)) <= margin:  # type: ignore[arg-type]
        holds = True
    elif low > margin or high < -margin:
        holds = False
    said = f"{what} differs by {number(difference)}; up to ±{margin:.3f} counts as alike"
    return Claim(says, said, holds, difference, low, high, change["p"], change["n"])


def correlated(says: str, found: Mapping[str, Any], *, positive: bool = True) -> Claim:
    """A claim that two things go together: the test of a correlation decides."""
    r, p = found.get("r"), found.get("p")
    if r is None or p is None:
        return Claim(says, "not judged: too few, or all alike", None, r, n=found.get("n"))
    holds = (r > 0) == positive if p < LEVEL else None
    return Claim(
        says, f"correlation {number(r, '+.2f')}", holds, r, found.get("low"), found.get("high"), p, found["n"]
    )


def sign_test(more: int, fewer: int) -> float | None:
    """How likely a split at least this uneven is by chance (two-sided); None without any."""
    from scipy.stats import binomtest

    return float(binomtest(more, more + fewer).pvalue) if more + fewer else None


_HOW = ("kind", "x", "y", "colours", "balance", "form", "own_scale")


@dataclass(frozen=True)
class Chart:
    """Long rows, and how they are drawn; see :mod:`evenrank.show.charts.long_form`.

    Attributes
    ----------
    kind
        `lines`, `bars`, `shares`, `dots`, `points` or `histogram`.
    rows
        Each with `x`, `value`, and perhaps `low`, `high`, `of`, `panel`, `end`.
    x, y
        What the axes are called.
    caption
        How to read it, and how many queries stand behind it; what intervals look like, where some are
        drawn, is added.
    title
        What it shows; that of its table, unless it says.
    fits, colours, balance, form, own_scale
        Rows drawn as lines; colours by name; where balance lies; how values are written; whether each panel
        has a scale of its own.
    """

    kind: str
    rows: Sequence[Mapping[str, Any]]
    x: str
    y: str
    caption: str
    title: str = ""
    fits: Sequence[Mapping[str, Any]] = ()
    colours: Mapping[str, str] = field(default_factory=dict)
    balance: float | None = None
    form: str | None = None
    own_scale: bool = False

    def figure(self, name: str, title: str) -> Any:
        """As the report has them."""
        from evenrank.show.charts.long_form import interval_marks, long_form, long_frame
        from evenrank.show.figure import Figure

        frame = long_frame(self.rows)
        how: dict[str, Any] = {name: getattr(self, name) for name in _HOW}
        chart = long_form(frame, fits=long_frame(self.fits) if self.fits else None, **how)
        shown, caption = self.title or title, " ".join([self.caption, *interval_marks(frame, self.kind)])
        return Figure(name, shown, caption, f"{shown}. {self.caption}", chart, frame)


def bounded(found: Mapping[str, Any], value: str = "value") -> dict[str, Any]:
    """Of a result what a row of a chart has: its value and interval."""
    return {"value": found[value], "low": found["low"], "high": found["high"]}


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings, ours and the published ones; charts stand above it and fold it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    charts: Sequence[Chart] = ()

    @property
    def fold(self) -> str:
        """What is folded beneath a chart: our numbers, and the published ones where there are some."""
        rows = any(", published" in row[0] for row in self.rows)
        places = [i for i, name in enumerate(self.headings) if "published" in name or name == "authors' code"]
        columns = any(row[place] != DASH for row in self.rows for place in places)
        return "The numbers, and the published ones" if rows or columns else "The numbers"

    @property
    def grid(self) -> Grid:
        return Grid(self.headings, self.rows)


@dataclass(frozen=True)
class Page:
    """All that a recipe has found."""

    name: str
    title: str
    paper: str
    did: str
    here: str
    tables: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    differs: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "here", upper_first(self.here))

    @cached_property
    def figures(self) -> list[tuple[Table, list[Any]]]:
        """Each table with the figures above it."""
        found, count = [], 0
        for table in self.tables:
            drawn = [each for each in table.charts if any(row["value"] is not None for row in each.rows)]
            made = [each.figure(f"{self.name}-{count + i + 1}", table.title) for i, each in enumerate(drawn)]
            count += len(made)
            found.append((table, made))
        return found

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        claims = [asdict(claim) | {"holds": HOLDS[claim.holds]} for claim in self.claims]
        return {"evenrank": evenrank.__version__, **asdict(self), "claims": claims}

    def markdown(self) -> str:
        """The page as Markdown."""
        parts = [
            f"# {self.title}",
            f"*{self.paper}*",
            f"**What the paper did.** {self.did}",
            f"**What we did.** {self.here}",
        ]
        for table, figures in self.figures:
            parts += [f"## {table.title}", *(f"![{plain_markdown(f.alt)}]({f.id}.svg)" for f in figures)]
            fold = f'<details markdown="1"><summary>{table.fold}</summary>'
            folded = [fold, table.grid.markdown(), "</details>"]
            parts += folded if figures else [table.grid.markdown()]
        if self.claims:
            rows = [[c.says, HOLDS[c.holds], c.found, c.evidence] for c in self.claims]
            grid = Grid(("claim of the paper", "here", "what was found", "evidence"), rows, left=4)
            parts += ["## Claims", grid.markdown()]
        if self.differs:
            parts += ["## What differs", "\n".join(f"- {plain_markdown(line)}" for line in self.differs)]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """The page for a browser: whole in itself, no script."""
        from evenrank.show.report import inline, template

        return template("recipe.html").render(page=self, holds=HOLDS, inline=inline)

    def write(self, folder: Path) -> list[Path]:
        """Markdown with its pictures, HTML and JSON of the page in a folder."""
        forms: dict[str, Callable[[], str]] = {
            "md": self.markdown,
            "html": self.html,
            "json": lambda: json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n",
        }
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for suffix, form in forms.items():
            made.append(folder / f"{self.name}.{suffix}")
            with writing(made[-1]) as file:
                file.write(form().encode())
        for figure in (each for _, figures in self.figures for each in figures):
            from evenrank.show.report import drawn, slim

            with writing(folder / f"{figure.id}.svg") as file:
                file.write(slim(drawn(figure, "svg")))
        return made
