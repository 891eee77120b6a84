"""What measures look at: tally, documents, queries, judgments, background and gender labels, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import Measure

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure
from evenrank.measures.document_groups import DocumentGroups, given_groups, inferred_groups
from evenrank.measures.lists import RankedLists, ranked_lists
from evenrank.measures.offered import Offered
from evenrank.measures.stereotype import StereotypeReinforcement
from evenrank.measures.targets import group_targets

if TYPE_CHECKING:
    from evenrank.text.matcher import Matcher
    from evenrank.text.tally import Tally
    from evenrank.vectors.texts import GenderedTexts

_SAYING = {
    "docs": "the text of the documents; give docs",
    "queries": "the text of the queries; give queries",
    "qrels": "relevance judgments; give qrels",
}


@dataclass(frozen=True, eq=False)
class Sources:
    """Everything beside the run itself. `background_name` is empty when the caller chose the background."""

    tally: Tally | None = None
    docs: Any = None
    queries: pl.DataFrame | None = None
    qrels: pl.DataFrame | None = None
    background: pl.DataFrame | None = None
    background_name: str = ""
    labels: Mapping[str, str] | None = None
    lexicon: Any = None
    tokenizer: str = "words"
    missing: str = "error"
    background_depth: int = 0
    runs: int = 1
    texts: GenderedTexts | None = None
    affiliation: Tally | None = None
    groups: DocumentGroups | None = None
    targets: Mapping[str, Mapping[str, Fraction]] | None = None

    @cached_property
    def offered(self) -> Offered:
        tally = self.required_tally
        return Offered(tally.frame, tally.groups, self.qrels)

    @property
    def required_tally(self) -> Tally:
        if self.tally is None:
            raise InputError("bias measures need a tally, or docs to make one from")
        return self.tally

    @cached_property
    def background_lists(self) -> RankedLists | None:
        """The background run's lists, if any measure looks at them."""
        if not self.background_depth or self.background is None:
            return None
        return ranked_lists(
            self.background,
            self.required_tally.frame,
            self.required_tally.groups,
            depth=self.background_depth,
            missing=self.missing,
            name="the background run",
        )

    @property
    def background_note(self) -> str | None:
        """Says which run is the background when nobody chose it."""
        if not self.background_name:
            return None
        which = "the run itself" if self.runs == 1 else f"the first run, {self.background_name}"
        return f"background: {which}; values with different backgrounds cannot be compared"

    @cached_property
    def matcher(self) -> Matcher | None:
        """Finds the words the tally was made with; None if it does not say which."""
        if self.tally is None or self.lexicon is None:
            return None
        from evenrank.text.matcher import Matcher

        return Matcher(self.lexicon, self.tokenizer)

    def cautions(self) -> tuple[str, ...]:
        """What a reader of bias values has to know about the queries."""
        if self.tally is None or self.labels is not None or not {"female", "male"} & {*self.tally.groups}:
            return ()
        counted = ""
        if self.queries is not None and self.matcher is not None:
            hits = self.matcher.count(self.queries["text"].to_list()).counts.sum(axis=1) > 0
            counted = f" {int(hits.sum()):,} of {len(hits):,} contain a word of the lexicon."
        return (
            "No gender labels: all queries are measured, though leaning toward a gender that a query asks "
            f"for is no bias.{counted}",
        )


