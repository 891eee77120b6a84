"""All inputs of a measurement, opened once: runs, collection, queries, judgments, labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank.data.docs import Docs, open_docs
from evenrank.data.formats import is_parquet
from evenrank.data.read import path_of, read_genders, read_qrels, read_queries
from evenrank.data.runs import perfect_run, read_run
from evenrank.data.schema import show
from evenrank.errors import InputError, check_choice
from evenrank.measures.base import is_bias, unwrap_abs
from evenrank.measures.groups import DocumentGroups, Labels, Targets, inferred_groups, read_targets
from evenrank.measures.lists import (
    WHOLE_LIST,
    RankedLists,
    ranked_lists,
    ranked_queries,
)

if TYPE_CHECKING:
    from evenrank.text.matcher import Matcher
    from evenrank.text.tally import Tally
    from evenrank.vectors.texts import GenderedTexts

_CHOICES: dict[str, tuple[str, ...]] = {  # the first unless given
    "missing": ("error", "zero", "skip"),
    "ties": ("order", "expected"),
    "order": ("score", "rank"),
}
LARGE = 1 << 30
"""Of run files of this many bytes (packed ones of a quarter) only the top is kept, where that is enough."""
PREDICT = "predict"
"""Stands for the genders of queries that the classifier predicts."""
_SUFFIXES = (".gz", ".zst", ".run", ".txt", ".json", ".tsv")
_NEEDED = {
    "docs": "the text of the documents; give docs",
    "queries": "the text of the queries; give queries",
    "qrels": "relevance judgments; give qrels",
    "tally": "a tally, or docs to make one from",
    "groups": "labels of documents, a tally, or docs to make one from",
}


_TABLES = {"groups", "dictionary", "variants", "genderedness"}
"""Needs that say what documents are looked up in; without any of them it is the tally."""
T = TypeVar("T")
Classify = Callable[[pl.DataFrame], tuple[Any, str]]
"""Labels of queries, and a sentence on how many got which."""


class MeasureInputs(TypedDict, total=False):
    """What a caller may give beside runs and measures; see :class:`Inputs` for what each is."""

    docs: Any
    lexicon: Any
    tokenizer: str | None
    queries: Any
    qrels: Any
    background: Any
    vectors: Any
    pairs: Any
    labels: Any
    targets: Any
    dictionary: Any
    genders: Any
    classify: Classify | None
    missing: Literal["error", "zero", "skip"]
    ties: Literal["order", "expected"]
    order: Literal["score", "rank"]
    progress: Any


@dataclass(frozen=True, eq=False)
class Inputs:
    """Runs, and all other inputs of measures.

    What is expensive (the tally of a collection, the reader of word vectors) is computed on first use, and
    kept.

    Attributes
    ----------
    runs
        Normalised runs by name; none where they come later, as for bound measures.
    docs, queries, qrels, background, genders
        Opened, where they were given; see :func:`evenrank.measure`.
    missing, ties, order
        How runs are read.
    gender_warning
        A warning about the genders, if they were predicted.
    given
        All that was given, as it was given.
    top_only
        The files of the runs of which only the top was read.
    """

    runs: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    docs: Docs | None = None
    queries: pl.DataFrame | None = None
    qrels: pl.DataFrame | None = None
    background: pl.DataFrame | None = None
    genders: Mapping[str, str] | None = None
    gender_warning: str = ""
    missing: str = "error"
    ties: str = "order"
    order: str = "score"
    given: Mapping[str, Any] = field(default_factory=dict)
    top_only: Mapping[str, Any] = field(default_factory=dict)
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def open(
        cls,
        runs: Any = None,
        *,
        tally: Any = None,
        depth: int | None = None,
        classify: Classify | None = None,
        **given: Any,
    ) -> Inputs:
        """Read the inputs into tables; see the attributes.

        With a `depth` only the top of large run files is kept.
        """
        if unknown := given.keys() - MeasureInputs.__annotations__.keys():
            raise TypeError(
                f"there is no input {sorted(unknown)[0]!r}; {', '.join(MeasureInputs.__annotations__)} are"
            )
        choices: dict[str, Any] = {name: given.get(name) or known[0] for name, known in _CHOICES.items()}
        for name in _CHOICES.keys() & given.keys():
            check_choice(name, choices[name], _CHOICES[name])
        order, ties = choices["order"], choices["ties"]
        if ties == "expected" and order == "rank":
            raise InputError("the rank column leaves no ties; choose either order 'rank' or ties 'expected'")
        named = {} if runs is None else named_runs(runs)
        # One more tells whether a tie decides what is above; where ties are averaged over, all of it counts.
        depth = None if depth is None or ties == "expected" else depth + 1
        frames: dict[str, pl.DataFrame] = {}
        top_only: dict[str, Any] = {}

        for name, run in named.items():
            if depth is not None and isinstance(run, str | PathLike) and is_large(run):
                top_only[name] = run
            frames[name] = read_run(run, order=order, depth=depth if name in top_only else None)
        docs, qrels, background = given.get("docs"), given.get("qrels"), given.get("background")
        if background is not None:
            background = read_run(background, order=order, depth=depth if is_large(background) else None)
        queries = None if given.get("queries") is None else read_queries(given["queries"])
        genders: Any = given.get("genders")
        gender_warning = ""
        if isinstance(genders, str) and genders == PREDICT:
            genders, gender_warning = _predicted(queries, classify)
        result = cls(
            runs=frames,
            docs=None if docs is None else open_docs(docs).shared(),
            queries=queries,
            qrels=None if qrels is None else read_qrels(qrels),
            background=background,
            genders=None if genders is None else dict(read_genders(genders).iter_rows()),
            gender_warning=gender_warning,
            **choices,
            given={**given, "tally": tally},
            top_only=top_only,
        )
        result._check_belonging()
        return result

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """`make()`, computed once for a key."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def table(self, measure: Any, depth: int) -> Any:
        """The table that a measure looks documents up in down to a depth: a tally, or groups of documents."""
        attribute = unwrap_abs(measure).params.get("attribute")
        if "variants" in measure.NEEDS:
            return DocumentGroups(pl.DataFrame(schema={"doc_id": pl.String}), (), "not looked up")
        if "dictionary" in measure.NEEDS:
            return self.cached(("dictionary", depth), lambda: self._count_dictionary(depth))
        if "groups" not in measure.NEEDS:
            return self.tally
        return (
            self.groups
            if attribute is None
            else self.cached(attribute, lambda: self.labels.groups(attribute))
        )

    def _count_dictionary(self, depth: int) -> Tally:
        """Count the words of the dictionary in the top documents of the runs; in all without runs."""
        from evenrank.text.tally import tally  # loads numba

        docs: Any = self.docs
        if self.runs:
            texts = docs.texts(self.top_documents(depth))
            columns = {"doc_id": list(texts), "text": list(texts.values())}
            docs = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return tally(docs, self.dictionary, tokenizer=self.given.get("tokenizer") or "words")

    @cached_property
    def dictionary(self) -> Any:
        """The female and the male words of the dictionary."""
        from evenrank.text.lexicon import female_and_male

        return female_and_male(self.given.get("dictionary"))

    def matcher_of(self, measure: Any) -> Matcher | None:
        """A matcher for the words that a measure counts; None if they are unknown."""
        if "dictionary" not in measure.NEEDS:
            return self.matcher
        from evenrank.text.matcher import Matcher

        return Matcher(self.dictionary, self.given.get("tokenizer") or "words")

    def gendered_texts(self, stop_words: Any) -> GenderedTexts:
        """What tells the genderedness of texts, from vectors or the shipped table."""
        from evenrank.vectors.texts import gendered_texts  # loads numba

        vectors, pairs = self.given.get("vectors"), self.given.get("pairs")
        texts = self.cached("genderedness", lambda: gendered_texts(vectors, pairs=pairs))
        return texts.stopping(stop_words)

    def targets(self, measures: Sequence[Any], groups: tuple[str, ...]) -> Targets | None:
        """The table of targets, if there is one and a measure compares with it."""
        given = self.given.get("targets")
        requested = (
            "target" in m.SUPPORTED_PARAMS and m["target"] is None for m in map(unwrap_abs, measures)
        )
        if given is None or not any(requested):
            return None
        return self.cached(("targets", groups), lambda: read_targets(given, groups))

    def expect_texts(self, measures: Sequence[Any], *, explain: bool) -> None:
        """Announce the documents whose texts these measures need, so that one pass over them is enough."""
        needs, linear = measures[0].NEEDS, any(measure.LINEAR for measure in measures)
        reads_texts = "dictionary" in needs or (explain and linear and not needs & _TABLES)
        if self.docs is not None and reads_texts:
            self.docs.expect(self.top_documents(depth_of(measures)))

    def lists(
        self,
        run: pl.DataFrame,
        measures: Sequence[Any],
        name: str = "the run",
        *,
        depth: int = 0,
        expected_ties: bool = False,
    ) -> RankedLists:
        """A normalised run as lists for measures that share a table, as deep as they look, or deeper."""
        depth = max(depth, depth_of(measures))
        table = self.table(measures[0], depth)
        for measure in measures:
            measure.check_groups(table.groups)
        labels = table if isinstance(table, DocumentGroups) else None
        # A document without a given label shows no group; one that a tally lacks may be a mistake.
        missing = self.missing if labels is None or labels.inferred else "unlabelled"
        look_up = partial(ranked_lists, tally=table.frame, groups=table.groups, missing=missing)
        background = None
        if deepest := max(measure.background_depth() for measure in measures):
            shared = next(iter(self.runs.values())) if self.background is None else self.background
            background = self.cached(
                ("background", deepest, measures[0].NEEDS),
                lambda: look_up(shared, depth=deepest, name="the background run"),
            )
        lists = look_up(run, depth=depth, expected_ties=expected_ties, name=name)
        targets = None if labels is None else self.targets(measures, table.groups)
        return replace(
            lists,
            background=background,
            docs=self.docs,
            queries=self.queries,
            qrels=self.qrels,
            labels=labels,
            targets=None if targets is None else targets.of(lists.query_ids, lists.groups),
            unlisted=table.groups[-1] if labels is not None and labels.unknown else None,
        )

    def described(self, measures: Sequence[Any]) -> dict[str, Any]:
        """Return what the table that these measures share was computed from."""
        first = measures[0]
        if "variants" in first.NEEDS:
            return {}
        if "genderedness" in first.NEEDS:
            return {"genderedness": self.gendered_texts(first["stop_words"]).provenance}
        table = self.table(first, depth_of(measures))
        if not isinstance(table, DocumentGroups):
            return {"dictionary" if "dictionary" in first.NEEDS else "tally": table.provenance}
        targets = self.targets(measures, table.groups)
        return {
            **({"tally": self.tally.provenance} if table.inferred else {}),
            "groups": table.provenance,
            **({} if targets is None else {"targets": targets.fingerprint}),
        }

    def _described(self) -> list[tuple[list[str], str, str]]:
        """The queries in each table, and the phrases for one of them and for several."""
        rows: list[tuple[list[str], str, str]] = []
        if self.queries is not None:
            ids = self.queries["query_id"].to_list()
            rows.append((ids, "has a text in the queries", "have a text in the queries"))
        if self.qrels is not None:
            ids = self.qrels["query_id"].unique(maintain_order=True).to_list()
            rows.append((ids, "is judged in the qrels", "are judged in the qrels"))
        if self.genders is not None:
            rows.append((list(self.genders), "has a gender label", "have a gender label"))
        return rows

    def _check_belonging(self) -> None:
        """Refuse queries, judgments or labels that share no query with a run: another collection has them."""
        described = self._described()
        for name, run in self.runs.items() if described else ():
            ranked = set(ranked_queries(run).to_list())
            for ids, phrase, _ in described:
                if ids and ranked.isdisjoint(ids):
                    problem = f"none of the {len(ranked):,} queries of {name} {phrase}"
                    example = f"it ranks {show(run['query_id'][0])}, they have {show(ids[0])}"
                    raise InputError(f"{problem}: {example}; do they belong together?")

    def warnings(self, measures: Iterable[Measure]) -> list[str]:
        """Return warnings about the inputs for readers of these measures."""
        warnings = [self.gender_warning] if self.gender_warning else []
        if not self.top_only and any(map(len, self.runs.values())):
            warnings += self._mismatches()
        if (
            self.genders is not None
            or not self.reading_tally(measures)
            or not {"female", "male"} & {*self.tally.groups}
        ):
            return warnings
        counted = ""
        if self.queries is not None and self.matcher is not None:
            ranked = pl.concat(run["query_id"].unique() for run in self.runs.values()).implode()
            requested = self.queries.filter(pl.col("query_id").is_in(ranked))["text"]
            hits = self.matcher.count(requested.to_list()).counts.sum(axis=1) > 0
            counted = f" {int(hits.sum()):,} of {len(hits):,} contain a word of the lexicon."
        why = "leaning toward a gender that the query asks for is not a bias"
        return [*warnings, f"No gender labels: all queries are measured, although {why}.{counted}"]

    def _mismatches(self) -> list[str]:
        """Return warnings where the inputs look as if they do not belong together."""
        rows: list[str] = []
        described = self._described()
        if not described:
            return rows
        ranked = set[str]()
        for run in self.runs.values():
            ranked.update(ranked_queries(run).to_list())
        for ids, singular, plural in described:
            known = len(ranked.intersection(ids))
            if ranked and known < len(ranked) / 2:
                verb = singular if known == 1 else plural
                rows.append(f"Only {known:,} of the {len(ranked):,} ranked queries {verb}.")
        if self.qrels is not None and self.runs:
            judged = self.qrels.filter(pl.col("query_id").is_in(list(ranked)))["doc_id"].unique()
            shown = pl.concat(run["doc_id"] for run in self.runs.values()).unique()
            if not judged.is_in(shown.implode()).any():
                rows.append(
                    f"No run ranks any of the {len(judged):,} judged documents: do the qrels belong to this "
                    "collection?"
                )
        return rows

    def of_runs(
        self, runs: Mapping[str, pl.DataFrame], *, background: pl.DataFrame | None = None, **changed: Any
    ) -> Inputs:
        """Return the same inputs with other runs and changes; tables that are loaded are reused."""
        other = replace(self, runs=runs, background=background, **changed)
        built = ("tally", "matcher", "groups", "labels", "relevant")
        other.__dict__.update({name: self.__dict__[name] for name in built if name in self.__dict__})
        return other

    def top_documents(self, depth: int) -> list[str]:
        """Return the documents of the runs down to a depth; all of them if those below count too."""
        whole = self.missing == "skip" or self.ties == "expected"
        tops = [
            (run if whole else run.filter(pl.col("rank") <= depth))["doc_id"] for run in self.runs.values()
        ]
        return pl.concat(tops).unique(maintain_order=True).to_list() if tops else []

    def is_requested(self, queries: pl.Series) -> NDArray[np.bool_]:
        """Whether each query is among those given; all are, if none are given."""
        if self.queries is None:
            return np.ones(len(queries), bool)
        return queries.is_in(self.queries["query_id"].implode()).to_numpy()

    def check(self, measures: Sequence[Measure]) -> None:
        """Refuse measures whose inputs are missing; the error names all of these inputs."""
        is_given = {
            "docs": self.docs is not None,
            "queries": self.queries is not None,
            "qrels": self.qrels is not None or not self.runs,  # they come with the runs
            "tally": self.has_tally,
            "groups": self.has_tally or self.given.get("labels") is not None,
        }
        lacking: dict[str, list[str]] = {}  # what is needed, and by which measures
        for measure in measures:
            for need in sorted(getattr(measure, "NEEDS", {"qrels"}) & _NEEDED.keys()):
                if not is_given[need]:
                    otherwise = getattr(measure, "ALTERNATIVES", {}).get(need)
                    needed = _NEEDED[need] + (f", or {otherwise}" if otherwise else "")
                    lacking.setdefault(needed, []).append(str(measure))
        if lacking:
            rows = [
                f"{', '.join(names)} {'needs' if len(names) == 1 else 'need'} {needed}"
                for needed, names in lacking.items()
            ]
            raise InputError(". ".join(rows))
        for name, run in self.runs.items():
            one_ranking = [m for m in measures if not getattr(m, "SEQUENCES", False)]
            if "seq" in run.columns and one_ranking:
                raise InputError(
                    f"{name} has several rankings of a query (column seq), and {one_ranking[0]} looks at "
                    "one; EEL, EED and EER look at all of them"
                )

    def reading_tally(self, measures: Iterable[Measure]) -> list[Any]:
        """Return the measures that use the tally: for words, or for groups without labels."""
        needed = {"tally"} | ({"groups"} if self.given.get("labels") is None else set())
        return [m for m in measures if is_bias(m) and m.NEEDS & needed]

    @property
    def has_tally(self) -> bool:
        """Whether there is a tally, or documents to make one from."""
        return self.given.get("tally") is not None or self.docs is not None

    @cached_property
    def tally(self) -> Tally:
        """The given tally, or one computed from the documents."""
        if not self.has_tally:
            raise InputError("bias measures need a tally, or docs to make one from")
        given = self.given
        return get_tally(
            given.get("tally"), self.docs, given.get("lexicon"), given.get("tokenizer"), given.get("progress")
        )

    @property
    def lexicon(self) -> Any:
        """The lexicon of the tally; None if it is unknown."""
        return self.tally.lexicon or self.given.get("lexicon")

    @property
    def tokenizer(self) -> str:
        """The tokenizer: that of the tally, if there is one."""
        built = self.tally.tokenizer if self.has_tally else None
        return built or self.given.get("tokenizer") or "words"

    @cached_property
    def matcher(self) -> Matcher | None:
        """A matcher for the words of the tally; None if its lexicon is unknown."""
        if not self.has_tally or self.lexicon is None:
            return None
        from evenrank.text.matcher import Matcher

        return Matcher(self.lexicon, self.tokenizer)

    @cached_property
    def labels(self) -> Labels:
        """The labels of documents by attribute."""
        return Labels.of(self.given.get("labels"))

    @cached_property
    def groups(self) -> DocumentGroups:
        """The groups of documents: given, else inferred from the tally."""
        labels = self.given.get("labels")
        if labels is not None:
            return labels if isinstance(labels, DocumentGroups) else self.labels.one_attribute()
        if not self.has_tally:
            raise InputError("groups of documents need labels, or a tally or docs to infer them from")
        return inferred_groups(self.tally)

    @property
    def soft(self) -> bool:
        """Whether the labels of documents are shares."""
        labels = self.given.get("labels")
        if labels is None or isinstance(labels, DocumentGroups):
            return labels is not None and labels.soft
        return self.labels.soft

    @cached_property
    def relevant(self) -> RankedLists:
        """The judged-relevant documents of each query, as far as the tally holds them."""
        frame = self.tally.frame
        judged: Any = self.qrels
        held = judged.filter(pl.col("doc_id").is_in(frame["doc_id"].implode()))
        return ranked_lists(perfect_run(held), frame, self.tally.groups, depth=WHOLE_LIST)


