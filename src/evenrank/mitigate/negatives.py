"""`er.negatives`: training examples whose negatives are the most one-sided documents of the first stage.

A ranker learns to put down what stands against the relevant document. If that is often a one-sided document,
it learns to put down one-sided documents (Bigdeli et al., ECIR 2022; Bigdeli, thesis, Section 4.2).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import raw_blocks, refuse_input, writing
from evenrank.data.formats import is_parquet, json_objects, read_table_file
from evenrank.data.read import is_path, path_of, read_qrels, read_queries, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, QUERY_ID
from evenrank.errors import InputError, check_choice, check_whole, is_whole
from evenrank.measures.document_bias import document_bias
from evenrank.measures.lists import Floats
from evenrank.show.numbers import counted

Form = Literal["ids", "triplet", "n-tuple", "labeled-pair", "labeled-list"]
"""Forms of a file: document ids, or texts as sentence-transformers calls its forms."""


@dataclass(frozen=True, eq=False)
class Negatives:
    """Negatives of each query.

    Attributes
    ----------
    frame
        query_id, doc_id, `biased` (whether it is among the most one-sided, or drawn) and `bias`; those of a
        query follow one another, the most one-sided first, then the drawn ones in the order of the draw.
    positives
        query_id and doc_id of the relevant documents.
    wanted
        How many were asked for.
    left_out
        Why queries have none, or fewer, and how many; and, once texts are written, how many documents
        have none, the last time.
    """

    frame: pl.DataFrame
    positives: pl.DataFrame
    wanted: int
    left_out: dict[str, int]
    _of_draw: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of_draw", dict(self.left_out))

    def pairs(self) -> pl.DataFrame:
        """Query and document ids, as `train_ranker` takes them."""
        return self.frame.select("query_id", "doc_id")

    def by_query(self) -> pl.DataFrame:
        """One row for each query: query_id, `positives` and `negatives`, lists of document ids."""
        lists = [
            frame.group_by("query_id", maintain_order=True).agg(pl.col("doc_id").alias(name))
            for name, frame in (("positives", self.positives), ("negatives", self.frame))
        ]
        return lists[0].join(lists[1], on="query_id", how="inner", maintain_order="right").sort("query_id")

    def rows(self, form: Form, docs: Any = None, queries: Any = None) -> Iterator[dict[str, Any]]:
        """The examples as objects of one of the forms.

        ``ids`` has one object for each query; ``n-tuple`` and ``labeled-list`` have one for each relevant
        document (n-tuple: only of queries with as many negatives as were asked for), ``triplet`` one for
        each relevant document and negative, ``labeled-pair`` one for each document of a query, relevant or
        not. Documents without a text are left out, and counted in `left_out`. All queries have to be among
        `queries`; with ``ids`` these may be left out.
        """
        check_choice("form", form, get_args(Form))
        self.left_out.clear()
        self.left_out.update(self._of_draw)
        table = self.by_query()
        if form == "ids" and docs is not None:
            raise InputError("the form ids holds no texts; leave docs out")
        if form != "ids" and (docs is None or queries is None):
            raise InputError("texts are written: give docs and queries, or the form ids")
        requested = {} if queries is None else dict(read_queries(queries).iter_rows())
        if queries is not None and (lacking := [each for each in table["query_id"] if each not in requested]):
            some = f"{counted(len(lacking), 'query has', 'queries have')} no text, such as {lacking[0]!r}"
            raise InputError(f"{some}; add what is lacking to the queries", path=path_of(queries))
        if form == "ids":
            yield from table.iter_rows(named=True)
            return
        wanted = pl.concat([self.frame["doc_id"], self.positives["doc_id"]]).unique().to_list()
        texts = open_docs(docs).texts(wanted)
        if not texts:
            raise InputError("the collection has none of the documents; check that it belongs to the run")
        if lost := len(wanted) - len(texts):
            self.left_out["documents without a text (left out)"] = lost
        short = 0
        for query_id, positives, negatives in table.iter_rows():
            good, against = ([texts[each] for each in ids if each in texts] for ids in (positives, negatives))
            short += len(against) < self.wanted
            yield from _shaped(form, requested[query_id], good, against, self.wanted)
        if short and form == "n-tuple":
            self.left_out.pop(_few(self.wanted), None)
            self.left_out[f"queries with fewer than {self.wanted} negatives (not written as n-tuple)"] = short

    def write(
        self, path: str | os.PathLike[str], *, form: Form = "n-tuple", docs: Any = None, queries: Any = None
    ) -> int:
        """Write the examples as JSONL or, by the name's ending, Parquet; returns how many there are."""
        target = Path(path)
        sources = (each.path if isinstance(each, Docs) else path_of(each) for each in (docs, queries))
        refuse_input(target, *sources, what="the examples")
        rows = list(self.rows(form, docs, queries))
        if not rows:
            lacking = f"{self.wanted} negatives with a text" if form == "n-tuple" else "texts of both kinds"
            raise InputError(
                f"there is nothing to write: no query with the text of a relevant document has {lacking}",
                path=target,
            )
        with writing(target) as file:
            if target.suffix == ".parquet":
                pl.DataFrame(rows).write_parquet(file)
            else:
                file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
        return len(rows)


