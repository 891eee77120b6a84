"""`BiasEvaluator`: our measures during anyone's own training with sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ir_measures.measures import Measure

from evenrank.data.docs import open_docs
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures.base import distance_from_ideal, distance_name, preferred_direction
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.rerankers import CrossEncoderReranker
from evenrank.rankers.neural.transformers import library
from evenrank.text.tally import tally

library()
from sentence_transformers.base.evaluation import BaseEvaluator  # noqa: E402 - library() says what to install


class BiasEvaluator(BaseEvaluator):
    """Re-ranks the candidates of some queries with the model as it is, and measures the lists.

    For ``evaluator=`` of a ``SentenceTransformerTrainer`` or ``CrossEncoderTrainer``, alone or in a
    ``SequentialEvaluator``. The values are in the trainer's log, and in the card of the saved model.

    Parameters
    ----------
    run, docs, queries
        The first stage, the collection, the queries' texts: those the model is not trained on.
    measures
        Ours and those of ir_measures: ``["ARaB@10", "NFaiRR@10", "RR@10"]``. The first is the primary metric,
        by which a trainer can choose the best model. Where 0 is its good value, that is how far it is from 0:
        ``bias_abs(ARaB@10)``, the mean over the queries of the absolute value.
    depth
        Candidates of each query.
    name
        Prefix of the measures in the log.
    inputs
        What the measures need: ``qrels``, ``lexicon``, ``labels``, …, as :func:`evenrank.measure` takes them.

    Examples
    --------
    >>> evaluator = BiasEvaluator("bm25.run", "docs.tsv", "queries.tsv", ["ARaB@10"])  # doctest: +SKIP
    >>> evaluator(model)  # doctest: +SKIP
    {'bias_ARaB@10': 0.21, 'bias_abs(ARaB@10)': 0.34}
    """

    def __init__(
        self,
        run: Any,
        docs: Any,
        queries: Any,
        measures: str | Measure | Sequence[str | Measure] = ("ARaB@10", "NFaiRR@10"),
        *,
        depth: int = 50,
        name: str = "bias",
        **inputs: Any,
    ) -> None:
        super().__init__()
        self.name = name
        self.measures = listed_measures(measures)
        self._primary = _absolute(self.measures[0])
        self.inputs = inputs
        self._docs = open_docs(docs)
        self._queries = read_queries(queries)
        self._run = read_run(run)
        self._pairs = candidates(self._run, self._docs, self._queries, depth=depth)
        self._tally = inputs.pop("tally", None)
        self.primary_metric = f"{name}_{distance_name(self._primary)}"
        self.greater_is_better = preferred_direction(self._primary) == "high"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1, **more: Any
    ) -> dict[str, float]:
        """Return the values of the lists that this model makes."""
        if self._tally is None and "labels" not in self.inputs:
            lexicon, words = (self.inputs.pop(each, None) for each in ("lexicon", "tokenizer"))
            self._tally = tally(self._docs, lexicon or "rekabsaz2020", tokenizer=words or "words")
        run = self._pairs.run(self._scores(model))
        results = measure(
            run,
            [*self.measures, self._primary],
            tally=self._tally,
            docs=self._docs,
            queries=self._queries,
            background=self._run,
            **self.inputs,
        )
        values = {f"{self.name}_{each.measure}": each.value for each in results if each.value is not None}
        if (primary := results[self._primary].value) is not None:
            values[self.primary_metric] = float(distance_from_ideal(self._primary, np.array(primary)))
        self.store_metrics_in_model_card_data(model, values, epoch, steps)
        return values

    def _scores(self, model: Any) -> Any:
        pairs = self._pairs
        if hasattr(model, "predict"):
            return CrossEncoderReranker(model).score(pairs)
        queries = model.encode_query(pairs.queries, convert_to_tensor=True, show_progress_bar=False)
        documents = model.encode_document(pairs.documents, convert_to_tensor=True, show_progress_bar=False)
        scores = model.similarity_pairwise(queries[pairs.query], documents[pairs.document])
        return scores.double().cpu().numpy()


def _absolute(measure: Any) -> Any:
    """Return abs(measure) where 0 is good and that is a measure; else the measure itself."""
    try:
        return abs(measure) if preferred_direction(measure) == "zero" else measure
    except InputError:  # one value over all queries
        return measure
