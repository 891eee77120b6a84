"""Every number that rests on its own number of queries has that number beside it.

The runs are those of the demo, with every fifth query not judged and every seventh not answered by one run,
so that n differs from number to number.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evenrank as er
from evenrank import demo
from evenrank.auditing import Audit
from evenrank.auditing.datasheet import remaining
from evenrank.cli import main
from evenrank.measures.base import short
from evenrank.psychology import audit_judgments
from evenrank.show.charts.query_gender import psychology_figures
from evenrank.show.figure import Figure
from evenrank.show.report import SECTIONS, render
from evenrank.show.tables import lines

DEMO = demo.folder()
COUNT = re.compile(r"[\d,]+ (?:\w+ )?(?:query|queries|documents|pairs)\b|n = [\d,]+")


def without(name: str, target: Path, start: int, step: int) -> Path:
    """A copy of a file of the demo without the rows of some queries."""
    rows = (DEMO / name).read_text().splitlines()
    left_out = {*sorted({row.split()[0] for row in rows})[start::step]}
    target.write_text("".join(f"{row}\n" for row in rows if row.split()[0] not in left_out))
    return target


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Judgments and a run that lack some queries."""
    folder = tmp_path_factory.mktemp("uneven")
    return (
        str(without("qrels.txt", folder / "qrels.txt", 0, 5)),
        str(without("dense.run", folder / "dense.run", 3, 7)),
    )


@pytest.fixture(scope="module")
def uneven(files: tuple[str, str]) -> Audit:
    return er.audit(
        {"bm25": DEMO / "bm25.run", "dense": files[1]},
        docs=DEMO / "docs.tsv",
        queries=DEMO / "queries.tsv",
        qrels=files[0],
        genders=DEMO / "genders.tsv",
        resamples=100,
    )


def figures(audit: Audit) -> list[Figure]:
    found = [section for build in SECTIONS if (section := build(audit, {})) is not None]
    return [figure for section in found for figure in section.figures]


def test_numbers_of_queries_do_differ_here(uneven: Audit) -> None:
    assert {m.queries for m in uneven.measured} == {48, 41}
    assert {one.comparison.n for one in uneven.comparisons} == {48, 41}
    assert {one.queries for one in uneven.offered.values()} == {38, 33}


def test_each_value_of_the_table_has_its_n(uneven: Audit) -> None:
    table = render(uneven).partition('<table class="values">')[2].partition("</table>")[0]
    shown = re.findall(r'<span class="bounds">n ([\d,]+)</span></td>', table)
    order = sorted(uneven.measures, key=lambda m: table.index(f'<th scope="row">{short(m)}<'))
    assert [*map(int, shown)] == [uneven.measured[run, m].queries for m in order for run in uneven.runs]


def test_each_change_of_the_summary_and_each_difference_has_its_n(uneven: Audit) -> None:
    dense = next(line for line in lines(uneven) if line.run == "dense")
    assert dense.bias is not None and dense.use is not None
    assert (dense.queries, dense.bias[2], dense.use[2]) == (41, 41, 48)
    page = render(uneven)
    summary = page.partition('<table class="summary">')[2].partition("</table>")[0]
    assert re.findall(r"n ([\d,]+)</span>", summary) == ["48", "48", "41", "41", "41", "48"]
    compared = page.partition('aria-label="Comparisons with the baseline"')[2].partition("</table>")[0]
    assert sorted(re.findall(r"<td>(\d+)</td></tr>", compared)) == sorted(
        str(one.comparison.n) for one in uneven.comparisons
    )


def test_what_is_left_in_each_run_has_its_n(uneven: Audit) -> None:
    found = remaining(uneven)
    wanted = ("n of lean", "n of change", "n of usefulness")
    places = [found.headings.index(name) for name in wanted]
    assert [[row[place] for place in places] for row in found.rows] == [["48", "–", "48"], ["41", "41", "48"]]


def test_each_card_and_each_finding_says_how_many_queries_it_rests_on(uneven: Audit) -> None:
    cards = render(uneven).partition('<div class="cards">')[2].partition("</article>")[0]
    assert "48 neutral queries" in cards and "interval 0.3" in cards
    findings = [finding for finding in uneven.findings if finding.kind != "certainty"]
    kinds = {finding.kind for finding in findings if COUNT.search(finding.text)}
    assert {"lean", "spread", "offered", "collection", "change", "stereotype"} <= kinds
    told = [f.text for f in findings if f.kind in kinds and not f.text.startswith("The smallest δ")]
    assert [text for text in told if not COUNT.search(text)] == []
    (yardstick,) = {text.rpartition("; ")[2] for text in told if "perfect engine" in text}
    assert yardstick.endswith("(48 queries).")


