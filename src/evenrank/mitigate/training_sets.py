"""Training sets as folders: queries, judgments, triples and a report, written by whatever balances them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash

from evenrank.data import door, tables
from evenrank.data.columns import listing
from evenrank.data.files import writing
from evenrank.errors import InputError
from evenrank.rankers.catalogue import search
from evenrank.rankers.index import Index


class WithAdded:
    """Queries that are added to a training set, each with the one document it was made of.

    `added` has ``query_id, doc_id, text``. What tells the genders is written only if asked for.
    """

    added: pl.DataFrame
    TELLING = "added.tsv"

    def queries(self, x: Any) -> pl.DataFrame:
        """These queries, and those that are added."""
        return pl.concat([tables.queries(x), self.added.select("query_id", "text")])

    def qrels(self, x: Any) -> pl.DataFrame:
        """These judgments, and those of the added queries."""
        return pl.concat(
            [tables.qrels(x), self.added.select("query_id", "doc_id", relevance=pl.lit(1, pl.Int64))]
        )

    def telling(self) -> pl.DataFrame:
        """What tells the genders of the added queries."""
        raise NotImplementedError

    def report(self) -> dict[str, Any]:
        """What is added, as JSON."""
        raise NotImplementedError

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        queries: Any = None,
        qrels: Any = None,
        triples: Any = None,
        index: Index | None = None,
        genders: bool = False,
        seed: int = 0,
    ) -> list[Path]:
        """Write ``queries.tsv``, ``qrels.txt``, ``triples.jsonl`` and ``report.json`` to a folder.

        The given ones come first, then what is added. Triples of added queries need an index, to draw their
        negatives from. What tells the genders is written only if asked for.
        """
        content = data_set(
            None if queries is None else self.queries(queries), None if qrels is None else self.qrels(qrels)
        )
        if index is not None:
            content["triples.jsonl"] = added_triples(self.added, index, triples, seed=seed)
        elif triples is not None:
            raise InputError("triples of added queries need negatives; give an index of the collection")
        if genders:
            content[self.TELLING] = self.telling().write_csv(separator="\t")
        content["report.json"] = json.dumps(self.report(), indent=2, allow_nan=False) + "\n"
        return write_folder(folder, content)


def data_set(queries: pl.DataFrame | None, qrels: pl.DataFrame | None) -> dict[str, str]:
    """``queries.tsv`` and ``qrels.txt`` of these tables: names and contents of files."""
    content: dict[str, str] = {}
    if queries is not None:
        rows = ("\t".join(" ".join(str(cell).split()) for cell in row) for row in queries.iter_rows())
        content["queries.tsv"] = "".join(f"{row}\n" for row in rows)
    if qrels is not None:
        content["qrels.txt"] = "".join(f"{q} 0 {d} {relevance}\n" for q, d, relevance in qrels.iter_rows())
    return content


def write_folder(folder: str | os.PathLike[str], content: Mapping[str, str]) -> list[Path]:
    """Write texts to files of a folder, each of them whole or not at all."""
    to = Path(folder)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", path=folder) from error
    for name, text in content.items():
        with writing(to / name) as file:
            file.write(text.encode())
    return [to / name for name in content]


def read_triples(path: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The triples of a JSONL file, each with the line it stands on."""
    for number, found, line in door.objects(path):
        if not isinstance(found.get("query_id"), str | int):
            problem = f"triples need a query_id; found: {listing(found, 6)}"
            raise InputError(problem, path=path, line=number)
        yield found, line


def added_triples(
    added: pl.DataFrame, index: Index, triples: Any = None, *, depth: int = 100, seed: int = 0
) -> str:
    """Lines of ``triples.jsonl``: those of a file as they are, then one for each added query.

    The negative is drawn from the first `depth` documents of BM25, the query's own left out. The random
    numbers of a query are its own.
    """
    lines = [] if triples is None else [f"{line}\n" for _, line in read_triples(triples)]
    if added.is_empty():
        return "".join(lines)
    found = search(index, added.select("query_id", "text"), depth=depth)
    others = found.join(added, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    lists = dict(others.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    drawn: dict[str, str] = {}
    for query_id, doc_ids in lists.items():
        own = xxhash.xxh3_64_intdigest(query_id.encode("utf-8", "surrogatepass"))
        drawn[query_id] = doc_ids[int(np.random.default_rng([seed, own]).integers(len(doc_ids)))]
    texts = index.docs.texts({*drawn.values(), *added["doc_id"].to_list()})
    for query_id, doc_id, text in added.select("query_id", "doc_id", "text").iter_rows():
        if query_id in drawn and doc_id in texts:
            row = {"query_id": query_id, "query": text, "positive": texts[doc_id]}
            lines.append(json.dumps({**row, "negative": texts[drawn[query_id]]}, ensure_ascii=False) + "\n")
    return "".join(lines)
