"""Training sets as folders: queries, judgments, triples and a report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash

from evenrank.data.files import make_folder, refuse_input, writing
from evenrank.data.formats import json_objects
from evenrank.data.read import path_of, read_qrels, read_queries
from evenrank.data.schema import listing, show
from evenrank.errors import InputError
from evenrank.queries.generated import refuse_holding, refuse_other_index, refuse_tabs, relevant_pairs
from evenrank.rankers.index import Index
from evenrank.rankers.registry import search

REPORT = "report.json"
MAY_BE_STALE = ("triples.jsonl", "added.tsv", "pairs.tsv", "kept.tsv", "query_ids.txt")
"""Files that only some calls write: triples, and what tells genders."""


class TrainingSet:
    """Queries and judgments that were balanced, as a folder; what tells genders is kept back."""

    GENDER_FILE = "kept.tsv"

    def queries(self, x: Any) -> pl.DataFrame:
        """Of these queries those that stay, and those that are added."""
        raise NotImplementedError

    def qrels(self, x: Any) -> pl.DataFrame:
        """Of these judgments those that stay, and those that are added."""
        raise NotImplementedError

    def gender_table(self) -> pl.DataFrame:
        """What tells the genders of queries."""
        raise NotImplementedError

    def report(self) -> dict[str, Any]:
        """JSON-ready dict of what has changed."""
        raise NotImplementedError

    def more_files(
        self, triples: Any, index: Index | None, real: tuple[Any, Any] | None, seed: int
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Triples and other files, and what the report has to say of them."""
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

        The given queries, judgments and triples come first, then what is added. Triples of added queries need
        an index, to draw their negatives from (with `seed`); without `triples`, those of the real queries are
        made too. What tells genders is written only if asked for: a trainer should not see it. Triples, and
        files that tell genders, which an earlier call has left in the folder are removed if this one does not
        write them.
        """
        content = data_set(
            None if queries is None else self.queries(queries), None if qrels is None else self.qrels(qrels)
        )
        real = None if queries is None or qrels is None else (queries, qrels)
        more, facts = self.more_files(triples, index, real, seed)
        if not content and not more:
            more = self.without_inputs()
        content |= more
        if genders:
            content[self.GENDER_FILE] = self.gender_table().write_csv(separator="\t")
        report = {**self.report(), **facts, "files": [*content, REPORT]}
        content[REPORT] = json.dumps(report, indent=2, allow_nan=False) + "\n"
        to = Path(folder)
        _remove_stale(to, content)
        make_folder(to)
        for name, text in content.items():
            with writing(to / name) as file:
                file.write(text.encode())
        return [to / name for name in content]

    def without_inputs(self) -> dict[str, str]:
        """What is written where there is nothing else to write."""
        return {}


class WithAdded(TrainingSet):
    """Queries that are added to a training set, each with the one document it was made of.

    `added` has ``query_id, doc_id, text``.
    """

    added: pl.DataFrame
    GENDER_FILE = "added.tsv"

    def queries(self, x: Any) -> pl.DataFrame:
        """These queries, and those that are added; an id that is in both is an error."""
        given = read_queries(x)
        self._refuse_known(given, x)
        return pl.concat([given, self.added.select("query_id", "text")])

    def qrels(self, x: Any) -> pl.DataFrame:
        """These judgments, and those of the added queries; a query that is in both is an error."""
        given = read_qrels(x)
        self._refuse_known(given, x)
        return pl.concat([given, self.added.select("query_id", "doc_id", relevance=pl.lit(1, pl.Int64))])

    def _refuse_known(self, given: pl.DataFrame, x: Any) -> None:
        """Refuse to add a query whose id is there already."""
        known = self.added.join(given, on="query_id", how="semi", maintain_order="left")["query_id"]
        if len(known):
            problem = f"query_id {show(known[0])} is to be added, but is there already"
            remedy = "start from a set without generated queries, or give those other ids"
            raise InputError(f"{problem}; {remedy}", path=path_of(x))

    def more_files(
        self, triples: Any, index: Index | None, real: tuple[Any, Any] | None, seed: int
    ) -> tuple[dict[str, str], dict[str, Any]]:
        if index is None:
            if triples is not None:
                raise InputError("triples of added queries need negatives; give an index of the collection")
            return {}, {}
        refuse_other_index(self.added["doc_id"], index)
        real = None if triples is not None else real
        lines, without = made_triples(self.added, index, triples, real, seed=seed)
        return {"triples.jsonl": lines}, {"pairs without a triple": without}


def _remove_stale(folder: Path, content: Mapping[str, str]) -> None:
    """Remove what the report of an earlier call lists and this call does not write; no file of others."""
    try:
        listed = json.loads((folder / REPORT).read_bytes())["files"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    for name in MAY_BE_STALE:
        if name in listed and name not in content:
            try:
                (folder / name).unlink(missing_ok=True)
            except OSError as error:
                problem = f"is of an earlier call and cannot be removed: {error.strerror or error}"
                raise InputError(problem, path=folder / name) from error


def data_set(queries: pl.DataFrame | None, qrels: pl.DataFrame | None) -> dict[str, str]:
    """``queries.tsv`` and ``qrels.txt`` of these tables: names and contents of files.

    Ids that these files cannot hold are an error: blanks where there are judgments, tabs anywhere.
    """
    content: dict[str, str] = {}
    if queries is not None:
        refuse_tabs(queries["query_id"])
        rows = (f"{query_id}\t{' '.join(text.split())}\n" for query_id, text in queries.iter_rows())
        content["queries.tsv"] = "".join(rows)
    if qrels is not None:
        for name in ("query_id", "doc_id"):
            refuse_holding(qrels[name], r"\s", "a blank, which judgments (qrels.txt) cannot hold")
        content["qrels.txt"] = "".join(f"{q} 0 {d} {relevance}\n" for q, d, relevance in qrels.iter_rows())
    return content


def refuse_folder_of(folder: Path, *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse a folder in which an input has the name of a file that is to be written."""
    given = {Path(each).name for each in inputs if each is not None}
    for name in sorted(given & {*MAY_BE_STALE, "queries.tsv", "qrels.txt", REPORT}):
        refuse_input(folder / name, *inputs, what="the folder")


