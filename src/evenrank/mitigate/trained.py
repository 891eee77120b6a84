"""Mitigations that train: a ranker learns with less and less bias, and each strength gives its run.

All of them begin with the same plain training, strength 0: negatives drawn at random from the first stage.
What grows is λ of the negatives, β of a loss, μ of an adversary, γ of the consistency of mirrored documents.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_choice
from evenrank.measures.dictionary import Dictionary
from evenrank.measures.document_bias import bias_by, document_measure
from evenrank.measures.groups import Groups
from evenrank.measures.inputs import Inputs
from evenrank.mitigate.base import check_strengths
from evenrank.mitigate.negatives import negatives
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import INTERACTION, KINDS
from evenrank.show.numbers import counted

_LAMBDAS = (0.2, 0.4, 0.6, 0.8, 1.0)
_STRENGTHS = (0.3, 1.0, 3.0)
_OWN = {"negatives": _LAMBDAS, "adversary": (1.0, 10.0), "consistency": (1.0, 10.0)}


def methods_of_training() -> tuple[str, ...]:
    """What can be swept by training: negatives, the losses that look at bias, adversary and mirroring."""
    try:
        from evenrank.training.losses import LOSSES, is_biased
    except ImportError:  # without torch nothing is trained
        return tuple(_OWN)
    return (*_OWN, *filter(is_biased, LOSSES))


def refuse_bias(method: str, measure: Any) -> NoReturn:
    """Refuse a method that looks at single documents, where the measure says nothing of them."""
    raise InputError(f"{method} needs the bias of single documents, and {measure} says none")


@dataclass(frozen=True, eq=False)
class Training:
    """What a ranker is trained on, and what it ranks.

    Attributes
    ----------
    kind
        What is trained: head, knrm, …, cross-encoder; see ``evenrank train``.
    docs, queries, qrels
        The collection, the training queries and their judgments.
    run
        The first stage of the training queries; BM25 if not given.
    index
        For BM25: an index of the collection; one in the cache if not given.
    n, pool
        Negatives of each query, and how many documents of the first stage they are taken from.
    bias, lexicon, labels
        What makes a document one-sided, as for :func:`evenrank.negatives`; tf unless given. A sweep trains by
        what it measures, and takes none of them.
    seed
        Of all that is drawn.
    settings
        Those of the model and of its training, word vectors too.
    """

    kind: str
    docs: Any
    queries: Any
    qrels: Any
    run: Any = None
    index: Any = None
    n: int = 20
    pool: int = 1000
    bias: Any = None
    lexicon: Any = None
    labels: Any = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_choice("ranker", self.kind, KINDS)

    def aligned(self, measure: Any, inputs: Inputs, methods: Sequence[str]) -> Training:
        """The same training by the bias, the words and the labels that a sweep measures.

        Where the measure says nothing of single documents, methods that have to know are refused; an
        adversary and mirroring do without.
        """
        if given := [name for name in ("bias", "lexicon", "labels") if getattr(self, name) is not None]:
            left = " and ".join(given)
            raise InputError(f"a sweep trains by what it measures; leave {left} out of the training")
        counted = inputs.given.get("tally") is not None or inputs.given.get("tokenizer") is not None
        if counted and inputs.tokenizer != "words":
            raise InputError(
                "training counts the words of the tokenizer words, and bias is counted with "
                f"{inputs.tokenizer}; leave the tokenizer out, or tally with words"
            )
        bias = bias_by(measure)
        for method in methods if bias is None else ():
            if method not in ("adversary", "consistency"):
                refuse_bias(method, measure)
        bias = "tf" if bias is None else bias
        view = document_measure(bias).VIEW
        if issubclass(view, Dictionary) and inputs.given.get("dictionary") is not None:
            raise InputError("training reads the dictionary open and no other; leave the dictionary out")
        words = inputs.lexicon if inputs.reading_tally([measure]) else None
        return replace(
            self,
            bias=bias,
            lexicon=words,
            labels=inputs.given.get("labels") if issubclass(view, Groups) else None,
        )

    def check(self, methods: Sequence[str], run: pl.DataFrame, queries: Any) -> None:
        """Refuse settings that cannot be trained with, and queries to re-rank that are trained on."""
        for changed in ({}, *(setting(method, 1.0) for method in methods)):
            self._config(**changed)
        self._refuse_seen(run, queries)

    def _config(self, **changed: Any) -> Any:
        """The settings of the training, with these changes."""
        from evenrank.training.trainer import read_settings

        own = {key: value for key, value in self.settings.items() if key != "vectors"}
        return read_settings(self.kind, {**own, **changed})[1]

    def _refuse_seen(self, run: pl.DataFrame, queries: Any) -> None:
        from evenrank.rankers.neural.reranking import queries_of
        from evenrank.rankers.neural.saved import text_hashes

        judged = read_qrels(self.qrels).filter(pl.col("relevance") > 0)
        learned = read_queries(self.queries).join(judged, on="query_id", how="semi")
        if self.run is not None:
            learned = queries_of(self.first, learned)
        tested = queries_of(run, read_queries(queries))
        known = np.isin(text_hashes(tested["text"]), text_hashes(learned["text"]))
        if known.any():
            seen = tested["query_id"].filter(pl.Series(known))
            whole = counted(len(tested), "query", "queries")
            raise InputError(
                f"rankers would be trained on {len(seen):,} of the {whole} that they re-rank, such as "
                f"{seen[0]!r}: what they find for these says nothing; choose other queries to re-rank or to "
                "train on"
            )

    @cached_property
    def first(self) -> pl.DataFrame:
        """The first stage of the training queries."""
        if self.run is not None:
            return read_run(self.run)
        from evenrank.rankers.indexing import cached_index
        from evenrank.rankers.registry import search

        index = cached_index(open_docs(self.docs)) if self.index is None else self.index
        return search(index, self.queries, depth=self.pool)

    def prepared(self, bias_lambda: float) -> Any:
        """The training data with negatives of this λ."""
        from evenrank.training.dataset import make_examples

        config = self._config()
        drawn = negatives(
            self.first,
            self.qrels,
            bias_lambda=bias_lambda,
            n=self.n,
            seed=self.seed,
            bias="tf" if self.bias is None else self.bias,
            depth=self.pool,
            docs=self.docs,
            lexicon=self.lexicon,
            labels=self.labels,
        )
        return make_examples(
            self.docs,
            self.queries,
            self.qrels,
            run=self.first,
            negatives=drawn.pairs(),
            depth=config.depth,
            dev_share=config.dev_share,
            dev_most=config.dev_most,
            seed=self.seed,
        )

    @cached_property
    def _plain(self) -> Any:
        return self.prepared(0.0)

    def ranked(
        self, run: pl.DataFrame, queries: Any, method: str = "negatives", strength: float = 0.0
    ) -> pl.DataFrame:
        """The run that a model makes of another, trained by this method at this strength."""
        from evenrank.rankers.neural.reranking import rerank
        from evenrank.training.trainer import train_on

        ready = self.prepared(strength) if method == "negatives" and strength else self._plain
        more = {
            "bias": "tf" if self.bias is None else self.bias,
            "lexicon": self.lexicon,
            "labels": self.labels,
        }
        given = {**self.settings, **(setting(method, strength) if strength else {})}
        deepest = int(run["rank"].max() or 1)  # type: ignore[arg-type]
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model"
            train_on(
                ready,
                self.kind,
                target,
                seed=self.seed,
                progress=self.progress,
                **more,
                **given,
            )
            return rerank(target, run, self.docs, queries, depth=deepest)


def setting(method: str, strength: float) -> dict[str, Any]:
    """How the training differs from plain training."""
    if method == "negatives":
        return {}
    if method in ("adversary", "consistency"):
        return {method: strength}
    return {"loss": method, "loss_strength": strength}


@dataclass(frozen=True, eq=False)
class Retrained:
    """A ranker trained anew at each strength; see :class:`Training`.

    Attributes
    ----------
    name
        The method.
    run, queries
        What the trained rankers re-rank: a first stage of other queries than they are trained on.
    plain
        The run of plain training, if it is there already.
    """

    name: str
    training: Training
    run: pl.DataFrame
    queries: Any
    given: Sequence[float] | None = None
    plain: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.given is not None:
            check_strengths(self.name, self.given, most=1 if self.name == "negatives" else math.inf)
        if own := sorted(setting(self.name, 1.0).keys() & self.training.settings.keys()):
            raise InputError(f"{self.name} sets {' and '.join(own)} itself; leave that out of the settings")
        if self.name == "adversary" and self.training.kind in INTERACTION:
            able = ", ".join(kind for kind in KINDS if kind not in INTERACTION)
            raise InputError(
                f"{self.training.kind} has no vector for an adversary to read; choose one of {able}"
            )

    def strengths(self) -> list[float]:
        """Those given, each once and rising, or the usual ones of the method."""
        given = _OWN.get(self.name, _STRENGTHS) if self.given is None else self.given
        return sorted({0.0, *map(float, given)})

    def apply(self, strength: float) -> pl.DataFrame:
        """The run of a ranker trained at this strength."""
        if strength == 0 and self.plain is not None:
            return self.plain
        return self.training.ranked(self.run, self.queries, self.name, strength)
