"""The papers' experiments on all collections, one page each, and the overview: `make evidence-reproduce`.

    python -m benchmarks.reproduce_evidence            all pages that have not been made, then the overview
    python -m benchmarks.reproduce_evidence gsr        those whose names begin so
    python -m benchmarks.reproduce_evidence --again    also those that have been made
    python -m benchmarks.reproduce_evidence --tables   the tables again, from what has been made

A page is what `evenrank reproduce RECIPE --settings FILE.toml` makes. Its steps are kept in the folder
``evidence/reproduce`` of the cache: what was interrupted goes on where it was. Runs of trained rankers are
those of `make evidence-neural` and `make evidence-training`; a page that needs one that is not there is not
made. docs/reproduce/pages has
the pages, docs/evidence/reproduce.json what each of them took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import overview
from benchmarks.corpus import shared
from benchmarks.neural_units import INTERACTION, Unit, run_path
from benchmarks.neural_units import home as neural_home
from benchmarks.pages import DOCS, committed_source, fill, table, write_evidence
from benchmarks.small_wiki import small_wiki
from benchmarks.training_data import LAMBDAS
from benchmarks.training_evidence import Unit as Trained
from benchmarks.training_evidence import run_path as training_run
from evenrank.reproduce.recipes import RECIPES
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Spent, Steps
from evenrank.text.cache import root

_JSON = DOCS / "evidence" / "reproduce.json"
_GLOVE = "vectors/glove-100d.bin.gz"
_FILES = ("vectors", "triples", "results")
"""Options that name a file of the test data."""
_PAPERS_RANKERS = ("knrm", "pacrr", "matchpyramid", "convknrm")
"""The word-interaction models of the first paper; DRMM, which trains no vectors, is not among them."""


@dataclass(frozen=True)
class Study:
    """One page: a recipe, the collection, and what differs from the recipe's own settings."""

    recipe: str
    data: str | None = None
    split: str | None = None
    genders: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    """Name of a run, and its unit without the collection: of `make evidence-neural`, or with `training/` in
    front of `make evidence-training`."""
    queries: int = 0
    """At most so many test queries; 0 for all."""

    def settings(self) -> Settings:
        """What the recipe is given."""
        options = {
            name: str(_data() / value) if name in _FILES else value for name, value in self.options.items()
        }
        if self.recipe == "variants":
            options["rankers"] = [_ranker(each) for each in options["rankers"]]
        return Settings(
            data=None if self.data is None else str(_folder(self.data)),
            split=self.split,
            genders=self.genders,
            runs={name: str(self._run(unit)) for name, unit in self.runs.items()} or None,
            options=options,
            queries=self.queries,
        )

    def _run(self, system: str) -> Path:
        if system.startswith("training/"):
            return self._trained(system.removeprefix("training/"))
        seed = 0 if "," in system or system.startswith("fine-tuned") else None
        path = run_path(Unit(str(self.data), system, seed))
        if not path.exists():
            raise FileNotFoundError(f"there is no run of {system}; make evidence-neural makes it")
        return path

    def _trained(self, unit: str) -> Path:
        ranker, method, strength, seed = unit.split("/")
        path = training_run(Trained(str(self.data), ranker, method, float(strength), int(seed)))
        if not path.exists():
            raise FileNotFoundError(f"there is no run of {unit}; make evidence-training makes it")
        return path


def _alone(*, transformers: bool) -> dict[str, str]:
    """Runs of the rankers of the first paper: BM25, then those that go by their own scores."""
    runs = {"bm25": "bm25"}
    for kind in _PAPERS_RANKERS:
        runs |= {kind: f"{kind}, glove, alone", f"{kind} random": f"{kind}, random, alone"}
    if transformers:
        runs |= {"cross-encoder": "cross-encoder, alone", "fine-tuned bi-encoder": "fine-tuned bi-encoder"}
    return runs


def _of_lambda(ranker: str, strengths: Sequence[float], seeds: int) -> dict[str, str]:
    """Runs of a ranker trained with negatives of each λ."""
    return {
        f"{each:g} #{seed + 1}": f"training/{ranker}/negatives/{each:g}/{seed}"
        for each in strengths
        for seed in range(seeds)
    }


_OWN_SCORES = "As in the paper, rankers go by their own scores, without BM25's; one seed each. "
_NAMED = {"MatchPyramid": "matchpyramid, glove, with", "DRMM": "drmm, glove, with"}
_SECOND = {"vectors": _GLOVE, "second": "distil"}
_TRAIN = {"train_split": "train"}
_PARTS = {"time": None, "grepbiasir": None, "genderbias-qa": None, "squad": "test", "wiki": "test"}
"""The collections, and their test queries where they have others."""

