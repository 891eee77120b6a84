"""LIWC@k: the lean of gender words, in percent of the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import LIWC, InputError
from evenrank.measures.results import Measurements

DOCS = {
    "d1": "he said so",  # 33.3 % male
    "d2": "she met her son at noon today",  # 28.6 % female, 14.3 % male
    "d3": "water boils",
    "d4": "",
}
WORDS = st.lists(st.sampled_from(["he", "she", "tree", "runs"]), max_size=8)
LISTS = st.lists(WORDS, min_size=1, max_size=6)


def measured(lists: dict[str, list[str]], *measures, **options) -> Measurements:
    run = {q: {doc: -float(i) for i, doc in enumerate(docs)} for q, docs in lists.items()}
    return er.measure(run, list(measures), docs=DOCS, confidence=None, **options)


def test_liwc_is_the_absolute_mean_difference_over_the_top() -> None:
    found = measured({"q": ["d2", "d1", "d3"]}, LIWC @ 1, LIWC @ 2, LIWC(signed=True) @ 1)
    assert found[LIWC @ 1].value == pytest.approx(100 / 7)
    assert found[LIWC @ 2].value == pytest.approx((100 / 3 - 100 / 7) / 2)
    assert found[LIWC(signed=True) @ 1].value == pytest.approx(-100 / 7)
    assert found[LIWC @ 1].parts == pytest.approx({"female": 200 / 7, "male": 100 / 7})


def test_opposite_leans_cancel_only_with_sign() -> None:
    found = measured({"q1": ["d1"], "q2": ["d2"]}, LIWC @ 10, LIWC(signed=True) @ 10)
    assert found[LIWC @ 10].value == pytest.approx((100 / 3 + 100 / 7) / 2)
    assert found[LIWC(signed=True) @ 10].value == pytest.approx((100 / 3 - 100 / 7) / 2)
    assert found[LIWC(signed=True) @ 10].abs == pytest.approx(found[LIWC @ 10].value)


def test_an_empty_document_has_no_words_of_either_side() -> None:
    assert measured({"q": ["d4", "d1"]}, LIWC @ 2)[LIWC @ 2].value == pytest.approx(100 / 6)


@given(LISTS, st.integers(1, 8))
def test_swapping_the_categories_flips_the_sign(texts: list[list[str]], k: int) -> None:
    docs = {str(i): " ".join(words) for i, words in enumerate(texts)}
    run = {"q": {doc: -float(i) for i, doc in enumerate(docs)}}
    values = []
    for female, male in (("she", "he"), ("he", "she")):
        found = er.measure(
            run,
            [LIWC @ k, LIWC(signed=True) @ k],
            docs=docs,
            dictionary={"female": [female], "male": [male]},
            confidence=None,
        )
        values.append((found[LIWC @ k].value, found[LIWC(signed=True) @ k].value))
    assert values[0][0] == pytest.approx(values[1][0])
    assert values[0][1] == pytest.approx(-values[1][1])
    assert abs(values[0][1]) == pytest.approx(values[0][0])
    assert 0 <= values[0][0] <= 100


def test_the_dictionary_and_not_the_lexicon_decides() -> None:
    options = {"dictionary": {"female": ["noon"], "male": ["today"]}, "lexicon": "rekabsaz2020"}
    found = measured({"q": ["d2"]}, LIWC @ 1, "RaB@1", **options)
    assert found[LIWC @ 1].value == 0
    assert found["RaB@1"].parts["female"] > 0


def test_with_gender_labels_the_neutral_queries_count() -> None:
    found = measured({"q1": ["d1"], "q2": ["d3"]}, LIWC @ 1, genders={"q1": "male", "q2": "neutral"})
    assert found[LIWC @ 1].value == 0
    assert found[LIWC @ 1].subsets["male"].value == pytest.approx(100 / 3)


def test_ties_are_not_averaged_over_unless_signed() -> None:
    run = {"q": {"d1": 1.0, "d2": 1.0}}
    found = er.measure(run, [LIWC @ 1, LIWC(signed=True) @ 1], docs=DOCS, ties="expected", confidence=None)
    assert found[LIWC(signed=True) @ 1].value == pytest.approx((100 / 3 - 100 / 7) / 2)
    assert found[LIWC @ 1].value == pytest.approx(100 / 7)  # d2 stands first
    assert "not linear" in found[LIWC @ 1].notes[0]


def test_liwc_needs_text_and_the_two_categories() -> None:
    with pytest.raises(InputError, match="needs the text of the documents"):
        er.measure({"q": {"d1": 1.0}}, "LIWC@10", tally=er.tally(DOCS))
    with pytest.raises(InputError, match="no category female"):
        measured({"q": ["d1"]}, "LIWC@10", dictionary={"joy": ["glad"]})
    with pytest.raises(InputError, match="LIWC needs a cut-off"):
        measured({"q": ["d1"]}, "LIWC")
    with pytest.raises(InputError, match="collection lacks"):
        measured({"q": ["d9"]}, "LIWC@10")


def test_bound_liwc_is_the_same_inside_ir_measures() -> None:
    import ir_measures

    run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    for words in (None, {"female": ["noon"], "male": ["he", "so"]}):
        bound, other = er.bind([LIWC @ 2, "RaB@2"], docs=DOCS, dictionary=words)
        value = ir_measures.calc_aggregate([bound, other], qrels, run)[bound]
        assert value == pytest.approx(er.measure(run, LIWC @ 2, docs=DOCS, dictionary=words)[LIWC @ 2].value)
