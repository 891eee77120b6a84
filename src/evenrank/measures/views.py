"""How measures see the inputs: documents as counts of words here, others beside the measures that need them.

A measure names its view in `VIEW`. A view is opened once for all runs, and `lists(run)` makes of a run what
the measure's `per_query` gets: the same for `measure`, `bind`, `constrain`, the audit and the server.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data.read import fingerprint
from evenrank.errors import InputError
from evenrank.measures.explain import attribution_of
from evenrank.measures.lists import (
    Ints,
    PerQuery,
    RankedLists,
    in_top,
    raise_no_overlap,
    ranked_lists,
    ranked_queries,
)
from evenrank.measures.results import NOT_IN_QUERIES, Measurement, Options, labels_of, left_out

if TYPE_CHECKING:
    from evenrank.measures.base import BiasMeasure
    from evenrank.measures.inputs import Inputs
    from evenrank.text.matcher import Matcher

NOT_LINEAR = "not linear in the documents: tied documents stay in trec_eval's order"


@dataclass(frozen=True, eq=False)
class RunScores:
    """The values of a view's measures for a run, or for some of its queries, list by list.

    Attributes
    ----------
    ranked_queries
        The queries for which something was ranked, in their order.
    query_ids, values, tied, counts
        Those with a list, and for each measure its values, whether a tie decides them, and how many documents
        it looked at (`looked`), how many of them the collection lacks (`absent`), how many stand above the
        cut-off (`above`) and how many of these show no group (`unknown`), and whether the list is no longer
        than the cut-off (`short`), where that is counted.
    emptied, ranked, skipped, labelled
        Queries without a document of the collection; ranked documents, those left out of the lists, and those
        whose group is known.
    lists
        The lists that each measure was computed from, for explanations; none where parts were merged.
    """

    ranked_queries: pl.Series
    query_ids: pl.Series
    values: Mapping[BiasMeasure, PerQuery]
    tied: Mapping[BiasMeasure, NDArray[np.bool_]]
    counts: Mapping[BiasMeasure, Mapping[str, Ints]]
    emptied: tuple[str, ...] = ()
    ranked: int = 0
    skipped: int = 0
    labelled: int = 0
    lists: Mapping[BiasMeasure, RankedLists] = field(default_factory=dict)


class View:
    """The inputs as one family of measures sees them; opened once, for all runs.

    Subclasses say what documents are looked up in (`tally`: a frame and the groups that are its columns).
    `NEEDED` is what a user has to give for it, `READS` which inputs it looks at, `WHOLE` whether it reads the
    whole collection, `MERGEABLE` whether what it sees of the parts of a run can be put together, `SEQUENCES`
    whether a query may have several rankings.
    """

    NEEDED: ClassVar[str] = ""
    READS: ClassVar[frozenset[str]] = frozenset({"docs", "tally", "lexicon", "tokenizer"})
    WHOLE: ClassVar[bool] = False
    MERGEABLE: ClassVar[bool] = False
    SEQUENCES: ClassVar[bool] = False
    matcher: Any = None  # finds the words that it counts, if it does
    targets: Any = None  # shares by query, where they are given
    labels: Any = None  # the groups of documents, where there are some
    _behind: RankedLists | None = None  # the lists of the background, once they are made

    def __init__(self, inputs: Inputs, measures: Sequence[BiasMeasure], *, depth: int = 0) -> None:
        self.inputs = inputs
        self.measures: tuple[Any, ...] = tuple(measures)
        self.depth = depth
        for measure in measures:
            self.depth = max(self.depth, measure.depth())

    def prepare(self, seed: int = 0) -> None:
        """Read what is needed before any run is measured."""
        self.check()

    def check(self) -> None:
        """Refuse measures that cannot be computed for these groups."""
        for measure in self.measures:
            measure.check_groups(self.tally.groups)

    @cached_property
    def tally(self) -> Any:
        """What documents are looked up in: a frame, and its groups."""
        raise NotImplementedError

    @property
    def missing(self) -> str:
        """What becomes of documents that it does not hold."""
        return self.inputs.missing

    @property
    def name(self) -> str:
        """Eight characters that differ where what is looked at differs."""
        known = self._looked_at(self.inputs.queries, self.inputs.background)
        return known + ("" if self.missing == "error" else f",{self.missing}")

    def _looked_at(self, *tables: pl.DataFrame | None) -> str:
        """Eight characters for the tally and these tables."""
        return fingerprint([self.tally.frame, *tables], numbers=True)[:8]

    def wanted_texts(self, *, explain: bool) -> Iterable[pl.Series]:
        """Documents of the runs whose texts it will ask for."""
        return ()

    def _top(self, depth: int) -> list[pl.Series]:
        """The documents of the runs down to a depth; all of them where those below have a say."""
        whole = self.inputs.missing == "skip" or self.inputs.ties == "expected"
        runs = self.inputs.runs.values()
        return [(run if whole else run.filter(pl.col("rank") <= depth))["doc_id"] for run in runs]

    def provenance(self) -> dict[str, Any]:
        """What its numbers were made from."""
        return {}

    def lists(
        self,
        run: pl.DataFrame,
        name: str = "the run",
        *,
        measures: Sequence[BiasMeasure] = (),
        expected_ties: bool = False,
        qrels: pl.DataFrame | None = None,
    ) -> RankedLists:
        """A normalised run as the measures see it (all of them, or these), down to the depth they look."""
        wanted, inputs = measures or self.measures, self.inputs
        if "seq" in run.columns and not self.SEQUENCES:
            refuse_sequences(name, wanted)
        lists = ranked_lists(
            run,
            self.tally.frame,
            self.tally.groups,
            depth=self.depth if wanted is self.measures else max(measure.depth() for measure in wanted),
            missing=self.missing,
            expected_ties=expected_ties,
            part=inputs.part,
            name=name,
        )
        return replace(
            lists,
            background=self._background(run, wanted),
            docs=inputs.docs,
            queries=inputs.queries,
            qrels=inputs.qrels if qrels is None else qrels,
            targets=self.targets,
            labels=self.labels,
        )

    def _background(self, run: pl.DataFrame, measures: Sequence[BiasMeasure]) -> RankedLists | None:
        """The lists to compare with, if a measure asks: the background's, the first run's, the run's own."""
        if self._behind is not None or not any(m.background_depth() for m in measures):
            return self._behind
        inputs, shared = self.inputs, self.inputs.background
        if shared is None:
            shared = next(iter(inputs.runs.values()), None)
        wanting = measures if shared is None else self.measures
        lists = ranked_lists(
            run if shared is None else shared,
            self.tally.frame,
            self.tally.groups,
            depth=max(measure.background_depth() for measure in wanting),
            missing=self.missing,
            part=inputs.part,
            name="the background run",
        )
        if shared is not None:
            self._behind = lists  # of all runs
        return lists

    def values(
        self, run: pl.DataFrame, measures: Sequence[BiasMeasure], qrels: pl.DataFrame | None = None
    ) -> dict[BiasMeasure, dict[str, float]]:
        """Defined values of measures for a run by query, for libraries that know no more than these."""
        lists = self.lists(run, measures=measures, qrels=qrels)
        if not len(lists.query_ids):
            return {measure: {} for measure in measures}
        ids = lists.query_ids.to_list()
        result = {measure: measure.per_query(lists).values.tolist() for measure in measures}
        return {
            measure: {query: value for query, value in zip(ids, values, strict=True) if value == value}
            for measure, values in result.items()
        }

    def measured(self, name: str, run: pl.DataFrame, options: Options) -> list[Measurement]:
        """Each measure of a normalised run, over the queries with at least one ranked document."""
        return self.measurements(name, self.score_run(name, run, options), options)

    def score_run(self, name: str, run: pl.DataFrame, options: Options) -> RunScores:
        """The measures' values for each list of a normalised run, or of a part of one."""
        inputs, ranked = self.inputs, ranked_queries(run)
        if options.only not in (None, "all") and inputs.genders is not None:
            # The others are neither measured nor shown, so they need not be in the background either.
            labels = labels_of(ranked, inputs.genders)
            run = run.filter(pl.col("query_id").is_in(ranked.filter(labels == options.only).implode()))
        by_ties: dict[bool, RankedLists] = {}
        lists_of: dict[BiasMeasure, RankedLists] = {}
        for measure in self.measures:
            expected = inputs.ties == "expected" and measure.LINEAR
            if expected not in by_ties:
                by_ties[expected] = self.lists(run, name, expected_ties=expected)
            lists_of[measure] = by_ties[expected]
        lists = next(iter(by_ties.values()))  # of the same queries in all of them
        values, tied, counts = {}, {}, {}
        for measure, its_lists in lists_of.items():
            values[measure] = measure.per_query(its_lists) if len(lists.query_ids) else PerQuery(np.zeros(0))
            if inputs.order == "score":
                tied[measure] = _tied(measure, its_lists)
            counts[measure] = self.counts(measure, its_lists)
        return RunScores(
            ranked_queries=ranked,
            query_ids=lists.query_ids,
            values=values,
            tied=tied,
            counts=counts,
            emptied=lists.emptied,
            ranked=int(lists.scored_lengths.sum()) + lists.skipped,
            skipped=lists.skipped,
            lists=lists_of,
        )

    def counts(self, measure: BiasMeasure, lists: RankedLists) -> dict[str, Ints]:
        """How many documents of each list a measure looks at, and how many of them the collection lacks."""
        if self.missing != "zero":
            return {}
        looked, absent = counted(lists, measure.depth(), lists.rows < 0)
        return {"looked": looked, "absent": absent}

    def measurements(self, name: str, scores: RunScores, options: Options) -> list[Measurement]:
        """The measurements over the chosen queries, with their notes."""
        self._refuse_strangers(name, scores)
        inputs, labels, query_ids = self.inputs, self.inputs.genders, scores.query_ids
        only = options.only or ("all" if labels is None else "neutral")
        requested, ranked_asked = inputs.asked(query_ids), inputs.asked(scores.ranked_queries)
        masks: dict[str, NDArray[np.bool_]] = {}
        if labels is not None:
            label = labels_of(query_ids, labels)
            for other in label.drop_nulls().unique():
                masks[other] = (label == other).fill_null(False).to_numpy() & requested
        chosen = requested if only == "all" else masks.get(only, np.zeros(len(query_ids), bool))
        apart = sorted(masks.keys() - {only})
        unmeasured = left_out(
            _known(scores.ranked_queries.filter(pl.Series(ranked_asked)), inputs),
            set(query_ids.to_list()),
            labels=labels,
            only=only,
            otherwise="nothing ranked",
            reasons=dict.fromkeys(scores.emptied, "no ranked document is in the collection"),
        )
        if others := int((~ranked_asked).sum()):
            unmeasured[NOT_IN_QUERIES] = others
        results = []
        for measure in self.measures:
            result = scores.values[measure]
            defined = chosen & ~np.isnan(result.values)
            undefined = int((chosen & ~defined).sum())
            ids = query_ids if defined.all() else query_ids.filter(pl.Series(defined))
            values = result.values[defined]
            tied = scores.tied.get(measure)
            explained = None
            if options.explain and measure.LINEAR and measure in scores.lists and defined.any():
                lists, docs = scores.lists[measure], inputs.docs
                explained = attribution_of(measure, lists, defined, docs=docs, matcher=self.matcher)
            results.append(
                Measurement(
                    run=name,
                    measure=measure,
                    summary=measure.summarise(result, chosen, options),
                    left_out=unmeasured | ({result.undefined: undefined} if undefined else {}),
                    query_ids=ids,
                    values=values,
                    part_values={part: of[defined] for part, of in result.parts.items()},
                    ties=float(tied[defined].mean()) if tied is not None and defined.any() else None,
                    compare=partial(measure.backgrounds, self.inputs, ids, values),
                    only=None if labels is None else only,
                    subsets={other: measure.summarise(result, masks[other], options) for other in apart},
                    notes=self.notes(measure, scores, defined, options),
                    attribution=explained,
                )
            )
        return results

    def _refuse_strangers(self, name: str, scores: RunScores) -> None:
        """Refuse a run that was looked at in parts, and of which no part has a document of the collection."""
        if scores.ranked and scores.skipped == scores.ranked:
            raise_no_overlap(name)
        deepest = max(self.measures, key=lambda measure: measure.depth())
        counts = scores.counts[deepest]
        if "absent" in counts and len(counts["looked"]) and (counts["absent"] == counts["looked"]).all():
            raise_no_overlap(name, deepest.depth())

    def notes(
        self, measure: Any, scores: RunScores, defined: np.ndarray, options: Options
    ) -> tuple[str, ...]:
        """What a reader of the value has to know; `defined` are the lists that it is the value of."""
        notes = []
        if scores.skipped:
            notes.append(
                f"{scores.skipped:,} of {scores.ranked:,} ranked documents are not in the collection: skipped"
            )
        if self.missing == "zero":
            looked, absent = (int(scores.counts[measure][what].sum()) for what in ("looked", "absent"))
            if absent:
                notes.append(
                    f"{absent:,} of {looked:,} ranked documents{in_top(measure.depth())} "
                    "are not in the collection: counted as having no words"
                )
        if "background" in measure.NEEDS and self.inputs.background_note:
            notes.append(self.inputs.background_note)
        if options.explain and measure.LINEAR and measure.words(self.tally.groups) is not None:
            if self.inputs.docs is None:
                notes.append(
                    "which words make up the value cannot be said from a tally alone, without the documents"
                )
            elif self.matcher is None:
                notes.append(
                    "which words make up the value cannot be said: the tally does not name its lexicon"
                )
        if self.inputs.ties == "expected" and not measure.LINEAR:
            notes.append(NOT_LINEAR)
        return tuple(notes)


