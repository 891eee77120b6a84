"""Make word vectors: train them on a collection, or distil them from a sentence encoder."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from evenrank.data.docs import open_docs
from evenrank.errors import InputError
from evenrank.text.tokens import tokens
from evenrank.vectors.encoders import find_model, open_model
from evenrank.vectors.space import Vectors

Method = Literal["word2vec", "fasttext"]

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

    Notes
    -----
    Small collections give poor vectors. The variance that the gender direction explains does not show this
    (it is high where all words are alike); check :func:`~evenrank.vectors.association_tests`.

    Examples
    --------
    ``save(train("docs.tsv"), "vectors.bin")``, then ``evenrank vectors direction vectors.bin``.
    """
    if method not in get_args(Method):
        raise InputError(f"unknown method {method!r}; choose one of: {', '.join(get_args(Method))}")
    try:
        import gensim
        from gensim.models import FastText, Word2Vec
    except ImportError:
        raise InputError(
            "training needs gensim, which is not installed: pip install 'evenrank[vectors]'"
        ) from None
    source = open_docs(docs)
    counts: Counter[str] = Counter()
    parameters = {"window": window, "min_count": min_count, "epochs": epochs, "seed": seed}
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        corpus = Path(folder) / "tokens.txt"
        with corpus.open("w", encoding="utf-8", newline="\n") as file:
            for words in _tokens(source):
                counts.update(words)
                for start in range(0, len(words), _LINE_TOKENS):
                    file.write(" ".join(words[start : start + _LINE_TOKENS]) + "\n")
        most_frequent = max(counts.values(), default=0)
        if most_frequent < min_count:
            raise InputError(
                f"no word of {source.name} occurs {min_count} times, the most frequent one "
                f"{most_frequent:,} times; lower min_count"
            )
        model = (Word2Vec if method == "word2vec" else FastText)(
            corpus_file=str(corpus), vector_size=dimension, sg=1, workers=1, **parameters
        )
    facts = {
        "trained": {
            "method": method,
            "dimension": dimension,
            **parameters,
            "gensim": str(gensim.__version__),
        },
        "input": source.describe(),
        "tokens": counts.total(),
    }
    return Vectors(model.wv.index_to_key, model.wv.vectors, provenance=facts)


def vocabulary(docs: Any, *, min_count: int = 5) -> list[str]:
    """Return the words that occur at least ``min_count`` times in a collection, the most frequent first."""
    counts: Counter[str] = Counter()
    for words in _tokens(open_docs(docs)):
        counts.update(words)
    return sorted((w for w in counts if counts[w] >= min_count), key=lambda word: (-counts[word], word))


def _tokens(docs: Any) -> Iterator[list[str]]:
    """Yield the tokens of each document."""
    for batch in docs.batches():
        for text in batch.column("text").to_pylist():
            yield tokens(text or "")


def distil(
    words: Vectors | Iterable[str], *, model: str | os.PathLike[str] | None = None, batch: int = 256
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

    Examples
    --------
    ``save(distil(vocabulary("docs.tsv")), "minilm.bin")``
    """
    unique = list(dict.fromkeys(words.words if isinstance(words, Vectors) else words))
    if not unique:
        raise InputError("there are no words to encode")
    encoder = find_model(model)
    matrix = open_model(encoder).encode(
        unique, batch_size=batch, convert_to_numpy=True, show_progress_bar=False
    )
    return Vectors(unique, matrix, provenance={"distilled": {**encoder.describe(), "words": len(unique)}})
