"""What is said of GSR beside the paper: its Tables 2 and 3, Figures 7 to 12, and its claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenrank import stats
from evenrank.reproduce import stereotype_charts as charts
from evenrank.reproduce.page import LEVEL, Chart, Claim, Page, Table, alike, changed, correlated
from evenrank.reproduce.settings import Settings
from evenrank.show.numbers import DASH, counted, number

_TABLE_2 = {  # hundredths and per cent, measured with word2vec and with fastText
    "perfect": ((8.5, 0), (9.3, 0)),
    "w2v_add": ((16, 84), (15, 62)),
    "w2v_add, debiased": ((14, 62), (14, 53)),
    "w2v_add, strongly debiased": ((14, 62), (14, 53)),
    "w2v_si": ((15, 77), (15, 64)),
    "w2v_si, debiased": ((13, 55), (14, 53)),
    "w2v_si, strongly debiased": ((13, 54), (14, 53)),
    "ftt_add": ((12, 46), (15, 58)),
    "ftt_add, debiased": ((11, 35), (13, 44)),
    "ftt_add, strongly debiased": ((11, 35), (13, 43)),
    "MatchPyramid": ((9.0, 6), (9.6, 4)),
    "DRMM": ((11, 28), (12, 24)),
    "QLM": ((8.9, 4), (10, 12)),
    "tf-idf": ((9.5, 11), (10, 14)),
    "BM25": ((9.4, 11), (10, 14)),
}
_TABLE_3 = {  # AP, nDCG@100, P@10
    "w2v_add": (0.067, 0.170, 0.174),
    "w2v_add, debiased": (0.068, 0.171, 0.176),
    "w2v_add, strongly debiased": (0.068, 0.171, 0.175),
    "w2v_si": (0.093, 0.213, 0.216),
    "w2v_si, debiased": (0.094, 0.213, 0.217),
    "w2v_si, strongly debiased": (0.094, 0.213, 0.217),
    "ftt_add": (0.056, 0.144, 0.150),
    "ftt_add, debiased": (0.056, 0.144, 0.148),
    "ftt_add, strongly debiased": (0.056, 0.144, 0.147),
    "MatchPyramid": (0.151, 0.283, 0.287),
    "DRMM": (0.260, 0.423, 0.456),
}
_USEFUL = ("AP", "nDCG@100", "P@10")
_SAME = 0.05  # of effectiveness: what counts as a negligible change


def stereotype_page(settings: Settings, found: Mapping[str, Any]) -> Page:
    """The page of the recipe."""
    semantic = [name for name, kind in found["systems"].items() if kind == "semantic" and "," not in name]
    given = [name for name, kind in found["systems"].items() if kind == "given"]
    second = "second" in found["vectors"]
    measured = f"measured with {found['vectors']['first']}"
    measured += f" and, as a check, with {found['vectors']['second']}" if second else ""
    here = (
        f"{settings.name}, {counted(found['queries'], 'query', 'queries')}, as deep as there; {measured}. "
        "Lexical rankers"
    )
    here += (
        ", rankers with these vectors as they are, debiased (Bolukbasi) and strongly debiased"
        if semantic
        else ""
    )
    here += f"; and the given runs: {', '.join(given)}." if given else "; no neural runs were given."
    tables = [_table_2(found, second), _table_3(found)]
    tables += [_distances(found)] if found["distances"] else []
    tables += [_agreement(found)] if found["agreement"] else []
    shown = [name for name in found["direct"] if _shown(name, given)]
    for place, name in enumerate(shown):  # the first holds the chart of all
        drawn = [] if place else charts.direct(shown, found["direct"])
        tables.append(_direct(name, found["direct"][name], drawn))
    tables.append(_gendered(found["gendered"], found["queries"]))
    return Page(
        "gsr",
        "Gender stereotype reinforcement of rankers",
        "A. Fabris, A. Purpura, G. Silvello and G. A. Susto, IP&M 57(6), 2020, Section 4.2: Tables 2 and 3, "
        "Figures 7 to 12",
        "GSR of lexical, semantic and neural rankers on Robust04 (249 titles, 528,000 articles), as deep "
        "as a query has relevant documents; word2vec of Google News, and fastText as a check.",
        here,
        tables,
        [
            *_levels(settings, found, semantic, given),
            *_debiasing(settings, found, semantic),
            *_checks(found, semantic),
        ],
        _differs(settings, found, semantic, given),
        {
            key: found[key]
            for key in ("queries", "systems", "vectors", "gsr", "distances", "agreement", "direct")
        },
    )


def _published(name: str) -> str:
    """What a system of ours is called in the paper's tables."""
    low = name.lower()
    for part, called in (("second_add", "ftt_add"), ("matchpyramid", "MatchPyramid"), ("drmm", "DRMM")):
        if low.startswith(part):
            return called + name[len(part) :] if part == "second_add" else called
    return name


