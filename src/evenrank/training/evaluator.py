"""`BiasEvaluator`: our measures during anyone's own training with sentence-transformers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenrank.data.files import writing
from evenrank.errors import InputError
from evenrank.rankers.neural.candidates import candidates
from evenrank.rankers.neural.transformers import library

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
        Ours and those of ir_measures: ``["ARaB@10", "NFaiRR@10", "RR@10"]``.
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
    {'bias_ARaB@10': 0.21}
    """

    def __init__(
        self,
        run: Any,
        docs: Any,
        queries: Any,
        measures: Sequence[Any] = ("ARaB@10", "NFaiRR@10"),
        *,
        depth: int = 50,
        name: str = "bias",
        **inputs: Any,
    ) -> None:
        from evenrank.data import tables
        from evenrank.measures.parse import parse

        super().__init__()
        if not measures:
            raise InputError("no measure is given; name one, such as 'ARaB@10'")
        self.name = name
        self.measures = [parse(each) if isinstance(each, str) else each for each in measures]
        self.inputs = inputs
        self._docs = tables.docs(docs)
        self._queries = tables.queries(queries)
        self._run = tables.run(run)
        self._pairs = candidates(self._run, self._docs, self._queries, depth=depth)
        self._tally = inputs.pop("tally", None)
        self.primary_metric = f"{name}_{self.measures[0]}"
        self.greater_is_better = False
        self.history: list[dict[str, Any]] = []
        self._found: Any = None

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
        from evenrank.measures.evaluate import measure
        from evenrank.text.tally import tally

        if self._tally is None and "labels" not in self.inputs:
            self._tally = tally(self._docs, self.inputs.pop("lexicon", None) or "rekabsaz2020")
        run = self._pairs.run(self._scores(model))
        self._found = measure(
            run,
            self.measures,
            tally=self._tally,
            docs=self._docs,
            queries=self._queries,
            background=self._run,
            **self.inputs,
        )
        values = {f"{self.name}_{each.measure}": each.value for each in self._found if each.value is not None}
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
        ask = getattr(model, "encode_query", None) or model.encode
        tell = getattr(model, "encode_document", None) or model.encode
        queries = ask(self._pairs.queries, convert_to_tensor=True, show_progress_bar=False)
        documents = tell(self._pairs.documents, convert_to_tensor=True, show_progress_bar=False)
        return (
            model.similarity_pairwise(queries[self._pairs.query], documents[self._pairs.document])
            .double()
            .cpu()
            .numpy()
        )

    def card_section(self) -> str:
        """What the last evaluation found, as a section of a model card."""
        if self._found is None:
            raise InputError("nothing has been evaluated yet; call the evaluator first")
        lines = [
            "## Bias of its rankings",
            "",
            f"{self._pairs.run(self._pairs.first)['query_id'].n_unique():,} queries, their candidates "
            "re-ranked by this model 95 % intervals. Measured by evenrank.",
            "",
            "| measure | value | interval |",
            "|---|--:|---|",
        ]
        for each in self._found:
            interval = "" if each.low is None else f"{each.low:+.4f} to {each.high:+.4f}"
            value = "–" if each.value is None else f"{each.value:+.4f}"
            lines.append(f"| {each.measure} | {value} | {interval} |")
        return "\n".join([*lines, ""])

    def write_card(self, folder: str | os.PathLike[str]) -> None:
        """Put the section into the README.md of a saved model; an older one is replaced."""
        path = Path(folder) / "README.md"
        text = path.read_text() if path.exists() else ""
        before, _, rest = text.partition("## Bias of its rankings")
        after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
        with writing(path) as file:
            file.write((before.rstrip("\n") + "\n\n" + self.card_section() + "\n" + after).lstrip().encode())
