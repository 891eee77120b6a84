"""Word vectors of one's own: trained on a collection, or distilled from a sentence encoder."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np

from evenrank.errors import InputError
from evenrank.text.tokens import tokens
from evenrank.vectors.encoders import find_model, open_model
from evenrank.vectors.space import Vectors, checked

Method = Literal["word2vec", "fasttext"]
Progress = Callable[[int, int | None], None]

_LINE = 10_000  # gensim cuts off what a line has beyond this many tokens
_ALONE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9](?=')|(?<=')[A-Za-z0-9](?![A-Za-z0-9])")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


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
    """Word vectors of a collection: the associations that its own texts carry.

    The same collection, parameters and seed give the same vectors, since one thread does the training.

    Parameters
    ----------
    docs
        Anything that holds documents: a path, a frame, a dict, an iterator, an ``irds:`` id. It is read
        once; the tokens wait in a temporary file, so the collection need not fit in memory.
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
    Small collections give poor vectors, and the share of variance that the gender direction explains
    does not tell (it is high where all words are alike). Before relying on them, look at
    :func:`~evenrank.vectors.association_tests` and at the neighbours of some words.
    """
    from evenrank.data.tables import docs as as_docs

    if method not in get_args(Method):
        raise InputError(f"unknown method {method!r}; choose one of: {', '.join(get_args(Method))}")
    parameters = {"dimension": dimension, "window": window, "min_count": min_count, "epochs": epochs}
    for name, value in parameters.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, not {value}")
    models = _gensim()
    source = as_docs(docs)
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        corpus = Path(folder) / "tokens.txt"
        with corpus.open("w", encoding="utf-8", newline="\n") as file:
            count = _write_tokens(source, file, _share(progress, 0, epochs + 1))
        common = max(count.values(), default=0)
        if common < min_count:
            raise InputError(
                f"no word of {source.name} occurs {min_count} times, the most frequent one {common:,} times; "
                "lower min_count"
            )
        model = (models.Word2Vec if method == "word2vec" else models.FastText)(
            corpus_file=str(corpus),
            vector_size=dimension,
            window=window,
            min_count=min_count,
            epochs=epochs,
            sg=1,
            seed=seed,
            workers=1,
            callbacks=_callbacks(progress, source.size, epochs),
        )
    facts = {
        "trained": {"method": method, **parameters, "seed": seed, "gensim": models.version},
        "input": source.describe(),
        "tokens": count.total(),
    }
    return checked(list(model.wv.index_to_key), np.array(model.wv.vectors, np.float32), provenance=facts)


def vocabulary(docs: Any, *, min_count: int = 5, progress: Progress | None = None) -> list[str]:
    """The words of a collection that occur at least ``min_count`` times, the most frequent first."""
    from evenrank.data.tables import docs as as_docs

    count = _write_tokens(as_docs(docs), None, progress)
    found = [word for word, number in count.items() if number >= min_count]
    return sorted(found, key=lambda word: (-count[word], word))


def quick_tokens(text: str) -> list[str]:
    """What :func:`evenrank.text.tokens.tokens` gives, some ten times faster where all is ASCII."""
    if not text.isascii():
        return tokens(text)
    if "'" in text:
        text = _ALONE.sub(" ", text)
    return text.translate(_ASCII).split()


def _write_tokens(source: Any, file: IO[str] | None, progress: Progress | None) -> Counter[str]:
    count: Counter[str] = Counter()
    done = 0
    for block in source.blocks():
        for text in block.read().column("text").to_pylist():
            found = quick_tokens(text or "")
            count.update(found)
            for line in _lines(found) if file else ():
                file.write(line)  # type: ignore[union-attr]
        done += block.size
        if progress:
            progress(done, source.size)
    return count


def _lines(found: list[str]) -> Iterator[str]:
    for start in range(0, len(found), _LINE):
        yield " ".join(found[start : start + _LINE]) + "\n"


class _Models:
    def __init__(self) -> None:
        import gensim
        from gensim.models import FastText, Word2Vec

        self.Word2Vec, self.FastText, self.version = Word2Vec, FastText, str(gensim.__version__)


def _gensim() -> _Models:
    try:
        return _Models()
    except ImportError:
        raise InputError(
            "training needs gensim, which is not installed: pip install 'evenrank[vectors]'"
        ) from None


def _share(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """Progress of one part of the work as progress of the whole."""
    if progress is None:
        return None

    def show(done: int, total: int | None) -> None:
        progress(done + part * (total or 0), None if total is None else total * parts)

    return show


def _callbacks(progress: Progress | None, size: int | None, epochs: int) -> tuple[Any, ...]:
    if progress is None or not size:
        return ()
    from gensim.models.callbacks import CallbackAny2Vec

    show, whole = progress, size

    class Epochs(CallbackAny2Vec):
        finished = 0

        def on_epoch_end(self, model: Any) -> None:
            self.finished += 1
            show(whole * (1 + self.finished), whole * (1 + epochs))

    return (Epochs(),)


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
