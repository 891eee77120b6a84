"""A language model behind an OpenAI-compatible server as re-ranker.

``pointwise`` asks of each passage whether it answers the query, and takes the probability of *yes* where the
server tells it. ``listwise`` shows a window of passages and asks for their order, from the end of the list to
its beginning (Sun et al. 2023). Every answer is kept in the user's cache, so that a run can be repeated, and
an interrupted one goes on. An answer that is not in the form that was asked for is repaired as far as it can
be, and counted: ``notes`` says how many.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import xxhash

from evenrank.data.files import writing
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, Doubles
from evenrank.rankers.neural.language import question
from evenrank.rankers.remote.http import JSONClient, Refused
from evenrank.rankers.remote.requests import Limits, QueryFailed, Requests, Stopped, Unavailable
from evenrank.rankers.remote.secrets import Secrets, hidden

Style = Literal["pointwise", "listwise"]

_LIST = (
    "Here are {count} passages, each with a number.\n\n{passages}\n\nQuery: {query}\n\n"
    "Order the passages by how well they answer the query, the best first. Answer with the numbers only, in "
    "the form [2] > [1] > [3]."
)
_CHARACTERS_PER_TOKEN = 4  # of English, roughly
_PER_NUMBER = 6  # tokens of an answer for each passage of a list


class EndpointReranker:
    """A language model behind a server.

    Parameters
    ----------
    endpoint
        The address, such as ``http://localhost:8000/v1``; ``/chat/completions`` below it is asked. What
        follows a question mark stays behind the path.
    llm
        The name of the model there.
    key
        ``env:VARIABLE``, where the key is. It is sent to this server only, and never shown.
    style
        ``pointwise`` or ``listwise``.
    words
        Words of a passage that are shown.
    window, step
        Of a list: passages shown at a time, and by how many the next window lies above.
    price_in, price_out
        Dollars for a million tokens, for the estimate.
    timeout, retries, workers, rate
        Seconds for an answer, repetitions where that may help, questions at the same time, and the most
        per second.
    """

    SETTINGS: ClassVar[tuple[str, ...]] = (
        "llm", "key", "style", "words", "window", "step", "price_in", "price_out", "timeout", "retries",
        "workers", "rate", "backoff",
    )  # fmt: skip
    name = "llm"
    asks_first = True

    def __init__(
        self,
        endpoint: str,
        *,
        llm: str | None = None,
        key: str | None = None,
        style: Style = "pointwise",
        words: int = 150,
        window: int = 20,
        step: int = 10,
        price_in: float | None = None,
        price_out: float | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        workers: int = 4,
        rate: float | None = None,
        backoff: float = 0.5,
    ) -> None:
        if llm is None:
            raise InputError("name the model of the endpoint: --llm NAME")
        if style not in ("pointwise", "listwise"):
            raise InputError(f"style is {style!r}; choose one of: pointwise, listwise")
        if words < 1:
            raise InputError(f"words is {words}; it must be at least 1")
        for name, price in (("price_in", price_in), ("price_out", price_out)):
            if price is not None and not 0 <= price < math.inf:
                raise InputError(f"{name} is {price:g}; it must be from 0 on, in dollars")
        if not 1 <= step < window:
            raise InputError(f"window is {window} and step {step}; a step is at least 1 and below the window")
        if not endpoint.startswith(("http://", "https://")):
            raise InputError(f"{hidden(endpoint)}: an endpoint begins with http:// or https://")
        if key is not None and not re.fullmatch(r"env:\w+", key):
            raise InputError("--key: put the key into an environment variable and write --key env:VARIABLE")
        secrets = Secrets(endpoint)
        url, headers = secrets.split_login(endpoint)
        url = _chat(url)
        if key is not None:
            headers["Authorization"] = f"Bearer {secrets.resolve('--key', key)}"
        self.llm, self.style, self.words = llm, style, words
        self.window, self.step = window, step
        self.prices = (price_in, price_out)
        self.repaired: Counter[str] = Counter()
        self.malformed = 0
        self.asked = self.known = 0
        self._url, self._place = url, hidden(url)
        self._client = JSONClient(headers, timeout=timeout, secrets=secrets)
        self._has_key = key is not None
        self._secrets = secrets
        self._limits = Limits(timeout=timeout, retries=retries, workers=workers, rate=rate, backoff=backoff)
        self._lock = Lock()

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Probability of yes, or, for lists, minus the place in the order."""
        requests = Requests(self._limits)
        values = np.zeros(len(pairs))
        work = self._pieces(pairs)
        done = 0

        def one(rows: list[int]) -> tuple[list[int], list[float]]:
            query = pairs.queries[pairs.query[rows[0]]]
            texts = [pairs.documents[pairs.document[i]] for i in rows]
            if self.style == "pointwise":
                return rows, [self._probability(query, texts[0], requests)]
            order = self._ordered(query, texts, lambda text, count: self._asked_order(text, count, requests))
            return [rows[i] for i in order], [-float(place) for place in range(len(order))]

        threads = ThreadPoolExecutor(self._limits.workers)
        try:
            for rows, scores in threads.map(one, work):
                values[rows] = scores
                done += 1
                if progress:
                    progress(done, len(work))
        except (QueryFailed, Stopped) as error:
            kept = "; answers so far are kept, and the same command goes on with them"
            raise InputError(
                self._secrets.clean(f"{error}{kept if self.asked or self.known else ''}")
            ) from None
        finally:
            requests.stop()
            threads.shutdown(wait=False, cancel_futures=True)
        return values

    def estimate(self, pairs: Candidates) -> str:
        """What is going to be asked, and what it may cost, in words; empty if all answers are known."""
        work = self._pieces(pairs)
        requests, tokens, answers = 0, 0, 0
        if self.style == "pointwise":
            for rows in work:
                i = rows[0]
                text = question(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]], self.words)
                if _kept(self._answer_path(self._body(text, 1)), _says) is None:
                    requests, tokens = requests + 1, tokens + len(text) // _CHARACTERS_PER_TOKEN
                    answers += 1
        else:
            for rows in work:
                shown = sum(min(len(pairs.documents[pairs.document[i]]), self.words * 6) for i in rows) / len(
                    rows
                )
                windows = self._unknown_windows(pairs, rows)
                requests += windows
                tokens += int(windows * min(self.window, len(rows)) * shown / _CHARACTERS_PER_TOKEN)
                answers += windows * min(self.window, len(rows)) * _PER_NUMBER
        if not requests:
            return ""
        text = f"up to {requests:,} requests to {self._place}, about {tokens:,} tokens in and {answers:,} out"
        into, out = self.prices
        if into is None and out is None:
            return f"{text}; no price is given (--set price_in=…, price_out=…)"
        cost = ((into or 0.0) * tokens + (out or 0.0) * answers) / 1e6
        return f"{text}: about ${cost:,.2f}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What happened on the way."""
        result = [f"questions asked: {self.asked:,}; answers known from before: {self.known:,}"]
        if self.malformed:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.repaired.items()))
            result.append(f"answers that were not as asked for, and repaired: {self.malformed:,} ({kinds})")
        return tuple(result)

    def describe(self) -> dict[str, Any]:
        """The model and how it is asked; neither key nor address, which may hold one."""
        lists = {"window": self.window, "step": self.step} if self.style == "listwise" else {}
        return {"name": self.name, "model": self.llm, "style": self.style, "words": self.words, **lists}

    def _pieces(self, pairs: Candidates) -> list[list[int]]:
        """Rows that are asked about together: one by one, or those of a query."""
        if self.style == "pointwise":
            return [[row] for row in range(len(pairs))]
        edges = np.flatnonzero(np.diff(pairs.query)) + 1
        return [rows.tolist() for rows in np.split(np.arange(len(pairs)), edges)] if len(pairs) else []

    def _probability(self, query: str, passage: str, requests: Requests) -> float:
        answer = self._answer(question(query, passage, self.words), 1, requests, _says)
        odds = _from_logprobs(answer.get("logprobs"))
        if odds is not None:
            return odds
        said = _yes_or_no(answer["text"])
        if said is None:
            self._count("with neither yes nor no")
            return 0.5
        if answer["text"].strip().strip(".!").lower() not in ("yes", "no"):
            self._count("with more than one word")
        return 1.0 if said else 0.0

    def _unknown_windows(self, pairs: Candidates, rows: Sequence[int]) -> int:
        """How many windows of a list have to be asked about: those from the first without an answer on."""
        texts = [pairs.documents[pairs.document[i]] for i in rows]
        known = 0

        def kept(text: str, count: int) -> list[int]:
            nonlocal known
            answer = _kept(self._answer_path(self._body(text, _PER_NUMBER * count)), _orders)
            if answer is None:
                raise _Unknown
            known += 1
            return read_order(answer["text"], count)[0]

        with suppress(_Unknown):
            self._ordered(pairs.queries[pairs.query[rows[0]]], texts, kept)
        return len(self._windows(len(rows))) - known

    def _asked_order(self, text: str, count: int, requests: Requests) -> list[int]:
        """The order of a window, as the model says it."""
        answer = self._answer(text, _PER_NUMBER * count, requests, _orders)
        places, problems = read_order(answer["text"], count)
        self._count(*problems)
        return places

    def _ordered(
        self, query: str, texts: Sequence[str], order_of: Callable[[str, int], list[int]]
    ) -> list[int]:
        """The order of a list: windows from its end to its beginning, each asked about with `order_of`."""
        order = list(range(len(texts)))
        for first, last in self._windows(len(texts)):
            shown = [texts[i] for i in order[first:last]]
            passages = "\n".join(
                f"[{number}] {' '.join(text.split()[: self.words])}" for number, text in enumerate(shown, 1)
            )
            requested = _LIST.format(count=len(shown), passages=passages, query=query)
            order[first:last] = [order[first + place] for place in order_of(requested, len(shown))]
        return order

    def _windows(self, count: int) -> list[tuple[int, int]]:
        """First and last place of each window, the lowest first."""
        if count < 2:
            return []
        last, result = count, []
        while True:
            first = max(0, last - self.window)
            result.append((first, last))
            if first == 0:
                return result
            last -= self.step

    def _body(self, text: str, tokens: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.llm,
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": max(tokens, 1),
        }
        if self.style == "pointwise":
            body |= {"logprobs": True, "top_logprobs": 20}
        return body

    def _answer_path(self, body: dict[str, Any]) -> Path:
        from evenrank.text.cache import root

        key = json.dumps([self._url, body], sort_keys=True)
        name = xxhash.xxh3_128_hexdigest(key.encode())
        return root() / "answers" / name[:2] / f"{name}.json"

    def _answer(self, text: str, tokens: int, requests: Requests, usable: Usable) -> dict[str, Any]:
        """The answer in the cache, or of the server; one of no use is not kept, but asked for anew."""
        body = self._body(text, tokens)
        path = self._answer_path(body)
        known = _kept(path, usable)
        if known is not None:
            with self._lock:
                self.known += 1
            return known
        answer = _read(requests.send(lambda: self._fetched(body)), self._place)
        with self._lock:
            self.asked += 1
        if not usable(answer):
            return answer
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path) as file:
            file.write(json.dumps(self._secrets.clean(answer)).encode())
        return answer

    def _fetched(self, body: dict[str, Any]) -> Any:
        """What the server answers; an error of its own may pass."""
        try:
            return self._client.fetch(self._url, body, place=self._place)
        except Refused as refusal:
            said = f"{refusal}{_message(refusal.body)}"
            if refusal.status == 401:
                wrong = (
                    "does not take the key of --key" if self._has_key else "wants a key: --key env:VARIABLE"
                )
                said = f"{self._place}: the endpoint {wrong} (401){_message(refusal.body)}"
            if refusal.status >= 500:
                raise Unavailable(said) from None
            raise InputError(self._secrets.clean(said)) from None  # the same command would be refused again

    def _count(self, *problems: str) -> None:
        """What was wrong with one answer; nothing, if nothing was."""
        with self._lock:
            self.malformed += bool(problems)
            self.repaired.update(problems)