def negatives(
    run: Any,
    qrels: Any,
    tally: Any = None,
    *,
    bias_lambda: float = 0.6,
    n: int = 20,
    seed: int = 0,
    bias: Any = "tf",
    depth: int = 1000,
    **given: Any,
) -> Negatives:
    """Negatives for each query with a relevant document: ⌊λ·n⌋ most one-sided candidates, the rest at random.

    Candidates are the documents of the first stage that are not judged for the query. They are sorted by the
    size of their bias, ties in the order of the first stage. λ = 0 is plain random sampling, λ = 1 takes the
    n most one-sided. A query with fewer than n candidates gets all of them.

    Bigdeli, thesis, Section 4.2.1; up to λ = 0.6 its rankers lost no significant RR@10.

    Parameters
    ----------
    run, qrels
        The first stage, and the judgments of the training queries.
    tally
        The coloured collection; not needed if `bias` does without.
    bias_lambda, n
        λ, from 0 to 1, and the number of negatives.
    seed
        Of the draw. Each query has its own: neither the order nor the choice of queries changes the draw.
    bias
        What makes a document one-sided: tf, count, boolean, length, ``liwc``, ``label``, or a measure that is
        a sum over documents; see :func:`evenrank.measures.document_bias.document_measure`.
    depth
        Documents of each query that are looked at, from the top.
    given
        What the measure needs else: docs, lexicon, labels, dictionary, missing.

    Examples
    --------
    >>> import evenrank as er
    >>> run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    >>> docs = {"a": "he and his son", "b": "she said", "c": "rain", "d": "he said"}
    >>> found = negatives(run, {"q": {"a": 1}}, er.tally(docs), bias_lambda=1.0, n=2)
    >>> found.frame["doc_id"].to_list()
    ['b', 'd']
    """
    if not isinstance(bias_lambda, Real) or not 0 <= bias_lambda <= 1:
        raise InputError(f"bias_lambda is {bias_lambda!r}, but must be between 0 and 1")
    for name, value in (("n", n), ("depth", depth)):
        check_whole(name, value)
    check_whole("seed", seed, least=0)
    judged = read_qrels(qrels)
    good = judged.filter(pl.col("relevance") > 0).select("query_id", "doc_id")
    frame = read_run(run)
    requested = good["query_id"].n_unique()
    used = frame.join(good, on="query_id", how="semi", maintain_order="left").filter(pl.col("rank") <= depth)
    if used.is_empty():
        raise InputError("no query of the run has a relevant document; do run and qrels belong together?")
    if tally is not None:
        given["tally"] = tally
    used = used.with_columns(bias=pl.Series(document_bias(used, bias, **given)))
    open_ = used.join(judged, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    most = int(bias_lambda * n + 1e-9)  # 0.29 · 100 is a little below 29 in binary
    result = _chosen(open_, most, n, seed)
    if result.is_empty():
        raise InputError("every document of the run is judged: there are no candidates for negatives")
    sizes = result.group_by("query_id").len()["len"]
    left_out = {
        "queries without candidates": requested - len(sizes),
        _few(n): int((sizes < n).sum()),
    }
    positives = good.join(result, on="query_id", how="semi", maintain_order="left")
    return Negatives(result, positives, n, {why: count for why, count in left_out.items() if count})


def _few(n: int) -> str:
    return f"queries with fewer than {n} candidates (all are used)"


def _chosen(open_: pl.DataFrame, most: int, n: int, seed: int) -> pl.DataFrame:
    """The negatives of each query; its candidates follow one another in the order of the first stage."""
    bias = open_["bias"].to_numpy()
    ids = open_["query_id"].rle().struct.unnest()
    rows, biased = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
    start = 0
    for length, query_id in ids.iter_rows():
        first = _most_first(bias[start : start + length])[: min(most, n)]
        left = np.ones(length, bool)
        left[first] = False
        rest = np.flatnonzero(left)
        own = xxhash.xxh3_64_intdigest(query_id.encode("utf-8", "surrogatepass"))
        drawn = np.random.default_rng([seed, own]).permutation(rest)[: n - len(first)]
        rows.append(start + np.concatenate([first, drawn]))
        biased.append(np.arange(len(first) + len(drawn)) < len(first))
        start += length
    flags = pl.Series("biased", np.concatenate(biased))
    return open_[np.concatenate(rows)].select("query_id", "doc_id", flags, "bias")


def _most_first(bias: Floats) -> npt.NDArray[np.int64]:
    """The places of candidates, the most one-sided first, ties in the order that they have.

    Equal sizes may differ in their last bits, as ln 3 − ln 2, ln 9 − ln 6 and ln 6 − ln 4 do. So two tie if
    they are no farther apart than 10⁻¹² of the largest. They are not rounded: equal ones could then lie on
    either side of a step.
    """
    falling = np.argsort(-bias, kind="stable")
    sizes = bias[falling]
    same = 1e-12 * bias.max(initial=0.0, where=np.isfinite(bias))
    level = np.zeros(len(bias), np.int64)
    level[falling[1:]] = np.cumsum(~(sizes[:-1] - sizes[1:] <= same))  # what is not a number stays behind
    return np.argsort(level, kind="stable")


def _shaped(
    form: str, query: str, positives: list[str], against: list[str], wanted: int
) -> Iterator[dict[str, Any]]:
    """The examples of one query; none where no relevant document has a text."""
    if form == "labeled-pair":  # not by positive: each pair of query and document is there once
        labelled = [(text, 1) for text in positives] + [(text, 0) for text in against if positives]
        yield from ({"query": query, "docs": text, "label": label} for text, label in labelled)
        return
    for positive in positives:
        if form == "triplet":
            yield from ({"query": query, "positive": positive, "negative": each} for each in against)
        elif form == "labeled-list":
            yield {"query": query, "docs": [positive, *against], "labels": [1] + [0] * len(against)}
        elif len(against) == wanted:
            named = {f"negative_{place}": each for place, each in enumerate(against, 1)}
            yield {"query": query, "positive": positive, **named}


def _is_id(value: Any) -> bool:
    return isinstance(value, str) or is_whole(value)


def negative_pairs(source: Any) -> pl.DataFrame:
    """Pairs ``query_id, doc_id`` out of a table of them, or of lists of ids that `Negatives.write` wrote.

    The third column, ``line``, says where in its file each was read; null where there are no lines.
    """
    listed = _listed(source) if is_path(source) else None
    if listed is not None:
        return listed
    names = {"query_id": QUERY_ID, "doc_id": DOC_ID}
    table = read_table(source, names, layouts=[list(names)])
    lines = pl.lit(None) if table.line is None else table.line + pl.int_range(pl.len())
    return pl.DataFrame([table.ids(name) for name in names]).with_columns(line=lines.cast(pl.Int64))


def _listed(path: Any) -> pl.DataFrame | None:
    """Pairs out of a file of lists, JSONL or Parquet; None if it is another table."""
    objects: Iterator[tuple[int | None, dict[str, Any]]]
    if is_parquet(path):
        objects = ((None, row) for row in read_table_file(path).frame.iter_rows(named=True))
    elif any(block.data.lstrip()[:1] == b"{" for block in islice(raw_blocks(path), 1)):
        objects = ((number, row) for number, row, _ in json_objects(path))
    else:
        return None
    rows: list[tuple[str, str, int | None]] = []
    for number, row in objects:
        if "query_id" in row and "doc_id" in row and not rows:
            return None
        named = row.get("negatives")
        if "query_id" not in row or not isinstance(named, list) or not all(map(_is_id, named)):
            problem = "an object needs query_id and negatives, a list of document ids"
            if "query" in row:
                problem = "holds texts, not ids; write it with --ids"
            raise InputError(problem, path=path, line=number)
        rows += [(str(row["query_id"]), str(each), number) for each in named]
    if not rows:
        raise InputError("there are no negatives in it", path=path)
    columns = {"query_id": pl.String, "doc_id": pl.String, "line": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")
