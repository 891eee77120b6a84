"""Training of rankers: examples out of a first stage, the loop of the small models, transformers, a card.

================ ================================================================================
dataset.py       pairs and negatives, dev queries, RR@10 on them; the same with the other gender
fitting.py       the loop of the word-interaction models and the head
losses.py        what is minimised, with or without a look at bias
checkpoint.py    the folder that an unfinished training is resumed from
adversary.py     a gradient that hides gender, and the probe that tells whether it is hidden
transformers.py  cross- and bi-encoders, by the trainers of sentence-transformers
card.py          what the dev queries say (hybrids too), and the card
trainer.py       `train_ranker`: all of it, to the folder of a model
evaluator.py     `BiasEvaluator`: our measures during anyone's own training
================ ================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenrank.training.trainer import Trained, train_ranker

if TYPE_CHECKING:
    from evenrank.training.evaluator import BiasEvaluator

__all__ = ["BiasEvaluator", "Trained", "train_ranker"]


def __getattr__(name: str) -> Any:
    if name == "BiasEvaluator":  # it needs sentence-transformers, which takes seconds to import
        from evenrank.training.evaluator import BiasEvaluator

        return BiasEvaluator
    raise AttributeError(f"module 'evenrank.training' has no attribute {name!r}")
