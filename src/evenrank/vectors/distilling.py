"""Static vectors out of a sentence-transformer: each word is encoded as a text of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import numpy as np

from evenrank.errors import InputError
from evenrank.vectors.encoders import find_model, open_model
from evenrank.vectors.space import Vectors, checked

Progress = Callable[[int, int | None], None]

_WORDS = 4096  # encoded between two calls of progress


def distil(
    words: Vectors | Iterable[str],
    *,
    model: str | os.PathLike[str] | None = None,
    batch: int = 256,
    progress: Progress | None = None,
) -> Vectors:
    """Vectors for these words, from what a sentence-transformer knows about each of them.

    A second opinion beside vectors that were counted from text: the two share neither method nor
    training data. A word without context gets one vector, whatever its senses.

    Parameters
    ----------
    words
        The vocabulary: words, or other vectors whose words are to be encoded. Each once.
    model
        Folder or name of a sentence-transformer, with its weights as safetensors; all-MiniLM-L6-v2 (384
        dimensions) if not given, wherever :func:`~evenrank.vectors.encoders.find_model` finds it.
    batch
        Words encoded at a time.
    progress
        Called with (words done, words in all).
    """
    vocabulary = list(dict.fromkeys(words.words if isinstance(words, Vectors) else words))
    if not vocabulary:
        raise InputError("there are no words to encode")
    found = find_model(model)
    encoder = open_model(found)
    parts = []
    for start in range(0, len(vocabulary), _WORDS):
        part = vocabulary[start : start + _WORDS]
        parts.append(encoder.encode(part, batch_size=batch, convert_to_numpy=True, show_progress_bar=False))
        if progress:
            progress(start + len(part), len(vocabulary))
    matrix = np.concatenate(parts).astype(np.float32)
    facts = {**found.describe(), "words": len(vocabulary)}
    return checked(vocabulary, matrix, provenance={"distilled": facts})
