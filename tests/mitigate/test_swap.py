"""The counterfactual swap: grammar, case, names, and the mirrored tally."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.data.docs import open_docs
from evenrank.mitigate import swap_words
from evenrank.mitigate.swap import swapper

SENTENCES = tomllib.loads((Path(__file__).parent / "swap_sentences.toml").read_text())
# Between two of these no pronoun changes its case and no name its role.
PLAIN = ["the", "ran", "quickly", "and", "from", "house", "7", "über", "—", "(", "it's", "\n"]


def unambiguous() -> list[str]:
    words = swapper().words
    both = [w for w, m in words.female.items() if words.male.get(m) == w]
    both = [w for w in both if w not in ("hers", "lady", "madam") and words.female[w] not in ("his", "sir")]
    names = swap_words.names()
    sure = [n for n in names.clear.female if n not in names.surnames]
    return [*both, *(words.female[w] for w in both), *(n.capitalize() for n in sure[:200])]


@pytest.mark.parametrize(("text", "mirror"), SENTENCES["both"])
def test_a_sentence_and_its_mirror_image_are_each_others(text: str, mirror: str) -> None:
    assert er.swap(text) == mirror
    assert er.swap(mirror) == text


def test_there_are_many_hand_checked_sentences() -> None:
    assert len(SENTENCES["both"]) >= 60


@pytest.mark.parametrize(("text", "mirror"), SENTENCES["one_way"])
def test_words_that_share_a_mirror_image_do_not_come_back(text: str, mirror: str) -> None:
    assert er.swap(text) == mirror


@pytest.mark.parametrize("text", SENTENCES["same"])
def test_what_is_not_surely_gendered_is_left(text: str) -> None:
    assert er.swap(text) == text


@pytest.mark.parametrize(("text", "end"), SENTENCES["surnames"])
def test_surnames_stay_behind_a_title_or_a_given_name(text: str, end: str) -> None:
    assert er.swap(text).endswith(end)
    assert er.swap(er.swap(text)) == text


@given(
    st.lists(
        st.tuples(
            st.sampled_from(unambiguous()), st.sampled_from(PLAIN), st.sampled_from(["", "'s", ",", "."])
        ),
        max_size=20,
    ),
    st.sampled_from([str, str.upper]),
)
def test_swapping_twice_returns_unambiguous_text(parts: list[tuple[str, str, str]], case: type[str]) -> None:
    text = " ".join(case(word) + mark + " " + between for word, between, mark in parts)
    turned = er.swap(text)
    assert er.swap(turned) == text
    assert parts == [] or turned != text


@given(st.lists(st.one_of(st.sampled_from(list(swapper().words.female)), st.text(max_size=12)), max_size=12))
def test_the_tally_of_a_mirrored_text_is_the_mirrored_tally(parts: list[str]) -> None:
    text = " ".join(parts).replace("\x00", "")
    docs = {"d": text}
    for tokenizer in ("words", "whitespace"):
        before = er.tally(docs, "rekabsaz2020", tokenizer=tokenizer).frame.row(0, named=True)
        after = er.tally({"d": er.swap(text)}, "rekabsaz2020", tokenizer=tokenizer).frame.row(0, named=True)
        assert (after["female"], after["male"]) == (before["male"], before["female"])
        assert after["tokens"] == before["tokens"]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@pytest.mark.parametrize("file", ["time/docs.tsv", "squad/docs.tsv", "grepbiasir/docs.jsonl"])
def test_the_tally_of_a_mirrored_collection_is_the_mirrored_tally(
    shared: Path, file: str, tokenizer: str
) -> None:
    docs = open_docs(shared / "data" / file)
    before = er.tally(docs, "rekabsaz2020", tokenizer=tokenizer).frame
    after = er.tally(er.swap(docs), "rekabsaz2020", tokenizer=tokenizer).frame
    assert after["doc_id"].equals(before["doc_id"])
    assert after["tokens"].equals(before["tokens"])
    assert after["female"].equals(before["male"].rename("female"))
    assert after["male"].equals(before["female"].rename("male"))
    assert before["male"].sum() > 0


def test_every_word_of_the_lexicon_has_a_mirror_in_the_other_group() -> None:
    groups = er.lexicon("rekabsaz2020").groups
    for word in (*groups["female"], *groups["male"]):
        mirror = er.swap(word)
        assert (word in groups["female"]) == (mirror in groups["male"])


def test_without_a_lexicon_mirrors_are_the_natural_ones() -> None:
    assert er.swap("Ladies and gentlemen, mama!", lexicon=None) == "Gentlemen and ladies, papa!"
    assert er.swap("grandmothers", lexicon=None) == "grandfathers"


def test_words_outside_a_lexicon_never_enter_it() -> None:
    small = er.lexicon({"female": ["woman"], "male": ["man", "dad"]})
    assert er.swap("the woman, mum, mom and dad", lexicon=small, names=False) == "the man, mum, mom and mom"


def test_a_lexicon_of_other_groups_is_refused() -> None:
    with pytest.raises(er.InputError, match="female and male"):
        er.swap("x", lexicon={"young": ["boy"], "old": ["man"]})


def test_names_can_be_left() -> None:
    assert er.swap("John and his wife", names=False) == "John and her husband"


def test_names_are_mirrored_by_rank_one_to_one() -> None:
    names = swap_words.names()
    assert names.clear.female["mary"] == "john"
    assert len(names.clear.female) == len(names.clear.male) > 700
    assert not names.clear.female.keys() & names.clear.male.keys()


def test_odd_case_and_decomposed_letters_are_understood() -> None:
    assert er.swap("sHe met a fiance\u0301e") == "he met a fiancé"


def test_it_takes_what_tables_take(tmp_path: Path) -> None:
    assert er.swap(["she", "", "x"]) == ["he", "", "x"]
    assert er.swap({"a": "she"}) == {"a": "he"}
    assert er.swap(pl.Series("t", ["she", None])).to_list() == ["he", None]
    queries = pl.DataFrame({"query_id": ["1"], "text": ["her mother"]})
    assert er.swap(queries)["text"].to_list() == ["his father"]
    (tmp_path / "docs.tsv").write_text("a\tshe\nb\tit\n")
    docs = er.swap(tmp_path / "docs.tsv")
    assert docs.frame()["text"].to_list() == docs.frame()["text"].to_list() == ["he", "it"]
    for bad in (3, [1, 2], pl.DataFrame({"x": [1]})):
        with pytest.raises(er.InputError):
            er.swap(bad)


def test_slices_of_arrow_arrays_are_mirrored_where_they_are() -> None:
    array = pa.array(["he", "she", "it", "her son"], pa.string()).slice(1, 3)
    assert swapper().texts(array).texts.to_pylist() == ["he", "it", "his daughter"]


def test_many_texts_are_mirrored_in_order() -> None:
    texts = [f"{n} she" if n % 2 else f"{n} it" for n in range(20_000)]
    assert er.swap(texts) == [text.replace("she", "he") for text in texts]