def test_each_chart_says_it_in_words_and_beside_each_of_its_numbers(uneven: Audit) -> None:
    drawn = figures(uneven)
    assert {figure.id.partition("-")[0] for figure in drawn} >= {"values", "cutoff", "words", "stereotype"}
    silent = [figure.id for figure in drawn if not COUNT.search(f"{figure.title} {figure.caption}")]
    assert [one for one in silent if not one.startswith("psychology")] == []
    for figure in drawn:
        if figure.id.startswith("psychology"):
            assert "5 female, 5 male, 5 neutral" in figure.caption
        elif figure.id.startswith(("values", "cutoff")):
            assert figure.frame["queries"].null_count() == 0
    lean = next(figure.frame for figure in drawn if figure.id == "values-lean")
    assert {*lean.select("run", "queries").iter_rows()} == {("bm25", 48), ("dense", 41)}


def test_the_tables_of_the_terminal_say_it(
    files: tuple[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    runs = ["--run", str(DEMO / "bm25.run"), "--run", files[1], "--qrels", files[0]]
    about = ["--docs", str(DEMO / "docs.tsv"), "--genders", str(DEMO / "genders.tsv")]
    assert main(["measure", "ARaB@10", "nDCG@10", *runs, *about, "--resamples", "50"]) == 0
    told = capfd.readouterr().out
    rows = [row for row in told.splitlines() if re.search(r"[+-]?\d\.\d{3} ", row)]
    counts = [re.search(r"(\d+)(?: (?:neutral|female|male))?$", row.rstrip()) for row in rows]
    assert [found and int(found[1]) for found in counts] == [48, 6, 6, 41, 5, 5, 48, 48]
    assert re.search(r"relevant, n\b", told) and re.search(r", 38 .*, 33 ", told, re.S)
    assert main(["disparity", *runs, "--genders", about[3], "--measure", "nDCG@10"]) == 0
    told = capfd.readouterr().out
    assert told.count(" 5 + 5 ") == 2 and re.search(r"dense against bm25: .*, 10 queries\n", told)
    assert main(["psychology", *runs[:4], *about, "--no-balance"]) == 0
    assert "5 female, 5 male, 41 neutral queries" in capfd.readouterr().out


def test_an_audit_of_fewer_than_five_queries_a_side_does_not_compare_them(tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (DEMO / "genders.tsv").read_text().splitlines()]
    women = [row for row in rows if row[1] == "female"][4:]
    few = tmp_path / "genders.tsv"
    few.write_text("".join("\t".join(row) + "\n" for row in rows if row not in women))
    given = {"docs": DEMO / "docs.tsv", "qrels": DEMO / "qrels.txt", "genders": few}
    found = er.audit(DEMO / "bm25.run", ["ARaB@10"], resamples=50, **given)
    assert found.disparity is None and found.psychology is None
    said = "Female and male queries are not compared: 4 female and 6 male ones are judged, and 5 of each are"
    assert said in render(found) and f"Warning: {said}" in found.verdict()
    captions = {figure.caption for figure in psychology_figures(audit_judgments(balance=False, **given))}
    assert all(text.endswith("Fewer than 5 on one side: do not compare them.") for text in captions)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two runs that answer one query."""
    folder = tmp_path_factory.mktemp("single")
    for name in ("bm25.run", "dense.run", "qrels.txt"):
        rows = (DEMO / name).read_text().splitlines()
        (folder / name).write_text("".join(f"{row}\n" for row in rows if row.startswith("q07 ")))
    runs = {name: folder / f"{name}.run" for name in ("bm25", "dense")}
    given = {"docs": DEMO / "docs.tsv", "queries": DEMO / "queries.tsv", "qrels": folder / "qrels.txt"}
    return render(er.audit(runs, ["nDCG@10", "ARaB@10", "abs(ARaB@10)"], **given))


def test_a_report_on_one_query_speaks_of_one_and_judges_nothing(single: str) -> None:
    text = re.sub(r"<(style|script).*?</\1>", "", single, flags=re.S)
    assert "1 queries" not in text and "n = 1 query" in text
    assert "not significant</span>" not in text and text.count("not judged</span>") >= 2
    assert "No intervals were computed" in text and "lines their intervals" not in text
    assert "The bar is its interval" not in text and "intervals beneath" not in text
    assert "Of 1 query, up: " in text and "contain a word of the lexicon" in text
    assert re.search(r"\b[01] of 1 contain a word", text)


def test_a_report_without_intervals_does_not_speak_of_them(uneven: Audit) -> None:
    given = {"docs": DEMO / "docs.tsv", "qrels": DEMO / "qrels.txt", "genders": DEMO / "genders.tsv"}
    found = er.audit(DEMO / "bm25.run", ["ARaB@10", "NFaiRR@10"], confidence=None, **given)
    for page, sure in ((render(found), False), (render(uneven), True)):
        assert ("lines their intervals" in page) == sure
        assert ("The bar is its interval" in page) == sure
        assert ("intervals beneath" in page) == sure
