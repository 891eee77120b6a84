"""Do rankers reinforce gender stereotypes? (Fabris et al. 2020, Section 4.2).

Lexical rankers, rankers with word vectors as they are and debiased, and runs of your own are measured with
two sets of vectors; then each claim of the paper is put to a test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import files, tables
from evenrank.errors import InputError, check_choice
from evenrank.measures.evaluate import measure
from evenrank.measures.gsr import slope
from evenrank.measures.gsr.measure import GSR
from evenrank.measures.gsr.results import compared_slopes, most_gendered, relative_to
from evenrank.measures.gsr.study import Fitted
from evenrank.reproduce.page import Page
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.reproduce.stereotype_charts import PANELS, joined, some
from evenrank.reproduce.stereotype_page import stereotype_page
from evenrank.reproduce.stereotype_tables import (
    EDGES,
    Correlation,
    debiasing_distances,
    direct_stereotype,
    effectiveness_table,
    pearson,
    spearman,
)
from evenrank.show.numbers import counted
from evenrank.vectors.texts import GenderedTexts, gendered_texts

LEXICAL = {"BM25": "bm25", "QLM": "qld", "tf-idf": "tfidf"}
DEBIASED = {"regular": "", "hard": ", debiased", "strong": ", strongly debiased"}
MADE = {
    "distil": "vectors distilled from MiniLM",
    "word2vec": "word2vec trained on the collection",
    "fasttext": "fastText trained on the collection",
}
"""Second vectors that are made here."""


def gsr_recipe(settings: Settings, steps: Steps) -> Page:
    """GSR of rankers, with and without word vectors, debiased or not."""
    check_choice("stop_words", settings.option("stop_words"), ("glasgow", "indri"))
    study = _Study(settings, steps)
    found = {
        "queries": len(study.data.queries),
        "systems": {name: kind for name, (kind, _) in study.systems.items()},
        "vectors": {name: str(described) for name, described in study.named.items()},
        "gendered": steps("gsr most gendered", {**study.facts, "form": 2}, study.gendered),
        "gsr": {
            name: steps(f"gsr by {name}", {**study.facts, "form": 2}, partial(study.measured, name))
            for name in study.named
        },
        "effectiveness": steps("gsr effectiveness", study.facts, study.effectiveness),
        "distances": steps("gsr distances", study.facts, study.distances),
        "agreement": steps("gsr agreement", study.facts, study.agreement) if len(study.named) > 1 else {},
        "direct": steps("gsr direct stereotypes", study.facts, study.direct),
        "points": steps("gsr points", study.facts, study.points),
    }
    return stereotype_page(settings, found)


class _Study:
    """The collection, the systems and their runs, and what is measured of them."""

    def __init__(self, settings: Settings, steps: Steps) -> None:
        self.settings, self.steps = settings, steps
        self.facts = dict(settings.facts)
        self.data = settings.dataset()
        self._runs: dict[str, pl.DataFrame] = {
            name: tables.run(path) for name, path in (settings.runs or {}).items()
        }
        for run in self._runs.values():  # all are compared on queries that all have ranked
            ranked = pl.col("query_id").is_in(run["query_id"].unique().implode())
            assert self.data.qrels is not None  # settings see to it
            self.data = self.data._replace(
                queries=self.data.queries.filter(ranked), qrels=self.data.qrels.filter(ranked)
            )
        if not len(self.data.queries):
            raise InputError("the runs have no query in common with each other and the collection")
        self.named: dict[str, Any] = {"first": "the shipped table (GloVe)"}
        self.sources: dict[str, Any] = {"first": None}
        for name, option in (("first", "vectors"), ("second", "second")):
            given = settings.option(option)
            if not given:
                continue
            if option == "vectors" and given in MADE:
                raise InputError("vectors must be a file of word vectors; the second ones can be made")
            made = given if given not in MADE else self._made(given)
            self.sources[name], self.named[name] = str(made), MADE.get(given, Path(given).name)
            self.facts[option] = files.fingerprint(made)
        self._readers: dict[str, GenderedTexts] = {}
        self._fits: dict[str, dict[str, Fitted]] = {}

    def _made(self, method: str) -> Path:
        """Vectors that are made once: distilled from a sentence-transformer, or trained on the collection."""
        from evenrank.vectors import DEFINITION, distil, save, train, vocabulary

        folder = self.steps.folder or Path.cwd()
        docs, key = self.data.docs, self.data.docs.fingerprint()[:12]
        path = folder / "steps" / f"{method}-{key}.arrow"
        if not path.exists():
            self.steps.say(f"vectors by {method} …")
            path.parent.mkdir(parents=True, exist_ok=True)
            if method == "distil":
                known = set(gendered_texts().genderedness.words.to_pylist())
                words = {word for word in vocabulary(docs, min_count=1) if word in known}
                words |= {word.lower() for pair in DEFINITION for word in pair}
                made = distil(sorted(words))
            else:
                made = train(docs, method=method, min_count=2, seed=self.settings.seed)  # type: ignore[arg-type]
            save(made, path)
        return path

    @property
    def systems(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """For each system its family, and the ranker with its settings; runs of the user have none."""
        found: dict[str, tuple[str, dict[str, Any]]] = {
            label: ("lexical", {"ranker": ranker}) for label, ranker in LEXICAL.items()
        }
        rankers = []
        if self.sources["first"] is not None:
            rankers = [("w2v_add", "w2v_add", "first"), ("w2v_si", "w2v_si", "first")]
        if "second" in self.sources:
            rankers.append(("second_add", "w2v_add", "second"))
        for label, ranker, source in rankers:
            for debias, said in DEBIASED.items():
                more = {"vectors": self.sources[source], "debias": debias}
                if ranker != "bm25":
                    more["stop_words"] = self.settings.option("stop_words")
                found[label + said] = ("semantic", {"ranker": ranker, **more})
        return found | {name: ("given", {}) for name in self.settings.runs or {}}

    def runs(self) -> dict[str, pl.DataFrame]:
        """All runs, each made once."""
        from evenrank.rankers import make
        from evenrank.rankers.index.building import own_index

        data = self.data
        asked = pl.col("query_id").is_in(data.queries["query_id"].implode())
        for name, (kind, how) in self.systems.items():
            if kind == "given":
                self._runs[name] = self._runs[name].filter(asked)
            if name in self._runs:
                continue
            settings = {key: value for key, value in how.items() if key != "ranker"}

            def work(ranker: str = how["ranker"], settings: dict[str, Any] = settings) -> pl.DataFrame:
                index = own_index(data.docs, self.steps.say)
                made = make(ranker, index=index, **settings)
                return made.rank(data.queries, depth=self.settings.option("depth"))

            self._runs[name] = self.steps.run(f"gsr {name}", {**self.facts, "system": how}, work)
        return self._runs

    def reader(self, name: str) -> GenderedTexts:
        if name not in self._readers:
            reader = gendered_texts(self.sources[name])
            self._readers[name] = reader.stopping(self.settings.option("stop_words"))
        return self._readers[name]

    def gendered(self) -> dict[str, Any]:
        """The queries that lean most, by their ids (Figure 7)."""
        female, male = most_gendered(self.data.queries, self.reader("first"), count=10)
        return {
            "female": [[query.query_id, query.g] for query in female],
            "male": [[query.query_id, query.g] for query in male],
        }

    def fits(self, vectors: str) -> dict[str, Fitted]:
        """The line of each system, of the perfect engine and of a random one, over the same queries."""
        if vectors not in self._fits:
            data, settings = self.data, self.settings
            chosen = GSR(stop_words=settings.option("stop_words"))
            measured = measure(
                self.runs(),
                chosen,
                docs=data.docs,
                queries=data.queries,
                qrels=data.qrels,
                vectors=self.reader(vectors),
                confidence=None,
                seed=settings.seed,
            )
            found: dict[str, Any] = {one.run: one.fitted for one in measured}  # type: ignore[attr-defined]
            found |= next(iter(measured)).baseline_lines  # type: ignore[attr-defined]
            shared = set.intersection(*({*fit.queries.tolist()} for fit in found.values()))
            self._fits[vectors] = {name: _only(fit, shared) for name, fit in found.items()}
        return self._fits[vectors]

    def measured(self, vectors: str) -> dict[str, Any]:
        """Table 2, and the comparisons that its claims rest on."""
        fits, settings = self.fits(vectors), self.settings
        chance: dict[str, Any] = {"resamples": settings.resamples, "seed": settings.seed}
        rows: dict[str, dict[str, Any]] = {}
        perfect = None if fits["perfect"].line is None else fits["perfect"].line.slope
        for name, fit in fits.items():
            if fit.line is None and len(fit.x) < 2:
                asked = counted(len(fit.x), "query", "queries")
                raise InputError(
                    f"only {asked} can be measured; a line needs two: ask more", path=settings.data
                )
            if fit.line is None:
                raise InputError("all queries are equally gendered; a line needs others", path=settings.data)
            bounds = stats.bootstrap(slope.slopes, fit.x, fit.y, **chance)
            parts = {part: float(values.mean()) for part, values in fit.parts.items()}
            p = slope.significance(fit.line.r, len(fit.x))
            rows[name] = {
                "GSR": fit.line.slope,
                "low": bounds.low,
                "high": bounds.high,
                "r": None if math.isnan(fit.line.r) else fit.line.r,
                "p": p,
                "n": len(fit.x),
                "relative": relative_to(fit.line.slope, perfect),
                **parts,
            }
        families: dict[str, list[str]] = {"lexical": [], "given": [], "semantic": []}
        for name, (kind, how) in self.systems.items():
            if how.get("debias", "regular") == "regular":
                families[kind].append(name)

        def told(these: Sequence[str], those: Sequence[str]) -> dict[str, Any]:
            return _contrast(fits, these, those, **chance)

        contrasts = {"perfect − random": told(["perfect"], ["random"])}
        contrasts["lexical − perfect"] = told(families["lexical"], ["perfect"])
        if families["semantic"]:
            contrasts["semantic − lexical"] = told(families["semantic"], families["lexical"])
            if families["given"]:
                contrasts["given − semantic"] = told(families["given"], families["semantic"])
        for name in families["semantic"]:
            hard, strong = name + DEBIASED["hard"], name + DEBIASED["strong"]
            contrasts[f"{name}: debiased − regular"] = told([hard], [name])
            contrasts[f"{name}: strong − debiased"] = told([strong], [hard])
            contrasts[f"{name}: debiased − perfect"] = told([hard], ["perfect"])
            contrasts[f"{name}: reduction"] = _reduction(fits[name], fits[hard], chance)
        return {"rows": rows, "contrasts": contrasts}

    def effectiveness(self) -> dict[str, Any]:
        """Table 3: effectiveness, and what debiasing changes."""
        runs, qrels = self.runs(), self.data.qrels
        against = {
            name: name.partition(",")[0]
            for name, (kind, how) in self.systems.items()
            if kind == "semantic" and how["debias"] != "regular"
        }
        return {"rows": effectiveness_table(runs, qrels, against=against).to_dicts()}

    def distances(self) -> dict[str, Any]:
        """Figure 10: does debiasing move the lists of gendered queries most?"""
        found = {}
        for plain in ("w2v_add", "w2v_si", "second_add"):
            if made := self._moved(plain):
                found[plain] = _correlation(made.r, len(made.points)) | {
                    "mean distance": float(made.points["distance"].mean() or 0.0)  # type: ignore[arg-type]
                }
        return found

    def _moved(self, plain: str) -> Correlation | None:
        """Each query's Kendall distance before and after debiasing; None where there is no such system."""
        name = plain + DEBIASED["hard"]
        if name not in self.systems:
            return None
        reader = self.reader("second" if plain == "second_add" else "first")
        depth = self.settings.option("distance_depth")
        return debiasing_distances(
            self.runs()[plain], self.runs()[name], self.data.queries, reader, depth=depth
        )

    def _leaning(self) -> np.ndarray:
        """g(q) by both sets of vectors, of the queries that both have words of."""
        texts = self.data.queries["text"].to_list()
        g = np.stack([self.reader(name).of_texts(texts) for name in ("first", "second")])
        known: np.ndarray = g[:, ~np.isnan(g).any(axis=0)]
        return known

    def agreement(self) -> dict[str, Any]:
        """Do two sets of vectors tell the same of the systems, and of the queries? (Figure 11)"""
        lines = [self.fits(name) for name in ("first", "second")]
        names = [name for name in lines[0] if name != "random"]
        values = [np.array([fits[name].line.slope for name in names]) for fits in lines]  # type: ignore[union-attr]
        rho, p = spearman(*values)
        g = self._leaning()
        return {
            "systems": {"r": rho, "p": p, "n": len(names)},
            "queries": _correlation(pearson(*g), g.shape[1]),
        }

    def points(self) -> dict[str, Any]:
        """What Figures 8 to 11 draw."""
        fits, seed = self.fits("first"), self.settings.seed
        plain = [name for name in self.systems if ", strongly" not in name]
        chosen = ["perfect", "random", *sorted(plain, key=lambda name: ("," in name, name == "tf-idf"))][
            :PANELS
        ]
        found: dict[str, Any] = {
            "systems": {
                name: {
                    "points": joined(fits[name].x, fits[name].y),
                    "slope": fits[name].line.slope,  # type: ignore[union-attr]
                    "intercept": fits[name].line.intercept,  # type: ignore[union-attr]
                    "n": len(fits[name].x),
                }
                for name in chosen
            },
            "distances": [],
            "agreement": [],
        }
        if moved := self._moved("w2v_add"):
            found["distances"] = some(moved.points["g"].to_numpy(), moved.points["distance"].to_numpy(), seed)
        if len(self.named) > 1:
            g = self._leaning()
            found["agreement"] = some(g[0], g[1], seed)
        return found

    def direct(self) -> dict[str, Any]:
        """Figure 12: does the leaning of a query tell whom its documents show too much of?"""
        data, bins = self.data, self.settings.option("bins")
        found = {}
        for name, (_, how) in self.systems.items():
            if how.get("debias", "regular") != "regular":
                continue
            made = direct_stereotype(
                self.runs()[name],
                docs=data.docs,
                queries=data.queries,
                qrels=data.qrels,
                vectors=self.reader("first"),
                edges=bins or EDGES,
            )
            sign = made.queries["side"].replace_strict(
                {"male": 1, "none": 0, "female": -1}, return_dtype=pl.Int8
            )
            rho, p = spearman(made.queries["g"].to_numpy(), sign.to_numpy())
            found[name] = {
                "bins": made.bins.to_dicts(),
                "left out": made.left_out,
                "given names": made.names,
                "trend": _correlation(rho, len(sign)) | {"p": p},
            }
        return found


