"""How gendered texts are: which words count, and which are the query's own."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.text.tokens import tokens
from evenrank.vectors import genderedness
from evenrank.vectors.texts import GENDERED_STOP_WORDS, gendered_texts, stop_words

WORDS = st.sampled_from(
    "nurse nurses nursing Electrician electricians she He's her the a of woman men 12 b2b x é café naïve "
    "mrs his- it zzzz queen's king boss l'homme HERSELF ﬁ 女".split()
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@cache
def _table() -> dict[str, float]:
    table = genderedness()
    return dict(zip(table.words, table.values.astype(float).tolist(), strict=True))


def counted(text: str) -> list[str]:
    """The words that count, the plain way."""
    return [
        word
        for word in tokens(text)
        if len(word) > 1
        and not any(c.isnumeric() for c in word)
        and (word not in stop_words() or word in GENDERED_STOP_WORDS)
        and word in _table()
    ]


def g(text: str, query: str = "") -> float:
    stem = Stemmer.Stemmer("english").stemWord
    own = {stem(word) for word in tokens(query) if len(word) > 1}
    values = [_table()[word] for word in counted(text) if stem(word) not in own]
    return sum(values) / len(values) if values else math.nan


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), queries=st.lists(TEXTS, min_size=1, max_size=3))
def test_the_kernel_does_what_plain_python_does(texts: list[str], queries: list[str]) -> None:
    reader = gendered_texts()
    assert reader.of_texts(texts) == pytest.approx([g(text) for text in texts], abs=1e-12, nan_ok=True)
    query_rows = np.repeat(np.arange(len(queries)), len(texts))
    doc_rows = np.tile(np.arange(len(texts)), len(queries))
    found = reader.of_pairs(queries, reader.find(texts), query_rows, doc_rows)
    expected = [g(text, query) for query in queries for text in texts]
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_any_text_can_be_read(texts: list[str]) -> None:
    assert gendered_texts().of_texts(texts) == pytest.approx(list(map(g, texts)), abs=1e-12, nan_ok=True)


def test_gendered_stop_words_are_kept_and_others_are_not() -> None:
    reader = gendered_texts()
    she, the = reader.of_texts(["the she of", "the of and"])
    assert she == pytest.approx(_table()["she"])
    assert math.isnan(the)
    assert len(stop_words()) == 318
    # hers, him, his … are on the stop list; the titles never were
    assert GENDERED_STOP_WORDS - stop_words() == {"mrs", "ms", "mr"}
    assert set(reader.vocabulary) >= GENDERED_STOP_WORDS
    assert not set(reader.vocabulary) & (stop_words() - GENDERED_STOP_WORDS)


def test_a_text_without_a_word_has_no_value_and_not_zero() -> None:
    assert np.isnan(gendered_texts().of_texts(["", "12 x1", "qwrtzx", "a b c"])).all()


def test_every_occurrence_counts() -> None:
    once, thrice = gendered_texts().of_texts(["queen king", "queen queen queen king"])
    assert once == pytest.approx((_table()["queen"] + _table()["king"]) / 2)
    assert thrice == pytest.approx((3 * _table()["queen"] + _table()["king"]) / 4)


def test_words_with_the_lemma_of_a_query_word_are_dropped() -> None:
    reader = gendered_texts()
    found = reader.find(["The electricians saw a queen", "The plumber saw a queen"])
    one, other = reader.of_pairs(["electrician"], found, np.array([0, 0]), np.array([0, 1]))
    assert one == pytest.approx(g("saw queen"))
    assert other == pytest.approx(g("plumber saw queen"))


def test_a_document_of_query_words_alone_has_no_value() -> None:
    reader = gendered_texts()
    found = reader.find(["Nurses nursing the nurse"])
    assert np.isnan(reader.of_pairs(["nurse"], found, np.array([0]), np.array([0]))).all()


def test_words_that_share_no_vector_but_a_stem_with_the_query_are_dropped_too() -> None:
    reader = gendered_texts()
    found = reader.find(["plumber queen"])
    (value,) = reader.of_pairs(["plumberings plumbers"], found, np.array([0]), np.array([0]))
    assert value == pytest.approx(_table()["queen"])


def test_the_shares_of_words_add_up_to_what_the_documents_have() -> None:
    reader = gendered_texts()
    texts = ["the queen and her nurses", "a king and his electricians", "nothing"]
    queries = ["nurse", "electrician"]
    found = reader.find(texts)
    rows, docs = np.array([0, 0, 1]), np.array([0, 1, 1])
    scale, centre = np.array([0.5, -0.2, 2.0]), 0.05
    values = reader.of_pairs(queries, found, rows, docs)
    shares = reader.word_shares(queries, found, rows, docs, scale, centre)
    assert shares.sum() == pytest.approx(float(scale @ (values - centre)))
    assert shares[reader.vocabulary.index("queen")] != 0


def test_another_direction_needs_vectors() -> None:
    with pytest.raises(InputError, match="pairs go with vectors"):
        gendered_texts(pairs=[("young", "old")])
