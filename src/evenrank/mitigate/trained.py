"""Mitigations that train: a ranker learns with less and less bias, and each strength gives its run.

All of them begin with the same plain training, strength 0: negatives drawn at random from the first stage.
What grows is λ of the negatives, β of a loss, μ of an adversary, γ of the consistency of mirrored documents.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_choice
from evenrank.measures.document_bias import bias_by, document_measure
from evenrank.measures.inputs import Inputs
from evenrank.mitigate.negatives import negatives
from evenrank.rankers.neural.candidates import INTERACTION, KINDS
from evenrank.show.numbers import counted

_LAMBDAS = (0.2, 0.4, 0.6, 0.8, 1.0)
_STRENGTHS = (0.3, 1.0, 3.0)
_OWN = {"negatives": _LAMBDAS, "adversary": (1.0, 10.0), "consistency": (1.0, 10.0)}
_FIRST_STAGE_DEPTH = 1000


def training_methods() -> tuple[str, ...]:
    """What can be swept by training: negatives, the losses that look at bias, adversary and mirroring."""
    try:
        from evenrank.training.losses import LOSSES, is_biased
    except ImportError:  # without torch nothing is trained
        return tuple(_OWN)
    return (*_OWN, *filter(is_biased, LOSSES))


@dataclass(frozen=True, eq=False)
class RetrainSpec:
    """What a ranker is trained on. What makes a document one-sided is the bias that a sweep measures.

    Attributes
    ----------
    kind
        What is trained: head, knrm, …, cross-encoder; see ``evenrank train``.
    docs, queries, qrels
        The collection, the training queries and their judgments.
    run
        The first stage of the training queries; BM25 if not given.
    n
        Negatives of each query.
    seed
        Seed of everything that is drawn.
    settings
        Those of the model and of its training, word vectors too.
    """

    kind: str
    docs: Any
    queries: Any
    qrels: Any
    run: Any = None
    n: int = 20
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("ranker", self.kind, KINDS)

    @cached_property
    def first_stage(self) -> pl.DataFrame:
        """The first-stage run of the training queries."""
        if self.run is not None:
            return read_run(self.run)
        from evenrank.rankers.indexing import cached_index
        from evenrank.rankers.registry import search

        return search(cached_index(open_docs(self.docs)), self.queries, depth=_FIRST_STAGE_DEPTH)

    def recipe(self, changed: Mapping[str, Any]) -> Any:
        """How the model is trained, with these settings changed."""
        from evenrank.training.trainer import read_settings

        settings = {key: value for key, value in self.settings.items() if key != "vectors"}
        return read_settings(self.kind, {**settings, **changed})[1]


@dataclass(frozen=True, eq=False)
class TrainingMitigation:
    """A ranker trained anew at each strength, which re-ranks a run.

    Attributes
    ----------
    name
        The method.
    run, queries
        What the trained rankers re-rank: a first stage of other queries than they are trained on.
    bias, lexicon, labels
        What makes a document one-sided, as for :func:`evenrank.negatives`.
    """

    name: str
    spec: RetrainSpec
    run: pl.DataFrame
    queries: pl.DataFrame
    bias: Any = "tf"
    lexicon: Any = None
    labels: Any = None
    given: Sequence[float] | None = None

    @classmethod
    def measured_by(
        cls, measure: Any, name: str, spec: RetrainSpec, inputs: Inputs, given: Sequence[float] | None
    ) -> TrainingMitigation:
        """The method, training by the bias, the words and the labels that a sweep measures.

        Where the measure gives no bias of single documents, methods that need it are refused; an adversary
        and mirroring do without.
        """
        is_tallied = inputs.given.get("tally") is not None or inputs.given.get("tokenizer") is not None
        if is_tallied and inputs.tokenizer != "words":
            raise InputError(
                "training counts the words of the tokenizer words, and bias is counted with "
                f"{inputs.tokenizer}; leave the tokenizer out, or tally with words"
            )
        bias = bias_by(measure)
        if bias is None:
            if name not in ("adversary", "consistency"):
                raise InputError(f"{name} needs the bias of single documents, and {measure} says none")
            bias = "tf"
        needs = document_measure(bias).NEEDS
        if "dictionary" in needs and inputs.given.get("dictionary") is not None:
            raise InputError("training reads the dictionary open and no other; leave the dictionary out")
        lexicon = inputs.lexicon if inputs.reading_tally([measure]) else None
        labels = inputs.given.get("labels") if "groups" in needs else None
        (run,) = inputs.runs.values()
        return cls(name, spec, run, inputs.queries, bias, lexicon, labels, given)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if own := sorted(_changed_settings(self.name, 1.0).keys() & self.spec.settings.keys()):
            raise InputError(f"{self.name} sets {' and '.join(own)} itself; leave that out of the settings")
        if self.name == "adversary" and self.spec.kind in INTERACTION:
            able = ", ".join(kind for kind in KINDS if kind not in INTERACTION)
            raise InputError(f"{self.spec.kind} has no vector for an adversary to read; choose one of {able}")

    def check(self) -> None:
        """Refuse settings that cannot be trained with, and queries to re-rank that are trained on."""
        from evenrank.rankers.neural.reranking import queries_of
        from evenrank.rankers.neural.saved import text_hashes

        spec = self.spec
        spec.recipe(_changed_settings(self.name, 1.0))
        judged = read_qrels(spec.qrels).filter(pl.col("relevance") > 0)
        learned = read_queries(spec.queries).join(judged, on="query_id", how="semi")
        if spec.run is not None:
            learned = queries_of(spec.first_stage, learned)
        tested = queries_of(self.run, self.queries)
        is_seen = np.isin(text_hashes(tested["text"]), text_hashes(learned["text"]))
        if is_seen.any():
            seen = tested["query_id"].filter(pl.Series(is_seen))
            whole = counted(len(tested), "query", "queries")
            raise InputError(
                f"rankers would be trained on {len(seen):,} of the {whole} that they re-rank, such as "
                f"{seen[0]!r}: what they find for these says nothing; choose other queries to re-rank or to "
                "train on"
            )

    def strengths(self) -> list[float]:
        """Those given, each once and rising, or the usual ones of the method."""
        given = _OWN.get(self.name, _STRENGTHS) if self.given is None else self.given
        return sorted({0.0, *map(float, given)})

    def _training_data(self, bias_lambda: float) -> Any:
        """The training data with negatives of this λ."""
        from evenrank.training.dataset import make_examples

        spec, recipe = self.spec, self.spec.recipe({})
        drawn = negatives(
            spec.first_stage,
            spec.qrels,
            bias_lambda=bias_lambda,
            n=spec.n,
            seed=spec.seed,
            bias=self.bias,
            depth=_FIRST_STAGE_DEPTH,
            docs=spec.docs,
            lexicon=self.lexicon,
            labels=self.labels,
        )
        return make_examples(
            spec.docs,
            spec.queries,
            spec.qrels,
            run=spec.first_stage,
            negatives=drawn.pairs(),
            depth=recipe.depth,
            dev_share=recipe.dev_share,
            dev_most=recipe.dev_most,
            seed=spec.seed,
        )

    @cached_property
    def _plain_data(self) -> Any:
        return self._training_data(0.0)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run of a ranker trained at this strength."""
        from evenrank.rankers.neural.reranking import rerank
        from evenrank.training.trainer import train_on

        is_drawn = self.name == "negatives" and strength > 0
        data = self._training_data(strength) if is_drawn else self._plain_data
        settings = {**self.spec.settings, **(_changed_settings(self.name, strength) if strength else {})}
        depth = int(self.run["rank"].max() or 1)  # type: ignore[arg-type]
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            train_on(
                data,
                self.spec.kind,
                model,
                bias=self.bias,
                lexicon=self.lexicon,
                labels=self.labels,
                seed=self.spec.seed,
                **settings,
            )
            return rerank(model, self.run, self.spec.docs, self.queries, depth=depth)


def _changed_settings(method: str, strength: float) -> dict[str, Any]:
    """How the training differs from plain training."""
    if method == "negatives":
        return {}
    if method in ("adversary", "consistency"):
        return {method: strength}
    return {"loss": method, "loss_strength": strength}