def gather_sources(
    measures: Sequence[Measure],
    runs: Mapping[str, pl.DataFrame],
    *,
    tally: Any,
    docs: Any,
    lexicon: Any,
    tokenizer: str | None,
    queries: Any,
    qrels: Any,
    background: pl.DataFrame | None,
    labels: Mapping[str, str] | None,
    missing: str,
    progress: Any,
    vectors: Any = None,
    pairs: Any = None,
    groups: Any = None,
    targets: Any = None,
) -> Sources:
    """Tables out of whatever was given, and an error for what the measures need and nobody gave."""
    biases = [m for m in measures if isinstance(m, BiasMeasure)]
    given = {"docs": docs, "queries": queries, "qrels": qrels}
    for measure in measures:
        for need in sorted(getattr(measure, "NEEDS", {"qrels"}) & _SAYING.keys()):
            if given[need] is None:
                otherwise = getattr(measure, "WAYS_OUT", {}).get(need)
                raise InputError(
                    f"{measure} needs {_SAYING[need]}" + (f", or {otherwise}" if otherwise else "")
                )
    docs = None if docs is None else tables.docs(docs)
    grouped = [bias for bias in biases if "groups" in bias.NEEDS]
    counting = [b for b in biases if "tally" in b.NEEDS or (b in grouped and groups is None)]
    if counting and tally is None and docs is None:
        otherwise = "labels of documents, " if counting[0] in grouped else ""
        raise InputError(f"{counting[0]} needs {otherwise}a tally, or docs to make one from")
    coloured = colour(tally, docs, lexicon, tokenizer, progress) if counting else None
    if coloured is not None:
        for bias in counting:
            bias.check_groups(coloured.groups)
    shown = document_groups(groups, coloured) if grouped else None
    if shown is not None:
        for bias in grouped:
            bias.check_groups(shown.groups)
    chosen = background is not None
    first = next(iter(runs))
    return Sources(
        tally=coloured,
        docs=docs,
        queries=None if queries is None else tables.queries(queries),
        qrels=None if qrels is None else tables.qrels(qrels),
        background=background if chosen else runs[first],
        background_name="" if chosen else first,
        labels=labels,
        lexicon=None if coloured is None else coloured.lexicon or lexicon,
        tokenizer=(None if coloured is None else coloured.tokenizer) or tokenizer or "words",
        missing=missing,
        background_depth=max((bias.background_depth() for bias in biases), default=0),
        runs=len(runs),
        texts=reader(vectors, pairs) if any(isinstance(m, StereotypeReinforcement) for m in biases) else None,
        groups=shown,
        targets=None if targets is None or shown is None else group_targets(targets, shown.groups),
    )


def document_groups(labels: Any, tally: Tally | None) -> DocumentGroups | None:
    """The groups of documents: given, else inferred from the tally."""
    if labels is not None:
        return given_groups(labels)
    return None if tally is None else inferred_groups(tally)


def reader(vectors: Any, pairs: Any) -> GenderedTexts:
    """What tells the genderedness of texts, from vectors or the shipped table."""
    from evenrank.vectors.texts import gendered_texts  # loads numba

    return gendered_texts(vectors, pairs=pairs)


def colour(
    tally: Any, docs: Any, lexicon: Any = None, tokenizer: str | None = None, progress: Any = None
) -> Tally:
    """The tally that was given, or one made from the documents."""
    from evenrank.text.tally import Tally
    from evenrank.text.tally import tally as make_tally  # loads numba

    if tally is None:
        return make_tally(docs, lexicon or "rekabsaz2020", tokenizer=tokenizer or "words", progress=progress)
    coloured = Tally.of(tally)
    _check_made_with(coloured, lexicon, tokenizer)
    return coloured


def _check_made_with(tally: Tally, lexicon: Any, tokenizer: str | None) -> None:
    """Refuse a lexicon or tokenizer that is not the tally's own."""
    if lexicon is not None and tally.lexicon is not None:
        from evenrank.text.lexicon import lexicon as load

        named = load(lexicon)
        if named.hash != tally.lexicon.hash:
            raise InputError(
                f"the tally was made with the lexicon {tally.lexicon.name}, not {named.name}; "
                "leave the lexicon out, or give docs instead of the tally"
            )
    if tokenizer is not None and tally.tokenizer is not None and tokenizer != tally.tokenizer:
        raise InputError(
            f"the tally was made with the tokenizer {tally.tokenizer}, not {tokenizer}; "
            "leave the tokenizer out, or give docs instead of the tally"
        )
