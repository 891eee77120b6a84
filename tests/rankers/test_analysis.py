"""Text becomes terms as in Lucene's English analyzer; the kernel cuts as the definition does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.rankers.index.analysis import LONGEST, LUCENE_STOP_WORDS, Analyzer, read_stop_words, split
from evenrank.rankers.index.tokenizing import words

AWKWARD = "abZ19_.,:;'’·-é\u0301\u00ad\u200b\u200d中文ひカ한ßİ😀ﬁΣς\u0600٣²½Ⅷ\t\n "


def cut(texts: list[str]) -> list[list[str]]:
    found = words(texts)
    distinct = found.texts()
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
    assert split(text) == expected
    assert cut([text]) == [expected]


@given(st.lists(st.text(st.sampled_from(AWKWARD), max_size=40) | st.text(max_size=40), max_size=6))
def test_the_kernel_cuts_as_the_definition_does(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    assert cut(texts) == [split(text) for text in texts]


def test_the_kernel_cuts_real_text_as_the_definition_does(shared: Path) -> None:
    texts = er.load(shared / "data" / "time").docs.frame()["text"].to_list()[:60]
    assert cut(texts) == [split(text) for text in texts]


def test_a_word_of_any_length_is_cut_into_pieces() -> None:
    text = "x" * (2 * LONGEST + 7) + " " + "é" * (LONGEST + 1)
    assert [len(word) for word in split(text)] == [LONGEST, LONGEST, 7, LONGEST, 1]
    assert cut([text]) == [split(text)]


def test_many_distinct_words_outgrow_the_first_table() -> None:
    texts = [" ".join(f"w{i}x{j}" for j in range(500)) for i in range(200)]
    assert cut(texts) == [split(text) for text in texts]


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
