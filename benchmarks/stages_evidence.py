"""Where bias enters on SQuAD, TIME and a part of wiki; which rankers prefer a gender by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import evenrank as er
from benchmarks import small_wiki
from benchmarks.counterfactual_evidence import mirror_test
from benchmarks.neural_units import INTERACTION
from benchmarks.pages import DOCS, fill, interval, number, table
from benchmarks.small_wiki import first_stage, loaded
from evenrank.show.numbers import p_value

_Way = Literal["leave out", "mirror"]
_WORDS = ("bm25", "qld", "tfidf", "bm25+rm3", "qld+rm3")
_VECTORS = ("w2v_add", "w2v_add(debias=hard)", "w2v_si", "w2v_si(debias=hard)")
_RANKERS = (*_WORDS, *_VECTORS, "dense", "hybrid")
"""All that need no training."""
_COLLECTIONS = {"genderbias-qa": 4, "squad": 10}
"""Of the mirror test, with the cut-off of ARaB."""
_WIKI, _OF_TRAINED = (DOCS / "evidence" / f"where-bias-enters-{part}.json" for part in ("wiki", "trained"))
_TRAINED = tuple(f"{kind}, {words}, alone" for kind in INTERACTION for words in ("glove", "random"))
_SLOW, _FEW = ("head", "fine-tuned bi-encoder", "cross-encoder"), 200
"""Rankers that read a text slowly, and the number of queries they are asked."""
_SLOWEST, _FEWEST = ("language model",), 50


def stages(data: Path) -> dict[str, Any]:
    """Stages of a pipeline, and the mirror test of every ranker that needs no training."""
    found: dict[str, Any] = {"stages": {}, "preference": {}}
    for name in ("time", "squad"):
        found["stages"][name] = _traced(data, name)
    for name, cutoff in _COLLECTIONS.items():
        ways: list[_Way] = ["leave out", "mirror"] if name == "genderbias-qa" else ["leave out"]
        for way in ways:
            found["preference"][f"{name}, gendered queries: {way}"] = _mirrored(data, name, cutoff, way)
    fill("where-bias-enters.md", page(found))
    return found


def stages_wiki(data: Path) -> dict[str, Any]:
    """The same on a part of wiki."""
    name = small_wiki.NAME
    found = {
        "stages": {name: _traced(data, name)},
        "preference": {f"{name}, gendered queries: leave out": _mirrored(data, name, 10, "leave out")},
        "agreement": small_wiki.agreement(data),
    }
    kept = json.loads(_WIKI.with_name("where-bias-enters.json").read_text())["results"]
    fill("where-bias-enters.md", page(kept, found))
    return found


def stages_trained(data: Path) -> dict[str, Any]:
    """The mirror test of rankers that were trained on squad, with seed 0; slow ones with fewer queries."""
    from benchmarks.neural_units import Unit, collection, drawn, trained

    def reranked(model: Any, depth: int) -> Any:
        def rank(docs: Any, queries: Any) -> Any:
            return er.rerank(model, first_stage(docs, queries, depth), docs, queries, depth=depth)

        return rank

    found: dict[str, Any] = {}
    for name in ("squad", small_wiki.NAME):
        docs, queries, _ = loaded(data, name)
        if name == "squad":  # questions that no model was trained on
            queries = collection("squad")[1].queries
        for systems, depth, asked in (
            (_TRAINED, 100, queries),
            (_SLOW, small_wiki.DEPTH, drawn(queries, _FEW)),
            (_SLOWEST, 10, drawn(queries, _FEWEST)),
        ):
            models: dict[str, Any] = {
                system: "llm" if systems == _SLOWEST else trained(Unit("squad", system, 0))[0]
                for system in systems
            }
            rankers = {system: reranked(model, depth) for system, model in models.items()}
            how = "a language model" if systems == _SLOWEST else "trained on SQuAD"
            found[f"{name}, {how}, first {depth} of BM25"] = mirror_test(
                er.mirror(docs, asked, rankers=rankers, measure="ARaB@10")
            )
    made = {"preference": found}
    before = json.loads(_WIKI.with_name("where-bias-enters.json").read_text())["results"]
    fill("where-bias-enters.md", page(before, trained=made))
    return made


def _mirrored(data: Path, name: str, cutoff: int, way: _Way) -> dict[str, Any]:
    """The mirror test of all rankers."""
    docs, queries, _ = loaded(data, name)
    test = er.mirror(
        docs,
        queries,
        rankers=_rankers(name),
        measure=f"ARaB@{cutoff}",
        gendered_queries=way == "mirror",
        vectors=str(data / "data" / "vectors" / "glove-100d.bin.gz"),
    )
    return mirror_test(test)


def _rankers(name: str) -> Any:
    """Rankers by label; on wiki MiniLM also re-ranks what BM25 finds."""
    named: dict[str, Any] = {each: each for each in _RANKERS}
    if name != small_wiki.NAME:
        return named

    def reranked(docs: Any, queries: Any) -> Any:
        first = small_wiki.first_stage(docs, queries)
        settings: dict[str, Any] = {"depth": small_wiki.DEPTH, "backend": small_wiki.BACKEND}
        return er.rerank("bi-encoder", first, docs, queries, **settings)

    few = {each: f"{each}(backend={small_wiki.BACKEND})" for each in ("dense", "hybrid")}
    return named | few | {f"bm25, its first {small_wiki.DEPTH} by dense": reranked}


def _traced(data: Path, name: str) -> dict[str, Any]:
    """BM25, then MiniLM on its candidates, then re-ranked within a limit."""
    docs, queries, _ = loaded(data, name)
    plain = data / "runs" / f"{name}.bm25.run"
    settings: dict[str, Any] = {"depth": 100}
    first: Any = plain if plain.exists() else plain.with_suffix(".run.gz")
    if name == small_wiki.NAME:
        first = small_wiki.candidates(data)
        settings = {"depth": small_wiki.DEPTH, "backend": small_wiki.BACKEND}
    counted = er.tally(docs)
    second = er.rerank("bi-encoder", first, docs, queries, **settings)
    third = er.constrain(second, counted, limit="abs(ARaB@10)<=0.1")
    runs = {"BM25": first, "MiniLM": second, "constrained": third}
    return er.trace(runs, tally=counted).to_dict() | {"depth": settings["depth"]}


def page(
    found: dict[str, Any], wiki: dict[str, Any] | None = None, trained: dict[str, Any] | None = None
) -> str:
    """The tables of docs/where-bias-enters.md; the others, as kept in their own evidence unless given."""
    wiki = wiki or json.loads(_WIKI.read_text())["results"]
    if trained is None:
        trained = json.loads(_OF_TRAINED.read_text())["results"] if _OF_TRAINED.exists() else {}
    found = {part: content | wiki[part] | trained.get(part, {}) for part, content in found.items()}
    text = ""
    heads = ["measure", "stage", "value", "adds", "interval", "corrected p"]
    for name, content in found["stages"].items():
        rows = [
            [
                one["measure"],
                one["name"],
                number(one["value"]),
                number(one["added"]),
                interval(one["added_low"], one["added_high"]),
                "" if one["added"] is None else p_value(one["p_holm"]),
            ]
            for one in content["stages"]
        ]
        count = content["stages"][0]["queries"]
        text += (
            f"**{name}**, {count:,} queries: BM25, its first {content.get('depth', 100)} re-ranked by "
            "all-MiniLM-L6-v2 and then "
            f"re-ranked within abs(ARaB@10) ≤ 0.1.\n\n{table(heads, rows, left=2)}\n"
        )
    heads = [
        "ranker",
        "as it is",
        "mirrored",
        "preference",
        "interval",
        "content",
        "corrected p",
        "queries",
        "",
    ]
    for name, content in found["preference"].items():
        rows = [
            [
                one["ranker"],
                number(one["raw"]["value"]),
                number(one["mirrored"]["value"]),
                number(one["preference"]["value"]),
                interval(one["preference"]["low"], one["preference"]["high"]),
                number(one["content"]["value"]),
                p_value(one["p_holm"]),
                f"{one['queries']:,}",
                one["verdict"],
            ]
            for one in content["rankers"]
        ]
        measure = content["rankers"][0]["measure"]
        left = ", ".join(f"{count} {why}" for why, count in content["left_out"].items())
        text += f"**{name}** ({left}), the mirror test with {measure}:\n\n{table(heads, rows)}\n"
    return text + (
        "`dense` is all-MiniLM-L6-v2; `w2v_add` sums GloVe vectors, `w2v_si` gives rare words more weight. "
        "`hybrid` re-ranks the first 100 of BM25, and adds 0.1 times its score. "
        f"On {small_wiki.NAME} (41,634 passages, 1,000 test queries fixed by a seed) MiniLM has 8-bit "
        f"weights. {_near(wiki)}"
        f"{_OF_MODELS if trained else _ELSEWHERE}"
        f"{_OF_LANGUAGE if any('language' in each for each in found['preference']) else ''}Numbers: "
        "[evidence](evidence/where-bias-enters.json), [for wiki](evidence/where-bias-enters-wiki.json).\n"
    )


_ELSEWHERE = "Trained rankers: [neural rankers](neural-rankers.md). "
_OF_MODELS = (
    "Rankers *trained on SQuAD* are those of [neural rankers](neural-rankers.md), with seed 0; the tables "
    f"with the first {small_wiki.DEPTH} of BM25 have {_FEW} queries, drawn by a seed, without those that "
    "name a gender ([evidence](evidence/where-bias-enters-trained.json)). "
)
_OF_LANGUAGE = (
    f"The *language model* is SmolLM2-135M; it was asked {_FEWEST} queries, with the same exception. "
)


def _near(wiki: dict[str, Any]) -> str:
    """How near weights of 8 bits are to those of 32, where that was measured."""
    if (found := wiki.get("agreement")) is None:
        return ""
    return (
        f"On a sample of {found['passages']:,} passages its vectors have a mean cosine of "
        f"{found['mean cosine of passages']:.3f} with those of 32 bits, and of the first 10 passages for "
        f"{found['queries']:,} queries {found['share of the first 10 in common']:.0%} are the same. "
    )