class Words(View):
    """Documents as the tally sees them: how many words of each group they hold."""

    NEEDED = "a tally"
    MERGEABLE = True

    @cached_property
    def tally(self) -> Any:
        return self.inputs.tally

    @property
    def matcher(self) -> Matcher | None:
        return self.inputs.matcher

    def provenance(self) -> dict[str, Any]:
        return {"tally": self.tally.provenance}

    def wanted_texts(self, *, explain: bool) -> Iterable[pl.Series]:
        return self._top(self.depth) if explain and any(measure.LINEAR for measure in self.measures) else ()


def refuse_sequences(name: str, measures: Iterable[Any]) -> None:
    """Refuse measures of one ranking where there are several of a query."""
    for measure in measures:
        if not getattr(getattr(measure, "VIEW", None), "SEQUENCES", False):
            raise InputError(
                f"{name} has several rankings of a query (column seq), and {measure} looks at one; "
                "EEL, EED and EER look at all of them"
            )


def view_key(measure: Any) -> Hashable:
    """What is equal for measures that share a view: its kind, and the attribute that they name, if any."""
    attribute = getattr(measure, "inner", measure).params.get("attribute")  # of m in abs(m)
    return measure.VIEW if attribute is None else (measure.VIEW, attribute)


def views_of(inputs: Inputs, measures: Iterable[Any], *, depth: int = 0) -> dict[Hashable, View]:
    """Each view that the measures need, by :func:`view_key`.

    The one that reads the whole collection comes first: what others want of it is kept on the way.
    """
    sharing: dict[Hashable, list[Any]] = {}
    for measure in measures:
        sharing.setdefault(view_key(measure), []).append(measure)
    keys = list(sharing)
    if len(keys) > 1:
        keys.sort(key=lambda key: not sharing[key][0].VIEW.WHOLE)
    views: dict[Hashable, View] = {}
    for key in keys:
        views[key] = sharing[key][0].VIEW(inputs, sharing[key], depth=depth)
    return views


def _known(requested: pl.Series, inputs: Inputs) -> Iterable[str]:
    """Every query one could expect a value for: those given (else those judged) and those ranked."""
    table = inputs.queries if inputs.queries is not None else inputs.qrels
    return dict.fromkeys([*([] if table is None else table["query_id"].to_list()), *requested.to_list()])


def _tied(measure: BiasMeasure, lists: RankedLists) -> NDArray[np.bool_]:
    """For each list, whether the ids of tied documents decide what is measured."""
    cutoff = measure.params.get("cutoff") or measure.depth()
    return lists.tied_within(cutoff) if measure.ORDER_MATTERS else lists.tied_across(cutoff)


def counted(lists: RankedLists, depth: int, marked: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """How many documents each list has down to a depth, and how many of them are marked (or how much)."""
    entries, looked = lists.top(depth)
    if not len(looked):
        return looked, looked
    kind = np.float64 if marked.dtype.kind == "f" else np.int64
    return looked, np.add.reduceat(marked[entries], np.cumsum(looked) - looked, dtype=kind)
