"""`evenrank serve`: the web page and the JSON interface; `evenrank monitor`: an engine, watched.

A monitor asks an engine the same queries again and again, keeps the values, and raises an alarm.
"""

from __future__ import annotations

import json
import math
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import Format, deliver, genders_or_predicted, note, progress_bar
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.rankers.index import Index
    from evenrank.server.changes import Judged, Judging
    from evenrank.server.monitor import Observation, Store, Value, Watch


_EXAMPLES = 12


def serve_command(
    index: Annotated[
        Path | None, typer.Option(metavar="IDX", help="An index made by `evenrank index`.")
    ] = None,
    docs: Annotated[
        str | None,
        typer.Option(metavar="DOCS", help="A collection instead of an index; indexed temporarily."),
    ] = None,
    queries: Annotated[str | None, typer.Option(metavar="FILE", help="Queries to show as examples.")] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|MODEL",
            help="A ranker to offer, or a folder made by `evenrank train`; repeatable.",
            show_default="all lexical ones",
        ),
    ] = None,
    lexicon: Annotated[
        str, typer.Option(metavar="L", help="Words of each group: a name or a file.")
    ] = "rekabsaz2020",
    host: Annotated[
        str, typer.Option(help="Address to listen on. Put a proxy in front of it before others use it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 8000,
) -> None:
    """Search and compare rankers in the browser; evaluate result lists over HTTP.

    Without --index and --docs the demo collection is served. Only this machine can reach the server, unless
    you set --host; it has no passwords.

        evenrank serve --index IDX
    """
    try:
        from evenrank.server.app import LOCAL, make_app, make_server
    except ImportError as error:
        raise InputError("the server needs more packages: pip install 'evenrank[serve]'") from error
    from evenrank.server.searching import RANKERS, Service

    if index is not None and docs is not None:
        raise InputError("--index and --docs are both given; choose one")
    with ExitStack() as stack:
        if index is None and docs is None:
            from evenrank import demo

            docs = str(demo.folder() / "docs.tsv")
            queries = queries or str(demo.folder() / "queries.tsv")
            note("no --index: serving the demo collection")
        opened = _index(index, docs, stack)
        service = Service(
            opened, lexicon=lexicon, rankers=tuple(ranker or RANKERS), examples=_examples(queries)
        )
        service.warm_up()
        local = host in ("127.0.0.1", "localhost", "::1")
        app = make_app(service, hosts=LOCAL if local else None)
        server = make_server(app, host=host, port=port)
        shown = f"[{host}]" if ":" in host else host
        listening = stack.enter_context(_bound(host, port))
        bound = listening.getsockname()[1]  # with --port 0 the system chooses one
        note(f"serving {opened.documents:,} documents at http://{shown}:{bound}/ (end with Ctrl-C)")
        server.run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"cannot listen at {host}, port {port}: {why}; choose others with --host and --port"
        ) from error


def _index(path: Path | None, docs: str | None, stack: ExitStack) -> Index:
    from evenrank.rankers.index import Index
    from evenrank.rankers.indexing import index

    if path is not None:
        return Index.open(path)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evenrank-"))
    with progress_bar("indexing", unit="bytes") as progress:
        return index(docs, Path(folder) / "index", progress=progress)