class _Unknown(Exception):  # noqa: N818 - not an error: the answer is not there yet
    """There is no answer in the cache."""


Usable = Callable[[dict[str, Any]], bool]


def _says(answer: dict[str, Any]) -> bool:
    """Whether an answer has a yes or no in it."""
    return _from_logprobs(answer.get("logprobs")) is not None or _yes_or_no(answer["text"]) is not None


def _orders(answer: dict[str, Any]) -> bool:
    """Whether an answer names a passage."""
    return re.search(r"\d", answer["text"]) is not None


def _kept(path: Path, usable: Usable) -> dict[str, Any] | None:
    """The answer in the cache; None if there is none of use."""
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(known, dict) and isinstance(known.get("text"), str)
    return known if whole and usable(known) else None


def _chat(url: str) -> str:
    """The address of the chat below that of a server, unless it is named already."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return urlunsplit(parts._replace(path=path, fragment=""))


def _read(content: Any, place: str) -> dict[str, Any]:
    """Text and probabilities of an answer; one without a text is an empty text."""
    choice: Any = None
    if isinstance(content, dict) and isinstance(content.get("choices"), list) and content["choices"]:
        choice = content["choices"][0]
    if not isinstance(choice, dict):
        raise QueryFailed(f"{place}: the answer has no `choices`; is the endpoint OpenAI-compatible?")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    result: dict[str, Any] = {"text": text if isinstance(text, str) else ""}
    if isinstance(choice.get("logprobs"), dict):
        result["logprobs"] = choice["logprobs"]
    return result


def _message(body: Any) -> str:
    """What the server says about an error, as one short line."""
    error = body.get("error") if isinstance(body, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return f": {' '.join(said.split())[:200]}" if isinstance(said, str) and said else ""


def _from_logprobs(logprobs: Any) -> float | None:
    """P(yes) / (P(yes) + P(no)) of the first token, if the server tells; None if it does not."""
    try:
        listed = logprobs["content"][0]["top_logprobs"]
        shares = {"yes": 0.0, "no": 0.0}
        for each in listed:
            word = str(each["token"]).strip().lower()
            if word in shares:
                share = float(each["logprob"])
                if math.isnan(share):
                    return None
                shares[word] += math.exp(min(0.0, share))
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    total = shares["yes"] + shares["no"]
    return shares["yes"] / total if total > 0 else None


def _yes_or_no(text: str) -> bool | None:
    """The first of the two words in an answer."""
    result = re.search(r"\b(yes|no)\b", text.lower())
    return None if result is None else result[1] == "yes"


def read_order(text: str, count: int) -> tuple[list[int], list[str]]:
    """The order in an answer, from 0, and what was wrong with it.

    Numbers in brackets are read, as was asked for; only where there are none, others. Numbers twice or out of
    range are dropped; those that are missing follow in the order they were shown in.
    """
    result = re.findall(r"\[(\d{1,6})\]", text) or re.findall(r"\d{1,6}", text)
    numbers = [int(each) - 1 for each in result]
    places: list[int] = []
    problems: list[str] = []
    for number in numbers:
        if not 0 <= number < count:
            problems.append("with a number that was not shown")
        elif number in places:
            problems.append("with a number twice")
        else:
            places.append(number)
    if not numbers:
        problems.append("without a number")
    elif len(places) < count:
        problems.append("with numbers missing")
    places += [place for place in range(count) if place not in places]
    return places, sorted(set(problems))
