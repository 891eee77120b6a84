"""Fit a gender projection to texts and their mirror images; dense rankers apply it to queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenrank.data.docs import open_docs
from evenrank.errors import InputError
from evenrank.mitigate.swap import swapper
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.projection import GenderProjection
from evenrank.text.matcher import Source

MIN_DOCUMENTS = 50
"""With fewer gendered documents a projection would fit noise."""


def fit_projection(
    docs: Any,
    *,
    model: Any = None,
    max_documents: int = 1000,
    names: bool = True,
    lexicon: Source = "rekabsaz2020",
    seed: int = 0,
) -> GenderProjection:
    """Find what distinguishes the genders of documents in the vectors of an encoder.

    Documents that lean to a gender are encoded together with their mirror images: the same texts, about the
    other gender. So the two classes differ in gender and in nothing else that the swap does not touch.

    Parameters
    ----------
    docs
        A collection to learn from; preferably not the one to be searched, but of the same kind of text.
    model
        The encoder, as for the ranker ``dense``; or any object with ``documents(texts)``, which returns
        vectors, and ``facts()``, which identifies it.
    max_documents
        How many documents to learn from, drawn with `seed` if there are more.
    names, lexicon
        As in :func:`evenrank.swap`.

    Examples
    --------
    ``er.fit_projection("docs.tsv").save("gender.projection")``, then ``er.search(index, queries,
    ranker="dense", projection="gender.projection", strength=0.5)``.
    """
    mirror = swapper(lexicon, names=names)
    texts: list[str] = []
    swapped: list[str] = []
    signs: list[float] = []
    for batch in open_docs(docs).batches():
        column = batch.column("text").cast(pa.string())
        result = mirror.texts(column)
        lean = np.sign(result.male - result.female)
        for row in np.flatnonzero(lean).tolist():
            texts.append(column[row].as_py())
            swapped.append(result.texts[row].as_py())
            signs.append(float(lean[row]))
    if len(texts) < MIN_DOCUMENTS:
        raise InputError(
            f"{len(texts)} documents lean to a gender; a projection needs {MIN_DOCUMENTS} or more"
        )
    if len(texts) > max_documents:
        chosen = np.sort(np.random.default_rng(seed).permutation(len(texts))[:max_documents]).tolist()
        texts, swapped, signs = ([each[i] for i in chosen] for each in (texts, swapped, signs))
    encoder = model if hasattr(model, "documents") else Encoder(model)
    genders = np.array(signs)
    return GenderProjection.fit(
        np.concatenate([encoder.documents(texts), encoder.documents(swapped)]),
        np.concatenate([genders, -genders]),
        encoder=encoder.facts(),
        pairs=len(texts),
        seed=seed,
        lexicon=None if mirror.lexicon is None else mirror.lexicon.name,
    )
