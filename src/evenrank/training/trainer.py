"""`train_ranker`: a collection with judgments in, the folder of a trained ranker out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import evenrank
from evenrank.data.files import is_model
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.rankers.neural.candidates import INTERACTION, KINDS, FirstStage, batch_for, scored
from evenrank.rankers.settings import build
from evenrank.rankers.settings import setting_types as field_types
from evenrank.show.numbers import counted
from evenrank.training.dataset import Examples, first_stage_weight, make_examples

if TYPE_CHECKING:
    from evenrank.rankers.index import Index
    from evenrank.rankers.neural.saved import SavedRanker
    from evenrank.training.fitting import Fitted, TrainRun

_TRANSFORMERS = ("cross-encoder", "bi-encoder")
_KERNELS = {"rate": 1e-2, "embedding_rate": 1e-4}  # a line learns slowly, word vectors by heart
_IMAGES = {"rate": 3e-3, "embedding_rate": 3e-4}
_TRANSFORMER = {"epochs": 1, "batch": 8, "rate": 2e-4, "dev_most": 100, "dev_depth": 20}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "drmm": {"rate": 3e-2, "epochs": 15, "patience": 3},
    "matchpyramid": _IMAGES,
    "pacrr": _IMAGES,
    "knrm": _KERNELS,
    "convknrm": {**_KERNELS, "epochs": 4},  # each takes eight times as long as one of KNRM
    "head": {"rate": 1e-3, "epochs": 15, "patience": 3, "negatives": 7, "decay": 0.1},
    "cross-encoder": _TRANSFORMER,
    "bi-encoder": _TRANSFORMER,
}
"""Where the training of one ranker differs from the usual."""


def train_ranker(
    kind: str,
    docs: Any,
    queries: Any,
    qrels: Any,
    output: str | os.PathLike[str],
    *,
    run: Any = None,
    index: Index | None = None,
    negative_pairs: Any = None,
    seed: int = 0,
    log: Say = lambda text: None,
    **options: Any,
) -> SavedRanker:
    """Train a ranker that orders the candidates of a first stage.

    Parameters
    ----------
    kind
        drmm, matchpyramid, knrm, convknrm, pacrr, cross-encoder, bi-encoder or head.
    docs, queries, qrels
        The collection, the training queries and their judgments. Some of the queries are held out, and
        decide when to stop.
    output
        The folder to be written. An interrupted training resumes from the checkpoint beside it, if all that
        decides the training is the same.
    run, index
        The first stage; BM25 if not given, on the index or on one in the cache. Relevant documents that are
        not among the candidates keep the score that the first stage gives them, as far as it is known.
    negative_pairs
        Pairs ``query_id, doc_id`` to draw the negatives from, instead of the candidates: a table, a file, or
        one that ``evenrank mitigate negatives --form ids`` wrote.
    seed
        Decides the dev queries, first weights, negatives and their order.
    options
        The arguments of :func:`train_on`: word vectors, what makes a document one-sided, and the settings of
        the model and of its training.
    """
    config = read_settings(kind, {k: v for k, v in options.items() if k not in _INPUTS})[1]
    _check_output(output, seed)
    shares = {name: getattr(config, name) for name in ("depth", "dev_share", "dev_most")}
    examples = make_examples(
        docs, queries, qrels, run=run, index=index, negatives=negative_pairs, seed=seed, log=log, **shares
    )
    return train_on(examples, kind, output, seed=seed, log=log, **options)


_INPUTS = ("vectors", "bias", "lexicon", "labels", "progress")
"""The arguments of `train_on` that are no settings."""


def train_on(
    examples: Examples,
    kind: str,
    output: str | os.PathLike[str],
    *,
    vectors: Any = None,
    bias: Any = "tf",
    lexicon: Any = None,
    labels: Any = None,
    seed: int = 0,
    log: Say = lambda text: None,
    progress: Progress | None = None,
    **settings: Any,
) -> SavedRanker:
    """Train a ranker on examples that :func:`make_examples` returned.

    Parameters
    ----------
    vectors
        Word vectors for the word-interaction models; random if not given.
    bias, lexicon, labels
        For losses that look at bias, an adversary and mirrored documents: what makes a document one-sided, as
        for :func:`evenrank.negatives`, the words of each group, and the group of each document.
    settings
        Those of the model and of its training.
    """
    from evenrank.rankers.neural.saved import open_ranker, save_ranker
    from evenrank.training.fitting import TrainRun, kept_if_resumable
    from evenrank.training.losses import add_loss_inputs

    _check_output(output, seed)
    model_settings, config = read_settings(kind, settings)
    if config.adversary is not None and kind in INTERACTION:
        raise InputError(
            f"{kind} has no vector for an adversary to read; head, bi-encoder, cross-encoder have"
        )
    if kind not in INTERACTION:
        vectors = None
    if vectors is not None:
        from evenrank.vectors import load

        vectors = load(vectors)
        model_settings = replace(model_settings, dimension=vectors.dimension)
    examples, of_bias = add_loss_inputs(examples, config, bias, lexicon, labels)
    description: dict[str, Any] = {
        "evenrank": evenrank.__version__,
        "ranker": kind,
        "settings": asdict(model_settings),
        "recipe": asdict(config),
        "seed": seed,
        "facts": {"seed": seed, **examples.facts, **of_bias},
    }
    provenance = None if vectors is None else dict(vectors.provenance)
    identity = {**description, "data": examples.checksum(), "vectors": provenance}
    target = Path(output)
    checkpoint = target.with_name(f".{target.name}.training")
    run = TrainRun(kind, model_settings, config, examples, seed, checkpoint, identity, log, progress)
    with kept_if_resumable(checkpoint):
        fitted = _fit(run, vectors)
    description["facts"] = {**description["facts"], **fitted.facts}
    dev = examples.dev_rows(config.dev_depth)
    metrics: dict[str, Any] = {
        "dev": {
            "queries": int(examples.dev.sum()),
            "first stage": examples.rr(dev, examples.pairs.first[dev]),
            kind: examples.rr(dev, fitted.scores),
        },
        "hybrid": first_stage_weight(examples, dev, fitted.scores),
        "epochs": fitted.history,
    }
    if examples.adversary_labels is not None:
        from evenrank.training.adversary import probe_ranker

        metrics["probe"] = probe_ranker(examples, fitted.vector, config.adversary_labels, seed, log)
    for line in _dev_lines(kind, metrics):
        log(line)
    card = _model_card(description, metrics, examples)
    save_ranker(
        output,
        kind,
        fitted.files,
        config=description,
        metrics=metrics,
        card=card,
        queries=examples.pairs.queries,
    )
    shutil.rmtree(checkpoint, ignore_errors=True)
    return open_ranker(output)


_LARGEST_SEED = 2**32 - 1
"""What numpy, torch and the trainers of sentence-transformers all take."""


def _check_output(output: str | os.PathLike[str], seed: int) -> None:
    """Refuse a place where no model can be written, before the work."""
    target = Path(output).absolute()
    try:
        if target.exists() and not is_model(output):
            raise InputError("exists and is not a model; choose another name", path=output)
        parent = next(each for each in target.parents if each.exists())
        with tempfile.TemporaryDirectory(dir=parent, prefix=f".{target.name}."):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=output) from None
    check_whole("seed", seed, least=0, most=_LARGEST_SEED)


def _fit(run: TrainRun, vectors: Any) -> Fitted:
    """Train a ranker, and score the dev queries with it."""
    if run.kind in _TRANSFORMERS:
        from evenrank.training.transformers import fit_transformer

        return fit_transformer(run)
    import torch

    from evenrank.training.fitting import Fitted, fit

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        reranker = _new_head(run) if run.kind == "head" else _new_word_model(run, vectors)
        pairs = reranker.pairs(run.examples.pairs)
        mirrored = None if run.examples.mirrored is None else reranker.pairs(run.examples.mirrored)
        module = reranker.module
        history = fit(run, module, pairs, mirrored)
    dev = run.examples.dev_rows(run.config.dev_depth)
    scores = scored(module, pairs, dev)
    if run.kind in INTERACTION and run.settings.with_first_stage:
        more = first_stage_weight(run.examples, dev, scores)["weight"] * reranker.scale.deviation
        with torch.no_grad():  # the dev queries may ask for more than training gave the first stage
            module.first_stage += more
        reranker.facts["weight of the first stage"] = float(module.first_stage.item())
        scores = scored(module, pairs, dev)

    def vector(rows: Any) -> Any:
        with torch.no_grad():
            return module.score_and_vector(*batch_for(module, pairs, rows))[1].cpu().numpy()

    return Fitted(scores, reranker.files(), history, reranker.facts, vector)


def _new_head(run: TrainRun) -> Any:
    """Return an untrained head."""
    from evenrank.rankers.encodings import Encodings
    from evenrank.rankers.neural.head import Head, HeadReranker, head_encoder

    encoder = head_encoder(run.settings)
    module = Head(encoder.dimension, run.settings)
    scale = FirstStage.among(run.examples.pairs.first)
    return HeadReranker(module, Encodings(encoder), scale, {"encoder": encoder.model.describe()})


def _new_word_model(run: TrainRun, vectors: Any) -> Any:
    """Return an untrained word-interaction model."""
    from evenrank.rankers.neural import interaction, models

    pairs = run.examples.pairs
    learned = [text for text, dev in zip(pairs.queries, run.examples.dev, strict=True) if not dev]
    vocabulary = interaction.Vocabulary.of(pairs.documents, learned)
    if vectors is None:
        matrix = interaction.random_vectors(len(vocabulary), run.settings.dimension, run.seed)
        facts: dict[str, Any] = {"source": "random"}
    else:
        matrix, count = interaction.given_vectors(vocabulary, vectors, run.seed)
        facts = {"words with a vector": count, "words": len(vocabulary), **dict(vectors.provenance)}
    module = models.INTERACTION_CLASSES[run.kind][0](vocabulary, run.settings, matrix)
    scale = FirstStage.among(pairs.first)
    return models.WordReranker(run.kind, module, vocabulary, scale, {"word vectors": facts})


def _classes(kind: str) -> tuple[type[Any], type[Any]]:
    """Return the settings classes of a model and of its training."""
    check_choice("ranker", kind, KINDS)
    from evenrank.training.fitting import TrainConfig

    if kind in INTERACTION:
        from evenrank.rankers.neural.models import INTERACTION_CLASSES

        return INTERACTION_CLASSES[kind][1], TrainConfig
    if kind == "head":
        from evenrank.rankers.neural.head import HeadSettings

        return HeadSettings, TrainConfig
    from evenrank.training.transformers import TransformerSettings

    return TransformerSettings, TrainConfig


def setting_types(kind: str) -> dict[str, Any]:
    """Return the names and types of what can be set for a ranker."""
    return field_types(*_classes(kind))


def read_settings(kind: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the settings of the model and of its training out of one mapping; unknown names are refused."""
    model, config = build({**_DEFAULTS.get(kind, {}), **given}, *_classes(kind), owner=kind)
    return model, config


