"""`evenrank serve`: the web page and the JSON interface."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import note, progress_bar
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

_EXAMPLES = 12


def serve_command(
    index: Annotated[Path | None, typer.Option(metavar="IDX", help="An index of `evenrank index`.")] = None,
    docs: Annotated[
        str | None, typer.Option(metavar="DOCS", help="A collection instead; indexed for the time being.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="FILE", help="Queries, shown as examples to begin with.")
    ] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A ranker to offer; repeatable.", show_default="all lexical ones"),
    ] = None,
    lexicon: Annotated[
        str, typer.Option(metavar="L", help="Words of each group: a name or a file.")
    ] = "rekabsaz2020",
    host: Annotated[
        str, typer.Option(help="Address to listen on. Put a proxy in front of it before others use it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 8000,
) -> None:
    """Search and compare rankers in the browser, evaluate result lists over HTTP.

    Without --index and --docs the demo collection is served. Nobody but this machine can reach the server
    unless --host says otherwise; it has no passwords.

        evenrank serve --index IDX
    """
    try:
        from evenrank.server.app import LOCAL, make_app
        from evenrank.server.connections import make_server
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
        note(f"serving {opened.documents:,} documents at http://{shown}:{port}/ (end with Ctrl-C)")
        server.run()


def _index(path: Path | None, docs: str | None, stack: ExitStack) -> Index:
    from evenrank.rankers.index import Index
    from evenrank.rankers.index.building import index

    if path is not None:
        return Index.open(path)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evenrank-"))
    with progress_bar("indexing", unit="bytes") as progress:
        return index(docs, Path(folder) / "index", progress=progress)


def _examples(queries: str | None) -> list[str]:
    """Some of the queries, spread over all of them."""
    if queries is None:
        return []
    from evenrank.data import tables

    texts = tables.queries(queries)["text"].to_list()
    step = max(1, len(texts) // _EXAMPLES)
    return texts[::step][:_EXAMPLES]