def _examples(queries: str | None) -> list[str]:
    """Some of the queries, spread over all of them."""
    if queries is None:
        return []
    from evenrank.data.read import read_queries

    texts = read_queries(queries)["text"].to_list()
    step = max(1, len(texts) // _EXAMPLES)
    return texts[::step][:_EXAMPLES]


def monitor_command(
    db: Annotated[Path, typer.Option(metavar="FILE", help="SQLite file for the observations.")],
    queries: Annotated[str | None, typer.Option(metavar="Q", help="The queries to ask.")] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="URL", help="A live engine, such as sqlite:///docs.db?table=docs.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="IDX", help="An index made by `evenrank index`.")
    ] = None,
    ranker: Annotated[str, typer.Option(metavar="NAME", help="How the index is searched.")] = "bm25",
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the engine or ranker; repeatable."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(metavar="M", help="Repeatable.", show_default="ARaB@10, RaB@10, NFaiRR@10"),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Raise an alarm if this holds: 'abs(ARaB@10)>0.1'; repeatable."
        ),
    ] = None,
    qrels: Annotated[str | None, typer.Option(metavar="QR", help="Judgments, for effectiveness.")] = None,
    genders: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|predict", help="Gender of each query; bias is then measured on neutral queries."
        ),
    ] = None,
    lexicon: Annotated[str, typer.Option(metavar="L", help="Words of each group.")] = "rekabsaz2020",
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Group of each document, for MB, Skew, AWRF, …")
    ] = None,
    targets: Annotated[
        str | None, typer.Option(metavar="FILE", help="The share each group should have, for each query.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Results per query.", show_default="10, or more if a measure needs them"),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Observe once; exit with 1 if a bound is exceeded.")
    ] = False,
    every: Annotated[
        str | None, typer.Option(metavar="PERIOD", help="Keep observing at this interval: 15m, 6h, 1d.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="Print what has been observed so far.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="HTML", help="HTML file for the trend, rewritten after each observation."),
    ] = None,
    baseline: Annotated[
        int, typer.Option(metavar="N", help="Looks before the first comparison; at least 10.")
    ] = 30,
    alpha: Annotated[float, typer.Option(help="Chance of any alarm while nothing changes.")] = 0.05,
    new_queries: Annotated[
        bool, typer.Option("--new-queries", help="The queries differ from look to look.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start a new baseline on this day: 2026-01-31.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the history.")] = Format.table,
) -> int:
    """Watch the bias of a live engine, or of an index, over time.

    With --once for cron and CI: exit code 1 if a bound is exceeded or the mean has changed since the
    baseline, 2 if nothing could be measured. With --every it keeps running and writes its alarms to stderr.
    Each observation is stored completely or not at all.

        evenrank monitor --engine 'sqlite:///shop.db?table=docs' --queries queries.tsv --db shop-bias.db \\
            --once --fail-if 'abs(ARaB@10)>0.2' --page trend.html
    """
    from evenrank.server.changes import Judging
    from evenrank.server.monitor import Store, seconds

    judging = Judging(baseline, alpha, new_queries, since)
    observing = once or every is not None
    if not observing and not history and page is None:
        raise InputError("say when to observe: --once or --every 1d; or look back with --history")
    if once and every is not None:
        raise InputError("--once and --every are both given; choose one")
    period = None if every is None else seconds(every)
    if not observing:
        with Store(db, create=False) as store:
            _look_back(store, page, fail_if or [], form if history else None, judging)
        return 0
    more = {"qrels": qrels, "lexicon": lexicon, "labels": labels, "targets": targets, "depth": depth}
    watch = _watch(queries, engine, index, ranker, given, measure, fail_if, genders, more)
    known = False
    if db.exists():
        with Store(db) as store:
            known = store.knows(watch.source)
    elif not db.parent.is_dir():
        raise InputError("there is no such folder", path=db.parent)
    due = time.monotonic()
    seen = _seen(watch, known)
    with Store(db) as store:
        code = _keep(watch, seen, store, page, judging)
        while period is not None:
            due += period * max(1, math.ceil((time.monotonic() - due) / period))  # what was missed is missed
            time.sleep(due - time.monotonic())
            _keep(watch, _seen(watch, True), store, page, judging)
        if history:
            _look_back(store, None, [], form, judging)
    return code


def _watch(
    queries: str | None,
    engine: str | None,
    index: Path | None,
    ranker: str,
    given: list[str] | None,
    measure: list[str] | None,
    fail_if: list[str] | None,
    genders: str | None,
    more: dict[str, Any],
) -> Watch:
    from evenrank.rankers.registry import parse_settings
    from evenrank.server.monitor import Watch

    if queries is None:
        raise InputError("name the queries to ask: --queries Q")
    if (engine is None) == (index is None):
        raise InputError("name what to ask: either --engine URL or --index IDX")
    watch = Watch.of(
        engine or index,
        queries,
        measure or (),
        fail_if or (),
        ranker=ranker,
        settings=parse_settings(engine or ranker, given or []),
        genders=genders_or_predicted(genders, queries),
        **more,
    )
    watch.opened()
    return watch


