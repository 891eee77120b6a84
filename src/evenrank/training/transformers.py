"""Cross-encoders and bi-encoders, trained by the trainers of sentence-transformers.

What is ours is the data (groups of one relevant document and several others), the evaluator's dev queries,
and the checkpoint: a folder beside the model that an interrupted training goes on from.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenrank.data.checkpoint import open_checkpoints
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.training.checkpoint import (
    RESUMED,
    DivergedError,
    checks_since_best,
)
from evenrank.training.dataset import Examples
from evenrank.training.fitting import TrainConfig, TrainRun

_DEV_RR = "eval_dev_mrr@10"
"""What the library calls RR@10 on the dev queries."""
_LOOKAHEAD = 1000
"""Rows that are looked at for one batch; with few queries many do not fit together."""
_RELEVANT_LABEL = 100.0
"""The label of a relevant document: ListNet takes a softmax of labels, which this makes 1 and 0."""
_SCALE = 20.0
"""What a cosine is multiplied by before it is a score, as in the library's own losses."""
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
        if not 8 <= self.max_length <= 8192:
            raise InputError(f"max_length is {self.max_length}; it must be from 8 to 8192")


@dataclass(frozen=True, kw_only=True)
class TransformerRecipe(TrainConfig):
    """How a transformer is trained.

    With a loss, an adversary above 0 or mirroring of ours (but for ``augment``) a bi-encoder learns from each
    group by itself, not from all documents of the step.

    Attributes
    ----------
    warm_up
        The share of steps in which the learning rate rises to `rate`; then it falls to 0.
    checks
        How often the dev queries are asked while training. With 0 they do not decide when to stop: the last
        weights are kept, and no time is spent on asking.
    most_queries
        Relevant documents of training queries at most, drawn by the seed in each epoch; all if not given. A
        query with two of them counts twice.
    precision
        What products of matrices are computed in while training: ``float32``, or ``bfloat16``, which takes
        less time on processors that have it, and may take more on others. Weights and scores stay float32.
    """

    epochs: int = 1
    batch: int = 8
    rate: float = 2e-4
    dev_most: int = 100
    dev_depth: int = 20
    warm_up: float = 0.1
    checks: int = 5
    most_queries: int | None = None
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("checks", self.checks, least=0)
        if not 0 <= self.warm_up <= 1:
            raise InputError(f"warm_up is {self.warm_up:g}; it must be from 0 to 1")
        if self.most_queries is not None:
            check_whole("most_queries", self.most_queries)

    @property
    def is_plain(self) -> bool:
        """Whether the losses of the library will do."""
        return self.loss == "softmax" and not self.adversary and self.mirror != "consistency"


def fit_transformer(run: TrainRun) -> tuple[Any, dict[str, bytes], list[dict[str, float]], Any]:
    """The trained model as a re-ranker, the files of its folder, its history, and what gives its vectors."""
    torch = import_module("torch")
    from evenrank.rankers.neural.rerankers import BiEncoderReranker, CrossEncoderReranker, folder_files
    from evenrank.rankers.neural.saved import ENCODER

    require_trainers()
    facts = run.config["facts"]
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(run.seed)
        model, source = _new(run.kind, run.settings)
        with contextlib.suppress(AttributeError):  # the card is ours
            model.model_card_data.generate_widget_examples = False
            model.model_card_data.set_widget_examples = _nothing
        facts["model"] = source.describe()
        history = _train(run, model)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder, create_model_card=False)
            files = folder_files(Path(folder), ENCODER)
    vector = partial(_vectors, run.kind, model, run.examples)
    if run.kind == "cross-encoder":
        return CrossEncoderReranker(model, facts=facts), files, history, vector
    from evenrank.rankers.encoder import Encoder

    kept = run.checkpoint / "finished"
    shutil.rmtree(kept, ignore_errors=True)
    for name, content in files.items():
        place = kept / Path(name).relative_to(ENCODER)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    encoder = Encoder(kept, max_length=run.settings.max_length)
    return BiEncoderReranker(encoder, facts=facts), files, history, vector


def require_trainers() -> None:
    """Say what to install where a package is missing."""
    for package in ("sentence_transformers", "accelerate", "datasets"):
        try:
            import_module(package)
        except ImportError:
            raise InputError(
                f"training a transformer needs {package.replace('_', '-')}, which is not installed: "
                "pip install 'evenrank[neural]'"
            ) from None