def sharing_tables(measures: Iterable[Any]) -> list[list[Any]]:
    """The measures that look documents up in the same table, together."""
    result: dict[Hashable, list[Any]] = {}
    for measure in measures:
        key = measure.NEEDS & _TABLES, unwrap_abs(measure).params.get("attribute")
        result.setdefault(key, []).append(measure)
    return list(result.values())


def depth_of(measures: Iterable[Any]) -> int:
    """How many documents of a list these measures look at."""
    return max(int(measure.depth()) for measure in measures)


def is_large(run: Any) -> bool:
    """Whether a run is a file that is better not held whole."""
    path = path_of(run)
    if path is None or not Path(path).is_file():
        return False
    packed = PurePath(path).suffix.lower() in (".gz", ".zst") or is_parquet(path)
    return Path(path).stat().st_size * (4 if packed else 1) >= LARGE


def _predicted(queries: pl.DataFrame | None, classify: Classify | None) -> tuple[Any, str]:
    """Labels of queries by the classifier, and a warning; queries that it was trained on get no label."""
    if queries is None:
        raise InputError("genders 'predict' reads the texts of the queries; give queries")
    if classify is None:
        raise InputError("genders 'predict' needs a classifier; call evenrank.measure, or give labels")
    labels, counts = classify(queries)
    guesses = "The genders of the queries are guesses of the shipped classifier, not labels by people"
    return labels, f"{guesses} ({counts})."


