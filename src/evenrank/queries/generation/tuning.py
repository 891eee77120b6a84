"""`tune_generator`: a language model learns from real pairs which query a document answers.

The loss is the negative log-likelihood of the query after its document, as in the thesis of A. Bigdeli,
Section 3.2; the loop is the Trainer of transformers.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

import evenrank
from evenrank.data.docs import open_docs
from evenrank.data.files import make_folder, writing, writing_folder
from evenrank.data.read import read_qrels, read_queries
from evenrank.errors import InputError, check_whole
from evenrank.queries.generation.language import (
    ASKED,
    PROMPT,
    fitting,
    positions,
    weights_fingerprint,
)
from evenrank.rankers.base import Progress
from evenrank.rankers.language_models import SMOLLM2, load_language_model, smollm2
from evenrank.training.checkpoint import DivergedError, last_checkpoint, open_checkpoints
from evenrank.training.transformers import quiet, require_trainers

_IGNORED = -100  # what the loss of transformers skips


def tune_generator(
    docs: Any,
    queries: Any,
    qrels: Any,
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    most: int | None = None,
    epochs: int = 1,
    batch: int = 8,
    rate: float = 1e-4,
    layers: int | None = None,
    words: int = 120,
    longest: int = 32,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
    progress: Progress | None = None,
) -> Path:
    """Train a model to write the query that a document answers; for ``model`` of :func:`evenrank.generate`.

    Parameters
    ----------
    docs, queries, qrels
        The collection, and real queries with their judgments: each relevant document makes a pair.
    output
        The folder to be written. What an interrupted training has left beside it is gone on with, if all that
        decides it is the same.
    model
        What to begin with: a causal or sequence-to-sequence checkpoint; SmolLM2-135M-Instruct if not given.
    most
        Pairs at most, drawn by the seed.
    epochs, batch, rate
        Passes over the pairs, pairs in a step, and the highest learning rate, from which it falls to 0.
    layers
        Only the last so many layers of a causal model learn, which takes less time; all if not given.
    words, longest
        Words of a document that are read, and tokens of a query.
    """
    require_trainers()
    target = Path(output)
    make_folder(Path(target).parent)
    if target.exists() and not (target / ASKED).is_file():
        raise InputError("exists and is no generator; choose another name", path=output)
    for name, value in (("epochs", epochs), ("batch", batch), ("words", words), ("longest", longest)):
        check_whole(name, value)
    for name, maybe in (("most", most), ("layers", layers)):
        if maybe is not None:
            check_whole(name, maybe)
    check_whole("seed", seed, least=0, most=2**32 - 1)
    if not 0 < rate < math.inf:
        raise InputError(f"rate is {rate!r}; it must be a finite number above 0")
    pairs = _pairs(docs, queries, qrels, most, seed)
    label = SMOLLM2 if model is None else Path(os.fspath(model)).name
    place = smollm2() if model is None else model
    facts = {
        "evenrank": evenrank.__version__,
        "model": label,
        "fingerprint": weights_fingerprint(place),
        "pairs": len(pairs),
        "recipe": {"epochs": epochs, "batch": batch, "rate": rate, "layers": layers, "seed": seed},
        "words": words,
        "longest": longest,
        "data": _digest(pairs),
    }
    checkpoint = target.with_name(f".{target.name}.training")
    transformers, torch = import_module("transformers"), import_module("torch")
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        tokenizer, opened = load_language_model(place, named=model)
        if layers is not None:
            _freeze(opened, layers)
        tokens = [_tokens(tokenizer, opened, text.split()[:words], query, longest) for text, query in pairs]
        last = last_checkpoint(checkpoint) if open_checkpoints(checkpoint, facts) else None
        steps = -(-len(tokens) // batch) * epochs
        arguments = transformers.TrainingArguments(
            output_dir=str(checkpoint),
            num_train_epochs=epochs,
            per_device_train_batch_size=batch,
            learning_rate=rate,
            warmup_steps=max(1, steps // 20),
            save_strategy="steps",
            save_steps=max(1, min(100, steps // 4)),
            save_total_limit=1,
            logging_steps=max(1, steps // 10),
            logging_nan_inf_filter=False,
            seed=seed,
            data_seed=seed,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        trainer = transformers.Trainer(
            model=opened.train(),
            args=arguments,
            train_dataset=import_module("datasets").Dataset.from_list(tokens),
            data_collator=lambda rows: _padded(rows, tokenizer.pad_token_id or 0),
            callbacks=[_listener(transformers, say, progress)],
        )
        for default in (transformers.PrinterCallback, transformers.ProgressCallback):
            trainer.remove_callback(default)
        try:
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
            if not all(bool(each.isfinite().all()) for each in opened.parameters()):
                raise DivergedError
        except DivergedError:  # what was learned is of no use, nor is going on from it
            shutil.rmtree(checkpoint, ignore_errors=True)
            raise
        _save(opened.eval(), tokenizer, target, {"prompt": PROMPT, **facts})
    shutil.rmtree(checkpoint, ignore_errors=True)
    return target


def _pairs(docs: Any, queries: Any, qrels: Any, most: int | None, seed: int) -> list[tuple[str, str]]:
    """Relevant documents with their queries, in an order that the seed decides."""
    from evenrank.queries.generation.generating import own_number

    requested = dict(read_queries(queries).iter_rows())
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0, pl.col("query_id").is_in(list(requested)))
    order = sorted(judged.select("query_id", "doc_id").iter_rows(), key=lambda pair: own_number(seed, *pair))
    texts = open_docs(docs).texts(doc_id for _, doc_id in order)
    result = [(texts[doc_id], requested[query]) for query, doc_id in order if doc_id in texts][:most]
    if not result:
        raise InputError("no query has a relevant document in the collection; do their ids agree?")
    return result


def _digest(pairs: Sequence[tuple[str, str]]) -> str:
    import xxhash

    return xxhash.xxh3_128_hexdigest("\0".join(map("\1".join, pairs)).encode("utf-8", "surrogatepass"))


def _tokens(tokenizer: Any, model: Any, words: Sequence[str], query: str, longest: int) -> dict[str, Any]:
    """One example: what is read, and what is to be written; as much of it as the model has places for."""
    seq2seq, room = bool(model.config.is_encoder_decoder), positions(model)

    def asked(document: str) -> list[int]:
        text = PROMPT.replace("{document}", document)
        return list(tokenizer(text, add_special_tokens=seq2seq).input_ids)

    if seq2seq:
        written = list(tokenizer(text_target=query).input_ids)[
            : longest if room is None else min(longest, room)
        ]
        return {"input_ids": fitting(words, room, asked), "labels": written}
    written = list(tokenizer(f" {query}", add_special_tokens=False).input_ids)[: longest - 1]
    written.append(tokenizer.eos_token_id)
    read = fitting(words, None if room is None else room - len(written), asked)
    both = read + written
    return {"input_ids": both, "labels": [_IGNORED] * len(read) + written}


def _padded(rows: list[dict[str, Any]], filler: int) -> dict[str, Any]:
    torch = import_module("torch")
    result = {}
    for name, fill in (("input_ids", filler), ("labels", _IGNORED)):
        width = max(len(row[name]) for row in rows)
        result[name] = torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])
    width = result["input_ids"].shape[1]
    sizes = [len(row["input_ids"]) for row in rows]
    result["attention_mask"] = torch.tensor([[1] * size + [0] * (width - size) for size in sizes])
    return result


def _freeze(model: Any, layers: int) -> None:
    """Let only the last layers of a causal model learn, and what stands behind them."""
    inner: Any = getattr(model, "model", None)
    held = getattr(inner, "layers", None)
    if held is None or model.config.is_encoder_decoder:
        raise InputError("this model does not say which layers it has; leave out layers")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for layer in list(held)[-layers:]:
        for parameter in layer.parameters():
            parameter.requires_grad_(True)
    for parameter in inner.norm.parameters():
        parameter.requires_grad_(True)


def _listener(transformers: Any, say: Callable[[str], None], progress: Progress | None) -> Any:
    class Listener(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if progress:
                progress(state.global_step, state.max_steps)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            if logs and "loss" in logs:
                if not math.isfinite(logs["loss"]):
                    raise DivergedError
                say(f"step {state.global_step} of {state.max_steps}: loss {float(logs['loss']):.3f}")

    return Listener()


def _save(model: Any, tokenizer: Any, target: Path, requested: dict[str, Any]) -> None:
    """The folder appears whole."""
    with writing_folder(target) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        with writing(part / ASKED) as file:
            file.write((json.dumps(requested, indent=1) + "\n").encode())
