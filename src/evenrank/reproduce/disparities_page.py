"""What is said of male and female queries beside the paper: its Table 2, Figures 1 and 2, and its claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenrank import stats
from evenrank.mitigate.comparing_sets import SETS
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Table, alike, changed, nearer
from evenrank.show.numbers import DASH, number, p_value

_TABLE_2 = {"BERT-tiny": (0.4065, 0.3397), "MiniLM": (0.4913, 0.4292), "BM25": (0.2783, 0.2284)}
_FIGURE_2 = {  # male / female, read off the image: unbalanced, matching, generation
    "BERT-tiny": (".27–.29 / .19–.22", ".29–.30 / .23–.24", ".38–.40 / .33–.37"),
    "MiniLM": (".31–.34 / .26–.28", ".26–.28 / .24–.26", ".28–.29 / .25–.28"),
    "DistilRoBERTa": (".39 / .31–.32", ".35 / .35–.36", ".40–.41 / .35–.39"),
}
_ABOUT_TRAINED = (
    "Figure 2's unbalanced bars lie far below Table 2 of the same paper: another baseline. Both are shown.",
    "Small rankers are trained here, on smaller sets; all sets are cut to one size.",
)
_FEW, _FEW_SHARE = 5, 0.05  # queries: a set that differs in fewer is nearly the same


def disparities_page(found: Mapping[str, Any]) -> Page:
    """The page, out of gaps, association, and what was trained, as far as they are there."""
    shown, claims = [], []
    if "gaps" in found:
        table, more = _gaps_told(found["gaps"])
        shown.append(table)
        claims += more
    else:
        claims.append(Claim("male queries are served better than female ones", "scores alone: not run", None))
    shown.append(_association_table(found["association"]))
    claims += _association_claims(found["association"])
    if "trained" in found:
        shown.append(_trained_table(found["trained"]))
        claims += _trained_claims(found["trained"])
    else:
        for way in ("matching", "generation"):
            claims.append(Claim(f"{way} lessens the gap of trained rankers", "nothing was trained", None))
    return Page(
        "disparities",
        "Are male queries served better, and do balanced judgments help?",
        "S. Seyedsalehi et al., Addressing Gender-related Performance Disparities in Neural Rankers, "
        "SIGIR 2022: Table 2, Figures 1 and 2",
        "RR@10 of 1,405 male and 1,405 female MS MARCO queries; BM25 scores of 14,000 training queries of "
        "each gender with their relevant passage; bi-encoders trained on all of them, on matched ones, and "
        "with generated ones.",
        found["here"] + ".",
        shown,
        claims,
        [
            "A permutation test and Welch's interval in the place of a paired t-test: male and female "
            "queries are not pairs.",
            "Published bins keep 13,250 queries of each gender. Bins over all scores keep 13,342 of the "
            "released ones: those are another draw with other scores than the published count was made of.",
            *(_ABOUT_TRAINED[:1] if "trained" in found else []),
            "Genders are predicted unless they are given; test queries that the classifier has learned from "
            "are left out, training queries are not.",
            *(_ABOUT_TRAINED[1:] if "trained" in found else []),
        ],
        {key: value for key, value in found.items() if key != "here"},
    )


def _gaps_told(gaps: Mapping[str, Any]) -> tuple[Table, list[Claim]]:
    rows, claims = [], []
    corrected = stats.holm([one["p_permutation"] for one in gaps["runs"]])
    for one, p in zip(gaps["runs"], corrected, strict=True):
        n = sum(one["queries"].values())
        sizes = f"{one['queries']['male']:,} / {one['queries']['female']:,}"
        bounds = DASH if one["low"] is None else f"[{number(one['low'])}, {number(one['high'])}]"
        percent = DASH if one["percent"] is None else f"{one['percent']:.1f}%"
        rows.append(
            [
                f"{one['run']}, here",
                number(one["means"]["male"], ".3f"),
                number(one["means"]["female"], ".3f"),
                number(one["difference"]),
                bounds,
                percent,
                p_value(p),
                sizes,
            ]
        )
        what = f"male {one['means']['male']:.3f}, female {one['means']['female']:.3f}: the gap of RR@10"
        holds = None if p is None or p >= LEVEL else one["difference"] > 0
        says = f"male queries are served better than female ones by {one['run']}"
        claims.append(Claim(says, what, holds, one["difference"], one["low"], one["high"], p, n))
    for name, (male, female) in _TABLE_2.items():
        rows.append(
            [
                f"{name}, published",
                f"{male:.4f}",
                f"{female:.4f}",
                number(male - female),
                DASH,
                f"{100 * (male / female - 1):.2f}%",
                DASH,
                "1,405 / 1,405",
            ]
        )
    headings = [
        "ranker",
        "male",
        "female",
        "difference",
        "95% interval",
        "of the lower",
        "p (Holm)",
        "queries",
    ]
    return Table("Table 2: RR@10 by the gender of the query", headings, rows), claims


def _association_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for name, one in found.items():
        kept = one.get("kept") or one["pairs"]
        rows.append(
            [
                name,
                f"{kept['female']:,}",
                f"{kept['male']:,}",
                number(one["means"]["female"], ".2f"),
                number(one["means"]["male"], ".2f"),
                number(one["difference"]),
                number(one["kolmogorov_smirnov"], ".3f"),
                number(one["overlap"], ".3f"),
                f"{one['by query']['n']:,}",
                number(one["by query"]["difference"]),
                p_value(one["by query"]["p"]),
            ]
        )
    headings = ["", "female pairs", "male pairs", "mean female", "mean male", "difference", "KS", "overlap"]
    headings += ["queries", "difference by query", "p (Welch)"]
    title = "Figure 1: BM25 score of queries with their own relevant document"
    return Table(title, headings, rows, [_distributions(found)])


def _distributions(found: Mapping[str, Any]) -> Chart:
    rows = [
        {"x": low, "end": high, "value": count / max(1, sum(one["histogram"][gender])), "of": gender,
         "panel": _panel(name, one)}
        for name, one in found.items()
        for gender in ("female", "male")
        for low, high, count in zip(one["edges"], one["edges"][1:], one["histogram"][gender], strict=False)
    ]  # fmt: skip
    caption = (
        "Pairs of a query and its relevant document. Where the two differ, the queries of one gender stand "
        "closer to their documents."
    )
    return Chart("histogram", rows, "BM25 score", "share", caption, form="%")


def _panel(name: str, one: Mapping[str, Any]) -> str:
    pairs = one["pairs"]
    return f"{name.partition(',')[0]} ({pairs['female']:,} + {pairs['male']:,} pairs)"


def _association_claims(found: Mapping[str, Any]) -> list[Claim]:
    before, after = found["before"], found["matching"]
    claims = [
        changed(
            "male queries stand closer to their relevant documents",
            "from female to male the mean score of a query",
            before["by query"],
            lower=False,
        )
    ]
    matched = after["matched"]
    told = f"Kolmogorov–Smirnov {after['kolmogorov_smirnov']:.3f}; the mean of {matched['of']}"
    says = "after matching the two distributions are alike"
    claims.append(alike(says, told, matched, matched["margin"]))
    return claims


def _trained_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for ranker, sets in found["rankers"].items():
        for name, one in sets.items():
            bounds = DASH if one["low"] is None else f"[{number(one['low'])}, {number(one['high'])}]"
            rows.append(
                [
                    f"{ranker}, {name}" if name != "bm25" else "bm25",
                    *_held(found["sets"].get(name)),
                    number(one["male"], ".3f"),
                    number(one["female"], ".3f"),
                    number(one["gap"]),
                    bounds,
                    p_value(one["p"]),
                    number(one["smallest gap that would be found"], ".3f"),
                ]
            )
    for ranker, told in _FIGURE_2.items():
        for name, values in zip(SETS, told, strict=False):
            male, female = values.split(" / ")
            rows.append([f"{ranker}, {name}, published", *_held(None), male, female, *[DASH] * 4])
    headings = [
        "ranker, trained on",
        "queries",
        "real female",
        "real male",
        "generated",
        "male",
        "female",
        "gap",
        "95% interval",
        "p",
        "smallest gap to be found",
    ]
    title = "Figure 2: RR@10 of rankers by what they were trained on"
    return Table(title, headings, rows, [_served(found["rankers"])])


def _held(one: Mapping[str, Any] | None) -> list[str]:
    """How many queries a set holds: all, real female and male ones, generated ones."""
    if one is None:
        return [DASH] * 4
    return [f"{one.get(key, 0):,}" for key in ("queries", "real female", "real male", "generated")]


def _served(rankers: Mapping[str, Any]) -> Chart:
    rows = [
        {"x": name, "value": one[gender], "of": gender, "panel": ranker}
        for ranker, sets in rankers.items()
        for name, one in sets.items()
        for gender in ("female", "male")
    ]
    sizes = next(iter(next(iter(rankers.values())).values()))["queries"]
    caption = (
        f"Intervals of the gaps are below. n = {sizes['female']:,} female and {sizes['male']:,} male queries."
    )
    return Chart("bars", rows, "", "RR@10", caption)


def _trained_claims(found: Mapping[str, Any]) -> list[Claim]:
    claims = []
    for ranker, sets in found["rankers"].items():
        plain = sets["unbalanced"]
        for name in ("matching", "generation"):
            says, change = f"{name} lessens the gap of {ranker}", sets[name]["change"]
            if same := _hardly_unlike(found["sets"][name]):
                claims.append(Claim(says, same, None))
                continue
            told = {
                **change["size"],
                "before": plain["gap"],
                "after": sets[name]["gap"],
                "n": sum(plain["queries"].values()),
            }
            claims.append(nearer(says, "the gap of RR@10", told))
        for name in ("matching", "generation"):
            overall = sets[name]["overall"]
            says = f"{name} keeps the effectiveness of {ranker} over all queries"
            if same := _hardly_unlike(found["sets"][name]):
                claims.append(Claim(says, same, None))
            else:
                claims.append(alike(says, "RR@10", overall, 0.05 * overall["before"]))
    return claims


def _hardly_unlike(one: Mapping[str, Any]) -> str:
    """Why nothing can be told of a set: it is nearly the unbalanced one; else empty."""
    unlike, size = one["unlike unbalanced"], one["queries"]
    if unlike >= max(_FEW, _FEW_SHARE * size):
        return ""
    are = "query is" if unlike == 1 else "queries are"
    return f"{unlike} of its {size:,} {are} other than in the unbalanced set: too few to tell"
