"""`train_ranker`: a collection with judgments in, the folder of a trained ranker out."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import xxhash

import evenrank
from evenrank.data.files import is_model
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.rankers.neural.rerankers import INTERACTION, KINDS
from evenrank.rankers.settings import build
from evenrank.rankers.settings import setting_types as field_types
from evenrank.training.card import dev_metrics, model_card
from evenrank.training.dataset import Examples, Prepared, prepared

if TYPE_CHECKING:
    from evenrank.rankers.index import Index
    from evenrank.rankers.neural.saved import SavedRanker
    from evenrank.training.fitting import TrainRun


class Trained(NamedTuple):
    """What training came to.

    ``ranker`` is the model, opened from its folder; ``metrics`` what its folder says; ``seconds`` the
    processor time it took, and None if it was resumed.
    """

    ranker: SavedRanker
    metrics: dict[str, Any]
    seconds: float | None


def train_ranker(
    kind: str,
    docs: Any,
    queries: Any,
    qrels: Any,
    output: str | os.PathLike[str],
    *,
    run: Any = None,
    index: Index | None = None,
    negatives: Any = None,
    per_group: int | None = None,
    vectors: Any = None,
    bias: Any = "tf",
    lexicon: Any = None,
    labels: Any = None,
    seed: int = 0,
    hybrid: bool = True,
    say: Say = lambda text: None,
    progress: Progress | None = None,
    **settings: Any,
) -> Trained:
    """Train a ranker that orders the candidates of a first stage.

    Parameters
    ----------
    kind
        drmm, matchpyramid, knrm, convknrm, pacrr, cross-encoder, bi-encoder or head.
    docs, queries, qrels
        The collection, the training queries and their judgments. Some of the queries are held out, and
        decide when to stop. What :func:`prepared` has made of them may stand in place of `docs`.
    output
        The folder to be written. An interrupted training resumes from the checkpoint beside it, if all that
        decides the training is the same.
    run
        The first stage; BM25 on an index of the collection if not given. Relevant documents that are not
        among the candidates keep the score that the first stage gives them, as far as it is known.
    index
        An index of the collection, to be searched if there is no run; one in the cache if not given.
    negatives
        How many documents stand against each relevant one, or pairs ``query_id, doc_id`` to take them from:
        a table, a file, or one that ``evenrank mitigate negatives --form ids`` wrote.
    per_group
        How many of the pairs of a query are drawn to stand against a relevant document at a time, where
        `negatives` names pairs; as many as the ranker usually has if not given.
    vectors
        Word vectors for the word-interaction models; at random if not given.
    bias, lexicon, labels
        For losses that look at bias, an adversary and mirroring: what makes a document one-sided, as for
        :func:`evenrank.negatives`, the words of each group, and the group of each document.
    seed
        Decides the dev queries, first weights, negatives and their order.
    hybrid
        Measure the untrained hybrid on the dev queries too, where its encoder is installed.
    settings
        Those of the model and of its training.
    """
    if kind not in KINDS:
        raise InputError(f"unknown ranker {kind!r}; choose one of: {', '.join(KINDS)}")
    if isinstance(negatives, int):
        settings["negatives"], negatives = negatives, None
    if per_group is not None:
        if negatives is None:
            raise InputError("per_group is for negatives that are named; give their number as negatives")
        settings["negatives"] = per_group
    _check_output(output, seed)
    if vectors is not None and kind not in INTERACTION:
        raise InputError(f"word vectors are for {', '.join(INTERACTION)}; {kind} does not use them")
    model_settings, recipe = read_settings(kind, settings)
    opened = None
    if vectors is not None:
        from evenrank.vectors import load

        opened = load(vectors)
        if settings.get("dimension", opened.dimension) != opened.dimension:
            raise InputError(
                f"dimension is {settings['dimension']}, but the given word vectors have {opened.dimension}; "
                "leave it out"
            )
        model_settings = replace(model_settings, dimension=opened.dimension)
    if recipe.adversary is not None and kind in INTERACTION:
        raise InputError(
            f"{kind} has no vector for an adversary to read; head, bi-encoder, cross-encoder have"
        )
    from evenrank.rankers.neural.saved import open_ranker, save_ranker
    from evenrank.training.checkpoint import RESUMED, kept_if_resumable
    from evenrank.training.fitting import TrainRun
    from evenrank.training.losses import add_loss_inputs, check_loss_inputs

    started = time.process_time()
    if not isinstance(docs, Prepared):  # a sweep gives all of its trainings the same, the plain one too
        check_loss_inputs(recipe, settings, bias, lexicon, labels)
        first: dict[str, Any] = {"run": run, "index": index, "negatives": negatives}
        first |= {name: getattr(recipe, name) for name in ("depth", "dev_share", "dev_most")}
        docs = prepared(docs, queries, qrels, **first, seed=seed, say=say)
    ready: Prepared = docs
    target, result = Path(output), ready.examples
    result, of_gender = add_loss_inputs(result, recipe, bias, lexicon, labels)
    config: dict[str, Any] = {
        "evenrank": evenrank.__version__,
        "ranker": kind,
        "settings": asdict(model_settings),
        "recipe": asdict(recipe),
        "seed": seed,
        "facts": {"seed": seed, "first stage": ready.first_stage, "collection": ready.collection},
    }
    config["facts"] |= ({} if ready.negatives is None else {"negatives": ready.negatives}) | of_gender
    checkpoint = target.with_name(f".{target.name}.training")
    data = deepcopy({**config, "data": _fingerprint(result), "vectors": _vector_facts(vectors)})
    messages: list[str] = []

    def log(text: str) -> None:
        messages.append(text)
        say(text)

    train_run = TrainRun(kind, model_settings, recipe, result, seed, checkpoint, data, config, log, progress)
    with kept_if_resumable(checkpoint):
        reranker, files, history, vector = _fit(train_run, opened)
    dev = result.dev_rows(recipe.dev_depth)
    metrics = dev_metrics(result, dev, reranker, history, kind, hybrid, say, progress)
    if result.adversary_labels is not None:
        from evenrank.training.adversary import probe_ranker

        metrics["probe"] = probe_ranker(result, vector, recipe.adversary_labels, seed, say, lexicon=lexicon)
    used = pl.DataFrame({"query_id": result.pairs.query_ids, "text": result.pairs.queries})
    card = model_card(
        config, metrics, training=_count_training_queries(train_run), left_out=result.left_out_messages()
    )
    save_ranker(output, kind, files, config=config, metrics=metrics, card=card, trained_on=used)
    shutil.rmtree(checkpoint, ignore_errors=True)
    is_resumed = any(text.startswith(RESUMED) for text in messages)
    return Trained(open_ranker(output), metrics, None if is_resumed else time.process_time() - started)


def train_prepared(kind: str, ready: Prepared, output: str | os.PathLike[str], **how: Any) -> Trained:
    """As :func:`train_ranker`, on data that is ready."""
    return train_ranker(kind, ready, None, None, output, **how)


_LARGEST_SEED = 2**32 - 1
"""What numpy, torch and the trainers of sentence-transformers all take."""


def _check_output(output: str | os.PathLike[str], seed: int) -> None:
    """Refuse a place where no model can be written, before the work."""
    target = Path(output).absolute()
    try:
        if target.exists() and not is_model(output):
            raise InputError("exists and is not a model; choose another name", path=output)
        near = next(each for each in target.parents if each.exists())
        with tempfile.TemporaryDirectory(dir=near, prefix=f".{target.name}."):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=output) from None
    check_whole("seed", seed, least=0, most=_LARGEST_SEED)


def _count_training_queries(run: TrainRun) -> int:
    """How many queries the groups of a training are of."""
    if run.kind not in ("cross-encoder", "bi-encoder"):
        return run.examples.queries_of(run.examples.groups()[0])
    from evenrank.training.transformers import drawn_groups

    return run.examples.queries_of(drawn_groups(run.examples, run.recipe, run.seed)[:, 0])


def _fit(run: TrainRun, vectors: Any) -> tuple[Any, dict[str, bytes], list[dict[str, float]], Any]:
    """The trained model, the files of its folder, loss and dev RR@10 by epoch, and what gives its vectors."""
    if run.kind in ("cross-encoder", "bi-encoder"):
        from evenrank.training.transformers import fit_transformer

        return fit_transformer(run)
    import torch

    from evenrank.rankers.neural import rerankers
    from evenrank.rankers.neural.candidates import FirstStage, batch_for
    from evenrank.training.fitting import fit

    result, settings, seed, facts = (
        run.examples,
        run.settings,
        run.seed,
        run.config["facts"],
    )
    # Mirrored texts decide neither scale nor first vectors: with a strength of 0, training is plain training.
    scale = FirstStage.among(result.pairs.first[result.own_pairs()])
    built: Any
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if run.kind == "head":
            from evenrank.rankers.encodings import Encodings, encode_pairs
            from evenrank.rankers.neural.head import Head, VectorPairs

            encodings = Encodings(rerankers.head_encoder(settings))
            read: Any = VectorPairs(result.pairs, *encode_pairs(encodings, result.pairs, run.progress), scale)
            module: Any = Head(encodings.encoder.dimension, settings)
            facts["encoder"] = encodings.encoder.model.describe()
            built = rerankers.HeadReranker(module, encodings, scale, facts)
        else:
            from evenrank.rankers.neural.interaction import (
                Vocabulary,
                WordPairs,
                given_vectors,
                random_vectors,
            )

            given, more = (result.learned_texts(mirrored=each) for each in (False, True))
            vocabulary = Vocabulary.of(*given, more=more)
            if vectors is None:
                matrix = random_vectors(len(vocabulary), settings.dimension, seed)
                facts["word vectors"] = {"source": "random"}
            else:
                matrix, facts["word vectors"] = given_vectors(vocabulary, vectors, seed)
            module = rerankers.interaction_class(run.kind)[0](vocabulary, settings, matrix)
            read = WordPairs(result.pairs, vocabulary, settings, scale)
            built = rerankers.WordReranker(run.kind, module, vocabulary, scale, facts)
        history = fit(run, module, read)
    if run.kind in INTERACTION and settings.with_first_stage:
        facts["weight of the first stage"] = _add_first_stage_weight(
            module, read, result, run.recipe.dev_depth, scale
        )

    def vector(rows: Any) -> Any:
        module.eval()
        with torch.no_grad():
            return module.score_and_vector(*batch_for(module, read, rows))[1].cpu().numpy()

    return built, built.files(), history, vector


def _add_first_stage_weight(module: Any, read: Any, examples: Examples, depth: int, scale: Any) -> float:
    """Add to the weight of the first stage, where the dev queries ask for more than training gave it."""
    import torch

    from evenrank.rankers.neural.candidates import scored
    from evenrank.training.card import chosen_weight

    dev = examples.dev_rows(depth)
    more = chosen_weight(examples, dev, scored(module, read, dev))["weight"] * scale.deviation
    with torch.no_grad():
        module.first_stage += more
    return float(module.first_stage.item())


def _classes(kind: str) -> tuple[type[Any], type[Any]]:
    """The settings of a model, and of its training."""
    from evenrank.training.fitting import Recipe, WordRecipe

    if kind in INTERACTION:
        from evenrank.rankers.neural.rerankers import interaction_class

        return interaction_class(kind)[1], WordRecipe
    if kind == "head":
        from evenrank.rankers.neural.head import HeadSettings

        return HeadSettings, Recipe
    from evenrank.training.transformers import TransformerRecipe, TransformerSettings

    return TransformerSettings, TransformerRecipe


def setting_types(kind: str) -> dict[str, Any]:
    """What can be set for a ranker, and its types."""
    return field_types(*_classes(kind))


def read_settings(kind: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Settings of the model and of its training out of one mapping; unknown names are refused."""
    if kind == "drmm" and given.get("train_embeddings"):
        raise InputError(
            "train_embeddings: a histogram has no gradient, so the word vectors of drmm stay as they are"
        )
    frozen = kind == "drmm" or given.get("train_embeddings") is False
    if given.get("embedding_rate") is not None and frozen:
        raise InputError(f"embedding_rate is for word vectors that are trained; those of this {kind} are not")
    model, recipe = build({**_DEFAULTS.get(kind, {}), **given}, *_classes(kind), owner=kind)
    return model, recipe


