"""Less bias by generated judgments whose documents read alike (thesis, Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.errors import InputError
from evenrank.mitigate.judgments import EvenJudgments, even_judgments
from evenrank.mitigate.trained import Training
from evenrank.reproduce.page import Chart, Claim, Page, Table, bounded, changed, from_zero, kept, nearer
from evenrank.reproduce.retraining import (
    HEADINGS,
    LEAN,
    USEFUL,
    Retraining,
    cells,
    compared,
    described,
    means,
    published,
    untested,
)
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import DASH, counted, number, p_value
from evenrank.text.lexicon import PROCESSES

_TABLE_3_6 = {0.0: 0.3080, 0.05: 0.3100, 0.15: 0.3039, 0.25: 0.3002, 0.35: 0.2905}
_TABLE_3_7 = dict(zip(PROCESSES, ((0.25, 0.16), (2.04, 1.67), (0.95, 0.88), (2.29, 2.01)), strict=False))
_ROWS = {  # RR@10, TF ARaB, Boolean ARaB, LIWC (Tables 3.8 to 3.12)
    "BERT-base, original, 1,765 queries": (None, 0.072, 0.059, 0.011),
    "BERT-base, de-biased, 1,765 queries": (None, 0.059, 0.049, 0.011),
    "BERT-base, original, 215 queries": (None, 0.029, 0.017, 0.006),
    "BERT-base, de-biased, 215 queries": (None, 0.019, 0.011, 0.005),
    "BERT-tiny, original, 215 queries": (0.175, 0.036, 0.030, 0.005),
    "BERT-tiny, de-biased, 215 queries": (0.163, 0.014, 0.017, 0.005),
    "AdvBert-tiny, 215 queries": (0.136, 0.025, 0.024, 0.005),
}


def debiased_judgments_recipe(settings: Settings, steps: Steps) -> Page:
    """A ranker trained with more and more generated pairs of female and male queries."""
    ratios = settings.option("ratios")
    if any(not 0 < ratio <= 1 for ratio in ratios):
        raise InputError(f"ratios is {ratios}; each must be above 0 and at most 1")
    ways = [f"{ratio:g}" for ratio in (0.0, *ratios)]
    ways += [f"adversary {strength:g}" for strength in settings.option("adversary")]
    work = _Generating(settings, steps, ways)

    def step() -> dict[str, Any]:
        values, sizes, pairs, apart = {}, {}, {}, {}
        for ratio in (0.0, *ratios):
            name = f"ratio {ratio:g}"
            runs = work.ranked(f"judgments {ratio:g}", f"{ratio:g}", partial(_ranked, work, ratio))
            values[name] = work.measured(runs)
            if not work.ready:
                more = work.added(ratio) if ratio else None
                sizes[name] = 0 if more is None else len(more.added)
                pairs[name] = [0 if more is None else len(more.pairs), work.asked_for(ratio)]
            apart[name] = _apart(work, runs)
        for strength in settings.option("adversary"):
            name = f"adversary, μ = {strength:g}"
            runs = work.ranked(
                name, f"adversary {strength:g}", partial(_ranked, work, 0.0, adversary=strength)
            )
            values[name] = work.measured(runs)
        plain, chosen = values["ratio 0"], values.get(f"ratio {settings.option('chosen'):g}")
        beside = {
            name: {
                "useful": compared(each[USEFUL], chosen[USEFUL]),
                "size": compared(each[LEAN], chosen[LEAN], size=True),
            }
            for name, each in values.items()
            if name.startswith("adversary") and chosen is not None
        }
        changes = {
            name: {
                "useful": compared(plain[USEFUL], each[USEFUL]),
                "lean": compared(plain[LEAN], each[LEAN]),
                "size": compared(plain[LEAN], each[LEAN], size=True),
                "from zero": from_zero(plain[LEAN], each[LEAN], **settings.chance),
            }
            for name, each in values.items()
            if name != "ratio 0"
        }
        for name, p in zip(
            changes, stats.holm([one["useful"]["p"] for one in changes.values()]), strict=True
        ):
            changes[name]["useful"]["p_holm"] = p
        return {
            "rows": {name: means(each) for name, each in values.items()},
            "changes": changes,
            "added": sizes,
            "pairs": pairs,
            "apart": apart,
            "queries": len(work.test.queries),
            "training": work.trained,
            "seeds": {way: len(runs) for way, runs in work.ready.items()},
            "generated": None if work.ready else len(work.made.queries),
            "beside": beside,
        }

    return _page(settings, steps("debiased-judgments", work.facts | {"form": 2}, step))


class _Generating(Retraining):
    """With generated queries, of which pairs are added to the training set."""

    def __init__(self, settings: Settings, steps: Steps, ways: Sequence[str]) -> None:
        super().__init__(settings, steps, ways)
        if not settings.runs:
            self.facts["ratios of"] = "judged pairs"  # runs of ratios of something else are made anew

    @cached_property
    def made(self) -> Any:
        """Generated queries; none says the same as a test query."""
        from evenrank.queries.generation.filtering import filter_generated
        from evenrank.queries.generation.generating import generate

        writer = self.settings.option("writer") or None
        learned: dict[str, Any] = {"queries": self.train.queries, "qrels": self.train.qrels}
        folder = self.steps.folder
        found = generate(
            self.train.docs,
            1,
            writer,
            sample=self.settings.option("sample") or None,
            output=None if folder is None else folder / "steps" / "generated.tsv",
            say=self.steps.say,
            **({} if writer == "extractive" else learned),
        )
        return filter_generated(found, self.index, known=self.test.queries, answerable=0.5)

    def added(self, ratio: float) -> EvenJudgments:
        """The pairs of a ratio."""
        return even_judgments(self.made, self.train.docs, ratio=ratio, size=self.size)

    @cached_property
    def size(self) -> int:
        """Judged pairs of the training set, of a query and a relevant document: ratios are of them."""
        good = self.train.qrels.filter(pl.col("relevance") > 0)
        return len(good.join(self.train.queries, on="query_id", how="semi"))

    def asked_for(self, ratio: float) -> int:
        """How many pairs of queries a ratio asks for: half as many as queries, and at least one."""
        return max(1, round(ratio * self.size / 2)) if ratio else 0


def _ranked(work: _Generating, ratio: float, seed: int, adversary: float = 0.0) -> pl.DataFrame:
    settings, queries, qrels = work.settings, work.train.queries, work.train.qrels
    if ratio:
        more = work.added(ratio)
        queries, qrels = more.queries(queries), more.qrels(qrels)
    training = Training(
        settings.option("ranker"),
        work.train.docs,
        queries,
        qrels,
        index=work.index,
        pool=settings.option("pool"),
        lexicon=settings.option("lexicon"),
        seed=seed,
        settings=work.given,
    )
    method = "adversary" if adversary else "negatives"
    return training.ranked(work.first, work.test.queries, method, adversary)


def _apart(work: Retraining, runs: list[pl.DataFrame]) -> dict[str, float | None]:
    """Points of percent between lists of female and of male queries, by process; the mean over the seeds."""
    from evenrank.data import tables
    from evenrank.psychology import audit_rankings

    labels = tables.genders(work.settings.labels(work.test.queries, work.steps.say))
    labels = labels.filter(pl.col("gender") != "neutral")
    try:
        audits = [
            audit_rankings(
                run, genders=labels, docs=work.index.docs, balance=False, characteristics=PROCESSES
            )
            for run in runs
        ]
    except InputError:  # hardly any query names a gender
        return dict.fromkeys(PROCESSES)
    return {
        process: float(np.mean([abs(audit["run", process].difference or 0.0) for audit in audits]))
        for process in PROCESSES
    }


def _page(settings: Settings, found: Mapping[str, Any]) -> Page:
    ratios = [name for name in found["rows"] if name.startswith("ratio")]
    useful = []
    for name in ratios:
        change = found["changes"].get(name)
        told = _TABLE_3_6.get(float(name.split()[1]))
        useful.append(
            [
                name,
                f"{found['added'][name]:,}" if name in found["added"] else DASH,
                number(found["rows"][name][USEFUL], ".4f"),
                DASH if change is None else number(change["useful"]["difference"], "+.4f"),
                DASH if change is None else p_value(change["useful"]["p_holm"]),
                number(told, ".4f"),
            ]
        )
    last = f"ratio {settings.option('chosen'):g}"
    processes = []
    for process in PROCESSES:
        before, after = (found["apart"].get(name, {}).get(process) for name in ("ratio 0", last))
        processes.append(
            [process, *(number(value, ".3f") for value in (before, after, *_TABLE_3_7[process]))]
        )
    rows = [[f"{name}, here", *cells(values)] for name, values in found["rows"].items()]
    for name, (rr, lean, boolean, liwc) in _ROWS.items():
        rows.append(published(name, rr, None, lean, boolean, liwc))
    return Page(
        "debiased-judgments",
        "Less bias by generated judgments whose documents read alike",
        "A. Bigdeli, thesis, Section 3.2: Tables 3.6 to 3.12",
        "T5 writes a query for each MS MARCO passage; pairs of a female and a male query whose passages are "
        "alike in 22 psychological characteristics are added to the training set; a cross-encoder is "
        "trained on it.",
        settings.with_about(
            described(settings, found)
            + (f"; {found['generated']:,} generated queries to choose from." if found["generated"] else ".")
        ),
        [
            Table(
                "Table 3.6: RR@10 by ratio",
                ["set", "queries added", "here", "change", "p (Holm)", "published"],
                useful,
                [_changes(found)],
            ),
            Table(
                f"Table 3.7: differences of lists, in points of percent ({last})",
                ["process", "before", "after", "before, published", "after, published"],
                processes,
            ),
            Table("Tables 3.8 to 3.12", ["ranker", *HEADINGS], rows),
        ],
        _claims(settings, found, last),
        [
            *(_about_training() if found["training"] is not None else []),
            "Differences of Table 3.7 are fractions there, shown in points.",
            "Tables 3.10 and 3.11 repeat values of the released script, which has 326 words.",
            untested(settings, found),
            *_same(found["pairs"]),
        ],
        dict(found),
    )


def _about_training() -> list[str]:
    """What differs where rankers were trained here."""
    return [
        "Queries are taken out of the documents (extractive) unless --set writer names a model: they share "
        "more words with their documents than those of T5.",
        "Where documents yield few female queries fewer pairs are added than the ratio asks for; the table "
        "says how many.",
        "A small ranker in the place of BERT.",
    ]


def _changes(found: Mapping[str, Any]) -> Chart:
    """What each set changes against plain training, with intervals."""
    panels = {"useful": USEFUL, "lean": f"{LEAN}, signed", "size": f"|{LEAN}|"}
    rows = [
        {"x": name, "panel": panel, **bounded(one[of], "difference")}
        for of, panel in panels.items()
        for name, one in found["changes"].items()
    ]
    caption = f"Change from plain training. {asked([found['queries']])}."
    title = "Each set against plain training"
    return Chart("dots", rows, "", "change", caption, title, balance=0.0, own_scale=True)


def _same(pairs: Mapping[str, Sequence[int]]) -> list[str]:
    """A line for ratios that add the same pairs: there are no more, or both round to as many.

    `pairs` are those of each ratio that were added, and that it asks for.
    """
    lines = []
    for count in dict.fromkeys(added for added, _ in pairs.values() if added):
        alike = {name: asked for name, (added, asked) in pairs.items() if added == count}
        if len(alike) < 2:
            continue
        said = f"{', '.join(alike)} are one training set, and tell one thing."
        many = counted(count, "pair")
        if any(asked > count for asked in alike.values()):
            lines.append(f"There {'is' if count == 1 else 'are'} {many} of queries to add, no more: {said}")
        else:
            lines.append(f"Rounded to {many} of queries each, {said}")
    return lines


def _claims(settings: Settings, found: Mapping[str, Any], chosen: str) -> list[Claim]:
    claims = []
    for name, one in found["changes"].items():
        if name.startswith("ratio") and float(name.split()[1]) <= settings.option("chosen"):
            useful = {**one["useful"], "p": one["useful"]["p_holm"]}
            claims.append(kept(f"a {name} of generated pairs costs no significant RR@10", "RR@10", useful))
    if chosen in found["changes"]:
        one = found["changes"][chosen]
        claims.append(changed(f"{chosen} lowers bias", "mean |ARaB@10|", one["size"], lower=True))
        claims.append(nearer(f"{chosen} moves the signed mean towards 0", "mean ARaB@10", one["from zero"]))
    pairs = [(found["apart"]["ratio 0"][p], found["apart"].get(chosen, {}).get(p)) for p in PROCESSES]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    less = sum(b < a for a, b in known)
    claims.append(
        Claim(
            "lists of female and male queries come closer in psychological characteristics",
            f"closer in {less} of {len(known)} processes; not tested"
            if known
            else "too few gendered queries",
            None,
        )
    )
    for name, one in found["beside"].items():
        says = f"{chosen} is more effective than an adversary ({name})"
        claims.append(changed(says, "from the adversary to it RR@10", one["useful"], lower=False))
        says = f"{chosen} leaves less bias than an adversary ({name})"
        claims.append(changed(says, "from the adversary to it mean |ARaB@10|", one["size"], lower=True))
    return claims
