"""`er.dial`: fit a dial on gendered texts and their mirror images; dense rankers turn their queries by it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from evenrank.data.docs import open_docs
from evenrank.errors import InputError
from evenrank.mitigate.swapping import swapper
from evenrank.rankers.base import Progress
from evenrank.text.matcher import Source
from evenrank.vectors.projection import GenderProjection, fit_projection

FEWEST = 50
"""Gendered documents below which a dial would fit noise."""


def dial(
    docs: Any,
    *,
    model: str | os.PathLike[str] | None = None,
    most: int = 1000,
    names: bool = True,
    lexicon: Source = "rekabsaz2020",
    seed: int = 0,
    progress: Progress | None = None,
    encoder: Any = None,
) -> GenderProjection:
    """Find what distinguishes the genders of documents in the vectors of an encoder.

    Documents that lean to a gender are encoded together with their mirror images: the same texts, about the
    other gender. So the two classes differ in gender and in nothing else that the swap does not touch.

    Parameters
    ----------
    docs
        A collection to learn from; preferably not the one to be searched, but of the same kind of text.
    model
        The encoder, as for the ranker ``dense``; or a bi-encoder or head of ``evenrank train``.
    most
        Maximum number of documents to learn from, drawn with `seed` if there are more.
    names, lexicon
        As in :func:`evenrank.swap`.
    encoder
        Instead of `model`, one that is open: it has ``documents(texts)`` and ``facts()``.

    Examples
    --------
    ``er.dial("docs.tsv").save("gender.dial")``, then
    ``er.search(index, queries, ranker="dense", dial="gender.dial", strength=0.5)``.
    """
    mirror = swapper(lexicon, names=names)
    texts: list[str] = []
    turned: list[str] = []
    sides: list[float] = []
    for batch in open_docs(docs).batches():
        column = batch.column("text").cast(pa.string())
        result = mirror.texts(column)
        lean = np.sign(result.male - result.female)
        for row in np.flatnonzero(lean).tolist():
            texts.append(column[row].as_py())
            turned.append(result.texts[row].as_py())
            sides.append(float(lean[row]))
    if len(texts) < FEWEST:
        raise InputError(
            f"{len(texts)} documents lean to a gender; a dial needs {FEWEST} or more to learn from"
        )
    if len(texts) > most:
        chosen = np.sort(np.random.default_rng(seed).permutation(len(texts))[:most]).tolist()
        texts, turned, sides = ([each[i] for i in chosen] for each in (texts, turned, sides))
    built = _encodings(model) if encoder is None else encoder
    told = (progress,) if encoder is None else ()
    vectors = np.concatenate([built.documents(texts, *told), built.documents(turned, *told)])
    lean_of = np.array(sides)
    facts = built.encoder.facts() if hasattr(built, "encoder") else built.facts()
    return fit_projection(
        vectors.astype(np.float64),
        np.concatenate([lean_of, -lean_of]),
        encoder=facts,
        pairs=len(texts),
        seed=seed,
        lexicon=None if mirror.lexicon is None else mirror.lexicon.name,
    )


def _encodings(model: str | os.PathLike[str] | None) -> Any:
    from evenrank.rankers.dense import Encoder
    from evenrank.rankers.neural.encodings import Encodings
    from evenrank.rankers.neural.rerankers import COMPARING
    from evenrank.rankers.neural.saved import is_ranker, open_ranker

    if not is_ranker(model):
        return Encodings(Encoder(model))
    opened: Any = open_ranker(str(model))
    if opened.kind not in COMPARING:
        raise InputError(
            f"a {opened.kind} has no vectors of documents; name a bi-encoder or a head", path=model
        )
    return opened.reranker.encodings
