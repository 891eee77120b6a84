"""What was chosen on dev queries, and how quick the transformers are."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.neural_units import (
    Unit,
    collection,
    data,
    drawn,
    home,
    ready,
    say,
    trained,
)  # fmt: skip

RATES = (0.001, 0.003, 0.01, 0.03)
STOPS = ((8, 2), (15, 3))
"""Epochs at most, and how many without a better dev RR@10 end the training."""
_OF_KERNELS = ((0.001, 0.001), (0.01, 0.001), (0.01, 0.0003), (0.01, 0.0001))
_OF_PICTURES = ((0.001, 0.001), (0.001, 0.0001), (0.003, 0.0003))
RATES_OF_WORDS = {
    "knrm": _OF_KERNELS,
    "convknrm": _OF_KERNELS,
    "pacrr": _OF_PICTURES,
    "matchpyramid": _OF_PICTURES,
}
"""Learning rates of a model and of its word vectors that are tried."""
GLOVE = "glove-100d.bin.gz"


def drmm_settings() -> dict[str, Any]:
    """DRMM's learning rate, epochs and patience by RR@10 of squad's dev queries; no test query is looked at.

    Each rate is trained once for the most epochs, alone and with the first stage, with GloVe and seed 0.
    When a rule would have stopped is read off the epochs: up to there, training is the same.
    """
    tried: list[dict[str, Any]] = []
    for rate in RATES:
        curves = {stage: drmm_curve(rate, stage) for stage in ("with", "alone")}
        for epochs, patience in STOPS:
            dev = {stage: stopped(values, epochs, patience) for stage, values in curves.items()}
            mean = float(np.mean(list(dev.values())))
            tried.append(
                {"rate": rate, "epochs": epochs, "patience": patience, "dev RR@10": dev, "mean": mean}
            )
    best = max(tried, key=lambda each: each["mean"])
    return {"tried": tried, "chosen": {key: best[key] for key in ("rate", "epochs", "patience")}}


def drmm_curve(rate: float, stage: str) -> list[float]:
    """Dev RR@10 after each epoch."""
    longest = max(epochs for epochs, _ in STOPS)
    return curve(
        "drmm", f"rate-{rate:g}-{stage}", rate=rate, epochs=longest, patience=longest,
        vectors=GLOVE, with_first_stage=stage == "with",
    )  # fmt: skip


def interaction_settings() -> dict[str, Any]:
    """Learning rates of the other models and of their word vectors, by RR@10 of squad's dev queries.

    Each model is trained alone, from GloVe and from random vectors, with seed 0; no test query is looked at.
    """
    found: dict[str, Any] = {}
    for kind, pairs in RATES_OF_WORDS.items():
        tried: list[dict[str, Any]] = []
        for rate, words in pairs:
            dev = {
                vectors: max(
                    curve(
                        kind, f"rate-{rate:g}-words-{words:g}-{vectors}", rate=rate, embedding_rate=words,
                        vectors=GLOVE if vectors == "glove" else None,
                    )
                )
                for vectors in ("glove", "random")
            }  # fmt: skip
            mean = float(np.mean(list(dev.values())))
            tried.append({"rate": rate, "embedding_rate": words, "dev RR@10": dev, "mean": mean})
        best = max(tried, key=lambda each: each["mean"])
        found[kind] = {"tried": tried, "chosen": {key: best[key] for key in ("rate", "embedding_rate")}}
    return found


def curve(kind: str, name: str, *, vectors: str | None, **settings: Any) -> list[float]:
    """Dev RR@10 of a model on squad after each epoch, with seed 0; kept, so that it is trained once."""
    from evenrank.training.trainer import train_prepared

    folder = home() / "curves" / f"squad--{kind}-{name}"
    kept = folder.with_name(f"{folder.name}.json")
    if not kept.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        found = train_prepared(
            kind, ready("squad"), folder, seed=0, hybrid=False, document_words=64,
            vectors=None if vectors is None else data() / "vectors" / vectors,
            say=say(Unit("squad", f"{kind}, {name}")), **settings,
        )  # fmt: skip
        kept.write_text(json.dumps([each["dev RR@10"] for each in found.metrics["epochs"]]))
        shutil.rmtree(folder)
    return [float(each) for each in json.loads(kept.read_text())]


def stopped(values: list[float], epochs: int, patience: int) -> float:
    """The best value of a curve up to where training would have ended."""
    best, waited = -1.0, 0
    for value in values[:epochs]:
        best, waited = (value, 0) if value > best else (best, waited + 1)
        if waited >= patience:
            break
    return best


def encoding_speed() -> dict[str, Any]:
    """Passages of wiki that MiniLM encodes in a CPU-second: as they come by torch, and as it is done here."""
    from evenrank.rankers.dense import Encoder

    _, _, index, first = collection("wiki")
    ids = np.random.default_rng(1).choice(first["doc_id"].unique().sort().to_numpy(), 256, replace=False)
    found = index.docs.texts(ids.tolist())
    texts = [found[each] for each in ids]
    plain = Encoder(None).transformer

    def as_they_come() -> Any:
        parts = [texts[start : start + 32] for start in range(0, len(texts), 32)]
        return np.concatenate([plain.encode(part, normalize_embeddings=True) for part in parts])

    speeds, cosine = {}, {}
    exact, speeds["torch, as they come"] = _timed(as_they_come, len(texts))
    for backend in ("torch", "onnx", "onnx-int8"):
        encoder = Encoder(None, backend=backend)  # type: ignore[arg-type]
        encoder.documents(["once, to open it"])
        made, speed = _timed(lambda use=encoder: use.documents(texts), len(texts))
        speeds[f"{backend}, by length"] = speed
        cosine[backend] = float((made * exact).sum(1).mean())
    return {"passages": len(texts), "per CPU-second": speeds, "mean cosine with torch": cosine}


def pair_speed() -> dict[str, Any]:
    """Pairs a CPU-second of squad's cross-encoder; how alike orders are: Kendall's τ, mean of queries."""
    from scipy.stats import kendalltau

    from evenrank.rankers.neural.candidates import candidates
    from evenrank.rankers.neural.saved import open_ranker

    _, test, index, first = collection("squad")
    queries = drawn(test.queries, 50)
    run = first.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    pairs = candidates(run, index.docs, queries, depth=20)
    folder, _ = trained(Unit("squad", "cross-encoder", 0))
    speeds, scores = {}, {}
    for backend in ("torch", "onnx", "onnx-int8"):
        reranker = open_ranker(folder, backend=backend).reranker  # type: ignore[arg-type]
        reranker.score(pairs.rows(np.arange(2)))
        scores[backend], speeds[backend] = _timed(lambda use=reranker: use.score(pairs), len(pairs))
    orders: dict[str, Any] = {}
    for backend in ("onnx", "onnx-int8"):
        taus = []
        for query in np.unique(pairs.query):
            own = pairs.query == query
            taus.append(kendalltau(scores["torch"][own], scores[backend][own]).statistic)
        same = pairs.run(scores["torch"]).select("query_id", "doc_id").equals(
            pairs.run(scores[backend]).select("query_id", "doc_id")
        )  # fmt: skip
        orders[backend] = {"tau": float(np.mean(taus)), "same order": same}
    return {"queries": len(queries), "pairs": len(pairs), "per CPU-second": speeds, "against torch": orders}


def _timed(work: Callable[[], Any], count: int) -> tuple[Any, float]:
    """What comes of it, and how many were done in a CPU-second."""
    started = time.process_time()
    found = work()
    return found, round(count / (time.process_time() - started), 1)


EXTRAS: dict[str, Callable[[], dict[str, Any]]] = {
    "drmm settings": drmm_settings,
    "interaction settings": interaction_settings,
    "encoding speed": encoding_speed,
    "pair speed": pair_speed,
}
