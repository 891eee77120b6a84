"""`er.negatives`: training examples whose negatives are the most one-sided documents of the first stage.

A ranker learns to put down what stands against the relevant document. If that is often a one-sided document,
it learns to put down one-sided documents (Bigdeli et al., ECIR 2022; Bigdeli, thesis, Section 4.2).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from evenrank.data.docs import Docs, open_docs
from evenrank.data.files import refuse_input, writing
from evenrank.data.read import path_of, read_qrels, read_queries, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, QUERY_ID
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.measures.document_bias import document_bias
from evenrank.measures.lists import Floats
from evenrank.show.numbers import counted

Form = Literal["ids", "triplet", "n-tuple"]
"""Forms of a file: ids of queries and documents, or texts as sentence-transformers reads them."""


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
        Why queries have none, or fewer, and how many.
    """

    frame: pl.DataFrame
    positives: pl.DataFrame
    wanted: int
    left_out: dict[str, int]

    def pairs(self) -> pl.DataFrame:
        """Query and document ids, as `train_ranker` takes them."""
        return self.frame.select("query_id", "doc_id")

    def examples(
        self, form: Form = "n-tuple", docs: Any = None, queries: Any = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The examples in one of the forms; why documents or queries are left out, and how many.

        ``ids`` has one for each negative, and needs no texts. ``n-tuple`` has one for each relevant document
        of a query that has as many negatives as were asked for, ``triplet`` one for each relevant document
        and negative. All queries have to be among `queries`.
        """
        check_choice("form", form, get_args(Form))
        if form == "ids":
            return self.pairs().to_dicts(), {}
        if docs is None or queries is None:
            raise InputError("texts are written: give docs and queries, or the form ids")
        requested = dict(read_queries(queries).iter_rows())
        positives, negatives = _doc_ids(self.positives), _doc_ids(self.frame)
        if lacking := [query_id for query_id in negatives if query_id not in requested]:
            some = f"{counted(len(lacking), 'query has', 'queries have')} no text, such as {lacking[0]!r}"
            raise InputError(f"{some}; add what is lacking to the queries", path=path_of(queries))
        wanted = pl.concat([self.frame["doc_id"], self.positives["doc_id"]]).unique().to_list()
        texts = open_docs(docs).texts(wanted)
        if not texts:
            raise InputError("the collection has none of the documents; check that it belongs to the run")
        rows: list[dict[str, Any]] = []
        short = 0
        for query_id in sorted(negatives):
            good, bad = ([texts[x] for x in ids[query_id] if x in texts] for ids in (positives, negatives))
            short += len(bad) < self.wanted
            for positive in good:
                example = {"query": requested[query_id], "positive": positive}
                if form == "triplet":
                    rows += [{**example, "negative": text} for text in bad]
                elif len(bad) == self.wanted:
                    rows.append(example | {f"negative_{place}": text for place, text in enumerate(bad, 1)})
        left_out = {"documents without a text": len(wanted) - len(texts)}
        if form == "n-tuple":
            left_out[f"queries with fewer than {self.wanted} negatives (not written as n-tuple)"] = short
        return rows, {why: count for why, count in left_out.items() if count}

    def write(
        self, path: str | os.PathLike[str], *, form: Form = "n-tuple", docs: Any = None, queries: Any = None
    ) -> dict[str, int]:
        """Write the examples as JSONL or, by the name's ending, Parquet.

        Returns the number of ``examples``, and why documents or queries are left out, and how many.
        """
        target = Path(path)
        sources = (each.path if isinstance(each, Docs) else path_of(each) for each in (docs, queries))
        refuse_input(target, *sources, what="the examples")
        rows, left_out = self.examples(form, docs, queries)
        if not rows:
            reasons = "; ".join(f"{why}: {count:,}" for why, count in left_out.items())
            raise InputError(f"there is nothing to write ({reasons})", path=target)
        with writing(target) as file:
            if target.suffix == ".parquet":
                pl.DataFrame(rows).write_parquet(file)
            else:
                file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
        return {"examples": len(rows), **left_out}


def _doc_ids(frame: pl.DataFrame) -> dict[str, list[str]]:
    return dict(frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())


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
        f"queries with fewer than {n} candidates": int((sizes < n).sum()),
    }
    positives = good.join(result, on="query_id", how="semi", maintain_order="left")
    return Negatives(result, positives, n, {why: count for why, count in left_out.items() if count})


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


def negative_pairs(source: Any) -> pl.DataFrame:
    """Pairs ``query_id, doc_id`` out of a table of them, such as the form ids of `Negatives.write`.

    The third column, ``line``, says where in its file each was read; null where there are no lines.
    """
    names = {"query_id": QUERY_ID, "doc_id": DOC_ID}
    table = read_table(source, names, layouts=[list(names)])
    lines = pl.lit(None) if table.line is None else table.line + pl.int_range(pl.len())
    return pl.DataFrame([table.ids(name) for name in names]).with_columns(line=lines.cast(pl.Int64))
