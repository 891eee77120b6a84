"""Cross-encoders and bi-encoders, trained by the trainers of sentence-transformers.

What is ours is the data (groups of one relevant document and several negatives), the batches, and the
objective where the losses of the library do not suffice.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenrank.data.checkpoint import open_checkpoints
from evenrank.errors import InputError, check_whole
from evenrank.rankers.neural.candidates import Candidates
from evenrank.rankers.neural.transformers import library, new_cross_encoder, quiet
from evenrank.training.dataset import Examples
from evenrank.training.fitting import DivergedError, Fitted, TrainConfig, TrainRun, checks_since_best
from evenrank.training.losses import Objective

_DEV_RR = "eval_dev_mrr@10"
"""What the library calls RR@10 on the dev queries."""
_LOOKAHEAD = 1000
"""Rows that are looked at for one batch; with few queries many do not fit together."""
_SCALE = 20.0
"""What a cosine is multiplied by before it is a score, as in the library's own losses."""
_WARM_UP = 0.1
"""The share of steps in which the learning rate rises; then it falls to 0."""
_BATCH = 64


@dataclass(frozen=True, kw_only=True)
class TransformerSettings:
    """Settings of a cross-encoder or bi-encoder.

    Attributes
    ----------
    checkpoint
        Name or folder of what to begin with; all-MiniLM-L6-v2 if not given. A cross-encoder made of an
        encoder takes the mean of its vectors and one line to a score, which learns better from few examples
        than the vector of the first token.
    max_length
        Tokens of query and document together, or, for a bi-encoder, of each text.
    """

    checkpoint: str | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        check_whole("max_length", self.max_length, least=8, most=8192)