def read_triples(path: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The triples of a JSONL file, each with the line it stands on."""
    for number, result, line in json_objects(path):
        if not isinstance(result.get("query_id"), str | int):
            problem = f"triples need a query_id; found: {listing(result, 6)}"
            raise InputError(problem, path=path, line=number)
        yield result, line


def made_triples(
    added: pl.DataFrame,
    index: Index,
    triples: Any = None,
    real: tuple[Any, Any] | None = None,
    *,
    depth: int = 100,
    seed: int = 0,
) -> tuple[str, int]:
    """Lines of ``triples.jsonl``: those of a file as they are, then one for each pair of query and document.

    Pairs are those of the real queries and their judgments, if given, then those that are added. The negative
    is drawn from the first `depth` documents of BM25, the query's relevant ones left out. The random numbers
    of a query are its own. Also how many pairs have no triple: their document is not in the index, or BM25
    finds no other.
    """
    lines = [] if triples is None else [f"{line}\n" for _, line in read_triples(triples)]
    pairs = added.select("query_id", "doc_id", "text")
    if real is not None:
        pairs = pl.concat([relevant_pairs(*real), pairs])
    if pairs.is_empty():
        return "".join(lines), 0
    requested = pairs.select("query_id", "text").unique("query_id", maintain_order=True)
    result = search(index, requested, depth=depth)
    others = result.join(pairs, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    lists = dict(others.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    random: dict[str, np.random.Generator] = {}
    drawn: list[tuple[str, str, str, str]] = []
    for query_id, doc_id, text in pairs.iter_rows():
        if doc_ids := lists.get(query_id):
            if query_id not in random:
                own = xxhash.xxh3_64_intdigest(query_id.encode("utf-8", "surrogatepass"))
                random[query_id] = np.random.default_rng([seed, own])
            drawn.append((query_id, doc_id, text, doc_ids[int(random[query_id].integers(len(doc_ids)))]))
    texts = index.docs.texts({each for _, doc_id, _, other in drawn for each in (doc_id, other)})
    rows = [
        {"query_id": query_id, "query": text, "positive": texts[doc_id], "negative": texts[other]}
        for query_id, doc_id, text, other in drawn
        if doc_id in texts
    ]
    lines += [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    return "".join(lines), len(pairs) - len(rows)