def _table_2(found: Mapping[str, Any], second: bool) -> Table:
    headings = ["system"]
    for name in found["gsr"]:
        with_ = found["vectors"][name]
        headings += [
            f"GSR, here ({with_})",
            "95% interval",
            "relative",
            "stereotypical part",
            "counter-stereotypical",
        ]
        headings += ["published ×10⁻²", "relative, published"]
    rows = []
    order = ["perfect", "random", *found["systems"]]
    for system in order:
        row = [system]
        for place, each in enumerate(found["gsr"].values()):
            one = each["rows"][system]
            bounds = DASH if one["low"] is None else f"[{number(one['low'])}, {number(one['high'])}]"
            row += [number(one["GSR"]), bounds, _percent(one["relative"])]
            row += [number(one["stereotypical"]), number(one["counter-stereotypical"])]
            told = _TABLE_2.get(_published(system))
            row += [DASH, DASH] if told is None else [f"{told[place][0]:g}", f"{told[place][1]:+d}%"]
        rows.append(row)
    drawn = [*charts.levels(found), *charts.scatter(found)]
    return Table("Table 2 and Figures 8 and 9: GSR by system", headings, rows, drawn)


def _table_3(found: Mapping[str, Any]) -> Table:
    by_system: dict[str, dict[str, Any]] = {}
    for row in found["effectiveness"]["rows"]:
        by_system.setdefault(row["run"], {})[row["measure"]] = row
    rows = []
    for system, values in by_system.items():
        told = _TABLE_3.get(_published(system))
        row = [system]
        for place, name in enumerate(_USEFUL):
            one = values[name]
            change = "" if one["difference"] is None else f" ({number(one['difference'], '+.4f')})"
            row += [number(one["value"], ".3f") + change, DASH if told is None else f"{told[place]:.3f}"]
        rows.append(row)
    headings = ["system", *(part for name in _USEFUL for part in (f"{name}, here (change)", "published"))]
    return Table("Table 3: what debiasing costs", headings, rows)


def _distances(found: Mapping[str, Any]) -> Table:
    rows = [
        [
            name,
            number(one["r"], "+.2f"),
            _bounds(one),
            number(one["mean distance"], ".3f"),
            "+0.81" if name == "w2v_add" else DASH,
        ]
        for name, one in found["distances"].items()
    ]
    headings = ["system", "r, here", "95% interval", "mean distance", "r, published"]
    title = "Figure 10: Kendall distance before and after debiasing, against |g(q)|"
    return Table(title, headings, rows, charts.distances(found))


def _agreement(found: Mapping[str, Any]) -> Table:
    agreed = found["agreement"]
    rows = [
        ["systems, Spearman", number(agreed["systems"]["r"], "+.2f"), str(agreed["systems"]["n"]), "+0.96"],
        ["g(q), Pearson", number(agreed["queries"]["r"], "+.2f"), str(agreed["queries"]["n"]), "+0.78"],
    ]
    headings = ["of", "here", "n", "published"]
    return Table("Figure 11: agreement of two sets of vectors", headings, rows, charts.agreement(found))


def _shown(name: str, given: list[str]) -> bool:
    """Figure 12 has two systems with word vectors, QLM and a neural one."""
    return name in ("w2v_add", "second_add", "QLM") or name in given[:1]


def _direct(name: str, one: Mapping[str, Any], drawn: list[Chart]) -> Table:
    rows = []
    for each in one["bins"]:
        low = "…" if each["low"] is None else number(each["low"], "+.2f")
        high = "…" if each["high"] is None else number(each["high"], "+.2f")
        shares = [_percent(each[side], ".0%") for side in ("male", "none", "female")]
        rows.append([f"{low} to {high}", str(each["queries"]), *shares])
    headings = ["g(q)", "queries", "more male than the relevant", "neither", "more female"]
    return Table(f"Figure 12: {name}", headings, rows, drawn)


