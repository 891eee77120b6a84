"""Bi-encoders and cross-encoders by onnxruntime: the same ranking as by torch, in less time.

A model is exported once, into the user's cache; the file goes by the fingerprint of its weights. ``onnx``
has the numbers of torch up to rounding. ``onnx-int8`` holds the weights of each channel as 8-bit integers:
quicker, and no longer quite the same ranking. 16-bit floats are not offered: without hardware for them they
are slower.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenrank.data.files import cache_dir, one_line
from evenrank.errors import InputError, check_choice
from evenrank.rankers.neural.transformers import quiet

Backend = Literal["torch", "onnx", "onnx-int8"]


def check_backend(backend: str) -> None:
    """Refuse a backend that there is not, or that is not installed."""
    check_choice("backend", backend, get_args(Backend))
    for package in ("onnxruntime", "onnx", "onnxscript"):
        if backend != "torch" and find_spec(package) is None:
            raise InputError(f"backend {backend} needs {package}: pip install 'evenrank[onnx]'")


class OnnxModel:
    """A model of sentence-transformers whose numbers onnxruntime computes.

    It has what :class:`~evenrank.rankers.dense.Encoder` and the cross-encoder ask of one: ``encode_query``,
    ``encode_document``, ``predict``; prompts and tokens are still made by the model itself.

    Parameters
    ----------
    model
        A ``SentenceTransformer`` or ``CrossEncoder``.
    fingerprint
        Of its weights.
    backend
        ``onnx`` or ``onnx-int8``.
    """

    def __init__(self, model: Any, fingerprint: str, backend: Backend) -> None:
        self._model = model
        self._output = "scores" if hasattr(model, "predict") else "sentence_embedding"
        model.to("cpu")  # where onnxruntime computes, and the export takes its sample
        path = exported(model, fingerprint, self._output, small=backend == "onnx-int8")
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = import_module("torch").get_num_threads()
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode_query(self, texts: Sequence[str], **options: Any) -> npt.NDArray[np.float32]:
        """Return the vectors of queries."""
        return self._encoded(texts, "query", **options)

    def encode_document(self, texts: Sequence[str], **options: Any) -> npt.NDArray[np.float32]:
        """Return the vectors of documents."""
        return self._encoded(texts, "document", **options)

    def predict(self, pairs: Sequence[tuple[str, str]], batch_size: int = 64, **options: Any) -> Any:
        """Return the scores of pairs."""
        lengths = [len(query) + len(document) for query, document in pairs]
        return self._run(list(pairs), lengths, batch_size, None).reshape(-1)

    def _encoded(
        self,
        texts: Sequence[str],
        kind: str,
        batch_size: int = 32,
        normalize_embeddings: bool = False,
        **options: Any,
    ) -> npt.NDArray[np.float32]:
        prompt = (getattr(self._model, "prompts", None) or {}).get(kind) or None
        result = self._run(list(texts), [len(text) for text in texts], batch_size, prompt)
        if normalize_embeddings:
            result = result / np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-12)
        return result.astype(np.float32)

    def _run(self, inputs: list[Any], lengths: list[int], batch: int, prompt: str | None) -> Any:
        order = np.argsort(lengths, kind="stable")[::-1]
        parts: list[Any] = [None] * len(inputs)
        for start in range(0, len(order), batch):
            some = order[start : start + batch]
            read = self._model.preprocess([inputs[i] for i in some], prompt=prompt)
            built = self._session.run([self._output], {name: read[name].numpy() for name in self._inputs})[0]
            for place, row in zip(some, built, strict=True):
                parts[place] = row
        width = (0, 1) if self._output == "scores" else (0, int(self._model.get_embedding_dimension()))
        return np.stack(parts) if parts else np.empty(width, np.float32)


def exported(model: Any, fingerprint: str, output: str, *, small: bool) -> Path:
    """Return the file of a model for onnxruntime, written now if it is not there."""
    folder = cache_dir() / "onnx" / fingerprint
    whole, quantised = folder / "model.onnx", folder / "model-int8.onnx"
    if not whole.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write(model, output, whole)
    if small and not quantised.is_file():
        quantization = import_module("onnxruntime.quantization")
        part = quantised.with_name(f".{quantised.name}.{os.getpid()}.tmp")
        with quiet(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            quantization.quantize_dynamic(
                whole, part, per_channel=True, weight_type=quantization.QuantType.QInt8
            )
        part.rename(quantised)
    return quantised if small else whole


def _write(model: Any, output: str, path: Path) -> None:
    """Export all modules of a model, from tokens to the vector or score."""
    torch = import_module("torch")
    sample = model.preprocess([("a query", "a document of words")] if output == "scores" else ["a document"])
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in sample]

    class Whole(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(list(model))

        def forward(self, *tensors: Any) -> Any:
            features = dict(zip(names, tensors, strict=True))
            for part in self.parts:
                features = part(features)
            return features[output]

    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    ones = tuple(sample[name].repeat(2, 1) for name in names)
    free = {name: {0: "texts", 1: "tokens"} for name in names}
    try:
        with torch.no_grad(), quiet(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            torch.onnx.export(
                Whole().eval(), ones, os.fspath(part), input_names=names, output_names=[output],
                dynamic_axes=free | {output: {0: "texts"}}, opset_version=17, dynamo=False,
            )  # fmt: skip
        part.rename(path)
    except Exception as error:
        raise InputError(f"the model cannot be exported to ONNX: {one_line(error, 200)}") from None
    finally:
        part.unlink(missing_ok=True)
