"""The collection that is served: a query, several rankers, and the lists re-ranked within a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from ir_measures.measures import Measure

from evenrank.auditing.passages import Text, colour
from evenrank.data.files import is_model
from evenrank.errors import InputError
from evenrank.mitigate.constrain import rerank
from evenrank.queries.classify import OTHER, decide
from evenrank.queries.features import clean
from evenrank.queries.model import LABELS, Classifier, load_classifier
from evenrank.rankers.base import Ranker
from evenrank.rankers.index import Index
from evenrank.rankers.registry import make
from evenrank.server.evaluating import Evaluated, check_lexicon, evaluate, single_list_measures
from evenrank.text.matcher import Matcher

RANKERS = ("bm25", "bm25+rm3", "qld", "qld+rm3", "tfidf")
"""What is offered unless told otherwise: what needs nothing but the index."""
CANDIDATES = 100
"""Results that a re-ranked list is chosen from."""
SURE = 0.8
"""Probability from which on a guess at a query's gender is shown."""

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, eq=False)
class Listed:
    """What one ranker found, as it is shown."""

    ranker: str
    doc_ids: list[str]
    scores: list[float]
    texts: list[str]
    moved: list[int]
    evaluated: Evaluated | None
    constrained: dict[str, Any] | None
    before: float | None
    """The lean before re-ranking."""


class Service:
    """All that answers share: the words of each group, the classifier of queries, the index. For threads.

    Parameters
    ----------
    index
        The collection; without one lists can be evaluated, but nothing searched.
    lexicon
        A name or a file.
    rankers
        Which rankers are offered: names, and folders of `evenrank train`, which are called by their last
        part. A visitor may ask what a model was trained on: nothing is evaluated here.
    examples
        Queries to begin with.
    measures
        Measures of every evaluated list beside those that are always there: ``["FaiRR@5"]``, or your own.
    """

    def __init__(
        self,
        index: Index | None = None,
        *,
        lexicon: Any = "rekabsaz2020",
        rankers: Sequence[str] = RANKERS,
        examples: Sequence[str] = (),
        measures: Sequence[str | Measure] = (),
    ) -> None:
        self.index = index
        self.matcher = Matcher(lexicon)
        check_lexicon(self.matcher)
        self.lexicon = lexicon
        self.classifier: Classifier = load_classifier("static")
        self.rankers: dict[str, Ranker] = {}
        if index is not None:
            self.rankers = _opened(rankers, index)
            if not self.rankers:
                raise InputError("no ranker is offered; name one with --ranker")
        self.examples = tuple(examples)
        self.measures = tuple(single_list_measures(measures))

    def warm_up(self) -> None:
        """Compile what is compiled, so that the first visitor does not wait for it."""
        found = evaluate(
            self.matcher,
            [Text("", "she"), Text("a", "he"), Text("", "")],
            labels=["female", "male", None],
            target={"female": 0.5},
        )
        found.values(), found.within(0.01)
        self.gender("nurse")
        if self.index is not None and self.index.terms:
            word = self.index.term(self.index.terms // 2)
            for name in self.rankers:
                self.search(word, name, constrain=0.1)

    def gender(self, query: str) -> dict[str, Any]:
        return self.genders([query])[0]

    def genders(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """What each query is about."""
        texts = [clean(query) for query in queries]
        found = []
        rows = self.classifier.predict_proba(texts)
        chosen = decide(rows)
        for query, text, row, code in zip(queries, texts, rows, chosen.tolist(), strict=True):
            label = (*LABELS, OTHER)[code] if text else "neutral"
            found.append({"text": query, "label": label, **dict(zip(LABELS, map(float, row), strict=True))})
        return found

    def guess(self, query: str) -> dict[str, Any] | None:
        """The gender that a query seems to be about, where that is likely, and the words that say so."""
        found = self.gender(query)
        label = found["label"]
        if label in ("neutral", OTHER) or found[label] < SURE or not query.strip():
            return None
        (reasons,) = self.classifier.explain([query])
        words = [word for word, of, _ in reasons if of == label]
        return {"label": label, "sure": found[label], "words": words} if words else None

    def query_gender(self, query: str) -> str | None:
        """The one group whose words a query holds. No guess: `nurse` is not female, and excuses no lean."""
        counts = self.matcher.count([query]).counts[0].tolist()
        named = [group for group, n in zip(self.matcher.groups, counts, strict=True) if n]
        return named[0] if len(named) == 1 else None

    def search(self, query: str, ranker: str, *, depth: int = 10, constrain: float | None = None) -> Listed:
        """The results of a ranker, evaluated; within a bound on |ARaB@depth| if one is given."""
        if self.index is None:
            raise InputError("no collection is served; start the server with --index IDX or --docs D")
        if ranker not in self.rankers:
            raise InputError(f"unknown ranker {ranker!r}; there are: {', '.join(self.rankers)}")
        asked = _UNPRINTABLE.sub(" ", query).strip()
        pool = max(depth, CANDIDATES) if constrain is not None else depth
        run = pl.DataFrame()
        if asked:
            table = pl.DataFrame({"query_id": ["q"], "text": [asked]})
            run = self.rankers[ranker].rank(table, depth=pool)
        if run.is_empty():
            return Listed(ranker, [], [], [], [], None, None, None)
        ids, scores = run["doc_id"].to_list(), run["score"].to_list()
        texts = self.index.docs.texts(ids)
        order, constrained, before = list(range(len(ids))), None, None
        gender = self.query_gender(query)
        if constrain is not None:
            columns = colour(self.matcher, [Text("", texts[each]) for each in ids]).columns()
            first = evaluate(self.matcher, [Text("", texts[each]) for each in ids[:depth]], at=depth)
            before = first.lean
            condition = f"abs({first.headline})<={constrain!r}"
            found = rerank(scores, columns, limit=condition, candidates=pool)
            order = found.order
            constrained = {
                "condition": condition,
                "kept": found.status == "kept",
                "possible": found.status != "infeasible",
                "status": found.status,
                "order": [place + 1 for place in order[:depth]],
                "value": found.after[str(first.headline)],
                "loss": found.loss,
            }
        shown = order[:depth]
        return Listed(
            ranker,
            [ids[i] for i in shown],
            [scores[i] for i in shown],
            [texts[ids[i]] for i in shown],
            [i - place for place, i in enumerate(shown)],
            evaluate(self.matcher, [Text("", texts[ids[i]]) for i in shown], at=depth, query_gender=gender),
            constrained,
            before,
        )


def _opened(rankers: Sequence[str], index: Index) -> dict[str, Ranker]:
    """Rankers by the name they are shown with."""
    found: dict[str, Ranker] = {}
    for each in rankers:
        folder = is_model(each)
        name = Path(each).resolve().name if folder else str(each)
        if name in found:
            raise InputError(f"two rankers are called {name!r}; rename a folder, or name each ranker once")
        found[name] = make(each, index=index, **({"allow_training_queries": True} if folder else {}))
    return found