def fit_transformer(run: TrainRun) -> Fitted:
    """Train a transformer, and score the dev queries with it."""
    from evenrank.rankers.encoder import Encoder
    from evenrank.rankers.neural.rerankers import BiEncoderReranker, CrossEncoderReranker
    from evenrank.rankers.neural.saved import ENCODER

    library("accelerate", "datasets")
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(run.seed)
        model, source = _new_model(run)
        history = _train(run, model)
    dev = run.examples.pairs.take(run.examples.dev_rows(run.config.dev_depth))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, create_model_card=False)
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        files = {f"{ENCODER}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}
        if run.kind == "cross-encoder":
            scores = CrossEncoderReranker(model).score(dev)
        else:
            scores = BiEncoderReranker(Encoder(folder, max_length=run.settings.max_length)).score(dev)
    vector = partial(_vectors, run.kind, model, run.examples.pairs)
    return Fitted(scores, files, history, {"model": source.describe()}, vector)


def _new_model(run: TrainRun) -> tuple[Any, Any]:
    """Return the model to begin with, and where it was found."""
    from evenrank.vectors.encoders import find_model, open_model

    if run.kind == "cross-encoder":
        model, source = new_cross_encoder(run.settings.checkpoint, max_length=run.settings.max_length)
    else:
        source = find_model(run.settings.checkpoint)
        model = open_model(source)
        model.max_seq_length = run.settings.max_length
        model.model_card_data.set_widget_examples = lambda dataset: None  # for the library's card; it is slow
    return model, source


def _train(run: TrainRun, model: Any) -> list[dict[str, float]]:
    """Train in place; return RR@10 at each check."""
    kind, config, examples, checkpoint = run.kind, run.config, run.examples, run.checkpoint
    # A plain bi-encoder also takes the documents of other groups of the step as negatives.
    is_plain = config.loss == "softmax" and not config.adversary and not config.consistency
    in_batch = kind == "bi-encoder" and is_plain
    rows = drawn_groups(examples, config, run.seed)
    batches = separate_batches(examples, rows, config.batch, run.seed) if in_batch else []
    steps = len(batches) or -(-len(rows) // config.batch)
    every = max(1, steps // config.checks)
    package, prefix = {
        "cross-encoder": ("cross_encoder", "CrossEncoder"),
        "bi-encoder": ("sentence_transformer", "SentenceTransformer"),
    }[kind]
    sentence_transformers = import_module(f"sentence_transformers.{package}")
    arguments = getattr(sentence_transformers, f"{prefix}TrainingArguments")(
        output_dir=str(checkpoint.absolute()),  # it is kept as the place of the best checkpoint
        num_train_epochs=1,
        per_device_train_batch_size=config.batch,
        learning_rate=config.rate,
        warmup_steps=max(1, round(_WARM_UP * steps)),
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model=_DEV_RR,
        greater_is_better=True,
        logging_steps=every,
        logging_nan_inf_filter=False,  # a loss that is no number has to be seen
        seed=run.seed,
        data_seed=run.seed,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **({"batch_sampler": partial(_fixed_batches, batches)} if in_batch else {}),
    )
    transformers = import_module("transformers")
    trainer = getattr(sentence_transformers, f"{prefix}Trainer")(
        model=model,
        args=arguments,
        train_dataset=import_module("datasets").Dataset.from_dict(_columns(kind, examples, rows, in_batch)),
        loss=_in_batch_loss(model) if in_batch else _group_loss(kind, model, config, examples),
        evaluator=_evaluator(kind, examples, config),
        callbacks=[_listener(transformers, run)],
    )
    for default in (transformers.PrinterCallback, transformers.ProgressCallback):
        trainer.remove_callback(default)
    # The trainer keeps the weights of the model, not those of an adversary: such training begins anew.
    can_resume = open_checkpoints(checkpoint, run.identity) and not config.adversary
    last = last_checkpoint(checkpoint, config.patience) if can_resume else None
    if last is not None:
        run.log(f"resuming after step {last.name.rpartition('-')[2]} of {steps}")
    try:
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    except ValueError as error:
        if "Input contains" in str(error):  # scikit-learn's word for NaN and infinity
            raise DivergedError from error
        raise
    return [
        {"step": float(each["step"]), "dev RR@10": float(each[_DEV_RR])} for each in _checks(trainer.state)
    ]


def drawn_groups(examples: Examples, config: TrainConfig, seed: int) -> Any:
    """Return the rows of the groups, the relevant document first, for all epochs."""
    positives, negatives = examples.groups()
    rows = []
    for epoch in range(config.epochs):
        random = np.random.default_rng([seed, 4, epoch])
        chosen = random.permutation(len(positives))[: config.most_queries]
        for place in chosen.tolist():
            pool = negatives[place]
            few = len(pool) < config.negatives
            rows.append([positives[place], *random.choice(pool, config.negatives, replace=few)])
    return np.array(rows, np.int64)


def separate_batches(examples: Examples, rows: Any, size: int, seed: int) -> list[list[int]]:
    """Return batches of rows, drawn by the seed, in which no document is relevant to another row's query.

    A batch without enough rows that fit together is smaller. (The sampler of the library that avoids
    duplicates would let relevant documents of a query be its negatives, where it has several.)
    """
    pairs = examples.pairs
    relevant: dict[str, set[str]] = {}
    for row in np.flatnonzero(examples.relevant).tolist():
        query = pairs.queries[pairs.query[row]]
        relevant.setdefault(query, set()).add(pairs.documents[pairs.document[row]])
    queries = [pairs.queries[pairs.query[row[0]]] for row in rows]
    documents = [{pairs.documents[pairs.document[each]] for each in row} for row in rows]
    waiting = np.random.default_rng([seed, 5]).permutation(len(rows)).tolist()
    batches = []
    while waiting:
        batch: list[int] = []
        later: list[int] = []
        for looked, row in enumerate(waiting):
            fits = all(
                queries[row] != queries[other]
                and relevant[queries[row]].isdisjoint(documents[other])
                and relevant[queries[other]].isdisjoint(documents[row])
                for other in batch
            )
            (batch if fits else later).append(row)
            if len(batch) == size or looked == _LOOKAHEAD:
                later += waiting[looked + 1 :]
                break
        batches.append(batch)
        waiting = later
    return batches


def _fixed_batches(batches: list[list[int]], dataset: Any, **_: Any) -> Any:
    """Return a sampler of sentence-transformers that gives these batches."""
    base = import_module("sentence_transformers.base.sampler").DefaultBatchSampler

    class FixedBatches(base):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[list[int]]:
            return iter(batches)

        def __len__(self) -> int:
            return len(batches)

    return FixedBatches(dataset, batch_size=max(map(len, batches)), drop_last=False)


def _columns(kind: str, examples: Examples, rows: Any, in_batch: bool) -> dict[str, list[Any]]:
    """Return the groups as the losses want them: texts, or for our objective rows of pairs as labels."""
    pairs = examples.pairs
    columns: dict[str, list[Any]] = {"query": [pairs.queries[pairs.query[row[0]]] for row in rows]}
    if not in_batch:
        return {**columns, "labels" if kind == "cross-encoder" else "label": rows.tolist()}
    for place, column in enumerate(rows.T):
        name = f"negative_{place}" if place else "positive"
        columns[name] = [pairs.documents[pairs.document[row]] for row in column]
    return columns


def _in_batch_loss(model: Any) -> Any:
    """Return the library's cross-entropy over all documents of the step."""
    losses = import_module("sentence_transformers.sentence_transformer.losses")
    return losses.MultipleNegativesRankingLoss(model)


def _group_loss(kind: str, model: Any, config: TrainConfig, examples: Examples) -> Any:
    """Return our objective for a trainer of the library; its labels are the rows of each group."""

    class GroupLoss(Objective):
        def forward(self, inputs: Any, labels: Any) -> Any:  # type: ignore[override]
            return super().forward(np.stack([np.asarray(each.cpu(), np.int64) for each in labels]))

    def read(rows: Any, is_mirrored: bool) -> tuple[Any, Any]:
        pairs = examples.mirrored if is_mirrored and examples.mirrored is not None else examples.pairs
        return read_pairs(kind, pairs, model, rows)

    return GroupLoss(model, read, config, examples)


def read_pairs(kind: str, pairs: Candidates, model: Any, rows: Any) -> tuple[Any, Any]:
    """Return scores of pairs, and the vectors that they are made of: of a bi-encoder both, side by side."""

    def outputs(texts: list[Any]) -> Any:
        features = model.preprocess(texts)
        return model(
            {name: each.to(model.device) if hasattr(each, "to") else each for name, each in features.items()}
        )

    if kind == "cross-encoder":
        out = outputs([(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]]) for i in rows])
        return out["scores"].view(-1).float(), out.get("sentence_embedding")
    queries, query = np.unique(pairs.query[rows], return_inverse=True)
    documents, document = np.unique(pairs.document[rows], return_inverse=True)
    unit = torch.nn.functional.normalize
    left = unit(outputs([pairs.queries[i] for i in queries])["sentence_embedding"])[query]
    right = unit(outputs([pairs.documents[i] for i in documents])["sentence_embedding"])[document]
    return _SCALE * (left * right).sum(1), torch.cat([left, right], 1)


def _vectors(kind: str, model: Any, pairs: Candidates, rows: Any) -> Any:
    """Return the vectors of pairs by a finished model, for a probe."""
    model.eval()
    parts = []
    with torch.no_grad():
        for start in range(0, len(rows), _BATCH):
            vectors = read_pairs(kind, pairs, model, rows[start : start + _BATCH])[1]
            parts.append(vectors.float().cpu().numpy())
    return np.concatenate(parts)


def _evaluator(kind: str, examples: Examples, config: TrainConfig) -> Any:
    """Return the library's own re-ranking evaluator on the candidates of the dev queries."""
    pairs, rows = examples.pairs, examples.dev_rows(config.dev_depth)
    samples = []
    for query in np.unique(pairs.query[rows]).tolist():
        own = rows[pairs.query[rows] == query]
        texts: dict[bool, list[str]] = {True: [], False: []}
        for row in own.tolist():
            texts[bool(examples.relevant[row])].append(pairs.documents[pairs.document[row]])
        if texts[True] and texts[False]:  # a query without a relevant candidate counts 0 in any case
            samples.append({"query": pairs.queries[query], "positive": texts[True], "negative": texts[False]})
    if not samples:
        raise InputError("no dev query has a relevant document among its candidates; raise dev_depth")
    package = "cross_encoder" if kind == "cross-encoder" else "sentence_transformer"
    module = import_module(f"sentence_transformers.{package}.evaluation")
    name = "CrossEncoderRerankingEvaluator" if kind == "cross-encoder" else "RerankingEvaluator"
    return getattr(module, name)(samples, at_k=10, name="dev", write_csv=False, show_progress_bar=False)


def _listener(transformers: Any, run: TrainRun) -> Any:
    """Return a callback that reports steps, loss and RR@10, and stops training when RR@10 no longer rises."""

    class Listener(transformers.TrainerCallback):
        loss = ""

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if run.progress:
                run.progress(state.global_step, state.max_steps)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            if "loss" in (logs or {}):
                if not math.isfinite(logs["loss"]):
                    raise DivergedError
                self.loss = f"loss {logs['loss']:.4f}, "

        def on_evaluate(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            checks = [each[_DEV_RR] for each in _checks(state)]
            control.should_training_stop |= checks_since_best(checks) >= run.config.patience
            step = f"step {state.global_step} of {state.max_steps}"
            run.log(f"{step}: {self.loss}dev RR@10 {checks[-1]:.4f} (of queries with a relevant candidate)")

    return Listener()


def _checks(state: Any) -> list[Any]:
    """Return the entries of a trainer's log that have the RR@10 of the dev queries."""
    return [each for each in state.log_history if _DEV_RR in each]


def last_checkpoint(folder: Path, patience: int) -> Path | None:
    """Return the last whole checkpoint from before the patience was lost: after it, training is over."""
    whole = []
    for each in folder.glob("checkpoint-*"):
        try:  # the trainer writes its state last
            state = json.loads((each / "trainer_state.json").read_bytes())
        except (OSError, ValueError):
            continue
        checks = [entry[_DEV_RR] for entry in state["log_history"] if _DEV_RR in entry]
        if checks_since_best(checks) < patience:
            whole.append(each)
    return max(whole, key=lambda each: int(each.name.rpartition("-")[2]), default=None)
