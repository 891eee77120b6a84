"""Make word vectors: train them on a collection, or distil them from a sentence encoder."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np

from evenrank.errors import InputError
from evenrank.text.tokens import tokens
from evenrank.vectors.encoders import find_model, open_model
from evenrank.vectors.space import Vectors, checked

Method = Literal["word2vec", "fasttext"]
Progress = Callable[[int, int | None], None]

_LINE_TOKENS = 10_000  # gensim ignores what a line has beyond this many tokens


def train(
    docs: Any,
    *,
    method: Method = "word2vec",
    dimension: int = 100,
    window: int = 5,
    min_count: int = 5,
    epochs: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Vectors:
    """Train word vectors on a collection.

    The same collection, parameters and seed give the same vectors, since training uses one thread.

    Parameters
    ----------
    docs
        Documents: a path, a frame, a dict, an iterator, an ``irds:`` id. They are read once; the tokens are
        kept in a temporary file, so the collection need not fit in memory.
    method
        ``word2vec`` or ``fasttext``, which also learns from parts of words; both as skip-gram with
        negative sampling, which does better on small collections than CBOW.
    dimension, window, min_count, epochs
        As in gensim. A word that occurs fewer than ``min_count`` times gets no vector.
    seed
        Of the random numbers.
    progress
        Called with (done, in all) in bytes of the input, over the reading and each epoch.

    Notes
    -----
    Small collections give poor vectors. The variance that the gender direction explains does not show this
    (it is high where all words are alike); check :func:`~evenrank.vectors.association_tests` and the
    neighbours of some words.
    """
    from evenrank.data.docs import open_docs

    if method not in get_args(Method):
        raise InputError(f"unknown method {method!r}; choose one of: {', '.join(get_args(Method))}")
    parameters = {"dimension": dimension, "window": window, "min_count": min_count, "epochs": epochs}
    for name, value in parameters.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, not {value}")
    try:
        import gensim
        from gensim.models import FastText, Word2Vec
    except ImportError:
        raise InputError(
            "training needs gensim, which is not installed: pip install 'evenrank[vectors]'"
        ) from None
    source = open_docs(docs)
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        corpus = Path(folder) / "tokens.txt"
        with corpus.open("w", encoding="utf-8", newline="\n") as file:
            counts = _count_tokens(source, file, _first_of(epochs + 1, progress))
        most_frequent = max(counts.values(), default=0)
        if most_frequent < min_count:
            raise InputError(
                f"no word of {source.name} occurs {min_count} times, the most frequent one "
                f"{most_frequent:,} times; lower min_count"
            )
        model = (Word2Vec if method == "word2vec" else FastText)(
            corpus_file=str(corpus),
            vector_size=dimension,
            window=window,
            min_count=min_count,
            epochs=epochs,
            sg=1,
            seed=seed,
            workers=1,
            callbacks=_progress_callbacks(progress, source.size, epochs),
        )
    facts = {
        "trained": {"method": method, **parameters, "seed": seed, "gensim": str(gensim.__version__)},
        "input": source.describe(),
        "tokens": counts.total(),
    }
    return checked(list(model.wv.index_to_key), np.array(model.wv.vectors, np.float32), provenance=facts)


def vocabulary(docs: Any, *, min_count: int = 5, progress: Progress | None = None) -> list[str]:
    """Return the words that occur at least ``min_count`` times in a collection, the most frequent first."""
    from evenrank.data.docs import open_docs

    counts = _count_tokens(open_docs(docs), None, progress)
    words = [word for word, count in counts.items() if count >= min_count]
    return sorted(words, key=lambda word: (-counts[word], word))


def _count_tokens(source: Any, file: IO[str] | None, progress: Progress | None) -> Counter[str]:
    """Count the tokens of a collection, and write them to a file that gensim can read."""
    counts: Counter[str] = Counter()
    done = 0
    for block in source.blocks():
        for text in block.read().column("text").to_pylist():
            words = tokens(text or "")
            counts.update(words)
            if file:
                for start in range(0, len(words), _LINE_TOKENS):
                    file.write(" ".join(words[start : start + _LINE_TOKENS]) + "\n")
        done += block.size
        if progress:
            progress(done, source.size)
    return counts


def _first_of(parts: int, progress: Progress | None) -> Progress | None:
    """Report the progress of the first of several equal parts as progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(done, None if total is None else total * parts)


def _progress_callbacks(progress: Progress | None, size: int | None, epochs: int) -> tuple[Any, ...]:
    """Callbacks for gensim that report each epoch as one more pass over the input."""
    if progress is None or not size:
        return ()
    from gensim.models.callbacks import CallbackAny2Vec

    report, pass_size = progress, size

    class Epochs(CallbackAny2Vec):
        passes = 1

        def on_epoch_end(self, model: Any) -> None:
            self.passes += 1
            report(pass_size * self.passes, pass_size * (1 + epochs))

    return (Epochs(),)


_WORDS = 4096  # words encoded between two calls of progress


def distil(
    words: Vectors | Iterable[str],
    *,
    model: str | os.PathLike[str] | None = None,
    batch: int = 256,
    progress: Progress | None = None,
) -> Vectors:
    """Encode each word with a sentence-transformer.

    These vectors share neither method nor training data with those counted from text. A word without
    context gets one vector, whatever its senses.

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
    encoder_model = find_model(model)
    encoder = open_model(encoder_model)
    parts = []
    for start in range(0, len(vocabulary), _WORDS):
        part = vocabulary[start : start + _WORDS]
        parts.append(encoder.encode(part, batch_size=batch, convert_to_numpy=True, show_progress_bar=False))
        if progress:
            progress(start + len(part), len(vocabulary))
    matrix = np.concatenate(parts).astype(np.float32)
    facts = {**encoder_model.describe(), "words": len(vocabulary)}
    return checked(vocabulary, matrix, provenance={"distilled": facts})
