"""The monitor: it asks, keeps what it saw, tells, and survives being interrupted."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.measures.parse import parse_condition
from evenrank.rankers.remote.ranker import Hit, SearchResults, listed
from evenrank.server.monitor import Observation, Store, Value, Watch, alerts, observe, seconds
from evenrank.server.rendering import trend_page
from evenrank.server.searching import Service

QUERIES = str(demo.folder() / "queries.tsv")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The demo collection in SQLite's full-text search, as a live engine."""
    path = tmp_path_factory.mktemp("engine") / "shop.db"
    docs, _, _ = er.load(demo.folder())
    with sqlite3.connect(path) as shop:
        shop.execute("CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize = 'porter')")
        shop.executemany("INSERT INTO docs VALUES (?, ?)", docs.frame().select("doc_id", "text").iter_rows())
    return f"sqlite:///{path}?table=docs"


def once(*given: str) -> int:
    return main(["monitor", "--queries", QUERIES, "--once", *given])


def test_a_live_engine_is_measured_as_its_run_would_be(engine: str) -> None:
    seen = observe(Watch.of(engine, QUERIES, ["ARaB@10", "RaB@5"]))
    run = er.search(engine, QUERIES, depth=10)
    expected = er.measure(run, ["ARaB@10", "RaB@5"], docs=demo.folder() / "docs.tsv", queries=QUERIES)
    assert [value.value for value in seen.values] == pytest.approx(
        [expected["ARaB@10"].value, expected["RaB@5"].value]
    )
    assert seen.answered == run["query_id"].n_unique() and seen.problem is None
    assert len(seen.per_query["ARaB@10"]) == seen.answered


