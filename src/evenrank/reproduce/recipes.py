"""The recipes by name: each runs a paper's experiment end to end, and tests what the paper claims."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from evenrank.reproduce.page import Page
    from evenrank.reproduce.settings import Settings
    from evenrank.reproduce.steps import Steps


class Recipe(NamedTuple):
    """A paper's experiment.

    Attributes
    ----------
    name, paper, asks
        What it is called, where it is from, and what it asks.
    function
        The module and the function that runs it.
    takes
        What can be given on the command line: of data, split, genders and runs.
    options
        What else can be set, in the file of settings or with --set, each with the value of the paper.
    quick
        Those that differ for a quick look.
    """

    name: str
    paper: str
    asks: str
    function: str
    takes: tuple[str, ...] = ("data", "split")
    options: Mapping[str, Any] = {}
    quick: Mapping[str, Any] = {}

    def run(self, settings: Settings, steps: Steps) -> Page:
        """Run it; `steps` keeps what has been done."""
        module, _, name = self.function.partition(":")
        work = getattr(import_module(f"evenrank.reproduce.{module}"), name)
        page: Page = work(settings.completed(self.options), steps)
        return page


_TRAINED: dict[str, Any] = {
    "train_split": "",
    "train_queries": 0,
    "ranker": "head",
    "training": [],
    "seeds": 3,
    "depth": 100,
    "pool": 1000,
    "adversary": [1.0],
    "lexicon": "rekabsaz2020",
    "about": "",
}
_QUICK: dict[str, Any] = {"ranker": "knrm", "training": ["epochs=1"], "seeds": 1, "adversary": []}

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "rank-bias",
            "Rekabsaz & Schedl 2020",
            "Do neural rankers lean more than BM25? (Tables 1 and 3)",
            "rank_bias:rank_bias_recipe",
            ("data", "split", "genders", "runs"),
            {"about": ""},
        ),
        Recipe(
            "gsr-toy",
            "Fabris et al. 2020",
            "GSR of systems whose stereotypes are known (Figures 1, 4 to 6)",
            "gsr_toy:gsr_toy_recipe",
            (),
            {"draws": 10_000, "vectors": ""},
            {"draws": 2000},
        ),
        Recipe(
            "gsr",
            "Fabris et al. 2020",
            "Do rankers with word vectors reinforce stereotypes? (Tables 2 and 3, Figures 7 to 12)",
            "stereotypes:gsr_recipe",
            ("data", "split", "runs"),
            {
                "vectors": "",
                "second": "",
                "stop_words": "glasgow",
                "depth": 1000,
                "distance_depth": 100,
                "margin": 0.2,
                "bins": 0,
            },
            {"depth": 100},
        ),
        Recipe(
            "disparities",
            "Seyedsalehi et al. 2022",
            "Are male queries served better, and do balanced judgments help? (Table 2, Figures 1 and 2)",
            "disparities:disparities_recipe",
            ("data", "split", "genders", "runs"),
            {
                "systems": ["bm25"],
                "depth": 100,
                "bins": 9,
                "train_split": "",
                "rankers": ["head"],
                "seeds": 3,
                "writer": "extractive",
                "sample": 0,
                "training": [],
            },
            {"seeds": 1},
        ),
        Recipe(
            "rankers",
            "Rekabsaz & Schedl 2020",
            "Effectiveness and bias of all rankers that need no training",
            "rankers:rankers_recipe",
            options={"vectors": "", "model": "", "dense": True, "depth": 1000},
            quick={"dense": False, "depth": 100},
        ),
        Recipe(
            "variants",
            "Kopeinik et al. 2023, Ratz et al. 2024",
            "Do neutral queries find what their male or female forms find?",
            "variants:variants_recipe",
            options={
                "triples": "",
                "results": "",
                "rankers": ["bm25", "qld", "tfidf", "bm25+rm3"],
                "vectors": "",
                "at": 10,
            },
            quick={"rankers": ["bm25", "qld"]},
        ),
        Recipe(
            "tradeoff",
            "Bigdeli, thesis, Section 4.1; later work",
            "How much bias can be removed before usefulness suffers, and by which method?",
            "tradeoff:tradeoff_recipe",
            ("data", "split", "runs"),
            {
                "bias": "abs(ARaB@10)",
                "utility": "nDCG@10",
                "methods": ["constrain", "interpolate", "penalty", "feedback"],
                "levels": [0.75, 0.5, 0.25],
                "depth": 100,
            },
            {"methods": ["constrain", "interpolate"], "levels": [0.5]},
        ),
        Recipe(
            "representation",
            "Lipani et al. 2021",
            "Do the top results show groups as often as they should?",
            "representation:representation_recipe",
            ("data",),
            {"at": 10},
        ),
        Recipe(
            "query-gender",
            "Bigdeli, thesis, Section 3.1",
            "How well can the gender of a query be predicted? (Table 3.2)",
            "query_gender:query_gender_recipe",
            ("data",),
            {"classifiers": ["lexicon", "svm"], "vectors": "", "seeds": 3},
            {"seeds": 1},
        ),
        Recipe(
            "judgments",
            "Bigdeli, thesis, Section 3.1",
            "Are judged documents of female and male queries alike? (Figures 3.1–3.6)",
            "judgments:judgments_recipe",
            ("data", "split", "genders"),
        ),
        Recipe(
            "feedback",
            "Bigdeli, thesis, Section 4.1",
            "Does feedback reduce bias, and at what cost? (Tables 4.1–4.4)",
            "feedback:feedback_recipe",
            options={"documents": 10, "terms": 10, "alpha": 0.5},
        ),
        Recipe(
            "debiased-judgments",
            "Bigdeli, thesis, Section 3.2",
            "Do generated judgments whose documents read alike reduce bias? (Tables 3.6–3.12)",
            "debiased_judgments:debiased_judgments_recipe",
            ("data", "split", "genders", "runs"),
            {
                **_TRAINED,
                "ratios": [0.05, 0.15, 0.25, 0.35],
                "chosen": 0.25,
                "writer": "extractive",
                "sample": 0,
            },
            {**_QUICK, "ratios": [0.25]},
        ),
        Recipe(
            "negatives",
            "Bigdeli, thesis, Section 4.2",
            "Do one-sided negatives reduce bias, and at what cost? (Tables 4.6–4.10, Figures 4.8–4.11)",
            "negatives:negatives_recipe",
            ("data", "split", "runs"),
            options={
                **_TRAINED,
                "strengths": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
                "chosen": 0.6,
                "negatives": 20,
            },
            quick={**_QUICK, "strengths": [0.0, 0.6]},
        ),
    )
}
