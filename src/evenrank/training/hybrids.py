"""Score + w · first stage, with w chosen on the dev queries: what everything that is trained has to beat."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.training.examples import Examples, Ints

_STEPS = 25


def chosen_weight(examples: Examples, rows: Ints, scores: npt.NDArray[Any]) -> dict[str, float]:
    """The weight of the first stage with the best RR@10, and that RR@10.

    Weights from a thousandth to a thousand times what makes scores and first stage spread alike, and 0, are
    tried; of equally good ones the smallest is taken.
    """
    first = examples.pairs.first[rows]
    spread = float(scores.std()) / (float(first.std()) or 1.0)
    tried = [0.0, *(np.geomspace(1e-3, 1e3, _STEPS) * spread if spread else ())]
    values = [examples.rr(rows, scores + weight * first) for weight in tried]
    best = int(np.argmax(values))
    return {"weight": float(tried[best]), "dev RR@10": values[best]}


def untrained(examples: Examples, rows: Ints, *, progress: Progress | None = None) -> dict[str, Any] | None:
    """The default bi-encoder as it is, alone and with the first stage; None where it is not installed."""
    from evenrank.rankers.dense import Encoder
    from evenrank.rankers.neural.rerankers import BiEncoderReranker

    try:
        encoder = Encoder(None)
        scores = BiEncoderReranker(encoder).score(compact(examples, rows), progress=progress)
    except InputError:
        return None
    return {
        "encoder": encoder.model.name,
        "alone": examples.rr(rows, scores),
        **chosen_weight(examples, rows, scores),
    }


def compact(examples: Examples, rows: Ints) -> Any:
    """These pairs with their texts only: nothing else is encoded."""
    from evenrank.rankers.neural.candidates import Candidates

    pairs = examples.pairs
    queries, query = np.unique(pairs.query[rows], return_inverse=True)
    documents, document = np.unique(pairs.document[rows], return_inverse=True)
    return Candidates(
        [pairs.query_ids[i] for i in queries],
        [pairs.queries[i] for i in queries],
        [pairs.doc_ids[i] for i in documents],
        [pairs.documents[i] for i in documents],
        query,
        document,
        pairs.first[rows],
    )
