"""RaB and ARaB against the published Python: 4 cut-offs, 3 magnitudes, a run of a million rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.timing import Row, against
from evenrank.data.runs import read_run

_CUTOFFS = (5, 10, 20, 30)
_MAGNITUDES = ("tf", "count", "boolean")
_SHAPES = ((10_000, 100), (1_000, 1_000))


def rows() -> Iterator[Row]:
    for queries, depth in _SHAPES:
        yield _row(queries, depth)


def _row(queries: int, depth: int) -> Row:
    rng = np.random.default_rng(7)
    size = queries * depth
    counts = rng.poisson((0.4, 0.6), (size, 2))
    ids = [str(i) for i in range(size)]
    logs = np.log1p(counts)
    frame = pl.DataFrame(
        {
            "doc_id": ids,
            "tokens": rng.integers(20, 100, size),
            "female": counts[:, 0],
            "male": counts[:, 1],
            "female_logwords": logs[:, 0],
            "male_logwords": logs[:, 1],
        }
    )
    tally = er.Tally.of(frame)  # checked once, at the door
    run = read_run(
        pl.DataFrame(
            {
                "query_id": np.repeat([str(q) for q in range(queries)], depth),
                "doc_id": rng.permuted(ids),
                "score": np.tile(np.arange(depth, 0, -1.0), queries),
            }
        )
    )
    measures = [m(magnitude=kind) @ t for m in (er.RaB, er.ARaB) for kind in _MAGNITUDES for t in _CUTOFFS]
    ranked = dict(run.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    values = {
        doc: ((f > 0, m > 0), (f, m), (np.log(f + 1), np.log(m + 1)))
        for doc, f, m in zip(ids, counts[:, 0].tolist(), counts[:, 1].tolist(), strict=True)
    }
    return against(
        f"RaB and ARaB, {queries:,} queries × {depth:,} documents",
        "published Python (a list of values per query, np.mean of each prefix)",
        100,
        lambda: _published(ranked, values),
        lambda: er.measure(run, measures, tally=tally, confidence=None),
        rows=size,
        measures=len(measures),
    )


def _published(ranked: dict[str, list[str]], values: dict[str, tuple]) -> dict[str, float]:
    """The algorithm of the released code: the pairs of a query's documents, then means of prefixes."""
    found: dict[str, list[float]] = {}
    for docs in ranked.values():
        for variant, name in enumerate(_MAGNITUDES):
            pairs = [values[doc][variant] for doc in docs[: max(_CUTOFFS)]]
            female, male = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            for cutoff in _CUTOFFS:
                rab = np.mean(male[:cutoff]) - np.mean(female[:cutoff])
                found.setdefault(f"RaB {name} {cutoff}", []).append(rab)
                averages = [
                    (np.mean(male[: x + 1]), np.mean(female[: x + 1])) for x in range(min(cutoff, len(pairs)))
                ]
                arab = np.mean([a[0] for a in averages]) - np.mean([a[1] for a in averages])
                found.setdefault(f"ARaB {name} {cutoff}", []).append(arab)
    return {name: float(np.mean(each)) for name, each in found.items()}
