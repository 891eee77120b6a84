"""Cross-encoders and bi-encoders of sentence-transformers: finding them, making and opening them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from evenrank.data.files import one_line
from evenrank.errors import InputError
from evenrank.vectors.encoders import Model, find_model


def library() -> Any:
    """The module sentence_transformers, quiet; what to install if it is not there."""
    try:
        result = import_module("sentence_transformers")
        logging = import_module("transformers.utils.logging")
    except ImportError:
        raise InputError(
            "this needs sentence-transformers, which is not installed: pip install 'evenrank[neural]'"
        ) from None
    logging.disable_progress_bar()  # loading takes a moment; the work has progress of its own
    return result


def open_cross_encoder(
    place: str | os.PathLike[str], *, max_length: int | None = None, local: bool = True
) -> Any:
    """A cross-encoder with one score, by folder, or by name if not `local`; weights as safetensors only."""
    sentence_transformers = library()
    try:
        config = import_module("transformers").AutoConfig.from_pretrained(place, local_files_only=local)
        names = getattr(config, "architectures", None) or ()
        with _quiet():
            result = sentence_transformers.CrossEncoder(
                os.fspath(place), model_kwargs={"use_safetensors": True}, local_files_only=local
            )
    except Exception as error:  # damaged files raise anything
        raise InputError(f"the cross-encoder cannot be loaded: {one_line(error, 200)}", path=place) from None
    if (
        names
        and not any(map(_is_scorer, names))
        and any(_is_scorer(type(each).__name__) for each in result.modules())
    ):
        raise InputError(
            "this encoder has not learned to score pairs, its scores would be drawn at random; train it "
            "first: evenrank train --ranker cross-encoder --set checkpoint=…",
            path=place,
        )
    if result.num_labels != 1:
        raise InputError(f"the model gives {result.num_labels} scores, not one", path=place)
    if max_length is not None:
        result.max_seq_length = max_length
    return result


def _is_scorer(name: str) -> bool:
    """Whether models of this class make a score of a pair."""
    return name.endswith("ForSequenceClassification")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's table of weights that are missing, which is told in one line here."""
    logging = import_module("transformers.utils.logging")
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def new_cross_encoder(checkpoint: str | os.PathLike[str] | None, *, max_length: int) -> tuple[Any, Model]:
    """A cross-encoder to be trained: an encoder, the mean of its vectors, one line to a score.

    A checkpoint that is a cross-encoder already, with one score, is taken as it is.
    """
    sentence_transformers = library()
    modules = import_module("sentence_transformers.sentence_transformer.modules")
    base = import_module("sentence_transformers.base.modules")
    torch = import_module("torch")
    model = find_model(checkpoint)
    local = model.source != "hub"
    try:
        config = import_module("transformers").AutoConfig.from_pretrained(model.place, local_files_only=local)
        names = getattr(config, "architectures", None) or [""]
        if _is_scorer(names[0]) and config.num_labels == 1:
            return open_cross_encoder(model.place, max_length=max_length, local=local), model
        reader = base.Transformer(
            model.place,
            max_seq_length=max_length,
            model_kwargs={"use_safetensors": True, "local_files_only": local},
            processor_kwargs={"local_files_only": local},
            config_kwargs={"local_files_only": local},
        )
        width = reader.get_embedding_dimension()
        mean = modules.Pooling(width, pooling_mode="mean")
        line = base.Dense(
            width,
            1,
            activation_function=torch.nn.Identity(),
            module_input_name="sentence_embedding",
            module_output_name="scores",
        )
        built = sentence_transformers.CrossEncoder(
            modules=[reader, mean, line], activation_fn=torch.nn.Identity()
        )
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the model cannot be loaded: {one_line(error, 200)}", path=model.name) from None
    return built, model
