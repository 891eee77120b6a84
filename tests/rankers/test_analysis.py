"""Text becomes terms as in Lucene's English analyzer; words are split as by the definition."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.rankers.analysis import _WORD, LUCENE_STOP_WORDS, Analyzer, read_stop_words, split, words

SEPARATOR, LETTER, DIGIT, UNDERSCORE, MARK, INVISIBLE, IDEOGRAPH, MID_LETTER, MID_NUMBER, MID_BOTH = range(10)
CLASSES = {"L": LETTER, "M": MARK, "Nd": DIGIT, "Nl": LETTER, "Pc": UNDERSCORE, "Cf": INVISIBLE}
MIDDLE = {
    ":·\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a": MID_LETTER,
    ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b": MID_NUMBER,
    ".'‘’\u2024\ufe52\uff07\uff0e": MID_BOTH,
}
IDEOGRAPHS = ("\u3007\u3007", "\u3041\u309f", "\u3400\u4dbf", "\u4e00\u9fff", "\uf900\ufaff")
AWKWARD = "abZ19_.,:;'’·-é\u0301\u00ad\u200b\u200d中文ひカ한ßİ😀ﬁΣς\u0600٣²½Ⅷ\t\n "


def cut(texts: list[str]) -> list[list[str]]:
    found = words(texts)
    return [
        [found.vocabulary[n] for n in found.numbers[found.bounds[i] : found.bounds[i + 1]]]
        for i in range(len(texts))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Nurse-Practitioner", ["the", "nurse", "practitioner"]),
        ("can't O'Neil's", ["can't", "o'neil's"]),
        ("A.B 1.2 A.1 1.A", ["a.b", "1.2", "a", "1", "1", "a"]),
        ("A:B 1:2", ["a:b", "1", "2"]),
        ("A,B 1,2 1,000.5", ["a", "b", "1,2", "1,000.5"]),
        ("A_B 1_2 _ __ A__", ["a_b", "1_2", "a__"]),
        ("end. U.S. e.g.", ["end", "u.s", "e.g"]),
        ("中文 ひら カタカナ", ["中", "文", "ひ", "ら", "カタカナ"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("co\u00adop", ["coop"]),
        ("2nd MP3", ["2nd", "mp3"]),
        ("", []),
        ("... --- !!!", []),
    ],
)
def test_words_are_cut_as_by_lucenes_standard_tokenizer(text: str, expected: list[str]) -> None:
    assert split(text) == plain(text) == expected
    assert cut([text]) == [expected]


def plain(text: str) -> list[str]:
    """The words of a text, in lower case: the rules in plain Python."""
    names: list[str] = []
    word: list[str] = []
    solid, previous = False, SEPARATOR  # a letter or digit in it? the last one's class
    kinds = [_kind(character) for character in text]

    def finish() -> None:
        nonlocal solid, previous
        if word and solid:
            names.append(unicodedata.normalize("NFC", "".join(word).lower()))
        word.clear()
        solid, previous = False, SEPARATOR

    for place, (character, kind) in enumerate(zip(text, kinds, strict=True)):
        if kind == INVISIBLE:
            continue
        if kind == MARK and word:
            word.append(character)
            continue
        if kind == IDEOGRAPH:
            finish()
            word.append(character)
            solid, previous = True, IDEOGRAPH
            continue
        behind = _next_kind(kinds, place + 1) if kind >= MID_LETTER else SEPARATOR
        joins = (behind == previous == LETTER and kind != MID_NUMBER) or (
            behind == previous == DIGIT and kind != MID_LETTER
        )
        if kind in (LETTER, DIGIT, UNDERSCORE) or joins:
            if previous == IDEOGRAPH:
                finish()
            word.append(character)
            solid = solid or kind in (LETTER, DIGIT)
            previous = kind
        else:
            finish()
    finish()
    return names


def _next_kind(kinds: Sequence[int], place: int) -> int:
    """The class of the next character that is not invisible or a mark."""
    while place < len(kinds) and kinds[place] in (INVISIBLE, MARK):
        place += 1
    return kinds[place] if place < len(kinds) else SEPARATOR


def _kind(character: str) -> int:
    for characters, kind in MIDDLE.items():
        if character in characters:
            return kind
    if character == "\u200b":
        return SEPARATOR
    category = unicodedata.category(character)
    kind = CLASSES.get(category) or CLASSES.get(category[0], SEPARATOR)
    is_ideograph = character >= "\U00020000" or any(low <= character <= high for low, high in IDEOGRAPHS)
    return IDEOGRAPH if kind == LETTER and is_ideograph else kind


@given(st.lists(st.text(st.sampled_from(AWKWARD), max_size=40), max_size=6))
def test_words_are_split_as_by_the_definition(texts: list[str]) -> None:
    assert cut(texts) == [plain(text) for text in texts]


def test_real_text_is_split_as_by_the_definition(shared: Path) -> None:
    texts = er.load(shared / "data" / "time").docs.frame()["text"].to_list()[:60]
    assert cut(texts) == [plain(text) for text in texts]


def by_expression(texts: list[str]) -> list[list[str]]:
    """The words of ASCII texts, all by the regular expression."""
    found = pl.Series(texts, dtype=pl.String).str.to_lowercase().str.extract_all(_WORD)
    return [[word for word in words if word.strip("_")] for words in found.to_list()]


@given(st.lists(st.text(st.characters(max_codepoint=127) | st.sampled_from("aZ19_.,:;'"), max_size=40)))
def test_ascii_is_split_as_by_the_regular_expression(texts: list[str]) -> None:
    assert cut(texts) == by_expression(texts)


@pytest.mark.parametrize("collection", ["time", "grepbiasir", "squad"])
def test_real_text_is_split_as_by_the_regular_expression(shared: Path, collection: str) -> None:
    texts = er.load(
        shared / "data" / collection, split="test" if collection == "squad" else None
    ).docs.frame()
    ascii_texts = texts["text"].str.replace_all(r"[^\x00-\x7f]", "?").to_list()
    assert cut(ascii_texts) == by_expression(ascii_texts)


def test_more_words_than_the_hash_table_has_slots_at_first() -> None:
    texts = [f"Word{number} é{number} WORD{number}" for number in range(30_000)]
    assert cut(texts) == [plain(text) for text in texts]


def test_possessives_stop_words_and_endings_go() -> None:
    assert Analyzer().terms("The nurse's patients were running, and Levi’s too") == [
        "nurs", "patient", "were", "run", "levi", "too",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("ideology", "ideolog"),
        ("ideological", "ideolog"),
        ("technologies", "technolog"),
        ("possibly", "possibl"),
        ("assembly", "assembl"),
        ("wobbly", "wobbl"),
        ("probably", "probabl"),
        ("mythology", "mytholog"),  # y is a vowel here
        ("biology", "biologi"),  # no vowel with a consonant behind it comes before -logi
        ("eulogy", "eulogi"),
        ("doubly", "doubli"),
        ("is", "is"),
        ("us", "us"),
    ],
)
def test_stems_depart_from_porters_paper_as_lucenes_do(word: str, stem: str) -> None:
    assert Analyzer(stop_words=()).terms(word) == [stem]


def test_only_porters_stemmer_departs() -> None:
    from Stemmer import Stemmer

    assert Analyzer(stemmer="german").terms("logi bibli") == Stemmer("german").stemWords(["logi", "bibli"])


def test_there_are_thirty_three_stop_words() -> None:
    assert len(LUCENE_STOP_WORDS) == 33


def test_stemming_and_stop_words_are_optional() -> None:
    plain = Analyzer(stemmer=None, stop_words=())
    assert plain.terms("The nurses were running") == ["the", "nurses", "were", "running"]
    assert Analyzer(stemmer="german").terms("Häuser") == ["haus"]


def test_an_unknown_stemmer_is_refused() -> None:
    with pytest.raises(er.InputError, match=r"unknown stemmer 'klingon'; choose one of: .*porter"):
        Analyzer(stemmer="klingon")


def test_stop_words_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("# mine\nDer\n\ndie\n")
    assert read_stop_words(path) == {"der", "die"}
    assert read_stop_words(None) == frozenset()
    with pytest.raises(er.InputError, match="no such file"):
        read_stop_words(tmp_path / "none.txt")