def _new(kind: str, settings: TransformerSettings) -> tuple[Any, Any]:
    from evenrank.rankers.neural.transformers import new_cross_encoder
    from evenrank.vectors.encoders import find_model, open_model

    if kind == "cross-encoder":
        return new_cross_encoder(settings.checkpoint, max_length=settings.max_length)
    source = find_model(settings.checkpoint)
    model = open_model(source)
    model.max_seq_length = settings.max_length
    return model, source


def _nothing(dataset: Any) -> None:
    """In place of examples for the library's card, which it looks for with a bar of its own."""


def _train(run: TrainRun, model: Any) -> list[dict[str, float]]:
    """Train in place; RR@10 at each check."""
    kind, recipe, examples, checkpoint = run.kind, run.recipe, run.examples, run.checkpoint
    library = import_module(
        f"sentence_transformers.{'cross_encoder' if kind == 'cross-encoder' else 'sentence_transformer'}"
    )
    transformers = import_module("transformers")
    rows = drawn_groups(examples, recipe, run.seed)
    columns = _columns(kind, examples, rows, texts=recipe.is_plain)
    dataset = import_module("datasets").Dataset.from_dict(columns)
    batches = None
    if kind == "bi-encoder" and recipe.is_plain:  # its loss takes the documents of other rows as negatives
        batches = separate_batches(examples, rows, recipe.batch, run.seed)
    steps = -(-len(rows) // recipe.batch) if batches is None else len(batches)
    every = max(1, steps // (recipe.checks or 5))
    has_checks = recipe.checks > 0
    names = {
        "cross-encoder": ("CrossEncoderTrainer", "CrossEncoderTrainingArguments"),
        "bi-encoder": ("SentenceTransformerTrainer", "SentenceTransformerTrainingArguments"),
    }[kind]
    trainer_class, arguments_class = (getattr(library, name) for name in names)
    arguments = arguments_class(
        output_dir=str(checkpoint.absolute()),  # it is kept as the place of the best checkpoint
        num_train_epochs=1,
        per_device_train_batch_size=recipe.batch,
        learning_rate=recipe.rate,
        warmup_steps=max(1, round(recipe.warm_up * steps)),
        eval_strategy="steps" if has_checks else "no",
        eval_steps=every if has_checks else None,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=has_checks,
        metric_for_best_model=_DEV_RR,
        greater_is_better=True,
        logging_steps=every,
        logging_nan_inf_filter=False,  # a loss that is no number has to be seen
        seed=run.seed,
        data_seed=run.seed,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **({} if batches is None else {"batch_sampler": partial(_fixed_batches, batches)}),
    )
    listener = _listener(transformers, run.say, run.progress)
    torch = import_module("torch")

    class Trainer(trainer_class):  # type: ignore[misc, valid-type]
        def autocast_smart_context_manager(self, cache_enabled: bool | None = True) -> Any:
            # The library leaves this to accelerate, which does not reach models inside a loss.
            return torch.autocast(
                self.args.device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16"
            )

    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=dataset,
        loss=_loss(kind, model) if recipe.is_plain else _group_loss(kind, model, recipe, examples),
        evaluator=_evaluator(kind, examples, recipe) if has_checks else None,
        callbacks=[listener, *([_stopper(transformers, recipe.patience)] if has_checks else [])],
    )
    for default in (transformers.PrinterCallback, transformers.ProgressCallback):
        trainer.remove_callback(default)
    # The trainer keeps the weights of the model, not those of an adversary: such training begins anew.
    can_resume = open_checkpoints(checkpoint, run.data) and not recipe.adversary
    last = last_checkpoint(checkpoint, recipe.patience) if can_resume else None
    if last is not None:
        run.say(f"{RESUMED} step {last.name.rpartition('-')[2]} of {steps}")
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    return [
        {"step": float(each["step"]), "dev RR@10": float(each[_DEV_RR])}
        for each in trainer.state.log_history
        if _DEV_RR in each
    ]


def drawn_groups(examples: Examples, recipe: TransformerRecipe, seed: int) -> Any:
    """Rows of the groups, the relevant document first, for all epochs."""
    positives, negatives = examples.groups()
    if not positives:
        raise InputError("no training query has both a relevant document and another one")
    rows = []
    for epoch in range(recipe.epochs):
        random = np.random.default_rng([seed, 4, epoch])
        chosen = random.permutation(len(positives))[: recipe.most_queries]
        for place in chosen.tolist():
            pool = negatives[place]
            few = len(pool) < recipe.negatives
            rows.append([positives[place], *random.choice(pool, recipe.negatives, replace=few)])
    return np.array(rows, np.int64)


def separate_batches(examples: Examples, rows: Any, size: int, seed: int) -> list[list[int]]:
    """Batches of rows, drawn by the seed, in which no document is relevant to the query of another row.

    A batch without enough rows that fit together is smaller. Queries and documents are compared by their
    texts: a mirrored query without a gendered word is the same query.
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
    """A sampler of sentence-transformers that gives these batches."""
    base = import_module("sentence_transformers.base.sampler").DefaultBatchSampler

    class FixedBatches(base):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[list[int]]:
            return iter(batches)

        def __len__(self) -> int:
            return len(batches)

    return FixedBatches(dataset, batch_size=max(map(len, batches)), drop_last=False)


def _columns(kind: str, examples: Examples, rows: Any, *, texts: bool) -> dict[str, list[Any]]:
    """The groups as sentence-transformers wants them; without texts, the rows of their pairs are labels."""
    pairs = examples.pairs
    queries = [pairs.queries[pairs.query[row[0]]] for row in rows]
    if not texts:
        return {"query": queries, "labels" if kind == "cross-encoder" else "label": rows.tolist()}
    documents = [[pairs.documents[pairs.document[i]] for i in row] for row in rows]
    if kind == "cross-encoder":
        labels = [[_RELEVANT_LABEL] + [0.0] * (len(row) - 1) for row in rows]
        return {"query": queries, "docs": documents, "labels": labels}
    columns: dict[str, list[Any]] = {"query": queries, "positive": [each[0] for each in documents]}
    for place in range(1, rows.shape[1]):
        columns[f"negative_{place}"] = [each[place] for each in documents]
    return columns


def _loss(kind: str, model: Any) -> Any:
    """Cross-entropy over the group; for a bi-encoder over all documents of the step."""
    if kind == "cross-encoder":
        losses = import_module("sentence_transformers.cross_encoder.losses")
        return losses.ListNetLoss(model, mini_batch_size=-1)
    losses = import_module("sentence_transformers.sentence_transformer.losses")
    return losses.MultipleNegativesRankingLoss(model)


def _group_loss(kind: str, model: Any, recipe: TransformerRecipe, examples: Examples) -> Any:
    """The objective of a recipe that is not plain; its labels are the rows of the pairs of each group.

    It looks up texts, bias and what an adversary reads by these rows, which the columns of the library cannot
    carry.
    """
    from evenrank.training.losses import Objective

    class GroupLoss(Objective):
        def forward(self, inputs: Any, labels: Any) -> Any:  # type: ignore[override]
            return super().forward(np.stack([np.asarray(each.cpu(), np.int64) for each in labels]))

    return GroupLoss(model, partial(read_pairs, kind, examples), recipe, examples)


def read_pairs(kind: str, examples: Examples, model: Any, rows: Any, with_vectors: bool) -> tuple[Any, Any]:
    """Scores of pairs, and the vectors that they are made of: of a bi-encoder both of them, side by side."""
    torch = import_module("torch")
    pairs = examples.pairs

    def outputs(texts: list[Any]) -> Any:
        features = model.preprocess(texts)
        return model({name: _on_device(each, model) for name, each in features.items()})

    if kind == "cross-encoder":
        out = outputs([(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]]) for i in rows])
        vectors = out.get("sentence_embedding")
        if with_vectors and vectors is None:
            raise InputError("this cross-encoder does not show the vector that its score is made of")
        return out["scores"].view(-1).float(), vectors
    queries, query = np.unique(pairs.query[rows], return_inverse=True)
    documents, document = np.unique(pairs.document[rows], return_inverse=True)
    unit = torch.nn.functional.normalize
    left = unit(outputs([pairs.queries[i] for i in queries])["sentence_embedding"])[query]
    right = unit(outputs([pairs.documents[i] for i in documents])["sentence_embedding"])[document]
    return _SCALE * (left * right).sum(1), torch.cat([left, right], 1)


def _on_device(feature: Any, model: Any) -> Any:
    return feature.to(model.device) if hasattr(feature, "to") else feature


def _vectors(kind: str, model: Any, examples: Examples, rows: Any) -> Any:
    """The vectors of pairs by a finished model, for a probe."""
    torch = import_module("torch")
    model.eval()
    items = []
    with torch.no_grad():
        for start in range(0, len(rows), _BATCH):
            vectors = read_pairs(kind, examples, model, rows[start : start + _BATCH], True)[1]
            items.append(vectors.float().cpu().numpy())
    return np.concatenate(items)


def _evaluator(kind: str, examples: Examples, recipe: TransformerRecipe) -> Any:
    """The library's own re-ranking evaluator on the candidates of the dev queries."""
    rows = examples.dev_rows(recipe.dev_depth)
    samples = []
    for query in np.unique(examples.pairs.query[rows]).tolist():
        own = rows[examples.pairs.query[rows] == query]
        texts = [examples.pairs.documents[examples.pairs.document[i]] for i in own]
        good = [text for text, right in zip(texts, examples.relevant[own], strict=True) if right]
        bad = [text for text, right in zip(texts, examples.relevant[own], strict=True) if not right]
        if good and bad:  # a query without a relevant candidate counts 0 whatever the model does
            samples.append({"query": examples.pairs.queries[query], "positive": good, "negative": bad})
    if not samples:
        raise InputError("no dev query has a relevant document among its candidates; raise dev_depth")
    place = "cross_encoder" if kind == "cross-encoder" else "sentence_transformer"
    module = import_module(f"sentence_transformers.{place}.evaluation")
    built = module.CrossEncoderRerankingEvaluator if kind == "cross-encoder" else module.RerankingEvaluator

    class Evaluator(built):  # type: ignore[misc, valid-type]
        def __call__(self, *given: Any, **more: Any) -> Any:
            try:
                return super().__call__(*given, **more)
            except ValueError as error:
                if "Input contains" in str(error):  # scikit-learn's word for NaN and infinity
                    raise DivergedError from error
                raise

    return Evaluator(samples, at_k=10, name="dev", write_csv=False, show_progress_bar=False)


def _listener(transformers: Any, say: Say, progress: Progress | None) -> Any:
    """What tells of steps, of the loss, and of RR@10."""

    class Listener(transformers.TrainerCallback):
        loss: float | None = None  # none is told by the first steps after an interruption

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if progress:
                progress(state.global_step, state.max_steps)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            if "loss" in (logs or {}):
                self.loss = float(logs["loss"])
                if not math.isfinite(self.loss):
                    raise DivergedError

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **rest: Any) -> None:
            rr = (metrics or {}).get(_DEV_RR)
            if rr is not None:
                loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
                step = f"step {state.global_step} of {state.max_steps}"
                say(f"{step}: {loss}dev RR@10 {rr:.4f} (of queries with a relevant candidate)")

    return Listener()


