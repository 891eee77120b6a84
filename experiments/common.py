"""What the studies share: tables beside the published numbers, figures, claims, and the record of a run."""

from __future__ import annotations

import inspect
import json
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import joblib
import polars as pl
import xxhash
from rich.console import Console

from evenrank.data.files import fingerprint, make_folder, writing
from evenrank.errors import InputError
from evenrank.show.charts.theme import configuration
from evenrank.show.grid import Grid
from evenrank.show.numbers import p_phrase

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BUILD = HERE.parent / "build" / "experiments"
SMALLEST_GROUP = 5
"""With fewer queries in a group no interval is shown."""
LEVEL = 0.05
"""Of all tests."""

T = TypeVar("T")


class Results:
    """The tables, figures and claims of one run of a study; `finish` writes the record.

    Attributes
    ----------
    name
        Of the study.
    quick
        Whether it takes under three minutes and leaves something out.
    """

    def __init__(self, name: str, data: Path, *, quick: bool, command: str = "") -> None:
        self.name, self.quick, self._data = name, quick, data
        self.console = Console(highlight=False, soft_wrap=True)
        self.record: dict[str, Any] = {
            "study": name, "command": command, "commit": _git("rev-parse", "HEAD") + _changes(),
            "quick": quick, "data": {}, "differences": [], "left_out": [],
            "tables": [], "figures": [], "claims": [],
        }  # fmt: skip
        self._cached_seconds = 0.0
        self._start = time.monotonic(), _cpu_seconds()

    def path(self, *parts: str) -> Path:
        """Return a file or folder of the data, and note which one was used."""
        path = self._data.joinpath(*parts)
        if not path.exists():
            raise InputError(
                "no such file or folder; --data names the folder with data/ and runs/", path=path
            )
        for file in [path] if path.is_file() else sorted(path.iterdir()):
            self.record["data"][str(file.relative_to(self._data))] = fingerprint(file)
        return path

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Return what `work` returns; kept under build/ until src/ or the text of `work` changes."""
        key = xxhash.xxh3_64_hexdigest(f"{_source()} {inspect.getsource(work)}".encode())
        path = BUILD / self.name / f"{name}{'-quick' * self.quick}-{key}.joblib"
        if path.exists():
            result, seconds = joblib.load(path)
            self._cached_seconds += seconds
        else:
            self.console.print(f"[dim]{name} …[/]")
            start = _cpu_seconds()
            result = work()
            make_folder(path.parent)
            with writing(path) as file:
                joblib.dump((result, _cpu_seconds() - start), file)
        return result

    def differs(self, text: str) -> None:
        """State what is different here from the paper."""
        self.record["differences"].append(text)
        self.console.print(f"Here: {text}")

    def leave_out(self, text: str) -> None:
        """State what of the paper is not shown, and why."""
        self.record["left_out"].append(text)
        self.console.print(f"Left out: {text}")

    def table(
        self,
        title: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        n: int | str | None = None,
        published: str | None = None,
        digits: int = 3,
    ) -> None:
        """Print a table, beneath each row the published one.

        Parameters
        ----------
        title
            Which table of the paper, and what it shows.
        rows
            Our rows; the first column names them. Floats are rounded to `digits`.
        n
            On how many queries, unless the rows have a column n.
        published
            The table's name in published/*.tsv, if its numbers are there.
        """
        columns = list(dict.fromkeys(column for row in rows for column in row))
        if n is None and "n" not in columns:
            raise ValueError(f"{title}: give n, or a column n")
        printed = {} if published is None else published_rows(self.name, published)
        both: list[dict[str, Any]] = []
        for row in rows:
            both.append(dict(row))
            name = row[columns[0]]
            if name in printed:
                both.append({columns[0]: f"{name} (published)", **printed.pop(name)})
        both += [{columns[0]: f"{name} (published)", **values} for name, values in printed.items()]
        columns = list(dict.fromkeys([*columns, *(column for row in both for column in row)]))
        table = {"title": title, "n": n, "digits": digits, "columns": columns, "rows": both}
        self.record["tables"].append(table)
        self.console.print(f"\n[bold]{_title(table)}[/]")
        self.console.print(grid(table).terminal(self.console.width))

    def figure(self, name: str, title: str, chart: Any) -> None:
        """Draw an Altair chart as SVG."""
        folder = make_folder((BUILD if self.quick else RESULTS) / "figures")
        path = folder / f"{self.name}-{name}.svg"
        text = _svg(chart.properties(title=title).configure(**configuration()))
        with writing(path) as file:
            file.write(text.encode())
        self.record["figures"].append({"title": title, "file": path.name})
        self.console.print(f"\n{title}: {path}")

    def claim(
        self,
        text: str,
        *,
        n: int | tuple[int, int],
        value: float | None,
        low: float | None = None,
        high: float | None = None,
        p: float | None = None,
        above: float | None = None,
        below: float | None = None,
        within: float | None = None,
    ) -> str:
        """Put a claim of the paper to the test of an interval: it holds, does not hold, or cannot be told.

        Parameters
        ----------
        text
            What the paper says.
        n
            On how many queries, or how many of each of two groups, the number rests.
        value, low, high
            The number and its interval (all the same for what is exact).
        p
            Of the test, corrected, where several claims are tested at once: nothing can be told from 0.05 on.
        above, below, within
            What the claim says of the number: above or below this, or at most so far from 0. It holds if the
            whole interval is there, and does not if none of it is.
        """
        result = "cannot tell"
        if min(n if isinstance(n, tuple) else (n,)) < SMALLEST_GROUP:
            low = high = None
        if low is not None and high is not None and (p is None or p < LEVEL):
            checks = {
                "holds": [above is None or low > above, below is None or high < below,
                          within is None or max(abs(low), abs(high)) <= within],
                "does not hold": [above is None or high <= above, below is None or low >= below,
                                  within is None or low > within or high < -within],
            }  # fmt: skip
            result = next((name for name, all_of in checks.items() if all(all_of)), result)
        claim = {"claim": text, "result": result, "value": value, "low": low, "high": high, "p": p, "n": n}
        self.record["claims"].append(claim)
        return result

    def fact(self, text: str, holds: bool, evidence: str, n: int) -> None:
        """Record a claim about counts, which need no interval."""
        result = "holds" if holds else "does not hold"
        self.record["claims"].append({"claim": text, "result": result, "evidence": evidence, "n": n})

    def finish(self) -> Path:
        """Print the claims, and write the record: to results/ if the study ran completely."""
        for claim in self.record["claims"]:
            self.console.print(f"\n[bold]{claim['result']}[/]: {claim['claim']} ({claim_evidence(claim)})")
        clock, cpu = self._start
        self.record["seconds"] = {
            "cpu": round(_cpu_seconds() - cpu + self._cached_seconds),
            "clock": round(time.monotonic() - clock),
        }
        path = make_folder(BUILD if self.quick else RESULTS) / f"{self.name}{'-quick' * self.quick}.json"
        with writing(path) as file:
            file.write((json.dumps(self.record, indent=1, ensure_ascii=False) + "\n").encode())
        self.console.print(f"\n{self.record['seconds']['cpu'] / 60:.1f} CPU-minutes; {path}")
        return path


def run_file(results: Results, collection: str, system: str) -> Path:
    """Return one of Lucene's runs."""
    compressed = collection == "squad"
    return results.path("runs", f"{collection}.{system}.run{'.gz' * compressed}")


