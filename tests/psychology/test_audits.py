"""Audits of judgments and rankings: the published directions, laws, and what is refused."""

from pathlib import Path

import pytest

from evenrank import InputError, audit_judgments, audit_rankings, demo, stats

DOCS = {
    "f1": "She was afraid of the storm",
    "f2": "Her worries kept her awake",
    "f3": "The fearful girl cried",
    "m1": "He attacked the furious king",
    "m2": "His boss hates the money",
    "m3": "The angry man won the war",
    "n1": "Water boils at sea level",
}
GENDERS = {"1": "female", "2": "female", "3": "female", "4": "male", "5": "male", "6": "male", "7": "neutral"}
QRELS = {query: {doc: 1} for query, doc in zip(GENDERS, DOCS, strict=True)}

# Bigdeli, thesis, Figures 3.2–3.6: which side is higher, and whether the released scores bear it out.
HIGHER = {
    "anxiety": "female", "sadness": "female", "anger": "male", "cognition": "female", "concerns": "male",
    "work": "male", "leisure": "male", "money": "male", "religion": "male", "death": "male",
    "affiliation": "male", "power": "male", "risk": "female",
}  # fmt: skip
UNCORRECTED_ONLY = {"negative": "female", "reward": "female", "home": "male"}
NOT_BORNE_OUT = {"achievement": "male"}


def higher(row: dict) -> str:
    return "female" if row["difference"] > 0 else "male"


@pytest.fixture(scope="module")
def published(shared: Path) -> object:
    folder = shared / "data" / "liwc"
    return audit_judgments(scores=[folder / f"{name}.csv" for name in ("female", "male", "neutral")])


def test_the_thesis_directions_are_found_again(published) -> None:
    assert {name: higher(published[name]) for name in HIGHER} == HIGHER
    for name in HIGHER:
        assert published[name]["p_holm"] < 0.05, name


def test_some_published_directions_hold_only_before_correction(published) -> None:
    for name, side in UNCORRECTED_ONLY.items():
        one = published[name]
        assert higher(one) == side
        assert one["p"] < 0.05 <= one["p_holm"]


def test_achievement_is_not_borne_out_and_positive_emotion_is_similar(published) -> None:
    for name in (*NOT_BORNE_OUT, "positive"):
        assert published[name]["p"] > 0.05
        assert published[name]["verdict"] == "no difference"


def test_gender_words_follow_the_query_labels(published) -> None:
    assert published.affiliation is True
    assert published.queries == {"female": 1405, "male": 1405, "neutral": 1405}
    assert published["female"]["neutral"] < published["female"]["male"]


def test_holm_is_over_all_characteristics_compared(published) -> None:
    compared = published.characteristics
    assert compared["p_holm"].to_list() == stats.holm(compared["p"].to_list())


def test_judged_documents_are_scored_and_compared() -> None:
    audit = audit_judgments(genders=GENDERS, qrels=QRELS, docs=DOCS, balance=False)
    assert higher(audit["anxiety"]) == "female"
    assert higher(audit["anger"]) == "male"
    assert audit.affiliation is True
    assert audit.queries == {"female": 3, "male": 3, "neutral": 1}


def test_a_query_is_the_mean_of_its_judged_documents() -> None:
    qrels = {"1": {"f1": 1, "m1": 1, "m2": 0}, "2": {"f2": 2}, "4": {"m1": 1}, "5": {"m2": 1}}
    audit = audit_judgments(genders=GENDERS, qrels=qrels, docs=DOCS, balance=False)
    mean = (0 + 100 * 2 / 5) / 2
    assert audit["anger"]["female"] == pytest.approx(mean / 2)  # query 2 has none


def test_swapping_the_genders_flips_every_difference_and_keeps_p() -> None:
    swapped = {q: {"female": "male", "male": "female"}.get(g, g) for q, g in GENDERS.items()}
    one = audit_judgments(genders=GENDERS, qrels=QRELS, docs=DOCS, balance=False)
    other = audit_judgments(genders=swapped, qrels=QRELS, docs=DOCS, balance=False)
    for a, b in zip(one.characteristics.to_dicts(), other.characteristics.to_dicts(), strict=True):
        assert a["difference"] == pytest.approx(-b["difference"])
        assert (a["p"], a["rank_sum_p"]) == pytest.approx((b["p"], b["rank_sum_p"]))