def _seen(watch: Watch, known: bool) -> Observation:
    from evenrank.server.monitor import observe

    with progress_bar("asking", unit="queries") as progress:
        return observe(watch, progress=progress, known=known)


def _keep(watch: Watch, seen: Observation, store: Store, page: Path | None, judging: Judging) -> int:
    """One observation, kept and told. 1: a bound is exceeded or a mean changed; 2: nothing was measured."""
    from evenrank.server.changes import changes, told
    from evenrank.server.monitor import alerts

    store.add(seen)
    note(_line(seen))
    result = alerts(watch, seen)
    judged = changes(store, judging)
    own = [one for one in judged if one.source == watch.source]
    result += [f"{one.sentence()} To begin anew, say --since." for one in own if one.alarm]
    if not own and judging.since is not None and seen.problem is None:
        note(f"not judged: no look since {judging.since}")
    for line in told(own):
        note(line)
    for alarm in result:
        note(f"alert: {alarm}")
    if page is not None:
        _write_page(store, page, watch.conditions, judged)
    return 2 if seen.problem is not None else int(bool(result))


def _line(seen: Observation) -> str:
    values = ", ".join(f"{v.measure} {_counted_cell(v, seen)}" for v in seen.values) or "no values"
    return f"{seen.time}: {values} ({seen.answered:,} of {seen.queries:,} queries answered)"


def _write_page(store: Store, page: Path, conditions: Any, judged: Sequence[Judged]) -> None:
    from evenrank.server.rendering import trend_page

    deliver(trend_page(store.history(), conditions, judged=judged), page)


def _look_back(
    store: Store, page: Path | None, fail_if: list[str], form: Format | None, judging: Judging
) -> None:
    from evenrank.measures.parse import parse_condition
    from evenrank.server.changes import changes, meaning

    judged = changes(store, judging)
    if page is not None:
        _write_page(store, page, [parse_condition(one) for one in fail_if], judged)
    if form is None:
        return
    seen = store.history()
    if form is Format.json:
        content: dict[str, Any] = {"observations": [one.to_dict() for one in seen]}
        content["changes"] = [one.to_dict() for one in judged]
        content["meaning"] = meaning(judging, len(judged)) if judged else None
        deliver(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), None)
        return
    names = list(dict.fromkeys(value.measure for one in seen for value in one.values))
    headings = ["time", "source", "queries", "answered", *names]
    rows = []
    for one in seen:
        plain = form is Format.csv
        values = {v.measure: _cell(v.value) if plain else _counted_cell(v, one) for v in one.values}
        source = one.source if one.problem is None else f"{one.source}: {one.problem}"
        rows.append(
            [
                one.time,
                source,
                str(one.queries),
                str(one.answered),
                *(values.get(n, _cell(None)) for n in names),
            ]
        )
    if form is Format.csv:
        import polars as pl

        deliver(pl.DataFrame(rows, schema=dict.fromkeys(headings, pl.String), orient="row").write_csv(), None)
        return
    from evenrank.cli.rendering import render_grid

    deliver(render_grid(form, headings, rows, left=2), None)
    if form is Format.table and judged:
        for each in judged:
            note(each.sentence())
        note(meaning(judging, len(judged)))


def _counted_cell(value: Value, seen: Observation) -> str:
    """A value, with the queries it is the mean of where these are not all that were answered."""
    from evenrank.show.numbers import counted

    of = "" if value.queries == seen.answered else f" ({counted(value.queries, 'query', 'queries')})"
    return _cell(value.value) + of


def _cell(value: float | None) -> str:
    from evenrank.show.numbers import number

    return number(value, "+.4f")