def _only(fit: Fitted, shared: set[int]) -> Fitted:
    """A line through these queries alone."""
    from dataclasses import replace

    keep = np.isin(fit.queries, sorted(shared))
    if keep.all():
        return fit
    place, held = np.cumsum(keep) - 1, keep[fit.owner]
    x, y = fit.x[keep], fit.y[keep]
    return replace(
        fit,
        queries=fit.queries[keep],
        x=x,
        y=y,
        line=slope.fit(x, y),
        owner=place[fit.owner[held]],
        entries=fit.entries.kept(held),
        weights=fit.weights[held],
        sizes=fit.sizes[keep],
    )


def _contrast(
    fits: Mapping[str, Fitted], these: Sequence[str], those: Sequence[str], *, resamples: int, seed: int
) -> dict[str, Any]:
    """The mean of some systems against that of others: difference of slopes, its intervals and a test."""
    x = fits[these[0]].x
    gap = np.mean([fits[name].y for name in these], axis=0) - np.mean(
        [fits[name].y for name in those], axis=0
    )
    wide = compared_slopes(x, gap, resamples=resamples, seed=seed)
    narrow = stats.bootstrap(slope.slopes, x, gap, confidence=0.9, resamples=resamples, seed=seed)
    return {
        "difference": wide.difference,
        "low": wide.low,
        "high": wide.high,
        "p": wide.p,
        "n": wide.n,
        "low 90": narrow.low,
        "high 90": narrow.high,
    }


def _reduction(before: Fitted, after: Fitted, chance: Mapping[str, Any]) -> dict[str, Any]:
    """1 − GSR after / GSR before, with its interval."""

    def share(x: Any, a: Any, b: Any, axis: int = -1) -> Any:
        return 1 - slope.slopes(x, b, axis) / slope.slopes(x, a, axis)

    found = stats.bootstrap(share, before.x, before.y, after.y, **chance)
    return {"value": found.value, "low": found.low, "high": found.high, "n": len(before.x)}


def _correlation(r: float | None, n: int) -> dict[str, Any]:
    """A correlation with its p and its interval by Fisher's transformation."""
    if r is None or n < 4:
        return {"r": r, "p": None, "low": None, "high": None, "n": n}
    middle, half = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, r))), 1.959964 / math.sqrt(n - 3)
    return {
        "r": r,
        "p": slope.significance(r, n),
        "low": math.tanh(middle - half),
        "high": math.tanh(middle + half),
        "n": n,
    }
