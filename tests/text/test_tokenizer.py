from __future__ import annotations

import runpy
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.text.tokens import check_tokenizer, tokens, unicode_tables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He's", ["he"]),
        ("she'll", ["she", "ll"]),
        ("(her)", ["her"]),
        ("women.", ["women"]),
        ("l'homme", ["homme"]),
        ("l’homme", ["homme"]),
        ("dell'uomo", ["dell", "uomo"]),
        ("ex-boyfriend", ["ex", "boyfriend"]),
        ("I'm a man", ["a", "man"]),
        ("rock 'n' roll", ["rock", "roll"]),
        ("ÉTÉ été E\u0301TE\u0301", ["été", "été", "été"]),
        ("ΣΟΦΟΣ σοφος σοφοσ", ["σοφοσ", "σοφοσ", "σοφοσ"]),
        ("Straße STRAẞE", ["straße", "straße"]),
        ("snake_case", ["snake", "case"]),
        ("3rd COVID19", ["3rd", "covid19"]),
        ("женщина ЖЕНЩИНА", ["женщина", "женщина"]),
        ("她是。他", ["她是", "他"]),
        ("👩‍🔬 woman", ["woman"]),
        ("", []),
        ("  \t\n ", []),
    ],
)
def test_words_are_runs_of_letters_and_digits(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_whitespace_splits_on_single_spaces_and_nothing_else() -> None:
    assert tokens("She  said:\t(HER) he's.", "whitespace") == ["she", "said:\t(her)", "he's."]


def test_an_unknown_tokenizer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="words, whitespace"):
        check_tokenizer("spaces")


@pytest.mark.parametrize("apostrophe", ["\u0027", "\u2018", "\u2019", "\u02bc", "\uff07"])
def test_every_apostrophe_ends_a_word(apostrophe: str) -> None:
    assert tokens(f"She{apostrophe}s l{apostrophe}homme dell{apostrophe}uomo") == [
        "she",
        "homme",
        "dell",
        "uomo",
    ]


@given(text=st.text("abZ09_'- .,\t\n\x00\x7f", max_size=40))
def test_a_text_in_ascii_has_the_tokens_that_any_text_has(text: str) -> None:
    assert tokens(text) == tokens(text + "\u2003")
    assert tokens(text, "whitespace") == tokens(text + " \u2003", "whitespace")[:-1]


def test_the_shipped_tables_are_what_the_tool_makes() -> None:
    shipped = unicode_tables()
    if unicodedata.unidata_version != shipped.version:
        pytest.skip(f"this Python has Unicode {unicodedata.unidata_version}, shipped is {shipped.version}")
    made = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "unicode_tables.py"))["build"]()
    for name, one, other in zip(shipped._fields, shipped, made, strict=True):
        assert np.array_equal(one, other), name
        assert name == "version" or one.dtype == other.dtype
