"""LIWC@k: how far the gender words of a psychological dictionary lean to one side in the top documents.

A. Bigdeli, thesis, Section 3.2.2.2 and Tables 3.8, 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from ir_measures.measures import Measure, ParamInfo

from evenrank.measures.base import BiasMeasure, Context, Good, Param, PerQuery, register
from evenrank.measures.bias import measure_bias
from evenrank.measures.measurements import Measurement
from evenrank.measures.rank_bias import rab_weights
from evenrank.measures.sources import Sources
from evenrank.measures.summary import Options

if TYPE_CHECKING:
    from evenrank.text.tally import Tally


class DictionaryBias(BiasMeasure):
    """The lean of a list between a dictionary's female and male words, in percent of the text.

    LIWC@k of a query is | mean over its top k documents of (male % − female %) |, where % is 100 × the
    category's tokens / all tokens of the document; a list of n < k documents averages over what it has,
    and an empty document has 0 %. From 0 (balance) to 100. With ``signed=True`` the sign is kept: positive
    leans male, negative female. The words are those of a dictionary with the categories female and male:
    the open one, or LIWC's own if you have it (`dictionary=`).

    The thesis' Tables 4.1 and 4.2 are in percent, as here; 3.7, 3.8 and 3.12 are fractions.
    """

    __name__ = NAME = "LIWC"
    PRETTY_NAME = "Dictionary bias"
    SHORT_DESC = "Mean over queries of |male % − female %| over the top k documents."
    GOOD: ClassVar[Good | None] = "low"
    MEANING = "How far the top {k} documents lean to female or male words, either way, in percent of words."
    ORDERED = False
    NEEDS = frozenset({"docs"})
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold"),
        "signed": Param(dtype=bool, default=False, desc="keep the sign: positive leans male"),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if self["signed"]:  # a matter of the parameter here
            self.SIGNED, self.GOOD = True, "zero"  # type: ignore[misc]
            self.MEANING = "How far the top {k} documents lean to male words, in percent of words."  # type: ignore[misc]
            self.READING = "above 0 leans male, below 0 female"  # type: ignore[misc]

    def per_query(self, context: Context) -> PerQuery:
        weighing = context.lists.weigh(rab_weights, self["cutoff"])
        parts = {
            group: 100 * weighing.total(context.lists.magnitude("length", group))
            for group in ("female", "male")
        }
        lean = parts["male"] - parts["female"]
        return PerQuery(lean if self["signed"] else np.abs(lean), parts)


def measure_dictionary_bias(
    name: str, run: pl.DataFrame, measures: Sequence[DictionaryBias], sources: Sources, options: Options
) -> list[Measurement]:
    """LIWC of a normalised run, on the words of the dictionary instead of the lexicon."""
    found = []
    for measure in measures:
        # An absolute value is not linear in the documents, so that ties cannot be averaged over.
        ordered = options.ties == "expected" and not measure["signed"]
        chosen = replace(options, ties="order") if ordered else options
        # The dictionary's tally holds the ranked documents only; no background is looked up in it.
        counted = replace(sources, tally=sources.affiliation, background_depth=0)
        (one,) = measure_bias(name, run, [measure], counted, chosen)
        note = ("not linear in the documents: tied ones stand in trec_eval's order",) if ordered else ()
        found.append(replace(one, notes=one.notes + note))
    return found


def affiliation_tally(
    measures: Sequence[Measure],
    runs: Mapping[str, pl.DataFrame],
    docs: Any,
    dictionary: Any = None,
    tokenizer: str | None = None,
    missing: str = "error",
    ties: str = "order",
) -> Tally | None:
    """The female and male words of a dictionary in the ranked documents; None if no measure asks."""
    wanted = [measure for measure in measures if isinstance(measure, DictionaryBias)]
    if not wanted:
        return None
    depth = max(measure.depth() for measure in wanted)
    # Where documents are skipped or tied, those below the cut-off have a say.
    whole = missing == "skip" or ties == "expected"
    tops = [run if whole else run.filter(pl.col("rank") <= depth) for run in runs.values()]
    texts = docs.texts(dict.fromkeys(pl.concat(top["doc_id"] for top in tops).to_list()))
    ids, contents = list(texts), list(texts.values())
    frame = pl.DataFrame(
        {"doc_id": ids, "text": contents}, schema=dict.fromkeys(("doc_id", "text"), pl.String)
    )
    return dictionary_tally(frame, dictionary, tokenizer)


def dictionary_tally(docs: Any, dictionary: Any = None, tokenizer: str | None = None) -> Tally:
    """The female and male words of a dictionary in documents."""
    from evenrank.text.dictionaries import female_and_male
    from evenrank.text.tally import tally  # loads numba

    return tally(docs, female_and_male(dictionary), tokenizer=tokenizer or "words")


LIWC = DictionaryBias()
register(LIWC)
