"""A language model as re-ranker: asked of each passage, or for the order of a list.

``pointwise`` asks of each passage whether it answers the query, and takes the probability of *yes* as the
next token where the model gives it (Nogueira et al. 2020). ``listwise`` shows a window of passages and asks
for their order, from the end of the list to its beginning (Sun et al. 2023). An answer that is not in the
form that was asked for is repaired as far as it can be, and counted: ``notes`` says how many.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from evenrank.data.docs import map_in_order
from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.language_models import ChatModel, ChatSettings, LanguageModel, open_language_model
from evenrank.rankers.neural.candidates import Candidates, Doubles
from evenrank.rankers.remote.requests import Limits
from evenrank.rankers.settings import build

QUESTION = (
    "Passage: {passage}\nQuery: {query}\nDoes the passage answer the query? Answer with one word, yes or no."
)
ORDER = (
    "Here are {count} passages, each with a number.\n\n{passages}\n\nQuery: {query}\n\n"
    "Order the passages by how well they answer the query, the best first. Answer with the numbers only, in "
    "the form [2] > [1] > [3]."
)
_CHARACTERS_PER_TOKEN = 4  # of English, roughly
_TOKENS_PER_NUMBER = 6  # of an answer, for each passage of a list


@dataclass(frozen=True)
class LLMSettings:
    """How a language model is asked.

    Parameters
    ----------
    style
        ``pointwise`` or ``listwise``.
    words
        Words of a passage that are shown, from its beginning.
    window, step
        Of a list: passages shown at a time, and by how many the next window lies above.
    price_in, price_out
        Dollars for a million tokens, for the estimate of the cost.
    """

    style: Literal["pointwise", "listwise"] = "pointwise"
    words: int = 150
    window: int = 20
    step: int = 10
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        check_choice("style", self.style, ("pointwise", "listwise"))
        check_whole("words", self.words)
        check_number("price_in", self.price_in or 0.0)
        check_number("price_out", self.price_out or 0.0)
        if not 1 <= self.step < self.window:
            raise InputError(
                f"window is {self.window} and step {self.step}; a step is at least 1 and below the window"
            )


def language_model_reranker(
    model: str | os.PathLike[str] | Callable[[str], str] | None = None,
    *,
    endpoint: str | None = None,
    llm: str | None = None,
    key: str | None = None,
    **settings: Any,
) -> LLMReranker:
    """Return a language model as re-ranker.

    Parameters
    ----------
    model
        A checkpoint that is run here (a name or folder of transformers; SmolLM2-135M-Instruct if not given)
        or any function from a prompt to an answer.
    endpoint, llm, key
        In place of `model`: the address of an OpenAI-compatible server, such as ``http://localhost:8000/v1``,
        the name of the model there, and ``env:VARIABLE``, where its key is.
    settings
        Those of :class:`LLMSettings`; for an endpoint also timeout, retries, workers, rate and backoff.
    """
    if endpoint is None:
        if llm is not None or key is not None:
            raise InputError("--llm and --key are for --endpoint")
        (how,) = build(settings, LLMSettings, owner="llm")
        return LLMReranker(open_language_model(model), how)
    if model is not None:
        raise InputError("a checkpoint and an endpoint are both given; choose one")
    how, requests = build({**settings, "llm": llm, "key": key}, LLMSettings, ChatSettings, owner="llm")
    limits = Limits(requests.timeout, requests.retries, requests.backoff, requests.rate, requests.workers)
    return LLMReranker(ChatModel(endpoint, llm, key=key, limits=limits), how)


class LLMReranker:
    """A language model that orders the candidates of each query."""

    name = "llm"

    def __init__(self, model: LanguageModel, settings: LLMSettings | None = None) -> None:
        self.model = model
        self.settings = settings or LLMSettings()
        self.repaired: Counter[str] = Counter()
        self.malformed = 0

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return how probable *yes* is for each pair; or, for lists, minus the place in the order."""
        if self.settings.style == "pointwise":
            scores, problems = self.model.yes_scores(self._questions(pairs), progress)
            for each in problems:
                self._count(each)
            return scores
        values = np.zeros(len(pairs))
        lists = _by_query(pairs)
        orders = map_in_order(
            lambda rows: self._order(pairs, rows, self.model.complete), lists, workers=self.model.workers
        )
        for done, (rows, (order, by_answer)) in enumerate(zip(lists, orders, strict=True), 1):
            values[[rows[place] for place in order]] = -np.arange(len(order), dtype=np.float64)
            for kinds in by_answer:
                self._count(*kinds)
            if progress:
                progress(done, len(lists))
        return values

    def estimate(self, pairs: Candidates) -> str:
        """Return what is going to be requested, and its cost; empty if nothing, or if nothing can cost."""
        model = self.model
        if not isinstance(model, ChatModel):
            return ""
        missing: list[tuple[int, int]] = []  # characters in and tokens out

        def look_up(prompt: str, max_tokens: int | None) -> str:
            answer = model.cached(prompt, max_tokens)
            if answer is None:
                missing.append((len(prompt), max_tokens or 1))
            return answer or ""

        if self.settings.style == "pointwise":
            for question in self._questions(pairs):
                look_up(question, None)
        else:
            for rows in _by_query(pairs):
                self._order(pairs, rows, look_up)
        if not missing:
            return ""
        tokens = sum(characters for characters, _ in missing) // _CHARACTERS_PER_TOKEN
        answers = sum(most for _, most in missing)
        text = f"{len(missing):,} requests to {model.place}, about {tokens:,} tokens in and {answers:,} out"
        price_in, price_out = self.settings.price_in, self.settings.price_out
        if price_in is None and price_out is None:
            return f"{text}; no price is given (--set price_in=…, price_out=…)"
        return f"{text}: about ${((price_in or 0.0) * tokens + (price_out or 0.0) * answers) / 1e6:,.2f}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the scores should know."""
        result = []
        if self.malformed:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.repaired.items()))
            result.append(f"answers that were not as asked for, and repaired: {self.malformed:,} ({kinds})")
        if isinstance(self.model, ChatModel):
            result.append(f"answers requested: {self.model.requested:,}; cached: {self.model.from_cache:,}")
        return tuple(result)

    def describe(self) -> dict[str, Any]:
        """Return the model and how it is asked; neither key nor address, which may hold one."""
        settings = {name: value for name, value in asdict(self.settings).items() if "price" not in name}
        return {"name": self.name, "model": self.model.name, **settings}

    def _questions(self, pairs: Candidates) -> list[str]:
        return [
            QUESTION.format(
                passage=" ".join(pairs.documents[document].split()[: self.settings.words]),
                query=pairs.queries[query],
            )
            for query, document in zip(pairs.query, pairs.document, strict=True)
        ]

    def _order(
        self, pairs: Candidates, rows: Sequence[int], complete: Callable[[str, int], str]
    ) -> tuple[list[int], list[list[str]]]:
        """Return the order of a list, window by window from its end, and the problems of each answer."""
        order, problems = list(range(len(rows))), list[list[str]]()
        for first, last in self._windows(len(rows)):
            prompt = self._order_prompt(pairs, rows, order[first:last])
            places, found = read_order(complete(prompt, _TOKENS_PER_NUMBER * (last - first)), last - first)
            problems.append(found)
            order[first:last] = [order[first + place] for place in places]
        return order, problems

    def _order_prompt(self, pairs: Candidates, rows: Sequence[int], places: Sequence[int]) -> str:
        texts = [pairs.documents[pairs.document[rows[place]]] for place in places]
        passages = "\n".join(
            f"[{number}] {' '.join(text.split()[: self.settings.words])}"
            for number, text in enumerate(texts, 1)
        )
        query = pairs.queries[pairs.query[rows[0]]]
        return ORDER.format(count=len(texts), passages=passages, query=query)

    def _windows(self, count: int) -> list[tuple[int, int]]:
        """Return first and last place of each window, the lowest first."""
        if count < 2:
            return []
        last, result = count, []
        while True:
            first = max(0, last - self.settings.window)
            result.append((first, last))
            if first == 0:
                return result
            last -= self.settings.step

    def _count(self, *problems: str) -> None:
        """Count what was wrong with one answer, if anything."""
        self.malformed += bool(problems)
        self.repaired.update(problems)


def _by_query(pairs: Candidates) -> list[list[int]]:
    """Return the rows of each query; they follow one another."""
    edges = np.flatnonzero(np.diff(pairs.query)) + 1
    return [rows.tolist() for rows in np.split(np.arange(len(pairs)), edges)] if len(pairs) else []


def read_order(text: str, count: int) -> tuple[list[int], list[str]]:
    """Return the order in an answer, from 0, and what was wrong with it.

    Numbers in brackets are read, as was asked for; only where there are none, others. Numbers twice or out of
    range are dropped; those that are missing follow in the order they were shown in.
    """
    numbers = [int(each) - 1 for each in re.findall(r"\[(\d{1,6})\]", text) or re.findall(r"\d{1,6}", text)]
    places: list[int] = []
    problems: set[str] = set()
    for number in numbers:
        if not 0 <= number < count:
            problems.add("with a number that was not shown")
        elif number in places:
            problems.add("with a number twice")
        else:
            places.append(number)
    if not numbers:
        problems.add("without a number")
    elif len(places) < count:
        problems.add("with numbers missing")
    places += [place for place in range(count) if place not in places]
    return places, sorted(problems)
