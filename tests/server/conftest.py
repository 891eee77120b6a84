"""A server with the demo collection: in the process for the interface, on a port for the browser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

import evenrank as er
from evenrank import demo
from evenrank.server.app import make_app, make_server
from evenrank.server.searching import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    here = demo.folder()
    index = er.index(here / "docs.tsv", tmp_path_factory.mktemp("served") / "index")
    made = Service(index, examples=er.load(here).queries["text"].to_list()[:3])
    made.warm_up()
    return made


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(make_app(service), base_url="http://127.0.0.1") as opened:
        yield opened


@pytest.fixture(scope="session")
def address(service: Service) -> Iterator[str]:
    """The server on a port of its own."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        server = make_server(make_app(service), log_level="error")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(10)