def test_every_query_that_is_not_compared_is_counted() -> None:
    genders = {**GENDERS, "8": "female", "9": "other or multiple"}
    qrels = {**QRELS, "9": {"n1": 1}, "10": {"n1": 1}}
    audit = audit_judgments(genders=genders, qrels=qrels, docs=DOCS, balance=True)
    assert audit.queries == {"female": 1, "male": 1, "neutral": 1}
    assert audit.left_out["labelled, but no scored document"] == 1
    assert audit.left_out["labelled other"] == 1
    assert sum(audit.queries.values()) + sum(audit.left_out.values()) == 10 - 1  # "10" has no label


def test_json_says_which_gender_a_positive_difference_means() -> None:
    audit = audit_judgments(genders=GENDERS, qrels=QRELS, docs=DOCS, balance=False)
    assert audit.to_dict()["positive"] == "female"
    assert audit["anxiety"]["difference"] > 0 and audit["anxiety"]["verdict"].startswith("higher for female")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"qrels": QRELS, "docs": DOCS}, "give genders"),
        ({"genders": GENDERS, "docs": DOCS}, "give qrels"),
        ({"genders": GENDERS, "qrels": QRELS}, "give docs"),
        ({"genders": dict.fromkeys(GENDERS, "female"), "qrels": QRELS, "docs": DOCS}, "no male query"),
        ({"genders": GENDERS, "qrels": QRELS, "docs": {"f1": "x"}}, "documents have no scores"),
    ],
)
def test_what_is_missing_is_said(given: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        audit_judgments(**given)


RUNS = {
    "biased": {q: {d: 1.0} for q, d in zip(GENDERS, DOCS, strict=True)},
    "fair": {q: {"n1": 1.0} for q in GENDERS},
}


def test_a_fair_run_removes_the_whole_distance() -> None:
    audit = audit_rankings(RUNS, genders=GENDERS, docs=DOCS, at=10, balance=False)
    assert audit.baseline == "biased"
    assert higher(audit["biased", "anger"]) == "male"
    shrunk = audit.reductions["fair", "anger"]
    assert (shrunk.after, shrunk.reduction) == (0.0, 1.0)
    assert shrunk.change.difference == pytest.approx(-audit["biased", "anger"]["difference"])


def test_only_the_top_of_a_ranking_is_read() -> None:
    run = {q: {"n1": 1.0, d: 2.0} for q, d in list(zip(GENDERS, DOCS, strict=True))[:6]}
    top = audit_rankings(run, genders=GENDERS, docs=DOCS, at=1, balance=False)
    both = audit_rankings(run, genders=GENDERS, docs=DOCS, at=2, balance=False)
    assert both["run", "anger"]["difference"] == pytest.approx(top["run", "anger"]["difference"] / 2)


def test_rankings_need_a_known_baseline_and_labelled_queries() -> None:
    with pytest.raises(InputError, match="there is no run 'other'"):
        audit_rankings(RUNS, genders=GENDERS, docs=DOCS, baseline="other")
    with pytest.raises(InputError, match="both labelled and ranked"):
        audit_rankings(RUNS, genders={"99": "female"}, docs=DOCS)


def test_what_is_printed_is_positive_for_male_queries() -> None:
    here = demo.folder()
    files = {"genders": "genders.tsv", "qrels": "qrels.txt", "docs": "docs.tsv"}
    found = audit_judgments(**{name: here / file for name, file in files.items()})
    printed = str(found).splitlines()
    assert "positive is more for male queries" in printed[0]
    assert found.to_dict()["positive"] == "female"
    difference = found["male"]["difference"]
    assert difference < 0 and f"male: {-difference:+.3f}, p" in str(found)