def test_a_bound_decides_the_exit_code(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service.index is not None
    given = ["--index", str(service.index.path), "--db", str(tmp_path / "bias.db")]
    assert once(*given, "--fail-if", "abs(ARaB@10)>5") == 0
    assert once(*given, "--fail-if", "abs(ARaB@10)>0.01", "--page", str(tmp_path / "trend.html")) == 1
    assert "alert: abs(ARaB@10)>0.01: abs(ARaB@10) is +" in capsys.readouterr().err
    page = (tmp_path / "trend.html").read_text()
    assert "Bound exceeded" in page and "<script" not in page and page.count("<svg") == 4
    assert main(["monitor", "--db", str(tmp_path / "bias.db"), "--history", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["observations"]
    assert len(found) == 2 and found[0]["answered"] == 60
    assert main(["monitor", "--db", str(tmp_path / "bias.db"), "--history"]) == 0
    assert "ARaB@10" in capsys.readouterr().out


def test_an_engine_that_is_down_is_kept_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = tmp_path / "bias.db"
    assert once("--engine", "http://127.0.0.1:9/?q={query}", "--set", "retries=0", "--db", str(db)) == 2
    assert "alert: not measured" in capsys.readouterr().err
    with Store(db) as store:
        (seen,) = store.history()
    assert seen.problem is not None and not seen.values
    assert "Not measured" in trend_page([seen])


def test_passwords_are_not_kept() -> None:
    watch = Watch.of("postgresql://me:secret@localhost/shop?table=docs", {"q": "x"})
    assert "secret" not in watch.source


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--once"], "either --engine URL or --index IDX"),
        ([], "--once or --every"),
        (["--once", "--every", "1d"], "choose one"),
        (["--every", "1 fortnight"], "cannot be read"),
        (["--every", "1s"], "between 10 seconds and a year"),
        (["--history"], "no such file"),
        (["--once", "--index", "x", "--fail-if", "ARaB>1"], "cut-off"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    assert main(["monitor", "--db", str(tmp_path / "new.db"), "--queries", QUERIES, *given]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new.db").exists()


def observation(day: int, value: float) -> Observation:
    values = (Value("ARaB@10", value, value - 0.1, value + 0.1, 9),)
    return Observation(
        f"2026-01-{day:02d}T00:00:00Z", "somewhere", 9, 9, values, per_query={"ARaB@10": {"q": value}}
    )


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path / "bias.db") as store:
        store.add(observation(1, 0.1))
        broken = observation(2, 0.2)
        object.__setattr__(broken, "per_query", {"ARaB@10": {"q": object()}})  # what SQLite cannot hold
        with pytest.raises(InputError, match="cannot be used"):
            store.add(broken)
        store.add(observation(3, 0.3))
    with Store(tmp_path / "bias.db") as store:
        assert [seen.time[8:10] for seen in store.history()] == ["01", "03"]
        assert [seen.values[0].value for seen in store.history()] == [0.1, 0.3]


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello, this is text and no database" * 40)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    with Store(tmp_path / "new.db"):
        pass
    with sqlite3.connect(tmp_path / "new.db") as newer:
        newer.execute("PRAGMA user_version = 99")
    for name, why in (
        ("text.db", "cannot be used"),
        ("other.db", "something else"),
        ("new.db", "another version"),
    ):
        with pytest.raises(InputError, match=why):
            Store(tmp_path / name)


def test_the_page_compares_one_source_with_itself(tmp_path: Path) -> None:
    other = Observation("2026-01-01T00:00:00Z", "<b>elsewhere", 9, 9, (Value("RaB@10", 5.0, None, None, 9),))
    page = trend_page([other, observation(2, 0.1), observation(3, 0.4)], [parse_condition("ARaB@10>0.3")])
    assert "elsewhere" not in page and "+0.300 since the first" in page and "Bound exceeded" in page
    assert trend_page([]).count("no observation yet") == 1
    assert "&lt;b&gt;elsewhere" in trend_page([other])


def test_what_cannot_be_checked_is_an_alert() -> None:
    watch = Watch.of("x", {"q": "x"}, fail_if=["ARaB@10>1"])
    undefined = Observation("t", "x", 1, 1, (Value("ARaB@10", None, None, None, 0),))
    assert alerts(watch, undefined) == ["ARaB@10>1.0 cannot be checked: the value is undefined"]


def test_periods() -> None:
    assert [seconds(text) for text in ("30s", "1.5h", "1d", "2w")] == [30, 5400, 86_400, 1_209_600]


def test_queries_that_are_not_asked_do_not_count(engine: str, tmp_path: Path) -> None:
    asked = tmp_path / "some.tsv"
    lines = Path(QUERIES).read_text().splitlines(keepends=True)
    asked.write_text("".join(lines[: len(lines) // 2]))
    qrels = demo.folder() / "qrels.txt"
    seen = observe(Watch.of(engine, asked, ["nDCG@10"], qrels=qrels))
    (value,) = seen.values
    run = er.search(engine, asked, depth=10)
    judged = er.load(demo.folder()).qrels
    own = judged.filter(
        judged["query_id"].is_in(er.load(demo.folder()).queries["query_id"].head(seen.queries).implode())
    )
    expected = er.measure(run, ["nDCG@10"], qrels=own)["nDCG@10"]
    assert value.value == pytest.approx(expected.value) and value.queries == expected.queries == seen.queries


def test_judgments_reach_every_text_of_a_document() -> None:
    """An engine that cuts snippets to the query shows one document with many texts."""
    hits = {query: [Hit("a", 2.0, None, f"snippet for {query}"), Hit("b", 1.0, None, "b")] for query in "xyz"}
    answers = SearchResults(
        pl.concat([listed(query, each, 10)[0] for query, each in hits.items()]), empty=("nothing",)
    )
    judged = {"x": {"a": 1}, "y": {"a": 1}, "nothing": {"a": 1}, "never asked": {"a": 1}}
    run, _ = answers.run_and_docs()
    assert er.measure(run, ["P@1"], qrels=answers.map_qrels(judged))["P@1"].per_query() == {
        "x": 1.0,
        "y": 1.0,
        "nothing": 0.0,
    }


def test_genders_choose_the_queries(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    genders = str(demo.folder() / "genders.tsv")
    seen = observe(Watch.of(engine, QUERIES, ["ARaB@10"], genders=genders))
    run = er.search(engine, QUERIES, depth=10)
    docs = demo.folder() / "docs.tsv"
    expected = er.measure(run, ["ARaB@10"], docs=docs, queries=QUERIES, genders=genders)["ARaB@10"]
    assert (
        seen.values[0].value == pytest.approx(expected.value) and seen.values[0].queries == expected.queries
    )
    assert seen.source.endswith(", neutral queries")
    assert once("--engine", engine, "--genders", genders, "--db", str(tmp_path / "bias.db")) == 0
    said = f"ARaB@10 {expected.value:+.4f} ({expected.queries} queries)"
    assert said in capsys.readouterr().err
    assert main(["monitor", "--db", str(tmp_path / "bias.db"), "--history"]) == 0
    assert f" ({expected.queries} queries)" in capsys.readouterr().out
    assert main(["monitor", "--db", str(tmp_path / "bias.db"), "--history", "--format", "json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["observations"][0]["measures"][0]["queries"] == expected.queries
    )


def test_representation_bias_is_measured_on_deeper_lists(engine: str, tmp_path: Path) -> None:
    """On lists as deep as the cut-off MB would be 0 for any engine, and a bound on it could never fail."""
    watch = Watch.of(engine, QUERIES, ["MB@10"])
    assert watch.depth == 100 and watch.source.endswith(", 100 results")
    seen = observe(watch)
    run = er.search(engine, QUERIES, depth=100)
    expected = er.measure(run, ["MB@10"], docs=demo.folder() / "docs.tsv", queries=QUERIES)["MB@10"]
    assert seen.values[0].value == pytest.approx(expected.value) != 0
    bounds = ["--fail-if", f"abs(MB@10)>{abs(expected.value) / 2}"]
    assert once("--engine", engine, *bounds, "--db", str(tmp_path / "bias.db")) == 1
    with pytest.raises(InputError, match=r"MB@10 looks further than the 10 results asked for; raise depth"):
        Watch.of(engine, QUERIES, ["MB@10"], depth=10)
    assert Watch.of(engine, QUERIES, ["ARaB@10", "AWRF@10", "MB(target='equal')@10"]).depth == 10
    assert Watch.of(engine, QUERIES, ["RaB@20"]).depth == 20


def test_labels_and_targets_reach_the_measures(engine: str, tmp_path: Path) -> None:
    run = er.search(engine, QUERIES, depth=10)
    ids = run["doc_id"].unique(maintain_order=True).to_list()
    groups = ["female" if number % 3 == 0 else "male" for number in range(len(ids))]
    labels = pl.DataFrame({"doc_id": ids, "group": groups})
    targets = pl.DataFrame({"query": run["query_id"].unique(maintain_order=True), "female": 0.5})
    labels.write_csv(tmp_path / "labels.csv")
    targets.write_csv(tmp_path / "targets.csv")
    given = {"labels": tmp_path / "labels.csv", "targets": tmp_path / "targets.csv"}
    watch = Watch.of(engine, QUERIES, ["MB@10"], **given)
    assert watch.depth == 10
    expected = er.measure(run, ["MB@10"], queries=QUERIES, **given)["MB@10"].value
    assert observe(watch).values[0].value == pytest.approx(expected) and expected < -0.1
    files = [f"--{name}={path}" for name, path in given.items()]
    bound = ["--fail-if", "abs(MB@10)>0.1"]
    assert once("--engine", engine, *files, *bound, "--db", str(tmp_path / "bias.db")) == 1


@pytest.mark.parametrize("kind", [dict, pl.DataFrame])
def test_labels_reach_every_text_of_a_document(kind: type) -> None:
    hits = {query: [Hit("a", 2.0, None, f"snippet for {query}"), Hit("b", 1.0, None, "b")] for query in "xy"}
    answers = SearchResults(pl.concat([listed(query, each, 10)[0] for query, each in hits.items()]))
    given: Any = {"a": "female", "b": "male"}
    if kind is pl.DataFrame:
        given = pl.DataFrame({"docno": list(given), "gender": list(given.values())})
    run, _ = answers.run_and_docs()
    found = er.measure(run, ["ExposureGap@2"], labels=answers.map_labels(given))["ExposureGap@2"].per_query()
    assert found["x"] == found["y"] < 0


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("htp://shop/?q={query}", "not the URL of an engine"),
        ("http://no-such-host.invalid/?q={query}", "no such host"),
        ("http://localhost/", "write {query}"),
        ("sqlite:///missing.db?table=docs", "no such file"),
        ("sqlite:///missing.db?tabel=docs", "did you mean table"),
        ("ENGINE&id=nothing", "no such column"),
    ],
)
def test_a_mistyped_address_is_refused_before_anything_is_stored(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, message: str
) -> None:
    db = tmp_path / "new.db"
    assert once("--engine", address.replace("ENGINE", engine), "--set", "retries=0", "--db", str(db)) == 2
    assert message in capsys.readouterr().err
    assert not db.exists()


def test_an_engine_that_was_there_and_is_gone_is_an_observation(tmp_path: Path) -> None:
    shop, db = tmp_path / "shop.db", tmp_path / "bias.db"
    with sqlite3.connect(shop) as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)")
        made.execute("INSERT INTO docs VALUES ('d1', 'she is a nurse')")
    given = ["monitor", "--engine", f"sqlite:///{shop}?table=docs", "--db", str(db), "--once"]
    (tmp_path / "q.tsv").write_text("q1\tnurse\n")
    assert main([*given, "--queries", str(tmp_path / "q.tsv")]) == 0
    shop.unlink()
    assert main([*given, "--queries", str(tmp_path / "q.tsv")]) == 2
    with Store(db) as store:
        first, second = store.history()
    assert first.values and second.problem is not None and "no such file" in second.problem


def test_one_odd_row_does_not_stop_the_monitor(tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"
    with sqlite3.connect(shop) as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)")
        made.execute("INSERT INTO docs VALUES ('d1', 'she is a nurse')")
        made.execute("INSERT INTO docs VALUES (CAST(x'64ff' AS TEXT), CAST(x'6e75727365ff206865' AS TEXT))")
        made.execute("INSERT INTO docs VALUES (CAST(x'64fe' AS TEXT), x'6e75727365')")
    seen = observe(Watch.of(f"sqlite:///{shop}?table=docs", {"q": "nurse"}, ["RaB@10"]))
    assert seen.problem is None and seen.answered == 1
    found = er.search(f"sqlite:///{shop}?table=docs", {"q": "nurse"})["doc_id"].to_list()
    assert {"d1", "d\\xff"} <= set(found)
    with Store(tmp_path / "bias.db") as store:
        store.add(observation(1, 0.1))
    with sqlite3.connect(tmp_path / "bias.db") as kept:
        kept.execute("UPDATE observation SET source = CAST(x'ff' AS TEXT)")
    with Store(tmp_path / "bias.db") as store:
        assert store.history()[0].source == "\ufffd"


_OPEN = """
import sys, pathlib
from evenrank.server.monitor import Observation, Store
for number in range(int(sys.argv[2])):
    with Store(pathlib.Path(sys.argv[1]) / f"{number}.db") as store:
        store.add(Observation("t", "s", 1, 1))
"""


def test_processes_that_open_a_new_file_together_all_succeed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OPEN, str(tmp_path), "15"]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[1] for process in started] == [""] * 4
    for number in range(15):
        with Store(tmp_path / f"{number}.db") as store:
            assert len(store.history()) == 4


def test_a_file_damaged_in_its_names_is_refused(tmp_path: Path) -> None:
    """SQLite quotes the damaged name, which is no UTF-8, in its message."""
    path = tmp_path / "monitor.db"
    with Store(path):
        pass
    for left in tmp_path.glob("monitor.db-*"):
        left.unlink()
    good = path.read_bytes()
    path.write_bytes(good.replace(b"CREATE TABLE ", b"CREATE TABL\xc8 "))
    assert path.read_bytes() != good
    with pytest.raises(InputError, match="cannot be used"), Store(path, create=False) as store:
        store.history()


def filled(path: Path, looks: int, *, step: float = 0.0, measures: tuple[str, ...] = ("ARaB@10",)) -> None:
    """A file as earlier versions wrote it: looks at nine queries, moved by `step` after the 40th."""
    rng = np.random.default_rng(7)
    level = rng.normal(size=9)
    with Store(path) as store:
        for look in range(looks):
            time = (datetime(2026, 1, 1) + timedelta(days=look)).strftime("%Y-%m-%dT00:00:00Z")
            values = level + rng.normal(size=9) * 0.1 + (step if look >= 40 else 0.0)
            each = {f"q{number}": float(value) for number, value in enumerate(values)}
            mean = float(values.mean())
            rows = tuple(Value(name, mean, mean - 0.6, mean + 0.6, 9) for name in measures)
            store.add(Observation(time, "shop", 9, 9, rows, per_query=dict.fromkeys(measures, each)))


def looked_back(path: Path, capsys: pytest.CaptureFixture[str], *given: str) -> dict[str, Any]:
    assert main(["monitor", "--db", str(path), "--history", "--format", "json", *given]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_change_raises_an_alarm_and_none_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "same.db", 80)
    filled(tmp_path / "moved.db", 80, step=0.1)
    (same,) = looked_back(tmp_path / "same.db", capsys)["changes"]
    assert same["judged"] and same["alarm"] is None and same["low"] < 0 < same["high"] and same["paired"]
    found = looked_back(tmp_path / "moved.db", capsys)
    (moved,) = found["changes"]
    assert moved["alarm"]["look"] > 40 and moved["low"] > 0 and "higher than looks 1 to" in moved["sentence"]
    assert "at most about 5% of such monitors" in found["meaning"] and "shared" not in found["meaning"]
    assert looked_back(tmp_path / "moved.db", capsys, "--since", "2026-02-11")["changes"][0]["alarm"] is None
    page = tmp_path / "trend.html"
    assert main(["monitor", "--db", str(tmp_path / "moved.db"), "--page", str(page)]) == 0
    assert "! Changed" in page.read_text() and "however often they look" in page.read_text()


@pytest.mark.parametrize("since", ["2026-13-45", "2026-02-30", "2026-01-01Tgarbage", "soon"])
def test_a_time_that_is_none_is_refused(
    since: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "new.db", 40)
    assert main(["monitor", "--db", str(tmp_path / "new.db"), "--history", "--since", since]) == 2
    assert f"the time {since!r} cannot be read" in capsys.readouterr().err


def test_hours_of_another_zone_begin_a_baseline_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "new.db", 40)
    (found,) = looked_back(tmp_path / "new.db", capsys, "--since", "2026-01-11T01:00:00+01:00")["changes"]
    assert found["looks"] == 30


def test_looks_through_other_words_or_settings_are_another_series(tmp_path: Path) -> None:
    index = er.index({"a": "he", "b": "she"}, tmp_path / "index")
    path = str(tmp_path / "index")
    plain = Watch.of(path, {"q": "he"}, ["ARaB@2"])
    others = [
        Watch.of(path, {"q": "he"}, ["ARaB@2"], lexicon="fabris2020"),
        Watch.of(path, {"q": "he"}, ["ARaB@2"], settings={"k1": 0.5}),
    ]
    assert index.documents == 2 and plain.source == f"{path} (bm25)"
    assert others[0].source.startswith(f"{path} (bm25), lexicon fabris2020 ")
    assert others[1].source == f"{path} (bm25, k1=0.5)"


def test_a_measure_beyond_the_results_asked_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"ARaB@10 looks further than the 3 results asked for; raise depth"):
        Watch.of("idx", {"q": "he"}, ["ARaB@10"], depth=3)


@pytest.mark.parametrize("looks", [1, 2, 30])
def test_few_looks_are_not_judged_and_say_so(
    looks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "new.db", looks, step=5.0)
    (found,) = looked_back(tmp_path / "new.db", capsys)["changes"]
    assert not found["judged"] and found["alarm"] is None and found["low"] is None
    counted = "1 look" if looks == 1 else f"{looks} looks"
    assert found["sentence"] == f"ARaB@10: not judged ({counted}; the first 30 are the baseline)."
    assert main(["monitor", "--db", str(tmp_path / "new.db"), "--history"]) == 0
    assert f"not judged ({counted}" in capsys.readouterr().err


def test_alpha_is_shared_over_measures_and_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "bias.db", 50, measures=("ARaB@10", "RaB@10"))
    with Store(tmp_path / "bias.db") as store:
        store.add(Observation("2026-05-01T00:00:00Z", "elsewhere", 9, 9, (Value("RaB@10", 1, 1, 1, 1),)))
    found = looked_back(tmp_path / "bias.db", capsys, "--alpha", "0.06")
    assert [one["alpha"] for one in found["changes"]] == pytest.approx([0.02] * 3)
    assert "shared over 3 series" in found["meaning"]


def test_new_queries_have_to_be_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(tmp_path / "bias.db") as store:
        for look in range(40):
            each = {f"q{look}-{number}": float(number + look % 3) for number in range(4)}
            mean = sum(each.values()) / 4
            value = Value("RaB@10", mean, None, None, 4)
            time = f"2026-01-01T00:{look:02d}:00Z"
            store.add(Observation(time, "shop", 4, 4, (value,), per_query={"RaB@10": each}))
    (found,) = looked_back(tmp_path / "bias.db", capsys)["changes"]
    assert not found["judged"] and "--new-queries" in found["sentence"]
    (found,) = looked_back(tmp_path / "bias.db", capsys, "--new-queries")["changes"]
    assert found["judged"] and not found["paired"]


def test_a_change_decides_the_exit_code(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service.index is not None
    given = ["--index", str(service.index.path), "--db", str(tmp_path / "bias.db"), "--measure", "ARaB@10"]
    given += ["--baseline", "10"]
    assert once(*given) == 0
    assert "ARaB@10: not judged (1 look; the first 10 are the baseline)." in capsys.readouterr().err
    with Store(tmp_path / "bias.db") as store:
        (seen,) = store.history()
        moved = Value("ARaB@10", 5.0, None, None, 1)
        for day in range(1, 30):
            store.add(replace(seen, time=f"2025-01-{day:02d}T00:00:00Z", values=(moved,)))
    assert once(*given, "--new-queries") == 0  # one look at another level is not enough
    assert [once(*given, "--new-queries") for _ in range(4)][-1] == 1
    assert "alert: ARaB@10: changed." in capsys.readouterr().err
    assert once(*given, "--baseline", "3") == 2
