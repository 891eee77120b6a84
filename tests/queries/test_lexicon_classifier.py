"""The lexicon classifier: words and names, counted."""

from __future__ import annotations

import pytest

from evenrank.queries.classify import decide
from evenrank.queries.model import LexiconClassifier
from evenrank.queries.words import census_names, clear_names, term_groups


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("what does a mother eat", 0),
        ("how old is jennifer lawrence", 0),
        ("early pregnancy symptoms", 0),
        ("how tall is robert redford", 1),
        ("prostate cancer", 1),
        ("father of the bride", 3),
        ("python list sort", 2),
        ("", 3),
    ],
)
def test_more_words_of_a_side_give_its_label(text: str, label: int) -> None:
    probabilities = LexiconClassifier().predict_proba([text])
    assert probabilities.sum() == pytest.approx(1)
    assert decide(probabilities)[0] == label


def test_reasons_are_the_words_counted() -> None:
    assert LexiconClassifier().explain(["is the queen mary", "no word"]) == [
        [("queen", "female", 1.0), ("mary", "female", 1.0)],
        [],
    ]


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
