"""A language model that writes the query a document answers.

Any causal or sequence-to-sequence checkpoint of transformers will do. A causal model is shown a few real
pairs of document and query first; what it makes of them is computed once and shared by all documents. Tokens
are drawn from the ten likeliest at temperature 0.7, from random numbers that belong to the document alone.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.language_models import SMOLLM2, load_language_model, smollm2

Example = tuple[str, str]
"""A document and a query that it answers."""

PROMPT = "Passage: {document}\nQuestion:"
ASKED = "asked.json"
"""In the folder of a model that was trained for it: how it is asked."""


class LanguageWriter:
    """A model of transformers that writes queries.

    Parameters
    ----------
    checkpoint
        Name or folder; SmolLM2-135M-Instruct if not given. A folder of
        :func:`evenrank.queries.generation.tuning.tune_generator` needs no examples.
    examples
        Pairs of document and query that a causal model is shown.
    batch
        Documents at a time.
    words, longest
        Words of a document that are read, from its beginning, and tokens of a query at most.
    top, temperature
        How a token is drawn: among so many of the likeliest, their logits divided by the temperature.
    """

    prefix = "gen"

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        examples: Sequence[Example] = (),
        batch: int = 16,
        words: int = 120,
        longest: int = 32,
        top: int = 10,
        temperature: float = 0.7,
    ) -> None:
        for name, value in (("batch", batch), ("words", words), ("longest", longest), ("top", top)):
            check_whole(name, value)
        if not temperature > 0:
            raise InputError(f"temperature is {temperature!r}; it must be above 0")
        self.label = SMOLLM2 if checkpoint is None else Path(os.fspath(checkpoint)).name
        place = smollm2() if checkpoint is None else checkpoint
        self.batch, self.words, self.longest, self.top, self.temperature = (
            batch, words, longest, top, temperature,
        )  # fmt: skip
        requested = _asked(place)
        self.prompt = str(requested.get("prompt", PROMPT))
        self._tokenizer, self._model = load_language_model(place, named=checkpoint)
        self.seq2seq = bool(self._model.config.is_encoder_decoder)
        if self.seq2seq and not requested:
            self.prompt = "{document}"
        self.examples = () if self.seq2seq or requested else tuple(examples)
        self._fingerprint = weights_fingerprint(place)
        self._ends = self._ending_tokens()
        self._start: Any = None
        self._room = self._left_for_documents()
        self._asked_about("")  # says at once if there is no room

    def describe(self) -> dict[str, Any]:
        """The model and how it is asked; all that decides what it writes but the documents and the seed."""
        return {
            "writer": "language model",
            "model": self.label,
            "fingerprint": self._fingerprint,
            "prompt": self.prompt,
            "examples": [list(pair) for pair in self.examples],
            "words": self.words,
            "longest": self.longest,
            "top": self.top,
            "temperature": self.temperature,
            "batch": self.batch,
        }

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
        """So many queries for each document, in its order.

        Documents are taken by their length, so that little is padded. Another batch size changes the last
        bits of the probabilities and nothing else.
        """
        torch = import_module("torch")
        requested = [self._asked_about(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: (len(requested[row]), row))
        items: list[list[str]] = [[] for _ in texts]
        with torch.inference_mode():
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                random = [_random(seed, doc_ids[row], number) for row in rows for number in range(n)]
                begin = self._encoded if self.seq2seq else self._prompted
                drawn = self._drawn(*begin([requested[row] for row in rows], n), random)
                for place, tokens in enumerate(drawn):
                    items[rows[place // n]].append(self._said(tokens))
                if progress:
                    progress(min(start + self.batch, len(order)), len(order))
        return items

    def _question(self, text: str) -> str:
        return self.prompt.replace("{document}", " ".join(text.split()[: self.words]))

    def _asked_about(self, text: str) -> list[int]:
        return fitting(
            text.split()[: self.words], self._room, lambda some: self._tokens(self._question(some))
        )

    def _left_for_documents(self) -> int | None:
        """Tokens of a question for which the model has places; None where it does not say how many."""
        places = positions(self._model)
        if places is not None and self.longest > places:
            raise InputError(f"longest is {self.longest}; this model has places for {places} tokens")
        if places is None or self.seq2seq:
            return places
        return places - self.longest - len(self._tokens(self._shown()))

    def _shown(self) -> str:
        """The pairs that a causal model is shown before each document."""
        return "".join(f"{self._question(text)} {query}\n\n" for text, query in self.examples)

    def _tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=self.seq2seq).input_ids)

    def _said(self, tokens: list[int]) -> str:
        return " ".join(self._tokenizer.decode(tokens, skip_special_tokens=True).split())

    def _ending_tokens(self) -> frozenset[int]:
        """Tokens after which a query is over: the end of the text, for a causal model also of the line."""
        ends = self._model.generation_config.eos_token_id
        result = {self._tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        if not self.seq2seq:
            whole = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
            result |= {token for token, text in enumerate(whole) if "\n" in text}
        return frozenset(int(token) for token in result)

    def _prompted(self, requested: list[list[int]], n: int) -> tuple[Any, Any, Any, Any]:
        """Where a causal model stands at the end of the prompts: logits, its memory, mask, positions."""
        torch = import_module("torch")
        if self._start is None:
            tokens = self._tokens(self._shown())
            self._start = (0, None)
            if tokens:
                read = self._model(torch.tensor([tokens]), use_cache=True, logits_to_keep=1)
                self._start = (len(tokens), read.past_key_values)
        before, memory = self._start
        memory = copy.deepcopy(memory)
        if memory is not None:
            memory.batch_repeat_interleave(len(requested))
        width = max(map(len, requested))
        tokens = torch.zeros((len(requested), width), dtype=torch.long)
        mask = torch.ones((len(requested), before + width), dtype=torch.long)
        for row, each in enumerate(requested):  # padded between the examples and the document
            tokens[row, width - len(each) :] = torch.tensor(each)
            mask[row, before : before + width - len(each)] = 0
        places = (mask.cumsum(1) - 1).clamp(min=0)
        read = self._model(
            tokens,
            attention_mask=mask,
            position_ids=places[:, before:],
            past_key_values=memory,
            use_cache=True,
            logits_to_keep=1,
        )
        memory = read.past_key_values
        if n > 1:
            memory.batch_repeat_interleave(n)
        many = [each.repeat_interleave(n, 0) for each in (read.logits[:, -1], mask, places[:, -1:])]
        return many[0], memory, many[1], many[2]

    def _encoded(self, requested: list[list[int]], n: int) -> tuple[Any, Any, Any, Any]:
        """Where a sequence-to-sequence model stands before the first token of the queries."""
        torch = import_module("torch")
        width = max(map(len, requested))
        tokens = torch.zeros((len(requested), width), dtype=torch.long)
        mask = torch.zeros((len(requested), width), dtype=torch.long)
        for row, each in enumerate(requested):
            tokens[row, : len(each)] = torch.tensor(each)
            mask[row, : len(each)] = 1
        encoder = self._model.get_encoder()
        states = encoder(input_ids=tokens, attention_mask=mask).last_hidden_state.repeat_interleave(n, 0)
        mask = mask.repeat_interleave(n, 0)
        first = torch.full((len(states), 1), self._model.config.decoder_start_token_id)
        read = self._model(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=first, use_cache=True
        )
        return read.logits[:, -1], read.past_key_values, mask, states

    def _drawn(
        self, logits: Any, memory: Any, mask: Any, beside: Any, random: list[np.random.Generator]
    ) -> list[list[int]]:
        """The tokens of each query, drawn one by one; rows that are finished leave the batch."""
        torch = import_module("torch")
        drawn: list[list[int]] = [[] for _ in random]
        live = list(range(len(random)))
        for step in range(self.longest):
            likeliest = logits.float().topk(min(self.top, logits.shape[-1]))
            values, tokens = likeliest.values.double().numpy(), likeliest.indices.numpy()
            kept, following = [], []
            for place, row in enumerate(live):
                token = draw(values[place], tokens[place], self.temperature, random[row].random())
                if token not in self._ends:
                    drawn[row].append(token)
                    kept.append(place)
                    following.append(token)
            if not kept or step == self.longest - 1:
                break
            if len(kept) < len(live):
                chosen = torch.tensor(kept)
                memory.batch_select_indices(chosen)
                mask, beside = mask[chosen], beside[chosen]
                live = [live[place] for place in kept]
            given = torch.tensor(following)[:, None]
            if self.seq2seq:
                read = self._model(
                    encoder_outputs=(beside,),
                    attention_mask=mask,
                    decoder_input_ids=given,
                    past_key_values=memory,
                    use_cache=True,
                )
            else:
                mask = torch.cat([mask, mask.new_ones(len(live), 1)], 1)
                beside = beside + 1
                read = self._model(
                    given, attention_mask=mask, position_ids=beside, past_key_values=memory, use_cache=True
                )
            logits = read.logits[:, -1]
        return drawn


def draw(values: npt.NDArray[np.float64], tokens: npt.NDArray[Any], temperature: float, chance: float) -> int:
    """One of the tokens, each as likely as the softmax of its logit over the temperature says.

    `chance` in [0, 1) decides. The tokens lie side by side in the order of their numbers, not of their
    logits: two that are nearly as likely may change places without moving the others.
    """
    order = np.argsort(tokens)
    weights = np.exp((values[order] - values.max()) / temperature)
    edges = np.cumsum(weights)
    place = int(np.searchsorted(edges, chance * edges[-1], side="right"))
    return int(tokens[order[min(place, len(order) - 1)]])


def _random(seed: int, doc_id: str, number: int) -> np.random.Generator:
    """The random numbers of one query of one document, whatever else is written."""
    own = xxhash.xxh3_64_intdigest(doc_id.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed, own, number])


def _asked(place: str | os.PathLike[str]) -> dict[str, Any]:
    """How a model that was trained here wants to be asked; nothing of any other."""
    path = Path(place) / ASKED
    if not path.is_file():
        return {}
    try:
        result = json.loads(path.read_bytes())
        if "{document}" in result["prompt"]:
            return dict(result)
    except (ValueError, TypeError, KeyError, OSError):
        pass
    raise InputError("is not what generate-train wrote", path=path)


def was_trained(model: str | os.PathLike[str] | None) -> bool:
    """Whether this is a folder of `tune_generator`, which is shown no examples."""
    return model is not None and bool(_asked(model))


def positions(model: Any) -> int | None:
    """How many tokens a model has places for; None where it does not say."""
    result = getattr(model.config, "max_position_embeddings", None)
    return int(result) if result else None


def fitting(words: Sequence[str], room: int | None, tokens_of: Callable[[str], list[int]]) -> list[int]:
    """The tokens of a question about a document, of whose words as many are read as there is room for."""
    tokens = tokens_of(" ".join(words))
    while room is not None and len(tokens) > room:
        if not words:
            raise InputError(
                "the model has places for so few tokens that no document can be read; show it fewer examples "
                "(shots), or choose another model"
            )
        words = words[: min(len(words) - 1, len(words) * max(room, 0) // len(tokens))]
        tokens = tokens_of(" ".join(words))
    return tokens


def weights_fingerprint(place: str | os.PathLike[str]) -> str | None:
    """What the weights are, if they lie in a folder; a name on the hub says no more than itself."""
    from evenrank.data.files import fingerprint

    if not Path(place).is_dir():
        return None
    return "-".join(fingerprint(path)[:16] for path in _weights(Path(place)))


def _weights(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*.safetensors"))
