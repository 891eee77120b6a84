"""The lexicon classifier: words and names, counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenrank.queries.baselines import LexiconClassifier
from evenrank.queries.samples import lexicon_samples, swapped
from evenrank.queries.words import census_names, clear_names, term_groups


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("what does a mother eat", 0),
        ("how old is jennifer lawrence", 0),
        ("early pregnancy symptoms", 0),
        ("how tall is robert redford", 1),
        ("prostate cancer", 1),
        ("father of the bride", 2),
        ("python list sort", 2),
        ("", 2),
    ],
)
def test_more_words_of_a_side_give_its_label(text: str, label: int) -> None:
    probabilities = LexiconClassifier().predict_proba([text])[0]
    assert probabilities.sum() == pytest.approx(1)
    if text:
        assert probabilities.argmax() == label
    else:
        assert np.ptp(probabilities) == pytest.approx(0)


def test_reasons_are_the_words_counted() -> None:
    assert LexiconClassifier().explain(["is the queen mary", "no word"]) == [
        [("queen", "female", 1.0), ("mary", "female", 1.0)],
        [],
    ]


def test_fitting_makes_probabilities_and_leaves_labels(tmp_path: Path) -> None:
    texts, labels = ["mother", "mother", "father", "x", "y", "z"], ["female"] * 2 + ["male"] + ["neutral"] * 3
    model = LexiconClassifier().fit(texts, labels)
    assert model.predict_proba(["mother"])[0].tolist() == pytest.approx([0.6, 0.2, 0.2])
    model.save(tmp_path / "m")
    again = LexiconClassifier.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
    assert np.array_equal(again.trained_on, model.trained_on) and len(again.trained_on) == 5


def test_names_that_are_words_do_not_count() -> None:
    assert not {"will", "may", "grace", "king"} & set(clear_names())
    assert clear_names()["mary"] > 0 > clear_names()["john"]
    assert census_names()["smith"].surname > 1


def test_prefixes_stand_for_whole_families_of_words() -> None:
    assert term_groups(["pregnancy", "menopausal", "vasectomy", "prostate", "table"]) == {
        "pregnancy": "female",
        "menopausal": "female",
        "vasectomy": "male",
        "prostate": "male",
    }


def test_a_swapped_query_has_the_other_label() -> None:
    texts, labels = swapped(
        ["her mother mary", "who is john", "what is a table", "tall oak"],
        ["female", "male", "neutral", "male"],
    )
    assert labels == ["male", "female"]
    assert texts[0] == "his father james" and texts[1] == "who is patricia"


def test_lexicon_words_are_samples_of_their_group() -> None:
    words, groups = lexicon_samples()
    assert dict(zip(words, groups, strict=True))["she"] == "female"


def test_gendered_words_turn_neutral_queries_into_samples() -> None:
    texts, groups = lexicon_samples(["cost of a roof", "who is mary"], ["neutral", "female"], times=2)
    assert len(texts) == len(groups) == 3 * len(lexicon_samples()[0])
    found = dict(zip(texts, groups, strict=True))
    assert found["men"] == "male"
    assert {"cost of a roof for men", "men cost of a roof"} & found.keys()
    assert all(found[text] == "female" for text in texts if "women" in text.split())
    assert not any("mary" in text.split() for text in texts)


@pytest.mark.parametrize(
    "text", ["county of scranton pa", "zip code of springfield ma", "bachelor degree online"]
)
def test_words_that_mean_something_else_in_queries_do_not_count(text: str) -> None:
    assert LexiconClassifier().predict_proba([text])[0].argmax() == 2


UNGENDERED = """
    mumbai mumble mumford mumps mummified queensland queenstown queensway grandmaster grandmasters grandparent
    grandparents grandfathered wombat wombats breastplate breaststroke breastbone brideshead bridewell ewell
    tamponade lactate unclear unclean husbandry sultanate sultanpur sultana penistone spermaceti spermine
    dudek paternalism spokesmodel chairmanship firemaking cervid
""".split()
FEMALE = """
    mum mums mummy queen queens queenly grandma grandmas grandmom grandmother grandmothers womb breast breasts
    breastfeeding breastfed bride brides bridesmaid ewe ewes tampon tampons lactation aunt aunts auntie cervix
    cervical ovary ovaries ovarian maternal pregnancy duchess duchesses
""".split()
MALE = """
    uncle uncles husband husbands sultan sultans penis penises sperm spermatozoa dude dudes grandpa
    grandfather grandfathers bridegroom paternal spokesman spokesmen chairman chairmen fireman firemen
    policeman businessman congressmen
""".split()


def test_prefixes_match_only_the_words_that_are_meant() -> None:
    found = term_groups([*UNGENDERED, *FEMALE, *MALE])
    assert {word: found[word] for word in UNGENDERED if word in found} == {}
    assert [word for word in FEMALE if found.get(word) != "female"] == []
    assert [word for word in MALE if found.get(word) != "male"] == []