_MODELS = {
    **{
        f"{kind}-{way}": f"wiki--{kind}-{way}-alone--0" for kind in INTERACTION for way in ("glove", "random")
    },
    "head": "wiki--head--0",
    "fine-tuned-bi-encoder": "wiki--fine-tuned-bi-encoder--0",
    "cross-encoder": "wiki--cross-encoder--0",
}
"""Trained on wiki's training queries by `make evidence-neural`, and what they are called here."""
_ALL_RANKERS = [
    *RECIPES["variants"].options["rankers"],
    "w2v_add",
    "w2v_add(debias=hard)",
    "w2v_si",
    "dense(backend=onnx-int8)",
    "hybrid(backend=onnx-int8)",
    *(f"{kind}-{way}" for kind in INTERACTION for way in ("glove", "random")),
    "head(candidates=20)",
    "fine-tuned-bi-encoder(first=bm25,candidates=20)",
    "cross-encoder(candidates=10)",
]

STUDIES: dict[str, Study] = {
    "gsr-toy": Study("gsr-toy"),
    "rank-bias-squad": Study(
        "rank-bias",
        "squad",
        "test",
        "predict",
        options={
            "about": _OWN_SCORES + "A cross-encoder and a fine-tuned bi-encoder of MiniLM stand for the two "
            "BERTs."
        },
        runs=_alone(transformers=True),
    ),
    "rank-bias-wiki": Study(
        "rank-bias",
        "wiki",
        "test",
        "predict",
        options={
            "about": _OWN_SCORES + "No transformer is among them: on wiki, they rank for a sample of the "
            "queries."
        },
        runs=_alone(transformers=False),
    ),
    **{
        f"gsr-{name}": Study("gsr", name, part, options=_SECOND, runs={} if part is None else _NAMED)
        for name, part in _PARTS.items()
    },
    "disparities-association": Study("disparities", "association"),
    "disparities-squad": Study("disparities", "squad", "test", "predict", options=_TRAIN),
    "disparities-wiki": Study("disparities", "wiki", "test", "predict"),
    **{
        f"rankers-{name}": Study("rankers", name, part, options={"vectors": _GLOVE, "dense": name != "wiki"})
        for name, part in _PARTS.items()
    },
    "variants-wiki": Study(
        "variants",
        "wiki",
        "test",
        options={
            "triples": "query-variants/triples.tsv",
            "results": "search-engines/results.tsv",
            "rankers": [*RECIPES["variants"].options["rankers"], "qld+rm3", "w2v_add", "w2v_add(debias=hard)",
                        "w2v_si"],
            "vectors": _GLOVE,
        },
    ),
    "variants-wiki-small": Study(
        "variants",
        "wiki-small",
        options={"triples": "query-variants/triples.tsv", "rankers": _ALL_RANKERS, "vectors": _GLOVE},
    ),
    "representation-image-search": Study("representation", "image-search"),
    "query-gender-msmarco": Study("query-gender", "query-gender", options={"vectors": _GLOVE}),
    "judgments-liwc": Study("judgments", "liwc"),
    "judgments-wiki": Study("judgments", "wiki", "test", "predict"),
    "feedback-robust04": Study("feedback", "expanded-queries"),
    **{
        f"feedback-{name}": Study("feedback", name, part)
        for name, part in _PARTS.items()
        if name != "genderbias-qa"
    },
    **{f"tradeoff-{name}": Study("tradeoff", name, part) for name, part in _PARTS.items()},
    "debiased-judgments-squad": Study(
        "debiased-judgments", "squad", "test", "predict", options={**_TRAIN, "train_queries": 3000}
    ),
    "debiased-judgments-wiki": Study(
        "debiased-judgments",
        "wiki",
        "test",
        "predict",
        options={
            **_TRAIN,
            "train_queries": 1500,
            "ranker": "knrm",
            "training": ["with_first_stage=true", "document_words=120"],
            "adversary": [],  # a word-interaction model has no vector for it
            "depth": 50,
            "sample": 20_000,
        },
        queries=1000,
    ),
    "negatives-squad": Study("negatives", "squad", "test", options={**_TRAIN, "seeds": 5}),
    "negatives-squad-cross-encoder": Study(
        "negatives",
        "squad",
        "test",
        options={
            "strengths": [0.0, 0.6, 1.0],
            "adversary": [],
            "about": "Cross-encoders of MiniLM, trained on 1,500 questions, re-rank BM25's first 20.",
        },
        runs=_of_lambda("cross-encoder", (0.0, 0.6, 1.0), 3),
    ),
    "negatives-wiki": Study(
        "negatives",
        "wiki",
        "test",
        options={
            "adversary": [],
            "about": "Heads on frozen vectors of MiniLM, trained on 1,000 queries, re-rank BM25's first 50.",
        },
        runs=_of_lambda("head", LAMBDAS, 5),
    ),
}  # fmt: skip


