"""Small real files of every kind, made from the demo collection, and what reading them gives."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from evenrank import demo
from evenrank.auditing.bundle import read_bundle, write_bundle

HERE = demo.folder()
ROWS = 30


def head(name: str, rows: int = ROWS) -> bytes:
    return b"".join((HERE / name).read_bytes().splitlines(keepends=True)[:rows])


def docs_frame() -> pl.DataFrame:
    return er.load(HERE).docs.frame().head(ROWS)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def jsonl(path: Path) -> Path:
    docs_frame().write_ndjson(path)
    return path


def parquet(path: Path) -> Path:
    docs_frame().write_parquet(path)
    return path


def topics(path: Path) -> Path:
    rows = er.load(HERE).queries.head(ROWS).iter_rows()
    text = "".join(f"<top>\n<num> Number: {q}\n<title> {t}\n</top>\n" for q, t in rows)
    return write(path, text.encode())


def tally(path: Path) -> Path:
    er.tally(HERE / "docs.tsv").write(path)
    return path


def bundle(path: Path) -> Path:
    """An audit's bundle with three small files; nothing of it needs to be true."""
    files = {"audit.json": b'{"runs": []}\n', "report.html": head("queries.tsv"), "per-query.json": b"{}\n"}
    write_bundle(path, files, {})
    return path


def unbundled(path: Path) -> Any:
    found = read_bundle(path)
    return found.sha256, sorted(found.files.items()), found.inputs


def words() -> tuple[list[str], np.ndarray]:
    entries = [w for of in er.lexicon("rekabsaz2020").groups.values() for w in of if " " not in w][:40]
    return entries, np.random.default_rng(0).standard_normal((len(entries), 8)).astype(np.float32)


def vectors_text(path: Path) -> Path:
    lines = [f"{w} {' '.join(f'{x:.4f}' for x in row)}" for w, row in zip(*words(), strict=True)]
    return write(path, f"{len(lines)} 8\n".encode() + "\n".join(lines).encode() + b"\n")


def vectors_binary(path: Path) -> Path:
    content = f"{len(words()[0])} 8\n".encode()
    for word, row in zip(*words(), strict=True):
        content += word.encode() + b" " + row.tobytes() + b"\n"
    return write(path, content)


def index(path: Path) -> Path:
    er.index(HERE / "docs.tsv", path)
    return path


def model(path: Path) -> Path:
    from experiments.query_classifier.training import save

    from evenrank.queries.model import load_classifier

    save(load_classifier("static"), path)
    return path


def monitor(path: Path) -> Path:
    from evenrank.server.monitor import Store, Watch, observe

    folder = index(path.with_suffix(".index"))
    with Store(path) as store:
        for _ in range(3):
            store.add(observe(Watch.of(folder, HERE / "queries.tsv")))
    with sqlite3.connect(path) as flat:
        flat.execute("PRAGMA journal_mode = DELETE")
    shutil.rmtree(folder)
    return path


def text_of(value: Any) -> str:
    """A value as text that is the same if and only if the value is."""
    if isinstance(value, pl.DataFrame):
        return json.dumps([value.columns, [[repr(cell) for cell in row] for row in value.iter_rows()]])
    return repr(value)


def search(path: Path) -> Any:
    """What an index finds, and the texts and terms it gives: every array of it is asked for something."""
    opened = er.Index.open(path)
    found = er.search(opened, HERE / "queries.tsv", ranker="bm25", depth=20)
    more = er.search(opened, HERE / "queries.tsv", ranker="bm25+rm3", depth=20)
    texts = opened.docs.texts(found["doc_id"].unique(maintain_order=True).to_list())
    return text_of(found), text_of(more), repr(sorted(dict(texts).items()))


def classified(path: Path) -> Any:
    from evenrank.queries.model import load_classifier

    texts = er.load(HERE).queries["text"].to_list()
    return load_classifier(path).predict_proba(texts).tolist()


def trained(path: Path) -> Any:
    """The weights of a ranker, after every file was checked against the checksum in the header."""
    from evenrank.data.files import read_model

    return read_model(path).files["weights.safetensors"].hex()


def vectors(path: Path) -> Any:
    from evenrank.vectors import load

    loaded = load(path)
    return list(loaded.words), np.asarray(loaded.matrix).tobytes()


def history(path: Path) -> Any:
    from evenrank.server.monitor import Store

    with Store(path, create=False) as store:
        return [seen.to_dict() for seen in store.history()]
