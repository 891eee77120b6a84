"""Text becomes terms as in Lucene's English analyzer; the kernel cuts as the definition does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.rankers.analysis import (
    DIGIT,
    IDEOGRAPH,
    LETTER,
    LONGEST,
    LUCENE_STOP_WORDS,
    MARK,
    MID_LETTER,
    MID_NUMBER,
    SEPARATOR,
    SILENT,
    UNDERSCORE,
    Analyzer,
    characters,
    read_stop_words,
    split,
    words,
)

AWKWARD = "abZ19_.,:;'’·-é\u0301\u00ad\u200b\u200d中文ひカ한ßİ😀ﬁΣς\u0600٣²½Ⅷ\t\n "


def cut(texts: list[str]) -> list[list[str]]:
    found = words(texts)
    distinct = found.distinct.to_pylist()
    return [
        [distinct[n] for n in found.numbers[found.bounds[i] : found.bounds[i + 1]]] for i in range(len(texts))
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
    word: list[int] = []
    solid, previous, middle = False, SEPARATOR, 0  # a letter or digit in it? the last one's class
    kinds = [_kind(character) for character in text]

    def finish() -> None:
        nonlocal solid, previous
        if word and solid:
            names.append("".join(map(chr, word)))
        word.clear()
        solid, previous = False, SEPARATOR

    for place, (character, kind) in enumerate(zip(text, kinds, strict=True)):
        if kind == SILENT:
            continue
        if kind == MARK and word:
            _append_mark(word, ord(character))
            continue
        if kind == IDEOGRAPH:
            finish()
            word.append(ord(character))
            solid, previous = True, IDEOGRAPH
            continue
        middle = _next_kind(kinds, place + 1) if kind >= MID_LETTER else SEPARATOR
        joins = (middle == previous == LETTER and kind != MID_NUMBER) or (
            middle == previous == DIGIT and kind != MID_LETTER
        )
        if kind in (LETTER, DIGIT, UNDERSCORE) or joins:
            if previous == IDEOGRAPH or len(word) >= LONGEST:
                finish()
            word.append(_lower(character))
            solid = solid or kind in (LETTER, DIGIT)
            previous = kind
        else:
            finish()
    finish()
    return names


def _next_kind(kinds: Sequence[int], place: int) -> int:
    """The class of the next character that is not silent or a mark."""
    while place < len(kinds) and kinds[place] in (SILENT, MARK):
        place += 1
    return kinds[place] if place < len(kinds) else SEPARATOR


def _kind(character: str) -> int:
    code = ord(character)
    if code < len(characters().kind):
        return int(characters().kind[code])
    return IDEOGRAPH if 0x20000 <= code < 0x323B0 else SEPARATOR


def _lower(character: str) -> int:
    code = ord(character)
    return int(characters().lower[code]) if code < len(characters().kind) else code


def _append_mark(word: list[int], mark: int) -> None:
    pairs = characters().pairs
    pair = word[-1] << 21 | mark
    place = int(np.searchsorted(pairs[:, 0], pair))
    if place < len(pairs) and pairs[place, 0] == pair:
        word[-1] = int(pairs[place, 1])
    elif len(word) < LONGEST:
        word.append(mark)


@given(st.lists(st.text(st.sampled_from(AWKWARD), max_size=40) | st.text(max_size=40), max_size=6))
def test_the_kernel_cuts_as_the_definition_does(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    assert cut(texts) == [plain(text) for text in texts]


def test_the_kernel_cuts_real_text_as_the_definition_does(shared: Path) -> None:
    texts = er.load(shared / "data" / "time").docs.frame()["text"].to_list()[:60]
    assert cut(texts) == [plain(text) for text in texts]


def test_a_word_of_any_length_is_cut_into_pieces() -> None:
    text = "x" * (2 * LONGEST + 7) + " " + "é" * (LONGEST + 1)
    assert [len(word) for word in plain(text)] == [LONGEST, LONGEST, 7, LONGEST, 1]
    assert cut([text]) == [plain(text)]


def test_many_distinct_words_outgrow_the_first_table() -> None:
    texts = [" ".join(f"w{i}x{j}" for j in range(500)) for i in range(200)]
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


def test_an_analyzer_can_be_described_and_made_again() -> None:
    made = Analyzer.of(Analyzer(stemmer="english", stop_words=["x"]).description)
    assert (made.stemmer, made.stop_words) == ("english", {"x"})


def test_terms_made_by_other_rules_are_refused() -> None:
    old = {key: value for key, value in Analyzer().description.items() if key != "version"}
    with pytest.raises(er.InputError, match="another version of evenrank, whose terms differ"):
        Analyzer.of(old)