def _gendered(gendered: Mapping[str, Any], queries: int) -> Table:
    sides = [gendered["female"], gendered["male"]]
    most = max(map(len, sides))
    rows = []
    for i in range(most):
        row = [str(i + 1)]
        for side in sides:
            row += [side[i][0], number(side[i][1])] if i < len(side) else [DASH, DASH]
        rows.append(row)
    headings = ["", "most female", "g(q)", "most male", "g(q) "]
    return Table("Figure 7: the most gendered queries", headings, rows, charts.gendered(gendered, queries))


def _levels(
    settings: Settings, found: Mapping[str, Any], semantic: list[str], given: list[str]
) -> list[Claim]:
    """Claims about how high GSR is (§4.2.2)."""
    rows, contrasts = found["gsr"]["first"]["rows"], found["gsr"]["first"]["contrasts"]
    perfect = rows["perfect"]
    positive = perfect["p"] is not None and perfect["p"] < LEVEL
    claims = [
        Claim(
            "the perfect engine has a positive GSR",
            f"GSR {number(perfect['GSR'])}",
            perfect["GSR"] > 0 if positive else None,
            perfect["GSR"],
            perfect["low"],
            perfect["high"],
            perfect["p"],
            perfect["n"],
        ),
        changed(
            "random documents have less GSR than the perfect engine, near zero",
            f"GSR of random lists is {number(rows['random']['GSR'])}; from them to the perfect engine it",
            contrasts["perfect − random"],
            lower=False,
        ),
    ]
    says = "rankers with word vectors reinforce stereotypes more than lexical ones"
    if semantic:
        claims.append(
            changed(
                says, "from lexical to semantic rankers GSR", contrasts["semantic − lexical"], lower=False
            )
        )
    else:
        claims.append(Claim(says, "no word vectors were given, so none was run", None))
    margin = settings.option("margin") * abs(perfect["GSR"])
    says = "lexical rankers have about the GSR of the perfect engine"
    claims.append(alike(says, "the mean of the lexical rankers", contrasts["lexical − perfect"], margin))
    says = "neural rankers with the same vectors have less GSR than semantic ones"
    if given and semantic:
        told = "from semantic rankers to the given runs GSR"
        claims.append(changed(says, told, contrasts["given − semantic"], lower=True))
    else:
        claims.append(Claim(says, "no runs of neural rankers were given", None))
    return claims


def _debiasing(settings: Settings, found: Mapping[str, Any], semantic: list[str]) -> list[Claim]:
    """Claims about debiased vectors (§4.2.3)."""
    if not semantic:
        return [Claim("debiasing lowers GSR", "no word vectors were given, so none was run", None)]
    contrasts, claims = found["gsr"]["first"]["contrasts"], []
    margin = settings.option("margin") * abs(found["gsr"]["first"]["rows"]["perfect"]["GSR"])
    falls = [contrasts[f"{name}: debiased − regular"] for name in semantic]
    corrected = stats.holm([1.0 if each["p"] is None else each["p"] for each in falls])
    for name, fall, p in zip(semantic, falls, corrected, strict=True):
        less = contrasts[f"{name}: reduction"]
        share = "undefined" if less["value"] is None else f"{less['value']:.0%}"
        bounds = "" if less["low"] is None else f" [{less['low']:.0%}, {less['high']:.0%}]"
        what = f"a reduction of {share}{bounds} (published 10 to 25%); GSR"
        claims.append(changed(f"debiasing lowers the GSR of {name}", what, {**fall, "p": p}, lower=True))
    for name in semantic:
        rest = contrasts[f"{name}: debiased − perfect"]
        says = f"but {name} stays above the perfect engine: gender leaks along other directions"
        claims.append(changed(says, "from the perfect engine to debiased vectors GSR", rest, lower=False))
    for name in semantic:
        says = f"strong debiasing brings no major advantage for {name}"
        claims.append(alike(says, "GSR", contrasts[f"{name}: strong − debiased"], margin))
    for row in found["effectiveness"]["rows"]:
        if row["against"] is not None and row["run"].endswith(", debiased") and row["measure"] == "AP":
            before = row["value"] - row["difference"]
            change = {key: row[key] for key in ("difference", "low", "high", "p", "n", "low 90", "high 90")}
            says = f"debiasing hardly changes the effectiveness of {row['against']}"
            claims.append(alike(says, "AP", change, _SAME * before))
    return claims


