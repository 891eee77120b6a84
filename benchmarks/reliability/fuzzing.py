"""Our own fuzzer: files of every kind, changed at random, given to their reader.

Right is what the reader gives back, or one clear line (InputError). Anything else is a fault: another
exception, a crash, or more than a minute.
"""

from __future__ import annotations

import gzip
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import evenrank as er
from benchmarks.reliability import material
from benchmarks.reliability.material import head, write
from evenrank.data.docs import open_docs
from evenrank.data.read import read_genders, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures.association import pair_scores
from evenrank.queries.generated import read_generated
from evenrank.text.lexicon import dictionary

MUTATIONS = 2_000
_SECONDS = 60
_ODD = [
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b"\t\t",
    b"\t",
    b" ",
    b'"',
    b"'",
    b"{",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"}",
    b"nan",
    b"-inf",
    b"1e999",
    b"-0",
    b"9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    b"99999999999999999999",
    b"1_0",
    b"null",
    b"true",
    b"\\u0000",
    b"\\ud800",
    b"Q0",
    b"#",
    b"%",
    b"*",
    b"\xe2\x80\xa8",
    b"\x1b[2J",
    b"<",
    b"</top>",
    b",",
]


class Reader(NamedTuple):
    make: Callable[[Path], Path]
    name: str
    read: Callable[[Path], Any]


def _small(name: str, content: bytes) -> tuple[Callable[[Path], Path], str]:
    return (lambda path: write(path, content)), name


def _batches(path: Path) -> Any:
    return [len(batch) for batch in open_docs(path).batches()]


_HALF = {query: {"female": 0.5} for query in "qr"}
_LABELLED = "query\tdoc_id\trank\tgroup\nq\ta\t1\tfemale\nq\tb\t2\tmale\nr\ta\t1\tfemale\n"


def _labelled(path: Path) -> Any:
    return er.represent(path, _HALF)


def _targets(path: Path) -> Any:
    return er.represent(write(path.with_name("results.tsv"), _LABELLED.encode()), path)


def _labels(path: Path) -> Any:
    return er.measure({"q": {"a": 2.0, "b": 1.0}}, ["rND@10"], labels=path, confidence=None)


def _request(path: Path) -> Any:
    """What /v1/evaluate makes of a body."""
    from evenrank.server.models import EvaluateRequest

    try:
        return EvaluateRequest.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise InputError("refused") from error


READERS: dict[str, Reader] = {
    "run": Reader(*_small("a.run", head("bm25.run")), read_run),
    "qrels": Reader(*_small("qrels.txt", head("qrels.txt")), read_qrels),
    "queries": Reader(*_small("queries.tsv", head("queries.tsv")), read_queries),
    "topics": Reader(material.topics, "topics.txt", read_queries),
    "genders": Reader(*_small("genders.tsv", head("genders.tsv")), read_genders),
    "docs-tsv": Reader(*_small("docs.tsv", head("docs.tsv")), _batches),
    "docs-jsonl": Reader(material.jsonl, "docs.jsonl", _batches),
    "docs-parquet": Reader(material.parquet, "docs.parquet", _batches),
    "lexicon-csv": Reader(
        *_small("l.csv", b"word,group\nshe,female\nhe,male\nher,female\nhis,male\n"), er.lexicon
    ),
    "lexicon-json": Reader(
        *_small("l.json", b'{"female": ["she", "her"], "male": ["he", "his"]}'), er.lexicon
    ),
    "lexicon-toml": Reader(*_small("l.toml", b'[groups]\nfemale = ["she"]\nmale = ["he"]\n'), er.lexicon),
    "lexicon-dic": Reader(
        *_small("l.dic", b"%\n1\tfemale\n2\tmale\n%\nshe\t1\nhe\t2\nhers*\t1\n"), er.lexicon
    ),
    "labelled-results": Reader(*_small("r.tsv", _LABELLED.encode()), _labelled),
    "targets": Reader(*_small("t.tsv", b"query\tfemale\tmale\nq\t0.5\t0.5\nr\t0.25\t0.75\n"), _targets),
    "labels": Reader(*_small("g.tsv", b"doc_id\tgroup\na\tfemale\nb\tmale\n"), _labels),
    "dictionary": Reader(*_small("d.dic", b"%\n1\tfemale\n2\tmale\n%\nshe\t1\nhe\t2\n"), dictionary),
    "request": Reader(
        *_small("b.json", b'{"query": "x", "results": [{"id": "d1", "text": "she"}], "at": 10}'), _request
    ),
    "pair-scores": Reader(*_small("s.tsv", b"query_id\tdoc_id\tscore\nq\ta\t1.5\nq\tb\t0.5\n"), pair_scores),
    "generated": Reader(
        *_small("m.tsv", b"query_id\tdoc_id\ttext\ng1\ta\twho was she\ng2\tb\twhat is it\n"), read_generated
    ),
    "tally": Reader(material.tally, "t.parquet", er.Tally.of),
    "vectors-text": Reader(material.vectors_text, "v.txt", material.vectors),
    "vectors-binary": Reader(material.vectors_binary, "v.bin", material.vectors),
    "index": Reader(material.index, "index", lambda path: er.Index.open(path).docs.texts(["d157"])),
    "bundle": Reader(material.bundle, "b.zip", material.unbundled),
    "classifier-model": Reader(material.model, "model", material.classified),
    "monitor": Reader(material.monitor, "m.db", material.history),
}