_KERNELS = {"rate": 1e-2, "embedding_rate": 1e-4}  # a line learns slowly, word vectors by heart
_PICTURES = {"rate": 3e-3, "embedding_rate": 3e-4}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "drmm": {"rate": 3e-2, "epochs": 15, "patience": 3},
    "matchpyramid": _PICTURES,
    "pacrr": _PICTURES,
    "knrm": _KERNELS,
    "convknrm": {**_KERNELS, "epochs": 4},  # each takes eight times as long as one of KNRM
    "head": {"rate": 1e-3, "epochs": 15, "patience": 3, "negatives": 7, "decay": 0.1},
}
"""Where the training of one model differs from the usual."""


def _fingerprint(examples: Examples) -> str:
    """A fingerprint of all pairs, judgments and scores."""
    digest = xxhash.xxh3_128()
    for array in (
        examples.pairs.query,
        examples.pairs.document,
        examples.pairs.first,
        examples.relevant,
        examples.is_candidate,
    ):
        digest.update(np.ascontiguousarray(array).tobytes())
    for texts in (examples.pairs.queries, examples.pairs.documents):
        digest.update("\0".join(texts).encode("utf-8", "surrogatepass"))
    digest.update(examples.dev.tobytes())
    digest.update(examples.is_negative.tobytes())
    for extra in (examples.bias, examples.twin, examples.adversary_labels):
        digest.update(b"" if extra is None else extra.tobytes())
    return digest.hexdigest()


def _vector_facts(vectors: Any) -> Any:
    if vectors is None:
        return None
    from evenrank.data.files import fingerprint

    return fingerprint(vectors) if isinstance(vectors, (str, os.PathLike)) else repr(vectors)
