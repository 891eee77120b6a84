"""Cross-encoders of sentence-transformers: opening them, and making one of an encoder."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from evenrank.data.files import one_line
from evenrank.errors import InputError
from evenrank.vectors.encoders import Model, find_model


def library(*more: str) -> Any:
    """Return the module sentence_transformers; raise InputError with what to install if one is missing."""
    for package in ("sentence_transformers", *more):
        if find_spec(package) is None:
            name = package.replace("_", "-")
            raise InputError(f"this needs {name}, which is not installed: pip install 'evenrank[neural]'")
    return import_module("sentence_transformers")


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the remarks and progress bars of other libraries, which would interrupt ours."""
    import_module("transformers.utils.logging").disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def open_cross_encoder(
    place: str | os.PathLike[str], *, max_length: int | None = None, local: bool = True
) -> Any:
    """Open a cross-encoder with one score, by folder, or by name if not `local`."""
    sentence_transformers = library()
    try:
        with quiet():
            model = sentence_transformers.CrossEncoder(
                os.fspath(place), model_kwargs={"use_safetensors": True}, local_files_only=local
            )
        saved = import_module("transformers").AutoConfig.from_pretrained(place, local_files_only=local)
    except Exception as error:  # damaged files raise anything
        raise InputError(f"the cross-encoder cannot be loaded: {one_line(error, 200)}", path=place) from None
    parts = [type(each).__name__ for each in model.modules()]
    if saved.architectures and not any(map(_is_scorer, saved.architectures)) and any(map(_is_scorer, parts)):
        raise InputError(
            "this encoder has not learned to score pairs, its scores would be drawn at random; train it "
            "first: evenrank train --ranker cross-encoder --set checkpoint=…",
            path=place,
        )
    if model.num_labels != 1:
        raise InputError(f"the model gives {model.num_labels} scores, not one", path=place)
    if max_length is not None:
        model.max_seq_length = max_length
    return model


def _is_scorer(name: str) -> bool:
    """Whether models of this class make a score of a pair."""
    return name.endswith("ForSequenceClassification")


def new_cross_encoder(checkpoint: str | os.PathLike[str] | None, *, max_length: int) -> tuple[Any, Model]:
    """Return a cross-encoder to be trained: an encoder, the mean of its vectors, one line to a score.

    A checkpoint that is a cross-encoder already, with one score, is taken as it is.
    """
    sentence_transformers = library()
    modules = import_module("sentence_transformers.sentence_transformer.modules")
    base = import_module("sentence_transformers.base.modules")
    identity = import_module("torch").nn.Identity
    model = find_model(checkpoint)
    local = model.source != "hub"
    try:
        config = import_module("transformers").AutoConfig.from_pretrained(model.place, local_files_only=local)
        if any(map(_is_scorer, config.architectures or ())) and config.num_labels == 1:
            return open_cross_encoder(model.place, max_length=max_length, local=local), model
        reader = base.Transformer(
            model.place,
            max_seq_length=max_length,
            model_kwargs={"use_safetensors": True, "local_files_only": local},
            processor_kwargs={"local_files_only": local},
            config_kwargs={"local_files_only": local},
        )
        width = reader.get_embedding_dimension()
        names = {"module_input_name": "sentence_embedding", "module_output_name": "scores"}
        line = base.Dense(width, 1, activation_function=identity(), **names)
        parts = [reader, modules.Pooling(width, pooling_mode="mean"), line]
        return sentence_transformers.CrossEncoder(modules=parts, activation_fn=identity()), model
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the model cannot be loaded: {one_line(error, 200)}", path=model.name) from None
