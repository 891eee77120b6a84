"""Counterfactual training data: the same examples with the other gender.

`augmented` shows each training query a second time with all texts mirrored: what is learned of one gender is
learned of the other (counterfactual data augmentation: Lu et al. 2018, Zhao et al. 2018).
`twinned` gives each candidate a twin, the mirrored document, for a loss on the difference of their scores:
\\|s(q, d) − s(q, mirrored d)\\| is 0 for a ranker that does not look at the gender of a document.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evenrank.mitigate.swap.mirroring import swapper
from evenrank.rankers.neural.candidates import Candidates
from evenrank.training.examples import Examples, Ints

MARK = "~mirrored"
"""What the ids of mirrored queries and documents end in."""


def augmented(found: Examples, *, lexicon: Any = None) -> Examples:
    """With a mirrored copy of every training query that has a text which its mirroring changes.

    The copies keep judgments and first-stage scores of the originals. Dev queries are not copied.

    Parameters
    ----------
    found
        The training data.
    lexicon
        The words that the rankings will be measured with, as in :func:`evenrank.swap`.
    """
    pairs = found.pairs
    queries, turned = _mirrors(pairs.queries, lexicon), _Documents(pairs, lexicon)
    changed = np.array([new != old for new, old in zip(queries, pairs.queries, strict=True)], bool)
    touched = np.zeros(len(pairs.queries), bool)
    np.logical_or.at(touched, pairs.query, turned.changed[pairs.document])
    copied = np.flatnonzero((changed | touched) & ~found.dev)
    place = np.full(len(pairs.queries), -1)
    place[copied] = len(pairs.queries) + np.arange(len(copied))
    rows = np.flatnonzero(place[pairs.query] >= 0)
    rows = rows[np.argsort(place[pairs.query[rows]], kind="stable")]
    more = Candidates(
        [*pairs.query_ids, *(pairs.query_ids[i] + MARK for i in copied)],
        [*pairs.queries, *(queries[i] for i in copied)],
        turned.doc_ids,
        turned.documents,
        np.concatenate([pairs.query, place[pairs.query[rows]]]),
        np.concatenate([pairs.document, turned.place[pairs.document[rows]]]),
        np.concatenate([pairs.first, pairs.first[rows]]),
    )
    return replace(
        found,
        pairs=more,
        relevant=np.concatenate([found.relevant, found.relevant[rows]]),
        listed=np.concatenate([found.listed, found.listed[rows]]),
        against=np.concatenate([found.against, found.against[rows]]),
        dev=np.concatenate([found.dev, np.zeros(len(copied), bool)]),
        bias=None if found.bias is None else np.concatenate([found.bias, found.bias[rows]]),
    )


def twinned(found: Examples, *, lexicon: Any = None) -> Examples:
    """With a twin for every candidate of a training query whose document changes when it is mirrored.

    Twins are neither candidates nor negatives: they are only compared with their originals.
    """
    pairs = found.pairs
    turned = _Documents(pairs, lexicon)
    rows = np.flatnonzero(
        turned.changed[pairs.document] & ~found.dev[pairs.query] & (found.against | found.relevant)
    )
    twin = np.full(len(pairs) + len(rows), -1)
    twin[rows] = len(pairs) + np.arange(len(rows))
    order = np.argsort(np.concatenate([pairs.query, pairs.query[rows]]), kind="stable")
    where = np.empty(len(order), np.int64)  # pairs of a query follow one another, twins after all others
    where[order] = np.arange(len(order))
    moved = np.where(twin >= 0, where[twin], -1)[order]

    def laid(values: Any, of_twins: Any) -> Any:
        return np.concatenate([values, of_twins])[order]

    none = np.zeros(len(rows), bool)
    more = Candidates(
        pairs.query_ids,
        pairs.queries,
        turned.doc_ids,
        turned.documents,
        laid(pairs.query, pairs.query[rows]),
        laid(pairs.document, turned.place[pairs.document[rows]]),
        laid(pairs.first, pairs.first[rows]),
    )
    return replace(
        found,
        pairs=more,
        relevant=laid(found.relevant, none),
        listed=laid(found.listed, none),
        against=laid(found.against, none),
        bias=None if found.bias is None else laid(found.bias, found.bias[rows]),
        twin=moved,
    )


class _Documents:
    """The documents and, after them, the mirrors of those that change.

    ``changed`` says which do; ``place`` is where the mirror of each stands, the document itself if it does
    not change.
    """

    changed: Any
    place: Ints

    def __init__(self, pairs: Candidates, lexicon: Any) -> None:
        turned = _mirrors(pairs.documents, lexicon)
        self.changed = np.array([new != old for new, old in zip(turned, pairs.documents, strict=True)], bool)
        new = np.flatnonzero(self.changed)
        self.place = np.arange(len(turned))
        self.place[new] = len(turned) + np.arange(len(new))
        self.doc_ids = [*pairs.doc_ids, *(pairs.doc_ids[i] + MARK for i in new)]
        self.documents = [*pairs.documents, *(turned[i] for i in new)]


def _mirrors(texts: list[str], lexicon: Any) -> list[str]:
    made: list[str] = swapper(lexicon or "rekabsaz2020").texts(texts).texts.to_pylist()
    return made
