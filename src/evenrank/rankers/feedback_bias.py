"""How one-sided each document of an index is: the |Bias(d)| that bias-aware feedback steers away from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.text.magnitude import MAGNITUDES, magnitude

if TYPE_CHECKING:
    from evenrank.rankers.index import Index
    from evenrank.text.matcher import Counts

Floats = NDArray[np.float64]
LIWC = "liwc"
BIASES = (*MAGNITUDES, LIWC)
_TEXTS = 1 << 15  # texts in memory at a time


class DocumentBias:
    """|magnitude of one group − that of the other| of documents, by their numbers; 0 is balance.

    With more than two groups, the largest magnitude minus the smallest. It does not matter which group comes
    first. A document is looked at once, when it is first asked for.

    Parameters
    ----------
    index
        Whose documents; their stored text is read unless a tally is given.
    lexicon, tokenizer
        The words of each group and how text becomes words.
    magnitude
        ``tf``, ``tf-words``, ``boolean``, ``count``, ``length``, or ``liwc``: percent of the text in the
        female and male words of a dictionary (`lexicon` is then a ``.dic``, or None for the open one).
    tally
        The coloured collection (a Tally, its frame or its file), in place of lexicon and tokenizer: no text
        is read then, which is the quick way for large collections.
    """

    def __init__(
        self,
        index: Index,
        *,
        lexicon: Any = None,
        magnitude: str = "tf",
        tokenizer: str = "words",
        tally: Any = None,
    ) -> None:
        if magnitude not in BIASES:
            raise InputError(f"there is no document bias {magnitude!r}; one of {', '.join(BIASES)}")
        self.magnitude = magnitude
        self._index = index
        self._known = np.full(index.documents, np.nan)
        if tally is not None:
            if lexicon is not None or magnitude == LIWC:
                raise InputError("a tally has its own words; leave out the lexicon, or give no tally")
            self._matcher = None
            self._words = self._take(tally)
            return
        from evenrank.text.dictionaries import female_and_male
        from evenrank.text.matcher import Matcher

        chosen = female_and_male(lexicon) if magnitude == LIWC else lexicon or "rekabsaz2020"
        self._matcher = Matcher(chosen, tokenizer)
        if len(self._matcher.groups) < 2:
            raise InputError(f"lexicon {self._matcher.lexicon.name!r} has one group; bias needs two")
        self._words = {
            "lexicon": self._matcher.lexicon.name,
            "lexicon_hash": self._matcher.lexicon.hash,
            "tokenizer": self._matcher.tokenizer,
        }

    def __call__(self, documents: NDArray[Any]) -> Floats:
        """|bias| of each of these documents, given by number."""
        unknown = np.unique(documents[np.isnan(self._known[documents])])
        for start in range(0, len(unknown), _TEXTS):
            self._count(unknown[start : start + _TEXTS])
        return self._known[documents]

    def describe(self) -> dict[str, Any]:
        """What it was computed with."""
        return {"magnitude": self.magnitude, **self._words}

    def _count(self, documents: NDArray[Any]) -> None:
        if self._matcher is None:
            missing = self._index.doc_ids(documents[:1])[0]
            raise InputError(f"the tally lacks document {missing!r} of the index; tally the same collection")
        from evenrank.text.matcher import cores

        ids = self._index.doc_ids(documents)
        texts = self._index.docs.texts(ids)
        found = self._matcher.count([texts[doc_id] for doc_id in ids], threads=cores())
        self._known[documents] = spread(found, self.magnitude)

    def _take(self, source: Any) -> dict[str, Any]:
        """Keep the values of a tally's documents; what is known about its words."""
        from evenrank.text.matcher import Counts
        from evenrank.text.tally import Tally

        tally = Tally.of(source)
        numbers = self._index.numbers(tally.frame["doc_id"].to_list())
        here = numbers >= 0
        columns = tally.frame
        counts = Counts(
            columns["tokens"].to_numpy(),
            np.stack([columns[group].to_numpy() for group in tally.groups], axis=1),
            np.stack([columns[f"{group}_logwords"].to_numpy() for group in tally.groups], axis=1),
        )
        self._known[numbers[here]] = spread(counts, self.magnitude)[here]
        known = tally.lexicon
        facts: dict[str, Any] = {"tokenizer": tally.tokenizer}
        return facts if known is None else {"lexicon": known.name, "lexicon_hash": known.hash, **facts}


def spread(found: Counts, name: str) -> Floats:
    """Largest minus smallest magnitude over the groups of each document: |male − female| for two groups."""
    plain = "length" if name == LIWC else name
    groups = range(found.counts.shape[1])
    each = [
        magnitude(plain, found.counts[:, g], logwords=found.logwords[:, g], tokens=found.tokens)
        for g in groups
    ]
    values = np.stack(each, axis=1)
    apart = values.max(axis=1) - values.min(axis=1)
    return 100 * apart if name == LIWC else apart