def _dev_lines(kind: str, metrics: Mapping[str, Any]) -> list[str]:
    """Return the RR@10 of the dev queries: of the first stage, the model, and both."""
    dev, hybrid = metrics["dev"], metrics["hybrid"]
    return [
        f"RR@10 on {counted(dev['queries'], 'dev query', 'dev queries')}:",
        f"  {dev['first stage']:.4f}  first stage",
        f"  {dev[kind]:.4f}  {kind}",
        f"  {hybrid['dev RR@10']:.4f}  {kind} + {hybrid['weight']:.3g} · first stage",
    ]


def _model_card(config: Mapping[str, Any], metrics: Mapping[str, Any], examples: Examples) -> str:
    """Return the card of a model, as Markdown."""
    from evenrank.training.adversary import probe_text

    learned = len(np.unique(examples.pairs.query[examples.groups()[0]]))
    remarks = [f"left out: {each}" for each in examples.left_out_messages()]
    if "probe" in metrics:
        remarks.append(probe_text(metrics["probe"]))
    facts = {key: config[key] for key in ("settings", "recipe", "seed", "facts")}
    return "\n".join(
        [
            f"# Re-ranker: {config['ranker']}",
            "",
            f"Trained by evenrank {config['evenrank']} on {counted(learned, 'query', 'queries')}; "
            f"{counted(metrics['dev']['queries'], 'other')} decided when to stop.",
            "",
            *(f"- {each}" for each in remarks),
            "",
            *_dev_lines(config["ranker"], metrics),
            "",
            "It orders what a first stage has found. It was selected by the queries of these figures.",
            "Nothing here says that it is fair: measure it with `evenrank audit`, on other queries.",
            "",
            "```json",
            json.dumps(facts, indent=1, ensure_ascii=False),
            "```",
            "",
        ]
    )
