"""Training of rankers: examples out of a first stage, the loop of the small models, transformers.

================ ================================================================================
dataset.py       pairs and negatives, dev queries, RR@10 on them
losses.py        what is minimised, with or without a look at bias
adversary.py     a gradient that hides gender, and the probe that tells whether it is hidden
fitting.py       settings, and the loop of the word-interaction models and the head
transformers.py  cross- and bi-encoders, by the trainers of sentence-transformers
trainer.py       `train_ranker`: all of it, to the folder of a model
evaluator.py     `BiasEvaluator`: our measures during anyone's own training
================ ================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenrank.training.trainer import train_ranker

if TYPE_CHECKING:
    from evenrank.training.evaluator import BiasEvaluator

__all__ = ["BiasEvaluator", "train_ranker"]


def __getattr__(name: str) -> Any:
    if name == "BiasEvaluator":  # it needs sentence-transformers, which takes seconds to import
        from evenrank.training.evaluator import BiasEvaluator

        return BiasEvaluator
    raise AttributeError(f"module 'evenrank.training' has no attribute {name!r}")
