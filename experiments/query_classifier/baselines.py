"""Classifiers of the thesis' Table 3.2 to compare with: word vectors with an SVM, fastText, a transformer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from evenrank.queries.features import clean
from evenrank.queries.model import LABELS, Probabilities
from evenrank.vectors import Vectors
from evenrank.vectors.encoders import find_model, open_model
from experiments.query_classifier.training import label_codes

_BATCH = 32


class WordVectorSvm:
    """The mean of a query's word vectors, and a support vector machine with a polynomial kernel."""

    name = "word2vec + SVM"

    def __init__(self, vectors: Vectors, texts: Sequence[str], labels: Sequence[str]) -> None:
        from sklearn.svm import SVC

        self.vectors = vectors
        self.svm = SVC(kernel="poly").fit(self._means(texts), label_codes(labels))

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """Return 1 for the class of each text, which is all that the machine says."""
        chosen: Probabilities = np.eye(len(LABELS))[self.svm.predict(self._means(texts))]
        return chosen

    def _means(self, texts: Sequence[str]) -> Any:
        nothing = np.zeros(self.vectors.dimension)
        rows = [_rows(self.vectors, text) for text in texts]
        return np.array([self.vectors.matrix[each].mean(0) if each else nothing for each in rows])


class FastText:
    """The mean of word vectors that are trained too, and a linear layer (Joulin et al. 2017)."""

    name = "fastText"

    def __init__(self, vectors: Vectors, texts: Sequence[str], labels: Sequence[str]) -> None:
        torch.manual_seed(0)
        self.vectors = vectors
        matrix = torch.tensor(np.asarray(vectors.matrix, np.float32))
        self.words = torch.nn.EmbeddingBag.from_pretrained(matrix, freeze=False, mode="mean", sparse=True)
        self.linear = torch.nn.Linear(vectors.dimension, len(LABELS))
        module = torch.nn.ModuleList([self.words, self.linear])
        _train(module, self._scores, texts, labels, torch.optim.Adagrad(module.parameters(), 0.05), epochs=15)

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        return _probabilities(self._scores, texts)

    def _scores(self, texts: Sequence[str]) -> torch.Tensor:
        rows = [_rows(self.vectors, text) for text in texts]
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        numbers = torch.tensor([row for each in rows for row in each], dtype=torch.long)
        scores: torch.Tensor = self.linear(self.words(numbers, torch.as_tensor(starts)))
        return scores


class Transformer:
    """MiniLM, fine-tuned: 6 epochs of 1e-4, the mean of the tokens and a linear layer."""

    name = "MiniLM"

    def __init__(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        torch.manual_seed(0)
        self.encoder = open_model(find_model(None))
        self.linear = torch.nn.Linear(self.encoder.get_sentence_embedding_dimension(), len(LABELS))
        self.module = torch.nn.ModuleList([self.encoder, self.linear])
        optimiser = torch.optim.AdamW(self.module.parameters(), 1e-4)
        _train(self.module, self._scores, texts, labels, optimiser, epochs=6, smoothing=0.05)

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        self.module.eval()
        return _probabilities(self._scores, texts)

    def _scores(self, texts: Sequence[str]) -> torch.Tensor:
        transformer, pooling = self.encoder[0], self.encoder[1]
        tokens = self.encoder.tokenize([clean(text) for text in texts])
        scores: torch.Tensor = self.linear(pooling(transformer(tokens))["sentence_embedding"])
        return scores


def _rows(vectors: Vectors, text: str) -> list[int]:
    """Return the rows of a text's words, of those that have a vector."""
    rows = [vectors.exact_row(word) for word in clean(text).split()]
    return [row for row in rows if row is not None]


def _train(
    module: torch.nn.Module,
    scores: Any,
    texts: Sequence[str],
    labels: Sequence[str],
    optimiser: Any,
    *,
    epochs: int,
    smoothing: float = 0.0,
) -> None:
    truth, random = torch.as_tensor(label_codes(labels)), np.random.default_rng(0)
    loss = partial(torch.nn.functional.cross_entropy, label_smoothing=smoothing)
    batches = -(-len(texts) // _BATCH)
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, epochs * batches)
    module.train()
    for _ in range(epochs):
        for rows in np.array_split(random.permutation(len(texts)), batches):
            optimiser.zero_grad()
            loss(scores([texts[row] for row in rows]), truth[rows]).backward()
            optimiser.step()
            rate.step()


def _probabilities(scores: Any, texts: Sequence[str]) -> Probabilities:
    with torch.no_grad():
        parts = [scores(texts[start : start + 256]).softmax(1) for start in range(0, len(texts), 256)]
    result: Probabilities = torch.cat(parts).double().numpy()
    return result
