"""Pre-trained encoders and their tokenizers: opening them, and keeping the tokenizer with a model."""

from __future__ import annotations

import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenrank.data.files import one_line
from evenrank.errors import InputError
from evenrank.vectors.encoders import Model


def require_torch() -> None:
    """Say what to install where a package is missing."""
    for package in ("torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"the transformer classifier needs {package}, which is not installed: "
                "pip install 'evenrank[neural,offline]'"
            )


def open_encoder(model: Model) -> Any:
    """The pre-trained encoder; weights as safetensors only."""
    logging = import_module("transformers.utils.logging")
    transformers = import_module("transformers")
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # it lists weights that are not used, which is no news here
    logging.disable_progress_bar()
    try:
        return transformers.AutoModel.from_pretrained(
            model.place, use_safetensors=True, local_files_only=model.source != "hub"
        )
    except Exception as error:  # damaged files raise anything
        raise InputError(f"the encoder cannot be loaded: {one_line(error)[:200]}", path=model.name) from None
    finally:
        logging.set_verbosity(before)


def open_tokenizer(place: str, name: str, *, local: bool = True) -> Any:
    """The tokenizer in a folder, or, if not `local`, on the hub."""
    transformers = import_module("transformers")
    try:
        found = transformers.AutoTokenizer.from_pretrained(place, local_files_only=local)
    except Exception as error:
        raise InputError(f"the tokenizer cannot be loaded: {one_line(error)[:200]}", path=name) from None
    if not found.is_fast:
        raise InputError("the encoder has no fast tokenizer, which is needed to find words; choose another")
    return found


def tokenizer_files(tokenizer: Any) -> dict[str, bytes]:
    """What :func:`open_tokenizer` needs, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}
