"""The recipes by name: each runs a paper's experiment end to end, and tests what the paper claims."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from evenrank.reproduce.page import Page, Steps
from evenrank.reproduce.settings import Settings


class Recipe(NamedTuple):
    """A paper's experiment: where it is from, what it asks, and the function that runs it."""

    name: str
    paper: str
    asks: str
    function: str

    def run(self, settings: Settings, steps: Steps) -> Page:
        """Run it; `steps` keeps what has been done."""
        module, _, name = self.function.partition(":")
        work: Callable[[Settings, Steps], Page] = getattr(import_module(f"evenrank.reproduce.{module}"), name)
        return work(settings, steps)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "rank-bias",
            "Rekabsaz & Schedl 2020",
            "Do neural rankers lean more than BM25? (Tables 1 and 3)",
            "rank_bias:rank_bias_recipe",
        ),
        Recipe(
            "gsr-toy",
            "Fabris et al. 2020",
            "GSR of systems whose stereotypes are known",
            "gsr_toy:gsr_toy_recipe",
        ),
        Recipe(
            "representation",
            "Lipani et al. 2021",
            "Does the top of result lists show groups as often as it should?",
            "representation:representation_recipe",
        ),
        Recipe(
            "judgments",
            "Bigdeli, thesis, Section 3.1",
            "Are judged documents of female and male queries alike? (Figures 3.1–3.6)",
            "judgments:judgments_recipe",
        ),
        Recipe(
            "feedback",
            "Bigdeli, thesis, Section 4.1",
            "Less bias by relevance feedback, at what cost? (Tables 4.1–4.4)",
            "feedback:feedback_recipe",
        ),
    )
}