def _data() -> Path:
    found = shared()
    if found is None:
        raise SystemExit("the evidence needs the test data; set EVENRANK_TEST_DATA")
    return found / "data"


def _folder(name: str) -> Path:
    """A collection of the test data; the small one of wiki is written first."""
    if name != "wiki-small":
        return _data() / name
    folder = home() / "data" / name
    if not (folder / "docs.tsv").exists():
        docs, queries, qrels = small_wiki(_data().parent)
        judged = qrels.select("query_id", pl.lit(0), "doc_id", "relevance")
        _write(queries.select("query_id", "text"), folder / "queries.tsv")
        _write(judged, folder / "qrels.txt", " ")
        _write(docs.frame().select("doc_id", "text"), folder / "docs.tsv")
    return folder


def _write(frame: pl.DataFrame, path: Path, between: str = "\t") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(path, separator=between, include_header=False, quote_style="never")


def _ranker(text: str) -> str:
    """A ranker of the recipe; a trained one by its folder, under its short name."""
    name = text.partition("(")[0]
    if name not in _MODELS:
        return text
    there = neural_home() / "models" / _MODELS[name]
    if not there.exists():
        raise FileNotFoundError(f"there is no model {there.name}; make evidence-neural makes it")
    link = home() / "models" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(there)
    return str(link) + text.removeprefix(name)


def home() -> Path:
    """Where the steps are kept."""
    return root() / "evidence" / "reproduce"


def make(name: str) -> dict[str, Any]:
    """One page, and what it took."""
    study, source, started = STUDIES[name], committed_source(), time.process_time()
    settings, folder = study.settings(), home() / name
    folder.mkdir(parents=True, exist_ok=True)
    steps = Steps(folder, lambda text: print(f"{name}: {text}", file=sys.stderr, flush=True))
    page = RECIPES[study.recipe].run(settings, steps)
    page.write(folder)
    overview.take(folder)
    now = sum(steps.spent[step].processor for step in steps.done)
    return {
        "recipe": study.recipe,
        "src": source,
        "steps": {step: spent._asdict() for step, spent in steps.spent.items()},
        "processor seconds beside the steps": round(time.process_time() - started - now, 1),
        "queries": page.facts.get("queries"),
    }


def main(arguments: list[str]) -> int:
    chosen = tuple(each for each in arguments if not each.startswith("-")) or ("",)
    found = _known()
    if "--tables" not in arguments:
        for name in STUDIES:
            if not name.startswith(chosen) or (name in found and "--again" not in arguments):
                continue
            try:
                made = make(name)
            except Exception as error:  # the others are worth having
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            found = {**_known(), name: made}  # another process may have made some
            write(found)
            print(f"{name}: {_minutes(found[name])[0]:.1f} minutes", flush=True)
    write(found)
    return 0


def _known() -> dict[str, Any]:
    return dict(json.loads(_JSON.read_text())["results"]) if _JSON.exists() else {}


def write(found: Mapping[str, Any]) -> None:
    """The JSON, the overview, and the table of what the pages took."""
    kept = {name: found[name] for name in STUDIES if name in found}
    missing = [name for name in STUDIES if name not in kept]
    write_evidence(_JSON, "make evidence-reproduce", kept, kept.values(), **{"not made": missing})
    overview.write()
    fill("reproduce/index.md", page(kept))


def _minutes(told: Mapping[str, Any]) -> tuple[float, float]:
    """Minutes of processor time: all, and those of steps that train."""
    spent = [Spent(**each) for each in told["steps"].values()]
    total = sum(each.processor for each in spent) + told["processor seconds beside the steps"]
    return total / 60, sum(each.processor for each in spent if each.trains) / 60


def page(found: Mapping[str, Any]) -> str:
    """What the pages took, by recipe."""
    rows = []
    for recipe in RECIPES:
        pages = {name: each for name, each in found.items() if each["recipe"] == recipe}
        if pages:
            spent = [_minutes(each) for each in pages.values()]
            named = ", ".join(name.removeprefix(recipe).strip("-") or "constructed" for name in pages)
            rows.append([f"`{recipe}`", named, *_told(spent)])
    made = ""
    if rows:
        rows.append(["all", "", *_told([_minutes(each) for each in found.values()])])
        made = table(["recipe", "on", "training and ranking with it", "all else"], rows, left=2) + "\n"
    missing = [name for name in STUDIES if name not in found]
    return made + (f"Not timed yet: {', '.join(missing)}.\n" if missing else "")


def _told(spent: list[tuple[float, float]]) -> list[str]:
    total, training = (sum(each[i] for each in spent) for i in (0, 1))
    return [f"{training:.1f}" if training else "", f"{total - training:.1f}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