def get_tally(
    tally: Any, docs: Any, lexicon: Any = None, tokenizer: str | None = None, progress: Any = None
) -> Tally:
    """Return the given tally, or one computed from the documents."""
    from evenrank.text.tally import Tally
    from evenrank.text.tally import tally as make_tally  # loads numba

    if tally is None:
        return make_tally(docs, lexicon or "rekabsaz2020", tokenizer=tokenizer or "words", progress=progress)
    opened = Tally.of(tally)
    refuse = "leave the {0} out, or give docs instead of the tally"
    if lexicon is not None and opened.lexicon is not None:
        from evenrank.text.lexicon import lexicon as load

        named = load(lexicon)
        if named.hash != opened.lexicon.hash:
            raise InputError(
                f"the tally was made with the lexicon {opened.lexicon.name}, not {named.name}; "
                + refuse.format("lexicon")
            )
    if tokenizer is not None and opened.tokenizer is not None and tokenizer != opened.tokenizer:
        raise InputError(
            f"the tally was made with the tokenizer {opened.tokenizer}, not {tokenizer}; "
            + refuse.format("tokenizer")
        )
    return opened


def named_runs(runs: Any) -> dict[str, Any]:
    """Return runs by name; a single run is named after its file, or `run`."""
    if isinstance(runs, Mapping) and not _is_run(runs):
        if not runs:
            raise InputError("give at least one run")
        return dict(zip(map(str, runs), runs.values(), strict=True))
    if isinstance(runs, str | PathLike):
        return {run_name(runs): runs}
    return {"run": runs}


def run_name(path: str | PathLike[str]) -> str:
    """Return the name of a run file without .run, .txt, .tsv, .json, .gz and .zst."""
    name = PurePath(path).name
    while suffix := next((s for s in _SUFFIXES if name.endswith(s) and name != s), ""):
        name = name.removesuffix(suffix)
    return name


def _is_run(runs: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one run (query → document → score) and not runs by name."""
    first = next(iter(runs.values()), None)
    if not isinstance(first, Mapping):
        return False
    return all(issubclass(kind, Real) for kind in {*map(type, first.values())})