def fuzz(name: str, mutations: int = MUTATIONS) -> dict[str, Any]:
    """So many changed files for one reader, and what became of them."""
    reader = READERS[name]
    outcomes: Counter[str] = Counter(read=0, refused=0, faults=0)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "good").mkdir()
        good = reader.make(Path(folder) / "good" / reader.name)
        reader.read(good)
        for number in range(mutations):
            path = Path(folder) / "tried" / reader.name
            shutil.rmtree(path.parent, ignore_errors=True)
            path.parent.mkdir()
            _change(good, path, random.Random(f"{name} {number}"))
            signal.signal(signal.SIGALRM, _late)
            signal.alarm(_SECONDS)
            try:
                reader.read(path)
                outcomes["read"] += 1
            except InputError as error:
                clear = "\n" not in str(error) and len(str(error)) < 100_000
                outcomes["refused" if clear else "faults"] += 1
            except Exception as error:
                outcomes["faults"] += 1
                faults.append(f"{number}: {type(error).__name__}: {str(error)[:120]}")
            finally:
                signal.alarm(0)
    return {"mutations": mutations, **outcomes, "first faults": faults[:5]}


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {_SECONDS} seconds")


def _change(good: Path, path: Path, luck: random.Random) -> None:
    """A copy of the file, or of the folder with one file of it, changed."""
    if good.is_dir():
        shutil.copytree(good, path, dirs_exist_ok=True)
        path = luck.choice(sorted(each for each in path.rglob("*") if each.is_file()))
        content = path.read_bytes()
    else:
        content = good.read_bytes()
    for _ in range(luck.choice((1, 1, 1, 2, 5))):
        content = _mutated(content, luck)
    if path.suffix not in (".parquet", ".db") and luck.random() < 0.05:
        content = gzip.compress(content)
    path.write_bytes(content)


def _mutated(content: bytes, luck: random.Random) -> bytes:
    if not content:
        return luck.choice(_ODD)
    at = luck.randrange(len(content))
    end = min(len(content), at + luck.choice((1, 1, 2, 4, 16, 64)))
    how = luck.randrange(7)
    if how == 0:  # another byte
        return content[:at] + bytes([luck.randrange(256)]) + content[at + 1 :]
    if how == 1:  # something is missing
        return content[:at] + content[end:]
    if how == 2:  # something stands there twice
        return content[:end] + content[at:end] + content[end:]
    if how == 3:  # something odd
        return content[:at] + luck.choice(_ODD) + content[at:]
    if how == 4:  # the end is missing
        return content[:at]
    if how == 5:  # something odd in place of something
        return content[:at] + luck.choice(_ODD) + content[end:]
    lines = content.splitlines(keepends=True)  # two lines change places
    one, other = luck.randrange(len(lines)), luck.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)
