"""What a re-ranker is given: queries, documents, the pairs of them that a first stage found; their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.read import path_of, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.rankers.base import Progress, check_depth
from evenrank.stats.rounding import level_ties

if TYPE_CHECKING:
    from torch import Tensor, nn

INTERACTION = ("drmm", "matchpyramid", "knrm", "convknrm", "pacrr")
"""The word-interaction models."""
KINDS = (*INTERACTION, "cross-encoder", "bi-encoder", "head")
"""What can be trained."""
Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a query and a document. Each text is held once, and pairs refer to it by its row.

    Attributes
    ----------
    query_ids, queries
        The queries that have candidates, and their texts.
    doc_ids, documents
        The distinct documents, and their texts.
    query, document
        For each pair, the rows of its query and its document. The pairs of a query follow one another.
    first
        The score of each pair in the first stage.
    """

    query_ids: list[str]
    queries: list[str]
    doc_ids: list[str]
    documents: list[str]
    query: Ints
    document: Ints
    first: Doubles

    def __len__(self) -> int:
        return len(self.query)

    def take(self, rows: Ints) -> Candidates:
        """Return these pairs with their texts only."""
        queries, query = np.unique(self.query[rows], return_inverse=True)
        documents, document = np.unique(self.document[rows], return_inverse=True)
        return Candidates(
            [self.query_ids[i] for i in queries],
            [self.queries[i] for i in queries],
            [self.doc_ids[i] for i in documents],
            [self.documents[i] for i in documents],
            query,
            document,
            self.first[rows],
        )

    def run(self, scores: Doubles) -> pl.DataFrame:
        """Return a run table of the pairs with these scores."""
        return read_run(
            pl.DataFrame(
                {
                    "query_id": pl.Series(self.query_ids, dtype=pl.String).gather(self.query),
                    "doc_id": pl.Series(self.doc_ids, dtype=pl.String).gather(self.document),
                    "score": level_ties(np.asarray(scores, np.float64), self.query),
                }
            )
        )


def candidates(run: Any, docs: Any, queries: Any, *, depth: int | None = None) -> Candidates:
    """Return the pairs of a run with their texts.

    Parameters
    ----------
    run
        The first stage; anything :func:`evenrank.data.runs.read_run` takes.
    docs
        The collection; one pass over it collects the texts.
    queries
        The queries' texts. A query of the run that is not among them is an error; one without candidates
        is left out.
    depth
        Documents of each query that are looked at, from the top; all if not given.
    """
    table = read_run(run)
    if depth is not None:
        check_depth(depth)
        table = table.filter(pl.col("rank") <= depth)
    texts = dict(read_queries(queries).iter_rows())
    query_ids = table["query_id"].unique(maintain_order=True).to_list()
    doc_ids = table["doc_id"].unique(maintain_order=True).to_list()
    if missing := [each for each in query_ids if each not in texts]:
        raise InputError(
            f"{len(missing):,} of the {len(query_ids):,} queries of the run have no text, such as "
            f"{missing[0]!r}; give the queries that belong to it",
            path=path_of(run),
        )
    if blank := [each for each in query_ids if not texts[each].strip()]:
        raise InputError(f"query {blank[0]!r} is empty; leave it out", path=path_of(queries))
    documents = open_docs(docs).texts(doc_ids)
    if missing := [each for each in doc_ids if each not in documents]:
        raise InputError(
            f"the collection lacks {len(missing):,} of the {len(doc_ids):,} documents that are ranked or "
            f"named, such as {missing[0]!r}; check that they belong together",
            path=path_of(run),
        )
    return Candidates(
        query_ids,
        [texts[each] for each in query_ids],
        doc_ids,
        [documents[each] for each in doc_ids],
        _places(table["query_id"], query_ids),
        _places(table["doc_id"], doc_ids),
        table["score"].to_numpy(),
    )


def _places(column: pl.Series, known: list[str]) -> Ints:
    """Return where each id stands among the known ones."""
    return column.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64)


_SCORED = 512  # pairs scored at a time


class Pairs(Protocol):
    """Candidates in the form that a model reads."""

    def size(self, rows: Ints) -> Ints: ...

    def batch(self, rows: Ints) -> tuple[Tensor, ...]: ...


def batch_for(module: nn.Module, pairs: Pairs, rows: Ints) -> tuple[Tensor, ...]:
    """Return these pairs as the arguments of a module, on its device."""
    device = next(module.parameters()).device
    return tuple(each.to(device) for each in pairs.batch(rows))


def scored(module: nn.Module, pairs: Pairs, rows: Ints, progress: Progress | None = None) -> npt.NDArray[Any]:
    """Return the scores of these pairs; worked on in batches of like length."""
    import torch

    module.eval()
    order = np.argsort(pairs.size(rows), kind="stable")
    values = np.empty(len(rows), np.float64)
    with torch.no_grad():
        for start in range(0, len(rows), _SCORED):
            some = order[start : start + _SCORED]
            values[some] = module(*batch_for(module, pairs, rows[some])).cpu().double().numpy()
            if progress:
                progress(min(start + _SCORED, len(rows)), len(rows))
    return values


@dataclass(frozen=True)
class FirstStage:
    """How first-stage scores are scaled: less their mean among training candidates, by their deviation."""

    mean: float
    deviation: float

    @classmethod
    def among(cls, scores: npt.NDArray[np.float64]) -> FirstStage:
        """Return mean and deviation of these."""
        return cls(float(scores.mean()), float(scores.std()) or 1.0)

    def of(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Return the scores on this scale."""
        return ((scores - self.mean) / self.deviation).astype(np.float32)


class SmallReranker:
    """A module of ours that scores pairs, on a GPU if there is one, with the scale of the first stage."""

    def __init__(self, name: str, module: Any, scale: FirstStage, facts: Mapping[str, Any]) -> None:
        import torch

        self.name = name
        self.module = module.to("cuda" if torch.cuda.is_available() else "cpu")
        self.scale = scale
        self.facts = dict(facts)

    def describe(self) -> dict[str, Any]:
        """Return name, settings and facts of the training."""
        return {"name": self.name, "settings": asdict(self.module.settings), **self.facts}

    def _files(self, name: str, content: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the weights as safetensors, and as JSON what belongs to them."""
        from safetensors.torch import save

        weights = {key: each.contiguous() for key, each in self.module.state_dict().items()}
        rest = {**content, "first stage": asdict(self.scale)}
        return {"weights.safetensors": save(weights), name: json_bytes(rest)}


def json_bytes(content: Any) -> bytes:
    """Return the content of a JSON file."""
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