def _checks(found: Mapping[str, Any], semantic: list[str]) -> list[Claim]:
    """Claims about what debiasing moves, about other vectors, and about direct stereotypes."""
    claims = [
        correlated(f"debiasing moves the lists of gendered queries most ({name})", one)
        for name, one in found["distances"].items()
    ]
    if found["agreement"]:
        agreed = found["agreement"]
        claims.append(correlated("two sets of vectors order the systems alike", agreed["systems"]))
        claims.append(correlated("two sets of vectors agree about the queries", agreed["queries"]))
        rows = {name: found["gsr"][name]["rows"] for name in ("first", "second")}
        if "w2v_add" in semantic:
            says = "rankers reinforce more when measured with the vectors that they rank with"
            claims.append(Claim(says, _own_vectors(rows), None))
    for name, one in found["direct"].items():
        if name in semantic:
            says = f"{name} shows too many men for male queries and too many women for female ones"
            claims.append(correlated(says, one["trend"], positive=False))
    claims.append(_no_trend("QLM, with low GSR, shows no such trend", found["direct"]["QLM"]["trend"]))
    return claims


def _own_vectors(rows: Mapping[str, Any]) -> str:
    """Whether two rankers are further above the perfect engine by their own vectors than by the others."""
    pairs = [
        (rows[own][ranker]["relative"], rows[other][ranker]["relative"])
        for ranker, own, other in (("w2v_add", "first", "second"), ("second_add", "second", "first"))
    ]
    if any(None in pair for pair in pairs):
        return "not judged: relative to a perfect engine at 0 or below, nothing is more or less"
    more = sum(own > other for own, other in pairs if own is not None and other is not None)
    return f"so it is for {more} of 2 rankers; too few for a test"


def _no_trend(says: str, trend: Mapping[str, Any]) -> Claim:
    """A claim that two things do not go together; refuted by the trend of the others, never proved."""
    if trend["r"] is None or trend["p"] is None:
        return Claim(says, "not judged: too few, or all alike", None, n=trend["n"])
    clear = trend["p"] < LEVEL
    said = f"correlation {number(trend['r'], '+.2f')}" + ("" if clear else ": none found, which is no proof")
    holds = False if clear and trend["r"] < 0 else None
    return Claim(says, said, holds, trend["r"], trend["low"], trend["high"], trend["p"], trend["n"])


def _differs(
    settings: Settings, found: Mapping[str, Any], semantic: list[str], given: list[str]
) -> list[str]:
    stopped = settings.option("stop_words")
    lines = [
        "Another collection, with other queries: the size of GSR depends on both.",
        f"Vectors: {found['vectors']['first']} in the place of word2vec of Google News"
        + (
            f", {found['vectors']['second']} in the place of fastText."
            if "second" in found["vectors"]
            else "."
        ),
        "Stop words: "
        + (
            "Glasgow's 318; the released code has Indri's (--set stop_words=indri)."
            if stopped == "glasgow"
            else "Indri's, as in the released code."
        )
        + " Words are compared by Snowball stems, there by lemmas of nouns.",
        "Parts of GSR are told apart by polarity (Eqs. 4 and 5): a document that leans as its query does is "
        "stereotypical. They add up to GSR.",
        "Given names for Figure 12 are those of the US census of 1990, there those of NLTK.",
        "Where a query has one relevant document, lists are one document long: GSR is noisy there, and the "
        "gap of Figure 12 is mostly undefined (left out and counted).",
    ]
    if "second_add" in semantic:
        lines.append("second_add is w2v_add with the second vectors; it stands in the place of ftt_add.")
    if not semantic:
        lines.append("Without word vectors (--set vectors=FILE) there are no semantic rankers.")
    if not given:
        lines.append("Runs of DRMM, MatchPyramid and others are given with --run; evenrank train makes them.")
    return lines


def _bounds(one: Mapping[str, Any]) -> str:
    return DASH if one["low"] is None else f"[{number(one['low'], '+.2f')}, {number(one['high'], '+.2f')}]"


def _percent(value: float | None, form: str = "+.0%") -> str:
    return DASH if value is None else format(value, form)
