"""`BiasEvaluator`: our measures during anyone's own training with sentence-transformers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ir_measures.measures import Measure

from evenrank.data.files import writing
from evenrank.errors import InputError
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.transformers import library
from evenrank.show.numbers import counted, level, number

library()
from sentence_transformers.base.evaluation import BaseEvaluator  # noqa: E402 - library() says what to install


class BiasEvaluator(BaseEvaluator):
    """Re-ranks the candidates of some queries with the model as it is, and measures the lists.

    For ``evaluator=`` of a ``SentenceTransformerTrainer`` or ``CrossEncoderTrainer``, alone or in a
    ``SequentialEvaluator``. The values stand in the trainer's log, and :meth:`write_card` puts them into the
    card of the saved model.

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
        What stands before the measures in the log.
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
        from evenrank.data.docs import open_docs
        from evenrank.data.read import read_queries
        from evenrank.data.runs import read_run
        from evenrank.measures.base import distance_name, preferred_direction
        from evenrank.measures.evaluate import listed_measures

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
        self.history: list[dict[str, Any]] = []
        self._results: Any = None

    def __call__(
        self,
        model: Any,
        output_path: str | None = None,
        epoch: int = -1,
        steps: int = -1,
        *rest: Any,
        **more: Any,
    ) -> dict[str, float]:
        """The values of the lists that this model makes."""
        from evenrank.measures.base import distance_from_ideal
        from evenrank.measures.evaluate import measure
        from evenrank.text.tally import tally

        if self._tally is None and "labels" not in self.inputs:
            lexicon, words = (self.inputs.pop(each, None) for each in ("lexicon", "tokenizer"))
            self._tally = tally(self._docs, lexicon or "rekabsaz2020", tokenizer=words or "words")
        run = self._pairs.run(self._scores(model))
        self._results = measure(
            run,
            [*self.measures, self._primary],
            tally=self._tally,
            docs=self._docs,
            queries=self._queries,
            background=self._run,
            **self.inputs,
        )
        known = [each for each in self._results if each.value is not None]
        values = {f"{self.name}_{each.measure}": each.value for each in known}
        chosen = self._results[self._primary].value
        if chosen is not None:
            values[self.primary_metric] = float(distance_from_ideal(self._primary, np.array(chosen)))
        self.history.append({"epoch": epoch, "step": steps, **values})
        self.store_metrics_in_model_card_data(model, values, epoch, steps)
        if output_path:
            path = Path(output_path) / f"{self.name}_evaluation.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            with writing(path) as file:
                file.write((json.dumps(self.history, indent=1) + "\n").encode())
        return values

    def _scores(self, model: Any) -> Any:
        from evenrank.rankers.neural.rerankers import CrossEncoderReranker

        if hasattr(model, "predict"):
            return CrossEncoderReranker(model).score(self._pairs)
        encode_query = getattr(model, "encode_query", None) or model.encode
        encode_document = getattr(model, "encode_document", None) or model.encode
        queries = encode_query(self._pairs.queries, convert_to_tensor=True, show_progress_bar=False)
        documents = encode_document(self._pairs.documents, convert_to_tensor=True, show_progress_bar=False)
        return (
            model.similarity_pairwise(queries[self._pairs.query], documents[self._pairs.document])
            .double()
            .cpu()
            .numpy()
        )

    def card_section(self) -> str:
        """What the last evaluation found, as a section of a model card."""
        if self._results is None:
            raise InputError("nothing has been evaluated yet; call the evaluator first")
        count, sure = len(self._pairs.query_ids), ""
        if any(each.low is not None for each in self._results):
            sure = f", with {level(self.inputs.get('confidence', 0.95))} intervals"
        lines = [
            "## Bias of its rankings",
            "",
            f"{counted(count, 'query', 'queries')}, {'its' if count == 1 else 'their'} candidates re-ranked "
            f"by this model{sure}. Measured by evenrank.",
            "",
            "| measure | value | interval |",
            "|---|--:|---|",
        ]
        for each in self._results:
            form = "+.4f" if getattr(each.measure, "SIGNED", False) else ".4f"
            interval = "" if each.low is None else f"{each.low:{form}} to {each.high:{form}}"
            lines.append(f"| {each.measure} | {number(each.value, form)} | {interval} |")
        return "\n".join([*lines, ""])

    def write_card(self, folder: str | os.PathLike[str]) -> None:
        """Put the section into the README.md of a saved model; an older one is replaced."""
        path = Path(folder) / "README.md"
        text = path.read_text() if path.exists() else ""
        before, _, rest = text.partition("## Bias of its rankings")
        after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
        with writing(path) as file:
            file.write((before.rstrip("\n") + "\n\n" + self.card_section() + "\n" + after).lstrip().encode())


def _absolute(measure: Any) -> Any:
    """abs(measure) where 0 is good and its absolute value is a measure; else the measure itself."""
    from evenrank.measures.base import preferred_direction

    try:
        return abs(measure) if preferred_direction(measure) == "zero" else measure
    except InputError:  # one value over all queries
        return measure