def published_rows(study: str, table: str) -> dict[str, dict[str, float]]:
    """Return the rows of a published table: a dict from columns to values for the name of each row."""
    frame = pl.read_csv(HERE / "published" / f"{study}.tsv", separator="\t", comment_prefix="#")
    rows: dict[str, dict[str, float]] = {}
    for row, column, value in frame.filter(pl.col("table") == table).select("row", "column", "value").rows():
        rows.setdefault(str(row), {})[column] = value
    if not rows:
        raise ValueError(f"published/{study}.tsv has no table {table!r}")
    return rows


def grid(table: Mapping[str, Any]) -> Grid:
    """Return the table of a record as a grid of cells."""
    columns = table["columns"]
    rows = [[_cell(row.get(column), table["digits"]) for column in columns] for row in table["rows"]]
    texts = sum(any(isinstance(row.get(column), str) for row in table["rows"]) for column in columns[:2])
    return Grid(columns, rows, max(1, texts))


def claim_evidence(claim: Mapping[str, Any]) -> str:
    """Return the number of a claim with its interval and n."""
    n = claim["n"]
    size = f"n = {n:,}" if isinstance(n, int) else "n = " + " and ".join(f"{each:,}" for each in n)
    if "evidence" in claim:
        return f"{claim['evidence']}, {size}"
    if claim["value"] is None or claim["low"] is None:
        return f"no interval, {size}"
    corrected = "" if claim["p"] is None else f", corrected {p_phrase(claim['p'])}"
    return f"{claim['value']:+.4f} [{claim['low']:+.4f}, {claim['high']:+.4f}]{corrected}, {size}"


def _title(table: Mapping[str, Any]) -> str:
    n = table["n"]
    return table["title"] + ("" if n is None else f"; n = {n:,}" if isinstance(n, int) else f"; n = {n}")


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _svg(chart: Any) -> str:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(HERE), *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def _changes() -> str:
    """Return a mark for a commit that is not what was run."""
    return "+changes" if _git("status", "--porcelain", "--", "../src") else ""


def _source() -> str:
    """Return what stands for the text of src/, committed or not."""
    return _git("rev-parse", "HEAD:src") + xxhash.xxh3_64_hexdigest(
        _git("diff", "HEAD", "--", "../src").encode()
    )


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
