"""Encoding documents for the dense ranker, against calling sentence-transformers directly."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.corpus import passages
from benchmarks.timing import Row, against
from evenrank.rankers.dense import dense
from evenrank.rankers.indexing import index

_CHARACTERS = 100_000


def rows() -> Iterator[Row]:
    if find_spec("sentence_transformers") is None:
        return
    texts = [text[: 40 + 37 * i % 700] for i, text in enumerate(passages(_CHARACTERS))]
    with tempfile.TemporaryDirectory() as folder:
        made = index({str(i): text for i, text in enumerate(texts)}, Path(folder) / "idx")
        ranker = dense(made)
        model = ranker.encoder.transformer

        def ours() -> None:
            shutil.rmtree(made.path / "vectors", ignore_errors=True)
            ranker.documents()

        def peer() -> None:
            model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)

        yield against(
            f"encoding {len(texts)} passages, into the store beside the index",
            "SentenceTransformer.encode, all at once",
            0.9,
            peer,
            ours,
            model=ranker.encoder.model.name,
            source=ranker.encoder.model.source,
        )