def _stopper(transformers: Any, patience: int) -> Any:
    """What stops training; checks before an interruption count too."""

    class EarlyStoppingCallback(transformers.EarlyStoppingCallback):  # the name it has in checkpoints
        def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            super().on_train_begin(args, state, control, **rest)
            self.early_stopping_patience_counter = _waited(state.log_history)

    return EarlyStoppingCallback(early_stopping_patience=patience)


def last_checkpoint(folder: Path, patience: int) -> Path | None:
    """The last whole checkpoint, whose state the trainer writes last, from before the patience was lost.

    The trainer takes a step before it asks whether to stop.
    """
    whole = []
    for each in folder.glob("checkpoint-*"):
        try:
            log = json.loads((each / "trainer_state.json").read_bytes())["log_history"]
        except (OSError, ValueError, KeyError):
            continue
        if _waited(log) < patience:
            whole.append(each)
    return max(whole, key=lambda each: int(each.name.rpartition("-")[2]), default=None)


def _waited(log: Iterable[Mapping[str, Any]]) -> int:
    """Checks since the best one."""
    return checks_since_best(each[_DEV_RR] for each in log if _DEV_RR in each)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks, which go to the terminal in the midst of ours."""
    names = ("sentence_transformers", "transformers", "accelerate", "datasets")
    before = {name: logging.getLogger(name).level for name in names}
    datasets = import_module("datasets")
    datasets.disable_progress_bars()
    for name in names:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
